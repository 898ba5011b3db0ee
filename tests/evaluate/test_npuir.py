"""What kernels of AscendNPU IR compute, against NumPy; and that the check of every run refuses wrong ones."""

from __future__ import annotations

from textwrap import dedent, indent
from typing import Any

import numpy as np
import pytest

from tests.evaluate.support import factory, gpu, outcome, values
from tests.fixture_case import load_all
from tl2npu import Options, migrate
from tl2npu.evaluate.values import Fault, NotChecked
from tl2npu.passes.npuir import guarded

RNG = np.random.default_rng(3)
X = RNG.standard_normal((32, 32))
NOTHING = np.full((32, 32), 7.0)
CASES = {case.name: case for case in load_all()}


def npuir(body: str, **more: str) -> str:
    """A kernel with blocks of 16 rows."""
    head = "with T.Kernel(T.ceildiv(M, 16), is_npu=True) as (b, _):\n"
    text = factory(head + indent(dedent(body), "    "), **more)
    return text.replace("out_idx=[1]", 'out_idx=[1], target="npuir"')


def of(statements: str) -> Any:
    """What these make of the first 16 rows of X, in ``x``, in a tile ``y``."""
    body = """
    x = T.alloc_shared((16, N), "float32")
    y = T.alloc_shared((16, N), "float32")
    row = T.alloc_shared((16, 1), "float32")
    T.copy(X[b * 16, 0], x)
    """
    body = dedent(body) + dedent(statements) + "T.copy(y, Y[b * 16, 0])\n"
    return values(npuir(body), {"X": X, "Y": NOTHING}, M=32, N=32)["Y"][:16]


ROWS = X[:16]
MASK = 'c = T.alloc_shared((16, N), "bool")\nT.vcmp(x, 0.0, c, "{}")\nT.vselect(c, x, y, y)\n'


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        ("T.vadd(x, 2.0, y)\n", ROWS + 2),
        ("T.npuir_mul(x, x, y)\n", ROWS * ROWS),
        ("T.reduce_max(x, row, dim=1)\nT.vsub(x, row, y)\n", ROWS - ROWS.max(1, keepdims=True)),
        ("T.vmul(x[:, 0:1], x, y)\n", ROWS[:, :1] * ROWS),
        ("T.vabs(x, x)\nT.vln(x, y)\n", np.log(np.abs(ROWS))),
        ("T.vexp2(x, y, x)\n", 2**ROWS),
        ("T.vbrc(x[:, 3:4], y)\n", np.repeat(ROWS[:, 3:4], 32, 1)),
        ("T.clear(y)\n" + MASK.format("gt"), np.where(ROWS > 0, ROWS, 0)),
        ("T.vclamp(x, y, -0.5, 0.5)\n", np.clip(ROWS, -0.5, 0.5)),
        (
            "T.clear(row)\nT.reduce_sum(x, row, dim=1, clear=False)\nT.vbrc(row, y)\n",
            ROWS.sum(1, keepdims=True) + 0 * ROWS,
        ),
        ('n = T.alloc_shared((16, N), "int32")\nT.vcast(x, n)\nT.vcast(n, y)\n', np.rint(ROWS)),
        ('n = T.alloc_shared((16, N), "int32")\nT.vcast(x, n, round_mode="trunc")\nT.vcast(n, y)\n', np.trunc(ROWS)),
        ('n = T.alloc_shared((16, N), "int32")\nT.copy(x, n)\nT.copy(n, y)\n', np.rint(ROWS)),
        ("T.arange(y, [32, 1], 5)\n", np.arange(512).reshape(16, 32) + 5),
        ("T.clear(y)\nT.gemm(x, x, y, size=[16, 16, 32], initC=True)\n", ROWS[:, :16] @ ROWS),
        ("T.vadd(x, 1.0, y)\nT.gemm(x, x, y[:, 0:16], b_transpose=True, initC=b == 0)\n", None),
    ],
    ids=lambda value: value.strip().replace("\n", "; ") if isinstance(value, str) else "",
)
def test_operators(statements: str, expected: Any) -> None:
    if expected is None:
        expected = np.concatenate([ROWS @ ROWS.T, ROWS[:, 16:] + 1], 1)
    np.testing.assert_allclose(of(statements), expected, rtol=1e-12)


