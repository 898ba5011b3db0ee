"""The judge that is the simulator: what has to be run to verify a file, and what that proves of each kernel."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tl2npu.backends.children import Ended, last_line
from tl2npu.codes import CODES, finding
from tl2npu.options import Options
from tl2npu.results import Diagnostic, Verified
from tl2npu.verified import Comparison, KernelVerdict, Metrics, ScriptCheck, Status, VerifyResult
from tl2npu.verify import process
from tl2npu.verify.job import Job
from tl2npu.verify.limits import Limits, limits_of, reasons
from tl2npu.verify.loading import Source
from tl2npu.verify.naming import Place, places, same_functions, unchanged
from tl2npu.verify.settings import Settings, UsageError
from tl2npu.verify.telling import Event

UNVERIFIED, CHANGED, FAULTY, READINGS, OWN_CHECK, OVERDUE = (f"TL{n}" for n in range(906, 912))
MEMORY = "TL801"
OF_OLD, OF_NEW = "the old kernel: ", "the new kernel: "
"""Which kernel a fault is one of."""

Runner = Callable[[Job], Ended]


@dataclass
class Findings:
    """What the jobs of one verification have told so far."""

    comparisons: list[Comparison] = field(default_factory=list)
    problems: list[Event] = field(default_factory=list)
    hazards: list[Event] = field(default_factory=list)
    launched: dict[str, int] = field(default_factory=dict)
    of_triton: set[str] = field(default_factory=set)
    """The kernels of Triton among them."""
    lines: dict[str, set[int]] = field(default_factory=dict)
    """Those of the old kernels that were launched: several kernels may have one name, as in two branches."""
    scripts: list[ScriptCheck] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    smaller: dict[str, str] = field(default_factory=dict)
    """Options that would have given a kernel less to do."""
    done: list[int] = field(default_factory=list)
    accepted: dict[str, int] = field(default_factory=dict)
    """Where nothing was executed: how many programs of each kernel the compiler took."""
    launches: int = 0
    broken: bool = False
    """A job did not come to its end."""

    def take(self, ended: Ended, budget: float, who: str) -> None:
        """Enter the events of a job. Raises UsageError where it could not begin."""
        for event in ended.events:
            kind = event["event"]
            if kind == "usage":
                raise UsageError(event["message"])
            if kind == "problem":
                self.problems.append(event)
            elif kind == "hazard":
                self.hazards.append(event)
            elif kind == "smaller":
                self.smaller[event["kernel"]] = event["option"]
            elif kind == "note":
                self.notes.append(event["text"])
            elif kind == "launched":
                self.launched[event["kernel"]] = event["line"]
                self.lines.setdefault(event["kernel"], set()).add(event["line"])
                self.launches += 1
                if event.get("triton"):
                    self.of_triton.add(event["kernel"])
            elif kind == "comparison":
                self.comparisons.append(_comparison(event))
                self.done.append(event["number"])
            elif kind == "agrees":
                self.done.append(event["number"])
        self.broken = self.broken or ended.code is None
        if ended.overdue is not None:
            what = ended.overdue or f"the code of {who} outside its kernels"
            text = f"{what} was stopped after {budget:g} seconds of CPU time (--timeout)"
            option = self.smaller.get(ended.overdue)
            help = f"use `{option}`, which is small enough (`--shrink` does the same), or raise `--timeout`"
            self.problem(OVERDUE, text, ended.overdue or None, help if option else "")
        elif ended.code is None:
            self.problem(UNVERIFIED, f"the process of {who} died: {ended.died}{_after(ended.output)}")

    def problem(self, code: str, message: str, kernel: str | None = None, help: str = "") -> None:
        """Something of which no job has told; ``help`` in place of what the table says of the code."""
        known = {"kernel": kernel, "factory": None, "line": 0, "side": None, "help": help}
        self.problems.append({"code": code, "message": message, **known})

    def proof(self, kernel: str, backend: str) -> Verified | None:
        """What speaks for a kernel: launches that agree, or programs that the compiler took."""
        own = [comparison for comparison in self.comparisons if comparison.kernel == kernel]
        if own:
            itself = [comparison for comparison in own if not comparison.draw]
            return Verified(backend, len(itself), max((c.max_error or 0.0 for c in itself), default=0.0))
        return Verified(backend, self.accepted[kernel], None) if kernel in self.accepted else None


Execute = Callable[[Path, Findings], None]


def verify(
    old: Source,
    new: Source,
    settings: Settings,
    runner: Runner = process.apart,
    changed: Sequence[str] | None = None,
    execute: Execute | None = None,
) -> VerifyResult:
    """Run both files and compare them.

    ``execute`` runs the new kernels in place of the simulator: it is given a folder with all launches, see
    ``elsewhere.py``, and writes the answers there. NEW as a script is then not run.

    ``changed`` names the kernels that have to be verified; by default those in outermost functions whose text differs,
    and all where no text differs. Raises UsageError for settings that do not fit the file.
    """
    findings = Findings()
    with tempfile.TemporaryDirectory(prefix="tl2npu-launches-") as folder:
        ended = runner(Job("record", old, settings, folder))
        findings.take(ended, settings.timeout, old.shown)
        if not settings.calls:
            findings.scripts.append(ScriptCheck("old", ended.code, ended.output))
        if execute is None and not settings.calls and ended.code == 0 and ended.overdue is None:
            ended = runner(Job("script", new, settings, folder))
            findings.take(ended, settings.timeout, new.shown)
            findings.scripts.append(ScriptCheck("new", ended.code, ended.output))
        if len(findings.done) < findings.launches and not findings.broken:
            repeat(Job("replay", new, settings, folder, tuple(findings.done)), runner, findings, execute)
    kernels = places(old.text)
    result = concluded(old, new, settings, findings, kernels, to_prove(kernels, old.text, new.text, changed))
    return result if execute is not None else _without_the_same(result, old, new, findings)


def repeat(job: Job, runner: Runner, findings: Findings, execute: Execute | None = None) -> None:
    """Do a job that repeats recorded launches; with ``execute`` the new kernels are run by that, see ``verify``."""
    budget, who = job.settings.timeout, job.source.shown
    if execute is not None:
        findings.take(runner(replace(job, task="ask")), budget, who)
        execute(Path(job.folder), findings)
        job = replace(job, task="answer")
    findings.take(runner(job), budget, who)


def concluded(
    old: Source, new: Source, settings: Settings, findings: Findings, kernels: Sequence[Place], wanted: set[str]
) -> VerifyResult:
    """What the findings prove of the kernels, and of those that were launched; ``wanted`` have to be proved."""
    result = VerifyResult(old.shown, new.shown, settings.backend.name, settings.arithmetic, standard=settings.standard)
    findings.comparisons = _with_torn_layouts(findings.comparisons)
    findings.comparisons = [_with_limits(c, new, settings) for c in findings.comparisons]
    if len(settings.calls) > 1:  # which of them it is
        findings.comparisons = [
            replace(c, problems=tuple((code, f"{c.call}: {text}") for code, text in c.problems))
            for c in findings.comparisons
        ]
    idle = _idle(kernels, findings)
    same = unchanged(old.text, new.text) if idle else set()
    left = [place for place in idle if place.line not in same]
    by_name = {place.name: place for place in (*left, *(place for place in kernels if place not in idle))}
    for name, line in findings.launched.items():
        by_name.setdefault(name, Place(name, line, line, line))
    limits = Limits()
    if (checked := _checked(settings)) is not None:
        limits = limits_of(old, new, checked, by_name, findings.comparisons)
    alike = [place for place in kernels if place not in by_name.values() and place not in idle]
    found = judged(result, findings, by_name, limits, wanted, alike, left)
    return _without_given_advice(found) if settings.calls else found


def _checked(settings: Settings) -> Options | None:
    """The options of the check: calls that are given are judged, and not those of the file."""
    calls = tuple(map(str, settings.calls))
    return None if settings.check is None else replace(settings.check, calls=calls)


def _without_given_advice(result: VerifyResult) -> VerifyResult:
    """``--args`` was given: it may be given once more for a kernel that was not called, and helps no other."""

    def advised(item: Diagnostic) -> Diagnostic:
        if item.code != UNVERIFIED or "--args" not in item.help:
            return item
        idle = item.message.endswith(f"was not verified: {_NEVER} {_TO_BE[result.backend]}")
        return replace(item, help="give a call of its factory, too: `--args` can be repeated" if idle else "")

    return replace(result, diagnostics=tuple(map(advised, result.diagnostics)))


def _idle(kernels: Sequence[Place], findings: Findings) -> list[Place]:
    """The kernels that were not launched, while another one of the same name was."""
    launched: set[Place] = set()
    for name, lines in findings.lines.items():
        alike = sorted((place for place in kernels if place.name == name), key=lambda place: place.line)
        # a line is that of the `def` or of a decorator above it
        launched |= {next((place for place in alike if place.line >= line), alike[-1]) for line in lines if alike}
    names = {place.name for place in launched}
    return [place for place in kernels if place.name in names and place not in launched]


_NOT_THERE = re.compile(r"^ModuleNotFoundError: No module named '(\w+)'\Z", re.M)
_STOOD_IN_FOR = ("tilelang", "tvm")
_NEVER = "it was never"
_ANY_CALL = "factory(name=value)"
"""What stands for a call in the table's advice."""
_IDLE = f"{_NEVER} launched, only another kernel of the same name"
_TO_BE = {"compile": "compiled", "sim": "launched", "npu": "launched", "camodel": "launched"}
_UNROUNDED = "agrees with the old kernel if its intermediate rounding to 16 bits is left out"


