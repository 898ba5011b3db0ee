"""The report that people read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

import click

from tl2npu.results import Change, Diagnostic, FileResult, KernelResult, Skipped, Verified

Task = Literal["migrate", "check"]

_COLOURS = {
    "migrated": "green",
    "unchanged": "cyan",
    "partial": "yellow",
    "refused": "red",
    "error": "red",
    "warning": "yellow",
    "info": "cyan",
}
_DISPOSITIONS = ("migrated", "partial", "refused", "unchanged")


class TextReport:
    """Renders results line by line.

    ``written`` says whether files were rewritten or only would be; ``explain`` lists the changes of a kernel by line.
    """

    def __init__(
        self, task: Task = "migrate", *, color: bool = False, explain: bool = False, written: bool = True
    ) -> None:
        self.task = task
        self.color = color
        self.explain = explain
        self.written = written

    def render(self, files: Sequence[FileResult], skipped: Sequence[Skipped] = ()) -> str:
        """The whole report with a final newline."""
        lines = [line for file in files for line in self._file(file)]
        lines += [f"{file.path}: skipped ({file.reason})" for file in skipped]
        lines.append(self._summary(files, skipped))
        return "\n".join(lines) + "\n"

    def _file(self, file: FileResult) -> list[str]:
        lines: list[str] = []
        if file.error is not None:
            lines.append(f"{file.path}: {self._styled('error', 'error')}: {file.error}")
        for kernel in (*file.kernels, None):
            if kernel is not None and self.task == "migrate":
                lines.append(self._kernel(file.path, kernel))
            found = [item for item in file.diagnostics if _owner(item, file.kernels) is kernel]
            lines += self._diagnostics(file.path, found)
            if self.explain:
                lines += self._changes(item for item in file.changes if _owner(item, file.kernels) is kernel)
        return lines

    def _kernel(self, path: str, kernel: KernelResult) -> str:
        disposition = self._styled(kernel.disposition, kernel.disposition)
        target = f" -> {kernel.target}" if kernel.disposition in ("migrated", "partial") else ""
        reason = f" ({kernel.reason})" if kernel.reason else ""
        proof = f", {verified_text(kernel.verified)}" if kernel.verified is not None else ""
        return f"{path}:{kernel.line} {kernel.name}: {disposition}{target}{proof}{reason}"

    def _diagnostics(self, path: str, diagnostics: Iterable[Diagnostic]) -> list[str]:
        lines: list[str] = []
        for item in diagnostics:
            code = self._styled(item.code, item.severity)
            lines.append(f"  {path}:{item.line}:{item.column} {code} {item.name} {item.message}")
            if item.help:
                lines.append(f"    help: {item.help}")
        return lines

    def _changes(self, changes: Iterable[Change]) -> Iterable[str]:
        """Passes record changes in their own order; people read the file from the top, and each thing once."""
        return dict.fromkeys(self._change(item) for item in sorted(changes, key=lambda item: item.line))

    def _change(self, change: Change) -> str:
        unsafe = "" if change.safety == "safe" else f" [{change.safety}]"
        return f"    line {change.line}: {change.code} {change.message}{unsafe}"

    def _summary(self, files: Sequence[FileResult], skipped: Sequence[Skipped]) -> str:
        kernels = [kernel for file in files for kernel in file.kernels]
        parts: list[str] = []
        if self.task == "migrate":
            changed = sum(file.changed for file in files)
            parts.append(f"{_count(changed, 'file')} {'changed' if self.written else 'would change'}")
            found: Counter[str] = Counter(kernel.disposition for kernel in kernels)
            verdicts = ", ".join(f"{found[name]} {name}" for name in _DISPOSITIONS if found[name])
            parts.append(_count(len(kernels), "kernel") + (f": {verdicts}" if verdicts else ""))
        else:
            severities = Counter(item.severity for file in files for item in file.diagnostics)
            parts.append(f"{_count(severities['error'], 'error')}, {_count(severities['warning'], 'warning')}")
            parts.append(f"{_count(len(kernels), 'kernel')} in {_count(len(files), 'file')}")
        failed = sum(file.error is not None for file in files)
        if failed:
            parts.append(f"{_count(failed, 'file')} failed")
        if skipped:
            parts.append(f"{len(skipped)} skipped")
        return "; ".join(parts)

    def _styled(self, text: str, kind: str) -> str:
        return click.style(text, fg=_COLOURS[kind], bold=kind in ("error", "refused")) if self.color else text


def verified_text(proof: Verified) -> str:
    """Who proved it, on what, how exactly: ``verified on the simulator: 2 launches, largest difference 0``."""
    where = {"sim": "the simulator"}.get(proof.backend, proof.backend)
    return f"verified on {where}: {_count(proof.calls, 'launch')}, largest difference {proof.max_error:.3g}"


def _owner(item: Diagnostic | Change, kernels: Sequence[KernelResult]) -> KernelResult | None:
    """The kernel of a finding; where kernels of a file share a name, the closest one above tells whose it is."""
    named = [kernel for kernel in kernels if kernel.name == item.kernel]
    above = [kernel for kernel in named if kernel.line <= item.line]
    return above[-1] if above else named[0] if named else None


def _count(number: int, noun: str) -> str:
    plural = f"{noun}es" if noun.endswith("ch") else f"{noun}s"
    return f"{number} {noun}" if number == 1 else f"{number} {plural}"
