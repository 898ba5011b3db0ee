"""Forms that the compiler lowers to something else than they say (compiler-facts sections 1 and 3, measured).

Applied in the actual reading only, so that a kernel with such a form computes here what it computes on the NPU.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.ir import dtypes
from tl2npu.simulator.ir.buffer import Buffer, Region, product
from tl2npu.simulator.ir.expr import Binary, Call, Load, Value, Var, binary
from tl2npu.simulator.ir.parts import free, rebuild, substitute, walk
from tl2npu.simulator.ir.stmt import Alloc, For, Op, Parallel, Stmt, Store
from tl2npu.simulator.ir.stmt import walk as statements
from tl2npu.simulator.lowering import parallel_forms
from tl2npu.simulator.lowering.copier import Copier
from tl2npu.simulator.lowering.uses import buffers


def deviate(body: list[Stmt], packs: bool = True) -> list[Stmt]:
    """The program as the compiler reads it. ``packs``: some columns of a tile are loaded and stored packed."""
    return _Deviations(packs=packs).block(body)


def check_inference(body: list[Stmt], shared: set[int]) -> None:
    """Raises SimulatorError for ``alloc_shared`` buffers that no operator and no copy touches.

    The compiler leaves them in L1 and puts the ``T.Parallel`` around them on the cube core (g3b_ubpar).
    ``shared``: the numbers of the buffers that were allocated so.
    """
    touched: set[int] = set()
    for stmt in statements(body):
        if isinstance(stmt, Op):
            touched |= {b.number for b in buffers(stmt)}
    for stmt in statements(body):
        if isinstance(stmt, Alloc) and stmt.buffer.number in shared - touched:
            used = [s for s in statements(body) if not isinstance(s, Alloc) and stmt.buffer in set(buffers(s))]
            if used:
                raise SimulatorError(
                    f"{stmt.buffer.name} is used by T.Parallel or element by element only: the compiler leaves such an "
                    "alloc_shared buffer in L1 and runs the statement on the cube core; allocate it with alloc_ub",
                    used[0].site,
                )


@dataclass(eq=False)
class _Deviations(Copier):
    packs: bool = True
    nest: Parallel | None = None

    def on_Parallel(self, stmt: Parallel) -> list[Stmt]:
        kind = parallel_forms.form(stmt)
        if kind == parallel_forms.SCALAR or len(stmt.vars) > 2:
            return [self.copy(stmt)]
        before, self.nest = self.nest, stmt
        body = [self._store(s, kind) if isinstance(s, Store) else self.copy(s) for s in stmt.body]
        self.nest = before
        return [replace(stmt, body=body)]

    def _store(self, stmt: Store, kind: str) -> Stmt:
        assert self.nest is not None
        if not isinstance(stmt.value, Load) or not parallel_forms.by_element(stmt.buffer, stmt.value.buffer):
            value = rebuild(stmt.value, lambda e: self._in_order(e, kind) if isinstance(e, Load) else e)
            target = self._in_order(Load(stmt.buffer, stmt.indices), kind)
            stmt = replace(stmt, indices=target.indices, value=value)
        if len(self.nest.vars) == 1:
            return replace(stmt, value=rebuild(stmt.value, self._reciprocal))
        value = rebuild(stmt.value, self._row_on_the_left)
        if not self._all_broadcast(stmt.value):
            value = rebuild(value, self._reciprocal)
        if kind == parallel_forms.ROWS and not self._all_broadcast(stmt.value):
            value = rebuild(value, self._one_for_all_columns)
        if kind == parallel_forms.VECTOR:
            value = rebuild(value, lambda e: self._flat_load(e) if isinstance(e, Load) else e)
            indices = self._flat_indices(stmt.buffer, stmt.indices)
            return replace(stmt, indices=indices, value=value)
        return replace(stmt, value=value)

    def _in_order(self, load: Load, kind: str) -> Load:
        """An instruction goes from its first element on: ``s[i] = a[i, 8]`` takes a row (executed for ``pto``)."""
        assert self.nest is not None
        column, buffer = self.nest.vars[-1], load.buffer
        used = {v for index in load.indices for v in free(index)}
        names = [v for v in self.nest.vars if v in used and (v is column or kind == parallel_forms.VECTOR)]
        if column not in used or buffer.memory not in ("ub", "global") or _follows(load.indices, names):
            return load
        first = [substitute(index, dict.fromkeys(names, 0)) for index in load.indices]
        if buffer.memory == "global":
            for back, name in enumerate(reversed(names), 1):
                first[-back] = binary("+", first[-back], name)
            return Load(buffer, tuple(first))
        width = buffer.shape[-1] if buffer.ndim > 1 else self.nest.extents[-1]
        position = binary("+", first[0], 0)
        for index, extent in zip(first[1:], buffer.shape[1:], strict=True):
            position = binary("+", binary("*", position, extent), index)
        for name in names:
            position = binary("+", position, name if name is column else binary("*", name, width))
        places: list[Value] = []
        for extent in reversed(buffer.shape[1:]):
            places.insert(0, binary("%", position, extent))
            position = binary("//", position, extent)
        return Load(buffer, (position, *places))

    def _reciprocal(self, part: object) -> object:
        """``a[i, j] / s[i]``: times ``1 / s[i]``, rounded to the element type (codegen_ascend.cc:DivsOpCodegen)."""
        assert self.nest is not None
        if not isinstance(part, Binary) or part.op != "/" or not dtypes.is_float(part.dtype):
            return part
        if not isinstance(part.right, (Load, Var)) or any(part.right is name for name in self.nest.vars):
            return part
        indices = part.right.indices if isinstance(part.right, Load) else ()
        if any(self.nest.vars[-1] in free(index) for index in indices):
            return part
        return Binary("*", part.left, Call("reciprocal", (part.right,), part.dtype), part.dtype)

    def _row_on_the_left(self, part: object) -> object:
        """``s[i] - a[i, j]``: the row vector is taken for a column vector that starts at ``s[i]`` (g3_rowdiv)."""
        assert self.nest is not None
        row, column = self.nest.vars
        if not isinstance(part, Binary) or part.op not in ("+", "-", "*", "/"):
            return part
        left = part.left
        if isinstance(left, Load) and len(left.indices) == 1 and left.indices[0] is row and column in free(part.right):
            moved = Load(left.buffer, (binary("+", row, column),))
            return Binary(part.op, moved, part.right, part.dtype)
        return part

    def _all_broadcast(self, value: Value) -> bool:
        """Every operand is a vector of the rows or of the columns (CheckExpressionSupports2DVectorization)."""
        assert self.nest is not None
        loads = [part for part in walk(value) if isinstance(part, Load)]
        return all(load.buffer.ndim == 1 and any(load.indices[0] is v for v in self.nest.vars) for load in loads)

    def _one_for_all_columns(self, part: object) -> object:
        """``a[i, j] - s[i] * c``: an operation of its own takes its left operand for a vector (HandleSimpleCase)."""
        assert self.nest is not None
        column = self.nest.vars[1]
        if not isinstance(part, Binary) or part.op not in ("+", "-", "*", "/") or not isinstance(part.left, Load):
            return part
        left = part.left
        if left.buffer.ndim != 1 or left.buffer.memory != "ub" or column in free(left.indices[0]):
            return part
        return Binary(part.op, Load(left.buffer, (binary("+", left.indices[0], column),)), part.right, part.dtype)

    def _flat_load(self, load: Load) -> Load:
        return Load(load.buffer, self._flat_indices(load.buffer, load.indices))

    def _flat_indices(self, buffer: Buffer, indices: tuple[Value, ...]) -> tuple[Value, ...]:
        """Some of a tile's columns: one flat run of rows * columns elements (g3_subcol)."""
        assert self.nest is not None
        row, column = self.nest.vars
        width, count = buffer.shape[-1], self.nest.extents[1]
        if buffer.memory != "ub" or buffer.ndim != 2 or len(indices) != 2 or indices[0] is not row:
            return indices
        if column not in free(indices[1]) or not isinstance(width, int) or not isinstance(count, int) or count == width:
            return indices
        offset = binary("-", indices[1], column)
        position = binary("+", binary("+", binary("*", row, count), column), offset)
        return binary("//", position, width), binary("%", position, width)

    def on_Op(self, stmt: Op) -> list[Stmt]:
        if stmt.name in _SCALAR_FORMS:
            return [self.copy(_first_index(stmt))]
        if stmt.name not in ("copy", "tile.atomic_add"):
            return [self.copy(stmt)]
        if stmt.name == "copy":
            _check_rows(stmt)
            _check_vector(stmt)
        for ub, gm in (("src", "dst"), ("dst", "src")):
            tile, tensor = stmt.args.get(ub), stmt.args.get(gm)
            if not isinstance(tile, Region) or not isinstance(tensor, (Region, Load)):
                continue
            if self.packs and tensor.buffer.memory == "global" and _columns(tile):
                return self._packed(stmt, ub, tile, gm, tensor)
        return [self.copy(stmt)]

    def _packed(self, stmt: Op, ub: str, tile: Region, gm: str, tensor: Region | Load) -> list[Stmt]:
        """Some columns of a tile from or to global memory: the rows lie packed in UB (g1_g_cols, gy_t2_colpartial)."""
        buffer = tile.buffer
        row, width = Var("row"), tile.extents[1]
        flat = Buffer(buffer.name, (binary("*", buffer.shape[0], buffer.shape[1]),), buffer.dtype, "ub", alias=buffer)
        first = binary("+", binary("*", tile.starts[0], buffer.shape[1]), tile.starts[1])
        run = Region(flat, (binary("+", first, binary("*", row, width)),), (width,), (True,))
        starts = tensor.starts if isinstance(tensor, Region) else tensor.indices
        axis = tensor.buffer.ndim - 2
        if isinstance(tensor, Region):
            moving = [n for n, e in enumerate(tensor.extents) if not (isinstance(e, int) and e == 1)]
            axis = moving[0] if len(moving) == 2 else axis
        places = tuple(binary("+", s, row) if n == axis else s for n, s in enumerate(starts))
        extents = tuple(width if n == tensor.buffer.ndim - 1 else 1 for n in range(tensor.buffer.ndim))
        line = Region(tensor.buffer, places, extents, (True,) * tensor.buffer.ndim)
        copy = replace(stmt, args={**stmt.args, ub: run, gm: line})
        return [For(row, 0, tile.extents[0], [copy], site=stmt.site)]


