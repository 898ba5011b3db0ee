"""TL617: a ``T.PersistentTileScheduler`` becomes a loop over the tiles of a block.

Block b takes tiles b, b + n, b + 2 n, ... of a flattened grid, n blocks in all. Each tile is taken once, in whatever
order: the groups in which the scheduler takes them are for the caches of a GPU (``tilelang/language/tile_schedule.py``
of tile-ai/tilelang). So ``while sched.valid(): ...; sched.next_tile()`` is a loop with as many turns as the block has
tiles, ``sched.current_iter`` its variable, and ``sched.m_idx``, ``sched.n_idx`` follow from it.
"""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.passes.job import Job
from tl2npu.passes.plain.unsupported.names import operator_name
from tl2npu.passes.writing.statements import Names, expression, factor, parse
from tl2npu.source.edits import Edits
from tl2npu.source.tree import calls_in, names_in, nodes_of

_PARAMETERS = ("num_m_tiles", "num_n_tiles")
_HINTS = frozenset({"swizzle_size", "name", "prefix"})
"""In which order tiles are taken, and what the state is called."""
_SCHEDULE = "annotate_ws_schedule"


@dataclass(frozen=True)
class _Loop:
    """``sched = ...; sched.init(block)``, and a loop in which the scheduler is all that says where it is."""

    name: str
    rows: str
    columns: str
    made: tuple[cst.BaseSmallStatement, ...]
    steps: tuple[cst.BaseSmallStatement, ...]


def written_out(job: Job) -> Job:
    """The job with loops for its schedulers; the job itself if it has none, or one that is used in another way."""
    names = {operator_name(job, call.func) for call in calls_in(job.located.node.body)}
    if "PersistentTileScheduler" not in names:
        return job
    done = job.copied()
    _without_schedule(done)
    found = _loops(done)
    launch = done.kernel.launch
    if found is None or launch is None or len(launch.grid) != 1 or len(launch.names) != 1:
        return job
    edits = Edits(done.file.index)
    fresh = Names(done)
    wave, workers, block = fresh.fresh("wave"), factor(code(launch.call.args[0].value)), launch.names[0]
    tile = f"({wave} * {workers} + {block})"
    texts = {
        "current_iter": wave,
        "m_idx": f"{tile} % {factor(found.rows)}",
        "n_idx": f"{tile} // {factor(found.rows)}",
    }
    for use in nodes_of(done.located.node.body, cst.Attribute):
        if isinstance(use.value, cst.Name) and use.value.value == found.name and use.attr.value in texts:
            above = done.file.index.parent(use)
            alone = isinstance(above, (cst.Assign, cst.Element)) or use.attr.value == "current_iter"
            text = texts[use.attr.value]
            edits.replace(use, expression(done, text if alone else f"({text})", use))
    for small in (*found.made, *found.steps):
        edits.remove(small)
    done.apply(edits)
    edits, test = Edits(done.file.index), f"{found.name}.valid()"
    total = f"{factor(found.rows)} * {factor(found.columns)}"
    for loop in nodes_of(done.located.node.body, cst.While):
        if code(loop.test) != test:
            continue
        head = f"for {wave} in T.serial(T.ceildiv({total} - {block}, {workers})):\n    pass\n"
        (written,) = parse(done, head, loop)
        assert isinstance(written, cst.For)
        edits.replace(loop, written.with_changes(body=loop.body, leading_lines=loop.leading_lines))
        done.change("TL617", loop, f"`while {code(loop.test)}` -> `for {wave} in T.serial(...)`")
    done.apply(edits)
    _with_one_clock(done, wave)
    return done


def _without_schedule(job: Job) -> None:
    """Drop what says which warps run what: it changes nothing of what the statements compute."""
    edits = Edits(job.file.index)
    for small in nodes_of(job.located.node.body, cst.Expr):
        if isinstance(small.value, cst.Call) and operator_name(job, small.value.func) == _SCHEDULE:
            edits.remove(small)
            job.change("TL115", small, f"`T.{_SCHEDULE}`: warps of a GPU")
    for arg in nodes_of(job.located.node.body, cst.Arg):
        if arg.keyword is not None and arg.keyword.value == "annotations" and _names_op(job, arg.value):
            edits.remove(arg)
    job.apply(edits)
    while block := next((node for node in nodes_of(job.located.node.body, cst.With) if _is_op(job, node)), None):
        edits = Edits(job.file.index)
        edits.unwrap(block)
        job.apply(edits)


