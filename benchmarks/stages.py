"""What each stage of the tool costs in one file, as a ratio to one ``libcst.parse_module`` of the same file.

``python benchmarks/stages.py [--repeat N] [PATH ...]``; without paths over every tenth fixture. CPU time, each stage
of a file in the same repetition as the parse that it is compared with.
"""

from __future__ import annotations

import argparse
import ast
import gc
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TypeVar

import libcst as cst

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tl2npu.kernel.factories.factory import FileKernels  # noqa: E402
from tl2npu.migration import check_text, migrate_text  # noqa: E402
from tl2npu.options import Options  # noqa: E402
from tl2npu.source.index import Index  # noqa: E402
from tl2npu.source.layout import relayout  # noqa: E402
from tl2npu.source.text import SourceError, read_source  # noqa: E402

PARSE = "libcst.parse_module"

Timed = dict[str, float]
ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class Sample:
    """One file: seconds of CPU time by stage (medians over the repetitions), whether it has kernels and changes."""

    path: Path
    lines: int
    kernels: int
    changed: bool
    seconds: Timed


def python_files(paths: Sequence[Path]) -> Iterator[Path]:
    """The Python files at and below the paths, in a fixed order."""
    for path in paths:
        yield from [path] if path.is_file() else sorted(path.rglob("*.py"))


def timed(action: Callable[[], ResultT]) -> tuple[float, ResultT]:
    """Seconds of CPU time of one call, and what it returns."""
    start = time.process_time()
    result = action()
    return time.process_time() - start, result


def once(text: str, path: Path) -> tuple[Timed, int, bool]:
    """Every stage once, with the number of kernels and whether the file changes."""
    seconds: Timed = {}
    seconds["ast.parse"], _ = timed(lambda: ast.parse(text))
    seconds[PARSE], module = timed(lambda: cst.parse_module(text))
    seconds["index"], _ = timed(lambda: Index.of(module))
    seconds["code generation"], _ = timed(lambda: module.code)
    index = Index.parse(text)
    seconds["kernel models"], _ = timed(lambda: [located.read() for located in FileKernels(index).located])
    seconds["check_text, whole"], _ = timed(lambda: check_text(text, str(path), Options()))
    seconds["migrate_text, whole"], result = timed(lambda: migrate_text(text, str(path), Options()))
    new = result.new_text if result.new_text is not None else text
    seconds["of it: layout"], _ = timed(lambda: relayout(text, new, path))
    return seconds, len(result.kernels), result.changed


def measure(path: Path, repeat: int) -> Sample | None:
    """The sample of a file; None for a file that the tool cannot read."""
    try:
        text = read_source(path).text
        Index.parse(text)
    except SourceError:
        return None
    runs = []
    kernels, changed = 0, False
    for _ in range(repeat):
        gc.collect()
        seconds, kernels, changed = once(text, path)
        runs.append(seconds)
    medians = {stage: median(run[stage] for run in runs) for stage in runs[0]}
    return Sample(path, text.count("\n"), kernels, changed, medians)


def table(title: str, samples: Sequence[Sample]) -> str:
    """Milliseconds per file and ratios to the parse: of the sums, and median and worst of the single files."""
    lines = [f"{title}: {len(samples)} files, {sum(s.lines for s in samples)} lines"]
    if not samples:
        return lines[0] + "\n"
    lines.append(f"  {'stage':22} {'ms/file':>9} {'ratio':>7} {'median':>7} {'worst':>7}")
    parse = sum(s.seconds[PARSE] for s in samples)
    for stage in samples[0].seconds:
        total = sum(s.seconds[stage] for s in samples)
        single = [s.seconds[stage] / s.seconds[PARSE] for s in samples]
        row = f"{1000 * total / len(samples):9.2f} {total / parse:7.2f} {median(single):7.2f} {max(single):7.2f}"
        lines.append(f"  {stage:22} {row}")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="repetitions per file (default 1)")
    options = parser.parse_args()
    if options.repeat < 1:
        parser.error("--repeat must be at least 1")
    files = list(python_files(options.paths)) or sorted((ROOT / "fixtures").glob("*/*/before.py"))[::10]
    for path in files[:1]:
        measure(path, 1)  # not counted: what is only imported or built once
    found = [sample for path in files if (sample := measure(path, options.repeat)) is not None]
    print(f"CPU time, median of {options.repeat} repetitions; ratio = time / time of {PARSE}")
    print()
    print(table("files that change", [s for s in found if s.changed]))
    print(table("files with kernels, nothing to change", [s for s in found if s.kernels and not s.changed]))
    print(table("files without kernels", [s for s in found if not s.kernels]))
    if len(found) < len(files):
        print(f"not measured, because they cannot be parsed: {len(files) - len(found)}\n")


if __name__ == "__main__":
    main()
