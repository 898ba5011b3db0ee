"""``--backend npu`` and ``--backend camodel``: the new kernels, and old ones for Ascend, where they are made for.

The simulator records the launches of the old file. Each new kernel is then compiled by the user's TileLang-Ascend and
run on the same inputs, and so is the old one if it is a kernel for Ascend: then its results are what counts, else those
of the simulator. Comparisons are those of the simulator's judge.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tl2npu.backends.device import tools
from tl2npu.backends.device.camodel import DOCUMENTED
from tl2npu.backends.device.launches import NotPlain, Program
from tl2npu.backends.device.runner import RUNS_DIFFER, UNVERIFIED, WHERE, Device, Ran, too_large
from tl2npu.verified import VerifyResult
from tl2npu.verify import judge, process, recording
from tl2npu.verify.compare import difference
from tl2npu.verify.elsewhere import answer, ask_old, asked
from tl2npu.verify.judge import Findings, Runner
from tl2npu.verify.loading import Source
from tl2npu.verify.naming import texts
from tl2npu.verify.replay import said
from tl2npu.verify.settings import Settings


def verify(
    old: Source, new: Source, settings: Settings, changed: Sequence[str] | None, runner: Runner = process.apart
) -> VerifyResult:
    """Verify on a device. Raises NotHere where there is none, and UsageError as the simulator's judge."""
    if settings.backend.name == "camodel":
        settings = replace(settings, draws=1)
    with started(old, new, settings) as run:
        found = judge.verify(old, new, settings, runner, changed, run)
    return replace(found, notes=(*run.general(), *found.notes))


@contextmanager
def started(old: Source | None, new: Source, settings: Settings) -> Iterator[Run]:
    """Executes new kernels on the device of the settings, and old ones if they are given. Raises NotHere."""
    with tempfile.TemporaryDirectory(prefix="tl2npu-device-") as folder:
        device = Device(settings.backend, settings.timeout, Path(folder), settings.device)
        device.require()
        yield Run(device, old, new, settings)


@dataclass(frozen=True)
class Run:
    """Executes the launches that a verification asks for; without ``old`` the recorded results are what counts."""

    device: Device
    old: Source | None
    new: Source
    settings: Settings

    def general(self) -> Iterator[str]:
        """What holds for every kernel."""
        backend = self.settings.backend
        platform = backend.platform or self.settings.device
        if backend.name == "camodel" and (platform, backend.target or "pto") != DOCUMENTED:
            yield "TileLang-Ascend documents CANN's simulator for `--platform A5 --target pto` only"

    def __call__(self, folder: Path, findings: Findings) -> None:
        """Run the launches in the folder, kernel by kernel."""
        for kernel, requests in asked(folder).items():
            big = {told["number"]: text for told in requests if (text := too_large(told, self.settings.backend))}
            for number, text in big.items():
                answer(folder, number, None, None, [(UNVERIFIED, text)])
            requests = [told for told in requests if told["number"] not in big]
            if requests:
                self._kernel(folder, kernel, requests, findings)

    def _kernel(self, folder: Path, kernel: str, requests: list[dict[str, Any]], findings: Findings) -> None:
        new = self.device.run(_program(self.new, self.settings), "new", kernel, requests)
        old, before = self._old(folder, kernel, [told["number"] for told in requests], findings)
        allowed = self._may_differ(kernel, old)
        for told in requests:
            number = told["number"]
            problems = new.problems.get(number, [])
            if allowed and any(code == RUNS_DIFFER for code, _ in problems):
                findings.notes += [f"{kernel}: {text}; {allowed}" for code, text in problems if code == RUNS_DIFFER]
                problems = [problem for problem in problems if problem[0] != RUNS_DIFFER]
            ran = told if number in new.outputs else None
            answer(folder, number, ran, before.get(number) if number in old.outputs else None, problems)
        for code, text in (*new.general, *old.general):
            findings.problem(code, text, kernel)
        findings.notes += [f"{kernel}: {text}" for text in new.notes]
        if new.microseconds is not None:
            than = f", the old kernel {old.microseconds:.2f} us" if old.microseconds is not None else ""
            by = f"median of {tools.LAUNCHES} launches, msprof op"
            findings.notes.append(f"{kernel}: {new.microseconds:.2f} us{than} ({by})")

    def _old(
        self, folder: Path, kernel: str, numbers: Sequence[int], findings: Findings
    ) -> tuple[Ran, Mapping[int, dict[str, Any]]]:
        """The old kernel on the device, and its requests; notes say what the new one is compared with."""
        if self.old is None:
            return Ran(), {}
        where = WHERE[self.settings.backend.name]
        with_simulator = f"{kernel}: compared with the old kernel on the tl2npu simulator"
        recorded = [recording.load_one(folder, number) for number in numbers]
        if any(one.on_gpu for one in recorded):
            findings.notes.append(f"{with_simulator}: it is a GPU kernel")
            return Ran(), {}
        try:
            told = {one.number: ask_old(folder, one) for one in recorded}
        except NotPlain as error:
            findings.notes.append(f"{with_simulator}: {error}")
            return Ran(), {}
        ran = self.device.run(_program(self.old, self.settings), "old", kernel, list(told.values()))
        stopped = [text for number in numbers if number not in ran.outputs for _, text in ran.problems.get(number, ())]
        if stopped:
            findings.notes.append(f"{with_simulator}, not {where}: {stopped[0]}")
        else:
            findings.notes.append(f"{kernel}: compared with the old kernel {where}")
        for one in recorded:
            differs = self._apart(one, ran)
            if differs:
                findings.notes.append(f"{kernel}: the old kernel also differs: {differs}")
                break
        return ran, told

    def _apart(self, one: recording.Recording, ran: Ran) -> str:
        """How the device's results of the old kernel differ from those of the simulator; empty if they do not."""
        sides = "simulator", WHERE[self.settings.backend.name]
        for name, found in ran.outputs.get(one.number, {}).items():
            expected = one.outputs[name]
            usual = one.tolerances.get(expected.dtype.name, 0.0)
            rtol = usual if self.settings.rtol is None else self.settings.rtol
            if name not in one.undefined and expected.shape == found.shape:
                differs = difference(expected, found, rtol, self.settings.atol)
                if differs is not None:
                    return said(name, differs, sides, ("", ""))
        return ""

    def _may_differ(self, kernel: str, old: Ran) -> str:
        """Why runs may differ in bits; empty if they may not."""
        if any(code == RUNS_DIFFER for problems in old.problems.values() for code, _ in problems):
            return "so does the old kernel"
        if "atomic_add" in texts(self.new.text).get(kernel, ""):
            return "`atomic_add` of floats has no fixed order"
        return ""


def _program(source: Source, settings: Settings) -> Program:
    return Program(source.path, source.pieces, settings.script_args)
