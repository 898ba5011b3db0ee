"""Element-wise code: every form migrates, computes what the GPU kernel computes, and reads well."""

from __future__ import annotations

import functools
import re
import textwrap
from typing import Any

import numpy as np
import pytest

from tests.passes.gpu.support import agree, gpu_file, migrated, refused, result_of
from tests.passes.simulated import run

M, N = 32, 64
TENSORS = {
    "X": (M, N),
    "Z": (M, N),
    "S": (M,),
    "R": (M,),
    "W": (N,),
    "V": (N,),
}
PARAMS = ", ".join(f'{name}: T.Tensor({shape}, "float32")' for name, shape in TENSORS.items())
PARAMS += f', K: T.Tensor(({M}, {N}), "int32"), OS: T.Tensor(({M},), "float32"), O: T.Tensor(({M}, {N}), "float32")'
LOADS = {
    name.lower(): f'{name.lower()} = T.alloc_fragment({shape}, "float32")\nT.copy({name}, {name.lower()})'
    for name, shape in TENSORS.items()
}
FACTORY = "scale = 0.3 * 1.44269504  # log2(e)\nsoft = 0.7"


def kernel(
    body: str, more: str = "", factory: str = FACTORY, stores: str = "T.copy(o, O)\nT.copy(s, OS)", loaded: str = ""
) -> str:
    """A kernel with two-dimensional tiles x, z, o, values per row s, r and per column w, v: those that it names."""
    middle = textwrap.dedent(body).strip("\n")
    used = words(f"{middle} {more} {stores} {loaded}")
    loads = "\n".join(text for name, text in LOADS.items() if name in used)
    text = f'{loads}\no = T.alloc_fragment(({M}, {N}), "float32")\nT.fill(o, 0.25)\n{more}\n{middle}\n{stores}'
    return gpu_file(PARAMS, text, launch="T.Kernel(1, threads=128) as bx", factory=factory, jit="@tilelang.jit")


def words(text: str) -> set[str]:
    """The names in a text."""
    return set(re.findall(r"\w+", text))


def values() -> dict[str, np.ndarray]:
    """Inputs; Z, S and W are positive."""
    draw = np.random.default_rng(7)
    found = {name: draw.standard_normal(shape).astype(np.float32) for name, shape in TENSORS.items()}
    for name in ("Z", "S", "W"):
        found[name] = draw.uniform(0.5, 2.0, TENSORS[name]).astype(np.float32)
    found["K"] = draw.integers(-20, 20, (M, N)).astype(np.int32)
    return found


def tile(statement: str, **options: Any) -> list[str]:
    """The new lines for one statement over the whole tile, without what is the same for every kernel."""
    return lines(f"for i, j in T.Parallel({M}, {N}):\n    {statement}", **options)


def row(statement: str) -> list[str]:
    """The new lines for one statement over the rows."""
    return lines(f"for i in T.Parallel({M}):\n    {statement}")


def lines(body: str, more: str = "", factory: str = FACTORY, rtol: float = 1e-3) -> list[str]:
    """Lines that the migrated kernel has and the kernel without the statement has not."""
    text = kernel(body, more, factory)
    new = agree(text, values(), threads="1", rtol=rtol, atol=rtol)
    rest = _without(more, factory, " ".join(sorted(words(body) & LOADS.keys())))
    found = [line.strip() for line in new.splitlines() if line.strip() not in rest]
    return [line for line in found if "alloc_" not in line and not line.startswith(("for ", "scale ="))]


@functools.cache
def _without(more: str, factory: str, loaded: str) -> frozenset[str]:
    text = kernel("", more, factory, loaded=loaded)
    return frozenset(line.strip() for line in migrated(text, "1").splitlines())


UNTOUCHED = [
    "o[i, j] = x[i, j] + z[i, j] * 2.0 - x[i, j] / z[i, j]",
    "o[i, j] = (x[i, j] - r[i]) * s[i] * w[j] + v[j]",
    "o[i, j] *= s[i]",
    "o[i, j] += x[i, j] * x[i, j]",
    "o[i, j] = T.exp(x[i, j])",
    "o[i, j] = T.sqrt(z[i, j]) + T.abs(x[i, j]) * T.log(z[i, j])",
    "o[i, j] = T.max(x[i, j], z[i, j])",
    "o[i, j] = -x[i, j]",
    "o[i, j] = s[i]",
    "o[i, j] = w[j]",
]


@pytest.mark.sampled
@pytest.mark.parametrize("statement", UNTOUCHED)
def test_what_the_vectoriser_takes_stays(statement: str) -> None:
    assert tile(statement) == [statement]


