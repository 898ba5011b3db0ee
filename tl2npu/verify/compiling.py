"""How a file compiles what a factory returns, where another function of it, or a script, does that.

``--args 'matmul(M=256)'`` calls a factory. Where that gives a prim_func, the file says with which
``pass_configs`` and outputs it is a kernel: ``tilelang.compile(matmul(...), ...)``.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Iterator
from typing import Any

from tl2npu.simulator.frontend.prim_func import PrimFunc
from tl2npu.simulator.standin import raw_memory
from tl2npu.simulator.standin.jit import JITKernel, compile_
from tl2npu.simulator.standin.session import Session

_DEPTH = 8


def compiled(func: PrimFunc, factory: Callable[..., Any], namespace: dict[str, Any], session: Session) -> JITKernel:
    """The prim_func that a factory gave, compiled as the file of the factory does it first."""
    code = getattr(factory, "__code__", None)
    text = "".join(linecache.getlines(code.co_filename)) if code is not None else ""
    tree = _parsed(text)
    for call, around in _calls(tree, ()):
        if _compiles(call.func, namespace) and _takes(call, factory.__name__, [tree, *around]):
            rest = [arg for arg in call.args if not _is_kernel(call, arg)]
            scope = _Scope(namespace, around)
            options = {k.arg: scope.value(k.value) for k in call.keywords if k.arg not in (None, "func")}
            return compile_(session)(func, *map(scope.value, rest), **options)
    return JITKernel(session, func)


def _parsed(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except SyntaxError:  # a cell with something of IPython's
        return ast.Module([], [])


def _calls(
    node: ast.AST, around: tuple[ast.FunctionDef, ...]
) -> Iterator[tuple[ast.Call, tuple[ast.FunctionDef, ...]]]:
    """Every call below a node, with the functions around it, the outermost first."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call):
            yield child, around
        yield from _calls(child, (*around, child) if isinstance(child, ast.FunctionDef) else around)


def _compiles(func: ast.expr, namespace: dict[str, Any]) -> bool:
    """True for what the stand-ins say compiles a prim_func."""
    parts = ast.unparse(func).split(".") if isinstance(func, (ast.Name, ast.Attribute)) else []
    if not parts or not all(part.isidentifier() for part in parts):
        return False
    found = namespace.get(parts[0])
    for part in parts[1:]:
        found = vars(found).get(part) if hasattr(found, "__dict__") else None
    return getattr(found, "compiles_prim_funcs", False) is True


def _is_kernel(call: ast.Call, arg: ast.expr) -> bool:
    return bool(call.args) and arg is call.args[0] and all(keyword.arg != "func" for keyword in call.keywords)


def _takes(call: ast.Call, factory: str, scopes: list[ast.Module | ast.FunctionDef]) -> bool:
    """The call is given what the factory makes, directly or by a name."""
    named = [keyword.value for keyword in call.keywords if keyword.arg == "func"]
    kernel = next(iter([*named, *call.args[:1]]), None)
    if isinstance(kernel, ast.Name):
        return any(_is_call_of(factory, value) for scope in scopes for value in _given(scope, kernel.id))
    return _is_call_of(factory, kernel)


def _is_call_of(factory: str, node: ast.expr | None) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == factory


def _given(scope: ast.Module | ast.FunctionDef, name: str) -> list[ast.expr]:
    """The values that the statements of a scope give a name."""
    return [
        node.value
        for statement in scope.body
        for node in ast.walk(statement)
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets)
    ]


class _Scope:
    """What expressions of a function are worth when it runs, as far as that can be told without running it."""

    def __init__(self, namespace: dict[str, Any], around: tuple[ast.FunctionDef, ...]) -> None:
        self.namespace = namespace
        self.around = around

    def value(self, node: ast.expr, depth: int = 0) -> Any:
        """The value; None, with a note, where it depends on what is not known."""
        try:
            names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
            local = {n: self.value(found, depth + 1) for n in names if (found := self._local(n)) and depth < _DEPTH}
            return eval(compile(ast.Expression(node), "<argument>", "eval"), self.namespace, local)
        except Exception as error:
            raw_memory.say(f"note: `{ast.unparse(node)}` cannot be evaluated here ({error}): left out")
            return None

    def _local(self, name: str) -> ast.expr | None:
        """What a function around gives a name: its only assignment there, or the default of a parameter."""
        for function in reversed(self.around):
            args = function.args
            plain = [*args.posonlyargs, *args.args]
            defaults = dict(zip([a.arg for a in reversed(plain)], reversed(args.defaults), strict=False))
            defaults |= {a.arg: d for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if d is not None}
            values = [*_given(function, name), *([defaults[name]] if name in defaults else [])]
            if values:
                return values[0]
        return None
