"""``[tool.tl2npu]`` of pyproject.toml, and how it and the command line make the :class:`Settings` of a run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from tl2npu.checked import CHECKS, ConfigError, key_of, keys, suggestion
from tl2npu.files import Patterns, Rules
from tl2npu.options import Options
from tl2npu.results import FileResult, judged
from tl2npu.source.ignore import Ignore
from tl2npu.source.pyproject import load_pyproject
from tl2npu.source.text import SourceError

TABLE = "tl2npu"
__all__ = ["ConfigError", "Settings", "common_directory", "find_table", "load_options", "load_settings", "read_table"]


@dataclass(frozen=True)
class Settings:
    """Everything that can be set for a project.

    ``options`` bear on what is written, ``rules`` on which files are looked at; the rest is how a run is carried out.
    ``timeout``: seconds for each file, None: the default, 0: no limit. ``cache_dir``: None for the usual place.
    ``baseline``: a file with findings that do not count. ``per_file_ignores``: patterns as in .gitignore, each with
    codes of findings that are not reported there.
    ``file``: the pyproject.toml that was read, None if there is none with a table ``[tool.tl2npu]``. ``origins``: key
    -> where its value comes from, for those that are not defaults.
    """

    options: Options = field(default_factory=Options)
    rules: Rules = field(default_factory=Rules)
    jobs: int = 0
    timeout: float | None = None
    cache: bool = True
    cache_dir: Path | None = None
    allow_dirty: bool = False
    explain: bool = False
    baseline: Path | None = None
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    file: Path | None = None
    origins: Mapping[str, str] = field(default_factory=dict)

    def values(self) -> dict[str, Any]:
        """Every key with its value, as plain as TOML."""
        found: dict[str, Any] = {}
        for name in CHECKS:
            owner = next(part for part in (self.options, self.rules, self) if name in _names(part))
            given = getattr(owner, name)
            if name in ("per_file_ignores", "operators"):
                found[key_of(name)] = {k: list(item) if isinstance(item, tuple) else item for k, item in given}
                continue
            value = given
            value = value.lines if isinstance(value, Patterns) else value
            value = value.as_posix() if isinstance(value, Path) else value
            found[key_of(name)] = list(value) if isinstance(value, tuple) else value
        return found

    def reported(self, result: FileResult) -> FileResult:
        """A result without the findings that ``per_file_ignores`` leaves out."""
        if not self.per_file_ignores or not result.diagnostics:
            return result
        base = Path.cwd() if self.file is None else self.file.parent.absolute()
        path = Path(os.path.relpath(Path(result.path).absolute(), base)).as_posix()
        codes = tuple(
            code
            for pattern, codes in self.per_file_ignores
            if Ignore([pattern]).verdict(path, False)
            for code in codes
        )
        kept = tuple(item for item in result.diagnostics if not item.code.startswith(codes)) if codes else None
        return result if kept is None else judged(replace(result, diagnostics=kept))


def load_options(start: Path, given: Mapping[str, Any]) -> Options:
    """The :class:`Options` of :func:`load_settings`."""
    return load_settings(start, given).options


def load_settings(start: Path, given: Mapping[str, Any]) -> Settings:
    """What holds at a path: what is ``given`` on the command line, else by the nearest table ``[tool.tl2npu]``.

    ``given`` has the names of fields; None and empty sequences count as not given. Raises :class:`ConfigError`.
    """
    file, table = find_table(start)
    values: dict[str, Any] = {}
    problems: list[str] = []
    if file is not None:
        values, problems = read_table(file, table)
    if problems:
        raise ConfigError(problems[0] + (f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""))
    origins = {key_of(name): str(file) for name in values}
    base = dict.fromkeys(values, file.parent) if file is not None else {}
    for name, value in given.items():
        if value is not None and value != ():
            values[name] = CHECKS[name](value, "--" + key_of(name))
            origins[key_of(name)] = "command line"
            base[name] = Path.cwd()
    for name in values:
        if name in ("include", "exclude"):
            values[name] = Patterns(values[name], base[name])
        elif name in ("cache_dir", "baseline"):
            values[name] = base[name] / values[name]
    options = Options(**_taken(values, Options))
    rules = Rules(**_taken(values, Rules))
    return Settings(options, rules, **_taken(values, Settings), file=file, origins=origins)


def find_table(start: Path) -> tuple[Path | None, Any]:
    """The closest pyproject.toml with a table ``[tool.tl2npu]``, and that table. Raises :class:`ConfigError`."""
    directory = start if start.is_dir() else start.parent
    for place in (directory, *directory.absolute().parents):
        candidate = place / "pyproject.toml"
        if candidate.is_file():
            try:
                tool = load_pyproject(candidate).get("tool", {})
            except SourceError as error:
                raise ConfigError(str(error)) from None
            if isinstance(tool, dict) and TABLE in tool:
                return candidate, tool[TABLE]
    return None, {}


def read_table(file: Path, table: Any) -> tuple[dict[str, Any], list[str]]:
    """The settings of a table by field, and what is wrong with the others: one line each."""
    if not isinstance(table, dict):
        return {}, [f"{file}: [tool.{TABLE}] must be a table, not {table!r}"]
    values: dict[str, Any] = {}
    problems: list[str] = []
    for key, value in table.items():
        name = keys().get(key.replace("_", "-"))
        if name is None:
            problems.append(f"{file}: unknown key {key!r} in [tool.{TABLE}]{suggestion(key, keys())}")
            continue
        try:
            values[name] = CHECKS[name](value, f"{file}: {key}")
        except ConfigError as error:
            problems.append(str(error))
    return values, problems


def common_directory(paths: Sequence[Path]) -> Path:
    """Where the search for pyproject.toml starts: the closest directory that holds all of the paths."""
    places = [path.absolute() if path.is_dir() else path.absolute().parent for path in paths] or [Path.cwd()]
    first = places[0]
    return next(place for place in (first, *first.parents) if all(other.is_relative_to(place) for other in places))


def _names(part: Any) -> set[str]:
    return {item.name for item in fields(part)}


def _taken(values: Mapping[str, Any], part: type[Options | Rules | Settings]) -> dict[str, Any]:
    names = _names(part)
    return {name: value for name, value in values.items() if name in names}


_NOT_SET = {"options", "rules", "file", "origins", "backend", "kernels", "calls"}  # no keys of their own
assert set(CHECKS) == (_names(Options) | _names(Rules) | _names(Settings)) - _NOT_SET