def _follows(indices: tuple[Value, ...], names: list[Var]) -> bool:
    """The last indices are these variables, each plus something fixed, and no other index has one of them."""
    if len(indices) < len(names):
        return False
    wanted: list[Var | None] = [*[None] * (len(indices) - len(names)), *names]
    return all(_is_step(index, name, names) for index, name in zip(indices, wanted, strict=True))


def _is_step(index: Value, name: Var | None, names: list[Var]) -> bool:
    if name is None or index is name:
        return index is name or not free(index) & set(names)
    if not isinstance(index, Binary) or index.op not in ("+", "-"):
        return False
    sides = (index.left, index.right) if index.op == "-" or name in free(index.left) else (index.right, index.left)
    return _is_step(sides[0], name, names) and not free(sides[1]) & set(names)


def _check_rows(stmt: Op) -> None:
    """Raises SimulatorError for a vector and a column of a UB tile (ascend.cc:512-532).

    ``copy_ub_to_ub`` moves the rows of the source, and a vector is a single row.
    """
    src, dst = stmt.args.get("src"), stmt.args.get("dst")
    if not isinstance(src, Region) or not isinstance(dst, Region) or {src.buffer.memory, dst.buffer.memory} != {"ub"}:
        return
    pairs = [(region.extents[-2] if len(region.extents) > 1 else 1, region.extents[-1]) for region in (src, dst)]
    whole = [columns == region.buffer.shape[-1] for region, (_, columns) in zip((src, dst), pairs, strict=True)]
    known = all(isinstance(size, int) for pair in pairs for size in pair)
    if known and not all(whole) and pairs[0] != pairs[1]:
        raise SimulatorError(
            f"a copy of {pairs[0][0]} rows of {pairs[0][1]} elements of {src.buffer.name} to {pairs[1][0]} rows of "
            f"{pairs[1][1]} elements of {dst.buffer.name}: only the rows of the source are moved",
            stmt.site,
        )


