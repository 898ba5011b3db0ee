"""What the check of every run says of the kernels of some files, and what it costs over the parse of these.

``python benchmarks/evaluated.py [--to TARGET] [--slowest N] PATH...`` migrates the files below the paths in memory and
prints the share of kernels that were evaluated, why others were not, and CPU time of the check over
``libcst.parse_module``.
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

from tl2npu.languages import migrate_source  # noqa: E402
from tl2npu.options import Options  # noqa: E402
from tl2npu.passes.job import Job  # noqa: E402
from tl2npu.results import KernelResult  # noqa: E402
from tl2npu.source.text import SourceError, read_source  # noqa: E402
from tl2npu.strategy import same_values  # noqa: E402
from tl2npu.strategy.same_values import Comparison  # noqa: E402


def main() -> None:
    """Print the counts and the ratio."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--slowest", type=int, default=0, metavar="N", help="print the kernels that cost most")
    parser.add_argument("--to", default="ascendc", choices=["ascendc", "npuir"], help="what the kernels become")
    asked = parser.parse_args()
    verdicts: dict[str, tuple[float, KernelResult]] = {}
    parse, name = 0.0, ""
    checked = same_values.checked

    def timed(given: Job, result: KernelResult, job: Job, source: Comparison | None = None) -> tuple[KernelResult, Job]:
        start = time.process_time()
        found, job = checked(given, result, job, source)
        if found.checked is not None or found is not result:
            factory = given.located.factory
            of = found.name if factory is None else factory.node.name.value
            label = f"{name}: {of}" if source else f"{name}:{found.line}: {of}"
            spent = time.process_time() - start + (verdicts[label][0] if label in verdicts else 0)
            verdicts[label] = spent, found  # a Triton kernel may be tried several times
        return found, job

    with patch.object(same_values, "checked", timed):
        for path in (file for given in asked.paths for file in (sorted(given.rglob("*.py")) or [given])):
            try:
                name, text = str(path), read_source(path).text
            except SourceError:
                continue
            before = len(verdicts)
            migrate_source(text, name, Options(target=asked.to))
            if len(verdicts) > before:
                start = time.process_time()
                cst.parse_module(text)
                parse += time.process_time() - start
    equal = sum(found.checked is not None and found.checked.equal for _, found in verdicts.values())
    spent = sum(seconds for seconds, _ in verdicts.values())
    print(f"{equal} of {len(verdicts)} kernels give the same values")
    print(f"{spent:.2f} s of CPU, {spent / (parse or 1):.1f} x the parse")
    kept = [(found, found.checked) for _, found in verdicts.values()]
    reasons = Counter(found.reason if one is None else one.why for found, one in kept if one is None or not one.equal)
    for why, count in reasons.most_common():
        print(f"{count:4} {why}")
    for label, (seconds, _) in sorted(verdicts.items(), key=lambda one: -one[1][0])[: asked.slowest]:
        print(f"{1000 * seconds:6.0f} ms  {label}")


if __name__ == "__main__":
    main()
