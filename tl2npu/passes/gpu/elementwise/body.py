"""The statements of a ``T.Parallel`` body as stores: local names put in, conditions pulled to the stores.

What a local name stands for is put where it is used; a value that is used more than once, or whose operands change
before its use, becomes a store into a tile of that name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.element_types import promoted
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Alloc, Branch, Let, Loop, Memory, Opaque, Stmt, Store, walk
from tl2npu.kernel.ranges.bounds import Bounds
from tl2npu.passes.gpu.elementwise.nest import Nest
from tl2npu.passes.gpu.elementwise.reading import Reading
from tl2npu.passes.gpu.elementwise.tree import Expr, joined
from tl2npu.passes.gpu.elementwise.truths import as_numbers, as_truth
from tl2npu.source.signs import sign_of
from tl2npu.source.tree import mentioned, names_in


@dataclass(frozen=True, eq=False)
class Put:
    """``target = value``. ``local``: the name of a new tile; then there is no target. ``stmt``: where it stands."""

    stmt: Stmt
    target: Expr | None
    value: Expr
    sign: str = ""
    local: str = ""


@dataclass(frozen=True, eq=False)
class When:
    """Stores under a condition that is the same for all elements."""

    stmt: Stmt
    condition: Expr
    then: tuple[Item, ...]
    orelse: tuple[Item, ...]


Item = Put | When
_HOLDS = "holds"
"""The tile with the answers to a condition; those of conditions inside of it have numbers."""


def items(nest: Nest, reading: Reading) -> Iterator[Item]:
    """The stores of a nest, read as they are asked for; raises :class:`Blocked` for what is no store."""
    return _Body(nest, reading).read(nest.body, None)


class _Body:
    def __init__(self, nest: Nest, reading: Reading) -> None:
        self.nest = nest
        self.reading = reading
        self.registers: set[str] = set()
        self.taken = mentioned(nest.node)

    def read(self, body: Sequence[Stmt], condition: Expr | None) -> Iterator[Item]:
        for position, stmt in enumerate(body):
            rest = body[position + 1 :]
            if isinstance(stmt, Store):
                yield from self.store(stmt, condition)
            elif isinstance(stmt, Let):
                yield from self.local(stmt, rest, condition)
            elif isinstance(stmt, Branch):
                yield from self.branch(stmt, rest, condition)
            elif isinstance(stmt, Alloc) and stmt.buffer.memory is Memory.VAR:
                self.registers.add(stmt.buffer.name)
            elif isinstance(stmt, Opaque) and self.pair(stmt):
                continue
            else:
                what = "a loop" if isinstance(stmt, Loop) else f"`{code(stmt.node).strip().splitlines()[0]}`"
                raise Blocked("TL153", stmt.node, f"{what} in T.Parallel cannot be vectorised")

    def pair(self, stmt: Opaque) -> bool:
        return isinstance(stmt.node, cst.Pass)

    def store(self, stmt: Store, condition: Expr | None) -> Iterator[Item]:
        env = stmt.env
        if stmt.target.buffer.memory is Memory.VAR:
            yield from self.register(stmt, stmt.target.buffer.name, condition)
            return
        target = self.reading.load(stmt.target, stmt.target.node)
        value = self.reading.value(stmt.value.node, env)
        sign = ""
        if stmt.augmented and isinstance(stmt.node, cst.AugAssign):
            sign = sign_of(stmt.node.operator).replace("**", "?")  # no instruction, as for `@`
            value = _combined(sign, target, value)
        value = as_numbers(value, target.dtype)
        if condition is not None:
            self.check_extent(stmt)
            value, sign = _choice(condition, value, target), ""
        yield Put(stmt, target, value, sign)

    def check_extent(self, stmt: Store) -> None:
        """A select writes every element of the loop: the tile must have as many, whatever the condition says."""
        axes = {axis.var: axis for axis in (self.nest.rows, self.nest.columns) if axis is not None}
        for dim, size in zip(stmt.target.dims or (), stmt.target.buffer.shape, strict=False):
            axis = axes.get(str(dim.lo))
            if axis is not None and axis.extent != size and not Bounds({}).is_not_negative(size - axis.extent):
                text = f"`{stmt.target.buffer.name}` ends before this loop: end the loop over `{axis.name}` with it"
                raise Blocked("TL153", stmt.node, text)

    def register(self, stmt: Store, name: str, condition: Expr | None) -> Iterator[Item]:
        value = self.reading.value(stmt.value.node, stmt.env)
        if stmt.augmented or name not in self.registers:
            raise Blocked("TL153", stmt.node, f"`{name}` carries a value from one element to the next")
        yield from self.bind(stmt, name, value, (), condition)

    def local(self, stmt: Let, rest: Sequence[Stmt], condition: Expr | None) -> Iterator[Item]:
        if not isinstance(stmt.node, (cst.Assign, cst.AnnAssign)):
            raise Blocked("TL153", stmt.node, f"`{stmt.name}` carries a value from one element to the next")
        value = self.reading.value(stmt.value.node, stmt.env)
        yield from self.bind(stmt, stmt.name, value, rest, condition)

    def bind(self, stmt: Stmt, name: str, value: Expr, rest: Sequence[Stmt], condition: Expr | None) -> Iterator[Item]:
        before = self.reading.local.get(name)
        if condition is not None:
            if before is None and name not in self.registers:
                self.reading.local[name] = value  # used in this branch only
                return
            value = _choice(condition, value, before) if before is not None else value
        elif (_is_worth_a_tile(value) and _uses(rest, name) > 1) or self.changes(value, rest, name):
            self.reading.local.pop(name, None)
            yield Put(stmt, None, value, local=name)  # whoever takes it says which tile the name stands for
            self.reading.local.setdefault(name, Expr("unknown", text=name))
            return
        self.reading.local[name] = value

    def changes(self, value: Expr, rest: Sequence[Stmt], name: str) -> bool:
        """Whether a tile that the value reads is stored to before the last use of the name."""
        read = {load.load.buffer for load in value.loads if load.load is not None}
        if not read:
            return False
        written = False
        for stmt in rest:
            if written and _uses([stmt], name):
                return True
            if any(isinstance(s, Store) and s.target.buffer in read for s in walk([stmt])):
                written = True
        return False

    def branch(self, stmt: Branch, rest: Sequence[Stmt], condition: Expr | None) -> Iterator[Item]:
        found = as_truth(self.reading.expression(stmt.cond.node, stmt.env))
        if not found.axes:
            then, orelse = (tuple(self.read(part, condition)) for part in (stmt.then, stmt.orelse))
            yield When(stmt, found, then, orelse)
            return
        pairs = choices_of(stmt)
        for pair in pairs:
            yes, no = (self.reading.value(one.value.node, one.env) for one in pair)
            target = self.reading.load(pair[0].target, pair[0].target.node)
            value = _choice(found, yes, no)
            yield Put(stmt, target, value if condition is None else _choice(condition, value, target))
        if pairs:
            return
        if self.is_asked_first(stmt, found):
            name = next(
                name for name in chain((_HOLDS,), map(f"{_HOLDS}_{{}}".format, count(2))) if name not in self.taken
            )
            self.taken.add(name)
            yield Put(stmt, None, as_numbers(found), local=name)
            found = as_truth(self.reading.local.pop(name, Expr("load", text=name, axes=found.axes)))
        yield from self.read(stmt.then, _both(condition, found))
        if stmt.orelse:
            opposite = Expr("logic", "not", (found,), "bool", axes=found.axes)
            yield from self.read(stmt.orelse, _both(condition, opposite))

    def is_asked_first(self, stmt: Branch, condition: Expr) -> bool:
        """Whether the answer goes into a tile before the branches: a store, but for the last one, changes what the
        condition reads; or several of them depend on indices that only the scalar unit works out."""
        stores = [s for s in walk([*stmt.then, *stmt.orelse]) if isinstance(s, Store)]
        read = {load.load.buffer for load in condition.loads if load.load is not None}
        if len(stores) <= 1:
            return False
        divided = any(part.kind == "binary" and part.name in ("//", "%") and part.axes for part in condition.walk())
        return divided or any(s.target.buffer in read for s in stores)


def choices_of(stmt: Branch) -> list[tuple[Store, Store]]:
    """The pairs of stores of ``if c: x[i] = a`` with ``else: x[i] = b``, each to the same element; empty if the arms
    hold anything else, or if what one pair stores is read by the condition or by another pair."""
    stores = [[s for s in arm if isinstance(s, Store) and not s.augmented] for arm in (stmt.then, stmt.orelse)]
    if not stmt.then or [len(arm) for arm in stores] != [len(stmt.then), len(stmt.orelse)]:
        return []
    pairs = list(zip(*stores, strict=False))
    if len(stores[0]) != len(stores[1]) or any(code(a.target.node) != code(b.target.node) for a, b in pairs):
        return []
    written = [a.target.buffer for a, _ in pairs]
    if len(pairs) > 1:
        if len(set(written)) < len(written) or any(load.buffer in written for load in stmt.cond.loads):
            return []
        for pair in pairs:
            others = [buffer for buffer in written if buffer is not pair[0].target.buffer]
            if any(load.buffer in others for one in pair for load in (*one.value.loads, *one.target.loads)):
                return []
    return [(a, b) for a, b in pairs]


def _choice(condition: Expr, yes: Expr, no: Expr) -> Expr:
    return Expr("select", "", (condition, yes, no), yes.dtype or no.dtype, axes=joined(condition, yes, no))


def _both(first: Expr | None, second: Expr) -> Expr:
    if first is None:
        return second
    return Expr("logic", "and", (first, second), "bool", axes=joined(first, second))


def _combined(sign: str, target: Expr, value: Expr) -> Expr:
    dtype = promoted(target.dtype, value.dtype)
    return Expr("binary", sign, (target, value), dtype, axes=joined(target, value))


def _uses(body: Sequence[Stmt], name: str) -> int:
    return sum(found.value == name for stmt in body for found in names_in(stmt.node))


def _is_worth_a_tile(value: Expr) -> bool:
    """More than an element, a number or an index: computed once."""
    return any(part.kind in ("call", "cast", "select", "binary") and part.axes for part in value.walk()) and any(
        True for _ in value.loads
    )
