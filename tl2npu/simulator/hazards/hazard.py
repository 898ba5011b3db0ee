"""What is reported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tl2npu.simulator.ir.stmt import Site

RAW, WAR, WAW = RACES = ("RAW", "WAR", "WAW")
UNINITIALISED = "uninitialised-read"
UNWRITTEN_OUTPUT = "unwritten-output"
OUT_OF_BOUNDS = "out-of-bounds"
UNPAIRED = "unpaired-flag"
REDUNDANT = "redundant-flag"
FLAG_RANGE = "flag-range"
DEADLOCK = "deadlock"
CAPACITY = "over-capacity"
MISALIGNED = "misaligned-access"

ERROR, WARNING, NOTE = "error", "warning", "note"

MEMORIES = {"global": "GM", "ub": "UB", "l1": "L1", "l0a": "L0A", "l0b": "L0B", "l0c": "L0C"}
"""Names of memories as Ascend engineers write them; other memories keep theirs."""


@dataclass(frozen=True)
class Party:
    """One side of a hazard. ``action``: Read, Write, Atomic, Set, Wait; ``core``: aic, aiv0, aiv1, or gpu.

    ``pipe``: MTE1, MTE2, MTE3, M, V, FIX, S, or empty on a GPU; ``operator``: the name after ``T.``, or ``=``.
    """

    site: Site
    action: str
    core: str
    block: int
    pipe: str = ""
    operator: str = ""

    def __str__(self) -> str:
        pipe = f"PIPE_{self.pipe} " if self.pipe else ""
        where = f"block {self.block}" + (f" ({self.core})" if self.core not in ("gpu", "npu") else "")
        return f"{pipe}{self.action} at {self.site} in {where}"

    def json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "file": self.site.file,
            "line": self.site.line,
            "action": self.action,
            "core": self.core,
            "block": self.block,
            "pipe": self.pipe,
            "operator": self.operator,
        }


@dataclass(frozen=True)
class Hazard:
    """One finding. ``first`` happened earlier in the run that showed it, ``second`` later.

    ``kind``: one of the constants of this module. ``memory``: GM, L1, UB, L0A, L0B, L0C, or empty. ``severity``:
    ``error``, ``warning`` for what is wrong unless it is meant, ``note`` for what does no harm as far as can be told.
    ``count``: how often it was seen.
    """

    kind: str
    message: str
    memory: str = ""
    buffer: str = ""
    first: Party | None = None
    second: Party | None = None
    severity: str = ERROR
    count: int = 1

    @property
    def key(self) -> tuple[Any, ...]:
        """Findings with one key are one finding."""
        sites = tuple(p.site if p is not None else None for p in (self.first, self.second))
        return (self.kind, self.buffer, *sites) if any(sites) else (self.kind, self.buffer, self.message)

    @property
    def site(self) -> Site | None:
        """The line that the finding is about: of the later access."""
        party = self.second or self.first
        return party.site if party is not None else None

    def json(self) -> dict[str, Any]:
        """Plain values, for ``--format json``."""
        return {
            "kind": self.kind,
            "severity": self.severity,
            "message": self.message,
            "memory": self.memory,
            "buffer": self.buffer,
            "first": self.first.json() if self.first else None,
            "second": self.second.json() if self.second else None,
            "count": self.count,
        }


def conflict(kind: str, memory: str, buffer: str, first: Party, second: Party, severity: str = ERROR) -> Hazard:
    """Two accesses of one element without an order between them."""
    message = f"Potential {kind} hazard at {memory}: {_of(first, buffer)} and {_of(second, buffer)} are not ordered"
    if severity == NOTE:
        message += "; both write the same value"
    return Hazard(kind, message, memory, buffer, first, second, severity)


def _of(party: Party, buffer: str) -> str:
    return str(party).replace(f"{party.action} at", f"{party.action} of {buffer} at", 1)
