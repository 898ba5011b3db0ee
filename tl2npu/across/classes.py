"""The attributes of a class body that are plain values."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Literal

import libcst as cst

from tl2npu.source.index import Index
from tl2npu.source.named_by_call import returns_of
from tl2npu.source.names import Names

Kind = Literal["plain", "members", "values"]
"""``members``: what the body assigns becomes members of an enumeration, ``values``: members that are values as well."""

_ENUMS = frozenset({"enum.Enum", "enum.IntEnum", "enum.StrEnum"})
_MIXED = frozenset({"enum.IntEnum", "enum.StrEnum", "int", "str"})
_HARMLESS = frozenset({"dataclasses.dataclass", "enum.unique"})
_OWN_WAYS = frozenset({"__init__", "__new__", "__int__", "__str__", "value"})  # of an enumeration to hold its values


def kind_of(node: ast.ClassDef, bases: Sequence[str], decorators: Sequence[str]) -> Kind | None:
    """What a class makes of its attributes; ``bases``: the dotted names of those outside of the repository.

    None for classes that may do anything.
    """
    if node.keywords or any(isinstance(mark, ast.Call) and _has_slots(mark) for mark in node.decorator_list):
        return None
    if any(name not in _HARMLESS for name in decorators) or any(n not in _ENUMS | _MIXED | {"object"} for n in bases):
        return None
    if not _ENUMS & set(bases):
        return "plain" if not _MIXED & set(bases) else None
    if any(isinstance(inner, ast.FunctionDef) and inner.name in _OWN_WAYS for inner in node.body):
        return None
    return "values" if _MIXED & set(bases) else "members"


def stands_in_for(node: ast.ClassDef, text: str) -> str | None:
    """The module of TileLang that the instances of a class ask for what they do not have: ``__getattr__`` returns
    ``getattr(module, name)``. ``text``: that of the module of the class."""
    if not any(isinstance(inner, ast.FunctionDef) and inner.name == "__getattr__" for inner in node.body):
        return None
    index = Index.parse(text)
    names = Names(index)
    for method in names.functions["__getattr__"]:
        owner = index.enclosing(method, cst.ClassDef)
        for value in returns_of(method) if owner is not None and owner.name.value == node.name else ():
            if isinstance(value, cst.Call) and value.args and getattr(value.func, "value", "") == "getattr":
                found = names.resolve(value.args[0].value)
                return found if found in ("tilelang", "tilelang.language") else None
    return None


def _has_slots(decorator: ast.Call) -> bool:
    """Then the attributes of the class are not the values that its body assigns."""
    return any(keyword.arg in ("slots", None) for keyword in decorator.keywords)


def assigned(node: ast.ClassDef, name: str) -> ast.expr | None:
    """The value that a class body assigns to a name, once and without a condition."""
    value: ast.expr | None = None
    for statement in node.body:
        targets: Sequence[ast.expr] = ()
        if isinstance(statement, ast.Assign):
            targets = statement.targets
        elif isinstance(statement, ast.AnnAssign):
            targets = [statement.target] if statement.value is not None else ()
        if any(isinstance(target, ast.Name) and target.id == name for target in targets) and value is None:
            assert isinstance(statement, (ast.Assign, ast.AnnAssign))
            value = statement.value
        elif binds(statement, name):
            return None
    return value


def binds(statement: ast.stmt, name: str) -> bool:
    """True if a statement of a class body may bind a name, other than by a plain annotation."""
    if isinstance(statement, ast.AnnAssign) and statement.value is None:
        return False
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return statement.name == name
    return any(
        isinstance(inner, ast.Name) and inner.id == name and not isinstance(inner.ctx, ast.Load)
        for inner in ast.walk(statement)
    )
