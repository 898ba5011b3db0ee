"""Calls in other files follow a kernel that loses its workspace parameters, or the kernel stays as it is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.across.support import repository
from tests.in_process import copied, in_a_copy
from tests.passes.support import GEMM_SCALE, gemm_file
from tl2npu.across import modules
from tl2npu.cli import cli
from tl2npu.migration import migrate_text
from tl2npu.options import Options
from tl2npu.source.inplace import InPlace, WriteError
from tl2npu.verify.judge import verify
from tl2npu.verify.loading import Source
from tl2npu.verify.settings import Settings

FACTORY = gemm_file(GEMM_SCALE).replace(", workspace_idx=[3]", "").replace("import torch\n", "")
SCRIPT = """
import numpy as np

{imports}

a = np.ones((64, 64), np.float16)
b = np.ones((64, 64), np.float16)
workspace = np.empty((2, 32, 64), np.float32)
run = {factory}()
np.testing.assert_allclose(run(a, b, workspace), np.full((64, 64), 128.0))
"""
NEW = "np.testing.assert_allclose(run(a, b), np.full((64, 64), 128.0))\n"


@pytest.fixture(autouse=True)
def _fresh() -> None:
    modules.forget()


def script(imports: str, factory: str = "factory") -> str:
    """A script that calls the kernel with a workspace of its own."""
    return SCRIPT.format(imports=imports, factory=factory).lstrip("\n")


def migrate(*arguments: str | Path) -> tuple[int, str]:
    """The exit code and the output of ``tl2npu migrate``."""
    done = CliRunner().invoke(cli, ["migrate", "--no-cache", "-j", "1", *map(str, arguments)])
    return done.exit_code, done.output


def disposition(root: Path, *others: Path) -> tuple[bool, str]:
    """Was the factory migrated, and what was said?"""
    code, output = migrate("--check", root / "ops/k.py", *others)
    return code == 1, output


@pytest.mark.parametrize(
    ("imports", "factory"),
    [
        ("from ops.k import factory", "factory"),
        ("from ops.k import factory as made", "made"),
        ("import ops.k", "ops.k.factory"),
        ("import ops.k as kernels", "kernels.factory"),
        ("from ops import k", "k.factory"),
        ("from ops import factory", "factory"),
        ("from ops.k import *", "factory"),
    ],
)
def test_a_script_follows(tmp_path: Path, imports: str, factory: str) -> None:
    files = {"ops/__init__.py": "from .k import factory\n", "ops/k.py": FACTORY, "main.py": script(imports, factory)}
    root = repository(tmp_path, files)
    code, output = migrate(root)
    assert code == 0, output
    assert "workspace" not in (root / "ops/k.py").read_text()
    new = (root / "main.py").read_text()
    assert NEW in new
    assert "workspace" not in new
    assert f"{factory}()" in new
    assert migrate("--check", root)[0] == 0  # the second run changes nothing


def test_old_and_new_script_agree_on_the_simulator(tmp_path: Path) -> None:
    files = {"ops/__init__.py": "", "ops/k.py": FACTORY, "main.py": script("from ops.k import factory")}
    old = repository(tmp_path / "old", files)
    new = repository(tmp_path / "new", files)
    assert migrate(new)[0] == 0
    for root in (old, new):
        done = in_a_copy("run", str(root / "main.py"), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    source = Source((old / "main.py").read_text(), str(old / "main.py"), "main.py")
    assert verify(source, source, Settings(), copied).ok


def test_the_patch_holds_both_files(tmp_path: Path) -> None:
    root = repository(tmp_path, {"k.py": FACTORY, "main.py": script("from k import factory")})
    before = {path: path.read_text() for path in root.glob("*.py")}
    code, output = migrate("--diff", root)
    assert code == 0
    assert "-np.testing.assert_allclose(run(a, b, workspace), np.full((64, 64), 128.0))\n+" + NEW in output
    assert {path: path.read_text() for path in root.glob("*.py")} == before


def test_a_caller_outside_of_the_run(tmp_path: Path) -> None:
    root = repository(tmp_path, {"ops/k.py": FACTORY, "tests/test_k.py": script("from ops.k import factory")})
    migrated, output = disposition(root)
    assert not migrated
    assert "test_k.py calls `factory` and must change too" in output
    assert disposition(root, root / "tests")[0]


@pytest.mark.parametrize(
    ("imports", "factory", "why"),
    [
        ("from ops.k import factory\n\nrest = [1]\nfactory()(*rest)", "factory", "cannot prove what this call passes"),
        ("from ops.k import factory\n\nprint(factory)", "factory", "may hide a call"),
        ("from ops.k import factory\n\nwith open('x') as workspace:\n    pass", "factory", "host code also reads"),
        (
            "import importlib\n\nk = importlib.import_module('ops.k')",
            "k.factory",
            "imports or runs modules by string names",
        ),
    ],
)
def test_a_caller_that_cannot_follow(tmp_path: Path, imports: str, factory: str, why: str) -> None:
    good = script("from ops.k import factory")
    files = {"ops/k.py": FACTORY, "good.py": good, "bad.py": script(imports, factory)}
    root = repository(tmp_path, files)
    output = migrate(root)[1]
    assert "TL915" in output
    assert "bad.py" in output
    assert why in output
    if "importlib" not in imports:
        assert re.search(r"bad\.py:\d+:1 warning TL915", output)  # said on both sides
    assert (root / "ops/k.py").read_text() == FACTORY
    assert (root / "good.py").read_text() == good
    assert (root / "bad.py").read_text() == files["bad.py"]


def notebook(*codes: str) -> str:
    """A notebook with a cell for each code, behind one of text."""
    cells: list[object] = [{"cell_type": "markdown", "source": "from ops.k import factory"}]
    cells += [{"cell_type": "code", "source": code.splitlines(True), "outputs": [{"text": "128"}]} for code in codes]
    return json.dumps({"cells": cells, "nbformat": 4, "metadata": {"x": "é"}}, indent=1)


def cells_of(imports: str) -> list[str]:
    """A script in four cells: imports, tensors, one for the workspace alone, calls."""
    head, _, rest = script(imports).partition("a = ")
    tensors, _, rest = rest.partition("workspace = ")
    workspace, _, calls = rest.partition("run = ")
    return [f"%matplotlib inline\n{head}", f"a = {tensors}", f"workspace = {workspace}", f"run = {calls}"]


@pytest.mark.parametrize("imports", ["from ops.k import factory", "from ops.k import *"])
def test_a_notebook_follows(tmp_path: Path, imports: str) -> None:
    """Cells and everything between them stay, but for the calls."""
    codes = cells_of(imports)
    text = notebook(*codes, "!ls\nrun(a, b, workspace)")
    root = repository(tmp_path, {"ops/k.py": FACTORY})
    (root / "demo.ipynb").write_text(text)
    code, output = migrate(root)
    assert code == 0, output
    assert "workspace" not in (root / "ops/k.py").read_text()
    new = (root / "demo.ipynb").read_text()
    called = codes[3].replace(", workspace)", ")")
    assert json.loads(new) == json.loads(notebook(*codes[:2], "", called, "!ls\nrun(a, b)"))
    changed = [line for line in new.splitlines() if line not in text.splitlines()]
    assert len(changed) == 3  # two calls, and the source of a cell that has become empty
    assert migrate("--check", root)[0] == 0


def test_a_notebook_with_a_kernel_of_its_own_follows(tmp_path: Path) -> None:
    own = FACTORY.replace("def factory", "def other")
    use = "scratch = np.empty((2, 32, 64), np.float32)\nother()(a, b, scratch)"
    root = repository(tmp_path, {"ops/k.py": FACTORY})
    (root / "demo.ipynb").write_text(notebook(own, *cells_of("from ops.k import factory"), use))
    code, output = migrate(root)
    assert code == 0, output
    new = (root / "demo.ipynb").read_text()
    assert "other()(a, b)" in new
    assert "scratch" not in new
    assert "workspace" not in new
    assert "workspace" not in (root / "ops/k.py").read_text()


def test_a_notebook_that_cannot_follow(tmp_path: Path) -> None:
    codes = [*cells_of("from ops.k import factory"), "x = 1\nprint(factory)"]
    root = repository(tmp_path, {"ops/k.py": FACTORY})
    (root / "demo.ipynb").write_text(notebook(*codes))
    output = migrate(root)[1]
    assert re.search(r"k\.py:\d+:1 \w+ TL915 .*cell 6 line 2 of .*demo\.ipynb calls `factory`", output), output
    assert re.search(r"demo\.ipynb:cell 6:2:1 warning TL915", output), output
    assert (root / "ops/k.py").read_text() == FACTORY
    assert (root / "demo.ipynb").read_text() == notebook(*codes)


def test_a_notebook_outside_of_the_run(tmp_path: Path) -> None:
    root = repository(tmp_path, {"ops/k.py": FACTORY})
    (root / "demo.ipynb").write_text(notebook(*cells_of("from ops.k import factory")))
    migrated, output = disposition(root)
    assert not migrated
    assert re.search(r"cell 2 line 4 of .*demo\.ipynb calls `factory` and must change too", output), output
    assert disposition(root, root / "demo.ipynb")[0]


def test_a_notebook_that_runs_the_file(tmp_path: Path) -> None:
    root = repository(tmp_path, {"ops/k.py": FACTORY, "main.py": script("from ops.k import factory")})
    (root / "demo.ipynb").write_text(notebook("%run ops/k.py\nfactory()(a, b, workspace)"))
    output = migrate(root)[1]
    assert re.search(r"TL915 .*line \d+ of .*demo\.ipynb may use `factory`", output), output
    assert (root / "ops/k.py").read_text() == FACTORY


def test_a_notebook_that_only_mentions_the_name(tmp_path: Path) -> None:
    root = repository(tmp_path, {"ops/k.py": FACTORY, "main.py": script("from ops.k import factory")})
    (root / "demo.ipynb").write_text(notebook("1"))
    code, output = migrate(root)
    assert code == 0
    assert "TL915" not in output
    assert "workspace" not in (root / "ops/k.py").read_text()


def test_a_file_that_is_migrated_itself_follows(tmp_path: Path) -> None:
    main = FACTORY.replace("def factory", "def other") + "\n\n" + script("from k import factory")
    root = repository(tmp_path, {"k.py": FACTORY})
    other = main.replace("run = factory()", "other_run = other()\nother_run(a, b, scratch)\nrun = factory()")
    (root / "main.py").write_text(other.replace("workspace =", "scratch = np.empty((2, 32, 64))\nworkspace ="))
    code, output = migrate(root)
    assert code == 0, output
    new = (root / "main.py").read_text()
    assert "other_run(a, b)\n" in new
    assert NEW in new
    assert "workspace" not in new
    assert "scratch" not in new


def test_written_together_or_not_at_all(tmp_path: Path) -> None:
    text = script("from k import factory")
    root = repository(tmp_path, {"k.py": FACTORY, "main.py": text, "other.py": FACTORY.replace("factory", "third")})
    (root / "main.py").chmod(0o444)
    code, output = migrate(root)
    assert code == 2
    assert "main.py: error: file is read-only" in output
    assert "k.py: error: not written, because it goes together with" in output
    assert (root / "k.py").read_text() == FACTORY
    assert (root / "main.py").read_text() == text


def test_a_write_that_fails_late_takes_the_others_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = script("from k import factory")
    root = repository(tmp_path, {"k.py": FACTORY, "main.py": text})
    write = InPlace.write

    def fails(self: InPlace, path: Path, old: bytes, new: bytes) -> Path | None:
        if path.name == "main.py":
            raise WriteError("cannot write: no space left on device")
        return write(self, path, old, new)

    monkeypatch.setattr(InPlace, "write", fails)
    code, output = migrate(root)
    assert code == 2
    assert "main.py: error: cannot write: no space left on device" in output
    assert (root / "k.py").read_text() == FACTORY
    assert sorted(path.name for path in root.iterdir()) == ["k.py", "main.py", "pyproject.toml"]


def test_standard_input_and_the_library_change_no_other_file(tmp_path: Path) -> None:
    root = repository(tmp_path, {"k.py": FACTORY, "main.py": script("from k import factory")})
    result = migrate_text(FACTORY, str(root / "k.py"), Options())
    assert [(k.disposition, k.codes) for k in result.kernels] == [("unchanged", ("TL915",))]
    assert result.new_text == FACTORY
    together = migrate_text(FACTORY, str(root / "k.py"), Options(), together=True)
    (promise,) = together.promises
    assert [follower.names for follower in promise.followers] == [("factory",)]


def test_another_function_of_the_same_name_is_no_caller(tmp_path: Path) -> None:
    here = script("from k import factory")
    files = {
        "k.py": FACTORY,
        "main.py": here,
        "x/k.py": "def factory(*a): pass\n",
        "x/y.py": "from .k import factory\nfactory()(*[])\n",
    }
    root = repository(tmp_path, files)
    code, output = migrate(root)
    assert code == 0, output
    assert NEW in (root / "main.py").read_text()


BIAS = (Path(__file__).parents[2] / "fixtures/mma/bias_epilogue/before.py").read_text(encoding="utf-8")
USER = "from ops.k import product_and_bias\n\nmade = product_and_bias(128, 128, 256, 64, 64, 32, 64)\n"


def test_a_size_without_use_goes_from_calls_elsewhere(tmp_path: Path) -> None:
    root = repository(tmp_path, {"ops/__init__.py": "", "ops/k.py": BIAS.split("\nif __name__")[0], "use.py": USER})
    migrate(root / "ops/k.py", root / "use.py")
    assert "bm, bn, slab, dtype" in (root / "ops/k.py").read_text(encoding="utf-8")
    assert "product_and_bias(128, 128, 256, 64, 64, 64)" in (root / "use.py").read_text(encoding="utf-8")


def test_a_size_stays_where_a_call_of_the_file_itself_is_not_clear(tmp_path: Path) -> None:
    own = BIAS.split("\nif __name__")[0] + "\nSIZES = (128, 128, 256, 64, 64, 32, 64)\nown = product_and_bias(*SIZES)\n"
    root = repository(tmp_path, {"ops/__init__.py": "", "ops/k.py": own, "use.py": USER})
    migrate(root / "ops/k.py", root / "use.py")
    assert "bm, bn, bk, slab, dtype" in (root / "ops/k.py").read_text(encoding="utf-8")
    assert (root / "use.py").read_text(encoding="utf-8") == USER


def test_own_operators_of_a_file_that_is_migrated_again(tmp_path: Path) -> None:
    """One kernel stays for a caller that cannot follow; the other one, of own operators, migrates all the same."""
    other = """

@tilelang.jit(out_idx=[1])
def twice(M, N):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(M // 32, threads=128) as bx:
            x = T.alloc_shared((32, N), "float32")
            my_lib.load(X[bx * 32, 0], x)
            for i, j in T.Parallel(32, N):
                x[i, j] = x[i, j] * 2.0
            T.copy(x, Y[bx * 32, 0])

    return main


twice(64, 64)
"""
    bad = script("from ops.k import factory\n\nrest = [1]\nfactory()(*rest)")
    root = repository(tmp_path, {"ops/k.py": f"import my_lib\n{FACTORY}{other}", "bad.py": bad})
    (root / "pyproject.toml").write_text('[tool.tl2npu.operators]\n"my_lib.load" = "T.copy"\n')
    output = migrate(root)[1]
    assert "TL915" in output
    new = (root / "ops/k.py").read_text()
    assert FACTORY[FACTORY.index("def factory") :].rstrip() in new
    assert "my_lib.load(" not in new
    assert "T.copy(X[bx * 32, 0], x)" in new
