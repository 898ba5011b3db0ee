"""Launches of Triton kernels, as Triton's interpreter ran them, repeated with the TileLang kernels in their place.

A TileLang kernel stands in the place of a Triton kernel if its factory has the name of that kernel, or that name with a
number (``k_2``); its n-th launch is compared with the n-th launch there. A parameter has the name of the pointer that
it stands for, and may see the memory behind it with another shape. What the Triton kernel computes of memory outside of
every tensor is not compared.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tl2npu.interpreter import launch as launches
from tl2npu.interpreter.launch import Launch, NoSuchView
from tl2npu.interpreter.session import Interpreter
from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.ir.buffer import Buffer
from tl2npu.simulator.standin.jit import JITKernel
from tl2npu.simulator.standin.session import Session
from tl2npu.verified import Comparison
from tl2npu.verify import telling
from tl2npu.verify.compare import difference, has_products, largest, tolerances
from tl2npu.verify.further import said as changes
from tl2npu.verify.further import tells_nothing
from tl2npu.verify.launching import CannotBuild, built, factory_of
from tl2npu.verify.layouts import Arrays
from tl2npu.verify.loading import Source
from tl2npu.verify.matching import Unmatched
from tl2npu.verify.recording import LIMIT, Recorder, Recording, Signature, TooLarge
from tl2npu.verify.replay import CHANGED, FAULTY, UNVERIFIED, Judge, said, same_bits
from tl2npu.verify.telling import Emit, problem, told
from tl2npu.verify.triton_further import Again, TritonFurther, Values

_PLAIN = {"float16": 5e-3, "bfloat16": 1e-2, "float32": 1e-4, "float64": 1e-9}
"""Relative tolerances between two Triton kernels, of which it is not known what they compute."""


class Undefined(Exception):
    """A launch of the old script has no result that a new kernel could have, too; ``str()`` says why."""


def recording_of_old(
    folder: Path, recorder: Recorder, source: Source, emit: Emit, seed: int | None = None
) -> Interpreter:
    """An interpreter that keeps every launch of the old script in a folder, numbered with those of ``recorder``.

    ``seed``: that of further inputs, if there are to be some. Raises TooLarge, from a launch, where the limit is
    reached.
    """
    turns: dict[str, int] = {}

    def kept(found: Launch) -> None:
        recorder.bytes += sum(a.nbytes for a in {id(a): a for a in (*found.before, *found.after)}.values())
        if recorder.bytes > LIMIT:
            raise TooLarge(f"the tensors of the launches are more than {LIMIT >> 30} GiB")
        launches.keep(folder, found)
        recorder.count += 1

    def attempt(launching: Any, launch: Launch, what: Again, changed: dict[str, Any], values: Values) -> bool:
        from tl2npu.interpreter.again import again, can_be_repeated

        if not can_be_repeated(launching):
            return False
        shapes, grid = (what.sized.shapes, what.sized.grid) if what.sized else ({}, launch.grid)
        size = what.sized.size if what.sized else None
        other = again(launching, launch, shapes, changed, grid, values)
        before, faults = interpreter.memory, list(interpreter.faults)
        interpreter.memory = other.memory
        try:
            found = other.recorded(recorder.count, -1)
        except Exception:  # sizes or numbers that the kernel was not made for
            return False
        finally:
            interpreter.memory = before
            strange, interpreter.faults[:] = interpreter.faults[len(faults) :], faults
        if strange or found.again or found.dense or tells_nothing(found.outputs, found.inputs):
            return False
        kept(replace(found, draw=what.kind, changed=changes(changed), free=tuple(what.free), resized=size))
        place = source.line(found.file, found.line)
        emit({"event": "launched", "kernel": found.kernel, "line": place, "triton": True})
        return True

    further = None if seed is None else TritonFurther(seed, attempt, lambda text: emit({"event": "note", "text": text}))

    def keep(launching: Any) -> None:
        name = launching.kernel
        emit({"event": "start", "kernel": name})
        turn = turns[name] = turns.get(name, -1) + 1
        before = len(interpreter.faults)
        found = launching.recorded(recorder.count, turn)
        for fault in interpreter.faults[before:]:
            emit({"event": "hazard", "message": fault.message, "kernel": name})
        kept(found)
        emit({"event": "launched", "kernel": name, "line": source.line(found.file, found.line), "triton": True})
        if further is not None:
            further.of_launch(launching, found)
        emit({"event": "stop"})

    interpreter = Interpreter(keep)
    return interpreter


def as_recording(launch: Launch, compiled: Any, session: Session, given: Arrays | None = None) -> Recording:
    """A launch as the recorded launch of a kernel that is called as ``compiled`` is.

    ``given``: the tensors that a script passes to ``compiled``; their shapes are those with which memory is seen.
    Tensors that the call makes begin as poison, whatever was in the memory before. Raises Unmatched, and Undefined
    where there is nothing to compare.
    """
    names = counterparts(launch, compiled)
    call = Signature.of(compiled).renamed(names)
    made = {*call.returned, *call.scratch}
    inputs: Arrays = {}
    outputs: Arrays = {}
    undefined: Arrays = {}
    written, defined = 0, 0
    params = {names.get(p.name, p.name): p for p in _buffers(compiled)}
    passed = {names.get(name, name): array for name, array in (given or {}).items()}
    for name, tensor in launch.all_tensors.items():
        shape = _shape(params.get(name), tensor.shape, passed.get(name))
        try:
            inputs[name] = np.array(launch.seen_as(name, shape))
            outputs[name] = np.array(launch.seen_as(name, shape, after=True))
        except NoSuchView as error:
            raise Unmatched(f"the new kernel has {name} with shape {list(shape)}, and {error}") from None
        changed = launches.differing(inputs[name], outputs[name])
        undefined[name] = launch.undefined(name, shape)
        written, defined = written + int(changed.sum()), defined + int((changed & ~undefined[name]).sum())
        if name in made:
            inputs[name] = np.full(shape, session.arithmetic_poison(tensor.dtype), inputs[name].dtype)
    if written and not defined:
        raise Undefined(f"everything that launch {launch.turn + 1} writes depends on memory outside of every tensor")
    least = tolerances(compiled.kernel, rounding=False)
    rounded = max((least[name] for name in launch.rounded if name in least), default=0.0)
    shared = {name: other for name, other in launch.shared.items() if not {name, other} & made}
    return Recording(
        launch.number,
        launch.kernel,
        launch.turn,
        _call(launch),
        launch.kernel,
        {**launch.constexprs, **launch.scalars},
        tuple(inputs),
        frozenset(made),
        call.scratch,
        call.given,
        call.returned,
        {name: max(usual, rounded) for name, usual in least.items()},
        inputs,
        outputs,
        dict(launch.scalars),
        {name: other for name, other in shared.items() if inputs[name].shape == inputs[other].shape},
        {},
        {},
        draw=launch.draw,
        changed=launch.changed,
        products=has_products(compiled.kernel),
        on_gpu=True,
        undefined={name: found for name, found in undefined.items() if found.any()},
        params=tuple(inputs),
    )


def counterparts(launch: Launch, compiled: Any) -> dict[str, str]:
    """Parameter of the new kernel -> the pointer that it stands for: of its name, or the next one of its type.

    Of the tensors that a call returns, it is the next one that the launch has written.
    """
    tensors = launch.all_tensors
    call = Signature.of(compiled)
    found = {p.name: p.name for p in _buffers(compiled) if p.name in tensors}
    left = [name for name in tensors if name not in found]
    for param in _buffers(compiled):
        if param.name in found or param.name in call.scratch:
            continue
        fits = [name for name in left if tensors[name].dtype == param.dtype]
        fits = [name for name in fits if param.name in call.returned and name in launch.written] or fits
        if fits:
            found[param.name] = fits[0]
            left.remove(fits[0])
    return found


def _buffers(compiled: Any) -> list[Buffer]:
    return [p for p in (*compiled.kernel.params, *compiled.kernel.outputs) if isinstance(p, Buffer)]


def _shape(param: Buffer | None, own: tuple[int, ...], given: np.ndarray | None) -> tuple[int, ...]:
    if given is not None:
        return given.shape
    known = [extent for extent in param.shape if isinstance(extent, int)] if param is not None else []
    return tuple(known) if param is not None and len(known) == len(param.shape) else own


def _call(launch: Launch) -> str:
    told = ", ".join(f"{name}={value!r}" for name, value in {**launch.constexprs, **launch.scalars}.items())
    return f"{launch.kernel}({told})"


def repeat(source: Source, launch: Launch, module: ModuleType, judge: Judge, emit: Emit) -> bool:
    """Repeat a launch with the kernel that the factory of its name in a module gives; whether nothing is wrong."""
    if launch.draw:
        return repeat_drawn(launch, module, judge, emit)
    if factory_of(module, launch.kernel) is None:
        text = f"{source.shown} has no factory {launch.kernel!r}, and as a script it does not launch such a kernel"
        problem(emit, UNVERIFIED, text, launch.kernel)
        return False
    if type(getattr(module, launch.kernel, None)).__module__.startswith("triton."):
        text = f"{source.shown} still has the Triton kernel {launch.kernel!r}, and as a script it does not launch it"
        problem(emit, UNVERIFIED, text, launch.kernel)
        return False
    emit({"event": "start", "kernel": launch.kernel})
    right = False
    try:
        new = _built(launch, module, judge, {})
        recording = as_recording(launch, new, judge.actual.session)
    except (CannotBuild, Unmatched) as error:
        problem(emit, UNVERIFIED, f"the new kernel: {error}", launch.kernel)
    except Undefined as error:
        _skipped(emit, launch, error)
    except SimulatorError as error:
        told(source, emit, error, "new", launch.kernel)
    except Exception as error:
        text = f"the new kernel cannot be built: {type(error).__name__}: {error}"
        problem(emit, FAULTY, text, launch.kernel, side="new")
    else:
        _partly(emit, launch, recording)
        comparison = judge.compare(recording, new)
        right = not comparison.problems
        telling.compared(emit, recording, comparison)
    emit({"event": "stop"})
    return right


def _built(launch: Launch, module: ModuleType, judge: Judge, beside: dict[str, Any]) -> JITKernel:
    """The new kernel; ``beside``: what its factory is given that the old kernel is not."""
    arguments = {**beside, **launch.constexprs, **launch.scalars}
    new = built(module, launch.kernel, arguments, judge.actual.session, of_old=True)
    if not isinstance(new, JITKernel):
        raise CannotBuild("it launches several kernels")
    return new


def _resized(launch: Launch, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments that the new script gave a factory, with the size that was changed.

    Raises Unmatched for a multiple of it, which may be one of something else.
    """
    if launch.resized is None:
        return arguments
    size, new = launch.resized
    beside = {name: value for name, value in arguments.items() if name not in {*launch.constexprs, *launch.scalars}}
    for name, value in beside.items():
        if type(value) is int and value > size and value % size == 0:
            raise Unmatched(f"its {name} may go with {launch.changed}")
    return {name: new if type(value) is int and value == size else value for name, value in beside.items()}


