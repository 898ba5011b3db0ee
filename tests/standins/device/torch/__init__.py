"""The part of torch that the launching child uses: tensors that are NumPy arrays, on two devices.

As the real one ``from_numpy`` takes NumPy's own element types only, and ``numpy`` gives no others.
"""

from __future__ import annotations

import types

import ml_dtypes
import numpy as np


class dtype:
    def __init__(self, name: str) -> None:
        self.name = name
        self.kind = np.dtype(getattr(ml_dtypes, name, None) or name)
        self.itemsize = self.kind.itemsize

    def __repr__(self) -> str:
        return f"torch.{self.name}"


_NAMES = ["float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "bool"]
_NAMES += ["uint8", "uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2"]
_TYPES = {name: dtype(name) for name in _NAMES}
globals().update(_TYPES)


class Tensor:
    def __init__(self, array: np.ndarray, device: str = "cpu") -> None:
        self.array, self.device = array, device

    @property
    def dtype(self) -> dtype:
        return next(t for t in _TYPES.values() if t.kind == self.array.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    def view(self, kind: dtype) -> Tensor:
        return Tensor(self.array.view(kind.kind), self.device)

    def npu(self) -> Tensor:
        return Tensor(self.array.copy(), "npu")

    def cpu(self) -> Tensor:
        return Tensor(self.array.copy(), "cpu")

    def detach(self) -> Tensor:
        return self

    contiguous = detach

    def numpy(self) -> np.ndarray:
        if self.device != "cpu":
            raise TypeError("can't convert npu device type tensor to numpy")
        if self.array.dtype.isbuiltin != 1:
            raise TypeError(f"Got unsupported ScalarType {self.dtype}")
        return self.array


def from_numpy(array: np.ndarray) -> Tensor:
    if array.dtype.isbuiltin != 1 or (array.dtype.kind == "u" and array.dtype.itemsize > 1):
        raise TypeError(f"can't convert np.ndarray of type {array.dtype}")
    return Tensor(array)


npu = types.SimpleNamespace(is_available=lambda: False)  # until torch_npu is imported
