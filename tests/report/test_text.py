from __future__ import annotations

from dataclasses import replace
from typing import Any

import click
import pytest

from tests.report.support import HOSTILE, RUN, finding, hostile, kernel, many, report
from tl2npu.report.build import build
from tl2npu.report.model import Run
from tl2npu.report.text import TextReport
from tl2npu.results import Change, Diagnostic, FileResult, KernelResult, SelfCheck, Skipped, Verified

WRITTEN = replace(RUN, written=True)


def text(files: list[FileResult], run: Run = RUN, skipped: tuple[Skipped, ...] = (), **how: Any) -> str:
    return TextReport(**how).render(build(run, files, skipped))


_WHY = "some sizes, or the rates of the device, are not known"


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
    lines = text([file], WRITTEN, explain=True).split("\n")
    assert lines == [
        "k.py:10 a: migrated -> developer (why)",
        "  k.py:2:3 warning TL801 memory-capacity: at 2",
        "  assumed: line 2: at 2",
        f"  costs: not estimated: {_WHY}; `tl2npu cost --args` takes a call",
        "  test: the sizes and element types that callers outside of the file use",
        "  test: values: `tl2npu verify` runs the old and the new kernel on the simulator, or on an NPU",
        "    line 11: TL201 done",
        "    line 12: TL202 risky [unsafe]",
        "k.py:20 b: refused",
        "  k.py:21:3 error TL801 memory-capacity: at 21",
        "    help: less",
        "  k.py:5:3 error TL801 memory-capacity: at 5",
        "    line 1: TL1 import",
        "1 file changed; 2 kernels: 1 migrated, 1 refused",
        "",
    ]
    assert "TL201 done" not in text([file])


def test_what_a_reviewer_asks() -> None:
    """Decisions, assumptions, costs with shares of the time, and tests that follow from what was done."""
    changes = (
        Change("TL131", 12, "copied `p` to L1 for the gemm", "a"),
        Change("TL133", 13, "`s` is copied to the vector cores", "a"),
        Change("TL133", 14, "`o` is accumulated on the vector cores", "a"),
        Change("TL612", 11, "keeps stages where n % 2 == 0", "a"),
    )
    notes = (Diagnostic("TL144", "mixed", "info", 15, "wrote float32", kernel="a"),)
    done = replace(
        kernel("a", 10), pipes=(("cube", 60.0), ("vector", 39.0), ("scalar", 1.0)), verified=Verified("sim", 1, 0.0)
    )
    lines = text([FileResult("k.py", "old", "new", None, (done,), notes, changes)], WRITTEN, explain=True).split("\n")
    assert [line.strip() for line in lines if line.startswith(("  decided", "  assumed", "  costs", "  test"))] == [
        "decided: 1 tile handed to the cube core, 2 products handed back",
        "decided: line 11: keeps stages where n % 2 == 0",
        "assumed: line 15: wrote float32",
        "costs: 100 cycles of work for a block at the first call of the file, "
        "the sum of its pipes by the cost model: cube 60%, vector 39%",
        "test: a loop whose turns fill its stages, and one that leaves a remainder",
        "test: one call many times: where cores overtake each other, results change from call to call",
        "test: the tolerance: some steps are more exact than on a GPU",
    ]


def test_changes_stand_in_the_order_of_lines_and_once() -> None:
    """Of two changes of one line the one that was made first comes first."""
    made = (("TL203", 12, "b"), ("TL210", 9, "c"), ("TL203", 12, "b"), ("TL201", 12, "a"), ("TL203", 12, "d"))
    made += tuple(("TL110", line, "e") for line in range(20, 29))
    changes = tuple(Change(code, line, message, "a") for code, line, message in made)
    file = FileResult("k.py", "old", "new", kernels=(kernel("a", 1),), changes=changes)
    lines = text([file], WRITTEN, explain=True).split("\n")
    assert lines[3:-2] == [
        "    line 9: TL210 c",
        "    line 12: TL203 b",
        "    line 12: TL201 a",
        "    line 12: TL203 d",
        "    lines 20, 21, 22, 23, 24, 25 and 3 more: TL110 e",
    ]


