"""TL301: every ``mma`` of a kernel becomes a ``gemm_v0`` on whole tiles in L1, or none does."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import accesses, touches
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.flow import Flow, writes_of
from tl2npu.kernel.model import CUBE_MEMORY, Alloc, Buffer, Copy, Kernel, Memory, Op, Operand, Stmt, children, walk
from tl2npu.passes.ascend.mma import depth, prefetch, slots, staging
from tl2npu.passes.ascend.mma import slices as cuts
from tl2npu.passes.ascend.mma.numbers import Numbers
from tl2npu.passes.ascend.mma.slices import Slices
from tl2npu.passes.ascend.mma.staging import Product, Staged
from tl2npu.passes.ascend.mma.texts import comments_in
from tl2npu.passes.job import Job
from tl2npu.passes.names import imports
from tl2npu.passes.plain.macros import inline as macros
from tl2npu.source.edits import Edits
from tl2npu.source.tree import mentioned, names_in, nodes_of


def drop(job: Job, tiles: Collection[str]) -> None:
    """Take the entries of these buffers from every ``annotate_layout``, and the call with the last of them."""
    edits = Edits(job.file.index)
    makers: set[str] = set()
    for stmt in job.kernel.walk():
        if not isinstance(stmt, Op) or stmt.op.name != "annotate_layout":
            continue
        table = next(iter(nodes_of(stmt.call, cst.Dict)), None)
        if table is None:
            continue
        entries = [e for e in table.elements if isinstance(e, cst.DictElement)]
        ours = [e for e in entries if isinstance(e.key, cst.Name) and e.key.value in tiles]
        if not ours:
            continue
        makers |= {name.value for entry in ours for name in names_in(entry.value)}
        if len(ours) == len(table.elements):
            edits.remove(stmt.node)
        else:
            for entry in ours:
                edits.remove(entry)
        job.change("TL301", stmt.node, "removed: gemm_v0 chooses the layout of its tiles")
    job.apply(edits)
    imports.drop_unused(job, makers - set(tiles))


_TYPES = {
    ("float16", "float"),
    ("float16", "float32"),
    ("bfloat16", "float"),
    ("bfloat16", "float32"),
    ("float", "float"),
    ("float32", "float32"),
    ("int8", "int32"),
}


def is_manual(kernel: Kernel) -> bool:
    """True for a kernel with products or operands that are staged by hand."""
    return any(isinstance(s, Op) and s.op.kind is Kind.MMA for s in kernel.walk()) or any(
        b.alloc in ("alloc_L0A", "alloc_L0B") for b in kernel.buffers.values()
    )


def to_gemm(job: Job, separate: bool = True) -> None:
    """Rewrite all products; raises :class:`Blocked` for what cannot be proved.

    ``separate``: results that go to different places get accumulators of their own, as on-chip copies need.
    """
    if not is_manual(job.kernel):
        return
    if any(stmt.via and _stages(stmt) for stmt in job.kernel.walk()):
        macros.inline(job)
    prefetch.load_in_place(job)
    numbers = Numbers(job)
    found = _cut(job, numbers)
    choice = depth.choose(job, found, numbers)
    if choice.changed:
        found = _cut(job, numbers)
    tiles = _write(job, found, choice.steps)
    if separate:
        _separate(job)
    try:
        slots.drop(job, [b.name for b in job.kernel.buffers.values() if b.name in tiles or b.memory is Memory.L0C])
    except Blocked as blocked:
        raise Blocked(blocked.code, _origin(job, found, blocked.node), blocked.message) from None
    drop(job, tiles)


def _origin(job: Job, found: Sequence[Slices], node: cst.CSTNode) -> cst.CSTNode:
    """The ``mma`` that a new product was written for; any other node is itself."""
    made = [
        s.node for s in job.kernel.walk() if isinstance(s, Op) and s.op.kind is Kind.GEMM and s.node not in job.original
    ]
    origins = [item.product.mma.node for item in found for _ in range(1 if item.rest is None else 2)]
    return dict(zip(map(id, made), origins, strict=False)).get(id(node), node)


def _stages(stmt: Stmt) -> bool:
    """True for what a pipeline by hand consists of: products, and copies among L1, L0 and global memory."""
    if isinstance(stmt, Copy):
        return any(o.buffer.memory in CUBE_MEMORY for o in (stmt.src, stmt.dst))
    return isinstance(stmt, Op) and stmt.op.kind is Kind.MMA


def _cut(job: Job, numbers: Numbers) -> list[Slices]:
    kernel = job.kernel
    found = staging.products(kernel)
    staging.used_beside(kernel, found)
    flow = Flow(kernel)
    for product in found:
        _check_types(product, numbers)
    return [cuts.of(flow, product, job.located.evaluator, numbers) for product in found]


def _check_types(product: Product, numbers: Numbers) -> None:
    for tile in numbers.types(product.left.source.buffer, product.out.buffer):
        if tile not in _TYPES and None not in tile:
            text = f"gemm_v0 does not support {tile[0]} operands with a {tile[1]} result"
            raise Blocked("TL328", product.mma.node, text)


def _write(job: Job, found: Sequence[Slices], steps: Mapping[int, str]) -> set[str]:
    """Put the products in their places; the names of the tiles in L1 that they take."""
    edits = Edits(job.file.index)
    kernel = job.kernel
    gone: set[int] = set()
    tiles: set[str] = set()
    for item in found:
        product = item.product
        tiles |= {staged.source.buffer.name for staged in product.loads}
        step = steps.get(id(product.mma.call))
        lines = [_gemm(job, item, (product.left, product.right), item.init, step)]
        if item.rest is not None:
            lines.append(_gemm(job, item, item.rest, None, None))
        place = item.loop.node if item.loop is not None else product.mma.node
        if item.loop is None:
            for staged in product.loads:
                node = staged.load.node if staged.branch is None else staged.branch.node
                if id(node) not in gone:
                    gone.add(id(node))
                    edits.remove(node)
        if isinstance(place, cst.For):
            lines[0] = lines[0].with_changes(leading_lines=comments_in(place.body))
        edits.replace_many(place, lines)
        job.change("TL301", product.mma.node, _why(item))
        if item.loop is not None or len(product.left.load.dst.buffer.shape) > 2:
            job.note("TL332", product.mma.node, "removed its slots: loads do not overlap products any more")
    for stmt in kernel.walk():
        if isinstance(stmt, Alloc) and stmt.buffer.memory in (Memory.L0A, Memory.L0B):
            edits.remove(stmt.node)
            job.change("TL301", stmt.node, f"`{stmt.buffer.name}`: gemm_v0 stages its operands itself")
    _check_left(kernel, found)
    bare = any(imports.spelling(job, "gemm_v0", item.product.mma.call.func) == "gemm_v0" for item in found)
    job.apply(edits)
    imports.complete(job, {"gemm_v0"} if bare else set(), {"mma", "alloc_L0A", "alloc_L0B"})
    return tiles


def _why(item: Slices) -> str:
    if item.loop is None:
        return "wrote one gemm_v0 for the copies to L0 and the mma"
    return "wrote one gemm_v0 for the loop over slices of K, the copies to L0 and the mma"


def _gemm(
    job: Job, item: Slices, pair: tuple[Staged, Staged], init: cst.BaseExpression | None, step: str | None
) -> cst.SimpleStatementLine:
    product = item.product
    left, right = pair
    name = imports.spelling(job, "gemm_v0", product.mma.call.func)
    args = [_tile(left.source), _tile(right.source), code(product.out.node)]
    if left.transposed:
        args.append("transpose_A=True")
    if right.transposed:
        args.append("transpose_B=True")
    if init is not None:
        args.append(f"init={code(init)}" if _simple(init) else f"init=({code(init)})")
    if step is not None:
        args.append(step)
    call = cst.parse_expression(f"{name}({', '.join(args)})", config=job.module.config_for_parsing)
    return cst.SimpleStatementLine([cst.Expr(call)])


def _simple(node: cst.BaseExpression) -> bool:
    return bool(node.lpar) or isinstance(node, (cst.Name, cst.Call))


def _tile(operand: Operand) -> str:
    """The whole tile in L1, in the slot that the load took it from."""
    extra = len(operand.buffer.shape) - 2
    if operand.dims is None or extra <= 0:
        node = operand.node.value if isinstance(operand.node, cst.Subscript) else operand.node
        return code(node)
    assert isinstance(operand.node, cst.Subscript)
    leading = ", ".join(code(dim.node) for dim in operand.dims[:extra])
    return f"{code(operand.node.value)}[{leading}, :, :]"


def _check_left(kernel: Kernel, found: Sequence[Slices]) -> None:
    """Every copy into L0A and L0B must have served a product."""
    used: set[Stmt] = {staged.load for item in found for staged in item.product.loads}
    for stmt in kernel.walk():
        if isinstance(stmt, Copy) and stmt.dst.buffer.memory in (Memory.L0A, Memory.L0B) and stmt not in used:
            raise Blocked("TL321", stmt.node, f"no mma uses this load of `{stmt.dst.buffer.name}`")


# One accumulator for each result: a memory that holds several in turn becomes several buffers.
#
# An on-chip copy is known to the compiler by the names of its two buffers (R-NAMES), so a tile in L0C can be handed to
# one place only.


def _separate(job: Job) -> None:
    """Give every result that goes to a place of its own a buffer of its own."""
    flow = Flow(job.kernel)
    taken = mentioned(job.module)
    edits = Edits(job.file.index)
    for buffer in list(job.kernel.buffers.values()):
        if buffer.memory is not Memory.L0C or buffer.index >= 0:
            continue
        webs = _webs(flow, buffer)
        targets = [{s.dst.buffer for s in web if isinstance(s, Copy)} for web in webs]
        if len(webs) < 2 or any(len(found) != 1 for found in targets) or len(set.union(*targets)) < 2:
            continue
        _rename(job, edits, flow, buffer, webs[1:], taken)
    job.apply(edits)


def _webs(flow: Flow, buffer: Buffer) -> list[list[Stmt]]:
    """The statements that hand one result on to each other, in text order."""
    users = [s for s in flow.kernel.walk() if not children(s) and touches(s, buffer)]
    group = {stmt: stmt for stmt in users}

    def root(stmt: Stmt) -> Stmt:
        while group[stmt] is not stmt:
            stmt = group[stmt]
        return stmt

    for stmt in users:
        if not any(a.reads and a.operand.buffer is buffer for a in accesses(stmt)):
            continue
        for source in _sources(flow, stmt, buffer):
            if source in group:
                group[root(stmt)] = root(source)
    found: dict[Stmt, list[Stmt]] = {}
    for stmt in users:
        found.setdefault(root(stmt), []).append(stmt)
    return sorted(found.values(), key=lambda web: users.index(web[0]))


def _sources(flow: Flow, stmt: Stmt, buffer: Buffer) -> Sequence[Stmt]:
    """The writes whose value a statement may see."""
    for step in flow.before(stmt):
        around = [s for loop in step.left for s, _ in writes_of([loop], buffer)]
        found = [s for s, _ in writes_of([step.stmt], buffer)]
        if found or around:
            return [*found, *around]
    return [s for loop in flow.loops(stmt) for s, _ in writes_of([loop], buffer)]


def _rename(
    job: Job, edits: Edits, flow: Flow, buffer: Buffer, webs: Sequence[Sequence[Stmt]], taken: set[str]
) -> None:
    alloc = next((s for s in walk(flow.kernel.body) if isinstance(s, Alloc) and s.buffer is buffer), None)
    if alloc is None or not isinstance(alloc.node, cst.Assign):
        return
    lines: list[cst.CSTNode] = [alloc.node]
    for web in webs:
        new = next(n for n in (f"{buffer.name}_{i}" for i in range(2, 1000)) if n not in taken)
        taken.add(new)
        lines.append(alloc.node.with_changes(targets=[cst.AssignTarget(cst.Name(new))]))
        for stmt in web:
            assert isinstance(stmt, (Copy, Op))
            for access in accesses(stmt):
                node = access.operand.node
                name = node.value if isinstance(node, cst.Subscript) else node
                if access.operand.buffer is buffer and isinstance(name, cst.Name) and name not in edits.nodes:
                    edits.replace(name, cst.Name(new))
        job.change("TL301", alloc.node, f"wrote `{new}` for one of the results that share `{buffer.name}`")
    edits.replace_many(alloc.node, lines)
