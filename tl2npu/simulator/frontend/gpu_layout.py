"""``T.Layout`` and ``T.annotate_layout``: how the elements of a buffer lie in memory.

On the chip a layout changes no value. That of a global tensor does: other kernels and the host see the tensor's memory
as it lies (tilelang/language/annotations.py:annotate_layout).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tl2npu.simulator.errors import SimulatorError, UnsupportedOperator
from tl2npu.simulator.frontend.builder import Builder


class Layout:
    """``T.Layout(shape, lambda i, j: [...])``: logical index -> physical index."""

    def __init__(self, shape: Any, forward_fn: Callable[..., Any]) -> None:
        self.shape = shape
        self.forward = forward_fn

    def positions(self, shape: tuple[int, ...]) -> np.ndarray:
        """Where each element lies, counted from the start of the tensor. Raises SimulatorError for a layout that does
        not give each element a place of its own."""
        try:
            found = self.forward(*np.indices(shape))
        except TypeError as error:
            raise UnsupportedOperator(f"a layout of a global tensor that is not plain arithmetic: {error}") from None
        axes = [np.broadcast_to(a, shape) for a in (found if isinstance(found, (list, tuple)) else [found])]
        extents = [int(a.max(initial=0)) + 1 for a in axes]
        if int(np.prod(extents)) != int(np.prod(shape)):
            raise SimulatorError(f"a layout of a tensor of shape {list(shape)} that fills {extents}")
        return np.ravel_multi_index(axes, extents)

    def logical(self, array: np.ndarray) -> np.ndarray:
        """The tensor as the kernel indexes it."""
        return array.reshape(-1)[self.positions(array.shape)]  # type: ignore[no-any-return]

    def restore(self, array: np.ndarray, logical: np.ndarray) -> None:
        """Writes the kernel's tensor back to memory."""
        flat = np.empty(array.size, array.dtype)
        flat[self.positions(array.shape)] = logical
        array[...] = flat.reshape(array.shape)


class Fragment:
    """``T.Fragment``: how a tile is spread over threads, which changes no value."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: self


def annotate_layout(layouts: Any, *_: Any, **__: Any) -> None:
    """``T.annotate_layout({buffer: layout})``."""
    builder = Builder.current()
    for buffer, layout in dict(layouts).items():
        if getattr(buffer, "memory", "") != "global":
            continue
        if not isinstance(layout, Layout):
            raise UnsupportedOperator(
                f"a layout of the global tensor {buffer.name} that is not a T.Layout", builder.here()
            )
        builder.kernel.attrs.setdefault("layouts", {})[buffer.number] = layout
