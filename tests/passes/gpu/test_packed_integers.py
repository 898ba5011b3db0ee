"""Elements that are made of the bits of packed integers: against NumPy, in several spellings."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest

from tests.passes.gpu.support import IMPORTS, agree, gpu_file, refused
from tests.passes.simulated import run
from tl2npu.passes.gpu.bits.integers import Integer, NoInteger, combined, converted, interval, inverted, leaf

RNG = np.random.default_rng(5)
HEAD = IMPORTS.replace("\n\n\n", "\nfrom tvm import tir\n\n\n")
HELPERS = """
def to_int8(val, pos):
    four = (val >> (pos.astype("uint8") * tir.const(4, "uint8"))) & tir.const(15, "uint8")
    return tir.reinterpret("int8", four << tir.const(4, "uint8")) >> tir.const(4, "int8")


def to_bfloat16(val, pos):
    f4 = (val >> (pos.astype("uint16") * tir.const(4, "uint16"))) & tir.const(15, "uint16")
    sign = f4 >> tir.const(3, "uint16")
    exponent = ((f4 & tir.const(6, "uint16")) >> tir.const(1, "uint16")) + tir.const(126, "uint16")
    mantissa = f4 & tir.const(1, "uint16")
    upper = ((sign << tir.const(8, "uint16")) | exponent) << tir.const(7, "uint16")
    return tir.reinterpret("bfloat16", upper | (mantissa << tir.const(6, "uint16")))


