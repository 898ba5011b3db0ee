"""Products (facts 4), padded rows (g8_row), column slices (facts 1), dropped names."""

from __future__ import annotations

import pytest

from tests.checks.support import LOAD, ONE, STORE, TILES, errors, kernel, source, warnings
from tl2npu.migration import check_text
from tl2npu.options import Options

PARAMS = 'A: T.Tensor((512, 512), "float16"), B: T.Tensor((512, 512), "float16"), C: T.Tensor((512, 512), "float32")'
CUBE = "T.Kernel(8, is_npu=True) as (cid, _)"
PTO = "out_idx=[2], target='pto'"


def product(*parts: str, m: int = 32, n: int = 32, k: int = 64, acc: str = "float32", **settings: object) -> list[str]:
    return errors(_body(parts, m, n, k, acc), **{"params": PARAMS, "jit": "out_idx=[2]", "launch": CUBE, **settings})


def _body(parts: tuple[str, ...], m: int, n: int, k: int, acc: str = "float32") -> str:
    allocs = f"""
    l = T.alloc_shared(({m}, {k}), "float16")
    r = T.alloc_shared(({k}, {n}), "float16")
    c = T.alloc_fragment(({m}, {n}), "{acc}")
    T.copy(A[0, 0], l)
    T.copy(B[0, 0], r)
    """
    return kernel(allocs, *parts, "T.copy(c, C[0, 0])")


@pytest.mark.parametrize(
    ("statements", "found"),
    [
        ("T.gemm_v0(l, r, c, init=True)", []),
        ("T.gemm_v0(l, r, c)", ["TL898"]),
        ("T.gemm_v0(l, r, c, init=False)", ["TL898"]),
        ("for k in T.serial(4):\n    T.gemm_v0(l, r, c, init=(k == 0))", []),
        ("for k in T.serial(1, 4):\n    T.gemm_v0(l, r, c, init=(k == 0))", ["TL898"]),
        ("for k in T.serial(1, 4):\n    T.gemm_v0(l, r, c, init=(k == 1))", []),
        ("for k in T.serial(4):\n    T.gemm_v0(l, r, c)", ["TL898"]),
        ("T.gemm_v0(l, r, c, init=True)\nT.gemm_v0(l, r, c)", []),
        ("T.gemm_v0(l, r, c)\nT.gemm_v0(l, r, c, init=True)", ["TL898"]),
        ("if cid > 0:\n    T.gemm_v0(l, r, c)\nelse:\n    T.gemm_v0(l, r, c, init=True)", []),
        ("if cid > 0:\n    T.gemm_v0(l, r, c)\nelse:\n    T.gemm_v0(l, r, c)", ["TL898"]),
        ("for k in T.serial(4):\n    T.gemm_v0(l, r, c, init=T.if_then_else(k == 0, True, False))", []),
    ],
)
@pytest.mark.parametrize("operator", ["gemm_v0", "mma"])
def test_the_first_step_of_a_chain(operator: str, statements: str, found: list[str]) -> None:
    if operator == "mma":
        statements = statements.replace("gemm_v0(l, r,", "mma(l0, r0,")
        loads = 'l0 = T.alloc_L0A((32, 64), "float16")\nr0 = T.alloc_L0B((64, 32), "float16")\n'
        statements = f"{loads}T.copy(l, l0)\nT.copy(r, r0)\n{statements}"
    assert product(statements) == found


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("rows", [128, 256, 512])
def test_operands_by_hand(rows: int, swapped: bool) -> None:
    """L0A holds 65,536 bytes: 256 x 128 of float16. What lies in L0B is not the left operand."""
    sides = ("B", "A") if swapped else ("A", "B")
    body = f"""
    l0 = T.alloc_L0{sides[0]}(({rows}, 128), "float16")
    r0 = T.alloc_L0{sides[1]}((128, 32), "float16")
    T.copy(l, l0)
    T.copy(r, r0)
    T.mma(l0, r0, c, init=True)
    """
    found = product(body, m=rows, k=128)
    assert ("TL801" in found) == (rows > 256)
    assert ("TL894" in found) == swapped


