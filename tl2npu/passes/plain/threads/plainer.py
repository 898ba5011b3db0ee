"""TL109: code for single threads in the words that :mod:`tl2npu.passes.plain.threads.loops` reads."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.passes.job import Job
from tl2npu.passes.plain.threads import finer
from tl2npu.passes.plain.threads.lanes import Lanes, Unclear, lanes_of
from tl2npu.passes.plain.unsupported.names import operator_name, uses
from tl2npu.passes.writing.statements import Names, expression, parse
from tl2npu.source.edits import Edits
from tl2npu.source.tree import calls_in, names_in, nodes_of

_INDEX = "get_thread_binding"


def name_indices(job: Job) -> None:
    """Name an index that the kernel asks for in place, where nothing names it yet."""
    index, launch = job.file.index, job.kernel.launch
    calls = [index.parent(use.node) for use in uses(job) if use.shown.endswith(_INDEX)]
    places = [call for call in calls if isinstance(call, cst.Call) and not isinstance(index.parent(call), cst.Assign)]
    if launch is None or not places or len(places) < len(calls) or len({code(place) for place in places}) > 1:
        return
    name, edits = Names(job).fresh("tx", "thread"), Edits(index)
    for place in places:
        edits.replace(place, cst.Name(name))
    job.apply(edits)
    first, edits = job.kernel.launched.node.body.body[0], Edits(job.file.index)
    edits.replace_many(first, [*parse(job, f"{name} = {code(places[0])}\n", first), first])
    job.apply(edits)


def put(job: Job) -> None:
    """Name indices, write sums over all threads as additions, and give each thread one element."""
    name_indices(job)
    for edits in (_edits, finer.edits):
        try:
            lanes = lanes_of(job, (f"T.{_NAME}",))
        except Unclear:
            return
        if lanes is not None:
            job.apply(edits(job, lanes))


def put_in_copy(job: Job) -> Job:
    """A copy of the job in these words."""
    copy = job.copied()
    put(copy)
    return copy


# TL109: ``T.tvm_thread_allreduce`` with a sum: all threads add to one element on chip, and all of them read it.

_NAME = "tvm_thread_allreduce"
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
    calls = [call for call in calls_in(block.body) if operator_name(job, call.func) == _NAME]
    if len(calls) != 1:
        return None
    around = next(iter(list(job.file.index.ancestors(calls[0]))[1:]), None)
    if not isinstance(around, cst.Call) or operator_name(job, around.func) != "evaluate":
        return None
    given = [arg.value for arg in calls[0].args if arg.keyword is None]
    if len(given) != len(_CALL) or not _is_sum(job, block.items[0].item):
        return None
    _, value, condition, result, thread = given
    if not isinstance(value, cst.Subscript) or not isinstance(result, cst.Subscript):
        return None
    if code(condition) not in ("True", "T.bool(True)") or not isinstance(thread, cst.Name):
        return None
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


def _edits(job: Job, lanes: Lanes) -> Edits:
    """The sums as additions to a shared element, which takes the place of the threads' own results."""
    found = Edits(job.file.index)
    for each in of_kernel(job):
        name = code(each.result.value)
        dtype, uses = lanes.types.get(name), _uses(job, each, name)
        if each.thread not in lanes.extents or dtype is None or not lanes.all_named or uses is None:
            continue
        others = [axis for axis in lanes.extents if axis != each.thread]
        shape = ", ".join(lanes.extents[axis] for axis in others) or "1"
        where = ", ".join(others) or "0"
        text = f"if {each.thread} == 0:\n    {name}[{where}] = 0\nT.atomic_add({name}[{where}], {code(each.value)})\n"
        alloc, reads = uses
        found.replace(alloc, expression(job, f"T.alloc_shared([{shape}], {dtype})", alloc))
        found.replace_many(each.block, parse(job, text, each.block))
        for read in reads:
            found.replace(read, cst.parse_expression(f"{name}[{where}]"))
    return found


def _uses(job: Job, each: AllReduce, name: str) -> tuple[cst.BaseExpression, list[cst.Subscript]] | None:
    """Where the result is allocated, and what reads it; None if anything else stores to it."""
    index = job.file.index
    alloc: list[cst.BaseExpression] = []
    reads: list[cst.Subscript] = []
    inside = {id(node) for node in names_in(each.block)}
    for node in names_in(job.located.node.body):
        above = index.parent(node)
        if node.value != name or id(node) in inside:
            continue
        target = isinstance(above, cst.AssignTarget)
        if isinstance(above, cst.Subscript) and code(above) == f"{name}[0]":
            if isinstance(index.parent(above), (cst.AssignTarget, cst.AugAssign)):
                return None
            reads.append(above)
        elif target and above is not None and isinstance(assign := index.parent(above), cst.Assign):
            alloc.append(assign.value)
        else:
            return None
    return (alloc[0], reads) if len(alloc) == 1 else None
