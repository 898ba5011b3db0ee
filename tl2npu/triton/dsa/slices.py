"""Index tensors of ``local_ptr`` as slices: a start and a number of consecutive elements along each axis."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from tl2npu.triton.dsa.function import Function

_DEPTH = 12


@dataclass(frozen=True)
class Slice:
    """``start`` and ``size`` as text; ``axis`` of ``rank`` axes of the index tensor along which it runs."""

    start: str
    size: str
    axis: int
    rank: int


def slices(function: Function, call: ast.Call) -> tuple[Slice, ...] | None:
    """The slices that a call of ``local_ptr`` names; None for the whole buffer."""
    given = function.argument(call, 1, "indices", "offsets")
    if given is None or (isinstance(given, ast.Constant) and given.value is None):
        return None
    parts = given.elts if isinstance(given, (ast.Tuple, ast.List)) else [given]
    found = [_slice(function, part, 0) for part in parts]
    wanted = [(place, len(parts)) for place in range(len(parts))]
    if any(item is None for item in found) or [(item.axis, item.rank) for item in found if item] != wanted:
        raise function.refuse(call, f"`{ast.unparse(given)}` is no slice of the buffer, and `tle.dsa` has no pointers")
    known = tuple(item for item in found if item is not None)
    return None if _covers(function, call, known) else known


def _covers(function: Function, call: ast.Call, parts: tuple[Slice, ...]) -> bool:
    """True if slices are all of a buffer that the function allocates."""
    buffer = function.argument(call, 0, "buffer")
    stmt = function.allocations.get(buffer.id) if isinstance(buffer, ast.Name) else None
    shape = function.argument(stmt.value, 0, "shape") if stmt is not None and isinstance(stmt.value, ast.Call) else None
    if not isinstance(shape, (ast.List, ast.Tuple)):
        return False
    return [("0", ast.unparse(extent)) for extent in shape.elts] == [(part.start, part.size) for part in parts]


def _slice(function: Function, node: ast.expr, depth: int) -> Slice | None:
    if depth > _DEPTH:
        return None
    if isinstance(node, ast.Name) and function.once(node.id) and node.id in function.assigned:
        return _slice(function, function.assigned[node.id].value, depth + 1)
    if isinstance(node, ast.Call):
        if function.language(node) == "arange" and len(node.args) == 2 and ast.unparse(node.args[0]) == "0":
            return Slice("0", ast.unparse(node.args[1]), 0, 1)
        if function.language(node) == "broadcast_to" and node.args:
            return _slice(function, node.args[0], depth + 1)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "to":
            return _slice(function, node.func.value, depth + 1)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
        inner = _slice(function, node.value, depth + 1)
        kept = [place for place, part in enumerate(node.slice.elts) if isinstance(part, ast.Slice)]
        if inner is not None and inner.rank == 1 and len(kept) == 1:
            return Slice(inner.start, inner.size, kept[0], len(node.slice.elts))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        for one, other in ((node.left, node.right), (node.right, node.left)):
            inner = _slice(function, one, depth + 1)
            if inner is not None and _scalar(function, other, depth + 1):
                start = ast.unparse(other) if inner.start == "0" else f"{inner.start} + {ast.unparse(other)}"
                return Slice(start, inner.size, inner.axis, inner.rank)
    return None


def _scalar(function: Function, node: ast.expr, depth: int) -> bool:
    """True for an integer that means the same wherever it stands behind its assignment."""
    if depth > _DEPTH:
        return False
    match node:
        case ast.Constant():
            return isinstance(node.value, int)
        case ast.BinOp():
            return _scalar(function, node.left, depth + 1) and _scalar(function, node.right, depth + 1)
        case ast.Name() if node.id not in function.set:
            return node.id in function.params
        case ast.Name() if function.once(node.id):
            stmt = function.assigned.get(node.id)
            return stmt is None or _scalar(function, stmt.value, depth + 1)
        case ast.Call():
            return function.language(node) == "program_id"
    return False
