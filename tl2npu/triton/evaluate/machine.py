"""Runs the programs of a Triton kernel one after the other, on tensors as NumPy arrays."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tl2npu.dialects.triton.operators import DTYPES, HINTS, HINTS_WITHOUT_VALUE
from tl2npu.evaluate.expressions import TOO_MANY
from tl2npu.evaluate.machine import place_in
from tl2npu.evaluate.values import NotChecked
from tl2npu.source.triton_imports import triton_name
from tl2npu.tile.expr import Const
from tl2npu.triton.evaluate.functions import FUNCTIONS, converted, remainder, truncated
from tl2npu.triton.evaluate.memory import Block, Pointers
from tl2npu.triton.read.spec import Source
from tl2npu.triton.read.values import DType, Function, Name, Tile, Unusable, Value

_A_STATEMENT = 200
_DEPTH = 24
NOISE = 1e-12
"""Of each number, where noise is asked for."""
_CONSTANTS = {"math.pi": np.pi, "math.e": np.e, "math.inf": np.inf}
_BUILTINS: Mapping[str, Callable[..., Any]] = {
    "float": float, "int": lambda x: x if isinstance(x, np.generic) else int(x), "bool": bool, "len": len,
    "abs": np.abs, "tuple": tuple,
    "min": lambda a, b: min(a, b) if not np.ndim(a) and not np.ndim(b) else np.minimum(a, b),
    "max": lambda a, b: max(a, b) if not np.ndim(a) and not np.ndim(b) else np.maximum(a, b),
}  # fmt: skip
_SIGNS: Mapping[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: truncated, ast.Mod: remainder, ast.Pow: operator.pow, ast.MatMult: operator.matmul,
    ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
    ast.LShift: operator.lshift, ast.RShift: operator.rshift,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: lambda one, of: one in of, ast.NotIn: lambda one, of: one not in of,
}  # fmt: skip
_RANGES = frozenset({"range", "static_range"})


class _Returned(Exception):
    """A ``return`` was reached."""

    def __init__(self, value: object) -> None:
        self.value = value


class Machine:
    """One kernel: :meth:`run` runs it once for each program. ``left``: how much work it may still take; ``noise``: each
    result is off by a little, which shows where digits cancel."""

    def __init__(self, source: Source, grid: tuple[int, ...], work: int, noise: bool = False) -> None:
        self.grid, self.left = grid, work
        self.noise = np.random.default_rng(2) if noise else None
        self.program: tuple[int, ...] = ()
        self.source, self.names = source, dict[str, Any]()
        self.depth = 0

    def run(self, function: ast.FunctionDef, values: Mapping[str, Any], programs: Sequence[int]) -> None:
        """Run programs by their numbers, the first axis fastest. Raises :class:`NotChecked`."""
        for number in programs:
            self.program = place_in(self.grid, number)
            self._enter(function, dict(values), self.source)

    def _enter(self, function: ast.FunctionDef, names: dict[str, Any], source: Source) -> Any:
        """Run a function; what it returns."""
        outer = self.names, self.source
        self.names, self.source, self.depth = names, source, self.depth + 1
        if self.depth > _DEPTH:
            raise NotChecked("a function calls itself")
        try:
            self._statements(function.body)
        except _Returned as returned:
            return returned.value
        finally:
            (self.names, self.source), self.depth = outer, self.depth - 1
        return None

    # statements -----------------------------------------------------------------------------------------------------

    def _statements(self, body: Sequence[ast.stmt]) -> None:
        for stmt in body:
            self._spend(_A_STATEMENT)
            self._statement(stmt)

    def _spend(self, work: int) -> None:
        self.left -= work
        if self.left < 0:
            raise NotChecked(TOO_MANY)

    def _statement(self, stmt: ast.stmt) -> None:
        match stmt:
            case ast.Expr():
                self.value(stmt.value)
            case ast.Assign():
                value = self.value(stmt.value)
                for target in stmt.targets:
                    self._bind(target, value)
            case ast.AnnAssign() if stmt.value is not None:
                self._bind(stmt.target, self.value(stmt.value))
            case ast.AugAssign(target=ast.Name(id=name)):
                self.names[name] = self._computed(stmt.op, self.names[name], self.value(stmt.value))
            case ast.If():
                self._statements(stmt.body if self._holds(stmt.test) else stmt.orelse)
            case ast.For() if not stmt.orelse:
                for item in self._turns(stmt.iter):
                    self._bind(stmt.target, item)
                    self._statements(stmt.body)
            case ast.While() if not stmt.orelse:
                while self._holds(stmt.test):
                    self._statements(stmt.body)
            case ast.Return():
                raise _Returned(None if stmt.value is None else self.value(stmt.value))
            case ast.Assert() | ast.Pass():
                pass
            case _:
                raise NotChecked(f"`{ast.unparse(stmt).splitlines()[0]}` has no meaning here")

    def _bind(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self.names[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            for one, item in zip(target.elts, value, strict=True):
                self._bind(one, item)
        else:
            raise NotChecked(f"an assignment to `{ast.unparse(target)}`")

    def _holds(self, test: ast.expr) -> bool:
        value = self.value(test)
        if np.size(value) != 1 and isinstance(value, np.ndarray):
            raise NotChecked(f"`{ast.unparse(test)}` is asked of a tile")
        return bool(value)

    def _turns(self, node: ast.expr) -> Iterator[Any]:
        """What a loop goes over; numbers that only a launch knows, but for ``static_range``."""
        function = self.value(node.func) if isinstance(node, ast.Call) else None
        last = function.path.rpartition(".")[2] if isinstance(function, Name) else ""
        if last not in _RANGES:
            found = self.value(node)
            if not isinstance(found, tuple):
                raise NotChecked(f"a loop over `{ast.unparse(node)}`")
            yield from found
            return
        assert isinstance(node, ast.Call)
        words = [word.value for word in node.keywords if word.arg in ("arg1", "arg2", "step")]
        turns = range(*(int(self.value(arg)) for arg in (*node.args, *words)))
        yield from turns if last == "static_range" else map(np.int64, turns)

    # expressions ----------------------------------------------------------------------------------------------------

    def value(self, node: ast.expr) -> Any:
        """The value of an expression."""
        match node:
            case ast.Constant():
                return node.value
            case ast.Name():
                return self._named(node.id)
            case ast.BinOp():
                return self._computed(node.op, self.value(node.left), self.value(node.right))
            case ast.UnaryOp():
                return self._of_one(node)
            case ast.Compare():
                return self._compared(node)
            case ast.BoolOp():
                return self._joined(node)
            case ast.IfExp():
                return self.value(node.body if self._holds(node.test) else node.orelse)
            case ast.Tuple() | ast.List():
                return tuple(self.value(item) for item in node.elts)
            case ast.Subscript():
                return self._part(node)
            case ast.Attribute():
                return self._member(node)
            case ast.Call():
                return self._called(node)
        raise NotChecked(f"`{ast.unparse(node)}` has no meaning here")

    def _named(self, name: str) -> Any:
        if name in self.names:
            found = self.names[name]
            if isinstance(found, Unusable):
                raise NotChecked(found.why)
            return found
        source = self.source
        if name in source.functions:
            return Function(source.functions[name], source)
        if name in source.elsewhere:
            return Function(*source.elsewhere[name])
        if name in source.constants:
            return plain(source.constants[name])
        return _path(source.aliases.get(name, f"builtins.{name}"))

    def _computed(self, sign: ast.AST, left: Any, right: Any) -> Any:
        if isinstance(sign, (ast.Is, ast.IsNot)):
            return _SIGNS[type(sign)](left, right)
        if isinstance(left, Pointers) or isinstance(right, Pointers):
            pointers, by = (left, right) if isinstance(left, Pointers) else (right, left)
            if isinstance(by, Pointers) or not isinstance(sign, (ast.Add, ast.Sub)):
                raise NotChecked("pointers are compared, or subtracted from each other")
            return pointers.moved(-by if isinstance(sign, ast.Sub) else by)
        return self._spent(_SIGNS[type(sign)](left, right))

    def _spent(self, found: Any) -> Any:
        """A result, which has cost its elements."""
        if not isinstance(found, np.ndarray):
            return found
        self._spend(found.size)
        if self.noise is None or found.dtype.kind != "f":
            return found
        return found * (1 + NOISE * self.noise.uniform(-1, 1, found.shape))

    def _of_one(self, node: ast.UnaryOp) -> Any:
        value = self.value(node.operand)
        match node.op:
            case ast.USub():
                return -value
            case ast.Not():
                return np.logical_not(value) if isinstance(value, np.ndarray) else not value
            case ast.Invert():
                return ~value
        return value

    def _compared(self, node: ast.Compare) -> Any:
        found, left = True, self.value(node.left)
        for sign, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.value(comparator)
            if isinstance(left, DType) and isinstance(right, DType) and not (left.exact and right.exact):
                raise NotChecked("the element type of a value is asked for")
            found = found & self._computed(sign, left, right)
            left = right
        return found

    def _joined(self, node: ast.BoolOp) -> Any:
        found = self.value(node.values[0])
        for part in node.values[1:]:
            if isinstance(found, np.ndarray) and found.size != 1:
                combine = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
                found = combine(found, self.value(part))
            elif bool(found) == isinstance(node.op, ast.And):
                found = self.value(part)
        return found

    def _part(self, node: ast.Subscript) -> Any:
        owner = self.value(node.value)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        index: tuple[Any, ...] = tuple(slice(None) if ast.unparse(part) == ":" else self.value(part) for part in parts)
        if isinstance(owner, tuple) and index[0] != slice(None):
            return owner[int(index[0])]
        if any(item is not None and item != slice(None) for item in index):
            raise NotChecked(f"`{ast.unparse(node)}` has no meaning here")
        if isinstance(owner, Pointers):
            return replace(owner, offset=np.asarray(owner.offset)[index])
        return np.asarray(owner)[index]

    def _member(self, node: ast.Attribute) -> Any:
        owner, name = self.value(node.value), node.attr
        if isinstance(owner, Name):
            return _path(f"{owner.path}.{name}")
        if isinstance(owner, Block) and owner.described and name in ("shape", "strides", "block_shape"):
            return owner.block if name == "block_shape" else getattr(owner, name)
        of = owner.base if isinstance(owner, Block) else owner
        if name in ("dtype", "type") and isinstance(of, Pointers):
            return DType("bool" if of.is_bool else of.tensor.dtype)
        if name in ("element_ty", "scalar") and isinstance(owner, DType):
            return owner
        if isinstance(owner, DType) and owner.exact and (told := owner.asked(name)) is not None:
            return told
        if isinstance(owner, (np.ndarray, np.generic)) and name in ("dtype", "type"):
            kinds = {"f": "float32", "b": "bool"}
            return DType(kinds.get(owner.dtype.kind, str(owner.dtype)), exact=False)
        if name == "shape":
            return np.shape(owner)
        if name == "T":
            return np.transpose(owner)
        return owner if name == "value" else _Method(owner, name)

    def _called(self, node: ast.Call) -> Any:
        function = self.value(node.func)
        last = function.path.rpartition(".")[2] if isinstance(function, Name) else ""
        if last in HINTS_WITHOUT_VALUE and isinstance(function, Name):
            return None
        args = [self.value(arg) for arg in node.args]
        words = {word.arg: self.value(word.value) for word in node.keywords if word.arg is not None}
        if len(words) < len(node.keywords) or any(isinstance(arg, ast.Starred) for arg in node.args):
            raise NotChecked(f"`{ast.unparse(node)}`: unpacked arguments")
        if isinstance(function, Function):
            return self._inlined(function, args, words)
        if isinstance(function, _Method):
            return self._method(function, args, words)
        if not isinstance(function, Name):
            raise NotChecked(f"`{ast.unparse(node.func)}` is called")
        if function.path.startswith("builtins."):
            found = _BUILTINS.get(last)
        elif last in ("program_id", "num_programs"):
            axis = int(words.get("axis", args[0] if args else 0))
            of = self.program if last == "program_id" else self.grid
            return np.int64(of[axis] if axis < len(of) else last == "num_programs")
        elif last in HINTS or last == "constexpr":
            return args[0]
        elif last == "reduce":
            return self._folded(*args, **words)
        else:
            found = FUNCTIONS.get(last) if function.path.startswith("triton.") else None
        if found is None or any(isinstance(arg, np.ndarray) and arg.dtype == object for arg in args):
            raise NotChecked(f"`{ast.unparse(node.func)}` has no meaning here")
        return self._spent(found(*args, **words))

    def _method(self, function: _Method, args: list[Any], words: dict[str, Any]) -> Any:
        owner, name = function.owner, function.name
        if isinstance(owner, DType) and owner.exact and (told := owner.asked(name)) is not None:
            return told
        if name == "to":
            return owner if isinstance(owner, Pointers) else converted(owner, *args, **words)
        if isinstance(owner, Block) and owner.described and name in ("load", "store"):
            return FUNCTIONS[f"{name}_tensor_descriptor"](owner, *args, **words)
        if name not in FUNCTIONS:
            raise NotChecked(f"`.{name}` has no meaning here")
        return FUNCTIONS[name](owner, *args, **words)

    def _inlined(self, called: Function, args: list[Any], words: dict[str, Any]) -> Any:
        params, function = called.node.args, called.node
        if params.vararg or params.kwarg:
            raise NotChecked(f"`{function.name}` takes any number of arguments")
        assert isinstance(called.source, Source)
        order = [arg.arg for arg in (*params.posonlyargs, *params.args, *params.kwonlyargs)]
        values = dict(zip(order, args, strict=False)) | words
        outer = self.names, self.source
        self.names, self.source = {}, called.source
        for name, node in zip(reversed([arg.arg for arg in params.args]), reversed(params.defaults), strict=False):
            if name not in values:
                values[name] = self.value(node)
        for arg, default in zip(params.kwonlyargs, params.kw_defaults, strict=True):
            if arg.arg not in values and default is not None:
                values[arg.arg] = self.value(default)
        self.names, self.source = outer
        return self._enter(function, values, called.source)

    def _folded(self, input: Any, axis: Any, combine_fn: Any, keep_dims: bool = False) -> Any:
        """``tl.reduce``: elements along an axis, combined one after the other."""
        if not isinstance(combine_fn, Function) or axis is None:
            raise NotChecked("a reduction of all axes by a function")
        tiles = input if isinstance(input, tuple) else (input,)
        parts = [np.moveaxis(tile, axis, 0) for tile in tiles]
        found = tuple(part[0] for part in parts)
        for number in range(1, len(parts[0])):
            combined = self._inlined(combine_fn, [*found, *(part[number] for part in parts)], {})
            found = combined if isinstance(combined, tuple) else (combined,)
        found = tuple(np.expand_dims(part, axis) for part in found) if keep_dims else found
        return found if isinstance(input, tuple) else found[0]


class _Method:
    """A method of a value that was not called yet."""

    def __init__(self, owner: Any, name: str) -> None:
        self.owner, self.name = owner, name


def plain(value: Value) -> Any:
    """A value of the reader that no launch decides, as one to compute with."""
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if isinstance(value, Tile) and isinstance(value.expr, Const):
        return value.expr.value
    return value.integer.constant if isinstance(value, Tile) and value.integer is not None else value


def _path(path: str) -> Any:
    """What a dotted name of another module is."""
    path = triton_name(path)
    last = path.rpartition(".")[2]
    if path.startswith("triton.") and last in DTYPES:
        return DType(DTYPES[last])
    return _CONSTANTS.get(path, Name(path))
