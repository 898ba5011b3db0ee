"""TL602: elements whose indices are the digits of one number, ``y[q // W // H, q // W % H, q % W]``.

Such an element is element ``q`` of the tensor as one row. A kernel that numbers all elements of a tensor and works out
the place of each walks through memory in order; in the shape that it means, a copy moves them. ``q // W * W + q % W``
is ``q`` for every ``q`` (:mod:`tl2npu.kernel.symbolic`), so nothing needs to be known of the sizes. An element beside
it, ``x[q // W, q % W + 1]``, is read so where it is proved to lie in the same row: behind the row a GPU reads zeros.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.access import uses_of
from tl2npu.kernel.environment import Env
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Buffer, Dim, Let, Loop, Operand, Stmt
from tl2npu.kernel.ranges.bounds import Bounds
from tl2npu.kernel.ranges.reach import Reach, choice_of, facts, parents_of
from tl2npu.kernel.symbolic import Mod, Sym, const
from tl2npu.passes.job import Job
from tl2npu.passes.rounds import until_settled
from tl2npu.passes.writing.render import Unrenderable, render
from tl2npu.passes.writing.statements import Names, expression, factor, parse
from tl2npu.passes.writing.tiles import tensor_dtype
from tl2npu.source.edits import Edits


@dataclass(frozen=True, eq=False)
class _Number:
    """The axes from ``first`` on hold the digits of ``value``, the most significant one first; the last one may be
    ``shift`` behind its digit."""

    first: int
    value: Sym
    shift: Sym


def join(job: Job) -> None:
    """Give the tensors whose elements are all found by such numbers their second shape."""
    until_settled(job, lambda: any(_joined(job, tensor) for tensor in job.kernel.params if tensor.statement is None))


def _joined(job: Job, tensor: Buffer) -> bool:
    uses = uses_of(job.kernel, tensor)
    numbers = [_number(job, stmt, operand) for stmt, operand in uses]
    if not numbers or job.kernel.launch is None or not any(n is not None and _counts(job, n.value) for n in numbers):
        return False
    texts: list[str] = []
    firsts = {number.first for number in numbers if number is not None}
    if len(firsts) > 1:
        return False
    for (stmt, operand), number in zip(uses, numbers, strict=True):
        text = _index(job, stmt, operand, number) if number is not None else None
        if number is None or text is None:
            return False
        texts.append(text)
    (first,) = firsts
    name = Names(job).fresh(f"{tensor.name}_flat", f"{tensor.name}_as_row")
    job.change(
        "TL602", uses[0][0].node, f"`{code(uses[0][1].node)}` is element `{texts[0]}` of `{tensor.name}` as one row"
    )
    _make(job, tensor, name, first)
    edits = Edits(job.file.index)
    again = next(param for param in job.kernel.params if param.name == tensor.name)
    elements = [operand for _, operand in uses_of(job.kernel, again) if operand.dims is not None]
    for operand, text in zip(elements, texts, strict=True):
        edits.replace(operand.node, expression(job, f"{name}[{text}]", operand.node))
    job.apply(edits)
    return True


def _make(job: Job, tensor: Buffer, name: str, first: int) -> None:
    """The tensor with the axes from ``first`` on as one, in front of the launch."""
    assert isinstance(tensor.node, cst.Param)
    sizes, launch = [code(node) for node in tensor.shape_nodes], job.kernel.launched.node
    merged = " * ".join(factor(size) for size in sizes[first:])
    shape = [*sizes[:first], merged]
    text = ", ".join(shape) if len(shape) > 1 else f"{merged},"
    line = parse(job, f"{name} = T.Tensor(({text}), {tensor_dtype(tensor.node)}, {tensor.name}.data)", launch)
    edits = Edits(job.file.index)
    edits.replace_many(launch, [*line, launch])
    job.apply(edits)


def _counts(job: Job, value: Sym) -> bool:
    """The value counts with a parallel loop."""
    loops = (stmt for stmt in job.kernel.walk() if isinstance(stmt, Loop) and stmt.kind == "parallel")
    counted = {name for loop in loops for item in loop.ranges for name in item.var.variables()}
    return not counted.isdisjoint(value.variables())


def number_along(job: Job, env: Env, dims: Sequence[Dim], sizes: Sequence[Sym]) -> str | None:
    """The number whose digits the indices along some axes are, as text; None if they are no such digits."""
    indices = [dim.lo for dim in dims]
    for value in _candidates(job, env, dims[-1]):
        if _first_digit(value, indices, sizes) == 0:
            return _text(job, env, value)
    return None


def _number(job: Job, stmt: Stmt, operand: Operand) -> _Number | None:
    """The longest run of last axes that holds the digits of one number; None for anything but a single element."""
    dims, shape = operand.dims, operand.buffer.shape
    if dims is None or len(dims) != len(shape) or any(not dim.is_point for dim in dims) or operand.loads:
        return None
    indices = [dim.lo for dim in dims]
    found = list[_Number]()
    for value in _candidates(job, stmt.env, dims[-1]):
        shift = indices[-1] - value % shape[-1]
        if indices[-1] == value - value // shape[-1] * shape[-1]:
            shift = const(0)
        if not _counts(job, shift) and (shift.is_zero or _lies_in_row(job, stmt, operand)):
            found.append(_Number(_first_digit(value, [*indices[:-1], indices[-1] - shift], shape), value, shift))
    best = min(found, key=lambda number: (number.first, str(number.shift)), default=None)
    return best if best is not None and best.first < len(indices) - 1 else None


def _lies_in_row(job: Job, stmt: Stmt, operand: Operand) -> bool:
    """The last index lies inside of its axis under the conditions on the element."""
    assert operand.dims is not None
    evaluator, index = job.file.evaluator, job.file.index
    known = Reach(job.kernel, evaluator).bounds(parents_of(job.kernel, stmt), stmt)
    told = list(known.facts)
    child: cst.CSTNode = operand.node
    for above in index.ancestors(child):
        if above is stmt.node:
            break
        arms = choice_of(above, evaluator)
        if arms is not None and child in arms[1:]:
            told += facts(evaluator, arms[0], stmt.env, child is arms[1])
        child = above if not isinstance(above, cst.Arg) else child
    bounds = Bounds(known.ranges, tuple(told), sizes=known.sizes)
    last = operand.dims[-1].lo
    return bounds.is_not_negative(last) and bounds.is_not_negative(operand.buffer.shape[-1] - 1 - last)


def _candidates(job: Job, env: Env, last: Dim) -> Iterator[Sym]:
    """The numbers of which an index may be the last digit: those that have a name there, and what it divides."""
    for let in job.kernel.walk():
        if isinstance(let, Let) and let.bound is not None and env.lookup(let.name) == let.bound:
            yield let.bound
    if isinstance(last.node, cst.BinaryOperation) and isinstance(last.node.operator, cst.Modulo):
        yield job.file.evaluator.sym(last.node.left, env)
    yield from (atom.num for atom in last.lo.atoms() if isinstance(atom, Mod))


def _first_digit(value: Sym, indices: Sequence[Sym], shape: Sequence[Sym]) -> int:
    """The axis that holds what is left of the number; the last one if no axis does.

    ``q // a // b`` and ``q // (a * b)`` are the same for positive sizes, and may differ in normal form.
    """
    left, inner, axis = value, const(1), len(shape) - 1
    while axis > 0 and indices[axis] in (
        left % shape[axis],
        value // inner % shape[axis],
        left - left // shape[axis] * shape[axis],  # without `%`
    ):
        left, inner, axis = left // shape[axis], inner * shape[axis], axis - 1
        if indices[axis] in (left, value // inner):
            return axis
    return len(shape) - 1


def _index(job: Job, stmt: Stmt, operand: Operand, number: _Number) -> str | None:
    assert operand.dims is not None
    text = _text(job, stmt.env, number.value)
    if text is None:
        return None
    if not number.shift.is_zero:
        try:
            behind = render(number.shift)
        except Unrenderable:
            return None
        text += f" - {behind[1:]}" if behind.startswith("-") and len(number.shift.terms) == 1 else f" + {behind}"
    return ", ".join([*(code(dim.node) for dim in operand.dims[: number.first]), text])


def _text(job: Job, env: Env, value: Sym) -> str | None:
    """A name that stands for the number there, or its text."""
    names = (let.name for let in job.kernel.walk() if isinstance(let, Let) and let.bound == value)
    name = next((name for name in names if env.lookup(name) == value), None)
    try:
        text = name or render(value)
    except Unrenderable:
        return None
    return text if job.file.evaluator.sym(cst.parse_expression(text), env) == value else None
