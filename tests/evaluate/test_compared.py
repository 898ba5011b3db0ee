"""What comparing an old and a new kernel says: the faults that a random generator found, and what cannot be told."""

from __future__ import annotations

import pytest

from tests.evaluate.support import SOFTMAX, gpu, npu, outcome
from tests.passes.gpu.support import gpu_file
from tl2npu.migration import migrate_text
from tl2npu.options import Options

ADD = """
x = T.alloc_fragment((16, N), "float32")
T.copy(X[b * 16, 0], x)
for i, j in T.Parallel(16, N):
    x[i, j] = x[i, j] * 2.0 + 1.0
T.copy(x, Y[b * 16, 0])
"""
NEW = ADD.replace("fragment", "shared")


def test_equal_kernels() -> None:
    found = outcome(gpu(ADD), npu(NEW))
    assert found.equal, found.why
    assert found.sizes == {"M": 32, "N": 32}


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("+ 1.0", "- 1.0"),
        ("+ 1.0", "+ 1.0001"),
        ("* 2.0", "* 2.0 * x[i, j]"),
        ("T.copy(x, Y[b * 16, 0])", "T.copy(x, Y[0, 0])"),
        ("x[i, j] * 2.0", "x[i, N - 1 - j] * 2.0"),
        ("T.Parallel(16, N)", "T.Parallel(16, N - 1)"),
        ("X[b * 16, 0]", "X[b * 16 + 1, 0]"),
    ],
)
def test_one_fault(right: str, wrong: str) -> None:
    assert right in NEW
    found = outcome(gpu(ADD), npu(NEW.replace(right, wrong)))
    assert found.equal is False
    assert found.why.startswith("`Y[")


def test_infinity_for_a_number_is_a_difference() -> None:
    masked = ADD.replace("x[i, j] * 2.0 + 1.0", "T.if_then_else(i >= j, x[i, j], -T.infinity('float32'))")
    assert outcome(gpu(masked), npu(masked.replace("fragment", "shared"), 1)).equal
    assert outcome(gpu(masked), npu(NEW.replace("* 2.0 + 1.0", "* 1.0"))).equal is False


def test_a_tail_that_is_lost() -> None:
    """The rows behind the last whole tile."""
    whole = npu(NEW).replace("T.ceildiv(M, 16)", "M // 16")
    assert outcome(gpu(ADD, call="kernel(64, 32)"), whole).equal
    ragged = outcome(gpu(ADD, call="kernel(60, 32)"), whole)
    assert ragged.equal is False, ragged.why
    assert ragged.why.startswith("`Y[48, 0]` would be")


def test_a_tile_that_was_merged_with_its_copy() -> None:
    body = """
    a = T.alloc_fragment((16, N), "float32")
    c = T.alloc_fragment((16, N), "float32")
    d = T.alloc_fragment((16, N), "float32")
    T.copy(X[b * 16, 0], a)
    T.copy(a, d)
    for i, j in T.Parallel(16, N):
        a[i, j] = a[i, j] * 2.0
        c[i, j] = d[i, j] + 1.0
    for i, j in T.Parallel(16, N):
        c[i, j] = c[i, j] + a[i, j]
    T.copy(c, Y[b * 16, 0])
    """
    new = body.replace("fragment", "shared")
    assert outcome(gpu(body), npu(new)).equal
    merged = new.replace("    T.copy(a, d)\n", "").replace("d[i, j]", "a[i, j]")
    assert outcome(gpu(body), npu(merged)).equal is False


def test_an_in_place_permutation_and_a_broadcast_in_place() -> None:
    turned = ADD.replace("x[i, j] = x[i, j] * 2.0 + 1.0", "x[i, j] = x[i, N - 1 - j]")
    in_order = npu(NEW.replace("for i, j in T.Parallel(16, N):", "for i, j in T.grid(16, N):"), 1)
    wrong = in_order.replace("x[i, j] * 2.0 + 1.0", "x[i, N - 1 - j]")
    assert outcome(gpu(turned), wrong).equal is False
    spread = ADD.replace("x[i, j] = x[i, j] * 2.0 + 1.0", "x[i, j] = x[i, j] + x[i, 0]")
    assert outcome(gpu(spread), in_order.replace("x[i, j] * 2.0 + 1.0", "x[i, j] + x[i, 0]")).equal is False


