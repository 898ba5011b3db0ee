"""``if vid == 0``: two texts for two cores, and one core working alone."""

from __future__ import annotations

import pytest

from tests.passes.support import (
    LOAD,
    STORE,
    developer,
    migrated,
    only,
    refused,
    right_or_refused,
    same_results,
    vector_file,
)

TILE = 'a = T.alloc_ub((16, 64), "float32")\n'
EXP = "T.tile.exp(a, a)\n"


def halves(first: str, second: str, test: str = "vid == 0", body: str = EXP) -> str:
    return vector_file(f"{TILE}if {test}:\n    {first}\nelse:\n    {second}\n{body}{STORE}")


def test_halves_that_are_written_out_are_refused() -> None:
    old = halves("T.copy(A[cid * 32, 0], a)", "T.copy(A[cid * 32 + 16, 0], a)")
    assert "TL220" in {found.code for found in migrated(old).diagnostics}
    right_or_refused(old)


# The two cores do different things, so neither the full form nor core 0's half of it may come out.
DIFFERENT = {
    "fill values": ("T.tile.fill(a, 0.0)", "T.tile.fill(a, 1.0)"),
    "negative numbers": ("T.tile.add(a, a, -1.0)", "T.tile.add(a, a, -2.0)"),
    "negative integers": ("T.tile.add(a, a, -1)", "T.tile.add(a, a, -2)"),
    "operators": ("T.tile.exp(a, a)", "T.tile.abs(a, a)"),
    "modes": ('T.tile.cast(a, a, "CAST_RINT", 1024)', 'T.tile.cast(a, a, "CAST_FLOOR", 1024)'),
    "tensors": ("T.copy(A[cid * 32, 0], a)", "T.copy(B[cid * 32 + 16, 0], a)"),
    "not a row offset": ("T.copy(A[cid * 32, 0], a)", "T.copy(A[cid * 32 + 8, 0], a)"),
    "the same rows": ("T.copy(B[cid * 32, 0], a)", "T.copy(B[cid * 32, 0], a)"),
    "columns": ("T.copy(A[cid * 32, 0], a)", "T.copy(A[cid * 32 + 16, 0:64], a)"),
    "scalars": ("T.tile.mul(a, a, 2)", "T.tile.mul(a, a, 3)"),
    "stores": ("a[0, 0] = 1.0", "a[0, 0] = 2.0"),
    "targets": ("n = 1", "m = 1"),
    "names": ("n = 1", "n = 2"),
    "keywords": ("T.tile.mul(a, a, src1=2.0)", "T.tile.mul(a, a, src1=3.0)"),
    "two rows": ("a[0, 0] = 1.0", "a[1, 0] = 1.0"),
    "pass": ("pass", "T.tile.exp(a, a)"),
    "a test": ("n = 1 if M < 3 else 2", "n = 1 if M < 4 else 2"),
}


@pytest.mark.parametrize("threads", ["auto", "1"])
@pytest.mark.parametrize("case", DIFFERENT)
def test_different_work_of_the_two_cores(case: str, threads: str) -> None:
    first, second = DIFFERENT[case]
    body = f"{LOAD}M = 3\nif vid == 0:\n    {first}\nelse:\n    {second}\n{STORE}"
    right_or_refused(vector_file(body), threads)


def test_different_loops_of_the_two_cores() -> None:
    body = (
        "if vid == 0:\n    for i in range(16):\n        T.tile.exp(a[i, :], a[i, :])\n"
        "else:\n    for j in range(16):\n        T.tile.abs(a[j, :], a[j, :])\n"
    )
    right_or_refused(vector_file(LOAD + body + STORE))


def test_the_same_loop_of_the_two_cores() -> None:
    loop = "    for i in range(16):\n        T.tile.exp(a[i, :], a[i, :])\n"
    old = vector_file(f"{LOAD}if vid == 0:\n{loop}else:\n{loop}{STORE}")
    right_or_refused(old)


