"""TileLang text that TileLang's own compiler for GPUs takes: threads for small products, bool conditions."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.triton.test_translation import HEAD, MATMUL
from tl2npu.options import Options
from tl2npu.triton.migrate import to_tilelang
from tl2npu.verify.command import verify_files
from tl2npu.verify.settings import Settings

needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="no triton here")

MASKED = f"""{HEAD}@triton.jit
def keep(x_ptr, mask_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    chosen = tl.load(mask_ptr + i, mask=i < n)
    tl.store(y_ptr + i, tl.where(chosen, x, 0.0), mask=i < n)


x = torch.randn(300)
mask = torch.randint(0, 3, (300,), dtype=torch.int32)
y = torch.empty(300)
n = x.numel()
keep[(triton.cdiv(n, 128),)](x, mask, y, n, BLOCK=128)
torch.testing.assert_close(y, torch.where(mask != 0, x, torch.zeros(300)))
"""

CHAIN = f"""{HEAD}@triton.jit
def chain(a_ptr, b_ptr, c_ptr, d_ptr, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)
    j = tl.arange(0, N)
    a = tl.load(a_ptr + i[:, None] * N + j[None, :])
    b = tl.load(b_ptr + j[:, None] * N + j[None, :])
    c = tl.load(c_ptr + j[:, None] * N + j[None, :])
    s = tl.exp(tl.dot(a, b))
    tl.store(d_ptr + i[:, None] * N + j[None, :], tl.dot(s.to(tl.float16), c))


def f():
    a = torch.ones(32, 64, dtype=torch.float16)
    b = torch.ones(64, 64, dtype=torch.float16)
    c = torch.ones(64, 64, dtype=torch.float16)
    d = torch.empty(32, 64, dtype=torch.float32)
    chain[(1,)](a, b, c, d, M=32, N=64)
    return d
"""


@pytest.mark.parametrize(("rows", "most"), [(16, 32), (32, 64), (64, 128), (128, 128)])
def test_every_warp_has_16_rows_of_a_product(rows: int, most: int) -> None:
    text = to_tilelang(MATMUL.replace("64", str(rows))).text
    assert re.findall(r"threads=(\d+)", text) == [str(most)]


def test_products_of_products_share_their_rows() -> None:
    done = to_tilelang(CHAIN)
    assert [kernel.refused for kernel in done.kernels] == [None]
    gemms = re.findall(r"T\.gemm\(.*\)", done.text)
    assert len(gemms) == 2
    assert all("policy=T.GemmWarpPolicy.FullRow" in gemm for gemm in gemms)
    assert "policy" not in to_tilelang(MATMUL).text


@needs_triton
def test_integer_mask_is_a_condition(tmp_path: Path) -> None:
    text = to_tilelang(MASKED).text
    assert re.findall(r"if_then_else\(\w+\[\w+\] != 0,", text)
    file = tmp_path / "k.py"
    file.write_text(MASKED, encoding="utf-8")
    result = verify_files(file, None, Settings(), Options())
    assert [kernel.status for kernel in result.kernels] == ["verified"]
