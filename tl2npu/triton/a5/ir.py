"""What a kernel for A5 has beside the statements of the tile IR, until it is merged to one program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from tl2npu.tile.ir import For, If, Origin, Stmt, reads, writes

Core = Literal["cube", "vector"]
CORES: dict[Core, str] = {"cube": "the cube core", "vector": "the vector cores"}


@dataclass(frozen=True)
class Scope:
    """Statements that one kind of core executes: the cube core, or both vector cores at the same time."""

    core: Core
    body: tuple[Stmt, ...]
    origin: Origin


@dataclass(frozen=True)
class Event:
    """``sync_block_set`` or ``sync_block_wait``: the k-th wait for a number returns after the k-th set of it.

    ``pipes``: those of sender and receiver, if they are named.
    """

    kind: Literal["set", "wait"]
    sender: Core
    number: int
    pipes: tuple[str, str] | None
    origin: Origin

    @property
    def by(self) -> Core:
        """The core that executes it."""
        receiver: Core = "vector" if self.sender == "cube" else "cube"
        return self.sender if self.kind == "set" else receiver

    @property
    def key(self) -> tuple[Core, int]:
        """What counts: events of two senders have nothing to do with each other."""
        return self.sender, self.number


def inside(body: Iterable[object]) -> Iterator[object]:
    """Every statement, those in loops, branches and scopes too."""
    for stmt in body:
        yield stmt
        if isinstance(stmt, (For, Scope)):
            yield from inside(stmt.body)
        elif isinstance(stmt, If):
            yield from inside(stmt.then)
            yield from inside(stmt.orelse)


def touched(stmt: object) -> tuple[frozenset[str], frozenset[str]]:
    """The buffers that a statement itself reads, and those that it writes."""
    if isinstance(stmt, (Scope, Event)):
        return frozenset(), frozenset()
    return reads(stmt), writes(stmt)  # type: ignore[arg-type]
