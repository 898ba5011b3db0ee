"""Programs as Python texts: expressions, and GPU kernels of TileLang."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from tests.generated import program as p


def renamed(node: Any, new: Mapping[str, str]) -> Any:
    """A node with other names of values and buffers."""
    if isinstance(node, p.Name):
        return p.Name(new.get(node.name, node.name))
    if isinstance(node, tuple):
        return tuple(renamed(part, new) for part in node)
    if not is_dataclass(node) or isinstance(node, type):
        return node
    changed = {f.name: renamed(getattr(node, f.name), new) for f in fields(node)}
    for name in ("buffer", "a", "b", "c") + (("source", "target") if isinstance(node, p.Reduce) else ()):
        if isinstance(changed.get(name), str):
            changed[name] = new.get(changed[name], changed[name])
    return replace(node, **changed)


class Text:
    """Expressions; ``lib``: what the language is called in the file, ``literal``: sizes as numbers."""

    def __init__(self, program: p.Program, lib: str = "T", literal: Sequence[str] = ()) -> None:
        self.program, self.lib = program, lib
        self.literal = {name: value for name, value in program.sizes if name in literal}

    def expr(self, e: p.Expr) -> str:
        """An expression, with brackets around every operator."""
        if isinstance(e, p.Const):
            return f"({e.value})" if e.value < 0 else str(e.value)
        if isinstance(e, p.Name):
            return str(self.literal.get(e.name, e.name))
        if isinstance(e, p.Ref):
            return f"{e.buffer}[{', '.join(map(self.plain, e.index))}]"
        if isinstance(e, p.Un):
            return self.unary(e)
        if isinstance(e, p.Cast):
            return f"{self.lib}.cast({self.plain(e.operand)}, {e.dtype!r})"
        if isinstance(e, p.Select):
            arms = ", ".join(map(self.plain, (e.condition, e.yes, e.no)))
            return f"{self.lib}.if_then_else({arms})"
        if e.op in ("min", "max"):
            return f"{self.lib}.{e.op}({self.plain(e.left)}, {self.plain(e.right)})"
        if e.op == "ceildiv":
            return f"{self.lib}.ceildiv({self.plain(e.left)}, {self.plain(e.right)})"
        return f"({self.expr(e.left)} {e.op} {self.expr(e.right)})"

    def unary(self, e: p.Un) -> str:
        """A function of one number."""
        if e.op == "neg":
            return f"(-{self.expr(e.operand)})"
        if e.op == "not":
            return f"(not {self.expr(e.operand)})"
        return f"{self.lib}.{e.op}({self.plain(e.operand)})"

    def plain(self, e: p.Expr) -> str:
        """An expression where no brackets are needed around it."""
        text = self.expr(e)
        return text[1:-1] if isinstance(e, p.Bin) and text.startswith("(") else text

    def shape(self, extents: Sequence[p.Expr]) -> str:
        """A tuple of extents."""
        inner = ", ".join(map(self.plain, extents))
        return f"({inner},)" if len(extents) == 1 else f"({inner})"


class Gpu(Text):
    """A GPU kernel."""

    def __init__(self, program: p.Program) -> None:
        super().__init__(program, "T", program.spelled("literal", ()))
        self.shapes = {b.name: b.shape for launch in program.launches for b in launch.tiles}
        self.tensors = {b.name for b in program.tensors}
        self.macros: list[str] = []

    def text(self) -> str:
        """The file."""
        body = [line for launch in self.program.launches for line in self.launch(launch)]
        symbolic = self.program.spelled("symbolic", ())
        arguments = [f"{n}={v}" for n, v in self.program.sizes if n not in self.literal and n not in symbolic]
        outs = [n for n, t in enumerate(self.program.tensors) if t.kind == "out"]
        made = self.program.spelled("out_idx", True)
        lines = ["import tilelang", "import tilelang.language as T", "", ""]
        lines += [f"@tilelang.jit(out_idx={outs})" if made else "@tilelang.jit", f"def kern({', '.join(arguments)}):"]
        lines += [f"    {name} = T.dynamic({name!r})" for name in symbolic]
        lines += [line for macro in self.macros for line in [*textwrap.indent(macro, " " * 4).split("\n"), ""]]
        lines += ["    @T.prim_func", "    def main("]
        lines += [f"        {t.name}: T.Tensor({self.shape(t.shape)}, {t.dtype!r})," for t in self.program.tensors]
        return "\n".join(
            [*lines, "    ):", *textwrap.indent("\n".join(body), " " * 8).split("\n"), "", "    return main", ""]
        )

    def launch(self, launch: p.Launch) -> list[str]:
        """One ``with T.Kernel``."""
        extents = ", ".join(self.plain(e) for _, e in launch.blocks)
        names = ", ".join(n for n, _ in launch.blocks)
        threads = self.program.spelled("threads", 128)
        head = f"with T.Kernel({extents}, threads={threads}) as {names if len(launch.blocks) == 1 else f'({names})'}:"
        allocs = [f"{b.name} = T.alloc_{b.kind}({self.shape(b.shape)}, {b.dtype!r})" for b in launch.tiles]
        return [head, *("    " + line for line in [*allocs, *self.block(launch.body)])]

    def block(self, body: Sequence[p.Stmt]) -> list[str]:
        """Statements."""
        return [line for s in body for line in self.statement(s)] or ["pass"]

    def nested(self, head: str, body: Sequence[p.Stmt]) -> list[str]:
        """A compound statement."""
        return [head, *("    " + line for line in self.block(body))]

    def statement(self, s: p.Stmt) -> list[str]:
        """One statement."""
        printers: dict[type, Callable[[Any], list[str]]] = {
            p.Copy: self.copy,
            p.Fill: self.fill,
            p.Reduce: self.reduce,
            p.Gemm: self.gemm,
            p.Assign: lambda s: [f"{self.expr(s.target)} {s.op}= {self.plain(s.value)}"],
            p.Let: lambda s: [f"{s.name} = {self.plain(s.value)}"],
            p.If: self.branch,
            p.For: self.loop,
            p.Parallel: self.parallel,
            p.Macro: self.macro,
        }
        return printers[type(s)](s)

    def branch(self, s: p.If) -> list[str]:
        """An ``if``."""
        lines = self.nested(f"if {self.plain(s.condition)}:", s.then)
        return lines + (self.nested("else:", s.orelse) if s.orelse else [])

    def loop(self, s: p.For) -> list[str]:
        """A loop."""
        extent = self.plain(s.extent)
        head = {
            "range": f"range({extent})",
            "Pipelined": f"T.Pipelined({extent}, num_stages={self.program.spelled('stages', 2)})",
        }
        return self.nested(f"for {s.var} in {head.get(s.kind, f'T.{s.kind}({extent})')}:", s.body)

    def parallel(self, s: p.Parallel) -> list[str]:
        """Elements."""
        extents = ", ".join(map(self.plain, s.extents))
        return self.nested(f"for {', '.join(s.vars)} in T.Parallel({extents}):", s.body)

    def region(self, r: p.Region) -> str:
        """An argument of a copy: a whole tile by its name, a tensor by where it begins or by slices."""
        if r.buffer in self.shapes and r.lengths == self.shapes[r.buffer]:
            return r.buffer
        if r.buffer in self.tensors and not self.program.spelled("slices"):
            return f"{r.buffer}[{', '.join(map(self.plain, r.starts))}]"
        whole = self.shapes.get(r.buffer, (None,) * len(r.starts))
        return f"{r.buffer}[{', '.join(map(self._slice, r.starts, r.lengths, whole))}]"

    def _slice(self, start: p.Expr, length: p.Expr | None, whole: p.Expr | None) -> str:
        if length is None:
            return self.plain(start)
        if length == whole:
            return ":"
        if start == p.Const(0):
            return f"0:{self.plain(length)}"
        return f"{self.plain(start)}:{self.plain(start)} + {self.plain(length)}"

    def copy(self, s: p.Copy) -> list[str]:
        return [f"T.copy({self.region(s.source)}, {self.region(s.target)})"]

    def fill(self, s: p.Fill) -> list[str]:
        if s.value == 0 and self.program.spelled("clear"):
            return [f"T.clear({self.region(s.target)})"]
        return [f"T.fill({self.region(s.target)}, {s.value})"]

    def reduce(self, s: p.Reduce) -> list[str]:
        clear = "" if s.clear else ", clear=False"
        return [f"T.reduce_{s.kind}({s.source}, {s.target}, dim={s.axis}{clear})"]

    def gemm(self, s: p.Gemm) -> list[str]:
        flags = [
            f"{name}=True"
            for name, on in (("transpose_A", s.transpose_a), ("transpose_B", s.transpose_b), ("clear_accum", s.clear))
            if on
        ]
        return [f"T.gemm({', '.join([s.a, s.b, s.c, *flags])})"]

    def macro(self, s: p.Macro) -> list[str]:
        """The call; the macro itself goes in front of the kernel."""
        given = sorted(p.names(s.body) - p.bound(s.body) - {name for name, _ in self.program.sizes})
        shapes = dict(self.shapes)
        new = {name: f"{name}_" for name in given}
        self.shapes |= {new[name]: shape for name, shape in shapes.items() if name in new}
        self.tensors |= {new[name] for name in given if name in self.tensors}
        body = self.nested(f"def {s.name}({', '.join(new[name] for name in given)}):", renamed(s.body, new))
        self.macros.append("\n".join(["@T.macro", *body]))
        return [f"{s.name}({', '.join(given)})"]
