"""TL923, TL924: what looks like a kernel and is not read gets a verdict, so that it does not pass for done."""

from __future__ import annotations

from collections.abc import Callable

from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.kernel.factories.unseen import unseen
from tl2npu.passes.eager.factories import find_eager
from tl2npu.passes.job import diagnostic
from tl2npu.results import Diagnostic, KernelResult, Severity


def unseen_kernels(
    file: FileKernels, covers: Callable[[int, str], bool], style: str = "unknown"
) -> tuple[list[KernelResult], list[Diagnostic]]:
    """The verdicts on what is not read, and the findings.

    ``covers``: whether a comment on a line silences a code; what is silenced is no kernel.
    """
    index = file.index
    seen = {id(located.node) for located in file.located} | {id(eager.node) for eager in find_eager(index)}
    kernels: list[KernelResult] = []
    notes: list[Diagnostic] = []
    for place in unseen(index, file.names, seen):
        severity: Severity = "error" if place.sure else "warning"
        note = diagnostic(index, place.code, place.node, place.message, place.name, severity)
        if covers(note.line, note.code):
            continue
        notes.append(note)
        if place.sure:
            kernels.append(KernelResult(place.name, note.line, style, "none", "refused", note.message, (note.code,)))
    return kernels, notes
