"""Which files a run looks at, in which order."""

# Plain strings and os.path: most files of a tree need nothing but this walk, which has to cost next to nothing.
# ruff: noqa: PTH100, PTH110, PTH112, PTH113, PTH118, PTH120

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tl2npu.source.ignore import Ignore
from tl2npu.source.text import is_python
from tl2npu.source.triton_imports import is_triton, may_launch

_HEAD = 2048
_GENERATED = re.compile(rb"^[ \t]*#.*@generated\b", re.MULTILINE)
_SKIP_FILE = re.compile(rb"^[ \t]*#[ \t]*tl2npu:[ \t]*skip-file\b", re.MULTILINE)
_LAUNCH = re.compile(rb"\bwith\s*\(?\s*(?:[\w.]+\.)?Kernel\(|\balloc_(?:shared|fragment|ub|L1|L0C)\b")
_IMPORT = re.compile(rb"^[^#\n]*(?:\b(?:import|from)|import_module|__import__)\b[^#\n]*\btilelang\b", re.MULTILINE)
_COMPILES = re.compile(rb"\b(?:compile|jit|lazy_jit|cached|AutoTuner)\b")
VENDORED = (
    "3rdparty",
    "3rd_party",
    "third_party",
    "third-party",
    "thirdparty",
    "vendor",
    "vendored",
    "_vendor",
    "site-packages",
    "node_modules",
)
"""Names of directories that hold other people's code."""


INCLUDE = ("*.py", "*.ipynb")


@dataclass(frozen=True)
class Patterns:
    """Patterns as in .gitignore, relative to a directory."""

    lines: tuple[str, ...]
    base: Path = Path()


@dataclass(frozen=True)
class Rules:
    """What is looked at in directories.

    A file must match ``include`` and not ``exclude``. ``vendored``: names of directories that are left out.
    ``submodules``: also look into git submodules. ``force_exclude``: ``exclude`` and ``vendored`` hold for files that
    were given themselves, too.
    """

    include: Patterns = Patterns(INCLUDE)
    exclude: Patterns = Patterns(())
    vendored: tuple[str, ...] = VENDORED
    submodules: bool = False
    force_exclude: bool = False


@dataclass(frozen=True)
class Found:
    """One input file. ``root`` is the directory that was given, or that of the file if the file itself was given.

    ``given``: it was given itself. ``skipped`` says why the file, or directory, is left out, ``error`` why it cannot be
    looked at.
    """

    path: Path
    root: Path
    skipped: str | None = None
    error: str | None = None
    given: bool = False


def collect(paths: Sequence[Path], rules: Rules | None = None) -> list[Found]:
    """The files of the given files and directories, each once, in the order given, directories sorted.

    In directories, files that git ignores, hidden directories and virtual environments are left out, and links to
    directories are not followed. Vendored directories and what is no regular file are in the result with the reason
    why they are skipped. A path that was given itself is always in the result, also if it does not exist.
    """
    rules = rules or Rules()
    found: list[Found] = []
    seen: set[str] = set()
    for path in paths:
        for item, real in _Walk(path, rules).files() if path.is_dir() else [_given(path, rules)]:
            if real not in seen:
                seen.add(real)
                found.append(item)
    return found


def skip_reason(data: bytes) -> str | None:
    """Why a file asks to be left alone: a comment with ``@generated`` near its top, or ``# tl2npu: skip-file``."""
    if _GENERATED.search(data[:_HEAD]):
        return "@generated"
    return "tl2npu: skip-file" if b"skip-file" in data and _SKIP_FILE.search(data) else None


def may_have_kernels(data: bytes) -> bool:
    """False for files that certainly hold no kernel; costs microseconds where a parse costs milliseconds.

    A module of the repository may pass the language on, so that no file but that one says ``tilelang``.
    """
    if b"tilelang" in data:
        return b"prim_func" in data or b"Kernel" in data
    return b"Kernel(" in data and (b"prim_func" in data or _LAUNCH.search(data) is not None)


def may_compile(data: bytes) -> bool:
    """False for files that certainly compile no kernel of TileLang, their own or another file's."""
    return b"tilelang" in data and _COMPILES.search(data) is not None


def worth_a_look(data: bytes, text: str) -> bool:
    """False for files with neither kernels, nor calls that compile one, nor an error.

    What imports TileLang has to be Python. ``text``: the same, decoded.
    """
    if is_triton(data) or ((may_launch(data) or may_compile(data)) and is_python(text)):
        return True
    return may_have_kernels(data) or (b"tilelang" in data and _IMPORT.search(data) is not None and not is_python(text))


def _given(path: Path, rules: Rules) -> tuple[Found, str]:
    """A file that was given itself."""
    reason = None
    if rules.force_exclude:
        full = os.path.abspath(path)
        if any(part in rules.vendored for part in Path(full).parts[:-1]):
            reason = "vendored"
        elif _Matcher(rules.exclude).matches(full):
            reason = "excluded"
    return Found(path, path.parent, skipped=reason, given=True), _real(path)


