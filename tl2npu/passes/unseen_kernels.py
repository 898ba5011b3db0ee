"""TL923, TL924: what looks like a kernel and is not read gets a verdict, so that it does not pass for done.

TL889: so do kernels that read names which nothing binds, of which nothing else is said.
"""

from __future__ import annotations

from collections.abc import Callable

from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.kernel.factories.unseen import unseen
from tl2npu.kernel.undefined import not_defined, of_the_script, undefined
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


_SCRIPT = "only `if __name__ == ...` binds `{}`: the kernel fails where another module imports this file"


def undefined_names(
    file: FileKernels, covers: Callable[[int, str], bool], alone: bool = True
) -> dict[int, list[Diagnostic]]:
    """Line of a kernel's ``def`` -> its names; without ``alone`` those that only the file as a script has, as warnings.

    ``covers``: whether a comment on a line silences a code.
    """
    index, names = file.index, file.names
    kernels = [(item.node, item.key[0]) for item in file.located]
    kernels += [(eager.node, eager.name) for eager in find_eager(index)]
    found: dict[int, list[Diagnostic]] = {}
    for node, kernel in kernels:
        notes = [
            diagnostic(index, "TL889", name, not_defined(names, name), kernel) for name in undefined(index, names, node)
        ]
        for name in () if alone else of_the_script(index, names, node):
            notes.append(diagnostic(index, "TL889", name, _SCRIPT.format(name.value), kernel, "warning"))
        for note in notes:
            if not covers(note.line, note.code):
                found.setdefault(index.position(node).line, []).append(note)
    return found
