"""Copies, products, reductions, fills and atomics: operators with buffers as operands."""

from __future__ import annotations

from tl2npu.dialects.gpu.build import GPU_MODE
from tl2npu.dialects.tables import table

OPERATORS = table("""
[atomic] tilelang/language/atomic.py
atomic_add: +dst ?value memory_order=None return_prev=False use_tma=False annotations=None
atomic_addx2 atomic_addx4: +dst ?value return_prev=False
atomic_load: <src memory_order='seq_cst'
atomic_max atomic_min: +dst ?value memory_order=None return_prev=False annotations=None
atomic_or: +dst ?value memory_order=None
atomic_store: +dst <src memory_order='seq_cst'
[copy] tilelang/language/copy_op.py
async_copy: <src >dst * coalesced_width=None annotations=None loop_layout=None
c2d_im2col im2col: <img >col nhw_step c_step kernel stride dilation pad eviction_policy=None annotations=None
copy: <src >dst * coalesced_width=None disable_tma=False eviction_policy=None prefer_instruction=None
    annotations=None loop_layout=None
copy_cluster: <src >dst * dst_block=None cluster_mask=None remote_barrier=None eviction_policy=None
    coalesced_width=None annotations=None loop_layout=None
tma_copy: <src >dst * barrier=None cluster_mask=None leader_scope_threads=None eviction_policy=None annotations=None
tma_gather4: <src >dst col rows * barrier swizzle=None eviction_policy=None annotations=None
tma_gather4_bytes: K_box dtype
tma_scatter4: <src >dst col rows * swizzle=None eviction_policy=None annotations=None
transpose: <src >dst annotations=None
[tile] tilelang/language/customize.py
dp4a: <A <B +C
[gemm] tilelang/language/experimental/gemm_sp_op.py
gemm_sp: A_sparse E <B +C transpose_A=False transpose_E=False transpose_B=False policy=... clear_accum=False
    k_pack=1 wg_wait=0 annotations=None
tcgen05_gemm_sp wgmma_gemm_sp: A_sparse E <B +C transpose_A=False transpose_E=False transpose_B=False policy=...
    clear_accum=False annotations=None
[fill] tilelang/language/fill_op.py
clear: >buffer annotations=None
fill: >buffer value annotations=None
[gemm] tilelang/language/gemm_op.py
gemm: <A <B +C transpose_A=False transpose_B=False policy=... clear_accum=False k_pack=1 mbar=None annotations=None
make_blockscaled_gemm_layout: C A transpose_A=False
mma_gemm_blockscaled: <A <B +C SFA SFB transpose_A=False transpose_B=False policy=... clear_accum=False * k_start
    sf_a_granularity_k sf_b_granularity_k sf_layout=None
tcgen05_gemm tcgen05_mma: <A <B +C transpose_A=False transpose_B=False policy=... clear_accum=False * mbar
    use_2cta=False annotations=None
tcgen05_gemm_blockscaled tcgen05_mma_blockscaled: <A <B +C SFA_tmem SFB_tmem transpose_A=False transpose_B=False
    clear_accum=False wg_wait=0 mbar=None * k_start sf_a_granularity_k sf_b_granularity_k use_2cta=False
wgmma_gemm wgmma_mma: <A <B +C transpose_A=False transpose_B=False policy=... clear_accum=False annotations=None
[reduce] tilelang/language/reduce_op.py
finalize_reducer: ~reducer >dst=None batch=1 annotations=None
reduce: <buffer >out reduce_type dim clear batch=1 nan_propagate=False annotations=None
reduce_absmax reduce_max reduce_min: <buffer >out dim=-1 clear=True batch=1 nan_propagate=False annotations=None
reduce_abssum: <buffer >out dim=-1 batch=1 annotations=None
reduce_bitand reduce_bitor reduce_bitxor reduce_sum: <buffer >out dim=-1 clear=True batch=1 annotations=None
reducer_init: ~reducer init=None
reducer_update: +target value
[reduce] tilelang/language/scan_op.py
cummax cumsum: <src >dst=None dim=0 reverse=False annotations=None
""", GPU_MODE, {})
