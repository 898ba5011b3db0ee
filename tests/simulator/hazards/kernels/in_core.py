# ruff: noqa: RUF059
"""Pipes of one core: every flag is an argument, so that it can be left out."""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[1])
def chain(load_set, load_wait, store_set, store_wait, N=16):
    @T.prim_func
    def main(A: T.Tensor((N, N), "float32"), B: T.Tensor((N, N), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((N // 2, N), "float32")
            b = T.alloc_ub((N // 2, N), "float32")
            with T.Scope("V"):
                T.copy(A[vid * (N // 2), 0], a)  # chain: load
                if load_set:
                    T.set_flag("mte2", "v", 0)
                if load_wait:
                    T.wait_flag("mte2", "v", 0)
                T.tile.add(b, a, a)  # chain: add
                if store_set:
                    T.set_flag("v", "mte3", 0)
                if store_wait:
                    T.wait_flag("v", "mte3", 0)
                T.copy(b, B[vid * (N // 2), 0])

    return main


@tilelang.jit(out_idx=[1])
def loop(loaded, stored, read_free, write_free, after_load, after_add, at_end, auto=False, N=16):
    """One buffer in, one out: two flags forward, two back, and barriers that may stand for them."""

    @T.prim_func
    def main(A: T.Tensor((3 * N, N), "float32"), B: T.Tensor((3 * N, N), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((N // 2, N), "float32")
            b = T.alloc_ub((N // 2, N), "float32")
            with T.Scope("V"):
                if read_free:
                    T.set_flag("v", "mte2", 0)
                if write_free:
                    T.set_flag("mte3", "v", 0)
                for k in T.serial(3):
                    if read_free:
                        T.wait_flag("v", "mte2", 0)
                    T.copy(A[k * N + vid * (N // 2), 0], a)
                    if loaded:
                        T.set_flag("mte2", "v", 0)
                        T.wait_flag("mte2", "v", 0)
                    if after_load:
                        T.barrier_all()
                    if write_free:
                        T.wait_flag("mte3", "v", 0)
                    T.tile.add(b, a, a)
                    if read_free:
                        T.set_flag("v", "mte2", 0)
                    if stored:
                        T.set_flag("v", "mte3", 0)
                        T.wait_flag("v", "mte3", 0)
                    if after_add:
                        T.barrier_all()
                    T.copy(b, B[k * N + vid * (N // 2), 0])
                    if write_free:
                        T.set_flag("mte3", "v", 0)
                    if at_end:
                        T.barrier_all()
                if read_free:
                    T.wait_flag("v", "mte2", 0)
                if write_free:
                    T.wait_flag("mte3", "v", 0)

    return main


CONFIGS = {"tl.ascend_auto_sync": True}
automatic_loop = tilelang.jit(loop.function, out_idx=[1], pass_configs=CONFIGS)


@tilelang.jit(out_idx=[1])
def ring(slots, ids, back, first=0, N=16):
    """Loads run ahead into ``slots`` buffers; event ids are k % ids; ``back``: the flags that give a buffer free."""

    @T.prim_func
    def main(A: T.Tensor((6 * N, N), "float32"), B: T.Tensor((N, N), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((slots, N, N), "float32")
            b = T.alloc_ub((N, N), "float32")
            with T.Scope("V"):
                T.tile.fill(b, 0.0)
                if back:
                    for n in range(2):
                        T.set_flag("v", "mte2", n % ids)
                for k in T.serial(6):
                    if back:
                        T.wait_flag("v", "mte2", k % ids)
                    T.copy(A[k * N : (k + 1) * N, :], a[k % slots, :, :])
                    T.set_flag("mte2", "v", k % ids)
                    T.wait_flag("mte2", "v", k % ids)
                    T.tile.add(b, b, a[k % slots, :, :])
                    if back:
                        T.set_flag("v", "mte2", k % ids)
                if back:
                    for n in range(2):
                        T.wait_flag("v", "mte2", (n + first) % ids)
                T.set_flag("v", "mte3", 0)
                T.wait_flag("v", "mte3", 0)
                if vid == 0:
                    T.copy(b, B)

    return main


@tilelang.jit(out_idx=[2])
def matrix(loaded, moved, computed, l1_free, l0_free, out_free, N=16):
    """MTE2 -> MTE1 -> M -> FIX and back, two rounds."""

    @T.prim_func
    def main(
        A: T.Tensor((2 * N, N), "float16"), B: T.Tensor((2 * N, N), "float16"), C: T.Tensor((2 * N, N), "float32")
    ):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a1 = T.alloc_L1((N, N), "float16")
            b1 = T.alloc_L1((N, N), "float16")
            a0 = T.alloc_L0A((N, N), "float16")
            b0 = T.alloc_L0B((N, N), "float16")
            c0 = T.alloc_L0C((N, N), "float32")
            with T.Scope("C"):
                if l1_free:
                    T.set_flag("mte1", "mte2", 0)
                if l0_free:
                    T.set_flag("m", "mte1", 0)
                if out_free:
                    T.set_flag("fix", "m", 0)
                for k in T.serial(2):
                    if l1_free:
                        T.wait_flag("mte1", "mte2", 0)
                    T.copy(A[k * N : (k + 1) * N, :], a1)
                    T.copy(B[k * N : (k + 1) * N, :], b1)
                    if loaded:
                        T.set_flag("mte2", "mte1", 0)
                        T.wait_flag("mte2", "mte1", 0)
                    if l0_free:
                        T.wait_flag("m", "mte1", 0)
                    T.copy(a1, a0)
                    T.copy(b1, b0)
                    if l1_free:
                        T.set_flag("mte1", "mte2", 0)
                    if moved:
                        T.set_flag("mte1", "m", 0)
                        T.wait_flag("mte1", "m", 0)
                    if out_free:
                        T.wait_flag("fix", "m", 0)
                    T.mma(a0, b0, c0, init=True)
                    if l0_free:
                        T.set_flag("m", "mte1", 0)
                    if computed:
                        T.set_flag("m", "fix", 0)
                        T.wait_flag("m", "fix", 0)
                    T.copy(c0, C[k * N : (k + 1) * N, :])
                    if out_free:
                        T.set_flag("fix", "m", 0)
                if l1_free:
                    T.wait_flag("mte1", "mte2", 0)
                if l0_free:
                    T.wait_flag("m", "mte1", 0)
                if out_free:
                    T.wait_flag("fix", "m", 0)

    return main


@tilelang.jit(out_idx=[2])
def product(fence, each=False, N=16):
    """``gemm_v0`` waits for loads and stores itself, so nothing is needed around it; ``fence`` is superfluous.

    ``each``: the sum so far is stored in each round.
    """

    @T.prim_func
    def main(A: T.Tensor((N, 3 * N), "float16"), B: T.Tensor((3 * N, N), "float16"), C: T.Tensor((N, N), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_L1((N, N), "float16")
            b = T.alloc_L1((N, N), "float16")
            c = T.alloc_L0C((N, N), "float32")
            with T.Scope("C"):
                for k in T.serial(3):
                    T.copy(A[:, k * N : (k + 1) * N], a)
                    T.copy(B[k * N : (k + 1) * N, :], b)
                    if fence:
                        T.set_flag("mte2", "mte1", 1)
                        T.wait_flag("mte2", "mte1", 1)
                    T.gemm_v0(a, b, c, init=(k == 0))
                    if fence:
                        T.set_flag("m", "fix", 1)
                        T.wait_flag("m", "fix", 1)  # product: superfluous
                    if each:
                        T.copy(c, C)
                T.copy(c, C)

    return main


@tilelang.jit(out_idx=[1])
def scalar(before, after, N=16):
    """The scalar unit reads and writes UB elements."""

    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((N,), "float32")
            with T.Scope("V"):
                T.copy(A, a)
                if before:
                    T.set_flag("mte2", "s", 0)
                    T.wait_flag("mte2", "s", 0)
                a[0] = a[1]
                if after:
                    T.set_flag("s", "mte3", 0)
                    T.wait_flag("s", "mte3", 0)
                if vid == 0:
                    T.copy(a, B)

    return main


@tilelang.jit(out_idx=[1])
def late(event, N=16):
    """The wait stands before the set: the vector pipe waits, the scalar unit goes on and hands MTE2 its work."""

    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((N,), "float32")
            b = T.alloc_ub((N,), "float32")
            with T.Scope("V"):
                T.wait_flag("mte2", "v", 0)
                T.tile.fill(b, 1.0)
                T.copy(A, a)
                T.set_flag("mte2", "v", event)
                T.tile.add(b, b, a)
                T.barrier_all()
                if vid == 0:
                    T.copy(b, B)

    return main


@tilelang.jit(out_idx=[1])
def circle(primed, barrier, early, N=16):
    """A tile that is free again once it is stored; ``primed``: and is so from the start."""

    @T.prim_func
    def main(A: T.Tensor((4 * N,), "float32"), B: T.Tensor((4 * N,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((N,), "float32")
            with T.Scope("V"):
                if primed:
                    T.set_flag("mte3", "mte2", 0)
                for i in T.serial(4):
                    T.wait_flag("mte3", "mte2", 0)  # circle: free
                    if early:
                        T.wait_flag("mte2", "v", 0)  # circle: early
                    if barrier:
                        T.barrier_all()  # circle: barrier
                    T.copy(A[i * N], a)
                    T.set_flag("mte2", "v", 0)  # circle: loaded
                    if not early:
                        T.wait_flag("mte2", "v", 0)
                    T.tile.add(a, a, 1.0)
                    T.set_flag("v", "mte3", 0)
                    T.wait_flag("v", "mte3", 0)
                    T.copy(a, B[i * N])
                    T.set_flag("mte3", "mte2", 0)
                if primed:
                    T.wait_flag("mte3", "mte2", 0)

    return main


@tilelang.jit(out_idx=[1])
def constant(same, N=16):
    """A tile is loaded again in each round while the vector pipe still reads it: harmless if it is the same tile."""

    @T.prim_func
    def main(A: T.Tensor((2 * N, N), "float32"), B: T.Tensor((N, N), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((N, N), "float32")
            b = T.alloc_ub((N, N), "float32")
            with T.Scope("V"):
                T.tile.fill(b, 0.0)
                for k in T.serial(2):
                    T.copy(A[0 if same else k * N, 0], a)
                    T.set_flag("mte2", "v", 0)
                    T.wait_flag("mte2", "v", 0)
                    T.tile.add(b, b, a)
                T.barrier_all()
                if vid == 0:
                    T.copy(b, B)

    return main


@tilelang.jit(out_idx=[1])
def clipped(row, N=16):
    """A tile is stored and loaded again; a load that is clipped brings its own flags, another one does not."""

    @T.prim_func
    def main(A: T.Tensor((40, N), "float32"), B: T.Tensor((N, N), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((N, N), "float32")
            with T.Scope("V"):
                T.copy(A[0, 0], a)
                T.barrier_all()
                if vid == 0:
                    T.copy(a, B)
                for k in T.serial(1):
                    T.copy(A[row * (k + 1), 0], a)
                T.tile.exp(a, a)  # clipped: exp

    return main
