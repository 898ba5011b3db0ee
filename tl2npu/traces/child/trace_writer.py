"""Writes a trace: ``manifest.json`` and one npz file for each launch. Standard library and NumPy only.

The format is in ``schema.json`` and docs/traces.md. Element types that NumPy does not have are kept as bit patterns.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

SCHEMA = "tl2npu-trace/1"
MANIFEST = "manifest.json"
MAX_BYTES = 256 << 20
"""Bytes of tensors that are kept, by default."""
PER_KERNEL = 4
"""Launches that are kept of one kernel with the same arguments and shapes, by default."""
SAMPLES = 4096
"""Elements that are kept of an output beyond the bound."""
PATTERNS = {
    "bfloat16": "uint16",
    "float8_e4m3fn": "uint8",
    "float8_e4m3fnuz": "uint8",
    "float8_e5m2": "uint8",
    "float8_e5m2fnuz": "uint8",
    "float8_e8m0fnu": "uint8",
}
"""Element type -> the NumPy type of its bit patterns, where NumPy has no such floats."""
PLAIN = (
    *("float64", "float32", "float16", "bool"),
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
)
"""Element types that are kept as they are."""


class NotKept(Exception):
    """A launch cannot be recorded; ``str()`` says why."""


@dataclass(frozen=True)
class Value:
    """A tensor at one moment. ``array`` is dense and holds bit patterns where ``dtype`` is in ``PATTERNS``;
    ``strides`` are those of the tensor, in elements; ``memory`` tells tensors of the very same memory."""

    array: np.ndarray
    dtype: str
    strides: tuple[int, ...]
    memory: Any = None


def stored_type(dtype: str) -> str:
    """The NumPy type that elements of a type are kept in. Raises NotKept."""
    if dtype in PATTERNS:
        return PATTERNS[dtype]
    if dtype in PLAIN:
        return dtype
    raise NotKept(f"tensors of {dtype} cannot be recorded")


def sample_places(size: int) -> np.ndarray:
    """The flat indices of the elements that are kept of a tensor with ``size`` elements, in order."""
    return np.unique(np.linspace(0, max(size - 1, 0), min(size, SAMPLES)).astype(np.int64))


def as_json(value: Any) -> Any:
    """An argument of a factory, or a scalar, as JSON. Raises NotKept for what has no form there."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, np.integer)) and not isinstance(value, np.bool_):
        return int(value)
    if isinstance(value, (float, np.floating)):
        number = float(value)
        return number if math.isfinite(number) else {"$float": repr(number)}
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, list):
        return [as_json(item) for item in value]
    if isinstance(value, tuple):
        return {"$tuple": [as_json(item) for item in value]}
    if isinstance(value, dict) and all(isinstance(key, str) and not key.startswith("$") for key in value):
        return {key: as_json(item) for key, item in value.items()}
    name = re.sub(r"^(torch|T|tilelang)\.", "", str(value))
    if name in PATTERNS or name in PLAIN:
        return {"$dtype": name}
    raise NotKept(f"an argument of type {type(value).__name__} cannot be recorded")


