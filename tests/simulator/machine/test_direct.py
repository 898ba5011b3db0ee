"""Programs for nobody's eyes: plain indexing, tiles that stand for their tensor. They compute what checked ones do."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pytest

from tests.simulator.kernels import load
from tl2npu.simulator.hazards.report import Report
from tl2npu.simulator.machine import launch
from tl2npu.simulator.standin.session import Session

HEAD = """
import tilelang
import tilelang.language as T

@tilelang.jit
def factory(M=48, N=32, K=40, m=16, n=16, k=8):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(N, n), T.ceildiv(M, m), threads=128) as (bx, by):
            a = T.alloc_shared((m, k), "float16")
            b = T.alloc_shared((k, n), "float16")
            c = T.alloc_fragment((m, n), "float32")
            T.clear(c)
            for s in T.serial(T.ceildiv(K, k)):
                T.copy(A[by * m, s * k], a)
                T.copy(B[s * k, bx * n], b)
{body}
{end}
    return main
"""
END = "T.copy(c, C[by * m, bx * n])"
BODIES = {
    "plain": "T.gemm(a, b, c)",
    "scaled": "for i, j in T.Parallel(m, k):\n    a[i, j] = a[i, j] * 2\nT.gemm(a, b, c)",
    "element": "a[0, 0] = 1\nT.gemm(a, b, c)",
    "read": "for i, j in T.Parallel(m, n):\n    c[i, j] += a[i, 0] * b[0, j]\n    c[i, j] += a[i, j % k]",
    "other rows": "T.copy(A[by * m, 0], a)\nT.gemm(a, b, c)",
    "sometimes": "if s % 2 == 0:\n    T.copy(A[by * m, 0], a)\nT.gemm(a, b, c)",
    "part": "T.copy(A[by * m, 0:4], a[:, 0:4])\nT.gemm(a, b, c)",
    "view": "d = T.view(a, (m * k,))\nd[3] = 5\nT.gemm(a, b, c)",
    "stored": "T.gemm(a, b, c)\nT.copy(a, A[by * m, s * k])\nA[by * m, 0] = 3",
    "swapped": "T.gemm(a, b, c)\nT.copy(b, c[0:k, :])",
}


def text(body: str, end: str = END) -> str:
    return HEAD.format(body=textwrap.indent(body, " " * 16), end=textwrap.indent(end, " " * 12))


def result(source: str, monkeypatch: pytest.MonkeyPatch, direct: bool, again: int = 1, **arguments: Any) -> list[Any]:
    if not direct:
        monkeypatch.setattr(launch, "_separate", lambda arrays: False)
    sizes = {"M": 48, "N": 32, "K": 40, **arguments}
    random = np.random.default_rng(0)
    shapes = (sizes["M"], sizes["K"]), (sizes["K"], sizes["N"])
    a, b = (random.standard_normal(shape).astype(np.float16) for shape in shapes)
    c = np.zeros((sizes["M"], sizes["N"]), np.float16)
    kernel = load(source, Session())["factory"](**arguments)
    for _ in range(again):
        kernel(a, b, c)
    monkeypatch.undo()
    return [a, b, c]


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("arguments", [{}, {"M": 45, "N": 27, "K": 37}], ids=["even", "tails"])
def test_both_programs_agree(body: str, arguments: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    source = text(BODIES[body])
    direct = result(source, monkeypatch, True, again=2, **arguments)
    checked = result(source, monkeypatch, False, again=2, **arguments)
    for name, x, y in zip("ABC", direct, checked, strict=True):
        np.testing.assert_array_equal(x, y, f"{body}: {name}")
    assert direct[2].any()


def borrowed(source: str) -> set[str]:
    """The names of the tiles that stand for their tensor."""
    session = Session()
    kernel = load(source, session)["factory"]()
    kernel(*(np.zeros(s, np.float16) for s in ((48, 40), (40, 32), (48, 32))))
    (executable,) = session.executables.values()
    (program,) = executable.runners[0].unwatched
    return {program.emitter.buffers[n].name for n in program.emitter.borrowed}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("plain", "ab"),
        ("read", "ab"),
        ("other rows", "ab"),
        ("scaled", "b"),
        ("element", "b"),
        ("part", "b"),
        ("view", "b"),
        ("stored", "b"),
    ],
)
def test_which_tiles_are_borrowed(body: str, expected: str) -> None:
    assert borrowed(text(BODIES[body])) == set(expected)


def test_tensors_that_share_memory_are_not_lent() -> None:
    """``C`` is ``A``: what one block writes, the next one must read."""
    source = text("T.gemm(a, b, c)")
    random = np.random.default_rng(0)
    a, b = (random.integers(-3, 4, (32, 32)).astype(np.float16) for _ in range(2))
    kernel = load(source, Session())["factory"](M=32, N=32, K=32)
    expected = a.copy()
    for rows in (slice(0, 16), slice(16, 32)):  # the first index of the grid runs fastest
        for columns in (slice(0, 16), slice(16, 32)):
            expected[rows, columns] = expected[rows].astype(np.float32) @ b[:, columns].astype(np.float32)
    kernel(a, b, a)
    np.testing.assert_array_equal(a, expected)


@pytest.mark.parametrize("watched", [False, True])
def test_a_kernel_is_compiled_for_the_run_it_gets(watched: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    ways: list[bool] = []
    compiled = launch.Runner._compile

    def count(self: launch.Runner, kind: str, count: int, body: Any, direct: bool) -> Any:
        ways.append(direct)
        return compiled(self, kind, count, body, direct)

    monkeypatch.setattr(launch.Runner, "_compile", count)
    session = Session(watch=Report().observer if watched else None)
    kernel = load(text(BODIES["plain"]), session)["factory"]()
    for _ in range(2):
        kernel(*(np.zeros(shape, np.float16) for shape in ((48, 40), (40, 32), (48, 32))))
    assert ways == [not watched]
