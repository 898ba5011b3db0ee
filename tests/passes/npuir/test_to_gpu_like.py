"""Kernels for AscendNPU IR become Ascend C kernels that compute the same."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

from tests.passes.gpu.support import agree, gpu_file, migrated, refused
from tl2npu.migration import migrate_text
from tl2npu.options import Options

RNG = np.random.default_rng(7)
X = RNG.standard_normal((128, 64)).astype(np.float32)
P = np.abs(X) + 0.5
HALF = RNG.standard_normal((128, 64)).astype(np.float16)
OUT = 'X: T.Tensor((128, 64), "float32"), Y: T.Tensor((128, 64), "float32")'
HEAD = """
x = T.alloc_shared((64, 64), "float32")
y = T.alloc_shared((64, 64), "float32")
t = T.alloc_shared((64, 64), "float32")
m = T.alloc_fragment((64, 1), "float32")
n = T.alloc_fragment((64, 1), "float32")
T.copy(X[cid * 64, 0], x)
"""
TAIL = "T.copy(y, Y[cid * 64, 0])\n"


def npuir(
    body: str,
    params: str = OUT,
    *,
    launch: str = "T.Kernel(2, is_npu=True) as (cid, _)",
    jit: str = '@tilelang.jit(out_idx=[-1], target="npuir")',
    args: str = "",
    factory: str = "",
) -> str:
    """A file with one kernel for AscendNPU IR."""
    return gpu_file(params, body, launch=launch, jit=jit, args=args, factory=factory)


def tiles(body: str) -> str:
    """A kernel that takes a tile ``x`` to a tile ``y``, row by row."""
    return npuir(HEAD + textwrap.dedent(body).strip("\n") + "\n" + TAIL)


UNARY = ["vexp", "vln", "vrelu", "vsigmoid", "vsqrt", "vrsqrt", "vabs", "vrec", "npuir_exp"]
BINARY = ["vadd", "vsub", "vmul", "vdiv", "vmax", "vmin", "npuir_add", "npuir_max"]


@pytest.mark.parametrize("name", UNARY)
def test_functions(name: str) -> None:
    agree(tiles(f"T.{name}(x, y)"), {"X": P})


@pytest.mark.parametrize("name", ["vsin", "vcos"])
def test_functions_that_are_series_in_npuir(name: str) -> None:
    """Near 0 four terms of the series are the function."""
    agree(tiles(f"T.{name}(x, y)"), {"X": P / 4})


@pytest.mark.parametrize("name", ["vsin", "npuir_vcos", "vtanh"])
def test_functions_with_other_numbers_are_told(name: str) -> None:
    text = tiles(f"T.{name}(x, y)\nT.vexp(y, y)")
    result = migrate_text(text, "k.py", Options())
    (kernel,), notes = result.kernels, result.diagnostics
    assert kernel.disposition == "migrated"
    line = text.splitlines().index(f"            T.{name}(x, y)") + 1
    assert [(d.line, d.severity) for d in notes if d.code == "TL452"] == [(line, "warning")]
    quiet = migrate_text(text.replace(name, "vexp"), "k.py", Options())
    assert not [d for d in quiet.diagnostics if d.code == "TL452"]


@pytest.mark.sampled
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("second", ["x", "2.5", "m"])
def test_arithmetic(name: str, second: str) -> None:
    agree(tiles(f"T.reduce_max(x, m, dim=1)\nT.{name}(x, {second}, y)"), {"X": P})


@pytest.mark.parametrize(
    "body",
    [
        "T.vexp2(x, y, t)",
        "T.vlog2(x, y, t)",
        "T.vexp2(x, y, t)\nT.vadd(y, t, y)",
        "T.vlog2(x, y, t)\nT.vmul(y, t, y)",
        "T.vclamp(x, y, 0.6, 1.1)",
        "T.vcast(x, y)",
        'c = T.alloc_shared((64, 64), "bool")\nT.vcmp(x, x, c, "lt")\nT.vmul(x, 2.0, t)\nT.vselect(c, x, t, y)',
    ],
)
def test_other_operators(body: str) -> None:
    agree(tiles(body), {"X": P})


def test_a_temporary_tile_that_is_read_gets_its_value() -> None:
    assert "T.exp2" not in migrated(tiles("T.vexp2(x, y, t)\nT.vadd(y, t, y)"))


def test_row_values_lose_their_second_axis() -> None:
    body = """
    T.reduce_max(x, m, dim=1)
    T.vsub(x, m, y)
    T.vexp(y, y)
    T.reduce_sum(y, n, dim=1)
    for i in T.Parallel(64):
        n[i, 0] = n[i, 0] + 1.0
    T.vdiv(y, n, y)
    """
    new = agree(tiles(body), {"X": X})
    assert 'n = T.alloc_shared((64,), "float32")' in new
    assert "n[i] = n[i] + 1.0" in new
    assert "64, 1" not in new


def test_neighbours_over_the_same_elements_share_a_loop() -> None:
    new = agree(tiles("T.vmul(x, 2.0, y)\nT.vadd(y, x, y)\nT.vexp(y, y)"), {"X": X})
    assert new.count("T.Parallel") == 1


def test_a_comment_begins_a_loop_of_its_own() -> None:
    new = agree(tiles("T.vmul(x, 2.0, y)\n# and now the sum\nT.vadd(y, x, y)"), {"X": X})
    assert new.count("T.Parallel") == 2
    assert "# and now the sum" in new


@pytest.mark.parametrize(
    "body",
    [
        "T.vmul(x, 2.0, y)\nT.vadd(y[0:32, :], y[0:32, :], y[0:32, :])",
        "T.vmul(x, 2.0, y)\nT.vadd(x[0:32, :], x[32:64, :], y[0:32, :])",
        "T.reduce_max(x, m, dim=1)\nT.vsub(x, m, y)\nT.vadd(m, 1.0, m)\nT.vadd(y, m, y)",
    ],
)
def test_order_is_kept_where_elements_differ(body: str) -> None:
    agree(tiles(body), {"X": X}, threads="1")


@pytest.mark.parametrize(
    "body",
    [
        "zero = 0\nT.vbrc(zero, y)",
        "low = -1.5\nT.vbrc(low, y)\nT.vmax(y, x, y)",
        'low = -T.infinity("float32")\nT.vbrc(low, y)\nT.vmax(y, x, y)',
        "T.clear(y)\nT.vadd(y, x, y)",
        "T.fill(y, T.float32(3))",
        "T.reduce_sum(x, m, dim=1)\nT.vbrc(m, y)",
        "scale = (1.0 / 64) ** 0.5\nT.vbrc(scale, t)\nT.vmul(x, t, y)",
    ],
)
def test_fills(body: str) -> None:
    agree(tiles(body), {"X": X})


@pytest.mark.parametrize(
    "body",
    [
        'T.reduce(x, m, dims=[1], reduce_mode="max")',
        'T.npuir_reduce(x, m, [1], "sum")',
        "T.reduce_min(x, m, dim=-1)",
        "T.reduce_max(x, m, dim=1)\nT.reduce_max(x, m, dim=1, clear=False)",
        "T.reduce_sum(x, m, dim=1)\nT.reduce_sum(x, m, dim=1, clear=False)",
        "T.reduce_abssum(x, m, dim=1)",
        'T.reduce(x, m, [1], "absmax")',
        "T.reduce_sum(x, m, dim=1, size=[64, 64])",
    ],
)
def test_reductions(body: str) -> None:
    agree(tiles(f"{body}\nT.vadd(x, m, y)"), {"X": X})


def test_reduction_along_the_rows() -> None:
    body = 'r = T.alloc_shared((1, 64), "float32")\nT.reduce_sum(x, r, dim=0)\nT.vmul(x, r, y)'
    agree(tiles(body), {"X": X}, threads="1")


PRODUCT = 'A: T.Tensor((128, 64), "float16"), B: T.Tensor((64, 64), "float16"), Y: T.Tensor((128, 64), "float32")'
OPERANDS = """
a = T.alloc_shared((64, 32), "float16")
b = T.alloc_shared((32, 64), "float16")
c = T.alloc_fragment((64, 64), "float32")
"""


@pytest.mark.parametrize(
    "body",
    [
        "for k in T.Pipelined(2, num_stages=2):\n    T.copy(A[cid * 64, k * 32], a)\n    T.copy(B[k * 32, 0], b)\n"
        "    T.gemm(a, b, c, initC=(k == 0))",
        "T.clear(c)\nfor k in T.serial(2):\n    T.copy(A[cid * 64, k * 32], a)\n    T.copy(B[k * 32, 0], b)\n"
        "    T.gemm(a, b, c)",
        "for k in T.serial(2):\n    T.copy(A[cid * 64, k * 32], a[0, 0], size=[64, 32])\n"
        "    T.copy(B[k * 32 : k * 32 + 32, :], b)\n    T.npuir_dot(a, b, c, [64, 32, 64], initC=k == 0)",
        "zero = 0\nT.vbrc(zero, c)\nfor k in T.serial(2):\n    T.copy(A[cid * 64, k * 32], a)\n"
        "    T.copy(B[k * 32, 0], b)\n    T.gemm(a, b, c, initC=False)",
    ],
)
def test_products(body: str) -> None:
    new = agree(npuir(OPERANDS + body + "\nT.copy(c, Y[cid * 64, 0])\n", PRODUCT), {"A": HALF, "B": HALF[:64]})
    assert "init=k == 0" in new.replace("(k == 0)", "k == 0")


def test_transposed_operands_and_a_function_of_the_product() -> None:
    body = """
    q = T.alloc_shared((64, 64), "float16")
    w = T.alloc_shared((64, 64), "float16")
    c = T.alloc_fragment((64, 64), "float32")
    m = T.alloc_fragment((64, 1), "float32")
    T.copy(A[cid * 64, 0], q)
    T.copy(B, w)
    T.gemm(q, w, c, initC=True, b_transpose=True)
    T.reduce_max(c, m, dim=1)
    T.vsub(c, m, c)
    T.vexp(c, c)
    T.copy(c, Y[cid * 64, 0])
    """
    new = agree(npuir(body, PRODUCT), {"A": HALF, "B": HALF[:64]}, rtol=2e-3)
    assert "transpose_B=True, init=True" in new


@pytest.mark.parametrize(
    ("launch", "offset"),
    [
        ("T.Kernel(2, is_npu=True) as (cid, _)", "cid"),
        ("T.Kernel(2, is_npu=True) as (cid, vid)", "cid"),
        ("T.Kernel(1, 2, is_npu=True) as (bx, by, _)", "by"),
        ("T.Kernel(2, 1, is_npu=True) as (bx, by, _)", "bx"),
        ("T.Kernel(2, 1, is_npu=True) as (bx, _, _)", "bx"),
    ],
)
def test_launches(launch: str, offset: str) -> None:
    body = f"""
    x = T.alloc_shared((64, 64), "float32")
    T.copy(X[{offset} * 64, 0], x)
    T.vadd(x, 1.0, x)
    T.copy(x, Y[{offset} * 64, 0])
    """
    new = agree(npuir(body, launch=launch), {"X": X})
    assert "npuir" not in new


@pytest.mark.parametrize(
    "body",
    [
        "T.copy(X[cid * 64, 0], x[0, 0], size=[64, 64])\nT.copy(x, Y[cid * 64, 0])",
        "T.copy(X[cid * 64, 0], x, size=[64, 64])\nT.copy(x, Y[cid * 64, 0])",
        "T.copy(X[cid * 64 : cid * 64 + 64, 0:64], x[0:64, 0:64])\nT.copy(x[0:64, :], Y[cid * 64, 0])",
        "T.clear(x)\nT.copy(X[cid * 64, 0], x[0, 0], size=[32, 64])\nT.copy(x, Y[cid * 64, 0])",
    ],
)
def test_sizes_of_copies(body: str) -> None:
    new = agree(npuir('x = T.alloc_shared((64, 64), "float32")\n' + body), {"X": X})
    assert "size" not in new


RAGGED = 'X: T.Tensor((100, 64), "float32"), Y: T.Tensor((100, 64), "float32")'


@pytest.mark.parametrize("rows", ["T.min(64, 100 - cid * 64)", "T.min(100 - r, 64)"])
def test_tails(rows: str) -> None:
    body = f"""
    x = T.alloc_shared((64, 64), "float32")
    r = cid * 64
    n = {rows}
    T.copy(X[r : r + n, :], x[0:n, :])
    T.vmul(x, 2.0, x)
    T.copy(x[0:n, :], Y[r : r + n, :])
    """
    new = agree(npuir(body, RAGGED), {"X": X[:100]})
    assert "T.copy(x, Y[r : r + 64, :])" in new
    assert "T.min" not in new


def test_a_tail_that_leaves_what_stands_behind_it_is_refused() -> None:
    """The rest of the tile is ones, which a load of some rows fills with zeros on Ascend."""
    body = """
    x = T.alloc_shared((64, 64), "float32")
    m = T.alloc_fragment((1, 64), "float32")
    r = cid * 64
    n = T.min(64, 100 - r)
    one = 1.0
    T.vbrc(one, x)
    T.copy(X[r : r + n, :], x[0:n, :])
    T.reduce_sum(x, m, dim=0)
    T.copy(m, Y[cid, 0])
    """
    (kernel,) = migrate_text(npuir(body, RAGGED), "k.py", Options(target="ascendc", threads="1")).kernels
    assert (kernel.disposition, "TL741" in kernel.codes) == ("refused", True)


def test_row_values_in_global_memory() -> None:
    params = 'X: T.Tensor((128, 64), "float32"), M: T.Tensor((128, 1), "float32"), Y: T.Tensor((128,), "float32")'
    body = """
    x = T.alloc_shared((64, 64), "float32")
    m = T.alloc_shared((64, 1), "float32")
    n = T.alloc_shared((64, 1), "float32")
    T.copy(X[cid * 64, 0], x)
    T.copy(M[cid * 64, 0], n)
    T.reduce_sum(x, m, dim=1)
    T.vadd(m, n, m)
    T.copy(m[:, 0], Y[cid * 64 : cid * 64 + 64])
    """
    agree(npuir(body, params), {"X": X, "M": X[:, :1]})


def test_a_column_that_is_copied_as_a_row() -> None:
    params = 'X: T.Tensor((128, 64), "float32"), Y: T.Tensor((2, 64), "float32")'
    body = """
    x = T.alloc_shared((64, 64), "float32")
    m = T.alloc_shared((64, 1), "float32")
    T.copy(X[cid * 64, 0], x)
    T.reduce_sum(x, m, dim=1)
    T.copy(m, Y[cid, 0], size=[1, 64])
    """
    new = agree(npuir(body, params), {"X": X}, threads="1")
    assert "m = T.alloc_shared((64,)" in new


def test_additions_to_global_memory() -> None:
    body = """
    x = T.alloc_shared((64, 64), "float32")
    T.copy(X[cid * 64, 0], x)
    T.npuir_atomic_add(Y[cid * 64, 0], x, [64, 64])
    """
    text = npuir(body, jit='@tilelang.jit(target="npuir")')
    agree(text, {"X": X, "Y": X}, threads="1")


def test_macros_are_written_out() -> None:
    factory = """
    @T.macro
    def softened(a, b):
        T.vabs(a, b)
        T.vadd(b, 1.0, b)
    """
    agree(npuir(HEAD + "softened(x, y)\nsoftened(y, y)\n" + TAIL, factory=factory), {"X": X})


def test_another_name_for_the_language() -> None:
    text = tiles("T.vmul(x, 2.0, y)").replace("tilelang.language as T", "tilelang.language as tl").replace("T.", "tl.")
    assert "tl.Parallel" in agree(text, {"X": X})


def test_names_that_are_taken_are_not_used_for_loops() -> None:
    body = "for i in T.serial(2):\n    T.vadd(x, 1.0, x)\nT.vmul(x, 2.0, y)"
    agree(tiles(body), {"X": X})


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("T.transpose(x, y, [1, 0])", "TL442"),
        ("T.flip(x, y, 1)", "TL442"),
        ("T.concat(x, x, y, 0)", "TL442"),
        ("T.verf(x, y)", "TL442"),
        ('T.vbitcast(x, "int32")', "TL442"),
        ('T.reduce(x, m, [1], "prod")', "TL442"),
        ('T.reduce(x, m, [0, 1], "sum")', "TL442"),
        ("T.vadd(x[0:32, :], x[32:64, :], x[32:64, :])", "TL442"),
        ("T.vadd(x, X, y)", "TL442"),
        ("T.copy(X[cid * 64 : cid * 64 + 64, :], x, size=[64, 64])", "TL442"),
        ('h = T.alloc_shared((64,), "float32")\nT.reduce_sum(x, h, dim=1, size=[32, 64])', "TL442"),
        ("T.reduce_sum(x, m, dim=1, size=[64])", "TL442"),
        ('k = T.alloc_shared((64, 64), "int32")\nT.vcast(x, k, round_mode="round")', "TL442"),
        ('k = T.alloc_shared((64, 64), "int32")\nT.clear(k)\nT.vdiv(k, k, k)', "TL442"),
        ("u = T.alloc_ub((64, 64), 'float32')\nT.copy(x, u)", "TL441"),
        ('with T.Scope("Vector"):\n    T.vadd(x, x, y)', "TL441"),
        ('with T.rs("PIPE_V"):\n    T.vadd(x, x, y)', "TL441"),
    ],
)
def test_what_has_no_counterpart_is_refused(body: str, code: str) -> None:
    found = refused(tiles(body))
    assert [name for name, _ in found] == [code]


def test_the_number_of_the_vector_core_is_refused() -> None:
    body = 'x = T.alloc_shared((32, 64), "float32")\nT.copy(X[cid * 64 + vid * 32, 0], x)'
    text = npuir(body, launch="T.Kernel(2, is_npu=True) as (cid, vid)")
    assert [name for name, _ in refused(text)] == ["TL445"]


def test_arguments_in_a_dictionary() -> None:
    text = tiles("T.vmul(x, 2.0, y)").replace(
        '@tilelang.jit(out_idx=[-1], target="npuir")',
        'JIT = {"out_idx": [-1], "target": "npuir"}\n\n\n@tilelang.jit(**JIT)',
    )
    assert '"target"' not in agree(text, {"X": X})


INTEGERS = 'X: T.Tensor((128, 64), "float32"), Y: T.Tensor((128, 64), "int32")'


@pytest.mark.parametrize(
    "cast",
    ['T.cast(x[i, j], "int32")', 'x[i, j].astype("int32")', 'T.Cast("int32", x[i, j] * 2.0)', "T.int32(x[i, j])"],
)
def test_a_vectorised_loop_rounds_to_the_nearest_integer(cast: str) -> None:
    body = f"""
    x = T.alloc_shared((64, 64), "float32")
    k = T.alloc_shared((64, 64), "int32")
    T.copy(X[cid * 64, 0], x)
    for i, j in T.Parallel(64, 64):
        k[i, j] = {cast}
    T.copy(k, Y[cid * 64, 0])
    """
    agree(npuir(body, INTEGERS), {"X": 10 * X}, threads="1")


@pytest.mark.parametrize("mode", ["rint", "floor", "ceil", "trunc"])
def test_casts_to_integers(mode: str) -> None:
    body = f"""
    x = T.alloc_shared((64, 64), "float32")
    k = T.alloc_shared((64, 64), "int32")
    T.copy(X[cid * 64, 0], x)
    T.vcast(x, k, round_mode="{mode}")
    T.copy(k, Y[cid * 64, 0])
    """
    agree(npuir(body, INTEGERS), {"X": 10 * X}, threads="1")


def test_row_values_of_a_whole_tensor_are_shared_by_a_tile_with_columns() -> None:
    """Of a vector each core would add its offset to the second axis of the tensor, which has one element."""
    params = 'X: T.Tensor((64, 64), "float32"), Y: T.Tensor((64, 1), "float32")'
    body = """
    x = T.alloc_shared((64, 64), "float32")
    m = T.alloc_shared((64, 1), "float32")
    T.copy(X, x)
    T.reduce_sum(x, m, dim=1)
    T.copy(m, Y)
    """
    new = agree(npuir(body, params, launch="T.Kernel(1, is_npu=True) as (cid, _)"), {"X": X[:64]})
    assert "T.copy(y_rows, Y[0:64, 0:1])" in new, "a vector beside a column would get gaps"
    assert "threads=2" in new


CASTS = """
    x = T.alloc_shared((64, 64), "float32")
    k = T.alloc_shared((64, 64), dtype)
    T.copy(X[cid * 64, 0], x)
    for i, j in T.Parallel(64, 64):
        k[i, j] = T.cast(x[i, j] * 2.0, dtype)
    T.copy(k, Y[cid * 64, 0])
"""


def test_a_cast_to_the_type_of_a_parameter_is_one_to_a_float() -> None:
    text = npuir(CASTS, 'X: T.Tensor((128, 64), "float32"), Y: T.Tensor((128, 64), dtype)', args="dtype")
    agree(text, {"X": X}, args=("float16",), threads="1")
    assert [code for code, _ in refused(text + '\n\nk = factory("int32")\n')] == ["TL442"]
