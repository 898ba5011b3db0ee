"""TL137: tiles that pass a value on are one tile, and what is there already is not loaded or computed again."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.passes.gpu.support import agree, gpu_file, migrated
from tests.passes.simulated import run

RNG = np.random.default_rng(11)
HALVES = {name: RNG.standard_normal((64, 64)).astype(np.float16) for name in "XYZ"}
PARAMS = ", ".join(f'{name}: T.Tensor((64, 64), "float16")' for name in "XYZ") + ', O: T.Tensor((64, 64), "float16")'
FULL = PARAMS.replace('O: T.Tensor((64, 64), "float16")', 'O: T.Tensor((64, 64), "float32")')
LOADED = """
x = T.alloc_fragment((64, 64), "float32")
y = T.alloc_fragment((64, 64), "float32")
o = T.alloc_fragment((64, 64), "float16")
T.copy(X, x)
T.copy(Y, y)
"""


def new_text(body: str, params: str = PARAMS) -> str:
    """The migrated kernel, compared with the old one."""
    file = gpu_file(params, body, launch="T.Kernel(1, threads=128) as bx")
    return agree(file, {name: value for name, value in HALVES.items() if f"{name}:" in params}, rtol=2e-2, atol=2e-2)


def test_a_step_is_taken_in_place() -> None:
    new = new_text(LOADED + "for i, j in T.Parallel(64, 64):\n    o[i, j] = x[i, j] * y[i, j] * 0.5\nT.copy(o, O)")
    assert "x[i, j] = x[i, j] * y[i, j] * 0.5" in new
    assert not re.search(r"(_times_\w+|o_f32) = T.alloc", new)


@pytest.mark.parametrize(
    "later",
    [
        "for i, j in T.Parallel(64, 64):\n    x[i, j] = x[i, j] + y[i, j]\nT.copy(x, o)\n",
        "for i, j in T.Parallel(64, 64):\n    y[i, j] = y[i, j] * x[i, j]\nT.copy(y, o)\n",
    ],
)
def test_what_is_wanted_later_stays(later: str) -> None:
    first = "for i, j in T.Parallel(64, 64):\n    o[i, j] = x[i, j] * y[i, j]\nT.copy(o, O[:, :])\n"
    new = new_text(LOADED + first + later + "T.copy(o, O)")
    assert "x_times_y = T.alloc" in new or "o_f32 = T.alloc" in new


def test_an_expression_may_read_its_own_place() -> None:
    body = "for i, j in T.Parallel(64, 64):\n    o[i, j] = T.exp(x[i, j]) + x[i, j]\nT.copy(o, O)"
    assert "x[i, j] = T.exp(x[i, j]) + x[i, j]" in new_text(LOADED + body)


def test_an_operator_that_reads_its_operand_again_has_a_tile_of_its_own() -> None:
    """In place the sigmoid is wrong for target pto (TL750)."""
    body = "for i, j in T.Parallel(64, 64):\n    o[i, j] = T.sigmoid(x[i, j] + y[i, j]) * 2.0\nT.copy(o, O)"
    result, operand = re.findall(r"T.tile.sigmoid\((\w+)\[.*?\], (\w+)\[", new_text(LOADED + body))[0]
    assert result != operand


def test_a_value_that_a_later_statement_of_the_loop_reads_stays() -> None:
    body = """
for i, j in T.Parallel(64, 64):
    o[i, j] = x[i, j] * y[i, j]
    y[i, j] = y[i, j] + x[i, j]
T.copy(o, O)
T.copy(y, o)
T.copy(o, O)
"""
    assert "x[i, j] = x[i, j] * y[i, j]" not in new_text(LOADED + body)


def test_a_value_of_the_turn_before_stays() -> None:
    body = """
    for k in T.serial(2):
        for i, j in T.Parallel(64, 64):
            o[i, j] = x[i, j] * 2.0
        for i, j in T.Parallel(64, 64):
            y[i, j] = y[i, j] + x[i, j]
    for i, j in T.Parallel(64, 64):
        y[i, j] = y[i, j] + x[i, j]
    T.copy(y, o)
    T.copy(o, O)
    """
    assert "x[i, j] = x[i, j] * 2.0" not in new_text(LOADED + "\n".join(line[4:] for line in body.splitlines()))


GEMMS = """
a = T.alloc_shared((64, 64), "float16")
b = T.alloc_shared((64, 64), "float16")
p = T.alloc_fragment((64, 64), "float32")
p_cast = T.alloc_fragment((64, 64), "float16")
p_shared = T.alloc_shared((64, 64), "float16")
c = T.alloc_fragment((64, 64), "float32")
T.copy(X, a)
T.copy(Y, b)
T.gemm(a, b, p, clear_accum=True)
for i, j in T.Parallel(64, 64):
    p[i, j] = p[i, j] * 0.125
