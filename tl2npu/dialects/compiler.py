"""What one version of the Ascend TileLang compiler does, keyed by the month of its sources.

Sources: tile-ai/tilelang-ascend, branch ascendc_pto. "facts" and E<n> are experiments with the
compiler at 95acbd7f, #n issues and pull requests of that repository; docs/limits.md says how they were made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tl2npu.dialects.limits import LIMITS_2026_06, LIMITS_2026_09


@dataclass(frozen=True)
class Compiler:
    """One version of the compiler.

    ``vid_aware_ops``: tile operators whose element count AscendVidReduction halves under ``threads=2`` if the first
    operand starts at offset 0 (``IsTileOp``). ``vid_aware_regions``: operators whose regions or template it halves in
    another way: copies, reductions over the last axis of a literal shape. ``limits``: rule code -> evidence.
    ``default_pass_configs``: keys that are on without being given. ``cross_core_flags``: flag numbers for hand-overs
    (0 to 10 in the vendor's documentation; the compiler checks no bound). ``slice_argument``: the argument of
    ``gemm_v0`` that says how much of K it stages at a time, empty where that is fixed. ``pads_depth``: K of a product
    is padded with zeros to whole fractals. ``tiles_columns``: AscendC's ``gemm_v0`` takes B in parts of N that fit L0B.
    ``lacking_for_pto``: operators that the code generator for target ``pto`` does not have, and the one for
    ``ascendc`` has. ``note``: what else is known to differ.
    """

    version: str
    commit: str | None
    source: str
    vid_aware_ops: frozenset[str]
    vid_aware_regions: frozenset[str]
    limits: Mapping[str, str]
    lacking_for_pto: frozenset[str]
    default_pass_configs: frozenset[str] = frozenset()
    cross_core_flags: int = 11
    slice_argument: str = ""
    pads_depth: bool = False
    tiles_columns: bool = False
    note: str = ""

    def holds(self, code: str) -> bool:
        """Whether the limit of a rule (``TL836``) is known to hold in this version."""
        return code in self.limits

    def lacks(self, name: str) -> str:
        """The parameter of an operator that came in a later version; empty if this one has them all."""
        return "kL0Size" if name == "gemm_v0" and not self.slice_argument else ""

    def adapts_to_vid(self, name: str) -> bool:
        """Whether the operator ``tile.add``, ``copy``, ... works on half tiles under ``threads=2``."""
        return name in self.vid_aware_ops or name in self.vid_aware_regions


_BINARY = ("add", "sub", "mul", "div", "max", "min", "bitwise_and", "bitwise_or")
_UNARY = ("exp", "ln", "abs", "reciprocal", "sqrt", "rsqrt", "relu", "bitwise_not", "sin", "cos")
_WITH_SCALAR = ("leaky_relu", "axpy", "bitwise_lshift", "bitwise_rshift")
# ``tile.clear`` is ``tile.fill`` with 0; ``compare`` is both compare and compare_scalar.
_OTHER = ("compare", "fill", "clear")

_IS_TILE_OP = frozenset(f"tile.{name}" for name in (*_BINARY, *_UNARY, *_WITH_SCALAR, *_OTHER))
# What ``VisitExpr_`` of src/target/codegen_ascend.cc has and that of codegen_ascend_pto.cc does not; each was compiled.
_LACKING_FOR_PTO = frozenset(
    """
    tile.sin tile.cos tile.init_sort_buf tile.bilinear_interpolation
    tile.block_reduce_max tile.block_reduce_min tile.block_reduce_sum
    tile.wholereducemax tile.wholereducemin tile.wholereducesum
    tile.sub_experiment tile.abs_experiment tile.mins_experiment tile.fill_experiment tile.sum_experiment
    tile.reduce_sum_experiment tile.reduce_sum_mask_experiment tile.gathermask_experiment
    tile.datacachecleanandinvalid_experiment
    shmem_put_nbi shmem_get_nbi shmem_ub_put_nbi shmem_ub_get_nbi
    """.split()
)
_REGIONS = frozenset({"copy", "reduce", "reduce_max", "reduce_min", "reduce_sum"})

JUNE_2026 = Compiler(
    version="2026-06",
    commit="95acbd7f7283f57f228aa4d016742ea165c03b84",
    source="src/transform/ascend_vid_reduction.cc:497-517",
    vid_aware_ops=_IS_TILE_OP,
    vid_aware_regions=_REGIONS,
    limits=LIMITS_2026_06,
    lacking_for_pto=_LACKING_FOR_PTO,
)

SEPTEMBER_2026 = Compiler(
    version="2026-09",
    commit=None,
    source="pull request #1783 (merged, 2026-09)",
    vid_aware_ops=_IS_TILE_OP | {"tile.cast", "tile.mul_add_dst", "tile.silu"},
    vid_aware_regions=_REGIONS,
    limits=LIMITS_2026_09,
    lacking_for_pto=_LACKING_FOR_PTO,
    default_pass_configs=frozenset({"TL_ASCEND_AUTO_CV_COMBINE"}),
    slice_argument="kL0Size",
    pads_depth=True,
    tiles_columns=True,
    note="known from pull requests, issues and the repository's migration notes only, never run; T.Scope may stay, and "
    "a scalar store to global memory needs one; allocation scopes are named shared.l1 and shared.ub (#1332); memory "
    "planning still ignores the sizes of A5 (#1369); gemm_v0 takes kL0Size (#1387), pads K (#1723) and, for ascendc "
    "only, takes B in parts of N (#1312, #1313); TL_ASCEND_TAIL_MASK computes on the valid part of a tile, off by "
    "default (#1360)",
)

COMPILERS: Mapping[str, Compiler] = MappingProxyType(
    {compiler.version: compiler for compiler in (JUNE_2026, SEPTEMBER_2026)}
)
"""Known compiler versions by name."""

DEFAULT_COMPILER = JUNE_2026
