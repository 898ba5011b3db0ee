"""The catalogues that a kernel is read with, by the language that it is written in.

A kernel on its way from one language to another has operators of both, so every language but the last has others
behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

from tl2npu.dialects import ascend, gpu, npuir
from tl2npu.dialects.catalogue import Operator
from tl2npu.kernel.style import Dialect

_CATALOGUES: Mapping[Dialect, tuple[Callable[[str], Operator | None], ...]] = {
    "gpu": (gpu.lookup, ascend.lookup),
    "ascend": (ascend.lookup,),
    "npuir": (npuir.lookup, gpu.lookup, ascend.lookup),
}


@cache
def _found(dialect: Dialect, canonical: str) -> tuple[Operator, ...]:
    return tuple(op for one in _CATALOGUES[dialect] if (op := one(canonical)) is not None)


def lookup(dialect: Dialect, canonical: str) -> Operator | None:
    """The operator of a canonical name in a language, or in one that the kernel is on its way to or from."""
    return next(iter(_found(dialect, canonical)), None)


def half_rewritten(dialect: Dialect, op: Operator, args: Sequence[tuple[str | None, object]]) -> Operator:
    """The first operator of the same name that takes the arguments of a call; the operator itself if none does."""
    rows = _found(dialect, f"tilelang.language.{op.name}")
    return op if all(row is op for row in rows) else next((row for row in rows if row.takes(args)), op)
