"""Kernels in which both cores work, for tests of hand-overs: 32 x 64 tiles, products of 32 x 64 by 64 x 64."""

from __future__ import annotations

from tests.checks.support import errors, findings, kernel, source
from tl2npu.codes import CODES

PARAMS = (
    'A: T.Tensor((256, 64), "float16"), B: T.Tensor((64, 64), "float16"), '
    'X: T.Tensor((256, 64), "float16"), O: T.Tensor((256, 64), "float32")'
)
JIT = "out_idx=[3]"

ALLOCS = """
l = T.alloc_shared((32, 64), "float16")
r = T.alloc_shared((64, 64), "float16")
c = T.alloc_fragment((32, 64), "float32")
x = T.alloc_ub((32, 64), "float32")
y = T.alloc_ub((32, 64), "float32")
h = T.alloc_ub((32, 64), "float16")
s = T.alloc_ub((32,), "float32")
"""
PRODUCT = """
T.copy(A[cid * 32, 0], l)
T.copy(B[0, 0], r)
T.gemm_v0(l, r, c, init=True)
"""
STORE = "T.copy(y, O[cid * 32, 0])\n"

TWO_WAY = """
p = T.alloc_shared((32, 64), "float16")
q = T.alloc_shared((64, 64), "float16")
o = T.alloc_fragment((32, 64), "float32")
z = T.alloc_ub((32, 64), "float32")
T.copy(A[cid * 32, 0], l)
T.copy(B[0, 0], q)
T.tile.fill(y, 0.0)
"""
STEP = """
T.copy(B[0, 0], r)
T.gemm_v0(l, r, c, transpose_B=True, init=True)
T.copy(c, x)
T.tile.exp(z, x)
T.copy(z, h)
T.copy(h, p)
T.gemm_v0(p, q, o, init=True)
T.copy(o, z2)
T.tile.add(y, y, z2)
"""
"""One step of attention: cube to vector, vector to cube, cube to vector."""
LANDING = 'z2 = T.alloc_ub((32, 64), "float32")\n'


def check(*parts: str, **settings: object) -> list[str]:
    """The errors of a kernel with the allocations above."""
    settings = {"params": PARAMS, "jit": JIT, **settings}
    return errors(kernel(ALLOCS, *parts), **settings)


def warned(*parts: str, **settings: object) -> list[str]:
    """The codes of warnings and errors without TL812, which the explicit allocations of these tests bring."""
    settings = {"params": PARAMS, "jit": JIT, **settings}
    found = findings(source(kernel(ALLOCS, *parts), **settings))  # type: ignore[arg-type]
    return [f.code for f in found if f.code != "TL812" and (f.severity or CODES[f.code].severity) != "info"]


def loop(body: str, head: str = "for k in T.serial(4):") -> str:
    """A loop around statements."""
    lines = [line for line in body.strip("\n").splitlines() if line.strip()]
    return "\n".join([head, *("    " + line for line in lines)])
