"""Doubles a matrix in Expert mode: without a barrier, the store may come before the product."""

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[1])
def double(rows, columns):
    @T.prim_func
    def main(X: T.Tensor((rows, columns), "float32"), Y: T.Tensor((rows, columns), "float32")):
        with T.Kernel(rows // 32, is_npu=True) as (cid, vid):
            x = T.alloc_ub((16, columns), "float32")
            with T.Scope("V"):
                T.copy(X[cid * 32 + vid * 16, 0], x)
                T.barrier_all()
                T.tile.mul(x, x, 2.0)
                T.copy(x, Y[cid * 32 + vid * 16, 0])

    return main


x = np.random.default_rng(0).standard_normal((64, 64), np.float32)
assert (double(64, 64)(x) == 2 * x).all()
print("right on the simulator")
