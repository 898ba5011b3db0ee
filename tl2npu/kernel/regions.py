"""Which part of a tensor an element-wise loop reads or writes through one indexed expression."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.environment import Env
from tl2npu.kernel.expressions import Evaluator, code
from tl2npu.kernel.model import Buffer, Operand, Range
from tl2npu.kernel.symbolic import Sym
from tl2npu.source.tree import nodes_of, replaced

_TIGHT = (cst.Add, cst.Subtract, cst.Multiply, cst.Divide, cst.FloorDivide, cst.Modulo, cst.Power)


@dataclass(frozen=True, eq=False)
class Axis:
    """One axis of a region: ``start`` is the text of the index without its loop variable ``range`` (None: a point),
    ``text`` that of the whole index, if it is known."""

    index: Sym
    start: str
    range: Range | None
    text: str = ""

    @property
    def lo(self) -> Sym:
        """Where the region starts."""
        return self.index - self.range.var if self.range is not None else self.index


@dataclass(frozen=True, eq=False)
class Region:
    """``buffer[start + i, ...]`` over the loop variables; every variable occurs once at most."""

    buffer: Buffer
    axes: tuple[Axis, ...]

    @property
    def ranges(self) -> tuple[Range, ...]:
        """The loop variables in the order of the tensor's axes."""
        return tuple(axis.range for axis in self.axes if axis.range is not None)

    @property
    def in_rows(self) -> bool:
        """True if the elements of a row lie side by side: the last axis, or none, is looped over."""
        return not self.ranges or self.axes[-1].range is not None

    def at(self, number: int) -> Region:
        """The region for one value of the loop variable of an axis, whose name stays in the index."""
        axis = self.axes[number]
        assert axis.range is not None
        start = axis.range.name if axis.lo.is_zero else f"{axis.start} + {axis.range.name}"
        if axis.text and axis.start.startswith("0 "):
            start = axis.text  # ``i - 1`` and not ``0 - 1 + i``
        return Region(self.buffer, (*self.axes[:number], Axis(axis.index, start, None), *self.axes[number + 1 :]))

    def key(self) -> tuple[object, ...]:
        """Equal for equal regions, whatever their variables are called."""
        return (self.buffer, *((axis.lo, axis.range and axis.range.extent) for axis in self.axes))

    def text(self, *, slices: bool) -> str:
        """The region as an operand of a copy: slices, or start indices where those are enough."""
        shape = self.buffer.shape
        trailing = [axis.range is not None for axis in self.axes]
        count = sum(trailing)
        if not slices and (count == 0 or all(trailing[-count:])):
            return f"{self.buffer.name}[{', '.join(axis.start for axis in self.axes)}]"
        parts = []
        for axis, size in zip(self.axes, shape, strict=True):
            if axis.range is None:
                parts.append(axis.start)
            elif axis.lo.is_zero and axis.range.extent == size:
                parts.append(":")
            else:
                extent = extent_text(axis.range)
                parts.append(f"0:{extent}" if axis.lo.is_zero else f"{axis.start} : {summand(axis.start)} + {extent}")
        return f"{self.buffer.name}[{', '.join(parts)}]"


def summand(text: str) -> str:
    """An expression as the first term of a sum, in parentheses where it needs them."""
    node = cst.parse_expression(text)
    binds = (cst.Name, cst.Integer, cst.Attribute, cst.Call, cst.Subscript)
    loose = isinstance(node, cst.BinaryOperation) and not isinstance(node.operator, _TIGHT)
    return f"({text})" if loose or not isinstance(node, (*binds, cst.BinaryOperation, cst.UnaryOperation)) else text


def extent_text(item: Range) -> str:
    """The extent of a loop variable as the loop spells it."""
    assert item.stop_node is not None
    text = code(item.stop_node)
    plain = isinstance(item.stop_node, (cst.Name, cst.Integer, cst.Attribute, cst.Call, cst.Subscript))
    return text if plain or item.stop_node.lpar else f"({text})"


