"""What earlier runs found out: results by the content of the file and by everything else that they rest on.

One small JSON file for each result, below ``.tl2npu_cache/`` of the project. Entries are written whole or not at all,
carry a digest of themselves, and one that cannot be used counts as not there; so runs may meet, and may be killed.
Nothing here ever fails: without a place to write, a run goes on without a cache.
"""

from __future__ import annotations

import json
import os
import sys
import types
from collections.abc import Callable
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from tl2npu import __version__
from tl2npu.across.modules import locate
from tl2npu.files import Found
from tl2npu.options import Options
from tl2npu.project.cache_folder import entries, is_cache, make_shelf
from tl2npu.project.one import Task, display
from tl2npu.results import FileResult
from tl2npu.source.pyproject import nearest_pyproject
from tl2npu.source.whole import write_whole

Item = TypeVar("Item")


def dumps(item: Any) -> bytes:
    """A dataclass of numbers, texts, tuples and dataclasses as JSON."""
    return json.dumps(item, default=_fields, separators=(",", ":"), ensure_ascii=True).encode("ascii")


def loads(data: bytes, kind: type[Item]) -> Item:
    """What :func:`dumps` was given; raises ValueError, TypeError or KeyError for anything else."""
    item = _reader(kind)(json.loads(data))  # type: ignore[arg-type]
    assert isinstance(item, kind)
    return item


def _fields(item: Any) -> dict[str, Any]:
    if not is_dataclass(item):
        raise TypeError(f"{type(item).__name__} cannot be written as JSON")
    return {field.name: value for field in fields(item) if (value := getattr(item, field.name)) != _default(field)}


def _default(field: Any) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


@lru_cache(maxsize=256)
def _reader(hint: Any) -> Callable[[Any], Any]:
    """What makes a value of a type from its JSON."""
    origin, arguments = get_origin(hint), get_args(hint)
    if isinstance(hint, type) and is_dataclass(hint):
        return _dataclass_reader(hint)
    if origin in (Union, types.UnionType):
        (inner,) = (part for part in arguments if part is not type(None))
        read = _reader(inner)
        return lambda value: None if value is None else read(value)
    if origin is tuple and arguments[-1] is ...:
        each = _reader(arguments[0])
        return lambda value: tuple(each(part) for part in _checked(value, list))
    if origin is tuple:
        readers = [_reader(part) for part in arguments]
        return lambda value: tuple(read(part) for read, part in zip(readers, _checked(value, list), strict=True))
    if origin is Literal:
        return lambda value: arguments[arguments.index(value)]
    if hint is float:
        return float
    return lambda value: _checked(value, hint)


def _dataclass_reader(kind: type[Any]) -> Callable[[Any], Any]:
    readers = {name: _reader(hint) for name, hint in get_type_hints(kind).items()}
    return lambda value: kind(**{name: readers[name](part) for name, part in _checked(value, dict).items()})


def _checked(value: Any, kind: type[Any]) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{value!r} is not of type {kind.__name__}")
    return value


LIMIT = 256 * 1024 * 1024
"""Bytes; beyond them the entries that were of no use for longest go."""

_SIZE = 16  # bytes of a digest


@dataclass(frozen=True)
class Cache:
    """The results of runs with the same task and options. Keys are text, made by :meth:`key`."""

    directory: Path
    salt: bytes

    @classmethod
    def of(cls, directory: Path, task: Task, options: Options) -> Cache:
        """The cache in a directory, whether that exists or not."""
        return cls(directory, _digest(__version__, sys.version, _code(), task, repr(options)))

    def key(self, found: Found, data: bytes) -> str:
        """For a file with this content, at this place: its layout and its imports depend on that."""
        full = found.path.absolute()
        below = os.path.relpath(full, self.directory.parent)
        return _digest(self.salt, below, display(found.path), _settings(full.parent), data).hex()

    def holds(self, key: str) -> bool:
        """True if :meth:`get` would find something now."""
        return self._read(key) is not None

    def get(self, key: str, text: str) -> FileResult | None:
        """The result for a key, None if there is none; ``text`` is that of the file."""
        result = self._read(key)
        if result is None:
            return None
        with suppress(OSError):
            os.utime(self._path(key))  # was of use
        return replace(result, old_text=text, new_text=text if result.new_text is None else result.new_text)

    def put(self, key: str, result: FileResult) -> None:
        """Remember a result, if it is one that only depends on what is in the key."""
        if result.error is not None:
            return
        new = None if result.new_text == result.old_text else result.new_text
        body = dumps(replace(result, old_text=None, new_text=new))
        data = _digest(body).hex().encode() + b"\n" + body
        path = self._path(key)
        with suppress(OSError):
            make_shelf(self.directory, path.parent.name)
            write_whole(path, data, lasting=False)

    def shrink(self, limit: int = LIMIT) -> None:
        """Keep the cache within a number of bytes; what killed runs left behind goes, too."""
        listed: list[tuple[float, int, str]] = []
        for entry in entries(self.directory) if is_cache(self.directory) else ():
            with suppress(OSError):
                state = entry.stat(follow_symlinks=False)
                listed.append((state.st_mtime, state.st_size, entry.path))
        size = sum(size for _, size, _ in listed)
        for _, own, path in sorted(listed):
            if size <= limit:
                break
            with suppress(OSError):
                Path(path).unlink()
                size -= own

    def _path(self, key: str) -> Path:
        return self.directory / key[:2] / f"{key[2:]}.json"

    def _read(self, key: str) -> FileResult | None:
        try:
            data = self._path(key).read_bytes()
        except OSError:
            return None
        digest, _, body = data.partition(b"\n")
        if digest != _digest(body).hex().encode():
            return None
        try:
            result = loads(body, FileResult)
        except (ValueError, TypeError, KeyError):
            return None
        holds = all(_state(path) == state for path, state in result.depends)
        return result if holds and all(_place(file, name) == place for file, name, place in result.places) else None


def _digest(*parts: str | bytes) -> bytes:
    made = blake2b(digest_size=_SIZE)
    for part in parts:
        data = part if isinstance(part, bytes) else part.encode("utf-8", "surrogateescape")
        made.update(len(data).to_bytes(8, "little") + data)
    return made.digest()


def _state(path: str) -> str:
    """What ``FileResult.depends`` says of a file: the digest of its bytes, empty if it is not there."""
    try:
        return blake2b(Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""


def _place(file: str, dotted: str) -> str:
    """What ``FileResult.places`` says of a module: where it is, empty if it is not in the repository."""
    found = locate(Path(file), dotted)
    return "" if found is None else found.as_posix()


@lru_cache(maxsize=1024)
def _settings(directory: Path) -> bytes:
    """The pyproject.toml that decides about the layout of files in a directory."""
    project = nearest_pyproject(directory)
    try:
        return b"" if project is None else _digest(project.read_bytes())
    except OSError:
        return b""


@lru_cache(maxsize=1)
def _code() -> bytes:
    """The state of the code that makes results: this package, which may be in development, and its libraries."""
    package = Path(__file__).resolve().parent.parent
    states = [f"{path.relative_to(package).as_posix()} {_stamp(path)}" for path in sorted(package.rglob("*.py"))]
    for library in ("libcst", "black"):
        spec = find_spec(library)
        if spec is not None and spec.origin is not None:
            states.append(f"{library} {_stamp(Path(spec.origin))}")
    return _digest("\n".join(states))


def _stamp(path: Path) -> str:
    try:
        state = path.stat()
    except OSError:
        return ""
    return f"{state.st_mtime_ns} {state.st_size}"