T.copy(p, p_cast)
T.clear(c)
T.gemm(p_cast, b, c)
T.copy(p_cast, p_shared)
{change}
T.gemm(p_shared, a, c, transpose_A=True)
T.copy(c, O)
"""


def test_a_copy_of_an_operand_is_the_operand() -> None:
    new = new_text(GEMMS.format(change=""), FULL.replace('Z: T.Tensor((64, 64), "float16"), ', ""))
    assert "p_shared" not in new
    assert new.count("_l1 = ") == 1
    assert "T.gemm_v0(p_cast_l1, a, c, transpose_A=True)" in new


def test_a_copy_that_changes_is_not() -> None:
    change = "for i, j in T.Parallel(64, 64):\n    p_shared[i, j] = p_shared[i, j] + p_cast[i, j]"
    new = new_text(GEMMS.format(change=change), FULL.replace('Z: T.Tensor((64, 64), "float16"), ', ""))
    assert new.count("_l1 = ") == 2


ROWS = """
ix = T.alloc_shared((16,), "int32")
a = T.alloc_shared((16, 64), "float32")
b = T.alloc_shared((16, 64), "float32")
T.copy(I[0:16], ix)
m = T.alloc_fragment((16,), "float32")
for i in T.Parallel(16):
    m[i] = T.if_then_else(ix[i] < 8, 1.0, 0.0)
{between}
for i, j in T.Parallel(16, 64):
    a[i, j] = S[I[i], j]
for i, j in T.Parallel(16, 64):
    a[i, j] = a[i, j] * m[i]
T.copy(a, O)
"""


@pytest.mark.parametrize(("between", "loads"), [("", 1), ("for i in T.Parallel(16):\n    ix[i] = ix[i] + 1", 2)])
def test_what_was_loaded_serves_again(between: str, loads: int) -> None:
    params = 'I: T.Tensor((16,), "int32"), S: T.Tensor((32, 64), "float32"), O: T.Tensor((16, 64), "float32")'
    inputs = {
        "I": np.arange(16, dtype=np.int32)[::-1].copy(),
        "S": RNG.standard_normal((32, 64)).astype(np.float32),
    }
    file = gpu_file(params, ROWS.format(between=between), launch="T.Kernel(1, threads=128) as bx")
    assert agree(file, inputs).count("T.copy(I[") == loads


MAXIMA = """
x = T.alloc_fragment((64, 64), "float32")
m = T.alloc_fragment((64,), "float32")
old = T.alloc_fragment((64,), "float32")
T.copy(X, x)
T.fill(m, {start})
for k in T.serial(2):
    T.copy(m, old)
    T.reduce_max(x, m, dim=1, clear=False)
    for i in T.Parallel(64):
        m[i] = {value}
T.copy(m, O)
"""


@pytest.mark.parametrize(
    ("value", "joined"),
    [
        ("T.max(m[i], old[i])", 0),
        ("T.max(old[i], m[i])", 0),
        ("T.min(m[i], old[i])", 1),
        ("T.max(m[i], old[63 - i])", 1),
        ("m[i] + old[i]", 1),
    ],
)
def test_a_maximum_is_taken_once(value: str, joined: int) -> None:
    params = 'X: T.Tensor((64, 64), "float32"), O: T.Tensor((64,), "float32")'
    inputs = {"X": RNG.standard_normal((64, 64)).astype(np.float32)}
    file = gpu_file(params, MAXIMA.format(start="0.5", value=value), launch="T.Kernel(1, threads=128) as bx")
    assert agree(file, inputs).count("T.tile.max(m, m, old)") == joined


LOADED_TWICE = """
s = T.alloc_fragment((64, 64), "float32")
r = T.alloc_fragment((64,), "float32")
{first}
T.reduce_max(s, r, dim=1)
for i, j in T.Parallel(64, 64):
    O[i, j] = X[i, j] - r[i]
for i, j in T.Parallel(64, 64):
    O[i + 64, j] = T.exp(X[i, j] - r[i])
