"""Small spellings that have one meaning; the new kernels run on the simulator, NumPy judges."""

from __future__ import annotations

import ast

import numpy as np
import pytest

from tests.passes.simulated import run
from tests.triton.test_translation import HEAD, refusals, vector
from tl2npu.options import Options
from tl2npu.simulator.lowering.lower import ACTUAL, IDEAL
from tl2npu.triton.migrate import to_tilelang
from tl2npu.triton.result import migrate_triton

RNG = np.random.default_rng(4)


def outputs(
    text: str, inputs: dict[str, np.ndarray], factory: str, args: tuple[object, ...]
) -> list[dict[str, np.ndarray]]:
    """What a migrated kernel leaves in its tensors, in both readings."""
    result = migrate_triton(text, "k.py", Options())
    assert {kernel.disposition for kernel in result.kernels} == {"migrated"}, result.diagnostics
    tree = ast.parse(result.new_text or "")
    kinds = (ast.Import, ast.ImportFrom, ast.FunctionDef)
    keeps = (isinstance(stmt, kinds) or ast.unparse(stmt).startswith("pass_configs") for stmt in tree.body)
    tree.body = [stmt for stmt, kept in zip(tree.body, keeps, strict=True) if kept]
    return [run(ast.unparse(tree), inputs, factory, args, reading) for reading in (IDEAL, ACTUAL)]


ROWS = f"""{HEAD}@triton.jit
def rows(x_ptr, y_ptr, N: tl.constexpr, ROWS: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = r[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + at)
    BODY
    tl.store(y_ptr + at, y)


x = torch.randn(64, 128)
y = torch.empty_like(x)
rows[(4,)](x, y, N=128, ROWS=16)
"""
TOTAL = "total = tl.sum(x, axis=1)"


@pytest.mark.parametrize(
    "body",
    [
        f"{TOTAL}[:, None]\n    y = x / total",
        f"{TOTAL}\n    column = total[:, None]\n    y = x / column",
        f"{TOTAL}[:, None]\n    half = total * 0.5\n    y = x / (half + half)",
        f"{TOTAL}[:, None]\n    y = x / total\n    total = total * 2.0",
        "total = tl.sum(x, axis=1, keep_dims=True)\n    y = x / total",
        f"{TOTAL}[:, None]\n    y = (x / total).to(x.type.element_ty)",
        f"{TOTAL}[:, None]\n    total = tl.where(total > 0.0, total, total)\n    y = x / total",
    ],
)
def test_a_column_under_a_name(body: str) -> None:
    x = RNG.uniform(0.5, 1.5, (64, 128)).astype(np.float32)
    for found in outputs(ROWS.replace("BODY", body), {"x_ptr": x}, "rows", (16,)):
        np.testing.assert_allclose(found["y_ptr"], x / x.sum(axis=1, keepdims=True), rtol=1e-5)


STRIDES = f"""{HEAD}@triton.jit
def doubled(x_ptr, y_ptr, M, N, xm, xn, ym, yn, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * xm + cols * xn, mask=cols < N)
    tl.store(y_ptr + row * ym + cols * yn, x * 2, mask=cols < N)


def halves(x, out):
    LAUNCH
"""


@pytest.mark.parametrize(
    ("launch", "codes"),
    [
        ("*x.stride(), *out.stride(), BLOCK=64", []),
        ("x.stride(0), x.stride(1), *out.stride(), BLOCK=64", []),
        ("*x.stride(), *out.stride(), 64", []),
        ("*x.stride(), *out.stride(), *more(), BLOCK=64", ["TL511"]),
        ("*x.stride(), yn=1, *out.stride(), BLOCK=64", ["TL508"]),  # one parameter is left: `out` has one axis
    ],
)
def test_all_strides_of_a_tensor(launch: str, codes: list[str]) -> None:
    text = STRIDES.replace("LAUNCH", f"doubled[(x.shape[0],)](x, out, x.shape[0], x.shape[1], {launch})")
    assert refusals(text) == codes
    if not codes:
        assert "assert out.dim() == 2" in to_tilelang(text).text


