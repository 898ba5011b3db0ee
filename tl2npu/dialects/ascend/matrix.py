"""Matrix multiplication on the cube core."""

from __future__ import annotations

from tl2npu.dialects.ascend.build import EXPERT_ONLY, NO_MODE, accumulate, flag, operator, read, scalar
from tl2npu.dialects.catalogue import Core, Kind

OPERATORS = (
    operator(
        "gemm_v0",
        Kind.GEMM,
        read("A"),
        read("B"),
        accumulate("C"),
        flag("transpose_A", "False"),
        flag("transpose_B", "False"),
        scalar("init", "False"),
        scalar("kL0Size", "128"),
        core=Core.CUBE,
        defined="tilelang/language/ascend.py:gemm_v0",
        note="A and B in L1, C in L0C; init may be an expression such as k == 0; seen as a pure write only for True; "
        "kL0Size since 2026-07",
    ),
    operator(
        "mma",
        Kind.MMA,
        read("A"),
        read("B"),
        accumulate("C"),
        scalar("init", "False"),
        core=Core.CUBE,
        modes=EXPERT_ONLY,
        defined="tilelang/language/customize.py:npu_gemm",
        note="A in L0A, B in L0B, C in L0C",
    ),
    operator(
        "gemm",
        Kind.GEMM,
        read("A"),
        read("B"),
        accumulate("C"),
        flag("transpose_A", "False"),
        flag("transpose_B", "False"),
        flag("policy", "GemmWarpPolicy.Square"),
        flag("clear_accum", "False"),
        scalar("k_pack", "1"),
        scalar("wg_wait", "0"),
        core=Core.CUBE,
        modes=NO_MODE,
        defined="tilelang/language/gemm.py:gemm",
        note="rejected by the Ascend compiler: use gemm_v0",
    ),
)
