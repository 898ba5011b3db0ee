"""Makes torch put everything on the CPU: ``.npu()``, ``.cuda()``, ``device="npu"``, ``torch.npu``, ``torch.cuda``."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from tl2npu.devices import A2
from tl2npu.simulator.standin import npu_operators
from tl2npu.simulator.standin.tensors import MARK, mark, on_device

_DEVICES = ("npu", "cuda")
_STANDS_FOR_DEVICE = "cpu:0"
_TORCH_NPU = (
    *("torch_npu", "torch_npu.npu", "torch_npu.contrib", "torch_npu.contrib.transfer_to_npu", "torch_npu.testing"),
    *("torch_npu.profiler", "torch_npu.utils"),
)


@contextlib.contextmanager
def redirected() -> Iterator[None]:
    """Inside of the context devices of torch mean the CPU. Without torch nothing happens."""
    if importlib.util.find_spec("torch") is None:
        yield
        return
    import torch
    from torch.overrides import TorchFunctionMode

    state = {"default": False}

    class OnCpu(TorchFunctionMode):
        """Replaces devices in the arguments of every torch function, and remembers which tensors are "on the device".

        What a function makes of tensors on the device is on the device.
        """

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            name = getattr(func, "__name__", "")
            if name == "__get__" and getattr(func, "__self__", None) is torch.Tensor.device and on_device(args[0]):
                return torch.device("cpu" if _is_torch(sys._getframe(1).f_code.co_filename) else _STANDS_FOR_DEVICE)
            if name == "cpu":
                return _to_host(args[0])
            if name == "to" and args:
                return _to(func, args, kwargs)
            device = kwargs.get("device")
            if name == "type":
                args = tuple(_cpu(a) for a in args)
            if device is not None:
                kwargs = {**kwargs, "device": _cpu(device)}
            if name in ("cross_entropy", "nll_loss"):
                args = tuple(_class_numbers(a) for a in args)
            if name == "__setitem__" and isinstance(args[-1], torch.Tensor) and on_device(args[-1]):
                args = (*args[:-1], args[-1].clone())  # the device copies a tensor onto itself, the CPU refuses
            half = _half(args) if name in _SUMMING and "out" not in kwargs else None
            if half is not None:
                result = func(*(_wide(a) for a in args), **{k: _wide(v) for k, v in kwargs.items()}).to(half)
            else:
                result = func(*args, **kwargs)
            there = _is_device(device) if device is not None else state["default"] and _is_new(args)
            if there or any(map(on_device, _tensors((*args, *kwargs.values())))):
                _mark_all(result)
            return result

    def set_default_device(device: Any) -> None:
        state["default"] = _is_device(device)

    autocast = _autocast(torch.autocast)
    patches = {
        (torch, "npu"): Accelerator("torch.npu"),
        (torch, "cuda"): Accelerator("torch.cuda", torch.cuda),
        (torch.ops, "npu"): Accelerator("torch.ops.npu"),
        (torch, "device"): _redirecting_class(torch.device),
        (torch, "Generator"): _redirecting_class(torch.Generator),
        (torch, "set_default_device"): set_default_device,
        (torch, "load"): _loading(torch.load),
        (torch.Tensor, "npu"): lambda self, *_, **__: _to_device(self),
        (torch.Tensor, "cuda"): lambda self, *_, **__: _to_device(self),
        (torch.nn.Module, "npu"): lambda self, *_, **__: self,
        (torch.nn.Module, "cuda"): lambda self, *_, **__: self,
        (torch.nn.Module, "to"): _module_to(torch.nn.Module.to),
        (torch.Tensor, "is_cuda"): True,
        (torch.Tensor, "is_npu"): True,
        (torch._C, "_cuda_getCurrentRawStream"): lambda *_: 0,
        (torch, "get_autocast_dtype"): _of_device(torch.get_autocast_dtype),
        (torch, "is_autocast_enabled"): _of_device(torch.is_autocast_enabled),
        **{(owner, "autocast"): autocast for owner in (torch, torch.amp, torch.amp.autocast_mode)},
    }
    missing = object()
    saved = {key: vars(key[0]).get(key[1], missing) for key in patches}
    for (owner, name), value in patches.items():
        setattr(owner, name, value)
    had = {name: sys.modules.get(name) for name in _TORCH_NPU}
    sys.modules.update({name: Accelerator(name) for name in _TORCH_NPU})
    try:
        with OnCpu():
            yield
    finally:
        for (owner, name), value in saved.items():
            if value is missing:
                delattr(owner, name)
            else:
                setattr(owner, name, value)
        for name, module in had.items():
            if module is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module


def _is_torch(file: str) -> bool:
    """True for a file of torch, whose own checks know of one CPU only."""
    return "/torch/" in file.replace("\\", "/")


def _is_device(value: Any) -> bool:
    """True for what a script calls the accelerator; ``torch.device("npu")`` has become ``cpu:0``, with an index."""
    text = value if isinstance(value, str) else f"{value}" if type(value).__name__ == "device" else ""
    return text.split(":")[0] in _DEVICES or text == _STANDS_FOR_DEVICE


def _cpu(value: Any) -> Any:
    return "cpu" if _is_device(value) else value


def _of_device(function: Any) -> Any:
    """A function whose first argument may be the type of a device."""
    return lambda *args, **kwargs: function(*map(_cpu, args), **{name: _cpu(v) for name, v in kwargs.items()})


def _autocast(cls: Any) -> Any:
    """``torch.autocast`` of the device as that of the CPU."""

    class Autocast(cls):
        def __init__(self, device_type: str, *args: Any, **kwargs: Any) -> None:
            super().__init__(_cpu(device_type), *args, **kwargs)

    return Autocast


def _class_numbers(value: Any) -> Any:
    """Targets of a loss: int32 is allowed on the device, but not on the CPU."""
    return value.long() if str(getattr(value, "dtype", "")) == "torch.int32" else value


_SUMMING = {"matmul", "__matmul__", "__rmatmul__", "mm", "bmm", "einsum", "linear", "addmm", "baddbmm", "layer_norm"}
"""Products and norms, and their gradients: a device sums in fp32 and rounds once, the CPU's half-precision kernels
round in between."""


def _half(args: Any) -> Any:
    """The element type, if all tensors are on the device and of one type of 16 bits."""
    found = _tensors(args)
    kinds = {t.dtype for t in found}
    if len(kinds) != 1 or not all(map(on_device, found)) or str(*kinds) not in ("torch.float16", "torch.bfloat16"):
        return None
    return kinds.pop()


def _tensors(args: Any) -> list[Any]:
    """The tensors among arguments, and in lists among them."""
    return [t for a in args for t in (a if isinstance(a, (list, tuple)) else (a,)) if hasattr(t, "data_ptr")]


def _wide(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_wide(v) for v in value)
    return value.float() if hasattr(value, "data_ptr") else value


def _is_new(args: Any) -> bool:
    """True for a function without tensors: it makes one on the default device."""
    return not any(hasattr(a, "dtype") for a in args)


def _mark_all(result: Any) -> None:
    for item in result if isinstance(result, (tuple, list)) else (result,):
        if hasattr(item, "data_ptr"):
            mark(item)


def _loading(original: Any) -> Any:
    """``torch.load``: what is asked for on the device is on the device."""

    def load(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        found = original(f, _cpu(map_location), *args, **kwargs)
        if _is_device(map_location):
            _mark_within(found)
        return found

    return load


def _mark_within(value: Any) -> None:
    """The tensors in containers, too."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for item in value:
            _mark_within(item)
    _mark_all(value)


