"""Runs a traced kernel on arrays."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.ir.buffer import Buffer
from tl2npu.simulator.ir.expr import Var
from tl2npu.simulator.ir.stmt import Kernel
from tl2npu.simulator.lowering.lower import ACTUAL, Configs, lower
from tl2npu.simulator.machine.launch import Runner
from tl2npu.simulator.machine.symbols import extents, solve
from tl2npu.simulator.machine.watch import Made, Watcher


@dataclass(eq=False)
class Executable:
    """A kernel, lowered and compiled for one reading and one arithmetic."""

    kernel: Kernel
    arithmetic: Any
    reading: str = ACTUAL
    runners: list[Runner] = field(default_factory=list)

    def __post_init__(self) -> None:
        for launch in self.kernel.launches:
            program = lower(self.kernel, launch, self.reading)
            parameters = [*self.kernel.params, *self.kernel.outputs, *self.shared(), *program.workspaces]
            configs = Configs(self.kernel.configs, self.kernel.npuir)
            addresses = self.kernel.attrs.get("addresses", {})
            self.runners.append(Runner(program, self.arithmetic, parameters, configs.sync, configs.memory, addresses))

    def run(
        self,
        arrays: dict[int, np.ndarray],
        scalars: dict[Var, Any],
        watch: Watcher | None = None,
        made: Made | None = None,
    ) -> None:
        """Execute all launches in order. ``arrays``: by buffer number, updated in place; ``scalars``: parameters;
        ``made``: the tensors among ``arrays`` that nobody has written yet."""
        for runner in self.runners:
            runner.compile(watch is not None)
        made = made or Made()
        values = solve(self.kernel.params, arrays, scalars)
        held = self._held(arrays)
        common = {b.number: self.blank(b, values) for b in self.shared()}
        for runner in self.runners:
            local = {**held, **common}
            for workspace in runner.program.workspaces:
                local[workspace.number] = self.blank(workspace, values)
            own = made.scratch | {w.number for w in runner.program.workspaces} | set(common)
            layouts = {n: layout for n, layout in self.kernel.attrs.get("layouts", {}).items() if n in held}
            for number, layout in layouts.items():
                local[number] = layout.logical(local[number])
            runner.run(values, local, watch, replace(made, scratch=frozenset(own)))
            for number, layout in layouts.items():
                layout.restore(held[number], local[number])
        if watch is not None:
            watch.finish()
        for number, array in arrays.items():
            self.arithmetic.bring_back(array, held[number], self._dtype(number))

    def _held(self, arrays: dict[int, np.ndarray]) -> dict[int, np.ndarray]:
        """The tensors as the arithmetic keeps them; one that is given twice is one."""
        held: dict[int, np.ndarray] = {}
        found: dict[Any, np.ndarray] = {}
        for number, array in arrays.items():
            place = (array.__array_interface__["data"][0], array.shape, array.strides, self._dtype(number))
            if place not in found or not array.size:
                found[place] = self.arithmetic.from_host(array, self._dtype(number))
            held[number] = found[place]
        return held

    def shared(self) -> list[Buffer]:
        """Memory that all launches of the kernel share, ``T.alloc_global`` in front of them."""
        return list(self.kernel.attrs.get("globals", ()))

    def _dtype(self, number: int) -> str:
        for param in (*self.kernel.params, *self.kernel.outputs):
            if isinstance(param, Buffer) and param.number == number:
                return param.dtype
        raise SimulatorError("an array for no parameter")

    def blank(self, buffer: Buffer, values: dict[Var, Any]) -> np.ndarray:
        """Unwritten memory for a tensor."""
        shape = extents(buffer, values)
        if shape is None:
            raise SimulatorError(f"the shape of {buffer.name} is not known: it depends on no given array")
        return np.full(shape, self.arithmetic.poison(buffer.dtype), self.arithmetic.storage(buffer.dtype))
