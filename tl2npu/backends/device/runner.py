"""Runs the launches of one kernel in child processes of their own, and says what the ends of these mean."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tl2npu.backends.children import Ended, Event, last_line, run_child
from tl2npu.backends.device import tools
from tl2npu.backends.device.camodel import environment as simulated
from tl2npu.backends.device.launches import Arrays, Program, results
from tl2npu.codes import CODES
from tl2npu.errors.log import Found, explain
from tl2npu.options import Backend
from tl2npu.toolchain import cann

# What the end of a child says of a kernel, in words: the table of ``tl2npu.errors``, and the text of the tools.
#
# ``bisheng`` is a clang, whose messages have ``error:``; msSanitizer's user guide: a finding begins with
# ``====== ERROR:`` or ``====== WARNING:``.

_DETAIL = re.compile(r"errorStr: ([^.\n]+)")
_COMPILER = re.compile(r"^.*\b(?:fatal )?error: .*$", re.M)
_FINDING = re.compile(r"^=+ (?:ERROR|WARN\w*): (.*?)\s*:?\s*$", re.M)
_HEX = re.compile(r"0x[0-9a-f]+")
_WORDS = 220


def of_runtime(text: str) -> str:
    """The error code of the runtime in an output, what the device said, and what that means; empty without a code."""
    found = explain(text).found
    code = next((one.entry for one in found if one.entry.key.isdigit()), None)
    if code is None:
        return ""
    detail = _DETAIL.search(text)
    said = f", {detail.group(1).strip()}" if detail else ""
    fault = next((one for one in found if one.entry.layer == "AI core"), None)
    return f"error {code.key} ({code.means}{said}){_because(fault)}"


def _because(fault: Found | None) -> str:
    """What the bits of an exception mean, or its text, and the rules about it."""
    if fault is None:
        return ""
    rules = ", ".join(f"{rule} {CODES[rule].name}" for rule in fault.entry.rules[:2])
    return f": {fault.entry.means}{f' ({rules})' if rules else ''}"


def of_death(ended: Ended) -> str:
    """How a process ended that did not come to its end."""
    parts = [part for part in (ended.died or "it was killed", of_runtime(ended.output)) if part]
    if len(parts) == 1 and (line := last_line(ended.output)):
        parts.append(line[:_WORDS])
    return "; ".join(parts)


def of_exception(message: str, output: str) -> str:
    """An exception of the child: the code of the runtime behind it, else its own text."""
    return of_runtime(message) or of_runtime(output) or message[:_WORDS]


def of_compiler(message: str, output: str) -> str:
    """What the compiler says: the first error of bisheng, else the exception of TileLang."""
    found = _COMPILER.search(output)
    if found is not None and "Error: " not in found.group().split("error: ")[0]:
        return found.group().strip()[:_WORDS]
    return message[:_WORDS]


def of_sanitizer(report: str) -> Iterator[tuple[str, int]]:
    """The findings of a report without addresses, each once, with how often it was made."""
    found: dict[str, int] = {}
    for match in _FINDING.finditer(report):
        text = _HEX.sub("an address", match.group(1))[:_WORDS]
        found[text] = found.get(text, 0) + 1
    yield from found.items()


UNVERIFIED, EXHAUSTED = "TL906", "TL911"
DIED, HUNG, UNCOMPILED, RUNS_DIFFER, NOT_A_NUMBER, SANITIZED, UNMEASURED = (f"TL{n}" for n in range(940, 947))

Side = Literal["old", "new"]
Problem = tuple[str, str]
WHERE = {"npu": "on the NPU", "camodel": "on CANN's simulator"}


class NotHere(Exception):
    """The machine lacks what the backend needs; ``str()`` says what, and how to go on."""


@dataclass
class Ran:
    """What became of the launches of one side: tensors after them, and problems, both by the number of the launch.

    ``general``: problems of the kernel that are of no launch. ``microseconds``: the median of ``msprof op``.
    """

    outputs: dict[int, Arrays] = field(default_factory=dict)
    problems: dict[int, list[Problem]] = field(default_factory=dict)
    general: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    microseconds: float | None = None


@dataclass(frozen=True)
class Device:
    """The device of a backend. ``budget``: seconds for each process. ``folder``: for files, and private.

    ``platform``: of the kernels, as the option ``--device`` says, where the backend names none.
    """

    backend: Backend
    budget: float
    folder: Path
    platform: str

    def require(self) -> None:
        """Raise NotHere unless everything is there that can be looked for without a kernel."""
        for wished, tool in ((self.backend.sanitize, "mssanitizer"), (self.backend.time, "msprof")):
            if wished and shutil.which(tool) is None:
                raise NotHere(f"`{tool}` is not on PATH; enter the environment of CANN with its `set_env.sh`")
        request = {"backend": self.backend.name, "probe": True}
        self._missing(self._child(request))

    def run(self, program: Program, side: Side, kernel: str, told: Sequence[Mapping[str, Any]]) -> Ran:
        """Run the launches of a kernel; ``told`` are their requests. Raises NotHere."""
        once = self.backend.name == "camodel"
        repeat = self.backend.repeat or (1 if once else 3)
        ended = self._child(self._request(program, kernel, told, repeat))
        self._missing(ended)
        ran = self._read(ended, side, told)
        if ran.outputs:
            own = [
                {**one, "outputs": f"{one['outputs']}.again.npz"} for one in told if one["number"] == min(ran.outputs)
            ]
            if self.backend.sanitize and side == "new":
                self._sanitize(ran, self._request(program, kernel, own, 1, instrument=True))
            if self.backend.time:
                name = kernel.rpartition(".")[2]
                self._measure(ran, self._request(program, kernel, own, tools.LAUNCHES), side, name)
        return ran

    def _request(
        self, program: Program, kernel: str, told: Sequence[Mapping[str, Any]], repeat: int, instrument: bool = False
    ) -> dict[str, Any]:
        return {
            "backend": self.backend.name,
            "path": program.path,
            "pieces": [list(piece) for piece in program.pieces],
            "name": Path(program.path).stem,
            "argv": list(program.argv),
            "kernel": kernel,
            "target": self.backend.target,
            "platform": self._platform,
            "repeat": repeat,
            "instrument": instrument,
            "launches": list(told),
        }

    @property
    def _platform(self) -> str | None:
        return self.backend.platform or (self.platform if self.backend.name == "camodel" else None)

    def _child(self, request: dict[str, Any], wrap: Sequence[str] = ()) -> Ended:
        # What an earlier compiler has left proves nothing, and what is instrumented is no other program for the cache.
        cache = "instrumented" if request.get("instrument") else "cache"
        env = {"TILELANG_CACHE_DIR": str(self.folder / cache)}
        if "ACL_OP_INIT_MODE" not in os.environ:
            env["ACL_OP_INIT_MODE"] = "1"  # as TileLang-Ascend's set_env.sh
        if self.backend.device_id is not None:
            env["ASCEND_RT_VISIBLE_DEVICES"] = str(self.backend.device_id)
        if self.backend.name == "camodel":
            extra, request["library"] = self._simulator()
            env |= extra
        try:
            here = self.folder if wrap else None  # the tools write files of their own into the working directory
            return run_child("launch", request, self.budget, self.backend.python, wrap, env, here)
        except OSError as error:
            raise NotHere(f"{error.filename or self.backend.python} cannot be started: {error.strerror}") from None

    def _simulator(self) -> tuple[dict[str, str], str]:
        kit = cann.find(os.environ)
        if kit is None:
            raise NotHere("there is no CANN; set ASCEND_HOME_PATH, or run CANN's `set_env.sh`")
        platform = str(self._platform)
        library = cann.simulators(kit).get("A5" if platform == "A5" else "A2")
        if library is None:
            raise NotHere(f"{kit.home} has no libruntime_camodel.so for platform {platform}")
        logs = self.folder / "camodel"
        logs.mkdir(exist_ok=True)
        return simulated(kit.home, library, platform, logs, os.environ), str(library)

    def _missing(self, ended: Ended) -> None:
        for event in ended.events:
            if event["event"] == "missing":
                raise NotHere(f"it needs {event['what']}; `tl2npu doctor` says how to get it")
        begun = any(event["event"] == "begin" for event in ended.events)
        if not begun and ended.overdue is not None:
            raise NotHere("loading torch_npu and tilelang took too long; give more seconds with `--timeout`")
        if not begun and ended.code != 0:
            raise NotHere(f"the process that loads torch_npu and tilelang died: {of_death(ended)}")

    def _read(self, ended: Ended, side: Side, told: Sequence[Mapping[str, Any]]) -> Ran:
        ran = Ran()
        by_number = {one["number"]: one for one in told}
        for event in ended.events:
            if event["event"] == "ran" and (found := results(by_number[event["number"]])) is not None:
                ran.outputs[event["number"]] = found
            elif event["event"] == "differs":
                ran.problems.setdefault(event["number"], []).append((RUNS_DIFFER, _differs(event)))
            elif event["event"] == "stopped":
                ran.notes.append(f"the code of the {side} file outside its kernels failed: {event['message']}")
        end = self._end(ended, side)
        if end is not None:
            last = [e for e in ended.events if e["event"] in ("stage", "failed")][-1:]
            number = last[0]["number"] if last else None
            for one in told:
                if one["number"] == number or (number is None and one["number"] not in ran.outputs):
                    ran.problems.setdefault(one["number"], []).append(end)
                    ran.outputs.pop(one["number"], None)
                elif one["number"] not in ran.outputs:
                    text = f"it was not run {WHERE[self.backend.name]}: an earlier launch of the kernel failed"
                    ran.problems.setdefault(one["number"], []).append((UNVERIFIED, text))
        return ran

    def _end(self, ended: Ended, side: Side) -> Problem | None:
        """What is wrong with the end of a process, None if nothing is."""
        if ended.code == 0:
            return None
        who, where = f"the {side} kernel", WHERE[self.backend.name]
        stage = next((e["stage"] for e in reversed(ended.events) if e["event"] == "stage"), "load")
        failed = next((e for e in ended.events if e["event"] == "failed"), None)
        if ended.overdue is not None:
            if stage in ("give", "run"):
                return HUNG, f"{who} hangs {where}: no result within {self.budget:g} seconds"
            return EXHAUSTED, f"compiling {who} took longer than {self.budget:g} seconds (--timeout)"
        if failed is None and stage in ("give", "run"):
            return DIED, f"the process of {who} died {where}: {of_death(ended)}"
        if failed is None:
            doing = "compiled" if stage == "build" else "loaded"
            return (UNCOMPILED if stage == "build" else UNVERIFIED), (
                f"the process died while {who} was {doing}: {of_death(ended)}"
            )
        message = failed["message"]
        if stage == "run":
            return DIED, f"{who} fails {where}: {of_exception(message, ended.output)}"
        if stage == "build":
            return UNCOMPILED, f"{who} does not compile: {of_compiler(message, ended.output)}"
        if stage == "give":
            return UNVERIFIED, f"the launch of {who} cannot be prepared: {message}"
        return UNVERIFIED, f"the file of {who} cannot be loaded where TileLang-Ascend is: {message}"

    def _sanitize(self, ran: Ran, request: dict[str, Any]) -> None:
        tool = str(self.backend.sanitize)
        log = self.folder / f"{tool}.log"
        log.unlink(missing_ok=True)
        ended = self._child(request, tools.sanitizer(tool, log))
        report = "\n".join([ended.output, *([log.read_text("utf-8", "replace")] if log.is_file() else [])])
        for text, count in of_sanitizer(report):
            times = f" ({count} times)" if count > 1 else ""
            ran.general.append((SANITIZED, f"msSanitizer ({tool}): {text}{times}"))
        if any(event["event"] == "uninstrumented" for event in ended.events):
            text = "the compiler rejects its options: only transfers from and to global memory were checked"
            ran.notes.append(f"msSanitizer ({tool}): {text}")
        if ended.code != 0 and not ran.general:
            end = self._end(ended, "new")
            said = end[1] if end else of_death(ended)
            ran.general.append((UNVERIFIED, f"msSanitizer ({tool}) reported nothing: {said}"))

    def _measure(self, ran: Ran, request: dict[str, Any], side: Side, kernel: str) -> None:
        folder = self.folder / f"msprof-{side}-{len(list(self.folder.glob('msprof-*')))}"
        ended = self._child(request, tools.profiler(folder))
        ran.microseconds = tools.duration(folder, kernel)
        if ran.microseconds is None:
            why = f": {line}" if (line := last_line(ended.output)[:200]) else ""
            ran.general.append((UNMEASURED, f"msprof op measured nothing of the {side} kernel{why}"))


def _differs(event: Event) -> str:
    where = f"{event['tensor']}[{', '.join(map(str, event['index']))}]"
    text = f"runs 1 and {event['run']} on the same inputs differ in {event['count']} of {event['size']}"
    return f"the kernel races: {text} elements of {event['tensor']}, first in {where}"


def too_large(told: Mapping[str, Any], backend: Backend) -> str:
    """Why a launch is not given to CANN's simulator; empty if it may be."""
    count = told["elements"]
    if backend.name != "camodel" or count <= backend.max_elements:
        return ""
    return f"its tensors have {count} elements, the limit is {backend.max_elements}; raise it with `--max-elements`"
