"""``from tl2npu import migrate, check``, as docs/api.md says."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tl2npu
from tl2npu import InputError, Options, check, migrate

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
GPU = ROOT / "fixtures" / "gpu" / "gemm_bias_relu" / "before.py"


def test_the_example_of_the_page() -> None:
    code, printed = re.findall(r"```(?:python|text)\n(.*?)```", PAGE, re.S)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, printed), done.stderr


def test_the_page_lists_every_name_and_its_fields() -> None:
    table = dict(re.findall(r"^\| `(\w+)[^|]* \| (.*) \|$", PAGE, re.M))
    assert set(table) == set(tl2npu.__all__)
    for name in ("FileResult", "KernelResult", "Diagnostic", "Change"):
        kind = getattr(tl2npu, name)
        known = {field.name for field in dataclasses.fields(kind)} | set(vars(kind))
        assert set(re.findall(r"`(\w+)`", re.sub(r"\([^)]*\)", "", table[name]))) <= known
        assert kind.__dataclass_params__.frozen


def test_importing_it_is_cheap() -> None:
    code = "import sys, tl2npu; print({name.split('.')[0] for name in sys.modules} - sys.stdlib_module_names)"
    code += "; print([name for name in sys.modules if name.startswith('tl2npu')])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "libcst" not in done.stdout
    assert done.stdout.split("\n")[1] == "['tl2npu']"
    assert (ROOT / "tl2npu" / "py.typed").is_file()
    assert set(tl2npu.__all__) <= set(dir(tl2npu))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        tl2npu.nothing  # noqa: B018


def test_a_text_and_its_file_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    text = GPU.read_text(encoding="utf-8")
    expected = GPU.with_name("after.py").read_text(encoding="utf-8")
    by_path, by_text = migrate(GPU), migrate(text, filename=GPU)
    assert by_path == by_text
    assert (by_path.new_text, by_path.path) == (expected, "fixtures/gpu/gemm_bias_relu/before.py")
    assert check(expected).diagnostics == ()
    assert {found.severity for found in check(text).diagnostics} >= {"error"}


def test_a_notebook_by_its_name() -> None:
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "source": GPU.read_text(encoding="utf-8")}
    book = json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 4})
    result = migrate(book, filename="book.ipynb")
    assert result.changed
    assert result.kernels[0].cell == 1


def test_the_configuration_holds_without_options(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.tl2npu]\nthreads = "1"\n')
    file = tmp_path / "k.py"
    vid = (ROOT / "fixtures" / "vid" / "sigmoid_gate_imported_names" / "before.py").read_text(encoding="utf-8")
    file.write_text(vid)
    assert "threads=1" in (migrate(file).new_text or "")
    assert "threads=1" in (migrate(vid, filename=file).new_text or "")
    assert "threads=2" in (migrate(file, options=Options()).new_text or "")


def test_what_asks_to_be_left_alone_is() -> None:
    text = "# tl2npu: skip-file\n" + GPU.read_text(encoding="utf-8")
    assert not migrate(text).changed


@pytest.mark.parametrize(
    ("source", "more", "said"),
    [
        ("def f(:", {}, "<text>: line 1: syntax error"),
        ("def f(:", {"filename": "k.py"}, "k.py: line 1: syntax error"),
        ("x = 1", {"filename": "k.ipynb"}, "k.ipynb: line 1: not a notebook"),
        ("kernel.py", {}, "give pathlib.Path('kernel.py')"),
        (Path("missing.py"), {}, "missing.py: no such file"),
        (ROOT / "docs", {}, "is a directory"),
        ("x = 1", {"options": Options(device="A7")}, "device: unknown value 'A7'"),
        ("x = 1", {"options": Options(threads=3)}, "threads: unknown value 3"),  # type: ignore[arg-type]
    ],
)
def test_bad_input_is_one_clear_error(source: Any, more: dict[str, Any], said: str) -> None:
    for function in (migrate, check):
        with pytest.raises(InputError) as error:
            function(source, **more)
        assert said in str(error.value)
        assert "\n" not in str(error.value)


def test_wrong_settings_of_the_project_are_named(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.tl2npu]\nthreds = 1\n")
    with pytest.raises(InputError, match="unknown key 'threds'"):
        migrate("x = 1\n", filename=tmp_path / "k.py")


@pytest.mark.parametrize("wrong", [(b"x = 1", {}), (GPU, {"filename": "k.py"}), ("x = 1", {"options": {"threads": 1}})])
def test_wrong_types_are_type_errors(wrong: tuple[Any, dict[str, Any]]) -> None:
    with pytest.raises(TypeError):
        migrate(wrong[0], **wrong[1])
