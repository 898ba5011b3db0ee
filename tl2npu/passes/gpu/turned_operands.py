"""TL600: a gemm operand that is stored transposed is stored as it is read, and the gemm transposes it.

An NPU has no instruction that stores a tile of any size transposed: it would be done element by element, while the way
from L1 to the cube turns an operand at no cost (facts 4: g4_tA, g4_tB).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import accesses
from tl2npu.kernel.model import Buffer, Loop, Op, Operand, Scalar, Stmt, Store, walk_with_parents
from tl2npu.passes.host.pass_configs import with_argument
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits
from tl2npu.source.tree import names_in

_TURNED_BY_CUBE = frozenset({"float16", "bfloat16"})
_FLAGS = {"A": "transpose_A", "B": "transpose_B"}
_MOST_POSITIONAL = 3


@dataclass(eq=False)
class _Tile:
    """The loops that store to a tile, the gemms that read it, and how often statements name it."""

    stores: list[tuple[Loop, Store]] = field(default_factory=list)
    gemms: list[Op] = field(default_factory=list)
    named: int = 1


def turn(job: Job) -> None:
    """Swap the axes of every tile that is an operand of gemms only and takes nothing but transposed elements."""
    found: dict[Buffer, _Tile | None] = {b: _Tile() for b in job.kernel.buffers.values() if _may_be_turned(b)}
    for stmt, parents in walk_with_parents(job.kernel.body):
        for access in accesses(stmt):
            tile = found.get(access.operand.buffer)
            if tile is not None and not _belongs(stmt, parents, access.operand, tile):
                found[access.operand.buffer] = None
    mentioned = Counter(name.value for name in names_in(job.located.node))
    edits, taken = Edits(job.file.index), set[Stmt]()
    for buffer, tile in found.items():
        if tile is None or not tile.stores or not tile.gemms or mentioned[buffer.name] != tile.named:
            continue
        if not taken.isdisjoint(tile.gemms):
            continue
        taken.update(tile.gemms)
        _turn(edits, buffer, tile)
        job.change("TL600", tile.stores[0][1].node, f"`{buffer.name}` is stored as it is read; the gemm transposes it")
    job.apply(edits)


def _may_be_turned(buffer: Buffer) -> bool:
    shape = _shape(buffer)
    return buffer.is_tile and buffer.dtype in _TURNED_BY_CUBE and shape is not None and buffer.statement is not None


def _shape(buffer: Buffer) -> cst.Tuple | cst.List | None:
    """The two sizes as the allocation says them."""
    args = buffer.node.args if isinstance(buffer.node, cst.Call) else ()
    value = args[0].value if args and args[0].keyword is None else None
    return value if isinstance(value, (cst.Tuple, cst.List)) and len(value.elements) == 2 else None


def _belongs(stmt: Stmt, parents: tuple[Stmt, ...], operand: Operand, tile: _Tile) -> bool:
    """Take note of a statement; False if the tile must stay as it is for it."""
    tile.named += 1
    if isinstance(stmt, Op) and stmt.op.kind is Kind.GEMM:
        known = all(name in ("A", "B") for name, o in stmt.operands if o.buffer is operand.buffer)
        flags = [stmt.args.get(flag) for flag in _FLAGS.values()]
        constant = all(flag is None or (isinstance(flag, Scalar) and flag.sym.constant in (0, 1)) for flag in flags)
        few = sum(arg.keyword is None for arg in stmt.call.args) <= _MOST_POSITIONAL
        if stmt not in tile.gemms:
            tile.gemms.append(stmt)
        return known and constant and few and operand.dims is None and not stmt.via
    loop = parents[-1] if parents else None
    if not isinstance(stmt, Store) or not isinstance(loop, Loop) or loop.kind != "parallel" or stmt.via:
        return False
    tile.stores.append((loop, stmt))
    alone = loop.body == [stmt] and stmt.target.buffer is operand.buffer and not stmt.augmented
    return alone and _is_transposed(loop, stmt)


def _is_transposed(loop: Loop, store: Store) -> bool:
    """``t[i, j] = x[j, i] * s[j]`` in a loop over both: every tile that is read is read the other way round."""
    if len(loop.ranges) != 2 or not all(item.start.is_zero for item in loop.ranges):
        return False
    rows, columns = (dim.lo for dim in store.target.dims or ()) if len(store.target.dims or ()) == 2 else (None, None)
    if {str(rows), str(columns)} != {str(item.var) for item in loop.ranges}:
        return False
    turned = False
    for load in store.value.loads:
        places = [dim.lo for dim in load.dims or ()]
        if rows in places and columns in places:
            if places[-2:] != [columns, rows]:
                return False
            turned = True
    return turned


def _turn(edits: Edits, buffer: Buffer, tile: _Tile) -> None:
    shape = _shape(buffer)
    assert shape is not None
    _swap(edits, *(element.value for element in shape.elements))
    for loop, store in tile.stores:
        rows, columns = loop.ranges
        target = store.target
        assert target.dims is not None
        assert isinstance(target.node, cst.Subscript)
        if target.dims[0].lo == rows.var and loop.call is not None:
            _swap(edits, *(arg.value for arg in loop.call.args[:2]))
            other = {rows.name: columns.name, columns.name: rows.name}
            for name in names_in(store.value.node):
                if name.value in other:
                    edits.replace(name, name.with_changes(value=other[name.value]))
        else:
            first, second = (element.slice for element in target.node.slice)
            assert isinstance(first, cst.Index)
            assert isinstance(second, cst.Index)
            _swap(edits, first.value, second.value)
    for gemm in tile.gemms:
        call = gemm.call
        for side, operand in gemm.operands:
            if operand.buffer is buffer:
                given = gemm.args.get(_FLAGS[side])
                before = isinstance(given, Scalar) and given.sym.constant == 1
                call = _with_flag(call, _FLAGS[side], not before)
        edits.replace(gemm.call, call)


def _with_flag(call: cst.Call, flag: str, is_on: bool) -> cst.Call:
    kept = [arg for arg in call.args if arg.keyword is None or arg.keyword.value != flag]
    if len(kept) < len(call.args):
        call = call.with_changes(args=kept)
    return with_argument(call, f"{flag}=True") if is_on else call


def _swap(edits: Edits, one: cst.CSTNode, other: cst.CSTNode) -> None:
    edits.replace(one, other.deep_clone())
    edits.replace(other, one.deep_clone())
