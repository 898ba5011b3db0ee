"""Names of the Ascend language that have no meaning in the simulator, and why.

They are refused in kernels for the NPU only; a GPU kernel may use those that GPU TileLang gives a meaning.
"""

from __future__ import annotations

from tl2npu.simulator.operators.registry import refuse

THREADS = "it is about the threads and warps of a GPU: an NPU core has none"
BARRIERS = "it belongs to the asynchronous copies and barriers of a GPU"
GPU_MATRIX = "it is a matrix instruction of a GPU"
LOWERED = "it is a form that the compiler makes itself, below the language of kernels"
FOREIGN = "it calls code that the simulator cannot see; without a result the compiler drops the call silently"
POINTERS = "raw pointers are not modelled"
DEVICES = "it reaches the memory of another device, and one device is simulated"
VECTORS = "vectors of elements in a scalar have no meaning in an Ascend kernel: tile operators take their place"
BUILDER = "TVM script in the builder's form; write it as a Python statement"
UNUSED = "no known kernel uses it, and nobody has compared it with a device"
UNRESOLVED = "the Ascend compiler has no instruction for it and leaves the call unresolved"

refuse(
    THREADS,
    *"get_thread_binding get_thread_bindings thread_binding launch_thread env_thread sync_thread_partial".split(),
    *"shfl_xor shfl_down shfl_up ws".split(),
    *"tvm_thread_allreduce tvm_thread_invariant tvm_storage_sync".split(),
    *"tvm_warp_shuffle tvm_warp_shuffle_up tvm_warp_shuffle_down tvm_warp_activemask".split(),
)
refuse(
    BARRIERS,
    *"create_list_of_mbarrier get_mbarrier create_tma_descriptor tma_load fence_proxy_async tma_store_arrive".split(),
    *"tma_store_wait mbarrier_expect_tx mbarrier_wait_parity mbarrier_arrive barrier_wait barrier_arrive".split(),
    *"ptx_cp_async ptx_cp_async_bulk ptx_commit_group ptx_wait_group ptx_cp_async_barrier ptx_arrive_barrier".split(),
    *"ptx_wait_barrier ptx_init_barrier_thread_count ptx_arrive_barrier_expect_tx create_barriers".split(),
)
refuse(
    GPU_MATRIX,
    *"wait_wgmma tvm_load_matrix_sync tvm_store_matrix_sync tvm_mma_sync tvm_bmma_sync tvm_fill_fragment".split(),
    *"tvm_mfma tvm_rdna_wmma tvm_mfma_store tvm_rdna_wmma_store mma_store mma_fill ptx_mma ptx_mma_sp".split(),
    "ptx_ldmatrix",
)
refuse(
    LOWERED,
    *"tvm_check_return tvm_stack_alloca tvm_stack_make_shape tvm_stack_make_array tvm_tuple tvm_struct_get".split(),
    *"tvm_struct_set tvm_throw_last_error undef vscale lookup_param type_annotation ret q_multiply_shift".split(),
    *"q_multiply_shift_per_axis TVMBackendAllocWorkspace TVMBackendFreeWorkspace anylist_getitem".split(),
    *"anylist_resetitem anylist_setitem_call_packed anylist_setitem_call_cpacked".split(),
    *"start_profile_intrinsic end_profile_intrinsic llvm_lookup_intrinsic_id".split(),
    *"ProducerLoad Call IterVar CommReducer Reduce comm_reducer iter_var index_map realize allocate".split(),
    *"allocate_const prefetch buffer_var meta_var target func_ret arg where".split(),
)
refuse(
    FOREIGN,
    *"call_intrin call_extern call_pure_extern call_llvm_intrin call_llvm_pure_intrin call_packed".split(),
    *"call_cpacked call_packed_lowered call_cpacked_lowered tvm_call_packed tvm_call_cpacked".split(),
    *"tvm_call_packed_lowered tvm_call_cpacked_lowered customized_code".split(),
)
refuse(
    POINTERS,
    *"ptr make_tensor address_of tvm_access_ptr handle void isnullptr".split(),
    *"buffer decl_buffer match_buffer buffer_decl".split(),
)
refuse(DEVICES, "shmem_put_nbi", "shmem_get_nbi", "shmem_ub_put_nbi", "shmem_ub_get_nbi")
refuse(
    VECTORS,
    *(
        f"{kind}x{lanes}"
        for lanes in (4, 8, 16, 32, 64)
        for kind in (
            *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
            *("float16", "float32", "float64", "e4m3_float8", "e5m2_float8"),
        )
    ),
    *"vectorlow vectorhigh vectorcombine Ramp ramp Broadcast broadcast Shuffle Range".split(),
)
refuse(BUILDER, "While", "Assert", "LetStmt", "Let", "let")
refuse(UNRESOLVED, "nextafter", "hypot", "ldexp")

refuse("the Ascend compiler rejects it: use T.gemm_v0", "gemm")
refuse("the Ascend compiler rejects it: use T.reduce_max of T.tile.abs", "reduce_absmax")
refuse("the Ascend compiler rejects it: use T.reduce_sum of T.tile.abs", "reduce_abssum")
refuse("the Ascend compiler drops it silently", "cumsum")
refuse("the Ascend compiler rejects it: use T.tile.atomic_add", "atomic_addx2", "atomic_addx4")
refuse("GPU only: use T.printf or T.dump_tensor", "print")
refuse("GPU only", "dp4a", "c2d_im2col")
refuse("the compiler has no code for it: use T.tile.brcb_experiment", "tile.brcb")
refuse(
    UNUSED,
    *(f"tile.{name}" for name in "binary_op unary_op scalar_op init_sort_buf gatherb".split()),
    *(f"tile.{form}{kind}" for form in ("wholereduce", "block_reduce_") for kind in ("max", "min", "sum")),
    *("tile.fill_experiment", "tile.bilinear_interpolation"),
)
