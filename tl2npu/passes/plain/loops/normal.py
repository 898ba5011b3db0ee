"""TL119, TL120: loops and scalar statements that the NPU's front end does not know.

Nests of parallel loops are the business of :mod:`tl2npu.passes.plain.loops.nests` and, where they are one loop, of
:mod:`tl2npu.passes.plain.loops.flat`; ``continue`` that of :mod:`tl2npu.passes.plain.loops.continues`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import libcst as cst

from tl2npu.kernel.access import accesses
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.environment import Env
from tl2npu.kernel.expressions import code, unparenthesised
from tl2npu.kernel.model import Alloc, Branch, Loop, Memory, Operand, Range, Stmt, Store, walk, walk_with_parents
from tl2npu.kernel.ranges.bounds import Bounds, is_size
from tl2npu.kernel.ranges.iterations import may_meet
from tl2npu.kernel.ranges.reach import Reach, parents_of
from tl2npu.kernel.symbolic import Sym, const
from tl2npu.passes.job import Job
from tl2npu.passes.plain.loops.axes import INDEPENDENT, MOST_AXES
from tl2npu.passes.plain.loops.continues import drop_continues
from tl2npu.passes.plain.loops.counted import to_serial
from tl2npu.passes.plain.loops.flat import flatten
from tl2npu.passes.plain.loops.independent import to_parallel
from tl2npu.passes.plain.loops.nests import untangle
from tl2npu.passes.plain.types.names import STRINGS
from tl2npu.passes.rounds import until_settled
from tl2npu.passes.writing.statements import Names, expression, factor, parse
from tl2npu.passes.writing.substitute import bound_names, substituted
from tl2npu.passes.writing.tiles import Tiles, dtype_text, shape_text
from tl2npu.source.edits import Edits
from tl2npu.source.tree import names_in, nodes_of

_CAPITALS = {"Serial": "serial", "Unroll": "unroll", "Vectorized": "vectorized"}
_DROPPED = frozenset({"explicit", "unroll_factor"})
_JUMPS: tuple[type[cst.CSTNode], ...] = (cst.While, cst.Break)


def normalise(job: Job, *, nests: bool = True) -> None:
    """``T.Serial``, steps, ``unroll_factor``, ``T.vectorized`` and so on become plain ``T.serial`` and ``T.unroll``.

    ``nests``: parallel loops in each other, and serial ones in parallel ones, are taken apart too.
    """
    to_serial(job)
    _refuse_jumps(job)
    to_parallel(job, proved=nests)
    use_index(job)
    drop_continues(job)
    _plain_calls(job)
    _plain_assignments(job)
    _conditional_values(job)
    _steps(job)
    _keep_old_values(job, MOST_AXES if nests else 0)
    if nests:
        flatten(job)
        untangle(job)
        _separate_versions(job)
    _narrow_loops(job)


def _refuse_jumps(job: Job) -> None:
    for node in nodes_of(job.located.node.body, *_JUMPS):
        if isinstance(node, cst.While):
            raise Blocked("TL120", node, "the trip count of this `while` is not known at compile time")
        raise Blocked("TL120", node, "this statement leaves a loop early")


def _plain_calls(job: Job) -> None:
    """The spelling in lower case, without arguments that only unroll for a GPU, and without a step of 1."""
    edits = Edits(job.file.index)
    for stmt in job.kernel.walk():
        if not isinstance(stmt, Loop) or stmt.call is None or stmt.via:
            continue
        func = stmt.call.func
        name = job.file.names.operator(func)
        plain = _CAPITALS.get(name, name)
        if plain == "unroll" and any(job.late.is_late(item.extent) for item in stmt.ranges):
            plain = "serial"  # "Cannot unroll non-constant loop"
        gone = [arg for arg in stmt.call.args if arg.keyword is not None and arg.keyword.value in _DROPPED]
        step = _step_argument(stmt.call)
        if step is not None and all(item.step == const(1) for item in stmt.ranges):
            gone.append(step)
        for arg in gone:
            edits.remove(arg)
        if plain != name:
            edits.replace(func, expression(job, f"T.{plain}", func))
        if gone or plain != name:
            why = ": its length is not constant" if name == "unroll" != plain else " without GPU-only arguments"
            job.change("TL119", stmt.node, f"`{code(stmt.call)}` -> `T.{plain}`{why}")
    job.apply(edits)


def _step_argument(call: cst.Call) -> cst.Arg | None:
    positional = [arg for arg in call.args if arg.keyword is None]
    named = [arg for arg in call.args if arg.keyword is not None and arg.keyword.value == "step"]
    return next(iter([*named, *positional[2:3]]), None)


def _plain_assignments(job: Job) -> None:
    """``x: T.bfloat16 = e``: types that are no functions on the NPU, and those of Python, cannot annotate there.

    ``a = b = e`` becomes two, of which the model knows the values.
    """
    edits = Edits(job.file.index)
    for node in nodes_of(job.located.node.body, cst.AnnAssign):
        if node.value is None:
            continue
        written = node.annotation.annotation
        name = job.file.names.operator(written)
        if STRINGS.get(name) == name and name != "bfloat16":
            continue
        value: cst.BaseExpression = node.value
        if name in STRINGS:
            value = expression(job, f'T.cast({code(value)}, "{STRINGS[name]}")', node)
        elif code(written) not in ("int", "float", "bool"):
            raise Blocked("TL120", node, f"the annotation `{code(written)}` is not supported")
        edits.replace(node, cst.Assign([cst.AssignTarget(node.target)], value))
        job.change("TL119", node, f"removed the annotation `{code(written)}`")
    for several in nodes_of(job.located.node.body, cst.Assign):
        names = [target.target for target in several.targets]
        if len(names) == 1 or not all(isinstance(name, cst.Name) for name in names):
            continue
        pairs = zip(names, [several.value, *names], strict=False)
        edits.replace_many(several, [cst.Assign([cst.AssignTarget(name)], value) for name, value in pairs])
        job.change("TL119", several, "one assignment for each name")
    job.apply(edits)


def _conditional_values(job: Job) -> None:
    """``a if c else b`` with a condition that only the device knows."""

    def step() -> bool:
        found = next(_run_time_choices(job), None)
        if found is None:
            return False
        edits = Edits(job.file.index)
        parts = ", ".join(code(part) for part in (found.test, found.body, found.orelse))
        edits.replace(found, expression(job, f"T.if_then_else({parts})", found))
        job.change("TL119", found, "`T.if_then_else` for a choice at run time")
        job.apply(edits)
        return True

    until_settled(job, step)


def _run_time_choices(job: Job) -> Iterator[cst.IfExp]:
    for stmt in job.kernel.walk():
        if stmt.via:
            continue
        for part in own_parts(stmt):
            for node in nodes_of(part, cst.IfExp):
                if is_run_time(job, node.test, stmt.env):
                    yield node


def own_parts(stmt: Stmt) -> Iterator[cst.CSTNode]:
    """The code of a statement without the blocks in it."""
    if isinstance(stmt.node, cst.For):
        yield stmt.node.iter
    elif isinstance(stmt, Branch):
        yield stmt.cond.node
    elif not isinstance(stmt.node, cst.BaseCompoundStatement):
        yield stmt.node


def is_run_time(job: Job, test: cst.BaseExpression, env: Env) -> bool:
    """The condition depends on a block, a loop variable, a scalar parameter, an element or a dynamic size."""
    scalar = job.file.evaluator.scalar(test, env)
    return bool(scalar.loads) or job.late.is_late(scalar.sym)


def _steps(job: Job) -> None:
    """``for k in range(a, b, c)`` counts from 0, and ``k`` is worked out from the count."""

    def step() -> bool:
        loop = next((s for s in job.kernel.walk() if isinstance(s, Loop) and not s.via and _has_step(s)), None)
        if loop is not None:
            _count_from_zero(job, loop)
        return loop is not None

    until_settled(job, step)


def _has_step(loop: Loop) -> bool:
    return len(loop.ranges) == 1 and loop.ranges[0].step is not None


def _count_from_zero(job: Job, loop: Loop) -> None:
    node, item = loop.node, loop.ranges[0]
    assert isinstance(node, cst.For)
    assert loop.call is not None
    assert item.step is not None
    step = _step_argument(loop.call)
    if step is None or item.stop_node is None or not isinstance(node.body, cst.IndentedBlock):
        raise Blocked("TL120", node, "cannot read the bounds of this loop")
    size = item.step.constant
    if size == 0:
        raise Blocked("TL120", node, "the step of this loop is 0")
    backwards = size is not None and size < 0
    amount = str(-size) if backwards and size is not None else _closed(step.value)
    first = item.start_node if item.start_node is not None and not item.start.is_zero else None
    start = "0" if first is None else code(first)
    low, high = (code(item.stop_node), start) if backwards else (start, code(item.stop_node))
    count = _count(item.extent, size, low, high, amount if backwards else unparenthesised(step.value))
    counter = Names(job).fresh(f"{item.name}_step")
    product = counter if amount == "1" else f"{counter} * {amount}"
    value = product if start == "0" and not backwards else f"{start} {'-' if backwards else '+'} {product}"
    line = cst.parse_statement(f"{item.name} = {value}")
    others = [
        arg for arg in loop.call.args if arg.keyword is not None and arg.keyword.value not in ("start", "stop", "step")
    ]
    call = loop.call.with_changes(args=[cst.Arg(expression(job, count, node)), *others])
    body = node.body.with_changes(body=[line, *node.body.body])
    edits = Edits(job.file.index)
    edits.replace(node, node.with_changes(target=cst.Name(counter), iter=call, body=body))
    job.change("TL119", node, f"wrote a loop with step 1 for the step of `{item.name}`")
    job.apply(edits)


def _count(extent: Sym, step: int | None, low: str, high: str, amount: str) -> str:
    """How many steps there are, as text."""
    if extent.constant is not None and step is not None:
        return str(max(0, -(-extent.constant // step)))
    distance = high if low == "0" else f"{high} - {factor(low)}"
    return distance if amount == "1" else f"T.ceildiv({distance}, {amount})"


def _closed(node: cst.BaseExpression) -> str:
    return code(node) if node.lpar else factor(code(node))


# TL119: ``for i, j in T.Parallel(M, N): if i < m: tile[i, j] = ...`` is a loop over the ``m`` rows of the tile.
#
# A GPU needs the longer loop where its threads do not divide the shorter one. For the vector cores the condition would
# be a mask over ``M`` rows, of which the tile has ``m``.


def _narrow_loops(job: Job) -> None:
    """End such loops with the smaller of their tiles."""
    edits = Edits(job.file.index)
    for loop in job.kernel.walk():
        if not isinstance(loop, Loop) or loop.kind != "parallel" or loop.via or not isinstance(loop.node, cst.For):
            continue
        branch = loop.body[0] if len(loop.body) == 1 else None
        if not isinstance(branch, Branch) or branch.orelse or not isinstance(branch.node, cst.If) or loop.call is None:
            continue
        found = _bound(job, loop, branch)
        if found is None:
            continue
        item, end = found
        args = [
            arg.with_changes(value=end.with_changes(lpar=(), rpar=())) if arg.value is item.stop_node else arg
            for arg in loop.call.args
        ]
        new = loop.node.with_changes(iter=loop.call.with_changes(args=args), body=branch.node.body)
        edits.replace(loop.node, new)
        job.change("TL119", loop.node, f"the loop ends at {item.name} = {code(end)}: `{code(branch.node.test)}`")
    job.apply(edits)


def _bound(job: Job, loop: Loop, branch: Branch) -> tuple[Range, cst.BaseExpression] | None:
    """The loop variable that the condition is about, and the first value for which it does not hold."""
    test = branch.cond.node
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return None
    ((operator, end),) = ((part.operator, part.comparator) for part in test.comparisons)
    if not isinstance(operator, cst.LessThan) or not isinstance(test.left, cst.Name):
        return None
    size = job.file.evaluator.sym(end, branch.env)
    for item in loop.ranges:
        if item.name == test.left.value and item.start.is_zero and item.stop_node is not None:
            fixed = all(is_size(name) for name in size.variables()) and not job.late.is_late(size)
            shorter = Bounds({}).is_not_negative(item.extent - size)
            return (item, end) if fixed and shorter and _has_shorter_tile(branch.then, item, size) else None
    return None


def _has_shorter_tile(body: Sequence[Stmt], item: Range, size: Sym) -> bool:
    """True if a tile is written that ends where the condition does."""
    for stmt in walk(body):
        if isinstance(stmt, Store) and stmt.target.buffer.memory is not Memory.GM and stmt.target.dims is not None:
            for dim, extent in zip(stmt.target.dims, stmt.target.buffer.shape, strict=False):
                if dim.is_point and dim.lo == item.var and extent == size and extent != item.extent:
                    return True
    return False


# TL119: what a parallel loop reads of a tile, and other iterations of it write, is read from a copy of the tile.
#
# All iterations run at once, so ``a[h, i, j] = a[3 - h, i, j]`` reads what was there before the loop. A loop that
# becomes serial, over its outer axes or over all elements, would read what it has just written.

_FOR_ALL = frozenset({"alloc_shared", "alloc_fragment"})
"""Memory that all iterations see; what ``alloc_local`` gives, each has for itself."""


def _keep_old_values(job: Job, axes: int) -> None:
    """Copy such tiles in front of parallel loops, of which only the last ``axes`` axes stay parallel."""
    edits, tiles = Edits(job.file.index), Tiles(job, Names(job))
    for stmt, parents in walk_with_parents(job.kernel.body):
        if not stmt.via and _is_parallel(stmt) and not any(map(_is_parallel, parents)):
            assert isinstance(stmt, Loop)
            _read_copies(job, stmt, axes, edits, tiles)
    tiles.commit(edits)
    job.apply(edits)


def _read_copies(job: Job, loop: Loop, axes: int, edits: Edits, tiles: Tiles) -> None:
    copies: dict[str, str] = {}
    for read in dict.fromkeys(_old(job, loop, axes)):
        name = read.buffer.name
        if name not in copies:
            copies[name] = new = tiles.names.fresh(f"{name}_old")
            text = f"{new} = T.{read.buffer.alloc}({shape_text(read.buffer)}, {dtype_text(read.buffer)})"
            tiles.add(read.buffer, text)
            edits.replace_many(loop.node, [*parse(job, f"T.copy({name}, {new})", loop.node), loop.node])
            job.change("TL119", loop.node, f"copied `{name}`: the loop reads elements that it overwrites")
        assert isinstance(read.node, cst.Subscript)
        edits.replace(read.node.value, cst.Name(copies[name]))


def _old(job: Job, loop: Loop, axes: int) -> Iterator[Operand]:
    """Elements that are read before other iterations write them; raises :class:`Blocked` for those read behind."""
    inside = list(walk_with_parents([loop]))
    for place, (store, parents) in enumerate(inside):
        around = [above for above in parents if isinstance(above, Loop)]
        parallel = [str(item.var) for above in around if above.kind in INDEPENDENT for item in above.ranges]
        outer = parallel[: len(parallel) - axes]
        if not isinstance(store, Store) or store.target.buffer.alloc not in _FOR_ALL or not outer:
            continue
        target, buffer = store.target, store.target.buffer
        reads = [(n, read) for n, (stmt, _) in enumerate(inside) for read in _reads(stmt) if read.buffer is buffer]
        if not reads:
            continue
        bounds = Reach(job.kernel, job.located.evaluator).bounds(parents_of(job.kernel, store), store)
        moving = [str(item.var) for above in around for item in above.ranges]
        serial = any(above.kind not in INDEPENDENT for above in around)
        changed = next(n for n, (s, _) in enumerate(inside) if isinstance(s, Store) and s.target.buffer is buffer)
        for number, read in reads:
            if may_meet(bounds, outer, moving, read, target):
                if serial or number > min(place, changed):
                    text = f"`{code(read.node)}` is written by other iterations of this loop: use two loops"
                    raise Blocked("TL120", read.node, text)
                yield read


def _is_parallel(stmt: Stmt) -> bool:
    return isinstance(stmt, Loop) and stmt.kind in INDEPENDENT


def _reads(stmt: Stmt) -> Iterator[Operand]:
    return (access.operand for access in accesses(stmt) if access.reads and not access.writes)


# TL119: names that get another value in a parallel loop, ``r = T.max(x, lo)`` and then ``r = T.min(r, hi)``.
#
# Each value gets a name of its own. So what a name stands for does not depend on the place, and operands in global
# memory can be moved in front of the loop.


def _separate_versions(job: Job) -> None:
    """Rename the second and later values of names that are bound line by line in one block."""
    edits, names = Edits(job.file.index), Names(job)
    variables = {stmt.buffer.name for stmt in job.kernel.walk() if isinstance(stmt, Alloc)}
    for loop in job.kernel.walk():
        if not isinstance(loop, Loop) or loop.kind != "parallel" or loop.via:
            continue
        if not any(access.operand.buffer.memory is Memory.GM for stmt in walk(loop.body) for access in accesses(stmt)):
            continue
        for block in nodes_of(loop.node, cst.IndentedBlock):
            for name in _rebound(job, block):
                if name not in variables:
                    _rename(edits, names, block, name)
                    job.change("TL119", block, f"a name for each value of `{name}`")
    job.apply(edits)


def _rebound(job: Job, block: cst.IndentedBlock) -> Iterator[str]:
    """Names that lines of the block bind more than once, and nothing else in the kernel binds or reads."""
    times = Counter(
        name for line in block.body if isinstance(line, cst.SimpleStatementLine) for name in _names_bound(line)
    )
    for name, count in times.items():
        everywhere = [found for found in names_in(job.located.node.body) if found.value == name]
        here = [found for found in names_in(block) if found.value == name]
        nested = [line for line in block.body if isinstance(line, cst.BaseCompoundStatement)]
        if count > 1 and len(everywhere) == len(here) and not any(name in bound_names(line) for line in nested):
            yield name


def _names_bound(line: cst.SimpleStatementLine) -> Iterator[str]:
    """The name of a line that is nothing but ``name = value``."""
    statement = line.body[0] if len(line.body) == 1 else None
    if isinstance(statement, cst.Assign) and len(statement.targets) == 1:
        target = statement.targets[0].target
        if isinstance(target, cst.Name):
            yield target.value


def _rename(edits: Edits, names: Names, block: cst.IndentedBlock, name: str) -> None:
    """The first value keeps the name."""
    now: str | None = None
    for line in block.body:
        binds = isinstance(line, cst.SimpleStatementLine) and name in _names_bound(line)
        new = name if now is None else now
        if binds:
            statement = cst.ensure_type(cst.ensure_type(line, cst.SimpleStatementLine).body[0], cst.Assign)
            value = substituted(statement.value, {name: cst.Name(new)})
            now = name if now is None else names.fresh(name)
            target = statement.targets[0].with_changes(target=cst.Name(now))
            edits.replace(statement, cst.Assign([target], cst.ensure_type(value, type(value))))  # type: ignore[arg-type]
        elif new != name and any(found.value == name for found in names_in(line)):
            edits.replace(line, substituted(line, {name: cst.Name(new)}))


_ONE = const(1)


def use_index(job: Job) -> None:
    """Write the variable of a parallel loop that runs once for 0 along the axes of one element of its tiles."""
    edits = Edits(job.file.index)
    done: set[int] = set()
    for loop in job.kernel.walk():
        if not isinstance(loop, Loop) or loop.kind != "parallel" or loop.via:
            continue
        once = [item.name for item in loop.ranges if item.extent == _ONE and item.start.is_zero]
        if not once or len(loop.ranges) > 1:
            continue
        for operand in (access.operand for stmt in walk(loop.body) for access in accesses(stmt) if access.element):
            for dim, size in zip(operand.dims or (), operand.buffer.shape, strict=False):
                zero = isinstance(dim.node, cst.Integer) and dim.lo.is_zero
                if zero and operand.buffer.is_tile and size == _ONE and id(dim.node) not in done:
                    done.add(id(dim.node))
                    edits.replace(dim.node, cst.Name(once[0]))
                    job.change("TL119", dim.node, f"`{once[0]}`, which is 0, for the only element")
    job.apply(edits)
