"""What ``check`` says of Triton kernels that stay Triton kernels, and of what it must say nothing."""

from __future__ import annotations

import pytest

from tests.rules.examples import examples
from tl2npu.languages import check_source
from tl2npu.options import Options
from tl2npu.rules import load_rules

FILE = """
import torch
import triton
import triton.language as tl
from triton.language import where


@triton.jit
def kernel(x_ptr, f_ptr, y_ptr, n, D: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = i - D
    flag = tl.load(f_ptr + i, mask=i < n, other=0)
{body}
    tl.store(y_ptr + i, v, mask=i < n)


def run():
    x = torch.randn(4096, dtype=torch.float32)
    f = torch.ones(4096, dtype=torch.int32)
    y = torch.empty_like(x)
    kernel[(4,)](x, f, y, 4096, D=3, BLOCK=1024)
"""


def codes(text: str, device: str = "A2", without: tuple[str, ...] = ("TL501", "TL506")) -> list[str]:
    """Code and severity of every finding, by line."""
    found = check_source(text, "k.py", Options(device=device)).diagnostics
    return [f"{item.code} {item.severity}" for item in found if item.code not in without]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        # in front of the tensor
        ("v = tl.load(x_ptr + i - D, mask=(i - D) >= 0, other=0.0)", []),  # (x_ptr + i) - D: not read
        ("v = tl.load(x_ptr + (i - D), mask=(i - D) >= 0, other=0.0)", ["TL771"]),
        ("v = tl.load(x_ptr + at, mask=at >= 0, other=0.0)", ["TL771"]),
        ("v = tl.load(x_ptr + at, mask=(at < n) & (at > -1), other=0.0)", ["TL771"]),
        ("v = tl.load(x_ptr + at, mask=0 <= at, other=0.0)", ["TL771"]),
        ("v = tl.load(x_ptr + at * 2, mask=D <= i, other=0.0)", ["TL771"]),
        ("ok = (i >= D) & (i < n)\n    v = tl.load(x_ptr + at, ok, 0.0)", ["TL771"]),
        ("v = tl.load(x_ptr + tl.maximum(at, 0), mask=at >= 0, other=0.0)", []),
        ("v = tl.load(x_ptr + tl.where(at >= 0, at, 0), mask=at >= 0, other=0.0)", []),
        ("v = tl.load(x_ptr + i, mask=at >= 0, other=0.0)", []),
        ("v = tl.load(x_ptr + at, mask=i < n, other=0.0)", []),  # the author says that `at` is not negative
        ("v = tl.load(x_ptr + i, mask=i >= D, other=0.0)", []),
        # both arms
        ("v = tl.where(i < n, tl.load(x_ptr + i), 0.0)", ["TL772"]),
        ("v = where(i < n, 0.0, tl.load(x_ptr + i) * 2.0)", ["TL772"]),
        ("v = tl.where(i < n, tl.load(x_ptr + i, mask=i < n, other=0.0), 0.0)", []),
        ("v = tl.where(i < n, tl.load(x_ptr + i, i < n), 0.0)", []),
        ("v = tl.where(i == 0, 0, tl.load(x_ptr + i - 1, i < n))", ["TL772"]),
        ("v = tl.where(i > 0, tl.load(x_ptr + (i - 1), mask=i < n), 0)", ["TL772"]),
        ("v = tl.where(i == 0, 0, tl.load(x_ptr + i - 1, mask=(i < n) & (i > 0)))", ["TL771"]),
        ("v = tl.where(i == 0, 0, tl.load(x_ptr + tl.maximum(i - 1, 0), i < n))", []),
        ("v = tl.where(i == 0, 0, tl.load(x_ptr + i, i < n))", []),
        ("v = tl.where(i == n, 0, tl.load(x_ptr + i + 1, i < n))", []),
        ("v = tl.where(flag != 0, i // flag, 0)", ["TL772"]),
        ("v = tl.where(flag > 0, i % flag, 0)", ["TL772"]),
        ("v = tl.where(flag != 0, i / flag, 0)", []),  # of floats: infinity, which is not chosen
        ("v = tl.where(i < n, i // D, 0)", []),
        ("v = tl.where(flag != 0, i // tl.maximum(flag, 1), 0)", []),
        # masks that are no bits
        ("v = tl.load(x_ptr + i, mask=flag, other=0.0)", ["TL773"]),
        ("v = tl.load(x_ptr + i, mask=(i < n) & flag, other=0.0)", ["TL773"]),
        ("m = (i < n) & flag\n    v = tl.load(x_ptr + i, mask=m, other=0.0)", ["TL773"]),
        ("v = tl.load(x_ptr + i, mask=(i < n) & (flag != 0), other=0.0)", []),
        ("v = tl.load(x_ptr + i, mask=(i < n) & flag.to(tl.int1), other=0.0)", []),
        ("v = i * 1.0\n    tl.store(y_ptr + i, v, mask=flag)", ["TL773"]),
        # `other` without a mask
        ("v = tl.load(x_ptr + i, other=0.0)", ["TL774"]),
        ("v = tl.load(x_ptr + i, None, 0.0)", ["TL774"]),
        ("v = tl.load(x_ptr + i)", []),
        ("v = tl.load(x_ptr + i, mask=i < n)", []),
        ("v = tl.load(x_ptr + i, other=0.0)  # tl2npu: ignore[TL774]", []),
    ],
)
def test_masks(line: str, found: list[str]) -> None:
    assert codes(FILE.replace("{body}", f"    {line}")) == [f"{code} warning" for code in found]


