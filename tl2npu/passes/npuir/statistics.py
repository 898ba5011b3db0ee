"""TL407, TL408: results of reductions keep the axis that was reduced, with extent 1.

The reductions of AscendNPU IR ask for a result with as many axes as what is reduced, and vector code spreads ``[M, 1]``
over ``[M, N]`` by itself. A vector that gets the axis takes along those that it is copied to and those that are worked
out of it element by element; either all of them can, or the kernel stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import accesses
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import (
    Alloc,
    Buffer,
    Copy,
    Dim,
    Kernel,
    Loop,
    Op,
    Opaque,
    Operand,
    Scalar,
    Stmt,
    Store,
    walk_with_parents,
)
from tl2npu.passes.job import Job
from tl2npu.passes.npuir.statistics_copies import copy_edits
from tl2npu.passes.writing.tiles import argument
from tl2npu.source.edits import Edits
from tl2npu.source.tree import names_in

_CODE = "TL408"
_REDUCTIONS = frozenset({"reduce", "reduce_max", "reduce_min", "reduce_sum", "reduce_absmax", "reduce_abssum"})


def keep_axis(job: Job) -> None:
    """Give results of reductions their axis back, and everything that is computed with them element by element."""
    axes = _closure(job.kernel)
    if not axes:
        return
    edits = Edits(job.file.index)
    known: dict[Buffer, set[int]] = {buffer: set() for buffer in axes}
    done: set[int] = set()
    for stmt in job.kernel.walk():
        if isinstance(stmt, Alloc):
            if stmt.buffer in axes:
                _shape(job, edits, stmt.buffer, axes[stmt.buffer])
            continue
        touched = [access.operand for access in accesses(stmt) if access.operand.buffer in axes]
        if not touched:
            continue
        if stmt.via or isinstance(stmt, Opaque):
            raise Blocked(
                _CODE,
                stmt.node,
                f"`{touched[0].buffer.name}` needs the reduced axis, but this use of it cannot be changed",
            )
        if isinstance(stmt, Copy):
            copy_edits(job, edits, stmt, axes)
        elif isinstance(stmt, Op):
            _check_op(stmt, axes)
        for operand in touched:
            known[operand.buffer].add(id(operand.node))
            whole_copy = isinstance(stmt, Copy) and operand.dims is None
            if operand.dims is not None and id(operand.node) not in done and not whole_copy:
                done.add(id(operand.node))
                _index(edits, operand, axes)
    for buffer, nodes in known.items():
        _check_names(job, buffer, nodes)
    job.apply(edits)


# which buffers ------------------------------------------------------------------------------------------------------


def _closure(kernel: Kernel) -> dict[Buffer, int]:
    """The buffers that get an axis, and which one."""
    axes: dict[Buffer, int] = {}
    for stmt in kernel.walk():
        if isinstance(stmt, Op) and stmt.op.name in _REDUCTIONS:
            _result(stmt, axes)
    changed = bool(axes)
    while changed:
        before = len(axes)
        for stmt, parents in walk_with_parents(kernel.body):
            if isinstance(stmt, Copy):
                _both_sides(stmt, axes)
            elif isinstance(stmt, Store):
                _target(stmt, parents, axes)
        changed = len(axes) > before
    return axes


def _result(stmt: Op, axes: dict[Buffer, int]) -> None:
    src, out, dim = stmt.args.get("buffer"), stmt.args.get("out"), stmt.args.get("dim")
    if not isinstance(src, Operand) or not isinstance(out, Operand):
        raise Blocked("TL415", stmt.node, f"cannot tell which buffer `T.{stmt.op.name}` reduces")
    rank = len(src.buffer.shape)
    if len(out.buffer.shape) == rank:
        return
    axis = -1 if dim is None else dim.sym.constant if isinstance(dim, Scalar) else None
    if axis is None or not -rank <= axis < rank or len(out.buffer.shape) != rank - 1:
        raise Blocked("TL415", stmt.node, "the axis of a reduction must be a constant within the rank of the tile")
    if not out.is_whole:
        text = f"`{out.buffer.name}` needs the reduced axis, but the reduction writes a part of it"
        raise Blocked(_CODE, stmt.node, text)
    _take(stmt, out.buffer, axis % rank, axes)


def _take(stmt: Stmt, buffer: Buffer, axis: int, axes: dict[Buffer, int]) -> None:
    if not buffer.is_tile or buffer.statement is None:
        raise Blocked(
            _CODE, stmt.node, f"`{buffer.name}` is not a tile of the kernel, so it cannot get the reduced axis"
        )
    if axes.setdefault(buffer, axis) != axis:
        text = f"`{buffer.name}` holds row values here and column values elsewhere"
        raise Blocked(_CODE, stmt.node, text)


def _both_sides(stmt: Copy, axes: dict[Buffer, int]) -> None:
    pair = stmt.src, stmt.dst
    for one, other in (pair, pair[::-1]):
        local = other.buffer.is_tile
        alike = len(other.buffer.shape) == len(one.buffer.shape)
        if one.buffer in axes and local and alike and other.is_whole and one.is_whole:
            _take(stmt, other.buffer, axes[one.buffer], axes)


def _target(stmt: Store, parents: tuple[Stmt, ...], axes: dict[Buffer, int]) -> None:
    """A vector that is worked out of one with the axis, element by element: ``t[i] = f(x[i])``."""
    variables = {
        item.name for loop in parents if isinstance(loop, Loop) and loop.kind == "parallel" for item in loop.ranges
    }
    target = stmt.target
    if not target.buffer.is_tile:
        return
    for load in stmt.value.loads:
        if load.buffer not in axes or len(load.buffer.shape) != len(target.buffer.shape):
            continue
        if load.buffer is not target.buffer and _indices(load) & _indices(target) & variables:
            _take(stmt, target.buffer, axes[load.buffer], axes)


def _indices(operand: Operand) -> set[str]:
    return {name.value for dim in operand.dims or () for name in names_in(dim.node)}


# what becomes of their text ------------------------------------------------------------------------------------------


def _shape(job: Job, edits: Edits, buffer: Buffer, axis: int) -> None:
    shape = argument(buffer, 0, "shape")
    assert shape is not None
    if isinstance(shape, (cst.Tuple, cst.List)):
        texts = [code(element.value) for element in shape.elements]
    elif len(buffer.shape) == 1 and not isinstance(shape, cst.Name):
        texts = [code(shape)]
    elif len(buffer.shape_nodes) == len(buffer.shape):
        texts = [code(node) for node in buffer.shape_nodes]
    else:
        raise Blocked(_CODE, buffer.node, f"cannot read the shape of `{buffer.name}`")
    texts.insert(axis, "1")
    inner = ", ".join(texts)
    edits.replace(shape, cst.parse_expression(f"[{inner}]" if isinstance(shape, cst.List) else f"({inner})"))
    job.change("TL407", buffer.node, f"`{buffer.name}` keeps the reduced axis: ({inner})")


def _index(edits: Edits, operand: Operand, axes: dict[Buffer, int]) -> None:
    node, axis = operand.node, axes[operand.buffer]
    assert operand.dims is not None
    if not isinstance(node, cst.Subscript) or len(operand.dims) != len(operand.buffer.shape):
        raise Blocked(_CODE, node, f"cannot add an index to `{code(node)}`")
    if any(load.buffer in axes for load in operand.loads):
        raise Blocked(_CODE, node, f"an index of `{code(node)}` comes from a vector along the reduced axis")
    edits.replace(node, with_index(node, operand.dims, axis, "0"))


def with_index(node: cst.Subscript, dims: tuple[Dim, ...], axis: int, index: str) -> cst.BaseExpression:
    """The subscript with one index more."""
    texts = [code(dim.node) for dim in dims]
    texts.insert(axis, index)
    return cst.parse_expression(f"{code(node.value)}[{', '.join(texts)}]")


def _check_op(stmt: Op, axes: dict[Buffer, int]) -> None:
    """Raise :class:`Blocked` for an operator to which the axis would mean something else."""
    for name, operand in stmt.operands:
        if operand.buffer not in axes:
            continue
        fine = stmt.op.kind is Kind.FILL or (stmt.op.kind is Kind.REDUCE and name == "out")
        fine |= stmt.op.kind is Kind.ATOMIC and operand.dims is None  # the tile takes the shape of the slices
        if not fine:
            text = f"`{operand.buffer.name}` needs the reduced axis, which `T.{stmt.op.name}` does not support"
            raise Blocked(_CODE, stmt.node, text)


def _check_names(job: Job, buffer: Buffer, nodes: set[int]) -> None:
    """Every mention of a buffer must be one that is understood."""
    index = job.file.index
    for name in names_in(job.located.node.body):
        if name.value != buffer.name or name in _mentions(index.ancestors(name), name, nodes):
            continue
        parent = index.parent(name)
        if isinstance(parent, cst.AssignTarget) or (isinstance(parent, cst.Attribute) and parent.attr.value == "dtype"):
            continue
        raise Blocked(_CODE, name, f"`{buffer.name}` needs the reduced axis, but this use of it is not supported")


def _mentions(above: Iterator[cst.CSTNode], name: cst.Name, nodes: set[int]) -> Iterator[cst.CSTNode]:
    """The name itself, if it or something around it is a use that is known."""
    if id(name) in nodes or any(id(node) in nodes for node in above):
        yield name
