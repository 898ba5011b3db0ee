"""Kernels that host code keeps in variables: the result of a warm-up, an entry of a table of compiled kernels.

A launch through such a variable is a launch of that kernel. What host code asks of a compiled kernel, such as its
registers, goes with the kernel, if nothing but its grid depends on it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field

from tl2npu.across.changes import root_name
from tl2npu.triton.host.torch_names import WORD
from tl2npu.triton.host.variants import stable
from tl2npu.triton.refused import Refused

_Held = frozenset[str] | tuple["_Held", ...] | None
"""The kernels that a value may be: none for other values; a tuple for a tuple; None where it is not known."""

_NOTHING: frozenset[str] = frozenset()
_PURE = frozenset({"min", "max", "int", "len", "abs", "cdiv", "next_power_of_2", "get", "get_device_properties"})
_Function = ast.FunctionDef | ast.Module


def launches_by_name(tree: ast.Module, kernels: Iterable[str]) -> list[ast.If]:
    """Put the kernel's own name into launches through a variable that can hold no other kernel. Changes the tree.

    A launch through ``k = one if test else other`` becomes an ``if`` with a launch of each, at the same place of the
    text. Returns these statements.
    """
    known = frozenset(kernels)
    found: list[ast.If] = []
    for scope in _scopes(tree):
        for node in _inside(scope):
            func = node.func if isinstance(node, ast.Call) else None
            if isinstance(func, ast.Subscript) and isinstance(func.value, ast.Name) and func.value.id not in known:
                held = _Holder(tree, scope, known).of(func.value)
                if isinstance(held, frozenset) and len(held) == 1:
                    func.value = ast.copy_location(ast.Name(next(iter(held)), ast.Load()), func.value)
        for node in [scope, *_inside(scope)]:
            bodies = (getattr(node, name, None) for name in ("body", "orelse", "finalbody"))
            for body in (body for body in bodies if isinstance(body, list)):
                for place, stmt in enumerate(body):
                    before = body[:place]
                    if isinstance(stmt, ast.Expr) and (chosen := _chosen(scope, stmt.value, known, before)) is not None:
                        body[place] = _branches(stmt, chosen)
                        found.append(body[place])
    return found


def _chosen(
    scope: _Function, launch: ast.expr, kernels: frozenset[str], before: Sequence[ast.stmt]
) -> ast.IfExp | None:
    """``one if test else other``, where a launch is of a variable that holds this kernel or that: by the only statement
    that sets it, or the last one of those ``before`` the launch."""
    func = launch.func if isinstance(launch, ast.Call) else None
    if not isinstance(func, ast.Subscript) or not isinstance(func.value, ast.Name) or isinstance(scope, ast.Module):
        return None
    name = func.value.id
    last = next((part for stmt in reversed(before) if (part := list(_assigned(ast.Module([stmt], []), name)))), None)
    values = last or list(_assigned(scope, name))
    value = values[0][0] if len(values) == 1 and values[0][1] is None and not _parameter(scope, name) else None
    if not isinstance(value, ast.IfExp) or not stable(ast.unparse(value.test), scope):
        return None
    arms = value.body, value.orelse
    return value if all(isinstance(arm, ast.Name) and arm.id in kernels for arm in arms) else None


def _branches(stmt: ast.Expr, chosen: ast.IfExp) -> ast.If:
    """A launch of either kernel, as a condition decides."""
    arms: list[ast.stmt] = []
    for kernel in (chosen.body, chosen.orelse):
        arm = deepcopy(stmt)
        arm.value.func.value = ast.copy_location(deepcopy(kernel), stmt.value.func.value)  # type: ignore[attr-defined]
        arms.append(arm)
    return ast.copy_location(ast.If(deepcopy(chosen.test), arms[:1], arms[1:]), stmt)


def _scopes(tree: ast.Module) -> list[_Function]:
    return [tree, *(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))]


def _inside(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function or module without those of the functions in it."""
    for child in ast.iter_child_nodes(scope):
        if not isinstance(child, (ast.FunctionDef, ast.ClassDef)):
            yield child
            yield from _inside(child)