def _with_torn_layouts(comparisons: list[Comparison]) -> list[Comparison]:
    """What one kernel stores in another order than before, no other kernel may read in the old one."""
    keeps = sorted({f"{c.kernel} ({name})" for c in comparisons for name in c.laid})
    if not keeps:
        return comparisons
    return [
        replace(c, problems=(*c.problems, *((CHANGED, _TORN.format(name, ", ".join(keeps))) for name in c.relaid)))
        for c in comparisons
    ]


_TORN = "the new kernel stores {} in another memory layout than the old one, but {} keeps a layout"


def _with_limits(comparison: Comparison, new: Source, settings: Settings) -> Comparison:
    """A difference of the readings, with its likely reason: the limits of the compiler that are not kept."""
    if not any(code == READINGS for code, _ in comparison.problems):
        return comparison
    found = reasons(comparison, new, _checked(settings) or Options(device=settings.device))
    said = f"; violated limits: {found}" if found else ""
    problems = tuple((code, text + said if code == READINGS else text) for code, text in comparison.problems)
    return replace(comparison, problems=problems)


def to_prove(kernels: list[Place], old: str, new: str, changed: Sequence[str] | None) -> set[str]:
    """The kernels that have to be verified: those of ``changed``, else those whose text differs, else all."""
    if changed is not None:
        return set(changed)
    same = same_functions(old, new)
    return {k.name for k in kernels if k.name.split(".")[0] not in same} or {k.name for k in kernels}


