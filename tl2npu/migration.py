"""The main job for one file: read, find the kernels, bring each into the best form that can be proved, check, write."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType

import libcst as cst

from tl2npu import marked, speed
from tl2npu.across.grafts import Grafted, grafted
from tl2npu.across.restore import Kept, restored, with_dots
from tl2npu.across.users import Users
from tl2npu.checking import check_text as check_text
from tl2npu.checking import made_importable, unparsable, unused_comments
from tl2npu.checks.cross_core import both_store, flags
from tl2npu.checks.row_split import doubled
from tl2npu.checks.subject import Subject
from tl2npu.codes import CODES, finding
from tl2npu.imported import with_compiled
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.options import Options
from tl2npu.passes.eager.factories import Eager, Lazy, find_eager, to_lazy
from tl2npu.passes.focus import Surroundings
from tl2npu.passes.host import code as host
from tl2npu.passes.host.imported import handed_on
from tl2npu.passes.job import Job, diagnostic
from tl2npu.passes.launches.phases import crowded_kernels, take_apart
from tl2npu.passes.launches.separate import split_launches
from tl2npu.passes.no_launch import refuse_unlaunched
from tl2npu.passes.npuir import configs, mode
from tl2npu.passes.npuir.to_gpu_like import host as npuir_host
from tl2npu.passes.npuir.to_gpu_like import unsupported as from_npuir
from tl2npu.passes.pipelines.plain import in_common_words
from tl2npu.passes.pipelines.traits import Traits, left_alone, refuse_unreadable, traits
from tl2npu.passes.plain.hints import tensor_layouts
from tl2npu.passes.plain.unsupported import refuse as unsupported
from tl2npu.passes.unseen_kernels import undefined_names, unseen_kernels
from tl2npu.results import (
    NOT_SELECTED,
    Change,
    Diagnostic,
    Disposition,
    FileResult,
    Follower,
    KernelResult,
    Promise,
    Severity,
)
from tl2npu.source.index import Index
from tl2npu.source.layout import relayout
from tl2npu.source.text import SourceError
from tl2npu.source.tree import one_file
from tl2npu.strategy import choose, same_values
from tl2npu.strategy.attempt import Attempt
from tl2npu.strategy.same_values import Comparison
from tl2npu.suppress import Suppressions


def migrate_text(
    text: str,
    path: str,
    options: Options,
    leave: Mapping[int, Sequence[Diagnostic]] = MappingProxyType({}),
    together: bool = False,
    alone: Mapping[int, str] = MappingProxyType({}),
    sources: Mapping[str, Comparison] = MappingProxyType({}),
) -> FileResult:
    """Migrate every kernel of a file.

    ``leave``: line of a kernel's ``def`` -> why its text stays as it is. ``together``: other files may be changed as
    well, and whoever calls this sees to it that all promises are kept; ``alone``: line of a kernel's ``def`` -> why no
    other file follows it, without ``together`` all kernels. ``sources``: factory -> compares its kernel with the one
    that it was translated from.
    Never raises for bad input: a file that cannot be parsed comes back with ``error`` set and no new text.
    """
    if options.partial or options.notes:
        write = marked.partial if options.partial else marked.noted
        rest = replace(options, partial=False, notes=options.notes and options.partial)

        def work(given: str, left: marked.Leave, apart: Mapping[int, str]) -> FileResult:
            return migrate_text(given, path, rest, left, together, apart, sources)

        return write(text, rest, work, leave, alone)
    result = _whole(text, path, options, leave, alone, sources)
    if not together and result.promises:
        broken = {made.line: unkept(made, made.followers[0]) for made in result.promises}
        result = _whole(text, path, options, leave, {**broken, **alone}, sources)
    return with_compiled(result, options, edit=options.target == "ascendc")[0]


def unkept(promise: Promise, follower: Follower, why: str = "migrate both files in one run") -> str:
    """Why a kernel cannot lose what it promises: another file does not follow."""
    return f"{follower.place} calls `{promise.factory}` and must change too: {why}"


def not_followed(line: int, message: str) -> Diagnostic:
    """What the other file is told."""
    return replace(finding("TL915", line, message), severity="warning")


@one_file()
def _whole(
    text: str,
    path: str,
    options: Options,
    leave: Mapping[int, Sequence[Diagnostic]],
    alone: Mapping[int, str],
    sources: Mapping[str, Comparison],
) -> FileResult:
    try:
        native = Index.parse(text)
    except SourceError as error:
        return unparsable(text, path, error)
    file = _File(text, path, options, native, grafted(native, path, text), alone, sources)
    try:
        return _migrate(file, leave)
    except Kept:  # the kernels are read as if nothing were known of other files
        return _migrate(replace(file, across=Grafted(native, [], {}, file.across.symbols)), leave)


@dataclass(frozen=True)
class _File:
    """A file that was parsed, what is asked for, and what was noted on the way of one attempt at it.

    ``across``: what it takes from other files. ``alone``: line of a kernel -> why no other file can follow it.
    ``sources``: as for :func:`migrate_text`.
    """

    text: str
    path: str
    options: Options
    native: Index
    across: Grafted
    alone: Mapping[int, str]
    sources: Mapping[str, Comparison]

    @property
    def original(self) -> Index:
        """The file as it is read, with what it takes from others."""
        return self.across.index

    @cached_property
    def kernels(self) -> FileKernels:
        """What it is read as."""
        return FileKernels(self.original)

    @cached_property
    def suppressions(self) -> Suppressions:
        """What its comments silence, and which of them were of use."""
        return Suppressions.of(self.text)

    @cached_property
    def unseen(self) -> tuple[list[KernelResult], list[Diagnostic]]:
        """What looks like a kernel in it and is not read."""
        return unseen_kernels(self.kernels, self.suppressions.covers)

    @cached_property
    def users(self) -> Users:
        """Finds the other files that call its factories."""
        return Users(self.path, self.alone)


def _migrate(file: _File, leave: Mapping[int, Sequence[Diagnostic]]) -> FileResult:
    """Go over a file until no kernel has to stay for another one's sake, and write down what came of it."""
    original, suppressions, left_out = file.original, file.suppressions, _not_selected(file)
    leave = {**undefined_names(file.kernels, suppressions.covers), **leave, **dict.fromkeys(left_out, ())}
    eager: dict[int, tuple[KernelResult, list[Diagnostic]]] = {}
    crowded: dict[int, list[Diagnostic]] = {}
    lazy = _lazy(file, {*leave, *eager}, crowded)
    while True:
        done = _migrated(file, leave, lazy)
        if more := crowded_kernels(done.kernels, done.diagnostics, {*leave, *crowded}):
            crowded |= more
            cut, lazy = lazy.cut, _lazy(file, {*leave, *eager}, crowded)
            if lazy.cut != cut:
                continue  # once more, in several launches
        for place in crowded.keys() & done.whole.keys():
            done.whole[place] = crowded[place]
        refused = {line: found for line, found in done.refused_eager.items() if line not in eager}
        torn = {**_torn(original, done, leave), **_half_retargeted(file, done, leave), **done.whole}
        eager |= refused
        if not torn and refused.keys() <= {kept.line for kept, _ in lazy.left}:
            break
        leave = {**leave, **torn}  # and once more, with their text and their calls as they were
        lazy = _lazy(file, {*leave, *eager}, crowded)
    kernels = sorted((*done.kernels, *(k for k, _ in eager.values()), *file.unseen[0]), key=lambda kernel: kernel.line)
    diagnostics = [*done.diagnostics, *(note for _, notes in eager.values() for note in notes), *file.unseen[1]]
    new, module = file.text, done.module
    if module is not original.module:
        module, unused = restored(file.across, module, file.path)
        done.changes += [
            Change("TL117", original.first_line(node) or 1, f"removed the unused `{name}`") for node, name in unused
        ]
        module = tensor_layouts.without_unused(original, module)
        around = host.of_file(original, module, kernels)
        module = around.module
        done.changes += [Change("TL124", original.first_line(node) or 1, text) for node, text in around.changes]
        diagnostics += host.remaining(around, original, kernels)
        if any(kernel.rewritten for kernel in kernels):
            module, dropped = configs.of_file(module, kernels, file.users.may_take)
            done.changes += [Change("TL122", original.first_line(node) or 1, text) for node, text in dropped]
        module, line = mode.of_file(module, kernels)
        if line is not None:
            done.changes.append(Change("TL403", kernels[0].line, f"set `{mode.VARIABLE}` to Developer"))
        if file.options.target == "ascendc":
            module, gone = npuir_host.of_file(original.module, module, kernels)
            done.changes += [Change("TL451", original.first_line(node) or 1, text) for node, text in gone]
    module, mended, stops = made_importable(original, module, kernels, file.options.target, file.users.of)
    diagnostics += stops
    done.changes += [Change("TL124", original.first_line(node) or 1, text) for node, text in mended]
    if module is not original.module:
        plain = module.code
        python = ast.parse(plain)
        new = relayout(file.text, plain, file.path, (file.native.python, python))
        if new != plain:
            ast.parse(new)
    heard = [item for item in diagnostics if not suppressions.covers(item.line, item.code)]
    diagnostics = [d for d in (*heard, *unused_comments(suppressions)) if d.kernel not in left_out.values()]
    result = FileResult(
        file.path,
        file.text,
        new,
        None,
        tuple(replace(k, disposition="unchanged", codes=()) if k.line in left_out else k for k in kernels),
        tuple(sorted(diagnostics, key=lambda d: (d.line, d.code))),
        tuple(done.changes),
        (*file.across.files, *file.users.rests_on),
        file.across.places,
        promises=tuple(done.promises),
        handed=tuple(sorted(done.handed)) if file.options.target == "ascendc" else (),
    )
    return result if original is file.native else with_dots(result, file.across.texts)


