"""Tiles in front of ``T.Kernel`` and the number of the vector core under ``threads=2`` (TL839, TL824, TL828, TL832,
TL836)."""

from __future__ import annotations

import pytest

from tests.checks.support import LOAD, PARAMS, STORE, TILES, errors, findings, kernel, source
from tl2npu.codes import CODES

VECTORS = 'w = T.alloc_ub((64,), "float32")\nw2 = T.alloc_ub((64,), "float32")\nn = T.alloc_ub((32,), "int32")'
MORE = """
vid = T.get_block_binding(1)
s = T.alloc_ub((32,), "float32")
t = T.alloc_ub((64,), "float32")
mask = T.alloc_ub((32, 8), "uint8")
b_l1 = T.alloc_L1((32, 64), "float32")
"""


def found(statement: str, **settings: object) -> list[str]:
    """The codes of the errors of a kernel with ``threads=2`` and vectors in front of it."""
    text = source(kernel(TILES, MORE, LOAD, statement, STORE), **settings)  # type: ignore[arg-type]
    outside = "".join(f"        {line}\n" for line in VECTORS.splitlines())
    text = text.replace("        with T.Kernel", f"{outside}        with T.Kernel")
    return sorted({f.code for f in findings(text) if (f.severity or CODES[f.code].severity) == "error"})


@pytest.mark.parametrize(
    "statement",
    [
        "T.copy(A[cid, 0:64], w)",
        "T.tile.fill(w, 0.0)\nT.tile.add(w2, w, w)",
        "T.copy(A[0, 0:64], w)\nfor i, j in T.Parallel(32, 64):\n    b[i, j] = a[i, j] + w[j]",
        "T.copy(A[0, 0:64], w)\nfor i in T.serial(32):\n    T.tile.sub(b[i, :], w, T.float32(i + vid * 16))",
        "T.tile.createvecindex(n, 0)",
        "T.copy(A[0, 0:64], w)\nT.tile.mul(b, b, w[3])",  # a number, read by each core
        "for i, j in T.Parallel(32, 64):\n    if cid * 32 + i + vid * 16 > j:\n        b[i, j] = 0.0",
        "for i in T.serial(32):\n    x = A[cid * 32 + i + vid * 16, 0]\n    T.tile.add(b[i, :], a[i, :], x)",
        "T.tile.select(b[:16, :], mask, a[:16, :], 0.0, 'VSEL_TENSOR_SCALAR_MODE')",
        "T.tile.select(b[:16, :], mask, a[:16, :], b, 'VSEL_TENSOR_TENSOR_MODE')",
        "T.tile.atomic_add(O[cid * 32 + vid * 16 : cid * 32 + vid * 16 + 16, :], a[:16, :])",
    ],
)
def test_right_on_both_cores(statement: str) -> None:
    assert found(statement) == []


@pytest.mark.parametrize(
    ("statement", "codes"),
    [
        ("T.copy(w, O[cid, 0:64])", ["TL839"]),  # both cores store it
        ("T.copy(w, t)", ["TL839"]),  # half of a tile from a whole one
        ("T.tile.add(w, w, t)", ["TL839"]),
        ("T.reduce_sum(a, w, dim=0)", ["TL833", "TL839"]),
        ("for i in T.serial(32):\n    T.tile.add(w, w, a[i, :])", ["TL839"]),  # the rows of one core
        ("for i in T.serial(32):\n    T.tile.fill(w, 0.0)\n    T.tile.add(b[i, :], a[i, :], w)", ["TL839"]),
        ("T.copy(A[n[0], :], w)", ["TL839", "TL852"]),
        ("for i in T.serial(32):\n    T.copy(A[n[i + vid * 16], :], a[i, :])", ["TL824", "TL826", "TL839", "TL852"]),
        ("T.copy(A[vid * 16 : vid * 16 + 32, :], b_l1)", ["TL839"]),  # the cube core has no such number
        ("for i in T.serial(32):\n    T.tile.add(b[i, :], a[i, :], T.float32(i + vid * 32))", ["TL828"]),
        ("for i in T.serial(32):\n    T.tile.add(b[i, :], a[i, :], T.float32(2 * i + vid * 16))", ["TL828"]),
        ("for i in T.serial(32):\n    T.tile.add(b[i, :], a[i, :], w[i])", ["TL828"]),
        ("for i in T.serial(32):\n    T.copy(A[cid * 32 + i + vid * 16, :], a[i, :])", ["TL824"]),  # added twice
        ("T.tile.select(b, mask, a, 0.0, 'VSEL_TENSOR_SCALAR_MODE')", ["TL832"]),
        ("T.tile.add(b[:16, :], a[:16, :], a[:16, :])", ["TL832"]),  # halved once more
        (
            "T.tile.select(b[0:16, :], mask, a[0:16, :], 0.0, 'VSEL_TENSOR_SCALAR_MODE')",
            ["TL744", "TL825", "TL832", "TL897"],
        ),
        ("T.tile.select(b[:8, :], mask, a[:8, :], 0.0, 'VSEL_TENSOR_SCALAR_MODE')", ["TL825", "TL832", "TL897"]),
        ("T.tile.atomic_add(O[cid * 32 : cid * 32 + 16, :], a[:16, :])", ["TL836"]),
        ("T.tile.atomic_add(O[cid * 32 + vid * 8 : cid * 32 + vid * 8 + 16, :], a[:16, :])", ["TL836"]),
    ],
)
def test_wrong_on_one_of_the_cores(statement: str, codes: list[str]) -> None:
    assert found(statement) == codes


