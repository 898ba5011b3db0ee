"""Rows at loaded places: token tables, embeddings, caches."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from tests.triton.test_spellings import outputs
from tests.triton.test_translation import HEAD, refusals
from tl2npu.options import Options
from tl2npu.triton.migrate import to_tilelang
from tl2npu.verify.command import verify_files
from tl2npu.verify.settings import Settings

PLACES = "    at = tl.load(at_ptr + r, mask=r < n, other=0)\n"
STORE = "    tl.store(y_ptr + r[:, None] * C + c[None, :], x, mask=(r < n)[:, None])\n"


def gathered(body: str, kind: str = "torch.int32") -> str:
    """21 places in 40 rows of 64 columns; ``w`` has a number for each of the rows."""
    return (
        f"{HEAD}@triton.jit\ndef k(x_ptr, w_ptr, at_ptr, y_ptr, n, C: tl.constexpr, B: tl.constexpr):\n"
        f"    pid = tl.program_id(0)\n    r = pid * B + tl.arange(0, B)\n    c = tl.arange(0, C)\n{body}\n\n"
        "def f(x, w, at):\n    rows, cols = x.shape\n    n = at.shape[0]\n"
        "    y = torch.zeros(n, cols)\n    k[(triton.cdiv(n, 8),)](x, w, at, y, n, C=cols, B=8)\n    return y\n\n\n"
        f"f(torch.randn(40, 64), torch.randn(40), torch.randint(0, 21, (21,), dtype={kind}))\n"
    )


ROWS = "    x = tl.load(x_ptr + at[:, None] * C + c[None, :], mask=(r < n)[:, None], other=0.0)\n"
TEXTS = {
    "rows": gathered(PLACES + ROWS + STORE),
    "wide places": gathered(PLACES + ROWS + STORE, "torch.int64"),
    "under a name": gathered(
        PLACES + "    there = at[:, None] * C + c[None, :]\n"
        "    x = tl.load(x_ptr + there, mask=(r < n)[:, None], other=0.0)\n" + STORE
    ),
    "no mask of its own": gathered(PLACES + "    x = tl.load(x_ptr + at[:, None] * C + c[None, :])\n" + STORE),
    "minus one": gathered(
        "    at = tl.load(at_ptr + r, mask=r < n, other=40) - 1\n    at = tl.maximum(at, 0)\n" + ROWS + STORE
    ),
    "by the place itself": gathered(
        PLACES + "    near = (at >= 7) & (at < 31)\n"
        "    x = tl.load(x_ptr + (at - 7)[:, None] * C + c[None, :], mask=near[:, None], other=-2.0)\n" + STORE
    ),
    "transposed": gathered(
        PLACES + "    q = tl.load(x_ptr + (tl.arange(0, 16)[:, None]) * C + c[None, :])\n"
        "    t = tl.load(x_ptr + at[None, :] * C + c[:, None], mask=(r < n)[None, :], other=0.0)\n"
        "    s = tl.sum(tl.dot(q, t), axis=0)\n    x = c[None, :] * 0.0 + s[:, None]\n" + STORE
    ),
    "elements": gathered(
        PLACES + "    w = tl.load(w_ptr + at, mask=r < n, other=1.0)\n    x = c[None, :] * 1.0 + w[:, None]\n" + STORE
    ),
    "in turns": gathered(
        "    x = tl.zeros((B, C), dtype=tl.float32)\n    for t in range(0, n, B):\n        i = t + tl.arange(0, B)\n"
        "        at = tl.load(at_ptr + i, mask=i < n, other=0)\n"
        "        x += tl.load(x_ptr + at[:, None] * C + c[None, :], mask=(i < n)[:, None], other=0.0)\n" + STORE
    ),
    "by quotients": gathered(
        PLACES + "    x = tl.load(x_ptr + (at // 3 + at % 5 + (r - 9) // 2 + 8)[:, None] * C + c[None, :])\n" + STORE
    ),
    "columns by another name": gathered(
        PLACES + "    ok = (r < n)[:, None] & (c < D)[None, :]\n"
        "    x = tl.load(x_ptr + at[:, None] * D + c[None, :], mask=ok, other=0.0)\n"
        + STORE.replace("* C", "* D").replace("(r < n)[:, None]", "ok")
    )
    .replace("n, C: tl", "n, D, C: tl")
    .replace("n, C=cols", "n, D, C=64")
    .replace("f(x, w, at)", "f(x, w, at, D)")
    .replace("int32))", "int32), 64)"),
    "scattered": gathered(
        PLACES + "    x = c[None, :] * 1.0 + pid * 0\n"
        "    tl.store(y_ptr + at[:, None] * C + c[None, :], x, mask=(r < n)[:, None])\n"
    ),
}


@pytest.mark.parametrize("spelling", TEXTS)
def test_rows_are_moved_one_by_one(spelling: str) -> None:
    text = to_tilelang(TEXTS[spelling]).text
    assert refusals(TEXTS[spelling]) == []
    assert " = at_ptr[row" in text


def test_the_text_of_a_gather() -> None:
    assert (
        "            for row in T.serial(B):\n"
        "                if row + B * pid < n:\n"
        "                    at_1 = at_ptr[row + B * pid]\n"
        "                    T.copy(x_ptr[at_1, :], x[row, :])\n"
    ) in to_tilelang(TEXTS["rows"]).text


def test_one_row_that_a_mask_leaves_out() -> None:
    """Where the place is negative there is nothing to be read, not even for no use."""
    text = to_tilelang(
        gathered(
            "    at = tl.load(at_ptr + pid)\n    ok = (c < C) & (at >= 0)\n"
            "    x = tl.load(x_ptr + at * C + c, mask=ok, other=1.0)\n    tl.store(y_ptr + pid * C + c, x)"
        )
    ).text
    assert "            if at >= 0:\n                T.copy(x_ptr[at, :], x)\n" in text


@pytest.mark.skipif(find_spec("triton") is None, reason="no triton here")
@pytest.mark.parametrize("spelling", TEXTS)
def test_the_same_rows(spelling: str, tmp_path: Path) -> None:
    file = tmp_path / "k.py"
    file.write_text(TEXTS[spelling], encoding="utf-8")
    result = verify_files(file, None, Settings(), Options())
    assert [kernel.status for kernel in result.kernels] == ["verified"]


def test_quotients_round_to_zero() -> None:
    """Rows ``(i - 6) // 4`` of 8 on: NumPy cuts the decimals off where Python rounds down."""
    body = "    at = tl.load(at_ptr + r, mask=r < n, other=0)\n"
    body += (
        "    x = tl.load(x_ptr + ((at - 6) // 4 + (at - 6) % 4 + 8)[:, None] * C + c[None, :], mask=(r < n)[:, None])\n"
    )
    x, at = np.arange(40 * 64, dtype=np.float32).reshape(40, 64), np.arange(21, dtype=np.int32)
    rows = np.trunc((at - 6) / 4).astype(int) + np.fmod(at - 6, 4) + 8
    text = gathered(body + STORE)
    params = to_tilelang(text).text.split("def k(")[1].split(")")[0].split(", ")
    given = {"n": 21, "C": 64, "B": 8, "rows": 40, "cols": 64, "x_shape_0": 40, "at_shape_0": 21}
    for found in outputs(
        text, {"x_ptr": x, "at_ptr": at}, "k", tuple(given[param.partition("=")[0]] for param in params)
    ):
        np.testing.assert_array_equal(found["y_ptr"], x[rows])


