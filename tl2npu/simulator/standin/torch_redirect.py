"""Makes torch put everything on the CPU: ``.npu()``, ``.cuda()``, ``device="npu"``, ``torch.npu``, ``torch.cuda``."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

_DEVICES = ("npu", "cuda")


@contextmanager
def redirected() -> Iterator[None]:
    """Inside of the context devices of torch mean the CPU. Without torch nothing happens."""
    if importlib.util.find_spec("torch") is None:
        yield
        return
    import torch
    from torch.overrides import TorchFunctionMode

    class OnCpu(TorchFunctionMode):
        """Replaces devices in the arguments of every torch function."""

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = {k: _cpu(v) if k == "device" else v for k, v in (kwargs or {}).items()}
            name = getattr(func, "__name__", "")
            if name in ("npu", "cuda"):
                return args[0]
            if name in ("to", "device", "set_default_device", "type"):
                args = tuple(_cpu(a) for a in args)
            return func(*args, **kwargs)

    patches = {
        (torch, "npu"): _Accelerator("torch.npu"),
        (torch, "cuda"): _Accelerator("torch.cuda", torch.cuda),
        (torch, "device"): _device_class(torch),
        (torch, "set_default_device"): lambda *_: None,
        (torch.Tensor, "npu"): lambda self, *_, **__: self,
        (torch.Tensor, "cuda"): lambda self, *_, **__: self,
        (torch.nn.Module, "npu"): lambda self, *_, **__: self,
        (torch.nn.Module, "cuda"): lambda self, *_, **__: self,
        (torch.Tensor, "is_cuda"): True,
        (torch.Tensor, "is_npu"): True,
    }
    missing = object()
    saved = {key: vars(key[0]).get(key[1], missing) for key in patches}
    for (owner, name), value in patches.items():
        setattr(owner, name, value)
    had = sys.modules.get("torch_npu")
    sys.modules["torch_npu"] = _Accelerator("torch_npu")
    try:
        with OnCpu():
            yield
    finally:
        for (owner, name), value in saved.items():
            if value is missing:
                delattr(owner, name)
            else:
                setattr(owner, name, value)
        if had is None:
            del sys.modules["torch_npu"]
        else:
            sys.modules["torch_npu"] = had


def _cpu(value: Any) -> Any:
    if isinstance(value, str) and value.split(":")[0] in _DEVICES:
        return "cpu"
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return value


def _device_class(torch: Any) -> Any:
    """``torch.device`` that gives CPU devices and still answers ``isinstance``."""
    real = torch.device

    class Meta(type):
        def __instancecheck__(cls, value: Any) -> bool:
            return isinstance(value, real)

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            return real(*(_cpu(a) for a in args), **{k: _cpu(v) for k, v in kwargs.items()})

    return Meta("device", (), {})


class _Event:
    """An event that has always happened."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def record(self, *_: Any) -> None: ...

    def synchronize(self) -> None: ...

    def wait(self, *_: Any) -> None: ...

    def elapsed_time(self, *_: Any) -> float:
        """1 ms, by definition."""
        return 1.0


class _Accelerator(ModuleType):
    """``torch.npu``, ``torch.cuda``, ``torch_npu``: present, and without effect."""

    __path__: list[str] = []

    def __init__(self, name: str, real: Any = None) -> None:
        super().__init__(name)
        self.__dict__["real"] = real

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        known = {
            "is_available": lambda: True,
            "device_count": lambda: 1,
            "current_device": lambda: 0,
            "get_device_name": lambda *_: "tl2npu simulator",
            "get_device_capability": lambda *_: (9, 0),
            "memory_allocated": lambda *_: 0,
            "max_memory_allocated": lambda *_: 0,
            "Event": _Event,
        }
        if name in known:
            return known[name]
        if name.endswith("Tensor") and self.real is not None:
            return getattr(self.real, name)
        return lambda *_, **__: None
