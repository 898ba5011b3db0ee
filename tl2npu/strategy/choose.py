"""Which form a kernel takes: the first that the checks have nothing against, of those that suit its kind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from tl2npu.checks import blocks
from tl2npu.checks.memory_plan import fitting
from tl2npu.checks.run import check_as_it_stands
from tl2npu.checks.subject import Finding
from tl2npu.codes import ROW_SPLIT
from tl2npu.kernel.model import Inlined
from tl2npu.passes.gpu.launch import grid
from tl2npu.passes.job import Job
from tl2npu.passes.pipelines.traits import Traits
from tl2npu.passes.plain import compared_types
from tl2npu.results import Diagnostic, Disposition
from tl2npu.strategy import memory, products, rows
from tl2npu.strategy.attempt import Attempt, Case, built, judged, rebuilt, repair, subject_of
from tl2npu.suppress import Suppressions

_OF_MACROS = frozenset({"TL310", "TL436", "TL903", "TL914"})
"""Something stands in a macro: with the macro written out another reason is the true one."""

_DEVELOPER = "already in Developer mode"

TWO, ONE = "developer", "developer-threads1"
_OPERATOR, _ONE_CORE = "TL832", "use `threads=1`"
_OWN = "own-blocks"
"""`ONE` with a block for each vector core of the old kernel."""


def best_first(start: Job, kind: Traits, suppressions: Suppressions) -> list[Attempt]:
    """The forms that were tried, up to the first one that can be proved; the last of them is to be taken."""
    if not kind.is_rewritten or start.options.target == "npuir":
        return _authors(Case(start, kind, suppressions))
    case = Case(start, kind, suppressions)
    made = built(case, case.form)
    tried = memory.best(case, _rewritten, made)
    if not tried[0].job.has_looped or (tried[-1].reached and len(tried) == 1):
        return tried
    job = made.job if "loops" in made.job.forks else tried[0].job
    way = job.back("loops", replace(job.ways, loops=False))
    by_block = memory.best(case, _rewritten, rebuilt(case, way))
    why, blocked = tried[0].blocked, by_block[-1].blocked
    if blocked is not None and not tried[-1].reached and by_block[-1].by is blocks.check and why is not None:
        text = f"{blocked.message}, and in a loop over tasks {why.code} {why.message}"
        return [*tried[:-1], replace(by_block[-1], blocked=replace(blocked, message=text))]
    if blocked is not None or (tried[-1].reached and len(by_block) == len(tried)):
        return tried
    if why is not None:
        text = f"kept a block for each task: in a loop over tasks {why.code} {why.message}"
        by_block[-1].job.note("TL620", start.located.node, text)
    return by_block


def in_developer_mode(start: Job, suppressions: Suppressions) -> tuple[Job, tuple[Disposition, str, str]]:
    """What becomes of a kernel that is written so already: disposition, target, reason.

    Its comparisons get the form that the compiler takes; with ``--unsafe`` its calls get tiles that fit.
    What `check` calls an error of it is told, as of one that was migrated: a second run is no better than the first.
    """
    job = start.again()
    compared_types.convert(job)
    reasons = ["comparisons that the compiler takes"] if job.module is not start.module else []
    found = fitting.check(subject_of(job)) if start.options.unsafe else ()
    repairs = [one for item in found if not suppressions.covers(job.line(item.node), item.code) for one in item.repair]
    if repairs:
        repair(job, repairs)
        reasons.append("with tiles that fit")
    job = job if reasons else start
    for item in check_as_it_stands(subject_of(job)):
        told = job.finding(item.code, item.node, item.message, item.severity)
        if told.severity == "error" and not suppressions.covers(told.line, told.code):
            job.notes.append(replace(told, help=item.advice(told.help)))
    return job, ("migrated", TWO, ", ".join(reasons)) if reasons else ("unchanged", "none", _DEVELOPER)


def _authors(case: Case) -> list[Attempt]:
    """A kernel that keeps its author's statements: each form is written anew."""
    tried: list[Attempt] = []
    for form in _forms(case):
        found = _judged_if_built(case, built(case, form))
        found = replace(found, target=ONE) if form == _OWN else found
        if not case.kind.is_rewritten or case.kind.style == "npuir":
            found = _with_macros_in_place(case, found)
        tried.append(found)
        if found.reached:
            break
    return tried


