"""Inputs that tell wrong kernels from right ones where standard normal values do not."""

from __future__ import annotations

import numpy as np
import pytest

from tests.verify.support import HEAD, by_calls, by_script, codes, source
from tl2npu.migration import migrate_text
from tl2npu.options import Options
from tl2npu.simulator.standin.package import installed
from tl2npu.simulator.standin.session import Session
from tl2npu.verify.drawing import PRIMES, Draw, draw, numbers
from tl2npu.verify.launching import build
from tl2npu.verify.loading import execute
from tl2npu.verify.meanings import Meanings
from tl2npu.verify.settings import Call

KERNEL = """

@tilelang.jit(out_idx=[1], pass_configs=pass_configs)
def f(rows=64, symbol=0):
    rows = T.symbolic("M") if symbol else rows

    @T.prim_func
    def main(X: T.Tensor((rows, 64), "float32"), Y: T.Tensor((rows, 64), "float32")):
        with T.Kernel(GRID, threads=2, is_npu=True) as (cid):
            x = T.alloc_shared((32, 64), "float32")
            row = T.alloc_ub((32,), "float32")
            wide = T.alloc_shared((32, 64), "float32")
            T.copy(X[cid * 32, 0], x)
            BODY
            T.copy(x, Y[cid * 32, 0])

    return main
"""
SOFTMAX = """
            T.reduce_max(x, row, dim=1)
            T.tile.broadcast(wide, row)
            T.tile.sub(x, x, wide)
            T.tile.exp(x, x)
            T.reduce_sum(x, row, dim=1)
            T.tile.broadcast(wide, row)
            T.tile.div(x, x, wide)
""".strip()


def kernel(body: str, grid: str = "rows // 32") -> str:
    return HEAD + KERNEL.replace("BODY", body).replace("GRID", grid)


def test_a_minimum_in_place_of_the_maximum_of_a_softmax() -> None:
    old = kernel(SOFTMAX).replace("threads=2", "threads=1")
    new = old.replace("reduce_max", "reduce_min")
    call = Call("f", {"rows": 64})
    assert by_calls(old, old, call).ok
    assert by_calls(old, new, call, draws=1).ok
    result = by_calls(old, new, call)
    assert codes(result) == ["TL907"]
    assert "(on wide values)" in result.diagnostics[0].message


TIES = {
    "the order of a comparison": ("x[i, j] > 0.0", "x[i, j] >= 0.0"),
    "another bound": ("x[i, j] < 2.0", "x[i, j] <= 2.0"),
}


@pytest.mark.parametrize(("before", "after"), TIES.values(), ids=TIES)
def test_numbers_that_are_equal(before: str, after: str) -> None:
    body = "for i, j in T.Parallel(32, 64):\n                if CONDITION:\n                    x[i, j] = 5.0"
    old, new = (kernel(body.replace("CONDITION", text)) for text in (before, after))
    call = Call("f", {"rows": 64})
    assert by_calls(old, new, call, draws=1, check=None).ok
    assert "TL907" in codes(by_calls(old, new, call, check=None))


def test_a_tail_that_is_lost_with_a_symbolic_extent() -> None:
    old, new = kernel("T.tile.add(x, x, 1.0)", "T.ceildiv(rows, 32)"), kernel("T.tile.add(x, x, 1.0)", "rows // 32")
    call = Call("f", {"symbol": 1})
    assert by_calls(old, new, call, draws=1, check=None).ok
    result = by_calls(old, new, call, check=None)
    assert not result.ok
    right = by_calls(old, old, call, check=None)
    assert right.ok
    primes = "wide values (M = 251), small whole numbers (M = 127), the whole range, infinities, NaN"
    assert f"f.main: also on {primes}, values far from 0 (M = 251), values far below 0 (M = 127)" in right.notes


