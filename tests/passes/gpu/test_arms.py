"""TL622: tiles for masks are made under the condition of Python that asks for the mask; those of both arms are one."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import agree, gpu_file, result_of

X = np.random.default_rng(2).normal(size=(64, 64)).astype(np.float32)
BODY = """
x = T.alloc_shared((64, 64), "float32")
T.copy(X, x)
{0}
T.copy(x, Y)
"""
BELOW = "for i, j in T.Parallel(64, 64):\n        x[i, j] = T.if_then_else(i >= j, x[i, j], 0.0)"
TAIL = "for i, j in T.Parallel(64, 64):\n        x[i, j] = T.if_then_else(j < n, x[i, j], 0.0)"
PARAMS = 'X: T.Tensor((64, 64), "float32"), Y: T.Tensor((64, 64), "float32")'


def new_text(body: str, args: tuple[object, ...], threads: str = "auto") -> str:
    launch = "T.Kernel(1, threads=128) as bx"
    text = gpu_file(PARAMS, BODY.format(body), launch=launch, args="causal, n")
    return agree(text, {"X": X}, args=args, threads=threads)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("threads", ["auto", "1"])
def test_each_arm_makes_the_tile(causal: bool, threads: str) -> None:
    lines = new_text(f"if causal:\n    {BELOW}\nelse:\n    {TAIL}", (causal, 40), threads).splitlines()
    start = next(number for number, line in enumerate(lines) if line.strip() == "if causal:")
    end = next(number for number, line in enumerate(lines) if "T.copy(X, x)" in line)
    made = lines[start:end]
    assert [line.strip() for line in made if line.strip() in ("if causal:", "else:")] == ["if causal:", "else:"]
    assert any("T.tile.sub(column[i, :]" in line for line in made)
    assert any("column[i, j] = index[j]" in line for line in made)
    assert sum("(64, 64)" in line and "T.alloc_" in line for line in lines) == 2  # `x`, and this one


@pytest.mark.parametrize("causal", [True, False])
def test_a_tile_that_each_arm_stores_from(causal: bool) -> None:
    """It is allocated where both see it, and keeps its name."""
    arms = [f"for i, j in T.Parallel(64, 64):\n            Y[i, j] = x[{at}]" for at in ("i, 63 - j", "63 - i, j")]
    new = new_text(
        f"for k in T.serial(2):\n    if causal:\n        {arms[0]}\n    else:\n        {arms[1]}", (causal, 40)
    )
    assert new.count("alloc_") == 2
    assert "y_tile = T.alloc_" in new


@pytest.mark.parametrize("test", ["n > 3", "not causal and n > 3"])
def test_arms_that_may_both_be_taken_have_tiles_of_their_own(test: str) -> None:
    """For all that the texts of the conditions say: only the two arms of one are known to be contrary."""
    new = new_text(f"if causal:\n    {BELOW}\nif {test}:\n    {TAIL}", (True, 40))
    assert "column_minus_row = " in new
    assert "column_indices = " in new


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(
    ("body", "head"),
    [
        (f"if causal:\n    {BELOW}", "if causal:"),
        (f"if not causal:\n    {BELOW}", "if not causal:"),
        (f"if causal:\n    T.copy(x, Y)\nelse:\n    {BELOW}", "if not causal:"),
        (f"if causal:\n    if n > 50:\n        T.copy(x, Y)\n    {BELOW}", "if causal:"),
        (f"for k in T.serial(2):\n    if causal:\n        {BELOW.replace('    x', '        x')}", "if causal:"),
    ],
)
def test_one_arm(body: str, head: str, causal: bool) -> None:
    lines = new_text(body, (causal, 40)).splitlines()
    fill = next(number for number, line in enumerate(lines) if "T.tile.fill(column_minus_row" in line)
    assert head in [line.strip() for line in lines[fill - 2 : fill]]


@pytest.mark.parametrize(
    "body",
    [
        f"late = bx > 0\nif late:\n    {BELOW}",  # decided by each block
        f"if causal:\n    {BELOW}\n{BELOW.replace('        ', '    ')}",  # read outside of the arm, too
        f"if causal:\n    {BELOW}\nif n > 3:\n    {BELOW}",
        f"causal_now = causal\nif causal_now:\n    {BELOW}",  # a name of the kernel, bound behind the tile
    ],
)
def test_it_stays_where_it_is(body: str) -> None:
    lines = new_text(body, (True, 40)).splitlines()
    (fill,) = (line for line in lines if "T.tile.fill(column_minus_row" in line)
    assert len(fill) - len(fill.lstrip()) == 12


def test_a_second_kernel_of_a_file_is_treated_like_the_first() -> None:
    """Its tiles have names that the file has already, from the first one."""
    body = BODY.format(f"if causal:\n    {BELOW}")
    one = gpu_file(PARAMS, body, launch="T.Kernel(1, threads=128) as bx", args="causal, n")
    two = one + one.partition("\n\n\n")[2].replace("def factory", "def second").join(["\n\n", ""])
    new = result_of(two).new_text or ""
    assert new.count("            if causal:\n                T.tile.createvecindex(") == 2