GEMM = "T.gemm_v0(l, r, c, init=True)"
DEEP_PARAMS = PARAMS.replace("512, 512", "1024, 1024")


@pytest.mark.parametrize(
    ("k", "dtype", "wrong", "refused"),
    [
        (72, "float16", False, False),  # one slice of any depth: #1341 says that it is right
        (128, "float16", False, False),
        (192, "float16", False, False),
        (256, "float16", False, False),
        (200, "float16", True, False),  # the case of #1341
        (136, "bfloat16", True, False),
        (264, "float16", True, False),
        (264 + 16 * 8, "float16", True, False),
        (144, "int8", False, True),  # the last 16 of one-byte types: static_assert of #1723
        (160, "int8", False, False),
        (152, "int8", True, False),
    ],
)
def test_the_last_slice_of_k(k: int, dtype: str, wrong: bool, refused: bool) -> None:
    acc = "int32" if dtype == "int8" else "float32"
    params = DEEP_PARAMS.replace("float16", dtype).replace("float32", acc)
    body = _body((GEMM,), 32, 32, k, acc).replace("float16", dtype)
    june = errors(body, params=params, jit="out_idx=[2]", launch=CUBE)
    assert ("TL858" in june) == wrong
    new = Options(ascend_version="2026-09")
    assert ("TL858" in errors(body, params=params, jit="out_idx=[2]", launch=CUBE, options=new)) == refused
    assert "TL858" not in errors(body, params=params, jit=PTO, launch=CUBE)


def test_the_last_slice_of_k_where_the_caller_gives_it() -> None:
    body = kernel("l = T.alloc_shared((32, K), 'float16')\nr = T.alloc_shared((K, 32), 'float16')",
                  "c = T.alloc_fragment((32, 32), 'float32')\nT.copy(A[0, 0], l)\nT.copy(B[0, 0], r)", GEMM,
                  "T.copy(c, C[0, 0])")  # fmt: skip
    for depth, found in ((200, ["TL858"]), (208, [])):
        settings = {"params": DEEP_PARAMS, "jit": "out_idx=[2]", "launch": CUBE, "factory": f"K = {depth}"}
        assert errors(body, **settings) == found


def test_slices_of_k_that_are_given() -> None:
    new = Options(ascend_version="2026-09")
    body = _body(("T.gemm_v0(l, r, c, init=True, kL0Size=48)",), 32, 32, 80, "int32").replace("float16", "int8")
    params = DEEP_PARAMS.replace("float16", "int8").replace("float32", "int32")
    assert "TL858" not in errors(body, params=params, jit="out_idx=[2]", launch=CUBE, options=new)


def test_the_slices_of_pto() -> None:
    """#1387 takes the last slice of K from where it lies."""
    body = _body((GEMM,), 32, 32, 192)
    given = {"params": PARAMS, "jit": PTO, "launch": CUBE}
    assert errors(body, **given) == ["TL899"]
    assert errors(body, **given, options=Options(ascend_version="2026-09")) == []


@pytest.mark.parametrize(("n", "flip"), [(256, False), (512, False), (256, True)])
def test_many_columns_of_b(n: int, flip: bool) -> None:
    """B of 128 x N float16 in two slots is 512 N bytes, L0B has 64 KB; #1312 takes parts of 128, #1313 not for pto."""
    allocs = f"""
    l = T.alloc_shared((16, 256), "float16")
    r = T.alloc_shared({(n, 256) if flip else (256, n)}, "float16")
    c = T.alloc_fragment((16, {n}), "float32")
    T.copy(A[0, 0], l)
    T.copy(B[0, 0], r)
    T.gemm_v0(l, r, c, {"transpose_B=True, " if flip else ""}init=True)
    T.copy(c, C[0, 0])
    """
    given = {"params": DEEP_PARAMS, "launch": CUBE}
    assert errors(allocs, **given, jit="out_idx=[2]") == ["TL801"]
    new = Options(ascend_version="2026-09")
    assert errors(allocs, **given, jit="out_idx=[2]", options=new) == (["TL801"] if flip else [])


