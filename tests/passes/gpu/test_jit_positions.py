"""Arguments of compilations by position: they get their names before the language changes."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.passes.gpu.support import agree, gpu_file, migrated, result_of

PARAMS = "A: T.Tensor((n, 32), 'float32'), B: T.Tensor((n, 32), 'float32')"
BODY = """
a = T.alloc_shared((16, 32), 'float32')
T.copy(A[bx * 16, 0], a)
for i, j in T.Parallel(16, 32):
    a[i, j] = a[i, j] * 2.0
T.copy(a, B[bx * 16, 0])
"""


def file(end: str, head: str = "") -> str:
    text = gpu_file(PARAMS, BODY, launch="T.Kernel(n // 16, threads=128) as bx", args="n=32", jit="")
    return (
        "from tilelang.cache import cached\n"
        + text.replace("\n\ndef factory", "\n" + head + "def factory")
        + "\n\n"
        + end
    )


def compiled(end: str) -> str:
    """The last line of the migrated file, without its ``pass_configs``."""
    return re.sub(r",? *pass_configs=pass_configs", "", migrated(file(end)).splitlines()[-1])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("tilelang.compile(factory(), [1])", "tilelang.compile(factory(), out_idx=[1])"),
        ('tilelang.compile(factory(), -1, "cython", "cuda")', "tilelang.compile(factory(), out_idx=-1)"),
        (
            'tilelang.compile(factory(), -1, "cython", "cuda", None, True)',
            "tilelang.compile(factory(), out_idx=-1, target_host=None, verbose=True)",
        ),
        ('tilelang.JITKernel(factory(), [1], "cython")', "tilelang.JITKernel(factory(), out_idx=[1])"),
        ('cached(factory(), [1], target="cuda")', "cached(factory(), out_idx=[1])"),
        ("cached(factory, [1], 32)", "cached(factory(32), out_idx=[1])"),
        ('cached(factory, [1], 16 * 2, target="cuda")', "cached(factory(16 * 2), out_idx=[1])"),
    ],
)
def test_names_instead_of_positions(old: str, new: str) -> None:
    assert compiled(f"kernel = {old}\n") == f"kernel = {new}"


@pytest.mark.parametrize(
    "made",
    ["tilelang.compile(factory(), [1], 'cython')", "cached(factory, [1], 32)", "tilelang.cached(factory(), [-1])"],
)
def test_both_files_compute_the_same(made: str) -> None:
    text = file(f"def build():\n    return {made}\n")
    agree(text, {"A": np.arange(32 * 32, dtype="float32").reshape(32, 32)}, factory="build")


@pytest.mark.parametrize("jit", ["@tilelang.jit([1])", "@tilelang.jit([1], target='cuda')", "@tilelang.jit(OUT)"])
def test_a_decorator_with_an_argument_by_position_is_refused(jit: str) -> None:
    text = "OUT = [1]\n" + gpu_file(PARAMS, BODY, launch="T.Kernel(n // 16, threads=128) as bx", args="n=32", jit=jit)
    (found,) = [d for d in result_of(text).diagnostics if d.severity == "error"]
    assert found.code == "TL123"
    assert "positional argument" in found.message


def test_what_cached_would_hand_on_to_nobody_is_refused() -> None:
    (found,) = [
        d for d in result_of(file("kernel = cached(factory(), [1], 32)\n")).diagnostics if d.severity == "error"
    ]
    assert (found.code, "`32`" in found.message) == ("TL123", True)
