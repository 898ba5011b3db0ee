"""Copies between cube and vector core become trips through global memory (AscendWorkspaceReduction).

``T.copy(l0c, ub)`` and ``T.copy(ub, l1)`` turn into a store to a fresh ``workspace_<n>``; a read-back is put before a
reader of the destination: for the compiler before the first whole-tile call, in text order, that reads it
(legacy-to-developer 2.4), for the author once for every time the copy is made.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

from tl2npu.dialects.ascend import OPERATORS
from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.ir.buffer import Buffer, Region, whole
from tl2npu.simulator.ir.expr import Value, Var, binary
from tl2npu.simulator.ir.parts import substitute
from tl2npu.simulator.ir.stmt import For, If, Launch, Op, Parallel, Stmt, Store
from tl2npu.simulator.ir.stmt import walk as statements
from tl2npu.simulator.lowering import parallel_forms
from tl2npu.simulator.lowering.memories import buffer_of
from tl2npu.simulator.lowering.places import Place, insert_before, loops, path, turns
from tl2npu.simulator.lowering.uses import loads, values


@dataclass(frozen=True)
class HandOver:
    """One copy between the cores: the statement (now a store to the workspace), its source and destination buffers."""

    stmt: Op
    source: Buffer
    target: Buffer
    workspace: Buffer


def reduce_workspaces(
    body: list[Stmt], launch: Launch, vid: Var | None, compiler: bool, gathered: set[int]
) -> list[Buffer]:
    """Rewrite the hand-overs of a program in place; the workspaces that were added.

    ``vid``: the vector core's number where tiles are split between two of them, else None. ``compiler``: place the
    read-backs where the compiler does, else where the author means them. ``gathered``: UB buffers that hold whole rows
    although tiles are split. Raises SimulatorError where one buffer takes part in two hand-overs of a kind.
    """
    found: list[HandOver] = []
    vectorised = parallel_forms.any_vectorised(body)
    for stmt in [s for s in statements(body) if isinstance(s, Op) and s.name == "copy"]:
        source, target = buffer_of(stmt.args.get("src")), buffer_of(stmt.args.get("dst"))
        if source is None or target is None or (source.memory, target.memory) not in (("l0c", "ub"), ("ub", "l1")):
            continue
        for other in found:
            if other.source is source or other.target is target:
                raise SimulatorError(
                    f"{source.name} -> {target.name}: a buffer is in two hand-overs between cube and vector core "
                    f"(the other one is at {other.stmt.site}); the compiler rejects this "
                    "(Mismatch in sync points) or mixes them up",
                    stmt.site,
                )
        stored = _stored(stmt, source, target, launch, vid, len(found) + 1, gathered)
        if compiler and not vectorised:
            _zn_rows(stmt, stored.workspace, launch, vid)
        found.append(stored)
    stores = {id(handover.stmt) for handover in found}
    for handover in found:
        _read_back(body, handover, launch, vid, stores if compiler else None)
    return [h.workspace for h in found]


def _stored(
    stmt: Op, source: Buffer, target: Buffer, launch: Launch, vid: Var | None, number: int, gathered: set[int]
) -> HandOver:
    """The copy becomes a store to its workspace."""
    tile = source if source.memory == "l0c" else target
    if tile.ndim != 2:
        raise SimulatorError(f"{tile.name}: a hand-over between the cores expects a 2D tile", stmt.site)
    dtype = target.dtype
    workspace = Buffer(f"workspace_{number}", (launch.extents[0], *tile.shape), dtype, "global", line=stmt.site.line)
    block = launch.blocks[0]
    if source.memory == "l0c":
        place = Region(workspace, (block, 0, 0), (1, *tile.shape), (False, True, True))
    else:
        destination = stmt.args["dst"]
        starts = destination.starts if isinstance(destination, Region) else destination.indices
        extents = destination.extents if isinstance(destination, Region) else (1,) * (2 - source.ndim) + source.shape
        row: Value = starts[0]
        rows: Value = extents[0]
        if vid is not None:
            half = binary("//", tile.shape[0], 2)
            row = binary("+", row, binary("*", vid, half))
            if source.number not in gathered:
                rows = source.shape[0] if source.ndim == 2 and extents[0] == tile.shape[0] else extents[0]
        place = Region(workspace, (block, row, starts[1]), (1, rows, extents[1]), (False, True, True))
    stmt.args = {**stmt.args, "dst": place}
    return HandOver(stmt, source, target, workspace)


def _zn_rows(stmt: Op, workspace: Buffer, launch: Launch, vid: Var | None) -> None:
    """Rows of L1 written one by one, in a kernel without a vectorised ``T.Parallel``.

    The L1 tile then still has its zN layout when the offset of a row is computed, 16 elements for each row, and that
    offset is used in the row-major workspace: the rows overlap (R-GATHER-LAYOUT, E80).
    """
    place = stmt.args["dst"]
    rows, columns = workspace.shape[1:]
    if place.extents[1] != 1 or rows == 1:
        return
    size = binary("*", rows, columns)
    local = place.starts[1]
    base = binary("*", launch.blocks[0], size)
    if vid is not None:
        half = binary("//", rows, 2)
        local = substitute(local, {vid: 0})
        base = binary("+", base, binary("*", binary("*", vid, half), columns))
    flat = Buffer(workspace.name, (binary("*", workspace.shape[0], size),), workspace.dtype, "global", alias=workspace)
    start = binary("+", base, binary("+", binary("*", local, 16), place.starts[2]))
    stmt.args = {**stmt.args, "dst": Region(flat, (start,), (place.extents[2],), (True,))}


def _read_back(body: list[Stmt], handover: HandOver, launch: Launch, vid: Var | None, stores: set[int] | None) -> None:
    """``stores``: the copies that are stores to workspaces now, for the compiler no readers; None: as it is meant."""
    target, workspace = handover.target, handover.workspace
    row: Value = 0
    if vid is not None and target.memory == "ub":
        row = binary("*", vid, target.shape[0])
    extents = (1, *target.shape)
    source = Region(workspace, (launch.blocks[0], row, 0), extents, (False, True, True))
    back = Op("copy", {"src": source, "dst": whole(target)}, site=handover.stmt.site)
    if stores is not None:
        _before_first_call(body, target, back, stores)
    else:
        _for_every_turn(body, handover, back)


def _before_first_call(body: list[Stmt], target: Buffer, back: Op, stores: set[int]) -> None:
    """The compiler's place; nowhere if no call reads the destination (then it is read unwritten)."""
    for stmt in statements(body):
        if isinstance(stmt, Op) and stmt is not back and id(stmt) not in stores and _call_reads(stmt, target):
            insert_before(path(body, stmt)[-1], [back])
            return
        if isinstance(stmt, Parallel) and _reads(stmt, target):
            kind = parallel_forms.form(stmt)
            if kind == parallel_forms.VECTOR:
                insert_before(path(body, stmt)[-1], [back])
                return
            if kind == parallel_forms.ROWS:
                _into_rows(path(body, stmt)[-1], stmt, back)
                return