def test_padded_rows_that_are_stored() -> None:
    new = NEW.replace("T.copy(x, Y[b * 16, 0])", "T.copy(x[0:8, :], Y[b * 16 + 8, 0])")
    assert outcome(gpu(ADD), npu(new, 1)).equal is False


def test_the_second_product_starts_anew() -> None:
    old = """
    x = T.alloc_shared((16, N), "float32")
    c = T.alloc_fragment((16, 16), "float32")
    T.copy(X[b * 16, 0], x)
    T.clear(c)
    for k in T.serial(2):
        T.gemm(x, x, c, transpose_B=True)
    T.copy(c, Y[b * 16, 0])
    """
    new = old.replace("    T.clear(c)\n", "").replace("gemm(x, x, c, transpose_B=True)", "gemm_v0(x, x, c, {})")
    new = new.replace("{}", "transpose_B=True, init={}")
    assert outcome(gpu(old), npu(new.format("(k == 0)"))).equal
    assert outcome(gpu(old), npu(new.format("True"))).equal is False
    assert outcome(gpu(old), npu(new.format("False"))).equal is False


def test_blocks_that_store_in_the_same_place_are_told_apart() -> None:
    new = npu(NEW.replace("T.copy(x, Y[b * 16, 0])", "T.copy(x, Y[b * 16, 0])\nT.copy(x, Y[b * 16 + 16, 0])"))
    assert outcome(gpu(ADD), new).equal is False


def test_a_switch_takes_both_values() -> None:
    more = {"params": "M, N, twice=False"}
    text = "x[i, j] * 2.0 + 1.0"
    old = gpu(ADD.replace(text, "T.if_then_else(twice, x[i, j] * 2.0, x[i, j])"), **more)
    assert outcome(old, npu(NEW.replace(text, "T.if_then_else(twice, x[i, j] * 2.0, x[i, j])"), **more)).equal
    assert outcome(old, npu(NEW.replace(text, "x[i, j] * 1.0"), **more)).equal is False


@pytest.mark.parametrize(
    ("old", "why"),
    [
        ("T.call_extern('handle', 'f', x.data)", "the old kernel: `T.call_extern`"),
        ("T.ptx_mma(x, x, x)", "the old kernel: "),
    ],
)
def test_what_has_no_meaning_is_not_checked(old: str, why: str) -> None:
    found = outcome(gpu(ADD + old + "\n"), npu(NEW))
    assert found.equal is None
    assert found.why.startswith(why)


def test_a_difference_at_small_sizes_only_is_none() -> None:
    """What is right at the sizes of every call is not refused for others."""
    new = NEW.replace("+ 1.0", "+ T.if_then_else(M == 64, 1.0, 2.0)")
    assert outcome(gpu(ADD), npu(new)).equal


def test_indices_are_drawn_within_their_axis() -> None:
    tensors = 'X: T.Tensor((M, N), "float32"), ix: T.Tensor((M,), "int32"), Y: T.Tensor((M, N), "float32")'
    body = """
    x = T.alloc_fragment((16, N), "float32")
    for i, j in T.Parallel(16, N):
        x[i, j] = X[ix[b * 16 + i], j]
    T.copy(x, Y[b * 16, 0])
    """
    new = body.replace("fragment", "shared")
    assert outcome(gpu(body, tensors=tensors), npu(new, 1, tensors=tensors)).equal
    wrong = new.replace("ix[b * 16 + i]", "b * 16 + i")
    assert outcome(gpu(body, tensors=tensors), npu(wrong, 1, tensors=tensors)).equal is False


def test_a_kernel_whose_blocks_race_is_not_checked() -> None:
    body = ADD.replace("Y[b * 16, 0]", "Y[0, 0]")
    found = outcome(gpu(body), npu(body.replace("fragment", "shared")))
    assert found.equal is None
    assert found.why == "the old kernel: its blocks store different values in one place"


