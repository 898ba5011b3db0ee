"""What needs no clocks: where the data-flow analysis sees no read that may come early, the clocks find none."""

from __future__ import annotations

import random
import textwrap
from unittest.mock import patch

import pytest

from tests.checks.support import LOAD, ONE, STORE, TILES, source, subject
from tl2npu.checks.cross_core import unordered
from tl2npu.kernel.flags.clocks import Run

PROGRAMS = 300
TENSORS = 'A: T.Tensor((256, 64), "float32"), O: T.Tensor((256, 64), "float32"), n: T.int32'

_WEIGHTS = {"load": 4, "store": 5, "move": 2, "add": 9, "loop": 5, "if": 1, "element": 1, "barrier": 1}


def _block(draw: random.Random, depth: int) -> str:
    return "".join(_statement(draw, depth) for _ in range(draw.randint(2, 5)))


def _statement(draw: random.Random, depth: int) -> str:
    x, y, z = (draw.choice("abc") for _ in range(3))
    kind = draw.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
    inner = textwrap.indent(_block(draw, depth + 1), "    ") if kind in ("loop", "if") and depth < 2 else ""
    if inner:
        head = f"for i{depth} in T.serial({draw.randint(0, 3)}):" if kind == "loop" else "if cid > n:"
        return f"{head}\n{inner}"
    return {
        "load": f"T.copy(A[cid * 32 : cid * 32 + 32, :], {x})\n",
        "store": f"T.copy({x}, O[cid * 32 : cid * 32 + 32, :])\n",
        "move": f"T.copy({x}, {y})\n" if x != y else f"T.tile.fill({x}, 0.0)\n",
        "element": f"{x}[0, 0] = {y}[1, 1]\n",
        "barrier": "T.barrier_all()\n",
    }.get(kind, f"T.tile.add({x}, {y}, {z})\n")


@pytest.mark.thorough
def test_random_kernels() -> None:
    draw, found, spared = random.Random(7), 0, 0
    for _ in range(PROGRAMS):
        body = f'{TILES}c = T.alloc_ub((32, 64), "float32")\n{_block(draw, 0)}'
        text = source(body, launch=ONE, params=TENSORS, jit="")
        with patch.object(unordered, "Run", side_effect=Run) as run:
            unordered.missed(subject(text))
        with patch.object(unordered, "may_come_early", return_value=True):
            finds = bool(unordered.missed(subject(text)))
        assert run.called or not finds, text
        found += finds
        spared += not run.called
    assert min(found, spared) > PROGRAMS / 20


@pytest.mark.parametrize(
    ("between", "is_asked"), [("", False), ("T.tile.exp(a, b)\n", True)], ids=["stored", "read before it is stored"]
)
def test_clocks_run_where_a_read_may_come_early(between: str, is_asked: bool) -> None:
    """AUTO_SYNC orders the store behind the last access of ``b``: its write, or a read on the same pipe."""
    body = f"{TILES}{LOAD}T.tile.exp(b, a)\n{between}{STORE}"
    with patch.object(unordered, "Run", side_effect=Run) as run:
        unordered.missed(subject(source(body, launch=ONE)))
    assert run.called == is_asked
