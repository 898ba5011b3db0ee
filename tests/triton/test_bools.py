"""Tensors of bool: the compiler takes none, so the kernel gets their bytes, in the same memory."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from tests.passes.simulated import run
from tests.triton.test_translation import refusals
from tl2npu.options import Options
from tl2npu.triton.host.rewrite import with_imports
from tl2npu.triton.migrate import to_tilelang
from tl2npu.verify.command import verify_files
from tl2npu.verify.settings import Settings

TEXT = """\
import torch
import triton
import triton.language as tl


@triton.jit
def chosen(x_ptr, keep_ptr, y_ptr, big_ptr, N, BM: tl.constexpr, BN: tl.constexpr):
    row = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    column = tl.program_id(1) * BN + tl.arange(0, BN)[None, :]
    x = tl.load(x_ptr + row * N + column, mask=column < N, other=0.0)
    keep = tl.load(keep_ptr + row * N + column, mask=column < N, other=False)
    big = keep & (x > 0.5)
    tl.store(y_ptr + row * N + column, tl.where(keep, x, -1.0) * big, mask=column < N)
    tl.store(big_ptr + row * N + column, big, mask=column < N)


def f(x, keep):
    M, N = x.shape
    y = torch.empty_like(x)
    big = torch.empty_like(keep)
    chosen[(M // 16, triton.cdiv(N, 64))](x, keep, y, big, N, BM=16, BN=64)
    return y, big


x = torch.randn(32, 96)
keep = torch.rand(32, 96) > 0.5
y, big = f(x, keep)
torch.testing.assert_close(y, torch.where(keep & (x > 0.5), x, 0.0 * torch.where(keep, x, -1.0)))
assert torch.equal(big, keep & (x > 0.5))
"""


def test_bytes_are_passed() -> None:
    found = to_tilelang(TEXT)
    assert "(x, keep.view(torch.uint8), y, big.view(torch.uint8))" in (found.text or "")


@pytest.mark.skipif(find_spec("triton") is None or find_spec("torch") is None, reason="needs triton and torch")
def test_bytes_mean_the_same(tmp_path: Path) -> None:
    (tmp_path / "old.py").write_text(TEXT, encoding="utf-8")
    result = verify_files(tmp_path / "old.py", None, Settings(), Options())
    assert result.ok, result
    assert [kernel.status for kernel in result.kernels] == ["verified"]


def test_number_is_no_bool() -> None:
    """Triton stores the byte of a number, which need not be 0 or 1."""
    assert refusals(TEXT.replace("column, big, mask", "column, row + column, mask")) == ["TL530"]


@pytest.mark.parametrize(
    ("text", "times"), [("x = k.view(torch.uint8)\n", 1), ("import torch\nk.view(torch.uint8)\n", 1)]
)
def test_torch_is_imported_for_its_name(text: str, times: int) -> None:
    assert with_imports(f"import triton\n{text}", "T").count("import torch\n") == times


@pytest.mark.parametrize(
    ("made", "known"),
    [
        ("    return torch.ones(n, dtype=torch.bool)", True),
        ("    m = CACHE.get(n)\n    if m is None:\n        m = torch.ones(n, dtype=torch.bool)\n    return m", True),
        ("    if n > 5:\n        return torch.ones(n, dtype=torch.bool)\n    return torch.ones(n)", False),
        ("    if n > 5:\n        return torch.ones(n, dtype=torch.bool)\n    return None", False),
        ("    if n > 5:\n        return torch.ones(n, dtype=torch.bool)", False),
    ],
)
def test_element_type_of_what_a_function_returns(made: str, known: bool) -> None:
    kernel, host = TEXT.split("def f(x, keep)")[0], f"CACHE = {{}}\n\n\ndef made(n):\n{made}\n\n\n"
    call = "def f(x):\n    M, N = x.shape\n    y = torch.empty_like(x)\n    big = torch.empty(M, N, dtype=torch.bool)\n"
    launch = "    keep = made(M * N)\n    chosen[(M // 16, triton.cdiv(N, 64))](x, keep, y, big, N, BM=16, BN=64)\n\n\n"
    text = to_tilelang(f"{kernel}{host}{call}{launch}f(torch.randn(32, 96))\n").text or ""
    assert ("keep.view(torch.uint8)" in text) == known


COUNTED = """\
import torch
import triton
import triton.language as tl


@triton.jit
def counted(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        column = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * N + column, mask=column < N, other=0).to(tl.float32)
    tl.store(y_ptr + row, tl.sum(total, axis=0))


def f(x: torch.Tensor):
    assert x.dtype == torch.TYPE
    M, N = x.shape
    y = torch.empty(M, dtype=torch.float32)
    counted[(M,)](x, y, N, BLOCK=64)
    return y
"""


@pytest.mark.parametrize("dtype", ["int8", "uint8", "float16", "int32"])
def test_a_tail_that_no_load_fills_keeps_its_mask(dtype: str) -> None:
    """The second of two tiles has 16 columns, is padded to 32 bytes, and keeps what the first one had behind these."""
    text = to_tilelang(COUNTED.replace("TYPE", dtype)).text or ""
    x = np.random.default_rng(0).integers(1, 100, (6, 80)).astype(dtype)
    names = {"M": 6, "N": 80, "BLOCK": 64}
    signature = text.partition("def counted(")[2].partition(")")[0]
    args = tuple(names.get(part.partition("=")[0].strip(), 6) for part in signature.split(","))
    found = run(text, {"x_ptr": x}, "counted", args)["y_ptr"]
    np.testing.assert_array_equal(found.reshape(-1), x.astype(np.float32).sum(1))