def repeat_drawn(
    launch: Launch, module: ModuleType, judge: Judge, emit: Emit, arguments: dict[str, Any] | None = None
) -> bool:
    """Repeat a launch that is none of the script; whether nothing is wrong. What the script's own has told is not told
    again, and a new kernel without such a parameter is no error. ``arguments``: those that the new script's factory was
    given."""
    function = factory_of(module, launch.kernel)
    several = factory_of(module, f"{launch.kernel}_2") is not None
    if several or function is None or type(function).__module__.startswith("triton."):
        emit({"event": "agrees", "number": launch.number})
        return True
    emit({"event": "start", "kernel": launch.kernel})
    right = True
    try:
        new = _built(launch, module, judge, _resized(launch, arguments or {}))
        taken = {*new.arguments, *(param.name for param in new.kernel.params)}
        if lost := [name for name in launch.free if name not in taken]:
            raise Unmatched(f"it has no {' and no '.join(lost)}")
        recording = as_recording(launch, new, judge.actual.session)
    except Exception as error:
        text = f"not compared on {launch.changed or 'other values'}: the new kernel: {error}"
        emit({"event": "note", "text": f"{launch.kernel}: {text}"})
        emit({"event": "agrees", "number": launch.number})
    else:
        comparison = judge.compare(recording, new)
        right = not comparison.problems
        telling.compared(emit, recording, comparison)
    emit({"event": "stop"})
    return right


