"""Thread-private storage and reducers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.stage import after, blocked
from tests.passes.gpu.support import agree, gpu_file
from tests.passes.simulated import run
from tl2npu.migration import migrate_text
from tl2npu.options import Options
from tl2npu.passes.gpu.local_memory import rewrite as local_memory

RNG = np.random.default_rng(5)
COMBINE = """po = T.alloc_fragment([64], "float32")
acc = T.alloc_fragment([64], "float32")
lse = {scalar}
total = {scalar}
largest = {scalar}
scale = {scalar}
T.clear(total)
T.clear(acc)
largest{at} = -T.infinity("float32")
for k in T.serial(4):
    largest{at} = T.max(largest{at}, G[bx, k])
for k in T.Pipelined(4, num_stages=1):
    lse{at} = G[bx, k]
    total{at} += T.exp2(lse{at} - largest{at})
total{at} = T.log2(total{at}) + largest{at}
for k in T.serial(4):
    for i in T.Parallel(64):
        po[i] = P[bx, k, i]
    lse{at} = G[bx, k]
    scale{at} = T.exp2(lse{at} - total{at})
    for i in T.Parallel(64):
        acc[i] += po[i] * scale{at}
for i in T.Parallel(64):
    O[bx, i] = acc[i]
"""
PARAMS = 'G: T.Tensor((2, 4), "float32"), P: T.Tensor((2, 4, 64), "float32"), O: T.Tensor((2, 64), "float32")'
INPUT = {
    "G": RNG.standard_normal((2, 4)).astype(np.float32),
    "P": RNG.standard_normal((2, 4, 64)).astype(np.float32),
}


@pytest.mark.parametrize(("scalar", "at"), [('T.alloc_var("float32")', ""), ('T.alloc_local((1,), "float32")', "[0]")])
def test_scalars_of_floats_become_tiles(scalar: str, at: str) -> None:
    """The second kernel of flash decoding: the parts of a softmax are joined."""
    new = agree(gpu_file(PARAMS, COMBINE.format(scalar=scalar, at=at)), INPUT)
    assert "alloc_var" not in new
    assert "total = T.alloc_shared([8], " in new or "total = T.alloc_ub([8], " in new


def test_an_initial_value() -> None:
    body = """x = T.alloc_fragment([64], "float32")
s = T.alloc_var("float32", init=2.0)
s += G[bx, 1]
T.copy(P[bx, 0, 0], x)
for i in T.Parallel(64):
    x[i] = x[i] * s
T.copy(x, O[bx, 0])
"""
    new = agree(gpu_file(PARAMS, body), INPUT)
    assert "T.tile.fill(s, 2.0)" in new


def test_integers_become_variables() -> None:
    text = gpu_file(PARAMS, 'n = T.alloc_local([1], "int32")\nn[0] = 1\nfor k in T.serial(4):\n    n[0] = n[0] + k')
    new = after(text, local_memory.to_buffers)
    assert 'n = T.alloc_var("int32")' in new
    assert "n = n + k" in new


SUMS = {
    "rows": ("o[i] += a[i, j] * b[j]", 32, "dim=1"),
    "columns": ("o[j] += a[i, j] * b[j]", 64, "dim=0"),
}


@pytest.mark.parametrize("way", SUMS)
def test_reducers(way: str) -> None:
    update, size, dim = SUMS[way]
    params = f'A: T.Tensor((64, 128), "float32"), B: T.Tensor((128,), "float32"), O: T.Tensor((2, {size}), "float32")'
    body = f"""a = T.alloc_shared((32, 64), "float32")
b = T.alloc_shared((64,), "float32")
o = T.alloc_reducer({size}, "float32", replication="all")
T.clear(o)
for k in T.Pipelined(2, num_stages=2):
    T.copy(A[bx * 32, k * 64], a)
    T.copy(B[k * 64], b)
    for i, j in T.Parallel(32, 64):
        {update}
T.finalize_reducer(o)
T.copy(o, O[bx, 0])
"""
    inputs = {
        "A": RNG.standard_normal((64, 128)).astype(np.float32),
        "B": RNG.standard_normal(128).astype(np.float32),
    }
    new = agree(gpu_file(params, body), inputs)
    assert f"T.reduce_sum(o_part, o, {dim})" in new


def test_a_reducer_that_loops_of_several_shapes_update() -> None:
    """An element at a time, all of it by one axis, and the only element by two: what is summed up is a number each."""
    params = 'A: T.Tensor((64, 64), "float32"), O: T.Tensor((2, 8), "float32"), S: T.Tensor((2, 8), "float32")'
    body = """a = T.alloc_shared((32, 64), "float32")
