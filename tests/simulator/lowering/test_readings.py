"""Kernels that the compiler gets silently wrong: what the author means and what the machine does differ.

Each has its repaired form, on which the two agree with the formula. The names in brackets are those of the reference
(compiler facts, section 1 to 3; rules R-...).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from tests.simulator.kernels import developer, outputs
from tl2npu.simulator.errors import SimulatorError

M, N = 32, 64
GENERATOR = np.random.default_rng(7)
A = GENERATOR.standard_normal((M, N)).astype(np.float32)
B = GENERATOR.standard_normal(N).astype(np.float32)
S = GENERATOR.standard_normal(M).astype(np.float32)
L = GENERATOR.standard_normal((M, M)).astype(np.float16)
R = GENERATOR.standard_normal((M, N)).astype(np.float16)
X = GENERATOR.permutation(M).astype(np.int32)

TILE = 'A: T.Tensor((M, N), "float32")'
OUT = 'C: T.Tensor((M, N), "float32")'
ROWS = 'C: T.Tensor((M,), "float32")'


@dataclass(frozen=True)
class Case:
    """``wrong`` and ``right`` are (signature, body, threads) of two kernels for one formula."""

    name: str
    inputs: tuple[np.ndarray, ...]
    expected: np.ndarray
    wrong: tuple[str, str, int | None]
    right: tuple[str, str, int | None]
    fault: str = ""
    """What the actual reading says where it stops; empty where it computes something else."""


IN_ORDER = """
a = T.alloc_ub((M, N), "float32")
s = T.alloc_ub((M,), "float32")
T.copy(A, a)
T.reduce_max(a, s, dim=1)
for i in T.{loop}(M):
    s[i] = {value}
T.copy(s, C)
"""
PICKED = "b[i, j] = a[i // 2, j] * 2.0"
IN_TWO = f"for i in T.{{kind}}(M):\n    for j in T.{{kind}}(N):\n        {PICKED}"
PICKED_ROWS = """
a = T.alloc_ub((M, N), "float32")
b = T.alloc_ub((M, N), "float32")
T.copy(A, a)
T.tile.fill(b, 0.0)
{loops}
T.copy(b, C)
"""
BIAS = """
a = T.alloc_ub((M, N), "float32")
b = T.alloc_ub((N,), "float32")
T.copy(A, a)
T.copy(B, b)
for i, j in T.Parallel(M, N):
    a[i, j] = a[i, j] + b[j]
T.copy(a, C)
"""
CUMULATIVE = """
a = T.alloc_ub((M, N), "float32")
T.copy(A, a)
for i in T.serial(M - 1):
    T.tile.add(a[i + 1, :], a[i + 1, :], a[i, :])
T.copy(a, C)
"""
DIM0 = """
a = T.alloc_ub((M, N), "float32")
c = T.alloc_ub((N,), "float32")
T.copy(A, a)
T.reduce_sum(a, c, dim=0)
T.copy(c, C)
"""
ODD = """
a = T.alloc_ub((9, N), "float32")
T.copy(A[0:9, :], a)
T.tile.add(a, a, 1.0)
T.copy(a, C[0:9, :])
"""
VALUE = """
a = T.alloc_ub((M, N), "float32")
T.copy(A, a)
for i, j in T.Parallel(M, N):
    a[i, j] = a[i, j] + T.float32(i)
