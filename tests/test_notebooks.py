"""Notebooks through the command line: cells are migrated, everything else of the file stays."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.in_process import children_in_copies
from tests.verify.support import HEAD, SCALE
from tl2npu.cells import by_cells
from tl2npu.cli import cli
from tl2npu.migration import migrate_text
from tl2npu.options import Options
from tl2npu.report.json import render
from tl2npu.report.load import load

FIXTURE = Path(__file__).parent.parent / "fixtures" / "workspace" / "gemm_leaky_relu"
BEFORE = (FIXTURE / "before.py").read_text(encoding="utf-8")
IMPORTS, FACTORY, REFERENCE, SCRIPT = BEFORE.split("\n\n\n")


def cell(source: str, kind: str = "code") -> dict[str, Any]:
    more: dict[str, Any] = {"execution_count": 3, "outputs": [{"png": "é" * 40}]} if kind == "code" else {}
    return {"cell_type": kind, "metadata": {}} | more | {"source": source.splitlines(keepends=True)}


def notebook(*cells: dict[str, Any], language: str = "python", version: int = 4) -> str:
    content = {"cells": list(cells), "metadata": {"language_info": {"name": language}}, "nbformat": version}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


KERNELS = notebook(
    cell("# Leaky ReLU", "markdown"),
    cell("%load_ext autoreload\n" + IMPORTS),
    cell("!npu-smi info"),
    cell(FACTORY),
    cell("%%bash\nls ("),
    cell(REFERENCE + "\n\n\n" + SCRIPT.rstrip()),
)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def tl2npu(*arguments: str, data: str | None = None) -> Result:
    with children_in_copies():
        return CliRunner().invoke(cli, arguments, input=data)


def code_of(text: str) -> str:
    """The cells of Python, as a script."""
    cells = [item for item in json.loads(text)["cells"] if item["cell_type"] == "code"]
    texts = ["".join(item["source"]) for item in cells]
    kept = [[line for line in text.split("\n") if line[:1] not in ("%", "!")] for text in texts if text[:2] != "%%"]
    return "\n\n\n".join("\n".join(lines).strip("\n") for lines in kept if lines)


def test_cells_are_migrated_like_a_file(place: Path) -> None:
    (place / "a.ipynb").write_text(KERNELS, encoding="utf-8")
    result = tl2npu("migrate", "a.ipynb")
    assert result.exit_code == 0, result.output
    new = (place / "a.ipynb").read_text(encoding="utf-8")
    expected = (FIXTURE / "after.py").read_text(encoding="utf-8")
    assert [line for line in code_of(new).split("\n") if line] == [line for line in expected.split("\n") if line]
    old, done = json.loads(KERNELS), json.loads(new)
    for item in (*old["cells"], *done["cells"]):
        del item["source"]
    assert old == done
    assert new == json.dumps(json.loads(new), indent=1, ensure_ascii=False) + "\n"
    assert (place / "a.ipynb.orig").read_text(encoding="utf-8") == KERNELS
    again = tl2npu("migrate", "a.ipynb")
    assert "0 files changed" in again.output
    assert (place / "a.ipynb").read_text(encoding="utf-8") == new


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_the_patch_is_one_of_the_file(place: Path, newline: str, bom: str) -> None:
    data = (bom + KERNELS.replace("\n", newline)).encode()
    (place / "a.ipynb").write_bytes(data)
    result = tl2npu("migrate", "--diff", "a.ipynb")
    assert (place / "a.ipynb").read_bytes() == data
    (place / "patch").write_bytes(result.stdout_bytes)
    subprocess.run(["git", "apply", "patch"], check=True)
    patched = (place / "a.ipynb").read_bytes()
    removed = [line for line in result.stdout_bytes.split(b"\n") if line[:1] == b"-" and line[:3] != b"---"]
    assert 5 < len(removed) < 20  # the changed lines, and no others
    (place / "a.ipynb").write_bytes(data)
    assert tl2npu("migrate", "a.ipynb").exit_code == 0
    assert (place / "a.ipynb").read_bytes() == patched


def test_places_are_cells_and_their_lines(place: Path) -> None:
    (place / "a.ipynb").write_text(KERNELS, encoding="utf-8")
    line = next(n for n, text in enumerate(FACTORY.split("\n"), 1) if "def kernel" in text)
    text = tl2npu("migrate", "--check", "--explain", "a.ipynb")
    assert text.exit_code == 1
    assert f"\n  a.ipynb:cell 4:{line}:1 info TL905 " in "\n" + text.output
    assert f"a.ipynb:cell 4:{line} gemm_leaky.kernel: migrated" in text.output
    assert f"    cell 4 line {line + 4}: TL211" in text.output
    output = tl2npu("migrate", "--check", "--format", "json", "a.ipynb").output
    assert render(load(output, "report")) == output
    report = json.loads(output)["files"][0]
    assert [(item["cell"], item["line"]) for item in report["kernels"]] == [(4, line)]
    assert {item["cell"] for item in report["diagnostics"]} == {4}
    assert {item["cell"] for item in report["changes"]} == {4}


def test_findings_know_their_lines_in_the_file() -> None:
    result = by_cells(KERNELS, "a.ipynb", lambda code: migrate_text(code, "a.ipynb", Options()))
    finding = next(item for item in result.diagnostics if item.code == "TL905")
    found = next(item for item in result.cells if item.number == finding.cell)
    assert finding.file_line == result.kernels[0].file_line
    assert finding.file_line is not None
    line = KERNELS.split("\n")[finding.file_line - 1]
    assert "def kernel(" in line
    assert found.text.split("\n")[finding.line - 1] in json.loads(line.strip(" ,"))


def test_lines_in_messages_are_those_of_cells() -> None:
    gpu = (FIXTURE.parents[1] / "gpu" / "column_sum" / "before.py").read_text(encoding="utf-8")
    alone = migrate_text(gpu, "a.py", Options()).kernels[0]
    text = notebook(cell("x = 1\ny = 2\n"), cell(gpu))
    kernel = by_cells(text, "a.ipynb", lambda code: migrate_text(code, "a.ipynb", Options())).kernels[0]
    assert re.search(r" line \d+: ", alone.reason)  # of what needs one vector core
    assert (kernel.cell, kernel.line, kernel.reason) == (2, alone.line, alone.reason)


def test_a_broken_cell_is_named(place: Path) -> None:
    (place / "a.ipynb").write_text(notebook(cell(BEFORE), cell("x = 1\nif:\n")), encoding="utf-8")
    result = tl2npu("migrate", "a.ipynb")
    assert result.exit_code == 2
    (told,) = [line for line in result.output.splitlines() if line.startswith("a.ipynb")]
    assert told.startswith("a.ipynb:cell 2:2:1 error TL901 ")


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        (KERNELS[:-3], 2, "a.ipynb: error: line "),
        (notebook(cell(BEFORE), version=3), 2, "a.ipynb: error: a notebook of format 3: save it in format 4 first"),
        (notebook(cell(BEFORE), language="R"), 0, "a.ipynb: skipped (a notebook in R)"),
        (notebook(cell(BEFORE, "markdown")), 0, "a.ipynb: skipped (a notebook without code cells)"),
        (notebook(cell("# tl2npu: skip-file\n" + BEFORE)), 0, "a.ipynb: skipped (tl2npu: skip-file)"),
        (notebook(cell("# @generated\n" + BEFORE)), 0, "a.ipynb: skipped (@generated)"),
        (notebook(cell("x = 1"), cell("")), 0, "0 files changed; no kernels"),
    ],
)
def test_one_clear_message(place: Path, text: str, code: int, message: str) -> None:
    (place / "a.ipynb").write_text(text, encoding="utf-8")
    result = tl2npu("migrate", ".")
    assert result.exit_code == code
    assert message in result.output
    assert (place / "a.ipynb").read_text(encoding="utf-8") == text


def test_kernels_in_cells_of_other_languages_are_told(place: Path) -> None:
    (place / "a.ipynb").write_text(notebook(cell("%%writefile k.py\n" + BEFORE), cell("x")), encoding="utf-8")
    result = tl2npu("migrate", "a.ipynb")
    line = next(n for n, text in enumerate(BEFORE.split("\n"), 2) if "TL.Kernel(" in text)
    assert f"a.ipynb:cell 1:{line}:1 warning TL913 kernel-in-foreign-cell" in result.output
    assert result.exit_code == 0


def test_suppressions_and_comments_of_partial_stand_in_their_cells() -> None:
    body = BEFORE.replace("TL.tile.max", "TL.tile.unheard_of")
    assert body != BEFORE
    text = notebook(cell("x = 1  # tl2npu: ignore[TL822]"), cell(body))
    result = by_cells(text, "a.ipynb", lambda code: migrate_text(code, "a.ipynb", Options(partial=True)))
    assert [(item.cell, item.line) for item in result.diagnostics if item.code == "TL904"] == [(1, 1)]
    cells = json.loads(result.new_text or "")["cells"]
    assert "TODO(tl2npu)" in "".join(cells[1]["source"])
    assert cells[0] == json.loads(text)["cells"][0]
    again = by_cells(
        result.new_text or "", "a.ipynb", lambda code: migrate_text(code, "a.ipynb", Options(partial=True))
    )
    assert again.new_text == result.new_text


def test_standard_input(place: Path) -> None:
    result = tl2npu("migrate", "-", "--stdin-filename", "a.ipynb", data=KERNELS)
    assert result.exit_code == 0
    assert "TL.alloc_shared" in result.stdout
    assert json.loads(result.stdout)["nbformat"] == 4


def test_check_and_directories(place: Path) -> None:
    (place / "a").mkdir()
    (place / "a" / ".ipynb_checkpoints").mkdir()
    for name in ("a/k.ipynb", "a/.ipynb_checkpoints/k.ipynb"):
        (place / name).write_text(KERNELS, encoding="utf-8")
    result = tl2npu("check", "a")
    assert "1 kernel in 1 file" in result.output
    assert tl2npu("migrate", "a", "-o", "b").exit_code == 0
    assert tl2npu("check", "b").exit_code == 0


def executed(*cells: str) -> str:
    """A notebook that launches a kernel of its own; needs NumPy only. ``cells`` go before the last one."""
    return notebook(
        cell("Prose", "markdown"),
        cell("%load_ext autoreload\nimport sys\n" + HEAD),
        cell("%%bash\nls ("),
        cell(SCALE.strip()),
        *map(cell, cells),
        cell("x = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)"),
        cell("np.testing.assert_allclose(scale(64)(x), x * 0.5)"),
    )


def test_a_notebook_is_run_cell_by_cell(place: Path) -> None:
    (place / "a.ipynb").write_text(executed("print(__name__, sys.argv[1:])"), encoding="utf-8")
    result = tl2npu("run", "a.ipynb", "--size", "3")
    assert result.stdout == "__main__ ['--size', '3']\n"
    assert "a.ipynb: 1 launch, 0 hazards" in result.stderr
    assert result.exit_code == 0


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        (executed("1 +"), 2, "error: a.ipynb:cell 5:1: invalid syntax"),
        (executed("\nraise ValueError('no')"), 1, 'File "a.ipynb:cell 5", line 2, in <module>\n'),
        (notebook(cell("x"), language="R"), 2, "error: a.ipynb: a notebook in R"),
        ("{", 2, "error: a.ipynb: line 1: not a notebook: invalid JSON"),
        (notebook(cell("%%bash\nls")), 2, "error: a.ipynb: a notebook without Python cells"),
    ],
)
def test_what_is_wrong_with_a_cell_is_told_by_cell(place: Path, text: str, code: int, message: str) -> None:
    (place / "a.ipynb").write_text(text, encoding="utf-8")
    result = tl2npu("run", "a.ipynb")
    assert (result.exit_code, message in result.stderr) == (code, True), result.stderr
    assert "tl2npu/" not in result.stderr.replace("\\", "/")


def test_what_a_cell_takes_from_the_future_holds_in_those_behind(place: Path) -> None:
    cells = "from __future__ import annotations", "def f(x: Nothing): ...\nprint(f.__annotations__)"
    (place / "a.ipynb").write_text(notebook(*map(cell, cells)), encoding="utf-8")
    assert tl2npu("run", "a.ipynb").stdout == "{'x': 'Nothing'}\n"


def test_a_hazard_names_cell_and_line(place: Path) -> None:
    lost = executed().replace("T.copy(X[cid * 32 + vid * 16, 0], x)", "pass")
    (place / "a.ipynb").write_text(lost, encoding="utf-8")
    result = tl2npu("run", "--hazards", "fatal", "a.ipynb")
    assert re.search(r"a\.ipynb:cell 4:\d+", result.stderr), result.stderr


def test_a_notebook_is_verified(place: Path) -> None:
    (place / "a.ipynb").write_text(executed(), encoding="utf-8")
    result = tl2npu("verify", "a.ipynb")
    assert "a.ipynb:cell 4:4 scale.main: verified on the simulator: 1 launch, largest difference 0\n" in result.output
    assert result.exit_code == 0
    told = json.loads(tl2npu("verify", "--format", "json", "a.ipynb", "--args", "scale(rows=64)").stdout)
    assert [(kernel["cell"], kernel["line"], kernel["status"]) for kernel in told["kernels"]] == [(4, 4, "verified")]


def test_a_difference_names_cells_of_both_notebooks(place: Path) -> None:
    """NEW has a cell more before the kernel, and another factor."""
    new = executed().replace("T.tile.mul(x, x, factor)", "T.tile.mul(x, x, factor * 2.0)")
    content = json.loads(new)
    content["cells"].insert(0, cell("1", "markdown"))
    (place / "a.ipynb").write_text(executed(), encoding="utf-8")
    (place / "b.ipynb").write_text(json.dumps(content), encoding="utf-8")
    result = tl2npu("verify", "a.ipynb", "b.ipynb", "--args", "scale(rows=64)")
    assert "  a.ipynb:cell 4:4:1 error TL907" in result.output
    assert "a.ipynb:cell 4:12" in result.output.partition("TL907")[2]
    assert "b.ipynb:cell 5:12" in result.output
    assert result.exit_code == 1


@pytest.mark.parametrize("cells", [["1 +"], ["\n\nraise ValueError"]])
def test_a_notebook_that_fails_is_not_verified(place: Path, cells: list[str]) -> None:
    (place / "a.ipynb").write_text(executed(*cells), encoding="utf-8")
    result = tl2npu("verify", "a.ipynb")
    assert result.exit_code == (2 if cells == ["1 +"] else 1)
    assert "a.ipynb:cell 5, line 1" in result.output or "exit code 1: ValueError" in result.output


def test_cells_are_executed_in_order(place: Path) -> None:
    """``--verify`` runs the cells as one script, without what is IPython's."""
    pytest.importorskip("torch")  # which one of the cells imports
    (place / "a.ipynb").write_text(KERNELS, encoding="utf-8")
    result = tl2npu("migrate", "--verify", "a.ipynb")
    assert "a.ipynb:cell 4:" in result.output
    assert "verified on the simulator" in result.output
    assert result.exit_code == 0
