"""The Ascend catalogue: rows typed by hand from the sources, and what must hold of every row."""

from __future__ import annotations

import pytest

from tests.dialects.page_of_ascend import signature
from tests.each import each
from tl2npu.dialects.ascend import ALIASES, OPERATORS, SECTIONS, lookup
from tl2npu.dialects.catalogue import DEVELOPER, EXPERT, Core, Kind, Operator, Role

# Read off tile-ai/tilelang-ascend 95acbd7f, file by file, as a person reads a signature and its body:
# < read, > written, >> the old value goes into the new one, ? a scalar may stand there.
SAMPLES = """
tile.add                  tile        vector       >dst, <src0, <src1?
tile.max                  tile        vector       >dst, <src0, <src1?
tile.exp                  tile        vector       >dst, <src0
tile.silu                 tile        vector       >dst, <src
tile.sin                  tile        vector       >dst, <src
tile.axpy                 tile        vector       >>dst, <src0, scalar_value
tile.mul_add_dst          tile        vector       >>dst, <src0, <src1
tile.leaky_relu           tile        vector       >dst, <src0, scalar_value
tile.bitwise_lshift       tile        vector       >dst, <src0, scalarValue
tile.bitwise_xor          tile        vector       >dst, <src0, <src1
tile.pow                  tile        vector       >dst, <src0, <src1
tile.clamp                tile        vector       >out, <buffer, min_scalar, max_scalar, count
tile.clamp_min            tile        vector       >out, <buffer, scalar_value, count
tile.round                tile        vector       >out, <buffer, count
tile.cast                 tile        vector       >dst, <src, mode, count
tile.compare              tile        vector       >dst, <src0, <src1?, mode
tile.select               tile        vector       >dst, <selMask, <src0, <src1?, selMode
tile.broadcast            tile        vector       >dst, <src, axis=None
tile.row_expand_mul       tile        vector       >dst, <src0, <src1, >>tmp=None
tile.fill                 fill        vector       >buffer, value
tile.clear                fill        vector       >buffer
tile.atomic_add           atomic      by operands  >>dst, <src
tile.createvecindex       tile        vector       >dst, firstValue
tile.arith_progression    tile        vector       >buffer, first_value, diff_value, count
tile.sort                 tile        vector       >dst, <src, actual_num
tile.sort32               tile        vector       >dst, <src0, <src1
tile.merge_sort           tile        vector       >dst, <src0, <src1, <src2=None, <src3=None
tile.topk                 tile        vector       >dst, <src, K, actual_num
tile.gather               tile        vector       >dst, <src, <src_offset, src_base_addr
tile.gatherb              tile        vector       >dst, <src0, <offset, repeat_time, dst_blk_stride, dst_rep_stride
tile.gather_mask          tile        vector       >dst, <src, <src1Pattern?
tile.transpose            tile        vector       >dst, <src
tile.init_sort_buf        tile        vector       >buffer, num, rsv
tile.brcb_experiment      tile        vector       >dst, <src, repeat_times, dst_blk_stride, dst_repeat_stride
tile.sum_experiment       tile        vector       >dst, <src, sumParams
tile.sub_experiment       tile        vector       >dst, <src0, <src1, count
copy                      copy        by operands  <src, >dst, enable_relu=False, transpose=False, pad_value=None
gemm_v0                   gemm        cube         <A, <B, >>C, transpose_A=False, transpose_B=False, init=False, \
kL0Size=128
mma                       mma         cube         <A, <B, >>C, init=False
reduce                    reduce      vector       <buffer, >out, reduce_type, dim, real_shape=None, clear=True
reduce_max                reduce      vector       <buffer, >out, dim=-1, *args, clear=True, real_shape=None
reinterpretcast           tile        vector       >dst, <src, casttype
alloc_ub                  alloc       vector       shape, dtype
alloc_L1                  alloc       cube         shape, dtype
alloc_shared              alloc       by operands  shape, dtype, scope='shared.dyn'
alloc_fragment            alloc       cube         shape, dtype, scope='local.fragment'
alloc_var                 alloc       both         dtype, *args, scope='local.var', init=None
set_flag                  sync        none         src, dst, eventId
wait_flag                 sync        none         src, dst, eventId
set_cross_flag            sync        none         pipe, flag, mode=2
wait_cross_flag           sync        none         flag, pipe=''
barrier_all               sync        none
pipe_barrier              sync        none         pipe
sync_all                  sync        none
Kernel                    launch      both         *blocks, threads=None, is_cpu=False, prelude=None, is_npu=False, \
pipeline=False
Scope                     scope       none         name
serial                    loop        both         start, stop=None, *, annotations=None
Parallel                  loop        both         *extents, coalesced_width=None
Pipelined                 loop        both         start, stop=None, num_stages=0, order=None, stage=None, sync=None, \
group=None, cross_interval=1
Persistent                loop        both         domain, wave_size, index, group_size=8
use_swizzle               scalar      none         cid, m, n, k, block_m, block_n, off=1, dir=0, in_loop=False
printf                    debug       both         format_str, <*args
dump_tensor               debug       by operands  <tensor, desc, dump_size, shape_info=()
annotate_address          annotation  none         address_map
shmem_put_nbi             system      by operands  >dst, <src, nelems, newPe
shmem_ub_put_nbi          system      by operands  <ub, >dst, nelems, newPe, strelem=0
set_deq_scale             system      none         scale
if_then_else              scalar      none         cond, t, f, span=None
ceildiv                   scalar      none         lhs, rhs, span=None
max                       scalar      none         a, b
"""


