"""Accesses that nothing orders, in kernels that synchronise by hand (TL780 to TL782)."""

from __future__ import annotations

import textwrap

import pytest

from tests.checks.support import LOAD as LOAD32
from tests.checks.support import PLAIN, SPLIT, TILES, errors

PARAMS = 'A: T.Tensor((256, 64), "float32"), O: T.Tensor((256, 64), "float32")'
ALLOC = """
a = T.alloc_ub((2, 16, 64), "float32")
b = T.alloc_ub((16, 64), "float32")
c = T.alloc_ub((16, 64), "float32")
s = T.alloc_ub((16,), "float32")
"""


def found(body: str, *, keys: tuple[str, ...] = ()) -> list[str]:
    """The errors of a kernel whose body stands in a scope of the vector cores."""
    inside = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    return errors(f"{ALLOC}\nwith T.Scope('V'):\n{inside}\n", launch=PLAIN, keys=keys, args="n=4", params=PARAMS)


LOAD = "T.copy(A[cid * 16, 0], b)\n"
ADD = "T.tile.add(c, b, 1.0)\n"
STORE = "T.copy(c, O[cid * 16, 0])\n"


def flags(src: str, dst: str, event: object = 0) -> str:
    """A flag that is set and waited for."""
    return f"T.set_flag('{src}', '{dst}', {event})\nT.wait_flag('{src}', '{dst}', {event})\n"


SUM, FILL = "T.reduce_sum(b, s, dim=-1)\n", "x = s[0]\nT.tile.fill(c, x)\n"
IN, OUT, ALL = flags("mte2", "v"), flags("v", "mte3"), "T.barrier_all()\n"


@pytest.mark.parametrize(
    ("body", "codes"),
    [
        (LOAD + IN + ADD + OUT + STORE, []),
        (LOAD + ALL + ADD + ALL + STORE, []),
        (LOAD + "T.pipe_barrier('all')\n" + ADD + ALL + STORE, []),
        (LOAD + ADD + OUT + STORE, ["TL780"]),
        (LOAD + IN + ADD + STORE, ["TL780"]),
        (LOAD + flags("v", "mte2") + ADD + ALL + STORE, ["TL780"]),  # the other way round
        (IN + LOAD + ADD + ALL + STORE, ["TL780"]),  # before the load
        (LOAD + "T.pipe_barrier('v')\n" + ADD + ALL + STORE, ["TL780"]),  # of one pipe
        (LOAD + "T.set_flag('mte2', 'v', 0)\n" + ADD + ALL + STORE + "T.wait_flag('mte2', 'v', 0)\n", ["TL780"]),
        (LOAD + "for i, j in T.Parallel(16, 64):\n    c[i, j] = b[i, j] * 2.0\n" + ALL + STORE, ["TL780"]),
        (LOAD + IN + SUM + FILL + ALL + STORE, ["TL780"]),
        (LOAD + IN + SUM + flags("v", "s") + FILL + ALL + STORE, []),
        (LOAD + flags("mte2", "mte3") + "T.copy(b, O[cid * 16, 0])", []),
        (LOAD + "T.copy(b, O[cid * 16, 0])", ["TL780"]),
        (LOAD + flags("mte2", "s") + ADD + ALL + STORE, []),  # the scalar unit issues what follows
    ],
)
def test_reads(body: str, codes: list[str]) -> None:
    assert found(body) == codes
    assert found(body, keys=("AUTO_SYNC",)) == []


LOOP = "for i in T.serial(n):\n"


def loop(*parts: str, head: str = LOOP) -> str:
    """A loop over statements."""
    return head + textwrap.indent("".join(parts), "    ")


