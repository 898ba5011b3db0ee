"""Makes a program smaller as long as it shows the same: statements, expressions, sizes and tensors go one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from tests.generated import program as p

_EXPRESSIONS = (p.Const, p.Name, p.Ref, p.Bin, p.Un, p.Select, p.Cast)
_SIZES = (4, 8, 16, 32)


def shrunk(program: p.Program, shows: Callable[[p.Program], bool], tries: int = 2000) -> p.Program:
    """The smallest program found that ``shows`` what this one does, after at most so many ``tries``."""
    left = tries
    again = True
    while again and left > 0:
        again = False
        for smaller in candidates(program):
            left -= 1
            if left <= 0:
                break
            if shows(smaller):
                program, again = smaller, True
                break
    return program


def candidates(program: p.Program) -> Iterator[p.Program]:
    """Smaller programs, those with the largest step first."""
    for number, launch in enumerate(program.launches):
        if len(program.launches) > 1:
            yield _clean(replace(program, launches=_without(program.launches, number)))
        for body in bodies(launch.body):
            launches = _put(program.launches, number, replace(launch, body=body))
            yield _clean(replace(program, launches=launches))
    for number, (name, value) in enumerate(program.sizes):
        for other in _SIZES:
            if other < value:
                yield replace(program, sizes=_put(program.sizes, number, (name, other)))
    for choice in ("symbolic", "slices", "literal", "at_once"):
        if program.spelled(choice):
            yield replace(program, style=tuple((n, v) for n, v in program.style if n != choice))
    for number, launch in enumerate(program.launches):
        for inner, tile in enumerate(launch.tiles):
            for other in [d for d in ("float32", "float16") if tile.dtype not in ("float32", d)]:
                tiles = _put(launch.tiles, inner, replace(tile, dtype=other))
                yield replace(program, launches=_put(program.launches, number, replace(launch, tiles=tiles)))


def bodies(body: tuple[p.Stmt, ...]) -> Iterator[tuple[p.Stmt, ...]]:
    """Smaller statements."""
    for length in (len(body) // 2, 1):
        for start in range(len(body) - 1, -1, -1) if length == 1 else range(0, len(body), max(length, 1)):
            if length:
                yield body[:start] + body[start + length :]
    for number, statement in enumerate(body):
        for part in _parts(statement):
            yield body[:number] + part + body[number + 1 :]


def _parts(s: p.Stmt) -> Iterator[tuple[p.Stmt, ...]]:
    """What may stand for a statement."""
    for name in ("body", "then", "orelse"):
        inner = getattr(s, name, ())
        if inner:
            if not isinstance(s, p.Parallel):
                yield inner
            for smaller in bodies(inner):
                if smaller or name == "orelse":
                    yield (replace(s, **{name: smaller}),)  # type: ignore[arg-type]
    if isinstance(s, p.For):
        if s.extent != p.Const(1):
            yield (replace(s, extent=p.Const(1)),)
        if s.kind != "serial":
            yield (replace(s, kind="serial"),)
    if isinstance(s, p.Gemm):
        yield from ((replace(s, **{n: False}),) for n in ("transpose_a", "transpose_b", "clear") if getattr(s, n))  # type: ignore[arg-type]
    if isinstance(s, p.Assign) and s.op:
        yield (replace(s, op=""),)
    if isinstance(s, (p.Assign, p.Let)):
        yield from ((replace(s, value=e),) for e in expressions(s.value))
    if isinstance(s, p.If):
        yield from ((replace(s, condition=e),) for e in expressions(s.condition))


def expressions(e: p.Expr) -> Iterator[p.Expr]:
    """Smaller expressions of the same value or another."""
    if isinstance(e, (p.Const, p.Name)):
        return
    for field in fields(e):
        part = getattr(e, field.name)
        if isinstance(part, _EXPRESSIONS):
            yield part
    yield p.Const(1.0)
    for field in fields(e):
        part = getattr(e, field.name)
        if isinstance(part, _EXPRESSIONS):
            yield from (replace(e, **{field.name: smaller}) for smaller in expressions(part))  # type: ignore[arg-type]
        elif isinstance(part, tuple):
            for number, index in enumerate(part):
                for smaller in expressions(index):
                    yield replace(e, **{field.name: _put(part, number, smaller)})  # type: ignore[arg-type]


def _clean(program: p.Program) -> p.Program:
    """The program without tiles and tensors that nothing uses."""
    launches = []
    for launch in program.launches:
        used = p.names(launch.body)
        launches.append(replace(launch, tiles=tuple(t for t in launch.tiles if t.name in used)))
    used = p.names(tuple(launches))
    return replace(program, launches=tuple(launches), tensors=tuple(t for t in program.tensors if t.name in used))


def _put(items: tuple[Any, ...], number: int, new: Any) -> tuple[Any, ...]:
    return (*items[:number], new, *items[number + 1 :])


def _without(items: tuple[Any, ...], number: int) -> tuple[Any, ...]:
    return items[:number] + items[number + 1 :]


def length(node: Any) -> int:
    """How many nodes a program has."""
    return sum(1 for part in p.nodes(node) if is_dataclass(part))
