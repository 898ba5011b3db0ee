"""Accesses to UB at any byte: copies between tiles, operators, ``T.Parallel``, rows of loads."""

import tilelang
import tilelang.language as T

ON = {
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True,
}


@tilelang.jit(out_idx=[1], pass_configs=ON)
def between(first, second, count, dtype):
    @T.prim_func
    def main(A: T.Tensor((16, 64), dtype), B: T.Tensor((16, 64), dtype)):
        with T.Kernel(1, threads=1, is_npu=True):
            x = T.alloc_ub((16, 64), dtype)
            y = T.alloc_ub((16, 64), dtype)
            T.copy(A[0, 0], x)
            T.copy(A[0, 0], y)
            T.copy(x[:, first : first + count], y[:, second : second + count])
            T.copy(y, B[0, 0])

    return main


@tilelang.jit(out_idx=[1], pass_configs=ON)
def vector(start, count, form):
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=1, is_npu=True):
            x = T.alloc_ub((64,), "float32")
            y = T.alloc_ub((64,), "float32")
            T.copy(A[0:64], x)
            T.copy(A[0:64], y)
            if form == "parallel":
                for i in T.Parallel(count):
                    y[i] = x[i + start] * 2.0
            if form == "serial":
                for i in T.serial(count):
                    y[i] = x[i + start] * 2.0
            if form == "tile":
                T.tile.exp(y[0:count], x[start : start + count])
            if form == "itself":  # the compiler drops it
                for i in T.Parallel(count):
                    y[i + start] = y[i + start] * 1.0
            if form == "copy":
                T.copy(x[start : start + count], y[0:count])
            T.copy(y, B[0:64])

    return main


@tilelang.jit(out_idx=[1], pass_configs=ON)
def rows(count, columns, form):
    @T.prim_func
    def main(A: T.Tensor((count, columns), "float32"), B: T.Tensor((count, columns), "float32")):
        with T.Kernel(1, threads=1, is_npu=True):
            x = T.alloc_ub((count, columns), "float32")
            m = T.alloc_ub((count,), "float32")
            if form == "load":
                T.copy(A[0, 0], x)
            else:
                T.tile.fill(x, 1.0)
            T.tile.fill(m, 1.0)
            if form == "max":
                T.reduce_max(x, m, dim=-1)
            if form == "each":
                for i in T.serial(count):
                    T.tile.exp(x[i, :], x[i, :])
            if form == "minus":
                for i, j in T.Parallel(count, columns):
                    x[i, j] = x[i, j] - m[i]
            T.copy(x[0, :], B[0, 0:columns])

    return main


@tilelang.jit(out_idx=[1], pass_configs=ON)
def pieces(first, order):
    """A vector from two loads."""

    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=1, is_npu=True):
            x = T.alloc_ub((64,), "float32")
            if order == "first":
                T.copy(A[0:first], x[0:first])
            for i in T.serial(64 - first):
                x[first + i] = A[first + i]
            if order == "last":
                T.copy(A[0:first], x[0:first])
            T.copy(x, B[0:64])

    return main
