"""One recorded launch of the old kernel, repeated with the new one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from tl2npu.backends.device.runner import NOT_A_NUMBER
from tl2npu.simulator.errors import SimulatorError, UnsupportedOperator
from tl2npu.simulator.hazards.hazard import CAPACITY, UNINITIALISED
from tl2npu.simulator.ir import dtypes
from tl2npu.simulator.ir.buffer import Buffer
from tl2npu.simulator.ir.expr import Var
from tl2npu.simulator.lowering.lower import developer
from tl2npu.simulator.standin.jit import JITKernel
from tl2npu.verified import Comparison, Fault, Metrics
from tl2npu.verify import layouts
from tl2npu.verify.compare import Difference, difference, has_one_scale, largest, of_terms
from tl2npu.verify.drawing import SIZES
from tl2npu.verify.further import judged
from tl2npu.verify.golden import term_sizes
from tl2npu.verify.launching import CannotBuild, allocate, named
from tl2npu.verify.layouts import Arrays
from tl2npu.verify.matching import Match, Unmatched, match
from tl2npu.verify.metrics import metrics
from tl2npu.verify.naming import name_of
from tl2npu.verify.recording import Recording, Signature
from tl2npu.verify.sessions import Observed, Writers
from tl2npu.verify.settings import Settings
from tl2npu.verify.standards import OWN, Judgement, by_standard

UNVERIFIED, CHANGED, FAULTY, READINGS, MEMORY = "TL906", "TL907", "TL908", "TL909", "TL801"


@dataclass(frozen=True)
class Judge:
    """Compares launches under the given settings. ``actual`` and ``ideal`` are the sessions of the two readings;
    in ``numbers`` a maximum with NaN is the number.

    ``elsewhere``: who executes the new kernels, if not the simulator; then there is one reading only.
    """

    settings: Settings
    actual: Observed
    ideal: Observed
    numbers: Observed
    elsewhere: Elsewhere | None = None

    @property
    def precise(self) -> bool:
        """True if results are numbers."""
        return self.settings.arithmetic == "precise"

    def compare(self, recording: Recording, compiled: JITKernel, done: Outcome | None = None) -> Comparison:
        """Run the new kernel on the old inputs and compare every tensor that both have.

        ``done``: the outcome where the new kernel has run on the very same inputs already.
        """
        return _Launch(self, recording, compiled).compared_with(done)

    def has_standard(self, recording: Recording, name: str) -> bool:
        """Whether a tensor is judged as a whole, by a standard or against its exact result."""
        return self.precise and (self.settings.standard != OWN or name in recording.golden)

    def unmet(self, recording: Recording, name: str, left: np.ndarray, right: np.ndarray) -> list[tuple[str, str]]:
        """What a tensor lacks by the standard of the settings."""
        unmet = self._by_standard(recording, name, left, right).unmet
        text = f"{name} does not meet the standard {self.settings.standard}: {unmet}"
        return [(CHANGED, text + on(recording))] if unmet else []

    def figures(
        self, recording: Recording, name: str, left: np.ndarray, right: np.ndarray, is_output: bool
    ) -> list[Metrics]:
        """The figures of an output of a launch on its own inputs."""
        if recording.draw or not is_output or not self.precise:
            return []
        judgement = self._by_standard(recording, name, left, right)
        found = metrics(name, recording.golden.get(name, left), right, judgement.matched)
        return [replace(found, dtype=left.dtype.name, unmet=judgement.unmet)]

    def _by_standard(self, recording: Recording, name: str, left: np.ndarray, right: np.ndarray) -> Judgement:
        settings = self.settings
        usual = recording.tolerance(name, left.dtype.name)
        rtol = usual if settings.rtol is None else settings.rtol
        return by_standard(settings.standard, left, right, recording.golden.get(name), rtol, settings.atol)

    def _readings(
        self, recording: Recording, compiled: JITKernel, matched: Match, actual: Arrays, scratch: set[str]
    ) -> list[tuple[str, str]]:
        """Does the compiler make of a Developer-mode kernel what its author means?"""
        if self.elsewhere is not None or not any(developer(launch) for launch in compiled.kernel.launches):
            return []
        outcome = self._run(self.ideal, recording, compiled, matched)
        if outcome.arrays is None:
            why = outcome.problems[0][1]
            return [(READINGS, f"the kernel runs as compiled, but fails as written: {why}")]
        for param in (*compiled.kernel.params, *compiled.kernel.outputs):
            if not isinstance(param, Buffer) or param.name in scratch:
                continue
            old = matched.tensors.get(param.name, "")
            found = self._difference(recording, param, outcome.arrays[param.name], actual[param.name], old)
            if found is not None:
                wrote = _wrote(outcome.writers(param.name), found), ""
                sides = "as written", "as compiled"
                return [(READINGS, said(param.name, found, sides, wrote))]
        return []

    def _run(self, observed: Observed, recording: Recording, compiled: JITKernel, matched: Match) -> Outcome:
        copies: dict[str, np.ndarray] = {}
        given: Arrays = {}
        laid = layouts.of(compiled.kernel)
        for name, old in matched.tensors.items():
            first = recording.shared.get(old, old)
            if first not in copies:
                copies[first] = layouts.in_memory(laid.get(name), recording.inputs[first])
            given[name] = copies[first]
        by_name = {p.name: p for p in compiled.kernel.params if isinstance(p, Var)}
        scalars = {by_name[name]: recording.scalars[old] for name, old in matched.scalars.items()}
        observed.clear()
        try:
            arrays = allocate(compiled, observed.session, given, scalars)
            if self.elsewhere is not None:
                return self.elsewhere.run(recording, compiled, matched, named(compiled, arrays))
            observed.session.execute(compiled, compiled.kernel, arrays, scalars)
        except (UnsupportedOperator, CannotBuild) as error:
            return Outcome(None, [(UNVERIFIED, f"the new kernel cannot be run: {error}")])
        except SimulatorError as error:
            return Outcome(None, [(FAULTY, f"the new kernel: {error}")])
        except Exception as error:  # an index that is divided by 0: what the machine does then is not known
            return Outcome(None, [(FAULTY, f"the new kernel: {type(error).__name__}: {error}")])
        errors = [fault for fault in observed.errors if not inherited(fault, recording, compiled, observed)]
        if recording.draw == SIZES:  # tiles may be larger than those that were asked for
            errors = [fault for fault in errors if fault.kind != CAPACITY]
        hazards = [(rule_of(fault), f"the new kernel: {fault.message}") for fault in errors]
        return Outcome(layouts.by_index(compiled.kernel, named(compiled, arrays)), hazards, observed.writers)

    def _difference(
        self, recording: Recording, buffer: Buffer, left: np.ndarray, right: np.ndarray, name: str = ""
    ) -> Difference | None:
        """``name``: that of the tensor in the old kernel."""
        if self.settings.arithmetic == "algebraic":
            return difference(left, right, 0.0, 0.0)
        if self.settings.arithmetic == "structure":
            return None
        rtol = self.settings.rtol
        old = name or buffer.name
        usual = recording.tolerance(old, buffer.dtype)
        errors = recording.own_errors.get(old, 0.0)
        return difference(left, right, usual if rtol is None else rtol, self.settings.atol, errors)


class _Launch:
    """One launch on its way through a comparison: what was compared, and what was found."""

    def __init__(self, judge: Judge, recording: Recording, compiled: JITKernel) -> None:
        self.judge, self.recording, self.compiled = judge, recording, compiled
        self.problems: list[tuple[str, str]] = []
        self.compared: list[str] = []
        self.worst: float | None = None
        self.dropped: tuple[str, ...] = ()
        self.relaid: list[str] = []
        self.laid: list[str] = []
        self.unrounded: list[str] = []
        self.quiet: list[str] = []
        self.figures: list[Metrics] = []
        self.differs = False
        self._as_on_gpu: Outcome | None = None

    def compared_with(self, done: Outcome | None) -> Comparison:
        """Run the new kernel, unless it is ``done``, and compare every tensor that both have."""
        judge, recording, compiled = self.judge, self.recording, self.compiled
        try:
            matched = match(recording, compiled)
        except Unmatched as error:
            self.problems.append((UNVERIFIED, str(error)))
            return self._result()
        if twice := given_twice(recording):
            self.problems.append((UNVERIFIED, twice))
            return self._result()
        self._note_lost_outputs(matched)
        if not recording.draw:  # which has the call of the launch that it repeats
            self.problems += _call(recording, compiled, matched, done is not None)
        if judge.elsewhere is not None:
            self.recording = recording = judge.elsewhere.reference(recording)
        outcome = done or judge._run(judge.actual, recording, compiled, matched)
        self.problems += outcome.problems
        if outcome.arrays is None:
            return self._result()
        self._note_layouts(matched, outcome.arrays)
        scratch = {compiled.kernel.params[n].name for n in compiled.workspace_idx}
        for name, old in matched.tensors.items():
            if name not in scratch and old not in recording.scratch:
                self._compare(name, old, outcome, outcome.arrays[name], matched)
        self.problems += judge._readings(recording, compiled, matched, outcome.arrays, scratch)
        return self._result()

    def _result(self) -> Comparison:
        found = tuple(self.compared), self.worst, tuple(self.problems), self.dropped, tuple(self.relaid)
        more = tuple(self.laid), tuple(self.unrounded), (name_of(self.compiled),), self.recording.draw
        last = tuple(self.quiet), tuple(self.figures)
        return Comparison(self.recording.kernel, self.recording.call, *found, *more, *last)

    def _note_lost_outputs(self, matched: Match) -> None:
        recording = self.recording
        self.dropped = tuple(name for name in matched.gone if name not in recording.scratch)
        for name in self.dropped:
            if name in recording.made or (recording.on_gpu and _is_written(recording, name)):
                self.problems.append((CHANGED, f"the output {name} of the old kernel is missing in the new one"))

    def _note_layouts(self, matched: Match, arrays: Arrays) -> None:
        places, before = layouts.places(self.compiled.kernel, arrays), self.recording.places
        for name, old in matched.tensors.items():
            if not layouts.same(before.get(old), places.get(name)):
                self.relaid.append(old)
            elif old in before:
                self.laid.append(old)

    def _compare(self, name: str, old: str, outcome: Outcome, right: np.ndarray, matched: Match) -> None:
        """One tensor: ``name`` in the new kernel, ``old`` in the old one."""
        judge, recording = self.judge, self.recording
        left = recording.outputs[old]
        undefined = recording.undefined.get(old)
        if undefined is not None and undefined.shape == left.shape == right.shape:
            right = np.where(undefined, left, right)  # there is nothing to compare with
        if left.shape != right.shape or left.dtype != right.dtype:
            text = f"{old} is {_kind(left)} in the old kernel and {_kind(right)} in the new one"
            self.problems.append((CHANGED, text))
            return
        if old in recording.made or not same_bits(recording.inputs[old], left):
            self.compared.append(old)  # tensors that were only read are compared as well, but are no outputs
        counted = judged(recording, left, right)
        self.worst = max(self.worst or 0.0, largest(left, counted))
        self.figures += judge.figures(recording, old, left, right, old in self.compared)
        if judge.has_standard(recording, old):
            self.problems += judge.unmet(recording, old, left, counted)
            return
        buffer = next(b for b in (*self.compiled.kernel.outputs, *self.compiled.kernel.params) if b.name == name)
        assert isinstance(buffer, Buffer)
        found = judge._difference(recording, buffer, left, counted, old)
        found = found or self._small(old, buffer, left, counted, matched)
        if found is None or self._is_rounding(old, buffer, right) or self._is_of_numbers(old, buffer, left, matched):
            return
        if not self.differs:
            self.differs = True
            self._report(name, old, found, outcome, (left, counted))

    def _small(
        self, old: str, buffer: Buffer, left: np.ndarray, right: np.ndarray, matched: Match
    ) -> Difference | None:
        """A difference of an element that is small beside others of its vector, and not beside its own terms."""
        judge, recording = self.judge, self.recording
        usual, errors = recording.tolerance(old, buffer.dtype), recording.own_errors.get(old, 0.0)
        by_user = judge.settings.rtol is not None or judge.settings.atol is not None
        if not judge.precise or judge.elsewhere is not None or by_user or not usual or not has_one_scale(left):
            return None
        if difference(left, right, usual, np.zeros(()), errors) is None:
            return None
        inputs = {name: recording.inputs[given] for name, given in matched.tensors.items()}
        scalars = {name: recording.scalars[given] for name, given in matched.scalars.items()}
        sizes = term_sizes(self.compiled, inputs, scalars, judge.settings.device, [buffer.name]).get(buffer.name)
        if sizes is None or sizes.shape != left.shape:
            return None
        return difference(left, right, usual, of_terms(sizes, usual), errors)

    def _is_rounding(self, old: str, buffer: Buffer, right: np.ndarray) -> bool:
        """Whether the new kernel agrees with what the old one would give if it did not round on its way."""
        wide = self.recording.unrounded.get(old)
        if wide is None:
            return False
        if self.judge._difference(self.recording, buffer, wide, judged(self.recording, wide, right), old):
            return False
        self.unrounded.append(old)
        return True

    def _is_of_numbers(self, old: str, buffer: Buffer, left: np.ndarray, matched: Match) -> bool:
        """Whether the kernels agree on drawn values if a maximum with NaN is the number, as on a GPU."""
        judge, recording = self.judge, self.recording
        if not recording.draw or not recording.on_gpu or judge.elsewhere is not None:
            return False
        self._as_on_gpu = self._as_on_gpu or judge._run(judge.numbers, recording, self.compiled, matched)
        arrays = self._as_on_gpu.arrays
        if arrays is None:
            return False
        found, wide = arrays[buffer.name], recording.unrounded.get(old)
        for either in (left, wide) if wide is not None else (left,):
            if judge._difference(recording, buffer, either, judged(recording, either, found), old) is None:
                self.quiet.append(old)
                return True
        return False

    def _report(
        self, name: str, old: str, found: Difference, outcome: Outcome, sides: tuple[np.ndarray, np.ndarray]
    ) -> None:
        recording = self.recording
        if self.judge.elsewhere is not None and (nan := no_numbers(old, *sides)):
            self.problems.append((NOT_A_NUMBER, nan + on(recording)))
            return
        wrote = _wrote(recording.writers.get(old), found), _wrote(outcome.writers(name), found)
        self.problems.append((CHANGED, said(old, found, ("old", "new"), wrote) + on(recording)))


class Elsewhere(Protocol):
    """Executes new kernels outside of the simulator."""

    def reference(self, recording: Recording) -> Recording:
        """The recorded launch, with the outputs of the old kernel that count."""

    def run(self, recording: Recording, compiled: JITKernel, matched: Match, arrays: Arrays) -> Outcome:
        """The outcome of a launch on ``arrays``, by the new kernel's names. Raises CannotBuild."""


