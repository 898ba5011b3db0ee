"""Why nothing of the file compiles a kernel, as far as that can be told."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.passes.job import Job
from tl2npu.source.tree import calls_in, names_in, nodes_of

_TUNERS = ("tilelang.autotune", "tilelang.autotuner.autotune")
_PARALLEL = "tilelang.par_compile"
_NOTHING = {"pass_configs": "pass_configs cannot be set", "target": "the target cannot be set"}


def why_uncompiled(job: Job, wanted: str) -> str:
    """What stands above the factory, or takes the kernel, and does not compile it; ``wanted``: what cannot be given."""
    for shown, meaning in _decorators(job):
        if meaning == "tilelang.autotuner.jit":
            return (
                f"`@{shown}` is `tilelang.autotuner.jit`, which TileLang has removed: write `@tilelang.jit` "
                "and say in `@tilelang.autotune` how to tune"
            )
        if meaning not in _TUNERS:
            known = f"is `{meaning}`, which is" if meaning else "is"
            return f"`@{shown}` above the factory {known} not known to compile the kernel, so {wanted} cannot be set"
    if any(job.file.names.resolve(call.func) == _PARALLEL for call in calls_in(job.module)):
        return "the NPU has no `tilelang.par_compile`: pass each kernel to `tilelang.compile`"
    return f"no `@tilelang.jit` or `tilelang.compile` in this file compiles the kernel: {_NOTHING[wanted]}"


def is_only_offered(job: Job) -> bool:
    """True if the file makes the kernel and does nothing with it: who compiles it, does so elsewhere.

    The functions around it return it, and nothing of the file calls the outermost one, which may have a cache.
    """
    index, uses = job.file.index, names_in(job.module)
    around = [above for above in index.ancestors(job.located.node) if not isinstance(above, cst.IndentedBlock)][:-1]
    made = [job.located.node, *(above for above in around if isinstance(above, cst.FunctionDef))]
    if len(made) <= len(around) or any(_decorators(job)) or job.elsewhere[made[-1].name.value]:
        return False
    marks = [code(mark.decorator) for above in made[1:] for mark in above.decorators]
    names = {func.name.value: func for func in made}
    returned = {id(node.value) for node in nodes_of(made[-1], cst.Return)} if len(made) > 1 else set()
    return all("cache" in mark for mark in marks) and all(
        one is names[one.value].name or (id(one) in returned and names[one.value] is not made[-1])
        for one in uses
        if one.value in names
    )


def _decorators(job: Job) -> Iterator[tuple[str, str]]:
    """The decorators of the factories around the kernel, with what they mean, if that can be told."""
    for above in job.file.index.ancestors(job.located.node):
        for decorator in above.decorators if isinstance(above, cst.FunctionDef) else ():
            node = decorator.decorator
            func = node.func if isinstance(node, cst.Call) else node
            shown = code(func)
            meaning = job.file.names.resolve(func) or ""
            is_other = meaning or shown in ("staticmethod", "classmethod", "property")  # a mark for tests, a cache
            if not is_other or any(word in code(node) + meaning for word in ("jit", "compile")):
                yield shown, meaning
