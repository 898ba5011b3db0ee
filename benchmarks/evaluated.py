"""What the check of every run says of the kernels of some files, and what it costs over the parse of these.

``python benchmarks/evaluated.py [--slowest N] PATH...`` migrates the files below the paths in memory and prints the
share of kernels that were evaluated, why others were not, and CPU time of the check over ``libcst.parse_module``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path
from unittest.mock import patch

import libcst as cst

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tl2npu.checks.subject import Subject  # noqa: E402
from tl2npu.evaluate.compare import compared  # noqa: E402
from tl2npu.evaluate.verdict import Outcome  # noqa: E402
from tl2npu.migration import migrate_text  # noqa: E402
from tl2npu.options import Options  # noqa: E402
from tl2npu.source.text import SourceError, read_source  # noqa: E402


def main() -> None:
    """Print the counts and the ratio."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--slowest", type=int, default=0, metavar="N", help="print the kernels that cost most")
    asked = parser.parse_args()
    verdicts: list[tuple[float, str, Outcome]] = []
    parse, name = 0.0, ""

    def timed(old: Subject, new: Subject) -> Outcome:
        start = time.process_time()
        found = compared(old, new)
        verdicts.append((time.process_time() - start, f"{name}: {old.kernel.name}", found))
        return found

    with patch("tl2npu.strategy.same_values.compared", timed):
        for path in (file for given in asked.paths for file in (sorted(given.rglob("*.py")) or [given])):
            try:
                name, text = str(path), read_source(path).text
            except SourceError:
                continue
            before = len(verdicts)
            migrate_text(text, name, Options())
            if len(verdicts) > before:
                start = time.process_time()
                cst.parse_module(text)
                parse += time.process_time() - start
    equal = sum(found.equal is True for _, _, found in verdicts)
    spent = sum(seconds for seconds, _, _ in verdicts)
    print(f"{equal} of {len(verdicts)} kernels give the same values")
    print(f"{spent:.2f} s of CPU, {spent / (parse or 1):.1f} x the parse")
    reasons = Counter(found.why for _, _, found in verdicts if not found.equal)
    for why, count in reasons.most_common():
        print(f"{count:4} {why}")
    for seconds, label, _ in sorted(verdicts, key=lambda one: -one[0])[: asked.slowest]:
        print(f"{1000 * seconds:6.0f} ms  {label}")


if __name__ == "__main__":
    main()
