"""Kernels from text, checked."""

from __future__ import annotations

import textwrap

from tl2npu.checks.run import check_kernel
from tl2npu.checks.subject import Finding, Subject
from tl2npu.codes import CODES
from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.kernel.memory.inferred import infer_memory
from tl2npu.options import Options
from tl2npu.source.index import Index

KEYS = ("AUTO_CV_COMBINE", "AUTO_CV_SYNC", "AUTO_SYNC", "MEMORY_PLANNING")
SPLIT = "T.Kernel(8, threads=2, is_npu=True) as (cid)"
ONE = "T.Kernel(8, threads=1, is_npu=True) as (cid)"
PLAIN = "T.Kernel(8, is_npu=True) as (cid, vid)"
PARAMS = 'A: T.Tensor((256, 64), "float32"), O: T.Tensor((256, 64), "float32")'
"""The kernel of most tests: tiles of 32 rows and 64 columns, one for each of 8 blocks."""

TILES = """
a = T.alloc_ub((32, 64), "float32")
b = T.alloc_ub((32, 64), "float32")
"""
LOAD = "T.copy(A[cid * 32 : cid * 32 + 32, :], a)\n"
STORE = "T.copy(b, O[cid * 32 : cid * 32 + 32, :])\n"


def source(
    body: str,
    *,
    launch: str = SPLIT,
    params: str = PARAMS,
    jit: str = "out_idx=[1]",
    keys: tuple[str, ...] = KEYS,
    args: str = "",
    factory: str = "",
    tail: str = "",
) -> str:
    """A file with one kernel with this ``body``; ``factory`` stands before the prim_func, ``tail`` at the end."""
    configs = ", ".join(f"tilelang.PassConfigKey.TL_ASCEND_{key}: True" for key in keys)
    lines = [
        "import tilelang",
        "import tilelang.language as T",
        "",
        f"@tilelang.jit({jit}{', ' if jit else ''}pass_configs={{{configs}}})",
        f"def factory({args}):",
        _block(factory, 4),
        "    @T.prim_func",
        f"    def main({params}):",
        f"        with {launch}:",
        _block(body, 12),
        "    return main",
        textwrap.dedent(tail),
    ]
    return "\n".join(line for line in lines if line.strip()) + "\n"


def _block(text: str, spaces: int) -> str:
    parts = [textwrap.dedent(part) for part in text.split("\f")]
    return textwrap.indent("\n".join(part.strip("\n") for part in parts), " " * spaces)


def findings(text: str, options: Options | None = None) -> list[Finding]:
    """Everything that is found in the only kernel of a file."""
    return check_kernel(subject(text, options))


def subject(text: str, options: Options | None = None) -> Subject:
    """The only kernel of a file, to be checked."""
    file = FileKernels(Index.parse(text))
    (located,) = file.located
    kernel = located.read()
    # a name that no catalogue has, or a call that fits no signature, is a problem of reading first
    assert not {code for _, code, _ in kernel.problems} - {"TL902", "TL903"}
    infer_memory(kernel)
    return Subject(kernel, file, located, options or Options())


def errors(body: str, **settings: object) -> list[str]:
    """The codes of the errors in a kernel with this body, in text order, each once."""
    return of_severity("error", body, **settings)


def warnings(body: str, **settings: object) -> list[str]:
    """The codes of the warnings."""
    return of_severity("warning", body, **settings)


def of_severity(severity: str, body: str, **settings: object) -> list[str]:
    """The codes of one severity, in text order, each once."""
    options = settings.pop("options", None)
    assert options is None or isinstance(options, Options)
    found = findings(source(body, **settings), options)  # type: ignore[arg-type]
    return list(dict.fromkeys(f.code for f in found if (f.severity or CODES[f.code].severity) == severity))


def kernel(*parts: str) -> str:
    """A body from parts that are indented each on its own."""
    return "\n".join(textwrap.dedent(part).strip("\n") for part in parts)
