"""Random kernels of Expert mode, and with ``workspace`` and ``vid``: the program has whole tiles, the text has halves.

The memory of a tile is its ``kind``: ``l1``, ``l0c``, ``ub`` (rows in halves), ``whole`` (UB, the same on both cores).
"""

from __future__ import annotations

import random

from tests.generated import program as p
from tests.generated.drawing import EXTENTS, SIZES, Draws, Element, Scope, Tile, size

HALF = p.Bin("//", p.Name("BM"), p.Const(2))
"""The rows of one core. ``i % HALF`` is printed as the row within a core, ``i // HALF`` as the core's number."""


class LegacyDraws(Draws):
    """One kernel: :meth:`program`."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self.outs: list[p.Buffer] = []
        self.odd = 0.0
        self.one_way = False
        self.functions = ("exp", "abs", "sqrt", "rsqrt", "log")

    def program(self) -> p.Program:
        """A program, which may have no meaning: the oracle says so."""
        rng = self.rng
        pick = (16, 32, 64)
        self.dims = {"BM": rng.choice(pick), "BN": rng.choice(pick), "BK": rng.choice(pick), "C": rng.choice(pick)}
        for role, most in (("m", 3), ("n", 3), ("k", 3)):
            self.dims[EXTENTS[role]] = self.dims[SIZES[role]] * rng.randint(1, most)
        if self.chance(0.12):
            self.dims["M"] -= rng.choice((1, 3, 8))
        pattern = rng.choices(
            (self.vector, self.epilogue, self.prologue, self.two_way, self.to_vectors, self.from_vectors),
            (4, 3, 2, 3, 0.6, 0.6),
        )[0]
        launch = pattern()
        sizes = tuple((n, self.dims[n]) for n in ("M", "N", "K", "BM", "BN", "BK", "C"))
        tensors = (*self.tensors, *self.outs)
        columns = all(len(t.shape) > 1 or t.shape != (p.Name("M"),) for t in tensors)
        return p.Program(sizes, tensors, (launch,), self.style(columns))

    def style(self, columns: bool) -> tuple[tuple[str, object], ...]:
        expert = self.one_way or self.chance(0.35)
        return (
            ("literal", tuple(n for n in ("M", "N", "K", "BM", "BN", "BK", "C") if self.chance(0.25))),
            ("expert", expert), ("half", self.rng.choice(("half", "//", "VEC_NUM"))),
            ("column", columns and self.chance(0.3)),
            ("slices", self.chance(0.3)), ("keys", self.rng.choice((2, 3, 4, 4))), ("branch_init", self.chance(0.3)),
            ("loop", self.rng.choice(("serial", "range"))), ("parity", self.chance(0.15)), ("ops", self.rng.random()),
            ("swapped", self.chance(0.06)), ("tasks", self.chance(0.12)),
            ("names", self.rng.choice((("cid", "vid"), ("bid", "sub"), ("cid", "vid")))),
        )  # fmt: skip

    # parts

    def over(self, roles: str) -> Scope:
        self.roles = dict(zip(roles, ("bx", "by"), strict=False))
        scope = Scope(origins={role: p.Bin("*", p.Name(var), size(role)) for role, var in self.roles.items()})
        scope.origins["c"] = p.Const(0)
        return scope

    def launch(self, body: list[p.Stmt]) -> p.Launch:
        blocks = tuple((var, p.Bin("ceildiv", p.Name(EXTENTS[role]), size(role))) for role, var in self.roles.items())
        used = p.names(tuple(body))
        return p.Launch(blocks, tuple(t.buffer for t in self.tiles.values() if t.name in used), tuple(body))

    def load(self, scope: Scope, kind: str, dtype: str, memory: str) -> tuple[Tile, p.Stmt]:
        tensor = p.Buffer(f"X{len(self.tensors)}", dtype, tuple(p.Name(EXTENTS[role]) for role in kind), "in")
        self.tensors.append(tensor)
        tile = self.new_tile(kind, dtype, memory)
        scope.defined.add(tile.name)
        starts = tuple(scope.origins[role] for role in kind)
        return tile, p.Copy(p.Region(tensor.name, starts, tile.shape), tile.whole)

    def loaded(self, scope: Scope, kind: str) -> list[p.Stmt]:
        """A tile of UB in float32, at times converted from halves."""
        memory = "ub" if kind[0] == "m" else "whole"
        tile, load = self.load(scope, kind, self.rng.choice(("float32", "float32", "float16")), memory)
        if tile.dtype == "float32":
            return [load]
        scope.defined.discard(tile.name)
        wide = self.new_tile(kind, "float32", memory)
        scope.defined.add(wide.name)
        return [load, p.Copy(tile.whole, wide.whole)]

    def store(self, scope: Scope, tile: Tile) -> list[p.Stmt]:
        others = [role for role in self.roles if role not in tile.kind]
        if others:
            return []
        body: list[p.Stmt] = []
        if tile.dtype == "float32" and self.chance(0.3) and tile.scope != "l0c":
            half = self.new_tile(tile.kind, "float16", tile.scope)
            body.append(p.Copy(tile.whole, half.whole))
            tile = half
        out = p.Buffer(f"Y{len(self.outs)}", tile.dtype, tuple(p.Name(EXTENTS[role]) for role in tile.kind), "out")
        self.outs.append(out)
        return [
            *body,
            p.Copy(tile.whole, p.Region(out.name, tuple(scope.origins[role] for role in tile.kind), tile.shape)),
        ]

    def pick(self, scope: Scope, kind: str, memory: str = "ub") -> Tile | None:
        tiles = [
            t
            for t in self.tiles.values()
            if t.name in scope.defined and t.kind == kind and t.scope == memory and t.dtype == "float32"
        ]
        return self.rng.choice(tiles) if tiles else None

    def target(self, scope: Scope, kind: str) -> Tile:
        old = self.pick(scope, kind)
        return old if old is not None and self.chance(0.6) else self.new_tile(kind, "float32", "ub")

    # vector statements

    def work(self, scope: Scope, kind: str, count: int) -> list[p.Stmt]:
        body = [s for _ in range(count) for s in self.vector_statement(scope, kind)]
        known = not any(isinstance(s, (p.Macro, p.If)) for s in p.nodes(tuple(body)))
        return [p.Macro(self.fresh("part"), tuple(body))] if body and known and self.chance(0.08) else body

    def vector_statement(self, scope: Scope, kind: str) -> list[p.Stmt]:
        what = self.rng.random()
        if what < 0.16:
            return self.reduction(scope, kind)
        if what < 0.22:
            tile = self.target(scope, kind)
            scope.defined.add(tile.name)
            return [p.Fill(tile.whole, self.rng.choice((0, 0.5, 1, 2)))]
        if what < 0.28:
            source = self.pick(scope, kind)
            tile = self.target(scope, kind)
            if source is None or source is tile:
                return []
            scope.defined.add(tile.name)
            return [p.Copy(source.whole, tile.whole)]
        if what < 0.34:
            inner = scope.inner()
            body = self.work(inner, kind, 2)
            body = [s for s in body if p.names(s) <= scope.defined | set(SIZES.values()) | {"i", "j"}]
            return [p.For(self.fresh("k"), p.Const(self.rng.randint(1, 3)), "serial", tuple(body))] if body else []
        if what < 0.38:
            condition = p.Bin(self.rng.choice(("<", "==", ">")), p.Name("bx"), p.Const(self.rng.choice((0, 1))))
            body = [
                s
                for s in self.work(scope.inner(), kind, 2)
                if p.names(s) <= scope.defined | set(SIZES.values()) | {"i", "j"}
            ]
            return [p.If(condition, tuple(body))] if body else []
        return self.formula(scope, self.rng.choice((kind, kind, kind, "m")))

    def reduction(self, scope: Scope, kind: str) -> list[p.Stmt]:
        source = self.pick(scope, kind)
        if source is None:
            return []
        row = self.target(scope, "m")
        scope.defined.add(row.name)
        return [
            p.Reduce(
                self.rng.choice(("sum", "max", "max", "min")), source.name, row.name, 1 if self.chance(0.5) else -1
            )
        ]

    def formula(self, scope: Scope, kind: str) -> list[p.Stmt]:
        """An element-wise loop, or the operator for it."""
        first = self.pick(scope, kind)
        if first is None:
            return []
        vars_ = ("i", "j")[: len(kind)]
        here = Element(dict(zip(kind, vars_, strict=True)))
        tile = self.target(scope, kind)
        ref = lambda t: p.Ref(t.name, tuple(p.Name(here.vars[r]) for r in t.kind))  # noqa: E731
        value: p.Expr = ref(first)
        what = self.rng.random()
        if what < 0.3:
            op = self.rng.choice(self.functions)
            if op == "exp":
                value = p.Un(op, value)
            elif op in ("sqrt", "rsqrt", "log"):
                positive = self.new_tile(kind, "float32", "ub")
                made = [
                    self.loop(here, kind, ref(positive), p.Un("abs", value)),
                    self.loop(here, kind, ref(positive), p.Bin("+", ref(positive), p.Const(0.5))),
                ]
                scope.defined |= {tile.name, positive.name}
                return [*made, self.loop(here, kind, ref(tile), p.Un(op, ref(positive)))]
            else:
                value = p.Un(op, value)
        else:
            op = self.rng.choices(("+", "-", "*", "max", "min"), (5, 4, 4, 2, 1))[0]
            choices: list[p.Expr] = [p.Const(self.rng.choice((0.5, 2.0, -0.25, 3.0)))]
            second = self.pick(scope, kind)
            choices += [ref(second)] * 2 if second is not None else []
            row, column = self.pick(scope, "m"), self.pick(scope, "n", "whole")
            if op not in ("max", "min"):  # the compiler knows them of whole tiles and numbers only
                choices += [ref(row)] if row is not None and len(kind) > 1 else []
                choices += [ref(column)] if column is not None and "n" in kind else []
                row = self.rng.choice((p.Name("i"), p.Bin("%", p.Name("i"), HALF), p.Bin("//", p.Name("i"), HALF)))
                choices = [p.Cast("float32", row)] if self.chance(0.06) else choices
            value = p.Bin(op, value, self.rng.choice(choices))
            if self.chance(0.15) and second is not None and op not in ("max", "min"):
                value = p.Bin(self.rng.choice("+-*"), value, ref(second))
        scope.defined.add(tile.name)
        if tile.name in scope.defined and self.chance(0.05) and len(kind) > 1 and tile is first:
            bound = self.rng.choice((("j", p.Const(5)), ("j", p.Const(5)), ("i", p.Const(5)), ("i", HALF), ("i", HALF)))
            value_statement: p.Stmt = p.If(p.Bin("<", p.Name(bound[0]), bound[1]), (p.Assign(ref(tile), value),))
            return [p.Parallel(vars_, tile.shape, (value_statement,))]
        return [self.loop(here, kind, ref(tile), value)]

    def loop(self, here: Element, kind: str, target: p.Ref, value: p.Expr) -> p.Stmt:
        return p.Parallel(tuple(here.vars[r] for r in kind), tuple(size(r) for r in kind), (p.Assign(target, value),))

    # patterns

    def extras(self, scope: Scope, kind: str) -> list[p.Stmt]:
        """More tiles that the vector cores use."""
        body: list[p.Stmt] = []
        if self.chance(0.5):
            body += self.loaded(scope, kind)
        if self.chance(0.3):
            body += self.loaded(scope, "m")
        if self.chance(0.2) and "n" in kind:
            body += self.loaded(scope, "n")
        return body

    def finish(self, scope: Scope) -> list[p.Stmt]:
        tiles = [
            t
            for t in self.tiles.values()
            if t.name in scope.defined and t.scope == "ub" and t.dtype == "float32" and "k" not in t.kind
        ]
        chosen = tiles[-1:] + ([self.rng.choice(tiles)] if self.chance(0.4) else [])
        return [s for t in {t.name: t for t in chosen}.values() for s in self.store(scope, t)]

    def vector(self) -> p.Launch:
        whole_rows = self.chance(0.5)
        scope = self.over("m" if whole_rows else "mn")
        if whole_rows:
            self.dims["N"] = self.dims["BN"]
            scope.origins["n"] = p.Const(0)
        body = self.loaded(scope, "mn") + self.extras(scope, "mn")
        if self.chance(0.3):
            var = self.fresh("k")
            inner = scope.inner()
            inner.origins["k"] = p.Bin("*", p.Name(var), size("k"))
            row = self.new_tile("m", "float32", "ub")
            body.append(p.Fill(row.whole, 0))
            scope.defined.add(row.name)
            inner.defined.add(row.name)
            part = self.loaded(inner, "mk") + self.work(inner, "mk", 2)
            last = self.pick(inner, "mk")
            total = self.new_tile("m", "float32", "ub")
            assert last is not None
            part.append(p.Reduce(self.rng.choice(("sum", "max")), last.name, total.name, 1))
            here = Element({"m": "i"})
            part.append(
                self.loop(
                    here,
                    "m",
                    p.Ref(row.name, (p.Name("i"),)),
                    p.Bin("+", p.Ref(row.name, (p.Name("i"),)), p.Ref(total.name, (p.Name("i"),))),
                )
            )
            body.append(p.For(var, p.Bin("//", p.Name("K"), size("k")), "serial", tuple(part)))
        body += self.work(scope, "mn", self.rng.randint(1, 6))
        return self.launch(body + self.finish(scope))

    def product(self, scope: Scope) -> tuple[Tile, list[p.Stmt]]:
        """A product of two tensors over K."""
        acc = self.new_tile("mn", "float32", "l0c")
        var = self.fresh("k")
        inner = scope.inner()
        inner.origins["k"] = p.Bin("*", p.Name(var), size("k"))
        ta, tb = self.chance(0.2), self.chance(0.3)
        a, load_a = self.load(inner, "km" if ta else "mk", "float16", "l1")
        b, load_b = self.load(inner, "nk" if tb else "kn", "float16", "l1")
        gemm = p.Gemm(a.name, b.name, acc.name, ta, tb)
        return acc, [
            p.Fill(acc.whole, 0),
            p.For(var, p.Bin("//", p.Name("K"), size("k")), "serial", (load_a, load_b, gemm)),
        ]

    def epilogue(self) -> p.Launch:
        scope = self.over("mn")
        acc, body = self.product(scope)
        landed = self.new_tile("mn", "float32", "ub")
        scope.defined.add(landed.name)
        before = self.extras(scope, "mn")
        scope.defined.discard(landed.name)
        body.append(p.Copy(acc.whole, landed.whole))
        scope.defined.add(landed.name)
        body = before + body if self.chance(0.5) else body + before
        body += self.work(scope, "mn", self.rng.randint(1, 5))
        return self.launch(body + self.finish(scope))

    def to_cube(self, scope: Scope, tile: Tile) -> tuple[Tile, list[p.Stmt]]:
        """A tile of UB as an operand of a product."""
        half = self.new_tile(tile.kind, "float16", "ub")
        operand = self.new_tile(tile.kind, "float16", "l1")
        return operand, [p.Copy(tile.whole, half.whole), p.Copy(half.whole, operand.whole)]

    def prologue(self) -> p.Launch:
        scope = self.over("mn")
        self.dims["K"] = self.dims["BK"]
        scope.origins["k"] = p.Const(0)
        body = self.loaded(scope, "mk")
        body += self.work(scope, "mk", self.rng.randint(1, 4))
        left = self.pick(scope, "mk")
        assert left is not None
        operand, moves = self.to_cube(scope, left)
        b, load = self.load(scope, "kn", "float16", "l1")
        acc = self.new_tile("mn", "float32", "l0c")
        body += [*moves, load, p.Gemm(operand.name, b.name, acc.name, clear=True)]
        if self.chance(0.4):
            return self.launch(body + self.store(scope, acc))
        landed = self.new_tile("mn", "float32", "ub")
        scope.defined = {landed.name}
        body.append(p.Copy(acc.whole, landed.whole))
        body += self.work(scope, "mn", self.rng.randint(0, 3))
        return self.launch(body + self.finish(scope))

    def to_vectors(self) -> p.Launch:
        """A loop of products that the vector cores gather; they tell the cube core when a slot is free."""
        self.one_way = True
        scope = self.over("m")
        self.dims["K"] = self.dims["BK"]
        scope.origins["k"] = p.Const(0)
        q, load_q = self.load(scope, "mk", "float16", "l1")
        row, total = self.new_tile("m", "float32", "ub"), self.new_tile("m", "float32", "ub")
        scope.defined = {row.name}
        var = self.fresh("k")
        inner = scope.inner()
        inner.origins["n"] = p.Bin("*", p.Name(var), size("n"))
        keys, load_keys = self.load(inner, "nk", "float16", "l1")
        scores, landed = self.new_tile("mn", "float32", "l0c"), self.new_tile("mn", "float32", "ub")
        inner.defined = {landed.name, row.name}
        steps = [load_keys, p.Gemm(q.name, keys.name, scores.name, transpose_b=True, clear=True)]
        steps += [p.Copy(scores.whole, landed.whole), *self.work(inner, "mn", self.rng.randint(0, 3))]
        steps.append(p.Reduce(self.rng.choice(("sum", "max")), landed.name, total.name, 1))
        i = (p.Name("i"),)
        sum_ = p.Bin("+", p.Ref(row.name, i), p.Ref(total.name, i))
        steps.append(self.loop(Element({"m": "i"}), "m", p.Ref(row.name, i), sum_))
        body = [load_q, p.Fill(row.whole, 0), p.For(var, p.Bin("//", p.Name("N"), size("n")), "serial", tuple(steps))]
        return self.launch(body + self.store(scope, row))

    def from_vectors(self) -> p.Launch:
        """A loop of tiles that the vector cores prepare for products, summed in L0C."""
        self.one_way = True
        scope = self.over("mn")
        acc = self.new_tile("mn", "float32", "l0c")
        var = self.fresh("k")
        inner = scope.inner()
        inner.origins["k"] = p.Bin("*", p.Name(var), size("k"))
        steps = self.loaded(inner, "mk") + self.work(inner, "mk", self.rng.randint(0, 3))
        left = self.pick(inner, "mk")
        assert left is not None
        operand, moves = self.to_cube(inner, left)
        b, load_b = self.load(inner, "kn", "float16", "l1")
        steps += [*moves, load_b, p.Gemm(operand.name, b.name, acc.name)]
        loop = p.For(var, p.Bin("//", p.Name("K"), size("k")), "serial", tuple(steps))
        return self.launch([p.Fill(acc.whole, 0), loop, *self.store(scope, acc)])

    def two_way(self) -> p.Launch:
        """A loop in which tiles go to the vector cores and back, as in attention."""
        scope = self.over("m")
        self.dims["K"] = self.dims["BK"]
        scope.origins["k"] = p.Const(0)
        q, load_q = self.load(scope, "mk", "float16", "l1")
        acc = self.new_tile("mc", "float32", "ub")
        row = self.new_tile("m", "float32", "ub")
        body: list[p.Stmt] = [load_q, p.Fill(acc.whole, 0), p.Fill(row.whole, self.rng.choice((0, 1)))]
        scope.defined = {acc.name, row.name}
        var = self.fresh("k")
        inner = scope.inner()
        inner.origins["n"] = p.Bin("*", p.Name(var), size("n"))
        keys, load_keys = self.load(inner, "nk", "float16", "l1")
        scores, landed = self.new_tile("mn", "float32", "l0c"), self.new_tile("mn", "float32", "ub")
        inner.defined |= {landed.name}
        inner.defined -= {acc.name}
        steps = [
            load_keys,
            p.Gemm(q.name, keys.name, scores.name, transpose_b=True, clear=True),
            p.Copy(scores.whole, landed.whole),
        ]
        if self.chance(0.3):
            steps = self.loaded(inner, "mn") + steps
        steps += self.work(inner, "mn", self.rng.randint(1, 4))
        chosen = self.pick(inner, "mn")
        assert chosen is not None
        operand, moves = self.to_cube(inner, chosen)
        values, load_values = self.load(inner, "nc", "float16", "l1")
        product, part = self.new_tile("mc", "float32", "l0c"), self.new_tile("mc", "float32", "ub")
        steps += [
            *moves,
            load_values,
            p.Gemm(operand.name, values.name, product.name, clear=True),
            p.Copy(product.whole, part.whole),
        ]
        i, j = p.Name("i"), p.Name("j")
        here = Element({"m": "i", "c": "j"})
        if self.chance(0.5):
            steps.append(
                self.loop(
                    here, "mc", p.Ref(acc.name, (i, j)), p.Bin("*", p.Ref(acc.name, (i, j)), p.Ref(row.name, (i,)))
                )
            )
        steps.append(
            self.loop(
                here, "mc", p.Ref(acc.name, (i, j)), p.Bin("+", p.Ref(acc.name, (i, j)), p.Ref(part.name, (i, j)))
            )
        )
        body.append(p.For(var, p.Bin("//", p.Name("N"), size("n")), "serial", tuple(steps)))
        scope.defined = {acc.name, row.name}
        body += self.work(scope, "mc", self.rng.randint(0, 3))
        return self.launch(body + self.store(scope, acc) + (self.store(scope, row) if self.chance(0.3) else []))


def draw(seed: int) -> p.Program:
    """The program of a seed."""
    made = LegacyDraws(random.Random(seed)).program()
    used = p.names(made.launches)
    return p.Program(made.sizes, tuple(t for t in made.tensors if t.name in used), made.launches, made.style)