@each(SAMPLES.replace("\\\n", "").strip().splitlines(), str)
def test_hand_checked(line: str) -> None:
    name, kind, core, arguments = line[:26].strip(), line[26:38].strip(), line[38:51].strip(), line[51:].strip()
    row = OPERATORS[name]
    assert (row.kind.value, row.core.value, signature(row)) == (kind, core, arguments)


def test_every_row_is_complete() -> None:
    for name, row in OPERATORS.items():
        assert row.name == name
        assert isinstance(row.core, Core)
        assert isinstance(row.kind, Kind)
        assert row.modes <= {EXPERT, DEVELOPER}, name
        assert row.defined.count(":") >= 1, name
        assert all(isinstance(param.role, Role) and param.name.isidentifier() for param in row.params), name
        names = [param.name for param in row.params]
        assert len(set(names)) == len(names), name
        assert set(row.extras) <= {param.name for param in row.params if param.kind == "keyword"}, name
        assert row.axis is None or row.axis in names, name
        assert not row.elementwise or row.row_independent, name


def test_signatures_are_possible_in_python() -> None:
    order = {"positional": 0, "variadic": 1, "keyword": 2}
    for name, row in OPERATORS.items():
        kinds = [order[param.kind] for param in row.params]
        assert kinds == sorted(kinds), name
        assert kinds.count(1) <= 1, name
        positional = [param.required for param in row.params if param.kind == "positional"]
        assert positional == sorted(positional, reverse=True), name


def test_no_name_twice() -> None:
    assert sum(len(section.operators) for section in SECTIONS.values()) == len(OPERATORS)


REDUCTIONS = ("reduce", "reduce_max", "reduce_min", "reduce_sum")


def named(role: Role, *kinds: Kind) -> set[str]:
    """``operator.parameter`` of every parameter with a role, in operators of the given kinds."""
    return {f"{row.name}.{param.name}" for row in rows_of(*kinds) for param in row.params if param.role is role}


def test_counts_that_scale_with_the_tile() -> None:
    blocks = {f"tile.{name}.repeat" for name in ("block_reduce_max", "block_reduce_min", "block_reduce_sum")}
    blocks |= {f"tile.{name}.repeattimes" for name in ("wholereducemax", "wholereducemin", "wholereducesum")}
    blocks |= {f"tile.{name}.repeat_times" for name in ("brcb", "brcb_experiment")}
    whole = {"cast", "clamp", "clamp_max", "clamp_min", "round", "arith_progression"}
    whole |= {"sub_experiment", "abs_experiment", "mins_experiment", "reduce_sum_experiment"}
    assert named(Role.COUNT, Kind.TILE) == blocks | {f"tile.{name}.count" for name in whole} | {
        "tile.sort.actual_num",
        "tile.topk.actual_num",
        "tile.init_sort_buf.num",
        "tile.gatherb.repeat_time",
        "tile.reduce_sum_mask_experiment.repeatTime",
        "tile.fill_experiment.repeatTimes",
    }


def test_constant_strings() -> None:
    assert named(Role.MODE, Kind.TILE, Kind.REDUCE) == {
        "tile.cast.mode",
        "tile.compare.mode",
        "tile.select.selMode",
        "tile.wholereducemax.ReduceOrder",
        "tile.wholereducemin.ReduceOrder",
        "tile.binary_op.op",
        "tile.unary_op.op",
        "tile.scalar_op.op_tl",
        "reduce.reduce_type",
        "reinterpretcast.casttype",
    }


def test_shapes_and_flags() -> None:
    assert named(Role.SHAPE, Kind.ALLOC) >= {"alloc_ub.shape", "alloc_shared.shape", "alloc_L0C.shape"}
    assert named(Role.SHAPE, Kind.REDUCE) == {f"{row}.real_shape" for row in REDUCTIONS}
    assert named(Role.FLAG, Kind.REDUCE) >= {f"{row}.{flag}" for row in REDUCTIONS for flag in ("dim", "clear")}
    assert named(Role.FLAG, Kind.COPY) == {"copy.enable_relu", "copy.transpose"}
    assert named(Role.SCALAR, Kind.GEMM) >= {"gemm_v0.init"}, "init may be an expression"


