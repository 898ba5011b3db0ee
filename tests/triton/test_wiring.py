"""Triton files go through every command, as files with TileLang kernels do."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.in_process import tl2npu
from tests.triton.test_translation import vector
from tl2npu.lsp.look import look, migrate_one
from tl2npu.options import Options
from tl2npu.project.one import process
from tl2npu.triton import migrate
from tl2npu.triton.host.rewrite import asserted
from tl2npu.verify.command import verify_files
from tl2npu.verify.migration import migrate_verified
from tl2npu.verify.settings import Settings

needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="no triton here")

DOUBLE = vector("x = tl.load(x_ptr + i, mask=i < n)\ntl.store(y_ptr + i, x * 2.0, mask=i < n)")
LINE = DOUBLE.split("\n").index(next(line for line in DOUBLE.split("\n") if line.startswith("def k("))) + 1


@needs_triton
def test_verify_of_one_file_judges_its_migration(tmp_path: Path) -> None:
    file = tmp_path / "k.py"
    file.write_text(DOUBLE, encoding="utf-8")
    result = verify_files(file, None, Settings(), Options())
    assert [(kernel.name, kernel.line, kernel.status) for kernel in result.kernels] == [("k", LINE, "verified")]
    assert result.ok
    assert result.comparisons[0].by != ("k",)


@needs_triton
def test_kernel_that_fails_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    right = migrate.factory
    monkeypatch.setattr(migrate, "factory", lambda *given: right(*given).replace("* 2.0", "* 3.0"))
    result = migrate_verified(DOUBLE, "k.py", Options())
    assert [(kernel.name, kernel.disposition) for kernel in result.kernels] == [("k", "refused")]
    assert result.new_text == DOUBLE
    assert "TL907" in {item.code for item in result.diagnostics}


def test_check_names_triton_kernels() -> None:
    result = process("check", DOUBLE, "k.py", Options(), debug=True)
    assert [(kernel.name, kernel.source, kernel.codes) for kernel in result.kernels] == [("k", "triton", ("TL501",))]
    assert [(item.code, item.severity, item.line) for item in result.diagnostics] == [("TL501", "info", LINE)]


def test_kernels_in_notebooks_are_refused_in_words() -> None:
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": DOUBLE}
    metadata = {"language_info": {"name": "python"}}
    text = json.dumps({"cells": [cell], "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})
    result = process("migrate", text, "k.ipynb", Options(), debug=True)
    assert not result.changed
    assert [(kernel.name, kernel.disposition, kernel.cell) for kernel in result.kernels] == [("k", "refused", 1)]
    assert [(item.severity, item.line) for item in result.diagnostics] == [("error", LINE)]


def test_editor_does_not_write_into_the_triton_file() -> None:
    """What its kernels become is another file, which `migrate` writes."""
    view = look(DOUBLE, "k.py")
    assert (view.kernels, view.new_text, view.problem) == ((), None, None)
    assert migrate_one(DOUBLE, "k.py", (None, LINE), view.places) == DOUBLE


def test_report_names_the_file_that_the_result_goes_to(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text(DOUBLE, encoding="utf-8")
    found = json.loads(tl2npu("migrate", "--check", "--format", "json", "k.py", cwd=tmp_path).stdout)
    assert [(file["path"], file["beside"]) for file in found["files"]] == [("k.py", "k_tilelang.py")]
    said = tl2npu("migrate", "--no-cache", "k.py", cwd=tmp_path).stdout
    assert "k.py: the result goes to k_tilelang.py, this file stays as it is\n" in said
    assert "the result goes" not in tl2npu("migrate", "--no-cache", "-o", "new.py", "k.py", cwd=tmp_path).stdout
    assert (tmp_path / "new.py").read_bytes() == (tmp_path / "k_tilelang.py").read_bytes()


def test_other_kernels_of_the_file_are_reported_at_their_lines() -> None:
    tilelang = """import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def add_one(M=128, N=128):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
        with T.Kernel(M // 64, threads=128) as bx:
            a = T.alloc_shared((64, N), "float32")
            T.copy(A[bx * 64, 0], a)
            for i, j in T.Parallel(64, N):
                a[i, j] = a[i, j] + 1.0
            T.copy(a, B[bx * 64, 0])

    return main


add_one()
"""
    text = DOUBLE + "\n\n" + tilelang
    result = process("migrate", text, "k.py", Options(), debug=True)
    line = text.split("\n").index("    @T.prim_func") + 2
    assert [(kernel.name, kernel.source, kernel.disposition, kernel.line) for kernel in result.kernels] == [
        ("k", "triton", "migrated", LINE),
        ("add_one.main", "gpu", "migrated", line),
    ]


def test_a_result_that_stands_already(tmp_path: Path) -> None:
    """Nothing would change, whatever is asked for; an edit of the result would be written over."""
    for name in ("k.py", "m.py"):
        (tmp_path / name).write_text(DOUBLE, encoding="utf-8")
    assert tl2npu("migrate", "--check", "k.py", "m.py", cwd=tmp_path).returncode == 1
    assert tl2npu("migrate", ".", cwd=tmp_path).stdout.endswith("2 files changed; 2 kernels: 2 migrated\n")
    for command in (("--check", "."), (".",), ("--check", "--no-cache", "k.py")):
        done = tl2npu("migrate", *command, cwd=tmp_path)
        assert done.returncode == 0
        assert "\n0 files " in done.stdout
        assert "k.py: the result is in k_tilelang.py already\n" in done.stdout
    assert tl2npu("migrate", "--diff", "k.py", cwd=tmp_path).stdout == ""
    found = json.loads(tl2npu("migrate", "--check", "--format", "json", "k.py", cwd=tmp_path).stdout)
    assert (found["summary"]["changed"], found["files"][0]["changed"]) == (0, False)
    new = tmp_path / "k_tilelang.py"
    new.write_text(new.read_text(encoding="utf-8") + "# mine\n", encoding="utf-8")
    done = tl2npu("migrate", "--check", "k.py", "m.py", cwd=tmp_path)
    assert (done.returncode, "1 file would change" in done.stdout) == (1, True)
    assert "-# mine" in tl2npu("migrate", "--diff", "k.py", cwd=tmp_path).stdout


@pytest.mark.parametrize(
    ("check", "statement"),
    [
        ("x.is_contiguous()", 'assert x.is_contiguous(), "x must be contiguous"'),
        ("a.b.is_contiguous() and c[0].is_contiguous()", None),
        ("n % 64 == 0", 'assert n % 64 == 0, f"{n=}"'),
        ("0 < n <= BLOCK", 'assert 0 < n <= BLOCK, f"{n=}, {BLOCK=}"'),
        ("x.shape[0] % (2 * BM) == 0", 'assert x.shape[0] % (2 * BM) == 0, f"{x.shape[0]=}, {2 * BM=}"'),
        ("b is None", "assert b is None"),
        ("mode == 'negative'", "assert mode == 'negative', f\"{mode=}\""),
        ("d['n'] == 2", "assert d['n'] == 2"),
        ("flag", "assert flag"),
    ],
)
def test_an_assertion_says_what_it_found(check: str, statement: str | None) -> None:
    found = asserted(check)
    assert found == (statement or f'assert {check}, "a.b, c[0] must be contiguous"')
    compile(found, "host.py", "exec")
    if check == "n % 64 == 0":
        with pytest.raises(AssertionError, match=r"^n=100$"):
            exec(found, {"n": 100})
