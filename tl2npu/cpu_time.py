"""The time that a process had on a CPU, and whether it has used up what it may."""

from __future__ import annotations

import sys
import time

PATIENCE = 10
"""So many times the budget may pass on the clock while a process waits for its turn on a busy machine."""

_IDLE = 50  # a process that wants a CPU gets more than one part in so many; less, and it hangs, or others work for it


def cpu_seconds(pid: int) -> float | None:
    """CPU time of a running process, all its threads together; None where the system does not tell."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        return time.clock_gettime((~pid << 3) | 2)  # how Linux numbers CPU clocks of processes: clock_getcpuclockid(3)
    except OSError:
        return None


def used_up(budget: float, wall: float, cpu: float) -> bool:
    """Whether seconds on the clock and on the CPU are too many. A machine with other work takes the clock's, not the
    CPU's; what hangs uses none of the CPU's."""
    waits_for_its_turn = wall / _IDLE < cpu < budget and wall < PATIENCE * budget
    return wall > budget and not waits_for_its_turn
