"""``--kernel``: only the kernels that are named; all others, and the host code that they need, stay as they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tl2npu.cli import cli

FACTORY = """

@tilelang.jit(out_idx=[1])
def {name}(M, N=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, 64), threads=128) as bx:
            a = T.alloc_fragment((64, N), "float32")
            T.copy(A[bx * 64, 0], a)
            T.copy(a, B[bx * 64, 0])

    return main
"""
EAGER = """

@tilelang.jit
def eager(X):
    M = T.dynamic("M")
    X: T.Tensor[[M, 64], T.float32]
    Y = T.empty([M, 64], T.float32)
    with T.Kernel(T.ceildiv(M, 64), threads=128) as bx:
        a = T.alloc_fragment((64, 64), "float32")
        T.copy(X[bx * 64, 0], a)
        T.copy(a, Y[bx * 64, 0])
    return Y
"""
HEAD = "import tilelang\nimport tilelang.language as T\n"
TEXT = HEAD + FACTORY.format(name="first") + FACTORY.format(name="second") + EAGER


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "k.py"
    file.write_text(TEXT)
    return file


def migrate(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli, ["migrate", "--no-cache", *arguments])
    return done.exit_code, done.output


@pytest.mark.parametrize(
    ("asked", "chosen"),
    [
        (["first"], {"first"}),
        (["first.main"], {"first"}),
        (["k.py::second"], {"second"}),
        (["eager"], {"eager"}),
        (["main"], {"first", "second"}),
        (["first", "eager"], {"first", "eager"}),
    ],
)
def test_only_the_named_kernels_are_rewritten(path: Path, asked: list[str], chosen: set[str]) -> None:
    code, _ = migrate(str(path), *(word for name in asked for word in ("--kernel", name)))
    new = path.read_text()
    assert code == 0
    for name, text in {
        "first": FACTORY.format(name="first"),
        "second": FACTORY.format(name="second"),
        "eager": EAGER,
    }.items():
        assert (text.strip() in new) == (name not in chosen)
    assert new.count("is_npu=True") == len(chosen)


@pytest.mark.parametrize("name", ["third", "other.py::first"])
def test_a_name_that_no_kernel_has_is_wrong_usage(path: Path, name: str) -> None:
    code, output = migrate(str(path), "--kernel", name)
    assert code == 2
    assert f"no kernel is called '{name}'" in output
    assert path.read_text() == TEXT


def test_check_reports_on_the_named_kernels_only(path: Path) -> None:
    done = CliRunner().invoke(cli, ["check", "--no-cache", str(path), "--kernel", "second"])
    first, second, _ = (n for n, line in enumerate(TEXT.splitlines(), 1) if "with T.Kernel" in line)
    assert done.exit_code == 1
    assert "1 kernel in 1 file" in done.output
    assert f":{second}:" in done.output
    assert f":{first}:" not in done.output


def test_a_file_in_place_of_a_command(path: Path) -> None:
    done = CliRunner().invoke(cli, [str(path)])
    assert done.exit_code == 2
    assert f"Did you mean `tl2npu migrate {path}`?" in done.output
