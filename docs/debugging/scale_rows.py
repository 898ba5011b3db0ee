"""Doubles a matrix of 20 columns: a kernel that the compiler accepts, and that computes wrong numbers."""

import tilelang
import tilelang.language as T

pass_configs = {
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True,
}


@tilelang.jit(out_idx=[1], pass_configs=pass_configs)
def scale(rows=512, columns=20):
    @T.prim_func
    def main(
        X: T.Tensor((rows, columns), "float32"),
        Y: T.Tensor((rows, columns), "float32"),
    ):
        with T.Kernel(rows // 64, threads=2, is_npu=True) as (cid):
            x = T.alloc_shared((64, columns), "float32")
            T.copy(X[cid * 64, 0], x)
            T.tile.mul(x, x, 2.0)
            T.copy(x, Y[cid * 64, 0])

    return main
