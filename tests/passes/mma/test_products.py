"""Products that are staged by hand become gemm_v0, whatever they are called and however they are spelled."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.passes.mma.pipelines import ahead, plain
from tests.passes.support import developer, refused, same_results
from tl2npu.migration import migrate_text
from tl2npu.options import Options


def body(text: str) -> str:
    return text.split("with T.Kernel")[1]


AHEAD: dict[str, dict[str, Any]] = {
    "as it is": {},
    "three slots": {"slots": "3"},
    "k + 1 < n": {"guard": "k + 1 < loop_k"},
    "n > k + 1": {"guard": "loop_k > k + 1"},
    "k <= n - 2": {"guard": "k <= loop_k - 2"},
    "k != n - 1": {"guard": "k != loop_k - 1"},
    "n - 1 != k": {"guard": "loop_k - 1 != k"},
    "a name for the next slab": {
        "before": "nxt = k + 1\nslot = nxt % 2",
        "next_a": "A[cid * 32, nxt * 32], a1[slot, :, :]",
        "next_b": "B[nxt * 32, 0], b1[slot, :, :]",
    },
    "slices": {
        "first_a": "A[cid * 32 : cid * 32 + 32, 0:32], a1[0, :, :]",
        "next_a": "A[cid * 32 : cid * 32 + 32, (k + 1) * 32 : (k + 2) * 32], a1[(k + 1) % 2, :, :]",
    },
    "slices that end with a sum": {
        "first_a": "A[cid * 32 : (cid + 1) * 32, :32], a1[0, :, :]",
        "next_a": "A[cid * 32 : (cid + 1) * 32, k * 32 + 32 : k * 32 + 64], a1[(k + 1) % 2, :, :]",
    },
    "ranges from L1": {"load_a": "a1[k % 2, :, kk * 16 : (kk + 1) * 16], a0[kk % 2, :, :]"},
    "a name for the slot": {"before": "here = k % 2", "load_a": "a1[here, 0, kk * 16], a0[kk % 2, :, :]"},
    "and": {"init": "(k == 0) & (kk == 0)"},
    "the other way round": {"init": "T.And(kk == 0, k == 0)"},
    "one number": {"init": "(k * loop_kk + kk == 0)"},
    "one number, slices first": {"init": "(kk + k * 2 == 0)"},
    "a sum of counters": {"init": "(k + kk == 0)"},
    "a sum of counters, one of them often": {"init": "(3 * k + kk == 0)"},
    "pipelined": {"loop": "for k in T.Pipelined(loop_k, num_stages=2):"},
}


@pytest.mark.sampled
@pytest.mark.parametrize("change", AHEAD.values(), ids=AHEAD)
def test_slabs_that_are_fetched_ahead(change: dict[str, Any]) -> None:
    old = ahead(**change)
    if "Pipelined" in str(change):
        refused(old)  # a load ahead in a loop that runs ahead itself is not understood
        return
    new = developer(old)
    same_results(old, new)
    assert "mma" not in new
    assert "L0A" not in new
    assert "% " not in body(new)
    assert "init=(k == 0)" in new or "init=k == 0" in new


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "one slot, overwritten": ({"slots": "1"}, "TL326"),
    "the first slab is another one": ({"first_a": "A[cid * 32, 32], a1[0, :, :]"}, "TL321"),
    "a slab is left out": ({"next_a": "A[cid * 32, (k + 2) * 32], a1[(k + 1) % 2, :, :]"}, "TL321"),
    "the last but one loads nothing": ({"guard": "k < loop_k - 2"}, "TL323"),
    "the slot of the next slab is read": ({"load_a": "a1[(k + 1) % 2, 0, kk * 16], a0[kk % 2, :, :]"}, "TL321"),
    "another slot of L0A": ({"left": "a0[(kk + 1) % 2, :, :]"}, "TL321"),
    "a slice is left out": ({"slices": "loop_kk - 1"}, "TL324"),
    "slices do not follow each other": ({"load_a": "a1[k % 2, 0, kk * 8], a0[kk % 2, :, :]"}, "TL324"),
    "other slices of B": ({"load_b": "b1[k % 2, 16 - kk * 16, 0], b0[kk % 2, :, :]"}, "TL324"),
    "every slice starts anew": ({"init": "True"}, "TL325"),
    "every slab starts anew in its second slice": ({"init": "T.And(k == 0, kk == 1)"}, "TL325"),
    "or": ({"init": "T.Or(k == 0, kk == 0)"}, "TL325"),
    "the sum is read too early": ({"inside": "T.copy(c0, O[cid * 32, 0])"}, "TL326"),
}


@pytest.mark.parametrize(("change", "code"), WRONG.values(), ids=WRONG)
def test_what_is_not_one_product_is_refused(change: dict[str, Any], code: str) -> None:
    refused(ahead(**change), code)


PLAIN = {
    "whole tiles": (
        """
        T.copy(a1, a0)
        T.copy(b1, b0)
        T.barrier_all()
        T.mma(a0, b0, c0, init=True)
        """,
        'a0 = T.alloc_L0A((32, 64), "float16")\nb0 = T.alloc_L0B((64, 64), "float16")',
    ),
    "ranges of whole tiles": (
        """
        T.copy(b1[:, :], b0[0:64, 0:64])
        T.copy(a1[0:32, :], a0[:, :])
        T.barrier_all()
        T.mma(a0[:, :], b0[:, :], c0[:, :], init=True)
        """,
        'a0 = T.alloc_L0A((32, 64), "float16")\nb0 = T.alloc_L0B((64, 64), "float16")',
    ),
    "transposed on the way to L0B": (
        """
        T.copy(a1, a0)
        T.copy(b1, b0, transpose=True)
        T.barrier_all()
        T.mma(a0, b0, c0, init=True)
        """,
        'a0 = T.alloc_L0A((32, 64), "float16")\nb0 = T.alloc_L0B((64, 64), "float16")',
    ),
    "one operand loaded before the loop": (
        """
        T.copy(a1, a0)
        for i in T.serial(2):
            T.copy(b1, b0[i % 2, :, :])
            T.barrier_all()
            T.mma(a0, b0[i % 2, :, :], c0, init=(i == 0))
            T.barrier_all()
        """,
        'a0 = T.alloc_L0A((32, 64), "float16")\nb0 = T.alloc_L0B((2, 64, 64), "float16")',
    ),
    "one operand loaded in the first rounds": (
        """
        for i in T.serial(5):
            turn = i % 2
            if i < 2:
                T.copy(a1, a0[turn, :, :])
            T.copy(b1, b0[turn, :, :])
            T.barrier_all()
            T.mma(a0[turn, :, :], b0[turn, :, :], c0, init=(i == 0))
            T.barrier_all()
        """,
        'a0 = T.alloc_L0A((2, 32, 64), "float16")\nb0 = T.alloc_L0B((2, 64, 64), "float16")',
    ),
    "named slots in waves": (
        """
        T.copy(a1, a0)
        T.copy(b1, b00)
        T.copy(b1, b01)
        T.barrier_all()
        T.mma(a0, b00, c0, init=True)
        T.barrier_all()
        T.mma(a0, b01, c0)
        """,
        'a0 = T.alloc_L0A((32, 64), "float16")\nb00 = T.alloc_L0B((64, 64), "float16")\n'
        'b01 = T.alloc_L0B((64, 64), "float16")',
    ),
    "two pairs of tiles, one sum": (
        """
        for kk in range(3):
            if kk < 3 - 1:
                T.copy(a1[:, kk * 32 : (kk + 1) * 32], a0[kk % 2, :, :])
                T.copy(b1[kk * 32 : (kk + 1) * 32, :], b0[kk % 2, :, :])
            else:
                T.copy(a2, a0[kk % 2, :, :])
                T.copy(b2[:, :], b0[kk % 2, :, :])
            T.barrier_all()
            T.mma(a0[kk % 2, :, :], b0[kk % 2, :, :], c0, init=(kk == 0))
            T.barrier_all()
        """,
        'a2 = T.alloc_L1((32, 32), "float16")\nb2 = T.alloc_L1((32, 64), "float16")\n'
        "T.copy(A[cid * 32, 32], a2)\nT.copy(B[16, 0], b2)\n"
        'a0 = T.alloc_L0A((2, 32, 32), "float16")\nb0 = T.alloc_L0B((2, 32, 64), "float16")',
    ),
}


@pytest.mark.parametrize(("lines", "allocs"), PLAIN.values(), ids=PLAIN)
def test_other_pipelines(lines: str, allocs: str) -> None:
    old = plain(lines, allocs=allocs)
    new = developer(old)
    same_results(old, new)
    assert "mma" not in new
    assert "L0B" not in new


UNPROVED = {
    "the tile changes after the first rounds": (
        """
        for i in T.serial(5):
            if i < 2:
                T.copy(a1, a0[i % 2, :, :])
            T.copy(A[cid * 32, 0], a1)
            T.copy(b1, b0[i % 2, :, :])
            T.barrier_all()
            T.mma(a0[i % 2, :, :], b0[i % 2, :, :], c0, init=(i == 0))
            T.barrier_all()
        """,
        "TL323",
    ),
    "only one of two slots is filled": (
        """
        for i in T.serial(5):
            if i < 1:
                T.copy(a1, a0[i % 2, :, :])
            T.copy(b1, b0[i % 2, :, :])
            T.barrier_all()
            T.mma(a0[i % 2, :, :], b0[i % 2, :, :], c0, init=(i == 0))
            T.barrier_all()
        """,
        "TL323",
    ),
    "the tile changes before the product": (
        """
        T.copy(a1, a0[0, :, :])
        T.copy(b1, b0[0, :, :])
        T.barrier_all()
        T.copy(A[0, 0], a1)
        T.barrier_all()
        T.mma(a0[0, :, :], b0[0, :, :], c0, init=True)
        """,
        "TL321",
    ),
    "nothing is loaded": (
        """
        T.copy(b1, b0[0, :, :])
        T.barrier_all()
        T.mma(a0[1, :, :], b0[0, :, :], c0, init=True)
        """,
        "TL321",
    ),
    "a load that nothing uses": (
        """
        T.copy(a1, a0[0, :, :])
        T.copy(a1, a0[1, :, :])
        T.copy(b1, b0[0, :, :])
        T.barrier_all()
        T.mma(a0[0, :, :], b0[0, :, :], c0, init=True)
        """,
        "TL321",
    ),
}


@pytest.mark.parametrize(("lines", "code"), UNPROVED.values(), ids=UNPROVED)
def test_unproved_operands_are_refused(lines: str, code: str) -> None:
    allocs = 'a0 = T.alloc_L0A((2, 32, 64), "float16")\nb0 = T.alloc_L0B((2, 64, 64), "float16")'
    refused(plain(lines, allocs=allocs), code)


def test_a_sum_that_may_be_zero_elsewhere_is_refused() -> None:
    """`k` counts from -1 here: `k + kk` is zero in the second slice, too."""
    text = ahead(before="here = k - 1", init="(here + kk == 0)")
    assert "TL325" in {found.code for found in migrate_text(text, "k.py", Options()).diagnostics}


def test_comments_inside_of_the_slices_stay() -> None:
    text = re.sub(r"( +)T.mma", r"\1# one slice\n\1T.mma", ahead())
    new = body(developer(text))
    assert new.count("# one slice") == 1
    assert new.index("# one slice") < new.index("T.gemm_v0")


def test_the_line_of_a_product_whose_slots_keep_values() -> None:
    allocs = """
