"""The second phase: files that call a factory follow when its calls have changed, or the factory stays as it was."""

from __future__ import annotations

import pickle
from collections.abc import Generator, Iterable
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tl2npu.options import Options
from tl2npu.project.held import Held
from tl2npu.project.one import Outcome, look, process
from tl2npu.results import Follower, Promise

if TYPE_CHECKING:
    from tl2npu.results import Diagnostic


def settled(outcomes: Iterable[Outcome], options: Options, hold: bool) -> Generator[Outcome, None, None]:
    """The outcomes after all promises are kept or withdrawn, in their order.

    ``hold``: promises are likely, so that outcomes wait until all are there; else a kernel that needs other files to
    follow stays as it is.
    """
    if not hold:
        for outcome in outcomes:
            yield outcome if not outcome.result.promises else _withdrawn(outcome, options)
        return
    with closing(Held()) as held:
        second = _Second(held, options)
        for number, outcome in enumerate(outcomes):
            second.add(number, outcome)
        second.settle()
        for number in range(second.count):
            yield second.final(number)


def _withdrawn(outcome: Outcome, options: Options) -> Outcome:
    """The outcome of a file alone."""
    if outcome.source is None:
        return outcome
    result = process("migrate", outcome.source.text, outcome.result.path, options, False)
    return replace(outcome, result=result)


@dataclass(eq=False)
class _Second:
    held: Held
    options: Options
    count: int = 0
    numbers: dict[Path, int] = field(default_factory=dict)
    promising: list[int] = field(default_factory=list)
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

    def settle(self) -> None:
        """Keep all promises; each round that fails leaves one more kernel as it was."""
        first = {number: self._taken(number) for number in self.promising}
        while not self._kept(first):
            pass

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
                for other in [g for g in self.groups if g & group]:
                    group |= other
                    self.groups.remove(other)
                self.groups.append(group)
        return True

    def _follow(self, promise: Promise, follower: Follower, number: int) -> int | None:
        """The number of the follower, changed; None if it cannot follow, and the kernel must stay."""
        from tl2npu.migrate import not_followed, unkept
        from tl2npu.passes.followers import Unable, follow

        target = self.numbers.get(Path(follower.path).resolve())
        try:
            if target is None:
                raise Unable(follower.line, "give both files to one run")
            if target not in self.now:
                self.originals[target] = self._taken(target)
                self.now[target] = self._with_text(self.originals[target])
            outcome = self.now[target]
            if outcome.source is None or outcome.result.error is not None or outcome.skipped is not None:
                raise Unable(follower.line, outcome.result.error or "the file is left out")
            text = outcome.source.text
            new, changes = follow(outcome.result.new_text or text, outcome.result.path, follower.names, promise)
            if outcome.result.changed:
                _, changes = follow(text, outcome.result.path, follower.names, promise)  # for the lines of the input
        except Unable as unable:
            why = unkept(promise, replace(follower, line=unable.line), str(unable))
            self.left.setdefault(number, {})[promise.line] = why
            if target is not None:
                text = f"`{promise.factory}` of {self.now[number].result.path} stays as it is: {unable}"
                self.notes.setdefault(target, []).append(not_followed(unable.line, text))
            return None
        result = replace(outcome.result, old_text=text, new_text=new, changes=(*outcome.result.changes, *changes))
        self.now[target] = replace(outcome, result=result)
        return target

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
        from tl2npu.migrate import migrate_text

        assert outcome.source is not None
        result = migrate_text(outcome.source.text, outcome.result.path, self.options, together=True, alone=left)
        return replace(outcome, result=result)
