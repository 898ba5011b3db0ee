"""Random Triton kernels: masked loads, expressions of blocks, reductions, products, loops, stores."""

from __future__ import annotations

import random

from tests.generated import program as p
from tests.generated.drawing import EXTENTS, SIZES, Draws, Element, Scope, Tile, add, size


class TritonDraws(Draws):
    """One kernel: :meth:`program`. Tiles are float32 or int32, operands of products float16."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self.outs: list[p.Buffer] = []
        self.odd = 0.0
        self.functions = ("exp", "exp2", "sqrt", "rsqrt", "abs", "log", "sigmoid")
        self.with_gemm = self.chance(0.35)

    def program(self) -> p.Program:
        """A program, which may have no meaning: the oracle says so."""
        rng = self.rng
        pick = (16, 32, 64)
        self.dims = {"BM": rng.choice(pick), "BN": rng.choice(pick), "BK": rng.choice((16, 32)), "C": 1}
        ragged = self.chance(0.4)
        for role, most in (("m", 3), ("n", 3), ("k", 2)):
            tile = self.dims[SIZES[role]]
            self.dims[EXTENTS[role]] = tile * rng.randint(1, most) - (
                rng.randint(1, tile // 2) if ragged and self.chance(0.6) else 0
            )
        roles = rng.choice(("mn", "m", "n")) if not self.with_gemm else rng.choice(("mn", "nm"))
        names = rng.choice((("pid_m", "pid_n"), ("pid", "col"), ("i", "j")))
        self.grid = dict(zip(roles, names, strict=False))
        scope = Scope(origins={role: p.Bin("*", p.Name(var), size(role)) for role, var in self.grid.items()})
        for role in "mn":
            if role not in self.grid:  # one block has the whole axis
                scope.origins[role] = p.Const(0)
                self.dims[EXTENTS[role]] = (
                    rng.randint(self.dims[SIZES[role]] // 2 + 1, self.dims[SIZES[role]])
                    if ragged
                    else self.dims[SIZES[role]]
                )
        alpha = [("alpha", rng.choice((0.5, 1.5, 2.0)))] if self.chance(0.3) else []
        scope.scalars |= {name: "float32" for name, _ in alpha}
        body: list[p.Stmt] = []
        for _ in range(rng.randint(1, 3)):
            body += self.load(scope, rng.choice(("mn", "mn", "m", "n")))
        for _ in range(rng.randint(1, 5)):
            body += self.statement(scope, 2)
        tiles = [
            t
            for t in self.tiles.values()
            if t.name in scope.defined and "k" not in t.kind and all(r in t.kind for r in self.grid)
        ]
        for tile in {t.name: t for t in [*tiles[-2:], *rng.sample(tiles, min(1, len(tiles)))]}.values():
            body += self.store(scope, tile)
        blocks = tuple((var, p.Bin("ceildiv", p.Name(EXTENTS[role]), size(role))) for role, var in self.grid.items())
        sizes = tuple((n, self.dims[n]) for n in ("M", "N", "K", "BM", "BN", "BK")) + tuple(alpha)
        style = (
            ("strides", self.chance(0.5)),
            ("masked", self.chance(0.3)),
            ("out_idx", False),
            ("suffix", self.chance(0.5)),
            ("pointers", rng.choice(("plain", "plain", "advance", "block"))),
        )
        launch = p.Launch(blocks, tuple(t.buffer for t in self.tiles.values()), tuple(body))
        return p.Program(sizes, (*self.tensors, *self.outs), (launch,), style)

    def load(self, scope: Scope, kind: str, dtype: str = "", into: str = "") -> list[p.Stmt]:
        given = dtype or self.rng.choice(("float32", "float32", "float16", "int32"))
        tensor = p.Buffer(f"X{len(self.tensors)}", given, tuple(p.Name(EXTENTS[role]) for role in kind), "in")
        self.tensors.append(tensor)
        tile = self.new_tile(kind, into or ("int32" if given == "int32" else "float32"), "block")
        scope.defined.add(tile.name)
        starts = [scope.origins[role] for role in kind]
        if not dtype and self.chance(0.1):
            axis = self.rng.randrange(len(kind))
            starts[axis] = add(starts[axis], p.Const(self.rng.choice((1, 2))))
        self.read.setdefault(tensor.name, []).append(tuple(starts))
        body: list[p.Stmt] = [p.Copy(p.Region(tensor.name, tuple(starts), tile.shape), tile.whole)]
        if not dtype and "n" in kind and tile.dtype == "float32" and self.chance(0.2):
            body.append(self.filled(scope, tile))
        return body

    def filled(self, scope: Scope, tile: Tile) -> p.Stmt:
        """Something else than 0 behind the end of the rows."""
        here = Element(dict(zip(tile.kind, ("i_", "j_"), strict=False)))
        element = p.Ref(tile.name, tuple(p.Name(here.vars[role]) for role in tile.kind))
        inside = p.Bin("<", add(scope.origins["n"], p.Name(here.vars["n"])), p.Name("N"))
        value = p.Select(inside, element, p.Const(self.rng.choice((-float("inf"), 1.0, -100.0))))
        return p.Parallel(tuple(here.vars.values()), tile.shape, (p.Assign(element, value),))

    def store(self, scope: Scope, tile: Tile) -> list[p.Stmt]:
        starts = tuple(scope.origins[role] for role in tile.kind)
        old = self.in_place(tile, starts)
        if old is not None and self.chance(0.5):
            return [p.Copy(tile.whole, p.Region(self.overwritten(old).name, starts, tile.shape))]
        dtype = self.rng.choice(("float32", "float16")) if tile.dtype == "float32" else tile.dtype
        out = p.Buffer(f"Y{len(self.outs)}", dtype, tuple(p.Name(EXTENTS[role]) for role in tile.kind), "out")
        self.outs.append(out)
        return [p.Copy(tile.whole, p.Region(out.name, starts, tile.shape))]

    def dtype(self) -> str:
        return self.rng.choice(("float32", "float32", "float32", "int32"))

    def statement(self, scope: Scope, depth: int) -> list[p.Stmt]:
        what = self.rng.random()
        if what < 0.2:
            return self.reduction(scope)
        if what < 0.26:
            kind = self.rng.choice(("mn", "m"))
            tile = self.new_tile(kind, "float32", "block")
            scope.defined.add(tile.name)
            return [p.Fill(tile.whole, self.rng.choice((0, 0.5, 1.0)))]
        if what < 0.45 and depth > 0:
            return self.product(scope) if self.with_gemm and self.chance(0.7) else self.loop(scope, depth)
        if what < 0.52 and depth > 0:
            return self.branch(scope, depth)
        return self.formula(scope)

    def formula(self, scope: Scope) -> list[p.Stmt]:
        seen = [t.kind for t in self.readable(scope)]
        kind = self.rng.choice(seen) if seen and self.chance(0.7) else "mn"
        here = Element(dict(zip(kind, ("i_", "j_"), strict=False)))
        tile = self.destination(kind, scope)
        value = self.valued(tile.dtype, here, scope, self.rng.choice((1, 2, 2, 3)))
        if kind != tile.kind or not any(
            isinstance(n, p.Ref) and len(self.tiles[n.buffer].kind) == len(kind) for n in p.nodes(value)
        ):
            return []
        scope.defined.add(tile.name)
        target = p.Ref(tile.name, tuple(p.Name(here.vars[role]) for role in tile.kind))
        return [p.Parallel(tuple(here.vars.values()), tile.shape, (p.Assign(target, value),))]

    def readable(self, scope: Scope, floats: bool | None = None) -> list[Tile]:
        return [t for t in super().readable(scope, floats) if t.dtype in ("float32", "int32")]

    def element(self, tile: Tile, here: Element) -> p.Ref:
        if any(role not in here.vars for role in tile.kind):
            tile = next((t for t in self.tiles.values() if t.kind == "".join(here.vars)), tile)
        return super().element(tile, here)

    def reduction(self, scope: Scope) -> list[p.Stmt]:
        tiles = [t for t in self.readable(scope) if len(t.kind) == 2]
        if not tiles:
            return []
        tile, axis = self.rng.choice(tiles), self.rng.randrange(2)
        target = self.new_tile(tile.kind[1 - axis], tile.dtype, "block")
        scope.defined.add(target.name)
        return [p.Reduce(self.rng.choice(("sum", "sum", "max", "min")), tile.name, target.name, axis)]

    def loop(self, scope: Scope, depth: int) -> list[p.Stmt]:
        """Tiles of rows along K, one after the other; what is carried round the loop had a value in front of it."""
        var = self.fresh("k")
        inner = scope.inner()
        inner.origins["k"] = p.Bin("*", p.Name(var), size("k"))
        inner.scalars[var] = "int32"
        row = self.new_tile("m", "float32", "block")
        start = p.Fill(row.whole, 0)
        scope.defined.add(row.name)
        inner.defined.add(row.name)
        body = self.load(inner, "mk", self.rng.choice(("float32", "float16")), "float32")
        tile = list(self.tiles.values())[-1]
        body += [s for _ in range(2) for s in self.formula(inner)]
        part = self.new_tile("m", "float32", "block")
        body.append(p.Reduce(self.rng.choice(("sum", "max")), tile.name, part.name, 1))
        i = (p.Name("i_"),)
        op = self.rng.choice(("+", "max"))
        body.append(
            p.Parallel(
                ("i_",), row.shape, (p.Assign(p.Ref(row.name, i), p.Bin(op, p.Ref(row.name, i), p.Ref(part.name, i))),)
            )
        )
        return [start, p.For(var, p.Bin("ceildiv", p.Name("K"), size("k")), "range", tuple(body))]

    def product(self, scope: Scope) -> list[p.Stmt]:
        var = self.fresh("k")
        inner = scope.inner()
        inner.origins["k"] = p.Bin("*", p.Name(var), size("k"))
        acc = self.new_tile("mn", "float32", "block")
        turned = self.chance(0.3)
        body = self.load(inner, "mk", "float16", "float16")
        a = list(self.tiles.values())[-1]
        body += self.load(inner, "nk" if turned else "kn", "float16", "float16")
        b = list(self.tiles.values())[-1]
        scope.defined.add(acc.name)
        gemm = p.Gemm(a.name, b.name, acc.name, transpose_b=turned)
        return [p.Fill(acc.whole, 0), p.For(var, p.Bin("ceildiv", p.Name("K"), size("k")), "range", (*body, gemm))]

    def branch(self, scope: Scope, depth: int) -> list[p.Stmt]:
        """A condition of the block; values that did not exist before are not used behind it."""
        name = self.rng.choice(sorted(self.grid.values()))
        inner = scope.inner()
        body = [s for _ in range(2) for s in self.formula(inner)]
        condition = p.Bin(self.rng.choice(("<", "==", ">")), p.Name(name), p.Const(self.rng.choice((0, 1))))
        return [p.If(condition, tuple(body))] if body else []


def draw(seed: int) -> p.Program:
    """The program of a seed."""
    made = TritonDraws(random.Random(seed)).program()
    used = p.names(made.launches)
    return p.Program(made.sizes, tuple(t for t in made.tensors if t.name in used), made.launches, made.style)
