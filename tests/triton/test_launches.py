"""What launches pass: tuples of strides, functions, names that are set again, and where they stand."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.triton.test_translation import HEAD, refusals
from tl2npu.options import Options
from tl2npu.triton.migrate import to_tilelang
from tl2npu.triton.result import migrate_triton
from tl2npu.verify.command import verify_files
from tl2npu.verify.naming import places
from tl2npu.verify.settings import Settings

PASSED = f"""{HEAD}@triton.jit
def half(x):
    return x * 0.5


@triton.jit
def scaled(x_ptr, x_step, y_ptr, y_step, n, OF: tl.constexpr, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    x = tl.load(x_ptr + row * x_step[0] + i * x_step[1], mask=i < n, other=0.0)
    tl.store(y_ptr + row * y_step[0] + i * y_step[1], OF(x), mask=i < n)


@triton.jit
def first(x_ptr, y_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n) + 1.0, mask=i < n)


@triton.jit
def second(x_ptr, y_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n) - 1.0, mask=i < n)


@triton.jit
def columns(x_ptr, y_ptr, n, row_step, step, B: tl.constexpr):
    r = tl.program_id(0) * 4 + tl.arange(0, 4)
    i = tl.arange(0, B)
    x = tl.load(x_ptr + r[:, None] * row_step + i[None, :] * step, mask=i[None, :] < n, other=0.0)
    tl.store(y_ptr + r, tl.sum(x, axis=1))


def by_steps(x, y):
    rows, n = x.shape
    options = {{"x_step": x.stride(), "y_step": y.stride(), "n": n}}
    scaled[(rows,)](x_ptr=x, y_ptr=y, OF=half, B=64, **options)
    return y


def by_way(x, way):
    n = x.numel()
    y = torch.empty_like(x)
    match way:
        case "more":
            blocks = triton.cdiv(n, 64)
            first[(blocks,)](x, y, n, B=64)
        case _:
            blocks = triton.cdiv(n, 32)
            second[(blocks,)](x, y, n, B=32)
    return y


def twice(x, up):
    n = x.numel()
    y = torch.empty_like(x)
    kernel = first if up else second
    kernel[(triton.cdiv(n, 64),)](x, y, n, B=64)
    z = torch.empty_like(y)
    kernel = second if up else first
    kernel[(triton.cdiv(n, 64),)](y, z, n, B=64)
    return z


def sums(x, n, row_step, step):
    y = torch.empty(8, dtype=torch.float32)
    columns[(2,)](x, y, n, row_step, step, B=64)
    return y


x = torch.randn(8, 50)
torch.testing.assert_close(by_steps(x, torch.empty(8, 50)), x * 0.5)
for way, more in (("more", 1.0), ("less", -1.0)):
    torch.testing.assert_close(by_way(x.view(-1), way), x.view(-1) + more)
for up in (True, False):
    torch.testing.assert_close(twice(x.view(-1), up), x.view(-1))
torch.testing.assert_close(sums(x[:, :48].contiguous(), 44, 48, 1), x[:, :44].sum(1))
"""


def test_every_kernel_is_translated() -> None:
    text = to_tilelang(PASSED).text
    assert refusals(PASSED) == ["TL508"]  # `x` of `columns`, which nothing shows the shape of
    assert "def half(" not in text
    assert "scaled(n=options['n'], B=64, rows=rows, y_shape_0=y.shape[0])(x, y)" in text
    assert "assert step == 1" in text


@pytest.mark.skipif(find_spec("triton") is None, reason="no triton here")
def test_every_launch_is_verified(tmp_path: Path) -> None:
    file = tmp_path / "k.py"
    file.write_text(PASSED, encoding="utf-8")
    result = verify_files(file, None, Settings(), Options())
    assert [kernel.name for kernel in result.kernels if kernel.status != "verified"] == []


def test_the_check_of_every_run_compares_them() -> None:
    done = migrate_triton(PASSED, "k.py", Options())
    assert {kernel.disposition for kernel in done.kernels} == {"migrated"}


@pytest.mark.parametrize(
    ("old", "new", "codes"),
    [
        ("x_step[1]", "x_step[2]", ["TL508", "TL543"]),  # a stride of an axis that `x` does not have
        ("    kernel = second if up", "    kernel = other() if up", ["TL508", "TL510"]),
        (
            "first[(blocks,)](x, y, n",
            "first[(blocks,)](x[n], y, n",
            ["TL508", "TL521"],
        ),  # where the part ends is not known
    ],
)
def test_refused_rather_than_guessed(old: str, new: str, codes: list[str]) -> None:
    assert sorted(set(refusals(PASSED.replace(old, new)))) == codes


def test_a_name_that_is_set_again_behind_the_launch() -> None:
    """The count of the first launch, and what the name is elsewhere: the number was that of both kernels once."""
    start = "    kernel = first if up else second\n"
    both = f"    if up:\n        rows = size(x)\n        first[(rows,)](x, y, n, B=64)\n{{}}    rows = 3\n{start}"
    for rest in ("        return y\n", "    else:\n        rows = 5\n"):
        text = to_tilelang(PASSED.replace(start, both.format(rest))).text
        assert "rows = size(x)" in text
        assert re.search(r"first_2\(n=n, B=64, rows_\d=rows\)\(x, y\)", text)


def test_a_device_function_that_asks_for_its_program_is_no_kernel() -> None:
    inner = "\n\n@triton.jit\ndef kept(p, x, n):\n    i = tl.program_id(0) * 64 + tl.arange(0, 64)\n"
    inner += "    tl.store(p + i, x, mask=i < n)\n\n\n@triton.jit\ndef first("
    text = PASSED.replace("\n\n@triton.jit\ndef first(", inner)
    text = text.replace(
        "tl.load(x_ptr + i, mask=i < n) + 1.0, mask=i < n)", "0.0 * i, mask=i < n)\n    kept(y_ptr, 1.0, n)"
    )
    assert "kept" not in {kernel.name for kernel in to_tilelang(text).kernels}
    assert "kept" not in {place.name for place in places(text)}


def test_a_launch_through_torch_of_a_kernel_of_another_file(tmp_path: Path) -> None:
    kernel, _, _ = PASSED.partition("def by_steps")
    (tmp_path / ".git").mkdir()
    (tmp_path / "kernels.py").write_text(kernel, encoding="utf-8")
    text = (
        "import torch\nimport triton\nfrom torch.library import wrap_triton\nfrom kernels import first\n\n\ndef f(x):\n"
    )
    text += (
        "    n = x.numel()\n    y = torch.empty_like(x)\n    wrap_triton(first)[(triton.cdiv(n, 64),)](x, y, n, B=64)\n"
    )
    file = tmp_path / "host.py"
    file.write_text(f"{text}    return y\n", encoding="utf-8")
    done = migrate_triton(file.read_text(encoding="utf-8"), str(file), Options())
    assert [(kernel.name, kernel.disposition) for kernel in done.kernels] == [("first", "migrated")]
    assert "    first(n=n, B=64)(x.view(n), y.view(n))" in (done.new_text or "")
