"""What tl2npu makes of a program, set against the oracle."""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes  # noqa: F401  # NumPy learns bfloat16 by it
import numpy as np

from tests.generated import program as p
from tests.generated.oracle import agrees, run
from tests.generated.values import Discard, Value
from tests.simulator.kernels import load
from tl2npu import InputError, Options, check, migrate
from tl2npu.results import FileResult
from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.hazards.report import Report
from tl2npu.simulator.standin.session import Session

DEFAULTS = Options()
OK, PARTIAL, UNCHANGED, REFUSED, DISCARDED = "ok", "partial", "unchanged", "refused", "discarded"
WITH_ERRORS = "migrated with errors"
SILENT, INVALID, HAZARD = "SILENT difference", "invalid for the simulator", "hazard"
CHECK, INTERNAL, OLD = "error of check", "internal error", "old kernel differs"
CAUGHT = "refused by the check of every run"
FAULTS = (SILENT, INVALID, HAZARD, CHECK, INTERNAL, OLD, CAUGHT)
"""``CAUGHT``: a pass is wrong, or the check is."""


@dataclass(frozen=True)
class Verdict:
    """``kind``: one of the constants of this module. ``codes``: of a refusal. ``detail``: what differs."""

    kind: str
    detail: str = ""
    codes: tuple[str, ...] = ()
    new_text: str = ""

    @property
    def is_fault(self) -> bool:
        return self.kind in FAULTS


@dataclass
class Counts:
    """Verdicts of many programs."""

    kinds: dict[str, int] = field(default_factory=dict)
    codes: dict[str, int] = field(default_factory=dict)

    def add(self, verdict: Verdict) -> None:
        self.kinds[verdict.kind] = self.kinds.get(verdict.kind, 0) + 1
        for code in verdict.codes:
            self.codes[code] = self.codes.get(code, 0) + 1


def inputs_of(program: p.Program, seed: int) -> dict[str, np.ndarray]:
    """Small numbers that every type holds exactly, so that most programs have exact values for long."""
    rng = np.random.default_rng(seed)
    sizes = dict(program.sizes)
    made = {}
    for tensor in program.tensors:
        if tensor.kind != "out":
            shape = tuple(extent_of(e, sizes) for e in tensor.shape)
            if tensor.dtype.startswith(("int", "uint")):
                made[tensor.name] = rng.integers(0 if tensor.dtype == "uint8" else -4, 8, shape).astype(tensor.dtype)
            else:
                made[tensor.name] = (rng.integers(-16, 17, shape) / 8).astype(tensor.dtype)
    return made


