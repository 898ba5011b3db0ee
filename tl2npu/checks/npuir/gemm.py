"""TL464: operands of a product that do not go together, in shape or in type."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tl2npu.checks.npuir.regions import extents, shown
from tl2npu.checks.subject import Finding, Subject
from tl2npu.dialects.npuir import SHORT
from tl2npu.kernel.model import Op, Operand, Scalar
from tl2npu.kernel.sizes import ITEM_SIZE
from tl2npu.kernel.symbolic import Sym

_TYPES = {
    ("float16", "float32"),
    ("bfloat16", "float32"),
    ("float32", "float32"),
    ("int8", "int32"),
}
_SYNONYMS = {"float": "float32"}


def check(subject: Subject) -> Iterator[Finding]:
    """Findings about every product."""
    for placed in subject.statements:
        stmt = placed.stmt
        if isinstance(stmt, Op) and SHORT.get(stmt.op.name) == "gemm" and stmt.op.param("initC") is not None:
            yield from _check(subject, stmt)


def _check(subject: Subject, stmt: Op) -> Iterator[Finding]:
    operands = [stmt.args.get(name) for name in ("A", "B", "C")]
    left, right, result = (item if isinstance(item, Operand) else None for item in operands)
    if left is None or right is None or result is None:
        return
    yield from _types(stmt, left.buffer.dtype, right.buffer.dtype, result.buffer.dtype)
    size = stmt.args.get("size")
    if size is not None:
        if isinstance(size.node, (cst.List, cst.Tuple)) and len(size.node.elements) != 3:
            yield Finding("TL464", stmt.node, f"`size` has {len(size.node.elements)} numbers; a gemm needs [m, k, n]")
        return
    if any(len(extents(item)) != 2 for item in (left, right, result)):
        return
    m, k = _turned(extents(left), stmt.args.get("a_transpose"))
    k2, n = _turned(extents(right), stmt.args.get("b_transpose"))
    rows, columns = extents(result)
    for one, other in ((k, k2), (m, rows), (n, columns)):
        if subject.known_different(one, other):
            text = f"{shown(extents(left))} by {shown(extents(right))} into {shown(extents(result))}"
            yield Finding("TL464", stmt.node, f"the shapes of this gemm do not match: {text}")
            return


def _turned(sizes: tuple[Sym, ...], flag: Operand | Scalar | None) -> tuple[Sym, Sym]:
    first, second = sizes
    turned = isinstance(flag, Scalar) and flag.sym.constant == 1
    return (second, first) if turned else (first, second)


def _types(stmt: Op, *given: str) -> Iterator[Finding]:
    left, right, result = (_SYNONYMS.get(name, name) for name in given)
    if any(name not in ITEM_SIZE for name in (left, right, result)):
        return
    if left != right:
        yield Finding("TL464", stmt.node, f"the operands of this gemm differ in type: {left} and {right}")
    elif (left, result) not in _TYPES:
        yield Finding("TL464", stmt.node, f"a gemm of {left} into {result} is not known to work", "warning")
