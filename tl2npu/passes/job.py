"""The work on one kernel: the current text, its model, and what has been changed and why."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import dropwhile
from types import MappingProxyType
from typing import Literal, TypeVar, cast

import libcst as cst

from tl2npu import printed
from tl2npu.across.users import Users
from tl2npu.codes import CODES
from tl2npu.kernel.bindings import assigned_names
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.factories.callers import callers_of
from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.kernel.factories.located import Located
from tl2npu.kernel.memory.alignment import Judge
from tl2npu.kernel.memory.inferred import infer_memory
from tl2npu.kernel.model import Kernel
from tl2npu.kernel.runtime import Late
from tl2npu.options import Options
from tl2npu.passes.provenance import buffers_of, in_authors_words
from tl2npu.results import Change, Diagnostic, Follower, Promise, Severity, one_line
from tl2npu.source.edits import Edits
from tl2npu.source.index import Index
from tl2npu.source.tree import SubclassesOf, children, mentioned, names_in, nodes_of, remembered, walk

FactT = TypeVar("FactT")

_IS_SMALL = SubclassesOf(cst.BaseSmallStatement)


@dataclass(frozen=True)
class Ways:
    """What is decided before a kernel is written, and may be decided otherwise afterwards.

    ``spends``: tiles may be added to save time (products of zeros that order the cores and start sums, tiles for
    columns of tensors). ``tight``: memory is short; no tile is kept for what can be made anew in every run of a loop,
    and products are added to their sums as late as may be. ``loops``: a block may do several tasks. ``in_turns``: the
    cores are to take turns, without stages.
    """

    spends: bool = True
    tight: bool = False
    loops: bool = True
    in_turns: bool = False


Parting = Literal["spending", "memory", "loops", "stages"]
"""Where one of :class:`Ways` first matters, in the order of the passes."""


@dataclass(frozen=True, eq=False)
class Fork:
    """Where the ways of a kernel part: the work so far, and the rest of it, which raises :class:`Blocked` where a pass
    cannot prove what it needs."""

    job: Job
    rest: Callable[[Job], None]


@dataclass(eq=False)
class Job:
    """One kernel on its way through a pipeline.

    Passes read ``kernel``, which they never change, and hand :class:`Edits` to :meth:`apply`, which makes the next tree
    and forgets the model.
    ``original`` is the index of the input text: the lines of all messages are lines of the input. ``elsewhere``
    counts the names used in those parts of the file that are set aside (:mod:`tl2npu.passes.focus`). ``split`` names
    the buffers whose rows the old kernel split itself, ``known_even`` the extents that must be even for it to be right,
    ``must_be_even`` those that it did not need to be even,
    ``overlapping`` those that it rounds up in one place and down in another.
    ``origin``: name and line in the input of a kernel that has been given another form before (eager kernels).
    ``users`` finds the other files that call a factory, None where nothing is known of them; ``promises`` are what
    these must do.
    ``staged``: a loop over both cores has stages. ``has_spent``: tiles were added to save time. ``has_looped``: a block
    does several tasks. ``has_kept_inside``: an index ends with its tensor, behind which a GPU reads 0. ``forks``: where
    :class:`Ways` part.
    ``made``: by id, nodes that passes wrote for a statement, and that statement.
    ``renamed``: the name that says for what an added tile was made, by the name that it has now.
    ``targets``: what the author compiles the kernel for, None once it is written for another target: the factory of
    several kernels names the new target with the first of them.
    ``steps``: the passes that have edited, each with the file behind it, where that is asked for (``--bisect``).
    ``told``: how many of ``notes`` come from passes; those behind are of checks, and of this one form.
    """

    original: Index
    file: FileKernels
    key: tuple[str, int]
    options: Options
    elsewhere: Counter[str] = field(default_factory=Counter)
    split: set[str] = field(default_factory=set)
    known_even: set[str] = field(default_factory=set)
    must_be_even: set[str] = field(default_factory=set)
    overlapping: set[str] = field(default_factory=set)
    origin: tuple[str, int] | None = None
    ways: Ways = Ways()
    staged: bool = False
    has_spent: bool = False
    has_looped: bool = False
    has_kept_inside: bool = False
    forks: dict[Parting, Fork] = field(default_factory=dict)
    users: Users | None = None
    targets: tuple[object, ...] | None = None
    promises: list[Promise] = field(default_factory=list)
    edited: list[tuple[str, cst.CSTNode, str]] = field(default_factory=list)
    notes: list[Diagnostic] = field(default_factory=list)
    told: int = 0
    steps: tuple[tuple[str, FileKernels], ...] = ()
    made: dict[int, tuple[cst.CSTNode, cst.CSTNode]] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    _lines: dict[int, tuple[cst.CSTNode, int | None]] = field(default_factory=dict)
    _kernel: Kernel | None = None
    _facts: tuple[Kernel, dict[object, object]] | None = None

    def copied(self) -> Job:
        """A job that goes on from here by itself."""
        return replace(
            self,
            split=set(self.split),
            known_even=set(self.known_even),
            must_be_even=set(self.must_be_even),
            overlapping=set(self.overlapping),
            promises=list(self.promises),
            edited=list(self.edited),
            notes=list(self.notes),
            made=dict(self.made),
            renamed=dict(self.renamed),
            forks=dict(self.forks),
            _lines=dict(self._lines),
        )

    def take(self, other: Job) -> None:
        """Go on from where a copy has come, which is not used any more."""
        vars(self).update(vars(other))

    def again(self) -> Job:
        """A job that starts here by itself, for a target of its own."""
        return replace(self.copied(), targets=None, _kernel=self.kernel)

    def part(self, where: Parting, rest: Callable[[Job], None]) -> None:
        """Go on with ``rest``, the first to ask for one of the ways; :meth:`back` can go on another one."""
        self.forks[where] = Fork(self.copied(), rest)
        rest(self)

    def back(self, where: Parting, ways: Ways) -> Fork:
        """The work up to a fork, for other ways from there on."""
        fork = self.forks[where]
        return Fork(replace(fork.job.copied(), ways=ways), fork.rest)

    @property
    def located(self) -> Located:
        """Where the kernel stands now."""
        return next(item for item in self.file.located if item.key == self.key)

    @property
    def kernel(self) -> Kernel:
        """The model of the kernel as it stands now, memories of ``alloc_shared`` inferred."""
        if self._kernel is None:
            self._kernel = self.located.read(self.targets)
            infer_memory(self._kernel)
        return self._kernel

    def fact(self, of: Callable[[Job], FactT]) -> FactT:
        """What a function finds out about the kernel as it stands now: once, until the kernel changes."""
        kernel = self.kernel
        if self._facts is None or self._facts[0] is not kernel:
            self._facts = kernel, {}
        facts = self._facts[1]
        if of not in facts:
            facts[of] = of(self)
        return cast(FactT, facts[of])

    @property
    def late(self) -> Late:
        """What only has a value when the kernel, as it stands now, is launched."""
        return self.fact(_late)

    @property
    def judge(self) -> Judge:
        """What is known of the alignment of accesses to UB in the kernel as it stands now."""
        return self.fact(_judge)

    @property
    def module(self) -> cst.Module:
        """The tree as it stands now."""
        return self.file.index.module

    def apply(self, edits: Edits) -> None:
        """Carry out the edits of a pass."""
        if edits:
            self._check_helpers(edits)
            for old, new in edits.replacements:
                self._note_sources(new, old)
            read, targets = self._kernel if self._is_beside(edits) else None, self.located.targets
            self.file = self.file.after(edits)
            self._kernel, self._facts = None, None
            now = self.located
            if read is not None and read.node is now.node and (self.targets is not None or targets == now.targets):
                self._kernel = read
            printed.edited(now.node)
            if printed.remembers():
                self.steps = (*self.steps, (printed.pass_at_work(), self.file))

    def _is_beside(self, edits: Edits) -> bool:
        """Whether the kernel reads as before: decorators change, or lines come that give new names."""
        index, said = self.file.index, frozenset[str]()
        around = [None, *index.ancestors(self.located.node)]
        for old, new in edits.replacements:
            if any(type(above) is cst.Decorator for above in index.ancestors(old)):
                continue
            come = [line for line in new if not _is_only_moved(old, line)]
            if len(come) == len(new) and not edits.keeps(old):
                return False
            if index.enclosing(old, cst.FunctionDef) not in around:
                return False  # in a macro
            if any(type(line) is not cst.SimpleStatementLine for line in come):
                return False
            if any(type(part) is not cst.Assign for line in come for part in walk(line) if _IS_SMALL[type(part)]):
                return False
            said = said or frozenset(mentioned(self.module))
            if any(assigned_names(line) & said for line in come):
                return False
        return True

    def restore(self, file: FileKernels, edited: list[tuple[str, cst.CSTNode, str]]) -> None:
        """Go back to an earlier state of the text."""
        self.file, self.edited, self._kernel = file, edited, None

    def promise(
        self,
        followers: tuple[Follower, ...],
        arguments: Mapping[int, str] = MappingProxyType({}),
        arity: int = 0,
        parameters: tuple[str, ...] = (),
        order: tuple[str, ...] = (),
    ) -> None:
        """Take for granted that other files lose arguments of the kernel, or of the factory.

        Raises :class:`Blocked` where it is known that they cannot.
        """
        factory = self.located.factory
        if followers and factory is not None:
            if self.users is not None and self.def_line in self.users.alone:
                raise Blocked("TL915", self.located.node, self.users.alone[self.def_line])
            name, places = factory.node.name.value, tuple(sorted(arguments.items()))
            made = Promise(self.kernel_name, self.def_line, name, followers, places, arity, parameters, order)
            self.promises.append(made)

    def _check_helpers(self, edits: Edits) -> None:
        """A macro or helper that other code, or another file, uses must stay as it is; raises :class:`Blocked`."""
        self._check_foreign(edits)
        index, kernel = self.file.index, self.located.node
        around = {id(above) for above in index.ancestors(kernel)}
        called = mentioned(kernel.body)
        seen: set[int] = set()
        for node in edits.nodes:
            chain = [node, *index.ancestors(node)]
            helper = next((above for above in chain if isinstance(above, cst.FunctionDef)), None)
            if helper is None or helper is node or id(helper) in around or kernel in chain or id(helper) in seen:
                continue
            if helper.name.value not in called:
                continue  # host code
            seen.add(id(helper))
            uses = [n for n in names_in(self.module) if n.value == helper.name.value and n is not helper.name]
            foreign = [n for n in uses if not any(a is kernel or id(a) in seen for a in index.ancestors(n))]
            if foreign or self.elsewhere[helper.name.value]:
                text = f"`{helper.name.value}` would have to change, but other code uses it too"
                raise Blocked("TL903", node, text)

    def _check_foreign(self, edits: Edits) -> None:
        for node in edits.nodes:
            if self.original.is_foreign(node) and edits.removes(node):
                continue  # it was only there to be read
            if node in self.original and (place := self.original.foreign(node)) is not None:
                path, line = place
                what = f"line {line} of {path}" if path else "an imported constant"
                raise Blocked("TL914", node, f"{what} would have to change, but other files may use it")

    def line(self, node: cst.CSTNode) -> int:
        """The line of the input text that a node, old or new, comes from; else that of what stands around it."""
        return self._line_now(node) or self._lines.get(id(node), (node, None))[1] or self._line_of_def() or 1

    def _line_now(self, node: cst.CSTNode) -> int | None:
        if node in self.original:
            return self.original.line(node)
        return (
            self._line_of_use(node)
            or self.original.first_line(node)
            or self._line_of_source(node)
            or self._line_around(node)
        )

    def _line_of_def(self) -> int | None:
        """The line of the kernel, for what no line is known of."""
        node = self.located.node
        return self.original.line(node.name) if node.name in self.original else self.original.first_line(node)

    def finding(self, code: str, node: cst.CSTNode, message: str, severity: Severity | None = None) -> Diagnostic:
        """A diagnostic of a rule at a node of the text as it stands now, about the author's tiles."""
        known = _every_buffer(self.original.module)
        message = in_authors_words(message, self.added_tiles(message), known, self.renamed)
        found = diagnostic(self.original, code, node, message, self.kernel_name, severity)
        return found if node in self.original else replace(found, line=self.line(node))

    def trace(self, new: Iterable[cst.CSTNode], source: cst.CSTNode) -> None:
        """Remember for what statement these ones are written: messages about them name its line."""
        for statement in new:
            for node in walk(statement):
                if node not in self.original:
                    self.made.setdefault(id(node), (node, source))

    def _note_sources(self, new: Iterable[cst.CSTNode], source: cst.CSTNode) -> None:
        """Remember what was replaced. Lines and blocks are often wrapped anew, what is in them stays."""
        for node in new:
            inner = node.body if isinstance(node, cst.SimpleStatementLine) else [getattr(node, "body", node)]
            for part in (node, *inner):
                if part is not source and part not in self.original:
                    self.made.setdefault(id(part), (part, source))

    def _line_of_source(self, node: cst.CSTNode) -> int | None:
        """The line of the statement for which a pass wrote a node, or a part of it that later passes left."""
        for part in walk(node):
            line = self._line_replaced(part)
            if line is not None:
                return line
        return None

    @property
    def _names_of_input(self) -> frozenset[str]:
        return _every_name(self.original.module)

    def added_tiles(self, message: str) -> set[str]:
        """The tiles that passes have added, of those that the code of a message names."""
        names = set(re.findall(r"[A-Za-z_]\w*", " ".join(message.split("`")[1::2]))) - self._names_of_input
        return names & {buffer.name for buffer in self.kernel.buffers.values()} if names else set()

    def _line_of_use(self, node: cst.CSTNode) -> int | None:
        """The line of the statement for which tiles were added, if a node is about no tile of the input.

        Allocations stand below those of the input, and what fills the tiles at the top: neither is near its cause.
        """
        index = self.file.index
        statement = index.statement(node) if node in index else None
        if statement is None or not isinstance(statement, cst.BaseSmallStatement):
            return None
        known = self._names_of_input
        if mentioned(statement) <= known:
            return None
        uses = self.fact(_uses)
        own = next((names for other, names in uses if other is statement), frozenset())
        added = own - known
        if not added or own & known:
            return None
        allocated = {None, *(self.original.first_line(b.node) for b in self.kernel.buffers.values())}
        for other, names in dropwhile(lambda use: use[0] is not statement, uses):
            if not names & added:
                continue
            lines = (self.original.first_line(other), self._line_replaced(other), self._line_around(other))
            line = next((line for line in lines if line not in allocated), None)
            if names & known and line is not None:
                return line
            added |= names - known
        return None

    def _line_around(self, node: cst.CSTNode) -> int | None:
        """The line of what the statement of a new node was written for, else of the closest old text around it."""
        index = self.file.index
        for above in index.ancestors(node) if node in index else ():
            line = self._line_replaced(above) or self.original.first_line(above)
            if line is not None:
                return line
        return None

    def _line_replaced(self, node: cst.CSTNode) -> int | None:
        """The line of what a node was written for, whatever that became in between."""
        seen: set[int] = set()
        while id(node) in self.made and id(node) not in seen:
            seen.add(id(node))
            node = self.made[id(node)][1]
            line = self.original.first_line(node)
            if line is not None:
                return line
        return None

    def change(self, code: str, node: cst.CSTNode, message: str) -> None:
        """Record an edit. Where a new node stands is remembered now: later passes may replace it."""
        self.edited.append((code, node, message))
        if node not in self.original and id(node) not in self._lines:
            self._lines[id(node)] = node, self._line_now(node)

    @property
    def changes(self) -> list[Change]:
        """What was edited, with lines of the input; worked out only for the form that is taken.

        Of what a tile is allocated as, the last word counts: later passes know more of its uses.
        """
        last = {_tile_of(message): number for number, (code, _, message) in enumerate(self.edited) if code == "TL130"}
        return [
            Change(code, self.line(node), one_line(message), self.kernel_name, CODES[code].safety)
            for number, (code, node, message) in enumerate(self.edited)
            if " -> alloc_" not in message or last.get(_tile_of(message), number) == number
        ]

    @property
    def kernel_name(self) -> str:
        """The name that reports use."""
        return self.key[0] if self.origin is None else self.origin[0]

    @property
    def def_line(self) -> int:
        """The line of the input's ``def`` of the kernel."""
        return self.line(self.located.node) if self.origin is None else self.origin[1]

    def note(
        self,
        code: str,
        node: cst.CSTNode,
        message: str,
        severity: Severity | None = None,
        *,
        done: bool = False,
        help: str = "",
    ) -> None:
        """Record a finding; ``done``: its advice is taken already, so the finding gets none. ``help``: in its place."""
        found = self.finding(code, node, message, severity)
        self.notes.append(replace(found, help="" if done else help or found.help))