@pytest.mark.parametrize("sizes", [{"m": 8}, {"n": 24}, {"k": 40}])
def test_whole_fractals(sizes: dict[str, int]) -> None:
    assert product(GEMM, **sizes, jit=PTO) == ["TL899"]  # type: ignore[arg-type]
    assert product(GEMM, **sizes) == []  # type: ignore[arg-type]
    body = _body((GEMM,), **{"m": 32, "n": 32, "k": 64, **sizes})
    assert warnings(body, params=PARAMS, jit="out_idx=[2]", launch=CUBE) == ["TL899"]


@pytest.mark.parametrize(("k", "found"), [(64, []), (128, []), (192, ["TL899"]), (256, []), (320, ["TL899"])])
def test_k_tails_on_target_pto(k: int, found: list[str]) -> None:
    assert product(GEMM, k=k, jit=PTO) == found
    assert product(GEMM, k=k) == []


@pytest.mark.parametrize(
    ("dtype", "acc", "wrong"), [("int8", "int32", True), ("float32", "float32", True), ("float16", "float32", False)]
)
@pytest.mark.parametrize(
    ("layout", "fits"),
    [
        ("", False),
        ("transpose_A=True", False),
        ("transpose_B=True", True),
        ("transpose_A=True, transpose_B=True", False),
    ],
)
def test_slices_of_deep_products(dtype: str, acc: str, wrong: bool, layout: str, fits: bool) -> None:
    """Above 128 in K the slices begin where those of two-byte elements would, but with B alone transposed."""
    params = PARAMS.replace('"float16"', f'"{dtype}"').replace('"float32"', f'"{acc}"')
    for k in (128, 256):
        left = f"({k}, 32)" if "transpose_A" in layout else f"(32, {k})"
        right = f"(32, {k})" if "transpose_B" in layout else f"({k}, 32)"
        body = f"""
        l = T.alloc_shared({left}, "{dtype}")
        r = T.alloc_shared({right}, "{dtype}")
        c = T.alloc_fragment((32, 32), "{acc}")
        T.copy(A[0, 0], l)
        T.copy(B[0, 0], r)
        T.gemm_v0(l, r, c, {layout + ", " if layout else ""}init=True)
        T.copy(c, C[0, 0])
        """
        found = errors(body, params=params, jit="out_idx=[2]", launch=CUBE)
        assert found == (["TL857"] if wrong and not fits and k > 128 else [])
        assert errors(body, params=params, jit=PTO, launch=CUBE) == []


def test_float16_accumulators() -> None:
    assert product(GEMM, acc="float16", jit=PTO) == ["TL899"]
    assert product(GEMM, acc="float16") == ["TL899"]


def test_the_help_of_an_accumulator_names_its_type() -> None:
    acc = 'c = T.alloc_L0C((32, 32), "float16")'
    tiles = 'a = T.alloc_L1((32, 32), "float16")\nb = T.alloc_L1((32, 32), "float16")'
    text = source(kernel(tiles, acc, "T.gemm_v0(a, b, c, init=True)"), launch=ONE)
    found = [d.help for d in check_text(text, "k.py", Options()).diagnostics if d.code == "TL899"]
    assert found == ["allocate `c` as float32"]


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("T.copy(A[cid * 32, 0], a[:, 0:32])", ["TL892"]),
        ("T.copy(A[cid * 32 : cid * 32 + 32, 0:32], a[:, 32:64])", ["TL892"]),
        ("T.copy(a[:, 0:32], O[cid * 32, 0])", ["TL892"]),
        ("T.copy(A[cid * 32, 0], half)\nT.copy(half, a[:, 0:32])", []),
        ("T.copy(A[cid * 32 : cid * 32 + 32, 16:48], half)", []),
        ("T.copy(A[cid * 32 : cid * 32 + 32, :], a[:, 0:64])", []),
        ("T.copy(A[cid * 32, 0], a[0:16, :])", []),
        ("T.copy(A[cid, 0:32], a[5, 0:32])", []),
        ("T.copy(A[cid : cid + 1, 0:32], a[5:6, 0:32])", []),
    ],
)
def test_column_slices(statement: str, found: list[str]) -> None:
    body = kernel(TILES, 'half = T.alloc_ub((32, 32), "float32")', statement)
    assert errors(body, launch=ONE) == found
    stores = statement.startswith("T.copy(a[")
    assert errors(body, launch=ONE, jit="out_idx=[1], target='pto'") == ([] if stores else found)


