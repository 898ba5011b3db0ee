"""What was found out by executing kernels: frozen dataclasses that flow from ``verify`` to the reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tl2npu.results import Diagnostic, Verified

Status = Literal["verified", "failed", "not verified", "not migrated", "unchanged"]


@dataclass(frozen=True)
class Fault:
    """Something that a kernel did and must not do.

    ``kind`` names it (``RAW``, ``uninitialised-read``, ...); ``message`` names buffers and both lines. ``severity`` is
    ``warning`` for what is wrong unless it is meant, ``note`` for what is legal. ``details`` are plain values for
    reports that machines read.
    """

    kind: str
    message: str
    severity: Literal["error", "warning", "note"] = "error"
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class LaunchReport:
    """One executed launch of a script: ``kernel`` with the functions around it, ``arguments`` of its factory."""

    kernel: str
    arguments: dict[str, Any]
    shapes: dict[str, str]
    seconds: float


@dataclass(frozen=True)
class RunResult:
    """One execution of a script. ``exit_code``: the script's, or 1 where faults are fatal."""

    path: str
    exit_code: int
    device: str
    arithmetic: str
    launches: tuple[LaunchReport, ...]
    faults: tuple[Fault, ...]


@dataclass(frozen=True)
class Metrics:
    """How far one result is from what it is measured against, element for element where both are finite.

    ``mere`` and ``mare``: mean and maximum of the relative error; ``matched``: the share of elements that agree by the
    standard; ``worst``: the index of the largest relative error; ``within``, ``within_five``: shares of elements with a
    relative error below 0.001 and 0.005. ``reference`` and ``actual``: largest, smallest, mean and length of values.
    ``unmet``: why the standard is not met; empty where it is.
    """

    tensor: str
    dtype: str
    shape: tuple[int, ...]
    max_abs: float
    mare: float
    mere: float
    rmse: float
    cosine: float
    matched: float
    worst: tuple[int, ...]
    within: float
    within_five: float
    reference: tuple[float, float, float, float]
    actual: tuple[float, float, float, float]
    unmet: str = ""


@dataclass(frozen=True)
class Comparison:
    """One launch, old and new on the same inputs.

    ``outputs``: the tensors that were compared. ``max_error``: the largest absolute difference in them, None where they
    could not be compared. ``problems`` are (code, message) pairs; none means that old and new agree. ``dropped``:
    tensors of the old kernel, but for its workspaces, that the new one does not have. ``relaid``: tensors that lie in
    memory in another order than the old kernel keeps them in; ``laid`` those that both keep in one layout.
    ``unrounded``: outputs that agree with the old kernel without the roundings that it does on the way to a wider type.
    ``by``: the kernels of the new file that were run. ``draw``: of which kind the inputs are, if the launch was
    repeated with others than its own. ``quiet``: outputs that agree if ``max`` and ``min`` of a vector core give the
    number where one operand is NaN. ``metrics``: figures of the outputs.
    """

    kernel: str
    call: str
    outputs: tuple[str, ...]
    max_error: float | None
    problems: tuple[tuple[str, str], ...] = ()
    dropped: tuple[str, ...] = ()
    relaid: tuple[str, ...] = ()
    laid: tuple[str, ...] = ()
    unrounded: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    draw: str = ""
    quiet: tuple[str, ...] = ()
    metrics: tuple[Metrics, ...] = ()


@dataclass(frozen=True)
class KernelVerdict:
    """What is known of one kernel of the old file. ``verified`` is set only with status ``verified``.

    ``cell``: in a notebook, the cell that ``line`` is a line of.
    """

    name: str
    line: int
    status: Status
    reason: str
    verified: Verified | None = None
    cell: int | None = None


@dataclass(frozen=True)
class ScriptCheck:
    """A file run as a script, for its own checks: ``exit_code`` is None if it did not come to an end."""

    role: Literal["old", "new"]
    exit_code: int | None
    output: str


@dataclass(frozen=True)
class VerifyResult:
    """Everything about one verification. ``error`` is set where it could not even begin.

    ``new`` is None for the old file migrated in memory. ``reference``: the trace that was replayed, with its device;
    empty where the old file was executed. ``standard``: what counts as right. ``ok`` holds only if at least one launch
    was compared, all agreed and every kernel that differs between old and new was among them; a kernel that is the
    same in both is ``unchanged``, and not proved.
    """

    old: str
    new: str | None
    backend: str
    arithmetic: str
    ok: bool = False
    error: str | None = None
    kernels: tuple[KernelVerdict, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    scripts: tuple[ScriptCheck, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    notes: tuple[str, ...] = ()
    reference: str = ""
    standard: str = "tl2npu"