def test_an_old_kernel_that_takes_whole_tiles_only() -> None:
    """Single elements are not clipped at the end of a tensor."""
    body = "for i in T.serial(32):\n                x[i, 0] = X[cid * 32 + i, 0]"
    old = kernel(body, "T.ceildiv(rows, 32)").replace("threads=2", "threads=1")
    result = by_calls(old, old, Call("f", {"symbol": 1}), check=None)
    assert result.ok
    said = [note for note in result.notes if note.startswith("f.main: the old kernel fails with M = 251: ")]
    assert len(said) == 1
    assert "X[251, 0]" in said[0]
    kinds = "wide values, small whole numbers, the whole range, infinities, NaN, values far from 0, values far below 0"
    assert f"f.main: also on {kinds}" in result.notes


def test_what_the_old_kernel_answers_with_no_number_is_not_judged() -> None:
    """exp(100) is infinite in float32, whatever the other kernel makes of it; where it is finite, it counts."""
    old = kernel("T.tile.mul(x, x, 4.0)\n            T.tile.exp(x, x)")
    same = kernel("T.tile.mul(x, x, 4.0)\n            T.tile.exp(x, x)\n            T.tile.min(x, x, 3.0e38)")
    call = Call("f", {"rows": 64})
    result = by_calls(old, same, call)
    assert len(result.diagnostics) == 1
    assert "(on infinities)" in result.diagnostics[0].message  # which were given, and are no overflow
    assert "(on wide values)" in by_calls(old, same.replace("3.0e38", "1.0e30"), call).diagnostics[0].message


ON_GPU = """

@tilelang.jit(out_idx=[1])
def f(rows=64):
    @T.prim_func
    def main(X: T.Tensor((rows, 64), "float32"), Y: T.Tensor((rows, 64), "OUT")):
        with T.Kernel(rows // 32, threads=128) as cid:
            x = T.alloc_fragment((32, 64), "float32")
            y = T.alloc_fragment((32, 64), "OUT")
            T.copy(X[cid * 32, 0], x)
            for i, j in T.Parallel(32, 64):
                y[i, j] = VALUE
            T.copy(y, Y[cid * 32, 0])

    return main
"""
ON_NPU = """

@tilelang.jit(out_idx=[1], pass_configs=pass_configs)
def f(rows=64):
    @T.prim_func
    def main(X: T.Tensor((rows, 64), "float32"), Y: T.Tensor((rows, 64), "OUT")):
        with T.Kernel(rows // 32, threads=1, is_npu=True) as (cid):
            x = T.alloc_shared((32, 64), "float32")
            y = T.alloc_shared((32, 64), "OUT")
            whole = T.alloc_shared((32, 64), "int32")
            T.copy(X[cid * 32, 0], x)
            BODY
            T.copy(y, Y[cid * 32, 0])

    return main
"""


def on_both(value: str, body: str, out: str = "float32") -> tuple[str, str]:
    lines = "\n            ".join(body.splitlines())
    texts = ON_GPU.replace("VALUE", value), ON_NPU.replace("BODY", lines)
    return HEAD + texts[0].replace("OUT", out), HEAD + texts[1].replace("OUT", out)


ROUNDED = [("floor", "FLOOR"), ("ceil", "CEIL"), ("trunc", "TRUNC"), ("nearbyint", "RINT")]


@pytest.mark.parametrize(("function", "mode"), ROUNDED)
def test_numbers_that_no_integer_holds(function: str, mode: str) -> None:
    """NumPy says that floor(2.0**31) is 2.0**31; as an int32 it is 2**31 - 1."""
    body = f'T.tile.cast(whole, x, "CAST_{mode}", 32 * 64)\nT.copy(whole, y)'
    result = by_calls(*on_both(f"T.{function}(x[i, j])", body), Call("f", {}), check=None)
    assert codes(result) == ["TL907"]
    assert "(on the whole range)" in result.diagnostics[0].message


def test_powers_of_two_of_every_size() -> None:
    """The logarithm of one is whole, its product with log2(e) is not always."""
    body = "for i, j in T.Parallel(32, 64):\n    x[i, j] = T.log(x[i, j]) * 1.4426950408889634\n"
    body += 'T.tile.cast(y, x, "CAST_CEIL", 32 * 64)'
    old, new = on_both('T.cast(T.ceil(T.log2(x[i, j])), "int32")', body, "int32")
    result = by_calls(old, new, Call("f", {}), check=None)
    assert "(on the whole range)" in result.diagnostics[0].message


