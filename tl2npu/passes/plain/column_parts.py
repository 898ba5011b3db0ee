"""TL627: a tile of which products take columns, ``a[:, : n // 2]``, as a tile for each part of the columns.

`gemm_v0` takes whole tiles. Where all uses of a tile are parts of it, or fill it, nothing needs it as a whole.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field

import libcst as cst

from tl2npu.kernel.access import uses_of
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Alloc, Buffer, Copy, Let, Loop, Op, Operand, Store
from tl2npu.kernel.symbolic import Sym, const
from tl2npu.passes.job import Job
from tl2npu.passes.writing.render import Unrenderable, render
from tl2npu.passes.writing.statements import Names, parse
from tl2npu.passes.writing.substitute import Unclear as NotReplaceable
from tl2npu.passes.writing.substitute import substituted
from tl2npu.source.edits import Edits


class _Unclear(Exception):
    """A use of a tile that needs all of it."""


@dataclass(frozen=True)
class _Part:
    """The columns of a tile from ``lo`` to ``hi``, and the name of their own tile."""

    name: str
    lo: Sym
    hi: Sym

    @property
    def width(self) -> str:
        return _text(self.hi - self.lo)


def _text(value: Sym) -> str:
    return code(cst.parse_expression(render(value)).with_changes(lpar=[], rpar=[]))


def take_apart(job: Job) -> None:
    """Give each part of the columns of such tiles a tile of its own."""
    for name in list(job.kernel.buffers):
        buffer = job.kernel.buffers[name]
        if not buffer.is_tile or len(buffer.shape) != 2:
            continue
        try:
            if not _in_products(job, buffer):
                continue
            writer = _Writer(job, buffer, _parts(job, buffer))
            writer.run()
        except (_Unclear, Unrenderable, NotReplaceable):
            continue
        job.change("TL627", buffer.node, f"a tile for each part of the columns of `{name}`")
        job.apply(writer.edits)


def _in_products(job: Job, buffer: Buffer) -> bool:
    """Whether a product takes a part of the columns."""
    uses = uses_of(job.kernel, buffer)
    return any(isinstance(stmt, Op) and "gemm" in stmt.op.name and _columns(buffer, use) for stmt, use in uses)


def _columns(buffer: Buffer, operand: Operand) -> tuple[Sym, Sym] | None:
    """The columns that a slice takes of all rows; None for all of them, and for single elements."""
    if operand.dims is None or operand.is_indexed or operand.is_whole:
        return None
    *rows, last = operand.dims
    if last.extent is None or not all(dim.covers(size) for dim, size in zip(rows, buffer.shape, strict=False)):
        raise _Unclear
    return last.lo, last.lo + last.extent


def _parts(job: Job, buffer: Buffer) -> list[_Part]:
    """The parts, each of which some statement takes alone, and which make up the tile."""
    taken = {columns for _, use in uses_of(job.kernel, buffer) if (columns := _columns(buffer, use)) is not None}
    names, found, start = Names(job), list[_Part](), const(0)
    while start != buffer.shape[-1]:
        ends = [hi for lo, hi in taken if lo == start]
        shortest = [hi for hi in ends if not any((start, other) in taken and (other, hi) in taken for other in ends)]
        if len(shortest) != 1 or len(found) > len(taken):
            raise _Unclear
        sides = ("left", "right") if len(taken) == 2 else (f"part_{len(found)}",)
        found.append(_Part(names.fresh(f"{buffer.name}_{sides[min(len(found), len(sides) - 1)]}"), start, shortest[0]))
        start = shortest[0]
    return found


@dataclass
class _Writer:
    job: Job
    buffer: Buffer
    parts: list[_Part]
    edits: Edits = field(init=False)

    def __post_init__(self) -> None:
        self.edits = Edits(self.job.file.index)

    def run(self) -> None:
        """The edits; raises :class:`_Unclear`."""
        self._allocation()
        self._second_names()
        loops = {id(inner): loop for loop in self.job.kernel.walk() if isinstance(loop, Loop) for inner in loop.body}
        for stmt, use in uses_of(self.job.kernel, self.buffer):
            columns = _columns(self.buffer, use)
            if stmt.via:
                raise _Unclear
            if columns is not None and isinstance(stmt, (Copy, Op)):
                self.edits.replace(use.node, cst.Name(self._part(columns).name))
            elif isinstance(stmt, Copy) and use is stmt.dst and not use.is_indexed:
                self._copy(stmt)
            elif isinstance(stmt, Store) and use is stmt.target:
                self._loop(stmt, loops.get(id(stmt)))
            elif not isinstance(stmt, Alloc):
                raise _Unclear

    def _part(self, columns: tuple[Sym, Sym]) -> _Part:
        for part in self.parts:
            if (part.lo, part.hi) == columns:
                return part
        raise _Unclear

    def _allocation(self) -> None:
        statement, call = self.buffer.statement, self.buffer.node
        if not isinstance(statement, cst.CSTNode) or not isinstance(call, cst.Call):
            raise _Unclear
        shape = call.args[0].value
        if not isinstance(shape, (cst.List, cst.Tuple)) or len(shape.elements) != 2:
            raise _Unclear
        texts: list[str] = []
        for part in self.parts:
            last = shape.elements[-1].with_changes(value=cst.parse_expression(part.width))
            sized = shape.with_changes(elements=[shape.elements[0], last])
            own = call.with_changes(args=[call.args[0].with_changes(value=sized), *call.args[1:]])
            texts.append(f"{part.name} = {code(own)}")
        self._write(statement, "\n".join(texts))

    def _second_names(self) -> None:
        """``b = a`` goes: what uses ``b`` is a use of the tile."""
        for stmt in self.job.kernel.walk():
            if isinstance(stmt, Let) and code(stmt.value.node) == self.buffer.name:
                self.edits.remove(stmt.node)

    def _copy(self, stmt: Copy) -> None:
        """A copy that fills the tile: one for each part."""
        dims = stmt.src.dims
        if dims is None or not isinstance(stmt.src.node, cst.Subscript) or len(stmt.call.args) != 2:
            raise _Unclear
        first = [code(item.slice) for item in stmt.src.node.slice[:-1]]
        texts = []
        for part in self.parts:
            lo, hi = (_text(dims[-1].lo + end) for end in (part.lo, part.hi))
            place = lo if dims[-1].is_point else f"{lo}:{hi}"
            source = f"{code(stmt.src.node.value)}[{', '.join([*first, place])}]"
            texts.append(f"{code(stmt.call.func)}({source}, {part.name})")
        self._write(stmt.node, "\n".join(texts))

    def _loop(self, stmt: Store, loop: Loop | None) -> None:
        """A parallel loop that stores to all columns: one for each part."""
        dims, rest = stmt.target.dims or (), loop.ranges if loop is not None else ()
        if loop is None or loop.kind != "parallel" or loop.body != [stmt] or stmt.augmented or len(rest) != 2:
            raise _Unclear
        column = rest[-1]
        sizes = zip(rest, self.buffer.shape, strict=True)
        if any(not item.start.is_zero or item.extent != size for item, size in sizes) or loop.call is None:
            raise _Unclear
        if len(dims) != 2 or [dim.lo for dim in dims] != [item.var for item in rest]:
            raise _Unclear
        assert isinstance(loop.node, cst.For)
        texts = []
        for part in self.parts:
            shifted = cst.parse_expression(f"({render(part.lo)} + {column.name})")
            value = stmt.value.node if part.lo.is_zero else substituted(stmt.value.node, {column.name: shifted})
            rows = code(self.buffer.shape_nodes[0])
            place = ", ".join(item.name for item in rest)
            store = f"{part.name}[{place}] = {code(value)}"
            head = f"for {place} in {code(loop.call.func)}({rows}, {part.width}):"
            texts.append(f"{head}\n{textwrap.indent(store, '    ')}")
        self._write(loop.node, "\n".join(texts))

    def _write(self, node: cst.CSTNode, text: str) -> None:
        self.edits.replace_many(node, parse(self.job, text, node))
