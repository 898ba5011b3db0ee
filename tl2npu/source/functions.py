"""Functions, loops and comprehensions of Python that come to a value. Nothing of the user's is executed.

What depends on the machine, or on code that is not read, is left open: of a condition the first branch that gives a
list is taken, and what a filter that cannot be decided lets through counts.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import libcst as cst

from tl2npu.source.constants import UNKNOWN, Evaluator, Expression, NoValue, Reference

MOST = 64
"""Configurations that are told apart."""
_STEPS = 20_000
_DEPTH = 12


@dataclass(frozen=True)
class Scope:
    """A module. ``elsewhere``: what a name that it imports from another module of the repository is: a function, with
    its module, or a value; None for others."""

    values: Mapping[str, ast.expr]
    functions: Mapping[str, ast.FunctionDef]
    elsewhere: Callable[[str], tuple[ast.FunctionDef | ast.expr, Scope] | None] = lambda name: None


Env = dict[str, object]


class _Returned(Exception):
    def __init__(self, value: object) -> None:
        self.value = value


class _Turn(Exception):
    """The turn of a loop ends; ``last``: the loop does."""

    def __init__(self, last: bool) -> None:
        self.last = last


class TooLong(Exception):
    pass


_FUNCTIONS: Mapping[str, Callable[..., object]] = {
    "range": lambda *args: list(range(*args)[: MOST * MOST]),
    "list": lambda *args: list(*args),
    "tuple": lambda *args: list(*args),
    "min": min,
    "max": max,
    "len": len,
    "int": int,
    "product": lambda *args: list(itertools.islice(itertools.product(*args), MOST * MOST)),
    "sorted": lambda *args: sorted(*args),
    "zip": lambda *args: list(zip(*args, strict=False)),
}

_VIEWS: Mapping[str, Callable[[dict[object, object]], object]] = {
    "keys": list,
    "values": lambda table: list(table.values()),
    "items": lambda table: list(table.items()),
    "copy": dict,
}


@dataclass
class Reader(Evaluator):
    """``doubtful``: a filter cannot be decided; ``guessed``: a condition, or a statement is not understood.

    ``env`` and ``scope``: where the expression stands.
    """

    scope: Scope
    env: Env = field(default_factory=dict)
    doubtful: bool = False
    guessed: bool = False
    steps: int = 0
    most: int = _STEPS
    depth: int = 0
    open: set[tuple[int, str]] = field(default_factory=set)

    def eval(self, node: Expression, env: Env, scope: Scope) -> Any:
        """The value of an expression somewhere, or :data:`UNKNOWN`."""
        around, (self.env, self.scope) = (self.env, self.scope), (env, scope)
        try:
            return self.value(node)
        except (NoValue, TypeError, ValueError, ArithmeticError, LookupError, AttributeError):
            return UNKNOWN
        finally:
            self.env, self.scope = around

    def element(self, node: Expression) -> Any:
        return self.eval(node, self.env, self.scope)

    def value(self, node: Expression) -> Any:
        self.steps += 1
        if self.steps > self.most:
            raise TooLong
        match node:
            case ast.List() | ast.Tuple():
                return list(self.items(node.elts))
            case ast.Dict():
                return self.table(node)
            case ast.IfExp():
                test = self.element(node.test)
                self.guessed |= test is UNKNOWN
                return self.value(node.body if test is UNKNOWN or test else node.orelse)
            case ast.BoolOp():
                return self.logic(node)
            case ast.BinOp() if UNKNOWN in (sides := [self.element(node.left), self.element(node.right)]):
                return next((part for part in sides if isinstance(part, list)), UNKNOWN)
            case ast.ListComp() | ast.GeneratorExp():
                env, scope = self.env, self.scope
                return [self.eval(node.elt, inner, scope) for inner in self.turns(node.generators, env, scope)]
            case ast.DictComp():
                env, scope = self.env, self.scope
                turns = self.turns(node.generators, env, scope)
                return {self.eval(node.key, e, scope): self.eval(node.value, e, scope) for e in turns}
        return super().value(node)

    def reference(self, node: Reference) -> Any:
        text = ast.unparse(node)  # type: ignore[arg-type]
        if isinstance(node, ast.Name) or text in self.scope.values:
            found = self.name(text, self.env if isinstance(node, ast.Name) else {}, self.scope)
        else:
            assert isinstance(node, ast.Attribute)
            found = self.attribute(self.value(node.value), node.attr)
        if found is UNKNOWN:
            raise NoValue
        return found

    def attribute(self, holder: object, name: str) -> object:
        """What an attribute of a value is."""
        return UNKNOWN

    def made(self, name: str, node: ast.Call, words: dict[str, object]) -> object:
        """What a call of a function of another package gives; None for those that are not known."""
        return None

    def name(self, name: str, env: Env, scope: Scope) -> object:
        if name in env:
            return env[name]
        key = id(scope.functions), name
        if key in self.open:
            return UNKNOWN
        self.open.add(key)
        try:
            if name in scope.values:
                return self.eval(scope.values[name], {}, scope)
            found = scope.elsewhere(name)
            return self.eval(found[0], {}, found[1]) if found and isinstance(found[0], ast.expr) else UNKNOWN
        finally:
            self.open.discard(key)

    def items(self, nodes: Iterable[cst.BaseElement | cst.Arg | ast.expr]) -> Iterator[Any]:
        for part in nodes:
            if isinstance(part, ast.Starred):
                more = self.element(part.value)
                yield from more if isinstance(more, list) else [UNKNOWN]
            else:
                yield from super().items([part])

    def table(self, node: ast.Dict) -> object:
        found: dict[object, object] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            found.update(self.element(value) if key is None else {self.element(key): self.element(value)})
        return found

    def logic(self, node: ast.BoolOp) -> object:
        values = [self.element(part) for part in node.values]
        known = [bool(value) for value in values if value is not UNKNOWN]
        stops = isinstance(node.op, ast.Or)
        if stops in known:
            return stops
        return UNKNOWN if len(known) < len(values) else not stops

    def turns(self, parts: Sequence[ast.comprehension], env: Env, scope: Scope) -> Iterator[Env]:
        """What each turn of a comprehension sets."""
        if not parts:
            yield env
            return
        for inner in self.over(parts[0].target, self.eval(parts[0].iter, env, scope), env):
            if self.kept([self.eval(test, inner, scope) for test in parts[0].ifs]):
                yield from self.turns(parts[1:], inner, scope)

    def over(self, target: ast.expr, values: object, env: Env) -> Iterator[Env]:
        """A turn for each of the values; one if they are not seen."""
        for value in values if isinstance(values, (list, tuple)) else [UNKNOWN]:
            inner = dict(env)
            self.bind(target, value, inner)
            yield inner

    def kept(self, tests: Sequence[object]) -> bool:
        """Whether something passes a filter, which it does for all that is known if the filter is unseen."""
        self.doubtful |= UNKNOWN in tests
        return all(test is UNKNOWN or bool(test) for test in tests)

    def bind(self, target: ast.expr, value: object, env: Env) -> None:
        if isinstance(target, ast.Name):
            env[target.id] = value
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            held = env.get(target.value.id)
            env[target.value.id] = {**held, self.element(target.slice): value} if isinstance(held, dict) else UNKNOWN
        elif isinstance(target, (ast.Tuple, ast.List)):
            many = isinstance(value, (list, tuple)) and len(value) == len(target.elts)
            for item, part in zip(target.elts, value if many else [UNKNOWN] * len(target.elts), strict=True):  # type: ignore[call-overload]
                self.bind(item, part, env)

    def call(self, node: cst.Call | ast.Call) -> Any:
        assert isinstance(node, ast.Call)
        name = ast.unparse(node.func)
        last = name.rpartition(".")[2]
        if any(word.arg is None for word in node.keywords):
            return UNKNOWN
        words = {str(word.arg): self.element(word.value) for word in node.keywords}
        if (made := self.made(last, node, words)) is not None:
            return made
        if name == "dict" and len(node.args) < 2:
            return dict(self.element(node.args[0]) if node.args else {}, **words)
        holder = self.element(node.func.value) if isinstance(node.func, ast.Attribute) and not node.args else None
        if isinstance(holder, dict) and last in _VIEWS:
            return _VIEWS[last](holder)
        env, scope = self.env, self.scope
        if name == "filter" and len(node.args) == 2:
            test = node.args[0]
            items = self.element(node.args[1])
            return [item for item in items if self.kept([self.applied(test, [item], {}, env, scope)])]
        args = list(self.items(node.args))
        if last in _FUNCTIONS and name in (last, f"itertools.{last}") and last not in scope.functions:
            return UNKNOWN if UNKNOWN in args or words else _FUNCTIONS[last](*args)
        return self.applied(node.func, args, words, env, scope)

    def applied(
        self, func: ast.expr, args: Sequence[object], words: Mapping[str, object], env: Env, scope: Scope
    ) -> object:
        """What a function of the repository returns."""
        function: ast.FunctionDef | ast.Lambda | None = func if isinstance(func, ast.Lambda) else None
        if isinstance(func, ast.Name) and func.id not in env:
            function = scope.functions.get(func.id)
            found = scope.elsewhere(func.id) if function is None else None
            if found is not None and isinstance(found[0], ast.FunctionDef):
                function, scope = found[0], found[1]
        if function is None or self.depth == _DEPTH or function.args.vararg or function.args.kwarg:
            return UNKNOWN
        params = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)]
        defaults = dict(zip(reversed(params), reversed(function.args.defaults), strict=False))
        inner: Env = {name: self.eval(value, {}, scope) for name, value in defaults.items()}
        inner.update(zip(params, args, strict=False))
        inner.update(words)
        every = (*params, *(arg.arg for arg in function.args.kwonlyargs))
        inner = {**dict.fromkeys(every, UNKNOWN), **inner}
        self.depth += 1
        try:
            if isinstance(function, ast.Lambda):
                return self.eval(function.body, inner, scope)
            self.run(function.body, inner, scope)
        except _Returned as returned:
            return returned.value
        finally:
            self.depth -= 1
        return None

    def run(self, body: Sequence[ast.stmt], env: Env, scope: Scope) -> None:
        """Execute statements. Raises ``_Returned``."""
        for stmt in body:
            self.steps += 1
            match stmt:
                case ast.Assign():
                    value = self.eval(stmt.value, env, scope)
                    for target in stmt.targets:
                        self.bind(target, value, env)
                case ast.AnnAssign() if stmt.value is not None:
                    self.bind(stmt.target, self.eval(stmt.value, env, scope), env)
                case ast.AugAssign(target=ast.Name()):
                    sides = ast.BinOp(ast.Name(stmt.target.id, ast.Load()), stmt.op, stmt.value)  # type: ignore[union-attr]
                    self.bind(stmt.target, self.eval(sides, env, scope), env)
                case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr), args=args)):
                    if name in env:
                        env[name] = self.changed(env[name], attr, [self.eval(arg, env, scope) for arg in args])
                case ast.For():
                    for inner in self.over(stmt.target, self.eval(stmt.iter, env, scope), {}):
                        env.update(inner)
                        if self.ends(stmt.body, env, scope):
                            break
                case ast.While():
                    while (test := self.eval(stmt.test, env, scope)) is not UNKNOWN and test:
                        if self.ends(stmt.body, env, scope):
                            break
                case ast.Break() | ast.Continue():
                    raise _Turn(isinstance(stmt, ast.Break))
                case ast.If():
                    self.branch(stmt, env, scope)
                case ast.Return():
                    raise _Returned(self.eval(stmt.value, env, scope) if stmt.value is not None else None)
                case ast.Try() | ast.With():
                    self.run(stmt.body, env, scope)
                case ast.Import() | ast.ImportFrom() | ast.Pass() | ast.Expr() | ast.Assert() | ast.FunctionDef():
                    pass
                case _:
                    self.guessed = True

    def changed(self, holder: object, method: str, args: Sequence[object]) -> object:
        """What a list or dict is after one of its methods."""
        match holder, method, args:
            case list(), "append", [added]:
                return [*holder, added]
            case list(), "extend", [list(more)]:
                return [*holder, *more]
            case dict(), "update", [dict(more)]:
                return {**holder, **more}
        self.guessed |= isinstance(holder, (list, dict))
        return holder

    def ends(self, body: Sequence[ast.stmt], env: Env, scope: Scope) -> bool:
        """One turn of a loop; True if it is the last one."""
        try:
            self.run(body, env, scope)
        except _Turn as turn:
            return turn.last
        return False

    def branch(self, stmt: ast.If, env: Env, scope: Scope) -> None:
        test = self.eval(stmt.test, env, scope)
        if test is not UNKNOWN:
            self.run(stmt.body if test else stmt.orelse, env, scope)
            return
        self.guessed = True
        try:
            self.run(stmt.body, env, scope)
        except _Turn:
            self.doubtful = True  # a filter
        except _Returned as returned:
            if isinstance(returned.value, list) and returned.value:
                raise
            self.run(stmt.orelse, env, scope)
