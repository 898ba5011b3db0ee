"""TL122, TL123: the arguments of ``tilelang.jit`` and ``tilelang.compile``.

What only the GPU compiler knows goes; :mod:`tl2npu.passes.host.pass_configs` then adds what the NPU needs. A negative
``out_idx`` becomes positive where on-chip hand-overs append tensors behind the parameters (TL213).
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tl2npu.kernel.access import hands_over
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.compilations import Compilation
from tl2npu.kernel.factories.positions import compilations, indices, parameter_count
from tl2npu.kernel.factories.tunings import AUTOTUNE
from tl2npu.passes.host.jit_configs import drop_gpu_keys
from tl2npu.passes.host.signature import refuse_shared_arguments
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import listed_like
from tl2npu.source.edits import Edits
from tl2npu.source.tree import argument, nodes_of

_KEPT = frozenset({"out_idx", "workspace_idx", "target_host", "platform", "verbose", "debug_root_path", "pass_configs"})
_GPU_ONLY = frozenset({"compile_flags", "execution_backend", "target", "mode"})


def retarget(job: Job) -> None:
    """Targets, flags and pass_configs of the GPU go; what makes configurations of a tuner is called as before."""
    for place in range(len(compilations(job.located))):
        drop_arguments(job, place)
        drop_gpu_keys(job, place)
    _drop_configurations(job)
    _unpack(job)
    if hands_over(job.kernel):
        count_from_the_front(job)


def name_positional(job: Job) -> None:
    """``tilelang.compile(main, [2])``: the second argument gets its name, by which everything else finds it.

    This comes first: what a position stands for depends on the language, which is about to change.
    """
    edits = Edits(job.file.index)
    for found in compilations(job.located):
        if found.call is None or found.compiler == "jit":
            continue
        if isinstance(found.unread, cst.Arg) and not found.unread.star:
            edits.replace_many(found.call.args[0], [cst.Arg(_made_here(job, found))])
            for arg in _handed_on(found):
                edits.remove(arg)
            job.change("TL122", found.unread, "called the factory here: `cached` does not pass arguments on")
        names = {id(value): name for name, value in found.kwargs.items()}
        for arg in found.call.args:
            if arg.keyword is None and id(arg.value) in names:
                equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
                edits.replace(arg, arg.with_changes(keyword=cst.Name(names[id(arg.value)]), equal=equal))
                job.change("TL122", arg, "passed the argument by name")
    job.apply(edits)


def _made_here(job: Job, found: Compilation) -> cst.Call:
    """``factory(M, N)`` for ``cached(factory, [2], M, N)``, as old versions of TileLang called it themselves."""
    assert found.call is not None
    made, factory = found.call.args[0].value, job.located.factory
    if found.compiler != "cached" or factory is None or code(made) != factory.node.name.value:
        raise Blocked("TL123", found.unread or found.call, found.why_unread)
    comma = cst.MaybeSentinel.DEFAULT
    args = _handed_on(found)
    return cst.Call(
        made, [*args[:-1], args[-1].with_changes(comma=comma, whitespace_after_arg=cst.SimpleWhitespace(""))]
    )


def _handed_on(found: Compilation) -> list[cst.Arg]:
    """The arguments by position behind those that have a name."""
    named = {id(value) for value in found.kwargs.values()}
    args = found.call.args[1:] if found.call is not None else ()
    return [arg for arg in args if arg.keyword is None and id(arg.value) not in named]


def drop_arguments(job: Job, place: int) -> None:
    found = compilations(job.located)[place]
    if found.unread is not None:
        raise Blocked("TL123", found.unread, found.why_unread)
    edits = Edits(job.file.index)
    for name, value in found.kwargs.items():
        if name in _GPU_ONLY and not _is_npu_target(name, value):
            refuse_shared_arguments(job, found)
            edits.remove(_holder(job, value))
            job.change("TL122", value, f"`{name}` is an argument of the GPU compiler")
        elif name not in _KEPT and name not in _GPU_ONLY:
            raise Blocked("TL123", value, f"tilelang.jit does not support `{name}` on the NPU")
    job.apply(edits)


def _is_npu_target(name: str, value: cst.BaseExpression) -> bool:
    return name == "target" and isinstance(value, cst.SimpleString) and value.evaluated_value in ("ascendc", "pto")


def _holder(job: Job, value: cst.BaseExpression) -> cst.CSTNode:
    holder = job.file.index.parent(value)
    assert isinstance(holder, (cst.Arg, cst.DictElement))
    return holder


def count_from_the_front(job: Job) -> None:
    """A negative ``out_idx`` becomes positive: tensors are appended behind the parameters (TL213)."""
    count = parameter_count(job.located)
    factory = job.located.factory
    counts = {parameter_count(item) for item in job.file.located if factory and item.factory is factory} or {count}
    edits = Edits(job.file.index)
    for found in compilations(job.located):
        outputs = indices(job.file, job.located, found, "out_idx")
        if outputs is None or min(outputs.given, default=0) >= 0:
            continue
        refuse_shared_arguments(job, found)
        if isinstance(outputs.arg, cst.Name):
            text = f"`out_idx` is set from `{outputs.arg.value}`, which other code may use too"
            raise Blocked("TL123", outputs.arg, text)
        chosen = outputs.arg is not found.kwargs["out_idx"]
        if counts != {count} and not chosen:
            text = "two kernels of one factory share a negative `out_idx` but differ in parameters"
            raise Blocked("TL123", outputs.arg, text)
        edits.replace(outputs.arg, listed_like(outputs.positions, outputs.arg))
        job.change("TL213", outputs.arg, f"`out_idx`: {list(outputs.given)} -> {list(outputs.positions)}")
    job.apply(edits)


# TL122: the `pass_configs` of one configuration of a tuner. TileLang takes them out (``tuner.py:51``, a35008a42),
# TileLang-Ascend gives the factory all that it finds in a configuration.


def _drop_configurations(job: Job) -> None:
    """Leave them out of the dictionaries that a tuner of the factory gets."""
    edits = Edits(job.file.index)
    for call in _tuners(job):
        given = argument(call, "configs", 0)
        named = given.func if isinstance(given, cst.Call) else given
        makers = job.file.names.functions.get(named.value, ()) if isinstance(named, cst.Name) else ()
        for place in (*makers, *([given] if given is not None else ())):
            for element in nodes_of(place, cst.DictElement):
                if code(element.key) in ("'pass_configs'", '"pass_configs"'):
                    edits.remove(element)
                    job.change("TL122", element, "removed `pass_configs` from a configuration of the tuner")
    job.apply(edits)


def _tuners(job: Job) -> Iterator[cst.Call]:
    factory = job.located.factory
    for decorator in factory.node.decorators if factory is not None else ():
        call = decorator.decorator
        if isinstance(call, cst.Call) and job.file.names.resolve(call.func) in AUTOTUNE:
            yield call


# TL625: a function that makes the configurations of a tuner gets its arguments as it does on a GPU.
#
# TileLang calls it as the factory is called, ``get_configs(M, N, K)`` (``autotuner/tuner.py:995``, a35008a42),
# TileLang-Ascend with two tuples, ``get_configs((M, N, K), (("dtype", "float16"),))`` (``autotuner/tuner.py:299``,
# 95acbd7f). A function of exactly two positional parameters may be written for either, and stays.


def _unpack(job: Job) -> None:
    """Wrap the function in one that unpacks both tuples."""
    edits = Edits(job.file.index)
    for call in _tuners(job):
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
