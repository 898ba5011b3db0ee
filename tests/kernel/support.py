"""Kernels from text, for tests."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TypeVar

from tl2npu.kernel.environment import Env
from tl2npu.kernel.expressions import Evaluator
from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.kernel.memory.inferred import infer_memory
from tl2npu.kernel.model import Kernel, Stmt
from tl2npu.kernel.symbolic import Sym
from tl2npu.source.index import Index

StmtT = TypeVar("StmtT", bound=Stmt)

PARAMS = 'A: T.Tensor((1024, 64), "float32"), O: T.Tensor((1024, 64), "float32")'
IMPORTS = "import tilelang\nimport tilelang.language as T\n"


def block(text: str, spaces: int) -> str:
    """The text, without its own indentation, indented."""
    return textwrap.indent(textwrap.dedent(text).strip("\n"), " " * spaces)


def source(
    body: str,
    *,
    factory: str = "",
    module: str = "",
    args: str = "M, N, bm",
    params: str = PARAMS,
    launch: str = "T.Kernel(32, is_npu=True) as (cid, vid)",
    imports: str = IMPORTS,
) -> str:
    """A file with one kernel: ``module`` and ``factory`` are the statements around it."""
    lines = [
        imports,
        textwrap.dedent(module).strip("\n"),
        f"def factory({args}):",
        block(factory, 4),
        "    @T.prim_func",
        f"    def main({params}):",
        f"        with {launch}:",
        block(body, 12),
        "    return main",
    ]
    return "\n".join(lines) + "\n"


def file_of(text: str) -> FileKernels:
    """The kernels of a file."""
    return FileKernels(Index.parse(text))


def kernel_of(text: str) -> Kernel:
    """The only kernel of a file, memories inferred."""
    (located,) = file_of(text).located
    kernel = located.read()
    infer_memory(kernel)
    return kernel


def read(body: str, **around: str) -> Kernel:
    """The kernel with this body; ``around`` as for :func:`source`."""
    return kernel_of(source(body, **around))


def of_type(kernel: Kernel, kind: type[StmtT]) -> list[StmtT]:
    """The statements of one class, in text order."""
    return [stmt for stmt in kernel.walk() if isinstance(stmt, kind)]


def evaluated(text: str, env: Env | None = None) -> Sym:
    """An expression as a symbolic integer."""
    index = Index.parse(f"{IMPORTS}_ = {text}\n")
    file = FileKernels(index)
    node = index.statements[-1]
    return file.evaluator.sym(node.value, env or Env())  # type: ignore[union-attr]


def evaluator_of(text: str) -> Evaluator:
    """The evaluator of a file."""
    return file_of(text).evaluator


def names_of(syms: Iterator[Sym] | tuple[Sym, ...]) -> list[str]:
    """The texts of symbolic integers."""
    return [str(sym) for sym in syms]
