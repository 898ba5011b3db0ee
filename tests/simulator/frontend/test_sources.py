"""Where the text of a kernel stands does not matter: line ends, tabs, comments at the margin, indentation."""

from __future__ import annotations

import inspect
import linecache

import numpy as np
import pytest

from tests.simulator.kernels import HEADER, load
from tl2npu.simulator.frontend.rewrite import lines_of

BODY = """
def factory(M=32, N=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((M, N), "float32")
            T.copy(A, a)
# a comment at the margin
            T.tile.add(a, a, 1.0)
            T.copy(a, C)
    return main
"""
PLAIN = BODY.replace("# a comment at the margin\n", "")
FORMS = {
    "plain": PLAIN,
    "comment at the margin": BODY,
    "carriage returns": PLAIN.replace("\n", "\r\n"),
    "tabs": PLAIN.replace("    ", "\t"),
    "in a branch": "if True:\n" + "".join(f"  {line}\n" for line in BODY.splitlines()),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_text_is_found(form: str) -> None:
    space = load(HEADER + FORMS[form] + "\nkernel = tilelang.jit(out_idx=[1])(factory)()\n")
    x = np.ones((32, 64), np.float32)
    np.testing.assert_array_equal(space["kernel"](x), x + 1)


def test_the_lines_are_those_of_the_file() -> None:
    space = load(HEADER + BODY + "\nfunction = factory()\n")
    launch = space["function"].kernel.launches[0]
    site = launch.body[-1].site
    assert linecache.getline(site.file, site.line).strip() == "T.copy(a, C)"


@pytest.mark.parametrize("form", FORMS)
def test_a_function_ends_where_python_says(form: str) -> None:
    for function in (load(HEADER + FORMS[form])["factory"], test_the_text_is_found, pytest.raises):
        assert lines_of(function) == inspect.getsourcelines(function)
