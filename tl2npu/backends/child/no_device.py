"""Stand-alone: what host code asks of an NPU or a GPU, on a machine that has none. Used by ``lower.py``.

Kernels are compiled and not launched here, so that their tensors hold zeros: tensors of every device are kept on the
CPU, ``torch_npu`` and ``torch.npu`` answer anything, and comparisons of results hold.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import re
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

_DEVICE = re.compile(r"(npu|cuda|privateuseone)(:\d+)?\Z")


class Anything:
    """Stands for any value of a package that is not used: it can be called and entered, and has any attribute."""

    def __init__(self, name: str) -> None:
        self.__dict__["_name"] = name

    def __getattr__(self, key: str) -> Any:
        if key.startswith("__") and key.endswith("__"):
            raise AttributeError(key)
        found = self.__dict__[key] = Anything(f"{self._name}.{key}")
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        last = self._name.rsplit(".", 1)[-1]
        if last == "elapsed_time":
            return 1.0
        if last.startswith("npu_"):  # an operator of reference: something in the shape of its first tensor
            torch: Any = importlib.import_module("torch")
            for value in (*args, *kwargs.values()):
                if isinstance(value, torch.Tensor):
                    return torch.zeros_like(value)
        if len(args) == 1 and not kwargs and callable(args[0]):
            return args[0]  # a decorator
        return Anything(f"{self._name}()")

    def __enter__(self) -> Anything:
        return self

    def __exit__(self, *error: object) -> None:
        """Exceptions pass."""

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __bool__(self) -> bool:
        return True

    def __float__(self) -> float:
        return 1.0

    def __index__(self) -> int:
        return 0

    __int__ = __index__


def module_of_anything(name: str) -> types.ModuleType:
    """A module that has every attribute, as the package of that name."""
    module = types.ModuleType(name)
    module.__path__ = []
    module.__file__ = f"{name}.py"
    rest = Anything(name)

    def get(key: str) -> Any:
        if key == "__version__":
            return "0"
        if key.startswith("__"):
            raise AttributeError(key)
        return getattr(rest, key)

    module.__getattr__ = get  # type: ignore[method-assign]
    sys.modules[name] = module
    return module


class Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds every package that is not installed, for files of which only kernels are wanted; ``asked``: their names."""

    def __init__(self) -> None:
        self.asked: set[str] = set()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """A package of anything; not below tilelang, whose missing modules are findings."""
        root = name.split(".")[0]
        if root in ("tilelang", "tvm") or ("." in name and root not in self.asked):
            return None
        self.asked.add(root)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """A module that has every attribute."""
        return module_of_anything(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing is in it."""


def install() -> None:
    """Put the stand-ins in place. Before torch is used, and before tilelang is imported."""
    torch: Any = importlib.import_module("torch")
    with_name = getattr(torch.utils, "rename_privateuse1_backend", None)
    if with_name is not None:
        with suppress(RuntimeError):
            with_name("npu")  # so that torch.device("npu") is a device
    npu = module_of_anything("torch.npu")
    known: Mapping[str, Callable[..., Any]] = {
        "is_available": lambda: True,  # the compiler asks, and plans memory as on a machine with an NPU
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "get_device_name": lambda *args: "",
        "get_device_properties": lambda *args: types.SimpleNamespace(
            name="",
            total_memory=64 << 30,
            cube_core_num=24,
            vector_core_num=48,
            multi_processor_count=24,
            L2_cache_size=192 << 20,
        ),
        "_is_in_bad_fork": lambda: False,
        **dict.fromkeys(("set_device", "synchronize", "empty_cache", "manual_seed", "manual_seed_all"), _nothing),
    }
    for name, function in known.items():
        setattr(npu, name, function)
    torch.npu = npu
    package = module_of_anything("torch_npu")
    package.npu = npu  # type: ignore[attr-defined]
    sys.modules["torch_npu.npu"] = npu
    torch.ops.npu = Anything("torch.ops.npu")
    _keep_on_the_cpu(torch)
    _let_comparisons_hold(torch)


def _nothing(*args: Any, **kwargs: Any) -> None:
    """For what only a device does."""


def _keep_on_the_cpu(torch: Any) -> None:
    mode: Any = importlib.import_module("torch.overrides").TorchFunctionMode

    def moved(value: Any) -> Any:
        if isinstance(value, torch.device):
            return torch.device("cpu") if _DEVICE.match(value.type) else value
        return "cpu" if isinstance(value, str) and _DEVICE.match(value) else value

    class OnTheCpu(mode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
            given = {
                key: "cpu" if key == "device" and type(value) is int else moved(value)
                for key, value in (kwargs or {}).items()
            }
            return func(*map(moved, args), **given)

    OnTheCpu().__enter__()

    def same(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self

    for owner in (torch.Tensor, torch.nn.Module):
        owner.npu = owner.cuda = same
    torch.Tensor.pin_memory = same
    torch.Tensor.is_npu = property(lambda self: True)
    default = torch.set_default_device
    torch.set_default_device = lambda device: None if device is None or moved(device) != device else default(device)
    for name in ("synchronize", "set_device", "empty_cache", "manual_seed", "manual_seed_all"):
        setattr(torch.cuda, name, _nothing)
    torch.cuda.current_device = lambda: 0
    torch.cuda.get_device_capability = lambda *args: (9, 0)
    torch.cuda.get_device_name = lambda *args: ""
    torch.cuda.Event = torch.cuda.Stream = Anything("torch.cuda.Event")
    torch.compile = lambda function=None, **kwargs: function if callable(function) else lambda inner: inner


def _let_comparisons_hold(torch: Any) -> None:
    numpy: Any = importlib.import_module("numpy")
    for name in ("assert_close", "assert_allclose"):
        setattr(torch.testing, name, _nothing)
    for name in ("assert_allclose", "assert_array_equal", "assert_almost_equal", "assert_array_almost_equal"):
        setattr(numpy.testing, name, _nothing)
    for owner in (torch, numpy):
        owner.allclose = lambda *args, **kwargs: True
    torch.equal = numpy.array_equal = lambda *args, **kwargs: True
