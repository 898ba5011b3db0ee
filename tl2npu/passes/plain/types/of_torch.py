"""TL110: a dtype of torch that host code gives a factory, ``f(M, N, x.dtype)``, becomes the name of the type.

TileLang takes either; the NPU's front end stops at anything else than a string.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.passes.job import Job
from tl2npu.passes.plain.types.names import STRINGS
from tl2npu.passes.plain.unsupported.types import factory_calls, given
from tl2npu.source.edits import Edits
from tl2npu.source.tree import names_in

_TORCH = "torch."


def to_strings(job: Job, typed: set[str]) -> None:
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