REWRITTEN = [
    ("o[i, j] = T.exp(x[i, j] - r[i])", ["o[i, j] = x[i, j] - r[i]", "o[i, j] = T.exp(o[i, j])"]),
    (
        "o[i, j] = T.exp(x[i, j] * soft - r[i] * soft)",
        ["o[i, j] = x[i, j] - r[i]", "o[i, j] = o[i, j] * soft", "o[i, j] = T.exp(o[i, j])"],
    ),
    ("o[i, j] = s[i] * x[i, j]", ["o[i, j] = x[i, j] * s[i]"]),
    ("o[i, j] = s[i] - x[i, j]", ["o[i, j] = x[i, j] * -1.0", "o[i, j] = o[i, j] + s[i]"]),
    ("o[i, j] = s[i] - w[j]", ["o[i, j] = s[i]", "o[i, j] = o[i, j] - w[j]"]),
    ("o[i, j] = T.max(x[i, j], 0) * w[j]", ["o[i, j] = T.max(x[i, j], 0)", "o[i, j] = o[i, j] * w[j]"]),
    ("o[i, j] = s[i] / z[i, j]", ["o[i, j] = s[i]", "o[i, j] = o[i, j] / z[i, j]"]),
    ("o[i, j] = 1.0 / z[i, j]", ["T.tile.fill(o, 1.0)", "o[i, j] = o[i, j] / z[i, j]"]),
    ("o[i, j] = 2 * x[i, j] + 1", ["o[i, j] = x[i, j] * 2 + 1"]),
    ("o[i, j] = 1 - x[i, j]", ["o[i, j] = x[i, j] * -1.0 + 1"]),
    ("o[i, j] = x[i, j] * (s[i] * r[i])", ["r[i] = s[i] * r[i]", "o[i, j] = x[i, j] * r[i]"]),
    ("o[i, j] /= s[i] + 1e-6", ["s_shifted[i] = s[i] + 1e-6", "o[i, j] /= s_shifted[i]"]),
    ("o[i, j] = T.max(x[i, j], 0.5)", ["T.tile.max(o, x, 0.5)"]),
    (
        "o[i, j] = T.clamp(x[i, j] / s[i], -1, 1)",
        ["o[i, j] = x[i, j] / s[i]", "T.tile.max(o, o, -1.0)", "T.tile.min(o, o, 1.0)"],
    ),
    ("o[i, j] = T.max(x[i, j], s[i])", ["o[i, j] = s[i]", "T.tile.max(o, x, o)"]),
    (
        "o[i, j] += x[i, j] * T.exp(w[j] - x[i, j])",
        ["o_exp[i, j] = w[j] - x[i, j]", "o_exp[i, j] = T.exp(o_exp[i, j])", "o[i, j] += x[i, j] * o_exp[i, j]"],
    ),
    ("o[i, j] = s[i] * w[j]", ["o[i, j] = s[i]", "o[i, j] = o[i, j] * w[j]"]),
    ("o[i, j] = T.sigmoid(x[i, j])", ["T.tile.sigmoid(o, x)"]),
    ("o[i, j] = T.tanh(x[i, j] * 0.5)", ["T.tile.sigmoid(o, x)", "o[i, j] = o[i, j] * 2.0 - 1.0"]),
    ("o[i, j] = T.tanh(x[i, j] * 0.5) + 1.0", ["T.tile.sigmoid(o, x)", "o[i, j] = o[i, j] * 2.0"]),
    ("o[i, j] = 1.0 + T.tanh(x[i, j] * 0.5)", ["T.tile.sigmoid(o, x)", "o[i, j] = o[i, j] * 2.0"]),
    ("o[i, j] = 1.0 - T.tanh(x[i, j] * 0.5)", ["T.tile.sigmoid(o, x)", "o[i, j] = o[i, j] * -2.0 + 2.0"]),
    ("o[i, j] = T.tanh(x[i, j] * 0.5) - 1.0", ["T.tile.sigmoid(o, x)", "o[i, j] = o[i, j] * 2.0 - 2.0"]),
    ("o[i, j] = T.tanh(x[i, j] * 0.5) + 3.0", ["T.tile.sigmoid(o, x)", "o[i, j] = o[i, j] * 2.0 + 2.0"]),
    ("o[i, j] = 1.0 / (z[i, j] + 1.0) * x[i, j]", ["o[i, j] = x[i, j] / (z[i, j] + 1.0)"]),
    ("o[i, j] = x[i, j] - 1.0 + 1.0", ["o[i, j] = x[i, j] - 1.0 + 1.0"]),  # the author's own rounding
    ("o[i, j] = x[i, j] - (-1.0)", ["o[i, j] = x[i, j] + 1.0"]),  # the compiler would print `--1.0f`
    ("o[i, j] = T.pow(x[i, j], 2)", ["o[i, j] = x[i, j] * x[i, j]"]),
    ("o[i, j] = T.floor(x[i, j])", [f'T.tile.cast(o, x, "CAST_FLOOR", {M} * {N})']),
    ("o[i, j] = x[i, j]", ["T.copy(x, O)"]),
    ("o[i, j] = 3", ["T.tile.fill(o, 3.0)"]),
    ("o[i, j] = T.__exp(x[i, j])", ["o[i, j] = T.exp(x[i, j])"]),
    ("o[i, j] = T.ieee_fmaf(x[i, j], z[i, j], s[i])", ["o[i, j] = x[i, j] * z[i, j]", "o[i, j] = o[i, j] + s[i]"]),
]


@pytest.mark.sampled
@pytest.mark.parametrize(("statement", "expected"), REWRITTEN, ids=[statement for statement, _ in REWRITTEN])
def test_a_tile(statement: str, expected: list[str]) -> None:
    assert tile(statement) == expected


ROWS = [
    ("s[i] = T.exp(r[i] - s[i])", ["s[i] = r[i] - s[i]", "s[i] = T.exp(s[i])"]),
    ("s[i] = T.max(s[i], 1e-4)", ["T.tile.max(s, s, 1e-4)"]),
    ("s[i] = T.rsqrt(s[i] / 64 + 1e-6)", ["s[i] = s[i] / 64 + 1e-6", "s[i] = T.rsqrt(s[i])"]),
    ("s[i] = 1.0 / s[i]", ["T.tile.fill(ones, 1.0)", "s[i] = ones[i] / s[i]"]),
    ("s[i] = T.exp(x[i, 0])", ["s[i] = x[i, 0]", "s[i] = T.exp(s[i])"]),
    ("s[i] = r[0] * s[i]", ["s[i] = s[i] * r[0]"]),
]


