"""TL137, TL144, TL145: what is computed again where its tile still has it, or another one has.

Element-wise statements convert their operands, compare for their conditions, and take numbers out of tensors where
they stand. Statements are compared by their text, with what their names and tiles stand for there in place of the names
(value numbering). Work that an author does for nothing stays.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Sequence

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import accesses, written
from tl2npu.kernel.environment import Static
from tl2npu.kernel.expressions import code
from tl2npu.kernel.memory import inferred
from tl2npu.kernel.memory.liveness import Liveness
from tl2npu.kernel.model import Branch, Buffer, Copy, Let, Loop, Memory, Op, Scalar, Stmt, Store, children, walk
from tl2npu.kernel.numbers import is_zero
from tl2npu.kernel.symbolic import Sym
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import parse
from tl2npu.source.edits import Edits
from tl2npu.source.tree import names_in

_NAME = re.compile(r"(?<![\w.\"'])[A-Za-z_]\w*")
_LOOPS = ("parallel", "serial", "unroll")

_Held = dict[Buffer, int]
"""The number of the value that each tile holds."""


def drop(job: Job, is_made: Callable[[Buffer], bool]) -> None:
    """Leave such statements out, as long as there are any; ``is_made``: a pass made the tile."""
    while _Values(job, is_made).drop():
        continue


class _Values:
    """The values of one kernel."""

    def __init__(self, job: Job, is_made: Callable[[Buffer], bool]) -> None:
        self._job = job
        self._is_made = is_made
        self._edits = Edits(job.file.index)
        self._counter = itertools.count()
        self._numbers: dict[object, int] = {}
        steps = Liveness(job.kernel).steps
        self._fresh = {step.stmt: step.fresh - step.reads for step in steps}
        self._live = {step.stmt: step.live for step in steps}
        found, every = inferred.uses(job.kernel), job.kernel.buffers.values()
        self._near = {one for one in every if one.memory is Memory.GM or inferred.is_vector(found, one)}
        """What no cross-core transfer touches: a tile is handed over once."""
        self._changed = {tensor for tensor in written(job.kernel.body) if tensor.memory is Memory.GM}
        self._products = {
            stmt.dst.buffer
            for stmt in job.kernel.walk()
            if isinstance(stmt, Copy) and stmt.src.buffer.memory is Memory.L0C
        }
        works = [(_sketch(s, tile), tile) for s in job.kernel.walk() if (tile := _only(written([s]))) is not None]
        counts = Counter(sketch for sketch, _ in works)
        self._sketches = {sketch for sketch, tile in works if counts[sketch] > 1 and is_made(tile)}
        """Of statements that may be the same."""
        self._moved = False
        """Readers of a tile take another one: what is known of the others is of no use any more."""

    def drop(self) -> bool:
        """Leave out what can be left out at once; True if what is left is to be looked at again."""
        self._run(self._job.kernel.body, {}, edit=True)
        self._job.apply(self._edits)
        return self._moved

    def _run(self, body: Sequence[Stmt], held: _Held, *, edit: bool) -> _Held:
        """What tiles hold behind these statements."""
        held = dict(held)
        for place, stmt in enumerate(body):
            changed = written([stmt])
            tile = _only(changed) if not isinstance(stmt, Branch) else None
            value = self._value(stmt, tile, held) if tile is not None else None
            if tile is not None and value is not None:
                if edit and not self._moved:
                    if self._is_made(tile):
                        self._leave(body, place, tile, [other for other, number in held.items() if number == value])
                    added = _added(stmt, tile) if held.get(tile) == self._numbers.get(_zeros(tile), -1) else None
                    if added is not None and added not in self._products:
                        self._begin(body, place, tile, added)
                held[tile] = value
            elif isinstance(stmt, Branch):
                arms = [self._run(arm, held, edit=edit) for arm in (stmt.then, stmt.orelse)]
                held = {tile: number for tile, number in arms[0].items() if arms[1].get(tile) == number}
            else:
                held = self._before_each_turn(stmt, held, changed)
                for inner in children(stmt):
                    self._run(inner, held, edit=edit)
        return held

    def _before_each_turn(self, stmt: Stmt, held: _Held, changed: set[Buffer]) -> _Held:
        """What tiles hold in front of a loop and behind every turn of it; behind any other statement."""
        parts = children(stmt)
        kept = {t: number for t, number in held.items() if t not in changed or (parts and self._is_made(t))}
        while changed & kept.keys():
            ends = [self._run(part, kept, edit=False) for part in parts]
            still = {tile: number for tile, number in kept.items() if all(end.get(tile) == number for end in ends)}
            if len(still) == len(kept):
                break
            kept = still
        return kept

    def _value(self, stmt: Stmt, tile: Buffer, held: _Held) -> int | None:
        """The number of what a statement makes of a tile; None if it is not compared."""
        inside = list(walk([stmt]))
        read = {access.operand.buffer for one in inside for access in accesses(one)}
        if not all(map(_is_work, inside)) or not {tile, *read} <= self._near - self._changed:
            return None
        for buffer in read:
            held.setdefault(buffer, next(self._counter))
        overwritten = tile in self._fresh.get(stmt, ())
        if isinstance(stmt, Copy) and stmt.src.is_whole and stmt.dst.is_whole and _is_alike(stmt.src.buffer, tile):
            return held[stmt.src.buffer]
        if isinstance(stmt, Op) and stmt.op.kind is Kind.FILL:
            value = stmt.args.get("value")
            zeros = isinstance(value, Scalar) and is_zero(value.node) and overwritten
            return self._numbers.setdefault(_zeros(tile), next(self._counter)) if zeros else next(self._counter)
        if _sketch(stmt, tile) not in self._sketches:
            return next(self._counter)
        bound = [item.name for one in inside if isinstance(one, Loop) for item in one.ranges]
        bound += [one.name for one in inside if isinstance(one, Let)]
        texts = {name: f"${number}" for number, name in enumerate(dict.fromkeys(bound))}

        def value_of(match: re.Match[str]) -> str:
            name = match[0]
            if name not in texts:
                found = stmt.env.lookup(name)
                if isinstance(found, Buffer):
                    kind = "tile" if found is tile else "of"
                    number = "" if overwritten and found is tile else held.setdefault(found, next(self._counter))
                    texts[name] = f"${kind} {number}"
                else:
                    texts[name] = str(found) if isinstance(found, (Sym, Static)) else name
            return texts[name]

        lines = [line for line in code(stmt.node).splitlines() if not line.lstrip().startswith("#")]
        key = _NAME.sub(value_of, " ".join(" ".join(lines).split())), tile.shape, tile.dtype, tile.outside
        return self._numbers.setdefault(key, next(self._counter))

    def _leave(self, body: Sequence[Stmt], place: int, tile: Buffer, others: Sequence[Buffer]) -> None:
        """Leave a statement out whose tile, or another one, has the value already."""
        stmt = body[place]
        if tile in others:
            text = f"`{tile.name}` still has what this makes"
        elif others and self._edits:
            self._moved = True  # next time: nothing else is edited then
            return
        else:
            for other in others:
                readers = self._readers(body, place, tile, other)
                if readers is not None:
                    break
            else:
                return
            for name in (name for reader in readers for name in names_in(reader.node) if name.value == tile.name):
                self._edits.replace(name, name.with_changes(value=other.name))
            self._moved, text = True, f"`{other.name}` has what this makes of `{tile.name}`"
        self._edits.remove(stmt.node)
        code = {Copy: "TL144", Op: "TL145"}.get(type(stmt), "TL137")
        self._job.change(code, stmt.node, text)

    def _begin(self, body: Sequence[Stmt], place: int, tile: Buffer, added: Buffer) -> None:
        """A sum that has one addend so far is that: it is made in the tile of the sum, or copied there."""
        if self._edits:
            self._moved = True
            return
        stmt = body[place]
        users = [number for number, one in enumerate(body) if added in _touched([one])]
        between = body[users[0] : place]
        everywhere = sum(added in _touched([one], deep=False) for one in self._job.kernel.walk())
        fresh = added in self._fresh.get(body[users[0]], ())
        alone = fresh and self._is_made(added) and users[-1] == place and tile not in _touched(between)
        if alone and everywhere == sum(added in _touched([one], deep=False) for one in walk(body)):
            for name in (name for one in between for name in names_in(one.node) if name.value == added.name):
                self._edits.replace(name, name.with_changes(value=tile.name))
            self._edits.remove(stmt.node)
        else:
            self._edits.replace_many(stmt.node, parse(self._job, f"T.copy({added.name}, {tile.name})", stmt.node))
        self._job.change("TL137", stmt.node, f"`{tile.name}` is all zeros, and becomes `{added.name}`")
        self._moved = True

    def _readers(self, body: Sequence[Stmt], place: int, tile: Buffer, other: Buffer) -> list[Stmt] | None:
        """The statements that read a tile until it is overwritten, where another one keeps its value until then."""
        readers: list[Stmt] = []
        kept = True
        for stmt in body[place + 1 :]:
            touched = [a for one in walk([stmt]) for a in accesses(one) if a.operand.buffer is tile]
            if touched and tile in self._fresh.get(stmt, ()):
                return readers
            kept = kept and other not in written([stmt])
            if touched and (not kept or any(access.writes for access in touched) or not _touched([stmt]) <= self._near):
                return None
            readers += [stmt] if touched else []
        return readers if tile not in self._live.get([body[place], *readers][-1], {tile}) else None


def _added(stmt: Stmt, tile: Buffer) -> Buffer | None:
    """The tile, of the same shape and type, that a statement adds to all of another one and does nothing else."""
    if isinstance(stmt, Op) and stmt.op.name == "tile.add":
        operands = [operand for name, operand in stmt.operands if name != "dst"]
    elif isinstance(stmt, Loop) and stmt.kind == "parallel" and len(stmt.body) == 1:
        (store,) = stmt.body
        if not isinstance(store, Store) or not isinstance(store.node, cst.AugAssign) or store.value.loads == ():
            return None
        if type(store.node.operator) is not cst.AddAssign or store.value.node is not store.value.loads[0].node:
            return None
        places = [[dim.lo for dim in operand.dims or ()] for operand in (store.target, store.value.loads[0])]
        whole = [item.extent for item in stmt.ranges] == list(tile.shape) and all(r.start.is_zero for r in stmt.ranges)
        if not whole or places[0] != places[1] or places[0] != [item.var for item in stmt.ranges]:
            return None
        operands = [store.target, *store.value.loads]
    else:
        return None
    others = [operand.buffer for operand in operands if operand.buffer is not tile]
    same = len(operands) == 2 and len(others) == 1 and _is_alike(others[0], tile)
    plain = isinstance(stmt, Loop) or all(operand.is_whole for operand in operands)
    return others[0] if same and plain else None


def _sketch(stmt: Stmt, tile: Buffer) -> tuple[object, ...]:
    """What can be told of a statement without its text."""
    what = stmt.op if isinstance(stmt, Op) else stmt.kind if isinstance(stmt, Loop) else None
    touched: set[object] = set(_touched([stmt]) - {tile})
    if isinstance(stmt, Loop):  # what it reads may be the same value in another tile
        touched = {(buffer.memory, buffer.dtype, buffer.shape) for buffer in _touched([stmt])}
    return type(stmt), what, tile.shape, tile.dtype, frozenset(touched)


def _zeros(tile: Buffer) -> tuple[object, ...]:
    """The key of the value of a tile full of zeros."""
    return 0.0, tile.shape, tile.dtype, tile.outside


def _is_alike(one: Buffer, other: Buffer) -> bool:
    same = (one.shape, one.dtype, one.outside) == (other.shape, other.dtype, other.outside)
    return same and one.memory is other.memory is Memory.UB


def _is_work(stmt: Stmt) -> bool:
    """What is done in UB, the same in every run, in the text of the kernel itself."""
    if isinstance(stmt, Loop):
        return stmt.kind in _LOOPS and not stmt.via
    return isinstance(stmt, (Op, Copy, Store, Let, Branch)) and not stmt.via


def _only(tiles: set[Buffer]) -> Buffer | None:
    return next(iter(tiles)) if len(tiles) == 1 else None


def _touched(stmts: Sequence[Stmt], *, deep: bool = True) -> set[Buffer]:
    return {access.operand.buffer for stmt in (walk(stmts) if deep else stmts) for access in accesses(stmt)}
