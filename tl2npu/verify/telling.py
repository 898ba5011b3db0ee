"""What jobs tell: comparisons and problems, as the events that ``job`` describes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Literal

from tl2npu.simulator.errors import SimulatorError, TraceError, UnsupportedOperator
from tl2npu.verified import Comparison
from tl2npu.verify.loading import Source
from tl2npu.verify.recording import Recording
from tl2npu.verify.replay import FAULTY, UNVERIFIED

QUIET = "where NaN occurs, {} agrees only if max and min of the vector core skip it, as on a GPU (undocumented)"
Event = dict[str, Any]
Emit = Callable[[Event], None]
Side = Literal["old", "new"]


def compared(emit: Emit, recording: Recording, comparison: Comparison | None) -> None:
    """Tell of a comparison; of one with further inputs only what is wrong, and of None that there is none to make."""
    if comparison is None or (recording.draw and not comparison.problems):
        for name in comparison.quiet if comparison is not None else ():
            emit({"event": "note", "text": f"{recording.kernel}: {QUIET.format(name)}"})
        emit({"event": "agrees", "number": recording.number})
    else:
        emit({"event": "comparison", **asdict(comparison), "number": recording.number})


def told(
    source: Source, emit: Emit, error: SimulatorError, side: Side, kernel: str | None = None, factory: str | None = None
) -> None:
    """The problem that an error of the simulator is, told once however often it passes by."""
    if getattr(error, "told", False):
        return
    error.told = True  # type: ignore[attr-defined]
    unknown = isinstance(error, UnsupportedOperator) or (side == "old" and isinstance(error, TraceError))
    code = UNVERIFIED if unknown else FAULTY
    line = source.line(error.site.file, error.site.line)
    problem(emit, code, f"the {side} kernel: {error}", kernel, factory, line, side)


def problem(
    emit: Emit,
    code: str,
    message: str,
    kernel: str | None = None,
    factory: str | None = None,
    line: int = 0,
    side: Side | None = None,
) -> None:
    known = {"kernel": kernel, "factory": factory, "line": line, "side": side}
    emit({"event": "problem", "code": code, "message": message, **known})
