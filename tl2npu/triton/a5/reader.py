"""The reader of Triton with ``al`` and ``bl``: scopes, events and buffers become statements of :mod:`..a5.ir`."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from math import gcd
from typing import cast

from tl2npu.dialects.triton.ascend import AL, BL, HINTS, RANGES, REFUSED, RENAMED
from tl2npu.kernel.symbolic import Atom, Div, Sym, Var, const, var
from tl2npu.tile.expr import Index, Load, axis, identity, loads
from tl2npu.tile.ir import Kernel, Map, Move, Region, Stmt
from tl2npu.triton.a5 import shapes
from tl2npu.triton.a5.finish import finish
from tl2npu.triton.a5.ir import CORES, Core, Event, Scope, inside, touched
from tl2npu.triton.a5.sizes import shown as size
from tl2npu.triton.a5.values import Apart, Chip, Held, Known, Own
from tl2npu.triton.read.asked import equate
from tl2npu.triton.read.names import assigned, exposed
from tl2npu.triton.read.spec import Again
from tl2npu.triton.read.state import State
from tl2npu.triton.read.tle import Reader
from tl2npu.triton.read.values import DType, Method, Name, Tile, Value, integer

_SPACES = tuple(f"{module}." for module in (*AL, *BL))
_PIPES = ("sender_pipe", "receiver_pipe")
_RESHAPES = frozenset({"reshape", "view", "permute", "trans"})


def is_ascend(path: str) -> bool:
    """True for a name of the extensions, or a module of them."""
    return f"{path}.".startswith(_SPACES)


class AscendReader(Reader):
    """Reads a kernel for A5. The three programs of its cores become one in :meth:`finished`."""

    ranges = Reader.ranges | {f"{space}{name}" for space in _SPACES for name in RANGES}

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self.core: Core | None = None
        self.half = state.fresh("sub_vec_id")
        state.ranges.last[self.half] = const(1)
        self.chips: set[str] = set()
        self.undivided: int | None = None

    def finished(self, kernel: Kernel) -> Kernel:
        return finish(
            kernel, self.state.spec, self.half, frozenset(self.chips), frozenset(self.state.fixed), self.undivided
        )

    def ignores_nan(self, values: Mapping[str, Value], node: ast.Call) -> None:
        """An extremum that gives NaN is accepted: the kernel was written for the NPU, and remains there."""

    def skipping_nan(self, tile: Tile) -> Tile:
        """Nothing to note, for the same reason."""
        return tile

    # scopes -------------------------------------------------------------------------------------------------------

    def stmt(self, stmt: ast.stmt) -> None:
        if isinstance(stmt, ast.With):
            self.state.line = stmt.lineno
            self.with_scope(stmt)
        else:
            super().stmt(stmt)

    def with_scope(self, stmt: ast.With) -> None:
        """``with al.scope(core_mode=...)``; without a core it is a function of the vector cores, and no scope."""
        state = self.state
        call = stmt.items[0].context_expr
        function = self.eval(call.func) if isinstance(call, ast.Call) else None
        if len(stmt.items) != 1 or not isinstance(function, Name) or _last(function.path) != "scope":
            raise state.refuse("TL543", f"`with {ast.unparse(call)}` is not supported in a kernel")
        assert isinstance(call, ast.Call)
        mode = self.bound(call, "core_mode vector_mode outline").get("core_mode")
        if mode is None:
            self.run(stmt.body)
        elif mode not in CORES:
            raise state.refuse("TL566", f"there is no core `{mode}`")
        elif self.core is not None or len(state.frames) > 1:
            raise state.refuse("TL566", f"`{ast.unparse(call)}` is inside of another scope or of a device function")
        else:
            self.on_core("cube" if mode == "cube" else "vector", stmt)

    def on_core(self, core: Core, stmt: ast.With) -> None:
        """The body of a scope: with the names of its core, and what it sets is known on that core only."""
        state, frame = self.state, self.state.frame
        before = dict(frame.env)
        owned = dict(frame.own)
        for name, value in before.items():
            if isinstance(value, Apart) and core in value.by:
                frame.env[name] = value.by[core].value
                if (own := value.by[core].own) is not None:
                    frame.own[name] = own
        self.core = core
        with self.inner() as body:
            self.run(stmt.body)
        self.core = None
        written = {name for item in inside(body) for name in touched(item)[1]}
        state.line = stmt.lineno
        self.emit_own(Scope(core, tuple(body), state.origin))
        after, kept = dict(frame.env), dict(frame.own)
        frame.own = owned
        for name in set(assigned(stmt.body)) | {name for name, value in before.items() if _reads(value, written)}:
            old = before.get(name)
            by: dict[Core, Own] = dict(old.by) if isinstance(old, Apart) else {}
            if not isinstance(old, Apart) and name in before and not _reads(old, written):
                by = {other: Own(old, owned.get(name)) for other in CORES}
            by.pop(core, None)
            if name in after:
                by[core] = Own(after[name], kept.get(name))
            frame.env[name] = Apart(f"is set in the scope of {CORES[core]}", by=by)
            frame.own.pop(name, None)

    def on_Name(self, node: ast.Name) -> Value:
        value = self.state.frame.env.get(node.id)
        if isinstance(value, Apart):
            where = "outside of its scope" if self.core is None else f"by {CORES[self.core]}"
            raise self.state.refuse("TL568", f"`{node.id}` {value.why} and used {where}")
        return super().on_Name(node)

    # names of the extensions --------------------------------------------------------------------------------------

    def loop(self, stmt: ast.For) -> None:
        """``al.parallel(0, 2, bind_sub_block=True)``: each vector core does one of the two turns.

        A loop of more turns, or one that leaves something behind, is a plain range.
        """
        call, state = stmt.iter, self.state
        function = self.eval(call.func) if isinstance(call, ast.Call) else None
        if isinstance(call, ast.Call) and isinstance(function, Name) and is_ascend(function.path):
            if _last(function.path) not in RANGES:
                raise state.refuse("TL569", f"`{ast.unparse(call.func)}` is not a range")
            values = self.bound(call, "arg1 arg2 step num_stages loop_unroll_factor bind_sub_block")
            first, last, step = (integer(values.get(name, 1)) for name in ("arg1", "arg2", "step"))
            halves = (first, last, step) == (const(0), const(2), const(1)) and values.get("bind_sub_block") is True
            left = assigned([stmt]) & (exposed(stmt.body) | self.live.after(stmt))
            if halves and isinstance(stmt.target, ast.Name) and left <= {stmt.target.id} and self.core != "cube":
                state.frame.env[stmt.target.id] = Tile((), Index(var(self.half)))
                self.run(stmt.body)
                for name in assigned([stmt]):
                    state.frame.env.pop(name, None)
                return
        super().loop(stmt)

    def library(self, path: str, node: ast.Call) -> Value:
        last = _last(path)
        if path.startswith(_SPACES):
            if last in HINTS:
                return None
            if method := getattr(self, f"al_{last}", None):
                value: Value = method(node)
                return value
            why = REFUSED.get(last, "Developer mode has nothing like it")
            raise self.state.refuse("TL569", f"`{ast.unparse(node.func)}`: {why}")
        if path.startswith("triton.language.") and last in _RESHAPES and node.args:
            return self.rearranged(self.eval(node.args[0]), last, node, node.args[1:])
        return super().library(path, node)

    def method(self, method: Method, node: ast.Call) -> Value:
        owner, name = method.owner, method.name
        if isinstance(owner, Tile) and name in _RESHAPES:
            return self.rearranged(owner, name, node, node.args)
        if isinstance(owner, (Chip, Held)) and name in ("to_tensor", "subview"):
            found = ast.Call(node.func, [Known(owner), *node.args], node.keywords)
            ast.copy_location(found, node)
            return self.al_to_tensor(found) if name == "to_tensor" else self.al_subview(found)
        return super().method(method, node)

    def on_Known(self, node: Known) -> Value:
        return node.known

    def al_sub_vec_id(self, node: ast.Call) -> Value:
        if self.core == "cube":
            raise self.state.refuse("TL567", "the cube core asks for the number of a vector core")
        return Tile((), Index(var(self.half)))

    def al_extract_slice(self, node: ast.Call) -> Value:
        return self.tle_dsa_extract_slice(node)

    def al_insert_slice(self, node: ast.Call) -> Value:
        return self.tle_dsa_insert_slice(node)

    def al_sub_vec_num(self, node: ast.Call) -> Value:
        return 2

    # events -------------------------------------------------------------------------------------------------------

    def al_sync_block_set(self, node: ast.Call) -> Value:
        return self.event(node, "set")

    def al_sync_block_wait(self, node: ast.Call) -> Value:
        return self.event(node, "wait")

    def event(self, node: ast.Call, kind: str) -> Value:
        state = self.state
        values = self.bound(node, "sender receiver event_id sender_pipe receiver_pipe")
        sender, receiver = values.get("sender"), values.get("receiver")
        if sender not in CORES or receiver not in CORES or sender == receiver:
            raise state.refuse("TL562", f"`{ast.unparse(node)}`: an event goes from one kind of core to the other")
        number = integer(values.get("event_id"))
        if number is None or number.constant is None:
            shown = ast.unparse(node.args[2]) if len(node.args) > 2 else ast.unparse(node)
            raise state.refuse("TL563", f"the number of the event, `{shown}`, is another one in other turns")
        pipes = [_last(pipe.path) for pipe in map(values.get, _PIPES) if isinstance(pipe, Name)]
        event = Event(
            "set" if kind == "set" else "wait",
            "cube" if sender == "cube" else "vector",
            number.constant,
            (pipes[0], pipes[1]) if len(pipes) == 2 else None,
            state.origin,
        )
        if self.core != event.by:
            where = "outside of the scopes" if self.core is None else f"by {CORES[self.core]}"
            raise state.refuse("TL562", f"`{ast.unparse(node)}` is called {where}")
        self.emit_own(event)
        return None

    def branch(self, stmt: ast.If) -> None:
        """A buffer or an event that depends on the turn of a loop belongs to a pipeline made by hand."""
        if self.known_truth(self.eval(stmt.test)) is None:
            self.pin(stmt.test)
            slots = sorted(name for name in _names((*stmt.body, *stmt.orelse)) if self.is_buffer(name))
            if slots:
                shown = " and ".join(f"`{name}`" for name in slots[:2])
                raise self.state.refuse("TL563", f"`{ast.unparse(stmt.test)}` decides the use of {shown}")
        super().branch(stmt)

    def is_buffer(self, name: str) -> bool:
        """True for a name of a buffer on the chip."""
        return isinstance(self.state.frame.env.get(name), (Chip, Held))

    def on_Subscript(self, node: ast.Subscript) -> Value:
        owner = self.eval(node.value)
        if isinstance(owner, tuple) and any(isinstance(item, Chip) for item in owner):
            number = integer(self.eval(node.slice))
            if number is None or number.constant is None:
                raise self.state.refuse("TL563", f"`{ast.unparse(node)}` is another buffer in other turns")
        return super().on_Subscript(node)

    # buffers ------------------------------------------------------------------------------------------------------

    def al_alloc(self, node: ast.Call) -> Value:
        state = self.state
        values = self.bound(node, "etype shape _address_space is_mem_unique")
        dtype, space = values.get("etype"), values.get("_address_space", Name("UB"))
        if not isinstance(dtype, DType) or not isinstance(space, Name):
            raise state.refuse("TL566", f"`{ast.unparse(node)}`: the element type or the memory is not known")
        shape = self.shape(values["shape"], node)
        name = _last(space.path)
        matrix = shape
        if len(shape) == 4:
            if name != "L1" or shape[2].constant != shapes.BLOCK or shape[3].constant != shapes.BLOCK:
                raise state.refuse("TL566", f"`{ast.unparse(node)}`: four axes are a matrix in NZ in L1 only")
            matrix = (shape[1] * shapes.BLOCK, shape[0] * shapes.BLOCK)
        if name not in ("UB", "L1") or len(matrix) > 2:
            raise state.refuse("TL566", f"`{ast.unparse(node)}`: a buffer is a vector or a matrix in UB or L1")
        buffer = state.allocate(state.hint, matrix, dtype.name)
        self.fix(buffer)
        self.chips.add(buffer)
        return Chip(buffer, shape, tuple(const(0) for _ in shape), dtype.name, name)

    def fix(self, buffer: str) -> None:
        """Keep names from taking a buffer for their own."""
        self.state.fixed.add(buffer)

    def chip(self, value: Value, node: ast.Call) -> Chip:
        """A value that must be a buffer of ``bl.alloc``."""
        if isinstance(value, Chip):
            return value
        raise self.state.refuse("TL566", f"`{ast.unparse(node)}` wants a buffer of `bl.alloc`")

    def al_subview(self, node: ast.Call) -> Value:
        values = self.bound(node, "src offsets sizes strides")
        chip = self.chip(values["src"], node)
        offsets, sizes, strides = (self.shape(values[name], node) for name in ("offsets", "sizes", "strides"))
        if any(step.constant != 1 for step in strides) or not len(offsets) == len(sizes) == len(chip.shape):
            raise self.state.refuse("TL566", f"`{ast.unparse(node)}` leaves elements out")
        start = tuple(one + other for one, other in zip(chip.start, offsets, strict=True))
        return Chip(chip.buffer, sizes, start, chip.dtype, chip.space)

    def al_to_tensor(self, node: ast.Call) -> Value:
        state = self.state
        values = self.bound(node, "memref writable target_shape")
        source = values["memref"]
        if isinstance(source, Held):
            return shapes.to_nz(source.tile) if source.nz else source.tile
        chip = self.chip(source, node)
        self.reachable(chip, node)
        region = self.matrix(chip, node)
        place = tuple(start + axis(number) for number, start in enumerate(region.start))
        extents = tuple(extent for extent in region.extent if extent is not None)
        taken = state.allocate(f"{chip.buffer}_now", extents, chip.dtype)
        self.fix(taken)
        state.emit(Map(taken, Load(chip.buffer, place, chip.dtype), state.origin))
        tile = Tile(extents, Load(taken, identity(len(extents)), chip.dtype))
        target = values.get("target_shape")
        if target is None:
            return shapes.to_nz(tile) if chip.nz else tile
        self.same(self.shape(target, node), tile.shape, node)
        return tile

    def matrix(self, chip: Chip, node: ast.Call) -> Region:
        """The part of the tile of the IR that a buffer is."""
        if not chip.nz:
            return Region(chip.buffer, chip.start, chip.shape)
        block = shapes.BLOCK
        if any(not start.is_zero for start in chip.start[2:]) or any(size.constant != block for size in chip.shape[2:]):
            raise self.state.refuse("TL566", f"`{ast.unparse(node)}`: a part of NZ is made of whole blocks of 16 x 16")
        start = chip.start[1] * block, chip.start[0] * block
        return Region(chip.buffer, start, (chip.shape[1] * block, chip.shape[0] * block))

    def reachable(self, chip: Chip, node: ast.Call) -> None:
        """UB belongs to the vector cores; L1 is read by the cube core."""
        if self.core is not None and (self.core == "cube") != (chip.space == "L1"):
            raise self.state.refuse("TL566", f"`{ast.unparse(node)}`: {CORES[self.core]} cannot read {chip.space}")

    def al_to_buffer(self, node: ast.Call) -> Value:
        state = self.state
        values = self.bound(node, "tensor space bind_buffer")
        tile = self.tile_of(values["tensor"], node)
        if (bound := values.get("bind_buffer")) is not None:
            self.fill_chip(tile, self.chip(bound, node), node)
            return bound
        nz = len(tile.shape) == 4
        tile = self.as_matrix(tile, node) if nz else tile
        buffer = state.allocate(state.hint, tile.shape, tile.dtype)
        self.fix(buffer)
        space = values.get("space", Name("UB"))
        name = _last(space.path) if isinstance(space, Name) else "?"
        return Held(state.write(buffer, tile, tuple(range(len(tile.shape)))), name, nz)

    def as_matrix(self, tile: Tile, node: ast.AST) -> Tile:
        """A tile in NZ as the matrix that it holds."""
        try:
            return shapes.from_nz(tile)
        except shapes.NoView:
            shown = f"`{ast.unparse(node)}`: the four axes are not those of a matrix in NZ"
            raise self.state.refuse("TL566", shown) from None

    def al_copy(self, node: ast.Call) -> Value:
        values = self.bound(node, "src dst")
        source, chip = values["src"], self.chip(values["dst"], node)
        if self.core == "cube":
            raise self.state.refuse("TL566", f"`{ast.unparse(node)}`: the cube core cannot read UB")
        if isinstance(source, Chip):
            if source.space != "UB":
                raise self.state.refuse("TL566", f"`{ast.unparse(node)}` copies from {source.space}")
            found = self.al_to_tensor(ast.Call(node.func, [Known(source)], []))
            assert isinstance(found, Tile)
            self.fill_chip(found, chip, node)
        elif isinstance(source, Held):
            self.fill_chip(shapes.to_nz(source.tile) if source.nz else source.tile, chip, node)
        else:
            raise self.state.refuse("TL566", f"`{ast.unparse(node)}` wants a buffer")
        return None

    def emit_own(self, stmt: Scope | Event) -> None:
        """Append a statement that the tile IR does not have; the other kind of core may write to any tile there."""
        self.state.zeros.clear()
        self.state.out.append(cast(Stmt, stmt))

    def fill_chip(self, tile: Tile, chip: Chip, node: ast.Call) -> None:
        """Write a tile to a buffer, or to a part of one."""
        state = self.state
        if tile.dtype != chip.dtype:
            raise state.refuse("TL565", f"`{ast.unparse(node)}` copies {tile.dtype} to {chip.dtype}")
        self.same(tile.shape, chip.shape, node)
        tile = self.as_matrix(tile, node) if chip.nz else tile
        region = self.matrix(chip, node)
        held = state.stored(tile, f"{chip.buffer}_part")
        assert isinstance(held.expr, Load)
        source = Region(held.expr.buffer, tuple(const(0) for _ in tile.shape), region.extent)
        if held.expr.index != identity(len(tile.shape)) or state.buffers[source.buffer].shape != tile.shape:
            raise state.refuse("TL566", f"`{ast.unparse(node)}` copies a part of a tile, or one that is transposed")
        state.emit(Move(source, region, state.origin))

    def al_fixpipe(self, node: ast.Call) -> Value:
        state = self.state
        values = self.bound(node, "src dst dma_mode dual_dst_mode")
        tile, chip = self.tile_of(values["src"], node), self.chip(values["dst"], node)
        modes = [values.get("dma_mode", Name("NZ2ND")), values.get("dual_dst_mode", Name("NO_DUAL"))]
        dma, dual = (_last(mode.path) if isinstance(mode, Name) else "?" for mode in modes)
        if dma != "NZ2ND" or dual not in ("NO_DUAL", "ROW_SPLIT"):
            raise state.refuse("TL565", f"`{ast.unparse(node.func)}` with `{dma}`, `{dual}`")
        if self.core == "vector" or chip.space != "UB":
            raise state.refuse("TL565", f"`{ast.unparse(node)}`: fixpipe goes from the cube core to UB")
        if tile.dtype != chip.dtype:
            raise state.refuse("TL565", f"a product of {tile.dtype} goes to a buffer of {chip.dtype}")
        if len(tile.shape) != 2 or any(not start.is_zero for start in chip.start) or len(chip.shape) != 2:
            raise state.refuse("TL565", f"`{ast.unparse(node)}`: product and buffer are whole matrices")
        row = axis(0)
        if dual == "ROW_SPLIT":
            self.same(tile.shape, (chip.shape[0] * 2, chip.shape[1]), node)
            row = row + var(self.half) * chip.shape[0]
        else:
            self.same(tile.shape, chip.shape, node)
            self.undivided = state.line
        held = state.stored(tile, f"{chip.buffer}_whole")
        assert isinstance(held.expr, Load)
        if held.expr.index != identity(2):
            raise state.refuse("TL565", f"`{ast.unparse(node)}` moves a part of a tile, or one that is transposed")
        state.emit(Map(chip.buffer, Load(held.expr.buffer, (row, axis(1)), tile.dtype), state.origin))
        return None

    def same(self, one: tuple[Sym, ...], other: tuple[Sym, ...], node: ast.AST) -> None:
        """Two shapes that must be equal; sizes that need not be are compared by the host."""
        if len(one) == len(other):
            pairs = [(left, right) for left, right in zip(one, other, strict=True) if left != right]
            if not pairs:
                return
            open_ = all(left.constant is None or right.constant is None for left, right in pairs)
            if open_ and equate(self.state, *pairs[0]):
                raise Again
        shown = [f"({', '.join(size(extent, self.state.spec) for extent in shape)})" for shape in (one, other)]
        raise self.state.refuse("TL566", f"`{ast.unparse(node)}`: shape {shown[0]} does not fit {shown[1]}")

    # shapes -------------------------------------------------------------------------------------------------------

    def rearranged(self, value: Value, name: str, node: ast.Call, args: list[ast.expr]) -> Value:
        """``reshape``, ``permute`` and ``trans``."""
        state = self.state
        tile = self.tile_of(value, node)
        listed = [self.eval(arg) for arg in args]
        parts = self.shape(listed[0] if len(listed) == 1 else tuple(listed), node) if listed else ()
        if name in ("reshape", "view") and parts == tile.shape:
            return tile
        if name == "trans" and len(tile.shape) == 2:
            return super().library("triton.language.trans", ast.Call(node.func, [Known(tile)], []))
        if any(True for _ in loads(tile.expr)) and not isinstance(tile.expr, Load):
            tile = state.stored(tile, state.hint)
        try:
            if name in ("reshape", "view"):
                return shapes.reshaped(tile, parts)
            return shapes.permuted(tile, [part.constant if part.constant is not None else -1 for part in parts])
        except shapes.NoView:
            raise state.refuse("TL537", f"`{ast.unparse(node)}` moves elements") from None

    # sizes that are divided ---------------------------------------------------------------------------------------

    def binary(self, op: str, left: Value, right: Value, node: ast.AST) -> Value:
        """``BLOCK_M // 2`` is exact for the shapes of a kernel that Triton compiles: the host checks that."""
        number, divisor = integer(left), integer(right)
        if op in ("floordiv", "mod") and number is not None and divisor is not None and (divisor.constant or 0) > 1:
            assert divisor.constant is not None
            self.divided(number, divisor.constant)
        return super().binary(op, left, right, node)

    def divided(self, value: Sym, by: int) -> None:
        """Read a size that is divided as a multiple, in every term where that makes the division exact."""
        spec = self.state.spec
        constant = spec.constants
        asked = []
        for mono, coef in value.terms:
            need = by // gcd(coef, by)
            found = [pair for atom in mono if (pair := _divisible(atom)) and pair[0].partition("/")[0] in constant]
            if need > 1 and not found:
                return
            asked += [(found[0], need)] if need > 1 else []
        for (name, more), need in asked:
            base, _, before = name.partition("/")
            total = int(before or 1) * need * more
            shown = spec.numbers.get(base)
            if isinstance(shown, int) and shown % total:
                raise self.state.refuse("TL566", f"`{base}` is {shown} at the launch, which {total} does not divide")
            spec.known[name] = var(spec.part(base, total)) * (need * more)
            spec.multiples[base] = total
            raise Again


def _divisible(atom: Atom) -> tuple[str, int] | None:
    """A size, or a size that is divided by a number, and that number."""
    if isinstance(atom, Var):
        return atom.name, 1
    if isinstance(atom, Div) and isinstance(atom.num.atom, Var) and atom.den.constant:
        return atom.num.atom.name, atom.den.constant
    return None


def _last(path: str) -> str:
    last = path.rpartition(".")[2]
    return RENAMED.get(last, last)


def _names(body: Sequence[ast.stmt]) -> set[str]:
    return {item.id for stmt in body for item in ast.walk(stmt) if isinstance(item, ast.Name)}


def _reads(value: Value | None, buffers: set[str]) -> bool:
    """True if a value is in one of the buffers."""
    if isinstance(value, Held):
        value = value.tile
    if isinstance(value, tuple):
        return any(_reads(item, buffers) for item in value)
    return isinstance(value, Tile) and any(item.buffer in buffers for item in loads(value.expr))
