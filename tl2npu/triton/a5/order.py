"""The order that events give to what two kinds of cores do, and the one program that has the same order.

The cube core and the vector cores are two programs. An event orders them: what comes before the k-th set of a number
happens before what comes behind the k-th wait for it. If every two accesses to one buffer, of which one writes, are
ordered in that way, all executions give the same result, and the merged program, which is one of them, needs no events.
Loops that have events are shown for none to three turns: each turn has the same events, so that what holds for
neighbouring turns holds for all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from tl2npu.kernel.symbolic import Sym, var
from tl2npu.tile.expr import Expr, Index
from tl2npu.tile.integers import in_body
from tl2npu.tile.ir import AtomicAdd, For, If, Let, Origin, Stmt, with_bodies
from tl2npu.triton.a5.ir import CORES, Core, Event, Scope, inside, touched
from tl2npu.triton.refused import Refused

_TURNS = (0, 1, 2, 3)
Program = Sequence[Stmt | Event]


@dataclass(frozen=True)
class Access:
    """One core touches a buffer, at a place of its program."""

    core: Core
    place: int
    buffer: str
    writes: bool
    stmt: Origin


def merged(body: Program, chips: frozenset[str], tensors: frozenset[str], shown: Callable[[Sym], str]) -> list[Stmt]:
    """Statements with scopes as one program without scopes and events.

    ``chips``: buffers on the chip that the cores share, ``tensors``: those in global memory. ``shown``:
    the text of a size.
    Raises ``Refused`` where the events leave the order open, and where cores wait for each other.
    """
    if not any(_has_scope(stmt) for stmt in body):
        return list(body)  # type: ignore[arg-type]
    cube, vector = _Projection("cube", chips), _Projection("vector", chips)
    programs = cube.of(body), vector.of(body)
    both = tuple(stmt for program in programs for stmt in program)
    _plain(both, cube.joint)
    _once(programs[1], tensors)
    shared = chips | tensors
    _private(list(cube.scoped(programs[0])), list(cube.scoped(programs[1])), shared)
    tokens: Counter[tuple[Core, int]] = Counter()
    result = _Merge(tokens, cube.joint, cube.common, shown).run(*programs, 0)
    left = [key for key, count in tokens.items() if count]
    if left:
        raise Refused("TL562", _line_of(both, left[0]), f"{_event(left[0])} is set more often than waited for")
    depth = max(_depth(program, cube.joint) for program in programs)
    for turns in product(_TURNS, repeat=depth):
        _Proof(cube.joint, shared.__contains__).ordered(*programs, turns)
    return result


class _Projection:
    """What one kind of core executes. ``joint``: loops and branches around scopes, ``common``: statements of all cores,
    both by the identity of their origin."""

    def __init__(self, core: Core, chips: frozenset[str]) -> None:
        self.core, self.chips = core, chips
        self.joint: set[int] = set()
        self.common: set[int] = set()

    def of(self, body: Program) -> list[Stmt | Event]:
        """The statements of the core."""
        found: list[Stmt | Event] = []
        for stmt in _hoisted(body):
            if isinstance(stmt, Scope):
                found += stmt.body if stmt.core == self.core else ()
            elif not _has_scope(stmt):
                used = sorted(self.chips & _touched((stmt,)))
                if used:
                    raise Refused("TL566", stmt.origin.line, f"`{used[0]}` is used outside of the scopes")
                self.common.add(id(stmt.origin))
                found.append(stmt)
            else:
                self.joint.add(id(stmt.origin))
                if isinstance(stmt, If):
                    self.alone(stmt, body)
                found.append(with_bodies(stmt, lambda inner: tuple(self.of(inner))))  # type: ignore[arg-type]
        return found

    def scoped(self, program: Program) -> Iterator[object]:
        """The statements of scopes, those in them too."""
        for stmt in program:
            if id(stmt.origin) in self.joint:
                parts = (stmt.body,) if isinstance(stmt, For) else (stmt.then, stmt.orelse)  # type: ignore[union-attr]
                for part in parts:
                    yield from self.scoped(part)
            elif id(stmt.origin) not in self.common:
                yield from inside((stmt,))

    def alone(self, stmt: If, body: Program) -> None:
        """A branch around scopes is all that there is of scopes: whether it is taken orders nothing then."""
        if stmt.orelse or any(_has_scope(other) for other in body if other is not stmt):
            raise Refused("TL563", stmt.origin.line, "scopes depend on a condition")


def _has_scope(stmt: object) -> bool:
    return any(isinstance(part, Scope) for part in inside((stmt,)))


def _hoisted(body: Program) -> list[Stmt | Event]:
    """With statements between scopes in front of them, where they have nothing to do with what they pass."""
    places = [number for number, stmt in enumerate(body) if _has_scope(stmt)]
    if not places:
        return list(body)
    front, scopes = list(body[: places[0]]), []
    passed: set[str] = set()
    for stmt in body[places[0] : places[-1] + 1]:
        names = _touched((stmt,))
        if _has_scope(stmt):
            passed |= names
            scopes.append(stmt)
        elif names & passed:
            raise Refused("TL566", stmt.origin.line, "this statement between scopes needs what they compute")
        else:
            front.append(stmt)
    return [*front, *scopes, *body[places[-1] + 1 :]]


def _plain(program: Program, joint: set[int]) -> None:
    """Refuse events in branches."""
    for stmt in inside(program):
        if isinstance(stmt, If) and id(stmt.origin) not in joint:
            for part in inside((*stmt.then, *stmt.orelse)):
                if isinstance(part, Event):
                    raise Refused("TL563", part.origin.line, f"{_event(part.key)} depends on a condition")


def _private(cube: list[object], vector: list[object], shared: frozenset[str]) -> None:
    """Refuse tiles that are another one on each core: what one core writes to its copy the other does not see."""
    for mine, theirs in ((cube, vector), (vector, cube)):
        known = _touched(theirs) - shared
        for part in mine:
            for name in sorted(touched(part)[1] & known):
                text = f"`{name}` is another tile on each core, and the scopes of both use it"
                raise Refused("TL568", part.origin.line, text)  # type: ignore[attr-defined]


def _once(vector: Program, tensors: frozenset[str]) -> None:
    """Refuse what gives another result when both vector cores do it."""
    written = {name for part in inside(vector) for name in touched(part)[1] & tensors}
    for part in inside(vector):
        if isinstance(part, AtomicAdd):
            raise Refused("TL567", part.origin.line, f"each vector core adds to `{part.dst.buffer}`")
        again = sorted(touched(part)[0] & written)
        if again:
            line = part.origin.line  # type: ignore[attr-defined]
            raise Refused("TL567", line, f"`{again[0]}` is written by both vector cores and read again")


def _touched(body: Iterable[object]) -> set[str]:
    """The buffers that statements and those in them touch."""
    return {name for part in inside(body) for group in touched(part) for name in group}


def has_events(stmt: object) -> bool:
    """True for an event, and for a statement with one inside."""
    return any(isinstance(part, Event) for part in inside((stmt,)))


def _depth(program: Program, joint: set[int]) -> int:
    """How many loops that both cores run in step stand one inside of the other."""
    found = 0
    for stmt in program:
        if isinstance(stmt, For) and (id(stmt.origin) in joint or has_events(stmt)):
            found = max(found, 1 + _depth(stmt.body, joint))
        elif isinstance(stmt, If) and id(stmt.origin) in joint:
            found = max(found, _depth(stmt.then, joint))
    return found


def _event(key: tuple[Core, int]) -> str:
    return f"event {key[1]} of {CORES[key[0]]}"


def _line_of(program: Program, key: tuple[Core, int]) -> int:
    return next(e.origin.line for e in inside(program) if isinstance(e, Event) and e.key == key)


# the merged program --------------------------------------------------------------------------------------------------


@dataclass
class _Merge:
    """Executes both programs, the cube core first, and writes down what they do."""

    tokens: Counter[tuple[Core, int]]
    joint: set[int]
    common: set[int]
    shown: Callable[[Sym], str]

    def run(self, cube: Program, vector: Program, line: int) -> list[Stmt]:
        """Both to their ends. Raises ``Refused`` for a deadlock."""
        out: list[Stmt] = []
        known: dict[Expr, str] = {}
        left: dict[Core, list[Stmt | Event]] = {"cube": list(cube), "vector": list(vector)}
        while left["cube"] or left["vector"]:
            before = {core: len(rest) for core, rest in left.items()}
            for rest in left.values():
                self.advance(rest, out, known)
            heads = [rest[0] for rest in left.values() if rest]
            if len(heads) == 2 and (stmt := self.together(*heads)) is not None:
                out.append(stmt)
                for rest in left.values():
                    rest.pop(0)
            elif before == {core: len(rest) for core, rest in left.items()}:
                raise self.stuck(left, line)
        return out

    def advance(self, rest: list[Stmt | Event], out: list[Stmt], known: dict[Expr, str]) -> None:
        """One core, as far as it comes: up to a wait for nothing, or a statement that it executes with the other."""
        while rest:
            stmt = rest[0]
            if isinstance(stmt, Event):
                if stmt.kind == "wait" and not self.tokens[stmt.key]:
                    return
                self.tokens[stmt.key] += 1 if stmt.kind == "set" else -1
            elif id(stmt.origin) in self.common | self.joint or has_events(stmt):
                return
            elif isinstance(stmt, Let) and isinstance(stmt.value, Index) and stmt.value in known:
                same = {stmt.name: var(known[stmt.value])}  # the other core computes the same integer
                rest[1:] = in_body(tuple(rest[1:]), lambda value, same=same: value.substitute(same))  # type: ignore
            else:
                if isinstance(stmt, Let):
                    known[stmt.value] = stmt.name
                out.append(stmt)
            rest.pop(0)

    def together(self, cube: Stmt | Event, vector: Stmt | Event) -> Stmt | None:
        """A statement that both cores execute; None where they are not at the same."""
        if isinstance(cube, For) and isinstance(vector, For):
            both = id(cube.origin), id(vector.origin)
            if self.common & set(both):
                return cube if both[0] == both[1] else None
            if both[0] == both[1] or not self.joint & set(both):
                return self.loop(cube, vector)
            return None
        if cube.origin is not vector.origin:
            return None
        if isinstance(cube, If) and isinstance(vector, If) and id(cube.origin) in self.joint:
            return replace(cube, then=tuple(self.balanced(cube.then, vector.then, cube.origin.line)))
        assert not isinstance(cube, Event)
        return cube

    def loop(self, cube: For, vector: For) -> For:
        """Two loops that wait for each other, turn by turn."""
        if cube.count != vector.count:
            counts = f"`{self.shown(cube.count)}` and `{self.shown(vector.count)}`"
            raise Refused("TL564", vector.origin.line, f"loops with events have different numbers of turns: {counts}")
        same = {vector.var: var(cube.var)}
        body = vector.body if vector.var == cube.var else in_body(vector.body, lambda value: value.substitute(same))
        return replace(cube, body=tuple(self.balanced(cube.body, body, cube.origin.line)), stages=0)

    def balanced(self, cube: Program, vector: Program, line: int) -> list[Stmt]:
        """Bodies that leave as many events behind as they found."""
        before = Counter(self.tokens)
        found = self.run(cube, vector, line)
        for key in {*before, *self.tokens}:
            if before[key] != self.tokens[key]:
                place = _line_of((*cube, *vector), key)
                raise Refused("TL562", place, f"a turn of the loop sets {_event(key)} more or less often than it waits")
        return found

    def stuck(self, left: dict[Core, list[Stmt | Event]], line: int) -> Refused:
        """Why nobody goes on."""
        found = []
        for core, rest in left.items():
            if rest and isinstance(rest[0], Event):
                line = rest[0].origin.line
                found.append(f"{CORES[core]} wait{'s' if core == 'cube' else ''} for {_event(rest[0].key)}")
            elif rest:
                loop = f"loop{'s' if core == 'cube' else ''} at line {rest[0].origin.line}"
                found.append(f"{CORES[core]} {loop}")
            else:
                found.append(f"{CORES[core]} {'has' if core == 'cube' else 'have'} come to the end")
        return Refused("TL562", line, f"deadlock: {'; '.join(found)}")


# the proof -----------------------------------------------------------------------------------------------------------


@dataclass
class _Proof:
    """That events order all accesses, for a number of turns of each loop."""

    joint: set[int]
    shared: Callable[[str], bool]

    def ordered(self, cube: Program, vector: Program, turns: Sequence[int]) -> None:
        """Refuse two accesses that no event orders."""
        accesses: dict[Core, list[Access]] = {"cube": [], "vector": []}
        places: dict[str, dict[tuple[Core, int], list[int]]] = {"set": {}, "wait": {}}
        programs: tuple[tuple[Core, Program], ...] = (("cube", cube), ("vector", vector))
        for core, program in programs:
            for place, stmt in enumerate(self.unrolled(program, turns)):
                if isinstance(stmt, Event):
                    places[stmt.kind].setdefault(stmt.key, []).append(place)
                else:
                    accesses[core] += self.accesses(core, place, stmt)
        edges: dict[Core, list[tuple[int, int]]] = {"cube": [], "vector": []}
        for key, sets in places["set"].items():
            edges[key[0]] += zip(sets, places["wait"].get(key, ()), strict=False)
        for one in accesses["cube"]:
            for other in accesses["vector"]:
                conflict = one.buffer == other.buffer and (one.writes or other.writes) and one.stmt is not other.stmt
                if conflict and not (_before(one, other, edges["cube"]) or _before(other, one, edges["vector"])):
                    raise _race(one, other)

    def accesses(self, core: Core, place: int, stmt: Stmt) -> Iterator[Access]:
        """What a statement and those in it touch."""
        for part in inside((stmt,)):
            read, written = touched(part)
            for name in sorted(filter(self.shared, read | written)):
                origin: Origin = part.origin  # type: ignore[attr-defined]
                yield Access(core, place, name, name in written, origin)

    def unrolled(self, program: Program, turns: Sequence[int]) -> Iterator[Stmt | Event]:
        """The program with loops that have events written out."""
        for stmt in program:
            if isinstance(stmt, For) and (id(stmt.origin) in self.joint or has_events(stmt)):
                for _ in range(turns[0]):
                    yield from self.unrolled(stmt.body, turns[1:])
            elif isinstance(stmt, If) and id(stmt.origin) in self.joint:
                yield from self.unrolled(stmt.then, turns)
            else:
                yield stmt


def _before(one: Access, other: Access, edges: list[tuple[int, int]]) -> bool:
    """True if an event that is set behind the first access is waited for before the second."""
    return any(one.place < place and wait < other.place for place, wait in edges)


def _race(one: Access, other: Access) -> Refused:
    does = {access: "writes" if access.writes else "reads" for access in (one, other)}
    second = does[other].removesuffix("s")
    text = f"`{one.buffer}`: no event orders that the cube core {does[one]} it (line {one.stmt.line})"
    return Refused("TL561", other.stmt.line, f"{text} and that the vector cores {second} it")
