"""GPU kernels written for AscendNPU IR: compared with the original, or refused."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from tests.passes.gpu.support import gpu_file
from tests.passes.simulated import run
from tl2npu.migration import check_text, migrate_text
from tl2npu.options import Options
from tl2npu.simulator.lowering.lower import IDEAL

NPUIR = Options(target="npuir")
LAUNCH = "T.Kernel(2, threads=128) as bx"
A = 'A: T.Tensor((64, 64), "float32")'
B = 'B: T.Tensor((64, 64), "float32")'
S = 'S: T.Tensor((64,), "float32")'
TILE = 'x = T.alloc_fragment((32, 64), "float32")\nT.copy(A[bx * 32, 0], x)\n'
STORE = "T.copy(x, B[bx * 32, 0])\n"


def matrix(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((64, 64)).astype(np.float32)


def agree(text: str, inputs: Mapping[str, np.ndarray], options: Options = NPUIR) -> str:
    """Migrate, check, run both, migrate again; the new text."""
    result = migrate_text(text, "k.py", options)
    (kernel,) = result.kernels
    assert kernel.target == "npuir", [(d.code, d.line, d.message) for d in result.diagnostics]
    new = result.new_text
    assert new is not None
    assert [d for d in check_text(new, "k.py", options).diagnostics if d.severity == "error"] == []
    assert migrate_text(new, "k.py", options).new_text == new
    old, found = run(text, inputs, "factory", ()), run(new, inputs, "factory", (), IDEAL)
    for name, expected in old.items():
        np.testing.assert_allclose(np.float64(found[name]), np.float64(expected), 1e-4, 1e-4, err_msg=name)
    return new


def refused(text: str) -> list[tuple[str, str]]:
    """Code and source line of the errors of a kernel whose text must stay."""
    result = migrate_text(text, "k.py", NPUIR)
    assert result.new_text == text
    lines = text.splitlines()
    return [(d.code, lines[d.line - 1].strip()) for d in result.diagnostics if d.severity == "error"]


def test_a_clear_stays_where_the_loop_may_be_empty_or_the_product_is_used() -> None:
    body = """
    a = T.alloc_shared((32, 64), "float16")
    b = T.alloc_shared((64, 64), "float16")
    c = T.alloc_fragment((32, 64), "float32")
    T.copy(A[bx * 32, 0], a)
    T.copy(W, b)
    T.clear(c)
    for k in T.serial(bx):
        T.gemm(a, b, c)
    T.copy(c, B[bx * 32, 0])
    """
    half = 'A: T.Tensor((64, 64), "float16"), W: T.Tensor((64, 64), "float16"), ' + B
    inputs = {"A": matrix().astype(np.float16), "W": matrix(1).astype(np.float16)}
    new = agree(gpu_file(half, body, launch=LAUNCH), inputs)
    assert "T.clear(c)" in new
    assert "initC" not in new
    sure = agree(gpu_file(half, body.replace("T.serial(bx)", "T.serial(3)"), launch=LAUNCH), inputs)
    assert "T.clear(c)" not in sure
    assert "initC=(k == 0)" in sure


def test_a_second_sum_of_one_accumulator_is_started_too() -> None:
    body = """
    a = T.alloc_shared((32, 64), "float16")
    b = T.alloc_shared((64, 64), "float16")
    c = T.alloc_fragment((32, 64), "float32")
    T.copy(A[bx * 32, 0], a)
    T.copy(W, b)
    T.clear(c)
    T.gemm(a, b, c)
    T.gemm(a, b, c, transpose_B=True)
    T.copy(c, B[bx * 32, 0])
    """
    half = 'A: T.Tensor((64, 64), "float16"), W: T.Tensor((64, 64), "float16"), ' + B
    inputs = {"A": matrix().astype(np.float16), "W": matrix(1).astype(np.float16)}
    new = agree(gpu_file(half, body, launch=LAUNCH), inputs)
    assert "T.gemm(a, b, c, initC=True)" in new
    assert "T.gemm(a, b, c, b_transpose=True)" in new


@pytest.mark.parametrize("target", ["S[bx * 32]", "S[bx * 32 : (bx + 1) * 32]"])
def test_statistics_take_along_what_is_computed_with_them(target: str) -> None:
    body = (
        'm = T.alloc_fragment([32], "float32")\nold = T.alloc_fragment([32], "float32")\n'
        'f = T.alloc_fragment([32], "float32")\nbias = T.alloc_shared([32], "float32")\n'
        + TILE
        + "T.copy(V[bx * 32], bias)\nT.fill(m, 0.25)\nT.copy(m, old)\nT.reduce_max(x, m, 1, False)\n"
        "for i in T.Parallel(32):\n    f[i] = old[i] - m[i] + bias[i]\n"
        "for r, c in T.Parallel(32, 64):\n    x[r, c] *= f[r]\n" + STORE + f"T.copy(f, {target})\n"
    )
    params = f'{A}, V: T.Tensor((64,), "float32"), {S}, {B}'
    new = agree(gpu_file(params, body, launch=LAUNCH), {"A": matrix(), "V": matrix(1)[0]})
    for name in ("m", "old", "f"):
        assert f"{name} = T.alloc_fragment([32, 1]" in new
    assert 'bias = T.alloc_shared([32], "float32")' in new
    assert "T.reduce_max(x, m, 1, clear=False)" in new
    assert "m_value = 0.25" in new


def test_a_column_into_a_row_of_a_matrix_says_which_part() -> None:
    body = TILE + 's = T.alloc_fragment(32, "float32")\nT.reduce_sum(x, s)\nT.copy(s, R[bx, 0:32])\n'
    text = gpu_file(f'{A}, R: T.Tensor((2, 32), "float32")', body, launch=LAUNCH)
    assert "T.copy(s[:, 0], R[bx, 0:32])" in agree(text, {"A": matrix()})


def test_functions_of_a_wider_argument_get_a_tile_of_its_type() -> None:
    body = (
        TILE
        + 'h = T.alloc_fragment((32, 64), "float16")\n'
        + "for i, j in T.Parallel(32, 64):\n    h[i, j] = T.exp2(x[i, j] * 0.5)\nT.copy(h, B[bx * 32, 0])\n"
    )
    new = agree(gpu_file(f"{A}, {B}", body, launch=LAUNCH), {"A": matrix()})
    assert (
        'h_exp2 = T.alloc_shared([32, 64], "float32")' in new or 'h_exp2 = T.alloc_shared((32, 64), "float32")' in new
    )


def test_a_function_of_a_function() -> None:
    body = TILE + "for i, j in T.Parallel(32, 64):\n    x[i, j] = T.log2(T.exp2(x[i, j]) + 1.0) * 2.0\n" + STORE
    new = agree(gpu_file(f"{A}, {B}", body, launch=LAUNCH), {"A": matrix()})
    assert new.index("T.vexp2") < new.index("T.vlog2")


def test_several_statements_of_one_loop_are_several_loops_where_one_needs_it() -> None:
    body = (
        TILE
        + 'y = T.alloc_fragment((32, 64), "float32")\nfor i, j in T.Parallel(32, 64):\n    y[i, j] = x[i, j] + 1.0\n'
        + "    x[i, j] = T.sqrt(T.abs(y[i, j]))\n    y[i, j] = y[i, j] * x[i, j]\nT.copy(y, B[bx * 32, 0])\n"
    )
    new = agree(gpu_file(f"{A}, {B}", body, launch=LAUNCH), {"A": matrix()})
    assert new.count("T.Parallel(32, 64)") == 3


@pytest.mark.parametrize(
    "condition",
    ["row >= j and j > 3", "row >= j or j > 40 or row < 2", "not (row < j)", "(row >= j) & (j > 3)", "3 < j <= row"],
)
def test_conditions_of_several_parts(condition: str) -> None:
    body = (
        TILE
        + "for i, j in T.Parallel(32, 64):\n    row = bx * 32 + i\n"
        + f"    x[i, j] = T.if_then_else({condition}, x[i, j], -1.0)\n"
        + STORE
    )
    new = agree(gpu_file(f"{A}, {B}", body, launch=LAUNCH), {"A": matrix()})
    assert not [word for word in (" and ", " or ", "not ", " & ") if word in new]
    assert "row" not in new


def test_global_operands_are_staged_and_single_choices_are_selects() -> None:
    body = (
        TILE
        + "start = T.if_then_else(bx > 0, 32, 0)\nfor i, j in T.Parallel(32, 64):\n"
        + "    B[start + i, j] = x[i, j] * S[j] + A[start + i, j]\n"
    )
    new = agree(gpu_file(f"{A}, {S}, {B}", body, launch=LAUNCH), {"A": matrix(), "S": matrix(1)[0]})
    assert "T.Select(bx > 0, 32, 0)" in new
    assert new.count("T.copy(") == 4


def test_a_kernel_without_tiles_gets_those_that_it_needs() -> None:
    body = "for i, j in T.Parallel(32, 64):\n    B[bx * 32 + i, j] = A[bx * 32 + i, j] * S[j]\n"
    new = agree(gpu_file(f"{A}, {S}, {B}", body, launch=LAUNCH), {"A": matrix(), "S": matrix(1)[0]})
    assert new.count("T.alloc_shared") == 3


def test_two_grid_axes_stay_on_request_and_three_are_folded() -> None:
    body = 'x = T.alloc_shared((32, 32), "float32")\nT.copy(A[by * 32, bx * 32], x)\nT.copy(x, B[by * 32, bx * 32])\n'
    text = gpu_file(f"{A}, {B}", body, launch="T.Kernel(2, 2, threads=128) as (bx, by)")
    kept = agree(text, {"A": matrix()}, Options(target="npuir", grid2d=True))
    assert "T.Kernel(2, 2, is_npu=True) as (bx, by, _)" in kept
    folded = agree(text, {"A": matrix()})
    assert "T.Kernel(2 * 2, is_npu=True) as (cid, _)" in folded
    three = gpu_file(f"{A}, {B}", body, launch="T.Kernel(2, 2, 1, threads=128) as (bx, by, bz)")
    assert "T.Kernel(2 * 2 * 1, is_npu=True)" in agree(three, {"A": matrix()}, Options(target="npuir", grid2d=True))


@pytest.mark.parametrize(
    ("body", "code", "line"),
    [
        ("T.clear(x[0:8, :])\n", "TL417", "T.clear(x[0:8, :])"),
        ("for j in T.Parallel(64):\n    x[0, j] = 1.0\n", "TL417", "x[0, j] = 1.0"),
        ("T.cumsum(x, dim=1, reverse=True)\n", "TL415", "T.cumsum(x, dim=1, reverse=True)"),
        ("for i, j in T.Parallel(32, 64):\n    x[i, j] = T.floor(x[i, j])\n", "TL418", "x[i, j] = T.floor(x[i, j])"),
        ("while bx < 0:\n    T.clear(x)\n", "TL120", "while bx < 0:"),
        ("for i in T.Parallel(32):\n    T.atomic_max(B[i, 0], x[i, 0])\n", "TL192", "T.atomic_max(B[i, 0], x[i, 0])"),
    ],
)
def test_what_has_no_counterpart_is_refused(body: str, code: str, line: str) -> None:
    found = refused(gpu_file(f"{A}, {B}", TILE + body + STORE, launch=LAUNCH))
    assert (code, line) in found


def test_the_mode_is_set_once_and_behind_the_imports() -> None:
    body = TILE + STORE
    text = gpu_file(f"{A}, {B}", body, launch=LAUNCH)
    new = agree(text, {"A": matrix()})
    assert new.startswith("import os\nimport tilelang\n")
    assert new.count("TILELANG_ASCEND_MODE") == 1
    own = 'import os\n\nos.environ["TILELANG_ASCEND_MODE"] = "Dev"\n' + text
    result = migrate_text(own, "k.py", NPUIR).new_text
    assert result is not None
    assert result.count("TILELANG_ASCEND_MODE") == 1


def test_a_reduction_into_a_wider_type_converts_before() -> None:
    body = (
        'x = T.alloc_fragment((32, 64), "float16")\nm = T.alloc_fragment((32,), "float32")\n'
        "T.copy(A[bx * 32, 0], x)\nT.reduce_max(x, m, dim=1)\nT.copy(m, S[bx * 32])\n"
    )
    text = gpu_file(f'A: T.Tensor((64, 64), "float16"), {S}', body, launch=LAUNCH)
    new = agree(text, {"A": matrix().astype(np.float16)})
    assert "T.reduce_max(x_cast, m, dim=1)" in new


def test_kernels_of_one_factory_go_together() -> None:
    """They are compiled by one call, so both have its target."""
    good = gpu_file(f"{A}, {B}", TILE + STORE, launch=LAUNCH)
    head, kernel = good.split("    @T.prim_func\n")
    kernel, tail = kernel.split("    return main\n")
    barrier = kernel.replace("def main(", "def other(").replace(
        "T.copy(x, B", "T.call_extern('handle', 'f', x)\n            T.copy(x, B"
    )
    text = f"{head}    @T.prim_func\n{barrier}    @T.prim_func\n{kernel}    return main\n{tail}"
    assert migrate_text(good, "k.py", NPUIR).kernels[0].disposition == "migrated"
    assert {code for code, _ in refused(text)} >= {"TL401"}


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("0.5 * x[i, j] * (1.0 + T.tanh(x[i, j]))", "0.5 * x[i, j] * (2.0 * T.sigmoid(2.0 * x[i, j]))"),
        ("T.tanh(x[i, j]) + 1", "2.0 * T.sigmoid(2.0 * x[i, j])\n"),
        ("1.0 - T.tanh(x[i, j])", "1.0 - (2.0 * T.sigmoid(2.0 * x[i, j]) - 1.0)"),
        ("2.0 + T.tanh(x[i, j])", "2.0 + (2.0 * T.sigmoid(2.0 * x[i, j]) - 1.0)"),
    ],
)
def test_one_and_a_tanh_is_two_sigmoids(value: str, wanted: str) -> None:
    body = TILE + f"for i, j in T.Parallel(32, 64):\n    x[i, j] = {value}\n" + STORE
    assert f"x[i, j] = {wanted}" in agree(gpu_file(f"{A}, {B}", body, launch=LAUNCH), {"A": 3 * matrix()})


def test_copies_that_a_pass_wrote_are_reported_where_they_come_from() -> None:
    body = """
    s = T.alloc_fragment((32,), "float32")
    x = T.alloc_fragment((32, 64), "float32")
    for i, j in T.Parallel(32, 64):
        x[i, j] = A[bx * 32 + i, j] * 2.0
    T.reduce_sum(x, s, dim=1)
    T.copy(s, S[bx * 32])
    """
    params = 'A: T.Tensor((M, 64), "float32"), S: T.Tensor((N,), "float32")'
    text = gpu_file(params, body, launch="T.Kernel(T.ceildiv(M, 32), threads=128) as bx")
    lazy = text.replace("def factory():", "def factory(M, N):")
    for source in (lazy, "\n" * 7 + lazy):
        lines = source.splitlines()
        found = [d for d in migrate_text(source, "k.py", NPUIR).diagnostics if d.code == "TL439"]
        assert [lines[d.line - 1].strip() for d in found] == [
            "for i, j in T.Parallel(32, 64):",
            "T.copy(s, S[bx * 32])",
        ]


def test_new_tiles_stand_above_their_use_where_others_are_allocated_below() -> None:
    body = (
        TILE
        + "for i, j in T.Parallel(32, 64):\n    x[i, j] = x[i, j] * C[bx * 32 + i, j]\n"
        + 'y = T.alloc_fragment((32, 64), "float32")\n'
        + "for i, j in T.Parallel(32, 64):\n    y[i, j] = x[i, j] + C[i, j]\n"
        + "T.copy(y, B[bx * 32, 0])\n"
    )
    params = f'{A}, C: T.Tensor((64, 64), "float32"), {B}'
    new = agree(gpu_file(params, body, launch=LAUNCH), {"A": matrix(), "C": matrix(1)})
    assert new.index("C_shared = T.alloc_shared") < new.index("T.copy(C[bx * 32 : bx * 32 + 32, :], C_shared)")


def test_functions_of_numbers_without_a_tile_are_computed_in_float32() -> None:
    """As a GPU does: a decay of half precision loses the digits that its exponent needs."""
    body = """
    x = T.alloc_shared((32, 64), "float16")
    decay = T.log2(1.0 - T.exp2(-5.0 - 1.0 * bx))
    T.copy(A[bx * 32, 0], x)
    for i, j in T.Parallel(32, 64):
        x[i, j] = x[i, j] * T.exp2((500 - i) * decay)
    T.copy(x, B[bx * 32, 0])
    """
    half = 'A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float32")'
    text, inputs = gpu_file(half, body, launch=LAUNCH), {"A": matrix().astype(np.float16)}
    new = migrate_text(text, "k.py", NPUIR).new_text
    assert new is not None
    assert 'x_exp2 = T.alloc_shared((32, 64), "float32")' in new
    found, wanted = (np.float64(run(file, inputs, "factory", (), IDEAL)["B"]) for file in (new, text))
    np.testing.assert_allclose(found, wanted, 1e-3)  # twice rounded to a half


@pytest.mark.parametrize("source", ["s", "x[:, 3:4]", "A[bx * 32 : bx * 32 + 32, 3:4]"])
def test_the_rest_of_a_tile_survives_a_copy_that_converts(source: str) -> None:
    tile = 's = T.alloc_fragment((32,), "float32")\nh = T.alloc_shared((32, 64), "float16")\nT.clear(h)\n'
    body = TILE + tile + f"T.reduce_sum(x, s, dim=1)\nfor d in T.serial(2):\n    T.copy({source}, h[:, d : d + 1])\n"
    if source == "s":
        body = body.replace("h[:, d : d + 1]", "h[:, d]")
    half = f'{A}, B: T.Tensor((64, 64), "float16")'
    new = agree(gpu_file(half, body + "T.copy(h, B[bx * 32, 0])\n", launch=LAUNCH), {"A": matrix()})
    assert new.count("_cast") >= 3


def test_a_copy_that_was_ended_gets_no_advice() -> None:
    params = 'A: T.Tensor((40, 64), "float32"), B: T.Tensor((40, 64), "float32")'
    result = migrate_text(gpu_file(params, TILE + STORE, launch=LAUNCH), "k.py", NPUIR)
    found = {(d.code, d.help) for d in result.diagnostics}
    assert found == {("TL438", "")}


@pytest.mark.parametrize(
    ("fill", "assigned"),
    [("T.clear(low)", "low = 0.0"), ("T.fill(low, 3)", "low = 3.0"), ("T.fill(low, low + 1)", "low = low + 1")],
)
def test_variables_are_assigned(fill: str, assigned: str) -> None:
    """The compiler rejects fills of them: it reads the variable where it wants the buffer."""
    body = f"""
    low = T.alloc_var("float32")
    x = T.alloc_fragment((32, 64), "float32")
    low = 2.0
    T.copy(A[bx * 32, 0], x)
    {fill}
    for r, c in T.Parallel(32, 64):
        x[r, c] = x[r, c] + low
    T.copy(x, B[bx * 32, 0])
    """
    new = agree(gpu_file(f"{A}, {B}", body, launch=LAUNCH), {"A": matrix()})
    assert assigned in new
    assert fill not in new


_TWO = """import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[1]{jit})
def factory(M, first):
{kernels}
    if first:
        return scale
    return shift
