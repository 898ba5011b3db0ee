"""TL314: two slots that take turns, for the value of this iteration and of the one before, become two tiles.

``state[i % 2]`` is written in iteration ``i`` and ``state[1 - i % 2]`` holds what iteration ``i - 1`` wrote. The same
is one tile for this iteration and one that takes its value over at the beginning of the next; a slot chosen by an index
cannot be split between the vector cores (TL826). Where the loop is entered again without a new start, the turns go on
only if it ran an even number of times before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.access import accesses
from tl2npu.kernel.expressions import code
from tl2npu.kernel.flow import Flow, writes_of
from tl2npu.kernel.model import Alloc, Buffer, Copy, Let, Loop, Memory, Op, Operand, Stmt, walk
from tl2npu.kernel.symbolic import Sym, ceildiv, const, opaque
from tl2npu.passes.ascend.mma.numbers import Numbers
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import Names, parse
from tl2npu.source.edits import Edits


@dataclass(frozen=True, eq=False)
class Turns:
    """A buffer of two slots that take turns in a loop; ``current`` and ``previous`` are its operands there."""

    buffer: Buffer
    loop: Loop
    current: tuple[Operand, ...]
    previous: tuple[Operand, ...]
    whole: tuple[Operand, ...]


def to_tiles(job: Job) -> None:
    """Give this iteration and the one before a tile each, for every such buffer."""
    for name in [buffer.name for buffer in job.kernel.buffers.values() if _has_two_slots(buffer)]:
        flow = Flow(job.kernel)
        found = _find(flow, job.kernel.buffers[name])
        if found is not None and _starts_anew(flow, found) and _goes_on(job, flow, found):
            _write(job, flow, found)


def _has_two_slots(buffer: Buffer) -> bool:
    return buffer.memory is Memory.UB and len(buffer.shape) == 3 and buffer.shape[0] == const(2)


def _find(flow: Flow, buffer: Buffer) -> Turns | None:
    uses = [(s, a.operand) for s in flow.kernel.walk() for a in accesses(s) if a.operand.buffer is buffer]
    indexed = [(s, o) for s, o in uses if o.dims is not None]
    loop = flow.loops(indexed[0][0])[-1] if indexed and flow.loops(indexed[0][0]) else None
    if loop is None or len(loop.ranges) != 1 or not loop.ranges[0].start.is_zero or loop.kind == "parallel":
        return None
    turn = loop.ranges[0].var % 2
    current: list[Operand] = []
    previous: list[Operand] = []
    for stmt, operand in indexed:
        slot = _slot(operand)
        if loop not in flow.parents[stmt] or slot is None or not isinstance(stmt, (Copy, Op)) or stmt.via:
            return None
        if slot == turn:
            current.append(operand)
        elif slot in (1 - turn, (loop.ranges[0].var + 1) % 2, (loop.ranges[0].var - 1) % 2):
            previous.append(operand)
        else:
            return None
    written = [o for s, o in writes_of(flow.kernel.body, buffer) if o.dims is not None]
    if not previous or any(o in previous for o in written):
        return None
    whole = [(s, o) for s, o in uses if o.dims is None]
    if any(not _fills(s) or loop in flow.parents[s] for s, _ in whole):
        return None
    return Turns(buffer, loop, tuple(current), tuple(previous), tuple(o for _, o in whole))


def _slot(operand: Operand) -> Sym | None:
    dims = operand.dims or ()
    rest = zip(dims[1:], operand.buffer.shape[1:], strict=False)
    if len(dims) != 3 or not dims[0].is_point or not all(d.covers(s) for d, s in rest):
        return None
    return dims[0].lo


def _fills(stmt: Stmt) -> bool:
    return isinstance(stmt, Op) and stmt.op.name in ("tile.fill", "fill", "clear", "tile.clear")


def _starts_anew(flow: Flow, found: Turns) -> bool:
    """In every iteration the slot of this one is written as a whole before it is read."""
    for stmt in walk(found.loop.body):
        for access in accesses(stmt):
            if not access.reads or access.operand not in found.current:
                continue
            steps = [s.stmt for s in flow.before(stmt) if s.stmt in found.loop.body]
            if not any(_sets(s, found) for s in steps):
                return False
    return True


def _sets(stmt: Stmt, found: Turns) -> bool:
    own = [a for a in accesses(stmt) if a.operand in found.current]
    return any(a.writes for a in own) and not any(a.reads for a in own)


def _goes_on(job: Job, flow: Flow, found: Turns) -> bool:
    """What the loop finds in the slot of the iteration before is the fill, or what its last run wrote last."""
    block = list(flow.block(found.loop))
    before = block[: block.index(found.loop)]
    if any(o in found.whole for s in before for a in accesses(s) for o in [a.operand]):
        return True
    around = flow.loops(found.loop)
    fills = [s for s in flow.kernel.walk() if any(a.operand in found.whole for a in accesses(s))]
    if not around or not fills or any(around[-1] in flow.parents[s] for s in fills):
        return False
    outer = flow.parents[around[-1]]
    if not any(set(flow.parents[s]) <= set(outer) and s in [x.stmt for x in flow.before(found.loop)] for s in fills):
        return False
    again = [p for p in flow.loops(around[-1]) if not any(p in flow.parents[s] for s in fills)]
    return not again and _even_but_last(job, flow, found.loop, around[-1])


def _even_but_last(job: Job, flow: Flow, loop: Loop, around: Loop) -> bool:
    """The loop runs an even number of times, in all rounds of the loop around it but the last."""
    numbers = Numbers(job)
    extent = loop.ranges[0].extent
    if numbers.is_even(extent):
        return True
    let = next((s for s in flow.kernel.walk() if isinstance(s, Let) and s.bound == extent), None)
    sizes = _smaller(job, let) if let is not None else None
    item = around.ranges[0]
    if sizes is None or len(around.ranges) != 1 or not item.start.is_zero:
        return False
    for full, rest in (sizes, sizes[::-1]):
        total = rest + item.var * full
        if not any(total.depends_on(v) for v in item.var.variables()) and item.extent == ceildiv(total, full):
            return numbers.is_even(full)
    return False


def _smaller(job: Job, let: Let) -> tuple[Sym, Sym] | None:
    """``a`` and ``b`` of ``min(a, b)``, also written as ``if_then_else(a < b, a, b)``."""
    node, env, evaluator = let.value.node, let.env, job.located.evaluator
    if not isinstance(node, cst.Call):
        return None
    name = (evaluator.names.resolve(node.func) or code(node.func)).rsplit(".", 1)[-1]
    args = [arg.value for arg in node.args]
    if name == "min" and len(args) == 2:
        return evaluator.sym(args[0], env), evaluator.sym(args[1], env)
    if name != "if_then_else" or len(args) != 3:
        return None
    condition, (left, right) = evaluator.sym(args[0], env), (evaluator.sym(a, env) for a in args[1:])
    smaller = [opaque(head, left, right) for head in ("LessThan", "LessThanEqual")]
    smaller += [opaque(head, right, left) for head in ("GreaterThan", "GreaterThanEqual")]
    return (left, right) if condition in smaller else None


def _write(job: Job, flow: Flow, found: Turns) -> None:
    buffer = found.buffer
    alloc = next(s for s in flow.kernel.walk() if isinstance(s, Alloc) and s.buffer is buffer)
    if not isinstance(alloc.node, cst.Assign):
        return
    edits = Edits(job.file.index)
    old = Names(job).fresh(f"{buffer.name}_prev", f"{buffer.name}_previous")
    slot = buffer.shape_nodes[0]
    element = cst.ensure_type(job.file.index.parent(slot), cst.Element)
    shape = job.file.index.parent(element)
    assert isinstance(shape, (cst.List, cst.Tuple))
    short = shape.with_changes(elements=shape.elements[1:])
    assert isinstance(buffer.node, cst.Call)
    args = [arg.with_changes(value=short) if arg.value is shape else arg for arg in buffer.node.args]
    line = alloc.node.with_changes(value=buffer.node.with_changes(args=args))
    edits.replace_many(alloc.node, [line, line.with_changes(targets=[cst.AssignTarget(cst.Name(old))])])
    for operands, name in ((found.current, buffer.name), (found.previous, old)):
        for operand in operands:
            edits.replace(operand.node, cst.Name(name))
    job.apply(edits)
    _take_over(job, buffer.name, old)
    job.change("TL314", alloc.node, f"wrote `{buffer.name}` and `{old}` for a ping-pong buffer")


def _take_over(job: Job, name: str, old: str) -> None:
    """At its first use in an iteration the tile hands its value to that of the iteration before."""
    flow = Flow(job.kernel)
    user = next(s for s in flow.kernel.walk() if any(a.operand.buffer.name == old for a in accesses(s)))
    loop = flow.loops(user)[-1]
    first = next(s for s in loop.body if _touches([s], (name, old)))
    (line,) = parse(job, f"T.copy({name}, {old})\n", first.node)
    edits = Edits(job.file.index)
    edits.replace_many(first.node, [line, first.node])
    job.apply(edits)


def _touches(stmts: Sequence[Stmt], names: Sequence[str]) -> bool:
    return any(a.operand.buffer.name in names for s in walk(stmts) for a in accesses(s))