LAUNCH = """
import torch
import triton
import triton.language as tl


{decorator}@triton.jit
def double(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(y_ptr + i, x * 2.0, mask=i < n)


def run(n={n}):
    x = torch.randn(n, dtype=torch.{dtype})
    y = torch.empty_like(x)
    double[{grid}](x, y, n{block})


{call}
"""
TUNED = '@triton.autotune(configs=[triton.Config({"BLOCK": 1024}), triton.Config({"BLOCK": 65536})], key=["n"])\n'


def launch(**given: str) -> str:
    text = LAUNCH
    usual = {"decorator": "", "n": "4096", "dtype": "float32", "grid": "(4,)", "block": ", BLOCK=1024", "call": "run()"}
    for key, value in {**usual, **given}.items():
        text = text.replace(f"{{{key}}}", value)
    return text


@pytest.mark.parametrize(
    ("grid", "given", "found"),
    [
        ("(65535,)", {}, []),
        ("(65536,)", {}, ["TL817 error"]),
        ("(256, 256)", {}, ["TL817 error"]),
        ("(256, 255)", {}, []),
        ("(triton.cdiv(n, 1024),)", {"call": "run(67108864)"}, ["TL817 error"]),
        ("(triton.cdiv(n, 1024),)", {"call": "run(33554432)"}, []),
        ("(n,)", {"n": "100000", "call": ""}, []),  # nobody calls it: no number is known
        ("lambda meta: (triton.cdiv(n, meta['BLOCK']),)", {"call": "run(67108864)"}, ["TL817 error"]),
    ],
)
def test_programs(grid: str, given: dict[str, str], found: list[str]) -> None:
    assert codes(launch(grid=grid, **given)) == found


@pytest.mark.parametrize(
    ("given", "device", "found"),
    [
        ({}, "A2", []),
        ({"block": ", BLOCK=16384"}, "A2", []),  # 2 x 65,536 bytes
        ({"block": ", BLOCK=32768"}, "A2", ["TL801 warning"]),  # 2 x 131,072: held twice
        ({"block": ", BLOCK=65536"}, "A2", ["TL801 error"]),
        ({"block": ", BLOCK=65536"}, "A5", ["TL801 warning"]),
        ({"block": ", BLOCK=32768"}, "A5", []),
        ({"block": ", BLOCK=65536", "dtype": "float16"}, "A2", ["TL801 warning"]),
        ({"block": "", "decorator": TUNED}, "A3", ["TL801 error"]),
    ],
)
def test_tiles(given: dict[str, str], device: str, found: list[str]) -> None:
    assert codes(launch(**given), device) == found


PRODUCT = """
import torch
import triton
import triton.language as tl


@triton.jit
def product(a_ptr, b_ptr, c_ptr, N: tl.constexpr):
    m = tl.arange(0, N)[:, None]
    n = tl.arange(0, N)[None, :]
    a = tl.load(a_ptr + m * N + n)
    b = tl.load(b_ptr + m * N + n)
    tl.store(c_ptr + m * N + n, tl.dot(a, {right}))


def run():
    a = torch.randn(256, 256, dtype=torch.float32)
    product[(1,)](a, a, torch.empty_like(a), N=256)
"""


@pytest.mark.parametrize(("right", "found"), [("b", []), ("b * 2.0", ["TL801 error"])])
def test_factors_do_not_lie_in_ub(right: str, found: list[str]) -> None:
    assert codes(PRODUCT.replace("{right}", right)) == found


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        ("tl.program_id(0) * stride + tl.arange(0, BLOCK)", False),  # the number has no name
        ("row * stride + tl.arange(0, BLOCK)", True),
        ("stride * row + tl.arange(0, BLOCK)", True),
        ("row * BLOCK + tl.arange(0, BLOCK)", False),
        ("row * stride + tl.arange(0, BLOCK)[:, None] * stride + tl.arange(0, BLOCK)[None, :]", False),
    ],
)
def test_a_row_for_each_program(offset: str, expected: bool) -> None:
    text = f"""
import triton
import triton.language as tl


@triton.jit
def rows(x_ptr, y_ptr, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = {offset}
    tl.store(y_ptr + at, tl.load(x_ptr + at))
"""
    assert ("TL506 info" in codes(text, without=())) == expected


@pytest.mark.parametrize("code", ["TL561", "TL562"])
def test_events_between_the_cores_of_a5(code: str) -> None:
    """What the page of each rule shows is said without a migration; other reasons why a kernel stays are not faults."""
    for example in examples(load_rules()[code]):
        said = check_source(example.text, "k.py", Options(device="A5")).diagnostics
        found = {(item.line, item.code) for item in said}
        assert {(line, code) for line, _ in example.expected} <= found
        assert example.kind != "accepted" or code not in {item for _, item in found}
    for example in examples(load_rules()["TL565"]):
        assert "TL565" not in codes(example.text, "A5", without=())


def test_a_kernel_is_named_with_what_was_looked_at() -> None:
    (said,) = check_source(launch(), "k.py", Options()).diagnostics
    assert (said.code, "not what it computes" in said.message) == ("TL501", True)
