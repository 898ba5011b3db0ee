"""What stays known of a kernel behind an edit: the same as of a file that is read anew."""

from __future__ import annotations

import libcst as cst
import pytest

from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.kernel.model import Copy
from tl2npu.options import Options
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits
from tl2npu.source.index import Index
from tl2npu.source.tree import walk

TEXT = """\
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[1], target="cuda")
def factory(n, size=32):
    rows = n // size

    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(rows, threads=128) as bx:
            T.copy(A[bx * size], B[bx * size])

    return main


kernel = tilelang.compile(factory(64), out_idx=[1])
"""


def job_of(text: str, targets: tuple[object, ...] | None = ()) -> Job:
    file = FileKernels(Index.parse(text))
    return Job(file.index, file, file.located[0].key, Options(), targets=targets)


def told(job: Job) -> tuple[object, ...]:
    """Everything about the kernel that an edit may change: its launch, its copies, how it is compiled."""
    found = [stmt for stmt in job.kernel.walk() if isinstance(stmt, Copy)]
    copies = [(str(copy.src.dims[0].lo) if copy.src.dims else "", copy.dst.buffer.name) for copy in found]
    compiled = [(code(one.node), {k: code(v) for k, v in one.kwargs.items()}) for one in job.located.compilations]
    return [str(size) for size in job.kernel.launched.grid], copies, compiled, job.kernel.dialect


def replaced(job: Job, old: str, new: str) -> None:
    edits = Edits(job.file.index)
    node = next(node for node in walk(job.module) if isinstance(node, cst.BaseExpression) and code(node) == old)
    edits.replace(node, cst.parse_expression(new))
    job.apply(edits)


@pytest.mark.parametrize(
    ("old", "new", "stays"),
    [
        ("[1]", "[0]", True),
        ('"cuda"', '"npu"', True),
        ('tilelang.jit(out_idx=[1], target="cuda")', "tilelang.jit(out_idx=[1], pass_configs=configs)", True),
        ('tilelang.jit(out_idx=[1], target="cuda")', "tilelang.jit", True),
        ('tilelang.jit(out_idx=[1], target="cuda")', "print", True),
        ("n // size", "n", False),
        ("bx * size", "bx", False),
        ("rows", "size", False),
        ("factory(64)", "factory(32)", False),
    ],
)
def test_what_is_known_behind_an_edit_is_what_the_new_text_says(old: str, new: str, stays: bool) -> None:
    job = job_of(TEXT)
    before = job.kernel
    replaced(job, old, new)
    assert (job.kernel is before) is stays
    assert told(job) == told(job_of(job.module.code))


def test_a_kernel_that_asks_for_its_target_is_read_again_where_that_changes() -> None:
    job = job_of(TEXT, None)
    before = job.kernel
    replaced(job, '"cuda"', '"npuir"')
    assert job.kernel is not before
    assert job.kernel.dialect == "npuir"


@pytest.mark.parametrize(
    ("line", "stays"),
    [("cores = 20", True), ("rows = 5", False), ("bx = 5", False), ("assert n > 5", False), ("import math", False)],
)
def test_lines_beside_a_kernel(line: str, stays: bool) -> None:
    """A name that nothing mentions changes nothing of a kernel."""
    job = job_of(TEXT)
    before, edits = job.kernel, Edits(job.file.index)
    edits.replace_many(job.located.node, [cst.parse_statement(line), job.located.node])
    job.apply(edits)
    assert (job.kernel is before) is stays
    assert told(job) == told(job_of(job.module.code))


def test_lines_in_a_macro_are_read() -> None:
    macro = "    @T.macro\n    def twice(A, B):\n        T.copy(A, B)\n        T.copy(A, B)\n\n    @T.prim_func\n"
    call = "twice(A[bx * size], B[bx * size])"
    job = job_of(TEXT.replace("    @T.prim_func\n", macro).replace("T.copy(A[bx * size], B[bx * size])", call))
    before, edits = job.kernel, Edits(job.file.index)
    first = next(line for line in walk(job.module) if isinstance(line, cst.FunctionDef) and line.name.value == "twice")
    edits.replace_many(first.body.body[0], [first.body.body[0], cst.parse_statement("x = 1")])
    job.apply(edits)
    assert job.kernel is not before
    assert len([*job.kernel.walk()]) == len([*before.walk()]) + 1
