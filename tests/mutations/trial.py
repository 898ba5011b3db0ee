"""Verifies mutants of a fixture. The old kernel is run once for all of them."""

from __future__ import annotations

import contextlib
import io
import shutil
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

from tests.fixture_case import Case
from tests.mutations.mutants import Mutant
from tl2npu.backends.children import Ended
from tl2npu.options import Options
from tl2npu.verified import VerifyResult
from tl2npu.verify.job import Job
from tl2npu.verify.judge import verify
from tl2npu.verify.limits import limits_of
from tl2npu.verify.loading import Source
from tl2npu.verify.naming import places
from tl2npu.verify.process import here
from tl2npu.verify.settings import Call, Settings

TIME = 60  # seconds of CPU time for one mutant: a loop may not end any more


class Overdue(BaseException):
    """Not an Exception: nobody on the way may catch it."""


@dataclass(frozen=True)
class Verdict:
    """``by``: the codes of the errors of a mutant that was caught; none for one that passed."""

    mutant: Mutant
    by: tuple[str, ...]

    @property
    def caught(self) -> bool:
        """True if verify does not say that the mutant is right."""
        return bool(self.by)


class Trial:
    """A fixture whose mutants are verified, with the arguments of its case."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.settings = Settings(
            calls=(Call(case.builder or case.factory, case.args, case.inputs),), check=Options(**case.options)
        )
        self.old = Source(case.before, f"{case.name}/before.py", "before.py")
        self._recorded = Path(tempfile.mkdtemp(prefix="mutations-"))
        self._ended: dict[int, Ended] = {}

    def close(self) -> None:
        """Forget the launches of the old kernel."""
        shutil.rmtree(self._recorded)

    def of(self, mutant: Mutant) -> Verdict:
        """Verify one mutant: what costs least comes first, and what is caught needs no more."""
        new = Source(mutant.text, f"{self.case.name}/after.py", "after.py")
        try:
            with _limited(TIME), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                return Verdict(mutant, next(filter(None, self._stages(new)), ()))
        except Overdue:
            return Verdict(mutant, ("overdue",))
        except Exception as error:  # the process of the new kernel would have died
            return Verdict(mutant, (type(error).__name__,))

    def _stages(self, new: Source) -> Iterator[tuple[str, ...]]:
        """The codes of errors on the first inputs, of ``check``, and on all inputs."""
        executed = replace(self.settings, check=None)
        result = verify(self.old, new, replace(executed, draws=1), self._run)
        yield _codes(result)
        assert self.settings.check is not None
        known = {place.name: place for place in places(self.old.text)}
        broken = limits_of(self.old, new, self.settings.check, known, result.comparisons).broken
        yield tuple(sorted({d.code for d in broken if d.severity == "error"}))
        yield _codes(verify(self.old, new, executed, self._run))

    def _run(self, job: Job) -> Ended:
        """Do a job in this process; what the old kernel did is remembered."""
        if job.task != "record":
            return here(job)
        kept = self._recorded / str(job.settings.draws)
        if job.settings.draws not in self._ended:
            self._ended[job.settings.draws] = here(job)
            shutil.copytree(job.folder, kept)
        else:
            for path in kept.glob("*.launch"):
                (Path(job.folder) / path.name).symlink_to(path)
        return self._ended[job.settings.draws]


def _codes(result: VerifyResult) -> tuple[str, ...]:
    codes = {d.code for d in result.diagnostics if d.severity == "error"}
    return () if result.ok else tuple(sorted(codes)) or ("not proved",)


@contextlib.contextmanager
def _limited(seconds: int) -> Iterator[None]:
    def stop(_: int, __: FrameType | None) -> None:
        raise Overdue

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