def _skipped(emit: Emit, launch: Launch, why: Undefined) -> None:
    emit({"event": "note", "text": f"{launch.kernel}: {why}; it is not compared"})
    emit({"event": "agrees", "number": launch.number})


def _partly(emit: Emit, launch: Launch, recording: Recording) -> None:
    for name in launch.dense:
        text = f"{name} is not contiguous in launch {launch.turn + 1}, and the old kernel reads outside of it"
        emit({"event": "note", "text": f"{launch.kernel}: {text}; compared on a contiguous copy"})
    for name, where in recording.undefined.items():
        text = (
            f"{int(where.sum())} of {where.size} elements of {name} depend on memory outside of every tensor in launch"
        )
        emit({"event": "note", "text": f"{launch.kernel}: {text} {launch.turn + 1}; they are not compared"})


class Waiting:
    """The launches of the old script that wait for the n-th launch of a kernel in their place."""

    def __init__(self, folder: Path, judge: Judge, emit: Emit) -> None:
        self.folder, self.judge, self.emit = folder, judge, emit
        self.numbers = {(found.kernel, found.turn): found.number for found in launches.load(folder) if not found.draw}
        self.turns: dict[str, int] = {}
        self.kernels = {kernel for kernel, _ in self.numbers}
        self.drawn: dict[str, list[int]] = {}
        for found in launches.load(folder):
            if found.draw:
                self.drawn.setdefault(found.kernel, []).append(found.number)

    def further(self, kernel: str, module: ModuleType | None, arguments: dict[str, Any] | None = None) -> None:
        """Repeat the launches of a kernel that are none of the script, once; without a module there is nothing to
        repeat them with. ``arguments``: those of the new factory in the script."""
        for number in self.drawn.pop(kernel, ()):
            if module is None:
                self.emit({"event": "agrees", "number": number})
                continue
            launch = launches.load_one(self.folder, number)
            if not repeat_drawn(launch, module, self.judge, self.emit, arguments):
                module = None

    def recording(self, compiled: Any, arrays: Arrays) -> Recording | None:
        """What a launch of a TileLang kernel is compared with; None where it stands in no kernel's place."""
        launch = self._next(compiled.factory)
        if launch is None:
            return None
        try:
            found = as_recording(launch, compiled, self.judge.actual.session, arrays)
            _partly(self.emit, launch, found)
            return found
        except Unmatched as error:
            problem(self.emit, UNVERIFIED, f"the new kernel: {error}", launch.kernel)
            return None
        except Undefined as error:
            _skipped(self.emit, launch, error)
            return None

    def compare(self, launching: Any) -> None:
        """Run a launch of a Triton kernel of the new script, before that on the inputs of the old one to compare."""
        self.emit({"event": "start", "kernel": launching.kernel})
        old = self._next(launching.kernel)
        if old is None:
            launching.run()
        else:
            with launching.given(old.inputs):
                found = compared(old, launching.recorded(old.number, old.turn))
            launching.run()
            self.emit({"event": "comparison", **asdict(found), "number": old.number})
            self.further(old.kernel, None)
        self.emit({"event": "stop"})

    def _next(self, factory: str) -> Launch | None:
        kernel = self._kernel(factory)
        turn = self.turns[kernel] = self.turns.get(kernel, -1) + 1
        number = self.numbers.pop((kernel, turn), None)
        return None if number is None else launches.load_one(self.folder, number)

    def _kernel(self, factory: str) -> str:
        """The Triton kernel in whose place a factory stands; a kernel may need several, ``k``, ``k_2``, and so on."""
        stem, _, number = factory.rpartition("_")
        return stem if factory not in self.kernels and number.isdigit() and stem in self.kernels else factory


def compared(old: Launch, new: Launch) -> Comparison:
    """Two Triton kernels, on the same inputs as far as they have the same tensors."""
    problems: list[tuple[str, str]] = []
    worst = 0.0
    common = [name for name in old.inputs if name in new.inputs]
    gone = [name for name in old.written if name not in new.inputs]
    problems += [(UNVERIFIED, f"the new kernel has no {name}, which the old one writes") for name in gone]
    for name in common:
        if not same_bits(old.inputs[name], new.inputs[name]):
            kinds = [f"{a.dtype.name}{list(a.shape)}" for a in (old.inputs[name], new.inputs[name])]
            problems.append((UNVERIFIED, f"the scripts launch it with {kinds[0]} and {kinds[1]} for {name}"))
    for name in common if not problems else ():
        left, right = old.outputs[name], new.outputs[name]
        found = difference(left, right, _PLAIN.get(old.all_tensors[name].dtype, 0.0), None)
        worst = max(worst, largest(left, right))
        if found is not None:
            problems.append((CHANGED, said(name, found, ("old", "new"), ("", ""))))
            break
    return Comparison(old.kernel, _call(old), old.written, worst, tuple(problems), by=(new.kernel,))
