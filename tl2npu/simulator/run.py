"""Runs a user's script with its kernels on the simulator."""

from __future__ import annotations

import io
import runpy
import sys
import traceback
from collections.abc import Collection, Sequence
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.pieces import Piece, run_pieces
from tl2npu.simulator.standin.package import installed
from tl2npu.simulator.standin.session import Session


class ScriptError(Exception):
    """The script cannot be read, or is no Python."""


def run_script(
    path: Path, args: Sequence[str], session: Session, name: str = "__main__", pieces: Sequence[Piece] | None = None
) -> dict[str, Any]:
    """Execute a script as Python would; its globals. ``pieces``: what is executed of a file that is no script itself.

    Exceptions of the script, SystemExit too, pass through. Raises ScriptError for a script that cannot be read or is
    no Python; nothing of it has been executed then.
    """
    if pieces is None:
        check(path)
    else:
        for piece in pieces:
            _compiles(*piece)
    argv, path0, silent = sys.argv, sys.path[:], sys.dont_write_bytecode
    absolute = str(path.absolute())  # a script may change the directory before the source of a kernel is read
    sys.argv = [str(path), *args]
    sys.path.insert(0, str(path.resolve().parent))
    sys.dont_write_bytecode = True  # the folder of the script is the user's
    try:
        with installed(session):
            return runpy.run_path(absolute, run_name=name) if pieces is None else _in_pieces(pieces, absolute, name)
    finally:
        sys.argv = argv
        sys.path[:] = path0
        sys.dont_write_bytecode = silent


def _in_pieces(pieces: Sequence[Piece], path: str, name: str) -> dict[str, Any]:
    """As :func:`runpy.run_path` does it for a script."""
    module, before = ModuleType(name), sys.modules.get(name)
    module.__file__ = path
    sys.modules[name] = module
    try:
        run_pieces(pieces, module.__dict__)
        return module.__dict__
    finally:
        if before is not None:
            sys.modules[name] = before
        else:
            del sys.modules[name]


def check(path: Path) -> None:
    """Raises ScriptError for a script that cannot be read or is no Python."""
    if path.is_dir():
        raise ScriptError(f"{path} is a directory, not a script")
    try:
        with io.open_code(str(path.absolute())) as file:
            text = file.read()
    except OSError as error:
        raise ScriptError(f"{path} cannot be read: {error.strerror or error}") from None
    _compiles(str(path), text)


def _compiles(name: str, text: str | bytes) -> None:
    try:
        compile(text, name, "exec", dont_inherit=True)
    except SyntaxError as error:
        raise ScriptError(f"{name}:{error.lineno or 1}: {error.msg}") from None
    except ValueError as error:
        raise ScriptError(f"{name}: {error}") from None


def exit_code(path: Path, args: Sequence[str], session: Session, pieces: Sequence[Piece] | None = None) -> int:
    """Execute a script; the exit code that Python would give. Faults of kernels are printed without a traceback."""
    try:
        run_script(path, args, session, pieces=pieces)
    except SystemExit as stop:
        return code_of(stop)
    except ScriptError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except SimulatorError as error:
        print(f"error: {error}".replace(str(path.absolute()), str(path)), file=sys.stderr)
        return 1
    except Exception as error:
        files = [str(path.absolute())] if pieces is None else [name for name, _ in pieces]
        trace = _from_script(error.__traceback__, files)
        traceback.print_exception(type(error), error, trace)
        return 1
    return 0


def code_of(stop: SystemExit) -> int:
    """The exit code of ``sys.exit(...)``; anything but a number is printed first."""
    if stop.code is None or isinstance(stop.code, int):
        return stop.code or 0
    print(stop.code, file=sys.stderr)
    return 1


def _from_script(trace: TracebackType | None, files: Collection[str]) -> TracebackType | None:
    """The part of a traceback that begins in the script, as Python itself would show it."""
    step = trace
    while step is not None and step.tb_frame.f_code.co_filename not in files:
        step = step.tb_next
    return step or trace