def rows_of(*kinds: Kind) -> list[Operator]:
    return [row for row in OPERATORS.values() if row.kind in kinds]


def test_vector_and_cube_operators_write_exactly_one_thing() -> None:
    for row in rows_of(Kind.COPY, Kind.GEMM, Kind.MMA, Kind.TILE, Kind.REDUCE, Kind.FILL, Kind.ATOMIC):
        written = [param for param in row.params if param.role in (Role.WRITE, Role.ACCUMULATE)]
        assert len(written) == 1, row.name


def test_allocations_name_their_memory() -> None:
    memories = {row.name: row.memory for row in rows_of(Kind.ALLOC)}
    assert memories == {
        "alloc_L1": "l1",
        "alloc_L0A": "l0a",
        "alloc_L0B": "l0b",
        "alloc_L0C": "l0c",
        "alloc_ub": "ub",
        "alloc_shared": "shared",
        "alloc_fragment": "fragment",
        "alloc_var": "var",
        "alloc_buffer": None,
    }
    assert all(row.memory is None for row in OPERATORS.values() if row.kind is not Kind.ALLOC)


def test_access_that_the_compiler_sees() -> None:
    """``access_ptr`` masks as the sources pass them, where they are not what the operator does."""
    odd = {(row.name, param.name): param.mask for row in OPERATORS.values() for param in row.params if param.seen}
    assert odd == {("tile.axpy", "dst"): "w", ("tile.select", "dst"): "r", ("tile.atomic_add", "dst"): "w"}
    plain = {param.name: param.mask for param in OPERATORS["tile.mul_add_dst"].params}
    assert plain == {"dst": "rw", "src0": "r", "src1": "r"}
    out = OPERATORS["reduce_sum"].param("out")
    assert out is not None
    assert out.mask == "w"


@pytest.mark.parametrize("name", ["sort", "topk", "gather", "gather_mask", "merge_sort", "transpose", "createvecindex"])
def test_operators_across_rows(name: str) -> None:
    row = OPERATORS[f"tile.{name}"]
    assert not row.elementwise
    assert not row.row_independent


def test_operators_within_rows() -> None:
    within = {row.name for row in OPERATORS.values() if row.row_independent and not row.elementwise}
    assert within == {
        "reduce",
        "reduce_max",
        "reduce_min",
        "reduce_sum",
        "tile.broadcast",
        "tile.row_expand_mul",
        "tile.row_expand_mul_experiment",
        "tile.row_expand_sub_experiment",
        "tile.row_expand_div_experiment",
    }
    assert {OPERATORS[name].axis for name in ("reduce", "reduce_max", "tile.broadcast")} == {"dim", "axis"}


@pytest.mark.parametrize(
    "name",
    [
        "Scope",
        "set_flag",
        "wait_cross_flag",
        "barrier_all",
        "sync_all",
        "mma",
        "alloc_ub",
        "alloc_L0C",
        "annotate_address",
        "annotate_layout",
        "shmem_put_nbi",
        "tile.fill_experiment",
    ],
)
def test_expert_only(name: str) -> None:
    assert OPERATORS[name].modes == {EXPERT}


@pytest.mark.parametrize("name", ["gemm", "cumsum", "atomic_add", "exp2", "reduce_absmax", "tma_load", "print", "tanh"])
def test_not_for_ascend(name: str) -> None:
    assert OPERATORS[name].modes == frozenset()


@pytest.mark.parametrize("name", ["copy", "gemm_v0", "alloc_shared", "alloc_fragment", "Parallel", "tile.add", "exp"])
def test_both_modes(name: str) -> None:
    assert OPERATORS[name].modes == {EXPERT, DEVELOPER}


def test_lookup() -> None:
    assert lookup("tilelang.language.tile.add") is OPERATORS["tile.add"]
    assert lookup("tilelang.language.copy") is OPERATORS["copy"]
    assert lookup("tilelang.language.ascend_tile.add") is OPERATORS["tile.add"]
    assert lookup("tilelang.language.customize.npu_gemm") is OPERATORS["mma"]
    assert lookup("tilelang.language.reduce_ascend.reduce_max") is OPERATORS["reduce_max"]
    assert lookup("tilelang.language.tir.op.exp") is OPERATORS["exp"]
    for other in ("tile.add", "torch.add", "tilelang.language", "tilelang.language.", "tilelang.language.clear", ""):
        assert lookup(other) is None, other


def test_removed_names_are_unknown() -> None:
    """``T.clear`` and ``T.fill`` of the GPU language are not exported, ``T.alloc_local`` raises."""
    assert not {"clear", "fill", "alloc_local", "alloc_barrier", "float8_e4m3"} & OPERATORS.keys()


def test_aliases_lead_to_rows() -> None:
    assert set(ALIASES.values()) <= set(OPERATORS)
    assert not any(alias.removeprefix("tilelang.language.") in OPERATORS for alias in ALIASES)
