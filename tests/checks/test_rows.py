"""The row split of ``threads=2`` (facts 1)."""

from __future__ import annotations

import pytest

from tests.checks.support import LOAD, ONE, PLAIN, SPLIT, STORE, TILES, errors, findings, kernel, source, warnings

BIAS = 'A: T.Tensor((256, 64), "float32"), O: T.Tensor((256, 64), "float32"), W: T.Tensor((64,), "float32")'


def split_only(body: str, **settings: object) -> list[str]:
    """The errors with ``threads=2``, after making sure that ``threads=1`` has none."""
    assert errors(body, launch=ONE, **settings) == []
    return errors(body, **settings)


def test_softmax_over_rows_is_right() -> None:
    body = kernel(
        TILES,
        """
        m = T.alloc_shared((32,), "float32")
        """,
        LOAD,
        """
        T.reduce_max(a, m, dim=-1)
        for i, j in T.Parallel(32, 64):
            b[i, j] = a[i, j] - m[i]
            b[i, j] = T.exp(b[i, j])
        for h in range(32):
            T.tile.mul(b[h, :], b[h, :], m[h])
        """,
        STORE,
    )
    assert errors(body) == []


@pytest.mark.parametrize(("rows", "found"), [(32, []), (3, ["TL820"]), (9, ["TL820"])])
def test_odd_rows_lose_the_last_one(rows: int, found: list[str]) -> None:
    body = f"""
    a = T.alloc_shared(({rows}, 64), "float32")
    T.copy(A[cid * {rows} : cid * {rows} + {rows}, :], a)
    T.tile.exp(a, a)
    T.copy(a, O[cid * {rows} : cid * {rows} + {rows}, :])
    """
    assert split_only(body) == found


@pytest.mark.parametrize(("call", "found"), [("factory(7)", ["TL820"]), ("factory(16)", []), ("factory(n)", [])])
def test_odd_rows_of_a_call_in_the_file(call: str, found: list[str]) -> None:
    body = """
    a = T.alloc_shared((bm, 64), "float32")
    T.copy(A[cid * bm, 0], a)
    T.tile.exp(a, a)
    T.copy(a, O[cid * bm, 0])
    """
    assert split_only(body, args="bm", tail=f"run = {call}") == found


def test_rows_from_the_body_of_the_factory() -> None:
    body = 'a = T.alloc_shared((rows, 64), "float32")\nT.tile.fill(a, 0.0)\n'
    factory = """
    if heads > 64:
        rows = 64
    else:
        rows = max(heads, 5)
    """
    assert errors(body, args="heads", factory=factory, tail="factory(heads=128)") == []
    assert errors(body, args="heads", factory=factory, tail="factory(3)") == ["TL820"]


def test_rows_known_at_run_time_only() -> None:
    body = 'a = T.alloc_shared((m, 64), "float32")\nT.tile.fill(a, 0.0)\n'
    assert "TL831" in errors(body, factory='m = T.symbolic("m")')
    assert errors(body, args="m") == []


@pytest.mark.parametrize(
    ("shape", "use", "found"),
    [
        ("(1, 64)", "T.copy(A[cid, 0:64], x)\nT.tile.exp(x, x)", ["TL821"]),
        ("(1, 64)", "for i, j in T.Parallel(1, 64):\n    x[i, j] = x[i, j] * 2.0", ["TL821"]),
        ("(1,)", "T.copy(A[cid, 0:1], x)\nT.tile.exp(x, x)", ["TL821"]),
        ("(1, 1)", "T.tile.fill(x, 0.0)", []),
        ("(1,)", "T.tile.fill(x, 0.0)\nx[0] = 1.0", []),
    ],
)
def test_buffers_of_one_row(shape: str, use: str, found: list[str]) -> None:
    body = kernel(f'x = T.alloc_ub({shape}, "float32")', use)
    assert split_only(body) == found


@pytest.mark.parametrize(("row", "everywhere"), [("0", True), ("cid", False)])
def test_a_row_that_all_blocks_load_stands_in_front_of_the_launch(row: str, everywhere: bool) -> None:
    body = kernel('x = T.alloc_ub((1, 64), "float32")', f"T.copy(A[{row}, 0], x)\nT.tile.exp(x, x)")
    text = source(body.replace("T.tile.exp(x, x)", ""), launch=SPLIT)
    (help,) = [found.help for found in findings(text) if found.code == "TL821"]
    assert ("`x = T.alloc_ub((64,), ...)` in front of `T.Kernel`" in help) == everywhere
    assert ("two rows" in help) != everywhere


