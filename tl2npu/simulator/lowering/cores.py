"""Divides the body of an Ascend launch among the cube core and the vector cores.

The rules of automatic CV combine (legacy-to-developer 2.2, ascend_combinecv.cc:590-870); an explicit ``T.Scope`` is
literal. Loops, branches and named values are kept where something in them is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tl2npu.dialects.ascend import OPERATORS
from tl2npu.dialects.catalogue import Core
from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.ir.buffer import Buffer
from tl2npu.simulator.ir.expr import Var
from tl2npu.simulator.ir.stmt import Alloc, Break, Continue, For, If, Let, Op, Parallel, Scope, Stmt, Store, While
from tl2npu.simulator.ir.stmt import walk as statements
from tl2npu.simulator.lowering import parallel_forms
from tl2npu.simulator.lowering.memories import CUBE, operands
from tl2npu.simulator.lowering.uses import buffers, variables

BOTH = "CV"
_NPUIR_CUBE = {"npuir.gemm", "npuir.load_nd2nz", "npuir.store_nz2nd", "npuir.store_fixpipe"}


@dataclass(eq=False)
class Divider:
    """``combine``: automatic CV combine is on; without it a scalar statement outside of a scope runs on both cores."""

    combine: bool
    compiler: bool
    cube: bool
    vector: bool
    previous: str = ""

    def core_of(self, stmt: Stmt) -> str:
        """``C``, ``V``, ``CV``, or empty for a statement that lands nowhere."""
        if isinstance(stmt, Op):
            core = op_core(stmt)
            if core == "":
                return self.previous if self.combine else self._only()
            if core != BOTH:
                self.previous = core
            return core
        if isinstance(stmt, Store):
            if stmt.buffer.memory == "ub":
                self.previous = "V"
                return "V"
            if stmt.buffer.memory in CUBE or (self.combine and self.compiler):
                self.previous = "C"  # also scalars in global memory and variables (2.2 rule 5)
                return "C"
            return "V" if any(b.memory == "ub" for b in buffers(stmt)) else self._only()
        return BOTH

    def _only(self) -> str:
        return BOTH if self.cube and self.vector else "C" if self.cube else "V"


def op_core(stmt: Op) -> str:
    """The core that an operator itself needs; empty where its place decides."""
    if stmt.name.startswith("npuir.") and stmt.name != "npuir.copy":
        return "C" if stmt.name in _NPUIR_CUBE else "V"
    memories = [b.memory for _, b in operands(stmt)]
    known = OPERATORS.get(stmt.name)
    if known is not None and known.core is Core.CUBE:
        return "C"
    if known is not None and known.core is Core.VECTOR:
        return "V"
    if known is not None and known.core is Core.BOTH and not memories:
        return BOTH
    if any(m in CUBE for m in memories):
        return "V" if "ub" in memories and memories[0] == "ub" and "l1" in memories else "C"
    if "ub" in memories:
        return "V"
    if memories:
        return "V"
    return ""


def divide(body: list[Stmt], combine: bool, compiler: bool) -> dict[str, list[Stmt]]:
    """The statements of the cube core and of the vector cores.

    ``combine``: automatic CV combine is on. ``compiler``: scalar stores go where the compiler puts them, not where
    their operands are. Raises SimulatorError where a core needs what the other
    has: UB on the cube core, L1 or L0 on a vector core."""
    kinds = {op_core(s) for s in statements(body) if isinstance(s, Op)}
    kinds |= {s.core for s in statements(body) if isinstance(s, Scope)}
    kinds |= {"V" for s in statements(body) if isinstance(s, Store) and s.buffer.memory == "ub"}
    if combine and compiler and any(_lands_on_cube(s) for s in statements(body)):
        kinds.add("C")
    cube, vector = "C" in kinds, "V" in kinds or "C" not in kinds
    result = {}
    for core in "CV":
        kept = _filter(body, core, Divider(combine, compiler, cube, vector), "")
        result[core] = _needed(kept, set()) if (cube if core == "C" else vector) else []
        _check(result[core], core)
    return result


def _lands_on_cube(stmt: Stmt) -> bool:
    return isinstance(stmt, Store) and stmt.buffer.memory in ("global", "var")


def _filter(body: list[Stmt], core: str, divider: Divider, scope: str) -> list[Stmt]:
    kept: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Scope):
            inner = _filter(stmt.body, core, divider, stmt.core)
            if stmt.core == core:
                kept += inner
            continue
        if isinstance(stmt, (For, While)):
            inner = _filter(stmt.body, core, divider, scope)
            if _matters(inner):
                kept.append(replace(stmt, body=inner))
            continue
        if isinstance(stmt, Parallel):
            where = scope or _parallel_core(stmt, divider)
            if core in where:
                kept.append(stmt)
            continue
        if isinstance(stmt, If):
            then = _filter(stmt.then, core, divider, scope)
            orelse = _filter(stmt.orelse, core, divider, scope)
            if _matters(then) or _matters(orelse):
                kept.append(replace(stmt, then=then, orelse=orelse))
            continue
        if isinstance(stmt, (Let, Alloc, Break, Continue)):
            kept.append(stmt)
            continue
        where = divider.core_of(stmt)
        if scope:
            where = scope
        if core in where:
            kept.append(stmt)
    return kept


def _parallel_core(stmt: Parallel, divider: Divider) -> str:
    found = ""
    for inner in statements(stmt.body):
        if isinstance(inner, (Store, Op)):
            found += divider.core_of(inner)
    if divider.compiler and divider.combine and parallel_forms.form(stmt) != parallel_forms.SCALAR:
        return "C" if found and "V" not in found and any(b.memory in CUBE for b in _all_buffers(stmt)) else "V"
    return "V" if "V" in found else found or "V"


def _all_buffers(stmt: Parallel) -> list[Buffer]:
    return [b for s in statements(stmt.body) for b in buffers(s)]


def _matters(body: list[Stmt]) -> bool:
    return any(not isinstance(s, (Let, Alloc)) for s in statements(body))


def _needed(body: list[Stmt], used: set[Var]) -> list[Stmt]:
    """Without named values that this core does not use (the other core's memory is in some of them)."""
    kept: list[Stmt] = []
    for stmt in reversed(body):
        if isinstance(stmt, Let) and stmt.var not in used:
            continue
        if isinstance(stmt, (For, While, Parallel)):
            stmt = replace(stmt, body=_needed(stmt.body, used))
        elif isinstance(stmt, If):
            orelse = _needed(stmt.orelse, used)
            stmt = replace(stmt, then=_needed(stmt.then, used), orelse=orelse)
        used |= variables(stmt)
        kept.append(stmt)
    return list(reversed(kept))


def _check(body: list[Stmt], core: str) -> None:
    foreign = {"ub"} if core == "C" else CUBE
    for stmt in statements(body):
        if isinstance(stmt, Alloc) or (isinstance(stmt, Op) and stmt.name == "copy"):
            continue
        for buffer in buffers(stmt):
            if buffer.memory in foreign:
                name = "cube core" if core == "C" else "vector core"
                raise SimulatorError(
                    f"the {name} reaches {buffer.name}, which is in {buffer.memory.upper()}", stmt.site
                )
