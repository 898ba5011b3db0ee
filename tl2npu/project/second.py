"""The second phase: files that call a factory follow when its calls have changed, or the factory stays as it was.

Files that compile a kernel which is for the NPU now say what that needs (:mod:`tl2npu.project.compiling`).
"""

from __future__ import annotations

import pickle
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tl2npu.cells import Places, by_cells
from tl2npu.options import Options
from tl2npu.project.compiling import alone_compiled, may_be_compiled, settle_compiling
from tl2npu.project.held import Held
from tl2npu.project.one import Memory, Outcome, look, process, reported
from tl2npu.project.verdicts import recalled
from tl2npu.results import Diagnostic, FileResult, Follower, Promise
from tl2npu.source.notebook import Notebook, NotebookSkipped, is_notebook
from tl2npu.source.text import SourceError

if TYPE_CHECKING:
    from tl2npu.passes.host.followers import Unable


def settled(
    outcomes: Iterable[Outcome], options: Options, hold: bool, cache: Memory | None = None
) -> Generator[Outcome, None, None]:
    """The outcomes after all promises are kept or withdrawn, in their order.

    ``hold``: promises are likely, so that outcomes wait until all are there; else a kernel that needs other files to
    follow stays as it is.
    """
    if not hold:
        for outcome in outcomes:
            alone = outcome if not outcome.result.promises else _withdrawn(outcome, options, cache)
            yield alone_compiled(alone, options)
        return
    with closing(Held()) as held:
        second = _Second(held, options, cache)
        for number, outcome in enumerate(outcomes):
            second.add(number, outcome)
        second.settle()
        for number in range(second.count):
            yield second.final(number)


def _withdrawn(outcome: Outcome, options: Options, cache: Memory | None) -> Outcome:
    """The outcome of a file alone."""
    if outcome.source is None:
        return outcome
    result = process("migrate", outcome.source.text, outcome.result.path, options, False, cache=cache)
    return replace(outcome, result=result)


def _followed(text: str, path: str, names: Sequence[str], promise: Promise) -> FileResult:
    """A file, or the cells of a notebook, after its calls have followed. Raises ``Unable``."""
    from tl2npu.passes.host.followers import Unable, follow

    def of_code(code: str) -> FileResult:
        new, changes = follow(code, path, names, promise)
        return FileResult(path, code, new, changes=tuple(changes))

    if not is_notebook(path):
        return of_code(text)
    try:
        done = by_cells(text, path, of_code, always=True)
    except NotebookSkipped as skipped:
        raise Unable(1, str(skipped)) from None
    if done.error is not None:
        raise Unable(1, done.error)
    return done


