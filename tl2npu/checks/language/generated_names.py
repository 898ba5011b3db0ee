"""TL747: a name that the generated C++ has another meaning for.

Evidence: a kernel for each kind of name, whose generated text was read and given to a C++ compiler.
"""

from __future__ import annotations

from collections.abc import Iterator

from tl2npu.checks.operators.types import types_of
from tl2npu.checks.subject import Finding, Subject
from tl2npu.kernel.generated_names import clashes


def check(subject: Subject) -> Iterator[Finding]:
    """A type's name harms where a tile or tensor of the kernel has that type, or may have it."""
    found = [types_of(subject, buffer) for buffer in subject.kernel.buffers.values()]
    for name, (node, why, of) in clashes(subject.kernel).items():
        if not of or any(of in types for types in found):
            yield Finding("TL747", node, f"`{name}`: {why}")
        elif not all(found):
            yield Finding("TL747", node, f"`{name}`: {why}", "warning")
