"""Reductions and scans in the NPU's form."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.stage import after, blocked, same
from tests.passes.gpu.support import agree, gpu_file, migrated, refused, result_of
from tests.passes.simulated import run
from tl2npu.passes.gpu import fills
from tl2npu.passes.gpu.reductions import rewrite as reductions

M, N = 8, 16
PARAMS = 'A: T.Tensor((16, 16), "float32"), R: T.Tensor((16,), "float32")'
RNG = np.random.default_rng(4)
INPUT = {"A": RNG.standard_normal((16, 16)).astype(np.float32)}


def row_kernel(body: str, params: str = PARAMS, tile: str = '"float32"') -> str:
    """Rows of ``A`` into ``R``; ``body`` works on ``a`` and ``r``."""
    tiles = f'a = T.alloc_shared((8, 16), {tile})\nr = T.alloc_shared((8,), "float32")'
    return gpu_file(params, f"{tiles}\nT.copy(A[bx * 8, 0], a)\n{body}\nT.copy(r, R[bx * 8])")


@pytest.mark.parametrize("name", ["max", "min", "sum"])
@pytest.mark.parametrize("form", ["dim=1", "dim=-1", "1", "dim=1, clear=True", "-1, True"])
def test_plain_reductions_stay(name: str, form: str) -> None:
    text = row_kernel(f"T.reduce_{name}(a, r, {form})")
    assert same(text, INPUT, reductions.rewrite) == text


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("T.reduce_absmax(a, r, dim=1)", np.abs(INPUT["A"]).max(1)),
        ("T.reduce_abssum(a, r)", np.abs(INPUT["A"]).sum(1)),
        ("T.reduce(a, r, 'max', 1, True)", INPUT["A"].max(1)),
        ("T.reduce_max(a, r, dim=1, nan_propagate=False, batch=1)", INPUT["A"].max(1)),
        ("T.reduce_sum(a, r, 1, True, 1)", INPUT["A"].sum(1)),
    ],
)
def test_other_forms(call: str, expected: np.ndarray) -> None:
    text = row_kernel(call)
    new = same(text, INPUT, reductions.rewrite)
    assert "batch" not in new
    assert "T.reduce(" not in new
    assert "T.copy(r" in new
    np.testing.assert_allclose(run(new.replace("threads=128", "threads=1, is_npu=True"), INPUT)["R"], expected, 1e-5)


def test_a_filled_result_needs_no_merge() -> None:
    text = row_kernel(
        'T.fill(r, -T.infinity("float32"))\nT.copy(A[bx * 8, 0], a)\nT.reduce_max(a, r, dim=1, clear=False)'
    )
    new = same(text, INPUT, fills.rewrite, reductions.rewrite)
    assert "T.reduce_max(a, r, dim=1)\n" in new
    assert "fill" not in new


def test_a_clear_before_a_sum_goes() -> None:
    new = same(row_kernel("T.clear(r)\nT.reduce_sum(a, r, dim=1, clear=False)"), INPUT, reductions.rewrite)
    assert "T.clear" not in new
    assert "T.reduce_sum(a, r, dim=1)\n" in new


def test_a_fill_that_something_reads_stays() -> None:
    body = "T.clear(r)\nT.copy(r, R[bx * 8])\nT.reduce_sum(a, r, dim=1, clear=False)"
    new = same(row_kernel(body), INPUT, fills.rewrite, reductions.rewrite)
    assert "T.tile.fill(r, 0.0)" in new
    assert "T.reduce_sum(a, r, dim=1)\n" in new


UNWRITTEN = {
    "at once": "T.reduce_{name}(a, r, dim=1, clear=False)",
    "in place": "T.reduce_{name}(a, r, 1, False)",
    "under a condition": "if bx >= 0:\n    T.reduce_{name}(a, r, dim=1, clear=False)",
    "written later": "T.reduce_{name}(a, r, dim=1, clear=False)\nT.copy(r, R[bx * 8])\nfor i in T.Parallel(8):\n"
    "    r[i] = r[i] * 1.0",
}


@pytest.mark.parametrize("name", ["max", "min", "sum"])
@pytest.mark.parametrize("form", UNWRITTEN.values(), ids=UNWRITTEN.keys())
def test_a_result_that_nothing_wrote_takes_no_part(name: str, form: str) -> None:
    result = result_of(row_kernel(form.format(name=name)))
    new = result.new_text or ""
    assert [(d.code, d.severity) for d in result.diagnostics if d.severity != "info"] == [("TL601", "warning")]
    assert not any(word in new for word in ("clear", "T.tile.max", "T.tile.min", "T.tile.add", "_part"))
    np.testing.assert_allclose(run(new, INPUT)["R"], getattr(INPUT["A"], name)(1), 1e-5)


WRITTEN = {
    "in the turn before": "for k in T.serial(2):\n    T.reduce_max(a, r, dim=1, clear=False)",
    "in part": "for i in T.Parallel(4):\n    r[i] = 2.0\nT.reduce_max(a, r, dim=1, clear=False)",
    "under a condition": "if bx > 0:\n    T.fill(r, 2.0)\nT.reduce_max(a, r, dim=1, clear=False)",
    "by a loop behind": "for k in T.serial(2):\n    T.reduce_max(a, r, dim=1, clear=False)\n    T.fill(r, 2.0)",
}


@pytest.mark.parametrize("form", WRITTEN.values(), ids=WRITTEN.keys())
def test_a_result_that_something_may_have_written_is_joined(form: str) -> None:
    result = result_of(row_kernel(form))
    assert "TL601" not in {d.code for d in result.diagnostics}
    assert "T.tile.max(r, r, " in (result.new_text or ""), result.diagnostics


def test_a_number_is_joined() -> None:
    new = same(row_kernel("T.fill(r, 1)\nT.reduce_max(a, r, dim=1, clear=False)"), INPUT, reductions.rewrite)
    assert "T.tile.max(r, r, 1.0)" in new
    assert "T.fill" not in new


@pytest.mark.parametrize(("name", "join"), [("max", "max"), ("min", "min"), ("sum", "add")])
def test_loops_join_with_the_old_result(name: str, join: str) -> None:
    body = f"""T.fill(r, 0.25)
