"""``triton.autotune`` and ``triton.heuristics``: the values that they give to parameters."""

from __future__ import annotations

import ast
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from tl2npu.source.constants import UNKNOWN
from tl2npu.source.functions import MOST, Reader, Scope, TooLong
from tl2npu.source.triton_imports import LAUNCH_CACHES
from tl2npu.triton.refused import Refused

Constant = int | float | bool | str | None


class _Unseen(Exception):
    """The values of the configurations are computed, or stand elsewhere."""


@dataclass
class Tuning:
    """``values``: parameter -> the value of the chosen configuration, which has this ``number`` of so ``many``;
    ``filtered``: the file chooses among them; ``given``: the values are the user's;
    ``heuristics``: parameter -> what computes it from the arguments."""

    values: dict[str, Constant] = field(default_factory=dict)
    number: int = 0
    many: int = 1
    filtered: bool = False
    given: bool = False
    heuristics: dict[str, ast.Lambda] = field(default_factory=dict)
    line: int | None = None


def tuning(
    kernel: ast.FunctionDef,
    scope: Scope,
    number: int = 0,
    *,
    path: Callable[[ast.expr], str],
    given: Mapping[str, Constant] = MappingProxyType({}),
) -> Tuning:
    """What the decorators of a kernel decide. Raises ``Refused``.

    ``scope``: what code around the kernel sees; ``number``: of the configuration that is chosen, from 0; ``path``: what
    a dotted name means by the imports.
    ``given``: the user's values for constants, where the configurations of ``autotune`` are not seen.
    """
    found = Tuning(number=number)
    params = {arg.arg for arg in (*kernel.args.posonlyargs, *kernel.args.args, *kernel.args.kwonlyargs)}
    for node in kernel.decorator_list:
        func = node.func if isinstance(node, ast.Call) else node
        name = ast.unparse(func)
        meaning = path(func)
        last = meaning.rpartition(".")[2]
        tuner = last == "autotune" or (isinstance(node, ast.Call) and _is_tuner(node, scope))
        if name in scope.functions and not (tuner and _hands_on(scope.functions[name])):
            raise Refused("TL543", node.lineno, f"the decorator `{name}` may change the kernel")
        if last == "jit" or (meaning in LAUNCH_CACHES and isinstance(node, ast.Call)):
            continue
        if tuner and isinstance(node, ast.Call):
            try:
                _autotune(node, scope, found)
            except _Unseen as unseen:
                values = {name: value for name, value in given.items() if name in params}
                if not values:
                    raise Refused(
                        "TL514", node.lineno, f"{unseen}, and `--tuned` gives none of its constants"
                    ) from None
                found = replace(found, values=values, many=1, filtered=False, given=True, line=node.lineno)
        elif last == "heuristics" and isinstance(node, ast.Call):
            _heuristics(node, scope, params, found)
        else:
            raise Refused("TL543", node.lineno, f"the decorator `{name}` may change the kernel")
    return found


def _is_tuner(node: ast.Call, scope: Scope) -> bool:
    """True for a decorator, whosever it is, that gets configurations of Triton and the arguments that decide on one."""
    words = {word.arg: word.value for word in node.keywords}
    configs, key = (words.get(name, (node.args + [None] * 2)[n]) for n, name in enumerate(("configs", "key")))
    return isinstance(key, (ast.List, ast.Tuple)) and bool(configurations(configs, scope)[0])


def _hands_on(function: ast.FunctionDef) -> bool:
    """True for a decorator of the file that gives its configurations to a tuner, under whatever name."""
    names = (getattr(part, "attr", getattr(part, "id", "")) for part in ast.walk(ast.Module(function.body, [])))
    return any("tune" in name.lower() for name in names)


def _autotune(node: ast.Call, scope: Scope, found: Tuning) -> None:
    words = {word.arg: word.value for word in node.keywords}
    configs, found.filtered = configurations(node.args[0] if node.args else words.get("configs"), scope)
    hooks = [word for call in (node, *(item.call for item in configs[:1])) for word in call.keywords]
    hooks = [word for word in hooks if word.arg in ("pre_hook", "post_hook")]
    working = (word.value for word in hooks if not isinstance(word.value, ast.Constant))
    if not all(_only_blocks(hook, scope.functions) for hook in working):
        way = "do what the hook does beside the launch, as `dq.zero_()` before it, and leave `pre_hook` out"
        raise Refused("TL514", node.lineno, "a hook of `autotune` runs before or after the kernel", way)
    if not configs:
        raise _Unseen("the configurations of `autotune` are not written out")
    found.many = len(configs)
    for key, value in configs[found.number].values.items():
        if not isinstance(key, str) or not isinstance(value, (int, float, str, type(None))):
            which = "the first" if found.number == 0 else "a"
            raise _Unseen(f"{which} configuration of `autotune` is not written out")
        found.values[key] = value
    found.line = node.lineno


