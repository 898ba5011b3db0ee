"""Conditions around element accesses, and whether a copy needs them: copies clamp at the end of a tensor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.environment import Env
from tl2npu.kernel.expressions import Evaluator, code
from tl2npu.kernel.model import Range
from tl2npu.kernel.ranges.reach import conjuncts
from tl2npu.kernel.regions import Lets, Region
from tl2npu.kernel.symbolic import Opaque, Sym
from tl2npu.source.tree import nodes_of


@dataclass(frozen=True, eq=False)
class Term:
    """``index < bound``, or something else (both None)."""

    node: cst.BaseExpression
    index: Sym | None = None
    bound: Sym | None = None


@dataclass(frozen=True, eq=False)
class Guard:
    """A condition as the conjunction of its terms."""

    node: cst.BaseExpression
    terms: tuple[Term, ...]

    def is_tail(self, region: Region) -> bool:
        """True if the condition says no more than that the elements of a region are inside of the tensor."""
        return all(_always(one, region.ranges) or _inside(one, region) for term in self.terms for one in _each(term))

    def beyond_tail(self, region: Region) -> Iterator[Guard]:
        """What else the condition says, term by term."""
        for term in self.terms:
            one = Guard(term.node, (term,))
            if not one.is_tail(region):
                yield one

    def is_inside(self, region: Region) -> bool:
        """True if the condition says that the elements of a region lie inside of the tensor, and all of that."""
        ends = range(len(region.axes))
        return all(
            _always(one, region.ranges) or _inside(one, region) or any(_behind_start(one, region, n) for n in ends)
            for term in self.terms
            for one in _each(term)
        )

    def says_end(self, region: Region, number: int, read: AbstractSet[str]) -> bool:
        """True if a term keeps an axis of a region inside of the tensor, or of a sequence: its start or its end is one
        of the names that the kernel has ``read``."""
        return any(
            _before_end(term, region, number) or _in_sequence(term, region.axes[number].index, read)
            for term in self.terms
        )

    def names(self, lets: Lets) -> set[str]:
        """Names that the condition reads, those of the loop body replaced by their values."""
        return {name.value for name in nodes_of(lets.expand(self.node), cst.Name)}


def guard(node: cst.BaseExpression, lets: Lets, evaluator: Evaluator, env: Env) -> Guard:
    """Take a condition apart."""
    return Guard(node, tuple(_term(part, lets, evaluator, env) for part in conjuncts(evaluator, lets.expand(node))))


def _term(node: cst.BaseExpression, lets: Lets, evaluator: Evaluator, env: Env) -> Term:
    if not isinstance(node, cst.Comparison) or len(node.comparisons) != 1:
        return Term(node)
    left, right = evaluator.sym(node.left, env), evaluator.sym(node.comparisons[0].comparator, env)
    operator = node.comparisons[0].operator
    if isinstance(operator, cst.LessThan):
        return Term(node, left, right)
    if isinstance(operator, cst.LessThanEqual):
        return Term(node, left, right + 1)
    if isinstance(operator, cst.GreaterThan):
        return Term(node, right, left)
    if isinstance(operator, cst.GreaterThanEqual):
        return Term(node, right, left + 1)
    return Term(node)


def _each(term: Term) -> Iterator[Term]:
    """``index < min(a, b)`` as ``index < a`` and ``index < b``."""
    for monomial, factor in term.bound.terms if term.bound is not None else ():
        atom = monomial[0] if len(monomial) == 1 else None
        if factor == 1 and isinstance(atom, Opaque) and atom.head == "min" and term.bound is not None:
            rest = term.bound - Sym.of({monomial: 1})
            for arg in atom.args:
                yield from _each(Term(term.node, term.index, rest + arg))
            return
    yield term


def _always(term: Term, ranges: Sequence[Range]) -> bool:
    """``i < extent`` of the loop itself, or ``i >= 0`` in one of its spellings."""
    if term.index is None or term.bound is None:
        return False
    if any(term.index == item.var and term.bound == item.extent for item in ranges):
        return True
    return any(term.bound - term.index == item.var + 1 for item in ranges)


def _inside(term: Term, region: Region) -> bool:
    return any(_before_end(term, region, number) for number in range(len(region.axes)))


def _before_end(term: Term, region: Region, number: int) -> bool:
    return _is_below(term, region.axes[number].index, region.buffer.shape[number])


def _is_below(term: Term, index: Sym, size: Sym) -> bool:
    """``index < size``, in whatever spelling."""
    return term.index is not None and term.bound is not None and term.index - term.bound == index - size


def ends_with(term: Term, index: Sym, size: Sym, ranges: Sequence[Range]) -> bool:
    """True if a term says no more than that an index lies before the end of an axis of that size."""
    return all(_always(one, ranges) or _is_below(one, index, size) for one in _each(term))


def _behind_start(term: Term, region: Region, number: int) -> bool:
    if term.index is None or term.bound is None:
        return False
    return term.bound - term.index == region.axes[number].index + 1


def _in_sequence(term: Term, index: Sym, read: AbstractSet[str]) -> bool:
    if term.index is None or term.bound is None:
        return False
    start = index - term.index
    names = {name.partition("@")[0] for name in (term.bound if start.is_zero else start).variables()}
    return bool(names) and names <= read


def end_of(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """What a plain name is below, in ``i < end`` and ``end > i``."""
    if not isinstance(node, cst.Comparison) or len(node.comparisons) != 1:
        return None
    left, operator, right = node.left, node.comparisons[0].operator, node.comparisons[0].comparator
    if isinstance(operator, cst.LessThan) and isinstance(left, cst.Name):
        return right
    return left if isinstance(operator, cst.GreaterThan) and isinstance(right, cst.Name) else None


def written(node: cst.BaseExpression) -> str:
    """The text of a condition as it can stand behind ``if``."""
    return code(node.with_changes(lpar=(), rpar=()))


def all_of(tests: Sequence[str]) -> str:
    """One condition of several; each may be an ``or``."""
    return " and ".join(_in_parentheses(test) for test in tests) if len(tests) > 1 else tests[0]


def _in_parentheses(test: str) -> str:
    node = cst.parse_expression(test)
    either = isinstance(node, cst.BooleanOperation) and isinstance(node.operator, cst.Or)
    return f"({test})" if (either or isinstance(node, cst.IfExp)) and not node.lpar else test
