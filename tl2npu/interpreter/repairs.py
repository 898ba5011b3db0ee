"""Fills the gaps of Triton's interpreter; ``repaired`` holds while scripts run. Imported when Triton has been.

Each gap is one that lets a right kernel fail, or compute something else than a compiled one would
(triton-lang/triton v3.8.0, ``triton/runtime/interpreter.py``): bfloat16 is stored as uint16 and added as such, casts
to it truncate, functions of libdevice are not known, tuning measures on a device, and accesses outside of all memory
are made.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from types import ModuleType, SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.language.extra.cuda import libdevice as cuda_libdevice
from triton.language.semantic import TritonSemantic
from triton.runtime import autotuner, driver, interpreter

from tl2npu.devices import A2
from tl2npu.interpreter.libdevice import computed
from tl2npu.interpreter.memory import Memory

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_POINTER = np.dtype(np.uint64)
_Handle = interpreter.TensorHandle
_Builder = interpreter.InterpreterBuilder


@contextlib.contextmanager
def repaired(memory: Callable[[], Memory | None], outside: Callable[[str, int], None]) -> Iterator[None]:
    """``memory`` is that of the launch that runs; ``outside`` is told of accesses that are not in it: Read or Write,
    and how many elements."""
    scope = interpreter._LangPatchScope()
    try:
        _language(scope)
        _rounding(scope, memory)
        _checked_memory(scope, memory, outside)
        _libdevice(scope)
        _host(scope)
        faster(scope)
        yield
    finally:
        scope.restore()


def _language(scope: Any) -> None:
    """What Triton does for each launch, once: the builtins of the language work on NumPy arrays."""
    builder = interpreter.interpreter_builder
    for module in (tl, tl.core):
        interpreter._patch_builtin(module, builder, scope)
        interpreter._patch_lang_core(module, scope)
    interpreter._patch_builtin(tl.math, builder, scope)
    interpreter._patch_builtin(tl.tensor, builder, scope)
    interpreter._patch_lang_tensor(tl.tensor, scope)
    interpreter._patch_builtin(tl.core.tensor_descriptor_base, builder, scope)
    scope.set_attr(tl.core._aggregate_type, "element_ty", property(_element_of_block_pointer))
    _any_size(scope)
    usual = interpreter.ReduceOps.min_max

    def min_max(self: Any, input: Any, val_reduce_op: Any, idx_reduce_op: Any = None) -> Any:
        return usual(self, input, val_reduce_op, _PLACE_OF.get(idx_reduce_op, idx_reduce_op))

    scope.set_attr(interpreter.ReduceOps, "min_max", min_max)


def _any_size(scope: Any) -> None:
    """Tiles whose extents are no powers of two, which triton-ascend compiles and a GPU's Triton does not."""
    usual, usual_shape = TritonSemantic.arange, tl.core.validate_block_shape

    def arange(self: Any, start: int, end: int, *, ret_ty: Any = None) -> Any:
        size = end - start if isinstance(start, int) and isinstance(end, int) else 0
        if size <= 0 or size & (size - 1) == 0:
            return usual(self, start, end, ret_ty=ret_ty)
        values = np.arange(start, end, dtype=np.int32)
        return self.tensor(_Handle(values, tl.int32), ret_ty or tl.block_type(tl.int32, [size]))

    def shape_of(shape: Any) -> int:
        try:
            return int(usual_shape(shape))
        except ValueError as error:
            if "power of 2" not in str(error):
                raise
            return math.prod(shape)

    scope.set_attr(TritonSemantic, "arange", arange)
    scope.set_attr(tl.core, "validate_block_shape", shape_of)


def _place(find: Callable[..., Any], instead_of_nan: float) -> Callable[..., Any]:
    """``np.nanargmax`` or ``np.nanargmin`` that gives a place, too, where there is nothing but NaN."""

    def place(array: np.ndarray, **where: Any) -> Any:
        return find(
            np.where(array != array, instead_of_nan, array) if array.dtype.kind not in "iub" else array, **where
        )

    return place


