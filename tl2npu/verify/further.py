"""Further inputs for a kernel that has run: one kind of values does not tell all wrong kernels from right ones.

A minimum in place of the maximum does no harm in a softmax of standard normal values, nor does a lost tail where there
is none. Inputs that the old kernel cannot handle, or answers with infinities and NaN alone, are ignored.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar

import numpy as np

from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.ir.expr import Var
from tl2npu.simulator.machine.symbols import symbols_of
from tl2npu.simulator.standin.jit import JITKernel
from tl2npu.simulator.standin.session import Session
from tl2npu.verify.drawing import FURTHER, NO_NUMBERS, PRIMES, SIZES, Draw, Kind, draw
from tl2npu.verify.launching import CannotBuild, allocate, named
from tl2npu.verify.layouts import Arrays
from tl2npu.verify.naming import name_of
from tl2npu.verify.ones import Larger, labels
from tl2npu.verify.recording import Recording
from tl2npu.verify.relaunch import Relaunch
from tl2npu.verify.settings import Call, UsageError
from tl2npu.verify.shrink import ENOUGH, shape_of

Changed = dict[str, Any]
"""What a launch changes beside the values of tensors: extents, scalars and arguments, by name."""
Attempt = Callable[[Any, Kind, Arrays, dict[str, Any], Changed], str | None]
"""Runs the old kernel on inputs and keeps what comes of it; else says why that judges nothing."""

LARGEST = ENOUGH >> 2
"""Kernels with more element operations, or elements, than that are run on the first inputs only."""


Launched = tuple[Arrays, dict[str, Any], Changed]
"""The tensors and scalars of a launch, and what it changes beside their values."""
_V = TypeVar("_V")
_NOT_RUN = (SimulatorError, CannotBuild, UsageError, ArithmeticError, ValueError, TypeError, LookupError)


class Further:
    """Repeats launches of the old kernels, and says on what. ``compile`` calls a kernel's factory again."""

    def __init__(
        self,
        seed: int,
        session: Session,
        attempt: Attempt,
        compile: Callable[[Any, dict[str, Any]], JITKernel],
        say: Callable[[str], None],
    ) -> None:
        self.seed, self.session, self.attempt, self.compile, self.say = seed, session, attempt, compile, say
        self._known: list[Any] = []
        self._units: dict[str, set[str]] = {}
        self._more: dict[str, set[str]] = {}

    def of_call(self, compiled: Any, call: Call) -> None:
        """Draw further inputs for a call. Symbolic extents are primes where the old kernel takes them."""
        if _is_large(compiled):
            return
        params = compiled.kernel.params
        symbolic = [s for s in symbols_of(params) if not any(s is p for p in params) and s.name not in call.symbols]

        def made(kind: Kind, prime: bool) -> Launched:
            arrays, scalars, symbols = self._drawn(compiled, call, Draw(kind, prime))
            return arrays, scalars, symbols if prime else {}

        self._tried(compiled, made, lambda kind: (True, False) if symbolic and kind in PRIMES else (False,))
        self._sizes(compiled, call)

    def of_launch(self, compiled: Any, inputs: Arrays, scalars: dict[str, Any]) -> None:
        """Repeat a launch of a script with other values, see ``relaunch.py``; once for each kernel with its sizes."""
        if compiled in self._known or _is_large(compiled) or sum(a.size for a in inputs.values()) > LARGEST:
            return
        self._known.append(compiled)
        launch = Relaunch(compiled, inputs, scalars, self.session)
        units = {f"`{name}`" for name, value in launch.numbers.items() if value == 1}
        self._units.setdefault(name_of(compiled), set()).update(units)
        self._tried(compiled, partial(launch.drawn, self.seed), launch.variations)
        self._sizes(compiled, Call("", {}))

    def end(self) -> None:
        """Say what was 1 in every launch."""
        for kernel, units in self._units.items():
            if left := sorted(units - self._more.get(kernel, set())):
                verb = "is" if len(left) == 1 else "are"
                self.say(f"{kernel}: {' and '.join(left)} {verb} 1 in every launch; other values are not verified")

    def _drawn(self, compiled: Any, call: Call, what: Draw) -> Launched:
        params = compiled.kernel.params
        drawn = draw(compiled, self.seed, call.inputs, call.symbols, what)
        scalars = {p: drawn.scalars[p.name] for p in params if isinstance(p, Var) and p.name in drawn.scalars}
        arrays = allocate(compiled, self.session, drawn.tensors, {**drawn.symbols, **scalars})
        return named(compiled, arrays), drawn.scalars, {symbol.name: value for symbol, value in drawn.symbols.items()}

    def _tried(
        self, compiled: Any, made: Callable[[Kind, _V], Launched], variations: Callable[[Kind], Iterable[_V]]
    ) -> None:
        """Have each kind of values tried with the first of its variations that the old kernel takes."""
        done: list[str] = []
        failed: dict[_V, str] = {}
        for kind in FURTHER:
            not_with: dict[_V, str] = {}
            for variation in variations(kind):
                if variation in failed:
                    continue
                changed: Changed = {}
                try:
                    arrays, scalars, changed = made(kind, variation)
                    why = self._attempted(compiled, kind, arrays, scalars, changed)
                except _NOT_RUN as error:
                    why = str(error)
                if why is None:
                    done.append(f"{kind} ({said(changed)})" if changed else kind)
                    failed |= not_with
                    break
                not_with[variation] = f"the old kernel fails with {said(changed)}: {why}" if changed else ""
        for text in [text for text in failed.values() if text][:1]:
            self.say(f"{name_of(compiled)}: {text}")
        if done:
            self.say(f"{name_of(compiled)}: also on {', '.join(done)}")

    def _sizes(self, compiled: Any, call: Call) -> None:
        """Try larger sizes where something is 1 in all launches; the first that the old kernel takes is kept."""
        name = name_of(compiled)
        units, more = self._units.setdefault(name, set()), self._more.setdefault(name, set())
        own = labels(compiled)
        more |= {label for label, one in own.items() if not one}
        if not {label for label, one in own.items() if one} - more:
            return
        larger = Larger(compiled, partial(self.compile, compiled), LARGEST)
        taken = False
        for arguments, other in larger.sizes():
            changed = {name: value for name, value in arguments.items() if value != larger.arguments[name]}
            try:
                arrays, scalars, _ = self._drawn(other, call, Draw())
                taken = self._attempted(other, SIZES, arrays, scalars, changed) is None
            except _NOT_RUN:
                continue
            if taken:
                self.say(f"{name}: also with {said(changed)}")
                more |= {label for label, one in labels(other).items() if not one}
                break
        units |= larger.units

    def _attempted(
        self, compiled: Any, kind: Kind, arrays: Arrays, scalars: dict[str, Any], changed: Changed
    ) -> str | None:
        failed = self.attempt(compiled, kind, arrays, scalars, changed)
        if failed is None:
            self._more.setdefault(name_of(compiled), set()).update(f"`{name}`" for name in changed)
        return failed


