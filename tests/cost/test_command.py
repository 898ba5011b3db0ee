"""``tl2npu cost`` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cost.test_estimate import GEMM
from tests.in_process import tl2npu

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"


def run(*arguments: str) -> tuple[int, str]:
    """Exit code and output."""
    done = tl2npu("cost", *arguments, cwd=FIXTURES)
    return done.returncode, done.stdout + done.stderr


def test_a_pipeline_by_hand_is_twice_as_fast_as_what_replaces_it() -> None:
    code, output = run(str(FIXTURES / "mma/bias_epilogue/before.py"), "--format", "json")
    (both,) = json.loads(output)["files"][str(FIXTURES / "mma/bias_epilogue/before.py")]
    assert code == 0
    assert both["old"]["waits"] is False
    assert both["new"]["waits"] is True
    assert 1.8 < both["ratio"] < 2.5  # published: 0.95 against 0.51 of the vendor's library


def test_what_does_not_change_is_shown_once(tmp_path: Path) -> None:
    path = tmp_path / "gemm.py"
    path.write_text(GEMM.format(sizes="1024, 1024, 1024, 128, 256, 128"))
    code, output = run(str(path), "--cores", "20")
    assert code == 0
    assert output.count("old and new: 25,011 cycles a block") == 1
    assert "32 blocks on 20 cores" in output


def test_tiles_that_are_too_large_come_last(tmp_path: Path) -> None:
    path = tmp_path / "gemm.py"
    large = "matmul(1024, 1024, 1024, 256, 256, 128)\n"
    path.write_text(GEMM.format(sizes="1024, 1024, 1024, 64, 64, 64") + large)
    _, output = run(str(path))
    assert output.index("bm=64") < output.index("bm=256") < output.index("does not fit")


def test_a_call_a_directory_and_one_kernel(tmp_path: Path) -> None:
    """`--args` goes before the calls of the file; of a directory only files with kernels are shown."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "gemm.py").write_text(GEMM.format(sizes="64, 64, 64, 64, 64, 64"))
    (tmp_path / "plain.py").write_text("x = 1\n")
    code, output = run(str(tmp_path), "--args", "matmul(1024, 1024, 1024, 128, 256, 128)", "--kernel", "matmul")
    assert code == 0
    assert "bm=128" in output
    assert "bm=64" not in output
    assert "plain.py" not in output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--size", "N"], "--size 'N': write it as NAME=VALUE"),
        (["--size", "nosuch=64"], "--size nosuch: no file has a size of that name"),
        (["--size", "N=x"], "--size N=x: the size must be a positive number"),
        (["--args", "f"], "--args 'f' is not a call of a factory"),
        (["--kernel", "nosuch"], "no kernel is called 'nosuch'"),
        (["--device", "A5"], "nothing public says how fast the pipes of A5 are"),
    ],
)
def test_wrong_options(tmp_path: Path, arguments: list[str], said: str) -> None:
    path = tmp_path / "gemm.py"
    path.write_text(GEMM.format(sizes="64, 64, 64, 64, 64, 64"))
    code, output = run(str(path), *arguments)
    assert code == 2
    assert said in output


def test_a_file_that_is_no_python(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text("def f(:\n")
    code, output = run(str(path))
    assert code == 2
    assert str(path) in output


def test_a_call_of_what_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "gemm.py"
    path.write_text(GEMM.format(sizes="1024, 1024, 1024, 128, 256, 128"))
    code, output = run(str(path), "--args", "nosuch(M=1)")
    assert code == 2
    assert "nosuch(M=1): there is no factory 'nosuch'; the file has matmul" in output
    assert "cycles" not in output


TAKES = "it takes (N=256, rows=64)"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("scale(N=256, row=3)", f"scale does not take these arguments: no parameter 'row'; {TAKES}"),
        ("scale(1, 2, 3)", f"scale does not take these arguments: too many positional arguments; {TAKES}"),
        ("scales(256)", "there is no factory 'scales', did you mean 'scale'?"),
    ],
)
def test_arguments_are_those_that_verify_takes(tmp_path: Path, call: str, said: str) -> None:
    path = tmp_path / "rows.py"
    path.write_text(ROWS)
    code, output = run(str(path), "--args", call)
    assert (code, "cycles" in output) == (2, False)
    assert said in output


def test_what_a_tuner_sets_may_be_left_out(tmp_path: Path) -> None:
    path = tmp_path / "rows.py"
    path.write_text(ROWS.replace("N=256, rows=64", "N, rows").replace("@tilelang", "CONFIGS\n@tilelang", 1))
    text = path.read_text().replace("CONFIGS", "@tilelang.autotune(configs=[dict(rows=r) for r in (32, 64)])")
    path.write_text(text)
    assert run(str(path), "--args", "scale(256)")[0] == 0
    code, output = run(str(path), "--args", "scale()")
    assert (code, "missing a required argument: 'N'" in output) == (2, True)


def test_sizes_that_are_not_known_are_said_first_and_in_the_words_of_the_source(tmp_path: Path) -> None:
    path = tmp_path / "rows.py"
    path.write_text(ROWS.replace("N=256, rows=64", "N, rows=64").replace("T.tile.mul(x, x, 2.0)", LOOP))
    _, output = run(str(path))
    assert "count as one: give a call with --args" in output.splitlines()[0]
    assert "counts once: `T.ceildiv(N, rows)` is not known" in output
    assert "count as one" not in run(str(path), "--args", "scale(256)")[1]


LOOP = """for k in T.serial(T.ceildiv(N, rows)):
                T.tile.mul(x, x, 2.0)"""


@pytest.mark.parametrize("size", ["m=65536", "M=65536"])
def test_a_size_of_the_run_time_is_given_by_either_name(tmp_path: Path, size: str) -> None:
    path = tmp_path / "rows.py"
    path.write_text(ROWS)
    code, output = run(str(path), "--size", size)
    assert code == 0
    assert "1024 blocks on 24 cores" in output
    assert "blocks on" not in run(str(path))[1]


ROWS = """
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[1])
def scale(N=256, rows=64):
    M = T.symbolic("m")

    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, rows), threads=2, is_npu=True) as (cid):
            x = T.alloc_shared((rows, N), "float32")
            T.copy(X[cid * rows, 0], x)
            T.tile.mul(x, x, 2.0)
            T.copy(x, Y[cid * rows, 0])

    return main
"""
