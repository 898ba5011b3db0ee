"""Pipes that stand still for ever: each waits for a flag that another sets behind a wait of its own.

The machine executes in the order of the text, where a set may come behind its wait. Here the flags of one core run once
more, as on the hardware: a pipe does what was handed to it in order, and the scalar unit stands still at a barrier.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from tl2npu.simulator.hazards.hazard import Party
from tl2npu.simulator.hazards.pipes import PIPES

Flag = tuple[str, str, int]
_PRODUCT = "MTE2 MTE1 FIX M MTE1 M M MTE1 MTE1 MTE2 M FIX".split()
"""In pairs: the second pipe waits for the first, inside of ``gemm_v0``."""


@dataclass(eq=False)
class Held:
    """What was handed to a pipe behind a wait. ``action``: Set, Wait, or Barrier, which has no ``flag``."""

    action: str
    flag: Flag | None
    party: Party


@dataclass(eq=False)
class Stalls:
    """The pipes of one core; ``lines``: what each still has to do, in order, the first of it a wait."""

    lines: dict[str, list[Held]] = field(default_factory=lambda: defaultdict(list))
    raised: dict[Flag, int] = field(default_factory=lambda: defaultdict(int))

    def hand_out(self, action: str, flag: Flag | None, party: Party) -> None:
        """The next statement of the core, in the order of the text."""
        if not any(self.lines.values()) and (action != "Wait" or (flag is not None and self.raised[flag])):
            if flag is not None:
                self.raised[flag] += 1 if action == "Set" else -1
            return
        self.lines["S"].append(Held(action, flag, party))
        while any(map(self._advance, tuple(self.lines))):
            pass

    def product(self, party: Party) -> None:
        """A ``gemm_v0``; it holds nothing up itself."""
        if any(self.lines.values()):
            for source, target in zip(_PRODUCT[::2], _PRODUCT[1::2], strict=True):
                for action in ("Set", "Wait"):
                    self.hand_out(action, (source, target, -1), party)

    def _advance(self, pipe: str) -> bool:
        """Does what can be done at the head of a line; the scalar unit hands on what others have to do."""
        line = self.lines[pipe]
        if not line:
            return False
        head = line[0]
        if head.flag is None:
            if any(self.lines[other] for other in PIPES[1:]):
                return False
        else:
            owner = head.flag[0] if head.action == "Set" else head.flag[1]
            if owner != pipe:
                self.lines[owner].append(line.pop(0))
                return True
            if head.action == "Wait" and not self.raised[head.flag]:
                return False
            self.raised[head.flag] += 1 if head.action == "Set" else -1
        line.pop(0)
        return True

    def circle(self) -> list[tuple[Held, Held | None]]:
        """Waits, each with the set that would end it, which stands behind the next one; empty if there are none."""
        for start in filter(None, list(self.lines.values())):
            found: list[tuple[Held, Held | None]] = []
            at: tuple[Held, Held | None, str] | None = self._ends(start[0])
            while at is not None and all(at[0] is not wait for wait, _ in found):
                found.append(at[:2])
                at = self._ends(self.lines[at[2]][0])
            if at is not None:
                found = found[next(n for n, (wait, _) in enumerate(found) if wait is at[0]) :]
                while found[0][0].flag is None:
                    found.append(found.pop(0))
                return found
        return []

    def _ends(self, wait: Held) -> tuple[Held, Held | None, str] | None:
        """A wait, the set that would end it, and in whose line that stands."""
        for pipe, line in self.lines.items():
            if wait.flag is None and line and pipe != "S":
                return wait, None, pipe
            for held in line:
                if wait.flag is not None and held.action == "Set" and held.flag == wait.flag:
                    return wait, held, pipe
        return None

    def message(self) -> tuple[Party, str] | None:
        """Where the first of these waits is, and what it comes to."""
        circle = self.circle()
        if not circle:
            return None
        first, parts = circle[0][0], []
        for wait, setter in circle:
            party = wait.party
            who = f"PIPE_{wait.flag[1]}" if wait.flag is not None else "the barrier of all pipes"
            where = f" of block {party.block} ({party.core}) waits" if wait is first else " waits before that"
            text = f"{who}{where} at {party.site}"
            if wait.flag is not None and setter is not None:
                text += f" for flag {wait.flag[0]} -> {wait.flag[1]} {wait.flag[2]}, set at {setter.party.site}"
            parts.append(text)
        return first.party, f"deadlock: {'; '.join(parts)}, which comes behind the first wait"
