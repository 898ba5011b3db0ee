# ruff: noqa: RUF059, SIM102, B007
"""Cores of a block and blocks of a grid. Synchronisation inside of a core is automatic here."""

import tilelang
import tilelang.language as T

CONFIGS = {"tl.ascend_auto_sync": True}


@tilelang.jit(out_idx=[2], workspace_idx=[3], pass_configs=CONFIGS)
def cube_to_vector(set_flag, wait_flag, N=16):
    @T.prim_func
    def main(
        A: T.Tensor((2 * N, N), "float16"),
        B: T.Tensor((N, N), "float16"),
        C: T.Tensor((2 * N, N), "float32"),
        workspace: T.Tensor((2, N, N), "float32"),
    ):
        with T.Kernel(2, is_npu=True) as (cid, vid):
            a = T.alloc_L1((N, N), "float16")
            b = T.alloc_L1((N, N), "float16")
            c = T.alloc_L0C((N, N), "float32")
            u = T.alloc_ub((N // 2, N), "float32")
            with T.Scope("C"):
                T.copy(A[cid * N, 0], a)
                T.copy(B, b)
                T.gemm_v0(a, b, c, init=True)
                T.copy(c, workspace[cid, :, :])  # cube_to_vector: write
                if set_flag:
                    T.set_cross_flag("FIX", 0)
            with T.Scope("V"):
                if wait_flag:
                    T.wait_cross_flag(0)  # cube_to_vector: wait
                T.copy(workspace[cid, vid * (N // 2), 0], u)  # cube_to_vector: read
                T.copy(u, C[cid * N + vid * (N // 2), 0])

    return main


@tilelang.jit(out_idx=[1], workspace_idx=[2], pass_configs=CONFIGS)
def vector_to_cube(first, second, wait_flag, N=16):
    """Both vector cores have to set the flag."""

    @T.prim_func
    def main(A: T.Tensor((N, N), "float16"), C: T.Tensor((N, N), "float32"), workspace: T.Tensor((N, N), "float16")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_L1((N, N), "float16")
            c = T.alloc_L0C((N, N), "float32")
            u = T.alloc_ub((N // 2, N), "float16")
            with T.Scope("V"):
                T.copy(A[vid * (N // 2), 0], u)
                T.copy(u, workspace[vid * (N // 2), 0])
                if first:
                    if vid == 0:
                        T.set_cross_flag("MTE3", 1)
                if second:
                    if vid == 1:
                        T.set_cross_flag("MTE3", 1)
            with T.Scope("C"):
                if wait_flag:
                    T.wait_cross_flag(1)
                T.copy(workspace, a)
                T.gemm_v0(a, a, c, init=True)
                T.copy(c, C)

    return main


@tilelang.jit(out_idx=[2], workspace_idx=[3], pass_configs=CONFIGS)
def two_way(forward, backward, slots, lag, N=16):
    """The cube writes slot k % slots; it may be ``lag`` rounds ahead of the vector cores."""

    @T.prim_func
    def main(
        A: T.Tensor((5 * N, N), "float16"),
        B: T.Tensor((N, N), "float16"),
        C: T.Tensor((5 * N, N), "float32"),
        workspace: T.Tensor((slots, N, N), "float32"),
    ):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_L1((N, N), "float16")
            b = T.alloc_L1((N, N), "float16")
            c = T.alloc_L0C((N, N), "float32")
            u = T.alloc_ub((N // 2, N), "float32")
            with T.Scope("C"):
                T.copy(B, b)
                for k in T.serial(5):
                    T.copy(A[k * N, 0], a)
                    T.gemm_v0(a, b, c, init=True)
                    if backward:
                        if k >= lag:
                            T.wait_cross_flag(1)
                    T.copy(c, workspace[k % slots, :, :])
                    if forward:
                        T.set_cross_flag("FIX", 0)
                if backward:
                    for k in T.serial(lag):
                        T.wait_cross_flag(1)
            with T.Scope("V"):
                for k in T.serial(5):
                    if forward:
                        T.wait_cross_flag(0)
                    T.copy(workspace[k % slots, vid * (N // 2), 0], u)
                    if backward:
                        T.set_cross_flag("MTE2", 1)
                    T.copy(u, C[k * N + vid * (N // 2), 0])

    return main


@tilelang.jit(out_idx=[1], workspace_idx=[2], pass_configs=CONFIGS)
def neighbours(among, N=16, blocks=3):
    """A vector core reads what another one wrote: its twin in the block, or one of the next block."""

    @T.prim_func
    def main(
        A: T.Tensor((blocks * N, N), "float32"),
        B: T.Tensor((2, blocks * N, N), "float32"),
        workspace: T.Tensor((blocks * N, N), "float32"),
    ):
        with T.Kernel(blocks, is_npu=True) as (cid, vid):
            u = T.alloc_ub((N // 2, N), "float32")
            with T.Scope("V"):
                T.copy(A[cid * N + vid * (N // 2), 0], u)
                T.copy(u, workspace[cid * N + vid * (N // 2), 0])
                if among == "block":
                    T.set_cross_flag("MTE3", 2, mode=1)
                    T.wait_cross_flag(2)
                if among == "grid":
                    T.set_cross_flag("MTE3", 2, mode=0)
                    T.wait_cross_flag(2)
                if among == "all":
                    T.sync_all()
                T.copy(workspace[cid * N + (1 - vid) * (N // 2), 0], u)  # neighbours: twin
                T.copy(u, B[0, cid * N + vid * (N // 2), 0])
                T.copy(workspace[(cid + 1) % blocks * N + vid * (N // 2), 0], u)  # neighbours: next
                T.copy(u, B[1, cid * N + vid * (N // 2), 0])

    return main


@tilelang.jit(out_idx=[1], pass_configs=CONFIGS)
def duplicates(form, N=16):
    """Both vector cores, or several blocks, write one place."""

    @T.prim_func
    def main(A: T.Tensor((N, N), "float32"), B: T.Tensor((N, N), "float32")):
        with T.Kernel(2, is_npu=True) as (cid, vid):
            u = T.alloc_ub((N // 2, N), "float32")
            with T.Scope("V"):
                if form == "same":  # both cores of a block do the same work and read back what they wrote
                    T.copy(A[cid * (N // 2), 0], u)
                    T.copy(u, B[cid * (N // 2), 0])
                    T.copy(B[cid * (N // 2), 0], u)
                    T.copy(u, B[cid * (N // 2), 0])
                if form == "twins":  # different values
                    T.copy(A[vid * (N // 2), 0], u)
                    T.copy(u, B[cid * (N // 2), 0])
                if form == "update":  # each core adds to what it finds
                    T.copy(B[cid * (N // 2), 0], u)
                    T.tile.add(u, u, u)
                    T.copy(u, B[cid * (N // 2), 0])
                if form == "blocks":  # blocks that write the same
                    T.copy(A[vid * (N // 2), 0], u)
                    T.copy(u, B[vid * (N // 2), 0])
                if form == "overlap":  # blocks that write one row in common, with different values
                    T.copy(A[cid * (N // 2), 0], u)
                    if vid == 0:
                        T.copy(u, B[cid * (N // 2 - 1), 0])

    return main


in_place = tilelang.jit(duplicates.function, pass_configs=CONFIGS)


@tilelang.jit(pass_configs=CONFIGS)
def atomics(plain, N=16):
    @T.prim_func
    def main(A: T.Tensor((2 * N, N), "float32"), B: T.Tensor((N, N), "float32")):
        with T.Kernel(2, is_npu=True) as (cid, vid):
            u = T.alloc_ub((N, N), "float32")
            with T.Scope("V"):
                T.copy(A[cid * N, 0], u)
                T.tile.atomic_add(B, u)
                if plain:
                    if cid == 1:
                        T.copy(B, u)

    return main


@tilelang.jit(out_idx=[1], pass_configs=CONFIGS)
def stuck(what, N=16):
    @T.prim_func
    def main(A: T.Tensor((N, N), "float32"), B: T.Tensor((N, N), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_L1((N, N), "float32")
            u = T.alloc_ub((N // 2, N), "float32")
            with T.Scope("C"):
                T.copy(A, a)
                T.wait_cross_flag(3)  # stuck: cube
                T.set_cross_flag("MTE2", 4)
            with T.Scope("V"):
                T.copy(A[vid * (N // 2), 0], u)
                T.wait_cross_flag(4)  # stuck: vector
                T.set_cross_flag("MTE3", 3)
                T.copy(u, B[vid * (N // 2), 0])

    return main


@tilelang.jit(out_idx=[1], pass_configs=CONFIGS)
def many(sets, flag, N=16):
    """The cube sets a flag often before the vector cores wait."""

    @T.prim_func
    def main(A: T.Tensor((N, N), "float32"), B: T.Tensor((N, N), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_L1((N, N), "float32")
            u = T.alloc_ub((N // 2, N), "float32")
            with T.Scope("C"):
                for _ in T.serial(sets):
                    T.copy(A, a)
                    T.set_cross_flag("MTE2", flag)
            with T.Scope("V"):
                for _ in T.serial(sets):
                    T.wait_cross_flag(flag)
                T.copy(A[vid * (N // 2), 0], u)
                T.copy(u, B[vid * (N // 2), 0])

    return main


@tilelang.jit(out_idx=[2], workspace_idx=[3])
def barrier_of_all(place, N=16, blocks=2):
    """The cube of one block writes what vector cores of the next one read; pipes are ordered by hand."""

    @T.prim_func
    def main(
        A: T.Tensor((blocks * N, N), "float16"),
        B: T.Tensor((N, N), "float16"),
        C: T.Tensor((blocks * N, N), "float32"),
        workspace: T.Tensor((blocks * N, N), "float32"),
    ):
        with T.Kernel(blocks, is_npu=True) as (cid, vid):
            a = T.alloc_L1((N, N), "float16")
            b = T.alloc_L1((N, N), "float16")
            c = T.alloc_L0C((N, N), "float32")
            u = T.alloc_ub((N // 2, N), "float32")
            with T.Scope("C"):
                T.copy(A[cid * N, 0], a)
                T.copy(B, b)
                T.gemm_v0(a, b, c, init=True)
                T.copy(c, workspace[cid * N, 0])
            if place == "outside":
                T.sync_all()
            with T.Scope("V"):
                if place == "vector":
                    T.sync_all()
                T.copy(workspace[(cid + 1) % blocks * N + vid * (N // 2), 0], u)
                T.barrier_all()
                T.copy(u, C[cid * N + vid * (N // 2), 0])

    return main


@tilelang.jit(out_idx=[1], workspace_idx=[2], pass_configs=CONFIGS)
def twins_read_back(own, N=16):
    """Both vector cores (or one of them) write one tile, wait for the cube, which knows nothing of it, and read it."""

    @T.prim_func
    def main(A: T.Tensor((N, N), "float32"), B: T.Tensor((2, N, N), "float32"), workspace: T.Tensor((N, N), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_L1((N, N), "float32")
            u = T.alloc_ub((N, N), "float32")
            with T.Scope("V"):
                T.set_cross_flag("MTE3", 1)
                T.copy(A, u)
                if own:
                    T.copy(u, workspace)
                else:
                    if vid == 1:
                        T.copy(u, workspace)
                T.wait_cross_flag(0)
                T.copy(workspace, u)
                T.copy(u, B[vid, :, :])
            with T.Scope("C"):
                T.wait_cross_flag(1)
                T.copy(A, a)
                T.set_cross_flag("MTE2", 0)

    return main