_PLACE_OF = {np.nanargmax: _place(np.argmax, -np.inf), np.nanargmin: _place(np.argmin, np.inf)}


def _element_of_block_pointer(kind: Any) -> Any:
    """``p.type.element_ty``, which generated kernels convert to before they store. Raises AttributeError for others."""
    base = dict(kind.fields).get("base")
    if base is None:
        raise AttributeError("element_ty")
    return base.element_ty


def _is_narrower(kind: Any, than: Any) -> bool:
    floats = kind.is_floating() and than.is_floating()
    return bool(floats and kind.primitive_bitwidth < than.primitive_bitwidth)


def _numpy_name(kind: Any) -> str:
    return str(interpreter._get_np_dtype(kind).name)


def _is_element(kind: Any) -> bool:
    return isinstance(kind, tl.dtype) and kind.name not in ("void", "int128")


def _rounding(scope: Any, memory: Callable[[], Memory | None]) -> None:
    usual = interpreter._get_np_dtype

    known = {
        kind.name: BFLOAT16 if kind == tl.bfloat16 else usual(kind) for kind in vars(tl).values() if _is_element(kind)
    }

    def numpy_dtype(kind: Any) -> np.dtype:
        element = kind.element_ty if isinstance(kind, tl.block_type) else kind
        return _POINTER if isinstance(element, tl.pointer_type) else known[element.name]

    def cast(self: Any, src: Any, kind: Any) -> Any:
        known = memory()
        if known is not None and _is_narrower(kind.scalar, src.dtype.scalar):
            known.narrowed.add(_numpy_name(kind.scalar))
        with np.errstate(all="ignore"):
            return _Handle(src.data.astype(numpy_dtype(kind.scalar)), kind.scalar)

    def next_block(self: Any, x: int, y: int, z: int) -> None:
        launched = memory()
        if launched is not None:
            launched.narrowed.clear()
        usual_next_block(self, x, y, z)

    def float_to_float(self: Any, src: Any, kind: Any, rounding: Any) -> Any:
        narrow = {src.dtype.scalar.primitive_bitwidth, kind.scalar.primitive_bitwidth} & {8}
        toward_zero = rounding is not None and "RTZ" in str(rounding)
        if not narrow and not toward_zero:
            return cast(self, src, kind)
        return usual_float_to_float(self, src, kind, rounding)

    def dot(self: Any, a: Any, b: Any, d: Any, precision: Any, imprecise: Any) -> Any:
        launched = memory()
        if launched is not None:
            launched.rounded |= launched.narrowed & {_numpy_name(x.dtype.scalar) for x in (a, b)}
        left, right = (_Handle(x.data.astype(np.float32), tl.float32) if x.dtype == tl.bfloat16 else x for x in (a, b))
        return usual_dot(self, left, right, d, precision, imprecise)

    usual_float_to_float, usual_dot = _Builder.create_fp_to_fp, _Builder.create_dot
    usual_next_block = _Builder.set_grid_idx
    scope.set_attr(_Builder, "set_grid_idx", next_block)
    scope.set_attr(interpreter, "_get_np_dtype", numpy_dtype)
    scope.set_attr(_Builder, "cast_impl", cast)
    scope.set_attr(_Builder, "create_fp_to_fp", float_to_float)
    scope.set_attr(_Builder, "create_dot", dot)


