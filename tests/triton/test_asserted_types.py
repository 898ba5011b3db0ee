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


PRODUCT = """\
import torch
import triton
import triton.language as tl


@triton.jit
def attend(q_ptr, k_ptr, v_ptr, o_ptr, l_ptr, n, D: tl.constexpr, BLOCK: tl.constexpr):
    rows, cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, D)
    q = tl.load(q_ptr + rows[:, None] * D + cols[None, :], mask=rows[:, None] < n, other=0.0)
    acc = tl.zeros((BLOCK, D), dtype=tl.float32)
    most = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        at = (start + tl.arange(0, BLOCK))[:, None] * D + cols[None, :]
        inside = (start + tl.arange(0, BLOCK))[:, None] < n
        k = tl.load(k_ptr + at, mask=inside, other=0.0)
        v = tl.load(v_ptr + at, mask=inside, other=0.0)
        p = tl.dot(q, tl.trans(k))
        most = tl.maximum(most, tl.max(p, 1))
        acc += tl.dot(p.to(tl.bfloat16), v)
    tl.store(o_ptr + rows[:, None] * D + cols[None, :], acc, mask=rows[:, None] < n)
    tl.store(l_ptr + rows, most, mask=rows < n)


def f(q, k, v, l):
    n, D = q.shape
    o = torch.empty((n, D), device=q.device, dtype=q.dtype).contiguous()
    attend[(triton.cdiv(n, 32),)](q, k, v, o, l, n, D=D, BLOCK=32)
    return o
"""


def types_in(text: str) -> dict[str, str]:
    result = migrate_triton(text, "k.py", Options())
    assert {kernel.disposition for kernel in result.kernels} == {"migrated"}, result.diagnostics
    return dict(re.findall(r'(\w+): T\.Tensor\(.*, "(\w+)"\)', result.new_text or ""))


def test_types_that_only_the_kernel_shows() -> None:
    """Triton multiplies matrices of one type, here that of ``p.to(tl.bfloat16)``; ``o`` has that of ``q``; of ``l``,
    nothing is known."""
    halves = dict.fromkeys(("q_ptr", "k_ptr", "v_ptr", "o_ptr"), "bfloat16")
    assert types_in(PRODUCT) == {**halves, "l_ptr": "float32"}
    said = [d.message for d in migrate_triton(PRODUCT, "k.py", Options()).diagnostics if d.code == "TL505"]
    assert "`o_ptr` is taken for bfloat16: only the kernel shows its element type" in said
    assert "`l_ptr` is taken for float32: nothing in the file shows its element type" in said
    rounded = PRODUCT.replace("p.to(tl.bfloat16), v", "p, v.to(tl.float32)")
    assert set(types_in(rounded).values()) == {"float32"}
    other = PRODUCT.replace("dtype=q.dtype", "dtype=torch.float32")
    assert types_in(other) == {**halves, "o_ptr": "float32", "l_ptr": "float32"}
    stored = HALVED[:CALL].replace("x / 2", "(x / 2).to(tl.float16)")
    assert types_in(stored) == {"x_ptr": "float16", "y_ptr": "float16"}
