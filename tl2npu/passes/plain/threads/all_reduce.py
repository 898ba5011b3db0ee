"""TL109: ``T.tvm_thread_allreduce`` with a sum: all threads add to one element on chip, and all of them read it."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.passes.job import Job
from tl2npu.passes.plain.threads.lanes import Lanes
from tl2npu.passes.plain.unsupported.names import operator_name
from tl2npu.passes.writing.statements import Names, parse
from tl2npu.source.edits import Edits
from tl2npu.source.tree import calls_in, nodes_of

NAME = "tvm_thread_allreduce"
"""What is read as loops."""
_CALL = ("size", "value", "condition", "result", "thread")


@dataclass(frozen=True, eq=False)
class AllReduce:
    """``block``: the statement. ``value`` and ``result``: elements. ``thread``: the index of the threads that add."""

    block: cst.With
    value: cst.Subscript
    result: cst.Subscript
    thread: str


def of_kernel(job: Job) -> list[AllReduce]:
    """The sums over threads of a kernel that are understood."""
    return [found for block in nodes_of(job.located.node.body, cst.With) if (found := _of(job, block)) is not None]


def _of(job: Job, block: cst.With) -> AllReduce | None:
    """``with T.attr(T.comm_reducer(lambda x, y: x + y, [zero]), "reduce_scope", _): T.evaluate(T.tvm_...(...))``."""
    if len(block.items) != 1 or len(block.body.body) != 1 or block.items[0].asname is not None:
        return None
    calls = [call for call in calls_in(block.body) if operator_name(job, call.func) == NAME]
    around = job.file.index.parent(job.file.index.parent(calls[0])) if len(calls) == 1 else None
    if not isinstance(around, cst.Call) or operator_name(job, around.func) != "evaluate":
        return None
    given = [arg.value for arg in calls[0].args if arg.keyword is None]
    if len(given) != len(_CALL) or not _is_sum(job, block.items[0].item):
        return None
    _, value, condition, result, thread = given
    elements = isinstance(value, cst.Subscript) and isinstance(result, cst.Subscript)
    if not elements or code(condition) not in ("True", "T.bool(True)") or not isinstance(thread, cst.Name):
        return None
    assert isinstance(value, cst.Subscript) and isinstance(result, cst.Subscript)
    return AllReduce(block, value, result, thread.value)


def _is_sum(job: Job, node: cst.BaseExpression) -> bool:
    """``T.attr`` with a reducer that adds, from 0."""
    if not isinstance(node, cst.Call) or operator_name(job, node.func) != "attr" or not node.args:
        return False
    reducer = node.args[0].value
    if not isinstance(reducer, cst.Call) or operator_name(job, reducer.func) != "comm_reducer":
        return False
    if len(reducer.args) != 2:
        return False
    function, zeros = (arg.value for arg in reducer.args)
    if not isinstance(function, cst.Lambda) or not isinstance(zeros, (cst.List, cst.Tuple)) or len(zeros.elements) != 1:
        return False
    zero = zeros.elements[0].value
    if isinstance(zero, cst.Call) and zero.args:
        zero = zero.args[0].value
    body, names = function.body, [param.name.value for param in function.params.params]
    added = isinstance(body, cst.BinaryOperation) and isinstance(body.operator, cst.Add)
    both = added and [code(body.left), code(body.right)] in (names, names[::-1])  # type: ignore[attr-defined]
    return both and len(names) == 2 and code(zero) in ("0", "0.0")


def edits(job: Job, lanes: Lanes) -> Edits:
    """The sums as additions to a shared element."""
    found, names = Edits(job.file.index), Names(job)
    for each in of_kernel(job):
        own = lanes.types.get(code(each.result.value))
        if each.thread not in lanes.extents or own is None or not lanes.all_named:
            continue
        others = [name for name in lanes.extents if name != each.thread]
        total = names.fresh(f"{code(each.value.value)}_sum")
        shape = "".join(f"{lanes.extents[name]}, " for name in others) or "1,"
        element = f"{total}[{', '.join(others) or '0'}]"
        text = (
            f"{total} = T.alloc_shared(({shape.strip()}), {own})\n"
            f"if {each.thread} == 0:\n    {element} = 0\n"
            f"T.atomic_add({element}, {code(each.value)})\n"
            f"{code(each.result)} = {element}"
        )
        found.replace_many(each.block, parse(job, text, each.block))
    return found
