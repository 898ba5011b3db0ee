"""What numbers of a buffer's element type look like in text."""

from __future__ import annotations

from typing import Literal

import libcst as cst

from tl2npu.kernel.element_types import plain
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Buffer
from tl2npu.kernel.sizes import ITEM_SIZE
from tl2npu.passes.job import Job

NumberType = Literal["float", "int", "unknown"]

BITS = {name: 8 * size for name, size in ITEM_SIZE.items()} | {"half": 16, "int": 32}
"""Widths of the element types that have a literal name."""


def element_type(job: Job, buffer: Buffer) -> str:
    """The element type of a buffer by its one name; of a parameter of the factory its default; else the source."""
    if buffer.dtype in BITS or job.located.factory is None:
        return plain(buffer.dtype)
    params = job.located.factory.node.params
    for param in (*params.posonly_params, *params.params, *params.kwonly_params):
        if param.name.value == buffer.dtype and param.default is not None:
            return job.file.evaluator.dtype(param.default, job.file.module_env)
    return plain(buffer.dtype)


def number_type(job: Job, buffer: Buffer) -> NumberType:
    """Whether the elements of a buffer are floats or integers."""
    name = element_type(job, buffer)
    if name.startswith(("float", "bfloat", "half")):
        return "float"
    return "int" if name.startswith(("int", "uint")) else "unknown"


def literal(job: Job, buffer: Buffer, value: cst.BaseExpression) -> str:
    """A constant as one of the buffer's type: ``0`` is ``0.0`` in a tile of floats; other expressions stay."""
    if isinstance(value, cst.Integer) and number_type(job, buffer) != "int":
        return f"{value.value}.0" if value.value.isdigit() else code(value)
    if isinstance(value, cst.UnaryOperation) and isinstance(value.operator, cst.Minus):
        inner = value.expression
        if isinstance(inner, cst.Integer):
            return f"-{literal(job, buffer, inner)}"
    return infinite(job, buffer, value) or code(value)


def infinite(job: Job, buffer: Buffer, value: cst.BaseExpression) -> str | None:
    """``-T.infinity(dtype)`` for Python's own spellings of infinity, None for any other expression."""
    sign = ""
    while isinstance(value, cst.UnaryOperation) and isinstance(value.operator, cst.Minus):
        sign, value = ("" if sign else "-"), value.expression
    text = code(value).replace(" ", "").replace("'", '"').lower()
    if text in ('float("-inf")', 'float("-infinity")'):
        sign = "" if sign else "-"
    elif text not in ('float("inf")', 'float("infinity")', "math.inf", "np.inf", "numpy.inf", "torch.inf"):
        return None
    dtype = f'"{buffer.dtype}"' if buffer.dtype in BITS else buffer.dtype  # else the name that the allocation uses
    return f"{sign}T.infinity({dtype})"
