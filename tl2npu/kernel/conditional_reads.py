"""Elements of global memory that the compiler reads under a condition of its own (TL737).

In the innermost loops it puts ``T.if_then_else`` around what a tile is given, unless it can prove that each index lies
inside of its axis (``src/transform/legalize_safe_memory_access.cc``). The code generators print that choice as a
declaration inside of the assignment, which is no C++. A name is read as it stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tl2npu.kernel.model import Kernel, Loop, Memory, Operand, Store, walk, walk_with_parents
from tl2npu.kernel.runtime import Late


@dataclass(frozen=True, eq=False)
class ConditionalRead:
    """A store to a tile in an innermost loop, and the element that it reads so."""

    store: Store
    load: Operand


def conditional_reads(kernel: Kernel, late: Late) -> Iterator[ConditionalRead]:
    """The first such element of each store whose index the compiler cannot bound, for whatever sizes."""
    for stmt, parents in walk_with_parents(kernel.body):
        if not isinstance(stmt, Store) or stmt.target.buffer.memory is Memory.GM or stmt.via:
            continue
        loops = [above for above in parents if isinstance(above, Loop)]
        if not loops or loops[-1].kind in ("parallel", "vectorized", "while"):
            continue
        load = next((load for load in stmt.value.loads if _has_condition(load, loops, late)), None)
        if load is not None and not any(isinstance(inner, Loop) for inner in walk(loops[-1].body)):
            yield ConditionalRead(stmt, load)


def _has_condition(load: Operand, loops: list[Loop], late: Late) -> bool:
    if load.buffer.memory is not Memory.GM:
        return False
    whole = {(item.var, item.extent) for loop in loops for item in loop.ranges if item.start.is_zero}
    for dim, size in zip(load.dims or (), load.buffer.shape, strict=False):
        if dim.loads or (late.is_late(size) and dim.lo.variables() and (dim.lo, size) not in whole):
            return True
    return False
