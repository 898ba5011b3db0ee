"""What ``migrate --verify`` took back, so that a later run without it does not write the same text.

A verdict is about two texts: that of an old kernel, with the function around it, and the new one in its place. It lies
in the cache of the project, as a result without texts. A run of ``migrate --verify`` that finds the kernel right makes
it void.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Protocol

from tl2npu.results import Diagnostic, FileResult, KernelResult
from tl2npu.source.notebook import Notebook, NotebookSkipped, is_notebook
from tl2npu.source.text import SourceError

Leave = Mapping[int, Sequence[Diagnostic]]
"""Line of a kernel's ``def`` -> why its text stays as it is."""

_HELP = "run `migrate --verify` again, or `migrate --no-cache` to write the kernel all the same"
_SIZE = 16  # bytes of a digest


class Shelf(Protocol):
    """Results by key, as the cache of a project has them."""

    def get(self, key: str, text: str) -> FileResult | None: ...

    def put(self, key: str, result: FileResult) -> None: ...


def learn(shelf: Shelf, result: FileResult, failing: Leave) -> None:
    """Remember which kernels of a migration failed; of those that are verified, that they did not."""
    keys = _Keys(result)
    for kernel in result.kernels:
        key = keys.of(kernel)
        if key is None:
            continue
        if kernel.line in failing:
            shelf.put(key, FileResult(result.path, diagnostics=tuple(failing[kernel.line])))
        elif kernel.verified is not None and _rejected(shelf, key):
            shelf.put(key, FileResult(result.path))


def recalled(shelf: Shelf | None, migrate: Callable[[Leave], FileResult]) -> tuple[FileResult, bool]:
    """A migration without the kernels that earlier failed with the very same text, and whether there are such."""
    leave: dict[int, Sequence[Diagnostic]] = {}
    while True:
        result = migrate(leave)
        found = {} if shelf is None else _known(shelf, result)
        if not found.keys() - leave.keys():
            return result, bool(leave)
        leave |= found


def is_known(shelf: Shelf, result: FileResult) -> bool:
    """Whether a kernel of a migration has failed with the very same text."""
    return bool(_known(shelf, result))


def _known(shelf: Shelf, result: FileResult) -> dict[int, Sequence[Diagnostic]]:
    keys = _Keys(result)
    found: dict[int, Sequence[Diagnostic]] = {}
    for kernel in result.kernels:
        key = keys.of(kernel)
        if key is not None and (reasons := _rejected(shelf, key)):
            first = [replace(item, line=kernel.line, end_line=None, kernel=kernel.name, help=_HELP) for item in reasons]
            found[kernel.line] = [
                replace(item, message=f"an earlier `migrate --verify` took this kernel back: {item.message}")
                for item in first
            ]
    return found


def _rejected(shelf: Shelf, key: str) -> tuple[Diagnostic, ...]:
    entry = shelf.get(key, "")
    return () if entry is None else entry.diagnostics


class _Keys:
    """The keys of the kernels of a result. Its texts are parsed when the first is asked for."""

    def __init__(self, result: FileResult) -> None:
        self.result = result
        self._texts: tuple[dict[str, str], dict[str, str]] | None = None

    def of(self, kernel: KernelResult) -> str | None:
        """The key of a kernel; None where it was not migrated, or its texts cannot be read."""
        old, new = self.result.old_text, self.result.new_text
        if not kernel.rewritten or old is None or new is None:
            return None
        if self._texts is None:
            self._texts = _functions(_code(old, self.result.path)), _functions(_code(new, self.result.path))
        name = kernel.name.split(".")[0]
        before, after = self._texts[0].get(name), self._texts[1].get(name) or self._texts[1].get("")
        if before is None or after is None:
            return None
        made = blake2b(digest_size=_SIZE)
        for part in ("verdict", name, before, after):
            data = part.encode("utf-8", "surrogateescape")
            made.update(len(data).to_bytes(8, "little") + data)
        return made.hexdigest()


def _code(text: str, path: str) -> str:
    """The code of a text; results have that of a notebook as JSON, or as the code of its cells."""
    if not is_notebook(path):
        return text
    try:
        return Notebook.read(text).code
    except (NotebookSkipped, SourceError):
        return text


def _functions(text: str) -> dict[str, str]:
    """The outermost functions and classes of a text, and under "" all of it, without comments and layout."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return {}
    found = {node.name: ast.dump(node) for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    return {**found, "": ast.dump(tree)}
