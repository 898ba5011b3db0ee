"""Stand-alone: what differs on branch npuir of TileLang-Ascend. Used by ``lower.py``.

Its code generator needs MLIR. Where that is not built, kernels go through the front end and all passes before it.
"""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable
from typing import Any

PASSED = "kernels go through the passes only: the code generator needs libtilelangir, which is not built"


class Untouched:
    """In place of the pipeline on MLIR text."""

    def add(self, *args: Any, **kwargs: Any) -> None:
        """Nothing is done."""

    def run(self, text: str) -> str:
        """The text as it is."""
        return text


def imported(stand_ins: types.ModuleType, note: Callable[[str], None]) -> Any:
    """The package, with stand-ins for what is built on MLIR where that is missing."""
    try:
        return importlib.import_module("tilelang")
    except Exception as error:
        if "tilelangir" not in str(error):
            raise
    for name in [n for n in sys.modules if n.split(".")[0] == "tilelang"]:
        del sys.modules[name]
    for name in ("tilelang.tladapter", "tilelang.tladapter.transforms", "tilelang.tladapter.utils"):
        stand_ins.module_of_anything(name)
    package = importlib.import_module("tilelang")
    engine: Any = sys.modules["tilelang.engine.lower"]
    engine.Pipeline = Untouched
    engine.device_codegen = lambda module, target: types.SimpleNamespace(get_source=module.script)
    note(PASSED)
    return package


def take_over(compile: Callable[..., Any]) -> None:
    """Give every kernel that is compiled to ``compile(kernel, func, out_idx, workspace_idx)``."""
    jit: Any = sys.modules["tilelang.jit"]

    def cached_npu(func: Any = None, out_idx: Any = None, **options: Any) -> Any:
        kernel = types.SimpleNamespace(
            target="npuir", platform="auto", pass_configs=options.get("pass_configs"), artifact=None
        )
        return compile(kernel, func, [out_idx] if isinstance(out_idx, int) else out_idx, None)

    jit.cached_npu = cached_npu


def lowered(kernel: Any, func: Any, out_idx: Any) -> dict[str, Any]:
    """What ``compiler_npu.compile`` does up to the text that bishengir compiles; runs in the forked process."""
    tvm: Any = importlib.import_module("tvm")
    jit: Any = importlib.import_module("tilelang.jit.jit_npu")
    program, _ = jit._symbolic_var_promoter_pass(func)
    with tvm.transform.PassContext(opt_level=3, config=kernel.pass_configs or {}):
        text = jit.lower(program, target="npuir")
    count = len(func.params)
    return {"status": "accepted", "source": str(text), "results": [i % count for i in out_idx or []], "workspaces": []}
