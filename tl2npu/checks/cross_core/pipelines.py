"""TL746, TL796, TL873: ``T.Pipelined`` loops of one statement, of variables, and whose loads end with their tensor.

TL874 to TL879: those that hand tiles over between the cores.

Evidence: facts 2 (g7_pipe*, g9_*_p*, g9_rem32) and E23, measured with the compiler at 95acbd7f, and code that it
generates for ten small loops: rows read at ``2 * i``, statements of an ``if`` run twice, a name without its value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import libcst as cst

from tl2npu.checks.cross_core.channels import channels
from tl2npu.checks.operators.samples import Sampler
from tl2npu.checks.operators.starts import extents_of, moves
from tl2npu.checks.operators.vector_form import parallel_stores
from tl2npu.checks.subject import PTO, Finding, Subject
from tl2npu.kernel.access import accesses
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.configs import COMBINE
from tl2npu.kernel.model import Branch, Buffer, Let, Loop, Memory, Op, Stmt, walk
from tl2npu.kernel.ranges.numbers import number_of
from tl2npu.kernel.stages import (
    Part,
    Shared,
    Use,
    changed_variables,
    count_of_statements,
    flat,
    is_lost,
    overtaken,
    own_buffers,
    parts,
    shared,
    summed_axes,
)
from tl2npu.kernel.symbolic import const
from tl2npu.kernel.turns import TurnsReader, conditions_of_stages
from tl2npu.source.tree import argument

_FEWEST = 2
_BY_VERSION = ("tile.mul", "tile.add")
"""Their scalar is read in the version of the turn, that of all other operators in the first version."""


def check(subject: Subject) -> Iterator[Finding]:
    """Findings about every pipelined loop, and about those with a hand-over in them."""
    for stmt in subject.kernel.walk():
        staged = isinstance(stmt, Loop) and stmt.kind == "pipelined" and stmt.num_stages not in (None, const(0))
        if staged and isinstance(stmt, Loop) and count_of_statements(stmt.body) < _FEWEST:
            yield Finding("TL746", stmt.node, "a pipelined loop needs two statements or more")
    found: list[Loop] = []
    for channel in channels(subject):
        for loop in channel.writer.loops:
            if loop.kind == "pipelined" and loop not in found and loop.num_stages not in (None, const(0)):
                found.append(loop)
    yield from _planned(subject, found)
    for loop in found:
        several = loop.num_stages != const(1)
        if several:
            yield from _check_extent(subject, loop)
        yield from _check_kept(subject, loop)
        yield from _check_shared(subject, loop, several)
    for loop in found[1:]:
        if loop not in walk(found[0].body) and found[0] not in walk(loop.body):
            yield Finding("TL878", loop.node, "a kernel may have only one pipelined loop with cross-core transfers")


def _planned(subject: Subject, crossing: Sequence[Loop]) -> Iterator[Finding]:
    """The loops of one core: ``src/transform/pipeline_planning.cc``, ``inject_pipeline.cc``.

    A statement that reads global memory and writes a tile is a load. What a load has written, nothing behind it in the
    turn may write again, in whatever part of the tile.
    """
    for loop in subject.kernel.walk():
        if not isinstance(loop, Loop) or loop.kind != "pipelined":
            continue
        if loop in crossing and subject.is_on(COMBINE) is not False:
            continue
        if loop.num_stages in (None, const(0)):
            yield from _orders(subject, loop)
            continue
        for stmt in changed_variables(subject.kernel, loop)[:1]:
            text = f"`{code(stmt.node)}` assigns a variable in a pipelined loop, which the compiler does not take"
            yield Finding("TL796", stmt.node, text)
        for load, buffer, why in overtaken(loop, subject.kernel) if _runs_ahead(subject, loop) else ():
            text = f"this load runs turns ahead of the pipelined loop: `{buffer.name}` {why}"
            yield Finding("TL877", load.node, text, help="use `T.serial`, or a tile that only this loop uses")
            break
        loaded: dict[Buffer, Stmt] = {}
        for stmt in flat(loop.body):
            every = [access for inner in walk([stmt]) for access in accesses(inner)]
            written = [access.operand for access in every if access.writes and access.operand.buffer.is_tile]
            again = next((operand for operand in written if operand.buffer in loaded), None)
            if again is not None:
                text = f"`{again.buffer.name}` is loaded in this pipelined loop, and written again here"
                yield Finding("TL792", stmt.node, text)
                break
            if any(access.reads and access.operand.buffer.memory is Memory.GM for access in every):
                loaded |= {operand.buffer: stmt for operand in written}
        in_l1 = {tile for tile in loaded if tile.memory is Memory.L1}
        yield from _check_ends(subject, loop, in_l1 & own_buffers(loop, subject.kernel))


def _runs_ahead(subject: Subject, loop: Loop) -> bool:
    """Whether it has stages, and a second turn, for some sizes: two stages if one is not sure to be enough."""
    stages, extent = loop.num_stages or const(0), loop.ranges[0].extent
    known = [(number_of(stages, sizes) or 0, number_of(extent, sizes)) for sizes in subject.values]
    return any(depth > (stages != const(1)) and (turns is None or turns > 1) for depth, turns in known)


def _orders(subject: Subject, loop: Loop) -> Iterator[Finding]:
    """The lists of a loop that is planned by hand: a number for each statement, no order twice."""
    count = count_of_statements(loop.body)
    for name in ("order", "stage"):
        given = argument(loop.call, name) if loop.call is not None else None
        if not isinstance(given, cst.List):
            continue
        numbers = [subject.file.evaluator.sym(item.value, loop.env).constant for item in given.elements]
        if not numbers or None in numbers:
            continue
        if len(numbers) != count:
            text = f"`{name}` has {len(numbers)} numbers for {count} statements"
        elif name == "order" and len(set(numbers)) < len(numbers):
            text = f"`order` gives two statements the number {max(numbers, key=numbers.count)}"
        else:
            continue
        yield Finding("TL790", loop.node, f"T.Pipelined: {text}")


def _check_extent(subject: Subject, loop: Loop) -> Iterator[Finding]:
    item, stages = loop.ranges[0], loop.num_stages
    assert stages is not None
    if not item.start.is_zero:
        yield Finding("TL875", loop.node, f"the pipelined loop over `{item.name}` does not start at 0")
        return
    reader = TurnsReader(subject.kernel, subject.file.evaluator, subject.late)
    factory = subject.located.factory
    given = conditions_of_stages(loop, factory.node if factory is not None else None)
    turns = reader.of(loop, given) if subject.is_runtime(item.extent) else None
    extent = item.extent if turns is None or turns.tests else turns.count(subject.file.evaluator)
    if subject.is_runtime(extent):
        text = f"the trip count of the pipelined loop over `{item.name}` is known at run time only"
        yield Finding("TL876", loop.node, text)
        return
    for known in subject.values:
        count, depth = extent.evaluate(known), number_of(stages, known)
        if count is not None and depth is not None and depth > 0 and count % depth:
            text = f"{count} iterations in {depth} stages: the last {count % depth} would not run"
            yield Finding("TL875", loop.node, text)
            return


def _check_kept(subject: Subject, loop: Loop) -> Iterator[Finding]:
    """TL879: what the pass takes from the loop's body, and does not put where it was."""
    for stmt in flat(loop.body):
        if isinstance(stmt, Branch) and not subject.late.python_decides(stmt):
            text = "the compiler runs the statements of this `if` also outside of it: it is in a pipelined loop"
            yield Finding("TL879", stmt.node, text)
        elif isinstance(stmt, Let) and is_lost(stmt, subject.kernel):
            text = f"the parts of the pipelined loop do not know `{stmt.name}`: only whole numbers are written out"
            yield Finding("TL879", stmt.node, text)


