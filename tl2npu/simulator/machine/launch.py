"""Runs the launches of a lowered kernel on arrays."""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tl2npu.devices import MOST_BLOCKS
from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.ir import dtypes
from tl2npu.simulator.ir.buffer import Buffer, Region
from tl2npu.simulator.ir.evaluate import number
from tl2npu.simulator.ir.expr import Expr, Load, Var
from tl2npu.simulator.ir.parts import substitute
from tl2npu.simulator.ir.stmt import Alloc, Launch, Op, Site, Stmt, Store
from tl2npu.simulator.ir.stmt import walk as statements
from tl2npu.simulator.lowering.program import Program
from tl2npu.simulator.lowering.uses import buffers
from tl2npu.simulator.machine.access import Access
from tl2npu.simulator.machine.emit import Emitter
from tl2npu.simulator.machine.sync import Core, Sync
from tl2npu.simulator.machine.watch import Made, Watcher
from tl2npu.simulator.operators.registry import meaning

POISON = 0xFF
"""The bytes of unwritten memory that has no element type: NaN as any float, -1 as a signed integer."""

Running = tuple[Core, Access, Iterator[Any]]
"""A core, how it reaches memory, its program."""


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
    emitter: Emitter


@dataclass(eq=False)
class Runner:
    """One launch, compiled for one arithmetic. ``parameters``: tensors and scalars that the launch may use.

    An observer is told of every access; without one, programs are used that index plainly where an access is inside of
    its buffer whatever the indices are. ``automatic_sync`` and ``planned``: what the compiler was told to do
    (``watch.WatchedRunner``).
    """

    program: Program
    arithmetic: Any
    parameters: list[Buffer | Var]
    automatic_sync: bool = True
    planned: bool = True
    addresses: Mapping[str, int] = field(default_factory=dict)
    sites: list[Site] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.launch: Launch = self.program.launch
        self.buffers = {b.number: b for b in self.parameters if isinstance(b, Buffer)}
        self.names = {number: b.name for number, b in self.buffers.items()}
        self.checked: frozenset[int] = frozenset()
        self.blocks = 0
        self.watched_statements: list[tuple[Stmt, bool, int]] = []
        self.pooled, self.pool_sizes = _pools(self.program, self.addresses, self.arithmetic)
        self.direct = False

    def compile(self, watched: bool) -> None:
        """Compile what a run with an observer, or one without, most likely takes. Raises SimulatorError."""
        _ = self.cores if watched or self.pooled else self.unwatched

    @functools.cached_property
    def cores(self) -> list[Compiled]:
        """The programs that tell an observer of every access."""
        return self._programs(direct=False)

    @functools.cached_property
    def unwatched(self) -> list[Compiled]:
        """The programs that index plainly where they may."""
        return self._programs(direct=True)

    def _programs(self, direct: bool) -> list[Compiled]:
        return [self._compile(kind, count, body, direct) for kind, count, body in self.program.cores if body]

    @functools.cached_property
    def written(self) -> set[int]:
        """Numbers of the tensors and buffers that a statement may write."""
        return {n for _, _, body in self.program.cores for n in _writes(body, not self.launch.is_npu)}

    def itemsize(self, buffer: Buffer) -> int:
        """Bytes that an element takes."""
        return int(np.dtype(self.arithmetic.storage(buffer.dtype)).itemsize)

    def _lend(self, arrays: dict[int, np.ndarray], blocks: int) -> dict[int, np.ndarray]:
        """The tensors, those that are factors of products only as the products take them, where that pays."""
        programs = self.unwatched
        borrowed = frozenset(n for c in programs for n in c.emitter.borrowed)
        bodies = [body for _, _, body in self.program.cores]
        lent = dict(arrays)
        for tensor in _factors(bodies, not self.launch.is_npu, borrowed) if borrowed else ():
            moved = blocks * sum(c.count * c.emitter.moved[tensor] for c in programs)
            if tensor in arrays and moved >= arrays[tensor].size:
                lent[tensor] = self.arithmetic.factor(arrays[tensor])
        return lent

    def _ranges(self, count: int) -> dict[Var, tuple[int, int]]:
        """What values the indices of blocks and vector cores have."""
        pairs = zip(self.launch.blocks, self.launch.extents, strict=True)
        ranges = {var: (0, extent - 1) for var, extent in pairs if isinstance(extent, int)}
        if self.program.vid is not None:
            ranges[self.program.vid] = (0, count - 1)
        return ranges

    def _compile(self, kind: str, count: int, body: list[Stmt], direct: bool) -> Compiled:
        gpu, truncates = not self.launch.is_npu, self.program.truncates
        emitter = Emitter(gpu, self.arithmetic, self.sites, direct, truncates, self._ranges(count))
        emitter.watched = None if direct else self.watched_statements
        emitter.in_blocks = not direct and self.launch.is_npu and not self.launch.npuir
        bodies = [inner for _, _, inner in self.program.cores]
        found = {s.buffer: None for inner in bodies for s in statements(inner) if isinstance(s, Alloc)}
        shared = {w.number for w in self.program.workspaces}
        allocated = [b for b in found if b.number not in shared]
        block_vars = [*self.launch.blocks, *([self.program.vid] if self.program.vid is not None else [])]
        symbols = self.program.symbols
        signature: list[Any] = [*symbols, *block_vars, *self.parameters_once(symbols), *allocated]
        if direct:
            emitter.written = frozenset(self.written)
        source, space = emitter.program(signature, body)
        if direct:
            borrowed = _tiles(body, gpu, emitter.copied)
            if borrowed:
                changed, ranges = emitter.written, self._ranges(count)
                emitter = Emitter(
                    gpu, self.arithmetic, self.sites, True, truncates, ranges, borrowed=borrowed, written=changed
                )
                source, space = emitter.program(signature, body)
        if self.program.checks and not self.launch.is_npu:
            self.checked |= {n for n, b in emitter.buffers.items() if b.memory == "global"}
        for buffer in emitter.buffers.values():
            self.names.setdefault(buffer.number, buffer.name)
            self.buffers.setdefault(buffer.number, buffer)
        views = [b for b in emitter.buffers.values() if b not in signature]
        for buffer in views:
            if buffer.alias is None:
                raise SimulatorError(f"the buffer {buffer.name} is used where it does not exist")
        if views:
            head, _, rest = source.partition("\n")
            lines = []
            for buffer in _by_alias(views):
                shape = ", ".join(emitter.code(d) for d in buffer.shape)
                lines.append(
                    f"    b{buffer.number} = _view(b{buffer.alias.number}, ({shape},), {buffer.dtype!r})"  # type: ignore[union-attr]
                )
            space["_view"] = functools.partial(_view, self.arithmetic)
            source = "\n".join([head, *lines, rest])
        exec(compile(source, f"<{self.launch.site}:{kind}>", "exec"), space)
        used = set(emitter.buffers) | {b.alias.number for b in views if b.alias is not None}
        needed = {b.number for b in allocated if b.number in used}
        return Compiled(kind, count, space["program"], allocated, needed, source, self.program.vid, emitter)

    def parameters_once(self, symbols: list[Var]) -> list[Any]:
        """The parameters that are not symbols already."""
        return [p for p in self.parameters if not any(p is s for s in symbols)]

    def run(
        self,
        values: dict[Var, Any],
        arrays: dict[int, np.ndarray],
        watch: Watcher | None = None,
        made: Made | None = None,
    ) -> None:
        """Execute all blocks. ``values`` of symbols and scalar parameters; ``arrays`` of tensors by buffer number;
        ``made``: those among them that the call made."""
        grid = [int(_number(e, values)) for e in self.launch.extents]
        if self.launch.is_npu and math.prod(grid) > MOST_BLOCKS:
            text = f"{math.prod(grid):,} blocks: a launch of more than {MOST_BLOCKS:,} fails with error 107000"
            raise SimulatorError(text, self.launch.site)
        blocks = list(itertools.product(*(range(n) for n in reversed(grid))))
        vectors = [count for kind, count, body in self.program.cores if kind == "V" and body]
        sync = Sync(max(vectors, default=1), len(blocks))
        sync.barriers = self._barriers()
        if watch is not None:
            self.compile(watched=True)
            self.blocks = len(blocks)
            watch.begin(self, arrays, made or Made())
            sync.watcher = watch
        self.direct = watch is None and _separate(arrays) and not self.pooled
        if self.direct:
            arrays = self._lend(arrays, len(blocks))
        with np.errstate(all="ignore"):
            if self.program.meets:
                self._schedule(
                    sync, [c for n, b in enumerate(blocks) for c in self._block(sync, n, b, values, arrays, watch)]
                )
            else:
                for number, block in enumerate(blocks):
                    self._schedule(sync, self._block(sync, number, block, values, arrays, watch))
                    if watch is not None:
                        watch.end_block(number, sync.left())
        if watch is not None:
            watch.end(self, sync.left())

    def _barriers(self) -> frozenset[str]:
        """The kinds of cores that come to a barrier of all cores."""
        return frozenset(
            kind
            for kind, _, body in self.program.cores
            if any(isinstance(s, Op) and s.name in ("sync_all", "sync_grid") for s in statements(body))
        )

    def _block(
        self,
        sync: Sync,
        number: int,
        block: tuple[int, ...],
        values: dict[Var, Any],
        arrays: dict[int, Any],
        watch: Watcher | None,
    ) -> list[Running]:
        """The generators of the cores of one block."""
        running: list[Running] = []
        index = tuple(reversed(block))
        known = {**values, **dict(zip(self.launch.blocks, index, strict=True))}
        symbols, parameters = self.program.symbols, self.parameters_once(self.program.symbols)
        programs = self.unwatched if self.direct else self.cores
        for compiled in programs:
            for core_number in range(compiled.count):
                core = Core(number, compiled.kind, core_number)
                access = self.access(core, watch)
                pools = {m: np.full(size, POISON, np.uint8) for m, size in self.pool_sizes.items()}
                local = [self.memory(b, known, b.number in compiled.needed, pools) for b in compiled.local]
                arguments: list[Any] = [known[s] for s in symbols]
                arguments += index
                if compiled.vid is not None:
                    arguments.append(core_number if compiled.kind == "V" else 0)
                for parameter in parameters:
                    arguments.append(arrays[parameter.number] if isinstance(parameter, Buffer) else values[parameter])
                running.append((core, access, compiled.function(access, sync, *arguments, *local)))
        return running

    def access(self, core: Core, watch: Watcher | None) -> Access:
        """How a core reaches memory."""
        access = Access(self.names, self.sites) if watch is None else watch.access(core, self.names, self.sites)
        access.core = core
        access.checked = self.checked
        return access

    def memory(
        self, buffer: Buffer, known: dict[Var, Any], needed: bool, pools: dict[str, np.ndarray]
    ) -> np.ndarray | None:
        """Fresh memory of an on-chip buffer, poisoned; a part of a pool for one that shares memory with others."""
        if not needed:
            return None
        shape = tuple(int(_number(d, known)) for d in buffer.shape)
        if buffer.number in self.pooled:
            start, dtype = self.pooled[buffer.number], self.arithmetic.storage(buffer.dtype)
            size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
            part: np.ndarray = pools[buffer.memory][start : start + size].view(dtype).reshape(shape)
            return part
        return np.full(shape, self.arithmetic.poison(buffer.dtype), self.arithmetic.storage(buffer.dtype))

    def _schedule(self, sync: Sync, running: list[Running]) -> None:
        """Run cores in turn, each until it waits. Raises Deadlock where all wait."""
        while running:
            before = sync.progress
            waiting = []
            for core, access, steps in running:
                done = next(steps, _DONE) is _DONE
                if sync.watcher is not None:
                    access.settle()
                if not done:
                    waiting.append((core, access, steps))
            if len(waiting) == len(running) and sync.progress == before:
                stuck = [(core, core.waits_for, self.sites[core.waits_at]) for core, _, _ in waiting]
                if sync.watcher is not None:
                    sync.watcher.deadlock(stuck)
                lines = [f"{core} waits for {what} at {site}" for core, what, site in stuck]
                raise Deadlock("deadlock: " + "; ".join(lines[:6]), stuck[0][2])
            running = waiting


