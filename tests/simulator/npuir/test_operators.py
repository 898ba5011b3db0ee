"""The operators of npuir kernels one by one, against NumPy written out here."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tl2npu.dialects.npuir import OPERATORS
from tl2npu.simulator.errors import SimulatorError, TraceError, UnsupportedOperator
from tl2npu.simulator.frontend import npuir_names
from tl2npu.simulator.operators.registry import npuir_names as with_meaning
from tl2npu.simulator.standin.package import installed
from tl2npu.simulator.standin.session import Session

RNG = np.random.default_rng(11)


@pytest.fixture(autouse=True)
def standin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TILELANG_ASCEND_MODE", "Developer")
    with installed(Session()):
        global T, tilelang
        import tilelang
        import tilelang.language as T

        yield


T: Any
tilelang: Any


def run(func: Any, *arrays: Any) -> Any:
    return tilelang.compile(func, out_idx=[-1], target="npuir")(*arrays)


def floats(*shape: int, dtype: str = "float32", low: float = -2.0, high: float = 2.0) -> np.ndarray:
    return RNG.uniform(low, high, shape).astype(dtype)


def whole_numbers(*shape: int, low: int = 0, high: int = 20) -> np.ndarray:
    return RNG.integers(low, high, shape).astype(np.int32)


def pair(operator: str, m: int, n: int, k: int, dtype: str = "float32") -> Any:
    """``C[m, n] = A[m, n] <operator> B[m, k]``."""

    @T.prim_func
    def main(A: T.Tensor((m, n), dtype), B: T.Tensor((m, k), dtype), C: T.Tensor((m, n), dtype)):
        with T.Kernel(1, is_npu=True) as (_cid, _):
            a = T.alloc_shared((m, n), dtype)
            b = T.alloc_fragment((m, k), dtype)
            T.copy(A, a)
            T.copy(B, b)
            getattr(T, operator)(a, b, a)
            T.copy(a, C)

    return main


FLOAT_PAIRS = {
    "vadd": np.add,
    "vsub": np.subtract,
    "vmul": np.multiply,
    "vdiv": np.divide,
    "vmax": np.maximum,
    "vmin": np.minimum,
    "vpow": np.power,
}
INTEGER_PAIRS = {
    "vand": np.bitwise_and,
    "vor": np.bitwise_or,
    "vxor": np.bitwise_xor,
    "vshl": np.left_shift,
    "vshr": np.right_shift,
}


@pytest.mark.parametrize("operator", FLOAT_PAIRS)
@pytest.mark.parametrize("columns", [1, 16])
def test_binary_operators_repeat_an_axis_of_length_1(operator: str, columns: int) -> None:
    a, b = floats(8, 16, low=0.5), floats(8, columns, low=0.5)
    np.testing.assert_allclose(run(pair(operator, 8, 16, columns), a, b), FLOAT_PAIRS[operator](a, b), rtol=1e-6)


@pytest.mark.parametrize("operator", INTEGER_PAIRS)
def test_bits_of_integers(operator: str) -> None:
    a, b = whole_numbers(4, 8), whole_numbers(4, 8, high=5)
    np.testing.assert_array_equal(run(pair(operator, 4, 8, 8, "int32"), a, b), INTEGER_PAIRS[operator](a, b))


def test_the_longer_names_are_the_same_operators() -> None:
    a, b = floats(4, 8), floats(4, 8)
    np.testing.assert_array_equal(run(pair("npuir_sub", 4, 8, 8), a, b), run(pair("vsub", 4, 8, 8), a, b))


def test_a_number_and_one_element_as_the_second_operand() -> None:
    @T.prim_func
    def main(A: T.Tensor((4, 8), "float32"), F: T.Tensor((3,), "float32"), C: T.Tensor((4, 8), "float32")):
        with T.Kernel(1, is_npu=True) as (_cid, _):
            a = T.alloc_shared((4, 8), "float32")
            f = T.alloc_shared((3,), "float32")
            T.copy(A, a)
            T.copy(F, f)
            T.vmul(a, f[2], a)
            T.vadd(a, 0.5, a)
            T.copy(a, C)

    a, f = floats(4, 8), floats(3)
    np.testing.assert_allclose(run(main, a, f), a * f[2] + np.float32(0.5), rtol=1e-6)


def single(operator: str, dtype: str = "float32") -> Any:
    @T.prim_func
    def main(A: T.Tensor((4, 8), dtype), C: T.Tensor((4, 8), dtype)):
        with T.Kernel(1, is_npu=True) as (_cid, _):
            a = T.alloc_shared((4, 8), dtype)
            b = T.alloc_shared((4, 8), dtype)
            T.copy(A, a)
            getattr(T, operator)(a, b)
            T.copy(b, C)

    return main


UNARY = {
    "vexp": np.exp,
    "vrelu": lambda x: np.maximum(x, 0),
    "vsigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "vln": np.log,
    "vsqrt": np.sqrt,
    "vrsqrt": lambda x: 1 / np.sqrt(x),
    "vabs": np.abs,
    "vrec": lambda x: 1 / x,
}


@pytest.mark.parametrize("operator", UNARY)
def test_functions(operator: str) -> None:
    a = floats(4, 8, low=0.2 if operator in ("vln", "vsqrt", "vrsqrt", "vrec") else -1.5, high=1.5)
    np.testing.assert_allclose(run(single(operator), a), UNARY[operator](a), rtol=2e-6)


NEAR_ZERO = {"vcos": np.cos, "vsin": np.sin, "vtanh": np.tanh, "verf": np.vectorize(math.erf)}


@pytest.mark.parametrize("operator", NEAR_ZERO)
def test_functions_that_the_compiler_makes_itself_are_right_near_zero(operator: str) -> None:
    a = floats(4, 8, low=-0.4, high=0.4)
    np.testing.assert_allclose(run(single(operator), a), NEAR_ZERO[operator](a), rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("operator", ["vcos", "vsin", "verf"])
def test_far_from_zero_they_are_four_terms_of_their_series(operator: str) -> None:
    a = floats(4, 8, low=2.0, high=4.0)
    terms = {
        "vcos": 1 - a**2 / 2 + a**4 / 24 - a**6 / 720,
        "vsin": a - a**3 / 6 + a**5 / 120 - a**7 / 5040,
        "verf": 2 / np.sqrt(np.pi) * (a - a**3 / 3 + a**5 / 10 - a**7 / 42),
    }
    found = run(single(operator), a)
    np.testing.assert_allclose(found, terms[operator], rtol=1e-3, atol=1e-3)
    assert np.abs(found - NEAR_ZERO[operator](a)).max() > 0.05


def test_vtanh_is_no_number_where_its_exponential_is_infinite() -> None:
    a = np.full((4, 8), 60.0, np.float32)
    assert np.isnan(run(single("vtanh"), a)).all()
    np.testing.assert_array_equal(run(single("vtanh"), -a), -1.0)


@pytest.mark.parametrize("dtype", ["int32", "float16"])
def test_vnot_turns_all_bits(dtype: str) -> None:
    a = whole_numbers(4, 8) if dtype == "int32" else floats(4, 8, dtype=dtype)
    width = f"int{a.dtype.itemsize * 8}"
    np.testing.assert_array_equal(run(single("vnot", dtype), a).view(width), ~a.view(width))


@pytest.mark.parametrize(("operator", "expected"), [("vexp2", np.exp2), ("vlog2", np.log2)])
def test_powers_and_logarithms_of_two_through_a_temporary(operator: str, expected: Any) -> None:
    @T.prim_func
    def main(A: T.Tensor((4, 8), "float32"), C: T.Tensor((4, 8), "float32")):
        with T.Kernel(1, is_npu=True) as (_cid, _):
            a = T.alloc_shared((4, 8), "float32")
            t = T.alloc_shared((4, 8), "float32")
            T.copy(A, a)
            getattr(T, operator)(a, a, t)
            T.copy(a, C)

    a = floats(4, 8, low=0.2)
    np.testing.assert_allclose(run(main, a), expected(a), rtol=1e-5, atol=1e-6)


ROUNDED = {
    "rint": np.rint,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": lambda x: np.trunc(x + np.copysign(0.5, x)),
}


@pytest.mark.parametrize("mode", ROUNDED)
def test_vcast_rounds_by_mode(mode: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((4, 8), "float32"), C: T.Tensor((4, 8), "int32")):
        with T.Kernel(1, is_npu=True) as (_cid, _):
            a = T.alloc_shared((4, 8), "float32")
            c = T.alloc_shared((4, 8), "int32")
            T.copy(A, a)
            T.vcast(a, c, round_mode=mode)
            T.copy(c, C)

    a = np.concatenate([floats(3, 8, low=-9, high=9), np.array([[0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0, 3]])])
    np.testing.assert_array_equal(run(main, a.astype(np.float32)), ROUNDED[mode](a.astype(np.float32)))


def test_a_copy_converts_and_rounds_to_the_nearest() -> None:
    @T.prim_func
    def main(A: T.Tensor((4, 8), "float32"), C: T.Tensor((4, 8), "float16")):
        with T.Kernel(1, is_npu=True) as (_cid, _):
            whole = T.alloc_shared((4, 8), "int32")
            half = T.alloc_shared((4, 8), "float16")
            T.copy(A, whole)
            T.copy(whole, half)
            T.copy(half, C)

    a = floats(4, 8, low=-9, high=9)
    a[0, :4] = 0.5, 1.5, 2.5, -0.5
    np.testing.assert_array_equal(run(main, a), np.rint(a).astype(np.float16))


def test_slices_start_indices_and_sizes_name_the_same_copy() -> None:
    def kernel(form: str) -> Any:
        @T.prim_func
        def main(A: T.Tensor((10, 12), "float32"), C: T.Tensor((10, 12), "float32")):
            with T.Kernel(3, 2, is_npu=True) as (bx, by, _):
                a = T.alloc_shared((4, 6), "float32")
                rows = T.min(4, 10 - bx * 4)
                if form == "slices":
                    T.copy(A[bx * 4 : bx * 4 + rows, by * 6 : by * 6 + 6], a[0:rows, 0:6])
                    T.copy(a[0:rows, 0:6], C[bx * 4 : bx * 4 + rows, by * 6 : by * 6 + 6])
                elif form == "one slice":
                    T.copy(A[bx * 4 : bx * 4 + rows, by * 6 : by * 6 + 6], a)
                    T.copy(a, C[bx * 4 : bx * 4 + rows, by * 6 : by * 6 + 6])
                elif form == "size":
                    T.copy(A[bx * 4, by * 6], a, size=[rows, 6])
                    T.copy(a, C[bx * 4, by * 6], size=[rows, 6])
                else:
                    T.copy(A[bx * 4, by * 6], a, [rows, 6])
                    T.copy(a, C[bx * 4, by * 6], [rows, 6])

        return main

    a = floats(10, 12)
    for form in ("slices", "one slice", "size", "older"):
        np.testing.assert_array_equal(run(kernel(form), a), a)


def test_nothing_is_clipped() -> None:
    @T.prim_func
    def main(A: T.Tensor((10, 8), "float32"), C: T.Tensor((10, 8), "float32")):
        with T.Kernel(3, is_npu=True) as (cid, _):
            a = T.alloc_shared((4, 8), "float32")
            T.copy(A[cid * 4, 0], a)
            T.copy(a, C[cid * 4, 0])

    with pytest.raises(SimulatorError, match=r"out-of-bounds access: A\[8:12, 0:8\]"):
        run(main, floats(10, 8))


def test_sizes_and_slices_exclude_each_other() -> None:
    with pytest.raises(TraceError, match="cannot use both slice syntax and the size parameter"):

        @T.prim_func
        def main(A: T.Tensor((8, 8), "float32")):
            with T.Kernel(1, is_npu=True) as (_cid, _):
                a = T.alloc_shared((8, 8), "float32")
                T.copy(A[0:4, 0:8], a, size=[4, 8])
                T.vexp(a, a)


def test_a_converting_copy_into_a_part_makes_the_rest_unknown() -> None:
    @T.prim_func
    def main(A: T.Tensor((2, 8), "float16"), C: T.Tensor((4, 8), "float32")):
        with T.Kernel(1, is_npu=True) as (_cid, _):
            a = T.alloc_shared((4, 8), "float32")
            T.clear(a)
            T.copy(A, a[1:3, :])
            T.copy(a, C)

    a = floats(2, 8, dtype="float16")
    found = run(main, a)
    np.testing.assert_array_equal(found[1:3], a.astype(np.float32))
    assert np.isnan(found[[0, 3]]).all()


def test_a_row_of_a_tensor_and_a_tile_of_lower_rank() -> None:
    @T.prim_func
    def main(A: T.Tensor((2, 6, 3, 8), "float32"), C: T.Tensor((2, 6, 3, 8), "float32")):
        with T.Kernel(2, is_npu=True) as (cid, _):
            a = T.alloc_fragment((6, 8), "float32")
            T.copy(A[cid, 0:6, 1, 0:8], a)
            T.copy(a, C[cid, 0:6, 2, 0:8])

    a = floats(2, 6, 3, 8)
    np.testing.assert_array_equal(run(main, a)[:, :, 2], a[:, :, 1])


@pytest.mark.parametrize("a_transpose", [False, True])
@pytest.mark.parametrize("b_transpose", [False, True])
def test_gemm_accumulates_and_starts_anew(a_transpose: bool, b_transpose: bool) -> None:
    m, k, n = 16, 8, 24
    left, right = ((k, m) if a_transpose else (m, k)), ((n, k) if b_transpose else (k, n))

    @T.prim_func
    def main(A: T.Tensor((3, *left), "float16"), B: T.Tensor((3, *right), "float16"), C: T.Tensor((m, n), "float32")):
        with T.Kernel(1, is_npu=True) as (_cid, _):
            a = T.alloc_shared(left, "float16")
            b = T.alloc_shared(right, "float16")
            c = T.alloc_shared((m, n), "float32")
            for i in T.Pipelined(3, num_stages=2):
                T.copy(A[i, 0 : left[0], 0 : left[1]], a)
                T.copy(B[i, 0 : right[0], 0 : right[1]], b)
                T.gemm(a, b, c, initC=(i == 1), a_transpose=a_transpose, b_transpose=b_transpose)
            T.copy(c, C)

    a, b = floats(3, *left, dtype="float16"), floats(3, *right, dtype="float16")
    wide_a = a.astype(np.float64).transpose(0, 2, 1) if a_transpose else a.astype(np.float64)
    wide_b = b.astype(np.float64).transpose(0, 2, 1) if b_transpose else b.astype(np.float64)
    np.testing.assert_allclose(run(main, a, b), (wide_a @ wide_b)[1:].sum(axis=0), rtol=1e-4, atol=1e-4)


def test_gemm_of_a_part_by_size() -> None:
    @T.prim_func
    def main(A: T.Tensor((16, 16), "float32"), B: T.Tensor((16, 16), "float32"), C: T.Tensor((5, 7), "float32")):
        with T.Kernel(1, is_npu=True) as (_cid, _):
            a = T.alloc_shared((16, 16), "float32")
            b = T.alloc_shared((16, 16), "float32")
            c = T.alloc_fragment((16, 16), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c, [5, 9, 7], initC=True)
            T.copy(c[0:5, 0:7], C)

    a, b = floats(16, 16), floats(16, 16)
    np.testing.assert_allclose(run(main, a, b), a[:5, :9] @ b[:9, :7], rtol=1e-5, atol=1e-5)


REDUCED = {"sum": np.sum, "max": np.max, "min": np.min}


@pytest.mark.parametrize("kind", REDUCED)
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("clear", [True, False])
def test_reductions_keep_the_axis(kind: str, axis: int, clear: bool) -> None:
    shape = (1, 8) if axis == 0 else (4, 1)

    @T.prim_func
    def main(A: T.Tensor((4, 8), "float32"), S: T.Tensor(shape, "float32"), C: T.Tensor(shape, "float32")):
        with T.Kernel(1, is_npu=True) as (_cid, _):
            a = T.alloc_shared((4, 8), "float32")
            c = T.alloc_shared(shape, "float32")
            T.copy(A, a)
            T.copy(S, c)
            getattr(T, f"reduce_{kind}")(a, c, dim=axis, clear=clear)
            T.copy(c, C)

    a, s = floats(4, 8), floats(*shape)
    expected = REDUCED[kind](a, axis=axis, keepdims=True)
    if not clear:
        expected = REDUCED[kind](np.stack([expected, s]), axis=0)
    np.testing.assert_allclose(run(main, a, s), expected, rtol=1e-5, atol=1e-6)


def test_a_reduction_of_a_part_by_size() -> None:
    @T.prim_func
    def main(A: T.Tensor((8, 8), "float32"), C: T.Tensor((1, 8), "float32")):
        with T.Kernel(1, is_npu=True) as (_cid, _):
            a = T.alloc_shared((8, 8), "float32")
            c = T.alloc_shared((1, 8), "float32")
            T.copy(A, a)
            T.clear(c)
            T.reduce(a, c, dims=0, reduce_mode="sum", size=[5, 6], clear=False)
            T.copy(c, C)

    a = floats(8, 8)
    found = run(main, a)
    np.testing.assert_allclose(found[:, :6], a[:5, :6].sum(axis=0, keepdims=True), rtol=1e-5, atol=1e-6)
    assert np.isnan(found[:, 6:]).all()


@pytest.mark.parametrize("operator", ["vexp", "vadd"])
def test_developer_mode_takes_no_part_of_a_computed_extent(operator: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((6, 8), "float32"), C: T.Tensor((6, 8), "float32")):
        with T.Kernel(2, is_npu=True) as (cid, _):
            a = T.alloc_shared((4, 8), "float32")
            rows = T.min(4, 6 - cid * 4)
            T.copy(A[cid * 4 : cid * 4 + rows, 0:8], a)
            if operator == "vexp":
                T.vexp(a[0:rows, 0:8], a[0:rows, 0:8])
            else:
                T.vadd(a[0:rows, 0:8], a[0:rows, 0:8], a[0:rows, 0:8])
            T.copy(a, C[cid * 4 : cid * 4 + rows, 0:8])

    with pytest.raises(UnsupportedOperator, match="known only when the kernel runs"):
        run(main, floats(6, 8))


def test_sums_of_magnitudes_change_their_source() -> None:
    @T.prim_func
    def main(A: T.Tensor((4, 8), "float32"), C: T.Tensor((4, 9), "float32")):
        with T.Kernel(1, is_npu=True) as (_cid, _):
            a = T.alloc_shared((4, 8), "float32")
            c = T.alloc_shared((4, 1), "float32")
            T.copy(A, a)
            T.reduce_abssum(a, c, dim=1)
            T.copy(a, C[0:4, 0:8])
            T.copy(c, C[0:4, 8:9])

    a = floats(4, 8)
    found = run(main, a)
    np.testing.assert_array_equal(found[:, :8], np.abs(a))
    np.testing.assert_allclose(found[:, 8], np.abs(a).sum(axis=1), rtol=1e-6)


def test_a_reduction_into_a_lower_rank_is_refused() -> None:
    with pytest.raises(TraceError, match="operands of different rank"):

        @T.prim_func
        def main(A: T.Tensor((4, 8), "float32")):
            with T.Kernel(1, is_npu=True) as (_cid, _):
                a = T.alloc_shared((4, 8), "float32")
                c = T.alloc_shared((4,), "float32")
                T.vexp(a, a)
                T.reduce_sum(a, c, dim=1)


@pytest.mark.parametrize("mode", ["eq", "ne", "lt", "gt", "ge", "le"])
def test_comparisons_choose(mode: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((4, 8), "float32"), B: T.Tensor((4, 8), "float32"), C: T.Tensor((4, 8), "float32")):
        with T.Kernel(1, is_npu=True) as (_cid, _):
            a = T.alloc_shared((4, 8), "float32")
            b = T.alloc_shared((4, 8), "float32")
            c = T.alloc_shared((4, 8), "float32")
            mask = T.alloc_shared((4, 8), "bool")
            T.copy(A, a)
            T.copy(B, b)
            T.vcmp(a, b, mask, mode)
            T.vselect(mask, a, b, c)
            T.copy(c, C)

    a, b = floats(4, 8), floats(4, 8)
    b[0] = a[0]
    compare = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "gt": np.greater, "ge": np.greater_equal}
    expected = np.where(compare.get(mode, np.less_equal)(a, b), a, b)
    np.testing.assert_array_equal(run(main, a, b), expected)


def test_clamps_between_numbers() -> None:
    @T.prim_func
    def main(A: T.Tensor((4, 8), "float32"), C: T.Tensor((4, 8), "float32")):
        with T.Kernel(1, is_npu=True) as (_cid, _):
            a = T.alloc_shared((4, 8), "float32")
            T.copy(A, a)
            T.vclamp(a, a, -0.5, 0.75)
            T.copy(a, C)

    a = floats(4, 8)
    np.testing.assert_array_equal(run(main, a), np.clip(a, np.float32(-0.5), np.float32(0.75)))


@pytest.mark.parametrize("fill", ["vbrc", "fill", "clear", "tile"])
def test_constants_and_rows_repeated(fill: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((4, 1), "float32"), C: T.Tensor((4, 8), "float32")):
        with T.Kernel(1, is_npu=True) as (_cid, _):
            a = T.alloc_shared((4, 1), "float32")
            c = T.alloc_shared((4, 8), "float32")
            T.copy(A, a)
            value = 3
            if fill == "vbrc":
                T.vbrc(value, c)
            elif fill == "fill":
                T.fill(c, T.float32(3))
            elif fill == "clear":
                T.clear(c)
            else:
                T.vbrc(a, c)
            T.copy(c, C)

    a = floats(4, 1)
    expected = {"vbrc": 3.0, "fill": 3.0, "clear": 0.0, "tile": np.repeat(a, 8, axis=1)}[fill]
    np.testing.assert_array_equal(run(main, a), np.broadcast_to(expected, (4, 8)))


def test_cumsum_arange_reshape_and_atomic_sums() -> None:
    @T.prim_func
    def main(A: T.Tensor((4, 8), "float32"), C: T.Tensor((3, 8, 4), "float32")):
        with T.Kernel(2, is_npu=True) as (cid, _):
            a = T.alloc_shared((4, 8), "float32")
            turned = T.alloc_shared((8, 4), "float32")
            steps = T.alloc_shared((8, 4), "int32")
            real = T.alloc_shared((8, 4), "float32")
            T.copy(A, a)
            T.cumsum(a, a, dim=1)
            T.reshape(a, turned)
            T.arange(steps, [10, 1], 5)
            T.vcast(steps, real)
            if cid == 0:
                T.copy(turned, C[0, 0:8, 0:4])
                T.copy(real, C[1, 0:8, 0:4])
            T.atomic_add(C[2, 0:8, 0:4], real)

    a, c = floats(4, 8), np.zeros((3, 8, 4), np.float32)
    tilelang.compile(main, target="npuir")(a, c)
    np.testing.assert_allclose(c[0], np.cumsum(a, axis=1).reshape(8, 4), rtol=1e-5, atol=1e-6)
    expected = 5 + 10 * np.arange(8)[:, None] + np.arange(4)
    np.testing.assert_array_equal(c[1], expected)
    np.testing.assert_array_equal(c[2], 2 * expected)


def test_parallel_loops_are_as_everywhere() -> None:
    @T.prim_func
    def main(A: T.Tensor((8, 8), "float32"), C: T.Tensor((8, 8), "float32")):
        with T.Kernel(2, is_npu=True) as (cid, _):
            a = T.alloc_shared((4, 8), "float32")
            T.copy(A[cid * 4 : cid * 4 + 4, 0:8], a)
            for i, j in T.Parallel(4, 8):
                a[i, j] = T.if_then_else(a[i, j] > 0, T.exp(a[i, j]), a[i, j] * 2.0)
            T.copy(a, C[cid * 4 : cid * 4 + 4, 0:8])

    a = floats(8, 8)
    np.testing.assert_allclose(run(main, a), np.where(a > 0, np.exp(a), a * 2), rtol=1e-6)


@pytest.mark.parametrize("vectorised", [True, False])
def test_a_loop_that_is_vectorised_rounds_to_the_nearest_integer(vectorised: bool) -> None:
    @T.prim_func
    def main(A: T.Tensor((4, 8), "float32"), C: T.Tensor((4, 8), "int32")):
        with T.Kernel(1, is_npu=True) as (_cid, _):
            a = T.alloc_shared((4, 8), "float32")
            c = T.alloc_shared((4, 8), "int32")
            T.copy(A, a)
            if vectorised:
                for i, j in T.Parallel(4, 8):
                    c[i, j] = T.cast(a[i, j] * 2.0, "int32")
            else:
                for i in T.serial(4):
                    for j in T.serial(8):
                        c[i, j] = T.cast(a[i, j] * 2.0, "int32")
            T.copy(c, C)

    a = floats(4, 8, low=-9, high=9)
    a[0, :4] = 0.25, 0.75, 1.25, -0.75
    expected = np.rint(a * 2) if vectorised else np.trunc(a * 2)
    np.testing.assert_array_equal(run(main, a), expected)


def test_atomic_sums_of_iterations() -> None:
    @T.prim_func
    def main(A: T.Tensor((4, 8), "float32"), I: T.Tensor((4,), "int32"), C: T.Tensor((3, 8), "float32")):  # noqa: E741
        with T.Kernel(2, is_npu=True) as (cid, _):
            a = T.alloc_shared((2, 8), "float32")
            T.copy(A[cid * 2 : cid * 2 + 2, 0:8], a)
            for i, j in T.Parallel(2, 8):
                T.atomic_add(C[I[cid * 2 + i], j], a[i, j])
            for i, j in T.Parallel(2, 2):
                T.atomic_addx4(C[I[cid * 2 + i], j * 4], a[i, j * 4], [1, 4])

    a, rows, c = floats(4, 8), np.array([2, 0, 2, 2], np.int32), np.zeros((3, 8), np.float32)
    tilelang.compile(main, target="npuir")(a, rows, c)
    once = np.array([a[1], np.zeros(8), a[0] + a[2] + a[3]])
    np.testing.assert_allclose(c, 2 * once, rtol=1e-5, atol=1e-6)


# Expert mode: operators whose result Developer mode drops


def test_expert_mode_drops_axes_of_length_1(monkeypatch: pytest.MonkeyPatch) -> None:
    @T.prim_func
    def main(A: T.Tensor((4, 8), "float32"), S: T.Tensor((3, 4, 1), "float32"), C: T.Tensor((4, 8), "float32")):
        with T.Kernel(1, is_npu=True) as (_cid, _):
            a = T.alloc_ub((4, 8), "float32")
            s = T.alloc_ub((3, 4, 1), "float32")
            T.copy(A, a)
            T.copy(S, s)
            T.vmul(a, s[2, :, :], a)
            T.copy(a, C)

    a, s = floats(4, 8), floats(3, 4, 1)
    with pytest.raises(SimulatorError, match="Developer mode compares them axis by axis"):
        run(main, a, s)
    monkeypatch.setenv("TILELANG_ASCEND_MODE", "Expert")
    np.testing.assert_array_equal(run(main, a, s), a * s[2])


def joined(operator: str) -> Any:
    @T.prim_func
    def main(A: T.Tensor((4, 8), "float32"), Index: T.Tensor((4, 8), "int32"), C: T.Tensor((4, 16), "float32")):
        with T.Kernel(1, is_npu=True) as (_cid, _):
            a = T.alloc_ub((4, 8), "float32")
            i = T.alloc_ub((4, 8), "int32")
            b = T.alloc_ub((4, 8), "float32")
            c = T.alloc_ub((4, 16), "float32")
            d = T.alloc_ub((8, 4), "float32")
            T.copy(A, a)
            T.copy(Index, i)
            T.vmul(a, a, b)
            if operator == "interleave":
                T.interleave(a, b, c)
            elif operator == "concat":
                T.concat(a, b, c, 1)
            elif operator == "pad":
                T.pad(a, c, 2.0, [0, 3], [0, 5])
            elif operator == "transpose":
                T.transpose(a, d, [1, 0])
                T.transpose(d, b, [1, 0])
                T.concat(b, a, c, 1)
            elif operator == "flip":
                T.flip(a, b, 1)
                T.concat(a, b, c, 1)
            elif operator == "deinterleave":
                T.interleave(a, b, c)
                T.deinterleave(c, b, a)
                T.concat(a, b, c, 1)
            else:
                T.gather(a, b, i)
                T.concat(a, b, c, 1)
            T.copy(c, C)

    return main


def expected_of(operator: str, a: np.ndarray, i: np.ndarray) -> np.ndarray:
    if operator == "interleave":
        return np.stack([a, a * a], axis=-1).reshape(4, 16)
    if operator == "pad":
        return np.pad(a, [(0, 0), (3, 5)], constant_values=2.0)
    second = {"concat": a * a, "transpose": a, "flip": a[:, ::-1], "deinterleave": a}.get(operator)
    if second is None:
        second = np.take_along_axis(a, i, axis=1)
    return np.concatenate([a * a if operator == "deinterleave" else a, second], axis=1)


MOVES = ("interleave", "deinterleave", "concat", "pad", "transpose", "flip", "gather")


@pytest.mark.parametrize("operator", MOVES)
def test_operators_that_move_elements(operator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_ASCEND_MODE", "Expert")
    a, i = floats(4, 8), whole_numbers(4, 8, high=8)
    np.testing.assert_array_equal(run(joined(operator), a, i), expected_of(operator, a, i))


@pytest.mark.parametrize("operator", MOVES)
def test_developer_mode_drops_their_result(operator: str) -> None:
    with pytest.raises(UnsupportedOperator, match="Developer mode drops its result"):
        run(joined(operator), floats(4, 8), whole_numbers(4, 8, high=8))


def test_developer_mode_knows_whole_buffers_only_in_some_operators() -> None:
    @T.prim_func
    def main(A: T.Tensor((4, 8), "float32"), C: T.Tensor((4, 8), "float32")):
        with T.Kernel(1, is_npu=True) as (_cid, _):
            a = T.alloc_shared((4, 8), "float32")
            T.copy(A, a)
            T.clear(a[0:2, 0:8])
            T.copy(a, C)

    with pytest.raises(UnsupportedOperator, match="on a part of a: Developer mode takes the whole buffer"):
        run(main, floats(4, 8))


def test_what_is_not_written_is_not_a_number() -> None:
    @T.prim_func
    def main(A: T.Tensor((4, 8), "float32"), C: T.Tensor((4, 8), "float32")):
        with T.Kernel(1, is_npu=True) as (_cid, _):
            a = T.alloc_shared((4, 8), "float32")
            T.copy(A[0:2, 0:8], a[0:2, 0:8])
            T.vadd(a, a, a)
            T.copy(a, C)

    found = run(main, floats(4, 8))
    assert not np.isnan(found[:2]).any()
    assert np.isnan(found[2:]).all()


def test_every_operator_has_a_meaning_or_a_refusal() -> None:
    elsewhere = {"reduce_abs", "atomic_add@lanes", "atomic_add_part", "atomic_add_part@lanes"}
    for name in npuir_names.FORMS:
        own = npuir_names._SAME.get(name, "reduce" if name.startswith("reduce") else name)
        assert own in with_meaning(), name
    assert with_meaning() - elsewhere <= set(npuir_names.FORMS)


def test_the_catalogue_and_the_simulator_know_the_same_operators() -> None:
    known = set(npuir_names.FORMS) | set(npuir_names.OTHER_NAMES) | set(npuir_names.REFUSED) | set(npuir_names.SYNC)
    own = {row.name for row in OPERATORS.values() if "customize_npuir" in row.defined}
    assert own - {"Scope", "rs"} - known == {"npuir_bitcast"} - known
    assert known <= set(OPERATORS)
