"""A launch of the old kernel, repeated by a function that runs several new kernels one after the other."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from tl2npu.simulator.errors import SimulatorError, UnsupportedOperator
from tl2npu.simulator.lowering.lower import developer
from tl2npu.simulator.standin.session import Session
from tl2npu.simulator.standin.tensors import array_of, tensor_of
from tl2npu.verified import Comparison, Metrics
from tl2npu.verify import layouts
from tl2npu.verify.compare import difference, largest
from tl2npu.verify.further import judged
from tl2npu.verify.layouts import Arrays
from tl2npu.verify.naming import name_of
from tl2npu.verify.recording import Recording
from tl2npu.verify.replay import (
    CHANGED,
    FAULTY,
    READINGS,
    UNVERIFIED,
    Judge,
    given_twice,
    on,
    order_of_arguments,
    rule_of,
    said,
)

Chain = Callable[..., Any]


def compare_chain(judge: Judge, recording: Recording, chain: Chain) -> Comparison:
    """Run a chain on the old inputs, and compare what it gives and what it changes with the old results.

    Its parameters are tensors and scalars of the old kernel by name, its results the old outputs in order.
    """
    run = _Run(judge, recording, chain)
    problems: list[tuple[str, str]] = []
    if judge.elsewhere is not None:
        problems.append((UNVERIFIED, "only the simulator can run several new kernels for one old kernel"))
        return Comparison(recording.kernel, recording.call, (), None, tuple(problems))
    if twice := given_twice(recording):
        problems.append((UNVERIFIED, twice))
        return Comparison(recording.kernel, recording.call, (), None, tuple(problems))
    actual = run.results(problems)
    compared: list[str] = []
    unrounded: list[str] = []
    quiet: list[str] = []
    figures: list[Metrics] = []
    worst: float | None = None
    for name, found in (actual or {}).items():
        old = recording.outputs[name]
        if old.shape != found.shape or old.dtype != found.dtype:
            problems.append((CHANGED, f"{name} has another shape or element type in the new kernels"))
            continue
        compared.append(name)
        counted = judged(recording, old, found)
        worst = max(worst or 0.0, largest(old, counted))
        figures += judge.figures(recording, name, old, found, True)
        if judge.has_standard(recording, name):
            problems += judge.unmet(recording, name, old, counted)
            continue
        differs = run.difference(name, old, counted)
        wide = recording.unrounded.get(name)
        if differs is not None and wide is not None and not run.difference(name, wide, judged(recording, wide, found)):
            unrounded.append(name)
        elif differs is not None and run.is_of_numbers(name):
            quiet.append(name)
        elif differs is not None:
            problems.append((CHANGED, said(name, differs, ("old", "new"), ("", "")) + on(recording)))
    if actual is not None and run.is_developer:
        problems += run.readings(actual)
    if any(layouts.of(kernel) for kernel in run.kernels):
        problems.append((UNVERIFIED, "several new kernels with tensor layouts cannot be compared with one old kernel"))
    relaid = tuple(name for name, places in recording.places.items() if not layouts.same(places, None))
    shown = tuple(compared), worst, tuple(problems), (), relaid, (), tuple(unrounded), tuple(run.names), recording.draw
    return Comparison(recording.kernel, recording.call, *shown, quiet=tuple(quiet), metrics=tuple(figures))


class _Run:
    """A chain with what it is run on. ``kernels`` are those that it has launched, ``names`` what they are called."""

    def __init__(self, judge: Judge, recording: Recording, chain: Chain) -> None:
        self.judge, self.recording, self.chain = judge, recording, chain
        self.kernels: list[Any] = []
        self.names: dict[str, None] = {}
        self._as_on_gpu: Arrays | None = None

    @property
    def is_developer(self) -> bool:
        """True if the compiler and the author may read a launch differently."""
        return any(developer(launch) for kernel in self.kernels for launch in kernel.launches)

    def results(self, problems: list[tuple[str, str]]) -> Arrays | None:
        """Every tensor after the run, by its old name; None with a reason in ``problems`` where it cannot be run."""
        recording, session = self.recording, self.judge.actual.session
        copies = {n: a.copy() for n, a in recording.inputs.items() if n not in recording.shared}
        given: dict[str, Any] = {n: copies[recording.shared.get(n, n)] for n in recording.inputs}
        names = list(inspect.signature(self.chain).parameters)
        unknown = [name for name in names if name not in given and name not in recording.scalars]
        if unknown:
            problems.append((UNVERIFIED, f"the new kernel has a parameter {unknown[0]} that the old one does not have"))
            return None
        if not recording.draw:
            problems += order_of_arguments(recording, [name for name in names if name in recording.given])
        self.judge.actual.clear()
        before, session.recorder = session.recorder, self._note
        try:
            # Tensors of torch where it is loaded: the chain is host code, which may convert what it passes on.
            found = self.chain(*(tensor_of(given[n]) if n in given else recording.scalars[n] for n in names))
        except UnsupportedOperator as error:
            problems.append((UNVERIFIED, f"the new kernel cannot be run: {error}"))
            return None
        except SimulatorError as error:
            problems.append((FAULTY, f"the new kernel: {error}"))
            return None
        except Exception as error:
            problems.append((FAULTY, f"the new kernels cannot be run in order: {type(error).__name__}: {error}"))
            return None
        finally:
            session.recorder = before
        problems += [(rule_of(fault), f"the new kernel: {fault.message}") for fault in self.judge.actual.errors]
        outputs = recording.returned
        results = [] if found is None else list(found) if isinstance(found, (list, tuple)) else [found]
        if len(results) != len(outputs):
            problems.append((CHANGED, f"the new kernels return {len(results)} tensors, the old one {len(outputs)}"))
            return None
        returned = {name: array_of(value) for name, value in zip(outputs, results, strict=True)}
        return {**{n: given[n] for n in names if n in given}, **returned}

    def _note(self, compiled: Any, _: Arrays, __: dict[str, Any], run: Callable[[], None]) -> None:
        self.kernels.append(compiled.kernel)
        self.names[name_of(compiled)] = None
        run()

    def readings(self, actual: Arrays) -> list[tuple[str, str]]:
        """Does the compiler make of the kernels what their author means?"""
        problems: list[tuple[str, str]] = []
        ideal = self._as_in(self.judge.ideal.session, problems)
        if ideal is None:
            text = f"the kernels run as compiled, but fail as written: {problems[0][1]}"
            return [(READINGS, text)]
        for name, left in ideal.items():
            found = self.difference(name, left, actual[name])
            if found is not None:
                sides = "as written", "as compiled"
                return [(READINGS, said(name, found, sides, ("", "")))]
        return []

    def is_of_numbers(self, name: str) -> bool:
        """Whether the kernels agree on drawn values if a maximum with NaN is the number, as on a GPU."""
        recording = self.recording
        if not recording.draw or not recording.on_gpu:
            return False
        if self._as_on_gpu is None:
            self._as_on_gpu = self._as_in(self.judge.numbers.session, []) or {}
        found, sides = self._as_on_gpu.get(name), (recording.outputs[name], recording.unrounded.get(name))
        return found is not None and any(
            self.difference(name, side, judged(recording, side, found)) is None for side in sides if side is not None
        )

    def _as_in(self, other: Session, problems: list[tuple[str, str]]) -> Arrays | None:
        """The results with the reading and the arithmetic of another session; the kernels belong to the first."""
        session = self.judge.actual.session
        before = session.reading, session.arithmetic, session.executables
        session.reading, session.arithmetic, session.executables = other.reading, other.arithmetic, {}
        try:
            return self.results(problems)
        finally:
            session.reading, session.arithmetic, session.executables = before

    def difference(self, name: str, left: np.ndarray, right: np.ndarray) -> Any:
        """The first element that differs by more than the settings allow."""
        settings = self.judge.settings
        if settings.arithmetic == "algebraic":
            return difference(left, right, 0.0, 0.0)
        if settings.arithmetic == "structure":
            return None
        usual = self.recording.tolerance(name, left.dtype.name)
        errors = self.recording.own_errors.get(name, 0.0)
        return difference(left, right, usual if settings.rtol is None else settings.rtol, settings.atol, errors)
