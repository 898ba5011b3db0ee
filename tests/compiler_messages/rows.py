"""The rows of the table of compiler messages, each with a program that triggers it.

``rows.txt``: headings ``# part | sources``; rows ``line | message | trigger | rule`` (``-``: none says it yet, which
``docs/compiler-messages.md`` lists as not covered; ``[pto]`` before a line: for that target). Below each stand the
statements of a program, with the kernel that they belong into in brackets (``vector`` if none).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent, indent

from tl2npu.checks.subject import DEFAULT_TARGET, PTO

ROWS = Path(__file__).with_name("rows.txt")
_IMPORTS = "import tilelang\nimport tilelang.language as T\n"
_PASSES = "AUTO_SYNC", "AUTO_CV_COMBINE", "AUTO_CV_SYNC", "MEMORY_PLANNING"


@dataclass(frozen=True)
class Row:
    """One message: where it stands, what it says, what triggers it, and the rule that says so in ``check``.

    ``kernel``: what the statements stand in.
    """

    part: str
    sources: str
    place: str
    message: str
    trigger: str
    rule: str
    target: str
    kernel: str
    statements: str

    @property
    def program(self) -> str:
        """A file that triggers the message."""
        return program(self.kernel, self.statements)


def rows() -> Iterator[Row]:
    """All rows, in the order of the file."""
    part = sources = ""
    for block in re.split(r"\n(?=[^\s])", ROWS.read_text("utf-8")):
        head, _, rest = block.partition("\n")
        if head.startswith("# "):
            part, sources = (word.strip() for word in head[2:].split("|"))
            continue
        place, message, trigger, rule = (word.strip() for word in head.split(" | "))
        body = dedent(rest).strip()
        kernel = "vector"
        if body.startswith("["):
            kernel, _, body = body[1:].partition("]")
        target = PTO if place.startswith("[pto] ") else DEFAULT_TARGET
        yield Row(part, sources, place.removeprefix("[pto] "), message, trigger, rule, target, kernel, body.strip())


_TENSORS = {
    "A": ((64, 64), "float32"),
    "C": ((64, 64), "float32"),
    "E": ((4096,), "float16"),
    "F": ((4096,), "float32"),
    "G": ((2, 64, 64), "float16"),
    "H": ((64, 64), "float16"),
    "J": ((64, 64), "int32"),
    "R": ((64, 64), "float32"),
    "D": ((64, 64), "float64"),
}
_VECTOR = """
x = T.alloc_ub((16, 64), "float32")
y = T.alloc_ub((16, 64), "float32")
z = T.alloc_ub((16, 64), "float32")
h = T.alloc_ub((16, 64), "float16")
i = T.alloc_ub((16, 64), "int32")
m = T.alloc_ub((16, 8), "uint8")
v = T.alloc_ub((64,), "float32")
w = T.alloc_ub((64,), "float32")
r = T.alloc_ub((16,), "float32")
s = T.alloc_ub((64,), "int32")
"""
_LOADS = """
T.copy(A[0:16, :], x)
T.copy(A[16:32, :], y)
T.copy(A[32:48, :], z)
T.copy(H[0:16, :], h)
T.copy(J[0:16, :], i)
T.copy(A[0, :], v)
T.copy(A[1, :], w)
T.copy(A[2, 0:16], r)
T.copy(J[0, :], s)
T.tile.compare(m, x, y, "GT")
"""
_STORES = """
T.barrier_all()
T.copy(x, C[0:16, :])
T.copy(v, C[16, :])
T.copy(r, C[17, 0:16])
T.copy(y, C[32:48, :])
"""
_CUBE = """
a = T.alloc_L1((64, 64), "float16")
b = T.alloc_L1((64, 64), "float16")
c = T.alloc_L0C((64, 64), "float32")
"""
_CUBE_LOADS = "T.copy(H[0, 0], a)\nT.copy(H[0, 0], b)\n"
_DEVELOPER = """
x = T.alloc_shared((16, 64), "float32")
y = T.alloc_shared((16, 64), "float32")
z = T.alloc_shared((16, 64), "float32")
"""
_BOTH = """
a = T.alloc_shared((64, 64), "float16")
b = T.alloc_shared((64, 64), "float16")
c = T.alloc_fragment((64, 64), "float32")
k = T.alloc_fragment((64, 64), "int32")
"""


def program(kernel: str, statements: str) -> str:
    """A file with one kernel around the statements."""
    if kernel == "file":
        return f"{_IMPORTS}\n\n{statements}\n"
    if kernel == "vector":
        body = _VECTOR + 'with T.Scope("V"):\n' + indent(_LOADS + statements + _STORES, "    ")
        return _factory(body, _PASSES[:1], "is_npu=True", "(cid, vid)")
    if kernel == "cube":
        ends = "T.gemm_v0(a, b, c, init=True)\nT.copy(c, R[0, 0])\n"
        body = _CUBE + 'with T.Scope("C"):\n' + indent(f"{_CUBE_LOADS}{statements}\n{ends}", "    ")
        return _factory(body, _PASSES[:1], "is_npu=True", "(cid, vid)")
    if kernel in ("developer", "split"):
        loads = "T.copy(A[0:16, :], x)\nT.copy(A[16:32, :], y)\nT.copy(A[32:48, :], z)\n"
        body = f"{_DEVELOPER}{loads}{statements}\nT.copy(x, C[0:16, :])\nT.copy(z, C[16:32, :])\n"
        return _factory(body, _PASSES, f"threads={1 + (kernel == 'split')}, is_npu=True", "cid")
    assert kernel == "developer-cube", kernel
    body = f"{_BOTH}T.copy(H, a)\nT.copy(H, b)\n{statements}\n"
    return _factory(body, _PASSES, "threads=1, is_npu=True", "cid")


def _factory(body: str, passes: tuple[str, ...], launch: str, names: str) -> str:
    words = set(re.findall(r"\w+", body))
    used = {name: found for name, found in _TENSORS.items() if name in words}
    tensors = ", ".join(f'{name}: T.Tensor({shape}, "{dtype}")' for name, (shape, dtype) in used.items())
    given = ", ".join(f"tilelang.PassConfigKey.TL_ASCEND_{name}: True" for name in passes)
    signature = tensors + (", n: T.int32" if "n" in words else "")
    lines = [f"@tilelang.jit(pass_configs={{{given}}})", "def factory():", "    @T.prim_func"]
    lines += [f"    def main({signature}):", f"        with T.Kernel(1, {launch}) as {names}:"]
    return _IMPORTS + "\n\n" + "\n".join(lines) + "\n" + indent(body.strip(), " " * 12) + "\n    return main\n"
