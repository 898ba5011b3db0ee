"""The goals for a whole repository, measured: ``tl2npu migrate --diff`` over a generated tree of kernel files.

``python benchmarks/run.py [--files N]``. Everything runs as a user would run it, in processes of its own; all figures
but the last are CPU time, and only ratios are meant to be compared. ``benchmarks/README.md`` says how to read them.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from tree import ROOT, write

# CPU seconds of LibCST alone over the same files: the parse; a codemod that changes nothing; one that asks for scopes.
LIBCST = """
import sys, time, libcst
from libcst.metadata import MetadataWrapper, ScopeProvider
def parse(text): return libcst.parse_module(text)
def codemod(text): return parse(text).visit(libcst.CSTTransformer()).code
def scopes(text): return MetadataWrapper(parse(text)).resolve(ScopeProvider)
texts = [open(path, encoding="utf-8").read() for path in sys.stdin.read().split("\\n")]
for work in (parse, codemod, scopes):
    start = time.process_time()
    for text in texts:
        work(text)
    print(time.process_time() - start)
"""
PEAK = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
# Modules that `tl2npu --help` must not import: each costs more than all the rest of the start.
HEAVY = ("libcst", "black", "numpy", "rich", "multiprocessing", "asyncio")


def migrate(directory: Path, jobs: int = 1) -> list[str]:
    """The command line over a tree, without the cache."""
    return [sys.executable, "-m", "tl2npu", "migrate", str(directory), "--diff", "--no-cache", "-q", "-j", str(jobs)]


def cpu_and_wall(command: Sequence[str]) -> tuple[float, float]:
    """Seconds of CPU time, of all its processes together, and of waiting for a command."""
    before, start = os.times(), time.perf_counter()
    done = subprocess.run(command, env=_environment(), capture_output=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr.decode(errors='replace')}")
    after = os.times()
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    return seconds, time.perf_counter() - start


def _environment() -> dict[str, str]:
    """The package of this checkout, compiled as an installation would be."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": str(ROOT)}


def libcst_alone(paths: Sequence[Path]) -> list[float]:
    """Seconds of CPU time of LibCST on every file: the parse, a codemod that changes nothing, one with scopes."""
    given = "\n".join(str(path) for path in paths)
    command = [sys.executable, "-c", LIBCST]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
    return [float(line) for line in done.stdout.split()]


def peak(directory: Path) -> float:
    """MiB of the largest process of a run."""
    command = [sys.executable, "-c", PEAK, *migrate(directory)]
    done = subprocess.run(command, env=_environment(), capture_output=True, text=True, check=True)
    return int(done.stdout) / 1024


def with_kernels(root: Path, count: int) -> str:
    """CPU time of the whole command on files with kernels against the parse alone, and one process against two."""
    tree = root / "kernels"
    paths = write(tree, count, 0)
    runs = [libcst_alone(paths) for _ in range(3)]
    parse, codemod, scopes = (median(column) for column in zip(*runs, strict=True))
    one, wall_one = cpu_and_wall(migrate(tree))
    _, wall_two = cpu_and_wall(migrate(tree, jobs=2))
    return (
        f"files with kernels ({count}): migrate --diff takes {one / parse:.1f} times the CPU time of "
        f"libcst.parse_module alone ({one:.1f} s, {parse:.1f} s); goal: 2.0\n"
        f"for comparison: a LibCST codemod that changes nothing takes {codemod / parse:.1f} times that, "
        f"one that asks for scopes {scopes / parse:.1f}\n"
        f"two processes: {wall_one / wall_two:.2f} times as fast as one; goal: 1.7\n"
    )


def without_kernels(root: Path, count: int) -> str:
    """What one more file without kernels costs, the start of the command left out."""
    write(root / "few", 0, count)
    write(root / "many", 0, 2 * count)
    few, many = (median(cpu_and_wall(migrate(root / name))[0] for _ in range(3)) for name in ("few", "many"))
    return f"files without kernels: {1000 * (many - few) / count:.2f} ms of CPU time each; goal: 1\n"


def memory(root: Path, count: int) -> str:
    """The largest process for some files and for twice as many."""
    write(root / "half", count // 2, count // 2)
    write(root / "whole", count, count)
    half, whole = peak(root / "half"), peak(root / "whole")
    return (
        f"peak memory: {half:.0f} MiB for {count} files, {whole:.0f} MiB for {2 * count}, "
        f"{whole / half:.2f} times as much; goal: flat\n"
    )


def start_up() -> str:
    """CPU time of ``tl2npu --help`` against the import of click, and what it imports."""
    show_help, click = [sys.executable, "-m", "tl2npu", "--help"], [sys.executable, "-c", "import click"]
    runs = [(cpu_and_wall(show_help)[0], cpu_and_wall(click)[0]) for _ in range(5)]
    full, bare = (median(column) for column in zip(*runs, strict=True))
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "tl2npu", "--help"],
        env=_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    imported = {line.rsplit("|", 1)[-1].strip().split(".")[0] for line in done.stderr.splitlines()}
    heavy = [name for name in HEAVY if name in imported]
    return (
        f"tl2npu --help: {full / bare:.1f} times python -c 'import click' ({1000 * full:.0f}, {1000 * bare:.0f} ms); "
        f"goal: 3; imports that it must not have: {', '.join(heavy) or 'none'}\n"
    )


def main() -> None:
    """Print one line for each goal."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--files", type=int, default=500, metavar="N", help="files with kernels (default 500)")
    options = parser.parse_args()
    if options.files < 4:
        parser.error("--files must be at least 4")
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        write(root / "first", 1, 0)
        cpu_and_wall(migrate(root / "first"))  # compiles the package
        print(start_up(), end="", flush=True)
        print(without_kernels(root, 400), end="", flush=True)
        print(memory(root, min(options.files, 60)), end="", flush=True)
        print(with_kernels(root, options.files), end="", flush=True)


if __name__ == "__main__":
    main()
