"""Updates that both vector cores carry out (#1662)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.checks.support import kernel, source
from tests.passes.gpu.support import gpu_file
from tl2npu.migration import check_text, migrate_text
from tl2npu.options import Options

TILE = 'a = T.alloc_ub((32, 64), "float32")'
LOAD = "T.copy(A[cid * 32, 0], a)"
ADD = "T.tile.add(a, a, 1.0)"
BACK = "T.copy(a, A[cid * 32, 0])"
BOTH = "T.Kernel(2, is_npu=True) as (cid, vid)"
PARAMS = 'A: T.Tensor((64, 64), "float32"), O: T.Tensor((64, 64), "float32")'


def found(*parts: str, launch: str = BOTH) -> list[str]:
    text = source(kernel(*parts), params=PARAMS, launch=launch)
    return [d.message for d in check_text(text, "k.py", Options()).diagnostics if d.code == "TL859"]


@pytest.mark.parametrize(("target", "count"), [("ascendc", 0), ("pto", 1)])
def test_target_pto_runs_both_cores_for_one_thread(target: str, count: int) -> None:
    """The text for pto was executed: the second core read what the first had written."""
    text = source(kernel(TILE, LOAD, ADD, BACK), params=PARAMS, launch="T.Kernel(2, threads=1, is_npu=True) as (cid)")
    options = replace(Options(), backend=replace(Options().backend, target=target))
    assert [d.code for d in check_text(text, "k.py", options).diagnostics].count("TL859") == count


@pytest.mark.parametrize(("target", "outcome"), [("ascendc", "migrated"), ("pto", "refused")])
def test_one_row_of_a_gpu_kernel_that_is_updated(target: str, outcome: str) -> None:
    """A single row is no rows for two cores (``threads=1``); on a GPU a block has one core."""
    body = "a = T.alloc_shared((1, 64), 'float32')\nT.copy(A[bx, 0], a)\nfor i, j in T.Parallel(1, 64):\n"
    body += "    a[i, j] = a[i, j] + a[i, 63 - j]\nT.copy(a, A[bx, 0])"
    text = gpu_file(
        'A: T.Tensor((64, 64), "float32")', body, launch="T.Kernel(64, threads=128) as bx", jit="@tilelang.jit"
    )
    result = migrate_text(text, "k.py", replace(Options(), backend=replace(Options().backend, target=target)))
    assert [k.disposition for k in result.kernels] == [outcome]
    assert any(d.code == "TL859" for d in result.diagnostics) == (outcome == "refused")


@pytest.mark.parametrize(
    "parts",
    [
        (TILE, LOAD, ADD, BACK),
        (TILE, f"for k in T.serial(2):\n    {LOAD}\n    {ADD}\n    {BACK}"),
        (TILE, f'with T.Scope("V"):\n    {LOAD}\n    {ADD}\n    {BACK}'),
        (TILE, "T.copy(A[cid * 32 : cid * 32 + 32, 0:64], a)", ADD, "T.copy(a, A[32 * cid, 0])"),
        (TILE, LOAD, "T.copy(a, O[cid * 32, 0])", BACK),
        (TILE, "T.copy(O[cid * 32, 0], a)", "T.tile.atomic_add(A[cid * 32, 0], a)"),
    ],
)
def test_an_update_by_both_cores(parts: tuple[str, ...]) -> None:
    (message,) = found(*parts)
    assert "`A`" in message
    assert "`vid` is never used" in message


@pytest.mark.parametrize(
    "parts",
    [
        (TILE, LOAD, ADD, "T.copy(a, O[cid * 32, 0])"),
        (TILE, BACK, LOAD),
        (TILE, LOAD, ADD, f"if vid == 0:\n    {BACK}"),
        (TILE, "T.copy(A[cid * 32 + vid * 16, 0], a)", "T.copy(a, A[cid * 32 + vid * 16, 0])"),
        (TILE, LOAD, "T.copy(a, A[(1 - cid) * 32, 0])"),
    ],
)
def test_no_update_by_both_cores(parts: tuple[str, ...]) -> None:
    assert found(*parts) == []


@pytest.mark.parametrize(
    "launch", ["T.Kernel(2, threads=2, is_npu=True) as (cid)", "T.Kernel(2, threads=1, is_npu=True) as (cid)"]
)
def test_threads_mend_it(launch: str) -> None:
    assert found(TILE, LOAD, ADD, BACK, launch=launch) == []


def test_the_old_kernel_is_told() -> None:
    text = source(kernel(TILE, LOAD, "T.barrier_all()", ADD, "T.barrier_all()", BACK), params=PARAMS, launch=BOTH)
    notes = [d for d in migrate_text(text, "k.py", Options()).diagnostics if d.code == "TL859"]
    assert [(d.severity, text.split("\n")[d.line - 1].strip()) for d in notes] == [("warning", BACK)]
