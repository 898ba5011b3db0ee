"""What a verification does with one file: record its launches, repeat recorded ones, or run it for its own checks.

Everything that happens is told as an event, a dict that can be written as JSON:

- ``begin``: libraries are loaded, the file's own code begins
- ``start`` with ``kernel``, ``stop``: a kernel's time begins and ends
- ``smaller`` with ``kernel``, ``option``: what to give in place of a launch that may take too long
- ``launched`` with ``kernel``, ``line``: the old kernel has run; with ``triton`` if it is one of Triton
- ``comparison``: the fields of a ``Comparison``, and the ``number`` of the recorded launch
- ``agrees`` with ``number``: nothing is to be said of a recorded launch
- ``problem`` with ``code``, ``message``, and as far as known ``kernel``, ``factory``, ``line`` and the ``side``, old or
  new, that it is about; the kernel cannot be verified
- ``hazard`` with ``message``, ``kernel``: the old kernel has one, and ran on
- ``note`` with ``text``: something that the report has to say
- ``exit`` with ``code``: the end, with the exit code that Python would give
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from tl2npu.interpreter import launch as launches
from tl2npu.interpreter.hook import hooked
from tl2npu.interpreter.session import Interpreter
from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.hazards.hazard import UNWRITTEN_OUTPUT
from tl2npu.simulator.ir.buffer import Buffer
from tl2npu.simulator.ir.expr import Var
from tl2npu.simulator.ir.stmt import Kernel
from tl2npu.simulator.run import code_of
from tl2npu.simulator.standin.jit import Factory, JITKernel
from tl2npu.simulator.standin.package import installed
from tl2npu.simulator.standin.session import Session
from tl2npu.verify import layouts, triton
from tl2npu.verify import recording as recordings
from tl2npu.verify.calls import option_of
from tl2npu.verify.chain import compare_chain
from tl2npu.verify.compare import tolerances
from tl2npu.verify.drawing import CANCELLING, SIZES, Kind, draw
from tl2npu.verify.elsewhere import Answered, Asked
from tl2npu.verify.further import Changed, Further, said, tells_nothing
from tl2npu.verify.golden import exact_results, own_errors, prepared, rounds_on_the_way
from tl2npu.verify.launching import (
    CannotBuild,
    WrongCall,
    allocate,
    build,
    built,
    built_inside,
    factory_of,
    named,
    refuse_unread,
)
from tl2npu.verify.layouts import Arrays
from tl2npu.verify.loading import Source, anything_importable, execute
from tl2npu.verify.naming import call_of, file_of, line_of, name_of
from tl2npu.verify.recording import Recorder, Recording, TooLarge
from tl2npu.verify.replay import FAULTY, UNVERIFIED, Judge, Outcome, inherited, rule_of, same_inputs
from tl2npu.verify.seeding import seeded
from tl2npu.verify.sessions import Observed, observe
from tl2npu.verify.settings import Call, Counted, Reading, Settings, UsageError
from tl2npu.verify.shrink import shrunk, small_enough
from tl2npu.verify.telling import Emit, Event, Side, compared, problem, told

Keep = Callable[[Any, Arrays, dict[str, Any], Callable[[], None]], None]


@dataclass(frozen=True)
class Job:
    """``folder`` holds the recorded launches, ``done`` the numbers of those that have been compared already.

    ``replay`` executes the new kernels on the simulator. To have it done elsewhere, ``ask`` writes the launches into
    the folder, and ``answer`` compares what has been written beside them. ``factories``: those that the launches of a
    trace need; what the file imports around them need not be installed. ``prepare`` asks the old file about them.
    """

    task: Literal["record", "prepare", "replay", "script", "ask", "answer"]
    source: Source
    settings: Settings
    folder: str
    done: tuple[int, ...] = ()
    factories: tuple[str, ...] = ()


def run(job: Job, emit: Emit) -> None:
    """Do a job. Never raises for what the file does."""
    tasks = {"record": _record, "prepare": _prepare, "script": _script}
    task = tasks.get(job.task, _replay)
    silent = ("problem", "comparison", "note", "agrees") if job.task == "ask" else ()  # "answer" finds them again

    def told(event: Event) -> None:
        if event["event"] not in silent:
            emit(event)

    emit({"event": "exit", "code": task(job, told)})


def _observe(job: Job, reading: Reading = "actual", arithmetic: Counted | None = None) -> Observed:
    settings = job.settings
    return observe(arithmetic or settings.arithmetic, reading, settings.hazards, settings.device)


def _record(job: Job, emit: Emit) -> int:
    """Run the old file, or the calls that were asked for, and keep every launch."""
    # A script's own checks need numbers: it gets them, and each launch is repeated in the arithmetic of the comparison.
    observed = _observe(job, arithmetic="precise")
    again = _observe(job) if job.settings.arithmetic != "precise" else None
    wider = observe("unrounded", "actual", "off", job.settings.device) if again is None else None
    watching = again or observed
    recorder = Recorder(Path(job.folder), watching.writers, watching.undefined)

    def keep(compiled: Any, arrays: Arrays, scalars: dict[str, Any], run_it: Callable[[], None]) -> None:
        name = name_of(compiled)
        copied = recordings.copies(arrays) if further is not None and not job.settings.calls else {}
        emit({"event": "start", "kernel": name})
        if name not in hazards and (option := _smaller(job, compiled, observed.session)) is not None:
            emit({"event": "smaller", "kernel": name, "option": option})
        observed.clear()
        repeat = None if again is None else partial(_repeat, again.session, compiled, scalars=scalars)
        wide = None
        if wider is not None and rounds_on_the_way(compiled.kernel):
            wide = partial(_repeat_unrounded, wider.session, compiled, scalars=scalars)
        try:
            recorder.record(compiled, arrays, scalars, run_it, repeat, wide, golden=exact(compiled, scalars))
        except SimulatorError as error:
            told(job.source, emit, error, "old", name)
            raise
        hazards.setdefault(name, set()).update(fault.kind for fault in observed.errors)
        for fault in observed.faults:
            if fault.severity != "note":
                emit({"event": "hazard", "message": fault.message, "kernel": name})
            elif fault.kind == UNWRITTEN_OUTPUT:
                emit({"event": "note", "text": f"{name}: {fault.message}"})
        emit({"event": "launched", "kernel": name, "line": job.source.line(file_of(compiled), line_of(compiled))})
        emit({"event": "stop"})

        if further is not None and not job.settings.calls:
            further.of_launch(compiled, copied, scalars)

    def attempt(compiled: Any, what: Kind, arrays: Arrays, scalars: dict[str, Any], changed: Changed) -> str | None:
        name, before = name_of(compiled), observed.session.recorder
        emit({"event": "start", "kernel": name})
        observed.clear()
        observed.session.recorder = None
        wide = None
        if wider is not None and rounds_on_the_way(compiled.kernel):
            wide = partial(_repeat_unrounded, wider.session, compiled, scalars=scalars)

        def wanted(inputs: Arrays, outputs: Arrays) -> bool:
            kinds = {fault.kind for fault in observed.errors}
            return kinds <= hazards.get(name, set()) and not tells_nothing(outputs, inputs)

        own = partial(own_errors, compiled, scalars=scalars, device=job.settings.device)
        try:
            run_it = partial(_repeat, observed.session, compiled, arrays, scalars)
            golden = exact(compiled, scalars)
            kind = what, said(changed), wanted, golden, own if what in CANCELLING else None
            kept = recorder.record(compiled, arrays, scalars, run_it, None, wide, *kind)
        except SimulatorError as error:
            return str(error)
        finally:
            observed.session.recorder = before
            emit({"event": "stop"})
        if kept:
            emit({"event": "launched", "kernel": name, "line": job.source.line(file_of(compiled), line_of(compiled))})
            return None
        return observed.errors[0].message if observed.errors else "no result is a number"

    def exact(compiled: Any, scalars: dict[str, Any]) -> Callable[[Arrays], Arrays] | None:
        if not job.settings.golden:
            return None
        return lambda inputs: exact_results(compiled, inputs, scalars, job.settings.device)

    def compile(compiled: Any, arguments: dict[str, Any]) -> JITKernel:
        return build(_module(job), compiled.factory, arguments, observed.session)

    further = None
    if job.settings.draws > 1 and job.settings.arithmetic == "precise":
        noted = partial(_note, emit)
        further = Further(job.settings.seed, observed.session, attempt, compile, noted)
    hazards: dict[str, set[str]] = {}  # of the launches themselves: what else the old kernel does, it does not take
    if job.settings.calls:
        code = _record_calls(job, observed, keep, further, emit)
    else:
        observed.session.recorder = keep
        old = triton.recording_of_old(
            Path(job.folder), recorder, job.source, emit, None if further is None else job.settings.seed
        )
        with installed(observed.session), hooked(old):
            emit({"event": "begin"})
            code = _as_script(job.source, job.settings, emit, "old")
    if further is not None:
        further.end()
    return code


def _note(emit: Emit, text: str) -> None:
    emit({"event": "note", "text": text})


def _repeat_unrounded(session: Session, compiled: Any, arrays: Arrays, scalars: dict[str, Any]) -> None:
    """The same; no arrays are left where the kernel cannot be run on other digits, as with an index made of them."""
    try:
        _repeat(session, compiled, arrays, scalars)
    except SimulatorError:
        arrays.clear()


def _repeat(session: Session, compiled: Any, arrays: Arrays, scalars: dict[str, Any]) -> None:
    """Run a kernel once more, on arrays given by name, in another session."""
    kernel = compiled.kernel
    numbers = {p.name: p.number for p in (*kernel.params, *kernel.outputs) if isinstance(p, Buffer)}
    known = {p: scalars[p.name] for p in kernel.params if isinstance(p, Var)}
    session.execute(compiled, kernel, {numbers[name]: array for name, array in arrays.items()}, known)


def _record_calls(job: Job, observed: Observed, keep: Keep, further: Further | None, emit: Emit) -> int:
    with installed(observed.session):
        emit({"event": "begin"})
        module = _load(job, emit)
        if module is None:
            return 1
        failed = False
        for call in job.settings.calls:
            try:
                compiled = _call(module, call, job.settings, observed.session, keep, emit)
                if further is not None:
                    further.of_call(compiled, call)
            except UsageError as error:
                emit({"event": "usage", "message": str(error)})
                return 2
            except WrongCall as error:
                emit({"event": "usage", "message": f"{call}: {error}"})
                return 2
            except SimulatorError as error:
                failed = True
                told(job.source, emit, error, "old", factory=call.factory)
            except (CannotBuild, TooLarge) as error:
                failed = True
                problem(emit, UNVERIFIED, f"{call}: {error}", factory=call.factory)
            except Exception as error:
                failed = True
                problem(emit, UNVERIFIED, f"{call}: {type(error).__name__}: {error}", factory=call.factory)
    return int(failed)


def _call(module: ModuleType, call: Call, settings: Settings, session: Session, keep: Keep, emit: Emit) -> JITKernel:
    """Build the kernel of a call, draw its inputs and run it."""

    def trace(arguments: dict[str, Any]) -> Kernel:
        return build(module, call.factory, arguments, session).kernel

    arguments = call.arguments
    if settings.shrink:
        arguments, said = shrunk(trace, arguments)
        emit({"event": "note", "text": f"{call.factory}: {said}"})
    compiled = build(module, call.factory, arguments, session)
    refuse_unread(module, call, compiled)
    drawn = draw(compiled, settings.seed, call.inputs, call.symbols)
    if drawn.said:
        text = f"inputs of {name_of(compiled)} (seed {settings.seed}): {'; '.join(drawn.said)}"
        emit({"event": "note", "text": text})
    scalars = {
        p: drawn.scalars[p.name] for p in compiled.kernel.params if isinstance(p, Var) and p.name in drawn.scalars
    }
    arrays = allocate(compiled, session, drawn.tensors, {**drawn.symbols, **scalars})

    def go() -> None:
        session.execute(compiled, compiled.kernel, arrays, scalars)

    keep(compiled, named(compiled, arrays), drawn.scalars, go)
    return compiled


def _module(job: Job) -> ModuleType:
    """The old file as it runs."""
    return sys.modules[Path(job.source.path).stem if job.settings.calls else "__main__"]


def _smaller(job: Job, compiled: Any, session: Session) -> str | None:
    """The option that gives a call of the same factory which a CPU carries; None if this one is such a call."""

    def trace(arguments: dict[str, Any]) -> Kernel:
        return build(_module(job), compiled.factory, arguments, session).kernel

    try:
        found = small_enough(trace, compiled.arguments, compiled.kernel)
    except Exception:  # a factory that is called again may do anything; this is but advice
        return None
    return None if found is None else option_of(Call(compiled.factory, found))


def _load(job: Job, emit: Emit) -> ModuleType | None:
    """The file as a module of which factories are wanted.

    A file without a main guard may stop in the middle, having no arguments or no torch. If the factories that calls
    or a trace name are there by then, they can be used.
    """
    source, settings = job.source, job.settings
    name = Path(source.path).stem
    wanted = {*(call.factory for call in settings.calls), *job.factories}
    around: AbstractContextManager[set[str]] = anything_importable() if wanted else nullcontext(set())
    with around as absent, hooked(Interpreter()), seeded(settings.seed):
        try:
            return execute(source, name, settings.script_args)
        except (Exception, SystemExit) as error:
            text = f"SystemExit: {error.code}" if isinstance(error, SystemExit) else f"{type(error).__name__}: {error}"
            module = sys.modules.get(name)
            if isinstance(error, SystemExit) and code_of(error) == 0:
                return module  # all of its code has run
            if wanted and all(factory_of(module, factory) is not None for factory in wanted):
                emit({"event": "note", "text": f"the code of {source.shown} outside its kernels failed: {text}"})
                return module
            problem(emit, UNVERIFIED, f"{source.shown} cannot be loaded: {text}")
            return None
        finally:
            for package in sorted(absent):
                emit({"event": "note", "text": f"{package} is not installed: its names have no values"})


def _prepare(job: Job, emit: Emit) -> int:
    """Give the launches of a trace what only the old file tells: tolerances, and exact results if they are wanted."""
    session = _observe(job).session
    with installed(session):
        emit({"event": "begin"})
        module = _load(job, emit)
        for recording in recordings.load(Path(job.folder)) if module is not None else ():
            assert module is not None
            emit({"event": "start", "kernel": recording.kernel})
            try:
                old = built(module, recording.factory, recording.arguments or {}, session)
                if not isinstance(old, JITKernel):
                    raise CannotBuild("it launches several kernels")
                found = prepared(recording, old, job.settings)
                recordings.keep(Path(job.folder), found)
            except Exception as error:
                text = f"the old kernel cannot be run on the simulator: {type(error).__name__}: {error}"
                if job.settings.golden:
                    problem(emit, UNVERIFIED, text, recording.kernel, side="old")
                else:
                    emit({"event": "note", "text": f"{recording.kernel}: {text}; the tolerances of the new one apply"})
            emit({"event": "stop"})
    return 0


def _replay(job: Job, emit: Emit) -> int:
    """Repeat recorded launches with the new file's kernels, found by factory name and arguments."""
    numbers = _observe(job, arithmetic="numbers")
    answered = Asked(Path(job.folder)) if job.task == "ask" else Answered(Path(job.folder))
    elsewhere = None if job.task == "replay" else answered
    judge = Judge(job.settings, _observe(job), _observe(job, "ideal"), numbers, elsewhere)
    failed: set[str] = set()
    with installed(judge.actual.session):
        emit({"event": "begin"})
        module = _load(job, emit)
        for recording in recordings.load(Path(job.folder), job.settings.fp8) if module is not None else ():
            if recording.number in job.done:
                continue
            if recording.draw and recording.kernel in failed:
                continue  # its own inputs have told already
            function = factory_of(module, recording.factory)
            eager = isinstance(function, Factory) and function.eager and not (job.settings.calls or job.factories)
            outer = recording.outer if function is None else None
            if (function is None and outer is None) or eager or recording.arguments is None:
                if recording.draw:
                    continue  # of its own launch this is said
                text = f"{job.source.shown} has no factory {recording.factory!r} to call again"
                if not (job.settings.calls or job.factories):
                    text += ", and run as a script it does not launch this kernel as the old one does"
                problem(emit, UNVERIFIED, text, recording.kernel)
                continue
            assert module is not None
            emit({"event": "start", "kernel": recording.kernel})
            try:
                made = recording.factory, recording.arguments, judge.actual.session
                new = built_inside(module, outer, *made) if outer else built(module, *made, of_old=True)
            except Exception as error:
                _not_built(job, emit, recording, error)
            else:
                if isinstance(new, JITKernel):
                    if not recording.tolerances:  # of a trace, without the old file
                        recording = replace(recording, tolerances=tolerances(new.kernel, rounding=False))
                    comparison = judge.compare(recording, new)
                else:
                    comparison = compare_chain(judge, recording, new)
                if comparison.problems:
                    failed.add(recording.kernel)
                compared(emit, recording, comparison)
            emit({"event": "stop"})
        for launch in launches.load(Path(job.folder)) if module is not None else ():
            assert module is not None
            if launch.number in job.done or (launch.draw and launch.kernel in failed):
                continue
            if not triton.repeat(job.source, launch, module, judge, emit):
                failed.add(launch.kernel)
    return 0


