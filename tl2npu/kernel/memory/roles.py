"""Which memories the buffers of a GPU kernel need on an NPU, told from their uses.

A gemm reads its operands from L1 and writes its product to L0C; everything else on chip is the vector cores' and lives
in UB (gpu-to-ascend, facts 4 to 6). A buffer with several kinds of use gets several *homes*.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import libcst as cst

from tl2npu.dialects.catalogue import Kind, Role
from tl2npu.kernel.access import accesses
from tl2npu.kernel.memory.fractals import begins_where_counted
from tl2npu.kernel.model import Buffer, Copy, Kernel, Op, Operand, Scalar, Stmt, blocks, walk_with_parents


@dataclass(eq=False)
class Uses:
    """How a kernel uses one on-chip buffer; every statement appears under one heading only."""

    operand: list[Op] = field(default_factory=list)
    product: list[Op] = field(default_factory=list)
    zeroed: list[Op] = field(default_factory=list)
    vector: list[Stmt] = field(default_factory=list)
    loads: list[Copy] = field(default_factory=list)
    stores: list[Copy] = field(default_factory=list)
    copied_in: list[Copy] = field(default_factory=list)
    copied_out: list[Copy] = field(default_factory=list)
    added: list[Op] = field(default_factory=list)


@dataclass(eq=False)
class Homes:
    """The memories that a buffer needs."""

    l1: bool = False
    l0c: bool = False
    ub: bool = False


def uses(kernel: Kernel) -> dict[Buffer, Uses]:
    """The uses of every tile."""
    found = {buffer: Uses() for buffer in kernel.buffers.values() if buffer.is_tile}
    for stmt in kernel.walk():
        taken: set[Buffer] = set()
        if isinstance(stmt, Copy):
            taken |= _copy(stmt, found)
        elif isinstance(stmt, Op) and stmt.op.kind is Kind.GEMM:
            taken |= _gemm(stmt, found)
        elif isinstance(stmt, Op) and is_zero_fill(stmt):
            for _, operand in stmt.operands:
                if operand.buffer in found:
                    found[operand.buffer].zeroed.append(stmt)
                    taken.add(operand.buffer)
        elif isinstance(stmt, Op) and stmt.op.name == "tile.atomic_add":
            source = stmt.args["src"]  # L0C and UB are both added to global memory as they are
            if isinstance(source, Operand) and source.buffer in found:
                found[source.buffer].added.append(stmt)
                taken.add(source.buffer)
        elif isinstance(stmt, Op) and stmt.op.kind is Kind.ANNOTATION:
            continue
        for access in accesses(stmt):
            buffer = access.operand.buffer
            if buffer in found and (buffer not in taken or access.element) and stmt not in found[buffer].vector:
                found[buffer].vector.append(stmt)
    for use in found.values():
        if use.product:
            _take_parts_from_ub(use)
    return found


def _take_parts_from_ub(use: Uses) -> None:
    """A part that the compiler looks for in another place of L0C is taken from UB."""
    use.vector += [copy for copy in (*use.stores, *use.copied_out) if not begins_where_counted(copy.src)]
    use.vector += [op for op in use.added if not begins_where_counted(op.args["src"])]
    use.stores = [copy for copy in use.stores if begins_where_counted(copy.src)]
    use.copied_out = [copy for copy in use.copied_out if begins_where_counted(copy.src)]
    use.added = [op for op in use.added if begins_where_counted(op.args["src"])]


def _copy(stmt: Copy, found: dict[Buffer, Uses]) -> set[Buffer]:
    src, dst = stmt.src.buffer, stmt.dst.buffer
    if dst in found:
        (found[dst].copied_in if src in found else found[dst].loads).append(stmt)
    if src in found:
        (found[src].copied_out if dst in found else found[src].stores).append(stmt)
    return {src, dst} & found.keys()


def _gemm(stmt: Op, found: dict[Buffer, Uses]) -> set[Buffer]:
    taken: set[Buffer] = set()
    for name, operand in stmt.operands:
        if operand.buffer not in found:
            continue
        param = stmt.op.param(name)
        heading = "product" if param is not None and param.role is Role.ACCUMULATE else "operand"
        getattr(found[operand.buffer], heading).append(stmt)
        taken.add(operand.buffer)
    return taken


def is_zero_fill(stmt: Stmt) -> bool:
    """``T.clear(x)`` or ``T.fill(x, 0)`` of a whole buffer."""
    if not isinstance(stmt, Op) or stmt.op.kind is not Kind.FILL or stmt.op.name not in ("clear", "fill"):
        return False
    target = next((operand for _, operand in stmt.operands), None)
    if target is None or not target.is_whole:
        return False
    if stmt.op.name == "clear":
        return True
    value = stmt.args.get("value")
    if not isinstance(value, Scalar):
        return False
    return value.sym.is_zero or (isinstance(value.node, cst.Float) and float(value.node.value) == 0.0)


def homes(found: dict[Buffer, Uses], routed: frozenset[str]) -> dict[Buffer, Homes]:
    """The memories of every tile. ``routed`` names operands that must take the way through UB."""
    result = {
        buffer: Homes(l1=bool(use.operand), l0c=bool(use.product), ub=bool(use.vector) or buffer.name in routed)
        for buffer, use in found.items()
    }
    changed = True
    while changed:
        changed = False
        for buffer, use in found.items():
            own = result[buffer]
            if not own.ub and _needs_ub(buffer, use, own, result, found):
                own.ub = changed = True
    return result


def _needs_ub(buffer: Buffer, use: Uses, own: Homes, result: dict[Buffer, Homes], found: dict[Buffer, Uses]) -> bool:
    if not own.l1 and not own.l0c:
        return True
    if own.l0c:
        # a product cannot be loaded, only the first copy of it to the vector cores is accepted, and none to L1
        return own.l1 or bool(use.loads or use.copied_in) or len(use.copied_out) > 1
    if use.zeroed or use.stores or use.copied_out or use.added:
        return True
    for copy in use.copied_in:
        source = result[copy.src.buffer]
        if (source.l0c and not source.ub) or copy.src.buffer.dtype != buffer.dtype:
            return True
        to_l1 = [other for other in found[copy.src.buffer].copied_out if not result[other.dst.buffer].ub]
        if source.l1 or len(to_l1) > 1:
            return True  # a tile is handed over to the cube core once only
    return False


@dataclass(frozen=True, eq=False)
class Site:
    """Where a statement stands: in ``body`` at ``position``, directly inside ``parent`` (None: the launch)."""

    body: Sequence[Stmt]
    position: int
    parents: tuple[Stmt, ...]

    @property
    def parent(self) -> Stmt | None:
        """The innermost statement around."""
        return self.parents[-1] if self.parents else None


def sites(kernel: Kernel) -> dict[int, Site]:
    """Where every statement stands, by ``id``."""
    where = {id(stmt): (body, place) for body in blocks(kernel.body) for place, stmt in enumerate(body)}
    return {id(stmt): Site(*where[id(stmt)], parents) for stmt, parents in walk_with_parents(kernel.body)}
