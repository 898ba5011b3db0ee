"""Which files a run looks at, in which order."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_HEAD = 2048
_GENERATED = re.compile(rb"^[ \t]*#.*@generated\b", re.MULTILINE)
_SKIP_FILE = re.compile(rb"^[ \t]*#[ \t]*tl2npu:[ \t]*skip-file\b", re.MULTILINE)


@dataclass(frozen=True)
class Found:
    """One input file. ``root`` is the directory that was given, or that of the file if the file itself was given.

    ``skipped`` says why the file, or directory, is left out, ``error`` why it cannot be looked at.
    """

    path: Path
    root: Path
    skipped: str | None = None
    error: str | None = None


def collect(paths: Sequence[Path]) -> list[Found]:
    """The Python files of the given files and directories, each once, in the order given, directories sorted.

    In directories, files that git ignores, hidden directories and virtual environments are left out, and links to
    directories are not followed. A path that was given itself is always in the result, also if it does not exist.
    """
    found: list[Found] = []
    seen: set[Path] = set()
    for path in paths:
        for file in _python_files(path) if path.is_dir() else (path,):
            real = file.resolve()
            if real not in seen:
                seen.add(real)
                found.append(Found(file, path if path.is_dir() else file.parent))
    return found


def skip_reason(data: bytes) -> str | None:
    """Why a file asks to be left alone: a comment with ``@generated`` near its top, or ``# tl2npu: skip-file``."""
    if _GENERATED.search(data[:_HEAD]):
        return "@generated"
    return "tl2npu: skip-file" if b"skip-file" in data and _SKIP_FILE.search(data) else None


def may_have_kernels(data: bytes) -> bool:
    """False for files that certainly hold no kernel; costs microseconds where a parse costs milliseconds."""
    return b"tilelang" in data and (b"prim_func" in data or b"Kernel(" in data)


def _python_files(directory: Path) -> Iterator[Path]:
    for place, names, files in os.walk(directory):
        current = Path(place)
        names[:] = sorted(name for name in names if _wanted(current / name))
        for name in sorted(files):
            if name.endswith(".py") and not _ignored(current / name, is_directory=False):
                yield current / name


def _wanted(directory: Path) -> bool:
    hidden = directory.name.startswith(".") or directory.name == "__pycache__"
    return not hidden and not (directory / "pyvenv.cfg").is_file() and not _ignored(directory, is_directory=True)


def _ignored(path: Path, is_directory: bool) -> bool:
    """What the closest .gitignore with an opinion says, up to the root of the repository."""
    full = Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow links, which git does not
    for place in full.parents:
        spec = _gitignore(place)
        if spec is not None:
            verdict = spec.check_file(full.relative_to(place).as_posix() + "/" * is_directory).include
            if verdict is not None:
                return verdict
        if (place / ".git").exists():
            break
    return False


@lru_cache(maxsize=4096)
def _gitignore(directory: Path) -> GitIgnoreSpec | None:
    try:
        lines = (directory / ".gitignore").read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return None
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(lines)
