"""What host code does with what a factory gives."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tl2npu.passes.names.definitions import visible_uses
from tl2npu.source.index import Index


def methods_taken(index: Index, name: str) -> tuple[list[tuple[cst.Attribute, bool]], set[str]]:
    """Every ``f.attribute`` and ``f(...).attribute``, the second kind marked; names and returns are followed.

    Also the functions that give what ``f`` gives, itself among them.
    """
    found: list[tuple[cst.Attribute, bool]] = []
    seen: set[str] = set()
    names = [name]
    while names:
        current = names.pop()
        if current in seen:
            continue
        seen.add(current)
        for use in visible_uses(index.module, current):
            made = index.parent(use)
            if isinstance(made, cst.Attribute):
                found.append((made, False))
            elif isinstance(made, cst.Call) and made.func is use:
                for attribute, passed_on in _of_value(index, made):
                    if attribute is not None:
                        found.append((attribute, True))
                    names += [passed_on] if passed_on else []
    return found, seen


def _of_value(index: Index, value: cst.CSTNode) -> Iterator[tuple[cst.Attribute | None, str]]:
    """The attributes taken from a value, and the functions that return it."""
    above = index.parent(value)
    if isinstance(above, cst.Attribute) and above.value is value:
        yield above, ""
    elif isinstance(above, (cst.Return, cst.IfExp)):
        function = index.enclosing(above, cst.FunctionDef)
        if isinstance(function, cst.FunctionDef):
            yield None, function.name.value
    elif isinstance(above, cst.Assign) and isinstance(target := above.targets[0].target, cst.Name):
        for handle in visible_uses(index.enclosing(above, cst.FunctionDef) or index.module, target.value):
            yield from _of_value(index, handle)
