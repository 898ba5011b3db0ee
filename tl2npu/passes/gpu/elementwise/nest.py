"""The nests of ``T.Parallel`` loops of a kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code, unparenthesised
from tl2npu.kernel.model import Kernel, Loop, Stmt, children
from tl2npu.kernel.symbolic import Sym


@dataclass(frozen=True, eq=False)
class Axis:
    """One loop variable, how often it runs, and how the source writes that; runs start at 0."""

    name: str
    var: str
    extent: Sym
    text: str


@dataclass(frozen=True, eq=False)
class Nest:
    """Loops directly inside each other; ``rows`` is None for a loop over one axis.

    ``is_all_of_a_loop``: it is the only statement of a serial loop.
    """

    loops: tuple[Loop, ...]
    rows: Axis | None
    columns: Axis
    body: list[Stmt]
    is_all_of_a_loop: bool = False

    @property
    def node(self) -> cst.For:
        """The outermost loop."""
        return cst.ensure_type(self.loops[0].node, cst.For)

    @property
    def names(self) -> tuple[str, ...]:
        """The loop variables."""
        return (self.rows.name, self.columns.name) if self.rows else (self.columns.name,)

    @property
    def extents(self) -> tuple[str, ...]:
        """The texts of the extents."""
        return (self.rows.text, self.columns.text) if self.rows else (self.columns.text,)

    @property
    def shape(self) -> tuple[Sym, ...]:
        """The extents."""
        return (self.rows.extent, self.columns.extent) if self.rows else (self.columns.extent,)


def nests(kernel: Kernel) -> Iterator[Nest]:
    """Every nest in text order; raises :class:`Blocked` for one with more than two axes."""
    yield from _nests(kernel.body, False)


def _nests(body: list[Stmt], in_loop: bool) -> Iterator[Nest]:
    for stmt in body:
        if isinstance(stmt, Loop) and stmt.kind == "parallel":
            yield _nest(stmt, in_loop and len(body) == 1)
            continue
        for inner in children(stmt):
            yield from _nests(inner, isinstance(stmt, Loop))


def _nest(loop: Loop, alone: bool) -> Nest:
    loops = [loop]
    while len(loops[-1].body) == 1:
        only = loops[-1].body[0]
        if not isinstance(only, Loop) or only.kind != "parallel":
            break
        loops.append(only)
    axes: list[Axis] = []
    for one in loops:
        for item in one.ranges:
            if not item.start.is_zero or item.stop_node is None:
                text = f"the loop over `{item.name}` does not start at 0"
                raise Blocked("TL153", one.node, text)
            text = unparenthesised(item.stop_node) if isinstance(item.stop_node, cst.Name) else code(item.stop_node)
            axes.append(Axis(item.name, str(item.var), item.extent, text))
    if len(axes) > 2 or not axes:
        raise Blocked("TL153", loop.node, f"T.Parallel over {len(axes)} axes")
    return Nest(tuple(loops), axes[0] if len(axes) == 2 else None, axes[-1], loops[-1].body, alone)
