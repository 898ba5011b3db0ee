"""What host code shows of the rank of a tensor, and of which value of its name."""

from __future__ import annotations

import ast

import pytest

from tests.triton.test_translation import HEAD
from tl2npu.triton.host.ranks import ranks
from tl2npu.triton.migrate import to_tilelang

KERNEL = """
import torch
import triton
import triton.language as tl


@triton.jit
def double_kernel(a, c, stride, n_cols: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(a + row * stride + cols, mask=cols < n_cols, other=0)
    tl.store(c + row * stride + cols, x + x, mask=cols < n_cols)


def double(a):
    shape = a.shape
    n_cols = shape[-1]
    a = a.view(-1, n_cols)
    c = torch.empty_like(a)
    n_rows = a.shape[0]
    double_kernel[(n_rows,)](a, c, c.stride(-2), n_cols=n_cols, BLOCK=triton.next_power_of_2(n_cols))
    return c.view(*shape)
"""


def test_rows_of_a_view_are_those_of_the_view() -> None:
    """``a.shape[0]`` behind ``a = a.view(-1, n)`` does not say that the ``a`` that is passed has one axis: the kernel
    would have had one row."""
    text = to_tilelang(KERNEL).text
    assert "a: T.Tensor((a_shape_0, n_cols)" in text
    assert "with T.Kernel(a_shape_0, " in text
    assert "a_shape_0=n_rows)(a, c)" in text


@pytest.mark.parametrize(
    ("body", "rows", "passed"),
    [
        (
            "*lead, n = x.shape\nr = 1\nfor d in lead:\n    r *= d",
            "x_shape_0 * x_shape_1",
            "x_shape_0=x.shape[0], x_shape_1=x.shape[1]",
        ),
        ("x = x.flatten(0, 1)\nr, n = x.shape", "r", "r=r"),
        ("n = x.shape[2]\nx = x.flatten(0, -2)\nr = len(x)", "x_shape_0_1", "x_shape_0_1=x.shape[0]"),
    ],
)
def test_rows_of_several_axes(body: str, rows: str, passed: str) -> None:
    """``*lead, n = x.shape`` does not say that there are two axes; ``flatten`` takes places of axes, not extents."""
    head, _, _ = KERNEL.partition("def double(a)")
    body = body.replace("\n", "\n    ")
    text = f"""{head}def double(x):
    {body}
    y = torch.empty_like(x)
    double_kernel[(r,)](x, y, n, n_cols=n, BLOCK=triton.next_power_of_2(n))
    return y


double(torch.randn(2, 3, 20))
"""
    found = to_tilelang(text).text
    assert f'a: T.Tensor(({rows}, stride), "float32")' in found
    assert f"{passed})(" in found


@pytest.mark.parametrize(
    ("body", "passed", "later"),
    [
        ("x = x.view(-1, n)\nx.shape[0]", None, 1),
        ("x.shape[1]\nx = x.view(-1, n)\nx.shape[2]", 2, 3),
        ("x = x.contiguous()\nx.shape[1]", 2, 2),
        ("x = x if x.is_contiguous() else x.float().contiguous()\nx.shape[1]", 2, 2),
        ("if x is None:\n    x = torch.empty(n, n)\nx.shape[1]", 2, 2),
        ("if x.dim() == 3:\n    x = x.flatten(0, 1)\nx.shape[1]", None, 2),
        ("x, y = f(x)\nx.shape[1]", None, 2),
        ("y, x = x, torch.empty_like(x, dtype=n)\nx.shape[1]", 2, 2),
        ("*rows, n = x.shape", None, None),
    ],
)
def test_uses_tell_of_the_value_that_the_name_has_there(body: str, passed: int | None, later: int | None) -> None:
    """By hand."""
    indented = body.replace("\n", "\n    ")
    function = ast.parse(f"def launch(x, n):\n    {indented}\n").body[0]
    assert isinstance(function, ast.FunctionDef)
    given, kept = ranks(function, {})
    assert (given.guessed.get("x"), kept.guessed.get("x")) == (passed, later)


LAST = f"""{HEAD}@triton.jit
def rows(x_ptr, y_ptr, xm, xn, W: tl.constexpr):
    a, b, at = tl.program_id(0), tl.program_id(1), tl.arange(0, W)
    x = tl.load(x_ptr + a * xm + b * xn + at)
    tl.store(y_ptr + (a * tl.num_programs(1) + b) * W + at, x * 2)


def f(x, y, width: int):
    rows[(x.shape[0], x.shape[1])](x, y, x.stride(0), x.stride(1), W=width)
"""


def test_an_axis_behind_those_whose_strides_are_passed() -> None:
    """Two strides, and what is read lies behind both; where one is enough, and where the last axes are read as one."""
    text = to_tilelang(LAST).text
    assert "x_ptr: T.Tensor((x_shape_0, x_shape_1, W)" in text
    assert "assert x.dim() == 3" in text
    assert "assert x.stride(1) == width" in text
    matrix = LAST.replace("a * xm + b * xn + at", "a * xm + at * xn").replace("x.shape[1])]", "1)]")
    assert "x_ptr: T.Tensor((x_shape_0, W)" in to_tilelang(matrix).text
    assert "assert x.dim() == 2" in to_tilelang(matrix).text
    both = LAST.replace(" + b * xn", "").replace("[(x.shape[0], x.shape[1])]", "[(x.shape[0], 1)]")
    both = both.replace("x.stride(1), W=width", "0, W=x.shape[1] * x.shape[2]")
    assert "x_ptr: T.Tensor((x_shape_0, x_shape_1 * x_shape_2)" in to_tilelang(both).text
    assert "assert x.dim() == 3" in to_tilelang(both).text
