"""What is said of slow kernels: only what the estimate bears out, and nothing that is not so in every turn."""

from __future__ import annotations

import re

import pytest

from tests.cost.test_estimate import GEMM, one
from tl2npu.costing import sides
from tl2npu.migration import migrate_text
from tl2npu.options import Options

LOOP = """
import tilelang
import tilelang.language as T

@tilelang.jit(out_idx=[1], pass_configs={{"tl.ascend_auto_sync": True}})
def make(N=1 << 20):
    @T.prim_func
    def main(A: T.Tensor((N, 256), "float32"), B: T.Tensor((N, 256), "float32"), I: T.Tensor((N,), "int32")):
        with T.Kernel(24, threads=2, is_npu=True) as (cid):
            x = T.alloc_ub((64, 256), "float32")
            y = T.alloc_ub((64, 256), "float32")
            for k in T.serial(N // 64 // 24):
{body}
                T.tile.add(y, y, x)
            T.copy(y, B[cid * 64, 0])

    return main

make()
"""


def codes(text: str) -> list[str]:
    """Of the notes, in order."""
    return [note.code for note in one(text).advice]


def loop(body: str) -> str:
    """A kernel with some statements in its loop, which every turn adds up."""
    lines = body.strip().split("\n")
    return LOOP.format(body="\n".join(" " * 16 + line for line in lines))


def test_the_sizes_that_are_named_are_as_fast_as_is_said() -> None:
    made = one(GEMM.format(sizes="2048, 2048, 2048, 64, 64, 64"))
    (said,) = [note.message for note in made.advice if note.code == "TL951"]
    sizes, times = re.findall(r"`(.*?)` is ([\d.]+) times", said)[0]
    chosen = {"bm": 64, "bn": 64, "slab": 64, **{k: int(v) for k, v in (item.split("=") for item in sizes.split(", "))}}
    other = one(GEMM.format(sizes=f"2048, 2048, 2048, {chosen['bm']}, {chosen['bn']}, {chosen['slab']}"))
    assert other.fits
    assert made.microseconds is not None
    assert other.microseconds is not None
    assert made.microseconds / other.microseconds == pytest.approx(float(times), abs=0.05)
    # Per product a tile of 128 x 256 loads 3/8 of what four by two of 64 x 64 load (published: twice as fast).
    assert float(times) > 1.8
    assert 128 in (chosen["bm"], chosen["bn"])
    assert "TL951" not in [note.code for note in other.advice]


def test_sizes_divide_what_they_divided() -> None:
    """192 = 3 * 64: with tiles of 128 a part of the tensor would be left."""
    made = one(GEMM.format(sizes="192, 192, 8192, 64, 64, 64"))
    said = " ".join(note.message for note in made.advice if note.code == "TL951")
    assert not re.search(r"b[mn]=(128|256)", said)


def test_sizes_that_an_assertion_rules_out_are_not_named() -> None:
    """Tiles of 128 or 256 are faster (above): not where the factory takes none of them."""
    text = GEMM.format(sizes="2048, 2048, 2048, 64, 64, 64")
    head = next(line for line in text.split("\n") if line.startswith("def "))
    for test, wanted in (("bm < 128 and bn < 128", False), ("bm % 64 == 0", True)):
        made = one(text.replace(head, f"{head}\n    assert {test}"))
        said = " ".join(note.message for note in made.advice if note.code == "TL951")
        assert bool(re.search(r"b[mn]=(128|256)", said)) is wanted


def test_tiles_that_are_small_because_cores_are_empty_name_the_call() -> None:
    made = one(GEMM.format(sizes="128, 128, 8192, 64, 64, 64"))
    (said,) = [note.message for note in made.advice if note.code == "TL951"]
    assert made.blocks is not None
    assert made.blocks < 24
    assert "=128" in said.partition(" for `")[2]
    assert "4 blocks for 24 cores; a larger call may not need it" in said


def test_small_transfers() -> None:
    """128 x 32 elements of two bytes are 8 KB, 128 x 64 are 16."""
    assert "TL952" in codes(GEMM.format(sizes="4096, 4096, 4096, 128, 128, 32"))
    assert "TL952" not in codes(GEMM.format(sizes="4096, 4096, 4096, 128, 128, 64"))


def test_many_blocks() -> None:
    """1024 blocks of 4096^3 start in 100 us beside 1300; the 64 of tiles twice as long and wide as 2048 / 8 in 4."""
    assert "TL954" in codes(GEMM.format(sizes="4096, 4096, 4096, 128, 128, 64"))
    assert "TL954" not in codes(GEMM.format(sizes="2048, 2048, 8192, 256, 256, 64"))


