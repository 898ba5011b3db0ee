"""Children that misbehave: each ends in an answer, and none leaves a process behind."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.in_process import python
from tl2npu.backends.children import Ended, last_line, run_child
from tl2npu.cpu_time import used_up

pytestmark = pytest.mark.skipif(not hasattr(os, "killpg"), reason="process groups are POSIX's")

HEAD = "import os, signal, subprocess, sys, time\nfrom pathlib import Path\n\n\ndef main(request, emit):\n"


def run(
    folder: Path, body: str, budget: float = 60.0, environment: Mapping[str, str] | None = None, **request: object
) -> Ended:
    script = folder / "child.py"
    script.write_text(HEAD + "".join(f"    {line}\n" for line in body.splitlines()), encoding="utf-8")
    return run_child(script, request, budget, environment=environment)


def test_a_request_goes_in_and_events_come_out(tmp_path: Path) -> None:
    ended = run(tmp_path, 'emit({"event": "sum", "value": sum(request["numbers"])})\nreturn 0', numbers=[1, 2, 4])
    assert [(e["event"], e.get("value")) for e in ended.events] == [("sum", 7), ("exit", None)]
    assert (ended.code, ended.status, ended.overdue, ended.died) == (0, 0, None, "")


def test_the_code_that_it_returns(tmp_path: Path) -> None:
    ended = run(tmp_path, "return 3")
    assert (ended.code, ended.status, ended.died) == (3, 3, "")


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGKILL", "SIGABRT"])
def test_a_signal(tmp_path: Path, name: str) -> None:
    ended = run(tmp_path, f"os.kill(os.getpid(), signal.{name})")
    assert ended.code is None
    assert name in ended.died


def test_a_signal_behind_a_wrapper(tmp_path: Path) -> None:
    script = tmp_path / "child.py"
    script.write_text(HEAD + "    os.kill(os.getpid(), signal.SIGSEGV)\n", encoding="utf-8")
    ended = run_child(script, {}, 60.0, wrap=["/bin/sh", "-c", '"$@"; exit $?', "sh"])
    assert ended.died == "signal 11 (SIGSEGV)"
    assert ended.status == 139


def test_an_exit_of_its_own_is_no_end(tmp_path: Path) -> None:
    ended = run(tmp_path, 'print("the runtime gives up", flush=True)\nos._exit(3)')
    assert (ended.code, ended.died) == (None, "exit code 3")
    assert "the runtime gives up" in ended.output


def test_an_exception_is_printed(tmp_path: Path) -> None:
    ended = run(tmp_path, 'raise ValueError("no such thing")')
    assert ended.code == 1
    assert ended.output.rstrip().endswith("ValueError: no such thing")


def test_it_hangs(tmp_path: Path) -> None:
    before = time.monotonic()
    body = 'emit({"event": "begin"})\nemit({"event": "start", "kernel": "gemm"})\ntime.sleep(600)'
    ended = run(tmp_path, body, budget=0.5)
    assert (ended.overdue, ended.code, ended.status) == ("gemm", None, None)
    assert time.monotonic() - before < 60


def test_libraries_may_take_longer_than_a_kernel(tmp_path: Path) -> None:
    ended = run(tmp_path, 'time.sleep(1)\nemit({"event": "begin"})\nreturn 0', budget=0.5)
    assert (ended.overdue, ended.code) == (None, 0)


def test_it_hangs_after_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tl2npu.backends.children._GRACE", 0.5)
    body = "import threading\nthreading.Thread(target=time.sleep, args=(600,)).start()\nreturn 0"
    ended = run(tmp_path, body)
    assert (ended.overdue, ended.code, ended.status) == (None, 0, None)


def test_megabytes_of_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tl2npu.backends.children._HELD", 1 << 20)
    body = 'for n in range(64):\n    print("x" * (1 << 16))\ntime.sleep(0.2)\nprint("the end")\nreturn 0'
    ended = run(tmp_path, body)
    assert ended.output.endswith("the end\n")
    assert len(ended.output) <= 4000


def test_half_an_event(tmp_path: Path) -> None:
    body = """emit({"event": "first"})
with open(sys.argv[3], "a") as stream:
    stream.write('{"event": "sec')
    stream.flush()
    os.kill(os.getpid(), signal.SIGKILL)"""
    ended = run(tmp_path, body)
    assert [e["event"] for e in ended.events] == ["first"]
    assert ended.died == "signal 9 (SIGKILL)"


def test_lines_that_are_no_events(tmp_path: Path) -> None:
    body = """with open(sys.argv[3], "a") as stream:
    stream.write('nonsense\\n[1]\\n{"other": 1}\\n')
