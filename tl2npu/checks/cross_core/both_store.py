"""TL777: both vector cores store to the same place what differs between them.

Outside of Developer mode each of the two vector cores of a block runs the whole program, and only ``vid`` tells them
apart: of two tiles that are loaded with ``vid`` in the index and stored without it, one is lost.
"""

from __future__ import annotations

from collections.abc import Iterator

from tl2npu.checks.operators.samples import Sampler
from tl2npu.checks.subject import Finding, Placed, Subject
from tl2npu.kernel.access import accesses
from tl2npu.kernel.expressions import code
from tl2npu.kernel.flags.terms import is_known
from tl2npu.kernel.model import Buffer, Copy, Memory, Opaque, Operand
from tl2npu.kernel.symbolic import Sym


def check(subject: Subject) -> Iterator[Finding]:
    """The first such store to each tensor."""
    vid = subject.kernel.vid
    if vid is None or subject.kernel.launched.threads is not None:
        return
    sampler = Sampler(subject)
    apart: dict[Buffer, Operand] = {}  # tiles that differ between the vector cores, each with the load that makes it so
    told: set[Buffer] = set()
    for placed in subject.statements:
        stmt = placed.stmt
        if isinstance(stmt, Opaque):
            return
        _follow(sampler, placed, vid, apart)
        if not isinstance(stmt, Copy) or stmt.dst.buffer.memory is not Memory.GM or stmt.dst.buffer in told:
            continue
        load = apart.get(stmt.src.buffer) if stmt.src.buffer.memory is Memory.UB else None
        if load is not None and _is_alike(sampler, placed, (*_indices(stmt.dst), *_indices(stmt.src))):
            told.add(stmt.dst.buffer)
            text = f"both vector cores store to `{code(stmt.dst.node)}`, each its own `{stmt.src.buffer.name}`"
            yield Finding("TL777", stmt.node, f"{text}: `{code(load.node)}` depends on `{vid.partition('@')[0]}`")


def _indices(operand: Operand) -> list[Sym]:
    return [sym for dim in operand.dims or () for sym in (dim.lo, dim.extent) if sym is not None]


def _is_alike(sampler: Sampler, placed: Placed, syms: tuple[Sym, ...]) -> bool:
    """Whether a statement certainly is the same one on both vector cores: neither its place nor its loops, nor the
    conditions around it can depend on the core."""
    kernel, place = sampler.subject.kernel, sampler.place(placed)
    every = [place.bounds.expanded(sym) for sym in (*syms, *(branch.cond.sym for branch, _ in placed.conditions))]
    names = frozenset[str]().union(*(place.decisive(sym) for sym in every))
    own = {kernel.vid, kernel.core}
    settled = {kernel.cid, *place.bounds.ranges}
    known = all(name not in own and (name in settled or "@" not in name) for name in names)
    return known and all(is_known(atom) for sym in every for atom in sym.atoms())


def _follow(sampler: Sampler, placed: Placed, vid: str, apart: dict[Buffer, Operand]) -> None:
    """What a statement writes differs where what it reads does, or where it is read with ``vid`` in the index."""
    stmt = placed.stmt
    found = next((apart[a.operand.buffer] for a in accesses(stmt) if a.reads and a.operand.buffer in apart), None)
    if isinstance(stmt, Copy) and stmt.src.buffer.memory is Memory.GM:
        expanded = sampler.place(placed).bounds.expanded
        if any(vid in expanded(dim.lo).names for dim in stmt.src.dims or ()):
            found = stmt.src
    for access in accesses(stmt):
        if access.writes and access.operand.buffer.is_tile:
            if found is not None:
                apart[access.operand.buffer] = found
            elif access.operand.is_whole and not placed.conditions:
                apart.pop(access.operand.buffer, None)