def _names_op(job: Job, node: cst.BaseExpression) -> bool:
    """``{T.WSID: "copy"}``: what a schedule calls a statement."""
    elements = node.elements if isinstance(node, cst.Dict) else ()
    keys = [element.key for element in elements if isinstance(element, cst.DictElement)]
    return len(keys) == 1 and operator_name(job, keys[0]) == "WSID"


def _is_op(job: Job, node: cst.With) -> bool:
    call = node.items[0].item
    return len(node.items) == 1 and isinstance(call, cst.Call) and operator_name(job, call.func) == "ws_op"


def _loops(job: Job) -> _Loop | None:
    """All loops of the kernel's schedulers, if they have one name and all are made and used in the same way."""
    index, body = job.file.index, job.located.node.body
    made = [
        small
        for small in nodes_of(body, cst.Assign)
        if isinstance(small.value, cst.Call) and operator_name(job, small.value.func) == "PersistentTileScheduler"
    ]
    launch = job.kernel.launch
    targets = {code(small.targets[0].target) for small in made}
    sizes = [_sizes(small.value) for small in made if isinstance(small.value, cst.Call)]
    if launch is None or len(launch.names) != 1 or len(targets) != 1 or None in sizes or len(set(sizes)) != 1:
        return None
    (name,), size = targets, sizes[0]
    assert size is not None
    loops: list[cst.While] = []
    steps: list[cst.BaseSmallStatement] = []
    for use in names_in(body):
        above = index.parent(use)
        if use.value != name or isinstance(above, cst.AssignTarget):
            continue
        if not isinstance(above, cst.Attribute) or above.value is not use:
            return None
        call = index.parent(above)
        text = code(call) if isinstance(call, cst.Call) else ""
        around = index.parent(call) if isinstance(call, cst.Call) else None
        if text == f"{name}.valid()" and isinstance(around, cst.While) and around.test is call:
            last = around.body.body[-1]
            ends = isinstance(last, cst.SimpleStatementLine) and code(last.body[-1]).strip() == f"{name}.next_tile()"
            if around.orelse is not None or not ends or nodes_of(around.body, cst.Break, cst.Continue, cst.While):
                return None
            loops.append(around)
        elif text in (f"{name}.next_tile()", f"{name}.init({launch.names[0]})"):
            steps.append(cst.ensure_type(around, cst.Expr))
        elif text or above.attr.value not in ("m_idx", "n_idx", "current_iter"):
            return None
    nexts = sum(code(step) == f"{name}.next_tile()" for step in steps)
    return _Loop(name, *size, tuple(made), tuple(steps)) if loops and nexts == len(loops) else None


def _sizes(call: cst.Call) -> tuple[str, str] | None:
    named = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
    plain = [arg.value for arg in call.args if arg.keyword is None and not isinstance(arg.value, cst.SimpleString)]
    given = dict(zip(_PARAMETERS, plain, strict=False)) | {k: v for k, v in named.items() if k not in _HINTS}
    return (code(given["num_m_tiles"]), code(given["num_n_tiles"])) if given.keys() == set(_PARAMETERS) else None


def _with_one_clock(job: Job, wave: str) -> None:
    """Names that stand for the loop variable, and nothing else, go: warp groups must agree in what a name means.

    ``wave & 1`` becomes ``wave % 2``, which picks a stage in so many words.
    """
    assigned = [small for small in nodes_of(job.located.node.body, cst.Assign) if len(small.targets) == 1]
    plain = {code(small.targets[0].target) for small in assigned if code(small.value) == wave}
    others = {code(small.targets[0].target) for small in assigned if code(small.value) != wave}
    edits = Edits(job.file.index)
    for small in assigned:
        if code(small.targets[0].target) in plain - others:
            edits.remove(small)
    for use in names_in(job.located.node.body):
        if use.value in plain - others and not isinstance(job.file.index.parent(use), cst.AssignTarget):
            edits.replace(use, cst.Name(wave))
    job.apply(edits)
    edits = Edits(job.file.index)
    for node in nodes_of(job.located.node.body, cst.BinaryOperation):
        mask = int(node.right.value, 0) if isinstance(node.right, cst.Integer) else 0
        if isinstance(node.operator, cst.BitAnd) and code(node.left) == wave and mask & (mask + 1) == 0 < mask:
            edits.replace(node, node.with_changes(operator=cst.Modulo(), right=cst.Integer(str(mask + 1))))
    job.apply(edits)
