"""Files that import operators of TileLang one by one, where what is written needs others."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.passes.gpu.support import agree, gpu_file
from tests.passes.support import LOAD, STORE, developer, same_results, vector_file

A = np.random.default_rng(0).uniform(0.1, 4.0, (64, 64)).astype(np.float32)
PARAMS = 'A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")'
BODY = """
a = T.alloc_shared((32, 64), "float32")
T.copy(A[bx * 32, 0], a)
for i, j in T.Parallel(32, 64):
    a[i, j] = VALUE
T.copy(a, B[bx * 32, 0])
"""


def one_by_one(text: str) -> str:
    """The same file with every operator, and what it takes of tilelang, imported by its own name."""
    text = re.sub(r"^import tilelang.*\n", "", text, flags=re.M)
    of_language = sorted({name.split(".")[0] for name in re.findall(r"\bT\.([\w.]+)", text)})
    of_package = sorted(set(re.findall(r"\btilelang\.(\w+)", text)))
    head = f"from tilelang import {', '.join(of_package)}\nfrom tilelang.language import {', '.join(of_language)}\n"
    return head + re.sub(r"\b(?:T|tilelang)\.", "", text)


@pytest.mark.parametrize(
    "value",
    [
        "T.if_then_else(a[i, j] > 2.0, a[i, j], 0.5)",
        "T.tanh(a[i, j])",
        "T.log2(a[i, j])",
        "T.ceil(a[i, j])",
        "T.sigmoid(a[i, j])",
        "a[i, j] * a[i, j] + 1.0",
    ],
)
def test_a_gpu_kernel_gets_what_it_needs(value: str) -> None:
    """The language under a name, if anything is written by it; other names stay bare."""
    text = one_by_one(gpu_file(PARAMS, BODY.replace("VALUE", value)))
    new = agree(text, {"A": A})
    assert new.count("import tilelang.language as T\n") == ("T." in new)
    assert "copy(a, B[bx * 32, 0])" in new
    assert "T.copy" not in new


def test_a_name_that_the_file_has() -> None:
    """The alias is another one then."""
    text = one_by_one(gpu_file(PARAMS, BODY.replace("VALUE", "T.tanh(a[i, j])"))).replace("bx", "T")
    assert "import tilelang.language as TL\n" in agree(text, {"A": A})


def test_an_ascend_kernel_gets_the_loop_that_broadcasts() -> None:
    body = LOAD + 'r = T.alloc_ub((16, 1), "float32")\nT.reduce_max(a, r, dim=-1)\n'
    body += "T.tile.broadcast(a, r)\n" + STORE
    text = vector_file(body)
    assert "T.Parallel(" in developer(text)
    new = developer(one_by_one(text))
    assert "in T.Parallel(" in new
    assert new.count("import tilelang.language as T\n") == 1
    same_results(one_by_one(text), new)
