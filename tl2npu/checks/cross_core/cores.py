"""TL860 to TL862, TL865, TL866, TL894, TL895: statements that end up on the core that cannot run them.

Evidence: facts 3 and 4, E12, E13, E22, E32 and E37; ``src/transform/ascend_combinecv.cc`` places the statements.
"""

from __future__ import annotations

from collections.abc import Iterator

from tl2npu.checks.operators.vector_form import parallel_store
from tl2npu.checks.row_split.split import is_element
from tl2npu.checks.subject import Finding, Placed, Subject
from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import accesses, side_of
from tl2npu.kernel.factories.configs import COMBINE
from tl2npu.kernel.loops import fills_every_wave
from tl2npu.kernel.memory.inferred import Use, inferred, uses, without_options
from tl2npu.kernel.model import (
    CUBE_MEMORY,
    Branch,
    Buffer,
    Copy,
    Let,
    Loop,
    Memory,
    Op,
    Opaque,
    Operand,
    Scalar,
    Side,
    Stmt,
    Store,
    Sync,
    children,
    walk,
)
from tl2npu.source.tree import mentioned, names_in

_VECTOR_KINDS = (Kind.TILE, Kind.FILL, Kind.REDUCE)
_COPIES = frozenset(
    {
        (Memory.GM, Memory.UB),
        (Memory.UB, Memory.GM),
        (Memory.UB, Memory.UB),
        (Memory.GM, Memory.L1),
        (Memory.L1, Memory.L0A),
        (Memory.L1, Memory.L0B),
        (Memory.L0C, Memory.GM),
        (Memory.L0C, Memory.UB),
        (Memory.UB, Memory.L1),
    }
)


def check(subject: Subject) -> Iterator[Finding]:
    """Findings about cores, memories and scalars."""
    yield from _check_memories(subject)
    yield from _check_variables(subject)
    for placed in subject.statements:
        stmt = placed.stmt
        if isinstance(stmt, Store):
            yield from _check_store(subject, placed, stmt)
        elif isinstance(stmt, (Branch, Loop)):
            yield from _check_condition(subject, stmt)
            if isinstance(stmt, Loop) and stmt.kind == "persistent":
                yield from _check_persistent(subject, stmt)
        elif isinstance(stmt, Op):
            yield from _check_vector_op(stmt)
            yield from _check_empty_call(subject, stmt, stmt.op.name, bool(stmt.args))
        elif isinstance(stmt, Sync):
            yield from _check_empty_call(subject, stmt, stmt.op.name, bool(stmt.args))
        elif isinstance(stmt, Copy):
            yield from _check_copy(stmt)
    yield from _check_lets(subject, subject.kernel.body)


def _check_empty_call(subject: Subject, stmt: Op | Sync, name: str, has_args: bool) -> Iterator[Finding]:
    if name in ("sync_all", "loop_break") and not has_args and subject.is_on(COMBINE) is not False:
        yield Finding("TL862", stmt.node, f"T.{name} has no argument that tells the compiler which core runs it")


def _check_persistent(subject: Subject, stmt: Loop) -> Iterator[Finding]:
    """``T.Persistent`` leaves its last wave by ``loop_break()`` unless the tiles fill every wave ."""
    if fills_every_wave(stmt, subject.file.evaluator) is False and subject.is_on(COMBINE) is not False:
        yield Finding("TL862", stmt.node, "the compiler cannot assign the loop break of this T.Persistent to a core")


def _check_copy(stmt: Copy) -> Iterator[Finding]:
    pair = (stmt.src.buffer.memory, stmt.dst.buffer.memory)
    if pair in _COPIES or Memory.VAR in pair:
        return
    source, target = (f"{o.buffer.memory.value} (`{o.buffer.name}`)" for o in (stmt.src, stmt.dst))
    text = f"the NPU cannot copy from {source} to {target}"
    rule = "TL866" if any(o.buffer.alloc == "alloc_shared" for o in (stmt.src, stmt.dst)) else "TL894"
    yield Finding(rule, stmt.node, text)


def _check_vector_op(stmt: Op) -> Iterator[Finding]:
    if stmt.op.name == "tile.atomic_add":
        yield from _check_addition(stmt)
    if stmt.op.kind not in _VECTOR_KINDS:
        return
    for _, operand in stmt.operands:
        if operand.buffer.memory in CUBE_MEMORY:
            yield Finding("TL894", stmt.node, _on_cube(f"T.{stmt.op.name}", operand.buffer))
            return
        if operand.buffer.memory is Memory.GM and not is_element(operand):
            text = f"T.{stmt.op.name} uses `{operand.buffer.name}` in global memory: vector instructions reach only UB"
            yield Finding("TL894", stmt.node, text)
            return


