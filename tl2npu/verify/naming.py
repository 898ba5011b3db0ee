"""What kernels are called: the prim_func with the functions around it, as in the reports of a migration."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tl2npu.simulator.frontend.rewrite import launches


@dataclass(frozen=True)
class Place:
    """A kernel in a file: the line of its ``def``, and the lines of the outermost function around it."""

    name: str
    line: int
    first: int
    last: int


def name_of(compiled: Any) -> str:
    """The name of a compiled kernel: ``factory.main``."""
    function = getattr(compiled.prim_func, "__wrapped__", None)
    qualified = getattr(function, "__qualname__", "") or compiled.kernel.name
    return str(qualified).replace(".<locals>", "")


def line_of(compiled: Any) -> int:
    """The line of the ``def`` statement, decorators not counted, or of the first decorator where it cannot be told."""
    function = getattr(compiled.prim_func, "__wrapped__", None)
    code = getattr(function, "__code__", None)
    return code.co_firstlineno if code is not None else 0


def file_of(compiled: Any) -> str:
    """The file name that the function was compiled with."""
    code = getattr(getattr(compiled.prim_func, "__wrapped__", None), "__code__", None)
    return code.co_filename if code is not None else ""


def call_of(compiled: Any) -> str:
    """``factory(name=value, ...)``, or the name of the prim_func where no factory is known."""
    if not compiled.factory:
        return str(compiled.kernel.name)
    return f"{compiled.factory}({', '.join(f'{n}={v!r}' for n, v in compiled.arguments.items())})"


def places(text: str) -> list[Place]:
    """The kernels of a file: prim_funcs, and functions that launch by themselves under ``tilelang.jit``."""
    found: list[Place] = []
    for around in _kernels(ast.parse(text), ()):
        outer = around[0]
        first = min([outer.lineno, *(d.lineno for d in outer.decorator_list)])
        found.append(Place(_qualified(around), around[-1].lineno, first, outer.end_lineno or outer.lineno))
    return found


def texts(text: str) -> dict[str, str]:
    """The kernels of a file, without comments and layout."""
    return {_qualified(around): ast.dump(around[-1]) for around in _kernels(ast.parse(text), ())}


_Scopes = tuple[ast.FunctionDef | ast.ClassDef, ...]


def _kernels(node: ast.AST, around: _Scopes) -> Iterator[_Scopes]:
    """Each kernel with the functions and classes around it, the outermost first."""
    for child in ast.iter_child_nodes(node):
        inside = (*around, child) if isinstance(child, (ast.FunctionDef, ast.ClassDef)) else around
        if isinstance(child, ast.FunctionDef) and _is_kernel(child):
            yield inside
        else:
            yield from _kernels(child, inside)


def _qualified(around: _Scopes) -> str:
    return ".".join(scope.name for scope in around)


def _is_kernel(node: ast.FunctionDef) -> bool:
    decorators = [ast.unparse(d) for d in node.decorator_list]
    if any("prim_func" in d for d in decorators):
        return True
    return any("jit" in d for d in decorators) and launches(node.body)