class Lets:
    """The scalars that a loop body binds; :meth:`expand` writes their values in their place."""

    def __init__(self, values: Mapping[str, cst.BaseExpression]) -> None:
        self._values = dict(values)

    def expand(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """The expression without names that the loop body binds."""
        for _ in range(len(self._values)):
            inner = {
                id(name): _in_parentheses(self._values[name.value], name is node)
                for name in nodes_of(node, cst.Name)
                if name.value in self._values
            }
            if not inner:
                break
            node = replaced(node, inner)  # type: ignore[assignment]
        return node

    def without(self, names: Iterable[str]) -> Lets:
        """The same, but for names that are to stay."""
        return Lets({name: value for name, value in self._values.items() if name not in names})

    def items(self) -> Iterable[tuple[str, cst.BaseExpression]]:
        """The scalars with their values, in the order of the text."""
        return self._values.items()


def _in_parentheses(node: cst.BaseExpression, alone: bool) -> cst.BaseExpression:
    simple = isinstance(node, (cst.Name, cst.Integer, cst.Attribute, cst.Call, cst.Subscript))
    if alone or simple or node.lpar:
        return node
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def region(operand: Operand, ranges: Sequence[Range], lets: Lets, evaluator: Evaluator, env: Env) -> Region | None:
    """The region behind ``buffer[...]``; None if an index is anything but a start plus one loop variable."""
    if operand.dims is None or len(operand.dims) != len(operand.buffer.shape):
        return None
    axes: list[Axis] = []
    seen: list[Range] = []
    for dim in operand.dims:
        if not isinstance(dim.node, cst.BaseExpression):
            return None
        found = axis_of(dim.node, ranges, lets, evaluator, env)
        if found is None or any(found.range is item for item in seen):
            return None
        if found.range is not None:
            seen.append(found.range)
        axes.append(found)
    return Region(operand.buffer, tuple(axes))


def axis_of(
    node: cst.BaseExpression, ranges: Sequence[Range], lets: Lets, evaluator: Evaluator, env: Env
) -> Axis | None:
    """One index taken apart; None if it is not of the form start plus at most one loop variable."""
    full = lets.expand(node)
    index = evaluator.sym(full, env)
    names = {name.value for name in nodes_of(full, cst.Name)}
    used = [item for item in ranges if item.name in names]
    if not used:
        return Axis(index, code(full), None)
    if len(used) > 1 or (index - used[0].var).depends_on(str(used[0].var)):
        return None
    start = index - used[0].var
    for candidate in (_without(full, used[0].name), _at_zero(full, used[0].name)):
        if candidate is not None and evaluator.sym(candidate, env) == start:
            text = code(full.with_changes(lpar=(), rpar=()))
            return Axis(index, code(candidate.with_changes(lpar=(), rpar=())), used[0], text)
    return None


def _without(node: cst.BaseExpression, name: str) -> cst.BaseExpression | None:
    """A sum without one of its terms."""
    if isinstance(node, cst.Name):
        return cst.Integer("0") if node.value == name else None
    if not isinstance(node, cst.BinaryOperation):
        return None
    plus, minus = isinstance(node.operator, cst.Add), isinstance(node.operator, cst.Subtract)
    if plus and _is(node.right, name):
        return node.left
    if plus and _is(node.left, name):
        return node.right
    if plus or minus:
        left = _without(node.left, name)
        if left is not None:
            return node.with_changes(left=left)
    right = _without(node.right, name) if plus else None
    return node.with_changes(right=right) if right is not None else None


def _is(node: cst.BaseExpression, name: str) -> bool:
    return isinstance(node, cst.Name) and node.value == name


def _at_zero(node: cst.BaseExpression, name: str) -> cst.BaseExpression | None:
    zeros = {id(item): cst.Integer("0") for item in nodes_of(node, cst.Name) if item.value == name}
    found = replaced(node, zeros)
    return found if isinstance(found, cst.BaseExpression) else None