RANKS = f"""{HEAD}@triton.jit
def scaled(x_ptr, s_ptr, y_ptr, xb, xm, xn, sb, sm, yb, ym, yn, M, N: tl.constexpr, BLOCK: tl.constexpr):
    b, at = tl.program_id(1), tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at[:, None] < M
    x_at = x_ptr + b * xb + at[:, None] * xm + tl.arange(0, N)[None, :]
    near = b * sb
    scale = tl.load(s_ptr + near + at * sm, mask=at < M)
    y_ptr += b * yb
    tl.store(y_ptr + at[:, None] * ym + tl.arange(0, N)[None, :], tl.load(x_at, mask=inside) * scale[:, None], inside)


def scale(x, s, few):
    y = torch.empty_like(x)
    if few:
        config = {{"BLOCK": 8, "num_warps": 4}}
    else:
        config = {{"BLOCK": 16, "num_warps": 8}}
    grid = (triton.cdiv(x.shape[1], config["BLOCK"]), x.shape[0])
    scaled[grid](x, s, y, *x.stride(), *s.stride(), *y.stride(), x.shape[1], N=x.shape[2], **config)
"""


def test_strides_of_tensors_with_different_ranks() -> None:
    """8 parameters for three tensors: each gets those that the kernel multiplies into its addresses, of which it may
    leave out the last one. The tiles have the size that a dictionary of one of two branches gives."""
    made = to_tilelang(RANKS)
    assert [kernel.refused for kernel in made.kernels] == [None]
    for name, rank in (("x", 3), ("s", 2)):
        assert f"assert {name}.dim() == {rank}" in made.text
    assert "BLOCK=config['BLOCK']" in made.text
    x, s = RNG.standard_normal((3, 24, 32), np.float32), RNG.standard_normal((3, 24), np.float32)
    given = {"BLOCK": 8, "M": 24, "N": 32, "x_shape_0": 3, "s_shape_0": 3, "y_shape_0": 3}
    params = made.text.split("def scaled(")[1].split(")")[0].split(", ")
    for found in outputs(RANKS, {"x_ptr": x, "s_ptr": s}, "scaled", tuple(given[name] for name in params)):
        np.testing.assert_allclose(found["y_ptr"], x * s[:, :, None], rtol=1e-6)


BESIDE = RANKS.replace("x_ptr, s_ptr, y_ptr, xb, xm, xn, sb, sm, yb", "x_ptr, xb, xm, xn, s_ptr, sb, sm, y_ptr, yb")
BESIDE = BESIDE.replace("x, s, y, *x.stride(), *s.stride(), *y.", "x, *x.stride(), s, *s.stride(), y, *y.")
OPTIONAL = RANKS.replace("*s.stride()", "*(s.stride() if few else (0, 0))").replace("b * xb + at[:, None] * xm", "at")


def test_strides_beside_their_tensors_and_those_that_a_condition_gives() -> None:
    """What stands first says which tensor the next strides belong to; a condition says how many they are."""
    given, beside = to_tilelang(RANKS).text, to_tilelang(BESIDE).text
    assert [line for line in given.splitlines() if "dim()" in line] == [
        line for line in beside.splitlines() if "dim()" in line
    ]
    assert "assert s.dim() == 2" in to_tilelang(OPTIONAL).text


def test_strides_that_may_be_shared_in_several_ways() -> None:
    """The kernel uses none of the 5 strides in an address of its own: nothing shows which tensor has 3 axes."""
    text = RANKS.replace("b * xb + at[:, None] * xm", "at[:, None] * N").replace("near + at * sm", "at")
    assert refusals(text.replace("near = b * sb", "pass")) == ["TL511"]


