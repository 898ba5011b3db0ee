"""Parts of tensors that no block loads or stores (TL221, TL223, TL799, TL842, TL885), of kernels as they stand."""

from __future__ import annotations

import textwrap

import pytest

from tests.checks.support import PLAIN, source
from tests.fixture_case import load_all
from tl2npu.checking import check_text
from tl2npu.migration import migrate_text
from tl2npu.options import Options
from tl2npu.results import Diagnostic

PARAMS = 'X: T.Tensor((256, 64), "float32"), Y: T.Tensor((256, 64), "float32")'
RULES = ("TL221", "TL223", "TL799", "TL842", "TL885")
X, Y = "X[cid * 32 + vid * 16, 0]", "Y[cid * 32 + vid * 16, 0]"


def said(text: str) -> list[Diagnostic]:
    return [item for item in check_text(text, "k.py", Options()).diagnostics if item.code in RULES]


def copied(load: str, store: str, **settings: object) -> list[tuple[str, str]]:
    """What is said of a kernel in Expert mode that copies tiles of 16 rows: 32 rows a block, on two vector cores."""
    body = f"T.copy({load}, x)\nT.barrier_all()\nT.tile.exp(x, x)\nT.barrier_all()\nT.copy(x, {store})"
    body = 'x = T.alloc_ub((16, 64), "float32")\nwith T.Scope("V"):\n' + textwrap.indent(body, "    ")
    given = {"launch": PLAIN, "keys": (), "params": PARAMS, **settings}
    return [(item.code, item.severity) for item in said(source(body, **given))]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("load", "store", "expected"),
    [
        (X, Y, []),
        ("X[(cid * 2 + vid) * 16, 0]", "Y[(2 * cid + vid) * 16, 0]", []),
        ("X[vid * 128 + cid * 16, 0]", "Y[vid * 128 + cid * 16, 0]", []),  # a half of the tensor for each core
        ("X[cid * 32 + (1 - vid) * 16, 0]", Y, []),  # the halves change places
        ("X[cid * 32 + vid * 32, 0]", Y, [("TL221", "warning")]),
        (X, "Y[cid * 32 + vid * 32, 0]", [("TL221", "error")]),
        (X, "Y[cid * 32 + vid * 8, 0]", [("TL221", "error")]),
        ("X[cid * 32, 0]", Y, [("TL223", "warning")]),
        ("X[cid * 64 + vid * 16, 0]", Y, [("TL885", "error")]),
        ("X[256 + cid * 32 + vid * 16, 0]", Y, [("TL885", "error")]),
        ("X[cid * 64, 0]", "Y[cid * 64, 0]", [("TL885", "error"), ("TL885", "error")]),
        ("X[cid * 16, 0]", "Y[cid * 16, 0]", [("TL799", "warning")]),
    ],
)
def test_halves_that_do_not_meet(load: str, store: str, expected: list[tuple[str, str]]) -> None:
    assert copied(load, store) == expected


def test_a_grid_that_is_rounded_up_is_no_fault() -> None:
    """The second vector core of the last block begins behind the end, and all rows are copied."""
    params = 'X: T.Tensor((240, 64), "float32"), Y: T.Tensor((240, 64), "float32")'
    assert copied(X, Y, params=params) == []


def test_sizes_that_no_call_gives() -> None:
    """Rows between others are told for usual sizes; an end may be left out on purpose."""
    sizes = {
        "launch": "T.Kernel(M // block, is_npu=True) as (cid, vid)",
        "params": 'X: T.Tensor((M, 64), "float32"), Y: T.Tensor((M, 64), "float32")',
        "args": "M, block",
    }
    load, store = "X[cid * block + vid * 16, 0]", "Y[cid * block + vid * 16, 0]"
    assert copied(load, store, **sizes, tail="factory(256, 32)") == []
    assert copied(load, store, **sizes, tail="factory(256, 64)") == [("TL799", "warning")]
    assert copied(load, store, **sizes) == []  # the block may be 32
    wrong = [text.replace("vid * 16", "vid * 24") for text in (load, store)]
    assert copied(*wrong, **sizes) == [("TL221", "warning"), ("TL221", "error")]


GPU = """
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[1])
def scale(M=256, N=128, rows=64):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float16"), Y: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, rows), threads=128) as (bx, by):
            x = T.alloc_shared((rows, 64), "float16")
            T.copy(X[by * rows, bx * 64], x)
            for i, j in T.Parallel(rows, 64):
                x[i, j] = x[i, j] * 2
            T.copy(x, Y[by * rows, bx * 64])

    return main
"""


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        ("X[by * rows, bx * 64]", []),
        ("X[M + by * rows, bx * 64]", ["TL885"]),
        ("X[by * M, bx * 64]", ["TL885"]),
        ("X[by * rows, bx * 128]", ["TL885"]),
        ("X[by * rows, 0]", []),  # one tile for all
        ("X[by // 2 * rows, bx * 64]", []),
    ],
)
def test_tiles_of_a_gpu_that_begin_behind_their_tensor(index: str, expected: list[str]) -> None:
    assert [item.code for item in said(GPU.replace("X[by * rows, bx * 64]", index))] == expected


