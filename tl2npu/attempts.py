"""The forms that a kernel may take: built, checked, and tried one after the other."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import libcst as cst

from tl2npu.checks.memory_plan import fitting
from tl2npu.checks.npuir.edges import overruns
from tl2npu.checks.row_split.evenness import rows_not_even, unproved_evenness
from tl2npu.checks.run import check_kernel
from tl2npu.checks.subject import Finding, Subject
from tl2npu.codes import ROW_SPLIT
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Inlined
from tl2npu.kernel.tensors import stored_tensors
from tl2npu.options import Options
from tl2npu.passes.ascend import allocations_apart
from tl2npu.passes.gpu import both_cores, gathered_rows, unit_axes
from tl2npu.passes.gpu.launch import even_rows, grid
from tl2npu.passes.gpu.memory import renamed
from tl2npu.passes.job import Job
from tl2npu.passes.npuir.edges import Cut, end_with_tensors
from tl2npu.passes.pipelines.forms import write
from tl2npu.passes.pipelines.traits import Traits
from tl2npu.passes.plain.macros import inline as macros
from tl2npu.results import Diagnostic, Disposition, Severity
from tl2npu.source.edits import Edits
from tl2npu.suppress import Suppressions

_AUTHORS_OWN = frozenset("TL700 TL739 TL743 TL750 TL761 TL890 TL891 TL892 TL893 TL894 TL896 TL898 TL899".split())
"""Limits that hold for Expert mode too: on a statement that the migration did not touch they are no news of its own."""

_OF_STAGES = frozenset("TL721 TL801 TL846 TL848 TL867 TL868 TL869 TL874 TL875 TL876 TL877 TL878 TL879".split())
"""What a loop over both cores may lack that has stages, and not one in which they take turns."""

_OF_MACROS = frozenset({"TL310", "TL436", "TL903", "TL914"})
"""Something stands in a macro: with the macro written out another reason is the true one."""


@dataclass(frozen=True)
class Attempt:
    """One form, tried: the file with it, or why it cannot be (``built`` False: it has no text at all).

    ``subject``: what was checked.
    """

    target: str
    job: Job
    blocked: Diagnostic | None = None
    built: bool = True
    subject: Subject | None = None

    @property
    def reached(self) -> bool:
        """True if the form was built and passed its checks."""
        return self.blocked is None


def best_first(start: Job, kind: Traits, suppressions: Suppressions) -> list[Attempt]:
    """The forms that were tried, up to the first one that can be proved; the last of them is to be taken."""
    tried = _with_memory(start, kind, suppressions)
    if not start.options.fixed_core or not kind.is_rewritten or (tried[-1].reached and len(tried) == 1):
        return tried
    by_block = _with_memory(replace(start, options=replace(start.options, fixed_core=False)), kind, suppressions)
    if not by_block[-1].reached or (tried[-1].reached and len(by_block) == len(tried)):
        return tried
    if (why := tried[0].blocked) is not None:
        text = f"kept a block for each task: in a loop over tasks {why.code} {why.message}"
        by_block[-1].job.note("TL620", start.located.node, text)
    return by_block


def _with_memory(start: Job, kind: Traits, suppressions: Suppressions) -> list[Attempt]:
    """The same, with tiles that save time (products of zeros: TL623, TL624; columns: TL169), if there is room."""
    found = _with_little(start, kind, suppressions)
    fine = len(found) == 1 and found[-1].reached and not _misfits(found[-1]) and not _behind(found[-1])
    if fine or not found[0].job.has_spent:
        return found
    without = _with_little(replace(start, spends=False), kind, suppressions)
    return min(*((found, without) if found[-1].reached else (without, found)), key=_rank)


def _rank(tried: list[Attempt]) -> tuple[bool, int, int, tuple[int, float]]:
    """Forms that are proved come first, then those of the first tries, those that stay in tensors, those that fit."""
    return not tried[-1].reached, len(tried), _behind(tried[-1]), _shortage(tried[-1])


def _behind(tried: Attempt) -> int:
    """How many copies may start behind their tensor: those from L0C store there, those from UB do nothing."""
    return sum(note.code == "TL885" for note in tried.job.notes)


def _with_little(start: Job, kind: Traits, suppressions: Suppressions) -> list[Attempt]:
    """The same, on the way with plenty of memory or with little, in stages or with cores that take turns."""
    first = _attempts(start, kind, suppressions)
    if (fork := first[0].job.fork) is None:
        return first

    def or_tight(plenty: list[Attempt], in_turns: bool) -> list[Attempt]:
        if start.options.target == "ascendc" and _misfits(plenty[-1]):
            tight = _attempts(start, kind, suppressions, partial(fork.again, tight=True, in_turns=in_turns))
            if tight[-1].reached and _shortage(tight[-1]) < _shortage(plenty[-1]):
                return tight
        return plenty

    found = or_tight(first, False)
    of_stages = any(tried.blocked is not None and tried.blocked.code in _OF_STAGES for tried in found)
    if not first[0].job.staged or not (of_stages or _has_note(found[-1], "TL801")):
        return found
    in_turns = _attempts(start, kind, suppressions, partial(fork.again, in_turns=True))
    if of_stages or _shortage(in_turns[-1]) < _shortage(first[-1]):
        in_turns = or_tight(in_turns, True)
    return min(found, in_turns, key=_rank)


def _attempts(
    start: Job, kind: Traits, suppressions: Suppressions, fork: Callable[[], Job] | None = None
) -> list[Attempt]:
    """The forms, best first, up to the first one that can be proved; ``fork``: made on another way from a fork on."""
    attempts: list[Attempt] = []
    for form in _forms(kind, start.options):
        before = attempts[-1] if attempts and kind.is_rewritten else None
        attempts.append(_attempt(start, kind, form, suppressions, before, fork))
        if not kind.is_rewritten or (kind.style, form) == ("npuir", "npuir"):
            attempts[-1] = _with_macros_in_place(start, kind, suppressions, attempts[-1])
        if kind.is_rewritten and form == "developer":
            attempts[-1] = _mended(start, kind, suppressions, attempts[-1])
        if attempts[-1].reached:
            attempts[-1] = _landed(start, kind, suppressions, attempts[-1]) if kind.is_rewritten else attempts[-1]
            break
    return attempts


def _misfits(tried: Attempt) -> bool:
    """Whether a call of the factory, or usual sizes where no call gives them, ask for tiles that do not fit."""
    if tried.blocked is not None:
        return tried.blocked.code == "TL801"
    return _has_note(tried, "TL720", "TL801")


def _has_note(tried: Attempt, *codes: str) -> bool:
    return any(note.code in codes for note in tried.job.notes)


def _shortage(tried: Attempt) -> tuple[int, float]:
    """How many calls ask for too much, and how often their tiles are to be halved; all of them, if no size fits."""
    if tried.blocked is not None:
        return (sys.maxsize, 0) if tried.blocked.code == "TL801" else (0, 0)
    return fitting.shortage(tried.subject) if tried.subject is not None else (0, 0)


def _forms(kind: Traits, options: Options) -> list[str]:
    if options.target == "npuir":
        return ["npuir"]
    if kind.is_rewritten:
        both = {"1": ["developer-threads1"], "2": ["developer"]}
        return both.get(options.threads, ["developer", "developer-threads1"])
    if kind.vector and options.threads == "1":
        return ["developer-threads1", "fallback"]
    if kind.alone and options.threads == "auto":
        return ["developer", "developer-threads1", "fallback"]
    return ["developer", "fallback"]


def _attempt(
    start: Job,
    kind: Traits,
    form: str,
    suppressions: Suppressions,
    before: Attempt | None = None,
    fork: Callable[[], Job] | None = None,
    *,
    in_place: bool = False,
    mend: Callable[[Job], bool] | None = None,
) -> Attempt:
    """Build a form and check it. The original job stays as it is.

    ``before``: the attempt with ``threads=2`` at a GPU kernel; with one thread its text differs in the launch only.
    ``mend``: what is done to that attempt instead, for ``threads=2``. ``fork``: makes the form on
    another way. ``in_place``: macros are written out first; those of GPU kernels always are.
    """
    job = Job(
        start.original,
        start.file,
        start.key,
        start.options,
        start.elsewhere,
        origin=start.origin,
        users=start.users,
        edited=list(start.edited),
        notes=list(start.notes),
        made=dict(start.made),
        spends=start.spends,
        _kernel=start.kernel,
    )
    try:
        if in_place:
            macros.inline(job)
        if before is None and fork is None and form != "fallback":
            allocations_apart.take_apart(job)
        if before is not None and before.built and mend is not None:
            job = replace(before.job, edited=list(before.job.edited), notes=before.job.notes[: before.job.told])
            if not mend(job):
                return before
        elif before is not None and before.built:
            job = grid.one_thread(before.job)
        elif before is not None:
            return replace(before, target=form)
        elif fork is not None:
            job = fork()
        else:
            if form.startswith("developer") and not kind.is_rewritten:
                _need_something_to_split(start, kind)
            write(job, kind, form)
        if form == "npuir":
            _end_with_tensors(job, kind)
        _need_all_stores(start, job, kind)
    except Blocked as blocked:
        return Attempt(form, job, job.finding(blocked.code, blocked.node, blocked.message), built=False)
    job.told = len(job.notes)
    subject = _subject(job)
    repairs: list[tuple[cst.CSTNode, str | None]] = []
    for finding in (
        *check_kernel(subject),
        *unproved_evenness(subject, job.split, job.known_even, job.must_be_even, job.overlapping),
    ):
        found = job.finding(finding.code, finding.node, finding.message, finding.severity)
        if suppressions.covers(found.line, found.code):
            continue
        found, stays = _weighed(start, kind, job, finding, found)
        if found.severity == "error":
            return Attempt(form, job, found, subject=subject)
        if found.severity == "warning" and finding.repair and start.options.unsafe:
            repairs += finding.repair
        elif found.severity == "warning":
            job.notes.append(replace(found, severity=stays, help=found.help + finding.offer))
    if repairs:
        _repair(job, repairs)
        subject = _subject(job)
    return Attempt(form, job, subject=subject)


def _weighed(start: Job, kind: Traits, job: Job, finding: Finding, found: Diagnostic) -> tuple[Diagnostic, Severity]:
    """A finding in what was built, an error if that is not to be taken; and what it is where it is taken all the same.

    That is what `check` calls it: there is one verdict on a text.
    """
    stays: Severity = finding.as_it_stands or "warning"
    if not kind.is_rewritten and finding.code in _AUTHORS_OWN and finding.node in start.original:
        stays = found.severity
        found = replace(found, severity="warning", message=found.message + " (as in the old kernel)")
    if not kind.is_rewritten and finding.code == "TL801":
        found = replace(found, severity="error")  # another form may need less
    if job.module is start.module and "error" in (found.severity, stays):
        return replace(found, severity="warning"), "warning"  # the author's own form: nothing is written
    return found, stays


def _subject(job: Job) -> Subject:
    return Subject(job.kernel, job.file, job.located, job.options)


def _need_something_to_split(start: Job, kind: Traits) -> None:
    if kind.vector and not kind.cube and not kind.uses_vid:
        text = "both vector cores do the same work, and nothing in the kernel splits it"
        raise Blocked("TL222", start.located.node, text)


def _need_all_stores(start: Job, job: Job, kind: Traits) -> None:
    """Whatever a rewrite takes away, it is no tensor that the author's kernel stores."""
    if kind.is_rewritten and (lost := stored_tensors(start.kernel) - stored_tensors(job.kernel)):
        raise Blocked("TL902", job.located.node, f"the new kernel would not store `{min(lost)}`, as the old one does")