class Outcome:
    """Results of a run by parameter name, or None, what was wrong with it, and who wrote the elements of a tensor."""

    def __init__(
        self,
        arrays: Arrays | None,
        problems: list[tuple[str, str]] | None = None,
        writers: Callable[[str], Writers | None] = lambda _: None,
    ) -> None:
        self.arrays = arrays
        self.problems = problems or []
        self.writers = writers


def rule_of(fault: Fault) -> str:
    """The rule that a hazard breaks: that of ``check`` about memory, which counts what the compiler adds as well."""
    return MEMORY if fault.kind == CAPACITY else FAULTY


def inherited(fault: Fault, recording: Recording, compiled: JITKernel, observed: Observed) -> bool:
    """True for undefined data in elements of an output that the old kernel leaves undefined as well."""
    found = fault.details
    if found.get("kind") != UNINITIALISED or found.get("memory") != "GM":
        return False
    name = str(found.get("buffer"))
    try:
        old = match(recording, compiled).tensors.get(name, "")
    except Unmatched:
        return False
    before, now = recording.undefined.get(old), observed.undefined(name)
    return before is not None and now is not None and before.shape == now.shape and not (now & ~before).any()


def _call(recording: Recording, compiled: JITKernel, matched: Match, same_values: bool) -> Iterator[tuple[str, str]]:
    """What a caller of the old kernel gets or has to give that is different with the new one.

    ``same_values``: the new script gave each parameter the values that it had before, so its call has followed.
    """
    call = Signature.of(compiled)
    names = {**matched.tensors, **matched.scalars}
    returned = tuple(names.get(name, name) for name in call.returned)
    if returned != recording.returned and {*recording.returned} <= {*matched.tensors.values()}:
        yield (
            CHANGED,
            f"a call returns {_listed(recording.returned)} in the old kernel, {_listed(returned)} in the new one",
        )
    given = [names.get(name, name) for name in call.given]
    if not same_values:
        yield from order_of_arguments(recording, given)
    buffers = {p.name: p for p in compiled.kernel.params if isinstance(p, Buffer)}
    for name in call.given:
        old = matched.tensors.get(name)
        if old is None:
            continue
        kinds = {recording.inputs[old].dtype.name, np.dtype(dtypes.numpy_dtype(buffers[name].dtype)).name}
        if len(kinds) > 1 and kinds not in _SAME_BYTES:
            text = f"the caller passes {recording.inputs[old].dtype.name}, the new kernel takes {buffers[name].dtype}"
            yield CHANGED, f"{old}: {text}"


