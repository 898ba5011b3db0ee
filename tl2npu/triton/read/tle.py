"""Kernels with FlagTree's TLE: memory on the chip, parts of tiles, hints.

Names are resolved by their import (:func:`tl2npu.dialects.triton.tle.tle_name`). Semantics: docs/triton.md, "TLE".
"""

from __future__ import annotations

import ast
from dataclasses import replace

from tl2npu.dialects.triton import tle as names
from tl2npu.kernel.symbolic import Sym, const
from tl2npu.tile.expr import Expr, Index, Load, axis, axis_of, loads, substituted
from tl2npu.tile.ir import For, Move, Region
from tl2npu.triton.read import build, memory
from tl2npu.triton.read.addresses import split
from tl2npu.triton.read.calls import LOADED
from tl2npu.triton.read.interpreter import Interpreter
from tl2npu.triton.read.local import Memory, bounds
from tl2npu.triton.read.spec import Again, Tensor
from tl2npu.triton.read.state import State
from tl2npu.triton.read.values import (
    BlockPointer,
    DType,
    Local,
    LocalPointer,
    Method,
    Name,
    Pointer,
    Shape,
    Tile,
    Value,
)


class Reader(Interpreter):
    """Reads kernels of Triton, and of TLE."""

    current: ast.stmt

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self.memory = Memory(state, lambda name: name in self.live.after(self.current))

    # statements ---------------------------------------------------------------------------------------------------

    def stmt(self, stmt: ast.stmt) -> None:
        before = getattr(self, "current", stmt)
        self.current = stmt
        try:
            super().stmt(stmt)
        finally:
            self.current = before

    def counted(self, stmt: ast.For, start: Sym, step: Sym, count: Sym, stages: int) -> None:
        self.memory.loops += 1
        super().counted(stmt, start, step, count, stages)
        self.memory.loops -= 1
        loop = self.state.out[-1]
        if isinstance(loop, For) and loop.stages and self.memory.carried(loop.body):
            self.state.out[-1] = replace(loop, stages=0)  # copies of later turns must not run ahead

    def branch(self, stmt: ast.If) -> None:
        self.memory.branches += 1
        super().branch(stmt)
        self.memory.branches -= 1

    # names --------------------------------------------------------------------------------------------------------

    def named(self, path: str) -> Value:
        if names.tle_name(path) in names.RANGES:
            return Name("triton.language.range")
        return super().named(path)

    def on_Attribute(self, node: ast.Attribute) -> Value:
        value = super().on_Attribute(node)
        if isinstance(value, Method) and isinstance(value.owner, Local):
            if value.name == "dtype":
                return DType(value.owner.dtype)
            if value.name == "shape":
                return tuple(Tile((), Index(extent)) for extent in value.owner.shape)
        return value

    def library(self, path: str, node: ast.Call) -> Value:
        name = names.tle_name(path)
        if name is None:
            return super().library(path, node)
        shown = f"`{ast.unparse(node.func)}`"
        if name in names.REFUSED:
            raise self.state.refuse(names.REFUSED[name], f"{shown} has no counterpart")
        if name.startswith("dsa.") and (op := names.BINARY.get(name[4:])):
            return self.arithmetic(op, node)
        method = getattr(self, f"tle_{name.replace('.', '_')}", None)
        if method is None:
            raise self.state.refuse("TL530", f"{shown} has no counterpart")
        value: Value = method(node)
        return value

    def method(self, method: Method, node: ast.Call) -> Value:
        owner, name = method.owner, method.name
        if isinstance(owner, Tile) and name in ("extract_tile", "insert_tile"):
            return getattr(self, f"tle_{name}")(node, owner)  # type: ignore[no-any-return]
        if isinstance(owner, Local):
            if name in ("to_tensor", "subview"):
                return getattr(self, f"tle_dsa_{name}")(node, owner)  # type: ignore[no-any-return]
            raise self.state.refuse("TL589", f"`{ast.unparse(node.func)}` has no counterpart")
        return super().method(method, node)

    # loads and stores ---------------------------------------------------------------------------------------------

    def tle_load(self, node: ast.Call) -> Value:
        return self.loaded(self.bound(node, f"{LOADED} is_async"), node)

    def loaded(self, values: dict[str, Value], node: ast.Call) -> Value:
        pointer = values["pointer"]
        if not isinstance(pointer, LocalPointer):
            return super().loaded(values, node)
        mask, other = self.mask(values), values.get("other")
        self.memory.pointed.add(pointer.local.name)
        value = self.memory.read(pointer, masked=mask is not None)
        if mask is None or other is None:
            return value
        mask = build.broadcast(mask, pointer.shape)
        return build.operation("select", [mask, value, build.cast(self.tile_of(other, node), value.dtype)], node.lineno)

    def put(self, values: dict[str, Value], node: ast.Call, atomic: bool) -> Value:
        pointer = values["pointer"]
        if not isinstance(pointer, LocalPointer):
            return super().put(values, node, atomic)
        value, mask = self.tile_of(values["value"], node), self.mask(values)
        condition = None if mask is None else build.broadcast(mask, pointer.shape).expr
        if atomic:
            self.memory.add(pointer, value, condition)
        else:
            self.memory.write(pointer, value, condition)
        return None

    # memory -------------------------------------------------------------------------------------------------------

    def allocated(self, values: dict[str, Value], node: ast.Call) -> Local:
        """New memory."""
        dtype = values.get("dtype")
        if not isinstance(dtype, DType):
            raise self.state.refuse("TL543", f"the element type of `{ast.unparse(node)}` is not known")
        if dtype.name == "bool":
            raise self.state.refuse("TL591", f"`{ast.unparse(node)}`: memory of bools")
        return self.memory.allocate(self.shape(values["shape"], node), dtype.name, (node.lineno, node.col_offset))

    def space(self, value: Value, node: ast.Call, known: frozenset[str]) -> None:
        """Refuse spaces that are not those of an NPU or of shared memory."""
        name = names.tle_name(value.path) if isinstance(value, Name) else None
        if name is not None and name in names.REFUSED:
            raise self.state.refuse(names.REFUSED[name], f"the memory of `{ast.unparse(node)}`")
        if value is not None and name not in known:
            raise self.state.refuse("TL592", f"the memory of `{ast.unparse(node)}` is not known")

    def tle_gpu_alloc(self, node: ast.Call) -> Value:
        values = self.bound(node, "shape dtype layout scope init_value nv_mma_shared_layout alias alias_offset_bytes")
        self.space(values.get("scope"), node, names.SHARED)
        if values.get("alias") is not None or values.get("init_value") is not None:
            raise self.state.refuse("TL591", f"`{ast.unparse(node)}` shares memory, or begins with a value")
        return self.allocated(values, node)

    def tle_dsa_alloc(self, node: ast.Call) -> Value:
        values = self.bound(node, "shape dtype mem_addr_space scope")
        if "scope" in values:
            raise self.state.refuse("TL592", f"`{ast.unparse(node)}` is the `tle.dsa` of another vendor")
        self.space(values.get("mem_addr_space"), node, names.LOCAL)
        return self.allocated(values, node)

    def tle_gpu_memory_space(self, node: ast.Call) -> Value:
        return self.eval(node.args[0])

    def tle_gpu_local_ptr(self, node: ast.Call) -> Value:
        values = self.bound(node, "buffer indices")
        local = self.local(values["buffer"], node)
        given = values.get("indices")
        flat = values.get("offsets", given if isinstance(given, Tile) and len(local.shape) > 1 else None)
        if flat is not None:
            given = self.unravelled(self.tile_of(flat, node), local, node)
        if given is None:
            return self.memory.whole(local)
        parts = given if isinstance(given, tuple) else (given,)
        if len(parts) != len(local.shape):
            raise self.state.refuse("TL591", f"`{ast.unparse(node)}`: {len(parts)} indices")
        tiles = [self.tile_of(part, node) for part in parts]
        shape = build.broadcast_shape([tile.shape for tile in tiles], self.state.line)
        index = [build.broadcast(tile, shape).integer for tile in tiles]
        if any(number is None for number in index):
            raise self.state.refuse("TL590", f"`{ast.unparse(node)}`: an index is loaded or computed from data")
        return LocalPointer(local, tuple(number for number in index if number is not None), shape)

    def unravelled(self, flat: Tile, local: Local, node: ast.AST) -> tuple[Value, ...]:
        """Row-major element numbers as an index for each axis."""
        if flat.integer is None:
            raise self.state.refuse("TL590", f"`{ast.unparse(node)}`: the offsets are computed from data")
        parts = split(flat.integer, local.shape)
        ranges = self.state.ranges
        last = {f"@{number}": extent - 1 for number, extent in enumerate(flat.shape)}
        ranges.last.update(last)
        inside = all(ranges.less(part, extent) for part, extent in zip(parts[1:], local.shape[1:], strict=True))
        for name in last:
            del ranges.last[name]
        if not inside:
            self.memory.state.pin_sizes(flat.integer, *local.shape, *flat.shape)
            raise self.state.refuse("TL590", f"`{ast.unparse(node)}`: the offsets may leave a row")
        return tuple(Tile(flat.shape, Index(part)) for part in parts)

    def local(self, value: Value, node: ast.AST) -> Local:
        """A value that must be memory on the chip."""
        if not isinstance(value, Local):
            raise self.state.refuse("TL591", f"`{ast.unparse(node)}` wants memory that the kernel allocates")
        return value

    def tle_dsa_to_tensor(self, node: ast.Call, *owner: Value) -> Value:
        values = self.bound(node, "memref writable target_shape", *owner)
        if values.get("target_shape") is not None:
            raise self.state.refuse("TL591", f"`{ast.unparse(node)}` converts a layout")
        return self.memory.read(self.memory.whole(self.local(values["memref"], node)))

    def tle_dsa_to_buffer(self, node: ast.Call) -> Value:
        values = self.bound(node, "tensor space bind_buffer")
        self.space(values.get("space"), node, names.LOCAL)
        value = self.tile_of(values["tensor"], node)
        if values.get("bind_buffer") is not None:
            local = self.local(values["bind_buffer"], node)
            self.memory.write(self.memory.whole(local), value, None)
            return local
        if (same := self.memory.origin(value)) is not None:
            return same
        local = self.memory.allocate(value.shape, value.dtype, (node.lineno, node.col_offset))
        self.memory.write(self.memory.whole(local), value, None)
        return local

    def tle_dsa_subview(self, node: ast.Call, *owner: Value) -> Value:
        values = self.bound(node, "src offsets sizes strides", *owner)
        local = self.local(values["src"], node)
        offsets, sizes = self.part_of(values, node, len(local.shape))
        start = tuple(one + other for one, other in zip(local.start, offsets, strict=True))
        return replace(local, shape=sizes, start=start)

    # copies -------------------------------------------------------------------------------------------------------

    def tle_gpu_copy(self, node: ast.Call) -> Value:
        values = self.bound(node, "src dst shape offsets")
        if values.get("offsets") is not None:
            raise self.state.refuse("TL538", f"`{ast.unparse(node)}` copies by a descriptor")
        return self.copied(values, node)

    def tle_dsa_copy(self, node: ast.Call) -> Value:
        return self.copied(self.bound(node, "src dst shape inter_no_alias"), node)

    def copied(self, values: dict[str, Value], node: ast.Call) -> Value:
        """A copy of the leading elements, between memory on the chip and pointers, or within memory on the chip."""
        source, target = values["src"], values["dst"]
        sizes = None if values.get("shape") is None else self.shape(values["shape"], node)
        if isinstance(source, Local) and isinstance(target, Local):
            self.same_type(source.dtype, target.dtype, node)
            extents, condition = self.extents(target.shape, sizes, node)
            self.fits(source.shape, extents, node)
            value = self.memory.read(self.memory.leading(source, extents))
            self.memory.write(self.memory.leading(target, extents), value, condition)
            return None
        local = self.local(target if isinstance(target, Local) else source, node)
        pointer = self.pointer(source if local is target else target, node)
        whole = pointer.shape if isinstance(pointer, Pointer) else pointer.block
        extents, condition = self.extents(whole, sizes, node)
        self.fits(local.shape, extents, node)
        if isinstance(pointer, Pointer):
            pointer = replace(pointer, shape=extents)
        elif extents != whole:
            raise self.state.refuse("TL591", f"`{ast.unparse(node)}` copies a part of a block")
        self.typed(pointer, local, node)
        place = self.memory.leading(local, extents)
        if local is target:
            self.fetched(pointer, place, condition)
        else:
            mask = None if condition is None else Tile(extents, condition)
            memory.store(self.state, pointer, self.memory.read(place), mask, (), atomic=False)
        return None

    def fetched(self, pointer: Pointer | BlockPointer, place: LocalPointer, condition: Expr | None) -> None:
        """Elements of a tensor in memory on the chip."""
        state, local = self.state, place.local
        mask = None if condition is None else Tile(place.shape, condition)
        whole = self.memory.is_whole(place, self.memory.part(place))
        units = any(extent.constant == 1 for extent in place.shape)
        if not whole or units or (mask is not None and self.memory.holds(place)):
            value = memory.load(state, place, pointer, mask, None, ())
            self.memory.write(place, value, condition)
            return
        self.memory.changed(local)
        self.memory.covered(local)
        emitted = len(state.out)
        value = memory.load(state, place, pointer, mask, None, (), into=local.name)
        index = next(item.index for item in loads(value.expr) if item.buffer == local.name)
        if index == tuple(axis(number) for number in local.order):
            return
        if local.site in state.spec.turned or len(index) != 2:
            del state.out[emitted:]
            raise state.refuse("TL547", f"`{local.name}` is filled transposed here, and not elsewhere")
        state.spec.turned.add(local.site)
        raise Again

    def extents(self, whole: Shape, sizes: Shape | None, node: ast.Call) -> tuple[Shape, Expr | None]:
        """How many elements are copied along each axis, and the condition by which fewer are."""
        if sizes is None:
            return whole, None
        if len(sizes) != len(whole):
            raise self.state.refuse("TL591", f"`{ast.unparse(node)}`: {len(sizes)} sizes for {len(whole)} axes")
        found: list[Sym] = []
        limits: list[Sym] = []
        for size, extent in zip(sizes, whole, strict=True):
            same = self.memory.same(size, extent)
            narrow = not same and size.constant is not None and extent.constant is not None
            found.append(size if narrow else extent)
            limits.append(size if narrow or not same else extent)
        return tuple(found), bounds(self.state, tuple(limits), tuple(found))

    def fits(self, shape: Shape, extents: Shape, node: ast.Call) -> None:
        """Refuse a copy of more than there is."""
        if len(shape) != len(extents) or not all(map(self.memory.fits, shape, extents)):
            raise self.state.refuse("TL591", f"`{ast.unparse(node)}`: the shapes are not known to fit")

    def typed(self, pointer: Pointer | BlockPointer, local: Local, node: ast.Call) -> None:
        """A copy converts no types; a tensor whose type nothing shows has that of the memory."""
        spec = self.state.spec
        param = pointer.param if isinstance(pointer, Pointer) else pointer.base.param
        tensor = spec.tensors[param]
        if param in spec.assumed and tensor.dtype != local.dtype:
            spec.assumed.remove(param)
            spec.tensors[param] = Tensor(tensor.shape, local.dtype)
            raise Again
        self.same_type(tensor.dtype, local.dtype, node)

    def same_type(self, one: str, other: str, node: ast.Call) -> None:
        if one != other:
            raise self.state.refuse("TL591", f"`{ast.unparse(node)}` copies {one} to or from {other}")

    def arithmetic(self, op: str, node: ast.Call) -> Value:
        """``tle.dsa.add(a, b, out)`` and its like."""
        values = self.bound(node, "input other out")
        out = values.get("out", values.get("result"))
        one, other, result = (self.local(item, node) for item in (values["input"], values["other"], out))
        self.same_type(one.dtype, result.dtype, node)
        self.same_type(other.dtype, result.dtype, node)
        for local in (one, other):
            if len(local.shape) != len(result.shape) or not all(map(self.memory.same, local.shape, result.shape)):
                raise self.state.refuse("TL591", f"`{ast.unparse(node)}`: buffers of several shapes")
        if op == "div" and not build.is_float(result.dtype):
            raise self.state.refuse("TL546", f"`{ast.unparse(node)}` truncates where an operand is negative")
        tiles = [self.memory.now(self.memory.whole(local)) for local in (one, other)]
        self.memory.write(self.memory.whole(result), build.operation(op, list(tiles), self.state.line), None)
        return None

    # parts of tiles -----------------------------------------------------------------------------------------------

    def tle_extract_tile(self, node: ast.Call, *owner: Value) -> Value:
        values = self.bound(node, "x index tile_shape shape", *owner)
        tile = self.tile_of(values["x"], node)
        sizes = self.shape(values.get("tile_shape", values.get("shape")), node)
        return self.taken(tile, self.corner(tile, values["index"], sizes, node), sizes, node)

    def tle_insert_tile(self, node: ast.Call, *owner: Value) -> Value:
        values = self.bound(node, "x tile index", *owner)
        tile, part = self.tile_of(values["x"], node), self.tile_of(values["tile"], node)
        return self.inserted(tile, part, self.corner(tile, values["index"], part.shape, node), node)

    def tle_dsa_extract_slice(self, node: ast.Call) -> Value:
        values = self.bound(node, "ful offsets sizes strides")
        tile = self.tile_of(values["ful"], node)
        offsets, sizes = self.part_of(values, node, len(tile.shape))
        return self.taken(tile, offsets, sizes, node)

    def tle_dsa_insert_slice(self, node: ast.Call) -> Value:
        values = self.bound(node, "ful sub offsets sizes strides")
        tile, part = self.tile_of(values["ful"], node), self.tile_of(values["sub"], node)
        offsets, sizes = self.part_of(values, node, len(tile.shape))
        if part.shape != sizes:
            raise self.state.refuse("TL591", f"`{ast.unparse(node)}`: the sizes are not those of the part")
        return self.inserted(tile, part, offsets, node)

    def part_of(self, values: dict[str, Value], node: ast.Call, rank: int) -> tuple[Shape, Shape]:
        """Offsets and sizes of a part without steps."""
        offsets, sizes, strides = (self.shape(values[name], node) for name in ("offsets", "sizes", "strides"))
        if {len(offsets), len(sizes), len(strides)} != {rank} or any(step.constant != 1 for step in strides):
            raise self.state.refuse("TL591", f"`{ast.unparse(node)}` takes elements that are not consecutive")
        return offsets, sizes

    def corner(self, tile: Tile, index: Value, sizes: Shape, node: ast.Call) -> Shape:
        """Where a tile of a grid of tiles starts, by its coordinates or by its number in row-major order."""
        counts = []
        if len(sizes) != len(tile.shape):
            raise self.state.refuse("TL591", f"`{ast.unparse(node)}`: {len(sizes)} sizes for {len(tile.shape)} axes")
        for extent, size in zip(tile.shape, sizes, strict=True):
            count = extent // size
            if count * size != extent:
                self.memory.state.pin_sizes(extent, size)
                raise self.state.refuse("TL591", f"`{ast.unparse(node)}`: {size} does not divide {extent}")
            counts.append(count)
        if isinstance(index, tuple):
            places = list(self.shape(index, node))
        else:
            places, rest = [], self.size(index, node)
            for count in reversed(counts):
                places.insert(0, rest % count)
                rest = rest // count
        if len(places) != len(sizes):
            raise self.state.refuse("TL591", f"`{ast.unparse(node)}`: {len(places)} coordinates")
        return tuple(place * size for place, size in zip(places, sizes, strict=True))

    def taken(self, tile: Tile, start: Shape, sizes: Shape, node: ast.Call) -> Tile:
        """A part of a tile, by itself."""
        state = self.state
        if not any(True for _ in loads(tile.expr)):
            moved = {f"@{number}": axis(number) + first for number, first in enumerate(start)}
            return Tile(sizes, substituted(tile.expr, moved))
        source, order = self.in_memory(tile)
        shape = tuple(sizes[number] for number in order)
        name = state.target(node, "tile", shape, state.buffers[source].dtype)
        region = Region(source, tuple(start[number] for number in order), shape)
        state.emit(Move(region, Region(name, tuple(const(0) for _ in shape), shape), state.origin))
        return Tile(sizes, Load(name, tuple(axis(number) for number in order), state.buffers[name].dtype))

    def inserted(self, tile: Tile, part: Tile, start: Shape, node: ast.Call) -> Tile:
        """A tile with a part replaced; the tile itself stays as it is where it is still needed."""
        state = self.state
        part = state.stored(build.cast(part, tile.dtype), f"{state.hint}_part")
        assert isinstance(part.expr, Load)
        rank = len(tile.shape)
        if part.expr.index != tuple(axis(number) for number in range(rank)):
            raise state.refuse("TL547", f"`{ast.unparse(node)}` inserts a transposed tile")
        name = state.target(node, "tile", tile.shape, tile.dtype)
        result = state.write(name, tile, tuple(range(rank)))
        whole = Region(part.expr.buffer, tuple(const(0) for _ in part.shape), part.shape)
        state.emit(Move(whole, Region(name, start, part.shape), state.origin))
        return result

    def in_memory(self, tile: Tile) -> tuple[str, tuple[int, ...]]:
        """A buffer that holds a tile, and its axes in the order in which they lie there."""
        state = self.state
        stored = state.stored(tile, f"{state.hint}_whole")
        assert isinstance(stored.expr, Load)
        order = [axis_of(str(part)) if part.atom is not None else None for part in stored.expr.index]
        known = [number for number in order if number is not None]
        if len(known) == len(tile.shape) == len(set(known)) == len(order):
            return stored.expr.buffer, tuple(known)
        name = state.allocate(f"{state.hint}_whole", tile.shape, tile.dtype)
        state.write(name, tile, tuple(range(len(tile.shape))))
        return name, tuple(range(len(tile.shape)))
