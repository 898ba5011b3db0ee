"""Turns the Python of a prim_func or macro into Python that traces itself.

Control flow, assignments and expression statements become calls of the hooks (``hooks.py``); everything else stays
what it is, with its line numbers, so that closures, helpers and constants work as in Python.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

HOOKS = "__tl2npu_hooks__"
_BUILTINS = {"min", "max", "range", "abs", "round", "int", "float", "bool"}


def traced(function: Callable[..., Any], hooks: Any) -> Callable[..., Any]:
    """A function with the same closure whose body reports to ``hooks`` while it runs.

    Raises TypeError where the source of the function cannot be found.
    """
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError) as error:
        raise TypeError(f"the source of {function.__qualname__} cannot be read: {error}") from None
    tree = ast.parse(textwrap.dedent("".join(lines)))
    node = tree.body[0]
    if not isinstance(node, ast.FunctionDef):
        raise TypeError(f"{function.__qualname__} is no plain function")
    indent = len(lines[0]) - len(lines[0].lstrip())
    node.decorator_list = []
    node.returns = None
    for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
        argument.annotation = None
    defaults, kw_defaults = function.__defaults__, function.__kwdefaults__
    node.args.defaults = [ast.Constant(None) for _ in node.args.defaults]
    node.args.kw_defaults = [d and ast.Constant(None) for d in node.args.kw_defaults]
    rewriter = _Rewriter()
    node.body = [statement for old in node.body for statement in rewriter.statement(old)]
    names = function.__code__.co_freevars
    outer = ast.FunctionDef(
        name="__outer__",
        args=ast.arguments(
            posonlyargs=[], args=[ast.arg(arg=n) for n in names], kwonlyargs=[], kw_defaults=[], defaults=[]
        ),
        body=[node, ast.Return(ast.Name(node.name, ast.Load()))],
        decorator_list=[],
    )
    if hasattr(outer, "type_params"):
        outer.type_params = []
    module = ast.Module(body=[outer], type_ignores=[])
    ast.fix_missing_locations(module)
    ast.increment_lineno(module, first - 1)
    for part in ast.walk(module):
        if hasattr(part, "col_offset"):
            part.col_offset += indent
            part.end_col_offset = (part.end_col_offset or 0) + indent
    space: dict[str, Any] = {}
    exec(compile(module, function.__code__.co_filename, "exec", dont_inherit=True), {HOOKS: hooks}, space)
    cells = [_content(c, hooks) for c in function.__closure__ or ()]
    inner: Any = space["__outer__"](*cells)
    function.__globals__[HOOKS] = hooks  # the new code looks its names up where the old code did
    result = type(inner)(inner.__code__, function.__globals__, inner.__name__, defaults, _closure(inner, function))
    result.__kwdefaults__ = kw_defaults
    result.__qualname__ = function.__qualname__
    result.__module__ = function.__module__
    return result  # type: ignore[no-any-return]


def _closure(inner: Any, function: Any) -> tuple[Any, ...] | None:
    """The cells of the original function, so that a name that is bound later is seen."""
    original = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    mine = dict(zip(inner.__code__.co_freevars, inner.__closure__ or (), strict=True))
    return tuple(original.get(name, cell) for name, cell in mine.items()) or None


def _content(cell: Any, missing: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return missing


class _Rewriter(ast.NodeTransformer):
    """Rewrites statements into lists of statements; expressions by ``visit``."""

    def __init__(self) -> None:
        self.count = 0

    def fresh(self) -> str:
        self.count += 1
        return f"__tl2npu_{self.count}"

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """A statement list, never empty."""
        return [new for old in body for new in self.statement(old)] or [ast.Pass()]

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        """The statements that replace one."""
        rule = getattr(self, f"do_{type(node).__name__}", None)
        new = rule(node) if rule else [self.visit(node)]
        for statement in new:
            for part in ast.walk(statement):
                if isinstance(part, (ast.stmt, ast.expr)) and not hasattr(part, "lineno"):
                    ast.copy_location(part, node)
        return new

    def do_FunctionDef(self, node: ast.FunctionDef) -> list[ast.stmt]:
        return [node]  # a macro or helper of its own

    def do_ClassDef(self, node: ast.ClassDef) -> list[ast.stmt]:
        return [node]

    def do_Expr(self, node: ast.Expr) -> list[ast.stmt]:
        return [ast.Expr(_hook("emit", self.visit(node.value)))]

    def do_For(self, node: ast.For) -> list[ast.stmt]:
        known = [ast.unparse(t) for t in _targets(node.target)] if _simple(node.target) else []
        names = ast.List([ast.Constant(name) for name in known], ast.Load())
        body = self.block(node.body)
        loop = ast.For(
            target=node.target,
            iter=_hook("loop", self.visit(node.iter), names),
            body=body,
            orelse=self.block(node.orelse) if node.orelse else [],
        )
        return [loop]

    def do_While(self, node: ast.While) -> list[ast.stmt]:
        turn = ast.Name(self.fresh(), ast.Store())
        return [
            ast.For(
                target=turn, iter=_hook("while_", _lazy(self.visit(node.test))), body=self.block(node.body), orelse=[]
            )
        ]

    def do_If(self, node: ast.If) -> list[ast.stmt]:
        name = self.fresh()
        known = lambda: ast.Name(name, ast.Load())  # noqa: E731
        end = lambda: ast.Expr(_hook("end_branch", known()))  # noqa: E731
        result: list[ast.stmt] = [
            ast.Assign([ast.Name(name, ast.Store())], _hook("condition", self.visit(node.test))),
            ast.If(_hook("then", known()), [*self.block(node.body), end()], []),
        ]
        if node.orelse:
            result.append(ast.If(_hook("orelse", known()), [*self.block(node.orelse), end()], []))
        return result

    def do_Break(self, node: ast.Break) -> list[ast.stmt]:
        return [ast.If(_hook("break_"), [ast.Break()], [])]

    def do_Continue(self, node: ast.Continue) -> list[ast.stmt]:
        return [ast.If(_hook("continue_"), [ast.Continue()], [])]

    def do_With(self, node: ast.With) -> list[ast.stmt]:
        items = []
        for item in node.items:
            targets = _targets(item.optional_vars) if item.optional_vars is not None else []
            many = isinstance(item.optional_vars, (ast.Tuple, ast.List))
            names = ast.List([ast.Constant(ast.unparse(t)) for t in targets], ast.Load())
            call = _hook("enter", self.visit(item.context_expr), names, ast.Constant(many))
            items.append(ast.withitem(call, item.optional_vars))
        return [ast.With(items=items, body=self.block(node.body))]

    def do_Assign(self, node: ast.Assign) -> list[ast.stmt]:
        value = self.visit(node.value)
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            return [ast.Assign(node.targets, self._bound(node.targets[0].id, value))]
        if len(node.targets) == 1 and _simple(node.targets[0]) and isinstance(node.targets[0], (ast.Tuple, ast.List)):
            names = [t.id for t in node.targets[0].elts if isinstance(t, ast.Name)]
            olds = ast.Tuple([_lazy(ast.Name(n, ast.Load())) for n in names], ast.Load())
            listed = ast.Tuple([ast.Constant(n) for n in names], ast.Load())
            return [ast.Assign(node.targets, _hook("bind_many", listed, value, olds))]
        return [ast.Assign([self.visit(t) for t in node.targets], value)]

    def do_AnnAssign(self, node: ast.AnnAssign) -> list[ast.stmt]:
        if not isinstance(node.target, ast.Name):
            return [node]
        name = node.target.id
        old = _lazy(ast.Name(name, ast.Load()))
        value = self.visit(node.value) if node.value is not None else ast.Constant(None)
        given = ast.Constant(node.value is not None)
        call = _hook("annotate", ast.Constant(name), self.visit(node.annotation), value, given, old)
        return [ast.Assign([ast.Name(name, ast.Store())], call)]

    def do_AugAssign(self, node: ast.AugAssign) -> list[ast.stmt]:
        if not isinstance(node.target, ast.Name):
            return [self.visit(node)]
        name = node.target.id
        value = ast.BinOp(ast.Name(name, ast.Load()), node.op, self.visit(node.value))
        return [ast.Assign([ast.Name(name, ast.Store())], self._bound(name, value))]

    def _bound(self, name: str, value: ast.expr) -> ast.expr:
        return _hook("bind", ast.Constant(name), value, _lazy(ast.Name(name, ast.Load())))

    # expressions

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        values = [self.visit(v) for v in node.values]
        result = values[-1]
        for value in reversed(values[:-1]):
            result = _hook("both" if isinstance(node.op, ast.And) else "either", value, _lazy(result))
        return ast.copy_location(result, node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        value = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            return ast.copy_location(_hook("not_", value), node)
        return ast.copy_location(ast.UnaryOp(node.op, value), node)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        if len(node.ops) == 1:
            self.generic_visit(node)
            return node
        operands = [self.visit(v) for v in (node.left, *node.comparators)]
        pairs = [
            ast.Compare(left, [op], [right]) for left, op, right in zip(operands, node.ops, operands[1:], strict=False)
        ]
        result: ast.expr = pairs[-1]
        for pair in reversed(pairs[:-1]):
            result = _hook("both", pair, _lazy(result))
        return ast.copy_location(result, node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        call = _hook("choose", self.visit(node.test), _lazy(self.visit(node.body)), _lazy(self.visit(node.orelse)))
        return ast.copy_location(call, node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in _BUILTINS:
            node.func = _hook("builtin", ast.Constant(node.func.id), node.func)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        node.body = self.visit(node.body)
        return node


def _hook(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(ast.Name(HOOKS, ast.Load()), name, ast.Load()), list(args), [])


def _lazy(value: ast.expr) -> ast.Lambda:
    empty = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.Lambda(empty, value)


def _targets(target: ast.expr) -> list[ast.expr]:
    return list(target.elts) if isinstance(target, (ast.Tuple, ast.List)) else [target]


def _simple(target: ast.expr) -> bool:
    return all(isinstance(t, ast.Name) for t in _targets(target))