@pytest.mark.parametrize(("statement", "expected"), ROWS, ids=[statement for statement, _ in ROWS])
def test_a_vector(statement: str, expected: list[str]) -> None:
    assert row(statement) == expected


# -- base two ---------------------------------------------------------------------------------------------------------


def test_the_factor_log2_e_leaves_a_constant_that_only_exponents_use() -> None:
    body = f"for i, j in T.Parallel({M}, {N}):\n    o[i, j] = T.exp2(x[i, j] * scale - r[i] * scale)"
    new = agree(kernel(body), values(), threads="1")
    assert "    scale = 0.3\n" in new
    assert "o[i, j] = o[i, j] * scale\n" in new


def test_a_constant_that_is_used_otherwise_keeps_its_value() -> None:
    body = f"""
        for i, j in T.Parallel({M}, {N}):
            o[i, j] = T.exp2(x[i, j] * scale - r[i] * scale)
        for i in T.Parallel({M}):
            s[i] = T.log2(s[i]) + r[i] * scale
    """
    new = agree(kernel(body), values(), threads="1")
    assert FACTORY.splitlines()[0] in new
    assert "scale_ln2 = scale * 0.6931471805599453" in new
    assert "s[i] = T.log(s[i]) * 1.4426950408889634 + r[i] * scale" in new


@pytest.mark.parametrize(("other", "exponent"), [("1.44269504", "x[i, j]"), ("2.0", "x[i, j] * scale_ln2")])
def test_a_number_that_two_functions_name_is_known_if_it_is_the_same(other: str, exponent: str) -> None:
    body = f"for i, j in T.Parallel({M}, {N}):\n    o[i, j] = T.exp2(x[i, j] * scale)"
    text = kernel(body, factory="scale = 1.44269504\nsoft = another()")
    both = f"def another():\n    scale = {other}\n    return scale\n\n\n@tilelang.jit"
    new = agree(text.replace("@tilelang.jit", both), values(), threads="1")
    assert f"T.exp({exponent})" in new or f"o[i, j] = {exponent}\n" in new


@pytest.mark.parametrize(
    "exponent",
    [
        "x[i, j]",
        "x[i, j] * 1.44269504",
        "(x[i, j] - r[i]) * scale",
        "scale * (x[i, j] - r[i])",
        "-x[i, j] * scale",
        "x[i, j] * scale + (-r[i]) * scale",
        "r[i] * scale - s[i]",
        "x[i, j] * scale * soft",
        "x[i, j] / 3.0",
        "(x[i, j] - 0.5) * log2e",
        "x[i, j] * log2e - s[i]",
        "scale",
    ],
)
def test_powers_of_two_are_right_whatever_the_exponent(exponent: str) -> None:
    tile(f"o[i, j] = T.exp2({exponent})", factory=FACTORY + "\nlog2e = 1.44269504")


@pytest.mark.parametrize(
    "value",
    [
        "(\n        x[i, j]\n        - r[i]\n    ) * soft",
        "T.exp2(\n    (\n        x[i, j]  # the score\n        - r[i]  # its maximum\n    )\n    * scale\n)",
        "(\n        h[i, j]\n        + g[i]\n    ) + x[i, j]",
        "x[\n        i,\n        j,\n    ] * (soft\n        + 1)",
    ],
)
def test_expressions_over_several_lines(value: str) -> None:
    tile(f"o[i, j] = {value}", more=HALF)


@pytest.mark.sampled
@pytest.mark.parametrize("flag", ["bx > 0", "bx == 0", "K[0, 0] > 1000", "K[0, 0] < 1000"])
@pytest.mark.parametrize("test", ["{} and x[i, j] > 0", "x[i, j] > 0 or {}", "s[i] > 1 and {} and z[i, j] < 1"])
def test_a_condition_of_which_a_part_is_the_same_for_all_elements(flag: str, test: str) -> None:
    new = tile(f"o[i, j] = T.if_then_else({test.format(flag)}, x[i, j], z[i, j])")
    assert f"if {flag}:" in new or "K" in flag  # an element of global memory is read into a variable before
    assert not any("T.serial" in line for line in new)


FOLDS = [
    "r[i] * scale - g[i] * 1.44269504",
    "g[i] * 1.44269504 - r[i] * scale",
    "(g[i] * 1.44269504) - (r[i] - s[i]) * scale",
    "T.max(r[i], s[i]) * scale",
    "T.max(r[i] * scale, s[i] * scale)",
    "g[i] * g[i] - r[i] * scale * 0.5",
    "r[i] * scale - s[i] * scale * scale",
    "(g[i] * scale) - r[i] * scale",
]


@pytest.mark.parametrize("exponent", FOLDS)
def test_a_folded_constant_is_never_used_with_its_old_value(exponent: str) -> None:
    """Another exponent alone would let the scale lose its factor; this one may be taken apart before it is scaled."""
    body = f"""
        for i, j in T.Parallel({M}, {N}):
            o[i, j] = T.exp2(x[i, j] * scale - r[i] * scale)
        for i in T.Parallel({M}):
            s[i] += T.exp2({exponent})
    """
    agree(kernel(body, HALF), values(), threads="1", rtol=3e-3, atol=3e-3)


# -- element types ----------------------------------------------------------------------------------------------------


