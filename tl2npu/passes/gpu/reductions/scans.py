"""TL165: scans along an axis become loops. (Left as they are, the compiler would drop them without a word.)"""

from __future__ import annotations

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Memory, Op, Operand, Scalar
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import Names, parse
from tl2npu.passes.writing.tiles import extent_text
from tl2npu.source.edits import Edits

_MOST_AXES = 2


def scan(job: Job, stmt: Op, edits: Edits, names: Names) -> None:
    """Write ``T.cumsum`` or ``T.cummax`` as a loop over rows, or over the elements of a row."""
    src, dst = stmt.args["src"], stmt.args.get("dst")
    if isinstance(dst, Scalar) and code(dst.node) == "None":
        dst = None
    target = src if dst is None else dst
    if not isinstance(src, Operand) or not isinstance(target, Operand):
        raise Blocked("TL164", stmt.node, f"cannot tell which buffer `T.{stmt.op.name}` scans")
    for operand in (src, target):
        if not operand.is_whole or operand.buffer.memory is not Memory.UB:
            raise Blocked("TL164", stmt.node, f"`T.{stmt.op.name}` needs a whole tile, not `{code(operand.node)}`")
    if src.buffer.shape != target.buffer.shape:
        raise Blocked("TL164", stmt.node, f"`{src.buffer.name}` and `{target.buffer.name}` have different shapes")
    rank = len(src.buffer.shape)
    dim, reverse = _number(stmt, "dim"), _number(stmt, "reverse")
    if dim is None or not -rank <= dim < rank or rank > _MOST_AXES:
        text = "needs an axis that is a constant, and a tile of at most two axes"
        raise Blocked("TL164", stmt.node, f"`T.{stmt.op.name}` {text}")
    lines = [] if src.buffer is target.buffer else [f"T.copy({code(src.node)}, {code(target.node)})"]
    step, row = names.fresh("i", "step"), names.fresh("r", "row")
    if reverse is None:  # a parameter of the factory: the kernel has one of the two loops
        backward, forward = (_loop(stmt, target, dim % rank, way, step, row) for way in (True, False))
        lines += [f"if {code(stmt.args['reverse'].node)}:", *_indented(backward), "else:", *_indented(forward)]
    else:
        lines += _loop(stmt, target, dim % rank, bool(reverse), step, row)
    edits.replace_many(stmt.node, parse(job, "\n".join(lines) + "\n", stmt.node))
    text = "rows are added one after another" if dim % rank < rank - 1 else "element by element (slow)"
    job.change("TL165", stmt.node, f"wrote a loop for `T.{stmt.op.name}`: {text}")


def _number(stmt: Op, name: str) -> int | None:
    arg = stmt.args.get(name)
    return 0 if arg is None else arg.sym.constant if isinstance(arg, Scalar) else None


def _loop(stmt: Op, target: Operand, axis: int, reverse: bool, step: str, row: str) -> list[str]:
    buffer, text = target.buffer, code(target.node)
    largest = stmt.op.name == "cummax"
    size = extent_text(buffer, axis)
    last = f"{size} - 1" if not size.isdigit() else str(int(size) - 1)
    before, here = (f"{last} - {step}", f"{_less(size, 2)} - {step}") if reverse else (step, f"{step} + 1")
    if axis < len(buffer.shape) - 1:
        rows = f"{text}[{here}, :], {text}[{here}, :], {text}[{before}, :]"
        return [f"for {step} in T.serial({last}):", f"    T.tile.{'max' if largest else 'add'}({rows})"]
    lines, indent, prefix = [], "", ""
    if len(buffer.shape) == _MOST_AXES:
        lines, indent, prefix = [f"for {row} in T.serial({extent_text(buffer, 0)}):"], "    ", f"{row}, "
    new, old = f"{text}[{prefix}{here}]", f"{text}[{prefix}{before}]"
    lines.append(f"{indent}for {step} in T.serial({last}):")
    if largest:
        lines += [f"{indent}    if {new} < {old}:", f"{indent}        {new} = {old}"]
    else:
        lines.append(f"{indent}    {new} = {new} + {old}")
    return lines


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _less(size: str, by: int) -> str:
    return str(int(size) - by) if size.isdigit() else f"{size} - {by}"
