"""Sizes, counts and values of tile operators (TL741, TL786, TL789); each line was put to the compiler."""

from __future__ import annotations

import pytest

from tests.checks.support import PLAIN, errors, warnings

PARAMS = 'X: T.Tensor((64, 64), "float32"), I: T.Tensor((64, 64), "int32"), O: T.Tensor((64, 64), "float32")'
TILES = """
x = T.alloc_ub((64, 64), "float32")
y = T.alloc_ub((64,), "float32")
w = T.alloc_ub((32, 64), "float32")
u = T.alloc_ub((64, 32), "float32")
n = T.alloc_ub((64, 64), "int32")
k = T.alloc_ub((64, 64), "int16")
h = T.alloc_ub((4096,), "float16")
m = T.alloc_ub((512,), "uint8")
"""


def found(body: str, of: str = "errors", args: str = "") -> list[str]:
    """The errors, or warnings, of a kernel of vectors."""
    read = errors if of == "errors" else warnings
    keys = ("AUTO_SYNC", "MEMORY_PLANNING")
    text = f"{TILES}\n{body}\nT.copy(x, O[0, 0])"
    return read(text, launch=PLAIN, keys=keys, params=PARAMS, jit="out_idx=[2]", args=args)


@pytest.mark.parametrize(
    ("body", "codes"),
    [
        ("T.tile.add(x, w, w)", ["TL741"]),
        ("T.tile.add(w, x, x)", ["TL741"]),
        ("T.tile.add(x, x, w)", ["TL741"]),  # accepted, and reads behind `w`
        ("T.tile.add(x, y, y)", ["TL741"]),
        ("T.tile.exp(x, w)", ["TL741"]),
        ("T.tile.exp(x, x[0, :])", ["TL741"]),
        ("T.tile.mul(x, w, 2.0)", ["TL741"]),
        ("T.tile.axpy(x, w, 2.0)", ["TL741"]),
        ("T.tile.mul_add_dst(x, w, w)", ["TL741"]),
        ('T.tile.select(x, m, w, w, "VSEL_TENSOR_TENSOR_MODE")', ["TL741"]),
        ('T.tile.compare(m, x, w, "LT")', ["TL741"]),
        ("T.tile.sigmoid(x, w)", ["TL741"]),
        ("T.tile.add(w, u, u)", []),
        ("T.tile.add(x[0, :], y, y)", []),
        ("T.tile.add(w, w, x)", []),
        ("T.tile.mul(x, x, y[3])", []),
        ("T.tile.mul(x, x, 2.0)", []),
    ],
)
def test_sizes(body: str, codes: list[str]) -> None:
    assert found(body) == codes


def test_windows_of_operators_with_strides() -> None:
    tiles = 'v = T.alloc_ub((16, 128), "float32")\nr = T.alloc_ub((16, 8), "float32")\n'
    window = "v[:, 64:128]"
    assert found(f"{tiles}T.tile.row_expand_sub_experiment({window}, {window}, r)") == []
    assert found(f"{tiles}T.tile.max({window}, {window}, {window})") == ["TL744", "TL897"]


def test_sizes_of_calls() -> None:
    tile = 'v = T.alloc_ub((rows, 64), "float32")\n'
    assert found(tile + "T.tile.exp(x, v)", args="rows=64") == []
    assert found(tile + "T.tile.exp(x, v)", args="rows=32") == ["TL741"]
    assert found(tile + "T.tile.exp(x, v)", args="rows") == []


@pytest.mark.parametrize(
    ("body", "codes"),
    [
        ('d = T.alloc_ub((64,), "float16")\nT.tile.cast(d, x, "CAST_RINT", 4096)', ["TL789"]),
        ('T.tile.cast(h, x, "CAST_RINT", 4096)', []),
        ('T.tile.cast(h, x, "CAST_RINT", 64)', []),
        ('d = T.alloc_ub((16,), "uint8")\nT.tile.compare(d, x, x, "LT")', ["TL789"]),
        ('T.tile.compare(m, x, x, "LT")', []),
        ('d = T.alloc_ub((20,), "float32")\nT.tile.topk(d, y, 10, 64)', ["TL789"]),
        ('d = T.alloc_ub((24,), "float32")\nT.tile.topk(d, y, 10, 64)', []),
        ('d = T.alloc_ub((96,), "float32")\nT.tile.sort(d, y, 64)', ["TL789"]),
        ('d = T.alloc_ub((128,), "float32")\nT.tile.sort(d, y, 64)', []),
        ('d = T.alloc_ub((256,), "float32")\nT.tile.sort(d, y, 65)', ["TL789"]),  # of `y`
        ('d = T.alloc_ub((128,), "float16")\nT.tile.merge_sort(d, h[0:64], h[64:128])', ["TL710", "TL744"]),
    ],
)
def test_counts(body: str, codes: list[str]) -> None:
    assert found(body) == codes


