"""``tl2npu run``: arguments, exit codes, and what is said about a script that fails."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tl2npu.simulator.run import ScriptError, exit_code, run_script
from tl2npu.simulator.standin.session import Session


def run(path: Path, text: str, *args: str) -> int:
    path.write_text(text)
    return exit_code(path, args, Session())


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", 0),
        ("import sys; sys.exit()", 0),
        ("import sys; sys.exit(0)", 0),
        ("import sys; sys.exit(3)", 3),
        ("raise SystemExit('why')", 1),
        ("raise ValueError('why')", 1),
        ("assert False", 1),
        ("def f(:", 2),
        ("x = '\0'", 2),
    ],
)
def test_exit_codes(tmp_path: Path, text: str, code: int) -> None:
    """The script's own; 1 for an exception; 2 for what is no script."""
    assert run(tmp_path / "script.py", text) == code


def test_arguments_and_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``sys.argv``, ``__name__``, ``__file__``, and modules beside the script, as Python itself has them."""
    (tmp_path / "beside.py").write_text("value = 42\n")
    path = tmp_path / "script.py"
    text = "import sys, beside\nprint(sys.argv, __name__, __file__, beside.value)\n"
    before = sys.argv[:], sys.path[:]
    try:
        assert run(path, text, "--n", "3") == 0
    finally:
        sys.modules.pop("beside", None)
    assert capsys.readouterr().out.strip() == f"{[str(path), '--n', '3']} __main__ {path} 42"
    assert (sys.argv, sys.path) == before


def test_a_script_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line, and not 0."""
    assert exit_code(tmp_path / "none.py", [], Session()) == 2
    assert capsys.readouterr().err == f"error: {tmp_path / 'none.py'} cannot be read: No such file or directory\n"
    assert exit_code(tmp_path, [], Session()) == 2
    assert "is a directory" in capsys.readouterr().err
    with pytest.raises(ScriptError):
        run_script(tmp_path / "none.py", [], Session())


def test_a_syntax_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line with the place; nothing of the script has run."""
    path = tmp_path / "script.py"
    assert run(path, "print('early')\nx = (1,\ny = 2\n") == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"error: {path}:2: ")
    assert said.err.count("\n") == 1


def test_a_traceback_begins_in_the_script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As Python would print it: none of the simulator's own frames before the script's."""
    path = tmp_path / "script.py"
    assert run(path, "def f():\n    return {}['key']\n\nf()\n") == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1] == f'  File "{path}", line 4, in <module>'
    assert lines[-1] == "KeyError: 'key'"


def test_a_fault_of_a_kernel_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """File, line and what is wrong, without a traceback, also after the script has changed the directory."""
    path = tmp_path / "script.py"
    text = (
        "import os\n"
        f"os.chdir({str(tmp_path.parent)!r})\n"
        "import tilelang.language as T\n"
        "@T.prim_func\n"
        "def main(A: T.Tensor((4,), 'int32')):\n"
        "    with T.Kernel(1, threads=32):\n"
        "        A[1, 2] = 3\n"
    )
    here = Path.cwd()
    try:
        assert run(path, text) == 1
    finally:
        os_chdir(here)
    said = capsys.readouterr().err
    assert said == f"error: {path}:7: IndexError: A has 1 axes, but 2 indices are given\n"


def os_chdir(path: Path) -> None:
    """Back to where the tests run."""
    import os

    os.chdir(path)


def test_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Messages name the script as the user did."""
    monkeypatch.chdir(tmp_path)
    text = "import tilelang.language as T\nT.copy(1, 2)\n"
    assert run(Path("script.py"), text) == 1
    assert "only inside a prim_func" in capsys.readouterr().err
    text = "import tilelang.language as T\n@T.prim_func\ndef main(A):\n    pass\n"
    assert run(Path("script.py"), text) == 1
    assert capsys.readouterr().err.startswith("error: script.py:3: parameter A has no annotation")
