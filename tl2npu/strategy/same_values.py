"""Whether the kernel that was built gives the values of the one that was read, before it is taken.

Both are evaluated on NumPy arrays (:mod:`tl2npu.evaluate`). What cannot be evaluated is said, and stands all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import libcst as cst

from tl2npu.checks.operators import untouched
from tl2npu.checks.subject import Subject
from tl2npu.evaluate.compare import compared
from tl2npu.evaluate.verdict import Outcome
from tl2npu.kernel.expressions import code
from tl2npu.kernel.memory.inferred import infer_memory
from tl2npu.passes.job import Job
from tl2npu.passes.plain.generated_names import renamed
from tl2npu.results import KernelResult, SelfCheck
from tl2npu.strategy.attempt import subject_of

_READ = frozenset({"gpu", "vid", "workspace", "mixed", "expert", "npuir"})
_WRITTEN = frozenset({"developer", "developer-threads1", "fallback", "npuir"})


_UNSEEN = "the values depend on elements behind the end of a tensor, which a GPU takes for 0"

Comparison = Callable[[Subject, Subject], Outcome]
"""Compares the kernel in another language that a first one was translated from with a second one, which that became."""


def checked(
    given: Job, result: KernelResult, job: Job, comparison: Comparison | None = None
) -> tuple[KernelResult, Job]:
    """The result with what was found; a refusal, with the job as it was given, if the values differ.

    ``comparison``: of a kernel that is a translation; it counts where both can be evaluated. At sizes that the first
    kernel does not take, the translation may do as it likes.
    """
    if not given.options.self_check or result.disposition not in ("migrated", "partial"):
        return result, job
    if result.source not in _READ or result.target not in _WRITTEN:
        return result, job
    old, new = subject_of(renamed(given)), subject_of(job)
    source = Outcome(None) if comparison is None else comparison(old, new)
    found = compared(old, new) if source.equal is None else source
    if source.why and (found.equal is not False or source.unfit):
        found = replace(source, why=f"the kernel that was translated: {source.why}")
    if found.behind and job.has_kept_inside:
        return _refused(given, result, "TL179", given.located.node, _UNSEEN)
    if found.equal is not False:
        return replace(result, checked=SelfCheck(found.equal is True, found.why, found.shown_sizes)), job
    own = next((one for one in untouched.check(subject_of(given)) if one.code != "TL799"), None)
    if own is not None and result.source != "gpu":  # it reads what nothing has written
        return _refused(given, result, own.code, own.node, own.message)
    why = _different(found)
    if job.steps and source.equal is None:
        why += f"; the values are wrong since pass `{first_wrong(given, job)}`"
    return _refused(given, result, "TL970", found.parting.old if found.parting else given.located.node, why)


def _refused(given: Job, result: KernelResult, code: str, node: cst.CSTNode, why: str) -> tuple[KernelResult, Job]:
    given.note(code, node, why, "error")
    codes = tuple(sorted({note.code for note in given.notes}))
    return KernelResult(result.name, result.line, result.source, "none", "refused", why, codes), given


def first_wrong(given: Job, job: Job) -> str:
    """The first pass behind which the kernel never had the values of the given one again.

    Some passes leave a kernel to the next one that computes something else, so the last right state counts.
    """
    old, found = subject_of(renamed(given)), job.steps[-1][0]
    for name, file in reversed(job.steps):
        located = next((item for item in file.located if item.key == job.key), None)
        if located is None:
            break
        kernel = located.read(job.targets)
        infer_memory(kernel)
        if compared(old, Subject(kernel, file, located, job.options)).equal:
            break
        found = name
    return found


def _different(found: Outcome) -> str:
    at = f" ({found.shown_sizes})" if found.shown_sizes else ""
    text = f"the new kernel would {'fail' if found.fails else 'compute something else'}: {found.why}{at}"
    if found.parting is None:
        return text
    new = found.parting.new
    becomes = "which no new statement stores" if new is None else f"which `{code(new)}` would store"
    return f"{text}; the first to differ is `{found.parting.name}` behind this statement, {becomes}"
