"""Ascend kernels in Developer mode, Expert mode and with workspaces, written for AscendNPU IR and compared with it."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

import numpy as np
import pytest

from tests.passes.simulated import run
from tl2npu.migration import check_text, migrate_text
from tl2npu.options import Options
from tl2npu.results import FileResult
from tl2npu.simulator.lowering.lower import IDEAL

NPUIR = Options(target="npuir")
LAUNCH = "T.Kernel(2, threads=1, is_npu=True) as (cid)"


def ascend(params: str, body: str, launch: str = LAUNCH, head: str = "import tilelang.language as T") -> str:
    """A factory ``factory()`` with one kernel; ``body`` is what the launch runs."""
    lines = ["import tilelang", head, "", "", "@tilelang.jit(out_idx=[-1])", "def factory():"]
    lines += ["    @T.prim_func", f"    def main({params}):", f"        with {launch}:"]
    lines += [textwrap.indent(textwrap.dedent(body).strip("\n"), " " * 12), "", "    return main"]
    return "\n".join(lines) + "\n"


def result_of(text: str) -> FileResult:
    result = migrate_text(text, "k.py", NPUIR)
    assert result.error is None
    return result


def agree(text: str, inputs: Mapping[str, np.ndarray], tolerance: float = 1e-3) -> str:
    """Migrate, check, run both; every tensor that the old kernel wrote must come out the same."""
    result = result_of(text)
    (kernel,) = result.kernels
    assert (kernel.disposition, kernel.target) == ("migrated", "npuir"), [
        (d.code, d.message) for d in result.diagnostics
    ]
    new = result.new_text
    assert new is not None
    assert [d for d in check_text(new, "k.py", Options()).diagnostics if d.severity == "error"] == []
    assert result_of(new).new_text == new
    old, found = run(text, inputs, reading=IDEAL), run(new, inputs)
    for name, expected in old.items():
        np.testing.assert_allclose(
            found[name].astype(np.float64), expected.astype(np.float64), tolerance, tolerance, err_msg=name
        )
    return new


def refused(text: str) -> list[tuple[str, int]]:
    result = result_of(text)
    assert result.new_text == text
    return [(d.code, d.line) for d in result.diagnostics if d.severity == "error"]


def draw(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.random.default_rng(5).standard_normal(shape).astype(dtype)


X, Y = 'X: T.Tensor((64, 32), "float32")', 'Y: T.Tensor((64, 32), "float32")'
LOADED = """
x = T.alloc_shared((32, 32), "float32")
y = T.alloc_shared((32, 32), "float32")
T.copy(X[cid * 32, 0], x)
"""
STORED = "T.copy(y, Y[cid * 32, 0])\n"


@pytest.mark.parametrize(
    ("old", "new", "function"),
    [
        ("T.tile.sub(y, x, 2.5)", "T.vsub(x, 2.5, y)", lambda x: x - 2.5),
        ("T.tile.div(y, y, x)", "T.vdiv(y, x, y)", lambda x: 3.0 / x),
        ("T.tile.max(dst=y, src0=x, src1=y)", "T.vmax(x, y, y)", lambda x: np.maximum(x, 3.0)),
        ("T.tile.reciprocal(y, x)", "T.vrec(x, y)", lambda x: 1 / x),
        ("T.tile.clamp(y, x, -0.5, 0.5, 32 * 32)", "T.vclamp(x, y, -0.5, 0.5)", lambda x: np.clip(x, -0.5, 0.5)),
        ("T.tile.axpy(y, x, -2.0)", "y[i, j] = y[i, j] + x[i, j] * (-2.0)", lambda x: 3.0 - 2.0 * x),
        ("T.tile.silu(y, x)", "T.vmul(x, y, y)", lambda x: x / (1 + np.exp(-x))),
    ],
)
def test_operators_with_the_destination_last(old: str, new: str, function) -> None:  # type: ignore[no-untyped-def]
    text = ascend(f"{X}, {Y}", LOADED + "T.tile.fill(y, 3.0)\n" + old + "\n" + STORED)
    x = draw(64, 32)
    out = agree(text, {"X": x})
    assert new in out
    np.testing.assert_allclose(run(out, {"X": x})["Y"], function(x), 1e-4, 1e-4)


def test_rows_columns_and_their_order() -> None:
    """A loop over rows with one vector along each axis, and the vectors' own way to global memory."""
    body = """
    x = T.alloc_shared((32, 32), "float32")
    peak = T.alloc_shared((32,), "float32")
    half = T.alloc_shared((32,), "float32")
    bias = T.alloc_shared([32], "float32")
    T.copy(X[cid * 32, 0], x)
    T.copy(B, bias)
    T.reduce_max(x, peak, dim=-1)
    T.tile.mul(half, peak, 0.5)
    for r in range(32):
        T.tile.sub(x[r, :], x[r, :], half[r])
        T.tile.mul(x[r, :], x[r, :], bias)
    T.copy(half, M[cid * 32])
    T.copy(x, Y[cid * 32, 0])
    """
    params = f'{X}, B: T.Tensor((32,), "float32"), M: T.Tensor((64,), "float32"), {Y}'
    x, b = draw(64, 32), draw(32)
    out = agree(ascend(params, body), {"X": x, "B": b})
    assert 'half = T.alloc_shared((32, 1), "float32")' in out
    assert 'bias = T.alloc_shared([1, 32], "float32")' in out
    assert "T.vsub(x, half, x)" in out
    assert "for r" not in out
    half = x.max(1) / 2
    np.testing.assert_allclose(run(out, {"X": x, "B": b})["Y"], (x - half[:, None]) * b, 1e-5, 1e-5)