HALF = f"""
h = T.alloc_fragment(({M}, {N}), "float16")
g = T.alloc_fragment(({M},), "float16")
b = T.alloc_fragment(({M}, {N}), "bfloat16")
k = T.alloc_fragment(({M}, {N}), "int32")
T.copy(X, h)
T.copy(S, g)
T.copy(X, b)
T.copy(K, k)
"""


@pytest.mark.parametrize("function", ["exp2", "exp10", "log2", "log1p", "tanh"])
@pytest.mark.parametrize("target", ["o", "h"])
def test_functions_of_halves_are_as_precise_as_halves(function: str, target: str) -> None:
    """Written with other functions, the steps are not rounded to a half each: tanh of a small number would be lost."""
    half = np.abs(values()["X"]).astype(np.float16) / np.float16(64.0)
    argument = half.astype(np.float64) * (64 if function == "exp2" else 1) + (0.5 if "log" in function else 0.0)
    body = f"""
        for i, j in T.Parallel({M}, {N}):
            {target}[i, j] = T.{function}(h[i, j])
        T.copy({target}, o)
    """
    more = f"""h = T.alloc_fragment(({M}, {N}), "float16")\nT.copy(X, h)"""
    given = {**values(), "X": argument.astype(np.float16).astype(np.float32)}
    new = migrated(kernel(body if target == "h" else body.replace("        T.copy(o, o)\n", ""), more), "1")
    exact = {"log1p": np.log1p, "exp10": lambda x: 10.0**x}.get(function) or getattr(np, function)
    expected = exact(given["X"].astype(np.float64))
    np.testing.assert_allclose(run(new, given)["O"], expected, rtol=2.0**-11, atol=2.0**-22)


MIXED = [
    ("o[i, j] = h[i, j] * soft", ["T.copy(h, o)", "o[i, j] = o[i, j] * soft"]),
    ("o[i, j] = T.cast(h[i, j], 'float32') * x[i, j]", ["T.copy(h, o)", "o[i, j] = o[i, j] * x[i, j]"]),
    ("o[i, j] = h[i, j].astype('float32') + g[i]", None),
    ("o[i, j] = T.Cast('float32', h[i, j])", ["T.copy(h, o)"]),
    ("o[i, j] = b[i, j] * b[i, j]", ["T.copy(b, o)", "o[i, j] = o[i, j] * o[i, j]"]),
    ("o[i, j] = x[i, j] * k[i, j]", ["T.copy(k, o)", "o[i, j] = x[i, j] * o[i, j]"]),
    ("o[i, j] = x[i, j] * (k[i, j] // 3)", None),
    ("o[i, j] = T.if_then_else(k[i, j] > 0, x[i, j], 0)", None),
    ("o[i, j] = T.cast(T.cast(x[i, j], 'float16'), 'float32') - T.cast(T.cast(x[i, j], 'int32'), 'float32')", None),
]


@pytest.mark.parametrize(("statement", "expected"), MIXED, ids=[statement for statement, _ in MIXED])
def test_one_element_type_for_each_statement(statement: str, expected: list[str] | None) -> None:
    found = tile(statement, more=HALF, rtol=1e-2)  # the GPU rounds between the operations
    assert expected is None or found == expected


def test_a_narrow_result_is_computed_wide() -> None:
    body = f"""
        for i, j in T.Parallel({M}, {N}):
            h[i, j] = T.exp(x[i, j] * 4.0)
        T.copy(h, o)
    """
    found = lines(body, HALF)
    assert found[:2] == ["x[i, j] = x[i, j] * 4.0", "x[i, j] = T.exp(x[i, j])"]


# -- conditions -------------------------------------------------------------------------------------------------------

CONDITIONS = [
    "T.if_then_else(i >= j, 0, -T.infinity('float32'))",
    "T.if_then_else(bx * 32 + i >= j, x[i, j], 0)",
    "T.if_then_else(j < 40, x[i, j], -1e9)",
    "T.if_then_else(40 <= j, -1e9, x[i, j])",
    "T.if_then_else(i > j and j < 20, x[i, j] * 2.0, 0.0)",
    "T.if_then_else(i < j or j >= 50, -1e9, T.exp(x[i, j]))",
    "T.if_then_else(i < j or (j >= 50 or i < 3), -1e9, o[i, j])",
    "T.if_then_else(T.And(i >= j, T.Not(j == 3)), x[i, j], o[i, j])",
    "T.if_then_else((i >= j) & (j > 3), x[i, j], 0)",
    "T.if_then_else(3 < j < 20, x[i, j], 0)",
    "T.if_then_else(not (i >= j), x[i, j], z[i, j])",
    "T.if_then_else(i + j < 40, 1.0, 0.0)",
    "T.Select(i == j, 1.0, 0.0)",
    "x[i, j] if i >= j else 0.0",
    "T.if_then_else(x[i, j] > 0, x[i, j], x[i, j] * 0.1)",
    "T.if_then_else(x[i, j] - r[i] <= 0, z[i, j] * T.exp(x[i, j] - r[i]), 0)",
    "T.if_then_else(s[i] > 1.0, x[i, j], 0)",
    "T.if_then_else(w[j] > 1.0, 0, -1e9)",
    "o[i, j] + T.if_then_else(i == j, 1.0, 0.0)",
    "T.if_then_else(i // 4 >= j // 8, T.exp(x[i, j]), 0.0)",
    "T.if_then_else(i * j > 40, T.exp(x[i, j]), 0.0)",
    "T.if_then_else(j * 0.1 > i + 3, x[i, j], 0.0)",
    "T.if_then_else(j * soft >= i * 0.7 - 2, x[i, j], 0.0)",
    "T.if_then_else(r[i] == x[i, j], j, o[i, j])",
    "T.if_then_else(bx > 0, x[i, j], z[i, j])",
    "T.exp((i - j) * 0.1) * x[i, j]",
    "x[i, j] * (i // 2)",
]


