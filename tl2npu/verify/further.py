"""Further inputs for a kernel that has run: one kind of values does not tell all wrong kernels from right ones.

A minimum in place of the maximum does no harm in a softmax of standard normal values, nor does a lost tail where there
is none. What the old kernel cannot take, or answers with infinities and NaN alone, judges nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.ir import dtypes
from tl2npu.simulator.ir.buffer import Buffer
from tl2npu.simulator.ir.expr import Var
from tl2npu.simulator.machine.symbols import symbols_of
from tl2npu.simulator.standin.session import Session
from tl2npu.verify.drawing import FURTHER, NO_NUMBERS, PRIMES, Draw, Kind, Sizes, draw, generator, numbers
from tl2npu.verify.launching import allocate, named
from tl2npu.verify.layouts import Arrays
from tl2npu.verify.recording import Recording
from tl2npu.verify.settings import Call, UsageError
from tl2npu.verify.shrink import ENOUGH, shape_of

Attempt = Callable[[Kind, Arrays, dict[str, Any]], str | None]
"""Runs the old kernel on inputs and keeps what comes of it; else says why that judges nothing."""

_LARGEST = ENOUGH >> 2
"""Kernels with more element operations, or elements, than that are run on the first inputs only."""


def of_call(compiled: Any, call: Call, seed: int, session: Session, attempt: Attempt) -> Iterator[str]:
    """Draw further inputs for a call, and say which were of use.

    Symbolic extents are primes where the old kernel takes them.
    """
    if _is_large(compiled):
        return
    params = compiled.kernel.params
    symbolic = [s for s in symbols_of(params) if not any(s is p for p in params) and s.name not in call.symbols]
    done: list[str] = []
    odd: list[str] = []
    for kind in FURTHER:
        why: list[str] = []
        for prime in (True, False) if symbolic and kind in PRIMES else (False,):
            try:
                drawn = draw(compiled, seed, call.inputs, call.symbols, Draw(kind, prime))
                scalars = {p: drawn.scalars[p.name] for p in params if isinstance(p, Var) and p.name in drawn.scalars}
                arrays = allocate(compiled, session, drawn.tensors, {**drawn.symbols, **scalars})
                failed = attempt(kind, named(compiled, arrays), drawn.scalars)
            except (SimulatorError, UsageError, ArithmeticError, ValueError, TypeError, LookupError) as error:
                failed = str(error)
            if failed is None:
                extents = ", ".join(f"{symbol.name} = {value}" for symbol, value in drawn.symbols.items() if prime)
                done.append(f"{kind} ({extents})" if extents else kind)
                odd += why
                break
            why.append(failed)
    if odd:
        yield f"the old kernel fails on odd extents: {odd[0]}"
    if done:
        yield f"also on {', '.join(done)}"


def of_launch(compiled: Any, inputs: Arrays, scalars: dict[str, Any], seed: int, attempt: Attempt) -> None:
    """Repeat a launch of a script with other floats in the tensors that it was given."""
    made = {compiled.kernel.params[n].name for n in (*compiled.out_idx, *compiled.workspace_idx)}
    given = {p.name: p for p in compiled.kernel.params if isinstance(p, Buffer) and p.name not in made}
    floats = [name for name, param in given.items() if dtypes.is_float(param.dtype)]
    if not floats or _is_large(compiled) or sum(a.size for a in inputs.values()) > _LARGEST:
        return
    sizes = Sizes.of(compiled.kernel)
    for kind in FURTHER:
        arrays = {name: array.copy() for name, array in inputs.items()}
        for name in floats:
            rng = generator(seed, name, kind)
            arrays[name][...] = numbers(given[name].dtype, arrays[name].shape, rng, kind, sizes)
        attempt(kind, arrays, scalars)


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
    return max(shape.work, shape.tensors) > _LARGEST or not math.isfinite(shape.work)
