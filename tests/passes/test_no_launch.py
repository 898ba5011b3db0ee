"""What is said of a prim_func that launches nothing which can be read."""

from __future__ import annotations

import textwrap

import pytest

from tl2npu.migration import check_text, migrate_text
from tl2npu.options import Options

HEAD = """import trace

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[1])
def factory():
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
"""
LOOP = "for i in range(64):\n    B[i, 0] = A[i, 0]"
PLAIN = "a prim_func without `with T.Kernel(...)`: plain TIR"
BODIES = {
    "loops": (LOOP, f"{PLAIN} cannot be migrated"),
    "a block": (
        'for i in range(64):\n    with T.block("b"):\n        B[i, 0] = A[i, 0]',
        f"{PLAIN} (`T.block`) cannot be migrated",
    ),
    "threads": (
        'tx = T.env_thread("threadIdx.x")\nT.launch_thread(tx, 64)\nB[tx, 0] = A[tx, 0]',
        f"{PLAIN} (`T.env_thread`, `T.launch_thread`) cannot be migrated",
    ),
    "two in one statement": (
        f"with T.Kernel(1, threads=64) as bx, trace.range('x'):\n{textwrap.indent(LOOP, '    ')}",
        "`with T.Kernel(...)` and `trace.range('x')` are one statement",
    ),
    "the other way round": (
        f"with trace.range('x'), T.Kernel(1, threads=64) as bx:\n{textwrap.indent(LOOP, '    ')}",
        "`with T.Kernel(...)` and `trace.range('x')` are one statement",
    ),
    "not entered": (
        f"launch = T.Kernel(1, threads=64)\n{LOOP}",
        "`T.Kernel(...)` does not open a `with` directly in the prim_func",
    ),
}


@pytest.mark.parametrize("form", BODIES.values(), ids=BODIES.keys())
def test_what_is_missing(form: tuple[str, str]) -> None:
    body, expected = form
    text = HEAD + textwrap.indent(body, " " * 8) + "\n\n    return main\n"
    result = migrate_text(text, "k.py", Options())
    assert result.new_text == text
    (found,) = [d for d in result.diagnostics if d.severity == "error"]
    assert (found.code, found.line) == ("TL902", 10)
    assert found.message.startswith(expected)
    (checked,) = [d for d in check_text(text, "k.py", Options()).diagnostics if d.severity == "error"]
    assert checked.message == found.message