o = T.alloc_reducer(8, "float32", replication="all")
s = T.alloc_reducer((1,), "float32", replication="all")
t = T.alloc_fragment((8,), "float32")
T.fill(o, 0)
T.clear(s)
T.copy(A[bx * 32, 0], a)
for c in T.serial(8):
    for k in T.Parallel(64):
        o[c] += a[c, k] * a[c + 8, k]
for i, j in T.Parallel(32, 8):
    o[j] += a[i, j]
for i, j in T.Parallel(32, 64):
    s[0] += a[i, j] * a[i, j]
T.finalize_reducer(o)
T.finalize_reducer(s)
for k in T.Parallel(8):
    t[k] = s[0]
T.copy(o, O[bx, 0])
T.copy(t, S[bx, 0])
"""
    values = RNG.standard_normal((64, 64)).astype(np.float32)
    new = agree(gpu_file(params, body), {"A": values})
    assert "T.reduce_sum(o_part, o, dim=1" in new
    assert "T.tile.add(o, o, o_part_" in new
    blocks = values.reshape(2, 32, 64)
    products = (blocks[:, :8] * blocks[:, 8:16]).sum(2) + blocks[:, :, :8].sum(1)
    found = run(new, {"A": values})
    np.testing.assert_allclose(found["O"], products, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found["S"], np.repeat((blocks**2).sum((1, 2))[:, None], 8, 1), rtol=1e-4)


def test_a_largest_value() -> None:
    params = 'A: T.Tensor((64, 64), "float32"), O: T.Tensor((64,), "float32")'
    body = """a = T.alloc_shared((32, 64), "float32")
o = T.alloc_reducer(32, "float32", op="max", replication="all")
T.fill(o, -T.infinity("float32"))
T.copy(A[bx * 32, 0], a)
for i, j in T.Parallel(32, 64):
    o[i] = T.max(o[i], a[i, j])
T.finalize_reducer(o)
T.copy(o, O[bx * 32])
"""
    new = after(gpu_file(params, body), local_memory.to_buffers)
    assert "o_part[i, j] = T.max(o_part[i, j], a[i, j])" in new
    assert "T.reduce_max(o_part, o, dim=1)" in new


@pytest.mark.parametrize(
    ("line", "replacement"),
    [
        ("T.finalize_reducer(o)", "T.copy(o, O[bx * 32])\nT.finalize_reducer(o)"),
        ("T.clear(o)", "T.fill(o, 3)"),
        ("o[i] += a[i, j]", "o[i] -= a[i, j]"),
        ("o[i] += a[i, j]", "o[31 - i] += a[i, j]"),
    ],
)
def test_reducers_that_are_something_else(line: str, replacement: str) -> None:
    params = 'A: T.Tensor((64, 64), "float32"), O: T.Tensor((64,), "float32")'
    body = """a = T.alloc_shared((32, 64), "float32")
o = T.alloc_reducer(32, "float32")
T.clear(o)
T.copy(A[bx * 32, 0], a)
for i, j in T.Parallel(32, 64):
    o[i] += a[i, j]
T.finalize_reducer(o)
T.copy(o, O[bx * 32])
"""
    assert blocked(gpu_file(params, body.replace(line, replacement)), local_memory.to_buffers)[0] == "TL175"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("a = T.alloc_local((1,), 'int32')\nb = T.alloc_var('int32')\na[0], b = b, a[0]", "TL199"),
        (
            "x = T.alloc_var('float32')\ny = T.alloc_var('float32')\nx, y = P[bx, 0, 0], P[bx, 0, 1]\nO[bx, 0] = x",
            "TL199",
        ),
        ("t = T.alloc_local((4,), 'int32')\nb = T.alloc_var('int32')\nfor i in T.Parallel(4):\n    t[i] = b\n", None),
    ],
    ids=["integers", "floats", "a table of one scalar"],
)
def test_several_targets_and_tables_of_a_scalar_are_no_crash(body: str, code: str | None) -> None:
    result = migrate_text(gpu_file(PARAMS, body), "k.py", Options())
    assert result.error is None
    assert code is None or code in result.kernels[0].codes


FLAGS = """a = T.alloc_shared((32, 32), "float16")
b = T.alloc_shared((32, 32), "float16")
c = T.alloc_fragment((32, 32), "float32")
part = T.alloc_fragment((32, 32), "float32")
seen = T.alloc_var({dtype})
T.clear(c)
seen = {no}
for k in T.serial(4):
    if M[bx, k] != 0:
        seen = {yes}
        T.copy(A[bx, k, 0, 0], a)
        T.copy(B[bx, k, 0, 0], b)
        T.gemm(a, b, part, clear_accum=True)
        for i, j in T.Parallel(32, 32):
            c[i, j] += part[i, j]
