"""Simulator sessions for given settings: arithmetic, reading, and who watches for hazards."""

from __future__ import annotations

from typing import Any

import numpy as np

from tl2npu.devices import DEVICES
from tl2npu.simulator.arithmetic.precise import Precise
from tl2npu.simulator.hazards import Hazard, Report
from tl2npu.simulator.standin.session import Session
from tl2npu.verified import Fault
from tl2npu.verify.settings import Counted, Hazards, Reading

Writers = tuple[np.ndarray, tuple[str, ...]]
"""Per element of a tensor the number of the statement that wrote it last, and the statements as texts."""


class Observed:
    """A session, and what was seen in its launches."""

    def __init__(self, session: Session, report: Report | None) -> None:
        self.session = session
        self._report = report

    @property
    def faults(self) -> list[Fault]:
        """The hazards since the last ``clear``, in order; none where nobody watches."""
        return [_fault(hazard) for hazard in self._report.hazards] if self._report is not None else []

    @property
    def errors(self) -> list[Fault]:
        """The hazards that are errors."""
        return [fault for fault in self.faults if fault.severity == "error"]

    def clear(self) -> None:
        """Forget the hazards."""
        if self._report is not None:
            self._report.clear()

    def writers(self, tensor: str) -> Writers | None:
        """Who wrote the elements of a tensor in the last launch; None where nobody watches or nothing wrote it."""
        found = self._report.writers(tensor) if self._report is not None else None
        if found is None:
            return None
        numbers, parties = found
        return numbers, tuple("nothing" if party is None else str(party) for party in parties)

    def undefined(self, tensor: str) -> np.ndarray | None:
        """Where the last launch left undefined data in a tensor; None if nowhere, or where nobody watches."""
        return self._report.undefined(tensor) if self._report is not None else None


def observe(arithmetic: Counted, reading: Reading, hazards: Hazards, device: str, seed: int = 0) -> Observed:
    """A fresh session. With ``hazards`` off nothing but the simulator's own errors is found.

    ``seed`` is that of an arithmetic with errors.
    """
    report = None if hazards == "off" else Report(device=DEVICES[device])
    session = Session(arithmetic=arithmetic_of(arithmetic, seed), reading=reading)
    if report is not None:
        session.watch = report.observer
    return Observed(session, report)


def arithmetic_of(name: Counted, seed: int = 0) -> Any:
    """The arithmetic of a name."""
    if name == "algebraic":
        from tl2npu.simulator.arithmetic.algebraic import Algebraic

        return Algebraic()
    if name == "structure":
        from tl2npu.simulator.arithmetic.structure import Structure

        return Structure()
    if name == "unrounded":
        from tl2npu.simulator.arithmetic.unrounded import Unrounded

        return Unrounded()
    if name == "numbers":
        from tl2npu.simulator.arithmetic.numbers import Numbers

        return Numbers()
    if name == "jittered":
        from tl2npu.simulator.arithmetic.jittered import Jittered

        return Jittered(seed)
    if name == "widened":
        from tl2npu.simulator.arithmetic.widened import Widened

        return Widened()
    return Precise()


def _fault(hazard: Hazard) -> Fault:
    times = f" ({hazard.count} times)" if hazard.count > 1 else ""
    return Fault(hazard.kind, hazard.message + times, hazard.severity, hazard.json())  # type: ignore[arg-type]
