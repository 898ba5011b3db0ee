"""The judge that is the installed compiler: ``--backend compile``. Nothing is launched, no numbers are compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from tl2npu.backends.compile.lowering import Lowered, Program, Stopped, Wanted, lower
from tl2npu.backends.compile.messages import line_of, meaning
from tl2npu.backends.compile.programs import same
from tl2npu.backends.device.runner import NotHere
from tl2npu.cells import Places
from tl2npu.codes import CODES
from tl2npu.migration import check_text
from tl2npu.options import Options
from tl2npu.toolchain.cann import tool
from tl2npu.toolchain.doctor import examine
from tl2npu.verified import VerifyResult
from tl2npu.verify.judge import UNVERIFIED, Findings, judged, to_prove
from tl2npu.verify.limits import Limits, limits_of, owner_of
from tl2npu.verify.loading import Source
from tl2npu.verify.naming import Place, places
from tl2npu.verify.recording import with_float16
from tl2npu.verify.settings import Settings

REJECTED, DIED, MISSING, UNBUILT = "TL930", "TL931", "TL932", "TL933"


def verify(
    old: Source | None,
    new: Source,
    settings: Settings,
    changed: Sequence[str] | None,
    recorded: Mapping[str, str] | None = None,
    findings: Findings | None = None,
) -> VerifyResult:
    """Compile the new file's kernels, and those of the old one where it is for TileLang-Ascend, too.

    ``recorded``: of a trace, its kernels and the factory that is called for each; ``findings``: what is known of them
    already. ``old`` may then be None. Raises NotHere.
    """
    findings = findings or Findings()
    by_name = {place.name: place for place in places((old or new).text)}
    wanted = to_prove(list(by_name.values()), old.text, new.text, changed) if old is not None else set()
    for kernel in recorded or {}:
        by_name.setdefault(kernel, Place(kernel, 1, 1, 1))
        wanted.add(kernel)
    if recorded is None or settings.calls:
        lowered = _lowered(new, settings)
        _take(lowered, new, by_name, findings, settings, recorded or {})
        if old is not None and lowered.programs and _is_for_ascend(old, settings):
            before = _lowered(old, settings)
            findings.notes += chain(_compared(before, lowered, by_name), _rejected_before(before, lowered, by_name))
    before_it = old or Source("", new.path, new.shown)
    limits = Limits()
    if settings.check is not None:
        limits = limits_of(before_it, new, settings.check, by_name, ())
    result = VerifyResult(before_it.shown, new.shown, settings.backend.name, settings.arithmetic)
    return judged(result, findings, by_name, limits, wanted)


def _lowered(source: Source, settings: Settings) -> Lowered:
    backend = settings.backend
    wide = with_float16 if settings.fp8 == "float16" else dict
    wanted = Wanted(
        source.pieces,
        source.path,
        settings.timeout,
        [(call.factory, wide(call.arguments)) for call in settings.calls],
        settings.script_args,
        backend.target,
        backend.platform,
        backend.python,
        bisheng=backend.target != "npuir" and tool("bisheng") is not None,
    )
    try:
        found = lower(wanted)
    except OSError as error:
        raise NotHere(f"{backend.python} cannot be started: {error.strerror}") from None
    branch = "npuir" if backend.target == "npuir" else "ascendc_pto"
    if not found.begun:
        why = examine(backend.python).reasons("compile") or f"the compiler did not start{_last(found)}"
        raise NotHere(why)
    if found.branch != branch:
        there = f"its branch {found.branch}" if found.branch else "TileLang for GPUs"
        raise NotHere(f"--target {backend.target or 'ascendc'} needs branch {branch} of tilelang-ascend, not {there}")
    return found


def _last(found: Lowered) -> str:
    lines = [line.strip() for line in found.ended.output.splitlines() if line.strip()]
    return f": {lines[-1]}" if lines else ""


def _is_for_ascend(old: Source, settings: Settings) -> bool:
    """True unless all kernels of the old file are for GPUs, which this compiler does not read."""
    found = check_text(old.text, old.path, settings.check or Options(device=settings.device))
    return any(kernel.source != "gpu" for kernel in found.kernels)


def _take(
    lowered: Lowered,
    new: Source,
    by_name: Mapping[str, Place],
    findings: Findings,
    settings: Settings,
    recorded: Mapping[str, str],
) -> None:
    """Enter what became of the new file's kernels."""
    ended = lowered.ended
    findings.take(ended, settings.timeout, new.shown)
    for program in lowered.programs:
        made = [kernel for kernel, factory in recorded.items() if factory == program.factory]
        name = made[0] if len(made) == 1 else _owner(program.kernel, by_name)
        findings.launched.setdefault(name, program.line)
        if program.status == "accepted":
            findings.accepted[name] = findings.accepted.get(name, 0) + 1
            continue
        code, message, help = _verdict(program, new)
        if not any(p["kernel"] == name and p["message"].startswith(message) for p in findings.problems):
            called = f" for {program.call}" if program.call else ""
            findings.problem(code, message + called, name, help)
    for stop in lowered.stopped:
        at = f"{_at(new, stop)}: " if stop.at else f"{new.shown}: "
        if stop.missing:
            findings.problem(MISSING, f"{at}{stop.message}")
        else:
            findings.problem(UNVERIFIED, f"{at}the code outside the kernels failed: {stop.message}")


