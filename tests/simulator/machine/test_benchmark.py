"""The benchmark of the simulator runs, and its kernels compute what their formulas say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_small_shapes() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "simulator.py"), "--small", "--repeat", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) == 7
    assert "differ" not in done.stdout
