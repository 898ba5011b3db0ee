"""The nearest pyproject.toml of a file."""

from __future__ import annotations

import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

from tl2npu.source.text import SourceError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def nearest_pyproject(start: Path) -> Path | None:
    """The pyproject.toml in a directory or the closest one above it."""
    directory = start if start.is_dir() else start.parent
    for place in (directory, *directory.resolve().parents):
        candidate = place / "pyproject.toml"
        if candidate.is_file():
            return candidate
    return None


def load_pyproject(path: Path) -> dict[str, Any]:
    """The tables of a pyproject.toml; raises :class:`SourceError` if it is not TOML."""
    try:
        state = path.stat()
        return _loaded(path, state.st_mtime_ns, state.st_size)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SourceError(f"{path}: not valid TOML: {error}") from None
    except OSError as error:
        raise SourceError(f"{path}: cannot read: {error.strerror or error}") from None


@lru_cache(maxsize=64)
def _loaded(path: Path, modified: int, size: int) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def tool_table(path: Path, name: str) -> dict[str, Any]:
    """The table ``[tool.name]``, empty if there is none; raises :class:`SourceError` for a broken file."""
    tool = load_pyproject(path).get("tool", {})
    table = tool.get(name, {}) if isinstance(tool, dict) else {}
    return table if isinstance(table, dict) else {}
