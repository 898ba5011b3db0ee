"""Scripts with Triton kernels, executed in this process."""

from __future__ import annotations

import importlib.util
import os
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interpreter.support import HEAD, Run
from tl2npu.interpreter.hook import hooked
from tl2npu.interpreter.launch import Launch
from tl2npu.interpreter.session import Interpreter
from tl2npu.simulator.standin.package import installed
from tl2npu.simulator.standin.session import Session
from tl2npu.verify.loading import Source, execute

if importlib.util.find_spec("triton") is not None:
    os.environ.setdefault("TRITON_INTERPRET", "1")  # before anything imports it


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Run]:
    """Executes a script behind imports of torch, triton, tl, al, bl and tle; skips where Triton is not installed."""
    pytest.importorskip("triton")
    pytest.importorskip("torch")
    monkeypatch.setattr(sys, "path", [*sys.path])

    def execute_it(text: str) -> Run:
        launches: list[Launch] = []
        interpreter = Interpreter(lambda launching: launches.append(launching.recorded(len(launches), 0)))
        path = tmp_path / "script.py"
        path.write_text(HEAD + textwrap.dedent(text))
        with installed(Session()), hooked(interpreter):
            module = execute(Source(path.read_text(), str(path), "script.py"), "script", ())
        return Run(module, launches, [fault.message for fault in interpreter.faults])

    return execute_it
