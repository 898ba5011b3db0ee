"""What an ``mma`` multiplies: the tiles in L1 that its operands in L0A and L0B were copied from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.comparisons import at_most
from tl2npu.kernel.flow import Flow, differ, reads_of, slots, writes_of
from tl2npu.kernel.model import Branch, Buffer, Copy, Kernel, Loop, Memory, Op, Operand, Stmt
from tl2npu.kernel.symbolic import Sym


@dataclass(frozen=True, eq=False)
class Staged:
    """One operand: ``load`` copies ``source``, a part of a tile in L1, into L0A or L0B.

    ``branch`` is the ``if`` around the load; ``whole``: the load fills every slot with the same, in its first
    iterations.
    """

    load: Copy
    branch: Branch | None = None
    whole: bool = False

    @property
    def source(self) -> Operand:
        """The part of the tile in L1."""
        return self.load.src

    @property
    def transposed(self) -> bool:
        """True if the load transposes."""
        option = self.load.options.get("transpose")
        return option is not None and option.sym.constant == 1

    @property
    def depth_axis(self) -> int:
        """Which of the last two axes of the source is K."""
        last = self.load.dst.buffer.memory is Memory.L0A
        return -1 if last is not self.transposed else -2


@dataclass(frozen=True, eq=False)
class Product:
    """One ``mma`` with its operands; ``other`` holds those of the other arm where two loads share a branch."""

    mma: Op
    left: Staged
    right: Staged
    other: tuple[Staged, Staged] | None = None

    @property
    def out(self) -> Operand:
        """The accumulator."""
        found = self.mma.args["C"]
        assert isinstance(found, Operand)
        return found

    @property
    def loads(self) -> tuple[Staged, ...]:
        """Every load of the product."""
        return (self.left, self.right, *(self.other or ()))


def products(kernel: Kernel) -> list[Product]:
    """Every ``mma`` of a kernel with its operands; raises :class:`Blocked` for the first that cannot be traced."""
    flow = Flow(kernel)
    found: list[Product] = []
    for stmt in kernel.walk():
        if isinstance(stmt, Op) and stmt.op.kind is Kind.MMA:
            if stmt.via:
                raise Blocked("TL321", stmt.node, "this mma is in a macro: inline it in the kernel")
            found.append(_product(flow, stmt))
    return found


def _product(flow: Flow, mma: Op) -> Product:
    sides: list[list[Staged]] = []
    for name, memory in (("A", Memory.L0A), ("B", Memory.L0B)):
        operand = mma.args.get(name)
        if not isinstance(operand, Operand) or operand.buffer.memory is not memory:
            raise Blocked("TL327", mma.node, f"operand {name} of this mma is not a tile in {memory.value}")
        sides.append(_loads(flow, mma, operand))
    left, right = sides
    if len(left) != len(right):
        raise Blocked("TL323", mma.node, "one operand is loaded in both branches of an `if`, the other is not")
    if len(left) == 2 and left[0].branch is not right[0].branch:
        raise Blocked("TL323", mma.node, "the two operands are loaded under different conditions")
    other = (left[1], right[1]) if len(left) == 2 else None
    return Product(mma, left[0], right[0], other)


def _loads(flow: Flow, mma: Op, operand: Operand) -> list[Staged]:
    """The loads that fill the slot which the mma reads: one, or one in each arm of a condition."""
    buffer, slot = operand.buffer, slots(operand)
    if slot is None:
        raise Blocked("TL321", mma.node, f"cannot tell which slot of `{buffer.name}` this mma reads")
    for step in flow.before(mma):
        if not writes_of([step.stmt], buffer):
            continue
        if isinstance(step.stmt, Copy):
            there = slots(step.stmt.dst)
            if there is not None and differ(there, slot):
                continue
            found = [Staged(step.stmt)]
            _check_slot(step.stmt, there, slot, buffer, mma)
        elif isinstance(step.stmt, Branch):
            found = _conditional(flow, step.stmt, buffer, slot, mma)
        else:
            raise Blocked("TL321", step.stmt.node, f"cannot tell which load fills `{buffer.name}`")
        for loop in step.left:
            if writes_of([loop], buffer):
                text = f"`{buffer.name}` is loaded in this loop too, for another iteration"
                raise Blocked("TL321", loop.node, text)
        for staged in found:
            _check_source(flow, staged, mma, step.left)
        return found
    raise Blocked("TL321", mma.node, f"no load fills `{buffer.name}` before this mma")


def _check_slot(load: Copy, there: Sequence[Sym] | None, slot: Sequence[Sym], buffer: Buffer, mma: Op) -> None:
    if there is None or list(there) != list(slot):
        raise Blocked("TL321", load.node, f"this load and the mma use different slots of `{buffer.name}`")
    if load.src.buffer.memory is not Memory.L1:
        where = load.src.buffer.memory.value
        raise Blocked("TL327", load.node, f"`{buffer.name}` is loaded from {where}, not from L1")
    if load.dst.dims is not None and not all(
        d.covers(size) for d, size in zip(load.dst.dims[-2:], buffer.shape[-2:], strict=True)
    ):
        raise Blocked("TL324", load.node, f"this load fills only a part of `{buffer.name}`")


def _conditional(flow: Flow, branch: Branch, buffer: Buffer, slot: Sequence[Sym], mma: Op) -> list[Staged]:
    arms = [_only_load(arm, buffer) for arm in (branch.then, branch.orelse)]
    if all(arms):
        both = [load for load in arms if load is not None]
        for each in both:
            _check_slot(each, slots(each.dst), slot, buffer, mma)
        return [Staged(each, branch) for each in both]
    load = arms[0]
    if load is None or (branch.orelse and writes_of(branch.orelse, buffer)):
        raise Blocked("TL323", branch.node, f"`{buffer.name}` is loaded under a condition that is not supported")
    _check_slot(load, slots(load.dst), slot, buffer, mma)
    _check_first_rounds(flow, branch, load, buffer, slot)
    return [Staged(load, branch, whole=True)]


def _only_load(arm: Sequence[Stmt], buffer: Buffer) -> Copy | None:
    found = [s for s, _ in writes_of(arm, buffer)]
    load = found[0] if len(found) == 1 else None
    return load if isinstance(load, Copy) and load in arm else None


def _check_first_rounds(flow: Flow, branch: Branch, load: Copy, buffer: Buffer, slot: Sequence[Sym]) -> None:
    """``if i < slots``: every slot is filled in the first iterations, with what does not change any more."""
    loops = flow.loops(branch)
    loop = loops[-1] if loops else None
    item = loop.ranges[0] if loop is not None and len(loop.ranges) == 1 else None
    if loop is None or item is None or not item.start.is_zero:
        raise Blocked("TL323", branch.node, f"`{buffer.name}` is loaded under a condition outside of a plain loop")
    count = _rounds(branch, item.var)
    turning = [s for s in slot if s == item.var % count] if count is not None else []
    fixed = all(s in turning or not any(s.depends_on(v) for v in item.var.variables()) for s in slot)
    places = [size for s, size in zip(slot, buffer.shape, strict=False) if s in turning]
    if count is None or len(turning) != 1 or not fixed or places != [count]:
        text = f"the condition must fill every slot of `{buffer.name}` once, in the first iterations"
        raise Blocked("TL323", branch.node, text)
    if [s for s, _ in writes_of(loop.body, buffer) if s is not load]:
        raise Blocked("TL323", branch.node, f"`{buffer.name}` is loaded again in the loop")
    source = load.src
    changed = writes_of(loop.body, source.buffer)
    moving = any(d.lo.depends_on(v) for d in source.dims or () for v in item.var.variables())
    if changed or moving:
        text = f"`{source.buffer.name}` changes in the loop, but is loaded only in its first iterations"
        raise Blocked("TL323", branch.node, text)


def _rounds(branch: Branch, variable: Sym) -> Sym | None:
    """``n`` of ``variable < n``."""
    sides = at_most(branch.cond.sym)
    return sides[1] + 1 if sides is not None and sides[0] == variable else None


def _check_source(flow: Flow, staged: Staged, mma: Op, left: Sequence[Loop]) -> None:
    """What was copied must still stand in L1 where the product is taken from there."""
    source = staged.source
    first: Stmt = staged.load if staged.branch is None else staged.branch
    here = slots(source)
    for stmt in flow.between(first, mma):
        for _, operand in writes_of([stmt], source.buffer):
            there = slots(operand)
            if here is None or there is None or not differ(here, there):
                text = f"`{source.buffer.name}` changes between its copy to L0 and the mma"
                raise Blocked("TL321", stmt.node, text)
    moved = [v for loop in left for item in loop.ranges for v in item.var.variables()]
    if any(d.lo.depends_on(v) for d in source.dims or () for v in moved):
        raise Blocked(
            "TL321", staged.load.node, "the loaded part of L1 depends on the variable of a loop that has ended"
        )


def used_beside(kernel: Kernel, found: Sequence[Product]) -> None:
    """L0A and L0B must serve the products only."""
    known = {id(p.mma) for p in found}
    for buffer in kernel.buffers.values():
        if buffer.memory not in (Memory.L0A, Memory.L0B):
            continue
        for stmt, _ in reads_of(kernel.body, buffer):
            if id(stmt) not in known:
                raise Blocked("TL327", stmt.node, f"`{buffer.name}` is read by a statement that is not an mma")