NAN_ONLY = "f.main: where NaN occurs, Y agrees only if max and min of the vector core skip it"


@pytest.mark.parametrize(
    ("value", "body"),
    [
        ("T.max(x[i, j], 0.5)", "T.tile.max(y, x, 0.5)"),
        ("T.min(x[i, j], x[i, j] + 1.0)", "T.tile.add(y, x, 1.0)\nT.tile.min(y, x, y)"),
        ("T.max(T.min(x[i, j], 1.0), -1.0)", "T.tile.min(y, x, 1.0)\nT.tile.max(y, y, -1.0)"),
    ],
)
def test_what_a_vector_core_makes_of_nan_is_said(value: str, body: str) -> None:
    result = by_calls(*on_both(value, body), Call("f", {}), check=None)
    assert result.ok
    both_nan = "x[i, j] + 1.0" in value
    assert any(note.startswith(NAN_ONLY) for note in result.notes) is not both_nan


def test_what_a_vector_core_makes_of_nan_is_said_of_several_kernels_for_one() -> None:
    old, new = on_both("T.max(x[i, j], 0.5)", "T.tile.max(y, x, 0.5)")
    twice = (
        new.replace("def f(", "def part(")
        + "\n\ndef f():\n    def run(X):\n        return part()(part()(X))\n\n    return run\n"
    )
    result = by_calls(old, twice, Call("f", {}), check=None)
    assert result.ok, result.diagnostics
    assert any(note.startswith(NAN_ONLY) for note in result.notes)
    assert codes(by_calls(old, twice.replace("x, 0.5", "x, 0.75"), Call("f", {}), check=None))[:1] == ["TL907"]


def test_a_nan_that_is_lost() -> None:
    """A comparison with NaN is false, so the old kernel keeps it."""
    body = "for i, j in T.Parallel(32, 64):\n    y[i, j] = 0.0\n    if x[i, j] >= 0.0:\n        y[i, j] = x[i, j]"
    old, new = on_both("T.if_then_else(x[i, j] < 0.0, 0.0, x[i, j])", body)
    result = by_calls(old, new, Call("f", {}), check=None)
    assert "(on NaN)" in result.diagnostics[0].message


def test_a_script_is_repeated_with_other_floats() -> None:
    main = "\n\nif __name__ == '__main__':\n    f(64)(np.zeros((64, 64), np.float32))\n"
    old, new = kernel("T.tile.mul(x, x, 2.0)"), kernel("T.tile.mul(x, x, 3.0)")
    assert by_script(old + main, new + main, draws=1).ok
    result = by_script(old + main, new + main)
    assert codes(result) == ["TL907"] * len(result.diagnostics)
    assert [k.status for k in result.kernels] == ["failed"]
    right = by_script(old + main, old.replace("mul(x, x, 2.0)", "add(x, x, x)") + main)
    assert right.ok
    assert [(k.verified.calls, k.verified.max_error) for k in right.kernels if k.verified] == [(1, 0.0)]


INDEXED = """

@tilelang.jit(out_idx=[3], pass_configs=pass_configs)
def pick(n=64):
    @T.prim_func
    def main(
        X: T.Tensor((n, 64), "float32"),
        Index: T.Tensor((32,), "int32"),
        Count: T.Tensor((32,), "int32"),
        Y: T.Tensor((32, 64), "float32"),
    ):
        with T.Kernel(1, threads=1, is_npu=True) as (cid):
            x = T.alloc_shared((32, 64), "float32")
            T.tile.fill(x, 0.0)
            for i in T.serial(32):
                row = Index[i]
                if CONDITION:
                    T.copy(X[row, 0], x[i, :])
                if Count[i] > 7:
                    T.tile.fill(x[i, :], 1.0)
            T.copy(x, Y)

    return main
"""


@pytest.mark.parametrize("condition", ["row >= 0", "row != -1", "row > -1", "Index[i] >= 0"])
def test_an_index_that_is_none(condition: str) -> None:
    old = HEAD + INDEXED.replace("CONDITION", condition)
    call = Call("pick", {"n": 64})
    assert by_calls(old, old, call, check=None).ok
    new = HEAD + INDEXED.replace("CONDITION", "row < n")
    assert by_calls(old, new, call, check=None, draws=1).ok
    assert not by_calls(old, new, call, check=None).ok


