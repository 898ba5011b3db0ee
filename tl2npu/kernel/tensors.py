"""Tensors that a prim_func takes, from their annotations, and other shapes of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Set

import libcst as cst

from tl2npu.dialects.catalogue import Kind, Operator
from tl2npu.kernel.access import accesses
from tl2npu.kernel.environment import Env
from tl2npu.kernel.expressions import Evaluator
from tl2npu.kernel.model import Buffer, Kernel, Memory, Opaque, Stmt, walk
from tl2npu.kernel.symbolic import const

_Operators = Callable[[cst.BaseExpression, Env], Operator | None]


def parameters(
    node: cst.FunctionDef, env: Env, evaluator: Evaluator, operator: _Operators
) -> tuple[list[Buffer], dict[str, cst.Param]]:
    """The tensors that a prim_func takes, in order, and the other parameters by name."""
    tensors: list[Buffer] = []
    scalars: dict[str, cst.Param] = {}
    for index, param in enumerate((*node.params.posonly_params, *node.params.params)):
        tensor = tensor_parameter(param, env, index, evaluator, operator)
        if tensor is None:
            scalars[param.name.value] = param
        else:
            tensors.append(tensor)
    return tensors, scalars


def tensor_parameter(
    param: cst.Param, env: Env, index: int, evaluator: Evaluator, operator: _Operators
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
    if shape is not None and type(shape) is cst.IfExp:
        items = ((shape, env),)  # calls give sizes by whole extents
    return Buffer(
        param.name.value,
        Memory.GM,
        tuple(evaluator.sym(item, item_env) for item, item_env in items),
        tuple(item for item, _ in items),
        evaluator.dtype(dtype, env) if dtype is not None else "",
        param,
        index=index,
    )


_VIEW = ("shape", "dtype", "data")


def second_shape(name: str, call: cst.Call, env: Env, evaluator: Evaluator, node: cst.CSTNode) -> Buffer | None:
    """``T.Tensor(shape, dtype, x.data)``, if it is all of a tensor parameter ``x`` in another shape; else None.

    The compiler addresses the memory of ``x`` by the new shape, and ends copies with it (both code generators at
    95acbd7f: ``GlobalTensor::SetGlobalBuffer`` of the handle; ``Stride`` and valid extents of the view).
    """
    if any(arg.star for arg in call.args) or len(call.args) != len(_VIEW):
        return None
    given = {arg.keyword.value if arg.keyword else _VIEW[n]: arg.value for n, arg in enumerate(call.args)}
    shape, dtype, data = (given.get(key) for key in _VIEW)
    if shape is None or dtype is None or not isinstance(data, cst.Attribute) or data.attr.value != "data":
        return None
    base = evaluator.buffer(data.value, env)
    if base is None or base.memory is not Memory.GM or base.statement is not None:
        return None
    items = evaluator.sequence(shape, env)
    sizes = tuple(evaluator.sym(item, item_env) for item, item_env in items)
    same = math.prod(sizes, start=const(1)) == math.prod(base.shape, start=const(1))
    if not sizes or not same or not base.dtype or evaluator.dtype(dtype, env) != base.dtype:
        return None
    nodes = tuple(item for item, _ in items)
    return Buffer(name, Memory.GM, sizes, nodes, base.dtype, base.node, statement=node, index=base.index)


def is_used(tensors: Set[Buffer], body: list[Stmt]) -> bool:
    """Whether a statement reads or writes one of the tensors by its own shape."""
    return bool(tensors) and any(access.operand.buffer in tensors for s in walk(body) for access in accesses(s))


def second_shapes(kernel: Kernel) -> list[Buffer]:
    """The tensors that the kernel uses in another shape than it takes them."""
    return [buffer for buffer in kernel.params if buffer.statement is not None]


def stored_tensors(kernel: Kernel) -> frozenset[str]:
    """The parameters that the kernel writes, in whatever shape."""
    known = (stmt for stmt in kernel.walk() if not isinstance(stmt, Opaque))
    written = (access.operand.buffer for stmt in known for access in accesses(stmt) if access.writes)
    return frozenset(buffer.node.name.value for buffer in written if isinstance(buffer.node, cst.Param))
