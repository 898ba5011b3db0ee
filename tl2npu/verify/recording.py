"""Keeps launches of the old file: what went in, what came out, and how the kernel was made."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tl2npu.dialects.fp8 import held
from tl2npu.options import Fp8
from tl2npu.simulator.standin.nested import Outer
from tl2npu.verify import layouts
from tl2npu.verify.compare import has_products, tolerances
from tl2npu.verify.layouts import Arrays
from tl2npu.verify.naming import call_of, name_of
from tl2npu.verify.sessions import Writers

LIMIT = 4 << 30
"""Bytes of recorded tensors for one file."""


class TooLarge(Exception):
    """More tensors than are kept."""


@dataclass(frozen=True)
class Recording:
    """One launch of one kernel. ``inputs`` are all tensors before it, by parameter name, those that the call made too
    (they hold poison); ``outputs`` the same tensors after it.

    ``made``: names of the tensors that the call made, ``scratch`` those of them that it did not return. ``given`` are
    the parameters that the caller passes and ``returned`` the tensors that the call returns, both in order.
    ``tolerances``: element type -> relative tolerance for results of this kernel. ``shared``: a
    parameter -> an earlier one that was given the very same memory. ``places``: where the elements of a tensor lie that
    the kernel keeps in a layout of its own; ``inputs`` and ``outputs`` hold it as the kernel indexes it. ``arguments``
    is None where they cannot be kept for another process. ``turn`` counts the launches of this kernel from 0.
    ``writers``: who wrote the elements of the tensors that changed.
    """

    number: int
    kernel: str
    turn: int
    call: str
    factory: str
    arguments: dict[str, Any] | None
    order: tuple[str, ...]
    made: frozenset[str]
    scratch: frozenset[str]
    given: tuple[str, ...]
    returned: tuple[str, ...]
    tolerances: dict[str, float]
    inputs: Arrays
    outputs: Arrays
    scalars: dict[str, Any]
    shared: dict[str, str]
    places: Arrays
    writers: dict[str, Writers]
    unrounded: Arrays = field(default_factory=dict)
    """The outputs once more, without the roundings that the kernel does on the way to a wider type; if it has some."""
    draw: str = ""
    """Of which kind the inputs are, if they are others than those of the call itself."""
    changed: str = ""
    """What they change beside values: extents and scalars."""
    products: bool = False
    """The kernel multiplies matrices."""
    on_gpu: bool = False
    """The kernel runs on a GPU."""
    undefined: Arrays = field(default_factory=dict)
    """Where the kernel left undefined data in an output; outputs without are missing."""
    params: tuple[str, ...] = ()
    """All parameters in order."""
    compiled: dict[str, Any] = field(default_factory=dict)
    """The arguments of ``tilelang.compile`` that made it."""
    golden: Arrays = field(default_factory=dict)
    """The outputs of floats in float64, if they are wanted."""
    own_errors: Mapping[str, float] = field(default_factory=dict)
    """The absolute tolerance that the old kernel's own errors make, where it is known."""
    narrow: Mapping[str, str] = field(default_factory=dict)
    """Tensors that are kept as float16 here -> their 8-bit type in the old kernel."""
    outer: Outer | None = None
    """The call of the function that the factory is inside of; None too where it cannot be made again."""

    def tolerance(self, name: str, dtype: str) -> float:
        """The relative tolerance for a tensor, by its type in the old kernel."""
        return self.tolerances.get(self.narrow.get(name, dtype), 0.0)


@dataclass(frozen=True)
class Signature:
    """How a compiled kernel is called, by names of its parameters: what the caller gives and what the call returns, in
    order, and the ``scratch`` tensors that the call makes and does not return."""

    given: tuple[str, ...]
    returned: tuple[str, ...]
    scratch: frozenset[str]

    @classmethod
    def of(cls, compiled: Any) -> Signature:
        """The signature of a kernel with its ``out_idx`` and ``workspace_idx``."""
        names = [param.name for param in compiled.kernel.params]
        made = {*compiled.out_idx, *compiled.workspace_idx}
        returned = [*(names[n] for n in compiled.out_idx), *(buffer.name for buffer in compiled.kernel.outputs)]
        given = tuple(name for number, name in enumerate(names) if number not in made)
        return cls(given, tuple(returned), frozenset(names[n] for n in compiled.workspace_idx))

    def renamed(self, names: Mapping[str, str]) -> Signature:
        """The same call with other names for its parameters."""
        given, returned = (tuple(names.get(name, name) for name in part) for part in (self.given, self.returned))
        return Signature(given, returned, frozenset(names.get(name, name) for name in self.scratch))