_SAME_BYTES = ({"bool", "int8"}, {"bool", "uint8"})


def order_of_arguments(recording: Recording, given: Sequence[str]) -> Iterator[tuple[str, str]]:
    """A call by position has to mean the same parameters; those that the new kernel has lost are left out."""
    before = [name for name in recording.given if name in given]
    now = [name for name in given if name in recording.given]
    if before != now:
        yield CHANGED, f"a call takes {_listed(before)} in the old kernel, {_listed(now)} in the new one"


def _listed(names: Sequence[str]) -> str:
    return f"({', '.join(names)})" if names else "nothing"


def on(recording: Recording) -> str:
    """On which inputs something was found, if not on those of the call itself."""
    changed = f", {recording.changed}" if recording.changed else ""
    return f" (on {recording.draw}{changed})" if recording.draw else ""


def given_twice(recording: Recording) -> str:
    """Why a launch cannot be compared that was given one memory for two tensors, of which one has a layout."""
    alike = {*recording.shared, *recording.shared.values()} & recording.places.keys()
    return f"{min(alike)} has a layout of its own and shares its memory with another tensor" if alike else ""


def same_inputs(recording: Recording, inputs: Arrays, scalars: dict[str, Any]) -> bool:
    """True if a launch has the inputs of a recorded one, bit for bit, so that it need not be repeated."""
    if scalars != recording.scalars:
        return False
    common = [n for n in inputs if n in recording.inputs]
    if len(common) < len(inputs):
        return False
    return all(same_bits(inputs[n], recording.inputs[n]) for n in common)


