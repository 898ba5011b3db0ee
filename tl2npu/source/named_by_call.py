"""Modules that are named by other means than ``import``: calls of importlib, ``getattr``, elements of tuples."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from tl2npu.source.literals import text_of as literal_text
from tl2npu.source.tree import HOLDS_LINES, children, remembered

Resolve = Callable[[cst.BaseExpression], str | None]

_PAIR = 2


def imported_by(call: cst.Call, function: str | None, resolve: Resolve) -> str | None:
    """The module that ``importlib.import_module("a.b")`` or ``__import__("a.b")`` gives; None for other calls."""
    given = {arg.keyword.value if arg.keyword else place: arg.value for place, arg in enumerate(call.args)}
    name = _text(given.get(0, given.get("name")))
    if name is None or any(arg.star for arg in call.args):
        return None
    if function == "importlib.import_module":
        if not name.startswith("."):
            return name
        package = given.get(1, given.get("package"))
        base = _text(package)
        if base is None and type(package) is cst.Attribute and package.attr.value == "__name__":
            base = resolve(package.value)
        return base + name if base and not name.startswith("..") else None
    if type(call.func) is cst.Name and call.func.value == "__import__" and function in (None, "__import__"):
        below = given.get(3, given.get("fromlist"))
        whole = isinstance(below, (cst.List, cst.Tuple)) and bool(below.elements)
        return name if whole else name.split(".")[0]
    return None


def attribute_of(node: cst.BaseExpression, resolve: Resolve) -> str | None:
    """What ``getattr(a, "b")``, ``vars(a)["b"]``, ``a.__dict__["b"]`` or ``sys.modules["a.b"]`` means."""
    if type(node) is cst.Call and type(node.func) is cst.Name and node.func.value == "getattr":
        name = _text(node.args[1].value) if len(node.args) >= _PAIR else None
        owner = resolve(node.args[0].value) if name is not None else None
        return f"{owner}.{name}" if owner is not None else None
    key = _key(node) if type(node) is cst.Subscript else None
    if key is None or type(node) is not cst.Subscript:
        return None
    if resolve(node.value) == "sys.modules":
        return key
    held: cst.BaseExpression | None = None
    if type(node.value) is cst.Call and type(node.value.func) is cst.Name and len(node.value.args) == 1:
        held = node.value.args[0].value if node.value.func.value == "vars" else None
    elif type(node.value) is cst.Attribute and node.value.attr.value == "__dict__":
        held = node.value.value
    owner = resolve(held) if held is not None else None
    return f"{owner}.{key}" if owner is not None else None


def key_of_globals(node: cst.CSTNode) -> str | None:
    """The name in ``globals()["name"]``."""
    held = node.value if type(node) is cst.Subscript else None
    called = held.func if type(held) is cst.Call and not held.args else None
    if type(called) is cst.Name and called.value == "globals" and type(node) is cst.Subscript:
        return _key(node)
    return None


def element_of(node: cst.BaseExpression, part: tuple[int, ...]) -> cst.BaseExpression | None:
    """The element of nested tuples and lists at a place; None if there is no such thing to be seen."""
    for place in part:
        elements = node.elements if isinstance(node, (cst.Tuple, cst.List)) else ()
        if place >= len(elements) or any(type(item) is cst.StarredElement for item in elements):
            return None
        node = elements[place].value
    return node


def returned_by(function: cst.FunctionDef, part: tuple[int, ...]) -> list[cst.BaseExpression | None]:
    """What a plain function may return, or that element of it; None for what cannot be told."""
    if function.asynchronous is not None or function.decorators:
        return []
    return [None if value is None else element_of(value, part) for value in returns_of(function)]


@remembered
def returns_of(function: cst.FunctionDef) -> list[cst.BaseExpression | None]:
    """What every ``return`` of a function gives, those of functions in it left aside."""
    return [node.value for node in returns(function)]


def returns(function: cst.FunctionDef) -> list[cst.Return]:
    """The return statements of a function, not those of functions inside it."""
    found: list[cst.Return] = []
    stack: list[cst.CSTNode] = list(function.body.body)
    while stack:
        node = stack.pop(0)
        if type(node) is cst.Return:
            found.append(node)
        elif type(node) is cst.SimpleStatementLine or (
            HOLDS_LINES[type(node)] and not isinstance(node, (cst.FunctionDef, cst.ClassDef))
        ):
            stack += children(node)
    return found


@remembered
def members_of(owner: cst.ClassDef) -> dict[str, list[cst.BaseExpression]]:
    """What the methods of a class assign to attributes of the instance: ``self.name = value``."""
    found: dict[str, list[cst.BaseExpression]] = {}
    for method in owner.body.body:
        if type(method) is not cst.FunctionDef or not method.params.params:
            continue
        instance = method.params.params[0].name.value
        stack: list[cst.CSTNode] = [method.body]
        while stack:
            node = stack.pop()
            targets = [item.target for item in node.targets] if type(node) is cst.Assign else []
            for target in targets:
                on = target.value if type(target) is cst.Attribute else None
                if type(on) is cst.Name and on.value == instance:
                    assert type(node) is cst.Assign
                    assert type(target) is cst.Attribute
                    found.setdefault(target.attr.value, []).append(node.value)
            if HOLDS_LINES[type(node)] or type(node) is cst.SimpleStatementLine:
                stack += children(node)
    return found


def _key(node: cst.Subscript) -> str | None:
    index = node.slice[0].slice if len(node.slice) == 1 else None
    return _text(index.value) if type(index) is cst.Index else None


def _text(node: cst.BaseExpression | None) -> str | None:
    found = literal_text(node) if type(node) is cst.SimpleString else None
    return found if isinstance(found, str) else None
