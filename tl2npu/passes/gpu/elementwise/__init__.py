"""Element-wise code in the form that the vector core has instructions for.

Every ``T.Parallel`` over tiles on the chip comes out as statements that the Ascend vectoriser takes (facts 3):
functions stand alone on an element, moved row vectors and numbers to the right, every statement has one element type,
loops run over whole rows, conditions are compare and select on tiles. What has none of these forms runs element by
element where that is right, and is refused where it is not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.callers import Values, callers_of
from tl2npu.kernel.named_types import NamedTypes, named_types
from tl2npu.passes.gpu.elementwise import scales, settled, truths, wholes
from tl2npu.passes.gpu.elementwise.algebra import Algebra
from tl2npu.passes.gpu.elementwise.body import items
from tl2npu.passes.gpu.elementwise.lowering import Lowering
from tl2npu.passes.gpu.elementwise.nest import Axis, Nest, nests
from tl2npu.passes.gpu.elementwise.places import Temporaries
from tl2npu.passes.gpu.elementwise.reading import Reading
from tl2npu.passes.gpu.elementwise.writing import Writer, parted
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import factor
from tl2npu.source.tree import nodes_of

_COMPARED = 64
_MESSAGES = {
    "TL112": "powers of two and rounded logarithms to base two are exact",
    "TL140": "split a function of an expression into two statements",
    "TL141": "moved row vectors and numbers to the right",
    "TL142": "wrote base e for base two",
    "TL143": "wrote `T.tile.max` or `T.tile.min` for a limit",
    "TL144": "converted the element type by a copy",
    "TL145": "wrote compare and select for a condition on elements",
    "TL146": "computed element by element: no vector instruction fits",
    "TL147": "inlined names inside T.Parallel, or stored them in tiles",
    "TL148": "copied a part of the columns into a separate tile",
    "TL149": "wrote a fill for a constant and a copy for a tile",
    "TL157": "divided by a tile, not by a rounded reciprocal",
    "TL158": "gave what needs no value of the row or column a loop of its own",
    "TL152": "wrote an operator on tiles for a function",
    "TL749": "added the opposite of a number that is negative",
    "TL751": "wrote a number in the type of the tile",
}


def rewrite(job: Job) -> None:
    """Rewrite all nests of a kernel; raises :class:`Blocked` for what has no form on the vector core."""
    truths.retype(job)
    found = list(nests(job.kernel))
    if not found:
        return
    factory = job.located.factory
    types = named_types(job.module, job.located.node if factory is None else factory.node)
    certain, asked = settled.names(job, found, types)
    work = _lowered(job, found, types, certain)
    tiles = {buffer.name for buffer in job.kernel.buffers.values() if buffer.dtype in asked}
    converted = tiles and any(tiles.intersection(re.findall(r"\w+", text)) for text in work.copies)
    if converted and len((other := _lowered(job, found, types, certain.union(asked))).copies) < len(work.copies):
        work = other
    else:
        asked = []
    writer = Writer(job)
    first: Nest | None = None
    for nest, lowering in work.lowered:
        for node, count in lowering.slowly:
            text = f"{count} elements are computed one by one in each iteration: no vector instruction fits"
            job.note("TL146", node, text, help=_by_groups(nest, node))
        for node, text in lowering.doubts:
            job.note("TL114", node, f"`{text}`: rounding may give another integer on the NPU than on a GPU")
        for node, text, dtype in lowering.unrounded:
            text = f"wrote float32 for `{text}`, which a GPU rounds to `{dtype}`: the result is more exact"
            job.note("TL144", node, text, done=True)
        steps = scales.named(lowering.steps)
        if writer.nest(nest, steps):
            first = first or nest
            stmt = parted(steps)
            if stmt is not None:
                lowering.codes.setdefault("TL158", stmt.node)
            for rule, node in sorted(lowering.codes.items()):
                job.change(rule, node, _MESSAGES[rule])
    if first is not None:
        writer.allocate(work.temporaries, first)
        scales.fold(job, writer.edits, work.folded)
        job.apply(writer.edits)
        settled.assert_types(job, asked)


def _by_groups(nest: Nest, node: cst.CSTNode) -> str:
    """How to write a nest of which an index is ``j // group``, with rows of one group; empty for another one."""
    column = nest.columns
    for part in nodes_of(node, cst.BinaryOperation):
        of_column = isinstance(part.left, cst.Name) and part.left.value == column.name
        if of_column and isinstance(part.operator, cst.FloorDivide):
            size, names = code(part.right), ", ".join(nest.names)
            inner = f"for {names} in T.Parallel({', '.join((*nest.extents[:-1], size))}):"
            outer = f"for g in T.serial({factor(column.text)} // {factor(size)}):"
            return (
                f"where `{size}` divides `{column.text}`, write `{outer}` around `{inner}`, "
                f"with `g` for `{code(part)}` and `g * {factor(size)} + {column.name}` for every other `{column.name}`"
            )
    return ""


