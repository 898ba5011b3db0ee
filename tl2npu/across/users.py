"""Which other files of the repository use what a file defines. A search in bytes first; what it finds is parsed."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from tl2npu.across.modules import display, is_repository, memories, root_of
from tl2npu.across.symbols import Function, Submodule, Symbols
from tl2npu.source.notebook import Notebook, NotebookSkipped, is_notebook
from tl2npu.source.text import SourceError, decode_source, read_bytes

_MAX_BYTES = 1024 * 1024
_MAX_NOTEBOOK = 16 * _MAX_BYTES  # most of it are outputs
_MAX_FILES = 20_000
_LEFT_OUT = frozenset({"__pycache__", "node_modules", "site-packages", "build", "dist"})
_IMPORT = re.compile(rb"import[ \t\\]*(?:\([^)]*\)|[^\n]*)")  # begins with a fixed text, which is searched fast
_WORD = re.compile(rb"\w+")
_TELLING = frozenset({ast.Import, ast.ImportFrom, ast.Attribute})
_DYNAMIC = (b"import_module", b"spec_from_file_location", b"__import__", b"runpy", b"%run ")


@dataclass(frozen=True)
class User:
    """A file that uses a name: ``names`` are the texts by which it does, ``line`` is the first of these places.

    ``names`` is empty where it is not clear whether the file uses it, as it imports modules by strings. In a
    notebook the line is one of ``cell``.
    """

    path: Path
    line: int
    names: tuple[str, ...]
    cell: int | None = None

    @property
    def shown(self) -> str:
        """The path as reports name it."""
        return display(self.path)


@dataclass(eq=False)
class Users:
    """Looks for the users of one file; ``looked``: it has, so that the result rests on the whole repository.

    ``alone``: line of a kernel -> why no other file can follow it.
    """

    path: str
    alone: Mapping[int, str] = field(default_factory=dict)
    looked: bool = False
    _found: dict[str, tuple[User, ...]] = field(default_factory=dict)
    _symbols: Symbols = field(default_factory=Symbols)

    def of(self, name: str) -> tuple[User, ...]:
        """Every other file of the repository that uses a function of the file's top level."""
        if name not in self._found:
            self.looked = True
            self._found[name] = tuple(_users(self._symbols, Path(self.path).absolute(), name))
        return self._found[name]

    @property
    def rests_on(self) -> tuple[tuple[str, str], ...]:
        """What a result rests on that looked for users: the whole repository, so that it is never the same again."""
        return ((root_of(Path(self.path).absolute()).as_posix(), "searched"),) if self.looked else ()

    def may_take(self, name: str) -> bool:
        """True if another file may import a variable of the file."""
        file = Path(self.path).absolute()
        if not file.is_file():
            return False
        self.looked = True
        modules = {file.stem.encode(), file.parent.name.encode()}
        return any(
            path != file and imported & modules and (name.encode() in imported or _mentions(path, name))
            for path, imported in _files(root_of(file))
        )


def _users(symbols: Symbols, file: Path, name: str) -> Iterator[User]:
    if not file.is_file():
        return
    used = re.compile(rb"\.[\s\\]*%b\b|\bimport[ \t(\\]*\*" % name.encode())
    words = {name.encode(), file.stem.encode(), file.parent.name.encode()}
    for path, imported in _files(root_of(file)):
        if path == file or not (imported & words):
            continue
        try:
            data = _bytes(path)
        except SourceError:
            continue
        if name.encode() not in data:
            continue
        if name.encode() not in imported and not used.search(data) and not _is_dynamic(data):
            continue
        yield from _uses(symbols, file, name, path, data)