def _end_with_tensors(job: Job, kind: Traits) -> None:
    """Copies of a kernel that is new to AscendNPU IR end with their tensors, where the calls of the file need it."""
    if kind.style == "npuir":
        return
    found = list(overruns(_subject(job)))
    told: set[str] = set()
    for one in found:
        if one.known:
            text = f"ended the copy at the end of its tensor{one.shown}"
            job.note("TL438", one.copy.node, text, "info", done=True)
        elif one.sizes - told:
            sizes = " or ".join(f"`{size}`" for size in sorted(one.sizes - told))
            text = f"AscendNPU IR does not clamp this copy at its tensor's end if {sizes} is not a multiple of the tile"
            job.note("TL439", one.copy.node, text, "warning")
            told |= one.sizes
    end_with_tensors(job, [Cut(one.copy, one.axes, one.outside) for one in found if one.known])


def _with_macros_in_place(start: Job, kind: Traits, suppressions: Suppressions, tried: Attempt) -> Attempt:
    """The attempt, or one with the macros written out, if the kernel has macros and they are in the way."""
    if tried.reached or not any(isinstance(stmt, Inlined) for stmt in start.kernel.walk()):
        return tried
    again = _attempt(start, kind, tried.target, suppressions, in_place=True)
    return again if again.reached or (tried.blocked and tried.blocked.code in _OF_MACROS) else tried


