"""Reads that only a condition keeps inside of their buffer: the condition stays, or the read asks for itself.

What is expected is worked out by plain loops over the meaning of the source, which asks before it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from tests.passes.gpu.support import gpu_file, migrated, refused
from tests.passes.simulated import run
from tl2npu.migration import migrate_text
from tl2npu.options import Options
from tl2npu.simulator.lowering.lower import ACTUAL, IDEAL

Inputs = Mapping[str, np.ndarray]
Reads = Callable[[Inputs, int, int], float]

RANDOM = np.random.default_rng(7)
X = RANDOM.integers(1, 99, (32, 64)).astype(np.float32)
ROWS = RANDOM.integers(-1, 32, (32,)).astype(np.int32)
ROWS[[0, 5]], ROWS[31] = -1, 31
PAGES = np.array([3, -1, 0, -1], np.int32)
SCALES = np.array([3, 5, 7, 11], np.float32)
INPUTS = {"X": X, "I": ROWS, "P": PAGES, "Y": SCALES}
TENSORS = {"X": "(32, 64), 'float32'", "I": "(32,), 'int32'", "P": "(4,), 'int32'", "Y": "(4,), 'float32'"}
PARAMS = ", ".join(f"{name}: T.Tensor({text})" for name, text in {**TENSORS, "O": TENSORS["X"]}.items())


def indented(text: str, depth: int = 1) -> str:
    return "".join("    " * depth + line + "\n" for line in text.split("\n"))


def whole(statements: str, *, on_chip: bool) -> str:
    """All rows in one block; ``x`` is the tensor, or a tile that holds it."""
    body = "o = T.alloc_fragment((32, 64), 'float32')\n"
    body += "x = T.alloc_shared((32, 64), 'float32')\nT.copy(X, x)\n" if on_chip else ""
    body += f"for i, j in T.Parallel(32, 64):\n{indented(statements if on_chip else statements.replace('x[', 'X['))}"
    return gpu_file(PARAMS, body + "T.copy(o, O)", launch="T.Kernel(1, threads=128) as bx")


def blocks(statements: str, before: str = "", loop: str = "for i, j in T.Parallel(8, 64):") -> str:
    """Eight rows in each of four blocks."""
    body = f"o = T.alloc_fragment((8, 64), 'float32')\nT.clear(o)\n{before}{loop}\n{indented(statements)}"
    return gpu_file(PARAMS, body + "T.copy(o, O[bx * 8, 0])", launch="T.Kernel(4, threads=128) as bx")


def expected(reads: Reads) -> np.ndarray:
    return np.array([[reads(INPUTS, i, j) for j in range(64)] for i in range(32)], np.float64)


def holds(text: str, reads: Reads) -> str:
    new = migrated(text)
    for reading in (IDEAL, ACTUAL):
        found = run(new, INPUTS, "factory", (), reading)["O"]
        np.testing.assert_allclose(found, expected(reads), 1e-6, err_msg=reading)
    return new


def left(t: Inputs, i: int, j: int) -> float:
    return t["X"][i, j - 1] if j > 0 else 0


def above(t: Inputs, i: int, j: int) -> float:
    return t["X"][i - 1, j] if i > 0 else 0


SHIFTS = [
    ("o[i, j] = T.if_then_else(j > 0, x[i, j - 1], 0)", left),
    ("if j >= 1:\n    o[i, j] = x[i, j - 1]\nelse:\n    o[i, j] = 0", left),
    ("o[i, j] = x[i, j - 1] if j > 0 else 0.0", left),
    ("o[i, j] = T.Select(j > 0, x[i, j - 1], 0)", left),
    ("k = j - 1\nok = k >= 0\no[i, j] = T.if_then_else(ok, x[i, k], 0)", left),
    ("o[i, j] = T.if_then_else(i == 0, 0, x[i - 1, j])", above),
    ("o[i, j] = 0\nif i > 0:\n    o[i, j] = x[i - 1, j]", above),
    ("o[i, j] = T.if_then_else(j + 1 < 64, x[i, j + 1], 0)", lambda t, i, j: t["X"][i, j + 1] if j < 63 else 0),
    ("o[i, j] = T.if_then_else(i + 1 < 32, x[i + 1, j], 5)", lambda t, i, j: t["X"][i + 1, j] if i < 31 else 5),
    (
        "o[i, j] = T.if_then_else(T.And(i > 0, j > 0), x[i - 1, j - 1], 0)",
        lambda t, i, j: t["X"][i - 1, j - 1] if i and j else 0,
    ),
    (
        "o[i, j] = 1\nif i % 2 == 1:\n    o[i, j] = x[i - 1, j] + 2",
        lambda t, i, j: t["X"][i - 1, j] + 2 if i % 2 else 1,
    ),
    (
        "o[i, j] = x[i, j] * 2 + T.if_then_else(i > 0, x[i - 1, j], 0)",
        lambda t, i, j: t["X"][i, j] * 2 + above(t, i, j),
    ),
    (
        "o[i, j] = T.if_then_else(i > 0, x[i - 1, j] * 2 + x[i, j], x[i, j])",
        lambda t, i, j: t["X"][i - 1, j] * 2 + t["X"][i, j] if i else t["X"][i, j],
    ),
    ("o[i, j] = T.if_then_else(i >= 4, x[i - 4, j], -1.0)", lambda t, i, j: t["X"][i - 4, j] if i >= 4 else -1),
]


@pytest.mark.sampled
@pytest.mark.parametrize("on_chip", [True, False])
@pytest.mark.parametrize(("statements", "reads"), SHIFTS)
def test_shifts(statements: str, reads: Reads, on_chip: bool) -> None:
    holds(whole(statements, on_chip=on_chip), reads)


ON_CHIP = [
    ("if i % 2:\n    o[i, j] = x[i - 1, j]\nelse:\n    o[i, j] = x[i, j]", lambda t, i, j: t["X"][i - i % 2, j]),
    (
        "if i > 0 and x[i - 1, j] > 50:\n    o[i, j] = 1\nelse:\n    o[i, j] = 2",
        lambda t, i, j: 1 if i and t["X"][i - 1, j] > 50 else 2,
    ),
    (
        "o[i, j] = T.if_then_else(T.Or(j == 63, x[i, j + 1] > 50), 1, x[i, j])",
        lambda t, i, j: 1 if j == 63 or t["X"][i, j + 1] > 50 else t["X"][i, j],
    ),
    ("o[i, j] = T.if_then_else(i > 0, x[i - 1, 0], x[i, j])", lambda t, i, j: t["X"][i - 1, 0] if i else t["X"][i, j]),
    (
        "o[i, j] = T.if_then_else(j % 2 == 0, -x[i, j + 1], x[i, j - 1])",
        lambda t, i, j: t["X"][i, j - 1] if j % 2 else -t["X"][i, j + 1],
    ),
    (
        "if j < 32:\n    o[i, j] = -x[i, j + 32]\nelse:\n    o[i, j] = x[i, j - 32]",
        lambda t, i, j: -t["X"][i, j + 32] if j < 32 else t["X"][i, j - 32],
    ),
    ("o[i, j] = x[i, T.max(j - 1, 0)]", lambda t, i, j: t["X"][i, max(j - 1, 0)]),
]


@pytest.mark.parametrize(("statements", "reads"), ON_CHIP)
def test_tiles(statements: str, reads: Reads) -> None:
    holds(whole(statements, on_chip=True), reads)


def test_what_lies_inside_is_computed_at_once() -> None:
    """Nothing but its tile bounds ``x[i, j]``, whatever the condition asks."""
    text = whole("o[i, j] = T.if_then_else(j > 3, x[i, j], 0)", on_chip=True)
    assert "if j" not in holds(text, lambda t, i, j: t["X"][i, j] if j > 3 else 0)


def row(t: Inputs, i: int, j: int) -> float:
    return t["X"][t["I"][i], j] if t["I"][i] >= 0 else 0


def page(t: Inputs, i: int, j: int) -> float:
    return t["X"][t["P"][i // 8] * 8 + i % 8, j] if t["P"][i // 8] >= 0 else 0


NAMED = "p = I[bx * 8 + i]\nfor j in T.Parallel(64):\n    "
BLOCKS = [
    (blocks("o[i, j] = T.if_then_else(bx * 8 + i > 0, X[bx * 8 + i - 1, j], 0)"), above),
    (blocks("o[i, j] = X[bx * 8 + i - 1, j]"), above),  # a GPU reads zeros there
    (
        blocks("if bx > 0:\n    o[i, j] = X[(bx - 1) * 8 + i, j]\nelse:\n    o[i, j] = 0"),
        lambda t, i, j: t["X"][i - 8, j] if i >= 8 else 0,
    ),
    (
        blocks(
            "for i, j in T.Parallel(8, 64):\n    o[i, j] = X[(bx - 1) * 8 + i, j]",
            loop="if bx % 2 == 1:",
        ),
        lambda t, i, j: t["X"][i - 8, j] if i // 8 % 2 else 0,
    ),
    (
        blocks(
            "for i, j in T.Parallel(8, 64):\n"
            "    r = bx * 8 + i + k - 1\n"
            "    o[i, j] += T.if_then_else(r >= 0 and r < 32, X[r, j], 0)",
            loop="for k in T.serial(3):",
        ),
        lambda t, i, j: sum(t["X"][i + k - 1, j] for k in range(3) if 0 <= i + k - 1 < 32),
    ),
    (
        blocks(
            "for i, j in T.Parallel(8, 64):\n"
            "    if j + k - 1 >= 0 and j + k - 1 < 64:\n"
            "        o[i, j] += X[bx * 8 + i, j + k - 1]",
            loop="for k in T.serial(3):",
        ),
        lambda t, i, j: sum(t["X"][i, j + k - 1] for k in range(3) if 0 <= j + k - 1 < 64),
    ),
    (blocks("o[i, j] = T.if_then_else(I[bx * 8 + i] != -1, X[I[bx * 8 + i], j], 0)"), row),
    (blocks("if I[bx * 8 + i] >= 0:\n    o[i, j] = X[I[bx * 8 + i], j]"), row),
    (blocks(NAMED + "o[i, j] = T.if_then_else(p >= 0, X[p, j], 0)", loop="for i in T.serial(8):"), row),
    (
        blocks(NAMED + "o[i, j] = 1 + T.if_then_else(p >= 0, X[p, j], 0)", loop="for i in T.serial(8):"),
        lambda t, i, j: 1 + row(t, i, j),
    ),
    (
        blocks(
            "for j in T.Parallel(64):\n    if I[bx * 8 + i] >= 0:\n        o[i, j] = X[I[bx * 8 + i], j] + 3",
            loop="for i in T.serial(8):",
        ),
        lambda t, i, j: row(t, i, j) + 3 if t["I"][i] >= 0 else 0,
    ),
    (blocks("o[i, j] = T.if_then_else(P[bx] >= 0, X[P[bx] * 8 + i, j], 0)"), page),
    (
        blocks("if p >= 0:\n    o[i, j] = X[p * 8 + i, j]\nelse:\n    o[i, j] = 0", before="p = P[bx]\n"),
        page,
    ),
    (
        blocks("if p != -1 and i > 0:\n    o[i, j] = X[p * 8 + i - 1, j] + 1", before="p = P[bx]\n"),
        lambda t, i, j: t["X"][t["P"][i // 8] * 8 + i % 8 - 1, j] + 1 if t["P"][i // 8] != -1 and i % 8 else 0,
    ),
    (
        blocks("o[i, j] = X[bx * 8 + i, j] * T.if_then_else(P[bx] >= 0, Y[P[bx]], 1.0)"),
        lambda t, i, j: t["X"][i, j] * (t["Y"][t["P"][i // 8]] if t["P"][i // 8] >= 0 else 1),
    ),
    (
        blocks("o[i, j] = X[bx * 8 + i, j] + T.if_then_else(bx + 1 < 4, Y[bx + 1], 0)"),
        lambda t, i, j: t["X"][i, j] + (t["Y"][i // 8 + 1] if i < 24 else 0),
    ),
    (
        blocks("o[i, j] = T.if_then_else(p >= 0 and Y[p] > 4, X[bx * 8 + i, j], 0)", before="p = P[bx]\n"),
        lambda t, i, j: t["X"][i, j] if t["P"][i // 8] >= 0 and t["Y"][t["P"][i // 8]] > 4 else 0,
    ),
    (  # a loop that does not run where there is no page
        blocks(
            "for i, j in T.Parallel(8, 64):\n    o[i, j] += X[p * 8 + i, j]",
            before="p = P[bx]\n",
            loop="for k in T.serial(T.min(p + 1, 1)):",
        ),
        page,
    ),
]


@pytest.mark.sampled
@pytest.mark.parametrize(("text", "reads"), BLOCKS)
def test_blocks(text: str, reads: Reads) -> None:
    holds(text, reads)


@pytest.mark.parametrize(
    ("value", "reads"),
    [
        ("T.if_then_else(b + 1 < 3, X[b + 1, by * 8 + i, j], 0)", lambda x, b, i, j: x[b + 1, i, j] if b < 2 else 0),
        ("T.if_then_else(b > 0, X[b - 1, by * 8 + i, j], 7)", lambda x, b, i, j: x[b - 1, i, j] if b > 0 else 7),
    ],
)
def test_axes_in_which_no_copy_ends(value: str, reads: Callable[[np.ndarray, int, int, int], float]) -> None:
    shape = "T.Tensor((3, 16, 64), 'float32')"
    body = f"o = T.alloc_fragment((8, 64), 'float32')\nfor i, j in T.Parallel(8, 64):\n    o[i, j] = {value}\n"
    body += "T.copy(o, O[b, by * 8, 0])"
    new = migrated(gpu_file(f"X: {shape}, O: {shape}", body, launch="T.Kernel(3, 2, threads=128) as (b, by)"))
    given = RANDOM.integers(1, 99, (3, 16, 64)).astype(np.float32)
    meant = [[[reads(given, b, i, j) for j in range(64)] for i in range(16)] for b in range(3)]
    for reading in (IDEAL, ACTUAL):
        np.testing.assert_array_equal(run(new, {"X": given}, "factory", (), reading)["O"], meant)


@pytest.mark.parametrize(
    ("statement", "reads"),
    [
        ("x[-1, j]", lambda t, i, j: t["X"][31, j]),
        ("x[i, -1]", lambda t, i, j: t["X"][i, 63]),
        ("x[i, -1 - j]", lambda t, i, j: t["X"][i, 63 - j]),
        ("T.if_then_else(j > 3, x[-1, j], 0)", lambda t, i, j: t["X"][31, j] if j > 3 else 0),
    ],
)
@pytest.mark.parametrize("on_chip", [True, False])
def test_negative_numbers_count_from_the_end(statement: str, reads: Reads, on_chip: bool) -> None:
    """``legalize_negative_index.cc`` of the GPU's compiler; an NPU's takes the address before the first element."""
    text = whole(f"o[i, j] = {statement}", on_chip=on_chip)
    holds(text, reads)


def test_functions_of_single_values_are_refused() -> None:
    body = "s = T.alloc_shared((32,), 'float32')\nx = T.alloc_shared((32, 64), 'float32')\nT.copy(X, x)\n"
    body += "for r in T.serial(32):\n    s[r] = T.if_then_else(r > 0, T.exp(x[r - 1, 0]), 1.0)\n"
    body += "for i, j in T.Parallel(32, 64):\n    x[i, j] = x[i, j] * s[i]\nT.copy(x, O)"
    text = gpu_file(PARAMS, body, launch="T.Kernel(1, threads=128) as bx")
    assert [code for code, _ in refused(text)] == ["TL179"]


@pytest.mark.parametrize(
    ("text", "reads"), [*((whole(s, on_chip=True), r) for s, r in (*SHIFTS, *ON_CHIP)), *BLOCKS], ids=range(39)
)
def test_npuir(text: str, reads: Reads) -> None:
    """Right or refused."""
    result = migrate_text(text, "k.py", Options(target="npuir"))
    assert result.error is None
    assert result.new_text is not None
    if result.kernels[0].disposition == "migrated":
        found = run(result.new_text, INPUTS, "factory", (), IDEAL)["O"]
        np.testing.assert_allclose(found, expected(reads), 1e-6)
    else:
        assert result.new_text == text


@pytest.mark.parametrize("other", ["0.0", "1.0", "-7.0", "-T.infinity('float32')"])
@pytest.mark.parametrize(
    "condition",
    [
        "k * 48 + j < 64 and bx * 20 + i < 32",
        "(bx * 20 + i < 32) & (k * 48 + j < 64)",
        "k * 48 + j < 64",
        "bx * 20 + i < 32",
    ],
)
def test_both_ends_of_a_tensor(condition: str, other: str) -> None:
    """A clamped copy puts zeros behind the last column: only they are left to it."""
    body = f"""
