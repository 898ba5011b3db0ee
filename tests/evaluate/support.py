"""Kernels as texts, evaluated and compared."""

from __future__ import annotations

from textwrap import dedent, indent
from typing import Any

import numpy as np

from tl2npu.checks.subject import Subject
from tl2npu.evaluate.compare import compared
from tl2npu.evaluate.launch import Launch
from tl2npu.evaluate.sizes import Sizes
from tl2npu.evaluate.verdict import Outcome
from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.kernel.memory.inferred import infer_memory
from tl2npu.options import Options
from tl2npu.source.index import Index

TENSORS = 'X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")'

SOFTMAX = """
x = T.alloc_fragment((16, N), "float32")
top = T.alloc_fragment((16,), "float32")
total = T.alloc_fragment((16,), "float32")
T.copy(X[b * 16, 0], x)
T.reduce_max(x, top, dim=1)
for i, j in T.Parallel(16, N):
    x[i, j] = T.exp(x[i, j] - top[i])
T.reduce_sum(x, total, dim=1)
for i, j in T.Parallel(16, N):
    x[i, j] = x[i, j] / total[i]
T.copy(x, Y[b * 16, 0])
"""


def subjects(text: str) -> list[Subject]:
    """Every kernel of a file."""
    file = FileKernels(Index.parse(text))
    found = []
    for located in file.located:
        kernel = located.read()
        infer_memory(kernel)
        found.append(Subject(kernel, file, located, Options()))
    return found


def factory(body: str, tensors: str = TENSORS, call: str = "kernel(64, 32)", params: str = "M, N") -> str:
    """A file with one kernel, ``body`` from its launch on."""
    lines = indent(dedent(body).strip("\n"), " " * 8)
    return (
        "import tilelang\nimport tilelang.language as T\n\n\n@tilelang.jit(out_idx=[1])\n"
        f"def kernel({params}):\n    @T.prim_func\n    def main({tensors}):\n{lines}\n\n    return main\n\n\n{call}\n"
    )


def gpu(body: str, **more: str) -> str:
    """A GPU kernel of one axis of blocks, with tiles of 16 rows."""
    return factory("with T.Kernel(T.ceildiv(M, 16), threads=128) as b:\n" + indent(dedent(body), "    "), **more)


def npu(body: str, threads: int = 2, **more: str) -> str:
    """A kernel in Developer mode of the same shape."""
    head = f"with T.Kernel(T.ceildiv(M, 16), threads={threads}, is_npu=True) as (b):\n"
    return factory(head + indent(dedent(body), "    "), **more)


def outcome(old: str, new: str) -> Outcome:
    """What comparing two files of one kernel says."""
    return compared(subjects(old)[0], subjects(new)[0])


def values(text: str, inputs: dict[str, Any], symbols: dict[str, int] | None = None, **bound: object) -> dict[str, Any]:
    """The tensors behind a launch on given inputs."""
    chosen = Sizes(bound, symbols or {}, True)
    with np.errstate(all="ignore"):
        launch = Launch(subjects(text)[0], chosen, {n: np.array(v) for n, v in inputs.items()}, 1)
        found = launch.run(range(launch.count))
    return {name: tensor.data for name, tensor in found.items()}
