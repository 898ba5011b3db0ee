"""Compiles the kernels of one file in a child process, and tells what became of each."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tl2npu.backends.children import Ended, run_child


@dataclass(frozen=True)
class Wanted:
    """What is compiled, and how.

    ``pieces``: names and texts that are executed one after the other as one module, a notebook's cells or the file;
    ``path``: of the file that they come from. ``calls``: factory and arguments by name (``"0"`` for the first
    positional one); without calls the file is run as a script with ``script_args``. ``target``, ``platform``: None for
    what each kernel says. ``bisheng``: also compile what was generated. ``budget``: seconds for each kernel, and for
    the code around kernels.
    """

    pieces: Sequence[tuple[str, str]]
    path: str
    budget: float
    calls: Sequence[tuple[str, Mapping[str, Any]]] = ()
    script_args: Sequence[str] = ()
    target: str | None = None
    platform: str | None = None
    python: str | None = None
    bisheng: bool = False


@dataclass(frozen=True)
class Program:
    """The verdict of the compiler on one kernel with one set of arguments.

    ``kernel``: its qualified name, ``line`` that of its ``def``; ``factory`` and ``call`` where one made it.
    ``status``: ``accepted``, ``rejected`` or ``died``, ``phase`` of the compiler in which: ``front end``, ``lowering``
    or ``bisheng``; ``where`` is the pass and ``signal`` the reason of a death. ``piece`` and ``at``: the number of the
    piece and the line in it that the compiler names, else None. ``source``: what was generated.
    """

    kernel: str
    line: int
    factory: str
    call: str
    status: str
    target: str = ""
    platform: str = ""
    phase: str = ""
    message: str = ""
    where: str = ""
    signal: str = ""
    piece: int | None = None
    at: int | None = None
    source: str = ""


@dataclass(frozen=True)
class Stopped:
    """Code around kernels that ended by an exception. ``missing``: TileLang lacks a name that it uses."""

    message: str
    missing: bool
    piece: int | None = None
    at: int | None = None


@dataclass(frozen=True)
class Lowered:
    """Everything that a child told. ``begun`` is False where the compiler could not even be imported."""

    ended: Ended
    begun: bool
    branch: str = ""
    programs: tuple[Program, ...] = ()
    stopped: tuple[Stopped, ...] = ()
    notes: tuple[str, ...] = field(default=())


def lower(wanted: Wanted) -> Lowered:
    """Compile a file's kernels. Executes its code. Raises OSError where the interpreter cannot be started."""
    with tempfile.TemporaryDirectory(prefix="tl2npu-compile-") as folder:
        stem = Path(wanted.path).stem or "kernels"
        files = [str(Path(folder) / f"{stem}{number or ''}.py") for number in range(len(wanted.pieces))]
        request = {
            "pieces": [[file, text] for file, (_, text) in zip(files, wanted.pieces, strict=True)],
            "path": wanted.path,
            "calls": [[name, {key: repr(value) for key, value in given.items()}] for name, given in wanted.calls],
            "script_args": list(wanted.script_args),
            "target": wanted.target,
            "platform": wanted.platform,
            "bisheng": wanted.bisheng,
            "folder": folder,
        }
        ended = run_child("lower", request, wanted.budget, wanted.python)
        numbers = {file: number for number, file in enumerate(files)}
        programs = [_program(e, numbers) for e in ended.events if e["event"] == "program"]
    begin = next((e for e in ended.events if e["event"] == "begin"), None)
    return Lowered(
        ended,
        begin is not None,
        begin["branch"] if begin is not None else "",
        tuple(programs),
        tuple(
            Stopped(e["message"], e["missing"], numbers.get(e["file"]), e["at"] or None)
            for e in ended.events
            if e["event"] == "stopped"
        ),
        tuple(e["text"] for e in ended.events if e["event"] == "note"),
    )


def _program(event: Mapping[str, Any], numbers: Mapping[str, int]) -> Program:
    source = Path(event["source"]).read_text(encoding="utf-8") if event.get("source") else ""
    told = {key: event.get(key) or "" for key in ("target", "platform", "phase", "message", "where", "signal")}
    piece = numbers.get(event.get("file") or "")
    return Program(
        event["kernel"],
        event["line"],
        event["factory"],
        event["call"],
        event["status"],
        **told,
        piece=piece,
        at=(event.get("at") or None) if piece is not None else None,
        source=source,
    )
