"""Chains of ``elif``: some hundreds are no matter, thousands are one clear error of the file."""

from __future__ import annotations

import sys
import textwrap
import time

import pytest

from tl2npu.options import Options
from tl2npu.project.one import Task, process

KERNEL = """import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[1])
def factory(mode=0):
{factory}
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(2, threads=128) as bx:
            a = T.alloc_shared((32, 64), "float32")
            T.copy(A[bx * 32, 0], a)
            T.copy(a, B[bx * 32, 0])

    return main


def host(mode):
{host}
"""


def chain(length: int) -> str:
    lines = (f"{'el' if n else ''}if mode == {n}:\n    scale = {n}\n" for n in range(length))
    return textwrap.indent("".join(lines), "    ")


@pytest.mark.thorough
@pytest.mark.parametrize("place", ["factory", "host"])
def test_hundreds_are_migrated(place: str) -> None:
    before = sys.getrecursionlimit()
    text = KERNEL.format(**{"factory": "", "host": "    pass\n", place: chain(320)})
    result = process("migrate", text, "k.py", Options(), debug=False)
    assert result.error is None
    assert [kernel.disposition for kernel in result.kernels] == ["migrated"]
    assert (result.new_text or "").count("elif") == 319
    assert sys.getrecursionlimit() == before


@pytest.mark.parametrize("place", ["factory", "host"])
def test_thousands_are_an_error_of_the_file(place: str) -> None:
    text = KERNEL.format(**{"factory": "", "host": "    pass\n", place: chain(2500)})
    result = process("migrate", text, "k.py", Options(), debug=False)
    assert result.error is not None
    assert result.error.startswith("nested too deeply")
    assert result.new_text == text


DEEP = {
    "attributes": "x = a" + ".a" * 5000,
    "attributes over lines": "x = (a" + "\n.a" * 5000 + ")",
    "subscripts": "x = a" + "[0]" * 5000,
    "calls": "x = a" + "()" * 5000,
    "signs": "x = " + "-" * 5000 + "1",
    "sums": "x = " + "1+" * 5000 + "1",
    "conditions": "x = " + "1 if x else " * 2000 + "1",
    "lambdas": "x = " + "lambda: " * 2500 + "1",
    "decorator": "@a" + ".a" * 5000 + "\ndef f(): pass",
    "default": "def f(x=a" + ".a" * 5000 + "): pass",
    "generator": "x = [1 for y in a" + ".a" * 5000 + "]",
    "format": "x = f'{a" + ".a" * 5000 + "}'",
    "import": "import a" + ".a" * 5000,
    "target": "a" + ".a" * 5000 + " = 1",
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
@pytest.mark.parametrize("task", ["migrate", "check"])
def test_deep_expressions_are_an_error_soon(task: Task, text: str) -> None:
    text = KERNEL.format(factory="", host="    pass\n") + text + "\n"
    begun = time.process_time()
    result = process(task, text, "k.py", Options(), debug=False)
    assert time.process_time() - begun < 5
    assert result.error is not None
    assert "nested too deeply" in result.error
    assert result.new_text == text


@pytest.mark.thorough
def test_long_texts_and_hundreds_of_operators_are_no_matter() -> None:
    more = "x = " + " + ".join(["a.b.c(d)[0]"] * 150) + "\ny = [" + "'é', " * 9000 + "]\nz = 1" + " + 1" * 500 + "\n"
    result = process("migrate", KERNEL.format(factory="", host="    pass\n") + more, "k.py", Options(), debug=False)
    assert result.error is None
    assert [kernel.disposition for kernel in result.kernels] == ["migrated"]
