"""The invariants of the tile IR. A front end that breaks one has a bug, so this raises."""

from __future__ import annotations

from tl2npu.tile.expr import OPERATORS, Call, Expr, Index, Load, axis_of, walk
from tl2npu.tile.ir import AtomicAdd, For, If, Kernel, Let, Map, Matmul, Move, Reduce, Region, Stmt


class Malformed(Exception):
    """A kernel that is no kernel of the IR."""


def check(kernel: Kernel) -> None:
    """Raise :class:`Malformed` unless the kernel is well formed.

    Every buffer is declared once; regions and indices have the rank of their buffer; a ``Map`` has only axes of its
    destination; reductions lose one axis; products have matrices; every name is bound before it is used.
    """
    _Check(kernel).all()


class _Check:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.buffers = kernel.buffers
        if len(self.buffers) != len(kernel.params) + len(kernel.tiles):
            raise Malformed("two buffers have one name")

    def all(self) -> None:
        sizes = frozenset((*self.kernel.sizes, *self.kernel.scalars))
        for buffer in self.buffers.values():
            self.names(frozenset().union(*(extent.names for extent in buffer.shape)), sizes, buffer.name)
        self.names(frozenset().union(*(extent.names for extent in self.kernel.launch.grid)), sizes, "the grid")
        self.body(self.kernel.body, sizes | frozenset(self.kernel.launch.names))

    def body(self, body: tuple[Stmt, ...], bound: frozenset[str]) -> None:
        for stmt in body:
            self.stmt(stmt, bound)
            if isinstance(stmt, For):
                self.names(stmt.count.names, bound, "a loop")
                self.body(stmt.body, bound | {stmt.var})
            elif isinstance(stmt, If):
                self.expr(stmt.condition, 0, bound)
                self.body(stmt.then, bound)
                self.body(stmt.orelse, bound)
            elif isinstance(stmt, Let):
                self.expr(stmt.value, 0, bound)
                bound = bound | {stmt.name}

    def stmt(self, stmt: Stmt, bound: frozenset[str]) -> None:
        match stmt:
            case Move():
                self.region(stmt.src, bound)
                self.region(stmt.dst, bound)
                if [extent for extent in stmt.src.extent if extent is not None] != [
                    extent for extent in stmt.dst.extent if extent is not None
                ]:
                    raise Malformed(f"a copy of another shape: {stmt.src} to {stmt.dst}")
            case Map():
                self.expr(stmt.value, len(self.buffer(stmt.dst)), bound)
            case Reduce():
                src, dst = self.buffer(stmt.src), self.buffer(stmt.dst)
                if (*src[: stmt.axis], *src[stmt.axis + 1 :]) != dst:
                    raise Malformed(f"{stmt.src} is not reduced to {stmt.dst} along axis {stmt.axis}")
            case Matmul():
                a, b, c = (self.buffer(name) for name in (stmt.a, stmt.b, stmt.c))
                m, k = reversed(a) if stmt.transpose_a else a
                depth, n = reversed(b) if stmt.transpose_b else b
                if k != depth or (m, n) != tuple(c):
                    raise Malformed(f"shapes of a product: {a} by {b} to {c}")
            case AtomicAdd():
                self.buffer(stmt.src)
                self.region(stmt.dst, bound)
            case _:
                pass

    def buffer(self, name: str) -> tuple[object, ...]:
        if name not in self.buffers:
            raise Malformed(f"`{name}` is not declared")
        return self.buffers[name].shape

    def region(self, region: Region, bound: frozenset[str]) -> None:
        rank = len(self.buffer(region.buffer))
        if len(region.start) != rank or len(region.extent) != rank:
            raise Malformed(f"a region of another rank: {region}")
        for start in region.start:
            self.names(start.names, bound, region.buffer)

    def expr(self, expr: Expr, rank: int, bound: frozenset[str]) -> None:
        for item in walk(expr):
            if isinstance(item, Load):
                if len(item.index) != len(self.buffer(item.buffer)):
                    raise Malformed(f"an index of another rank: {item}")
                for part in item.index:
                    self.names(part.names, bound, item.buffer, rank)
            elif isinstance(item, Index):
                self.names(item.value.names, bound, "an index", rank)
            elif isinstance(item, Call) and len(item.args) != OPERATORS.get(item.op):
                raise Malformed(f"`{item.op}` of {len(item.args)} operands")

    def names(self, names: frozenset[str], bound: frozenset[str], where: str, rank: int = 0) -> None:
        for name in names - bound:
            axis = axis_of(name)
            if axis is None or axis >= rank:
                raise Malformed(f"`{name}` in {where} is not bound")