def test_vector_along_the_columns() -> None:
    load = 'w = T.alloc_shared((64,), "float32")\nT.copy(W, w)\n'
    parallel = """
    for i, j in T.Parallel(32, 64):
        b[i, j] = a[i, j] + w[j]
    """
    assert split_only(kernel(TILES, load, LOAD, parallel, STORE), params=BIAS) == ["TL822"]
    nested = """
    for i in T.serial(32):
        for j in T.Parallel(64):
            b[i, j] = a[i, j] * w[j]
    """
    assert "TL822" in errors(kernel(TILES, load, LOAD, nested, STORE), params=BIAS)
    rows = """
    for i in range(32):
        T.tile.add(b[i, :], a[i, :], w)
    """
    assert split_only(kernel(TILES, load, LOAD, rows, STORE), params=BIAS) == ["TL822"]
    copied = """
    for i in range(32):
        T.copy(a[i, :], w)
    """
    assert "TL822" in errors(kernel(TILES, load, LOAD, copied), params=BIAS)


def test_a_vector_of_its_own_may_be_split_anywhere() -> None:
    body = """
    w = T.alloc_shared((64,), "float32")
    T.copy(W, w)
    T.tile.exp(w, w)
    for j in T.Parallel(64):
        w[j] = w[j] * 2.0
    T.copy(w, O[cid, 0:64])
    """
    assert errors(body, params=BIAS) == []


def test_more_axes_than_the_tensor() -> None:
    params = 'A: T.Tensor((64,), "float32"), O: T.Tensor((256, 64), "float32")'
    body = 'x = T.alloc_shared((32, 2), "float32")\nT.copy(A, x)\n'
    assert "TL823" in errors(body, params=params)


BSHD = 'A: T.Tensor((2, 256, 4, 64), "float32"), O: T.Tensor((256, 64), "float32")'


@pytest.mark.parametrize(
    ("place", "found"),
    [
        ("A[0, cid * 32 : cid * 32 + 32, 3, :]", ["TL824"]),
        ("A[0, cid * 32 : cid * 32 + 32, 3, 0:64]", ["TL824"]),
        ("A[1, 3, 0, 0]", []),
    ],
)
def test_unit_axis_between_rows_and_columns(place: str, found: list[str]) -> None:
    body = kernel(TILES, f"T.copy({place}, a)", "T.tile.exp(b, a)", STORE)
    assert split_only(body, params=BSHD) == found


def test_rows_one_by_one_through_a_unit_axis() -> None:
    body = kernel(TILES, "for i in range(32):\n    T.copy(A[0, cid * 32 + i, 3, :], a[i, :])")
    assert split_only(body, params=BSHD) == ["TL824"]
    body = kernel(TILES, "for i in range(32):\n    T.copy(A[0, 5, i, :], a[i, :])")
    assert split_only(body, params=BSHD) == []


def test_one_dimensional_row_of_a_three_axis_tensor() -> None:
    params = 'L: T.Tensor((2, 256, 4), "float32"), O: T.Tensor((256, 64), "float32")'
    body = 's = T.alloc_shared((32,), "float32")\nT.copy(L[0, cid * 32 : cid * 32 + 32, 3], s)\nT.tile.exp(s, s)'
    assert sorted(errors(body, params=params)) == ["TL741", "TL824"]  # a column of the tensor is no row of a tile
    assert errors(body, launch=ONE, params=params) == ["TL741"]


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("T.copy(A[cid * 16 : cid * 16 + 16, :], a[0:16, :])", ["TL825"]),
        ("T.copy(A[cid * 16 : cid * 16 + 16, :], a)", ["TL825"]),
        ("T.copy(a[0:16, :], b[16:32, :])", ["TL825"]),
        ("T.copy(a[:, 0:32], c)", []),
        ("T.copy(a[0:32, :], b)", []),
        ("for i in T.serial(32):\n    T.copy(A[cid * 32 + i, :], a[i, :])", []),
        ("for i in T.serial(32):\n    T.copy(A[cid * 64 + 2 * i, :], a[i, :])", ["TL826"]),
    ],
)
def test_parts_of_the_rows(statement: str, found: list[str]) -> None:
    body = kernel(TILES, 'c = T.alloc_shared((32, 32), "float32")', statement)
    assert split_only(body) == found