def _checked_memory(scope: Any, memory: Callable[[], Memory | None], outside: Callable[[str, int], None]) -> None:
    raw = interpreter._interpreter

    def missing(addresses: np.ndarray, size: int, mask: np.ndarray, action: str) -> np.ndarray | None:
        known = memory()
        found = known.outside(addresses, size, mask) if known is not None else None
        if found is not None:
            outside(action, int(found.sum()))
        return found

    def load(self: Any, pointers: Any, mask: Any, other: Any, *_: Any, **__: Any) -> Any:
        kind = pointers.get_element_ty()
        dtype = interpreter._get_np_dtype(kind)
        plain = np.dtype(np.uint16) if dtype == BFLOAT16 else dtype
        wanted = np.broadcast_to(mask.data, pointers.data.shape)
        fill = np.zeros(pointers.data.shape, dtype) if other is None else np.ascontiguousarray(other.data, dtype)
        lost = missing(pointers.data, dtype.itemsize, wanted, "Read")
        known = memory()
        if lost is not None and known is not None:
            known.strayed = True
            wanted = wanted & ~lost
            fill = np.where(lost, np.array(known.beyond[0 if kind.is_floating() else 1]).astype(dtype), fill)
        found = raw.load(pointers.data, np.ascontiguousarray(wanted), fill.view(plain), plain)
        return _Handle(found.view(dtype), kind)

    def store(self: Any, pointers: Any, value: Any, mask: Any, *_: Any, **__: Any) -> Any:
        data = np.ascontiguousarray(value.data)
        wanted = np.broadcast_to(mask.data, pointers.data.shape)
        lost = missing(pointers.data, data.itemsize, wanted, "Write")
        if lost is not None:
            wanted = wanted & ~lost
        return raw.store(pointers.data, data.view(np.uint16) if data.dtype == BFLOAT16 else data, wanted)

    def read_modify_write(self: Any, op: Any, pointers: Any, value: Any, mask: Any, *order: Any) -> Any:
        lost = missing(pointers.data, value.data.itemsize, np.broadcast_to(mask.data, pointers.data.shape), "Atomic")
        if lost is not None:
            mask = _Handle(np.broadcast_to(mask.data, lost.shape) & ~lost, mask.dtype)
        return usual_rmw(self, op, pointers, value, mask, *order)

    def int_to_ptr(self: Any, src: Any, kind: Any) -> Any:
        known = memory()
        if known is not None:
            known.open = True
        return _Handle(src.data.view(np.uint64), kind.scalar)

    usual_rmw = _Builder.create_atomic_rmw
    scope.set_attr(_Builder, "create_masked_load", load)
    scope.set_attr(_Builder, "create_masked_store", store)
    scope.set_attr(_Builder, "create_atomic_rmw", read_modify_write)
    scope.set_attr(_Builder, "create_int_to_ptr", int_to_ptr)


def _libdevice(scope: Any) -> None:
    """Functions of libdevice, also under the names that they had in ``tl.math`` and ``tl.libdevice`` of Triton 2."""

    def elementwise(self: Any, library: Any, path: Any, symbol: str, arguments: Any, kind: Any, pure: Any) -> Any:
        dtype = interpreter._get_np_dtype(kind.scalar)
        with np.errstate(all="ignore"):
            return _Handle(computed(symbol, [a.data for a in arguments]).astype(dtype), kind.scalar)

    scope.set_attr(_Builder, "create_extern_elementwise", elementwise)
    interpreter._patch_builtin(cuda_libdevice, interpreter.interpreter_builder, scope)
    for name, function in vars(cuda_libdevice).items():
        if name.startswith("_") or isinstance(function, ModuleType) or not callable(function):
            continue
        scope.set_attr(libdevice, name, function)
        if not hasattr(tl.math, name):
            scope.set_attr(tl.math, name, function)
    scope.set_attr(tl, "libdevice", cuda_libdevice)
    if not hasattr(tl, "tanh"):  # triton-ascend has it
        scope.set_attr(tl, "tanh", cuda_libdevice.tanh)


