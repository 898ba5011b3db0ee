"""Single passes of the GPU pipeline on a kernel text, and the result run as an Ascend kernel."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from tests.passes.simulated import run
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.options import Options
from tl2npu.passes.gpu.memory import allocations
from tl2npu.passes.job import Job
from tl2npu.simulator.lowering.lower import ACTUAL, IDEAL
from tl2npu.source.index import Index

Pass = Callable[[Job], None]


def job_of(text: str) -> Job:
    """The job of the only kernel of a text."""
    index = Index.parse(text)
    file = FileKernels(index)
    (located,) = file.located
    return Job(index, file, located.key, Options())


def after(text: str, *passes: Pass) -> str:
    """The text after some passes, still with a GPU launch."""
    job = job_of(text)
    for one in passes:
        one(job)
    return job.module.code


def blocked(text: str, *passes: Pass) -> tuple[str, int]:
    """Code and line of the refusal by the last pass."""
    job = job_of(text)
    for one in passes[:-1]:
        one(job)
    with pytest.raises(Blocked) as caught:
        passes[-1](job)
    return caught.value.code, job.line(caught.value.node)


def as_ascend(text: str) -> str:
    """The text with an NPU launch (one vector core) and every on-chip buffer a vector tile."""
    text = re.sub(r"threads=128", "threads=1, is_npu=True", text)
    return text.replace("T.alloc_fragment(", "T.alloc_shared(")


def same(
    text: str,
    inputs: Mapping[str, np.ndarray],
    *passes: Pass,
    args: tuple[Any, ...] = (),
    rtol: float = 1e-5,
    atol: float = 1e-5,
) -> str:
    """The text after the passes, which must compute what the GPU kernel computed, in both readings."""
    new = after(text, *passes)
    ready = as_ascend(after(new, allocations.finish))
    old = run(text, inputs, "factory", args)
    for reading in (IDEAL, ACTUAL):
        found = run(ready, inputs, "factory", args, reading)
        for name, expected in old.items():
            np.testing.assert_allclose(
                np.asarray(found[name], np.float64), np.asarray(expected, np.float64), rtol, atol, err_msg=name
            )
    return new
