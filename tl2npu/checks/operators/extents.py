"""TL741, TL789: how many elements an operator of tiles reads and writes, and how many its tiles have.

``tilelang/language/ascend_tile.py`` asserts the sizes of the destination and of the first source, of nothing else: the
instruction then takes what lies behind a tile that is too small. Sorts: ``src/tl_templates/ascend/common.h``.
"""

from __future__ import annotations

from collections.abc import Iterator

from tl2npu.checks.operators.types import types_of
from tl2npu.checks.row_split.split import is_element
from tl2npu.checks.subject import Finding, Subject
from tl2npu.kernel.expressions import code
from tl2npu.kernel.handover import extents_of
from tl2npu.kernel.model import Memory, Op, Operand, Scalar
from tl2npu.kernel.sizes import ITEM_SIZE
from tl2npu.kernel.symbolic import Sym, ceildiv, const, product

_UNASSERTED = frozenset(f"tile.{name}" for name in "sigmoid silu bitwise_xor pow clear fill".split())
_SOURCES = ("src", "src0", "src1", "buffer")
_COUNTS = ("count", "actual_num")
_SUMS = frozenset({"tile.reduce_sum_experiment", "tile.sum_experiment"})
_GATHERS = frozenset({"tile.gather", "tile.arith_progression"})
_ASSERTED_WITH_COUNT = frozenset({"tile.sub_experiment", "tile.abs_experiment", "tile.mins_experiment"})
_BY_EIGHT = frozenset({"tile.brcb", "tile.brcb_experiment"})
_GROUP = 32
_BLOCK_BYTES = 32


def check(subject: Subject) -> Iterator[Finding]:
    """One finding for each operator whose tiles do not fit each other, or its count."""
    for placed in subject.statements:
        stmt = placed.stmt
        if isinstance(stmt, Op) and stmt.op.name in _BY_EIGHT:
            yield from _columns(subject, stmt)
        elif isinstance(stmt, Op) and stmt.op.name.startswith("tile."):
            yield from _counted(subject, stmt) if _count(stmt) is not None else _alike(subject, stmt)
            if stmt.op.name in _ASSERTED_WITH_COUNT:
                yield from _alike(subject, stmt)


def _count(stmt: Op) -> Sym | None:
    found = next((stmt.args[name] for name in _COUNTS if name in stmt.args), None)
    return found.sym if isinstance(found, Scalar) else None


def _tiles(stmt: Op) -> dict[str, tuple[Operand, Sym]]:
    """The tiles of an operator by parameter, with their elements."""
    found: dict[str, tuple[Operand, Sym]] = {}
    for name, operand in stmt.operands:
        sizes = extents_of(operand)
        if operand.buffer.memory is Memory.UB and sizes is not None and not is_element(operand):
            found[name] = operand, product(sizes)
    return found


def _alike(subject: Subject, stmt: Op) -> Iterator[Finding]:
    """Operators that compute element by element."""
    tiles = _tiles(stmt)
    if not stmt.op.elementwise or len(tiles) < 2:
        return
    if stmt.op.name == "tile.compare":
        yield from _mask(subject, stmt, tiles)
        tiles.pop("dst", None)
    first = next((name for name in ("dst", "out", "src0") if name in tiles), None)
    if first is None:
        return
    for name in _SOURCES:
        if name in tiles and name != first:
            exact = name != "src1" and stmt.op.name not in _UNASSERTED
            pair = _smaller(subject, tiles[name][1], tiles[first][1], exact)
            if pair is not None:
                source, target = (tiles[one][0] for one in (name, first))
                shown = f"`{code(source.node)}` has {pair[0]} elements and `{code(target.node)}` has {pair[1]}"
                yield Finding("TL741", stmt.node, f"T.{stmt.op.name}: {shown}")
                return


def _mask(subject: Subject, stmt: Op, tiles: dict[str, tuple[Operand, Sym]]) -> Iterator[Finding]:
    """The mask of a comparison has a bit for each element."""
    if "dst" in tiles and "src0" in tiles:
        size = ITEM_SIZE.get(tiles["dst"][0].buffer.dtype)
        if size is not None:
            yield from _behind(subject, stmt, tiles["dst"], ceildiv(tiles["src0"][1], const(8 * size)))


def _columns(subject: Subject, stmt: Op) -> Iterator[Finding]:
    """``Brcb``: each repetition makes blocks of eight elements."""
    tiles, count = _tiles(stmt), stmt.args.get("repeat_times")
    if "src" in tiles and isinstance(count, Scalar):
        yield from _behind(subject, stmt, tiles["src"], count.sym * 8)


def _counted(subject: Subject, stmt: Op) -> Iterator[Finding]:
    """Operators with a number of elements, and those that sort."""
    count = _count(stmt)
    tiles = {one: (operand, product(operand.buffer.shape)) for one, (operand, _) in _tiles(stmt).items()}
    assert count is not None
    name = stmt.op.name
    needed = {one: count for one in tiles if name not in _GATHERS or one == "buffer"}
    if name in _SUMS:
        needed.pop("dst", None)  # one element
    if name == "tile.sort":
        needed["dst"] = ceildiv(count, const(_GROUP)) * (2 * _GROUP)
    k = stmt.args.get("K")
    if name == "tile.topk" and isinstance(k, Scalar) and "dst" in tiles:
        sizes = {ITEM_SIZE.get(one, 0) for one in types_of(subject, tiles["dst"][0].buffer)} - {0}
        lanes = _BLOCK_BYTES // max(sizes, default=_BLOCK_BYTES)
        needed["dst"] = ceildiv(k.sym * 2, const(lanes)) * lanes
    for one, size in needed.items():
        if one in tiles:
            found = list(_behind(subject, stmt, tiles[one], size))
            yield from found
            if found:
                return


def _behind(subject: Subject, stmt: Op, tile: tuple[Operand, Sym], needed: Sym) -> Iterator[Finding]:
    pair = _smaller(subject, tile[1], needed, exact=False)
    if pair is not None:
        does = "writes" if tile[0] in [stmt.args.get(name) for name in ("dst", "out", "buffer")] else "reads"
        text = f"T.{stmt.op.name} {does} {pair[1]} elements of `{tile[0].buffer.name}`, which has {pair[0]}"
        yield Finding("TL789", stmt.node, text)


def _smaller(subject: Subject, left: Sym, right: Sym, exact: bool) -> tuple[object, object] | None:
    """Two sizes of which the first is too small, or (``exact``) another one; None if none is known to be."""
    gap = (left - right).constant
    if gap is not None:
        return (left, right) if gap < 0 or (exact and gap) else None
    for one, other in subject.together(left, right):
        if one is not None and other is not None and (one < other or (exact and one != other)):
            return one, other
    return (left, right) if exact and subject.known_different(left, right) else None
