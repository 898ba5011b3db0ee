"""The npuir catalogue: the names that the branch exports, and signatures as a person reads them in its source."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dialects.page_of_ascend import signature
from tests.dialects.page_of_npuir import page
from tests.each import each
from tl2npu.dialects.catalogue import DEVELOPER, Kind, Role
from tl2npu.dialects.npuir import FILES, OPERATORS, SHORT, lookup

PAGE = Path(__file__).parents[2] / "docs" / "dialect-npuir.md"

# Exports of tile-ai/tilelang-ascend, branch npuir, bd7c60c3: the long name, then the short one.
PAIRS = """
npuir_add vadd, npuir_sub vsub, npuir_max vmax, npuir_min vmin, npuir_mul vmul, npuir_div vdiv, npuir_or vor,
npuir_and vand, npuir_xor vxor, npuir_pow vpow, npuir_shl vshl, npuir_shr vshr, npuir_exp vexp, npuir_dot gemm,
npuir_ln vln, npuir_exp2 vexp2, npuir_log2 vlog2, npuir_load_nd2nz load_nd2nz, npuir_store_nz2nd store_nz2nd,
npuir_store_fixpipe store_fixpipe, npuir_brc vbrc, npuir_fill fill, npuir_clear clear, npuir_cast vcast,
npuir_reduce reduce, npuir_cumsum cumsum, npuir_clamp vclamp, npuir_atomic_add atomic_add,
npuir_atomic_addx4 atomic_addx4, npuir_relu vrelu, npuir_sigmoid vsigmoid, npuir_select vselect, npuir_cmp vcmp,
npuir_sqrt vsqrt, npuir_rsqrt vrsqrt, npuir_abs vabs, npuir_rec vrec, npuir_not vnot, npuir_gather gather,
npuir_interleave interleave, npuir_deinterleave deinterleave, npuir_transpose transpose, npuir_arange arange,
npuir_concat concat, npuir_pad pad, npuir_flip flip, npuir_bitcast vbitcast, npuir_vcos vcos, npuir_vsin vsin,
npuir_verf verf, npuir_vtanh vtanh, npuir_reshape reshape
"""
SINGLE = """
prim_func ptr make_tensor Buffer Tensor FragmentBuffer SharedBuffer LocalBuffer Parallel Pipelined has_let_value
get_let_value Kernel get_thread_binding get_thread_bindings get_block_binding get_block_bindings ws alloc_local
alloc_shared alloc_fragment alloc_var alloc_L0A alloc_L0B alloc_L0C alloc_L1 alloc_ub copy c2d_im2col reduce_max
reduce_min reduce_sum reduce_abssum reduce_absmax dp4a clamp view rs set_flag wait_flag pipe_barrier block_barrier
subblock_barrier sync_block_set sync_block_wait Scope any_of all_of symbolic dynamic use_swizzle annotate_layout
annotate_padding import_source serial parallel vectorized unroll thread_binding grid macro if_then_else ceildiv
infinity print exp exp2 log log2 sqrt rsqrt sigmoid abs min max Cast cast float16 float32 int32 bool
create_list_of_mbarrier get_mbarrier tma_load mbarrier_arrive sync_threads shfl_xor wait_wgmma
"""

SAMPLES = """
copy          copy    <src, >dst, coalesced_width=None, size=None
gemm          gemm    <A, <B, >>C, size=None, initC=False, a_transpose=False, b_transpose=False
vadd          tile    <A, <B?, >C
vshr          tile    <A, <B?, >C, round=True
vexp          tile    <A, >B
vexp2         tile    <A, >B, >>Tmp
vcos          tile    <src, >dst, *, size=None
vcast         tile    <src, >dst, size=None, round_mode='rint'
vbitcast      tile    >>src, dtype, size=None
vbrc          fill    <src?, >dst
fill          fill    >buffer, value
clear         fill    >buffer
vselect       tile    <Cond, <A?, <B?, >Out
vcmp          tile    <A, <B?, >C, cmp_mod
vclamp        tile    <src, >dst, <min_val?, <max_val?
reduce        reduce  <src, >dst, dims, reduce_mode, size=None, clear=True
reduce_max    reduce  <buffer, >out, dim=-1, size=None, clear=True
reduce_abssum reduce  >>buffer, >out, dim=-1
cumsum        reduce  <src, >dst=None, dim=0, reverse=False
gather        tile    <src, >dst, <indices, size=None
transpose     tile    <src, >dst, permutation, size=None
arange        fill    >dst, strides, offset=0
pad           tile    <src, >dst, pad_value, low, high, size=None
flip          tile    <src, >dst, axis, size=None
atomic_add    atomic  >>dst, <src, size=None
alloc_shared  alloc   shape, dtype, scope='shared.dyn'
alloc_var     alloc   dtype, scope='local.var'
set_flag      sync    other, event_id=0
print         debug   <obj?, msg='', hex=False
"""


def pairs() -> list[tuple[str, str]]:
    """Long and short name of every operator that has both."""
    return [(long, short) for pair in PAIRS.split(",") for long, short in [pair.split()]]


def test_every_export_is_listed_once() -> None:
    names = [row.name for file in FILES for row in file.OPERATORS]
    assert len(names) == len(set(names))
    assert [name for pair in pairs() for name in pair if name not in OPERATORS] == []
    assert [name for name in SINGLE.split() if name not in OPERATORS] == []


@each(pairs(), str)
def test_both_names_mean_one_operator(names: tuple[str, str]) -> None:
    long, short = names
    assert SHORT[long] == SHORT[short] == short
    assert signature(OPERATORS[long]) == signature(OPERATORS[short])
    assert lookup(f"tilelang.language.customize_npuir.{long}") is OPERATORS[long]


@pytest.mark.parametrize("line", SAMPLES.strip().splitlines(), ids=lambda line: line.split()[0])
def test_rows_as_a_person_reads_them(line: str) -> None:
    name, kind, expected = line.split(maxsplit=2)
    assert OPERATORS[name].kind is Kind(kind)
    assert signature(OPERATORS[name]) == expected


def test_the_destination_of_a_vector_operator_is_its_last_buffer() -> None:
    for row in OPERATORS.values():
        if row.kind is Kind.TILE and row.modes and row.param("Tmp") is None:
            buffers = [param for param in row.params if param.mask]
            written = [param for param in buffers if "w" in param.mask]
            assert written, row.name
            last = written == [buffers[-1]] or row.name.removeprefix("npuir_") in (
                *("vclamp", "clamp"),  # bounds behind it
                *("gather", "deinterleave"),  # indices behind it; two of them
            )
            assert last, row.name


def test_names_that_are_only_exported_have_no_mode_and_say_so() -> None:
    for name in ("dp4a", "view", "c2d_im2col", "use_swizzle", "annotate_layout", "ws", "any_of", "tma_load", "tanh"):
        assert not OPERATORS[name].modes, name
        assert "not lowered" in OPERATORS[name].note, name
    assert all(row.modes or row.note for row in OPERATORS.values())


def test_expert_names_have_no_developer_mode() -> None:
    for name in ("load_nd2nz", "store_fixpipe", "Scope", "rs", "set_flag", "sync_block_set", "alloc_ub", "alloc_L0C"):
        assert OPERATORS[name].modes
        assert DEVELOPER not in OPERATORS[name].modes


def test_sources_in_front_of_the_last_argument() -> None:
    concat = OPERATORS["concat"]
    assert concat.bind([(None, "a"), (None, "b"), (None, "c"), (None, "d"), (None, 1)]) == {
        "srcs": ("a", "b", "c"),
        "dst": "d",
        "dim": 1,
    }
    assert OPERATORS["interleave"].bind([(None, "a"), (None, "b"), (None, "d"), ("channel_nums", 2)]) == {
        "srcs": ("a", "b"),
        "dst": "d",
        "channel_nums": 2,
    }
    source, dst = concat.param("srcs1"), concat.param("dst")
    assert source is not None
    assert dst is not None
    assert (source.role, dst.role) == (Role.READ, Role.WRITE)
    with pytest.raises(TypeError, match="at least one source and then dst, dim"):
        concat.bind([(None, "d"), (None, 1)])
    with pytest.raises(TypeError, match="unexpected keyword argument 'axis'"):
        concat.bind([(None, "a"), (None, "d"), (None, 1), ("axis", 1)])


def test_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tests.dialects.page_of_npuir"
    assert [name for name in OPERATORS if f"`{name}`" not in page()] == []
