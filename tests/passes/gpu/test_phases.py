"""Launches in phases, tile schedulers, stores in slices, tfloat32, values of one arm in a later one."""

from __future__ import annotations

import pytest

from tests.passes.gpu.support import IMPORTS, result_of
from tl2npu.results import FileResult

TENSOR = 'T.Tensor((256, 64), "float32")'


def kernel(body: str, launch: str = "4", params: str = "A B C", factory: str = "") -> FileResult:
    signature = ", ".join(f"{name}: {TENSOR}" for name in params.split())
    lines = "".join(f"            {line}\n" for line in body.strip("\n").split("\n"))
    text = f"@tilelang.jit\ndef f({factory}):\n    @T.prim_func\n    def main({signature}):\n"
    return result_of(f"{IMPORTS}{text}        with T.Kernel({launch}, threads=128) as bx:\n{lines}\n    return main\n")


def errors(result: FileResult) -> list[str]:
    return [item.code for item in result.diagnostics if item.severity == "error"]


PHASES = """
a = T.alloc_fragment((64, 64), "float32")
{start}
T.copy({first}[bx * 64, 0], a)
T.copy(a, B[bx * 64, 0])
T.sync_grid()
{second}
T.copy(a, C[bx * 64, 0])
"""


def test_a_barrier_of_the_grid_is_the_end_of_a_launch() -> None:
    result = kernel(PHASES.format(first="A", start="", second="T.copy(B[(3 - bx) * 64, 0], a)"))
    assert errors(result) == []
    first, second = result.new_text.split("def f_part2")
    assert "sync_grid" not in result.new_text
    assert "T.copy(A[bx * 64, 0], a)" in first
    assert "T.copy(B[(3 - bx) * 64, 0], a)" in second
    assert "A:" not in second.split("return main")[0]


@pytest.mark.parametrize(
    "second",
    [
        "",  # the tile keeps what the first phase loaded
        "for i in T.Parallel(64):\n                a[i, 0] = 0.0",  # and all but one column of it
    ],
)
def test_a_tile_that_keeps_its_value_over_the_barrier(second: str) -> None:
    assert errors(kernel(PHASES.format(first="B", start="", second=second))) == ["TL187"]


def test_a_fill_in_front_of_both_phases_is_repeated() -> None:
    tile = 's = T.alloc_fragment((64, 64), "float32")\nT.fill(s, 3.0)'
    second = "for i, j in T.Parallel(64, 64):\n    a[i, j] = s[i, j]"
    result = kernel(PHASES.format(first="A", start=tile, second=second))
    assert errors(result) == []
    first, second = result.new_text.split("def f_part2")
    assert "3.0" not in first
    assert "3.0" in second


TILES = """
a = T.alloc_fragment((64, 64), "float32")
s = T.PersistentTileScheduler({sizes})
s.init({start})
while s.valid():
    T.copy(A[s.m_idx * 64, s.n_idx * 64], a)
    T.copy(a, B[s.m_idx * 64, s.n_idx * 64])
    {end}
"""


def test_a_scheduler_is_a_loop_over_the_tiles_of_a_block() -> None:
    result = kernel(TILES.format(sizes="4, 1, swizzle_size=8", start="bx", end="s.next_tile()"), launch="3")
    assert errors(result) == []
    assert "for wave in T.serial(T.ceildiv(4 * 1 - bx, 3)):" in result.new_text
    taken = [(wave * 3 + block) % 4 for block in range(3) for wave in range(-((block - 4) // 3))]
    assert sorted(taken) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("sizes", "start", "end"),
    [
        ("4, 1, cluster_size=2", "bx", "s.next_tile()"),
        ("4, 1", "bx // 2", "s.next_tile()"),
        ("4, 1", "bx", "if bx == 0:\n                    s.next_tile()"),
    ],
)
def test_other_schedulers_are_refused(sizes: str, start: str, end: str) -> None:
    assert "TL186" in errors(kernel(TILES.format(sizes=sizes, start=start, end=end), launch="3"))


SLICES = """
a = T.alloc_shared((64, 64), "float16")
c = T.alloc_fragment((64, 64), "float32")
p = T.alloc_shared((64, 16), "float32")
T.fill(a, 1.0)
T.gemm(a, a, c, clear_accum=True)
for i in T.serial({turns}):
    T.copy(c[:, i * 16 : (i + 1) * 16], p)
    T.copy(p, B[bx * 64, i * 16])
"""


def test_slices_that_are_stored_are_one_store() -> None:
    result = kernel(SLICES.format(turns=4))
    assert "TL618" in result.kernels[0].codes
    assert "T.alloc_shared((64, 16)" not in result.new_text


def test_some_slices_are_not_the_whole() -> None:
    assert "TL618" not in kernel(SLICES.format(turns=3)).kernels[0].codes


ARMS = """
a = T.alloc_fragment((64, 64), "float32")
T.copy(A[bx * 64, 0], a)
if scaled:
    n = bx * 2
    T.copy(a, B[n * 32, 0])
{between}
if {again}:
    T.copy(a, C[n * 32, 0])
"""


def test_a_value_of_one_arm_is_computed_again() -> None:
    result = kernel(ARMS.format(between="", again="scaled"), factory="scaled")
    assert errors(result) == []
    assert result.new_text.count("n = bx * 2") == 2


def test_a_value_of_another_condition_is_not() -> None:
    assert "TL120" in errors(kernel(ARMS.format(between="", again="not scaled"), factory="scaled"))
