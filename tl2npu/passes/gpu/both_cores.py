"""TL108: what a kernel says so that both vector cores share its tiles rightly (``threads=2``).

The compiler gives each core half of the rows of every tile and restarts row numbers. Three things of a tile it cannot
halve, and all three can be said (the text that the compiler makes of them was read, for both targets):

* a vector along the columns, or a vector of numbers: allocated in front of ``T.Kernel``, where the pass that halves
  buffers does not come (``src/transform/ascend_vid_reduction.cc``: the root block), so that each core has all of it,
  with the tile in which a column of a tensor arrives;
* the row as a value: ``i + vid * (M // 2)`` with ``vid = T.get_block_binding(1)``, the second variable of the launch's
  frame (``src/ir.cc``), which is the number of the vector core;
* ``T.tile.select``, ``sigmoid`` and ``silu``, whose number of elements is not halved: of ``x[: M // 2, :]`` it is
right, and ``cast`` with half of the count. Target pto counts by tiles, so there the whole tile stays.

What is written here is judged by the checks of the split, as if an author had written it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import libcst as cst

from tl2npu.dialects.ascend.arguments import COUNTED
from tl2npu.dialects.catalogue import Kind
from tl2npu.dialects.compiler import COMPILERS, DEFAULT_COMPILER
from tl2npu.kernel.access import accesses, accesses_of
from tl2npu.kernel.bindings import assigned_names
from tl2npu.kernel.environment import Env
from tl2npu.kernel.expressions import code
from tl2npu.kernel.memory.roles import Site, sites
from tl2npu.kernel.model import (
    CUBE_MEMORY,
    Access,
    Alloc,
    Branch,
    Buffer,
    Copy,
    Kernel,
    Let,
    Loop,
    Memory,
    Op,
    Operand,
    Range,
    Scalar,
    Stmt,
    Store,
    walk,
    walk_with_parents,
)
from tl2npu.kernel.symbolic import Sym, const, product
from tl2npu.passes.gpu.memory import allocations
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import Names, factor, parse
from tl2npu.source.edits import Edits
from tl2npu.source.tree import children, names_in

_MATRIX = 2
_NUMBER = "# TL108: a vector core counts rows from 0 in its half; row numbers of the tile need which half it is"
_WHOLE = "# TL108: in front of T.Kernel, so that `threads=2` does not halve it: each vector core needs all of it"
_ARITHMETIC = (cst.Add, cst.Subtract, cst.Multiply, cst.FloorDivide, cst.Modulo)


def share(job: Job) -> bool:
    """Say all that ``threads=2`` needs to know; False if there is nothing to say."""
    kernel = job.kernel
    if kernel.launch is None:
        return False
    split = _Split(kernel)
    if _take_elements(job, split):
        kernel = job.kernel
        split = _Split(kernel)
    edits = Edits(job.file.index)
    words = _Words(job, edits)
    for loop in kernel.walk():
        if isinstance(loop, Loop):
            for item in loop.ranges:
                if split.halves(item, loop) and item.stop_node is not None:
                    words.number_rows(split, loop, item)
    words.give_rows()
    for stmt in kernel.walk():
        if isinstance(stmt, Op) and not _is_halved(job, stmt) and (stmt.op.name in COUNTED or "count" in stmt.args):
            words.name_half(split, stmt)
        elif isinstance(stmt, Op) and stmt.op.kind is Kind.ATOMIC:
            words.add_half(split, stmt)
    texts = words.take_out(split.whole)
    if not edits:
        return False
    job.apply(edits)
    launch, edits = job.kernel.launched.node, Edits(job.file.index)
    if words.core:
        first = launch.body.body[0]
        line = f"{_NUMBER}\n{words.core} = T.get_block_binding(1)"
        edits.replace_many(first, [*parse(job, line, launch), first])
    if texts:
        front = _front(job, launch, texts)
        edits.replace_many(front, [*parse(job, "\n".join([_WHOLE, *texts]), launch), front])
    job.apply(edits)
    allocations.finish(job)
    return True


def _take_elements(job: Job, split: _Split) -> bool:
    """Take the elements of columns one by one: for tiles in front of the launch there is no ``T.reduce_sum``.

    Conversions in front and behind, which only the sum needed, go.
    """
    edits = Edits(job.file.index)
    for stmt in job.kernel.walk():
        source, target = (stmt.args.get(name) for name in ("buffer", "out")) if isinstance(stmt, Op) else (None, None)
        if not _sums_rows(stmt) or not isinstance(source, Operand) or not isinstance(target, Operand):
            continue
        of, to = source.buffer, target.buffer
        if of not in split.whole:
            continue
        made = [copy for copy in _copies(job.kernel) if copy.dst.buffer is of and copy.src.buffer in split.columns]
        read = [copy for copy in _copies(job.kernel) if copy.src.buffer is to and copy.dst.is_whole]
        if len(made) == 1 and _uses(job.kernel, of) == 2:
            of = _left_out(edits, made[0], of).src.buffer
        if len(read) == 1 and _uses(job.kernel, to) == 2:
            to = _left_out(edits, read[0], to).dst.buffer
        name = Names(job).fresh("i", "element")
        head = f"for {name} in T.serial({code(of.shape_nodes[0])}):"
        text = f"{head}\n    {to.name}[{name}] = {of.name}[{name}, 0]\n"
        edits.replace_many(stmt.node, parse(job, text, stmt.node))
        job.change("TL108", stmt.node, f"took the elements of `{of.name}` one by one")
    if edits:
        job.apply(edits)
        allocations.finish(job)  # tiles that no instruction touches any more
    return bool(edits)


def _copies(kernel: Kernel) -> Iterator[Copy]:
    return (stmt for stmt in kernel.walk() if isinstance(stmt, Copy))


def _uses(kernel: Kernel, buffer: Buffer) -> int:
    return sum(not isinstance(stmt, Alloc) for stmt, _ in accesses_of(kernel, buffer))


def _left_out(edits: Edits, copy: Copy, buffer: Buffer) -> Copy:
    """Leave out a copy and the tile that only it needed."""
    edits.replace_many(copy.node, [])
    if buffer.statement is not None:
        edits.replace_many(buffer.statement, [])
    return copy


def _front(job: Job, launch: cst.With, texts: list[str]) -> cst.CSTNode:
    """The first assignment in front of the launch, if the tiles do not need it, else the launch.

    The compiler opens a frame for a number that gets a name, and allocates nothing between it and the launch
    ("Block frame or PrimFunc frame not find").
    """
    block = job.file.index.parent(launch)
    lines = list(block.body) if isinstance(block, cst.IndentedBlock) else [launch]
    above = [line for line in lines[: lines.index(launch)] if assigned_names(line)]
    bound = {name for line in above for name in assigned_names(line)}
    needed = {name.value for text in texts for name in names_in(cst.parse_module(text))}
    return above[0] if above and not bound & needed else launch


@dataclass(eq=False)
class _Split:
    """The tiles that stay whole, and the loops that the compiler halves."""

    kernel: Kernel
    whole: set[Buffer] = field(default_factory=set)
    columns: set[Buffer] = field(default_factory=set)
    """Tiles with a column of a tensor, which each core may have all of."""

    def __post_init__(self) -> None:
        self._seed()
        self.columns = _columns_of_tensors(self.kernel)
        before = -1
        while before != len(self.whole):
            before = len(self.whole)
            for stmt, parents in walk_with_parents(self.kernel.body):
                together = self._together(stmt, parents)
                if together & self.whole:
                    self.whole |= together

    def _seed(self) -> None:
        """Vectors of numbers, and vectors that run along the columns of a tile."""
        for stmt, parents in walk_with_parents(self.kernel.body):
            ranges = [item for loop in (*parents, stmt) if isinstance(loop, Loop) for item in loop.ranges]
            columns = _columns(stmt)
            if isinstance(stmt, Op) and stmt.op.name == "tile.createvecindex":
                self.whole |= {o.buffer for _, o in stmt.operands if _is_vector(o.buffer)}
            if isinstance(stmt, Op) and stmt.op.kind is not Kind.REDUCE and any(_is_row(o) for _, o in stmt.operands):
                self.whole |= {o.buffer for _, o in stmt.operands if _is_vector(o.buffer) and o.dims is None}
            for access in accesses(stmt):
                first = _first(access.operand)
                moved = next((item for item in ranges if item.var == first), None)
                column = moved is not None and moved.var in columns
                number = first is not None and access.element and not any(first.depends_on(str(i.var)) for i in ranges)
                if (column or number) and _is_vector(access.operand.buffer):
                    self.whole.add(access.operand.buffer)

    def _together(self, stmt: Stmt, parents: Sequence[Stmt]) -> set[Buffer]:
        """Vectors of which a statement makes one from the others, element by element, or by a condition on them."""
        around = [a for parent in parents if isinstance(parent, Branch) for a in accesses(parent)]
        found = [a.operand for a in (*accesses(stmt), *around)]
        if any(o.buffer.memory is Memory.UB and len(o.buffer.shape) > 1 for o in found if o.buffer not in self.columns):
            return set()
        shared = [o for o in found if _is_vector(o.buffer) or o.buffer in self.columns]
        if isinstance(stmt, (Copy, Op)):
            return {o.buffer for o in shared if o.dims is None}
        if isinstance(stmt, Store):
            first = _first(stmt.target)
            return {o.buffer for o in shared if _first(o) == first}
        return set()

    def is_halved(self, buffer: Buffer) -> bool:
        """A tile of the vector cores of which each has half."""
        rows = buffer.shape[0] if buffer.shape else const(1)
        return buffer.memory is Memory.UB and buffer not in self.whole and not buffer.outside and rows != const(1)

    def halves(self, item: Range, loop: Loop) -> bool:
        """A loop over the rows of a halved tile."""
        return any(self.is_halved(a.operand.buffer) and _first(a.operand) == item.var for a in _inside(loop))


@dataclass(eq=False)
class _Words:
    """The edits."""

    job: Job
    edits: Edits
    core: str = ""
    rows: dict[Buffer, list[cst.Subscript]] = field(default_factory=dict)
    """Elements of vectors that stay whole, at the row of a halved loop."""
    parts: dict[Buffer, str] = field(default_factory=dict)
    """The tiles with a core's part of such a vector."""
    unread: set[Buffer] = field(default_factory=set)
    """Vectors of which nothing but those parts is read."""

    def number_rows(self, split: _Split, loop: Loop, item: Range) -> None:
        """Add the first row of the core to a loop variable wherever it is a value."""
        for stmt in (loop, *walk(loop.body)):
            for root in _roots(split, stmt, item):
                for node, around in self._values(split, root, None, stmt.env, item):
                    self._number(node, around, item)

    def _values(
        self, split: _Split, node: cst.CSTNode, around: cst.CSTNode | None, env: Env, item: Range
    ) -> Iterator[tuple[cst.Name, cst.CSTNode | None]]:
        """The uses of a loop variable in an expression, with the node around each, but for rows of halved tiles."""
        if isinstance(node, cst.Name):
            if node.value == item.name and env.lookup(node.value) == item.var:
                yield node, around
            return
        operand = self.job.located.evaluator.operand(node, env) if isinstance(node, cst.Subscript) else None
        if operand is not None:
            if operand.buffer in split.whole and _first(operand) == item.var:
                assert isinstance(node, cst.Subscript)
                self.rows.setdefault(operand.buffer, []).append(node)
                return
            local = split.is_halved(operand.buffer) or operand.buffer.memory in CUBE_MEMORY
            for dim in (operand.dims or ())[1 if local else 0 :]:
                yield from self._values(split, dim.node, None, env, item)
            return
        for child in children(node):
            if not isinstance(node, (cst.Call, cst.Attribute)) or child is not getattr(node, "func", None):
                yield from self._values(split, child, node, env, item)

    def _number(self, node: cst.Name, around: cst.CSTNode | None, item: Range) -> None:
        assert item.stop_node is not None
        loose = around is None or isinstance(around, (cst.Arg, cst.Index, cst.Slice, cst.ComparisonTarget))
        loose = loose or (isinstance(around, cst.Comparison) and around.left is node)
        if isinstance(around, cst.BinaryOperation):
            loose = isinstance(around.operator, cst.Add) or (
                isinstance(around.operator, cst.Subtract) and around.left is node
            )
        text = f"{node.value} + {self.vid()} * {_half(item.stop_node)}"
        self.edits.replace(node, cst.parse_expression(text if loose else f"({text})"))
        self.job.change("TL108", node, f"added the vector core's first row to `{node.value}`")

    def name_half(self, split: _Split, stmt: Op) -> None:
        """Name half of the rows in an operator that counts them."""
        count = stmt.args.get("count")
        both = [stmt.args.get(name) for name in COUNTED.get(stmt.op.name, ())] or [o for _, o in stmt.operands]
        tiles = [o for o in both if isinstance(o, Operand) and o.is_whole and split.is_halved(o.buffer)]
        if len(tiles) < len(both):
            return
        if isinstance(count, Scalar):
            if any(count.sym != product(tile.buffer.shape) for tile in tiles):
                return
            rows, *rest = tiles[0].buffer.shape_nodes
            text = " * ".join([_half(rows, bare=not rest), *(factor(code(size)) for size in rest)])
            self.edits.replace(count.node, cst.parse_expression(text))
        for operand in tiles if count is None else ():
            others = ", :" * (len(operand.buffer.shape) - 1)
            text = f"{operand.buffer.name}[: {_half(operand.buffer.shape_nodes[0], bare=True)}{others}]"
            self.edits.replace(operand.node, cst.parse_expression(text))
        self.job.change("TL108", stmt.node, f"`T.{stmt.op.name}` takes the rows of one vector core")

    def add_half(self, split: _Split, stmt: Op) -> None:
        """Let each core add its half of a tile to its own rows of a tensor."""
        source, target = stmt.args.get("src"), stmt.args.get("dst")
        if not isinstance(source, Operand) or not isinstance(target, Operand) or not target.dims:
            return
        rank = len(source.buffer.shape)
        if not source.is_whole or not split.is_halved(source.buffer) or len(target.dims) < rank:
            return
        rows = source.buffer.shape[0]
        parts = [dim.node for dim in target.dims if isinstance(dim.node, cst.Slice) and dim.extent == rows]
        half, bare = (_half(source.buffer.shape_nodes[0], bare=bare) for bare in (False, True))
        if parts:
            first = _sum(parts[0].lower, f"{self.vid()} * {half}")
            part = cst.ensure_type(cst.parse_expression(f"x[{first} : {first} + {bare}]"), cst.Subscript)
            self.edits.replace(parts[0], part.slice[0].slice)
        elif all(dim.is_point for dim in target.dims):  # where it starts; its last axes are those of the tile
            start = target.dims[-rank].node
            assert isinstance(start, cst.BaseExpression)
            self.edits.replace(start, cst.parse_expression(_sum(start, f"{self.vid()} * {half}")))
        else:
            return
        rest = ", :" * (rank - 1)
        self.edits.replace(source.node, cst.parse_expression(f"{source.buffer.name}[: {bare}{rest}]"))
        self.job.change("TL108", stmt.node, f"each vector core adds its rows of `{source.buffer.name}`")

    def give_rows(self) -> None:
        """Copy a core's part of a vector to a tile of its own, where elements of the vector belong to rows."""
        where = sites(self.job.kernel) if self.rows else {}
        behind: dict[cst.CSTNode, list[cst.CSTNode]] = {}
        for buffer, places in self.rows.items():
            found = list(accesses_of(self.job.kernel, buffer))
            writers = [stmt for stmt, access in found if access.writes]
            reading = {id(place) for place in places}
            readers = [stmt for stmt, access in found if id(access.operand.node) in reading]
            last = _written(where, writers, readers)
            if not last:
                continue
            bare, half = (_half(buffer.shape_nodes[0], bare=bare) for bare in (True, False))
            start = f"{self.vid()} * {half}"
            self.parts[buffer] = name = Names(self.job).fresh(f"{buffer.name}_rows")
            text = f"T.copy({buffer.name}[{start} : {start} + {bare}], {name}[: {bare}])"
            if _is_index(writers[0]) and len(writers) == 1:
                text = f"T.tile.arith_progression({name}, {start}, 1, {bare})"
                if {id(access.operand.node) for _, access in found if access.reads} <= reading:
                    self.unread.add(buffer)
            for stmt in last:
                new = behind.setdefault(stmt.node, [] if buffer in self.unread else [stmt.node])
                new += parse(self.job, text, stmt.node)
            for place in places:
                self.edits.replace(place, place.with_changes(value=cst.Name(name)))
            self.job.change("TL108", last[0].node, f"`{name}`: each vector core's part of `{buffer.name}`")
        for node, new in behind.items():
            self.edits.replace_many(node, new)

    def take_out(self, whole: set[Buffer]) -> list[str]:
        """Take the allocations of tiles out of the launch; their text."""
        texts = []
        for buffer in self.job.kernel.buffers.values():
            if buffer in whole and buffer.statement is not None and isinstance(buffer.node, cst.Call):
                call = buffer.node.with_changes(func=cst.parse_expression("T.alloc_ub"))
                texts += [f"{buffer.name} = {code(call)}"] if buffer not in self.unread else []
                inside = call.with_changes(func=cst.parse_expression("T.alloc_shared"))
                part = [f"{self.parts[buffer]} = {code(inside)}"] if buffer in self.parts else []
                self.edits.replace_many(buffer.statement, parse(self.job, "\n".join(part), buffer.statement))
                self.job.change("TL108", buffer.statement, f"each vector core has all of `{buffer.name}`")
        return texts

    def vid(self) -> str:
        """The name of the vector core's number."""
        self.core = self.core or Names(self.job).fresh("vid", "core")
        return self.core