def _check_vector(stmt: Op) -> None:
    """Raises SimulatorError for several rows of a tensor and a vector, which gets gaps between them (common.h:197)."""
    sides = [side for side in (stmt.args.get("src"), stmt.args.get("dst")) if isinstance(side, Region)]
    tensors = [side for side in sides if side.buffer.memory == "global" and side.buffer.ndim > 1]
    vectors = [side for side in sides if side.buffer.memory == "ub" and _is_row(side)]
    if tensors and vectors and isinstance(tensors[0].extents[-2], int) and tensors[0].extents[-2] > 1:
        raise SimulatorError(
            f"a copy between {tensors[0].extents[-2]} rows of {tensors[0].buffer.name} and the vector "
            f"{vectors[0].buffer.name}: each row begins a block of 32 bytes",
            stmt.site,
        )


def _is_row(side: Region) -> bool:
    return all(isinstance(extent, int) and extent == 1 for extent in side.extents[:-1])


_SCALAR_FORMS = {f"tile.{name}" for name in ("add", "sub", "mul", "div", "max", "min", "compare")}
"""Operators that read a buffer element by ``GetValue``."""


def _first_index(stmt: Op) -> Op:
    """``T.tile.mul(x, x, s[h, j])``: only the first index is kept, so element ``h`` of the flat buffer is read.

    (g2_scalar; tilelang/language/ascend_tile.py:binary_op.) For a buffer ``[M, 1]`` that is the right one.
    """
    element = stmt.args.get("src1")
    if not isinstance(element, Load) or len(element.indices) < 2:
        return stmt
    buffer = element.buffer
    flat = Buffer(buffer.name, (product(buffer.shape),), buffer.dtype, buffer.memory, alias=buffer)
    return replace(stmt, args={**stmt.args, "src1": Load(flat, (element.indices[0],))})


def _columns(tile: Region) -> bool:
    """More than one row of a 2-D UB tile, and not all of its columns."""
    if tile.buffer.memory != "ub" or tile.buffer.ndim != 2:
        return False
    (rows, width), all_columns = tile.extents, tile.buffer.shape[1]
    if isinstance(rows, int) and rows == 1:
        return False
    return isinstance(width, int) and isinstance(all_columns, int) and width < all_columns and width > 1
