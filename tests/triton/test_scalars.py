"""Numbers that the host passes at run time are numbers of the kernel; constants are constants of the factory."""

from __future__ import annotations

import pytest

from tests.triton.test_translation import HEAD
from tl2npu.options import Options
from tl2npu.triton.migrate import to_tilelang
from tl2npu.triton.result import migrate_triton

KERNEL = f"""{HEAD}@triton.jit
def k(x_ptr, y_ptr, n, p, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(y_ptr + i, BODY, mask=i < n)


def f(x, p=0.5):
    y = torch.empty_like(x)
    n = x.numel()
    k[(triton.cdiv(n, 256),)](x, y, n, PASSED, BLOCK=256)
    return y


f(torch.randn(512), 0.1)
"""


def text(body: str = "x / (1 - p)", passed: str = "p") -> str:
    return KERNEL.replace("BODY", body).replace("PASSED", passed)


def migrated(before: str, options: Options | None = None) -> str:
    result = migrate_triton(before, "k.py", options or Options())
    assert [(kernel.name, kernel.disposition) for kernel in result.kernels] == [("k", "migrated")]
    assert result.new_text is not None
    return result.new_text


@pytest.mark.parametrize("body", ["x / (1 - p)", "x * p", "x + p * 2.0", "tl.where(x > p, x, p)", "tl.exp(x) + p"])
def test_a_number_of_the_host(body: str) -> None:
    """One compilation serves all values; 1.0 is no division by zero of the compiler."""
    new = migrated(text(body))
    assert "def k(n, BLOCK=256):" in new
    assert '        y_ptr: T.Tensor((n,), "float32"),\n        p: T.float32,\n    ):' in new
    assert "k(n=n, BLOCK=256)(x, y, float(p))" in new


@pytest.mark.parametrize(
    ("passed", "argument"),
    [
        ("1.0 - p", "1.0 - p"),  # a float as it is
        ("p * 2", "float(p * 2)"),
        ("float(p)", "float(p)"),
        ("1 / (1 - p)", "1 / (1 - p)"),
    ],
)
def test_what_the_host_computes(passed: str, argument: str) -> None:
    """The runtime takes an ``int`` of Python for a whole number, whatever the kernel takes."""
    assert f"k(n=n, BLOCK=256)(x, y, {argument})" in migrated(text("x * p", passed).replace("p=0.5", "p: float"))


def test_a_number_that_the_launch_writes_out() -> None:
    new = migrated(text("x + p", "1e-6"))
    assert "def k(n, p=1e-06, BLOCK=256):" in new
    assert "k(n=n, p=1e-06, BLOCK=256)(x, y)" in new


def test_a_constant_of_the_kernel() -> None:
    new = migrated(text("x + p").replace("n, p, BLOCK:", "n, p: tl.constexpr, BLOCK:"))
    assert "p=p" in new
    assert "T.float32," not in new


def test_ascend_npu_ir() -> None:
    """No kernel of the repository takes a float there."""
    new = migrated(text("x * p"), Options(target="npuir"))
    assert "k(n=n, p=p, BLOCK=256)(x, y)" in new


def test_what_the_second_half_refuses_is_tried_as_a_constant() -> None:
    before = text("x * p")
    assert "p: T.float32," in to_tilelang(before).text
    assert "def k(n, p, BLOCK=256):" in to_tilelang(before, constant={"k"}).text
