"""Random programs: expressions and element-wise loops, for every style of kernels.

Axes have *roles*: ``m``, ``n``, ``k`` are cut into tiles of ``BM``, ``BN``, ``BK``; ``c`` is whole. The kind of a tile
is the roles of its axes, so that tiles can meet in a loop over any roles, transposed and broadcast.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from tests.generated import program as p
from tests.generated.values import INTEGERS

SIZES = {"m": "BM", "n": "BN", "k": "BK", "c": "C"}
EXTENTS = {"m": "M", "n": "N", "k": "K", "c": "C"}
FLOATS = ("float16", "float32")
CONSTANTS = (0.0, 0.5, 1.0, -0.25, 2.0, 3.0, -1.0, 0.125)


def size(role: str) -> p.Expr:
    """How many elements a tile has along an axis."""
    return p.Name(SIZES[role])


def add(left: p.Expr, right: p.Expr) -> p.Expr:
    """A sum, without zeros."""
    if left == p.Const(0):
        return right
    return left if right == p.Const(0) else p.Bin("+", left, right)


@dataclass
class Tile:
    """A tile that statements may use."""

    name: str
    dtype: str
    kind: str
    scope: str

    @property
    def shape(self) -> tuple[p.Expr, ...]:
        return tuple(size(role) for role in self.kind)

    @property
    def whole(self) -> p.Region:
        return p.Region(self.name, (p.Const(0),) * len(self.kind), self.shape)

    @property
    def buffer(self) -> p.Buffer:
        return p.Buffer(self.name, self.dtype, self.shape, self.scope)


@dataclass
class Scope:
    """What may be read here: ``defined`` tiles, ``scalars`` of the block, loop and block variables as indices."""

    defined: set[str] = field(default_factory=set)
    scalars: dict[str, str] = field(default_factory=dict)
    origins: dict[str, p.Expr] = field(default_factory=dict)

    def inner(self) -> Scope:
        return Scope(set(self.defined), dict(self.scalars), dict(self.origins))


@dataclass
class Element:
    """Where an expression stands: the variable of each role, names with values and their types."""

    vars: dict[str, str]
    lets: dict[str, str] = field(default_factory=dict)


class Draws:
    """Random choices, and the expressions that they make."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.tiles: dict[str, Tile] = {}
        self.count = 0
        self.dims: dict[str, int] = {}
        self.irregular: set[str] = set()
        self.grid: dict[str, str] = {}
        self.functions: tuple[str, ...] = (
            "exp",
            "exp2",
            "sqrt",
            "rsqrt",
            "abs",
            "abs",
            "tanh",
            "sigmoid",
            "log",
            "sin",
        )
        self.taken: set[str] = set()
        self.tensors: list[p.Buffer] = []
        self.read: dict[str, list[tuple[p.Expr, ...]]] = {}
        self.odd = 0.15
        """How often an index is something else than a loop variable."""

    def in_place(self, tile: Tile, starts: tuple[p.Expr, ...]) -> p.Buffer | None:
        """A tensor of which every block has read just this part, and which may be overwritten with the tile."""
        fitting = []
        for tensor in self.tensors:
            parts = self.read.get(tensor.name, [])
            alone = all(role in tile.kind for role in self.grid) and len(parts) == 1 and parts[0] == starts
            if alone and tensor.kind == "in" and tensor.dtype == tile.dtype:
                fitting.append(tensor)
        return self.rng.choice(fitting) if fitting else None

    def overwritten(self, tensor: p.Buffer) -> p.Buffer:
        """The tensor as one that the kernel changes."""
        changed = p.Buffer(tensor.name, tensor.dtype, tensor.shape, "inout")
        self.tensors[self.tensors.index(tensor)] = changed
        return changed

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def fresh(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def dtype(self) -> str:
        return self.rng.choices(("float32", "float16", "bfloat16", "int32", "int8", "uint8"), (9, 5, 1, 2, 1, 1))[0]

    def new_tile(self, kind: str, dtype: str | None = None, scope: str | None = None) -> Tile:
        letter = "t" if len(kind) > 1 else {"m": "r", "n": "v"}.get(kind, "u")
        made = Tile(self.fresh(letter), dtype or self.dtype(), kind, scope or self.rng.choice(("shared", "fragment")))
        self.tiles[made.name] = made
        return made

    def readable(self, scope: Scope, floats: bool | None = None) -> list[Tile]:
        """Tiles with values, of floats, of integers or all."""
        tiles = [t for t in self.tiles.values() if t.name in scope.defined]
        return [t for t in tiles if floats is None or (t.dtype not in INTEGERS) == floats]

    # indices

    def index(self, role: str, here: Element) -> p.Expr:
        """An index along a role: the loop's own variable, at times something else inside of the tile."""
        extent = self.dims[SIZES[role]]
        if role not in here.vars:
            same = [var for other, var in here.vars.items() if self.dims[SIZES[other]] == extent]
            if same and self.chance(0.6):
                return p.Name(self.rng.choice(same))
            return p.Const(self.rng.choice((0, 0, extent - 1, extent // 2)))
        var = p.Name(here.vars[role])
        if not self.chance(self.odd):
            return var
        others = [v for other, v in here.vars.items() if self.dims[SIZES[other]] == extent and v != var.name]
        forms: list[p.Expr] = [
            p.Bin("-", p.Bin("-", size(role), p.Const(1)), var),
            p.Const(self.rng.choice((0, extent - 1))),
            p.Bin("%", p.Bin("+", var, p.Const(1)), size(role)),
            p.Bin("//", var, p.Const(2)),
            *map(p.Name, others),
        ]
        if extent % 2 == 0:
            forms.append(p.Bin("^", var, p.Const(1)))
        return self.rng.choice(forms)

    def element(self, tile: Tile, here: Element) -> p.Ref:
        index = tuple(self.index(role, here) for role in tile.kind)
        if index != tuple(p.Name(here.vars.get(role, "")) for role in tile.kind):
            self.irregular.add(tile.name)
        return p.Ref(tile.name, index)

    def position(self, here: Element, scope: Scope) -> p.Expr:
        """A number of a row or column, in the tile or in the tensor."""
        return self.position_of(self.rng.choice(sorted(here.vars)), here, scope)

    def position_of(self, role: str, here: Element, scope: Scope) -> p.Expr:
        """The number of a row or of a column, as it is or rounded to a block, or within a block."""
        var = here.vars[role]
        place = add(scope.origins[role], p.Name(var)) if role in scope.origins and self.chance(0.5) else p.Name(var)
        shape = self.rng.randrange(5)
        if shape == 0:
            return p.Bin("%", place, p.Const(self.rng.choice((2, 3, 4, 8))))
        if shape == 1:
            return p.Bin("//", place, p.Const(self.rng.choice((2, 4))))
        return place

    # expressions

    def integer(self, here: Element, scope: Scope, depth: int) -> p.Expr:
        """An expression of int32."""
        if depth <= 0 or self.chance(0.3):
            tiles = self.readable(scope, floats=False)
            if tiles and self.chance(0.6):
                tile = self.rng.choice(tiles)
                ref = self.element(tile, here)
                return ref if tile.dtype == "int32" else p.Cast("int32", ref)
            names = [n for n, t in {**here.lets, **scope.scalars}.items() if t == "int32"]
            if names and self.chance(0.4):
                return p.Name(self.rng.choice(names))
            if here.vars and self.chance(0.6):
                return self.position(here, scope)
            return p.Const(self.rng.choice((0, 1, 2, 3, 5, -1)))
        if self.chance(0.12):
            return p.Cast("int32", self.floating(here, scope, depth - 1))
        if self.chance(0.12):
            return p.Select(
                self.truth(here, scope, depth - 1),
                self.integer(here, scope, depth - 1),
                self.integer(here, scope, depth - 1),
            )
        left = self.integer(here, scope, depth - 1)
        op = self.rng.choices(
            ("+", "-", "*", "min", "max", "&", "|", "^", "<<", ">>", "//", "%"), (4, 4, 3, 2, 2, 1, 1, 1, 1, 1, 1, 1)
        )[0]
        right = (
            p.Const(self.rng.choice((1, 2, 3)))
            if op in ("<<", ">>", "//", "%")
            else self.integer(here, scope, depth - 1)
        )
        if isinstance(left, p.Const) and isinstance(right, p.Const):
            return left
        return p.Bin(op, left, right)

    def floating(self, here: Element, scope: Scope, depth: int) -> p.Expr:
        """An expression of floats."""
        if depth <= 0 or self.chance(0.25):
            tiles = self.readable(scope, floats=True)
            if tiles and self.chance(0.75):
                return self.element(self.rng.choice(tiles), here)
            names = [n for n, t in {**here.lets, **scope.scalars}.items() if t == "float32"]
            if names and self.chance(0.5):
                return p.Name(self.rng.choice(names))
            return p.Const(self.rng.choice(CONSTANTS))
        what = self.rng.random()
        if what < 0.14:
            return self.function(here, scope, depth)
        if what < 0.24:
            return p.Select(
                self.truth(here, scope, depth - 1),
                self.floating(here, scope, depth - 1),
                self.floating(here, scope, depth - 1),
            )
        if what < 0.30:
            return p.Cast(self.rng.choice(FLOATS), self.floating(here, scope, depth - 1))
        if what < 0.36:
            return p.Cast("float32", self.integer(here, scope, depth - 1))
        if what < 0.40:
            return p.Un("neg", self.floating(here, scope, depth - 1))
        op = self.rng.choices(("+", "-", "*", "/", "min", "max"), (5, 4, 4, 1, 2, 2))[0]
        left, right = self.floating(here, scope, depth - 1), self.floating(here, scope, depth - 1)
        if op == "/":
            right = (
                p.Bin("+", p.Un("abs", right), p.Const(self.rng.choice((0.5, 1.0))))
                if self.chance(0.6)
                else p.Const(self.rng.choice((2.0, 3.0, -4.0)))
            )
        if (self.chance(0.06) or (isinstance(left, p.Const) and isinstance(right, p.Const))) and here.vars:
            right = self.position(here, scope)
        return p.Bin(op, left, right)

    def function(self, here: Element, scope: Scope, depth: int) -> p.Expr:
        """A function of a float, where it is defined."""
        inner = self.floating(here, scope, depth - 1)
        op = self.rng.choice(self.functions)
        if op in ("exp", "exp2") and self.chance(0.7):
            inner = p.Bin("min", inner, p.Const(2.0))
        if op in ("sqrt", "rsqrt", "log", "log2"):
            inner = p.Bin("+", p.Un("abs", inner), p.Const(0.5))
        if isinstance(inner, p.Const):
            return inner
        return p.Un(op, inner)

    def truth(self, here: Element, scope: Scope, depth: int) -> p.Expr:
        """A condition of one element."""
        if depth > 0 and self.chance(0.15):
            return p.Bin(
                self.rng.choice(("and", "or")), self.truth(here, scope, depth - 1), self.truth(here, scope, depth - 1)
            )
        op = self.rng.choice(("<", "<=", ">", ">=", "==", "!="))
        if here.vars and self.chance(0.45):
            if len(here.vars) > 1 and self.chance(0.4):
                a, b = self.rng.sample(sorted(here.vars), 2)
                return p.Bin(op, *(self.position_of(role, here, scope) for role in (a, b)))
            bound = p.Const(self.rng.choice((0, 1, 2, 3, 7, 12)))
            return p.Bin(op, self.position(here, scope), bound)
        side = self.floating if self.chance(0.7) else self.integer
        left = side(here, scope, min(depth, 1))
        if isinstance(left, p.Const):
            return (
                p.Bin(op, p.Cast("int32", p.Const(1)), p.Const(0))
                if not here.vars
                else p.Bin(op, self.position(here, scope), p.Const(2))
            )
        right = (
            p.Const(self.rng.choice(CONSTANTS))
            if side == self.floating and self.chance(0.5)
            else side(here, scope, min(depth, 1))
        )
        return p.Bin(op, left, right)

    def valued(self, dtype: str, here: Element, scope: Scope, depth: int) -> p.Expr:
        """What may be assigned to an element of the type."""
        if dtype not in INTEGERS:
            return self.floating(here, scope, depth) if self.chance(0.92) else self.integer(here, scope, depth)
        if self.chance(0.2):
            return p.Cast(self.rng.choice((dtype, "int32")), self.floating(here, scope, depth))
        return self.integer(here, scope, depth)

    # element-wise loops

    def elements(
        self, here: Element, scope: Scope, kind: str, target: Tile | None, depth: int
    ) -> tuple[list[p.Stmt], list[str]]:
        """Statements of one iteration, and the tiles that all iterations together write."""
        body: list[p.Stmt] = []
        written: list[str] = []
        known = scope.inner()
        for _ in range(self.rng.choices((1, 2, 3, 4), (6, 3, 2, 1))[0]):
            what = self.rng.random()
            if what < 0.15:
                dtype = self.rng.choice(("float32", "float32", "int32"))
                value = self.floating(here, known, 2) if dtype == "float32" else self.integer(here, known, 2)
                if isinstance(value, (p.Const, p.Name)):
                    continue
                name = self.fresh("loc")
                body.append(p.Let(name, value))
                here.lets[name] = dtype
                continue
            chosen = self.destination(kind, known) if target is None else target
            target = None
            ref = p.Ref(chosen.name, tuple(p.Name(here.vars[role]) for role in chosen.kind))
            if what < 0.30 and chosen.name in known.defined:
                body.append(self.conditional(ref, chosen, here, known, depth))
                continue
            if chosen.name in known.defined and kind == "m" and self.chance(0.15):
                body.append(self.inner_loop(ref, chosen, here, known))
                continue
            op = self.rng.choice(("+", "-", "*")) if chosen.name in known.defined and self.chance(0.2) else ""
            body.append(p.Assign(ref, self.valued(chosen.dtype, here, known, depth), op))
            known.defined.add(chosen.name)
            written.append(chosen.name)
        return body, written

    def conditional(self, ref: p.Ref, tile: Tile, here: Element, scope: Scope, depth: int) -> p.Stmt:
        """An assignment in some iterations only."""
        arms = [p.Assign(ref, self.valued(tile.dtype, here, scope, depth - 1)) for _ in range(2)]
        orelse = (arms[1],) if self.chance(0.4) else ()
        return p.If(self.truth(here, scope, 1), (arms[0],), orelse)

    def inner_loop(self, ref: p.Ref, tile: Tile, here: Element, scope: Scope) -> p.Stmt:
        """Each iteration goes along a row."""
        var = self.fresh("e")
        deeper = Element({**here.vars, "n": var}, dict(here.lets))
        extent = size("n") if self.chance(0.6) else p.Const(min(4, self.dims["BN"]))
        step = p.Assign(ref, self.valued(tile.dtype, deeper, scope, 1), self.rng.choice(("+", "+", "")))
        return p.For(var, extent, "serial", (step,))

    def destination(self, kind: str, scope: Scope) -> Tile:
        """A tile with exactly the roles of the loop, an old or a new one."""
        fitting = [t for t in self.tiles.values() if sorted(t.kind) == sorted(kind) and t.name in scope.defined]
        if fitting and self.chance(0.6):
            return self.rng.choice(fitting)
        return self.new_tile(kind)

    def parallel(self, scope: Scope, kind: str, target: Tile | None = None) -> list[p.Stmt]:
        """A loop over all elements of tiles of this kind."""
        choices = (("i", "j", "q"), ("x", "y", "z"), ("r", "c", "d"), ("j", "i", "p"))
        names = self.rng.choice([some for some in choices if not self.taken.intersection(some)])
        here = Element(dict(zip(kind, names, strict=False)))
        body, written = self.elements(here, scope, kind, target, self.rng.choice((1, 1, 2, 2, 3)))
        if not any(isinstance(s, (p.Assign, p.If)) for s in body):
            return []
        scope.defined |= set(written)
        loop = p.Parallel(tuple(here.vars.values()), tuple(size(role) for role in kind), tuple(body))
        return [loop]