@pytest.mark.parametrize(
    ("statement", "found"),
    [("T.copy(a, O[cid * 32 : cid * 32 + T.min(32, n), :])", "TL825"),
     ("for i in T.serial(T.min(n, 32)):\n    T.tile.exp(b[i, :], a[i, :])", "TL826")],
)  # fmt: skip
@pytest.mark.parametrize("call", ["factory(32)", "factory(24)"])
def test_a_number_of_rows_that_other_calls_make_smaller(statement: str, found: str, call: str) -> None:
    """All 32 rows in one of the calls: what a migration splits has to be right for others too."""
    assert split_only(kernel(TILES, statement), args="n", tail=call) == [found]


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("for i in range(16):\n    T.tile.exp(a[2 * i, :], b[i, :])", ["TL826"]),
        ("for i in range(1, 32):\n    T.tile.add(a[i, :], a[i - 1, :], b[i, :])", ["TL826", "TL827"]),
        ("for i in range(16):\n    T.tile.exp(a[i, :], b[i, :])", ["TL826"]),
        ("T.tile.exp(a[0, :], b[31, :])", ["TL826"]),
        ("for i, j in T.Parallel(32, 64):\n    b[i, j] = a[i, j] * s[0]", ["TL826"]),
        ("for i, j in T.Parallel(16, 64):\n    b[i, j] = a[i, j] + b[i, j]", ["TL826"]),
        ("for i in T.serial(8, 16):\n    T.tile.exp(a[i, :], b[i, :])", ["TL827"]),
        ("for i in T.serial(32):\n    T.tile.exp(a[i, :], b[i, :])", []),
    ],
)
def test_row_numbers(statement: str, found: list[str]) -> None:
    body = kernel(TILES, 's = T.alloc_shared((32,), "float32")\nT.tile.fill(s, 1.0)', statement)
    assert sorted(split_only(body)) == found


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("for i, j in T.Parallel(32, 64):\n    if i >= j:\n        b[i, j] = a[i, j]", ["TL828"]),
        ("for i, j in T.Parallel(32, 64):\n    if j >= 5:\n        b[i, j] = a[i, j]", []),
        ("for i, j in T.Parallel(32, 64):\n    b[i, j] = a[i, j] * i", ["TL828"]),
        ("for i in T.serial(32):\n    q = cid * 32 + i\n    T.tile.add(b[i, :], a[i, :], q)", ["TL828"]),
        ("for i in T.serial(32):\n    T.tile.fill(b[i, :], G[i])", ["TL828"]),
        ("for i in T.serial(32):\n    T.copy(A[cid * 32 + i, :], row)\n    T.tile.exp(b[i, :], a[i, :])", ["TL828"]),
        ("for i in T.serial(32):\n    T.tile.mul(b[i, :], a[i, :], s[i])", []),
        ("for i in T.serial(32):\n    x = s[i]\n    T.tile.mul(b[i, :], a[i, :], x)", []),
        ("for i in T.serial(32):\n    T.printf('%d', i)\n    T.tile.exp(b[i, :], a[i, :])", []),
    ],
)
def test_row_number_as_a_value(statement: str, found: list[str]) -> None:
    params = 'A: T.Tensor((256, 64), "float32"), O: T.Tensor((256, 64), "float32"), G: T.Tensor((64,), "float32")'
    extra = 's = T.alloc_ub((32,), "float32")\nrow = T.alloc_ub((64,), "float32")\nT.tile.fill(s, 1.0)'
    assert split_only(kernel(TILES, extra, LOAD, statement), params=params) == found


def test_row_number_as_a_value_through_a_macro() -> None:
    factory = """
    @T.macro
    def scale(dst, src, n):
        for i, j in T.Parallel(32, 64):
            dst[i, j] = src[i, j] * n[i]
    """
    body = kernel(TILES, 's = T.alloc_shared((32,), "float32")\nT.tile.fill(s, 1.0)', LOAD, "scale(b, a, s)", STORE)
    assert errors(body, factory=factory) == []
    assert errors(body, factory=factory.replace("n[i]", "i")) == ["TL828"]