def _not_built(job: Job, emit: Emit, recording: Recording, error: Exception) -> None:
    """The new file gives no kernel for a launch; of sizes that only the old one was tried with, that is but told."""
    if recording.draw == SIZES:
        text = f"not compared with {recording.changed}, which the new factory does not take: {error}"
        emit({"event": "note", "text": f"{recording.kernel}: {text}"})
        emit({"event": "agrees", "number": recording.number})
    elif isinstance(error, CannotBuild):
        problem(emit, UNVERIFIED, f"{_among(job, recording)}the new kernel: {error}", recording.kernel)
    elif isinstance(error, SimulatorError):
        told(job.source, emit, error, "new", recording.kernel)
    else:
        text = f"{_among(job, recording)}the new kernel cannot be built: {type(error).__name__}: {error}"
        problem(emit, FAULTY, text, recording.kernel, side="new")


def _among(job: Job, recording: Recording) -> str:
    """Which call it is, of several that were given."""
    return f"{recording.call}: " if len(job.settings.calls) > 1 else ""


def _script(job: Job, emit: Emit) -> int:
    """Run the new file as a script. Its launches are compared with the recorded ones that are of the same turn of the
    same kernel, with the same arguments."""
    judge = Judge(job.settings, _observe(job), _observe(job, "ideal"), _observe(job, arithmetic="numbers"))
    observed = _observe(job, arithmetic="precise")
    waiting: dict[tuple[str, int, str], list[int]] = {}
    for r in recordings.load(Path(job.folder), job.settings.fp8):
        waiting.setdefault((r.kernel, r.turn, r.call), []).append(r.number)
    turns: dict[str, int] = {}
    of_triton = triton.Waiting(Path(job.folder), judge, emit)

    def repeat(compiled: Any, arrays: Arrays, scalars: dict[str, Any], run_it: Callable[[], None]) -> None:
        name = name_of(compiled)
        turn = turns[name] = turns.get(name, -1) + 1
        numbers = waiting.pop((name, turn, call_of(compiled)), [])
        recording = recordings.load_one(Path(job.folder), numbers[0], job.settings.fp8) if numbers else None
        recording = recording or of_triton.recording(compiled, arrays)
        emit({"event": "start", "kernel": name})

        same = (
            recording is not None
            and judge.precise
            and same_inputs(recording, layouts.by_index(compiled.kernel, arrays), scalars)
        )
        observed.clear()
        try:
            run_it()
        except SimulatorError as error:
            told(job.source, emit, error, "new", name)
            raise
        for fault in observed.errors:
            if recording is None or not inherited(fault, recording, compiled, observed):
                problem(emit, rule_of(fault), f"the new kernel: {fault.message}", name, side="new")
        wrong = recording is None
        if recording is not None:
            results = layouts.by_index(compiled.kernel, recordings.copies(arrays)) if same else None
            done = None if results is None else Outcome(results, writers=observed.writers)
            comparison = judge.compare(recording, compiled, done)
            wrong = bool(comparison.problems)
            compared(emit, recording, comparison)
        for number in numbers[1:]:
            repeated = recordings.load_one(Path(job.folder), number, job.settings.fp8)
            again = None if wrong else judge.compare(repeated, compiled)
            wrong = wrong or bool(again and again.problems)
            compared(emit, repeated, again)
        if recording is not None and recording.kernel in of_triton.drawn:
            observed.session.recorder = None
            module = None if wrong else sys.modules["__main__"]
            of_triton.further(recording.kernel, module, compiled.arguments)
            observed.session.recorder = repeat
        emit({"event": "stop"})

    observed.session.recorder = repeat
    with installed(observed.session), hooked(Interpreter(of_triton.compare)):
        emit({"event": "begin"})
        return _as_script(job.source, job.settings, emit, "new")


def _as_script(source: Source, settings: Settings, emit: Emit, side: Side) -> int:
    """Execute a file as ``__main__``; the exit code that Python would give."""
    main = sys.modules["__main__"]
    try:
        with seeded(settings.seed):
            execute(source, "__main__", settings.script_args)
    except SystemExit as stop:
        return code_of(stop)
    except SimulatorError as error:
        print(f"error: {error}", file=sys.stderr)
        told(source, emit, error, side)
        return 1
    except TooLarge as error:
        problem(emit, UNVERIFIED, str(error))
        return 1
    except Exception:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.modules["__main__"] = main
    return 0
