"""At which sizes, and on which blocks, kernels are compared."""

from __future__ import annotations

import itertools

import pytest

from tests.evaluate.support import gpu, npu, outcome, subjects
from tl2npu.evaluate import sizes
from tl2npu.evaluate.compare import some_blocks
from tl2npu.evaluate.fitting import fitted
from tl2npu.evaluate.launch import Launch
from tl2npu.evaluate.sizes import Sizes

ADD = """
x = T.alloc_fragment((rows, N), "float32")
T.copy(X[b * rows, 0], x)
for i, j in T.Parallel(rows, N):
    x[i, j] = x[i, j] * 2.0 + 1.0
T.copy(x, Y[b * rows, 0])
"""
ROWS = {"params": "M, N, rows=64", "call": "kernel(256, 64)"}


def with_rows(text: str) -> str:
    """The kernel with tiles of ``rows`` rows."""
    return text.replace("ceildiv(M, 16)", "ceildiv(M, rows)")


@pytest.mark.parametrize("grid", [(2, 2, 2), (5, 3), (9,), (3, 1, 4), (2, 7, 2, 3)])
def test_a_few_blocks_have_any_two_axes_at_each_pair_of_their_ends(grid: tuple[int, ...]) -> None:
    few = some_blocks(grid)[0]
    places = []
    for number in few:
        place = []
        for extent in grid:
            number, own = divmod(number, extent)
            place.append(own)
        places.append(place)
    long = [axis for axis, extent in enumerate(grid) if extent > 1][:3]
    for one, other in itertools.combinations(long, 2):
        found = {(place[one], place[other]) for place in places}
        assert found >= set(itertools.product((0, grid[one] - 1), (0, grid[other] - 1)))
    assert {0, grid[0] - 1} <= {place[0] for place in places}


def test_all_blocks_are_the_last_resort() -> None:
    assert [len(some) for some in some_blocks((64, 2))] == [6, 16, 128]


def test_tiles_get_smaller_with_their_tensors() -> None:
    (old,) = subjects(with_rows(gpu(ADD, **ROWS)))
    (smaller, few_blocks), called = sizes.choose(old.file, old.located, old.kernel)
    assert dict(smaller.bound) == {"M": 16, "N": 8, "rows": 8}
    assert dict(few_blocks.bound) == {"M": 128, "N": 64, "rows": 64}
    assert called is not None
    assert dict(called.bound) == {"M": 256, "N": 64, "rows": 64}


@pytest.mark.parametrize("call", ["", "kernel(64, 64, 2048)"], ids=["nobody calls it", "called"])
@pytest.mark.parametrize("turns", ["K // split // 32", "T.ceildiv(K // split, 32)"])
def test_a_quotient_that_is_divided_again_has_turns(turns: str, call: str) -> None:
    """Split K: a loop that never turns would leave the sum undefined, and compare nothing."""
    body = f"""
x = T.alloc_fragment((16, 32), "float32")
s = T.alloc_fragment((16, 32), "float32")
T.clear(s)
for k in T.serial({turns}):
    T.copy(X[b * 16, k * 32], x)
    for i, j in T.Parallel(16, 32):
        s[i, j] += x[i, j]
T.copy(s, Y[b * 16, 0])
"""
    text = gpu(body, params="M, N, K, split=4", call=call)
    (old,) = subjects(text.replace("X: T.Tensor((M, N)", "X: T.Tensor((M, K)"))
    for chosen in sizes.choose(old.file, old.located, old.kernel)[0]:
        assert chosen.bound["K"] // chosen.bound["split"] >= 2 * 32  # type: ignore[operator]


def test_tiles_of_a_number_of_rows_stay() -> None:
    """Smaller tensors would have one block only."""
    text = gpu(ADD.replace("rows", "64"), call="kernel(256, 64)").replace("ceildiv(M, 16)", "ceildiv(M, 64)")
    (old,) = subjects(text)
    assert len(sizes.choose(old.file, old.located, old.kernel)[0]) == 1


@pytest.mark.parametrize(
    "asserted", ["groups == rows", "groups % rows == 0", "M // rows % groups == 0", "N >= 2 * groups and groups > 5"]
)
def test_sizes_are_searched_that_a_factory_takes(asserted: str) -> None:
    params = {"params": "M, N, groups, rows=16", "call": ""}
    text = with_rows(gpu(ADD, **params)).replace("    @T.prim_func", f"    assert {asserted}\n\n    @T.prim_func")
    new = with_rows(npu(ADD.replace("fragment", "shared"), **params))
    assert outcome(text, new).equal
    assert outcome(text, new.replace("+ 1.0", "- 1.0")).equal is False


def test_an_assertion_that_nothing_satisfies() -> None:
    text = gpu(ADD.replace("rows", "16")).replace("    @T.prim_func", "    assert M == M + N\n\n    @T.prim_func")
    (old,) = subjects(text)
    (chosen, *_), _ = sizes.choose(old.file, old.located, old.kernel)
    assert fitted(old.file, old.located, chosen) is None


def test_two_numbers_in_one_axis_of_a_grid() -> None:
    """At both ends of the axis they are the same."""
    tensors = 'X: T.Tensor((B * H, 16), "float32"), Y: T.Tensor((B * H, 16), "float32")'
    body = """
    x = T.alloc_fragment((16,), "float32")
    T.copy(X[b, 0], x)
    for i in T.Parallel(16):
        x[i] = x[i] * T.cast(b % H, "float32")
    T.copy(x, Y[b, 0])
    """
    more = {"tensors": tensors, "params": "B, H", "call": "kernel(4, 3)"}
    old = gpu(body, **more).replace("T.ceildiv(M, 16)", "B * H")
    new = npu(body.replace("fragment", "shared"), 1, **more).replace("T.ceildiv(M, 16)", "B * H")
    assert outcome(old, new).equal
    assert outcome(old, new.replace("b % H", "b // H")).equal is False


def test_an_input_that_only_the_new_kernel_stores() -> None:
    new = npu(ADD.replace("fragment", "shared").replace("rows", "16") + "T.copy(x, X[b * 16, 0])\n")
    found = outcome(gpu(ADD.replace("rows", "16")), new)
    assert found.equal is False
    assert found.why.startswith("`X[0, 0]`")


def test_long_blocks_are_fewer() -> None:
    """Three blocks at the ends of the grid in place of six, where one takes many statements."""
    loop = "for k in T.serial(40):\n    for i, j in T.Parallel(rows, N):\n        x[i, j] = x[i, j] * 1.5\nT.copy(x, Y["
    old, new = (with_rows(text) for text in (gpu(ADD, **ROWS), gpu(ADD.replace("T.copy(x, Y[", loop), **ROWS)))
    done = []
    for text in (old, new):
        (subject,) = subjects(text)
        launch = Launch(subject, Sizes({"M": 640, "N": 8, "rows": 16}, {}, False), {}, 1)
        launch.run(some_blocks(launch.grid)[0], enough=20_000)
        done.append(list(launch.done))
    assert done == [[0, 20, 39, 19], [0, 20, 39]]
