"""Checks of kernels for AscendNPU IR."""

from __future__ import annotations

import textwrap

import pytest

from tl2npu.migration import check_text
from tl2npu.options import Options

PARAMS = 'X: T.Tensor((512, 64), "float32"), Y: T.Tensor((512, 64), "float32")'
TILES = """
x = T.alloc_shared((64, 64), "float32")
m = T.alloc_shared((64, 1), "float32")
v = T.alloc_shared((64,), "float32")
h = T.alloc_shared((64, 64), "float16")
n = T.alloc_shared((32, 64), "float16")
c = T.alloc_fragment((64, 64), "float32")
"""


def found(
    body: str,
    *,
    launch: str = "T.Kernel(8, is_npu=True) as (cid, _)",
    factory: str = "",
    args: str = "",
    options: Options | None = None,
) -> list[tuple[str, str]]:
    """Code and severity of what is found in a kernel with this body."""
    lines = [
        "import tilelang",
        "import tilelang.language as T",
        '@tilelang.jit(out_idx=[1], target="npuir")',
        f"def factory({args}):",
        textwrap.indent(textwrap.dedent(factory), "    "),
        "    @T.prim_func",
        f"    def main({PARAMS}):",
        f"        with {launch}:",
        textwrap.indent(TILES.strip() + "\n" + textwrap.dedent(body).strip("\n"), " " * 12),
        "    return main",
    ]
    result = check_text("\n".join(lines) + "\n", "kernel.py", options or Options())
    assert result.error is None
    return [(item.code, item.severity) for item in result.diagnostics]


GOOD = """
T.copy(X[cid * 64, 0], x)
T.copy(X[cid * 64, 0], x[0, 0], size=[32, 64])
T.copy(X[cid * 64 : cid * 64 + 64, :], x)
T.vadd(x, 1.0, x)
T.vsub(x, m, x)
T.npuir_exp(x, x)
T.vexp2(x, x, x)
T.reduce_max(x, m, dim=1)
T.reduce_max(x, m, dim=1, clear=False)
T.reduce(x, m, dims=[1], reduce_mode="sum")
T.reduce_sum(x, m, dim=1, size=[64, 64])
T.gemm(h, h, c, initC=(cid == 0), b_transpose=True)
T.gemm(h, h, c, [64, 64, 64])
T.gemm(h, n, c[:, 0:32], b_transpose=True)
T.clear(c)
T.vcast(x, h, round_mode="rint")
zero = 0
T.vbrc(zero, x)
T.vbrc(-T.infinity("float32"), x)
T.vbrc(m, x)
T.fill(x, T.float32(1))
T.copy(x, Y[cid * 64, 0])
for i, j in T.Parallel(64, 64):
    x[i, j] = T.exp(x[i, j] - m[i, 0]) * 2.0 + T.if_then_else(i < j, 1.0, 0.0)
    x[i, j] += x[63 - 1, j]
for i, j in T.Parallel(63, 64):
    x[i, j] = x[i + 1, j] / T.max(c[i, j], 1.0)
for i in T.Parallel(64):
    m[i, 0] = m[i, 0] // 2
for k in T.serial(4):
    T.vmul(x, x, x)
"""


def test_a_kernel_as_it_should_be() -> None:
    assert found(GOOD) == []


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("T.tile.add(x, x, x)", "TL460"),
        ("T.gemm_v0(h, h, c)", "TL460"),
        ("T.sync_threads()", "TL460"),
        ("T.dp4a(x, x, x)", "TL460"),
        ("y = T.view(x)", "TL460"),
        ("T.vexp(x)", "TL461"),
        ("T.vadd(x, x)", "TL461"),
        ("T.vadd(x, x, x, x)", "TL461"),
        ("T.gemm(h, h, c, transpose_B=True)", "TL461"),
        ("T.reduce_max(x, m, 1, True)", "TL461"),
        ('with T.rs("PIPE_MTE2"):\n    T.set_flag("vec", 0)', "TL461"),
        ('with T.rs("PIPE_VEC"):\n    T.vexp(x, x)', "TL461"),
        ("T.vbrc(0, x)", "TL462"),
        ("T.vbrc(-1.5, x)", "TL462"),
        ("T.fill(x, 0.0)", "TL462"),
        ('T.fill(x, float("-inf"))', "TL462"),
        ("T.reduce_sum(x, v, dim=1)", "TL463"),
        ("T.reduce(x, v, [1], 'sum')", "TL463"),
        ("T.vcast(v, x)", "TL463"),
        ("T.vbrc(v, x)", "TL463"),
        ("T.gemm(h, n, c)", "TL464"),
        ("T.gemm(n, h, c)", "TL464"),
        ("T.gemm(h, h, c, [64, 64])", "TL464"),
        ("T.gemm(x, h, c)", "TL464"),
        ("T.copy(X[cid * 64, 0], x, [64, 64])", "TL465"),
        ("T.copy(X[cid * 64 : cid * 64 + 64, :], x, size=[64, 64])", "TL465"),
        ("T.copy(X[cid * 64, 0], x[0, 0])", "TL465"),
        ("T.copy(X[cid * 64 : cid * 64 + 64, :], Y[cid * 64, 0])", "TL465"),
        ("while cid < 4:\n    T.clear(x)", "TL466"),
        ("assert cid < 4", "TL466"),
    ],
)
def test_what_fails(body: str, code: str) -> None:
    assert found(body) == [(code, "error")]


