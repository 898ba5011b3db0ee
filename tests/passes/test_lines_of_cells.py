"""In a notebook what is said of a kernel stands in its cell, whatever the cells above have."""

from __future__ import annotations

import json

import pytest

from tests.fixture_case import ROOT as FIXTURES
from tests.test_partial import GOOD
from tl2npu.cells import by_cells
from tl2npu.migration import migrate_text
from tl2npu.options import Options

ABOVE = "import tilelang\nimport tilelang.language as T\n\n\n" + GOOD.replace("def other", "def first")


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["expert_attention", "flash_macros", "combine_splits", "gpu_vector_offset_variable"])
@pytest.mark.parametrize("threads", ["auto", "2"])
def test_findings_and_edits_stand_in_the_cell_of_their_kernel(name: str, threads: str) -> None:
    (path,) = FIXTURES.glob(f"*/{name}/before.py")
    text = path.read_text(encoding="utf-8").partition("if __name__")[0]
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": source} for source in (ABOVE, text)]
    book = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4})
    options = Options(threads=threads)  # type: ignore[arg-type]
    result = by_cells(book, "k.ipynb", lambda code: migrate_text(code, "k.py", options))
    assert len(result.kernels) > 1
    assert {kernel.cell for kernel in result.kernels} == {1, 2}
    placed = {kernel.name: kernel.cell for kernel in result.kernels}
    own = [item for item in (*result.diagnostics, *result.changes) if item.kernel is not None]
    assert own
    assert [item for item in own if item.cell != placed[item.kernel or ""]] == []
