"""The kernel after each pass, for whoever looks for one of them: ``migrate --print-after``, ``--bisect``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType

import libcst as cst

Printer = Callable[[str, str], None]
"""Takes the name of a pass and the text of the kernel behind it."""

_printer: ContextVar[Printer | None] = ContextVar("printer", default=None)
_remembers = ContextVar("remembers", default=False)
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
    """A pass has changed a kernel: print it, if that is asked for."""
    printer = _printer.get()
    if printer is not None and (name := pass_at_work()):
        printer(name, cst.Module(body=()).code_for_node(node))


def pass_at_work() -> str:
    """The file of the innermost caller that is a pass, with its folders; empty outside of all."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if name.startswith(_PASSES) and name.removeprefix(_PASSES).partition(".")[0] not in _NOT_PASSES:
            return name.removeprefix(_PASSES)
        frame = frame.f_back
    return ""


@contextmanager
def remembering() -> Iterator[None]:
    """Jobs remember the file behind each pass, so that a wrong kernel tells which pass made it (``--bisect``)."""
    token = _remembers.set(True)
    try:
        yield
    finally:
        _remembers.reset(token)


def remembers() -> bool:
    """Whether jobs remember the file behind each pass."""
    return _remembers.get()