def test_short_kernels_are_left_alone() -> None:
    assert codes(GEMM.format(sizes="128, 128, 128, 64, 64, 32")) == []


def test_a_load_that_is_the_same_in_every_turn() -> None:
    assert "TL955" in codes(loop("T.copy(A[cid * 64, 0], x)"))


@pytest.mark.parametrize(
    "body",
    [
        "T.copy(A[(cid + 24 * k) * 64, 0], x)",
        "row = k * 64\nT.copy(A[row, 0], x)",
        "T.copy(A[I[k], 0], x)",
        "if k > 0:\n    T.copy(A[cid * 64, 0], x)",
        "T.copy(A[cid * 64, 0], x)\nT.tile.add(x, x, y)",
        "T.copy(B[cid * 64, 0], x)",
    ],
    ids=["counted", "named", "at an index that is loaded", "conditional", "changed", "of what is stored"],
)
def test_loads_that_are_not_the_same(body: str) -> None:
    assert "TL955" not in codes(loop(body))


def test_a_migration_reports_the_cycles_of_the_new_kernel() -> None:
    """Of a vector kernel: what is loaded and stored, and the work between."""
    text = """import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[1])
def double(M):
    @T.prim_func
    def main(X: T.Tensor((M, 256), "float32"), Y: T.Tensor((M, 256), "float32")):
        with T.Kernel(M // 16, threads=128) as bx:
            x = T.alloc_fragment((16, 256), "float32")
            T.copy(X[bx * 64, 0], x)
            for i, j in T.Parallel(16, 256):
                x[i, j] = x[i, j] * 2.0
            T.copy(x, Y[bx * 64, 0])

    return main
"""
    (kernel,) = migrate_text(text + "\nkernel = double(1024)\n", "k.py", Options()).kernels
    assert [pipe for pipe, _ in kernel.pipes] == ["GM to UB", "vector", "UB to GM"]
    assert all(cycles > 0 for _, cycles in kernel.pipes)


def test_tiles_that_leave_no_block_are_not_faster() -> None:
    """With ``BM=128`` there would be no block at all, in no time."""
    text = """
import tilelang
import tilelang.language as T

@tilelang.jit
def kern(BM=64, BN=16):
    @T.prim_func
    def main(X0: T.Tensor((64,), "float32"), X1: T.Tensor((64, 32), "float32"), Y0: T.Tensor((32 // BN, 64), "float32"),
             Y2: T.Tensor((64, 32), "float32")):
        with T.Kernel(32 // BN, 64 // BM, threads=256) as (i, j):
            r1 = T.alloc_fragment((BM,), "float32")
            t2 = T.alloc_shared((BM, BN), "float32")
            T.copy(X0[j * BM:j * BM + BM], r1)
            T.copy(X1[j * BM:j * BM + BM, i * BN:i * BN + BN], t2)
            for r, c in T.Parallel(BM, BN):
                t2[r, c] = t2[r ^ 1, c] + r1[r]
            for r in T.Parallel(BM):
                Y0[i, (j * BM) + r] = t2[r, 8] * r1[r]
            for r, s in T.Parallel(BM, BN):
                Y2[(j * BM) + r, (i * BN) + s] = t2[r, s]

    return main
"""
    (kernel,) = migrate_text(text, "k.py", Options()).kernels
    assert kernel.disposition == "migrated"


def test_elements_one_by_one_are_not_called_short_rows() -> None:
    scalar = """for i in T.serial(64):
    for j in T.serial(256):
        if y[i, j] > 0.0:
            y[i, j] = 1.0 - y[i, j]"""
    (note,) = (note for note in one(loop(scalar)).advice if note.code == "TL953")
    assert re.fullmatch(r"\d+% of a block's time passes in elements computed one by one", note.message)


def test_lines_of_a_kernel_that_is_not_migrated_are_lines_of_its_file() -> None:
    """The new text has more lines, and lies nowhere."""
    text = """
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def copied(M=4096, N=4096, bm=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, bm), threads=128) as (bx, by):
            a = T.alloc_fragment((bm, 64), "float32")
            T.copy(A[by * bm, bx * 64], a)
            for i, j in T.Parallel(bm, 64):
                a[i, j] = a[i, j] * 2.0
            T.copy(a, B[by * bm, bx * 64])

    return main
""".lstrip()
    (one,) = sides(text, "k.py", Options(), {})
    assert one.new is not None
    assert one.new.line == 8
    assert one.new.advice
    lines = text.split("\n")
    (starts,) = [note.line for note in one.new.advice if note.code == "TL954"]
    assert "T.Kernel" in lines[starts - 1]
    assert max(note.line for note in one.new.advice) < len(lines)
