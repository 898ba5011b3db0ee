"""What the cost model says of a migration: imported where it is asked for only, as few runs need it at their start."""

from __future__ import annotations

from dataclasses import replace

from tl2npu.checks.subject import Subject
from tl2npu.kernel.flags.slots import loop_of_slots
from tl2npu.passes.job import Job

_MUCH_SLOWER = 1.3
"""Times as long as before."""


def tell_slowdown(start: Job, job: Job, subject: Subject) -> str:
    """Where the model says that the new kernel takes much longer: a warning at the end of a pipeline by hand, else
    words for the outcome."""
    if start.kernel.dialect == "gpu" or job.module is start.module:
        return ""
    places = [place for place, note in enumerate(job.notes) if note.code == "TL332"]
    old = Subject(start.kernel, start.file, start.located, start.options)
    loop = None if places else loop_of_slots(old.kernel)
    from tl2npu.cost.estimate import slowdown

    ratio = slowdown(old, subject)
    if ratio is None or ratio <= _MUCH_SLOWER:
        return ""
    if not places and (loop is None or loop_of_slots(subject.kernel) is not None):
        return f"; the kernel is estimated to take {ratio:.1f} times as long, as `tl2npu cost` says"
    if loop is not None:
        places.append(len(job.notes))
        job.note("TL332", loop.node, "removed its flags: loads do not overlap computing and stores any more")
    said = f"; the kernel is estimated to take {ratio:.1f} times as long, if all pipes of the old one overlapped"
    first = job.notes[places[0]]
    job.notes[places[0]] = replace(first, message=first.message + said, severity="warning")
    return ""


def tell_notes(job: Job, subject: Subject) -> tuple[tuple[str, float], ...]:
    """What makes the new kernel slow at the first call of its factory (TL951 to TL956); the cycles of its pipes."""
    from tl2npu.cost.notes import of_first_call

    found = of_first_call(subject)
    if found is None:
        return ()
    made, notes = found
    for note in notes:
        job.note(note.code, note.node, note.message)
    return tuple((load.pipe, round(load.cycles, 1)) for load in made.loads) if made.is_sized else ()