def _torn(original: Index, done: _Done, leave: Mapping[int, Sequence[Diagnostic]]) -> dict[int, Sequence[Diagnostic]]:
    """Kernels that lost the layout of a tensor which another kernel keeps."""
    by_disposition: dict[bool, set[int]] = {True: set(), False: set()}
    for kernel in done.kernels:
        by_disposition[kernel.disposition == "migrated"].add(kernel.line)
    by_disposition[False] |= done.refused_eager.keys()
    found = tensor_layouts.torn(original, by_disposition[True], by_disposition[False])
    text = "not migrated: another kernel that uses the tensor layout `{}` was refused"
    return {line: [finding("TL116", line, text.format(name))] for line, name in found.items() if line not in leave}


def _half_retargeted(
    file: _File, done: _Done, leave: Mapping[int, Sequence[Diagnostic]]
) -> dict[int, Sequence[Diagnostic]]:
    """Kernels that go to or from AscendNPU IR, or to float16, while another one of their factory, compiled by the same
    call, stays."""
    kernels = {kernel.line: kernel for kernel in done.kernels}
    groups: dict[int, list[KernelResult]] = {}

    def as_a_group(kernel: KernelResult) -> bool:
        return kernel.rewritten and ("npuir" in (kernel.target, kernel.source) or "TL100" in kernel.codes)

    if any(as_a_group(kernel) for kernel in done.kernels):
        for item in file.kernels.located:
            kernel = kernels.get(file.original.position(item.node).line)
            if kernel is not None and item.factory is not None:
                groups.setdefault(id(item.factory.node), []).append(kernel)
    found: dict[int, Sequence[Diagnostic]] = {}
    for group in groups.values():
        staying = next((kernel for kernel in group if kernel.disposition == "refused"), None)
        for kernel in group:
            if staying is not None and as_a_group(kernel) and kernel.line not in leave:
                code = "TL191" if "TL100" in kernel.codes else "TL401"
                text = f"not migrated: `{staying.name}` of the same factory was refused"
                found[kernel.line] = [replace(finding(code, kernel.line, text), severity="error")]
    return found


