"""``--notes``: kernels that are migrated say where a person should look."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from tests.passes.gpu.support import gpu_file
from tests.test_partial import GOOD, REFUSED
from tl2npu import marked
from tl2npu.cells import by_cells
from tl2npu.languages import migrate_source
from tl2npu.options import Options
from tl2npu.results import Diagnostic, FileResult, KernelResult
from tl2npu.todo import NOTE, comments, without_comments

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
NOTES = Options(notes=True)
WIDE = (
    gpu_file(
        'A: T.Tensor((64, N), "float16"), B: T.Tensor((64, N), "float16")',
        """
    s = T.alloc_shared((64, N), "float16")
    # the whole row
    T.copy(A[0, 0], s)
    T.copy(s, B[0, 0])
    """,
    )
    .replace("def factory(", "def factory(N, ")
    .replace("(N, )", "(N)")
)


def result(text: str, options: Options = NOTES, path: str = "k.py") -> FileResult:
    found = migrate_source(text, path, options)
    assert found.error is None
    return found


def noted(text: str | None) -> dict[str, str]:
    """Code -> the line below its note and those that stand between."""
    lines = (text or "").splitlines()
    return {
        code: next(line.strip() for line in lines[number:] if not line.lstrip().startswith("# NOTE"))
        for number, code, _ in comments(text or "", NOTE)
    }


def test_a_doubt_stands_above_its_statement() -> None:
    new = result(WIDE).new_text
    below = noted(new)
    assert below["TL701"].startswith("s = T.alloc_shared(")
    assert below["TL720"].startswith("with T.Kernel(")
    (one,) = [line for line in (new or "").splitlines() if "# NOTE(tl2npu): TL701 " in line]
    assert one.startswith(" " * 12 + "# NOTE(tl2npu): TL701 `N` must be a multiple of 16: ")


def test_nothing_but_comments_is_added_and_the_report_stays() -> None:
    plain, found = result(WIDE, Options()), result(WIDE)
    assert comments(plain.new_text or "", NOTE) == []
    assert without_comments(found.new_text or "", NOTE).text == plain.new_text
    assert (found.kernels, found.diagnostics, found.changes) == (plain.kernels, plain.diagnostics, plain.changes)
    assert ast.dump(ast.parse(found.new_text or "")) == ast.dump(ast.parse(plain.new_text or ""))


def test_a_kernel_without_doubts_has_no_notes() -> None:
    text = "import tilelang\nimport tilelang.language as T\n\n\n" + GOOD
    assert result(text) == result(text, Options())


def test_a_second_run_neither_doubles_nor_drops() -> None:
    once = result(WIDE).new_text or ""
    again = result(once)
    assert again.new_text == once
    assert not again.changed
    assert result(once, Options()).new_text == once


def test_what_check_does_not_find_any_more_goes_and_the_rest_stays() -> None:
    once = result(WIDE).new_text or ""
    assert {"TL701", "TL720"} <= noted(once).keys()
    by_hand = "    # NOTE(tl2npu): TL129 `A` is row-major now\n    @T.prim_func"
    fixed = once.replace("    @T.prim_func", by_hand).replace("N)", "64)").replace("factory(64)", "factory(N)")
    assert {code for _, code, _ in comments(fixed, NOTE)} == {*noted(once), "TL129"}
    assert noted(result(fixed).new_text).keys() == {"TL129"}


def test_the_notes_of_a_kernel_that_is_migrated_again_are_new() -> None:
    stale = WIDE.replace("# the whole row", "# NOTE(tl2npu): TL129 gone\n            # the whole row")
    assert "TL129" in stale
    assert result(stale).new_text == result(WIDE).new_text


def by_hand(without: str, also: str = "-") -> FileResult:
    """Notes of a migration that removes the statement ``without`` and, if there is a note, also ``also``."""
    text = "import a\n\n\n@a\ndef f():\n    x = 1\n    y = 2\n    z = 3\n"

    def work(given: str, leave: object, alone: object) -> FileResult:
        gone = (without, also) if "# NOTE" in given else (without,)
        lines = given.splitlines(True)
        drop = {i for i, line in enumerate(lines) if line.strip() in gone}
        drop |= {i - 1 for i in drop if lines[i - 1].lstrip().startswith("#")}
        new = "".join(line for i, line in enumerate(lines) if i not in drop)
        kernel = KernelResult("f", 5, "gpu", "developer", "migrated", "")
        found = [Diagnostic("TL129", "x", "warning", line, f"line {line}", kernel="f") for line in (6, 7)]
        return FileResult("k.py", given, new, kernels=(kernel,), diagnostics=tuple(found))

    return marked.noted(text, Options(), work, {}, {})


def test_a_note_whose_statement_is_gone_stands_above_the_factory() -> None:
    assert (by_hand("x = 1").new_text or "").splitlines()[3:] == [
        "# NOTE(tl2npu): TL129 line 6",
        "@a",
        "def f():",
        "    # NOTE(tl2npu): TL129 line 7",
        "    y = 2",
        "    z = 3",
    ]


def test_a_comment_that_changes_what_a_pass_does_is_no_reason_to_change_code() -> None:
    found = by_hand("x = 1", also="z = 3")
    new = found.new_text or ""
    assert without_comments(new, NOTE).text == (found.old_text or "").replace("    x = 1\n", "")
    assert [line for line, _, _ in comments(new, NOTE)] == [4, 5]


def test_with_partial_both_kinds_stand_in_a_file() -> None:
    text = REFUSED + "\n\n" + WIDE.partition("\n\n\n")[2].replace("def factory", "def other")
    found = result(text, Options(notes=True, partial=True))
    assert [k.disposition for k in found.kernels] == ["refused", "migrated"]
    new = found.new_text or ""
    assert comments(new, "TODO")
    assert comments(new, NOTE)
    assert result(new, Options(notes=True, partial=True)).new_text == new


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_line_ends(end: str) -> None:
    new = result(WIDE.replace("\n", end)).new_text or ""
    assert new.replace("\r\n", "\n") == result(WIDE).new_text
    assert new.count("\n") == new.count(end)


def test_a_notebook() -> None:
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": WIDE}
    book = {"cells": [cell], "metadata": {"language_info": {"name": "python"}}, "nbformat": 4, "nbformat_minor": 5}
    once = by_cells(json.dumps(book), "a.ipynb", lambda code: result(code, path="a.ipynb"))
    source = "".join(json.loads(once.new_text or "")["cells"][0]["source"])
    assert noted(source).keys() == noted(result(WIDE).new_text).keys()
    again = by_cells(once.new_text or "", "a.ipynb", lambda code: result(code, path="a.ipynb"))
    assert not again.changed


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["gpu/column_sum", "gpu/flash_window", "vid/softmax_rows", "expert/gather_row_loop"])
def test_fixtures(name: str) -> None:
    """Code, report and outcome are those without notes; what matters is said; a second run changes nothing."""
    text = (FIXTURES / name / "before.py").read_text(encoding="utf-8")
    plain, found = result(text, Options()), result(text)
    assert comments(found.new_text or "", NOTE)
    assert without_comments(found.new_text or "", NOTE).text == plain.new_text
    assert (found.kernels, found.diagnostics) == (plain.kernels, plain.diagnostics)
    assert result(found.new_text or "").new_text == found.new_text
