"""A file that compiles a kernel of another file sets the passes that the migrated kernel needs, or is told so."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.across.support import repository
from tests.across.test_followers import migrate
from tests.in_process import copied
from tl2npu.across import modules
from tl2npu.cli import cli
from tl2npu.options import Options
from tl2npu.verify.command import verify_files
from tl2npu.verify.settings import Settings

BODY = """
with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 64), threads=128) as (bx, by):
    a = T.alloc_fragment((64, 64), "float32")
    T.copy(A[by * 64, bx * 64], a)
    for i, j in T.Parallel(64, 64):
        a[i, j] = a[i, j] * 2.0 + 1.0
    T.copy(a, B[by * 64, bx * 64])
"""
KERNEL = """
import tilelang.language as T


def scale(M, N):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
        {body}

    return main
""".format(body=BODY.strip().replace("\n", "\n        ")).lstrip("\n")
PLAIN = """
import tilelang.language as T

M, N = 128, 128


@T.prim_func
def scale(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
    {body}
""".format(body=BODY.strip().replace("\n", "\n    ")).lstrip("\n")
WRAP = "from k import scale\n\n\ndef square(M):\n    return scale(M, M)\n"
CALL = """
import numpy as np
import tilelang
{text}

a = np.ones((128, 128), np.float32)
np.testing.assert_allclose(run(a), np.full((128, 128), 3.0))
"""
DECORATED = """from k import scale


@tilelang.jit(out_idx=[-1])
def made(M):
    return scale(M, M)


run = made(128)"""
INSIDE = """

def make():
    from k import scale

    return tilelang.compile(scale(128, 128), out_idx=[-1])


run = make()"""
HELPER = """from k import scale


def build(k):
    return tilelang.compile(k, out_idx=[-1])


run = build(scale(128, 128))"""
FORMS = {
    "compile": "from k import scale\n\nrun = tilelang.compile(scale(128, 128), out_idx=[-1])",
    "target": 'from k import scale as f\n\nrun = tilelang.compile(f(128, 128), [1], target="cuda")',
    "module": "import k\n\nrun = tilelang.compile(k.scale(128, 128), out_idx=[-1])",
    "star": "from k import *\n\nrun = tilelang.compile(scale(128, 128), out_idx=[-1])",
    "variable": "from k import scale\n\nmade = scale(128, 128)\nrun = tilelang.compile(made, out_idx=[-1])",
    "jit": "from k import scale\n\nrun = tilelang.jit(scale, out_idx=[-1])(128, 128)",
    "decorator": DECORATED,
    "dict": "from k import scale\n\nKEYS = {}\nrun = tilelang.compile(scale(128, 128), [1], pass_configs=KEYS)",
    "inside": INSIDE,
    "through": "from wrap import square\n\nrun = tilelang.compile(square(128), out_idx=[-1])",
}


@pytest.fixture(autouse=True)
def _fresh() -> None:
    modules.forget()


def caller(text: str) -> str:
    """A script that compiles the kernel, and checks what it gives."""
    return CALL.format(text=text).lstrip("\n")


def check(*paths: Path) -> tuple[int, str]:
    """The exit code and the output of ``tl2npu check``."""
    modules.forget()
    done = CliRunner().invoke(cli, ["check", "--no-cache", "-j", "1", *map(str, paths)])
    return done.exit_code, done.output


@pytest.mark.parametrize("form", FORMS)
def test_a_caller_in_the_run_follows(tmp_path: Path, form: str) -> None:
    text = caller(FORMS[form])
    root = repository(tmp_path, {"k.py": KERNEL, "use.py": text, "wrap.py": WRAP})
    code, output = migrate(root)
    assert code == 0, output
    assert "TL816" not in output
    new = (root / "use.py").read_text()
    assert "TL_ASCEND_AUTO_SYNC" in new
    assert "cuda" not in new
    assert new.count("128") == text.count("128")
    assert migrate("--check", root)[0] == 0  # the second run changes nothing
    assert check(root) == (0, "0 errors, 0 warnings; 1 kernel in 3 files\n")


@pytest.mark.parametrize("form", FORMS)
def test_check_names_the_line_of_a_caller(tmp_path: Path, form: str) -> None:
    root = repository(tmp_path, {"k.py": KERNEL, "use.py": caller(FORMS[form]), "wrap.py": WRAP})
    migrate(root)
    (root / "use.py").write_text(caller(FORMS[form]))  # as if it had not been part of the run
    code, output = check(root)
    assert code == 1
    line = next(n for n, line in enumerate(caller(FORMS[form]).split("\n"), 1) if "compile(" in line or ".jit" in line)
    assert f"use.py:{line}:" in output
    assert "needs `TL_ASCEND_AUTO_SYNC` where it is compiled" in output
    assert migrate(root / "use.py")[0] == 0
    assert check(root)[0] == 0


def test_the_simulator_agrees_that_a_caller_needs_the_keys(tmp_path: Path) -> None:
    root = repository(tmp_path, {"k.py": KERNEL, "use.py": caller(FORMS["compile"]), "helper.py": caller(HELPER)})
    good = verify_files(root / "use.py", None, Settings(), Options(), copied)
    assert good.ok, good
    bad = verify_files(root / "helper.py", None, Settings(), Options(), copied)  # tl2npu cannot give it the keys
    assert not bad.ok
    assert any("the new kernel" in item.message and "k.py (migrated)" in item.message for item in bad.diagnostics)


def test_a_refused_kernel_of_another_file_is_not_verified(tmp_path: Path) -> None:
    body = KERNEL.replace("a[i, j] = a[i, j] * 2.0 + 1.0", 'a[i, j] = T.call_extern("float32", "f", a[i, j]) + 1.0')
    root = repository(tmp_path, {"k.py": body, "use.py": caller(FORMS["compile"])})
    found = verify_files(root / "use.py", None, Settings(), Options(), copied)
    assert not found.ok


def test_a_caller_outside_of_the_run_is_an_error_of_the_kernel(tmp_path: Path) -> None:
    root = repository(tmp_path, {"k.py": KERNEL, "tests/use.py": caller(FORMS["compile"]).replace("from k", "from k")})
    before = (root / "tests/use.py").read_text()
    code, output = migrate(root / "k.py")
    assert code == 1
    assert "migrated with errors" in output
    assert "line 5 of " in output
    assert "needs `TL_ASCEND_AUTO_SYNC` where it is compiled" in output
    assert (root / "tests/use.py").read_text() == before


def test_a_caller_that_sets_the_keys_needs_nothing(tmp_path: Path) -> None:
    keys = '{"tl.ascend_auto_cv_combine": True, "tl.ascend_auto_sync": True, "tl.ascend_memory_planning": True}'
    text = FORMS["compile"].replace("out_idx=[-1]", f"out_idx=[-1], pass_configs={keys}")
    root = repository(tmp_path, {"k.py": KERNEL, "use.py": caller(text)})
    code, output = migrate(root)
    assert code == 0, output
    assert "TL816" not in output  # not even that nothing in k.py compiles it
    assert (root / "use.py").read_text() == caller(text)


def test_what_may_compile_a_kernel_out_of_sight_is_named(tmp_path: Path) -> None:
    root = repository(tmp_path, {"k.py": KERNEL, "use.py": caller(HELPER)})
    _, output = migrate(root)
    assert "use.py:10:1 warning TL816" in output
    assert "cannot see how `scale`" in output
    assert "nothing in this file compiles" in output


def test_an_import_by_a_string_is_named(tmp_path: Path) -> None:
    text = caller('import importlib\n\nrun = tilelang.compile(importlib.import_module("k").scale(128, 128), [1])')
    root = repository(tmp_path, {"k.py": KERNEL, "use.py": text})
    assert "use.py may compile `scale`, and is not read" in migrate(root)[1]


def test_migrate_with_verify_edits_callers_too(tmp_path: Path) -> None:
    root = repository(tmp_path, {"k.py": KERNEL, "use.py": caller(FORMS["compile"])})
    migrate("--verify", root)
    assert "TL_ASCEND_AUTO_SYNC" in (root / "use.py").read_text()
    assert check(root)[0] == 0


def test_faults_of_another_files_kernel_are_not_those_of_a_kernel_here(tmp_path: Path) -> None:
    """Blocks of `scale` overwrite each other's rows; `own` stands in the lines that `scale` has in its file."""
    race = KERNEL.replace("B[by * 64,", "B[by * 32,")
    own = KERNEL.replace("def scale", "def own").replace(
        "\n\ndef", "\nimport tilelang\n\n@tilelang.jit(out_idx=[1])\ndef"
    )
    text = f"{own}\n\nimport numpy as np\nfrom k import scale\n\n\na = np.random.rand(128, 128).astype(np.float32)\n"
    text += "own(128, 128)(a)\ntilelang.compile(scale(128, 128), out_idx=[-1])(a)\n"
    root = repository(tmp_path, {"k.py": race, "use.py": text})
    code, output = migrate("--verify", root / "use.py")
    assert "own.main: migrated -> developer, verified" in output
    assert "use.py:1:1 warning TL908 faulty-run: the old kernel: Potential WAW hazard" in output
    assert code == 0


def test_a_prim_func_of_a_module(tmp_path: Path) -> None:
    text = caller("from k import scale\n\nrun = tilelang.compile(scale, out_idx=[-1])")
    root = repository(tmp_path, {"k.py": PLAIN, "use.py": text})
    code, output = migrate(root)
    assert code == 0, output
    assert "TL_ASCEND_AUTO_SYNC" in (root / "use.py").read_text()


def test_a_comment_silences_it(tmp_path: Path) -> None:
    root = repository(tmp_path, {"k.py": KERNEL, "use.py": caller(FORMS["compile"])})
    migrate(root)
    quiet = caller(FORMS["compile"]).replace("out_idx=[-1])", "out_idx=[-1])  # tl2npu: ignore[TL816]")
    (root / "use.py").write_text(quiet)
    assert check(root)[0] == 0


def test_a_kernel_whose_cores_exchange_data_has_its_outputs_counted_from_the_front(tmp_path: Path) -> None:
    body = """
import tilelang.language as T


def scale():
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128) as bx:
            a = T.alloc_shared((64, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            T.gemm(a, b, c)
            for i, j in T.Parallel(64, 64):
                c[i, j] = T.exp(c[i, j])
            T.copy(c, C)

    return main
"""
    text = "import tilelang\nfrom k import scale\n\nrun = tilelang.compile(scale(), out_idx=[-1])\n"
    root = repository(tmp_path, {"k.py": body.lstrip("\n"), "use.py": text})
    assert migrate(root)[0] == 0
    new = (root / "use.py").read_text()
    assert "out_idx=[2]" in new  # the compiler's own workspaces come behind it
    assert "TL_ASCEND_AUTO_CV_SYNC" in new
