"""Memories of GPU kernels: gemm operands, products, vector tiles, and the hand-overs between them."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

from tests.passes.gpu.support import agree, gpu_file, migrated, refused
from tl2npu.migration import check_text
from tl2npu.options import Options

RNG = np.random.default_rng(7)
A = RNG.standard_normal((64, 96)).astype(np.float16)
B = RNG.standard_normal((96, 64)).astype(np.float16)
BIAS = RNG.standard_normal((64, 64)).astype(np.float32)
GEMM = 'A: T.Tensor((64, 96), "float16"), B: T.Tensor((96, 64), "float16"), C: T.Tensor((64, 64), "float32")'
TILES = """
a = T.alloc_shared((32, 32), "float16")
b = T.alloc_shared((32, 64), "float16")
acc = T.alloc_fragment((32, 64), "float32")
"""
LOAD = "    T.copy(A[bx * 32, k * 32], a)\n    T.copy(B[k * 32, 0], b)\n"
STORE = "T.copy(acc, C[bx * 32, 0])\n"
INPUTS = {"A": A, "B": B}


def body(*parts: str) -> str:
    return TILES + "".join(parts)


def test_plain_product() -> None:
    text = body(
        "T.clear(acc)\nfor k in T.Pipelined(3, num_stages=3):\n",
        LOAD,
        "    T.gemm(a, b, acc)\n",
        STORE,
    )
    new = agree(gpu_file(GEMM, text), INPUTS)
    assert "T.gemm_v0(a, b, acc, init=(k == 0))" in new
    assert "T.clear" not in new
    assert "T.Pipelined(3, num_stages=3)" in new
    assert "T.Kernel(2, is_npu=True) as (bx, _)" in new


@pytest.mark.parametrize("fill", ["T.fill(acc, 0)", "T.fill(acc, 0.0)", "T.clear(acc)", "T.fill(value=0, buffer=acc)"])
def test_spellings_of_zero(fill: str) -> None:
    text = body(f"{fill}\nfor k in T.serial(1, 3):\n", LOAD, "    T.gemm(a, b, acc)\n", STORE)
    assert "init=(k == 1)" in agree(gpu_file(GEMM, text), INPUTS)


def test_first_step_clears() -> None:
    text = body(
        "for k in range(3):\n    if k == 0:\n        T.clear(acc)\n",
        LOAD,
        "    T.gemm(a, b, acc)\n",
        STORE,
    )
    new = agree(gpu_file(GEMM, text), INPUTS)
    assert "init=k == 0)" in new
    assert "if k" not in new


@pytest.mark.parametrize("flag", ["clear_accum=(k == 0)", "clear_accum=k == 0"])
def test_clear_accum_of_the_first_step(flag: str) -> None:
    text = body("for k in range(3):\n", LOAD, f"    T.gemm(a, b, acc, {flag})\n", STORE)
    agree(gpu_file(GEMM, text), INPUTS)


def test_staged_store_goes_directly() -> None:
    params = GEMM.replace('C: T.Tensor((64, 64), "float32")', 'C: T.Tensor((64, 64), "float16")')
    text = body(
        'staged = T.alloc_shared((32, 64), "float16")\nT.clear(acc)\nfor k in T.Pipelined(3, num_stages=2):\n',
        LOAD,
        "    T.gemm(a, b, acc)\nT.copy(acc, staged)\nT.copy(staged, C[bx * 32, 0])\n",
    )
    new = agree(gpu_file(params, text), INPUTS, atol=2e-2)
    assert "staged" not in new


def test_what_is_said_of_a_stage_is_said_of_the_store() -> None:
    text = body(
        'staged = T.alloc_shared((32, 64), "float32")\nT.clear(acc)\nfor k in T.Pipelined(3, num_stages=2):\n',
        LOAD,
        "    T.gemm(a, b, acc)\n\n# to global memory\nT.copy(acc, staged)\nT.copy(staged, C[bx * 32, 0])\n",
    )
    assert "            # to global memory\n            T.copy(acc, C[bx * 32, 0])\n" in migrated(gpu_file(GEMM, text))


@pytest.mark.parametrize("behind", [True, False])
def test_a_stage_of_two_arms(behind: bool) -> None:
    """Each arm stores its own product; where the stage is stored behind them, it stays."""
    params = GEMM.replace('C: T.Tensor((64, 64), "float32")', 'C: T.Tensor((64, 64), "float16")')
    store = "T.copy(staged, C[bx * 32, 0])\n"
    arm = "    T.clear(acc)\n    for k in T.serial({steps}):\n" + textwrap.indent(LOAD, "    ")
    arm += "        T.gemm(a, b, acc)\n    T.copy(acc, staged)\n" + ("" if behind else f"    {store}")
    text = body('staged = T.alloc_shared((32, 64), "float16")\n', "if bx == 0:\n", arm.format(steps=3), "else:\n")
    text += arm.format(steps=2) + (store if behind else "")
    new = agree(gpu_file(params, text), INPUTS, atol=2e-2)
    assert ("staged" in new) is behind


def test_epilogue_takes_one_copy_behind_the_loop() -> None:
    params = GEMM.replace("C:", 'D: T.Tensor((64, 64), "float32"), C:')
    text = body(
        'd = T.alloc_shared((32, 64), "float32")\nT.clear(acc)\nfor k in T.Pipelined(3, num_stages=2):\n',
        LOAD,
        "    T.gemm(a, b, acc)\nT.copy(D[bx * 32, 0], d)\n",
        "for i, j in T.Parallel(32, 64):\n    acc[i, j] = acc[i, j] + d[i, j]\n",
        STORE,
    )
    new = agree(gpu_file(params, text), {**INPUTS, "D": BIAS})
    assert new.count("T.copy(acc_l0c, ") == 1
    assert "T.Pipelined(3, num_stages=2)" in new


def test_product_added_to_what_was_loaded() -> None:
    params = GEMM.replace("C:", 'D: T.Tensor((64, 64), "float32"), C:')
    text = body(
        "T.copy(D[bx * 32, 0], acc)\nfor k in T.Pipelined(3):\n",
        LOAD,
        "    T.gemm(a, b, acc)\n",
        STORE,
    )
    new = agree(gpu_file(params, text), {**INPUTS, "D": BIAS})
    assert "acc[i, j] += acc_part[i, j]" in new


def test_sum_rescaled_in_every_step_is_closed_through_an_operand() -> None:
    text = body(
        "T.clear(acc)\nfor k in T.Pipelined(3, num_stages=2):\n",
        LOAD,
        "    for i, j in T.Parallel(32, 64):\n        acc[i, j] = acc[i, j] * 0.5\n    T.gemm(a, b, acc)\n",
        STORE,
    )
    new = agree(gpu_file(GEMM, text), INPUTS)
    assert "T.copy(a, a_l1)" in new
    assert "T.serial(3)" in new


def test_operand_made_by_vector_code() -> None:
    text = body(
        'raw = T.alloc_shared((32, 64), "float16")\nT.clear(acc)\nfor k in T.Pipelined(3, num_stages=2):\n',
        "    T.copy(A[bx * 32, k * 32], a)\n    T.copy(B[k * 32, 0], raw)\n",
        "    for i, j in T.Parallel(32, 64):\n        b[i, j] = raw[i, j] * 0.5\n    T.gemm(a, b, acc)\n",
        STORE,
    )
    new = agree(gpu_file(GEMM, text), INPUTS, atol=1e-2)
    assert "T.copy(b, b_l1)" in new
    assert "T.gemm_v0(a, b_l1, acc, init=(k == 0))" in new
    assert "T.gemm_v0(token_l1, token_l1, token_l0c, init=True)" in new


def test_tile_used_by_both_cores_is_loaded_twice() -> None:
    params = GEMM.replace("C:", 'S: T.Tensor((64, 96), "float16"), C:')
    text = body(
        "T.clear(acc)\nfor k in T.Pipelined(3, num_stages=2):\n",
        LOAD,
        "    for i, j in T.Parallel(32, 32):\n        s[i, j] = a[i, j] + a[i, j]\n"
        "    T.copy(s, S[bx * 32, k * 32])\n    T.gemm(a, b, acc)\n",
        STORE,
    ).replace("acc =", 's = T.alloc_fragment((32, 32), "float16")\nacc =')
    new = agree(gpu_file(params, text), INPUTS)
    assert "T.copy(A[bx * 32, k * 32], a_l1)" in new
    assert "T.copy(a, a_l1)" not in new


def test_chained_products() -> None:
    params = GEMM.replace("C:", 'V: T.Tensor((64, 64), "float16"), C:')
    text = body(
        'v = T.alloc_shared((64, 64), "float16")\nnarrow = T.alloc_fragment((32, 64), "float16")\n'
        'out = T.alloc_fragment((32, 64), "float32")\nT.copy(V, v)\nT.clear(out)\nfor k in T.serial(3):\n',
        LOAD,
        "    T.clear(acc)\n    T.gemm(a, b, acc)\n    T.copy(acc, narrow)\n    T.gemm(narrow, v, out)\n",
        "T.copy(out, C[bx * 32, 0])\n",
    )
    small = {"A": A, "B": B, "V": (RNG.standard_normal((64, 64)) / 8).astype(np.float16)}
    agree(gpu_file(params, text), small, atol=5e-2)


@pytest.mark.parametrize("read", ["", "    for i, j in T.Parallel(32, 64):\n        total[i, j] += narrow[i, j]\n"])
def test_a_product_that_goes_on_to_a_gemm_as_it_is(read: str) -> None:
    """The compiler brings a product back in front of a vector operation only, and a copy to L1 is none."""
    params = GEMM.replace("C:", 'V: T.Tensor((64, 64), "float16"), D: T.Tensor((64, 64), "float16"), C:')
    text = body(
        'v = T.alloc_shared((64, 64), "float16")\nnarrow = T.alloc_shared((32, 64), "float16")\n'
        'out = T.alloc_fragment((32, 64), "float32")\ntotal = T.alloc_fragment((32, 64), "float16")\n'
        "T.copy(V, v)\nT.clear(out)\nT.clear(total)\nfor k in T.serial(3):\n",
        LOAD,
        "    T.clear(acc)\n    T.gemm(a, b, acc)\n    T.copy(acc, narrow)\n    T.gemm(narrow, v, out)\n",
        read,
        "T.copy(out, C[bx * 32, 0])\nT.copy(total, D[bx * 32, 0])\n",
    )
    small = {"A": A, "B": B, "V": (RNG.standard_normal((64, 64)) / 8).astype(np.float16)}
    new = agree(gpu_file(params, text), small, atol=5e-2)
    assert "T.copy(acc_part, narrow)" in new


def test_two_products_into_one_sum() -> None:
    text = body(
        "T.clear(acc)\nfor k in T.Pipelined(3, num_stages=2):\n",
        LOAD,
        "    T.gemm(a, b, acc)\n    T.gemm(a, b, acc)\n",
        STORE,
    )
    new = agree(gpu_file(GEMM, text), INPUTS)
    assert new.count("init=") == 1


def test_product_under_a_condition() -> None:
    params = GEMM.replace("C:", 'M: T.Tensor((2, 3), "int32"), C:')
    text = body(
        "T.clear(acc)\nfor k in T.serial(3):\n    if M[bx, k] != 0:\n",
        "        T.copy(A[bx * 32, k * 32], a)\n        T.copy(B[k * 32, 0], b)\n        T.gemm(a, b, acc)\n",
        STORE,
    )
    mask = np.array([[0, 1, 1], [0, 0, 0]], np.int32)
    agree(gpu_file(params, text), {**INPUTS, "M": mask})


def test_sum_without_a_start_is_refused() -> None:
    text = body("for k in T.serial(3):\n", LOAD, "    T.gemm(a, b, acc)\n", STORE)
    assert [code for code, _ in refused(gpu_file(GEMM, text))] == ["TL134"]


@pytest.mark.parametrize("names", ["(bx, by)", "(bx, _)", "(p, q)"])
def test_grid_of_two_axes(names: str) -> None:
    first, second = names.strip("()").split(", ")
    row, col = first, second if second != "_" else "0"
    params = 'A: T.Tensor((64, 96), "float32"), C: T.Tensor((64, 96), "float32")'
    at = f"[{row} * 32, {col} * 0]"
    text = f'x = T.alloc_shared((32, 96), "float32")\nT.copy(A{at}, x)\nT.copy(x, C{at})\n'
    agree(gpu_file(params, text, launch=f"T.Kernel(2, 1, threads=64) as {names}"), {"A": A.astype(np.float32)})


@pytest.mark.parametrize(
    "bound",
    [
        "size, block = 96, 32",
        "(size, (block, _)) = 96, (32, 1)",
        "size = block = 32",
        "size: int = 96\n        block = 32",
    ],
)
def test_extents_that_the_prim_func_binds_get_no_name_in_the_factory(bound: str) -> None:
    params = 'A: T.Tensor((64, 96), "float32"), C: T.Tensor((64, 96), "float32")'
    body = 'x = T.alloc_shared((32, 32), "float32")\nT.copy(A[by * 32, bx * 32], x)\nT.copy(x, C[by * 32, bx * 32])\n'
    launch = "T.Kernel(T.ceildiv(size, block), 2, threads=64) as (bx, by)"
    text = gpu_file(params, body, launch=launch).replace(
        "        with T.Kernel", f"        {bound}\n        with T.Kernel"
    )
    assert "bx = cid % T.ceildiv(size, block)" in agree(text, {"A": A.astype(np.float32)})


def test_grid_order_is_x_fastest() -> None:
    params = 'A: T.Tensor((64, 96), "float32"), C: T.Tensor((64, 96), "float32")'
    text = (
        'x = T.alloc_shared((32, 32), "float32")\nT.copy(A[by * 32, bx * 32], x)\n'
        "for i, j in T.Parallel(32, 32):\n    x[i, j] = x[i, j] * 2.0\nT.copy(x, C[by * 32, bx * 32])\n"
    )
    launch = "T.Kernel(T.ceildiv(n, 32), T.ceildiv(m, 32), threads=64) as (bx, by)"
    new = agree(gpu_file(params, text, launch=launch, args="m=64, n=96"), {"A": A.astype(np.float32)})
    assert "grid_x = T.ceildiv(n, 32)" in new
    assert "bx = cid % grid_x" in new
    assert "by = cid // grid_x" in new


def test_an_axis_of_one_block_is_no_factor() -> None:
    params = 'A: T.Tensor((64, 96), "float32"), C: T.Tensor((64, 96), "float32")'
    text = (
        'x = T.alloc_shared((32, 32), "float32")\nT.copy(A[bz * 32, by * 32], x)\n'
        "for i, j in T.Parallel(32, 32):\n    x[i, j] = x[i, j] * 2.0\nT.copy(x, C[bz * 32, by * 32])\n"
    )
    new = agree(
        gpu_file(params, text, launch="T.Kernel(1, 3, 2, threads=64) as (bx, by, bz)"), {"A": A.astype(np.float32)}
    )
    assert "T.Kernel(3 * 2, " in new
    assert "by = cid % 3\n" in new
    assert "bz = cid // 3\n" in new


@pytest.mark.sampled
@pytest.mark.parametrize(
    "load",
    [
        "for v in T.serial(3):\n    flags[v] = M[bx, v]\n",
        "for v in T.Parallel(3):\n    flags[v] = M[bx, v]\n",
        "T.copy(M[bx, 0], flags)\n",
        "T.copy(M[bx, :], flags)\n",
    ],
)
@pytest.mark.parametrize("alloc", ["alloc_local", "alloc_shared", "alloc_fragment"])
def test_table_of_conditions_is_read_from_global_memory(load: str, alloc: str) -> None:
    params = GEMM.replace("C:", 'M: T.Tensor((2, 3), "int32"), C:')
    text = body(
        f'flags = T.{alloc}((3,), "int32")\n',
        load,
        "T.clear(acc)\nfor k in T.serial(3):\n    if flags[k] != 0:\n",
        "        T.copy(A[bx * 32, k * 32], a)\n        T.copy(B[k * 32, 0], b)\n        T.gemm(a, b, acc)\n",
        STORE,
    )
    mask = np.array([[0, 1, 1], [1, 0, 0]], np.int32)
    new = agree(gpu_file(params, text), {**INPUTS, "M": mask})
    assert "flags" not in new
    assert "if M[bx, k] != 0:" in new


def test_table_of_comparisons_is_read_from_global_memory() -> None:
    params = GEMM.replace("C:", 'M: T.Tensor((2, 3), "int32"), C:')
    text = body(
        'flags = T.alloc_local((3,), "bool")\nfor v in T.serial(3):\n    flags[v] = M[bx, v] > 1\n',
        "T.clear(acc)\nfor k in T.serial(3):\n    if flags[k]:\n",
        "        T.copy(A[bx * 32, k * 32], a)\n        T.copy(B[k * 32, 0], b)\n        T.gemm(a, b, acc)\n",
        STORE,
    )
    new = agree(gpu_file(params, text), {**INPUTS, "M": np.array([[0, 1, 2], [2, 0, 3]], np.int32)})
    assert "if M[bx, k] > 1:" in new


def test_product_stored_from_a_loop_needs_no_way_through_ub() -> None:
    params = 'A: T.Tensor((64, 96), "float16"), B: T.Tensor((96, 64), "float16"), C: T.Tensor((3, 64, 64), "float16")'
    text = body(
        'raw = T.alloc_shared((32, 64), "float16")\nout = T.alloc_shared((32, 64), "float16")\n',
        "for k in T.Pipelined(3):\n",
        "    T.copy(A[bx * 32, k * 32], a)\n    T.copy(B[k * 32, 0], raw)\n",
        "    for i, j in T.Parallel(32, 64):\n        b[i, j] = raw[i, j] * 0.5\n",
        "    T.gemm(a, b, acc, clear_accum=True)\n    T.copy(acc, out)\n    T.copy(out, C[k, bx * 32, 0])\n",
    )
    new = agree(gpu_file(params, text), INPUTS, atol=2e-2)
    assert "T.copy(acc, C[k, bx * 32, 0])" in new


def test_tile_changed_between_two_products() -> None:
    params = 'A: T.Tensor((64, 96), "float16"), B: T.Tensor((96, 64), "float16"), C: T.Tensor((2, 64, 64), "float32")'
    text = body(
        'acc2 = T.alloc_fragment((32, 64), "float32")\nT.copy(A[bx * 32, 0], a)\nT.copy(B[0, 0], b)\n',
        "for i, j in T.Parallel(32, 32):\n    a[i, j] = a[i, j] * 2.0\n",
        "T.gemm(a, b, acc, clear_accum=True)\n",
        "for i, j in T.Parallel(32, 32):\n    a[i, j] = a[i, j] + 1.0\n",
        "T.gemm(a, b, acc2, clear_accum=True)\nT.copy(acc, C[0, bx * 32, 0])\nT.copy(acc2, C[1, bx * 32, 0])\n",
    )
    agree(gpu_file(params, text), INPUTS, atol=5e-2)


DYNAMIC = 'A: T.Tensor((m, 96), "float16"), B: T.Tensor((96, 64), "float16"), C: T.Tensor((m, 64), "float32")'


@pytest.mark.parametrize("size", ["T.dynamic('m')", "T.symbolic('m')"])
@pytest.mark.parametrize("staged", [False, True])
def test_grid_of_run_time_size_becomes_a_loop_over_tasks(size: str, staged: bool) -> None:
    scale = "for i, j in T.Parallel(32, 64):\n    acc[i, j] = acc[i, j] * 0.5\n" if staged else ""
    text = body(
        "T.clear(acc)\nfor k in T.Pipelined(3):\n",
        LOAD,
        "    T.gemm(a, b, acc)\n",
        scale,
        STORE,
    )
    launch = "T.Kernel(T.ceildiv(m, 32), threads=128) as bx"
    file = gpu_file(DYNAMIC, text, launch=launch, factory=f"m = {size}")
    new = migrated(file)
    assert ("for task in T.serial(T.ceildiv(T.ceildiv(m, 32) - core_id, core_num)):" in new) == staged
    assert ("bx = task * core_num + core_id" in new) == staged


@pytest.mark.parametrize("masked", [False, True])
def test_tile_that_only_an_option_gives_a_tile_operation(masked: bool) -> None:
    """Where the option is off, nothing is left from which the compiler would infer UB."""
    params = 'A: T.Tensor((64, 96), "float32"), C: T.Tensor((64, 96), "float32")'
    text = """
    x = T.alloc_shared((32, 96), "float32")
    y = T.alloc_fragment((32, 96), "float32")
    T.copy(A[bx * 32, 0], x)
    for i, j in T.Parallel(32, 96):
        y[i, j] = x[i, j] * 2.0
    if masked:
        T.copy(y, x)
    else:
        for i, j in T.Parallel(32, 96):
            x[i, j] = x[i, j] + y[i, j]
    T.copy(x, C[bx * 32, 0])
    """
    agree(gpu_file(params, text, args="masked"), {"A": A.astype(np.float32)}, args=(masked,))


def test_layout_and_comments_of_changed_lines_stay() -> None:
    tiles = """
    a   = T.alloc_shared((32, 32), "float16")
    b   = T.alloc_shared((32, 64), "float16")  # right operand
    acc = T.alloc_fragment((32, 64), "float32")  # the sum
    x   = T.alloc_fragment((32, 64), "float32")  # for the vector cores

    # sums start at zero
    T.clear(acc)

    for k in T.serial(3):
        T.copy(A[bx * 32, k * 32], a)
        T.copy(B[k * 32, 0], b)
        T.gemm(a, b, acc)  # the product
    T.copy(acc, x)
    for i, j in T.Parallel(32, 64):
        x[i, j] = x[i, j] * 2.0
    T.copy(x, C[bx * 32, 0])
    """
    new = agree(gpu_file(GEMM, tiles), INPUTS)
    assert 'x   = T.alloc_shared((32, 64), "float32")  # for the vector cores\n\n' in new
    assert "sums start at zero" not in new  # it spoke of the `T.clear` that is gone
    assert "init=(k == 0))  # the product" in new


@pytest.mark.parametrize(("behind", "found"), [("n", ["TL120"]), ("3", [])])
def test_value_of_an_arm_is_not_known_behind_it(behind: str, found: list[str]) -> None:
    params = 'A: T.Tensor((64, 96), "float32"), C: T.Tensor((64, 96), "float32")'
    text = f"""
    x = T.alloc_shared((32, 96), "float32")
    T.copy(A[bx * 32, 0], x)
    if bx > 0:
        n = 3
    else:
        n = 2
    for k in T.serial({behind}):
        for i, j in T.Parallel(32, 96):
            x[i, j] = x[i, j] * 2.0
    T.copy(x, C[bx * 32, 0])
    """
    file = gpu_file(params, text, args="wide=True")
    if found:
        assert [code for code, _ in refused(file)] == found
    else:
        agree(file, {"A": A.astype(np.float32)}, args=(False,))


ALIASED = """
a = T.alloc_shared((64, 64), "float16")
a2 = T.alloc_shared((64, 64), "float16")
b = T.alloc_shared((64, 64), "float16")
c = T.alloc_fragment((64, 64), "float32")
T.copy(A, a)
T.copy(A, a2)
T.copy(B, b)
if flag:
    P = a
