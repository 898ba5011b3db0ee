"""TL133: a mask of zeros and minus infinities that a product is added to is applied to the product instead.

A GPU kernel fills the accumulator with the mask and lets the gemm add to it. On an NPU the product comes from L0C, so
that the sum would take a second tile, a fill and an addition; ``where(mask, product, -inf)`` takes none of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.access import accesses
from tl2npu.kernel.bindings import is_of_factory
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Branch, Buffer, Kernel, Let, Loop, Op, Operand, Scalar, Stmt, Store, children, walk
from tl2npu.passes.gpu.roles import is_zero_fill
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits
from tl2npu.source.tree import names_in


@dataclass(frozen=True, eq=False)
class _Found:
    mask: Stmt
    gemm: Op
    buffer: Buffer


def apply(job: Job) -> None:
    """Move the masks behind their products."""
    edits = Edits(job.file.index)
    for found in _pairs(job, job.kernel):
        gemm = _cleared(found.gemm)
        masked = _on_product(found.mask, found.buffer)
        if gemm is None or masked is None:
            continue
        edits.remove(found.mask.node)
        edits.replace_many(found.gemm.node, [found.gemm.node.deep_replace(found.gemm.call, gemm), masked])  # type: ignore[list-item]
        job.change("TL133", found.mask.node, f"the mask is applied to the product in `{found.buffer.name}`")
    job.apply(edits)


def keeps_whole(stmt: Stmt, buffer: Buffer) -> bool:
    """``buffer[i, j] = if_then_else(condition, buffer[i, j], -inf)`` that becomes compare and select for sure."""
    select = _select(stmt, buffer)
    return select is not None and _is_compared(select[0], stmt) and code(select[1]) == _target(stmt)


def _pairs(job: Job, kernel: Kernel) -> list[_Found]:
    found: list[_Found] = []
    for body in _bodies(kernel.body):
        for position, gemm in enumerate(body):
            buffer = _accumulator(gemm)
            if buffer is None:
                continue
            place = next((n for n in reversed(range(position)) if _touches(body[n], buffer)), None)
            if place is None or not _is_mask(job, body[place], buffer):
                continue
            if any(isinstance(inner, Let) for stmt in body[place:position] for inner in walk([stmt])):
                continue
            assert isinstance(gemm, Op)
            found.append(_Found(body[place], gemm, buffer))
    return found


def _bodies(body: list[Stmt]) -> list[list[Stmt]]:
    return [body, *(inner for stmt in walk(body) for inner in children(stmt))]


def _touches(stmt: Stmt, buffer: Buffer) -> bool:
    return any(access.operand.buffer is buffer for inner in walk([stmt]) for access in accesses(inner))


def _accumulator(stmt: Stmt) -> Buffer | None:
    """The buffer that a gemm adds to."""
    if not isinstance(stmt, Op) or stmt.op.name != "gemm":
        return None
    product, given = stmt.args.get("C"), stmt.args.get("clear_accum")
    if not isinstance(product, Operand) or not product.is_whole:
        return None
    if isinstance(given, Scalar) and not given.sym.is_zero:
        return None
    return product.buffer


def _cleared(gemm: Op) -> cst.Call | None:
    """The call with ``clear_accum=True``."""
    if len([arg for arg in gemm.call.args if arg.keyword is None]) > 5 or any(arg.star for arg in gemm.call.args):
        return None
    new = cst.Arg(
        cst.Name("True"),
        cst.Name("clear_accum"),
        equal=cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace("")),
    )
    kept = [arg for arg in gemm.call.args if arg.keyword is None or arg.keyword.value != "clear_accum"]
    return gemm.call.with_changes(args=[*(_with_comma(arg) for arg in kept), new])


def _with_comma(arg: cst.Arg) -> cst.Arg:
    if isinstance(arg.comma, cst.Comma):
        return arg
    return arg.with_changes(comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")))


def _is_mask(job: Job, stmt: Stmt, buffer: Buffer) -> bool:
    """A mask, or a choice of masks that the factory makes; every arm sets the whole tile."""
    if not isinstance(stmt, Branch):
        select = _select(stmt, buffer)
        return select is not None and _is_zero(select[1]) and _is_compared(select[0], stmt)
    if not isinstance(stmt.node, cst.If) or not stmt.orelse or not is_of_factory(job.located.node, stmt.node.test):
        return False
    if isinstance(stmt.orelse[0], Branch):
        return False
    arms = (stmt.then, stmt.orelse)
    return all(len(arm) == 1 and (is_zero_fill(arm[0]) or _is_mask(job, arm[0], buffer)) for arm in arms) and any(
        not is_zero_fill(arm[0]) for arm in arms
    )


def _select(stmt: Stmt, buffer: Buffer) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """The condition under which ``stmt`` stores something else than minus infinity to every element, and that."""
    if not isinstance(stmt, Loop) or stmt.kind != "parallel" or len(stmt.ranges) != 2 or len(stmt.body) != 1:
        return None
    store = stmt.body[0]
    if not isinstance(store, Store) or store.augmented or store.target.buffer is not buffer:
        return None
    extents = [item.extent for item in stmt.ranges]
    dims = store.target.dims
    if dims is None or [dim.lo for dim in dims] != [item.var for item in stmt.ranges]:
        return None
    if extents != list(buffer.shape) or not all(item.start.is_zero for item in stmt.ranges):
        return None
    if any(load.buffer is not buffer for load in store.value.loads):
        return None
    arms = _arms(store.value.node)
    if arms is None:
        return None
    condition, yes, no = arms
    if _is_minus_infinity(no):
        return condition, yes
    if _is_minus_infinity(yes) and isinstance(condition, cst.Comparison):
        return cst.UnaryOperation(
            cst.Not(), condition.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        ), no
    return None


def _arms(value: cst.BaseExpression) -> tuple[cst.BaseExpression, cst.BaseExpression, cst.BaseExpression] | None:
    if isinstance(value, cst.IfExp):
        return value.test, value.body, value.orelse
    if not isinstance(value, cst.Call) or _called(value) != "if_then_else" or len(value.args) != 3:
        return None
    if any(arg.keyword is not None or arg.star for arg in value.args):
        return None
    condition, yes, no = (arg.value for arg in value.args)
    return condition, yes, no


def _called(node: cst.BaseExpression) -> str:
    if not isinstance(node, cst.Call):
        return ""
    func = node.func
    return func.attr.value if isinstance(func, cst.Attribute) else func.value if isinstance(func, cst.Name) else ""


def _is_zero(node: cst.BaseExpression) -> bool:
    return isinstance(node, (cst.Integer, cst.Float)) and float(node.value) == 0.0


def _is_minus_infinity(node: cst.BaseExpression) -> bool:
    return (
        isinstance(node, cst.UnaryOperation)
        and isinstance(node.operator, cst.Minus)
        and _called(node.expression) == "infinity"
    )


def _is_compared(condition: cst.BaseExpression, stmt: Stmt) -> bool:
    """Comparisons of sums in which each loop variable stands at most once, as a term of its own."""
    assert isinstance(stmt, Loop)
    names = {item.name for item in stmt.ranges}
    if isinstance(condition, cst.BooleanOperation):
        return _is_compared(condition.left, stmt) and _is_compared(condition.right, stmt)
    if isinstance(condition, cst.UnaryOperation) and isinstance(condition.operator, cst.Not):
        return _is_compared(condition.expression, stmt)
    if not isinstance(condition, cst.Comparison) or len(condition.comparisons) != 1:
        return False
    terms = [*_terms(condition.left), *_terms(condition.comparisons[0].comparator)]
    found = [name for term in terms for name in sorted({n.value for n in names_in(term)} & names)]
    plain = [term.value for term in terms if isinstance(term, cst.Name) and term.value in names]
    return bool(found) and sorted(found) == sorted(plain) and len(set(plain)) == len(plain)


def _terms(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.Add, cst.Subtract)):
        return [*_terms(node.left), *_terms(node.right)]
    return [node]


def _target(stmt: Stmt) -> str:
    assert isinstance(stmt, Loop)
    store = stmt.body[0]
    assert isinstance(store, Store)
    return code(store.target.node)


def _on_product(stmt: Stmt, buffer: Buffer) -> cst.CSTNode | None:
    """The mask, with the product in the place of the zeros; an arm of zeros goes."""
    if isinstance(stmt, Loop):
        select = _select(stmt, buffer)
        assert select is not None
        store = stmt.body[0]
        assert isinstance(store, Store)
        new = store.target.node.deep_clone()
        found = stmt.node.deep_replace(select[1], new)
        return found if isinstance(found, cst.CSTNode) else None
    assert isinstance(stmt, Branch)
    assert isinstance(stmt.node, cst.If)
    node = stmt.node
    if is_zero_fill(stmt.then[0]):
        return None
    then = _on_product(stmt.then[0], buffer)
    assert isinstance(then, cst.BaseStatement)
    body = node.body.with_changes(body=[then])
    if is_zero_fill(stmt.orelse[0]):
        return node.with_changes(body=body, orelse=None)
    other = _on_product(stmt.orelse[0], buffer)
    assert isinstance(node.orelse, cst.Else)
    assert isinstance(other, cst.BaseStatement)
    return node.with_changes(
        body=body, orelse=node.orelse.with_changes(body=node.orelse.body.with_changes(body=[other]))
    )
