"""One pass of the GPU pipeline by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.options import Options
from tl2npu.passes.job import Job
from tl2npu.source.index import Index


def job_of(text: str, kernel: int = 0) -> Job:
    """The job for one kernel of a file."""
    index = Index.parse(text)
    file = FileKernels(index)
    return Job(index, file, file.located[kernel].key, Options())


def after(passes: Callable[[Job], None] | Sequence[Callable[[Job], None]], text: str, kernel: int = 0) -> str:
    """The text after one pass, or after several."""
    job = job_of(text, kernel)
    for item in passes if isinstance(passes, Sequence) else [passes]:
        item(job)
    return job.module.code
