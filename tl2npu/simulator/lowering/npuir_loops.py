"""What vectorising a ``T.Parallel`` changes in an npuir kernel: how floats become integers.

A loop that the compiler turns into vector operators casts with ``round_mode="rint"`` whatever the cast was meant to be
(src/transform/npu_loop_vectorize.cc, ``BuildUnaryStmt``); one that stays a loop over single elements cuts off.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tl2npu.simulator.ir import dtypes
from tl2npu.simulator.ir.expr import Call, Cast, Expr, Load, Var
from tl2npu.simulator.ir.parts import free, rebuild, walk
from tl2npu.simulator.ir.stmt import Parallel, Stmt, Store
from tl2npu.simulator.ir.stmt import walk as statements
from tl2npu.simulator.lowering.copier import Copier


class Rounding(Copier):
    """Casts of floats to integers in loops that are vectorised round to nearest even."""

    def on_Parallel(self, stmt: Parallel) -> list[Stmt]:
        """One loop, or a nest of them."""
        if not vectorised(stmt):
            return [self.copy(stmt)]
        return [_rounded(stmt, set(stmt.vars))]


def vectorised(stmt: Parallel) -> bool:
    """True for a loop of constant extents whose body only stores, with direct indices."""
    for inner in (stmt, *statements(stmt.body)):
        if isinstance(inner, Parallel):
            if not all(isinstance(e, int) for e in inner.extents):
                return False
        elif (
            not isinstance(inner, Store)
            or any(map(_indirect, (inner.value, *inner.indices)))
            or any(
                isinstance(e, Cast) and isinstance(e.value, Load) and len(e.value.indices) > len(inner.indices)
                for e in walk(inner.value)
            )
        ):
            return False
    return True


def _indirect(value: Any) -> bool:
    """True if an element is read at an index that is itself read."""
    loads = [e for e in walk(value) if isinstance(e, Load)]
    return any(isinstance(part, Load) for load in loads for index in load.indices for part in walk(index))


def _rounded(stmt: Parallel, lanes: set[Var]) -> Parallel:
    def change(part: Expr) -> Any:
        if not isinstance(part, Cast) or not isinstance(part.value, Expr) or not free(part.value) & lanes:
            return part
        if not dtypes.is_integer(part.dtype) or not dtypes.is_float(part.value.dtype):
            return part
        return Cast(Call("nearbyint", (part.value,), part.value.dtype), part.dtype)

    body: list[Stmt] = []
    for inner in stmt.body:
        if isinstance(inner, Parallel):
            body.append(_rounded(inner, lanes | set(inner.vars)))
        else:
            assert isinstance(inner, Store)
            body.append(replace(inner, value=rebuild(inner.value, change)))
    return replace(stmt, body=body)