if {condition}:
    for i, j in T.Parallel(32, 32):
        c[i, j] = c[i, j] * 2.0 + 1.0
T.copy(c, O[bx, 0, 0])
"""


@pytest.mark.parametrize(
    ("dtype", "no", "yes", "condition"),
    [
        ("T.bool", "False", "True", "seen"),
        ("T.bool", "False", "True", "not seen"),
        ("T.bool", "True", "False", "bx < 5 and seen"),
        ("T.int32", "0", "k + 1", "seen > 1"),
    ],
)
def test_what_the_vector_cores_branch_on_is_no_variable_of_the_cube_core(
    dtype: str, no: str, yes: str, condition: str
) -> None:
    """The compiler stores a ``T.alloc_var`` on the cube core only (TL860)."""
    params = (
        'A: T.Tensor((2, 4, 32, 32), "float16"), B: T.Tensor((2, 4, 32, 32), "float16"), '
        'M: T.Tensor((2, 4), "int32"), O: T.Tensor((2, 32, 32), "float32")'
    )
    random = np.random.default_rng(3)
    tensors = {name: random.integers(-4, 5, (2, 4, 32, 32)).astype(np.float16) for name in "AB"}
    taken = np.array([[0, 1, 1, 0], [0, 0, 0, 0]], np.int32)
    new = agree(
        gpu_file(params, FLAGS.format(dtype=dtype, no=no, yes=yes, condition=condition)), {**tensors, "M": taken}
    )
    assert "seen = T.alloc_shared([8], " in new or "seen = T.alloc_ub([8], " in new
    assert "alloc_var" not in new
    products = np.einsum("bkij,bkjl,bk->bil", *(tensors[name].astype(np.float32) for name in "AB"), taken)
    last = taken.astype(bool) @ np.ones(4) > 0
    holds = {"seen": last, "not seen": ~last, "bx < 5 and seen": ~last, "seen > 1": last}[condition]
    expected = np.where(holds[:, None, None], products * 2 + 1, products)
    np.testing.assert_array_equal(run(new, {**tensors, "M": taken})["O"], expected)


@pytest.mark.parametrize(("scalar", "at"), [('T.alloc_var("int32")', ""), ('T.alloc_local((1,), "int32")', "[0]")])
def test_an_integer_of_a_branch_on_a_tile_is_one_as_well(scalar: str, at: str) -> None:
    params = 'G: T.Tensor((2, 4), "float32"), P: T.Tensor((2, 64), "float32"), O: T.Tensor((2, 64), "float32")'
    body = f"""x = T.alloc_fragment([64], "float32")
g = T.alloc_var("float32")
most = T.alloc_var("float32")
last = {scalar}
most = 0.0
for k in T.serial(4):
    g = G[bx, k]
    if g != 0:
        last{at} = k
        most = T.max(most, T.exp(g))
T.copy(P[bx, 0], x)
for k in T.serial(4):
    if k <= last{at}:
        for i in T.Parallel(64):
            x[i] = x[i] + most
T.copy(x, O[bx, 0])
"""
    given = {"G": np.array([[1, 0, 2, 0], [0, 0.5, 0, 0]], np.float32), "P": np.ones((2, 64), np.float32)}
    new = agree(gpu_file(params, body), given)
    expected = 1 + np.array([3 * np.exp(2.0), 2 * np.exp(0.5)])[:, None] * np.ones(64)
    np.testing.assert_allclose(run(new, given)["O"], expected, 1e-5)
    assert "if k <= last[0]:" in new


@pytest.mark.parametrize("alloc", ['T.alloc_var("float32")\n        s = 1.0', 'T.alloc_var("float32", init=1.0)'])
def test_a_scalar_of_floats_that_stands_in_a_loop(alloc: str) -> None:
    """It begins anew in each iteration: a weight where there is one, else 1."""
    params = 'G: T.Tensor((2, 4), "float32"), P: T.Tensor((2, 4, 64), "float32"), O: T.Tensor((2, 64), "float32")'
    body = f"""x = T.alloc_fragment([64], "float32")
T.clear(x)
for k in T.serial(4):
    if k != 2:
        s = {alloc}
        if k > 0:
            s = s * G[bx, k]
        for i in T.Parallel(64):
            x[i] += P[bx, k, i] * s
for i in T.Parallel(64):
    O[bx, i] = x[i]
"""
    new = agree(gpu_file(params, body), INPUT)
    weights = INPUT["G"] * [0, 1, 0, 1] + [1, 0, 0, 0]
    np.testing.assert_allclose(run(new, INPUT)["O"], np.einsum("bk,bki->bi", weights, INPUT["P"]), rtol=1e-3, atol=1e-3)
