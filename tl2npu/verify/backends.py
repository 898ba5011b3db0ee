"""``--backend``: which judge verifies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tl2npu.backends.device.runner import NotHere
from tl2npu.codes import finding
from tl2npu.verified import VerifyResult
from tl2npu.verify import devices, judge, process, reference
from tl2npu.verify.calls import known
from tl2npu.verify.judge import Runner
from tl2npu.verify.loading import Source
from tl2npu.verify.settings import Settings

NO_BACKEND = "TL912"


def verify(
    old: Source | None,
    new: Source,
    settings: Settings,
    runner: Runner = process.apart,
    changed: Sequence[str] | None = None,
) -> VerifyResult:
    """Let the backend of the settings judge; ``runner`` does the jobs of the simulator.

    ``changed`` are the kernels to be proved (None: those whose text differs). ``old`` may be None where the settings
    have a trace. Raises UsageError for settings that do not fit the file.
    """
    for call in settings.calls:
        if old is not None:
            known(call, old.text)
    try:
        return _judged(old, new, settings, runner, changed)
    except NotHere as error:
        found = finding(NO_BACKEND, 1, f"the backend {settings.backend.name} cannot run here: {error}")
        result = VerifyResult((old or new).shown, new.shown, settings.backend.name, settings.arithmetic)
        return replace(result, diagnostics=(found,))


def _judged(
    old: Source | None, new: Source, settings: Settings, runner: Runner, changed: Sequence[str] | None
) -> VerifyResult:
    if settings.reference is not None:
        return reference.verify(old, new, settings, runner, changed)
    assert old is not None
    if settings.backend.name == "sim":
        return judge.verify(old, new, settings, runner, changed)
    if settings.backend.name == "compile":
        from tl2npu.verify import by_compiler

        return by_compiler.verify(old, new, settings, changed)
    return devices.verify(old, new, settings, changed)
