"""Finds faults in a running kernel: unordered accesses, reads of unwritten memory, flags that do not pair, overflows.

``Report.observer`` is what ``Session.watch`` wants; the report collects hazards over all calls of a session and can say
which statement wrote an element. The method is that of JAX's Pallas interpreter (vector clocks over happens-before, so
that a finding does not depend on the order in which the cores happened to run); kinds and wording follow msSanitizer.
"""

from tl2npu.simulator.hazards.hazard import Hazard, Party
from tl2npu.simulator.hazards.report import HazardFound, Report, Writer

__all__ = ["Hazard", "HazardFound", "Party", "Report", "Writer"]
