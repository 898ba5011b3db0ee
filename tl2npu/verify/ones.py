"""What is 1 in every launch of a kernel: an axis, a loop or a factor of which a single one tells nothing.

``x[b]`` and ``x[0]`` are the same in a batch of one, and so are a sum that is carried over a loop and one that is not.
Where the factory gives a larger size, that is tried as well; what is left is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.ir.buffer import Buffer, Region
from tl2npu.simulator.ir.expr import Expr, Var
from tl2npu.simulator.ir.stmt import For, Kernel, Stmt
from tl2npu.simulator.ir.stmt import walk as statements
from tl2npu.simulator.standin.jit import JITKernel
from tl2npu.verify.launching import CannotBuild
from tl2npu.verify.shrink import Shape, shape_of

Compile = Callable[[dict[str, Any]], JITKernel]
"""The kernel that the factory gives for arguments."""

_NOT_MADE = (SimulatorError, CannotBuild, ValueError, TypeError, ArithmeticError, AssertionError, LookupError)


def labels(compiled: JITKernel) -> dict[str, bool]:
    """The arguments, loops and axes of the grid of a kernel, as messages name them -> whether they are 1."""
    found = {f"`{name}`": compiled.arguments[name] == 1 for name in _numbers(compiled.arguments)}
    for name, count in zip(_counted(compiled.kernel), shape_of(compiled.kernel).counts, strict=True):
        found[name] = found.get(name, True) and count == 1
    return found


class Larger:
    """The sizes that a factory gives beside that of a launch.

    ``units`` are what is 1 in the launch and would not be for other arguments, as messages name it; complete when
    ``sizes`` has come to its end.
    """

    def __init__(self, compiled: JITKernel, compile: Compile, most: int) -> None:
        self.compiled, self.compile, self.most = compiled, compile, most
        self.arguments = compiled.arguments
        self.shape = shape_of(compiled.kernel)
        self.units: set[str] = set()
        self._single = [name for name in _numbers(self.arguments) if self.arguments[name] == 1]
        self._counts = [number for number, count in enumerate(self.shape.counts) if count == 1]
        self._names = list(_counted(compiled.kernel))

    def sizes(self) -> Iterator[tuple[dict[str, Any], JITKernel]]:
        """Arguments with the kernel for them: all that can be larger at once, then one after the other."""
        current, steps = self.compiled, []
        for name in _numbers(self.arguments):
            found = self._step(current, name)
            if found is not None:
                steps.append({**self.arguments, name: found.arguments[name]})
                current = found
        if steps:
            yield current.arguments, current
        for arguments in steps if len(steps) > 1 else ():
            try:
                yield arguments, self.compile(arguments)
            except _NOT_MADE:
                continue

    def _step(self, current: JITKernel, name: str) -> JITKernel | None:
        """The kernel with an argument that is larger, if something is no longer single then.

        Its tiles have the same sizes, or hold two for one where the argument is the size of a tile.
        """
        value, single = self.arguments[name], name in self._single
        if not single and not self._counts:
            return None
        before = shape_of(current.kernel)
        for factor in (3, 2) if isinstance(value, int) else (1.5,):
            try:
                found = self.compile({**current.arguments, name: value * factor})
            except _NOT_MADE:
                continue
            shape = shape_of(found.kernel)
            alike = len(shape.counts) == len(self.shape.counts)
            more = {self._names[n] for n in self._counts if alike and before.counts[n] == 1 != shape.counts[n]}
            matters = single and _told(found.kernel) != _told(current.kernel)
            self.units |= more | ({f"`{name}`"} if matters else set())
            fits = (single and factor == 2) or _tiles(shape) == _tiles(self.shape)
            if (more or matters) and fits and max(shape.work, shape.tensors) <= self.most:
                return found
        return None


def _numbers(arguments: dict[str, Any]) -> list[str]:
    """The arguments that are numbers above 0; of floats only a factor of 1."""
    return [
        name
        for name, value in arguments.items()
        if (isinstance(value, int) and not isinstance(value, bool) and value > 0)
        or (isinstance(value, float) and value == 1)
    ]


def _counted(kernel: Kernel) -> Iterator[str]:
    """How messages name the counts of ``shape_of``, in their order."""
    for launch in kernel.launches:
        for number in range(len(launch.extents)):
            name = f"`{launch.blocks[number].name}`" if number < len(launch.blocks) else f"{number + 1}"
            yield f"axis {name} of the grid"
        for stmt in statements(launch.body):
            if isinstance(stmt, For):
                yield f"the loop over `{stmt.var.name}` in line {stmt.site.line}"


def _tiles(shape: Shape) -> list[Any]:
    """The tiles of a kernel: type and size. Their memory is known once the kernel has run."""
    return [(item[0], item[2]) for item in shape.structure if len(item) == 3 and isinstance(item[2], tuple)]


def _told(kernel: Kernel) -> tuple[Any, ...]:
    """All numbers of a kernel: its sizes and constants. What changes none of them is an option of its compilation."""
    shape = shape_of(kernel)
    shapes = [tuple(d for d in p.shape if isinstance(d, int)) for p in kernel.params if isinstance(p, Buffer)]
    inside = [list(_constants(stmt)) for launch in kernel.launches for stmt in statements(launch.body)]
    return _tiles(shape), shape.counts, shapes, inside


def _constants(part: Any) -> Iterator[Any]:
    """The numbers in a statement, without those in its body and its annotations."""
    if isinstance(part, (bool, int, float)):
        yield part
    elif isinstance(part, (tuple, list)):
        for item in part:
            if not isinstance(item, Stmt):
                yield from _constants(item)
    elif isinstance(part, (Stmt, Expr, Region)) and not isinstance(part, Var):
        for name, value in vars(part).items():
            if name != "notes":
                yield from _constants(value)
    elif isinstance(part, dict):
        yield from _constants(list(part.values()))