class _Walk:
    """One directory that was given."""

    def __init__(self, root: Path, rules: Rules) -> None:
        self._root = root
        self._rules = rules
        self._include = _Matcher(rules.include)
        self._exclude = _Matcher(rules.exclude)
        self._top = os.path.realpath(root)
        self._vendored = frozenset(rules.vendored)

    def files(self) -> Iterator[tuple[Found, str]]:
        """The files below, each with its real path. Trees may be deeper than calls may be nested."""
        pending = [(str(self._root), os.path.abspath(self._root), self._top)]
        while pending:
            below: list[tuple[str, str, str]] = []
            yield from self._directory(*pending.pop(), below)
            pending += reversed(below)

    def _directory(
        self, shown: str, full: str, real: str, below: list[tuple[str, str, str]]
    ) -> Iterator[tuple[Found, str]]:
        """What lies in a directory; those ``below`` it that are wanted are added to the list.

        ``shown``: as the user named it; ``full``: absolute; ``real``: without links.
        """
        try:
            with os.scandir(shown) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            yield self._left(shown, real, error=f"cannot read the directory: {error.strerror or error}")
            return
        for entry in entries:
            name, place, at = entry.name, os.path.join(full, entry.name), os.path.join(real, entry.name)
            if not _is(entry.is_dir):
                if self._include.matches(place):
                    yield from self._file(entry, place, at)
            elif self._wanted(entry, place):
                reason = self._foreign(entry.path, name)
                if reason is not None:
                    yield self._left(entry.path, at, skipped=reason)
                else:
                    below.append((entry.path, place, at))

    def _wanted(self, directory: os.DirEntry[str], full: str) -> bool:
        if directory.name.startswith(".") or directory.name == "__pycache__":
            return False
        if _ignored(full, is_directory=True) or self._exclude.matches(full + "/"):
            return False
        return not os.path.isfile(os.path.join(directory.path, "pyvenv.cfg"))

    def _file(self, entry: os.DirEntry[str], full: str, real: str) -> Iterator[tuple[Found, str]]:
        if _ignored(full, is_directory=False) or self._exclude.matches(full):
            return
        if entry.is_symlink():
            real = _real(Path(entry.path))
            if not os.path.exists(entry.path):
                yield self._left(entry.path, real, skipped="a link to nothing")
                return
            if os.path.isdir(entry.path):
                return
            if not real.startswith(self._top.rstrip(os.sep) + os.sep):
                yield self._left(entry.path, real, skipped="a link to a file elsewhere")
                return
        if not _is(entry.is_file, links=True):
            yield self._left(entry.path, real, skipped="not a regular file")
            return
        yield Found(Path(entry.path), self._root), real

    def _foreign(self, directory: str, name: str) -> str | None:
        if name in self._vendored:
            return "vendored"
        if not self._rules.submodules and os.path.isfile(os.path.join(directory, ".git")):
            return "a git submodule"
        return None

    def _left(self, shown: str, real: str, skipped: str | None = None, error: str | None = None) -> tuple[Found, str]:
        return Found(Path(shown), self._root, skipped, error), real


class _Matcher:
    """Patterns, compiled. Such as ``*.py`` need nothing but the end of the name."""

    def __init__(self, patterns: Patterns) -> None:
        self._base = os.path.abspath(patterns.base).rstrip(os.sep) + os.sep
        simple = all(re.fullmatch(r"\*\.\w+", line) for line in patterns.lines)
        self._endings = tuple(line[1:] for line in patterns.lines) if simple else ()
        self._spec = None if simple else Ignore(patterns.lines)

    def matches(self, full: str) -> bool:
        """For an absolute path; that of a directory ends in a slash."""
        if self._spec is None:
            return full.endswith(self._endings) if self._endings else False
        path = full.removeprefix(self._base).strip("/")
        return self._spec.verdict(path, full.endswith("/")) is True


def _is(question: Callable[..., bool], links: bool = False) -> bool:
    """What a directory entry is; False if it has just gone."""
    try:
        return question(follow_symlinks=links)
    except OSError:
        return False


def _real(path: Path) -> str:
    return os.path.realpath(path)  # also for links that go round in circles, which Path.resolve() refuses


def _ignored(full: str, is_directory: bool) -> bool:
    """What the closest .gitignore with an opinion says, up to the root of the repository."""
    place = full
    while True:
        place = os.path.dirname(place)
        spec, root = _gitignore(place)
        if spec is not None:
            verdict = spec.verdict(full[len(place.rstrip(os.sep)) + 1 :].replace(os.sep, "/"), is_directory)
            if verdict is not None:
                return verdict
        if root or place == os.path.dirname(place):
            return False


@lru_cache(maxsize=4096)
def _gitignore(directory: str) -> tuple[Ignore | None, bool]:
    """The patterns of a directory, and whether it is the root of a repository."""
    root = os.path.exists(os.path.join(directory, ".git"))
    lines: list[str] = []
    for name in (".git/info/exclude", ".gitignore") if root else (".gitignore",):
        try:
            lines += Path(directory, name).read_text(encoding="utf-8", errors="replace").split("\n")
        except OSError:
            continue
    return Ignore(lines) or None, root