def no_numbers(name: str, old: np.ndarray, new: np.ndarray) -> str:
    """What is to be said of NaN in place of numbers; empty without."""
    if old.dtype.kind in "iub":
        return ""
    lost = np.isnan(new.astype(np.float64)) & np.isfinite(old.astype(np.float64))
    if not lost.any():
        return ""
    first = ", ".join(str(i) for i in np.argwhere(lost)[0])
    count = f"{int(lost.sum())} of {lost.size}"
    return f"{count} elements of {name} are NaN where the old kernel has numbers, first {name}[{first}]"


def _is_written(recording: Recording, name: str) -> bool:
    return name in recording.outputs and not same_bits(recording.inputs[name], recording.outputs[name])


def same_bits(left: np.ndarray, right: np.ndarray) -> bool:
    """Whether two arrays are the same to the bit."""
    return left.shape == right.shape and left.dtype == right.dtype and left.tobytes() == right.tobytes()


def _kind(array: np.ndarray) -> str:
    return f"{array.dtype.name}{list(array.shape)}"


def _wrote(writers: Writers | None, found: Difference) -> str:
    """The statement that wrote the first element that differs; empty where it is not known."""
    if writers is None:
        return ""
    numbers, statements = writers
    return f", by {statements[int(numbers[found.index])]}"


def said(name: str, found: Difference, sides: tuple[str, str], wrote: tuple[str, str]) -> str:
    """How a tensor differs between two sides."""
    where = f"{name}[{', '.join(map(str, found.index))}]"
    return (
        f"{where} is {found.old} ({sides[0]}{wrote[0]}) and {found.new} ({sides[1]}{wrote[1]}); {found.count} of "
        f"{found.size} elements differ{f', by up to {found.largest:.3g}' if found.largest else ''}"
    )
