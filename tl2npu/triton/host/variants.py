"""Launches that depend on conditions of the host code: a tree of what is launched in each case.

Triton compiles a kernel once for each set of constants, of arguments that are None and of element types. A TileLang
factory gives one kernel, so that the host code has to choose between several.
"""

from __future__ import annotations

import ast
import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from tl2npu.source.tree import remembered

_Leaf = TypeVar("_Leaf")

LIMIT = 4
"""Conditions that one launch may depend on."""
_TENSORS = frozenset({"contiguous", "view", "reshape", "to", "float", "half", "bfloat16", "flatten", "cuda", "squeeze"})
"""Methods that give a tensor of a tensor."""
_LAYOUT = frozenset({"stride", "size", "dim", "numel", "is_contiguous"})
"""Methods that say how a tensor lies in memory."""


@dataclass(frozen=True)
class Choice(Generic[_Leaf]):
    """What is launched if ``test`` holds, and if not; None where nothing is."""

    test: str
    yes: Tree[_Leaf]
    no: Tree[_Leaf]


Tree: TypeAlias = "Choice[_Leaf] | _Leaf | None"


def leaves(tree: Tree[_Leaf]) -> Iterator[_Leaf]:
    """The launches, in the order of the text."""
    if isinstance(tree, Choice):
        yield from leaves(tree.yes)
        yield from leaves(tree.no)
    elif tree is not None:
        yield tree


def normal(node: ast.expr) -> tuple[str, bool]:
    """A condition as a text, and whether it must hold: ``x is not None`` is ``x is None``, which must not."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        text, holds = normal(node.operand)
        return text, not holds
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], (ast.IsNot, ast.NotEq)):
        op = "is" if isinstance(node.ops[0], ast.IsNot) else "=="
        return f"{ast.unparse(node.left)} {op} {ast.unparse(node.comparators[0])}", False
    return ast.unparse(node), True


def stable(test: str, function: ast.FunctionDef | None) -> bool:
    """True if a condition means the same everywhere in a function: it calls nothing but what asks for a layout, and no
    name in it changes; for ``x is None``, it may change to another tensor where it is one."""
    tree = ast.parse(test, mode="eval").body
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    if not all(isinstance(func, ast.Attribute) and func.attr in _LAYOUT for func in calls):
        return False
    if function is None or any(isinstance(node, (ast.NamedExpr, ast.Lambda)) for node in ast.walk(tree)):
        return False
    params = {arg.arg for arg in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}
    kept = {id(target) for node in ast.walk(function) for target in _kept(node, test)}
    stores = [ast.unparse(node) for node in ast.walk(function) if _is_store(node) and id(node) not in kept]
    looped = {
        ast.unparse(node)
        for loop in ast.walk(function)
        if isinstance(loop, (ast.For, ast.While))
        for node in ast.walk(loop)
        if _is_store(node) and id(node) not in kept
    }
    parts = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, (ast.Name, ast.Attribute))}
    return all(stores.count(part) <= (part not in params) and part not in looped for part in parts)


def _kept(stmt: ast.AST, test: str) -> list[ast.expr]:
    """What ``x = x.contiguous()`` sets, also ``x = None if x is None else x.contiguous()``, where the test is whether
    ``x`` is None: no such method returns None, and None has none."""
    if not isinstance(stmt, ast.Assign) or len(stmt.targets) != 1 or f"{ast.unparse(stmt.targets[0])} is None" != test:
        return []
    value = stmt.value
    if isinstance(value, ast.IfExp) and normal(value.test)[0] == test:
        none, value = (value.body, value.orelse) if normal(value.test)[1] else (value.orelse, value.body)
        if not isinstance(none, ast.Constant) or none.value is not None:
            return []
    method = value.func if isinstance(value, ast.Call) else None
    name = ast.unparse(stmt.targets[0])
    known = isinstance(method, ast.Attribute) and method.attr in _TENSORS and ast.unparse(method.value) == name
    return [stmt.targets[0]] if known else []


def _is_store(node: ast.AST) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(node.ctx, (ast.Store, ast.Del))


def conditions(kernel: ast.FunctionDef) -> set[str]:
    """The names that a kernel uses as conditions."""
    found: set[str] = set()
    tests = [node.test for node in ast.walk(kernel) if isinstance(node, (ast.If, ast.IfExp))]
    while tests:
        test = tests.pop()
        if isinstance(test, ast.Name):
            found.add(test.id)
        elif isinstance(test, ast.BoolOp):
            tests += test.values
        elif isinstance(test, ast.UnaryOp):
            tests.append(test.operand)
    return found


def strings(kernel: ast.FunctionDef, name: str) -> list[str]:
    """The strings that a parameter is compared with, if that is all that a kernel does with it."""
    found, uses = _strings(kernel)
    asked = found.get(name, [])
    return list(dict.fromkeys(itertools.chain.from_iterable(asked))) if len(asked) == uses[name] else []


@remembered
def _strings(kernel: ast.FunctionDef) -> tuple[dict[str, list[list[str]]], Counter[str]]:
    """For each name the strings of each comparison with it, and how often it is used."""
    found: dict[str, list[list[str]]] = {}
    uses: Counter[str] = Counter()
    for node in ast.walk(kernel):
        if isinstance(node, ast.Name):
            uses[node.id] += 1
        if not isinstance(node, ast.Compare) or len(node.ops) != 1 or not isinstance(node.left, ast.Name):
            continue
        other = node.comparators[0]
        same = isinstance(other, ast.Name) and other.id == node.left.id
        if not same and isinstance(node.ops[0], (ast.Eq, ast.NotEq, ast.In, ast.NotIn)):
            items = other.elts if isinstance(other, (ast.Tuple, ast.List)) else [other]
            texts = [item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str)]
            if len(texts) == len(items):
                found.setdefault(node.left.id, []).append(texts)
    return found, uses
