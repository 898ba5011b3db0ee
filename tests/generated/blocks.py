"""Prints a program as a Triton kernel and a script that launches it."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from tests.generated import program as p
from tests.generated.printing import Text

_NAMED = {"float32": "tl.float32", "float16": "tl.float16", "int32": "tl.int32", "int8": "tl.int8"}


class Blocks(Text):
    """A script: the kernel, a function that launches it, and a call with tensors of the program's sizes."""

    def __init__(self, program: p.Program) -> None:
        super().__init__(program, "tl")
        self.launch = program.launches[0]
        self.tiles = {t.name: t for t in self.launch.tiles}
        self.tensors = {t.name: t for t in program.tensors}
        self.vars: tuple[str, ...] = ()
        self.moving = ""
        self.before: list[str] = []
        self.behind: list[str] = []
        self.sizes_of: dict[str, p.Expr] = {}

    def pointer(self, name: str) -> str:
        return f"{name}_ptr" if self.program.spelled("suffix") else name

    def text(self) -> str:
        """The file."""
        constants = [n for n, _ in self.program.sizes if n.startswith("B")]
        extents = [n for n, _ in self.program.sizes if not n.startswith("B")]
        strides = (
            [(t.name, axis) for t in self.program.tensors for axis in range(len(t.shape))]
            if self.program.spelled("strides")
            else []
        )
        names = [t.name for t in self.program.tensors]
        parameters = [
            *map(self.pointer, names),
            *extents,
            *(f"{n}_s{a}" for n, a in strides),
            *(f"{c}: tl.constexpr" for c in constants),
        ]
        given = [
            *names,
            *extents,
            *(f"{n}.stride({a})" for n, a in strides),
            *(f"{c}={v}" for c, v in self.program.sizes if c in constants),
        ]
        grid = ", ".join(
            f"triton.cdiv({self.plain(e.left)}, {self.literal_of(e.right)})"
            for _, e in self.launch.blocks
            if isinstance(e, p.Bin)
        )
        body = [f"{name} = tl.program_id({axis})" for axis, (name, _) in enumerate(self.launch.blocks)]
        body += self.block(self.launch.body)
        shapes = {t.name: tuple(map(self.plain, t.shape)) for t in self.program.tensors}
        known: list[str] = []
        for name, shape in shapes.items():
            if set(shape) - {word for line in known for word in line.split(" = ")[0].split(", ")}:
                known.append(f"{', '.join(shape)}{',' if len(shape) == 1 else ''} = {name}.shape".replace(", =", ", ="))
        rest = [
            f"{n} = {v}"
            for n, v in self.program.sizes
            if n in extents and not any(n in shape for shape in shapes.values())
        ]
        made = map(self._made, self.program.tensors)
        lines = ["import torch", "import triton", "import triton.language as tl", "", "", "@triton.jit"]
        lines += [f"def kern({', '.join(parameters)}):", *textwrap.indent("\n".join(body), " " * 4).split("\n"), "", ""]
        lines += [f"def run({', '.join(names)}):", *("    " + line for line in known + rest)]
        lines += [
            f"    kern[({grid}{',' if len(self.launch.blocks) == 1 else ''})]({', '.join(given)})",
            "",
            "",
            'if __name__ == "__main__":',
        ]
        return "\n".join([*lines, *("    " + line for line in made), f"    run({', '.join(names)})", ""])

    def _made(self, tensor: p.Buffer) -> str:
        """A tensor of the script's own call."""
        values = dict(self.program.sizes)
        shape = ", ".join(str(values[extent.name]) for extent in tensor.shape if isinstance(extent, p.Name))
        maker = "zeros" if tensor.kind == "out" or "int" in tensor.dtype else "randn"
        return f'{tensor.name} = torch.{maker}(({shape},), dtype=torch.{tensor.dtype}, device="cuda")'

    def literal_of(self, e: p.Expr) -> str:
        assert isinstance(e, p.Name)
        return str(dict(self.program.sizes)[e.name])

    # statements

    def block(self, body: Sequence[p.Stmt]) -> list[str]:
        return [line for s in body for line in self.statement(s)] or ["pass"]

    def statement(self, s: p.Stmt) -> list[str]:
        """One statement."""
        if isinstance(s, p.For):
            self.moving, self.before, self.behind = s.var, [], []
            inner = self.block(s.body) + self.behind
            self.moving = ""
            return [*self.before, f"for {s.var} in range({self.plain(s.extent)}):", *("    " + line for line in inner)]
        if isinstance(s, p.If):
            return [f"if {self.plain(s.condition)}:", *("    " + line for line in self.block(s.then))]
        if isinstance(s, p.Copy):
            return self.copy(s)
        if isinstance(s, p.Fill):
            tile = self.tiles[s.target.buffer]
            return [f"{tile.name} = tl.full({self.shape(tile.shape)}, {float(s.value)}, dtype={_NAMED[tile.dtype]})"]
        if isinstance(s, p.Reduce):
            return [f"{s.target} = tl.{s.kind}({s.source}, axis={s.axis})"]
        if isinstance(s, p.Gemm):
            right = f"tl.trans({s.b})" if s.transpose_b else s.b
            return [f"{s.c} += tl.dot({s.a}, {right})"]
        assert isinstance(s, p.Parallel), s
        (assign,) = s.body
        assert isinstance(assign, p.Assign)
        self.vars, self.sizes_of = s.vars, dict(zip(s.vars, s.extents, strict=True))
        value = self.plain(assign.value)
        target = self.tiles[assign.target.buffer]
        self.vars = ()
        if assign.op:
            return [f"{target.name} = {target.name} {assign.op} ({value})"]
        number = not any(isinstance(n, p.Ref) for n in p.nodes(assign.value))
        text = (
            f"({value}).to({_NAMED[target.dtype]})"
            if not number
            else f"tl.full({self.shape(target.shape)}, {value}, {_NAMED[target.dtype]})"
        )
        return [f"{target.name} = {text}"]

    def copy(self, s: p.Copy) -> list[str]:
        """A load or a store, masked where a tile may reach behind the end."""
        if self.program.spelled("pointers") == "block":
            return self.block_pointer(s)
        loads = s.source.buffer in self.tensors
        region, tile = (s.source, self.tiles[s.target.buffer]) if loads else (s.target, self.tiles[s.source.buffer])
        tensor = self.tensors[region.buffer]
        values = dict(self.program.sizes)
        lines, terms, masks = [], [], []
        for axis, (start, length) in enumerate(zip(region.starts, tile.shape, strict=True)):
            assert isinstance(length, p.Name)
            extent = tensor.shape[axis]
            assert isinstance(extent, p.Name)
            name = f"{'abc'[axis]}_{tile.name}"
            at = f"tl.arange(0, {length.name})"
            lines.append(f"{name} = {at}" if start == p.Const(0) else f"{name} = {self.plain(start)} + {at}")
            spread = name if len(tile.shape) == 1 else f"{name}[:, None]" if axis == 0 else f"{name}[None, :]"
            if self.program.spelled("strides"):
                terms.append(f"{spread} * {tensor.name}_s{axis}")
            else:
                after = tensor.shape[axis + 1 :]
                terms.append(spread + "".join(f" * {self.plain(e)}" for e in after))
            shifted = (isinstance(start, p.Bin) and start.op == "+") or (isinstance(start, p.Const) and start.value)
            if values[extent.name] % values[length.name] or shifted or self.program.spelled("masked"):
                masks.append(f"{spread} < {extent.name}")
        mask = " & ".join(f"({m})" for m in masks) if len(masks) > 1 else "".join(masks)
        place = " + ".join([self.pointer(tensor.name), *terms])
        if self.moving and self.program.spelled("pointers") == "advance":
            axis = next((n for n, start in enumerate(region.starts) if self.moving in p.names(start)), None)
            if axis is not None:
                return self.advancing(tensor, tile, axis, lines, place, mask)
        if loads:
            load = f"tl.load({place}, mask={mask}, other=0)" if mask else f"tl.load({place})"
            convert = f".to({_NAMED[tile.dtype]})" if tile.dtype != tensor.dtype else ""
            return [*lines, f"{tile.name} = {load}{convert}"]
        return [*lines, f"tl.store({place}, {tile.name}{f', mask={mask}' if mask else ''})"]

    def advancing(
        self, tensor: p.Buffer, tile: p.Buffer, axis: int, lines: list[str], place: str, mask: str
    ) -> list[str]:
        """A load through pointers that go on at the end of each turn."""
        name = f"{'abc'[axis]}_{tile.name}"
        first = [line.replace(f"{self.moving} * BK + ", "") if line.startswith(name + " =") else line for line in lines]
        after = " * ".join(["BK", *map(self.plain, tensor.shape[axis + 1 :])])
        step = f"BK * {tensor.name}_s{axis}" if self.program.spelled("strides") else after
        self.before += [*first, f"p_{tile.name} = {place}"]
        self.behind.append(f"p_{tile.name} += {step}")
        extent = self.plain(tensor.shape[axis])
        mask = mask.replace(f"< {extent}", f"< {extent} - {self.moving} * BK") if f"{name}[" in mask else mask
        load = f"tl.load(p_{tile.name}, mask={mask}, other=0)" if mask else f"tl.load(p_{tile.name})"
        return [f"{tile.name} = {load}" + (f".to({_NAMED[tile.dtype]})" if tile.dtype != tensor.dtype else "")]

    def block_pointer(self, s: p.Copy) -> list[str]:
        """A load or a store through a block pointer."""
        loads = s.source.buffer in self.tensors
        region, tile = (s.source, self.tiles[s.target.buffer]) if loads else (s.target, self.tiles[s.source.buffer])
        tensor = self.tensors[region.buffer]
        strides = [" * ".join(map(self.plain, tensor.shape[axis + 1 :])) or "1" for axis in range(len(tensor.shape))]
        if self.program.spelled("strides"):
            strides = [f"{tensor.name}_s{axis}" for axis in range(len(tensor.shape))]
        comma = "," if len(tensor.shape) == 1 else ""
        parts = {
            "shape": map(self.plain, tensor.shape), "strides": strides, "offsets": map(self.plain, region.starts),
            "block_shape": map(self.plain, tile.shape), "order": map(str, range(len(tensor.shape) - 1, -1, -1)),
        }  # fmt: skip
        given = ", ".join(f"{name}=({', '.join(values)}{comma})" for name, values in parts.items())
        place = f"tl.make_block_ptr(base={self.pointer(tensor.name)}, {given})"
        axes = f"boundary_check=({', '.join(map(str, range(len(tensor.shape))))}{comma})"
        if loads:
            convert = f".to({_NAMED[tile.dtype]})" if tile.dtype != tensor.dtype else ""
            return [f'{tile.name} = tl.load({place}, {axes}, padding_option="zero"){convert}']
        cast = f"{tile.name}.to({_NAMED[tensor.dtype]})" if tile.dtype != tensor.dtype else tile.name
        return [f"tl.store({place}, {cast}, {axes})"]

    # expressions

    def expr(self, e: p.Expr) -> str:
        """An expression of blocks: rows and columns are spread over the block."""
        if isinstance(e, p.Name) and e.name in self.vars:
            at = f"tl.arange(0, {self.plain(self.sizes_of[e.name])})"
            return at if len(self.vars) == 1 else f"{at}[:, None]" if e.name == self.vars[0] else f"{at}[None, :]"
        if isinstance(e, p.Const) and e.value == -float("inf"):
            return '(-float("inf"))'
        if isinstance(e, p.Ref):
            used = tuple(i.name if isinstance(i, p.Name) else "" for i in e.index)
            if used == self.vars:
                return e.buffer
            if used == self.vars[::-1]:
                return f"tl.trans({e.buffer})"
            return f"{e.buffer}[:, None]" if used == self.vars[:1] else f"{e.buffer}[None, :]"
        if isinstance(e, p.Select):
            return f"tl.where({', '.join(map(self.plain, (e.condition, e.yes, e.no)))})"
        if isinstance(e, p.Cast):
            inner = self.expr(e.operand)
            return f"{inner if inner.startswith('(') else f'({inner})'}.to({_NAMED[e.dtype]})"
        if isinstance(e, p.Bin) and e.op in ("min", "max"):
            return f"tl.{e.op}imum({self.plain(e.left)}, {self.plain(e.right)})"
        if isinstance(e, p.Bin) and e.op == "ceildiv":
            return f"tl.cdiv({self.plain(e.left)}, {self.plain(e.right)})"
        if isinstance(e, p.Bin) and e.op in ("and", "or"):
            return f"({self.expr(e.left)} {'&' if e.op == 'and' else '|'} {self.expr(e.right)})"
        return super().expr(e)