for k in T.serial(3):
    T.copy(A[bx * 8, 0], a)
    T.reduce_{name}(a, r, dim=1, clear=False)"""
    new = same(row_kernel(body), INPUT, fills.rewrite, reductions.rewrite)
    assert f"T.tile.{join}(r, r, r_part)" in new
    assert 'r_part = T.alloc_shared((8,), "float32")' in new


def test_a_kept_copy_is_joined() -> None:
    body = """previous = T.alloc_shared((8,), "float32")
T.fill(r, 0.25)
for k in T.serial(3):
    T.copy(r, previous)
    T.copy(A[bx * 8, 0], a)
    T.reduce_max(a, r, dim=1, clear=False)"""
    new = same(row_kernel(body), INPUT, fills.rewrite, reductions.rewrite)
    assert "T.tile.max(r, r, previous)" in new
    assert "r_part" not in new


def test_a_copy_that_was_overwritten_is_not() -> None:
    body = """previous = T.alloc_shared((8,), "float32")
T.fill(r, 0.25)
for k in T.serial(3):
    T.copy(r, previous)
    T.clear(previous)
    T.reduce_max(a, r, dim=1, clear=False)"""
    assert "T.tile.max(r, r, r_part)" in same(row_kernel(body), INPUT, fills.rewrite, reductions.rewrite)


def test_columns() -> None:
    text = gpu_file(
        'A: T.Tensor((16, 16), "float32"), R: T.Tensor((2, 16), "float32")',
        """
        a = T.alloc_shared((8, 16), "float32")
        r = T.alloc_shared((16,), "float32")
        T.copy(A[bx * 8, 0], a)
        T.reduce_absmax(a, r, dim=0)
        T.copy(r, R[bx, 0])
        """,
    )
    assert "T.reduce_max(a_abs, r, dim=0)" in same(text, INPUT, reductions.rewrite)


def test_sums_of_half_floats_are_made_in_float32() -> None:
    params = 'A: T.Tensor((16, 16), "float16"), R: T.Tensor((16,), "float32")'
    new = same(
        row_kernel("T.reduce_sum(a, r, dim=1)", params, '"float16"'),
        {"A": INPUT["A"].astype(np.float16)},
        reductions.rewrite,
        rtol=1e-2,
    )
    assert "T.copy(a, a_f32)" in new
    assert "T.reduce_sum(a_f32, r, dim=1)" in new


def test_three_axes() -> None:
    text = gpu_file(
        'A: T.Tensor((2, 4, 8, 16), "float32"), R: T.Tensor((2, 4, 8), "float32")',
        """
        a = T.alloc_shared((4, 8, 16), "float32")
        r = T.alloc_shared((4, 8), "float32")
        T.copy(A[bx, 0, 0, 0], a)
        T.reduce_sum(a, r, dim=-1)
        T.copy(r, R[bx, 0, 0])
        """,
    )
    new = after(text, reductions.rewrite)
    assert "for i in T.serial(4):" in new
    assert "T.reduce_sum(a[i, :, :], r[i, :])" in new


SCANS = {
    "T.cumsum(a, dim=0)": np.cumsum(INPUT["A"].reshape(2, 8, 16), 1),
    "T.cumsum(a, a, 0, True)": np.cumsum(INPUT["A"].reshape(2, 8, 16)[:, ::-1], 1)[:, ::-1],
    "T.cumsum(a, dim=1)": np.cumsum(INPUT["A"].reshape(2, 8, 16), 2),
    "T.cumsum(a, dim=-1, reverse=True)": np.cumsum(INPUT["A"].reshape(2, 8, 16)[:, :, ::-1], 2)[:, :, ::-1],
    "T.cummax(a, dim=0)": np.maximum.accumulate(INPUT["A"].reshape(2, 8, 16), 1),
    "T.cummax(a, dim=1)": np.maximum.accumulate(INPUT["A"].reshape(2, 8, 16), 2),
}


@pytest.mark.parametrize("call", SCANS)
def test_scans(call: str) -> None:
    text = gpu_file(
        'A: T.Tensor((16, 16), "float32"), B: T.Tensor((16, 16), "float32")',
        f"""
        a = T.alloc_shared((8, 16), "float32")
        T.copy(A[bx * 8, 0], a)
        {call}
        T.copy(a, B[bx * 8, 0])
        """,
    )
    new = same(text, INPUT, reductions.rewrite)
    assert "T.cum" not in new
    found = run(new.replace("threads=128", "threads=1, is_npu=True"), INPUT)["B"]
    np.testing.assert_allclose(found, SCANS[call].reshape(16, 16), 1e-5, 1e-5)


def test_a_scan_of_a_vector_into_another() -> None:
    text = gpu_file(
        'A: T.Tensor((32,), "float32"), B: T.Tensor((32,), "float32")',
        """
        a = T.alloc_shared((16,), "float32")
        b = T.alloc_shared((16,), "float32")
        T.copy(A[bx * 16], a)
        T.cumsum(a, b)
        T.copy(b, B[bx * 16])
        """,
    )
    assert "T.copy(a, b)" in same(text, {"A": INPUT["A"].reshape(-1)[:32]}, reductions.rewrite)


@pytest.mark.parametrize(
    "call",
    [
        "T.reduce_bitand(a, r, dim=1)",
        "T.reduce(a, r, 'bitor', 1, True)",
        "T.reduce_max(a, r, dim=bx)",
        "T.reduce_max(a, r, dim=2)",
        "T.reduce_max(a, r, dim=-3)",
        "T.reduce_max(a, r, dim=1, nan_propagate=True)",
        "T.reduce_max(a, r, dim=1, nan_propagate=bx)",
        "T.cumsum(a, dim=bx)",
        "T.reduce_max(a[0:8, 0:8], r, dim=1)",
        "T.reduce_max(A, r, dim=1)",
    ],
)
def test_refusals(call: str) -> None:
    assert blocked(row_kernel(call), reductions.rewrite) == ("TL164", 13)


def test_rows_must_be_whole_blocks() -> None:
    text = row_kernel("T.reduce_max(a, r, dim=1)").replace("16), ", "20), ")
    assert blocked(text, reductions.rewrite)[0] == "TL164"


@pytest.mark.parametrize("backward", [True, False])
def test_a_direction_that_the_factory_chooses(backward: bool) -> None:
    text = gpu_file(
        'A: T.Tensor((16, 16), "float32"), B: T.Tensor((16, 16), "float32")',
        """
        a = T.alloc_shared((8, 16), "float32")
        T.copy(A[bx * 8, 0], a)
        T.cumsum(a, dim=0, reverse=backward)
        T.copy(a, B[bx * 8, 0])
        """,
        args="backward",
    )
    assert "if backward:" in same(text, INPUT, reductions.rewrite, args=(backward,))


PLACES = 'A: T.Tensor((64, 32), "float32"), I: T.Tensor((64,), "int32")'
PLACE = """a = T.alloc_fragment((32, 32), "float32")
best = T.alloc_fragment((32,), "float32")
index = T.alloc_fragment((32, 32), "int32")
first = T.alloc_fragment((32,), "int32")
T.copy(A[bx * 32, 0], a)
T.reduce_max(a, best, dim=1)
{fill}
for i, j in T.Parallel(32, 32):
    {store}