ALONE = """
a = T.alloc_ub((32, 64), "float32")
{guard}
    T.copy(A[cid * 32, 0], a)
    T.tile.exp(a, a)
    T.copy(a, O[cid * 32, 0])
"""


@pytest.mark.parametrize(
    "guard",
    [
        "if vid == 0:",
        "if vid == 1:",
        "if 0 == vid:",
        "if (vid == 0):",
        "if vid < 1:",
        "if 1 > vid:",
        "if not vid:",
        "if vid:",
        "if vid != 0:",
        "if not vid != 1:",
        "if vid * 2 == 2:",
    ],
)
def test_one_core_alone(guard: str) -> None:
    old = vector_file(ALONE.format(guard=guard))
    new = developer(old)
    same_results(old, new)
    assert "TL206" in {change.code for change in migrated(old).changes}
    assert "if" not in new.split("with T.Kernel")[1]


def test_a_comment_above_a_guard_stays() -> None:
    new = developer(vector_file(ALONE.format(guard="# one core\nif vid == 0:  # the first")))
    assert "# one core" in new


@pytest.mark.parametrize(
    "guard",
    [
        "if vid != 1:",
        "if not vid:",
        "if vid < 1:",
        "if vid == 0 and cid < 9:",
        "if vid == cid - cid:",
        "while vid == 0:",
    ],
)
def test_other_conditions_on_vid(guard: str) -> None:
    right_or_refused(vector_file(ALONE.format(guard=guard).replace("while vid == 0:", "if vid == 0 or vid == 0:")))


def test_a_guard_beside_another_use_of_vid() -> None:
    refused(vector_file(f"{LOAD}if vid == 0:\n    T.tile.exp(a, a)\n{STORE}"), "TL220")


def test_guards_of_both_cores() -> None:
    body = """
    a = T.alloc_ub((32, 64), "float32")
    b = T.alloc_ub((32, 64), "float32")
    if vid == 0:
        T.copy(A[cid * 32, 0], a)
        T.tile.exp(a, a)
    if vid == 1:
        T.copy(B[cid * 32, 0], b)
        T.copy(b, O[cid * 32, 0])
    """
    right_or_refused(vector_file(body))


def test_a_guard_around_an_accumulation_that_both_cores_would_do() -> None:
    body = """
    a = T.alloc_ub((32, 64), "float32")
    T.copy(A[cid * 32, 0], a)
    if vid == 0:
        T.tile.exp(a, a)
    if vid == 0:
        T.copy(a, O[cid * 32, 0])
    """
    right_or_refused(vector_file(body))


def test_an_elif_for_the_other_core() -> None:
    text = vector_file(
        f"{TILE}if vid == 0:\n    T.copy(A[cid * 32, 0], a)\nelif vid == 1:\n"
        f"    T.copy(A[cid * 32 + 16, 0], a)\n{STORE}"
    )
    right_or_refused(text)
    assert only(migrated(text)).disposition != "refused"


MEETING = {
    "a sum": """
T.tile.fill(b, 1.0)
{zero}
    T.copy(A[cid * 32, 0], a)
    T.tile.add(b, b, a)
    T.copy(b, O[cid * 32, 0])
{one}
    T.copy(B[cid * 32, 0], a)
    T.tile.add(b, b, a)
    T.copy(b, O[cid * 32, 0])
""",
    "a tile from before": """
T.copy(A[cid * 32, 0], b)
{zero}
    T.tile.exp(b, b)
{one}
    T.copy(b, O[cid * 32, 0])
""",
    "the next run of a loop": """
T.tile.fill(b, 0.0)
for i in range(2):
    {one}
        T.copy(b, O[cid * 32, 0])
    {zero}
        T.copy(A[cid * 32, 0], b)
""",
}