_DONE = object()


def _number(value: Any, known: dict[Var, Any]) -> Any:
    return number(substitute(value, known)) if isinstance(value, Expr) else value


def _separate(arrays: dict[int, np.ndarray]) -> bool:
    """True if no two tensors share memory (a caller may give one twice)."""
    pairs = itertools.combinations(arrays.values(), 2)
    return not any(np.may_share_memory(a, b) for a, b in pairs)


def _by_alias(views: list[Buffer]) -> list[Buffer]:
    """Views after what they are views of."""
    return sorted(views, key=lambda b: b.number)


def _view(arithmetic: Any, array: np.ndarray, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """The same memory with another shape or element type. Raises SimulatorError where that would be a copy."""
    view: np.ndarray = arithmetic.same_bits(array, dtype).reshape(shape)
    if view.size and not np.may_share_memory(view, array):
        raise SimulatorError("a view of a tensor that is not dense")
    return view


# Which tiles need no memory of their own.
#
# A tile that is only ever filled by whole copies from a tensor that the launch does not write, and otherwise only read,
# may as well be the part of the tensor. If such tiles are operands of matrix products only, the tensor may be converted
# to the type that products are computed in, once, instead of tile by tile. Neither changes a value; an observer would
# not see the copies, so both happen only where there is none.

_PRODUCTS = {"gemm", "gemm_v0", "gemm_v1", "gemm_v2", "mma", "wgmma_gemm", "npuir.gemm"}


def operands(stmt: Op, gpu: bool) -> Iterator[tuple[str, Any, bool]]:
    """Name, region or element, and whether it may be written, of the operands of an operator."""
    forms = [m for m in (meaning(stmt.name, gpu), meaning(f"{stmt.name}@lanes", gpu)) if m is not None]
    read = {name for form in forms for name in form.reads}
    written = {name for form in forms for name in form.writes}
    for name, value in stmt.args.items():
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(item, (Region, Load)):
                yield name, item, name in written or name not in read


def _writes(body: list[Stmt], gpu: bool) -> Counter[int]:
    """How many statements may write a buffer, by number; a view counts for what it is a view of."""
    found: Counter[int] = Counter()
    for stmt in statements(body):
        if isinstance(stmt, Store):
            found[stmt.buffer.root.number] += 1
        elif isinstance(stmt, Op):
            for _, item, written in operands(stmt, gpu):
                if written:
                    found[item.buffer.root.number] += 1
    return found


def _tiles(body: list[Stmt], gpu: bool, copied: Counter[int]) -> frozenset[int]:
    """The tiles of a core's program that may be borrowed. ``copied``: how many of the writes are such copies."""
    made = {s.buffer.number for s in statements(body) if isinstance(s, Alloc) and s.buffer.memory != "global"}
    written = _writes(body, gpu)
    found = {n for n in made if copied[n] and copied[n] == written[n]}
    for stmt in statements(body):
        for buffer in buffers(stmt):
            if buffer.alias is not None:
                found.discard(buffer.root.number)
        if isinstance(stmt, Op):
            for _, item, _ in operands(stmt, gpu):
                if isinstance(item, Load):  # an address: the operator sees the memory from there on
                    found.discard(item.buffer.number)
    return frozenset(found)


def _factors(bodies: list[list[Stmt]], gpu: bool, borrowed: frozenset[int]) -> set[int]:
    """The tensors that are read only by copies into borrowed tiles of which every use is a factor of a product."""
    other: set[int] = set()
    sources: dict[int, set[int]] = {}
    for stmt in (s for body in bodies for s in statements(body)):
        if not isinstance(stmt, Op):
            other |= {b.root.number for b in buffers(stmt)}
            continue
        named = {name: item.buffer for name, item, _ in operands(stmt, gpu)}
        target = named.get("dst")
        if target is not None and target.number in borrowed and stmt.name.endswith("copy"):
            source = named["src"]
            if dtypes.is_float(source.dtype) and dtypes.bits(source.dtype) < 32 and source.alias is None:
                sources.setdefault(source.number, set()).add(target.number)
            continue
        factor = {"A", "B"} if stmt.name in _PRODUCTS else set()
        inside = {b.root.number for b in buffers(stmt)}
        other |= inside - {b.number for name, b in named.items() if name in factor}
        other |= {b.root.number for name, b in named.items() if name not in factor}
    return {n for n, into in sources.items() if n not in other and not into & other}


# Buffers at addresses given by hand (``T.annotate_address``) that share memory.
#
# Kernels do this to save room, and some to hand data from one buffer to another, so such buffers are views of one run
# of bytes. Rows of a tile lie one after the other there; the fractal layout of L1 and L0 is not modelled, so data
# handed on between two shapes in those memories would differ.


def _pools(program: Program, addresses: Mapping[str, int], arithmetic: Any) -> tuple[dict[int, int], dict[str, int]]:
    """Buffer number -> first byte, and memory -> bytes, for the memories in which placed buffers overlap.

    Nothing for an arithmetic that keeps elements in another form than the hardware does.
    """
    placed: dict[str, dict[Buffer, tuple[int, int]]] = {}
    for _, _, body in program.cores if addresses else ():
        for stmt in statements(body):
            if isinstance(stmt, Alloc) and stmt.buffer.name in addresses:
                size = _size(stmt.buffer, arithmetic)
                start = addresses[stmt.buffer.name]
                if size is None or start % arithmetic.storage(stmt.buffer.dtype).itemsize:
                    return {}, {}
                placed.setdefault(stmt.buffer.memory, {})[stmt.buffer] = (start, start + size)
    numbers: dict[int, int] = {}
    sizes: dict[str, int] = {}
    for memory, found in placed.items():
        spans = sorted(found.values())
        if any(later[0] < earlier[1] for earlier, later in itertools.pairwise(spans)):
            numbers.update({buffer.number: span[0] for buffer, span in found.items()})
            sizes[memory] = -(-max(end for _, end in spans) // 32) * 32
    return numbers, sizes


def _size(buffer: Buffer, arithmetic: Any) -> int | None:
    """Bytes; None for an extent that is not known, or an element that is kept in another size."""
    itemsize = arithmetic.storage(buffer.dtype).itemsize
    total = itemsize
    for extent in buffer.shape:
        if not isinstance(extent, int):
            return None
        total *= extent
    return total if itemsize * 8 == dtypes.bits(buffer.dtype) else None