a0 = T.alloc_L0A((32, 64), "float16")
b0 = T.alloc_L0B((64, 64), "float16")
sums = T.alloc_L0C((2, 32, 64), "float32")
"""
    lines = """
for k in T.serial(4):
    T.copy(a1, a0)
    T.copy(b1, b0)
    T.barrier_all()
    T.mma(a0, b0, sums[k % 2, :, :], init=(k < 2))
    T.barrier_all()
T.copy(sums[0, :, :], O[cid * 32, 0])
"""
    text = plain(lines, allocs=allocs)
    (found,) = [item for item in migrate_text(text, "k.py", Options()).diagnostics if item.code == "TL326"]
    assert "T.mma(" in text.splitlines()[found.line - 1]


def test_pipelines_can_be_kept() -> None:
    old = ahead()
    result = migrate_text(old, "k.py", Options(keep_expert=True))
    assert result.new_text == old
    assert [kernel.disposition for kernel in result.kernels] == ["unchanged"]


MACROS = """
@T.macro
def stage(tile, other, left, right):
    T.copy(tile, left)
    T.copy(other, right)
    T.barrier_all()

@T.macro
def multiply(tile, other, left, right, total, first):
    stage(tile, other, left, right)
    T.mma(left, right, total, init=first)
    T.barrier_all()
