"""Subtracts the largest element of each row: a kernel that compiles, and is wrong."""

import tilelang
import tilelang.language as T

pass_configs = {
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True,
}


@tilelang.jit(out_idx=[1], pass_configs=pass_configs)
def centre(rows=512, columns=20):
    @T.prim_func
    def main(
        X: T.Tensor((rows, columns), "float32"),
        Y: T.Tensor((rows, columns), "float32"),
    ):
        with T.Kernel(rows // 64, threads=2, is_npu=True) as (cid):
            x = T.alloc_shared((64, columns), "float32")
            largest = T.alloc_shared((64,), "float32")
            T.copy(X[cid * 64, 0], x)
            T.reduce_max(x, largest, dim=-1)
            for i, j in T.Parallel(64, columns):
                x[i, j] = x[i, j] - largest[i]
            T.copy(x, Y[cid * 64, 0])

    return main