@pytest.mark.parametrize(
    "statement",
    [
        "T.clear(a)",
        "T.call_extern('handle', 'f', 1)",
        "T.cumsum(a, b)",
        "T.atomic_add(O[cid, 0], a)",
        "T.reduce_absmax(a, s)",
        "for i in T.serial(32):\n    s[i] = T.exp2(s[i])",
        "for i in T.serial(32):\n    s[i] = T.exp(s[i])",
        "g = 1.0 + T.log(s[0])\nT.tile.add(a, a, g)",
    ],
)
def test_names_that_are_dropped(statement: str) -> None:
    extra = 's = T.alloc_ub((32,), "float32")\nT.tile.fill(s, 0.0)'
    found = errors(kernel(TILES, extra, LOAD, statement, STORE), launch=ONE)
    assert "TL897" in found


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("T.tile.mul(b[:16, :], a[:16, :], a[:16, :])", []),
        ("T.tile.mul(b[0:16, :], a[0:16, :], a[0:16, :])", ["TL744"]),
        ("T.tile.exp(b[:, :32], a[:, :32])", ["TL897"]),
        ("T.tile.exp(dst=b[0:32, :], src0=a)", []),
        ("T.tile.exp(b[0:32, :], a)", ["TL744"]),
        ("T.tile.exp(b[5, :], a[5, :])", []),
        ("T.tile.exp(b[:, 0], a[:, 0])", ["TL897"]),  # of the generated code: the first row, not the column
        ("t = T.alloc_ub((2, 32, 64), 'float32')\nT.tile.exp(t[1, :, :], t[0, :, :])", []),
        ("T.copy(a[0:16, :], b[0:16, :])", []),
    ],
)
def test_ranges_that_are_refused(statement: str, found: list[str]) -> None:
    assert errors(kernel(TILES, LOAD, statement, STORE), launch=ONE) == found


def test_operands_of_a_product_are_in_l1() -> None:
    body = _body((GEMM,), 32, 32, 64)
    settings = {"params": PARAMS, "jit": "out_idx=[2]", "launch": CUBE}
    assert errors(body, **settings) == []
    fragment = body.replace("l = T.alloc_shared", "l = T.alloc_fragment")
    assert "TL894" in errors(fragment, **settings)
    assert "TL894" in errors(body.replace("c = T.alloc_fragment", "c = T.alloc_shared"), **settings)


def test_names_that_are_dropped_inside_a_macro() -> None:
    factory = """
    @T.macro
    def clear_tile(t):
        T.clear(t)
    """
    assert "TL897" in errors(kernel(TILES, LOAD, "clear_tile(a)", STORE), launch=ONE, factory=factory)


@pytest.mark.parametrize(
    ("left", "right", "result", "options", "found"),
    [
        ((32, 64), (64, 32), (32, 32), "", []),
        ((32, 64), (32, 32), (32, 32), "", ["TL741"]),
        ((32, 64), (32, 64), (32, 32), ", transpose_B=True", []),
        ((32, 64), (64, 32), (32, 32), ", transpose_B=True", ["TL741"]),
        ((64, 32), (64, 48), (32, 48), ", transpose_A=True", []),
        ((32, 64), (64, 48), (32, 48), ", transpose_A=True", ["TL741"]),
        ((16, 64), (64, 32), (32, 32), "", ["TL741"]),
        ((32, 64), (64, 16), (32, 32), "", ["TL741"]),
    ],
)
def test_one_size_along_each_axis(
    left: tuple[int, int], right: tuple[int, int], result: tuple[int, int], options: str, found: list[str]
) -> None:
    body = kernel(
        f"""
        l = T.alloc_shared({left}, "float16")
        r = T.alloc_shared({right}, "float16")
        c = T.alloc_fragment({result}, "float32")
        T.copy(A[0, 0], l)
        T.copy(B[0, 0], r)
        T.gemm_v0(l, r, c, init=True{options})
        T.copy(c, C[0, 0])
        """
    )
    assert errors(body, params=PARAMS, jit="out_idx=[2]", launch=CUBE) == found