def test_a_loop_over_some_rows_stays() -> None:
    body = LOADED + "T.tile.fill(y, 0.0)\nfor r in range(8):\n    T.tile.exp(y[r, :], x[r, :])\n" + STORED
    out = agree(ascend(f"{X}, {Y}", body), {"X": draw(64, 32)})
    assert "T.vexp(x[r, :], y[r, :])" in out


GEMM = """
a = T.alloc_shared((32, 32), "float16")
b = T.alloc_shared((32, 32), "float16")
c = T.alloc_fragment((32, 32), "float32")
u = T.alloc_shared((32, 32), "float32")
v = T.alloc_shared((32, 32), "float32")
T.copy(A[cid * 32, 0], a)
T.copy(B, b)
"""
MATRICES = 'A: T.Tensor((64, 32), "float16"), B: T.Tensor((32, 32), "float16"), C: T.Tensor((64, 32), "float32")'
HALVES = {"A": draw(64, 32, dtype="float16"), "B": draw(32, 32, dtype="float16")}


def test_a_hand_over_is_one_tile() -> None:
    out = agree(
        ascend(
            MATRICES, GEMM + "T.gemm_v0(a, b, c, init=True)\nT.copy(c, u)\nT.tile.exp(v, u)\nT.copy(v, C[cid * 32, 0])"
        ),
        HALVES,
        1e-2,
    )
    assert "T.vexp(c, v)" in out
    assert "u = " not in out


def test_a_hand_over_whose_source_goes_on_is_a_copy() -> None:
    """The product is accumulated further after the vector cores have taken and changed it."""
    body = """
    T.tile.fill(v, 0.0)
    for k in T.serial(3):
        T.gemm_v0(a, b, c, init=(k == 0))
        T.copy(c, u)
        T.tile.mul(u, u, 2.0)
        T.tile.add(v, v, u)
    T.copy(v, C[cid * 32, 0])
    """
    out = agree(ascend(MATRICES, GEMM + textwrap.dedent(body)), HALVES, 1e-2)
    assert "T.copy(c, u)" in out
    product = HALVES["A"].astype("float32") @ HALVES["B"].astype("float32")
    np.testing.assert_allclose(run(out, HALVES)["C"], 12 * product, 2e-2, 2e-2)


def test_statements_come_in_the_order_of_their_data() -> None:
    """The gemm stands above the rows that make its operand, as Ascend C allows."""
    body = """
    a = T.alloc_shared((32, 32), "float16")
    b = T.alloc_shared((32, 32), "float16")
    row = T.alloc_shared((32,), "float16")
    c = T.alloc_fragment((32, 32), "float32")
    T.copy(B, b)
    for k in T.serial(2):
        T.gemm_v0(a, b, c, init=(k == 0))
        for r in range(32):
            T.copy(A[k * 32 + r, :], row)
            T.copy(row, a[r, :])
    T.copy(c, C[cid * 32, 0])
    """
    text = ascend(MATRICES, body)
    out = result_of(text).new_text
    assert out is not None
    assert out.index("T.copy(row") < out.index("T.gemm(")
    expected = (HALVES["A"][:32].astype("float32") + HALVES["A"][32:].astype("float32")) @ HALVES["B"].astype("float32")
    np.testing.assert_allclose(run(out, HALVES)["C"], np.tile(expected, (2, 1)), 1e-2, 1e-2)


def test_two_loops_that_exchange_a_tile_become_one() -> None:
    body = """
    T.tile.fill(v, 0.0)
    for k in T.serial(3):
        T.gemm_v0(a, b, c, init=True)
        T.copy(c, u)
    for n in T.serial(3):
        T.tile.add(v, v, u)
    T.copy(v, C[cid * 32, 0])
    """
    out = result_of(ascend(MATRICES, GEMM + textwrap.dedent(body))).new_text
    assert out is not None
    assert out.count("T.serial(3)") == 1
    product = HALVES["A"].astype("float32") @ HALVES["B"].astype("float32")
    np.testing.assert_allclose(run(out, HALVES)["C"], 3 * product, 1e-2, 1e-2)


def test_loops_that_run_unequally_often_are_refused() -> None:
    body = """
    T.tile.fill(v, 0.0)
    for k in T.serial(3):
        T.gemm_v0(a, b, c, init=True)
        T.copy(c, u)
    for n in T.serial(2):
        T.tile.add(v, v, u)
    T.copy(v, C[cid * 32, 0])
    """
    assert refused(ascend(MATRICES, GEMM + textwrap.dedent(body)))[0][0] == "TL437"


