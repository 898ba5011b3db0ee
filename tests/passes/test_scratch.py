"""Kept hand-over tensors are called ``workspace_*``, because automatic flags go by that name."""

from __future__ import annotations

import pytest

from tests.passes.support import CV_PARAMS, GEMM_SCALE, gemm_file, migrated, only, same_results

JIT = "out_idx=[2], workspace_idx=[3], pass_configs=pass_configs"
ROW = """
b = T.alloc_ub((64,), "float16")
w = T.alloc_ub((64,), "float32")
T.copy(B[0, 0:64], b)
T.copy(b, w)
for i, j in T.Parallel(16, 64):
    v[i, j] = v[i, j] * w[j]
"""


def fallback(name: str, body: str = GEMM_SCALE) -> str:
    """A kernel that cannot be split (both cores use one row of columns) and exchanges tiles through ``name``."""
    body = body.replace("T.tile.mul(v, u, 2.0)\n", "T.tile.mul(v, u, 2.0)\n" + ROW)
    return gemm_file(
        body.replace("workspace_1", name), params=[p.replace("workspace_1", name) for p in CV_PARAMS], jit=JIT
    )


@pytest.mark.parametrize("name", ["scratch", "ws", "C", "buffer_1"])
def test_a_kept_tensor_is_renamed(name: str) -> None:
    old = fallback(name)
    result = migrated(old)
    assert only(result).target == "fallback"
    new = result.new_text or ""
    assert f"workspace_{name}: T.Tensor" in new
    assert f" {name}[" not in new
    assert new.count(f"workspace_{name}[") == 2
    same_results(old, new)


@pytest.mark.parametrize("name", ["workspace", "workspace_9", "my_workspace"])
def test_a_name_that_is_right_stays(name: str) -> None:
    old = fallback(name)
    result = migrated(old)
    assert only(result).target in ("fallback", "none")
    assert f"{name}: T.Tensor" in (result.new_text or "")
    assert "TL218" not in {change.code for change in result.changes}


def test_a_taken_name() -> None:
    result = migrated(fallback("scratch", "workspace_scratch = 1\n" + GEMM_SCALE))
    assert "TL851" in {d.code for d in result.diagnostics}
    assert only(result).target == "none"


def test_an_output_cannot_be_renamed() -> None:
    text = fallback("scratch").replace("out_idx=[2], workspace_idx=[3]", "out_idx=[2, 3]")
    result = migrated(text)
    assert "TL850" in {d.code for d in result.diagnostics}
    assert "scratch: T.Tensor" in (result.new_text or "")


def test_strings_attributes_and_keywords_of_the_name_stay() -> None:
    body = 'tag = "scratch"\n' + GEMM_SCALE.replace(
        "T.tile.mul(v, u, 2.0)", "T.tile.mul(v, u, 2.0)  # scratch\nT.printf(cfg.scratch)"
    )
    new = migrated(fallback("scratch", body)).new_text or ""
    assert '"scratch"' in new
    assert "# scratch" in new
    assert "cfg.scratch" in new


def test_the_same_name_outside_the_kernel_stays() -> None:
    new = migrated(fallback("scratch") + "\n\nscratch = 3\nprint(scratch)\n").new_text or ""
    assert "scratch = 3\nprint(scratch)" in new


def test_a_second_run_renames_nothing() -> None:
    once = migrated(fallback("scratch")).new_text or ""
    assert migrated(once).new_text == once
