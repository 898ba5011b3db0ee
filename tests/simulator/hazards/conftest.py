"""Runs the kernels of ``kernels/`` under an observer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tl2npu.simulator.hazards import Report
from tl2npu.simulator.run import run_script
from tl2npu.simulator.standin.session import Session

KERNELS = Path(__file__).parent / "kernels"


class Watched:
    """The names of one kernel file; ``report`` is emptied by each ``run``."""

    def __init__(self, name: str, **options: Any) -> None:
        self.report = Report(**options)
        self.session = Session(watch=self.report.observer)
        self.path = KERNELS / f"{name}.py"
        self.names = run_script(self.path, [], self.session, "kernels")

    def run(self, factory: str, *arrays: Any, **arguments: Any) -> Any:
        """Call a kernel on arrays; its result."""
        self.report.clear()
        return self.names[factory](**arguments)(*arrays)

    def kinds(self) -> set[str]:
        """The kinds of what was found, notes left out."""
        return {hazard.kind for hazard in self.report.errors}

    def line(self, text: str) -> int:
        """The number of the one line that contains a text."""
        found = [n for n, line in enumerate(self.path.read_text(encoding="utf-8").splitlines(), 1) if text in line]
        assert len(found) == 1, (text, found)
        return found[0]


@pytest.fixture(scope="module")
def watch() -> Callable[..., Watched]:
    """Loads a kernel file."""
    return Watched