def test_changes_that_say_the_same_of_several_names_are_one_line() -> None:
    said = ("`a`: alloc_fragment -> alloc_shared", "`b`: alloc_fragment -> alloc_shared", "`c`: other", "plain: text")
    changes = tuple(Change("TL130", 10 + place, message, "a") for place, message in enumerate(said))
    changes += (Change("TL131", 20, said[0], "a"), Change("TL130", 21, said[0], "a", "unsafe"))
    lines = text([FileResult("k.py", "old", "new", kernels=(kernel("a", 1),), changes=changes)], WRITTEN, explain=True)
    assert [line.strip() for line in lines.split("\n") if line.startswith("    line")] == [
        "lines 10, 11: TL130 `a`, `b`: alloc_fragment -> alloc_shared",
        "line 12: TL130 `c`: other",
        "line 13: TL130 plain: text",
        "line 20: TL131 `a`: alloc_fragment -> alloc_shared",
        "line 21: TL130 `a`: alloc_fragment -> alloc_shared [unsafe]",
    ]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"target": "developer-threads1"}, "costs: threads=1: one of the two vector cores of a block is idle"),
        ({"target": "fallback"}, None),
        ({"checked": SelfCheck(True)}, "checked: old and new give the same values on random inputs"),
        ({"checked": SelfCheck(False, "no size")}, "checked: old and new were not compared: no size"),
    ],
)
def test_what_a_kernel_costs_and_how_it_was_checked(changed: dict[str, Any], said: str | None) -> None:
    changes = (Change("TL623", 7, "the vector cores wait for `token` before they go on", "a"),)
    file = FileResult("k.py", "old", "new", kernels=(replace(kernel("a", 1), **changed),), changes=changes)
    lines = [line.strip() for line in text([file], WRITTEN, explain=True).split("\n")]
    assert said in lines if said else not [line for line in lines if line.startswith("costs: not")]
    token = "costs: line 7: the cube core makes one more product, of zeros, and the vector cores wait for it"
    assert token in lines


def test_kernels_of_one_name_keep_their_own_findings() -> None:
    file = FileResult(
        "k.py",
        kernels=(kernel("a", 10), kernel("a", 20)),
        diagnostics=(finding(9, "a"), finding(15, "a"), finding(25, "a")),
    )
    lines = text([file]).split("\n")
    assert [line.split()[0] for line in lines[:5]] == ["k.py:10", "k.py:9:3", "k.py:15:3", "k.py:20", "k.py:25:3"]


def test_lines_with_one_cause_are_told_once() -> None:
    """Messages that differ in names alone, of more than three lines; ``explain`` and other formats have all."""

    def told(*lines: int, **how: Any) -> list[str]:
        found = [replace(finding(line, "a", help="pad `x`"), message=f"a row of `x{line}` is odd") for line in lines]
        other = finding(13, "a", "warning")
        file = FileResult("k.py", kernels=(kernel("a", 1),), diagnostics=(*found, other))
        return [
            line.strip() for line in text([file], replace(RUN, task="check"), **how).split("\n") if "help" not in line
        ]

    first = "k.py:11:3 error TL801 memory-capacity: a row of `x11` is odd"
    other = "k.py:13:3 warning TL801 memory-capacity: at 13"
    assert told(11, 12, 14, 15) == [
        first,
        "and 3 more lines: 12, 14, 15",
        other,
        "4 errors, 1 warning; 1 kernel in 1 file",
        "",
    ]
    assert [line[:7] for line in told(11, 12, 14)][:4] == ["k.py:11", "k.py:12", "k.py:14", "k.py:13"]
    assert len(told(11, 12, 14, 15, explain=True)) == 7


def test_summaries() -> None:
    failed, skipped = FileResult("x.py", error="no such file"), Skipped("g.py", "@generated")
    assert text([failed], skipped=(skipped,)) == (
        "x.py: error: no such file\ng.py: skipped (@generated)\n"
        "0 files would change; no kernels; 1 file failed; 1 skipped\n"
    )
    checked = FileResult("k.py", kernels=(kernel("a", 1),), diagnostics=(finding(1, "a"), finding(2, "a", "warning")))
    lines = text([checked], replace(RUN, task="check")).split("\n")
    assert lines[0].startswith("k.py:1:3")
    assert lines[-2] == "1 error, 1 warning; 1 kernel in 1 file"


def test_colour_adds_nothing_but_escapes() -> None:
    file = FileResult("k.py", kernels=(kernel("a", 1, "refused"),), diagnostics=(finding(1, "a"),), error="bad")
    coloured, plain = text([file], color=True), text([file])
    assert coloured != plain
    assert click.unstyle(coloured) == plain


def test_findings_show_their_source_and_what_became_of_it() -> None:
    lines = TextReport().render(report()).split("\n")
    assert lines == [
        "a/b.py:4 f.main: migrated -> developer, verified on the simulator: 2 launches, largest difference 0.5 "
        "(because)",
        "  a/b.py:5:2 warning TL801 memory-capacity: too `much` of it",
        "    5 |     with T.Scope('C'):",
        "      |     ^^^^^^^^^^^^^^^^^^",
        "    6 |         T.copy(a, b)",
        "    5 -     with T.Scope('C'):",
        "    6 -         T.copy(a, b)",
        "      +     T.copy(a, b)",
        "    help: take less",
        "a/b.py:7 f.other: refused (no way)",
        "  a/b.py:7:5 error TL184 thread-level-code: threads",
        "    7 |     x = 'ü'",
        "      |     ^^^^^^^",
        "    help: use tiles",
        "  a/b.py:1:1 info TL904 unused-suppression: not needed",
        "    1 | import tilelang",
        "      | ^^^^^^^^^^^^^^^",
        "c.py: error: no such file",
        "g.py: skipped (@generated)",
        "checked: 1 of 1 kernel gives the same values on random inputs",
        "1 file would change; 2 kernels: 1 migrated, 1 refused; 1 file failed; 1 skipped",
        "",
    ]
    assert "-     with" not in TextReport(changes=False).render(report())