def _is_halved(job: Job, stmt: Op) -> bool:
    """The element count of an operator is halved by the compiler, or taken from the halved tile (target pto)."""
    compiler = COMPILERS.get(str(job.options.ascend_version), DEFAULT_COMPILER)
    pto = any(isinstance(target, str) and "pto" in target for target in job.located.targets)
    return pto or compiler.adapts_to_vid(stmt.op.name)


def _written(where: dict[int, Site], writers: Sequence[Stmt], readers: Sequence[Stmt]) -> list[Stmt]:
    """The statements behind which a vector has its value, beside those that read it; none if one of them does both."""
    if not writers or not readers:
        return []
    chains = {id(stmt): [*where[id(stmt)].parents, stmt] for stmt in (*writers, *readers)}
    depth = 0
    while all(chain[depth + 1 :] and chain[depth] is chains[id(readers[0])][depth] for chain in chains.values()):
        depth += 1
    changing, reading = ({id(chains[id(stmt)][depth]) for stmt in some} for some in (writers, readers))
    if changing & reading:
        return []
    body = [s for s in where[id(chains[id(writers[0])][depth])].body if id(s) in changing | reading]
    return [
        stmt  # in a loop, what is read first is what was written last
        for stmt, following in zip(body, [*body[1:], *body[:1]], strict=True)
        if id(stmt) in changing and id(following) in reading
    ]


