"""Kernels for AscendNPU IR: told from the others, and read."""

from __future__ import annotations

import pytest

from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.kernel.model import Copy, Kernel, Op, Operand, Scalar, ScopeBlock, Side
from tl2npu.source.index import Index

HEAD = """\
import tilelang
import tilelang.language as T
{before}

@tilelang.jit({jit})
def factory(M, N):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel({launch}) as {names}:
{body}

    return main
"""
COPY = """
a = T.alloc_shared((64, 64), "float16")
T.copy(A[cid * 64, 0], a)
T.copy(a, B[cid * 64, 0])
"""


def text(
    body: str = COPY,
    jit: str = 'out_idx=[1], target="npuir"',
    launch: str = "M // 64, is_npu=True",
    names: str = "(cid, _)",
    before: str = "",
) -> str:
    """A file with one kernel."""
    lines = "\n".join(" " * 12 + line for line in body.strip().splitlines())
    return HEAD.format(body=lines, jit=jit, launch=launch, names=names, before=before)


def kernel_of(source: str) -> Kernel:
    """The first kernel of a file."""
    return FileKernels(Index.parse(source)).located[0].read()


def dialect(source: str) -> str:
    """The language of the first kernel of a file."""
    return kernel_of(source).dialect


@pytest.mark.parametrize(
    "source",
    [
        text(),
        text(jit="out_idx=[1], target=TARGET", before='TARGET = "npuir"'),
        text(jit="").replace("@tilelang.jit()\n", "") + '\n\nk = tilelang.compile(factory(64, 64), target="npuir")\n',
        text(jit="").replace("@tilelang.jit()\n", "")
        + "\n\ndef other():\n    f = None\n    return f\n\n\ndef run():\n    f = factory(64, 64)\n"
        '    return tilelang.compile(f, target="npuir")\n',
        text(jit="", body=COPY + "T.vadd(a, a, a)"),
        text(jit="", body=COPY + "T.npuir_exp(a, a)"),
        text(jit="", body=COPY + "T.gemm(a, a, a, initC=True)"),
        text(jit="", body=COPY + "T.gemm(a, a, a, [64, 64, 64])"),
        text(jit="", body=COPY + "T.copy(A[0, 0], a, size=[64, 64])"),
        text(jit="", body=COPY + "T.copy(A[0, 0], a, [64, 64])"),
        text(jit="", body=COPY + "T.reduce_sum(a, a, dim=1, size=[64, 64])"),
        text(jit="", body=COPY + "T.atomic_add(B[0, 0], a, [64, 64])"),
    ],
)
def test_an_npuir_kernel(source: str) -> None:
    assert dialect(source) == "npuir"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (text(jit=""), "ascend"),
        (text(jit='target="ascendc"'), "ascend"),
        (text(jit='target="pto"'), "ascend"),
        (text(jit="", launch="M // 64, threads=128", names="cid"), "gpu"),
        (text(jit="", body=COPY + "T.reduce_sum(a, a, 1, [64, 64])"), "ascend"),
        (text(jit="", body=COPY + "T.tile.add(a, a, a)"), "ascend"),
        (text(jit="", launch="M // 64, threads=128", names="cid", body="x = T.alloc_local((4,), 'float32')"), "gpu"),
        (text(jit="", launch="M // 64, threads=128", names="cid", body=COPY + "T.gemm(a, a, a, True, True)"), "gpu"),
    ],
)
def test_another_kernel(source: str, expected: str) -> None:
    assert dialect(source) == expected


def test_macros_tell_as_well() -> None:
    before = "@T.macro\ndef twice(x):\n    T.vadd(x, x, x)\n"
    assert dialect(text(jit="", before=before, body=COPY + "twice(a)")) == "npuir"


def test_operators_are_read_with_their_own_catalogue() -> None:
    body = COPY + "T.gemm(a, a, a, [64, 64, 64], initC=(cid == 0), b_transpose=True)\nT.vmul(a, 0.5, a)"
    kernel = kernel_of(text(body))
    gemm, mul = (stmt for stmt in kernel.walk() if isinstance(stmt, Op) and stmt.op.name in ("gemm", "vmul"))
    assert list(gemm.args) == ["A", "B", "C", "size", "initC", "b_transpose"]
    assert isinstance(mul.args["A"], Operand)
    assert isinstance(mul.args["B"], Scalar)
    assert isinstance(mul.args["C"], Operand)
    assert kernel.problems == []


def test_a_half_rewritten_kernel_has_operators_of_other_languages() -> None:
    body = COPY + "T.gemm(a, a, a, transpose_B=True)\nT.tile.add(a, a, a)\nT.vadd(a, a, a)"
    kernel = kernel_of(text(body))
    assert kernel.problems == []
    names = [stmt.op.name for stmt in kernel.walk() if isinstance(stmt, Op)]
    assert names == ["gemm", "tile.add", "vadd"]


def test_the_size_of_a_copy() -> None:
    kernel = kernel_of(text("a = T.alloc_shared((64, 64), 'float16')\nT.copy(A[cid, 0], a, size=[64, 64])"))
    copy = next(stmt for stmt in kernel.walk() if isinstance(stmt, Copy))
    assert list(copy.options) == ["size"]


def test_the_name_behind_the_grid_is_the_vector_core() -> None:
    kernel = kernel_of(text("pass", launch="M, N, is_npu=True", names="(bx, by, vid)"))
    assert (kernel.cid, kernel.vid) == ("bx@1", "vid@3")
    kernel = kernel_of(text("pass", launch="M, N, is_npu=True", names="(bx, by, _)"))
    assert kernel.vid is None


def test_scopes_and_pipes_are_blocks() -> None:
    body = 'with T.Scope("Cube"):\n    with T.rs("PIPE_MTE2"):\n        T.set_flag("PIPE_V", 0)'
    kernel = kernel_of(text(body))
    sides = [stmt.side for stmt in kernel.walk() if isinstance(stmt, ScopeBlock)]
    assert sides == [Side.CUBE, Side.NONE]
    assert kernel.problems == []
