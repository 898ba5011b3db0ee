"""What a machine tells an observer, if it has one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from tl2npu.simulator.ir.buffer import Buffer
from tl2npu.simulator.ir.stmt import Launch, Site, Stmt
from tl2npu.simulator.lowering.program import Program
from tl2npu.simulator.machine.access import Access

Token = Any
"""What a release gives and an acquire takes; the machine only carries it."""


@dataclass(frozen=True)
class Made:
    """Buffer numbers of tensors that the call itself makes, so that nothing is in them: ``outputs`` are returned,
    ``scratch`` is not. ``ends``: how many elements the caller's tensor has, where the kernel declares more."""

    outputs: frozenset[int] = frozenset()
    scratch: frozenset[int] = frozenset()
    ends: Mapping[int, int] = field(default_factory=dict)


class WatchedRunner(Protocol):
    """What an observer may ask of a launch."""

    program: Program
    launch: Launch
    sites: list[Site]
    names: dict[int, str]
    blocks: int
    """How many blocks the launch has this time."""
    automatic_sync: bool
    """The compiler orders what runs on the pipes of one core."""
    planned: bool
    """The compiler's memory planning gives buffers with disjoint lifetimes one address."""
    addresses: Mapping[str, int]
    """Byte addresses on the chip that the kernel gives by hand, by buffer name."""
    pooled: Mapping[int, int]
    """The addresses of the buffers that lie in a memory in which such buffers overlap, by number."""
    pool_sizes: Mapping[str, int]
    """Bytes of such memories."""
    written: set[int]
    """Numbers of the global tensors that the launch writes somewhere."""
    watched_statements: list[tuple[Stmt, bool, int]]
    """Statements by the number that the program gives them; whether each is in a ``T.Parallel``; its line's number."""

    @property
    def buffers(self) -> Mapping[int, Buffer]:
        """All buffers that the launch names."""

    def itemsize(self, buffer: Buffer) -> int:
        """Bytes that an element of a buffer takes here."""


class Watcher(Protocol):
    """An observer of one call. ``site`` arguments are numbers of lines in the launch's ``sites``."""

    def begin(self, runner: Any, arrays: dict[int, np.ndarray], made: Made) -> None:
        """A launch begins, on these tensors."""

    def access(self, core: Any, names: dict[int, str], sites: list[Site]) -> Access:
        """How a core reaches memory."""

    def end_block(self, number: int, left: Any) -> None:
        """A block is over that no other block waits for; ``left``: flags that nobody waited for."""

    def end(self, runner: Any, left: Any) -> None:
        """The launch is over."""

    def finish(self) -> None:
        """The call is over: no other launch follows."""

    def deadlock(self, waiting: list[tuple[Any, str, Site]]) -> None:
        """No core can go on: each with what it waits for and where."""

    def release(self, core: Any, site: int, pipe: str, flag: Any) -> Token:
        """A core sets a cross flag."""

    def merge(self, tokens: list[Token]) -> Token:
        """A flag for which several cores had to set."""

    def acquire(self, core: Any, site: int, pipe: str, flag: Any, token: Token) -> None:
        """A core has waited for a cross flag."""

    def too_many(self, core: Any, site: int, flag: Any, count: int) -> None:
        """A cross flag's counter is above what the hardware holds."""

    def arrive_all(self, core: Any, site: int) -> Token:
        """A core comes to a barrier of all cores."""

    def leave_all(self, core: Any, site: int, tokens: list[Token]) -> None:
        """And leaves it."""

    def set_flag(self, core: Any, site: int, src: str, dst: str, number: int) -> None:
        """A flag between two pipes of a core is set."""

    def wait_flag(self, core: Any, site: int, src: str, dst: str, number: int) -> None:
        """It is waited for."""

    def pipe_barrier(self, core: Any, site: int, pipe: str) -> None:
        """A barrier of one pipe, or of ``all``."""
