"""Runs a job in a child process: user code may hang, exit, or exhaust the time that its kernels have."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tl2npu.verify.job import Event, Job, run
from tl2npu.verify.threads import one_thread

_POLL = 0.03  # seconds
_START_UP = 60.0  # seconds for Python and its libraries, which are not the user's
_SHOWN = 4000  # characters of the output that are kept
_START = "import sys; sys.path[0] = {root!r}; from tl2npu.verify.process import main; main({job!r}, {events!r})"


@dataclass(frozen=True)
class Ended:
    """How a job ended. ``code`` is None if it did not come to its end; ``overdue`` names what used up its time:
    a kernel, or empty for the code around kernels. ``output``: the end of what the file printed."""

    events: list[Event]
    code: int | None
    output: str = ""
    overdue: str | None = None


def here(job: Job) -> Ended:
    """Do a job in this process, without a time budget: for files that are known to be harmless."""
    path, argv = sys.path[:], sys.argv[:]
    events: list[Event] = []
    try:
        run(job, events.append)
    finally:
        sys.path[:], sys.argv[:] = path, argv
    return Ended(events, next((e["code"] for e in events if e["event"] == "exit"), None))


def apart(job: Job) -> Ended:
    """Do a job in a child process. The child is killed when a kernel, or the code around kernels, is overdue."""
    with tempfile.TemporaryDirectory(prefix="tl2npu-") as folder:
        request, told = Path(folder) / "job", Path(folder) / "events"
        request.write_bytes(pickle.dumps(job))
        told.touch()
        root = str(Path(__file__).resolve().parents[2])
        start = _START.format(root=root, job=str(request), events=str(told))
        with (Path(folder) / "output").open("w+b") as output:
            child = subprocess.Popen(
                [sys.executable, "-c", start],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=one_thread(),
            )
            try:
                events, overdue = _watch(child, told, job.settings.timeout)
            finally:
                _kill(child)
            text = _end_of(output)
    code = next((e["code"] for e in events if e["event"] == "exit"), None)
    return Ended(events, code, text, overdue)


def _watch(child: subprocess.Popen[bytes], told: Path, budget: float) -> tuple[list[Event], str | None]:
    """Follow the events until the child ends or somebody's time is used up; who that was."""
    events: list[Event] = []
    used: dict[str, float] = {}
    running, since, begun = "", time.monotonic(), False
    with told.open(encoding="utf-8") as stream:
        pending = ""
        while True:
            ended = child.poll() is not None
            pending += stream.read()
            *lines, pending = pending.split("\n")
            for line in lines:
                event = json.loads(line)
                events.append(event)
                if event["event"] == "begin":
                    since, begun = event["time"], True
                if event["event"] in ("start", "stop"):
                    used[running] = used.get(running, 0.0) + event["time"] - since
                    running, since = event.get("kernel", ""), event["time"]
            if ended:
                return events, None
            if used.get(running, 0.0) + time.monotonic() - since > (budget if begun else max(budget, _START_UP)):
                return events, running
            time.sleep(_POLL)


def _kill(child: subprocess.Popen[bytes]) -> None:
    """End the child, if it still runs, with everything that it has started."""
    if child.poll() is not None:
        return
    if hasattr(os, "killpg"):
        os.killpg(child.pid, signal.SIGKILL)  # the child leads a group of its own
    else:
        child.kill()
    child.wait()


def _end_of(output: IO[bytes]) -> str:
    size = output.seek(0, os.SEEK_END)
    output.seek(max(size - _SHOWN, 0))
    return output.read().decode("utf-8", "replace")


def main(job: str, events: str) -> None:
    """The child: reads a job, writes events."""
    with Path(events).open("w", encoding="utf-8") as stream:

        def emit(event: Event) -> None:
            stream.write(json.dumps({**event, "time": time.monotonic()}, default=str) + "\n")
            stream.flush()

        run(pickle.loads(Path(job).read_bytes()), emit)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # threads of the script must not keep the process