@pytest.mark.sampled
@pytest.mark.parametrize("value", CONDITIONS)
def test_conditions_on_elements(value: str) -> None:
    found = tile(f"o[i, j] = {value}")
    assert not any("if_then_else" in line or "Select(" in line for line in found)


def test_tiles_of_an_attempt_that_failed_are_not_used_later() -> None:
    body = f"""
        for i, j in T.Parallel({M}, {N}):
            o[i, j] = T.if_then_else(i >= j and i * j == 12, T.exp(x[i, j] * s[i]), T.exp(z[i, j] * w[j]))
            x[i, j] = T.max(x[i, j] * w[j], T.exp(x[i, j] + s[i])) * T.max(z[i, j], s[i])
        T.copy(x, o)
    """
    lines(body)


def test_a_causal_mask_compares_with_a_tile_that_is_made_once() -> None:
    body = f"""
        for k in T.serial(2):
            for i, j in T.Parallel({M}, {N}):
                o[i, j] = T.if_then_else(bx * 32 + i >= k * 16 + j, o[i, j], 0)
    """
    new = agree(kernel(body), values(), threads="1")
    inside = new[new.index("for k in") :]
    assert [line.strip() for line in inside.splitlines()[1:3]] == [
        'T.tile.compare(mask, column_minus_row, T.float32(bx * 32 - k * 16), "LE")',
        'T.tile.select(o, mask, o, 0.0, "VSEL_TENSOR_SCALAR_MODE")',
    ]


FUNCTIONS = [
    ("(bx * 32 + i) // 4 == j // 8", "EQ", "j // 8", "(bx * 32 + i) // 4"),
    ("i % 8 > j % 8 + 2", "LT", "j % 8", "i % 8"),
    ("2 * i - j // 2 < 7", "GT", "j // 2", "2 * i"),
    ("(i - 9) // 4 != (j - 20) // 4", "NE", "(j - 20) >> 2", "(i - 9) >> 2"),  # `//` truncates there
    ("j * 3 - i <= bx + 10", "LE", "j * 3", "i"),
    ("j // 5 == 3", "EQ", "j // 5", None),
]


@pytest.mark.parametrize(("condition", "mode", "column", "row"), FUNCTIONS, ids=[item[0] for item in FUNCTIONS])
def test_whole_numbers_of_rows_and_columns_are_compared(
    condition: str, mode: str, column: str, row: str | None
) -> None:
    """One vector of the columns' numbers for the kernel; a row is the vector less its own number."""
    body = f"""
        for k in T.serial(2):
            for i, j in T.Parallel({M}, {N}):
                o[i, j] = T.if_then_else({condition}, x[i, j], z[i, j])
    """
    new = agree(kernel(body), values(), threads="1")
    before, inside = new.split("for k in", 1)
    assert f"column_values[j] = T.float32({column})" in before
    number = "0.0" if row is None else f"T.float32({row})"
    assert f"T.tile.sub(index_tile[i, :], column_values, {number})" in inside
    assert f'"{mode}")' in inside
    assert "if " not in inside


@pytest.mark.parametrize("condition", ["j * 0.1 > i + 3", "j * soft >= i", "j > i * 0.1 + bx"])
def test_numbers_that_are_not_whole_are_compared_as_on_a_gpu(condition: str) -> None:
    """A difference of them would be rounded."""
    body = f"""
        for i, j in T.Parallel({M}, {N}):
            o[i, j] = T.if_then_else({condition}, x[i, j], z[i, j])
    """
    assert "column_values" not in agree(kernel(body), values(), threads="1")


def test_numbers_of_columns_that_change_are_made_in_place() -> None:
    body = f"""
        for k in T.serial(2):
            for i, j in T.Parallel({M}, {N}):
                o[i, j] = T.if_then_else(i // 4 >= (k * 16 + j) // 8, x[i, j], z[i, j])
    """
    before, inside = agree(kernel(body), values(), threads="1").split("for k in", 1)
    assert "T.float32" not in before
    assert "column_values[j] = T.float32((j + k * 16) // 8)" in inside


def test_a_number_that_the_kernel_binds_is_not_used_before_it() -> None:
    body = f"""
        T.copy(x, o)
        block = {M} // 4
        for i, j in T.Parallel({M}, {N}):
            o[i, j] = T.if_then_else(i // block >= j // block, o[i, j], z[i, j])
    """
    new = agree(kernel(body), values(), threads="1")
    assert new.index("block = ") < new.index("column_values[j] = T.float32(j // block)")


def test_a_single_row_is_no_number_with_a_minus() -> None:
    """The loop over it is gone when the compiler prints: ``--9.0f`` for a vector less -9 (TL749)."""
    body = f"""
        x = T.alloc_fragment((1, {N}), "float32")
        T.copy(X[bx, 0], x)
        for i, j in T.Parallel(1, {N}):
            x[i, j] = T.if_then_else((i - 9) // 2 + 8 == j // 2, x[i, j], -1.0)
        T.copy(x, O[bx, 0])
    """
    params = f'X: T.Tensor(({M}, {N}), "float32"), O: T.Tensor(({M}, {N}), "float32")'
    text = gpu_file(params, textwrap.dedent(body), launch=f"T.Kernel({M}, threads=128) as bx", jit="@tilelang.jit")
    assert "T.tile.sub" not in agree(text, {"X": values()["X"]})