@dataclass(eq=False)
class _Done:
    """One pass over a file.

    ``refused_eager``: line -> an eager kernel whose factory was refused, and why. ``whole``: line -> why a prim_func
    with several launches stays as it is.
    """

    module: cst.Module
    kernels: list[KernelResult] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    promises: list[Promise] = field(default_factory=list)
    handed: set[tuple[str, str]] = field(default_factory=set)
    refused_eager: dict[int, tuple[KernelResult, list[Diagnostic]]] = field(default_factory=dict)
    whole: dict[int, list[Diagnostic]] = field(default_factory=dict)


def _not_selected(file: _File) -> dict[int, str]:
    """The kernels that ``--kernel`` leaves out: line -> name."""
    if not file.options.kernels:
        return {}
    original = file.original
    found = {original.position(item.node).line: item.key[0] for item in file.kernels.located}
    found |= {kept.line: kept.name for kept in find_eager(original)}
    found |= {kernel.line: kernel.name for kernel in file.unseen[0]}
    return {line: name for line, name in found.items() if not file.options.selects(file.path, name)}


def _lazy(file: _File, leave: Collection[int], crowded: Mapping[int, object]) -> Lazy:
    """The file without eager kernels and with one launch a kernel, but for those of the lines ``leave``.

    ``crowded``: lines of kernels for several launches.
    """
    lazy = to_lazy(file.original, leave, file.users)
    take_apart(file.original, lazy, leave, crowded.keys())
    split_launches(file.original, lazy, leave)
    return lazy