def extent_of(e: p.Expr, sizes: Mapping[str, int]) -> int:
    """A size, from names, numbers and their sums, products and quotients."""
    if isinstance(e, p.Const):
        return int(e.value)
    if isinstance(e, p.Name):
        return sizes[e.name]
    assert isinstance(e, p.Bin)
    a, b = extent_of(e.left, sizes), extent_of(e.right, sizes)
    return {"+": a + b, "-": a - b, "*": a * b, "//": a // b, "ceildiv": -(-a // b)}[e.op]


def expected_of(program: p.Program, inputs: Mapping[str, np.ndarray]) -> dict[str, Value]:
    """The oracle's outputs. Raises Discard where they say too little."""
    for symbol in program.spelled("symbolic", ()):
        if not any(t.kind != "out" and p.Name(symbol) in t.shape for t in program.tensors):
            raise Discard("no input has the symbolic extent")
    outputs = run(program, inputs)
    known = [np.isfinite(v.slack).mean() for v in outputs.values() if np.size(v.slack)]
    if not known or min(known) < 0.25:
        raise Discard("too little is known of the outputs")
    return outputs


def judge(program: p.Program, text: str, seed: int = 0, both: bool = True, options: Options = DEFAULTS) -> Verdict:
    """The verdict of a program, whose text this is. ``both``: also execute the old kernel, unless it is in Triton."""
    inputs = inputs_of(program, seed)
    try:
        expected = expected_of(program, inputs)
    except Discard as why:
        return Verdict(DISCARDED, str(why))
    try:
        result = migrate(text, filename="kernel.py", options=options)
    except InputError as error:
        return Verdict(INTERNAL, str(error))
    except Exception:
        return Verdict(INTERNAL, traceback.format_exc(limit=-4))
    if both:
        kind, why = _executed(program, text, inputs, expected)
        if "cannot make uint" in why:  # nor can TVM
            return Verdict(DISCARDED, why)
        if kind != OK:
            return Verdict(OLD, f"{kind}: {why}")
    codes = _codes(result)
    dispositions = {k.disposition for k in result.kernels}
    if caught := [d.message for d in result.diagnostics if d.code == "TL970"]:
        return Verdict(CAUGHT, caught[0], codes)
    if not dispositions or "refused" in dispositions:
        return Verdict(REFUSED, " ".join(codes), codes)
    if dispositions == {"unchanged"}:
        return Verdict(UNCHANGED, " ".join(codes), codes)
    new = result.new_text or ""
    errors = [d for d in check(new, options=options).diagnostics if d.severity == "error"]
    told = {code for kernel in result.kernels for code in kernel.errors}
    if told != {d.code for d in errors} and dispositions == {"migrated"}:
        found = [f"{d.line}: {d.code} {d.message}" for d in errors]
        return Verdict(CHECK, "\n".join([f"told: {' '.join(sorted(told))}", *found]), new_text=new)
    if told:
        return Verdict(WITH_ERRORS, " ".join(sorted(told)), tuple(sorted(told)), new)
    kind, why = _executed(program, new, inputs, expected)
    warned = {d.code for d in result.diagnostics} & {
        "TL439",
        "TL720",
        "TL801",
    }  # sizes of the factory that nobody calls
    if kind == INVALID and why.startswith("OutOfBounds"):  # AscendNPU IR clamps nothing
        warned &= {"TL439"}
        kind = HAZARD if warned else kind
    if kind == HAZARD and warned and (" bytes on " in why or "TL439" in warned):
        return Verdict(WITH_ERRORS, why, tuple(sorted(warned)), new)
    if kind == OK and dispositions != {"migrated"}:
        return Verdict(PARTIAL, " ".join(codes), codes, new)
    return Verdict(kind, why, new_text=new)


def _codes(result: FileResult) -> tuple[str, ...]:
    """Why kernels are not migrated."""
    errors = {d.code for d in result.diagnostics if d.severity == "error"}
    return tuple(sorted(errors or {c for k in result.kernels if k.disposition != "migrated" for c in k.codes}))


def _executed(
    program: p.Program, text: str, inputs: Mapping[str, np.ndarray], expected: Mapping[str, Value]
) -> tuple[str, str]:
    """The kernel of a text on the simulator: what kind of fault, and which."""
    report = Report()
    try:
        got = outputs_of(program, text, inputs, report)
    except SimulatorError as error:
        return INVALID, f"{type(error).__name__}: {error}"
    except Exception:
        return INVALID, traceback.format_exc(limit=-3)
    if report.errors:
        return HAZARD, "\n".join(hazard.message for hazard in report.errors[:3])
    return differences(expected, got)


def differences(expected: Mapping[str, Value], got: Mapping[str, np.ndarray]) -> tuple[str, str]:
    """OK, or the first element that differs."""
    for name, value in expected.items():
        right = agrees(value, got[name])
        if not right.all():
            at = tuple(int(n) for n in np.argwhere(~right)[0])
            return SILENT, (
                f"{name}{list(at)}: expected {value.value[at]}, got {float(got[name][at])} "
                f"({int((~right).sum())} of {right.size} elements differ; slack {value.slack[at]:.3g})"
            )
    return OK, ""


class _Tensor(np.ndarray):
    """As much of a torch tensor as the code around a launch asks for."""

    def is_contiguous(self) -> bool:
        return bool(self.flags.c_contiguous)

    def stride(self, axis: int) -> int:
        return self.strides[axis] // self.itemsize

    def numel(self) -> int:
        return self.size

    def view(self, *shape: Any) -> Any:
        return self.reshape(shape) if shape and isinstance(shape[0], int) else super().view(*shape)


def outputs_of(
    program: p.Program, text: str, inputs: Mapping[str, np.ndarray], report: Report
) -> dict[str, np.ndarray]:
    """Run ``kern()`` of a text on copies of the inputs, or its ``run`` if there is one."""
    space = load(text, Session(watch=report.observer))
    sizes = dict(program.sizes)
    arrays = {
        t.name: (
            np.array(inputs[t.name])
            if t.kind != "out"
            else np.zeros(tuple(extent_of(e, sizes) for e in t.shape), t.dtype)
        )
        for t in program.tensors
    }
    changed = [t.name for t in program.tensors if t.kind != "in"]
    if "run" in space:
        space["run"](*(a.view(_Tensor) for a in arrays.values()))
        return {name: arrays[name] for name in changed}
    kernel: Any = space["kern"]()
    if program.spelled("out_idx", True):
        outs = [t.name for t in program.tensors if t.kind == "out"]
        results: Sequence[np.ndarray] | np.ndarray = kernel(*(a for name, a in arrays.items() if name not in outs))
        arrays |= dict(zip(outs, [results] if len(outs) == 1 else results, strict=True))
    else:
        kernel(*arrays.values())
    return {name: np.asarray(arrays[name]) for name in changed}
