"""The 32-byte blocks of UB: what instructions ask of the addresses, rows and lengths that they are given.

Copies between tiles move whole blocks, vector instructions and both sides of ``DataCopyPad`` begin with a block, and a
load lays each row of a tile on blocks of its own (``src/tl_templates/ascend/common.h``; the page of TL700 has a table).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tl2npu.simulator.ir import dtypes
from tl2npu.simulator.ir.buffer import Buffer, Region, product
from tl2npu.simulator.ir.expr import Expr, Load, Value, Var, binary
from tl2npu.simulator.ir.linear import constant_difference, linear
from tl2npu.simulator.ir.parts import free, rebuild, walk
from tl2npu.simulator.ir.stmt import Op, Parallel, Store
from tl2npu.simulator.lowering import parallel_forms
from tl2npu.simulator.operators.registry import Meaning

BLOCK, REPEAT = 32, 256
_REDUCTIONS = ("reduce", "reduce_max", "reduce_min", "reduce_sum")


@dataclass(frozen=True)
class Demand:
    """``count`` elements of a buffer are a multiple of ``block`` bytes; ``what`` they are, for the message."""

    buffer: Buffer
    count: Value
    what: str
    block: int = BLOCK

    @property
    def lanes(self) -> int:
        """Elements in a block."""
        return max(self.block * 8 // dtypes.bits(self.buffer.dtype), 1)

    def always(self) -> bool:
        """Holds whatever the variables are."""
        terms, constant = linear(self.count)
        return constant % self.lanes == 0 and all(factor % self.lanes == 0 for factor, _ in terms.values())


def of_operator(stmt: Op, found: Meaning) -> Iterator[Demand]:
    """What an operator of the Ascend language asks for."""
    if stmt.name == "copy":
        yield from _of_copy(stmt)
        return
    if not stmt.name.startswith("tile.") and stmt.name not in _REDUCTIONS:
        return
    for name, value in stmt.args.items():
        single = isinstance(value, Load) and name not in found.writes
        if name in (*found.reads, *found.writes) and isinstance(value, (Region, Load)) and not single:
            yield from _start(value)
            if isinstance(value, Region) and (stmt.name in _REDUCTIONS or "atomic" in stmt.name):
                written = name in found.writes and "atomic" not in stmt.name
                if not written and not _is_one(value.extents[-1]):
                    yield from _rows(value.buffer, value.extents, value.extents[-1])
    compared = stmt.args.get("src0")
    if stmt.name == "tile.compare" and isinstance(compared, Region) and compared.buffer.memory == "ub":
        yield Demand(compared.buffer, product(compared.extents), "the number of elements compared", REPEAT)


def end_of_load(stmt: Op) -> Demand | None:
    """Where a load of one row ends in a tile that goes on behind it: it fills its last block."""
    src, dst = stmt.args.get("src"), stmt.args.get("dst")
    if stmt.name != "copy" or not isinstance(src, (Region, Load)) or not isinstance(dst, (Region, Load)):
        return None
    extents = _extents(dst, src)
    if src.buffer.memory != "global" or dst.buffer.memory != "ub" or not all(map(_is_one, extents[:-1])):
        return None
    places = dst.starts if isinstance(dst, Region) else dst.indices
    end = binary("+", _offset(dst.buffer, tuple(places)), extents[-1]) if extents else 0
    return Demand(dst.buffer, end, "the end of the load")


def of_parallel(stmt: Parallel) -> Iterator[Demand]:
    """What the vector instructions that a ``T.Parallel`` becomes ask for."""
    kind = parallel_forms.form(stmt)
    if kind == parallel_forms.SCALAR:
        return
    for store in stmt.body:
        assert isinstance(store, Store)
        loads = [part for part in walk(store.value) if isinstance(part, Load)]
        places = [(store.buffer, store.indices), *((load.buffer, load.indices) for load in loads)]
        if isinstance(store.value, Load) and parallel_forms.by_element(store.buffer, store.value.buffer):
            continue
        if isinstance(store.value, Load) and _is_itself(store, store.value):
            continue
        for buffer, indices in places:
            moving = {id(v) for index in indices for v in free(index)}
            if buffer.memory != "ub" or id(stmt.vars[-1]) not in moving:
                continue
            first = tuple(_at_zero(index, stmt.vars) for index in indices)
            yield Demand(buffer, _offset(buffer, first), "the first element")
            if kind == parallel_forms.ROWS and len(stmt.vars) > 1 and id(stmt.vars[-2]) in moving:
                yield from _rows(buffer, stmt.extents, buffer.shape[-1])
        if isinstance(store.value, Load) and _alike(store.buffer, store.value.buffer):
            yield Demand(store.buffer, product(stmt.extents), "the number of elements copied")


def _is_itself(store: Store, load: Load) -> bool:
    """``x[i] = x[i]``: the compiler drops it."""
    pairs = zip(store.indices, load.indices, strict=True)
    return store.buffer is load.buffer and all(constant_difference(one, other) == 0 for one, other in pairs)


def _alike(target: Buffer, source: Buffer) -> bool:
    return target.memory == source.memory == "ub" and target.dtype == source.dtype


def _of_copy(stmt: Op) -> Iterator[Demand]:
    src, dst = stmt.args.get("src"), stmt.args.get("dst")
    if not isinstance(src, (Region, Load)) or not isinstance(dst, (Region, Load)):
        return
    for side in (src, dst):
        yield from _start(side)
    shapes = {"src": _extents(src, dst), "dst": _extents(dst, src)}
    if src.buffer.memory == dst.buffer.memory == "ub":
        yield from _between_tiles(src.buffer, shapes["src"], dst.buffer, shapes["dst"])
        return
    for side, name in ((src, "src"), (dst, "dst")):
        if side.buffer.memory == "ub" and shapes[name]:
            yield from _rows(side.buffer, shapes[name], shapes[name][-1])


def _between_tiles(src: Buffer, moved: tuple[Value, ...], dst: Buffer, filled: tuple[Value, ...]) -> Iterator[Demand]:
    if not moved or not filled:
        return
    same = src.dtype == dst.dtype
    if parallel_forms.same(moved[-1], src.shape[-1]) and parallel_forms.same(filled[-1], dst.shape[-1]):
        if same:
            yield Demand(dst, product(filled), "the number of elements copied")
        return
    for buffer in (src, dst):
        yield from _rows(buffer, moved, buffer.shape[-1])
    if same:
        yield Demand(src, moved[-1], "the length of a copied row")


def _extents(side: Region | Load, other: Region | Load) -> tuple[Value, ...]:
    if isinstance(side, Region):
        return tuple(side.extents)
    extents = tuple(other.extents) if isinstance(other, Region) else ()
    rank = len(side.indices)
    return ((1,) * rank + extents)[-rank:] if extents else ()


def _start(side: Region | Load) -> Iterator[Demand]:
    if side.buffer.memory == "ub":
        places = side.starts if isinstance(side, Region) else side.indices
        yield Demand(side.buffer, _offset(side.buffer, tuple(places)), "the first element")


def _rows(buffer: Buffer, extents: tuple[Value, ...], columns: Value) -> Iterator[Demand]:
    if buffer.memory == "ub" and any(not _is_one(extent) for extent in extents[:-1]):
        yield Demand(buffer, columns, "the row stride")


def _is_one(extent: Value) -> bool:
    return not isinstance(extent, Expr) and int(extent) == 1


def _offset(buffer: Buffer, indices: tuple[Value, ...]) -> Value:
    found: Value = 0
    for axis, index in enumerate(indices):
        found = binary("+", found, binary("*", index, product(tuple(buffer.shape[axis + 1 :]))))
    return found


def _at_zero(index: Value, names: tuple[Var, ...]) -> Any:
    if not isinstance(index, Expr):
        return index
    return rebuild(index, lambda part: 0 if any(part is name for name in names) else part)
