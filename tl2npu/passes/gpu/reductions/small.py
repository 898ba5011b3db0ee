"""TL163: tiles of integers that float32 has exactly, whatever the sizes: numbers, and indices of the tile itself.

The NPU reduces floats only. An index of a tile in UB is smaller than UB has bytes (192 KB, or 256 KB), and float32 has
every integer up to 2^24.
"""

from __future__ import annotations

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import writes
from tl2npu.kernel.model import Buffer, Memory, Op, Scalar, Stmt, Store
from tl2npu.passes.job import Job

_EXACT = 1 << 24
_CHOICES = ("if_then_else", "Select")
_LIMITS = ("max", "min")
def is_small(job: Job, buffer: Buffer, met: tuple[Buffer, ...] = ()) -> bool:
    """True if every value that is put into a tile of integers certainly is such a number."""
    if buffer in met:
        return True  # what it gets from itself it had before
    if buffer.memory is not Memory.UB:
        return False
    stores = [stmt for stmt in job.kernel.walk() if any(operand.buffer is buffer for operand in writes(stmt))]
    return bool(stores) and all(_puts_small(job, stmt, (*met, buffer)) for stmt in stores)


def _puts_small(job: Job, stmt: Stmt, met: tuple[Buffer, ...]) -> bool:
    if stmt.via:
        return False
    if isinstance(stmt, Op) and stmt.op.kind is Kind.FILL:
        value = stmt.args.get("value")
        return value is None or (isinstance(value, Scalar) and _is_number(value))
    return isinstance(stmt, Store) and not stmt.augmented and _is_small(job, stmt, stmt.value.node, met)


def _is_small(job: Job, stmt: Store, node: cst.BaseExpression, met: tuple[Buffer, ...]) -> bool:
    if isinstance(node, cst.Call):
        name = (job.file.names.resolve(node.func) or "").rpartition(".")[2]
        args = node.args[1:] if name in _CHOICES else node.args if name in _LIMITS else ()
        return bool(args) and all(_is_small(job, stmt, arg.value, met) for arg in args)
    operand = job.file.evaluator.operand(node, stmt.env)
    if operand is not None:
        return is_small(job, operand.buffer, met)
    value = job.file.evaluator.scalar(node, stmt.env)
    return _is_number(value) or any(dim.is_point and dim.lo == value.sym for dim in stmt.target.dims or ())


def _is_number(value: Scalar) -> bool:
    number: float | None = value.sym.constant
    node = value.node.expression if isinstance(value.node, cst.UnaryOperation) else value.node
    if number is None and isinstance(node, cst.Float):
        number = node.evaluated_value  # -1.0 and 1.0 alike
    return number is not None and number == int(number) and abs(number) <= _EXACT
