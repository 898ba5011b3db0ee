"""New on-chip tiles beside those that a kernel has."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Alloc, Buffer, Memory, Stmt, walk
from tl2npu.kernel.symbolic import Sym
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import Names, parse
from tl2npu.source.edits import Edits
from tl2npu.source.tree import argument as of_call


@dataclass
class Tiles:
    """Allocations that a pass adds; :meth:`commit` writes each behind the allocation that it was made after."""

    job: Job
    names: Names
    _behind: dict[int, tuple[cst.CSTNode, list[str]]] = field(default_factory=dict)

    def like(self, buffer: Buffer, *wishes: str, dtype: str | None = None) -> str:
        """The name of a new tile with the shape (and the element type) of an on-chip buffer."""
        name = self.names.fresh(*wishes)
        self.add(buffer, f"{name} = T.alloc_shared({shape_text(buffer)}, {dtype or dtype_text(buffer)})")
        return name

    def flat(self, buffer: Buffer, axes: int, *wishes: str, dtype: str | None = None) -> str:
        """The name of a new tile without the first ``axes`` axes of an on-chip buffer."""
        name = self.names.fresh(*wishes)
        extents = "".join(f"{extent_text(buffer, axis)}, " for axis in range(axes, len(buffer.shape)))
        self.add(buffer, f"{name} = T.alloc_shared(({extents.strip()}), {dtype or dtype_text(buffer)})")
        return name

    def add(self, buffer: Buffer, text: str) -> None:
        """Write a statement behind the allocation of a buffer."""
        assert buffer.statement is not None
        self._behind.setdefault(id(buffer.statement), (buffer.statement, []))[1].append(text)

    def commit(self, edits: Edits) -> None:
        """Put the allocations into the edits."""
        for node, texts in self._behind.values():
            assert isinstance(node, (cst.BaseSmallStatement, cst.BaseCompoundStatement))
            new = [statement for text in texts for statement in parse(self.job, text, node)]
            edits.replace_many(node, [node, *new])
        self._behind.clear()


def argument(buffer: Buffer, position: int, keyword: str) -> cst.BaseExpression | None:
    """An argument of the allocation."""
    assert isinstance(buffer.node, cst.Call)
    return of_call(buffer.node, keyword, position)


def shape_text(buffer: Buffer) -> str:
    """The shape as the allocation spells it."""
    found = argument(buffer, 0, "shape")
    assert found is not None
    return code(found)


def extent_text(buffer: Buffer, axis: int) -> str:
    """One extent, as it can stand beside the allocation."""
    found = argument(buffer, 0, "shape")
    if isinstance(found, (cst.Tuple, cst.List)):
        return code(found.elements[axis].value)
    assert found is not None
    return code(found) if found is buffer.shape_nodes[0] else f"{code(found)}[{axis}]"


def dtype_text(buffer: Buffer) -> str:
    """The element type as the allocation, or the annotation of a tensor, spells it."""
    if isinstance(buffer.node, cst.Call):
        position = 0 if buffer.memory is Memory.VAR else 1
        found = argument(buffer, position, "dtype")
        return code(found) if found is not None else '"float32"'
    return tensor_dtype(buffer.node)


def size_text(size: Sym) -> str | None:
    """A size as text, if it consists of numbers and of names that are the same in all of the factory."""
    text = str(size)
    return text if re.fullmatch(r"[\w\s+*()/-]+", text) else None


def tensor_dtype(param: cst.Param) -> str:
    """The element type in ``T.Tensor(shape, dtype)`` or ``T.Tensor[shape, dtype]``."""
    written = param.annotation.annotation if param.annotation else None
    if isinstance(written, cst.Subscript):
        last = written.slice[-1].slice
        return code(last.value) if isinstance(last, cst.Index) and len(written.slice) > 1 else '"float32"'
    assert isinstance(written, cst.Call)
    found = of_call(written, "dtype", 1)
    return code(found) if found is not None else '"float32"'


def allocate_above(job: Job, edits: Edits, stmt: Stmt, text: str, origin: cst.CSTNode) -> None:
    """Write allocations behind the last one above a statement, else first of all; ``origin``: what they are for."""
    new = parse(job, text, origin)
    last = last_allocation(job, stmt)
    if last is not None:
        edits.replace_many(last.node, [last.node, *new])
        return
    first = job.kernel.launched.node.body.body[0]
    edits.replace_many(first, [*new, first])


def last_allocation(job: Job, before: Stmt) -> Alloc | None:
    """The last allocation of the launch's own block above a statement; new tiles without a relative stand behind it."""
    found: Alloc | None = None
    for stmt in job.kernel.body:
        if any(inner is before for inner in walk([stmt])):
            break
        found = stmt if isinstance(stmt, Alloc) else found
    return found
