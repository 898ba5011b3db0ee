"""One run of a Triton script: who is told of launches, and what was found in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tl2npu.interpreter.memory import Memory
from tl2npu.simulator.errors import UnsupportedOperator
from tl2npu.verified import Fault

VERSIONS = "triton>=3.7,<3.9"
"""The versions that interpret here and have block pointers; pip's name of them."""


class NoTriton(UnsupportedOperator, ModuleNotFoundError):
    """The script imports Triton, which is not installed, or not in a version that can be used. An ImportError, too, as
    scripts may do without."""


class KernelFault(UnsupportedOperator):
    """A kernel has done what it must not do, or what tl2npu has no meaning for."""


@dataclass(eq=False)
class Interpreter:
    """``recorder`` is given each ``Launching`` and has to run it, by ``run`` or ``recorded``.

    ``watching``: launches whose cores run at the same time are run under two opposite schedules, and accesses outside
    of all memory are told; without, they are still left out. ``faults``: what was found, each kind and text once.
    """

    recorder: Callable[[Any], None] | None = None
    watching: bool = True
    faults: list[Fault] = field(default_factory=list)
    memory: Memory | None = None

    def fault(self, kind: str, message: str, **details: Any) -> None:
        """Note a fault, unless it has been."""
        found = Fault(kind, message, details=details)
        if self.watching and found not in self.faults:
            self.faults.append(found)

    def launch(self, launching: Any) -> None:
        """Have a launch run."""
        before, self.memory = self.memory, launching.memory
        try:
            if self.recorder is None:
                launching.run()
            else:
                self.recorder(launching)
        finally:
            self.memory = before


_active: list[Interpreter] = []


def active() -> Interpreter:
    """The one whose script runs."""
    return _active[-1]


@contextmanager
def activated(interpreter: Interpreter) -> Iterator[None]:
    """Inside of the context it is the active one."""
    _active.append(interpreter)
    try:
        yield
    finally:
        _active.remove(interpreter)
