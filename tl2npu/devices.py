"""The Ascend devices A2, A3 and A5: memory sizes, core counts, alignments.

Two sets of sizes differ. What a kernel must fit into is what the compiler's memory planning allows
(``Device.capacity``), the same numbers for all devices, a little less than the hardware has on A2 and A3 and much less
than A5 has; the hardware's own sizes stand beside (``Device.hardware``).

Sources (tile-ai/tilelang-ascend, 95acbd7f): planning ``src/transform/ascend_memory_planning.cc:34-38``; hardware sizes
and alignments the programming notes that the repository ships (``api-kernel-memory.md``, from the vendor's platform
configuration); names ``tilelang/utils/target.py``. The numbers in ``tilelang/carver/arch/ascend.py`` contradict all of
these and are not used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType


@dataclass(frozen=True)
class Capacity:
    """Bytes of each on-chip memory. ``ub`` is that of one vector core, the others are those of the cube core."""

    l1: int
    ub: int
    l0a: int
    l0b: int
    l0c: int

    def of(self, memory: str) -> int | None:
        """Bytes of ``"l1"``, ``"ub"``, ``"l0a"``, ``"l0b"``, ``"l0c"``; None for another memory."""
        sizes = {"l1": self.l1, "ub": self.ub, "l0a": self.l0a, "l0b": self.l0b, "l0c": self.l0c}
        return sizes.get(memory)


PLANNING_2026_06 = Capacity(l1=524_032, ub=196_352, l0a=65_536, l0b=65_536, l0c=131_072)
"""What memory planning allows (``src/transform/ascend_memory_planning.cc:34-38``), on every device."""

MOST_BLOCKS = 65_535
"""Blocks of one launch: the runtime refuses more with error 107000 (#666, and reports of several other projects)."""

ALIGNMENT = Capacity(l1=32, ub=32, l0a=512, l0b=512, l0c=64)
"""Byte alignment of a buffer's start in each memory."""


@dataclass(frozen=True)
class Device:
    """One platform.

    ``chips``: the chip names that the compiler takes for this platform. ``cube_cores``: cube cores of the usual part,
    None where no public source says; each has ``vector_cores_per_cube`` vector cores. ``l2``: bytes of the L2 cache,
    None where unknown.
    """

    name: str
    chips: tuple[str, ...]
    capacity: Capacity
    hardware: Capacity
    cube_cores: int | None
    l2: int | None
    source: str
    vector_cores_per_cube: int = 2
    alignment: Capacity = ALIGNMENT
    note: str = ""


_HARDWARE_A2 = Capacity(l1=524_288, ub=196_608, l0a=65_536, l0b=65_536, l0c=131_072)
_HARDWARE_A5 = Capacity(l1=524_288, ub=262_144, l0a=65_536, l0b=65_536, l0c=262_144)
_SOURCE = "src/target/codegen_ascend.cc:30-40, src/transform/ascend_memory_planning.cc:34-38, tilelang/utils/target.py"

A2 = Device(
    name="A2",
    chips=("910B", "910"),
    capacity=PLANNING_2026_06,
    hardware=_HARDWARE_A2,
    cube_cores=24,
    l2=201_326_592,
    source=_SOURCE,
    note="some 910B parts have 20 cores (#1261)",
)
A3 = replace(A2, name="A3", chips=("910_93", "910C"), note="the compiler's choice where it recognises no chip")
A5 = Device(
    name="A5",
    chips=("950", "910_95"),
    capacity=PLANNING_2026_06,
    hardware=_HARDWARE_A5,
    cube_cores=None,
    l2=None,
    source=_SOURCE + "; hardware UB and L0C: PTO-ISA",
    note="the hardware has L0C -> UB and UB -> L1, but this compiler still goes through global memory (#1369); "
    "memory planning knows the sizes of A2 only",
)

DEVICES: Mapping[str, Device] = MappingProxyType({device.name: device for device in (A2, A3, A5)})
"""The devices by name, as ``--device`` takes it."""

DEFAULT_DEVICE = A2