@pytest.mark.parametrize(
    ("body", "codes"),
    [
        ("T.copy(X[0:64, :], w)", ["TL789"]),
        ("T.copy(X[cid * 32 : cid * 32 + 64, :], w)", ["TL789"]),
        ("T.copy(X[0:64, 0:64], u)", ["TL789"]),
        ("T.copy(w, O[0:64, :])", ["TL789"]),
        ("T.copy(X[0:32, :], w)", []),
        ("T.copy(X[0:32, :], x)", []),  # a part of the tile
        ("T.copy(x, O[0:32, :])", []),
        ("T.copy(X[0, :], w[3, :])", []),
        ("T.copy(X[0, 0], w)", []),
        ("T.copy(w, O[32:96, :])", []),  # the tensor ends
        ("if cid > 3:\n    T.copy(X[0:64, :], w)", []),
    ],
)
def test_copies_of_more_than_the_tile(body: str, codes: list[str]) -> None:
    assert found(body) == codes


def test_positions_of_halves() -> None:
    sort = 'd = T.alloc_ub((8192,), "float16")\nT.tile.sort(d, h, {})'
    assert found(sort.format(4096), "warnings") == ["TL786"]
    assert found(sort.format(2048), "warnings") == []
    assert found(sort.format(4096)) == []


@pytest.mark.parametrize(
    ("body", "codes"),
    [
        ('T.tile.fill(n, -T.infinity("float32"))', ["TL786"]),
        ('T.tile.fill(n, T.infinity("int32"))', ["TL786"]),
        ('T.tile.fill(x, T.infinity("int32"))', ["TL786"]),
        ('T.tile.fill(n, float("inf"))', ["TL786"]),
        ("T.tile.fill(n, 3000000000)", ["TL786"]),
        ("T.tile.fill(k, 40000)", ["TL786"]),
        ("T.tile.fill(n, 1e30)", ["TL786"]),
        ("T.tile.fill(m[0:256], T.infinity('float32'))", ["TL710", "TL744", "TL786"]),
        ('T.copy(I[0, 0], n, pad_value=-T.infinity("float32"))', ["TL786"]),
        ('for i, j in T.Parallel(64, 64):\n    n[i, j] = -T.infinity("int32")', ["TL786"]),
        ('T.tile.fill(x, -T.infinity("float32"))', []),
        ("T.tile.fill(n, -2147483648)", []),
        ("T.tile.fill(k, 30000)", []),
        ('T.tile.compare(m, x, -T.infinity("float32"), "EQ")', []),
        ("T.tile.fill(x, 1e30)", []),
    ],
)
def test_values(body: str, codes: list[str]) -> None:
    assert [code for code in found(body) if code != "TL737"] == codes


@pytest.mark.parametrize(
    ("body", "codes"),
    [
        ('d = T.alloc_ub((64, 64), "float64")\nT.tile.add(d, d, d)', ["TL710"]),
        ('d = T.alloc_ub((64, 64), "float64")\nT.copy(x, d)', ["TL710", "TL711"]),
        ('d = T.alloc_ub((64, 64), "float64")\nT.tile.fill(d, 1.0)', ["TL710"]),
        ('d = T.alloc_ub((4, 64), "float64")\nfor i, j in T.Parallel(4, 64):\n    d[i, j] = d[i, j] * 2.0', ["TL710"]),
        ('d = T.alloc_ub((64, 64), "double")\nT.tile.add(d, d, d)', ["TL710", "TL787"]),
    ],
)
def test_wide_floats(body: str, codes: list[str]) -> None:
    assert sorted(found(body)) == codes


@pytest.mark.parametrize(("dtype", "codes"), [("int64", ["TL710"]), ("int32", [])])
def test_a_vector_that_becomes_a_tile(dtype: str, codes: list[str]) -> None:
    """The generated ``Broadcast`` begins with ``Brcb``, which takes elements of 16 and of 32 bits."""
    tiles = f'e = T.alloc_ub((64,), "{dtype}")\nd = T.alloc_ub((64, 64), "{dtype}")\nT.copy(d[0, :], e)\n'
    assert found(tiles + "for i, j in T.Parallel(64, 64):\n    d[i, j] = e[i]") == codes