FIRST = "if i > 2:\n        x[i, j] = 0.0\n    else:\n        x[i, j] = x[15 - i, j]"
LAST = "if i <= 2:\n        x[i, j] = x[15 - i, j]\n    else:\n        x[i, j] = 0.0"


@pytest.mark.parametrize("arms", [FIRST, LAST])
def test_lanes_that_read_what_others_store_are_not_checked(arms: str) -> None:
    """What the second lane reads may be old or new: any of them is right."""
    text = "x[i, j] = x[i, j] * 2.0 + 1.0"
    turned = NEW.replace("T.Parallel(16, N)", "T.grid(16, N)").replace(text, "x[i, j] = x[i, j] * 3.0")
    found = outcome(gpu(ADD.replace(text, arms)), npu(turned, 1))
    assert found.equal is None
    assert "that others" in found.why


def test_the_one_row_of_a_half_is_filled_behind_the_end() -> None:
    """``copy_gm_to_ub`` clamps the row too: the second core loads nothing, and its tile is zeros."""
    body = """
    t = T.alloc_fragment((2, 16), "float16")
    T.copy(X[1, bx * 16], t)
    T.copy(t, Y[0, bx * 16])
    """
    text = gpu_file('X: T.Tensor((2, 32), "float16"), Y: T.Tensor((2, 32), "float16")', body)
    (kernel,) = migrate_text(text, "k.py", Options()).kernels
    assert (kernel.disposition, kernel.checked and kernel.checked.equal) == ("migrated", True)


PRODUCT = """
x = T.alloc_shared((16, N), "float32")
c = T.alloc_fragment((16, 16), "float32")
T.copy(X[b * 16, 0], x)
T.gemm(x, x, c, transpose_B=True, clear_accum=True)
T.copy(c, Y[b * 16, 0])
"""


@pytest.mark.parametrize(
    ("right", "wrong", "why"),
    [
        ("T.copy(X[b * 16, 0], x)", "T.copy(X[row, 0], x)", "`row` has no value"),
        (", transpose_B=True", "", "a product of matrices that do not fit"),
        ("c = T.alloc_fragment((16, 16)", "c = T.alloc_fragment((16, 8)", "a product does not fit its sum"),
        ("T.copy(c, Y[b * 16, 0])", "T.copy(c[0], Y[b * 16, 0, 0])", "`Y` has more indices than axes"),
    ],
)
def test_a_new_kernel_that_nothing_can_run_differs(right: str, wrong: str, why: str) -> None:
    new = PRODUCT.replace("T.gemm(", "T.gemm_v0(").replace("clear_accum", "init")
    assert outcome(gpu(PRODUCT), npu(new)).equal
    assert right in new
    found = outcome(gpu(PRODUCT), npu(new.replace(right, wrong)))
    assert (found.equal, found.fails) == (False, True), found.why
    assert found.why.startswith(why)


def test_an_old_kernel_that_nothing_can_run_is_not_checked() -> None:
    new = PRODUCT.replace("T.gemm(", "T.gemm_v0(").replace("clear_accum", "init")
    found = outcome(gpu(PRODUCT.replace("X[b * 16, 0]", "X[row, 0]")), npu(new))
    assert (found.equal, found.why) == (None, "the old kernel: `row` has no value")


@pytest.mark.parametrize("wrong", ["T.reduce_min(x, top, dim=1)", "T.tile.fill(top, 0.0)"])
def test_a_maximum_that_keeps_exp_from_overflowing(wrong: str) -> None:
    """Without it the sum is the same for small numbers: some that are drawn are large."""
    new = SOFTMAX.replace("fragment", "shared")
    assert outcome(gpu(SOFTMAX), npu(new)).equal
    assert outcome(gpu(SOFTMAX), npu(new.replace("T.reduce_max(x, top, dim=1)", wrong))).equal is False