TURN = "T.copy(A[i * 16, 0], b)\n", IN, ADD, OUT, "T.copy(c, O[i * 16, 0])\n"
PING = (
    "T.wait_flag('v', 'mte2', i % 2)\n",
    "T.copy(A[i * 16, 0], a[i % 2, :, :])\n",
    flags("mte2", "v", "i % 2"),
    "T.wait_flag('mte3', 'v', 0)\n",
    "T.tile.add(c, a[i % 2, :, :], 1.0)\n",
    "T.set_flag('v', 'mte2', i % 2)\n",
    flags("v", "mte3", 0),
    "T.copy(c, O[i * 16, 0])\n",
    "T.set_flag('mte3', 'v', 0)\n",
)
SET = "T.set_flag('v', 'mte2', 0)\nT.set_flag('v', 'mte2', 1)\nT.set_flag('mte3', 'v', 0)\n"
WAIT = SET.replace("set_flag", "wait_flag")


@pytest.mark.parametrize(
    ("body", "codes"),
    [
        (loop(*TURN, ALL), []),
        (loop(*TURN), ["TL781"]),
        (loop(*TURN, flags("mte3", "v")), []),  # V has waited for the store, and the load for V: not so
        (loop(ALL, *TURN), []),
        (SET + loop(*PING) + WAIT, []),
        (SET + loop(*PING).replace("T.wait_flag('v', 'mte2', i % 2)", "") + WAIT, ["TL781"]),
        (SET + loop(*PING).replace("T.wait_flag('mte3', 'v', 0)", "") + WAIT, ["TL781"]),
        (SET + loop(*PING).replace("a[i % 2, :, :], 1.0", "a[(i + 1) % 2, :, :], 1.0") + WAIT, ["TL781"]),
        (loop(*TURN, head="for i in T.serial(1):\n"), []),
        (loop("T.copy(A[0, 0], b)\n", IN, ADD, ALL), []),
    ],
)
def test_loops(body: str, codes: list[str]) -> None:
    if body == loop(*TURN, flags("mte3", "v")):
        codes = ["TL781"]  # the load of the next turn does not wait for the addition
    assert found(body) == codes


@pytest.mark.parametrize("condition", ["n > 2", "A[0, 0] > 0.0", "cid == 0", "vid == 1"])
def test_both_arms_of_what_is_not_known(condition: str) -> None:
    guarded = f"if {condition}:\n" + textwrap.indent(LOAD + IN, "    ") + "else:\n    T.tile.fill(b, 0.0)\n"
    assert found(guarded + ADD + OUT + STORE) == []
    unguarded = f"if {condition}:\n" + textwrap.indent(LOAD, "    ") + ADD + OUT + STORE
    assert found(unguarded) == ([] if condition == "cid == 1" else ["TL780"])


CROSS = """
a = T.alloc_L1((32, 64), "float16")
b = T.alloc_L1((64, 64), "float16")
c = T.alloc_L0C((32, 64), "float32")
x = T.alloc_ub((16, 64), "float32")
with T.Scope("C"):
    for i in T.serial(n):
        {before}
        T.copy(A[i * 32, 0], a)
        T.copy(B[0, 0], b)
        T.gemm_v0(a, b, c, init=True)
        T.copy(c, work[cid, {slot}, 0, 0])
        {set}
with T.Scope("V"):
    for i in T.serial(n):
        {wait}
        T.copy(work[cid, {slot}, vid * 16, 0], x)
        T.tile.relu(x, x)
        T.copy(x, O[i * 32 + vid * 16, 0])
        {after}
"""
TENSORS = (
    'A: T.Tensor((256, 64), "float16"), B: T.Tensor((64, 64), "float16"), O: T.Tensor((256, 64), "float32"), '
    'work: T.Tensor((8, 8, 32, 64), "float32")'
)
READY, TAKEN = "T.set_cross_flag('FIX', 0)", "T.wait_cross_flag(0)"
IN_TURN, UNLESS_LAST = "if i > 0:\n            ", "if i < n - 1:\n            "
FREE, AWAIT = "T.set_cross_flag('MTE2', 1)", "T.wait_cross_flag(1)"


