"""Adds two matrices in tiles that fit into the UB of an A5: memory planning, which is off here, has the sizes of A2."""

import tilelang
import tilelang.language as T

pass_configs = {
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
}


@tilelang.jit(out_idx=[2], pass_configs=pass_configs)
def add_rows(M=1024, N=512):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32"), Z: T.Tensor((M, N), "float32")):
        with T.Kernel(M // 104, threads=2, is_npu=True) as (cid):
            x = T.alloc_shared((104, N), "float32")
            y = T.alloc_shared((104, N), "float32")
            T.copy(X[cid * 104, 0], x)
            T.copy(Y[cid * 104, 0], y)
            for i, j in T.Parallel(104, N):
                x[i, j] = x[i, j] + y[i, j]
            T.copy(x, Z[cid * 104, 0])

    return main


add_rows()
