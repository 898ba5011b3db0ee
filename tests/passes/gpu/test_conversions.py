"""Conversions between element types and roundings, as NumPy makes them, over ties, limits, infinities and NaN."""

from __future__ import annotations

import itertools
import re

import ml_dtypes
import numpy as np
import pytest

from tests.passes.gpu.support import gpu_file, migrated, refused, result_of
from tests.passes.simulated import run
from tl2npu.simulator.lowering.lower import ACTUAL, IDEAL

SHAPE = (64, 64)
KINDS = {"bfloat16": np.dtype(ml_dtypes.bfloat16)}
INTEGERS = ("int8", "uint8", "int16", "int32")
FLOATS = ("float32", "float16", "bfloat16")
TRICKY = [0.0, -0.0, 40.99, -40.99, 126.999, 127.5, 127.999, 128, -128.5, -129, 255.5, 256, 300, 0.5, 1.5, 2.5, -0.5]
TRICKY += [-1.5, -2.5, 0.49999997, -0.49999997, 2048.5, 8388607.5, 2.0**23, 2.0**24 + 2, 2.0**31, -(2.0**31), 3e9, 1e30]
TRICKY += [-1e30, 65504, 65519.0, 32767.6, -32768.9, 1 - 2.0**-24]


def kind(name: str) -> np.dtype:
    return KINDS.get(name) or np.dtype(name)


def floats(name: str) -> np.ndarray:
    """Powers of two, ties, limits of types and numbers between them."""
    powers = 2.0 ** np.arange(-30, 40)
    found = np.concatenate([powers, -powers, TRICKY])
    more = np.random.default_rng(5).uniform(-140, 270, SHAPE[0] * SHAPE[1] - found.size)
    return np.concatenate([found, more]).astype(np.float32).astype(kind(name)).reshape(SHAPE)


def integers(name: str) -> np.ndarray:
    limits = np.iinfo(name)
    ends = np.concatenate([np.arange(limits.min, limits.min + 80), np.arange(limits.max - 80, limits.max + 1)])
    more = np.random.default_rng(5).integers(limits.min, limits.max, SHAPE[0] * SHAPE[1] - ends.size, endpoint=True)
    return np.concatenate([ends, more]).astype(name).reshape(SHAPE)


def expected(x: np.ndarray, target: str) -> np.ndarray:
    """What C makes of it; where C says nothing, what an NPU documents: saturation."""
    if target in FLOATS or x.dtype.name in INTEGERS:
        return x.astype(np.float32).astype(kind(target)) if target == "bfloat16" else x.astype(kind(target))
    limits = np.iinfo(target)
    wide = np.trunc(x.astype(np.float64))
    return np.clip(wide, limits.min, limits.max).astype(target)


def file(statement: str, source: str, target: str) -> str:
    params = f'X: T.Tensor({SHAPE}, "{source}"), Y: T.Tensor({SHAPE}, "{target}")'
    body = f'x = T.alloc_fragment({SHAPE}, "{source}")\ny = T.alloc_fragment({SHAPE}, "{target}")\nT.copy(X, x)\n'
    return gpu_file(params, f"{body}{statement}\nT.copy(y, Y)", launch="T.Kernel(1, threads=128) as bx")


def agrees(text: str, x: np.ndarray, wanted: np.ndarray) -> str:
    new = migrated(text)
    for reading in (IDEAL, ACTUAL):
        found = run(new, {"X": x}, reading=reading)["Y"]
        np.testing.assert_array_equal(found.astype(np.float64), wanted.astype(np.float64), f"{reading}\n{new}")
    return new


LOOP = f"for i, j in T.Parallel{SHAPE}:\n    y[i, j] = "
PAIRS = [
    (source, target)
    for source, target in itertools.permutations((*INTEGERS, *FLOATS), 2)
    if {source, target} != {"float16", "bfloat16"}
]


@pytest.mark.sampled
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_every_pair(source: str, target: str) -> None:
    x = integers(source) if source in INTEGERS else floats(source)
    if source == "int32" and target == "float16":
        x = x % 60000  # a GPU gives an infinity beyond, as NumPy does; here the step through float32 is looked at
    agrees(file(f'{LOOP}T.cast(x[i, j], "{target}")', source, target), x, expected(x, target))


