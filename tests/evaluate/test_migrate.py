"""``migrate`` with the check: a fault in a pass is refused, and written only where nobody wants to know."""

from __future__ import annotations

import pytest

from tests.evaluate.support import gpu
from tests.late_products import late_products
from tl2npu.migration import migrate_text
from tl2npu.options import Options
from tl2npu.printed import remembering

PRODUCT = """
x = T.alloc_shared((16, 16), "float16")
c = T.alloc_fragment((16, 16), "float32")
T.clear(c)
for k in T.serial(T.ceildiv(N, 16)):
    T.copy(X[b * 16, k * 16], x)
    T.gemm(x, x, c, transpose_B=True)
T.copy(c, Y[b * 16, 0])
"""
TEXT = gpu(PRODUCT, tensors='X: T.Tensor((M, N), "float16"), Y: T.Tensor((M, 16), "float32")')


def test_a_right_kernel_is_checked() -> None:
    (kernel,) = migrate_text(TEXT, "k.py", Options()).kernels
    assert kernel.disposition == "migrated"
    assert kernel.checked is not None
    assert kernel.checked.equal, kernel.checked.why
    assert kernel.checked.sizes == "M=32, N=32"


@pytest.mark.parametrize("value", ["0.5 * v * (1.0 + T.erf(v * 0.70710678))", "1.0 - T.erf(v)", "T.log1p(T.exp(v))"])
def test_digits_that_cancel_are_no_difference(value: str) -> None:
    """GELU by erf is 0 where 1 + erf is: there the formula of erf would show each of its digits."""
    body = f"""
x = T.alloc_fragment((16, N), "float32")
T.copy(X[b * 16, 0], x)
for i, j in T.Parallel(16, N):
    x[i, j] = {value.replace("v", "x[i, j]")}
T.copy(x, Y[b * 16, 0])
"""
    (kernel,) = migrate_text(gpu(body, params="M=32, N=64"), "k.py", Options()).kernels
    assert kernel.disposition == "migrated"
    assert kernel.checked is not None
    assert kernel.checked.equal, kernel.checked.why


@pytest.mark.parametrize("checks", [True, False])
def test_a_fault_of_a_pass(checks: bool) -> None:
    with late_products():
        result = migrate_text(TEXT, "k.py", Options(self_check=checks))
    (kernel,) = result.kernels
    assert kernel.checked is None
    assert kernel.disposition == ("refused" if checks else "migrated")
    assert (result.new_text == TEXT) == checks
    found = [item for item in result.diagnostics if item.code == "TL970"]
    assert bool(found) == checks
    if checks:
        (item,) = found
        assert TEXT.split("\n")[item.line - 1].strip() == "T.gemm(x, x, c, transpose_B=True)"
        assert "the first to differ is `c` behind this statement, which `T.gemm_v0(" in item.message


def test_the_pass_that_is_wrong() -> None:
    with late_products(), remembering():
        result = migrate_text(TEXT, "k.py", Options())
    (item,) = [item for item in result.diagnostics if item.code == "TL970"]
    assert item.message.endswith("; the values are wrong since pass `gpu.memory.assignment`")


def test_passes_are_remembered_only_where_that_is_asked_for() -> None:
    with late_products():
        result = migrate_text(TEXT, "k.py", Options())
    assert "since pass" not in next(item.message for item in result.diagnostics if item.code == "TL970")


UNDER_A_SWITCH = """
import tilelang
import tilelang.language as T


@T.macro
def put(x: T.Ref):
    x = 7


def build(biased: bool = False, scaled=None):
    @tilelang.jit
    def factory(n=64):
        @T.macro
        def body(X, Y, B):
            with T.Kernel(T.ceildiv(n, 32), threads=128) as b:
                x = T.alloc_shared((32,), "float32")
                T.copy(X[b * 32], x)
                for i in T.Parallel(32):
                    if biased:
                        x[i] = x[i] + B[b * 32 + i]
                T.copy(x, Y[b * 32])
                put(Y[b * 32])

        if biased:

            @T.prim_func
            def main(X: T.Tensor((n,), "float32"), Y: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
                body(X, Y, B)

            return main

    return factory
"""


def test_a_kernel_is_evaluated_under_the_conditions_that_it_is_built_under() -> None:
    (kernel,) = migrate_text(UNDER_A_SWITCH, "k.py", Options()).kernels
    assert kernel.disposition == "migrated"
    assert kernel.checked is not None
    assert kernel.checked.equal, kernel.checked.why


def test_what_an_arm_defines_for_the_kernel_in_it() -> None:
    """Whatever is guessed of `negative`, each kernel is evaluated with the names of the arm that builds it."""
    arm = """
        @T.prim_func
        def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
            with T.Kernel(T.ceildiv(M, 16), threads=128) as b:
                x = T.alloc_fragment((16, N), "float32")
                T.copy(X[b * 16, 0], x)
                for i, j in T.Parallel(16, N):
                    x[i, j] = x[i, j] * {}
                T.copy(x, Y[b * 16, 0])
"""
    text = (
        "import tilelang\nimport tilelang.language as T\n\n\n@tilelang.jit\ndef scale(N, negative):\n"
        f'    M = T.dynamic("M")\n    if negative:\n{arm.format(-2.0)}\n    else:\n{arm.format(2.0)}\n    return main\n'
    )
    result = migrate_text(text, "k.py", Options(fixed_core=True))
    assert "core_num = 24" in (result.new_text or "")
    assert [kernel.checked is not None and kernel.checked.equal for kernel in result.kernels] == [True, True]
