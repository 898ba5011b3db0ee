"""Expressions of a kernel as values."""

from __future__ import annotations

import ast
import math

from tl2npu.dialects.triton.operators import DTYPES
from tl2npu.kernel.symbolic import Sym, const
from tl2npu.source.signs import COMPUTED, sign_of
from tl2npu.source.triton_imports import triton_name
from tl2npu.tile.expr import COMPARISONS, OF_SIGN, Call, Index, Load, axis, axis_of, integers, loads
from tl2npu.triton.read import build
from tl2npu.triton.read.choices import scalar, truncated
from tl2npu.triton.read.gathers import place_of
from tl2npu.triton.read.masks import conjuncts, known
from tl2npu.triton.read.ranges import cdiv
from tl2npu.triton.read.spec import Again, Tensor
from tl2npu.triton.read.state import State
from tl2npu.triton.read.values import (
    BlockPointer,
    DType,
    Function,
    Method,
    Name,
    Pointer,
    Tile,
    Unusable,
    Value,
    integer,
)
from tl2npu.triton.read.views import names

_PLAIN = {name: COMPUTED[sign] for sign, name in OF_SIGN.items() if sign in COMPUTED}
_PYTHON = frozenset({"float", "int", "range", "min", "max", "abs", "bool", "isinstance", "len"})


class Expressions:
    """Evaluates expressions; calls of Triton and of device functions are left to subclasses."""

    def turned(self, tile: Tile, node: ast.AST) -> bool:
        """Whether an operand of a product lies transposed in memory."""
        assert isinstance(tile.expr, Load)
        index = tile.expr.index
        if index == (axis(0), axis(1)):
            return False
        if index == (axis(1), axis(0)):
            return True
        raise self.state.refuse("TL548", f"an operand of `{ast.unparse(node)}` has rows or columns of one element")

    def __init__(self, state: State) -> None:
        self.state = state

    def call(self, node: ast.Call) -> Value:
        """The value of a call."""
        raise NotImplementedError

    def eval(self, node: ast.expr) -> Value:
        """The value of an expression. Raises ``Refused`` for what has none."""
        method = getattr(self, f"on_{type(node).__name__}", None)
        if method is None:
            raise self.state.refuse("TL543", f"`{ast.unparse(node)}` is not supported in a kernel")
        value: Value = method(node)
        return value

    def on_Constant(self, node: ast.Constant) -> Value:
        value = node.value
        if isinstance(value, (bool, int, float, str)) or value is None:
            return value
        raise self.state.refuse("TL543", f"`{ast.unparse(node)}` is not supported in a kernel")

    def on_Name(self, node: ast.Name) -> Value:
        name = node.id
        if name in self.state.frame.env:
            value = self.state.frame.env[name]
            if isinstance(value, Unusable):
                self.state.split(value.place)
                raise self.state.refuse("TL545", f"`{name}` {value.why}")
            return value
        source = self.state.frame.source or self.state.spec.source
        if name in source.unset:
            self.state.spec.unset.add((name, source.unset[name]))
        if name in source.functions:
            return Function(source.functions[name], self.state.frame.source)
        if name in source.elsewhere:
            return Function(*source.elsewhere[name])
        if name in source.constants:
            return source.constants[name]
        if name in source.aliases:
            return self.named(source.aliases[name])
        if name in _PYTHON:
            return Name(f"builtins.{name}")
        way = "set it on every way to here, or define or import it at the top of the module"
        raise self.state.refuse("TL545", f"`{name}` has no value here", way)

    def named(self, path: str) -> Value:
        """What a dotted name of another module is."""
        path = triton_name(path)
        last = path.rpartition(".")[2]
        if path.startswith("triton.") and last in DTYPES:
            return DType(DTYPES[last])
        if path == "triton.language.constexpr":
            return Name(path)
        if path in ("math.pi", "math.e", "math.inf"):
            return float(getattr(math, last))
        return Name(path)

    def on_Attribute(self, node: ast.Attribute) -> Value:
        if node.attr == "element_ty" and isinstance(node.value, ast.Attribute):
            self.taken_for_a_tensor(self.eval(node.value.value))
        owner = self.eval(node.value)
        if isinstance(owner, Name):
            return self.named(f"{owner.path}.{node.attr}")
        name = node.attr
        if name == "dtype" and isinstance(owner, Tile):
            return DType(owner.dtype, owner.integer is None)
        if name in ("element_ty", "scalar") and isinstance(owner, Method) and isinstance(owner.owner, Tile):
            return DType(owner.owner.dtype, owner.owner.integer is None)
        if isinstance(owner, DType) and not name.startswith("is_") and (told := owner.asked(name)) is not None:
            return told
        if name == "dtype" and isinstance(owner, BlockPointer) and owner.described:
            return DType(self.state.spec.tensors[owner.base.param].dtype)
        if name == "dtype" and isinstance(owner, (Pointer, BlockPointer)):
            return Method(owner, "dtype")
        if name == "element_ty" and isinstance(owner, Method) and isinstance(owner.owner, (Pointer, BlockPointer)):
            param = owner.owner.param if isinstance(owner.owner, Pointer) else owner.owner.base.param
            return DType(self.state.spec.tensors[param].dtype)
        if name == "type" and isinstance(owner, (Pointer, BlockPointer)):
            return Method(owner, "type")
        if name == "shape" and isinstance(owner, Tile):
            return tuple(Tile((), Index(extent)) for extent in owner.shape)
        if isinstance(owner, BlockPointer) and owner.described and name in ("shape", "strides", "block_shape"):
            found = owner.block if name == "block_shape" else getattr(owner, name)
            return tuple(Tile((), Index(extent)) for extent in found)
        if name == "T" and isinstance(owner, Tile) and len(owner.shape) == 2:
            return build.transposed(owner)
        if name == "value":
            return owner
        return Method(owner, name)

    def taken_for_a_tensor(self, value: Value) -> None:
        """Read again with an argument as a tensor of which the host does not say what it is, if the value is one."""
        spec = self.state.spec
        parts = [value.expr] if isinstance(value, Tile) else []
        seen: set[str] = set()
        for part in parts:  # it grows
            found = {load.buffer for load in loads(part)} & self.state.made.keys() - seen
            parts += [self.state.made[buffer] for buffer in sorted(found)]
            seen |= found
        terms = [term for part in parts for whole in integers(part) for term in whole.terms]
        for name in sorted({str(mono[0]) for mono, coef in terms if coef == 1 and len(mono) == 1} & spec.doubtful):
            spec.doubtful.discard(name)
            spec.values[name] = Pointer(name, const(0), ())
            spec.tensors[name] = Tensor(None, "float32")
            spec.names -= {name}
            spec.assumed.append(name)
            raise Again

    def taken_for_integers(self, *values: Value) -> None:
        """Read again with tensors of which nothing shows the element type as integers, if the values come from some:
        for a place where Triton takes no floats."""
        spec = self.state.spec
        tiles = [tile for tile in map(build.tile, values) if tile is not None]
        names = {name for tile in tiles for name in self.state.tensors(tile.expr)}
        found = {name for name in names & set(spec.assumed) if spec.tensors[name].dtype == "float32"}
        spec.tensors.update({name: Tensor(spec.tensors[name].shape, "int32") for name in found})
        if found:
            raise Again

    def on_Tuple(self, node: ast.Tuple) -> Value:
        return tuple(self.eval(item) for item in node.elts)

    def on_List(self, node: ast.List) -> Value:
        return tuple(self.eval(item) for item in node.elts)

    def on_IfExp(self, node: ast.IfExp) -> Value:
        test = self.eval(node.test)
        if isinstance(test, Tile) and not test.shape and any(True for _ in loads(test.expr)):
            return self.selected(test, node)
        return self.eval(node.body if self.truth(test, node.test) else node.orelse)

    def selected(self, test: Tile, node: ast.IfExp) -> Value:
        """One of two numbers by loaded data. Both are computed, so neither may be loaded here."""
        with self.state.body() as emitted:
            one, other = self.eval(node.body), self.eval(node.orelse)
        numbers = [isinstance(value, (Tile, int, float)) and not getattr(value, "shape", ()) for value in (one, other)]
        if emitted or not all(numbers):
            raise self.state.refuse("TL542", f"`{ast.unparse(node)}` depends on loaded data")
        return build.operation("select", [test, one, other], self.state.line)

    def truth(self, value: Value, node: ast.expr) -> bool:
        """A condition that must be known when the kernel is compiled."""
        known = self.known_truth(value)
        if known is None:
            self.pin(node)
            refused = self.state.refuse("TL550", f"it is not known whether `{ast.unparse(node)}` holds")
            refused.asks = frozenset(self.names_in(node))
            raise refused
        return known

    def known_truth(self, value: Value) -> bool | None:
        """A condition, if it is known."""
        if isinstance(value, Tile):
            if value.shape:
                return None
            if hasattr(value.expr, "value") and isinstance(value.expr.value, bool):
                return value.expr.value
            if value.integer is not None and value.integer.constant is not None:
                return bool(value.integer.constant)
            test = value if value.dtype == "bool" else build.operation("ne", [value, 0], self.state.line)
            return known(test.expr, self.state.facts)
        if isinstance(value, (Pointer, BlockPointer, Function)):
            return True
        if isinstance(value, (DType, Name, Method, Unusable)):
            return None
        return bool(value)

    def names_in(self, *nodes: ast.AST) -> set[str]:
        """The names in ``nodes``, and the sizes in the integers that they are."""
        names = {item.id for node in nodes for item in ast.walk(node) if isinstance(item, ast.Name)}
        values = (self.state.frame.env.get(name) for name in names)
        integers = (value.integer for value in values if isinstance(value, Tile))
        return names.union(*(value.names for value in integers if value is not None))

    def pin(self, *nodes: ast.AST) -> None:
        """Read again with the parameters in ``nodes`` as the numbers that the launch passes, if that is new."""
        spec = self.state.spec
        names = self.names_in(*nodes)
        found = {name for name in names if name in spec.numbers and name not in spec.pinned}
        found |= spec.passed_alike(names - found)
        if found:
            spec.pinned |= found
            raise Again

    def on_BoolOp(self, node: ast.BoolOp) -> Value:
        op = "and" if isinstance(node.op, ast.And) else "or"
        value: Value = self.eval(node.values[0])
        for item in node.values[1:]:
            known = self.known_truth(value)
            if known is not None and not (isinstance(value, Tile) and value.shape):
                if known == (op == "or"):
                    return value
                value = self.eval(item)
                continue
            value = build.operation(op, [value, self.eval(item)], self.state.line)
        return value

    def on_UnaryOp(self, node: ast.UnaryOp) -> Value:
        value = self.eval(node.operand)
        if isinstance(node.op, ast.UAdd):
            return value
        if isinstance(node.op, ast.USub):
            return -value if isinstance(value, (int, float)) else build.operation("neg", [value], self.state.line)
        known = self.known_truth(value)
        if isinstance(node.op, ast.Not) and known is not None:
            return not known
        if isinstance(value, Tile) and value.dtype == "bool":
            return build.operation("not", [value], self.state.line)
        if isinstance(node.op, ast.Not) and isinstance(value, Tile) and not value.shape:
            return build.operation("eq", [value, 0], self.state.line)
        raise self.state.refuse("TL530", f"`{ast.unparse(node)}` of integers")

    def on_BinOp(self, node: ast.BinOp) -> Value:
        left, right = self.eval(node.left), self.eval(node.right)
        return self.binary(OF_SIGN.get(sign_of(node.op), ""), left, right, node)

    def binary(self, op: str, left: Value, right: Value, node: ast.AST) -> Value:
        """A binary operator, on pointers too."""
        if not op:
            raise self.state.refuse("TL530", f"the operator of `{ast.unparse(node)}`")
        if isinstance(right, Pointer) and op == "add":
            left, right = right, left
        if isinstance(left, Pointer):
            return self.moved(left, right, op, node)
        if isinstance(left, str) and isinstance(right, str) and op == "add":
            return left + right
        if isinstance(left, tuple) and isinstance(right, tuple) and op == "add":
            return left + right
        if isinstance(left, (int, float)) and isinstance(right, (int, float)):
            return self.numbers(op, left, right, node)
        if op in ("floordiv", "mod"):
            self.taken_for_integers(left, right)
            for side in (left, right):
                tile = build.tile(side)
                value = tile.integer if tile is not None else None
                loaded = value is None or self.state.ranges.of_data(value.names)
                if loaded and tile is not None and build.is_float(tile.dtype):
                    continue
                if loaded or value is None or not self.natural(value, tile):
                    if (found := truncated(op, left, right, self.state.ranges)) is not None:
                        return found
                    why = " truncates where an operand is negative" if loaded else ": an operand may be negative"
                    help = "divide on the host, and pass a tensor of the quotients" if loaded else ""
                    raise self.state.refuse("TL546", f"`{ast.unparse(node)}`{why}", help)
        return build.operation(op, [left, right], self.state.line)

    def natural(self, value: Sym, tile: Tile | None) -> bool:
        """True if the integer is never negative."""
        last = {f"@{number}": extent - 1 for number, extent in enumerate(tile.shape if tile is not None else ())}
        ranges = self.state.ranges
        kept = {name: ranges.last[name] for name in last if name in ranges.last}
        ranges.last.update(last)
        shown = ranges.at_least_zero(value)
        for name in last:
            del ranges.last[name]
        ranges.last.update(kept)
        return shown

    def numbers(self, op: str, left: float, right: float, node: ast.AST) -> Value:
        """An operator on Python numbers."""
        try:
            value: Value = _PLAIN[op](left, right)
        except (ArithmeticError, TypeError, ValueError) as error:
            raise self.state.refuse("TL543", f"`{ast.unparse(node)}`: {error}") from error
        return value

    def moved(self, pointer: Pointer, offset: Value, op: str, node: ast.AST) -> Value:
        """A pointer and an offset."""
        tile = build.tile(offset)
        if tile is None or op not in ("add", "sub"):
            raise self.state.refuse("TL520", f"`{ast.unparse(node)}` is not an address")
        value = tile.integer if tile.integer is not None else scalar(tile)
        if value is None:
            self.taken_for_integers(tile)
            value = place_of(self.state, tile)
        if value is None:
            raise self.state.refuse("TL523", f"`{ast.unparse(node)}` is an address that is computed from loaded data")
        shape = build.broadcast_shape([pointer.shape, tile.shape], self.state.line)
        base = build.broadcast(Tile(pointer.shape, Index(pointer.offset)), shape).integer
        more = build.broadcast(Tile(tile.shape, Index(value)), shape).integer
        assert base is not None
        assert more is not None
        return Pointer(pointer.param, base + more if op == "add" else base - more, shape)

    def on_Compare(self, node: ast.Compare) -> Value:
        found: Value = True
        left = self.eval(node.left)
        for op, item in zip(node.ops, node.comparators, strict=True):
            right = self.eval(item)
            value = self.compared(op, left, right, node)
            found = value if found is True else build.operation("and", [found, value], self.state.line)
            left = right
        return found

    def compared(self, op: ast.cmpop, left: Value, right: Value, node: ast.AST) -> Value:
        """One comparison."""
        if isinstance(op, (ast.Is, ast.IsNot)):
            same = left is right if right is None or left is None else left == right
            return same == isinstance(op, ast.Is)
        if isinstance(op, (ast.In, ast.NotIn)) and isinstance(right, tuple) and not isinstance(left, Tile):
            return (left in right) == isinstance(op, ast.In)
        if any(
            isinstance(one, str) and isinstance(other, (Tile, bool)) for one, other in ((left, right), (right, left))
        ):
            raise self.state.refuse("TL550", f"it is not known whether `{ast.unparse(node)}` holds")
        if not isinstance(left, Tile) and not isinstance(right, Tile):
            return self.plainly(op, left, right, node)
        name = OF_SIGN.get(sign_of(op))
        if name is None:
            raise self.state.refuse("TL530", f"the comparison `{ast.unparse(node)}`")
        if left is None or right is None:
            return isinstance(op, ast.NotEq)
        value = build.operation(name, [left, right], self.state.line)
        return value.expr.value if hasattr(value.expr, "value") and isinstance(value.expr.value, bool) else value

    def plainly(self, op: ast.cmpop, left: Value, right: Value, node: ast.AST) -> bool:
        """A comparison of Python values."""
        match op:
            case ast.Eq():
                return left == right
            case ast.NotEq():
                return left != right
        if isinstance(left, (int, float)) and isinstance(right, (int, float)):
            return bool(COMPUTED[sign_of(op)](left, right))
        raise self.state.refuse("TL530", f"the comparison `{ast.unparse(node)}`")

    def on_Subscript(self, node: ast.Subscript) -> Value:
        owner = self.eval(node.value)
        if isinstance(owner, tuple):
            place = self.eval(node.slice)
            index = number.constant if (number := integer(place)) is not None else None
            if index is None:
                raise self.state.refuse("TL543", f"`{ast.unparse(node)}`: the index is not known")
            if not -len(owner) <= index < len(owner):
                raise self.state.refuse("TL543", f"`{ast.unparse(node)}`: there are {len(owner)} elements")
            return owner[index]
        if not isinstance(owner, (Tile, Pointer)):
            raise self.state.refuse("TL543", f"`{ast.unparse(node)}` is not supported in a kernel")
        tile = owner if isinstance(owner, Tile) else Tile(owner.shape, Index(owner.offset))
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for place, part in enumerate(parts):
            if isinstance(part, ast.Constant) and part.value is None:
                tile = build.expanded(tile, place)
            elif not (isinstance(part, ast.Slice) and part.lower is part.upper is part.step is None):
                raise self.state.refuse("TL537", f"`{ast.unparse(node)}` takes a part of a tile")
        if isinstance(owner, Tile):
            return tile
        assert tile.integer is not None
        return Pointer(owner.param, tile.integer, tile.shape)

    def on_Call(self, node: ast.Call) -> Value:
        if isinstance(node.func, ast.Attribute) and node.func.attr.startswith("is_") and not node.args:
            owner = self.eval(node.func.value)
            told = owner.asked(node.func.attr) if isinstance(owner, DType) else None
            if told is not None:
                return told
        return self.call(node)

    def on_JoinedStr(self, node: ast.JoinedStr) -> Value:
        return ast.unparse(node)

    def mask(self, values: dict[str, Value]) -> Tile | None:
        """The mask of a load or store, if it has one."""
        mask = build.tile(values.get("mask")) if values.get("mask") is not None else None
        for part in conjuncts(mask.expr) if mask is not None else ():
            sides = part.args if isinstance(part, Call) and part.op in COMPARISONS else ()
            if any(axis_of(name) is not None for side in sides for name in names(side)):  # a length that is loaded
                self.taken_for_integers(*(Tile((), it) for side in sides for it in loads(side) if not it.index))
        return mask

    def size(self, value: Value, node: ast.AST) -> Sym:
        """A scalar integer."""
        found = scalar(value)
        if found is None:
            self.taken_for_integers(value)
            text = f"`{ast.unparse(node)}` must be an integer that the launch decides"
            raise self.state.refuse("TL543", text, "compute it on the host, and pass it as an argument of the kernel")
        return found

    def shape(self, value: Value, node: ast.AST) -> tuple[Sym, ...]:
        """A shape, given as a tuple or as one number."""
        parts = value if isinstance(value, tuple) else (value,)
        return tuple(self.size(part, node) for part in parts)


def ceil_divided(one: Sym, other: Sym) -> Tile:
    """``tl.cdiv``."""
    return Tile((), Index(cdiv(one, other if not other.is_zero else const(1))))
