"""TL741, TL744, TL745: forms of arguments; verdicts are those of the compiler at 95acbd7f, a kernel for each line."""

from __future__ import annotations

import pytest

from tests.kernel.test_scalar_types import kernel
from tl2npu.migration import check_text
from tl2npu.options import Backend, Options

TILES = ["v = T.alloc_ub((64,), 'float32')", "w = T.alloc_ub((64,), 'float32')"]
TILES += ["i32 = T.alloc_ub((64, 64), 'int32')"]
TILES += ["T.copy(A[0, 0:64], v)", "T.copy(A[1, 0:64], w)", "T.copy(I, i32)"]

ACCEPTED = """
T.tile.fill(buffer=v[32:64], value=0.0)
T.tile.fill(v[:32], 0.0)
T.tile.fill(v[32:], 0.0)
T.tile.fill(v[:], 0.0)
T.tile.add(dst=v[0:32], src0=v[32:64], src1=v[0:32])
T.tile.add(v[:32], v[32:], v[:32])
T.tile.exp(dst=t[2, 0:32], src0=t[3, 32:64])
T.reduce_max(buffer=t[0:8, :], out=v[0:8], dim=-1)
T.reduce_max(t[:8, :], v[:8], dim=-1)
T.tile.broadcast(dst=t[0:8, :], src=v[0:8], axis=1)
T.tile.clear(v[:32])
T.tile.fill(v[:n], 0.0)
T.tile.exp(t[n, :], t[n, :])
T.copy(A[cid, n:n + 32], v[:32])
T.copy(A[0, 0:n], v)
T.copy(v, C[0, 0:n])
T.copy(t[0:n, :], C[0:n, :])
T.tile.atomic_add(C[cid * 8 : cid * 8 + 8, :], t[:8, :])
T.tile.atomic_add(dst=C[0:8, 0:64], src=t[0:8, 0:64])
T.tile.mul(t, t, v[3])
T.tile.mul(t, t, A[cid, 0] * 2.0)
T.tile.axpy(t, t, t[1, 3])
T.tile.fill(v, t[1, 3])
T.copy(A[2, :], v)
T.copy(A[0:1, 0:64], v)
""".strip().splitlines()
REFUSED = {
    "T.tile.fill(v[32:64], 0.0)": "TL744",
    "T.tile.fill(v[0:64], 0.0)": "TL744",
    "T.tile.fill(v[3:4], 0.0)": "TL744",
    "T.tile.fill(t[2, 0:32], 0.0)": "TL744",
    "T.tile.fill(t[2:6, :], 0.0)": "TL744",
    "T.tile.add(v, v, v[0:64])": "TL744",
    "T.reduce_max(t[0:8, :], v[0:8], dim=-1)": "TL744",
    "T.tile.exp(v[0:64:1], w[0:64:1])": "TL744",
    "T.tile.sort(t[0, :], v, 64)": "TL744",
    "T.tile.createvecindex(v[:32], 0)": "TL744",
    "T.tile.arith_progression(v[:32], 0, 1, 32)": "TL744",
    "T.tile.select(t[:8, :], i32, t[:8, :], t[:8, :], 'VSEL_TENSOR_TENSOR_MODE')": "TL744",
    "T.tile.transpose(t[:16, :], t)": "TL744",
    "T.tile.topk(v[:32], w, 8, 64)": "TL744",
    "T.tile.atomic_add(C[0, 0], t[0:8, :])": "TL744",
    "T.tile.compare(i32, t, 2, 'GT')": "TL744",
    "T.tile.mul(t, t, T.if_then_else(n > 0, 1.0, 2.0))": "TL744",
    "T.tile.mul(t, t, n << 2)": "TL744",
    "T.tile.mul(t, t, t[1, 3])": "TL745",
    "T.tile.max(t, t, A[cid, n])": "TL745",
    "T.copy(A[cid, 0:n], v[0:n])": "TL741",
    "T.copy(v[0:n], C[0, 0:n])": "TL741",
    "T.copy(A[0:64, 3], v)": "TL741",
    "T.copy(A[:, 3:4], v)": "TL741",
    "T.copy(v, C[0:64, 3])": "TL741",
    "T.copy(A[0:8, 0:8], v)": "TL741",
}


def codes(line: str, text: str = "") -> set[str]:
    found = check_text(text or kernel(*TILES, line), "k.py", Options()).diagnostics
    return {d.code for d in found if d.severity == "error"} & {"TL741", "TL744", "TL745", "TL732"}


