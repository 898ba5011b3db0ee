"""The tool kit CANN on this machine: folder, version, compiler, simulator, tools, devices.

Sources: where tilelang-ascend looks, ``tilelang/jit/adapter/libgen.py:32-77`` and ``tilelang/utils/target.py:141-158``
(95acbd7f); the file with the version, the vendor's installation guide ("File Paths": ``ascend_toolkit_install.info``);
``npu-smi info -m``: a row has NPU ID, chip ID, logic ID, on some machines a physical ID, and the chip's name.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

HOMES = ("/usr/local/Ascend/ascend-toolkit/latest",)
"""Where tilelang-ascend looks if no variable says where CANN is."""

_SIMULATED = {"A5": ("Ascend950PR_9599", "Ascend910_9599"), "A2": ("Ascend910B1", "Ascend910_9599")}
_CHIP = re.compile(r"\s*\d+\s+\d+\s+(?P<logic>\d+)\s+(?:\d+\s+)?(?P<name>\S.*?)\s*$")
_SECONDS = 20.0


@dataclass(frozen=True)
class Cann:
    """A tool kit: its folder, the version by its own file (empty if it has none), and the script that enters it."""

    home: Path
    version: str
    setup: Path | None


def find(environment: Mapping[str, str]) -> Cann | None:
    """The tool kit that tilelang-ascend would use, None if there is none."""
    named = environment.get("ASCEND_HOME_PATH") or environment.get("ASCEND_HOME")
    for text in [named] if named else HOMES:
        home = Path(text)
        if home.is_dir():
            setup = next((p for p in (home / "set_env.sh", home.parent / "set_env.sh") if p.is_file()), None)
            return Cann(home, _version(home), setup)
    return None


def _version(home: Path) -> str:
    for file in sorted(home.glob("*-linux/ascend_toolkit_install.info")):
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition("=")
            if key.strip() == "version":
                return value.strip()
    return ""


def tool(name: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """The path of a command that is on ``PATH``."""
    return shutil.which(name, path=environment.get("PATH", ""))


def off_path(name: str, cann: Cann) -> Path | None:
    """A command of the tool kit that is not on ``PATH``."""
    places = (p for pattern in (f"bin/{name}", f"*/*/bin/{name}", f"*/bin/{name}") for p in cann.home.glob(pattern))
    return next((p for p in places if p.is_file()), None)


def simulators(cann: Cann) -> dict[str, Path]:
    """Platform -> the folder of ``libruntime_camodel.so`` that tilelang-ascend links for it (A3 uses that of A2)."""
    base = cann.home / "tools" / "simulator"
    base = base if base.is_dir() else cann.home / "simulator"
    found: dict[str, Path] = {}
    for platform, chips in _SIMULATED.items():
        for chip in chips:
            if (base / chip / "lib").is_dir():
                if (base / chip / "lib" / "libruntime_camodel.so").is_file():
                    found[platform] = base / chip / "lib"
                break  # the first folder that is there is the one that is linked
    return found


def chips(command: str) -> dict[int, str]:
    """Logic ID -> name of each NPU that ``npu-smi info -m`` lists; empty where it lists none or fails."""
    try:
        done = subprocess.run(
            [command, "info", "-m"], capture_output=True, text=True, timeout=_SECONDS, check=False, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    rows = (_CHIP.match(line) for line in done.stdout.splitlines()) if done.returncode == 0 else ()
    return {int(row["logic"]): row["name"] for row in rows if row is not None}


def platform_of(name: str) -> str | None:
    """The platform that tilelang-ascend takes a device for; None where the name does not tell.

    ``npu-smi`` calls chips of A3 plainly "Ascend910", as the oldest ones; torch_npu has their full names.
    """
    name = name.upper()
    if "910B" in name:
        return "A2"
    if "910_93" in name or "910C" in name:
        return "A3"
    return "A5" if "950" in name or "910_95" in name else None
