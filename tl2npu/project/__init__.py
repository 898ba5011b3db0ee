"""Many files: which process works on each, in which order, what is remembered of earlier runs."""

from tl2npu.project.batch import Batch, run
from tl2npu.project.one import Outcome, Task, display, run_text

__all__ = ["Batch", "Outcome", "Task", "display", "run", "run_text"]