class Recorder:
    """Writes one file per launch into a folder.

    ``writers`` says who wrote a tensor in the last launch, ``undefined`` where undefined data was left in it.
    """

    def __init__(
        self,
        folder: Path,
        writers: Callable[[str], Writers | None],
        undefined: Callable[[str], np.ndarray | None] = lambda _: None,
    ) -> None:
        self.undefined = undefined
        self.folder = folder
        self.writers = writers
        self.count = 0
        self.bytes = 0
        self.turns: dict[str, int] = {}

    def record(
        self,
        compiled: Any,
        arrays: Arrays,
        scalars: dict[str, Any],
        run: Callable[[], None],
        repeat: Callable[[Arrays], None] | None = None,
        unrounded: Callable[[Arrays], None] | None = None,
        draw: str = "",
        changed: str = "",
        wanted: Callable[[Arrays, Arrays], bool] = lambda *_: True,
        golden: Callable[[Arrays], Arrays] | None = None,
        errors: Callable[[Arrays, Arrays], dict[str, float]] | None = None,
    ) -> bool:
        """Run a launch and keep it. ``repeat`` runs it once more, on copies; then these results are kept.

        ``unrounded`` does the same; then both results are kept, and what ``golden`` gives for the inputs. ``wanted`` is
        asked with inputs and outputs; the result is its answer. ``errors`` gives the kernel's own ones for both.

        Raises TooLarge where the limit is reached, and what the kernel raises.
        """
        inputs = copies(arrays)
        run()
        if not wanted(inputs, arrays):
            return False
        outputs = copies(arrays if repeat is None else inputs)
        if repeat is not None:
            repeat(outputs)
        others = {} if unrounded is None else copies(inputs)
        if unrounded is not None:
            unrounded(others)
        name = name_of(compiled)
        turn = self.turns.get(name, -1) + (not draw)
        self.turns[name] = turn
        call = Signature.of(compiled)
        by_index = layouts.by_index(compiled.kernel, inputs), layouts.by_index(compiled.kernel, outputs)
        recording = Recording(
            self.count,
            name,
            turn,
            call_of(compiled),
            compiled.factory,
            compiled.arguments if _can_be_kept(compiled.arguments) else None,
            tuple(arrays),
            call.scratch | {*call.returned},
            call.scratch,
            call.given,
            call.returned,
            tolerances(compiled.kernel),
            *by_index,
            dict(scalars),
            same_memory(arrays),
            layouts.places(compiled.kernel, arrays),
            {n: found for n in arrays if (found := self.writers(n)) is not None},
            layouts.by_index(compiled.kernel, others),
            draw,
            changed,
            has_products(compiled.kernel),
            not any(launch.is_npu for launch in compiled.kernel.launches),
            {n: np.array(mask) for n in arrays if (mask := self.undefined(n)) is not None},
            tuple(param.name for param in compiled.kernel.params),
            compile_arguments(compiled),
            {} if golden is None else golden(by_index[0]),
            {} if errors is None else errors(*by_index),
            outer=compiled.outer if compiled.outer and _can_be_kept(compiled.outer.arguments) else None,
        )
        self.bytes += sum(a.nbytes for kept in (inputs, outputs, others) for a in kept.values())
        if self.bytes > LIMIT:
            raise TooLarge(f"the tensors of the launches exceed {LIMIT >> 30} GiB")
        keep(self.folder, recording)
        self.count += 1
        return True


def compile_arguments(compiled: Any) -> dict[str, Any]:
    """The arguments of ``tilelang.compile`` that make a kernel of its prim_func."""
    target = compiled.kernel.attrs.get("target", "auto")
    indices = {"out_idx": list(compiled.out_idx) or None, "workspace_idx": list(compiled.workspace_idx) or None}
    return {**indices, "pass_configs": dict(compiled.kernel.configs) or None, "target": target}


def keep(folder: Path, recording: Recording) -> None:
    """Write a recorded launch, over the one that has its number."""
    with (folder / f"{recording.number:06}.launch").open("wb") as file:
        pickle.dump(recording, file, protocol=5)


def load(folder: Path, fp8: Fp8 = "refuse") -> Iterator[Recording]:
    """The recorded launches in order, one in memory at a time."""
    for path in sorted(folder.glob("*.launch")):
        yield load_one(folder, int(path.stem), fp8)


def load_one(folder: Path, number: int, fp8: Fp8 = "refuse") -> Recording:
    """One recorded launch; ``fp8``: with float16 in place of 8-bit floats."""
    with (folder / f"{number:06}.launch").open("rb") as file:
        found: Recording = pickle.load(file)  # written a moment ago, into a folder of its own
    return widened(found) if fp8 == "float16" else found


def widened(recording: Recording) -> Recording:
    """The launch as a kernel is asked for it that has float16 for every 8-bit float: the same numbers, exactly."""
    outer = recording.outer
    narrow = {name: kind for name, array in recording.inputs.items() if (kind := held(array.dtype.name))}

    def wide(arrays: Arrays) -> Arrays:
        return {name: array.astype(np.float16) if name in narrow else array for name, array in arrays.items()}

    return replace(
        recording,
        arguments=None if recording.arguments is None else with_float16(recording.arguments),
        outer=outer and Outer(outer.name, with_float16(outer.arguments)),
        inputs=wide(recording.inputs),
        outputs=wide(recording.outputs),
        unrounded=wide(recording.unrounded),
        narrow=narrow,
    )


def with_float16(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a factory with float16 for each that is an 8-bit float of TileLang or torch."""
    types = ("str", "DType", "dtype")
    return {n: "float16" if type(a).__name__ in types and held(str(a)) else a for n, a in arguments.items()}


def copies(arrays: Arrays) -> Arrays:
    """Dense copies by name; parameters that share memory share their copy."""
    shared = same_memory(arrays)
    result = {name: np.array(a, order="C", copy=True) for name, a in arrays.items() if name not in shared}
    return {name: result[shared.get(name, name)] for name in arrays}


def same_memory(arrays: Arrays) -> dict[str, str]:
    """The parameters that are the very same memory as an earlier one."""
    seen: dict[Any, str] = {}
    result: dict[str, str] = {}
    for name, array in arrays.items():
        layout = array.__array_interface__
        key = (layout["data"][0], array.shape, array.strides, array.dtype.str) if array.size else id(array)
        first = seen.setdefault(key, name)
        if first != name:
            result[name] = first
    return result


def _can_be_kept(arguments: Any) -> bool:
    """Whether another process can have the arguments: it has another main module, without the script's functions."""
    if any(getattr(value, "__module__", "") == "__main__" for value in (arguments or {}).values()):
        return False
    try:
        return bool(pickle.loads(pickle.dumps(arguments)) == arguments)
    except Exception:
        return False
