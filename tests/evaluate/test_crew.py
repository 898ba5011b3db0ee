"""Kernels with a vid, workspaces and flags: what their three cores leave, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.evaluate.support import factory, outcome, values
from tl2npu.evaluate.values import NotChecked

HEAD = "with T.Kernel(M // 16, is_npu=True) as (cid, vid):\n"
TENSORS = 'X: T.Tensor((M, N), "float16"), Y: T.Tensor((M, 16), "float32"), workspace: T.Tensor((M, 16), "float32")'
TILES = """
    x = T.alloc_L1((16, 16), "float16")
    c = T.alloc_L0C((16, 16), "float32")
    u = T.alloc_ub((8, 16), "float32")
    total = T.alloc_ub((8, 16), "float32")
"""
PRODUCT = "T.copy(X[cid * 16, k * 16], x)\n{0}T.gemm_v0(x, x, c, transpose_B=True, init=True)\n{0}"
FILL = PRODUCT + "T.copy(c, workspace[cid * 16, 0])\n"
USE = "T.copy(workspace[cid * 16 + vid * 8, 0], u)\n{0}T.tile.add(total, total, u)\n"
START, STORE = "T.tile.fill(total, 0.0)\n", "T.copy(total, Y[cid * 16 + vid * 8, 0])\n"
DEEP = "\n            "
EXPERT = f"""
    with T.Scope("C"):
        for k in T.serial(N // 16):
            {{free}}{FILL.replace("{0}", DEEP.strip(chr(10)))}            T.set_cross_flag("FIX", 0)
    with T.Scope("V"):
        {START}        for k in T.serial(N // 16):
            T.wait_cross_flag(0)
            {USE.replace("{0}", DEEP.strip(chr(10)))}            {{done}}
        {STORE}"""
APART = f"""
    for k in T.serial(N // 16):
        {FILL.replace("{0}", " " * 8)}
    {START}    for j in T.serial(N // 16):
        {USE.replace("{0}", " " * 8)}
    {STORE}"""
FLAGS = {"free": "if k > 0:\n                T.wait_cross_flag(1)\n            ", "done": 'T.set_cross_flag("MTE2", 1)'}


def kernel(body: str) -> str:
    """The factory with tiles for 16 rows: each vector core has 8 of them."""
    return factory(HEAD + TILES + body, tensors=TENSORS)


def left_by(text: str) -> tuple[np.ndarray, np.ndarray]:
    """What ``Y`` is, and should be: the sum over blocks of columns of their products with themselves."""
    x = np.random.default_rng(3).integers(-3, 4, (32, 48)).astype(np.float64)
    blank = {"Y": np.zeros((32, 16)), "workspace": np.full((32, 16), np.nan)}
    rows = [sum(x[r : r + 16, k : k + 16] @ x[r : r + 16, k : k + 16].T for k in range(0, 48, 16)) for r in (0, 16)]
    return values(text, {"X": x, **blank}, M=32, N=48)["Y"], np.concatenate(rows)


@pytest.mark.parametrize("body", [EXPERT.format(**FLAGS), APART], ids=["flags", "loops apart"])
def test_a_product_for_both_vector_cores(body: str) -> None:
    found, expected = left_by(kernel(body))
    assert np.array_equal(found, expected)


def test_a_flag_that_nobody_waits_for_lets_the_workspace_be_overwritten() -> None:
    found, expected = left_by(kernel(EXPERT.format(free="", done="")))
    assert not np.array_equal(found, expected)


def test_flags_that_nobody_sets() -> None:
    with pytest.raises(NotChecked, match="never let the cores finish"):
        left_by(kernel(EXPERT.format(**FLAGS | {"free": "T.wait_cross_flag(1)\n            "})))


@pytest.mark.parametrize(("text", "equal"), [("total, total, u", True), ("total, u, u", False)])
def test_one_text_for_both_cores(text: str, equal: bool) -> None:
    """The same in Developer mode, right and wrong."""
    lines = f"{START}for k in T.serial(N // 16):\n    {PRODUCT.replace('{0}', ' ' * 4)}T.copy(c, u)\n"
    lines += f"    T.tile.add({text})\nT.copy(total, Y[cid * 16, 0])\n"
    tiles = TILES.replace("(8, 16)", "(16, 16)")
    body = "".join(f"    {line}\n" for line in lines.splitlines())
    head = "with T.Kernel(M // 16, threads=2, is_npu=True) as (cid):\n"
    new = factory(head + tiles + body, tensors=TENSORS.partition(", workspace")[0])
    found = outcome(kernel(EXPERT.format(**FLAGS)), new)
    assert found.equal is equal, found.why


def test_vector_cores_that_race_tell_nothing() -> None:
    """Each adds its number to the same rows: which one is last, nobody knows."""
    lines = "T.copy(Y[cid * 16, 0], u)\nT.tile.add(u, u, 1.0)\nT.copy(u, Y[cid * 16, 0])\n"
    old = kernel("".join(f"    {line}\n" for line in lines.splitlines()))
    new = old.replace("is_npu=True) as (cid, vid)", "threads=1, is_npu=True) as (cid)")
    found = outcome(old.replace("add(u, u, 1.0)", "add(u, u, vid + 1.0)"), new)
    assert found.equal is None
    assert "different values in one place" in found.why


def test_elements_of_the_cube_core_in_its_scope() -> None:
    """``T.Parallel`` in ``Scope("C")`` fills a tile of the cube core; elsewhere it is for the vector cores."""
    filled = "for i, j in T.Parallel(16, 16):\n                x[i, j] = X[cid * 16 + i, k * 16 + j]"
    text = kernel(EXPERT.format(**FLAGS).replace("T.copy(X[cid * 16, k * 16], x)", filled))
    found, expected = left_by(text)
    assert np.array_equal(found, expected)


def test_a_result_is_no_workspace() -> None:
    """``Y`` is read, written and returned; a kernel without it cannot be compared."""
    lines = "T.copy(Y[cid * 16 + vid * 8, 0], u)\nT.tile.add(u, u, 1.0)\nT.copy(u, Y[cid * 16 + vid * 8, 0])\n"
    old = kernel("".join(f"    {line}\n" for line in lines.splitlines()))
    found = outcome(old, old.replace("Y[", "workspace[").replace("Y: T", "Z: T"))
    assert found.equal is None
    assert found.why == "the new kernel has no tensor `Y`"
