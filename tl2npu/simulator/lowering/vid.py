"""What ``threads=2`` does to a program: AscendVidReduction (legacy-to-developer 2.5, ascend_vid_reduction.cc).

Every UB buffer is halved along axis 0, copies to and from global memory get an offset of the vector core, operators of
a fixed list process half their elements, and loops over the rows of a halved buffer turn half as often. The rules go
by form, not by meaning: what they do to a kernel may not be what its author wrote.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from tl2npu.dialects.compiler import JUNE_2026
from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.ir.buffer import Buffer, Region, whole
from tl2npu.simulator.ir.expr import Expr, Load, Value, Var, binary
from tl2npu.simulator.ir.linear import linear
from tl2npu.simulator.ir.stmt import Alloc, For, Op, Parallel, Stmt, Store
from tl2npu.simulator.ir.stmt import walk as statements
from tl2npu.simulator.lowering.copier import Copier
from tl2npu.simulator.lowering.uses import loads, values

THREADS = 2
_REDUCE = ("reduce", "reduce_max", "reduce_min", "reduce_sum")


def reduce_vid(body: list[Stmt], vid: Var, outside: frozenset[int] = frozenset()) -> list[Stmt]:
    """The program that each of two vector cores runs, ``vid`` being its number.

    ``outside``: the buffers in front of ``T.Kernel``, which stand in the root block that the pass leaves alone.

    Raises SimulatorError where the compiler stops: a UB buffer with more axes than the global tensor of its copy, a
    symbolic number of rows.
    """
    gathered = gathered_buffers(body, outside)
    halves: dict[int, Buffer] = {}
    for stmt in statements(body):
        if isinstance(stmt, Alloc) and stmt.buffer.memory == "ub" and stmt.buffer.number not in gathered | outside:
            halves[stmt.buffer.number] = _half(stmt.buffer, stmt)
    return _VidReduction(halves, {}, vid, dict(halves), gathered).block(body)


def _half(buffer: Buffer, stmt: Stmt) -> Buffer:
    rows = buffer.shape[0]
    if isinstance(rows, Expr):
        raise SimulatorError(f"threads=2: {buffer.name} has a symbolic number of rows", stmt.site)
    shape = (max(int(rows) // THREADS, 1), *buffer.shape[1:])
    return Buffer(buffer.name, shape, buffer.dtype, buffer.memory, line=buffer.line)


def names_halves(body: list[Stmt]) -> bool:
    """Whether an operator that the compiler does not halve names half of the rows of a tile, or of its elements."""
    found = (s for s in statements(body) if isinstance(s, Op) and s.name not in ("copy", *JUNE_2026.vid_aware_ops))
    regions = ((stmt.args.get("count"), value) for stmt in found for value in stmt.args.values())
    return any(isinstance(region, Region) and (_is_half(region) or _half_of(region, n)) for n, region in regions)


def _is_half(region: Region) -> bool:
    rows, part = region.buffer.shape[0], region.extents[0]
    counted = isinstance(rows, int) and isinstance(part, int) and 1 < rows == THREADS * part
    return counted and region.buffer.memory in ("ub", "shared") and _constant(region.starts[0]) == 0


def _half_of(region: Region, count: object) -> bool:
    """Whether a number of elements is half of those of a tile that is given whole."""
    sizes = [size for size in region.buffer.shape if isinstance(size, int)]
    complete = _all(region) and len(sizes) == region.buffer.ndim and sizes[0] > 1
    return complete and isinstance(count, int) and THREADS * count == math.prod(sizes)


def gathered_buffers(body: list[Stmt], outside: frozenset[int] = frozenset()) -> set[int]:
    """UB buffers whose rows come from an index in UB: they are not halved (2.5, the skip set).

    The pass does not look for indices in the buffers in front of ``T.Kernel``.
    """
    found = set()
    for stmt in statements(body):
        if isinstance(stmt, Op) and stmt.name == "copy":
            sides = _sides(stmt)
            if sides is None:
                continue
            ub, gm = sides
            for index in _starts(stmt.args[gm]):
                if isinstance(index, Load) and index.buffer.memory == "ub" and index.buffer.number not in outside:
                    found.add(_buffer(stmt.args[ub]).number)
    return found


def _buffer(value: object) -> Buffer:
    assert isinstance(value, (Region, Load))
    return value.buffer


def _starts(value: object) -> tuple[Value, ...]:
    if isinstance(value, Region):
        return value.starts
    return value.indices if isinstance(value, Load) else ()


def _sides(stmt: Op) -> tuple[str, str] | None:
    """Parameter names of the UB side and the global side of a copy between the two, else None."""
    memories = {n: _buffer(stmt.args[n]).memory for n in ("src", "dst") if isinstance(stmt.args.get(n), (Region, Load))}
    for ub, gm in (("src", "dst"), ("dst", "src")):
        if memories.get(ub) == "ub" and memories.get(gm) == "global":
            return ub, gm
    return None


@dataclass(eq=False)
class _VidReduction(Copier):
    vid: Var = field(default_factory=lambda: Var("vid"))
    halves: dict[int, Buffer] = field(default_factory=dict)
    gathered: set[int] = field(default_factory=set)
    loops: list[tuple[Var, Value]] = field(default_factory=list)
    """Halved loops around the statement, with their new extents."""

    def on_For(self, stmt: For) -> list[Stmt]:
        if not self._over_rows(stmt.var, stmt.body):
            return [self.copy(stmt)]
        extent = _halved(stmt.extent)
        self.loops.append((stmt.var, extent))
        body = self.block(stmt.body)
        self.loops.pop()
        return [replace(stmt, extent=self.value(extent), start=self.value(stmt.start), body=body)]

    def on_Parallel(self, stmt: Parallel) -> list[Stmt]:
        depth = len(self.loops)
        extents = []
        for var, extent in zip(stmt.vars, stmt.extents, strict=True):
            halved = self._over_rows(var, stmt.body)
            extents.append(self.value(_halved(extent) if halved else extent))
            if halved:
                self.loops.append((var, extents[-1]))
        body = self.block(stmt.body)
        del self.loops[depth:]
        return [replace(stmt, extents=tuple(extents), body=body)]

    def _over_rows(self, var: Var, body: list[Stmt]) -> bool:
        """Whether the variable is, as a whole index, the first index of a halved buffer."""
        for stmt in statements(body):
            if isinstance(stmt, Store) and stmt.buffer.number in self.halves and stmt.indices[0] is var:
                return True
            if isinstance(stmt, Op):
                for value in stmt.args.values():
                    for item in value if isinstance(value, tuple) else (value,):
                        known = isinstance(item, (Region, Load)) and item.buffer.number in self.halves
                        if known and _starts(item)[0] is var:
                            return True
            for value in values(stmt):
                for load in loads(value):
                    if load.buffer.number in self.halves and load.indices[0] is var:
                        return True
        return False

    def on_Op(self, stmt: Op) -> list[Stmt]:
        if stmt.name == "copy":
            return [self._copy(stmt)]
        if stmt.name in _REDUCE:
            return [self._reduce(stmt)]
        if stmt.name in JUNE_2026.vid_aware_ops:
            return [self._tile(stmt)]
        if any(isinstance(v, Region) and v.buffer.number in self.halves and _is_half(v) for v in stmt.args.values()):
            # the operator processes as many elements as it names; of the others it is given only where they begin
            return [self.copy(replace(stmt, args={name: self._as_far(value) for name, value in stmt.args.items()}))]
        return [self.copy(stmt)]

    # copies

    def _copy(self, stmt: Op) -> Stmt:
        sides = _sides(stmt)
        if sides is None:
            both = [stmt.args.get(n) for n in ("src", "dst")]
            if all(isinstance(b, (Region, Load)) and b.buffer.number in self.halves for b in both):
                return self.copy(self._regions(stmt, ("src", "dst")))
            one_way = [n for n in ("src", "dst") if getattr(stmt.args.get(n), "buffer", None) is not None]
            direct = [n for n in one_way if _buffer(stmt.args[n]).number in self.halves]
            return self.copy(self._regions(stmt, tuple(direct)) if self._cube(stmt) else stmt)
        ub, gm = sides
        tile, tensor = stmt.args[ub], stmt.args[gm]
        if _buffer(tile).number in self.gathered:
            return self.copy(replace(stmt, args={**stmt.args, gm: self._gather(tensor)}))
        half = self.halves.get(_buffer(tile).number)
        if half is None:
            return self.copy(stmt)
        axis = _buffer(tensor).ndim - half.ndim
        if axis < 0:
            raise SimulatorError(
                f"threads=2: {half.name} has more axes than {_buffer(tensor).name} (ub dims may not be more than gm "
                "dims)",
                stmt.site,
            )
        offset = binary("*", self.vid, half.shape[0])
        starts = list(_starts(tensor))
        starts[axis] = binary("+", starts[axis], offset)
        if isinstance(tensor, Region):
            extents = list(tensor.extents)
            extents[axis] = _halved(extents[axis])
            moved: Region | Load = Region(tensor.buffer, tuple(starts), tuple(extents), tensor.kept)
        else:
            moved = Load(tensor.buffer, tuple(starts))
        changed = replace(stmt, args={**stmt.args, gm: moved})
        return self.copy(self._regions(changed, (ub,)))

    def _cube(self, stmt: Op) -> bool:
        return any(_buffer(stmt.args[n]).memory in ("l0c", "l1") for n in ("src", "dst"))

    def _gather(self, tensor: Region | Load) -> Region | Load:
        """The skip set (rule 4): an offset only where a halved loop's variable is a whole index of the tensor."""
        starts = list(_starts(tensor))
        for var, extent in self.loops:
            for axis, start in enumerate(starts):
                size = tensor.buffer.shape[axis]
                if start is var and isinstance(size, int) and isinstance(extent, int) and THREADS * extent <= size:
                    starts[axis] = binary("+", start, binary("*", self.vid, extent))
        if isinstance(tensor, Region):
            return Region(tensor.buffer, tuple(starts), tensor.extents, tensor.kept)
        return Load(tensor.buffer, tuple(starts))

    def _regions(self, stmt: Op, names: tuple[str, ...]) -> Op:
        """Regions of halved buffers cover half as many rows, except single rows."""
        args = dict(stmt.args)
        for name in names:
            region = args[name]
            if isinstance(region, Region) and region.buffer.number in self.halves:
                extents = (_halved(region.extents[0]), *region.extents[1:])
                args[name] = Region(region.buffer, region.starts, extents, region.kept)
        return replace(stmt, args=args)

    # operators

    def _tile(self, stmt: Op) -> Stmt:
        """An operator of the list: half the count if its first UB operand starts at 0 (2.5 rule 5)."""
        first = next(
            (v for v in stmt.args.values() if isinstance(v, (Region, Load)) and v.buffer.number in self.halves), None
        )
        if not isinstance(first, Region) or any(_constant(s) != 0 for s in first.starts):
            return self.copy(stmt)
        args = {}
        for name, value in stmt.args.items():
            args[name] = self._counted(value) if isinstance(value, Region) else value
        return self.copy(replace(stmt, args=args))

    def _as_far(self, value: object) -> object:
        whole_tile = isinstance(value, Region) and value.buffer.number in self.halves and _all(value)
        return self._counted(value) if whole_tile else value  # type: ignore[arg-type]

    def _counted(self, region: Region) -> Region:
        """Half of a region's elements: of its rows, or of its single row."""
        extents = list(region.extents)
        axis = 0 if extents[0] != 1 else next((n for n, e in enumerate(extents) if e != 1), 0)
        extents[axis] = _halved(extents[axis])
        return Region(region.buffer, region.starts, tuple(extents), region.kept)

    def _reduce(self, stmt: Op) -> Stmt:
        """The row count of the template is halved if it is a literal; a 1-D tile counts as one row (2.5 rule 6)."""
        source = stmt.args.get("buffer")
        if not isinstance(source, Region) or source.buffer.number not in self.halves or source.buffer.ndim < 2:
            return self.copy(stmt)
        args = dict(stmt.args)
        args["buffer"] = self._counted(source)
        if isinstance(real := args.get("real_shape"), (list, tuple)):
            args["real_shape"] = [_halved(real[0]), *real[1:]]
        target = args.get("out")
        if isinstance(target, Region) and target.buffer.number in self.halves and _all(target):
            args["out"] = whole(target.buffer)
            if stmt.args.get("dim", -1) in (-1, 1):
                args["out"] = self._counted(target)
        return self.copy(replace(stmt, args=args))


def _all(region: Region) -> bool:
    return all(_constant(s) == 0 for s in region.starts) and region.extents == region.buffer.shape


def _constant(value: Value) -> int | None:
    terms, constant = linear(value)
    return None if terms else constant


def _halved(extent: Value) -> Value:
    if isinstance(extent, int):
        return extent if extent == 1 else max(extent // THREADS, 1)
    return binary("//", extent, THREADS)  # type: ignore[no-any-return]
