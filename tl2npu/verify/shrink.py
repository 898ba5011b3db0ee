"""Smaller extents for kernels whose shapes no CPU can carry.

An integer argument of a factory is halved as long as the kernel stays the same kernel on a smaller problem: its
statements are the same, its on-chip buffers have the same sizes (so it was no tile size that was halved), and whatever
there were several of, blocks or turns of a loop, there still are at least two of.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.ir.buffer import Buffer
from tl2npu.simulator.ir.stmt import Alloc, For, Kernel, Op, Parallel
from tl2npu.simulator.ir.stmt import walk as statements

ENOUGH = 1 << 26
"""Element operations that a CPU carries in a moment: below this nothing is made smaller."""

Trace = Callable[[dict[str, Any]], Kernel]


@dataclass(frozen=True)
class Shape:
    """What may and what may not change: ``structure`` are statements and tiles, ``counts`` blocks and turns of loops,
    ``tensors`` the elements of all parameters, ``work`` an estimate of the element operations."""

    structure: tuple[Any, ...]
    counts: tuple[int | None, ...]
    tensors: int
    work: int

    @property
    def is_small(self) -> bool:
        """A CPU carries it."""
        return max(self.work, self.tensors) <= ENOUGH


def shrunk(trace: Trace, arguments: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Arguments for a smaller problem, and a sentence that says what was shrunk.

    ``trace`` gives the kernel for arguments of the factory and may raise anything for those that do not fit.
    """
    current, shape = _smaller(trace, arguments, shape_of(trace(arguments)))
    names = [name for name in arguments if current[name] != arguments[name]]
    if not names:
        why = (
            "the shapes are small enough" if shape.is_small else "no argument can be halved without changing the tiles"
        )
        return arguments, f"nothing was shrunk: {why}"
    return current, "shrunk " + ", ".join(f"{name} from {arguments[name]} to {current[name]}" for name in names)


def small_enough(trace: Trace, arguments: dict[str, Any], kernel: Kernel) -> dict[str, Any] | None:
    """Arguments for a problem that a CPU carries, None where the kernel, traced with ``arguments``, is none that is too
    large, or cannot be made small enough."""
    shape = shape_of(kernel)
    if shape.is_small:
        return None
    current, shape = _smaller(trace, arguments, shape)
    return current if shape.is_small else None


def _smaller(trace: Trace, arguments: dict[str, Any], shape: Shape) -> tuple[dict[str, Any], Shape]:
    """Arguments halved, the largest first, until the problem is small or nothing can be halved."""
    current = dict(arguments)
    changed = True
    while changed and not shape.is_small:
        changed = False
        for name in sorted(_integers(current), key=lambda n: -current[n]):
            smaller = _halved(trace, current, name, shape)
            if smaller is not None:
                current, shape = smaller
                changed = True
                break
    return current, shape


def _integers(arguments: dict[str, Any]) -> list[str]:
    return [n for n, v in arguments.items() if isinstance(v, int) and not isinstance(v, bool) and v > 3]


def _halved(trace: Trace, arguments: dict[str, Any], name: str, shape: Shape) -> tuple[dict[str, Any], Shape] | None:
    """The arguments with one halved, or None if that is another kernel or no smaller problem."""
    if arguments[name] % 2:
        return None
    candidate = {**arguments, name: arguments[name] // 2}
    try:
        found = shape_of(trace(candidate))
    except (SimulatorError, ValueError, TypeError, ArithmeticError, AssertionError, LookupError):
        return None
    if found.structure != shape.structure or (found.work >= shape.work and found.tensors >= shape.tensors):
        return None
    for old, new in zip(shape.counts, found.counts, strict=True):
        if (old is None) != (new is None) or (old is not None and new is not None and min(old, 2) > new):
            return None
    return candidate, found


def shape_of(kernel: Kernel) -> Shape:
    """The shape of a traced kernel."""
    structure: list[Any] = []
    counts: list[int | None] = []
    work = 0
    for launch in kernel.launches:
        grid = [_count(extent) for extent in launch.extents]
        counts += grid
        largest = 1
        loops = 1
        for stmt in statements(launch.body):
            structure.append((type(stmt).__name__, stmt.name if isinstance(stmt, Op) else ""))
            if isinstance(stmt, Alloc):
                tile = tuple(_count(extent) for extent in stmt.buffer.shape)
                structure.append((stmt.buffer.dtype, stmt.buffer.memory, tile))
                largest = max(largest, prod(extent or 1 for extent in tile))
            elif isinstance(stmt, For):
                counts.append(_count(stmt.extent))
                loops *= max(_count(stmt.extent) or 1, 1)
            elif isinstance(stmt, Parallel):
                structure.append(tuple(_count(extent) for extent in stmt.extents))
        work += prod(extent or 1 for extent in grid) * loops * largest
    tensors = sum(prod(_count(d) or 1 for d in p.shape) for p in kernel.params if isinstance(p, Buffer))
    return Shape(tuple(structure), tuple(counts), tensors, work)


def _count(value: Any) -> int | None:
    """A number, or None for what is known only when the kernel runs."""
    return value if isinstance(value, int) else None
