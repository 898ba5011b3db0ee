"""TL133: a mask of zeros and minus infinities that a product is added to is applied to the product instead.

A GPU kernel fills the accumulator with the mask and lets the gemm add to it. On an NPU the product comes from L0C, so
that the sum would take a second tile, a fill and an addition; ``where(mask, product, -inf)`` takes none of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.access import accesses, reads, touches
from tl2npu.kernel.expressions import code, terms_of
from tl2npu.kernel.memory.roles import is_zero_fill
from tl2npu.kernel.model import Branch, Buffer, Kernel, Let, Loop, Op, Operand, Scalar, Stmt, Store, blocks, walk
from tl2npu.kernel.numbers import is_zero
from tl2npu.kernel.runtime import Late
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits
from tl2npu.source.tree import last_name, names_in, replaced


@dataclass(frozen=True, eq=False)
class _Found:
    """``last``: of the gemms that add to the mask, of which ``gemm`` is the first."""

    mask: Stmt
    gemm: Op
    last: Op
    buffer: Buffer


def apply(job: Job) -> None:
    """Move the masks behind their products."""
    edits = Edits(job.file.index)
    for found in _pairs(job, job.kernel):
        gemm = _cleared(found.gemm)
        masked = _on_product(job.late, found.mask, found.buffer)
        if gemm is None or masked is None:
            continue
        edits.remove(found.mask.node)
        first = replaced(found.gemm.node, {id(found.gemm.call): gemm})
        if found.last is found.gemm:
            edits.replace_many(found.gemm.node, [first, masked])
        else:
            edits.replace_many(found.gemm.node, [first])
            edits.replace_many(found.last.node, [found.last.node, masked])
        job.change("TL133", found.mask.node, f"applied the mask to the product in `{found.buffer.name}`")
    job.apply(edits)


def keeps_whole(late: Late, stmt: Stmt, buffer: Buffer) -> bool:
    """``buffer[i, j] = if_then_else(condition, buffer[i, j], -inf)`` that becomes compare and select for sure."""
    masks = masks_of(late, stmt, buffer)
    return bool(masks) and all(mask.in_place for mask in masks)


def _pairs(job: Job, kernel: Kernel) -> list[_Found]:
    found: list[_Found] = []
    for body in blocks(kernel.body):
        for position, gemm in enumerate(body):
            buffer = _accumulator(gemm)
            if buffer is None:
                continue
            place = next((n for n in reversed(range(position)) if touches(body[n], buffer)), None)
            if place is None or not _is_mask(job, body[place], buffer):
                continue
            end = _last(body, position, buffer)
            read = {load.buffer for inner in walk([body[place]]) for load in reads(inner)} - {buffer}
            between = [inner for stmt in body[place + 1 : end] for inner in walk([stmt])]
            if any(
                isinstance(inner, Let) or {access.operand.buffer for access in accesses(inner) if access.writes} & read
                for inner in between
            ):
                continue
            last = body[end]
            assert isinstance(gemm, Op)
            assert isinstance(last, Op)
            found.append(_Found(body[place], gemm, last, buffer))
    return found


def _last(body: Sequence[Stmt], position: int, buffer: Buffer) -> int:
    """The place of the last of those gemms that add to the buffer with nothing between them that touches it."""
    last = position
    for number in range(position + 1, len(body)):
        if _accumulator(body[number]) is buffer:
            last = number
        elif touches(body[number], buffer):
            break
    return last


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
    """A mask, or a choice of masks that Python makes; every arm sets the whole tile."""
    late = job.late
    if not isinstance(stmt, Branch):
        selects = masks_of(late, stmt, buffer)
        return bool(selects) and all(is_zero(item.other) for item in selects)
    if not stmt.orelse or not late.python_decides(stmt):
        return False
    arms = (stmt.then, stmt.orelse)
    if isinstance(arms[1][-1], Branch) or not all(isinstance(one, Let) for arm in arms for one in arm[:-1]):
        return False  # masks of several arms take longer than the product, and are made while it is waited for
    return all(is_zero_fill(arm[-1]) or _is_mask(job, arm[-1], buffer) for arm in arms) and any(
        not is_zero_fill(arm[-1]) for arm in arms
    )


@dataclass(frozen=True, eq=False)
class _Choice:
    """What an element becomes: ``yes`` or ``no``, of which ``store``, the first, is written to the same place."""

    store: Store
    condition: cst.BaseExpression
    yes: cst.BaseExpression
    no: cst.BaseExpression
    loads: Sequence[Operand]


@dataclass(frozen=True, eq=False)
class Mask:
    """``store`` puts ``other`` where ``condition`` is ``keeps``, and minus infinity elsewhere."""

    store: Store
    other: cst.BaseExpression
    condition: cst.BaseExpression
    keeps: bool

    @property
    def in_place(self) -> bool:
        """The rest of the tile stays as it is."""
        return code(self.other) == code(self.store.target.node)


def masks_of(late: Late, stmt: Stmt, buffer: Buffer) -> list[Mask]:
    """What a loop stores to every element of a buffer, for each outcome of Python's conditions; else nothing."""
    if not isinstance(stmt, Loop) or stmt.kind != "parallel" or len(stmt.ranges) != 2:
        return []
    if [item.extent for item in stmt.ranges] != list(buffer.shape) or not all(r.start.is_zero for r in stmt.ranges):
        return []
    names = {let.name: let.value.node for let in stmt.body if isinstance(let, Let)}
    choices = _choices(late, [inner for inner in stmt.body if not isinstance(inner, Let)])
    if len(names) != sum(isinstance(inner, Let) for inner in stmt.body):
        return []
    found = [_select(choice, stmt, buffer, names) for choice in choices]
    return [item for item in found if item is not None] if all(found) else []