SPELLED = [
    f"{LOOP}x[i, j]",
    f'{LOOP}x[i, j].astype("int8")',
    f'{LOOP}T.Cast("int8", x[i, j])',
    f"{LOOP}T.cast(x[i, j], y.dtype)",
    f"{LOOP}T.int8(x[i, j])",
    "T.copy(x, y)",
    "T.copy(x[0:32, :], y[0:32, :])\nT.copy(x[32:64, :], y[32:64, :])",
]


@pytest.mark.parametrize("statement", SPELLED)
def test_however_it_is_said(statement: str) -> None:
    x = floats("float32")
    agrees(file(statement, "float32", "int8"), x, expected(x, "int8"))


@pytest.mark.parametrize(("first", "second"), [("X, y", "y, Y"), ("X, x", "x, Y")])
def test_copies_that_convert_on_their_way_to_or_from_a_tensor(first: str, second: str) -> None:
    params = f'X: T.Tensor({SHAPE}, "float32"), Y: T.Tensor({SHAPE}, "int8")'
    tiles = f'x = T.alloc_fragment({SHAPE}, "float32")\ny = T.alloc_fragment({SHAPE}, "int8")\n'
    x = floats("float32")
    text = gpu_file(params, f"{tiles}T.copy({first})\nT.copy({second})", launch="T.Kernel(1, threads=128) as bx")
    agrees(text, x, expected(x, "int8"))


ROUNDED = {
    "T.floor(x[i, j])": np.floor,
    "T.ceil(x[i, j])": np.ceil,
    "T.trunc(x[i, j])": np.trunc,
    "T.round(x[i, j])": np.rint,
    "T.nearbyint(x[i, j])": np.rint,
    'T.round(x[i, j], rounding_mode="ties-away-from-zero")': lambda x: np.trunc(x) + np.sign(x) * (abs(x % 1) == 0.5),
}


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("function", [name for name in ROUNDED if "away" not in name])
def test_roundings_of_every_float(function: str, dtype: str) -> None:
    x = floats(dtype)
    x[3, :4] = [np.inf, -np.inf, np.nan, 3e38 if dtype == "float32" else 65504]
    agrees(file(LOOP + function, dtype, dtype), x, ROUNDED[function](x.astype(np.float32)).astype(dtype))


def test_halves_away_from_zero() -> None:
    x = np.resize(np.array([0.5, 1.5, -0.5, -2.5, 2.4999998, 2.0**23 + 1, np.inf, 0.49999997], np.float32), SHAPE)
    wanted = np.resize(np.array([1, 2, -1, -3, 2, 2.0**23 + 1, np.inf, 0], np.float32), SHAPE)
    agrees(file(f'{LOOP}T.round(x[i, j], "ties-away-from-zero")', "float32", "float32"), x, wanted)


def test_a_rounded_value_needs_no_truncation() -> None:
    x = floats("float32")
    new = agrees(
        file(f'{LOOP}T.cast(T.clamp(T.round(x[i, j]), -127.0, 127.0), "int8")', "float32", "int8"),
        x,
        np.clip(np.rint(x), -127, 127),
    )
    assert "CAST_TRUNC" not in new


@pytest.mark.parametrize("dtype", ["int16", "int32"])
def test_magnitudes_of_integers(dtype: str) -> None:
    """There is no instruction: the larger of x and -x."""
    x = integers(dtype)
    new = agrees(file(f"{LOOP}T.abs(x[i, j])", dtype, dtype), x, np.abs(x))
    assert "abs" not in new


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32"])
def test_choices_between_integers(dtype: str) -> None:
    """There is no instruction: element by element."""
    x = integers(dtype)
    agrees(file(f"{LOOP}T.if_then_else(x[i, j] > 3, x[i, j], 0)", dtype, dtype), x, np.where(x > 3, x, 0).astype(dtype))


REFUSED = [
    ("int8", "x[i, j] + x[i, j]"),
    ("uint8", "T.max(x[i, j], x[i, j] * x[i, j])"),
    ("int64", "x[i, j] * x[i, j]"),
]


@pytest.mark.parametrize(("dtype", "value"), REFUSED)
def test_what_has_no_instruction_is_refused(dtype: str, value: str) -> None:
    text = file(LOOP + value, dtype, dtype)
    assert [code for code, _ in refused(text)] == ["TL710"]


