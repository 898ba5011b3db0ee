"""Offsets in memory as places in a row-major tensor: mixed radix over the strides of its shape."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise

from tl2npu.kernel.symbolic import Div, Mod, Sym, const, product, var
from tl2npu.tile.expr import axis_of
from tl2npu.triton.read.values import Shape


def strides(shape: Shape) -> Shape:
    """The row-major strides of a shape."""
    found = [const(1)]
    for extent in reversed(shape[1:]):
        found.append(found[-1] * extent)
    return tuple(reversed(found))


def split(offset: Sym, shape: Shape) -> tuple[Sym, ...]:
    """The index along each axis of a tensor, by what each term of the offset is a multiple of.

    It is *the* place of the element only if every index but the first stays inside of its axis.
    """
    radix = strides(shape)
    index = [const(0)] * len(shape)
    for mono, coef in offset.terms:
        term = Sym.of({mono: coef})
        for place, stride in enumerate(radix):
            quotient = _whole(term, stride)
            if quotient is not None:
                index[place] = index[place] + quotient
                break
    return tuple(index)


def _whole(term: Sym, stride: Sym) -> Sym | None:
    if stride.is_zero:
        return None
    quotient = term // stride
    return quotient if quotient * stride == term and not _has_division_by(quotient, term) else None


def _has_division_by(quotient: Sym, term: Sym) -> bool:
    return not set(quotient.atoms()) <= set(term.atoms())


def collapses(shape: Shape) -> Iterator[Shape]:
    """The shape, and those that it can be viewed as by joining axes, the largest rank first.

    A tensor without axes is one element.
    """
    rank = len(shape)
    if not rank:
        yield (const(1),)
    for kept in range(rank, 0, -1):
        for cuts in combinations(range(1, rank), kept - 1):
            ends = (0, *cuts, rank)
            found = []
            for start, end in pairwise(ends):
                found.append(product(shape[start:end]))
            yield tuple(found)


def axis_step(index: Sym) -> tuple[Sym, int | None, Sym] | None:
    """``start + step * @axis`` as ``(start, axis, step)``; None if it is no such sum; without an axis the step is 0."""
    axes = [name for name in sorted(index.names) if axis_of(name) is not None]
    if not axes:
        return index, None, const(0)
    if len(axes) > 1:
        return None
    name = axes[0]
    start = index.substitute({name: 0})
    step = index.substitute({name: 1}) - start
    return (start, axis_of(name), step) if (start + step * var(name)) == index else None


def step_of(offset: Sym, name: str) -> Sym:
    """How far an address goes with a variable from 0 to 1."""
    return offset.substitute({name: 1}) - offset.substitute({name: 0})


def along(offset: Sym, moving: frozenset[str], block: Shape) -> frozenset[str]:
    """The places of blocks and counters of loops with which a tile of extents ``block`` goes along one of its axes."""
    tiles = [(step_of(offset, name), number) for name in sorted(offset.names) if (number := axis_of(name)) is not None]

    def goes_along(step: Sym) -> bool:
        inner = [(unit, number) for unit, number in tiles if _whole(step, unit) is not None]
        outermost = [item for item in inner if all(_whole(item[0], unit) is not None for unit, _ in inner)]
        return any(_whole(step, unit * block[number]) is not None for unit, number in outermost[:1])

    return frozenset(name for name in moving & offset.names if goes_along(step_of(offset, name)))


def guesses(offset: Sym, moving: frozenset[str], block: Shape, alone: bool = False) -> Iterator[Shape]:
    """Shapes that a tensor may have: flat, then with the steps of its axes, then also of blocks and loops.

    ``moving``: the places of blocks and the counters of loops; ``block``: the extents of the tile; ``alone``: where the
    steps are those of no shape, shapes with one of them. The first extent is left as 0.
    """
    yield (const(0),)
    offset, moving = _by_quotients(offset, moving)
    steps: list[Sym] = []
    tiles = sorted(name for name in offset.names if axis_of(name) is not None)
    for names in (tiles, sorted(moving & offset.names - along(offset, moving, block))):
        before = len(steps)
        for name in names:
            step = step_of(offset, name)
            inner = any(axis_of(part) is not None or part in moving for part in step.names)
            if len(step.terms) == 1 and not inner:
                step = step if step.terms[0][1] > 0 else -step  # a loop may count down
                steps += [step] if step.constant != 1 and step not in steps else []
        if len(steps) > before:
            shapes = [_radix(steps)]
            if shapes == [None]:  # one of the steps is none of the tensor's, or only one is
                shapes = [_radix([*steps[:before], step]) for step in steps[before:]]
                shapes += [_radix([step]) for step in steps] if alone else []
            yield from (found for found in shapes if found is not None)


def _by_quotients(offset: Sym, moving: frozenset[str]) -> tuple[Sym, frozenset[str]]:
    """With a variable in the place of each quotient and remainder of what moves: an address steps with them."""
    total, names = const(0), set(moving)
    for mono, coef in offset.terms:
        term = const(coef)
        for atom in mono:
            factor = Sym.of({(atom,): 1})
            if isinstance(atom, (Div, Mod)) and moving & factor.names:
                names.add(f"~{atom}")
                factor = var(f"~{atom}")
            term = term * factor
        total = total + term
    return total, frozenset(names)


def _radix(steps: list[Sym]) -> Shape | None:
    """The shape whose strides these are; None if one does not divide the next."""
    order = sorted(steps, key=lambda step: (sum(map(len, (mono for mono, _ in step.terms))), str(step)))
    shape: list[Sym] = []
    before = const(1)
    for step in order:
        extent = step // before
        if extent * before != step:
            return None
        shape.insert(0, extent)
        before = step
    return (const(0), *shape)


def shown(value: Sym) -> str:
    """The text of an integer for a message, with the axes of a tile as `i` and `j`."""
    text = str(value)
    for number, name in enumerate("ij"):
        text = text.replace(f"@{number}", name)
    return text
