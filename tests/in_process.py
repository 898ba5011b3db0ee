"""The command line in the process of the tests: of the second that a run takes, most is imports."""

from __future__ import annotations

import pickle
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from tl2npu.backends.children import Ended
from tl2npu.cli import cli
from tl2npu.verify import process


def tl2npu(
    *arguments: str, cwd: Path, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run tl2npu in a folder; what it starts is in other processes, as always. Raises what would be an internal error.

    Not for ``run`` and ``record``: their scripts write to the standard output of the process.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(cwd)
        done = CliRunner().invoke(cli, arguments, env=environment)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return subprocess.CompletedProcess(arguments, done.exit_code, done.stdout, done.stderr)


@contextmanager
def jobs_in_this_process() -> Iterator[None]:
    """Do the simulator's jobs here, without their time budget: for files that are known to be harmless."""

    def follow(command: Sequence[str], told: Path, *rest: object) -> Ended:
        return process.here(pickle.loads((told.parent / "job").read_bytes()))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "follow", follow)
        yield
