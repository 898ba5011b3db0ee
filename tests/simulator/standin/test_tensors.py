"""Arrays of the simulator as tensors of torch, and back."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from tl2npu.simulator.standin.tensors import array_of, on_device, tensor_of


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int8, np.int32, np.float16, ml_dtypes.bfloat16, np.float32])
def test_a_tensor_has_the_memory_of_its_array(dtype: type) -> None:
    torch = pytest.importorskip("torch")
    array = np.zeros((2, 3), dtype)
    tensor = tensor_of(array)
    assert isinstance(tensor, torch.Tensor)
    assert str(tensor.dtype) == f"torch.{np.dtype(dtype).name}"
    assert on_device(tensor)
    tensor[1, 2] = 1
    assert array[1, 2] == 1
    assert array_of(tensor).dtype == array.dtype


def test_an_array_stays_one_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    array = np.zeros(3, np.float16)
    monkeypatch.setitem(sys.modules, "torch", None)  # as if it were not installed
    assert tensor_of(array) is array
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace())  # a torch without halves
    assert tensor_of(array) is array
