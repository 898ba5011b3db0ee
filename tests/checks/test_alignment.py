"""TL700 and TL701. What is expected is worked out here from bytes and blocks, not taken from the package."""

from __future__ import annotations

import itertools

import pytest

from tests.checks.support import ONE, PARAMS, SPLIT, errors, findings, kernel, source, warnings

BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "int8": 1, "int32": 4, "uint8": 1}


def tiles(columns: object, dtype: str = "float32", rows: object = 16) -> str:
    return "\n".join(f'{name} = T.alloc_ub(({rows}, {columns}), "{dtype}")' for name in ("x", "y"))


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize(("first", "second", "count"), [(0, 1, 31), (8, 16, 32), (0, 32, 32), (16, 0, 16), (4, 0, 8)])
def test_columns_between_tiles(dtype: str, first: int, second: int, count: int) -> None:
    """One DataCopy a row: both starts, both strides and the length are whole blocks."""
    size = BYTES[dtype]
    right = all(number * size % 32 == 0 for number in (first, second, count, 64))
    body = kernel(tiles(64, dtype), f"T.copy(x[:, {first}:{first + count}], y[:, {second}:{second + count}])")
    assert errors(body, launch=ONE) == ([] if right else ["TL700"])


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
@pytest.mark.parametrize("count", [3, 8, 16, 20, 32, 36])
def test_whole_vectors(dtype: str, count: int) -> None:
    """One DataCopy for all of it drops what is not a whole block."""
    body = f'x = T.alloc_ub(({count},), "{dtype}")\ny = T.alloc_ub(({count},), "{dtype}")\nT.copy(x, y)'
    assert errors(body, launch=ONE) == ([] if count * BYTES[dtype] % 32 == 0 else ["TL700"])


def test_a_conversion_takes_any_length_but_not_any_start() -> None:
    body = 'x = T.alloc_ub((40,), "float16")\ny = T.alloc_ub((40,), "float32")\n'
    assert errors(body + "T.copy(x[0:13], y[0:13])", launch=ONE) == []
    assert errors(body + "T.copy(x[8:16], y[0:8])", launch=ONE) == ["TL700"]
    assert errors(body + "T.copy(x[16:24], y[8:16])", launch=ONE) == []


@pytest.mark.parametrize("columns", [1, 8, 20, 24, 33])
@pytest.mark.parametrize("use", ["", "T.tile.exp(x, x)"])
def test_rows_from_global_memory(columns: int, use: str) -> None:
    body = kernel(tiles(columns, rows=32), "T.copy(A[cid * 32, 0], x)", use, "T.copy(x, O[cid * 32, 0])")
    found = [] if columns * 4 % 32 == 0 else ["TL700"]
    assert errors(body) == found
    one = body.replace("(32, ", "(1, ")
    assert errors(one, launch=ONE) == []


def test_addresses_in_global_memory_are_free() -> None:
    body = kernel(tiles(32), "T.copy(A[cid * 16 : cid * 16 + 16, 1:33], x)", "T.copy(x, O[cid * 16, 3])")
    assert errors(body, launch=ONE) == []


def test_the_other_side_of_a_load_is_not() -> None:
    body = 'v = T.alloc_ub((64,), "float32")\n'
    assert errors(body + "T.copy(A[cid, 0:32], v[4:36])", launch=ONE) == ["TL700"]
    assert errors(body + "T.copy(A[cid, 0:32], v[8:40])", launch=ONE) == []
    assert errors(body + "T.copy(v[2:34], O[cid, 0:32])", launch=ONE) == ["TL700"]


@pytest.mark.parametrize("columns", [3, 8, 12, 16])
@pytest.mark.parametrize("element", ["y[3, 0]", "v[1]", "A[0, 0]"])
@pytest.mark.parametrize("beside", ["", "x[i, j] = x[i, j] + 1.0"])
def test_an_element_for_all_of_a_tile_is_added_row_by_row(columns: int, element: str, beside: str) -> None:
    """One ``Adds`` for each row, seen in generated text; each statement of such a loop, too."""
    vector = 'v = T.alloc_ub((16,), "float32")'
    lines = [f"x[i, j] = x[i, j] + {element}", *filter(None, [beside])]
    loop = f"for i, j in T.Parallel(16, {columns}):\n    " + "\n    ".join(lines[::-1])
    plain = f"for i, j in T.Parallel(16, {columns}):\n    x[i, j] = x[i, j] + y[i, j]"
    assert errors(kernel(tiles(columns), vector, loop), launch=ONE) == ([] if columns % 8 == 0 else ["TL700"])
    assert errors(kernel(tiles(columns), vector, plain), launch=ONE) == []


