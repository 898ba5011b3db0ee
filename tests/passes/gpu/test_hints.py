"""Hints for the GPU compiler go, together with what only served them."""

from __future__ import annotations

import pytest

from tests.passes.gpu.one_pass import after
from tests.passes.gpu.support import IMPORTS, gpu_file, migrated
from tl2npu.kernel.blocked import Blocked
from tl2npu.passes.plain.hints import profiling
from tl2npu.passes.plain.hints.drop import drop

PARAMS = "A: T.Tensor((64, 64), 'float16'), B: T.Tensor((64, 64), 'float16'), C: T.Tensor((64, 64), 'float32')"
BODY = """
a = T.alloc_shared((64, 64), "float16")
b = T.alloc_shared((64, 64), "float16")
c = T.alloc_fragment((64, 64), "float32")
T.clear(c)
for k in T.Pipelined(1, num_stages=2):
    T.copy(A[0, k * 64], a)
    T.copy(B[k * 64, 0], b)
    T.gemm(a, b, c)
T.copy(c, C)
"""


def with_line(line: str, before: str = "T.clear(c)") -> str:
    return BODY.replace(before, f"{line}\n{before}")


@pytest.mark.parametrize(
    "line",
    [
        "T.use_swizzle(panel_size=10, enable=True)",
        "T.use_swizzle(10)",
        "T.use_swizzle(panel_size=4, num_xcds=8)",
        "T.annotate_layout({a: T.Layout((64, 64), lambda i, j: (i, j)), c: T.Fragment((64, 64), f)})",
        "T.annotate_l2_hit_ratio({A: 0.8})",
        "T.annotate_safe_value({A: 0.0, B: 0})",
        "T.annotate_restrict_buffers(A, B)",
        "T.annotate_min_blocks_per_sm(2)",
        "T.assume(bx < 1)",
        "T.device_assert(bx < 2, 'two blocks')",
        "T.no_set_max_nreg()",
        "T.disable_warp_group_reg_alloc()",
        "T.sync_threads()",
        "T.sync_warp()",
        "T.fence_proxy_async()",
        "T.func_attr({'tir.noalias': True, 'tl.copy_vectorize': 4})",
        "T.pdl_sync()",
        "T.inc_max_nreg(240)",
        "T.dec_max_nreg(24)",
        "T.annotate_producer_reg_dealloc(24)",
        "T.annotate_consumer_reg_alloc(240)",
        "T.annotate_compile_flags(['-O3'])",
        "T.annotate_pass_configs({'tl.disable_tma_lower': True})",
        "T.print(c, msg='sum')",
        "if True:\n    T.use_swizzle(10)",
        "if flag:\n    if bx == 0:\n        T.print(c)\n        T.assume(bx < 1)",
    ],
)
def test_statements(line: str) -> None:
    args = "flag=True, f=None"
    assert after(drop, gpu_file(PARAMS, with_line(line), args=args)) == gpu_file(PARAMS, BODY, args=args)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("T.gemm(a, b, c, policy=T.GemmWarpPolicy.FullRow)", "T.gemm(a, b, c)"),
        ("T.gemm(a, b, c, transpose_B=True, k_pack=2)", "T.gemm(a, b, c, transpose_B=True)"),
        ("T.gemm(a, b, c, wg_wait=-1, clear_accum=True)", "T.gemm(a, b, c, clear_accum=True)"),
        ("T.gemm_v2(a, b, c, transpose_B=True, k_pack=2)", "T.gemm_v2(a, b, c, transpose_B=True)"),
        ("T.gemm_v1(a, b, c, wg_wait=-1)", "T.gemm_v1(a, b, c)"),
    ],
)
def test_arguments_of_gemm(old: str, new: str) -> None:
    plain = "T.gemm(a, b, c)"
    text = gpu_file(PARAMS, BODY.replace(plain, old))
    assert after(drop, text) == gpu_file(PARAMS, BODY.replace(plain, new))


def test_arguments_of_copies_loops_reductions_and_buffers() -> None:
    body = """
    a = T.alloc_shared((64, 64), "float16", scope="shared")
    m = T.alloc_fragment([64], "float32")
    T.copy(A, a, coalesced_width=2, disable_tma=True)
    for k in T.Pipelined(4, num_stages=2, order=[0, 1], stage=[0, 0], group=[[0], [1]]):
        for i, j in T.Parallel(64, 64, coalesced_width=8, prefer_async=True):
            a[i, j] += 1
    for i in T.serial(64, annotations={"x": 1}):
        a[i, 0] = 0
    T.reduce_max(a, m, dim=1, clear=False, batch=4, nan_propagate=False)
    T.clear(m, annotations={})
    """
    expected = """
    a = T.alloc_shared((64, 64), "float16")
    m = T.alloc_fragment([64], "float32")
    T.copy(A, a)
    for k in T.Pipelined(4, num_stages=2):
        for i, j in T.Parallel(64, 64):
            a[i, j] += 1
    for i in T.serial(64):
        a[i, 0] = 0
    T.reduce_max(a, m, dim=1, clear=False)
    T.clear(m)
    """
    assert after(drop, gpu_file(PARAMS, body)) == gpu_file(PARAMS, expected)


