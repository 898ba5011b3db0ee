"""npuir kernels: one program for a block in Developer mode, a cube and a vector program in Expert mode.

Developer mode keeps the program's order and its tensors, wherever they were allocated; the compiler divides the work
itself. Some of its operators know whole buffers only (codegen_npuir_dev.cc takes ``GetVarValue(buffer)`` where others
take a slice), or drop their result: those are errors here, not other numbers.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from tl2npu.simulator.errors import SimulatorError, UnsupportedOperator
from tl2npu.simulator.ir import dtypes
from tl2npu.simulator.ir.buffer import Region
from tl2npu.simulator.ir.expr import Call, Cast, Expr, Load, Var
from tl2npu.simulator.ir.parts import free, rebuild, walk
from tl2npu.simulator.ir.stmt import Alloc, Kernel, Launch, Op, Parallel, Scope, Stmt, Store
from tl2npu.simulator.ir.stmt import walk as statements
from tl2npu.simulator.lowering.copier import Copier
from tl2npu.simulator.lowering.cores import divide
from tl2npu.simulator.lowering.program import Program
from tl2npu.simulator.lowering.uses import variables

# What vectorising a ``T.Parallel`` changes in an npuir kernel: how floats become integers.
#
# A loop that the compiler turns into vector operators casts with ``round_mode="rint"`` whatever the cast was meant to
# be
# (src/transform/npu_loop_vectorize.cc, ``BuildUnaryStmt``); one that stays a loop over single elements cuts off.


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


DEVELOPER, EXPERT = "developer", "expert"
VARIABLE = "TILELANG_ASCEND_MODE"

_EXPERT_MEMORY = {"l1", "l0a", "l0b", "l0c", "ub"}
_EXPERT_OPERATORS = {"load_nd2nz", "store_nz2nd", "store_fixpipe"}
_FLAGS = {"set_flag", "wait_flag", "pipe_barrier", "set_cross_flag", "wait_cross_flag"}


def environment() -> str:
    """The mode that the environment asks for when a kernel is compiled; empty where it says nothing."""
    value = os.environ.get(VARIABLE)
    if value is None:
        return ""
    return EXPERT if value.lower().strip() in ("expert", "exp", "e") else DEVELOPER


def written_for_expert(launch: Launch) -> bool:
    """True for a launch that names cores, memories of the chip, or flags."""
    for stmt in statements(launch.body):
        if isinstance(stmt, Scope) or (isinstance(stmt, Alloc) and stmt.buffer.memory in _EXPERT_MEMORY):
            return True
        if isinstance(stmt, Op) and (stmt.name.removeprefix("npuir.") in _EXPERT_OPERATORS or stmt.name in _FLAGS):
            return True
    return False


def mode_of(kernel: Kernel, launch: Launch) -> str:
    """Developer or Expert: what the environment said when the kernel was compiled, else how it is written."""
    stated: str = kernel.attrs.get("mode", "")
    return stated or (EXPERT if written_for_expert(launch) else DEVELOPER)


def lower(kernel: Kernel, launch: Launch, symbols: list[Var], meets: bool) -> Program:
    """The programs of one launch."""
    if mode_of(kernel, launch) == DEVELOPER:
        return _developer(launch, symbols, meets)
    return _expert(launch, symbols, meets)


# Developer mode

_WHOLE = {
    "vbrc": ("dst",),
    "vcast": ("src", "dst"),
    "cumsum": ("src", "dst"),
    "vsigmoid": ("A", "B"),
    "vselect": ("Cond", "A", "B"),
    "vcos": ("B",),
    "vsin": ("B",),
    "verf": ("B",),
    "vtanh": ("B",),
    "arange": ("dst",),
    "reshape": ("src",),
}
"""Operators -> operands of which the Developer code generator takes the whole buffer, whatever part the call names."""

_DROPPED = ("gather", "transpose", "interleave", "deinterleave", "concat", "pad", "flip")
"""Operators whose result the Developer code generator does not keep."""


_STATIC = {
    f"v{name}" for name in ("add", "sub", "mul", "div", "max", "min", "or", "and", "xor", "pow", "shl", "shr")
} | {f"v{name}" for name in ("cmp", "exp", "relu", "ln", "sqrt", "rsqrt", "abs", "rec", "not")}
"""Operators that take no part of a computed extent: two operands are not compiled (``CreateHIVMBinaryVectorOp``), one
becomes the whole buffer (``UnaryVecOpCodegen``)."""


def _developer(launch: Launch, symbols: list[Var], meets: bool) -> Program:
    for stmt in statements(launch.body):
        if isinstance(stmt, Op):
            _check(stmt)
        if launch.vid is not None and launch.vid in variables(stmt):
            raise UnsupportedOperator(
                "the number of a vector core (the last name of T.Kernel) in Developer mode: the compiler divides the "
                "work itself",
                stmt.site,
            )
    return Program(launch, [("G", 1, Rounding().block(launch.body))], symbols, meets=meets)


def _check(stmt: Op) -> None:
    name = stmt.name.removeprefix("npuir.")
    if name in _DROPPED:
        raise UnsupportedOperator(f"T.{name}: Developer mode drops its result (Expert mode has it)", stmt.site)
    if name == "cumsum" and stmt.args["reverse"]:
        raise UnsupportedOperator("T.cumsum: reverse=True is not yet supported in Developer mode", stmt.site)
    for operand in _WHOLE.get(name, ()):
        value = stmt.args.get(operand)
        if isinstance(value, Region) and not whole(value):
            raise UnsupportedOperator(
                f"T.{name} on a part of {value.buffer.name}: Developer mode takes the whole buffer instead", stmt.site
            )
    left = stmt.args.get("A")
    if name in _STATIC:
        for operand in ("A", "B"):
            value = stmt.args.get(operand)
            if isinstance(value, Region) and not all(isinstance(e, int) for e in value.extents) and not whole(value):
                raise UnsupportedOperator(
                    f"T.{name} on a part of {value.buffer.name} whose extents are known only when the kernel runs: "
                    "Developer mode has no such operator",
                    stmt.site,
                )
    if isinstance(left, Region) and "B" in stmt.args and "C" in stmt.args and name != "gemm":
        right = stmt.args["B"]
        if all(isinstance(e, int) and e == 1 for e in left.extents) and not whole(left):
            raise UnsupportedOperator(
                f"T.{name} with one element of {left.buffer.name} on the left: Developer mode takes the whole buffer",
                stmt.site,
            )
        if isinstance(right, Region) and len(right.extents) != len(left.extents):
            raise SimulatorError(
                f"T.{name}: {left.buffer.name} has {len(left.extents)} axes and {right.buffer.name} "
                f"{len(right.extents)}; Developer mode compares them axis by axis",
                stmt.site,
            )


def whole(region: Region) -> bool:
    """True if a region is all of its buffer, as it is written."""
    starts = all(isinstance(s, int) and s == 0 for s in region.starts)
    return starts and all(
        a is b or (not isinstance(a, Expr) and not isinstance(b, Expr) and a == b)
        for a, b in zip(region.extents, region.buffer.shape, strict=True)
    )


# Expert mode


def _expert(launch: Launch, symbols: list[Var], meets: bool) -> Program:
    for stmt in statements(launch.body):
        if isinstance(stmt, Alloc):
            memory: Any = {"shared": "l1", "fragment": "l0c"}.get(stmt.buffer.memory)
            if memory is not None:
                stmt.buffer.memory = memory
    divided = divide(Rounding().block(launch.body), False, False)
    asked = launch.vid is not None and any(launch.vid in variables(s) for s in statements(launch.body))
    vectors = 2 if divided["C"] or asked else 1
    cores = [("C", 1, divided["C"]), ("V", vectors, divided["V"])]
    return Program(launch, cores, symbols, meets=meets, vid=launch.vid)