T.copy(a, C)
"""
CAST = """
a = T.alloc_ub((M, N), "float32")
h = T.alloc_ub((M, N), "float16")
T.copy(A, a)
T.tile.cast(h, a, "CAST_RINT", M * N)
T.copy(h, C)
"""
CAST_BY_COPY = CAST.replace('T.tile.cast(h, a, "CAST_RINT", M * N)', "T.copy(a, h)")
ROW_SLICE = """
a = T.alloc_ub((M, N), "float32")
T.copy(A[0:M // 2, :], a[0:M // 2, :])
T.copy(A[M // 2:M, :], a[M // 2:M, :])
T.copy(a, C)
"""
ONE_ROW = """
a = T.alloc_ub((1, N), "float32")
T.copy(A[0:1, :], a)
T.tile.add(a, a, 1.0)
T.copy(a, C[0:1, :])
"""
SCALAR_READ = """
a = T.alloc_ub((M, N), "float32")
c = T.alloc_ub((M, N), "float32")
T.copy(A, a)
T.tile.mul(c, a, a[0, 0])
T.copy(c, C)
"""
GEMM = """
l = T.alloc_L1((M, M), "float16")
r = T.alloc_L1((M, N), "float16")
p = T.alloc_L0C((M, N), "float32")
x = T.alloc_ub((M, N), "float32")
y = T.alloc_ub((M, N), "float32")
T.copy(L, l)
T.copy(R, r)
T.gemm_v0(l, r, p, init=True)
T.copy(p, x)
"""
ROW_UPDATE = GEMM + """
for i in T.serial(M):
    T.tile.add(x[i, :], x[i, :], x[i, :])
T.copy(x, C)
"""
WHOLE_UPDATE = GEMM + """
T.tile.add(y, x, x)
T.copy(y, C)
"""
ROW_VECTOR_UPDATE = GEMM + """
s = T.alloc_ub((M,), "float32")
T.copy(S, s)
for i, j in T.Parallel(M, N):
    x[i, j] = x[i, j] * s[i]
T.copy(x, C)
"""
ROW_VECTOR_OTHER = ROW_VECTOR_UPDATE.replace("x[i, j] = x[i, j]", "y[i, j] = x[i, j]").replace(
    "T.copy(x, C)", "T.copy(y, C)"
)
PIPELINE = """
l = T.alloc_L1((M, M), "float16")
q = T.alloc_L1((M, M), "float16")
r = T.alloc_L1((M, N), "float16")
p = T.alloc_L0C((M, N), "float32")
h = T.alloc_ub((M, M), "float16")
x = T.alloc_ub((M, N), "float32")
y = T.alloc_ub((M, N), "float32")
T.copy(R, r)
T.tile.fill(y, 0.0)
for k in T.Pipelined(3, num_stages={stages}):
    T.copy(L, h)
    T.copy(h, q)
    T.gemm_v0(q, r, p, init=True)
    T.copy(p, x)
    T.tile.add(y, y, x)
T.copy(y, C)
"""
LEFT = """
a = T.alloc_ub((M, N), "float32")
s = T.alloc_ub((M,), "float32")
T.copy(A, a)
T.copy(S, s)
for i, j in T.Parallel(M, N):
    a[i, j] = s[i] - a[i, j]
T.copy(a, C)
"""
RIGHT = LEFT.replace("s[i] - a[i, j]", "a[i, j] * (-1.0) + s[i]")
TIMES = LEFT.replace("s[i] - a[i, j]", "a[i, j] - s[i] * 2.0")
TIMES_RIGHT = LEFT.replace("s[i] - a[i, j]", "a[i, j] - s[i] - s[i]")
VECTOR_TO_COLUMN = """
a = T.alloc_ub((M, N), "float32")
s = T.alloc_ub((M,), "float32")
T.copy(A, a)
T.copy(S, s)
T.copy(s, a[:, 3])
T.copy(a, C)
"""
ELEMENTS_TO_COLUMN = VECTOR_TO_COLUMN.replace("T.copy(s, a[:, 3])", "for i in T.serial(M):\n    a[i, 3] = s[i]")
SOME_COLUMNS = """
a = T.alloc_ub((M, N), "float32")
T.copy(A, a)
for i, j in T.Parallel(M, N // 2):
    a[i, j] = a[i, j] + a[i, j]
T.copy(a, C)
"""
ALL_COLUMNS = """
a = T.alloc_ub((M, N), "float32")
h = T.alloc_ub((M, N // 2), "float32")
T.copy(A, a)
T.copy(a[:, 0:N // 2], h)
for i, j in T.Parallel(M, N // 2):
    h[i, j] = h[i, j] + h[i, j]
T.copy(h, a[:, 0:N // 2])
T.copy(a, C)
"""
COLUMN_SLICE = """
a = T.alloc_ub((M, N), "float32")
T.tile.fill(a, 0.0)
T.copy(A[:, 0:N // 2], a[:, 0:N // 2])
T.copy(a, C)
"""
STAGED_SLICE = """
a = T.alloc_ub((M, N), "float32")
h = T.alloc_ub((M, N // 2), "float32")
T.tile.fill(a, 0.0)
T.copy(A[:, 0:N // 2], h)
T.copy(h, a[:, 0:N // 2])
T.copy(a, C)
"""
SCALAR_STORE = """
a = T.alloc_ub((M, N), "float32")
T.copy(A, a)
for i in T.serial(M):
    C[i] = a[i, 0]
"""
SCALAR_TILE = """
a = T.alloc_ub((M, N), "float32")
c = T.alloc_ub((M,), "float32")
T.copy(A, a)
for i in T.serial(M):
    c[i] = a[i, 0]
T.copy(c, C)
"""
PARALLEL_SHARED = """
a = T.alloc_ub((M, N), "float32")
b = T.alloc_{memory}((M, N), "float32")
T.copy(A, a)
for i, j in T.Parallel(M, N):
    b[i, j] = a[i, j] + a[i, j]
for i, j in T.Parallel(M, N):
    a[i, j] = b[i, j] + b[i, j]
T.copy(a, C)
"""
VARIABLE = """
a = T.alloc_ub((M, N), "float32")
total = T.alloc_var("float32")
T.copy(A, a)
total = 2.0
T.tile.mul(a, a, total)
T.copy(a, C)
"""
LITERAL = VARIABLE.replace('total = T.alloc_var("float32")\n', "")
HALF = np.concatenate([A[:, : N // 2] * 2, A[:, N // 2 :]], 1)
CLEARED = np.concatenate([A[:, : N // 2], np.zeros_like(A[:, N // 2 :])], 1)
GATHER = """
a = T.alloc_ub((M, N), "float32")
x = T.alloc_ub((M,), "int32")
T.copy(X, x)
for i in T.serial(M):
    T.copy(A[x[i], :], a[i, :])
T.copy(a, C)
"""
PRODUCT = L.astype(np.float32) @ R.astype(np.float32)
BSHD_TENSORS = 'A: T.Tensor((1, M, 1, N), "float32"), C: T.Tensor((1, M, 1, N), "float32")'
BSHD = """
a = T.alloc_ub((M, N), "float32")
T.copy(A[0, :, 0, :], a)
T.tile.add(a, a, 1.0)
T.copy(a, C[0, :, 0, :])
"""
ATOMIC = """
a = T.alloc_ub((M, N), "float32")
T.copy(A, a)
T.copy(a, C)
T.tile.atomic_add(C, a)
"""
CUBE_IN_ROWS = """
l = T.alloc_L1((M, M), "float16")
r = T.alloc_L1((M, N), "float16")
p = T.alloc_L0C((M, N), "float32")
x = T.alloc_ub((M, N), "float32")
y = T.alloc_ub((M, N), "float32")
T.copy(L, l)
T.copy(R, r)
for i in T.serial(M):
    T.gemm_v0(l, r, p, init=(i == 0))
    T.tile.fill(y[i, :], 0.0)
T.copy(p, x)
T.tile.add(y, y, x)
T.copy(y, C)
"""
ACCUMULATE = GEMM + """
T.tile.fill(y, 1.0)
T.tile.axpy(x, y, 1.0)
T.copy(x, C)
"""
OTHER_SUM = ACCUMULATE.replace("T.tile.axpy(x, y, 1.0)\nT.copy(x, C)", "T.tile.add(y, x, y)\nT.copy(y, C)")
GATHER_L1 = """
i_ub = T.alloc_ub((M,), "int32")
row = T.alloc_ub((M,), "float16")
l = T.alloc_L1((M, M), "float16")
r = T.alloc_L1((M, N), "float16")
p = T.alloc_L0C((M, N), "float32")
x = T.alloc_ub((M, N), "float32")
y = T.alloc_ub((M, N), "float32")
T.copy(X, i_ub)
for i in T.serial(M):
    T.copy(L[i_ub[i], :], row)
    T.copy(row, l[i, :])
T.copy(R, r)
T.gemm_v0(l, r, p, init=True)
T.copy(p, x)
T.tile.abs(y, x)
T.copy(x, C)
"""
GATHER_L1_PARALLEL = GATHER_L1.replace(
    "T.tile.abs(y, x)", "for i, j in T.Parallel(M, N):\n    y[i, j] = x[i, j] + x[i, j]"
)
PART_OF_L1 = WHOLE_UPDATE.replace("T.copy(L, l)", "T.copy(L[:, 0:16], l[:, 0:16])\nT.copy(L[:, 16:32], l[:, 16:32])")
DOUBLE = "for i, j in T.Parallel(M, N):\n    y[i, j] = x[i, j] + x[i, j]"
GATHER_L1_PARALLEL = GATHER_L1.replace("T.tile.abs(y, x)", DOUBLE)
LR = 'L: T.Tensor((M, M), "float16"), R: T.Tensor((M, N), "float16")'

CASES = (
    Case(
        "column vector (g1_a, R-REPL)",
        (A, B),
        A + B,
        (f'{TILE}, B: T.Tensor((N,), "float32"), {OUT}', BIAS, 2),
        (f'{TILE}, B: T.Tensor((N,), "float32"), {OUT}', BIAS, 1),
    ),
    Case(
        "recurrence over rows (g1_f)",
        (A,),
        np.cumsum(A, 0, dtype=np.float32),
        (f"{TILE}, {OUT}", CUMULATIVE, 2),
        (f"{TILE}, {OUT}", CUMULATIVE, 1),
    ),
    Case(
        "reduction over rows (g1_e, R-RED0)",
        (A,),
        A.sum(0),
        (f'{TILE}, C: T.Tensor((N,), "float32")', DIM0, 2),
        (f'{TILE}, C: T.Tensor((N,), "float32")', DIM0, 1),
        "out-of-bounds",
    ),
    Case(
        "odd number of rows (g1_b_odd, R-ODD)",
        (A[:9],),
        A[:9] + 1,
        ('A: T.Tensor((9, N), "float32"), C: T.Tensor((9, N), "float32")', ODD, 2),
        ('A: T.Tensor((9, N), "float32"), C: T.Tensor((9, N), "float32")', ODD, 1),
    ),
    Case(
        "row number as a value (g3b_rowval_t2, R-LOOPUSE)",
        (A,),
        A + np.arange(M, dtype=np.float32)[:, None],
        (f"{TILE}, {OUT}", VALUE, 2),
        (f"{TILE}, {OUT}", VALUE, 1),
    ),
    Case(
        "operator that keeps its count (g1_c_cast, R-OP)",
        (A,),
        A.astype(np.float16),
        (f'{TILE}, C: T.Tensor((M, N), "float16")', CAST, 2),
        (f'{TILE}, C: T.Tensor((M, N), "float16")', CAST_BY_COPY, 2),
        "out-of-bounds",
    ),
    Case(
        "rows of a part (g1_g_rows_2, R-PARTUB)",
        (A,),
        A,
        (f"{TILE}, {OUT}", ROW_SLICE, 2),
        (f"{TILE}, {OUT}", ROW_SLICE, 1),
        "out-of-bounds",
    ),
    Case(
        "a single row (g1_b_rowsl, R-DIM0-1)",
        (A[:1],),
        A[:1] + 1,
        ('A: T.Tensor((1, N), "float32"), C: T.Tensor((1, N), "float32")', ONE_ROW, 2),
        ('A: T.Tensor((1, N), "float32"), C: T.Tensor((1, N), "float32")', ONE_ROW, 1),
    ),
    Case(
        "an element of a split tile (g3b_ubscalar_t2)",
        (A,),
        A * A[0, 0],
        (f"{TILE}, {OUT}", SCALAR_READ, 2),
        (f"{TILE}, {OUT}", SCALAR_READ, 1),
    ),
    Case(
        "rows that are not the last axis but one (E82, R-GMDIM)",
        (A.reshape(1, M, 1, N),),
        A.reshape(1, M, 1, N) + 1,
        (BSHD_TENSORS, BSHD, 2),
        (BSHD_TENSORS, BSHD, 1),
        "extents do not agree",
    ),
    Case(
        "adding to global memory (g1_d_ub2d_2, R-ATOMIC)",
        (A,),
        A * 2,
        (f"{TILE}, {OUT}", ATOMIC, 2),
        (f"{TILE}, {OUT}", ATOMIC, 1),
        "out-of-bounds",
    ),
    Case(
        "cube statements in a loop over rows (E62, R-LOOPCUBE)",
        (L, R),
        PRODUCT * M,
        (f"{LR}, {OUT}", CUBE_IN_ROWS, 2),
        (f"{LR}, {OUT}", CUBE_IN_ROWS, 1),
    ),
    Case(
        "accumulating into a handed-over tile (E19, R-REDCLR)",
        (L, R),
        PRODUCT + 1,
        (f"{LR}, {OUT}", ACCUMULATE, 2),
        (f"{LR}, {OUT}", OTHER_SUM, 2),
    ),
    Case(
        "rows of L1 by an index, without T.Parallel (E80, R-GATHER-LAYOUT)",
        (L, R, X),
        L.astype(np.float32)[X] @ R,
        (f'{LR}, X: T.Tensor((M,), "int32"), {OUT}', GATHER_L1, 2),
        (f'{LR}, X: T.Tensor((M,), "int32"), {OUT}', GATHER_L1_PARALLEL, 2),
    ),
    Case(
        "a part of L1 beside T.Parallel (E81, R-L1PART)",
        (L, R),
        PRODUCT * 2,
        (f"{LR}, {OUT}", PART_OF_L1.replace("T.tile.add(y, x, x)", DOUBLE), 2),
        (f"{LR}, {OUT}", PART_OF_L1, 2),
        "another layout",
    ),
    Case(
        "row vector on the left (g3_rowdiv)",
        (A, S),
        S[:, None] - A,
        (f'{TILE}, S: T.Tensor((M,), "float32"), {OUT}', LEFT, 1),
        (f'{TILE}, S: T.Tensor((M,), "float32"), {OUT}', RIGHT, 1),
        "out-of-bounds",
    ),
    Case(
        "row vector with an operation of its own (HandleSimpleCase)",
        (A, S),
        A - 2 * S[:, None],
        (f'{TILE}, S: T.Tensor((M,), "float32"), {OUT}', TIMES, 1),
        (f'{TILE}, S: T.Tensor((M,), "float32"), {OUT}', TIMES_RIGHT, 1),
        "out-of-bounds",
    ),
    Case(
        "a vector into a column of a tile (copy_ub_to_ub)",
        (A, S),
        np.where(np.arange(A.shape[1]) == 3, S[:, None], A),
        (f'{TILE}, S: T.Tensor((M,), "float32"), {OUT}', VECTOR_TO_COLUMN, 1),
        (f'{TILE}, S: T.Tensor((M,), "float32"), {OUT}', ELEMENTS_TO_COLUMN, 1),
        "only the rows of the source are moved",
    ),
    Case(
        "some columns in T.Parallel (g3_subcol)",
        (A,),
        HALF,
        (f"{TILE}, {OUT}", SOME_COLUMNS, 1),
        (f"{TILE}, {OUT}", ALL_COLUMNS, 1),
    ),
    Case(
        "some columns in a load (g1_g_cols)",
        (A,),
        CLEARED,
        (f"{TILE}, {OUT}", COLUMN_SLICE, 1),
        (f"{TILE}, {OUT}", STAGED_SLICE, 1),
    ),
    Case(
        "scalars from UB to global memory (g3b_gmst, R-GMSTORE)",
        (A,),
        A[:, 0],
        (f"{TILE}, {ROWS}", SCALAR_STORE, 1),
        (f"{TILE}, {ROWS}", SCALAR_TILE, 1),
        "cube core",
    ),
    Case(
        "alloc_shared in T.Parallel only (g3b_ubpar, R-ALLOCINFER)",
        (A,),
        A * 4,
        (f"{TILE}, {OUT}", PARALLEL_SHARED.format(memory="shared"), 1),
        (f"{TILE}, {OUT}", PARALLEL_SHARED.format(memory="ub"), 1),
        "leaves such an alloc_shared buffer in L1",
    ),
    Case(
        "variable in vector code (R-ALLOCVAR)",
        (A,),
        A * 2,
        (f"{TILE}, {OUT}", VARIABLE, 1),
        (f"{TILE}, {OUT}", LITERAL, 1),
    ),
    Case(
        "rows by an index in UB (g1_g_gather_2)",
        (A, X),
        A[X],
        (f'{TILE}, X: T.Tensor((M,), "int32"), {OUT}', GATHER, 2),
        (f'{TILE}, X: T.Tensor((M,), "int32"), {OUT}', GATHER, 1),
    ),
    Case(
        "update by rows of a handed-over tile (g2_rowloop_inpl, R-1CONS)",
        (L, R),
        PRODUCT * 2,
        (f"{LR}, {OUT}", ROW_UPDATE, 2),
        (f"{LR}, {OUT}", WHOLE_UPDATE, 2),
    ),
    Case(
        "update with a row vector (g2_rowvec)",
        (L, R, S),
        PRODUCT * S[:, None],
        (f'{LR}, S: T.Tensor((M,), "float32"), {OUT}', ROW_VECTOR_UPDATE, 2),
        (f'{LR}, S: T.Tensor((M,), "float32"), {OUT}', ROW_VECTOR_OTHER, 2),
    ),
    *(
        Case(
            f"an instruction goes from its first element on: {value}",
            (A,),
            expected,
            (f"{TILE}, {ROWS}", IN_ORDER.format(loop="Parallel", value=value), 1),
            (f"{TILE}, {ROWS}", IN_ORDER.format(loop="serial", value=value), 1),
        )
        for value, expected in (
            ("a[i, 8] * 2.0", A[:, 8] * 2),
            ("a[i, i] + s[i]", np.diag(A) + A.max(1)),
            ("a[0, i // 2] * 2.0", A[0, np.arange(M) // 2] * 2),
        )
    ),
    *(
        Case(
            f"rows that an instruction for the whole tile does not pick: {loops}",
            (A,),
            A[np.arange(M) // 2] * 2,
            (f"{TILE}, {OUT}", PICKED_ROWS.format(loops=loops), 1),
            (f"{TILE}, {OUT}", PICKED_ROWS.format(loops=IN_TWO.format(kind="serial")), 1),
        )
        for loops in (f"for i, j in T.Parallel(M, N):\n    {PICKED}", IN_TWO.format(kind="Parallel"))
    ),
    Case(
        "turns that a pipeline drops (g7_pipe3, #1378)",
        (L, R),
        PRODUCT * 3,
        (f"{LR}, {OUT}", PIPELINE.format(stages=2), 2),
        (f"{LR}, {OUT}", PIPELINE.format(stages=3), 2),
    ),
)


def _run(case: Case, form: tuple[str, str, int | None], reading: str) -> np.ndarray:
    signature, body, threads = form
    names = [p.split(":")[0].strip() for p in signature.split("T.Tensor")[0:1]]
    inputs = {f"{names[0]}{n}": a for n, a in enumerate(case.inputs)}
    return outputs(developer(signature, body, threads), inputs, reading)


def _close(left: np.ndarray, right: np.ndarray) -> bool:
    return bool(np.allclose(left.astype(np.float32), right.astype(np.float32), rtol=2e-3, atol=2e-3))


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_the_author_means_the_formula(case: Case) -> None:
    assert _close(_run(case, case.wrong, "ideal"), case.expected)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_the_machine_does_something_else(case: Case) -> None:
    if case.fault:
        with pytest.raises(SimulatorError, match=case.fault):
            _run(case, case.wrong, "actual")
    else:
        assert not _close(_run(case, case.wrong, "actual"), case.expected)


@pytest.mark.parametrize("reading", ["ideal", "actual"])
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_the_repaired_kernel_is_right_in_both_readings(case: Case, reading: str) -> None:
    assert _close(_run(case, case.right, reading), case.expected)