def test_exponentials_that_overflow_in_the_old_kernel_are_drawn_smaller() -> None:
    text = "T.exp(x[i, j] * 40.0) * 0.0 + x[i, j]"
    old = ADD.replace("x[i, j] * 2.0 + 1.0", text)
    assert outcome(gpu(old), npu(NEW.replace("x[i, j] * 2.0 + 1.0", text))).equal
    assert outcome(gpu(old), npu(NEW.replace("x[i, j] * 2.0 + 1.0", "x[i, j] * 2.0"))).equal is False


@pytest.mark.parametrize("extents", ["T.Parallel(16, N + 1)", "T.Parallel(17, N)"])
def test_an_element_behind_the_end_of_a_tile(extents: str) -> None:
    """A GPU guards it, an NPU stores it somewhere else."""
    found = outcome(gpu(ADD), npu(NEW.replace("T.Parallel(16, N)", extents), 1))
    assert (found.equal, found.why) == (False, "an element outside of `x` is stored")
    guarded = "if i < 16 and j < N:\n        x[i, j] = x[i, j] * 2.0 + 1.0"
    new = NEW.replace("T.Parallel(16, N)", extents).replace("x[i, j] = x[i, j] * 2.0 + 1.0", guarded)
    assert outcome(gpu(ADD), npu(new, 1)).equal
    assert outcome(gpu(ADD.replace("T.Parallel(16, N)", extents)), npu(NEW)).equal


def test_counts_have_a_part_of_a_tile() -> None:
    """Rows behind the count of a group stay as they were."""
    tensors = 'X: T.Tensor((M, N), "float32"), sizes: T.Tensor((M // 16,), "int32"), Y: T.Tensor((M, N), "float32")'
    body = """
    x = T.alloc_fragment((16, N), "float32")
    T.copy(X[b * 16, 0], x)
    for i, j in T.Parallel(16, N):
        if i < sizes[b]:
            Y[b * 16 + i, j] = x[i, j]
    """
    new = body.replace("fragment", "shared")
    assert outcome(gpu(body, tensors=tensors), npu(new, 1, tensors=tensors)).equal
    wrong = new.replace("if i < sizes[b]", "if i >= 0")
    assert outcome(gpu(body, tensors=tensors), npu(wrong, 1, tensors=tensors)).equal is False


def test_what_cancels_is_taken_by_its_row() -> None:
    """Rows of large numbers hide no fault of a row of small ones."""
    big = "x[i, j] * T.exp(T.cast(i, 'float32') * 5.0)"
    old = ADD.replace("x[i, j] * 2.0 + 1.0", f"{big} + 1.0")
    new = NEW.replace("x[i, j] * 2.0 + 1.0", f"{big} + {{}}")
    assert outcome(gpu(old), npu(new.format("1.0"), 1)).equal
    assert outcome(gpu(old), npu(new.format("T.if_then_else(i == 0, 1.5, 1.0)"), 1)).equal is False


def test_formulas_that_overflow_before_each_other_are_the_same() -> None:
    """``cosh`` of 89 is a number in float32, and half of a sum that is none."""
    old = ADD.replace("x[i, j] * 2.0 + 1.0", "T.cosh(x[i, j])")
    formula = "(T.exp(x[i, j]) + T.exp(-x[i, j])) * {}"
    new = NEW.replace("x[i, j] * 2.0 + 1.0", formula)
    assert outcome(gpu(old), npu(new.format("0.5"), 1)).equal
    assert outcome(gpu(old), npu(new.format("0.25"), 1)).equal is False


def test_integers_that_come_of_no_number_are_not_compared() -> None:
    """``0.0 / 0`` as an integer is what each machine makes of it; what is computed of that is compared all the same."""
    tensors = 'X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "int32")'
    body = """
    for i, j in T.Parallel(16, N):
        Y[b * 16 + i, j] = T.cast(j / (j * VALUE), "int32")
    """
    old, right, wrong = (body.replace("VALUE", value) for value in ("1.0", "1.0 + 1e-30", "2.0"))
    assert outcome(gpu(old, tensors=tensors), gpu(right, tensors=tensors)).equal
    assert outcome(gpu(old, tensors=tensors), gpu(wrong, tensors=tensors)).equal is False