def _migrated(file: _File, leave: Mapping[int, Sequence[Diagnostic]], lazy: Lazy) -> _Done:
    """Every kernel of a file in its best form."""
    original = file.original
    done = _Done(lazy.module)
    for kept, blocked in [*lazy.left, *lazy.whole]:
        outcome, notes = _refused_eager(original, kept, blocked, leave)
        if kept.is_prim_func:
            done.whole[kept.line] = notes
        else:
            done.refused_eager[kept.line] = outcome, notes
    around = Surroundings(file.kernels if lazy.module is original.module else FileKernels(original.after(lazy.module)))
    waiting = len(around.file.located)
    for holder in around.holders():
        view = around.focus(holder)
        current = view.file
        targets = {item.key: item.targets for item in current.located}
        for key in view.kernels_in(holder):
            waiting -= 1
            job = Job(original, current, key, file.options, view.elsewhere, users=file.users, targets=targets[key])
            source = lazy.origin(job.located.factory.node) if job.located.factory is not None else None
            if source is not None:
                job.origin = source.name, source.line
            outcome, job = _best_form(job, file, leave)
            current = job.file
            if source is not None:
                job.notes = [note if note.line > 1 else replace(note, line=source.line) for note in job.notes]
            if source is not None and outcome.disposition == "refused":
                if source.is_prim_func:
                    done.whole[source.line] = job.notes
                else:
                    done.refused_eager[source.line] = outcome, job.notes
                continue
            done.kernels.append(outcome)
            done.handed |= {(outcome.name, name)} if outcome.rewritten and (name := handed_on(job)) else set()
            done.diagnostics += job.notes
            done.changes += job.changes
            done.promises += job.promises if outcome.rewritten else []
        if current is not view.file:
            view.restore(current)
    if waiting:
        raise RuntimeError("a kernel of the file got no verdict")
    done.changes += [
        Change(code, original.first_line(node) or kept.line, message, kept.name, CODES[code].safety)
        for kept, code, node, message in lazy.changes
    ]
    done.module = around.module
    done.kernels = _joined(done.kernels)
    return done


def _joined(kernels: Sequence[KernelResult]) -> list[KernelResult]:
    """One result for a kernel that became several, one for each of its launches."""
    found: dict[tuple[str, int], KernelResult] = {}
    for kernel in kernels:
        key = kernel.name, kernel.line
        known = found.get(key)
        if known is not None and known.reason != kernel.reason:
            kernel = replace(kernel, reason=f"{known.reason}; {kernel.reason}")
        if known is not None:
            kernel = replace(kernel, codes=tuple(sorted({*known.codes, *kernel.codes})))
        found[key] = kernel
    return list(found.values())


def _refused_eager(
    original: Index, kept: Eager, blocked: Blocked | None, leave: Mapping[int, Sequence[Diagnostic]]
) -> tuple[KernelResult, list[Diagnostic]]:
    """An eager kernel that is not even made lazy."""
    notes = list(leave.get(kept.line, ()))
    if blocked is not None:
        notes = [diagnostic(original, blocked.code, blocked.node, blocked.message, kept.name, "error")]
    codes = tuple(sorted({note.code for note in notes}))
    why = notes[0].message if notes else NOT_SELECTED
    return KernelResult(kept.name, kept.line, "gpu", "none", "refused", why, codes), notes


def _best_form(given: Job, file: _File, leave: Mapping[int, Sequence[Diagnostic]]) -> tuple[KernelResult, Job]:
    factory = given.located.factory
    source = None if factory is None else file.sources.get(factory.node.name.value)
    outcome, job = same_values.checked(given, *_best_of(given, file.suppressions, leave), source)
    if outcome.disposition != "refused" or job is given:
        return outcome, job
    given.notes = [note for note in job.notes if note.code != "TL100"]  # the types stay those of the author
    return _refused(given, outcome.line, outcome.source, outcome.reason), given


