"""What the compiler makes of a turn of a pipelined loop over both cores (``src/transform/cross_core_pipeline.cc``).

The statements of one core up to the next one of the other are a *part*. With ``s`` stages each part becomes a loop over
``s`` turns. A buffer that two parts use, one of which reads it before it has written it, is *shared*: it gets a version
for each of these turns if nothing outside of the loop uses it, and there is one for all of them else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import accesses, is_on_chip, side_of
from tl2npu.kernel.expressions import code
from tl2npu.kernel.handover import disjoint, region
from tl2npu.kernel.model import (
    Alloc,
    Buffer,
    Copy,
    Inlined,
    Kernel,
    Let,
    Loop,
    Memory,
    Op,
    Operand,
    Side,
    Stmt,
    Store,
    Sync,
    children,
    walk,
)
from tl2npu.kernel.symbolic import Opaque, const
from tl2npu.source.tree import nodes_of

ON_CHIP = frozenset(Memory) - {Memory.GM, Memory.VAR}


def changed_variables(kernel: Kernel, loop: Loop) -> list[Stmt]:
    """The statements of a loop that store to an ``alloc_var``."""
    names = {buffer.name for buffer in kernel.buffers.values() if buffer.memory is Memory.VAR}
    stored = [stmt for stmt in walk(loop.body) if isinstance(stmt, (Let, Store))]
    return [stmt for stmt in stored if (stmt.name if isinstance(stmt, Let) else stmt.target.buffer.name) in names]


@dataclass(frozen=True, eq=False)
class Use:
    """One access to a buffer on the chip. ``whole``: all of it at once; ``known``: the place is a constant.

    ``element``: a single element, as the scalar of a row or in a scalar loop. ``place``: the same for the same part.
    """

    stmt: Stmt
    buffer: Buffer
    reads: bool
    writes: bool
    whole: bool
    known: bool
    element: bool
    place: tuple[object, ...] = ()


@dataclass(frozen=True, eq=False)
class Part:
    """Statements of one core in a row; ``side`` BOTH for a statement in which both cores work."""

    side: Side
    body: tuple[Stmt, ...]

    @property
    def uses(self) -> list[Use]:
        """Every access, in text order. The tile that a product or an operand lands in is filled where it is read."""
        return [use for stmt in self.body for use in uses(stmt, ())]


def parts(body: Sequence[Stmt]) -> list[Part]:
    """The parts of a turn, in order; what belongs to no core is left out."""
    found: list[Part] = []
    for stmt in flat(body):
        side = core_of(stmt)
        if side is None:
            continue
        if found and found[-1].side is side and side is not Side.BOTH:
            found[-1] = Part(side, (*found[-1].body, stmt))
        else:
            found.append(Part(side, (stmt,)))
    return found


def is_lost(let: Let, kernel: Kernel) -> bool:
    """Whether the parts do not know a name: only whole numbers that no tile or tensor gives are written out (Simplify,
    ``CanInlineLet``). A name from outside of the kernel is one if it is a size of something."""
    opaque = (atom for atom in let.value.sym.atoms() if isinstance(atom, Opaque))
    if let.value.loads or any(atom.head not in ("min", "max") for atom in opaque):
        return True
    launch = kernel.launch
    sizes = [size for buffer in kernel.buffers.values() for size in buffer.shape]
    sizes += [item.extent for stmt in kernel.walk() if isinstance(stmt, Loop) for item in stmt.ranges]
    sizes += launch.grid if launch is not None else ()
    known = {name for size in sizes for name in size.variables()}
    return any("@" not in name and name not in known for name in let.value.sym.variables())


def flat(body: Sequence[Stmt]) -> Iterator[Stmt]:
    """The statements with macros written out."""
    for stmt in body:
        if isinstance(stmt, Inlined):
            yield from flat(stmt.body)
        else:
            yield stmt


def core_of(stmt: Stmt) -> Side | None:
    """The core that a statement with all that is in it runs on; None for one that names no tile."""
    sides = {side for leaf in walk([stmt]) if not children(leaf) for side in _sides(leaf)}
    return None if not sides else sides.pop() if len(sides) == 1 else Side.BOTH


def _sides(stmt: Stmt) -> tuple[Side, ...]:
    if isinstance(stmt, (Let, Alloc, Sync)):
        return ()
    side = side_of(stmt)
    if isinstance(stmt, Copy) and side is Side.BOTH:
        return (Side.CUBE if stmt.src.buffer.memory is Memory.L0C else Side.VECTOR,)
    return () if side is Side.NONE else (Side.CUBE, Side.VECTOR) if side is Side.BOTH else (side,)


def uses(stmt: Stmt, nest: tuple[Loop, ...]) -> Iterator[Use]:
    """The accesses of a statement and of what is in it, reads first; ``nest``: the ``T.Parallel`` around it."""
    inner = (*nest, stmt) if isinstance(stmt, Loop) and stmt.kind == "parallel" else nest
    for access in sorted(accesses(stmt), key=lambda access: access.writes and not access.reads):
        operand = access.operand
        if operand.buffer.memory not in ON_CHIP or (
            isinstance(stmt, Copy) and is_on_chip(stmt) and operand is stmt.dst
        ):
            continue
        if isinstance(stmt, Store) and nest:
            whole = _is_all(operand, nest) and not _counts_itself(stmt, nest)
            single = len({_axis(dim.lo, nest) for dim in operand.dims or ()} - {""}) < sum(len(n.ranges) for n in nest)
            yield Use(stmt, operand.buffer, access.reads, access.writes, whole, whole, single)
        else:
            known = all(dim.lo.constant is not None for dim in operand.dims or ())
            whole = operand.is_whole and not access.element
            known = known and not access.element
            sliced = any(not dim.is_point for dim in operand.dims or ())
            place = tuple((dim.lo, dim.extent) for dim in operand.dims or ()) if known and sliced else ()
            yield Use(stmt, operand.buffer, access.reads, access.writes, whole, known, access.element, place)
    for body in children(stmt):
        for one in body:
            yield from uses(one, inner)


def _axis(index: object, nest: tuple[Loop, ...]) -> str:
    return next((str(item.var) for loop in nest for item in loop.ranges if item.var == index), "")


def _counts_itself(stmt: Store, nest: tuple[Loop, ...]) -> bool:
    """A variable of the nest is a value, and no index of another tile: such elements are stored one by one."""
    slices = {id(name) for part in nodes_of(stmt.value.node, cst.Subscript) for name in nodes_of(part, cst.Name)}
    names = {item.name for loop in nest for item in loop.ranges}
    return any(name.value in names for name in nodes_of(stmt.value.node, cst.Name) if id(name) not in slices)


def _is_all(operand: Operand, nest: tuple[Loop, ...]) -> bool:
    """Every element, one by each turn of the nest."""
    extents = {str(item.var): item.extent for loop in nest for item in loop.ranges}
    names = [_axis(dim.lo, nest) for dim in operand.dims or ()]
    sizes = operand.buffer.shape
    return len(set(names)) == len(names) == len(sizes) and all(
        name and extents[name] == size for name, size in zip(names, sizes, strict=True)
    )


@dataclass(frozen=True, eq=False)
class Shared:
    """A buffer that several parts use. ``inside``: nothing else does; ``written`` in the loop; ``carried``: a turn
    starts with the value of the turn before; ``users``: the numbers of the parts."""

    buffer: Buffer
    inside: bool
    written: bool
    carried: bool
    users: tuple[int, ...]

    @property
    def is_state(self) -> bool:
        """Its turns have to follow one another: stages change their order, or mix them up."""
        return self.written and (self.carried or not self.inside)


def shared(found: Sequence[Part], kernel: Kernel) -> list[Shared]:
    """The buffers that several of the parts use, and one reads before it has written what it reads."""
    users: dict[Buffer, list[int]] = {}
    exposed: set[Buffer] = set()
    first: dict[Buffer, bool] = {}
    written: set[Buffer] = set()
    landings = landing_buffers(found)
    for number, part in enumerate(found):
        filled: set[object] = set()
        for use in part.uses:
            numbers = users.setdefault(use.buffer, [])
            if number not in numbers:
                numbers.append(number)
            if use.buffer in landings and numbers == [number]:
                filled.add(use.buffer)
            place = (use.buffer, use.place)
            first.setdefault(use.buffer, use.reads and use.buffer not in filled)
            if use.reads and not (use.known and (use.buffer in filled or place in filled)):
                exposed.add(use.buffer)
            if use.writes:
                written.add(use.buffer)
                if use.whole or use.place:
                    filled.add(use.buffer if use.whole else place)
    every = _counts(kernel.body)
    inside = _counts([stmt for part in found for stmt in part.body])
    return [
        Shared(b, inside[b] == every[b], b in written or b in landings, first[b], tuple(numbers))
        for b, numbers in users.items()
        if len(numbers) > 1 and b in exposed
    ]


def landing_buffers(found: Sequence[Part]) -> set[Buffer]:
    """The buffers that hand-overs in the parts fill."""
    leaves = (leaf for part in found for leaf in walk(part.body))
    return {leaf.dst.buffer for leaf in leaves if isinstance(leaf, Copy) and is_on_chip(leaf)}


def summed_axes(loop: Loop, tile: Buffer) -> frozenset[int]:
    """The axes of a tile, counted from the end, that products in a loop sum over; both where that is not clear."""
    found: set[int] = set()
    for product in walk(loop.body):
        if isinstance(product, Op) and product.op.kind is Kind.GEMM:
            for name, turned, axis in (("A", "transpose_A", 1), ("B", "transpose_B", 2)):
                operand = product.args.get(name)
                if isinstance(operand, Operand) and operand.buffer is tile:
                    said = code(product.args[turned].node) if turned in product.args else "False"
                    found |= {"False": {axis}, "True": {3 - axis}}.get(said, {1, 2})
    return frozenset(found)


def own_buffers(loop: Loop, kernel: Kernel) -> set[Buffer]:
    """What nothing outside of the loop uses: of these, a tile that it loads may have a version for each turn."""
    every = _counts(kernel.body)
    return {buffer for buffer, count in _counts(loop.body).items() if count == every[buffer]}


def overtaken(loop: Loop, kernel: Kernel) -> Iterator[tuple[Stmt, Buffer, str]]:
    """The loads of a loop of one core that its stages move too far ahead, with a tile or tensor, and why.

    A statement that fills a tile from global memory for a later one of the turn runs turns ahead
    (``src/transform/pipeline_planning.cc``). With two stages or more the tile needs a version for each of these turns,
    which it has if nothing outside of the loop uses it: it is allocated in the loop then (``inject_pipeline.cc``). No
    load waits for what the loop itself stores to global memory.
    """
    if loop.num_stages in (None, const(0)):
        return
    body = [(stmt, [access for leaf in walk([stmt]) for access in accesses(leaf)]) for stmt in flat(loop.body)]
    stores = [leaf for leaf in walk(loop.body) if isinstance(leaf, Copy) and leaf.dst.buffer.memory is Memory.GM]
    turn, own = loop.ranges[0].var, own_buffers(loop, kernel)
    for number, (stmt, found) in enumerate(body):
        read = {access.operand.buffer for _, later in body[number + 1 :] for access in later if access.reads}
        tiles = [a.operand.buffer for a in found if a.writes and a.operand.buffer.is_tile and a.operand.buffer in read]
        if not tiles or not any(a.reads and a.operand.buffer.memory is Memory.GM for a in found):
            continue
        for tile in tiles:
            if loop.num_stages != const(1) and tile not in own:
                yield stmt, tile, "is used outside of the loop too, so that the next turn's load overwrites it"
        for load in (leaf for leaf in walk([stmt]) if isinstance(leaf, Copy)):
            next_turn = [(lo.substitute({str(turn): turn + 1}), size) for lo, size in region(load.src, load.dst)]
            for store in stores:
                tensor = store.dst.buffer
                if tensor is load.src.buffer and not disjoint(tuple(next_turn), region(store.dst, store.src)):
                    yield stmt, tensor, "is stored to in the loop, and the next turn's load does not wait for it"


def _counts(body: Sequence[Stmt]) -> dict[Buffer, int]:
    counts: dict[Buffer, int] = {}
    for stmt in walk(list(body)):
        for access in accesses(stmt):
            counts[access.operand.buffer] = counts.get(access.operand.buffer, 0) + 1
    return counts


def count_of_statements(body: Sequence[Stmt]) -> int:
    """How many statements the body of a loop is to the pass that makes pipelines of loops.

    It stops at a body that is not a sequence ("The body of the software pipeline should be SeqStmt"). Names and
    allocations are none. Several vector instructions of one ``T.Parallel`` are a sequence.
    """
    count = 0
    for stmt in body:
        if isinstance(stmt, Inlined):
            count += count_of_statements(stmt.body)
        elif isinstance(stmt, Loop) and stmt.kind == "parallel":
            stores = [inner.value.node for inner in walk(stmt.body) if isinstance(inner, Store)]
            count += max(1, len(stores), *(len(nodes_of(value, cst.BinaryOperation, cst.Call)) for value in stores))
        elif not isinstance(stmt, (Let, Alloc)) and not isinstance(stmt.node, cst.Pass):
            count += 1
    return count
