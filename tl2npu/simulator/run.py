"""Runs a user's script with its kernels on the simulator."""

from __future__ import annotations

import runpy
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.standin.package import installed
from tl2npu.simulator.standin.session import Session


def run_script(path: Path, args: Sequence[str], session: Session, name: str = "__main__") -> dict[str, Any]:
    """Execute a script as Python would; its globals. Exceptions of the script, SystemExit too, pass through."""
    argv, path0 = sys.argv, sys.path[:]
    sys.argv = [str(path), *args]
    sys.path.insert(0, str(path.resolve().parent))
    try:
        with installed(session):
            return runpy.run_path(str(path), run_name=name)
    finally:
        sys.argv = argv
        sys.path[:] = path0


def exit_code(path: Path, args: Sequence[str], session: Session) -> int:
    """Execute a script; the exit code that Python would give. Faults of kernels are printed without a traceback."""
    try:
        run_script(path, args, session)
    except SystemExit as stop:
        if stop.code is None or isinstance(stop.code, int):
            return stop.code or 0
        print(stop.code, file=sys.stderr)
        return 1
    except SimulatorError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except Exception:
        traceback.print_exc()
        return 1
    return 0
