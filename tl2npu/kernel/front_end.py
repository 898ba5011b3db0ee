"""What the parser of a prim_func makes of Python: it evaluates every part of an expression before the whole.

Source: tilelang/language/parser/parser.py and the evaluator of TVMScript that it uses (``ExprEvaluator._visit``), run
with a kernel for each construct. So both arms of a conditional expression and all operands of ``and`` and ``or`` are
evaluated, a chain of comparisons goes from left to right as if it had parentheses, and names that only an expression
binds do not exist.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.source.tree import names_in, nodes_of

_OWN_NAMES: tuple[type[cst.CSTNode], ...] = (cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp, cst.NamedExpr)
_NOT_VISITED: dict[type[cst.CSTNode], str] = {
    cst.Break: "break",
    cst.Continue: "continue",
    cst.Try: "try",
    cst.TryStar: "try",
    cst.Del: "del",
    cst.Import: "import",
    cst.ImportFrom: "import",
    cst.Global: "global",
    cst.Nonlocal: "nonlocal",
    cst.Raise: "raise",
    cst.Match: "match",
    cst.ClassDef: "class",
    cst.Return: "return",
}
NO_ITERATION = frozenset({"enumerate", "zip", "reversed", "sorted", "map", "filter", "list", "tuple"})


@dataclass(frozen=True, eq=False)
class Guarded:
    """Uses of a name where it may be None, in a part of an expression that Python would leave out then."""

    name: str
    whole: cst.BaseExpression
    uses: tuple[cst.Name, ...]


def optional(functions: Iterable[cst.CSTNode]) -> frozenset[str]:
    """The parameters of functions whose default is None."""
    found = (
        param for node in functions if isinstance(node, cst.FunctionDef) for param in nodes_of(node.params, cst.Param)
    )
    return frozenset(param.name.value for param in found if param.default is not None and code(param.default) == "None")


def truths(body: cst.CSTNode, names: Container[str]) -> Iterator[cst.Name]:
    """``if w:`` where w may be None, which the parser takes for a condition of the device."""
    for node in nodes_of(body, cst.If):
        if isinstance(node.test, cst.Name) and node.test.value in names:
            yield node.test


def guarded(body: cst.CSTNode, names: Container[str] = ()) -> Iterator[Guarded]:
    """``f(w) if w is not None else 0``, ``w is None or x < w``: the parser evaluates ``f(None)`` and ``x < None``.

    ``names`` may be None, so that ``f(w) if w else 0`` counts as well.
    """
    for node in nodes_of(body, cst.IfExp, cst.BooleanOperation):
        if isinstance(node, cst.IfExp):
            test, parts = node.test, [node.body, node.orelse]
        else:
            assert isinstance(node, cst.BooleanOperation)
            test, parts = node.left, [node.right]
        asked = {part.value for part in _operands(test) if isinstance(part, cst.Name) and part.value in names}
        for name in sorted(compared_with_none(test) | asked):
            uses = [use for part in parts for use in _uses(part, name)]
            if uses:
                yield Guarded(name, node, tuple(uses))


def _operands(test: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """What decides a condition: the operands of ``and``, ``or`` and ``not`` in it."""
    if isinstance(test, cst.BooleanOperation):
        yield from _operands(test.left)
        yield from _operands(test.right)
    elif isinstance(test, cst.UnaryOperation):
        yield from _operands(test.expression)
    else:
        yield test


def compared_with_none(test: cst.BaseExpression) -> set[str]:
    """The names that a condition compares with None."""
    return {code(node.left) for node in nodes_of(test, cst.Comparison) if isinstance(node.left, cst.Name) and _is(node)}


def _is(node: cst.Comparison) -> bool:
    operators = (cst.Is, cst.IsNot, cst.Equal, cst.NotEqual)
    return any(isinstance(item.operator, operators) and code(item.comparator) == "None" for item in node.comparisons)


def _uses(part: cst.BaseExpression, name: str) -> Iterator[cst.Name]:
    """Where an operator or a call is given the name; None as a value of its own is good."""
    compared = {id(node.left) for node in nodes_of(part, cst.Comparison) if _is(node)}
    if isinstance(part, cst.Name):
        return
    for use in names_in(part):
        if use.value == name and id(use) not in compared:
            yield use


def chains(body: cst.CSTNode) -> list[cst.Comparison]:
    """``0 <= i < n``, which the parser takes for ``(0 <= i) < n``."""
    return [node for node in nodes_of(body, cst.Comparison) if len(node.comparisons) > 1]


def unread(body: cst.CSTNode) -> Iterator[tuple[cst.CSTNode, str]]:
    """What the parser stops at, with the reason."""
    for node in nodes_of(body, *_OWN_NAMES, *_NOT_VISITED, cst.Assert, cst.Assign, cst.For, cst.FunctionDef):
        kind = type(node)
        if kind in _OWN_NAMES:
            yield node, f"`{_short(node)}` binds a name of its own, which the parser of a kernel does not know"
        elif kind in _NOT_VISITED:
            yield node, f"the parser of a kernel knows no `{_NOT_VISITED[kind]}`"
        elif isinstance(node, cst.Assert) and node.msg is None:
            yield node, f"`{_short(node)}` has no message, and the parser of a kernel needs one"
        elif isinstance(node, cst.Assign):
            value = node.value
            if isinstance(value, (cst.Lambda, cst.Dict, cst.Set)) or code(value) == "None":
                yield node, f"the parser of a kernel cannot bind a name to `{_short(value)}`"
        elif isinstance(node, cst.For) and not _iterates(node.iter):
            yield node, f"the parser of a kernel cannot loop over `{_short(node.iter)}`"
        elif isinstance(node, cst.FunctionDef) and not node.decorators:
            yield node, f"the parser of a kernel knows no functions: `{node.name.value}` stands in a prim_func"


def _iterates(node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.Call):
        return not (isinstance(node.func, cst.Name) and node.func.value in NO_ITERATION)
    return not isinstance(node, (cst.Tuple, cst.List, cst.Set, cst.Dict, cst.BaseString))


def _short(node: cst.CSTNode) -> str:
    text = " ".join(cst.Module(body=()).code_for_node(node).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