def _into_rows(place: Place, stmt: Parallel, back: Op) -> None:
    """A nest that is a loop over rows gets the read-back into that loop."""
    row, column = stmt.vars
    inner = replace(stmt, vars=(column,), extents=stmt.extents[1:])
    loop = For(row, 0, stmt.extents[0], [back, inner], site=stmt.site)
    at = next(n for n, s in enumerate(place.block) if s is stmt)
    place.block[at] = loop


def _call_reads(stmt: Op, target: Buffer) -> bool:
    """Whether the compiler sees the call read the buffer (the read bit of its access pointer)."""
    known = OPERATORS.get(stmt.name)
    for name, value in stmt.args.items():
        if isinstance(value, Region) and value.buffer is target:
            param = known.param(name) if known is not None else None
            if param is None or "r" in param.mask:
                return True
    return False


def _reads(stmt: Stmt, target: Buffer) -> bool:
    """Whether the statement or one in it reads the buffer, in whatever way."""
    for inner in statements([stmt]):
        if isinstance(inner, Op):
            known = OPERATORS.get(inner.name)
            for name, value in inner.args.items():
                param = known.param(name) if known is not None else None
                reads = param is None or param.role.value not in ("write",)
                if buffer_of(value) is target and reads:
                    return True
        for value in values(inner):
            if any(load.buffer is target for load in loads(value)):
                return True
    return False


def _for_every_turn(body: list[Stmt], handover: HandOver, back: Op) -> None:
    """The author's place: as often as the copy is made, outside of the loops that only the reader is in.

    The text order of the two cores is no order in time, so a reader may stand in front of the copy; but not where the
    tile holds something else by then.
    """
    writer = path(body, handover.stmt)
    made = loops(writer)
    levels = {turns(made[:depth]) for depth in range(len(made) + 1)}
    around = {id(p.stmt) for p in writer[:-1]}
    everything = list(statements(body))
    at = next(n for n, stmt in enumerate(everything) if stmt is handover.stmt)
    held = any(_writes(stmt, handover.target) for stmt in everything[:at])
    for stmt in everything[at + 1 :] if held else everything:
        if (
            stmt is handover.stmt
            or not isinstance(stmt, (Op, Store, Parallel, If))
            or not _own_read(stmt, handover.target)
        ):
            continue
        reader = path(body, stmt)
        place = reader[0]
        nest: list[For] = []
        for step, following in itertools.pairwise(reader):
            if isinstance(step.stmt, For):
                nest.append(step.stmt)
                if turns(nest) not in levels:
                    break
            elif id(step.stmt) not in around:
                break
            place = following
        insert_before(place, [back])
        return


def _writes(stmt: Stmt, target: Buffer) -> bool:
    """Whether the statement itself writes the buffer."""
    if not isinstance(stmt, Op):
        return isinstance(stmt, Store) and stmt.buffer is target
    known = OPERATORS.get(stmt.name)
    params = [(known.param(name), value) for name, value in stmt.args.items()] if known is not None else []
    return any(param is not None and "w" in param.mask and buffer_of(value) is target for param, value in params)


def _own_read(stmt: Stmt, target: Buffer) -> bool:
    if isinstance(stmt, If):
        return any(load.buffer is target for load in loads(stmt.condition))
    return _reads(stmt, target)