def _roots(split: _Split, stmt: Stmt, item: Range) -> Iterator[cst.CSTNode]:
    """The expressions of a statement itself, but for places of tensors to which the compiler adds the core's row."""
    if isinstance(stmt, Store):
        yield from (stmt.target.node, stmt.value.node)
    elif isinstance(stmt, Let):
        yield stmt.value.node
    elif isinstance(stmt, Branch):
        yield stmt.cond.node
    elif isinstance(stmt, Op):
        yield from (arg.node for arg in stmt.args.values())
    elif isinstance(stmt, Loop):
        ends = (node for inner in stmt.ranges if inner is not item for node in (inner.start_node, inner.stop_node))
        yield from (node for node in ends if node is not None)
    elif isinstance(stmt, Copy):
        for operand, other in ((stmt.src, stmt.dst), (stmt.dst, stmt.src)):
            if operand.buffer.memory is not Memory.GM or not split.is_halved(other.buffer):
                yield operand.node


def _half(rows: cst.BaseExpression, *, bare: bool = False) -> str:
    """Half of a number of rows, as a factor or alone."""
    text = code(rows)
    if text.isdecimal():
        return str(int(text) // 2)
    return f"{factor(text)} // 2" if bare else f"({factor(text)} // 2)"


def _sum(start: cst.BaseExpression | None, term: str) -> str:
    """The text of a start, if there is one, plus a term."""
    if start is None or (isinstance(start, cst.Integer) and start.value == "0"):
        return term
    loose = isinstance(start, cst.BinaryOperation) and not isinstance(start.operator, _ARITHMETIC)
    text = f"({code(start)})" if loose or isinstance(start, cst.IfExp) else code(start)
    return f"{text} + {term}"


def _columns_of_tensors(kernel: Kernel) -> set[Buffer]:
    """Tiles with a column of a tensor in their first one and zeros beside it (TL169), of which nothing else is used."""
    tiles = {b for b in kernel.buffers.values() if b.memory is Memory.UB and len(b.shape) == _MATRIX and b.index < 0}
    before = None
    while tiles != before:
        before = set(tiles)
        for stmt in kernel.walk():
            if isinstance(stmt, Copy):
                source, target = stmt.src.buffer, stmt.dst.buffer
                if source not in tiles and (stmt.options or not _is_column(stmt.src)):
                    tiles.discard(target)  # `pad_value` fills the other columns
                if target not in tiles:
                    tiles.discard(source)
            elif not isinstance(stmt, Alloc):
                tiles -= {a.operand.buffer for a in accesses(stmt) if not _takes_first(stmt, a)}
    return tiles


def _is_column(operand: Operand) -> bool:
    dims = operand.dims or ()
    return operand.buffer.memory is Memory.GM and len(dims) >= _MATRIX and dims[-1].extent == const(1)


def _takes_first(stmt: Stmt, access: Access) -> bool:
    """Elements of the first column are read, or all of a row summed."""
    if isinstance(stmt, Store):
        dims = access.operand.dims or ()
        return access.reads and not access.writes and access.element and dims[-1].lo.is_zero
    return access.reads and not access.writes and _sums_rows(stmt)


def _sums_rows(stmt: Stmt) -> bool:
    if not isinstance(stmt, Op) or stmt.op.name != "reduce_sum":
        return False
    clear, axis = stmt.args.get("clear"), stmt.args.get("dim")
    along = isinstance(axis, Scalar) and axis.sym.constant in (1, -1)
    return along and not (isinstance(clear, Scalar) and clear.sym.is_zero)


def _is_vector(buffer: Buffer) -> bool:
    return buffer.memory is Memory.UB and len(buffer.shape) == 1 and buffer.index < 0


def _is_row(operand: Operand) -> bool:
    """``x[i, :]``: a row of a tile."""
    dims = operand.dims
    return dims is not None and len(dims) > 1 and dims[0].is_point and not dims[-1].is_point


def _is_index(stmt: Stmt) -> bool:
    """The vector ``0, 1, 2, ...`` is made."""
    if not isinstance(stmt, Op) or stmt.op.name != "tile.createvecindex":
        return False
    first = stmt.args["firstValue"]
    return isinstance(first, Scalar) and first.sym.constant == 0


def _first(operand: Operand) -> Sym | None:
    """The first index of an element or of a row."""
    return operand.dims[0].lo if operand.dims and operand.dims[0].is_point else None


def _columns(stmt: Stmt) -> set[Sym]:
    """The indices of tiles in a statement behind the first one."""
    found = (a.operand for a in accesses(stmt) if a.operand.buffer.memory is Memory.UB)
    return {dim.lo for operand in found for dim in (operand.dims or ())[1:]}


def _inside(loop: Loop) -> Iterator[Access]:
    for stmt in walk(loop.body):
        yield from accesses(stmt)