T.reduce_{kind}(index, first, dim=1)
T.copy(first, I[bx * 32])
"""
FILL = "T.fill(index, {})".format


@pytest.mark.parametrize(
    ("kind", "fill", "store"),
    [
        ("max", FILL(-1), "index[i, j] = T.if_then_else(a[i, j] == best[i], j, index[i, j])"),
        ("max", "T.clear(index)", "if a[i, j] >= best[i]:\n        index[i, j] = j"),
        ("min", "", "index[i, j] = T.if_then_else(a[i, j] == best[i], j, 32)"),
        ("min", FILL(1 << 24), "index[i, j] = T.if_then_else(a[i, j] == best[i], T.max(j, 1), index[i, j])"),
        ("max", "", "index[i, j] = T.if_then_else(a[i, j] == best[i], i, -1)"),
    ],
)
def test_indices_and_numbers_are_reduced_as_floats(kind: str, fill: str, store: str) -> None:
    text = gpu_file(PLACES, PLACE.format(kind=kind, fill=fill, store=store))
    new = agree(text, {"A": RNG.integers(0, 9, (64, 32)).astype(np.float32)})
    assert "index_f32" in new


def test_a_tile_of_indices_that_others_read_is_copied() -> None:
    body = PLACE.format(kind="max", fill=FILL(-1), store="index[i, j] = T.if_then_else(a[i, j] == best[i], j, -1)")
    text = gpu_file(PLACES + ', J: T.Tensor((64, 32), "int32")', body + "T.copy(index, J[bx * 32, 0])")
    text = text.replace("out_idx=[-1]", "out_idx=[1, 2]")
    assert "T.copy(index, index_f32)" in agree(text, {"A": INPUT["A"].repeat(4, 0).repeat(2, 1)})


@pytest.mark.parametrize(
    ("kind", "fill", "store"),
    [
        ("sum", FILL(-1), "index[i, j] = T.if_then_else(a[i, j] == best[i], j, index[i, j])"),
        ("max", FILL((1 << 24) + 1), "index[i, j] = T.if_then_else(a[i, j] == best[i], j, index[i, j])"),
        ("max", FILL(0), "index[i, j] += j"),
        ("max", FILL(0), "index[i, j] = T.if_then_else(a[i, j] == best[i], bx * 32 + j, index[i, j])"),
        ("max", "T.copy(I[0:32], index[0, :])", "index[i, j] = T.if_then_else(a[i, j] == best[i], j, index[i, j])"),
    ],
)
def test_other_integers_are_not(kind: str, fill: str, store: str) -> None:
    assert {code for code, _ in refused(gpu_file(PLACES, PLACE.format(kind=kind, fill=fill, store=store)))} == {"TL164"}


@pytest.mark.parametrize("shape", ["n", "(n)", "(n,)", "one", "half * 2"])
def test_a_scan_of_a_vector_whose_size_is_spelled_in_one_way_or_another(shape: str) -> None:
    params = 'A: T.Tensor((n,), "float32"), C: T.Tensor((n,), "float32")'
    body = f'a = T.alloc_fragment({shape}, "float32")\nT.copy(A, a)\nT.cumsum(a, dim=0)\nT.copy(a, C)\n'
    text = gpu_file(params, body, args="n, half=8", launch="T.Kernel(1, threads=128) as bx", factory="one = (n,)")
    agree(text, {"A": np.arange(16, dtype=np.float32)}, args=(16,))


@pytest.mark.parametrize(("columns", "width"), [("20", "24"), ("28", ""), ("N", "(N + 7) // 8 * 8")])
def test_a_sum_of_padded_halves_has_rows_of_whole_blocks_of_float32(columns: str, width: str) -> None:
    """The compiler takes rows of as many whole blocks as ``real_shape`` needs, whatever those of the tile are."""
    params = f'X: T.Tensor((64, {columns}), "float16"), Y: T.Tensor((64,), "float16")'
    body = f"""x = T.alloc_fragment((16, {columns}), "float16")
