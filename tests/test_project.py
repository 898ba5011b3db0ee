from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tl2npu import migrate, project
from tl2npu.files import collect
from tl2npu.options import Options
from tl2npu.project import Outcome, run, run_text
from tl2npu.results import Diagnostic, FileResult
from tl2npu.sinks import Nowhere, ToFiles, ToPatch, ToPlace, exit_code, finish

KERNEL = b"import tilelang\nprim_func\n"


def fake(text: str, path: str, options: Options) -> FileResult:
    """Stands in for the migration: the file says what happens to it."""
    if "crash" in text:
        raise ValueError("two\nlines")
    if "die" in text:
        os._exit(1)
    diagnostics = tuple(Diagnostic(code, "n", "error", 1, path) for code in ("TL201", "TL801"))
    return FileResult(path, text, text.replace("old", "new"), diagnostics=diagnostics)


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(migrate, "migrate_text", fake)
    monkeypatch.setattr(migrate, "check_text", lambda text, path, options: FileResult(path, text, "checked"))
    monkeypatch.chdir(tmp_path)


def files(**contents: bytes) -> None:
    for name, data in contents.items():
        Path(f"{name}.py").write_bytes(data)


def outcomes(jobs: int = 1, options: Options | None = None) -> list[Outcome]:
    return list(run(collect([Path()]), "migrate", options or Options(), jobs))


@pytest.mark.parametrize("jobs", [1, 3])
def test_results_come_in_input_order_and_apart(jobs: int) -> None:
    files(a=KERNEL + b"old", b=KERNEL + b"crash", c=KERNEL + b"#" * 9999 + b"old", d=b"x = 1\n", e=KERNEL + b"\xff")
    results = [outcome.result for outcome in outcomes(jobs)]
    assert [result.path for result in results] == ["a.py", "b.py", "c.py", "d.py", "e.py"]
    assert [result.changed for result in results] == [True, False, True, False, False]
    assert results[1].error == "internal error: ValueError: two lines"
    assert results[4].error == "line 3: cannot decode as utf-8"
    assert (results[3].kernels, results[3].error) == ((), None)


def test_a_dying_process_costs_one_file() -> None:
    files(a=KERNEL + b"old", b=KERNEL + b"die", c=KERNEL + b"old")
    results = [outcome.result for outcome in outcomes(jobs=2)]
    assert [result.changed for result in results] == [True, False, True]
    assert "died" in str(results[1].error)


def test_debug_lets_exceptions_through() -> None:
    files(a=KERNEL + b"crash")
    with pytest.raises(ValueError, match="two"):
        list(run(collect([Path()]), "migrate", Options(), 1, debug=True))


def test_missing_and_big_files_are_errors() -> None:
    files(big=KERNEL)
    found = collect([Path("no.py"), Path("big.py")])
    first, second = (o.result for o in run(found, "migrate", Options(max_file_size=3), 1))
    assert first.error == "no such file"
    assert "too big" in str(second.error)


def test_files_without_kernels_are_not_worked_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project, "_process", lambda *a: pytest.fail("worked on"))
    files(a=b"not python (\n", b=b"# @generated\n" + KERNEL)
    first, second = outcomes()
    assert first.result == FileResult("a.py", "not python (\n", "not python (\n")
    assert second.skipped is not None
    assert second.skipped.reason == "@generated"


def test_many_files_use_a_pool_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[int] = []
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    real = project.ProcessPoolExecutor
    monkeypatch.setattr(project, "ProcessPoolExecutor", lambda count: used.append(count) or real(count))
    files(**{f"f{n}": KERNEL for n in range(7)})
    outcomes(jobs=0)
    assert used == []
    files(f7=KERNEL)
    outcomes(jobs=0)
    assert used == [2]


