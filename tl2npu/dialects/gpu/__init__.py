"""The operators of GPU TileLang: everything that ``tilelang.language`` exports.

Source: tile-ai/tilelang a35008a4, ``tilelang/language/__init__.py`` and the files that it imports.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tl2npu.dialects.catalogue import Operator
from tl2npu.dialects.gpu import data, scalars, structure, system
from tl2npu.dialects.gpu.build import vector_types

FILES = (data, structure, scalars, system)
"""The data files; each has a tuple ``OPERATORS``."""

OPERATORS: Mapping[str, Operator] = MappingProxyType(
    {row.name: row for row in (*(row for file in FILES for row in file.OPERATORS), *vector_types())}
)
"""All operators by their name relative to ``tilelang.language``.

``memory`` is the catalogue's word for where an allocation lives; its uses decide what it becomes on the NPU.
"""

OLDER: Mapping[str, str] = MappingProxyType({"gemm_v1": "gemm", "gemm_v2": "gemm"})
"""Names of earlier versions, and the operators that took the same arguments over."""


def lookup(canonical: str) -> Operator | None:
    """The operator of a canonical name such as ``tilelang.language.gemm``; None for any other name."""
    prefix = "tilelang.language."
    name = canonical.removeprefix(prefix)
    return OPERATORS.get(OLDER.get(name, name)) if canonical.startswith(prefix) else None
