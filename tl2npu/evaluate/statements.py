"""Runs a kernel, one block after the other, statement by statement.

With ``threads=2`` each of the two vector cores runs every statement in turn, the cube core runs its own once: that is
the order that the compiler's flags make. Loops over the rows of halved tiles turn half as often.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import libcst as cst
import numpy as np

from tl2npu.dialects.catalogue import Core, Kind, Operator
from tl2npu.evaluate import arithmetic, elements, operators
from tl2npu.evaluate.expressions import Expressions
from tl2npu.evaluate.values import Array, Cell, Frame, Function, NotChecked, Region, Row, Tile, Unknown, whole_number
from tl2npu.kernel import languages
from tl2npu.kernel.bindings import body_of, single_assignments
from tl2npu.kernel.conditions import as_if
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import CUBE_MEMORY, Memory
from tl2npu.kernel.style import Dialect, unprofiled
from tl2npu.source.names import Names

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
_AT_ONCE = frozenset({"Parallel"})
_IN_ORDER = frozenset({"serial", "Serial", "Pipelined", "unroll", "Unroll", "vectorized", "Vectorized", "grid"})
_HINTS = frozenset({"policy", "annotations", "mbar", "barrier", "loop_layout"})
_MOST_TURNS = 4096
_MOST_BLOCKS = 100_000
"""More than the bound on work lets through."""


@dataclass(frozen=True)
class Layout:
    """What the reader says of the memories: by ``id`` of the call that allocates, where a buffer lies; those that two
    vector cores share by rows, with loops over their rows, by ``id`` and number of the variable."""

    memories: Mapping[int, Memory]
    halved: frozenset[int] = frozenset()
    gathered: frozenset[int] = frozenset()
    loops: frozenset[tuple[int, int]] = frozenset()
    cores: int = 1


class _Launched(Exception):
    """The launch is reached, and its grid known."""


class _Return(Exception):
    def __init__(self, value: object) -> None:
        super().__init__()
        self.value = value


class Machine(Expressions):
    """Runs the blocks of one kernel."""

    def __init__(self, names: Names, dialect: Dialect, layout: Layout) -> None:
        super().__init__(names, dialect)
        self.layout = layout
        self.core = 0
        self.frames: dict[int, Frame] = {}
        self.active: tuple[int, ...] = tuple(range(layout.cores))
        self.block: tuple[int, ...] = ()
        self.grid: tuple[int, ...] | None = None
        self.shared: dict[int, Tile] = {}
        self.launches = 0
        self.threads: tuple[int, ...] = ()
        self.numbers: dict[int, Array] = {}
        self.at: cst.CSTNode | None = None
        """The statement that runs."""

    # cores -----------------------------------------------------------------------------------------------------------

    def enter(self, core: int) -> None:
        """Go on as this vector core."""
        self.frames[self.core] = self.frame
        self.core, self.frame = core, self.frames[core]

    def each(self, run: Callable[[bool], None]) -> None:
        """Run something as each active core, True for the first."""
        for core in self.active:
            self.enter(core)
            run(core == self.active[0])

    def alike(self, value: Callable[[], Any]) -> list[tuple[tuple[int, ...], Any]]:
        """The active cores, together where something has the same value for them."""
        found: list[tuple[tuple[int, ...], Any]] = []
        for core in self.active:
            self.enter(core)
            mine = value()
            for place, (cores, other) in enumerate(found):
                if _equal(mine, other):
                    found[place] = ((*cores, core), other)
                    break
            else:
                found.append(((core,), mine))
        return found

    def only(self, cores: tuple[int, ...], run: Callable[[], None]) -> None:
        """Run something with some of the cores."""
        before, self.active = self.active, cores
        self.enter(cores[0])
        run()
        self.active = before
        self.enter(before[0])

    # blocks ----------------------------------------------------------------------------------------------------------

    def run(
        self, body: Sequence[cst.CSTNode], around: Frame, params: Mapping[str, object], backwards: bool = False
    ) -> None:
        """Run every block of the grid, the first axis fastest; ``backwards``: the last one first."""
        self.grid = None
        try:
            self._block((), body, around, params)
        except _Launched:
            pass
        if self.grid is None:
            raise NotChecked("it has no launch")
        if math.prod(self.grid) == 0:
            raise NotChecked("it has no block at this size")
        axes = [range(extent) for extent in reversed(self.grid)]
        blocks = [tuple(reversed(place)) for place in itertools.islice(itertools.product(*axes), _MOST_BLOCKS)]
        for block in reversed(blocks) if backwards else blocks:
            self._block(block, body, around, params)

    def _block(
        self, block: tuple[int, ...], body: Sequence[cst.CSTNode], around: Frame, params: Mapping[str, object]
    ) -> None:
        self.block, self.launches, self.shared, self.lanes, self.numbers = block, 0, {}, (), {}
        self.frames = {core: Frame(around, dict(params)) for core in range(self.layout.cores)}
        self.core, self.frame = 0, self.frames[0]
        self.statements(body)

    def binding(self, axis: int) -> object:
        """``T.get_block_binding``: the number of the vector core, on Ascend."""
        if self.is_gpu:
            return self.block[axis] if axis < len(self.block) else 0
        return self.core if axis == 1 else self.block[0]

    def thread(self, axis: int) -> object:
        """``T.get_thread_binding``: from here on all threads of the block are lanes, which run in step."""
        if not self.is_gpu or axis >= len(self.threads):
            return 0
        if axis not in self.numbers:
            extent = self.threads[axis]
            self.numbers[axis] = np.arange(extent).reshape((extent, *[1] * len(self.lanes)))
            self.lanes = (extent, *self.lanes)
        return self.numbers[axis]

    def _launch(self, node: cst.With, call: cst.Call) -> None:
        self.launches += 1
        if self.launches > 1:
            raise NotChecked("it has several launches")
        grid = tuple(self.whole(arg.value) for arg in call.args if arg.keyword is None)
        if self.grid is None:
            self.grid = grid
            raise _Launched
        words = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
        threads = self.value(words["threads"]) if "threads" in words and self.is_gpu else 128
        self.threads = tuple(int(n) for n in threads) if isinstance(threads, (tuple, list)) else (threads or 128,)
        if grid != self.grid:
            raise NotChecked("its grid is not the same for all blocks")
        name = node.items[0].asname.name if node.items[0].asname is not None else None
        targets = [name] if isinstance(name, cst.Name) else []
        if isinstance(name, (cst.Tuple, cst.List)):
            targets = [element.value for element in name.elements if isinstance(element.value, cst.Name)]

        def bind(_: bool) -> None:
            for place, target in enumerate(targets):
                if place < len(grid):
                    self.frame.values[target.value] = self.block[place]
                elif target.value != "_":
                    self.frame.values[target.value] = Unknown("the number of the vector core is asked for")

        self.each(bind)

    # statements ------------------------------------------------------------------------------------------------------

    def statements(self, body: Sequence[cst.CSTNode]) -> None:
        """Run statements as all active cores."""
        for statement in body:
            if isinstance(statement, cst.SimpleStatementLine):
                for small in statement.body:
                    self.small(small)
            else:
                self.compound(statement)

    def small(self, node: cst.BaseSmallStatement) -> None:
        """Run a simple statement as all active cores."""
        self.at = node
        self.spend(0)
        macro = node.value if isinstance(node, cst.Expr) and isinstance(node.value, cst.Call) else None
        if macro is not None and (function := self.function(macro.func)) is not None:
            self._macro(function, macro)
            return
        self.each(lambda first: self._small(node, first))

    def _small(self, node: cst.BaseSmallStatement, first: bool) -> None:
        if isinstance(node, cst.Assign):
            for target in node.targets:
                self._assign(target.target, node.value, first)
        elif isinstance(node, cst.AnnAssign):
            if node.value is not None:
                self._assign(node.target, node.value, first)
        elif isinstance(node, cst.AugAssign):
            self._augmented(node)
        elif isinstance(node, cst.Expr):
            if isinstance(node.value, cst.Call):
                self._operator(node.value, first)
            elif not isinstance(node.value, (cst.SimpleString, cst.ConcatenatedString, cst.Ellipsis)):
                raise NotChecked(f"`{code(node)}` has no meaning here")
        elif isinstance(node, cst.Return):
            raise _Return(None if node.value is None else self.raw(node.value))
        elif not isinstance(node, (cst.Pass, cst.Assert)):
            raise NotChecked(f"`{code(node)}` has no meaning here")

    def _assign(self, target: cst.BaseExpression, value: cst.BaseExpression, first: bool) -> None:
        pairs = single_assignments(target, value)
        if len(pairs) == 1 and isinstance(pairs[0][1], cst.Call) and isinstance(pairs[0][0], cst.Name):
            made = self._allocated(pairs[0][0].value, pairs[0][1], first)
            if made is not None:
                self.frame.values[pairs[0][0].value] = made
                return
        found = [self.raw(right) for _, right in pairs]
        for (left, _), one in zip(pairs, found, strict=True):
            self._bind(left, one)

    def _bind(self, target: cst.BaseExpression, value: Any) -> None:
        if isinstance(target, cst.Name):
            self._name_becomes(target.value, value)
        elif isinstance(target, cst.Subscript):
            self._store(self.raw(target), _plain(self, value))
        elif isinstance(target, (cst.Tuple, cst.List)) and isinstance(value, (tuple, list)):
            for element, one in zip(target.elements, value, strict=True):
                self._bind(element.value, one)
        else:
            raise NotChecked(f"an assignment to `{code(target)}`")

    def _name_becomes(self, name: str, value: Any) -> None:
        try:
            known = self.frame.find(name)
        except KeyError:
            known = None
        if isinstance(known, Cell):
            self._set(known, _plain(self, value))
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
        self.spend(math.prod(self.lanes) // 4)
        if isinstance(value, (tuple, str, Tile)):
            raise NotChecked(f"`{target.tile.name}` is assigned what is no number")
        elements.store(target.tile, target.starts, value, self.lanes, self.mask, how)

    def _augmented(self, node: cst.AugAssign) -> None:
        function = _AUGMENTED.get(type(node.operator).__name__)
        if function is None:
            raise NotChecked(f"`{code(node)}` has no meaning here")
        target, value = self.raw(node.target), self.number(node.value)
        if isinstance(target, Region):
            before = self.loaded(target)
            if self.lanes and target.tile.sums and isinstance(node.operator, cst.AddAssign):
                self._store(target, value, "+")
                return
            if self.lanes and not target.tile.local and elements.several(target.tile, target.starts, self.lanes, self.mask):
                raise NotChecked(f"lanes add to one element of `{target.tile.name}`")
            self._store(target, function(before, value))
        elif isinstance(target, Cell):
            self._set(target, function(target.value, value))
        elif isinstance(node.target, cst.Name):
            found = function(target, value)
            plain = isinstance(found, np.generic) and isinstance(target, (int, float)) and isinstance(value, (int, float))
            self.frame.values[node.target.value] = found.item() if plain else found
        else:
            raise NotChecked(f"`{code(node)}` has no meaning here")

    # allocations and operators -----------------------------------------------------------------------------------------

    def _allocated(self, name: str, call: cst.Call, first: bool) -> Tile | Cell | None:
        op = self.operator(call.func)
        if op is not None and op.kind is Kind.TYPE and len(call.args) == 3:
            return self._reshaped(name, *(self.value(arg.value) for arg in call.args))
        if op is not None and op.name in ("view", "reshape") and len(call.args) > 1:
            base, sizes, *dtypes = (self.value(arg.value) for arg in call.args)
            return self._reshaped(name, sizes, *(dtypes or (getattr(base, "dtype", ""),)), base)
        if op is None or op.kind is not Kind.ALLOC:
            return None
        if "barrier" in op.name:
            return Cell(name, "int32", 0)
        if op.memory is None and "mem" not in op.name:
            raise NotChecked(f"`{name}` is no memory")
        bound = self._bound(op, call)
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
        self.spend(math.prod(sizes) // 16)
        made = Tile(name, dtype, memory, arithmetic.lost(tuple(rows), dtype), halved)
        made.local = op.name == "alloc_local"
        made.sums = op.name == "alloc_reducer"
        if halved and sizes[0] % 2 and not isinstance(_first(call), cst.Integer):
            raise NotChecked(f"two cores share `{name}`, which has an odd number of rows at this size")
        made.gathered = id(call) in self.layout.gathered
        if memory in CUBE_MEMORY:
            self.shared[id(call)] = made
        return made

    def _reshaped(self, name: str, sizes: Any, dtype: object, base: object) -> Tile:
        """``T.Tensor(shape, dtype, x.data)``, ``T.view(x, shape)``: memory in another shape."""
        if not isinstance(base, Tile) or arithmetic.named(base.dtype) != arithmetic.named(str(dtype)):
            raise NotChecked(f"`{name}` has the bits of another type")
        base.written = True
        return Tile(name, base.dtype, base.memory, base.data.reshape([whole_number(size, name) for size in sizes]))

    def _bound(self, op: Operator, call: cst.Call) -> dict[str, Any]:
        if any(arg.star for arg in call.args):
            raise NotChecked(f"`{code(call)}` has arguments with stars")
        pairs = [(arg.keyword.value if arg.keyword else None, arg.value) for arg in call.args]
        try:
            bound = languages.half_rewritten(self.dialect, op, pairs).bind(pairs)
        except TypeError as error:
            raise NotChecked(f"T.{op.name}: {error}") from None
        return {name: self._argument(value) for name, value in bound.items() if name not in _HINTS}

    def _argument(self, value: object) -> Any:
        if isinstance(value, tuple):
            return tuple(map(self._argument, value))
        if isinstance(value, cst.BaseExpression):
            found = self.raw(value)
            return found.value if isinstance(found, Cell) and not isinstance(value, cst.Name) else found
        return value

    def _operator(self, call: cst.Call, first: bool) -> None:
        op = self.operator(call.func)
        if op is None and (self.names.resolve(call.func) or "").startswith("iket."):
            return  # a profiler's mark
        if op is None:
            raise NotChecked(f"the call of `{code(call.func)}` is not known")
        op = languages.half_rewritten(
            self.dialect, op, [(arg.keyword.value if arg.keyword else None, arg.value) for arg in call.args]
        )
        if op.kind in operators.IDLE:
            return
        args = self._bound(op, call)
        tiles = [value if isinstance(value, Tile) else value.tile for value in args.values() if isinstance(value, (Tile, Region))]
        if not first and (op.core is Core.CUBE or self._on_cube(tiles)):
            return
        args = {n: (v.value if isinstance(v, Cell) and n not in ("buffer", "dst") else v) for n, v in args.items()}
        args = {n: (self._index_of(op, n, v)) for n, v in args.items()}
        self.spend(sum(tile.data.size for tile in tiles if not tile.in_global) // 4)
        operators.apply(op, args, operators.Place(self.lanes, self.mask, self.core, self.is_gpu))

    def _index_of(self, op: Operator, name: str, value: Any) -> Any:
        """An element where the operator takes a number."""
        param = op.param(name)
        if isinstance(value, Region) and value.is_element and param is not None and not param.mask:
            return self.loaded(value)
        if isinstance(value, Region) and value.is_element and name == "value" and self.lanes:
            return self.loaded(value)
        return value

    def _on_cube(self, tiles: Sequence[Tile]) -> bool:
        memories = {tile.memory for tile in tiles}
        return bool(memories & CUBE_MEMORY) and Memory.UB not in memories

    # functions -------------------------------------------------------------------------------------------------------

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
        try:
            self.statements(body_of(function.node))
        except _Return:
            pass
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

    # compound statements -----------------------------------------------------------------------------------------------

    def compound(self, node: cst.CSTNode) -> None:
        """Run a compound statement as all active cores."""
        self.at = node
        self.spend(0)
        if isinstance(node, cst.For):
            self._for(node)
        elif isinstance(node, cst.If):
            self._if(node)
        elif isinstance(node, cst.With):
            self._with(node)
        elif isinstance(node, cst.While):
            self._while(node)
        elif isinstance(node, cst.FunctionDef):
            self.each(lambda _: self.frame.values.__setitem__(node.name.value, Function(node, self.frame)))
        else:
            raise NotChecked("a compound statement has no meaning here")

    def _with(self, node: cst.With) -> None:
        written = as_if(node, self.names) if self.is_gpu else None
        if written is not None:
            self._if(written)
            return
        for item in unprofiled(node, self.names) if self.is_gpu else node.items:
            op = self.operator(item.item.func) if isinstance(item.item, cst.Call) else None
            if op is not None and op.kind is Kind.LAUNCH:
                assert isinstance(item.item, cst.Call)
                self._launch(node, item.item)
            elif op is None or (op.kind is not Kind.SCOPE and op.name not in ("rs",)):
                raise NotChecked(f"`with {code(item.item)}` has no meaning here")
        self.statements(body_of(node))

    def _while(self, node: cst.While) -> None:
        for _ in range(_MOST_TURNS):
            verdicts = self.alike(lambda: bool(self.number(node.test)))
            if len(verdicts) > 1:
                raise NotChecked("a `while` ends at other times for the two cores")
            if not verdicts[0][1]:
                return
            self.statements(body_of(node))
        raise NotChecked("it takes too many steps")

    def _if(self, node: cst.If) -> None:
        for cores, test in self.alike(lambda: self.number(node.test)):
            self.only(cores, lambda test=test: self._arms(node, test))  # type: ignore[misc]

    def _arms(self, node: cst.If, test: Any) -> None:
        orelse = node.orelse
        if np.ndim(test) == 0:
            if bool(test):
                self.statements(body_of(node))
            elif isinstance(orelse, cst.If):
                self._if(orelse)
            elif orelse is not None:
                self.statements(body_of(orelse))
            return
        before, test = self.mask, np.asarray(test) != 0
        for arm, chosen in ((node, test), (orelse, ~test)):
            if arm is None:
                continue
            self.mask = chosen if before is None else before & chosen
            if isinstance(arm, cst.If) and arm is orelse:
                self._if(arm)
            elif np.any(self.mask):
                self.statements(body_of(arm))
        self.mask = before

    # loops -----------------------------------------------------------------------------------------------------------

    def _for(self, node: cst.For) -> None:
        call = node.iter
        if isinstance(call, cst.IfExp):
            call = call.body if bool(self.number(call.test)) else call.orelse
        op = self.operator(call.func) if isinstance(call, cst.Call) else None
        of_python = isinstance(call, cst.Call) and isinstance(call.func, cst.Name) and call.func.value == "range"
        targets = [node.target]
        if isinstance(node.target, (cst.Tuple, cst.List)):
            targets = [element.value for element in node.target.elements]
        names = [target.value for target in targets if isinstance(target, cst.Name)]
        if len(names) != len(targets):
            raise NotChecked("a loop over something else than names")
        threads = isinstance(call, cst.Call) and (self.names.resolve(call.func) or "").endswith(".thread_binding")
        if isinstance(call, cst.Call) and (threads or (op is not None and op.name in _AT_ONCE)):
            bounds = [arg.value for arg in call.args if arg.keyword is None][int(threads) :]
            for core in self.active:
                self.only((core,), lambda: self._at_once(node, names, bounds))
        elif isinstance(call, cst.Call) and op is not None and op.name == "Persistent" and len(call.args) > 2:
            self._tasks(node, call)
        elif isinstance(call, cst.Call) and (of_python or (op is not None and op.name in _IN_ORDER)):
            self._in_order(node, names, call, op is not None and op.name == "grid")
        else:
            items = self.value(node.iter)
            if not isinstance(items, (tuple, list, range)):
                raise NotChecked(f"a loop over `{code(node.iter)}` has no meaning here")
            for item in items:
                self.each(lambda _, item=item: self._bind(node.target, item))  # type: ignore[misc]
                self.statements(body_of(node))

    def _at_once(self, node: cst.For, names: list[str], bounds: list[cst.BaseExpression]) -> None:
        if len(bounds) != len(names):
            raise NotChecked(f"`{code(node.iter)}` and its variables do not agree")
        extents = [self.whole(bound) for bound in bounds]
        extents = [e // 2 if (id(node), n) in self.layout.loops and e > 1 else e for n, e in enumerate(extents)]
        outer, rank = self.lanes, len(self.lanes)
        if not math.prod(extents):
            return
        self.spend(math.prod(extents) * math.prod(outer) // 4)
        self.lanes = (*extents, *outer)
        for place, (name, extent) in enumerate(zip(names, extents, strict=True)):
            shape = [1] * (len(extents) + rank)
            shape[place] = extent
            self.frame.values[name] = np.arange(extent).reshape(shape)
        try:
            self.statements(body_of(node))
        finally:
            self.lanes = outer

    def _in_order(self, node: cst.For, names: list[str], call: cst.Call, grid: bool) -> None:
        for cores, ranges in self.alike(lambda: self._ranges(node, call, grid)):
            self.only(cores, lambda ranges=ranges: self._turns(node, names, ranges))  # type: ignore[misc]

    def _tasks(self, node: cst.For, call: cst.Call) -> None:
        """``T.Persistent(domain, wave_size, index)``: every so many tasks, whatever their order."""
        domain, wave, index = (self.value(arg.value) for arg in call.args[:3])
        tasks = list(itertools.product(*(range(whole_number(extent, "loop")) for extent in domain)))
        for task in tasks[int(index) :: int(wave)]:
            self.each(lambda _, task=task: self._bind(node.target, task))  # type: ignore[misc]
            self.statements(body_of(node))

    def _ranges(self, node: cst.For, call: cst.Call, grid: bool) -> list[Any]:
        args = [self.number(arg.value) for arg in call.args if arg.keyword is None]
        words = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
        resolved = self.names.resolve(call.func) or ""
        if resolved.endswith(".Pipelined") and len(args) > 2:
            args = args[:2]
        if "stop" in words:
            args = [self.number(words["start"]) if "start" in words else 0, self.number(words["stop"])]
        if grid and len(args) > 1:
            return [range(whole_number(arg, "loop")) for arg in args]
        if any(np.ndim(arg) for arg in args):
            return [tuple(args)]
        found = range(*(whole_number(arg, "loop") for arg in args))
        if "step" in words:
            found = range(found.start, found.stop, self.whole(words["step"]))
        if (id(node), 0) in self.layout.loops and len(found) > 1:
            turns = len(found) // 2
            return [[Row.of(value, turns) for value in found[:turns]]]
        return [found]

    def _turns(self, node: cst.For, names: list[str], ranges: list[Any]) -> None:
        if isinstance(ranges[0], tuple):
            self._uneven_turns(node, names[0], ranges[0])
            return
        if len(ranges) != len(names):
            raise NotChecked(f"`{code(node.iter)}` and its variables do not agree")
        body = body_of(node)
        for values in itertools.product(*ranges):
            for name, value in zip(names, values, strict=True):
                for core in self.active:
                    (self.frame if core == self.core else self.frames[core]).values[name] = value
            self.statements(body)

    def _uneven_turns(self, node: cst.For, name: str, args: tuple[Any, ...]) -> None:
        """A loop that turns as often as each lane wants."""
        low, high = (0, args[0]) if len(args) == 1 else (args[0], args[1])
        if len(args) > 2:
            raise NotChecked("a loop with a step of its own for each lane")
        before = self.mask
        for turn in range(int(np.min(low)), int(np.max(high))):
            inside = (np.asarray(low) <= turn) & (turn < np.asarray(high))
            self.mask = inside if before is None else before & inside
            self.each(lambda _, turn=turn: self.frame.values.__setitem__(name, turn))  # type: ignore[misc]
            self.statements(body_of(node))
        self.mask = before


def _first(call: cst.Call) -> cst.BaseExpression | None:
    """The number of rows as an allocation has it."""
    shape = call.args[0].value if call.args else None
    several = shape.elements if isinstance(shape, (cst.Tuple, cst.List)) else ()
    return several[0].value if several else shape


def _plain(machine: Expressions, value: Any) -> Any:
    if isinstance(value, Cell):
        return value.value
    return machine.loaded(value) if isinstance(value, Region) and value.is_element else value


def _equal(left: Any, right: Any) -> bool:
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(_equal, left, right))
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        return np.shape(left) == np.shape(right) and bool(np.array_equal(left, right))
    return bool(left == right)
