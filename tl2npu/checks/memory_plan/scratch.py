"""The scratch tiles that the compiler adds for instructions, by target: ``src/transform/allocate_tmp_buffer.cc``.

Which instructions get one: ``src/transform/common/operation_config.h:334`` (``ascendc_tmp_arg_ops``) and ``:358``
(``pto_tmp_arg_ops``). All instructions of a kernel share one tile of bytes, as large as the largest of them asks for;
some share one for each element type instead. The sizes are those before the split of ``threads=2``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from tl2npu.checks.memory_plan.tiles import Measure, Size
from tl2npu.kernel.handover import extents_of
from tl2npu.kernel.model import Op, Operand, Scalar
from tl2npu.kernel.symbolic import const

_BLOCK, _REPEAT = 32, 256

Scratch = tuple[str, Size, bool]
"""The name of the scratch tile, what one instruction asks of it, and whether the instruction uses it."""


@dataclass(frozen=True)
class _Rule:
    """What an instruction asks for: ``measure`` of the extents of ``operand``.

    ``typed``: the operand by whose element type the tile is, empty for the tile of bytes; ``whole``: all of the buffer
    counts; ``first``: asked for only where no instruction before has asked for anything; ``unused``: what it asks of
    the tile of bytes beside, which it does not use.
    """

    operand: str
    measure: Measure
    typed: str = ""
    whole: bool = False
    first: bool = False
    unused: Measure | None = None


def _bytes(times: int = 1, over: int = 1, least: int = 0) -> Measure:
    """The bytes of the operand, scaled."""
    return lambda extents, item: max(least, prod(extents) * item * times // over)


def _constant(elements: int) -> Measure:
    return lambda extents, item: elements * item


def _one_byte(extents: Sequence[int], item: int) -> int:
    return 1


def _sorted(multiplier: int, unit: int) -> Measure:
    """Elements in whole ``unit``, 16 of 2 bytes for each or ``multiplier`` of others: line 589."""
    return lambda extents, item: -(-prod(extents) // unit) * unit * item * (16 if item == 2 else multiplier)


_ASCENDC: dict[str, _Rule] = {
    **dict.fromkeys(("reduce", "reduce_max", "reduce_min", "reduce_sum"), _Rule("buffer", _bytes())),
    **dict.fromkeys(("tile.clamp", "tile.clamp_max", "tile.clamp_min"), _Rule("buffer", _bytes())),
    "tile.round": _Rule("buffer", _bytes(least=256)),
    **dict.fromkeys(("tile.sin", "tile.cos"), _Rule("src", _bytes(2), whole=True)),
    "tile.pow": _Rule("src0", _bytes(2), whole=True),
    "tile.sigmoid": _Rule("src", _bytes()),
    **dict.fromkeys(("tile.bitwise_xor", "tile.bilinear_interpolation"), _Rule("src0", _bytes())),
    **dict.fromkeys(("tile.reduce_sum_experiment", "tile.reduce_sum_mask_experiment"), _Rule("src", _bytes())),
    "tile.broadcast": _Rule("dst", _bytes(over=4)),
    "tile.merge_sort": _Rule("dst", _bytes()),
    "tile.sort": _Rule("src", _bytes(8), typed="src", unused=_bytes(8)),
    "tile.topk": _Rule("src", _bytes(4), typed="src", unused=lambda extents, item: prod(extents) * 4),
}
"""``GetAscendCTmpBufferSize_`` and ``createASCTopKAndSortTmpBuffer_``."""

_PTO: dict[str, _Rule] = {
    **dict.fromkeys(("tile.clamp", "tile.clamp_max", "tile.clamp_min"), _Rule("buffer", _bytes(), first=True)),
    **dict.fromkeys(("tile.pow", "tile.sigmoid", "tile.broadcast"), _Rule("dst", _one_byte)),
    "tile.round": _Rule("out", _one_byte),
    "tile.select": _Rule("dst", _bytes()),
    "tile.bitwise_xor": _Rule("src0", _bytes(), typed="src0", whole=True),
    "tile.merge_sort": _Rule("dst", _bytes(), typed="dst"),
    "tile.sort": _Rule("src", _sorted(4, 1), typed="src"),
    "tile.topk": _Rule("src", _sorted(6, 32), typed="src"),
    "tile.gather": _Rule("src_offset", _constant(8), typed="src_offset"),
}
"""``GetPTOTmpBufferSize_`` (line 879) and ``createPTOXORAndMergeSortAndGatherMaskTmpBuffer_`` (line 502)."""


def scratch_of(stmt: Op, target: str) -> Iterator[Scratch]:
    """The scratch tiles of an instruction for a target, with the sizes that it asks for."""
    name = stmt.op.name
    rule = (_PTO if target == "pto" else _ASCENDC).get(name)
    if rule is not None:
        yield from _by_rule(stmt, rule)
    elif target == "pto" and name in _ASCENDC and name.startswith("reduce"):
        yield from _pto_reduction(stmt)
    elif target == "pto" and name == "tile.gather_mask":
        pattern = isinstance(stmt.args.get("src1Pattern"), Operand)
        yield from _by_rule(stmt, _Rule("dst", _bytes(), typed="src1Pattern") if pattern else _Rule("dst", _one_byte))


def _by_rule(stmt: Op, rule: _Rule) -> Iterator[Scratch]:
    operand, typed = stmt.args.get(rule.operand), stmt.args.get(rule.typed)
    if not isinstance(operand, Operand):
        return
    extents = operand.buffer.shape if rule.whole else extents_of(operand) or operand.buffer.shape
    dtype = typed.buffer.dtype if isinstance(typed, Operand) else operand.buffer.dtype
    name = f"tmp_ub_{dtype}" if isinstance(typed, Operand) and dtype != "uint8" else "tmp_ub"
    sized = tuple((extent, False) for extent in extents)
    yield name, Size(sized, dtype, rule.measure, rule.first), True
    if rule.unused is not None:
        yield "tmp_ub", Size(sized, dtype, rule.unused), False


def _pto_reduction(stmt: Op) -> Iterator[Scratch]:
    """Of all rows of the buffer; with ``clear=False`` also one for the result (line 319)."""
    operand, out, clear, dim = (stmt.args.get(name) for name in ("buffer", "out", "clear", "dim"))
    if not isinstance(operand, Operand) or not operand.buffer.shape:
        return
    shape = operand.buffer.shape
    axis = dim.sym.constant if isinstance(dim, Scalar) else -1
    columns = len(shape) > 1 and axis in (0, -2)
    measure: Measure = _along_rows
    if columns:  # only a sum has use for it: a maximum asks for nothing where nothing has been asked for
        measure = _constant(0) if stmt.op.name in ("reduce_max", "reduce_min") else _along_columns
    rows = shape[-2] if len(shape) > 1 else const(1)
    yield "tmp_ub", Size(((rows, False), (shape[-1], False)), operand.buffer.dtype, measure), True
    if isinstance(out, Operand) and isinstance(clear, Scalar) and clear.sym.constant == 0 and out.buffer.shape:
        row = out.buffer.shape[0] if len(out.buffer.shape) == 1 else out.buffer.shape[1]
        extents = ((row, False), *((extent, False) for extent in extents_of(out) or out.buffer.shape))
        yield "tmp_ub_reduce_out", Size(extents, out.buffer.dtype, _rows_in_blocks), True


def _along_rows(extents: Sequence[int], item: int) -> int:
    """``GetPtoRowReduceTmpCols``: half of the columns, one where they are one repeat; in blocks."""
    rows, columns = extents
    repeat = _REPEAT // item
    return rows * _in_blocks(1 if columns <= repeat else max(columns // 2, repeat), item)


def _along_columns(extents: Sequence[int], item: int) -> int:
    """Half as many bytes as there are elements: the compiler leaves out the size of an element."""
    rows, columns = extents
    return rows * (columns // 2)


def _rows_in_blocks(extents: Sequence[int], item: int) -> int:
    """Rows of the buffer's length, of which the first extent is the length and the rest the elements."""
    length, count = extents[0], prod(extents[1:])
    return max(-(-count // length), 1) * _in_blocks(min(count, length), item)


def _in_blocks(elements: int, item: int) -> int:
    return -(-elements * item // _BLOCK) * _BLOCK // item * item
