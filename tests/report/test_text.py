from __future__ import annotations

import click

from tl2npu.report.text import TextReport
from tl2npu.results import Change, Diagnostic, Disposition, FileResult, KernelResult, Severity, Skipped


def kernel(name: str, line: int, disposition: Disposition = "migrated", reason: str = "why") -> KernelResult:
    return KernelResult(name, line, "vid", "developer", disposition, reason)


def finding(line: int, name: str | None, severity: Severity = "error", help: str = "") -> Diagnostic:
    return Diagnostic("TL801", "memory-capacity", severity, line, f"at {line}", help, 3, kernel=name)


def test_kernels_with_their_diagnostics_and_changes() -> None:
    file = FileResult(
        "k.py",
        "old",
        "new",
        kernels=(kernel("a", 10), kernel("b", 20, "refused", "")),
        diagnostics=(finding(21, "b", help="less"), finding(5, None), finding(2, "a", "warning")),
        changes=(
            Change("TL201", 11, "done", "a"),
            Change("TL202", 12, "risky", "a", "unsafe"),
            Change("TL1", 1, "import"),
        ),
    )
    lines = TextReport(explain=True).render([file]).split("\n")
    assert lines == [
        "k.py:10 a: migrated -> developer (why)",
        "  k.py:2:3 TL801 memory-capacity at 2",
        "    line 11: TL201 done",
        "    line 12: TL202 risky [unsafe]",
        "k.py:20 b: refused",
        "  k.py:21:3 TL801 memory-capacity at 21",
        "    help: less",
        "  k.py:5:3 TL801 memory-capacity at 5",
        "    line 1: TL1 import",
        "1 file changed; 2 kernels: 1 migrated, 1 refused",
        "",
    ]
    assert "TL201 done" not in TextReport().render([file])


def test_changes_stand_in_the_order_of_lines_and_once() -> None:
    """Of two changes of one line the one that was made first comes first."""
    made = (("TL203", 12, "b"), ("TL210", 9, "c"), ("TL203", 12, "b"), ("TL201", 12, "a"), ("TL203", 12, "d"))
    changes = tuple(Change(code, line, message, "a") for code, line, message in made)
    file = FileResult("k.py", "old", "new", kernels=(kernel("a", 1),), changes=changes)
    lines = TextReport(explain=True).render([file]).split("\n")
    assert lines[1:-2] == [
        "    line 9: TL210 c",
        "    line 12: TL203 b",
        "    line 12: TL201 a",
        "    line 12: TL203 d",
    ]


def test_kernels_of_one_name_keep_their_own_findings() -> None:
    file = FileResult(
        "k.py",
        kernels=(kernel("a", 10), kernel("a", 20)),
        diagnostics=(finding(9, "a"), finding(15, "a"), finding(25, "a")),
    )
    lines = TextReport().render([file]).split("\n")
    assert [line.split()[0] for line in lines[:5]] == ["k.py:10", "k.py:9:3", "k.py:15:3", "k.py:20", "k.py:25:3"]


def test_summaries() -> None:
    failed, skipped = FileResult("x.py", error="no such file"), Skipped("g.py", "@generated")
    text = TextReport(written=False).render([failed], [skipped])
    assert text == (
        "x.py: error: no such file\ng.py: skipped (@generated)\n"
        "0 files would change; 0 kernels; 1 file failed; 1 skipped\n"
    )
    checked = FileResult("k.py", kernels=(kernel("a", 1),), diagnostics=(finding(1, "a"), finding(2, "a", "warning")))
    lines = TextReport("check").render([checked]).split("\n")
    assert lines[0].startswith("  k.py:1:3")
    assert lines[-2] == "1 error, 1 warning; 1 kernel in 1 file"


def test_colour_adds_nothing_but_escapes() -> None:
    file = FileResult("k.py", kernels=(kernel("a", 1, "refused"),), diagnostics=(finding(1, "a"),), error="bad")
    coloured, plain = TextReport(color=True).render([file]), TextReport().render([file])
    assert coloured != plain
    assert click.unstyle(coloured) == plain