@pytest.mark.parametrize(
    ("parts", "codes"),
    [
        ({"set": READY, "wait": TAKEN, "slot": "i"}, []),
        ({"set": READY, "wait": TAKEN, "slot": "0"}, ["TL781"]),
        ({"set": READY, "wait": TAKEN, "slot": "0", "before": IN_TURN + AWAIT, "after": FREE}, ["TL782"]),
        ({"set": READY, "wait": TAKEN, "slot": "0", "before": "pass", "after": "pass"}, ["TL781"]),
        ({"slot": "i"}, ["TL780"]),
        ({"set": READY, "slot": "i"}, ["TL782", "TL780"]),
        ({"wait": TAKEN, "slot": "i"}, ["TL782"]),
        ({"set": READY, "wait": "T.wait_cross_flag(3)", "slot": "i"}, ["TL782"]),
        ({"set": "T.set_cross_flag('MTE2', 0)", "wait": TAKEN, "slot": "i"}, []),  # AUTO_SYNC orders the pipes
        ({"set": UNLESS_LAST + READY, "wait": UNLESS_LAST + TAKEN, "slot": "i"}, ["TL780"]),
    ],
)
def test_cores(parts: dict[str, str], codes: list[str]) -> None:
    body = CROSS.format(**dict.fromkeys(("before", "set", "wait", "after"), "pass") | parts)
    settings = {"keys": ("AUTO_SYNC",), "args": "n=4", "params": TENSORS, "jit": "out_idx=[2], workspace_idx=[3]"}
    assert errors(body, launch=PLAIN, **settings) == codes


WRITTEN, READ, KEPT = "T.tile.add(a, a, 1.0)\n", "T.tile.mul(b, a, a)\n", "T.copy(a, O[cid * 32, 0])\n"
ROWS = "for i, j in T.Parallel(32, 64):\n    a[i, j] = a[i, j] * r[i]\n"
NUMBER, ROW = "T.tile.add(r, r, 1.0)\n", "for i, j in T.Parallel(32, 64):\n    b[i, j] = r[i]\n"
IF = "if cid > 2:\n    T.copy(a, O[cid * 32, 0])\n"


@pytest.mark.parametrize(
    ("body", "codes"),
    [
        (WRITTEN + KEPT, []),
        (WRITTEN + READ + KEPT, ["TL780"]),
        (WRITTEN + KEPT + READ, []),
        (ROWS + READ + KEPT, ["TL780"]),
        (WRITTEN + ROWS.replace("a[i, j] =", "b[i, j] =") + KEPT, []),  # each row stands behind a barrier
        (NUMBER + ROW.replace("b[i, j] =", "a[i, j] =") + "T.copy(r, R[cid * 32])\n", ["TL780"]),  # a broadcast
        (WRITTEN + "if cid < 1:\n    pass\n" + READ + KEPT, ["TL780"]),  # which the compiler leaves out
        (WRITTEN + READ + "T.copy(b, O[cid * 32, 0])\n" + KEPT, []),  # waits for all that stands before
        (WRITTEN + READ + ALL + KEPT, []),
        (WRITTEN + ALL + READ + KEPT, []),
        (WRITTEN + ALL + KEPT, ["TL814"]),
        (WRITTEN + READ + IF, []),  # behind the barrier of the branch
        ("for k in T.serial(4):\n" + textwrap.indent(KEPT + WRITTEN + READ, "    "), ["TL780"]),
        ("for k in T.serial(4):\n" + textwrap.indent(WRITTEN + READ, "    ") + KEPT, ["TL780"]),
        ("for k in T.serial(4):\n" + textwrap.indent(ALL + KEPT + WRITTEN + READ, "    "), []),
    ],
)
def test_automatic_flags(body: str, codes: list[str]) -> None:
    """The verdicts are those of clocks over the code that TileLang-Ascend 95acbd7f generates for these kernels."""
    tiles = TILES + "r = T.alloc_ub((32,), 'float32')\nT.copy(A[cid * 32, 0], r)\n"
    params = PARAMS + ', R: T.Tensor((256,), "float32")'
    body = tiles.replace("A[cid * 32, 0]", "R[cid * 32]") + LOAD32 + body
    assert errors(body, launch=SPLIT, params=params) == codes


def test_a_kernel_without_work_says_nothing() -> None:
    assert errors("T.barrier_all()", launch=SPLIT, params=PARAMS) == ["TL814"]
