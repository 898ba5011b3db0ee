"""Expressions of the source as numbers, arrays over the lanes of ``T.Parallel`` loops, and parts of tiles.

Works on the syntax tree, as Python and the compiler's front end do: nothing of the user's is executed.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, cast

import libcst as cst
import numpy as np

from tl2npu.evaluate import arithmetic, elements
from tl2npu.evaluate.races import Watch
from tl2npu.evaluate.values import Array, Cell, Frame, NotChecked, Region, Tile, Unknown, whole_number
from tl2npu.kernel.element_types import plain
from tl2npu.kernel.expressions import code
from tl2npu.kernel.style import Dialect
from tl2npu.source.literals import text_of
from tl2npu.source.names import Names

_BINARY: Mapping[type[cst.CSTNode], Callable[[Any, Any], Any]] = {
    cst.Add: operator.add,
    cst.Subtract: operator.sub,
    cst.Multiply: operator.mul,
    cst.Divide: operator.truediv,
    cst.FloorDivide: operator.floordiv,
    cst.Modulo: operator.mod,
    cst.Power: operator.pow,
    cst.LeftShift: operator.lshift,
    cst.RightShift: operator.rshift,
    cst.BitAnd: operator.and_,
    cst.BitOr: operator.or_,
    cst.BitXor: operator.xor,
}
_COMPARED: Mapping[type[cst.CSTNode], Callable[[Any, Any], Any]] = {
    cst.Equal: operator.eq,
    cst.NotEqual: operator.ne,
    cst.LessThan: operator.lt,
    cst.LessThanEqual: operator.le,
    cst.GreaterThan: operator.gt,
    cst.GreaterThanEqual: operator.ge,
}
_CONSTANTS: Mapping[str, object] = {"True": True, "False": False, "None": None, "__name__": "kernel"}
_OF_DEVICES = frozenset({"multi_processor_count", "cube_core_num", "vector_core_num"})
CORES = 4
"""Of the device, where a kernel asks for their number: few, so that a core does several tasks."""
class Expressions:
    """Evaluates expressions; ``lanes`` are the extents of the ``T.Parallel`` loops around, ``mask`` who is active."""

    def __init__(self, names: Names, dialect: Dialect) -> None:
        self.names = names
        self.dialect = dialect
        self.frame = Frame()
        self.lanes: tuple[int, ...] = ()
        self.mask: Array | None = None
        self.watch: Watch | None = None
        self.symbols: dict[str, int] = {}
        self.left = 0
        """How much work may still be done, in elements."""

    def spend(self, elements_: int) -> None:
        """Count work; raises :class:`NotChecked` when there was too much of it."""
        self.left -= elements_ + 200
        if self.left < 0:
            raise NotChecked("it takes too many steps")

    @property
    def is_gpu(self) -> bool:
        """Whether tensors read as zeros behind their ends, as GPU TileLang guards them."""
        return self.dialect == "gpu"

    # values ----------------------------------------------------------------------------------------------------------

    def value(self, node: cst.BaseExpression) -> Any:
        """A number, an array over the lanes, a string, a tuple; variables and elements stand for what is in them."""
        found = self.raw(node)
        if isinstance(found, Cell):
            return found.value
        if isinstance(found, Region):
            return self.loaded(found)
        return found

    def number(self, node: cst.BaseExpression) -> Any:
        """A value that is a number or an array of numbers."""
        found = self.value(node)
        if isinstance(found, Tile) and found.data.size == 1:
            return found.data.reshape(-1)[0]
        if not isinstance(found, (bool, int, float, np.ndarray, np.generic)):
            raise NotChecked(f"`{code(node)}` is no number")
        return found

    def whole(self, node: cst.BaseExpression) -> int:
        """One whole number."""
        found = self.number(node)
        if not isinstance(found, int):
            return whole_number(found, code(node))
        return int(found)

    def loaded(self, region: Region) -> Any:
        """The elements that indices stand for."""
        if not region.is_element:
            if region.extents is not None and region.size == 1:
                return region.view().reshape(-1)[0]
            raise NotChecked(f"a part of `{region.tile.name}` is used as a number")
        if self.watch is not None and self.lanes and not region.tile.lanes:
            self.watch.reads(region.tile, region.starts, self.lanes, self.mask)
        return elements.load(region.tile, region.starts, self.is_gpu and region.tile.in_global)

    def raw(self, node: cst.BaseExpression) -> Any:
        """What an expression stands for: tiles, parts of them and variables as such."""
        handler = _HANDLERS.get(type(node))
        if handler is None:
            raise NotChecked(f"`{code(node)}` has no meaning here")
        return handler(self, node)

    def _name(self, node: cst.Name) -> object:
        if node.value in _CONSTANTS:
            return _CONSTANTS[node.value]
        try:
            found = self.frame.find(node.value)
        except KeyError:
            return self._imported(node)
        if isinstance(found, Unknown):
            raise NotChecked(found.why)
        return found

    def _imported(self, node: cst.Name | cst.Attribute) -> object:
        resolved = self.names.resolve(node) or ""
        module, _, name = resolved.rpartition(".")
        if resolved in ("math.pi", "math.e", "math.inf", "math.nan"):
            return getattr(math, name)
        if resolved in ("numpy.inf", "numpy.pi"):
            return getattr(np, name)
        if module in ("tilelang.language", "torch"):
            try:
                arithmetic.storage(name)
            except ValueError:
                raise NotChecked(f"`{code(node)}` has no meaning here") from None
            return name
        raise NotChecked(f"the value of `{code(node)}` is not known")

    def _attribute(self, node: cst.Attribute) -> object:
        if self.names.resolve(node):
            return self._imported(node)
        if node.attr.value in _OF_DEVICES:
            return CORES
        holder = self.raw(node.value)
        if isinstance(holder, Tile) and node.attr.value == "shape":
            if holder.halved:
                raise NotChecked(f"the shape of `{holder.name}`, which two cores share, is asked for")
            return holder.shape
        if isinstance(holder, Tile) and node.attr.value == "data":
            return holder
        if isinstance(holder, (Tile, Cell)) and node.attr.value == "dtype":
            return holder.dtype
        raise NotChecked(f"`{code(node)}` has no meaning here")

    def _subscript(self, node: cst.Subscript) -> object:
        base = self.raw(node.value)
        indices: list[cst.BaseSlice] = []
        for element in node.slice:
            index = element.slice
            if isinstance(index, cst.Index) and isinstance(index.value, cst.Tuple):
                indices += [cst.Index(item.value) for item in index.value.elements]
            else:
                indices.append(index)
        if isinstance(base, Tile):
            return self._part(base, indices)
        if isinstance(base, Cell):
            return base
        if isinstance(base, (tuple, list)) and len(indices) == 1 and isinstance(indices[0], cst.Index):
            place = self.whole(indices[0].value)
            if -len(base) <= place < len(base):
                return base[place]
        if isinstance(base, (tuple, list)) and len(indices) == 1 and isinstance(indices[0], cst.Slice):
            ends = [None if end is None else self.whole(end) for end in (indices[0].lower, indices[0].upper)]
            return base[ends[0] : ends[1]]
        raise NotChecked(f"`{code(node)}` has no meaning here")

    def _part(self, tile: Tile, indices: list[cst.BaseSlice]) -> Region:
        starts: list[Array] = []
        extents: list[int] = []
        has_slice = False
        for axis, index in enumerate(indices):
            if axis >= len(tile.shape):
                raise NotChecked(f"`{tile.name}` has more indices than axes")
            if isinstance(index, cst.Index):
                if index.star:
                    raise NotChecked("an index with a star")
                start = self.number(index.value)
                if self.is_gpu and _is_negative(index.value) and np.all(np.asarray(start) < 0):
                    start = start + tile.shape[axis]  # legalize_negative_index.cc
                starts.append(int(start) if isinstance(start, (bool, np.integer)) else start)
                extents.append(1)
                continue
            assert isinstance(index, cst.Slice)
            if index.step is not None and self.whole(index.step) != 1:
                raise NotChecked(f"a part of `{tile.name}` with a step")
            has_slice = True
            size = tile.shape[axis]
            low = self.whole(index.lower) if index.lower is not None else 0
            high = self.whole(index.upper) if index.upper is not None else size
            if tile.halved and axis == 0 and index.upper is not None and high - low > size > 0:
                high = low + (high - low) // 2  # the text counts the rows of both cores
            starts.append(low)
            extents.append(high - low)
        if has_slice:
            for size in tile.shape[len(indices) :]:
                starts.append(0)
                extents.append(size)
        return Region(tile, starts, extents if has_slice else None)

    def _binary(self, node: cst.BinaryOperation) -> object:
        left, right = self.value(node.left), self.value(node.right)
        function = _BINARY.get(type(node.operator))
        if function is None or isinstance(left, Tile) or isinstance(right, Tile):
            raise NotChecked(f"`{code(node)}` has no meaning here")
        if isinstance(node.operator, cst.Add) and isinstance(left, (tuple, list)) and isinstance(right, (tuple, list)):
            return [*left, *right]
        if isinstance(node.operator, cst.Divide) and _is_device(left, right):
            return arithmetic.divided(left, right)
        if isinstance(left, bool) and isinstance(right, np.ndarray):
            left = np.bool_(left)
        if _both_bool(left, right) and isinstance(node.operator, (cst.Subtract, cst.Add, cst.Multiply)):
            left, right = np.asarray(left, np.int64), np.asarray(right, np.int64)
        if isinstance(node.operator, cst.Power) and _is_device(left, right):
            left = np.asarray(left, np.float64)
        try:
            return function(left, right)
        except OverflowError:  # a number that the other type does not have
            return function(np.asarray(left, np.int64), np.asarray(right, np.int64))

    def _unary(self, node: cst.UnaryOperation) -> object:
        found = self.value(node.expression)
        if isinstance(node.operator, cst.Not):
            return np.logical_not(found) if np.ndim(found) else not found
        if isinstance(node.operator, cst.Minus):
            return -found if not isinstance(found, (bool, np.bool_)) else -int(found)
        if isinstance(node.operator, cst.BitInvert):
            return ~found
        return found

    def _comparison(self, node: cst.Comparison) -> object:
        left, found = self.value(node.left), None
        for target in node.comparisons:
            kind = type(target.operator)
            right = self.value(target.comparator)
            if kind in (cst.Is, cst.IsNot):
                this: Any = (left is right) == (kind is cst.Is)
            elif kind in (cst.In, cst.NotIn) and isinstance(right, (tuple, list, str)):
                this = (left in right) == (kind is cst.In)
            elif isinstance(left, (Tile, tuple)) or isinstance(right, (Tile, tuple)) or kind not in _COMPARED:
                raise NotChecked(f"`{code(node)}` has no meaning here")
            elif isinstance(left, str) and isinstance(right, str):
                this = _COMPARED[kind](plain(left), plain(right))
            else:
                this = _COMPARED[kind](left, right)
            found = this if found is None else np.logical_and(found, this)
            left = right
        return found

    def _boolean(self, node: cst.BooleanOperation) -> object:
        left = self.value(node.left)
        is_and = isinstance(node.operator, cst.And)
        if np.ndim(left) == 0:
            return self.value(node.right) if bool(left) == is_and else left
        return (np.logical_and if is_and else np.logical_or)(left, self.value(node.right))

    def _choice(self, node: cst.IfExp) -> object:
        test = self.value(node.test)
        if np.ndim(test) == 0:
            return self.raw(node.body if bool(test) else node.orelse)
        return np.where(test, self.value(node.body), self.value(node.orelse))

    def _sequence(self, node: cst.Tuple | cst.List) -> tuple[object, ...]:
        found: list[object] = []
        for element in node.elements:
            value = self.raw(element.value)
            if isinstance(element, cst.StarredElement):
                found += cast("tuple[object, ...]", value)
            else:
                found.append(value.value if isinstance(value, Cell) else value)
        return tuple(found)

    def call(self, node: cst.Call) -> object:
        """The value of a call, for :mod:`tl2npu.evaluate.calls`."""
        raise NotImplementedError


def _is_negative(node: cst.BaseExpression) -> bool:
    """Whether an expression begins with a minus."""
    while isinstance(node, cst.BinaryOperation):
        node = node.left
    return isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus)


def _is_device(*values: object) -> bool:
    return any(isinstance(value, (np.ndarray, np.generic)) for value in values)


def _both_bool(*values: Any) -> bool:
    return _is_device(*values) and all(np.asarray(value).dtype == np.bool_ for value in values)


def _string(_: Expressions, node: cst.SimpleString) -> object:
    return text_of(node)


def _literal(_: Expressions, node: cst.Integer | cst.Float) -> object:
    return node.evaluated_value


def _text(_: Expressions, node: cst.FormattedString) -> object:
    return ""


_HANDLERS: Mapping[type[cst.CSTNode], Callable[[Expressions, Any], Any]] = {
    cst.Name: Expressions._name,
    cst.Integer: _literal,
    cst.Float: _literal,
    cst.SimpleString: _string,
    cst.FormattedString: _text,
    cst.BinaryOperation: Expressions._binary,
    cst.UnaryOperation: Expressions._unary,
    cst.Comparison: Expressions._comparison,
    cst.BooleanOperation: Expressions._boolean,
    cst.IfExp: Expressions._choice,
    cst.Call: lambda self, node: self.call(node),
    cst.Subscript: Expressions._subscript,
    cst.Attribute: Expressions._attribute,
    cst.Tuple: Expressions._sequence,
    cst.List: Expressions._sequence,
}