@dataclass(eq=False)
class _Second:
    held: Held
    options: Options
    cache: Memory | None = None
    count: int = 0
    numbers: dict[Path, int] = field(default_factory=dict)
    promising: list[int] = field(default_factory=list)
    compiled: list[int] = field(default_factory=list)  # files with kernels that others may compile
    left: dict[int, dict[int, str]] = field(default_factory=dict)  # file -> line of a kernel that stays -> why
    now: dict[int, Outcome] = field(default_factory=dict)  # those of files that promise or follow
    originals: dict[int, Outcome] = field(default_factory=dict)  # of followers, before they followed
    groups: list[set[int]] = field(default_factory=list)
    notes: dict[int, list[Diagnostic]] = field(default_factory=dict)  # file -> calls that did not follow

    def add(self, number: int, outcome: Outcome) -> None:
        self.count = number + 1
        self.numbers[outcome.found.path.resolve()] = number
        self.held.put(number, pickle.dumps(outcome, pickle.HIGHEST_PROTOCOL))
        if outcome.result.promises:
            self.promising.append(number)
        if may_be_compiled(outcome):
            self.compiled.append(number)

    def settle(self) -> None:
        """Keep all promises; each round that fails leaves one more kernel as it was. Then kernels are compiled."""
        first = {number: self._taken(number) for number in self.promising}
        while not self._kept(first):
            pass
        if self.compiled:
            self.now |= {number: self._of(number) for number in self.compiled}
            groups = settle_compiling(self.compiled, self.now, self.numbers, self._of, self.options)
            for group in groups:
                self._join(group)

    def _of(self, number: int) -> Outcome:
        if number not in self.now:
            self.now[number] = self._with_text(self._taken(number))
        return self.now[number]

    def _join(self, group: set[int]) -> None:
        """Files that are written together, or none of them is."""
        for other in [g for g in self.groups if g & group]:
            group |= other
            self.groups.remove(other)
        self.groups.append(group)

    def final(self, number: int) -> Outcome:
        outcome = self.now.get(number)
        if outcome is None:
            return self._noted(number, self._taken(number))
        group = next((group for group in self.groups if number in group), set())
        members = tuple(self._noted(member, self.now[member]) for member in sorted(group))
        return replace(self._noted(number, outcome), group=members)

    def _noted(self, number: int, outcome: Outcome) -> Outcome:
        notes = (*outcome.result.diagnostics, *self.notes.get(number, ()))
        ordered = tuple(sorted(notes, key=lambda item: (item.line, item.code)))
        return replace(outcome, result=replace(outcome.result, diagnostics=ordered))

    def _taken(self, number: int) -> Outcome:
        data = self.held.take(number)
        assert data is not None
        outcome = pickle.loads(data)
        assert isinstance(outcome, Outcome)
        return outcome

    def _kept(self, first: dict[int, Outcome]) -> bool:
        for number, outcome in first.items():
            self.now[number] = self._again(outcome, self.left[number]) if number in self.left else outcome
        for number in list(self.now):
            if number not in first:
                self.held.put(number, pickle.dumps(self.originals.pop(number)))
                del self.now[number]
        self.groups = []
        for number in first:
            for promise in self.now[number].result.promises:
                group = {number}
                for follower in promise.followers:
                    target = self._follow(promise, follower, number)
                    if target is None:
                        return False
                    group.add(target)
                self._join(group)
        return True

    def _follow(self, promise: Promise, follower: Follower, number: int) -> int | None:
        """The number of the follower, changed; None if it cannot follow, and the kernel must stay."""
        from tl2npu.migration import unkept
        from tl2npu.passes.host.followers import Unable

        target = self.numbers.get(Path(follower.path).resolve())
        try:
            if target is None:
                raise Unable(follower.line, "migrate both files in one run")
            if target not in self.now:
                self.originals[target] = self._taken(target)
                self.now[target] = self._with_text(self.originals[target])
            outcome = self.now[target]
            if outcome.source is None or outcome.result.error is not None or outcome.skipped is not None:
                raise Unable(follower.line, outcome.result.error or "the file was skipped")
            text = outcome.source.text
            done = _followed(outcome.result.new_text or text, outcome.result.path, follower.names, promise)
            told = _followed(text, outcome.result.path, follower.names, promise) if outcome.result.changed else done
        except Unable as unable:
            note = self._note(
                target, unable, f"{self.now[number].result.path}: `{promise.factory}` keeps its parameters"
            )
            if target is not None:
                follower = replace(follower, line=note.line, cell=note.cell)
            why = unkept(promise, follower, str(unable))
            self.left.setdefault(number, {})[promise.line] = why
            if target is not None:
                self.notes.setdefault(target, []).append(note)
            return None
        changes = (*outcome.result.changes, *told.changes)  # in lines of the input
        cells = outcome.result.cells or told.cells
        result = replace(outcome.result, old_text=text, new_text=done.new_text, changes=changes, cells=cells)
        self.now[target] = replace(outcome, result=result)
        return target

    def _note(self, target: int | None, unable: Unable, what: str) -> Diagnostic:
        """What the other file is told that does not follow."""
        from tl2npu.migration import not_followed

        note = not_followed(unable.line, f"{what}: {unable}")
        outcome = None if target is None else self.now.get(target)
        if outcome is None or outcome.source is None or not is_notebook(outcome.result.path):
            return note
        try:
            return Places(Notebook.read(outcome.source.text), outcome.result.path).diagnostic(note)
        except (SourceError, NotebookSkipped):
            return note

    def _with_text(self, outcome: Outcome) -> Outcome:
        """An outcome that has its text: those of files without kernels may come without."""
        if outcome.source is not None or outcome.result.error is not None or outcome.skipped is not None:
            return outcome
        seen = look(outcome.found, self.options)
        if isinstance(seen, Outcome):
            return seen
        return Outcome(outcome.found, replace(outcome.result, old_text=seen[0].text, new_text=seen[0].text), seen[0])

    def _again(self, outcome: Outcome, left: dict[int, str]) -> Outcome:
        """The file once more, with some kernels as they were."""
        from tl2npu.languages import migrate_source

        assert outcome.source is not None
        given = outcome.source.text, outcome.result.path, self.options
        result, _ = recalled(self.cache, lambda leave: migrate_source(*given, leave, together=True, alone=left))
        return replace(outcome, result=reported(result, self.options))
