"""Tensors of the caller: NumPy arrays, or torch tensors where torch is there; the memory is shared, never copied."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from tl2npu.simulator.ir import dtypes

MARK = "_tl2npu_on_device"
"""The attribute of a torch tensor that the script has put on the accelerator: its memory is the CPU's, but moving it
there again is no copy, and moving it back is one."""


def mark(tensor: Any) -> Any:
    """The tensor, remembered as one on the accelerator."""
    setattr(tensor, MARK, True)
    return tensor


def on_device(tensor: Any) -> bool:
    """True for a tensor on the accelerator."""
    return MARK in getattr(tensor, "__dict__", ())


def is_tensor(value: Any) -> bool:
    """True for a NumPy array or torch tensor."""
    torch = sys.modules.get("torch")
    return isinstance(value, np.ndarray) or (torch is not None and isinstance(value, torch.Tensor))


def array_of(value: Any) -> np.ndarray:
    """The tensor's memory as an array; bfloat16 and 8-bit floats through a view. Raises TypeError for anything else."""
    if isinstance(value, np.ndarray):
        return value
    torch: Any = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor):
        raise TypeError(f"a tensor is needed, not {type(value).__name__}")
    value = value.detach()
    if value.device.type != "cpu":
        raise TypeError(f"a tensor on device {value.device}; the simulator's tensors are on the CPU")
    name = dtype_of(value)
    try:
        return value.numpy()  # type: ignore[no-any-return]
    except TypeError:
        raw = {1: torch.uint8, 2: torch.int16, 4: torch.int32}[value.element_size()]
        return value.view(raw).numpy().view(dtypes.numpy_dtype(name))  # type: ignore[no-any-return]


def tensor_of(array: np.ndarray) -> Any:
    """The array as a torch tensor on the accelerator with the same memory, as host code expects it; the array itself
    where torch is not loaded or has no such element type."""
    torch: Any = sys.modules.get("torch")
    kind = getattr(torch, dtypes.canonical(str(array.dtype)), None)
    if kind is None:
        return array
    raw = {1: np.uint8, 2: np.int16, 4: np.int32, 8: np.int64}[array.dtype.itemsize]
    return mark(torch.from_numpy(array.view(raw)).view(kind))


def dtype_of(value: Any) -> str:
    """The canonical name of a tensor's element type."""
    return dtypes.canonical(str(value.dtype).removeprefix("torch."))


def blank(shape: tuple[int, ...], dtype: str, poison: Any, torch_wanted: bool) -> tuple[Any, np.ndarray]:
    """A new tensor for the caller, filled with ``poison``, and its memory."""
    kind = dtypes.numpy_dtype(dtype)
    if torch_wanted:
        import torch

        if not hasattr(torch, dtype):
            raise TypeError(f"torch has no tensors of {dtype}: the simulator cannot make one")
        tensor = torch.empty(shape, dtype=getattr(torch, dtype))
        array = array_of(tensor)
        array[...] = kind.type(poison)
        return mark(tensor), array
    array = np.full(shape, poison, kind)
    return array, array


def uses_torch(values: Any) -> bool:
    """True if one of the values is a torch tensor, or torch is loaded and none is an array."""
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    if any(isinstance(v, torch.Tensor) for v in values):
        return True
    return not any(isinstance(v, np.ndarray) for v in values)