emit({"event": "then"})
return 0"""
    assert [e["event"] for e in run(tmp_path, body).events] == ["then", "exit"]


@pytest.mark.thorough
@pytest.mark.parametrize("end", ["time.sleep(600)", "return 0", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_nothing_that_it_started_stays(tmp_path: Path, end: str) -> None:
    sleeps = "import time; time.sleep(600)"
    starts = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {sleeps!r}]); {sleeps}"
    body = f"""child = subprocess.Popen([sys.executable, '-c', {starts!r}])
time.sleep(0.5)
emit({{"event": "begin"}})
emit({{"event": "group", "group": os.getpgid(0)}})
{end}"""
    ended = run(tmp_path, body, budget=1.0)
    group = next(e["group"] for e in ended.events if e["event"] == "group")
    deadline = time.monotonic() + 10
    while _alive(group) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _alive(group)


def _alive(group: int) -> bool:
    """Is there a process of the group that is not a zombie of somebody who does not look after it?"""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, own = stat.read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(own) == group and state != "Z":
            return True
    return False


def test_modules_beside_the_starter_do_not_hide_the_users(tmp_path: Path) -> None:
    ended = run(tmp_path, 'emit({"event": "path", "path": sys.path})\nreturn 0')
    path = next(e["path"] for e in ended.events if e["event"] == "path")
    assert not any(entry.endswith("child") for entry in path)


def test_another_interpreter_and_environment(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.symlink_to(sys.executable)
    script = tmp_path / "child.py"
    body = 'emit({"event": "is", "python": sys.executable, "mode": os.environ["TL_RUN_MODE"]})\n    return 0\n'
    script.write_text(f"{HEAD}    {body}", encoding="utf-8")
    ended = run_child(script, {}, 60.0, python=str(python), environment={"TL_RUN_MODE": "sim"})
    assert ended.events[0]["mode"] == "sim"
    assert ended.events[0]["python"] == str(python)


def test_an_interpreter_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "child.py").write_text(HEAD + "    return 0\n", encoding="utf-8")
    with pytest.raises(FileNotFoundError):
        run_child(tmp_path / "child.py", {}, 60.0, python=str(tmp_path / "nothing"))


SHARED = """emit({"event": "begin"})
emit({"event": "start", "kernel": "gemm"})
while time.process_time() < CPU:
    begun = time.monotonic()
    while time.monotonic() - begun < 0.01:
        pass
    time.sleep(0.04)
return 0"""
"""Has a fifth of a CPU, as on a machine with other work."""


@pytest.mark.thorough
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="CPU time of other processes is read on Linux")
def test_a_busy_machine_takes_no_time_of_a_kernel(tmp_path: Path) -> None:
    before = time.monotonic()
    ended = run(tmp_path, SHARED.replace("CPU", "0.5"), budget=1.0)
    assert time.monotonic() - before > 1.0
    assert (ended.overdue, ended.code) == (None, 0)


@pytest.mark.thorough
def test_a_busy_machine_does_not_keep_a_kernel_for_ever(tmp_path: Path) -> None:
    ended = run(tmp_path, SHARED.replace("CPU", "600.0"), budget=0.3)
    assert (ended.overdue, ended.code) == ("gemm", None)


@pytest.mark.parametrize(
    ("wall", "cpu", "over"),
    [
        (59.0, 59.0, False),
        (61.0, 61.0, True),
        (61.0, 200.0, True),  # several threads
        (30.0, 90.0, False),
        (300.0, 40.0, False),  # waits for its turn
        (601.0, 40.0, True),  # for too long
        (61.0, 0.5, True),  # hangs
    ],
)
def test_when_a_budget_of_60_seconds_is_used_up(wall: float, cpu: float, over: bool) -> None:
    assert used_up(60.0, wall, cpu) is over


def test_a_copy_of_this_process_dies_in_silence(tmp_path: Path) -> None:
    """``faulthandler`` of pytest would print "Fatal Python error" and a traceback out of a test that passes."""
    text = "import faulthandler, os; print(faulthandler.is_enabled(), flush=True); os.abort()"
    done = python("-c", text, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (-6, "False\n")


def test_the_line_that_says_most_of_an_end() -> None:
    trace = "Traceback (most recent call last):\n  File a\n    f()\n"
    assert last_line("") == ""
    assert last_line("one\n two \n\n") == "two"
    assert last_line(f"one\n{trace}ValueError: bad\n") == "ValueError: bad"
    assert last_line(f"{trace}AssertionError: \nNot equal to tolerance\n\n [1, 2,\n  3]\n") == (
        "AssertionError: Not equal to tolerance"
    )
