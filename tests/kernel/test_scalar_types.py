"""Comparisons of two types: each verdict is that of the compiler's front end (95acbd7f, one kernel for each line)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.passes.gpu.stage import after
from tests.passes.gpu.support import gpu_file, result_of
from tests.passes.simulated import run
from tl2npu.kernel.parser.scalar_types import holds
from tl2npu.migration import check_text
from tl2npu.options import Options
from tl2npu.passes.plain import compared_types

HEAD = "import tilelang\nimport tilelang.language as T\n\n\n"
TENSORS = {"A": "float32", "H": "float16", "B": "bfloat16", "I": "int32", "S": "int8", "L": "int64", "U": "uint8"}

COMPARED = """
n < 3
1.0 < A[0, 0]
A[0, 0] < 1
1 < A[0, 0]
H[0, 0] < 1.5
1.5 < H[0, 0]
H[0, 0] < 1
B[0, 0] < 1.5
S[0, 0] < 5
L[0, 0] < 5
U[0, 0] == 5
S[0, 0] + 1 == n
H[0, 0] + 1 < H[0, 1]
H[0, 0] * 2.0 < A[0, 1]
H[0, 0] * n < H[0, 0]
T.cast(n, "float32") < A[0, 0]
T.max(n, A[0, 0]) < 1.0
T.if_then_else(n > 0, 1.0, 2) < A[0, 0]
(n > 0) == (n > 3)
(n > 0) == True
L[0, 0] + n < L[0, 0]
T.EQ(n, I[0, 0])
T.bitwise_and(n, 3) == n
T.Div(A[0, 0], T.float32(2)) < A[0, 1]
n.astype("float32") < A[0, 0]
T.reinterpret("float32", n) < A[0, 0]
rows // 2 > n
T.min(rows - 1, 3) < n
rows * 0.5 < A[0, 0]
long > L[0, 0]
""".strip().splitlines()
REFUSED = """
1.0 >= n // 8
n < 0.25
n != 0.5
-n < 1.5
H[0, 0] < A[0, 0]
1.5 < B[0, 0]
B[0, 0] < 1
1 < B[0, 0]
B[0, 0] < A[0, 0]
S[0, 0] < I[0, 0]
L[0, 0] < I[0, 0]
L[0, 0] < n
U[0, 0] == I[0, 0]
S[0, 0] + 1 == S[0, 1]
H[0, 0] + 1.0 < H[0, 1]
n < A[0, 0]
T.max(3.0, H[0, 0]) < H[0, 1]
T.EQ(n, A[0, 0])
T.LT(A[0, 0], 1)
T.LT(H[0, 0], 1.0)
(n > 0) & (n < 1.5)
T.Select(n > 0, 1.0, 2) < 3.0
T.bitwise_and(n, 3) == A[0, 0]
T.shift_left(n, 1) < A[0, 0]
T.FloorDiv(n, 2) < A[0, 0]
T.Max(n, 3) < A[0, 0]
T.clamp(A[0, 0], 0.0, 1.0) < n
n.astype("float32") < n
T.reinterpret("float32", n) < n
rows < A[0, 0]
n % half * 2 < A[0, 0]
A[0, 0] >= T.min(rows - 1, 3)
T.ceildiv(rows, 16) > A[0, 0]
long > n
I[0, 0] + 3000000000 < n
""".strip().splitlines()

SIZES = """
    rows = T.symbolic("rows")
    half = rows // 2
    long = T.symbolic("long", dtype="int64")
