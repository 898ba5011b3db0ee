"""Instances of plain configuration classes: ``cfg = Config()``, ``Sizes(block=64)``, ``SimpleNamespace(block=64)``."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping

from tl2npu.across.values import Value, evaluate
from tl2npu.source.constants import NoValue

Known = Callable[[ast.expr], Value]
"""The value of a name or attribute where an expression stands. Raises :class:`NoValue`."""

_OWN_WAYS = frozenset({"__new__", "__post_init__", "__getattr__", "__getattribute__", "__setattr__", "__slots__"})


def initial(node: ast.ClassDef, call: ast.Call, outside: Known, inside: Known) -> Mapping[str, Value] | None:
    """The attributes that a call of a class without bases gives the instance, beside those of the class.

    ``outside``: what names mean where the call stands, ``inside``: where the class does. None if that cannot be told;
    ``...`` for attributes of which only the name is known.
    """
    defined = {inner.name: inner for inner in node.body if isinstance(inner, ast.FunctionDef)}
    if node.bases or node.keywords or _OWN_WAYS & set(defined) or any(_binds_slots(line) for line in node.body):
        return None
    if "__init__" in defined:
        own = defined["__init__"]
        return None if node.decorator_list or own.decorator_list else _by_init(own, call, outside, inside)
    if node.decorator_list:
        return _by_fields(node, call, outside, inside)
    return {} if not call.args and not call.keywords else None


def of_dict(call: ast.Call) -> ast.Dict | None:
    """``dict(block=64)`` as it is written in braces."""
    if not isinstance(call.func, ast.Name) or call.func.id != "dict" or call.args:
        return None
    keys: list[ast.expr | None] = [ast.Constant(k.arg) if k.arg is not None else None for k in call.keywords]
    return ast.Dict(keys, [keyword.value for keyword in call.keywords])


def is_frozen(node: ast.ClassDef) -> bool:
    """A dataclass whose instances stay as they were made."""
    options = [keyword for mark in node.decorator_list if isinstance(mark, ast.Call) for keyword in mark.keywords]
    return any(k.arg == "frozen" and isinstance(k.value, ast.Constant) and k.value.value is True for k in options)


def named(call: ast.Call, outside: Known) -> Mapping[str, Value] | None:
    """The attributes of ``SimpleNamespace(block=64)``."""
    return _bound([], {}, call, outside, inside=outside, any_name=True)


def _binds_slots(line: ast.stmt) -> bool:
    return isinstance(line, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__slots__" for t in line.targets)


def _by_fields(node: ast.ClassDef, call: ast.Call, outside: Known, inside: Known) -> Mapping[str, Value] | None:
    """Of a dataclass: annotated names in order, with their defaults."""
    options = [keyword for mark in node.decorator_list if isinstance(mark, ast.Call) for keyword in mark.keywords]
    if any(option.arg not in ("frozen", "eq", "order", "repr") for option in options):
        return None
    fields: dict[str, ast.expr | None] = {}
    for line in node.body:
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
            if "ClassVar" not in ast.unparse(line.annotation):
                fields[line.target.id] = line.value
        elif not isinstance(line, (ast.FunctionDef, ast.Expr, ast.Pass, ast.Assign)):
            return None
    return _bound(list(fields), {name: value for name, value in fields.items() if value}, call, outside, inside)


def _by_init(init: ast.FunctionDef, call: ast.Call, outside: Known, inside: Known) -> Mapping[str, Value] | None:
    """Of a class whose ``__init__`` only assigns: ``self.block = block``."""
    args = init.args
    if args.vararg or args.kwarg or args.posonlyargs or not args.args:
        return None
    own, *params = [arg.arg for arg in args.args]
    defaults = dict(zip(reversed(params), reversed(args.defaults), strict=False))
    defaults |= {arg.arg: value for arg, value in zip(args.kwonlyargs, args.kw_defaults, strict=True) if value}
    given = _bound(params, defaults, call, outside, inside, others=[arg.arg for arg in args.kwonlyargs])
    if given is None:
        return None
    made: dict[str, Value] = {}

    def known(node: ast.expr) -> Value:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == own:
            found = made.get(node.attr, ...)
        else:
            found = given[node.id] if isinstance(node, ast.Name) and node.id in given else inside(node)
        if found is ...:
            raise NoValue
        return found

    for name, value in _assigned(init, own):
        if not name or name in made:
            return None
        try:
            made[name] = evaluate(value, known)
        except NoValue:
            made[name] = ...
    return made


def _assigned(init: ast.FunctionDef, own: str) -> Iterator[tuple[str, ast.expr]]:
    """The attributes that the statements of ``__init__`` assign; an empty name for any other statement."""
    for line in init.body:
        if isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant):
            continue
        targets = (
            line.targets if isinstance(line, ast.Assign) else [line.target] if isinstance(line, ast.AnnAssign) else []
        )
        target = targets[0] if len(targets) == 1 else None
        value = line.value if isinstance(line, (ast.Assign, ast.AnnAssign)) else None
        plain = isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == own
        yield (target.attr if plain and value is not None else ""), value or ast.Constant(None)  # type: ignore[union-attr]


def _bound(
    params: list[str],
    defaults: Mapping[str, ast.expr],
    call: ast.Call,
    outside: Known,
    inside: Known,
    others: list[str] | None = None,
    any_name: bool = False,
) -> dict[str, Value] | None:
    """What a call gives each parameter; None if it does not fit. ``others``: parameters by name only."""
    every = [*params, *(others or [])]
    if len(call.args) > len(params) or any(isinstance(arg, ast.Starred) for arg in call.args):
        return None
    given: dict[str, tuple[ast.expr, Known]] = {name: (value, inside) for name, value in defaults.items()}
    given |= {name: (value, outside) for name, value in zip(params, call.args, strict=False)}
    for keyword in call.keywords:
        if keyword.arg is None or (keyword.arg not in every and not any_name):
            return None
        given[keyword.arg] = keyword.value, outside
    if any(name not in given for name in every):
        return None
    return {name: _value(*pair) for name, pair in given.items()}


def _value(node: ast.expr, known: Known) -> Value:
    try:
        return evaluate(node, known)
    except NoValue:
        return ...
