"""TL625: a function that makes the configurations of a tuner gets its arguments as it does on a GPU.

TileLang calls it as the factory is called, ``get_configs(M, N, K)`` (``autotuner/tuner.py:995``, a35008a42),
TileLang-Ascend with two tuples, ``get_configs((M, N, K), (("dtype", "float16"),))`` (``autotuner/tuner.py:299``,
95acbd7f). A function of exactly two positional parameters may be written for either, and stays.
"""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.tunings import AUTOTUNE
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits
from tl2npu.source.tree import argument


def unpack(job: Job) -> None:
    """Wrap the function in one that unpacks both tuples."""
    factory = job.located.factory
    edits = Edits(job.file.index)
    for decorator in factory.node.decorators if factory is not None else ():
        call = decorator.decorator
        if not isinstance(call, cst.Call) or job.file.names.resolve(call.func) not in AUTOTUNE:
            continue
        given = argument(call, "configs", 0)
        if given is None or not any(map(_takes_the_call, _functions(job, given))):
            continue
        shown = code(given) if isinstance(given, cst.Name) else f"({code(given)})"
        edits.replace(given, cst.parse_expression(f"lambda args, kwargs: {shown}(*args, **dict(kwargs))"))
        job.change("TL625", call, f"`{code(given)}` gets the arguments of the call, not two tuples")
    job.apply(edits)


def _functions(job: Job, given: cst.BaseExpression) -> list[cst.Parameters]:
    """The parameters of the function that is meant; none for lists, calls and what the file does not define."""
    if isinstance(given, cst.Lambda):
        return [given.params]
    found = job.file.names.functions.get(given.value, ()) if isinstance(given, cst.Name) else ()
    return [function.params for function in found]


def _takes_the_call(params: cst.Parameters) -> bool:
    """True for a function that two tuples are not meant for."""
    positional = (*params.posonly_params, *params.params)
    needed = sum(param.default is None for param in positional)
    return isinstance(params.star_arg, cst.Param) or not needed <= 2 <= len(positional)
