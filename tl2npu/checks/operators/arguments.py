"""TL744, TL745, TL797: arguments in a form that an operator does not take; elements that it reads by their first index.

The table is :mod:`tl2npu.dialects.ascend.arguments`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import libcst as cst

from tl2npu.checks.subject import PTO, Finding, Subject
from tl2npu.dialects.ascend.arguments import FIRST_INDEX_ONLY, takes
from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Let, Memory, Op, Operand, Scalar
from tl2npu.kernel.windows import form_of, reads_another

_KINDS = (Kind.TILE, Kind.FILL, Kind.REDUCE, Kind.ATOMIC, Kind.GEMM, Kind.MMA)
_OF_KNOWN_SIZE = frozenset({"tile.sigmoid", "tile.compare"})
_OF_ANY_SIZE = frozenset({"tile.fill", "tile.clear"})
_FLOATS_ONLY = frozenset({"tile.compare", "tile.select"})
_CALLS = frozenset("if_then_else bitwise_and bitwise_or bitwise_xor bitwise_not shift_left shift_right".split())
_BITS = (cst.BitAnd, cst.BitOr, cst.BitXor, cst.LeftShift, cst.RightShift)


def check(subject: Subject) -> Iterator[Finding]:
    """Findings about the arguments of every operator on tiles."""
    for placed in subject.statements:
        stmt = placed.stmt
        if not isinstance(stmt, Op) or stmt.op.kind not in _KINDS or not stmt.op.modes:
            continue
        for name, operand in stmt.operands:
            found = _operand(stmt, name, operand)
            if found is not None:
                yield found
        late = next((text for _, operand in stmt.operands if (text := _of_late_size(subject, stmt, operand))), "")
        if late:
            yield Finding("TL797", stmt.node, late)
        scalar = stmt.args.get("src1")
        if isinstance(scalar, Scalar) and stmt.op.name in FIRST_INDEX_ONLY:
            yield from _number(subject, stmt, scalar)


def _of_late_size(subject: Subject, stmt: Op, operand: Operand) -> str:
    """What is wrong with a part whose size is known at run time only; empty if it is right.

    Target pto makes tiles of the sizes that it knows, and takes all of a buffer else (codegen_ascend_pto.cc). For
    ascendc, a product of sizes is the count of most operators; others want a number (``Downcast`` to IntImm).
    """
    sizes = [dim.extent for dim in operand.dims or () if not dim.is_point and dim.extent is not None]
    if operand.buffer.memory is not Memory.UB or not any(map(subject.is_runtime, sizes)):
        return ""
    name, shown = f"T.{stmt.op.name}", code(operand.node)
    if subject.target == PTO:
        return f"target pto drops the size of `{shown}`: `{name}` works on all of `{operand.buffer.name}`"
    several = len(sizes) > 1 and stmt.op.name not in _OF_ANY_SIZE
    if stmt.op.name in _OF_KNOWN_SIZE or several or stmt.op.kind in (Kind.REDUCE, Kind.ATOMIC):
        return f"`{name}` takes no part of a size that is known at run time only: `{shown}`"
    return ""


def _operand(stmt: Op, name: str, operand: Operand) -> Finding | None:
    param = stmt.op.param(name)
    if param is None or not param.mask:
        return None
    scalar = param.scalar
    form, shown = form_of(stmt.call, operand), code(operand.node)
    if form == "element" and stmt.op.name in FIRST_INDEX_ONLY and reads_another(operand):
        first = code(operand.dims[0].node) if operand.dims else ""
        text = f"`T.{stmt.op.name}` reads `{shown}` by its first index only, as element `{first}` of the flat buffer"
        return Finding("TL745", stmt.node, text)
    if takes(stmt.op.name, name, form, scalar):
        return None
    if form == "lanes" and takes(stmt.op.name, name, "window", scalar):
        text = f"`T.{stmt.op.name}` takes a slice with two bounds as a keyword only: `{name}={shown}`"
    elif form == "element":
        text = f"`T.{stmt.op.name}` takes tiles for `{name}`, not the single element `{shown}`"
    else:
        text = f"`T.{stmt.op.name}` takes whole tiles only for `{name}`, not `{shown}`"
    return Finding("TL744", stmt.node, text)


def _number(subject: Subject, stmt: Op, scalar: Scalar) -> Iterator[Finding]:
    """Numbers of Python that are integers, where only floats are told from tiles; calls, which are taken for tiles."""
    shown = code(scalar.node)
    if stmt.op.name in _FLOATS_ONLY:
        plain = scalar.node.expression if isinstance(scalar.node, cst.UnaryOperation) else scalar.node
        if isinstance(plain, cst.Integer):
            yield Finding("TL744", stmt.node, f"`T.{stmt.op.name}` takes no Python integer: write `{shown}` as a float")
        return
    if (subject.is_runtime(scalar.sym) or scalar.loads) and _is_call(subject, scalar.node, _replaced(subject)):
        text = f"`T.{stmt.op.name}` takes `{shown}` for a tile: compute it with other operators"
        yield Finding("TL744", stmt.node, text)


def _replaced(subject: Subject) -> dict[str, cst.BaseExpression]:
    """The names that the compiler replaces by their values: those of no elements."""
    lets = [placed.stmt for placed in subject.statements if isinstance(placed.stmt, Let)]
    often = Counter(let.name for let in lets)
    return {let.name: let.value.node for let in lets if not let.value.loads and often[let.name] == 1}


def _is_call(subject: Subject, node: cst.BaseExpression, names: dict[str, cst.BaseExpression]) -> bool:
    """What TVM has as a call, not as an operation: a tile for ``binary_op`` of ``ascend_tile.py``.

    ``names``: those that the compiler replaces by their values. A conversion to int32 of an int32 is none.
    """
    if isinstance(node, cst.Name) and node.value in names:
        return _is_call(subject, names.pop(node.value), names)
    if isinstance(node, cst.BinaryOperation):
        return isinstance(node.operator, _BITS)
    if isinstance(node, cst.UnaryOperation):
        return isinstance(node.operator, cst.BitInvert)
    if not isinstance(node, cst.Call):
        return False
    name = subject.file.names.operator(node.func)
    if name in ("int32", "cast") and node.args and "int32" in code(node):
        return _is_call(subject, node.args[0].value, names)
    return name in _CALLS
