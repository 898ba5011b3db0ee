"""Simulator sessions for given settings: arithmetic, reading, and who watches for hazards."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tl2npu.simulator.standin.session import Session
from tl2npu.verified import Fault
from tl2npu.verify.settings import Arithmetic, Hazards, Reading


@dataclass(frozen=True)
class Observed:
    """A session and the faults that its launches have had so far, in order."""

    session: Session
    faults: list[Fault] = field(default_factory=list)


def observe(arithmetic: Arithmetic, reading: Reading, hazards: Hazards, device: str) -> Observed:
    """A fresh session. With ``hazards`` off nothing but the simulator's own errors is found."""
    session = Session(arithmetic=arithmetic_of(arithmetic), reading=reading)
    return Observed(session)


def arithmetic_of(name: Arithmetic) -> Any:
    """The arithmetic of a name."""
    from tl2npu.simulator.arithmetic.precise import Precise

    if name == "precise":
        return Precise()
    raise NotImplementedError(name)
