# ruff: noqa: RUF059, SIM102
"""Reads of memory that nothing wrote, accesses outside of it, buffers that are too large for it."""

import tilelang
import tilelang.language as T

CONFIGS = {"tl.ascend_auto_sync": True, "tl.ascend_memory_planning": True}


@tilelang.jit(out_idx=[1], pass_configs=CONFIGS)
def tile(form, N=16):  # noqa: C901
    """``a`` is 16 rows of which 8 are loaded."""
    rows = N if form == "each row stored" else 8

    @T.prim_func
    def main(A: T.Tensor((N, N), "float32"), B: T.Tensor((N, N), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((N, N), "float32")
            b = T.alloc_ub((N, N), "float32")
            r = T.alloc_ub((N,), "float32")
            with T.Scope("V"):
                if form not in ("nothing", "accumulate"):
                    T.copy(A[0:8, :], a[0:8, :])
                if form == "copied":  # the gap goes through a copy and is computed with there
                    T.copy(a, b)  # tile: moves
                    T.tile.exp(a, b)
                    T.copy(a[0:8, :], B[0:8, :])
                if form == "stored":
                    T.tile.exp(b, a)  # tile: exp
                    T.copy(b, B)
                if form == "part":
                    T.tile.exp(b, a)
                    T.copy(b[0:8, :], B[0:8, :])
                if form == "nothing":
                    T.tile.exp(b, a)  # tile: nothing
                    T.copy(b, B)
                if form == "accumulate":
                    T.copy(A, b)
                    T.tile.add(a, a, b)
                    T.copy(a, B)
                if form == "rows":  # each row by itself: those that are stored are defined
                    T.reduce_sum(a, r, dim=-1)
                    for i in T.serial(8):
                        T.tile.mul(b[i, :], a[i, :], r[i])
                    T.copy(b[0:8, :], B[0:8, :])
                if form in ("each row", "each row stored"):  # half of them are not there
                    for i in T.serial(N):
                        T.copy(a[i, :], r)
                        T.tile.exp(r, r)
                        T.copy(r, b[i, :])
                    T.copy(b[0:rows, :], B[0:rows, :])
                if form == "columns":  # every column has a gap
                    T.reduce_sum(a, r, dim=0)
                    T.copy(r, B[0, :])
                if form == "scalar":
                    b[0, 0] = a[9, 0]
                    T.copy(b[0:1, 0:1], B[0:1, 0:1])
                if form == "inside":
                    T.tile.fill(b, 0.0)
                    b[0, 0] = a[7, 0]
                    T.copy(b, B)
                if form == "parallel":
                    for i, j in T.Parallel(N, N):
                        b[i, j] = a[i, j] * 2.0
                    T.copy(b[0:8, :], B[0:8, :])
                if form == "parallel stored":
                    for i, j in T.Parallel(N, N):
                        b[i, j] = a[i, j] * 2.0
                    T.copy(b, B)
                if form == "printed":
                    T.dump_tensor(b, 1, N * N, (N, N))
                if form == "twice":  # the gap is filled in between
                    T.copy(A[8:16, :], a[8:16, :])
                    T.tile.exp(b, a)
                    T.copy(b, B)

    return main


@tilelang.jit(out_idx=[1], pass_configs=CONFIGS)
def element(form, N=16):
    """Element by element: ``a`` has 8 rows, ``k`` has none."""

    @T.prim_func
    def main(A: T.Tensor((N, N), "float32"), B: T.Tensor((N, N), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((N, N), "float32")
            k = T.alloc_ub((8,), "int32")
            with T.Scope("V"):
                T.copy(A[0:8, :], a[0:8, :])
                if form in ("apart", "stored"):  # no element of the first 8 rows depends on the others
                    for i in T.serial(N):
                        a[i, 0] = a[i, 0] + 1.0
                        a[i, 0] = a[i, 0] * 2.0
                if form == "place":
                    a[T.min(k[0], 0), 0] = 1.0
                if form == "condition":
                    if k[0] > 0:
                        a[0, 0] = 1.0
                if form == "one line":
                    for i in T.serial(4):
                        # fmt: off
                        if k[0] > i: a[0, 0] = 1.0  # noqa: E701
                        # fmt: on
                rows = 16 if form == "stored" else 8
                T.copy(a[0:rows, :], B[0:rows, :])

    return main


@tilelang.jit(out_idx=[1], pass_configs=CONFIGS)
def chosen(form, rows, N=16):
    """``a``, of which nothing is written, is chosen for the elements from row ``rows`` on, or for those before it."""

    @T.prim_func
    def main(A: T.Tensor((N, N), "float32"), B: T.Tensor((N, N), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((N, N), "float32")
            b = T.alloc_ub((N, N), "float32")
            c = T.alloc_ub((N, N), "float32")
            numbers = T.alloc_ub((N * N,), "float32")
            mask = T.alloc_ub((N * N // 8,), "uint8")
            with T.Scope("V"):
                T.copy(A, b)
                T.tile.createvecindex(numbers, 0)
                T.tile.compare(mask, numbers, T.float32(rows * N), "LT")
                if form == "second":
                    T.tile.select(c, mask, b, a, "VSEL_TENSOR_TENSOR_MODE")
                    T.copy(c[0:8, :], B[0:8, :])
                if form == "first":
                    T.tile.select(c, mask, a, b, "VSEL_TENSOR_TENSOR_MODE")
                    T.copy(c[8:16, :], B[8:16, :])
                if form == "number":
                    T.tile.select(c, mask, a, 0.0, "VSEL_TENSOR_SCALAR_MODE")
                    T.copy(c[8:16, :], B[8:16, :])
                if form == "both":  # what the first leaves undefined the second gives a value
                    T.tile.select(a, mask, a, 0.0, "VSEL_TENSOR_SCALAR_MODE")
                    T.tile.select(a, mask, b, a, "VSEL_TENSOR_TENSOR_MODE")
                    T.copy(a, B)
                if form == "with itself":
                    T.tile.select(a, mask, a, a, "VSEL_TENSOR_TENSOR_MODE")
                    T.copy(a[8:16, :], B[8:16, :])

    return main


@tilelang.jit(out_idx=[1], workspace_idx=[2], pass_configs=CONFIGS)
def through_memory(first, N=16):
    """A workspace is read; ``first`` rows of it are written."""

    @T.prim_func
    def main(A: T.Tensor((N, N), "float32"), B: T.Tensor((N, N), "float32"), workspace: T.Tensor((N, N), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((N, N), "float32")
            with T.Scope("V"):
                T.copy(A, a)
                T.copy(a[0:first, :], workspace[0:first, :])
                T.copy(workspace, a)  # through_memory: load
                T.tile.exp(a, a)
                T.copy(a, B)

    return main


@tilelang.jit(out_idx=[1], pass_configs=CONFIGS)
def matrix(init, loaded, stored, N=16):
    """The last rows: ``loaded`` of A, ``stored`` of the product."""

    @T.prim_func
    def main(A: T.Tensor((N, N), "float16"), B: T.Tensor((N, N), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_L1((N, N), "float16")
            b = T.alloc_L1((N, N), "float16")
            c = T.alloc_L0C((N, N), "float32")
            with T.Scope("C"):
                T.copy(A[0:loaded, :], a[N - loaded : N, :])  # a load from the first row on would clear the tile
                T.copy(A, b)
                for k in T.serial(2):
                    if init == "first":
                        T.gemm_v0(a, b, c, init=(k == 0))
                    if init == "never":
                        T.gemm_v0(a, b, c)
                T.copy(c[N - stored : N, :], B[0:stored, :])

    return main


@tilelang.jit(out_idx=[1], pass_configs=CONFIGS)
def outside(where, N=16):
    @T.prim_func
    def main(A: T.Tensor((N, N), "float32"), B: T.Tensor((N, N), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((N, N), "float32")
            with T.Scope("V"):
                T.copy(A, a)
                for i in T.serial(2):
                    if where == "tile":
                        T.copy(A[0:8, :], a[i * 12 : i * 12 + 8, :])  # outside: tile
                    if where == "element":
                        a[i * N, 0] = 1.0  # outside: element
                    if where == "inside":
                        a[i * (N - 1), 0] = 1.0
                T.copy(a, B)

    return main


def sized(planned):
    @tilelang.jit(out_idx=[1], pass_configs={**CONFIGS, "tl.ascend_memory_planning": planned})
    def factory(columns, together=False, N=32):
        """Three tiles, of which two are alive at a time, or all."""

        @T.prim_func
        def main(A: T.Tensor((N, columns), "float32"), B: T.Tensor((N, columns), "float32")):
            with T.Kernel(1, is_npu=True) as (cid, vid):
                a = T.alloc_ub((N, columns), "float32")
                b = T.alloc_ub((N, columns), "float32")
                c = T.alloc_ub((N, columns), "float32")
                with T.Scope("V"):
                    T.copy(A, a)
                    T.tile.exp(b, a)
                    T.tile.exp(c, b)
                    if together:
                        T.tile.add(c, c, a)
                    T.copy(c, B)

        return main

    return factory


planned, summed = sized(True), sized(False)


@tilelang.jit(out_idx=[2], pass_configs=CONFIGS)
def product(M, N, K):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_L1((M, K), "float16")
            b = T.alloc_L1((K, N), "float16")
            c = T.alloc_L0C((M, N), "float32")
            with T.Scope("C"):
                T.copy(A, a)
                T.copy(B, b)
                T.gemm_v0(a, b, c, init=True)
                T.copy(c, C)

    return main


@tilelang.jit(out_idx=[1], pass_configs={"tl.ascend_auto_sync": True})
def placed(second, N=32, columns=768):
    """Two tiles of 98304 bytes at addresses given by hand: they share memory, or do not and do not fit."""

    @T.prim_func
    def main(A: T.Tensor((N, columns), "float32"), B: T.Tensor((N, columns), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((N, columns), "float32")
            b = T.alloc_ub((N, columns), "float32")
            T.annotate_address({a: 0, b: second})
            with T.Scope("V"):
                T.copy(A, a)
                T.copy(a, B)
                T.copy(A, b)
                T.copy(b, B)

    return main


@tilelang.jit(out_idx=[1])
def on_gpu(clear, N=64):
    @T.prim_func
    def main(A: T.Tensor((N, N), "float32"), B: T.Tensor((N, N), "float32")):
        with T.Kernel(2, threads=128) as bx:
            a = T.alloc_shared((N, 4096), "float32")
            b = T.alloc_fragment((N // 2, N), "float32")
            if clear:
                T.clear(b)
            for i, j in T.Parallel(N // 2, N):
                b[i, j] += A[bx * (N // 2) + i, j]  # on_gpu: add
            T.copy(b, B[bx * (N // 2), 0])
            a[0, 0] = 1.0

    return main


@tilelang.jit(out_idx=[1], pass_configs=CONFIGS)
def views(rows, N=16):
    """Written as float32, read as pairs of 16 bits and with another shape: views share what is known of the memory."""

    @T.prim_func
    def main(A: T.Tensor((N, N), "float32"), B: T.Tensor((2 * N, N), "int16")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((N, N), "float32")
            halves = T.view(a, (2 * N, N), "int16")
            with T.Scope("V"):
                T.copy(A[0:rows, :], a[0:rows, :])
                T.copy(halves, B)

    return main


@tilelang.jit(out_idx=[1], workspace_idx=[2], pass_configs=CONFIGS)
def two_launches(first, N=16):
    """The second launch reads, from other blocks, what the first one wrote."""

    @T.prim_func
    def main(A: T.Tensor((N, N), "float32"), B: T.Tensor((N, N), "float32"), workspace: T.Tensor((N, N), "float32")):
        with T.Kernel(2, is_npu=True) as (cid, vid):
            a = T.alloc_ub((N // 4, N), "float32")
            with T.Scope("V"):
                if first:
                    T.copy(A[cid * (N // 2) + vid * (N // 4), 0], a)
                    T.copy(a, workspace[cid * (N // 2) + vid * (N // 4), 0])
        with T.Kernel(2, is_npu=True) as (cid, vid):
            b = T.alloc_ub((N // 4, N), "float32")
            with T.Scope("V"):
                T.copy(workspace[(1 - cid) * (N // 2) + vid * (N // 4), 0], b)
                T.tile.exp(b, b)
                T.copy(b, B[(1 - cid) * (N // 2) + vid * (N // 4), 0])

    return main


@tilelang.jit(out_idx=[1])
def lanes(modulus, N=16):
    """Iterations of a T.Parallel that write one element."""

    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(1, threads=32) as _:
            for i in T.Parallel(N):
                B[i % modulus] = A[i]  # lanes: store

    return main


@tilelang.jit(out_idx=[1])
def handed_on(other, fence, N=16):
    """Data goes from ``a`` to ``b``, which lies at the same address; ``c`` lies on the second half of ``b``."""

    @T.prim_func
    def main(A: T.Tensor((N, N), "float32"), B: T.Tensor((N, N), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((N, N), "float32")
            b = T.alloc_ub((N // 2, 2 * N), "float32")
            c = T.alloc_ub((N // 2, N), "int32")
            T.annotate_address({a: 64, b: other, c: other + N * N * 2})
            with T.Scope("V"):
                T.copy(A, a)
                T.barrier_all()
                T.tile.fill(c, 7)
                if fence:
                    T.barrier_all()
                for i in T.serial(N // 2):
                    T.copy(b[i, 0:N], B[2 * i, :])  # handed_on: store
                    T.copy(b[i, N : 2 * N], B[2 * i + 1, :])

    return main


@tilelang.jit(out_idx=[1], pass_configs=CONFIGS)
def renamed(rows, N=16):
    """``b`` becomes another name of the memory of ``a``."""

    @T.prim_func
    def main(A: T.Tensor((N, N), "int32"), B: T.Tensor((N, N), "uint32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((N, N), "int32")
            b = T.alloc_ub((N, N), "uint32")
            with T.Scope("V"):
                T.copy(A[0:rows, :], a[0:rows, :])
                T.reinterpretcast(b, a, "uint32_t")
                T.copy(b, B)

    return main


@tilelang.jit(out_idx=[1], pass_configs=CONFIGS)
def halves(columns):
    @T.prim_func
    def main(A: T.Tensor((32, columns), "float32"), B: T.Tensor((32, columns), "float32")):
        with T.Kernel(1, threads=2, is_npu=True):
            a = T.alloc_shared((32, columns), "float32")
            T.copy(A, a)
            T.tile.exp(a, a)
            T.copy(a, B)

    return main


def first_rows(rows, reads=False, N=16):
    """Stores some rows of its second tensor."""

    @T.prim_func
    def main(A: T.Tensor((N, N), "float32"), B: T.Tensor((N, N), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((N, N), "float32")
            with T.Scope("V"):
                T.copy(A, a)  # first_rows: load
                if reads:
                    T.copy(B, a)
                if rows:
                    T.copy(a[0:rows, :], B[0:rows, :])  # first_rows: store

    return main


first_rows_given = tilelang.jit(first_rows, pass_configs=CONFIGS)
first_rows_made = tilelang.jit(first_rows, out_idx=[1], pass_configs=CONFIGS)


@tilelang.jit(out_idx=[1], pass_configs=CONFIGS)
def rows_from(first=0, step=4, N=16):
    """Each of six blocks takes four rows, of a tensor of sixteen."""

    @T.prim_func
    def main(A: T.Tensor((N, N), "float32"), B: T.Tensor((24, N), "float32")):
        with T.Kernel(6, is_npu=True) as (cid, vid):
            a = T.alloc_ub((4, N), "float32")
            with T.Scope("V"):
                T.copy(A[first + cid * step, 0], a)  # rows_from: load
                T.barrier_all()
                T.copy(a, B[cid * 4, 0])

    return main


@tilelang.jit(out_idx=[1])
def rows_of_a_gpu(first=0, step=4, parallel=False, N=16):
    """The same on a GPU, by copies or by elements."""

    @T.prim_func
    def main(A: T.Tensor((N, N), "float32"), B: T.Tensor((24, N), "float32")):
        with T.Kernel(6, threads=32) as cid:
            a = T.alloc_shared((4, N), "float32")
            if parallel:
                for i, j in T.Parallel(4, N):
                    a[i, j] = A[first + cid * step + i, j]
            else:
                T.copy(A[first + cid * step, 0], a)
            T.copy(a, B[cid * 4, 0])

    return main