def test_what_only_served_a_hint_goes_too() -> None:
    imports = "import tilelang\nimport tilelang.language as T\n"
    made = (
        "from tilelang.layout import make_swizzled_layout\n\n\n"
        "def make_layout(buffer):\n    return T.Layout(buffer.shape, lambda i, j: (j, i))\n\n\n"
    )
    lines = "inner = make_swizzled_layout(a)\nT.annotate_layout({a: inner, b: make_layout(b)})"
    old = gpu_file(
        PARAMS,
        with_line(lines).replace("T.gemm(a, b, c)", "T.gemm(a, b, c, policy=policy)"),
        factory="policy = T.GemmWarpPolicy.FullRow\nunused = 3",
        head=imports + made,
    )
    assert after(drop, old) == gpu_file(PARAMS, BODY, factory="unused = 3", head=imports + "\n\n")


def test_what_others_use_stays() -> None:
    made = "import tilelang\nimport tilelang.language as T\n\nPOLICY = T.GemmWarpPolicy.FullRow\nprint(POLICY)\n\n\n"
    old = gpu_file(PARAMS, BODY.replace("T.gemm(a, b, c)", "T.gemm(a, b, c, policy=POLICY)"), head=made)
    assert after(drop, old) == gpu_file(PARAMS, BODY, head=made)


def test_a_hint_under_a_condition_with_work_leaves_the_work() -> None:
    body = with_line("if bx == 0:\n    T.print(c)\n    T.copy(A, a)")
    expected = with_line("if bx == 0:\n    T.copy(A, a)")
    assert after(drop, gpu_file(PARAMS, body)) == gpu_file(PARAMS, expected)


@pytest.mark.parametrize(
    "line",
    [
        "T.annotate_layout({C: T.Layout((64, 64), lambda i, j: (j, i))})",
        "T.annotate_layout(layouts)",
        "T.annotate_safe_value({A: -T.infinity('float16')})",
        "T.annotate_safe_value({A: 1.0})",
    ],
)
def test_refused(line: str) -> None:
    with pytest.raises(Blocked) as caught:
        after(drop, gpu_file(PARAMS, with_line(line), args="layouts=None"))
    assert caught.value.code == "TL116"


@pytest.mark.parametrize("line", ["T.sync_threads(3, 64)", "T.sync_threads(3, arrive_count=n)"])
def test_barriers_of_some_threads_are_no_hints(line: str) -> None:
    text = gpu_file(PARAMS, with_line(line), args="n")
    assert after(drop, text) == text


@pytest.mark.parametrize("line", ["T.sync_threads(3, 128)", "T.sync_threads(2)", "T.sync_threads(2, arrive_count=128)"])
def test_barriers_of_all_threads_by_number(line: str) -> None:
    plain = after(drop, gpu_file(PARAMS, with_line("T.sync_threads()")))
    assert after(drop, gpu_file(PARAMS, with_line(line))) == plain


MARKS = """\
a = T.alloc_fragment((64, 64), "float16")
{0}mark("begin", payload={0}payload(bx, dtype="int32"))
number = {0}payload(bx)
with {0}range("work"):
    T.copy(A[0, 0], a)
    with {0}range("inner"), {0}range("twice", payload=number):
        # the only copy
        T.copy(a, C)
    {0}range_push("rest")
    {0}range_pop("rest")
"""
HALVES = "A: T.Tensor((64, 64), 'float16'), C: T.Tensor((64, 64), 'float16')"


@pytest.mark.parametrize(
    ("head", "prefix"),
    [
        ("from tilelang.tools.cuda import iket\n", "iket."),
        ("from tilelang.tools.cuda.iket import mark, payload, range, range_pop, range_push\n", ""),
    ],
)
@pytest.mark.parametrize("around", ["", ", {0}range('all')"])
def test_events_of_a_profiler(head: str, prefix: str, around: str) -> None:
    launch = "T.Kernel(2, threads=128) as bx"
    text = gpu_file(HALVES, MARKS.format(prefix), launch=launch + around.format(prefix), head=head + IMPORTS)
    alloc, _, _ = MARKS.partition("\n")
    plain = gpu_file(HALVES, f"{alloc}\nT.copy(A[0, 0], a)\n# the only copy\nT.copy(a, C)")
    assert after(profiling.drop, text) == plain
    assert migrated(text) == migrated(plain)


def test_a_range_with_a_name_stays() -> None:
    head = "from tilelang.tools.cuda import iket\n" + IMPORTS
    text = gpu_file(PARAMS, "with iket.range('x') as r:\n    use(r)", head=head)
    assert after(profiling.drop, text) == text


def test_an_attribute_that_means_something_is_refused() -> None:
    with pytest.raises(Blocked) as caught:
        after(drop, gpu_file(PARAMS, with_line("T.func_attr({'global_symbol': 'other'})")))
    assert caught.value.code == "TL194"
