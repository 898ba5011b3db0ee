"""Macros and helpers are written where the kernel calls them."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

from tests.passes.gpu.one_pass import after, job_of
from tests.passes.gpu.support import IMPORTS, agree, gpu_file, result_of
from tests.passes.simulated import run
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.model import Inlined
from tl2npu.passes.plain.macros.inline import inline

PARAMS = "A: T.Tensor((64, 32), 'float32'), B: T.Tensor((64, 32), 'float32')"
START = "a = T.alloc_fragment((32, 32), 'float32')\nT.copy(A[bx * 32, 0], a)\n"
END = "\nT.copy(a, B[bx * 32, 0])"


def kernel(body: str, *, macros: str = "", inside: str = "", nested: str = "", args: str = "") -> str:
    """A kernel with macros of the module, of the factory or of the kernel itself."""
    head = IMPORTS.rstrip("\n") + "\n\n\n" + (textwrap.dedent(macros).strip("\n") + "\n\n\n" if macros else "")
    body = textwrap.dedent(nested) + START + textwrap.dedent(body).strip("\n") + END
    return gpu_file(PARAMS, body, head=head, factory=inside, args=args)


def same(old: str, expected: str) -> None:
    """The text comes out as expected, means the same, and holds no more calls."""
    new = after(inline, old)
    assert new == expected
    assert not any(isinstance(stmt, Inlined) for stmt in job_of(new).kernel.walk())
    inputs = {"A": np.arange(64 * 32, dtype=np.float32).reshape(64, 32) / 7}
    before, found = run(old, inputs), run(new, inputs)
    np.testing.assert_array_equal(found["B"], before["B"])
    assert not np.array_equal(found["B"], inputs["A"])


SCALE = """
@T.macro
def scale(x, by):
    for i, j in T.Parallel(32, 32):
        x[i, j] = x[i, j] * by
"""
SCALED = """
for i, j in T.Parallel(32, 32):
    a[i, j] = a[i, j] * 2.0
