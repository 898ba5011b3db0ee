"""Global tensors that a GPU kernel keeps in a layout of its own, as the kernel indexes them.

Launches are recorded and compared by index: an element of the old kernel is compared with the element that has the same
indices in the new one, wherever each of them lies in memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tl2npu.simulator.frontend.gpu_layout import Layout
from tl2npu.simulator.ir.buffer import Buffer

Arrays = dict[str, np.ndarray]


def of(kernel: Any) -> dict[str, Layout]:
    """The layouts of a kernel's global tensors by parameter name."""
    layouts = kernel.attrs.get("layouts", {})
    buffers = [p for p in (*kernel.params, *kernel.outputs) if isinstance(p, Buffer)]
    return {b.name: layouts[b.number] for b in buffers if b.number in layouts}


def by_index(kernel: Any, arrays: Arrays) -> Arrays:
    """Tensors as they lie in memory -> as the kernel indexes them. Those without a layout are the arrays given."""
    layouts = of(kernel)
    return {name: layouts[name].logical(a) if name in layouts else a for name, a in arrays.items()}


def in_memory(layout: Layout | None, array: np.ndarray) -> np.ndarray:
    """A copy of a tensor given by index, as it lies in memory."""
    result = array.copy()
    if layout is not None:
        layout.restore(result, array)
    return result


def places(kernel: Any, arrays: Arrays) -> Arrays:
    """Where each element of a tensor lies, for those tensors that have a layout."""
    return {name: layout.positions(arrays[name].shape) for name, layout in of(kernel).items()}


def same(left: np.ndarray | None, right: np.ndarray | None) -> bool:
    """True if two tensors lie in memory alike; None is the plain order."""
    if left is None or right is None:
        one = right if left is None else left
        return one is None or bool(np.array_equal(one.ravel(), np.arange(one.size)))
    return bool(np.array_equal(left, right))
