"""What has no counterpart on an NPU is refused by name, every reason in one run."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import tl2npu.passes
from tests.passes.gpu.support import IMPORTS, gpu_file, refused, result_of
from tl2npu.codes import CODES
from tl2npu.dialects.gpu import OPERATORS
from tl2npu.dialects.gpu.missing import MISSING
from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.options import Options
from tl2npu.passes.job import Job
from tl2npu.passes.plain.unsupported.refuse import reasons
from tl2npu.source.index import Index

PARAMS = 'A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16")'
LAST = "T.copy(A[0, 0], B[0, 0])"
HANDLED = {
    "eager": "const empty",
    "launches": "Kernel",
    "plain/macros": "Ref macro",
    "plain/hints": """
        GemmWarpPolicy annotate_compile_flags annotate_consumer_reg_alloc annotate_l2_hit_ratio
        annotate_layout annotate_min_blocks_per_sm annotate_pass_configs annotate_producer_reg_dealloc
        annotate_restrict_buffers annotate_safe_value assume dec_max_nreg device_assert
        disable_warp_group_reg_alloc fence_proxy_async func_attr inc_max_nreg no_set_max_nreg pdl_sync
        pdl_trigger print set_max_nreg sync_threads sync_warp use_swizzle Fragment Layout
        """,
    "plain/types": """
        Any AnyDType Buffer FragmentBuffer LocalBuffer PrimExpr SharedBuffer Tensor bfloat16 bool boolean
        dtype float float16 float32 half int int16 int32 int64 int8 long short tfloat32
        uint uint16 uint32 uint64 uint8
        prim_func
        """,
    "plain/symbolic_sizes": "dynamic symbolic",
    "plain/loops": """
        Else If Parallel Persistent Select Serial Then Unroll Vectorized break_loop grid loop_break
        parallel serial unroll vectorized
        """,
    "gpu/local_memory": """
        alloc_global alloc_local alloc_reducer alloc_var finalize_reducer reducer_init
        reducer_update reshape view
        """,
    "gpu/element_copies": "c2d_im2col copy im2col transpose",
    "gpu/atomics": "atomic_add atomic_addx2 atomic_addx4",
    "gpu/memory/homes": "alloc_fragment alloc_shared gemm",
    "gpu/fills": "clear fill",
    "gpu/reductions": """
        cummax cumsum reduce reduce_abssum reduce_absmax reduce_max reduce_min reduce_sum
        """,
    "gpu/elementwise": """
        __cos __exp __exp10 __ffs __fns __log __log10 __log2 __sin __tan Add And BufferLoad Cast Div EQ
        FloatImm FloorDiv FloorMod GE GT IntImm LE LT Max Min Mod Mul NE Not Or SizeVar StringImm Sub Var abs
        acos acosh align_up all_of any_of asin asinh atan atan2 atanh bitwise_and bitwise_not bitwise_or
        bitwise_xor cast cdiv ceil ceildiv clamp clz copysign cos cosh erf exp exp10 exp2 fabs
        fast_rcp floor floordiv floormod fmod ieee_add ieee_fdiv ieee_fmaf ieee_frcp ieee_frsqrt ieee_fsqrt
        ieee_mul ieee_sub if_then_else infinity isfinite isinf isnan likely log log10 log1p log2 max
        max_value min min_value nearbyint popcount pow reinterpret round rsqrt shift_left shift_right sigmoid
        sin sinh sqrt tan tanh trunc truncdiv truncmod
        """,
    "gpu/launch/pipelined": "Pipelined",
    "gpu/launch/grid": "get_block_binding get_block_bindings get_block_extent get_block_extents",
}
"""Module of ``tl2npu.passes`` -> names that it rewrites, keeps where the NPU has the same, or refuses itself."""


def found(text: str) -> list[tuple[str, int]]:
    """Code and line of every reason."""
    index = Index.parse(text)
    file = FileKernels(index)
    (located,) = file.located
    job = Job(index, file, located.key, Options())
    return sorted(((reason.code, job.line(reason.node)) for reason in reasons(job)), key=lambda item: item[1])


def line_of(text: str, part: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if part in line)


def test_every_name_of_the_language_is_handled_or_refused() -> None:
    """By one module, or for one reason."""
    handled = " ".join(HANDLED.values()).split()
    assert [name for name, count in Counter(handled).items() if count > 1] == []
    assert set(handled) & set(MISSING) == set()
    assert set(handled) | set(MISSING) == set(OPERATORS)
    assert len(OPERATORS) == 703


def test_every_refusal_has_a_code() -> None:
    assert {code for code, _ in MISSING.values()} <= set(CODES)


@pytest.mark.parametrize("module", HANDLED)
def test_what_is_handled_is_handled_by_a_pass(module: str) -> None:
    directory = Path(tl2npu.passes.__path__[0])
    assert (directory / f"{module}.py").is_file() or (directory / module).is_dir()


CONSTRUCTS = [
    ("TL180", "T.tcgen05_sf_warp_transpose(s)"),
    ("TL181", "T.ptx_ldmatrix('float16', 4, '.b16', s.data, 0, s.data, 0)"),
    ("TL182", "T.tma_scatter4(s, B, 0, [0, 1, 2, 3])"),
    ("TL182", "T.ptx_wait_barrier(0)"),
    ("TL183", "T.annotate_ws_schedule(s)"),
    ("TL184", "tx = T.get_warp_idx()"),
    ("TL184", "for tx in T.thread_binding(32, thread='threadIdx.x'):\n    s[0, tx] = 0"),
    ("TL184", "v = T.shfl_xor(s[0, 0], 1)"),
    ("TL185", "T.call_extern('handle', 'decode', s)"),
    ("TL185", "T.import_source('__device__ int f();')"),
    ("TL186", "r = T.block_rank_in_cluster()"),
    ("TL187", "T.sync_global()"),
    ("TL188", "T.rng_init(5)"),
    ("TL189", "T.gemm_sp(s, s, s, s)"),
    ("TL191", "f = T.alloc_shared((64, 64), T.float8_e4m3fn)"),
    ("TL191", "f = T.alloc_shared((64, 64), 'e4m3_float8')"),
    ("TL191", "f = T.alloc_fragment((64, 64), 'float4_e2m1fn')"),
    ("TL191", "f = T.alloc_local((1,), T.float32x4)"),
    ("TL191", "f = T.alloc_local((1,), 'float32x4')"),
    ("TL191", "s[0, 0] = T.cast(A[0, 0], T.float4_e2m1fn)"),
    ("TL192", "T.atomic_max(B[0, 0], s[0, 0])"),
    ("TL193", "p = T.address_of(s[0, 0])"),
    ("TL193", "p = s.data + T.access_ptr(s, 'r')"),
    ("TL194", "T.evaluate(0)"),
    ("TL196", "T.dp4a(s, s, s)"),
    ("TL196", "v = T.hypot(s[0, 0], s[0, 1])"),
]


@pytest.mark.parametrize(("code", "statement"), CONSTRUCTS, ids=[f"{c}-{i}" for i, (c, _) in enumerate(CONSTRUCTS)])
def test_each_construct_is_refused_with_its_line(code: str, statement: str) -> None:
    text = gpu_file(PARAMS, f"s = T.alloc_shared((64, 64), 'float16')\n{statement}\n{LAST}")
    where = line_of(text, statement.splitlines()[0])
    assert found(text) == [(code, where)]
    assert refused(text) == [(code, where)]


@pytest.mark.parametrize(
    ("head", "name"),
    [
        ("import tilelang\nimport tilelang.language as tl\nimport tilelang.language as T\n\n", "tl.sync_grid"),
        ("import tilelang\nimport tilelang.language as T\nfrom tilelang.language import sync_grid\n\n", "sync_grid"),
        ("import tilelang\nimport tilelang.language as T\n\nbarrier = T.sync_grid\n\n", "barrier"),
    ],
)
def test_spelling_does_not_matter(head: str, name: str) -> None:
    assert [code for code, _ in found(gpu_file(PARAMS, f"{name}()", head=head))] == ["TL187"]


def test_names_of_the_file_itself_are_left_alone() -> None:
    head = "import tilelang\nimport tilelang.language as T\n\n\ndef sync_grid():\n    return 1\n\n\n"
    assert found(gpu_file(PARAMS, f"n = sync_grid()\n{LAST}", head=head)) == []


def test_macros_and_helpers_are_searched() -> None:
    factory = """
        @T.macro
        def load(dst):
            step(dst)

        def step(dst):
            T.copy(A, dst)
            T.atomic_min(dst[0, 0], 1)
        """
    text = gpu_file(PARAMS, "s = T.alloc_shared((64, 64), 'float16')\nload(s)", factory=factory)
    assert found(text) == [("TL192", line_of(text, "atomic_min"))]


def test_helpers_that_the_kernel_does_not_call_are_not_searched() -> None:
    factory = """
        @T.macro
        def unused(dst):
            T.atomic_min(dst[0, 0], 1)
        """
    assert found(gpu_file(PARAMS, LAST, factory=factory)) == []


def test_what_the_factory_makes_for_the_kernel_is_searched() -> None:
    head = IMPORTS.strip() + "\nfrom tilelang.intrinsics import TensorCoreIntrinEmitter\n\n\n"
    factory = "emitter = TensorCoreIntrinEmitter(a_dtype='float16', chunk=32)\nother = 3"
    text = gpu_file(PARAMS, "emitter.mma(1, 2, 3)", factory=factory, head=head)
    assert found(text) == [("TL181", line_of(text, "emitter = "))]


def test_the_launch_is_searched() -> None:
    text = gpu_file(PARAMS, LAST, launch="T.Kernel(2, threads=128, prelude='#include <x>') as bx")
    assert found(text) == [("TL185", line_of(text, "prelude"))]
    assert found(gpu_file(PARAMS, LAST, launch="T.Kernel(2, threads=128, prelude=None) as bx")) == []
    text = gpu_file(PARAMS, LAST, launch="T.ClusterKernel(2, cluster_dims=(2, 1, 1), threads=128) as bx")
    assert [code for code, _ in found(text)] == ["TL186"]


def test_every_reason_is_told_once() -> None:
    body = """
        bar = T.alloc_barrier(128)
        tx = T.get_thread_binding()
        T.barrier_wait(bar, 0)
        T.barrier_arrive(bar)
        ty = T.get_thread_binding(1)
        """
    text = gpu_file(PARAMS, body)
    result = result_of(text)
    errors = [d for d in result.diagnostics if d.severity == "error"]
    assert [(d.code, d.line) for d in errors] == [
        ("TL182", line_of(text, "alloc_barrier")),
        ("TL184", line_of(text, "tx =")),
    ]
    assert errors[0].message.endswith("T.alloc_barrier, T.barrier_wait, T.barrier_arrive")
    assert errors[1].message.endswith("T.get_thread_binding")
    assert "T.copy" in errors[0].help
    assert [kernel.disposition for kernel in result.kernels] == ["refused"]


def test_layout_hints_may_name_anything() -> None:
    head = IMPORTS.strip() + "\nfrom tilelang.intrinsics import make_mma_swizzle_layout as swizzle\n\n\n"
    body = f"s = T.alloc_shared((64, 64), 'float16')\nT.annotate_layout({{s: swizzle(s)}})\n{LAST}"
    assert found(gpu_file(PARAMS, body, head=head)) == []


def test_questions_about_types_are_no_use_of_them() -> None:
    body = f"if dtype == T.float8_e4m3fn or dtype in (T.int4, T.float64):\n    pass\n{LAST}"
    assert found(gpu_file(PARAMS, body, args='dtype="float16"')) == []


@pytest.mark.parametrize(
    ("args", "call", "codes"),
    [
        ("dtype=T.float8_e4m3fn", "", ["TL191"]),
        ('dtype="float8_e5m2"', "", ["TL191"]),
        ("dtype='float16'", "", []),
        ("dtype", "factory(T.float8_e4m3fn)", ["TL191"]),
        ("dtype", "factory(dtype='float8_e4m3')", ["TL191"]),
        ("dtype", "factory(T.float8_e4m3fn)\nfactory(T.float16)", []),
        ("n, dtype", "factory(3, T.float4_e2m1fn)", ["TL191"]),
        ("dtype", "", []),
    ],
)
def test_types_that_callers_choose(args: str, call: str, codes: list[str]) -> None:
    text = gpu_file("A: T.Tensor((64, 64), dtype)", "T.copy(A[0, 0], A[0, 0])", args=args) + f"\n\n{call}\n"
    assert [code for code, _ in found(text)] == codes


HELPERS = """
from tilelang.language.fp8 import determine_fp8_type
from elsewhere import some_type

