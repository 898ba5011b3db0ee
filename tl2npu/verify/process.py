"""Runs a job in a child process: user code may hang, exit, or exhaust the time that its kernels have."""

from __future__ import annotations

import os
import pickle
import sys
import tempfile
from pathlib import Path

from tl2npu.backends.child.start import emitter
from tl2npu.backends.children import Ended, Event, follow
from tl2npu.verify.job import Job, run
from tl2npu.verify.threads import one_thread

_START = "import sys; sys.path[0] = {root!r}; from tl2npu.verify.process import main; main({job!r}, {events!r})"


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
        root = str(Path(__file__).resolve().parents[2])
        start = _START.format(root=root, job=str(request), events=str(told))
        return follow([sys.executable, "-c", start], told, job.settings.timeout, one_thread())


def main(job: str, events: str) -> None:
    """The child: reads a job, writes events."""
    with Path(events).open("w", encoding="utf-8") as stream:
        run(pickle.loads(Path(job).read_bytes()), emitter(stream))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # threads of the script must not keep the process
