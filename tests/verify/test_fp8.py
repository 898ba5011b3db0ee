"""``verify --fp8 float16``: float16 stands for the 8-bit floats of the old kernel."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.verify.support import by_calls, codes
from tl2npu.migration import migrate_text
from tl2npu.options import Options
from tl2npu.verify.recording import Recording, widened
from tl2npu.verify.settings import Call

OLD = """import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[1])
def third(rows, dtype="float8_e4m3fn", out="float8_e4m3fn"):
    @T.prim_func
    def main(A: T.Tensor((rows, 64), dtype), B: T.Tensor((rows, 64), out)):
        with T.Kernel(rows // 32, threads=128) as bx:
            a = T.alloc_shared((32, 64), dtype)
            b = T.alloc_fragment((32, 64), "float32")
            T.copy(A[bx * 32, 0], a)
            for i, j in T.Parallel(32, 64):
                b[i, j] = T.cast(a[i, j], "float32") / 3.0
            T.copy(b, B[bx * 32, 0])

    return main
"""
NEW = migrate_text(OLD, "k.py", Options(fp8="float16")).new_text or ""
NARROW = Call("third", {"rows": 64})
EXACT = Call("third", {"rows": 64, "out": "float32"})
BY_NAME = Call("third", {"rows": 64, "dtype": "float8_e5m2", "out": "float16"})


@pytest.mark.parametrize("call", [NARROW, EXACT, BY_NAME], ids=str)
def test_old_and_new_agree(call: Call) -> None:
    result = by_calls(OLD, NEW, call, fp8="float16")
    assert codes(result) == []
    (kernel,) = result.kernels
    assert kernel.status == "verified"
    own = [comparison for comparison in result.comparisons if not comparison.draw]
    rounds = call is NARROW  # to 3 bits of mantissa: a difference is to be seen
    assert ((own[0].max_error or 0.0) > 1e-2) == rounds


def test_without_the_option_the_types_differ() -> None:
    old = OLD.replace("64), dtype)", "64), 'float8_e5m2')")
    new = migrate_text(old, "k.py", Options(fp8="float16")).new_text or ""
    assert "TL907" in codes(by_calls(old, new, EXACT))
    assert codes(by_calls(old, new, EXACT, fp8="float16")) == []


@pytest.mark.parametrize(("call", "factor"), [(NARROW, "2.3"), (EXACT, "2.9999")], ids=str)
def test_other_numbers_are_found(call: Call, factor: str) -> None:
    """A quarter too much is more than fp8 rounds; where the old kernel does not round, next to nothing is allowed."""
    wrong = NEW.replace("/ 3.0", f"/ {factor}")
    assert wrong != NEW
    assert "TL907" in codes(by_calls(OLD, wrong, call, fp8="float16"))


def test_a_recorded_launch_is_the_same_in_float16() -> None:
    values = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e5m2)
    plain = np.ones(4, np.float32)
    names = frozenset[str]()
    arrays = {"A": values, "B": plain}
    tolerances = {"float8_e5m2": 0.25, "float16": 1e-3, "float32": 1e-5}
    kept = Recording(
        *(0, "k", 0, "f()", "f", {"dtype": "float8_e5m2", "name": "fp8", "n": 8}, ("A", "B"), names, names, ("A",)),
        *(("B",), tolerances, arrays, arrays, {}, {}, {}, {}),
    )
    found = widened(kept)
    assert found.arguments == {"dtype": "float16", "name": "fp8", "n": 8}
    assert found.inputs["A"].dtype == found.outputs["A"].dtype == np.float16
    np.testing.assert_array_equal(found.inputs["A"].astype(np.float64), values.astype(np.float64))
    assert found.inputs["B"] is plain
    assert (found.tolerance("A", "float16"), found.tolerance("B", "float32")) == (0.25, 1e-5)
