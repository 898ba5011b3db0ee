"""Runs of the command line on files and trees that are not as they should be."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from click.testing import CliRunner, Result

from tl2npu.cli import cli

ROOT = Path(__file__).resolve().parents[2]

KERNEL = """\
import tilelang
import tilelang.language as T

pass_configs = {
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True,
}


@tilelang.jit(out_idx=[1], pass_configs=pass_configs)
def double(n, bm=256):
    @T.prim_func
    def kernel(x: T.Tensor((n,), "float32"), y: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, bm), threads=128) as b:
            for t in T.Parallel(bm):
                y[b * bm + t] = 2.0 * x[b * bm + t]  # doubled

    return kernel
"""

STAND_IN = '''\
import os, signal, sys, time
from pathlib import Path
from tl2npu import migration
from tl2npu.cli import main
from tl2npu.results import FileResult, KernelResult


def fake(text, path, options, leave=None, together=False):
    """What is done is told in a file; a file that says `slow` takes a minute."""
    with open(os.environ["TOLD"], "a") as told:
        told.write(f"{path} {os.getpid()}\\\\n")
    if "slow" in text:
        time.sleep(60)
    time.sleep(float(os.environ.get("NAP", "0")))
    return FileResult(path, text, text.replace("old", "new"))


signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts background jobs with SIGINT ignored
migration.migrate_text = fake
main()
'''.replace("\\\\n", "\\n")
"""A run with a migration that takes its time; the rest is as always."""


def call(*arguments: str | Path) -> Result:
    """A run in this process."""
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def start(directory: Path, *arguments: str, code: str = STAND_IN, **environment: str) -> subprocess.Popen[str]:
    """A run of its own; what it works on stands in :func:`told`."""
    told(directory).touch()
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TOLD": str(told(directory)), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def told(directory: Path) -> Path:
    """A file beside the directory: the paths that were worked on, each with the process that did it."""
    return directory.with_name(directory.name + ".told")


def processes(directory: Path) -> set[int]:
    """Those that worked on files."""
    return {int(line.split()[1]) for line in told(directory).read_text().splitlines() if line.count(" ") == 1}


def wait_until(question: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait for something that other processes do."""
    limit = time.monotonic() + seconds
    while not question():
        assert time.monotonic() < limit, "it did not happen"
        time.sleep(0.02)


def alive(process: int) -> bool:
    """True for a process that runs."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{process}/stat")
    try:
        return not state.parent.parent.is_dir() or state.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def interrupt(run: subprocess.Popen[str], number: int = signal.SIGINT) -> None:
    """What Ctrl-C does: the signal goes to the whole group."""
    os.killpg(run.pid, number)


def contents(directory: Path) -> dict[str, bytes]:
    """Every file below a directory."""
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }
