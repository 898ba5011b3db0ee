"""TL889: kernels that read names which nothing binds, of which nothing else is said."""

from __future__ import annotations

from collections.abc import Callable

from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.kernel.undefined import not_defined, of_the_script, undefined
from tl2npu.passes.eager.factories import find_eager
from tl2npu.passes.job import diagnostic
from tl2npu.results import Diagnostic

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
