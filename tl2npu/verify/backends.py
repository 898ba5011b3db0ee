"""``--backend``: which judge verifies. Each takes two files, settings, and the names of the kernels to be proved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tl2npu.backends.device.runner import NotHere
from tl2npu.verified import VerifyResult
from tl2npu.verify import devices, judge, process, reference
from tl2npu.verify.judge import Runner, diagnostic
from tl2npu.verify.loading import Source
from tl2npu.verify.settings import Settings

NO_BACKEND = "TL912"

Judge = Callable[[Source, Source, Settings, Sequence[str] | None], VerifyResult]
"""Takes the old file, the new one, settings and the kernels to be proved (None: those whose text differs)."""


def verify(
    old: Source, new: Source, settings: Settings, runner: Runner = process.apart, changed: Sequence[str] | None = None
) -> VerifyResult:
    """Let the backend of the settings judge; ``runner`` does the jobs of the simulator.

    Raises UsageError for settings that do not fit the file.
    """
    if settings.reference is not None:
        return reference.verify(old, new, settings, runner, changed)
    if settings.backend.name == "sim":
        return judge.verify(old, new, settings, runner, changed)
    return _JUDGES[settings.backend.name](old, new, settings, changed)


def not_here(old: Source, new: Source, settings: Settings, why: str) -> VerifyResult:
    """The result where the machine lacks what a backend needs: ``why`` says what is missing."""
    found = diagnostic(NO_BACKEND, 1, f"the backend {settings.backend.name} cannot run here: {why}")
    result = VerifyResult(old.shown, new.shown, settings.backend.name, settings.arithmetic)
    return replace(result, diagnostics=(found,))


def _by_compiler(old: Source, new: Source, settings: Settings, changed: Sequence[str] | None) -> VerifyResult:
    from tl2npu.verify.by_compiler import CannotCompile
    from tl2npu.verify.by_compiler import verify as compiled

    try:
        return compiled(old, new, settings, changed)
    except CannotCompile as error:
        return not_here(old, new, settings, str(error))


def _on_device(old: Source, new: Source, settings: Settings, changed: Sequence[str] | None) -> VerifyResult:
    try:
        return devices.verify(old, new, settings, changed)
    except NotHere as error:
        return not_here(old, new, settings, str(error))


_JUDGES: dict[str, Judge] = {
    "compile": _by_compiler,
    "npu": _on_device,
    "camodel": _on_device,
}
