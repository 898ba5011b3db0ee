"""Names that a kernel reads and nothing binds: Python's ``NameError``, by the scopes of the text alone."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from difflib import get_close_matches

import libcst as cst

from tl2npu.kernel.bindings import assigned_names
from tl2npu.kernel.style import called
from tl2npu.source.bound import bound_in
from tl2npu.source.index import Index
from tl2npu.source.names import Names
from tl2npu.source.tree import mentioned, names_in, nodes_of

_ANYWAY = frozenset({*dir(builtins), "__file__", "vid"})
"""What Python binds; TL810 tells of ``vid``."""
_BY_TEXT = frozenset({"exec", "eval", "globals", "vars"})
"""What may bind any name."""
_CLOSE = 0.75


def undefined(index: Index, names: Names, kernel: cst.FunctionDef) -> Iterator[cst.Name]:
    """The first use of each name that a kernel, or a function which it calls, reads and nothing around it binds."""
    if names.star:
        return
    told: set[str] = set()
    for function in (kernel, *called(kernel, names)):
        inner = names.visible(function.body)
        for name in (*names_in(function.params), *names_in(function.body)):
            if name.value in inner or name.value in _ANYWAY or name.value in told or index.foreign(name) is not None:
                continue
            if not _is_bound(index, names, function, name):
                told.add(name.value)
                yield name


def of_the_script(index: Index, names: Names, kernel: cst.FunctionDef) -> Iterator[cst.Name]:
    """The first use of each name around a kernel that only ``if __name__ == "__main__":`` binds."""
    script = [line for line in index.module.body if type(line) is cst.If and "__name__" in mentioned(line.test)]
    function = index.top(kernel)
    if not script or names.star or type(function) is not cst.FunctionDef:
        return
    found = {name for line in script for name, _ in bound_in(line).bindings} - _ANYWAY
    for line in index.module.body:
        if not any(line is other for other in script) and found:
            found -= {name for name, _ in bound_in(line).bindings}
    for name in names_in(function.body):
        if name.value in found and names.is_of_module(name.value) and index.foreign(name) is None:
            found.discard(name.value)
            yield name


def _is_bound(index: Index, names: Names, function: cst.FunctionDef, name: cst.Name) -> bool:
    """Whether a function, class or expression inside binds the name, or something that the scopes do not know of."""
    around = [
        part for part in (function, *index.ancestors(function)) if isinstance(part, (cst.FunctionDef, cst.Module))
    ]
    return (
        name.value in names.visible(name)
        or names.is_bound_in_expressions(name.value)
        or any(param.name.value == name.value for param in nodes_of(function, cst.Param))
        or any(name.value in assigned_names(line) for part in around for line in _lines(part))
        or bool(nodes_of(function, cst.Match, cst.TypeVar))
        or bool(_BY_TEXT & mentioned(index.module))
    )


def _lines(node: cst.FunctionDef | cst.Module) -> Iterator[cst.CSTNode]:
    yield from node.body.body if isinstance(node, cst.FunctionDef) else node.body


def not_defined(names: Names, node: cst.Name) -> str:
    """What is said of a name that nothing binds."""
    close = get_close_matches(node.value, sorted(names.visible(node)), n=1, cutoff=_CLOSE)
    return f"`{node.value}` is not defined" + (f"; did you mean `{close[0]}`?" if close else "")
