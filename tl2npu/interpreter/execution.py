"""Runs a launch of a Triton kernel, block by block, and describes it.

This module is imported when Triton has been. It takes the place of ``InterpretedFunction.run`` and ``__call__`` of
Triton's interpreter (triton-lang/triton v3.8.0, ``triton/runtime/interpreter.py``): the language is patched once and
not in every call, errors of a kernel pass through as they are, a grid may be a list, floats are float32 scalars as in
compiled kernels, and addresses are checked.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from math import prod
from operator import index
from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton.runtime import interpreter
from triton.runtime.jit import _normalize_ty

from tl2npu.interpreter.launch import Arrays, Launch, TensorArgument
from tl2npu.interpreter.memory import Memory, bytes_at
from tl2npu.interpreter.session import KernelFault
from tl2npu.simulator.ir import dtypes

# Copies of the tensors of a launch that lie far apart.
#
# An allocator puts tensors side by side, so that a pointer that runs past the end of its tensor reaches another one,
# and
# nothing shows it. Between copies with wide gaps it reaches memory that no tensor has.

GAP = 1 << 26
_ALIGNMENT = 4096


class Apart:
    """Copies of ``storages`` (address and bytes of each) with ``GAP`` bytes between them.

    The memory between them is reserved and never touched. Raises ValueError where two storages overlap.
    """

    def __init__(self, storages: list[tuple[int, int]]) -> None:
        order = sorted(storages)
        if any(address + size > after for (address, size), (after, _) in pairwise(order)):
            raise ValueError("storages overlap: copies of them would not share memory")
        steps = [-(-size // _ALIGNMENT) * _ALIGNMENT + GAP for _, size in order]
        arena = np.empty(GAP + _ALIGNMENT + sum(steps), np.uint8)
        at = GAP - arena.ctypes.data % _ALIGNMENT
        self._copies: dict[int, np.ndarray] = {}
        for (address, size), step in zip(order, steps, strict=True):
            self._copies[address] = arena[at : at + size]
            self._copies[address][...] = bytes_at(address, size)
            at += step

    def of(self, value: Any) -> Any:
        """The same argument of a launch with its tensors in the copies; other values are returned as they are."""
        if type(value) in (tuple, list):
            return type(value)(self.of(item) for item in value)
        if hasattr(value, "block_shape") and hasattr(value, "base"):
            return replace(value, base=self.of(value.base))
        if hasattr(value, "untyped_storage"):
            copy = self._copies.get(value.untyped_storage().data_ptr())
            if copy is None:  # it has no elements
                return value
            storage = torch.from_numpy(copy).untyped_storage()
            return torch.empty(0, dtype=value.dtype).set_(storage, value.storage_offset(), value.shape, value.stride())
        if hasattr(value, "data_ptr") and hasattr(value, "base"):  # reinterpreted: TensorWrapper
            return type(value)(self.of(value.base), value.dtype)
        return value

    def put_back(self) -> None:
        """Write the copies to where they were taken from."""
        for address, copy in self._copies.items():
            bytes_at(address, copy.size)[...] = copy


class Turn(int):
    """The counter of a loop: an integer, with the methods of a scalar of Triton that kernels call on it."""

    dtype = tl.int32

    def to(self, dtype: Any, **_: Any) -> Any:
        """The counter as a scalar tensor of another type."""
        return interpreter.interpreter_semantic.to_tensor(int(self)).to(dtype)


@dataclass
class Launching:
    """A launch that is about to run: ``run`` runs it, ``recorded`` runs it and keeps its memory."""

    function: Any
    kernel: str
    grid: tuple[int, int, int]
    values: dict[str, Any]
    constexprs: frozenset[str]
    options: dict[str, Any]
    config: dict[str, Any]
    site: int
    runs: Callable[[Launching], None]
    memory: Memory = field(default_factory=Memory)

    def run(self) -> None:
        """Run it."""
        for address, size in self.storages:
            self.memory.add(address, size)
        pointers = [value for value in self.values.values() if hasattr(value, "data_ptr")]
        self.memory.open = len(_tensors(pointers)) < len(pointers)  # others have memory of their own
        self.runs(self)

    @contextmanager
    def given(self, inputs: Arrays) -> Iterator[None]:
        """Inside of the context the tensors hold other values: those of ``inputs`` that have their shape and type."""
        memory = [bytes_at(address, size) for address, size in self.storages]
        before = [array.copy() for array in memory]
        for name, tensor in self.tensors.items():
            view = tensor.of(memory[tensor.storage])
            value = inputs.get(name)
            if value is not None and (value.shape, value.dtype) == (view.shape, view.dtype):
                view[...] = value
        try:
            yield
        finally:
            for array, old in zip(memory, before, strict=True):
                array[...] = old

    def recorded(self, number: int, turn: int) -> Launch:
        """Run it, and give what it was given and what became of it. Tensors lie far apart meanwhile, so that accesses
        past the end of one do not reach another."""
        try:
            apart = Apart(self.storages)
        except ValueError:
            return self._recorded(number, turn)
        try:
            return replace(self, values={n: apart.of(v) for n, v in self.values.items()})._recorded(number, turn)
        finally:
            apart.put_back()

    def _recorded(self, number: int, turn: int) -> Launch:
        memory = [bytes_at(address, size) for address, size in self.storages]
        before = tuple(array.copy() for array in memory)
        self.run()
        after = tuple(old if np.array_equal(old, now) else now.copy() for old, now in zip(before, memory, strict=True))
        dense = self._dense(memory, before, after) if self.memory.strayed else None
        if dense is not None:
            return replace(dense.recorded(number, turn), dense=tuple(n for n in self.tensors if not self._is_dense(n)))
        again = self._again(memory, before, after) if self.memory.strayed else ()
        given = {name: value for name, value in self.values.items() if name not in self.constexprs}
        numbers = self._numbers
        descriptors = {
            n: (_argument(v.base, numbers), tuple(v.block_shape)) for n, v in given.items() if hasattr(v, "block_shape")
        }
        code = self.function.__code__
        return Launch(
            number,
            self.kernel,
            turn,
            code.co_filename,
            line_of(self.function),
            self.site,
            self.grid,
            tuple(self.values),
            {name: _plain(value) for name, value in self.values.items() if name in self.constexprs},
            {n: v for n, v in given.items() if isinstance(v, (bool, int, float))},
            self.tensors,
            before,
            after,
            {name: _plain(value) for name, value in self.options.items()},
            {name: _plain(value) for name, value in self.config.items()},
            descriptors,
            tuple(name for name, value in given.items() if value is None),
            tuple(sorted(self.memory.rounded)),
            again,
        )

    def _is_dense(self, name: str) -> bool:
        return self.tensors[name].contiguous

    def _dense(
        self, memory: list[np.ndarray], before: tuple[np.ndarray, ...], after: tuple[np.ndarray, ...]
    ) -> Launching | None:
        """The same launch on contiguous copies of tensors that it only reads, with the memory as it was; None where
        every tensor is contiguous, or one that is not is written."""
        loose = [name for name in self.tensors if not self._is_dense(name)]
        numbers = {self.tensors[name].storage for name in loose}
        if not loose or any(before[number] is not after[number] for number in numbers):
            return None
        for array, old in zip(memory, before, strict=True):
            array[...] = old
        self.memory.strayed = False
        return replace(self, values={n: v.contiguous() if n in loose else v for n, v in self.values.items()})

    def _again(
        self, memory: list[np.ndarray], before: tuple[np.ndarray, ...], after: tuple[np.ndarray, ...]
    ) -> tuple[np.ndarray, ...]:
        """The memory after a second run on the same inputs, with other numbers outside of every tensor."""
        usual, self.memory.beyond = self.memory.beyond, (0.0, 1)
        for array, old in zip(memory, before, strict=True):
            array[...] = old
        try:
            self.run()
            return tuple(array.copy() for array in memory)
        finally:
            self.memory.beyond = usual
            for array, old in zip(memory, after, strict=True):
                array[...] = old

    @property
    def shapes(self) -> dict[str, str]:
        """The tensors, as ``float32[4, 4]``."""
        found = {name: value for name, value in self.values.items() if hasattr(value, "data_ptr")}
        return {name: f"{_element_type(value)}{list(value.shape)}" for name, value in found.items()}

    @property
    def arguments(self) -> dict[str, Any]:
        """What is not a tensor."""
        return {name: _plain(v) for name, v in self.values.items() if not hasattr(v, "data_ptr")}

    @property
    def tensors(self) -> dict[str, TensorArgument]:
        """The tensors that were passed for pointers, by parameter."""
        numbers = self._numbers
        return {n: _argument(v, numbers) for n, v in self.values.items() if hasattr(v, "data_ptr")}

    @property
    def _numbers(self) -> dict[int, int]:
        return {address: number for number, (address, _) in enumerate(self.storages)}

    @cached_property
    def storages(self) -> list[tuple[int, int]]:
        """Address and bytes of each storage that was passed, once."""
        found: dict[int, int] = {}
        for value in _tensors(self.values.values()):
            storage = value.untyped_storage()
            if storage.nbytes():
                found[storage.data_ptr()] = storage.nbytes()
        return list(found.items())


def _tensors(values: Any) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if isinstance(value, (tuple, list)):
            found += _tensors(value)
        elif hasattr(value, "block_shape") and hasattr(value, "base"):
            found.append(value.base)
        elif hasattr(value, "untyped_storage"):
            found.append(value)
        elif hasattr(value, "data_ptr") and hasattr(value, "base"):  # reinterpreted: TensorWrapper
            found.append(value.base)
    return found


def _argument(tensor: Any, numbers: dict[int, int]) -> TensorArgument:
    base = getattr(tensor, "base", tensor)
    if not hasattr(base, "untyped_storage"):
        raise KernelFault(f"an argument of type {type(tensor).__name__} cannot be recorded: it is not a torch tensor")
    number = numbers.get(base.untyped_storage().data_ptr(), 0)
    return TensorArgument(number, base.storage_offset(), tuple(base.shape), tuple(base.stride()), _element_type(tensor))


def _element_type(tensor: Any) -> str:
    """The canonical name of an element type. A reinterpreted tensor has a type of Triton, others have one of torch."""
    if isinstance(tensor.dtype, tl.dtype):
        return _OF_TRITON.get(tensor.dtype.name) or dtypes.canonical(interpreter._get_np_dtype(tensor.dtype).name)
    return dtypes.canonical(str(tensor.dtype).removeprefix("torch."))


_OF_TRITON = {
    "fp8e5": "float8_e5m2",
    "fp8e5b16": "float8_e5m2fnuz",
    "fp8e4nv": "float8_e4m3fn",
    "fp8e4b8": "float8_e4m3fnuz",
}


def _plain(value: Any) -> Any:
    """A value that can be kept for another process: types of Triton and torch, and functions, by their names."""
    if isinstance(value, tl.constexpr):
        value = value.value
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, tl.dtype):
        return value.name
    if isinstance(value, (tuple, list)):
        return type(value)(_plain(item) for item in value) if type(value) in (tuple, list) else [*map(_plain, value)]
    return getattr(value, "__name__", None) or str(value)


def line_of(function: Any) -> int:
    """The line of the ``def`` of a function, decorators not counted."""
    lines, first = inspect.getsourcelines(function)
    return first + next((n for n, line in enumerate(lines) if line.lstrip().startswith("def ")), 0)


def bound(function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arguments of a launch by parameter, in their order, and the keywords that are not parameters."""
    names = list(inspect.signature(function).parameters)
    options = {name: value for name, value in named.items() if name not in names}
    values = inspect.getcallargs(function, *args, **{name: v for name, v in named.items() if name in names})
    return {name: values[name] for name in names}, options