"""


def kernel(*lines: str, args: str = "") -> str:
    """``rows``, ``half`` and ``long`` are sizes that are known at run time only."""
    params = ", ".join(f'{name}: T.Tensor((64, 64), "{dtype}")' for name, dtype in TENSORS.items())
    configs = "TL_ASCEND_AUTO_CV_COMBINE TL_ASCEND_AUTO_SYNC TL_ASCEND_MEMORY_PLANNING".split()
    keys = ", ".join(f"tilelang.PassConfigKey.{key}: True" for key in configs)
    body = ["t = T.alloc_shared((64, 64), 'float32')", "T.copy(A, t)", *lines, "T.copy(t, C)"]
    inner = "\n".join(f"            {line}" for line in body)
    head = f"{HEAD}@tilelang.jit(pass_configs={{{keys}}})\ndef factory({args}):\n{SIZES}    @T.prim_func\n"
    late = 'R: T.Tensor((rows, long), "float32")'
    start = f'    def main({params}, {late}, n: T.int32, C: T.Tensor((64, 64), "float32")):\n'
    return f"{head}{start}        with T.Kernel(1, threads=1, is_npu=True) as (cid):\n{inner}\n    return main\n"


HALVES = [
    ("x = H[0, 0] + H[0, 1]", True),
    ("t[0, 0] = H[0, 0] * T.float16(2.0)", True),
    ("x = -H[0, 0]", True),
    ("g = H[0, 0]\nh = H[0, 1]\nt[0, 0] = g - h", True),
    ("T.tile.mul(t, t, H[0, 0] * H[0, 1])", True),
    ("x = H[0, 0] + 1.0", False),
    ("x = H[0, 0] * A[0, 0]", False),
    ("x = T.max(H[0, 0], H[0, 1])", False),
    ("x = T.cast(H[0, 0], 'float32') - T.cast(H[0, 1], 'float32')", False),
    ("h = T.alloc_ub((64, 64), 'float16')\nfor i, j in T.Parallel(64, 64):\n    h[i, j] = h[i, j] + h[i, j]", False),
]


@pytest.mark.parametrize(("lines", "refused"), HALVES)
def test_two_halves_have_no_sum(lines: str, refused: bool) -> None:
    """BiSheng: half precision operation is not allowed in aicore function. Beside a number they become float32."""
    found = check_text(kernel(*lines.split("\n")), "k.py", Options()).diagnostics
    told = [d.help for d in found if d.code == "TL710" and "float16 scalars" in d.message]
    assert bool(told) is refused
    assert all("T.cast" in text for text in told)


def codes(*lines: str) -> list[str]:
    found = check_text(kernel(*lines), "k.py", Options()).diagnostics
    return [d.code for d in found if d.severity == "error" and d.code in ("TL732", "TL889")]


@pytest.mark.parametrize("condition", COMPARED)
def test_compared(condition: str) -> None:
    assert codes(f"if {condition}:", "    T.tile.fill(t, 1.0)") == []


@pytest.mark.parametrize("condition", REFUSED)
def test_refused(condition: str) -> None:
    assert codes(f"if {condition}:", "    T.tile.fill(t, 1.0)") == ["TL732"]


@pytest.mark.parametrize(
    ("lines", "refused"),
    [
        (["z = 1.5", "if z < n:", "    T.tile.fill(t, 1.0)"], True),
        (["z = 3", "if z < n:", "    T.tile.fill(t, 1.0)"], False),
        (["z = n * 0.5", "if z < 2:", "    T.tile.fill(t, 1.0)"], False),
        (["z = T.alloc_var('float32', init=0.0)", "z = n", "if z < n:", "    T.tile.fill(t, 1.0)"], True),
        (["for j in T.serial(3):", "    if j < 0.5:", "        T.tile.fill(t, 1.0)"], True),
        (["for j in T.serial(3):", "    if j < n:", "        T.tile.fill(t, 1.0)"], False),
        (["for j in T.serial(L[0, 0]):", "    if j < n:", "        T.tile.fill(t, 1.0)"], True),
        (["for i, j in T.Parallel(64, 64):", "    if i < 0.5:", "        t[i, j] = 1.0"], True),
        (["z = T.alloc_var('int32', init=0)", "while z < 2.5:", "    z = z + 1"], True),
        (["assert n < 1.5, 'n'"], True),
        (["z = T.Select(n > 0, A[0, 0], H[0, 0])"], True),
        (["z = T.if_then_else(n > 0, A[0, 0], H[0, 0])", "if z < A[0, 1]:", "    T.tile.fill(t, 1.0)"], False),
    ],
)
def test_names_and_loops(lines: list[str], refused: bool) -> None:
    assert codes(*lines) == (["TL732"] if refused else [])


def test_the_message_names_both_types() -> None:
    (found,) = check_text(kernel("if n < 0.25:", "    T.tile.fill(t, 1.0)"), "k.py", Options()).diagnostics
    assert found.message == "`n < 0.25` compares an int32 with a float: convert one of them"


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("1.0 >= n // 8", '1.0 >= T.cast(n // 8, "float32")'),
        ("n < 0.25", 'T.cast(n, "float32") < 0.25'),
        ("H[0, 0] < A[0, 0]", 'T.cast(H[0, 0], "float32") < A[0, 0]'),
        ("S[0, 0] < I[0, 0]", 'T.cast(S[0, 0], "int32") < I[0, 0]'),
        ("L[0, 0] < n", 'L[0, 0] < T.cast(n, "int64")'),
        ("U[0, 0] == I[0, 0]", 'T.cast(U[0, 0], "int32") == I[0, 0]'),
        ("n % half < A[0, 0]", 'T.cast(n % half, "float32") < A[0, 0]'),
        ("n < 0.25 and 1.5 > n", 'T.cast(n, "float32") < 0.25 and 1.5 > T.cast(n, "float32")'),
        ("(n < 0.5) == (H[0, 0] < A[0, 0])", '(T.cast(n, "float32") < 0.5) == (T.cast(H[0, 0], "float32") < A[0, 0])'),
    ],
)
def test_conversions(condition: str, expected: str) -> None:
    new = after(kernel(f"if {condition}:", "    T.tile.fill(t, 1.0)"), compared_types.convert)
    assert f"if {expected}:\n" in new
    assert [d for d in check_text(new, "k.py", Options()).diagnostics if d.severity == "error"] == []
    assert after(new, compared_types.convert) == new


def test_the_value_is_that_of_the_wider_type() -> None:
    """Rows whose quotient is at most 1: those below 16. Thought out by NumPy, not by what the tool writes."""
    params = 'A: T.Tensor((32, 64), "float32"), B: T.Tensor((32, 64), "float32")'
    body = """
    x = T.alloc_fragment((32, 64), "float32")
    T.copy(A[0, 0], x)
    for i, j in T.Parallel(32, 64):
        x[i, j] += T.if_then_else(1.5 >= (i // 8), 10.0, x[i, j])
    T.copy(x, B[0, 0])
    """
    text = gpu_file(params, body, launch="T.Kernel(1, threads=128) as bx")
    new = result_of(text).new_text
    assert new is not None
    a = np.random.default_rng(3).standard_normal((32, 64)).astype(np.float32)
    expected = a + np.where(np.arange(32)[:, None] // 8 <= 1.5, 10.0, a)
    np.testing.assert_allclose(run(new, {"A": a})["B"], expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("i + i > x[i, j]", lambda x, i, j: 2 * i > x),
        ("x[i, j] * 2.0 <= j * 3", lambda x, i, j: x * 2 <= 3 * j),
        ("bx * 32 + i != x[i, j]", lambda x, i, j: i != x),
        ("(i - j) * 2 < x[i, j]", lambda x, i, j: (i - j) * 2 < x),
        ("x[i, j] >= i % 8", lambda x, i, j: x >= i % 8),
    ],
)
def test_indices_beside_halves(condition: str, holds: Callable[..., np.ndarray]) -> None:
    """Both tiles of a comparison have one type; the check tells of two."""
    params = 'A: T.Tensor((32, 64), "float16"), B: T.Tensor((32, 64), "float16")'
    body = f"""
    x = T.alloc_fragment((32, 64), "float16")
    y = T.alloc_fragment((32, 64), "float16")
    T.copy(A[0, 0], x)
    for i, j in T.Parallel(32, 64):
        y[i, j] = T.if_then_else({condition}, x[i, j], 1.0)
    T.copy(y, B[0, 0])
    """
    text = gpu_file(params, body, launch="T.Kernel(1, threads=128) as bx")
    new = result_of(text).new_text
    assert new is not None
    assert [d for d in check_text(new, "k.py", Options()).diagnostics if d.severity == "error"] == []
    i, j = np.arange(32)[:, None], np.arange(64)[None, :]
    a = (np.random.default_rng(4).integers(-80, 80, (32, 64)) / 2).astype(np.float16)
    a[:, :8] = i
    np.testing.assert_array_equal(run(new, {"A": a})["B"], np.where(holds(a, i, j), a, np.float16(1)))


def test_a_comparison_of_two_tiles_of_two_types_is_told() -> None:
    lines = ["h = T.alloc_ub((64, 64), 'float16')", "m = T.alloc_ub((512,), 'uint8')", "T.copy(H, h)"]
    text = kernel(*lines, "T.tile.compare(m, t, h, 'GT')", "T.tile.select(t, m, t, h, 'VSEL_TENSOR_TENSOR_MODE')")
    told = [d.message for d in check_text(text, "k.py", Options()).diagnostics if d.code == "TL710"]
    assert [message.partition(":")[0] for message in told] == ["`t` is float32 and `h` float16"] * 2


HELD = """
S[0, 0] + 300 < n
S[0, 0] < 127
U[0, 0] < 255
L[0, 0] < 3000000000
H[0, 0] * 70000.0 < A[0, 0]
T.max(H[0, 0], 70000.0) < A[0, 0]
H[0, 0] < float("inf")
-T.infinity("float16") < H[0, 0]
B[0, 0] * 70000 < B[0, 1]
A[0, 0] < 3e38
T.int8(-128) == S[0, 0]
""".strip().splitlines()
BEYOND = """
S[0, 0] < 300
U[0, 0] == -1
n < 3000000000
T.cast(300, "int8") == S[0, 0]
T.uint8(-1) == U[0, 0]
T.int8(300.5) == S[0, 0]
T.float16(7e4) == H[0, 0]
T.cast(T.float32(7e4), "float16") == H[0, 0]
T.cast(6e4 + 1e4, "float16") == H[0, 0]
H[0, 0] * 70000 < H[0, 1]
T.max(H[0, 0], 70000) < H[0, 1]
T.if_then_else(n > 1, H[0, 0], 70000) < H[0, 1]
H[0, 0] < -65505
7e4 > H[0, 0]
A[0, 0] < 1e39
A[0, 0] * 1e39 < A[0, 1]
H[0, 0] < big
""".strip().splitlines()


def values_told(*lines: str) -> list[str]:
    text = kernel(*lines, args="big=70000, dtype='float16'")
    return [d.code for d in check_text(text, "k.py", Options()).diagnostics if d.code in ("TL732", "TL786")]


@pytest.mark.parametrize(("conditions", "told"), [(HELD, []), (BEYOND, ["TL786"])])
def test_numbers_that_a_type_holds(conditions: list[str], told: list[str]) -> None:
    """Both compilers make a constant of the type: "Literal value 300 exceeds maximum of int8"."""
    for condition in conditions:
        assert values_told(f"if {condition}:", "    T.tile.fill(t, 1.0)") == told, condition


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["H[0, 0] = 7e4"], True),
        (["H[0, 0] = -70000"], True),
        (["z = 7e4", "H[0, 0] = z"], True),
        (["z = 7e4", "A[0, 0] = z"], False),
        (["z = T.alloc_var('float16', init=7e4)"], True),
        (["H[0, 0] += 70000"], True),
        (["H[0, 0] += 70000.0"], False),
        (["S[0, 0] = n + 300"], False),
        (["h = T.alloc_ub((64, 64), 'float16')", "T.copy(H, h, pad_value=7e4)"], True),
        (["h = T.alloc_ub((64, 64), 'float16')", "T.tile.fill(h, 7e4)"], False),
        (["if dtype == 'float32':", "    H[0, 0] = 7e4"], False),
    ],
)
def test_numbers_that_are_stored(lines: list[str], told: bool) -> None:
    """A fill gives C++ the number, where it is an infinity; an arm that no call takes is not there."""
    assert values_told(*lines) == ["TL786"] * told


@pytest.mark.parametrize(
    ("dtype", "number", "held"), [("int", 3.0, True), ("uint8", -1.0, False), ("int", 2.0**31, False)]
)
def test_a_type_under_its_short_name_has_the_same_numbers(dtype: str, number: float, held: bool) -> None:
    assert holds(dtype, number) is held
