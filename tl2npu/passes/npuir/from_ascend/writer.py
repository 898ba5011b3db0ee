"""What the new statements are made of: names, values that need one, tiles as they are written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Let, Loop, Operand, Scalar, Stmt
from tl2npu.kernel.symbolic import Sym
from tl2npu.passes.job import Job
from tl2npu.passes.npuir.from_ascend.row_loops import Part, RowLoop
from tl2npu.passes.writing.statements import Names


@dataclass(eq=False)
class Writer:
    """Writes the statements of one kernel; ``rows``: the loop over rows that is being taken apart."""

    job: Job
    rows: RowLoop | None = None
    _names: Names | None = None
    _bound: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        kernel = self.job.kernel
        self._bound = set(kernel.scalars)
        for stmt in kernel.walk():
            if isinstance(stmt, Let):
                self._bound.add(stmt.name)
            elif isinstance(stmt, Loop):
                self._bound |= {item.name for item in stmt.ranges}

    def fresh(self, *wishes: str) -> str:
        """A name that is free in the kernel."""
        if self._names is None:
            self._names = Names(self.job)
        return self._names.fresh(*wishes)

    def tile(self, operand: Operand) -> str:
        """A tile as the new statement writes it."""
        if self.rows is not None and self.rows.parts[id(operand)] in Part:
            return operand.buffer.name
        return code(operand.node)

    def is_whole(self, operand: Operand) -> bool:
        """The new statement takes the whole tile."""
        return self.rows is not None or operand.is_whole

    def extents(self, operand: Operand) -> tuple[Sym, ...]:
        """The extents of what the new statement takes, one for each axis of the tile."""
        if self.rows is not None or operand.dims is None:
            return operand.buffer.shape
        one = Sym.of({(): 1})
        return tuple(one if dim.extent is None else dim.extent for dim in operand.dims)

    def given(self, stmt: Stmt, operand: Operand) -> str:
        """A tile; raises :class:`Blocked` for one of which only the first element is named."""
        start = self.rows is None and operand.is_indexed
        if start and any(size.constant != 1 for size in operand.buffer.shape):
            text = f"`{code(operand.node)}` gives the start of a region, but not its size"
            raise Blocked("TL430", stmt.node, text)
        return self.tile(operand)

    def number(self, before: list[str], value: Operand | Scalar, name: str, *, plain: bool) -> str:
        """A number beside tiles; ``plain``: a Python number can stand there, else it is bound to a name first."""
        text = code(value.node)
        if isinstance(value, Operand):
            return self.tile(value)
        if isinstance(value.node, cst.Name) and text in self._bound:
            return text
        if plain and not value.loads and not self.job.late.is_late(value.sym):
            return text
        name = self.fresh(name)
        before.append(f"{name} = {text}")
        return name

    def parallel(self, target: Operand, text: str, tiles: Mapping[str, Operand]) -> list[str]:
        """A loop over the elements of a whole tile; ``text`` has ``{dst}`` and the names of the tiles."""
        shape = target.buffer.shape_nodes
        variables = [self.fresh(*wishes) for wishes in (("i", "row"), ("j", "col"), ("k", "element"))[: len(shape)]]
        index = ", ".join(variables)
        places = {name: f"{operand.buffer.name}[{index}]" for name, operand in tiles.items()}
        extents = ", ".join(code(size) for size in shape)
        return [f"for {index} in T.Parallel({extents}):", f"    {text.format(**places)}"]