else:
    P = a2
{use}
T.copy(c, O)
"""


@pytest.mark.parametrize("use", ["T.gemm(P, b, c, clear_accum=True)", "T.reduce_max(P, c)", "T.copy(P, c)"])
def test_a_name_that_stands_for_different_buffers(use: str) -> None:
    params = ", ".join(f'{name}: T.Tensor((64, 64), "float16")' for name in "ABO")
    assert refused(gpu_file(params, ALIASED.format(use=use), args="flag")) == [("TL902", 21)]


@pytest.mark.parametrize(
    ("start", "kept"),
    [("T.floordiv(bx * 32, 16)", True), ("T.floordiv(bx * 32, 16) + 5", False)],
    ids=["runs", "may not"],
)
def test_a_sum_whose_loop_begins_with_its_block(start: str, kept: bool) -> None:
    """Block 1 begins at turn 2 of 6: it has four, and with 5 more none, where the sum has to stay zero."""
    tiles = TILES.replace("(32, 32)", "(32, 16)").replace('(32, 64), "float16"', '(16, 64), "float16"')
    loads = LOAD.replace("k * 32", "k * 16")
    text = f"{tiles}st = {start}\nT.clear(acc)\nfor k in T.serial(st, 6):\n{loads}    T.gemm(a, b, acc)\n{STORE}"
    new = agree(gpu_file(GEMM, text), INPUTS)
    assert ("init=(k == st)" in new) == kept


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("i < S[bx]", (7, 0)),
        ("S[bx] > i", (40, 32)),
        ("i < T.min(S[bx], 32)", (31, 1)),
        ("i < S[bx] - 2", (1, 36)),
        ("i < S[bx] and bx * 32 + i < 64", (40, 3)),
    ],
)
def test_the_first_rows_of_a_product_are_stored_by_one_copy(condition: str, rows: tuple[int, int]) -> None:
    """More rows than the tile has, or none, as well: a copy out of L0C that names no row takes all of them."""
    params = GEMM.replace("C:", 'S: T.Tensor((2,), "int32"), C:')
    text = body("T.clear(acc)\nfor k in T.serial(3):\n", LOAD, "    T.gemm(a, b, acc)\n")
    text += f"for i, j in T.Parallel(32, 64):\n    if {condition}:\n        C[bx * 32 + i, j] = acc[i, j]\n"
    before = np.full((64, 64), 7, np.float32)
    given = {**INPUTS, "S": np.array(rows, np.int32), "C": before}
    new = agree(gpu_file(params, text, jit="@tilelang.jit"), given)
    assert "T.copy(acc[0:rows, 0:64]," in new
    assert "alloc_ub" not in new


def test_the_first_rows_are_converted_with_all_of_their_tile() -> None:
    """Between two tiles the number of elements is a constant of the program (TL741)."""
    params = GEMM.replace("C:", 'S: T.Tensor((2,), "int32"), C:').replace(
        'C: T.Tensor((64, 64), "float32")', "C: T.Tensor((64, 64), 'float16')"
    )
    text = body("T.clear(acc)\nfor k in T.serial(3):\n", LOAD, "    T.gemm(a, b, acc)\n")
    text += "for i, j in T.Parallel(32, 64):\n    acc[i, j] = acc[i, j] * 2.0\n"
    text += "for i, j in T.Parallel(32, 64):\n    if i < S[bx]:\n        C[bx * 32 + i, j] = acc[i, j]\n"
    before = np.full((64, 64), 7, np.float16)
    given = {**INPUTS, "S": np.array([5, 32], np.int32), "C": before}
    new = agree(gpu_file(params, text, jit="@tilelang.jit"), given, rtol=1e-2, atol=1e-2)
    assert "T.copy(acc, acc_half)" in new
    assert "T.copy(acc_half[0:rows, 0:64], C[" in new
    (found,) = [
        d
        for d in check_text(
            new.replace("T.copy(acc, acc_half)", "T.copy(acc[0:rows, :], acc_half[0:rows, :])"), "k.py", Options()
        ).diagnostics
        if d.severity == "error"
    ]
    assert found.code == "TL741"


def test_rows_of_a_product_that_do_not_begin_with_it_leave_through_ub() -> None:
    params = GEMM.replace("C:", 'S: T.Tensor((2,), "int32"), C:')
    text = body("T.clear(acc)\nfor k in T.serial(3):\n", LOAD, "    T.gemm(a, b, acc)\n")
    text += "for i, j in T.Parallel(32, 64):\n    if i >= S[bx]:\n        C[bx * 32 + i, j] = acc[i, j]\n"
    given = {**INPUTS, "S": np.array([5, 31], np.int32), "C": np.full((64, 64), 7, np.float32)}
    new = agree(gpu_file(params, text, jit="@tilelang.jit"), given)
    assert "T.copy(acc[0:" not in new


def test_a_sum_of_the_type_of_its_operands_is_taken_in_float32() -> None:
    params = "A: T.Tensor((64, 96), dtype), B: T.Tensor((96, 64), dtype), C: T.Tensor((64, 64), dtype)"
    tiles = TILES.replace('"float16"', "dtype").replace('"float32"', "dtype")
    relu = "for i, j in T.Parallel(32, 64):\n    acc[i, j] = T.max(acc[i, j], 0)\n"
    text = gpu_file(
        params,
        "".join((tiles, "T.clear(acc)\nfor k in T.serial(3):\n", LOAD, "    T.gemm(a, b, acc)\n", relu, STORE)),
        args='dtype="float16"',
    )
    new = agree(text, INPUTS, rtol=1e-2, atol=1e-2)
    assert 'acc_l0c = T.alloc_fragment((32, 64), "float32")' in new  # gemm_v0 takes no half there
    assert "acc = T.alloc_shared((32, 64), dtype)" in new
