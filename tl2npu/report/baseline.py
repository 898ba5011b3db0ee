"""Findings that a repository has already: only others count, so that a check can begin before everything is clean.

A baseline is a JSON file with a line for each finding and each kernel that is not done, in an order that diffs well. A
finding is known by its code, its kernel and the text of its line, so that it survives when lines above it move.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path

from tl2npu.report.model import Entry, Finding, ReportError
from tl2npu.results import FileResult, KernelResult, judged

VERSION = 1


@dataclass
class Baseline:
    """The ``known`` lines by path, relative to the folder of the ``file``, and those that the run has ``found``."""

    file: Path
    known: dict[str, list[str]] = field(default_factory=dict)
    found: dict[str, list[str]] = field(default_factory=dict)
    left_out: int = 0

    @classmethod
    def read(cls, file: Path) -> Baseline:
        """A baseline that was written before. Raises :class:`ReportError`."""
        try:
            data = json.loads(file.read_text(encoding="utf-8"))
            known = {str(path): [str(line) for line in lines] for path, lines in data["files"].items()}
            version = data["version"]
        except OSError as error:
            raise ReportError(f"cannot read the baseline {file}: {error.strerror}") from None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise ReportError(f"{file} is not a baseline of tl2npu: write one with --write-baseline") from None
        if version != VERSION:
            raise ReportError(f"{file} is a baseline of version {version}, not {VERSION}: write it anew")
        return cls(file, known)

    def without_known(self, result: FileResult, entry: Entry) -> tuple[FileResult, Entry]:
        """What is new: the result that the exit code follows from, and what the report shows."""
        path = Path(os.path.relpath(entry.path, self.file.parent)).as_posix()
        keyed = list(_keyed(entry))
        self.found[path] = sorted(key for key, _ in keyed)
        left = Counter(self.known.get(path, ()))
        new: list[Finding | KernelResult] = []
        for key, item in keyed:
            if left[key]:
                left[key] -= 1
            else:
                new.append(item)
        if len(new) == len(keyed):
            return result, entry
        fresh = {id(item) for item in new}
        findings = tuple(item for item in entry.findings if id(item) in fresh)
        self.left_out += len(entry.findings) - len(findings)
        shown = judged(replace(result, diagnostics=tuple(item.diagnostic for item in findings)))
        entry = replace(entry, findings=findings, kernels=shown.kernels)
        return self._counting(shown, result.kernels, fresh), entry

    def _counting(self, result: FileResult, before: tuple[KernelResult, ...], fresh: set[int]) -> FileResult:
        """The result without known kernels, refused or to be migrated, unless something new is said of them."""
        accused = {item.kernel for item in result.diagnostics if item.severity == "error"}
        kernels = []
        for old, kernel in zip(before, result.kernels, strict=True):
            known = id(old) not in fresh and (kernel.unfinished or kernel.rewritten) and kernel.name not in accused
            kernels.append(replace(kernel, disposition="unchanged", errors=()) if known else kernel)
        left = any(kernel.rewritten for kernel in kernels)
        text = result.new_text if left or not any(kernel.rewritten for kernel in before) else result.old_text
        return replace(result, kernels=tuple(kernels), new_text=text)

    def told(self) -> str:
        """One line on what was left out, and on what is known of files of this run and there no more."""
        gone = sum((Counter(self.known.get(path, ())) - Counter(found)).total() for path, found in self.found.items())
        text = f"{self.left_out:,} known finding{'' if self.left_out == 1 else 's'} left out ({self.file})"
        return text + (f"; {gone:,} entries of it are gone: write it anew" if gone else "")

    def written(self) -> str:
        """What the run has found, as a file."""
        files = {path: lines for path, lines in sorted(self.found.items()) if lines}
        return json.dumps({"version": VERSION, "files": files}, indent=1, ensure_ascii=False) + "\n"


def _keyed(entry: Entry) -> Iterator[tuple[str, Finding | KernelResult]]:
    for finding in entry.findings:
        item = finding.diagnostic
        source = " ".join(finding.source[0].split()) if finding.source else ""
        yield _key(item.code, item.kernel or "", source), finding
    for kernel in entry.kernels:
        if kernel.unfinished or kernel.rewritten:
            yield _key("kernel", kernel.name, "refused" if kernel.unfinished else "migrates"), kernel


def _key(kind: str, kernel: str, text: str) -> str:
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return f"{kind} {kernel} {text if kind == 'kernel' else digest}".replace("  ", " ")
