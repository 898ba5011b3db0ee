"""TL444: regions that are given by a start and a ``size`` become slices; ``size`` goes where a side is whole anyway."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code, unparenthesised
from tl2npu.kernel.model import Copy, Op, Operand, Scalar
from tl2npu.kernel.symbolic import Sym, const
from tl2npu.passes.job import Job
from tl2npu.passes.npuir.to_gpu_like.regions import base
from tl2npu.passes.writing.statements import factor
from tl2npu.source.edits import Edits

Size = Sequence[tuple[Sym, str]]
_DIRECT = frozenset({"atomic_add", "atomic_addx4", "npuir_atomic_add", "npuir_atomic_addx4"})


def to_slices(job: Job) -> None:
    """Rewrite copies, additions and products with a size."""
    edits = Edits(job.file.index)
    for stmt in job.kernel.walk():
        if isinstance(stmt, Copy):
            size, operands = stmt.options.get("size"), [stmt.src, stmt.dst]
        elif isinstance(stmt, Op) and "size" in stmt.args:
            given, size = stmt.args["size"], None
            if isinstance(given, Scalar):
                size = given
            operands = [operand for _, operand in stmt.operands]
        else:
            continue
        if size is None or (isinstance(size.node, cst.Name) and size.node.value == "None"):
            continue
        _one(job, edits, stmt, size, operands)
    job.apply(edits)


def _one(job: Job, edits: Edits, stmt: Copy | Op, size: Scalar, operands: Sequence[Operand]) -> None:
    sizes = _numbers(job, stmt, size)
    argument = cst.ensure_type(job.file.index.parent(size.node), cst.Arg)
    for operand, own in zip(operands, _shares(stmt, operands, sizes), strict=True):
        text = _region(stmt, operand, own)
        if isinstance(stmt, Copy) and _start_is_enough(operand, own, operands, sizes):
            continue
        if text != code(operand.node):
            edits.replace(operand.node, cst.parse_expression(text))
    edits.remove(argument)
    job.change("TL444", stmt.node, f"wrote the size `{code(size.node)}` as slices")


def _numbers(job: Job, stmt: Copy | Op, size: Scalar) -> Size:
    node = size.node
    if isinstance(node, cst.Name) or not isinstance(node, (cst.List, cst.Tuple)):
        raise Blocked("TL442", stmt.node, f"cannot read the size `{code(node)}`")
    items = job.file.evaluator.sequence(node, stmt.env)
    return [(job.file.evaluator.sym(item, env), unparenthesised(item)) for item, env in items]


def _shares(stmt: Copy | Op, operands: Sequence[Operand], sizes: Size) -> list[Size]:
    """What each operand takes of the size."""
    if isinstance(stmt, Op) and stmt.op.name in ("gemm", "npuir_dot"):
        if len(sizes) != 3:
            raise Blocked("TL442", stmt.node, "the size of a gemm needs three numbers: [m, k, n]")
        m, k, n = sizes
        left = (k, m) if _is_set(stmt, "a_transpose") else (m, k)
        right = (n, k) if _is_set(stmt, "b_transpose") else (k, n)
        return [left, right, (m, n)]
    if isinstance(stmt, Copy) or stmt.op.name in _DIRECT:
        return [_trailing(operand, sizes) for operand in operands]
    if stmt.op.name.startswith(("reduce", "npuir_reduce")):
        return [sizes, _reduced(stmt, sizes)]
    if len(operands) == 2:
        return [sizes, sizes]
    raise Blocked("TL442", stmt.node, f"T.{stmt.op.name} with a size has no counterpart in Ascend C")


def _is_set(stmt: Op, name: str) -> bool:
    flag = stmt.args.get(name)
    return isinstance(flag, Scalar) and flag.sym.constant == 1


def _trailing(operand: Operand, sizes: Size) -> Size:
    rank = len(operand.buffer.shape)
    given = list(sizes)[-rank:]
    return [(const(1), "1")] * (rank - len(given)) + given


def _reduced(stmt: Op, sizes: Size) -> Size:
    dim = stmt.args.get("dim", stmt.args.get("dims"))
    node = dim.node if dim is not None else None
    if isinstance(node, (cst.List, cst.Tuple)) and len(node.elements) == 1:
        node = node.elements[0].value
    axis = -1 if node is None else None
    if isinstance(node, cst.Integer):
        axis = int(node.value)
    elif isinstance(node, cst.UnaryOperation) and code(node).replace(" ", "") == "-1":
        axis = -1
    if axis is None:
        raise Blocked("TL442", stmt.node, f"T.{stmt.op.name} has a size, but its axis is not a constant")
    if not -len(sizes) <= axis < len(sizes):
        raise Blocked("TL442", stmt.node, f"T.{stmt.op.name} has no axis {axis} in a size of {len(sizes)} numbers")
    found = list(sizes)
    found[axis] = const(1), "1"
    return found


def _start_is_enough(operand: Operand, own: Size, operands: Sequence[Operand], sizes: Size) -> bool:
    """A start index beside a tile that is taken as a whole."""
    if not operand.is_indexed:
        return False
    others = [other for other in operands if other is not operand]
    return all(
        other.dims is None
        and [s for s, _ in _trailing(other, sizes)] == list(other.buffer.shape)
        and len(other.buffer.shape) >= len(long(size for size, _ in own))
        for other in others
    )


def _region(stmt: Copy | Op, operand: Operand, sizes: Size) -> str:
    """The operand with slices; a tile that is meant as a whole stays a name, and a slice of this size as it is."""
    shape = operand.buffer.shape
    if operand.dims is None:
        if long(size for size, _ in sizes) == long(shape):
            return code(operand.node)  # also a column that is copied as a row
        starts = [""] * len(shape)
    else:
        starts = ["" if code(dim.node) == "0" else code(dim.node) for dim in operand.dims]
    parts = []
    dims = operand.dims or (None,) * len(shape)
    if not len(sizes) == len(dims) == len(shape):
        text = f"the size has {len(sizes)} numbers, and `{operand.buffer.name}` has {len(shape)} axes"
        raise Blocked("TL442", stmt.node, text)
    for dim, start, (size, text), own in zip(dims, starts, sizes, shape, strict=True):
        if dim is not None and not dim.is_point:
            if isinstance(stmt, Copy) or dim.extent != size:  # a copy takes one of them, says the language
                raise Blocked("TL442", stmt.node, f"the slice `{start}` and the size `{text}` give two extents")
            parts.append(start)
        elif size == own and not start:
            parts.append(":")
        elif size.constant == 1:
            parts.append(f"{start or 0} : {start} + 1" if start else "0:1")
        else:
            parts.append(f"{start} : {start} + {factor_of_sum(text)}" if start else f"0:{text}")
    return f"{base(operand)}[{', '.join(parts)}]"


def long(sizes: Iterable[Sym]) -> list[Sym]:
    """The extents that count."""
    return [size for size in sizes if size.constant != 1]


def factor_of_sum(text: str) -> str:
    """An expression as a part of a sum; only what binds weaker needs parentheses."""
    node = cst.parse_expression(text)
    return factor(text) if isinstance(node, cst.IfExp) else text