"""


def test_macro_of_the_module() -> None:
    same(kernel("scale(a, 2.0)", macros=SCALE), kernel(SCALED))


def test_macro_of_the_factory() -> None:
    same(kernel("scale(a, 2.0)", inside=SCALE), kernel(SCALED))


def test_macro_in_the_kernel() -> None:
    same(kernel("scale(a, 2.0)", nested=SCALE.strip("\n") + "\n\n"), kernel(SCALED))


def test_keywords_defaults_and_the_decorator_with_parentheses() -> None:
    macro = SCALE.replace("x, by", "x, by=2.0").replace("@T.macro", "@T.macro()")
    same(kernel("scale(x=a)", macros=macro), kernel(SCALED))


def test_plain_function_that_makes_a_buffer() -> None:
    macro = "def tile_like(x, n):\n    return T.alloc_fragment((n, 32), x.dtype)\n"
    body = "b = tile_like(a, 32)\nT.fill(b, 3.0)\nT.copy(b, a)"
    expected = "b = T.alloc_fragment((32, 32), a.dtype)\nT.fill(b, 3.0)\nT.copy(b, a)"
    same(kernel(body, macros=macro), kernel(expected))


def test_called_twice_and_still_used_by_host_code() -> None:
    old = kernel("scale(a, 2.0)\nscale(a, 3.0)", macros=SCALE) + "\nprint(scale)\n"
    second = SCALED.replace("2.0", "3.0")
    same(old, kernel(SCALED.strip("\n") + second, macros=SCALE) + "\nprint(scale)\n")


def test_operands_are_put_in_parentheses_where_they_need_it() -> None:
    old = kernel("scale(a, bx + 1)", macros=SCALE)
    same(old, kernel(SCALED.replace("2.0", "(bx + 1)")))


def test_comments_survive() -> None:
    macro = """
    @T.macro
    def twice(x):
        \"\"\"Doubles.\"\"\"
        # the loop
        for i, j in T.Parallel(32, 32):
            x[i, j] += x[i, j]  # the sum
        # the end
    """
    expected = """
    # at the call
    # the loop
    # the end
    for i, j in T.Parallel(32, 32):
        a[i, j] += a[i, j]  # the sum
    """
    same(kernel("twice(a)  # at the call", macros=macro), kernel(expected))


def test_locals_that_clash_are_renamed() -> None:
    macro = """
    @T.macro
    def add_row(x, k):
        row = k + 1
        for i, j in T.Parallel(32, 32):
            x[i, j] = x[i, j] + row
    """
    body = "row = bx * 2\nadd_row(a, row)\nfor i, j in T.Parallel(32, 32):\n    a[i, j] += row"
    expected = """
    row = bx * 2
    row_2 = row + 1
    for i, j in T.Parallel(32, 32):
        a[i, j] = a[i, j] + row_2
    for i, j in T.Parallel(32, 32):
        a[i, j] += row
    """
    same(kernel(body, macros=macro), kernel(expected))


def test_variables_of_loops_around_the_call_are_not_taken() -> None:
    macro = """
    @T.macro
    def bump(x, n):
        for i in T.serial(32):
            x[n, i] = x[n, i] + n
    """
    expected = """
    for i in T.serial(32):
        for i_2 in T.serial(32):
            a[i, i_2] = a[i, i_2] + i
    """
    same(kernel("for i in T.serial(32):\n    bump(a, i)", macros=macro), kernel(expected))


def test_nested_macros() -> None:
    macros = SCALE.strip("\n") + "\n\n\n@T.macro\ndef outer(x):\n    scale(x, 2.0)\n"
    same(kernel("outer(a)", macros=macros), kernel(SCALED))


def test_value_of_a_macro() -> None:
    macro = """
    @T.macro
    def shifted(x, n):
        t = T.alloc_fragment((32, 32), 'float32')
        for i, j in T.Parallel(32, 32):
            t[i, j] = x[i, j] + n
        return t
    """
    body = "b = shifted(a, bx)\nT.copy(b, a)"
    expected = """
    b = T.alloc_fragment((32, 32), 'float32')
    for i, j in T.Parallel(32, 32):
        b[i, j] = a[i, j] + bx
    T.copy(b, a)
    """
    same(kernel(body, macros=macro), kernel(expected))


def test_value_inside_an_expression() -> None:
    macro = """
    def next_of(x):
        y = x + 1
        return y * 2
    """
    body = "for i, j in T.Parallel(32, 32):\n    a[i, j] = next_of(a[i, j]) - 1"
    expected = """
    for i, j in T.Parallel(32, 32):
        y = a[i, j] + 1
        a[i, j] = y * 2 - 1
    """
    same(kernel(body, macros=macro), kernel(expected))


def test_value_of_one_expression() -> None:
    macro = "def mean(x, y):\n    return (x + y) / 2\n"
    body = "for i, j in T.Parallel(32, 32):\n    a[i, j] = mean(a[i, j], a[j, i] * 2) + 1"
    expected = "for i, j in T.Parallel(32, 32):\n    a[i, j] = (a[i, j] + a[j, i] * 2) / 2 + 1"
    same(kernel(body, macros=macro), kernel(expected))


def test_several_values() -> None:
    macro = """
    @T.macro
    def bounds(n):
        lo = n * 32
        return lo, lo + 32
    """
    body = "first, last = bounds(bx)\nfor i, j in T.Parallel(32, 32):\n    a[i, j] += last - first"
    expected = """
    lo = bx * 32
    first, last = lo, lo + 32
    for i, j in T.Parallel(32, 32):
        a[i, j] += last - first
    """
    same(kernel(body, macros=macro), kernel(expected))


BUMP = """
@T.macro
def bump(place: T.Ref, n):
    place = place + n
