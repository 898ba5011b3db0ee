"""What wraps a child: msSanitizer and ``msprof op``. Command lines as in the user guides of both.

``mssanitizer --tool=racecheck --log-file=FILE -- PROGRAM``: its exit code says nothing, the report is read.
``msprof op --warm-up=5 --launch-count=10 --output=FOLDER PROGRAM``: it refuses a folder that others may write, and
still exits with 0; the result is ``OpBasicInfo*.csv`` below the folder.
"""

from __future__ import annotations

import csv
from pathlib import Path
from statistics import median

WARM_UP, LAUNCHES = 5, 10


def sanitizer(tool: str, log: Path) -> list[str]:
    """The command before a program that is checked."""
    return ["mssanitizer", f"--tool={tool}", f"--log-file={log}", "--"]


def profiler(folder: Path) -> list[str]:
    """The command before a program that is measured; makes the folder."""
    folder.mkdir()
    folder.chmod(0o700)
    return ["msprof", "op", f"--warm-up={WARM_UP}", f"--launch-count={LAUNCHES}", f"--output={folder}"]


def duration(folder: Path, kernel: str) -> float | None:
    """The median of ``Task Duration(us)`` of a kernel in microseconds; None where nothing was measured.

    The device code of a prim_func ``main`` is ``main`` or ``main_kernel``; other operators may have been launched.
    """
    rows: list[tuple[str, float]] = []
    for path in sorted(folder.rglob("OpBasicInfo*.csv")):
        with path.open(encoding="utf-8", errors="replace", newline="") as file:
            for row in csv.DictReader(file):
                try:
                    rows.append((row.get("Op Name") or "", float(row["Task Duration(us)"])))
                except (KeyError, TypeError, ValueError):
                    continue
    own = [value for name, value in rows if name.startswith(kernel)]
    return median(own) if own else None
