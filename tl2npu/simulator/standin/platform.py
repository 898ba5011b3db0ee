"""``determine_platform``: which generation of the NPU a script runs for."""

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
