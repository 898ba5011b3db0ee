"""What scripts ask of the device: ``determine_platform``, which generation it is, and ``NPUUtils``, its cores."""

from __future__ import annotations

import os
import sys
from typing import Any

from tl2npu.devices import A2, A3, A5

FALLBACK = "A3"


def determine_platform(platform: str = "auto", *_: Any) -> str:
    """The platform as given, of the environment's ``TL_PLATFORM``, or of the part that ``torch.npu`` names; else A3."""
    if platform != "auto":
        return platform
    if os.environ.get("TL_PLATFORM"):
        return os.environ["TL_PLATFORM"]
    npu = getattr(sys.modules.get("torch"), "npu", None)
    if npu is None or not npu.is_available():
        return FALLBACK
    name = str(npu.get_device_properties(npu.current_device()).name).upper()
    found = [(len(chip), device.name) for device in (A2, A3, A5) for chip in device.chips if chip.upper() in name]
    return max(found)[1] if found else FALLBACK


class NPUUtils:
    """``tilelang.utils.NPUUtils`` of the npuir branch: what scripts ask of the device, a 910B."""

    @classmethod
    def get(cls) -> NPUUtils:
        """The one there is."""
        return cls()

    def get_aicore_num(self) -> int:
        """Cube cores."""
        return A2.cube_cores or 1

    get_aicube_core_num = get_aicore_num

    def get_aivector_core_num(self) -> int:
        """Vector cores."""
        return self.get_aicore_num() * A2.vector_cores_per_cube

    def get_arch(self) -> str:
        """The name of the part."""
        return "Ascend910B"
