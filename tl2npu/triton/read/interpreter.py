"""Statements of a kernel: assignments, branches, loops, device functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tl2npu.kernel.symbolic import Div as Quotient
from tl2npu.kernel.symbolic import Mod, Opaque, Sym, Var, const, var
from tl2npu.source.signs import sign_of
from tl2npu.tile.expr import OF_SIGN, Const, Index, integers, loads
from tl2npu.tile.ir import For, If, Kernel, Let, Stmt
from tl2npu.triton.read import build
from tl2npu.triton.read.choices import apart, decided
from tl2npu.triton.read.masks import told
from tl2npu.triton.read.moves import difference, marked, shifted
from tl2npu.triton.read.names import COUNTED, Live, assigned, exposed, live_in, mentioned, placed, spine
from tl2npu.triton.read.products import Products
from tl2npu.triton.read.ranges import cdiv, largest
from tl2npu.triton.read.returns import carried_on, place_of, returns, statements_in
from tl2npu.triton.read.spec import Source
from tl2npu.triton.read.state import Frame
from tl2npu.triton.read.values import DType, Function, Name, Tile, Unusable, Value, integer

_DEPTH = 12
_MOST_COPIED = 40
"""Statements behind a branch that both of its arms may go on with: more make kernels that take minutes to read."""


class Returned(Exception):
    """A ``return`` was reached."""

    def __init__(self, value: Value) -> None:
        self.value = value


class Interpreter(Products):
    """Reads the statements of a kernel into the state.

    ``live``: of the function that is read; ``nested``: the branches and loops around the statement in its function,
    where a ``return`` cannot be followed.
    """

    live: Live
    nested = 0
    ranges = frozenset({"builtins.range", "triton.language.range", "triton.language.static_range"})

    def finished(self, kernel: Kernel) -> Kernel:
        """The kernel as it was read, in statements of the tile IR; an extension replaces its own."""
        return kernel

    def run(self, body: Sequence[ast.stmt]) -> None:
        """Read statements in order."""
        for number, stmt in enumerate(body):
            rest = body[number + 1 :]
            parts = place_of(stmt) in self.state.spec.split and statements_in(rest) <= _MOST_COPIED
            if isinstance(stmt, ast.If) and (returns(stmt) or parts):
                self.ending(stmt, rest)
                return
            self.stmt(stmt)

    @contextmanager
    def inner(self) -> Iterator[list[Stmt]]:
        """Statements of a branch or a loop go to a body of their own."""
        self.nested += 1
        try:
            with self.state.body() as body:
                yield body
        finally:
            self.nested -= 1

    def ending(self, stmt: ast.If, rest: Sequence[ast.stmt]) -> None:
        """A branch with a ``return`` in it, or whose names are used behind it: what follows belongs to either way."""
        state = self.state
        state.line, state.direct = stmt.lineno, None
        value = self.eval(stmt.test)
        known = self.known_truth(value)
        if known is not None:
            self.run([*(stmt.body if known else stmt.orelse), *rest])
            return
        both, last = carried_on(stmt, rest)
        if last and (self.nested or not isinstance(value, Tile) or value.shape):
            self.pin(stmt.test)
            raise state.refuse("TL542", f"`if {ast.unparse(stmt.test)}:` returns from a loop, or by a tile")
        self.live = Live([both, *last]) if last else self.live.with_copy(both, rest[-1] if rest else stmt)
        self.either(both, value)
        self.run(last)

    def plain_condition(self, value: Tile, node: ast.AST) -> Tile:
        """A condition on scalars that a kernel may branch on."""
        if any(True for _ in loads(value.expr)):
            self.taken_for_integers(value)
            raise self.state.refuse("TL542", f"`{ast.unparse(node)}` depends on loaded data")
        return value if value.dtype == "bool" else build.operation("ne", [value, 0], self.state.line)

    def stmt(self, stmt: ast.stmt) -> None:
        """Read one statement."""
        state = self.state
        state.line = stmt.lineno
        state.direct, state.spare, state.hint = None, frozenset(), "tile"
        match stmt:
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                pass
            case ast.Expr():
                state.hint = "value"
                self.eval(stmt.value)
            case ast.Assign(targets=[target]):
                self.assignment(target, stmt.value)
            case ast.AnnAssign() if stmt.value is not None:
                self.assignment(stmt.target, stmt.value)
            case ast.AugAssign(target=ast.Name()):
                self.augmented(stmt)
            case ast.If():
                self.branch(stmt)
            case ast.For():
                self.loop(stmt)
            case ast.While():
                raise state.refuse("TL540", "a `while` loop")
            case ast.Return() if self.nested:
                raise state.refuse("TL542", f"`{ast.unparse(stmt)}` inside of a loop or branch")
            case ast.Return():
                raise Returned(None if stmt.value is None else self.eval(stmt.value))
            case ast.Assert():
                pass
            case _:
                raise state.refuse("TL543", f"`{ast.unparse(stmt).splitlines()[0]}` is not supported in a kernel")

    # assignments --------------------------------------------------------------------------------------------------

    def assignment(self, target: ast.expr, value: ast.expr) -> None:
        """``target = value``."""
        state = self.state
        if isinstance(target, ast.Name):
            state.hint, state.direct = target.id, value
            state.spare = frozenset() if target.id in mentioned(value) else frozenset(spine(value))
            self.set(target.id, self.eval(value))
            return
        if not isinstance(target, (ast.Tuple, ast.List)):
            raise state.refuse("TL543", f"an assignment to `{ast.unparse(target)}`")
        names = [item.id if isinstance(item, ast.Name) else "" for item in target.elts]
        state.hint = names[0] or "value"
        self.overwritten = frozenset(names)
        try:
            found = self.eval(value)
        finally:
            self.overwritten = frozenset()
        if not isinstance(found, tuple) or len(found) != len(names) or "" in names:
            raise state.refuse("TL543", f"`{ast.unparse(value)}` does not give {len(names)} values")
        pending = [f"={number}" for number in range(len(names))]
        state.frame.env.update(zip(pending, found, strict=True))
        for key, name in zip(pending, names, strict=True):
            self.set(name, state.frame.env.pop(key))

    overwritten: frozenset[str] = frozenset()

    def set(self, name: str, value: Value) -> None:
        """Give a name a value; integers that are no sums and products get a name in the kernel, too."""
        frame = self.state.frame
        like = frame.env.get(name) if name in frame.pinned else None
        plain = build.tile(value)
        single = plain is not None and isinstance(plain.expr, Const | Index) and not plain.shape
        if single and name in frame.own and isinstance(like, Tile) and any(True for _ in loads(like.expr)):
            assert plain is not None
            value = build.broadcast(build.cast(plain, like.dtype), like.shape)
        number = integer(value) if isinstance(value, Tile) else None
        if number is not None:
            value = Tile((), Index(self.named_integer(name, number)))
        self.state.assign(name, value)

    def named_integer(self, name: str, value: Sym) -> Sym:
        """The integer, by the name that the author gave it where its text would not be short."""
        state = self.state
        inner = list(value.atoms())
        if not any(isinstance(atom, (Quotient, Mod, Opaque)) for atom in inner):
            return value
        if value.names <= set(state.spec.names) | state.spec.values.keys():
            return value
        if any(name.startswith("$") for name in value.names):
            return value
        fresh = state.fresh(name)
        state.ranges.lets[fresh] = value
        state.emit(Let(fresh, Index(value), state.origin))
        return var(fresh)

    def augmented(self, stmt: ast.AugAssign) -> None:
        """``x += value``."""
        assert isinstance(stmt.target, ast.Name)
        name = stmt.target.id
        state = self.state
        state.hint = name
        old = self.eval(ast.Name(name, ast.Load()))
        if isinstance(stmt.op, ast.Add) and isinstance(stmt.value, ast.Call) and isinstance(old, Tile):
            function = self.eval(stmt.value.func)
            if isinstance(function, Name) and function.path == "triton.language.dot" and old.dtype == "float32":
                state.direct = stmt.value
                values = self.operands(stmt.value)
                plain = values.get("acc") is None and values.get("out_dtype") in (None, DType("float32"))
                state.direct = stmt.value if plain else None
                if plain:
                    self.set(name, self.product({**values, "acc": old}, stmt.value))
                else:
                    self.set(name, self.binary("add", old, self.product(values, stmt.value), stmt))
                return
        value = self.eval(stmt.value)
        self.set(name, self.binary(OF_SIGN.get(sign_of(stmt.op), ""), old, value, stmt))

    # branches -----------------------------------------------------------------------------------------------------

    def branch(self, stmt: ast.If) -> None:
        """``if``: one branch where the condition is known, else both."""
        value = self.eval(stmt.test)
        known = self.known_truth(value)
        if known is not None:
            self.run(stmt.body if known else stmt.orelse)
            return
        self.either(stmt, value)

    def either(self, stmt: ast.If, value: Value) -> None:
        """``if`` whose condition is not known: both branches, and what names have behind either."""
        state = self.state
        self.pin(stmt.test)
        if not isinstance(value, Tile) or value.shape:
            raise state.refuse("TL542", f"`if {ast.unparse(stmt.test)}` on a tile")
        condition = self.plain_condition(value, stmt.test)
        switch = value.dtype != "bool"  # a flag of the host: a kernel for each way is better than both in one
        one, other = assigned(stmt.body), assigned(stmt.orelse)
        names = one | other
        live = names & self.live.after(stmt) if stmt in self.live else names
        both = one & other & live
        before = dict(state.frame.env)
        for name in sorted(live):
            found = build.tile(before.get(name))
            if found is not None and (found.integer is None or build.is_float(found.dtype)):
                state.pin(name, found)
        pinned = set(state.frame.pinned)
        for again in (False, True):
            saved, before, lets = state.snapshot(), dict(state.frame.env), set(state.ranges.lets)
            ends: list[dict[str, Value]] = []
            bodies = []
            for part, holds in ((stmt.body, True), (stmt.orelse, False)):
                state.frame.env, facts = dict(before), state.facts
                state.facts = {**facts, **told(condition.expr, holds)}
                with self.inner() as body:
                    self.run(part)
                state.facts = facts
                bodies.append(tuple(body))
                ends.append(state.frame.env)
                for name in both:
                    if isinstance(state.frame.env.get(name), Tile) and name in state.frame.own:
                        state.frame.pinned.add(name)
            state.line = stmt.lineno
            split = {name: tiles for name in sorted(live) if (tiles := apart(ends[0].get(name), ends[1].get(name)))}
            if again or switch or not split:
                break
            state.restore(saved)
            for name, like in split.items():  # a tile of its own, to which either branch writes
                first = build.tile(before.get(name)) or Tile((), Const(0, like.dtype))
                state.pin(name, build.broadcast(build.cast(first, like.dtype), like.shape))
        state.frame.pinned = pinned
        if bodies[0]:
            state.emit(If(condition.expr, bodies[0], bodies[1], state.origin))
        elif bodies[1]:
            state.emit(If(build.operation("not", [condition], stmt.lineno).expr, bodies[1], (), state.origin))
        merged = dict(before)
        inside = {name: value for name, value in state.ranges.lets.items() if name not in lets}
        for name in sorted(names):
            values = ends[0].get(name), ends[1].get(name)
            if name in ends[0] and name in ends[1] and values[0] == values[1]:
                merged[name] = values[0]
            else:
                number = decided(condition.expr, *values, inside)
                known = number is not None and not number.names & (state.ranges.unknown | inside.keys())
                merged[name] = Unusable("depends on the branch that is taken", None if switch else place_of(stmt))
                if known and number is not None and name in live and not switch:
                    merged[name] = Tile((), Index(self.named_integer(name, number)))
        state.frame.env = merged

    # loops --------------------------------------------------------------------------------------------------------

    def loop(self, stmt: ast.For) -> None:
        """``for`` over a range."""
        state = self.state
        if not isinstance(stmt.target, ast.Name) or not isinstance(stmt.iter, ast.Call) or stmt.orelse:
            raise state.refuse("TL543", f"`for {ast.unparse(stmt.target)} in {ast.unparse(stmt.iter)}`")
        function = self.eval(stmt.iter.func)
        path = function.path if isinstance(function, Name) else ""
        if path not in self.ranges:
            raise state.refuse("TL543", f"`for {ast.unparse(stmt.target)} in {ast.unparse(stmt.iter)}`")
        values = [self.size(self.eval(arg), arg) for arg in stmt.iter.args]
        words = {word.arg: self.eval(word.value) for word in stmt.iter.keywords if word.arg == "num_stages"}
        start, stop = (const(0), values[0]) if len(values) == 1 else (values[0], values[1])
        step = values[2] if len(values) > 2 else const(1)
        passed = isinstance(step.atom, Var) and step.atom.name not in state.ranges.lets
        if passed and not state.ranges.at_least_zero(step - 1):
            raise state.refuse("TL541", f"the step of `{ast.unparse(stmt.iter)}` may be negative")
        if path.endswith("static_range") and self.unrolled(stmt, start, stop, step):
            return
        if stmt.type_comment == COUNTED and not self.positive(step):
            raise state.refuse("TL540", f"a `while` loop: `{ast.unparse(stmt.iter.args[2])}` may be less than 1")
        stages = integer(words.get("num_stages"))
        if step.constant == 0:
            raise state.refuse("TL543", "a loop without a step")
        if start.names & state.ranges.unknown and not state.ranges.at_least_zero(start):
            raise state.refuse("TL541", "the loop starts at a loaded number")
        down = step.constant is not None and step.constant < 0
        count = cdiv(start - stop, -step) if down else cdiv(stop - start, step)
        self.counted(stmt, start, step, count, (stages.constant or 0) if stages is not None else 0)

    def positive(self, step: Sym) -> bool:
        """True for a step that is at least 1, as the number of blocks is for each of them."""
        least = self.state.ranges.at_least_zero
        sizes = [const(1), *(var(name) for name in sorted(step.names) if least(var(name) - 1))]
        return least(step - 1) or step in [extent * size for extent in self.state.spec.grid for size in sizes]

    def unrolled(self, stmt: ast.For, start: Sym, stop: Sym, step: Sym) -> bool:
        """``tl.static_range``, written out; False where its bounds are not known or far apart: a loop does the same."""
        if start.constant is None or stop.constant is None or step.constant is None:
            self.pin(stmt.iter)
            return False
        assert isinstance(stmt.target, ast.Name)
        turns = range(start.constant, stop.constant, step.constant or 1)
        if not step.constant or len(turns) > 64:
            return False
        self.nested += 1
        for number in turns:
            self.state.frame.env[stmt.target.id] = number
            self.run(stmt.body)
        self.nested -= 1
        return True

    def counted(self, stmt: ast.For, start: Sym, step: Sym, count: Sym, stages: int) -> None:
        """A loop: read once to see what its names become, again with what is known then."""
        state = self.state
        assert isinstance(stmt.target, ast.Name)
        frame = state.frame
        name = stmt.target.id
        counter = state.fresh(name if start.is_zero and step.constant == 1 else f"{name}_step")
        changed = assigned(stmt.body)
        carried = sorted(changed & frame.env.keys() & (exposed(stmt.body) | self.live.after(stmt)) - {name})
        for item in changed - set(carried):
            frame.env.pop(item, None)
        entry = {item: frame.env[item] for item in carried}
        state.ranges.last[counter] = count - 1
        value = Tile((), Index(start + step * var(counter)))
        moves: dict[str, Value] = {}
        pinned = set(frame.pinned)
        for _ in range(3):
            types, steps = self.trial(stmt, counter, value, entry, moves)
            if types == moves:
                break
            moves = types
        else:
            raise state.refuse("TL541", f"what the loop over `{name}` carries has no settled type")
        for item in carried:
            if isinstance(moves.get(item), Tile):
                first = build.tile(entry[item])
                like = moves[item]
                assert isinstance(like, Tile)
                if first is None:
                    raise state.refuse("TL541", f"`{item}` becomes a tile in the loop")
                state.pin(item, build.broadcast(build.cast(first, like.dtype), like.shape))
        turn = var(counter)
        for item, by in steps.items():
            frame.env[item] = shifted(entry[item], by, turn)
        with self.inner() as body:
            frame.env[name] = value
            self.run(stmt.body)
        frame.pinned = pinned
        state.line = stmt.lineno
        state.emit(For(counter, count, tuple(body), stages, state.origin))
        turns = count if state.ranges.surely_natural(count) else largest(count, const(0))
        for item, by in steps.items():
            frame.env[item] = shifted(entry[item], by, turns)
        del state.ranges.last[counter]
        for item in changed - set(carried):
            if isinstance(frame.env.get(item), Tile):
                tile = frame.env[item]
                assert isinstance(tile, Tile)
                if tile.integer is not None or any(counter in part.names for part in integers(tile.expr)):
                    frame.env[item] = Unusable("is set in a loop")
            elif not isinstance(frame.env.get(item), (int, float, str)):
                frame.env[item] = Unusable("is set in a loop")
        frame.env[name] = Unusable("is the variable of a loop that has ended")

    def trial(
        self, stmt: ast.For, counter: str, value: Tile, entry: dict[str, Value], moves: dict[str, Value]
    ) -> tuple[dict[str, Value], dict[str, Sym | tuple[Sym, ...]]]:
        """Read the body and forget it: which carried names are tiles, of which kind, and by how much others move."""
        state = self.state
        saved = state.snapshot()
        frame = state.frame
        assert isinstance(stmt.target, ast.Name)
        marks: dict[str, Value] = {}
        for item, first in entry.items():
            like = moves.get(item)
            if isinstance(like, Tile):
                tile = build.tile(first)
                if tile is None:
                    raise state.refuse("TL541", f"`{item}` becomes a tile in the loop")
                state.pin(item, build.broadcast(build.cast(tile, like.dtype), like.shape))
            else:
                marks[item] = marked(item, first)
                frame.env[item] = marks[item]
        with self.inner():
            frame.env[stmt.target.id] = value
            self.run(stmt.body)
        ends, inside = dict(frame.env), set(state.taken)
        unchanged = state.indices
        state.restore(saved)
        state.indices = unchanged
        inside = inside - state.taken | {counter}
        state.line = stmt.lineno
        types: dict[str, Value] = {}
        steps: dict[str, Sym | tuple[Sym, ...]] = {}
        for item in entry:
            end = ends.get(item)
            if item in marks:
                by = difference(marks[item], end)
                if by is not None:
                    parts = by if isinstance(by, tuple) else (by,)
                    if not any(n.startswith("$") or n in inside for part in parts for n in part.names):
                        steps[item] = by
                        continue
                if isinstance(end, Unusable):
                    raise state.refuse("TL541", f"`{item}` is moved under a condition in the loop")
                if not isinstance(end, Tile) or (end.integer is not None and not build.is_float(end.dtype)):
                    raise state.refuse("TL541", f"`{item}` does not move by the same amount in each turn")
            if isinstance(end, (int, float)):
                end = build.tile(float(end))
            if not isinstance(end, Tile):
                raise state.refuse("TL541", f"`{item}` has no value at the end of the loop")
            types[item] = Tile(end.shape, Const(0, end.dtype))
        return types, steps

    # device functions ---------------------------------------------------------------------------------------------

    def inlined(self, called: Function, node: ast.Call) -> Value:
        state, function = self.state, called.node
        source = called.source if isinstance(called.source, Source) else None
        if source is not None:
            function = placed(function, node.lineno)
        if len(state.frames) > _DEPTH:
            raise state.refuse("TL544", f"`{function.name}` calls itself")
        arguments = function.args
        if arguments.vararg or arguments.kwarg:
            raise state.refuse("TL544", f"`{function.name}` takes any number of arguments")
        order = [arg.arg for arg in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
        values = self.bound(node, " ".join(order))
        defaults = dict(zip(reversed([a.arg for a in arguments.args]), reversed(arguments.defaults), strict=False))
        for name in order:
            if name not in values:
                if name not in defaults:
                    raise state.refuse("TL544", f"`{ast.unparse(node)}` lacks `{name}`")
                values[name] = self.default(defaults[name], source)
        caller = state.frame
        frame = Frame(values, source=source)
        given = {order[n]: arg.id for n, arg in enumerate(node.args) if isinstance(arg, ast.Name) and n < len(order)}
        removed: dict[str, Value] = {}
        for param, name in given.items():
            if name in self.overwritten and name in caller.own and list(given.values()).count(name) == 1:
                frame.own[param] = caller.own[name]
                removed[name] = caller.env.pop(name)
        overwritten, live, line, nested = self.overwritten, self.live, state.line, self.nested
        self.overwritten, self.live, self.nested = frozenset(), live_in(function), 0
        state.frames.append(frame)
        result: Value = None
        try:
            self.run(function.body)
        except Returned as returned:
            result = returned.value
        finally:
            state.frames.pop()
            self.overwritten, self.live, state.line, self.nested = overwritten, live, line, nested
        for name, value in removed.items():
            caller.env.setdefault(name, value)
        return result

    def default(self, node: ast.expr, source: Source | None) -> Value:
        """The default of a parameter: names in it are those of the module, whatever the caller calls so."""
        self.state.frames.append(Frame(source=source))
        try:
            return self.eval(node)
        finally:
            self.state.frames.pop()
