"""Text for an expression that must take another value: proposals, of which the first that is proved equal is taken."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.environment import Env
from tl2npu.kernel.expressions import Evaluator
from tl2npu.kernel.model import Range
from tl2npu.kernel.symbolic import Sym
from tl2npu.passes.writing.fold import map_expression
from tl2npu.passes.writing.render import Unrenderable, render
from tl2npu.source.tree import children

Change = Callable[[cst.BaseExpression, Sym], str | None]


def moved(node: cst.BaseExpression, env: Env, evaluator: Evaluator, item: Range, by: int) -> cst.BaseExpression:
    """The expression with ``i - by`` in the place of a loop variable ``i``; :class:`Blocked` if no text is proved."""
    name = item.name

    def change(inner: cst.BaseExpression, value: Sym) -> str | None:
        offset = (value - item.var).constant
        if offset is None or offset == 0:
            return None
        rest = offset - by
        return name if rest == 0 else f"{name} {'+' if rest > 0 else '-'} {abs(rest)}"

    variable = next(iter(item.var.variables()))
    want = evaluator.sym(node, env).substitute({variable: item.var - by})
    return _proved(node, env, evaluator, want, change)


def swapped(node: cst.BaseExpression, env: Env, evaluator: Evaluator, old: Sym, new: str) -> cst.BaseExpression:
    """The expression with ``new`` wherever the value ``old`` stands; values that only contain it stay."""

    def change(inner: cst.BaseExpression) -> cst.BaseExpression | None:
        return cst.parse_expression(new) if evaluator.sym(inner, env) == old else None

    return _mapped(node, change)


def map_indices(
    node: cst.BaseExpression, change: Callable[[cst.BaseExpression], cst.BaseExpression]
) -> cst.BaseExpression:
    """An operand with every index and every bound of its slices changed; anything but a subscript stays."""
    if not isinstance(node, cst.Subscript):
        return node
    elements = [element.with_changes(slice=_index(element.slice, change)) for element in node.slice]
    return node.with_changes(slice=elements)


def _index(index: cst.BaseSlice, change: Callable[[cst.BaseExpression], cst.BaseExpression]) -> cst.BaseSlice:
    if isinstance(index, cst.Index):
        return index.with_changes(value=change(index.value))
    assert isinstance(index, cst.Slice)
    lower = change(index.lower) if index.lower is not None else None
    upper = change(index.upper) if index.upper is not None else None
    return index.with_changes(lower=lower, upper=upper)


def _proved(node: cst.BaseExpression, env: Env, evaluator: Evaluator, want: Sym, change: Change) -> cst.BaseExpression:
    for candidate in _candidates(node, env, evaluator, want, change):
        if evaluator.sym(candidate, env) == want:
            return candidate
    raise Blocked("TL321", node, "cannot prove the index of the prefetched slice")


def _candidates(
    node: cst.BaseExpression, env: Env, evaluator: Evaluator, want: Sym, change: Change
) -> Iterator[cst.BaseExpression]:
    yield node

    def put(inner: cst.BaseExpression) -> cst.BaseExpression | None:
        text = change(inner, evaluator.sym(inner, env))
        return None if text is None else _parsed(text, inner)

    yield _mapped(node, put)
    try:
        yield cst.parse_expression(render(want))
    except Unrenderable:
        return


def _parsed(text: str, old: cst.BaseExpression) -> cst.BaseExpression:
    new = cst.parse_expression(text)
    return new if isinstance(new, cst.Name) else new.with_changes(lpar=old.lpar, rpar=old.rpar)


def _mapped(
    node: cst.BaseExpression, change: Callable[[cst.BaseExpression], cst.BaseExpression | None]
) -> cst.BaseExpression:
    new = map_expression(node, change)
    if new is node and isinstance(node, (cst.Comparison, cst.Tuple, cst.List)) and children(node):
        return node
    return new


def comments_in(body: cst.BaseSuite) -> list[cst.EmptyLine]:
    """The comments that stand on lines of their own in a block, in text order."""
    if not isinstance(body, cst.IndentedBlock):
        return []
    found: list[cst.EmptyLine] = []
    for statement in body.body:
        node: cst.CSTNode | None = statement
        while node is not None:
            found += getattr(node, "leading_lines", ())
            inner = getattr(node, "body", None)
            if isinstance(inner, cst.BaseSuite):
                found += comments_in(inner)
            node = getattr(node, "orelse", None)
    return [line for line in (*found, *body.footer) if line.comment is not None]
