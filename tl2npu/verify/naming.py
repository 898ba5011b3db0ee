"""What kernels are called: the prim_func with the functions around it, as in the reports of a migration."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tl2npu.simulator.frontend.rewrite import launches


@dataclass(frozen=True)
class Place:
    """A kernel in a file: the line of its ``def``, and the lines of the outermost function around it.

    ``call``: how that is called in the file, or may be.
    """

    name: str
    line: int
    first: int
    last: int
    call: str = ""


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
    """The kernels of a file: prim_funcs, functions that launch under ``tilelang.jit``, and functions of ``triton.jit``
    that are launched or ask for their ``program_id``."""
    found: list[Place] = []
    tree = ast.parse(text)
    triton = _triton_kernels(tree)
    for around in _kernels(tree, (), lambda node: node in triton or _is_kernel(node)):
        outer = around[0]
        first = min([outer.lineno, *(d.lineno for d in outer.decorator_list)])
        last, call = outer.end_lineno or outer.lineno, _call(tree, outer) if len(around) > 1 else ""
        found.append(Place(_qualified(around), around[-1].lineno, first, last, call))
    return found


def _call(tree: ast.Module, factory: ast.AST) -> str:
    """The first call of a factory whose arguments are literals, else one with its parameters that have no default."""
    if not isinstance(factory, ast.FunctionDef):
        return ""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == factory.name:
            values = [*node.args, *(word.value for word in node.keywords)]
            if all(isinstance(value, ast.Constant) for value in values):
                return ast.unparse(node)
    args = [*factory.args.posonlyargs, *factory.args.args]
    names = [arg.arg for arg in args[: len(args) - len(factory.args.defaults)]]
    return f"{factory.name}({', '.join(f'{name}=...' for name in names)})"


def texts(text: str) -> dict[str, str]:
    """The kernels of a file, without comments and layout."""
    return {_qualified(around): ast.dump(around[-1]) for around in _kernels(ast.parse(text), (), _is_kernel)}


def unchanged(old: str, new: str) -> set[int]:
    """The lines of the old kernels whose text, without comments and layout, a new one of the same name has."""
    kept = {(_qualified(around), ast.dump(around[-1])) for around in _kernels(ast.parse(new), (), _is_kernel)}
    found = _kernels(ast.parse(old), (), _is_kernel)
    return {around[-1].lineno for around in found if (_qualified(around), ast.dump(around[-1])) in kept}


@lru_cache(maxsize=1)  # asked for what to prove, and for what proves nothing
def same_functions(old: str, new: str) -> frozenset[str]:
    """The outermost functions and classes that are the same in two texts, with all of the file that they refer to.

    Comments and layout do not count.
    """
    before, after = _bindings(ast.parse(old)), _bindings(ast.parse(new))
    same = {name: ast.dump(a) == ast.dump(after[name]) for name, a in before.items() if name in after}
    found: set[str] = set()
    for name in before:
        reached, todo = {name}, [name]
        while todo:
            for node in ast.walk(before.get(todo.pop(), ast.Module([], []))):
                if isinstance(node, ast.Name) and node.id in before.keys() | after.keys() and node.id not in reached:
                    reached.add(node.id)
                    todo.append(node.id)
        if all(same.get(other, False) for other in reached):
            found.add(name)
    return frozenset(found)


def _bindings(tree: ast.Module) -> dict[str, ast.Module]:
    """The statements of a module that bind each of its names, those in branches too."""
    found: dict[str, list[ast.stmt]] = {}
    todo: list[ast.AST] = [tree]
    while todo:
        for stmt in ast.iter_child_nodes(todo.pop(0)):
            if isinstance(stmt, (ast.FunctionDef, ast.ClassDef)):
                found.setdefault(stmt.name, []).append(stmt)
            elif isinstance(stmt, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
                targets = stmt.targets if isinstance(stmt, ast.Assign) else [stmt.target]
                for name in {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)}:
                    found.setdefault(name, []).append(stmt)
            elif isinstance(stmt, (ast.stmt, ast.excepthandler)):
                todo.append(stmt)
    return {name: ast.Module(stmts, []) for name, stmts in found.items()}


_Scopes = tuple[ast.FunctionDef | ast.ClassDef, ...]


def _kernels(node: ast.AST, around: _Scopes, is_kernel: Callable[[ast.FunctionDef], bool]) -> Iterator[_Scopes]:
    """Each kernel with the functions and classes around it, the outermost first."""
    for child in ast.iter_child_nodes(node):
        inside = (*around, child) if isinstance(child, (ast.FunctionDef, ast.ClassDef)) else around
        if isinstance(child, ast.FunctionDef) and is_kernel(child):
            yield inside
        else:
            yield from _kernels(child, inside, is_kernel)


def _qualified(around: _Scopes) -> str:
    return ".".join(scope.name for scope in around)


def _is_kernel(node: ast.FunctionDef) -> bool:
    decorators = [ast.unparse(d) for d in node.decorator_list]
    if any("prim_func" in d for d in decorators):
        return True
    return any("jit" in d for d in decorators) and launches(node.body)


def _triton_kernels(tree: ast.Module) -> set[ast.FunctionDef]:
    """The functions under ``triton.jit``, by whatever name it was imported, that are kernels and not parts of them."""
    nodes = list(ast.walk(tree))
    jits: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            jits |= {f"{alias.asname or alias.name}.jit" for alias in node.names if alias.name == "triton"}
        elif isinstance(node, ast.ImportFrom) and node.module in ("triton", "triton.runtime.jit"):
            jits |= {alias.asname or alias.name for alias in node.names if alias.name == "jit"}
    if not jits:
        return set()
    launched = {
        node.func.value.id
        for node in nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript) and isinstance(node.func.value, ast.Name)
    }
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    jitted = [node for node in functions if any(_name(decorator) in jits for decorator in node.decorator_list)]
    calls = (n.func for node in jitted for n in ast.walk(node) if isinstance(n, ast.Call))
    parts = {func.id for func in calls if isinstance(func, ast.Name)}
    found: set[ast.FunctionDef] = set()
    for node in jitted:
        asks = any(isinstance(n, ast.Attribute) and n.attr == "program_id" for n in ast.walk(node))
        if (asks and node.name not in parts) or node.name in launched:
            found.add(node)
    return found


def _name(decorator: ast.expr) -> str:
    """``triton.jit`` of ``@triton.jit`` and of ``@triton.jit(debug=True)``."""
    return ast.unparse(decorator.func if isinstance(decorator, ast.Call) else decorator)
