"""On-chip memories (facts 4 and 8)."""

from __future__ import annotations

import pytest

from tests.checks.support import KEYS, ONE, SPLIT, errors, kernel

UNPLANNED = KEYS[:3]
CUBE = "T.Kernel(8, is_npu=True) as (cid, _)"
CUBE_PARAMS = 'A: T.Tensor((2048, 2048), "float16"), O: T.Tensor((2048, 2048), "float32")'


def tiles(count: int, rows: int, columns: int) -> str:
    names = [f"t{i}" for i in range(count)]
    lines = [f'{name} = T.alloc_ub(({rows}, {columns}), "float32")' for name in names]
    lines += [f"T.copy(A[0, 0], {name})" for name in names]
    return "\n".join([*lines, f"T.copy({names[0]}, O[0, 0])"])


def test_one_tile_of_200_kb() -> None:
    body = kernel(tiles(1, 100, 512))
    assert errors(body, launch=ONE) == ["TL801"]
    assert errors(body, launch=ONE, keys=UNPLANNED) == ["TL801"]
    assert errors(body, launch=SPLIT) == []


def test_tiles_that_live_together() -> None:
    """80 KB each: two fit, three do not."""
    uses = {n: "\n".join(f"T.tile.exp(t{i}, t{i})" for i in range(n)) for n in (2, 3)}
    assert errors(kernel(tiles(2, 80, 256), uses[2]), launch=ONE) == []
    assert errors(kernel(tiles(3, 80, 256), uses[3]), launch=ONE) == ["TL801"]


def test_tiles_that_live_one_after_the_other() -> None:
    body = """
    t0 = T.alloc_ub((80, 256), "float32")
    t1 = T.alloc_ub((80, 256), "float32")
    t2 = T.alloc_ub((80, 256), "float32")
    T.copy(A[0, 0], t0)
    T.tile.exp(t1, t0)
    T.tile.exp(t2, t1)
    T.copy(t2, O[0, 0])
    """
    assert errors(body, launch=ONE) == []
    assert errors(body, launch=ONE, keys=UNPLANNED) == ["TL801"]
    carried = kernel(body, "T.tile.exp(t0, t2)")
    assert errors(carried, launch=ONE) == ["TL801"]


def test_a_buffer_from_before_a_loop_lives_to_its_end() -> None:
    body = """
    t0 = T.alloc_ub((80, 256), "float32")
    t1 = T.alloc_ub((80, 256), "float32")
    t2 = T.alloc_ub((80, 256), "float32")
    T.tile.fill(t0, 0.0)
    for k in T.serial(4):
        T.tile.exp(t1, t0)
        T.tile.exp(t2, t1)
    """
    assert errors(body, launch=ONE) == ["TL801"]
    assert errors(body.replace("    T.tile.fill(t0, 0.0)\n", ""), launch=ONE) == []


def test_gathered_rows_are_not_halved() -> None:
    params = 'A: T.Tensor((2048, 40960), "float32"), X: T.Tensor((64,), "int32"), O: T.Tensor((64, 64), "float32")'
    body = """
    ix = T.alloc_ub((64,), "int32")
    row = T.alloc_ub((60000,), "float32")
    T.copy(X, ix)
    for i in range(64):
        T.copy(A[{index}, 0:60000], row)
    """
    assert errors(body.format(index="ix[i]"), params=params, jit="out_idx=[2]") == ["TL801"]
    assert "TL801" not in errors(body.format(index="i"), params=params, jit="out_idx=[2]")


@pytest.mark.parametrize(
    ("shape", "found"), [("(256, 256)", ["TL801"]), ("(128, 256)", []), ("(bm, 256)", []), ("(bm, bm)", [])]
)
def test_accumulators(shape: str, found: list[str]) -> None:
    body = f"""
    l = T.alloc_shared((128, 64), "float16")
    r = T.alloc_shared((64, 128), "float16")
    c = T.alloc_fragment({shape}, "float32")
    T.copy(A[0, 0], l)
    T.copy(A[0, 0], r)
    T.gemm_v0(l, r, c, init=True)
    T.copy(c, O[0, 0])
    """
    for tail in ("", "factory(512)"):  # what the caller chooses is a warning (see test_fitting)
        said = errors(body, params=CUBE_PARAMS, launch=CUBE, args="bm", tail=tail)
        assert [code for code in said if code != "TL741"] == found  # the operands have sizes of their own


@pytest.mark.parametrize(
    ("m", "k", "pto", "found"),
    [
        (512, 64, False, []),
        (512, 128, False, ["TL801"]),
        (512, 128, True, ["TL801"]),
        (128, 512, False, []),
        (256, 512, False, ["TL801"]),
        (256, 512, True, []),
    ],
)
def test_operands_of_a_product(m: int, k: int, pto: bool, found: list[str]) -> None:
    body = f"""
    l = T.alloc_shared(({m}, {k}), "float16")
    r = T.alloc_shared(({k}, 16), "float16")
    c = T.alloc_fragment(({m}, 16), "float32")
    T.copy(A[0, 0], l)
    T.copy(A[0, 0], r)
    T.gemm_v0(l, r, c, init=True)
    T.copy(c, O[0, 0])
    """
    jit = "out_idx=[1], target='pto'" if pto else "out_idx=[1]"
    assert errors(body, params=CUBE_PARAMS, launch=CUBE, jit=jit) == found