def constexprs_of(function: Any) -> frozenset[str]:
    """The parameters that are ``tl.constexpr``."""
    annotations = inspect.get_annotations(function)
    return frozenset(name for name, kind in annotations.items() if _normalize_ty(kind) == "constexpr")


def grid_of(grid: Any, values: dict[str, Any]) -> tuple[int, int, int]:
    """The grid of a launch as three numbers. Raises ValueError for more."""
    found = grid(values) if callable(grid) else grid
    extents = [index(extent) for extent in (found if isinstance(found, (tuple, list)) else (found,))]
    if len(extents) > 3:
        raise ValueError(f"a grid has at most three axes, not {len(extents)}")
    x, y, z = extents + [1] * (3 - len(extents))
    return x, y, z


def in_blocks(launching: Launching) -> None:
    """Run the blocks one after the other, x fastest."""
    function, arguments = prepared(launching)
    nx, ny, nz = launching.grid
    interpreter.interpreter_builder.set_grid_dim(nx, ny, nz)
    for number in range(prod(launching.grid)):
        interpreter.interpreter_builder.set_grid_idx(number % nx, number // nx % ny, number // (nx * ny))
        function(**arguments)


def prepared(launching: Launching) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The function to call for each block, and its arguments: pointers for tensors, scalars for numbers."""
    values = launching.values
    constexprs = launching.constexprs
    function = source(launching.function)

    def quietly(**arguments: Any) -> None:
        with np.errstate(all="ignore"):  # infinities and NaN are results like others
            function(**arguments)

    return quietly, {n: v if n in constexprs else _scalar(v) for n, v in values.items()}


def _scalar(value: Any) -> Any:
    if isinstance(value, float):
        return interpreter.interpreter_semantic.to_tensor(value)
    return interpreter._implicit_cvt(value)


_SOURCES: dict[Any, Any] = {}


def source(function: Any) -> Any:
    """The function that runs in place of a jit function."""
    if function not in _SOURCES:
        semantic = interpreter.interpreter_semantic
        _SOURCES[function] = _rewritten(function, lambda value: semantic.to_tensor(value, False), Turn)
    return _SOURCES[function]


# Makes a plain Python function of the source of a jit function, as Triton's interpreter would run it.
#
# Three things mean something else in a kernel than in Python: what is assigned to a name becomes a tensor, a loop
# counter has an element type, and the body of ``with al.scope(...)`` runs on the cores of that scope only. Everything
# else is left to the objects. Names that a kernel takes from the functions around it are bound to their values, which
# Python's ``exec`` would lose.

_TO_TENSOR, _TURNS, _ENTERED = "_tl2npu_to_tensor", "_tl2npu_turns", "_tl2npu_entered"


def _rewritten(function: Callable[..., Any], to_tensor: Callable[[Any], Any], turn: Callable[[int], Any]) -> Any:
    """The function to run for a jit function; the same one where there is no source, as of functions made by ``exec``.

    ``to_tensor`` converts what is assigned, ``turn`` a counter of ``range`` and ``tl.range``.
    """
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError):
        return function
    tree = ast.parse(textwrap.dedent("".join(lines)))
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef):
        return function  # a lambda
    definition.decorator_list = []
    definition.returns = None
    tree.body = [_Kernel().visit(definition)]
    ast.increment_lineno(ast.fix_missing_locations(tree), first - 1)

    def turns(values: Any) -> Any:
        return map(turn, values) if type(values) is range else values

    names = {_TO_TENSOR: to_tensor, _TURNS: turns, _ENTERED: lambda scope: getattr(scope, "entered", True)}
    around = function.__globals__
    if function.__closure__:
        around = {**around, **inspect.getclosurevars(function).nonlocals}
    around.update(names)
    found: dict[str, Any] = {}
    exec(compile(tree, function.__code__.co_filename, "exec", dont_inherit=True), around, found)
    result = found[definition.name]
    result.__qualname__ = function.__qualname__
    result.__defaults__, result.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    result.__annotations__ = function.__annotations__
    return result


class _Kernel(ast.NodeTransformer):
    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        node.value = _call(_TO_TENSOR, node.value)
        return node

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        node.iter = _call(_TURNS, node.iter)
        return node

    def visit_With(self, node: ast.With) -> ast.AST:
        """``with CONTEXT: BODY`` -> ``if entered(context := CONTEXT):`` and the same inside of it."""
        self.generic_visit(node)
        tests: list[ast.expr] = []
        for number, item in enumerate(node.items):
            name = f"_tl2npu_with_{node.lineno}_{number}"
            bound = ast.NamedExpr(ast.Name(name, ast.Store()), item.context_expr)
            tests.append(_call(_ENTERED, bound))
            item.context_expr = ast.Name(name, ast.Load())
        test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
        return ast.copy_location(ast.If(test, [node], []), node)


def _call(name: str, argument: ast.expr) -> ast.expr:
    return ast.copy_location(ast.Call(ast.Name(name, ast.Load()), [argument], []), argument)
