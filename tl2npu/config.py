"""``[tool.tl2npu]`` of pyproject.toml, and how it and the command line make one :class:`Options`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args

from tl2npu.codes import CODES
from tl2npu.devices import DEVICES
from tl2npu.dialects.compiler import COMPILERS
from tl2npu.options import Options, PassConfigPolicy, Target, Threads
from tl2npu.source.pyproject import nearest_pyproject, tool_table
from tl2npu.source.text import SourceError

TABLE = "tl2npu"


class ConfigError(Exception):
    """A setting that is unknown or has a wrong value; ``str()`` is one line."""


def load_options(start: Path, given: Mapping[str, Any]) -> Options:
    """The options that hold at a path: those ``given`` on the command line, else those of the nearest pyproject.toml.

    ``given`` has the names of the fields of :class:`Options`; None and empty sequences count as not given. Raises
    :class:`ConfigError`.
    """
    settings: dict[str, Any] = {}
    project = nearest_pyproject(start)
    if project is not None:
        try:
            table = tool_table(project, TABLE)
        except SourceError as error:
            raise ConfigError(str(error)) from None
        for key, value in table.items():
            name = _keys().get(key.replace("_", "-"))
            if name is None:
                raise ConfigError(f"{project}: unknown key {key!r} in [tool.{TABLE}]{_suggestion(key, _keys())}")
            settings[name] = _checked(name, value, f"{project}: {key}")
    for name, value in given.items():
        if value is not None and value != ():
            settings[name] = _checked(name, value, "--" + _option(name))
    return Options(**settings)


def common_directory(paths: Sequence[Path]) -> Path:
    """Where the search for pyproject.toml starts: the closest directory that holds all of the paths."""
    places = [path.absolute() if path.is_dir() else path.absolute().parent for path in paths] or [Path.cwd()]
    first = places[0]
    return next(place for place in (first, *first.parents) if all(other.is_relative_to(place) for other in places))


def _keys() -> dict[str, str]:
    """Key -> field."""
    return {_option(name): name for name in _CHECKS}


def _option(name: str) -> str:
    """The option, and the key, of a field."""
    return _SPELT.get(name, name.replace("_", "-"))


def _checked(name: str, value: Any, where: str) -> Any:
    return _CHECKS[name](value, where)


def _one_of(*choices: str) -> Callable[[Any, str], Any]:
    def check(value: Any, where: str) -> str:
        text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
        if text not in choices:
            wrong = _suggestion(str(text), choices) or f", use one of {', '.join(choices)}"
            raise ConfigError(f"{where}: unknown value {value!r}{wrong}")
        assert isinstance(text, str)
        return text

    return check


def _size(value: Any, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ConfigError(f"{where}: must be a number of bytes above 0, not {value!r}")
    return value


def _seconds(value: Any, where: str) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not value > 0:
        raise ConfigError(f"{where}: must be a number of seconds above 0, not {value!r}")
    return float(value)


def _switch(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(f"{where}: must be true or false, not {value!r}")
    return value


def _codes(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
        raise ConfigError(f"{where}: must be a list of codes, not {value!r}")
    codes = tuple(part.strip() for item in value for part in item.split(",") if part.strip())
    for code in codes:
        if not any(known.startswith(code) for known in CODES):
            raise ConfigError(f"{where}: no rule has the code {code!r}{_suggestion(code, CODES)}")
    return codes


def _suggestion(word: str, known: Sequence[str] | Mapping[str, object]) -> str:
    close = get_close_matches(word, list(known), n=1)
    return f", did you mean {close[0]!r}?" if close else ""


_CHECKS: dict[str, Callable[[Any, str], Any]] = {
    "target": _one_of(*get_args(Target)),
    "grid2d": _switch,
    "device": _one_of(*DEVICES),
    "ascend_version": _one_of(*COMPILERS),
    "threads": _one_of(*get_args(Threads)),
    "unsafe": _switch,
    "keep_expert": _switch,
    "partial": _switch,
    "pass_config_policy": _one_of(*get_args(PassConfigPolicy)),
    "select": _codes,
    "ignore": _codes,
    "max_file_size": _size,
    "verify_timeout": _seconds,
}
_SPELT = {"target": "to"}
"""Fields whose option has a name of its own."""

assert set(_CHECKS) == {field.name for field in fields(Options)}