@pytest.mark.parametrize(
    ("args", "factory", "found"),
    [
        ("p, q", "", ["TL741"]),
        ("p", "q = p", []),
        ("p=64, q=64", "", []),
    ],
)
def test_sizes_of_k_with_two_names(args: str, factory: str, found: list[str]) -> None:
    """Nothing says that both are one: a warning. (A call, a default or an assignment does.)"""
    body = kernel(
        """
        l = T.alloc_shared((32, p), "float16")
        r = T.alloc_shared((q, 32), "float16")
        c = T.alloc_fragment((32, 32), "float32")
        T.copy(A[0, 0], l)
        T.copy(B[0, 0], r)
        T.gemm_v0(l, r, c, init=True)
        T.copy(c, C[0, 0])
        """
    )
    given = {"params": PARAMS, "jit": "out_idx=[2]", "launch": CUBE, "args": args, "factory": factory}
    assert [code for code in warnings(body, **given) if code == "TL741"] == found
    assert "TL741" not in errors(body, **given)


@pytest.mark.parametrize(
    ("copy", "found"),
    [
        ("T.copy(x, y)", []),
        ("T.copy(x, z)", ["TL741"]),
        ("T.copy(x, w)", ["TL741"]),
        ("T.copy(A, x)", ["TL741"]),
        ("T.copy(A[0, 0], x)", []),
        ("T.copy(A[0:32, 0:64], x)", []),
    ],
)
def test_whole_buffers_have_one_shape(copy: str, found: list[str]) -> None:
    allocs = """
    x = T.alloc_ub((32, 64), "float32")
    y = T.alloc_ub((32, 64), "float32")
    z = T.alloc_ub((64, 64), "float32")
    w = T.alloc_ub((64,), "float32")
    """
    assert [
        code for code in errors(kernel(allocs, LOAD.replace("a)", "x)"), copy), launch=ONE) if code == "TL741"
    ] == found


@pytest.mark.parametrize(
    ("part", "ascendc", "pto"),
    [
        ("c[0:16, :]", [], ["TL870"]),  # TileAcc<16, 32> (GMCopyCall), but <32, 32> for ascendc
        ("c[0:16, 0:16]", [], []),  # one column of fractals
        ("c[16:32, :]", ["TL870"], ["TL870"]),
        ("c[:, 16:32]", ["TL870"], ["TL870"]),
        ("c[0:rows, :]", [], []),  # an extent known at run time only: the shape of the tile
        ("c[0:half, :]", [], ["TL870"]),  # 16, of the call
        ("c[0:4, 0:16]", [], ["TL870"]),  # TileAcc<4, 16>: "Layout rows must be divisible by inner box rows"
        ("c[:, 0:8]", [], ["TL870"]),
    ],
)
def test_parts_of_a_product(part: str, ascendc: list[str], pto: list[str]) -> None:
    stored = f"rows = T.min(16, 512 - cid)\nT.copy({part}, C[0, 0])"
    call = {"args": "half", "tail": "factory(16)"}
    assert product(GEMM, stored, **call) == ascendc
    assert product(GEMM, stored, jit=PTO, **call) == pto


