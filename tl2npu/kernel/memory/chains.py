"""Chains of products: the gemms that add up in one accumulator between a start and the first use of the sum.

On the cube core a chain starts with ``init`` and ends with the copy of the sum out of L0C. Where the accumulator had a
value before that is not zero, the sum of the chain is added to that value by the vector cores.
"""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.access import accesses, touches
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.memory.roles import Site, Uses, is_zero_fill
from tl2npu.kernel.model import Branch, Buffer, Kernel, Loop, Op, Scalar, Stmt, walk
from tl2npu.kernel.ranges.trip_count import TripCounts


@dataclass(frozen=True, eq=False)
class Chain:
    """``gemms`` in text order; the first starts with ``init`` (source text). The sum is complete after ``anchor``.

    ``zero`` is the fill that ``init`` makes superfluous; without ``init`` a product of zeros takes its place, for
    whether, and where, the sum starts is only known at run time. ``added``: it belongs to what the accumulator held.
    """

    buffer: Buffer
    gemms: tuple[Op, ...]
    init: str
    anchor: Stmt
    zero: Op | None
    added: bool


class Chains:
    """Finds the chains of one kernel. ``inside`` names accumulators whose sums must be taken in every iteration.

    ``by_zeros``: those that products of zeros may start.
    """

    def __init__(
        self,
        kernel: Kernel,
        places: dict[int, Site],
        trips: TripCounts,
        inside: frozenset[str],
        by_zeros: frozenset[Buffer] = frozenset(),
    ) -> None:
        self._kernel = kernel
        self._places = places
        self._trips = trips
        self._inside = inside
        self._startable = by_zeros

    def of(self, buffer: Buffer, use: Uses) -> list[Chain]:
        """The chains of an accumulator, in text order."""
        found: list[Chain] = []
        done: set[int] = set()
        for gemm in use.product:
            if id(gemm) in done:
                continue
            chain = self._chain(buffer, gemm)
            if chain.added and buffer in self._startable:
                chain = self._by_zeros(buffer, gemm) or chain
            done |= {id(item) for item in chain.gemms}
            found.append(chain)
        return found

    def _chain(self, buffer: Buffer, first: Op) -> Chain:
        site = self._places[id(first)]
        gemms = [first]
        for later in site.body[site.position + 1 :]:
            if touches(later, buffer):
                if not _accumulates(later, buffer):
                    break
                assert isinstance(later, Op)
                gemms.append(later)
        last = gemms[-1]
        given = first.args.get("clear_accum")
        if isinstance(given, Scalar) and not given.sym.is_zero:
            return self._cleared(buffer, gemms, given)
        top: Stmt = first  # the statement, in its list, that the chain so far is or stands in
        loops: list[Loop] = []
        while True:
            before = self._before(top, buffer)
            anchor = top if loops else last
            if before is not None:
                return self._started(buffer, gemms, loops, anchor, before)
            parent = self._places[id(top)].parent
            if parent is None:
                raise Blocked(
                    "TL134", first.node, f"the accumulator `{buffer.name}` is never cleared before its first gemm"
                )
            alone = isinstance(parent, Loop) and self._only(parent, buffer, gemms)
            if not alone or buffer.name in self._inside or not isinstance(parent, Loop):
                return self._added(buffer, gemms, loops, anchor, last)
            loops.append(parent)
            top = parent

    def _by_zeros(self, buffer: Buffer, first: Op) -> Chain | None:
        """The sum from a zero fill in front of loops to what does anything else, wherever its gemms are in between."""
        top: Stmt = first
        while (before := self._before(top, buffer)) is None:
            parent = self._places[id(top)].parent
            if parent is None:
                return None
            top = parent
        if not is_zero_fill(before) or not any(isinstance(stmt, Loop) for stmt in (top, *self._between(first, top))):
            return None
        assert isinstance(before, Op)
        site = self._places[id(top)]
        gemms: list[Op] = []
        anchor: Stmt = first
        for later in site.body[site.position :]:
            own = [s for s in walk([later]) if any(access.operand.buffer is buffer for access in accesses(s))]
            if not all(_accumulates(stmt, buffer) for stmt in own):
                break
            gemms += [stmt for stmt in own if isinstance(stmt, Op)]
            anchor = later if own else anchor
        return Chain(buffer, tuple(gemms), "", anchor, before, False) if first in gemms else None

    def _before(self, stmt: Stmt, buffer: Buffer) -> Stmt | None:
        """The last statement of the same block in front of one that touches a buffer."""
        site = self._places[id(stmt)]
        return next((s for s in reversed(site.body[: site.position]) if touches(s, buffer)), None)

    def _between(self, stmt: Stmt, outer: Stmt) -> tuple[Stmt, ...]:
        """The statements around one, from ``outer`` inwards."""
        parents = self._places[id(stmt)].parents
        return parents[parents.index(outer) :] if outer in parents else ()

    def _cleared(self, buffer: Buffer, gemms: list[Op], given: Scalar) -> Chain:
        if given.sym.constant == 1:
            return Chain(buffer, tuple(gemms), "True", gemms[-1], None, False)
        parent = self._places[id(gemms[0])].parent
        if isinstance(parent, Loop) and self._only(parent, buffer, gemms):
            return Chain(buffer, tuple(gemms), code(given.node), parent, None, False)
        raise Blocked(
            "TL134",
            gemms[0].node,
            f"the gemm clears `{buffer.name}` in some iterations, and the loop uses it elsewhere too",
        )

    def _started(self, buffer: Buffer, gemms: list[Op], loops: list[Loop], anchor: Stmt, before: Stmt) -> Chain:
        """The chain begins after ``before``, outside of ``loops`` (innermost first)."""
        init = _first_turn(loops)
        if is_zero_fill(before) and init is not None and all(self._trips.runs(loop) for loop in loops):
            assert isinstance(before, Op)
            return Chain(buffer, tuple(gemms), init, anchor, before, False)
        if isinstance(before, Branch) and not loops:
            chain = self._started_by_branch(buffer, gemms, before)
            if chain is not None:
                return chain
        return self._added(buffer, gemms, loops, anchor, gemms[-1])

    def _added(self, buffer: Buffer, gemms: list[Op], loops: list[Loop], anchor: Stmt, last: Op) -> Chain:
        init = _first_turn(loops)
        runs = all(self._trips.runs(loop) for loop in loops)
        if init is None or not runs or buffer.name in self._inside:
            return Chain(buffer, tuple(gemms), "True", last, None, True)
        return Chain(buffer, tuple(gemms), init, anchor, None, True)

    def _started_by_branch(self, buffer: Buffer, gemms: list[Op], before: Branch) -> Chain | None:
        """``if k == 0: T.clear(acc)`` right before the gemm, in a loop that does nothing else with ``acc``."""
        zeros = [stmt for stmt in before.then if touches(stmt, buffer)]
        if len(zeros) != 1 or not is_zero_fill(zeros[0]) or any(touches(s, buffer) for s in before.orelse):
            return None
        zero = zeros[0]
        parent = self._places[id(before)].parent
        assert isinstance(zero, Op)
        if not isinstance(before.node, cst.If) or not isinstance(parent, Loop):
            return None
        if not self._only(parent, buffer, [*gemms, zero]):
            return None
        return Chain(buffer, tuple(gemms), code(before.node.test), parent, zero, False)

    def _only(self, loop: Loop, buffer: Buffer, stmts: list[Op]) -> bool:
        """The loop touches the buffer by these statements only."""
        allowed = {id(stmt) for stmt in stmts}
        return all(
            id(stmt) in allowed
            for stmt in walk(loop.body)
            if any(access.operand.buffer is buffer for access in accesses(stmt))
        )


def _accumulates(stmt: Stmt, buffer: Buffer) -> bool:
    if not isinstance(stmt, Op) or stmt.op.name != "gemm":
        return False
    product, given = stmt.args.get("C"), stmt.args.get("clear_accum")
    others = [operand.buffer for name, operand in stmt.operands if name != "C"]
    plain = not isinstance(given, Scalar) or given.sym.is_zero
    return plain and buffer not in others and getattr(product, "buffer", None) is buffer


def _first_turn(loops: list[Loop]) -> str | None:
    """The condition that holds in the first iteration of all loops; None if it has no short text."""
    items = [item for loop in loops for item in loop.ranges if item.extent.constant != 1]
    if not items:
        return "True"
    if len(items) == 1:
        (item,) = items
        start = code(item.start_node) if item.start_node is not None else "0"
        return f"({item.name} == {start})"
    if all(item.start.is_zero for item in items):
        return f"({' + '.join(item.name for item in reversed(items))} == 0)"
    return None