@dataclass(frozen=True)
class _Work:
    """What the nests become, with the constants that lose a factor for it."""

    temporaries: Temporaries
    lowered: list[tuple[Nest, Lowering]]
    folded: dict[str, cst.Assign]

    @property
    def copies(self) -> list[str]:
        """The statements that are copies: conversions, for the most part."""
        every = [*self.temporaries.prelude, *(text for _, one in self.lowered for text in scales.texts(one.steps))]
        return [text for text in every if text.startswith("T.copy(")]


def _lowered(job: Job, found: list[Nest], types: NamedTypes, float32: frozenset[str]) -> _Work:
    """The nests where these names of types are float32."""
    constants = scales.constants(job)
    callers = callers_of(job.file, job.located)
    calls = [_defaults(job), *(caller.values for caller in callers)]
    known = (item for caller in callers for item in caller.known.items())
    negative = frozenset(name for name, value in known if isinstance(value, (int, float)) and value < 0)
    every = [item for nest in found for item in items(nest, Reading(job, nest, types, float32))]
    folded = scales.foldable(job, every)
    whole, approximate = wholes.tiles(job.kernel, every)
    while True:
        temporaries, lowered = Temporaries(job), list[tuple[Nest, Lowering]]()
        for nest in found:
            reading = Reading(job, nest, types, float32, whole)
            lowering = Lowering(nest, reading, temporaries, Algebra(frozenset(folded), constants, negative))
            lowering.single = _is_one_turn(nest, calls)
            lowering.one_row = nest.rows is not None and 1 in _sizes(nest.rows, calls)
            lowering.is_long = _is_long(nest, calls)
            lowering.approximate = approximate
            lowering.lower(items(nest, reading))
            lowered.append((nest, lowering))
        missed = scales.missed(folded, [lowering.steps for _, lowering in lowered], temporaries.prelude)
        if not missed:
            return _Work(temporaries, lowered, folded)
        folded = {name: node for name, node in folded.items() if name not in missed}


def _is_one_turn(nest: Nest, calls: Sequence[Values]) -> bool:
    """Whether the innermost loop has one turn for a caller in the file or by a default, or may for all that is known.

    A second axis without a size is taken for more than one element: rows are long.
    """
    sizes = _sizes(nest.columns, calls)
    return 1 in sizes or (nest.rows is None and not any(sizes))


def _is_long(nest: Nest, calls: Sequence[Values]) -> bool:
    """Whether the last axis is a multiple of 256 bytes in all calls: what a comparison takes at a time."""
    known = [size for size in _sizes(nest.columns, calls) if size is not None]
    return bool(known) and all(size % _COMPARED == 0 for size in known)


def _sizes(loop: Axis, calls: Sequence[Values]) -> list[int | None]:
    """The numbers of turns of a loop that calls give, and defaults; None where a call leaves it open."""
    constant = loop.extent.constant
    return [constant] if constant is not None else [loop.extent.evaluate(values) for values in calls]


def _defaults(job: Job) -> Values:
    """The numbers that are defaults of the factory's parameters."""
    factory = job.located.factory
    params = nodes_of(factory.node.params, cst.Param) if factory is not None else ()
    return {
        param.name.value: param.default.evaluated_value for param in params if isinstance(param.default, cst.Integer)
    }