BRANCHES = [
    """
        if i <= j:
            o[i, j] = 0
    """,
    """
        if x[i, j] == 0.5:
            o[i, j] = 0.0
        else:
            o[i, j] = T.exp(x[i, j] - r[i])
    """,
    """
        if o[i, j] > 0:
            o[i, j] = 1.0
        else:
            o[i, j] = 2.0
    """,
    """
        if bx * 32 + i < 40 and j < 11:
            o[i, j] = x[i, j]
            z[i, j] = z[i, j] * 2.0
        else:
            o[i, j] = 0.0
            z[i, j] = 1.0
    """,
    """
        if j < 11:
            o[i, j] = x[i, j]
            z[i, j] = o[i, j] * 2.0
        else:
            o[i, j] = 0.0
            z[i, j] = o[i, j] + 1.0
    """,
    """
        d = T.alloc_var("float32")
        if x[i, j] > 0:
            d = 1.0
        else:
            d = 0.0
        o[i, j] = (s[i] - r[i]) * d * w[j]
    """,
    """
        twice = x[i, j] * 2.0
        o[i, j] = twice + twice * twice
    """,
    """
        sum = x[i, j] + z[i, j]
        o[i, j] = sum
    """,
    """
        number = 2.0
        o[i, j] = number
        z[i, j] = x[i, j] + o[i, j]
    """,
    """
        row = bx * 32 + i
        column = j
        o[i, j] = T.if_then_else(row >= column, x[i, j], 0)
    """,
    """
        before = o[i, j]
        o[i, j] = x[i, j] * 2.0
        z[i, j] = o[i, j] + before
        o[i, j] = z[i, j]
    """,
    """
        o[i, j] = T.if_then_else(bx > 0, x[i, j] * (bx * 2 + 1), z[i, j] * (bx * 2 + 1)) + bx * 2
    """,
    """
        if soft > 0.5:
            o[i, j] = x[i, j] * 2.0
        else:
            o[i, j] = z[i, j]
    """,
]


@pytest.mark.parametrize("statements", BRANCHES)
def test_names_and_branches_inside_of_a_loop(statements: str) -> None:
    lines(f"for i, j in T.Parallel({M}, {N}):\n" + textwrap.indent(textwrap.dedent(statements).strip(), "    "))


def test_pairs_of_stores_in_both_arms_are_choices() -> None:
    """Nothing is read that only the other arm would have written."""
    new = lines("""
        y = T.alloc_fragment((32, 16), "float32")
        u = T.alloc_fragment((32, 16), "float32")
        for i, j in T.Parallel(32, 16):
            if i < 20 and j < 11:
                y[i, j] = x[i, j]
                u[i, j] = z[i, j]
            else:
                y[i, j] = 0.0
                u[i, j] = 1.0
        for i, j in T.Parallel(32, 16):
            o[i, j] = y[i, j] + u[i, j]
        """)
    assert sum("T.tile.select" in line for line in new) == 4


INDICES = [
    "q, c = j // 2, i\no[i, j] = x[q, c] + 1.0",
    "q = j // 2\no[i, j] = x[q, i]",
    "q, c = 31 - i, 63 - j\no[q, c] = x[i, j] * 2.0",
    "q = 31 - i\nq = 31 - q\no[i, j] = x[q, j] * x[q, j]",
    "q = i // 2\nif q < 5:\n    o[i, j] = x[q, j]\nelse:\n    o[i, j] = x[q + 1, j] + 1.0",
    "q = i // 2 * 2\nt = x[q, j] * 2.0\no[i, j] = t + t * t",
    "c = (i + j) % 64\no[i, j] = T.max(x[i, c], 0.0) + c",
    "q = i\no[i, j] = x[q, j] * s[q]",
]


@pytest.mark.sampled
@pytest.mark.parametrize("outer", ["", "q = 5\n"], ids=["", "also outside"])
@pytest.mark.parametrize("statements", INDICES)
def test_names_of_a_loop_in_indices(statements: str, outer: str) -> None:
    body = textwrap.indent(statements, "    ")
    lines(f"{outer}for i, j in T.Parallel({M}, {N}):\n{body}")


# -- parts and other orders -------------------------------------------------------------------------------------------

PARTS = [
    f"for i, j in T.Parallel({M // 2}, {N}):\n    o[i, j] = x[i + 16, j] * 2.0",
    f"for i, j in T.Parallel({M // 2}, {N}):\n    o[i, j] = x[i, j]",
    f"for i, j in T.Parallel({M // 2}, {N}):\n    o[i + 16, j] = T.max(x[i, j], 0.3)",
    f"for i, j in T.Parallel({M}, 32):\n    o[i, j] = -x[i, j + 32]\n    o[i, j + 32] = x[i, j] * s[i]",
    f"for i, j in T.Parallel({M // 2}, {N}):\n    o[i + 16, j] = x[i, j] * s[i]",
    f"for i in T.Parallel({M // 2}):\n    s[i] = r[i + 16]",
    f"for i in T.Parallel({M // 2}):\n    s[i + 8] = T.exp(r[i])",
    f"for i in T.Parallel({M}):\n    s[i] = x[i, 3] * 2.0",
    f"for i in T.Parallel({M}):\n    o[i, 3] = s[i] * 2.0",
    f"for j in T.Parallel({N}):\n    o[3, j] = x[5, j] * w[j]",
    f"for j in T.Parallel({N}):\n    o[3, j] = w[j]",
    f"for i, j in T.Parallel({M}, {N}):\n    o[i, j] = x[i, {N - 1} - j] * 2.0",
    f"for i, j in T.Parallel({M}, {N}):\n    o[{M - 1} - i, j] = x[i, j] * 2.0",
    f"for i, j in T.Parallel({M}, {N}):\n    o[i, j] = T.exp(x[i // 2, j] + w[j])",
    f"for k in T.serial({M}):\n    for j in T.Parallel({N}):\n        w[j] = w[j] + x[k, j]\nT.copy(w, o[0, :])",
]