@pytest.mark.parametrize(
    ("load", "ascendc", "pto"),
    [
        ("T.copy(A[0:16, 0:64], l[0:16, :])\nT.copy(A[16:32, 0:64], l[16:32, :])", [], ["TL872"]),
        ("T.copy(A[0:32, 0:32], l[:, 0:32])", [], []),
        ("T.copy(A[0:32, 0:32], l[:, 8:40])", ["TL872"], ["TL872"]),
        ("T.copy(A[0:32, 0:8], l[:, 8:16])", [], []),  # inside of one block of 16 columns
        ("T.copy(A[0:32, 0:64], l)", [], []),
    ],
)
def test_parts_of_an_operand(load: str, ascendc: list[str], pto: list[str]) -> None:
    found = [code for code in product(load, GEMM) if code == "TL872"]
    assert found == ascendc
    assert [code for code in product(load, GEMM, jit=PTO) if code == "TL872"] == pto


@pytest.mark.parametrize(
    ("part", "found"),
    [("x", []), ("x[:, :]", []), ("x[3, :]", []), ("x[:16, :]", []), ("x[16:, :]", []), ("x[:16, :8]", ["TL892"]),
     ("x[3, :8]", []), ("x[0:16, :]", ["TL744"]), ("x[3, 0:16]", ["TL744"])],
)  # fmt: skip
def test_what_an_atomic_addition_reads_a_size_from(part: str, found: list[str]) -> None:
    """Lowered by the compiler at 95acbd7f: those with two bounds end in "Cannot deduce atomic_add extents"; ``:16, :8``
    becomes ``atomic_add_ub_to_gm<float, 8, 16>(.., x[0], ..)``, rows of 8 without a stride."""
    body = kernel('x = T.alloc_ub((32, 16), "float32")', "T.tile.fill(x, 1.0)", f"T.tile.atomic_add(C[0, 0], {part})")
    assert [c for c in errors(body, params=PARAMS, jit="out_idx=[2]", launch=ONE) if c in ("TL744", "TL892")] == found


@pytest.mark.parametrize(
    ("dtype", "flag", "settings", "found"),
    [
        ("float32", "", {}, ["TL794"]),
        ("float32", "transpose_A=True, ", {}, ["TL794"]),
        ("float32", "transpose_B=True, ", {}, []),
        ("float16", "", {}, []),
        ("float16", "transpose_A=True, ", {}, []),  # 1310: right on a 910B3
        ("float32", "", {"options": Options(device="A5")}, []),
        ("float32", "", {"jit": PTO}, []),
    ],
)
def test_wide_products_that_are_not_transposed(
    dtype: str, flag: str, settings: dict[str, object], found: list[str]
) -> None:
    body = _body((f"T.gemm_v0(l, r, c, {flag}init=True)",), 64, 64, 64).replace("float16", dtype)
    given = {"params": PARAMS.replace("float16", dtype), "jit": "out_idx=[2]", "launch": CUBE, **settings}
    assert [code for code in warnings(body, **given) if code == "TL794"] == found


@pytest.mark.parametrize(
    ("operands", "acc", "found"),
    [
        ("int8", "int32", []),
        ("bfloat16", "float32", []),
        ("int8", "float32", ["TL899"]),
        ("float16", "int32", ["TL899"]),
        ("uint8", "int32", ["TL710"]),
        ("int32", "int32", ["TL710"]),
    ],
)
@pytest.mark.parametrize("mma", [False, True])
def test_types_of_products(operands: str, acc: str, found: list[str], mma: bool) -> None:
    """``Mmad`` of A2 and A3: the compiler takes any types, and writes C++ that has no such function."""
    body = _body(("T.gemm_v0(l, r, c, init=True)",), 32, 32, 64, acc).replace('"float16"', f'"{operands}"')
    if mma:
        shapes = {"a": (32, 64), "b": (64, 32)}
        parts = [f'{t} = T.alloc_L0{t.upper()}({shape}, "{operands}")' for t, shape in shapes.items()]
        new = kernel(*parts, "T.copy(l, a)\nT.copy(r, b)\nT.mma(a, b, c, init=True)")
        body = body.replace("T.gemm_v0(l, r, c, init=True)", new)
    params = PARAMS.replace("float16", operands).replace("float32", acc)
    told = errors(body, params=params, jit="out_idx=[2]", launch=CUBE)
    assert [code for code in told if code in ("TL710", "TL899")] == found
