"""Copies a program while it changes buffers and expressions; the traced program itself is never changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tl2npu.simulator.ir.buffer import Buffer, Region
from tl2npu.simulator.ir.expr import Call, Expr, Load, Var
from tl2npu.simulator.ir.parts import rebuild
from tl2npu.simulator.ir.stmt import Alloc, For, If, Let, Op, Parallel, Scope, Stmt, Store, While


@dataclass(eq=False)
class Copier:
    """``buffers``: number -> replacement. ``values``: variable -> expression. Subclasses override single statements."""

    buffers: dict[int, Buffer] = field(default_factory=dict)
    values: Mapping[Var, Any] = field(default_factory=dict)

    def block(self, body: list[Stmt]) -> list[Stmt]:
        """A statement list; ``stmt`` may give several statements for one."""
        return [new for old in body for new in self.stmt(old)]

    def stmt(self, stmt: Stmt) -> list[Stmt]:
        """What replaces a statement."""
        rule = getattr(self, f"on_{type(stmt).__name__}", None)
        return rule(stmt) if rule else [self.copy(stmt)]

    def copy(self, stmt: Stmt) -> Stmt:
        """The statement with its parts replaced."""
        if isinstance(stmt, For):
            return replace(
                stmt, start=self.value(stmt.start), extent=self.value(stmt.extent), body=self.block(stmt.body)
            )
        if isinstance(stmt, Parallel):
            return replace(stmt, extents=tuple(self.value(e) for e in stmt.extents), body=self.block(stmt.body))
        if isinstance(stmt, While):
            return replace(stmt, condition=self.value(stmt.condition), body=self.block(stmt.body))
        if isinstance(stmt, If):
            then, orelse = self.block(stmt.then), self.block(stmt.orelse)
            return replace(stmt, condition=self.value(stmt.condition), then=then, orelse=orelse)
        if isinstance(stmt, Scope):
            return replace(stmt, body=self.block(stmt.body))
        if isinstance(stmt, Let):
            return replace(stmt, value=self.value(stmt.value))
        if isinstance(stmt, Store):
            indices = tuple(self.value(i) for i in stmt.indices)
            return replace(stmt, buffer=self.buffer(stmt.buffer), indices=indices, value=self.value(stmt.value))
        if isinstance(stmt, Alloc):
            return replace(stmt, buffer=self.buffer(stmt.buffer))
        if isinstance(stmt, Op):
            return replace(stmt, args={name: self.value(value) for name, value in stmt.args.items()})
        return replace(stmt)

    def buffer(self, buffer: Buffer) -> Buffer:
        """The replacement of a buffer; a view of a replaced buffer becomes a view of the replacement."""
        found = self.buffers.get(buffer.number)
        if found is None and buffer.alias is not None:
            inner = self.buffer(buffer.alias)
            if inner is not buffer.alias:
                found = self.buffers[buffer.number] = Buffer(
                    buffer.name, buffer.shape, buffer.dtype, inner.memory, alias=inner, line=buffer.line
                )
        return buffer if found is None else found

    def value(self, value: Any) -> Any:
        """An expression, a region, a tuple of them, or a constant."""
        if isinstance(value, tuple):
            return tuple(self.value(v) for v in value)
        if isinstance(value, Region):
            starts = tuple(self.value(s) for s in value.starts)
            extents = tuple(self.value(e) for e in value.extents)
            return Region(self.buffer(value.buffer), starts, extents, value.kept)
        return rebuild(value, self._part) if isinstance(value, Expr) else value

    def _part(self, part: Expr) -> Any:
        if isinstance(part, Var):
            return self.values.get(part, part)
        if isinstance(part, Load):
            return self.load(part)
        if isinstance(part, Call) and any(isinstance(a, Region) for a in part.args):
            return Call(part.name, tuple(self.value(a) if isinstance(a, Region) else a for a in part.args), part.dtype)
        return part

    def load(self, load: Load) -> Any:
        """One element read; its indices are replaced already."""
        return Load(self.buffer(load.buffer), load.indices)