def compiled(text: str, factory: str) -> object:
    session = Session()
    with installed(session):
        return build(execute(source(text), "kernel_of_meanings", ()), factory, {}, session)


def test_what_integers_mean() -> None:
    made = compiled(HEAD + INDEXED.replace("CONDITION", "row >= 0"), "pick")
    found = Meanings(made.kernel)  # type: ignore[attr-defined]
    assert (found.places, found.absent) == ({"Index"}, {"Index"})
    drawn = draw(made, 0, {}, {}, Draw("wide values"))
    index, count = drawn.tensors["Index"], drawn.tensors["Count"]
    assert set(index[index < 0]) == {-1}
    assert index.max() < 32
    assert count.min() < 0
    assert count.max() > 32
    first = draw(made, 0, {}, {})
    assert min(first.tensors["Index"].min(), first.tensors["Count"].min()) >= 0


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float8_e4m3fn", "float8_e5m2"])
def test_wide_values(dtype: str) -> None:
    found = numbers(dtype, (64, 64), np.random.default_rng(0), "wide values").astype(np.float64)
    assert np.isfinite(found).all()
    size = np.abs(found[found != 0])
    assert size.max() > 60
    assert size.min() < 2.0**-8
    mantissa, _ = np.frexp(size)
    assert 0.1 < np.mean(mantissa == 0.5) < 0.5
    assert (found == 0).any()
    assert (found * 2 % 2 == 1).any()
    whole = numbers(dtype, (64, 64), np.random.default_rng(0), "small whole numbers").astype(np.float64)
    assert {*whole.ravel()} == {-3, -2, -1, 0, 1, 2, 3}


def test_the_extents_are_primes() -> None:
    for values in PRIMES.values():
        assert all(n % d for n in values for d in range(2, n))


def test_hazards_of_the_old_kernel_are_no_reason_against_further_inputs() -> None:
    """It has them on the first ones, too."""
    new = kernel("T.tile.add(x, x, 1.0)\n            T.tile.min(x, x, 1.0e4)")
    old = (
        kernel("T.tile.add(x, x, 1.0)").replace("AUTO_SYNC: True", "AUTO_SYNC: False").replace("threads=2", "threads=1")
    )
    result = by_calls(old, new, Call("f", {"rows": 64}), check=None)
    messages = [d.message for d in result.diagnostics]
    assert any(text.startswith("the old kernel: Potential RAW") for text in messages)
    assert any("(on the whole range)" in text for text in messages)


PRODUCT = """

@tilelang.jit(out_idx=[2], pass_configs=pass_configs)
def f(size=64):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=2, is_npu=True) as (cid):
            a = T.alloc_shared((64, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.gemm_v0(a, b, c, init=True)
            T.copy(c, C)

    return main
"""


HALF = 'T.alloc_shared((64, 64), "float16")'


def test_a_load_for_a_product_converts_nothing() -> None:
    """``copy_gm_to_l1`` is a template of one type (common.h:57 of tilelang-ascend)."""
    old = HEAD + PRODUCT
    assert by_calls(old, old, Call("f", {}), check=None).ok
    new = old.replace(HALF, HALF.replace("16", "32"))
    result = by_calls(old, new, Call("f", {}), check=None)
    assert "between global memory and the chip" in result.diagnostics[0].message


def test_operands_of_a_product_have_one_type() -> None:
    """So is ``gemm_v0`` (common.h:594)."""
    text = (HEAD + PRODUCT).replace(f"b = {HALF}", f"b = {HALF.replace('16', '32')}")
    text = text.replace('B: T.Tensor((64, 64), "float16")', 'B: T.Tensor((64, 64), "float32")')
    result = by_calls(text, text, Call("f", {}), check=None)
    assert "T.gemm_v0 multiplies one type, not float16 by float32" in result.diagnostics[0].message