def _only_blocks(hook: ast.expr, functions: Mapping[str, ast.FunctionDef]) -> bool:
    """True for a hook that does nothing but give tensor descriptors of the host their block."""
    function = functions.get(hook.id) if isinstance(hook, ast.Name) else None
    waiting = list(function.body) if function is not None else []
    while waiting:
        stmt = waiting.pop()
        part = stmt.test if isinstance(stmt, ast.If) else stmt
        calls = [node for node in ast.walk(part) if isinstance(node, ast.Call)]
        if any(ast.unparse(call.func) != "isinstance" for call in calls):
            return False
        match stmt:
            case ast.If():
                waiting += [*stmt.body, *stmt.orelse]
            case ast.Return(value=None) | ast.Assign(targets=[ast.Name()]):
                pass
            case ast.Assign(targets=[ast.Attribute(attr="block_shape")]):
                pass
            case _:
                return False
    return function is not None


def _heuristics(node: ast.Call, scope: Scope, params: Container[str], found: Tuning) -> None:
    values = node.args[0] if node.args else next((word.value for word in node.keywords if word.arg == "values"), None)
    if not isinstance(values, ast.Dict):
        raise Refused("TL514", node.lineno, "the heuristics are not written out")
    for key, value in zip(values.keys, values.values, strict=True):
        if isinstance(key, ast.Constant) and key.value not in params:
            continue  # an option of the compiler
        if isinstance(value, ast.Name):
            own = scope.functions.get(value.id)
            other, _ = scope.elsewhere(value.id) or (None, None)
            if own is not None or isinstance(other, ast.FunctionDef):
                value = _as_lambda(own, other)
        if not isinstance(key, ast.Constant) or not isinstance(value, ast.Lambda) or len(value.args.args) != 1:
            shown = ast.unparse(key) if key is not None else "**"
            raise Refused("TL514", node.lineno, f"the heuristic of {shown} is not a function of the arguments")
        found.heuristics[str(key.value)] = value


def _as_lambda(own: ast.FunctionDef | None, other: ast.AST | None) -> ast.expr:
    """A function as a lambda: what it computes, if that is one expression, in the names of this module."""
    function = own or other
    assert isinstance(function, ast.FunctionDef)
    value = one_expression(function) if own is not None else None
    return ast.Constant(None) if value is None else ast.Lambda(function.args, value)


def one_expression(function: ast.FunctionDef) -> ast.expr | None:
    """What a function returns after assignments that each give a new name its only value; None for other functions."""
    taken = {arg.arg for arg in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}
    values: dict[str, ast.expr] = {}

    class Put(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return values.get(node.id, node)

    for stmt in function.body:
        match stmt:
            case ast.Expr(value=ast.Constant()):
                pass
            case ast.Assign(targets=[ast.Name(id=name)]) if name not in taken and name not in values:
                values[name] = Put().visit(ast.parse(ast.unparse(stmt.value), mode="eval").body)
            case ast.Return() if stmt.value is not None:
                return stmt.value if not values else Put().visit(ast.parse(ast.unparse(stmt.value), mode="eval").body)
            case _:
                return None
    return None


@dataclass(frozen=True)
class Configuration:
    """A call of ``triton.Config``, and the value of each parameter, which may be unseen."""

    call: ast.Call
    values: Mapping[object, object]
    options: Mapping[str, object]


def configurations(node: ast.expr | None, scope: Scope) -> tuple[list[Configuration], bool]:
    """The configurations that an expression of a module gives; True if more than these may be, as a filter is unseen.

    Empty where they are not seen. Triton itself takes whichever is fastest, so any is right: what depends on the
    machine, or on code that is not read, is left open; of a condition the first branch that gives a list is taken, of a
    filter the first configuration.
    """
    reader = _Reader(scope)
    try:
        found = reader.eval(node, {}, scope) if node is not None else UNKNOWN
    except (TooLong, RecursionError):
        return [], False
    items = [item for item in found if isinstance(item, Configuration)] if isinstance(found, (list, tuple)) else []
    return (items[:1], True) if reader.doubtful else (items[:MOST], False)


class _Reader(Reader):
    """Knows ``triton.Config``."""

    def attribute(self, holder: object, name: str) -> object:
        if not isinstance(holder, Configuration):
            return UNKNOWN
        return holder.values if name == "kwargs" else holder.options.get(name, UNKNOWN)

    def made(self, name: str, node: ast.Call, words: dict[str, object]) -> object:
        if name != "Config":
            return None
        values = self.element(node.args[0]) if node.args else words.pop("kwargs", {})
        return Configuration(node, values, words) if isinstance(values, dict) else UNKNOWN
