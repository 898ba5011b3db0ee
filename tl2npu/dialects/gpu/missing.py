"""What of GPU TileLang has no counterpart on an NPU, by rule code; a test says which pass takes care of all else."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tl2npu.dialects.gpu.build import LANES, VECTOR_BASES

_MISSING = {
    ("TL180", "tensor memory and tcgen05 instructions"): """
        TCGEN05DescriptorParams TCGEN05TensorCoreIntrinEmitter alloc_tcgen05_instr_desc alloc_tcgen05_instruction_desc
        alloc_tcgen05_smem_desc alloc_tmem compute_umma_descriptor deallocate_tmem initialize_tcgen05_descriptor
        ptx_tcgen05_mma_ss ptx_tcgen05_mma_ts tcgen05_after_thread_sync tcgen05_before_thread_sync tcgen05_cp_warpx4
        tcgen05_gemm tcgen05_mma tcgen05_mma_arrive tcgen05_sf_warp_transpose
        """,
    ("TL181", "GPU tensor-core instructions"): """
        TensorCoreIntrinEmitter TensorCoreIntrinEmitterSM120 TensorCoreIntrinEmitterWithLadderTransform
        WGMMADescriptorParams WGMMATensorCoreIntrinEmitter alloc_descriptor alloc_wgmma_desc compute_gmma_descriptor
        get_ldmatrix_offset get_mma_micro_size get_swizzle_layout increase_descriptor_offset
        initialize_wgmma_descriptor make_mma_swizzle_layout mma_fill mma_store mma_store_index_map ptx_ldmatrix
        ptx_mma ptx_mma_sm70 ptx_wgmma_rs ptx_wgmma_ss tvm_bmma_sync tvm_fill_fragment tvm_load_matrix_sync
        tvm_mma_sync tvm_store_matrix_sync wait_wgmma warpgroup_arrive warpgroup_commit_batch warpgroup_fence_operand
        warpgroup_wait wgmma_gemm wgmma_mma
        """,
    ("TL182", "hand-written pipelines of asynchronous copies and barriers"): """
        alloc_barrier alloc_cluster_barrier async_copy barrier_arrive barrier_wait cp_async_barrier_noinc
        create_barriers create_tma_descriptor mbarrier_arrive mbarrier_arrive_expect_tx mbarrier_expect_tx
        mbarrier_wait_parity named_barrier_arrive ptx_arrive_barrier ptx_arrive_barrier_expect_tx
        ptx_commit_group ptx_cp_async ptx_cp_async_barrier ptx_cp_async_bulk ptx_fence_barrier_init
        ptx_init_barrier_thread_count ptx_wait_barrier ptx_wait_group tma_copy tma_gather4 tma_gather4_bytes tma_load
        tma_load_2sm tma_scatter4 tma_store_arrive tma_store_wait
        """,
    ("TL183", "warp specialisation"): """
        WSID WSInstr WSOpRef WSPipeline WSRole WSSchedule WSScope WSSync WSSyncKind WarpSpecialize WarpSpecializeFrame
        annotate_ws_schedule ws ws_op
        """,
    ("TL184", "thread-level or warp-level code"): """
        activemask all_sync any_sync ballot ballot_sync env_thread get_lane_idx get_thread_binding
        get_thread_bindings get_thread_extent get_thread_extents get_warp_group_idx get_warp_idx get_warp_idx_sync
        launch_thread match_all_sync match_any_sync shfl_down shfl_sync shfl_up shfl_xor shuffle_elect
        syncthreads_and syncthreads_count syncthreads_or thread_binding thread_return tvm_storage_sync
        tvm_thread_allreduce tvm_thread_invariant tvm_warp_activemask tvm_warp_shuffle tvm_warp_shuffle_down
        tvm_warp_shuffle_up warp_reduce_bitand warp_reduce_bitor warp_reduce_max warp_reduce_min warp_reduce_sum
        """,
    ("TL185", "extern calls and code in another language"): """
        CUDASourceCodeKernel __ldg call_cpacked call_cpacked_lowered call_extern call_intrin call_kernel
        call_llvm_intrin call_llvm_pure_intrin call_packed call_packed_lowered call_pure_extern import_source
        llvm_lookup_intrinsic_id tvm_call_cpacked tvm_call_cpacked_lowered tvm_call_packed tvm_call_packed_lowered
        """,
    ("TL186", "thread-block clusters"): """
        BaseTileScheduler ClusterKernel PersistentTileScheduler block_rank_in_cluster clc_get_first_ctaid_x
        clc_get_first_ctaid_y clc_get_first_ctaid_z clc_is_canceled clc_try_cancel clc_try_cancel_multicast
        cluster_arrive cluster_arrive_relaxed cluster_sync cluster_wait copy_cluster ptx_arrive_cluster_barrier
        """,
    ("TL187", "synchronisation between blocks"): """
        sync_global sync_grid
        """,
    ("TL188", "device-side random numbers"): "rng_init rng_rand rng_rand_float",
    ("TL189", "sparse or block-scaled products"): """
        SparseTensorCoreIntrinEmitter WGSparseTensorCoreIntrinEmitter gemm_sp make_blockscaled_gemm_layout
        mma_gemm_blockscaled ptx_mma_block_scale ptx_mma_sp ptx_tcgen05_mma_blockscaled_ss ptx_wgmma_sp_rs
        ptx_wgmma_sp_ss tcgen05_gemm_blockscaled tcgen05_gemm_sp tcgen05_mma_blockscaled wgmma_gemm_sp
        """,
    ("TL191", "this element type"): """
        float4_e2m1_unpacked float4_e2m1fn float6_e2m3fn float6_e3m2fn float64 float8_e3m4 float8_e4m3
        float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu double int4
        is_f8f6f4_family is_float4 is_float4_e2m1_unpacked is_float4_e2m1fn validate_gemm_ab_dtypes
        """,
    ("TL192", "atomic operations other than addition"): """
        atomic_load atomic_max atomic_min atomic_or atomic_store
        """,
    ("TL193", "raw pointers and addresses"): """
        Ptr StridedTensor access_ptr address_of handle handle_add_byte_offset isnullptr ldg128 ldg256 ldg32 ldg64
        lds128 lds32 lds64 make_tensor make_tensor_from_addr ptr stg128 stg256 stg32 stg64 sts128 sts32 sts64
        tvm_access_ptr
        """,
    ("TL194", "TIR building blocks"): """
        Assert Call CallEffectKind CommReducer IterVar JITFunc KernelLaunchFrame Let PrimFunc ProducerLoad Range
        Reduce TVMBackendAllocWorkspace TVMBackendFreeWorkspace While alloc_buffer allocate anylist_getitem
        anylist_resetitem anylist_setitem_call_cpacked anylist_setitem_call_packed arg attr axis bind
        block_name_suffix_context buffer buffer_decl buffer_store buffer_var comm_reducer decl_buffer
        end_profile_intrinsic evaluate func_name func_ret
        get_active_lane_mask get_let_value get_tvm_dtype has_let_value ignore_loop_partition index_map
        index_to_coordinates init inline iter_var let lookup_param match_buffer meta_class meta_var q_multiply_shift
        q_multiply_shift_per_axis reads ret sblock sblock_alloc_buffer sblock_attr start_profile_intrinsic target
        tvm_stack_alloca tvm_stack_make_array tvm_stack_make_shape tvm_struct_get tvm_struct_set
        tvm_throw_last_error tvm_tuple type_annotation undef var void vscale where writes
        """,
    ("TL196", "this operation"): """
        Broadcast Ramp Shuffle abs2 add2 broadcast continue_loop dp4a extract_lane fma2
        hypot ldexp max2 min2 mul2 nextafter ramp reduce_bitand reduce_bitor reduce_bitxor sub2 vectorcombine
        vectorhigh vectorlow
        """,
}

_VECTORS = tuple(f"{base}x{lanes}" for base in VECTOR_BASES for lanes in LANES)


def _missing() -> dict[str, tuple[str, str]]:
    found = {name: group for group, names in _MISSING.items() for name in names.split()}
    return found | dict.fromkeys(_VECTORS, ("TL191", "vectors of elements"))


MISSING: Mapping[str, tuple[str, str]] = MappingProxyType(_missing())
"""Operator name -> the rule code that refuses it, and what it is an instance of."""
