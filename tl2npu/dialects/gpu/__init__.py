"""The operators of GPU TileLang: everything that ``tilelang.language`` exports.

Source: tile-ai/tilelang a35008a4, ``tilelang/language/__init__.py`` and the files that it imports.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from tl2npu.dialects.catalogue import Operator
from tl2npu.dialects.gpu import data, scalars, structure, system
from tl2npu.dialects.gpu.build import vector_types

FILES = (data, structure, scalars, system)
"""The data files; each has a tuple ``OPERATORS``."""

_MEMORY = {
    "alloc_shared": "shared",
    "alloc_fragment": "fragment",
    "alloc_reducer": "fragment",
    "alloc_local": "fragment",
    "alloc_var": "var",
}
"""The catalogue's word for where an allocation lives; what it becomes on the NPU is decided by its uses."""


def _rows() -> Iterator[Operator]:
    for row in (*(row for file in FILES for row in file.OPERATORS), *vector_types()):
        yield replace(row, memory=_MEMORY[row.name]) if row.name in _MEMORY else row


OPERATORS: Mapping[str, Operator] = MappingProxyType({row.name: row for row in _rows()})
"""All operators by their name relative to ``tilelang.language``."""


def lookup(canonical: str) -> Operator | None:
    """The operator of a canonical name such as ``tilelang.language.gemm``; None for any other name."""
    prefix = "tilelang.language."
    return OPERATORS.get(canonical.removeprefix(prefix)) if canonical.startswith(prefix) else None
