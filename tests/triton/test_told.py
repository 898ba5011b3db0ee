"""What a migrated kernel may compute otherwise is told, or checked before the launch."""

from __future__ import annotations

import pytest

from tests.triton.test_translation import vector
from tl2npu.triton.migrate import to_tilelang

LOAD = "x = tl.load(x_ptr + i, mask=i < n, other=0.0)\n"
STORE = "\ntl.store(y_ptr + i, x, mask=i < n)"


def codes(body: str) -> list[str]:
    """The codes of the notes of a kernel with this body."""
    [kernel] = to_tilelang(vector(LOAD + body + STORE)).kernels
    assert kernel.refused is None, kernel.refused
    return [note.code for note in kernel.notes]


@pytest.mark.parametrize(
    "body", ["x = tl.maximum(x, 0.0)\nx = tl.minimum(x, 6.0)", "x = tl.clamp(x, 0.0, 6.0)", "x -= tl.max(x, axis=0)"]
)
def test_nan_in_data_that_has_an_extremum_is_told_once(body: str) -> None:
    assert codes(body).count("TL742") == 1


@pytest.mark.parametrize("body", ["x += tl.maximum(pid, 1)", "x += tl.max(tl.arange(0, BLOCK), axis=0)", "x *= 2.0"])
def test_numbers_have_no_nan(body: str) -> None:
    assert "TL742" not in codes(body)


@pytest.mark.parametrize(
    ("body", "checked"),
    [
        ("x += (i * n).to(tl.float32)", True),  # up to n * n
        ("x += (i * 100000).to(tl.float32)", True),
        ("x += (i.to(tl.int64) * n).to(tl.float32)", True),
        ("x += i.to(tl.float32)", False),  # below the size of a tensor
        ("x = tl.where(2 * i < n, x, 0.0)", False),
    ],
)
def test_integers_that_may_not_fit_are_checked(body: str, checked: bool) -> None:
    assert ("< 2**31" in (to_tilelang(vector(LOAD + body + STORE)).text or "")) == checked
