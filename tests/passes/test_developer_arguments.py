"""Kernels that are in Developer mode already, but for the form of an argument or the types of a comparison."""

from __future__ import annotations

import numpy as np

from tests.kernel.test_scalar_types import kernel
from tests.passes.simulated import run
from tl2npu.migration import migrate_text
from tl2npu.options import Options


def test_they_are_migrated() -> None:
    body = ["T.tile.fill(t[0:4, :], 0.0)", "T.tile.mul(t, t, A[1, n])", "if n < 2.5:", "    T.tile.mul(t, t, -1.0)"]
    result = migrate_text(kernel(*body), "k.py", Options())
    (one,) = result.kernels
    assert (one.disposition, one.codes) == ("migrated", ("TL731", "TL744", "TL745"))
    assert result.new_text is not None
    assert migrate_text(result.new_text, "k.py", Options()).kernels[0].disposition == "unchanged"


def test_a_kernel_that_needs_nothing_stays() -> None:
    text = kernel("T.tile.fill(t[:4, :], 0.0)", "T.tile.mul(t, t, 2.0)")
    result = migrate_text(text, "k.py", Options())
    assert [k.disposition for k in result.kernels] == ["unchanged"]


def test_values() -> None:
    text = kernel("T.tile.mul(t, t, A[1, 3])").replace(", n: T.int32", "").replace("(rows, long)", "(8, 8)")
    new = migrate_text(text, "k.py", Options()).new_text
    assert new is not None
    a = np.random.default_rng(6).standard_normal((64, 64)).astype(np.float32)
    np.testing.assert_allclose(run(new, {"A": a})["C"], a * a[1, 3], rtol=1e-6)
