"""The compiler's own building blocks and hardware intrinsics that the name space exports."""

from __future__ import annotations

from tl2npu.dialects.gpu.build import GPU_MODE
from tl2npu.dialects.tables import table

OPERATORS = table("""
[system] builtins
WSID:
[system] tilelang/cuda/intrinsics/layout/mma_layout.py
get_swizzle_layout: row_idx col_idx row_size dtype swizzle_bytes=None
make_mma_swizzle_layout: shared_buf is_smooth=False
[system] tilelang/cuda/intrinsics/layout/utils.py
get_ldmatrix_offset: matrix row_idx col_idx stride dtype='float16' transposed=False
get_mma_micro_size: dtype
mma_store_index_map: thread_id local_id
[system] tilelang/cuda/intrinsics/macro/mma_macro_generator.py
TensorCoreIntrinEmitter TensorCoreIntrinEmitterWithLadderTransform:
[system] tilelang/cuda/intrinsics/macro/mma_sm120_macro_generator.py
TensorCoreIntrinEmitterSM120:
[system] tilelang/cuda/intrinsics/macro/mma_sp_macro_generator.py
SparseTensorCoreIntrinEmitter:
[system] tilelang/cuda/intrinsics/macro/tcgen05_macro_generator.py
TCGEN05DescriptorParams TCGEN05TensorCoreIntrinEmitter:
compute_umma_descriptor: tl_layout buffer transposed micro_size_k=16 region=None
[system] tilelang/cuda/intrinsics/macro/wgmma_macro_generator.py
WGMMADescriptorParams WGMMATensorCoreIntrinEmitter:
compute_gmma_descriptor: tl_layout buffer transposed micro_size_k=16 region=None
[system] tilelang/cuda/intrinsics/macro/wgmma_sp_macro_generator.py
WGSparseTensorCoreIntrinEmitter:
[system] tilelang/cuda/language/cluster.py
block_rank_in_cluster:
clc_get_first_ctaid_x clc_get_first_ctaid_y clc_get_first_ctaid_z clc_is_canceled: result
clc_try_cancel clc_try_cancel_multicast: result mbarrier
[system] tilelang/cuda/language/random.py
rng_init: seed seq=None off=0 generator=...
rng_rand:
rng_rand_float: bit=32 dist='uniform'
[system] tilelang/cuda/language/tir.py
mma_fill: dtype local_size local_ptr offset
ptx_ldmatrix: trans num src_access_ptr dst_access_ptr
ptx_mma_block_scale: accum_dtype shape A_layout B_layout kind scale_vec_size A_dtype B_dtype scale_type
    multiplicand_a a_index multiplicand_b b_index accumulator c_index scale_a scale_b scale_a_byte_id=0
    scale_a_thread_id=0 scale_b_byte_id=0 scale_b_thread_id=0
ptx_mma_sp: dtype shape A_layout B_layout A_dtype B_dtype C_dtype multiplicand_a a_index multiplicand_b b_index
    accumulator c_index metadata meta_index sparse_selector saturate
ptx_tcgen05_mma_blockscaled_ss: kind_dtype desc_a A_offset desc_b B_offset C_ptr C_offset desc_val scale_out sfa_ptr
    sfa_offset sfb_ptr sfb_offset reserved0=0 reserved1=0 enable_2cta=False
ptx_tcgen05_mma_ss: kind_dtype desc_a A_offset desc_b B_offset C_ptr C_offset desc_val scale_out mask0 mask1 mask2
    mask3 enable_ws=False enable_2cta=False ws=None warp_specialized=None variant=None
ptx_tcgen05_mma_ts: kind_dtype A_ptr A_offset desc_b B_offset C_ptr C_offset desc_val scale_out mask0 mask1 mask2
    mask3 enable_2cta=False
ptx_wgmma_rs: dtype wgmma_prefix b_is_k_major a_dtype_abbrv b_dtype_abbrv accum_dtype_abbrv A_buf A_offset B_desc
    B_offset C_data C_offset scale_out scale_in_a scale_in_b
ptx_wgmma_sp_rs: dtype wgmma_prefix b_is_k_major a_dtype_abbrv b_dtype_abbrv accum_dtype_abbrv A_buf A_offset E_buf
    E_offset sparse_selector B_desc B_offset C_data C_offset scale_out scale_in_a scale_in_b
ptx_wgmma_sp_ss: dtype wgmma_prefix a_is_k_major b_is_k_major a_dtype_abbrv b_dtype_abbrv accum_dtype_abbrv A_desc
    A_offset E_data E_offset sparse_selector B_desc B_offset C_data C_offset scale_out scale_in_a scale_in_b
ptx_wgmma_ss: dtype wgmma_prefix a_is_k_major b_is_k_major a_dtype_abbrv b_dtype_abbrv accum_dtype_abbrv A_desc
    A_offset B_desc B_offset C_data C_offset scale_out scale_in_a scale_in_b
[system] tilelang/cuda/language/warpgroup.py
WarpSpecialize ws: *warp_group_idx
WarpSpecializeFrame:
[system] tilelang/language/builtin.py
__ffs: value
__fns: mask base offset
__ldg: load_or_buf index=None
access_ptr: base access_type='r' *extents offset=0 extent=None ignore_last_ndim=0
activemask disable_warp_group_reg_alloc no_set_max_nreg warpgroup_commit_batch:
annotate_consumer_reg_alloc: reg_count=240
annotate_producer_reg_dealloc: reg_count=24
ballot: predicate
create_tma_descriptor tma_load tma_load_2sm: *args
deallocate_tmem: tmem
dec_max_nreg inc_max_nreg: reg_count
get_lane_idx get_warp_idx: warp_size=None
get_warp_group_idx: warp_size=None warps_per_group=None
increase_descriptor_offset: descriptor offset
initialize_tcgen05_descriptor: descriptor start_address leading_byte_offset stride_byte_offset base_offset=0
    leading_is_absolute=False swizzle_mode=0
initialize_wgmma_descriptor: descriptor start_address layout_type_=0 leading_byte_offset=0 stride_byte_offset=0
ldg128 ldg256 ldg32 ldg64: src pred=None
lds128 lds32 lds64: src
ptx_mma_sm70: shape A_layout B_layout A_dtype B_dtype C_dtype multiplicand_a a_index multiplicand_b b_index
    accumulator c_index
set_max_nreg: reg_count is_inc
shfl_down shfl_up shfl_xor: value delta width=32 mask=T.uint32(4294967295)
shuffle_elect: thread_extent
stg128 stg256 stg32 stg64: dst value pred=None
sts128 sts32 sts64: dst value
tcgen05_cp_warpx4: smem_src tmem_dst tmem_col_offset=0 * use_2cta=False
tcgen05_sf_warp_transpose: smem_src
[system] tilelang/language/common.py
import_source: source=None
[system] tilelang/language/eager/builder.py
JITFunc Ref:
annotate_compile_flags: flags
annotate_pass_configs: configs
[system] tilelang/language/tile_schedule.py
BaseTileScheduler PersistentTileScheduler:
[system] tilelang/language/utils.py
index_to_coordinates: index shape
[system] tilelang/language/ws_schedule.py
WSInstr WSOpRef WSPipeline WSRole WSSchedule WSScope WSSync WSSyncKind:
[system] tvm:ir/expr.py
PrimExpr:
[system] tvm:target/codegen.py
llvm_lookup_intrinsic_id: name
[system] tvm:tirx/function.py
PrimFunc:
[system] tvm:tirx/script/builder/external_kernel.py
call_kernel: kernel launch_args *args
[system] tvm:tirx/script/builder/ir.py
Assert: condition message error_kind='RuntimeError'
Else Then axis init meta_var:
If While: condition
Let: expr where
Range: begin end
alloc_buffer allocate: shape dtype='float32' scope='global' annotations=None
arg: name obj
attr: node attr_key value
bind: value type_annotation=None * var=None
block_name_suffix_context: block_suffix
boolean: expr=None is_size_var=False
buffer decl_buffer: shape dtype='float32' data=None strides=None elem_offset=None scope='global' align=0
    offset_factor=0 buffer_type='' axis_separators=None
buffer_decl: *args
buffer_store: buffer value indices predicate=None
buffer_var: dtype storage_scope='global'
comm_reducer: combiner identity
env_thread: thread_tag dtype='int32'
evaluate: value
func_attr sblock_attr: attrs
func_name: name
func_ret: ret_type
handle: dtype=None storage_scope='global' * is_size_var=False
index_map: mapping * inverse_index_map=None index_dtype='int64'
iter_var: v dom iter_type thread_tag
launch_thread: thread extent
let: v value body=None
match_buffer: param shape=None dtype='float32' data=None strides=None elem_offset=None scope='global' align=-1
    offset_factor=0 buffer_type='default' axis_separators=None
reads writes: *buffer_slices
sblock: name='' no_realize=False
sblock_alloc_buffer: shape dtype='float32' data=None strides=None elem_offset=None scope='global' align=-1
    offset_factor=0 buffer_type='default' axis_separators=None
target: target_config host=None
var: dtype name=''
void: expr=None * is_size_var=False
where: predicate
[system] tvm:tirx/script/parser/entry.py
Ptr: dtype storage_scope='global'
[system] types
AnyDType:
""", GPU_MODE, {})
