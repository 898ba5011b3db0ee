"""The command line in the process of the tests, or in a copy of it: of the second that a run takes, most is imports."""

from __future__ import annotations

import atexit
import faulthandler
import os
import pickle
import runpy
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

from tl2npu import migration as _passes  # noqa: F401  # loaded here once, for every copy
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

    Its children are copies of this process, with ``fresh`` they are new ones, as for a user. Not for ``run`` and
    ``record``, whose scripts write to the standard output of the process: they have :func:`in_a_copy`.
    """
    with pytest.MonkeyPatch.context() as patch, nullcontext() if fresh else children_in_copies():
        patch.chdir(cwd)
        done = CliRunner().invoke(cli, arguments, env=environment)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return subprocess.CompletedProcess(arguments, done.exit_code, done.stdout, done.stderr)


def python(
    *words: str, cwd: Path, environment: Mapping[str, str] | None = None, fresh: bool = False
) -> subprocess.CompletedProcess[str]:
    """What Python does with a command line, ``-m`` or ``-c`` first, in a copy of this process; so are its children.

    ``environment``: all of it, by default that of this process. Modules of tl2npu are loaded: for what must hold where
    they are not, ``fresh`` starts a new process.
    """
    given = dict(os.environ if environment is None else environment)
    if fresh or not FORKS:
        command = [sys.executable, *words]
        return subprocess.run(command, cwd=cwd, env=given, capture_output=True, encoding="utf-8", check=False)

    def run() -> None:
        sys.argv = [*words[1:]] if words[0] == "-m" else ["-c", *words[2:]]
        with children_in_copies():
            if words[0] == "-m":
                runpy.run_module(words[1], run_name="__main__", alter_sys=True)
            else:
                exec(compile(words[1], "<string>", "exec"), {"__name__": "__main__"})

    with tempfile.TemporaryFile("w+", encoding="utf-8") as out, tempfile.TemporaryFile("w+", encoding="utf-8") as err:
        code = Copy(run, out, err, given, cwd).wait()
        for stream in (out, err):
            stream.seek(0)
        return subprocess.CompletedProcess(words, code, out.read(), err.read())


def in_a_copy(
    *arguments: str, cwd: Path, environment: Mapping[str, str] | None = None, fresh: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run tl2npu in a folder, in a copy of this process whose streams are its own; with ``fresh`` in a new one."""
    given = {**os.environ, **(environment or {})}
    return python("-m", "tl2npu", *arguments, cwd=cwd, environment=given, fresh=fresh)


@contextmanager
def jobs_in_this_process() -> Iterator[None]:
    """Do the simulator's jobs here, without their time budget: for files that are known to be harmless."""

    def follow(command: Sequence[str], told: Path, *rest: object) -> Ended:
        return process.here(pickle.loads((told.parent / "job").read_bytes()))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "follow", follow)
        yield


@contextmanager
def children_in_copies(interpreters: Mapping[str, Sequence[str | Path]] | None = None) -> Iterator[None]:
    """Children are copies of this process: followed, limited and ended as always, and started at once.

    The simulator's jobs, and the scripts of backends, which are started in this interpreter or in one of
    ``interpreters``: each with the folders where modules are looked for first there.
    """
    known = {sys.executable: (), **(interpreters or {})}

    def start(command: Sequence[str], **given: Any) -> Any:
        program, *words = command
        if program in known and words[0] == "-c" and "tl2npu.verify.process" in words[1]:
            code = compile(words[1], "<string>", "exec")
            return Copy(lambda: exec(code, {}), given["stdout"], given["stdout"], given["env"], given["cwd"])
        if program in known and Path(words[0]).name == "start.py":

            def run() -> None:
                own = given["env"].get("PYTHONPATH", "").split(os.pathsep)
                folders = [str(folder) for folder in known[program] or filter(None, own)]
                sys.path[:0] = [str(Path(words[0]).parent), *folders]
                there = {path.stem for folder in folders for path in Path(folder).glob("*")}
                for name in [name for name in sys.modules if name.partition(".")[0] in there - {"tl2npu"}]:
                    del sys.modules[name]  # a torch that is installed here, where the stand-in has its own
                sys.argv = list(words)
                runpy.run_path(words[0], run_name="__main__")

            return Copy(run, given["stdout"], given["stdout"], given["env"], given["cwd"])
        return subprocess.Popen(command, **given)

    starting = SimpleNamespace(Popen=start, DEVNULL=subprocess.DEVNULL, STDOUT=subprocess.STDOUT)
    with pytest.MonkeyPatch.context() as patch:
        if FORKS:
            patch.setattr(children, "subprocess", starting)
        yield


def copied(job: Job) -> Ended:
    """``process.apart`` in a copy of this process."""
    with children_in_copies():
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
                faulthandler.disable()  # pytest's writes to the real standard error, also of children that are to die
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
    atexit._clear()  # those of the tests
    try:
        run()
    except SystemExit as end:
        code = end.code or 0
        if not isinstance(code, int):
            print(code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
        code = 1
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    return code if isinstance(code, int) else 1
