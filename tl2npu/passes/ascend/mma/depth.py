"""How deep the tiles in L1 are: ``gemm_v0`` takes a whole tile, and what it stages of it must fit L0A and L0B.

A hand-written pipeline fetches a deep slab into L1 and takes it to L0 in thin slices. Where the slab is not proved to
fit, the slab itself becomes as thin as the slices, which did fit: the loop over slabs then runs over slices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import libcst as cst

from tl2npu.dialects.compiler import COMPILERS, DEFAULT_COMPILER
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.environment import Env
from tl2npu.kernel.expressions import code
from tl2npu.kernel.flow import Flow, reads_of, writes_of
from tl2npu.kernel.model import Alloc, Buffer, Copy, Dim, Let, Loop, Memory, Op, Stmt, walk
from tl2npu.kernel.symbolic import Div, Sym, ceildiv
from tl2npu.passes.ascend.mma.numbers import Numbers
from tl2npu.passes.ascend.mma.slices import Slices
from tl2npu.passes.ascend.mma.staging import Staged
from tl2npu.passes.ascend.mma.texts import map_indices, swapped
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits
from tl2npu.source.tree import names_in


@dataclass(frozen=True, eq=False)
class Slab:
    """A tile in L1 that ``load`` fills from global memory in every round of ``loop``; ``dim`` is its depth there."""

    staged: Staged
    load: Copy
    loop: Loop
    dim: Dim


@dataclass
class Choice:
    """``changed``: slabs have become thinner; ``steps``: mma -> how much of K is staged at a time."""

    changed: bool = False
    steps: dict[int, str] = field(default_factory=dict)


def choose(job: Job, found: Sequence[Slices], numbers: Numbers) -> Choice:
    """Stage less of K at a time, where the compiler can be told so, or make slabs as thin as slices."""
    choice = Choice()
    thin: list[Slices] = []
    compiler = COMPILERS.get(str(job.options.ascend_version), DEFAULT_COMPILER)
    for item in found:
        verdict = _fits(item, numbers)
        if compiler.holds("TL857") and _takes_wrong_slices(item, numbers):
            verdict = False
        if verdict is True or (verdict is None and item.loop is None):
            continue
        if compiler.slice_argument and item.width is not None and _fits(item, numbers, item.width):
            choice.steps[id(item.product.mma.call)] = f"{compiler.slice_argument}={code(_width_node(item))}"
        elif item.loop is None or item.rest is not None or not _can_be_thin(job, item):
            _refuse(item, verdict, job, numbers)
        else:
            thin.append(item)
    if not thin:
        return choice
    edits = Edits(job.file.index)
    flow = Flow(job.kernel)
    done: set[int] = set()
    for item in thin:
        _make_thin(job, edits, flow, item, done)
    job.apply(edits)
    choice.changed = True
    return choice


def _fits(item: Slices, numbers: Numbers, step: Sym | None = None) -> bool | None:
    """Whether gemm_v0 can stage the whole tiles of a product, ``step`` of K at a time."""
    given = () if step is None else (step,)
    verdicts = [numbers.fits(*_size(staged), *given) for staged in item.product.loads]
    return False if False in verdicts else None if None in verdicts else True


def _takes_wrong_slices(item: Slices, numbers: Numbers) -> bool:
    """#1395: beyond 128 in K, elements that are not two bytes wide are taken from wrong places in two layouts."""
    left, right = item.product.left, item.product.right
    if right.transposed and not left.transposed:
        return False
    return any(numbers.wide_types(s.source.buffer, s.source.buffer.shape[s.depth_axis]) for s in (left, right))


def _width_node(item: Slices) -> cst.BaseExpression:
    inner = item.product.left.load.dst.buffer
    return inner.shape_nodes[-1 if inner.memory is Memory.L0A else -2]


def _size(staged: Staged) -> tuple[str, Sym, Sym, Buffer]:
    """Memory, width and depth of a tile that gemm_v0 stages."""
    tile = staged.source.buffer
    memory = staged.load.dst.buffer.memory.value
    return memory, tile.shape[-3 - staged.depth_axis], tile.shape[staged.depth_axis], tile


