"""Tensor descriptors that a kernel makes: blocks of a tensor that end where it ends."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.triton.test_translation import HEAD, refusals
from tl2npu.options import Options
from tl2npu.verify.command import verify_files
from tl2npu.verify.settings import Settings

SUMS = f"""{HEAD}@triton.jit
def described(p, shape, strides, block):
    if isinstance(p, tl.tensor_descriptor):
        return p
    else:
        return tl.make_tensor_descriptor(p, shape, strides, block)


@triton.jit
def sums(x_ptr, y_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    x_desc = described(described(x_ptr, [M, N], [N, 1], [BM, BN]), [0, 0], [0, 0], [BN, BM])
    y_desc = tl.make_tensor_descriptor(y_ptr, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    row, col = tl.program_id(0) * BM, tl.program_id(1) * BN
    x = x_desc.load([row, col])
    # behind the end of a row there are zeros, which the sum does not see
    x += tl.sum(tl.load_tensor_descriptor(x_desc, [row, col]), 1)[:, None] + 1.0
    y_desc.store([row, col], x.to(y_desc.dtype))


def f(x):
    M, N = x.shape
    y = torch.zeros(M, N, dtype=torch.float16)
    sums[(triton.cdiv(M, 32), triton.cdiv(N, 64))](x, y, M, N, BM=32, BN=64)
    return y


f(torch.randn(50, 104))
"""


@pytest.mark.skipif(find_spec("triton") is None, reason="needs Triton")
@pytest.mark.parametrize("row", ["row", "row - 5"], ids=["behind", "and in front"])
def test_blocks_end_with_the_tensor(row: str, tmp_path: Path) -> None:
    path = tmp_path / "k.py"
    path.write_text(SUMS.replace("x_desc.load([row, col])", f"x_desc.load([{row}, col])"), encoding="utf-8")
    assert [k.status for k in verify_files(path, None, Settings(), Options()).kernels] == ["verified"]


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("x_desc.load([row, col])", "x_desc.load([row])", "TL538"),
        ("x_desc.load([row, col])", "x_desc.gather(row, col)", "TL538"),
        ("strides=[N, 1], block_shape=[BM, BN]", "strides=[N, 1], block_shape=[BM]", "TL538"),
        ("y_desc.store([row, col]", "tl.advance(y_desc, [1, 0]).store([row, col]", "TL512"),
    ],
)
def test_descriptors_that_stay(old: str, new: str, code: str) -> None:
    assert old in SUMS
    assert refusals(SUMS.replace(old, new)) == [code]


HOST = (
    SUMS.replace("import triton\n", "import triton\nfrom triton.tools.tensor_descriptor import TensorDescriptor\n", 1)
    .replace(
        "    sums[(",
        "    options = {}\n"
        "    if newest():\n"
        "        x_desc = TensorDescriptor(x, shape=[M, N], strides=[N, 1], block_shape=[32, 64])\n"
        "        options = {'maxnreg': 128}\n"
        "    else:\n"
        "        x_desc = x\n"
        "    sums[(",
    )
    .replace("(x, y, M, N, BM=32, BN=64)", "(x_desc, y, M, N, BM=32, BN=64, **options)")
    .replace("def f(x):", "def newest():\n    return torch.cuda.get_device_capability()[0] >= 9\n\n\ndef f(x):")
)


@pytest.mark.skipif(find_spec("triton") is None, reason="needs Triton")
def test_descriptor_of_the_host_where_there_is_a_way_without(tmp_path: Path) -> None:
    """The kernel takes both; the new one gets the tensor, whichever way the host takes."""
    path = tmp_path / "k.py"
    path.write_text(HOST, encoding="utf-8")
    assert [k.status for k in verify_files(path, None, Settings(), Options()).kernels] == ["verified"]


@pytest.mark.parametrize(
    ("old", "new", "codes"),
    [
        ("        x_desc = x\n", "        x_desc = TensorDescriptor(x, [M, N], [N, 1], [16, 64])\n", ["TL538"]),
        ("        x_desc = x\n", "        x_desc = y\n", ["TL538"]),
        ("    sums[(", "    x = x + 1.0\n    sums[(", ["TL538"]),
        ("{'maxnreg': 128}", "other()", []),  # Python refuses what is passed twice
    ],
    ids=["no way without", "another tensor", "changed since", "unknown"],
)
def test_descriptors_and_options_of_the_host_that_stay(old: str, new: str, codes: list[str]) -> None:
    assert old in HOST
    assert refusals(HOST.replace(old, new)) == codes
