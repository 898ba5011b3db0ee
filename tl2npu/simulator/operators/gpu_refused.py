"""Names of GPU TileLang that have no meaning in the simulator, and why."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

HARDWARE = "hardware intrinsic: it is about threads, warps, barriers or instructions, which the simulator does not have"
THREADS = "thread-level code: the simulator runs a block as one program, not as threads"
FOREIGN = "foreign code: the simulator cannot see into it"
RANDOM = "random numbers of the device cannot be reproduced"
SPARSE = "the layout of sparse operands is not modelled"
POINTER = "raw pointers are not modelled"
COMPILER = "a building block of the compiler, not of kernels"
VECTORS = "vectors of elements are not modelled: an iteration of a T.Parallel has one element"
TYPES = "the simulator has no numbers of this element type"
UNKNOWN = "it has no meaning in the simulator"

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

        mma_gemm_blockscaled make_blockscaled_gemm_layout tcgen05_gemm tcgen05_gemm_blockscaled
        tcgen05_cp_warpx4 tcgen05_sf_warp_transpose tcgen05_before_thread_sync tcgen05_after_thread_sync
        alloc_tcgen05_instr_desc alloc_tcgen05_instruction_desc alloc_tcgen05_smem_desc alloc_wgmma_desc
        cp_async_barrier_noinc compute_umma_descriptor compute_gmma_descriptor TCGEN05DescriptorParams
        TCGEN05TensorCoreIntrinEmitter WGMMADescriptorParams WGMMATensorCoreIntrinEmitter
        SparseTensorCoreIntrinEmitter WGSparseTensorCoreIntrinEmitter WarpSpecializeFrame
        WSID WSInstr WSOpRef WSPipeline WSRole WSSchedule WSScope WSSync WSSyncKind
        ptx_arrive_cluster_barrier ptx_mma_sm70
        """,
    THREADS: """
        activemask all_sync any_sync ballot ballot_sync match_all_sync match_any_sync shuffle_elect
        get_lane_idx get_warp_idx get_warp_idx_sync get_warp_group_idx
        shfl_down shfl_sync shfl_up shfl_xor syncthreads_and syncthreads_count syncthreads_or
        warp_reduce_bitand warp_reduce_bitor warp_reduce_max warp_reduce_min warp_reduce_sum
        get_thread_binding get_thread_bindings thread_binding launch_thread env_thread
        """,
    FOREIGN: """
        CUDASourceCodeKernel call_extern call_pure_extern call_intrin call_packed call_llvm_intrin
        call_llvm_pure_intrin call_cpacked
        """,
    RANDOM: "rng_init rng_rand rng_rand_float",
    SPARSE: "gemm_sp wgmma_gemm_sp",
    POINTER: "access_ptr ptr make_tensor make_tensor_from_addr address_of handle handle_add_byte_offset isnullptr",
    COMPILER: """
        allocate index_to_coordinates get_tvm_dtype is_f8f6f4_family is_float4 is_float4_e2m1_unpacked is_float4_e2m1fn
        validate_gemm_ab_dtypes KernelLaunchFrame inline meta_class get_swizzle_layout make_mma_swizzle_layout
        get_ldmatrix_offset get_mma_micro_size JITFunc BaseTileScheduler PersistentTileScheduler
        Call CallEffectKind CommReducer IterVar ProducerLoad Reduce PrimFunc AnyDType Ptr
        TVMBackendAllocWorkspace TVMBackendFreeWorkspace anylist_getitem anylist_resetitem
        anylist_setitem_call_cpacked anylist_setitem_call_packed call_cpacked_lowered call_packed_lowered
        create_barriers end_profile_intrinsic start_profile_intrinsic get_active_lane_mask lookup_param undef vscale
        q_multiply_shift q_multiply_shift_per_axis ret type_annotation llvm_lookup_intrinsic_id call_kernel
        Assert axis meta_var While Let Range arg bind block_name_suffix_context buffer decl_buffer
        buffer_decl buffer_var comm_reducer sblock_attr func_ret index_map iter_var let
        match_buffer sblock sblock_alloc_buffer target void where
        """,
    VECTORS: """
        abs2 add2 max2 min2 mul2 sub2 fma2 extract_lane Broadcast Ramp Shuffle broadcast ramp vectorcombine
        vectorhigh vectorlow
        """,
    TYPES: "float4_e2m1_unpacked float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3b11fnuz",
    UNKNOWN: "hypot ldexp nextafter continue_loop",
}

_PREFIXES = ("ptx_", "tvm_", "mma_", "simdgroup_", "tcgen05_", "wgmma_", "TensorCore", "cooperative_")

_KNOWN = ("wgmma_gemm", "ptx_commit_group", "ptx_wait_group")
"""Names with a meaning that begin like those."""

REFUSED: Mapping[str, str] = MappingProxyType({n: reason for reason, names in _TABLE.items() for n in names.split()})
"""Operator name -> why it has no meaning in a GPU kernel here."""


def reason(name: str) -> str | None:
    """Why a name has no meaning; None for one that is not refused."""
    if name in REFUSED:
        return REFUSED[name]
    if re.fullmatch(r"[a-z]+\d+(_\w+?)?x\d+", name):
        return VECTORS
    return HARDWARE if name.startswith(_PREFIXES) and name not in _KNOWN else None