def test_bit_masks_are_refused() -> None:
    body = (
        LOADED
        + textwrap.dedent("""
    mask = T.alloc_shared((32 * 32 // 8,), "uint8")
    T.tile.fill(y, 1.0)
    T.tile.compare(mask, x, y, "GT")
    T.tile.select(y, mask, x, y, "VSEL_TENSOR_TENSOR_MODE")
    """)
        + STORED
    )
    assert [code for code, _ in refused(ascend(f"{X}, {Y}", body))] == ["TL428"]


def test_vector_cores_with_work_of_their_own_are_blocks() -> None:
    body = """
    x = T.alloc_ub((32,), "float32")
    for turn in T.serial(32):
        if turn % 2 == vid:
            T.copy(X[cid * 32 + turn, 0], x)
            T.tile.exp(x, x)
            T.copy(x, Y[cid * 32 + turn, 0])
    """
    out = agree(ascend(f"{X}, {Y}", body, "T.Kernel(2, is_npu=True) as (cid, vid)"), {"X": draw(64, 32)})
    assert "T.Kernel(2 * 2, is_npu=True) as (block, _)" in out


def test_halves_of_rows_become_whole_tiles() -> None:
    body = """
    x = T.alloc_ub((16, 32), "float32")
    T.copy(X[cid * 32 + vid * 16, 0], x)
    T.tile.exp(x, x)
    T.copy(x, Y[cid * 32 + vid * 16, 0])
    """
    out = agree(ascend(f"{X}, {Y}", body, "T.Kernel(2, is_npu=True) as (cid, vid)"), {"X": draw(64, 32)})
    assert 'T.alloc_shared((32, 32), "float32")' in out
    assert "T.Kernel(2, is_npu=True) as (cid, _)" in out


def test_persistent_tiles() -> None:
    body = """
    x = T.alloc_shared((16, 16), "float32")
    for i, j in T.Persistent([4, 2], 3, cid):
        T.copy(X[i * 16, j * 16], x)
        T.tile.exp(x, x)
        T.copy(x, Y[i * 16, j * 16])
    """
    out = agree(ascend(f"{X}, {Y}", body, "T.Kernel(3, is_npu=True) as (cid, _)"), {"X": draw(64, 32)})
    assert "Persistent" not in out


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("T.tile.fill(y[0:8, :], 1.0)", "TL430"),
        ("T.tile.sort(y, x, 1024)", "TL428"),
        ("T.printf('%f', x)", "TL428"),
        ("T.tile.cast(y, x, 'CAST_FLOOR', 512)", "TL430"),
        ("T.copy(x, y, enable_relu=True)", "TL428"),
    ],
)
def test_what_has_no_counterpart_is_refused(statement: str, code: str) -> None:
    text = ascend(f"{X}, {Y}", LOADED + "T.tile.fill(y, 0.0)\n" + statement + "\n" + STORED)
    assert refused(text) == [(code, text[: text.index(statement)].count("\n") + 1)]


def test_other_names_for_the_language() -> None:
    text = ascend(f"{X}, {Y}", LOADED + "T.tile.fill(y, 0.5)\nT.tile.add(y, y, x)\n" + STORED)
    other = text.replace("import tilelang.language as T", "from tilelang import language as tl").replace("T.", "tl.")
    other = other.replace("tl.tile.add(y, y, x)", "tl.tile.add(src1=x, dst=y, src0=y)")
    assert "tl.vadd(y, x, y)" in agree(other, {"X": draw(64, 32)})


def test_copies_end_with_their_tensors() -> None:
    """50 rows in tiles of 32, and a sum over columns in tiles of 32 that has 40: the rest counts as zero."""
    body = """
    x = T.alloc_shared((32, 32), "float32")
    total = T.alloc_shared((32,), "float32")
    part = T.alloc_shared((32,), "float32")
    T.tile.fill(total, 0.0)
    for k in T.serial(2):
        T.copy(X[cid * 32, k * 32], x)
        T.reduce_sum(x, part, dim=-1)
        T.tile.add(total, total, part)
    T.copy(total, Y[cid * 32])
    """
    text = ascend('X: T.Tensor((50, 40), "float32"), Y: T.Tensor((50,), "float32")', body)
    x = draw(50, 40)
    out = agree(text, {"X": x})
    assert "T.min(32, 50 - cid * 32)" in out
    np.testing.assert_allclose(run(out, {"X": x})["Y"], x.sum(1), 1e-4, 1e-4)


def test_sizes_that_nobody_gives_are_reported() -> None:
    text = ascend(f"{X}, {Y}", LOADED + "T.tile.exp(y, x)\n" + STORED).replace("(64, 32)", "(M, 32)")
    text = text.replace("def factory()", "def factory(M)").replace("T.Kernel(2", "T.Kernel(T.ceildiv(M, 32)")
    result = result_of(text)
    assert {d.code for d in result.diagnostics if d.severity == "warning"} == {"TL439"}
    assert result.kernels[0].disposition == "migrated"
