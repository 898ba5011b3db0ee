"""Runs small kernels on numpy, before and after a migration: what the text means, not what a compiler makes of it.

A block is a cube process and two vector processes (``as (cid, vid)``) or one vector process that has the whole tile
(``threads=...``). Every process executes the whole text and leaves out what the other core does. Cross flags are counters;
without flags the i-th read of a scratch tensor waits for the i-th write, which is what AUTO_CV_SYNC pairs. On-chip
memory and scratch tensors start as NaN.
"""

from __future__ import annotations

import builtins
import inspect
import itertools
import math
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np

_TIMEOUT = 3.0
_here = threading.local()


class Stuck(Exception):
    """A process waited for something that never comes, or did something impossible."""


class Ref:
    """A buffer with indices; a number where all of them are points."""

    def __init__(self, buf: Buf, index: Any) -> None:
        self.buf, self.index = buf, index if isinstance(index, tuple) else (index,)

    def __float__(self) -> float:
        return float(self.buf.array[tuple(_int(i) for i in self.index)])

    __int__ = __index__ = lambda self: int(float(self))


for _name in "add sub mul truediv floordiv mod lt le gt ge eq ne radd rsub rmul rtruediv neg".split():
    def _operate(self: Ref, *other: Any, name: str = f"__{_name}__") -> Any:
        with np.errstate(all="ignore"):
            return getattr(np.float64(float(self)), name)(*(np.float64(float(o)) for o in other))

    setattr(Ref, f"__{_name}__", _operate)


