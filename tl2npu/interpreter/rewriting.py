"""Makes a plain Python function of the source of a jit function, as Triton's interpreter would run it.

Three things mean something else in a kernel than in Python: what is assigned to a name becomes a tensor, a loop counter
has an element type, and the body of ``with al.scope(...)`` runs on the cores of that scope only. Everything else is
left to the objects. Names that a kernel takes from the functions around it are bound to their values, which Python's
``exec`` would lose.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

_TO_TENSOR, _TURNS, _ENTERED = "_tl2npu_to_tensor", "_tl2npu_turns", "_tl2npu_entered"


def rewritten(function: Callable[..., Any], to_tensor: Callable[[Any], Any], turn: Callable[[int], Any]) -> Any:
    """The function to run for a jit function; the same one where there is no source, as of functions made by ``exec``.

    ``to_tensor`` converts what is assigned, ``turn`` a counter of ``range`` and ``tl.range``.
    """
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError):
        return function
    tree = ast.parse(textwrap.dedent("".join(lines)))
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef):
        return function  # a lambda
    definition.decorator_list = []
    definition.returns = None
    tree.body = [_Kernel().visit(definition)]
    ast.increment_lineno(ast.fix_missing_locations(tree), first - 1)

    def turns(values: Any) -> Any:
        return map(turn, values) if type(values) is range else values

    names = {_TO_TENSOR: to_tensor, _TURNS: turns, _ENTERED: lambda scope: getattr(scope, "entered", True)}
    around = function.__globals__
    if function.__closure__:
        around = {**around, **inspect.getclosurevars(function).nonlocals}
    around.update(names)
    found: dict[str, Any] = {}
    exec(compile(tree, function.__code__.co_filename, "exec", dont_inherit=True), around, found)
    result = found[definition.name]
    result.__qualname__ = function.__qualname__
    result.__defaults__, result.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    result.__annotations__ = function.__annotations__
    return result


class _Kernel(ast.NodeTransformer):
    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        node.value = _call(_TO_TENSOR, node.value)
        return node

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        node.iter = _call(_TURNS, node.iter)
        return node

    def visit_With(self, node: ast.With) -> ast.AST:
        """``with CONTEXT: BODY`` -> ``if entered(context := CONTEXT):`` and the same inside of it."""
        self.generic_visit(node)
        tests: list[ast.expr] = []
        for number, item in enumerate(node.items):
            name = f"_tl2npu_with_{node.lineno}_{number}"
            bound = ast.NamedExpr(ast.Name(name, ast.Store()), item.context_expr)
            tests.append(_call(_ENTERED, bound))
            item.context_expr = ast.Name(name, ast.Load())
        test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
        return ast.copy_location(ast.If(test, [node], []), node)


def _call(name: str, argument: ast.expr) -> ast.expr:
    return ast.copy_location(ast.Call(ast.Name(name, ast.Load()), [argument], []), argument)