SUMMED_IN_HALVES = """

@tilelang.jit(out_idx=[2])
def f(M, dtype="float16"):
    @T.prim_func
    def main(A: T.Tensor((M, 64), dtype), B: T.Tensor((64, 64), dtype), C: T.Tensor((M, 64), dtype)):
        with T.Kernel(M // 32, threads=128) as bx:
            a = T.alloc_shared((32, 32), dtype)
            b = T.alloc_shared((32, 64), dtype)
            c = T.alloc_fragment((32, 64), dtype)
            T.clear(c)
            for k in T.serial(2):
                T.copy(A[bx * 32, k * 32], a)
                T.copy(B[k * 32, 0], b)
                T.gemm(a, b, c)
            for i, j in T.Parallel(32, 64):
                c[i, j] = T.max(c[i, j], 0)
            T.copy(c, C[bx * 32, 0])

    return main
"""


def test_a_product_that_is_summed_in_halves_does_not_overflow() -> None:
    old = HEAD + SUMMED_IN_HALVES
    new = migrate_text(old, "k.py", Options()).new_text
    assert new is not None
    assert by_calls(old, new, Call("f", {"M": 64})).ok
    lost = new.replace("T.max(c[i, j], 0)", "T.max(c[i, j], 0.25)")
    assert "TL907" in codes(by_calls(old, lost, Call("f", {"M": 64})))


INTEGERS = """

@tilelang.jit(out_idx=[1], pass_configs=pass_configs)
def f(rows=64):
    @T.prim_func
    def main(X: T.Tensor((rows, 64), "int32"), Y: T.Tensor((rows, 64), "int32")):
        with T.Kernel(rows // 32, threads=2, is_npu=True) as (cid):
            x = T.alloc_shared((32, 64), "int32")
            w = T.alloc_shared((32, 64), "float32")
            T.copy(X[cid * 32, 0], x)
            T.tile.add(x, x, 3)
            T.copy(x, Y[cid * 32, 0])

    return main
"""


def test_integers_that_float32_does_not_hold() -> None:
    old = HEAD + INTEGERS
    new = old.replace(
        "T.tile.add(x, x, 3)", "T.copy(x, w)\n            T.tile.add(w, w, 3.0)\n            T.copy(w, x)"
    )
    call = Call("f", {"rows": 64})
    assert by_calls(old, new, call, draws=1, check=None).ok
    assert "TL907" in codes(by_calls(old, new, call, check=None))


def test_rounding_and_nan_in_one_kernel() -> None:
    """A product of halves that a GPU rounds before it is added, and a maximum that skips NaN there."""
    old = f"""{HEAD}

@tilelang.jit
def f(rows=48):
    @T.prim_func
    def main(X: T.Tensor((rows, 64), "float16"), Y: T.Tensor((rows, 64), "float32")):
        with T.Kernel(T.ceildiv(rows, 32), threads=128) as bx:
            x = T.alloc_shared((32, 64), "float16")
            a = T.alloc_fragment((32, 64), "float32")
            s = T.alloc_fragment((32,), "float32")
            T.copy(X[bx * 32, 0], x)
            T.reduce_max(x, s, dim=1)
            for i, j in T.Parallel(32, 64):
                a[i, j] = x[i, j] * x[i, j]
            for i, j in T.Parallel(32, 64):
                a[i, j] = a[i, j] + s[i]
            T.copy(a, Y[bx * 32, 0])

    return main
"""
    new = migrate_text(old, "k.py", Options()).new_text or ""
    result = by_calls(old, new, Call("f", {}))
    assert result.ok, result.diagnostics
    assert any(note.startswith(NAN_ONLY) for note in result.notes), result.notes
    wrong = by_calls(old, new.replace("a[i, j] + s[i]", "a[i, j] - s[i]"), Call("f", {}))
    assert codes(wrong)[:1] == ["TL907"]


@pytest.mark.parametrize(("shape", "first", "rows"), [((4, 8), True, 1), ((2, 3, 8), True, 1), ((4, 8), False, 0)])
def test_a_masked_row(shape: tuple[int, ...], first: bool, rows: int) -> None:
    """A softmax has no number for it; in a second factor it would leave none in the whole result."""
    found = numbers("float32", shape, np.random.default_rng(0), "infinities", first=first)
    assert np.isneginf(found).all(axis=-1).sum() == rows
