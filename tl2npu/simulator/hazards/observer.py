"""Watches one call of a kernel: the machine tells it of launches, blocks, flags and barriers, and takes from it how a
core reaches memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from tl2npu.dialects.ascend.sync import CROSS_FLAGS, OLD_IDS
from tl2npu.simulator.hazards import capacity
from tl2npu.simulator.hazards.clocks import Clocks, Events, Token, merged
from tl2npu.simulator.hazards.flags import Flags
from tl2npu.simulator.hazards.hazard import DEADLOCK, MEMORIES, OUT_OF_BOUNDS, WARNING, Hazard, Party
from tl2npu.simulator.hazards.pipes import FIX, MTE1, MTE2, MTE3, NUMBER, PIPES, M, S, Step, V, step_of
from tl2npu.simulator.hazards.report import Report
from tl2npu.simulator.hazards.shadow import Cells
from tl2npu.simulator.hazards.watched import Watched
from tl2npu.simulator.ir.buffer import Buffer
from tl2npu.simulator.ir.stmt import Site
from tl2npu.simulator.machine.access import Access
from tl2npu.simulator.machine.sync import Core
from tl2npu.simulator.machine.watch import Made, WatchedRunner

UNWRITTEN, HOST = 0, 1


class Observer:
    """One per call. ``events`` and the tensors' cells live through all launches of the call."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.events = Events()
        self.places: list[tuple[Site, str, int]] = [(Site("<host>", 0), "", 0)]
        self.place_numbers: dict[Any, int] = {}
        self.tensors: dict[int, Cells] = {}
        self.origins: dict[int, tuple[int, Party, Cells]] = {}
        self.block_of_event: list[tuple[int, int, int]] = []
        self.flags = Flags(self)
        self.inputs = Inputs()
        self.made = Made()

    # launches

    def begin(self, runner: WatchedRunner, arrays: dict[int, np.ndarray], made: Made) -> None:
        """A launch begins: everything before it is over."""
        self.runner = runner
        self.made = made
        self.viewed = {b.alias.number for b in runner.buffers.values() if b.alias is not None}
        self.gpu = any(kind == "G" for kind, _, _ in runner.program.cores)
        self.block_name = "npu" if runner.launch.is_npu else "gpu"
        self.pipes = not self.gpu and not runner.automatic_sync
        self.steps: list[tuple[Step, int]] = [
            (step_of(stmt, parallel), site) for stmt, parallel, site in runner.watched_statements
        ]
        self.automatic_sites = {step.site for step, _ in self.steps}  # a flag at the line of a copy is the compiler's
        self.vectors = max((count for kind, count, _ in runner.program.cores if kind == "V"), default=1)
        self.per_core = len(PIPES) if self.pipes else 1
        self.per_block = self.per_core * (1 if self.gpu else 1 + self.vectors)
        self.together = runner.program.meets
        self.first_launch = self.first_block = self.events.count
        self.clocks = Clocks(self.per_block * (runner.blocks if self.together else 1))
        self.place_numbers.clear()
        self.block_of_event.append((self.events.count, self.per_block, self.per_core))
        for number, array in arrays.items():
            self._tensor(number, array)
        for found in capacity.check(runner, self.report.device):
            self.report.add(found)

    def _tensor(self, number: int, array: np.ndarray) -> None:
        written = number in self.runner.written
        cells = self.tensors.get(number)
        if cells is None:
            blank = number in self.made.outputs or number in self.made.scratch
            end = self.made.ends.get(number)
            if not written and not blank and end is None:
                return  # an input: always written, never in conflict
            name = self.runner.names[number]
            cells = Cells(name, "GM", array.shape, UNWRITTEN if blank else HOST, written, self._grain(number, array))
            cells.shared = True
            self.tensors[number] = cells
            if end is not None:
                cells.state.writer.spread()[end * self._grain(number, array) :] = UNWRITTEN
                cells.state.ends = True
        cells.checked = written
        cells.state.reads.clear()
        cells.state.displaced = cells.state.twin = None

    def end_block(self, number: int, left: list[tuple[Core | None, Any, list[Token]]]) -> None:
        """A block is over, and the next starts with fresh clocks. ``left``: flags set and not waited for."""
        self.flags.end(left)
        self.first_block = self.events.count
        self.clocks = Clocks(len(self.clocks.released))

    def end(self, runner: WatchedRunner, left: list[tuple[Core | None, Any, list[Token]]]) -> None:
        """The launch is over."""
        self.flags.end(left)
        self.flags.finish()
        scratch = self.made.scratch
        for number, cells in self.tensors.items():
            if cells.state.tainted and number not in scratch and "workspace" not in cells.name:
                self.report.undefined_output(self, cells)

    def finish(self) -> None:
        """The call is over: what no launch wrote of an output stays as it was."""
        for number, cells in self.tensors.items():
            made = number in self.made.outputs
            if made or (number not in self.made.scratch and not cells.state.read):
                self.report.unwritten_output(self, cells, UNWRITTEN if made else HOST)
        for found in self.inputs.faults(self.runner.names):
            self.report.add(found)

    # what the machine asks for

    def access(self, core: Core, names: dict[int, str], sites: list[Site]) -> Access:
        """How a core reaches memory."""
        return Watched(self, core, names, sites)

    def deadlock(self, waiting: list[tuple[Core, str, Site]]) -> None:
        """No core can go on."""
        parties = [Party(site, "Wait", self.core_name(core), core.block) for core, _, site in waiting]
        parts = [f"{core} waits for {what} at {site}" for core, what, site in waiting]
        second = parties[1] if len(parties) > 1 else None
        self.report.add(Hazard(DEADLOCK, "deadlock: " + "; ".join(parts), "", "", parties[0], second), quiet=True)

    # threads

    def offset(self, core: Core) -> int:
        """The first clock of the core's block."""
        return core.block * self.per_block if self.together else 0

    def thread(self, core: Core) -> int:
        """The clock of a core; with pipes, that of its scalar unit."""
        local = 1 + core.number if core.kind == "V" else 0
        return self.offset(core) + local * self.per_core

    def pipe_thread(self, core: Core, pipe: str) -> int:
        """The clock of a pipe of a core; the scalar unit's where no pipe is named."""
        return self.thread(core) + (NUMBER.get(pipe.upper().removeprefix("PIPE_"), S) if self.pipes else 0)

    def issue(self, scalar: int, before: Step, step: Step) -> None:
        """The scalar unit hands a statement to a pipe; ``before`` is the statement before it."""
        clocks = self.clocks
        if before.gemm:
            clocks.released[scalar + MTE1] = clocks.released[scalar + M] = True
        if before.settles:
            clocks.released[scalar + V] = True
        clocks.follow(scalar + step.pipe, scalar)
        if step.settles:
            clocks.stamp(scalar + V)
            clocks.follow(scalar, scalar + V)
            clocks.released[scalar + V] = False
        if not step.gemm:
            return
        mte1, m = scalar + MTE1, scalar + M
        clocks.follow(mte1, scalar)
        clocks.follow(mte1, scalar + MTE2)
        clocks.follow(m, scalar + FIX)
        clocks.stamp(mte1)
        clocks.follow(m, mte1)
        clocks.stamp(m)
        clocks.follow(mte1, m)
        clocks.follow(scalar + MTE2, mte1)
        clocks.follow(scalar + FIX, m)
        clocks.released[mte1] = clocks.released[m] = False

    def before_padding(self, scalar: int) -> None:
        """A clipped load fills the tile with a vector instruction first, after all loads and stores so far, and goes on
        after it (``tl_templates/ascend/common.h:copy_gm_to_ub``)."""
        for pipe in (S, MTE2, MTE3):
            self.clocks.follow(scalar + V, scalar + pipe)

    def barrier(self, scalar: int) -> None:
        """All pipes of a core, then the scalar unit."""
        for pipe in range(1, len(PIPES)):
            self.clocks.follow(scalar, scalar + pipe)

    # flags and barriers

    def release(self, core: Core, site: int, pipe: str, flag: Any) -> Token:
        """A cross flag is set: after everything issued on the pipe."""
        own = OLD_IDS if self.runner.launch.npuir else CROSS_FLAGS  # Ascend C takes some of them itself
        self.flags.range(core, site, flag, "cross flag", own, OLD_IDS)
        thread = self.pipe_thread(core, pipe)
        if self.pipes:
            self.clocks.follow(thread, self.thread(core))
        return self.flags.token(self.clocks.release(thread), core, site, pipe)

    def merge(self, tokens: list[Token]) -> Token:
        """A flag that several cores have to set."""
        return self.flags.merge(tokens)

    def acquire(self, core: Core, site: int, pipe: str, flag: Any, token: Token) -> None:
        """A wait for a cross flag is over; the core (its scalar unit, or the named pipe) goes on."""
        thread = self.pipe_thread(core, pipe)
        self.flags.waited(core, site, token, self.clocks.acquire(thread, token[0]))

    def too_many(self, core: Core, site: int, flag: Any, count: int) -> None:
        """A counter has gone past what the hardware can hold."""
        self.flags.too_many(core, site, flag, count)

    def arrive_all(self, core: Core, site: int) -> Token:
        """A barrier among cores; it waits for all pipes."""
        thread = self.thread(core)
        self.flags.all_wait(core, site)
        if self.pipes:
            self.barrier(thread)
        return self.clocks.release(thread)

    def leave_all(self, core: Core, site: int, tokens: list[Token]) -> None:
        """The barrier is passed."""
        self.clocks.acquire(self.thread(core), merged(tokens))

    def set_flag(self, core: Core, site: int, src: str, dst: str, number: int) -> None:
        """``T.set_flag``: after everything issued on ``src``."""
        token = None
        if self.pipes:
            thread = self.pipe_thread(core, src)
            self.clocks.follow(thread, self.thread(core))
            token = self.clocks.release(thread)
        self.flags.set(core, site, src, dst, number, token)

    def wait_flag(self, core: Core, site: int, src: str, dst: str, number: int) -> None:
        """``T.wait_flag``: ``dst`` goes on after the flag."""
        self.flags.wait(core, site, src, dst, number)

    def pipe_barrier(self, core: Core, site: int, pipe: str) -> None:
        """``T.pipe_barrier``, ``T.barrier_all``. Of one pipe: its instructions are in order anyway here."""
        if pipe.lower().removeprefix("pipe_") == "all":
            self.flags.all_wait(core, site)
            if self.pipes:
                self.barrier(self.thread(core))

    # cells and events

    def cells_of(self, access: Watched, number: int, array: np.ndarray) -> Cells | None:
        """The cells of a buffer that a core reaches for the first time; None for one that needs none."""
        buffer = self.runner.buffers.get(number)
        if number in self.tensors:
            return self.tensors[number]
        if buffer is not None and buffer.alias is not None:
            root = buffer
            while root.alias is not None:
                root = root.alias
            base = self.tensors.get(root.number) or access.cells.get(root.number)
            if base is None and root.memory != "global":
                total = array.nbytes // self._smallest(root.number, array)
                base = access.cells[root.number] = Cells(
                    root.name, MEMORIES.get(root.memory, root.memory), (total,), UNWRITTEN, self.pipes
                )
            return base.view(buffer.name, array.shape) if base is not None else None
        if buffer is None or buffer.memory == "global":
            return None
        if number in self.runner.pooled:
            return self._placed(access, buffer, array)
        if number in self.viewed:
            total = array.nbytes // self._smallest(number, array)
            base = Cells(buffer.name, self.memory_of(number), (total,), UNWRITTEN, self.pipes)
            return base.view(buffer.name, array.shape)
        return self.fresh(number, array)

    def _placed(self, access: Watched, buffer: Buffer, array: np.ndarray) -> Cells:
        """A buffer at an address given by hand, in a memory in which such buffers overlap: byte by byte."""
        memory = access.pools.get(buffer.memory)
        if memory is None:
            size = self.runner.pool_sizes[buffer.memory]
            memory = access.pools[buffer.memory] = Cells("", self.memory_of(buffer.number), (size,), 0, self.pipes)
        start = self.runner.pooled[buffer.number]
        return memory.view(buffer.name, array.shape, slice(start, start + array.nbytes))

    def fresh(self, number: int, array: np.ndarray) -> Cells:
        """Cells of an on-chip buffer that nothing has written."""
        return Cells(self.runner.names[number], self.memory_of(number), array.shape, UNWRITTEN, self.pipes)

    def memory_of(self, number: int) -> str:
        """The memory of a buffer, as reports name it."""
        buffer = self.runner.buffers.get(number)
        return MEMORIES.get(buffer.memory, buffer.memory) if buffer is not None else "GM"

    def _smallest(self, root: int, array: np.ndarray) -> int:
        """Bytes of the smallest element type among a buffer and its views."""
        sizes = [array.itemsize]
        for buffer in self.runner.buffers.values():
            top = buffer
            while top.alias is not None:
                top = top.alias
            if top.number == root:
                sizes.append(self.runner.itemsize(buffer))
        return min(sizes)

    def _grain(self, number: int, array: np.ndarray) -> int:
        return array.itemsize // self._smallest(number, array)

    def place(self, step: Step | None, site: int, pipe: int, sites: list[Site]) -> int:
        """The number of a place: line, operator, pipe."""
        key = (id(step) if step is not None else 0, site, pipe)
        found = self.place_numbers.get(key)
        if found is None:
            found = self.place_numbers[key] = len(self.places)
            self.places.append((sites[site], step.operator if step is not None else "", pipe))
        return found

    def unordered(self, previous: Any, thread: int) -> Any:
        """Which of these events the thread does not come after; None if it comes after all of them."""
        if isinstance(previous, int):
            event = abs(previous)
            if event < self.first_launch:
                return None
            if event >= self._mine and self.clocks.now[thread, self._column(event)] >= self.events.time[event]:
                return None
            return np.bool_(True)
        if previous.size == 0:
            return None
        low, high = int(previous.min()), int(previous.max())
        events = previous
        if low < 0:  # undefined data: the number of the event is negative
            events = np.abs(previous)
            low, high = int(events.min()), int(events.max())
        if high < self.first_launch:
            return None
        if high == low:
            return self.unordered(high, thread)
        top = events == high
        if (top | (events == low)).all():  # two events, most often of the two vector cores, or one and nothing
            parts = [self.unordered(number, thread) is not None for number in (low, high)]
            return None if not any(parts) else np.bool_(True) if all(parts) else top if parts[1] else ~top
        late = (events >= self._mine) & (self.clocks.now[thread, self._column(events)] >= self.events.time[events])
        bad = (events >= self.first_launch) & ~late
        return bad if bad.any() else None

    @property
    def _mine(self) -> int:
        """Events from this number on have clocks that can be compared."""
        return self.first_launch if self.together else self.first_block

    def _column(self, event: Any) -> Any:
        threads = self.events.thread[event]
        return threads if self.together else threads % self.per_block

    def same_block(self, numbers: np.ndarray, block: int) -> np.ndarray:
        """Which events are of a block."""
        return np.asarray(self.events.thread[numbers] // self.per_block == block)

    def party(self, event: int, action: str) -> Party:
        """Who made an event."""
        if event <= HOST:
            return Party(Site("<host>", 0), action, "host", 0)
        per_block, per_core = next((b, c) for first, b, c in reversed(self.block_of_event) if first <= event)
        site, operator, pipe = self.places[self.events.place[event]]
        block, local = divmod(int(self.events.thread[event]), per_block)
        core = local // per_core
        name = self.block_name if self.gpu else "aic" if core == 0 else f"aiv{core - 1}"
        if self.events.atomic[event]:
            action = "Atomic"
        return Party(site, action, name, block, "" if self.gpu else PIPES[pipe], operator)

    def core_name(self, core: Core) -> str:
        """``aic``, ``aiv0``, ``aiv1``, ``gpu``."""
        return {"C": "aic", "V": f"aiv{core.number}", "G": self.block_name}[core.kind]


class Inputs:
    """Of one call: by number of the buffer, what was read along each axis, and the first load that lies outside.

    A load wholly outside of an input, while parts of it are never read, is a wrong index. Such a load alone is none:
    the last tile of a grid that is rounded up may begin behind the end.
    """

    def __init__(self) -> None:
        self.read: dict[int, list[np.ndarray]] = {}
        self.behind: dict[int, Party] = {}

    def reach(self, number: int, array: np.ndarray, key: Any) -> None:
        """Elements are read: an index or a slice for each axis, None for all."""
        axes = self.read.get(number)
        if axes is None:
            axes = self.read[number] = [np.zeros(size, bool) for size in array.shape]
        if key is None or len(axes) != array.ndim:
            key = (slice(None),) * len(axes)
        for axis, part in zip(axes, key, strict=False):
            axis[part] = True

    def faults(self, names: dict[int, str]) -> list[Hazard]:
        """The loads that missed their tensor."""
        found = []
        for number, party in self.behind.items():
            axes = self.read.get(number, [np.zeros(1, bool)])
            rest = [(n, np.flatnonzero(~axis)[0]) for n, axis in enumerate(axes) if not axis.all()]
            if not rest:
                continue
            some = all(axis.any() for axis in axes)
            what = f"no load reaches element {rest[0][1]} of axis {rest[0][0]}" if some else "nothing reads it"
            message = f"out-of-bounds access: {party} lies wholly outside of {names[number]}, and {what}"
            found.append(Hazard(OUT_OF_BOUNDS, message, "GM", names[number], None, party, WARNING))
        return found
