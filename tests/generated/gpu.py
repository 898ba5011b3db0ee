"""Random GPU kernels: loads, element-wise loops, reductions, products, loops and branches of blocks, stores."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from tests.generated import program as p
from tests.generated.drawing import EXTENTS, SIZES, Draws, Element, Scope, Tile, add, size

KINDS = ("mn", "mn", "mn", "m", "n", "nm", "cmn", "cm", "mc")


class GpuDraws(Draws):
    """One kernel after the other; :meth:`program` is the only way in."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self.outs: list[p.Buffer] = []
        self.blocks: tuple[tuple[str, p.Expr], ...] = ()
        self.with_gemm = self.chance(0.35)
        self.ragged = self.chance(0.3)

    def program(self) -> p.Program:
        """A program, which may have no meaning: the oracle says so."""
        rng = self.rng
        large = (16, 32, 64) if self.with_gemm else (4, 8, 16, 32, 64)
        self.dims = {
            "BM": rng.choice(large),
            "BN": rng.choice(large),
            "BK": rng.choice((16, 32)),
            "C": rng.choice((2, 3, 4)),
        }
        if not self.with_gemm and self.chance(0.12):
            self.dims["BN"] = rng.choice((1, 2, 5, 12, 24, 128))
        if not self.with_gemm and self.chance(0.08):
            self.dims["BM"] = rng.choice((1, 2, 3, 12, 128))
        for role, most in (("m", 3), ("n", 3), ("k", 2)):
            tile = self.dims[SIZES[role]]
            extent = tile * rng.randint(1, most)
            if self.ragged and self.chance(0.6) and (role != "n" or extent > 8):
                extent = max(1, extent - rng.randint(1, max(1, tile // 2)))
            self.dims[EXTENTS[role]] = extent
        launches = [self.launch(number) for number in range(2 if self.chance(0.06) else 1)]
        sizes = tuple((n, self.dims[n]) for n in ("M", "N", "K", "BM", "BN", "BK", "C"))
        return p.Program(sizes, (*self.tensors, *self.outs), tuple(launches), self.style())

    def style(self) -> tuple[tuple[str, object], ...]:
        literal = tuple(n for n in ("M", "N", "K", "BM", "BN", "BK", "C") if self.chance(0.4))
        symbolic = ("M",) if self.chance(0.12) else ()
        return (
            ("literal", tuple(n for n in literal if n not in symbolic)), ("symbolic", symbolic),
            ("slices", self.chance(0.5)), ("clear", self.chance(0.5)), ("out_idx", self.chance(0.6)),
            ("threads", self.rng.choice((64, 128, 256))), ("stages", self.rng.choice((1, 2, 3))),
            ("at_once", self.chance(0.2)),
        )  # fmt: skip

    # launches

    def launch(self, number: int) -> p.Launch:
        rng = self.rng
        self.tiles = {}
        roles = rng.choice(("mn", "mn", "nm", "m"))
        names = rng.choice((("bx", "by"), ("by", "bx"), ("pid_m", "pid_n"), ("b0", "b1"), ("cid", "vid"), ("i", "j")))
        self.grid = dict(zip(roles, names, strict=False))
        attention = self.with_gemm and roles == "m"
        if "n" not in self.grid and not attention:
            self.dims["N"] = self.dims["BN"]
        self.taken = set(self.grid.values())
        self.blocks = tuple((var, self.parts(role)) for role, var in self.grid.items())
        scope = Scope(origins={role: p.Bin("*", p.Name(var), size(role)) for role, var in self.grid.items()})
        if "n" not in self.grid and not attention:
            scope.origins["n"] = p.Const(0)
        scope.origins["c"] = p.Const(0)
        body: list[p.Stmt] = []
        if attention:
            self.dims["C"], self.dims["K"] = rng.choice((16, 32)), self.dims["BK"]
            body += self.attention(scope)
        for _ in range(rng.randint(1, 2) - attention):
            body += self.load(scope, rng.choice(self.kinds(scope)))
        for _ in range(rng.randint(1, 3) - attention):
            body += self.statement(scope, 2)
        body += self.stores(scope)
        self.shared_where_needed(body)
        return p.Launch(self.blocks, tuple(t.buffer for t in self.tiles.values()), tuple(body))

    def parts(self, role: str) -> p.Expr:
        """How many tiles an axis has."""
        extent, tile = p.Name(EXTENTS[role]), size(role)
        whole = self.dims[EXTENTS[role]] % self.dims[SIZES[role]] == 0
        return p.Bin("//" if whole and self.chance(0.4) else "ceildiv", extent, tile)

    def shared_where_needed(self, body: list[p.Stmt]) -> None:
        """Fragments are read by the thread that wrote them: everything else goes through shared memory."""
        products = [s for s in p.nodes(tuple(body)) if isinstance(s, p.Gemm)]
        loaded = {
            s.target.buffer for s in p.nodes(tuple(body)) if isinstance(s, p.Copy) and s.source.buffer.startswith("X")
        }
        shared = {s.b for s in products} | {s.a for s in products if s.a in loaded or s.transpose_a} | self.irregular
        accumulators = {s.c for s in p.nodes(tuple(body)) if isinstance(s, p.Gemm)}
        for tile in self.tiles.values():
            if tile.name in accumulators:
                tile.scope = "fragment"
            elif tile.name in shared:
                tile.scope = "shared"

    # memory

    def load(self, scope: Scope, kind: str, dtype: str | None = None, into: Tile | None = None) -> list[p.Stmt]:
        """A tile of a new or an old tensor."""
        if any(role not in scope.origins for role in kind):
            return []
        extents = tuple(p.Name(EXTENTS[role]) for role in kind)
        wanted = dtype or self.dtype()
        known = [t for t in self.tensors if t.shape == extents and (dtype is None or t.dtype == dtype)]
        if known and self.chance(0.3):
            tensor = self.rng.choice(known)
        else:
            tensor = p.Buffer(f"X{len(self.tensors)}", wanted, extents, "in")
            self.tensors.append(tensor)
        same = tensor.dtype if self.chance(0.85) else None
        tile = into or self.new_tile(kind, dtype or same)
        starts = [scope.origins[role] for role in kind]
        if into is None and dtype is None and self.chance(0.06):
            axis = self.rng.randrange(len(kind))  # one further: what is behind the end is 0
            starts[axis] = add(starts[axis], p.Const(1))
        scope.defined.add(tile.name)
        return [p.Copy(p.Region(tensor.name, tuple(starts), tile.shape), tile.whole)]

    def stores(self, scope: Scope) -> list[p.Stmt]:
        """One to three tiles go to tensors of their own."""
        wanted = [t for t in self.tiles.values() if t.name in scope.defined and all(r in scope.origins for r in t.kind)]
        newest = wanted[-3:]
        chosen = self.rng.sample(newest, min(len(newest), self.rng.randint(1, 3)))
        return [s for tile in chosen for s in self.store(scope, tile)]

    def store(self, scope: Scope, tile: Tile) -> list[p.Stmt]:
        others = [role for role in self.grid if role not in tile.kind]
        extents = tuple(self.parts(role) for role in others) + tuple(p.Name(EXTENTS[role]) for role in tile.kind)
        dtype = (
            tile.dtype
            if self.chance(0.8) or tile.dtype not in ("float32", "float16")
            else self.rng.choice(("float32", "float16"))
        )
        out = p.Buffer(f"Y{len(self.outs)}", dtype, extents, "out")
        self.outs.append(out)
        starts = tuple(p.Name(self.grid[role]) for role in others) + tuple(scope.origins[role] for role in tile.kind)
        if self.chance(0.15):
            return self.store_elements(scope, tile, out, starts)
        return [p.Copy(tile.whole, p.Region(out.name, starts, (None,) * len(others) + tile.shape))]

    def store_elements(self, scope: Scope, tile: Tile, out: p.Buffer, starts: tuple[p.Expr, ...]) -> list[p.Stmt]:
        """A loop that writes to the tensor itself, behind no end of it."""
        names = ("i", "j", "q") if "i" not in self.grid.values() else ("r", "s", "t")
        here = Element(dict(zip(tile.kind, names, strict=False)))
        ahead = len(starts) - len(tile.kind)
        places = [add(start, p.Name(here.vars[role])) for start, role in zip(starts[ahead:], tile.kind, strict=True)]
        value = (
            self.valued(tile.dtype, here, scope, 1)
            if self.chance(0.5)
            else p.Ref(tile.name, tuple(p.Name(here.vars[r]) for r in tile.kind))
        )
        statement: p.Stmt = p.Assign(p.Ref(out.name, (*starts[:ahead], *places)), value)
        for place, role in zip(places, tile.kind, strict=True):
            if self.dims[EXTENTS[role]] % self.dims[SIZES[role]]:
                statement = p.If(p.Bin("<", place, p.Name(EXTENTS[role])), (statement,))
        return [p.Parallel(tuple(here.vars.values()), tile.shape, (statement,))]

    # statements of blocks

    def statement(self, scope: Scope, depth: int) -> list[p.Stmt]:
        """One statement, or none where what was drawn does not fit."""
        choices: list[tuple[float, Callable[[Scope, int], list[p.Stmt]]]] = [
            (5.0, self.any_parallel), (2.0, self.any_reduce), (1.2, self.any_copy), (0.6, self.any_fill),
            (0.8, self.reload), (0.8, self.scalar), (0.5, self.by_rows), (0.6, self.direct),
        ]  # fmt: skip
        if depth > 0:
            choices += [(1.6, self.loop), (0.9, self.branch), (0.4, self.macro)]
            if self.with_gemm:
                choices.append((3.0, self.gemm_loop))
        weights, makers = zip(*choices, strict=True)
        maker: Callable[[Scope, int], list[p.Stmt]] = self.rng.choices(makers, weights)[0]
        return maker(scope, depth)

    def kinds(self, scope: Scope) -> list[str]:
        return [
            kind
            for kind in KINDS
            if all(role in scope.origins for role in kind) and ("c" not in kind or self.chance(0.5))
        ]

    def any_parallel(self, scope: Scope, depth: int) -> list[p.Stmt]:
        seen = [t.kind for t in self.readable(scope)]
        kind = self.rng.choice(seen) if seen and self.chance(0.7) else self.rng.choice(self.kinds(scope))
        return self.parallel(scope, kind)

    def any_reduce(self, scope: Scope, depth: int) -> list[p.Stmt]:
        tiles = [t for t in self.readable(scope) if len(t.kind) > 1 and t.dtype in ("float32", "float16", "int32")]
        if not tiles:
            return []
        tile = self.rng.choice(tiles)
        axis = self.rng.randrange(len(tile.kind)) if self.chance(0.4) else len(tile.kind) - 1
        kind = tile.kind[:axis] + tile.kind[axis + 1 :]
        operator = self.rng.choice(("sum", "sum", "max", "max", "min", "absmax", "abssum"))
        old = [t for t in self.readable(scope) if t.kind == kind and t.dtype == tile.dtype]
        clear = operator == "abssum" or not (old and self.chance(0.3))
        target = self.rng.choice(old) if old and (not clear or self.chance(0.4)) else self.new_tile(kind, tile.dtype)
        scope.defined.add(target.name)
        return [p.Reduce(operator, tile.name, target.name, axis if self.chance(0.6) else axis - len(tile.kind), clear)]

    def any_copy(self, scope: Scope, depth: int) -> list[p.Stmt]:
        tiles = self.readable(scope)
        if not tiles:
            return []
        source = self.rng.choice(tiles)
        old = [t for t in tiles if t.kind == source.kind and t is not source]
        if old and self.chance(0.35):
            return self.window(source, self.rng.choice(old))
        same = source.dtype if self.chance(0.6) else self.rng.choice(("float32", "float16"))
        target = self.rng.choice(old) if old and self.chance(0.4) else self.new_tile(source.kind, same)
        scope.defined.add(target.name)
        return [p.Copy(source.whole, target.whole)]

    def window(self, source: Tile, target: Tile) -> list[p.Stmt]:
        """Some rows go to some rows."""
        rows = self.dims[SIZES[source.kind[0]]]
        if rows < 2:
            return []
        count = self.rng.choice([n for n in (1, 2, 4, 8, 16, 32) if n < rows])
        begins = [self.rng.choice((0, rows - count, self.rng.randrange(rows - count + 1))) for _ in range(2)]
        regions = [
            p.Region(t.name, (p.Const(at), *t.whole.starts[1:]), (p.Const(count), *t.shape[1:]))
            for t, at in zip((source, target), begins, strict=True)
        ]
        self.irregular |= {source.name, target.name}
        return [p.Copy(*regions)]

    def any_fill(self, scope: Scope, depth: int) -> list[p.Stmt]:
        tiles = self.readable(scope)
        tile = (
            self.rng.choice(tiles) if tiles and self.chance(0.5) else self.new_tile(self.rng.choice(self.kinds(scope)))
        )
        value = 0 if self.chance(0.5) else self.rng.choice((1, 2, 3))
        rows = self.dims[SIZES[tile.kind[0]]]
        if tile.name in scope.defined and rows > 2 and self.chance(0.35):
            count = self.rng.choice([n for n in (1, 2, 4, 8, 16) if n < rows])
            start = self.rng.choice((0, rows - count))
            self.irregular.add(tile.name)
            return [
                p.Fill(
                    p.Region(tile.name, (p.Const(start), *tile.whole.starts[1:]), (p.Const(count), *tile.shape[1:])),
                    value,
                )
            ]
        scope.defined.add(tile.name)
        return [p.Fill(tile.whole, value)]

    def reload(self, scope: Scope, depth: int) -> list[p.Stmt]:
        tiles = [t for t in self.readable(scope) if all(role in scope.origins for role in t.kind)]
        if tiles and self.chance(0.6):
            tile = self.rng.choice(tiles)
            return self.load(scope, tile.kind, tile.dtype, tile)
        return self.load(scope, self.rng.choice(self.kinds(scope)))

    def scalar(self, scope: Scope, depth: int) -> list[p.Stmt]:
        """An element of a tensor that all elements of the block see."""
        dtype = self.rng.choice(("float32", "float32", "int32", "float16"))
        role = self.rng.choice(sorted(self.grid))
        tensor = p.Buffer(f"X{len(self.tensors)}", dtype, (self.parts(role),), "in")
        self.tensors.append(tensor)
        value: p.Expr = p.Ref(tensor.name, (p.Name(self.grid[role]),))
        if self.chance(0.3):
            value = p.Bin("*", value, p.Const(2))
        name = self.fresh("s")
        scope.scalars[name] = "float32" if dtype == "float16" else dtype
        return [p.Let(name, value)]

    def by_rows(self, scope: Scope, depth: int) -> list[p.Stmt]:
        """A serial loop over rows around a loop over columns."""
        tiles = [t for t in self.readable(scope) if t.kind in ("mn", "nm")]
        if not tiles:
            return []
        tile = self.rng.choice(tiles)
        here = Element(dict(zip(tile.kind, ("h", "w"), strict=True)))
        self.odd, before = 0.05, self.odd
        body, _ = self.elements(here, scope, tile.kind, tile, 1)
        self.odd = before
        if any(t.name not in scope.defined for t in self.tiles.values() if t.name in p.names(tuple(body))):
            return []
        inner = p.Parallel(("w",), tile.shape[1:], tuple(body))
        return [p.For("h", tile.shape[0], self.rng.choice(("serial", "range")), (inner,))]

    def direct(self, scope: Scope, depth: int) -> list[p.Stmt]:
        """A loop that reads a tensor itself, behind no end of it."""
        kind = self.rng.choice([k for k in self.kinds(scope) if len(k) < 3])
        if any(self.dims[EXTENTS[role]] % self.dims[SIZES[role]] for role in kind):
            return []
        tensor = p.Buffer(f"X{len(self.tensors)}", self.dtype(), tuple(p.Name(EXTENTS[role]) for role in kind), "in")
        self.tensors.append(tensor)
        here = Element(dict(zip(kind, ("ii", "jj"), strict=False)))
        tile = self.new_tile(kind, tensor.dtype)
        read = p.Ref(tensor.name, tuple(add(scope.origins[role], p.Name(here.vars[role])) for role in kind))
        value: p.Expr = read
        if self.chance(0.6) and tensor.dtype in ("float32", "float16"):
            value = p.Bin(self.rng.choice("+-*"), read, self.floating(here, scope, 1))
        scope.defined.add(tile.name)
        target = p.Ref(tile.name, tuple(p.Name(here.vars[role]) for role in kind))
        return [p.Parallel(tuple(here.vars.values()), tile.shape, (p.Assign(target, value),))]

    # compound statements

    def several(self, scope: Scope, depth: int, most: int = 3) -> list[p.Stmt]:
        return [s for _ in range(self.rng.randint(1, most)) for s in self.statement(scope, depth - 1)]

    def loop(self, scope: Scope, depth: int) -> list[p.Stmt]:
        """A loop of blocks; what it loads may depend on its turn."""
        var = self.fresh("k")
        inner = scope.inner()
        body: list[p.Stmt] = []
        if self.chance(0.5):
            extent = self.parts("k")
            inner.origins["k"] = p.Bin("*", p.Name(var), size("k"))
            body += self.load(inner, self.rng.choice(("mk", "nk", "k", "km")))
        elif self.chance(0.2):
            extent = p.Bin("+", p.Name(self.blocks[0][0]), p.Const(1))
        else:
            extent = p.Const(self.rng.randint(1, 4))
        inner.scalars[var] = "int32"
        body += self.several(inner, depth)
        if not body:
            return []
        scope.defined |= inner.defined
        return [
            p.For(
                var,
                extent,
                self.rng.choice(("serial", "range", "Pipelined", "unroll") if self.chance(0.9) else ("serial",)),
                tuple(body),
            )
        ]

    def branch(self, scope: Scope, depth: int) -> list[p.Stmt]:
        """A condition that holds for a whole block."""
        names = [var for var, _ in self.blocks] + [
            n for n, t in scope.scalars.items() if t == "int32" and n.startswith("k")
        ]
        name = p.Name(self.rng.choice(names))
        left: p.Expr = p.Bin("%", name, p.Const(2)) if self.chance(0.3) else name
        condition = p.Bin(self.rng.choice(("<", "==", ">", "!=", ">=")), left, p.Const(self.rng.choice((0, 1, 1))))
        yes, no = scope.inner(), scope.inner()
        then = self.several(yes, depth)
        orelse = self.several(no, depth) if self.chance(0.35) else []
        scope.defined |= yes.defined & no.defined
        return [p.If(condition, tuple(then), tuple(orelse))] if then else []

    def macro(self, scope: Scope, depth: int) -> list[p.Stmt]:
        """Some statements behind a name."""
        lets = set(scope.scalars)
        body = self.several(scope, 0)
        scope.scalars = {n: t for n, t in scope.scalars.items() if n in lets}
        return [p.Macro(self.fresh("part"), tuple(body))] if body else []

    def gemm_loop(self, scope: Scope, depth: int) -> list[p.Stmt]:
        """A product of two tensors, tile by tile, with something done to the tiles on the way."""
        whole = self.chance(0.2)
        dtype, total = self.rng.choices((("float16", "float32"), ("float32", "float32"), ("int8", "int32")), (8, 2, 1))[
            0
        ]
        acc = self.new_tile("mn", total, "fragment")
        ta, tb = self.chance(0.25), self.chance(0.35)
        var = self.fresh("k")
        inner = scope.inner()
        inner.origins["k"] = p.Bin("*", p.Name(var), size("k"))
        body: list[p.Stmt] = []
        tiles = []
        for kind in (("mk", "km")[ta], ("kn", "nk")[tb]):
            used = [t for t in self.tiles.values() if (t.kind, t.dtype, t.scope) == (kind, dtype, "shared")]
            tile = self.rng.choice(used) if used and self.chance(0.6) else self.new_tile(kind, dtype, "shared")
            body += self.load(inner, kind, dtype, tile)
            tiles.append(tile)
        if self.chance(0.25):
            body += self.parallel(inner, tiles[0].kind, tiles[0])
        body.append(p.Gemm(tiles[0].name, tiles[1].name, acc.name, ta, tb, whole and self.dims["K"] <= self.dims["BK"]))
        if self.chance(0.15):
            inner.defined.add(acc.name)
            body += self.parallel(inner, "mn")
        scope.defined |= inner.defined | {acc.name}
        kind = self.rng.choice(("Pipelined", "Pipelined", "serial", "range"))
        start = p.Fill(acc.whole, 0)
        more = self.gemm_loop(scope, depth) if self.chance(0.25) else []
        if tiles[0].kind == "mk" and dtype != "int8" and self.chance(0.2):  # what was loaded last, behind the loop
            rows = self.new_tile("m", dtype)
            scope.defined.add(rows.name)
            more = [p.Reduce(self.rng.choice(("sum", "max")), tiles[0].name, rows.name, 1, True), *more]
        return [start, p.For(var, self.parts("k"), kind, tuple(body)), *more]

    def attention(self, scope: Scope) -> list[p.Stmt]:
        """Two products in a loop, with rows of statistics between them."""
        out = self.new_tile("mc", "float32", "fragment")
        rows = [self.new_tile("m", "float32", "fragment") for _ in range(self.rng.randint(1, 2))]
        scope.origins["k"] = p.Const(0)
        body = self.load(scope, "mk", "float16", self.new_tile("mk", "float16", "shared"))
        query = list(self.tiles.values())[-1]
        del scope.origins["k"]
        body += [p.Fill(out.whole, 0), *(p.Fill(row.whole, self.rng.choice((0, 1))) for row in rows)]
        scope.defined = {row.name for row in rows}
        var = self.fresh("k")
        inner = scope.inner()
        inner.origins |= {"n": p.Bin("*", p.Name(var), size("n")), "k": p.Const(0)}
        scores = self.new_tile("mn", "float32", "fragment")
        keys = self.new_tile("nk", "float16", "shared")
        steps = self.load(inner, "nk", "float16", keys)
        cleared = self.chance(0.5)
        steps += [] if cleared else [p.Fill(scores.whole, 0)]
        steps.append(p.Gemm(query.name, keys.name, scores.name, transpose_b=True, clear=cleared))
        inner.defined = {scores.name, *(row.name for row in rows)}
        for _ in range(self.rng.randint(1, 3)):
            steps += self.rng.choice((self.any_parallel, self.any_parallel, self.any_reduce, self.any_copy))(inner, 0)
        weights = self.new_tile("mn", "float16")
        steps.append(p.Copy(scores.whole, weights.whole))
        if self.chance(0.5):
            here = Element({"m": "i", "c": "j"} if "i" not in self.taken else {"m": "r", "c": "s"})
            ref = p.Ref(out.name, tuple(map(p.Name, here.vars.values())))
            scale = p.Ref(rows[0].name, (ref.index[0],))
            steps.append(p.Parallel(tuple(here.vars.values()), out.shape, (p.Assign(ref, p.Bin("*", ref, scale)),)))
        values = self.new_tile("nc", "float16", "shared")
        steps += [*self.load(inner, "nc", "float16", values), p.Gemm(weights.name, values.name, out.name)]
        body.append(p.For(var, self.parts("n"), self.rng.choice(("Pipelined", "serial")), tuple(steps)))
        scope.defined = {out.name, *(row.name for row in rows)}
        return body


def draw(seed: int) -> p.Program:
    """The program of a seed."""
    made = GpuDraws(random.Random(seed)).program()
    used = p.names(made.launches)
    return replace(made, tensors=tuple(t for t in made.tensors if t.name in used))