@pytest.mark.parametrize(
    ("index", "expected"),
    [("by * rows", []), ("bx * rows", [("TL885", "warning")]), ("bx // 2 * rows", []), ("0", [])],
)
def test_a_block_that_loads_nothing_and_stores(index: str, expected: list[tuple[str, str]]) -> None:
    """Four tiles of columns, two of rows: all scales are loaded, and by two of the blocks none."""
    text = GPU.replace("M=256, N=128", "M=128, N=256").replace(
        "Y: T.Tensor((M", 'S: T.Tensor((M,), "float16"), Y: T.Tensor((M'
    )
    scales = f's = T.alloc_fragment((rows,), "float16")\n            T.copy(S[{index}], s)\n            T.copy(X['
    text = text.replace("T.copy(X[", scales).replace("out_idx=[1]", "out_idx=[2]").replace("* 2", "* s[i]")
    assert [(item.code, item.severity) for item in said(text)] == expected


EXCHANGE = next(case.before for case in load_all() if case.name == "expert/alternating_scopes")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", "", []),
        ("workspace_1[bx, vid * tile // 2, 0]", "workspace_1[bx, vid * tile, 0]", ["TL221"]),
        ("workspace_1[bx, vid * tile // 2, 0]", "workspace_1[bx, 0, 0]", ["TL842"]),
        ("workspace_1[bx,", "workspace_1[0,", ["TL842"]),
    ],
)
def test_workspaces_of_expert_kernels(old: str, new: str, expected: list[str]) -> None:
    assert old in EXCHANGE
    assert [item.code for item in said(EXCHANGE.replace(old, new) if old else EXCHANGE)] == expected


@pytest.mark.parametrize(
    ("blocks", "step", "help"),
    [
        (8, 32, "a block moves by 32 and stores 16: store the rest at `+ vid * 16`, or move by 16"),
        (1, 32, "a block moves by 32 and stores 16: store the rest at `+ vid * 16`, or move by 16"),
        (8, 16, "launch `T.ceildiv(M, rows)` blocks; copies end with their tensor"),
    ],
)
def test_the_advice_says_whether_blocks_or_rows_of_a_block_are_missing(blocks: int, step: int, help: str) -> None:
    body = f'x = T.alloc_ub((16, 64), "float32")\nT.copy(X[cid * {step}, 0], x)\nT.copy(x, Y[cid * {step}, 0])'
    text = source(body, launch=f"T.Kernel({blocks}, is_npu=True) as (cid, vid)", params=PARAMS, keys=())
    assert [item.help for item in said(text) if item.code == "TL799"] == [help]


@pytest.mark.parametrize(
    ("index", "help"),
    [
        ("cid * 16, 32", "the first store begins at element 32 of axis 1: begin at 0"),
        ("cid * 8, 0", "a block moves by 8 and stores 16, over what the one before stored: move by 16"),
        ("cid // 2 * 32, 0", "compare by how much the index moves with how much is stored at once"),
    ],
)
def test_more_blocks_are_no_remedy_for_a_wrong_index(index: str, help: str) -> None:
    body = f'x = T.alloc_ub((16, 64), "float32")\nT.copy(X[cid * 16, 0], x)\nT.copy(x, Y[{index}])'
    text = source(body, launch="T.Kernel(16, is_npu=True) as (cid, vid)", params=PARAMS, keys=())
    assert help in [item.help for item in said(text) if item.code == "TL799"]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ("cid % 2 * 32", []),
        ("cid // 2 % 2 * 32", ["no store reaches `Y[0:32, 32:64]`: 16 stores go to 8 different places"]),
        ("(cid + 1) % 2 * 32", []),
        ("(cid // 2 + cid) % 2 * 32", []),
    ],
)
def test_blocks_that_store_the_same_tile(column: str, expected: list[str]) -> None:
    """Each axis is reached to its end, and half of the tiles are not: block 1 stores what block 0 has stored."""
    body = f"""
    x = T.alloc_ub((32, 32), "float32")
    with T.Scope("V"):
        T.copy(X[cid // 2 * 32, cid % 2 * 32], x)
        T.barrier_all()
        T.copy(x, Y[cid // 2 * 32, {column}])
    """
    text = source(body, launch="T.Kernel(16, is_npu=True) as (cid, _)", keys=(), params=PARAMS)
    assert [item.message for item in said(text)] == expected


RELU = next(case.before for case in load_all() if case.name == "workspace/gemm_relu")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('block_M, block_N), "float"),\n    ):', 'block_M // 2, block_N), "float"),\n    ):', "TL885"),
        ("C[row + vid * block_M // 2, col]", "C[row, col]", "TL777"),
    ],
)
def test_migrate_names_the_fault_of_the_old_kernel(old: str, new: str, expected: str) -> None:
    """A workspace with half of its rows, and a store without the rows of the second vector core: no TL970."""
    assert old in RELU
    found = {item.code for item in migrate_text(RELU.replace(old, new), "k.py", Options()).diagnostics}
    assert expected in found
    assert "TL970" not in found