def test_select_and_ignore() -> None:
    files(a=KERNEL)

    def codes(**settings: tuple[str, ...]) -> list[str]:
        (outcome,) = outcomes(options=Options(**settings))  # type: ignore[arg-type]
        return [item.code for item in outcome.result.diagnostics]

    assert codes() == ["TL201", "TL801"]
    assert codes(select=("TL8",)) == ["TL801"]
    assert codes(ignore=("TL801",)) == ["TL201"]
    assert codes(select=("TL2", "TL8"), ignore=("TL2",)) == ["TL801"]


def test_check_calls_the_check() -> None:
    assert run_text(KERNEL, "<stdin>", "check", Options()).result.new_text == "checked"


def test_encodings_survive_in_place() -> None:
    old = b"# coding: latin-1\r\n" + KERNEL + b"'\xe4' old\r\n"
    files(a=old)
    finished = finish(outcomes(), ToFiles(allow_dirty=False))
    assert finished.files[0].error is None
    assert Path("a.py").read_bytes() == old.replace(b"old", b"new")
    assert Path("a.py.orig").read_bytes() == old


def test_a_file_that_cannot_be_written_is_an_error_and_the_others_go_on() -> None:
    files(a=KERNEL + b"old", b=KERNEL + b"old")
    Path("a.py").chmod(0o444)
    finished = finish(outcomes(), ToFiles(allow_dirty=False))
    assert [file.error for file in finished.files] == ["file is read-only", None]
    assert Path("b.py").read_bytes().endswith(b"new")
    assert exit_code(finished, "migrate", False) == 2


def test_patches_apply_whatever_the_working_directory_is() -> None:
    subprocess.run(["git", "init", "-q"], check=True)
    Path("sub dir").mkdir()
    contents = {Path("a.py"): b"# coding: latin-1\n" + KERNEL + b"'\xe4' old", Path("sub dir/b.py"): KERNEL + b"old"}
    root = Path.cwd()
    for start, place in ((Path(), Path()), (Path("sub dir"), Path(".."))):
        for name, data in contents.items():
            Path(name).write_bytes(data)
        os.chdir(start)
        with (root / "p.patch").open("wb") as stream:
            finish(run(collect([place]), "migrate", Options()), ToPatch(stream))
        os.chdir(root)
        subprocess.run(["git", "apply", "p.patch"], check=True)
        assert {name: name.read_bytes() for name in contents} == {
            name: data.replace(b"old", b"new") for name, data in contents.items()
        }


def test_output_directory_keeps_the_tree() -> None:
    Path("in/sub").mkdir(parents=True)
    for name, data in (("in/a.py", KERNEL + b"old"), ("in/sub/b.py", b"plain")):
        Path(name).write_bytes(data)
    finished = finish(run(collect([Path("in")]), "migrate", Options()), ToPlace(Path("out"), as_directory=True))
    assert [file.error for file in finished.files] == [None, None]
    assert Path("out/a.py").read_bytes() == KERNEL + b"new"
    assert Path("out/sub/b.py").read_bytes() == b"plain"
    assert Path("in/a.py").read_bytes() == KERNEL + b"old"


def test_outputs_never_meet_and_never_hit_an_input() -> None:
    for place in ("x", "y"):
        Path(place).mkdir()
        Path(place, "a.py").write_bytes(KERNEL)
    finished = finish(run(collect([Path("x"), Path("y")]), "migrate", Options()), ToPlace(Path("out"), True))
    assert [file.error for file in finished.files] == [None, "x/a.py is written to out/a.py already"]
    finished = finish(run(collect([Path("x/a.py")]), "migrate", Options()), ToPlace(Path("x/a.py"), False))
    assert "output is the input" in str(finished.files[0].error)


def test_new_text_that_the_encoding_lacks_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrate, "migrate_text", lambda text, path, options: FileResult(path, text, text + "\u2028"))
    files(a=b"# coding: latin-1\n" + KERNEL)
    assert "iso-8859-1" in str(finish(outcomes(), Nowhere()).files[0].error)
