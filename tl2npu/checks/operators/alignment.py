"""TL700, TL701: starts, rows and lengths of accesses to UB that are no whole blocks of 32 bytes.

What each access asks for is in :mod:`tl2npu.kernel.memory.alignment`. Sizes come from the file, from every known call
of the factory, or from a proof; what nobody says is a condition that TL701 names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tl2npu.checks.operators.vector_form import ParallelStore, parallel_store
from tl2npu.checks.row_split.split import Split, split_of
from tl2npu.checks.subject import PTO, Finding, Placed, Subject
from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import accesses, side_of
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.callers import Caller
from tl2npu.kernel.handover import extents_of
from tl2npu.kernel.memory.alignment import BLOCK, Demand, Judge, Verdict, of_copy, rows, shown, start
from tl2npu.kernel.model import Copy, Memory, Op, Operand, Side
from tl2npu.kernel.symbolic import Sym, const, product, var

_COMPARE = 256
"""Bytes: ``AscendC::Compare`` takes whole repeats of the vector unit (codegen_ascend.cc:CompareCodegen)."""


def check(subject: Subject) -> Iterator[Finding]:
    """One finding for each statement or tile, and one for each condition that nobody answers."""
    split = split_of(subject) if subject.is_split else None
    judge = Judge.of(subject.file, subject.located, subject.kernel, subject.callers, subject.late)
    told: set[object] = set()
    asked: list[tuple[Placed, Demand, Verdict]] = []
    for placed in subject.statements:
        for whole in _demands(subject, placed):
            demand = _halved(whole, split) if split is not None else whole
            verdict, caller = judge.judge(demand, placed.stmt)
            if verdict.holds is None and demand.what == "end":
                continue  # who loads a part of unknown size seldom keeps something right behind it
            if verdict.holds is None:
                asked.append((placed, demand, verdict))
            elif not verdict.holds:
                finding = _finding(placed, demand, verdict, caller, half=demand is not whole)
                key = (id(finding.node), demand.what)
                if key not in told:
                    told.add(key)
                    yield finding
    yield from _conditions(asked)


def _conditions(asked: Sequence[tuple[Placed, Demand, Verdict]]) -> Iterator[Finding]:
    """TL701: what has to be a multiple of what; names first, and nothing that follows from what is said of them."""
    needed: dict[Sym, tuple[int, Placed, Demand, bool]] = {}
    for placed, demand, verdict in asked:
        for factor, number in verdict.factors:
            before = needed.get(factor)
            if before is None or before[0] < number:
                where = (placed, demand) if before is None else before[1:3]
                needed[factor] = (number, *where, verdict.bytes)
    names = {str(factor): number for factor, (number, *_) in needed.items() if factor == var(str(factor))}
    for factor, (number, placed, demand, in_bytes) in needed.items():
        follows = {n: names[n] * var(n) for n in factor.variables() if n in names and factor != var(n)}
        if follows and all(count % number == 0 for _, count in factor.substitute(follows).terms):
            continue
        what = f"rows of `{demand.operand.buffer.name}`" if demand.what == "rows" else f"`{code(demand.operand.node)}`"
        unit = "" if in_bytes else f" elements of `{demand.dtype}`"
        count = f"{number}" if in_bytes else f"{demand.block} bytes"
        message = f"`{shown(factor)}`{unit} must be a multiple of {count}"
        node = demand.operand.buffer.node if demand.what == "rows" else placed.stmt.node
        yield Finding("TL701", node, f"{message}: the NPU accesses {what} in blocks of {demand.block} bytes")


def _halved(demand: Demand, split: Split) -> Demand:
    """A length under ``threads=2``: that of the half of each vector core (TL830 says it of comparisons)."""
    buffer = demand.operand.buffer
    if (
        demand.what != "length"
        or demand.row
        or demand.block != BLOCK
        or not split.has_rows(buffer)
        or buffer not in split.halved
    ):
        return demand
    return demand.changed(demand.elements // 2)


def _demands(subject: Subject, placed: Placed) -> Iterator[Demand]:
    stmt = placed.stmt
    if isinstance(stmt, Copy):
        yield from of_copy(stmt)
        if subject.target == PTO and {stmt.src.buffer.memory, stmt.dst.buffer.memory} == {Memory.UB}:
            # executed: pto cuts conversions, too, into rows of whole blocks
            for side in (stmt.src, stmt.dst) if stmt.src.buffer.dtype != stmt.dst.buffer.dtype else ():
                extents = extents_of(side) or side.buffer.shape
                yield from rows(side, extents[-1], product(extents[:-1]))
    elif isinstance(stmt, Op):
        yield from _of_operator(stmt)
    else:
        store = parallel_store(subject, placed)
        if store is not None and store.form != "scalar":
            yield from _of_store(subject, store)


def _of_operator(stmt: Op) -> Iterator[Demand]:
    """Vector instructions: the address of every tile; whole rows for reductions, whole repeats for comparisons."""
    if stmt.op.kind in (Kind.DEBUG, Kind.ANNOTATION, Kind.SYNC) or side_of(stmt) is not Side.VECTOR:
        return
    tiles = [access.operand for access in accesses(stmt) if not access.element]
    for operand in tiles:
        yield from start(operand)
        extents = extents_of(operand)
        if extents and stmt.op.kind is Kind.ATOMIC:
            yield from rows(operand, extents[-1], product(extents[:-1]))
    source = stmt.args.get("buffer")
    if stmt.op.kind is Kind.REDUCE and isinstance(source, Operand) and source in tiles:
        extents = extents_of(source) or ()
        if len(extents) > 1 and extents[-1] != const(1):
            yield from rows(source, extents[-1], product(extents[:-1]))
    compared = stmt.args.get("src0")
    if stmt.op.name == "tile.compare" and isinstance(compared, Operand) and compared in tiles:
        extents = extents_of(compared)
        if extents:
            yield Demand(compared, "length", product(extents), compared.buffer.dtype, _COMPARE)


def _of_store(subject: Subject, store: ParallelStore) -> Iterator[Demand]:
    """A vectorised store of ``T.Parallel``: one instruction for the tile (``vector``) or for each row (``rows``)."""
    inner, outer = store.inner, store.outer
    zero = [inner] if outer is None else [outer, inner]
    target = store.store.target
    if store.value.kind == "load" and _is_scalar_loop(subject, target, store.value.loads):
        return
    for operand in (target, *store.value.loads):
        if not any(dim.lo.depends_on(str(inner.var)) for dim in operand.dims or ()):
            continue
        if operand.buffer.memory is Memory.GM:
            yield from _through_tile(store, operand)
            continue
        yield from start(operand, zero)
        in_rows = outer is not None and any(dim.lo.depends_on(str(outer.var)) for dim in operand.dims or ())
        # pto cuts the flat count into whole rows: 8 rows of 63 float32 became 7 of 64 (executed: the last one is wrong)
        if in_rows and outer is not None and (store.form == "rows" or subject.target == PTO):
            yield from rows(operand, operand.buffer.shape[-1], outer.extent)
    sources = [load for load in store.value.loads if load.buffer.memory is Memory.UB]
    if store.value.kind == "load" and sources and target.buffer.memory is Memory.UB:
        count = product([item.extent for item in zero])
        yield Demand(target, "length", count, target.buffer.dtype, beside=sources[0].buffer.dtype)


def _is_scalar_loop(subject: Subject, target: Operand, loads: Sequence[Operand]) -> bool:
    """A copy between tiles with rows of different length is left to the scalar unit."""
    return any(
        len(target.buffer.shape) > 1
        and len(load.buffer.shape) > 1
        and load.buffer.memory is target.buffer.memory is Memory.UB
        and subject.known_different(load.buffer.shape[-1], target.buffer.shape[-1])
        for load in loads
    )


def _through_tile(store: ParallelStore, operand: Operand) -> Iterator[Demand]:
    """An element of global memory: the compiler copies the rows of the loop into a tile, or out of one."""
    tiles = [o for o in (store.store.target, *store.value.loads) if o.buffer.memory is Memory.UB]
    if store.outer is not None and tiles:
        yield from rows(tiles[0], store.inner.extent, store.outer.extent)


def _finding(placed: Placed, demand: Demand, verdict: Verdict, caller: Caller, *, half: bool) -> Finding:
    text, name = code(demand.operand.node), demand.operand.buffer.name
    given = sorted({n for n in demand.elements.variables() if n in caller.values and n.isidentifier()})
    sizes = f" with {', '.join(f'{n}={caller.values[n]}' for n in given)}" if given else ""
    if demand.what == "start":
        message = f"`{text}` starts {verdict.size % BLOCK} bytes after a {BLOCK}-byte boundary{sizes}"
    elif demand.what == "end":
        rest = -verdict.size % BLOCK
        message = f"`{text}` ends inside a {BLOCK}-byte block{sizes}: the load overwrites the next {rest} bytes"
        return Finding("TL700", placed.stmt.node, message, "warning")
    elif demand.what == "rows":
        message = f"a row of `{name}` is {verdict.size} bytes{sizes}, not a multiple of {BLOCK}"
    else:
        message = f"{'half of ' * half}`{text}` is {verdict.size} bytes{sizes}, not a multiple of {demand.block}"
        if demand.block == BLOCK:
            message += f": the copy drops the last {verdict.size % BLOCK}"
    node = demand.operand.buffer.node if demand.what == "rows" else placed.stmt.node
    if verdict.some:
        return Finding("TL700", node, f"{message}; other configurations are aligned", "warning")
    both = f"give `{name}` a multiple of {2 * demand.block} bytes, and each block as many rows, or use `threads=1`"
    return Finding("TL700", node, message, help=both if half else "")
