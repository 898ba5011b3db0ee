"""``tl2npu run``: a user's script with its kernels on the simulator."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tl2npu.interpreter.hook import hooked
from tl2npu.interpreter.session import Interpreter
from tl2npu.simulator.run import exit_code
from tl2npu.source.notebook import is_notebook
from tl2npu.verified import LaunchReport, RunResult
from tl2npu.verify.layouts import Arrays
from tl2npu.verify.loading import cells_of
from tl2npu.verify.naming import name_of
from tl2npu.verify.notebooks import read_notebook
from tl2npu.verify.sessions import observe
from tl2npu.verify.settings import Settings


def run_file(path: Path, settings: Settings) -> RunResult:
    """Execute a script, or the cells of a notebook, in this process, with ``settings.script_args``.

    Its own output goes where it goes. Raises SourceError for what is no notebook of Python.
    """
    pieces = cells_of(read_notebook(path), str(path)) if is_notebook(path) else None
    observed = observe(settings.arithmetic, settings.reading, settings.hazards, settings.device)
    launches: list[LaunchReport] = []

    def note(compiled: Any, arrays: Arrays, scalars: dict[str, Any], run: Callable[[], Any]) -> None:
        started = time.perf_counter()
        run()
        seconds = time.perf_counter() - started
        shapes = {name: f"{a.dtype.name}{list(a.shape)}" for name, a in arrays.items()}
        launches.append(LaunchReport(name_of(compiled), dict(compiled.arguments), shapes, seconds))

    def note_triton(launching: Any) -> None:
        started = time.perf_counter()
        launching.run()
        seconds = time.perf_counter() - started
        launches.append(LaunchReport(launching.kernel, launching.arguments, launching.shapes, seconds))

    observed.session.recorder = note
    interpreter = Interpreter(note_triton, settings.hazards != "off")
    with hooked(interpreter):
        code = exit_code(path, settings.script_args, observed.session, pieces)
    faults = (*observed.faults, *interpreter.faults)
    if settings.hazards == "fatal" and any(fault.severity == "error" for fault in faults):
        code = code or 1
    return RunResult(path.as_posix(), code, settings.device, settings.arithmetic, tuple(launches), faults)
