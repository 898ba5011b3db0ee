"""Operators in whole kernels: block order, registers, views, output, regions with gaps, refusals with their line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.simulator.kernels import HEADER, load
from tl2npu.simulator.errors import SimulatorError, UnsupportedOperator
from tl2npu.simulator.standin.session import Session

X = np.arange(64, dtype=np.float32).reshape(4, 16)


def run(
    body: str, x: np.ndarray = X, out: str = '(4, 16), "float32"', blocks: int = 1, reading: str = "actual"
) -> np.ndarray:
    """A kernel of vector code on ``A`` (``a`` in UB) with the output ``C`` (``c`` in UB)."""
    lines = "\n".join(f"            {line}" for line in body.strip("\n").split("\n"))
    kind = x.dtype.name
    text = f"""{HEADER}
@tilelang.jit(out_idx=[1], pass_configs=ALL)
def factory():
    @T.prim_func
    def main(A: T.Tensor({x.shape}, "{kind}"), C: T.Tensor({out})):
        with T.Kernel({blocks}, is_npu=True, threads=1) as (cid):
            a = T.alloc_ub({x.shape}, "{kind}")
            c = T.alloc_ub({out})
            T.copy(A, a)
{lines}
    return main
"""
    found: np.ndarray = load(text, Session(reading=reading))["factory"]()(x.copy())
    return found


def test_a_scalar_operand_is_one_element() -> None:
    body = """
s = T.alloc_ub((4, 1), "float32")
for i in range(4):
    s[i, 0] = a[i, 1]
for i in range(4):
    T.tile.mul(c[i, :], a[i, :], s[i, 0])
T.copy(c, C)
"""
    np.testing.assert_array_equal(run(body), X * X[:, 1:2])


@pytest.mark.parametrize("reading", ["ideal", "actual"])
def test_of_several_indices_the_compiler_keeps_the_first(reading: str) -> None:
    found = run("for i in range(4):\n    T.tile.mul(c[i, :], a[i, :], a[i, 1])\nT.copy(c, C)", reading=reading)
    np.testing.assert_array_equal(found, X * (X[:, 1:2] if reading == "ideal" else X[0, :4, None]))


def test_a_region_with_gaps_is_an_error_with_its_line() -> None:
    with pytest.raises(SimulatorError, match=r"<kernel \d+>:\d+: T.tile.add: dst is c\[4, 8\], a region with gaps"):
        run("T.tile.add(c[:, 0:8], a[:, 0:8], 1.0)\nT.copy(c, C)")
    found = run(
        "T.tile.add(c[1:3, :], a[1:3, :], 1.0)\nT.tile.fill(c[0, :], 0.0)\nT.tile.fill(c[3, :], 0.0)\nT.copy(c, C)"
    )
    np.testing.assert_array_equal(found[1:3], X[1:3] + 1)


def test_an_error_of_an_operator_names_the_line() -> None:
    with pytest.raises(SimulatorError, match=r"<kernel \d+>:\d+: T.tile.exp: \[16\] \(16 elements\) does not fit"):
        run("T.tile.exp(c, a[0, :])\nT.copy(c, C)")


@pytest.mark.parametrize(
    ("text", "reason"), [("T.cumsum(a, c)", "dropped"), ("T.call_extern('handle', 'f')", "foreign|code")]
)
def test_a_refused_name_is_refused_where_it_stands(text: str, reason: str) -> None:
    with pytest.raises(UnsupportedOperator, match=reason):
        run(f"{text}\nT.copy(c, C)")


def test_a_reinterpreted_buffer_shares_memory() -> None:
    body = """
bits = T.alloc_ub((4, 16), "int32")
T.reinterpretcast(bits, a, "int")
T.tile.bitwise_rshift(bits, bits, 23)
T.copy(bits, C)
"""
    found = run(body, x=np.exp2(X), out='(4, 16), "int32"')
    np.testing.assert_array_equal(found, np.arange(64).reshape(4, 16) + 127)
    back = run("""
