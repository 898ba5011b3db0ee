"""Which statements of ``T.Parallel`` become vector operations, and what the others may still call.

After ``src/transform/npu_loop_vectorize.cc`` and ``src/target/codegen_npuir_dev.cc`` of the npuir branch: a statement
that stands alone in its loops, stores through plain indices and reads contiguous elements becomes vector operations;
any other runs element by element, and there the code generator knows four functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.dialects.functions import FUNCTIONS, NPUIR_VECTOR
from tl2npu.dialects.npuir import OPERATORS
from tl2npu.kernel.model import Dim, Loop, Operand, Range, Store, in_parallel, walk_with_parents
from tl2npu.kernel.npuir_loops import in_steps_of_one
from tl2npu.passes.job import Job
from tl2npu.source.tree import calls_in

VECTOR_ONLY = NPUIR_VECTOR - {"exp", "log"} | {"if_then_else"}
"""Functions that only vector operations have."""
_TESTS = frozenset({"isfinite", "isinf", "isnan"})


def called(job: Job, node: cst.CSTNode) -> Iterator[tuple[cst.Call, str]]:
    """The calls of functions of TileLang in an expression, inner ones first."""
    found = [(call, name) for call in calls_in(node) if (name := job.file.names.operator(call.func))]
    yield from reversed(found)


def outer_loops(job: Job) -> Iterator[Loop]:
    """Every ``T.Parallel`` of the kernel's own text that stands in no other."""
    for stmt, parents in walk_with_parents(job.kernel.body):
        if not isinstance(stmt, Loop) or stmt.kind != "parallel" or not isinstance(stmt.node, cst.For) or stmt.via:
            continue
        if not in_parallel(parents):
            yield stmt


def needs_vector(job: Job, node: cst.CSTNode) -> bool:
    """Whether an expression calls a function that has no good code, or none, for single elements."""
    return any(name in VECTOR_ONLY or name in FUNCTIONS.keys() - {"exp", "log"} for _, name in called(job, node))


def without_lowering(name: str) -> bool:
    """True for a function that neither vector operations nor single elements have."""
    row = OPERATORS.get(name)
    lowered = row is None or bool(row.modes) or row.kind is not Kind.SCALAR
    return not lowered or name in _TESTS or (row is not None and name.startswith("__"))


def is_vector(stmt: Store, ranges: Sequence[Range], *, target: bool = True) -> bool:
    """Whether a store that stands alone in its loops becomes vector operations (the functions in it aside).

    ``target``: the indices that it stores to count too.
    """
    if not ranges or (target and not all(_plain(dim) for dim in stmt.target.dims or ())):
        return False
    return all(_readable(load, ranges) for load in stmt.value.loads)


def _plain(dim: Dim) -> bool:
    return isinstance(dim.node, (cst.Name, cst.Integer))


def _readable(load: Operand, ranges: Sequence[Range]) -> bool:
    """Whether elements that follow each other in the innermost loop follow each other in memory, or are one."""
    inner = ranges[-1].var.variables()
    places = [place for place, dim in enumerate(load.dims or ()) if dim.lo.variables() & inner]
    if not in_steps_of_one(load, ranges) or len(places) > 1:
        return False
    return not places or all(size.constant == 1 for size in load.buffer.shape[places[0] + 1 :])


def covers(operand: Operand, ranges: Sequence[Range]) -> bool:
    """Whether loops run over every element of the tile."""
    left = list(ranges)
    if not operand.buffer.is_tile:
        return False
    for dim, size in zip(operand.dims or (), operand.buffer.shape, strict=False):
        item = next((item for item in left if item.var == dim.lo), None)
        if item is None:
            if not (size.constant == 1 and dim.lo.is_zero):
                return False
            continue
        left.remove(item)
        if item.extent != size or not item.start.is_zero:
            return False
    return not left and len(operand.dims or ()) == len(operand.buffer.shape)
