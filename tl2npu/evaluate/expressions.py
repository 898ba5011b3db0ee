"""Expressions of the source as numbers, arrays over the lanes of ``T.Parallel`` loops, and parts of tiles.

Works on the syntax tree, as Python and the compiler's front end do: nothing of the user's is executed. An expression
is read once and becomes a function of the machine, since blocks and loops ask for it again and again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import libcst as cst
import numpy as np

from tl2npu.evaluate import arithmetic, elements
from tl2npu.evaluate.races import Watch
from tl2npu.evaluate.values import Array, Cell, Fault, Frame, NotChecked, Region, Tile, Unknown, whole_number
from tl2npu.kernel.element_types import plain
from tl2npu.kernel.expressions import code
from tl2npu.kernel.style import Dialect
from tl2npu.source.literals import text_of
from tl2npu.source.names import Names
from tl2npu.source.signs import COMPARISONS, COMPUTED, sign_of
from tl2npu.source.tree import remembered

Run = Callable[["Expressions"], Any]

_CONSTANTS: Mapping[str, object] = {"True": True, "False": False, "None": None, "__name__": "kernel"}
_NUMBERS = frozenset({int, float})
_QUICK = frozenset({int, float, np.ndarray})
_MISSING = object()
STATEMENT, _CHEAP = 200, 16
"""What a statement counts, and how many elements are worth one more: NumPy takes a few nanoseconds for each."""
TOO_MANY = "it takes too many steps"
CORES = 4
"""Of the device, where a kernel asks for their number: few, so that a core does several tasks."""
_OF_DEVICES: Mapping[str, int] = {
    **dict.fromkeys(("multi_processor_count", "cube_core_num", "vector_core_num"), CORES),
    "major": 9,
    "minor": 0,
}


class Expressions:
    """Evaluates expressions; ``lanes`` are the extents of the ``T.Parallel`` loops around, ``mask`` who is active."""

    def __init__(self, names: Names, dialect: Dialect) -> None:
        self.names = names
        self.dialect = dialect
        self.is_gpu = dialect == "gpu"
        """Whether tensors read as zeros behind their ends, as GPU TileLang guards them."""
        self.frame = Frame()
        self.lanes: tuple[int, ...] = ()
        self.mask: Array | None = None
        self.watch: Watch | None = None
        self.symbols: dict[str, int] = {}
        self.left = 0
        """How much work may still be done, in elements."""

    def spend(self, elements_: int) -> None:
        """Count work; raises :class:`NotChecked` when there was too much of it."""
        self.left -= elements_ // _CHEAP + STATEMENT
        if self.left < 0:
            raise NotChecked(TOO_MANY)

    def raw(self, node: cst.BaseExpression) -> Any:
        """What an expression stands for: tiles, parts of them and variables as such."""
        return raw(node)(self)

    def value(self, node: cst.BaseExpression) -> Any:
        """A number, an array over the lanes, a string, a tuple; variables and elements stand for what is in them."""
        return value(node)(self)

    def number(self, node: cst.BaseExpression) -> Any:
        """A value that is a number or an array of numbers."""
        return number(node)(self)

    def whole(self, node: cst.BaseExpression) -> int:
        """One whole number."""
        found = self.number(node)
        return int(found) if isinstance(found, int) else whole_number(found, code(node))

    def loaded(self, region: Region) -> Any:
        """The elements that indices stand for."""
        if not region.is_element:
            if region.extents is not None and region.size == 1:
                return region.view().reshape(-1)[0]
            raise NotChecked(f"a part of `{region.tile.name}` is used as a number")
        if self.watch is not None and self.lanes and not region.tile.lanes:
            self.watch.reads(region.tile, region.starts, self.lanes, self.mask)
        return elements.load(region.tile, region.starts, self.is_gpu and region.tile.in_global)

    def imported(self, node: cst.Name | cst.Attribute) -> object:
        """What a name stands for that nothing here binds."""
        resolved = self.names.resolve(node) or ""
        module, _, name = resolved.rpartition(".")
        if resolved in ("math.pi", "math.e", "math.inf", "math.nan"):
            return getattr(math, name)
        if resolved in ("numpy.inf", "numpy.pi"):
            return getattr(np, name)
        if module in ("tilelang.language", "torch") and arithmetic.is_stored(name):
            return name
        if not resolved and isinstance(node, cst.Name):
            raise Fault(f"`{node.value}` has no value")
        raise NotChecked(f"the value of `{code(node)}` is not known")

    def call(self, node: cst.Call) -> object:
        """The value of a call, for :mod:`tl2npu.evaluate.calls`."""
        raise NotImplementedError


@remembered
def raw(node: cst.BaseExpression) -> Run:
    """An expression as a function that gives what it stands for: tiles, parts of them and variables as such."""
    reader = _READERS.get(type(node))
    if reader is None:
        return lambda _: _meaningless(node)
    return reader(node)


@remembered
def value(node: cst.BaseExpression) -> Run:
    """An expression as a function that gives its value; variables and elements stand for what is in them."""
    run = raw(node)
    if type(node) in _VALUES:
        return run

    def function(machine: Expressions) -> Any:
        found = run(machine)
        if type(found) is Region:
            return machine.loaded(found)
        return found.value if type(found) is Cell else found

    return function


@remembered
def number(node: cst.BaseExpression) -> Run:
    """An expression as a function that gives a number or an array of numbers."""
    run = value(node)

    def function(machine: Expressions) -> Any:
        found = run(machine)
        if type(found) in _QUICK or isinstance(found, (int, float, np.generic)):
            return found
        if isinstance(found, Tile) and found.data.size == 1:
            return found.data.reshape(-1)[0]
        raise NotChecked(f"`{code(node)}` is not a number")

    return function


def _meaningless(node: cst.CSTNode) -> Any:
    raise NotChecked(f"`{code(node)}` has no meaning here")


def _constant(found: object) -> Run:
    return lambda _: found


def _name(node: cst.Name) -> Run:
    name = node.value
    if name in _CONSTANTS:
        return _constant(_CONSTANTS[name])

    def function(machine: Expressions) -> object:
        frame: Frame | None = machine.frame
        while frame is not None:
            found = frame.values.get(name, _MISSING)
            if found is not _MISSING:
                if type(found) is Unknown:
                    raise NotChecked(found.why)
                return found
            frame = frame.parent
        return machine.imported(node)

    return function


def _attribute(node: cst.Attribute) -> Run:
    name, holder_of = node.attr.value, raw(node.value)

    def function(machine: Expressions) -> object:
        if machine.names.resolve(node):
            return machine.imported(node)
        if name in _OF_DEVICES:
            return _OF_DEVICES[name]
        holder = holder_of(machine)
        if isinstance(holder, Tile) and name == "shape":
            if holder.halved:
                raise NotChecked(f"the shape of `{holder.name}`, which two cores share, is asked for")
            return holder.shape
        if isinstance(holder, Tile) and name == "data":
            return holder
        if isinstance(holder, (Tile, Cell)) and name == "dtype":
            return holder.dtype
        if isinstance(holder, str) and name == "bits" and arithmetic.is_stored(holder):
            return arithmetic.width(holder)
        return _meaningless(node)

    return function


def _subscript(node: cst.Subscript) -> Run:
    base_of = raw(node.value)
    indices: list[cst.BaseSlice] = []
    for element in node.slice:
        index = element.slice
        if isinstance(index, cst.Index) and isinstance(index.value, cst.Tuple):
            indices += [cst.Index(item.value) for item in index.value.elements]
        else:
            indices.append(index)
    part = _part(indices)

    def function(machine: Expressions) -> object:
        base = base_of(machine)
        if type(base) is Tile:
            return part(machine, base)
        if type(base) is Cell:
            return base
        if isinstance(base, (tuple, list)) and len(indices) == 1:
            return _item(machine, base, indices[0])
        return _meaningless(node)

    return function


def _item(machine: Expressions, several: Sequence[object], index: cst.BaseSlice) -> object:
    if isinstance(index, cst.Index):
        place = machine.whole(index.value)
        if not -len(several) <= place < len(several):
            raise Fault("an item behind the end of a sequence")
        return several[place]
    assert isinstance(index, cst.Slice)
    ends = [None if end is None else machine.whole(end) for end in (index.lower, index.upper)]
    return several[ends[0] : ends[1]]


def _part(indices: Sequence[cst.BaseSlice]) -> Callable[[Expressions, Tile], Region]:
    """The part of a tile that indices and slices stand for; where slices lack, an index may be where a part begins."""
    has_slice = any(isinstance(index, cst.Slice) for index in indices)
    readers = [_ends(index) if isinstance(index, cst.Slice) else _place(index) for index in indices]
    steps = {place: i.step for place, i in enumerate(indices) if isinstance(i, cst.Slice) and i.step is not None}

    def function(machine: Expressions, tile: Tile) -> Region:
        shape = tile.data.shape
        if len(readers) > len(shape):
            raise Fault(f"`{tile.name}` has more indices than axes")
        found = [reader(machine, tile, axis) for axis, reader in enumerate(readers)]
        for place, step in steps.items():
            start, extent = found[place]
            tile, found[place] = _stepped(tile, place, start, extent, machine.whole(step))
        starts = [start for start, _ in found]
        if not has_slice:
            return Region(tile, starts, None)
        rest = shape[len(readers) :]
        return Region(tile, starts + [0] * len(rest), [extent for _, extent in found] + list(rest))

    return function


def _stepped(tile: Tile, axis: int, start: int, extent: int, step: int) -> tuple[Tile, tuple[int, int]]:
    """A tile whose axis has only what a slice with a step takes, in the same memory, and all of that axis."""
    if step == 1:
        return tile, (start, extent)
    if step < 1 or tile.in_global or tile.local or tile.bits is not None or (tile.halved and axis == 0):
        raise NotChecked(f"a part of `{tile.name}` with a step")
    every = (slice(None),) * axis
    view = replace(tile, data=tile.data[(*every, slice(start, start + extent, step))])
    return view, (0, view.shape[axis])


def _place(index: cst.BaseSlice) -> Callable[[Expressions, Tile, int], tuple[Any, int]]:
    """An index as where it is, and an extent of 1."""
    assert isinstance(index, cst.Index)
    start_of, is_negative = number(index.value), _is_negative(index.value)

    def function(machine: Expressions, tile: Tile, axis: int) -> tuple[Any, int]:
        start = start_of(machine)
        if is_negative and machine.is_gpu and np.all(np.asarray(start) < 0):
            start = start + tile.shape[axis]  # legalize_negative_index.cc
        return (int(start) if isinstance(start, (bool, np.integer)) else start), 1

    return function


def _ends(index: cst.Slice) -> Callable[[Expressions, Tile, int], tuple[int, int]]:
    """A slice as where it begins, and its extent."""

    def function(machine: Expressions, tile: Tile, axis: int) -> tuple[int, int]:
        size = tile.data.shape[axis]
        low = machine.whole(index.lower) if index.lower is not None else 0
        extent = (machine.whole(index.upper) if index.upper is not None else size) - low
        if tile.halved and axis == 0 and index.upper is not None and extent > size > 0:
            extent //= 2  # the text counts the rows of both cores
        return low, extent

    return function


def _binary(node: cst.BinaryOperation) -> Run:
    left_of, right_of, sign = value(node.left), value(node.right), sign_of(node.operator)
    operation = COMPUTED.get(sign, lambda *_: _meaningless(node))

    def function(machine: Expressions) -> Any:
        left, right = left_of(machine), right_of(machine)
        if type(left) in _NUMBERS and type(right) in _NUMBERS:
            return operation(left, right)
        if isinstance(left, (tuple, list)) and isinstance(right, (tuple, list)) and sign == "+":
            return [*left, *right]
        if isinstance(left, Tile) or isinstance(right, Tile):
            return _meaningless(node)
        if _is_device(left, right):
            return _on_device(sign, operation, left, right)
        return operation(left, right)

    return function


def _on_device(sign: str, operation: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    if sign == "/":
        return arithmetic.divided(left, right)
    if isinstance(left, bool):
        left = np.bool_(left)
    if sign in ("-", "+", "*") and np.asarray(left).dtype == np.asarray(right).dtype == np.bool_:
        left, right = np.asarray(left, np.int64), np.asarray(right, np.int64)
    if sign == "**":
        left = np.asarray(left, np.float64)
    try:
        return operation(left, right)
    except OverflowError:  # a number that the other type does not have
        return operation(np.asarray(left, np.int64), np.asarray(right, np.int64))


def _unary(node: cst.UnaryOperation) -> Run:
    value_of, kind = value(node.expression), type(node.operator)

    def function(machine: Expressions) -> Any:
        found = value_of(machine)
        if kind is cst.Not:
            return np.logical_not(found) if np.ndim(found) else not found
        if kind is cst.Minus:
            return -found if not isinstance(found, (bool, np.bool_)) else -int(found)
        return ~found if kind is cst.BitInvert else found

    return function


def _comparison(node: cst.Comparison) -> Run:
    first = value(node.left)
    others = [(target.operator, value(target.comparator)) for target in node.comparisons]

    def function(machine: Expressions) -> object:
        left, found = first(machine), None
        for head, value_of in others:
            right = value_of(machine)
            this = _compared(node, head, left, right)
            found = this if found is None else np.logical_and(found, this)
            left = right
        return found

    return function


def _compared(node: cst.CSTNode, head: cst.BaseCompOp, left: Any, right: Any) -> Any:
    if isinstance(head, (cst.Is, cst.IsNot)):
        return (left is right) == isinstance(head, cst.Is)
    if isinstance(head, (cst.In, cst.NotIn)) and isinstance(right, (tuple, list, str)):
        return (left in right) == isinstance(head, cst.In)
    several = sum(isinstance(side, (tuple, list)) for side in (left, right))
    sign = sign_of(head)
    if isinstance(left, Tile) or isinstance(right, Tile) or several == 1 or sign not in COMPARISONS:
        return _meaningless(node)
    if several:
        return COMPUTED[sign](tuple(left), tuple(right))
    if isinstance(left, str) and isinstance(right, str):
        return COMPUTED[sign](plain(left), plain(right))
    return COMPUTED[sign](left, right)


def _boolean(node: cst.BooleanOperation) -> Run:
    left_of, right_of, is_and = value(node.left), value(node.right), isinstance(node.operator, cst.And)

    def function(machine: Expressions) -> object:
        left = left_of(machine)
        if np.ndim(left) == 0:
            return right_of(machine) if bool(left) == is_and else left
        return (np.logical_and if is_and else np.logical_or)(left, right_of(machine))

    return function


def _choice(node: cst.IfExp) -> Run:
    test_of = value(node.test)

    def function(machine: Expressions) -> object:
        test = test_of(machine)
        if np.ndim(test) == 0:
            return machine.raw(node.body if bool(test) else node.orelse)
        return np.where(test, machine.value(node.body), machine.value(node.orelse))

    return function


def _sequence(node: cst.Tuple | cst.List) -> Run:
    several = [(raw(element.value), isinstance(element, cst.StarredElement)) for element in node.elements]

    def function(machine: Expressions) -> tuple[object, ...]:
        found: list[object] = []
        for value_of, has_star in several:
            one = value_of(machine)
            if has_star:
                found += cast("tuple[object, ...]", one)
            else:
                found.append(one.value if isinstance(one, Cell) else one)
        return tuple(found)

    return function


def _comprehension(node: cst.GeneratorExp | cst.ListComp) -> Run:
    """One ``for`` over a sequence, with a plain name."""
    source, element = node.for_in, value(node.elt)
    target, items_of = source.target, value(source.iter)
    tests = [value(condition.test) for condition in source.ifs]
    if not isinstance(target, cst.Name) or source.inner_for_in is not None:
        return lambda _: _meaningless(node)
    name = target.value

    def function(machine: Expressions) -> tuple[object, ...]:
        outer, found = machine.frame, []
        for item in items_of(machine):
            machine.frame = Frame(outer, {name: item})
            if all(test(machine) for test in tests):
                found.append(element(machine))
        machine.frame = outer
        return tuple(found)

    return function


def _is_negative(node: cst.BaseExpression) -> bool:
    """Whether an expression begins with a minus."""
    while isinstance(node, cst.BinaryOperation):
        node = node.left
    return isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus)


def _is_device(*values: object) -> bool:
    return any(isinstance(value, (np.ndarray, np.generic)) for value in values)


def _literal(node: cst.Integer | cst.Float) -> Run:
    return _constant(node.evaluated_value)


_READERS: Mapping[type[cst.CSTNode], Callable[[Any], Run]] = {
    cst.Name: _name,
    cst.Integer: _literal,
    cst.Float: _literal,
    cst.SimpleString: lambda node: _constant(text_of(node)),
    cst.FormattedString: lambda _: _constant(""),
    cst.BinaryOperation: _binary,
    cst.UnaryOperation: _unary,
    cst.Comparison: _comparison,
    cst.BooleanOperation: _boolean,
    cst.IfExp: _choice,
    cst.Call: lambda node: lambda machine: machine.call(node),
    cst.Subscript: _subscript,
    cst.Attribute: _attribute,
    cst.Tuple: _sequence,
    cst.List: _sequence,
    cst.GeneratorExp: _comprehension,
    cst.ListComp: _comprehension,
}
_VALUES = frozenset(_READERS) - {cst.Name, cst.Call, cst.Subscript, cst.Attribute, cst.IfExp}
"""Expressions that stand for no variable and no part of a tile."""