def _check_addition(stmt: Op) -> Iterator[Finding]:
    """``atomic_add`` of ``ascend_tile.py``, and its lowering in ``src/op/ascend.cc``."""
    for name, memories in (("dst", (Memory.GM,)), ("src", (Memory.UB, Memory.L0C))):
        operand = stmt.args.get(name)
        if isinstance(operand, Operand) and operand.buffer.memory not in memories:
            where, wanted = operand.buffer.memory.value, " or ".join(memory.value for memory in memories)
            text = f"`{operand.buffer.name}` is in {where}, but `{name}` of T.{stmt.op.name} must be in {wanted}"
            yield Finding("TL894", stmt.node, text)
            return
        if not isinstance(operand, Operand) and name in stmt.args:
            yield Finding("TL744", stmt.node, f"`T.{stmt.op.name}` takes a tile for `{name}`, not a number")
            return


def _on_cube(what: str, buffer: Buffer) -> str:
    where = "an accumulator" if buffer.memory is Memory.L0C else "a cube-core operand"
    return f"{what} uses `{buffer.name}`, {where} in {buffer.memory.value}, which the vector cores cannot access"


def _check_memories(subject: Subject) -> Iterator[Finding]:
    """TL866: a buffer for vector work that nothing marks as UB lands in L1, and its work on the cube core."""
    found = uses(subject.kernel)
    touched: dict[Buffer, Operand] = {}
    for placed in subject.statements:
        if _is_copy(subject, placed):
            continue
        for access in accesses(placed.stmt):
            if access.element and access.operand.buffer.memory in CUBE_MEMORY:
                touched.setdefault(access.operand.buffer, access.operand)
    for buffer, operand in touched.items():
        use = found.get(buffer)
        if buffer.alloc == "alloc_shared" and use is not None and not use.cube and not use.to_l0:
            text = f"only element-wise code uses `{buffer.name}`, so the compiler assigns it to the cube core"
            yield Finding("TL866", buffer.node, text)
        else:
            yield Finding("TL894", operand.node, _on_cube("element-wise code", buffer))
    yield from _check_options(subject)
    named = {a.operand.buffer for placed in subject.statements for a in accesses(placed.stmt)} | {*touched}
    for buffer in subject.kernel.buffers.values():
        one_axis = buffer.alloc == "alloc_shared" and len(buffer.shape) == 1
        if one_axis and buffer not in named and buffer.memory is Memory.L1 and not _may_be_used(subject, buffer):
            text = f"nothing uses `{buffer.name}`: the compiler takes it for L1, where a tile needs two axes"
            yield Finding("TL866", buffer.node, text)


def _may_be_used(subject: Subject, buffer: Buffer) -> bool:
    """Whether a statement that is not understood names a buffer."""
    return any(isinstance(p.stmt, Opaque) and buffer.name in mentioned(p.stmt.node) for p in subject.statements)


def _is_copy(subject: Subject, placed: Placed) -> bool:
    """``T.Parallel`` with nothing but loads and stores is the copy of a tile (``GenerateAscendCopy``)."""
    found = parallel_store(subject, placed)
    if found is None or found.form != "vector" or found.value.kind != "load":
        return False
    pair = (found.value.loads[0].buffer.memory, found.store.target.buffer.memory)
    return pair in _COPIES and Memory.UB not in pair


def _check_options(subject: Subject) -> Iterator[Finding]:
    """TL866: what marks a buffer as UB stands under an option of the factory, its element-wise use does not."""
    certain = without_options(subject.kernel, subject.late)
    found = uses(certain)
    for buffer in {
        access.operand.buffer: None for stmt in certain.walk() for access in accesses(stmt) if access.element
    }:
        own = buffer.alloc == "alloc_shared" and buffer.memory is Memory.UB
        if own and inferred(found.get(buffer, Use())) is not Memory.UB:
            text = f"`{buffer.name}` is identified as UB only for some options of the factory"
            yield Finding("TL866", buffer.node, text)


def _check_variables(subject: Subject) -> Iterator[Finding]:
    """TL860: what is stored to a variable is stored by the cube core only."""
    if subject.is_on(COMBINE) is False:
        return
    names = {buffer.name for buffer in subject.kernel.buffers.values() if buffer.memory is Memory.VAR}
    if not names:
        return
    stored: dict[str, Placed] = {}
    for placed in subject.statements:
        name = _stored_name(placed.stmt)
        if name in names:
            stored.setdefault(name, placed)
    for name, placed in stored.items():
        reads_ub = any(
            a.reads and a.operand.buffer.memory is Memory.UB
            for other in subject.statements
            if _stored_name(other.stmt) == name
            for a in accesses(other.stmt)
        )
        derived = _derived(subject, name)
        used = any(_uses_in_vector(other.stmt, one) for other in subject.statements for one in derived)
        if reads_ub or used:
            how = "is computed from UB" if reads_ub else "is used by the vector cores"
            yield Finding("TL860", placed.stmt.node, f"`{name}` {how}, but only the cube core stores it")