@pytest.mark.parametrize(("columns", "found"), [(16, []), (20, ["TL700"]), (24, [])])
def test_rows_of_operators(columns: int, found: list[str]) -> None:
    loop = "for h in T.serial(16):\n    T.tile.exp(x[h, :], y[h, :])"
    assert errors(kernel(tiles(columns), loop), launch=ONE) == found
    one = "T.tile.exp(x[0, :], y[0, :])"
    assert errors(kernel(tiles(columns), one), launch=ONE) == []


@pytest.mark.parametrize(("columns", "found"), [(16, []), (20, ["TL700"])])
def test_rows_of_reductions_and_of_values_per_row(columns: int, found: list[str]) -> None:
    reduction = 'm = T.alloc_ub((16,), "float32")\nT.reduce_max(x, m, dim=-1)'
    assert errors(kernel(tiles(columns), reduction), launch=ONE) == found
    rows = f"for i, j in T.Parallel(16, {columns}):\n    y[i, j] = x[i, j] - m[i]"
    assert errors(kernel(tiles(columns), 'm = T.alloc_ub((16,), "float32")', rows), launch=ONE) == found
    flat = f"for i, j in T.Parallel(16, {columns}):\n    y[i, j] = x[i, j] + y[i, j]"
    assert errors(kernel(tiles(columns), flat), launch=ONE) == []


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("y[i] = x[i + 1] - x[i]", ["TL700"]),
        ("y[i] = x[i + 8] - x[i]", []),
        ("y[i] = x[i + 1]", ["TL700"]),
        ("y[i] = x[i] * 2.0", []),
    ],
)
def test_shifted_vectors(statement: str, found: list[str]) -> None:
    body = 'x = T.alloc_ub((40,), "float32")\ny = T.alloc_ub((32,), "float32")\n'
    assert errors(f"{body}for i in T.Parallel(32):\n    {statement}", launch=ONE) == found
    assert errors(f"{body}for i in T.serial(32):\n    {statement}", launch=ONE) == []


@pytest.mark.parametrize("loop", ["T.serial(5)", "T.serial(1, 3)", "T.unroll(2)", "T.serial(cid)"])
def test_a_window_that_moves(loop: str) -> None:
    """``k`` is not a multiple of 8 in some turn."""
    body = kernel(tiles(64), f"for k in {loop}:\n    T.copy(x[:, k:k + 32], y[:, 0:32])")
    assert errors(body, launch=ONE) == ["TL700"]
    assert errors(body.replace("k:k + 32", "8 * k:8 * k + 32"), launch=ONE) == []
    assert errors(body.replace(loop, "T.serial(1)"), launch=ONE) == []


def test_every_turn_of_a_quotient_is_looked_at() -> None:
    def body(turns: int) -> str:
        return kernel(tiles(64), f"for k in T.serial({turns}):\n    T.copy(x[:, k // 4:k // 4 + 32], y[:, 0:32])")

    assert errors(body(4), launch=ONE) == []
    assert errors(body(5), launch=ONE) == ["TL700"]


@pytest.mark.parametrize(("size", "called"), [*itertools.product((64, 40, 65), (False, True))])
def test_sizes_of_callers(size: int, called: bool) -> None:
    body = kernel(tiles("N // 2"), "T.copy(A[cid * 16, 0], x)", "T.copy(x, O[cid * 16, 0])")
    args, tail = ("N", f"factory({size})") if called else (f"N={size}", "")
    right = size // 2 * 4 % 32 == 0
    assert errors(body, launch=ONE, args=args, tail=tail) == ([] if right else ["TL700"])
    assert "TL701" not in warnings(body, launch=ONE, args=args, tail=tail)


def messages(body: str, **settings: object) -> list[str]:
    return [f.message for f in findings(source(body, **settings)) if f.code.startswith("TL70")]  # type: ignore[arg-type]


def test_sizes_of_nobody() -> None:
    body = kernel(tiles("N"), "T.copy(A[cid * 16, 0], x)", "T.tile.exp(y, x)", "T.copy(y, O[cid * 16, 0])")
    assert errors(body, launch=ONE, args="N") == []
    assert messages(body, launch=ONE, args="N") == [
        "`N` must be a multiple of 8: the NPU accesses rows of `x` in blocks of 32 bytes"
    ]
    for proof in ("assert N % 8 == 0", "assert M > 0 and N % 32 == 0", "if N % 16 != 0:\n    raise ValueError(N)"):
        assert messages(body, launch=ONE, args="N, M", factory=proof) == []
    for none in ("assert N % 4 == 0", "assert N % 8 == 1", "assert N % 8", "if N % 8 != 0:\n    print(N)"):
        (message,) = messages(body, launch=ONE, args="N", factory=none)
        assert message.startswith("`N` must be a multiple of 8: ")


def test_a_condition_is_said_once_and_for_all() -> None:
    half = kernel(tiles("N", "float16"), "T.copy(A[cid * 16, 0], x)")
    loop = "for i in T.serial(16):\n    T.tile.exp(y[i, :], x[i, :])"
    wide = 'z = T.alloc_ub((16, N), "float32")\nT.copy(z, O[cid * 16, 0])'
    (message,) = messages(kernel(half, wide, loop), launch=ONE, args="N")
    assert message.startswith("`N` must be a multiple of 16: ")


