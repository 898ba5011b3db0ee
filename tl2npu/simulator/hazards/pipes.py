"""Which pipe of a core a statement runs on.

GM to UB or L1: MTE2; UB to GM or L1: MTE3; L1 to L0A or L0B: MTE1; ``T.mma``: M; out of L0C: FIX; vector instructions
and UB to UB: V; single elements: S. ``gemm_v0`` moves its operands itself: it reads L1 on MTE1 and computes on M, and
sets and waits for its own flags (``tl_templates/ascend/common.h:590``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tl2npu.dialects.ascend import OPERATORS
from tl2npu.dialects.ascend.sync import RESULT_OF_SCALAR_UNIT, SCALAR_BEHIND_BARRIER
from tl2npu.dialects.catalogue import Kind
from tl2npu.simulator.ir.buffer import Buffer, Region
from tl2npu.simulator.ir.expr import Load
from tl2npu.simulator.ir.parts import walk as parts
from tl2npu.simulator.ir.stmt import Op, Site, Stmt, Store
from tl2npu.simulator.operators.registry import NPUIR, meaning

PIPES = ("S", "MTE1", "MTE2", "MTE3", "M", "V", "FIX")
NUMBER = {name: number for number, name in enumerate(PIPES)}
S, MTE1, MTE2, MTE3, M, V, FIX = range(len(PIPES))

_GEMM = {"gemm_v0", "gemm_v1", "gemm"}
_MOVES = {"copy", "tma_copy", "async_copy", "tile.copy", "transpose", "tile.transpose"}


@dataclass(frozen=True)
class Step:
    """A statement as the observer sees it.

    ``pipe``: what it runs on; ``moves``: it hands values on unchanged, so undefined data may pass; ``operands``: for a
    matrix product the root buffer of A and of B and whether it is transposed, by buffer number.
    """

    site: Site
    operator: str
    pipe: int
    gemm: bool = False
    moves: bool = False
    operands: dict[int, tuple[str, bool]] = field(default_factory=dict)
    parallel: bool = False
    prints: bool = False
    """For a person to look at: what it reads decides nothing."""
    element: bool = False
    """It writes one element, to a place that no element tells: what it reads decides that element only."""
    waits: bool = False
    """A barrier of all pipes stands in front of its scalar operand."""
    settles: bool = False
    """The scalar unit stores its result, and has waited for the vector unit."""
    rebinds: int = -1
    """The number of the buffer whose name the operator gives to other memory."""


def step_of(stmt: Stmt, parallel: bool) -> Step:
    """The step of an operator or a store; ``parallel``: it stands in a ``T.Parallel``."""
    if isinstance(stmt, Store):
        return _store(stmt, parallel)
    assert isinstance(stmt, Op)
    if stmt.name.startswith(NPUIR):
        return _npuir(stmt, parallel)
    if stmt.name in _GEMM:
        named = {
            value.buffer.number: (name, bool(stmt.args.get(f"transpose_{name}", False)))
            for name in ("A", "B")
            if isinstance(value := stmt.args.get(name), Region)
        }
        return Step(stmt.site, stmt.name, M, gemm=True, operands=named)
    if stmt.name == "mma":
        return Step(stmt.site, stmt.name, M, operands=_matrix(stmt))
    sources = [m for name in ("src", "A", "value") for m in _memories(stmt.args.get(name))]
    targets = [m for name in ("dst", "buffer", "C") for m in _memories(stmt.args.get(name))]
    named_all = [m for value in stmt.args.values() for m in _memories(value)]
    moves = stmt.name in _MOVES
    pipe = pipe_between(sources, targets, named_all)
    known = meaning(stmt.name, False)
    renamed = stmt.args.get(known.rebinds) if known is not None and known.rebinds else None
    rebinds = renamed.buffer.number if isinstance(renamed, Region) else -1
    listed = OPERATORS.get(stmt.name)
    return Step(
        stmt.site,
        stmt.name,
        pipe,
        moves=moves,
        parallel=parallel,
        prints=listed is not None and listed.kind is Kind.DEBUG,
        waits=stmt.name in SCALAR_BEHIND_BARRIER and any(isinstance(value, Load) for value in stmt.args.values()),
        settles=stmt.name in RESULT_OF_SCALAR_UNIT,
        rebinds=rebinds,
    )


def _npuir(stmt: Op, parallel: bool) -> Step:
    """An operator of the npuir language: a product reads L1 itself, the names of all others say what they do."""
    name = stmt.name.removeprefix(NPUIR)
    if name == "gemm":
        named = {
            value.buffer.number: (side, bool(stmt.args.get(f"{side.lower()}_transpose", False)))
            for side in ("A", "B")
            if isinstance(value := stmt.args.get(side), Region)
        }
        return Step(stmt.site, name, M, gemm=True, operands=named)
    sources = [m for side in ("src", "A") for m in _memories(stmt.args.get(side))]
    targets = [m for side in ("dst", "B") for m in _memories(stmt.args.get(side))]
    everything = [m for value in stmt.args.values() for m in _memories(value)]
    moves = name in ("copy", "load_nd2nz", "store_nz2nd", "store_fixpipe", "transpose", "reshape")
    pipe = pipe_between(sources, targets, everything)
    return Step(stmt.site, name, pipe, moves=moves, parallel=parallel, prints=name == "print")


def _matrix(stmt: Op) -> dict[int, tuple[str, bool]]:
    return {
        value.buffer.number: (name, False) for name in ("A", "B") if isinstance(value := stmt.args.get(name), Region)
    }


def pipe_between(sources: list[str], targets: list[str], named: list[str]) -> int:
    """The pipe that moves data from one memory to another; V for work inside UB."""
    source, target = (sources or [""])[0], (targets or [""])[0]
    if source == "l0c" or (source == "" and "l0c" in named and "global" in named):
        return FIX
    if source == "global":
        return MTE2
    if target == "global":
        return MTE3 if source in ("ub", "l1", "") else S
    if source == "ub" and target == "l1":
        return MTE3
    if target in ("l0a", "l0b"):
        return MTE1
    if target == "l1":
        return MTE2
    if "ub" in named:
        return V
    if "l0c" in named:
        return M
    return S


def _store(stmt: Store, parallel: bool) -> Step:
    if not parallel:
        placed = any(isinstance(part, Load) for index in stmt.indices for part in parts(index))
        return Step(stmt.site, "=", S, element=not placed)
    loads = [part.buffer.memory for part in parts(stmt.value) if isinstance(part, Load)]
    moves = isinstance(stmt.value, Load)
    if moves and stmt.buffer.memory != "global":
        return Step(stmt.site, "Parallel", MTE2 if loads[0] == "global" else V, moves=True, parallel=True)
    if stmt.buffer.memory == "global":
        return Step(stmt.site, "Parallel", MTE3 if moves and loads[0] == "ub" else S, moves=moves, parallel=True)
    return Step(stmt.site, "Parallel", S if "global" in loads else V, parallel=True)


def _memories(value: Any) -> list[str]:
    found = []
    for item in value if isinstance(value, tuple) else (value,):
        buffer = item.buffer if isinstance(item, (Region, Load)) else item
        if isinstance(buffer, Buffer):
            while buffer.alias is not None:
                buffer = buffer.alias
            found.append(buffer.memory)
    return found
