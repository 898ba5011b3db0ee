"""Tiles that lose their value because another tile got their address.

Every kernel below was lowered by the compiler (95acbd7f, pto) and executed: WRONG lists those whose result differs
from that of NumPy; in the others no value is lost, although tiles share addresses in all of them but one.
"""

from __future__ import annotations

import pytest

from tests.checks.support import ONE, findings, source

PARAMS = ", ".join(f'{name}: T.Tensor((512, 256), "float32")' for name in "XYZ")
TILES = "".join(f'{name} = T.alloc_ub((64, 224), "float32")\n' for name in "tuab")

WRONG = {
    "siblings": """
for o in T.serial(2):
    for i in T.serial(2):
        T.copy(X[o * 256 + i * 64, 0], t)
        T.tile.add(t, t, 1.0)
    for j in T.serial(4):
        T.copy(Y[o * 256 + j * 64, 0], a)
        T.tile.add(a, a, t)
        T.tile.add(u, a, 1.0)
        T.tile.mul(b, u, u)
        T.copy(b, Z[o * 256 + j * 64, 0])
""",
    "first_turn": """
for j in T.serial(8):
    T.copy(Y[j * 64, 0], a)
    T.tile.add(u, a, 1.0)
    T.tile.mul(b, u, a)
    if j == 0:
        T.tile.fill(t, 0.0)
    T.tile.add(t, t, b)
    if j == 7:
        T.copy(t, Z[0, 0])
""",
    "gather": """
for o in T.serial(2):
    for j in T.serial(64):
        T.copy(Y[o * 64, 0], u)
        T.tile.add(b, u, 1.0)
        T.copy(X[o * 256 + j * 4, 0], a)
        T.copy(b[j, :], t[j, :])
        T.copy(a[0, :], t[j, :])
    T.copy(t, Z[o * 64, 0])
""",
    "three_loops": """
for o in T.serial(1):
    for i in T.serial(1, 3):
        T.copy(X[i * 64, 0], t)
    for i in T.serial(2):
        T.copy(Y[i * 64, 0], u)
        T.tile.add(u, u, 1.0)
    for j in T.serial(8):
        T.tile.add(a, t, u)
        T.tile.add(b, a, 1.0)
        T.tile.mul(b, b, b)
        T.copy(b, Z[j * 64, 0])
""",
    "once_in_the_middle": """
for o in T.serial(8):
    T.copy(X[o * 64, 0], a)
    T.tile.add(u, a, 1.0)
    T.tile.mul(b, u, u)
    if o == 3:
        T.copy(b, t)
    if o > 3:
        T.tile.add(b, b, t)
    T.copy(b, Z[o * 64, 0])
""",
    "parallel_reader": """
for o in T.serial(2):
    for i in T.serial(2):
        T.copy(X[o * 256 + i * 64, 0], t)
    for j in T.serial(4):
        T.copy(Y[o * 256 + j * 64, 0], a)
        for r, c in T.Parallel(64, 224):
            b[r, c] = a[r, c] * t[r, c]
        for r, c in T.Parallel(64, 224):
            u[r, c] = b[r, c] + 1.0
        T.copy(u, Z[o * 256 + j * 64, 0])
""",
}

RIGHT = {
    "safe_fill": """
T.tile.fill(t, 0.0)
for o in T.serial(2):
    for i in T.serial(2):
        T.copy(X[o * 256 + i * 64, 0], t)
    for j in T.serial(4):
        T.copy(Y[o * 256 + j * 64, 0], a)
        T.tile.add(a, a, t)
        T.tile.add(a, a, 1.0)
        T.tile.mul(a, a, a)
        T.copy(a, Z[o * 256 + j * 64, 0])
        T.copy(a, u)
""",
    "later_deep": """
for o in T.serial(2):
    for i in T.serial(2):
        T.copy(X[o * 256 + i * 64, 0], t)
    for j in T.serial(4):
        T.copy(Y[o * 256 + j * 64, 0], a)
        for r in T.serial(2):
            T.tile.add(a, a, t)
        T.tile.mul(u, a, a)
        T.copy(u, Z[o * 256 + j * 64, 0])
""",
    "plain_loop": """
for o in T.serial(8):
    T.copy(X[o * 64, 0], t)
    T.tile.add(u, t, 1.0)
    T.tile.mul(a, u, u)
    T.tile.add(b, a, 1.0)
    T.copy(b, Z[o * 64, 0])
""",
    "two_branches": """
for o in T.serial(8):
    T.copy(X[o * 64, 0], a)
    T.tile.add(u, a, 1.0)
    T.tile.mul(b, u, u)
    if o % 2 == 0:
        T.copy(b, t)
    else:
        T.tile.add(t, b, 2.0)
    T.copy(t, Z[o * 64, 0])
""",
    "while_like": """
for o in T.serial(2):
    for i in T.unroll(2):
        T.copy(X[o * 256 + i * 64, 0], t)
    for j in T.serial(4):
        T.copy(Y[o * 256 + j * 64, 0], a)
        T.tile.mul(a, a, t)
        T.tile.add(u, a, 3.0)
        T.tile.mul(b, u, u)
        T.copy(b, Z[o * 256 + j * 64, 0])
""",
}


def lost(body: str, width: int = 224) -> list[tuple[str, str]]:
    """Severity and message of every TL721."""
    text = source(TILES.replace("224", str(width)) + body, params=PARAMS, launch=ONE, jit="out_idx=[2]")
    found = [finding for finding in findings(text) if finding.code == "TL721"]
    return [(finding.severity or "error", finding.message) for finding in found]


@pytest.mark.parametrize("name", WRONG)
def test_a_value_that_is_lost(name: str) -> None:
    ((severity, message),) = lost(WRONG[name])
    assert "address of `t` while `t` is still needed" in message
    assert severity == ("warning" if "if o" in WRONG[name] or "if j" in WRONG[name] else "error")


@pytest.mark.parametrize("name", RIGHT)
def test_no_value_is_lost(name: str) -> None:
    assert lost(RIGHT[name]) == []


@pytest.mark.parametrize("name", WRONG)
def test_small_tiles_have_an_address_each(name: str) -> None:
    assert lost(WRONG[name], 128) == []


def test_a_first_use_in_front_of_the_loops_helps() -> None:
    fill = "T.tile.fill(t, 0.0)"
    assert lost(fill + WRONG["once_in_the_middle"]) == []
