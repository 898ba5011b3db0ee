"""What the functions and methods of ``triton.language`` give."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

from tl2npu.dialects.triton.operators import ELEMENTWISE, HINTS, HINTS_WITHOUT_VALUE, REDUCTIONS, REFUSED, WRITTEN
from tl2npu.kernel.symbolic import const
from tl2npu.tile.expr import OPERATORS, Call, Const, Index, Load, axis, loads
from tl2npu.tile.ir import Reduce, ReduceKind
from tl2npu.triton.read import build, masks, memory
from tl2npu.triton.read.combine import reduction_of
from tl2npu.triton.read.expressions import Expressions, ceil_divided
from tl2npu.triton.read.masks import conjuncts
from tl2npu.triton.read.ranges import largest, smallest
from tl2npu.triton.read.spec import Source
from tl2npu.triton.read.values import BlockPointer, DType, Function, Method, Name, Pointer, Tile, Value, integer

_SPACES = ("triton.language.", "triton.")
LOADED = "pointer mask other boundary_check padding_option cache_modifier eviction_policy volatile"
_REDUCED = "input axis keep_dims dtype propagate_nan"
_CUT_OFF = frozenset({"int8", "uint8", "int16", "int32"})
"""Integers to which TileLang's ``T.cast`` of a float cuts off decimals, on GPU and NPU."""
_EXACT: Mapping[str, int] = {"sum": 2**8, "max": 2**24, "min": 2**24}
"""The size up to which integers are reduced as float32, which has all up to 2^24; a unified buffer holds 2^16 terms."""
_TYPE = "pass an element type of Triton, as `tl.float32`, or take that of a pointer: `x_ptr.dtype.element_ty`"
_CONVERSIONS: Mapping[str, Callable[[Any], Any]] = {"int": int, "float": float, "bool": bool}
_TRITON = Source({}, {}, {"tl": "triton.language"})
_MEMBERS = {"to": "cast", **{name: name for name in ("cast", "trans", "expand_dims", "broadcast_to")}}


