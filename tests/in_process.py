"""The command line in the process of the tests: of the second that a run takes, most is imports."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from tl2npu.cli import cli


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
