"""Runs the blocks of a kernel: launches, branches and loops.

Loops over the rows of tiles that two cores share turn half as often (``ascend_vid_reduction.cc``).
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

import libcst as cst
import numpy as np

from tl2npu.dialects.catalogue import Kind
from tl2npu.dialects.gpu.barriers import WARP_GROUP
from tl2npu.evaluate.apart import apart, nest_of
from tl2npu.evaluate.cores import Layout
from tl2npu.evaluate.crew import Crew, Slots
from tl2npu.evaluate.statements import Statements
from tl2npu.evaluate.values import Cell, Frame, Function, NotChecked, Row, Unknown, whole_number
from tl2npu.kernel.bindings import assigned_names, body_of
from tl2npu.kernel.conditions import as_if
from tl2npu.kernel.expressions import code
from tl2npu.kernel.style import Dialect, unprofiled
from tl2npu.source.names import Names
from tl2npu.source.tree import nodes_of, remembered

_AT_ONCE = frozenset({"Parallel", "thread_binding"})
_IN_ORDER = frozenset(
    {"serial", "Serial", "Pipelined", "unroll", "Unroll", "vectorized", "Vectorized", "grid", "range", "Persistent"}
)
_OF_THREADS = re.compile("thread|lane|warp|shfl|tid")
_MOST_TURNS = 4096
LEAST_BLOCKS = 3


def place_in(grid: Sequence[int], number: int) -> tuple[int, ...]:
    """Where the block of a number is, the first axis fastest."""
    place = []
    for extent in grid:
        number, own = divmod(number, extent)
        place.append(own)
    return tuple(place)


class _Launched(Exception):
    """The launch is reached, and its grid known."""


class Machine(Statements):
    """Runs the blocks of one kernel."""

    def __init__(self, names: Names, dialect: Dialect, layout: Layout) -> None:
        super().__init__(names, dialect, layout)
        self._withs: dict[int, cst.If | list[cst.BaseExpression]] = {}
        self.look: Callable[[Machine, cst.CSTNode], None] | None = None
        self.others: Sequence[Machine] = ()
        self.is_crew = False
        self.slots: Sequence[Slots] = ()
        self.alternates = False

    def begin(self, body: Sequence[cst.CSTNode], around: Frame, params: Mapping[str, object]) -> int:
        """Go as far as the launch, which tells the grid; returns the number of blocks."""
        self.grid, self.kernel = None, (body, around, params)
        with suppress(_Launched):
            self._block(())
        if self.grid is None:
            raise NotChecked("it has no launch")
        if math.prod(self.grid) == 0:
            raise NotChecked("it has no block at this size")
        return math.prod(self.grid)

    def run(self, blocks: Sequence[int], enough: int) -> Sequence[int]:
        """Run blocks of the grid by their numbers, the first axis fastest; :meth:`begin` has been called.

        After ``enough`` work no more begin, if there were :data:`LEAST_BLOCKS`. Returns the blocks that were run.
        """
        given = self.left
        for count, number in enumerate(blocks):
            if count >= LEAST_BLOCKS and given - self.left > enough:
                return blocks[:count]
            place = place_in(self.grid or (), number)
            if self.others and (self.is_crew or self.alternates):
                self._side_by_side(place)
            else:
                self._block(place)
        return blocks

    def _side_by_side(self, block: tuple[int, ...]) -> None:
        """Run a block as a crew, with the other machines as its vector cores."""
        crew = Crew(self.alternates)
        machines = [self, *self.others]
        for slots in self.slots:
            slots.begin(crew)
        for machine, member in zip(machines, crew.members, strict=True):
            machine.member, machine.grid, machine.kernel = member, self.grid, self.kernel
            machine.symbols, machine.left, machine.watch = self.symbols, self.left, self.watch
        given = self.left
        crew.go([lambda machine=machine: machine._block(block) for machine in machines])  # type: ignore[misc]
        self.left = given - sum(given - machine.left for machine in machines)
        self.member = None

    def _block(self, block: tuple[int, ...]) -> None:
        body, around, params = self.kernel
        self.block, self.launches, self.shared, self.lanes, self.numbers = block, 0, {}, (), {}
        self.mask, self.active, self.threads_of_group = None, tuple(range(self.layout.cores)), 0
        self.is_in_scope = False
        self.frames = {core: Frame(around, dict(params)) for core in range(self.layout.cores)}
        if self.member is not None:
            self.active = (self.member.number,)
        self.core, self.frame = self.active[0], self.frames[self.active[0]]
        self.statements(body)

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
                else:
                    self.frame.values[target.value] = self.core

        self.each(bind)

    def statements(self, body: Sequence[cst.CSTNode]) -> None:
        """Run statements as all active cores."""
        for statement in body:
            if type(statement) is cst.SimpleStatementLine:
                for part in statement.body:
                    self.small(part)
                    if self.look is not None:
                        self.look(self, part)
            else:
                self.compound(statement)

    def compound(self, node: cst.CSTNode) -> None:
        """Run a compound statement as all active cores."""
        self.spend(0)
        kind = type(node)
        if kind not in _COMPOUND:
            raise NotChecked("a compound statement has no meaning here")
        _COMPOUND[kind](self, node)

    def _function(self, node: cst.FunctionDef) -> None:
        self.each(lambda _: self.frame.values.__setitem__(node.name.value, Function(node, self.frame)))

    def _with(self, node: cst.With) -> None:
        if id(node) not in self._withs:
            written = as_if(node, self.names)
            items = unprofiled(node, self.names) if self.is_gpu else node.items
            self._withs[id(node)] = written or [item.item for item in items]
        written_or_items = self._withs[id(node)]
        if isinstance(written_or_items, cst.If):
            self._if(written_or_items)
            return
        mine, before = True, self.is_in_scope
        for item in written_or_items:
            op = self.operator(item.func) if isinstance(item, cst.Call) else None
            if op is not None and op.kind is Kind.LAUNCH:
                assert isinstance(item, cst.Call)
                self._launch(node, item)
            elif op is not None and op.name == "ws" and self.is_gpu:
                assert isinstance(item, cst.Call)
                self.threads_of_group = WARP_GROUP * len(item.args)
            elif op is None or (op.kind is not Kind.SCOPE and op.name not in ("rs",)):
                raise NotChecked(f"`with {code(item)}` has no meaning here")
            elif op.name == "Scope" and isinstance(item, cst.Call):
                mine = self.member is None or self.value(item.args[0].value) == self.member.side
                self.is_in_scope = mine
        if mine:
            self.statements(body_of(node))
        self.threads_of_group, self.is_in_scope = 0, before

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
            elif np.any(self.mask) and self._is_of_tiles(arm):
                self._as_a_group(arm)
            elif np.any(self.mask):
                self.statements(body_of(arm))
        self.mask = before

    def _is_of_tiles(self, arm: cst.If | cst.Else) -> bool:
        """Whether the lanes are the threads of the block, and nothing in an arm for some of them differs between them:
        then they move and compute tiles together."""
        if not self.has_threads_alone:
            return False
        body = body_of(arm)
        words = {item.attr.value for line in body for item in nodes_of(line, cst.Attribute)}
        names = {item.value for line in body for item in nodes_of(line, cst.Name)}
        outer = list(map(self.frame.find, names - assigned_names(arm)))
        by_thread = any(isinstance(value, np.ndarray) and value.ndim for value in outer)
        return (
            not by_thread
            and not any(map(_OF_THREADS.search, words))
            and not any(isinstance(value, Function) for value in outer)
        )

    def _as_a_group(self, arm: cst.If | cst.Else) -> None:
        """Run statements for tiles once, for the threads that come to them."""
        before = self.lanes, self.mask, self.numbers
        self.threads_of_group = int(np.count_nonzero(np.broadcast_to(self.mask, self.lanes)))  # type: ignore[arg-type]
        self.lanes, self.mask, self.numbers = (), None, {}
        self.statements(body_of(arm))
        self.lanes, self.mask, self.numbers = before
        self.threads_of_group = 0

    def _for(self, node: cst.For) -> None:
        call, names = node.iter, _names(node.target)
        if isinstance(call, cst.IfExp):
            call = call.body if bool(self.number(call.test)) else call.orelse
        kind = self._kind(call) if isinstance(call, cst.Call) else ""
        if not names:
            raise NotChecked("a loop over something else than names")
        if not isinstance(call, cst.Call) or not kind:
            self._over(node, self.value(node.iter))
        elif kind in _AT_ONCE and self.member is not None and self.member.side == "C" and not self.is_in_scope:
            return  # on tiles of the vector cores
        elif kind in _AT_ONCE:
            bounds = [arg.value for arg in call.args if arg.keyword is None][int(kind == "thread_binding") :]
            for core in self.active:
                self.only((core,), lambda: self._at_once(node, names, bounds))
        elif kind == "Persistent" and len(call.args) > 2:
            self._tasks(node, call)
        else:
            self._in_order(node, names, call, kind == "grid")

    def _kind(self, call: cst.Call) -> str:
        """What a loop goes over: the name of a function of the language or of Python; nothing for other calls."""
        op = self.operator(call.func)
        name = op.name if op is not None else (self.names.resolve(call.func) or code(call.func)).rpartition(".")[-1]
        return name if name in _AT_ONCE or name in _IN_ORDER else ""

    def _over(self, node: cst.For, items: object) -> None:
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
        self.spend(math.prod(extents) * math.prod(outer))
        if self.watch is not None and not outer:
            self.watch.clear()
        self.lanes = (*extents, *outer)
        for place, (name, extent) in enumerate(zip(names, extents, strict=True)):
            shape = [1] * (len(extents) + rank)
            shape[place] = extent
            self.frame.values[name] = _counted(extent, tuple(shape))
        try:
            self.statements(body_of(node))
        finally:
            self.lanes = outer

    def _in_order(self, node: cst.For, names: list[str], call: cst.Call, grid: bool) -> None:
        bound = apart(node) if not self.lanes else []  # each lane has elements of its own
        if bound and not any(isinstance(self.frame.find(name), Cell) for name in bound):
            for core in self.active:
                self.only((core,), lambda: self._all_turns(nest_of(node), bound))
            return
        for cores, ranges in self.alike(lambda: self._ranges(node, call, grid)):
            self.only(cores, lambda ranges=ranges: self._turns(node, names, ranges))  # type: ignore[misc]

    def _all_turns(self, nest: Sequence[cst.CSTNode], bound: Sequence[str]) -> None:
        """All turns of a nest of loops as lanes."""
        outer, rank = self.lanes, len(nest) + len(self.lanes)
        extents = []
        for place, loop in enumerate(nest):
            assert isinstance(loop, cst.For)
            assert isinstance(loop.iter, cst.Call)
            assert isinstance(loop.target, cst.Name)
            (turns,) = self._ranges(loop, loop.iter, False)
            if isinstance(turns, tuple):
                raise NotChecked("a loop that turns as often as each lane wants")
            shape = [1] * rank
            shape[place] = len(turns)
            extents.append(len(turns))
            self.frame.values[loop.target.value] = np.array(turns, np.int64).reshape(shape)
        if math.prod(extents):
            self.spend(math.prod(extents) * math.prod(outer))
            self.lanes = (*extents, *outer)
            self.statements(body_of(nest[-1]))  # type: ignore[arg-type]
            self.lanes = outer
        for name in bound:
            self.frame.values[name] = Unknown(f"the last value of `{name}` is not known")

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
            raise NotChecked("a loop that turns as often as each lane wants")
        found = range(*(whole_number(arg, "loop") for arg in args))
        if "step" in words:
            found = range(found.start, found.stop, self.whole(words["step"]))
        if (id(node), 0) in self.layout.loops and len(found) > 1:
            turns = len(found) // 2
            return [[Row.of(value, turns) for value in found[:turns]]]
        return [found]

    def _turns(self, node: cst.For, names: list[str], ranges: list[Any]) -> None:
        if len(ranges) != len(names):
            raise NotChecked(f"`{code(node.iter)}` and its variables do not agree")
        body = body_of(node)
        for values in itertools.product(*ranges):
            for name, value in zip(names, values, strict=True):
                for core in self.active:
                    (self.frame if core == self.core else self.frames[core]).values[name] = value
            self.statements(body)


@lru_cache(maxsize=1024)
def _counted(extent: int, shape: tuple[int, ...]) -> Any:
    """The turns of a loop as lanes along one axis."""
    return np.arange(extent).reshape(shape)


@remembered
def _names(target: cst.BaseAssignTargetExpression) -> list[str]:
    """The variables of a loop; none where it binds something else than names."""
    several = target.elements if isinstance(target, (cst.Tuple, cst.List)) else [cst.Element(target)]
    found = [one.value.value for one in several if isinstance(one.value, cst.Name)]
    return found if len(found) == len(several) else []


_COMPOUND: Mapping[type[cst.CSTNode], Callable[[Machine, Any], None]] = {
    cst.For: Machine._for,
    cst.If: Machine._if,
    cst.With: Machine._with,
    cst.While: Machine._while,
    cst.FunctionDef: Machine._function,
}