"""
_ONE = """    @T.prim_func
    def {name}(A: T.Tensor((M, 64), "float32"), B: T.Tensor((M, 64), "float32")):
        with T.Kernel(M // 32, {launch}:
            x = T.alloc_shared((32, 64), "float32")
            T.copy(A[bx * 32, 0], x)
            for r, c in T.Parallel(32, 64):
                x[r, c] = x[r, c] * 2.0
            T.copy(x, B[bx * 32, 0])
"""


@pytest.mark.parametrize(
    ("launch", "jit", "target"),
    [
        ("threads=128) as bx", "", "npuir"),
        ("threads=2, is_npu=True) as bx", "", "npuir"),
        ("is_npu=True) as (bx, _)", ', target="npuir"', "ascendc"),
    ],
)
def test_every_kernel_of_a_factory_is_written_for_its_new_target(launch: str, jit: str, target: str) -> None:
    """The first one gives the factory its new target, which does not make the second one a kernel for it."""
    kernels = "\n".join(_ONE.format(name=name, launch=launch) for name in ("scale", "shift"))
    result = migrate_text(_TWO.format(jit=jit, kernels=kernels), "k.py", Options(target=target))
    assert [kernel.disposition for kernel in result.kernels] == ["migrated", "migrated"]
    assert result.new_text is not None
    assert result.new_text.count(launch) == 0


Q = 'Q: T.Tensor((64, 64), "int32")'
INTEGERS = 'q = T.alloc_fragment((32, 64), "int32")\n'
KEEP = "T.copy(q, Q[bx * 32, 0])\n"


@pytest.mark.parametrize(
    "made",
    [
        "T.copy(x, q)\n",
        "T.copy(A[bx * 32, 0], q)\n",
        "T.copy(A[bx * 32 : bx * 32 + 32, 0:32], q[:, 32:64])\nT.copy(x[:, 0:32], q[:, 0:32])\n",
        "for i, j in T.Parallel(32, 64):\n    q[i, j] = T.cast(x[i, j] * 3.0, 'int32')\n",
        "for i, j in T.Parallel(32, 64):\n    q[i, j] = x[i, j] * 3.0\n",
        "for i, j in T.Parallel(32, 64):\n    q[i, j] = T.if_then_else(x[i, j] > 0.0, i + 1, j)\n",
    ],
    ids=["tiles", "load", "parts", "cast", "store", "condition"],
)
def test_floats_that_become_integers_are_cut_off(made: str) -> None:
    new = agree(gpu_file(f"{A}, {Q}", TILE + INTEGERS + made + KEEP, launch=LAUNCH), {"A": 3 * matrix()})
    assert ('round_mode="trunc"' in new) == ("x[i, j] >" not in made)


def test_truths_are_whole_numbers() -> None:
    loops = "for i, j in T.Parallel(32, 64):\n    m[i, j] = x[i, j] > 0.0\n"
    loops += "for i, j in T.Parallel(32, 64):\n    q[i, j] = T.cast(m[i, j], 'int32')\n"
    body = TILE + INTEGERS + 'm = T.alloc_fragment((32, 64), "bool")\n' + loops + KEEP
    assert "T.vcast" not in agree(gpu_file(f"{A}, {Q}", body, launch=LAUNCH), {"A": matrix()})


def test_a_store_of_floats_as_integers_is_cut_off() -> None:
    new = agree(gpu_file(f"{A}, {Q}", TILE + "T.copy(x, Q[bx * 32, 0])\n", launch=LAUNCH), {"A": 3 * matrix()})
    assert 'T.vcast(x, Q_part, round_mode="trunc")' in new


@pytest.mark.parametrize("store", ["q[i, j] = T.cast(x[i, j], 'int32') * 3", "x[i, j] = T.cast(x[i, j], 'int32')"])
def test_a_loop_that_rounds_on_the_way_is_refused(store: str) -> None:
    loop = f"for i, j in T.Parallel(32, 64):\n    {store}\n"
    text = gpu_file(f"{A}, {Q}", TILE + INTEGERS + loop + KEEP, launch=LAUNCH)
    assert refused(text) == [("TL418", store)]


def test_a_converting_load_that_ends_with_its_tensor_keeps_the_rest_of_its_tile() -> None:
    params = 'A: T.Tensor((40, 64), "float16"), B: T.Tensor((64, 64), "float32")'
    new = agree(gpu_file(params, TILE + STORE, launch=LAUNCH), {"A": matrix()[:40].astype(np.float16)})
    assert "T.copy(x_part, x)" in new


def test_a_tensor_of_one_size_ends_a_copy_whatever_the_other_axis_of_the_grid() -> None:
    params = 'A: T.Tensor((46, M), "float32"), B: T.Tensor((46, M), "float32")'
    body = 'x = T.alloc_shared((16, 64), "float32")\nT.copy(A[by * 16, bx * 64], x)\nT.copy(x, B[by * 16, bx * 64])\n'
    launch = "T.Kernel(M // 64, T.ceildiv(46, 16), threads=128) as (bx, by)"
    new = agree(
        gpu_file(params, body, launch=launch).replace("def factory():", "def factory(M=128):"),
        {"A": np.tile(matrix()[:46], (1, 2))},
    )
    assert new.count("T.min(16, 46 - by * 16)") == 1


def test_integers_on_the_way_to_a_float_have_no_tile() -> None:
    loop = "for i, j in T.Parallel(32, 64):\n    x[i, j] = T.cast(T.if_then_else(i > 2, j, i) << 2, 'float32')\n"
    assert [code for code, _ in refused(gpu_file(f"{A}, {B}", TILE + loop + STORE, launch=LAUNCH))] == ["TL418"]


EDGES = """
import argparse
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def add({params}):
    {head}
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((N,), "float32"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 64), threads=128) as (bx, by):
            a = T.alloc_shared((64, 64), "float32")
            b = T.alloc_shared((64,), "float32")
            T.copy(A[by * 64, bx * 64], a)
            T.copy(B[bx * 64], b)
            for i, j in T.Parallel(64, 64):
                a[i, j] = a[i, j] + b[j]
            T.copy(a, C[by * 64, bx * 64])

    return main


