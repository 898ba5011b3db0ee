"""Findings at statements that passes wrote name the line of what these were written for."""

from __future__ import annotations

import ast
from pathlib import Path

import libcst as cst
import pytest

from tests.fixture_case import ROOT as FIXTURES
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.migration import migrate_text
from tl2npu.options import Options
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits
from tl2npu.source.index import Index
from tl2npu.source.tree import calls_in

TEXT = """\
import tilelang.language as T


@T.prim_func
def kernel(X: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, is_npu=True) as (cid, vid):
        x = T.alloc_ub((64, 64), "float32")
        T.copy(X, x)
        T.tile.mul(x, x, 2.0)
        T.copy(x, X)
"""


def _job() -> Job:
    index = Index.parse(TEXT)
    file = FileKernels(index)
    return Job(index, file, file.located[0].key, Options())


def _call(job: Job, name: str) -> cst.Call:
    return next(call for call in calls_in(job.module) if code(call.func) == name)


def _replace(job: Job, old: str, *new: str) -> None:
    edits = Edits(job.file.index)
    line = job.file.index.enclosing(_call(job, old), cst.SimpleStatementLine)
    assert line is not None
    edits.replace_many(line, [cst.parse_statement(text) for text in new])
    job.apply(edits)


def test_a_new_statement_has_the_line_of_the_one_that_it_replaces() -> None:
    job = _job()
    _replace(job, "T.tile.mul", "T.tile.add(x, x, x)", "T.tile.abs(x, x)")
    assert job.line(_call(job, "T.tile.abs")) == 9
    assert job.line(_call(job, "T.tile.abs").args[1].value) == 9


def test_also_after_it_was_replaced_once_more() -> None:
    job = _job()
    for old, new in (("T.tile.mul", "T.tile.add"), ("T.tile.add", "T.tile.sub"), ("T.tile.sub", "T.tile.mul")):
        _replace(job, old, f"{new}(x, x, 1.0)")
    assert job.finding("TL837", _call(job, "T.tile.mul").args[0], "x").line == 9


def test_statements_that_take_each_others_place_are_no_endless_chain() -> None:
    job = _job()
    for _ in range(3):
        lines = [
            job.file.index.enclosing(_call(job, name), cst.SimpleStatementLine) for name in ("T.copy", "T.tile.mul")
        ]
        new = [cst.parse_statement(code(line)) for line in lines if line is not None]
        edits = Edits(job.file.index)
        for line, other in zip(lines, reversed(new), strict=True):
            assert line is not None
            edits.replace(line, other)
        job.apply(edits)
    assert job.line(_call(job, "T.tile.mul")) == 8


SCALED_SUMS = """\
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[2])
def scaled_sums(M, N, K, block):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(M // 32, threads=128) as bx:
            a = T.alloc_shared((32, 32), "float16")
            b = T.alloc_shared((32, N), "float16")
            c = T.alloc_fragment((32, N), "float32")
            T.clear(c)
            for k in T.serial(K // 32):
                T.copy(A[bx * 32, k * 32], a)
                T.copy(B[k * 32, 0], b)
                for i, j in T.Parallel(32, N):
                    c[i, j] = c[i, j] * 0.5
                T.gemm(a, b, c)
            T.copy(c, C[bx * 32, 0])

    return main
"""


@pytest.mark.parametrize("scaled", ["c[i, j] * 0.5", "T.exp(c[i, j])"])
def test_findings_stand_where_an_added_tile_is_needed(scaled: str) -> None:
    before = SCALED_SUMS.replace("c[i, j] * 0.5", scaled)
    found = migrate_text(before, Path("before.py"), Options()).diagnostics
    lines = [d.line for d in found if d.code == "TL701" and "a tile added for `c`" in d.message]
    assert [before.splitlines()[line - 1].strip() for line in lines] == ["T.gemm(a, b, c)"]


@pytest.mark.sampled
@pytest.mark.parametrize(
    "name",
    ["alibi_attention", "combine_splits", "expert_attention", "flash_macros", "softmax_rows", "threshold_select"],
)
def test_no_edit_stands_on_a_line_that_has_nothing_to_do_with_it(name: str) -> None:
    """No edit of a kernel is one of the docstring of the file or of its imports."""
    (path,) = FIXTURES.glob(f"*/{name}/before.py")
    text = path.read_text(encoding="utf-8")
    apart = {node.lineno for node in ast.parse(text).body if isinstance(node, (ast.Import, ast.ImportFrom, ast.Expr))}
    found = migrate_text(text, str(path), Options())
    edits = [change for change in found.changes if change.kernel is not None]
    assert edits
    assert [(change.code, change.line, change.message) for change in edits if change.line in apart] == []
