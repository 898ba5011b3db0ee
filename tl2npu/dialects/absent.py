"""What the packages of GPU TileLang have and those of TileLang for the NPU lack, beside the operators.

Modules and names together, each by its full name. Names that a kernel's file imports or evaluates, not those that only
the compiler's own sources use. Source: tile-ai/tilelang at a35008a42, every name asked of the packages of
tile-ai/tilelang-ascend at 95acbd7f and of its branch npuir at bd7c60c3.
"""

from __future__ import annotations

from collections.abc import Iterator


def _names(table: str) -> Iterator[str]:
    """``package: name name`` in each line."""
    for line in filter(None, map(str.strip, table.splitlines())):
        package, _, names = line.partition(": ")
        yield from (f"{package}.{name}" for name in names.split())


ABSENT = frozenset(
    _names(
        """
        tilelang: analysis autodd backend cpu cuda dtypes errors instrumentation ir metal rocm tileop webgpu
        tilelang: par_compile register_c_postproc
        tilelang.autotuner: grouped_compile
        tilelang.cache: cuda_binary_cache CuTeDSLKernelCache CythonKernelCache NVRTCKernelCache TVMFFIKernelCache
        tilelang.cache: TorchKernelCache
        tilelang.carver: RDNA
        tilelang.contrib: cutedsl hip_resource_info msvc nvrtc
        tilelang.engine: register_c_postproc semantic_check
        tilelang.jit: JITFunc JITImpl par_compile prim_func abi diagnostics exceptions
        tilelang.jit.adapter: cutedsl kernel_cache nvrtc torch
        tilelang.language: atomic common copy_op dtypes eager experimental fastmath fill_op fp8 gemm_op loop
        tilelang.language: math_intrinsics meta reduce_op scan_op symbolics tile_schedule utils ws_schedule
        tilelang.layout: SwizzleMode cute gemm_sp swizzle_mode make_cutlass_metadata_layout
        tilelang.layout: make_full_bank_swizzled_layout make_half_bank_swizzled_layout make_quarter_bank_swizzled_layout
        tilelang.layout: make_fully_replicated_layout_fragment make_gemm_fragment_8x8 make_gemm_fragment_8x8_transposed
        tilelang.layout: make_linear_layout make_tcgen05mma_swizzled_layout make_volta_swizzled_layout
        tilelang.layout: make_wgmma_swizzled_layout
        tilelang.profiler: is_float8_dtype
        tilelang.testing: perf_regression process_func regression requires_cdna requires_cuda_or_cdna requires_gfx950
        tilelang.testing: requires_cuda_compute_version_le requires_cuda_compute_version_lt
        tilelang.tools: cuda lower_trace pass_timing pass_visualizer
        tilelang.utils: device pass_diff pass_diff_hook version get_buffer_region_from_load get_prim_func_name
        tilelang.utils: is_full_region is_tensor_memory retrieve_shape retrieve_stride to_buffer_region
        tilelang.utils: retrive_ptr_from_buffer_region side_effect
        """
    )
)
"""Neither branch has these."""

ABSENT_NPUIR = ABSENT | set(
    _names(
        """
        tilelang: JITKernel
        tilelang.autotuner: capture get_autotune_inputs set_autotune_inputs
        tilelang.cache: cached
        tilelang.carver: CDNA CUDA arch
        tilelang.jit: JITKernel cached
        tilelang.profiler: do_bench
        """
    )
)
"""Branch npuir does not have these."""
