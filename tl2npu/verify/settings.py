"""What a verification is asked to do: frozen dataclasses that may cross a process boundary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tl2npu.devices import DEFAULT_DEVICE
from tl2npu.options import VERIFY_TIMEOUT, Backend, Fp8, Options

Arithmetic = Literal["precise", "algebraic", "structure"]
Counted = Literal[Arithmetic, "unrounded", "widened", "jittered", "numbers"]
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
        """The call in Python: positional arguments have numbers for names here."""
        written = (f"{value!r}" if name.isdigit() else f"{name}={value!r}" for name, value in self.arguments.items())
        return f"{self.factory}({', '.join(written)})"


@dataclass(frozen=True)
class Settings:
    """How kernels are executed and what counts as equal.

    ``reading``: what the compiler makes of a Developer-mode kernel, or what its author means (``verify`` runs both).
    ``timeout`` in seconds, see ``TIME_BUDGET``. ``rtol``, ``atol``: in place of the ones by element type; ``atol`` is
    absolute. ``seed`` draws the inputs of ``calls``, with ``draws`` 1 the standard normal ones only.
    ``check``: the options of ``tl2npu check`` on the new kernels, None to leave it out. ``reference``: the folder of a
    trace whose launches are repeated in place of those of the old file. ``standard``: a name of ``standards.py``;
    ``golden``: measure old and new against the old kernel in float64. ``fp8``: whether float16 stands for the 8-bit
    floats of the old file.
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
    fp8: Fp8 = "refuse"