def _choices(late: Late, body: list[Stmt]) -> list[_Choice | None]:
    """The one store of each path that Python takes; None for a path that has none, or several."""
    stmt = body[0] if len(body) == 1 else None
    if isinstance(stmt, Branch) and late.python_decides(stmt):
        return [*_choices(late, stmt.then), *_choices(late, stmt.orelse)]
    if isinstance(stmt, Store):
        arms = None if stmt.augmented else _arms(stmt.value.node)
        return [None if arms is None else _Choice(stmt, *arms, stmt.value.loads)]
    if not isinstance(stmt, Branch) or len(stmt.then) != 1 or len(stmt.orelse) != 1:
        return [None]
    yes, no = stmt.then[0], stmt.orelse[0]
    if not isinstance(yes, Store) or not isinstance(no, Store) or yes.augmented or no.augmented:
        return [None]
    loads = (*stmt.cond.loads, *yes.value.loads, *no.value.loads)
    same = code(yes.target.node) == code(no.target.node)
    return [_Choice(yes, stmt.cond.node, yes.value.node, no.value.node, loads) if same else None]


def _select(choice: _Choice | None, loop: Loop, buffer: Buffer, names: Mapping[str, cst.BaseExpression]) -> Mask | None:
    if choice is None or choice.store.target.buffer is not buffer:
        return None
    dims, variables = choice.store.target.dims, {item.name for item in loop.ranges}
    if dims is None or [dim.lo for dim in dims] != [item.var for item in loop.ranges]:
        return None
    if any(load.buffer is not buffer and not _runs_along(load, loop) for load in choice.loads):
        return None
    if not _is_compared(choice.condition, variables, names):
        return None
    if _is_minus_infinity(choice.no):
        return Mask(choice.store, choice.yes, choice.condition, True)
    return Mask(choice.store, choice.no, choice.condition, False) if _is_minus_infinity(choice.yes) else None


def _runs_along(load: Operand, loop: Loop) -> bool:
    """An element of a vector on the chip, at a variable of the loop."""
    dims = load.dims or ()
    return len(dims) == 1 and load.buffer.is_tile and dims[0].lo in [item.var for item in loop.ranges]


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
    return last_name(node.func) if isinstance(node, cst.Call) else ""


def _is_minus_infinity(node: cst.BaseExpression) -> bool:
    return (
        isinstance(node, cst.UnaryOperation)
        and isinstance(node.operator, cst.Minus)
        and _called(node.expression) == "infinity"
    )


def _is_compared(
    condition: cst.BaseExpression, variables: AbstractSet[str], names: Mapping[str, cst.BaseExpression]
) -> bool:
    """Elements of vectors; comparisons of sums in which a loop variable stands at most once, as a term of its own."""
    if isinstance(condition, cst.Subscript):
        return True
    if isinstance(condition, cst.BooleanOperation):
        return all(_is_compared(side, variables, names) for side in (condition.left, condition.right))
    if isinstance(condition, cst.UnaryOperation) and isinstance(condition.operator, cst.Not):
        return _is_compared(condition.expression, variables, names)
    if not isinstance(condition, cst.Comparison) or len(condition.comparisons) != 1:
        return False
    terms = [*_terms(condition.left, names), *_terms(condition.comparisons[0].comparator, names)]
    plain = [term.value for term in terms if isinstance(term, cst.Name) and term.value in variables]
    others = [term for term in terms if not (isinstance(term, cst.Name) and term.value in variables)]
    hidden = variables | set(names)
    if any(name.value in hidden for term in others for name in names_in(term)):
        return False
    return bool(plain) and len(set(plain)) == len(plain)


def _terms(node: cst.BaseExpression, names: Mapping[str, cst.BaseExpression]) -> list[cst.BaseExpression]:
    found: list[cst.BaseExpression] = []
    for term, _ in terms_of(node):
        value = names.get(term.value) if isinstance(term, cst.Name) else None
        found += [term] if value is None else _terms(value, {n: v for n, v in names.items() if v is not value})
    return found


def _on_product(late: Late, stmt: Stmt, buffer: Buffer) -> cst.CSTNode | None:
    """The mask, with the product in the place of the zeros; an arm of zeros goes."""
    if isinstance(stmt, Loop):
        products = {id(item.other): item.store.target.node.deep_clone() for item in masks_of(late, stmt, buffer)}
        return replaced(stmt.node, products)
    assert isinstance(stmt, Branch)
    choice = cst.ensure_type(stmt.node, cst.If)
    if is_zero_fill(stmt.then[-1]):
        return None
    found = {id(stmt.then[-1].node): _on_product(late, stmt.then[-1], buffer)}
    if is_zero_fill(stmt.orelse[-1]):
        choice = choice.with_changes(orelse=None)
    else:
        found[id(stmt.orelse[-1].node)] = _on_product(late, stmt.orelse[-1], buffer)
    new = {place: node for place, node in found.items() if node is not None}
    return replaced(choice, new) if len(new) == len(found) else None
