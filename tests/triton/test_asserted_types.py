"""The element types of tensors by what the host asserts, or raises for."""

from __future__ import annotations

import re

import pytest

from tests.triton.test_translation import vector
from tl2npu.options import Options
from tl2npu.triton.result import migrate_triton

HALVED = vector("x = tl.load(x_ptr + i, mask=i < n)\ntl.store(y_ptr + i, x / 2, mask=i < n)")
CALL = HALVED.rindex("f(torch.randn")


def types_by(asserted: str) -> tuple[list[str], list[str]]:
    """The element types of ``x`` in the new factories, and what is said of types that were assumed."""
    result = migrate_triton(HALVED[:CALL].replace("    n = x", f"    {asserted}\n    n = x"), "k.py", Options())
    found = re.findall(r'x_ptr: T\.Tensor\(\(n,\), "(\w+)"\)', result.new_text or "")
    return found, [d.message for d in result.diagnostics if d.code in ("TL505", "TL513") and "`x_ptr`" in d.message]


@pytest.mark.parametrize(
    "asserted",
    [
        "assert x.dtype == torch.bfloat16",
        "assert torch.bfloat16 is x.dtype",
        'assert x.is_cuda and x.dtype == torch.bfloat16, "bfloat16 only"',
        "assert x.dtype in [torch.bfloat16]",
        "if x.dtype != torch.bfloat16:\n        raise TypeError",
        "if not (x.dtype == torch.bfloat16):\n        raise TypeError",
        "if x.dim() != 1 or x.dtype != torch.bfloat16:\n        raise TypeError",
    ],
)
def test_one_type(asserted: str) -> None:
    assert types_by(asserted) == (["bfloat16"], [])


@pytest.mark.parametrize(
    "asserted",
    [
        "assert x.dtype != torch.bfloat16",
        "assert x.dtype == torch.bfloat16 or x.dim() == 1",
        "if x.dtype == torch.bfloat16:\n        raise TypeError",
        "if x.dim() != 1 and x.dtype != torch.bfloat16:\n        raise TypeError",
        "assert x.element_size() == 2",
    ],
)
def test_what_tells_no_type(asserted: str) -> None:
    found, said = types_by(asserted)
    assert found == ["float32"]
    assert said == ["`x_ptr` is taken for float32: nothing in the file shows its element type"]


@pytest.mark.parametrize("asserted", ["assert x.dtype in {}", "if x.dtype not in {}:\n        raise TypeError"])
def test_a_factory_for_each_type(asserted: str) -> None:
    kinds = "(torch.float16, torch.bfloat16, torch.float32)"
    assert types_by(asserted.format(kinds)) == (["float16", "bfloat16", "float32"], [])


def test_a_launch_that_cannot_be_copied() -> None:
    """The first type, and a word that others are allowed: ``x`` is not the tensor of which the host asked."""
    assert types_by("assert x.dtype in (torch.float16, torch.bfloat16)\n    x = x.contiguous()") == (
        ["float16"],
        ["`x_ptr` is taken for float16: the host allows others"],
    )


def test_tensors_that_are_alike() -> None:
    text = HALVED[:CALL].replace("def f(x):", "def f(x, y):").replace("    y = torch.empty_like(x)\n", "")
    text = text.replace("    n = x", "    assert x.dtype == y.dtype == torch.float16\n    n = x")
    new = migrate_triton(text, "k.py", Options()).new_text or ""
    assert re.findall(r'_ptr: T\.Tensor\(\(n,\), "(\w+)"\)', new) == ["float16", "float16"]