class _Device:
    """What a script may ask of the device that its kernels run on: none is there."""

    utils = SimpleNamespace(
        get_device_properties=lambda *_: {
            "multiprocessor_count": A2.cube_cores or 1,
            "num_aicore": A2.cube_cores or 1,
            "num_vectorcore": (A2.cube_cores or 1) * A2.vector_cores_per_cube,
            "max_shared_mem": 232448,
            "max_num_regs": 65536,
            "warpSize": 32,
            "max_threads_per_sm": 2048,
            "sm_clock_rate": 1_000_000,
            "mem_clock_rate": 1_000_000,
            "mem_bus_width": 1024,
        }
    )

    def get_current_target(self) -> Any:
        """A GPU that every script knows: those that ask choose between forms of the same kernel."""
        return triton.backends.compiler.GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        """The first."""
        return 0

    def get_current_stream(self, *_: Any) -> int:
        """The default one."""
        return 0

    def get_active_torch_device(self) -> Any:
        """What stands for the device."""
        import torch

        return torch.device("npu")

    def get_device_interface(self) -> Any:
        """What torch has for its accelerator, redirected."""
        import torch

        return torch.cuda

    def get_benchmarker(self) -> Any:
        """Runs what is to be measured once."""
        return measured


def measured(function: Callable[[], Any], *_: Any, quantiles: Any = None, **__: Any) -> Any:
    """``do_bench``: one run that took 1 ms, by definition."""
    function()
    return 1.0 if quantiles is None else [1.0] * len(quantiles)


def _host(scope: Any) -> None:
    """Tuning takes the first configuration, measuring runs once, whole series not at all; there is a device to ask."""
    import triton.testing

    scope.set_attr(autotuner.Autotuner, "_bench", lambda *_, **__: [1.0, 1.0, 1.0])
    for name in ("do_bench", "do_bench_cudagraph"):
        scope.set_attr(triton.testing, name, measured)
    scope.set_attr(triton.testing.Mark, "run", lambda *_, **__: None)
    usual = triton.Config.__init__
    options = set(inspect.signature(usual).parameters)

    def configure(self: Any, *args: Any, **words: Any) -> None:
        """Options of other devices' compilers, as triton-ascend's configurations have them, mean nothing here."""
        usual(self, *args, **{name: value for name, value in words.items() if name in options})

    scope.set_attr(triton.Config, "__init__", configure)
    scope.set_attr(driver, "_active", _Device())


core = tl.core


def faster(scope: Any) -> None:
    """Make what the interpreter does for each operation cheaper, with the same results.

    Every value carries its shape as a tuple of constexprs, each with a type of its own: building these takes longer
    than the arithmetic on a tile. They never change, so that equal shapes can share them. Overflow of integers is
    asserted only in kernels compiled with ``debug``, and costs three operations for each addition.
    """
    builder = interpreter.interpreter_builder
    scope.set_attr(builder, "options", dataclasses.replace(builder.options, sanitize_overflow=False))
    usual = core.block_type.__init__

    def block_type(self: Any, element_ty: Any, shape: Any) -> None:
        extents = tuple(shape.values) if type(shape) is core.tuple else tuple(shape)
        for extent in extents:
            if type(extent) is not int:
                extents = tuple(core._unwrap_if_constexpr(extent) for extent in shape)
                break
        if not extents or not all(type(extent) is int for extent in extents):
            usual(self, element_ty, shape)
            return
        self.element_ty = element_ty
        self.shape, self.numel = _block(extents)
        self.name = _name(extents, str(element_ty))

    def tensor(self: Any, handle: Any, type: Any) -> None:
        self.handle = handle
        self.type = type
        self.dtype = type.scalar
        self.shape, self.numel = _tensor(tuple(type.shape.values)) if type.is_block() else _SCALAR

    scope.set_attr(core.block_type, "__init__", block_type)
    scope.set_attr(core.tensor, "__init__", tensor)


@lru_cache(4096)
def _block(extents: tuple[int, ...]) -> tuple[Any, int]:
    return core.tuple(list(extents)), core.validate_block_shape(extents)


@lru_cache(4096)
def _name(extents: tuple[int, ...], element: str) -> str:
    return f"<{core.tuple(list(extents))}, {element}>"


@lru_cache(4096)
def _tensor(extents: tuple[int, ...]) -> tuple[Any, Any]:
    numel = 1
    for extent in extents:
        numel *= extent
    return core.tuple([core.constexpr(extent) for extent in extents]), core.constexpr(numel)


_SCALAR = _tensor(())
