"""Where the module that an ``import`` names lies in the repository. Installed packages are never looked into."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

_ROOT_MARKS = (".git", ".hg", "pyproject.toml", "setup.py", "setup.cfg")
_SOURCE_FOLDERS = ("", "src", "python", "lib")
_NEVER = frozenset({*sys.stdlib_module_names, "tilelang", "triton", "tvm", "torch", "numpy"})
"""A repository of that name is the library itself: what its names mean stands in the catalogue."""
_MAX_LEVELS = 24

memories: list[Callable[[], None]] = []
"""What clears everything that is remembered of the state of directories, here and in other modules of this package."""


def root_of(file: Path) -> Path:
    """The repository of a file: the closest directory above with ``.git`` or a project file, else its package's.

    The project file of a package inside of another one marks no repository.
    """
    marked = [place for place in list(file.parents)[:_MAX_LEVELS] if _is_root(place)]
    outer = (place for place in marked if (place / ".git").exists() or not (place / "__init__.py").is_file())
    return next(outer, marked[0] if marked else package_parent(file.parent))


def is_repository(root: Path) -> bool:
    """True where something marks the root of a repository."""
    return _is_root(root)


def package_parent(directory: Path) -> Path:
    """The directory from which the package of a directory is imported; the directory itself if it is in none."""
    for place in (directory, *directory.parents)[:_MAX_LEVELS]:
        if not (place / "__init__.py").is_file():
            return place
    return directory


def may_be_inside(dotted: str) -> bool:
    """False for the standard library and the libraries that kernels are made with, wherever a file is."""
    return dotted.split(".")[0] not in _NEVER


def locate(file: Path, dotted: str) -> Path | None:
    """The file of the module that ``dotted`` names in ``file``; a leading dot for each level of a relative import.

    None for modules outside of the repository, and where two files could be meant. The path of a namespace package is
    that of its directory.
    """
    return _locate(file.parent, root_of(file), dotted)


@lru_cache(maxsize=8192)
def _locate(directory: Path, root: Path, dotted: str) -> Path | None:
    name = dotted.lstrip(".")
    level = len(dotted) - len(name)
    parts = tuple(name.split(".")) if name else ()
    if level:
        base = directory
        for _ in range(level - 1):
            if base == root:
                return None
            base = base.parent
        return _module(base, parts) if base.is_relative_to(root) else None
    if not may_be_inside(dotted):
        return None
    own = package_parent(directory)
    for base in dict.fromkeys((own, directory)):  # where a module and a script look
        found = _module(base, parts)
        if found is not None and found.is_relative_to(root):
            return found
    places = {found for base in _bases(directory, root) if (found := _module(base, parts)) is not None}
    return places.pop() if len(places) == 1 else None


def _bases(directory: Path, root: Path) -> Iterator[Path]:
    """The directories that may be on the path: those above the file and their source folders."""
    for place in (directory, *directory.parents)[:_MAX_LEVELS]:
        yield from (place / folder for folder in _SOURCE_FOLDERS)
        if place == root:
            return


@lru_cache(maxsize=8192)
def _module(base: Path, parts: tuple[str, ...]) -> Path | None:
    place = base.joinpath(*parts)
    if (place / "__init__.py").is_file():
        return place / "__init__.py"
    if parts and place.with_name(place.name + ".py").is_file():
        return place.with_name(place.name + ".py")
    return place if place.is_dir() and (not parts or _holds_python(place)) else None


@lru_cache(maxsize=1024)
def _is_root(place: Path) -> bool:
    return any((place / mark).exists() for mark in _ROOT_MARKS)


@lru_cache(maxsize=1024)
def _holds_python(place: Path) -> bool:
    return any(place.glob("*.py")) or any(place.glob("*/__init__.py"))


def display(path: Path) -> str:
    """A path as reports name it."""
    here = Path.cwd()
    return (path.relative_to(here) if path.is_relative_to(here) else path).as_posix()


def forget() -> None:
    """Look again: files may have come and gone since the last run of this process."""
    for clear in memories:
        clear()


memories += [cached.cache_clear for cached in (_locate, _module, _is_root, _holds_python)]
