"""Where a statement stands in a program: the blocks and loops around it, and how often those turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tl2npu.simulator.ir.expr import Expr
from tl2npu.simulator.ir.linear import key_of
from tl2npu.simulator.ir.stmt import For, Stmt, bodies


@dataclass(frozen=True)
class Place:
    """One step on the way to a statement: the list that it is in, and the statement (or the one around it) there."""

    block: list[Stmt]
    stmt: Stmt


def path(body: list[Stmt], target: Stmt) -> list[Place]:
    """From the outermost list to the statement itself. Raises ValueError if it is not there."""
    found = _find(body, target)
    if found is None:
        raise ValueError("the statement is not in the program")
    return found


def _find(body: list[Stmt], target: Stmt) -> list[Place] | None:
    for stmt in body:
        if stmt is target:
            return [Place(body, stmt)]
        for inner in bodies(stmt):
            deeper = _find(inner, target)
            if deeper is not None:
                return [Place(body, stmt), *deeper]
    return None


def loops(places: list[Place]) -> list[For]:
    """The loops around the last statement of a path, outermost first."""
    return [p.stmt for p in places[:-1] if isinstance(p.stmt, For)]


Turns = tuple[int, tuple[Any, ...]]
"""A product of extents: the constants multiplied, and the keys of the symbolic ones."""


def turns(nest: list[For]) -> Turns:
    """How often a nest turns."""
    constant, symbolic = 1, []
    for loop in nest:
        if isinstance(loop.extent, Expr):
            symbolic.append(key_of(loop.extent))
        else:
            constant *= int(loop.extent)
    return constant, tuple(sorted(map(repr, symbolic)))


def insert_before(place: Place, new: list[Stmt]) -> None:
    """Statements into a block, before the one of a place."""
    at = next(n for n, s in enumerate(place.block) if s is place.stmt)
    place.block[at:at] = new


def insert_after(place: Place, new: list[Stmt]) -> None:
    """Statements into a block, after the one of a place."""
    at = next(n for n, s in enumerate(place.block) if s is place.stmt)
    place.block[at + 1 : at + 1] = new
