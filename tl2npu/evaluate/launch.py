"""One kernel at some sizes with its tensors: made ready once, run block by block as often as it is needed."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any

import libcst as cst

from tl2npu.checks.row_split.split import split_of
from tl2npu.checks.subject import Subject
from tl2npu.evaluate import arithmetic, host, inputs
from tl2npu.evaluate.cores import Layout
from tl2npu.evaluate.crew import VECTORS, Slots
from tl2npu.evaluate.machine import Machine
from tl2npu.evaluate.races import Watch
from tl2npu.evaluate.sizes import Sizes
from tl2npu.evaluate.values import NotChecked, Tile
from tl2npu.kernel.access import is_on_chip, reads
from tl2npu.kernel.bindings import body_of
from tl2npu.kernel.handover import traffic
from tl2npu.kernel.model import CUBE_MEMORY, Copy, Kernel, Loop, Memory, ScopeBlock, Sync, walk_with_parents
from tl2npu.kernel.style import NPUIR

Look = Callable[[Machine, cst.CSTNode], None]
WORK = 6_000_000
"""Elements that one run may take, a statement counting as 200."""


class Launch:
    """A kernel, ready to run. ``grid`` are its blocks, ``count`` how many there are, ``around`` the names around it,
    ``tensors`` what it takes.

    ``drawn``: what the tensors start with; the first launch draws it, but for those that are ``undefined``. Raises
    :class:`NotChecked`. ``work``: how much of it a run may take.
    """

    def __init__(
        self,
        subject: Subject,
        chosen: Sizes,
        drawn: dict[str, Any],
        attempt: int,
        undefined: Container[str] = (),
        work: int = WORK,
    ) -> None:
        self.around = around = host.surroundings(subject.file, subject.located, chosen.bound, chosen.symbols)
        self._work, self._undefined = work, undefined
        layout, kernel = _layout(subject, chosen), subject.kernel
        self._machine = machine = Machine(subject.file.names, kernel.dialect, layout)
        machine.frame, machine.symbols, machine.left = around, dict(chosen.symbols), work
        self.tensors, scalars = host.tensors(machine, subject.kernel.node)
        if not drawn:
            values = inputs.draw(self.tensors, scalars, inputs.range_of(subject.kernel, self.tensors), attempt)
            for name, tensor in self.tensors.items():
                if name in undefined:
                    tensor.data = arithmetic.lost(tensor.shape, tensor.dtype)
            drawn |= {**{name: tensor.data for name, tensor in self.tensors.items()}, **values}
            for tensor in self.tensors.values():
                tensor.data.flags.writeable = False
        crossed = workspaces(kernel)
        machine.is_crew = bool(crossed) or has_flags(kernel)
        if machine.is_crew or (layout.cores > 1 and not layout.halved):
            machine.others = [Machine(subject.file.names, kernel.dialect, layout) for _ in range(VECTORS)]
        for name, readers in crossed.items():
            self.tensors[name].slots = Slots(self.tensors[name].shape, readers)
        machine.slots = [self.tensors[name].slots for name in crossed]
        self._drawn = {}
        for name, tensor in self.tensors.items():
            if name in drawn and drawn[name].size != tensor.data.size:
                raise NotChecked(f"`{name}` has another size than before")
            self._drawn[name] = drawn.get(name, tensor.data).reshape(tensor.shape)
            tensor.data = self._drawn[name]
        params = {**{name: drawn[name] for name in scalars if name in drawn}, **self.tensors}
        self.count = machine.begin(body_of(subject.kernel.node), around, params)
        self.grid = machine.grid or ()
        self.done: Sequence[int] = ()

    @property
    def is_crew(self) -> bool:
        """Whether its cores run side by side."""
        return self._machine.is_crew

    def run(
        self, blocks: Sequence[int], watched: bool = False, look: Look | None = None, enough: int = WORK
    ) -> dict[str, Tile]:
        """The tensors that were drawn, behind these blocks of the grid, run in this order; ``done`` are those that were
        run.

        ``watched``: the vector cores take turns; raises :class:`NotChecked` where lanes of a loop race. ``look`` is
        called behind each statement; ``enough``: after this much work no more blocks begin, if there were three.
        """
        for name, tensor in self.tensors.items():
            tensor.data, tensor.written = self._drawn[name], False
        self._machine.left, self._machine.watch = self._work, Watch() if watched else None
        self._machine.look, self._machine.alternates = look, watched
        self.done = self._machine.run(blocks, enough)
        left = [(name, tensor) for name, tensor in self.tensors.items() if name not in self._undefined]
        return {name: Tile(name, t.dtype, t.memory, t.data, written=t.written) for name, t in left}


def _layout(subject: Subject, chosen: Sizes) -> Layout:
    kernel = subject.kernel
    on_chip = [buffer for buffer in kernel.buffers.values() if buffer.memory is not Memory.GM]
    memories = {id(buffer.node): buffer.memory for buffer in on_chip}
    if kernel.dialect == NPUIR and has_flags(kernel):
        raise NotChecked("its cores have programs of their own")
    if kernel.dialect in ("gpu", NPUIR):
        return Layout(memories)
    if kernel.launch is not None and kernel.launch.threads is None:
        return Layout(memories, cores=2)  # each has whole tiles, and a number of its own
    if not subject.is_split or any(_is_odd(size.evaluate(_integers(chosen))) for size in subject.even):
        return Layout(memories)
    split = split_of(subject)
    loops = {
        (id(stmt.node), place)
        for stmt in kernel.walk()
        if isinstance(stmt, Loop)
        for place, item in enumerate(stmt.ranges)
        if item in split.rows
    }
    halved, gathered = (frozenset(id(b.node) for b in some) for some in (split.halved, split.gathered))
    return Layout(memories, halved, gathered, frozenset(loops), 2)


def _integers(chosen: Sizes) -> dict[str, int]:
    return {name: value for name, value in chosen.bound.items() if isinstance(value, int)}


def _is_odd(number: int | None) -> bool:
    return number is not None and number % 2 == 1


def has_flags(kernel: Kernel) -> bool:
    """Whether the author's flags tell the cores to wait for each other."""
    return any(isinstance(s, ScopeBlock) or (isinstance(s, Sync) and "cross" in s.op.name) for s in kernel.walk())


