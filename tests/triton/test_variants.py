"""Launches that depend on conditions of the host code: one factory for each case, and the host code chooses."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.triton.test_translation import HEAD, refusals, vector
from tl2npu.options import Options
from tl2npu.triton.migrate import to_tilelang
from tl2npu.triton.result import migrate_triton
from tl2npu.verify.backends import verify
from tl2npu.verify.loading import Source
from tl2npu.verify.process import here
from tl2npu.verify.settings import Settings

if find_spec("triton") is not None:
    os.environ.setdefault("TRITON_INTERPRET", "1")  # before anything imports it

OPTIONAL = f"""{HEAD}@triton.jit
def k(x_ptr, b_ptr, y_ptr, n, BIASED: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    if BIASED:
        x += tl.load(b_ptr + i, mask=i < n)
    tl.store(y_ptr + i, x, mask=i < n)


def f(x, b=None):
    n = x.shape[0]
    y = torch.empty_like(x)
    k[(triton.cdiv(n, 128),)](x, b, y, n, BIASED=b is not None, BLOCK=128)
    return y


f(torch.randn(300), torch.randn(300))
"""
BOTH = f"{OPTIONAL}f(torch.randn(300))\n"
TYPED = f"""{HEAD}@triton.jit
def k(x_ptr, w_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n).to(tl.float32)
    tl.store(y_ptr + i, x * tl.load(w_ptr + i, mask=i < n), mask=i < n)


def f(x, w, bytes_in_a_block=256):
    n = x.shape[0]
    y = torch.empty_like(x)
    compiled = k[(triton.cdiv(n, 128),)](x, w, y, n, BLOCK=128)
    return y


def check(n, dtype):
    x, w = torch.randn(n, dtype=dtype), torch.randn(n, dtype=dtype)
    torch.testing.assert_close(f(x, w), x * w)


check(300, torch.float16)
check(200, torch.float32)
check(100, torch.float16)
"""
SWITCHED = f"""{HEAD}@triton.jit
def k(x_ptr, y_ptr, last_ptr, n, NEGATIVE: tl.constexpr, LAST: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    if NEGATIVE:
        sign = -1.0
    else:
        sign = 1.0
    tl.store(y_ptr + i, x * sign, mask=i < n)
    if LAST:
        tl.store(last_ptr + i, x, mask=i < n)


def f(x, negative, keep):
    n = x.shape[0]
    y = torch.empty_like(x)
    last = None
    if keep:
        last = torch.empty_like(x)
    k[(triton.cdiv(n, 128),)](x, y, last, n, NEGATIVE=not negative, LAST=last is not None, BLOCK=128)
    return y, last


for negative in (True, False):
    for keep in (True, False):
        y, last = f(torch.ones(300, device="cuda"), negative, keep)
"""


def test_tensor_that_calls_leave_out() -> None:
    assert "def k_2(" not in to_tilelang(OPTIONAL).text
    text = to_tilelang(BOTH).text
    assert '    if b is None:\n        assert x.is_contiguous() and y.is_contiguous(), "x, y must be contig' in text
    assert "        k_2(n=n, BLOCK=128)(x, b, y)" in text


@pytest.mark.parametrize("asked", ["if b is not None:", "if not b is None and n > 2:"])
def test_what_a_branch_knows_is_forgotten_behind_it(asked: str) -> None:
    """A host that checks an optional tensor still passes it, or not."""
    checked = BOTH.replace("    y = t", f"    {asked}\n        assert b.shape == x.shape\n    y = t")
    assert "def k_2(" in to_tilelang(checked).text
    left = BOTH.replace("    y = t", "    if b is None:\n        return None\n    y = t")
    assert "def k_2(" not in to_tilelang(left).text


def test_conditions_that_change_are_none() -> None:
    """A condition that is not the same at all times is one of what the launch passes."""
    more = to_tilelang(BOTH.replace("    n = x", "    b = b if b is None else b + 1\n    n = x")).text
    assert "    if b is None:\n        assert x.is" in more
    made = BOTH.replace("    n = x", "    if b is None:\n        b = torch.empty_like(x)\n    n = x")
    assert "def k_2(" not in to_tilelang(made).text
    taken = BOTH.replace("def f(x", "def k_2():\n    pass\n\n\ndef f(x")
    assert "def k_3(" in to_tilelang(taken).text


@pytest.mark.parametrize("old", [BOTH, SWITCHED, TYPED], ids=["optional", "switched", "typed"])
def test_every_case_is_verified(tmp_path: Path, old: str) -> None:
    pytest.importorskip("triton")
    pytest.importorskip("torch")
    new = migrate_triton(old, "old.py", Options()).new_text or ""

    def result(text: str) -> bool:
        sources = []
        for name, content in (("old.py", old), ("new.py", text)):
            (tmp_path / name).write_text(content)
            sources.append(Source(content, str(tmp_path / name), name))
        return verify(*sources, Settings(), here).ok

    assert result(new)
    swapped = new.replace("def k(", "def k_0(").replace("def k_2(", "def k(").replace("def k_0(", "def k_2(")
    assert not result(swapped)


@pytest.mark.parametrize(
    ("expression", "computed"),
    [
        ("x / y", 'T.cast(x[i], "float32") / T.cast(y[i], "float32")'),
        ("x / 3.0", 'T.cast(x[i], "float32") / 3.0'),
        ("x * 3.0", "= x[i] * 3.0"),
        ("x * n_float", 'T.cast(x[i], "float32") * n_float'),
        ("x * FACTOR", 'x[i] * T.cast(FACTOR, "float16")'),
    ],
)
def test_types_in_which_triton_computes(expression: str, computed: str) -> None:
    body = f"x = tl.load(x_ptr + i, mask=i < n)\ny = tl.load(y_ptr + i, mask=i < n)\nz = {expression}"
    text = vector(f"{body}\ntl.store(y_ptr + i, z, mask=i < n)").replace('"cuda"', '"cuda", dtype=torch.float16')
    text = text.replace("n, BLOCK: tl", "n, n_float, FACTOR: tl.constexpr, BLOCK: tl")
    text = text.replace("n, BLOCK=128", "n, 1 / n, FACTOR=1 / n, BLOCK=128")
    assert computed in to_tilelang(text).text


def test_factory_for_each_element_type() -> None:
    """What a wrapper gets from a test that is called with several types: all tensors of a call go together."""
    text = to_tilelang(TYPED).text
    assert "    if x.dtype == torch.float16:\n        assert" in text
    assert "    else:\n        assert" in text
    types = [line.rpartition(", ")[2] for line in text.splitlines() if ": T.Tensor(" in line]
    assert types == ['"float16"),'] * 3 + ['"float32"),'] * 3


@pytest.mark.parametrize(
    ("old", "new", "codes"),
    [
        (
            "    n = x.shape[0]\n",
            "    x = x.contiguous()\n    n = x.shape[0]\n",
            ["TL513"],
        ),  # not the one that was passed
        ("return y\n", "return y, compiled.asm\n", ["TL513"]),  # the launch is in the middle of something
        ("check(200, torch.float32)\n", "", []),
        ("def check(n, dtype):", "def check(n, dtype, other=None):", []),
    ],
)
def test_element_types_that_cannot_be_told_apart(old: str, new: str, codes: list[str]) -> None:
    assert old in TYPED
    assert refusals(TYPED.replace(old, new)) == codes


KEPT = f"""{HEAD}@triton.jit
def k(x_ptr, y_ptr, last_ptr, n, LAST: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(y_ptr + i, x * 2.0, mask=i < n)
    if LAST:
        tl.store(last_ptr + i, x, mask=i < n)


def f(x, keep, more):
    n = x.shape[0]
    y = torch.empty_like(x)
    keep = keep or more
    if keep or n > 200:
        last = torch.empty_like(x)
    else:
        last = None
    k[(triton.cdiv(n, 128),)](x, y, last, n, LAST=last is not None, BLOCK=128)
    return y, last


for keep in (True, False):
    y, last = f(torch.ones(150, device="cuda"), keep, False)
"""


def test_tensor_or_none_by_a_condition_that_cannot_be_asked_at_the_launch() -> None:
    """``keep`` is another one than at the beginning: what it decided is asked."""
    text = to_tilelang(KEPT).text
    assert "    if last is None:\n" in text
    assert "    else:\n" in text
    loop = "    for _ in range(2):\n        last = None if keep else torch.empty_like(x)\n        k[(tri"
    again = KEPT.replace("    k[(tri", loop)
    assert "        if last is None:\n" in to_tilelang(again).text


def test_condition_of_several_that_are_known() -> None:
    """With ``b`` there is always a ``last``: three kernels, not four."""
    text = KEPT.replace("last_ptr, n,", "b_ptr, last_ptr, n, B: tl.constexpr,").replace(
        "last, n,", "b, last, n, b is not None,"
    )
    text = text.replace("    if LAST:", "    if B:\n        x += tl.load(b_ptr + i, mask=i < n)\n    if LAST:")
    text = text.replace("more):", "more, b=None):").replace("if keep or n", "if b is not None or keep or n")
    text = to_tilelang(f"{text}f(torch.ones(150), False, False, torch.ones(150))\n").text
    assert "def k_3(" in text
    assert "def k_4(" not in text


@pytest.mark.parametrize(
    "made",
    [
        "b = None if b is None else b.contiguous()",
        "b = b.contiguous() if b is not None else None",
        "if b is not None:\n        b = b.view(-1)",
        "b = None if b is not None else b.contiguous()",
        "b = x if b is None else b.contiguous()",
        "b = None if b is None else x.contiguous()",
        "b = {'b': b}['b']",
    ],
)
def test_tensor_that_is_another_one_where_it_is_passed(made: str) -> None:
    """The launch asks for ``b`` where the function was given another ``b``; only a statement can ask."""
    text = BOTH.replace("    y = torch", f"    {made}\n    y = torch")
    assert "    if b is None:\n        assert" in to_tilelang(text).text
    assert refusals(text.replace("    k[", "    done = None, k[")) != []


def test_the_condition_that_the_kernel_asks_comes_first() -> None:
    """Another parameter depends on one of the host that cannot be asked again, which nothing in the kernel needs."""
    text = SWITCHED.replace("n, NEGATIVE: tl", "n, more, NEGATIVE: tl").replace("x * sign", "x * sign + more")
    text = text.replace("last, n, NEGATIVE", "last, n, 1 if torch.cuda.is_available() and n > 9 else 0, NEGATIVE")
    assert refusals(text) == []
    assert "if negative:" in to_tilelang(text).text
