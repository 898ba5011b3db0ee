"""The folder of a cache: where it may lie, how it is marked, and what in it is ours.

A configuration that came with somebody's repository says where the cache lies, and that decides which files are written
and removed. So: only inside of the project, only a folder that has our mark or is new, only entries with names of ours.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tl2npu.source.inplace import repository_root
from tl2npu.source.pyproject import nearest_pyproject
from tl2npu.source.whole import write_whole

NAME = ".tl2npu_cache"

_TAG, _IGNORE = "CACHEDIR.TAG", ".gitignore"
_MARKS = {
    _TAG: b"Signature: 8a477f597d28d172789f06886806bc55\n"
    b"# This directory holds a cache of tl2npu. See https://bford.info/cachedir/\n",
    _IGNORE: b"*\n",
}
"""The files beside the entries. The tag is written first, and makes a folder ours."""

_SHELF = re.compile(r"[0-9a-f]{2}")
_UNFINISHED = re.compile(r"\.CACHEDIR\.TAG\..+\.tmp")
_ENTRY = re.compile(r"\.?[0-9a-f]{30}\.json(?:\..+\.tmp)?")


class CacheError(Exception):
    """A folder that must not be a cache; ``str()`` is one line."""


def cache_directory(start: Path, configured: Path | None, config_file: Path | None) -> Path | None:
    """Where the cache of a project lies; None outside of projects, where a directory would only be in the way.

    ``start`` is a directory, ``configured`` the setting, ``config_file`` the pyproject.toml with ``[tool.tl2npu]``.
    Raises :class:`CacheError` for a setting that leads out of the project or to a folder with other files.
    """
    nearest = nearest_pyproject(start)
    places = (config_file, repository_root(start.absolute() / NAME), nearest)
    roots = [place.absolute() if place.is_dir() else place.absolute().parent for place in places if place is not None]
    if configured is None:
        place = roots[0] / NAME if roots else None
        return place if place is not None and not _objection(place, roots) else None
    objection = _objection(configured, roots or [Path.cwd()])
    if objection:
        raise CacheError(f"cache-dir: {configured.as_posix()} {objection}")
    return configured


def is_cache(directory: Path) -> bool:
    """True for a folder that bears our mark."""
    tag = directory / _TAG
    try:
        return not tag.is_symlink() and tag.read_bytes() == _MARKS[_TAG]
    except OSError:
        return False


def make_shelf(directory: Path, shelf: str) -> Path:
    """The folder for entries that begin so, made and marked where it is not there. Raises ``OSError``."""
    place = directory / shelf
    if not place.is_dir():
        directory.mkdir(parents=True, exist_ok=True)
        if not is_cache(directory):
            if not _is_free(directory):
                raise FileExistsError(directory)
            write_whole(directory / _TAG, _MARKS[_TAG], lasting=False)
        with suppress(FileExistsError), (directory / _IGNORE).open("xb") as file:
            file.write(_MARKS[_IGNORE])
        place.mkdir(exist_ok=True)
    if place.is_symlink():
        raise NotADirectoryError(place)
    return place


def _is_free(directory: Path) -> bool:
    """True if a folder holds nothing but tags that killed runs did not finish."""
    return all(_UNFINISHED.fullmatch(item.name) for item in directory.iterdir())


def entries(directory: Path) -> Iterator[os.DirEntry[str]]:
    """Every entry, and what killed runs left of some; nothing that a link leads to."""
    for shelf in _shelves(directory):
        with suppress(OSError), os.scandir(shelf) as listing:
            yield from (item for item in listing if _ENTRY.fullmatch(item.name) and item.is_file(follow_symlinks=False))


def clear(directory: Path) -> int:
    """Remove a cache; the number of bytes that are free now. Files that are not ours stay, and the folder with them.

    Raises :class:`CacheError` for a folder that is no cache, ``OSError`` where something cannot be removed.
    """
    if not os.path.lexists(directory):
        return 0
    if directory.is_symlink() or not is_cache(directory):
        raise CacheError(f"{directory.as_posix()} is not a cache of tl2npu; nothing was removed")
    freed = 0
    for entry in list(entries(directory)):
        freed += entry.stat(follow_symlinks=False).st_size
        Path(entry.path).unlink()
    for shelf in list(_shelves(directory)):
        with suppress(OSError):  # with other files
            shelf.rmdir()
    if {item.name for item in directory.iterdir()} <= set(_MARKS):
        for name in reversed(_MARKS):
            mark = directory / name
            if mark.exists() and mark.read_bytes() == _MARKS[name]:
                freed += len(_MARKS[name])
                mark.unlink()
        with suppress(OSError):
            directory.rmdir()
    return freed


def _shelves(directory: Path) -> Iterator[Path]:
    with suppress(OSError), os.scandir(directory) as listing:
        yield from (
            Path(item.path) for item in listing if _SHELF.fullmatch(item.name) and item.is_dir(follow_symlinks=False)
        )


def _objection(place: Path, roots: list[Path]) -> str:
    """Why a folder may not be a cache; empty if it may. ``roots``: those of the project."""
    try:
        real = place.resolve()
        if real.is_symlink():  # since Python 3.13 it is no error
            real.stat()
        there = next(path for path in (real, *real.parents) if path.exists())
        inside = any(root.resolve() in real.parents for root in roots)
        free = there != real or is_cache(real) or (real.is_dir() and _is_free(real))
    except (OSError, RuntimeError) as error:  # links that go round in circles
        return f"cannot be used: {getattr(error, 'strerror', None) or error}"
    if not inside:
        return f"is not inside of the project {roots[0].as_posix()}"
    if not there.is_dir():
        return "cannot be used: it names a file"
    return "" if free else "is not a cache of tl2npu and not empty; name a new folder"
