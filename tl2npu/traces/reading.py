"""Reads a trace: a folder of another machine, of which nothing is believed before it is checked.

``docs/traces.md`` describes the format, ``schema.json`` the manifest. Nothing is unpickled, no path of the manifest
leads out of the folder, and no tensor is larger than the manifest says, or than ``LIMIT``.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tl2npu.traces.child.trace_writer import MANIFEST, PATTERNS, PLAIN, SCHEMA, sample_places

LIMIT = 4 << 30
"""Bytes of the tensors of one launch."""
MANIFEST_LIMIT = 64 << 20
"""Bytes of a manifest."""
_NAME = re.compile(r"[A-Za-z_]\w{0,199}")
_DATA = re.compile(r"\d{5,9}\.npz")
_ROLES = ("in", "out", "inout", "scratch")
_RANK = 16


class TraceError(ValueError):
    """A folder is no trace, or one that cannot be used; ``str()`` is one line for the user."""


@dataclass(frozen=True)
class Moment:
    """A tensor before or after a launch. ``key`` is its name in the npz file, None where only ``sha256`` was kept;
    ``sampled`` the number of its elements that were kept, None for all."""

    key: str | None
    sha256: str
    sampled: int | None = None


@dataclass(frozen=True)
class Tensor:
    """A tensor of a launch. ``dtype`` is its element type, ``stored`` the NumPy type in the file; ``role``: ``in`` was
    left as it was, ``inout`` was passed and changed, ``out`` and ``scratch`` were made by the call; ``shares``: an
    earlier tensor that is the very same memory."""

    name: str
    dtype: str
    stored: str
    shape: tuple[int, ...]
    role: str
    shares: str | None
    before: Moment | None
    after: Moment | None

    @property
    def nbytes(self) -> int:
        """Bytes of the whole tensor."""
        return math.prod(self.shape) * np.dtype(self.stored).itemsize


@dataclass(frozen=True)
class Launch:
    """One launch. ``arguments`` of ``factory`` are None where they could not be kept, for the reason in ``missing``;
    ``data`` is the npz file, None where the inputs were beyond the bound. ``source_sha256`` is of the text of the
    outermost function around the kernel. ``given`` are the parameters that the caller passed, ``returned`` the tensors
    that the call gave, both in order."""

    number: int
    turn: int
    kernel: str
    factory: str
    arguments: dict[str, Any] | None
    missing: str
    source_sha256: str | None
    scalars: dict[str, Any]
    given: tuple[str, ...]
    returned: tuple[str, ...]
    tensors: tuple[Tensor, ...]
    data: str | None


@dataclass(frozen=True)
class Values:
    """The tensors of a launch in their stored types. An output of which ``places`` (flat indices) were kept is filled
    with zeros elsewhere."""

    before: dict[str, np.ndarray]
    after: dict[str, np.ndarray]
    places: dict[str, np.ndarray]


@dataclass(frozen=True)
class Trace:
    """A checked manifest. ``versions`` and ``device`` are what the recorder wrote of its machine."""

    folder: Path
    device: str
    versions: dict[str, str]
    script: str
    script_sha256: str
    launches: tuple[Launch, ...]
    left_out: tuple[tuple[str, str, int], ...]

    def load(self, launch: Launch) -> Values:
        """The tensors of a launch. Raises TraceError where the file is not what the manifest says."""
        if launch.data is None:
            raise TraceError(f"launch {launch.number} of {launch.kernel} was recorded without its tensors")
        path = self.folder / launch.data
        if path.is_symlink() or not path.is_file():
            raise TraceError(f"{path} is missing")
        try:
            return _values(path, launch)
        except TraceError:
            raise
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error, MemoryError) as error:
            raise TraceError(f"{path} cannot be read: {type(error).__name__}: {error}") from None


def open_trace(folder: Path) -> Trace:
    """Read and check the manifest of a trace. Raises TraceError."""
    path = folder / MANIFEST
    try:
        if path.is_symlink() or not path.is_file():
            raise TraceError(f"{folder} is not a trace: it has no {MANIFEST}")
        if path.stat().st_size > MANIFEST_LIMIT:
            raise TraceError(f"{path} is larger than {MANIFEST_LIMIT >> 20} MiB")
        found = json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_constant)
    except (OSError, ValueError, RecursionError) as error:
        if isinstance(error, TraceError):
            raise
        raise TraceError(f"{path} cannot be read: {error}") from None
    try:
        return _trace(folder, _Row(found, "the manifest"))
    except TraceError as error:
        raise TraceError(f"{path}: {' '.join(str(error).split())[:300]}") from None
    except RecursionError:
        raise TraceError(f"{path}: nested too deeply") from None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not valid JSON")


class _Row:
    """A JSON object; each ``get`` checks the type of a field. Raises TraceError."""

    def __init__(self, value: Any, what: str) -> None:
        if not isinstance(value, dict):
            raise TraceError(f"{what} is not an object")
        self.value, self.what = value, what

    def get(self, name: str, *kinds: type) -> Any:
        found = self.value.get(name)
        fits = isinstance(found, kinds) and not (isinstance(found, bool) and bool not in kinds)
        if not fits and not (found is None and type(None) in kinds):
            wanted = " or ".join("null" if kind is type(None) else kind.__name__ for kind in kinds)
            raise TraceError(f"{self.what}: `{name}` is no {wanted}")
        return found

    def rows(self, name: str, what: str) -> list[_Row]:
        return [_Row(value, f"{what} {number}") for number, value in enumerate(self.get(name, list))]

    def name(self, name: str) -> str:
        found = self.get(name, str)
        if not _NAME.fullmatch(found):
            raise TraceError(f"{self.what}: `{name}` is {found[:60]!r}, which is not a name")
        return str(found)


def _trace(folder: Path, row: _Row) -> Trace:
    schema = row.value.get("schema")
    if schema != SCHEMA:
        raise TraceError(f"its format is {schema!r}; this version reads {SCHEMA!r}")
    device, script, versions = (_Row(row.get(name, dict), name) for name in ("device", "script", "versions"))
    left = [(r.get("kernel", str), r.get("why", str), r.get("launches", int)) for r in row.rows("left_out", "left_out")]
    launches = tuple(_launch(number, r) for number, r in enumerate(row.rows("launches", "launch")))
    return Trace(
        folder,
        device.get("name", str),
        {name: str(value) for name, value in versions.value.items() if value is not None},
        script.get("name", str),
        script.get("sha256", str),
        launches,
        tuple(left),
    )


def _launch(number: int, row: _Row) -> Launch:
    if row.get("number", int) != number:
        raise TraceError(f"{row.what} has the number {row.value['number']}")
    data = row.get("data", str, type(None))
    if data is not None and not _DATA.fullmatch(data):
        raise TraceError(f"{row.what}: `data` is {data[:60]!r}, which is not a file name of the trace")
    tensors = tuple(_tensor(r) for r in row.rows("tensors", f"{row.what}, tensor"))
    names = [tensor.name for tensor in tensors]
    returned = tuple(row.get("returned", list))
    if len(set(names)) < len(names):
        raise TraceError(f"{row.what}: two tensors have one name")
    made = {tensor.name for tensor in tensors if tensor.role == "out"}
    if not all(isinstance(name, str) and name in made for name in returned) or len(set(returned)) < len(returned):
        raise TraceError(f"{row.what}: `returned` names something that is not an output")
    given = row.get("given", list)
    passed = {tensor.name for tensor in tensors if tensor.role in ("in", "inout")} | row.get("scalars", dict).keys()
    if not all(isinstance(name, str) for name in given) or len(given) != len(passed) or {*given} != passed:
        raise TraceError(f"{row.what}: `given` are not the tensors and scalars that were passed")
    for tensor in tensors:
        if tensor.shares is not None and tensor.shares not in names[: names.index(tensor.name)]:
            raise TraceError(f"{row.what}: {tensor.name} shares the memory of a tensor that is not there")
    if sum(tensor.nbytes for tensor in tensors) > LIMIT:
        raise TraceError(f"{row.what}: its tensors are larger than {LIMIT >> 30} GiB")
    arguments = row.get("arguments", dict, type(None))
    scalars = {name: _value(value, row.what) for name, value in row.get("scalars", dict).items()}
    return Launch(
        number,
        row.get("turn", int),
        row.get("kernel", str),
        row.get("factory", str),
        None if arguments is None else {name: _value(value, row.what) for name, value in arguments.items()},
        row.get("arguments_missing", str, type(None)) or "",
        row.get("source_sha256", str, type(None)),
        scalars,
        tuple(given),
        returned,
        tensors,
        data,
    )


def _tensor(row: _Row) -> Tensor:
    name, dtype, stored = row.name("name"), row.get("dtype", str), row.get("stored", str)
    if dtype not in PLAIN and dtype not in PATTERNS:
        raise TraceError(f"{row.what}: unknown element type {dtype[:60]!r}")
    if stored != PATTERNS.get(dtype, dtype):
        raise TraceError(f"{row.what}: {dtype} is stored as {stored[:60]!r}")
    shape = tuple(row.get("shape", list))
    if len(shape) > _RANK or not all(type(n) is int and 0 <= n < 1 << 48 for n in shape):
        raise TraceError(f"{row.what}: its shape is not a list of sizes")
    role = row.get("role", str)
    if role not in _ROLES:
        raise TraceError(f"{row.what}: unknown role {role[:60]!r}")
    shares = row.name("shares") if row.value.get("shares") is not None else None
    before, after = (_moment(row, moment, math.prod(shape)) for moment in ("before", "after"))
    if (before is None) != (role in ("out", "scratch")) or (after is None) == (role in ("out", "inout")):
        raise TraceError(f"{row.what}: what was kept of {name} does not fit its role {role!r}")
    return Tensor(name, dtype, stored, shape, role, shares, before, after)


def _moment(row: _Row, name: str, size: int) -> Moment | None:
    if row.get(name, dict, type(None)) is None:
        return None
    found = _Row(row.value[name], f"{row.what}, {name}")
    key = found.get("key", str, type(None))
    sampled = found.get("sampled", int) if "sampled" in found.value and key is not None else None
    if key is not None and key != f"{name}.{row.value['name']}":
        raise TraceError(f"{found.what}: `key` is {key[:60]!r}")
    if sampled is not None and (name == "before" or sampled != len(sample_places(size))):
        raise TraceError(f"{found.what}: `sampled` does not fit the shape")
    return Moment(key, found.get("sha256", str), sampled)


def _value(value: Any, what: str) -> Any:
    """An argument as it was: see ``trace_writer.as_json``."""
    if isinstance(value, list):
        return [_value(item, what) for item in value]
    if not isinstance(value, dict):
        return value
    marks = [key for key in value if key.startswith("$")]
    if not marks:
        return {key: _value(item, what) for key, item in value.items()}
    inner = value[marks[0]]
    if len(value) == 1 and marks == ["$tuple"] and isinstance(inner, list):
        return tuple(_value(item, what) for item in inner)
    if len(value) == 1 and marks == ["$float"] and inner in ("nan", "inf", "-inf"):
        return float(inner)
    if len(value) == 1 and marks == ["$dtype"] and isinstance(inner, str) and (inner in PLAIN or inner in PATTERNS):
        return inner
    raise TraceError(f"{what}: an argument has the unknown form {marks[0][:60]!r}")


def _values(path: Path, launch: Launch) -> Values:
    before: dict[str, np.ndarray] = {}
    after: dict[str, np.ndarray] = {}
    places: dict[str, np.ndarray] = {}
    with zipfile.ZipFile(path) as file:
        for tensor in launch.tensors:
            for moment, into in ((tensor.before, before), (tensor.after, after)):
                if moment is None or moment.key is None:
                    continue
                shape = tensor.shape if moment.sampled is None else (moment.sampled,)
                array = _array(file, moment.key, np.dtype(tensor.stored), shape, f"{path}: {moment.key}")
                if moment.sampled is None:
                    if hashlib.sha256(array.tobytes()).hexdigest() != moment.sha256:
                        raise TraceError(f"{path}: {moment.key} is not what was recorded: its sha256 differs")
                    into[tensor.name] = array
                else:
                    places[tensor.name] = sample_places(math.prod(tensor.shape))
                    whole = np.zeros(tensor.shape, array.dtype)
                    whole.reshape(-1)[places[tensor.name]] = array
                    into[tensor.name] = whole
    return Values(before, after, places)


def _array(file: zipfile.ZipFile, key: str, kind: np.dtype, shape: tuple[int, ...], what: str) -> np.ndarray:
    """One member of an npz file. It is read only where its size is that of the shape, whatever the archive claims."""
    try:
        info = file.getinfo(f"{key}.npy")
    except KeyError:
        raise TraceError(f"{what} is missing") from None
    size = math.prod(shape) * kind.itemsize
    if not size <= info.file_size <= size + 4096:
        raise TraceError(f"{what} has {info.file_size} bytes for a tensor of {size}")
    with file.open(info) as stream:
        version = np.lib.format.read_magic(stream)
        read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(version)
        if read is None:
            raise TraceError(f"{what} has an unknown format of NumPy")
        found, fortran, dtype = read(stream)
        if dtype != kind or found != shape or fortran:
            raise TraceError(f"{what} is {dtype} of shape {found}, the manifest says {kind} of shape {shape}")
        content = stream.read(size + 1)
    if len(content) != size:
        raise TraceError(f"{what} ends too early")
    return np.frombuffer(content, kind).reshape(shape).copy()


def kernels_of(trace: Trace) -> Iterator[tuple[str, Launch]]:
    """Every recorded kernel once, with its first launch."""
    seen: set[str] = set()
    for launch in trace.launches:
        if launch.kernel not in seen:
            seen.add(launch.kernel)
            yield launch.kernel, launch


def left_out(trace: Trace) -> Mapping[str, int]:
    """Reason -> launches that were not kept for it, by kernel."""
    return {f"{kernel}: {why}": count for kernel, why, count in trace.left_out}
