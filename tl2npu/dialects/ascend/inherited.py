"""What the name space inherits from TVM and from the GPU language, section by section as the page has it."""

from __future__ import annotations

from tl2npu.dialects.tables import sections

_TENSOR = (
    "shape dtype='float32' <data=None strides=None elem_offset=None scope={scope} align={zero} offset_factor={zero}"
    " buffer_type='' axis_separators=None"
)
_PARAMETER, _OLD = _TENSOR.format(scope=None, zero=None), _TENSOR.format(scope="'global'", zero=0)

_INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
_ELEMENTS = (*_INTEGERS, "float16", "float32", "float64", "e4m3_float8", "e5m2_float8")
_VECTORS = tuple(f"{name}{lanes}" for lanes in ("x4", "x8", "x16", "x32", "x64") for name in _ELEMENTS)

SECTIONS = sections(f"""
## expressions
Operators inside expressions: what ``T.ceildiv``, ``T.exp``, ``T.Select`` and their like take.

``T.Parallel`` has vector instructions for exp, log, sqrt, rsqrt and abs of a plain load, and for the operators of the
arithmetic nodes (``src/transform/ascend_lower_parallel_to_vector.cc:38-42, 70-114``); elsewhere the compiler leaves a
mathematical function unresolved (facts 3: g3_expdiff, g3_exp2, g3_log2, g3_tanh, g3_sigm).

[scalar plain] tilelang/language/tir/op.py
exp log sqrt rsqrt: x # in T.Parallel only alone on a plain load: t = expression; y = function(t)
abs fabs: x span=None # in T.Parallel only alone on a plain load: t = expression; y = function(t)
[scalar nowhere plain] tilelang/language/tir/op.py
exp2 log2 tanh sigmoid: x # rejected by the Ascend compiler: an unresolved call
[scalar nowhere plain] tilelang/language/tir/op.py # no vector instruction in T.Parallel; never tried, taken for
    unresolved as its measured neighbours are
exp10 erf log10 log1p tan cos cosh acos acosh sin sinh asin asinh atan atanh: x
atan2 nextafter hypot copysign ldexp: x1 x2
floor ceil trunc round nearbyint: x span=None
pow: x y span=None
fmod: x y
clz popcount: x
[scalar plain] tilelang/language/tir/op.py
bitwise_and bitwise_or bitwise_xor shift_left shift_right: x y span=None
bitwise_not: x span=None
truncdiv truncmod floordiv floormod: a b span=None
ceildiv: lhs rhs span=None
infinity min_value max_value: dtype span=None
likely: cond span=None
isnan isinf isfinite isnullptr: x span=None
reinterpret: dtype value span=None
if_then_else: cond t f span=None # in T.Parallel the generated source does not compile: use an if statement, or
    compare and select
[scalar plain] tvm:script/ir_builder/tir/ir.py
min max: a b # in T.Parallel with a constant other than 0.0 use tile.max or tile.min
[scalar plain] tvm:tir/expr.py
Select: condition true_value false_value span=None # in T.Parallel the generated source does not compile: use an if
    statement, or compare and select
[scalar plain] tvm:topi/math.py
cast: x dtype span=None
[scalar plain] tvm:tir/expr.py
Cast: dtype value span=None
Add Sub Mul Div Mod FloorDiv FloorMod Min Max EQ NE LT LE GT GE And Or: a b span=None
Not: a span=None
IntImm FloatImm: dtype value span=None
StringImm: value span=None
Var SizeVar: name dtype span=None
BufferLoad: buffer indices span=None
[scalar plain] tilelang/language/__init__.py
symbolic: name dtype='int32' # an extent known at the call only
[scalar plain] tvm:script/ir_builder/tir/ir.py
boolean bool: expr=None is_size_var=False
handle: dtype=None storage_scope='global' * is_size_var=False
void: expr=None * is_size_var=False
Range: begin end
[scalar plain] tilelang/language/proxy.py
ptr: dtype=None storage_scope='global' * is_size_var=False

## types
Types: tensors as parameters, and the data types, which convert when called.

[type] tilelang/language/proxy.py
Tensor: {_PARAMETER} # a tensor in global memory, as a parameter's annotation
Buffer: {_OLD} # the old name of Tensor; in this version hidden by TVM's own class
[type nowhere] tilelang/language/proxy.py
FragmentBuffer: {_PARAMETER} # GPU only: scope local.fragment
SharedBuffer: {_PARAMETER} # GPU only: scope shared.dyn
LocalBuffer: {_PARAMETER} # GPU only: scope local
[system] tilelang/language/proxy.py
make_tensor: ptr shape dtype='float32' # a tensor at an address
[scalar] tvm:script/ir_builder/tir/ir.py # a data type; called, it converts an expression
{" ".join(_ELEMENTS)}: expr=None * is_size_var=False
[scalar nowhere] tvm:script/ir_builder/tir/ir.py # a data type; called, it converts an expression
{" ".join(_VECTORS)}: expr=None * is_size_var=False

## script
What the name space inherits from TVM script: control flow in the builder's form, declarations, external calls.

Rare in kernels, all of it opaque to the passes of this program.

[system both plain] tvm:script/ir_builder/tir/ir.py # TVM script in the builder's form
If While: condition
Then Else:
Assert: condition message
LetStmt: value type_annotation=None * var=None
Let: expr where
let: v value body=None
evaluate: value
buffer_store: buffer value indices
[system nowhere plain] tilelang/language/frame.py
has_let_value get_let_value: var # what a name of the script is bound to, while the script is built
[system plain] tvm:script/ir_builder/tir/ir.py # declares a buffer
buffer decl_buffer: shape dtype='float32' data=None strides=None elem_offset=None scope='global' align=0
    offset_factor=0 buffer_type='' axis_separators=None
match_buffer: param shape=None dtype='float32' data=None strides=None elem_offset=None scope='global' align=-1
    offset_factor=0 buffer_type='default' axis_separators=None
buffer_decl: *args
[system by-operands expert plain] tilelang/language/tir/op.py
call_intrin call_extern call_pure_extern: dtype func_name *args span=None # a call past the language; call_extern
    without a result is silently dropped
call_llvm_intrin call_llvm_pure_intrin: dtype name *args span=None # a call past the language; call_extern without a
    result is silently dropped
[system nowhere plain] tvm:script/ir_builder/tir/ir.py # TVM script below the language
block: name='' no_realize=False
init:
where: predicate
arg: name obj
realize: buffer_slice storage_scope condition=True
allocate: extents dtype scope='global' condition=None annotations=None
allocate_const: data dtype extents annotations=None
launch_thread: thread extent
env_thread: thread_tag dtype='int32'
prefetch: buffer bounds
customized_code: code
var: dtype name=''
buffer_var: dtype storage_scope='global'
iter_var: v dom iter_type thread_tag
comm_reducer: combiner identity
index_map: mapping * inverse_index_map=None
target: target_config host=None
meta_var: value

## gpu
Names that exist because the Ascend language grew out of the GPU one; none may remain in an Ascend kernel.

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
