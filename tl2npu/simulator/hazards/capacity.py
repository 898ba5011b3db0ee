"""Do the buffers of an Ascend kernel fit into the on-chip memories?

With the compiler's memory planning a buffer takes room from its first to its last use, so the peak of what is alive
counts; without it the sum; with addresses given by hand (``T.annotate_address``) the highest end. Tiles that the
compiler adds, and what the planner loses to gaps, are the business of TL801. ``gemm_v0`` takes L0A and L0B itself:
one slot of the whole operand, or two of 128 (``kL0Size``) in K where K is longer
(``tl_templates/ascend/common.h:590``). The planner's limits are a little below what the hardware has, which holds
where it does not run. Sizes: ``tl2npu.devices``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tl2npu.devices import Device
from tl2npu.simulator.hazards.hazard import CAPACITY, ERROR, MEMORIES, Hazard, Party
from tl2npu.simulator.ir import dtypes
from tl2npu.simulator.ir.buffer import Buffer, Region
from tl2npu.simulator.ir.stmt import Alloc, For, If, Op, Parallel, Scope, Site, Stmt, While, bodies
from tl2npu.simulator.ir.stmt import walk as statements
from tl2npu.simulator.lowering.uses import buffers as named
from tl2npu.simulator.machine.watch import WatchedRunner

ALIGNMENT = 32
K_STEP = 128


@dataclass
class Life:
    """A buffer, its bytes, and the numbers of the first and last statement that use it."""

    buffer: Buffer
    size: int
    first: int
    last: int


def check(runner: WatchedRunner, device: Device) -> Iterator[Hazard]:
    """One finding for each memory of a launch that is too small; none for a GPU kernel, nor for Developer mode of
    npuir, whose compiler divides tiles itself."""
    if any(kind == "G" for kind, _, _ in runner.program.cores):
        return
    for kind, count, body in runner.program.cores:
        if kind == "V" and runner.launch.threads == 2 and count == 1:
            continue  # whole tiles in the reading without the split: no core ever holds them
        lives = lifetimes(body)
        core = "aic" if kind == "C" else "aiv0"
        for memory in ("ub",) if kind == "V" else ("l1", "l0a", "l0b", "l0c"):
            here = [life for life in lives if life.buffer.memory == memory]
            planned = runner.planned and not any(life.buffer.name in runner.addresses for life in here)
            limit = (device.capacity if planned and not runner.launch.npuir else device.hardware).of(memory)
            need, largest, site = needed(here, runner), _largest(here), runner.launch.site
            if largest is not None:
                site = Site(site.file, largest.buffer.line)
            if memory in ("l0a", "l0b"):
                for stmt in statements(body):
                    slots = operand_bytes(stmt, memory)
                    if slots > need:
                        need, largest, site = slots, None, stmt.site
            if limit is not None and need > limit:
                name = MEMORIES[memory]
                text = f"{name} holds {limit} bytes on {device.name}, the kernel needs {need}"
                if largest is not None:
                    text += f" for its own buffers (the largest is {largest.buffer.name}: {largest.size})"
                else:
                    text += f" for the operands of gemm_v0 at {site}"
                party = Party(site, "Alloc", core, 0)
                buffer = largest.buffer.name if largest is not None else ""
                yield Hazard(CAPACITY, text, name, buffer, None, party, ERROR)


def needed(lives: list[Life], runner: WatchedRunner) -> int:
    """Bytes that buffers of one memory take."""
    placed = [life for life in lives if life.buffer.name in runner.addresses]
    if placed:
        return max(runner.addresses[life.buffer.name] + life.size for life in placed)
    if not runner.planned:
        return sum(life.size for life in lives)
    return max((sum(o.size for o in lives if o.first <= life.first <= o.last) for life in lives), default=0)


def operand_bytes(stmt: Stmt, memory: str) -> int:
    """What ``gemm_v0`` takes of L0A or L0B."""
    if not isinstance(stmt, Op) or stmt.name != "gemm_v0":
        return 0
    name = "A" if memory == "l0a" else "B"
    region = stmt.args.get(name)
    if not isinstance(region, Region) or not all(isinstance(e, int) for e in region.extents[-2:]):
        return 0
    rows, columns = (int(e) for e in region.extents[-2:])
    depth = columns if (name == "A") != bool(stmt.args.get(f"transpose_{name}", False)) else rows
    width = rows * columns // depth if depth else 0
    given = stmt.args.get("kL0Size", K_STEP)
    step = given if isinstance(given, int) else K_STEP
    slots = 2 * step if depth > step else depth
    return width * slots * dtypes.bits(region.dtype) // 8


def lifetimes(body: list[Stmt]) -> list[Life]:
    """The buffers that a core uses; one used in a loop that its first use is not in lives to the end of that loop."""
    found: dict[Buffer, Life] = {}
    begun: dict[Buffer, tuple[Stmt, ...]] = {}
    ends: dict[int, list[Buffer]] = {}
    number = 0

    def go(block: list[Stmt], loops: tuple[Stmt, ...]) -> None:
        nonlocal number
        for stmt in block:
            number += 1
            if not isinstance(stmt, Alloc):
                for buffer in named(stmt):
                    use(buffer.root, loops)
            inner = (*loops, stmt) if isinstance(stmt, (For, While)) else loops
            if isinstance(stmt, (For, While, If, Parallel, Scope)):
                for part in bodies(stmt):
                    go(part, inner)
            for buffer in ends.pop(id(stmt), ()):
                found[buffer].last = number

    def use(buffer: Buffer, loops: tuple[Stmt, ...]) -> None:
        if buffer.memory in ("global", "var") or buffer.memory not in MEMORIES:
            return
        if buffer not in found:
            size = bytes_of(buffer)
            if size is None:
                return
            found[buffer] = Life(buffer, size, number, number)
            begun[buffer] = loops
        found[buffer].last = number
        outside = next((loop for loop in loops if loop not in begun[buffer]), None)
        if outside is not None:
            ends.setdefault(id(outside), []).append(buffer)

    go(body, ())
    return list(found.values())


def bytes_of(buffer: Buffer) -> int | None:
    """Bytes, rounded up to the alignment; None for an extent that is not known."""
    total = 1
    for extent in buffer.shape:
        if not isinstance(extent, int):
            return None
        total *= extent
    size = -(-total * dtypes.bits(buffer.dtype) // 8)
    return -(-size // ALIGNMENT) * ALIGNMENT


def _largest(lives: list[Life]) -> Life | None:
    return max(lives, key=lambda life: life.size, default=None)