class Calls(Expressions):
    """Evaluates calls of Triton; device functions are left to a subclass."""

    def inlined(self, called: Function, node: ast.Call) -> Value:
        """The value of a call of a device function."""
        raise NotImplementedError

    def call(self, node: ast.Call) -> Value:
        if any(isinstance(arg, ast.Starred) for arg in node.args) or any(word.arg is None for word in node.keywords):
            raise self.state.refuse("TL543", f"`{ast.unparse(node)}`: unpacked arguments")
        function = self.eval(node.func)
        if isinstance(function, Function):
            return self.inlined(function, node)
        if isinstance(function, Method):
            return self.method(function, node)
        if isinstance(function, Name):
            return self.library(function.path, node)
        raise self.state.refuse("TL543", f"`{ast.unparse(node)}` is not supported in a kernel")

    # arguments ----------------------------------------------------------------------------------------------------

    def bound(self, node: ast.Call, names: str, *owner: Value) -> dict[str, Value]:
        """The arguments by name; ``names`` in their order, ``owner``: that of a method."""
        found: dict[str, Value] = {}
        order = names.split()
        values: list[Value] = list(owner)
        for arg in node.args:
            values.append(self.eval(arg))
        if len(values) > len(order):
            raise self.state.refuse("TL543", f"`{ast.unparse(node)}` has too many arguments")
        found.update(zip(order, values, strict=False))
        for word in node.keywords:
            assert word.arg is not None
            if word.arg not in order or word.arg in found:
                raise self.state.refuse("TL543", f"`{ast.unparse(node)}`: `{word.arg}` is not understood here")
            found[word.arg] = self.eval(word.value)
        return found

    def tile_of(self, value: Value, node: ast.AST) -> Tile:
        """A value that must be a tile or a number."""
        found = build.tile(value)
        if found is None:
            raise self.state.refuse("TL543", f"`{ast.unparse(node)}` wants a tile")
        return found

    # library ------------------------------------------------------------------------------------------------------

    def library(self, path: str, node: ast.Call) -> Value:
        """A call of a function by its full name."""
        last = path.rpartition(".")[2]
        if path.startswith("builtins."):
            return self.builtin(last, node)
        if not path.startswith(_SPACES):
            raise self.state.refuse("TL544", f"`{ast.unparse(node.func)}` comes from another module")
        if last in REFUSED:
            raise self.state.refuse(REFUSED[last], f"`{ast.unparse(node.func)}` has no counterpart")
        if last in HINTS:
            return None if last in HINTS_WITHOUT_VALUE else self.bound(node, "input values")["input"]
        if last in HINTS_WITHOUT_VALUE:
            return None
        if method := getattr(self, f"tl_{last}", None):
            value: Value = method(node)
            return value
        if last in REDUCTIONS:
            return self.reduced(last, self.bound(node, _REDUCED), node)
        if last in ELEMENTWISE:
            return self.elementwise(last, node)
        if last in WRITTEN:
            function = cast(ast.FunctionDef, ast.parse(WRITTEN[last]).body[0])
            return self.inlined(Function(function, _TRITON), node)
        raise self.state.refuse("TL530", f"`{ast.unparse(node.func)}` has no counterpart")

    def without_fill(self, found: Tile) -> Tile:
        """``where(mask, x, 0)`` of a tile that was loaded with this mask, and is 0 already, is the tile."""
        expr = found.expr
        if not isinstance(expr, Call) or expr.op != "select":
            return found
        condition, kept, other = expr.args
        fills = isinstance(other, Const) and other.value == 0
        known = set(conjuncts(condition)) <= set(self.state.zero_beyond(kept))
        return Tile(found.shape, kept) if fills and known else found

    def elementwise(self, name: str, node: ast.Call, *owner: Value) -> Value:
        """A function of elements, by its name in Triton."""
        op = ELEMENTWISE[name]
        names = "condition x y" if op == "select" else "x y z"
        values = self.bound(node, f"{names} propagate_nan ieee_rounding", *owner)
        self.ignores_nan(values, node)
        operands = [values[word] for word in names.split() if word in values]
        if len(operands) != OPERATORS[op] or any(not isinstance(item, (Tile, int, float)) for item in operands):
            raise self.state.refuse("TL543", f"`{ast.unparse(node)}` wants tiles")
        return build.operation(op, list(operands), self.state.line)

    def ignores_nan(self, values: Mapping[str, Value], node: ast.Call) -> None:
        """Refuse an extremum of which NaN must be the result: on a GPU that of TileLang is the other operand."""
        value = values.get("propagate_nan")
        if value not in (None, False) and not (isinstance(value, Name) and value.path.endswith(".NONE")):
            raise self.state.refuse("TL530", f"`{ast.unparse(node)}` gives NaN where an operand is NaN")

    def skipping_nan(self, tile: Tile) -> Tile:
        """An extremum, noted where data may bring NaN into it: Triton skips NaN, an NPU need not."""
        unbounded = math.isinf(build.most(tile.expr, self.state.sizes))  # truths and small integers are no NaN
        if build.is_float(tile.dtype) and unbounded and any(True for _ in loads(tile.expr)):
            self.state.spec.extrema.add(self.state.line)
        return tile

    def builtin(self, name: str, node: ast.Call) -> Value:
        """``float("inf")``, ``min(a, b)`` and their like."""
        values = [self.eval(arg) for arg in node.args]
        if name in _CONVERSIONS and len(values) == 1:
            value = values[0]
            if isinstance(value, (int, float)) or (isinstance(value, str) and name == "float"):
                converted: Value = _CONVERSIONS[name](value)
                return converted
            if isinstance(value, Tile) and name == "int" and value.integer is not None:
                return value
            if isinstance(value, Tile) and name == "float" and not value.shape:
                return build.cast(value, "float32")
        if name in ("min", "max") and len(values) == 2:
            one, other = values
            if isinstance(one, (int, float)) and isinstance(other, (int, float)):
                return min(one, other) if name == "min" else max(one, other)
            return self.skipping_nan(build.operation(name, list(values), self.state.line))
        if name == "len" and len(values) == 1 and isinstance(values[0], tuple):
            return len(values[0])
        if name == "abs" and len(values) == 1:
            return build.operation("abs", list(values), self.state.line)
        if name == "isinstance" and len(values) == 2 and isinstance(values[1], Name):
            kinds = {"tensor_descriptor": isinstance(values[0], BlockPointer) and values[0].described}
            kinds["tensor"] = isinstance(values[0], (Tile, Pointer))
            if (last := values[1].path.rpartition(".")[2].removesuffix("_base")) in kinds:
                return kinds[last]
        self.pin(*node.args)
        raise self.state.refuse("TL543", f"`{ast.unparse(node)}` is not supported in a kernel")

    def tl_constexpr(self, node: ast.Call) -> Value:
        return self.eval(node.args[0])

    def tl_program_id(self, node: ast.Call) -> Value:
        number = self.grid_axis(node)
        return 0 if number >= len(self.state.spec.grid) else Tile((), Index(self.state.block_index(number)))

    def tl_num_programs(self, node: ast.Call) -> Value:
        number, grid = self.grid_axis(node), self.state.spec.grid
        return Tile((), Index(grid[number])) if number < len(grid) else 1

    def grid_axis(self, node: ast.Call) -> int:
        """The axis of the grid that a call asks about."""
        number = integer(self.bound(node, "axis").get("axis", 0))
        if number is None or number.constant is None or number.constant > 2:
            raise self.state.refuse("TL511", "the axis of the grid is not known")
        return number.constant

    def tl_arange(self, node: ast.Call) -> Value:
        values = self.bound(node, "start end")
        start, end = (self.size(values[name], node) for name in ("start", "end"))
        self.state.ranges.extents(end - start)
        return Tile((end - start,), Index(start + axis(0)))

    def tl_cdiv(self, node: ast.Call) -> Value:
        values = self.bound(node, "x div")
        return ceil_divided(self.size(values["x"], node), self.size(values["div"], node))

    def tl_zeros(self, node: ast.Call) -> Value:
        values = self.bound(node, "shape dtype")
        return self.filled(values["shape"], 0, values.get("dtype", DType("float32")), node)

    def tl_full(self, node: ast.Call) -> Value:
        values = self.bound(node, "shape value dtype")
        return self.filled(values["shape"], values["value"], values["dtype"], node)

    def tl_zeros_like(self, node: ast.Call) -> Value:
        like = self.tile_of(self.bound(node, "input")["input"], node)
        return build.broadcast(build.cast(self.tile_of(0, node), like.dtype), like.shape)

    def filled(self, shape: Value, value: Value, dtype: Value, node: ast.Call) -> Value:
        """A tile of one value."""
        if not isinstance(dtype, DType):
            raise self.state.refuse("TL543", f"the element type of `{ast.unparse(node)}` is not known", _TYPE)
        extents = self.shape(shape, node)
        self.state.ranges.extents(*extents)
        return build.broadcast(build.cast(self.tile_of(value, node), dtype.name), extents)

    def tl_broadcast_to(self, node: ast.Call, *owner: Value) -> Value:
        values = self.bound(node, "input shape", *owner)
        return build.broadcast(self.tile_of(values["input"], node), self.shape(values["shape"], node))

    def tl_expand_dims(self, node: ast.Call, *owner: Value) -> Value:
        values = self.bound(node, "input axis", *owner)
        place = self.size(values["axis"], node).constant or 0
        tile = self.tile_of(values["input"], node)
        return build.expanded(tile, place if place >= 0 else len(tile.shape) + 1 + place)

    def tl_trans(self, node: ast.Call, *owner: Value) -> Value:
        values = self.bound(node, "input dims dim", *owner)
        tile = self.tile_of(values["input"], node)
        dims = values.get("dims", (1, 0))
        places = self.shape(dims if "dim" not in values else (dims, values["dim"]), node)
        order = [place.constant % 2 for place in places if place.constant is not None]
        if len(tile.shape) != 2 or sorted(order) != [0, 1]:
            raise self.state.refuse("TL537", f"`{ast.unparse(node)}` of a tile that is not a matrix")
        return build.transposed(tile) if order == [1, 0] else tile

    def tl_cast(self, node: ast.Call, *owner: Value) -> Value:
        values = self.bound(node, "input dtype fp_downcast_rounding bitcast", *owner)
        return self.converted(self.tile_of(values["input"], node), values, node)

    def converted(self, tile: Tile, values: dict[str, Value], node: ast.Call) -> Value:
        """``x.to(dtype)``."""
        dtype = values.get("dtype")
        if isinstance(dtype, Method) and dtype.name == "dtype" and isinstance(dtype.owner, Pointer):
            raise self.state.refuse("TL543", "a pointer's type is not an element type")
        plain = not values.get("bitcast") and values.get("fp_downcast_rounding", "rtne") == "rtne"
        if not isinstance(dtype, DType) or not plain:
            raise self.state.refuse("TL530", f"`{ast.unparse(node)}`", _TYPE if plain else "")
        if dtype.name.startswith("float8"):
            raise self.state.refuse("TL539", f"`{ast.unparse(node)}`")
        known = build.is_float(dtype.name) or dtype.name in _CUT_OFF
        if build.is_float(tile.dtype) and not known and any(True for _ in loads(tile.expr)):
            self.taken_for_integers(tile)
            raise self.state.refuse("TL546", f"`{ast.unparse(node)}` cuts off decimals, a copy may round them")
        return build.cast(tile, dtype.name)

    def tl_where(self, node: ast.Call) -> Value:
        values = self.bound(node, "condition x y")
        found = build.operation("select", [values["condition"], values["x"], values["y"]], self.state.line)
        within = masks.within(found.expr) if found.shape else None
        return self.without_fill(found) if within is None else Tile(found.shape, Index(within))

    def tl_llrint(self, node: ast.Call) -> Value:
        """The nearest integer; it is assumed to fit into 32 bits."""
        return build.cast(build.operation("round", [self.bound(node, "x")["x"]], self.state.line), "int32")

    def tl_clamp(self, node: ast.Call) -> Value:
        values = self.bound(node, "x min max propagate_nan")
        self.ignores_nan(values, node)
        low = build.operation("max", [values["x"], values["min"]], self.state.line)
        return self.skipping_nan(build.operation("min", [low, values["max"]], self.state.line))

    def tl_maximum(self, node: ast.Call) -> Value:
        return self.extreme("max", node)

    def tl_minimum(self, node: ast.Call) -> Value:
        return self.extreme("min", node)

    def tl_min(self, node: ast.Call) -> Value:
        return self.one_or_two("min", node)

    def tl_max(self, node: ast.Call) -> Value:
        return self.one_or_two("max", node)

    def one_or_two(self, name: str, node: ast.Call) -> Value:
        """``tl.max(tile, axis)``; in ``tl.math`` it takes two tiles."""
        values = self.bound(node, "input axis return_indices return_indices_tie_break_left keep_dims propagate_nan")
        if isinstance(values.get("axis"), Tile) and build.tile(values["axis"]).shape:  # type: ignore[union-attr]
            return self.skipping_nan(build.operation(name, [values["input"], values["axis"]], self.state.line))
        if values.get("return_indices"):
            raise self.state.refuse("TL532", f"`{ast.unparse(node)}` returns places")
        return self.reduced(name, values, node)

    def extreme(self, name: str, node: ast.Call) -> Value:
        values = self.bound(node, "x y propagate_nan")
        self.ignores_nan(values, node)
        one, other = integer(values["x"]), integer(values["y"])
        if one is not None and other is not None:
            return Tile((), Index(largest(one, other) if name == "max" else smallest(one, other)))
        return self.skipping_nan(build.operation(name, [values["x"], values["y"]], self.state.line))

    # memory -------------------------------------------------------------------------------------------------------

    def tl_load(self, node: ast.Call) -> Value:
        return self.loaded(self.bound(node, LOADED), node)

    def loaded(self, values: dict[str, Value], node: ast.Call) -> Value:
        """A load, by the arguments of ``tl.load``."""
        pointer = self.pointer(values["pointer"], node)
        if values.get("padding_option") == "nan":
            raise self.state.refuse("TL522", "padding with NaN")
        mask, check = self.mask(values), self.checked(values, node)
        with memory.accessed(pointer):
            return memory.load(self.state, node, pointer, mask, values.get("other"), check)

    def tl_store(self, node: ast.Call) -> Value:
        return self.written(node, "pointer value mask boundary_check cache_modifier eviction_policy", "value")

    def tl_atomic_add(self, node: ast.Call) -> Value:
        return self.written(node, "pointer val mask sem scope", "val")

    def written(self, node: ast.Call, names: str, what: str) -> Value:
        """A store, at once or, of ``val``, as an addition."""
        values = self.bound(node, names)
        return self.put({**values, "value": values[what]}, node, what == "val")

    def put(self, values: dict[str, Value], node: ast.Call, atomic: bool) -> Value:
        """A store, by its arguments."""
        pointer = self.pointer(values["pointer"], node)
        value = self.tile_of(values["value"], node)
        with memory.accessed(pointer):
            memory.store(self.state, pointer, value, self.mask(values), self.checked(values, node), atomic)
        return None

    def pointer(self, value: Value, node: ast.Call) -> Pointer | BlockPointer:
        """A pointer into a tensor argument. Raises ``Refused``."""
        if isinstance(value, (Pointer, BlockPointer)):
            return value
        self.taken_for_a_tensor(value)
        shown = ast.unparse(node.args[0]) if node.args else ast.unparse(node)
        raise self.state.refuse("TL512", f"`{shown}` is not a pointer into a tensor argument")

    def checked(self, values: dict[str, Value], node: ast.Call) -> tuple[int, ...]:
        """The axes of a block pointer that are checked."""
        found = values.get("boundary_check") or ()
        return tuple(self.size(part, node).constant or 0 for part in (found if isinstance(found, tuple) else (found,)))

    def tl_make_block_ptr(self, node: ast.Call) -> Value:
        values = self.bound(node, "base shape strides offsets block_shape order")
        base = self.pointer(values["base"], node)
        if not isinstance(base, Pointer) or base.shape:
            raise self.state.refuse("TL512", f"`{ast.unparse(node)}`: the base is not a tensor argument")
        shape, strides, offsets, block = (
            self.shape(values[name], node) for name in ("shape", "strides", "offsets", "block_shape")
        )
        self.state.ranges.extents(*block)
        return BlockPointer(base, shape, strides, offsets, block)

    def tl_make_tensor_descriptor(self, node: ast.Call) -> Value:
        values = self.bound(node, "base shape strides block_shape padding_option")
        base = self.pointer(values["base"], node)
        if not isinstance(base, Pointer) or base.shape:
            raise self.state.refuse("TL512", f"`{ast.unparse(node)}`: the base is not a tensor argument")
        if values.get("padding_option", "zero") != "zero":
            raise self.state.refuse("TL538", f"`{ast.unparse(node)}` pads with NaN")
        shape, strides, block = (self.shape(values[name], node) for name in ("shape", "strides", "block_shape"))
        if not len(shape) == len(strides) == len(block):
            raise self.state.refuse("TL538", f"`{ast.unparse(node)}`: the shapes have different numbers of axes")
        self.state.ranges.extents(*block)
        return BlockPointer(base, shape, strides, tuple(const(0) for _ in block), block, described=True)

    def tl_load_tensor_descriptor(self, node: ast.Call) -> Value:
        values = self.bound(node, "desc offsets cache_modifier eviction_policy")
        return self.loaded({"pointer": self.at(values["desc"], values["offsets"], node)}, node)

    def tl_store_tensor_descriptor(self, node: ast.Call) -> Value:
        values = self.bound(node, "desc offsets value store_reduce")
        return self.put({"pointer": self.at(values["desc"], values["offsets"], node), **values}, node, False)

    def at(self, described: Value, offsets: Value, node: ast.Call) -> BlockPointer:
        """The block of a descriptor at a place."""
        if not isinstance(described, BlockPointer) or not described.described:
            raise self.state.refuse("TL538", f"`{ast.unparse(node)}` wants a tensor descriptor")
        places = self.shape(offsets, node)
        if len(places) != len(described.block):
            raise self.state.refuse("TL538", f"`{ast.unparse(node)}`: {len(places)} offsets")
        return replace(described, offsets=places)

    def tl_advance(self, node: ast.Call) -> Value:
        values = self.bound(node, "base offsets")
        return self.advanced(values["base"], values["offsets"], node)

    def advanced(self, base: Value, by: Value, node: ast.Call) -> Value:
        """A block pointer moved."""
        if not isinstance(base, BlockPointer) or base.described:
            raise self.state.refuse("TL512", f"`{ast.unparse(node)}` is not a block pointer")
        steps = self.shape(by, node)
        offsets = tuple(one + other for one, other in zip(base.offsets, steps, strict=True))
        return BlockPointer(base.base, base.shape, base.strides, offsets, base.block)

    # reductions and products --------------------------------------------------------------------------------------

    def tl_reduce(self, node: ast.Call) -> Value:
        """A reduction with a device function that says no more than a sum, a maximum, a minimum, ``or`` or ``and``."""
        values = self.bound(node, "input axis combine_fn keep_dims")
        tile = self.tile_of(values["input"], node)
        name = reduction_of(values.pop("combine_fn"), self.state.spec.source, tile.dtype)
        if not name:
            raise self.state.refuse("TL536", f"`{ast.unparse(node)}` reduces {tile.dtype} with a function of its own")
        if tile.dtype != "bool":
            return self.reduced(name, values, node)
        found = self.reduced(name, {**values, "input": build.cast(tile, "float32")}, node)
        return build.operation("ne", [found, 0.0], self.state.line)

    def reduced(self, name: str, values: dict[str, Value], node: ast.Call) -> Value:
        """A reduction of one axis, or of all."""
        self.ignores_nan(values, node)
        tile = self.tile_of(values["input"], node)
        dtype = values.get("dtype")
        if dtype is not None:
            tile = self.tile_of(self.converted(tile, {"dtype": dtype}, node), node)
        whole = build.integer_type(tile.dtype) if build.most(tile.expr, self.state.sizes) <= _EXACT[name] else ""
        if whole:
            values = {**values, "input": build.cast(tile, "float32"), "dtype": None}
            found = self.tile_of(self.reduced(name, values, node), node)
            return build.cast(build.cast(found, "int32"), whole)
        place = values.get("axis")
        if place is None:
            for _ in range(len(tile.shape)):
                tile = self.reduction(name, tile, len(tile.shape) - 1, node if len(tile.shape) == 1 else None)
            return tile
        number = self.size(place, node).constant
        if number is None or not tile.shape or not -len(tile.shape) <= number < len(tile.shape):
            raise self.state.refuse("TL543", f"the axis of `{ast.unparse(node)}` is not known")
        number %= len(tile.shape)
        found = self.reduction(name, tile, number, node)
        return build.expanded(found, number) if values.get("keep_dims") else found

    def reduction(self, name: str, tile: Tile, number: int, node: ast.Call | None) -> Tile:
        state = self.state
        if tile.dtype in ("bool", "int8", "int16", "uint8", "uint16"):
            tile = build.cast(tile, "int32")
        elif tile.dtype == "bfloat16" or (tile.dtype == "float16" and name != "sum"):
            tile = build.cast(tile, "float32")
        if name in ("max", "min"):
            self.skipping_nan(tile)
        source = state.stored(tile, f"{state.hint}_terms")
        assert isinstance(source.expr, Load)
        in_memory = state.order(source).index(number)
        rest = tuple(extent for place, extent in enumerate(tile.shape) if place != number)
        name_of = state.target(node, name, rest, tile.dtype)
        kinds: dict[str, ReduceKind] = {"sum": "sum", "max": "max", "min": "min"}
        state.emit(Reduce(kinds[name], source.expr.buffer, name_of, in_memory, state.origin))
        return Tile(rest, Load(name_of, tuple(axis(place) for place in range(len(rest))), tile.dtype))

    # methods ------------------------------------------------------------------------------------------------------

    def method(self, method: Method, node: ast.Call) -> Value:
        """A method of a tile, or a function given as one."""
        owner, name = method.owner, method.name
        if isinstance(owner, (Tile, int, float)):
            if name in _MEMBERS:
                return cast(Value, getattr(self, f"tl_{_MEMBERS[name]}")(node, owner))
            if name in REFUSED:
                raise self.state.refuse(REFUSED[name], f"`{ast.unparse(node)}` has no counterpart")
            if name in REDUCTIONS:
                return self.reduced(name, self.bound(node, _REDUCED, owner), node)
            if name in ELEMENTWISE:
                return self.elementwise(name, node, owner)
        if isinstance(owner, BlockPointer) and name == "advance":
            return self.advanced(owner, self.eval(node.args[0]), node)
        if isinstance(owner, BlockPointer) and owner.described:
            if name == "load":
                values = self.bound(node, "offsets cache_modifier eviction_policy")
                return self.loaded({"pointer": self.at(owner, values["offsets"], node)}, node)
            if name in ("store", "atomic_add"):
                values = self.bound(node, "offsets value cache_modifier eviction_policy")
                values["pointer"] = self.at(owner, values["offsets"], node)
                return self.put(values, node, name == "atomic_add")
            raise self.state.refuse("TL538", f"`{ast.unparse(node)}` has no counterpart")
        raise self.state.refuse("TL530", f"`{ast.unparse(node)}` has no counterpart")