@pytest.mark.parametrize("line", ACCEPTED)
def test_accepted(line: str) -> None:
    assert codes(line) == set()


@pytest.mark.parametrize("line", REFUSED)
def test_refused(line: str) -> None:
    assert codes(line) == {REFUSED[line]}


def test_a_column_is_read_by_its_first_index() -> None:
    lines = [*TILES, "s = T.alloc_ub((64, 1), 'float32')", "T.tile.fill(s, 1.0)"]
    for index, expected in (("s[n, 0]", set()), ("s[0, n]", {"TL745"})):
        assert codes("", kernel(*lines, f"T.tile.mul(v, v, {index})")) == expected


def test_the_half_of_a_vector_core_has_a_known_size() -> None:
    """The compiler simplifies the difference of the bounds."""
    half = "n * 64 // 2 : (n + 1) * 64 // 2"
    for line in (f"T.copy(v[{half}], w[{half}])", f"T.copy(A[0, 0:32], v[{half}])", f"T.copy(v[{half}], C[0, 0:32])"):
        assert codes(line) == set()
    assert codes("T.copy(v[0:n], w[0:n])") == {"TL741"}


CALLS = ["n << 2", "n & 1", "~n", "T.bitwise_and(n, 1)", "T.if_then_else(n > 1, 2, 3)", "T.cast(n << 2, 'int32')"]
NUMBERS = ["n * 2", "n % 2", "(n << 2) + 1", "T.min(n << 1, 3)", "size << 2", "T.float32(n << 2)", "I[n, 0] + 1"]


@pytest.mark.parametrize(("values", "told"), [(CALLS, {"TL744"}), (NUMBERS, set())])
def test_a_call_is_taken_for_a_tile(values: list[str], told: set[str]) -> None:
    """Behind a name, too: the compiler puts its value in its place."""
    for value in values:
        by_name = kernel(*TILES, f"g = {value}", "T.tile.add(i32, i32, g)", args="size=4")
        assert codes("", kernel(*TILES, f"T.tile.add(i32, i32, {value})", args="size=4")) == told, value
        assert codes("", by_name) == told, value


def test_select_takes_no_element() -> None:
    start = [*TILES, "m = T.alloc_ub((512,), 'uint8')", "T.tile.compare(m, t, 0.0, 'GT')", "f = t[1, 3]"]
    for value, told in (("v[3]", ["TL790"]), ("f", []), ("1.0", []), ("v", ["TL790"])):
        text = kernel(*start, f"T.tile.select(t, m, t, {value}, 'VSEL_TENSOR_SCALAR_MODE')")
        found = check_text(text, "k.py", Options()).diagnostics
        assert [d.code for d in found if d.code in ("TL790", "TL744", "TL745")] == told


@pytest.mark.parametrize(
    ("line", "ascendc", "pto"),
    [
        ("T.tile.add(v[:n], v[:n], w[:n])", False, True),
        ("T.tile.fill(v[:n], 1.0)", False, True),
        ("T.tile.exp(v[: size], w[: size])", False, False),
        ("T.tile.exp(t[n, :], t[n, :])", False, False),
        ("T.tile.sigmoid(v[:n], w[:n])", True, True),
        ("T.reduce_max(t[:n, :], v[:n], dim=-1)", True, True),
        ("T.tile.exp(t[:n, :], t[:n, :])", True, True),
    ],
)
def test_parts_of_a_size_that_is_known_at_run_time_only(line: str, ascendc: bool, pto: bool) -> None:
    """For pto, the compiler drops the size and works on the whole tile."""
    text = kernel(*TILES, line, args="size=32")
    for target, told in (("ascendc", ascendc), ("pto", pto)):
        found = check_text(text, "k.py", Options(backend=Backend(target=target))).diagnostics
        assert ("TL797" in {d.code for d in found}) == told


def test_an_unused_vector_is_taken_for_a_matrix() -> None:
    """"not enough values to unpack (expected 2, got 1)": an ``alloc_shared`` that nothing uses is in L1."""
    for shape, told in (("(64,)", True), ("(64, 64)", False)):
        text = kernel(*TILES, f"spare = T.alloc_shared({shape}, 'float32')")
        assert ("TL866" in {d.code for d in check_text(text, "k.py", Options()).diagnostics}) == told
