"""TL119, TL121: nests with parallel loops, in the two dimensions that the vectoriser takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias

import libcst as cst

from tl2npu.kernel.access import accesses
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.model import Alloc, Branch, Buffer, Let, Loop, Memory, Stmt, Store, walk
from tl2npu.passes.job import Job
from tl2npu.passes.names.assignments import needed
from tl2npu.passes.plain.loops.axes import INDEPENDENT, MOST_AXES, Line, axes_of, in_order, nest, node_of
from tl2npu.passes.rounds import until_settled
from tl2npu.passes.writing.statements import Names, parse
from tl2npu.passes.writing.substitute import bound_names, closed, substituted
from tl2npu.passes.writing.tiles import argument, dtype_text
from tl2npu.source.edits import Edits
from tl2npu.source.tree import mentioned, nodes_of


def untangle(job: Job) -> None:
    """No loop inside a parallel loop, no parallel loop of more than two axes, no ``T.vectorized``."""
    until_settled(job, partial(_untangle_one, job))


def _untangle_one(job: Job) -> bool:
    loop = next((s for s in job.kernel.walk() if isinstance(s, Loop) and not s.via and _is_bad(s)), None)
    if loop is None:
        return False
    edits = Edits(job.file.index)
    new = _rewritten(job, loop)
    first = new[0].with_changes(leading_lines=node_of(loop).leading_lines)
    edits.replace_many(loop.node, [first, *new[1:]])
    if _nested(loop):
        job.change("TL121", loop.node, "one parallel loop for each statement, serial loops outside")
    else:
        job.change("TL119", loop.node, "a parallel loop of two axes")
    job.apply(edits)
    return True


def _is_bad(loop: Loop) -> bool:
    """A body that keeps arrays of its own for each iteration, or variables and has no loop, stays as it is."""
    if loop.kind not in INDEPENDENT:
        return False
    own = [stmt.buffer for stmt in walk(loop.body) if isinstance(stmt, Alloc)]
    if own and (not _nested(loop) or any(buffer.alloc != "alloc_var" for buffer in own)):
        return False
    return loop.kind == "vectorized" or len(loop.ranges) > MOST_AXES or _nested(loop)


def _nested(loop: Loop) -> bool:
    return any(isinstance(inner, Loop) for inner in walk(loop.body))


def _rewritten(job: Job, loop: Loop) -> list[Line]:
    """The loops that do the same."""
    if not _nested(loop):
        return [nest(job, axes_of(loop), node_of(loop).body)]
    try:
        return Distribution(job, loop).lines()
    except Blocked:
        if not _is_scalar(loop):
            raise
        return [_one_by_one(job, loop)]


def _is_scalar(loop: Loop) -> bool:
    """A body of elements, values, conditions and loops that run in order."""
    return all(
        isinstance(stmt, (Store, Let, Branch)) or (isinstance(stmt, Loop) and stmt.kind not in INDEPENDENT)
        for stmt in walk(loop.body)
    )


def _one_by_one(job: Job, loop: Loop) -> cst.For:
    """The iterations of a parallel loop, which do not depend on each other, one after the other."""
    text = "the iterations run one after the other, element by element: what each does depends on its own data"
    job.note("TL146", loop.node, text)
    return in_order(job, axes_of(loop), node_of(loop).body)


# TL121: a parallel loop with loops in it, as serial loops with a parallel loop for each run of statements.
#
# The iterations of a parallel loop do not depend on each other. So its statements may run one after the other, each for
# all iterations, and a serial loop inside may stand outside. A variable that each iteration has for itself becomes a
# tile with an element for each; a condition around a loop goes to the statements inside, unless it is the same for all.

_Repeated: TypeAlias = tuple[cst.CSTNode, int]


@dataclass
class _Scope:
    """Where a statement stands. ``lets``: the assignments before it that may be repeated, and how many conditions
    stand around each. ``guards``: the conditions of its iteration. ``around``: the loops that became serial."""

    lets: list[_Repeated] = field(default_factory=list)
    guards: tuple[cst.BaseExpression, ...] = ()
    around: tuple[Loop, ...] = ()


@dataclass(frozen=True)
class _Own:
    """A variable of each iteration: its element of a tile, and how many of the conditions stand around the variable."""

    element: cst.BaseExpression
    depth: int


class Distribution:
    """The loops that do what one parallel loop does."""

    def __init__(self, job: Job, loop: Loop) -> None:
        self.job, self.loop, self.axes = job, loop, axes_of(loop)
        self.statements: dict[int, Stmt] = {id(stmt.node): stmt for stmt in walk(loop.body)}
        self.variables = {stmt.buffer.name for stmt in walk(loop.body) if isinstance(stmt, Alloc)}
        self.written = self._written(loop.body)
        self.names = Names(job)
        self.own: dict[str, _Own] = {}
        self.tiles: list[Line] = []
        self.dead: set[str] = set()
        """Names of values that only the loop knows in which they were bound."""
        self.changing: set[str] = set()
        """Names of values that are worked out from what changes."""

    def lines(self) -> list[Line]:
        """The loops, behind the tiles that they need."""
        found = self._block(node_of(self.loop).body, _Scope())
        return [*self.tiles, *found]

    def _written(self, body: Sequence[Stmt]) -> set[str]:
        """Buffers that are stored to, and variables of the iterations that get a value."""
        lets = {stmt.name for stmt in walk(body) if isinstance(stmt, Let)}
        return {_target(stmt) for stmt in walk(body) if isinstance(stmt, Store)} | (lets & self.variables)

    # -- blocks -----------------------------------------------------------------------------------------------------

    def _block(self, block: cst.BaseSuite, scope: _Scope) -> list[Line]:
        result: list[Line] = []
        run: list[cst.CSTNode] = []
        bound = {name for let, _ in scope.lets for name in bound_names(let)}
        for line in block.body:
            small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else line
            stmt = self.statements.get(id(small))
            self._refuse_dead(small)
            if isinstance(stmt, Loop):
                result += [*self._flush(run, scope), *self._inner(stmt, scope)]
            elif isinstance(stmt, Branch) and any(isinstance(s, (Loop, Alloc)) for s in walk([stmt])):
                result += [*self._flush(run, scope), *self._branch(stmt, scope)]
            elif isinstance(stmt, Alloc):
                run += self._private(stmt.buffer, line, len(scope.guards))
            elif isinstance(stmt, Let) and stmt.name not in self.own and self._may_be_repeated(stmt):
                if stmt.name in bound and scope.around:
                    raise Blocked("TL120", stmt.node, f"`{stmt.name}` changes in a loop inside a parallel loop")
                scope.lets.append((line, len(scope.guards)))
            elif isinstance(stmt, (Store, Branch, Let)):
                run.append(line)
                self.dead -= bound_names(line)
                self.changing |= bound_names(line)
            else:
                raise Blocked("TL120", line, "cannot take this out of the parallel loop, which has loops inside")
        return [*result, *self._flush(run, scope)]

    def _inner(self, inner: Loop, scope: _Scope) -> list[Line]:
        lanes = self._lanes(scope) | self.dead
        for item in inner.ranges:
            for part in (item.start_node, item.stop_node):
                if part is not None and not lanes.isdisjoint(mentioned(part)):
                    raise Blocked("TL120", inner.node, "the bounds of this loop depend on the parallel loop around it")
        node = node_of(inner)
        within = replace(scope, lets=list(scope.lets), around=(*scope.around, inner))
        if inner.kind in INDEPENDENT:
            return [self._joined(inner, node, within)]
        body = self._block(node.body, within)
        return [node.with_changes(body=cst.IndentedBlock(body))]

    def _joined(self, inner: Loop, node: cst.For, scope: _Scope) -> Line:
        """A parallel loop inside has more axes."""
        if any(isinstance(stmt, Alloc) for stmt in walk(inner.body)):
            raise Blocked("TL120", node, "this parallel loop inside a parallel loop has variables of its own")
        body = self._guarded(node.body.body, scope, 0)
        return nest(self.job, [*self.axes, *axes_of(inner)], body).with_changes(leading_lines=node.leading_lines)

    def _branch(self, branch: Branch, scope: _Scope) -> list[Line]:
        node = cst.ensure_type(branch.node, cst.If)
        if mentioned(node.test) & self._written([branch]):
            raise Blocked("TL120", node, "this condition changes under itself, around a loop inside a parallel loop")
        self._refuse_dead(node.test)
        orelse = node.orelse
        if self._lanes(scope).isdisjoint(mentioned(node.test)):
            before = needed([let for let, _ in scope.lets], [node.test])
            scope.lets = [(let, depth) for let, depth in scope.lets if let not in before]
            new = node.with_changes(body=cst.IndentedBlock(self._block(node.body, replace(scope, lets=[*scope.lets]))))
            if orelse is not None:
                other = self._block(_block_of(orelse), replace(scope, lets=[*scope.lets]))
                new = new.with_changes(orelse=cst.Else(cst.IndentedBlock(other)))
            return [*before, new]  # type: ignore[list-item]
        found = self._block(node.body, replace(scope, lets=[*scope.lets], guards=(*scope.guards, node.test)))
        if orelse is not None:
            opposite = cst.UnaryOperation(cst.Not(), closed(node.test))
            guards = (*scope.guards, opposite)
            found += self._block(_block_of(orelse), replace(scope, lets=[*scope.lets], guards=guards))
        return found

    # -- runs of statements -----------------------------------------------------------------------------------------

    def _flush(self, run: list[cst.CSTNode], scope: _Scope) -> list[Line]:
        if not run:
            return []
        body = self._guarded(run, scope, self._depth(run, scope))
        self.dead |= {name for line in run for name in bound_names(line)} - self.own.keys()
        run.clear()
        return [nest(self.job, self.axes, body)]

    def _guarded(self, lines: Sequence[cst.CSTNode], scope: _Scope, first: int) -> cst.IndentedBlock:
        """Lines under their conditions from number ``first`` on; assignments that they need stand where they stood."""
        guards = scope.guards
        read = needed([let for let, _ in scope.lets], [*guards[first:], *lines])
        body = list(lines)
        for depth in range(len(guards), first - 1, -1):
            own = [let for let, at in scope.lets if let in read and (at == depth or at < depth == first)]
            body = [*own, *body]
            if depth > first:
                body = [cst.If(guards[depth - 1], cst.IndentedBlock(body))]  # type: ignore[arg-type]
        return cst.IndentedBlock([self._in_tiles(line) for line in body])  # type: ignore[misc]

    def _depth(self, run: Sequence[cst.CSTNode], scope: _Scope) -> int:
        """How many conditions need not be asked: an iteration in which they do not hold never reads its variables."""
        depths: list[int] = []
        for line in (*needed([let for let, _ in scope.lets], run), *run):
            for node in (line, *nodes_of(line, cst.Assign, cst.AnnAssign, cst.AugAssign, cst.Expr, cst.If)):
                stmt = self.statements.get(id(node))
                if stmt is None:
                    continue
                if any(access.operand.buffer.memory is Memory.GM for access in accesses(stmt)):
                    return 0
                if isinstance(stmt, Store) or (isinstance(stmt, Let) and stmt.name in self.own):
                    own = self.own.get(_target(stmt))
                    depths.append(own.depth if own is not None else 0)
        return min(depths, default=0)

    def _in_tiles(self, line: cst.CSTNode) -> cst.CSTNode:
        return substituted(line, {name: own.element for name, own in self.own.items()})

    # -- variables --------------------------------------------------------------------------------------------------

    def _private(self, buffer: Buffer, line: cst.CSTNode, depth: int) -> list[cst.CSTNode]:
        """A tile for a variable; the statement that gives it its first value."""
        same = [s for s in self.job.kernel.walk() if isinstance(s, Alloc) and s.buffer.name == buffer.name]
        name = buffer.name if len(same) == 1 else self.names.fresh(buffer.name)
        shape = ", ".join(size for _, size in self.axes) + ("," if len(self.axes) == 1 else "")
        dtype = dtype_text(buffer)
        self.tiles += parse(self.job, f"{name} = T.alloc_fragment(({shape}), {dtype})", self.loop.node)
        element = cst.parse_expression(f"{name}[{', '.join(name for name, _ in self.axes)}]")
        self.own[buffer.name] = _Own(element, depth)
        initial = argument(buffer, 1, "init")
        if initial is None or isinstance(initial, cst.SimpleString):
            return []
        store = cst.Assign([cst.AssignTarget(cst.Name(buffer.name))], initial)
        return [cst.SimpleStatementLine([store])]

    def _may_be_repeated(self, let: Let) -> bool:
        """Nothing that the value is worked out from changes in the loop."""
        return not mentioned(let.value.node) & (self.written | self.changing)

    def _lanes(self, scope: _Scope) -> set[str]:
        """The names whose values differ between iterations."""
        found = {name for name, _ in self.axes} | self.own.keys()
        for let, _ in scope.lets:
            if not found.isdisjoint(mentioned(let)):
                found |= bound_names(let)
        return found

    def _refuse_dead(self, node: cst.CSTNode) -> None:
        found = sorted(mentioned(node) & self.dead - bound_names(node))
        if found:
            text = f"`{found[0]}` is worked out before a loop inside a parallel loop, and used after it"
            raise Blocked("TL120", node, text)


def _target(stmt: Store | Let) -> str:
    return stmt.target.buffer.name if isinstance(stmt, Store) else stmt.name


def _block_of(orelse: cst.If | cst.Else) -> cst.BaseSuite:
    return cst.IndentedBlock([orelse]) if isinstance(orelse, cst.If) else orelse.body