"""


@pytest.mark.parametrize(
    ("first", "loads"),
    [
        ("for i, j in T.Parallel(64, 64):\n    s[i, j] = X[i, j] + 1.0", 1),
        ("T.copy(X[0, 0], s)\nfor i, j in T.Parallel(64, 64):\n    s[i, j] = s[i, j] + 1.0", 2),
    ],
)
def test_what_was_loaded_and_then_changed_in_place_is_loaded_again(first: str, loads: int) -> None:
    """What an author changes where ``X`` was loaded is no longer there."""
    params = 'X: T.Tensor((64, 64), "float32"), O: T.Tensor((128, 64), "float32")'
    file = gpu_file(params, LOADED_TWICE.format(first=first), launch="T.Kernel(1, threads=128) as bx")
    new = agree(file, {"X": RNG.standard_normal((64, 64)).astype(np.float32)})
    assert new.count("T.copy(X[0, 0], ") == loads


TWO = """
a = T.alloc_fragment((32, 64), "float32")
b = T.alloc_fragment((32, 64), "float32")
c = T.alloc_fragment((32, 64), "float32")
T.copy(X, a)
{copy}
{steps}
T.copy(c, O[0, 0])
T.copy(a, O[32, 0])
"""
BOTH = "for i, j in T.Parallel(32, 64):\n"
DOUBLED = "    a[i, j] = a[i, j] * 2.0\n"
TAKEN = "    c[i, j] = b[i, j] + 1.0\n"
SMALL = RNG.standard_normal((32, 64)).astype(np.float32)


@pytest.mark.parametrize(
    ("steps", "old", "doubled"),
    [
        (BOTH + DOUBLED + TAKEN, 1, 2),
        (BOTH + TAKEN + DOUBLED, 1, 2),
        (BOTH + DOUBLED + BOTH + TAKEN, 1, 2),
        (f"for k in T.serial(2):\n    {BOTH}    {DOUBLED}    {TAKEN}", 1, 4),
        (f"for k in T.serial(2):\n    {BOTH}    {TAKEN}    {BOTH}    {DOUBLED}", 1, 4),
        (f"for k in T.serial(3):\n    T.copy(a, b)\n    {BOTH}    {DOUBLED}    {TAKEN}", 4, 8),
        (f"for i in T.serial(32):\n    for j in T.Parallel(64):\n    {DOUBLED}    {TAKEN}", 1, 2),
        (f"for k in T.serial(1):\n    {BOTH}    {DOUBLED}{BOTH}{TAKEN}", 1, 2),
    ],
)
@pytest.mark.parametrize("copy", ["T.copy(a, b)", BOTH + "    b[i, j] = a[i, j]"])
def test_a_copy_keeps_what_its_source_loses(steps: str, old: int, doubled: int, copy: str) -> None:
    params = 'X: T.Tensor((32, 64), "float32"), O: T.Tensor((64, 64), "float32")'
    file = gpu_file(params, TWO.format(copy=copy, steps=steps), launch="T.Kernel(1, threads=128) as bx")
    agree(file, {"X": SMALL})
    expected = np.concatenate([old * SMALL + 1, doubled * SMALL])
    np.testing.assert_allclose(run(migrated(file), {"X": SMALL})["O"], expected)


def test_the_authors_name_stays_where_the_tile_is_allocated_in_a_loop() -> None:
    """What a pass made is allocated at the start, and is called like the tile that it serves for."""
    params = 'X: T.Tensor((64, 64), "float32"), S: T.Tensor((2, 64), "float32"), O: T.Tensor((64, 64), "float32")'
    body = """
    x = T.alloc_fragment((64, 64), "float32")
    t = T.alloc_fragment((64,), "float32")
    T.copy(X, x)
    T.fill(t, 1.0)
    for k in T.serial(2):
        s = T.alloc_shared((64,), "float32")
        T.copy(S[k, 0:64], s)
        for i, j in T.Parallel(64, 64):
            x[i, j] = x[i, j] * (s[i] - t[i])
    T.copy(x, O)
    """
    draw = np.random.default_rng(3)
    inputs = {"X": draw.normal(size=(64, 64)).astype(np.float32), "S": draw.normal(size=(2, 64)).astype(np.float32)}
    new = agree(gpu_file(params, body, launch="T.Kernel(1, threads=128) as bx"), inputs)
    assert new.count("alloc_") == 3
    assert "s[i] = s[i] - t[i]" in new
