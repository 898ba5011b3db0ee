"""Types of torch that host code gives a factory become the names that the NPU's front end takes."""

from __future__ import annotations

import pytest

from tests.passes.gpu.support import gpu_file, result_of

PARAMS = "A: T.Tensor((M, 64), dtype), B: T.Tensor((M, 64), dtype)"
BODY = """
a = T.alloc_shared((32, 64), dtype)
T.copy(A[bx * 32, 0], a)
T.copy(a, B[bx * 32, 0])
"""
HEAD = "import torch\nimport tilelang\nimport tilelang.language as T\n\n\n"


def file(call: str, args: str = "M, dtype", factory: str = "") -> str:
    host = f"\n\ndef run(A, x):\n    return factory({call})(x), A.dtype\n"
    return gpu_file(PARAMS, BODY, head=HEAD, args=args, factory=factory) + host


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("64, x.dtype", '64, str(x.dtype).removeprefix("torch.")'),
        ("64, dtype=A.dtype", '64, dtype=str(A.dtype).removeprefix("torch.")'),
        ("64, torch.bfloat16", '64, "bfloat16"'),
        ("M=64, dtype=torch.half if x is None else x.dtype", None),
        ("64, 'float16'", "64, 'float16'"),
    ],
)
def test_calls(call: str, expected: str | None) -> None:
    new = result_of(file(call)).new_text
    assert new is not None
    assert "is_npu=True" in new
    if expected is not None:
        assert f"factory({expected})" in new
    else:
        assert 'else str(x.dtype).removeprefix("torch.")' in new
    assert "A.dtype\n" in new  # a tensor of host code, that has the name of one of the kernel


def test_a_default() -> None:
    new = result_of(file("64", "M, dtype=torch.float16")).new_text
    assert new is not None
    assert 'def factory(M, dtype="float16"):' in new


def test_a_factory_that_asks_torch_keeps_its_type() -> None:
    new = result_of(file("64, x.dtype", factory="assert dtype in (torch.float16, torch.float32)")).new_text
    assert new is not None
    assert "factory(64, x.dtype)" in new


def test_a_function_of_host_code_is_no_type() -> None:
    """A parameter of the factory has its name."""
    head = "from common import dtype\n" + HEAD
    text = gpu_file(PARAMS, BODY, head=head, args="M, dtype=T.float16") + "\n\ndef run(x):\n    return dtype(x.dtype)\n"
    new = result_of(text).new_text
    assert new is not None
    assert "return dtype(x.dtype)" in new
