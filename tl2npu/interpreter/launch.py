"""What is kept of one launch of a Triton kernel: what it was given, and its memory before and after.

A Triton kernel gets pointers, and may read and write what lies around the tensor that a pointer belongs to: a view of
one row is passed, with the stride of the whole. So memory is kept by storage, and a tensor is a view of one.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from tl2npu.simulator.ir import dtypes

Arrays = dict[str, np.ndarray]


class NoSuchView(ValueError):
    """A tensor argument cannot be seen with a shape; ``str()`` says why."""


@dataclass(frozen=True)
class TensorArgument:
    """A tensor that was passed for a pointer: where in the memory of the launch its elements lie.

    ``storage`` is an index into ``Launch.before`` and ``after``; tensors with the same number share memory. ``offset``
    and ``strides`` count elements. ``dtype`` is a canonical name (``float16``, ``bfloat16``, ``int32``, ``bool``).
    """

    storage: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str

    @property
    def contiguous(self) -> bool:
        """Whether the elements lie one after the other, in row-major order."""
        expected = 1
        for extent, stride in reversed(list(zip(self.shape, self.strides, strict=True))):
            if extent != 1 and stride != expected:
                return False
            expected *= extent
        return True

    def of(self, storage: np.ndarray) -> np.ndarray:
        """The view of a storage (bytes) that this tensor is; writes to it are writes to the storage."""
        kind = dtypes.numpy_dtype(self.dtype)
        strides = tuple(stride * kind.itemsize for stride in self.strides)
        return np.ndarray(self.shape, kind, storage.data, self.offset * kind.itemsize, strides)


@dataclass(frozen=True)
class Launch:
    """One launch of one Triton kernel.

    ``kernel``: its qualified name, functions around it included, without ``<locals>``. ``turn`` counts the launches of
    this kernel from 0, ``number`` those of the script. ``line`` is that of its ``def`` in ``file``, ``site`` that of
    the launch in the script.

    Every parameter, in the order ``params``, is in exactly one of: ``constexprs`` (the values that ``tl.constexpr``
    parameters had, defaults, heuristics and the configuration of an autotuner included), ``scalars`` (numbers and
    booleans), ``tensors``, ``descriptors`` (a ``TensorDescriptor`` of the host: its tensor, and ``block_shape``), and
    ``absent`` (None was passed). ``options`` are keywords that are no parameters (``num_warps``), ``config`` is the
    configuration that stood in for tuning (the first), empty without an autotuner.

    ``rounded``: element types to which it rounded wider floats that it had computed, and multiplied the result.
    ``before`` and ``after`` are all storages as bytes; one that did not change is the same array in both. ``again``:
    those of a second run, if the launch reads outside of every tensor, which read other numbers there. ``dense``:
    tensors that were contiguous copies of what the script passed, because with that it read outside of every tensor.

    ``draw``: of which kind the values are, of a launch that is none of the script; ``changed`` says what else it
    changes, ``free`` names the scalars whose values go with no tensor, and ``resized`` has a size of the script's
    launch and what it is here.
    """

    number: int
    kernel: str
    turn: int
    file: str
    line: int
    site: int
    grid: tuple[int, int, int]
    params: tuple[str, ...]
    constexprs: dict[str, Any]
    scalars: dict[str, Any]
    tensors: dict[str, TensorArgument]
    before: tuple[np.ndarray, ...]
    after: tuple[np.ndarray, ...]
    options: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    descriptors: dict[str, tuple[TensorArgument, tuple[int, ...]]] = field(default_factory=dict)
    absent: tuple[str, ...] = ()
    rounded: tuple[str, ...] = ()
    again: tuple[np.ndarray, ...] = ()
    dense: tuple[str, ...] = ()
    draw: str = ""
    changed: str = ""
    free: tuple[str, ...] = ()
    resized: tuple[int, int] | None = None

    @cached_property
    def inputs(self) -> Arrays:
        """The tensors before the launch, by parameter name, in their own shapes. Not to be written to."""
        return {name: tensor.of(self.before[tensor.storage]) for name, tensor in self.all_tensors.items()}

    @cached_property
    def outputs(self) -> Arrays:
        """The same tensors after the launch."""
        return {name: tensor.of(self.after[tensor.storage]) for name, tensor in self.all_tensors.items()}

    @property
    def all_tensors(self) -> dict[str, TensorArgument]:
        """The tensors of pointers and of descriptors, in the order of the parameters."""
        found = {**self.tensors, **{name: tensor for name, (tensor, _) in self.descriptors.items()}}
        return {name: found[name] for name in self.params if name in found}

    @property
    def written(self) -> tuple[str, ...]:
        """The tensors whose elements the launch changed."""
        return tuple(n for n, before in self.inputs.items() if before.tobytes() != self.outputs[n].tobytes())

    @property
    def shared(self) -> dict[str, str]:
        """A parameter -> an earlier one that was given the very same memory."""
        first: dict[TensorArgument, str] = {}
        found = {name: first.setdefault(tensor, name) for name, tensor in self.all_tensors.items()}
        return {name: other for name, other in found.items() if other != name}

    def seen_as(self, name: str, shape: tuple[int, ...], *, after: bool = False) -> np.ndarray:
        """A tensor argument with another shape: the same elements in row-major order.

        Where the tensor is contiguous, ``shape`` may have fewer elements than it, as of a kernel that works on the
        first rows, or more, if its storage has them. Raises NoSuchView.
        """
        return self._seen(name, shape, self.after if after else self.before)

    def undefined(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        """Which elements of a tensor, seen with a shape, depend on what lies outside of every tensor."""
        if not self.again:
            return np.zeros(shape, bool)
        return differing(self._seen(name, shape, self.after), self._seen(name, shape, self.again))

    def _seen(self, name: str, shape: tuple[int, ...], storages: tuple[np.ndarray, ...]) -> np.ndarray:
        tensor = self.all_tensors[name]
        storage = storages[tensor.storage]
        if shape == tensor.shape:
            return tensor.of(storage)
        if not tensor.contiguous:
            raise NoSuchView(f"{name} has shape {list(tensor.shape)} and strides {list(tensor.strides)}")
        strides = tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))
        if (tensor.offset + prod(shape)) * dtypes.numpy_dtype(tensor.dtype).itemsize > storage.size:
            raise NoSuchView(f"{name} has shape {list(tensor.shape)}: fewer elements than {list(shape)}")
        return TensorArgument(tensor.storage, tensor.offset, shape, strides, tensor.dtype).of(storage)


def differing(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Which elements of two arrays, of the same shape and type, have other bits."""
    kind = f"u{one.dtype.itemsize}"
    found: np.ndarray = np.array(one, order="C").view(kind) != np.array(other, order="C").view(kind)
    return found


def keep(folder: Path, launch: Launch) -> None:
    """Write a launch into a folder, under its number."""
    with (folder / f"{launch.number:06}.triton").open("wb") as file:
        pickle.dump(launch, file, protocol=5)


def load(folder: Path) -> Iterator[Launch]:
    """The launches of a folder in order, one in memory at a time."""
    for path in sorted(folder.glob("*.triton")):
        yield load_one(folder, int(path.stem))


def load_one(folder: Path, number: int) -> Launch:
    """One launch of a folder."""
    with (folder / f"{number:06}.triton").open("rb") as file:
        return pickle.load(file)  # type: ignore[no-any-return]  # written a moment ago, into a folder of its own