class _Holder:
    """What variables of a function may hold, whatever way was taken to a statement."""

    def __init__(self, tree: ast.Module, scope: _Function, kernels: frozenset[str]) -> None:
        self.tree, self.scope, self.kernels = tree, scope, kernels
        self.open: set[str] = set()

    def of(self, node: ast.expr) -> _Held:
        """The kernels that an expression may be."""
        match node:
            case ast.Name():
                return self.name(node.id)
            case ast.Constant():
                return _NOTHING
            case ast.Tuple():
                return tuple(self.of(item) for item in node.elts)
            case ast.IfExp():
                return _either((self.of(node.body), self.of(node.orelse)))
            case ast.Call(func=ast.Attribute(attr="warmup")):
                return self.of(node.func.value)  # type: ignore[attr-defined]
            case ast.Call(func=ast.Attribute(value=ast.Name(), attr="get")) if len(node.args) == 2:
                return _either((self.table(node.func.value.id), self.of(node.args[1])))  # type: ignore[attr-defined]
            case ast.Subscript(value=ast.Name()):
                return self.table(node.value.id)  # type: ignore[attr-defined]
        return None

    def name(self, name: str) -> _Held:
        values = list(_assigned(self.scope, name))
        if not values and not _parameter(self.scope, name):
            return frozenset({name}) if name in self.kernels else None
        if name in self.open:
            return _NOTHING
        if _parameter(self.scope, name) or any(value is None for value, _ in values):
            return None
        self.open.add(name)
        found = _either(_part(self.of(value), place) for value, place in values if value is not None)
        self.open.discard(name)
        return found

    def table(self, name: str) -> _Held:
        """What a dictionary of the file holds that only gets single entries."""
        made = [value for scope in (self.scope, self.tree) for value, _ in _assigned(scope, name)]
        if len(made) != 1 or not isinstance(made[0], ast.Dict) or _parameter(self.scope, name):
            return None
        stored: list[ast.expr] = [*made[0].values]
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Assign) and any(_is_entry(target, name) for target in node.targets):
                stored.append(node.value)
            elif isinstance(node, ast.Call) and any(isinstance(a, ast.Name) and a.id == name for a in node.args):
                return None
        return _either(map(self.of, stored))


def _assigned(scope: _Function, name: str) -> Iterator[tuple[ast.expr | None, int | None]]:
    """What a function sets a name to, and the place in that where it is a tuple; None for what is no assignment."""
    for node in _inside(scope):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name) and target.id == name:
                    yield node.value, None
                for place, item in enumerate(target.elts if isinstance(target, (ast.Tuple, ast.List)) else ()):
                    if isinstance(item, ast.Name) and item.id == name:
                        yield node.value, place
        elif isinstance(node, (ast.For, ast.AugAssign, ast.AnnAssign, ast.NamedExpr, ast.withitem)):
            targets = node.optional_vars if isinstance(node, ast.withitem) else node.target
            if targets is not None and any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(targets)):
                yield None, None


def _part(held: _Held, place: int | None) -> _Held:
    if place is None:
        return held
    return held[place] if isinstance(held, tuple) and place < len(held) else None


def _either(found: Iterable[_Held]) -> _Held:
    """What a value may be that is one of several."""
    total: _Held = _NOTHING
    for held in found:
        if held == total or (held is not None and total == _NOTHING):
            total = held
        elif held == _NOTHING:
            continue
        elif isinstance(held, frozenset) and isinstance(total, frozenset):
            total |= held
        elif isinstance(held, tuple) and isinstance(total, tuple) and len(held) == len(total):
            total = tuple(_either(pair) for pair in zip(total, held, strict=True))
        else:
            return None
    return total


def _parameter(scope: _Function, name: str) -> bool:
    if isinstance(scope, ast.Module):
        return False
    args = scope.args
    own = (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg)
    return any(arg is not None and arg.arg == name for arg in own)