@pytest.mark.parametrize(
    "launch",
    [
        "T.Kernel(2, 2, 2, is_npu=True) as (bx, by, bz, cid)",
        "T.Kernel(8, threads=2, is_npu=True) as (cid, _)",
        "T.Kernel(8, is_npu=True) as (cid,)",
        "T.Kernel(2, 4, is_npu=True) as (bx, cid)",
    ],
)
def test_launches_that_fail(launch: str) -> None:
    assert found("T.clear(x)", launch=launch) == [("TL466", "error")]


@pytest.mark.parametrize(
    "launch", ["T.Kernel(8, is_npu=True) as (cid, _)", "T.Kernel(2, 4, is_npu=True) as (cid, by, _)"]
)
def test_launches_that_are_taken(launch: str) -> None:
    assert found("T.clear(x)", launch=launch) == []


def test_a_launch_for_a_gpu_is_a_warning() -> None:
    assert found("T.clear(x)", launch="T.Kernel(8, threads=128) as cid") == [("TL466", "warning")]


@pytest.mark.parametrize(
    "loop",
    [
        "for i, j in T.Parallel(64, 64):\n    x[i, j] = T.exp2(x[i, j])",
        "for i, j in T.Parallel(64, 64):\n    x[i, j] = T.tanh(x[i, j])",
        "for i, j in T.Parallel(64, 64):\n    x[j, i + 1] = x[i, j]",
        "for i, j in T.Parallel(64, 64):\n    x[i, j] = x[2 * i, j]",
        "for i, j in T.Parallel(64, 64):\n    x[i, j] = x[i, i + j]",
        "for i, j in T.Parallel(64, 64):\n    x[i, j] = x[T.cast(v[i], 'int32'), j]",
        "for i, j in T.Parallel(64, 64):\n    x[i, j] = x[i, j] ** 2",
        "for i in T.Parallel(cid):\n    v[i] = 0.0",
        "for i in T.Parallel(64):\n    for k in T.serial(4):\n        v[i] += x[i, k]",
        "for i in T.Parallel(64):\n    if i < 3:\n        v[i] = 0.0",
    ],
)
def test_loops_that_stay_scalar_are_a_warning(loop: str) -> None:
    assert found(loop) == [("TL467", "warning")]


def test_a_half_precision_result_is_a_warning() -> None:
    assert found("T.gemm(h, h, h)") == [("TL464", "warning")]


def test_element_types_as_objects_are_a_warning() -> None:
    assert found("y = T.alloc_shared((64, 64), T.float32)") == [("TL460", "warning")]


def test_a_number_from_outside_of_the_kernel_is_one_of_python() -> None:
    assert found("T.vbrc(scale, x)", factory="scale = 0.5") == [("TL462", "error")]
    assert found("T.vbrc(scale, x)", args="scale") == [("TL462", "error")]
    assert found("s = scale\nT.vbrc(s, x)", args="scale") == []


def test_what_python_leaves_out_is_no_error() -> None:
    body = 'if mode == "a":\n    T.clear(x)\nelse:\n    T.no_such_name(x)'
    assert found(body, args="mode") == [("TL460", "warning")]


def test_every_kernel_is_checked_for_the_chosen_target() -> None:
    assert found("T.gemm_v0(h, h, c)", options=Options(target="npuir")) == [("TL460", "error")]
