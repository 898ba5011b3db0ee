"""A kernel that was read for the cores of A5 as a plain kernel of the tile IR."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from tl2npu.kernel.symbolic import Sym, const, var
from tl2npu.tile.expr import Expr, Load, identity, rebuilt
from tl2npu.tile.integers import in_kernel
from tl2npu.tile.ir import (
    AtomicAdd,
    Kernel,
    Map,
    Matmul,
    Move,
    Reduce,
    Region,
    Stmt,
    mapped,
    statements,
    with_bodies,
    with_values,
)
from tl2npu.triton.a5.halves import whole
from tl2npu.triton.a5.ir import inside, touched
from tl2npu.triton.a5.order import merged
from tl2npu.triton.a5.sizes import shown, spelled
from tl2npu.triton.read.spec import Spec, Tensor
from tl2npu.triton.refused import Refused


def forwarded(kernel: Kernel, own: frozenset[str]) -> Kernel:
    """The kernel without copies to the tiles in ``own`` that are written once and not needed.

    A copy goes if everything that reads it stands behind it in the same body, and its source is not written before.
    """
    for name in [tile.name for tile in kernel.tiles if tile.name in own]:
        body = _without(kernel, kernel.body, name)
        if body is not None:
            kernel = replace(kernel, body=body, tiles=tuple(tile for tile in kernel.tiles if tile.name != name))
    return kernel


def _without(kernel: Kernel, body: tuple[Stmt, ...], name: str) -> tuple[Stmt, ...] | None:
    """The body with the copy to a tile gone; None where that is not possible."""
    users = [stmt for stmt in statements(kernel.body) if any(name in group for group in touched(stmt))]
    if sum(name in touched(stmt)[1] for stmt in users) != 1:
        return None
    for number, stmt in enumerate(body):
        source = _source(kernel, stmt, name)
        if source is not None:
            rest = body[number + 1 :]
            found = [place for place, part in enumerate(rest) if any(_uses(inner, name) for inner in inside((part,)))]
            behind = [inner for part in rest for inner in inside((part,)) if _uses(inner, name)]
            until = rest[: found[-1] + 1] if found else ()
            if len(behind) != len(users) - 1 or any(source in touched(inner)[1] for inner in inside(until)):
                return None
            return (*body[:number], *mapped(rest, partial(_renamed, old=name, new=source)))
        parts: list[tuple[Stmt, ...] | None] = []

        def look(inner: tuple[Stmt, ...], parts: list[tuple[Stmt, ...] | None] = parts) -> tuple[Stmt, ...]:
            parts.append(_without(kernel, inner, name))
            return parts[-1] or inner

        changed = with_bodies(stmt, look)
        if any(part is not None for part in parts):
            return (*body[:number], changed, *body[number + 1 :])
    return None


def _uses(stmt: object, name: str) -> bool:
    return any(name in group for group in touched(stmt))


def _source(kernel: Kernel, stmt: Stmt, name: str) -> str | None:
    """The tile that a statement copies as a whole to ``name``."""
    buffers = kernel.buffers
    if isinstance(stmt, Map) and stmt.dst == name and isinstance(stmt.value, Load):
        source, plain = stmt.value.buffer, stmt.value.index == identity(len(buffers[name].shape))
    elif isinstance(stmt, Move) and stmt.dst.buffer == name:
        source = stmt.src.buffer
        plain = all(
            all(start.is_zero for start in side.start) and side.extent == buffers[side.buffer].shape
            for side in (stmt.src, stmt.dst)
        )
    else:
        return None
    same = (buffers[source].shape, buffers[source].dtype) == (buffers[name].shape, buffers[name].dtype)
    return source if plain and same and buffers[source].scope != "global" and source != name else None


def _renamed(stmt: Stmt, old: str, new: str) -> Stmt:
    """The statement itself reading another tile."""

    def name(found: str) -> str:
        return new if found == old else found

    def load(item: Expr) -> Expr | None:
        return replace(item, buffer=name(item.buffer)) if isinstance(item, Load) else None

    def region(found: Region) -> Region:
        return replace(found, buffer=name(found.buffer))

    match stmt:
        case Move():
            stmt = replace(stmt, src=region(stmt.src))
        case Reduce() | AtomicAdd():
            stmt = replace(stmt, src=name(stmt.src))
        case Matmul():
            stmt = replace(stmt, a=name(stmt.a), b=name(stmt.b))
    return with_values(stmt, lambda value: rebuilt(value, load))


def finish(
    kernel: Kernel, spec: Spec, half: str, chips: frozenset[str], own: frozenset[str], undivided: int | None
) -> Kernel:
    """One program for all cores, on whole tiles, without copies from core to core.

    ``half``: the variable for the number of the vector core; ``chips``: buffers of the author; ``own``: tiles that
    only hand something over; ``undivided``: the line of a fixpipe that gives a whole tile to one vector core. What
    the host must check is added to ``spec``. Raises ``Refused``.
    """
    tensors = frozenset(param.name for param in kernel.params)
    kernel = replace(kernel, body=tuple(merged(kernel.body, chips, tensors, lambda value: shown(value, spec))))
    before = kernel
    kernel = whole(kernel, half)
    if undivided is not None and kernel.body != before.body:
        raise Refused("TL567", undivided, "one vector core gets the whole product, and the other works on a half of it")
    kernel = forwarded(kernel, chips | own)
    return _with_sizes(kernel, spec)


def _with_sizes(kernel: Kernel, spec: Spec) -> Kernel:
    """With the author's sizes in the place of the parts that they are multiples of, which the host checks."""
    if not spec.multiples:
        return kernel

    def change(value: Sym) -> Sym:
        return spelled(value, spec)

    kernel = in_kernel(kernel, change)
    spec.grid = tuple(change(extent) for extent in spec.grid)
    spec.equal = [(change(one), change(other)) for one, other in spec.equal]
    spec.divides = [(change(one), change(other)) for one, other in spec.divides]
    spec.divides += [(var(name), const(number)) for name, number in spec.multiples.items() if number > 1]
    spec.views = {name: tuple(map(change, view)) for name, view in spec.views.items()}
    for name, tensor in spec.tensors.items():
        if tensor.shape is not None:
            spec.tensors[name] = Tensor(tuple(map(change, tensor.shape)), tensor.dtype)
    return kernel