"""


def kernel(store: str, per: int, dtype: str, statements: str) -> str:
    body = f"""
    b = T.alloc_shared((32, {64 // per}), "{store}")
    c = T.alloc_fragment((32, 64), "{dtype}")
    T.copy(B[bx * 32, 0], b)
    for i, j in T.Parallel(32, 64):
        {statements}
    T.copy(c, C[bx * 32, 0])
    """
    params = f'B: T.Tensor((64, {64 // per}), "{store}"), C: T.Tensor((64, 64), "{dtype}")'
    return gpu_file(params, body, head=HEAD + HELPERS)


def words(store: str, per: int) -> np.ndarray:
    limits = np.iinfo(store)
    return RNG.integers(limits.min, limits.max, (64, 64 // per), endpoint=True).astype(store)


def fields(word: np.ndarray, per: int) -> np.ndarray:
    """The unsigned numbers in the words, the lowest bits first."""
    width = word.dtype.itemsize * 8
    bits = np.repeat(word.astype(np.int64) & ((1 << width) - 1), per, axis=1)
    return (bits >> (np.arange(64) % per * (width // per))) & ((1 << (width // per)) - 1)


def signed(field: np.ndarray, bits: int) -> np.ndarray:
    return np.where(field >= 1 << (bits - 1), field - (1 << bits), field)


def e2m1(field: np.ndarray) -> np.ndarray:
    """Four bits as sign, exponent and mantissa; an exponent of 0 is one as well."""
    return (1 - 2.0 * (field >> 3)) * 2.0 ** (((field >> 1) & 3) - 1) * (1 + (field & 1) / 2)


NIBBLE = "(b[i, j // 2] >> (j % 2 * 4)) & 15"


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("store", "per", "dtype", "statements", "expected"),
    [
        ("uint8", 2, "int8", f"c[i, j] = {NIBBLE}", lambda w: fields(w, 2)),
        ("int8", 2, "float16", f'c[i, j] = T.cast({NIBBLE}, "float16")', lambda w: fields(w, 2)),
        ("uint8", 2, "float32", f"c[i, j] = ({NIBBLE}).astype(T.float32) * 0.5 - 4.0", lambda w: fields(w, 2) / 2 - 4),
        ("uint8", 4, "int8", "c[i, j] = ((b[i, j // 4] >> (2 * (j % 4))) & 3) - 1", lambda w: fields(w, 4) - 1),
        ("int32", 8, "float16", "c[i, j] = T.float16((b[i, j // 8] >> (j % 8 * 4)) & 0xF)", lambda w: fields(w, 8)),
        (
            "uint32",
            8,
            "float32",
            'c[i, j] = T.cast((b[i, j // 8] >> T.cast(j % 8 * 4, "uint32")) & T.uint32(15), "float32")',
            lambda w: fields(w, 8),
        ),
        ("uint8", 2, "float16", "c[i, j] = T.float16((b[i, j // 2] << 4) >> 4)", lambda w: np.repeat(w & 15, 2, 1)),
        ("uint8", 2, "int8", "c[i, j] = to_int8(b[i, j // 2], j % 2)", lambda w: signed(fields(w, 2), 4)),
        ("uint8", 2, "bfloat16", "c[i, j] = to_bfloat16(b[i, j // 2], j % 2)", lambda w: e2m1(fields(w, 2))),
        (
            "uint8",
            2,
            "float32",
            'c[i, j] = T.reinterpret("float32", T.cast(b[i, j // 2], "uint32") << 23)',
            lambda w: (np.repeat(w, 2, axis=1).astype(np.uint32) << 23).view(np.float32),
        ),
        ("int8", 1, "int8", "c[i, j] = ~b[i, j] & 7", lambda w: ~w & 7),
        ("int32", 1, "int32", "c[i, j] = (b[i, j] >> 3) ^ j", lambda w: (w >> 3) ^ np.arange(64)),
        ("int32", 1, "int32", "c[i, j] = b[i, j] << 9", lambda w: w << np.int32(9)),
    ],
)
def test_spellings(
    store: str, per: int, dtype: str, statements: str, expected: Callable[[np.ndarray], np.ndarray]
) -> None:
    text, given = kernel(store, per, dtype, statements), words(store, per)
    new = agree(text, {"B": given}, rtol=0, atol=0)
    found = np.asarray(run(new, {"B": given})["C"], np.float64)
    np.testing.assert_array_equal(found, np.asarray(expected(given), np.float64))


@pytest.mark.parametrize(
    ("statement", "is_its_own"),
    [("b[i, j] = ((b[i, j] ^ 61) ^ (b[i, j] >> 16)) & 65535", True), ("b[i, j] = b[i, 63 - j] >> 3", False)],
)
def test_in_place(statement: str, is_its_own: bool) -> None:
    """An element may be made of itself; another one may have been replaced already."""
    text = kernel("int32", 1, "int32", statement).replace("T.copy(c, C", "T.copy(b, C")
    if not is_its_own:
        assert {code for code, _ in refused(text)} == {"TL151"}
        return
    given = words("int32", 1)
    new = agree(text, {"B": given}, rtol=0, atol=0)
    np.testing.assert_array_equal(run(new, {"B": given})["C"], ((given ^ 61) ^ (given >> 16)) & 65535)


def test_what_is_no_integer_stays_with_the_vector_core() -> None:
    new = agree(kernel("uint8", 2, "float32", f"c[i, j] = T.float32({NIBBLE}) * 0.5"), {"B": words("uint8", 2)})
    assert "for i, j in T.Parallel(32, 64):\n                c[i, j] = c[i, j] * 0.5" in new


@pytest.mark.parametrize(
    "statements",
    [
        "b[i, j] = b[i, j] >> 3\n        c[i, j] = b[i, j]",  # reads what it stores
        "c[i, j] = (b[i, j] >> 3) & 1\n        c[i, j] += 1",
        "c[i, j] = (b[i, j] >> 3) & c[i, 0]",
        "c[i, j] = (b[i, j] >> 3) + zero * 1000",  # of 8 bits, or of 32: TVM's versions differ
    ],
)
def test_refused(statements: str) -> None:
    text = kernel("int8", 1, "int8", statements).replace("def factory():", "def factory(zero=1):")
    assert {code for code, _ in refused(text)} <= {"TL151", "TL153"}


def test_a_store_under_a_condition_is_refused() -> None:
    assert refused(kernel("int8", 1, "int8", "if j < 8:\n            c[i, j] = (b[i, j] >> 3) & 1"))[0][0] == "TL151"


# the arithmetic by itself ---------------------------------------------------------------------------------------------

TYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32")
SIGNS = ("+", "-", "*", "&", "|", "^", "<<", ">>")


def _random(depth: int, chosen: random.Random) -> tuple[Integer, Callable[[dict[str, int]], int]]:
    """A value, and what a machine of its type computes: each step in the type, its upper bits dropped."""
    if depth == 0:
        dtype = chosen.choice(TYPES)
        name = f"x_{dtype}"
        return leaf(name, dtype, *interval(dtype), loads=True), lambda values: values[name]
    left, left_value = _random(depth - 1, chosen)
    kind = chosen.choice([*SIGNS, "cast", "not", "count"])
    if kind == "cast":
        dtype = chosen.choice(TYPES)
        return converted(left, dtype), lambda values: _wrapped(left_value(values), dtype)
    if kind == "not":
        return inverted(left), lambda values: _wrapped(~left_value(values), left.dtype)
    if kind in ("<<", ">>", "count"):
        count, sign = chosen.randrange(8), chosen.choice(("<<", ">>"))
        found = combined(sign, left, leaf(str(count), "int8", count, count, plain=True))
        return found, lambda values: _wrapped(_STEPS[sign](left_value(values), count), found.dtype)
    right, right_value = _random(depth - 1, chosen)
    found = combined(kind, left, right)

    def value(values: dict[str, int]) -> int:
        sides = (_wrapped(side(values), found.dtype) for side in (left_value, right_value))
        return _wrapped(_STEPS[kind](*sides), found.dtype)

    return found, value


_STEPS: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
}


def _wrapped(value: int, dtype: str) -> int:
    low, high = interval(dtype)
    return (value - low) % (high - low + 1) + low


@pytest.mark.parametrize("seed", range(300))
def test_the_text_has_the_value_of_the_type(seed: int) -> None:
    chosen = random.Random(seed)
    try:
        found, expected = _random(4, chosen)
    except NoInteger:
        return
    for _ in range(50):
        values = {f"x_{dtype}": chosen.choice([*interval(dtype), chosen.randint(*interval(dtype))]) for dtype in TYPES}
        value = eval(found.text, {"T": SimpleNamespace(int64=int)}, values)  # Python's integers have all bits
        assert value == expected(values), found.text
        assert found.low <= value <= found.high
        assert found.widest[0] <= value <= found.widest[1]


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("uint8", "int8", "uint8"),
        ("int16", "uint16", "uint16"),
        ("uint8", "int32", "int32"),
        ("int8", "uint16", "uint16"),
        ("uint32", "int16", "uint32"),
        ("uint32", "int32", "uint32"),
    ],
)
def test_types_meet_as_in_tvm(left: str, right: str, expected: str) -> None:
    """``tir.Var("x", left) & tir.Var("y", right)`` in TVM: the wider type, of two as wide the unsigned one."""
    sides = [leaf(name, dtype, 0, 1) for name, dtype in (("x", left), ("y", right))]
    assert combined("&", *sides).dtype == combined("&", *sides[::-1]).dtype == expected


def test_numbers_of_python_have_the_type_of_the_other_side_for_bits() -> None:
    """``tir.Var("x", "uint8") << 4`` is a uint8; ``+ 4`` is 32 bits wide in TVM 0.17, 8 bits later."""
    byte, four = leaf("x", "uint8", 0, 255), leaf("4", "int32", 4, 4, plain=True)
    assert combined("<<", byte, four).text == "(x << 4) & 255"
    with pytest.raises(NoInteger):
        combined("+", byte, four)
