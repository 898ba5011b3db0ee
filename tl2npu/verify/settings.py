"""What a verification is asked to do: frozen dataclasses that may cross a process boundary."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from tl2npu.devices import DEFAULT_DEVICE
from tl2npu.options import VERIFY_TIMEOUT, Backend, Options

Arithmetic = Literal["precise", "algebraic", "structure"]
Counted = Literal[Arithmetic, "unrounded", "widened", "numbers"]
"""The arithmetics that a user can ask for, those in which an old kernel is repeated, and one for a new kernel."""
Reading = Literal["actual", "ideal"]
Hazards = Literal["off", "warn", "fatal"]

TIME_BUDGET = VERIFY_TIMEOUT
"""Seconds for each kernel: all its launches, old and new, together. The host code of a script has the same budget."""


class UsageError(ValueError):
    """A request that cannot be understood; ``str()`` is one line for the user."""


@dataclass(frozen=True)
class Call:
    """One kernel to build without a script: a factory of the file and its arguments.

    ``inputs``: parameter name -> expression for its values, in place of drawn ones; ``symbols``: values of symbolic
    extents.
    """

    factory: str
    arguments: dict[str, Any]
    inputs: Mapping[str, str] = field(default_factory=dict)
    symbols: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.factory}({', '.join(f'{name}={value!r}' for name, value in self.arguments.items())})"


@dataclass(frozen=True)
class Settings:
    """How kernels are executed and what counts as equal.

    ``reading``: what the compiler makes of a Developer-mode kernel, or what its author means (``verify`` runs both).
    ``timeout`` in seconds, see ``TIME_BUDGET``. ``rtol``, ``atol``: in place of the ones by element type; ``atol`` is
    absolute. ``seed`` draws the inputs of ``calls``, with ``draws`` 1 the standard normal ones only.
    ``check``: the options of ``tl2npu check`` on the new kernels, None to leave it out. ``reference``: the folder of a
    trace whose launches are repeated in place of those of the old file. ``standard``: a name of ``standards.py``;
    ``golden``: measure old and new against the old kernel in float64.
    """

    arithmetic: Arithmetic = "precise"
    reading: Reading = "actual"
    hazards: Hazards = "fatal"
    device: str = DEFAULT_DEVICE.name
    backend: Backend = field(default_factory=Backend)
    timeout: float = TIME_BUDGET
    seed: int = 0
    draws: int = 6
    rtol: float | None = None
    atol: float | None = None
    shrink: bool = False
    calls: tuple[Call, ...] = ()
    check: Options | None = field(default_factory=Options)
    script_args: tuple[str, ...] = ()
    reference: str | None = None
    standard: str = "tl2npu"
    golden: bool = False


def settings_of(given: Mapping[str, Any], options: Options) -> Settings:
    """The settings that a command line gives; the device and the time come from ``options`` where it is silent.

    ``given`` has the fields of Settings, with ``calls``, ``inputs``, ``symbols`` and ``script_args`` as they were
    typed, and ``case``, the path of a TOML file. Raises UsageError.
    """
    from tl2npu.verify.calls import parse_assignments, parse_call, parse_symbols, read_case

    inputs, symbols = parse_assignments(given["inputs"], "--input"), parse_symbols(given["symbols"])
    calls = [parse_call(text) for text in given["calls"]]
    if given["case"] is not None:
        calls.append(read_case(given["case"]))
    if not calls:
        for name, option in (("inputs", "--input"), ("symbols", "--symbol")):
            if given[name]:
                raise UsageError(f"{option} goes with --args or --case: a script makes its own inputs")
        if given["shrink"]:
            raise UsageError(
                "--shrink goes with --args or --case: the shapes that a script has itself cannot be shrunk"
            )
    if given["arithmetic"] != "precise" and options.backend.name != "sim":
        raise UsageError("--arithmetic goes with --backend sim")
    if given["timeout"] is not None and not given["timeout"] > 0:
        raise UsageError("--timeout must be above 0")
    reference, standard, golden = given["reference"], given["standard"], given["golden"] is not None
    if reference is not None and (calls or given["script_args"]):
        raise UsageError("--reference goes without --args, --case and --script-args: the trace has the launches")
    numbers = (
        standard != "tl2npu",
        golden,
        given["rtol"] is not None,
        given["atol"] is not None,
        given["table"] is not None,
    )
    if options.backend.name == "compile" and any(numbers):
        raise UsageError("--backend compile has no numbers for --standard, --golden, --rtol, --atol and --csv")
    if given["arithmetic"] != "precise" and (reference is not None or standard != "tl2npu" or golden):
        raise UsageError("--reference, --standard and --golden go with --arithmetic precise")
    if standard != "tl2npu" and (given["rtol"] is not None or given["atol"] is not None):
        raise UsageError("--rtol and --atol go with --standard tl2npu: the others have thresholds of their own")
    return Settings(
        arithmetic=given["arithmetic"],
        device=options.device,
        backend=options.backend,
        timeout=given["timeout"] or options.verify_timeout,
        seed=given["seed"],
        rtol=given["rtol"],
        atol=given["atol"],
        shrink=given["shrink"],
        check=options if given["check"] else None,
        calls=tuple(replace(c, inputs={**c.inputs, **inputs}, symbols={**c.symbols, **symbols}) for c in calls),
        script_args=tuple(shlex.split(given["script_args"] or "")),
        reference=None if reference is None else str(reference),
        standard=standard,
        golden=golden,
    )
