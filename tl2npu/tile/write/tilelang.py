"""A kernel of the IR as the factory that a GPU author would write in TileLang."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tl2npu.kernel.symbolic import Sym, var
from tl2npu.tile.expr import Call, Const, Expr, Load, identity
from tl2npu.tile.ir import (
    AtomicAdd,
    For,
    If,
    Kernel,
    Let,
    Map,
    Matmul,
    Move,
    Reduce,
    Region,
    Stmt,
    reads,
    statements,
    writes,
)
from tl2npu.tile.narrow import is_static
from tl2npu.tile.write.expressions import expression, number, truth
from tl2npu.tile.write.integers import integer

# How many threads a block of a GPU has, and how products are spread over its warps.
#
# A warp computes at least 16 rows of a product; NPU kernels know nothing of this.

_LANES, _ROWS, _MOST = 32, 16, 128


def threads(kernel: Kernel, numbers: Mapping[str, int]) -> int:
    """As many threads as the shortest product has rows for. ``numbers``: sizes with a known value."""
    buffers = kernel.buffers
    rows = [buffers[stmt.c].shape[0].substitute(numbers).constant for stmt in _products(kernel)]
    known = [number for number in rows if number is not None]
    return min([_MOST, *(max(1, number // _ROWS) * _LANES for number in known)])


def chained(kernel: Kernel) -> bool:
    """True where an operand of a product comes from the result of another: both need the same warps for a row."""
    made = {stmt.c for stmt in _products(kernel)}
    steps = [(reads(stmt), writes(stmt)) for stmt in statements(kernel.body) if not isinstance(stmt, Matmul)]
    while True:
        more = {name for read, written in steps if read & made for name in written} - made
        if not more:
            return any({stmt.a, stmt.b} & made for stmt in _products(kernel))
        made |= more


def _products(kernel: Kernel) -> list[Matmul]:
    return [stmt for stmt in statements(kernel.body) if isinstance(stmt, Matmul)]


_AXES = ("i", "j", "k", "l")
LAUNCH = 0
"""The line, of no statement, under which comments of the launch stand."""
_WIDTH = 110
"""How long a line with a comment beside it may be."""


@dataclass(frozen=True)
class Comments:
    """Line of a statement of the input -> the comments on lines above it, and those beside it."""

    above: Mapping[int, Sequence[str]]
    beside: Mapping[int, Sequence[str]]


def factory(kernel: Kernel, defaults: Mapping[str, int | float], comments: Comments, doc: str | None = None) -> str:
    """The text of ``@tilelang.jit`` factory and prim_func; it wants ``tilelang`` and ``tilelang.language as T``.

    ``defaults``: sizes and constants with a default.
    """
    return _Writer(kernel, comments).text(defaults, doc)


class _Writer:
    def __init__(self, kernel: Kernel, comments: Comments) -> None:
        self.kernel = kernel
        self.buffers = kernel.buffers
        self.above, self.beside = dict(comments.above), dict(comments.beside)
        taken = {*kernel.sizes, *kernel.scalars, *self.buffers, *kernel.launch.names}
        taken |= {stmt.name for stmt in kernel.body if isinstance(stmt, Let)}
        self.axes = tuple(name if name not in taken else f"{name}{name}" for name in _AXES)
        self.names = {f"@{number}": name for number, name in enumerate(self.axes)}
        self.tiles = {tile.name for tile in kernel.tiles}
        self.lines: list[str] = []
        self.chained = chained(kernel)

    def text(self, defaults: Mapping[str, int | float], doc: str | None) -> str:
        kernel = self.kernel
        sizes = [name for name in kernel.sizes if name not in defaults]
        sizes += [f"{name}={defaults[name]!r}" for name in kernel.sizes if name in defaults]
        self.put(0, "@tilelang.jit")
        self.put(0, f"def {kernel.name}({', '.join(sizes)}):")
        if doc:
            self.put(1, doc)
        self.put(1, "@T.prim_func")
        self.put(1, "def main(")
        for param in kernel.params:
            self.put(2, f'{param.name}: T.Tensor({_shape(param.shape)}, "{param.dtype}"),')
        for scalar in kernel.scalars:
            self.put(2, f"{scalar}: T.float32,")
        self.put(1, "):")
        grid = ", ".join(integer(extent) for extent in kernel.launch.grid)
        names = kernel.launch.names
        as_ = names[0] if len(names) == 1 else f"({', '.join(names)})"
        whole = {name: number for name, number in defaults.items() if isinstance(number, int)}
        for comment in self.above.pop(LAUNCH, ()):
            self.put(2, comment)
        self.put(2, f"with T.Kernel({grid}, threads={threads(kernel, whole)}) as {as_}:")
        for tile in kernel.tiles:
            alloc = "alloc_shared" if tile.scope == "shared" else "alloc_fragment"
            self.put(3, f'{tile.name} = T.{alloc}({_shape(tile.shape)}, "{tile.dtype}")')
        if kernel.tiles:
            self.lines.append("")
        self.body(kernel.body, 3)
        self.lines.append("")
        self.put(1, "return main")
        return "\n".join(self.lines) + "\n"

    def put(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def body(self, body: tuple[Stmt, ...], depth: int) -> None:
        if not body:
            self.put(depth, "pass")
        heads = {stmt.origin.line for stmt in body if isinstance(stmt, (For, If))}
        for stmt in body:
            for comment in self.above.pop(stmt.origin.line, ()):
                self.put(depth, comment)
            head = isinstance(stmt, (For, If)) or stmt.origin.line not in heads
            beside, start = self.beside.pop(stmt.origin.line, ()) if head else (), len(self.lines)
            self.stmt(stmt, depth)
            if beside:
                self.put_beside(beside, start)

    def put_beside(self, comments: Sequence[str], start: int) -> None:
        """Put comments beside the statement whose text begins at a line, or above a longer one: it may be rewritten."""
        head = self.lines[start]
        line = f"{head}  {comments[0]}"
        if len(comments) == 1 and len(line) <= _WIDTH and len(self.lines) == start + 1:
            self.lines[start] = line
        else:
            indent = head[: len(head) - len(head.lstrip())]
            self.lines[start:start] = [indent + comment for comment in comments]

    def stmt(self, stmt: Stmt, depth: int) -> None:
        match stmt:
            case Move():
                self.move(stmt, depth)
            case Map():
                self.map(stmt, depth)
            case Reduce():
                self.put(depth, f"T.reduce_{stmt.kind}({stmt.src}, {stmt.dst}, dim={stmt.axis})")
            case Matmul():
                if stmt.clear:
                    self.put(depth, f"T.clear({stmt.c})")
                flags = ", transpose_A=True" if stmt.transpose_a else ""
                flags += ", transpose_B=True" if stmt.transpose_b else ""
                flags += ", policy=T.GemmWarpPolicy.FullRow" if self.chained else ""
                self.put(depth, f"T.gemm({stmt.a}, {stmt.b}, {stmt.c}{flags})")
            case AtomicAdd():
                self.put(depth, f"T.atomic_add({self.region(stmt.dst, slices=False)}, {stmt.src})")
            case For(body=(If(then=(Move() as move,), orelse=()) as chosen,)) if self.by_elements(move):
                self.masked(stmt, chosen, move, depth)
            case For():
                loop = f"T.Pipelined({integer(stmt.count)}, num_stages={stmt.stages})"
                self.put(depth, f"for {stmt.var} in {loop if stmt.stages else f'T.serial({integer(stmt.count)})'}:")
                self.body(stmt.body, depth + 1)
            case If():
                self.put(depth, f"if {truth(stmt.condition, self.names)}:")
                self.body(stmt.then, depth + 1)
                if stmt.orelse:
                    self.put(depth, "else:")
                    self.body(stmt.orelse, depth + 1)
            case Let():
                self.put(depth, f"{stmt.name} = {self.expr(stmt.value)}")

    def move(self, stmt: Move, depth: int) -> None:
        sides = stmt.src, stmt.dst
        parts = not any(map(self.covers, sides))
        if parts and set(stmt.src.extent) == {None}:
            self.put(depth, f"{self.element(stmt.dst, ())} = {self.element(stmt.src, ())}")
            return
        slices = parts or len({len(self.buffers[side.buffer].shape) for side in sides}) > 1
        if stmt.src.buffer in self.tiles and not is_static(self.kernel, stmt.src):
            # the tensor's side says how much is stored: the compiler takes no such part of a tile
            pairs = zip(stmt.src.extent, self.buffers[stmt.src.buffer].shape, strict=True)
            sides = (replace(stmt.src, extent=tuple(n if n is None else size for n, size in pairs)), stmt.dst)
        src, dst = (self.region(side, slices) for side in sides)
        self.put(depth, f"T.copy({src}, {dst})")

    def by_elements(self, move: Move) -> bool:
        """True for a store along axes of its tensor, of which a loop has one."""
        return move.src.buffer in self.tiles and None in move.dst.extent

    def masked(self, loop: For, chosen: If, move: Move, depth: int) -> None:
        """A store of the rows of a tile for which a condition holds."""
        inner = [extent for extent in move.src.extent if extent is not None]
        axes = [axis for axis in self.axes[1:] if axis != loop.var][: len(inner)]
        counts = ", ".join(integer(extent) for extent in (loop.count, *inner))
        self.put(depth, f"for {', '.join((loop.var, *axes))} in T.Parallel({counts}):")
        self.put(depth + 1, f"if {truth(chosen.condition, self.names)}:")
        src, dst = (self.element(side, axes) for side in (move.src, move.dst))
        self.put(depth + 2, f"{dst} = {src}")

    def element(self, region: Region, axes: Sequence[str]) -> str:
        """The element of a region at a place, which has an index for each axis that is no point."""
        names = iter(axes)
        index = [
            integer(start) if extent is None else integer(start + var(next(names)))
            for start, extent in zip(region.start, region.extent, strict=True)
        ]
        return f"{region.buffer}[{', '.join(index)}]"

    def map(self, stmt: Map, depth: int) -> None:
        shape = self.buffers[stmt.dst].shape
        value = stmt.value
        if isinstance(value, Const):
            self.put(depth, f"T.fill({stmt.dst}, {number(value)[0]})")
            return
        if whole := self.copied(value, shape):
            self.put(depth, f"T.copy({whole}, {stmt.dst})")
            return
        axes = self.axes[: len(shape)]
        self.put(depth, f"for {', '.join(axes)} in T.Parallel({', '.join(integer(extent) for extent in shape)}):")
        self.put(depth + 1, f"{stmt.dst}[{', '.join(axes)}] = {self.expr(value)}")

    def copied(self, value: Expr, shape: tuple[Sym, ...]) -> str | None:
        """The tile that the value is element by element, converted or not."""
        if isinstance(value, Call) and value.op == "cast":
            value = value.args[0]
        if not isinstance(value, Load) or value.index != identity(len(shape)):
            return None
        return value.buffer if self.buffers[value.buffer].shape == shape else None

    def expr(self, value: Expr) -> str:
        return expression(value, self.names)

    def covers(self, region: Region) -> bool:
        """True for all of a buffer."""
        pairs = zip(region.extent, self.buffers[region.buffer].shape, strict=True)
        covered = all(extent == size or (extent is None and size.constant == 1) for extent, size in pairs)
        return covered and all(start.is_zero for start in region.start)

    def region(self, region: Region, slices: bool) -> str:
        """The text of a region; with ``slices`` it says how long it is, as no whole tile beside it does."""
        buffer = self.buffers[region.buffer]
        if self.covers(region):
            return region.buffer
        points = [extent is None for extent in region.extent]
        suffix = points == sorted(points, reverse=True) and not slices
        parts = []
        for start, extent, size in zip(region.start, region.extent, buffer.shape, strict=True):
            if extent is None or suffix:
                parts.append(integer(start))
            elif start.is_zero and extent == size:
                parts.append(":")
            else:
                parts.append(f"{integer(start)} : {integer(start + extent)}")
        return f"{region.buffer}[{', '.join(parts)}]"


def _shape(shape: tuple[Sym, ...]) -> str:
    inner = ", ".join(integer(extent) for extent in shape)
    return f"({inner},)" if len(shape) == 1 else f"({inner})"
