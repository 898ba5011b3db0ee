"""Which pipelines of a GPU kernel stay pipelines."""

from __future__ import annotations

import pytest

from tests.passes.gpu.support import gpu_file, migrated

PARAMS = 'A: T.Tensor((64, 128), "float16"), B: T.Tensor((128, 64), "float16"), C: T.Tensor((64, 64), "float32")'
HEAD = "for k in T.Pipelined(4, num_stages=2):"
LOADS = "T.copy(A[bx * 32, k * 32], a)\n    T.copy(B[k * 32, 0], b)"
STEP = f"{LOADS}\n    T.gemm(a, b, c)"


def heads(loop: str, params: str = PARAMS) -> list[str]:
    """The loops over ``k`` and ``t`` of the migrated kernel."""
    body = f"""a = T.alloc_shared((32, 32), "float16")
b = T.alloc_shared((32, 64), "float16")
c = T.alloc_fragment((32, 64), "float32")
T.clear(c)
{loop}
T.copy(c, C[bx * 32, 0])
"""
    new = migrated(gpu_file(params, body))
    return [line.strip() for line in new.splitlines() if line.strip().startswith(("for k", "for t"))]


@pytest.mark.parametrize(
    ("loop", "found"),
    [
        (f"{HEAD}\n    {STEP}", [HEAD]),
        (
            f"{HEAD}\n    {STEP}".replace("T.copy(B", "if k < 3:\n        T.copy(B"),
            ["for k in T.serial(4):"],
        ),
        (
            "for t in T.Pipelined(2, num_stages=2):\n    " + f"{HEAD}\n    {STEP}".replace("\n", "\n    "),
            ["for t in T.serial(2):", HEAD],
        ),
        (f"for k in T.Pipelined(bx + 1, num_stages=2):\n    {STEP}", ["for k in T.serial(bx + 1):"]),
    ],
    ids=["products only", "a condition", "nested", "known at run time"],
)
def test_only_pipelines_of_products_that_are_alike_stay(loop: str, found: list[str]) -> None:
    assert heads(loop) == found


@pytest.mark.parametrize(
    ("sizes", "found"),
    [
        ("A: T.Tensor((64, 120)", "for k in T.serial(4):"),  # the sum is over 8 columns of the last tile
        ("A: T.Tensor((60, 128)", HEAD),  # rows that are cut give rows that are not stored
    ],
)
def test_stages_only_where_products_sum_over_whole_tiles(sizes: str, found: str) -> None:
    """The compiler clears the rest of a tile in its first version only (``need_clear``)."""
    assert heads(f"{HEAD}\n    {STEP}", PARAMS.replace("A: T.Tensor((64, 128)", sizes)) == [found]