def _to_device(tensor: Any) -> Any:
    """``.npu()``: a copy, unless the tensor is on the device already."""
    return tensor if on_device(tensor) else mark(tensor.clone())


def _to_host(tensor: Any) -> Any:
    """``.cpu()``: a copy of a tensor that is on the device."""
    if not on_device(tensor):
        return tensor
    copy = tensor.clone()
    copy.__dict__.pop(MARK, None)
    return copy


def _to(func: Any, args: Any, kwargs: Any) -> Any:
    """``tensor.to(...)`` with a device, an element type, or another tensor."""
    wanted = [*args[1:], *kwargs.values()]
    other = next((w for w in args[1:2] if hasattr(w, "data_ptr")), None)
    kwargs = {k: _cpu(v) if k == "device" else v for k, v in kwargs.items()}
    there = on_device(args[0])
    result = func(*(_cpu(a) for a in args), **kwargs)
    if any(_is_device(w) for w in wanted) or (other is not None and on_device(other)):
        return _to_device(result) if not there else mark(result)
    if any(str(w) == "cpu" for w in wanted) or (other is not None and not on_device(other)):
        if there and result is not args[0]:
            mark(result)
        return _to_host(result)
    return mark(result) if there else result


def _module_to(real: Any) -> Any:
    return lambda self, *args, **kwargs: real(self, *map(_cpu, args), **{k: _cpu(v) for k, v in kwargs.items()})