@pytest.mark.parametrize(
    ("value", "right"),
    [
        ("T.exp(a[i, j]) + i + vid * 16", True),
        ("i - T.exp(a[i, j]) + vid * 16", True),
        ("T.exp(a[i, j]) - i - vid * 16", True),
        ("T.exp(a[i, j]) + i + vid * 8", False),
        ("T.exp(a[i, j]) + i - vid * 16", False),
        ("T.exp(a[i, j] + i) + i + vid * 16", False),
        ("T.exp(a[i, j]) * i + vid * 16", False),
    ],
)
def test_a_row_number_in_a_sum(value: str, right: bool) -> None:
    codes = found(f"for i, j in T.Parallel(32, 64):\n    b[i, j] = {value}")
    assert ("TL828" not in codes) is right, codes


def test_target_pto_counts_by_the_halved_tile() -> None:
    half = "T.tile.select(b[:16, :], mask, a[:16, :], 0.0, 'VSEL_TENSOR_SCALAR_MODE')"
    assert "TL832" in found(half, jit="out_idx=[1], target='pto'")


def test_other_launches_do_not_halve_anything() -> None:
    assert errors(kernel(TILES, LOAD, STORE), params=PARAMS) == []


SIZED = [  # statement, and whether lowering for ascendc and for pto ended in a crash (measured, every one)
    ("T.tile.sin(w2, w)", True, None),
    ("T.tile.sigmoid(w2, w)", True, None),
    ("T.tile.pow(w2, w, w)", True, None),
    ("T.tile.clamp(w2, w, w, 0.0, 1.0)", True, True),
    ("T.reduce_max(p, w, dim=1)", True, True),
    ("T.reduce_max(q, w, dim=1)", False, False),
    ("T.reduce_max(q, w, dim=1, clear=False)", False, True),
    ("T.tile.broadcast(p, w)", True, False),
    ("T.tile.select(w2, m, w, 0.0, 'VSEL_TENSOR_SCALAR_MODE')", False, True),
    ("T.tile.exp(w2, w)", False, False),
]
"""None: the check says so for both targets, though pto was not seen to crash, or does not have the operator."""


@pytest.mark.parametrize(("statement", "ascendc", "pto"), SIZED, ids=[text for text, *_ in SIZED])
def test_scratch_memory_has_the_size_of_a_tile_in_the_launch(
    statement: str, ascendc: bool | None, pto: bool | None
) -> None:
    outside = "w = T.alloc_ub((64,), 'float32')\nw2 = T.alloc_ub((64,), 'float32')\np = T.alloc_ub((64, 64), 'float32')"
    inside = "q = T.alloc_ub((64, 64), 'float32')\nm = T.alloc_ub((8,), 'uint8')"
    for target, crashes in (("ascendc", ascendc), ("pto", pto)):
        text = source(kernel(TILES, MORE, inside, LOAD, statement, STORE), jit=f'out_idx=[1], target="{target}"')
        lines = "".join(f"        {line}\n" for line in outside.splitlines())
        text = text.replace("        with T.Kernel", f"{lines}        with T.Kernel").replace("threads=2", "threads=1")
        messages = [f.message for f in findings(text) if f.code == "TL839"]
        if crashes is not None:
            assert any("scratch memory" in message for message in messages) == crashes
