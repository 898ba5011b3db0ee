"""The record of a launch, without Triton."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tl2npu.interpreter.launch import Launch, NoSuchView, TensorArgument, keep, load
from tl2npu.interpreter.memory import Memory


def launch(**tensors: TensorArgument) -> Launch:
    """A launch with one storage of 24 floats, 0 to 23, of which the sixth becomes 100."""
    before = np.arange(24, dtype=np.float32).view(np.uint8)
    after = before.copy()
    after.view(np.float32)[5] = 100
    return Launch(
        3, "k", 0, "k.py", 7, 20, (2, 1, 1), tuple(tensors), {"B": 4}, {"n": 24}, tensors, (before,), (after,)
    )


def test_tensors_are_views_of_their_storage() -> None:
    whole = TensorArgument(0, 0, (4, 6), (6, 1), "float32")
    column = TensorArgument(0, 5, (4,), (6,), "float32")
    found = launch(x=whole, c=column)
    assert found.inputs["x"].tolist() == np.arange(24).reshape(4, 6).tolist()
    assert found.inputs["c"].tolist() == [5, 11, 17, 23]
    assert found.outputs["c"].tolist() == [100, 11, 17, 23]
    assert found.written == ("x", "c")
    assert whole.contiguous
    assert not column.contiguous


def test_a_contiguous_tensor_may_be_seen_with_another_shape() -> None:
    found = launch(x=TensorArgument(0, 6, (3, 6), (6, 1), "float32"))
    assert found.seen_as("x", (18,)).tolist() == list(range(6, 24))
    assert found.seen_as("x", (2, 3)).tolist() == [[6, 7, 8], [9, 10, 11]]
    with pytest.raises(NoSuchView, match=r"x has shape \[3, 6\]: fewer elements than \[4, 6\]"):
        found.seen_as("x", (4, 6))


def test_one_with_gaps_may_not() -> None:
    found = launch(x=TensorArgument(0, 0, (4, 3), (6, 1), "float32"))
    with pytest.raises(NoSuchView, match=r"shape \[4, 3\] and strides \[6, 1\]"):
        found.seen_as("x", (12,))


def test_the_same_memory_passed_twice() -> None:
    whole = TensorArgument(0, 0, (24,), (1,), "float32")
    assert launch(x=whole, y=TensorArgument(0, 0, (4,), (1,), "float32"), z=whole).shared == {"z": "x"}


def test_launches_come_back_from_a_folder(tmp_path: Path) -> None:
    keep(tmp_path, launch(x=TensorArgument(0, 0, (24,), (1,), "float32")))
    (found,) = load(tmp_path)
    assert (found.kernel, found.grid, found.constexprs) == ("k", (2, 1, 1), {"B": 4})
    assert found.outputs["x"][5] == 100


def test_addresses_outside_of_all_memory() -> None:
    memory = Memory()
    memory.add(1000, 40)
    memory.add(2000, 8)
    addresses = np.array([1000, 1036, 1040, 996, 2004], np.uint64)
    everything = np.ones(5, bool)
    found = memory.outside(addresses, 4, everything)
    assert found is not None
    assert found.tolist() == [False, False, True, True, False]
    assert memory.outside(addresses, 4, np.array([True, True, False, False, True])) is None
    straddling = memory.outside(np.array([1037], np.uint64), 4, np.ones(1, bool))
    assert straddling is not None
    memory.open = True
    assert memory.outside(addresses, 4, everything) is None
