"""The compiler versions."""

from __future__ import annotations

import pytest

from tl2npu.codes import CODES
from tl2npu.dialects.ascend import OPERATORS
from tl2npu.dialects.compiler import COMPILERS, DEFAULT_COMPILER, Compiler
from tl2npu.dialects.limits import LIMITS_2026_06, LIMITS_2026_09
from tl2npu.dialects.pass_configs import ASCEND_KEYS

JUNE = COMPILERS["2026-06"]
SEPTEMBER = COMPILERS["2026-09"]

# The set in src/transform/ascend_vid_reduction.cc (IsTileOp), without the ``tl.ascend_`` prefix, typed from the source;
# a trailing s is the form with a scalar, compare_scalar that of compare.
IS_TILE_OP = """
add adds mul muls sub subs div divs max maxs min mins bitwise_and bitwise_or exp ln abs reciprocal sqrt rsqrt relu
bitwise_not leaky_relu axpy bitwise_lshift bitwise_rshift compare compare_scalar sin cos fill
""".split()
SCALAR_FORMS = {"adds", "muls", "subs", "divs", "maxs", "mins", "compare_scalar"}


def test_vid_aware_operators_are_those_of_the_source() -> None:
    named = {f"tile.{name}" for name in IS_TILE_OP if name not in SCALAR_FORMS}
    assert JUNE.vid_aware_ops == named | {"tile.clear"}


def test_what_the_later_version_adds() -> None:
    assert SEPTEMBER.vid_aware_ops - JUNE.vid_aware_ops == {"tile.cast", "tile.mul_add_dst", "tile.silu"}
    assert JUNE.vid_aware_ops <= SEPTEMBER.vid_aware_ops


@pytest.mark.parametrize("row", COMPILERS.values(), ids=lambda row: row.version)
def test_tables_use_known_names(row: Compiler) -> None:
    assert COMPILERS[row.version] is row
    assert row.vid_aware_ops | row.vid_aware_regions <= set(OPERATORS)
    assert set(row.limits) <= set(CODES)
    assert all(evidence.strip() for evidence in row.limits.values())
    assert row.default_pass_configs <= set(ASCEND_KEYS)


def test_operators_know_the_versions() -> None:
    assert OPERATORS["tile.add"].vid_aware == {"2026-06", "2026-09"}
    assert OPERATORS["tile.cast"].vid_aware == {"2026-09"}
    assert OPERATORS["tile.broadcast"].vid_aware == frozenset()
    assert OPERATORS["copy"].vid_aware == OPERATORS["reduce_max"].vid_aware == set(COMPILERS)
    assert OPERATORS["tile.atomic_add"].vid_aware == frozenset()


def test_limits() -> None:
    assert JUNE.holds("TL848")
    assert "g9_one_cv" in JUNE.limits["TL848"]
    assert "E82" in JUNE.limits["TL824"]
    assert not JUNE.holds("TL901")
    assert not JUNE.holds("TL202")
    assert not JUNE.holds("")
    assert not JUNE.holds("TL883"), "an unreachable call site is no limit of the compiler"


def test_a_later_version_keeps_limits_and_says_how_it_knows() -> None:
    assert set(LIMITS_2026_09) == set(LIMITS_2026_06) - {"TL857"}  # mended by #1401
    assert LIMITS_2026_09["TL820"] == f"not measured again; 2026-06: {LIMITS_2026_06['TL820']}"
    assert LIMITS_2026_09["TL821"].startswith("#1800")
    assert "R-VERSION" in LIMITS_2026_09["TL853"]
    assert "not measured again" in LIMITS_2026_09["TL853"]


def test_versions() -> None:
    assert DEFAULT_COMPILER is JUNE
    assert JUNE.commit is not None
    assert JUNE.commit.startswith("95acbd7f")
    assert SEPTEMBER.commit is None
    assert JUNE.default_pass_configs == frozenset()
    assert SEPTEMBER.default_pass_configs == {"TL_ASCEND_AUTO_CV_COMBINE"}
