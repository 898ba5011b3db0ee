"""TL820 to TL831: is every tile split by rows the way ``threads=2`` splits it?

The compiler halves dim 0 of every UB buffer, adds the offset of the vector core to one index of a global tensor, and
halves loops over rows; it proves nothing. Evidence: facts 1 and
``src/transform/ascend_vid_reduction.cc``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from tl2npu.checks.row_split.split import Split, Use, is_element, is_row_view, split_of, starts_whole, takes_its_rows
from tl2npu.checks.subject import Finding, Placed, Subject
from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import side_of, writes
from tl2npu.kernel.bindings import is_arithmetic
from tl2npu.kernel.environment import Closure, Env
from tl2npu.kernel.expressions import Evaluator, code, terms_of
from tl2npu.kernel.model import (
    CUBE_MEMORY,
    Branch,
    Buffer,
    Copy,
    Dim,
    Let,
    Loop,
    Memory,
    Op,
    Operand,
    Range,
    Scalar,
    Side,
    Stmt,
    Store,
    Sync,
)
from tl2npu.kernel.symbolic import Opaque, Sym, const
from tl2npu.source.tree import calls_in, children


def check(subject: Subject) -> Iterator[Finding]:
    """Findings of a kernel launched with ``threads=2``; none for any other kernel."""
    if not subject.is_split:
        return
    split = split_of(subject)
    used = {use.buffer for use in split.uses}
    for buffer in subject.allocated(Memory.UB):
        if buffer in split.halved and buffer in used:
            yield from _check_buffer(subject, split, buffer)
    for use in split.uses:
        yield from _check_use(subject, split, use)
    for item in split.rows:
        yield from _check_loop(subject, split, item)


def _check_buffer(subject: Subject, split: Split, buffer: Buffer) -> Iterator[Finding]:
    if not buffer.shape:
        return
    node = buffer.node
    rows = buffer.shape[0]
    if subject.is_runtime(rows):
        yield Finding("TL831", node, f"the number of rows of `{buffer.name}` is known at run time only")
        return
    if rows == const(1):
        if _unit_row_matters(subject, split, buffer):
            two = ", ".join(["2", *map(code, buffer.shape_nodes[1:])])
            tile = f"`{buffer.name}` of ({two})"
            help = f"use `threads=1`, or give each block two rows: {tile}, half as many blocks, indices times two"
            if _is_the_same_for_all(subject, buffer):
                vector = f"`{buffer.name} = T.alloc_ub(({code(buffer.shape_nodes[-1])},), ...)`"
                help = f"use `threads=1`, or write {vector} in front of `T.Kernel`, of which each vector core has all"
            text = f"`{buffer.name}` has one row, which cannot be split between two vector cores"
            yield Finding("TL821", node, text, help=help)
        return
    odd = next((n for n in subject.numbers(rows) if n is not None and n % 2 and n > 1), None)
    if odd is not None:
        text = f"`{buffer.name}` has {odd} rows: the last one would be lost"
        help = f"give `{buffer.name}` {-(-odd // 16) * 16} rows, and each block as many, or use `threads=1`"
        yield Finding("TL820", node, text, lacks="even rows", help=help)


def _is_the_same_for_all(subject: Subject, buffer: Buffer) -> bool:
    """Whether every block loads the same row, as of weights, and nothing else is written to it."""
    written = [placed.stmt for placed in subject.statements if any(o.buffer is buffer for o in writes(placed.stmt))]
    return bool(written) and all(
        isinstance(stmt, Copy)
        and stmt.src.buffer.memory is Memory.GM
        and all(dim.lo.constant is not None for dim in stmt.src.dims or ())
        for stmt in written
    )


def _unit_row_matters(subject: Subject, split: Split, buffer: Buffer) -> bool:
    """A buffer of one element that only computes is harmless; one of several columns, or one that is loaded, is not."""
    if any(size != const(1) for size in buffer.shape):
        return True
    return any(
        isinstance(use.placed.stmt, Copy)
        and Memory.GM in (use.placed.stmt.src.buffer.memory, use.placed.stmt.dst.buffer.memory)
        for use in split.uses
        if use.buffer is buffer and not use.access.element
    )


def _check_use(subject: Subject, split: Split, use: Use) -> Iterator[Finding]:
    stmt, operand = use.placed.stmt, use.operand
    if isinstance(stmt, Copy) and operand in (stmt.src, stmt.dst):
        other = stmt.dst if operand is stmt.src else stmt.src
        yield from _check_copy(subject, split, use, other)
    if operand.dims and operand.dims[0].is_point and split.has_rows(use.buffer):
        yield from _check_row_index(subject, use)
    if isinstance(stmt, Op):
        yield from _check_op(subject, split, use, stmt)
    if not use.access.element or use.row is None:
        return
    if use.row in split.columns:
        text = (
            f"with `threads=2` each vector core has half of `{use.buffer.name}`, but `{use.row.name}` indexes all of it"
        )
        yield Finding("TL822", operand.node, text)


def _check_row_index(subject: Subject, use: Use) -> Iterator[Finding]:
    operand = use.operand
    assert operand.dims is not None
    shown = code(operand.node)
    if use.row is None:
        text = f"`{shown}`: the first index is not a loop variable: with `threads=2` each vector core reads its own row"
        yield Finding("TL826", operand.node, text)
        return
    if use.row.step is not None and use.row.step != const(1):
        yield Finding("TL826", operand.node, f"`{shown}`: the loop over `{use.row.name}` skips rows")
    elif use.row.start.is_zero and subject.known_different(use.row.extent, use.buffer.shape[0]):
        text = f"`{shown}`: the loop over `{use.row.name}` does not cover all rows of `{use.buffer.name}`"
        yield Finding("TL826", operand.node, text)
    elif use.row.start.is_zero and _is_smaller_of(use.row.extent, use.buffer.shape[0], use.row.stop_node):
        text = f"`{shown}`: the loop over `{use.row.name}` may not cover all rows of `{use.buffer.name}`"
        yield Finding("TL826", operand.node, text, as_it_stands="warning")


def _check_copy(subject: Subject, split: Split, use: Use, other: Operand) -> Iterator[Finding]:
    operand, buffer = use.operand, use.buffer
    assert isinstance(use.placed.stmt, Copy)
    node = use.placed.stmt.node
    shown = code(operand.node)
    view = is_row_view(operand, whole=False)
    if operand is use.placed.stmt.dst and takes_its_rows(split, other, operand):
        return
    if not view and not starts_whole(operand) and not is_element(operand) and split.has_rows(buffer):
        yield Finding(
            "TL825",
            node,
            f"`{shown}` is a part of the rows: with `threads=2` each vector core would copy half of that part",
        )
        return
    if other.buffer.memory is Memory.GM:
        yield from _check_global(subject, split, use, other)
    elif view and split.has_rows(other.buffer) and len(other.buffer.shape) == 1 and not is_element(other):
        text = f"`{other.buffer.name}` holds a row of `{buffer.name}`, but `threads=2` splits it in half"
        yield Finding("TL822", node, text)
    elif view and split.has_rows(other.buffer) and starts_whole(other):
        text = f"`{shown}` is a plane that no vector core has half of, but `threads=2` splits `{other.buffer.name}`"
        yield Finding("TL838", node, text)


def _check_global(subject: Subject, split: Split, use: Use, outer: Operand) -> Iterator[Finding]:
    operand, buffer = use.operand, use.buffer
    node, rank = use.placed.stmt.node, len(use.buffer.shape)
    tensor = outer.buffer
    if rank > len(tensor.shape):
        yield Finding("TL823", node, f"`{buffer.name}` has {rank} axes, `{tensor.name}` only {len(tensor.shape)}")
        return
    dims = outer.dims
    if dims is None and split.has_rows(buffer) and rank < len(tensor.shape):
        axis = len(tensor.shape) - rank
        if any(size != const(1) for size in tensor.shape[:axis]) or tensor.shape[axis] == const(1):
            wrong = f"`threads=2` adds the vector core's offset to axis {axis} of `{tensor.name}`"
            yield Finding("TL824", node, f"{wrong}, which is not the row axis", lacks="axes")
    if split.core is not None and split.has_rows(buffer) and any(dim.lo.depends_on(split.core) for dim in dims or ()):
        text = f"`{code(outer.node)}`: `threads=2` adds the vector core's offset itself"
        yield Finding("TL824", node, text, lacks="axes")
    if dims is None or not split.has_rows(buffer) or len(dims) != len(tensor.shape):
        return
    axis = len(dims) - rank
    wrong = f"`{code(outer.node)}`: `threads=2` adds the vector core's offset to axis {axis} of `{tensor.name}`"
    row = use.row if is_row_view(operand, whole=False) or is_element(operand) else None
    if operand.dims is not None and operand.dims[0].is_point:
        if row is None:
            return
        moving = [i for i, dim in enumerate(dims) if dim.lo.depends_on(str(row.var))]
        if moving != [axis]:
            yield Finding("TL824", node, f"{wrong}, which is not the row axis", lacks="axes")
        elif dims[axis].lo.substitute({str(row.var): row.var + 1}) - dims[axis].lo != const(1):
            yield Finding("TL826", node, f"`{code(outer.node)}`: the rows of `{buffer.name}` are not adjacent here")
        return
    if all(dim.is_point for dim in dims):
        return  # a start index: the extents are those of the buffer, aligned to the last axes
    before = [dim for dim in dims[:axis] if not dim.is_point and dim.extent != const(1)]
    extent = dims[axis].extent if not dims[axis].is_point else const(1)
    if before or extent == const(1):
        yield Finding("TL824", node, f"{wrong}, which is not the row axis", lacks="axes")
    elif extent is not None and subject.is_runtime(extent):
        yield Finding("TL831", node, f"`{code(outer.node)}`: the number of rows is known at run time only")
    elif extent is not None and subject.known_different(extent, buffer.shape[0]):
        text = f"`{code(outer.node)}` and `{buffer.name}` differ in rows: the second vector core starts at a wrong row"
        yield Finding("TL825", node, text)
    elif extent is not None and _is_smaller_of(extent, buffer.shape[0], dims[axis].node):
        text = f"`{code(outer.node)}` may have fewer rows than `{buffer.name}`: the second vector core starts too late"
        yield Finding("TL825", node, text, as_it_stands="warning")


def _is_smaller_of(extent: Sym, rows: Sym, node: cst.CSTNode | None) -> bool:
    """Whether the kernel takes the tile's rows or a smaller number, which are the same in the calls that are known.

    A constant of the factory's is one of these calls'.
    """
    atom = extent.atom
    smaller = isinstance(atom, Opaque) and atom.head == "min" and rows in atom.args
    return smaller and node is not None and bool(calls_in(node))


def _check_op(subject: Subject, split: Split, use: Use, stmt: Op) -> Iterator[Finding]:
    """An operator on rows whose other operand is a whole 1-D buffer: that one is cut along the columns."""
    if stmt.op.kind in (Kind.DEBUG, Kind.ANNOTATION) or side_of(stmt) is not Side.VECTOR:
        return
    if len(use.buffer.shape) != 1 or is_element(use.operand) or not split.has_rows(use.buffer):
        return
    views = [o for _, o in stmt.operands if o.buffer in split.halved and is_row_view(o)]
    if views and stmt.op.kind is not Kind.REDUCE:
        text = f"`{use.buffer.name}` runs along the columns of `{views[0].buffer.name}`, but `threads=2` halves it"
        yield Finding("TL822", use.operand.node, text)


def _check_loop(subject: Subject, split: Split, item: Range) -> Iterator[Finding]:
    uses = split.rows[item]
    if not any(split.has_rows(use.buffer) for use in uses):
        return
    values = ValueUses(subject.located.evaluator, split)
    loop = next(p for p in uses[0].placed.parents if isinstance(p, Loop) and item in p.ranges)
    if not item.start.is_zero:
        text = f"loop `{item.name}` does not start at 0, but `threads=2` halves only its length"
        yield Finding("TL827", loop.node, text)
    for placed in subject.below(loop):
        stmt = placed.stmt
        if _is_cube(stmt):
            text = f"`threads=2` halves the loop over `{item.name}`, which contains this cube-core statement"
            yield Finding("TL829", stmt.node, text)
        if item in split.columns or (isinstance(stmt, Op) and stmt.op.kind is Kind.DEBUG):
            continue  # reported as a vector along the columns; a print does not change the result
        found = values.of(placed, item)
        if found is None and isinstance(stmt, Copy):
            found = _global_use(values, split, stmt, item)
        if found is not None:
            text = (
                f"with `threads=2`, `{item.name}` as a value counts the rows of one vector core, not those of the tile"
            )
            yield Finding("TL828", stmt.node if isinstance(stmt, (Copy, Let)) else found, text)


def _is_cube(stmt: object) -> bool:
    if isinstance(stmt, Copy):
        pair = (stmt.src.buffer.memory, stmt.dst.buffer.memory)
        if pair == (Memory.UB, Memory.L1):
            return not (stmt.dst.dims and stmt.dst.dims[0].is_point)
        return pair == (Memory.L0C, Memory.UB) or side_of(stmt) is Side.CUBE
    return isinstance(stmt, Op) and side_of(stmt) is Side.CUBE


def _global_use(values: ValueUses, split: Split, stmt: Copy, item: Range) -> cst.CSTNode | None:
    """A copy of something else than a row of a split buffer whose global index contains the variable."""
    for operand, inner in ((stmt.src, stmt.dst), (stmt.dst, stmt.src)):
        if operand.buffer.memory is not Memory.GM:
            continue
        if inner.buffer in split.halved and inner.dims is not None and inner.dims[0].lo == item.var:
            continue
        for dim in operand.dims or ():
            if inner.buffer in split.gathered and dim.lo == item.var:
                continue  # a plain variable beside a gathered row gets the offset
            if values.in_dim(dim, stmt.env, item):
                return stmt.node
    return None


# Where a loop variable is used for its value, and not only to name a row of a split buffer.


class ValueUses:
    """Finds value uses of a halved loop variable: the compiler leaves it the local row number."""

    def __init__(self, evaluator: Evaluator, split: Split) -> None:
        self.evaluator, self.split = evaluator, split

    def of(self, placed: Placed, item: Range) -> cst.CSTNode | None:
        """The node of a value use in a statement itself (not in the statements inside it), None if there is none."""
        stmt = placed.stmt
        env = stmt.env
        for node in self._expressions(stmt, item):
            found = self._in_node(node, env, item)
            if found is not None:
                return found
        return None

    def _expressions(self, stmt: Stmt, item: Range) -> Iterator[cst.CSTNode]:
        if isinstance(stmt, Store):
            yield from self._columns(stmt.target)
            yield stmt.value.node
        elif isinstance(stmt, Let):
            # a name for plain arithmetic is followed to where it is used
            if not is_arithmetic(stmt.value.sym):
                yield stmt.value.node
        elif isinstance(stmt, Branch):
            yield stmt.cond.node
        elif isinstance(stmt, (Op, Sync)):
            for arg in stmt.args.values():
                yield from [arg.node] if isinstance(arg, Scalar) else self._columns(arg)
        elif isinstance(stmt, Loop):
            if item not in stmt.ranges:
                for inner in stmt.ranges:
                    yield from (node for node in (inner.start_node, inner.stop_node) if node is not None)
        elif isinstance(stmt, Copy):
            yield from (option.node for option in stmt.options.values())
            for operand in (stmt.src, stmt.dst):
                if operand.buffer.memory is Memory.UB:
                    yield from self._columns(operand)

    def _columns(self, operand: Operand) -> Iterator[cst.CSTNode]:
        # the row of a buffer of the cube core is wrong here for another reason (TL866, TL894)
        skipped = 1 if operand.buffer in self.split.halved or operand.buffer.memory in CUBE_MEMORY else 0
        for dim in (operand.dims or ())[skipped:]:
            yield dim.node

    def _in_node(self, node: cst.CSTNode, env: Env, item: Range) -> cst.CSTNode | None:
        if isinstance(node, cst.BinaryOperation):
            if self.split.counts_rows(self.evaluator.sym(node, env), item):
                return None
            syms = [(term, sign, self.evaluator.sym(term, env)) for term, sign in terms_of(node)]
            whole = [sym if sign > 0 else -sym for _, sign, sym in syms if is_arithmetic(sym)]
            if self.split.counts_rows(sum(whole, const(0)), item):  # the rest of the sum is no arithmetic of indices
                return self._first((term for term, _, sym in syms if not is_arithmetic(sym)), env, item)
        if isinstance(node, cst.Name):
            value = env.lookup(node.value)
            if isinstance(value, Closure):
                return self._in_node(value.node, value.env, item)
            if not isinstance(value, Sym) or not value.depends_on(str(item.var)):
                return None
            return None if self.split.counts_rows(value, item) else node
        if isinstance(node, cst.Attribute):
            return self._in_node(node.value, env, item)
        if isinstance(node, cst.Subscript):
            operand = self.evaluator.operand(node, env)
            if operand is not None:
                return self._first(self._columns(operand), env, item)
        return self._first(_expressions_in(node), env, item)

    def _first(self, nodes: Iterable[cst.CSTNode], env: Env, item: Range) -> cst.CSTNode | None:
        return next((found for node in nodes if (found := self._in_node(node, env, item)) is not None), None)

    def in_dim(self, dim: Dim, env: Env, item: Range) -> bool:
        """True if an index of a region uses the variable for its value, outside of elements of split buffers."""
        return self._in_node(dim.node, env, item) is not None


def _expressions_in(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    for child in children(node):
        if isinstance(child, cst.Arg):
            yield child.value
        elif not isinstance(child, cst.BaseCompoundStatement):
            yield child
