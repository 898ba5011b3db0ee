"""Kernels that host code keeps in variables, and what it asks of compiled ones."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.triton.test_translation import HEAD, refusals, vector
from tl2npu.options import Options
from tl2npu.triton.migrate import to_tilelang
from tl2npu.verify.command import verify_files
from tl2npu.verify.settings import Settings

KERNEL = HEAD + """CORES = 40
TABLE = {}


@triton.jit
def double(x_ptr, y_ptr, rows, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row * n + at, mask=at < n)
        tl.store(y_ptr + row * n + at, x * 2.0, mask=at < n)


def large():
    return triton.runtime.driver.active.get_current_target().arch == 90


def doubled(x):
    rows, n = x.shape
    y = torch.empty_like(x)
    warps = 4
HOST
    return y


x = torch.randn(50, 100, dtype=torch.float32)
torch.testing.assert_close(doubled(x), x + x)
"""

WARM = """\
# how many fit
kernel = double.warmup(x, y, rows, n, BLOCK=128, num_warps=warps, grid=(1,))
kernel._init_handles()
used = kernel.n_regs
if large():
    scale = 2
    many = 65536 // (used * scale)
else:
    many = 1
    many = min(many, 232448 // kernel.metadata.shared)
blocks = min(CORES * many, rows)
kernel[(blocks, 1, 1)](x, y, rows, n, 128)"""

MEMO = """\
kernel, blocks = TABLE.get(n, (None, 0))
if kernel is None:
    blocks = min(CORES, rows)
    kernel = double
    TABLE[n] = (kernel, blocks)
kernel[(blocks,)](x, y, rows, n, BLOCK=128)"""


def script(host: str) -> str:
    """A file whose wrapper has these statements."""
    return KERNEL.replace("HOST", "\n".join(f"    {line}" for line in host.splitlines()))


@pytest.mark.skipif(find_spec("triton") is None, reason="needs Triton")
@pytest.mark.parametrize("host", [WARM, MEMO], ids=["warm-up", "table"])
def test_launch_through_a_variable(host: str, tmp_path: Path) -> None:
    path = tmp_path / "k.py"
    path.write_text(script(host))
    wrapper = to_tilelang(script(host)).text.partition("def doubled")[2]
    for gone in ("kernel", "used", "many", "scale", "how many fit", "pass"):
        assert gone not in wrapper
    assert ("warps" in wrapper) == (host == MEMO)  # nothing but the warm-up asks for them
    assert [k.status for k in verify_files(path, None, Settings(), Options()).kernels] == ["verified"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("kernel._init_handles()", "print(kernel.n_regs)"),
        ("used = kernel.n_regs", "used = kernel.n_regs\nif used > 8:\n    y.zero_()"),
        ("used = kernel.n_regs", "used = kernel.n_regs\nn = n - used + used"),
        ("blocks, 1, 1)](x", "blocks, 1, 1)](x.view(rows, used - used + n)"),
    ],
    ids=["printed", "decides", "size", "view"],
)
def test_compiled_kernel_that_decides_more_than_the_grid(old: str, new: str) -> None:
    text = script(WARM.replace(old, new))
    assert text != script(WARM)
    assert refusals(script(WARM)) == []
    assert refusals(text) == ["TL510"]


def test_variable_that_may_hold_another_kernel() -> None:
    other = script(MEMO).replace(
        "def large", "def other(x_ptr, y_ptr, rows, n, BLOCK: tl.constexpr):\n    pass\n\n\ndef large"
    )
    other = other.replace("def other", "@triton.jit\ndef other")
    assert refusals(other) == []
    two = other.replace("    kernel[(blocks", "    TABLE[0] = (other, 1)\n    kernel[(blocks")
    assert refusals(two) == ["TL510"]
    passed = script(MEMO).replace("    kernel[(blocks", "    fill(TABLE)\n    kernel[(blocks")
    assert refusals(passed) == ["TL510"]


def test_one_blank_line_is_left_of_statements_with_blank_lines_between_them() -> None:
    spread = WARM.replace("\nkernel._init", "\n\nkernel._init").replace("\nblocks =", "\n\nblocks =")
    host = f"\n{spread}".replace("\nkernel[(", "\n\nkernel[(").replace("\n", "\n    ")
    new = to_tilelang(KERNEL.replace("HOST", host)).text
    lines = [line.strip() for line in new.split("    y = torch.empty_like(x)\n")[1].split("\n")]
    assert lines[:2] == ["", 'assert x.is_contiguous() and y.is_contiguous(), "x, y must be contiguous"']


EITHER = KERNEL.replace(
    "def large",
    "@triton.jit\ndef triple(x_ptr, y_ptr, rows, n, BLOCK: tl.constexpr):\n"
    "    at = tl.arange(0, BLOCK)\n    row = tl.program_id(0)\n"
    "    x = tl.load(x_ptr + row * n + at, mask=at < n)\n"
    "    tl.store(y_ptr + row * n + at, x * 3.0, mask=at < n)\n\n\ndef large",
).replace("def doubled(x)", "def doubled(x, more=False)")
CHOSEN = "kernel = triple if more else double\nkernel[(rows,)](\n    x, y, rows, n,\n    BLOCK=128,\n)"
TRIPLED = "torch.testing.assert_close(doubled(x, more=True), 3 * x)\n"


def either(host: str) -> str:
    return EITHER.replace("HOST", "\n".join(f"    {line}" for line in host.splitlines())) + TRIPLED


@pytest.mark.skipif(find_spec("triton") is None, reason="needs Triton")
def test_launch_of_one_of_two_kernels(tmp_path: Path) -> None:
    path = tmp_path / "k.py"
    path.write_text(either(CHOSEN))
    wrapper = to_tilelang(either(CHOSEN)).text.partition("def doubled")[2]
    assert "kernel" not in wrapper
    lines = [line.strip().partition("(")[0] for line in wrapper.splitlines()]
    assert lines.index("if more:") < lines.index("triple") < lines.index("else:") < lines.index("double")
    assert {k.status for k in verify_files(path, None, Settings(), Options()).kernels} == {"verified"}


def test_one_of_two_kernels_that_stays_is_launched_by_its_name() -> None:
    text = either(CHOSEN).replace("x * 3.0", "tl.randn(7, at)")
    done = to_tilelang(text)
    assert [kernel.name for kernel in done.kernels if kernel.refused is not None] == ["triple"]
    wrapper = done.text.partition("def doubled")[2]
    assert "    if more:\n        triple[rows,](x, y, rows, n, BLOCK=128)\n    else:\n" in wrapper


@pytest.mark.parametrize(
    "host",
    [
        CHOSEN.replace("if more", "if x.sum() > 0"),
        CHOSEN.replace("\nkernel[", "\nmore = not more\nkernel["),
        CHOSEN.replace("\nkernel[", "\nif n > 4:\n    kernel = triple\nkernel["),
    ],
    ids=["asks a tensor", "changes", "is set again"],
)
def test_choice_of_a_kernel_that_is_not_known_at_the_launch(host: str) -> None:
    assert "TL510" in refusals(either(host))


@pytest.mark.parametrize(
    ("function", "codes"),
    [
        ("def other(x, k=3):\n    return x * k\n", []),
        ("def other(x):\n    k = 3\n    return x * k\n", []),
        ("def other(x):\n    return compiled(k, x)\n", ["TL510"]),
        ("def other(x):\n    global k\n    k = faster(k)\n    return x\n", ["TL510"]),
    ],
)
def test_another_thing_of_the_same_name(function: str, codes: list[str]) -> None:
    text = vector("x = tl.load(x_ptr + i, mask=i < n)\ntl.store(y_ptr + i, x, mask=i < n)")
    assert refusals(text.replace("def f(x)", f"{function}\n\ndef f(x)")) == codes
    device = function.replace("def other", "@triton.jit\ndef other")
    assert refusals(text.replace("@triton.jit", f"{device}\n\n@triton.jit", 1)) == codes