def _is_entry(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == name


@dataclass(frozen=True)
class Unneeded:
    """A statement that goes with the Triton kernel; ``last``: its block is empty without it."""

    stmt: ast.stmt
    last: bool


def bookkeeping(
    tree: ast.Module, kernel: str, jitted: Iterable[ast.FunctionDef], launches: Mapping[int, str]
) -> list[Unneeded]:
    """The statements that keep a kernel, ask for what was compiled, and compute from that; the outermost ones.

    They can go with the kernel. ``launches``: ``id`` of each launch -> the text that takes its place. Raises
    ``Refused`` where anything else needs them.
    """
    found: list[Unneeded] = []
    jitted = list(jitted)
    for scope in _scopes(tree):
        places = {id(node.func.value) for node in ast.walk(scope) if id(node) in launches}  # type: ignore[attr-defined]
        names = [node for node in _inside(scope) if isinstance(node, ast.Name) and node.id == kernel]
        if not places and isinstance(scope, ast.FunctionDef) and _is_own(scope, kernel, names):
            continue
        first = next((node for node in names if id(node) not in places), None)
        if first is not None:
            if isinstance(scope, ast.Module) or scope in jitted:
                raise Refused("TL510", first.lineno, f"`{kernel}` is used in another way than `{kernel}[grid](...)`")
            found += _Slice(tree, scope, kernel, launches).statements()
    return found


def _is_own(scope: ast.FunctionDef, name: str, uses: Iterable[ast.Name]) -> bool:
    """Whether a name is a parameter or a variable of a function."""
    args = scope.args
    every = (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg)
    return any(arg is not None and arg.arg == name for arg in every) or (
        any(isinstance(use.ctx, ast.Store) for use in uses)
        and not any(isinstance(node, ast.Global) and name in node.names for node in ast.walk(scope))
    )


@dataclass
class _Slice:
    """The statements of a function that only serve what is known of a compiled kernel."""

    tree: ast.Module
    scope: ast.FunctionDef
    kernel: str
    launches: Mapping[int, str]
    tainted: set[str] = field(default_factory=set)
    gone: dict[int, ast.stmt] = field(default_factory=dict)

    def statements(self) -> list[Unneeded]:
        self.tainted = {self.kernel}
        size = -1
        while size != len(self.tainted):
            size = len(self.tainted)
            self.gone.clear()
            self.read(self.scope.body, False)
        while self.unneeded():
            pass
        found = self.outermost(self.scope.body)
        inside = {id(node) for node in ast.walk(self.scope)}
        for node in ast.walk(self.tree):
            for name in sorted(self.needs(node) & self.tainted - {self.kernel}):
                if id(node) in inside or not any(True for _ in _assigned(self.scope, name)):
                    line = getattr(node, "lineno", self.scope.lineno)
                    raise Refused("TL510", line, f"`{name}` follows from the compiled `{self.kernel}`, and is needed")
        return found

    def refuse(self, stmt: ast.stmt) -> Refused:
        code = ast.unparse(stmt).splitlines()[0]
        return Refused("TL510", stmt.lineno, f"`{code}` needs what is known of the compiled `{self.kernel}`")

    def read(self, body: Sequence[ast.stmt], decided: bool) -> None:
        """Note what can go. ``decided``: a compiled kernel decides whether these statements are reached."""
        for stmt in body:
            self.one(stmt, decided)

    def one(self, stmt: ast.stmt, decided: bool) -> None:
        match stmt:
            case ast.FunctionDef() | ast.ClassDef():
                if self.names(stmt) & self.tainted:
                    raise self.refuse(stmt)
            case ast.If() | ast.While() | ast.For():
                test = stmt.iter if isinstance(stmt, ast.For) else stmt.test
                below = decided or bool(self.names(test) & self.tainted)
                if below and not self.pure(test):
                    raise self.refuse(stmt)
                self.read([*stmt.body, *stmt.orelse], below)
                parts = [part for part in (*stmt.body, *stmt.orelse) if not isinstance(part, ast.Pass)]
                if parts and self.pure(test) and all(id(part) in self.gone for part in parts):
                    self.gone[id(stmt)] = stmt
            case ast.With() | ast.Try():
                for name in ("body", "orelse", "finalbody"):
                    self.read(getattr(stmt, name, ()), decided)
                for handler in getattr(stmt, "handlers", ()):
                    self.read(handler.body, decided)
            case _ if any(id(node) in self.launches for node in ast.walk(stmt)):
                if decided:
                    raise self.refuse(stmt)
            case ast.Assign() | ast.AugAssign() | ast.AnnAssign() if stmt.value is not None:
                self.assignment(stmt, decided)
            case ast.Expr() if self.names(stmt) & self.tainted or decided:
                call = stmt.value
                own = isinstance(call, ast.Call) and root_name(call.func) in self.tainted
                if not (isinstance(call, ast.Constant) or (own and self.pure(call))):
                    raise self.refuse(stmt)
                self.gone[id(stmt)] = stmt
            case ast.Pass():
                pass
            case _ if self.names(stmt) & self.tainted or decided:
                raise self.refuse(stmt)

    def assignment(self, stmt: ast.Assign | ast.AugAssign | ast.AnnAssign, decided: bool) -> None:
        targets = stmt.targets if isinstance(stmt, ast.Assign) else [stmt.target]
        names = {name for target in targets for name in self.set_by(target)}
        assert stmt.value is not None
        tainted = decided or bool(self.names(stmt.value) & self.tainted)
        if tainted:
            plain = all(self.set_by(target) for target in targets)
            if not plain or not self.pure(stmt.value):
                raise self.refuse(stmt)
            self.tainted |= names
        if tainted or (names and names <= self.tainted and self.pure(stmt.value)):
            self.gone[id(stmt)] = stmt

    def set_by(self, target: ast.expr) -> set[str]:
        """The names that an assignment to simple names, or to an entry of a dictionary, sets; none for others."""
        if isinstance(target, (ast.Tuple, ast.List)):
            parts = [self.set_by(item) for item in target.elts]
            return set().union(*parts) if all(parts) else set()
        if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            return {target.value.id}
        return {target.id} if isinstance(target, ast.Name) else set()

    def names(self, node: ast.AST) -> set[str]:
        """The names that a node reads."""
        return {item.id for item in ast.walk(node) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Load)}

    def needs(self, node: ast.AST) -> set[str]:
        """The names that a statement reads, if it stays: of a launch, those of its new text."""
        if id(node) in self.launches:
            return set(WORD.findall(self.launches[id(node)]))
        if not isinstance(node, ast.stmt) or id(node) in self.gone:
            return set()
        found: set[str] = set()
        waiting: list[ast.AST] = list(ast.iter_child_nodes(node))
        while waiting:
            item = waiting.pop()
            if id(item) in self.launches:
                found |= self.needs(item)
            elif isinstance(item, ast.Name) and isinstance(item.ctx, ast.Load):
                found.add(item.id)
            elif not isinstance(item, ast.stmt):
                waiting += ast.iter_child_nodes(item)
        return found

    def unneeded(self) -> bool:
        """Let go what only statements that are gone read. True if there was something."""
        read = {name for stmt in self.gone.values() for name in self.names(stmt)}
        left = {name for node in ast.walk(self.scope) for name in self.needs(node)}
        count = len(self.gone)
        for stmt in ast.walk(self.scope):
            if isinstance(stmt, ast.Assign) and self.pure(stmt.value):
                names = {
                    name for target in stmt.targets if isinstance(target, ast.Name) for name in self.set_by(target)
                }
                if names and len(names) == len(stmt.targets) and names <= read - left:
                    self.gone[id(stmt)] = stmt
            elif (
                isinstance(stmt, ast.If)
                and self.pure(stmt.test)
                and all(id(part) in self.gone for part in (*stmt.body, *stmt.orelse))
            ):
                self.gone[id(stmt)] = stmt
        return len(self.gone) > count

    def outermost(self, body: Sequence[ast.stmt]) -> list[Unneeded]:
        found: list[Unneeded] = []
        empty = all(id(stmt) in self.gone for stmt in body)
        for number, stmt in enumerate(body):
            if id(stmt) in self.gone:
                found.append(Unneeded(stmt, empty and not number))
            else:
                for name in ("body", "orelse", "finalbody"):
                    found += self.outermost(getattr(stmt, name, ()))
                for handler in getattr(stmt, "handlers", ()):
                    found += self.outermost(handler.body)
        return found

    def pure(self, node: ast.expr, depth: int = 3) -> bool:
        """True for expressions that do nothing but compute, or that only act on what is compiled."""
        for item in ast.walk(node):
            if isinstance(item, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)):
                return False
            if isinstance(item, ast.Call):
                name, root = ast.unparse(item.func), root_name(item.func)
                own = root in self.tainted and name != root and (root != self.kernel or name == f"{root}.warmup")
                if not own and name.rpartition(".")[2] not in _PURE and not self.asks(name, depth):
                    return False
        return True

    def asks(self, name: str, depth: int) -> bool:
        """True for questions to the device, and functions of the file that are one return of such."""
        if name.endswith((".get_current_target", ".size", ".stride", ".numel", ".element_size")):
            return True
        for node in self.tree.body:
            if isinstance(node, ast.FunctionDef) and node.name == name and depth:
                last = node.body[-1]
                return (
                    len(node.body) == 1
                    and isinstance(last, ast.Return)
                    and (last.value is not None and self.pure(last.value, depth - 1))
                )
        return False
