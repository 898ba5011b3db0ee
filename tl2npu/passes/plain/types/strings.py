"""TL110, TL111 (and TL191, TL193): dtype objects become strings.

On the NPU ``T.float32`` is a function that converts a value, several of its like do not exist, and a dtype is a string.
A call ``T.float32(x)`` is a conversion in both languages and stays where the function exists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code, one_line
from tl2npu.kernel.model import Kernel
from tl2npu.passes.job import Job
from tl2npu.passes.plain.types.names import STRINGS, TF32, TypeNames
from tl2npu.passes.plain.types.reach import nodes
from tl2npu.passes.plain.types.rewrite import rewrite
from tl2npu.passes.plain.unsupported.types import factory_calls, given, hidden_types
from tl2npu.passes.rounds import until_settled
from tl2npu.source.edits import Edits
from tl2npu.source.tree import argument, names_in

_FP8 = r"|\.float8_\w+|tilelang\.language\.fp8\b"
_FOREIGN = r"\.(float8_e8m0fnu|float4_\w+|float6_\w+|int4)\b"


def to_strings(job: Job) -> None:
    """``T.float16`` and its like, wherever the factory uses them as a value."""
    _refuse_pointers(job)
    _refuse_open_types(job)
    for node, message in hidden_types(job):
        job.note("TL191", node, message, "warning")
    written = _written_types(job.kernel).values()
    _to_strings(job, {node.value for node in written if isinstance(node, cst.Name)})
    until_settled(job, partial(_rewrite_once, job))


def _rewrite_once(job: Job) -> bool:
    found = list(nodes(job))
    dtypes = TypeNames(job.file.names, job.file.index, found)
    written = _written_types(job.kernel)
    dtypes.learn(node.value for node in written.values() if isinstance(node, cst.Name))
    edits = Edits(job.file.index)
    for node, new in rewrite(edits, dtypes, found, written, kernel=job.located.node):
        tensor = isinstance(node, cst.Subscript)
        narrow = isinstance(node, cst.BaseExpression) and dtypes.name_of(node) == TF32
        rule = "TL616" if narrow else "TL111" if tensor else "TL110"
        job.change(rule, node, f"`{one_line(node)}` -> `{one_line(new)}`")
        if narrow:
            text = f"computed in float32 instead of `{code(node)}`: the result is more exact than on a GPU"
            job.note("TL616", node, text, done=True)
    job.apply(edits)
    return bool(edits)


def _refuse_pointers(job: Job) -> None:
    """Raw pointers and strided tensors have no counterpart: a copy takes its tensor to be contiguous."""
    for node in nodes(job):
        if type(node) is cst.Attribute or type(node) is cst.Name:
            name = job.file.names.operator(node)
            if name in ("StridedTensor", "ptr", "make_tensor", "Tensor.from_ptr", "StridedTensor.from_ptr"):
                raise Blocked("TL193", node, f"`{code(node)}`: NPU copies need contiguous tensors")


def _refuse_open_types(job: Job) -> None:
    """A type that only callers choose, in a file that speaks of types which the cores do not have."""
    factory = job.located.factory
    if factory is None:
        return
    params = (*factory.node.params.params, *factory.node.params.kwonly_params)
    open_ends = {param.name.value: param for param in params if param.default is None}
    written = _written_types(job.kernel).values()
    chosen = next((node.value for node in written if isinstance(node, cst.Name) and node.value in open_ends), None)
    if chosen is None:
        return
    text = job.original.code
    wide = job.options.fp8 == "float16"
    if wide and (found := re.search(_FP8[1:], text)) is not None:
        message = f"callers that pass `{found.group().lstrip('.')}` as `{chosen}` pass float16 now, and float16 tensors"
        job.note("TL100", open_ends[chosen], message, "warning")
    foreign = re.search(_FOREIGN if wide else _FOREIGN + _FP8, text)
    if foreign is not None:
        text = f"callers may pass `{foreign.group().lstrip('.')}` as `{chosen}`, which the NPU does not have"
        raise Blocked("TL191", open_ends[chosen], text)


def _written_types(kernel: Kernel) -> dict[str, cst.BaseExpression]:
    """Buffer -> the expression of its dtype; a name that several buffers have is left out."""
    found: dict[str, cst.BaseExpression] = {}
    for name, buffer in kernel.buffers.items():
        node = written_type(buffer.node)
        if "#" in name:
            found.pop(name.partition("#")[0], None)
        elif node is not None:
            found[name] = node
    return found


def written_type(node: cst.CSTNode) -> cst.BaseExpression | None:
    """The dtype in ``T.alloc_*(shape, dtype)`` or ``A: T.Tensor(shape, dtype)``."""
    if isinstance(node, cst.Param) and node.annotation is not None:
        node = node.annotation.annotation
    if isinstance(node, cst.Call):
        return argument(node, "dtype", 1)
    if isinstance(node, cst.Subscript):
        return next(iter([i.slice.value for i in node.slice if isinstance(i.slice, cst.Index)][1:2]), None)
    return None


# TL110: a dtype of torch that host code gives a factory, ``f(M, N, x.dtype)``, becomes the name of the type.
#
# TileLang takes either; the NPU's front end stops at anything else than a string.

_TORCH = "torch."


def _to_strings(job: Job, typed: set[str]) -> None:
    """Rewrite what callers in the file give for the parameters in ``typed``, which are element types in the kernel."""
    factory = job.located.factory
    if factory is None or any(name.value == "torch" for name in names_in(factory.node.body)):
        return  # it asks for the type of torch as well
    params = (*factory.node.params.params, *factory.node.params.kwonly_params)
    edits = Edits(job.file.index)
    for param in params:
        if param.name.value not in typed:
            continue
        default = [param.default] if param.default is not None else []
        for value in (*default, *given(factory_calls(job), factory, param)):
            for part in _arms(value):
                new = _name(job, part)
                if new is not None:
                    edits.replace(part, cst.parse_expression(new))
                    job.change("TL110", part, f"`{code(part)}` -> `{new}`")
    job.apply(edits)


def _arms(value: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    if isinstance(value, cst.IfExp):
        yield from _arms(value.body)
        yield from _arms(value.orelse)
    else:
        yield value


def _name(job: Job, value: cst.BaseExpression) -> str | None:
    """The text for a dtype of torch; None for anything else."""
    if not isinstance(value, cst.Attribute):
        return None
    dotted = job.file.names.resolve(value)
    if dotted is not None:
        name = STRINGS.get(dotted.removeprefix(_TORCH)) if dotted.startswith(_TORCH) else None
        return f'"{name}"' if name is not None else None
    return f'str({code(value)}).removeprefix("{_TORCH}")' if value.attr.value == "dtype" else None
