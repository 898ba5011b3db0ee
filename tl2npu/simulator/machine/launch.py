"""Runs the launches of a lowered kernel on arrays."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.ir.buffer import Buffer
from tl2npu.simulator.ir.evaluate import number
from tl2npu.simulator.ir.expr import Expr, Var, substitute
from tl2npu.simulator.ir.stmt import Alloc, Launch, Site, Stmt
from tl2npu.simulator.ir.stmt import walk as statements
from tl2npu.simulator.lowering.program import Program
from tl2npu.simulator.machine.access import Access
from tl2npu.simulator.machine.emit import Emitter
from tl2npu.simulator.machine.sync import Core, Sync


class Deadlock(SimulatorError):
    """No core can go on."""


@dataclass(eq=False)
class Compiled:
    """One core kind's program as a Python function; ``local`` are its on-chip arguments, ``needed`` those it uses."""

    kind: str
    count: int
    function: Any
    local: list[Buffer]
    needed: set[int]
    source: str
    vid: Var | None


@dataclass(eq=False)
class Runner:
    """One launch, compiled for one arithmetic. ``parameters``: tensors and scalars that the launch may use.

    ``cores`` are the programs for an observer, which is told of every access; without one, programs are used that
    index plainly where an access is inside of its buffer whatever the indices are.
    """

    program: Program
    arithmetic: Any
    parameters: list[Buffer | Var]
    sites: list[Site] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.launch: Launch = self.program.launch
        self.names = {b.number: b.name for b in self.parameters if isinstance(b, Buffer)}
        self.checked: frozenset[int] = frozenset()
        self.cores = self._programs(direct=False)
        self.unwatched: list[Compiled] | None = None

    def _programs(self, direct: bool) -> list[Compiled]:
        return [self._compile(kind, count, body, direct) for kind, count, body in self.program.cores if body]

    def _ranges(self, count: int) -> dict[Var, tuple[int, int]]:
        """What values the indices of blocks and vector cores have."""
        pairs = zip(self.launch.blocks, self.launch.extents, strict=True)
        ranges = {var: (0, extent - 1) for var, extent in pairs if isinstance(extent, int)}
        if self.program.vid is not None:
            ranges[self.program.vid] = (0, count - 1)
        return ranges

    def _compile(self, kind: str, count: int, body: list[Stmt], direct: bool) -> Compiled:
        emitter = Emitter(not self.launch.is_npu, self.arithmetic, self.sites, direct, self._ranges(count))
        bodies = [inner for _, _, inner in self.program.cores]
        found = {s.buffer: None for inner in bodies for s in statements(inner) if isinstance(s, Alloc)}
        shared = {w.number for w in self.program.workspaces}
        allocated = [b for b in dict.fromkeys([*found, *self.program.extra]) if b.number not in shared]
        block_vars = [*self.launch.blocks, *([self.program.vid] if self.program.vid is not None else [])]
        symbols = list(dict.fromkeys(self.program.symbols))
        signature: list[Any] = [*symbols, *block_vars, *self.parameters_once(symbols), *allocated]
        source, space = emitter.program(signature, body)
        if self.program.checks and not self.launch.is_npu:
            self.checked |= {n for n, b in emitter.buffers.items() if b.memory == "global"}
        for number, buffer in emitter.buffers.items():
            self.names.setdefault(number, buffer.name)
        views = [b for b in emitter.buffers.values() if b not in signature]
        for buffer in views:
            if buffer.alias is None:
                raise SimulatorError(f"the buffer {buffer.name} is used where it does not exist")
        if views:
            head, _, rest = source.partition("\n")
            lines = []
            for buffer in _by_alias(views):
                space[f"dt{buffer.number}"] = self.arithmetic.storage(buffer.dtype)
                shape = ", ".join(emitter.code(d) for d in buffer.shape)
                lines.append(
                    f"    b{buffer.number} = _view(b{buffer.alias.number}, ({shape},), dt{buffer.number})"  # type: ignore[union-attr]
                )
            space["_view"] = _view
            source = "\n".join([head, *lines, rest])
        exec(compile(source, f"<{self.launch.site}:{kind}>", "exec"), space)
        used = set(emitter.buffers) | {b.alias.number for b in views if b.alias is not None}
        needed = {b.number for b in allocated if b.number in used}
        return Compiled(kind, count, space["program"], allocated, needed, source, self.program.vid)

    def parameters_once(self, symbols: list[Var]) -> list[Any]:
        """The parameters that are not symbols already."""
        return [p for p in self.parameters if p not in symbols]

    def run(self, values: dict[Var, Any], arrays: dict[int, np.ndarray], watch: Any = None) -> None:
        """Execute all blocks. ``values`` of symbols and scalar parameters; ``arrays`` of tensors by buffer number."""
        grid = [int(_number(e, values)) for e in self.launch.extents]
        blocks = list(itertools.product(*(range(n) for n in reversed(grid))))
        sync = Sync(max((c.count for c in self.cores if c.kind == "V"), default=1), len(blocks))
        sync.watcher = watch
        together = self.program.meets
        if watch is None and self.unwatched is None:
            self.unwatched = self._programs(direct=True)
        with np.errstate(all="ignore"):
            if together:
                self._schedule(
                    sync, [c for n, b in enumerate(blocks) for c in self._block(sync, n, b, values, arrays, watch)]
                )
                return
            for number, block in enumerate(blocks):
                self._schedule(sync, self._block(sync, number, block, values, arrays, watch))
                if watch is not None:
                    watch.end_block(number)

    def _block(
        self,
        sync: Sync,
        number: int,
        block: tuple[int, ...],
        values: dict[Var, Any],
        arrays: dict[int, Any],
        watch: Any,
    ) -> list[tuple[Core, Iterator[Any]]]:
        """The generators of the cores of one block."""
        running = []
        index = tuple(reversed(block))
        known = {**values, **dict(zip(self.launch.blocks, index, strict=True))}
        programs = self.cores if watch is not None or self.unwatched is None else self.unwatched
        for compiled in programs:
            for core_number in range(compiled.count):
                core = Core(number, compiled.kind, core_number)
                access = self.access(core, watch)
                local = [self.memory(b, known, b.number in compiled.needed) for b in compiled.local]
                symbols = list(dict.fromkeys(self.program.symbols))
                arguments: list[Any] = [known[s] for s in symbols]
                arguments += index
                if compiled.vid is not None:
                    arguments.append(core_number if compiled.kind == "V" else 0)
                for parameter in self.parameters_once(symbols):
                    arguments.append(arrays[parameter.number] if isinstance(parameter, Buffer) else values[parameter])
                running.append((core, compiled.function(access, sync, *arguments, *local)))
        return running

    def access(self, core: Core, watch: Any) -> Access:
        """How a core reaches memory."""
        access = Access(self.names, self.sites) if watch is None else watch.access(core, self.names, self.sites)
        access.core = core
        access.checked = self.checked
        return access  # type: ignore[no-any-return]

    def memory(self, buffer: Buffer, known: dict[Var, Any], needed: bool) -> np.ndarray | None:
        """Fresh memory of an on-chip buffer, poisoned."""
        if not needed:
            return None
        shape = tuple(int(_number(d, known)) for d in buffer.shape)
        return np.full(shape, self.arithmetic.poison(buffer.dtype), self.arithmetic.storage(buffer.dtype))

    def _schedule(self, sync: Sync, running: list[tuple[Core, Iterator[Any]]]) -> None:
        """Run cores in turn, each until it waits. Raises Deadlock where all wait."""
        while running:
            before = sync.progress
            waiting = []
            for core, steps in running:
                if next(steps, _DONE) is not _DONE:
                    waiting.append((core, steps))
            if len(waiting) == len(running) and sync.progress == before:
                lines = [f"{core} waits for {core.waits_for} at {self.sites[core.waits_at]}" for core, _ in waiting]
                raise Deadlock("deadlock: " + "; ".join(lines[:6]), self.sites[waiting[0][0].waits_at])
            running = waiting


_DONE = object()


def _number(value: Any, known: dict[Var, Any]) -> Any:
    return number(substitute(value, known)) if isinstance(value, Expr) else value


def _by_alias(views: list[Buffer]) -> list[Buffer]:
    """Views after what they are views of."""
    return sorted(views, key=lambda b: b.number)


def _view(array: np.ndarray, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    return array.reshape(-1).view(dtype).reshape(shape)
