"""Why nothing of the file compiles a kernel, as far as that can be told."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tl2npu.kernel.access import accesses
from tl2npu.kernel.expressions import code
from tl2npu.passes.job import Job
from tl2npu.source.tree import calls_in, nodes_of

_TUNERS = ("tilelang.autotune", "tilelang.autotuner.autotune")
_PARALLEL = "tilelang.par_compile"


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
    return f"nothing in this file compiles the kernel, so {wanted} cannot be set: {compiled_by(job)}"


def compiled_by(job: Job) -> str:
    """What to do so that the kernel is compiled here, and returns the tensors that it stores and does not read."""
    factory = job.located.factory
    for node in nodes_of(factory.node, cst.Return) if factory is not None else ():
        call = node.value  # a decorator above would get what this makes of the kernel
        if isinstance(call, cst.Call) and any(code(arg.value) == job.located.node.name.value for arg in call.args):
            return f"call `tilelang.compile` instead of `{code(call.func)}`"
    used = [access for stmt in job.kernel.walk() for access in accesses(stmt)]
    read = {access.operand.buffer for access in used if access.reads}
    stored = {access.operand.buffer for access in used if access.writes}
    made = [tensor.index for tensor in job.kernel.params if tensor in stored - read]
    out = f"out_idx={made}" if made else ""
    if factory is not None:
        return f"add `@tilelang.jit({out})` above `{factory.node.name.value}`"
    return (
        f"add `kernel = tilelang.compile({', '.join(filter(None, (job.kernel_name, out)))})` below `{job.kernel_name}`"
    )


def may_be_compiled(job: Job) -> bool:
    """True if whoever compiles the kernel, here in a way that is not known or in another file, gets what is written.

    A decorator that is not known may make something else of it; a cache does not. The NPU has no ``par_compile``.
    """
    above = [func for func in job.file.index.ancestors(job.located.node) if isinstance(func, cst.FunctionDef)]
    marks = [code(mark.decorator) for func in above for mark in func.decorators]
    return all("cache" in mark for mark in marks) and _PARALLEL not in why_uncompiled(job, "pass_configs")


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
