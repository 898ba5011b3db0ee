"""TL700, TL741, TL790: shapes that reductions, broadcasts and row operations take, as their front end asserts them.

Source: ``reduce_ascend.py`` and ``ascend_tile.py`` of ``tilelang/language`` at 95acbd7f; every message was seen. The
sizes are the numbers of each known way to call the factory; what is not known is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

import libcst as cst

from tl2npu.checks.operators.types import types_of
from tl2npu.checks.subject import PTO, Finding, Subject
from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.expressions import code
from tl2npu.kernel.handover import extents_of
from tl2npu.kernel.model import Op, Operand, Scalar
from tl2npu.kernel.sizes import ITEM_SIZE
from tl2npu.kernel.symbolic import Sym

Shape = tuple[int, ...]
_ROW_OPERATORS = frozenset(
    f"tile.row_expand_{name}" for name in ("mul", "mul_experiment", "sub_experiment", "div_experiment")
)

_REPETITION, _AT_A_TIME = 256, 8


def check(subject: Subject) -> Iterator[Finding]:
    """One finding for each operator whose shapes do not fit."""
    for placed in subject.statements:
        stmt = placed.stmt
        if not isinstance(stmt, Op):
            continue
        names: tuple[str, ...]
        if stmt.op.kind is Kind.REDUCE and "out" in stmt.args:
            names, judge = ("buffer", "out"), _reduction
        elif stmt.op.name == "tile.broadcast":
            names, judge = ("src", "dst"), _broadcast
        elif stmt.op.name in _ROW_OPERATORS:
            names, judge = ("src1", "src0", "dst"), _row_operator
        else:
            continue
        axis = stmt.args.get("dim")
        if isinstance(axis, Scalar) and subject.is_runtime(axis.sym):
            text = f"T.{stmt.op.name} reduces an axis that is a number, not `{code(axis.node)}`"
            yield Finding("TL790", stmt.node, text)
            continue
        shapes = [_extents(stmt.args.get(name)) for name in names]
        for known in subject.values:
            sizes = [_numbers(shape, known) for shape in shapes]
            if any(size is None for size in sizes):
                continue
            given = [size for size in sizes if size is not None]
            text, rule = judge(stmt, given, known), "TL741"
            if not text and judge is _row_operator and subject.target != PTO:
                text, rule = _repetitions(subject, stmt, given[-1]), "TL700"
            if text:
                help = _other_axis(stmt, given) if judge is _reduction else ""
                help = help or (_HELP[judge] if rule == "TL741" else "")
                yield Finding(rule, stmt.node, f"T.{stmt.op.name}: {text}", help=help)
                break


def _extents(operand: Operand | Scalar | None) -> tuple[Sym, ...] | None:
    if not isinstance(operand, Operand):
        return None
    found = extents_of(operand)
    return found if found is not None and len(found) == len(operand.buffer.shape) else None


def _numbers(shape: tuple[Sym, ...] | None, known: Mapping[str, int]) -> Shape | None:
    found = tuple(size.evaluate(known) for size in shape) if shape is not None else (None,)
    return tuple(size for size in found if size is not None) if None not in found else None


def _shown(stmt: Op, name: str, shape: Shape) -> str:
    operand = stmt.args[name]
    assert isinstance(operand, Operand)
    return f"`{code(operand.node)}` has the shape {shape}"


# reductions ----------------------------------------------------------------------------------------------------------


def _reduction(stmt: Op, shapes: list[Shape], known: Mapping[str, int]) -> str:
    """``_legalize_reduce_dim`` and ``_validate_reduce_out_shape``."""
    source, out = shapes
    given = stmt.args.get("dim")
    axis = given.sym.evaluate(known) if isinstance(given, Scalar) else -1 if given is None else None
    if len(source) > 3:
        return f"{_shown(stmt, 'buffer', source)}, but reductions take one to three axes"
    if axis is None:
        return ""
    if not -min(len(source), 2) <= axis < min(len(source), 2):
        which = "axis 0 or -1" if len(source) == 1 else "axis 0, 1, -2 or -1"
        return f"{_shown(stmt, 'buffer', source)}: its reductions are over {which}, not {axis}"
    axis %= len(source)
    if len(source) == 3 or "real_shape" in stmt.args:
        return _valid_part(stmt, source, known)
    kept, target = source[:axis] + source[axis + 1 :], stmt.args["out"]
    expected = [kept, (*source[:axis], 1, *source[axis + 1 :])]
    sliced = isinstance(target, Operand) and target.dims is not None
    if out in expected or (sliced and any(_embeds(out, one) for one in expected)):
        return ""
    wanted = " or ".join(str(one) for one in expected if one)
    return f"the maximum, minimum or sum over axis {axis} has the shape {wanted}, but {_shown(stmt, 'out', out)}"


def _other_axis(stmt: Op, shapes: Sequence[Shape]) -> str:
    """The axis whose reduction has the shape of ``out``, if it is another one of two."""
    source, out = shapes
    given = stmt.args.get("dim")
    if len(source) != 2 or not isinstance(given, Scalar):
        return ""
    for axis in range(2):
        if out in ((source[1 - axis],), (*source[:axis], 1, *source[axis + 1 :])):
            return f"pass `dim={axis}`, whose result has this shape, or allocate `out` for axis `{code(given.node)}`"
    return ""


def _valid_part(stmt: Op, source: Shape, known: Mapping[str, int]) -> str:
    """``real_shape``: the part of the tile that counts."""
    given = stmt.args.get("real_shape")
    items = given.node.elements if isinstance(given, Scalar) and isinstance(given.node, (cst.Tuple, cst.List)) else ()
    sizes = [int(item.value.evaluated_value) for item in items if isinstance(item.value, cst.Integer)]
    if len(sizes) == len(items) == len(source) and any(size > own for size, own in zip(sizes, source, strict=True)):
        return f"{_shown(stmt, 'buffer', source)}, of which `real_shape` cannot take {tuple(sizes)}"
    return ""


def _embeds(out: Shape, expected: Shape) -> bool:
    """Whether a slice is the expected shape, with further axes of one element."""
    rest = list(expected)
    for size in out:
        if rest and size == rest[0]:
            rest.pop(0)
        elif size != 1:
            return False
    return not rest


# broadcasts and rows -------------------------------------------------------------------------------------------------


def _broadcast(stmt: Op, shapes: list[Shape], known: Mapping[str, int]) -> str:
    """``broadcast``, which takes the last two axes of each side."""
    source, target = (shape[-2:] for shape in shapes)
    given = stmt.args.get("axis")
    axis = given.sym.evaluate(known) if isinstance(given, Scalar) and code(given.node) != "None" else None
    if (axis is None and given is not None and code(given.node) != "None") or axis not in (None, 0, 1):
        return ""
    shown = f"{_shown(stmt, 'src', source)} and {_shown(stmt, 'dst', target)}"
    if len(source) == 1 and len(target) == 2:
        if axis is None:
            axis = 0 if target[1] == source[0] else 1 if target[0] == source[0] else None
        if axis is None:
            return f"{shown}: the vector is as long as neither axis"
        source = (1, source[0]) if axis == 0 else (source[0], 1)
    if len(source) != len(target):
        return f"{shown}: a tile does not fit into a vector"
    if len(target) == 1:
        if axis == 1:
            return f"{shown}: vectors have axis 0 only"
        return "" if source in ((1,), target) else f"{shown}: only one element fills a vector"
    if axis is None:
        axis = 1 if source[1] == 1 != target[1] and not source[0] == 1 != target[0] else 0
    if source == target or (source[axis] == 1 and source[1 - axis] == target[1 - axis]):
        return ""
    return f"{shown}: along axis {axis} one element is repeated, and the other axis is the same on both sides"


def _row_operator(stmt: Op, shapes: list[Shape], known: Mapping[str, int]) -> str:
    """``row_expand_mul`` and ``_row_expand_binop_experiment``: ``dst[i, j] = src0[i, j] * src1[i]``."""
    column, source, target = shapes
    if len(source) < 2 or len(target) < 2:
        name, shape = ("src0", source) if len(source) < 2 else ("dst", target)
        return f"{_shown(stmt, name, shape)}, but rows need two axes"
    if (prod(source[:-1]), source[-1]) != (prod(target[:-1]), target[-1]) and source[-2:] != target[-2:]:
        return f"{_shown(stmt, 'src0', source)} and {_shown(stmt, 'dst', target)}"
    rows = prod(target[:-1])
    if rows not in (prod(column), column[0]) and target[-2] not in (prod(column), column[0]):
        return f"{_shown(stmt, 'src1', column)}, but `dst` has {rows} rows"
    return ""


def _repetitions(subject: Subject, stmt: Op, target: Shape) -> str:
    """``RowExpandBinOpExperimentCodegen``: whole repetitions of 256 bytes, and eight of them at a time."""
    operand = stmt.args["dst"]
    types = types_of(subject, operand.buffer) if isinstance(operand, Operand) else frozenset()
    sizes = {ITEM_SIZE.get(name, 0) for name in types}
    lanes = _REPETITION // max(sizes, default=_REPETITION)
    count = prod(target)
    if not sizes or (count % lanes == 0 and count // lanes % _AT_A_TIME == 0):
        return ""
    return f"{_shown(stmt, 'dst', target)}, but it takes a multiple of {_AT_A_TIME} times {lanes} elements"


_HELP = {
    _reduction: "allocate `out` with this shape; `real_shape` is at most that of the tile, and `dim` one of its axes",
    _broadcast: "give `src` one element along one axis, as in (M, 1) or (1, N), and the size of `dst` along the other",
    _row_operator: "give `src1` an element for each row, and `src0` the shape of `dst`",
}
"""What to do about each kind of TL741."""