MATMUL = f"""{HEAD}@triton.jit
def mm(a_ptr, b_ptr, c_ptr, K, am, ak, bk, bn, cm, cn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    a_at = a_ptr + rm[:, None] * am + rk[None, :] * ak
    b_at = b_ptr + rk[:, None] * bk + rn[None, :] * bn
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K // BK):
        acc = tl.dot(tl.load(a_at), tl.load(b_at), acc)
        a_at += BK * ak
        b_at += BK * bk
    tl.store(c_ptr + rm[:, None] * cm + rn[None, :] * cn, acc)


def product(a, b):
    M, K = a.shape
    OTHER, N = b.shape
    c = torch.empty(M, N, dtype=torch.float32)
    mm[(M // 64, N // 32)](
        a, b, c, K, a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0), c.stride(1), BM=64, BN=32, BK=32
    )
    return c


product(torch.randn(128, 96, dtype=torch.float16), torch.randn(96, 64, dtype=torch.float16))
"""


@pytest.mark.parametrize("other", ["K", "_"])
def test_one_name_for_two_extents(other: str) -> None:
    text = MATMUL.replace("OTHER", other)
    new = to_tilelang(text).text
    assert refusals(text) == []
    assert ("assert K == a.stride(0)" in new) == (other == "K")


SWITCH = (
    vector(
        'x = tl.load(x_ptr + i, mask=i < n)\nif ACT == "relu":\n    x = tl.maximum(x, 0.0)\nelif ACT == "double":\n'
        "    x = x * 2.0\ntl.store(y_ptr + i, x, mask=i < n)",
        "k[(triton.cdiv(n, 128),)](x, y, n, ACT=act, BLOCK=128)",
    )
    .replace("n, BLOCK: tl", "n, ACT: tl.constexpr, BLOCK: tl")
    .replace("def f(x)", "def f(x, act)")
)
CALLS = '\nf(torch.randn(300), "relu")\nf(torch.randn(300), "double")\nf(torch.randn(300), "")\n'


def test_a_factory_for_each_string_that_a_kernel_asks_for() -> None:
    text = SWITCH.rpartition("\n\nf(")[0] + CALLS
    x = RNG.standard_normal(300).astype(np.float32)
    new = to_tilelang(text).text
    assert "if act == 'relu':" in new
    assert "elif act == 'double':" in new or "if act == 'double':" in new
    for factory, wanted in (("k", np.maximum(x, 0)), ("k_2", x * 2), ("k_3", x)):
        for found in outputs(text, {"x_ptr": x}, factory, (300,)):
            np.testing.assert_array_equal(found["y_ptr"], wanted)


@pytest.mark.parametrize("more", ["if ACT:\n    x = x + 1.0\n", "x = x + len(ACT)\n"])
def test_a_string_that_is_used_otherwise_is_not_chosen(more: str) -> None:
    text = SWITCH.replace("    tl.store", "".join(f"    {line}\n" for line in more.splitlines()) + "    tl.store")
    assert refusals(text.rpartition("\n\nf(")[0] + CALLS) != []


VERSION = f"""{HEAD}if tuple(int(p) for p in triton.__version__.split(".")[:2]) >= (3, 0):
    from triton.language.extra import libdevice

    FIRST
else:
    SECOND


@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, root(tl.load(x_ptr + i, mask=i < n)), mask=i < n)


x = torch.randn(1000)
y = torch.empty_like(x)
k[(4,)](x, y, 1000, BLOCK=256)
"""


def test_a_function_by_the_version_of_triton() -> None:
    text = VERSION.replace("FIRST", "root = libdevice.sqrt").replace("SECOND", "root = tl.math.sqrt")
    x = RNG.uniform(0, 9, 1000).astype(np.float32)
    for found in outputs(text, {"x_ptr": x}, "k", ()):
        np.testing.assert_allclose(found["y_ptr"], np.sqrt(x), rtol=1e-6)
    assert "triton" not in to_tilelang(text).text