def _is_only_moved(old: cst.CSTNode, new: cst.CSTNode) -> bool:
    """Whether a function is another one with other lines above it."""
    if type(old) is not cst.FunctionDef or type(new) is not cst.FunctionDef:
        return False
    parts, others = children(old), children(new)
    return len(parts) == len(others) and all(one is other for one, other in zip(parts, others, strict=True))


def _uses(job: Job) -> list[tuple[cst.CSTNode, frozenset[str]]]:
    """Every small statement of the kernel, in text order, with the tiles that it names."""
    tiles = {buffer.name for buffer in job.kernel.buffers.values()}
    lines = nodes_of(job.located.node.body, cst.BaseSmallStatement)  # type: ignore[type-abstract]
    return [(line, frozenset(mentioned(line) & tiles)) for line in lines]


@remembered
def _every_name(module: cst.Module) -> frozenset[str]:
    return frozenset(mentioned(module))


@remembered
def _every_buffer(module: cst.Module) -> frozenset[str]:
    return buffers_of(module)


def _late(job: Job) -> Late:
    return Late.of(job.file, job.located, job.kernel)


def _tile_of(message: str) -> str:
    return message.partition("`")[2].partition("`")[0]


def _judge(job: Job) -> Judge:
    callers, factory = callers_of(job.file, job.located), job.located.factory
    defaults = [found for one in callers if factory and (found := one.with_defaults(factory.node)) is not None]
    return Judge.of(job.file, job.located, job.kernel, (*callers, *defaults), job.late)


def diagnostic(
    index: Index, code: str, node: cst.CSTNode, message: str, kernel: str | None, severity: Severity | None = None
) -> Diagnostic:
    """A diagnostic of a rule at a node of the input."""
    rule = CODES[code]
    place = index.foreign(node) if node in index else None
    if place is not None and place[0] and place[0] not in message:
        message = f"{message} (line {place[1]} of {place[0]})"
    return Diagnostic(
        code=code,
        name=rule.name,
        severity=severity or rule.severity,
        line=index.first_line(node) or 1,
        message=one_line(message),
        help=rule.remedy,
        kernel=kernel,
        safety=rule.safety,
    )
