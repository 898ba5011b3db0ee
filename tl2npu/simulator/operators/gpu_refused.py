"""Names of GPU TileLang that have no meaning in the simulator, and why."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

HARDWARE = "hardware intrinsic: it is about threads, warps, barriers or instructions, which the simulator does not have"
THREADS = "thread-level code: the simulator runs a block as one program, not as threads"
FOREIGN = "foreign code: the simulator cannot see into it"
RANDOM = "random numbers of the device cannot be reproduced"
SPARSE = "the layout of sparse operands is not modelled"
POINTER = "raw pointers are not modelled"
COMPILER = "a building block of the compiler, not of kernels"

_TABLE = {
    HARDWARE: """
        alloc_barrier alloc_cluster_barrier alloc_descriptor alloc_tmem deallocate_tmem create_tma_descriptor
        annotate_ws_schedule ws_op ws WarpSpecialize ClusterKernel
        barrier_arrive barrier_wait mbarrier_arrive mbarrier_arrive_expect_tx mbarrier_expect_tx mbarrier_wait_parity
        named_barrier_arrive increase_descriptor_offset initialize_wgmma_descriptor initialize_tcgen05_descriptor
        ldg32 ldg64 ldg128 ldg256 lds32 lds64 lds128 stg32 stg64 stg128 stg256 sts32 sts64 sts128
        tma_load tma_load_2sm tma_store_arrive tma_store_wait tma_gather4 tma_gather4_bytes tma_scatter4 copy_cluster
        cluster_arrive cluster_arrive_relaxed cluster_wait cluster_sync block_rank_in_cluster clc_try_cancel
        clc_try_cancel_multicast clc_is_canceled clc_get_first_ctaid_x clc_get_first_ctaid_y clc_get_first_ctaid_z
        cluster_id_in_grid cluster_dims get_cluster_id get_cluster_dims
        mma_gemm_blockscaled make_blockscaled_gemm_layout tcgen05_gemm tcgen05_gemm_blockscaled tcgen05_cp
        tcgen05_cp_warpx4 tcgen05_sf_warp_transpose tcgen05_before_thread_sync tcgen05_after_thread_sync
        ptx_arrive_cluster_barrier ptx_mma_sm70 warpgroup_arrive warpgroup_commit_batch warpgroup_wait
        warpgroup_fence_operand wait_wgmma
        """,
    THREADS: """
        activemask all_sync any_sync ballot ballot_sync match_all_sync match_any_sync shuffle_elect
        get_lane_idx get_warp_idx get_warp_idx_sync get_warp_group_idx
        shfl_down shfl_sync shfl_up shfl_xor syncthreads_and syncthreads_count syncthreads_or
        warp_reduce_bitand warp_reduce_bitor warp_reduce_max warp_reduce_min warp_reduce_sum
        get_thread_binding get_thread_bindings thread_binding launch_thread env_thread
        """,
    FOREIGN: """
        CUDASourceCodeKernel import_source call_extern call_pure_extern call_intrin call_packed call_llvm_intrin
        call_llvm_pure_intrin call_cpacked call_tir
        """,
    RANDOM: "rng_init rng_rand rng_rand_float",
    SPARSE: "gemm_sp wgmma_gemm_sp",
    POINTER: "access_ptr ptr make_tensor make_tensor_from_addr address_of",
    COMPILER: "index_to_coordinates",
}

_PREFIXES = ("ptx_", "tvm_", "mma_", "simdgroup_", "tcgen05_", "wgmma_", "warpgroup_", "TensorCore", "cooperative_")

REFUSED: Mapping[str, str] = MappingProxyType({n: reason for reason, names in _TABLE.items() for n in names.split()})
"""Operator name -> why it has no meaning in a GPU kernel here."""


def reason(name: str) -> str | None:
    """Why a name has no meaning; None for one that is not refused."""
    if name in REFUSED:
        return REFUSED[name]
    return HARDWARE if name.startswith(_PREFIXES) and name != "wgmma_gemm" else None
