"""Allocation, launch, loops, annotations, synchronisation, types."""

from __future__ import annotations

from tl2npu.dialects.gpu.build import GPU_MODE
from tl2npu.dialects.tables import table

OPERATORS = table("""
[sync] tilelang/cuda/language/cluster.py
cluster_arrive cluster_arrive_relaxed cluster_sync cluster_wait:
[sync] tilelang/cuda/language/pdl.py
pdl_sync pdl_trigger:
[debug] tilelang/cuda/language/print.py
print: obj=None msg='' warp_group_id=0 warp_id=0
[sync] tilelang/cuda/language/tir.py
ptx_fence_barrier_init:
[alloc] tilelang/language/allocate.py
alloc_barrier alloc_cluster_barrier: arrive_count
alloc_descriptor: kind='wgmma' dtype=dtype('uint64')
[alloc memory=fragment] tilelang/language/allocate.py
alloc_fragment: shape dtype scope='local.fragment'
[alloc] tilelang/language/allocate.py
alloc_global: shape dtype scope='global'
[alloc memory=fragment] tilelang/language/allocate.py
alloc_local: shape dtype scope='local'
alloc_reducer: shape dtype op='sum' replication=None
[alloc memory=shared] tilelang/language/allocate.py
alloc_shared: shape dtype scope='shared.dyn'
[alloc] tilelang/language/allocate.py
alloc_tcgen05_instr_desc alloc_tcgen05_instruction_desc: dtype=dtype('uint32')
alloc_tcgen05_smem_desc alloc_wgmma_desc: dtype=dtype('uint64')
alloc_tmem: shape dtype
[alloc memory=var] tilelang/language/allocate.py
alloc_var: dtype *args scope='local.var' init=None
[alloc] tilelang/language/allocate.py
empty: *shape dtype=dtype('float32')
[annotation] tilelang/language/annotations.py
annotate_l2_hit_ratio: l2_hit_ratio_map
annotate_layout: layout_map
annotate_min_blocks_per_sm: n
annotate_restrict_buffers: *buffers
annotate_safe_value: safe_value_map
annotate_ws_schedule: schedule
use_swizzle: panel_size order='row' enable=True
ws_op: op_id
[sync] tilelang/language/builtin.py
all_sync any_sync ballot_sync: predicate mask=T.uint32(4294967295)
barrier_arrive: mbarrier
barrier_wait mbarrier_wait_parity: mbarrier parity
cp_async_barrier_noinc: barrier
fence_proxy_async sync_global sync_grid tcgen05_after_thread_sync tcgen05_before_thread_sync tma_store_arrive
    warpgroup_arrive:
get_warp_idx_sync: warp_size=None
match_all_sync match_any_sync: value mask=T.uint32(4294967295)
mbarrier_arrive: mbarrier cta_id=None
mbarrier_arrive_expect_tx mbarrier_expect_tx: mbarrier tx
named_barrier_arrive: barrier_id thread_count
ptx_arrive_cluster_barrier: mbarrier cta_id
shfl_sync: value srcLane width=32 mask=T.uint32(4294967295)
sync_threads: barrier_id=None arrive_count=None
sync_warp: mask=None
syncthreads_and syncthreads_count syncthreads_or: predicate
tcgen05_mma_arrive: mbar arrive_2cta=False
tma_store_wait: count=0 read=True
wait_wgmma: id
warpgroup_fence_operand: buffer_or_ptr offset=0 num_regs=None dtype=None
warpgroup_wait: num_mma
[loop] tilelang/language/customize.py
loop_break:
[annotation] tilelang/language/customize.py
reshape: src shape
view: src shape=None dtype=None
[type] tilelang/language/dtypes.py
get_tvm_dtype is_f8f6f4_family is_float4 is_float4_e2m1_unpacked is_float4_e2m1fn validate_gemm_ab_dtypes:
[debug] tilelang/language/eager/builder.py
device_assert: *args
[decorator] tilelang/language/eager/builder.py
macro: func=None
prim_func: func=None * eager_jit=False
[launch] tilelang/language/kernel.py
CUDASourceCodeKernel: *blocks threads=None source_code_or_path entry_name='main_kernel' cluster_dims=None
    prelude=None
ClusterKernel: *blocks cluster_dims threads=None prelude=None
Kernel: *blocks threads=None prelude=None
KernelLaunchFrame get_block_bindings get_block_extents get_thread_bindings get_thread_extents:
get_block_binding get_block_extent get_thread_binding get_thread_extent: dim=0
[loop] tilelang/language/loop.py
Parallel: *extents coalesced_width=None loop_layout=None prefer_async=None annotations=None
Persistent: domain wave_size index group_size=8
Pipelined: start stop=None num_stages=0 order=None stage=None sync=None group=None annotations=None
Serial serial: start stop=None step=None * annotations=None
Unroll unroll: start stop=None step=None * explicit=False unroll_factor=None annotations=None
Vectorized vectorized: start stop=None * annotations=None
[decorator] tilelang/language/meta.py
inline: func
meta_class: cls
[type] tilelang/language/proxy.py
Buffer FragmentBuffer LocalBuffer SharedBuffer StridedTensor Tensor make_tensor make_tensor_from_addr ptr:
[loop] tilelang/language/tir/ir.py
Select: condition true_value false_value span=None
align_up: x y
cast: value dtype round='' sat=True rbits=None span=None
grid: *extents
max min: a b
parallel: start stop=None * annotations=None
thread_binding: start stop=None thread=None * annotations=None
[type] tilelang/layout/fragment.py
Fragment:
[type] tilelang/layout/layout.py
Layout:
[type] tilelang/tileop/base.py
GemmWarpPolicy:
[type] tvm_ffi:_dtype.py
bfloat16 bool double dtype float float16 float32 float4_e2m1_unpacked float4_e2m1fn float64 float6_e2m3fn
    float6_e3m2fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2
    float8_e5m2fnuz float8_e8m0fnu half int int16 int32 int4 int64 int8 long short tfloat32 uint uint16 uint32
    uint64 uint8:
[type] typing
Any:
""", GPU_MODE, {})
