"""A recorded launch once more with the old kernel, for what only that tells.

These are the tolerances that hold for its results; the exact results (``--golden fp64``), those of the kernel in
float64, which old and new are both measured against; and of a trace, the results without the roundings that a GPU does
on the way to a wider type.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from tl2npu.simulator.arithmetic.jittered import STEP
from tl2npu.simulator.ir import dtypes
from tl2npu.simulator.ir.buffer import Buffer
from tl2npu.simulator.ir.expr import Cast, Expr, Load, Var
from tl2npu.simulator.ir.parts import walk
from tl2npu.simulator.ir.stmt import Kernel
from tl2npu.simulator.ir.stmt import walk as statements
from tl2npu.simulator.lowering.uses import values
from tl2npu.simulator.standin.jit import JITKernel
from tl2npu.verify import layouts
from tl2npu.verify.compare import RELATIVE, difference, largest, tolerances
from tl2npu.verify.layouts import Arrays
from tl2npu.verify.matching import match
from tl2npu.verify.recording import Recording, copies
from tl2npu.verify.sessions import observe
from tl2npu.verify.settings import Counted, Settings


def prepared(recording: Recording, compiled: JITKernel, settings: Settings) -> Recording:
    """A launch of a trace with what the old kernel tells.

    Raises Unmatched where the kernel has other parameters, and SimulatorError where it cannot be run.
    """
    kernel = compiled.kernel
    if layouts.of(kernel):  # a trace has tensors as they lie in memory
        recording = replace(
            recording,
            inputs=layouts.by_index(kernel, recording.inputs),
            outputs=layouts.by_index(kernel, recording.outputs),
            places=layouts.places(kernel, recording.inputs),
        )
    found = replace(recording, tolerances=tolerances(kernel))
    if not settings.golden and not rounds_on_the_way(compiled.kernel):
        return found
    matched = match(recording, compiled)
    inputs = {name: recording.inputs[old] for name, old in matched.tensors.items()}
    scalars = {name: recording.scalars[old] for name, old in matched.scalars.items()}

    def run(arithmetic: Counted) -> Arrays:
        results = results_in(arithmetic, compiled, inputs, scalars, settings.device)
        return {matched.tensors[name]: array for name, array in results.items()}

    if settings.golden:
        found = replace(found, golden={name: array for name, array in run("widened").items() if _is_wide(array)})
    if rounds_on_the_way(compiled.kernel) and _agree(found, run("precise")):
        found = replace(found, unrounded=run("unrounded"))
    return found


def _agree(recording: Recording, results: Arrays) -> bool:
    """Whether the old kernel computes on the simulator what was recorded: only then its roundings are known."""
    rtol = recording.tolerances
    return all(
        difference(recording.outputs[name], array, rtol.get(array.dtype.name, 0.0), None) is None
        for name, array in results.items()
        if name not in recording.scratch
    )


def exact_results(compiled: Any, inputs: Arrays, scalars: dict[str, Any], device: str) -> Arrays:
    """The tensors of floats after a launch in float64."""
    found = results_in("widened", compiled, inputs, scalars, device)
    return {name: array for name, array in found.items() if _is_wide(array)}


def own_errors(
    compiled: Any, inputs: Arrays, outputs: Arrays, scalars: dict[str, Any], device: str
) -> dict[str, float]:
    """How far a result may be from that of another kernel that is as near to the exact one, by tensor.

    Nothing where the kernel cannot be run in float64. Of values far from 0 all elements of a row may be what is left of
    larger terms, as in a GELU, so that the row does not tell. Where most of a row is infinite only because its type is
    too small, the finite elements are left of terms as large as the exact ones, which are summed in float32.
    """
    try:
        exact = exact_results(compiled, inputs, scalars, device)
    except Exception:  # digits that no float64 has, or an index made of floats
        return {}
    with np.errstate(all="ignore"):
        return {
            name: max(_ERRORS * largest(array, outputs[name]), RELATIVE["float32"] * _overflowed(array, outputs[name]))
            for name, array in exact.items()
        }


def _overflowed(exact: np.ndarray, result: np.ndarray) -> float:
    """The root mean square of what a result has no numbers for."""
    sizes = np.abs(exact[np.isinf(result.astype(np.float64)) & np.isfinite(exact)]).astype(np.float64)
    return float(np.sqrt(np.mean(np.square(sizes)))) if sizes.size else 0.0


_ERRORS = 3.0
"""Twice the error of the old kernel, as with ``--golden``, and that itself."""


_RUNS = 4
"""As many runs with errors: of fewer, all may be small by chance."""


def term_sizes(compiled: Any, inputs: Arrays, scalars: dict[str, Any], device: str, names: Iterable[str]) -> Arrays:
    """How large the terms of each element of some results are; nothing where the kernel cannot be run in float64."""
    try:
        exact = exact_results(compiled, inputs, scalars, device)
        found = {name: np.zeros(exact[name].shape) for name in names}
        for seed in range(_RUNS):
            moved = results_in("jittered", compiled, inputs, scalars, device, seed)
            with np.errstate(all="ignore"):
                for name, squares in found.items():
                    squares += np.square((moved[name] - exact[name]) / STEP) / _RUNS
    except Exception:  # digits that no float64 has, or an index made of floats
        return {}
    return {name: np.sqrt(squares) for name, squares in found.items()}


def results_in(
    arithmetic: Counted, compiled: Any, inputs: Arrays, scalars: dict[str, Any], device: str, seed: int = 0
) -> Arrays:
    """All tensors after a launch in an arithmetic, by parameter name. ``inputs`` are all of them before it; both by
    index."""
    session = observe(arithmetic, "actual", "off", device, seed).session
    kernel = compiled.kernel
    laid = layouts.of(kernel)
    numbers = {p.name: p.number for p in (*kernel.params, *kernel.outputs) if isinstance(p, Buffer)}
    shared = copies(inputs)
    arrays = {id(a): layouts.in_memory(laid.get(name), a) for name, a in shared.items()}
    if arithmetic in ("widened", "jittered"):
        arrays = {key: a.astype(np.float64) if dtypes.is_float(a.dtype.name) else a for key, a in arrays.items()}
    given = {name: arrays[id(a)] for name, a in shared.items()}
    known = {p: scalars[p.name] for p in kernel.params if isinstance(p, Var)}
    with np.errstate(all="ignore"):
        session.execute(compiled, kernel, {numbers[name]: a for name, a in given.items()}, known)
    return layouts.by_index(kernel, given)


def _is_wide(array: np.ndarray) -> bool:
    return array.dtype == np.float64


def rounds_on_the_way(kernel: Kernel) -> bool:
    """Whether something is computed in halves and then converted to a wider float."""
    return any(
        isinstance(part, Cast) and dtypes.is_float(part.dtype) and _narrow(part.value) and dtypes.bits(part.dtype) > 16
        for launch in kernel.launches
        for stmt in statements(launch.body)
        for value in values(stmt)
        for part in walk(value)
    )


def _narrow(value: Any) -> bool:
    computed = isinstance(value, Expr) and not isinstance(value, Load)
    return computed and dtypes.is_float(value.dtype) and dtypes.bits(value.dtype) <= 16
