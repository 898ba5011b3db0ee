"""Developer mode: the hand-overs between the cores are the compiler's, and so are its flags (facts g9_*, gx_*)."""

import tilelang
import tilelang.language as T

CONFIGS = {
    "tl.ascend_auto_sync": True,
    "tl.ascend_auto_cv_combine": True,
    "tl.ascend_auto_cross_core_sync": True,
    "tl.ascend_memory_planning": True,
}


@tilelang.jit(out_idx=[2], pass_configs=CONFIGS)
def loop(form, threads=2, N=32, turns=3):
    @T.prim_func
    def main(
        A: T.Tensor((turns * N, N), "float16"), B: T.Tensor((N, N), "float16"), C: T.Tensor((turns * N, N), "float32")
    ):
        with T.Kernel(2, is_npu=True, threads=threads) as cid:
            a = T.alloc_L1((N, N), "float16")
            b = T.alloc_L1((N, N), "float16")
            h = T.alloc_ub((N, N), "float16")
            c = T.alloc_L0C((N, N), "float32")
            u = T.alloc_ub((N, N), "float32")
            w = T.alloc_ub((N, N), "float32")
            if cid == 0:
                T.copy(B, b)
                if form == "cube to vector":
                    for k in T.serial(turns):
                        T.copy(A[k * N : (k + 1) * N, :], a)
                        T.gemm_v0(a, b, c, init=True)
                        T.copy(c, u)
                        T.tile.exp(w, u)
                        T.copy(w, C[k * N : (k + 1) * N, :])
                if form == "vector to cube":
                    for k in T.serial(turns):
                        T.copy(A[k * N : (k + 1) * N, :], h)
                        T.copy(h, a)
                        T.gemm_v0(a, b, c, init=True)
                        T.copy(c, C[k * N : (k + 1) * N, :])
                if form == "both":
                    for k in T.serial(turns):
                        T.copy(A[k * N : (k + 1) * N, :], h)
                        T.copy(h, a)
                        T.gemm_v0(a, b, c, init=True)
                        T.copy(c, u)
                        T.tile.exp(w, u)
                        T.copy(w, C[k * N : (k + 1) * N, :])
                if form == "after":
                    for k in T.serial(turns):
                        T.copy(A[k * N : (k + 1) * N, :], a)
                        T.gemm_v0(a, b, c, init=(k == 0))
                    T.copy(c, u)
                    T.tile.exp(w, u)
                    T.copy(w, C[0:N, :])

    return main