@pytest.mark.parametrize(
    ("source", "column", "mark"),
    [
        ("a = b", 5, "    ^"),
        ("\ta\tb", 4, "        ^"),
        ("数据 = f(x)", 6, "       ^"),
        ("  e\u0301 = f(x)", 8, "       ^"[1:]),
        ("a", 40, " ^"),
        ("", 1, "^"),
        ("\x1b[0m = 1", 1, "^^^^^^^^^^^"),
    ],
)
def test_the_caret_stands_under_the_column(source: str, column: int, mark: str) -> None:
    """Tabs, wide and combining characters take another number of cells than of characters."""
    item = Diagnostic("TL801", "memory-capacity", "error", 1, "x", column=column)
    lines = text([FileResult("k.py", source, source, diagnostics=(item,))]).split("\n")
    assert lines[2] == f"      | {mark}"


def test_a_large_change_is_named_only() -> None:
    old, new = "a\n" * 20, "b\n" * 20
    file = FileResult("k.py", old, new, diagnostics=(finding(7, None),))
    assert "= rewritten with lines 1 to 20\n" in text([file])
    assert " + b" not in text([file])


def test_what_is_about_a_kernel_shows_no_change_of_its_head() -> None:
    file = FileResult(
        "k.py", "a\nb\n", "c\nd\n", kernels=(kernel("f", 1),), diagnostics=(finding(1, "f"), finding(2, "f"))
    )
    first, second = text([file]).split("k.py:2:")
    assert " - a" not in first
    assert " - a" in second


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_terminal_gets_lines_that_fit(width: int) -> None:
    long = " ".join(f"word{n}" for n in range(40))
    source = "        " + "x" * 300
    items = [Diagnostic("TL801", "memory-capacity", "error", 1, long, long, column) for column in (1, 9, 200, 308)]
    file = FileResult("k.py", source, source, kernels=(kernel("a", 1, reason=long),), diagnostics=tuple(items))
    shown = text([file], width=width)
    assert max(map(len, shown.split("\n"))) <= width
    assert shown.count("word39") == 9
    assert all("^" in line for line in shown.split("\n") if line.startswith("      |"))
    assert " ".join(shown.split()).count(long) == 9
    assert max(map(len, text([file]).split("\n"))) > 300


def test_nothing_from_outside_steers_the_terminal() -> None:
    shown = TextReport(explain=True).render(hostile())
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "\r" not in shown
    assert not any(line.startswith("::") for line in shown.split("\n"))
    assert "\\x1b[31m" in shown
    assert HOSTILE.split("\n")[0] in shown


def test_runs_of_no_and_of_a_thousand_kernels() -> None:
    assert text([]) == "0 files would change; no kernels\n"
    shown = TextReport().render(many(1000))
    assert shown.endswith(
        "500 files would change; 1,000 kernels: 250 migrated, 250 partial, 250 refused, 250 unchanged\n"
    )


def test_what_a_finding_says_is_not_said_twice() -> None:
    items = [
        kernel("a", 1, "refused", "at 1"),
        kernel("b", 2, "partial", "vid stays, because of TL801 line 2: at 2"),
        kernel("c", 3, "refused", "not at 3"),
    ]
    found = (finding(1, "a"), finding(2, "b"), finding(3, "c"))
    file = FileResult("k.py", "", "", kernels=tuple(items), diagnostics=found)
    lines = [line for line in text([file]).split("\n") if line.startswith("k.py")]
    assert lines == [
        "k.py:1 a: refused",
        "k.py:2 b: partial -> developer (vid stays, because of TL801 line 2)",
        "k.py:3 c: refused (not at 3)",
    ]
    assert "k.py:1 a: refused (at 1)" in text([replace(file, diagnostics=())])


def test_in_a_terminal_files_with_findings_stand_apart() -> None:
    plain = FileResult("a.py", kernels=(kernel("a", 1),))
    loud = FileResult("b.py", kernels=(kernel("b", 1),), diagnostics=(finding(1, "b"),))
    shown = text([plain, plain, loud, loud, plain], width=80).split("\n")
    assert [line[:4] for line in shown] == [
        "a.py",
        "a.py",
        "",
        "b.py",
        "  b.",
        "",
        "b.py",
        "  b.",
        "",
        "a.py",
        "0 fi",
        "",
    ]
    assert "\n\n" not in text([plain, loud, loud])