def _refuse(item: Slices, verdict: bool | None, job: Job, numbers: Numbers) -> None:
    product = item.product
    tiles = " and ".join(sorted({f"`{staged.source.buffer.name}`" for staged in product.loads}))
    if verdict is False:
        found = (numbers.shortage(*_size(staged)) for staged in product.loads)
        short = next((text for text in found if text is not None), "more than 128 deep, not two bytes wide: TL857")
        text = f"gemm_v0 cannot stage {tiles} ({short}), and no loop loads them in smaller slices of K"
        raise Blocked("TL331", product.mma.node, text)
    text = f"the sizes of {tiles} are unknown: check that gemm_v0 can stage them in L0 (at most 128 of K at a time)"
    job.note("TL331", product.mma.node, text, "warning")


def _can_be_thin(job: Job, item: Slices) -> bool:
    try:
        _slabs(Flow(job.kernel), item)
    except Blocked:
        return False
    return True


def _slabs(flow: Flow, item: Slices) -> list[Slab]:
    """Both tiles of a product as slabs of one loop; raises :class:`Blocked` if they are something else."""
    found = [_slab(flow, staged) for staged in (item.product.left, item.product.right)]
    loop = found[0].loop
    place = item.product.mma.node
    if found[1].loop is not loop:
        raise Blocked("TL331", place, "the two tiles of this gemm are loaded in different loops")
    known = {slab.load for slab in found}
    for stmt in walk(loop.body):
        if stmt not in known and stmt is not item.product.mma and _depends(stmt, loop):
            raise Blocked("TL331", stmt.node, "this statement uses the index of the K slice")
    for slab in found:
        buffer = slab.staged.source.buffer
        users = [s for s, _ in (*reads_of(flow.kernel.body, buffer), *writes_of(flow.kernel.body, buffer))]
        if any(s is not slab.load and s not in [x.load for x in item.product.loads] for s in users):
            raise Blocked("TL331", slab.load.node, f"`{buffer.name}` has other uses")
    return found


def _depends(stmt: Stmt, loop: Loop) -> bool:
    names = {item.name for item in loop.ranges}
    if isinstance(stmt, (Copy, Op)):
        operands = (stmt.src, stmt.dst) if isinstance(stmt, Copy) else tuple(o for _, o in stmt.operands)
        variables = {v for item in loop.ranges for v in item.var.variables()}
        outer = [d for o in operands for d in (o.dims or ())[: max(0, len(o.dims or ()) - 2)] if o.buffer.index < 0]
        inner = [d for o in operands for d in o.dims or () if d not in outer]
        return any(d.lo.depends_on(v) for d in inner for v in variables)
    return isinstance(stmt, Let) and any(name.value in names for name in names_in(stmt.value.node))


def _slab(flow: Flow, staged: Staged) -> Slab:
    buffer = staged.source.buffer
    writes = writes_of(flow.kernel.body, buffer)
    load = writes[0][0] if len(writes) == 1 else None
    if not isinstance(load, Copy) or load.src.buffer.memory is not Memory.GM or load.src.dims is None or load.via:
        raise Blocked("TL331", staged.load.node, f"`{buffer.name}` is not loaded from global memory in slices of K")
    loops = flow.loops(load)
    if not loops or loops[-1] not in flow.loops(staged.load) or len(loops[-1].ranges) != 1:
        raise Blocked("TL331", load.node, f"`{buffer.name}` is loaded once, not in slices of K")
    deep = buffer.shape[staged.depth_axis]
    variable = loops[-1].ranges[0].var
    axis = _axis(load, staged)
    dim = load.src.dims[axis]
    if dim.lo != variable * deep or (dim.extent is not None and dim.extent != deep):
        raise Blocked("TL331", load.node, f"the K slices of `{buffer.name}` are not consecutive")
    return Slab(staged, load, loops[-1], dim)


def _axis(load: Copy, staged: Staged) -> int:
    """The axis of the tensor that the depth of the tile comes from."""
    assert load.src.dims is not None
    ranged = [i for i, d in enumerate(load.src.dims) if not d.is_point]
    if not ranged:
        return staged.depth_axis
    return ranged[staged.depth_axis] if len(ranged) >= 2 else staged.depth_axis


