"""Every setting with the check of its values; the same for pyproject.toml and the command line."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args

from tl2npu.codes import CODES
from tl2npu.devices import DEVICES
from tl2npu.dialects.compiler import COMPILERS
from tl2npu.options import Fp8, PassConfigPolicy, Target, Threads
from tl2npu.source.ignore import PatternError, check_pattern


class ConfigError(Exception):
    """A setting that is unknown or has a wrong value; ``str()`` is one line."""


def keys() -> dict[str, str]:
    """Key -> field."""
    return {key_of(name): name for name in CHECKS}


def key_of(name: str) -> str:
    """The key, and the option, of a field."""
    return _SPELT.get(name, name.replace("_", "-"))


def suggestion(word: str, known: Sequence[str] | Mapping[str, object]) -> str:
    """``, did you mean 'x'?``, or nothing."""
    close = get_close_matches(word.replace("_", "-"), list(known), n=1)
    return f", did you mean {close[0]!r}?" if close else ""


_MEANING = re.compile(r"T(\.\w+)+(\([^()]*\))?")


def _one_of(*choices: str) -> Callable[[Any, str], Any]:
    def check(value: Any, where: str) -> str:
        text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
        if text not in choices:
            wrong = suggestion(str(text), choices) or f", use one of {', '.join(choices)}"
            raise ConfigError(f"{where}: unknown value {value!r}{wrong}")
        assert isinstance(text, str)
        return text

    return check


def _size(value: Any, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ConfigError(f"{where}: must be a number of bytes above 0, not {value!r}")
    return value


def _whole(least: int) -> Callable[[Any, str], int]:
    def check(value: Any, where: str) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ConfigError(f"{where}: must be a whole number, {least} or more, not {value!r}")
        return value

    return check


def _seconds(value: Any, where: str) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not value > 0:
        raise ConfigError(f"{where}: must be a number of seconds above 0, not {value!r}")
    return float(value)


def _seconds_or_none(value: Any, where: str) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value == 0:
        return 0.0
    try:
        return _seconds(value, where)
    except ConfigError:
        raise ConfigError(f"{where}: must be a number of seconds, 0 for no limit, not {value!r}") from None


def _switch(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(f"{where}: must be true or false, not {value!r}")
    return value


def _texts(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
        raise ConfigError(f"{where}: must be a list of strings, not {value!r}")
    return tuple(value)


def _constants(value: Any, where: str) -> tuple[str, ...]:
    found = _texts(value, where)
    for item in found:
        name, sign, given = item.partition("=")
        if not sign or not name.strip().isidentifier():
            raise ConfigError(f"{where}: {item!r} is not NAME=VALUE")
        try:
            constant = isinstance(ast.literal_eval(given.strip()), (int, float, str))
        except (ValueError, SyntaxError):
            constant = False
        if not constant:
            raise ConfigError(f"{where}: the value of {item!r} is not a number, True, False or a string in quotes")
    return found


def _patterns(value: Any, where: str) -> tuple[str, ...]:
    lines = _texts(value, where)
    for line in lines:
        try:
            check_pattern(line)
        except PatternError:
            raise ConfigError(f"{where}: {line!r} is not a pattern as in .gitignore") from None
    return lines


def _path(kind: str) -> Callable[[Any, str], Path]:
    def check(value: Any, where: str) -> Path:
        if not isinstance(value, (str, Path)) or not str(value):
            raise ConfigError(f"{where}: must be a {kind}, not {value!r}")
        return Path(value)

    return check


def _codes(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
        raise ConfigError(f"{where}: must be a list of codes, not {value!r}")
    codes = tuple(part.strip() for item in value for part in item.split(",") if part.strip())
    for code in codes:
        if not any(known.startswith(code) for known in CODES):
            raise ConfigError(f"{where}: no rule has the code {code!r}{suggestion(code, CODES)}")
    return codes


def _codes_by_pattern(value: Any, where: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(value, dict):
        raise ConfigError(f"{where}: must be a table of patterns, such as {{ 'examples/' = ['TL720'] }}, not {value!r}")
    return tuple((_patterns([pattern], where)[0], _codes(codes, where)) for pattern, codes in value.items())


def _operators(value: Any, where: str) -> tuple[tuple[str, str], ...]:
    found = dict(value) if isinstance(value, (dict, tuple)) else None
    if found is None or not all(isinstance(item, str) for item in found.values()):
        raise ConfigError(f"{where}: must be a table such as {{ 'my_lib.copy' = 'T.copy' }}, not {value!r}")
    for name, meaning in found.items():
        if not all(part.isidentifier() for part in name.split(".")) or "." not in name:
            raise ConfigError(f"{where}: {name!r} is not the dotted name of a function, such as 'my_lib.copy'")
        if not _MEANING.fullmatch(meaning):
            raise ConfigError(f"{where}: {meaning!r} is not an operator: write 'T.copy', or 'T.copy({{1}}, {{0}})'")
    return tuple(found.items())


CHECKS: dict[str, Callable[[Any, str], Any]] = {
    "target": _one_of(*get_args(Target)),
    "grid2d": _switch,
    "device": _one_of(*DEVICES),
    "ascend_version": _one_of(*COMPILERS),
    "threads": _one_of(*get_args(Threads)),
    "rows_per_block": _whole(1),
    "tuned": _constants,
    "fp8": _one_of(*get_args(Fp8)),
    "unsafe": _switch,
    "fixed_core": _switch,
    "keep_expert": _switch,
    "partial": _switch,
    "notes": _switch,
    "self_check": _switch,
    "operators": _operators,
    "pass_config_policy": _one_of(*get_args(PassConfigPolicy)),
    "select": _codes,
    "ignore": _codes,
    "max_file_size": _size,
    "verify_timeout": _seconds,
    "include": _patterns,
    "exclude": _patterns,
    "vendored": _texts,
    "submodules": _switch,
    "force_exclude": _switch,
    "jobs": _whole(0),
    "timeout": _seconds_or_none,
    "cache": _switch,
    "cache_dir": _path("directory"),
    "baseline": _path("file"),
    "per_file_ignores": _codes_by_pattern,
    "allow_dirty": _switch,
    "explain": _switch,
}
"""By field. Whatever executes the code of the files, and what is written where, is only said on the command line."""

_SPELT = {"target": "to"}
"""Fields whose option has a name of its own."""
