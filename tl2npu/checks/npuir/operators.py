"""TL461 to TL467: what AscendNPU IR asks of the operators and of the launch of a kernel."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tl2npu.checks.language.signatures import mismatch
from tl2npu.checks.subject import Finding, Subject
from tl2npu.dialects import npuir, pipes
from tl2npu.dialects.catalogue import Kind, Operator
from tl2npu.dialects.npuir import SHORT
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Copy, Launch, Loop, Memory, Op, Operand, Scalar
from tl2npu.kernel.npuir_loops import scalar_reason
from tl2npu.kernel.sizes import ITEM_SIZE
from tl2npu.kernel.symbolic import Sym, const
from tl2npu.source.tree import calls_in, nodes_of


def arguments(subject: Subject) -> Iterator[Finding]:
    """Findings about every call of an operator in the launch, and in what it calls."""
    inlined = [placed.stmt.node for placed in subject.statements if placed.stmt.via]
    for root in (subject.kernel.launched.node, *inlined):
        for node in calls_in(root):
            op = npuir.lookup(subject.file.names.resolve(node.func) or "")
            if op is None or op.kind is Kind.SCALAR:
                continue
            message = mismatch(op, node) or _pipe(op, node)
            if message:
                yield Finding("TL461", node, message)
    for placed in subject.statements:
        if isinstance(placed.stmt, Op) and placed.stmt.op.kind is Kind.REDUCE:
            yield from _positional_clear(placed.stmt)


def _positional_clear(stmt: Op) -> Iterator[Finding]:
    """``T.reduce_max(x, m, 1, True)``: the fourth position is ``size``."""
    size = stmt.args.get("size")
    if size is not None and isinstance(size.node, cst.Name) and size.node.value in ("True", "False"):
        text = f"the fourth position of T.{stmt.op.name} is `size`: write `clear={code(size.node)}`"
        yield Finding("TL461", stmt.node, text)


_PIPES = {"rs": "resource", "set_flag": "other", "wait_flag": "other", "pipe_barrier": "pipe"}


def _pipe(op: Operator, call: cst.Call) -> str:
    """What is wrong with the pipe that a call names."""
    if op.name not in _PIPES or any(arg.star for arg in call.args):
        return ""
    bound = op.bind([(arg.keyword.value if arg.keyword is not None else None, arg.value) for arg in call.args])
    node = bound.get(_PIPES[op.name])
    name = node.evaluated_value if isinstance(node, cst.SimpleString) else None
    if not isinstance(name, str) or name.startswith("VIRTUAL_PIPE_"):
        return ""
    if op.name == "rs" and name.lower().removeprefix("pipe_") == "c":  # examples call a frame of the cube core so
        return ""
    return pipes.unknown_npuir(name)


_VALUES = {"vbrc": "src", "fill": "value"}


def fills(subject: Subject) -> Iterator[Finding]:
    """Findings about every fill."""
    for placed in subject.statements:
        stmt = placed.stmt
        if not isinstance(stmt, Op):
            continue
        value = stmt.args.get(_VALUES.get(SHORT.get(stmt.op.name, ""), ""))
        if isinstance(value, Operand) or not isinstance(value, Scalar) or value.loads:
            continue
        called = any(subject.file.names.operator(call.func) for call in calls_in(value.node))
        if not called and subject.late.is_outside(value.node, stmt.env):
            text = f"`{code(value.node)}` is a Python number, which T.{stmt.op.name} rejects"
            yield Finding("TL462", stmt.node, text)


_PAIRS = {
    **dict.fromkeys(("vbrc", "vcast", "vcos", "vsin", "verf", "vtanh", "transpose", "pad"), ("src", "dst")),
    "reduce": ("src", "dst"),
    **dict.fromkeys(("reduce_max", "reduce_min", "reduce_sum", "reduce_abssum", "reduce_absmax"), ("buffer", "out")),
}


def reductions(subject: Subject) -> Iterator[Finding]:
    """Findings about every such operator without ``size``."""
    for placed in subject.statements:
        stmt = placed.stmt
        if not isinstance(stmt, Op) or SHORT.get(stmt.op.name) not in _PAIRS or "size" in stmt.args:
            continue
        source, target = (stmt.args.get(name) for name in _PAIRS[SHORT[stmt.op.name]])
        if not isinstance(source, Operand) or not isinstance(target, Operand):
            continue
        left, right = _extents(source), _extents(target)
        if len(left) != len(right):
            kept = "; a reduction keeps the axis, with extent 1" if stmt.op.kind is Kind.REDUCE else ""
            text = f"T.{stmt.op.name} from {_shown(left)} to {_shown(right)}: the ranks differ{kept}"
            yield Finding("TL463", stmt.node, text)


_TYPES = {("float16", "float32"), ("bfloat16", "float32"), ("float32", "float32"), ("int8", "int32")}
_SYNONYMS = {"float": "float32"}


def gemm(subject: Subject) -> Iterator[Finding]:
    """Findings about every product."""
    for placed in subject.statements:
        stmt = placed.stmt
        if isinstance(stmt, Op) and SHORT.get(stmt.op.name) == "gemm" and stmt.op.param("initC") is not None:
            yield from _gemm(subject, stmt)


def _gemm(subject: Subject, stmt: Op) -> Iterator[Finding]:
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
    if any(len(_extents(item)) != 2 for item in (left, right, result)):
        return
    m, k = _turned(_extents(left), stmt.args.get("a_transpose"))
    k2, n = _turned(_extents(right), stmt.args.get("b_transpose"))
    rows, columns = _extents(result)
    for one, other in ((k, k2), (m, rows), (n, columns)):
        if subject.known_different(one, other):
            text = f"{_shown(_extents(left))} by {_shown(_extents(right))} into {_shown(_extents(result))}"
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


def copies(subject: Subject) -> Iterator[Finding]:
    """Findings about every copy."""
    for placed in subject.statements:
        stmt = placed.stmt
        if isinstance(stmt, Copy):
            message = _of_copy(stmt)
            if message:
                yield Finding("TL465", stmt.node, message)


def _of_copy(stmt: Copy) -> str:
    width, size = stmt.options.get("coalesced_width"), stmt.options.get("size")
    if width is not None and isinstance(width.node, (cst.List, cst.Tuple)):
        return f"the third argument of T.copy is not its size: write `size={code(width.node)}` or slices"
    sides = (stmt.src, stmt.dst)
    if size is not None and any(_is_slice(side) for side in sides):
        return "this copy has slices and `size`; give one of them"
    if size is None and all(_is_start(side) for side in sides):
        return "both sides are start indices, so the copy has no size"
    if all(side.buffer.memory is Memory.GM for side in sides):
        return "AscendNPU IR cannot copy from global memory to global memory"
    return ""


def _is_slice(operand: Operand) -> bool:
    return any(not dim.is_point for dim in operand.dims or ())


def _is_start(operand: Operand) -> bool:
    return operand.dims is not None and not _is_slice(operand)


_AXES = 2


def launch(subject: Subject) -> Iterator[Finding]:
    """Findings about the launch, and about loops without bounds and assertions in it."""
    launch = subject.kernel.launched
    if launch.is_npu:
        yield from _launch(launch)
    else:
        yield Finding("TL466", launch.call, "this is a GPU launch: `is_npu=True` is missing", "warning")
    for placed in subject.statements:
        if isinstance(placed.stmt, Loop) and placed.stmt.kind == "while":
            yield Finding(
                "TL466", placed.stmt.node, "AscendNPU IR does not compile `while`; write a loop with fixed bounds"
            )
    for node in nodes_of(launch.node.body, cst.Assert):
        yield Finding("TL466", node, "AscendNPU IR does not compile `assert` in a kernel")


def _launch(launch: Launch) -> Iterator[Finding]:
    if len(launch.grid) > _AXES:
        yield Finding("TL466", launch.call, f"the grid has {len(launch.grid)} axes; AscendNPU IR supports one or two")
    if launch.threads is not None:
        yield Finding("TL466", launch.call, "a launch of AscendNPU IR has no `threads`")
    if launch.names and len(launch.names) != len(launch.grid) + 1:
        names = ", ".join(launch.names)
        text = f"the launch returns {len(launch.grid) + 1} values, but `{names}` takes {len(launch.names)}"
        yield Finding("TL466", launch.call, text)


def parallel(subject: Subject) -> Iterator[Finding]:
    """One finding for each loop nest."""
    for placed in subject.statements:
        stmt = placed.stmt
        if isinstance(stmt, Loop) and stmt.kind == "parallel" and not any(p.kind == "parallel" for p in placed.loops):
            why = scalar_reason(stmt, subject.late, subject.file.names)
            if why:
                yield Finding("TL467", stmt.node, f"{why}, so the loop runs element by element")


# What an operator takes of a buffer, as the language works it out.


def _extents(operand: Operand) -> tuple[Sym, ...]:
    """The sizes of the part that is named: all of a buffer, the extent of a slice, 1 for an index."""
    if operand.dims is None:
        return operand.buffer.shape
    return tuple(const(1) if dim.extent is None else dim.extent for dim in operand.dims)


def _shown(sizes: tuple[Sym, ...]) -> str:
    """Sizes as a reader writes them."""
    return f"[{', '.join(map(str, sizes))}]"
