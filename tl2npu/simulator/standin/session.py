"""One run of a user's script: options, and what happened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tl2npu.simulator.arithmetic.precise import Precise
from tl2npu.simulator.ir.buffer import Buffer
from tl2npu.simulator.ir.expr import Var
from tl2npu.simulator.ir.stmt import Kernel
from tl2npu.simulator.lowering.lower import ACTUAL
from tl2npu.simulator.machine.execute import Executable
from tl2npu.simulator.machine.watch import Made


@dataclass(eq=False)
class Session:
    """``watch`` makes a fresh observer for a launch, or is None; ``recorder`` is told of every launch."""

    arithmetic: Any = field(default_factory=Precise)
    reading: str = ACTUAL
    watch: Callable[[], Any] | None = None
    recorder: Callable[[Any, dict[str, np.ndarray], dict[str, Any], Callable[[], None]], None] | None = None
    launches: int = 0
    executables: dict[int, Executable] = field(default_factory=dict)

    def executable(self, kernel: Kernel) -> Executable:
        """The kernel compiled for this session, once."""
        found = self.executables.get(id(kernel))
        if found is None or found.kernel is not kernel:
            found = self.executables[id(kernel)] = Executable(kernel, self.arithmetic, self.reading)
        return found

    def arithmetic_poison(self, dtype: str) -> Any:
        """What a tensor that the call makes holds before the kernel writes it."""
        return Precise.poison(dtype)

    def execute(
        self,
        compiled: Any,
        kernel: Kernel,
        arrays: dict[int, np.ndarray],
        scalars: dict[Var, Any],
        ends: Mapping[int, int] | None = None,
    ) -> None:
        """Run a kernel on arrays (by buffer number); ``ends`` as in :class:`Made`."""
        self.launches += 1

        def run() -> None:
            watch = self.watch() if self.watch is not None else None
            self.executable(kernel).run(arrays, scalars, watch, replace(made_by(compiled, kernel), ends=ends or {}))

        if self.recorder is None:
            run()
            return
        names = {p.number: p.name for p in (*kernel.params, *kernel.outputs) if not isinstance(p, Var)}
        self.recorder(compiled, {names[n]: a for n, a in arrays.items()}, {v.name: x for v, x in scalars.items()}, run)


def made_by(compiled: Any, kernel: Kernel) -> Made:
    """The tensors that a call of a compiled kernel makes."""
    params = kernel.params

    def numbers(indices: Any) -> frozenset[int]:
        return frozenset(p.number for p in (params[n] for n in indices) if isinstance(p, Buffer))

    outputs = numbers(getattr(compiled, "out_idx", ())) | {b.number for b in kernel.outputs}
    return Made(outputs, numbers(getattr(compiled, "workspace_idx", ())))
