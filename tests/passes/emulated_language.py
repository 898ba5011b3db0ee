"""The stand-in for ``tilelang.language``: every operator does its work if it belongs to the running core."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.passes.emulated_memory import Buf, Ref, Stuck, active, here, region, squeezed


def copy(src: Any, dst: Any, **_: Any) -> None:
    source, target = (side if isinstance(side, Buf) else side.buf for side in (src, dst))
    core, machine = here.core, here.machine
    ends = (source.memory, target.memory)
    if ends in (("L0C", "UB"), ("UB", "L1")):
        sender, receiver = ("C", "V") if ends[0] == "L0C" else ("V", "C")
        if core == sender and active():
            machine.send((source.name, target.name), region(src, dst)[0][region(src, dst)[1]].copy())
        elif core == receiver and active():
            array, end = region(dst, src)
            array[end] = machine.receive((source.name, target.name)).reshape(array[end].shape)
        return
    side = {"L0C": "C", "L1": "C", "UB": "V"}
    if core != side.get(target.memory, side.get(source.memory, "V")) or not active():
        return
    if source.name in machine.scratch:
        machine.await_write(source.name)
    (left, start), (right, end) = region(src, dst), region(dst, src)
    _move(left, start, right, end)
    if target.name in machine.scratch:
        machine.post((target.name, core, here.vid))


def _move(source: np.ndarray, start: Any, target: np.ndarray, end: Any) -> None:
    left, right = squeezed(source[start]), squeezed(target[end])
    if left.shape != right.shape:
        raise Stuck(f"a copy of {left.shape} to {right.shape}")
    target[end] = left.reshape(target[end].shape)


def _gemm(A: Buf, B: Buf, C: Buf, transpose_A: bool = False, transpose_B: bool = False, init: Any = False) -> None:
    here.cube |= {A.name, B.name}
    if here.core == "C" and active():
        x, y = (A.array.T if transpose_A else A.array), (B.array.T if transpose_B else B.array)
        C.array[:] = x @ y + (0 if init else C.array)


def _values(operand: Any) -> Any:
    if isinstance(operand, Buf):
        return operand.array
    if isinstance(operand, Ref):
        if any(isinstance(d, slice) for d in operand.index):
            return operand.buf.array[operand.index]
        return float(operand) if len(operand.index) == operand.buf.array.ndim else operand.buf.array[operand.index]
    return float(operand)


def _tile(function: Callable[..., Any]) -> Callable[..., None]:
    def run(dst: Any, *operands: Any, **named: Any) -> None:
        if here.core == "V" and active():
            values = [_values(o) for o in (*operands, *named.values()) if not isinstance(o, str)]
            array = dst.array if isinstance(dst, Buf) else dst.buf.array
            index = slice(None) if isinstance(dst, Buf) else dst.index
            array[index] = function(array[index], *values)

    return run


def _cast(dst: Buf, src: Buf, mode: str, count: Any) -> None:
    if here.core == "V" and active():
        rounding = {"CAST_FLOOR": np.floor, "CAST_CEIL": np.ceil}.get(mode, np.rint)
        dst.array.reshape(-1)[: int(count)] = rounding(src.array.reshape(-1)[: int(count)] * 1024) / 1024


def _reduce(function: Callable[..., Any]) -> Callable[..., None]:
    def run(src: Buf, dst: Buf, dim: int = -1, clear: bool = True) -> None:
        if here.core == "V" and active():
            dst.array[:] = function(src.array, axis=dim).reshape(dst.array.shape)

    return run


def _alloc(memory: str) -> Callable[..., Buf]:
    def run(shape: Any, dtype: str = "float32") -> Buf:
        shape = tuple(int(n) for n in (shape if isinstance(shape, (tuple, list)) else (shape,)))
        here.ordinal += 1
        name = f"buffer{here.ordinal}"
        place = memory if memory != "shared" else "L1" if name in here.l1 else "UB"
        return Buf(np.full(shape, here.blank), place, name)

    return run


@contextmanager
def _scope(core: str) -> Iterator[None]:
    here.scope = core
    yield
    here.scope = None


def _set_flag(*args: Any, **_: Any) -> None:
    if active():
        here.machine.post((int(args[-1]), here.core, here.vid))


def _wait_flag(*args: Any, **_: Any) -> None:
    if active():
        here.machine.await_write(int(args[-1]))


def _grid(*extents: Any, **_: Any) -> Any:
    return itertools.product(*(range(int(n)) for n in extents))


def _range(*bounds: Any, **_: Any) -> Any:
    return range(*(int(b) for b in bounds))


@contextmanager
def _launch(blocks: Any, threads: int | None = None, is_npu: bool = False) -> Iterator[Any]:
    here.grid = (int(blocks), threads)
    yield here.cid if threads else (here.cid, here.vid)


def _nothing(*_: Any, **__: Any) -> None:
    return None


def language() -> SimpleNamespace:
    tile = {
        "fill": lambda d, v: v,
        "add": lambda d, a, b: a + b,
        "sub": lambda d, a, b: a - b,
        "mul": lambda d, a, b: a * b,
        "div": lambda d, a, b: a / b,
        "max": lambda d, a, b: np.maximum(a, b),
        "min": lambda d, a, b: np.minimum(a, b),
        "exp": lambda d, a: np.exp(a),
        "abs": lambda d, a: np.abs(a),
        "relu": lambda d, a: np.maximum(a, 0),
        "axpy": lambda d, a, s: d + a * s,
        "broadcast": lambda d, a: np.broadcast_to(a, d.shape),
        "transpose": lambda d, a: a.T.reshape(d.shape),
        "sort": lambda d, a: np.sort(a.reshape(-1)).reshape(d.shape),
        "createvecindex": lambda d, s: s + np.arange(d.size).reshape(d.shape),
    }
    tiles = {name: _tile(function) for name, function in tile.items()} | {"cast": _cast}
    return SimpleNamespace(
        tile=SimpleNamespace(**tiles),
        copy=copy,
        gemm_v0=_gemm,
        Kernel=_launch,
        Scope=_scope,
        prim_func=lambda f: f,
        macro=lambda f: f,
        Tensor=lambda shape, dtype="float32": (shape, dtype),
        Buffer=None,
        alloc_ub=_alloc("UB"),
        alloc_L1=_alloc("L1"),
        alloc_L0C=_alloc("L0C"),
        alloc_shared=_alloc("shared"),
        alloc_fragment=_alloc("L0C"),
        serial=_range,
        unroll=_range,
        Pipelined=_range,
        Parallel=lambda *n: _grid(*n) if len(n) > 1 else range(int(n[0])),
        ceildiv=lambda a, b: -(-a // b),
        max=max,
        min=min,
        exp=lambda x: math.exp(x),
        if_then_else=lambda c, a, b: a if c else b,
        reduce_max=_reduce(np.max),
        reduce_sum=_reduce(np.sum),
        barrier_all=_nothing,
        pipe_barrier=_nothing,
        set_flag=_nothing,
        wait_flag=_nothing,
        annotate_address=_nothing,
        set_cross_flag=_set_flag,
        wait_cross_flag=_wait_flag,
        float32="float32",
        float16="float16",
        int32="int32",
    )
