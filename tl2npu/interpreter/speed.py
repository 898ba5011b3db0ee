"""Makes what Triton's interpreter does for each operation cheaper, with the same results. Imported when Triton has
been.

Every value carries its shape as a tuple of constexprs, each with a type of its own: building these takes longer than
the arithmetic on a tile. They never change, so that equal shapes can share them. Overflow of integers is asserted
only in kernels compiled with ``debug``, and costs three operations for each addition.
"""

from __future__ import annotations

import dataclasses
from functools import lru_cache
from typing import Any

import triton.language as tl
from triton.runtime import interpreter

core = tl.core


def faster(scope: Any) -> None:
    """Put the cheaper ways into a scope of patches."""
    builder = interpreter.interpreter_builder
    scope.set_attr(builder, "options", dataclasses.replace(builder.options, sanitize_overflow=False))
    usual = core.block_type.__init__

    def block_type(self: Any, element_ty: Any, shape: Any) -> None:
        extents = tuple(shape.values) if type(shape) is core.tuple else tuple(shape)
        for extent in extents:
            if type(extent) is not int:
                extents = tuple(core._unwrap_if_constexpr(extent) for extent in shape)
                break
        if not extents or not all(type(extent) is int for extent in extents):
            usual(self, element_ty, shape)
            return
        self.element_ty = element_ty
        self.shape, self.numel = _block(extents)
        self.name = _name(extents, str(element_ty))

    def tensor(self: Any, handle: Any, type: Any) -> None:
        self.handle = handle
        self.type = type
        self.dtype = type.scalar
        self.shape, self.numel = _tensor(tuple(type.shape.values)) if type.is_block() else _SCALAR

    scope.set_attr(core.block_type, "__init__", block_type)
    scope.set_attr(core.tensor, "__init__", tensor)


@lru_cache(4096)
def _block(extents: tuple[int, ...]) -> tuple[Any, int]:
    return core.tuple(list(extents)), core.validate_block_shape(extents)


@lru_cache(4096)
def _name(extents: tuple[int, ...], element: str) -> str:
    return f"<{core.tuple(list(extents))}, {element}>"


@lru_cache(4096)
def _tensor(extents: tuple[int, ...]) -> tuple[Any, Any]:
    numel = 1
    for extent in extents:
        numel *= extent
    return core.tuple([core.constexpr(extent) for extent in extents]), core.constexpr(numel)


_SCALAR = _tensor(())