def test_a_tile_on_the_way_is_lost() -> None:
    assert np.isnan(of("T.vexp2(x, y, x)\nT.copy(x, y)\n")).all()


def test_a_copy_that_converts_into_a_part_makes_the_tile_anew() -> None:
    found = of('h = T.alloc_shared((16, N), "float16")\nT.copy(x, h)\nT.copy(x, y)\nT.copy(h[:, 0:8], y[:, 8:16])\n')
    np.testing.assert_array_equal(found[:, 8:16], ROWS[:, :8])
    assert np.isnan(found[:, :8]).all()
    assert np.isnan(found[:, 16:]).all()


def test_both_vector_cores_have_one_program() -> None:
    np.testing.assert_allclose(of("T.vadd(x, 1.0, x)\nT.vadd(x, 1.0, x)\nT.copy(x, y)\n"), ROWS + 2, rtol=1e-12)


def test_nothing_is_clamped() -> None:
    text = npuir('x = T.alloc_shared((16, N), "float32")\nT.copy(X[b * 16, 0], x)\nT.copy(x, Y[b * 16, 0])\n')
    with pytest.raises(NotChecked, match="ends behind `X`"):
        values(text, {"X": np.zeros((20, 32)), "Y": np.zeros((20, 32))}, M=20, N=32)
    with pytest.raises(Fault, match="do not fit"):
        of('z = T.alloc_shared((16, 3), "float32")\nT.vadd(x, z, y)\n')


def test_a_program_for_each_core_is_not_checked() -> None:
    body = 'with T.Scope("Vector"):\n    T.vadd(x, 1.0, y)\n'
    with pytest.raises(NotChecked, match="programs of their own"):
        of(body)


GPU = """
x = T.alloc_fragment((16, N), "float32")
T.copy(X[b * 16, 0], x)
for i, j in T.Parallel(16, N):
    x[i, j] = T.exp(x[i, j]) * {}
T.copy(x, Y[b * 16, 0])
"""
NPUIR = """
x = T.alloc_shared((16, N), "float32")
T.copy(X[b * 16, 0], x)
T.vexp(x, x)
T.vmul(x, {}, x)
T.copy(x, Y[b * 16, 0])
"""


def test_a_difference_is_found() -> None:
    assert outcome(gpu(GPU.format(2.0)), npuir(NPUIR.format(2.0))).equal is True
    assert outcome(gpu(GPU.format(2.0)), npuir(NPUIR.format(3.0))).equal is False
    assert outcome(npuir(NPUIR.format(2.0)), gpu(GPU.format(3.0))).equal is False


def test_where_tiles_end_behind_tensors_whole_ones_are_compared() -> None:
    for factor, equal in ((2.0, True), (3.0, False)):
        found = outcome(gpu(GPU.format(2.0), call="kernel(40, 32)"), npuir(NPUIR.format(factor), call="kernel(40, 32)"))
        assert found.equal is equal
        assert "M=128" in found.shown_sizes


def test_how_a_loop_rounds_is_not_known() -> None:
    loop = 'n = T.alloc_shared((16, N), "int32")\nfor i, j in T.Parallel(16, N):\n    n[i, j] = {}\nT.vcast(n, y)\n'
    np.testing.assert_array_equal(
        of(loop.format("T.cast(i * 2.0, 'int32')")), np.full((16, 32), 2 * np.arange(16)[:, None])
    )
    for value in ("T.cast(x[i, j], 'int32')", "x[i, j]"):
        with pytest.raises(NotChecked, match="how a loop rounds"):
            of(loop.format(value))


def test_what_is_migrated_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table holds -1 for no row, at which a GPU reads zeros: with the branch that sees to it, and without."""
    text = CASES["gpu/selected_rows"].before
    (kernel,) = migrate(text, filename="k.py", options=Options(target="npuir")).kernels
    assert kernel.checked is not None
    assert kernel.checked.equal
    monkeypatch.setattr(guarded, "_row_of_table", lambda *_: None)
    (kernel,) = migrate(text, filename="k.py", options=Options(target="npuir")).kernels
    assert kernel.disposition == "refused"
    assert "TL970" in kernel.codes
