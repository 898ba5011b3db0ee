"""Access that records: every read and write is held against what came before it.

What a statement writes is entered when the statement is over (at the next ``begin``, or when the core stops), so that
the order in which an operator looks at its operands does not matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tl2npu.simulator.hazards import hazard as kinds
from tl2npu.simulator.hazards.definedness import Gap, spread
from tl2npu.simulator.hazards.hazard import Hazard, Party, conflict
from tl2npu.simulator.hazards.pipes import MTE1, MTE2, PIPES, S, Step, V
from tl2npu.simulator.hazards.shadow import Cells, Layer
from tl2npu.simulator.ir.stmt import Site
from tl2npu.simulator.machine.access import Access, Index

if TYPE_CHECKING:
    from tl2npu.simulator.hazards.observer import Observer
    from tl2npu.simulator.machine.sync import Core

_NEVER = Step(Site("<compiler>", 0), "", S)


class Watched(Access):
    """The memory accesses of one core in one block."""

    def __init__(self, observer: Observer, core: Core, names: dict[int, str], sites: list[Site]) -> None:
        super().__init__(names, sites)
        self.observer = observer
        self.core = core
        self.cells: dict[int, Cells | None] = {}
        self.step = _NEVER
        self.step_site = -1
        self.steps = observer.steps
        self.thread = observer.thread(core)
        self.base = core.block * observer.per_block
        self.offset = observer.offset(core)
        self.step_event = 0
        self.step_reads = False
        self.known: dict[tuple[int, int, bool], tuple[int, int]] = {}
        self.writes: list[tuple[Cells, Any, bool, int]] = []
        self.gaps: list[Gap] = []
        self.suspects: list[Suspect] = []
        self.memory: dict[int, tuple[int, int]] = {}
        """Address and bytes of the buffers that were seen."""
        self.renamed: set[int] = set()
        """Buffers whose name has got other memory."""
        self.loading = False
        self.pools: dict[str, Cells] = {}
        """The cells of memories in which buffers overlap."""

    # statements

    def begin(self, number: int) -> None:
        """A statement begins (the program calls this)."""
        if self.writes or self.gaps:
            self.flush()
        before = self.step
        if before.rebinds >= 0:
            self.cells.pop(before.rebinds, None)
            self.renamed.add(before.rebinds)
        self.step, self.step_site = self.steps[number]
        self.step_event = 0
        self.step_reads = False
        if self.observer.pipes:
            self.observer.issue(self.thread, before, self.step)
        if self.step.gemm:
            self.observer.flags.product(self.core, self.step_site)

    def flush(self) -> None:
        """The statement is over: enter what it wrote."""
        gaps, self.gaps = self.gaps, []
        writes, self.writes = self.writes, []
        if self.suspects:
            for suspect in self.suspects:
                suspect.judge(self.observer)
            self.suspects.clear()
        for cells, key, full, event in writes:
            cells.put(cells.state.writer, key, full, event)
            if gaps:
                spread(self, cells, key, full, event, gaps)
        if gaps and not writes:
            for gap in gaps:
                self.observer.report.uninitialised(self, gap)

    def settle(self) -> None:
        """The core stops for now, or is done."""
        if self.writes or self.gaps:
            self.flush()

    # accesses

    def used(self, number: int, lanes: np.ndarray) -> None:
        gap = self.gaps[-1] if self.gaps else None
        if gap is None or gap.number != number or gap.apart:
            return  # all of it has been written
        if gap.mask is not None:
            mask = np.asarray(gap.mask)
            lanes = mask & (lanes if mask.ndim == lanes.ndim else lanes[..., None])
        gap.mask, gap.apart = lanes, True
        if not lanes.any():
            self.gaps.pop()

    def view(self, number: int, array: np.ndarray, starts: Index, extents: Index, kind: str, site: int) -> np.ndarray:
        key = tuple([slice(s, s + e) for s, e in zip(starts, extents, strict=True)])
        full = True
        for start, extent, size in zip(starts, extents, array.shape, strict=True):
            if start < 0 or start + extent > size or extent < 0:
                self.outside(number, array, starts, extents, site)
            if extent != size:
                full = False
        self._touch(number, array, key, full, kind, site)
        return array[key]

    def whole(self, number: int, array: np.ndarray, kind: str, site: int) -> np.ndarray:
        self._touch(number, array, None, True, kind, site)
        return array

    def tail(self, number: int, array: np.ndarray, index: Index, kind: str, site: int) -> np.ndarray:
        """How much of it is used is not known: it counts as written, its first element as read."""
        rest = super().tail(number, array, index, kind, site)
        key = tuple(slice(int(i), int(i) + 1) for i in index)
        if "r" in kind:
            self._touch(number, array, key, False, "r", site)
        if "w" in kind:
            cells = self._cells(number, array)
            if cells is not None and not cells.checked:
                event = self._event(site, False)
                numbers = np.array(np.broadcast_to(cells.get(cells.state.writer, cells.full, True), cells.shape))
                first = array.size - rest.size
                numbers.reshape(array.size, -1)[first:] = event
                cells.put(cells.state.writer, cells.full, True, numbers)
            else:
                self._touch(number, array, key, False, "w", site)
        return rest

    def touch(self, number: int, array: np.ndarray, key: Any, kind: str, site: int) -> None:
        if not self.loading:
            self._touch(number, array, key, False, kind, site)
            return
        if self.writes:
            self.flush()
        cells = self._cells(number, array)
        if cells is not None:
            self._scalar(cells, key, site)
        else:
            self.observer.inputs.reach(number, array, key)

    def behind(self, number: int, site: int) -> None:
        self.observer.inputs.behind.setdefault(number, self.party(site, "Read"))

    def load(self, number: int, array: np.ndarray, index: Index, site: int) -> Any:
        self.loading = True
        try:
            return super().load(number, array, index, site)
        finally:
            self.loading = False

    def _several(self, number: int, site: int) -> None:
        """Reports, then raises: what the element holds depends on the order of the lanes."""
        memory = self.observer.memory_of(number)
        party = self.party(site, "Write")
        message = (
            f"Potential WAW hazard at {memory}: {party} writes one element of {self.names[number]} with different "
            "values in several iterations of a T.Parallel"
        )
        self.observer.report.add(Hazard(kinds.WAW, message, memory, self.names[number], party, party), quiet=True)
        super()._several(number, site)

    def outside(
        self, number: int, array: np.ndarray, starts: Index, extents: Index, site: int, axis: int | None = None
    ) -> None:
        """Reports, then raises OutOfBounds: there is no going on."""
        try:
            super().outside(number, array, starts, extents, site, axis)
        except Exception as error:
            cells = self._cells(number, array)
            memory = cells.memory if cells is not None else self.observer.memory_of(number)
            party = Party(self.sites[site], "Access", self.observer.core_name(self.core), self.core.block)
            message = str(getattr(error, "plain", error)) + f" at {self.sites[site]}"
            found = Hazard(kinds.OUT_OF_BOUNDS, message, memory, self.names[number], None, party)
            self.observer.report.add(found, quiet=True)
            raise

    # recording

    def _cells(self, number: int, array: np.ndarray) -> Cells | None:
        try:
            found = self.cells[number]
        except KeyError:
            found = self._elsewhere(array) if number in self.renamed else None
            found = self.cells[number] = found or self.observer.cells_of(self, number, array)
            self.memory[number] = (array.ctypes.data, array.nbytes)
        if found is not None and found.shape[: array.ndim] != array.shape:
            return self._reshaped(number, array, found)
        return found

    def _elsewhere(self, array: np.ndarray) -> Cells | None:
        """The cells of a name that has got the memory of another buffer."""
        address = array.ctypes.data
        for number, (start, size) in self.memory.items():
            cells = self.cells.get(number)
            if cells is not None and cells.window is None and start <= address <= start + size - array.nbytes:
                grain = max(size // max(cells.state.writer.size, 1), 1)
                if array.itemsize % grain:
                    return None
                first = (address - start) // grain
                return cells.view(cells.name, array.shape, slice(first, first + array.nbytes // grain))
        return None

    def _reshaped(self, number: int, array: np.ndarray, cells: Cells) -> Cells:
        """An operator sees a buffer, or a part of it, with another shape, or has given its name to other memory."""
        if number not in self.memory:  # a view of it was seen first
            whole = self.cells[number] = cells.view(cells.name, array.shape)
            self.memory[number] = (array.ctypes.data, array.nbytes)
            return whole
        start, size = self.memory[number]
        offset = array.ctypes.data - start
        grain = max(size // max(cells.state.writer.size, 1), 1)
        if cells.window is None and 0 <= offset <= size - array.nbytes and array.flags.c_contiguous:
            return cells.view(cells.name, array.shape, slice(offset // grain, (offset + array.nbytes) // grain))
        fresh = self.cells[number] = self.observer.fresh(number, array)
        self.memory[number] = (array.ctypes.data, array.nbytes)
        return fresh

    def _touch(self, number: int, array: np.ndarray, key: Any, full: bool, kind: str, site: int) -> None:
        if kind == "r":
            self.step_reads = True
        cells = self._cells(number, array)
        if cells is None:
            self.observer.inputs.reach(number, array, key)
        if cells is None or (self.step.prints and site == self.step_site):
            return
        if self.writes and site != self.step_site:
            self.flush()
        if key is None:
            key = cells.full
        if kind == "r":
            self._read(cells, key, full, site, number)
        elif kind == "w":
            if isinstance(key, tuple) and any(map(_is_empty, key)):
                cells.state.passed_by = True
            self._write(cells, key, full, site, array, False)
        elif kind == "rw":
            self._read(cells, key, full, site, number)
            self._write(cells, key, full, site, array, False)
        else:
            self._read(cells, key, full, site, number, atomic=True)
            self._write(cells, key, full, site, array, True)

    def _scalar(self, cells: Cells, index: Index, site: int) -> None:
        """The scalar unit reads an element."""
        here = site == self.step_site
        if here and self.step.parallel:
            self._read(cells, index, False, site, -1, pipe=self.step.pipe)
            return
        if here and self.step.waits and self.observer.pipes:
            self.observer.barrier(self.thread)
        self._read(cells, index, False, site, -1, pipe=S)

    def _thread(self, site: int, pipe: int | None) -> int:
        """The thread of an access: the core, or the pipe that does it."""
        if not self.observer.pipes:
            return self.thread
        if pipe is None:
            pipe = self.step.pipe if site == self.step_site else V if self.core.kind == "V" else S
        return self.thread + pipe

    def _event(self, site: int, atomic: bool, pipe: int | None = None) -> int:
        """The number of an access; the accesses of a statement, and its repetitions at one time, have one number."""
        usual = pipe is None and not atomic and site == self.step_site
        if usual and self.step_event:
            return self.step_event
        observer = self.observer
        thread = self._thread(site, pipe)
        if pipe is None:
            pipe = self.step.pipe if site == self.step_site else S
        place = observer.place(self.step if site == self.step_site else None, site, pipe, self.sites)
        time = observer.clocks.stamp(thread)
        key = (place, thread, atomic)
        found = self.known.get(key)
        if found is None or found[0] != time:
            event = observer.events.add(self.base + thread - self.offset, time, place, atomic)
            found = self.known[key] = (time, event)
        if usual:
            self.step_event = found[1]
        return found[1]

    def _read(
        self, cells: Cells, key: Any, full: bool, site: int, number: int, atomic: bool = False, pipe: int | None = None
    ) -> None:
        state = cells.state
        state.read = True
        previous = cells.get(state.writer, key, full)
        if isinstance(previous, int):
            if previous <= 0:
                self._gap(Gap(cells, None, previous, site, number, None, pipe, atomic))
        elif previous.size == 0:
            return
        elif previous.min() <= 0:
            self._gap(Gap(cells, previous <= 0, previous, site, number, None, pipe, atomic))
        if not cells.checked:
            return
        if pipe is None and self.step.gemm and site == self.step_site and number in self.step.operands:
            pipe = MTE1
        thread = self._thread(site, pipe)
        event = 0
        if not atomic:
            bad = self.observer.unordered(previous, thread)
            if bad is not None:
                event = self._event(site, False, pipe)
                self._late_read(cells, key, full, bad, thread, event)
        if state.displaced is not None and not atomic:
            early = cells.get(state.displaced, key, full)
            bad = self.observer.unordered(early, thread)
            if bad is not None:
                event = event or self._event(site, False, pipe)
                self._conflicts(kinds.RAW, cells, early, bad & self.observer.events.atomic[np.abs(early)], event)
        if atomic:
            return
        local = thread % self.observer.per_block
        layer = state.reads.get(local)
        event = event or self._event(site, False, pipe)
        if layer is None:
            layer = state.reads[local] = Layer(state.writer.size)
        elif cells.shared:
            self._displace(cells, cells.get(layer, key, full), key, full, thread)
        cells.put(layer, key, full, event)

    def _late_read(self, cells: Cells, key: Any, full: bool, bad: Any, thread: int, event: int) -> None:
        """A read that does not come after the write that it sees; another write of the same value may be in order."""
        state = cells.state
        if state.twin is not None:
            twin = cells.get(state.twin, key, full)
            later = self.observer.unordered(twin, thread)
            bad = bad & (np.asarray(twin) == 0) if later is None else bad & (later | (np.asarray(twin) == 0))
        self._conflicts(kinds.RAW, cells, cells.get(state.writer, key, full), bad, event)

    def _displace(self, cells: Cells, old: Any, key: Any, full: bool, thread: int) -> None:
        """Keep an access that a later one, which does not come after it, is about to push out of its layer."""
        bad = self.observer.unordered(old, thread)
        if bad is None:
            return
        state = cells.state
        if state.displaced is None:
            state.displaced = Layer(state.writer.size)
        kept = cells.get(state.displaced, key, full)
        cells.put(state.displaced, key, False, np.where(bad, np.abs(old), kept))

    def _write(self, cells: Cells, key: Any, full: bool, site: int, array: np.ndarray, atomic: bool) -> None:
        pipe = V if self.observer.pipes and self._pads(cells, site) else None
        if pipe is not None:
            self.observer.before_padding(self.thread)
        event = self._event(site, atomic, pipe)
        if cells.checked:
            self._check_write(cells, key, full, site, array, event, atomic, pipe)
        self.writes.append((cells, key, full, event))
        if pipe is not None:
            self.observer.clocks.follow(self.thread + MTE2, self.thread + V)

    def _pads(self, cells: Cells, site: int) -> bool:
        """True for the first write of a load that is clipped: the whole tile is filled before anything is read."""
        step = self.step
        loads = step.moves and step.pipe == MTE2 and site == self.step_site and cells.memory == "UB"
        return loads and not self.step_reads and not self.writes

    def _check_write(
        self,
        cells: Cells,
        key: Any,
        full: bool,
        site: int,
        array: np.ndarray,
        event: int,
        atomic: bool,
        pipe: int | None,
    ) -> None:
        observer, state = self.observer, cells.state
        thread = self._thread(site, pipe)
        found: list[tuple[str, Any, Any]] = []
        layers = [(kinds.WAW, state.writer), (kinds.WAW, state.twin), (kinds.WAR, state.displaced)]
        layers += [(kinds.WAR, layer) for layer in state.reads.values()]
        for kind, layer in layers:
            if layer is None:
                continue
            previous = cells.get(layer, key, full)
            bad = observer.unordered(previous, thread)
            if bad is None:
                continue
            if atomic:
                if layer is state.writer:
                    self._displace(cells, previous, key, full, thread)
                bad = bad & ~observer.events.atomic[np.abs(previous)]
            if np.any(bad):
                found.append((kind, previous if isinstance(previous, int) else previous.copy(), bad))
        if found and not atomic:
            self.suspects.append(Suspect(self, cells, array, key, full, found, event))
        else:
            for kind, previous, bad in found:
                self._conflicts(kind, cells, previous, bad, event)
        for layer in state.reads.values():
            cells.put(layer, key, full, 0)
        if state.displaced is not None and not atomic:
            cells.put(state.displaced, key, full, 0)
        if state.twin is not None:
            cells.put(state.twin, key, full, 0)

    def _gap(self, gap: Gap) -> None:
        """Something undefined is read."""
        if gap.cells.state.ends and not gap.source():
            self.observer.report.beyond(self, gap)
            return
        if gap.site == self.step_site and (gap.number >= 0 or self.step.element):
            gap.step = self.step
        self.gaps.append(gap)
        if gap.step is None:
            gaps, self.gaps = self.gaps, []
            for gap in gaps:
                self.observer.report.uninitialised(self, gap)

    def _conflicts(self, kind: str, cells: Cells, previous: Any, bad: Any, event: int, severity: str = "error") -> None:
        """Report the distinct events among those that are bad."""
        if not np.any(bad):
            return
        events, wrong = np.broadcast_arrays(np.abs(previous), bad)
        chosen = events[wrong]
        for number in np.unique(chosen)[:4]:
            first = self.observer.party(int(number), "Read" if kind == kinds.WAR else "Write")
            second = self.observer.party(event, "Read" if kind == kinds.RAW else "Write")
            self.observer.report.add(conflict(kind, cells.memory, cells.name, first, second, severity))

    def misaligned(self, number: int, what: str, size: int, block: int, site: int) -> None:
        """An address, a row or a length that the hardware cannot take."""
        if self.observer.gpu:
            return
        party = self.party(site, "Access", None if site == self.step_site else V)
        message = f"Misaligned access at UB: {party}: {what} is byte {size}, not a multiple of {block}"
        if not what.startswith("the first"):
            message = message.replace("is byte", "is").replace(", no", " bytes, no")
        self.observer.report.add(Hazard(kinds.MISALIGNED, message, "UB", self.names[number], None, party))

    def spill(self, number: int, array: np.ndarray, end: int, lanes: int) -> None:
        """What is behind a load in its last block counts as never written."""
        last = min(end + -end % lanes, array.size)
        cells = self._cells(number, array) if end < last else None
        if cells is not None:
            self.writes.append((cells, np.unravel_index(np.arange(end, last), array.shape), False, 0))

    def party(self, site: int, action: str, pipe: int | None = None) -> Party:
        """This core, at a line."""
        step = self.step if site == self.step_site else None
        unit = (step.pipe if step is not None else S) if pipe is None else pipe
        name = PIPES[unit] if not self.observer.gpu else ""
        operator = step.operator if step is not None else ""
        return Party(self.sites[site], action, self.observer.core_name(self.core), self.core.block, name, operator)


class Suspect:
    """An unordered write whose value decides: equal to what was there, it does no harm (both vector cores of a block
    do the same work where a kernel ignores ``vid``, issue #1783; a constant tile is loaded again in each round)."""

    def __init__(
        self, access: Watched, cells: Cells, array: np.ndarray, key: Any, full: bool, found: list[Any], event: int
    ) -> None:
        self.access, self.cells, self.array, self.key, self.full = access, cells, array, key, full
        self.found, self.event = found, event
        self.before = array[key].copy()

    def judge(self, observer: Observer) -> None:
        """Report, or remember the other writer of the same value."""
        after = np.asarray(self.array[self.key])
        same = _bits_equal(np.asarray(self.before), after)
        if len(self.cells.shape) > self.array.ndim:
            same = same[..., None]  # several grains of a view's memory to an element
        for kind, previous, bad in self.found:
            wrong = np.asarray(bad) & ~same
            if np.any(wrong):
                self.access._conflicts(kind, self.cells, np.broadcast_to(previous, wrong.shape), wrong, self.event)
            equal = np.asarray(bad) & same
            if not np.any(equal):
                continue
            numbers = np.broadcast_to(np.abs(previous), equal.shape)
            other = equal & ~observer.same_block(numbers, self.access.core.block)
            if kind == kinds.WAW and np.any(other):
                self.access._conflicts(kind, self.cells, numbers, other, self.event, kinds.NOTE)
            if kind == kinds.WAW:
                self._remember(numbers, equal)

    def _remember(self, numbers: np.ndarray, equal: np.ndarray) -> None:
        state = self.cells.state
        if state.twin is None:
            state.twin = Layer(state.writer.size)
        kept = np.broadcast_to(np.asarray(self.cells.get(state.twin, self.key, self.full)), equal.shape)
        self.cells.put(state.twin, self.key, False, np.where(equal, numbers, kept))


def _bits_equal(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    if before.dtype.itemsize not in (1, 2, 4, 8) or before.dtype.hasobject:
        return np.asarray(before == after)
    kind = np.dtype(f"u{before.dtype.itemsize}")
    return np.asarray(np.ascontiguousarray(before).view(kind) == np.ascontiguousarray(after).view(kind)).reshape(
        before.shape
    )


def _is_empty(index: Any) -> bool:
    """Whether an index along an axis takes nothing, as of a load that begins behind the end of its tensor."""
    if isinstance(index, slice):
        return index.start is not None and index.stop is not None and index.stop <= index.start
    return not isinstance(index, int) and np.size(index) == 0
