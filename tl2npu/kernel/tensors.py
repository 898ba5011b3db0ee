"""Tensors that a prim_func takes, from their annotations."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from tl2npu.dialects.catalogue import Kind, Operator
from tl2npu.kernel.environment import Env
from tl2npu.kernel.expressions import Evaluator
from tl2npu.kernel.model import Buffer, Memory


def tensor_parameter(
    param: cst.Param,
    env: Env,
    index: int,
    evaluator: Evaluator,
    operator: Callable[[cst.BaseExpression, Env], Operator | None],
) -> Buffer | None:
    """A parameter annotated ``T.Tensor(shape, dtype)`` or ``T.Tensor[shape, dtype]`` (or ``T.Buffer``).

    None for a scalar parameter.
    """
    written = param.annotation.annotation if param.annotation else None
    if isinstance(written, cst.Subscript):
        inside = [item.slice.value for item in written.slice if isinstance(item.slice, cst.Index)]
        written = cst.Call(written.value, [cst.Arg(item) for item in inside])
    if not isinstance(written, cst.Call):
        return None
    op = operator(written.func, env)
    if op is None or op.kind is not Kind.TYPE:
        return None
    values = {arg.keyword.value: arg.value for arg in written.args if arg.keyword is not None}
    positional = [arg.value for arg in written.args if arg.keyword is None]
    shape = values.get("shape", positional[0] if positional else None)
    dtype = values.get("dtype", positional[1] if len(positional) > 1 else None)
    items = evaluator.sequence(shape, env) if shape is not None else ()
    return Buffer(
        param.name.value,
        Memory.GM,
        tuple(evaluator.sym(item, item_env) for item, item_env in items),
        tuple(item for item, _ in items),
        evaluator.dtype(dtype, env) if dtype is not None else "",
        param,
        index=index,
    )