@pytest.mark.sampled
@pytest.mark.parametrize("body", PARTS)
def test_parts_of_tiles(body: str) -> None:
    lines(body)


def test_comments_stay_with_their_statement() -> None:
    body = f"""
        for i, j in T.Parallel({M}, {N}):
            # the largest value of a row becomes one
            o[i, j] = T.exp(x[i, j] - r[i])  # probabilities
            # no smaller than this
            o[i, j] = T.max(o[i, j], 0.1)
    """
    new = agree(kernel(body), values(), threads="1")
    for comment in ("# the largest value of a row becomes one", "# probabilities", "# no smaller than this"):
        assert new.count(comment) == 1


@pytest.mark.parametrize(
    "body",
    [
        """
        # one
        d = x[i, j] - r[i]  # two
        o[i, j] = T.exp(d)  # three
        """,
        """
        if i >= j:
            # one
            o[i, j] = x[i, j]  # two
        else:
            o[i, j] = 0.0  # three
        """,
        """
        # one
        d = x[i, j] * 2.0
        # two
        e = d + 1.0
        # three
        o[i, j] = e
        """,
    ],
)
def test_comments_of_statements_that_become_part_of_others_stay(body: str) -> None:
    inner = textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
    new = agree(kernel(f"for i, j in T.Parallel({M}, {N}):\n{inner}"), values(), threads="1")
    places = [new.index(comment) for comment in ("# one", "# two", "# three")]
    assert places == sorted(places)


def test_a_reduction_that_a_loop_writes() -> None:
    """What every turn stores is named, with what to write: tiles that are copied first would change nothing."""
    params = "A: T.Tensor((64,), 'float32'), B: T.Tensor((1,), 'float32')"
    tiles = "a = T.alloc_fragment((64,), 'float32')\nm = T.alloc_fragment((1,), 'float32')\nT.copy(A, a)\nT.fill(m, 0)"
    loop = "for j in T.Parallel(64):\n    m[0] = T.max(m[0], a[j] * a[63 - j])\nT.copy(m, B)"
    (found,) = result_of(gpu_file(params, f"{tiles}\n{loop}")).diagnostics
    expected = "every turn of the loop stores `m[0]`: write a reduction, such as `T.reduce_sum`"
    assert (found.code, found.message) == ("TL151", expected)


REFUSED = [
    ("o[i, j] = T.atan(x[i, j])", "TL150"),
    ("o[i, j] = x[i, j] + T.call_pure_extern('float32', 'f', x[i, j])", None),
    ("s[i] = x[i, j]", "TL151"),
]


@pytest.mark.parametrize(
    ("function", "meant"), [("expp", "; did you mean `exp`?"), ("sigmod", "; did you mean `sigmoid`?"), ("atan", "")]
)
def test_a_name_with_a_letter_too_many_is_taken_for_a_typing_error(function: str, meant: str) -> None:
    text = kernel(f"for i, j in T.Parallel({M}, {N}):\n    o[i, j] = T.{function}(x[i, j])")
    (found,) = [item for item in result_of(text).diagnostics if item.code == "TL150"]
    assert found.message == f"`T.{function}(x[i, j])` has no vector instruction{meant}"


@pytest.mark.parametrize(("statement", "rule"), REFUSED)
def test_what_has_no_vector_form_is_refused(statement: str, rule: str | None) -> None:
    codes = [code for code, _ in refused(kernel(f"for i, j in T.Parallel({M}, {N}):\n    {statement}"))]
    assert codes
    assert rule is None or rule in codes


@pytest.mark.parametrize(
    ("args", "head", "code"),
    [
        ("op=None", "", "TL605"),
        ("", "from kernels.common import op\n\n", "TL903"),
        ("", "op = OPS['relu']\n\n", "TL903"),
    ],
)
def test_functions_that_the_file_does_not_tell(args: str, head: str, code: str) -> None:
    body = """
    x = T.alloc_fragment((64,), "float32")
    T.copy(X[bx, 0], x)
    for j in T.Parallel(64):
        x[j] = op(x[j])
    T.copy(x, Y[bx, 0])
    """
    params = 'X: T.Tensor((2, 64), "float32"), Y: T.Tensor((2, 64), "float32")'
    text = gpu_file(params, body, args=args).replace("\n\n\n", "\n" + head + "\n\n", 1)
    result = result_of(text)
    assert [(d.code, "`op`" in d.message) for d in result.diagnostics if d.severity == "error"] == [(code, True)]


