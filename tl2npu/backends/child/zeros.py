"""Stand-alone: what stands for a compiled kernel that is not launched. Used by ``lower.py``."""

from __future__ import annotations

import importlib
import os
import types
from typing import Any


class Zeros:
    """The adapter of a kernel that is not launched: checks the arguments as the real one does, and gives zeros."""

    def __init__(
        self, kernel: Any, func: Any, out_idx: Any, workspace_idx: Any, lowered: dict[str, Any] | None
    ) -> None:
        param: Any = importlib.import_module("tilelang.engine.param")
        tvm: Any = importlib.import_module("tvm")
        params = importlib.import_module("tilelang.engine.lower").extrac_params(func)
        adapter: Any = importlib.import_module("tilelang.jit.adapter").CythonKernelAdapter
        real = adapter.__new__(adapter)
        real.params = params
        count = len(params)
        self.results = lowered["results"] if lowered else [i % count for i in _list(out_idx)]
        hidden = lowered["workspaces"] if lowered else [i % count for i in _list(workspace_idx)]
        self.hidden = [i for i in hidden if i < count]  # the automatic ones are appended
        self.params = params
        this: Any = self
        for adapted in (this, real):
            adapted.result_idx, adapted.workspace_idx, adapted.auto_gm_idx = self.results, self.hidden, []
        real.ir_module = self.ir_module = tvm.IRModule({func.attrs["global_symbol"]: func})
        self.dynamic_symbolic_map = real._process_dynamic_symbolic()
        self.kernel_global_source = self.wrapped_source = self.lib_code = lowered["source"] if lowered else ""
        self.libpath = self.srcpath = os.devnull
        self.lib = self.lib_generator = types.SimpleNamespace()
        self.func = self.forward
        kernel.artifact = param.CompiledArtifact(None, None, params, self.kernel_global_source)

    def get_kernel_source(self, kernel_only: bool = False) -> str:
        """The generated text."""
        return str(self.kernel_global_source)

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.forward(*inputs, **kwargs)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Zeros in the shapes of the outputs."""
        torch: Any = importlib.import_module("torch")
        tvm: Any = importlib.import_module("tvm")
        tir = tvm.tir
        known = {
            var: tir.IntImm(var.dtype, int(inputs[i].shape[axis]))
            for var, (i, axis) in self.dynamic_symbolic_map.items()
        }
        outputs = []
        for number in self.results:
            shape = []
            for extent in self.params[number].shape:
                if isinstance(extent, tir.PrimExpr) and not isinstance(extent, tir.IntImm):
                    extent = tvm.arith.Analyzer().simplify(tir.stmt_functor.substitute(extent, known))
                shape.append(int(extent))
            outputs.append(torch.zeros(*shape, dtype=self.params[number].dtype))
        return outputs[0] if len(outputs) == 1 else outputs


def _list(value: Any) -> list[int]:
    return [] if value is None else [value] if isinstance(value, int) else list(value)
