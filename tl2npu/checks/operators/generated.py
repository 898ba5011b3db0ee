"""TL736 to TL738, TL749: what the compiler accepts, or refuses late, and what becomes of it in the generated source.

Evidence: facts 10 (bool, condval, compare on pto) and a kernel for each spelling, whose generated text was read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import libcst as cst

from tl2npu.checks.operators.types import types_of
from tl2npu.checks.operators.vector_form import nest_of, parallel_stores
from tl2npu.checks.subject import Finding, Subject
from tl2npu.kernel.conditional_reads import conditional_reads
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.concrete import value_of
from tl2npu.kernel.model import Alloc, Let, Memory, Op, Operand, Scalar, Stmt, Store
from tl2npu.kernel.symbolic import const
from tl2npu.source.tree import calls_in, names_in

_CHOICE = "tilelang.language.if_then_else"


def check(subject: Subject) -> Iterator[Finding]:
    """Tensors of bool, choices inside of statements, packed masks for ``pto``."""
    for param in subject.kernel.params:
        if types_of(subject, param) == {"bool"}:
            text = f"`{param.name}` is a tensor of bool, which the Ascend compiler does not support"
            yield Finding("TL736", param.node, text)
    yield from _conditional(subject)
    yield from _not_a_number(subject)
    yield from _minus_a_negative(subject)
    chosen: set[str] = set()
    for placed in subject.statements:
        stmt = placed.stmt
        value = _assigned(stmt)
        if value is not None and not nest_of(placed) and _chooses(subject, value, chosen):
            if isinstance(stmt, Let) and stmt.name not in subject.kernel.buffers:
                chosen.add(stmt.name)  # a plain name: its value is put where it is used
                continue
            yield Finding(
                "TL737",
                stmt.node,
                f"the compiler generates invalid C++ for `{code(value)}`: a declaration inside an assignment",
            )
        elif isinstance(stmt, Op) and stmt.op.name == "tile.compare" and subject.target == "pto":
            yield from _packed(stmt)


def _minus_a_negative(subject: Subject) -> Iterator[Finding]:
    """``SubsOpCodegen`` and ``BinaryVecOpCodegen`` write a minus in front of what is subtracted: ``--2.5e-01f``."""
    found: list[tuple[Stmt, cst.BaseExpression]] = []
    for placed in subject.statements:
        stmt = placed.stmt
        number = stmt.args.get("src1") if isinstance(stmt, Op) and stmt.op.name == "tile.sub" else None
        found += [(stmt, number.node)] if isinstance(number, Scalar) else []
    for store in parallel_stores(subject):
        differences = [part for part in store.value.walk() if part.kind == "binary" and part.name == "-"]
        if store.form != "scalar":
            found += [(store.store, part.args[1].node) for part in differences if part.args[1].kind == "number"]
    for stmt, node in found:
        values = [value_of(node, caller.known, caller.names) for caller in subject.callers]
        if any(isinstance(value, (int, float)) and math.copysign(1.0, value) < 0 for value in values):
            text = f"subtracts `{code(node)}`, a negative number: the compiler writes `--` in front of its digits"
            yield Finding("TL749", stmt.node, text)


def _not_a_number(subject: Subject) -> Iterator[Finding]:
    """Both code generators write ``CUDART_NAN_F`` for it (``VisitExpr_``, ``FloatImmNode``), which nothing defines."""
    for call in calls_in(subject.kernel.node.body):
        arg = call.args[0].value if call.args else None
        if not isinstance(arg, cst.SimpleString) or not isinstance(call.func, cst.Name) or call.func.value != "float":
            continue
        if str(arg.evaluated_value).lower() == "nan":
            text = f"for `{code(call)}` the compiler writes `CUDART_NAN_F`, which BiSheng does not know"
            help_ = "store an element that is NaN, or pass NaN in a tensor"
            yield Finding("TL737", call, text, "warning", help=help_)
            return


def _conditional(subject: Subject) -> Iterator[Finding]:
    for found in conditional_reads(subject.kernel, subject.late):
        text = f"the compiler reads `{code(found.load.node)}` under a condition, and generates invalid C++ for that"
        help_ = f"give it a name first: `value = {code(found.load.node)}`"
        yield Finding("TL737", found.store.node, text, help=help_)


def _assigned(stmt: Stmt) -> cst.BaseExpression | None:
    """What a statement assigns: to an element, to a name, or to an ``alloc_var`` when it is made."""
    if isinstance(stmt, (Let, Store)):
        return stmt.value.node
    if isinstance(stmt, Alloc) and isinstance(stmt.buffer.node, cst.Call):
        given = {arg.keyword.value: arg.value for arg in stmt.buffer.node.args if arg.keyword is not None}
        return given.get("init")
    return stmt.node.value if isinstance(stmt.node, cst.AugAssign) else None


def _chooses(subject: Subject, value: cst.BaseExpression, chosen: set[str]) -> bool:
    if any(name.value in chosen for name in names_in(value)):
        return True
    return any(subject.file.names.resolve(call.func) == _CHOICE for call in calls_in(value))


def _packed(stmt: Op) -> Iterator[Finding]:
    """The mask of a tile of several rows in one row: its tile gets the length of the mask as the stride of each row."""
    mask, source = stmt.args.get("dst"), stmt.args.get("src0")
    if not isinstance(mask, Operand) or not isinstance(source, Operand) or mask.dims or source.dims:
        return
    rows = source.buffer.shape[:-1]
    if mask.buffer.memory is Memory.UB and len(mask.buffer.shape) == 1 and any(size != const(1) for size in rows):
        text = f"target pto uses the length of `{mask.buffer.name}` as its row stride and overwrites other buffers"
        yield Finding("TL738", stmt.node, text)
