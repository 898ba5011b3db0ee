"""TL137, TL144, TL145: what is computed again where a tile still has it; conversions that others take back."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.passes.gpu.one_pass import after
from tests.passes.gpu.support import agree, gpu_file
from tl2npu.passes.gpu.memory import repeated

PARAMS = 'X: T.Tensor((64, 64), "float32"), S: T.Tensor((64,), "float32"), O: T.Tensor((64, 64), "float32")'
TILES = """
x = T.alloc_fragment((64, 64), "float32")
y = T.alloc_fragment((64, 64), "float32")
s = T.alloc_fragment((64,), "float32")
T.copy(X, x)
T.copy(S, s)
"""
DRAW = np.random.default_rng(7)
INPUTS = {"X": DRAW.integers(0, 4, (64, 64)).astype(np.float32), "S": DRAW.integers(0, 4, 64).astype(np.float32)}
IS_IT = "for i, j in T.Parallel(64, 64):\n    y[i, j] = T.if_then_else(x[i, j] == s[i], 1.0, 0.0)\n"
CHOSEN = "for i, j in T.Parallel(64, 64):\n    x[i, j] = T.if_then_else(x[i, j] == s[i], -9.0, x[i, j])\n"
ADDED = "for i, j in T.Parallel(64, 64):\n    x[i, j] = x[i, j] + y[i, j]\nT.copy(x, O)"


def new_text(body: str, params: str = PARAMS, head: str = TILES) -> str:
    """The migrated kernel, compared with the old one."""
    return agree(gpu_file(params, head + body, launch="T.Kernel(1, threads=128) as bx"), INPUTS)


def test_a_mask_is_made_once() -> None:
    """The tile that was compared holds something else by then; the mask does not."""
    new = new_text(IS_IT + CHOSEN + ADDED)
    assert new.count("T.tile.compare(") == 1
    assert new.count("= s[i]") == 1  # spread over the tile that is compared


@pytest.mark.parametrize(
    "between",
    [
        "for i in T.Parallel(64):\n    s[i] = s[i] + 1.0\n",
        "if S.shape[0] > 7:\n    for i in T.Parallel(64):\n        s[i] = s[i] + 1.0\n",
        "for k in T.serial(2):\n    for i in T.Parallel(64):\n        s[i] = s[i] + 1.0\n",
        "for i, j in T.Parallel(64, 64):\n    x[i, j] = x[i, j] * 2.0\n",
    ],
)
def test_a_mask_of_other_values_is_another_one(between: str) -> None:
    assert new_text(IS_IT + between + CHOSEN + ADDED).count("T.tile.compare(") == 2


def test_a_mask_of_the_turn_before_is_no_mask_of_this_one() -> None:
    """What the first statement of a turn compares, the second one has changed in the turn before."""
    new = new_text(
        f"for k in T.serial(3):\n    {IS_IT.replace(chr(10), chr(10) + '    ')}\n"
        f"    {CHOSEN.replace(chr(10), chr(10) + '    ')}\n"
        "    for i in T.Parallel(64):\n        s[i] = s[i] + 1.0\n" + ADDED
    )
    assert new.count("T.tile.compare(") == 1
    assert new.index("T.tile.compare(") > new.index("T.serial(3)")


SCALARS = 'X: T.Tensor((64, 64), "float32"), S: T.Tensor((64, 9), "float32"), O: T.Tensor((64, 64), "float32")'
COLUMN = "for i, j in T.Parallel(64, 64):\n    {0}[i, j] = {0}[i, j] * S[i, {1}]\n"


@pytest.mark.parametrize(("second", "loads"), [(3, 1), (4, 2)])
def test_numbers_are_taken_out_of_a_tensor_once(second: int, loads: int) -> None:
    head = TILES.replace('s = T.alloc_fragment((64,), "float32")\n', "").replace("T.copy(S, s)", "T.copy(X, y)")
    body = head + COLUMN.format("x", 3) + COLUMN.format("y", second) + ADDED
    inputs = INPUTS | {"S": DRAW.normal(size=(64, 9)).astype(np.float32)}
    new = agree(gpu_file(SCALARS, body, launch="T.Kernel(1, threads=128) as bx"), inputs)
    assert new.count(" S[") + new.count("(S[") - new.count("S[0:64, 0:9]") == loads


def test_a_conversion_serves_beside_a_tile_of_no_memory_so_far() -> None:
    """Only element-wise loops touch ``y``, which says nothing to the compiler: it is in UB all the same."""
    half = PARAMS.replace('S: T.Tensor((64,), "float32")', 'S: T.Tensor((64,), "float16")')
    head = TILES.replace('s = T.alloc_fragment((64,), "float32")', 's = T.alloc_fragment((64,), "float16")')
    body = "for i, j in T.Parallel(64, 64):\n    y[i, j] = T.exp(s[i] * 0.5 - s[j] * 0.5)\n" + ADDED
    inputs = INPUTS | {"S": INPUTS["S"].astype(np.float16)}
    new = agree(gpu_file(half, head + body, launch="T.Kernel(1, threads=128) as bx"), inputs, threads="1", rtol=1e-2)
    assert new.count("T.copy(s, ") == 1


SUM = "T.clear(s)\nT.reduce_sum(x, t, dim=1)\nfor i in T.Parallel(64):\n    s[i] += t[i]\n"
PART = 't = T.alloc_fragment((64,), "float32")\n'
SPREAD = "for i, j in T.Parallel(64, 64):\n    x[i, j] = x[i, j] * s[i]\nT.copy(x, O)"


def test_a_sum_of_one_addend_is_that() -> None:
    new = new_text(PART + SUM + SPREAD)
    assert "T.tile.fill(s, 0.0)" not in new
    assert "s[i] +=" not in new


@pytest.mark.parametrize(
    "sums",
    [
        SUM + SUM.removeprefix("T.clear(s)\n"),
        SUM.replace("T.clear(s)", "T.fill(s, 1.0)"),
        "T.clear(s)\nfor k in T.serial(2):\n    T.reduce_sum(x, t, dim=1)\n"
        "    for i in T.Parallel(64):\n        s[i] += t[i]\n",
        SUM.replace("+= t[i]", "-= t[i]"),
    ],
)
def test_a_sum_of_more_stays_one(sums: str) -> None:
    assert any(f"s[i] {sign}" in new_text(PART + sums + SPREAD) for sign in ("+=", "-=", "= s[i] + "))


def between(*dtypes: str) -> str:
    """A value that goes through a tile of each type, one behind the other, with work on the first one."""
    names = "xabc"[: len(dtypes)]
    lines = [f'{name} = T.alloc_fragment((64, 64), "{dtype}")' for name, dtype in zip(names, dtypes, strict=True)]
    lines += ["T.copy(X, x)", "for i, j in T.Parallel(64, 64):\n    x[i, j] = x[i, j] * 0.5"]
    lines += [f"T.copy({one}, {other})" for one, other in itertools.pairwise(names)]
    params = f'X: T.Tensor((64, 64), "{dtypes[0]}"), O: T.Tensor((64, 64), "{dtypes[-1]}")'
    return agree(
        gpu_file(params, "\n".join([*lines, f"T.copy({names[-1]}, O)"]), launch="T.Kernel(1, threads=128) as bx"),
        {"X": DRAW.normal(size=(64, 64)).astype(dtypes[0])},
        rtol=0,
        atol=0,
    )


def test_what_goes_to_float32_and_back_stays_what_it_is() -> None:
    assert between("float32", "float16", "float32", "float16").count("alloc_") == 2
    assert between("float16", "float32", "float16").count("T.copy(") == 2


def test_what_is_rounded_on_its_way_is_rounded() -> None:
    new = between("float32", "float16", "float32")
    assert new.count('"float16"') == 1


def test_what_is_loaded_again_is_not_what_was_there() -> None:
    """The tensor that is loaded from is stored to in between; a tile of a pass holds what was loaded."""
    params = 'X: T.Tensor((64, 64), "float16"), O: T.Tensor((64, 64), "float32")'
    body = """
    o = T.alloc_fragment((64, 64), "float32")
    for k in T.serial(2):
        for i, j in T.Parallel(64, 64):
            o[i, j] = X[i, j] * 2.0
        for i, j in T.Parallel(64, 64):
            X[i, j] = X[i, j] + 1.0
    T.copy(o, O)
    """
    text = gpu_file(params, body, launch="T.Kernel(1, threads=128) as bx")
    agree(text, {"X": INPUTS["X"].astype(np.float16)})


WRITTEN = """
a = T.alloc_ub((64,), "float16")
t = T.alloc_ub((64,), "float32")
t2 = T.alloc_ub((64,), "float32")
t3 = T.alloc_ub((64,), "float32")
T.copy(X[0], a)
"""
VECTORS = 'X: T.Tensor((64,), "float16"), Y: T.Tensor((64,), "float16"), O: T.Tensor((64,), "float32")'


def left(lines: str) -> list[str]:
    """What is left of these statements; passes made the tiles whose names begin with ``t``."""
    text = gpu_file(VECTORS, WRITTEN + lines, launch="T.Kernel(1, threads=1, is_npu=True) as (cid)")
    new = after(lambda job: repeated.drop(job, lambda buffer: buffer.name.startswith("t")), text)
    kept = new[new.index("T.copy(X[0], a)") : new.index("    return main")].splitlines()[1:]
    return [line.strip() for line in kept if line.strip()]


CAST, AGAIN = "T.copy(a, t)", "T.copy(a, t2)"
USE = "T.tile.mul(t3, {0}, 2.0)"
TURNS = "for k in T.serial(2):"


@pytest.mark.parametrize(
    ("lines", "kept"),
    [
        # another tile holds it until it has been read
        ([CAST, AGAIN, USE.format("t2"), "T.tile.fill(t2, 1.0)"], [CAST, USE.format("t"), "T.tile.fill(t2, 1.0)"]),
        # it does not: it is written in between, or the reader changes the tile
        ([CAST, AGAIN, "T.tile.exp(t, t)", USE.format("t2")], None),
        ([CAST, AGAIN, "T.tile.exp(t2, t2)", USE.format("t2"), USE.format("t")], None),
        # what it was made of is another value now, in any of the arms or turns
        ([CAST, "T.copy(Y[0], a)", CAST], None),
        ([CAST, "if X.shape[0] > 7:", "    T.copy(Y[0], a)", CAST], None),
        ([CAST, TURNS, "    T.copy(Y[0], a)", CAST], None),
        ([TURNS, f"    {CAST}", f"    {USE.format('t')}", "    T.copy(Y[0], a)"], None),
        # both arms make it
        (["if X.shape[0] > 7:", f"    {CAST}", "else:", f"    {CAST}", CAST], 4),
        (["if X.shape[0] > 7:", f"    {CAST}", CAST], None),
        # every turn leaves it as it was in front of the loop, or does not
        (
            [CAST, TURNS, f"    {CAST}", f"    {USE.format('t')}"],
            [CAST, TURNS, USE.format("t")],
        ),
        ([CAST, TURNS, f"    {CAST}", "    T.tile.exp(t, t)"], None),
        (
            [
                "T.tile.exp(t2, t3)",
                "T.copy(t2, t)",
                TURNS,
                "    T.copy(t2, t)",
                "    T.tile.exp(t2, t2)",
                f"    {USE.format('t')}",
            ],
            None,
        ),
        # a sum begins in front of a loop that adds to it
        (["T.tile.fill(t, 0.0)", TURNS, "    T.tile.add(t, t, t2)"], None),
        (
            ["T.tile.fill(t, 0.0)", "T.tile.add(t, t, t2)", "T.tile.exp(t, t)"],
            ["T.tile.fill(t, 0.0)", "T.copy(t2, t)", "T.tile.exp(t, t)"],
        ),
        # a tensor that the kernel changes
        (["T.copy(O[0], t)", "T.copy(t, O[0])", "T.tile.exp(t, t)", "T.copy(O[0], t2)", USE.format("t2")], None),
    ],
)
def test_values_by_number(lines: list[str], kept: list[str] | int | None) -> None:
    found = left("\n".join(lines))
    if isinstance(kept, int):
        assert len(found) == kept
    else:
        assert found == [line.strip() for line in (lines if kept is None else kept)]
