"""What each stage of the tool costs, as a ratio to one ``libcst.parse_module`` of the same files.

``python benchmarks/run.py [--repeat N] [PATH ...]``; the default path is ``fixtures/``. Absolute times depend on the
machine and on its load, so every stage of a file is timed in the same repetition as the parse that it is compared with,
in CPU time, and only the ratios are meant to be compared between runs. ``benchmarks/README.md`` says how to read them.
"""

from __future__ import annotations

import argparse
import ast
import gc
import os
import subprocess
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

from tl2npu.kernel.factory import FileKernels  # noqa: E402
from tl2npu.migrate import check_text, migrate_text  # noqa: E402
from tl2npu.options import Options  # noqa: E402
from tl2npu.source.index import Index  # noqa: E402
from tl2npu.source.layout import relayout  # noqa: E402
from tl2npu.source.text import SourceError, read_source  # noqa: E402

PARSE = "libcst.parse_module"
# Modules that `tl2npu --help` must not import: each costs more than all the rest of the start.
HEAVY = ("libcst", "black", "numpy", "rich", "pathspec", "multiprocessing", "asyncio")

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


def start_up(repeat: int) -> str:
    """CPU time of ``tl2npu --help`` against a bare interpreter, and what it imports."""
    idle, show_help = ["-c", "pass"], ["-m", "tl2npu", "--help"]
    imported = _imported(show_help) - _imported(idle)
    own = sorted(name for name in imported if name.startswith("tl2npu"))
    packages = {name.split(".")[0] for name in imported}
    foreign = sorted(packages - set(sys.stdlib_module_names) - {"tl2npu"})
    heavy = [name for name in HEAVY if name in packages]
    bare = median(_child_seconds(idle) for _ in range(repeat))
    full = median(_child_seconds(show_help) for _ in range(repeat))
    return (
        f"tl2npu --help: {1000 * full:.0f} ms of CPU time, a bare interpreter {1000 * bare:.0f} ms\n"
        f"  own modules: {', '.join(own)}\n"
        f"  third party: {', '.join(foreign) or 'none'}\n"
        f"  heavy ones that must not be here: {', '.join(heavy) or 'none'}\n"
    )


def _imported(arguments: list[str]) -> set[str]:
    command = [sys.executable, "-X", "importtime", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")][1:]  # without the header
    return {line.rsplit("|", 1)[1].strip() for line in lines}


def _child_seconds(arguments: list[str]) -> float:
    before = _children()
    subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, check=True)
    return _children() - before


def _children() -> float:
    times = os.times()
    return times.children_user + times.children_system


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("paths", nargs="*", type=Path, default=[ROOT / "fixtures"], metavar="PATH")
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="repetitions per file (default 5)")
    options = parser.parse_args()
    if options.repeat < 1:
        parser.error("--repeat must be at least 1")
    files = list(python_files(options.paths))
    found = [sample for path in files if (sample := measure(path, options.repeat)) is not None]
    print(f"CPU time, median of {options.repeat} repetitions; ratio = time / time of {PARSE}")
    print()
    print(table("files that change", [s for s in found if s.changed]))
    print(table("files with kernels, nothing to change", [s for s in found if s.kernels and not s.changed]))
    print(table("files without kernels", [s for s in found if not s.kernels]))
    if len(found) < len(files):
        print(f"not measured, because they cannot be parsed: {len(files) - len(found)}\n")
    print(start_up(options.repeat), end="")


if __name__ == "__main__":
    main()
