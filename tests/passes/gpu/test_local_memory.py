"""Thread-private storage and reducers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.stage import after, blocked
from tests.passes.gpu.support import agree, gpu_file
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