"""


def test_reference_to_a_variable() -> None:
    body = "v = T.alloc_var('int32')\nv = 1\nfor i in T.serial(3):\n    bump(v, 3)\na[0, 0] = v"
    same(kernel(body, macros=BUMP), kernel(body.replace("bump(v, 3)", "v = v + 3")))


def test_reference_to_an_element() -> None:
    body = "for i in T.serial(32):\n    bump(a[i, 0], 3)"
    assert after(inline, kernel(body, macros=BUMP)) == kernel(body.replace("bump(a[i, 0], 3)", "a[i, 0] = a[i, 0] + 3"))


def test_value_of_an_element_is_taken_at_the_call() -> None:
    """``first`` is the old element also after the macro has changed it."""
    macro = """
    @T.macro
    def spread(x, first):
        for j in T.serial(32):
            x[0, j] = x[0, j] + first
    """
    expected = """
    first = a[0, 0]
    for j in T.serial(32):
        a[0, j] = a[0, j] + first
    """
    same(kernel("spread(a, a[0, 0])", macros=macro), kernel(expected))


def test_part_of_a_buffer_as_argument() -> None:
    macro = "@T.macro\ndef load(source, part):\n    T.copy(source, part)\n    T.copy(part, part)\n"
    body = "load(A[0:16, :], a[16:32, :])"
    same(kernel(body, macros=macro), kernel("T.copy(A[0:16, :], a[16:32, :])\nT.copy(a[16:32, :], a[16:32, :])"))


def test_host_arithmetic_stays() -> None:
    macro = "def double(n):\n    return n * 2\n"
    text = kernel("scale(a, 2.0)", macros=macro, args="n=4").replace("scale(a, 2.0)", "T.copy(a, a)")
    text = text.replace("args", "args").replace("T.Kernel(2,", "T.Kernel(double(1),")
    assert after(inline, text) == text


def test_several_values_of_host_arithmetic() -> None:
    helper = "def window(n):\n    return n * 32, (n + 1) * 32\n"
    body = "first, last = window(bx)\nfor i, j in T.Parallel(32, 32):\n    a[i, j] += last - first"
    same(kernel(body, macros=helper), kernel(body.replace("window(bx)", "bx * 32, (bx + 1) * 32")))


def test_definition_stays_for_another_kernel() -> None:
    text = kernel("scale(a, 2.0)", inside=SCALE)
    other = text[text.index("    @T.prim_func") : text.index("    return main")].replace("def main", "def other")
    text = text.replace("    return main", other + "    return main")
    new = after(inline, text)
    assert "def scale" in new
    assert new.count("scale(a, 2.0)") == 1
    assert "def scale" not in after(inline, new, kernel=1)


LAUNCHES = """import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[2])
def factory():
    @T.macro
    def first(X: T.Tensor((256, 64), "float32"), part: T.Tensor((256, 64), "float32")):
        with T.Kernel(4, threads=128) as bx:
            x = T.alloc_fragment((64, 64), "float32")
            T.copy(X[bx * 64, 0], x)
            for i, j in T.Parallel(64, 64):
                x[i, j] = x[i, j] * 2.0
            T.copy(x, part[bx * 64, 0])

    @T.macro
    def second(part: T.Tensor((256, 64), "float32"), out: T.Tensor((256, 64), "float32")):
        with T.Kernel(2, threads=128) as bx:
            x = T.alloc_fragment((128, 64), "float32")
            T.copy(part[bx * 128, 0], x)
            for i, j in T.Parallel(128, 64):
                x[i, j] = x[i, j] + 2.0
            T.copy(x, out[bx * 128, 0])

    @T.prim_func
    def main(
        X: T.Tensor((256, 64), "float32"), P: T.Tensor((256, 64), "float32"), Y: T.Tensor((256, 64), "float32")
    ):
        first(X, P)
        second(P, Y)

    return main
"""


def test_launch_in_a_macro() -> None:
    text = LAUNCHES.replace("        second(P, Y)\n", "").replace("out_idx=[2]", "out_idx=[1]")
    new = agree(text, {"X": np.arange(256 * 64, dtype=np.float32).reshape(256, 64)})
    assert "def first" not in new
    assert "def second" in new  # nobody asked for it before either


def test_launches_in_macros() -> None:
    result = result_of(LAUNCHES)
    assert [kernel.disposition for kernel in result.kernels] == ["migrated"]
    new = result.new_text
    assert new is not None
    assert "T.macro" not in new
    assert new.count("is_npu=True) as (bx)") == 2
    assert "T.copy(x, P[bx * 64, 0])" in new
    assert "T.copy(P[bx * 128, 0], x)" in new
    assert result_of(new).new_text == new


def test_launches_in_macros_that_cannot_be_separated_stay() -> None:
    text = LAUNCHES.replace("        second(P, Y)\n", "        second(P, Y)\n        first(Y, X)\n        f(X)\n")
    result = result_of(text)
    assert result.new_text == text
    assert [kernel.disposition for kernel in result.kernels] == ["refused"]


OPTIONAL = """import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[1])
def factory(shifted=True):
    @T.macro
    def body(X, Y, S):
        with T.Kernel(4, threads=128) as bx:
            x = T.alloc_fragment((64, 64), "float32")
            T.copy(X[bx * 64, 0], x)
            for i, j in T.Parallel(64, 64):
                if shifted:
                    x[i, j] = x[i, j] + S[j]
                else:
                    x[i, j] = x[i, j] * 2.0
            for i, j in T.Parallel(64, 64):
                x[i, j] = T.max(x[i, j], 0.0 if S is None else S[0])
            T.copy(x, Y[bx * 64, 0])

    CHOICE
        @T.prim_func
        def with_shift(
            X: T.Tensor((256, 64), "float32"), Y: T.Tensor((256, 64), "float32"), S: T.Tensor((64,), "float32")
        ):
            body(X, Y, S)

        return with_shift

    @T.prim_func
    def plain(X: T.Tensor((256, 64), "float32"), Y: T.Tensor((256, 64), "float32")):
        body(X, Y, None)

    return plain