def _make_thin(job: Job, edits: Edits, flow: Flow, item: Slices, done: set[int]) -> None:
    slabs = _slabs(flow, item)
    width_node = _width_node(item)
    width = code(width_node)
    assert item.width is not None
    deep = slabs[0].staged.source.buffer.shape[slabs[0].staged.depth_axis]
    evaluator = job.located.evaluator

    def swap(node: cst.BaseExpression, env: Env) -> cst.BaseExpression:
        return swapped(node, env, evaluator, deep, width)

    for slab in slabs:
        buffer = slab.staged.source.buffer
        alloc = next(s for s in flow.kernel.walk() if isinstance(s, Alloc) and s.buffer is buffer)
        edits.replace(buffer.shape_nodes[slab.staged.depth_axis], width_node)
        env = slab.load.env
        new = map_indices(slab.load.src.node, lambda node, env=env: swap(node, env))  # type: ignore[misc]
        _check_index(job, slab, new, item.width, env)
        edits.replace(slab.load.src.node, new)
        text = f"loaded `{buffer.name}` in smaller slices of K, because all of it does not fit L0"
        job.change("TL301", alloc.node, text)
    assert item.loop is not None
    stop = item.loop.ranges[0].stop_node
    if stop is None:
        raise Blocked("TL331", item.loop.node, "cannot tell the number of slices")
    edits.replace(stop, cst.Integer("1"))  # the tile is one slice now
    loop = slabs[0].loop
    if id(loop) not in done:
        done.add(id(loop))
        _rebound(job, edits, flow, loop, deep, item.width, width)


def _check_index(job: Job, slab: Slab, new: cst.BaseExpression, width: Sym, env: Env) -> None:
    operand = job.located.evaluator.operand(new, env)
    assert operand is not None
    assert operand.dims is not None
    assert slab.load.src.dims is not None
    axis = slab.load.src.dims.index(slab.dim)
    dim = operand.dims[axis]
    right = dim.lo == slab.loop.ranges[0].var * width and (dim.extent is None or dim.extent == width)
    for other, old in zip(operand.dims, slab.load.src.dims, strict=True):
        right = right and (old is slab.dim or (other.lo == old.lo and other.extent == old.extent))
    if not right:
        raise Blocked("TL331", slab.load.node, "cannot prove the bounds of a smaller K slice")


def _rebound(job: Job, edits: Edits, flow: Flow, loop: Loop, deep: Sym, width: Sym, text: str) -> None:
    """The loop over slabs runs over slices."""
    item = loop.ranges[0]
    want = _count(item.extent, deep, width)
    evaluator = job.located.evaluator
    stop = item.stop_node
    if stop is None or want is None or not item.start.is_zero:
        raise Blocked("TL331", loop.node, "cannot tell the number of K slices")
    new = swapped(stop, loop.env, evaluator, deep, text)
    if evaluator.sym(new, loop.env) == want:
        edits.replace(stop, new)
        return
    for step in flow.before(loop):
        let = step.stmt
        if isinstance(let, Let) and isinstance(stop, cst.Name) and let.name == stop.value:
            new = swapped(let.value.node, let.env, evaluator, deep, text)
            if evaluator.sym(new, let.env) == want and _only_use(job, stop):
                edits.replace(let.value.node, new)
                return
            if evaluator.sym(new, loop.env) == want:
                edits.replace(stop, new)
                return
    raise Blocked("TL331", loop.node, "cannot prove the number of smaller K slices")


def _only_use(job: Job, name: cst.Name) -> bool:
    return sum(n.value == name.value for n in names_in(job.located.node)) == 2


def _count(extent: Sym, deep: Sym, width: Sym) -> Sym | None:
    """The number of slices in what ``extent`` slabs hold; None where the number of slabs is no division."""
    for atom in extent.atoms():
        if isinstance(atom, Div) and atom.den == deep:
            if atom.num // deep == extent:
                return atom.num // width
            if ceildiv(atom.num + 1, deep) == extent:
                return ceildiv(atom.num + 1, width)
    return None
