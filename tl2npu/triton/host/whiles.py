"""``while x < n:`` that counts ``x`` up, as ``for x in range(x, n, step)``: the same where the step is at least 1."""

from __future__ import annotations

import ast

from tl2npu.triton.read.names import COUNTED, assigned

_CDIV = ("tl.cdiv", "triton.cdiv", "triton.language.cdiv")


def with_counted_loops(function: ast.FunctionDef) -> None:
    """Write the loops of a kernel that count up as ``for``. Changes the tree.

    Such a loop compares a name with a bound, adds a step to it at the end of its body and nowhere else, and changes
    nothing that bound and step are made of.
    """
    _Counted().visit(function)


class _Counted(ast.NodeTransformer):
    def visit_While(self, node: ast.While) -> ast.AST:
        self.generic_visit(node)
        bound = _bound(node.test)
        step = _step(node.body[-1]) if len(node.body) > 1 else None
        if bound is None or step is None or node.orelse or bound[0] != step[0]:
            return node
        name, body = bound[0], node.body[:-1]
        used = {item.id for value in (bound[1], step[1]) for item in ast.walk(value) if isinstance(item, ast.Name)}
        if assigned(body) & {name, *used} or name in used or not _plain(bound[1]) or not _plain(step[1]):
            return node
        start = ast.Name(name, ast.Load())
        call = ast.Call(ast.Name("range", ast.Load()), [start, bound[1], step[1]], [])
        loop = ast.For(ast.Name(name, ast.Store()), call, body, [], COUNTED)
        for item in (call, loop, start, call.func, loop.target):
            ast.copy_location(item, node.test if item is not loop else node)
        return ast.fix_missing_locations(loop)


def _bound(test: ast.expr) -> tuple[str, ast.expr] | None:
    """``x < n``: the name and what it stays below."""
    match test:
        case ast.Compare(left=ast.Name(id=name), ops=[ast.Lt()], comparators=[bound]):
            return name, bound
        case ast.Compare(left=bound, ops=[ast.Gt()], comparators=[ast.Name(id=name)]):
            return name, bound
        case ast.Compare(left=ast.Name(id=name), ops=[ast.LtE()], comparators=[bound]):
            return name, ast.BinOp(bound, ast.Add(), ast.Constant(1))
    return None


def _step(stmt: ast.stmt) -> tuple[str, ast.expr] | None:
    """``x += step``: the name and the step."""
    match stmt:
        case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=step):
            return name, step
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.BinOp(left=one, op=ast.Add(), right=other)):
            sides = [side for side in (one, other) if not (isinstance(side, ast.Name) and side.id == name)]
            return (name, sides[0]) if len(sides) == 1 else None
    return None


def _plain(value: ast.expr) -> bool:
    """True for an expression that has the same value in every turn, if its names have."""
    match value:
        case ast.Call() if ast.unparse(value.func) in _CDIV and not value.keywords:
            return all(map(_plain, value.args))
        case ast.BinOp():
            return _plain(value.left) and _plain(value.right)
        case ast.UnaryOp():
            return _plain(value.operand)
    return isinstance(value, (ast.Name, ast.Constant))
