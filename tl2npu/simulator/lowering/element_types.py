"""Operators on element types that A2 and A3 have no instruction for (dialects/element_types.py), or no template."""

from __future__ import annotations

from tl2npu.dialects import element_types
from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.ir.buffer import Buffer, Region
from tl2npu.simulator.ir.expr import Binary, Call, Expr, Load
from tl2npu.simulator.ir.parts import walk
from tl2npu.simulator.ir.stmt import Op, Parallel, Stmt, Store
from tl2npu.simulator.ir.stmt import walk as statements
from tl2npu.simulator.lowering import parallel_forms

_PRODUCTS = {"gemm_v0", "mma"}
"""Both factors are ``LocalTensor<T1>`` (``src/tl_templates/ascend/common.h:594``)."""


def check(body: list[Stmt], target: str) -> None:
    """Raises SimulatorError for the first such operator, in text order."""
    for stmt in statements(body):
        if isinstance(stmt, Op):
            _operator(stmt, target)
        elif isinstance(stmt, Parallel) and parallel_forms.form(stmt) != parallel_forms.SCALAR:
            for store in stmt.body:
                if isinstance(store, Store) and store.buffer.memory == "ub":
                    _store(store)


def _operator(stmt: Op, target: str) -> None:
    if stmt.name in _PRODUCTS:
        left, right = (value.dtype for value in map(stmt.args.get, "AB") if isinstance(value, (Region, Buffer, Load)))
        if left != right:
            text = f"T.{stmt.name} multiplies one type, not {left} by {right}"
            raise SimulatorError(text, stmt.site)
    found = element_types.OPERATORS.get(stmt.name)
    operand = stmt.args.get(found[0]) if found is not None else None
    buffer = operand.buffer if isinstance(operand, Region) else operand
    if found is not None and isinstance(buffer, Buffer) and buffer.memory == "ub":
        mode = stmt.args.get("mode")
        if not element_types.takes(stmt.name, buffer.dtype, mode if isinstance(mode, str) else "", target):
            _fail(stmt, f"T.{stmt.name}", buffer.dtype, stmt.name)


def _store(store: Store) -> None:
    for part in walk(store.value):
        if isinstance(part, (Binary, Call)):
            sign = part.op if isinstance(part, Binary) else part.name
            name = element_types.SIGNS.get(sign, "")
            dtype = part.dtype if isinstance(part, Expr) else store.buffer.dtype
            if name and not element_types.takes(name, dtype):
                _fail(store, f"`{sign}` in T.Parallel", dtype, name)


def _fail(stmt: Stmt, what: str, dtype: str, name: str) -> None:
    known = ", ".join(sorted(element_types.OPERATORS[name][1]))
    raise SimulatorError(f"{what} of {dtype}: the vector core has the instruction for {known} only", stmt.site)
