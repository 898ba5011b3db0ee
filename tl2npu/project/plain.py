"""Dataclasses as JSON and back, by their own type hints; what stays the default is not written."""

from __future__ import annotations

import json
import types
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import lru_cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

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
