"""What a Python interpreter has, asked in child processes: nothing heavy is imported into this one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

_PROBE = Path(__file__).with_name("child") / "probe.py"
_SECONDS = {"packages": 30.0, "tilelang": 180.0, "device": 120.0}
"""For each question; the first import of TileLang compiles its Cython adapter."""


class ProbeError(Exception):
    """An answer that did not come; ``str()`` is one line that says why."""


def ask(what: str, python: str | None, environment: Mapping[str, str]) -> dict[str, Any]:
    """Ask an interpreter (None: this one) for ``packages``, ``tilelang`` or ``device``. Raises :class:`ProbeError`."""
    try:
        child = subprocess.Popen(
            [python or sys.executable, str(_PROBE), what],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            start_new_session=True,
        )
    except OSError as error:
        raise ProbeError(f"{python} cannot be started: {error.strerror}") from None
    try:
        data, _ = child.communicate(timeout=_SECONDS[what])
    except subprocess.TimeoutExpired:
        raise ProbeError(f"no answer within {_SECONDS[what]:g} seconds") from None
    finally:
        with suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(child.pid, signal.SIGKILL)
            else:
                child.kill()
        child.wait()
    lines = [line for line in data.decode("utf-8", "replace").splitlines() if line.strip()]
    last = lines[-1].strip() if lines else ""
    if child.returncode < 0:
        raise ProbeError(f"the process died by {signal.Signals(-child.returncode).name}")
    with suppress(ValueError):
        answer = json.loads(last)
        if isinstance(answer, dict):
            return answer
    raise ProbeError(last or f"exit code {child.returncode}")