def test_quotients_are_good_for_addresses_only() -> None:
    """No vector divides integers so; a mask of rows that is made of one is not read either."""
    value = PLACES + "    x = c[None, :] * 1.0 + ((at - 6) // 4)[:, None]\n"
    assert refusals(gathered(value + STORE)) == ["TL546"]
    place = PLACES + "    x = c[None, :] * 1.0 + ((r - 6) // 4)[:, None]\n"
    assert refusals(gathered(place + STORE)) == ["TL546"]


CARRIED = (
    "    at = tl.load(at_ptr + tl.arange(0, B))\n    x = tl.zeros((B, C), dtype=tl.float32)\n"
    "    for t in range(1, 3):\n        x += tl.load(x_ptr + at[:, None] * C + c[None, :])\n"
    "        at = tl.load(at_ptr + t * B + tl.arange(0, B))\n"
)
CHANGED = PLACES + ROWS + "    tl.store(at_ptr + r, at * 0, mask=r < n)\n"
ADDED = PLACES + "    tl.atomic_add(w_ptr + at, 1.0, mask=r < n)\n"
COMPUTED = "    at = tl.load(w_ptr + r).to(tl.int32)\n" + ROWS
STRIDED = PLACES + "    x = tl.load(x_ptr + at[:, None] * C + 2 * c[None, :] % C)\n"


@pytest.mark.parametrize("body", [CARRIED, CHANGED, ADDED, COMPUTED, STRIDED])
def test_places_that_are_not_there_any_more_are_refused(body: str) -> None:
    """Those of the turn before, those that the kernel changes, sums, floats, and rows that are not consecutive."""
    assert set(refusals(gathered(body + STORE))) & {"TL520", "TL523", "TL546"}


def test_a_place_whose_tile_is_made_of_itself_ends() -> None:
    """``place`` is loaded, then cut off where the mask ends, in one tile; nothing shows that ``w`` is a tensor."""
    body = (
        "    end = tl.load(ends + pid)\n    row = pid * B + tl.arange(0, B)\n"
        "    place = tl.load(places + row, mask=row < end, other=0)\n"
        "    tl.store(out + row, tl.load(w + place, mask=row < end, other=0.0), mask=row < end)\n"
    )
    text = (
        f"{HEAD}@triton.jit\ndef k(places, ends, w, out, B: tl.constexpr):\n    pid = tl.program_id(0)\n{body}\n\n"
        "def f(places, ends, w=None):\n    out = torch.empty(64)\n"
        "    k[(4,)](places, ends, w if w is not None else 0, out, B=16)\n    return out\n"
    )
    assert refusals(text) == ["TL512"]
