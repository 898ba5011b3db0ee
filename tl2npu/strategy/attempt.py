"""One form of a kernel, built and judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import libcst as cst

from tl2npu.checks.cross_core.unordered import missed
from tl2npu.checks.elements_behind import elements_behind
from tl2npu.checks.memory_plan import fitting
from tl2npu.checks.npuir.edges import overruns
from tl2npu.checks.operators import starts
from tl2npu.checks.operators.starts import planes
from tl2npu.checks.row_split.evenness import unproved_evenness
from tl2npu.checks.run import check_kernel, check_quickly
from tl2npu.checks.subject import Check, Finding, Subject
from tl2npu.dialects.catalogue import Kind
from tl2npu.dialects.limits import AUTHORS_OWN
from tl2npu.evaluate import sizes
from tl2npu.kernel.access import reads, writes
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Buffer, Memory, Op, Stmt
from tl2npu.kernel.tensors import stored_tensors
from tl2npu.passes.ascend import allocations, barriers, guards
from tl2npu.passes.gpu.memory import guarded_planes
from tl2npu.passes.job import Fork, Job
from tl2npu.passes.npuir.edges import Cut, end_with_tensors
from tl2npu.passes.pipelines.forms import write
from tl2npu.passes.pipelines.traits import Traits
from tl2npu.passes.plain import element_tails
from tl2npu.passes.plain.macros import inline as macros
from tl2npu.results import Diagnostic, Severity
from tl2npu.source.edits import Edits
from tl2npu.suppress import Suppressions


@dataclass(frozen=True)
class Case:
    """A kernel as it was read, what kind it is, and what its author silences."""

    start: Job
    kind: Traits
    suppressions: Suppressions

    @property
    def form(self) -> str:
        """The form that is written first: for both vector cores, unless one is asked for."""
        return "developer-threads1" if self.start.options.threads == "1" else "developer"


@dataclass(frozen=True)
class Attempt:
    """One form, tried: the file with it, or why it cannot be (``built`` False: it has no text at all).

    ``by``: the check that objects; ``more``: what else does. ``warnings``: how many findings of each check are left
    that are no errors.
    ``subject``: what was checked.
    """

    target: str
    job: Job
    blocked: Diagnostic | None = None
    by: Check | None = None
    built: bool = True
    subject: Subject | None = None
    warnings: Counter[Check] = field(default_factory=Counter)
    more: tuple[Diagnostic, ...] = ()

    @property
    def reached(self) -> bool:
        """True if the form was built and passed its checks."""
        return self.blocked is None

    @property
    def misfits(self) -> bool:
        """Whether a call of the factory, or usual sizes where no call gives them, ask for tiles that do not fit."""
        return self.by is fitting.check or self.warnings[fitting.check] + self.warnings[fitting.check_open_sizes] > 0

    @property
    def starts_behind(self) -> int:
        """How many copies may start behind their tensor: those from L0C store there, those from UB do nothing."""
        return self.warnings[starts.check]


def subject_of(job: Job) -> Subject:
    """The kernel as it stands now, for checks, with what they have worked out of it."""
    return job.fact(_subject)


def _subject(job: Job) -> Subject:
    return Subject(job.kernel, job.file, job.located, job.options)


def built(case: Case, form: str, *, in_place: bool = False) -> Attempt:
    """A form with its text, not judged yet.

    ``in_place``: macros are written out first; those of GPU kernels always are.
    """
    start, kind = case.start, case.kind
    job = start.again()
    try:
        if in_place:
            macros.inline(job)
        if form != "fallback":
            allocations.take_apart(job)
        if not kind.is_rewritten:
            _need_right_cores(start, kind, form)
        write(job, kind, form)
        return _written(case, form, job)
    except Blocked as blocked:
        return _without_text(form, job, blocked)


def rebuilt(case: Case, way: Fork) -> Attempt:
    """The form that is written first, with another way from a fork on."""
    try:
        way.rest(way.job)
        return _written(case, case.form, way.job)
    except Blocked as blocked:
        return _without_text(case.form, way.job, blocked)


def _written(case: Case, form: str, job: Job) -> Attempt:
    """A form that has its text: copies end with their tensors, and all notes so far are those of passes.

    Raises :class:`Blocked` where they cannot.
    """
    _end_with_tensors(job, case.kind, form)
    job.told = len(job.notes)
    return Attempt(form, job)


def _without_text(form: str, job: Job, blocked: Blocked) -> Attempt:
    """A form that a pass could not write."""
    return Attempt(form, job, job.finding(blocked.code, blocked.node, blocked.message), built=False)


def judged(case: Case, form: str, job: Job, *, orders: bool = True) -> Attempt:
    """A form that has its text, with what the checks say of it.

    The order of accesses is looked at last, as that takes longest, and barriers may be missing. Without ``orders`` it
    is not: whether the form can be taken does not depend on it.
    """
    try:
        _need_all_stores(case.start, job, case.kind)
        job.told = len(job.notes)
        errors, others = _found(case, job, check_quickly(subject_of(job)))
        if orders and not errors and job.module is not case.start.module and form != "npuir":
            barriers.order(job, missed(subject_of(job)))
    except Blocked as blocked:
        return _without_text(form, job, blocked)
    job.told = len(job.notes)
    subject = subject_of(job)
    if orders and not errors:
        errors, others = _found(case, job, check_kernel(subject))
    if errors:
        (first, by), *more = errors
        return Attempt(form, job, first, by, subject=subject, more=tuple(found for found, _ in more))
    repairs: list[tuple[cst.CSTNode, str | None]] = []
    warnings: Counter[Check] = Counter()
    for finding, told in others:
        if finding.repair and case.start.options.unsafe:
            repairs += finding.repair
        else:
            job.notes.append(told)
            if finding.by is not None and told.severity != "info":
                warnings[finding.by] += 1
    if repairs:
        repair(job, repairs)
        subject = subject_of(job)
    return Attempt(form, job, subject=subject, warnings=warnings)


def _found(
    case: Case, job: Job, findings: Iterable[Finding]
) -> tuple[list[tuple[Diagnostic, Check | None]], list[tuple[Finding, Diagnostic]]]:
    """The errors of a form, each with its check, and its warnings, each with what is told of it."""
    errors: list[tuple[Diagnostic, Check | None]] = []
    warnings: list[tuple[Finding, Diagnostic]] = []
    for finding in (*findings, *evenness(job, subject_of(job))):
        found = job.finding(finding.code, finding.node, finding.message, finding.severity)
        if case.suppressions.covers(found.line, found.code):
            continue
        found, stays = _weighed(case, job, finding, found)
        if found.severity == "error":
            errors.append((replace(found, help=finding.help or found.help), finding.by))
        elif found.severity == "warning":
            warnings.append((finding, replace(found, severity=stays, help=finding.advice(found.help))))
        elif finding.code == "TL740":  # what the checks did not look at is said of new kernels, too
            warnings.append((finding, found))
    return errors, warnings


def _weighed(case: Case, job: Job, finding: Finding, found: Diagnostic) -> tuple[Diagnostic, Severity]:
    """A finding in what was built, an error if that is not to be taken; and what it is where it is taken all the same.

    That is what `check` calls it: there is one verdict on a text.
    """
    stays: Severity = finding.as_it_stands or "warning"
    if not case.kind.is_rewritten and finding.code in AUTHORS_OWN and finding.node in case.start.original:
        stays = found.severity
        found = replace(found, severity="warning", message=found.message + " (as in the old kernel)")
    if not case.kind.is_rewritten and finding.by is fitting.check:
        found = replace(found, severity="error")  # another form may need less
    if job.module is case.start.module and "error" in (found.severity, stays):
        return replace(found, severity="warning"), "warning"  # the author's own form: nothing is written
    return found, stays


def evenness(job: Job, subject: Subject) -> Iterable[Finding]:
    """What is wrong where halves of the old kernel have become whole tiles."""
    return unproved_evenness(subject, job.split, job.known_even, job.must_be_even, job.overlapping)


def _need_right_cores(start: Job, kind: Traits, form: str) -> None:
    """Raise :class:`Blocked` for a form in which other vector cores than before would do the work."""
    if kind.cube or not kind.vector:
        return
    if form == "developer" and not kind.uses_vid:
        text = "both vector cores do the same work, and nothing in the kernel splits it"
        raise Blocked("TL222", start.located.node, text)
    changes = form == "own-blocks" and (guards.runs_both_cores(start) or not kind.uses_vid)
    if changes and (found := _updated(start)) is not None:
        why = "target pto runs both vector cores even with `threads=1`" if kind.uses_vid else "both vector cores do it"
        raise Blocked("TL222", found[0].node, f"`{found[1].name}` is updated in place, and {why}")


def _updated(job: Job) -> tuple[Stmt, Buffer] | None:
    """A statement that may give a tensor something else if it runs twice, with that tensor."""
    read = {operand.buffer for stmt in job.kernel.walk() for operand in reads(stmt)}
    stored = ((stmt, one.buffer) for stmt in job.kernel.walk() for one in writes(stmt))
    return next(((s, t) for s, t in stored if t.memory is Memory.GM and (t in read or _adds(s))), None)


def _adds(stmt: Stmt) -> bool:
    return isinstance(stmt, Op) and stmt.op.kind is Kind.ATOMIC


def _need_all_stores(start: Job, job: Job, kind: Traits) -> None:
    """Whatever a rewrite takes away, it is no tensor that the author's kernel stores."""
    if kind.is_rewritten and (lost := stored_tensors(start.kernel) - stored_tensors(job.kernel)):
        raise Blocked("TL902", job.located.node, f"the new kernel would not store `{min(lost)}`, as the old one does")


