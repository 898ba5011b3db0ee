"""``tl2npu record --on sim``: a script with its kernels on the simulator, its launches kept as a trace."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tl2npu import __version__
from tl2npu.simulator.run import exit_code
from tl2npu.traces.child.trace_writer import NotKept, Value, Writer, as_json, header_of, key_of
from tl2npu.traces.patterns import bits
from tl2npu.verify.layouts import Arrays
from tl2npu.verify.naming import line_of, name_of
from tl2npu.verify.recording import Signature
from tl2npu.verify.reference import texts
from tl2npu.verify.sessions import observe


def record_file(
    script: Path, arguments: tuple[str, ...], folder: Path, device: str, max_bytes: int, per_kernel: int, seed: int
) -> tuple[int, Writer]:
    """Execute a script in this process and write its launches into a folder; the exit code of the script."""
    random.seed(seed)
    np.random.seed(seed)
    versions = {"tl2npu": __version__, "tilelang": None, "torch": None, "numpy": np.__version__, "python": None}
    header = {
        **header_of(script, list(arguments), seed),
        "device": {"kind": "simulator", "name": f"tl2npu simulator, {device}"},
        "versions": versions,
    }
    writer = Writer(folder, header, max_bytes, per_kernel)
    digests = texts(script.read_text(encoding="utf-8", errors="surrogateescape"))
    session = observe("precise", "actual", "off", device).session

    def note(compiled: Any, arrays: Arrays, scalars: dict[str, Any], run: Callable[[], Any]) -> None:
        kernel = name_of(compiled)
        outer = kernel.split(".")[0]
        told = {"kernel": kernel, "factory": compiled.factory, "arguments": None, "arguments_missing": None}
        try:
            if not compiled.arguments and compiled.factory != outer:
                raise NotKept("`tilelang.compile` does not tell them")
            told["arguments"] = {str(name): as_json(value) for name, value in compiled.arguments.items()}
        except NotKept as error:
            told["arguments_missing"] = str(error)
        told |= {"file": script.name, "line": line_of(compiled), "source_sha256": digests.get(outer)}
        call = Signature.of(compiled)
        made = {*call.returned, *call.scratch}
        shapes = [(name, array.dtype.name, array.shape) for name, array in arrays.items()]
        if not writer.wanted(kernel, key_of(kernel, told["arguments"], shapes)):
            run()
            return
        before = _values(arrays, made)
        run()
        after = _values(arrays, call.scratch)
        kept = {name: as_json(value) for name, value in scalars.items()}
        params = [p.name for p in (*compiled.kernel.params, *compiled.kernel.outputs)]
        names = [name for name in params if name in arrays and name not in call.scratch]
        writer.add({**told, "scalars": kept}, names, list(call.given), before, after, list(call.returned), [])

    session.recorder = note
    return exit_code(script, arguments, session, None), writer


def _values(arrays: Arrays, without: Any) -> dict[str, Value]:
    """Copies of tensors, as bit patterns where NumPy does not have the type."""
    return {name: _value(array) for name, array in arrays.items() if name not in without}


def _value(array: np.ndarray) -> Value:
    dense = np.array(array, order="C", copy=True)
    strides = tuple(step // array.itemsize for step in array.strides)
    memory = (array.__array_interface__["data"][0], array.shape, array.strides) if array.size else None
    return Value(bits(dense), array.dtype.name, strides, memory)
