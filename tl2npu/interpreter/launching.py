"""Takes the place of the launches of Triton's interpreter. Imported when Triton has been."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from triton.language import standard
from triton.runtime import autotuner, interpreter
from triton.runtime.jit import KernelInterface

from tl2npu.interpreter import execution, places
from tl2npu.interpreter.concurrent import run as run_cores
from tl2npu.interpreter.execution import Launching
from tl2npu.interpreter.repairs import repaired
from tl2npu.interpreter.session import Interpreter, NoTriton
from tl2npu.interpreter.shim.modules import modules, patched


@contextlib.contextmanager
def taken(session: Interpreter) -> Iterator[None]:
    """Inside of the context launches go to ``session``. Raises NoTriton where Triton was loaded to compile."""
    if not isinstance(standard.cdiv, interpreter.InterpretedFunction):
        raise NoTriton("Triton was imported before with TRITON_INTERPRET=0: run the script in a process of its own")
    tuners: list[Any] = []
    tuned = autotuner.Autotuner.run

    def run(self: Any, *args: Any, grid: Any, warmup: bool = False, **named: Any) -> Any:
        function = self.fn
        if warmup:
            return Compiled(self, args, named)
        with torch._C.DisableTorchFunction():
            values, options = execution.bound(function, args, named)
            for hook in self.pre_run_hooks:
                hook(*args, **named)
            extents = execution.grid_of(grid, values)
            if 0 in extents:  # Triton launches nothing
                return Compiled(self, args, named)
            name = function.__qualname__.replace(".<locals>", "")
            config = tuners[-1].best_config.all_kwargs() if tuners else {}
            site = places.here().line
            constexprs = execution.constexprs_of(function)
            launching = Launching(
                function, name, extents, values, constexprs, options, config, site, partial(run_cores, session=session)
            )
            session.launch(launching)
        return Compiled(self, args, named)

    def tune(self: Any, *args: Any, **named: Any) -> Any:
        tuners.append(self)
        try:
            return tuned(self, *args, **named)
        finally:
            tuners.pop()

    def call(self: Any, *args: Any, **named: Any) -> Any:
        return execution.source(self.fn)(*args, **named)

    def outside(action: str, count: int) -> None:
        place = places.shown()
        elements = "1 element" if count == 1 else f"{count} elements"
        session.fault("out-of-bounds", f"{action} of {elements} outside of every tensor at {place}", place=place)

    scope = interpreter._LangPatchScope()
    with repaired(lambda: session.memory, outside):
        scope.set_attr(interpreter.InterpretedFunction, "run", run)
        scope.set_attr(interpreter.InterpretedFunction, "__call__", call)
        scope.set_attr(autotuner.Autotuner, "run", tune)
        patched(scope)
        found = modules()
        before = {name: sys.modules.get(name) for name in found}
        sys.modules.update(found)
        for name, module in found.items():
            outer, _, inner = name.rpartition(".")
            if outer not in found:
                scope.set_attr(importlib.import_module(outer), inner, module)
        scope.set_attr(KernelInterface, "warmup", lambda self, *args, grid, **named: Compiled(self, args, named))
        try:
            yield
        finally:
            scope.restore()
            for name, old in before.items():
                if old is None:
                    sys.modules.pop(name, None)
                else:
                    sys.modules[name] = old


class Compiled:
    """What a launch or a warm-up returns: a compiled kernel that a script may ask about, and launch."""

    n_regs, n_spills, n_max_threads = 32, 0, 1024

    def __init__(self, function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        self.function, self.args, self.named = function, args, named
        self.metadata = _Metadata()
        self.asm: dict[str, str] = {}

    def _init_handles(self) -> None:
        """There are none."""

    def __getitem__(self, grid: Any) -> Any:
        return lambda *args, **named: self.function.run(*args, grid=grid, warmup=False, **self._with(named, args))

    def _with(self, named: dict[str, Any], args: tuple[Any, ...]) -> dict[str, Any]:
        """Keywords of the warm-up that a launch leaves out, as those of constexprs."""
        names = self.function.arg_names[: len(args)]
        given = {**self.named, **named}
        return {name: value for name, value in given.items() if name not in names}


class _Metadata:
    """``shared``: some bytes, as scripts divide by them."""

    shared, num_warps, num_stages, num_ctas = 4096, 4, 2, 1
