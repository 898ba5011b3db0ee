"""CANN's simulator of an NPU: which library, and the environment that TileLang-Ascend wants for it.

Source: ``tilelang/jit/adapter/libgen.py`` and the section on camodel of TileLang-Ascend's programming guide (95acbd7f).
The library depends on the platform; ``TL_RUN_MODE=sim`` makes the generator link ``libruntime_camodel.so``. The linker
reads ``LD_LIBRARY_PATH`` when a process starts, so it is set for the child, not in it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

DOCUMENTED = ("A5", "pto")
"""The platform and the code generator for which TileLang-Ascend documents the simulator."""


def environment(home: Path, library: Path, platform: str, logs: Path, given: Mapping[str, str]) -> dict[str, str]:
    """The variables of the child. ``library``: the folder of the simulator; ``logs``: where it writes its own."""
    host = [home / folder / "lib64" for folder in ("x86_64-linux", "aarch64-linux")]
    paths = [str(library), *(str(folder) for folder in host if folder.is_dir()), given.get("LD_LIBRARY_PATH", "")]
    return {
        "ASCEND_HOME_PATH": str(home),
        "LD_LIBRARY_PATH": os.pathsep.join(filter(None, paths)),
        "TL_RUN_MODE": "sim",
        "TL_PLATFORM": platform,
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
        "CAMODEL_LOG_PATH": str(logs),
    }