def test_halves_of_names() -> None:
    body = kernel(tiles("D"), "T.copy(x[:, 0 : D // 2], y[:, D // 2 : D])")
    found = messages(body, launch=ONE, args="D")
    assert any(message.startswith("`D // 2` must be a multiple of 8") for message in found)
    assert messages(body, launch=ONE, args="D", factory="assert D % 16 == 0") == []
    assert errors(body, launch=ONE, args="D", tail="factory(40)") == ["TL700"]
    assert errors(body, launch=ONE, args="D", tail="factory(64)") == []


def test_names_of_types() -> None:
    body, params = "x = T.alloc_ub((16, 16), dtype)\nT.copy(A[cid * 16, 0], x)", PARAMS.replace('"float32"', "dtype", 1)
    assert errors(body, launch=ONE, args='dtype="float16"', params=params) == []
    assert errors(body, launch=ONE, args='dtype="int8"', params=params) == ["TL700"]
    (message,) = messages(body, launch=ONE, args="dtype", params=params)
    assert message.startswith("`16` elements of `dtype` must be a multiple of 32 bytes: ")
    assert messages(body.replace("16, 16", "16, 32"), launch=ONE, args="dtype") == []


def test_halves_of_vectors() -> None:
    body = 'x = T.alloc_ub((24,), "float32")\ny = T.alloc_ub((24,), "float32")\nT.copy(x, y)'
    assert errors(body, launch=ONE) == []
    assert "TL700" in errors(body, launch=SPLIT)  # 48 bytes for each vector core


def test_comparisons_take_whole_repeats() -> None:
    body = 'm = T.alloc_ub((32,), "uint8")\nx = T.alloc_ub(({n},), "float32")\nT.tile.compare(m, x, 0.0, "GE")'
    assert errors(body.replace("{n}", "32"), launch=ONE) == ["TL700"]
    assert errors(body.replace("{n}", "64"), launch=ONE) == []


def test_configurations_of_a_tuner() -> None:
    """The tuner chooses by speed: what some of them do wrong is a warning, what all of them do wrong an error."""
    body = kernel(tiles("N"), "T.copy(A[cid * 16, 0], x)")

    def severities(*sizes: int) -> list[str | None]:
        configs = ", ".join(f"dict(N={size})" for size in sizes)
        text = source(body, launch=ONE, args="N").replace(
            "@tilelang.jit", f"@tilelang.autotune(configs=[{configs}])\n@tilelang.jit"
        )
        return [f.severity for f in findings(text) if f.code == "TL700"]

    assert severities(16, 24) == []
    assert severities(16, 20) == ["warning"]
    assert severities(12, 20) == [None]


@pytest.mark.parametrize(("end", "found"), [(8, []), (30, ["warning"]), (40, []), (64, [])])
def test_a_load_fills_its_last_block(end: int, found: list[str]) -> None:
    body = f'v = T.alloc_ub((64,), "float32")\nT.copy(A[cid, 0:{end}], v[0:{end}])'
    assert [f.severity for f in findings(source(body, launch=ONE)) if f.code == "TL700"] == found
    store = f'v = T.alloc_ub((64,), "float32")\nT.copy(v[0:{end}], O[cid, 0:{end}])'
    assert errors(store, launch=ONE) == []


@pytest.mark.parametrize(("columns", "found"), [(63, ["TL700"]), (64, [])])
def test_pto_takes_a_parallel_loop_in_rows_of_whole_blocks(columns: int, found: list[str]) -> None:
    """Of 8 rows of 63 float32 the lowered pto source subtracts 7 of 64 (executed: the last row is wrong)."""
    body = kernel(tiles(columns), f"for i, j in T.Parallel(16, {columns}):\n    y[i, j] = x[i, j] - y[i, j]")
    assert errors(body, launch=ONE) == []
    assert sorted(set(errors(body, launch=ONE, jit="out_idx=[1], target='pto'"))) == found


@pytest.mark.parametrize(("columns", "found"), [(8, ["TL700"]), (24, ["TL700"]), (16, []), (64, [])])
def test_pto_takes_a_conversion_in_rows_of_whole_blocks(columns: int, found: list[str]) -> None:
    """Of 32 rows of 24 the lowered pto source loses the last 8 of float16 (executed); ascendc takes one flat count."""
    body = f'x = T.alloc_ub((16, {columns}), "float32")\ny = T.alloc_ub((16, {columns}), "float16")\nT.copy(x, y)'
    assert errors(body, launch=ONE) == []
    assert sorted(set(errors(body, launch=ONE, jit="out_idx=[1], target='pto'"))) == found