bits = T.alloc_ub((4, 16), "int32")
T.reinterpretcast(bits, a, "int")
T.tile.fill(bits, 0x40490FDB)
T.tile.add(c, a, 0.0)
T.copy(c, C)
""")
    np.testing.assert_array_equal(back, np.full((4, 16), np.float32(np.pi)))


def test_a_reinterpreted_buffer_has_its_declared_type() -> None:
    body = 'b = T.alloc_ub((4, 16), "int32")\nT.reinterpretcast(b, a, "int16_t")\nT.copy(a, C)'
    with pytest.raises(SimulatorError, match="declared as int32"):
        run(body)
    with pytest.raises(SimulatorError, match="more bytes"):
        run('b = T.alloc_ub((4, 17), "int32")\nT.reinterpretcast(b, a, "int")\nT.copy(a, C)')


def test_the_scale_of_a_cast_is_kept_by_the_core() -> None:
    body = """
h = T.alloc_ub((4, 16), "float16")
T.set_deq_scale(0.25)
T.copy(a, h)
T.copy(h, C)
"""
    found = run(body, x=X.astype(np.int32), out='(4, 16), "float16"')
    np.testing.assert_array_equal(found, X / 4)


def test_output(capsys: pytest.CaptureFixture[str]) -> None:
    run('T.printf("%d of %s: %.2f%%\\n", cid, "a", a[0, 3])\nT.dump_tensor(a, 7, 3)\nT.copy(a, C)')
    printed = capsys.readouterr().out
    assert "0 of a: 3.00%\n" in printed
    assert "dump_tensor 7: a[4, 16] float32 [0., 1., 2.]" in printed


def test_conversions_and_values_have_to_agree() -> None:
    with pytest.raises(SimulatorError, match="more conversions"):
        run('T.printf("%d %d\\n", cid)\nT.copy(a, C)')


def test_branches_in_the_form_of_the_builder() -> None:
    body = """
for i in T.serial(4):
    with T.If(i >= 2):
        with T.Then():
            T.tile.fill(c[i, :], 1.0)
        with T.Else():
            T.tile.fill(c[i, :], 5.0)
with T.If(False):
    with T.Then():
        T.tile.fill(c[0, :], 9.0)
T.copy(c, C)
"""
    np.testing.assert_array_equal(run(body)[:, 0], [5, 5, 1, 1])


# The order of catlass for a grid of 5 x 4 tiles in stripes of 2, written down by hand.
ROWS_FIRST = [
    *[(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2), (0, 3), (1, 3)],
    *[(2, 3), (3, 3), (2, 2), (3, 2), (2, 1), (3, 1), (2, 0), (3, 0)],
    *[(4, 0), (4, 1), (4, 2), (4, 3)],
]
COLUMNS_FIRST = [
    *[(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (3, 1), (4, 0), (4, 1)],
    *[(4, 2), (4, 3), (3, 2), (3, 3), (2, 2), (2, 3), (1, 2), (1, 3), (0, 2), (0, 3)],
]


@pytest.mark.parametrize(("direction", "order"), [(0, ROWS_FIRST), (1, COLUMNS_FIRST)])
@pytest.mark.parametrize("name", ["use_swizzle", "npu_use_swizzle"])
def test_the_order_of_blocks(name: str, direction: int, order: list[tuple[int, int]]) -> None:
    body = f"""
p = T.{name}(cid, 80, 64, 32, 16, 16, off=2, dir={direction})
T.tile.fill(c, p)
T.copy(c, C[cid, 0])
"""
    text = f"""{HEADER}
@tilelang.jit(out_idx=[0], pass_configs=ALL)
def factory():
    @T.prim_func
    def main(C: T.Tensor((20, 8), "int32")):
        with T.Kernel(20, is_npu=True, threads=1) as (cid):
            c = T.alloc_ub((1, 8), "int32")
{"".join(f"            {line}" + chr(10) for line in body.strip().split(chr(10)))}
    return main
"""
    found: Any = load(text)["factory"]()()
    np.testing.assert_array_equal(found[:, 0], [4 * row + column for row, column in order])
