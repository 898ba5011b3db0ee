"""Where the values of a kernel live and where they pass between the cores: worked out, nothing written yet."""

from __future__ import annotations

from dataclasses import dataclass, field

from tl2npu.kernel import element_types
from tl2npu.kernel.access import changes, writes
from tl2npu.kernel.memory.chains import Chain, Chains
from tl2npu.kernel.memory.roles import Homes, Site, Uses, homes, sites, uses
from tl2npu.kernel.model import Branch, Buffer, Kernel, Loop, Op, Range, Stmt
from tl2npu.kernel.ranges.trip_count import TripCounts
from tl2npu.kernel.runtime import Late
from tl2npu.passes.gpu.launch.grid import is_outside
from tl2npu.passes.gpu.memory.closing import Closing
from tl2npu.passes.job import Job
from tl2npu.passes.plain.unsupported.types import types_of


@dataclass(eq=False)
class Layout:
    """The homes, the chains of products, the copies to L1 and the tokens of one kernel."""

    kernel: Kernel
    late: Late
    uses: dict[Buffer, Uses]
    homes: dict[Buffer, Homes]
    places: dict[int, Site]
    chains: list[Chain] = field(default_factory=list)
    loaded_twice: dict[Buffer, None] = field(default_factory=dict)
    to_l1: list[ToL1] = field(default_factory=list)
    tokens: list[Stmt] = field(default_factory=list)
    never_empty: list[tuple[Loop, Range]] = field(default_factory=list)

    @property
    def zero_products(self) -> list[Op]:
        """The fills in whose place sums start with a product of zeros."""
        return [chain.zero for chain in self.chains if chain.zero is not None and not chain.init]


@dataclass(frozen=True, eq=False)
class ToL1:
    """``T.copy(buffer, buffer_l1)`` before ``anchor``, for these gemms."""

    buffer: Buffer
    anchor: Stmt
    gemms: tuple[Op, ...]


def lay_out(job: Job, closing: Closing) -> Layout:
    kernel = job.kernel
    found = uses(kernel)
    layout = Layout(
        kernel, job.late, found, homes(found, frozenset(closing.routed)), sites(kernel), tokens=closing.tokens
    )
    trips = TripCounts(kernel, job.file.evaluator, lambda item: _is_assertable(job, item))
    sums = _of_floats(job) if closing.by_zeros else frozenset()
    chains = Chains(kernel, layout.places, trips, frozenset(closing.inside), sums)
    for buffer, use in found.items():
        own = layout.homes[buffer]
        if own.l0c:
            layout.chains += chains.of(buffer, use)
        if own.l1 and own.ub:
            if _only_loaded(kernel, use) and not own.l0c and buffer.name not in closing.routed:
                layout.loaded_twice[buffer] = None
            else:
                layout.to_l1 += _copies_to_l1(layout, buffer, closing.stay.get(buffer.name))
    layout.never_empty = list(trips.assumed.values())
    return layout


def _is_assertable(job: Job, item: Range) -> bool:
    """The factory can check that the loop has a turn."""
    if item.stop_node is None or item.step is not None or job.late.is_late(item.extent):
        return False
    return all(is_outside(job, node) for node in (item.start_node, item.stop_node) if node is not None)


def _of_floats(job: Job) -> frozenset[Buffer]:
    """The tiles that are no integers in any call: tiles of int8 are not filled with zeros by an instruction."""
    return frozenset(
        buffer for buffer, found in types_of(job) if not any(map(element_types.is_integer, filter(None, found)))
    )


def _only_loaded(kernel: Kernel, use: Uses) -> bool:
    """Every value of the tile comes from a tensor that the kernel does not write: it can be loaded to both memories."""
    if use.copied_in or use.zeroed or not use.loads:
        return False
    tile = use.loads[0].dst.buffer
    if any(operand.buffer is tile for stmt in use.vector for operand in writes(stmt)):
        return False
    sources = {copy.src.buffer for copy in use.loads}
    return not any(changes(stmt, *sources) for stmt in kernel.body)


def _copies_to_l1(layout: Layout, buffer: Buffer, stay: Stmt | None) -> list[ToL1]:
    """Where the tile is copied for its gemms: as far out as nothing inside changes it."""
    anchors: dict[int, tuple[Stmt, list[Op]]] = {}
    for gemm in layout.uses[buffer].operand:
        anchor: Stmt = gemm
        for parent in reversed(layout.places[id(gemm)].parents):
            if (
                isinstance(parent, Branch)
                or parent is stay
                or _at_run_time(layout.late, parent)
                or changes(parent, buffer)
            ):
                break
            anchor = parent
        earlier = next(
            (known for known, _ in anchors.values() if _unchanged_between(layout, known, anchor, buffer)), None
        )
        anchors.setdefault(id(earlier or anchor), (earlier or anchor, []))[1].append(gemm)
    return [ToL1(buffer, anchor, tuple(gemms)) for anchor, gemms in anchors.values()]


def _at_run_time(late: Late, stmt: Stmt) -> bool:
    """The compiler does not know how often the loop runs; a hand-over into it from outside has no order (TL867)."""
    return isinstance(stmt, Loop) and any(late.is_late(item.extent) for item in stmt.ranges)


def _unchanged_between(layout: Layout, first: Stmt, second: Stmt, buffer: Buffer) -> bool:
    here, there = layout.places[id(first)], layout.places[id(second)]
    if here.body is not there.body:
        return False
    return not any(changes(stmt, buffer) for stmt in here.body[here.position : there.position])