def _even_rows_only(job: Job) -> bool:
    return even_rows.ask(job, rows_not_even(_subject(job)))


@dataclass(frozen=True)
class _Mend:
    """What may give a kernel that the row split stops its ``threads=2``.

    ``asked_by``: the finding that asks for it, empty for every one. ``leads_to``: the finding that a later mend goes
    on from, empty for every one; None where it has to be the last.
    """

    edit: Callable[[Job], bool]
    asked_by: str = ""
    leads_to: str | None = None


_AXES = _Mend(unit_axes.insert, "TL824", "TL820")
_ROWS = _Mend(_even_rows_only, "TL820")
_MENDS = (
    _AXES,
    _ROWS,
    _Mend(gathered_rows.one_by_one, leads_to=""),
    _Mend(both_cores.share, leads_to=""),
    _AXES,
    _ROWS,
)


def _mended(start: Job, kind: Traits, suppressions: Suppressions, tried: Attempt) -> Attempt:
    """The attempt, or one that says what ``threads=2`` lacks: which rows, which vectors, the axes of the tensors."""
    best = tried
    for mend in _MENDS:
        if best.blocked is None or not best.built or best.blocked.code not in ROW_SPLIT:
            break
        if mend.asked_by in ("", best.blocked.code):
            found = _attempt(start, kind, best.target, suppressions, best, mend=mend.edit)
            if found.blocked is None or mend.leads_to in ("", found.blocked.code):
                best = found
    return best if best.reached else tried


