"""One factory at a time: functions that a kernel has nothing to do with are set aside while it is worked on.

Every pass builds the index and the model anew, so that in a file of many kernels the others would cost more than the
one at hand. What the rest of the file must not lose is remembered as a count of the names that it uses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import libcst as cst

from tl2npu.kernel.bindings import assigned_names
from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.source.bound import global_names
from tl2npu.source.index import Index
from tl2npu.source.tree import calls_in, names_in, nodes_of, remembered

_MARK = "__tl2npu_set_aside_"


@dataclass(eq=False)
class Surroundings:
    """The statements of a module as they are now, each with the names that it mentions."""

    file: FileKernels
    _names: dict[int, tuple[cst.CSTNode, Counter[str]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.module = self.file.index.module

    def holders(self) -> Iterator[cst.CSTNode]:
        """The statements that hold kernels, each as it is when its turn comes: work on one may change another."""
        found = factories(self.file)
        for number in range(len(found)):
            here = {id(statement) for statement in self.module.body}
            if id(found[number]) not in here:
                now = factories(FileKernels(Index.of(self.module)))
                if len(now) != len(found):
                    raise RuntimeError("work on one kernel has made another, or lost one")
                found = now
            yield found[number]

    def names(self, statement: cst.CSTNode) -> Counter[str]:
        """How often a statement mentions each name (counted once per statement)."""
        known = self._names.get(id(statement))
        if known is None or known[0] is not statement:
            known = self._names[id(statement)] = statement, Counter(name.value for name in names_in(statement))
        return known[1]

    def focus(self, mine: cst.CSTNode) -> Focus:
        """The module with only those functions that the statement ``mine`` needs, or that mention it."""
        users = self._users(mine)
        keep = self._needed(mine) | users
        if _calls_parameters(mine):  # which functions these are, the users say
            for statement in self.module.body:
                if assigned_names(statement) & users or self.names(statement).keys() & users:
                    keep |= self._needed(statement)
        aside: dict[str, list[cst.FunctionDef]] = {}
        elsewhere: Counter[str] = Counter()
        body: list[cst.BaseStatement] = []
        run: list[cst.FunctionDef] | None = None
        for statement in self.module.body:
            if not isinstance(statement, cst.FunctionDef) or statement is mine or statement.name.value in keep:
                body.append(statement)
                run = None
                continue
            if run is None:  # one mark for all that stand together: passes look at every statement of the module
                name = f"{_MARK}{len(aside)}"
                run = aside[name] = []
                body.append(cst.SimpleStatementLine([cst.Expr(cst.Name(name))]))
            run.append(statement)
            elsewhere.update(self.names(statement))
        if aside:
            return Focus(self, FileKernels(Index.of(self.module.with_changes(body=body))), aside, elsewhere)
        if self.file.index.module is not self.module:
            self.file = FileKernels(self.file.index.after(self.module))
        return Focus(self, self.file, aside, elsewhere)

    def _needed(self, mine: cst.CSTNode) -> set[str]:
        """Names of the functions that a statement calls, directly or through others."""
        functions = {s.name.value: s for s in self.module.body if isinstance(s, cst.FunctionDef)}
        givers = self._givers()
        open_ends: list[cst.CSTNode] = [mine]
        found: set[str] = set()
        while open_ends:
            for name in self.names(open_ends.pop()):
                for one in (name, *givers.get(name, ())):
                    if one in functions and one not in found:
                        found.add(one)
                        open_ends.append(functions[one])
        return found

    def _givers(self) -> dict[str, list[str]]:
        """The functions that may import what a name of the module stands for: ``T = load()``, or by ``global T``."""
        found: dict[str, list[str]] = {}
        for statement in self.module.body:
            if isinstance(statement, cst.FunctionDef):
                for name in global_names(statement):
                    found.setdefault(name, []).append(statement.name.value)
            elif isinstance(statement, cst.SimpleStatementLine):
                for small in statement.body:
                    if isinstance(small, cst.Assign) and isinstance(small.value, cst.Call):
                        for name in assigned_names(statement):
                            found.setdefault(name, []).extend(self.names(statement))
        return found

    def _users(self, mine: cst.CSTNode) -> set[str]:
        """Names of the functions that may hold the compiled kernel: through its factory, or through what that made."""
        holders = {mine.name.value} if isinstance(mine, cst.FunctionDef) else set()
        grown = True
        while grown:
            before = len(holders)
            for statement in self.module.body:
                if self.names(statement).keys() & holders:
                    holders |= assigned_names(statement)
            grown = len(holders) > before
        return holders


@remembered
def _calls_parameters(node: cst.CSTNode) -> bool:
    """Whether a function, or one in it, calls what it is given."""
    given = {param.name.value for param in nodes_of(node, cst.Param)}
    return any(isinstance(call.func, cst.Name) and call.func.value in given for call in calls_in(node))


@dataclass(eq=False)
class Focus:
    """``elsewhere`` counts the names used in what was set aside."""

    around: Surroundings
    file: FileKernels
    aside: dict[str, list[cst.FunctionDef]]
    elsewhere: Counter[str]

    def kernels_in(self, holder: cst.CSTNode) -> list[tuple[str, int]]:
        """The keys of the kernels in a statement of the module."""
        index = self.file.index
        return [k.key for k in self.file.located if any(part is holder for part in (k.node, *index.ancestors(k.node)))]

    def restore(self, file: FileKernels) -> None:
        """Put what was set aside back around the statements of ``file``."""
        body: list[cst.BaseStatement] = []
        for statement in file.index.module.body:
            name = _mark_of(statement)
            if name is None or not isinstance(statement, cst.SimpleStatementLine):
                body.append(statement)
                continue
            kept, *others = self.aside[name]
            gained = statement.leading_lines  # comments of a removed statement that stood before
            lines = [*gained, *kept.leading_lines]
            body += [kept.with_changes(leading_lines=lines) if gained else kept, *others]
        self.around.module = file.index.module.with_changes(body=body)


def _mark_of(statement: cst.BaseStatement) -> str | None:
    if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1:
        small = statement.body[0]
        if isinstance(small, cst.Expr) and isinstance(small.value, cst.Name) and small.value.value.startswith(_MARK):
            return small.value.value
    return None


def factories(file: FileKernels) -> Sequence[cst.CSTNode]:
    """The statements of the module that hold kernels, in text order."""
    index = file.index
    found: dict[int, cst.CSTNode] = {}
    for item in file.located:
        *_, top, _module = (item.node, *index.ancestors(item.node))
        found[id(top)] = top
    return list(found.values())
