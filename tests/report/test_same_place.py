"""The terminal's report shows the lines of a place once, however many findings stand there one after the other."""

from __future__ import annotations

from tests.report.support import RUN, finding, kernel
from tl2npu.report.build import build
from tl2npu.report.text import TextReport
from tl2npu.results import FileResult

TEXT = "import tilelang\n\n\ndef f():\n    launch(x)\n    launch(y)\n"


def shown(*lines: tuple[int, str]) -> list[str]:
    found = tuple(finding(line, "f", "info", help) for line, help in lines)
    result = FileResult("k.py", TEXT, TEXT, kernels=(kernel("f", 4),), diagnostics=found)
    return TextReport().render(build(RUN, [result], [])).splitlines()


def test_lines_and_help_are_not_repeated() -> None:
    lines = shown((5, "one"), (5, "one"), (5, "two"), (6, "two"))
    assert [line.split(" | ")[1].strip() for line in lines if " | " in line and "^" not in line] == [
        "launch(x)",
        "launch(y)",
    ]
    assert [line.strip() for line in lines if "help: " in line] == ["help: one", "help: two", "help: two"]
    assert sum("TL801" in line for line in lines) >= 4