def workspaces(kernel: Kernel) -> dict[str, str]:
    """Tensors through which one side hands tiles to the other without a flag, with the side that reads.

    Raises :class:`NotChecked` where tiles go from core to core in no order of the text.
    """
    if kernel.dialect != "ascend" or has_flags(kernel):
        return {}
    if any(isinstance(stmt, Copy) and is_on_chip(stmt) for stmt in kernel.walk()):
        _check_text(kernel)
        return {}
    found: dict[str, str] = {}
    for tensor, entry in traffic(kernel).items():
        writers = {place.copy.src.buffer.memory in CUBE_MEMORY for place in entry.writers}
        readers = {place.copy.dst.buffer.memory in CUBE_MEMORY for place in entry.readers}
        if writers == {True} and readers == {False}:
            found[tensor.name] = "V"
        elif writers == {False} and readers == {True}:
            found[tensor.name] = "C"
    return found


def _check_text(kernel: Kernel) -> None:
    """One core makes in a loop what another one uses in a loop of its own."""
    every = list(walk_with_parents(kernel.body))
    for stmt, parents in every:
        if isinstance(stmt, Copy) and is_on_chip(stmt):
            mine = [loop for loop in parents if isinstance(loop, Loop)]
            for other, around in every:
                theirs = [loop for loop in around if isinstance(loop, Loop)]
                apart = any(a is not b for a, b in zip(mine, theirs, strict=False))
                if apart and any(operand.buffer is stmt.dst.buffer for operand in reads(other)):
                    raise NotChecked(f"`{stmt.dst.buffer.name}` is used in a loop of the other core")
