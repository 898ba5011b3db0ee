"""The variables in a kernel's integers: what else a factory takes, such as tuning knobs, changes nothing of them."""

from __future__ import annotations

from collections.abc import Iterator

from tl2npu.kernel.access import scalars
from tl2npu.kernel.model import Copy, Kernel, Loop, Op, Stmt, Store
from tl2npu.kernel.symbolic import Sym


def variables(kernel: Kernel) -> frozenset[str]:
    """The names in sizes of buffers and in every integer of the launch and the statements."""
    found = {name for buffer in kernel.buffers.values() for extent in buffer.shape for name in extent.names}
    found |= {name for extent in (kernel.launch.grid if kernel.launch is not None else ()) for name in extent.names}
    return frozenset(found | {name for stmt in kernel.walk() for value in integers(stmt) for name in value.names})


def integers(stmt: Stmt) -> Iterator[Sym]:
    """Every integer in a statement, those of indices among them."""
    if isinstance(stmt, Loop):
        for item in stmt.ranges:
            yield from (item.start, item.extent)
            yield from () if item.step is None else (item.step,)
        yield from () if stmt.num_stages is None else (stmt.num_stages,)
    own = (stmt.src, stmt.dst) if isinstance(stmt, Copy) else (stmt.target,) if isinstance(stmt, Store) else ()
    for operand in (operand for _, operand in stmt.operands) if isinstance(stmt, Op) else own:
        for dim in operand.dims or ():
            yield dim.lo
            yield from () if dim.extent is None else (dim.extent,)
    yield from (scalar.sym for scalar in scalars(stmt))
