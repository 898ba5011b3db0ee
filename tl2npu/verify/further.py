"""Further inputs for a kernel that has run: one kind of values does not tell all wrong kernels from right ones.

A minimum in place of the maximum does no harm in a softmax of standard normal values, nor does a lost tail where there
is none. Inputs that the old kernel cannot handle, or answers with infinities and NaN alone, are ignored.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, TypeVar

import numpy as np

from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.ir.buffer import Buffer, Region
from tl2npu.simulator.ir.expr import Expr, Var
from tl2npu.simulator.ir.stmt import For, Kernel, Stmt
from tl2npu.simulator.ir.stmt import walk as statements
from tl2npu.simulator.machine.symbols import symbols_of
from tl2npu.simulator.standin.jit import JITKernel
from tl2npu.simulator.standin.session import Session
from tl2npu.verify.drawing import FURTHER, NO_NUMBERS, PRIMES, SIZES, Draw, Kind, draw
from tl2npu.verify.launching import CannotBuild, allocate, named
from tl2npu.verify.layouts import Arrays
from tl2npu.verify.naming import name_of
from tl2npu.verify.recording import Recording
from tl2npu.verify.relaunch import Relaunch
from tl2npu.verify.settings import Call, UsageError
from tl2npu.verify.shrink import ENOUGH, Shape, shape_of

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
        own = _labels(compiled)
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
                more |= {label for label, one in _labels(other).items() if not one}
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
    return np.where(np.asarray(old != old, bool), old, new) if recording.products else new


def _finite(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind in "iub":
        return np.ones(array.shape, bool)
    return np.isfinite(array.astype(np.float64))


def _is_large(compiled: Any) -> bool:
    shape = shape_of(compiled.kernel)
    return max(shape.work, shape.tensors) > LARGEST or not math.isfinite(shape.work)


# What is 1 in every launch of a kernel: an axis, a loop or a factor of which a single one tells nothing.
#
# ``x[b]`` and ``x[0]`` are the same in a batch of one, and so are a sum that is carried over a loop and one that is
# not. Where the factory gives a larger size, that is tried as well; what is left is told.

Compile = Callable[[dict[str, Any]], JITKernel]
"""The kernel that the factory gives for arguments."""

_NOT_MADE = (SimulatorError, CannotBuild, ValueError, TypeError, ArithmeticError, AssertionError, LookupError)


def _labels(compiled: JITKernel) -> dict[str, bool]:
    """The arguments, loops and axes of the grid of a kernel, as messages name them -> whether they are 1."""
    found = {f"`{name}`": compiled.arguments[name] == 1 for name in _numbers(compiled.arguments)}
    for name, count in zip(_counted(compiled.kernel), shape_of(compiled.kernel).counts, strict=True):
        found[name] = found.get(name, True) and count == 1
    return found


class Larger:
    """The sizes that a factory gives beside that of a launch.

    ``units`` are what is 1 in the launch and would not be for other arguments, as messages name it; complete when
    ``sizes`` has come to its end.
    """

    def __init__(self, compiled: JITKernel, compile: Compile, most: int) -> None:
        self.compiled, self.compile, self.most = compiled, compile, most
        self.arguments = compiled.arguments
        self.shape = shape_of(compiled.kernel)
        self.units: set[str] = set()
        self._single = [name for name in _numbers(self.arguments) if self.arguments[name] == 1]
        self._counts = [number for number, count in enumerate(self.shape.counts) if count == 1]
        self._names = list(_counted(compiled.kernel))

    def sizes(self) -> Iterator[tuple[dict[str, Any], JITKernel]]:
        """Arguments with the kernel for them: all that can be larger at once, then one after the other."""
        current, steps = self.compiled, []
        for name in _numbers(self.arguments):
            found = self._step(current, name)
            if found is not None:
                steps.append({**self.arguments, name: found.arguments[name]})
                current = found
        if steps:
            yield current.arguments, current
        for arguments in steps if len(steps) > 1 else ():
            try:
                yield arguments, self.compile(arguments)
            except _NOT_MADE:
                continue

    def _step(self, current: JITKernel, name: str) -> JITKernel | None:
        """The kernel with an argument that is larger, if something is no longer single then.

        Its tiles have the same sizes, or hold two for one where the argument is the size of a tile.
        """
        value, single = self.arguments[name], name in self._single
        if not single and not self._counts:
            return None
        before = shape_of(current.kernel)
        for factor in (3, 2) if isinstance(value, int) else (1.5,):
            try:
                found = self.compile({**current.arguments, name: value * factor})
            except _NOT_MADE:
                continue
            shape = shape_of(found.kernel)
            alike = len(shape.counts) == len(self.shape.counts)
            more = {self._names[n] for n in self._counts if alike and before.counts[n] == 1 != shape.counts[n]}
            if isinstance(value, int) and not _divides(current.kernel, found.kernel, factor):
                continue
            matters = single and _told(found.kernel) != _told(current.kernel)
            self.units |= more | ({f"`{name}`"} if matters else set())
            fits = (single and factor == 2) or _tiles(shape) == _tiles(self.shape)
            if (more or matters) and fits and max(shape.work, shape.tensors) <= self.most:
                return found
        return None


def _numbers(arguments: dict[str, Any]) -> list[str]:
    """The arguments that are numbers above 0; of floats only a factor of 1."""
    return [
        name
        for name, value in arguments.items()
        if (isinstance(value, int) and not isinstance(value, bool) and value > 0)
        or (isinstance(value, float) and value == 1)
    ]


def _counted(kernel: Kernel) -> Iterator[str]:
    """How messages name the counts of ``shape_of``, in their order."""
    for launch in kernel.launches:
        for number in range(len(launch.extents)):
            name = f"`{launch.blocks[number].name}`" if number < len(launch.blocks) else f"{number + 1}"
            yield f"axis {name} of the grid"
        for stmt in statements(launch.body):
            if isinstance(stmt, For):
                yield f"the loop over `{stmt.var.name}` in line {stmt.site.line}"


def _tiles(shape: Shape) -> list[Any]:
    """The tiles of a kernel: type and size. Their memory is known once the kernel has run."""
    return [(item[0], item[2]) for item in shape.structure if len(item) == 3 and isinstance(item[2], tuple)]


def _told(kernel: Kernel) -> tuple[Any, ...]:
    """All numbers of a kernel: its sizes and constants. What changes none of them is an option of its compilation."""
    shape = shape_of(kernel)
    inside = [list(_constants(stmt)) for launch in kernel.launches for stmt in statements(launch.body)]
    return _tiles(shape), shape.counts, _extents(kernel), inside


def _divides(before: Kernel, after: Kernel, factor: float) -> bool:
    """Whether extents of tensors that become smaller are divided by the factor without a rest: `heads // groups`."""
    pairs = zip(*(itertools.chain(*_extents(kernel)) for kernel in (before, after)), strict=False)
    return all(other * factor == one for one, other in pairs if other < one)


def _extents(kernel: Kernel) -> list[tuple[int, ...]]:
    """What is a number in the shapes of the tensors."""
    return [tuple(d for d in p.shape if isinstance(d, int)) for p in kernel.params if isinstance(p, Buffer)]


def _constants(part: Any) -> Iterator[Any]:
    """The numbers in a statement, without those in its body and its annotations."""
    if isinstance(part, (bool, int, float)):
        yield part
    elif isinstance(part, (tuple, list)):
        for item in part:
            if not isinstance(item, Stmt):
                yield from _constants(item)
    elif isinstance(part, (Stmt, Expr, Region)) and not isinstance(part, Var):
        for name, value in vars(part).items():
            if name != "notes":
                yield from _constants(value)
    elif isinstance(part, dict):
        yield from _constants(list(part.values()))