def said(changed: Changed) -> str:
    """What a launch changes, as messages name it."""
    texts: list[str] = []
    for name, value in changed.items():
        number = f"{value:.5g}" if isinstance(value, float) else str(value)
        texts.append(f"{name} {value}" if isinstance(value, str) else f"{name} = {number}")
    return ", ".join(texts)


def tells_nothing(outputs: Arrays, inputs: Arrays) -> bool:
    """Whether nothing but infinities and NaN came out of a launch."""
    written = [a for name, a in outputs.items() if a.tobytes() != inputs[name].tobytes()]
    return not any(_finite(array).any() for array in written)


def judged(recording: Recording, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """``new`` without the elements that judge nothing.

    Those are what overflows in the old kernel, as that may depend on the order of a sum. What it makes of infinities
    and NaN that it was given counts, but for the NaN of a kernel with matrix products: a mask that is added to a score
    lets a NaN of a masked place in, and one that selects does not.
    """
    if not recording.draw or old.shape != new.shape or old.dtype != new.dtype:
        return new
    if recording.draw not in NO_NUMBERS:
        return np.where(_finite(old), new, old)
    return np.where(_is_nan(old), old, new) if recording.products else new


def _finite(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind in "iub":
        return np.ones(array.shape, bool)
    return np.isfinite(array.astype(np.float64))


def _is_nan(array: np.ndarray) -> np.ndarray:
    return np.asarray(array != array, bool)


def _is_large(compiled: Any) -> bool:
    shape = shape_of(compiled.kernel)
    return max(shape.work, shape.tensors) > LARGEST or not math.isfinite(shape.work)