def _without_the_same(result: VerifyResult, old: Source, new: Source, findings: Findings) -> VerifyResult:
    """The verdicts without the kernels that are the same in both files: to agree with oneself proves nothing."""
    same = same_functions(old.text, new.text)
    verdicts: list[KernelVerdict] = []
    for verdict in result.kernels:
        if verdict.status != "verified" or verdict.name.split(".")[0] not in same:
            verdicts.append(verdict)
        elif verdict.name in findings.of_triton:
            text = "the new file has the same Triton kernel"
            verdicts.append(replace(verdict, status="not migrated", reason=text, verified=None))
        else:
            text = "the same text in both files, which runs without a finding"
            verdicts.append(replace(verdict, status="unchanged", reason=text, verified=None))
    some = any(verdict.status in ("verified", "unchanged") for verdict in verdicts)
    return replace(result, kernels=tuple(verdicts), ok=result.ok and some)


def judged(
    result: VerifyResult,
    findings: Findings,
    by_name: Mapping[str, Place],
    limits: Limits,
    wanted: set[str],
    alike: Sequence[Place] = (),
    idle: Sequence[Place] = (),
) -> VerifyResult:
    """The verdict on each kernel of ``by_name``, and on the file: ``wanted`` are the kernels to be proved.

    ``alike`` are further kernels of these names, and ``idle`` those that were not launched, while one of their name
    was: that proves nothing about them.
    """
    faults = _Faults(by_name, {item.kernel for item in limits.broken if item.code == MEMORY})
    faults.of_problems(findings.problems)
    faults.of_the_old(findings.hazards)
    faults.of_comparisons(findings.comparisons)
    faults.of_scripts(findings.scripts)
    faults.of_limits(limits.broken)
    verdicts = [faults.verdict(place, findings, result.backend) for place in (*by_name.values(), *alike)]
    verdicts += [KernelVerdict(place.name, place.line, "not verified", _IDLE) for place in idle]
    for verdict in verdicts:
        told = verdict.name in faults.first and verdict.reason != _IDLE
        told = told or any(verdict.reason.endswith(f": {why}") for why in faults.general)  # once, of the script
        if verdict.name in wanted and not told and verdict.status == "not verified":
            text = f"{verdict.name} was not verified: {verdict.reason}"
            found = finding(UNVERIFIED, verdict.line, text, verdict.name)
            place = by_name.get(verdict.name)
            help = found.help if place is None or not place.call else found.help.replace(_ANY_CALL, place.call)
            faults.diagnostics.append(replace(found, help=help))
    proved = {verdict.name for verdict in verdicts if verdict.status == "verified"} - {place.name for place in idle}
    complete = bool(proved) and (wanted & by_name.keys()) <= proved and not any(v.status == "failed" for v in verdicts)
    ok = complete and not findings.broken and not any(d.severity == "error" for d in faults.diagnostics)
    return replace(
        result,
        ok=ok,
        kernels=tuple(verdicts),
        comparisons=tuple(findings.comparisons),
        scripts=tuple(findings.scripts),
        diagnostics=tuple(at_once(sorted(faults.diagnostics, key=lambda d: (d.line, d.code)))),
        notes=tuple(dict.fromkeys([*findings.notes, *_notes(findings.comparisons), *limits.notes])),
    )