"""


def test_a_pipeline_in_macros() -> None:
    lines = "multiply(a1, b1, a0, b0, c0, True)\nmultiply(a1, b1, a0, b0, c0, False)"
    allocs = 'a0 = T.alloc_L0A((32, 64), "float16")\nb0 = T.alloc_L0B((64, 64), "float16")'
    old = plain(lines, allocs=allocs, factory=MACROS)
    new = developer(old)
    same_results(old, new)
    assert new.count("gemm_v0") == 2
    assert "macro" not in new


def test_results_that_go_to_two_places_get_accumulators_of_their_own() -> None:
    lines = """
    T.copy(a1, a0)
    for half in T.serial(2):
        T.copy(b1, b0)
        T.barrier_all()
        T.mma(a0, b0, c0, init=True)
        T.barrier_all()
        T.copy(c0, O[cid * 32, 0])
        T.barrier_all()
    T.copy(b1, b0, transpose=True)
    T.barrier_all()
    T.mma(a0, b0, c0, init=True)
    T.barrier_all()
    T.copy(c0, P[cid * 32, 0])
    T.barrier_all()
    T.copy(b1, b0)
    T.barrier_all()
    T.mma(a0, b0, c0, init=True)
    """
    allocs = 'a0 = T.alloc_L0A((32, 64), "float16")\nb0 = T.alloc_L0B((64, 64), "float16")'
    old = plain(lines, allocs=allocs).replace("    ):\n", '        P: T.Tensor((64, 64), "float32"),\n    ):\n')
    old = old.replace("out_idx=[2]", "out_idx=[2, 3]")
    new = developer(old)
    same_results(old, new)


def deep(version: str) -> str:
    """A product that fits only in slices of 64: 256 columns of a right operand that stays in L1."""
    text = plain(
        """
        for kk in T.serial(4):
            T.copy(a1[0, kk * 64], a0[kk % 2, :, :])
            T.copy(b1[kk * 64, 0], b0[kk % 2, :, :])
            T.barrier_all()
            T.mma(a0[kk % 2, :, :], b0[kk % 2, :, :], c0, init=(kk == 0))
            T.barrier_all()
        """,
        allocs='a0 = T.alloc_L0A((2, 32, 64), "float16")\nb0 = T.alloc_L0B((2, 64, 256), "float16")',
    )
    for old, new in (("(32, 64)", "(32, 256)"), ("(64, 64)", "(256, 256)")):
        text = text.replace(f"T.alloc_L1({old}", f"T.alloc_L1({new}").replace(
            f"T.alloc_L0C({old}", f"T.alloc_L0C({new}"
        )
    text = text.replace("T.Tensor((64, 64)", "T.Tensor((256, 256)")
    result = migrate_text(text, "k.py", Options(ascend_version=version))
    return result.new_text if result.kernels[0].disposition == "migrated" and result.new_text else ""


def test_what_the_product_stages_can_be_said_to_a_newer_compiler() -> None:
    assert not deep("2026-06")
    assert "T.gemm_v0(a1, b1, c0, init=True, kL0Size=64)" in deep("2026-09")
