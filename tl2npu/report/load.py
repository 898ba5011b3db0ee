"""A JSON report read back, to be joined with others or shown in another format."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from tl2npu.report.hunks import parse_unified
from tl2npu.report.json import VERSION
from tl2npu.report.model import Entry, Finding, Report, ReportError, Run, Task
from tl2npu.results import Change, Diagnostic, KernelResult, SelfCheck, Skipped, Verified

Value = TypeVar("Value")
_MISSING: Any = object()


def load(text: str | bytes, name: str) -> Report:
    """The report of a JSON text; ``name`` stands in messages.

    Raises :class:`ReportError` for anything that is not a whole report; keys that are not known are left out.
    """
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ReportError(f"{name}: not JSON: {error}") from None
    try:
        return _report(_Object(content, ""))
    except ReportError as error:
        raise ReportError(f"{name}: not a report of tl2npu: {error}") from None


class _Object:
    """A JSON object of which keys are asked for with their types; ``where`` names it in messages."""

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise ReportError(f"{where or 'it'} is not an object")
        self._value = value
        self._where = where

    def get(self, key: str, kind: type[Value], default: Any = _MISSING) -> Value:
        """The value of a key, which must be of ``kind``; ``default`` where the key is missing."""
        value = self._value.get(key, default)
        if value is _MISSING:
            raise ReportError(f"{self._at(key)} is missing")
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise ReportError(f"{self._at(key)} is not {_NAMES[kind]}")
        return value

    def maybe(self, key: str, kind: type[Value]) -> Value | None:
        """Like ``get``; None for null or nothing."""
        return None if self._value.get(key) is None else self.get(key, kind)

    def line(self, key: str) -> int:
        """A position, from 1."""
        number = self.get(key, int)
        if number < 1:
            raise ReportError(f"{self._at(key)} is not positive")
        return number

    def word(self, key: str, allowed: Any, default: Any = _MISSING) -> Any:
        """A string, one of those of a ``Literal``."""
        value = self.get(key, str, default)
        if value not in get_args(allowed):
            raise ReportError(f"{self._at(key)} is {value!r}, not one of {', '.join(get_args(allowed))}")
        return value

    def number(self, key: str) -> float:
        """An integer or a float."""
        value = self._value.get(key)
        if type(value) not in (int, float):
            raise ReportError(f"{self._at(key)} is not a number")
        return float(self._value[key])

    def object(self, key: str) -> _Object:
        """An object."""
        return _Object(self.get(key, dict), self._at(key))

    def objects(self, key: str, read: Callable[[_Object], Value]) -> tuple[Value, ...]:
        """A list of objects, each read."""
        return tuple(read(_Object(item, f"{self._at(key)}[{i}]")) for i, item in enumerate(self.get(key, list)))

    def strings(self, key: str) -> tuple[str, ...]:
        """A list of strings."""
        values = self.get(key, list)
        if not all(isinstance(value, str) for value in values):
            raise ReportError(f"{self._at(key)} is not a list of strings")
        return tuple(values)

    def read(self, kind: type[Value], known: Mapping[str, Any], **missing: Any) -> Value:
        """A dataclass whose fields are keys of the object, or ``known``. ``missing``: values where a key may lack."""
        hints = get_type_hints(kind)
        left = [name for name in hints if name not in known]
        return kind(**known, **{name: self._field(name, hints[name], missing.get(name, _MISSING)) for name in left})

    def _field(self, key: str, hint: Any, default: Any) -> Any:
        if get_origin(hint) is Literal:
            return self.word(key, hint)
        if get_origin(hint) is tuple:
            return default if default is not _MISSING and self.maybe(key, list) is None else self.strings(key)
        optional = get_args(hint)[:1] if isinstance(hint, UnionType) else ()
        if optional == (float,):
            return None if self.maybe(key, object) is None else self.number(key)
        if optional:
            return self.maybe(key, optional[0])
        return self.line(key) if key in ("line", "column") else self.get(key, hint, default)

    def _at(self, key: str) -> str:
        return f"{self._where}.{key}" if self._where else key


_NAMES: Mapping[type, str] = {
    str: "a string",
    int: "an integer",
    bool: "true or false",
    dict: "an object",
    list: "a list",
}


def _report(top: _Object) -> Report:
    version = top.get("version", int)
    if version != VERSION:
        raise ReportError(f"its version is {version}, this tl2npu reads {VERSION}")
    run = top.object("run")
    options = run.get("options", dict)
    return Report(
        Run(
            top.object("tool").get("version", str),
            run.word("task", Task),
            run.get("written", bool),
            run.get("exit_code", int),
            options,
            _shard(run),
        ),
        top.objects("files", _entry),
        top.objects("skipped", lambda item: Skipped(item.get("path", str), item.get("reason", str))),
    )


def _shard(run: _Object) -> tuple[int, int] | None:
    numbers = run.maybe("shard", list)
    if numbers is None:
        return None
    if len(numbers) != 2 or not all(type(number) is int for number in numbers):
        raise ReportError("run.shard is not two integers")
    number, count = numbers
    if not 1 <= number <= count:
        raise ReportError(f"run.shard is {number} of {count}")
    return number, count


def _entry(item: _Object) -> Entry:
    try:
        hunks = parse_unified(item.get("diff", str, ""))
    except ValueError as error:
        raise ReportError(f"{item._at('diff')}: {error}") from None
    return Entry(
        item.get("path", str),
        item.get("changed", bool),
        item.maybe("error", str),
        item.objects("kernels", _kernel),
        item.objects("diagnostics", _finding),
        item.objects("changes", _change),
        hunks,
        item.maybe("beside", str),
    )


def _kernel(item: _Object) -> KernelResult:
    proof, checked = item.maybe("verified", dict), item.maybe("checked", dict)
    known = {
        "verified": None if proof is None else item.object("verified").read(Verified, {}),
        "checked": None if checked is None else item.object("checked").read(SelfCheck, {}, why="", sizes=""),
        "pipes": () if item.maybe("pipes", list) is None else item.objects("pipes", _pipe),
    }
    return item.read(KernelResult, known, reason="", errors=())


def _pipe(item: _Object) -> tuple[str, float]:
    return item.get("pipe", str), item.number("cycles")


def _finding(item: _Object) -> Finding:
    return Finding(item.read(Diagnostic, {}), item.strings("excerpt"))


def _change(item: _Object) -> Change:
    return item.read(Change, {})