TABLE = {"low": T.float8_e4m3fn, "high": "float8_e5m2"}
FITTING = {"low": T.float8_e4m3fn, "high": T.float16}


def eight_bits(low=True):
    kind = "e4m3"
    if low:
        return T.float8_e4m3fn
    return TABLE["high"]


def same(dtype, n=1):
    return dtype


"""


@pytest.mark.parametrize(
    ("chosen", "codes"),
    [
        ("determine_fp8_type()", ["TL191"]),
        ("eight_bits(flag)", ["TL191"]),
        ("same(eight_bits())", ["TL191"]),
        ("same(n=2, dtype=T.float16)", []),
        ("same(n=2, dtype='float8_e5m2')", ["TL191"]),
        ("TABLE[flag]", ["TL191"]),
        ("TABLE.get(flag, 'float8_e5m2')", ["TL191"]),
        ("FITTING[flag]", []),
        ("T.float8_e4m3fn if flag else T.float8_e5m2", ["TL191"]),
        ("some_type()", []),
        ("flag", []),
    ],
)
def test_types_that_host_functions_choose(chosen: str, codes: list[str]) -> None:
    for params, factory in (("dtype", f"dtype = {chosen}"), (chosen, "")):
        text = gpu_file(f"A: T.Tensor((64, 64), {params})", "T.copy(A[0, 0], A[0, 0])", args="flag", factory=factory)
        assert [code for code, _ in found(text.replace("\n\n\n", HELPERS, 1))] == codes


@pytest.mark.parametrize(("chosen", "said"), [("some_type()", True), ("eight_bits(flag)", False), ("flag", False)])
def test_a_type_that_the_file_does_not_show_is_said(chosen: str, said: bool) -> None:
    body = "s = T.alloc_shared((64, 64), dtype)\nT.copy(A[0, 0], s)\nT.copy(s, A[0, 0])"
    text = gpu_file("A: T.Tensor((64, 64), dtype)", body, args="flag", factory=f"dtype = {chosen}")
    result = result_of(text.replace("\n\n\n", HELPERS, 1))
    told = [(d.severity, d.message) for d in result.diagnostics if d.severity == "warning"]
    message = "cannot tell the element type of `A`: this file does not show what `some_type()` returns"
    assert told == ([("warning", message)] if said else [])


@pytest.mark.parametrize(
    ("extent", "codes"),
    [("M", ["TL195"]), ("M // 2", ["TL195"]), ("n", ["TL195"]), ("bx + 1", ["TL195"]), ("block", []), ("64", [])],
)
def test_tiles_with_late_extents(extent: str, codes: list[str]) -> None:
    body = f"s = T.alloc_shared(({extent}, 64), 'float16')\nT.copy(A[0, 0], s)"
    params = 'A: T.Tensor((M, 64), "float16"), n: T.int32'
    assert [c for c, _ in found(gpu_file(params, body, args="block", factory='M = T.dynamic("m")'))] == codes
    assert [c for c, _ in found(gpu_file(params, body, args="block", factory='M, K = T.dynamic("m, k")'))] == codes


@pytest.mark.parametrize("made", ["T.reshape(a, (16, 8))", "T.view(a, shape=(16, 8))"])
def test_a_second_name_of_a_tile_hides_which_core_reaches_it(made: str) -> None:
    body = f"""
        a = T.alloc_shared((128,), "float32")
        for i in range(128):
            a[i] = A[i]
        b = {made}
        for i in range(16):
            for j in range(8):
                B[i, j] = b[i, j]
    """
    text = gpu_file('A: T.Tensor((128,), "float32"), B: T.Tensor((16, 8), "float32")', body)
    assert [code for code, _ in refused(text)] == ["TL903"]
