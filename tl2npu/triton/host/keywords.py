"""``**meta`` of Triton 1: its kernels take constants as ``meta["BLOCK"]``."""

from __future__ import annotations

import ast


def with_named_constants(function: ast.FunctionDef) -> None:
    """A parameter for each constant that the function takes out of its keywords. Changes the tree.

    Not where it does something else with them, or has another variable of the name of one.
    """
    words = function.args.kwarg.arg if function.args.kwarg is not None else None
    if words is None:
        return
    inside = [node for stmt in function.body for node in ast.walk(stmt)]
    uses = sum(isinstance(node, ast.Name) and node.id == words for node in inside)
    items = {id(node): key for node in inside if (key := _key(node, words))}
    same = {id(stmt.targets[0]) for stmt in inside if isinstance(stmt, ast.Assign) and _named(stmt, words)}
    stores = (node for node in inside if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load))
    params = {arg.arg for arg in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}
    taken = params | {node.id for node in stores if id(node) not in same}
    names = list(dict.fromkeys(items.values()))
    if uses != len(items) or taken & set(names):
        return

    class Named(ast.NodeTransformer):
        def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
            self.generic_visit(node)
            return ast.copy_location(ast.Name(items[id(node)], ast.Load()), node) if id(node) in items else node

    function.body = [Named().visit(stmt) for stmt in function.body if not _named(stmt, words)]
    constant = ast.parse("tl.constexpr", mode="eval").body
    function.args.kwonlyargs += [ast.copy_location(ast.arg(name, constant), function) for name in names]
    function.args.kw_defaults += [None] * len(names)
    function.args.kwarg = None


def _key(node: ast.AST, words: str) -> str:
    match node:
        case ast.Subscript(value=ast.Name(id=of), slice=ast.Constant(value=str(key))) if of == words:
            return key
    return ""


def _named(stmt: ast.stmt, words: str) -> bool:
    """True for ``BLOCK = meta["BLOCK"]``."""
    match stmt:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return _key(value, words) == name
    return False
