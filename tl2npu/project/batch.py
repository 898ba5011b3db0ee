"""A run over many files: what is in each, which process works on it, and the outcomes in input order."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial

from tl2npu.across.modules import forget
from tl2npu.across.users import imported_words
from tl2npu.files import Found
from tl2npu.options import Options
from tl2npu.project.held import Held
from tl2npu.project.one import Memory, Outcome, Task, display, look, may_be_handed, may_promise, remembered, warm, work
from tl2npu.project.second import settled
from tl2npu.project.workers import Lost, Workers
from tl2npu.results import FileResult

_POOL_PAYS_FROM = 8  # files with kernels; further processes cost more than a few files take
_TIMEOUT = 600.0  # seconds for a file where nothing is executed


@dataclass(frozen=True)
class Batch:
    """How a run is carried out; none of it changes a result.

    ``jobs``: processes, 0 for an automatic number. ``timeout``: seconds for each file; None: the default, 0: no limit.
    ``whole``: the outcomes of files without kernels have their text, too. ``progress`` is told of every number of files
    that are done now.
    """

    jobs: int = 0
    timeout: float | None = None
    whole: bool = True
    progress: Callable[[int], None] | None = None
    cache: Memory | None = None


def run(
    files: Sequence[Found], task: Task, options: Options, batch: Batch | None = None, debug: bool = False
) -> Generator[Outcome, None, None]:
    """Process files, the largest first, and hand the outcomes back in input order, each as soon as it may be.

    A file that cannot be processed is an outcome with ``result.error`` set, also when the tool itself fails or the
    process that works on it dies. With ``debug`` everything happens in this process, and exceptions come through.
    """
    batch = batch or Batch()
    progress = batch.progress or (lambda count: None)
    forget()
    reusable = None if debug or task == "verify" else batch.cache  # what rests on executed code is not
    known, sizes, hold = _survey(files, options, batch.whole, reusable)
    progress(len(known))
    if debug:
        answers: Generator[Outcome, None, None] = (
            work(files[number], task, options, debug, batch.cache) for number in sizes
        )
    else:
        answers = _answers(sizes, files, task, options, batch, progress)

    def first() -> Iterator[Outcome]:
        for number, found in enumerate(files):
            if number in sizes:
                yield next(answers)
            else:
                yield known[number] or _again(found, task, options, reusable)

    with closing(answers):
        yield from first() if task == "check" else settled(first(), options, hold, batch.cache)
    if sizes and batch.cache is not None:
        batch.cache.shrink()


def _survey(
    files: Sequence[Found], options: Options, whole: bool, cache: Memory | None
) -> tuple[dict[int, Outcome | None], dict[int, int], bool]:
    """The outcomes of the files that need no work, and the sizes in bytes of those that do.

    Also: whether one of them may change how its kernels are called or compiled. No text is kept, there may be many:
    outcomes that have one, if it is wanted, are None here.
    """
    known: dict[int, Outcome | None] = {}
    sizes: dict[int, int] = {}
    hold = False
    handed: set[bytes] = set()
    imported: set[bytes] = set()
    for number, found in enumerate(files):
        seen = look(found, options)
        if not isinstance(seen, Outcome):
            hold = hold or may_promise(seen[1])
            if may_be_handed(seen[1]):
                handed |= {os.fsencode(found.path.stem), os.fsencode(found.path.parent.name)}
            imported |= imported_words(seen[1])
            if cache is not None and cache.holds(cache.key(found, seen[1])):
                known[number] = None
            else:
                sizes[number] = len(seen[1])
            continue
        imported |= imported_words(seen.source.text.encode()) if seen.source is not None else set()
        if seen.source is None or not whole:
            known[number] = Outcome(found, FileResult(seen.result.path, error=seen.result.error), None, seen.skipped)
        else:
            known[number] = None
    return known, sizes, hold or bool(handed & imported)


def _again(found: Found, task: Task, options: Options, cache: Memory | None) -> Outcome:
    """A file that needs no work, with its text; it is worked on if that is not true any more."""
    outcome = None if cache is None else remembered(found, task, options, cache)
    return outcome or work(found, task, options, cache=cache)


def _answers(
    sizes: dict[int, int],
    files: Sequence[Found],
    task: Task,
    options: Options,
    batch: Batch,
    progress: Callable[[int], None],
) -> Generator[Outcome, None, None]:
    """The outcomes of the files in ``sizes``, in its order."""
    if not sizes:
        return
    function = partial(work, task=task, options=options, cache=batch.cache)
    tasks = [(number, files[number]) for number in sorted(sizes, key=lambda number: -sizes[number])]
    jobs = _jobs(batch.jobs, len(sizes))
    lost: dict[int, Lost] = {}
    with (
        closing(Held()) as held,
        Workers(jobs, function, _limit(batch, task), partial(warm, task, len(sizes))) as workers,
    ):
        answers = workers.answers(tasks)
        for number in sizes:
            while (data := held.take(number)) is None and number not in lost:
                finished, answer = next(answers)
                progress(1)
                if isinstance(answer, Lost):
                    lost[finished] = answer
                else:
                    held.put(finished, answer)
            if data is None:
                yield Outcome(files[number], FileResult(display(files[number].path), error=lost[number].reason))
            else:
                outcome = pickle.loads(data)
                assert isinstance(outcome, Outcome)
                yield outcome


def _jobs(wanted: int, files: int) -> int:
    if wanted == 0:
        wanted = _processors() if files >= _POOL_PAYS_FROM else 1
    return min(wanted, files)


def _processors() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _limit(batch: Batch, task: Task) -> float | None:
    if batch.timeout is None:
        return None if task == "verify" else _TIMEOUT  # executed kernels have a limit of their own
    return batch.timeout or None
