"""Small kernels for the tests of ``verify``: texts, with a hole for what a test wants to be wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tl2npu.verified import VerifyResult
from tl2npu.verify.backends import verify
from tl2npu.verify.judge import Runner
from tl2npu.verify.loading import Source
from tl2npu.verify.process import here
from tl2npu.verify.settings import Call, Settings

HEAD = """import numpy as np
import tilelang
import tilelang.language as T

pass_configs = {
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True,
}
"""

SCALE = """

@tilelang.jit(out_idx=[1], pass_configs=pass_configs)
def scale(rows, factor=0.5):
    @T.prim_func
    def main(
        X: T.Tensor((rows, 64), "float32"),
        Y: T.Tensor((rows, 64), "float32"),
    ):
        with T.Kernel(rows // 32, is_npu=True) as (cid, vid):
            x = T.alloc_ub((16, 64), "float32")
            T.copy(X[cid * 32 + vid * 16, 0], x)
            T.tile.mul(x, x, factor)
            T.copy(x, Y[cid * 32 + vid * 16, 0])

    return main
"""

MAIN = """

if __name__ == "__main__":
    x = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
    np.testing.assert_allclose(scale(64)(x), x * 0.5)
    print("fine")
"""

SCRIPT = HEAD + SCALE + MAIN
CALL = Call("scale", {"rows": 64})


def source(text: str, name: str = "kernel.py", folder: Path | None = None) -> Source:
    """A text as a file, which need not exist."""
    return Source(text, str((folder or Path.cwd()) / name), name)


def by_calls(old: str, new: str, *calls: Call, **settings: Any) -> VerifyResult:
    """Verify by calls, in this process."""
    return verify(source(old, "old.py"), source(new, "new.py"), Settings(calls=calls or (CALL,), **settings), here)


def by_script(old: str, new: str, runner: Runner = here, **settings: Any) -> VerifyResult:
    """Verify with the scripts' own launches."""
    return verify(source(old, "old.py"), source(new, "new.py"), Settings(**settings), runner)


def codes(result: VerifyResult) -> list[str]:
    """The codes of the diagnostics."""
    return [d.code for d in result.diagnostics]