@pytest.mark.parametrize("threads", ["auto", "1"])
@pytest.mark.parametrize("case", MEETING)
def test_guards_of_both_cores_that_meet_in_a_tile(case: str, threads: str) -> None:
    tiles = 'a = T.alloc_ub((32, 64), "float32")\nb = T.alloc_ub((32, 64), "float32")\n'
    body = MEETING[case].format(zero="if vid == 0:", one="if vid == 1:")
    if threads == "auto":
        refused(vector_file(tiles + body), "TL220")
    else:
        assert right_or_refused(vector_file(tiles + body), threads)  # a block for each core: each has its own tile


def test_guards_of_both_cores_that_load_anew() -> None:
    body = """
    a = T.alloc_ub((16, 64), "float32")
    if vid == 0:
        T.copy(A[cid * 32, 0], a)
        T.tile.exp(a, a)
        T.copy(a, O[cid * 32, 0])
    if 1 == vid:
        T.copy(B[cid * 32 + 16, 0], a)
        T.copy(a, O[cid * 32 + 16, 0])
    """
    old = vector_file(body)
    new = developer(old)
    assert "vid" not in new
    same_results(old, new)


ROW = """
row = T.alloc_ub((1, 64), "float32")
{outside}
for i in range(32):
    {guard}
        T.copy(A[cid * 32 + i, 0], row)
        T.tile.exp(row, row)
        T.copy(row, O[cid * 32 + i, 0])
"""


@pytest.mark.parametrize("outside", ["", "T.tile.fill(row, 0.0)"])
@pytest.mark.parametrize("guard", ["if vid == 0:", "if 1 == vid:"])
def test_one_core_alone_with_rows_that_cannot_be_split(guard: str, outside: str) -> None:
    old = vector_file(ROW.format(guard=guard, outside=outside))
    result = migrated(old)
    assert (only(result).disposition, only(result).target) == ("migrated", "developer-threads1")
    assert {d.severity for d in result.diagnostics if d.code == "TL821"} == {"info"}
    new = developer(old)
    assert "threads=1" in new
    assert "vid" not in new
    same_results(old, new)


def test_one_core_alone_stays_where_two_cores_run_anyway() -> None:
    """Target pto launches both vector cores with ``threads=1`` too, and nothing may be known of a target."""
    text = vector_file(ROW.format(guard="if vid == 0:", outside=""))
    for target in ('"pto"', "TARGET"):
        other = text.replace("out_idx=[2]", f"out_idx=[2], target={target}")
        assert only(migrated(other)).disposition == "unchanged", target
        developer(other, "1")  # a block for each core, which both cores of a block may run
        updated = other.replace("T.copy(A[cid", "T.copy(O[cid")
        assert updated != other
        assert only(migrated(updated, "1")).disposition == "unchanged", target


def test_repeats_of_both_cores_stays_with_both() -> None:
    body = """
    row = T.alloc_ub((1, 64), "float32")
    if vid == 0:
        T.copy(A[cid, 0], row)
        T.copy(row, O[cid, 0])
    if vid == 1:
        T.copy(B[cid + 32, 0], row)
        T.copy(row, O[cid + 32, 0])
    """
    assert only(migrated(vector_file(body))).disposition == "unchanged"


def test_both_cores_doing_the_same_lose_nothing_with_one() -> None:
    """Plain stores are made once then; what a tensor is updated with would count once, and not twice."""
    body = 'with T.Scope("V"):\n    T.copy(A[cid * 32, 0], a)\n    T.tile.exp(a, a)\n    T.copy(a, O[cid * 32, 0])\n'
    old = vector_file('a = T.alloc_ub((32, 64), "float32")\n' + body)
    assert only(migrated(old)).target == "developer-threads1"
    assert "T.Kernel(2, threads=1, is_npu=True) as (cid)" in developer(old)
    same_results(old, developer(old))
    refused(old.replace("T.copy(A[cid", "T.copy(O[cid"), "TL222")
