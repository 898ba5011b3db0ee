"""``migrate --verify``: what was migrated is executed beside the old kernels, and what fails is taken back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tl2npu.codes import finding
from tl2npu.languages import migrate_source
from tl2npu.options import Options
from tl2npu.results import Diagnostic, FileResult, KernelResult
from tl2npu.source.notebook import Notebook
from tl2npu.verified import VerifyResult
from tl2npu.verify import process
from tl2npu.verify.backends import verify
from tl2npu.verify.judge import FAULTY, OF_NEW, OF_OLD, OWN_CHECK, UNVERIFIED, Runner
from tl2npu.verify.loading import Source
from tl2npu.verify.notebooks import source_of
from tl2npu.verify.settings import Settings

_UNUSED = "TL904"
_HELP_OLD = "the migrated kernel does the same: mend the old one, and migrate again"
_HELP = "let the file launch it when it is run, or use `tl2npu verify FILE --args 'factory(name=value)'`"


def migrate_verified(
    text: str,
    path: str,
    options: Options,
    settings: Settings | None = None,
    runner: Runner = process.apart,
    book: Notebook | None = None,
    learned: Callable[[FileResult, Mapping[int, Sequence[Diagnostic]]], None] | None = None,
) -> FileResult:
    """Migrate a file, execute old and new, and leave the kernels that fail as they were.

    A kernel fails if its results differ, if it is faulty when it runs, or if the new script's own checks fail where the
    old one's pass. Kernels that could not be executed stay migrated, with a warning and without ``verified``. What is
    left after something was taken back is verified again. Executes the code of the file. ``book``: the notebook that
    the text is the code of. ``learned`` is told of each migration that was executed, with the kernels that failed.
    """
    settings = settings or Settings(
        device=options.device, backend=options.backend, timeout=options.verify_timeout, check=options, fp8=options.fp8
    )
    leave: dict[int, list[Diagnostic]] = {}
    unused: list[Diagnostic] | None = None
    while True:
        result = migrate_source(text, path, options, leave)
        # Suppressions in a kernel that is left alone are not without use, only not tried: the first run knows.
        unused = [d for d in result.diagnostics if d.code == _UNUSED] if unused is None else unused
        found = [d for d in result.diagnostics if d.code != _UNUSED or d in unused]
        result = replace(result, diagnostics=tuple(found))
        changed = [k for k in result.kernels if k.rewritten]
        if result.error is not None or result.new_text is None or not changed:
            return result
        shown = f"{path} (migrated)"
        after = Source(result.new_text, path, shown)
        if book is not None:
            after = source_of(book.with_code(result.new_text, path), path, shown)
        outcome = verify(Source(text, path, path, book), after, settings, runner, [k.name for k in changed])
        failing = _failing(outcome, changed)
        if learned is not None:
            learned(_with_verdicts(result, outcome, changed), failing)
        if not failing:
            return _with_verdicts(result, outcome, changed)
        leave |= failing


def _failing(outcome: VerifyResult, changed: list[KernelResult]) -> dict[int, list[Diagnostic]]:
    """The kernels to take back, by line, with the reasons."""
    lines = {kernel.line: kernel for kernel in changed}
    failing: dict[int, list[Diagnostic]] = {}
    for verdict in outcome.kernels:
        if verdict.status == "failed" and verdict.line in lines and _is_of(verdict.name, lines[verdict.line].name):
            own = [d for d in outcome.diagnostics if d.kernel == verdict.name and d.severity == "error"]
            own = own or [finding(UNVERIFIED, verdict.line, verdict.reason)]
            own = _with_the_old(own, [d for d in outcome.diagnostics if d.kernel == verdict.name and _of_old(d)])
            name = lines[verdict.line].name
            failing[verdict.line] = [replace(d, severity="error", kernel=name) for d in own]
    codes = {check.role: check.exit_code for check in outcome.scripts}
    if not failing and codes.get("old") == 0 and codes.get("new", 0) != 0:
        # Kernel by kernel all is well, so it is the calls: nothing tells which kernel's are wrong.
        own = [d for d in outcome.diagnostics if d.code == OWN_CHECK]
        text = own[0].message if own else "the new script did not finish"
        failing = {line: [finding(OWN_CHECK, line, text, kernel.name)] for line, kernel in lines.items()}
    return failing


def _is_of(verdict: str, kernel: str) -> bool:
    """Whether a verdict is on a kernel: one of another file may stand in the same line of that."""
    return verdict.partition(".")[0] == kernel.partition(".")[0]


def _with_the_old(own: list[Diagnostic], old: list[Diagnostic]) -> list[Diagnostic]:
    """The faults of a new kernel, in which those that the old one has, too, are told of the old one, on its lines."""
    inherited = {_kind(item) for item in own} & {_kind(item) for item in old}
    told = [replace(item, help=_HELP_OLD) for item in old if _kind(item) in inherited]
    return [*told, *(item for item in own if _kind(item) not in inherited)]


def _of_old(item: Diagnostic) -> bool:
    return item.code == FAULTY and item.message.startswith(OF_OLD)


def _kind(item: Diagnostic) -> str:
    """What kind of fault it is, without where it is and whose: ``Potential WAW hazard at GM``."""
    said = item.message.removeprefix(OF_OLD).removeprefix(OF_NEW)
    return f"{item.code} {said.partition(': ')[0]}"


def _with_verdicts(result: FileResult, outcome: VerifyResult, changed: list[KernelResult]) -> FileResult:
    own = {(k.line, k.name.partition(".")[0]) for k in result.kernels}
    verdicts = {v.line: v for v in outcome.kernels if (v.line, v.name.partition(".")[0]) in own}
    kernels: list[KernelResult] = []
    found: list[Diagnostic] = []
    for kernel in result.kernels:
        verdict = verdicts.get(kernel.line)
        if kernel not in changed:  # its text was compared with itself, which proves nothing about a migration
            kernels.append(kernel)
            continue
        kernels.append(replace(kernel, verified=verdict.verified if verdict is not None else None))
        if kernels[-1].verified is None:
            why = verdict.reason if verdict is not None else "it was not compared"
            item = finding(UNVERIFIED, kernel.line, f"not verified: {why}", kernel.name)
            found.append(replace(item, help=_HELP))
    known, written = {d.kernel for d in found}, {kernel.name for kernel in changed}
    said = {item.message for item in result.diagnostics}
    names = {v.name: k.name for k in result.kernels for v in verdicts.values() if v.line == k.line}
    found += [
        replace(d, severity="warning", kernel=names.get(d.kernel or "", d.kernel))
        for d in outcome.diagnostics
        if d.code != UNVERIFIED and d.message not in said and names.get(d.kernel or "") not in known
        if not (d.message.startswith(OF_NEW) and names.get(d.kernel or "") not in written)  # the old kernel's text
    ]
    diagnostics = sorted((*result.diagnostics, *found), key=lambda d: (d.line, d.code))
    return replace(result, kernels=tuple(kernels), diagnostics=tuple(diagnostics))
