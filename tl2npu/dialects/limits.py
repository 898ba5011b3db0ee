"""The limits of one compiler version: rule code -> evidence that the limit is real.

"facts n: id" and E<n> are experiments with the compiler, R-XXX is a name for what its sources say, "#n" an issue or
pull request of tile-ai/tilelang-ascend, "read" a file of its sources; docs/limits.md says how each was found.
A code is missing here if it is no limit of a compiler but a property of the kernel or of the tool.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

AUTHORS_OWN = frozenset(
    "TL700 TL739 TL743 TL747 TL749 TL750 TL761 TL890 TL891 TL892 TL893 TL894 TL896 TL898 TL899".split()
)
"""Limits that hold for Expert mode too: on a statement that the migration did not touch they are no news of its own."""

LIMITS_2026_06: Mapping[str, str] = MappingProxyType(
    {
        "TL700": "R-BLOCK: read src/tl_templates/ascend/common.h; facts 3: g8_row; #996",
        "TL701": "R-BLOCK: read src/tl_templates/ascend/common.h",
        "TL720": "facts 10: three attention kernels rejected with sizes from another file",
        "TL721": "read src/transform/ascend_memory_planning.cc (ReorderKillPoints); measured: 6 of 12 kernels wrong",
        "TL743": "read src/target/codegen_ascend_pto.cc (VisitExpr_); a kernel for each operator: Unresolved call",
        "TL744": "read ExprEvaluator._visit and ascend_tile.py; measured: a kernel for each form; #1265, #1320, #1351",
        "TL745": "read ascend_tile.py (binary_op, compare, select); measured: GetValue of the first index; #1679",
        "TL746": "read src/transform/inject_pipeline.cc; measured: a kernel for each body of a loop",
        "TL747": "read src/target/codegen_ascend.cc and TVM's codegen_c.cc; measured: the text of a kernel for each",
        "TL748": "read src/op/ascend.cc (compute_valid_extent); measured: 20 kernels; mismatched types",
        "TL749": "read codegen_ascend.cc (SubsOpCodegen), codegen_ascend_pto.cc; measured: the text of 17 kernels",
        "TL750": "#1657, #1658: measured on a 910B3, CANN 8.5.2",
        "TL761": "read src/target/codegen_ascend.cc, codegen_ascend_pto.cc (VisitExpr_ of FloorDivNode, FloorModNode)",
        "TL795": "measured: a kernel for each kind of length; Cannot unroll non-constant loop",
        "TL796": "read src/transform/pipeline_planning.cc; measured: 16 loops, each store to a variable is rejected",
        "TL797": "measured: a kernel for each operator and target; the text for pto was read",
        "TL798": "read src/op/ascend.cc (find_active_dim_indices); measured: one instruction for a plane, both targets",
        "TL801": "facts 8: g8_ub200, g8_l0c, g8_l1 crash the compiler, g8_l0a overflows unseen",
        "TL810": "R-NOTHREADS; facts 5: g5_th2_cidvid",
        "TL811": "facts 6: g6_mix_workspace_1, g6_unused, g6_stale",
        "TL813": "R-NOTHREADS",
        "TL814": "R-SCOPEKEEP, R-MIXFLAG, R-ORDER0: E46, #1825",
        "TL815": "facts 5: g5_th128, g5_2d, g5_nonpu",
        "TL816": "facts 2: g8_cv_nocvsync; #1825",
        "TL817": "#666: error 107000 at launch",
        "TL820": "facts 1: g1_b_odd, g1_b_odd9; E1",
        "TL821": "facts 1: g1_b_one, g1_b_rowsl, g1_a_1n; E2, E3c, #1800",
        "TL822": "facts 1: g1_a, g1_i_2, g3b_ubscalar_t2; E3, E3b",
        "TL823": "R-RANK: E3d, E60",
        "TL824": "R-GMDIM: E82, E82c; facts 9: BSHD tile",
        "TL825": "R-PARTUB: E4; facts 1: g1_g_rows_2",
        "TL826": "R-ROWIDX: E5, E6",
        "TL827": "R-LOOPMIN: E6",
        "TL828": "facts 1: g3b_if_t2, g3b_rowval_t2, g3b_ser_if_t2; E5, E6",
        "TL829": "R-LOOPCUBE: E62",
        "TL830": "R-ALIGN; short vectors are right: #1777, and read src/transform/ascend_memory_planning.cc (AlignUp)",
        "TL831": "R-SYMROWS: E26b; facts 7: g7_symUB",
        "TL832": "facts 1: g1_c_cast, _sigmoid, _silu, _clamp, _select, _broadcast (ascendc); E10, E71",
        "TL833": "facts 1: g1_e_2; E7",
        "TL834": "R-RED1D: E8",
        "TL835": "R-REDCLR: E19",
        "TL836": "facts 1: g1_d_ub2d_2, g1_d_ub1d_2; E31",
        "TL837": "facts 1: g1_f_2, g1_fp_2; E10",
        "TL838": "R-OFFSET0: read src/transform/ascend_vid_reduction.cc (HasModifiedBuffer, first match decides)",
        "TL839": "R-ROOT: read src/transform/ascend_vid_reduction.cc (root block), and generated code; "
        "allocate_tmp_buffer.cc, and nine operators tried",
        "TL840": "facts 2: g2_two_dst, g2_two_src, g2_same_pair; E15, #1088",
        "TL841": "R-WHOLE: E20, E24, E24b",
        "TL842": "R-REGION: survey of the example kernels",
        "TL843": "R-2D: read src/transform/ascend_workspace_reduction.cc; facts 2: g2_rows_l1",
        "TL844": "R-DTYPE; facts 2: g2_ubl1_f32",
        "TL845": "R-1CONS: E16 to E19, E84, E85a; facts 2: g2_rowloop_inpl, g2_rowvec, g2_scalar",
        "TL846": "R-BRANCH: E17, E50; facts 2: g7_ifone",
        "TL847": "R-LOOPNAME: E50",
        "TL848": "facts 2: g9_one_cv, g9_one_vc, g7_serial4, g7_pers; E14, E14b, #1198, #1336",
        "TL849": "R-VV: E47",
        "TL850": "facts 6: g6_man_my_ws, g6_man_ws_qk, g6_mix_my_ws; E47",
        "TL851": "facts 6: g6_mix_workspace_1, g6_unused; E21",
        "TL852": "R-GATHER: E28, E28b, E28c",
        "TL853": "R-GATHER-LAYOUT: E80a, E80b",
        "TL854": "R-GATHER-OP: E83a",
        "TL855": "R-L1PART: E81, #1155",
        "TL856": "R-NOTHREADS: read src/transform/ascend_workspace_reduction.cc",
        "TL857": "#1395: read src/tl_templates/ascend/common.h:627-631 (offsets of slices of K in steps of 16)",
        "TL858": "#1341: 10.5 % of the elements wrong on a device at M=64, N=128, K=200",
        "TL859": "R-NOTHREADS; #1662",
        "TL860": "R-ALLOCVAR: E12; facts 3: g3b_gmst, g1_i2",
        "TL861": "R-GMSTORE: E32; facts 3: g3b_gmst",
        "TL862": "R-NULLCALL: E13b, E13c, E13d; facts 2: gx_syncall",
        "TL865": "R-UBCOND: E22",
        "TL866": "R-ALLOCINFER: E37, E37b, E37c; facts 3: g3b_ubpar",
        "TL867": "R-DYNLOOP: E49, E11b",
        "TL868": "R-SYNCCNT: E84",
        "TL869": "R-FLAGS: read src/transform/ascend_combinecv.cc (no upper bound on flag numbers)",
        "TL870": "read src/tl_templates/ascend/common.h:156-176 (copy_l0c_to_gm), and generated code",
        "TL871": "facts 3: g3_tail, g3_causal, g3b_select, g3_r3",
        "TL872": "read src/target/codegen_ascend_pto.cc (GMCopyCall, GetSliceInfo), and generated code",
        "TL875": "facts 2: g7_pipe3, g9_bid_p3, g9_rem32; E23b, E23c, #1378",
        "TL876": "R-PIPEDYN: E23d",
        "TL877": "R-PIPESTATE: E23e",
        "TL878": "R-PIPE2: E23g",
        "TL880": "facts 2: g6_neg; E87",
        "TL881": "facts 7: g7_cv; E88",
        "TL882": "R-GRIDMEM: #710, #666",
        "TL884": "R-TARGET: numbers of ascendc sources were never measured",
        "TL890": "facts 3: g3_rowdiv, g3b_rl_mul, g3b_rl_add, g3b_rl_div, gz_mulleft",
        "TL891": "facts 3: g3_subcol, gy_rot",
        "TL892": "facts 1: g1_g_cols_2, g1_g_cols_1, gy_t2_colpartial",
        "TL893": "facts 3: g3_gm, g3b_gmscalar",
        "TL894": "facts 4: g4_vecC, g4_dual, g4_tileclear",
        "TL895": "facts 3: g3b_gmst, g1_i2",
        "TL896": "facts 3: g3_expdiff, g3_nestexp, g3_max15, g3_exp2, g3_tanh",
        "TL897": "facts 4: g4_gemm, g4_clear, g4_exp2, g4_atomic, g8_callext, g8_cumsum",
        "TL898": "facts 4: g4_noinit",
        "TL899": "facts 4: g4_s, g4_k_32_32_192; facts 2: g2_ubl1_24",
    }
)

_UNMEASURED = "not measured again"

# What public issues of this version say of a limit; for every other limit nothing is known to have changed.
_STILL_OPEN_2026_09 = {
    "TL750": "#1658, open; its fix #1822 too, on 2026-09-21",
    "TL816": "#1825, open on 2026-09-22",
    "TL814": "#1825, open on 2026-09-22",
    "TL821": "#1800, open on 2026-09-15: a row of a (1, N) buffer is halved",
    "TL832": "#1783 adapts cast, mul_add_dst and silu only",
    "TL848": "#1336, open",
    "TL858": "#1723, merged 2026-09-02: one-byte types only, refused when compiled (static_assert)",
    "TL859": "#1662, closed: fixed in the kernels, by threads=2",
    "TL875": "#1378, open: remainders and starts other than 0",
    "TL876": "#1378, open: symbolic extents",
}
_CHANGED_2026_09 = {
    "TL853": "R-VERSION: differs in a later version, how is not known",
    "TL866": "R-VERSION, #1332: the scopes of allocations were renamed",
}

_GONE_2026_09: Mapping[str, str] = MappingProxyType({"TL857": "#1401, merged 2026-07"})

LIMITS_2026_09: Mapping[str, str] = MappingProxyType(
    {
        code: _STILL_OPEN_2026_09.get(code)
        or f"{_UNMEASURED}{'; ' + _CHANGED_2026_09[code] if code in _CHANGED_2026_09 else ''}; 2026-06: {evidence}"
        for code, evidence in LIMITS_2026_06.items()
        if code not in _GONE_2026_09
    }
)
"""All limits of 2026-06: a limit is taken to hold until it is seen to be gone."""
