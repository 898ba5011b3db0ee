"""The stand-ins as modules, under every name by which they are imported. Imported when Triton has been."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any

import numpy as np
import triton.language as tl

from tl2npu.interpreter.shim import ascend, buffer_language, dsa, gpu, sync, tiles, tle
from tl2npu.interpreter.shim.refused import Refused
from tl2npu.interpreter.shim.values import array_of, number, plain, tensor_of

AL = ("triton.language.extra.cann.extension", "triton.extension.ascend.language")
BL = ("triton.extension.buffer.language",)
TLE = ("triton.experimental.tle.language", "triton.experimental.tle")
"""``triton.experimental.tle`` itself is imported as ``tle`` by kernels for ``tle.dsa``."""


class _Package(ModuleType):
    """A module of the stand-ins. A name that it lacks is one that tl2npu does not know."""

    __path__: list[str] = []  # noqa: RUF012

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Refused(f"{self.__name__}.{name}", "tl2npu does not know this name")


def modules() -> dict[str, ModuleType]:
    """The modules by full name, those above them included, each an attribute of the one above it."""
    perf = {"early_config_prune": lambda configs, *_, **__: configs, "estimate_matmul_time": lambda *_, **__: 0.0}
    al, bl = ascend.names(), buffer_language.names()
    raw = {"call": Refused("tle.raw.call", "it is code for the device")}
    contents: dict[str, dict[str, Any]] = dict.fromkeys(AL, al)
    contents |= dict.fromkeys(BL, bl)
    contents["triton.ops.matmul_perf_model"] = perf  # Triton had it before 3.0; it ranks configurations
    for name in TLE:
        contents |= {name: tle.names(), f"{name}.gpu": gpu.names(), f"{name}.raw": raw}
        contents |= {f"{name}.dsa": dsa.names(), f"{name}.dsa.ascend": dsa.ascend()}
    found: dict[str, ModuleType] = {}
    for name in sorted({outer for inner in contents for outer in _with_outer(inner)}):
        module = found[name] = _Package(name)
        vars(module).update(contents.get(name, {}))
        outer, _, inner = name.rpartition(".")
        if outer in found:
            setattr(found[outer], inner, module)
    return found


def _with_outer(name: str) -> list[str]:
    """A module and those above it that Triton itself does not have."""
    parts = name.split(".")
    own = ("triton.language.extra.cann", "triton.extension", "triton.experimental.tle", "triton.ops")
    names = [".".join(parts[:count]) for count in range(1, len(parts) + 1)]
    return [name for name in names if name.startswith(own)]


def patched(scope: Any) -> None:
    """Names that the versions of Triton with these extensions have in ``tl`` itself, and methods of tensors."""
    scope.set_attr(tl.tensor, "extract_tile", tiles.extract_tile)
    scope.set_attr(tl.tensor, "insert_tile", tiles.insert_tile)
    scope.set_attr(tl, "max", _reduction(tl.max, np.max))
    scope.set_attr(tl, "min", _reduction(tl.min, np.min))
    extra = {"extract_slice": tiles.extract_slice, "insert_slice": tiles.insert_slice, "get_element": tiles.get_element}
    extra |= dict.fromkeys(("compile_hint", "multibuffer"), sync.nothing)
    extra |= {name: getattr(sync, name) for name in ("sync_block_set", "sync_block_wait", "sync_block_all", "parallel")}
    for name, function in extra.items():
        if not hasattr(tl, name):
            scope.set_attr(tl, name, function)


def _reduction(usual: Any, nan_too: Callable[..., Any]) -> Any:
    """``tl.max`` or ``tl.min`` with triton-ascend's ``propagate_nan``: NaN is the result where there is one. Without it
    NaN is skipped, as everywhere in Triton."""

    @wraps(usual.fn)
    def reduction(input: Any, axis: Any = None, *args: Any, propagate_nan: Any = False, **named: Any) -> Any:
        if plain(propagate_nan) is not True or args or named:
            return usual(input, axis, *args, **named)
        along = None if plain(axis) is None else number(axis)
        kind = tl.float32 if input.dtype == tl.bfloat16 else input.dtype
        return tensor_of(np.asarray(nan_too(array_of(input.to(kind)), along)), kind)

    return reduction
