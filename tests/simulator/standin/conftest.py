"""Scripts written to a file and run on the simulator, as a user's are."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tl2npu.simulator.run import run_script
from tl2npu.simulator.standin.session import Session


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Runs a text as a script with arguments; its globals."""

    def run(text: str, *args: str, session: Session | None = None) -> dict[str, Any]:
        path = tmp_path / "script.py"
        path.write_text(textwrap.dedent(text))
        return run_script(path, args, session or Session())

    return run
