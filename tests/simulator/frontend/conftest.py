"""Scripts written to a file and run on the simulator, as a user's are."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.run import run_script
from tl2npu.simulator.standin.session import Session

HEADER = """\
import numpy as np
import tilelang
import tilelang.language as T
"""


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], dict[str, Any]]:
    """Runs a text as a script; its globals."""

    def run(text: str) -> dict[str, Any]:
        path = tmp_path / "script.py"
        path.write_text(textwrap.dedent(text))
        return run_script(path, [], Session())

    return run


@pytest.fixture
def fault(tmp_path: Path) -> Callable[[str], str]:
    """Runs a text that must fail with an error of the simulator at the line that is marked ``# here``; its message."""

    def run(text: str) -> str:
        path = tmp_path / "script.py"
        source = HEADER + textwrap.dedent(text)
        path.write_text(source)
        (line,) = (n for n, text in enumerate(source.splitlines(), 1) if "# here" in text)
        with pytest.raises(SimulatorError) as raised:
            run_script(path, [], Session())
        assert str(raised.value).startswith(f"{path}:{line}: "), str(raised.value)
        return raised.value.plain

    return run
