"""Kernel files from parts, migrated and compared."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from tests.passes.simulated import run
from tl2npu.migration import migrate_text
from tl2npu.options import Options
from tl2npu.results import FileResult, KernelResult
from tl2npu.simulator.lowering.lower import ACTUAL, IDEAL

KEYS = ("TL_ASCEND_AUTO_CV_COMBINE", "TL_ASCEND_AUTO_CV_SYNC", "TL_ASCEND_AUTO_SYNC", "TL_ASCEND_MEMORY_PLANNING")
CONFIGS = "pass_configs = {\n" + "".join(f"    tilelang.PassConfigKey.{key}: True,\n" for key in KEYS) + "}\n"
IMPORTS = "import torch\nimport tilelang\nimport tilelang.language as T\n\n"

VEC_PARAMS = (
    'A: T.Tensor((64, 64), "float32")',
    'B: T.Tensor((64, 64), "float32")',
    'O: T.Tensor((64, 64), "float32")',
)
CV_PARAMS = (
    'A: T.Tensor((64, 64), "float16")',
    'B: T.Tensor((64, 64), "float16")',
    'O: T.Tensor((64, 64), "float32")',
    'workspace_1: T.Tensor((2, 32, 64), "float32")',
)
CV_ALLOCS = """
a_l1 = T.alloc_L1((32, 64), "float16")
b_l1 = T.alloc_L1((64, 64), "float16")
c_l0 = T.alloc_L0C((32, 64), "float32")
u = T.alloc_ub((16, 64), "float32")
v = T.alloc_ub((16, 64), "float32")
"""
CV_CUBE = """
T.copy(A[cid * 32, 0], a_l1)
T.copy(B, b_l1)
T.gemm_v0(a_l1, b_l1, c_l0, init=True)
T.copy(c_l0, workspace_1[cid, 0, 0])
"""
CV_VECTOR = """
T.copy(workspace_1[cid, vid * 16, 0], u)
T.tile.mul(v, u, 2.0)
T.copy(v, O[cid * 32 + vid * 16, 0])
"""
GEMM_SCALE = CV_ALLOCS + CV_CUBE + CV_VECTOR
LOAD = 'a = T.alloc_ub((16, 64), "float32")\nT.copy(A[cid * 32 + vid * 16, 0], a)\n'
STORE = "T.copy(a, O[cid * 32 + vid * 16, 0])\n"


def block(text: str, spaces: int) -> str:
    """The text, without its own indentation, indented."""
    return textwrap.indent(textwrap.dedent(text).strip("\n"), " " * spaces)


def kernel(
    body: str,
    *,
    params: Sequence[str] = VEC_PARAMS,
    jit: str = "out_idx=[2], pass_configs=pass_configs",
    factory: str = "",
    args: str = "",
    name: str = "factory",
    launch: str = "T.Kernel(2, is_npu=True) as (cid, vid)",
) -> str:
    """A factory with one kernel of two blocks."""
    lines = [f"\n\n@tilelang.jit({jit})\ndef {name}({args}):"]
    lines += [block(factory, 4)] if factory else []
    lines += ["    @T.prim_func", "    def main("]
    lines += [f"        {param}," for param in params]
    lines += ["    ):", f"        with {launch}:", block(body, 12), "", "    return main"]
    return "\n".join(lines) + "\n"


def vector_file(body: str, *, factory: str = "", args: str = "", head: str = CONFIGS, tail: str = "") -> str:
    """A file with a vector-only kernel that uses vid."""
    return IMPORTS + head + kernel(body, factory=factory, args=args) + tail


def gemm_file(
    body: str = GEMM_SCALE,
    *,
    params: Sequence[str] = CV_PARAMS,
    jit: str = "out_idx=[2], workspace_idx=[3], pass_configs=pass_configs",
    head: str = CONFIGS,
    tail: str = "",
    factory: str = "",
) -> str:
    """A file with a cube and vector kernel in the workspace style."""
    return IMPORTS + head + kernel(body, params=params, jit=jit, factory=factory) + tail


@lru_cache(maxsize=16)
def migrated(text: str, threads: str = "auto") -> FileResult:
    """The result for a file that must be processed; tests ask for it more than once."""
    result = migrate_text(text, "k.py", Options(threads=threads))  # type: ignore[arg-type]
    assert result.error is None
    return result


def only(result: FileResult) -> KernelResult:
    """The only kernel of a result."""
    (found,) = result.kernels
    return found


def developer(text: str, threads: str = "auto") -> str:
    """The new text of a file whose only kernel must reach the full form."""
    result = migrated(text, threads)
    found = only(result)
    assert found.target.startswith("developer"), (found.target, found.reason)
    assert result.new_text is not None
    return result.new_text


def refused(text: str, *codes: str, threads: str = "auto") -> None:
    """The full form must not be reached, for one of the reasons."""
    result = migrated(text, threads)
    found = only(result)
    assert not found.target.startswith("developer"), result.new_text
    named = {d.code for d in result.diagnostics}
    assert not codes or named & set(codes), [(d.code, d.message) for d in result.diagnostics]


def inputs_of(*names: str, seed: int = 0) -> dict[str, np.ndarray]:
    """Small random matrices."""
    random = np.random.default_rng(seed)
    return {name: random.integers(-4, 5, (64, 64)) / 4 for name in names}


def same_results(old: str, new: str, args: tuple[object, ...] = (), factory: str = "factory") -> None:
    """Both texts write the same values to ``O``, without NaN; the new one in both readings."""
    before = run(old, inputs_of("A", "B"), factory, args)["O"]
    assert not np.isnan(before).any(), "the test kernel does not define its output"
    for reading in (IDEAL, ACTUAL):
        after = run(new, inputs_of("A", "B"), factory, args, reading)["O"]
        np.testing.assert_array_equal(after, before, err_msg=f"{reading} reading")


def right_or_refused(text: str, threads: str = "auto", args: tuple[object, ...] = ()) -> bool:
    """Whether the kernel reached the full form; if it did, it must compute what it computed."""
    result = migrated(text, threads)
    if not only(result).target.startswith("developer"):
        return False
    assert result.new_text is not None
    same_results(text, result.new_text, args)
    return True
