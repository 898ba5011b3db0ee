"""TL743: operators that only one code generator has."""

from __future__ import annotations

import pytest

from tests.checks.support import LOAD, ONE, STORE, TILES, errors, kernel, warnings
from tl2npu.backends.compile.messages import line_of, meaning
from tl2npu.dialects.ascend import OPERATORS
from tl2npu.dialects.compiler import COMPILERS

REJECTED = (
    "T.tile.sin(b, a)",
    "T.tile.cos(b, a)",
    "T.tile.block_reduce_sum(b, a, 1, 64, 1, 1, 8)",
    "T.tile.wholereducemax(b, a, 64, 1, 1, 1, 8)",
    "T.tile.init_sort_buf(a, 64, 0)",
    "T.tile.abs_experiment(b, a, 64)",
    "T.tile.datacachecleanandinvalid_experiment(A, 'SINGLE_CACHE_LINE', 'CACHELINE_OUT')",
    "T.shmem_ub_put_nbi(a, O, 64, 0)",
)
ACCEPTED = (
    "T.tile.exp(b, a)",
    "T.tile.brcb_experiment(b, a, 1, 1, 8)",
    "T.tile.round(b, a, 2048)",
    "T.tile.sigmoid(b, a)",
)
"""What the compiler said of each, compiled for target ``pto``; for ``ascendc`` it accepted all of them."""


@pytest.mark.parametrize("statement", REJECTED)
def test_an_operator_that_only_ascendc_has(statement: str) -> None:
    body = kernel(TILES, LOAD, statement, STORE)
    assert "TL743" in errors(body, launch=ONE, jit="out_idx=[1], target='pto'")
    assert "TL743" not in warnings(body, launch=ONE, jit="out_idx=[1], target='ascendc'")
    assert "TL743" not in errors(body, launch=ONE, jit="out_idx=[1], target='ascendc'")


@pytest.mark.parametrize("statement", REJECTED)
def test_a_kernel_without_a_target_may_be_compiled_for_either(statement: str) -> None:
    body = kernel(TILES, LOAD, statement, STORE)
    assert "TL743" not in errors(body, launch=ONE)
    assert "TL743" in warnings(body, launch=ONE)


@pytest.mark.parametrize("statement", REJECTED)
def test_an_expert_kernel(statement: str) -> None:
    body = kernel(TILES, f'with T.Scope("V"):\n    {statement}')
    assert "TL743" in errors(body, launch=ONE, jit="out_idx=[1], target='pto'", keys=())


@pytest.mark.parametrize("statement", ACCEPTED)
def test_an_operator_that_both_targets_have(statement: str) -> None:
    body = kernel(TILES, LOAD, statement, STORE)
    assert "TL743" not in errors(body, launch=ONE, jit="out_idx=[1], target='pto'")


def test_the_table_names_operators() -> None:
    for compiler in COMPILERS.values():
        assert compiler.lacking_for_pto <= set(OPERATORS)


def test_the_message_of_the_compiler_leads_to_the_rule() -> None:
    said = meaning("TVMError: Unresolved call Op(tl.ascend_sin) [target/source/codegen_c.cc:704]")
    assert said.codes == ("TL743",)
    assert line_of(said, "a = 1\nT.tile.sin(b, a)\n", 1, 2) == 2
