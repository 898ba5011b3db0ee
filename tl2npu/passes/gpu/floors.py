"""TL760: whole divisions of what may be negative, which Ascend C rounds towards zero, in a form that rounds down.

In the order of preference: ``>>`` and ``&`` for powers of two; a dividend that is not negative, by multiples of the
divisor that are added; the division and the remainder of C, corrected by the sign of the remainder. Elements of tiles
always take the last one: ``T.truncmod`` keeps a ``T.Parallel`` element by element, as the division did, where a shift,
a ``&`` or a ``T.truncdiv`` alone is taken for a vector instruction (``Muls(y, x, 1.0f / 4)`` of int32 is 0).
"""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.ranges.floors import Division, doubtful
from tl2npu.kernel.symbolic import const
from tl2npu.passes.job import Job
from tl2npu.passes.rounds import until_settled
from tl2npu.passes.writing.statements import expression
from tl2npu.source.edits import Edits
from tl2npu.source.tree import walk

_MULTIPLES = (1, 2, 3, 4, 8)
_BITS = {"int8": 8, "int16": 16, "int64": 64}


def round_down(job: Job) -> None:
    """Write such divisions anew; raises :class:`Blocked` for one in a statement that cannot be."""
    until_settled(job, lambda: _round(job))


def _round(job: Job) -> bool:
    found = [one for one in doubtful(job.kernel, job.located.evaluator, job.late) if not one.stmt.via]
    nodes = {id(one.node) for one in found}
    edits, done = Edits(job.file.index), set[int]()
    for one in found:
        if id(one.node) in done or any(id(part) in nodes for part in walk(one.node) if part is not one.node):
            continue  # the inner one first
        done.add(id(one.node))
        if not isinstance(one.node, cst.BaseExpression):
            text = f"`{code(one.left)}` may be negative: the NPU rounds the quotient towards zero, a GPU rounds it down"
            raise Blocked("TL761", one.node, text)
        shown, text = code(one.node), _text(one)
        around = job.file.index.parent(one.node)
        alone = isinstance(around, (cst.Index, cst.Arg, cst.Assign, cst.Slice, cst.Comparison, cst.AnnAssign))
        edits.replace(one.node, expression(job, text if alone else f"({text})", one.node))
        job.change("TL760", one.node, f"`{shown}` may have a negative dividend: wrote a form that rounds down")
    job.apply(edits)
    return bool(done)


def _text(one: Division) -> str:
    left, right = _operand(one.left), _operand(one.right)
    size = one.divisor.constant
    sign = one.sign
    if sign == "ceildiv":
        left, sign = (f"({left} + {size - 1})" if size is not None else f"({left} + {right} - 1)"), "//"
    elements = one.in_parallel and one.elements
    if size is not None and size > 0 and size & (size - 1) == 0 and not elements:
        return f"{left} >> {size.bit_length() - 1}" if sign == "//" else f"{left} & {size - 1}"
    if one.positive and not elements:
        for times in _MULTIPLES:
            if one.bounds.is_not_negative(one.goal + one.divisor * const(times)):
                moved = f"({_sum(one, left, times)}) {sign} {right}"
                return f"{moved} - {times}" if sign == "//" else moved
    inner = left[1:-1] if left == f"({code(one.left)})" or one.sign == "ceildiv" else left
    rest = f"T.truncmod({inner}, {right})"
    last = _BITS.get(max((load.buffer.dtype for load in one.elements), key=lambda d: _BITS.get(d, 32), default=""), 32)
    if one.positive:
        low = f"({rest} >> {last - 1})"
    else:
        low = f"((({rest} ^ {right}) & ({rest} | (0 - {rest}))) >> {last - 1})"
    return f"T.truncdiv({inner}, {right}) + {low}" if sign == "//" else f"{rest} - {low} * {right}"


def _sum(one: Division, left: str, times: int) -> str:
    """The dividend with a multiple of the divisor."""
    size, node = one.divisor.constant, one.left
    if size is None:
        return f"{left} + {_operand(one.right)}" if times == 1 else f"{left} + {times} * {_operand(one.right)}"
    if one.sign != "ceildiv" and isinstance(node, cst.BinaryOperation) and isinstance(node.right, cst.Integer):
        rest = size * times - int(node.right.value, 0)
        if isinstance(node.operator, cst.Subtract):
            return f"{code(node.left)} {'+' if rest > 0 else '-'} {abs(rest)}" if rest else code(node.left)
    return f"{left} + {size * times}"


def _operand(node: cst.BaseExpression) -> str:
    plain = isinstance(node, (cst.Name, cst.Integer, cst.Subscript, cst.Call, cst.Attribute))
    return code(node) if plain or node.lpar else f"({code(node)})"
