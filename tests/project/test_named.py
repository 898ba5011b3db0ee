"""Files that are named on the command line have to be Python, as other tools for Python want it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tl2npu.cli import cli

BROKEN = "def f(:\n    pass\n"


@pytest.mark.parametrize("command", [["check"], ["migrate", "--check"]])
@pytest.mark.parametrize(
    ("given", "text", "code"),
    [
        ("part/named.py", BROKEN, 2),
        ("part/named.py", "x = 1\n", 0),
        ("part", BROKEN, 0),  # found on the way, and about something else
        ("part", BROKEN + "import tilelang\n", 2),
        ("part/named.txt", "{}\n", 2),  # JSON is Python as well, and not meant
    ],
)
def test_a_file_that_is_no_python(tmp_path: Path, command: list[str], given: str, text: str, code: int) -> None:
    (tmp_path / "part").mkdir()
    for name in ("named.py", "named.txt"):
        (tmp_path / "part" / name).write_text(text)
    done = CliRunner().invoke(cli, [*command, str(tmp_path / given)])
    assert done.exit_code == code
    assert (("TL901" in done.output) or ("not a Python file" in done.output)) == (code == 2)
