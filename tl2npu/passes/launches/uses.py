"""What host code does with what a factory gives."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tl2npu.passes.names.definitions import visible_uses
from tl2npu.source.index import Index


def methods_taken(index: Index, factory: cst.FunctionDef) -> tuple[list[tuple[cst.Attribute, bool]], set[str]]:
    """Every ``f.attribute`` and ``f(...).attribute``, the second kind marked; names and returns are followed.

    Also the functions of the module that give what ``f`` gives, itself among them. ``f`` may stand in a function that
    returns it: then ``make(...)(...).attribute`` is of the second kind.
    """
    found: list[tuple[cst.Attribute, bool]] = []
    seen: set[tuple[cst.FunctionDef, int]] = set()
    functions = [(factory, 1)]
    while functions:
        current, calls = functions.pop()
        if (current, calls) in seen:
            continue
        seen.add((current, calls))
        around = index.enclosing(current, cst.FunctionDef)
        for use in visible_uses(around or index.module, current.name.value):
            for attribute, of_result, giver in _of_value(index, use, calls):
                if attribute is not None:
                    found.append((attribute, of_result))
                functions += [giver] if giver is not None else []
    return found, {function.name.value for function, _ in seen}


def _of_value(
    index: Index, value: cst.CSTNode, calls: int
) -> Iterator[tuple[cst.Attribute | None, bool, tuple[cst.FunctionDef, int] | None]]:
    """The attributes taken from what gives the kernel after some ``calls``, and the functions that return that."""
    above = index.parent(value)
    if isinstance(above, cst.Attribute) and above.value is value:
        yield above, calls == 0, None
    elif isinstance(above, cst.Call) and above.func is value and calls > 0:
        yield from _of_value(index, above, calls - 1)
    elif isinstance(above, (cst.Return, cst.IfExp)):
        function = index.enclosing(above, cst.FunctionDef)
        if isinstance(function, cst.FunctionDef):
            yield None, False, (function, calls + 1)
    elif isinstance(above, cst.Assign) and isinstance(target := above.targets[0].target, cst.Name):
        for handle in visible_uses(index.enclosing(above, cst.FunctionDef) or index.module, target.value):
            yield from _of_value(index, handle, calls)