def _owner(kernel: str, by_name: Mapping[str, Place]) -> str:
    """The old kernel that a new one replaces; a factory that gave two kernels may have become two factories."""
    last = [name for name in by_name if name.rpartition(".")[2] == kernel.rpartition(".")[2]]
    return owner_of(kernel, by_name, ()) or (last[0] if len(last) == 1 else kernel)


def _verdict(program: Program, new: Source) -> tuple[str, str, str]:
    """Code, message and help for a kernel that the compiler does not take."""
    found = meaning(program.message, program.where)
    piece, line = program.piece, program.at
    if line is None and len(new.pieces) == 1:
        inside = next((p for p in places(new.text) if p.name == program.kernel), None)
        if inside is not None:
            piece, line = 0, line_of(found, new.text, inside.first, inside.last) or inside.line
    shown = f"{_at(new, Stopped('', False, piece, line))}: " if line else ""
    if program.status == "died":
        where = f" in {program.where}" if program.where else ""
        text, code = f"the compiler crashed with {program.signal}{where}", DIED
    elif program.phase == "bisheng":
        text, code = f"bisheng rejects the generated program: {program.message}", UNBUILT
    else:
        text, code = f"the compiler rejects the kernel: {program.message}", REJECTED
    rules = ", ".join(f"{rule} {CODES[rule].name}" for rule in found.codes)
    likely = f" ({rules})" if rules else ""
    return code, f"{shown}{text}{likely}", CODES[found.codes[0]].remedy if found.codes else ""


def _at(new: Source, place: Stopped | Program) -> str:
    """The file and the line, of a notebook the cell and its line."""
    if new.book is None or place.piece is None:
        return f"{new.shown} line {place.at}"
    start = new.book.python[place.piece].start
    return f"{new.shown} {Places(new.book, new.path).told(f'line {start + (place.at or 1) - 1}', None)}"


def _compared(before: Lowered, after: Lowered, by_name: Mapping[str, Place]) -> Iterator[str]:
    """For each kernel that both files compile with the same arguments: whether the programs are the same."""
    old: dict[tuple[str, str, int], str] = {}
    turns: dict[tuple[str, str], int] = {}
    for program in before.programs:
        turn = turns[program.kernel, program.call] = turns.get((program.kernel, program.call), -1) + 1
        if program.status == "accepted":
            old[program.kernel, program.call, turn] = program.source
    turns.clear()
    answers: dict[str, list[bool]] = {}
    for program in after.programs:
        turn = turns[program.kernel, program.call] = turns.get((program.kernel, program.call), -1) + 1
        source = old.get((program.kernel, program.call, turn))
        if source is not None and program.status == "accepted":
            answers.setdefault(program.kernel, []).append(same(source, program.source))
    for name, found in answers.items():
        shown = _owner(name, by_name)
        if all(found):
            yield f"{shown}: the generated program is that of the old kernel, except for buffer addresses"
        else:
            yield f"{shown}: the generated program differs from that of the old kernel"


def _rejected_before(before: Lowered, after: Lowered, by_name: Mapping[str, Place]) -> Iterator[str]:
    """Old kernels that the compiler rejects as well as what became of them."""
    rejected = {_owner(p.kernel, by_name) for p in after.programs if p.status != "accepted"}
    for name in dict.fromkeys(_owner(p.kernel, by_name) for p in before.programs if p.status != "accepted"):
        if name in rejected:
            yield f"{name}: the compiler rejects the old kernel too"
