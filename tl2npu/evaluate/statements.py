"""Simple statements: assignments, allocations, operators, and calls of macros and functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import libcst as cst
import numpy as np

from tl2npu.dialects.catalogue import Core, Kind, Operator
from tl2npu.dialects.gpu.barriers import ARRIVALS, WAITS
from tl2npu.evaluate import arithmetic, elements, npuir, operators
from tl2npu.evaluate.cores import Cores, Layout
from tl2npu.evaluate.expressions import Expressions, Run, raw
from tl2npu.evaluate.values import Array, Cell, Frame, Function, NotChecked, Region, Tile, whole_number
from tl2npu.kernel import languages
from tl2npu.kernel.bindings import body_of, single_assignments
from tl2npu.kernel.element_types import plain
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import CUBE_MEMORY, Memory
from tl2npu.kernel.style import NPUIR, Dialect
from tl2npu.source.names import Names
from tl2npu.source.tree import remembered

_AUGMENTED: Mapping[str, Callable[[Any, Any], Any]] = {
    "AddAssign": np.add,
    "SubtractAssign": np.subtract,
    "MultiplyAssign": np.multiply,
    "DivideAssign": np.true_divide,
    "FloorDivideAssign": np.floor_divide,
    "ModuloAssign": np.mod,
    "BitOrAssign": np.bitwise_or,
    "BitAndAssign": np.bitwise_and,
    "BitXorAssign": np.bitwise_xor,
    "LeftShiftAssign": np.left_shift,
    "RightShiftAssign": np.right_shift,
}
_CROSS_FLAGS = frozenset({"set_cross_flag", "wait_cross_flag"})
_HINTS = frozenset({"policy", "annotations", "mbar", "barrier", "loop_layout"})


class _Return(Exception):
    def __init__(self, value: object) -> None:
        super().__init__()
        self.value = value


def _node(value: object) -> cst.BaseExpression:
    assert isinstance(value, cst.BaseExpression)
    return value


@dataclass(frozen=True)
class _Operation:
    """A call of an operator: for each parameter what gives its argument, whether a variable stands for its value, and
    whether an element does: always, or only in loops over lanes (None)."""

    op: Operator
    arguments: Sequence[tuple[str, Run, bool, bool | None]]


class Statements(Cores):
    """Runs simple statements."""

    def __init__(self, names: Names, dialect: Dialect, layout: Layout) -> None:
        super().__init__(names, dialect, layout)
        self._runs: dict[int, Callable[[], None]] = {}
        self.threads_of_group = 0
        self._operations: dict[int, _Operation | None] = {}

    def small(self, node: cst.BaseSmallStatement) -> None:
        """Run a simple statement as all active cores."""
        self.spend(0)
        run = self._runs.get(id(node))
        if run is None:
            run = self._runs[id(node)] = self._run_of(node)
        run()
        if self.member is not None:
            self.member.pause()

    def _run_of(self, node: cst.BaseSmallStatement) -> Callable[[], None]:
        """A simple statement as a function, by its kind."""
        kind = type(node)
        call = node.value if isinstance(node, cst.Expr) and isinstance(node.value, cst.Call) else None
        if call is not None and type(call.func) is cst.Name:
            return lambda: self._called(call)
        op = self.operator(call.func) if call is not None else None
        if call is not None and op is not None and op.name in WAITS | ARRIVALS:
            return lambda: self._at_barrier(op, call)
        if call is not None and op is not None and op.name in _CROSS_FLAGS:
            return lambda: self._cross_flag(op, call)
        if call is not None:
            return lambda: self.each(lambda first: self._operator(call, first))
        if kind is cst.Assign or kind is cst.AnnAssign:
            return lambda: self.each(lambda first: self.assign(node, first))
        if kind is cst.AugAssign:
            return lambda: self.each(lambda _: self._augmented(node))
        if isinstance(node, cst.Return):
            return lambda: self._return(node)
        if kind is not cst.Pass and kind is not cst.Assert and not _is_text(node):
            raise NotChecked(f"`{code(node)}` has no meaning here")
        return lambda: None

    def _called(self, call: cst.Call) -> None:
        function = self.function(call.func)
        if function is None:
            self.each(lambda first: self._operator(call, first))
        else:
            self._macro(function, call)

    def _at_barrier(self, op: Operator, call: cst.Call) -> None:
        """A wait or an arrival; what all threads come to orders nothing here."""
        if not self.threads_of_group:
            return
        bound = op.bind([(arg.keyword.value if arg.keyword else None, arg.value) for arg in call.args])
        node, place = _node(bound["mbarrier"]), 0
        if isinstance(node, cst.Subscript):
            index = node.slice[0].slice
            node, place = node.value, self.whole(index.value) if isinstance(index, cst.Index) else 0
        found = self.frame.find(node.value) if isinstance(node, cst.Name) else None
        if not isinstance(found, Barriers):
            raise NotChecked(f"`{code(node)}` is not a barrier that is known")
        if op.name in ARRIVALS:
            found.arrive(place, self.threads_of_group)
        else:
            found.wait(place, self.whole(_node(bound["parity"])))

    def _cross_flag(self, op: Operator, call: cst.Call) -> None:
        """Between the cores of a block, each of which runs its own part."""
        if self.member is None:
            raise NotChecked("flags order the cores")
        _, bound = self._bound(op, call)
        flag = whole_number(bound["flag"], "flag")
        if op.name == "wait_cross_flag":
            self.member.wait(flag)
        else:
            self.member.set(flag, whole_number(bound.get("mode", 2), "mode"))

    def _return(self, node: cst.Return) -> None:
        call = node.value
        op = self.operator(call.func) if isinstance(call, cst.Call) else None
        if isinstance(call, cst.Call) and op is not None and operators.is_statement(op):
            self.each(lambda first: self._operator(call, first))
            raise _Return(None)
        raise _Return(None if node.value is None else self.raw(node.value))

    def assign(self, node: cst.BaseSmallStatement, first: bool) -> None:
        """``a = b``, ``a, b = b, a``, ``a: int = b``."""
        for pairs in _assignments(node):
            (left, right), *others = pairs
            if not others and type(right) is cst.Call and type(left) is cst.Name:
                made = self._allocated(left.value, right, first)
                if made is not None:
                    self.frame.values[left.value] = made
                    continue
            found = [self.raw(right) for _, right in pairs]
            for (left, _), one in zip(pairs, found, strict=True):
                self._bind(left, one)

    def _bind(self, target: cst.BaseExpression, value: Any) -> None:
        if type(target) is cst.Name:
            self._name_becomes(target.value, value)
        elif isinstance(target, cst.Subscript):
            self._store(self.raw(target), _plain(self, value))
        elif isinstance(target, (cst.Tuple, cst.List)) and isinstance(value, (tuple, list)):
            for element, one in zip(target.elements, value, strict=True):
                self._bind(element.value, one)
        else:
            raise NotChecked(f"an assignment to `{code(target)}`")

    def _name_becomes(self, name: str, value: Any) -> None:
        known = self.frame.find(name)
        if isinstance(known, Cell):
            self._set(known, _plain(self, value))
        elif isinstance(known, Region) and name in self.frame.places:
            self._store(known, _plain(self, value))
        elif isinstance(value, (Cell, Region)):
            self.frame.values[name] = _plain(self, value) if isinstance(value, Cell) or value.is_element else value
        else:
            self.frame.values[name] = value

    def _set(self, cell: Cell, value: Array) -> None:
        new = arithmetic.cast(value, cell.dtype)
        cell.value = new[()] if self.mask is None else np.where(self.mask, new, cell.value)

    def _store(self, target: object, value: Array, how: str = "") -> None:
        if isinstance(target, Cell):
            self._set(target, value)
            return
        if not isinstance(target, Region):
            raise NotChecked("an assignment to an item of a sequence")
        if not target.is_element:
            if target.extents is None or self.lanes:
                raise NotChecked(f"a part of `{target.tile.name}` is assigned")
            target.assign(value)
            return
        self.spend(math.prod(self.lanes))
        if target.tile.in_global and not self.stores_scalars:
            return
        if isinstance(value, (tuple, str, Tile)):
            raise NotChecked(f"`{target.tile.name}` is assigned what is not a number")
        if self.watch is not None and self.lanes and not target.tile.local:
            self.watch.stores(target.tile, target.starts, self.lanes, self.mask)
        if self.dialect == NPUIR and not how:
            value = self.converted(value, target.tile.dtype)
        elements.store(target.tile, target.starts, value, self.lanes, self.mask, how, self.is_gpu)

    def _augmented(self, node: cst.BaseSmallStatement) -> None:
        assert isinstance(node, cst.AugAssign)
        function = _AUGMENTED.get(type(node.operator).__name__)
        if function is None:
            raise NotChecked(f"`{code(node)}` has no meaning here")
        target, value = self.raw(node.target), self.number(node.value)
        if isinstance(target, Region):
            before = self.loaded(target)
            if self.lanes and target.tile.sums and isinstance(node.operator, cst.AddAssign):
                self._store(target, value, "+")
                return
            place = target.tile, target.starts, self.lanes, self.mask
            if self.lanes and not target.tile.local and elements.several(*place):
                raise NotChecked(f"lanes add to one element of `{target.tile.name}`")
            self._store(target, function(before, value))
        elif isinstance(target, Cell):
            self._set(target, function(target.value, value))
        elif isinstance(node.target, cst.Name):
            found = function(target, value)
            python = isinstance(target, (int, float)) and isinstance(value, (int, float))
            self.frame.values[node.target.value] = found.item() if python else found
        else:
            raise NotChecked(f"`{code(node)}` has no meaning here")

    def _allocated(self, name: str, call: cst.Call, first: bool) -> Tile | Cell | Barriers | None:
        op = self.operator(call.func)
        if op is not None and op.kind is Kind.TYPE and len(call.args) == 3:
            sizes, dtype, base = (self.value(arg.value) for arg in call.args)
            return self._reshaped(name, sizes, dtype, base)
        if op is not None and op.name in ("view", "reshape") and len(call.args) > 1:
            base, sizes, *types = (self.value(arg.value) for arg in call.args)
            return self._reshaped(name, sizes, types[0] if types else getattr(base, "dtype", ""), base)
        if op is None or op.kind is not Kind.ALLOC:
            return None
        if "barrier" in op.name:
            counts = self.value(call.args[0].value) if call.args else 1
            return Barriers(name, list(counts) if isinstance(counts, (tuple, list)) else [counts])
        if op.memory is None and "mem" not in op.name:
            raise NotChecked(f"`{name}` is not a memory")
        _, bound = self._bound(op, call)
        dtype = str(bound.get("dtype", "float32"))
        if op.memory == "var":
            start = next((arg for arg in bound.get("args", ()) if not isinstance(arg, str)), bound.get("init"))
            lost = arithmetic.lost((), dtype)[()]
            return Cell(name, dtype, lost if start is None else arithmetic.cast(start, dtype)[()])
        memory = self.layout.memories.get(id(call))
        if memory is None:
            raise NotChecked(f"the memory of `{name}` is not known")
        if memory in CUBE_MEMORY and not first and id(call) in self.shared:
            return self.shared[id(call)]
        shape = bound.get("shape")
        sizes = [whole_number(size, name) for size in (shape if isinstance(shape, (tuple, list)) else (shape,))]
        halved = id(call) in self.layout.halved
        rows = [max(sizes[0] // 2, 1), *sizes[1:]] if halved else sizes
        self.spend(math.prod(sizes))
        made = Tile(name, dtype, memory, arithmetic.lost(tuple(rows), dtype), halved)
        made.local = op.name == "alloc_local"
        made.sums = op.name == "alloc_reducer"
        if halved and sizes[0] % 2 and not isinstance(_first(call), cst.Integer):
            raise NotChecked(f"two cores share `{name}`, which has an odd number of rows at this size")
        made.gathered = id(call) in self.layout.gathered
        if made.on_cube:
            self.shared[id(call)] = made
        return made

    def _reshaped(self, name: str, sizes: Any, dtype: object, base: object) -> Tile:
        """``T.Tensor(shape, dtype, x.data)``, ``T.view(x, shape)``: memory in another shape."""
        if not isinstance(base, Tile) or plain(base.dtype) != plain(str(dtype)):
            raise NotChecked(f"`{name}` has the bits of another type")
        base.touch()
        shape = [whole_number(size, name) for size in sizes]
        return Tile(name, base.dtype, base.memory, base.data.reshape(shape), written=True)

    def _bound(self, op: Operator, call: cst.Call) -> tuple[Operator, dict[str, Any]]:
        """The operator that takes the arguments, and these by parameter."""
        op, bound = self._binding(op, call)
        return op, {name: value_of(self) for name, value_of in bound.items()}

    def _binding(self, op: Operator, call: cst.Call) -> tuple[Operator, dict[str, Run]]:
        """The same with functions that give the arguments."""
        if id(call) not in self.bindings:
            if any(arg.star for arg in call.args):
                raise NotChecked(f"`{code(call)}` has arguments with stars")
            pairs: list[tuple[str | None, object]] = [
                (arg.keyword.value if arg.keyword else None, arg.value) for arg in call.args
            ]
            given = {name for name, _ in pairs}
            pairs += [(p.name, None) for p in op.params if p.required and p.name in _HINTS and p.name not in given]
            try:
                op = languages.half_rewritten(self.dialect, op, pairs)
                bound = {name: _argument(value) for name, value in op.bind(pairs).items() if name not in _HINTS}
            except TypeError as error:
                raise NotChecked(f"T.{op.name}: {error}") from None
            self.bindings[id(call)] = op, bound
        return self.bindings[id(call)]

    def _operator(self, call: cst.Call, first: bool) -> None:
        if id(call) not in self._operations:
            self._operations[id(call)] = self._operation(call)
        operation = self._operations[id(call)]
        if operation is None:
            return
        args: dict[str, Any] = {}
        tiles: list[Tile] = []
        elements_: list[str] = []
        for name, value_of, is_plain, is_element in operation.arguments:
            value = args[name] = value_of(self)
            kind = type(value)
            if kind is Tile:
                tiles.append(value)
            elif kind is Region:
                tiles.append(value.tile)
                if value.is_element and (is_element or (is_element is None and self.lanes)):
                    elements_.append(name)
            elif kind is Cell and is_plain:
                args[name] = value.value
        on_cube = operation.op.core is Core.CUBE or _is_on_cube(tiles)
        if on_cube and (not first if self.member is None else self.member.side == "V"):
            return
        if self.member is not None and self.member.side == "C" and any(tile.memory is Memory.UB for tile in tiles):
            return
        for name in elements_:
            args[name] = self.loaded(args[name])
        self.spend(sum(tile.data.size for tile in tiles if not tile.in_global))
        together = self.has_threads_alone and self.mask is None and operation.op.kind is not Kind.ATOMIC
        lanes = () if together else self.lanes  # all threads take part in an operator on tiles
        apply = npuir.apply if self.dialect == NPUIR else operators.apply
        apply(operation.op, args, operators.Place(lanes, self.mask, self.core, self.is_gpu))

    def _operation(self, call: cst.Call) -> _Operation | None:
        """A call as it is carried out; None for what computes nothing."""
        op = self.operator(call.func)
        if op is None and ".iket." in f".{self.names.resolve(call.func)}":
            return None  # a profiler's mark
        if op is None:
            raise NotChecked(f"the call of `{code(call.func)}` is not known")
        if op.kind in operators.IDLE:
            return None
        op, bound = self._binding(op, call)
        arguments: list[tuple[str, Run, bool, bool | None]] = []
        for name, value_of in bound.items():
            param = op.param(name)
            is_element: bool | None = param is not None and not param.mask
            if not is_element and name == "value" and "addx" not in op.name:
                is_element = None
            arguments.append((name, value_of, name not in ("buffer", "dst"), is_element))
        return _Operation(op, arguments)

    def _inner(self, function: Function, call: cst.Call) -> Frame:
        params = function.node.params
        order = [*params.posonly_params, *params.params, *params.kwonly_params]
        frame, place = Frame(function.frame), 0
        for arg in call.args:
            if arg.star:
                raise NotChecked(f"`{code(call)}` has arguments with stars")
            if arg.keyword is not None:
                name = arg.keyword.value
            elif place < len(order):
                name, place = order[place].name.value, place + 1
            else:
                raise NotChecked(f"`{code(call)}` has too many arguments")
            frame.values[name] = self.raw(arg.value)
        for param in order:
            kind = code(param.annotation.annotation) if param.annotation is not None else ""
            if kind.rsplit(".", 1)[-1] in ("Ref", "Var"):
                frame.places.add(param.name.value)
            if param.name.value not in frame.values:
                if param.default is None:
                    raise NotChecked(f"`{code(call)}` has too few arguments")
                frame.values[param.name.value] = self.value(param.default)
        return frame

    def _macro(self, function: Function, call: cst.Call) -> None:
        """A call as a statement, run by all cores side by side."""
        before: dict[int, Frame] = {}

        def go_in(_: bool) -> None:
            mine = self.function(call.func)
            assert mine is not None
            before[self.core] = self.frame
            self.frame = self._inner(mine, call)

        self.each(go_in)
        assert isinstance(function.node, cst.FunctionDef)
        with suppress(_Return):
            self.statements(body_of(function.node))
        for core, frame in before.items():
            self.enter(core)
            self.frame = frame

    def called(self, function: Function, node: cst.Call) -> object:
        """The value of a call, for one core."""
        outer, active = self.frame, self.active
        inner = self._inner(function, node)
        if isinstance(function.node, cst.Lambda):
            self.frame = inner
            try:
                return self.value(function.node.body)
            finally:
                self.frame = outer
        self.frame, self.active = inner, (self.core,)
        self.frames[self.core] = inner
        try:
            self.statements(body_of(function.node))
        except _Return as found:
            return found.value
        finally:
            self.frame, self.active = outer, active
            self.frames[self.core] = outer
        return None


@remembered
def _assignments(
    node: cst.BaseSmallStatement,
) -> Sequence[Sequence[tuple[cst.BaseExpression, cst.BaseExpression]]]:
    """For each target of an assignment what is assigned at once."""
    if isinstance(node, cst.AnnAssign):
        return [] if node.value is None else [[(node.target, node.value)]]
    assert isinstance(node, cst.Assign)
    return [single_assignments(target.target, node.value) for target in node.targets]


def _is_text(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Expr) and isinstance(
        node.value, (cst.SimpleString, cst.ConcatenatedString, cst.Ellipsis)
    )


def _argument(value: object) -> Run:
    """An argument of an operator; a tile or a variable that is named stays one."""
    if isinstance(value, tuple):
        several = [_argument(one) for one in value]
        return lambda machine: tuple(one(machine) for one in several)
    if not isinstance(value, cst.BaseExpression):
        return lambda _: value
    run = raw(value)
    if isinstance(value, cst.Name):
        return run

    def function(machine: Expressions) -> Any:
        found = run(machine)
        return found.value if isinstance(found, Cell) else found

    return function


def _is_on_cube(tiles: Sequence[Tile]) -> bool:
    return any(tile.on_cube for tile in tiles) and not any(tile.memory is Memory.UB for tile in tiles)


def _first(call: cst.Call) -> cst.BaseExpression | None:
    """The number of rows as an allocation has it."""
    shape = call.args[0].value if call.args else None
    several = shape.elements if isinstance(shape, (cst.Tuple, cst.List)) else ()
    return several[0].value if several else shape


def _plain(machine: Expressions, value: Any) -> Any:
    if isinstance(value, Cell):
        return value.value
    return machine.loaded(value) if isinstance(value, Region) and value.is_element else value


@dataclass(eq=False)
class Barriers:
    """What ``T.alloc_barrier`` makes. ``counts``: for each, how many threads complete a phase.

    The text from top to bottom is an order in which a GPU may run warp groups (``with T.ws(0):``) as long as no group
    waits for what stands further down. The pass that puts them into one order (TL198) counts by itself: this judges it.
    """

    name: str
    counts: list[int]
    arrived: dict[int, int] = field(default_factory=dict)

    def arrive(self, place: int, threads: int) -> None:
        """Threads come to a barrier."""
        self.arrived[place] = self.arrived.get(place, 0) + threads

    def wait(self, place: int, parity: int) -> None:
        """Raises NotChecked unless the phase of this parity is complete; that of parity 1 is for a new barrier."""
        if self.arrived.get(place, 0) // self.counts[place] % 2 == parity % 2:
            raise NotChecked(f"a warp group waits at `{self.name}` for what stands behind it")
