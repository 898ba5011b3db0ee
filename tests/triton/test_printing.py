"""TileLang text that TileLang's own compiler for GPUs takes: threads for small products, bool conditions."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.triton.test_translation import HEAD, MATMUL
from tl2npu.options import Options
from tl2npu.triton.migrate import to_tilelang
from tl2npu.triton.result import migrate_triton
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


GROUPED = """import torch
import triton
import triton.language as tl


@triton.jit
def k(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    pid = tl.program_id(0)  # 1D launch grid
    num_pid_m = tl.cdiv(M, BM)
    num_pid_n = tl.cdiv(N, BN)
    num_pid_in_group = GROUP * num_pid_n  # gone
    group_id = pid // num_pid_in_group
    first_pid_m = group_id * GROUP
    group_size_m = min(num_pid_m - first_pid_m, GROUP)  # the last group is smaller
    pid_m = first_pid_m + (pid % group_size_m)
    pid_n = (pid % num_pid_in_group) // group_size_m
    offs_m = (pid_m * BM + tl.arange(0, BM)) % M
    offs_n = (pid_n * BN + tl.arange(0, BN)) % N
    offs_k = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for slab in range(0, tl.cdiv(K, BK)):  # slabs
        at = slab * BK + offs_k
        a = tl.load(a_ptr + offs_m[:, None] * K + at[None, :], mask=at[None, :] < K, other=0.0)
        b = tl.load(b_ptr + at[:, None] * N + offs_n[None, :], mask=at[:, None] < K, other=0.0)
        acc = tl.dot(a, b, acc)
    offs_cm = pid_m * BM + tl.arange(0, BM)
    offs_cn = pid_n * BN + tl.arange(0, BN)
    mask = (offs_cm[:, None] < M) & (offs_cn[None, :] < N)
    tl.store(c_ptr + offs_cm[:, None] * N + offs_cn[None, :], acc, mask=mask)  # tail masked


def matmul(a, b):
    M, K = a.shape
    K, N = b.shape
    c = torch.empty((M, N), device=a.device)
    grid = lambda META: (triton.cdiv(M, META["BM"]) * triton.cdiv(N, META["BN"]),)
    k[grid](a, b, c, M, N, K, BM=64, BN=64, BK=32, GROUP=8)
    return c


matmul(torch.randn(200, 96, dtype=torch.float16), torch.randn(96, 300, dtype=torch.float16))
"""


def test_grouped_blocks_have_plain_places_under_their_names() -> None:
    result = migrate_triton(GROUPED, "k.py", Options())
    assert [kernel.disposition for kernel in result.kernels] == ["migrated"]
    text = str(result.new_text)
    assert "trunc" not in text
    assert ">> 31" not in text
    assert "pid_m = pid % group_size_m + GROUP * group_id" in text
    assert "T.copy(a_ptr[BM * pid_m, BK * slab], a)" in text
    assert "% 64 == 0" not in text


def test_sizes_of_a_dictionary_are_those_of_the_grid() -> None:
    """As `triton.cdiv(M, META["BM"])` has them; with others the group of the last blocks may be empty."""
    words = "BM=64, BN=64, BK=32, GROUP=8"
    sizes = "{" + re.sub(r"(\w+)=", r'"\1": ', words) + "}"
    given = GROUPED.replace("    k[grid]", f"    sizes = {sizes}\n    k[grid]").replace(words, "**sizes")
    old, new = (str(migrate_triton(text, "k.py", Options()).new_text) for text in (GROUPED, given))
    factory = old[old.index("def k(") : old.index("def matmul")]
    assert "pid_m = pid % group_size_m + GROUP * group_id" in factory
    assert factory in new


def test_comments_beside_statements() -> None:
    lines = [line.strip() for line in str(migrate_triton(GROUPED, "k.py", Options()).new_text).splitlines()]
    launch = next(number for number, line in enumerate(lines) if line.startswith("with T.Kernel"))
    assert "# 1D launch grid" in lines[launch - 1 : launch]
    assert "group_size_m = T.min(T.ceildiv(M, BM) - GROUP * group_id, GROUP)  # the last group is smaller" in lines
    assert lines[lines.index("# gone") + 1].startswith("group_id = ")
    assert lines[lines.index("# slabs") + 1].startswith("for slab in ")
    assert any(line.startswith("T.copy(") and line.endswith("  # tail masked") for line in lines)
