"""TL747: a name that the generated C++ has another meaning for."""

from __future__ import annotations

from tl2npu.kernel.generated_names import clashes
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import Names
from tl2npu.source.edits import Edits
from tl2npu.source.tree import names_in


def renamed(job: Job) -> Job:
    """A kernel that is new to its target, with other names, those of tensors too; the job itself if none clashes."""
    if job.options.target != "ascendc" or not clashes(job.kernel):
        return job
    done = job.copied()
    rename(done, tensors=True)
    return done


def rename(job: Job, tensors: bool = False) -> None:
    """Give tiles and variables another name where theirs would hide a type or is a keyword."""
    names, edits = Names(job), Edits(job.file.index)
    params = {param.name.value: param.name for param in job.located.node.params.params}
    for name, (at, why, _) in clashes(job.kernel).items():
        if name in params and not tensors:
            continue
        new = names.fresh(f"{name}_{'tensor' if name in params else 'tile' if name in job.kernel.buffers else 'value'}")
        for use in (*filter(None, [params.get(name)]), *names_in(job.located.node.body)):
            if use.value == name:
                edits.replace(use, use.with_changes(value=new))
        job.change("TL747", at, f"`{name}` -> `{new}`: {why}")
    job.apply(edits)
