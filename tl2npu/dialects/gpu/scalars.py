"""Operators inside of expressions."""

from __future__ import annotations

from tl2npu.dialects.gpu.build import GPU_MODE
from tl2npu.dialects.tables import table

OPERATORS = table("""
[scalar] tilelang/language/customize.py
clamp: dst min_val max_val
[scalar] tilelang/language/eager/builder.py
const: name dtype='int32'
[scalar] tilelang/language/frame.py
get_let_value has_let_value: var
[scalar] tilelang/language/logical.py
all_of any_of: buffer
[scalar] tilelang/language/math_intrinsics.py
__cos __exp __exp10 __log __log10 __log2 __sin __tan abs2 fast_rcp ieee_frsqrt: x
add2 max2 min2 mul2 sub2: x y
fma2: x y z
ieee_add ieee_fdiv ieee_mul ieee_sub: x y rounding_mode='rn'
ieee_fmaf: x y z rounding_mode='rn'
ieee_frcp ieee_fsqrt: x rounding_mode='rn'
[scalar] tilelang/language/reduce_op.py
warp_reduce_bitand warp_reduce_bitor warp_reduce_max warp_reduce_min warp_reduce_sum: value
[scalar] tilelang/language/symbolics.py
dynamic symbolic: name dtype='int32'
[scalar] tilelang/language/tir/op.py
call_extern call_pure_extern: dtype func_name *args span=None
call_intrin: dtype func_name *args annotations=None span=None
extract_lane: vector lane span=None
infinity: dtype span=None
pow: x y span=None
ptx_arrive_barrier_expect_tx: barrier_id byte_count
ptx_cp_async: dst_access_ptr src_access_ptr num_elems predicate=None
reinterpret: value dtype span=None
round: x rounding_mode='ties-to-even' span=None
tvm_access_ptr: ptype data offset extent rw_mask
[scalar] tvm:tirx/expr.py
Add And Broadcast BufferLoad Call CallEffectKind Cast CommReducer Div EQ FloatImm FloorDiv FloorMod GE GT IntImm
    IterVar LE LT Max Min Mod Mul NE Not Or ProducerLoad Ramp Reduce Shuffle SizeVar StringImm Sub Var broadcast
    ramp:
[scalar] tvm:tirx/op.py
TVMBackendAllocWorkspace: device_type device_id nbytes dtype_code_hint dtype_bits_hint
TVMBackendFreeWorkspace: device_type device_id ptr
abs bitwise_not ceil fabs floor isfinite isinf isnan isnullptr nearbyint trunc: x span=None
acos acosh asin asinh atan atanh clz cos cosh erf exp exp10 exp2 log log10 log1p log2 popcount rsqrt sigmoid sin
    sinh sqrt tan tanh: x
address_of: obj span=None
anylist_getitem anylist_resetitem: list_handle index
anylist_setitem_call_cpacked anylist_setitem_call_packed: list_handle index func_name *args
assume: cond=None
atan2 copysign hypot ldexp nextafter: x1 x2
bitwise_and bitwise_or bitwise_xor shift_left shift_right: x y span=None
break_loop continue_loop thread_return: span=None
call_cpacked call_cpacked_lowered call_packed call_packed_lowered tvm_call_cpacked tvm_call_cpacked_lowered
    tvm_call_packed tvm_call_packed_lowered: *args span=None
call_llvm_intrin call_llvm_pure_intrin: dtype name *args span=None
cdiv ceildiv: lhs rhs span=None
create_barriers: barrier_count
end_profile_intrinsic start_profile_intrinsic: id
floordiv floormod truncdiv truncmod: a b span=None
fmod: x y
get_active_lane_mask: dtype base limit
handle_add_byte_offset: handle offset
if_then_else: cond t f span=None
ignore_loop_partition: predicate
likely: cond span=None
lookup_param: param_name span=None
max_value min_value: dtype span=None
mma_store: dtype m n dst_ptr src_ptr src_offset dst_stride
ptx_arrive_barrier ptx_cp_async_barrier ptx_wait_barrier: barrier_id
ptx_commit_group tvm_throw_last_error tvm_warp_activemask undef vscale:
ptx_cp_async_bulk: dtype shared_ptr shared_offset global_ptr global_offset bytes barrier_id
ptx_init_barrier_thread_count: barrier_id thread_count
ptx_mma: dtype shape A_layout B_layout A_dtype B_dtype C_dtype multiplicand_a a_index multiplicand_b b_index
    accumulator c_index saturate operator=None
ptx_wait_group: num
q_multiply_shift: x y q s
q_multiply_shift_per_axis: x y ls rs q is_lshift_required is_rshift_required
ret: val span=None
tvm_bmma_sync tvm_mma_sync: fragment_d index_d fragment_a index_a fragment_b index_b fragment_c index_c
tvm_fill_fragment: fragment m n k index value
tvm_load_matrix_sync tvm_store_matrix_sync: fragment m n k index buffer_ptr stride layout
tvm_stack_alloca: dtype_str num
tvm_stack_make_array: data shape strides ndim arr_dtype elem_offset
tvm_stack_make_shape: *args
tvm_storage_sync: storage_scope
tvm_struct_get: arr index field dtype
tvm_struct_set: arr index field value
tvm_thread_allreduce: *freduce_args
tvm_thread_invariant: cond
tvm_tuple: *value
tvm_warp_shuffle: mask value warp_id width warp_size
tvm_warp_shuffle_down tvm_warp_shuffle_up: mask value offset width warp_size
type_annotation: dtype
vectorcombine: dtype vec1 vec2
vectorhigh vectorlow: dtype vec
""", GPU_MODE, {})
