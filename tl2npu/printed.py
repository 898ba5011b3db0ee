"""The kernel after each pass, for whoever looks for the pass that does something: ``migrate --print-after``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import libcst as cst

Printer = Callable[[str, str], None]
"""Takes the name of a pass and the text of the kernel behind it."""

_printer: ContextVar[Printer | None] = ContextVar("printer", default=None)
_PASSES = "tl2npu.passes."
_NOT_PASSES = ("job", "rounds", "writing", "pipelines")


@contextmanager
def printing(names: frozenset[str], write: Callable[[str], object]) -> Iterator[None]:
    """Print the kernel behind each pass of these names (the file without ``.py``, or with its folders), or of all."""

    def show(name: str, text: str) -> None:
        if not names or any(f".{name}".endswith(f".{wanted.replace('/', '.')}") for wanted in names):
            write(f"# after {name}\n{text.strip()}\n\n")

    token = _printer.set(show)
    try:
        yield
    finally:
        _printer.reset(token)


def edited(node: cst.FunctionDef) -> None:
    """A pass has changed a kernel: print it, if that is asked for. The pass is the file of the innermost caller."""
    printer = _printer.get()
    if printer is None:
        return
    frame = sys._getframe(1)
    while frame.f_back is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if name.startswith(_PASSES) and name.removeprefix(_PASSES).partition(".")[0] not in _NOT_PASSES:
            printer(name.removeprefix(_PASSES), cst.Module(body=()).code_for_node(node))
            return
        frame = frame.f_back
