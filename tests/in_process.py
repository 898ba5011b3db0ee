"""The command line in the process of the tests, or in a copy of it: of the second that a run takes, most is imports."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import pytest
from click.testing import CliRunner

from tl2npu.backends import children
from tl2npu.backends.children import Ended
from tl2npu.cli import cli
from tl2npu.verify import process
from tl2npu.verify.job import Job

FORKS = sys.platform == "linux"


def tl2npu(
    *arguments: str, cwd: Path, environment: Mapping[str, str] | None = None, fresh: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run tl2npu in a folder. Raises what would be an internal error.

    The simulator's jobs are done in copies of this process, with ``fresh`` in new ones, as for a user. Not for ``run``
    and ``record``, whose scripts write to the standard output of the process: they have :func:`in_a_copy`.
    """
    with pytest.MonkeyPatch.context() as patch, nullcontext() if fresh else jobs_in_copies():
        patch.chdir(cwd)
        done = CliRunner().invoke(cli, arguments, env=environment)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return subprocess.CompletedProcess(arguments, done.exit_code, done.stdout, done.stderr)


def in_a_copy(
    *arguments: str, cwd: Path, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run tl2npu in a folder, in a copy of this process whose streams are its own; its jobs are in copies as well."""
    if not FORKS:
        given = {**os.environ, **(environment or {})}
        command = [sys.executable, "-m", "tl2npu", *arguments]
        return subprocess.run(command, cwd=cwd, env=given, capture_output=True, text=True, check=False)

    def run() -> None:
        with jobs_in_copies():
            cli(arguments, prog_name="tl2npu")

    with tempfile.TemporaryFile("w+") as stdout, tempfile.TemporaryFile("w+") as stderr:
        code = Copy(run, stdout, stderr, {**os.environ, **(environment or {})}, cwd).wait()
        for stream in (stdout, stderr):
            stream.seek(0)
        return subprocess.CompletedProcess(arguments, code, stdout.read(), stderr.read())


@contextmanager
def jobs_in_this_process() -> Iterator[None]:
    """Do the simulator's jobs here, without their time budget: for files that are known to be harmless."""

    def follow(command: Sequence[str], told: Path, *rest: object) -> Ended:
        return process.here(pickle.loads((told.parent / "job").read_bytes()))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "follow", follow)
        yield


@contextmanager
def jobs_in_copies() -> Iterator[None]:
    """Do the simulator's jobs in copies of this process: followed, limited and ended as always, and started at once."""

    def start(command: Sequence[str], **given: Any) -> Any:
        if command[:2] != [sys.executable, "-c"] or "tl2npu.verify.process" not in command[2]:
            return subprocess.Popen(command, **given)
        code = compile(command[2], "<string>", "exec")
        return Copy(lambda: exec(code, {}), given["stdout"], given["stdout"], given["env"], given["cwd"])

    starting = SimpleNamespace(Popen=start, DEVNULL=subprocess.DEVNULL, STDOUT=subprocess.STDOUT)
    with pytest.MonkeyPatch.context() as patch:
        if FORKS:
            patch.setattr(children, "subprocess", starting)
        yield


def copied(job: Job) -> Ended:
    """``process.apart`` in a copy of this process."""
    with jobs_in_copies():
        return process.apart(job)


class Copy:
    """A copy of this process, in a session of its own, that calls a function; as much of ``Popen`` as is needed."""

    def __init__(
        self, run: Callable[[], object], stdout: IO[Any], stderr: IO[Any], env: Mapping[str, str], cwd: Path | None
    ) -> None:
        self.returncode: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                os.setsid()
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                os.dup2(stdout.fileno(), 1)
                os.dup2(stderr.fileno(), 2)
                sys.stdin, sys.stdout, sys.stderr = (os.fdopen(n, "rww"[n], 1, closefd=False) for n in range(3))
                sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
                os.environ.clear()
                os.environ.update(env)
                os.chdir(cwd or ".")
                sys.path.insert(0, "")
                code = _code_of(run)
            finally:
                os._exit(code)

    def poll(self) -> int | None:
        return self._waited(os.WNOHANG)

    def wait(self) -> int:
        code = self._waited(0)
        assert code is not None
        return code

    def _waited(self, how: int) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, how)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode


def _code_of(run: Callable[[], object]) -> int:
    """The exit code of a program, which has written all that it says."""
    code: object = 0
    try:
        run()
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        traceback.print_exc()
        code = 1
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    return code if isinstance(code, int) else 1