def _forms(case: Case) -> list[str]:
    kind, options = case.kind, case.start.options
    if options.target == "npuir":
        return ["npuir"]
    if kind.vector and options.threads == "1":
        return [ONE, "fallback"] if kind.cube else [ONE, _OWN, "fallback"]
    if options.threads == "auto" and kind.vector and not (kind.cube or kind.uses_vid):
        return [TWO, _OWN, "fallback"]
    if kind.alone and options.threads == "auto":
        return [TWO, ONE, "fallback"]
    return [TWO, "fallback"]


def _judged_if_built(case: Case, made: Attempt) -> Attempt:
    return judged(case, made.target, made.job) if made.built else made


def _with_macros_in_place(case: Case, tried: Attempt) -> Attempt:
    """The attempt, or one with the macros written out, if the kernel has macros and they are in the way."""
    if tried.reached or not any(isinstance(stmt, Inlined) for stmt in case.start.kernel.walk()):
        return tried
    again = _judged_if_built(case, built(case, tried.target, in_place=True))
    return again if again.reached or (tried.blocked and tried.blocked.code in _OF_MACROS) else tried


def _rewritten(case: Case, made: Attempt) -> list[Attempt]:
    """A kernel that is written anew, judged: for both vector cores where they can share its rows, else for one."""
    threads = case.start.options.threads
    if not made.built:
        return [made] if threads != "auto" else [made, replace(made, target=ONE)]
    if case.form == ONE:
        return [_finished(case, ONE, made.job)]
    beyond = products.hands_over_too_often(made.job)  # whatever becomes of its rows
    job, left = (made.job, []) if beyond else rows.shared(case, made.job)
    two = _blocked(made.job, left) if left else _finished(case, TWO, job)
    if not two.reached and job is not made.job:  # nothing that was said for the rows is of use
        two = two if rows.obstacles(case, made.job) else _finished(case, TWO, made.job)
    if two.reached or threads == "2":
        return [two]
    assert two.blocked is not None
    return [two, _finished(case, ONE, grid.one_thread(made.job, two.blocked.code))]


def _blocked(job: Job, obstacles: Sequence[Finding]) -> Attempt:
    first = obstacles[0]
    found = job.finding(first.code, first.node, first.message, first.severity)
    help = first.help or found.help
    if first.code == _OPERATOR and first.node not in job.original:
        found = replace(found, message=found.message.replace(" processes", ", which tl2npu writes here, processes"))
        help = _ONE_CORE
    elif job.added_tiles(help):
        help = _ONE_CORE
    return Attempt(TWO, job, replace(found, help=help), first.by)


def _finished(case: Case, form: str, job: Job) -> Attempt:
    """The form with what makes it faster or safer, as much of it as the checks take."""
    made = products.landed(job)
    found = judged(case, form, made)
    return found if found.reached or made is job else judged(case, form, job)


def one_core(found: Diagnostic) -> str:
    """What was written instead of a tile for both vector cores, and what would let them share it."""
    ways = [part for part in re.split(", or |; ", found.help) if "`threads=1`" not in part]
    of_rows = found.code in ROW_SPLIT or "`threads=1`" in found.help
    both = f"; for both, in the old kernel {ways[0]}" if of_rows and ways else ""
    return f"wrote `threads=1`: one vector core does the work{both}"


def offer_one_thread(start: Job, kind: Traits, suppressions: Suppressions, job: Job, reached: Attempt) -> None:
    """Where only the row split fails, or vid picks a task, one vector core for each block is right: say so."""
    if reached.target == "npuir":
        return
    split_failed = any(note.code in ROW_SPLIT for note in job.notes if note.severity == "warning")
    form = ONE if kind.cube and split_failed else _OWN if kind.vector and not kind.cube and kind.uses_vid else None
    if reached.target != "fallback" or start.options.threads != "auto" or form is None:
        return
    case = Case(start, kind, suppressions)
    made = built(case, form)
    if made.built and judged(case, form, made.job, orders=False).reached:
        text = "`--threads 1` migrates the whole kernel, with one vector core per block"
        job.note("TL234", start.located.node, text, "info")