def _redirecting_class(real: Any) -> Any:
    """``torch.device`` or ``torch.Generator`` that gives CPU ones and still answers ``isinstance``."""

    class Meta(type):
        def __instancecheck__(cls, value: Any) -> bool:
            return isinstance(value, real)

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            first = args[0] if args else kwargs.get("device", kwargs.get("type", "cpu"))
            if isinstance(first, int) or _is_device(first):  # a bare number is an index of the accelerator
                return real(_STANDS_FOR_DEVICE if real.__name__ == "device" else "cpu")
            return real(*args, **kwargs)

    return Meta(real.__name__, (), {})


class _Graph:
    """``torch.npu.NPUGraph``: what is captured runs at once, so that the first replay has been."""

    def __init__(self) -> None:
        self.replays = 0

    def replay(self) -> None:
        """Raises RuntimeError for a second replay: the captured calls were not kept."""
        self.replays += 1
        if self.replays > 1:
            raise RuntimeError("the tl2npu simulator runs a captured graph once, when it is captured")

    def reset(self) -> None: ...


class _Properties:
    """What ``get_device_properties`` gives: an A2 part.

    Its cores count as processors of a GPU, too: a script that sums in as many parts gives what its migration gives.
    """

    name = "Ascend910B"
    cube_core_num = A2.cube_cores
    vector_core_num = (A2.cube_cores or 0) * A2.vector_cores_per_cube
    multi_processor_count = A2.cube_cores
    L2_cache_size = A2.l2
    total_memory = 64 << 30
    major, minor = 9, 0


class _Event:
    """An event that has always happened, or a stream that is always empty."""

    cuda_stream = npu_stream = 0
    _as_parameter_ = None

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def record(self, *_: Any) -> None: ...

    def synchronize(self) -> None: ...

    def wait(self, *_: Any) -> None: ...

    def elapsed_time(self, *_: Any) -> float:
        """1 ms, by definition."""
        return 1.0


class Accelerator(ModuleType):
    """``torch.npu``, ``torch.cuda``, ``torch_npu``: present, and without effect."""

    __path__: list[str] = []  # noqa: RUF012

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
            "Stream": _Event,
            "NPUGraph": _Graph,
            "CUDAGraph": _Graph,
            "graph": lambda *_, **__: contextlib.nullcontext(),
            "stream": lambda *_, **__: contextlib.nullcontext(),
            "device": lambda *_, **__: contextlib.nullcontext(),
            "_DeviceGuard": lambda *_: contextlib.nullcontext(),
            "current_stream": _Event,
            "default_stream": _Event,
            "get_device_properties": lambda *_: _Properties,
        }
        if name in npu_operators.KNOWN:
            return npu_operators.KNOWN[name]
        if name.startswith("npu_"):
            raise AttributeError(
                f"{self.__name__}.{name} is an operator of the NPU's own library, which the simulator does not have"
            )
        if name in known:
            return known[name]
        found = getattr(self.real, name, None)
        if isinstance(found, ModuleType) or (name.endswith("Tensor") and found is not None):
            return found  # torch.cuda.amp: torch's own code looks into it
        return lambda *_, **__: None
