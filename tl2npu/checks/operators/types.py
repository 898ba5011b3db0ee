"""The element types that a buffer may have, as far as its file tells."""

from __future__ import annotations

from tl2npu.checks.subject import Subject
from tl2npu.dialects import element_types
from tl2npu.kernel.model import Buffer
from tl2npu.kernel.named_types import named_types

_OTHERS = frozenset({"bool"})


def types_of(subject: Subject, buffer: Buffer) -> frozenset[str]:
    """One type, or those that the file gives to the name of the type; none where some of them cannot be told."""
    return types_named(subject, buffer.dtype)


def types_named(subject: Subject, dtype: str) -> frozenset[str]:
    """The same, of the type as the source has it."""
    found = frozenset({dtype})
    if not _is_told(dtype):
        found = named_types(subject.file.index.module).get(dtype, frozenset())
    return frozenset(map(_plain, found)) if all(map(_is_told, found)) else frozenset()


def _is_told(dtype: str) -> bool:
    return bool(element_types.known(dtype)) or dtype in _OTHERS


def _plain(dtype: str) -> str:
    return element_types.known(dtype) or dtype
