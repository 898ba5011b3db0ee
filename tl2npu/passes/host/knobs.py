"""TL126: parameters of a factory that its kernel does not read any more, and what an autotuner varies in vain."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import libcst as cst

from tl2npu.kernel.factories.concrete import Known, run
from tl2npu.kernel.factories.tunings import configs_of
from tl2npu.passes.job import Job
from tl2npu.source.tree import calls_in, mentioned


def read(job: Job) -> frozenset[str]:
    """The parameters of the factory that something in it reads."""
    factory = job.located.factory
    if factory is None:
        return frozenset()
    return frozenset(_parameters(factory.node)) & mentioned(factory.node.body)


def tell(job: Job, before: Collection[str]) -> None:
    """Say which of them are read no longer, where a tuner varies them or a call of the file gives them by name."""
    factory, now = job.located.factory, read(job)
    gone = (
        [name for name in _parameters(factory.node) if name in before and name not in now]
        if factory is not None
        else []
    )
    if not gone or factory is None:
        return
    module: Known = {}
    run(job.file.index.module.body, module, job.file.names)
    configs = [config.values for config in configs_of(job.file, factory.node, module)]
    tuned = [name for name in gone if any(name in config for config in configs)]
    rest = {frozenset((name, repr(value)) for name, value in c.items() if name not in gone) for c in configs}
    if tuned and len(rest) < len(configs):
        kernels = "the same kernel" if len(rest) == 1 else f"{len(rest)} different kernels"
        text = f"nothing reads {_listed(tuned)} any more: the {len(configs)} configurations of the tuner make {kernels}"
        job.note("TL126", factory.node.name, text)
    elif given := [name for name in gone if name in set(_given(job, factory.node.name.value))]:
        job.note("TL126", factory.node.name, f"nothing reads {_listed(given)} any more, and a call still sets it")


def _parameters(factory: cst.FunctionDef) -> list[str]:
    params = factory.params
    return [param.name.value for param in (*params.posonly_params, *params.params, *params.kwonly_params)]


def _given(job: Job, name: str) -> Iterator[str]:
    for call in calls_in(job.file.index.module):
        if isinstance(call.func, cst.Name) and call.func.value == name:
            yield from (arg.keyword.value for arg in call.args if arg.keyword is not None)


def _listed(names: list[str]) -> str:
    return " and ".join(f"`{name}`" for name in names)