R, C = np.mgrid[0:64, 0:16]


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("-1.0 / (r // 4 + 1) - (-0.25 - c % 8)", -1.0 / (R // 4 + 1) + 0.25 + C % 8),
        ("(r % 8) * 0.375 + (c % 4) * 0.375", (R % 8) * 0.375 + (C % 4) * 0.375),
        ("T.max(r / 4, c * 0.75)", np.maximum(R / 4, C * 0.75)),
        ("(r + 0.5) * (c - 0.5)", (R + 0.5) * (C - 0.5)),
        ("r % 8 + c", R % 8 + C),
    ],
)
def test_fractions_of_indices_are_cut_once(value: str, wanted: np.ndarray) -> None:
    """Loop numbers make floats with a quotient or a fraction: their sum becomes an integer, not each of its parts."""
    value = re.sub(r"\br\b", "(bx * 16 + i)", value)
    body = f"""y = T.alloc_shared((16, 16), "int32")
for i, c in T.Parallel(16, 16):
    y[i, c] = T.cast({value}, "int32")
T.copy(y, Y[bx * 16, 0])
"""
    params = "X: T.Tensor((64, 16), 'int32'), Y: T.Tensor((64, 16), 'int32')"
    text = gpu_file(params, body, launch="T.Kernel(4, threads=128) as bx")
    found = run(migrated(text), {"X": np.zeros((64, 16), np.int32)})["Y"]
    np.testing.assert_array_equal(found, np.trunc(wanted).astype(np.int32))


def test_a_loop_of_a_macro_that_only_binds_a_name() -> None:
    """A loop with nothing in it that the reader has a statement for."""
    body = """x = T.alloc_shared((16, 16), 'float32')
T.copy(X[bx * 16, 0], x)
for k in T.unroll(1):
    part(X, bx)
T.copy(x, Y[bx * 16, 0])
"""
    params = "X: T.Tensor((64, 16), 'float32'), Y: T.Tensor((64, 16), 'float32')"
    macro = "@T.macro\ndef part(A, b):\n    s = A[b, 0]\n"
    text = gpu_file(params, body, factory=macro, launch="T.Kernel(4, threads=128) as bx")
    x = np.arange(1024, dtype=np.float32).reshape(64, 16)
    np.testing.assert_array_equal(run(migrated(text), {"X": x})["Y"], x)


NAMED = """
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[1])
def kern(dtype="int16"):
    @T.prim_func
    def main(X: T.Tensor((64, 64), dtype), Y: T.Tensor((64, 64), dtype)):
        with T.Kernel(2, threads=128) as i:
            x = T.alloc_fragment((32, 64), dtype)
            f = T.alloc_fragment((32, 64), "float32")
            T.copy(X[i * 32, 0], x)
            for r, c in T.Parallel(32, 64):
                f[r, c] = x[r, c] * 0.5
            for r, c in T.Parallel(32, 64):
                x[r, c] = f[r, c]
            T.copy(x, Y[i * 32, 0])

    return main


"""


@pytest.mark.parametrize(
    ("calls", "types"),
    [
        ('kern("int8")', "int16 or int8"),
        ('kern(dtype="uint8")', "int16 or uint8"),
        ('kern(T.int8)\nkern("int32")', "int16 or int32 or int8"),
        ('dtype = "int8"\nkern(dtype)', "int16 or int8"),
        ('kern()', ""),
        ('kern("int32")', ""),  # one instruction, as for int16
        ('kern("int16")', ""),
    ],
)
def test_a_name_with_several_integer_types(calls: str, types: str) -> None:
    """int8 goes through float16, which has 11 bits: no way for int16."""
    result = result_of(NAMED + calls + "\n")
    told = [d.message for d in result.diagnostics if d.code == "TL154"]
    assert told == ([f"`dtype` is {types} here, which are converted in different ways"] if types else [])
    if not types:
        x = np.random.default_rng(0).integers(-30000, 30000, (64, 64)).astype(np.int16)
        for dtype in ("int16", "int32") if "int32" in calls else ("int16",):
            got = run(result.new_text or "", {"X": x.astype(dtype)}, "kern", (dtype,))["Y"]
            np.testing.assert_array_equal(got, np.trunc(x * 0.5))
