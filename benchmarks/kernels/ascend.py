"""Kernels of the simulator benchmark in Ascend Developer mode."""

import tilelang
import tilelang.language as T

CONFIGS = {
    "tl.ascend_auto_cv_combine": True,
    "tl.ascend_auto_cross_core_sync": True,
    "tl.ascend_auto_sync": True,
    "tl.ascend_memory_planning": True,
}


@tilelang.jit(out_idx=[-1], pass_configs=CONFIGS)
def gemm(M, N, K, block_M=128, block_N=128, block_K=64):
    columns = N // block_N

    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float16")):
        with T.Kernel(M // block_M * columns, is_npu=True) as (cid, _):
            bx = cid // columns
            by = cid % columns
            A_L1 = T.alloc_L1((block_M, block_K), "float16")
            B_L1 = T.alloc_L1((block_K, block_N), "float16")
            C_L0 = T.alloc_L0C((block_M, block_N), "float")
            for k in T.serial(K // block_K):
                T.copy(A[bx * block_M, k * block_K], A_L1)
                T.copy(B[k * block_K, by * block_N], B_L1)
                T.gemm_v0(A_L1, B_L1, C_L0, init=(k == 0))
            T.copy(C_L0, C[bx * block_M, by * block_N])

    return main


@tilelang.jit(out_idx=[-1], pass_configs=CONFIGS)
def attention(heads, seq, dim, block_M=128, block_N=128):
    scale = (1.0 / dim) ** 0.5
    shape = (heads, seq, dim)
    blocks = seq // block_M

    @T.prim_func
    def main(
        Q: T.Tensor(shape, "float16"),
        K: T.Tensor(shape, "float16"),
        V: T.Tensor(shape, "float16"),
        O: T.Tensor(shape, "float16"),  # noqa: E741
    ):
        with T.Kernel(heads * blocks, threads=2, is_npu=True) as (cid):
            head = cid // blocks
            row = cid % blocks * block_M
            q_l1 = T.alloc_shared((block_M, dim), "float16")
            k_l1 = T.alloc_shared((block_N, dim), "float16")
            v_l1 = T.alloc_shared((block_N, dim), "float16")
            p_l1 = T.alloc_shared((block_M, block_N), "float16")
            s_l0c = T.alloc_fragment((block_M, block_N), "float")
            o_l0c = T.alloc_fragment((block_M, dim), "float")
            s_ub = T.alloc_shared((block_M, block_N), "float")
            p_ub = T.alloc_shared((block_M, block_N), "float16")
            o_ub = T.alloc_shared((block_M, dim), "float")
            acc_ub = T.alloc_shared((block_M, dim), "float")
            out_ub = T.alloc_shared((block_M, dim), "float16")
            m_ub = T.alloc_shared((block_M,), "float")
            m_prev = T.alloc_shared((block_M,), "float")
            total_ub = T.alloc_shared((block_M,), "float")
            sum_ub = T.alloc_shared((block_M,), "float")

            T.tile.fill(acc_ub, 0.0)
            T.tile.fill(total_ub, 0.0)
            T.tile.fill(m_ub, -(2.0**30))
            T.copy(Q[head, row : row + block_M, :], q_l1)
            for k in T.serial(seq // block_N):
                T.copy(K[head, k * block_N : (k + 1) * block_N, :], k_l1)
                T.gemm_v0(q_l1, k_l1, s_l0c, transpose_B=True, init=True)
                T.copy(s_l0c, s_ub)
                T.copy(m_ub, m_prev)
                T.tile.mul(s_ub, s_ub, scale)
                T.reduce_max(s_ub, m_ub, dim=-1)
                T.tile.max(m_ub, m_ub, m_prev)
                T.tile.sub(m_prev, m_prev, m_ub)
                T.tile.exp(m_prev, m_prev)
                for i, j in T.Parallel(block_M, block_N):
                    s_ub[i, j] = s_ub[i, j] - m_ub[i]
                T.tile.exp(s_ub, s_ub)
                T.reduce_sum(s_ub, sum_ub, dim=-1)
                T.tile.mul(total_ub, total_ub, m_prev)
                T.tile.add(total_ub, total_ub, sum_ub)
                T.copy(s_ub, p_ub)
                T.copy(p_ub, p_l1)
                T.copy(V[head, k * block_N : (k + 1) * block_N, :], v_l1)
                T.gemm_v0(p_l1, v_l1, o_l0c, init=True)
                for i, j in T.Parallel(block_M, dim):
                    acc_ub[i, j] = acc_ub[i, j] * m_prev[i]
                T.copy(o_l0c, o_ub)
                T.tile.add(acc_ub, acc_ub, o_ub)
            for i, j in T.Parallel(block_M, dim):
                acc_ub[i, j] = acc_ub[i, j] / total_ub[i]
            T.copy(acc_ub, out_ub)
            T.copy(out_ub, O[head, row : row + block_M, :])

    return main


@tilelang.jit(out_idx=[-1], pass_configs=CONFIGS)
def softmax(M, N, block_M=8):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float"), Y: T.Tensor((M, N), "float")):
        with T.Kernel(M // block_M, threads=2, is_npu=True) as (cid):
            x_ub = T.alloc_shared((block_M, N), "float")
            peak_ub = T.alloc_shared((block_M,), "float")
            sum_ub = T.alloc_shared((block_M,), "float")
            T.copy(X[cid * block_M, 0], x_ub)
            T.reduce_max(x_ub, peak_ub, dim=-1)
            for i, j in T.Parallel(block_M, N):
                x_ub[i, j] = x_ub[i, j] - peak_ub[i]
            T.tile.exp(x_ub, x_ub)
            T.reduce_sum(x_ub, sum_ub, dim=-1)
            for i, j in T.Parallel(block_M, N):
                x_ub[i, j] = x_ub[i, j] / sum_ub[i]
            T.copy(x_ub, Y[cid * block_M, 0])

    return main
