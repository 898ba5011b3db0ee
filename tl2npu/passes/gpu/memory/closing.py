"""Loops that hand tiles over in one direction only: the compiler does not order them (measured: g9_one_cv, g9_one_vc).

Producer-to-consumer flags are all that is inserted; in a loop with both directions the cycle orders the two cores, in a
loop with one the producer may overwrite a tile that was not taken yet. What closes it: an operand takes the way through
UB (measured: gx_tok); a token, a small product that the cube core makes behind the others, goes to the vector cores and
back; or, where there is no room for a token, the sum is taken in every iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tl2npu.kernel.memory.chains import Chain
from tl2npu.kernel.memory.roles import Site, Uses
from tl2npu.kernel.model import Branch, Buffer, Loop, Op, Stmt, walk


@dataclass(frozen=True, eq=False)
class Transfer:
    """A tile passes between the cores at a statement; ``to_vector``: from L0C to UB, else from UB to L1.

    ``around``: the loop over tasks that the launch will become, if its grid is known at run time only.
    """

    at: Stmt
    places: dict[int, Site]
    to_vector: bool
    around: tuple[Loop, ...] = ()

    @property
    def loops(self) -> list[Loop]:
        """The loops around it that may run more than once."""
        return [
            parent
            for parent in (*self.around, *self.places[id(self.at)].parents)
            if isinstance(parent, Loop) and any(item.extent.constant != 1 for item in parent.ranges)
        ]


@dataclass(frozen=True, eq=False)
class OpenLoop:
    """A loop in which some transfer has no answer, or none under the same conditions."""

    loop: Loop
    to_vector: bool


def open_loop(transfers: Sequence[Transfer]) -> OpenLoop | None:
    """The innermost loop with a transfer that none answers in the other direction."""
    found = [
        (-depth, OpenLoop(loop, transfer.to_vector))
        for transfer in transfers
        for depth, loop in enumerate(transfer.loops)
        if not _answered(loop.body, transfer, [o.at for o in transfers if o.to_vector != transfer.to_vector])
    ]
    return min(found, key=lambda item: item[0])[1] if found else None


def _answered(body: Sequence[Stmt], transfer: Transfer, others: Sequence[Stmt]) -> bool:
    """True if one of the others happens in every run of these statements in which the transfer does."""
    for stmt in body:
        if any(stmt is other for other in others):
            return True
        if isinstance(stmt, Branch):
            arms = (stmt.then, stmt.orelse)
            own = [arm for arm in arms if any(inner is transfer.at for inner in walk(arm))]
            if all(_answered(arm, transfer, others) for arm in own or arms):
                return True
        elif isinstance(stmt, Loop) and _answered(stmt.body, transfer, others):
            return True
    return False


@dataclass(eq=False)
class Closing:
    """What was decided so far: tiles ``routed`` through UB, sums taken ``inside`` their loops, copies that ``stay``.

    ``tokens``: the last statement with a gemm of every loop in which a token goes around, if ``by_zeros`` allows any.
    """

    by_zeros: bool = True
    routed: set[str] = field(default_factory=set)
    inside: set[str] = field(default_factory=set)
    stay: dict[str, Stmt] = field(default_factory=dict)
    tokens: list[Stmt] = field(default_factory=list)

    @property
    def decisions(self) -> tuple[int, ...]:
        """How many there are of each kind."""
        return len(self.routed), len(self.inside), len(self.stay), len(self.tokens)

    def close(self, opened: OpenLoop, chains: Sequence[Chain], uses: dict[Buffer, Uses]) -> bool:
        """Decide on a repair of a loop; False if there is none left."""
        inner = {id(stmt) for stmt in walk(opened.loop.body)}
        if opened.to_vector:
            return self._route(opened.loop, inner, uses)
        last = next((stmt for stmt in reversed(opened.loop.body) if _multiplies(stmt)), None)
        if self.by_zeros and last is not None:
            self.tokens.append(last)
            return True
        for chain in chains:
            outside = id(chain.anchor) not in inner
            if outside and any(id(gemm) in inner for gemm in chain.gemms) and chain.buffer.name not in self.inside:
                self.inside.add(chain.buffer.name)
                self.routed.add(chain.buffer.name)
                return True
        return False

    def _route(self, loop: Loop, inner: set[int], uses: dict[Buffer, Uses]) -> bool:
        """An operand of a gemm of the loop, best one that is loaded in the loop, goes through UB."""
        candidates = [
            (not any(id(copy) in inner for copy in use.loads), number, buffer)
            for number, (buffer, use) in enumerate(uses.items())
            if any(id(gemm) in inner for gemm in use.operand) and not use.product and buffer.name not in self.stay
        ]
        if not candidates:
            return False
        buffer = min(candidates, key=lambda item: item[:2])[2]
        self.routed.add(buffer.name)
        self.stay[buffer.name] = loop
        return True


def _multiplies(stmt: Stmt) -> bool:
    return any(isinstance(inner, Op) and inner.op.name == "gemm" for inner in walk([stmt]))
