"""Tiles across an axis of their tensor: (batch, seq, head, dim) with ``threads=2``."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import agree, gpu_file, migrated, result_of

_GRID = "T.Kernel(H, T.ceildiv(S, 32), B, threads=128) as (bx, by, bz)"
_Q = 'Q: T.Tensor((B, S, H, D), "float16")'
_O = 'O: T.Tensor((B, S, H, D), "float32")'


def _random(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).standard_normal(shape).astype(np.float16)


@pytest.mark.parametrize("seq", [64, 80], ids=["whole", "tail"])
def test_load_and_store_of_one_head(seq: int) -> None:
    body = """
    q = T.alloc_shared((32, D), "float16")
    o = T.alloc_fragment((32, D), "float32")
    T.copy(Q[bz, by * 32 : (by + 1) * 32, bx, :], q)
    for i, j in T.Parallel(32, D):
        o[i, j] = T.exp(q[i, j])
    T.copy(o, O[bz, by * 32 : (by + 1) * 32, bx, :])
    """
    text = gpu_file(f"{_Q}, {_O}", body, launch=_GRID, args="B, S, H, D")
    new = agree(text, {"Q": _random(2, seq, 3, 32)}, args=(2, seq, 3, 32))
    assert "threads=2" in new
    assert "T.alloc_shared((32, 1, D)" in new
    assert "T.tile.fill" not in new  # all columns of the tensor


@pytest.mark.parametrize(
    ("store", "filled"),
    [
        ("T.copy(o, O[bx, by * 32 : (by + 1) * 32, :])", True),
        ("T.copy(o, P[bx, by * 32 : (by + 1) * 32, :])", False),
        ("for i in T.serial(32):\n        T.copy(o[i, :], O[bx, by * 32 + i, :])", True),
        ("for i in T.serial(32):\n        T.copy(o[i, :], P[bx, by * 32 + i, :])", False),
        ("T.copy(o, P[bx, by * 32 : (by + 1) * 32, :])\n    T.copy(o, O[bx, by * 32, 0])", True),
    ],
)
def test_rows_behind_the_end_that_are_stored_are_filled(store: str, filled: bool) -> None:
    body = f"""
    q = T.alloc_shared((32, 16), "float16")
    o = T.alloc_fragment((32, 16), "float32")
    T.copy(Q[by * 32 : (by + 1) * 32, bx, :], q)
    for i, j in T.Parallel(32, 16):
        o[i, j] = q[i, j] + 1.0
    {store}
    """
    params = (
        'Q: T.Tensor((40, 3, 16), "float16"), P: T.Tensor((3, 40, 16), "float32"), O: T.Tensor((3, 64, 16), "float32")'
    )
    inputs = {
        "Q": _random(40, 3, 16),
        "P": np.zeros((3, 40, 16), np.float32),
        "O": np.zeros((3, 64, 16), np.float32),
    }
    text = gpu_file(params, body, launch="T.Kernel(3, 2, threads=128) as (bx, by)", jit="@tilelang.jit")
    new = agree(text, inputs)
    assert "threads=2" in new
    assert ("T.tile.fill(q" in new) is filled


@pytest.mark.parametrize("dim", [64, 80], ids=["whole", "tail"])
def test_columns_that_may_be_missing_are_filled(dim: int) -> None:
    body = """
    q = T.alloc_fragment((32, 32), "float16")
    o = T.alloc_fragment((32, 32), "float32")
    total = T.alloc_fragment((32,), "float32")
    T.clear(o)
    for k in range(T.ceildiv(D, 32)):
        T.copy(Q[bz, by * 32 : (by + 1) * 32, bx, k * 32 : (k + 1) * 32], q)
        for i, j in T.Parallel(32, 32):
            o[i, j] += q[i, j]
    T.reduce_sum(o, total, 1)
    T.copy(total, R[bz, bx, by * 32 : (by + 1) * 32])
    """
    params = f'{_Q}, R: T.Tensor((B, H, S), "float32")'
    text = gpu_file(params, body, launch=_GRID, args="B, S, H, D")
    new = agree(text, {"Q": _random(2, 64, 3, dim)}, args=(2, 64, 3, dim))
    assert "threads=2" in new
    lines = [line.strip() for line in new.splitlines()]
    load = next(n for n, line in enumerate(lines) if line.startswith("T.copy(Q["))
    assert lines[load - 1].startswith("T.tile.fill(q")


def test_three_axes_where_the_head_is_in_the_middle() -> None:
    body = """
    x = T.alloc_shared([16, 32], "float32")
    T.copy(X[bx * 16 : bx * 16 + 16, 1, :], x)
    for i, j in T.Parallel(16, 32):
        x[i, j] = x[i, j] * 2.0
    T.copy(x, Y[bx * 16 : bx * 16 + 16, 0, :])
    """
    params = 'X: T.Tensor((32, 2, 32), "float32"), Y: T.Tensor((32, 2, 32), "float32")'
    new = agree(gpu_file(params, body, jit="@tilelang.jit"), {"X": _random(32, 2, 32).astype(np.float32)})
    assert "x_rows = T.alloc_shared([16, 1, 32]" in new
    assert "threads=2" in new


def test_another_reason_for_one_core_leaves_the_tiles_alone() -> None:
    body = """
    q = T.alloc_shared((32, D), "float16")
    o = T.alloc_fragment((D,), "float32")
    T.copy(Q[bz, by * 32 : (by + 1) * 32, bx, :], q)
    T.reduce_sum(q, o, 0)
    T.copy(o, R[bz, bx, by, :])
    """
    params = f'{_Q}, R: T.Tensor((B, H, S // 32, D), "float32")'
    new = migrated(gpu_file(params, body, launch=_GRID, args="B, S, H, D"))
    assert "threads=1" in new
    assert ", 1, " not in new


def test_threads_that_were_asked_for_are_not_halved_without_a_word() -> None:
    text = gpu_file(
        'X: T.Tensor((64, 64), "float32")',
        """
        x = T.alloc_shared((64, 64), "float32")
        T.copy(X, x)
        for i, j in T.Parallel(64, 64):
            x[i, j] = T.if_then_else(j <= i, x[63 - i, j], 0.0)
        T.copy(x, X)
        """,
    )
    assert "threads=1" in migrated(text)
    asked = result_of(text, "2")
    assert not asked.changed
    assert [(d.code, d.severity) for d in asked.diagnostics] == [("TL826", "error")]


@pytest.mark.parametrize(
    ("asserted", "filled"),
    [
        ("assert S % 32 == 0", False),
        ("assert not S % 64", False),
        ("assert S % 16 == 0", True),
        ("assert D % 32 == 0", True),
    ],
)
def test_what_a_factory_asserts_to_be_whole_is_not_filled(asserted: str, filled: bool) -> None:
    """A gemm adds up what is behind the end of a tensor, if there is such a thing."""
    body = """
    q = T.alloc_shared((32, D), "float16")
    p = T.alloc_shared((32, D), "float16")
    o = T.alloc_fragment((D, D), "float32")
    T.clear(o)
    for k in T.serial(T.ceildiv(S, 32)):
        T.copy(Q[bz, k * 32 : (k + 1) * 32, bx, :], q)
        for i, j in T.Parallel(32, D):
            p[i, j] = q[i, j] * 2.0
        T.gemm(p, p, o, transpose_A=True)
    T.copy(o, O[bz, bx, :, :])
    """
    params = f'{_Q}, O: T.Tensor((B, H, D, D), "float32")'
    text = gpu_file(params, body, launch="T.Kernel(H, B, threads=128) as (bx, bz)", args="B, S, H, D", factory=asserted)
    new = agree(text, {"Q": _random(2, 64, 3, 32)}, args=(2, 64, 3, 32), rtol=1e-2, atol=1e-1)
    assert ("T.tile.fill(q_rows, 0.0)" in new) == filled


@pytest.mark.parametrize("lengths", [(70, 32, 2), (33, 64, 7)])
def test_rows_of_sequences_are_moved_through_a_tile_with_the_axes_of_the_tensor(lengths: tuple[int, ...]) -> None:
    """Row by row, since sequences end in the middle of a tile: what is computed goes by tiles all the same."""
    body = """
    q = T.alloc_shared((32, 64), "float16")
    o = T.alloc_fragment((32, 64), "float32")
    first = Starts[bz]
    length = Starts[bz + 1] - first
    for i, j in T.Parallel(32, 64):
        if by * 32 + i < length:
            q[i, j] = Q[first + by * 32 + i, bx, j]
        else:
            q[i, j] = 0
    for i, j in T.Parallel(32, 64):
        o[i, j] = T.exp(q[i, j])
    for i, j in T.Parallel(32, 64):
        if by * 32 + i < length:
            O[first + by * 32 + i, bx, j] = o[i, j] * 2.0
    """
    starts = np.cumsum((0, *lengths)).astype(np.int32)
    params = (
        'Q: T.Tensor((104, 3, 64), "float16"), Starts: T.Tensor((4,), "int32"), O: T.Tensor((104, 3, 64), "float32")'
    )
    text = gpu_file(params, body, launch="T.Kernel(3, 3, 3, threads=128) as (bx, by, bz)", jit="@tilelang.jit")
    inputs = {"Q": _random(104, 3, 64), "Starts": starts, "O": np.zeros((104, 3, 64), np.float32)}
    new = agree(text, inputs)
    assert "threads=2" in new
    assert "q_rows[i, 0, :]" in new
    loop = new.index("q_rows[i, 0, :]")
    assert loop < new.index("T.copy(q_rows[:, 0, :], q)")
    assert "T.copy(q, q_rows" not in new  # it has no value yet
    assert new.index("T.copy(o, o_rows[:, 0, :])") < new.index("T.copy(o_rows[i, 0, :], O[")
    assert not [item for item in result_of(text).diagnostics if item.code == "TL885"]


def test_rows_with_another_name_that_every_call_makes_the_same() -> None:
    body = """
    q = T.alloc_shared((block, 64), "float16")
    o = T.alloc_fragment((block, 64), "float16")
    T.copy(Q[by * block : (by + 1) * block, bx, :], q)
    for i, j in T.Parallel(block, 64):
        o[i, j] = q[i, j] * 2.0
    T.copy(o, O[by * valid : (by + 1) * valid, bx, :])
    """
    params = 'Q: T.Tensor((64, 3, 64), "float16"), O: T.Tensor((64, 3, 64), "float16")'
    text = gpu_file(
        params,
        body,
        launch="T.Kernel(3, 64 // valid, threads=128) as (bx, by)",
        jit="@tilelang.jit",
        args="block, group",
        factory="valid = min(block, group)",
    )
    inputs = {"Q": _random(64, 3, 64), "O": np.zeros((64, 3, 64), np.float16)}
    agree(text + "\n\nfactory(32, 64)\n", inputs, args=(32, 64))
    for call, threads in (("factory(32, 64)", "threads=1 if block % 2 else 2"), ("factory(32, 16)", "threads=1,")):
        assert threads in migrated(f"{text}\n\nk = {call}\n")