def test_a_file_that_could_not_be_written_has_no_migrated_kernel() -> None:
    lost = FileResult("k.py", "old", "old", "file has uncommitted changes", (kernel("a", 1), kernel("b", 2, "refused")))
    lines = text([lost], WRITTEN).splitlines()
    assert lines[1] == "k.py:1 a: not written: migrated -> developer (why)"
    assert lines[-1] == "0 files changed; 2 kernels: 1 refused; 1 file failed, 1 kernel not written"


def test_a_long_report_ends_with_its_digest() -> None:
    wide = [
        FileResult(
            f"{number}.py",
            "old",
            "new",
            kernels=(
                KernelResult("a", 1, "gpu", "developer", "migrated", "every tile is split by rows: threads=2"),
                KernelResult("b", 2, "gpu", "developer-threads1", "migrated", "threads=1"),
            ),
            diagnostics=(finding(2, "a"), replace(finding(1, "b", "warning"), code="TL885", name="tile")),
        )
        for number in range(10)
    ]
    report = build(RUN, wide[:9])
    assert "(" not in TextReport().render(report).splitlines()[-2]
    report = build(RUN, wide)
    assert TextReport().render(report).splitlines()[-5:-3] == ["", "    20 migrated (10 threads=2, 10 threads=1)"]
    short = TextReport().short(report).splitlines()
    assert short[0] == "    20 migrated (10 threads=2, 10 threads=1)"
    assert [line.split()[:3] for line in short[1:3]] == [["10", "error", "TL801"], ["10", "warning", "TL885"]]
    assert short[3:] == ["10 files would change; 20 kernels: 20 migrated"]


def test_one_line_on_the_kernels_that_were_evaluated() -> None:
    found = [SelfCheck(True), SelfCheck(True), SelfCheck(False, "too long"), SelfCheck(False, f"{HOSTILE}!"), None]
    kernels = tuple(replace(kernel(str(n), n + 1), checked=one) for n, one in enumerate(found))
    line = text([FileResult("k.py", "old", "new", kernels=kernels)], WRITTEN).split("\n")[-3]
    same = "checked: 2 of 4 kernels give the same values on random inputs"
    assert line.startswith(f"{same}; 1 not checked (2): too long; 1 not checked (3): ")
    assert "\x1b" not in line
    plain = text([FileResult("k.py", "old", "new", kernels=(kernel("a", 1),))], WRITTEN)
    assert "checked" not in plain


def test_triton_kernels_count_as_not_checked() -> None:
    """The check of every run evaluates TileLang alone."""
    kernels = (replace(kernel("a", 1), checked=SelfCheck(True)), replace(kernel("b", 2), source="triton"))
    shown = text([FileResult("k.py", "old", "new", kernels=kernels)], WRITTEN)
    assert "checked: 1 of 1 kernel gives the same values on random inputs; 1 Triton kernel not checked: " in shown


def refused_for(*errors: tuple[str, str, str]) -> FileResult:
    """A kernel with errors: code, message, help."""
    found = [Diagnostic(code, "x", "error", 1, message, help, kernel="f") for code, message, help in errors]
    return FileResult("k.py", kernels=(kernel("f", 1, "refused"),), diagnostics=tuple(found))


EIGHT = ("TL191", "the NPU has no counterpart for this element type: T.float8_e4m3fn", "")
FOUR = ("TL191", "the NPU has no counterpart for this element type: T.float4_e2m1fn, T.float8_e4m3fn", "")
LARGE = ("TL801", "UB holds 196352 bytes", "use blk_m=32; `tl2npu migrate --unsafe` writes the tiles that fit")
TUNED = ("TL514", "`BLOCK` is not written out", "")
OTHER = ("TL184", "threads", "")


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (
            [refused_for(EIGHT), refused_for(EIGHT, EIGHT), refused_for(LARGE)],
            "up to 2 with `--fp8 float16`, up to 1 with `--unsafe`",
        ),
        ([refused_for(TUNED)], "up to 1 with `--tuned NAME=VALUE`"),
        ([refused_for(EIGHT, OTHER)], None),
        ([refused_for(EIGHT, LARGE)], None),  # takes two of them
        ([refused_for(FOUR)], None),
        ([refused_for(OTHER)], None),
    ],
)
def test_what_an_option_may_still_do(files: list[FileResult], said: str | None) -> None:
    lines = text(files).split("\n")
    found = [line for line in lines if line.startswith("more kernels may migrate: ")]
    assert found == ([] if said is None else [f"more kernels may migrate: {said}"])
    assert not any("may migrate" in line for line in text(files, replace(RUN, task="check")).split("\n"))
