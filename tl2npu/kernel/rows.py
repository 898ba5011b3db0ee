"""Role analysis of the ``vid`` axis: which buffers are split by rows between the two vector cores.

``vid`` is 0 or 1, so every expression is known from its values at both: ``e(vid) == e(0) + vid * (e(1) - e(0))``. A
copy between global memory and UB whose row start moves by exactly the rows of its UB tile splits that tile. Rows of
buffers and loop variables that index them form *axes*; operators tie axes together, and an axis with one split member
must be split throughout.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import accesses, changes, scalars, side_of
from tl2npu.kernel.bindings import is_arithmetic
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.environment import Closure, Env
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import (
    Alloc,
    Branch,
    Buffer,
    Copy,
    Dim,
    Kernel,
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
    walk,
    walk_with_parents,
)
from tl2npu.kernel.symbolic import Div, Sym, Var, const
from tl2npu.source.tree import children


@dataclass(eq=False)
class Axis:
    """Rows that belong together: dim 0 of buffers and loop ranges over them. ``half`` is the split, None: not split."""

    buffers: list[Buffer] = field(default_factory=list)
    ranges: list[Range] = field(default_factory=list)
    half: Sym | None = None
    evidence: cst.CSTNode | None = None
    whole: cst.CSTNode | None = None
    used: bool = False


def at(sym: Sym, vid: str, value: int) -> Sym:
    """The expression on vector core ``value``."""
    return sym.substitute({vid: value})


def delta(sym: Sym, vid: str) -> Sym:
    """How far the expression moves from core 0 to core 1."""
    return at(sym, vid, 1) - at(sym, vid, 0) if sym.depends_on(vid) else const(0)


class Parity:
    """Equality under the assumption that what the old kernel halves is even, as the old kernel itself assumes.

    With an odd extent the two halves of the old kernel do not cover its tile, so it was wrong before.
    """

    def __init__(self) -> None:
        self.even: set[str] = set()
        self.rounded_up: set[str] = set()
        self.overlapping: set[str] = set()

    def assume(self, half: Sym) -> None:
        """Take the variables that ``half`` halves to be even."""
        for name, up in _halved(half):
            self.even.add(name)
            if up:
                self.rounded_up.add(name)

    def normal(self, sym: Sym) -> Sym:
        """The normal form in which even variables are written as twice their half."""
        return sym.map_variables(lambda name: Sym.of({(Var(name + "/2"),): 2}) if name in self.even else None)

    def equal(self, left: Sym, right: Sym) -> bool:
        """Proved equal, given the assumptions.

        ``n // 2`` is equal to ``ceildiv(n, 2)`` only by assumption: with odd ``n`` the old halves overlap.
        """
        if left == right:
            return True
        if self.normal(left) != self.normal(right):
            return False
        self.overlapping |= {name for side in (left, right) for name, up in _halved(side) if up and name in self.even}
        return True


def _halved(sym: Sym) -> Iterator[tuple[str, bool]]:
    """The variables that an expression halves, and whether it rounds up: ``ceildiv(n, 2)`` serves an odd ``n`` too."""
    for atom in sym.atoms():
        if isinstance(atom, Div) and atom.den.constant is not None and atom.den.constant % 2 == 0:
            names = [m[0].name for m, c in atom.num.terms if len(m) == 1 and isinstance(m[0], Var) and c % 2]
            if len(names) == 1:
                yield names[0], any(monomial == () for monomial, _ in atom.num.terms)


class Rows:
    """The analysis of one kernel; raises :class:`Blocked` when the halves cannot be proved to tile the whole."""

    def __init__(self, kernel: Kernel, vid: str) -> None:
        self.kernel, self.vid, self.parity = kernel, vid, Parity()
        self._axis: dict[object, Axis] = {}
        self.tile_starts: set[Dim] = set()
        self.loops: dict[Stmt, tuple[Range, ...]] = {}
        for stmt, parents in walk_with_parents(kernel.body):
            around = (*parents, stmt) if isinstance(stmt, Loop) else parents
            self.loops[stmt] = tuple(r for p in around if isinstance(p, Loop) for r in p.ranges)
        for buffer in kernel.buffers.values():
            if buffer.memory is Memory.UB:
                self._axis[buffer] = Axis([buffer])
        for stmt in kernel.walk():
            if isinstance(stmt, Loop):
                for item in stmt.ranges:
                    self._axis[item] = Axis([], [item])
        for stmt in kernel.walk():
            self._link(stmt)
        for stmt in kernel.walk():
            self._evidence(stmt)
        self._resolve()

    def axis(self, member: Buffer | Range) -> Axis | None:
        """The axis of a UB buffer's rows or of a loop range."""
        return self._axis.get(member)

    def is_split(self, buffer: Buffer) -> bool:
        """True if the buffer holds half of the rows of a tile."""
        found = self._axis.get(buffer)
        return found is not None and found.half is not None

    def range_of(self, sym: Sym, stmt: Stmt) -> Range | None:
        """The enclosing loop whose plain variable the index is."""
        return next((item for item in self.loops[stmt] if item.var == sym), None)

    # linking -----------------------------------------------------------------------------------------------------

    def _tie(self, members: list[Buffer | Range]) -> None:
        axes = [self._axis[m] for m in members if m in self._axis]
        for other in axes[1:]:
            first = self._axis[members[0]] if members[0] in self._axis else axes[0]
            if other is first:
                continue
            first.buffers += other.buffers
            first.ranges += other.ranges
            first.half = first.half or other.half
            for member in (*other.buffers, *other.ranges):
                self._axis[member] = first

    def _link(self, stmt: Stmt) -> None:
        for access in accesses(stmt):
            operand = access.operand
            if operand.buffer in self._axis:
                self._axis[operand.buffer].used = True
                if operand.dims:
                    found = self.range_of(operand.dims[0].lo, stmt) if operand.dims[0].is_point else None
                    if found is not None:
                        self._tie([found, operand.buffer])
        if isinstance(stmt, Copy):
            pair = [o.buffer for o in (stmt.src, stmt.dst) if o.buffer.memory is Memory.UB and o.dims is None]
            if len(pair) == 2:
                self._tie(list(pair))
        elif isinstance(stmt, Op) and side_of(stmt) is Side.VECTOR:
            self._link_op(stmt)

    def _link_op(self, stmt: Op) -> None:
        whole = [o.buffer for _, o in stmt.operands if o.buffer.memory is Memory.UB and o.dims is None]
        whole = [b for b in whole if b.shape and b.shape[0] != const(1)]
        if stmt.op.kind is Kind.REDUCE:
            dim = stmt.args.get("dim")
            value = dim.sym.constant if isinstance(dim, Scalar) else -1
            rank = len(whole[0].shape) if whole else 0
            if value is None or (value if value >= 0 else value + rank) != rank - 1 or rank < 2:
                return
        for i, left in enumerate(whole):
            for right in whole[i + 1 :]:
                if left.shape[0] == right.shape[0]:
                    self._tie([left, right])

    # evidence ----------------------------------------------------------------------------------------------------

    def _depends(self, sym: Sym) -> bool:
        return sym.depends_on(self.vid)

    def _evidence(self, stmt: Stmt) -> None:
        if isinstance(stmt, Copy):
            self._copy_evidence(stmt)
            loads = [*stmt.src.loads, *stmt.dst.loads]
        else:
            loads = []
            for access in accesses(stmt):
                loads.append(access.operand)
            self._scalar_use(stmt)
        for operand in loads:
            self._load_evidence(stmt, operand)

    def _scalar_use(self, stmt: Stmt) -> None:
        for item in stmt.ranges if isinstance(stmt, Loop) else ():
            if self._depends(item.start) or self._depends(item.extent):
                raise Blocked("TL220", stmt.node, f"the bounds of loop `{item.name}` depend on vid")
        for scalar in scalars(stmt) if isinstance(stmt, (Op, Store, Branch)) else ():
            sym = scalar.sym
            for load in scalar.loads:
                sym = const(0) if sym.depends_on(self.vid) and load.dims and self._is_plain_load(sym, load) else sym
            if self._depends(sym):
                if any(
                    at(sym, self.vid, 1) == at(sym, self.vid, 0).substitute({str(r.var): r.var + r.extent})
                    for r in self.loops[stmt]
                ):
                    raise Blocked("TL828", stmt.node, "a row number is used as a value, not as an index")
                raise Blocked("TL220", stmt.node, "vid is used as a value, not as a row offset")

    def _is_plain_load(self, sym: Sym, load: Operand) -> bool:
        atoms = list(sym.atoms())
        return bool(atoms) and getattr(atoms[0], "head", "") == f"load {load.buffer.name}"

    def _load_evidence(self, stmt: Stmt, operand: Operand) -> None:
        """An element or a row of an on-chip buffer: ``ix[i + vid * half]`` reads the core's half of a whole buffer."""
        for position, dim in enumerate(operand.dims or ()):
            if not self._depends(dim.lo):
                continue
            if operand.buffer.memory is Memory.GM and dim.is_point and self._row_use(stmt, dim):
                continue
            if position != 0 or not dim.is_point or self._row_use(stmt, dim) is None:
                raise Blocked(
                    "TL221", stmt.node, f"`{operand.buffer.name}` is indexed with a vid term that is not a row offset"
                )

    def _row_use(self, stmt: Stmt, dim: Dim) -> Range | None:
        """``base + i + vid * half``, ``i`` the variable of a loop over ``half`` rows: the loop runs over split rows."""
        half = delta(dim.lo, self.vid)
        for item in self.loops[stmt]:
            shifted = at(dim.lo, self.vid, 0)
            if shifted.substitute({str(item.var): item.var + half}) == at(dim.lo, self.vid, 1):
                self.parity.assume(half)
                if not item.start.is_zero or not self.parity.equal(item.extent, half):
                    text = f"loop `{item.name}` does not run over exactly the rows of one vector core"
                    raise Blocked("TL221", stmt.node, text)
                self._set_half(self._axis[item], half, stmt.node)
                return item
        return None

    def _set_half(self, axis: Axis, half: Sym, node: cst.CSTNode) -> None:
        self.parity.assume(half)
        if axis.half is not None and not self.parity.equal(axis.half, half):
            raise Blocked("TL221", node, "the vector cores' offset is another one than in an earlier statement")
        axis.half = axis.half or half
        axis.evidence = axis.evidence or node

    def _copy_evidence(self, stmt: Copy) -> None:
        outer, inner = stmt.src, stmt.dst
        if inner.buffer.memory is Memory.GM:
            outer, inner = inner, outer
        self._refuse_on_chip(stmt, inner)
        if inner.buffer.memory is not Memory.UB or outer.buffer.memory is not Memory.GM:
            return
        moved = [(i, d) for i, d in enumerate(outer.dims or ()) if not delta(d.lo, self.vid).is_zero]
        if not moved:
            first = inner.dims[0] if inner.dims else None
            if first is None or not first.is_point or first.lo.constant is not None:
                self._axis[inner.buffer].whole = self._axis[inner.buffer].whole or stmt.node
            return
        if len(moved) > 1:
            raise Blocked("TL221", stmt.node, "vid is in more than one index of the copy")
        if inner.dims and inner.dims[0].is_point and not all(dim.is_point for dim in inner.dims[1:-1]):
            name = inner.buffer.name
            raise Blocked("TL220", stmt.node, f"`threads=2` splits axis 0 of `{name}`, and the rows are behind it")
        axis, dim = moved[0]
        if dim.is_point and not self._is_tile_row(outer, inner, axis):
            if any(self._depends(load_dim.lo) for load in dim.loads for load_dim in load.dims or ()):
                return  # a gathered row: the index buffer's own load gives the evidence
            if self._row_use(stmt, dim) is None:
                raise Blocked("TL220", stmt.node, "vid selects a work item, not half of the rows of a tile")
            return
        self._check_half(stmt, inner, dim, self._rows_of(inner, outer, axis))
        self.tile_starts.add(dim)
        self._set_half(self._axis[inner.buffer], delta(dim.lo, self.vid), stmt.node)

    def _refuse_on_chip(self, stmt: Copy, inner: Operand) -> None:
        """The id of the vector core chooses no part of a tile, and nothing that the cube core copies."""
        if inner.buffer.memory is not Memory.UB:
            if any(self._depends(dim.lo) for side in (stmt.src, stmt.dst) for dim in side.dims or ()):
                raise Blocked("TL221", stmt.node, "vid is used in a copy of the cube core")
            return
        for dim in inner.dims or ():
            if self._depends(dim.lo) or (dim.extent is not None and self._depends(dim.extent)):
                raise Blocked("TL221", stmt.node, f"vid selects a part of the on-chip buffer `{inner.buffer.name}`")

    def _check_half(self, stmt: Copy, inner: Operand, dim: Dim, rows: Sym | None) -> None:
        """The offset at ``dim`` of the second vector core must be the rows of the tile, and both copy as many."""
        half = delta(dim.lo, self.vid)
        self.parity.assume(half)
        if rows is None:
            raise Blocked("TL220", stmt.node, "vid splits the columns of the tile, not its rows")
        extent = rows if dim.extent is None else at(dim.extent, self.vid, 0)
        if dim.extent is not None and not self.parity.equal(at(dim.extent, self.vid, 1), extent):
            raise Blocked("TL221", stmt.node, "the two vector cores copy different numbers of rows")
        if not self.parity.equal(half, rows) or not self.parity.equal(extent, rows):
            raise Blocked(
                "TL221",
                stmt.node,
                f"the vector cores' offset is not half of the tile `{inner.buffer.name}`: `{code(dim.node)}`",
            )

    def _is_tile_row(self, outer: Operand, inner: Operand, axis: int) -> bool:
        """True if a start index at ``axis`` is where the rows of the UB tile begin (base-index form)."""
        dims = outer.dims or ()
        if any(not d.is_point for d in dims) or inner.is_indexed:
            return False
        rank = len(inner.dims) if inner.dims is not None else len(inner.buffer.shape)
        return axis >= len(dims) - rank and inner.dims is None

    def _rows_of(self, inner: Operand, outer: Operand, axis: int) -> Sym | None:
        """Rows of the UB tile if ``axis`` of the global tensor is the tile's row axis, else None."""
        shape = inner.buffer.shape
        dims = outer.dims or ()
        sliced = [i for i, d in enumerate(dims) if not d.is_point]
        if sliced:
            real = [s for s in shape if s != const(1)] if len(sliced) != len(shape) else list(shape)
            kept = sliced[-len(shape) :] if len(sliced) >= len(shape) else sliced
            position = kept.index(axis) if axis in kept else -1
            if position != 0 or not real:
                return None
        elif axis != len(dims) - len(shape):
            return None
        if inner.dims is not None:
            first = inner.dims[0]
            return first.extent if first.extent is not None and first.lo.is_zero else None
        return shape[0]

    # resolution --------------------------------------------------------------------------------------------------

    def _other_rows(self, buffer: Buffer, axis: Axis) -> str:
        """Why a buffer cannot be split as the others of its axis are, in the author's own sizes."""
        if not buffer.shape:
            return f"`{buffer.name}` has no rows, but vid splits it"
        half = axis.half or const(0)
        halves = [other for other in axis.buffers if other.shape and self.parity.equal(other.shape[0], half)]
        rows = [f"`{shown.name}` has `{code(shown.shape_nodes[0])}`" for shown in (buffer, *halves[:1])]
        return f"vid splits these rows alike, but {' and '.join(rows)}"

    def _resolve(self) -> None:
        for axis in {id(a): a for a in self._axis.values()}.values():
            if axis.half is None:
                continue
            place = axis.evidence or self.kernel.node
            for buffer in axis.buffers:
                if not buffer.shape or not self.parity.equal(buffer.shape[0], axis.half):
                    raise Blocked("TL223", place, self._other_rows(buffer, axis))
            for item in axis.ranges:
                if item.step is not None and item.step != const(1):
                    raise Blocked("TL223", place, f"loop `{item.name}` skips rows")
                if not item.start.is_zero or not self.parity.equal(item.extent, axis.half):
                    raise Blocked("TL223", place, f"loop `{item.name}` does not cover all rows of its tiles")
            if axis.whole is not None:
                raise Blocked("TL223", axis.whole, "one copy splits these rows by vid, another copies all of them")
        for stmt in self.kernel.walk():
            if isinstance(stmt, Op) and stmt.op.kind is Kind.REDUCE:
                self._check_reduce(stmt)
            if isinstance(stmt, Loop):
                self._check_state(stmt)
            if isinstance(stmt, Alloc):
                self._free_unused(stmt.buffer)
            else:
                self._check_uses(stmt)

    # what a split row may be used for ----------------------------------------------------------------------------

    def _check_uses(self, stmt: Stmt) -> None:
        """The rows of both cores become the rows of one tile, so nothing may depend on a row's number within its core.

        Rows of a split buffer are named by the plain variable of a split loop, or all at once. Everywhere else a row
        counts only as ``row + vid * half``, its number in the whole tile.
        """
        split = [item for item in self.loops[stmt] if (axis := self.axis(item)) is not None and axis.half is not None]
        for access in accesses(stmt):
            for position, dim in enumerate(access.operand.dims or ()):
                own = position == 0 and self.is_split(access.operand.buffer)
                if own and not self._is_row_of(access.operand.buffer, dim, split):
                    name = access.operand.buffer.name
                    raise Blocked("TL826", stmt.node, f"`{name}` is accessed in a part of each vector core's rows")
                if not own:
                    start = at(dim.lo, self.vid, 0) if dim in self.tile_starts else dim.lo
                    self._check_value(stmt, start, split)
                    if dim.extent is not None:
                        self._check_value(stmt, dim.extent, split)
        if isinstance(stmt, Op):
            self._check_op(stmt)
        named = isinstance(stmt, Let) and is_arithmetic(stmt.value.sym)  # it is judged where the name is used
        for scalar in scalars(stmt) if isinstance(stmt, (Op, Store, Branch, Let)) and not named else ():
            if scalar.loads:
                for sym in _values_of_names(scalar.node, stmt.env):
                    self._check_value(stmt, sym, split)
            else:
                self._check_value(stmt, scalar.sym, split)

    def _is_row_of(self, buffer: Buffer, dim: Dim, split: list[Range]) -> bool:
        if dim.is_point:
            found = next((item for item in split if item.var == dim.lo), None)
            return found is not None and self.axis(found) is self.axis(buffer)
        return dim.lo.is_zero and dim.extent is not None and self.parity.equal(dim.extent, buffer.shape[0])

    def _check_value(self, stmt: Stmt, sym: Sym, split: list[Range]) -> None:
        low, high = at(sym, self.vid, 0), at(sym, self.vid, 1)
        moved = {str(item.var): item.var + item.extent for item in split}
        if not self.parity.equal(low.substitute(moved), high):
            code = "TL828" if any(sym.depends_on(name) for name in moved) else "TL220"
            raise Blocked(code, stmt.node, "the row number within one vector core is used as a value")

    def _check_state(self, loop: Loop) -> None:
        """A loop over split rows becomes one loop over all rows: nothing else may be carried from row to row."""
        axes = [self.axis(item) for item in loop.ranges]
        if not any(axis is not None and axis.half is not None for axis in axes):
            return
        seen: set[Buffer] = set()
        inside = set(walk(loop.body))
        for stmt in walk(loop.body):
            for access in sorted(accesses(stmt), key=lambda item: not item.reads):
                buffer = access.operand.buffer
                if buffer.memory is Memory.GM or self.axis(buffer) in axes or buffer in seen:
                    continue
                if access.reads and changes(loop, buffer):
                    raise Blocked("TL837", stmt.node, f"`{buffer.name}` carries a value from row to row")
                seen.add(buffer)
        for stmt in self.kernel.walk():
            if stmt in inside or stmt is loop:
                continue
            for access in accesses(stmt):
                if access.reads and access.operand.buffer in seen and changes(loop, access.operand.buffer):
                    name = access.operand.buffer.name
                    raise Blocked("TL837", stmt.node, f"`{name}` holds the last row of each vector core here")

    def _check_op(self, stmt: Op) -> None:
        """An operator on split tiles must treat every row by itself."""
        touched = [o.buffer for _, o in stmt.operands if self.is_split(o.buffer)]
        if touched and stmt.op.kind is not Kind.REDUCE and not stmt.op.row_independent:
            raise Blocked("TL837", stmt.node, f"vid splits the rows that T.{stmt.op.name} needs: `{touched[0].name}`")

    def _check_reduce(self, stmt: Op) -> None:
        source = next((o.buffer for _, o in stmt.operands if self.is_split(o.buffer)), None)
        if source is None:
            return
        dim = stmt.args.get("dim")
        value = dim.sym.constant if isinstance(dim, Scalar) else -1
        rank = len(source.shape)
        if value is None or (value if value >= 0 else value + rank) != rank - 1 or rank < 2:
            raise Blocked("TL833", stmt.node, f"the reduction runs over the rows of `{source.name}`, which vid splits")

    def _free_unused(self, buffer: Buffer) -> None:
        axis = self._axis.get(buffer)
        if axis is None or axis.used or not buffer.shape:
            return
        for other in self._axis.values():
            if other.half is not None and other is not axis and self.parity.equal(buffer.shape[0], other.half):
                axis.half = other.half
                return


def _values_of_names(node: cst.CSTNode, env: Env) -> Iterator[Sym]:
    """The values of the names in an expression that count as values: not those that only index a buffer."""
    if isinstance(node, cst.Name):
        value = env.lookup(node.value)
        if isinstance(value, Sym):
            yield value
        elif isinstance(value, Closure):
            yield from _values_of_names(value.node, value.env)
    elif isinstance(node, (cst.Subscript, cst.Attribute, cst.Arg)):
        yield from _values_of_names(node.value, env)
    else:
        for child in children(node):
            yield from _values_of_names(child, env)
