"""Expressions of a kernel, rewritten so that values known only when the kernel runs may be in them."""

from __future__ import annotations

import ast
from typing import cast

HOOKS = "__tl2npu_hooks__"
_BUILTINS = {"min", "max", "range", "abs", "round", "int", "float", "bool"}


def hook(name: str, *args: ast.expr) -> ast.Call:
    """A call of ``hooks.<name>``."""
    return ast.Call(ast.Attribute(ast.Name(HOOKS, ast.Load()), name, ast.Load()), list(args), [])


def lazy(value: ast.expr) -> ast.Lambda:
    """The expression, evaluated later."""
    empty = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.Lambda(empty, value)


class Expressions(ast.NodeTransformer):
    """``and``, ``or``, ``not``, chained comparisons, conditional expressions, and builtins that meet expressions."""

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        values = [self.visit(v) for v in node.values]
        result = values[-1]
        for value in reversed(values[:-1]):
            result = hook("both" if isinstance(node.op, ast.And) else "either", value, lazy(result))
        return cast(ast.expr, ast.copy_location(result, node))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        value = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            return ast.copy_location(hook("not_", value), node)
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
            result = hook("both", pair, lazy(result))
        return ast.copy_location(result, node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        call = hook("choose", self.visit(node.test), lazy(self.visit(node.body)), lazy(self.visit(node.orelse)))
        return ast.copy_location(call, node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in _BUILTINS:
            node.func = hook("builtin", ast.Constant(node.func.id), node.func)
        return node

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.expr:
        name = node.target.id
        value = hook("bind", ast.Constant(name), self.visit(node.value), lazy(ast.Name(name, ast.Load())))
        return ast.copy_location(ast.NamedExpr(node.target, value), node)

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        node.body = self.visit(node.body)
        return node