def _stored_name(stmt: Stmt) -> str:
    if isinstance(stmt, Let):
        return stmt.name
    return stmt.target.buffer.name if isinstance(stmt, Store) else ""


def _derived(subject: Subject, name: str) -> set[str]:
    """The variable, and every name that is worked out from it."""
    found = {name}
    for placed in subject.statements:
        stmt = placed.stmt
        if isinstance(stmt, Let) and any(node.value in found for node in names_in(stmt.value.node)):
            found.add(stmt.name)
    return found


def _uses_in_vector(stmt: Stmt, name: str) -> bool:
    """A vector statement with the variable in it, or one that runs as often as the variable says."""
    if isinstance(stmt, (Branch, Loop)):
        ends = (
            [end for item in stmt.ranges for end in (item.start_node, item.stop_node)] if isinstance(stmt, Loop) else ()
        )
        deciding = [stmt.cond.node] if isinstance(stmt, Branch) else [end for end in ends if end is not None]
        inside = (inner for body in children(stmt) for inner in walk(body))
        return any(node.value == name for part in deciding for node in names_in(part)) and any(
            not children(inner) and side_of(inner) is Side.VECTOR for inner in inside
        )
    if children(stmt) or side_of(stmt) is not Side.VECTOR:
        return False
    return name in mentioned(stmt.node)


def _loads_of_ub(subject: Subject, value: Scalar, seen: set[str]) -> Iterator[Operand]:
    """What a value reads in UB, by itself or through names that stand for elements."""
    yield from (load for load in value.loads if load.buffer.memory is Memory.UB)
    used = mentioned(value.node) - seen
    for placed in subject.statements if used else ():
        if isinstance(placed.stmt, Let) and placed.stmt.name in used:
            yield from _loads_of_ub(subject, placed.stmt.value, seen | used)


def _check_store(subject: Subject, placed: Placed, stmt: Store) -> Iterator[Finding]:
    """TL861, TL895: a scalar store to global memory runs on the cube core, which has no UB."""
    if stmt.target.buffer.memory is not Memory.GM or subject.is_on(COMBINE) is False:
        return
    parallel = parallel_store(subject, placed)
    if parallel is not None and parallel.form != "scalar":
        return
    source = next(_loads_of_ub(subject, stmt.value, set()), None)
    if source is None:
        return
    rule = "TL895" if placed.loops else "TL861"
    text = f"the cube core runs this store, but cannot read `{source.buffer.name}` in UB"
    yield Finding(rule, stmt.node, text)


def _check_condition(subject: Subject, stmt: Branch | Loop) -> Iterator[Finding]:
    """TL865: the cube core cannot evaluate what is in UB. A variable (``T.alloc_var``) is stored by the cube core."""
    variables = {buffer.name for buffer in subject.kernel.buffers.values() if buffer.memory is Memory.VAR}
    loads = stmt.cond.loads if isinstance(stmt, Branch) else stmt.loads
    source = next((load for load in loads if load.buffer.memory is Memory.UB), None)
    if source is None:
        return
    inside = [s for body in children(stmt) for s in walk(body)]
    inner = next((s for s in inside if _runs_on_cube(s) or (isinstance(s, Let) and s.name in variables)), None)
    if inner is not None:
        text = f"this cube-core statement depends on `{source.buffer.name}` in UB, which the cube core cannot read"
        yield Finding("TL865", inner.node, text)


def _runs_on_cube(stmt: Stmt) -> bool:
    if isinstance(stmt, Copy):
        pair = (stmt.src.buffer.memory, stmt.dst.buffer.memory)
        return side_of(stmt) is Side.CUBE or pair == (Memory.L0C, Memory.UB)
    return isinstance(stmt, Op) and side_of(stmt) is Side.CUBE


def _check_lets(subject: Subject, body: list[Stmt]) -> Iterator[Finding]:
    """TL865: a name for a value in UB is evaluated on both cores if the statements after it run on both."""
    for i, stmt in enumerate(body):
        if isinstance(stmt, Let) and any(load.buffer.memory is Memory.UB for load in stmt.value.loads):
            inner = next((s for s in walk(body[i + 1 :]) if _runs_on_cube(s)), None)
            if inner is not None:
                text = f"`{stmt.name}` is read from UB, which the cube core cannot do, before cube-core statements"
                yield Finding("TL865", stmt.node, text)
        for inner_body in children(stmt):
            yield from _check_lets(subject, inner_body)
