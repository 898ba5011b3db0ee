"""New kernels that another process executes: launches are written into a folder, and results read from there.

A job asks for all launches first; when they have been run, another job compares. Files, beside the recorded launch
NNN: ``NNN.asked.json`` with its ``kernel`` and the request, ``NNN.answer.json`` with ``new`` and ``old`` (requests that
were run, or null), and ``problems``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tl2npu.backends.device.launches import Launch, NotPlain, plain, results
from tl2npu.backends.device.runner import UNVERIFIED
from tl2npu.simulator.standin.jit import JITKernel
from tl2npu.verify import layouts
from tl2npu.verify.launching import CannotBuild
from tl2npu.verify.layouts import Arrays
from tl2npu.verify.matching import Match
from tl2npu.verify.recording import Recording, Signature, compile_arguments, same_memory
from tl2npu.verify.replay import Outcome


@dataclass(frozen=True)
class Asked:
    """Writes the launches of new kernels; nothing is known of their results yet."""

    folder: Path

    def reference(self, recording: Recording) -> Recording:
        """Not needed yet."""
        return recording

    def run(self, recording: Recording, compiled: JITKernel, matched: Match, arrays: Arrays) -> Outcome:
        """Write a launch. Raises CannotBuild where it cannot be given to another process."""
        request = _launch(recording, compiled, matched, arrays).written(self.folder, "new")
        text = json.dumps({"kernel": recording.kernel, "request": request})
        (self.folder / f"{recording.number:06}.asked.json").write_text(text, encoding="utf-8")
        return Outcome(None)


@dataclass(frozen=True)
class Answered:
    """Reads what has been executed."""

    folder: Path

    def reference(self, recording: Recording) -> Recording:
        """With what the old kernel gave where the new one ran, if it did run there."""
        told = self._answer(recording.number).get("old")
        found = results(told) if told is not None else None
        if found is None:
            return recording
        outputs = {name: found.get(name, array) for name, array in recording.outputs.items()}
        return replace(recording, outputs=outputs, writers={}, unrounded={}, undefined={})

    def run(self, recording: Recording, compiled: JITKernel, matched: Match, arrays: Arrays) -> Outcome:
        """What was written for a launch. Raises as when it was asked for."""
        _launch(recording, compiled, matched, arrays)
        answer = self._answer(recording.number)
        problems = [(code, text) for code, text in answer.get("problems", ())]
        told = answer.get("new")
        found = results(told) if told is not None else None
        if found is None:
            return Outcome(None, problems or [(UNVERIFIED, "it was not run")])
        return Outcome({name: found.get(name, array) for name, array in arrays.items()}, problems)

    def _answer(self, number: int) -> dict[str, Any]:
        path = self.folder / f"{number:06}.answer.json"
        return json.loads(path.read_text("utf-8")) if path.is_file() else {}


def _launch(recording: Recording, compiled: JITKernel, matched: Match, arrays: Arrays) -> Launch:
    if layouts.of(compiled.kernel):
        raise CannotBuild("the new kernel keeps a tensor in a layout of its own")
    try:
        plain(dict(compiled.arguments))
    except NotPlain as error:
        raise CannotBuild(str(error)) from None
    call = Signature.of(compiled)
    return Launch(
        recording.number,
        compiled.factory,
        compiled.arguments,
        compile_arguments(compiled),
        tuple(param.name for param in compiled.kernel.params),
        call.given,
        call.returned,
        arrays,
        {name: recording.scalars[old] for name, old in matched.scalars.items()},
        same_memory(arrays),
    )


def ask_old(folder: Path, recording: Recording) -> dict[str, Any]:
    """The request for a recorded launch of the old kernel itself. Raises NotPlain."""
    launch = Launch(
        recording.number,
        recording.factory,
        recording.arguments or {},
        recording.compiled,
        recording.params,
        recording.given,
        recording.returned,
        recording.inputs,
        recording.scalars,
        recording.shared,
    )
    return launch.written(folder, "old")


def asked(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The requests by kernel, in order."""
    found: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(folder.glob("*.asked.json")):
        told = json.loads(path.read_text("utf-8"))
        found.setdefault(told["kernel"], []).append(told["request"])
    return found


def answer(
    folder: Path,
    number: int,
    new: Mapping[str, Any] | None,
    old: Mapping[str, Any] | None,
    problems: Sequence[tuple[str, str]],
) -> None:
    """Write what became of a launch."""
    text = json.dumps({"new": new, "old": old, "problems": [list(problem) for problem in problems]})
    (folder / f"{number:06}.answer.json").write_text(text, encoding="utf-8")