{tail}
"""
PARSED = """
parser = argparse.ArgumentParser()
parser.add_argument("--n", type=int, default=512)
args = parser.parse_args()
add({call})
"""


@pytest.mark.parametrize(
    ("params", "head", "tail", "open_", "ended"),
    [
        ("M, N", "", "add(256, 512)", [], 0),
        ("M, N", "", "add(256, 500)", [], 3),
        ("M, N", "", "", [(15, "`M` or `N`", "(also line 19)"), (16, "`N`", "")], 0),
        ("M, N", "", PARSED.format(call="256, args.n"), [(15, "`M` or `N`", "(also line 19)"), (16, "`N`", "")], 0),
        ("N", 'M = T.dynamic("m")', "", [(15, "`M` or `N`", "(also line 19)"), (16, "`N`", "")], 0),
        ("N", 'M = T.dynamic("m")', "add(512)", [(15, "`M`", "(also line 19)")], 0),
        ("N", 'M = T.dynamic("m")', "add(500)", [(15, "`M`", "(also line 19)")], 3),
    ],
)
def test_every_copy_that_may_end_behind_its_tensor_is_told(
    params: str, head: str, tail: str, open_: list[tuple[int, str, str]], ended: int
) -> None:
    """Once for each set of sizes, with all lines; what the command line gives may be something else."""
    text = EDGES.format(params=params, head=head, tail=tail)
    found = migrate_text(text, "k.py", NPUIR).diagnostics
    told = [(d.line, d.message.split(" if ")[1]) for d in found if d.code == "TL439"]
    wanted = [(line, f"{names} is not a multiple of the tile {lines}".rstrip()) for line, names, lines in open_]
    assert told == wanted
    assert sum(d.code == "TL438" for d in found) == ended
