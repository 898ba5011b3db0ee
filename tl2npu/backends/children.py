"""Child processes that run code which may hang, die, or print without end: started, followed, and killed as a group.

A child tells what happens as *events*, lines of JSON in a file. Events with a meaning here: ``begin`` (libraries are
loaded), ``start`` with ``kernel`` and ``stop`` (a kernel's time begins and ends), ``exit`` with ``code`` (the end).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from tl2npu.cpu_time import cpu_seconds, used_up

Event = dict[str, Any]

_CHILD = Path(__file__).with_name("child")
_POLL = 0.01
_START_UP = 60.0  # seconds for Python and its libraries, which are not the user's
_GRACE = 20.0  # seconds from the event ``exit`` to the end of the process: libraries of devices tidy up there
_SHOWN = 4000  # characters of the output that are kept
_HELD = 64 << 20  # bytes of output that may lie on disk


@dataclass(frozen=True)
class Ended:
    """How a child ended.

    ``code``: of its event ``exit``, None if it did not come to its end. ``output``: the end of what it printed.
    ``overdue`` names what used up its time: a kernel, or empty for what is around kernels. ``status``: of the process,
    negative for a signal, None where it was killed from here or none was started.
    """

    events: list[Event]
    code: int | None
    output: str = ""
    overdue: str | None = None
    status: int | None = None

    @property
    def died(self) -> str:
        """How the process ended that did not come to its end by itself: "signal 11 (SIGSEGV)" or "exit code 3"."""
        if self.code is not None or self.status is None:
            return ""
        for number in (-self.status, self.status - 128):  # a shell, or what wraps the child, adds 128 to a signal
            with suppress(ValueError):
                return f"signal {number} ({signal.Signals(number).name})"
        return f"exit code {self.status}"


def run_child(
    script: str | Path,
    request: Mapping[str, Any],
    budget: float,
    python: str | None = None,
    wrap: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    here: Path | None = None,
) -> Ended:
    """Run a stand-alone script in an interpreter of its own; see ``child/start.py`` for what it has to define.

    ``script``: a path, or the name of a script in ``child/``. ``request``: plain values, given to it as JSON.
    ``budget``: seconds of CPU time for each kernel and for what is around them, see ``cpu_time.py``. ``python``: the
    interpreter, this one by default; it need not have this package. ``wrap``: the command that starts it, as a
    profiler. ``environment``: variables in addition to those of this process. ``here``: the working directory.
    Raises OSError where the interpreter or the wrapper cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="tl2npu-") as folder:
        asked = Path(folder) / "request.json"
        asked.write_text(json.dumps(request), encoding="utf-8")
        told = Path(folder) / "events"
        path = _CHILD / f"{script}.py" if isinstance(script, str) else script
        command = [*wrap, python or sys.executable, str(_CHILD / "start.py"), str(path), str(asked), str(told)]
        return follow(command, told, budget, {**os.environ, **(environment or {})}, here)


def follow(
    command: Sequence[str], told: Path, budget: float, environment: Mapping[str, str], here: Path | None = None
) -> Ended:
    """Run a command that writes events to the file ``told``, until it ends or somebody's time is used up.

    When this returns nothing of its process group is left. Raises OSError where it cannot be started.
    """
    told.touch()
    with tempfile.TemporaryFile(mode="a+b") as output:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=environment,
            cwd=here,
        )
        try:
            events, overdue = _watch(child, told, budget, output)
            status = child.poll()
        finally:
            _kill(child)
        text = _end_of(output)
    code = next((e["code"] for e in events if e["event"] == "exit"), None)
    return Ended(events, code, text, overdue, status)


def _watch(
    child: subprocess.Popen[bytes], told: Path, budget: float, output: IO[bytes]
) -> tuple[list[Event], str | None]:
    """Follow the events until the child ends or somebody's time is used up; who that was."""
    events: list[Event] = []
    meter, begun, over = _Meter(), False, False
    with told.open(encoding="utf-8", errors="replace") as stream:
        pending = ""
        while True:
            ended = child.poll() is not None
            pending += stream.read()
            *lines, pending = pending.split("\n")
            for event in filter(None, map(_event, lines)):
                events.append(event)
                at = _now(child.pid, event)
                if event["event"] == "begin":
                    meter.since, begun = at, True
                if event["event"] in ("start", "stop"):
                    meter.turn(event.get("kernel", ""), at)
                if event["event"] == "exit":
                    over, meter = True, _Meter(since=at)
            spent = meter.spent(_now(child.pid))
            if ended or (over and spent[0] > _GRACE):
                return events, None
            if not over and used_up(budget if begun else max(budget, _START_UP), *spent):
                return events, meter.running
            if output.seek(0, os.SEEK_END) > _HELD:
                output.truncate(0)
            time.sleep(_POLL)


Instant = tuple[float, float]
"""Seconds on the clock and on the CPU."""


@dataclass
class _Meter:
    """Whose time it is (empty: of what is around kernels), since when, and what everybody has used before."""

    running: str = ""
    since: Instant = field(default_factory=lambda: (time.monotonic(), 0.0))
    used: dict[str, Instant] = field(default_factory=dict)

    def turn(self, kernel: str, at: Instant) -> None:
        """From here on it is another one's time."""
        self.used[self.running] = self.spent(at)
        self.running, self.since = kernel, at

    def spent(self, at: Instant) -> Instant:
        """What the running one has used up to an instant."""
        wall, cpu = self.used.get(self.running, (0.0, 0.0))
        return wall + at[0] - self.since[0], cpu + at[1] - self.since[1]


def _now(pid: int, event: Event | None = None) -> Instant:
    """Now, or when the process told an event; where its CPU time is not known it is taken to run all the time."""
    told = event or {}
    wall = told.get("time", time.monotonic())
    cpu = told.get("cpu") if told.get("pid") == pid else cpu_seconds(pid)  # a wrapper does not tell itself
    return wall, wall if cpu is None else cpu


def _event(line: str) -> Event | None:
    """An event, or None for a line that a dying process has left."""
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) and "event" in event else None


def _kill(child: subprocess.Popen[bytes]) -> None:
    """End the child, if it still runs, with everything that it has started."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):  # nobody is left in the group, which the child leads
            os.killpg(child.pid, signal.SIGKILL)
    elif child.poll() is None:
        child.kill()
    child.wait()


def _end_of(output: IO[bytes]) -> str:
    size = output.seek(0, os.SEEK_END)
    output.seek(max(size - _SHOWN, 0))
    return output.read().decode("utf-8", "replace")


def last_line(output: str) -> str:
    """The line of the exception that ends an output, with the begin of its message, else the last that is not empty."""
    lines = [line.rstrip() for line in output.splitlines() if line.strip()]
    start = max((n for n, line in enumerate(lines) if line.startswith("Traceback ")), default=len(lines))
    raised = next((n for n in range(start + 1, len(lines)) if not lines[n].startswith(" ")), len(lines) - 1)
    text = " ".join(lines[raised : raised + (2 if lines[raised].endswith(":") else 1)]) if lines else ""
    return text.strip()
