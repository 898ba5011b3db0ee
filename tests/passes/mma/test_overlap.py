"""Products whose stages overlap in straight-line code: every order that keeps the data is one and the same program."""

from __future__ import annotations

import re

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.passes.support import IMPORTS, developer, kernel, migrated, only, refused, same_results

PARAMS = (
    'A: T.Tensor((64, 64), "float16")',
    'B: T.Tensor((64, 64), "float16")',
    'O: T.Tensor((64, 32), "float32")',
)
ALLOCS = """
a1 = T.alloc_L1((16, 32), "float16")
a0 = T.alloc_L0A((16, 32), "float16")
""" + "".join(
    f"""l1_{i} = T.alloc_L1((16, 32), "float16")
l0_{i} = T.alloc_L0B((32, 16), "float16")
c_{i} = T.alloc_L0C((16, 16), "float32")
"""
    for i in range(2)
)

Line = tuple[str, frozenset[str], frozenset[str]]
"""The text, what it reads, what it writes."""


def program(slots: list[tuple[int, int, int]]) -> list[Line]:
    """One product after the other, each in its own slots of L1, L0B and L0C."""
    lines: list[Line] = [("T.copy(a1, a0)", frozenset({"a1"}), frozenset({"a0"}))]
    for number, (l1, l0, c) in enumerate(slots):
        lines += [
            (f"T.copy(B[{number * 16}, 0], l1_{l1})", frozenset(), frozenset({f"l1_{l1}"})),
            (f"T.copy(l1_{l1}, l0_{l0}, transpose=True)", frozenset({f"l1_{l1}"}), frozenset({f"l0_{l0}"})),
            (f"T.mma(a0, l0_{l0}, c_{c}, init=True)", frozenset({"a0", f"l0_{l0}"}), frozenset({f"c_{c}"})),
            (f"T.copy(c_{c}, O[{number * 16}, cid * 16])", frozenset({f"c_{c}"}), frozenset({f"O{number}"})),
        ]
    return lines


def bound(first: Line, second: Line) -> bool:
    return bool(first[2] & (second[1] | second[2]) or second[2] & first[1])


@st.composite
def shuffled(draw: st.DrawFn) -> list[str]:
    """A program of up to four products in any order that keeps its results."""
    slot = st.integers(0, 1)
    rest = program(draw(st.lists(st.tuples(slot, slot, slot), min_size=4, max_size=4)))
    found: list[str] = []
    while rest:
        free = [i for i, line in enumerate(rest) if not any(bound(other, line) for other in rest[:i])]
        found.append(rest.pop(draw(st.sampled_from(free)))[0])
    return found


def text(lines: list[str]) -> str:
    body = ALLOCS + 'with T.Scope("C"):\n    T.copy(A[cid * 16, 0], a1)\n    T.barrier_all()\n'
    body += "".join(f"    {line}\n    T.barrier_all()\n" for line in lines)
    return IMPORTS + kernel(body, params=PARAMS, jit="out_idx=[2]")


@settings(max_examples=4, deadline=None, phases=(Phase.generate,))  # each runs two kernels on the simulator
@given(shuffled())
def test_any_order_that_keeps_the_data(lines: list[str]) -> None:
    """It computes the same, or is refused because a slot of L1 is loaded anew before a product that has it in L0."""
    old = text(lines)
    found = only(migrated(old))
    if found.disposition == "refused":
        assert found.reason.endswith("changes between its copy to L0 and the mma")
    else:
        same_results(old, developer(old))


WAVES = [line[0] for line in program([(0, 0, 0), (1, 1, 1), (0, 0, 0), (1, 1, 1)])]
OVERLAPPED = [WAVES[i] for i in (0, 1, 5, 2, 9, 6, 3, 13, 10, 7, 4, 14, 11, 8, 15, 12, 16)]


def test_a_product_stands_with_its_loads_and_its_result() -> None:
    body = developer(text(OVERLAPPED)).split("with T.Kernel")[1]
    order = re.findall(r"B\[(\d+)|gemm_v0\(a1, (l1_\d)|O\[(\d+)", body)
    expected = [(f"{n * 16}", f"l1_{n % 2}", f"{n * 16}") for n in range(4)]
    assert ["".join(item) for item in order] == [text for product in expected for text in product]


@pytest.mark.parametrize("between", ["if cid >= 0:\n        T.copy(A[0, 0], a1)", "T.sync_all()"])
def test_nothing_moves_past_what_is_no_part_of_the_pipeline(between: str) -> None:
    refused(text([*OVERLAPPED[:5], between, *OVERLAPPED[5:]]))