class _Faults:
    """What speaks against kernels: ``first`` is the first reason of each, ``failed`` names those that are wrong.

    ``general`` are reasons that belong to no kernel, as what ended a script. ``counted``: kernels whose need of memory
    ``check`` has told.
    """

    def __init__(self, places: Mapping[str, Place], counted: set[str | None]) -> None:
        self.places = places
        self.counted = counted
        self.diagnostics: list[Diagnostic] = []
        self.first: dict[str, str] = {}
        self.failed: set[str] = set()
        self.general: list[str] = []

    def of_problems(self, events: Sequence[Event]) -> None:
        """What did not run, or not to its end."""
        for event in events:
            owners = _owners(event, self.places)
            code, message = event["code"], event["message"]
            if code == MEMORY and owners and self.counted.issuperset(owners):
                continue
            line = self.places[owners[0]].line if owners else 1
            found = finding(code, line, message, owners[0] if len(owners) == 1 else None)
            usual = help_of(message, found.help) if code == FAULTY else found.help
            self.diagnostics.append(replace(found, help=event.get("help") or usual))
            if code != UNVERIFIED and CODES[code].severity == "warning":
                continue
            for name in owners:
                self.first.setdefault(name, message)
                if code not in (UNVERIFIED, OVERDUE) and event["side"] != "old":
                    self.failed.add(name)
            if not owners:
                self.general.append(message)

    def of_the_old(self, hazards: Sequence[Event]) -> None:
        """The old kernel's own. The new one may be what repairs it, so it is told, and not held against the new one."""
        for event in hazards:
            name, text = event["kernel"], f"{OF_OLD}{event['message']}"
            line = self.places[name].line if name in self.places else 1
            self.diagnostics.append(replace(finding(FAULTY, line, text, name), severity="warning"))

    def of_comparisons(self, comparisons: Sequence[Comparison]) -> None:
        """What differs between old and new."""
        for comparison in comparisons:
            for code, message in comparison.problems:
                name = comparison.kernel
                if code == MEMORY and name in self.counted:
                    continue
                self.first.setdefault(name, message)
                if code not in (UNVERIFIED, OVERDUE):
                    self.failed.add(name)
                found = finding(code, self.places[name].line, message, name)
                self.diagnostics.append(replace(found, help=help_of(message, found.help)) if code == FAULTY else found)

    def of_scripts(self, scripts: Sequence[ScriptCheck]) -> None:
        """Scripts that did not end well."""
        for check in scripts:
            if check.exit_code not in (0, None):
                found = _failed_script(check)
                self.diagnostics.append(found)
                self.general.append(found.message)

    def of_limits(self, broken: Sequence[Diagnostic]) -> None:
        """Errors of ``check`` in the new kernels."""
        for item in broken:
            self.diagnostics.append(item)
            if item.kernel is not None:
                self.first.setdefault(item.kernel, f"{item.code} {item.message}")
                self.failed.add(item.kernel)
            else:
                self.general.append(f"{item.code} {item.message}")

    def verdict(self, place: Place, findings: Findings, backend: str) -> KernelVerdict:
        """What is held of a kernel in the end."""
        if place.name in self.first:
            status: Status = "failed" if place.name in self.failed else "not verified"
            return KernelVerdict(place.name, place.line, status, self.first[place.name])
        proof = findings.proof(place.name, backend)
        if proof is not None:
            why = "old and new agree" if proof.max_error is not None else "the compiler accepts it"
            return KernelVerdict(place.name, place.line, "verified", why, proof)
        what = "compared" if place.name in findings.launched else _TO_BE[backend]
        why = f"{_NEVER} {what}{': ' + self.general[0] if self.general else ''}"
        return KernelVerdict(place.name, place.line, "not verified", why)


