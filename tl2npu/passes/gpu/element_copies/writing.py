"""Writing a loop of which parts have become copies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.model import Alloc, Branch, Kernel, Let, Loop, Memory, Op, Stmt, Store, walk
from tl2npu.passes.job import Job
from tl2npu.passes.writing.plan import Line, Plan
from tl2npu.passes.writing.statements import parse
from tl2npu.source.tree import mentioned, replaced


@dataclass(frozen=True, eq=False)
class Item:
    """A statement of the loop body under the conditions around it inside the loop."""

    stmt: Stmt
    branches: tuple[tuple[Branch, bool], ...]


class LoopWriter:
    """What is known to become of a loop: ``new`` expressions, statements that are ``gone``, loads before it."""

    def __init__(self, job: Job, loop: Loop, parents: tuple[Stmt, ...]) -> None:
        self.job, self.loop, self.parents = job, loop, parents
        self.kernel: Kernel = job.kernel
        self.plan = Plan(job)
        self.new: dict[int, cst.CSTNode] = {}
        self.gone: set[int] = set()
        self.allocations: list[str] = []
        self.loads: list[tuple[Stmt, str]] = []

    def say(self, rule: str, node: cst.CSTNode, message: str) -> None:
        self.job.change(rule, node, message)

    def _new(self, node: cst.CSTNode) -> cst.CSTNode:
        return replaced(node, self.new)

    def _before(self, text: str) -> None:
        self.loads.append((self.loop, text))

    def _after(self, text: str) -> None:
        self.plan.after(self.loop.node, self._lines(text))

    def _lines(self, text: str) -> list[Line]:
        return list(parse(self.job, text + "\n", self.loop.node))

    def _still_read(self, name: str, items: Sequence[Item]) -> bool:
        """True if a statement or a condition that stays reads a scalar of the loop body."""
        for item in items:
            if id(item.stmt) in self.gone or (isinstance(item.stmt, Let) and item.stmt.name == name):
                continue
            conditions = [branch.cond.node for branch, _ in item.branches if not self._dropped(branch)]
            for part in (item.stmt.node, *conditions):
                if name in mentioned(self._new(part)):
                    return True
        return False

    def _goes_out(self, stmt: Stmt) -> bool:
        """True for what is stored, or added, to global memory by whole tiles in the end."""
        if isinstance(stmt, Op) and stmt.op.kind is Kind.ATOMIC:
            return True
        return isinstance(stmt, Store) and stmt.target.buffer.memory is Memory.GM

    def _left(self, branch: Branch) -> list[Stmt]:
        """What a condition still guards."""
        left = [inner for inner in walk([*branch.then, *branch.orelse]) if id(inner) not in self.gone]
        return [inner for inner in left if not isinstance(inner, (Let, Branch))]

    def _dropped(self, branch: Branch) -> bool:
        """A condition goes when it guards nothing any more, or nothing but tiles that are stored by a clamped copy."""
        left = self._left(branch)
        return not left or (all(self._goes_out(inner) for inner in left) and not branch.orelse)

    # -- writing ----------------------------------------------------------------------------------------------------

    def _write(self, items: Sequence[Item]) -> None:
        for item in items:
            if isinstance(item.stmt, Let) and not self._still_read(item.stmt.name, items):
                self.gone.add(id(item.stmt))
        if all(id(item.stmt) in self.gone for item in items):
            self.plan.remove(self.loop.node)
        else:
            self._body(self.loop.body)
        self._allocate()
        for anchor, text in self.loads:
            self.plan.before(anchor.node, self._lines(text))
        self.plan.apply()

    def _allocate(self) -> None:
        """Behind the last allocation above the loop, else first of all."""
        if not self.allocations:
            return
        top = self.parents[0] if self.parents else self.loop
        above = self.kernel.body[: next(n for n, stmt in enumerate(self.kernel.body) if stmt is top)]
        known = [stmt for stmt in above if isinstance(stmt, Alloc)]
        lines = self._lines("\n".join(self.allocations))
        if known:
            self.plan.after(known[-1].node, lines)
        else:
            self.plan.before(top.node, lines)

    def _body(self, body: Sequence[Stmt]) -> None:
        for stmt in body:
            if isinstance(stmt, Branch):
                self._branch(stmt)
            elif id(stmt) in self.gone:
                self.plan.remove(stmt.node)
            else:
                self._statement(stmt)

    def _branch(self, stmt: Branch) -> None:
        if not self._left(stmt):
            self.plan.remove(stmt.node)
            return
        some = any(id(inner) in self.gone for inner in walk([*stmt.then, *stmt.orelse]))
        new = self._new(stmt.node) is not stmt.node
        if self._dropped(stmt):
            self.plan.replace(stmt.node, list(self._unguarded(stmt.then)))
        elif self._new(stmt.cond.node) is not stmt.cond.node or (new and not some):
            if some:
                raise Blocked("TL170", stmt.node, "this `if` contains both data movement and computation")
            self.plan.replace(stmt.node, self._rendered(stmt))
        else:
            self._body(stmt.then)
            self._body(stmt.orelse)

    def _unguarded(self, body: Sequence[Stmt]) -> Iterator[Line]:
        """What stays of the body of a condition that goes; conditions in it go, too."""
        for stmt in body:
            if isinstance(stmt, Branch) and self._dropped(stmt):
                yield from self._unguarded(stmt.then)
            elif id(stmt) not in self.gone:
                yield from self._rendered(stmt)

    def _statement(self, stmt: Stmt) -> None:
        if self._new(stmt.node) is not stmt.node:
            self.plan.replace(stmt.node, self._rendered(stmt))

    def _rendered(self, stmt: Stmt) -> list[Line]:
        node = self._new(stmt.node)
        if isinstance(node, cst.BaseCompoundStatement):
            return [node]
        line = self.job.file.index.parent(stmt.node)
        assert isinstance(node, cst.BaseSmallStatement)
        if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1:
            return [line.with_changes(body=[node])]
        return [cst.SimpleStatementLine([node.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)])]
