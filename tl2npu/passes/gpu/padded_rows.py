"""TL703: tiles whose rows are no whole blocks of 32 bytes get wider rows.

A copy with global memory lays every row of a tile on blocks of its own (``DataCopyPad``), and nothing else in the
kernel does. With rows of whole blocks both agree. Where all tiles of one width can be padded together, loops over the
columns go over the padding too, and everything stays a vector instruction. Else only the tile that is copied is padded,
and other statements take its columns as a part.

A reduction takes rows of whole blocks, of which ``real_shape`` says how many columns count (``common.h``: ``ReduceSum``
with its ``srcInnerPad``). The padding is cleared once, what other loops need of windows that start anywhere is put into
tiles of that width, and vectors are padded only if they go along the columns.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import accesses
from tl2npu.kernel.expressions import code
from tl2npu.kernel.memory import alignment
from tl2npu.kernel.model import Alloc, Buffer, Copy, Loop, Memory, Op, Operand, Scalar, Stmt, Store, walk_with_parents
from tl2npu.kernel.sizes import ITEM_SIZE
from tl2npu.kernel.symbolic import Sym
from tl2npu.passes.job import Job
from tl2npu.passes.writing.numbers import element_type
from tl2npu.passes.writing.statements import Names, expression, parse
from tl2npu.passes.writing.tiles import allocate_above, argument, dtype_text, extent_text
from tl2npu.source.edits import Edits

_RANK = 2


def pad(job: Job) -> None:
    """To be called when every tile has its memory, before loops over elements become instructions."""
    unaligned = list(dict.fromkeys(_unaligned(job)))
    for width in dict.fromkeys(buffer.shape[-1] for buffer in unaligned):
        names = [buffer.name for buffer in unaligned if buffer.shape[-1] == width]
        if _Width(job, width, names).put_windows_into_tiles():
            _Width(job, width, names).pad()


def _unaligned(job: Job) -> Iterator[Buffer]:
    """Tiles that are copied to or from global memory in rows that are certainly no whole blocks."""
    for stmt in job.kernel.walk():
        if isinstance(stmt, Copy) and Memory.GM in (stmt.src.buffer.memory, stmt.dst.buffer.memory):
            for demand in alignment.of_copy(stmt):
                buffer = demand.operand.buffer
                whole = demand.operand.is_whole or demand.elements == buffer.shape[-1]
                if demand.what == "rows" and whole and job.judge.judge(demand, stmt)[0].holds is False:
                    yield buffer
        src = stmt.args.get("buffer") if isinstance(stmt, Op) and stmt.op.kind is Kind.REDUCE else None
        if isinstance(src, Operand) and len(src.buffer.shape) == _RANK and any(narrow(job, src.buffer)):
            yield src.buffer


def narrow(job: Job, buffer: Buffer) -> Iterator[bool]:
    """For each call, whether the rows of a tile are no whole blocks."""
    name = element_type(job, buffer)
    for caller in job.judge.callers:
        width, size = buffer.shape[-1].evaluate(caller.values), ITEM_SIZE.get(caller.words.get(name, name))
        yield size is not None and width is not None and bool(width * size % alignment.BLOCK)


def _is_along_rows(stmt: Op) -> bool:
    dim = stmt.args.get("dim")
    return dim is None or (isinstance(dim, Scalar) and dim.sym.constant in (-1, 1))


class _Width:
    """The tiles of one width."""

    def __init__(self, job: Job, width: Sym, unaligned: list[str]) -> None:
        self.job = job
        self.width = width
        self.kernel = job.kernel
        self.unaligned = [self.kernel.buffers[name] for name in unaligned]
        self.edits = Edits(job.file.index)
        tiles = (buffer for buffer in self.kernel.buffers.values() if buffer.memory is Memory.UB and buffer.shape)
        self.all = [buffer for buffer in tiles if buffer.shape[-1] == width]
        self.nests = list(self._nests())
        self.apart: list[Loop] = []
        self.reductions = [stmt for stmt in self.kernel.walk() if isinstance(stmt, Op) and self._is_reduction(stmt)]
        if self.reductions:
            along = set(self._vectors_along_columns())
            self.all = [buffer for buffer in self.all if len(buffer.shape) == _RANK or buffer in along]
            self.apart = list(filter(self._is_copy_of_window, self.nests))
            self.nests = [loop for loop in self.nests if len(loop.ranges) == _RANK and loop not in self.apart]

    def pad(self) -> None:
        """Write the wider tiles, if there is a way."""
        together = all(map(self._may_grow, self.all)) and self._one_width()
        chosen = self.all if together else [b for b in self.unaligned if self._may_grow(b)]
        wide = self._wide(chosen)
        if not chosen or wide is None or (self.reductions and not together):
            return
        for buffer in chosen:
            self._widen(buffer, wide)
        for reduction in self.reductions:
            self._reduce(reduction)
        for buffer in chosen if self.reductions else ():
            node = buffer.statement
            assert isinstance(node, (cst.BaseSmallStatement, cst.BaseCompoundStatement))
            self.edits.replace_many(node, [node, *parse(self.job, f"T.fill({buffer.name}, 0)\n", node)])
        for stmt in self.kernel.walk():
            if isinstance(stmt, Copy):
                self._copy(stmt, chosen, together)
        if together:
            for loop in self.nests:
                self._widen_loop(loop, wide)
        for buffer in chosen:
            text = f"padded the rows of `{buffer.name}` to {alignment.BLOCK}-byte blocks: {wide} columns"
            self.job.change("TL703", buffer.node, text)
        self.job.apply(self.edits)

    def put_windows_into_tiles(self) -> bool:
        """Give each window of a tile that a loop reads beside columns a tile of its own; False if that cannot be."""
        names, places = Names(self.job), [(loop, list(self._windows(loop))) for loop in self.nests]
        if not self.reductions or not any(windows for _, windows in places):
            return True
        for loop, windows in places:
            stored = [stmt for stmt in loop.body if isinstance(stmt, Store)]
            if windows and (len(stored) < len(loop.body) or any(window.loads for window in windows)):
                return False
            stops = [code(axis.stop_node) for axis in loop.ranges if axis.stop_node is not None]
            lines, made = "", dict[str, str]()
            for window in windows:
                if code(window.node) not in made:
                    name = made[code(window.node)] = names.fresh(f"{window.buffer.name}_part")
                    axes = ", ".join(axis.name for axis in loop.ranges)
                    text = f"{name} = T.alloc_shared([{', '.join(stops)}], {dtype_text(window.buffer)})\n"
                    allocate_above(self.job, self.edits, loop, text, loop.node)
                    lines += f"T.fill({name}, 0)\nfor {axes} in T.Parallel({', '.join(stops)}):\n"
                    lines += f"    {name}[{axes}] = {code(window.node)}\n"
                self.edits.replace(window.node, expression(self.job, f"{made[code(window.node)]}[{axes}]", loop.node))
            if lines:
                self.edits.replace_many(loop.node, [*parse(self.job, lines, loop.node), loop.node])
        self.job.apply(self.edits)
        return True

    # -- whether ----------------------------------------------------------------------------------------------------

    def _is_reduction(self, stmt: Op) -> bool:
        """Of a tile of this width, along its rows or its columns."""
        src = stmt.args.get("buffer")
        two = stmt.op.kind is Kind.REDUCE and isinstance(src, Operand) and len(src.buffer.shape) == _RANK
        return two and isinstance(src, Operand) and src.buffer in self.all

    def _vectors_along_columns(self) -> Iterator[Buffer]:
        for reduction in self.reductions:
            out = reduction.args["out"]
            if isinstance(out, Operand) and not _is_along_rows(reduction):
                yield out.buffer
        for loop in self.nests:
            for stmt, _ in walk_with_parents(loop.body if len(loop.ranges) == _RANK else []):
                for access in accesses(stmt):
                    dims = access.operand.dims or ()
                    if len(dims) == 1 and dims[0].lo == loop.ranges[-1].var:
                        yield access.operand.buffer

    def _windows(self, loop: Loop) -> Iterator[Operand]:
        """What a loop reads of tiles other than along their columns."""
        column = loop.ranges[-1].var
        for stmt in loop.body:
            for load in stmt.value.loads if isinstance(stmt, Store) else ():
                dims = load.dims or ()
                moves = any(dim.lo.depends_on(str(column)) for dim in dims)
                if moves and not (load.buffer in self.all and dims[-1].lo == column):
                    yield load

    def _is_copy_of_window(self, loop: Loop) -> bool:
        """It only puts elements from anywhere into a tile: that is done one by one."""
        stores = [stmt for stmt in loop.body if isinstance(stmt, Store) and len(stmt.value.loads) == 1]
        return len(stores) == len(loop.body) and all(
            stmt.value.loads[0].node is stmt.value.node and stmt.value.loads[0] in self._windows(loop)
            for stmt in stores
        )

    def _nests(self) -> Iterator[Loop]:
        """Innermost loops over the columns of these tiles."""
        for stmt in self.kernel.walk():
            if not isinstance(stmt, Loop) or stmt.kind != "parallel" or stmt.ranges[-1].extent != self.width:
                continue
            if not any(isinstance(inner, Loop) for inner in stmt.body):
                yield stmt

    def _may_grow(self, buffer: Buffer) -> bool:
        """Every use leaves the padding alone, or does not care what is in it."""
        shape = argument(buffer, 0, "shape") if isinstance(buffer.node, cst.Call) else None
        listed = isinstance(shape, (cst.Tuple, cst.List)) and len(shape.elements) == len(buffer.shape)
        if shape is None or not (listed or (self.reductions and shape is buffer.shape_nodes[0])):
            return False
        for stmt in self.kernel.walk():
            for access in accesses(stmt):
                if access.operand.buffer is buffer and not (access.element or self._allows(stmt, access.operand)):
                    return False
        return True

    def _allows(self, stmt: Stmt, operand: Operand) -> bool:
        if isinstance(stmt, Alloc):
            return True
        if isinstance(stmt, Copy):
            other = stmt.dst if operand is stmt.src else stmt.src
            if self.reductions and operand.dims is not None and operand.dims[-1].extent == self.width:
                return other.dims is not None and not all(dim.is_point for dim in other.dims)
            if other.buffer.memory is Memory.GM:
                points = other.dims is None or all(dim.is_point for dim in other.dims)
                return operand.is_whole and (not points or self._region(other, operand.buffer) is not None)
            return other.buffer.memory is Memory.UB
        reduced = any(stmt is reduction for reduction in self.reductions)
        return isinstance(stmt, Op) and (stmt.op.kind is Kind.FILL or reduced) and operand.is_whole

    def _one_width(self) -> bool:
        """Loops over the columns take plain columns of these tiles only, and copies between tiles take them whole."""
        for loop in self.nests:
            column = loop.ranges[-1].var
            for stmt, _ in walk_with_parents(loop.body):
                for access in accesses(stmt):
                    dims = access.operand.dims or ()
                    moving = [dim for dim in dims if dim.lo.depends_on(str(column))]
                    plain = len(moving) == 1 and dims[-1].lo == column
                    if moving and not (plain and access.operand.buffer in self.all):
                        return False
        inside = {id(stmt) for loop in (*self.nests, *self.apart) for stmt, _ in walk_with_parents(loop.body)}
        for stmt in self.kernel.walk():
            used = [access.operand.buffer for access in accesses(stmt) if access.element]
            if id(stmt) not in inside and any(buffer in self.all for buffer in used):
                return False
            if isinstance(stmt, Copy) and stmt.src.buffer.memory is stmt.dst.buffer.memory is Memory.UB:
                if (stmt.src.buffer in self.all) != (stmt.dst.buffer in self.all):
                    return False
                if stmt.src.buffer in self.all and not (stmt.src.is_whole and stmt.dst.is_whole):
                    return False
        return True

    # -- how --------------------------------------------------------------------------------------------------------

    def _wide(self, chosen: list[Buffer]) -> str | None:
        """The padded number of columns; None where the size of the elements is not known."""
        words = [caller.words for caller in self.job.judge.callers]
        sizes = {ITEM_SIZE.get(known.get(buffer.dtype, buffer.dtype)) for buffer in chosen for known in words}
        if not chosen or None in sizes:
            return None
        lanes = alignment.BLOCK // min(size for size in sizes if size is not None)
        if self.width.constant is not None:
            return str(-(-self.width.constant // lanes) * lanes)
        text = extent_text(chosen[0], len(chosen[0].shape) - 1)
        return f"({text} + {lanes - 1}) // {lanes} * {lanes}"

    def _widen(self, buffer: Buffer, wide: str) -> None:
        shape = argument(buffer, 0, "shape")
        assert shape is not None
        last = shape.elements[-1].value if isinstance(shape, (cst.Tuple, cst.List)) else shape
        self.edits.replace(last, expression(self.job, wide, buffer.node))

    def _reduce(self, stmt: Op) -> None:
        """Say which columns count."""
        src = stmt.args["buffer"]
        assert isinstance(src, Operand)
        assert stmt.call is not None
        if _is_along_rows(stmt):
            sizes = ", ".join(extent_text(src.buffer, axis) for axis in range(_RANK))
            made = cst.ensure_type(expression(self.job, f"f(real_shape=[{sizes}])", stmt.node), cst.Call)
            self.edits.replace(stmt.call, stmt.call.with_changes(args=[*stmt.call.args, *made.args]))

    def _widen_loop(self, loop: Loop, wide: str) -> None:
        stop = loop.ranges[-1].stop_node
        assert stop is not None
        self.edits.replace(stop, expression(self.job, wide, loop.node))

    def _copy(self, stmt: Copy, chosen: list[Buffer], together: bool) -> None:
        for tile, other in ((stmt.src, stmt.dst), (stmt.dst, stmt.src)):
            if tile.buffer not in chosen:
                continue
            if other.buffer.memory is Memory.GM:
                region = self._region(other, tile.buffer)
                if region is not None and (other.dims is None or all(dim.is_point for dim in other.dims)):
                    self.edits.replace(other.node, expression(self.job, region, stmt.node))
                if not tile.is_whole and tile is stmt.src:
                    self._end(tile)
                elif not tile.is_whole:
                    self._load_row(stmt, tile)
            elif tile.is_whole and not together and not (other.buffer in chosen and other.is_whole):
                parts = [f"0:{extent_text(tile.buffer, axis)}" for axis in range(len(tile.buffer.shape))]
                text = f"{tile.buffer.name}[{', '.join(parts)}]"
                self.edits.replace(tile.node, expression(self.job, text, stmt.node))
            elif not tile.is_whole and tile.dims is not None and tile.dims[-1].extent == self.width:
                self._end(tile)

    def _load_row(self, stmt: Copy, row: Operand) -> None:
        """Load a part of a row by way of a vector: a load ends with its block, and leaves anything in the padding."""
        names, size = Names(self.job), extent_text(row.buffer, -1)
        name, index = names.fresh(f"{row.buffer.name}_row"), names.fresh("k", "column")
        text = f"{name} = T.alloc_shared([{size}], {dtype_text(row.buffer)})\n"
        allocate_above(self.job, self.edits, stmt, text, stmt.node)
        *first, _ = (code(dim.node) for dim in row.dims or ())
        lines = f"T.copy({code(stmt.src.node)}, {name})\nfor {index} in T.serial({size}):\n"
        lines += f"    {row.buffer.name}[{', '.join([*first, index])}] = {name}[{index}]\n"
        self.edits.replace_many(stmt.node, parse(self.job, lines, stmt.node))

    def _end(self, part: Operand) -> None:
        """All columns of a part of a tile are those that it had."""
        last = (part.dims or ())[-1].node
        if isinstance(last, cst.Slice) and last.upper is None:
            upper = expression(self.job, extent_text(part.buffer, -1), part.node)
            self.edits.replace(last, last.with_changes(upper=upper))

    def _region(self, tensor: Operand, tile: Buffer) -> str | None:
        """The part of a tensor that a start index and the columns of a tile mean."""
        rank = len(tensor.buffer.shape)
        if rank < len(tile.shape):
            return None
        starts = ["0"] * rank if tensor.dims is None else [code(dim.node) for dim in tensor.dims]
        if len(starts) != rank or not isinstance(tensor.node, (cst.Name, cst.Subscript)):
            return None
        name = code(tensor.node.value) if isinstance(tensor.node, cst.Subscript) else code(tensor.node)
        skipped = rank - len(tile.shape)
        parts = starts[:skipped]
        for axis, first in enumerate(starts[skipped:]):
            extent = extent_text(tile, axis)
            parts.append(f"0:{extent}" if first == "0" else f"{first} : {first} + {extent}")
        return f"{name}[{', '.join(parts)}]"