def test_names_of_the_nest_in_parts_and_types() -> None:
    """What a name inside of the loop stands for is written where the loop is gone: in a part, and as a type."""
    body = """
        b = T.alloc_fragment((256,), 'float16')
        for i in T.Parallel(128):
            k = i + 128
            v = b[k]
            b[k] = T.if_then_else(v > T.cast(0, v.dtype), v, T.Cast(v.dtype, T.cast(v, 'float32') * soft))
    """
    middle = textwrap.dedent(body).strip().replace("\nfor", "\nT.copy(A[0], b)\nfor", 1) + "\nT.copy(b, B[0])"
    params = "A: T.Tensor((256,), 'float16'), B: T.Tensor((256,), 'float16')"
    text = gpu_file(params, middle, launch="T.Kernel(1, threads=128) as bx", factory="soft = 0.7")
    values_of_a = np.random.default_rng(1).standard_normal(256).astype(np.float16)
    agree(text, {"A": values_of_a}, threads="1", rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    "value", ["s[i]", "s[i] * 2.0", "s[i] * s[i]", "T.max(x[i, j], s[i])", "s[i] / x[i, j]", "T.sqrt(s[i]) + 1.0"]
)
@pytest.mark.parametrize("rows", ["1", "rows=1", "rows=4, called with 1"])
def test_the_value_of_a_single_row_is_never_assigned(value: str, rows: str) -> None:
    """The compiler copies what lies behind it (seen in the text for both targets), whoever says that there is one."""
    params = 'X: T.Tensor((4, 64), "float32"), S: T.Tensor((4,), "float32"), O: T.Tensor((4, 64), "float32")'
    tiles = (
        'x = T.alloc_shared((1, 64), "float32")\ns = T.alloc_fragment((1,), "float32")\n'
        'o = T.alloc_fragment((1, 64), "float32")\nT.copy(X[bx, 0], x)\nT.copy(S[bx], s)\n'
    )
    body = f"{tiles}for i, j in T.Parallel(1, 64):\n    o[i, j] = {value}\nT.copy(o, O[bx, 0])"
    args, _, called = rows.partition(", called")
    if rows != "1":
        body = body.replace("(1, 64)", "(rows, 64)").replace("(1,)", "(rows,)")
    text = gpu_file(
        params, body, launch="T.Kernel(4, threads=128) as bx", jit="@tilelang.jit", args=args if rows != "1" else ""
    )
    text = f"{text}\n\nfactory(rows=1)\n" if called else text
    if rows != "1" and "sqrt" in value:  # a loop with one turn is a scalar, for which there is no function
        assert [code for code, _ in refused(text)] == ["TL733"]
        return
    new = migrated(text)
    assert not re.search(r"\[i, j\] = \w+\[i\]$", new, re.M)


@pytest.mark.parametrize(
    "value",
    ["r[i] - 0", "0 + r[i]", "r[i] * 1", "r[i] // 1", "1 * (r[i] + 0)", "r[i] + 1 - 1", "-(-r[i])", "r[i] * one"],
)
def test_a_number_that_changes_nothing_is_left_out(value: str) -> None:
    """With it the values of the rows are a plain copy for the compiler, and 8 bytes of a vector cannot be copied."""
    text = gpu_file(
        'X: T.Tensor((16,), "int32"), Y: T.Tensor((16, 8), "int32")',
        f"""
        r = T.alloc_shared((4,), "int32")
        t = T.alloc_shared((4, 8), "int32")
        T.copy(X[bx * 4], r)
        for i, j in T.Parallel(4, 8):
            t[i, j] = {value}
        T.copy(t, Y[bx * 4, 0])
        """,
        factory="one = 3 - 2",
        launch="T.Kernel(4, threads=128) as bx",
    )
    new = agree(text, {"X": np.arange(16, dtype=np.int32), "Y": np.zeros((16, 8), np.int32)})
    assert "t[i, j] = r[i]\n" in new


@pytest.mark.parametrize("column", [0, 8, 31])
def test_a_column_of_a_plane_is_no_row(column: int) -> None:
    """A vector instruction takes what lies behind the first element."""
    body = f"""
    p = T.alloc_shared((2, 4, 32), "float32")
    q = T.alloc_fragment((2, 4, 32), "float32")
    T.copy(A[bx * 2, 0, 0], p)
    for h, i, j in T.Parallel(2, 4, 32):
        q[h, i, j] = 0.5 + p[h, i, {column}]
    T.copy(q, O[bx * 2, 0, 0])
    """
    params = 'A: T.Tensor((4, 4, 32), "float32"), O: T.Tensor((4, 4, 32), "float32")'
    given = np.random.default_rng(4).standard_normal((4, 4, 32)).astype(np.float32)
    new = agree(gpu_file(params, body), {"A": given})
    found = run(new, {"A": given})["O"]
    np.testing.assert_allclose(found, np.broadcast_to(given[:, :, [column]] + 0.5, given.shape), rtol=1e-6)


@pytest.mark.parametrize(("value", "new"), [("x[i, j] - low", "x[i, j] + -low"), ("x[i, j] - high", "x[i, j] - high")])
def test_a_number_that_a_call_makes_negative_is_not_subtracted(value: str, new: str) -> None:
    """TL749: the compiler would write `--2.5e-01f`."""
    body = 'x = T.alloc_shared((4, 64), "float32")\nT.copy(X[bx * 4, 0], x)\n'
    body += f"for i, j in T.Parallel(4, 64):\n    x[i, j] = {value}\nT.copy(x, Y[bx * 4, 0])"
    params = 'X: T.Tensor((8, 64), "float32"), Y: T.Tensor((8, 64), "float32")'
    text = gpu_file(params, body, args="low=-0.25, high=0.25")
    x = np.arange(512, dtype=np.float32).reshape(8, 64)
    assert f"x[i, j] = {new}\n" in agree(text, {"X": x, "Y": np.zeros_like(x)})
