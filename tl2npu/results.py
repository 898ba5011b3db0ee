"""What the tool says about a file: frozen dataclasses that flow from the passes to the reports.

Nothing here knows of syntax trees, so that results can cross a process boundary and be printed by any report format.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Literal

Severity = Literal["error", "warning", "info"]
Safety = Literal["safe", "unsafe", "display-only"]
Disposition = Literal["migrated", "unchanged", "partial", "refused"]

NOT_SELECTED = "not selected"
"""The reason of a kernel that ``--kernel`` leaves out."""
WITH_ERRORS = " with errors"
VERDICTS = (
    "migrated",
    f"migrated{WITH_ERRORS}",
    "partial",
    f"partial{WITH_ERRORS}",
    "refused",
    "unchanged",
    f"unchanged{WITH_ERRORS}",
)
"""What reports count; `tl2npu check` finds errors in the text of those with errors."""


def one_line(message: str) -> str:
    """A message that quotes code, without the line breaks of the code."""
    return re.sub(r"\s*\n\s*", " ", re.sub(r"(?<=[\[({])\s*\n\s*|,?\s*\n\s*(?=[\])}])", "", message))


@dataclass(frozen=True)
class Diagnostic:
    """One numbered finding.

    ``line`` and ``column`` are 1-based positions in the *input* file; ``column`` counts characters.
    ``message`` says what is wrong, ``help`` what to do about it. In a notebook ``cell`` is the number of the cell,
    lines are those of the cell, and ``file_line`` is the line of the file itself on which ``line`` stands.
    """

    code: str
    name: str
    severity: Severity
    line: int
    message: str
    help: str = ""
    column: int = 1
    end_line: int | None = None
    kernel: str | None = None
    safety: Safety = "display-only"
    cell: int | None = None
    file_line: int | None = None


@dataclass(frozen=True)
class Change:
    """One edit that was made: which rule changed which input line, and why (``--explain``)."""

    code: str
    line: int
    message: str
    kernel: str | None = None
    safety: Safety = "safe"
    cell: int | None = None


@dataclass(frozen=True)
class Verified:
    """What speaks for a kernel, by which backend.

    Old and new were executed and agreed: on ``calls`` launches, with ``max_error`` the largest difference. Where it is
    None nothing was executed: the compiler took ``calls`` programs of the new kernel.
    """

    backend: str
    calls: int
    max_error: float | None


@dataclass(frozen=True)
class SelfCheck:
    """What the check of every run found: old and new kernel give the same values at ``sizes``, or ``why`` they could
    not be evaluated."""

    equal: bool
    why: str = ""
    sizes: str = ""


@dataclass(frozen=True)
class KernelResult:
    """The verdict on one prim_func.

    ``source`` is the style that was found (``expert``, ``workspace``, ``vid``, ``mixed``, ``developer``, ``gpu``,
    ``npuir``, ``unknown``), ``target`` the form that was written (``developer``, ``developer-threads1``, ``fallback``,
    ``npuir``, ``none``) and ``reason`` one sentence that says why that form. ``verified`` is None where nothing was
    executed. ``pipes``: cycles that one block of the new kernel spends on each pipe at the first call, by the cost
    model; empty where no call tells the sizes. ``errors``: codes of what the compiler will reject in the new text,
    as :func:`judged` has it. ``checked``: old and new were evaluated before the new one was taken; None where nothing
    was rewritten, or nothing was to be checked.
    """

    name: str
    line: int
    source: str
    target: str
    disposition: Disposition
    reason: str
    codes: tuple[str, ...] = ()
    verified: Verified | None = None
    cell: int | None = None
    file_line: int | None = None
    pipes: tuple[tuple[str, float], ...] = ()
    errors: tuple[str, ...] = ()
    checked: SelfCheck | None = None

    @property
    def verdict(self) -> str:
        """The disposition as reports name it, one of :data:`VERDICTS`."""
        return f"{self.disposition}{WITH_ERRORS}" if self.errors else self.disposition

    @property
    def rewritten(self) -> bool:
        """True if the kernel was written in another form; False for one that only got comments."""
        return self.disposition in ("migrated", "partial")

    @property
    def for_npu(self) -> bool:
        """True if the kernel was written in another form, or stood in that form before."""
        stays = self.disposition == "unchanged" and self.reason != NOT_SELECTED
        return self.rewritten or (stays and self.source == "developer")

    @property
    def unfinished(self) -> bool:
        """True if the kernel is left to a person, marked (``--partial``) or not."""
        return self.disposition == "refused"


@dataclass(frozen=True)
class Cell:
    """A code cell of a notebook: its number among all cells, from 1, and its text."""

    number: int
    text: str


@dataclass(frozen=True)
class Follower:
    """Another file that calls a factory: by which ``names``, and in which ``line`` (of which ``cell``) first."""

    path: str
    line: int
    names: tuple[str, ...]
    cell: int | None = None

    @property
    def place(self) -> str:
        """Where that is, as messages say it."""
        cell = "" if self.cell is None else f"cell {self.cell} "
        return f"{cell}line {self.line} of {self.path}"


@dataclass(frozen=True)
class Promise:
    """What the new text of a kernel takes for granted: that all followers lose the same arguments.

    ``arguments``: their places among the ``arity`` arguments of the compiled kernel, with the names of the tensors
    (``arity`` 0: these calls stay). ``parameters``: those that the factory itself loses, of all in ``order``. ``line``
    is that of the kernel's ``def``.
    """

    kernel: str
    line: int
    factory: str
    followers: tuple[Follower, ...]
    arguments: tuple[tuple[int, str], ...] = ()
    arity: int = 0
    parameters: tuple[str, ...] = ()
    order: tuple[str, ...] = ()


@dataclass(frozen=True)
class FileResult:
    """Everything about one file. ``error`` is set when the file could not be processed at all.

    ``new_text`` equals ``old_text`` when nothing changes; both are None when the file could not be read. ``depends``:
    every other file whose text the result rests on, with the hexadecimal blake2b of its bytes, empty for a file that
    was looked for and is not there. ``places``: file, module that it imports, path where that was found, empty if it is
    not in the repository. A remembered result holds only as long as all of these are the same.
    ``promises`` are what other files must do for the new text to be right. ``handed``: the name of a kernel that was
    rewritten, and the function of the module by which other files may compile it.
    ``beside``: the path that the new text is written to where the file itself stays; ``stands``: it is there already.
    ``recalled``: a kernel stays as it is because ``migrate --verify`` took it back earlier, which may be forgotten.
    For a notebook the texts are its JSON, and ``cells`` has its code.
    """

    path: str
    old_text: str | None = None
    new_text: str | None = None
    error: str | None = None
    kernels: tuple[KernelResult, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    changes: tuple[Change, ...] = field(default=())
    depends: tuple[tuple[str, str], ...] = ()
    places: tuple[tuple[str, str, str], ...] = ()
    cells: tuple[Cell, ...] = ()
    promises: tuple[Promise, ...] = ()
    handed: tuple[tuple[str, str], ...] = ()
    beside: str = ""
    stands: bool = False
    recalled: bool = False

    @property
    def changed(self) -> bool:
        """True when the tool would write a different text."""
        return self.error is None and self.new_text != self.old_text and not self.stands


def judged(result: FileResult) -> FileResult:
    """The result with the ``errors`` of each kernel for the NPU: its own, and those of the whole file."""
    errors = [item for item in result.diagnostics if item.severity == "error"]
    owners = [_owner(item, result.kernels) for item in errors]
    kernels: list[KernelResult] = []
    for kernel in result.kernels:
        found = {item.code for item, owner in zip(errors, owners, strict=True) if owner is None or owner is kernel}
        kernels.append(replace(kernel, errors=tuple(sorted(found))) if kernel.for_npu else kernel)
    return replace(result, kernels=tuple(kernels))


def _owner(item: Diagnostic, kernels: tuple[KernelResult, ...]) -> KernelResult | None:
    """The kernel that a finding is about; of several with one name the closest one above."""
    same = [kernel for kernel in kernels if kernel.name == item.kernel]
    above = [kernel for kernel in same if (kernel.cell or 0, kernel.line) <= (item.cell or 0, item.line)]
    return above[-1] if above else same[0] if same else None


@dataclass(frozen=True)
class Skipped:
    """A file that was left out on purpose, and why (``@generated``, ``# tl2npu: skip-file``)."""

    path: str
    reason: str
