"""Names that exist because the Ascend language grew out of the GPU one; none may remain in an Ascend kernel."""

from __future__ import annotations

from tl2npu.dialects.tables import table

OPERATORS = table("""
[system nowhere plain] tilelang/language/builtin.py # not for Ascend kernels
create_list_of_mbarrier get_mbarrier create_tma_descriptor tma_load fence_proxy_async tma_store_arrive
    tma_store_wait mbarrier_expect_tx wait_wgmma: *args
set_max_nreg: reg_count is_inc
inc_max_nreg dec_max_nreg: reg_count
no_set_max_nreg sync_threads sync_global:
mbarrier_wait_parity: mbarrier parity
mbarrier_arrive: mbarrier
barrier_wait: barrier_id parity=None
barrier_arrive sync_thread_partial: barrier_id
shfl_xor shfl_down shfl_up: value offset
[system nowhere plain] tilelang/language/kernel.py
get_thread_binding: dim=0 # not for Ascend kernels
get_thread_bindings get_block_bindings get_block_extents: # not for Ascend kernels
[system nowhere plain] tilelang/language/logical.py
any_of all_of: buffer # not for Ascend kernels
[system nowhere plain] tilelang/language/warpgroup.py
ws: *warp_group_idx # not for Ascend kernels
[system nowhere plain] tilelang/language/tir/op.py # not for Ascend kernels
call_packed call_cpacked call_packed_lowered call_cpacked_lowered tvm_call_packed tvm_call_cpacked
    tvm_call_packed_lowered tvm_call_cpacked_lowered: *args span=None
tvm_check_return: expected return_unexpected nested_call
tvm_stack_alloca: dtype_str num
tvm_stack_make_shape: *args
tvm_stack_make_array: data shape strides ndim arr_dtype elem_offset
tvm_tuple: *value
tvm_struct_get: arr index field dtype
tvm_struct_set: arr index field value
tvm_thread_allreduce: *freduce_args
tvm_thread_invariant: cond
tvm_storage_sync: storage_scope
tvm_warp_shuffle: mask value warp_id width warp_size
tvm_warp_shuffle_up tvm_warp_shuffle_down: mask value offset width warp_size
tvm_warp_activemask tvm_throw_last_error ptx_commit_group undef vscale:
tvm_access_ptr: ptype data offset extent rw_mask
tvm_load_matrix_sync tvm_store_matrix_sync: fragment m n k index buffer_ptr stride layout
tvm_mma_sync tvm_bmma_sync: fragment_d index_d fragment_a index_a fragment_b index_b fragment_c index_c
tvm_fill_fragment: fragment m n k index value
tvm_mfma tvm_rdna_wmma: dtype shape A_layout B_layout A_dtype B_dtype C_dtype multiplicand_a a_index multiplicand_b
    b_index accumulator c_index
tvm_mfma_store tvm_rdna_wmma_store mma_store: dtype m n dst_ptr src_ptr src_offset dst_stride
mma_fill: dtype local_size local_ptr offset
ptx_mma: dtype shape A_layout B_layout A_dtype B_dtype C_dtype multiplicand_a a_index multiplicand_b b_index
    accumulator c_index saturate operator=None
ptx_mma_sp: dtype shape A_layout B_layout A_dtype B_dtype C_dtype multiplicand_a a_index multiplicand_b b_index
    accumulator c_index metadata meta_index sparse_selector saturate
ptx_ldmatrix: dtype trans num type local_ptr local_offset smem_ptr smem_offset
ptx_cp_async: dtype shared_ptr shared_offset global_ptr global_offset bytes
ptx_cp_async_bulk: dtype shared_ptr shared_offset global_ptr global_offset bytes barrier_id
ptx_wait_group: num
ptx_cp_async_barrier ptx_arrive_barrier ptx_wait_barrier: barrier_id
ptx_init_barrier_thread_count: barrier_id thread_count
ptx_arrive_barrier_expect_tx: barrier_id byte_count
create_barriers: barrier_count
vectorlow vectorhigh: dtype vec
vectorcombine: dtype vec1 vec2
assume: cond=None
start_profile_intrinsic end_profile_intrinsic: id
address_of: buffer_load span=None
lookup_param: param_name span=None
type_annotation: dtype
ret: val
q_multiply_shift: x y q s
q_multiply_shift_per_axis: x y ls rs q is_lshift_required is_rshift_required
TVMBackendAllocWorkspace: device_type device_id nbytes dtype_code_hint dtype_bits_hint
TVMBackendFreeWorkspace: device_type device_id ptr
anylist_getitem anylist_resetitem: list_handle index
anylist_setitem_call_packed anylist_setitem_call_cpacked: list_handle index func_name *args
[system nowhere plain] tvm:tir/expr.py # not for Ascend kernels
Ramp ramp: base stride lanes span=None
Broadcast broadcast: value lanes span=None
Shuffle: vectors indices span=None
ProducerLoad: producer indices span=None
Call: dtype op args span=None
IterVar: dom var iter_type thread_tag='' span=None
CommReducer: lhs rhs result identity_element span=None
Reduce: combiner src rdom condition value_index init=None span=None
[system nowhere plain] tvm:target/codegen.py
llvm_lookup_intrinsic_id: name # not for Ascend kernels
""")