def test_two_functions_by_the_version_are_two() -> None:
    text = VERSION.replace("FIRST", "root = libdevice.sqrt").replace("SECOND", "root = tl.math.exp")
    assert refusals(text) == ["TL545"]


def test_methods_of_a_tile() -> None:
    """``t.trans()`` is ``tl.trans(t)``, and so on."""
    turned = MATMUL.replace("OTHER", "_").replace(
        "tl.load(a_at), tl.load(b_at)", "tl.load(a_at), tl.load(b_at).trans().trans()"
    )
    assert refusals(turned) == []
    x = RNG.uniform(0.5, 1.5, (64, 128)).astype(np.float32)
    body = f"{TOTAL}.expand_dims(1)\n    y = x / total.cast(tl.float32).broadcast_to([ROWS, N])"
    for found in outputs(ROWS.replace("BODY", body), {"x_ptr": x}, "rows", (16,)):
        np.testing.assert_allclose(found["y_ptr"], x / x.sum(axis=1, keepdims=True), rtol=1e-5)


def test_swizzled_blocks() -> None:
    """``tl.swizzle2d``: blocks go down the columns of a group of rows; of the last group there may be fewer."""
    text = f"""{HEAD}@triton.jit
def numbers(y_ptr, M, N, BLOCK: tl.constexpr, GROUP: tl.constexpr):
    number = tl.program_id(0)
    rows, cols = tl.cdiv(M, BLOCK), tl.cdiv(N, BLOCK)
    row, col = tl.swizzle2d(number // cols, number % cols, rows, cols, GROUP)
    at = tl.arange(0, BLOCK)
    tile = tl.full((BLOCK, BLOCK), 1, tl.float32) * number
    mask = (row * BLOCK + at < M)[:, None] & (col * BLOCK + at < N)[None, :]
    tl.store(y_ptr + (row * BLOCK + at)[:, None] * N + (col * BLOCK + at)[None, :], tile, mask=mask)


def run(y):
    M, N = y.shape
    grid = lambda meta: (triton.cdiv(M, meta["BLOCK"]) * triton.cdiv(N, meta["BLOCK"]),)
    numbers[grid](y, M, N, BLOCK=16, GROUP=2)


run(torch.zeros(80, 48))
"""
    groups = [range(2), range(2, 4), range(4, 5)]
    order = [(row, col) for rows in groups for col in range(3) for row in rows]
    expected = np.zeros((5, 3), np.float32)
    for number, place in enumerate(order):
        expected[place] = number
    for found in outputs(text, {"y_ptr": np.full((80, 48), -1, np.float32)}, "numbers", (80, 48, 16, 2)):
        assert np.array_equal(found["y_ptr"], np.kron(expected, np.ones((16, 16), np.float32)))


def test_keywords_of_triton_1() -> None:
    """``**meta`` is the constants that the kernel takes out of it; not where it does more with it."""
    plain = vector("x = tl.load(x_ptr + i, mask=i < n)\ntl.store(y_ptr + i, x * 2, mask=i < n)")
    head, old = "n, BLOCK: tl.constexpr):\n", "n, **meta):\n"
    assert head in plain
    same = to_tilelang(plain).text
    for first in ('    BLOCK = meta["BLOCK"]\n', "    block = meta['BLOCK']\n"):
        text = plain.replace(head, old + first)
        text = (
            text
            if "BLOCK = " in first
            else text.replace("pid * BLOCK + tl.arange(0, BLOCK)", "pid * block + tl.arange(0, block)")
        )
        assert to_tilelang(text).text == same
    assert (
        to_tilelang(
            plain.replace(head, old)
            .replace("0, BLOCK)", "0, meta['BLOCK'])")
            .replace("pid * BLOCK", "pid * meta['BLOCK']")
        ).text
        == same
    )
    for first in ("    BLOCK = meta.get('BLOCK')\n", "    BLOCK = 2 * meta['BLOCK']\n", "    BLOCK = meta[n]\n"):
        assert refusals(plain.replace(head, old + first)) == ["TL545"]
