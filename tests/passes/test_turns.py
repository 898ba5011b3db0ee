"""Two slots that take turns become two tiles, where the turns are proved to go on (TL314)."""

from __future__ import annotations

import pytest

from tests.passes.support import IMPORTS, block, developer, kernel, migrated, same_results

PARAMS = (
    'A: T.Tensor((64, 64), "float32")',
    'B: T.Tensor((64, 64), "float32")',
    'O: T.Tensor((64, 64), "float32")',
)


def turning(
    *,
    around: str = "",
    loop: str = "for i in T.serial(4):",
    names: str = "now = i % 2\nthen = 1 - now",
    write: str = "T.copy(A[cid * 32 + vid * 16, i * 16], s[now, :, :])",
    early: str = "",
    read: str = "T.tile.sub(d, s[now, :, :], s[then, :, :])",
    start: str = "T.tile.fill(s, 1.0)",
) -> str:
    """The difference of each column tile to the one before."""
    inner = f"""
{loop}
{block(names, 4)}
{block(early, 4)}
    {write}
    T.barrier_all()
    {read}
    T.barrier_all()
    T.copy(d, O[cid * 32 + vid * 16, i * 16])
    T.barrier_all()
"""
    inner = f"{around}\n{block(inner, 4)}" if around else inner
    body = f"""
s = T.alloc_ub((2, 16, 16), "float32")
d = T.alloc_ub((16, 16), "float32")
with T.Scope("V"):
{block(start, 4)}
{block(inner, 4)}
"""
    return IMPORTS + kernel(body, params=PARAMS, jit="out_idx=[2]")


TURNS = {
    "as it is": turning(),
    "written out": turning(
        names="",
        write="T.copy(A[cid * 32 + vid * 16, i * 16], s[i % 2, :, :])",
        read="T.tile.sub(d, s[i % 2, :, :], s[(i + 1) % 2, :, :])",
    ),
    "entered again after an even number": turning(around="for k in T.serial(3):"),
    "an odd number, once": turning(
        loop="for i in T.serial(3):",
        start="T.tile.fill(s, 1.0)\nT.tile.fill(d, 0.0)\nT.barrier_all()\nT.copy(d, O[cid * 32 + vid * 16, 48])",
    ),
}


@pytest.mark.parametrize("old", TURNS.values(), ids=TURNS)
def test_slots_that_take_turns(old: str) -> None:
    new = developer(old)
    same_results(old, new)
    assert "% 2" not in new
    assert "TL314" in {change.code for change in migrated(old).changes}


OTHERS = {
    "entered again after an odd number": turning(around="for k in T.serial(3):", loop="for i in T.serial(3):"),
    "read before it is written": turning(early="T.tile.add(d, d, s[now, :, :])"),
    "the slot before is written too": turning(early="T.tile.fill(s[then, :, :], 0.0)"),
    "no start": turning(start=""),
    "three turns": turning(names="now = i % 3 % 2\nthen = 1 - now"),
}


@pytest.mark.parametrize("old", OTHERS.values(), ids=OTHERS)
def test_other_slots_stay(old: str) -> None:
    assert "TL314" not in {change.code for change in migrated(old).changes}