s = T.alloc_fragment((16,), "float16")
T.copy(X[bx * 16, 0], x)
T.reduce_sum(x, s, dim=1)
T.copy(s, Y[bx * 16])
"""
    new = migrated(gpu_file(params, body, args="N=20", launch="T.Kernel(4, threads=128) as bx"))
    copy = f"T.copy(x[:, 0 : {width}], x_f32)" if width else "T.copy(x, x_f32)"
    assert copy.replace(" ", "") in new.replace(" ", "")
    assert f"real_shape=[16, {columns}]" in new


def test_a_reduction_of_float32_beside_halves_of_its_width_has_rows_of_its_own_too() -> None:
    params = 'X: T.Tensor((64, N), "float32"), H: T.Tensor((64, N), "float16"), Y: T.Tensor((64,), "float32")'
    body = """x = T.alloc_fragment((16, N), "float32")
h = T.alloc_fragment((16, N), "float16")
s = T.alloc_fragment((16,), "float32")
T.copy(X[bx * 16, 0], x)
T.reduce_min(x, s, dim=1)
T.copy(x, h)
T.copy(h, H[bx * 16, 0])
T.copy(s, Y[bx * 16])
"""
    launch = "T.Kernel(4, threads=128) as bx"
    new = migrated(gpu_file(params, body, args="N=20", launch=launch, jit="@tilelang.jit(out_idx=[1, 2])"))
    assert "T.copy(x[:,0:(N+7)//8*8],x_rows)" in new.replace(" ", "")
