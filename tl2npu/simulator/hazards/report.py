"""Collects what observers find, over all calls of a session."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tl2npu.devices import DEFAULT_DEVICE, Device
from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.hazards import hazard as kinds
from tl2npu.simulator.hazards.hazard import ERROR, Hazard, Party
from tl2npu.simulator.ir.stmt import NOWHERE, Site

if TYPE_CHECKING:
    from tl2npu.simulator.hazards.definedness import Gap
    from tl2npu.simulator.hazards.observer import Observer
    from tl2npu.simulator.hazards.shadow import Cells
    from tl2npu.simulator.hazards.watched import Watched


class HazardFound(SimulatorError):
    """A hazard, where hazards are fatal."""

    def __init__(self, hazard: Hazard) -> None:
        super().__init__(hazard.message, hazard.site or NOWHERE)
        self.hazard = hazard


@dataclass(frozen=True)
class Writer:
    """Who wrote an element last. ``core``: aic, aiv0, aiv1, gpu."""

    site: Site
    operator: str
    core: str
    block: int

    def __str__(self) -> str:
        where = f"block {self.block}" + (f" ({self.core})" if self.core != "gpu" else "")
        return f"{self.operator or 'statement'} at {self.site} in {where}"


class Report:
    """``fatal``: the first hazard that is no note raises HazardFound. ``device``: whose memories kernels must fit."""

    def __init__(self, fatal: bool = False, device: Device = DEFAULT_DEVICE) -> None:
        self.fatal = fatal
        self.device = device
        self._found: dict[Any, Hazard] = {}
        self._last: Observer | None = None

    def observer(self) -> Observer:
        """A fresh observer for one call of a kernel: give this method to ``Session(watch=...)``."""
        from tl2npu.simulator.hazards.observer import Observer

        self._last = Observer(self)
        return self._last

    @property
    def hazards(self) -> tuple[Hazard, ...]:
        """All findings, in the order in which they showed; equal ones once, with their count."""
        return tuple(self._found.values())

    @property
    def errors(self) -> tuple[Hazard, ...]:
        """Findings that are errors."""
        return tuple(h for h in self.hazards if h.severity == ERROR)

    def lines(self) -> Iterator[str]:
        """One line of text per finding."""
        for hazard in self.hazards:
            times = f" ({hazard.count} times)" if hazard.count > 1 else ""
            yield f"{hazard.severity}: {hazard.message}{times}"

    def json(self) -> list[dict[str, Any]]:
        """Plain values."""
        return [hazard.json() for hazard in self.hazards]

    def clear(self) -> None:
        """Forget all findings."""
        self._found.clear()

    def add(self, hazard: Hazard, quiet: bool = False) -> None:
        """One finding. ``quiet``: an exception is on its way that says the same."""
        known = self._found.get(hazard.key)
        self._found[hazard.key] = hazard if known is None else replace(known, count=known.count + 1)
        if self.fatal and hazard.severity == ERROR and not quiet:
            raise HazardFound(hazard)

    def without_races(self, block: int, core: str) -> None:
        """Forget the accesses of a core that nothing orders: it never comes to them."""
        own = {
            key
            for key, one in self._found.items()
            if one.kind in kinds.RACES
            and one.second is not None
            and (one.second.block, one.second.core) == (block, core)
        }
        self._found = {key: one for key, one in self._found.items() if key not in own}

    def writer(self, buffer: str, index: tuple[int, ...]) -> Writer | None:
        """The statement that wrote an element of a tensor in the last call; None if none did.

        ``buffer``: a parameter or an automatic workspace, by name. Raises KeyError for a name that the call had not.
        """
        observer = self._last
        if observer is None:
            return None
        for cells in observer.tensors.values():
            if cells.name == buffer:
                event = abs(int(np.max(np.abs(cells.get(cells.state.writer, tuple(index), False)))))
                if event <= 1:
                    return None
                who = observer.party(event, "Write")
                return Writer(who.site, who.operator, who.core, who.block)
        if buffer in observer.runner.names.values():
            return None
        raise KeyError(buffer)

    def writers(self, buffer: str) -> tuple[np.ndarray, tuple[Writer | None, ...]] | None:
        """Who wrote each element of a tensor in the last call: numbers, in the tensor's shape, of a list of writers.

        None in the list: nothing wrote it. None at all where the call had no such tensor, or only read it.
        """
        observer = self._last
        for cells in observer.tensors.values() if observer is not None else ():
            if cells.name != buffer:
                continue
            shape = cells.shape[: len(cells.full)]
            found = np.abs(np.asarray(cells.get(cells.state.writer, cells.full, True)))
            if found.ndim > len(shape):
                found = found.max(axis=-1)
            present = np.zeros(int(found.max(initial=0)) + 1, np.bool_)  # events are numbered, so nothing is sorted
            present[found] = True
            numbers = np.cumsum(present, dtype=np.int32) - np.int32(1)
            assert observer is not None
            parties = [observer.party(int(e), "Write") if e > 1 else None for e in np.flatnonzero(present)]
            known = tuple(None if p is None else Writer(p.site, p.operator, p.core, p.block) for p in parties)
            return np.broadcast_to(numbers[found], shape), known
        return None

    def undefined(self, buffer: str) -> np.ndarray | None:
        """Where undefined data was left in a tensor in the last call; None where there is none."""
        observer = self._last
        for cells in observer.tensors.values() if observer is not None else ():
            if cells.name == buffer and cells.state.tainted:
                shape = cells.shape[: len(cells.full)]
                found = np.asarray(cells.get(cells.state.writer, cells.full, True)) < 0
                return np.broadcast_to(found.any(axis=-1) if found.ndim > len(shape) else found, shape)
        return None

    # reads of unwritten memory

    def uninitialised(self, access: Watched, gap: Gap) -> None:
        """Undefined data is used."""
        cells = gap.cells
        party = access.party(gap.site, "Read", gap.pipe)
        what = "" if gap.mask is None or bool(np.all(gap.mask)) else "elements of "
        message = f"Uninitialised read at {cells.memory}: {party} reads {what}{cells.name} that nothing wrote"
        if what == "":
            message = f"Uninitialised read at {cells.memory}: {party} reads {cells.name}, which nothing wrote"
        source = gap.source()
        first: Party | None = None
        if source:
            moved = first = access.observer.party(source, "Write")
            message += f" but {moved.operator or 'a statement'} at {moved.site} with undefined data"
        self.add(Hazard(kinds.UNINITIALISED, message, cells.memory, cells.name, first, party))

    def beyond(self, access: Watched, gap: Gap) -> None:
        """What lies behind the end of a caller's tensor is read: other memory, if there is any."""
        party = access.party(gap.site, "Read", gap.pipe)
        message = f"out-of-bounds access: {party} reads behind the end of the tensor given for {gap.cells.name}"
        self.add(Hazard(kinds.OUT_OF_BOUNDS, message, "GM", gap.cells.name, None, party))

    def undefined_output(self, observer: Observer, cells: Cells) -> None:
        """Undefined data is left in a tensor that the caller sees."""
        values = np.broadcast_to(np.asarray(cells.get(cells.state.writer, cells.full, True)), cells.shape)
        negative = values[values < 0]
        if negative.size == 0:
            return
        event = int(-negative[0])
        party = observer.party(event, "Write")
        source = origin = observer.origins.get(event)
        while source is not None and source[0] in observer.origins:
            source = observer.origins[source[0]]
        message = (
            f"Uninitialised read at GM: {party} leaves undefined data in {negative.size} element(s) of {cells.name}"
        )
        first = None
        if source is not None and origin is not None:
            first = source[1]
            operator = first.operator or "a statement"
            message += (
                f"; it comes from {source[2].name}, which {operator} at {first.site} reads where nothing wrote it"
            )
        self.add(Hazard(kinds.UNINITIALISED, message, "GM", cells.name, first, party))

    def unwritten_output(self, observer: Observer, cells: Cells, before: int) -> None:
        """Elements of an output that no store reaches; ``before``: the event of what they held before the call."""
        shape = cells.shape[: len(cells.full)]
        found = np.broadcast_to(np.asarray(cells.get(cells.state.writer, cells.full, True)), cells.shape)
        left = (found == before).reshape(*shape, -1).all(axis=-1)
        if not left.any() or (before and left.all()):  # nothing at all is left to another call
            return
        last = int(np.abs(found).max())
        party = None if left.all() else observer.party(last, "Write")
        element = f"{cells.name}[{', '.join(map(str, np.argwhere(left)[0]))}]"
        others = f" (others at {party.site})" if party is not None else ""
        rest = "they keep their values" if before else "the caller gets what was in memory"
        message = f"Never written: {np.count_nonzero(left):,} of {left.size:,} elements of {cells.name}, "
        message += f"the first {element}{others}; {rest}"
        severity = kinds.NOTE if before else kinds.WARNING
        self.add(Hazard(kinds.UNWRITTEN_OUTPUT, message, "GM", cells.name, None, party, severity))