def test_cube_statement_in_a_halved_loop() -> None:
    params = 'A: T.Tensor((256, 64), "float16"), B: T.Tensor((256, 64), "float16"), O: T.Tensor((256, 64), "float32")'
    allocs = """
    x = T.alloc_shared((32, 64), "float32")
    l = T.alloc_shared((32, 64), "float16")
    r = T.alloc_shared((64, 64), "float16")
    c = T.alloc_fragment((32, 64), "float32")
    T.copy(B[0, 0], r)
    """
    inside = """
    for i in T.serial(32):
        T.copy(A[cid * 32, 0], l)
        T.gemm_v0(l, r, c, init=True)
        T.tile.fill(x[i, :], 0.0)
    """
    before = """
    T.copy(A[cid * 32, 0], l)
    T.gemm_v0(l, r, c, init=True)
    for i in T.serial(32):
        T.tile.fill(x[i, :], 0.0)
    """
    assert split_only(kernel(allocs, inside), params=params, jit="out_idx=[2]") == ["TL829"]
    assert split_only(kernel(allocs, before), params=params, jit="out_idx=[2]") == []


@pytest.mark.parametrize("rows", [2, 4, 8, 16])
def test_short_vectors(rows: int) -> None:
    """Every tile begins a block of 32 bytes, however short it is (ascend_memory_planning.cc: AlignUp)."""
    body = f's = T.alloc_shared(({rows},), "float32")\nT.tile.fill(s, 1.0)\nT.tile.exp(s, s)'
    assert split_only(body) == []


def test_copies_of_short_vectors() -> None:
    """Between tiles whole blocks are moved: 8 float32 are one, half of them none."""
    body = """s = T.alloc_shared((8,), "float32")
t = T.alloc_shared((8,), "float32")
T.tile.fill(s, 1.0)
T.copy(s, t)
T.tile.exp(t, t)"""
    assert split_only(body) == ["TL700"]
    assert split_only(body.replace("8", "16")) == []


def test_rows_split_by_hand_are_not_the_business_of_these_checks() -> None:
    body = kernel("""
        w = T.alloc_shared((1, 64), "float32")
        s = T.alloc_shared((15,), "float32")
        T.copy(A[cid * 30 + vid * 15, 0:15], s)
        T.copy(A[cid, 0:64], w)
        T.tile.exp(s, s)
        """)
    assert errors(body, launch=PLAIN) == []


EVEN_OR_ONE = "1 if bm % 2 else 2"
HALF = """
a = T.alloc_shared((bm, n), "float32")
T.copy(A[cid * bm, 0], a)
T.tile.exp(a, a)
T.copy(a, O[cid * bm, 0])
"""


@pytest.mark.parametrize(
    ("calls", "found"),
    [
        ("factory(7, 64)", []),
        ("factory(16, 64)", []),
        ("factory(b, 64)", []),
        ("factory(700, 64)", []),  # 89,600 bytes of UB for each vector core
        ("factory(701, 64)", []),  # 179,456 bytes, one core
        ("factory(800, 64); r = factory(701, 64)", []),
        ("factory(801, 64)", ["TL801"]),  # 205,056 bytes: more than one core has
        ("factory(1600, 64)", ["TL801"]),  # 204,800 bytes for each
    ],
)
def test_one_core_or_two_by_the_rows(calls: str, found: list[str]) -> None:
    """Each call is judged with the threads that it gets: a UB has 192 KB, and half of a tile needs half of it."""
    launch = f"T.Kernel(8, threads={EVEN_OR_ONE}, is_npu=True) as (cid)"
    settings = {"launch": launch, "args": "bm, n", "tail": f"run = {calls}"}
    assert errors(HALF, **settings) == []
    assert [code for code in warnings(HALF, **settings) if code == "TL801"] == found


def test_what_is_wrong_on_two_cores_is_so_if_rows_may_be_even() -> None:
    body = """
    a = T.alloc_shared((bm, 64), "float32")
    T.copy(A[cid * bm, 0], a)
    for i, j in T.Parallel(bm, 64):
        a[i, j] = a[i, j] * T.float32(i)
    T.copy(a, O[cid * bm, 0])
    """
    for threads, found in ((EVEN_OR_ONE, ["TL828"]), ("2", ["TL828"]), ("1", [])):
        launch = f"T.Kernel(8, threads={threads}, is_npu=True) as (cid)"
        assert errors(body, launch=launch, args="bm", tail="run = factory(b)") == found


@pytest.mark.parametrize("threads", ["2 if bm % 2 else 1", "1 if bm % 3 else 2", "1 if bm % 2 and bm else 2"])
def test_other_choices_of_threads_are_not_known(threads: str) -> None:
    body = HALF.replace("n)", "64)")
    launch = f"T.Kernel(8, threads={threads}, is_npu=True) as (cid)"
    assert errors(body, launch=launch, args="bm", tail="run = factory(7)") == []
