"""What the whole command costs over the parse of the same files: ``python benchmarks/command.py [--worst] PATH...``

The unit is ``libcst.parse_module`` of every file that has kernels, in a process that has imported nothing else: LibCST
parses twice as slowly in a process full of objects. CPU time of ``tl2npu migrate --check --no-cache -j 1``, its start
included and compiled before, as in an installation; ``--only-check``: of ``tl2npu check``. ``--worst`` also runs the
files one by one, without the start, and prints the five that cost most.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PARSE = """
import sys, time
import libcst
texts = [open(path, encoding="utf-8").read() for path in sys.stdin.read().split("\\n")]
start = time.process_time()
for text in texts:
    libcst.parse_module(text)
print(time.process_time() - start)
"""
FIRST = ROOT / "fixtures" / "gpu" / "gemm_staged_store" / "before.py"
EMPTY = ROOT / "tl2npu" / "__init__.py"
"""For the cold start: a GEMM of one kernel, and a file without one."""
MIGRATE, CHECK = ["migrate", "--check"], ["check"]


def cpu_of(command: Sequence[str]) -> tuple[float, str]:
    """Seconds of CPU time of a command with its children, and what it printed."""
    before = os.times()
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    after = os.times()
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return spent, done.stdout


def parse_of(paths: Sequence[str]) -> float:
    """Seconds of CPU time to parse the files."""
    done = subprocess.run(
        [sys.executable, "-c", PARSE], input="\n".join(paths), capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def main(argv: Sequence[str] | None = None) -> None:
    """Print the ratio, and the ratios of the worst files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--worst", action="store_true")
    parser.add_argument("--only-check", action="store_true")
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as compiled:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = compiled
        _measure(arguments)


def _measure(arguments: argparse.Namespace) -> None:
    wanted = CHECK if arguments.only_check else MIGRATE
    command = [sys.executable, "-m", "tl2npu", *wanted, "--no-cache", "-j", "1", "--format", "json"]
    asked = [str(path.resolve()) for path in arguments.paths]
    start, first = (min(cpu_of([*command, str(path)])[0] for _ in range(4)) for path in (EMPTY, FIRST))
    spent, printed = cpu_of([*command, *asked])
    found = [file["path"] for file in json.loads(printed)["files"] if file["kernels"]]
    files = [str((ROOT / path).resolve()) for path in found if path.endswith(".py")]
    unit = parse_of(files)
    print(f"{len(files)} files with kernels: {spent:.1f} s of CPU, {unit:.1f} s to parse them: {spent / unit:.1f}")
    print(f"{(spent - start) / len(files):.2f} s each")
    print(f"a cold start without a kernel: {start:.2f} s; with {FIRST.relative_to(ROOT)}: {first:.2f} s")
    if arguments.worst:
        ratios = sorted(((cpu_of([*command, path])[0] - start) / parse_of([path]), path) for path in files)
        for ratio, path in ratios[:-6:-1]:
            print(f"{ratio:6.1f}  {path}")


if __name__ == "__main__":
    main()