class Buf:
    """A tensor or an on-chip buffer; every process has its own on-chip memory."""

    def __init__(self, array: np.ndarray, memory: str, name: str = "") -> None:
        self.array, self.memory, self.name = array, memory, name

    def __getitem__(self, index: Any) -> Ref:
        return Ref(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        if self.memory in ("GM", "UB") and _here.core == "V" and _active():
            self.array[tuple(_int(i) for i in (index if isinstance(index, tuple) else (index,)))] = float(value)


def _int(value: Any) -> int:
    return int(value)


def _active() -> bool:
    scope = getattr(_here, "scope", None)
    return scope is None or scope == _here.core


def _region(side: Any, other: Any) -> tuple[np.ndarray, tuple[slice, ...]]:
    """The part of a buffer that a copy touches; a start index takes the extents of the other side."""
    if isinstance(side, Buf):
        return side.array, tuple(slice(0, n) for n in side.array.shape)
    dims, array = list(side.index), side.buf.array
    if not any(isinstance(d, slice) for d in dims):
        theirs = _extents(other)
        theirs = [1] * (len(dims) - len(theirs)) + theirs[-len(dims) :]
        return array, tuple(slice(int(d), int(d) + n) for d, n in zip(dims, theirs))
    return array, tuple(
        slice(int(d.start or 0), int(n if d.stop is None else d.stop)) if isinstance(d, slice) else slice(int(d), int(d) + 1)
        for d, n in zip(dims, array.shape)
    )


def _extents(side: Any) -> list[int]:
    if isinstance(side, Buf):
        return list(side.array.shape)
    if not any(isinstance(d, slice) for d in side.index):
        return [1]
    _, region = _region(side, side)
    return [s.stop - s.start for s in region]


def _squeezed(array: np.ndarray) -> np.ndarray:
    return array.reshape([n for n in array.shape if n != 1])


class Machine:
    """One block: channels, flags and scratch tensors between its processes."""

    def __init__(self, vectors: int, scratch: set[str]) -> None:
        self.vectors, self.scratch = vectors, scratch
        self.lock = threading.Condition()
        self.counts: dict[Any, int] = defaultdict(int)
        self.box: dict[Any, list[np.ndarray]] = defaultdict(list)
        self.errors: list[BaseException] = []

    def post(self, key: Any) -> None:
        with self.lock:
            self.counts[key] += 1
            self.lock.notify_all()

    def _until(self, ready: Callable[[], bool]) -> None:
        with self.lock:
            if not self.lock.wait_for(lambda: bool(self.errors) or ready(), _TIMEOUT) or self.errors:
                raise Stuck("deadlock")

    def send(self, key: Any, array: np.ndarray) -> None:
        with self.lock:
            self.box[key].append(array)
            self.lock.notify_all()

    def receive(self, key: Any) -> np.ndarray:
        _here.local[key] += 1
        need = _here.local[key]
        self._until(lambda: len(self.box[key]) >= need)
        return self.box[key][need - 1]

    def await_write(self, name: str) -> None:
        """Wait for the other core's i-th write (both vector cores' if that is the other one), or for the i-th flag."""
        _here.local[name] += 1
        need = _here.local[name]
        others = [("C", 0)] if _here.core == "V" else [("V", vid) for vid in range(self.vectors)]
        self._until(lambda: all(self.counts[(name, *other)] >= need for other in others))


def copy(src: Any, dst: Any, **_: Any) -> None:
    source, target = (side if isinstance(side, Buf) else side.buf for side in (src, dst))
    core, machine = _here.core, _here.machine
    ends = (source.memory, target.memory)
    if ends in (("L0C", "UB"), ("UB", "L1")):
        sender, receiver = ("C", "V") if ends[0] == "L0C" else ("V", "C")
        if core == sender and _active():
            machine.send((source.name, target.name), _region(src, dst)[0][_region(src, dst)[1]].copy())
        elif core == receiver and _active():
            array, end = _region(dst, src)
            array[end] = machine.receive((source.name, target.name)).reshape(array[end].shape)
        return
    side = {"L0C": "C", "L1": "C", "UB": "V"}
    if core != side.get(target.memory, side.get(source.memory, "V")) or not _active():
        return
    if source.name in machine.scratch:
        machine.await_write(source.name)
    (left, start), (right, end) = _region(src, dst), _region(dst, src)
    _move(left, start, right, end)
    if target.name in machine.scratch:
        machine.post((target.name, core, _here.vid))


def _move(source: np.ndarray, start: Any, target: np.ndarray, end: Any) -> None:
    left, right = _squeezed(source[start]), _squeezed(target[end])
    if left.shape != right.shape:
        raise Stuck(f"a copy of {left.shape} to {right.shape}")
    target[end] = left.reshape(target[end].shape)


def _gemm(A: Buf, B: Buf, C: Buf, transpose_A: bool = False, transpose_B: bool = False, init: Any = False) -> None:
    _here.cube |= {A.name, B.name}
    if _here.core == "C" and _active():
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
        if _here.core == "V" and _active():
            values = [_values(o) for o in (*operands, *named.values()) if not isinstance(o, str)]
            array = dst.array if isinstance(dst, Buf) else dst.buf.array
            index = slice(None) if isinstance(dst, Buf) else dst.index
            array[index] = function(array[index], *values)

    return run


def _cast(dst: Buf, src: Buf, mode: str, count: Any) -> None:
    if _here.core == "V" and _active():
        rounding = {"CAST_FLOOR": np.floor, "CAST_CEIL": np.ceil}.get(mode, np.rint)
        dst.array.reshape(-1)[: int(count)] = rounding(src.array.reshape(-1)[: int(count)] * 1024) / 1024


def _reduce(function: Callable[..., Any]) -> Callable[..., None]:
    def run(src: Buf, dst: Buf, dim: int = -1, clear: bool = True) -> None:
        if _here.core == "V" and _active():
            dst.array[:] = function(src.array, axis=dim).reshape(dst.array.shape)

    return run


def _alloc(memory: str) -> Callable[..., Buf]:
    def run(shape: Any, dtype: str = "float32") -> Buf:
        shape = tuple(int(n) for n in (shape if isinstance(shape, (tuple, list)) else (shape,)))
        _here.ordinal += 1
        name = f"buffer{_here.ordinal}"
        place = memory if memory != "shared" else "L1" if name in _here.l1 else "UB"
        return Buf(np.full(shape, _here.blank), place, name)

    return run


@contextmanager
def _scope(core: str) -> Iterator[None]:
    _here.scope = core
    yield
    _here.scope = None


def _set_flag(*args: Any, **_: Any) -> None:
    if _active():
        _here.machine.post((int(args[-1]), _here.core, _here.vid))


def _wait_flag(*args: Any, **_: Any) -> None:
    if _active():
        _here.machine.await_write(int(args[-1]))


def _grid(*extents: Any, **_: Any) -> Any:
    return itertools.product(*(range(int(n)) for n in extents))


def _range(*bounds: Any, **_: Any) -> Any:
    return range(*(int(b) for b in bounds))


@contextmanager
def _launch(blocks: Any, threads: int | None = None, is_npu: bool = False) -> Iterator[Any]:
    _here.grid = (int(blocks), threads)
    yield _here.cid if threads else (_here.cid, _here.vid)


def _nothing(*_: Any, **__: Any) -> None:
    return None


def _language() -> SimpleNamespace:
    tile = {
        "fill": lambda d, v: v, "add": lambda d, a, b: a + b, "sub": lambda d, a, b: a - b,
        "mul": lambda d, a, b: a * b, "div": lambda d, a, b: a / b, "max": lambda d, a, b: np.maximum(a, b),
        "min": lambda d, a, b: np.minimum(a, b), "exp": lambda d, a: np.exp(a), "abs": lambda d, a: np.abs(a),
        "relu": lambda d, a: np.maximum(a, 0), "axpy": lambda d, a, s: d + a * s,
        "broadcast": lambda d, a: np.broadcast_to(a, d.shape), "transpose": lambda d, a: a.T.reshape(d.shape),
        "sort": lambda d, a: np.sort(a.reshape(-1)).reshape(d.shape),
        "createvecindex": lambda d, s: s + np.arange(d.size).reshape(d.shape),
    }
    tiles = {name: _tile(function) for name, function in tile.items()} | {"cast": _cast}
    return SimpleNamespace(
        tile=SimpleNamespace(**tiles), copy=copy, gemm_v0=_gemm, Kernel=_launch, Scope=_scope,
        prim_func=lambda f: f, macro=lambda f: f, Tensor=lambda shape, dtype="float32": (shape, dtype), Buffer=None,
        alloc_ub=_alloc("UB"), alloc_L1=_alloc("L1"), alloc_L0C=_alloc("L0C"), alloc_shared=_alloc("shared"),
        alloc_fragment=_alloc("L0C"), serial=_range, unroll=_range, Pipelined=_range, Parallel=lambda *n: (
            _grid(*n) if len(n) > 1 else range(int(n[0]))
        ), ceildiv=lambda a, b: -(-a // b), max=max, min=min, exp=lambda x: math.exp(x),
        if_then_else=lambda c, a, b: a if c else b, reduce_max=_reduce(np.max), reduce_sum=_reduce(np.sum),
        barrier_all=_nothing, pipe_barrier=_nothing, set_flag=_nothing, wait_flag=_nothing, annotate_address=_nothing,
        set_cross_flag=_set_flag, wait_cross_flag=_wait_flag, float32="float32", float16="float16", int32="int32",
    )


def load(text: str) -> dict[str, Any]:
    """Execute a file with the stand-in for tilelang; its names."""
    language = _language()
    keys = SimpleNamespace(**{n: n for n in (
        "TL_ASCEND_AUTO_CV_COMBINE", "TL_ASCEND_AUTO_CV_SYNC", "TL_ASCEND_AUTO_SYNC", "TL_ASCEND_MEMORY_PLANNING"
    )})
    jit = lambda *_, **__: lambda f: f  # noqa: E731
    package = SimpleNamespace(language=language, jit=jit, PassConfigKey=keys, compile=lambda f, **_: f)

    def fake(name: str, glob: Any = None, loc: Any = None, names: Any = (), level: int = 0) -> Any:
        if name == "tilelang.language" and names:
            return language
        return package if name.startswith("tilelang") else SimpleNamespace() if name == "torch" else __import__(name, glob, loc, names, level)

    space: dict[str, Any] = {"__builtins__": {**vars(builtins), "__import__": fake}, "__name__": "kernel"}
    exec(compile(text.replace("import tilelang.language as T", "from tilelang import language as T"), "<kernel>", "exec", dont_inherit=True), space)
    return space


def _part(array: np.ndarray, shape: Any) -> np.ndarray:
    return np.array(array[tuple(slice(int(n)) for n in shape)], float)


def run(text: str, inputs: Mapping[str, np.ndarray], factory: str = "factory", args: tuple[Any, ...] = ()) -> dict[str, np.ndarray]:
    """Every tensor of the kernel after all blocks have run; tensors that are no inputs start as NaN."""
    function = load(text)[factory](*args)
    shapes = {name: p.annotation[0] for name, p in inspect.signature(function).parameters.items()}
    tensors = {name: _part(inputs[name], shape) if name in inputs else np.full(shape, np.nan) for name, shape in shapes.items()}
    bufs = [Buf(array, "GM", name) for name, array in tensors.items()]
    manual = "set_cross_flag" in text
    _process(function, bufs, Machine(1, set()), "probe", 0, 0, set())
    (blocks, threads), l1 = _here.grid, set(_here.cube)
    vectors = 1 if threads else 2
    for cid in range(blocks):
        machine = Machine(vectors, set() if manual else set(tensors) - set(inputs))
        jobs = [("C", 0), *(("V", vid) for vid in range(vectors))]
        running = [
            threading.Thread(target=_guarded, args=(function, bufs, machine, core, cid, vid, l1)) for core, vid in jobs
        ]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        if machine.errors:
            raise machine.errors[0]
    return tensors


def _process(function: Any, bufs: list[Buf], machine: Machine, core: str, cid: int, vid: int, l1: set[str]) -> None:
    _here.core, _here.cid, _here.vid, _here.machine, _here.l1 = core, cid, vid, machine, l1
    _here.scope, _here.ordinal, _here.cube, _here.local = None, 0, set(), defaultdict(int)
    _here.blank = 0.0 if core == "probe" else np.nan
    function(*bufs)


def _guarded(function: Any, bufs: list[Buf], machine: Machine, *place: Any) -> None:
    try:
        _process(function, bufs, machine, *place)
    except BaseException as error:
        with machine.lock:
            machine.errors.append(error)
            machine.lock.notify_all()