class Writer:
    """Writes launches as they come; after each of them the folder is a complete trace.

    ``header`` are the fields of the manifest beside ``launches``. ``max_bytes`` bounds the tensors that are kept,
    before they are compressed; ``per_kernel`` the launches of one kernel with the same arguments and shapes.
    """

    def __init__(self, folder: Path, header: dict[str, Any], max_bytes: int, per_kernel: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.max_bytes, self.per_kernel = folder, max_bytes, per_kernel
        self.used = 0
        self.launches: list[dict[str, Any]] = []
        self.left_out: dict[tuple[str, str], int] = {}
        self._seen: dict[str, int] = {}
        self._turns: dict[str, int] = {}
        self._header = {
            "schema": SCHEMA,
            "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            **header,
            "max_bytes": max_bytes,
        }
        self._write()

    def wanted(self, kernel: str, key: str) -> bool:
        """Whether a launch should be kept: not more than ``per_kernel`` of the same ``key``. Counts it."""
        count = self._seen[key] = self._seen.get(key, 0) + 1
        if count > self.per_kernel:
            self.leave_out(kernel, f"more than {self.per_kernel} launches with the same arguments and shapes")
            return False
        return True

    def leave_out(self, kernel: str, why: str) -> None:
        """Note a launch that is not kept."""
        self.left_out[kernel, why] = self.left_out.get((kernel, why), 0) + 1
        self._write()

    def add(
        self,
        launch: dict[str, Any],
        names: list[str],
        given: list[str],
        before: dict[str, Value],
        after: dict[str, Value],
        returned: list[str],
        scratch: list[str],
    ) -> None:
        """Keep a launch. ``names`` are all tensors in the order of the kernel's parameters, ``given`` what the caller
        passed; tensors that the call made are in ``after`` only, and in ``returned`` or ``scratch``."""
        kernel = str(launch["kernel"])
        turn = self._turns[kernel] = self._turns.get(kernel, -1) + 1
        arrays: dict[str, np.ndarray] = {}
        rows: list[dict[str, Any]] = []
        memories: dict[Any, str] = {}
        for name in names:
            old, new = before.get(name), after.get(name)
            value = old or new
            if value is None:  # a scratch tensor that nobody sees
                continue
            changed = new is not None and (old is None or old.array.tobytes() != new.array.tobytes())
            role = "scratch" if name in scratch else "out" if old is None else "inout" if changed else "in"
            first = memories.setdefault(value.memory, name) if value.memory is not None and old is not None else name
            row: dict[str, Any] = {
                "name": name,
                "dtype": value.dtype,
                "stored": stored_type(value.dtype),
                "shape": list(value.array.shape),
                "strides": list(value.strides),
                "role": role,
                "shares": first if first != name else None,
                "before": None,
                "after": None,
            }
            if old is not None:
                row["before"] = {"key": f"before.{name}", "sha256": _digest(old.array)}
                arrays[f"before.{name}"] = old.array
            if changed and new is not None and name not in scratch:
                row["after"] = {"key": f"after.{name}", "sha256": _digest(new.array)}
                arrays[f"after.{name}"] = new.array
            rows.append(row)
        data = self._keep(arrays, rows)
        if data is None:
            self.leave_out(kernel, "its inputs exceed --max-bytes; shapes and hashes are recorded")
        entry = {"number": len(self.launches), "turn": turn, **launch, "given": given, "returned": returned}
        self.launches.append({**entry, "tensors": rows, "data": data})
        self._write()

    def _keep(self, arrays: dict[str, np.ndarray], rows: list[dict[str, Any]]) -> str | None:
        """Write the tensors of a launch; beyond the bound samples of the outputs, or nothing."""
        size = sum(array.nbytes for array in arrays.values())
        if self.used + size > self.max_bytes:
            for row in rows:
                if row["after"] is not None:
                    whole = arrays[row["after"]["key"]]
                    places = sample_places(whole.size)
                    arrays[row["after"]["key"]] = whole.reshape(-1)[places]
                    row["after"]["sampled"] = len(places)
            size = sum(array.nbytes for array in arrays.values())
        if self.used + size > self.max_bytes:
            for row in rows:
                for moment in ("before", "after"):
                    if row[moment] is not None:
                        row[moment] = {"key": None, "sha256": row[moment]["sha256"]}
            return None
        self.used += size
        name = f"{len(self.launches):05}.npz"
        np.savez_compressed(self.folder / name, **arrays)  # type: ignore[arg-type]
        return name

    def _write(self) -> None:
        left = [{"kernel": name, "why": why, "launches": n} for (name, why), n in self.left_out.items()]
        text = json.dumps({**self._header, "launches": self.launches, "left_out": left}, indent=1, allow_nan=False)
        draft = self.folder / (MANIFEST + ".part")
        draft.write_text(text + "\n", encoding="utf-8")
        draft.replace(self.folder / MANIFEST)  # a process that a device fault kills leaves a whole manifest


def _digest(array: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def text_digest(text: str) -> str:
    """The sha256 of a text in UTF-8."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def header_of(script: Path, arguments: list[str], seed: int | None) -> dict[str, Any]:
    """The fields of the manifest that tell of the script."""
    digest = hashlib.sha256(script.read_bytes()).hexdigest()
    return {"script": {"name": script.name, "sha256": digest, "arguments": list(arguments)}, "seed": seed}


def key_of(kernel: str, arguments: Any, shapes: list[Any]) -> str:
    """What launches have in common of which only a few are kept."""
    return repr((kernel, arguments, shapes))


def summary(writer: Writer, code: int) -> int:
    """Say what was kept, on standard error; the exit code: that of the script, or 1 where no launch was kept."""
    sys.stdout.flush()
    kept = len(writer.launches)
    print(f"{kept} launch{'' if kept == 1 else 'es'} recorded in {writer.folder}", file=sys.stderr)
    for (kernel, why), count in writer.left_out.items():
        print(f"not kept: {kernel} ({count}x): {why}", file=sys.stderr)
    return code or int(not kept)