def _landed(start: Job, kind: Traits, suppressions: Suppressions, tried: Attempt) -> Attempt:
    """The attempt, with products copied straight to the tiles that are used: all of them, else each that can be."""
    if tried.target == "npuir":
        return tried
    best, every = tried, renamed.landings(tried.job)
    for names in (every, *([name] for name in sorted(every) if len(every) > 1)):
        edit = partial(renamed.land, names=frozenset(names))
        found = _attempt(start, kind, best.target, suppressions, best, mend=edit) if names else best
        if found.reached and _warnings(found) <= _warnings(best):
            best = found
            if names is every:
                break
    return best


def _warnings(tried: Attempt) -> int:
    return sum(note.severity != "info" for note in tried.job.notes)


def in_developer_mode(start: Job, suppressions: Suppressions) -> tuple[Job, tuple[Disposition, str, str]]:
    """What becomes of a kernel that is written so already: disposition, target, reason.

    With ``--unsafe`` its calls get tiles that fit, else nothing changes.
    """
    job = replace(start, edited=list(start.edited), notes=list(start.notes))
    found = fitting.check(_subject(job)) if start.options.unsafe else ()
    repairs = [one for item in found if not suppressions.covers(job.line(item.node), item.code) for one in item.repair]
    if not repairs:
        return start, ("unchanged", "none", "already in Developer mode")
    _repair(job, repairs)
    return job, ("migrated", "developer", "with tiles that fit")


def _repair(job: Job, repairs: list[tuple[cst.CSTNode, str | None]]) -> None:
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


def offer_one_thread(start: Job, kind: Traits, suppressions: Suppressions, job: Job, reached: Attempt) -> None:
    """Where only the row split fails, threads=1 is right and slower: say so."""
    if reached.target == "npuir":
        return
    split_failed = any(note.code in ROW_SPLIT for note in job.notes if note.severity == "warning")
    if reached.target != "fallback" or start.options.threads != "auto" or not (kind.cube and split_failed):
        return
    if _attempt(start, kind, "developer-threads1", suppressions).reached:
        job.note(
            "TL234",
            start.located.node,
            "`--threads 1` migrates the whole kernel, with one vector core per block",
            "info",
        )