def _best_of(
    start: Job, suppressions: Suppressions, leave: Mapping[int, Sequence[Diagnostic]]
) -> tuple[KernelResult, Job]:
    line = start.def_line
    try:
        kind = traits(start)
        if line in leave:
            start.notes += leave[line]
            stays = leave[line][0].message if leave[line] else NOT_SELECTED
            return _refused(start, line, kind.style, stays), start
        refuse_unlaunched(start, kind.style)
        if kind.style == "gpu":
            start = in_common_words(start)
        if not kind.is_rewritten and kind.style != "developer":
            _note_own(start, suppressions)
        if kind.style == "developer" and start.options.target == "ascendc":
            job, verdict = choose.in_developer_mode(start, suppressions)
            return _result(job, line, kind, *verdict), job
        if kind.style == "npuir" and start.options.target == "ascendc":
            from_npuir.refuse(start)
        elif kind.style == "gpu":
            unsupported.refuse(start)
        elif kind.style != "npuir":
            refuse_unreadable(start)
            if (why := left_alone(start)) is not None:
                return _result(start, line, kind, "unchanged", "none", why), start
    except Blocked as blocked:
        start.note(blocked.code, blocked.node, blocked.message, "error")
        style = "unknown" if blocked.code == "TL902" else traits(start).style
        return _refused(start, line, style, blocked.message), start
    tried = choose.best_first(start, kind, suppressions)
    reached = tried[-1] if tried[-1].reached else None
    missed = [attempt for attempt in tried if attempt is not reached]
    if reached is None:
        for attempt in missed[-1:] if kind.is_rewritten else missed:
            if attempt.blocked is not None and (found := replace(attempt.blocked, severity="error")) not in start.notes:
                start.notes.append(found)
        why = missed[-1].blocked.message if missed and missed[-1].blocked else "no rewrite could be proved correct"
        return _refused(start, line, kind.style, why), start
    job = reached.job
    better = missed[: tried.index(reached)]
    for attempt in better:
        if attempt.blocked is not None:
            nothing_lost = kind.is_rewritten or reached.target == "developer-threads1"
            level: Severity = "info" if nothing_lost else "warning"
            found = attempt.blocked
            job.notes.append(
                replace(found, severity=level, help=choose.one_core(found) if kind.is_rewritten else found.help)
            )
            if level == "warning":
                job.notes += [replace(found, severity=level) for found in attempt.more]
    choose.offer_one_thread(start, kind, suppressions, job, reached)
    slower = speed.tell_slowdown(start, job, reached.subject) if reached.subject is not None else ""
    changed = job.module is not start.module
    disposition: Disposition = "unchanged"
    pipes: tuple[tuple[str, float], ...] = ()
    if changed:
        disposition = "partial" if reached.target == "fallback" else "migrated"
        if reached.target != "npuir" and reached.subject is not None:
            pipes = speed.tell_notes(job, reached.subject)
    target, why = reached.target if changed else "none", _reason(kind, reached, better, changed) + slower
    return replace(_result(job, line, kind, disposition, target, why), pipes=pipes), job


def _note_own(start: Job, suppressions: Suppressions) -> None:
    """What is wrong with the author's own kernel, whatever becomes of it."""
    subject = Subject(start.kernel, start.file, start.located, start.options)
    both = (replace(found, severity="warning") for found in both_store.check(subject))
    for found in (*flags.check(subject, start.line), *doubled.check(subject), *both):
        if not suppressions.covers(start.line(found.node), found.code):
            start.note(found.code, found.node, found.message, found.severity)


def _reason(kind: Traits, reached: Attempt, better: list[Attempt], changed: bool) -> str:
    if reached.target == "fallback":
        blocked = better[0].blocked if better else None
        why = f"{blocked.code} line {blocked.line}: {blocked.message}" if blocked else ""
        form = "vid and workspaces stay" if kind.exchanges else ("automatic passes only", "vid stays")[kind.uses_vid]
        return f"{form}, because of {why}" if changed else f"because of {why}"
    if reached.target == "npuir":
        return "for AscendNPU IR" if changed else "for AscendNPU IR already"
    if kind.is_rewritten:
        return _gpu_reason(reached, better)
    if not kind.vector:
        return "cube only: automatic passes, no threads"
    split = "threads=1" if reached.target == "developer-threads1" else "every tile is split by rows: threads=2"
    if any(code_ == "TL235" for code_, _, _ in reached.job.edited):
        split += ", a block for each vector core"
    elif reached.target == "developer-threads1" and better:
        both = better[0].blocked is not None and better[0].blocked.code == "TL222"
        split += f", because {'both vector cores did the same' if both else 'one vector core did all the'} work before"
    return split if kind.cube else f"vector only; {split}"


def _gpu_reason(reached: Attempt, better: list[Attempt]) -> str:
    launch = reached.job.kernel.launch
    if launch is None or launch.threads is None:
        return "cube only: no threads"
    if reached.target == "developer":
        return f"every tile is split by rows: threads={code(launch.threads.node)}"
    blocked = better[0].blocked if better else None
    return f"threads=1, because of {blocked.code} line {blocked.line}: {blocked.message}" if blocked else "threads=1"


def _result(job: Job, line: int, kind: Traits, disposition: Disposition, target: str, reason: str) -> KernelResult:
    codes = tuple(sorted({code for code, _, _ in job.edited} | {note.code for note in job.notes}))
    return KernelResult(job.kernel_name, line, kind.style, target, disposition, reason, codes)


def _refused(job: Job, line: int, style: str, why: str) -> KernelResult:
    codes = tuple(sorted({note.code for note in job.notes}))
    return KernelResult(job.kernel_name, line, style, "none", "refused", why, codes)
