"""The pipes of a core as queues: which wait can never end.

Each pipe executes its instructions in order, and stands still at a ``wait_flag`` until the pipe that sets the flag has
come to the ``set_flag``. The scalar unit hands the instructions out; it stands still itself at a barrier of all pipes,
and where it waits for a flag. Whether a pipe gets on does not depend on how fast the others are.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

from tl2npu.kernel.flags.pipes import PIPES
from tl2npu.kernel.model import Stmt

SCALAR = PIPES[0]
Key = tuple[str, str, Hashable]
"""The pipe that sets a flag, the one that waits for it, and the event."""
_PRODUCT = (("MTE2", "MTE1"), ("FIX", "M"), ("MTE1", "M"), ("M", "MTE1"), ("MTE1", "MTE2"), ("M", "FIX"))
"""Which pipe waits for which in ``gemm_v0``, in order (``tl_templates/ascend/common.h:gemm_v0``)."""


@dataclass(frozen=True, eq=False)
class Item:
    """An instruction: a set, a wait, or, with no ``key``, a barrier of all pipes.

    ``order``: its place among all; ``later``: it comes behind the first turn of a loop of unknown length; ``cut``: it
    comes behind a loop of which turns were left out.
    """

    stmt: Stmt
    pipe: str
    key: Key | None
    sets: bool
    order: int
    later: bool
    cut: bool


@dataclass(frozen=True, eq=False)
class Jam:
    """A wait that never ends. ``path``: what sets its flag, and the wait behind which that stands, and so on until
    the first wait comes again; empty if nothing sets its flag."""

    wait: Item
    path: tuple[tuple[Item | None, Item], ...]

    @property
    def items(self) -> Iterator[Item]:
        """Everything that it takes."""
        yield self.wait
        for setter, head in self.path:
            yield head
            if setter is not None:
                yield setter


@dataclass(eq=False)
class Queues:
    """One core. ``passed``: pairs of pipes between which every wait ends, as its flags cannot be followed."""

    waiting: dict[str, deque[Item]] = field(default_factory=lambda: {pipe: deque() for pipe in PIPES})
    up: Counter[Key] = field(default_factory=Counter)
    passed: set[tuple[str, str]] = field(default_factory=set)
    count: int = 0

    def put(self, stmt: Stmt, key: Key | None, sets: bool, later: bool, cut: bool) -> None:
        """The scalar unit hands out the next instruction."""
        self.count += 1
        pipe = SCALAR if key is None else key[0] if sets else key[1]
        item = Item(stmt, pipe, key, sets, self.count, later, cut)
        at = SCALAR if self.waiting[SCALAR] else pipe
        if self.waiting[at] or not self._runs(item):
            self.waiting[at].append(item)
        elif sets:
            self._go_on()

    def product(self, stmt: Stmt, later: bool, cut: bool) -> None:
        """``gemm_v0``, which sets and waits for flags of its own."""
        if any(self.waiting.values()):
            for src, dst in _PRODUCT:
                for sets in (True, False):
                    self.put(stmt, (src, dst, f"gemm_v0 {src}"), sets, later, cut)

    def let_pass(self, src: str, dst: str) -> None:
        """Nothing is said of the flags from one pipe to another."""
        self.passed.add((src, dst))
        self._go_on()

    def _runs(self, item: Item) -> bool:
        """Executes it, if it can be."""
        if item.key is None:
            return not any(queue for pipe, queue in self.waiting.items() if pipe != SCALAR)
        if item.sets:
            self.up[item.key] += 1
        elif item.key[:2] not in self.passed:
            if not self.up[item.key]:
                return False
            self.up[item.key] -= 1
        return True

    def _go_on(self) -> None:
        moved = True
        while moved:
            moved = False
            for at, queue in self.waiting.items():
                while queue:
                    other = self.waiting[queue[0].pipe] if queue[0].pipe != at else None
                    if other:
                        other.append(queue.popleft())
                    elif self._runs(queue[0]):
                        queue.popleft()
                    elif other is not None:
                        other.append(queue.popleft())
                    else:
                        break
                    moved = True

    def jam(self) -> Jam | None:
        """What holds up the others, at the end."""
        heads = [queue[0] for queue in self.waiting.values() if queue]
        if not heads:
            return None
        head = min(heads, key=lambda item: item.order)
        path: list[tuple[Item | None, Item]] = []
        while (found := self._held_by(head)) is not None:
            turn = next((n for n, (_, seen) in enumerate(path) if seen is found[1]), None)
            if turn is not None:
                path = [found, *path[turn + 1 :]]
                first = min(range(len(path)), key=lambda n: (path[n][1].key is None, path[n][1].order))
                return Jam(path[first][1], (*path[first + 1 :], *path[: first + 1]))
            path.append(found)
            head = found[1]
        return Jam(head, ())

    def _held_by(self, head: Item) -> tuple[Item | None, Item] | None:
        """What would end a wait, and the wait in front of that; None if there is nothing."""
        if head.key is None:
            others = [queue[0] for pipe, queue in self.waiting.items() if queue and pipe != SCALAR]
            return None, min(others, key=lambda item: item.order)
        for queue in self.waiting.values():
            for item in queue:
                if item.sets and item.key == head.key:
                    return item, queue[0]
        return None
