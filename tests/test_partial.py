"""``--partial``: kernels that are refused get comments where a person must go on."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.passes.gpu.support import gpu_file
from tl2npu.migration import migrate_text
from tl2npu.options import Options
from tl2npu.results import FileResult
from tl2npu.sinks import exit_code
from tl2npu.todo import with_comments, without_comments

PARTIAL = Options(partial=True)
REFUSALS = Path(__file__).resolve().parent.parent / "fixtures" / "refused"
PARAMS = 'A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16")'
BODY = """
    s = T.alloc_shared((64, 64), "float16")
    # one thread for each row
    tx = T.get_warp_idx()
    T.copy(
        A[0, 0],
        s,
    )
    if tx == 0:
        T.sync_grid()
    T.copy(s, B[0, 0])
    """
REFUSED = gpu_file(PARAMS, BODY)
GOOD = gpu_file(PARAMS, "s = T.alloc_shared((64, 64), 'float16')\nT.copy(A[0, 0], s)\nT.copy(s, B[0, 0])")
GOOD = GOOD.partition("\n\n\n")[2].replace("def factory", "def other")


def result(text: str, options: Options = PARTIAL) -> FileResult:
    found = migrate_text(text, "k.py", options)
    assert found.error is None
    return found


def todos(text: str | None) -> list[str]:
    return [line.strip() for line in (text or "").splitlines() if "TODO(tl2npu)" in line]


def test_each_reason_stands_above_its_statement() -> None:
    found = result(REFUSED)
    lines = (found.new_text or "").splitlines()
    (thread,) = [i for i, line in enumerate(lines) if "TL184" in line]
    assert lines[thread].strip().startswith("# TODO(tl2npu): TL184 the NPU has no counterpart for ")
    assert lines[thread + 1].strip() == "tx = T.get_warp_idx()"
    assert lines[thread - 1].strip() == "# one thread for each row"
    (grid,) = [i for i, line in enumerate(lines) if "TL187" in line]
    assert lines[grid + 1] == " " * 16 + "T.sync_grid()"
    assert lines[grid].startswith(" " * 16 + "# TODO")


def test_the_rest_of_the_text_stays() -> None:
    new = result(REFUSED).new_text or ""
    assert without_comments(new).text == REFUSED
    assert ast.dump(ast.parse(new)) == ast.dump(ast.parse(REFUSED))


def test_the_report_speaks_of_the_input() -> None:
    plain, found = result(REFUSED, Options()), result(REFUSED)
    assert found.diagnostics == plain.diagnostics
    assert found.kernels == plain.kernels
    assert [kernel.disposition for kernel in found.kernels] == ["refused"]


def test_a_second_run_changes_nothing() -> None:
    once = result(REFUSED)
    again = result(once.new_text or "")
    assert again.new_text == once.new_text
    assert not again.changed
    lines = (once.new_text or "").splitlines()
    assert ["T.sync_grid()" in lines[d.line - 1] for d in again.diagnostics if d.code == "TL187"] == [True]


def test_what_is_done_is_no_longer_marked() -> None:
    once = result(REFUSED).new_text or ""
    fixed = once.replace("    T.sync_grid()", "    pass")
    assert [line[:22] for line in todos(result(fixed).new_text)] == ["# TODO(tl2npu): TL184 "]


def test_other_kernels_of_the_file_are_migrated() -> None:
    text = REFUSED + "\n\n" + GOOD
    found = result(text)
    assert {k.name: k.disposition for k in found.kernels} == {"factory.main": "refused", "other.main": "migrated"}
    assert len(todos(found.new_text)) == 2
    assert "is_npu=True" in (found.new_text or "")
    assert result(found.new_text or "").new_text == found.new_text
    plain = migrate_text(text, "k.py", Options())
    assert without_comments(found.new_text or "").text == plain.new_text
    assert [c.line for c in found.changes] == [c.line for c in plain.changes]


def test_without_the_option_comments_are_left_alone() -> None:
    marked = result(REFUSED).new_text or ""
    assert migrate_text(marked, "k.py", Options()).new_text == marked


def test_a_file_without_refusals_is_migrated_as_usual() -> None:
    text = "import tilelang\nimport tilelang.language as T\n\n\n" + GOOD
    assert result(text) == migrate_text(text, "k.py", Options())


def test_the_exit_code_says_that_something_is_left() -> None:
    assert exit_code(result(REFUSED), "migrate", False) == 1


def test_a_file_that_cannot_be_read() -> None:
    assert migrate_text("def (", "k.py", PARTIAL).error is not None


@pytest.mark.parametrize(
    ("text", "line", "above"),
    [
        ("a = [\n    1,\n]\n", 2, 1),
        ("@f\ndef g():\n    pass\n", 2, 1),
        ("if a:\n    b\nelif c:\n    d\n", 3, 3),
        ("with f(\n    1\n):\n    b\n", 2, 1),
        ("try:\n    a\nexcept E:\n    b\n", 3, 3),
    ],
)
def test_comments_stand_above_whole_statements(text: str, line: int, above: int) -> None:
    marked = with_comments(text, [(line, "TL180", "one\n two")])
    assert marked.text.splitlines()[above - 1].strip() == "# TODO(tl2npu): TL180 one two"
    assert without_comments(marked.text).text == text
    assert marked.origins[marked.place(line) - 1] == line
    ast.parse(marked.text)


@pytest.mark.parametrize("path", sorted(REFUSALS.glob("*/before.py")), ids=lambda path: path.parent.name)
def test_one_search_lists_what_is_left(path: Path) -> None:
    """Every error of a refused kernel stands in a comment with the word to search for; a second run keeps it."""
    found = result(path.read_text(encoding="utf-8"))
    left = {kernel.name for kernel in found.kernels if kernel.unfinished}
    errors = {f"# TODO(tl2npu): {d.code} " for d in found.diagnostics if d.severity == "error" and d.kernel in left}
    listed = todos(found.new_text)
    assert errors == {line[: len("# TODO(tl2npu): TL000 ")] for line in listed}
    assert bool(left) == bool(listed)
    assert result(found.new_text or "").new_text == found.new_text
