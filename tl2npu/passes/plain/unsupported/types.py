"""TL191: element types that the NPU does not compute with."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from tl2npu.kernel import element_types
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.located import Factory
from tl2npu.kernel.model import Buffer, Memory
from tl2npu.passes.job import Job
from tl2npu.passes.plain.types.names import TF32
from tl2npu.passes.plain.types.values import TypeValues
from tl2npu.source.literals import text_of
from tl2npu.source.tree import calls_in, nodes_of

_FP8 = re.compile(r"(torch\.)?(float8|fp8|e4m3|e5m2)")
_NARROW = re.compile(r"(torch\.)?(float[46]_|tfloat32|tf32|int4\b|uint4\b|float8_e8m0|\w+x(2|4|8|16|32|64)$)")


def foreign_types(job: Job) -> Iterator[tuple[cst.CSTNode, str]]:
    """Buffers of such a type, each with a message; a type that is chosen elsewhere counts if every choice is one.

    ``T.tfloat32`` becomes float32 (TL616), and nothing does that for a type in a string.
    """
    written = any(text_of(node) == TF32 for node in nodes_of(job.module, cst.SimpleString))
    for buffer, found in types_of(job):
        wrong = [name for name in found if name is not None and is_foreign(name) and (name != TF32 or written)]
        if wrong and len(wrong) == len(found):
            where = "tensor" if buffer.memory is Memory.GM else "tile"
            yield buffer.node, f"the {where} `{buffer.name}` is {wrong[0]}, which the NPU cannot compute with"


def types_of(job: Job) -> Iterator[tuple[Buffer, list[str | None]]]:
    """Each buffer with the types that it may have, None for one that the file does not show."""
    values, made = TypeValues(job), factory_calls(job)
    for buffer in job.kernel.buffers.values():
        yield buffer, _types_of(job, buffer.dtype, made, values)


def types_named(job: Job, dtype: cst.BaseExpression) -> list[str | None]:
    """The types that an expression in the kernel may stand for, as :func:`types_of` has them."""
    text = str(text_of(dtype)) if isinstance(dtype, cst.SimpleString) else code(dtype)
    return _types_of(job, text, factory_calls(job), TypeValues(job))


def hidden_types(job: Job) -> Iterator[tuple[cst.CSTNode, str]]:
    """Types that a function picks which the file does not show, each once; a parameter is for the callers to choose."""
    values, factory = TypeValues(job), job.located.factory
    told: set[str] = set()
    for buffer in job.kernel.buffers.values():
        if buffer.dtype in told or (node := _expression(buffer.dtype)) is None:
            continue
        told.add(buffer.dtype)
        if unknown := values.hidden(node, None if factory is None else factory.node):
            yield (
                buffer.node,
                f"cannot tell the element type of `{buffer.name}`: this file does not show what `{unknown}` returns",
            )


def is_foreign(dtype: str) -> bool:
    """True for a type that neither the vector cores nor the cube core of A2 and A3 have."""
    return bool(_FP8.match(dtype) or _NARROW.match(dtype))


def factory_calls(job: Job) -> list[cst.Call]:
    """The calls of the kernel's factory in its file."""
    factory = job.located.factory
    if factory is None:
        return []
    name = factory.node.name.value
    return [call for call in calls_in(job.module) if type(call.func) is cst.Name and call.func.value == name]


def _types_of(job: Job, dtype: str, made: list[cst.Call], values: TypeValues) -> list[str | None]:
    """The types that a buffer may have; where its factory takes it as a parameter, what default and callers give."""
    factory, node = job.located.factory, _expression(dtype)
    if node is None:
        return [dtype]
    if factory is None:
        return values.within(node, None)
    params = (*factory.node.params.posonly_params, *factory.node.params.params, *factory.node.params.kwonly_params)
    param = next((item for item in params if item.name.value == dtype), None)
    if param is None:
        return values.within(node, factory.node)
    choices = list(given(made, factory, param))
    if param.default is not None:
        choices.append(param.default)
    return [name for value in choices for name in values.within(value, None)]


def _expression(dtype: str) -> cst.BaseExpression | None:
    """The source of a type that is not known by its name."""
    if not dtype or is_foreign(dtype) or element_types.is_known(element_types.plain(dtype)):
        return None
    try:
        return cst.parse_expression(dtype)
    except cst.ParserSyntaxError:
        return None


def given(made: list[cst.Call], factory: Factory, param: cst.Param) -> Iterator[cst.BaseExpression]:
    """What the calls give for a parameter."""
    names = [item.name.value for item in (*factory.node.params.posonly_params, *factory.node.params.params)]
    for call in made:
        position = 0
        for arg in call.args:
            if arg.keyword is not None:
                if arg.keyword.value == param.name.value:
                    yield arg.value
            elif not arg.star:
                if position < len(names) and names[position] == param.name.value:
                    yield arg.value
                position += 1
