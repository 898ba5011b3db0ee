"""What is asked of a device: launches with plain values and arrays, written for a child process. No pickles."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tl2npu.traces.patterns import bits, of_bits

Arrays = dict[str, np.ndarray]

_PLAIN = (bool, int, str, type(None))


class NotPlain(Exception):
    """An argument of a factory that another process cannot be given; ``str()`` says which."""


@dataclass(frozen=True)
class Program:
    """A file to execute: ``pieces`` are (name, text) in order; TileLang's parser finds the texts by these names."""

    path: str
    pieces: Sequence[tuple[str, str]]
    argv: Sequence[str] = ()


@dataclass(frozen=True)
class Launch:
    """One launch of one kernel.

    ``factory`` with ``arguments`` (plain values) gives the kernel; ``compile``: ``out_idx``, ``workspace_idx``,
    ``pass_configs`` and ``target``, for a factory that gives the prim_func only. ``order``: all parameters; ``given``:
    those that the caller passes; ``returned``: the tensors that come back. ``inputs``: all tensors before the launch,
    those that the call makes too. ``shared``: a tensor -> an earlier one that has the very same memory.
    """

    number: int
    factory: str
    arguments: Mapping[str, Any]
    compile: Mapping[str, Any]
    order: Sequence[str]
    given: Sequence[str]
    returned: Sequence[str]
    inputs: Arrays
    scalars: Mapping[str, Any]
    shared: Mapping[str, str] = field(default_factory=dict)

    @property
    def elements(self) -> int:
        """Elements of all tensors."""
        return sum(array.size for array in self.inputs.values())

    def written(self, folder: Path, side: str) -> dict[str, Any]:
        """Write the tensors into a folder; what the request of the child holds. Raises NotPlain."""
        stem = folder / f"{self.number:06}.{side}"
        arguments = plain(dict(self.arguments))
        tensors: dict[str, Any] = {f"t.{name}": bits(array) for name, array in self.inputs.items()}
        np.savez(f"{stem}.in.npz", **tensors)
        return {
            "number": self.number,
            "elements": self.elements,
            "factory": self.factory,
            "arguments": arguments,
            "compile": dict(self.compile),
            "order": list(self.order),
            "given": list(self.given),
            "returned": list(self.returned),
            "tensors": {name: array.dtype.name for name, array in self.inputs.items()},
            "scalars": {name: _scalar(value) for name, value in self.scalars.items()},
            "shared": dict(self.shared),
            "inputs": f"{stem}.in.npz",
            "outputs": f"{stem}.out.npz",
        }


def results(told: Mapping[str, Any]) -> Arrays | None:
    """The tensors that a child has written for a launch, by name; None if it has not."""
    path = Path(told["outputs"])
    if not path.is_file():
        return None
    with np.load(path, allow_pickle=False) as file:
        kinds = told["tensors"].items()
        return {name: of_bits(file[f"t.{name}"], dtype) for name, dtype in kinds if f"t.{name}" in file}


def plain(value: Any) -> Any:
    """A value that JSON holds: containers and what JSON lacks as a dict of one item. Raises NotPlain."""
    if isinstance(value, str):
        return str(value)  # element types of the simulator are strings, too
    if type(value) in _PLAIN:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [plain(item) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[plain(k), plain(v)] for k, v in value.items()]}
    if type(value).__module__ == "torch" and type(value).__name__ == "dtype":
        return {"dtype": str(value).removeprefix("torch.")}
    raise NotPlain(f"the argument {value!r} of its factory is not a plain value")


def _scalar(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
