"""TL302, TL307: ``with T.Scope(...)`` goes; the cube's and the vector's program become one text.

The two programs run beside each other, so any text that keeps each program's own order is right as long as what one
core hands over stands before the other core's use of it. The merge is list scheduling: cube statements while their
inputs have arrived, else vector statements; loops that wait for each other and run equally often become one loop.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import libcst as cst

from tl2npu.kernel.access import reads, writes
from tl2npu.kernel.bindings import assigned_names, body_of
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import (
    Alloc,
    Branch,
    Buffer,
    Inlined,
    Kernel,
    Let,
    Loop,
    Memory,
    ScopeBlock,
    Side,
    Stmt,
    Sync,
    children,
    walk,
)
from tl2npu.kernel.symbolic import Sym
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits
from tl2npu.source.tree import children as nodes_below
from tl2npu.source.tree import names_in, nodes_of

FLAG_NAMES = ("flag", "flag_id", "event_id", "id")


@dataclass(eq=False)
class Line:
    """One statement line of a block with the model statements on it."""

    node: cst.BaseStatement
    stmts: list[Stmt] = field(default_factory=list)

    @property
    def reads(self) -> set[Buffer]:
        """Tensors in global memory that the line reads."""
        return {o.buffer for s in self.stmts for o in reads(s, deep=True) if o.buffer.memory is Memory.GM}

    @property
    def writes(self) -> set[Buffer]:
        """Tensors in global memory that the line writes."""
        return {o.buffer for s in self.stmts for o in writes(s, deep=True) if o.buffer.memory is Memory.GM}

    def flags(self, operator: str) -> list[str]:
        """Cross flags that the line sets or waits for, also inside loops and macros."""
        return [
            str(next((v.sym for k, v in s.args.items() if k in FLAG_NAMES), ""))
            for s in walk(self.stmts)
            if isinstance(s, Sync) and s.op.name == operator
        ]

    @property
    def loop(self) -> Loop | None:
        """The loop, if the line is one."""
        return self.stmts[0] if len(self.stmts) == 1 and isinstance(self.stmts[0], Loop) else None


def lines(nodes: Sequence[cst.CSTNode], stmts: Sequence[Stmt]) -> list[Line]:
    """Pair the statement lines of a block with the model statements that they hold."""
    result: list[Line] = []
    owner: dict[int, Line] = {}
    for node in nodes:
        assert isinstance(node, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
        line = Line(node)
        result.append(line)
        owner[id(node)] = line
        if isinstance(node, cst.SimpleStatementLine):
            owner.update((id(small), line) for small in node.body)
    for stmt in stmts:
        if id(stmt.node) in owner:
            owner[id(stmt.node)].stmts.append(stmt)
    return result


class Merger:
    """Schedules the lines of the two cores; ``renames`` are loop variables that must be unified first."""

    def __init__(self, kernel: Kernel) -> None:
        self.renames: list[tuple[Loop, str]] = []
        self.joined: list[tuple[cst.CSTNode, cst.CSTNode]] = []
        self._meaning = {
            name: stmt.value.sym
            for stmt in kernel.walk()
            if isinstance(stmt, Let) and stmt.bound is not None and stmt.bound != stmt.value.sym
            for name in stmt.bound.variables()
        }

    def _same(self, left: Sym, right: Sym) -> bool:
        """Equal, also where each core has given a name of its own to the same expression."""
        return left == right or self._expanded(left) == self._expanded(right)

    def _expanded(self, sym: Sym) -> Sym:
        for _ in range(len(self._meaning)):
            new = sym.map_variables(self._meaning.get)
            if new == sym:
                break
            sym = new
        return sym

    def merge(self, cube: list[Line], vector: list[Line]) -> list[cst.BaseStatement]:
        """One list of statements; raises :class:`Blocked` if the cores wait for each other in no possible order.

        Cross flags say when a core goes on: a wait stands behind the matching set of the other core.
        """
        pending = {Side.CUBE: list(cube), Side.VECTOR: list(vector)}
        credit: Counter[tuple[Side, str]] = Counter()
        result: list[cst.BaseStatement] = []
        given: dict[str, str] = {}
        has_flags = any(line.flags("set_cross_flag") for line in (*cube, *vector))
        while any(pending.values()):
            side = next((s for s in pending if self._ready(s, pending, credit)), None)
            heads = [lines[0] for lines in pending.values() if lines]
            if side is not None:
                line = pending[side].pop(0)
                self._pass(side, line, credit)
                if not _repeats(line, given):
                    result.append(line.node)
            elif len(heads) == 2 and all(line.loop for line in heads):
                result.append(self._join(pending[Side.CUBE].pop(0), pending[Side.VECTOR].pop(0)))
            elif has_flags and (told := self._told(pending, credit)) is not None:
                line = pending[told].pop(0)
                self._pass(told, line, credit)
                result.append(line.node)
            elif (early := next((s for s in pending if self._ready(s, pending, None)), None)) is not None:
                result.append(pending[early].pop(0).node)  # the set that it waits for was in the iteration before
            else:
                raise Blocked(
                    "TL310",
                    heads[0].node,
                    "the cores wait for each other in an order that no sequence of statements has",
                )
        return result

    @staticmethod
    def _ready(side: Side, pending: dict[Side, list[Line]], credit: Counter[tuple[Side, str]] | None) -> bool:
        """The next line of a core may go: its tiles are written, its flags are set (``credit`` None: flags ignored)."""
        if not pending[side]:
            return False
        line = pending[side][0]
        others = pending[Side.VECTOR if side is Side.CUBE else Side.CUBE]
        if line.reads & {tensor for other in others for tensor in other.writes}:
            return False
        return credit is None or Merger._is_told(side, pending, credit)

    def _told(self, pending: dict[Side, list[Line]], credit: Counter[tuple[Side, str]]) -> Side | None:
        return next((side for side in pending if self._is_told(side, pending, credit)), None)

    @staticmethod
    def _is_told(side: Side, pending: dict[Side, list[Line]], credit: Counter[tuple[Side, str]]) -> bool:
        """The flags let the next line of a core go, whatever the other core will still write (TL309)."""
        if not pending[side]:
            return False
        line = pending[side][0]
        others = pending[Side.VECTOR if side is Side.CUBE else Side.CUBE]
        to_come = {flag for other in others for flag in other.flags("set_cross_flag")}
        return all(credit[side, flag] or flag not in to_come for flag in line.flags("wait_cross_flag"))

    def in_text_order(self, run: Sequence[tuple[Side, Line]]) -> list[cst.BaseStatement] | None:
        """The lines as the author ordered them, if each finds what it needs; None if the order must change."""
        pending: dict[Side, list[Line]] = {Side.CUBE: [], Side.VECTOR: []}
        for side, line in run:
            pending[side].append(line)
        credit: Counter[tuple[Side, str]] = Counter()
        for side, _ in run:
            other = Side.VECTOR if side is Side.CUBE else Side.CUBE
            # a flag of the iteration before lets this core go on, if the other one waits for it
            early = not self._ready(other, pending, credit) and self._ready(side, pending, None)
            if not self._ready(side, pending, credit) and not early:
                return None
            self._pass(side, pending[side].pop(0), credit)
        return [line.node for _, line in run]

    @staticmethod
    def _pass(side: Side, line: Line, credit: Counter[tuple[Side, str]]) -> None:
        """Account for the flags of a line that has gone."""
        for flag in line.flags("wait_cross_flag"):
            credit[side, flag] = max(0, credit[side, flag] - 1)
        other = Side.VECTOR if side is Side.CUBE else Side.CUBE
        credit.update((other, flag) for flag in line.flags("set_cross_flag"))

    def _join(self, left: Line, right: Line) -> cst.BaseStatement:
        cube, vector = left.loop, right.loop
        assert cube is not None
        assert vector is not None
        if len(cube.ranges) != 1 or len(vector.ranges) != 1 or cube.kind != vector.kind:
            raise Blocked("TL310", right.node, "the loops of the two cores are of different kinds")
        mine, theirs = cube.ranges[0], vector.ranges[0]
        if not self._same(mine.extent, theirs.extent) or mine.start != theirs.start or mine.step != theirs.step:
            raise Blocked("TL310", right.node, "the loops of the two cores have different bounds")
        self._meaning.update((name, mine.var) for name in theirs.var.variables() - mine.var.variables())
        header, other = cube, vector
        if mine.name != theirs.name:
            if not _mentions(cube.node, mine.name):
                header, other = vector, cube  # the cube does not use its variable: keep the vector's
            kept, renamed = header.ranges[0].name, other.ranges[0].name
            if _mentions(other.node, kept):
                self.renames.append((header, _own(kept, Side.CUBE if header is cube else Side.VECTOR)))
            elif _mentions(other.node, renamed):
                self.renames.append((other, kept))
        assert isinstance(cube.node, cst.For)
        assert isinstance(vector.node, cst.For)
        assert isinstance(header.node, cst.For)
        assert isinstance(other.node, cst.For)
        body = self.merge(lines(body_of(cube.node), cube.body), lines(body_of(vector.node), vector.body))
        node = header.node
        comments = [line for line in other.node.leading_lines if line.comment is not None]
        self.joined.append((left.node, right.node))
        block = node.body.with_changes(body=body)
        if isinstance(block, cst.IndentedBlock) and isinstance(other.node.body, cst.IndentedBlock):
            own = [line for line in other.node.body.footer if line.comment is not None]
            block = block.with_changes(footer=[*block.footer, *own])
        return node.with_changes(body=block, leading_lines=[*node.leading_lines, *comments])


def _repeats(line: Line, given: dict[str, str]) -> bool:
    """True for a line that gives names the values that they were given before; keeps account in ``given``."""
    known = {stmt.name: code(stmt.value.node) for stmt in line.stmts if isinstance(stmt, Let)}
    if isinstance(line.node, cst.SimpleStatementLine) and known and len(known) == len(line.node.body):
        repeated = all(given.get(name) == text for name, text in known.items())
        if not repeated:
            _forget(known, given)
        given.update(known)
        return repeated and not any(comment.comment for comment in line.node.leading_lines)
    _forget(assigned_names(line.node), given)
    return False


def _forget(names: Iterable[str], given: dict[str, str]) -> None:
    """What was made of names that change now may be something else if it is made again."""
    for name in names:
        given.pop(name, None)
        for other in [o for o, text in given.items() if re.search(rf"\b{name}\b", text)]:
            del given[other]


def _own(name: str, side: Side) -> str:
    """A name that only one core uses."""
    return f"{name}_{'cube' if side is Side.CUBE else 'vec'}"


def _mentions(node: cst.CSTNode, name: str) -> bool:
    """True if a loop body uses a name."""
    assert isinstance(node, cst.For)
    return any(found.value == name for found in nodes_of(node.body, cst.Name))


def flatten(job: Job) -> None:
    """Remove every Scope of the kernel, joining the loops of the two cores where they exchange data."""
    while True:
        found = _innermost(job.kernel.body, job)
        if found is None:
            return
        nodes, stmts = found
        _flatten_block(job, lines(nodes, stmts))


def _innermost(body: list[Stmt], job: Job) -> tuple[Sequence[cst.CSTNode], list[Stmt]] | None:
    """The statement list of a block that has Scope blocks directly in it."""
    for stmt in body:
        if isinstance(stmt, ScopeBlock):
            if stmt.via:
                raise Blocked("TL310", stmt.node, "this Scope is in a macro")
            parent = cst.ensure_type(job.file.index.parent(stmt.node), cst.IndentedBlock)
            return parent.body, body
        for inner in children(stmt):
            if isinstance(stmt, (Loop, Branch, Inlined)):
                found = _innermost(inner, job)
                if found is not None:
                    return found
    return None


def _flatten_block(job: Job, block: list[Line]) -> None:
    scoped = [line for line in block if line.stmts and isinstance(line.stmts[0], ScopeBlock)]
    first = block.index(scoped[0])
    last = first
    hoisted: list[Line] = []
    for position in range(first + 1, len(block)):
        if block[position] in scoped:
            last = position
        elif not _is_allocation(block[position]):
            break
    hoisted = [line for line in block[first : last + 1] if line not in scoped]
    run = [line for line in block[first : last + 1] if line in scoped]
    sides: dict[Side, list[Line]] = {Side.CUBE: [], Side.VECTOR: []}
    ordered: list[tuple[Side, Line]] = []
    footers: list[cst.EmptyLine] = []
    for line in run:
        scope = line.stmts[0]
        assert isinstance(scope, ScopeBlock)
        assert isinstance(scope.node, cst.With)
        inner = lines(body_of(scope.node), scope.body)
        if inner:
            inner[0] = Line(_with_comments(inner[0].node, scope.node), inner[0].stmts)
        if isinstance(scope.node.body, cst.IndentedBlock):
            footers += [comment for comment in scope.node.body.footer if comment.comment is not None]
        sides[scope.side] += inner
        ordered += [(scope.side, line) for line in inner]
    merger = Merger(job.kernel)
    body = merger.in_text_order(ordered) or _merged(merger, sides)
    if merger.renames:
        _rename(job, merger.renames)
        return
    edits = Edits(job.file.index)
    block_node = cst.ensure_type(job.file.index.parent(run[0].node), cst.IndentedBlock)
    new_body = [line.node for line in block[:first]]
    new_body += [line.node for line in hoisted] + body + [line.node for line in block[last + 1 :]]
    new_body = new_body or [cst.SimpleStatementLine([cst.Pass()])]
    edits.replace(block_node, block_node.with_changes(body=new_body, footer=[*footers, *block_node.footer]))
    for line in run:
        job.change("TL302", line.node, "AUTO_CV_COMBINE splits the work between the cores")
    for left, _right in merger.joined:
        job.change("TL307", left, "merged the cube and the vector loop, which exchange tiles")
    job.apply(edits)


def _is_allocation(line: Line) -> bool:
    return bool(line.stmts) and all(isinstance(stmt, Alloc) for stmt in line.stmts)


def _with_comments(node: cst.BaseStatement, scope: cst.With) -> cst.BaseStatement:
    own = list(node.leading_lines)  # type: ignore[attr-defined]
    while own and own[0].comment is None:
        own.pop(0)  # a blank line after `with ...:` has lost its reason
    header = scope.body.header if isinstance(scope.body, cst.IndentedBlock) else None
    extra = [cst.EmptyLine(comment=header.comment)] if header is not None and header.comment is not None else []
    return node.with_changes(leading_lines=[*scope.leading_lines, *extra, *own])


def _merged(merger: Merger, sides: Mapping[Side, list[Line]]) -> list[cst.BaseStatement]:
    _check_names(sides)
    return merger.merge(sides[Side.CUBE], sides[Side.VECTOR])


def _check_names(sides: Mapping[Side, list[Line]]) -> None:
    """Statements of the two cores change places: a name that one assigns must not mean something else to the other."""
    for side, other in ((Side.CUBE, Side.VECTOR), (Side.VECTOR, Side.CUBE)):
        here, there = _assignments(sides[side]), _assignments(sides[other])
        used = {name.value for line in sides[other] for name in names_in(line.node)}
        for name, values in here.items():
            if name in used and not (len(values) == 1 and there.get(name) == values):
                text = f"both cores use the name `{name}` for different things"
                raise Blocked("TL310", sides[side][0].node, text)


def _assignments(block: Sequence[Line]) -> dict[str, set[str]]:
    """The texts that are assigned to each name, also in loops and branches; loop variables do not count."""
    found: dict[str, set[str]] = {}
    stack: list[cst.CSTNode] = [line.node for line in block]
    while stack:
        current = stack.pop()
        if isinstance(current, (cst.Assign, cst.AnnAssign, cst.AugAssign)):
            value = "" if current.value is None else code(current.value)
            text = value if isinstance(current, cst.Assign) else f"{type(current).__name__} {value} {id(current)}"
            for name in assigned_names(current):
                found.setdefault(name, set()).add(text)
        elif not isinstance(current, cst.BaseExpression):
            stack += nodes_below(current)
    return found


def _rename(job: Job, renames: Sequence[tuple[Loop, str]]) -> None:
    edits = Edits(job.file.index)
    for loop, name in renames:
        old = loop.ranges[0].name
        assert isinstance(loop.node, cst.For)
        stack: list[cst.CSTNode] = [loop.node.target, loop.node.body]
        while stack:
            current = stack.pop()
            if isinstance(current, cst.Name) and current.value == old:
                edits.replace(current, cst.Name(name, lpar=current.lpar, rpar=current.rpar))
            elif isinstance(current, (cst.Attribute, cst.Arg)):
                stack.append(current.value)
            else:
                stack += nodes_below(current)
        job.change("TL307", loop.node, f"loop variable `{old}` renamed to `{name}`: one loop for both cores")
    job.apply(edits)
