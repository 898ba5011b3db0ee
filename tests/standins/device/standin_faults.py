"""What a test asks the stand-ins to do: ``TL2NPU_STANDIN=FAULT``, several with commas.

``FAULT@FILE`` is for one file, ``FAULT-if-developer`` for kernels in Developer mode.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any


def asked(fault: str, func: Any = None) -> bool:
    """Whether a fault is wanted for the file that is run, or for this prim_func."""
    developer = func is not None and any(launch.threads is not None for launch in func.kernel.launches)
    names = (fault, f"{fault}-if-developer") if developer else (fault,)
    for wish in os.environ.get("TL2NPU_STANDIN", "").split(","):
        name, _, file = wish.partition("@")
        if name in names and file in ("", Path(sys.argv[0]).name):
            return True
    return False