def _notes(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """What was compared in another way than element for element, or not at all."""
    for comparison in comparisons:
        for name in comparison.dropped:
            yield f"{comparison.kernel}: {name} is not compared, because the new kernel does not have it"
        for name in comparison.relaid:
            text = f"{name} has another memory layout than before; compared element by element"
            yield f"{comparison.kernel}: {text}"
        for name in comparison.unrounded:
            yield f"{comparison.kernel}: {name} {_UNROUNDED}"


def _failed_script(check: ScriptCheck) -> Diagnostic:
    module = _NOT_THERE.search(check.output.rstrip())
    if module is None or module.group(1) in _STOOD_IN_FOR:
        text = f"the {check.role} script ended with exit code {check.exit_code}{_after(check.output)}"
        return finding(OWN_CHECK, 1, text)
    name = module.group(1)
    help = (
        f"install `{name}` where tl2npu is installed, or give calls with `tl2npu verify --args`, which need no script"
    )
    found = finding(OWN_CHECK, 1, f"the {check.role} script imports `{name}`, which is not installed here")
    return replace(found, help=help)


def _owners(event: Event, kernels: Mapping[str, Place]) -> list[str]:
    """The kernels that a problem is about: the one that it names, those around its line, or those of its factory."""
    if event.get("kernel"):
        return [event["kernel"]] if event["kernel"] in kernels else []
    line, factory = event.get("line") or 0, event.get("factory")
    around = [k.name for k in kernels.values() if k.first <= line <= k.last]
    return around or [k.name for k in kernels.values() if factory and k.name.split(".")[0] == factory]


def _comparison(event: Event) -> Comparison:
    problems = tuple((code, message) for code, message in event["problems"])
    return Comparison(
        event["kernel"],
        event["call"],
        tuple(event["outputs"]),
        event["max_error"],
        problems,
        tuple(event["dropped"]),
        tuple(event["relaid"]),
        tuple(event["laid"]),
        tuple(event["unrounded"]),
        tuple(event["by"]),
        event["draw"],
        tuple(event["quiet"]),
        tuple(_metrics(row) for row in event["metrics"]),
    )


def _metrics(row: Event) -> Metrics:
    fields: Event = {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
    return Metrics(**fields)


def _after(output: str) -> str:
    line = last_line(output)
    return f": {line}" if line else ""


_ACCESS = re.compile(
    r"(?P<head>.*: )PIPE_\w+ (?P<what>\w+) at (?P<file>.+):(?P<line>\d+) in block \d+ \(\w+\): "
    r"(?P<why>.+? of )(?P<tile>\w+)(?P<rest> .+?)( \(\d+ times\))?"
)
"""A hazard of a single access: those of other lines, for the same reason, are the same to the reader."""
_RAISED = re.compile(r"\b[A-Z]\w*(?:Error|Exception): ")
_PYTHON = (
    "mend the Python that raises it; a new kernel of `migrate` is written by `tl2npu migrate - < old.py > new.py`, "
    "and an error in it alone is one of tl2npu"
)


def help_of(message: str, usual: str) -> str:
    """What to do about a fault: Python that fails is neither an access nor a synchronisation."""
    return _PYTHON if _RAISED.search(message) else usual


def at_once(found: Iterable[Diagnostic]) -> list[Diagnostic]:
    """One finding for all accesses of a kernel that are wrong for one reason, with the other lines and tiles."""
    first: dict[object, tuple[Diagnostic, str]] = {}
    more: dict[object, dict[str, None]] = {}
    for item in found:
        key: object = item
        tile = line = ""
        if (match := _ACCESS.fullmatch(item.message)) is not None:
            tile, line = match.group("tile", "line")
            key = replace(item, message="|".join(match.group("head", "what", "file", "why", "rest")))
        _, other = first.setdefault(key, (item, tile))
        more.setdefault(key, {})[line if tile == other else f"{line} ({tile})"] = None
    result: list[Diagnostic] = []
    for key, (item, _) in first.items():
        _, *lines = more[key]
        also = f"; the same at line{'s' if len(lines) > 1 else ''} {', '.join(lines)}" if lines else ""
        result.append(replace(item, message=item.message + also))
    return result