"""


@pytest.mark.parametrize("shifted", [True, False])
def test_a_tensor_that_is_not_always_there(shifted: bool) -> None:
    text = OPTIONAL.replace("CHOICE", "if shifted:")
    result = result_of(text)
    assert [kernel.disposition for kernel in result.kernels] == ["migrated", "migrated"]
    new = result.new_text
    assert new is not None
    assert "None" not in new
    assert new.count("if shifted") == 1
    generator = np.random.default_rng(2)
    x, s = (generator.standard_normal(shape).astype(np.float32) for shape in ((256, 64), (64,)))
    found = run(new, {"X": x, "S": s}, args=(shifted,))["Y"]
    expected = np.maximum(x + s, s[0]) if shifted else np.maximum(x * 2, 0)
    np.testing.assert_allclose(found, expected, 1e-6, 1e-6)


PRODUCT = """import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-2, -1] if both else [-1])
def factory(both=True):
    @T.macro
    def body(A, B, C, D):
        with T.Kernel(2, threads=128) as bx:
            a = T.alloc_shared((64, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(A[bx * 64, 0], a)
            T.copy(B, b)
            T.clear(c)
            T.gemm(a, b, c)
            for i, j in T.Parallel(64, 64):
                c[i, j] = T.max(c[i, j], 0.0)
            T.copy(c, C[bx * 64, 0])
            if both:
                T.copy(c, D[bx * 64, 0])

    if both:

        @T.prim_func
        def two(
            A: T.Tensor((128, 64), "float16"),
            B: T.Tensor((64, 64), "float16"),
            C: T.Tensor((128, 64), "float32"),
            D: T.Tensor((128, 64), "float32"),
        ):
            body(A, B, C, D)

        return two

    @T.prim_func
    def one(
        A: T.Tensor((128, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((128, 64), "float32")
    ):
        body(A, B, C, None)

    return one
"""


def test_outputs_that_the_place_of_a_kernel_decides() -> None:
    head = "import tilelang\nimport tilelang.language as T\n\n\n"
    factory = PRODUCT.removeprefix(head).replace("@tilelang.jit", "    @tilelang.jit", 1)
    lines = factory.split("\n")
    inner = "\n".join([lines[0], *(f"    {line}" if line else "" for line in lines[1:])])
    text = (
        head
        + "def outer(both=True):\n"
        + inner.replace("def factory(both=True)", "def factory()")
        + "\n    return factory\n"
    )
    result = result_of(text)
    assert [kernel.disposition for kernel in result.kernels] == ["migrated", "migrated"]
    assert result.new_text is not None
    assert "out_idx=[2, 3] if both else [2]" in result.new_text


@pytest.mark.parametrize(
    "choice",
    [
        "if X0 > 3:",  # no plain name
        "shifted = shifted and X0 > 3\n    if shifted:",  # the name gets another value on the way
        "for shifted in (False, True):\n     if shifted:\n      pass\n    if X0 > 3:",
    ],
)
def test_a_condition_that_the_place_does_not_decide(choice: str) -> None:
    text = "X0 = 5\n" + OPTIONAL.replace("CHOICE", choice)
    result = result_of(text)
    by_name = {kernel.name.rpartition(".")[2]: kernel.disposition for kernel in result.kernels}
    assert by_name["plain"] == "refused"
    assert result.new_text is not None
    assert "if shifted:\n                    x[i, j] = x[i, j] + S[j]" in result.new_text


@pytest.mark.parametrize(
    ("macro", "call"),
    [
        ("@T.macro\ndef f(x):\n    f(x)\n", "f(a)"),
        ("@T.macro\ndef f(x):\n    if bx > 0:\n        return 1\n    return 2\n", "v = f(a)"),
        ("@T.macro\ndef f(*x):\n    T.clear(x[0])\n", "f(a)"),
        ("@T.macro\ndef f(x, y):\n    T.clear(x)\n", "f(a)"),
        ("@T.macro\ndef f(x):\n    T.clear(x)\n", "v = f(a)"),
        ("@T.macro\ndef f(x):\n    T.clear(x)\n    return 1\n", "if f(a) > 0:\n    T.clear(a)"),
        ("@T.macro\ndef f(x):\n    x[0] = 1\n", "f(a[3, :])"),
        ("def f(x):\n    T.fill(x, 1)\n", "f(a)"),
        ("SIZE = 3\n\n\n@T.macro\ndef f(x):\n    T.fill(x, SIZE)\n", "SIZE = bx\nf(a)"),
        # written out twice in each round, or read twice at each depth, these would never come to an end
        ("@T.macro\ndef f(x, n):\n    if n > 0:\n        f(x, n // 2)\n    else:\n        f(x, n - 1)\n", "f(a, 7)"),
        ("@T.macro\ndef f(x):\n    g(x)\n    g(x)\n\n\n@T.macro\ndef g(x):\n    f(x)\n    f(x)\n", "f(a)"),
    ],
)
def test_refused(macro: str, call: str) -> None:
    with pytest.raises(Blocked) as caught:
        after(inline, kernel(call, macros=macro))
    assert caught.value.code == "TL118"
