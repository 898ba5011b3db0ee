"""TL138: ``threads=1 if M % 2 else 2`` where nothing but a call of the file says whether the rows of a tile are even.

``threads=2`` halves every tile, and of an odd number of rows the last one would be lost (facts 1). The expression is
Python's: the front end evaluates the arguments of a launch when the factory is called.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import libcst as cst

from tl2npu.kernel.bindings import assigned_names
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Buffer, Memory, Op, Scalar
from tl2npu.kernel.symbolic import product
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import factor, with_threads
from tl2npu.source.edits import Edits
from tl2npu.source.tree import names_in, nodes_of

_ODD = "# TL138: an odd number of rows cannot be halved: one vector core has them all"


def ask(job: Job, tiles: Iterable[Buffer]) -> bool:
    """Let the launch decide by the rows of these tiles; False where it cannot. Checks judge both numbers of threads.

    With ``threads=1`` the number of the vector core has one value, 0, and the compiler leaves it out (95acbd7f, text of
    a kernel for both targets read).
    """
    launch = job.kernel.launch
    rows = [buffer.shape_nodes[0] for buffer in tiles if buffer.shape[0].constant is None]
    if launch is None or launch.threads is None or not rows:
        return False
    inside = assigned_names(job.kernel.node.body)
    if any(name.value in inside for node in rows for name in names_in(node)):
        return False
    sizes = list(dict.fromkeys(map(code, rows)))
    if not _starts_only(job, sizes):
        return False
    odd = " or ".join(f"{factor(size)} % 2" for size in sizes)
    edits = Edits(job.file.index)
    edits.replace(launch.node, with_threads(launch, cst.parse_expression(f"1 if {odd} else 2"), _ODD))
    said = " and ".join(f"`{size}`" for size in sizes)
    job.change("TL138", launch.node, f"threads=2 where {said} {'is' if len(sizes) == 1 else 'are'} even, else 1")
    job.apply(edits)
    return True


def _starts_only(job: Job, sizes: Sequence[str]) -> bool:
    """Half of the rows stands in the first row of a core, ``vid * (M // 2)``, and nowhere else, not as a number either.

    What counts rows, of whatever tile, would leave the one core with half of them.
    """
    core = str(job.kernel.core).partition("@")[0] if job.kernel.core is not None else None
    tiles = (buffer for buffer in job.kernel.buffers.values() if buffer.memory is Memory.UB)
    if core is not None and any(buffer.shape[0].constant is not None for buffer in tiles):
        return False
    if any(_takes_half(stmt) for stmt in job.kernel.walk() if isinstance(stmt, Op)):
        return False
    for half in nodes_of(job.kernel.launched.node.body, cst.BinaryOperation):
        if isinstance(half.operator, cst.FloorDivide) and code(half.right) == "2":
            above = job.file.index.parent(half)
            product = isinstance(above, cst.BinaryOperation) and isinstance(above.operator, cst.Multiply)
            starts = product and isinstance(above, cst.BinaryOperation) and code(above.left) == core
            if not starts and (core is not None or code(half.left) in {*sizes, *map(factor, sizes)}):
                return False
    return True


def _takes_half(stmt: Op) -> bool:
    """Whether an operator names a part of the rows of a tile, or half of its elements."""
    count = stmt.args.get("count")
    half = count.sym * 2 if isinstance(count, Scalar) else None
    tiles = [operand for _, operand in stmt.operands if operand.buffer.memory is Memory.UB]
    parts = (o.dims[0] for o in tiles if o.dims and not o.dims[0].covers(o.buffer.shape[0]))
    return any(not part.is_point for part in parts) or any(half == product(o.buffer.shape) for o in tiles)