x = T.alloc_fragment((20, 48), 'float32')
m = T.alloc_fragment((20,), 'float32')
for k in T.serial(2):
    for i, j in T.Parallel(20, 48):
        x[i, j] = T.if_then_else({condition}, X[bx * 20 + i, k * 48 + j], {other})
    T.reduce_max(x, m, dim=1)
    for i in T.Parallel(20):
        S[bx, k, i] = m[i]
"""
    text = gpu_file(f"{PARAMS}, S: T.Tensor((2, 2, 20), 'float32')", body, launch="T.Kernel(2, threads=128) as bx")
    padded = np.zeros((40, 96), np.float32)  # what a GPU reads outside of a tensor
    padded[:32, :64] = -X
    value = -np.inf if "inf" in other else float(other)
    if "k *" in condition:
        padded[:, 64:] = value
    if "bx *" in condition:
        padded[32:] = value
    want = padded.reshape(2, 20, 2, 48).max(3).transpose(0, 2, 1)
    for reading in (IDEAL, ACTUAL):
        found = run(migrated(text), {**INPUTS, "X": -X}, "factory", (), reading)["S"]
        np.testing.assert_array_equal(found, want, err_msg=reading)


@pytest.mark.parametrize(
    ("statements", "reads"),
    [
        ("if bx * 8 + i < 32:\n    if i > 0:\n        O[bx * 8 + i, j] = x[i - 1, j]", lambda x, i, j: x[i - 1, j]),
        ("if i > 0:\n    O[bx * 8 + i, j] = x[i - 1, j] * 2 + x[i, j]", lambda x, i, j: x[i - 1, j] * 2 + x[i, j]),
        ("if i > 0:\n    if bx * 8 + i < 32:\n        O[bx * 8 + i, j] = x[i - 1, 0]", lambda x, i, j: x[i - 1, 0]),
        ("if i > 0:\n    O[bx * 8 + i, j] = x[i, j] + 1", lambda x, i, j: x[i, j] + 1),
        ("if i >= 1 and bx < 4:\n    O[bx * 8 + i, j] = T.max(x[i - 1, j], 40)", lambda x, i, j: max(x[i - 1, j], 40)),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_rows_that_are_stored_under_a_condition(statements: str, reads: Callable[..., float], dtype: str) -> None:
    """What is stored is computed for all rows: nothing is read outside of its tile, and nothing undefined."""
    body = f"x = T.alloc_shared((8, 64), '{dtype}')\nT.copy(X[bx * 8, 0], x)\n"
    body += f"for i, j in T.Parallel(8, 64):\n{indented(statements)}"
    params = ", ".join(f"{name}: T.Tensor((32, 64), '{dtype}')" for name in "XO")
    text = gpu_file(params, body, launch="T.Kernel(4, threads=128) as bx")
    found = run(migrated(text), {"X": X.astype(dtype)}, "factory", (), ACTUAL)["O"]
    tiles = X.reshape(4, 8, 64)
    for block, i, j in np.ndindex(4, 8, 64):
        if i > 0:
            assert found[block * 8 + i, j] == reads(tiles[block], i, j)


def test_conditions_in_conditions_go_with_a_clamped_copy() -> None:
    """Kept, the inner one would make a choice between what is computed and what the tile holds: nothing yet."""
    statements = "if bx * 8 + i < 32:\n    if i < 6:\n        O[bx * 8 + i, j] = x[i, j] + 1"
    body = "x = T.alloc_shared((8, 64), 'int32')\nT.copy(X[bx * 8, 0], x)\n"
    body += f"for i, j in T.Parallel(8, 64):\n{indented(statements)}"
    params = ", ".join(f"{name}: T.Tensor((32, 64), 'int32')" for name in "XO")
    new = migrated(gpu_file(params, body, launch="T.Kernel(4, threads=128) as bx"))
    assert "T.tile.compare" not in new
    assert "[i, j] = x[i, j] + 1" in new


def test_an_element_that_the_compiler_would_guard_gets_a_name() -> None:
    """Of `bx * 16 + k` it cannot prove that it is below `M`, and it prints its condition into the middle of a store."""
    params = "S: T.Tensor((M,), 'float32'), O: T.Tensor((M,), 'float32')"
    body = "total = T.alloc_fragment((16,), 'float32')\ntotal[0] = 0.0\n"
    body += "for k in T.serial(16):\n    total[0] += S[bx * 16 + k]\n"
    body += "for k in T.serial(M):\n    total[0] += S[k]\n"
    body += "for i in T.Parallel(16):\n    total[i] = total[0]\nT.copy(total, O[bx * 16])\n"
    text = gpu_file(params, body).replace("    @T.prim_func", "    M = T.dynamic('M')\n\n    @T.prim_func", 1)
    new = migrated(text)
    assert "if bx * 16 + k < M:\n                    s_value = S[bx * 16 + k]\n" in new
    assert "total[0] += s_value\n" in new
    assert "total[0] += S[k]\n" in new