def _end_with_tensors(job: Job, kind: Traits, form: str) -> None:
    """Copies of a kernel that is new to the target end with their tensors, where the compiler does not see to it.

    That of AscendNPU IR never does: they end where the calls of the file need it.
    """
    if form != "npuir" and kind.is_rewritten:
        guarded_planes.guard(job, planes(subject_of(job)))
        _guard_elements(job)
    if form != "npuir" or kind.style == "npuir":
        return
    found = list(overruns(subject_of(job)))
    for one in found:
        if one.known:
            text = f"ended the copy at the end of its tensor{one.shown}"
            job.note("TL438", one.copy.node, text, "info", done=True)
    for names in dict.fromkeys(one.sizes for one in found if one.sizes):
        first, *rest = (one.copy.node for one in found if one.sizes == names)
        sizes = " or ".join(f"`{size}`" for size in sorted(names))
        lines = sorted({job.line(node) for node in rest} - {job.line(first)})
        more = f" (also line {', '.join(map(str, lines))})" if lines else ""
        text = f"AscendNPU IR does not clamp this copy at its tensor's end if {sizes} is not a multiple of the tile"
        job.note("TL439", first, text + more, "warning")
    _guard_elements(job)
    end_with_tensors(job, [Cut(one.copy, one.axes, one.outside) for one in found if one.known])


def _guard_elements(job: Job) -> None:
    """Single elements behind their tensors, which sizes show: those that the check of every run takes."""
    found = elements_behind(subject_of(job), lambda: sizes.in_numbers(job.file, job.located, job.kernel))
    element_tails.guard(job, found)


def repair(job: Job, repairs: list[tuple[cst.CSTNode, str | None]]) -> None:
    """The unsafe edits: sizes of tiles, where the callers give them."""
    edits = Edits(job.file.index)
    for node, new in repairs:
        if new is None:
            edits.remove(node)
            job.change("TL197", node, f"`{code(node).strip(' ,')}` does not fit")
        else:
            edits.replace(node, cst.parse_expression(new))
            job.change("TL197", node, f"`{code(node)}` does not fit, `{new}` does")
    job.apply(edits)
