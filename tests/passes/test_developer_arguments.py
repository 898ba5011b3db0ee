"""Kernels that are in Developer mode already, but for the types of a comparison, or the form of an argument."""

from __future__ import annotations

import pytest

from tests.kernel.test_scalar_types import kernel
from tl2npu.migration import migrate_text
from tl2npu.options import Options


def test_types_of_comparisons_are_migrated() -> None:
    result = migrate_text(kernel("if n < 2.5:", "    T.tile.mul(t, t, -1.0)"), "k.py", Options())
    (one,) = result.kernels
    assert (one.disposition, one.codes) == ("migrated", ("TL731",))
    assert result.new_text is not None
    assert migrate_text(result.new_text, "k.py", Options()).kernels[0].disposition == "unchanged"


@pytest.mark.parametrize(
    ("line", "code"), [("T.tile.fill(t[0:4, :], 0.0)", "TL744"), ("T.tile.mul(t, t, A[1, n])", "TL745")]
)
def test_forms_of_arguments_are_told(line: str, code: str) -> None:
    result = migrate_text(kernel(line), "k.py", Options())
    assert [k.disposition for k in result.kernels] == ["unchanged"]
    assert code in {found.code for found in result.diagnostics if found.severity == "error"}


def test_a_kernel_that_needs_nothing_stays() -> None:
    text = kernel("T.tile.fill(t[:4, :], 0.0)", "T.tile.mul(t, t, 2.0)")
    result = migrate_text(text, "k.py", Options())
    assert [k.disposition for k in result.kernels] == ["unchanged"]