def _check_shared(subject: Subject, loop: Loop, several: bool) -> Iterator[Finding]:
    found = parts(loop.body)
    every = shared(found, subject.kernel)
    for one in every:
        if several and one.is_state:
            why = "keeps its value for the next turn" if one.carried else "has no version for each stage"
            text = f"two parts of the pipelined loop use `{one.buffer.name}`, which {why}"
            yield Finding("TL877", loop.node, text)
            return
    yield from _check_elements(subject, found, every, several)
    if several:
        tiles = {one.buffer for one in every if one.inside and one.buffer.memory is Memory.L1}
        yield from _check_ends(subject, loop, tiles)


def _check_elements(
    subject: Subject, found: Sequence[Part], every: Sequence[Shared], several: bool
) -> Iterator[Finding]:
    """TL874: rows of a vector, in ``T.Parallel`` at twice their number, in most operators of the first version."""
    forms = {id(found.store): found.form for found in parallel_stores(subject)} if every else {}
    by_buffer = {one.buffer: one for one in every}
    for use in (use for part in found for use in part.uses):
        one = by_buffer.get(use.buffer)
        if one is None:
            continue
        versions, form = several and one.inside, forms.get(id(use.stmt))
        if (use.element and form == "rows") or (versions and (form == "scalar" or _is_first(use))):
            text = f"the compiler reads `{use.buffer.name}` at another element: parts of a pipelined loop share it"
            yield Finding("TL874", use.stmt.node, text)


def _is_first(use: Use) -> bool:
    return use.element and not (isinstance(use.stmt, Op) and use.stmt.op.name in _BY_VERSION)


def _check_ends(subject: Subject, loop: Loop, tiles: Collection[Buffer]) -> Iterator[Finding]:
    """TL873: a product sums over what a load that ends with its tensor leaves in one of ``tiles``.

    ``copy_gm_to_l1`` clears the rest of a tile only at address 0 of it, so that of several versions those behind the
    first keep an earlier turn's values (``codegen_ascend.cc``, ``need_clear``); target pto clears each.
    """
    if not tiles or subject.target == PTO:
        return
    sampler = Sampler(subject)
    for move in moves(subject):
        tile, tensor = move.inner.buffer, move.outer.buffer
        if tile not in tiles or loop not in move.placed.loops:
            continue
        pairs = list(zip(move.outer.dims or (), tensor.shape, extents_of(move), strict=False))
        sliced = [pair for pair in pairs if not pair[0].is_point] or pairs
        for dim, size, extent in (sliced[-axis] for axis in sorted(summed_axes(loop, tile)) if axis <= len(sliced)):
            for known in sampler.calls(move.placed, subject.values):
                depth, turns = number_of(loop.num_stages or const(0), known), number_of(loop.ranges[0].extent, known)
                if (depth or 0) < 2 or turns == 1:
                    continue
                where = sampler.find(move.placed, size - dim.lo - extent, known)
                if where is not None:
                    text = f"`{code(move.outer.node)}` ends with `{tensor.name}`{where}: with stages the rest of "
                    text += f"`{tile.name}` keeps values of an earlier turn, which the product adds"
                    remedy = "choose a tile that divides the tensor, or write `T.serial`"
                    yield Finding("TL873", move.placed.stmt.node, text, help=remedy)
                    return