def _uses(symbols: Symbols, file: Path, name: str, path: Path, data: bytes) -> Iterator[User]:
    book: Notebook | None = None
    try:
        text = decode_source(data, len(data)).text
        book = Notebook.read(text) if is_notebook(path) else None
        tree = ast.parse(text if book is None else book.code)
    except (SourceError, NotebookSkipped, SyntaxError, ValueError, RecursionError, MemoryError):
        return  # it cannot be executed either
    found = _spellings(symbols, file, name, path, tree)
    if found:
        cell, line = (None, min(found.values())) if book is None else book.place(min(found.values()))
        yield User(path, line, tuple(found), cell)
    elif _is_dynamic(data) and file.stem.encode() in data:
        line = data.count(b"\n", 0, data.index(name.encode())) + 1
        yield User(path, line, ())


def _spellings(symbols: Symbols, file: Path, name: str, path: Path, tree: ast.Module) -> dict[str, int]:
    """How a file spells what is called ``name`` in another one, with the line where it first does."""
    nodes = [node for node in ast.walk(tree) if type(node) in _TELLING]
    attributes = [node for node in nodes if isinstance(node, ast.Attribute) and node.attr == name]
    owners = {_first_name(node) for node in attributes}
    found: dict[str, int] = {}
    modules = False
    for node in nodes:
        if isinstance(node, ast.Import):
            modules = modules or any((alias.asname or alias.name.split(".")[0]) in owners for alias in node.names)
        if not isinstance(node, ast.ImportFrom):
            continue
        dotted = "." * node.level + (node.module or "")
        for alias in node.names:
            bound = name if alias.name == "*" else alias.asname or alias.name
            if alias.name not in (name, "*") and bound not in owners:
                continue  # looking names up in other modules costs most
            meant = symbols.imported(path, dotted, name if alias.name == "*" else alias.name)
            if isinstance(meant, Function) and _is(meant, file, name):
                found.setdefault(bound, node.lineno)
            modules = modules or isinstance(meant, Submodule)
    for node in attributes if modules else ():
        meant = symbols.attributed(path, tree, node)
        if isinstance(meant, Function) and _is(meant, file, name):
            found.setdefault(ast.unparse(node), node.lineno)
    return found


def _first_name(node: ast.expr) -> str:
    """The name that an attribute of attributes begins with, empty for any other expression."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_dynamic(data: bytes) -> bool:
    """True if a file may import modules by strings."""
    return any(mark in data for mark in _DYNAMIC)


def _mentions(path: Path, name: str) -> bool:
    """True if ``module.name`` may be used."""
    try:
        return b"." + name.encode() in _bytes(path)
    except SourceError:
        return False


def _bytes(path: Path) -> bytes:
    return read_bytes(path, _MAX_NOTEBOOK if is_notebook(path) else _MAX_BYTES)


def _is(function: Function, file: Path, name: str) -> bool:
    return function.module.path == file and function.node.name == name


@lru_cache(maxsize=4)
def _files(root: Path) -> tuple[tuple[Path, frozenset[bytes]], ...]:
    """Every Python file below the root with the words of its imports.

    All words of notebooks and of files that import by strings.
    """
    found: list[tuple[Path, frozenset[bytes]]] = []
    for place, directories, names in os.walk(root):
        here = Path(place)
        kept = [d for d in directories if not d.startswith(".") and d not in _LEFT_OUT]
        directories[:] = sorted(d for d in kept if not (here / d / "pyvenv.cfg").is_file())
        if not is_repository(root):  # nobody knows where it ends
            directories[:] = [d for d in directories if (here / d / "__init__.py").is_file()]
        for name in sorted(names):
            if name.endswith((".py", ".ipynb")) and len(found) < _MAX_FILES:
                try:
                    data = _bytes(here / name)
                except SourceError:
                    continue
                found.append((here / name, imported_words(data, is_notebook(name))))
    return tuple(found)


def imported_words(data: bytes, whole: bool = False) -> frozenset[bytes]:
    """The words of all imports of a file; every word with ``whole``, or where it imports by strings."""
    if whole or _is_dynamic(data):
        return frozenset(_WORD.findall(data))
    parts: list[bytes] = []
    for found in _IMPORT.finditer(data):
        parts.append(data[data.rfind(b"\n", 0, found.start()) + 1 : found.end()])
    return frozenset(_WORD.findall(b"\n".join(parts)))


memories.append(_files.cache_clear)
