"""Kernels that look different and mean the same: ``B[i] = 2 * A[i]`` where ``A[i] > 0``, else ``-A[i]``."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tl2npu.simulator.errors import SimulatorError

Script = Callable[[str], dict[str, Any]]

FRAME = """
import functools
import numpy as np
import tilelang
import tilelang.language as T
{module}

@tilelang.jit(out_idx=[1])
def make(n=12, factor=2):
{factory}
    @T.prim_func
    def main(A: T.Tensor((n,), "int32"), B: T.Tensor((n,), "int32")):
        with T.Kernel(1, threads=32) as bx:
{body}
    return main

a = np.arange(12, dtype="int32") * 7 % 11 - 5
b = make()(a)
"""

VARIANTS: dict[str, tuple[str, str, str]] = {}


def variant(name: str, body: str, factory: str = "", module: str = "") -> None:
    """Registers the body of the launch, what the factory defines before it, and what the module does."""
    VARIANTS[name] = (body, factory, module)


variant(
    "if",
    """
for i in range(n):
    if A[i] > 0:
        B[i] = 2 * A[i]
    else:
        B[i] = -A[i]
""",
)
variant(
    "elif",
    """
for i in T.serial(n):
    if A[i] > 3:
        B[i] = A[i] * factor
    elif A[i] > 0:
        B[i] = A[i] + A[i]
    elif A[i] == 0:
        B[i] = 0
    else:
        B[i] = 0 - A[i]
""",
)
variant(
    "conditional expression",
    """
for i in range(n):
    B[i] = 2 * A[i] if A[i] > 0 else -A[i]
""",
)
variant(
    "if_then_else",
    """
for i in T.Parallel(n):
    B[i] = T.if_then_else(A[i] > 0, 2 * A[i], -A[i])
""",
)
variant(
    "parallel with a branch",
    """
for i in T.Parallel(n):
    if A[i] > 0:
        B[i] = A[i] << 1
    else:
        B[i] = -A[i]
""",
)
variant(
    "not",
    """
for i in range(n):
    if not A[i] > 0:
        B[i] = -A[i]
    else:
        B[i] = 2 * A[i]
""",
)
variant(
    "and, or",
    """
for i in range(n):
    x = A[i]
    if (x > 0 and x < 100) or x == 100:
        B[i] = 2 * x
    if x < 0 or not (x > 0):
        B[i] = -x
""",
)
variant(
    "chained comparison",
    """
for i in range(n):
    if 0 < A[i] <= 1000:
        B[i] = 2 * A[i]
    if -1000 <= A[i] < 1 <= factor:
        B[i] = -A[i]
""",
)
variant(
    "max",
    """
for i in range(n):
    B[i] = max(2 * A[i], -A[i])
""",
)
variant(
    "T.max in parallel",
    """
for i in T.Parallel(n):
    B[i] = T.max(A[i] * 2, A[i] * (0 - 1))
""",
)
variant(
    "start, stop and step",
    """
for i in T.serial(0, n, 2):
    B[i] = max(2 * A[i], -A[i])
for i in range(1, n, 2):
    B[i] = max(2 * A[i], -A[i])
""",
)
variant(
    "backwards",
    """
for i in range(n - 1, -1, -1):
    B[i] = max(2 * A[i], -A[i])
""",
)
variant(
    "unroll",
    """
for i in T.unroll(n):
    B[i] = max(2 * A[i], -A[i])
""",
)
variant(
    "python list",
    """
for start in [0, 4, 8]:
    for i in range(4):
        B[start + i] = max(2 * A[start + i], -A[start + i])
""",
)
variant(
    "enumerate and zip",
    """
for k, (lo, hi) in enumerate(zip([0, 6], [6, 12])):
    for i in range(lo, hi):
        B[i] = max(2 * A[i], -A[i]) + 0 * k
""",
)
variant(
    "nested loops",
    """
for i in range(3):
    for j in range(4):
        B[i * 4 + j] = max(2 * A[i * 4 + j], -A[i * 4 + j])
""",
)
variant(
    "grid",
    """
for i, j in T.grid(3, 4):
    B[i * 4 + j] = max(2 * A[i * 4 + j], -A[i * 4 + j])
""",
)
variant(
    "two parallel variables",
    """
for i, j in T.Parallel(3, 4):
    B[i * 4 + j] = max(2 * A[i * 4 + j], -A[i * 4 + j])
""",
)
variant(
    "one name for two parallel variables",
    """
for ij in T.Parallel(3, 4):
    B[ij[0] * 4 + ij[1]] = max(2 * A[ij[0] * 4 + ij[1]], -A[ij[0] * 4 + ij[1]])
""",
)
variant(
    "while",
    """
i = T.alloc_var("int32", init=0)
while i < n:
    B[i] = max(2 * A[i], -A[i])
    i = i + 1
""",
)
variant(
    "while with augmented assignment",
    """
i = T.alloc_var("int32", init=n)
while i > 0:
    i -= 1
    B[i] = max(2 * A[i], -A[i])
""",
)
variant(
    "break",
    """
for i in range(1000):
    if i >= n:
        break
    B[i] = max(2 * A[i], -A[i])
""",
)
variant(
    "continue",
    """
for i in range(n):
    if A[i] > 0:
        B[i] = 2 * A[i]
        continue
    B[i] = -A[i]
""",
)
variant(
    "break in an unrolled loop",
    """
for start in [0, 4, 8, 12, 16]:
    if start >= 12:
        break
    if start == 99:
        continue
    for i in range(4):
        B[start + i] = max(2 * A[start + i], -A[start + i])
""",
)
variant(
    "alloc_var in a loop",
    """
x = T.alloc_var("int32")
for i in range(n):
    x = A[i]
    if x > 0:
        x = x * 2
    else:
        x = -x
    B[i] = x
""",
)
variant(
    "alloc_var through another",
    """
x = T.alloc_var("int32", init=5)
y = T.alloc_var("int32", init=7)
for i in range(n):
    x = A[i]
    y = x
    x = 77
    B[i] = max(2 * y, -y)
""",
)
variant(
    "swap",
    """
x = T.alloc_var("int32")
y = T.alloc_var("int32")
for i in range(n):
    x = 2 * A[i]
    y = -A[i]
    if x < y:
        x, y = y, x
    B[i] = x
""",
)
variant(
    "augmented store",
    """
for i in range(n):
    B[i] = A[i]
    if A[i] > 0:
        B[i] += A[i]
    else:
        B[i] -= 2 * A[i]
""",
)
variant(
    "augmented store, index read once",
    """
k = T.alloc_var("int32", init=0)
for i in range(n):
    B[i] = A[i]
    B[k] *= 2 if A[i] > 0 else -1
    k += 1
""",
)
variant(
    "named value",
    """
for i in range(n):
    x = A[i]
    double, negative = 2 * x, -x
    B[i] = max(double, negative)
""",
)
variant(
    "nested unpacking",
    """
for i in range(n):
    (x, y), z = (A[i], 2), [-1]
    B[i] = max(x * y, x * z[0])
""",
)
variant(
    "one value for two names",
    """
for i in range(n):
    x = y = A[i]
    B[i] = max(x + y, x - 2 * y)
""",
)
variant(
    "a name holds what was read",
    """
for i in range(n):
    x = A[i]
    B[i] = x
    y = B[i]
    B[i] = 0
    B[i] = max(x + y, -y)
""",
)
variant(
    "walrus",
    """
for i in range(n):
    B[i] = 2 * x if (x := A[i]) > 0 else -x
""",
)
variant(
    "annotated name",
    """
for i in range(n):
    x: T.int32 = A[i]
    B[i] = max(2 * x, -x)
""",
)
variant(
    "constant branch",
    """
if factor == 2:
    for i in range(n):
        B[i] = max(2 * A[i], -A[i])
else:
    T.no_such_operator(A)
""",
)
variant(
    "macro",
    """
rectify(A, B)
""",
    """
@T.macro
def rectify(source, target):
    for i in range(n):
        target[i] = max(factor * source[i], -source[i])
""",
)
variant(
    "macro of a macro, keywords and defaults",
    """
for i in range(n):
    outer(A, B, at=i)
""",
    """
@T.macro
def one(source, target, at, by=2, *, low=0):
    if source[at] > low:
        target[at] = by * source[at]
    else:
        target[at] = -source[at]

@T.macro
def outer(source, target, at):
    one(source, target, at, low=0)
""",
)
variant(
    "macro of the module",
    """
for i in range(n):
    rectify(A, B, i)
""",
    "",
    """
@T.macro
def rectify(source, target, i):
    target[i] = max(FACTOR * source[i], -source[i])

FACTOR = 2
""",
)
variant(
    "macro that gives a value",
    """
for i in range(n):
    x = rectified(A[i])
    B[i] = x
""",
    """
@T.macro
def rectified(x):
    return T.max(2 * x, -x)
""",
)
variant(
    "macro in the prim_func",
    """
@T.macro
def rectify(i):
    B[i] = max(2 * A[i], -A[i])

for i in range(n):
    rectify(i)
""",
)
variant(
    "macro that is a method",
    """
tools.rectify(A, B)
""",
    """
class Tools:
    def __init__(self, by):
        self.by = by

    @T.macro
    def rectify(self, source, target):
        for i in range(n):
            target[i] = max(self.by * source[i], -source[i])

tools = Tools(factor)
""",
)
variant(
    "macro with a loop that is left",
    """
until(A, B)
""",
    """
@T.macro
def until(source, target):
    for i in range(100):
        if i == n:
            break
        target[i] = max(2 * source[i], -source[i])
""",
)
variant(
    "macro that assigns to a variable",
    """
x = T.alloc_var("int32")
for i in range(n):
    put(x, A[i])
    B[i] = x
""",
    """
@T.macro
def put(x: T.Ref, value):
    x = T.max(2 * value, -value)
""",
)
variant(
    "plain function of values",
    """
for i in range(n):
    B[i] = rectified(A[i])
""",
    """
def rectified(x):
    return T.max(2 * x, -x)
""",
)
variant(
    "lambda",
    """
twice = lambda x: x * 2
for i in range(n):
    B[i] = max(twice(A[i]), (lambda x: -x)(A[i]))
""",
)
variant(
    "lambda with a choice",
    """
pick = lambda x: 2 * x if x > 0 else -x
for i in range(n):
    B[i] = pick(A[i])
""",
)
variant(
    "partial and operator of the module",
    """
for i in range(n):
    B[i] = T.max(double(A[i]), operator.neg(A[i]))
""",
    """
double = functools.partial(operator.mul, 2)
""",
    "import operator",
)
variant(
    "alias of the language",
    """
for i in tl.serial(n):
    B[i] = language.max(2 * A[i], L["f"](A[i]))
""",
    """
L = {"f": lambda x: -x}
""",
    "import tilelang.language as tl\nfrom tilelang import language",
)
variant(
    "names imported from the language",
    """
for i in Parallel(n):
    B[i] = if_then_else(A[i] > 0, 2 * A[i], -A[i])
""",
    "",
    "from tilelang.language import Parallel, if_then_else",
)
variant(
    "negative index and slices",
    """
s = T.alloc_shared((n,), "int32")
T.copy(A[0:n], s)
for i in range(n - 1):
    B[i] = max(2 * s[i], -s[i])
B[-1] = max(2 * s[-1], -s[-1])
""",
)
variant(
    "slices with symbolic bounds",
    """
s = T.alloc_shared((4,), "int32")
for k in range(3):
    T.copy(A[k * 4 : (k + 1) * 4], s)
    for i in range(4):
        s[i] = max(2 * s[i], -s[i])
    T.copy(s, B[k * 4 : k * 4 + 4])
""",
)
variant(
    "open and negative bounds",
    """
s = T.alloc_shared((4,), "int32")
r = T.alloc_shared((8,), "int32")
T.copy(A[:4], s)
T.copy(A[4:], r)
for i in T.Parallel(4):
    s[i] = max(2 * s[i], -s[i])
for i in T.Parallel(8):
    r[i] = max(2 * r[i], -r[i])
T.copy(s, B[:-8])
T.copy(r, B[-8:])
""",
)
variant(
    "list of buffers",
    """
tiles = [T.alloc_shared((4,), "int32") for _ in range(3)]
for k, tile in enumerate(tiles):
    T.copy(A[k * 4], tile)
for tile in tiles:
    for i in T.Parallel(4):
        tile[i] = max(2 * tile[i], -tile[i])
T.copy(tiles[0], B[0])
T.copy(tiles[1], B[4])
T.copy(tiles[-1], B[8])
""",
)
variant(
    "a name for another thing in each loop",
    """
for i in range(6):
    x = 2 * A[i]
    B[i] = max(x, -A[i])
for i in range(6, n):
    x = -A[i]
    B[i] = max(x, 2 * A[i])
""",
)
variant(
    "docstring, pass, ellipsis, assert",
    '''
"""A text."""
...
pass
assert n == 12, "the size"
for i in range(n):
    B[i] = max(2 * A[i], -A[i])
''',
)
variant(
    "parentheses and line breaks",
    """
for i in range(
    n
):
    B[
        i
    ] = (
        max(2 * A[i],
            -A[i])
    )
""",
)


def _indented(text: str, columns: int) -> str:
    return textwrap.indent(text.strip("\n"), " " * columns)


def source(name: str) -> str:
    """The script of a variant."""
    body, factory, module = VARIANTS[name]
    return FRAME.format(module=module, factory=_indented(factory, 4), body=_indented(body, 12))


@pytest.mark.parametrize("name", VARIANTS)
def test_variant(script: Script, name: str) -> None:
    """Every variant gives what the formula gives."""
    found = script(source(name))
    a = found["a"]
    assert found["b"].dtype == np.int32
    np.testing.assert_array_equal(found["b"], np.where(a > 0, 2 * a, -a))


def test_the_globals_of_the_user_stay_as_they_are(script: Script) -> None:
    """Tracing leaves no name behind in the script, whatever it hooks into."""
    found = script(source("macro of the module"))
    assert not [name for name in found if "tl2npu" in name]


def test_postponed_annotations(script: Script) -> None:
    """Annotations as texts are looked up in all enclosing functions, the module and the closure."""
    found = script("""
        from __future__ import annotations
        import numpy as np
        import tilelang
        import tilelang.language as T

        WIDTH = 4

        def outer(rows, kind):
            columns = WIDTH

            @tilelang.jit(out_idx=[-1])
            def make(scale):
                @T.macro
                def put(target: T.Tensor, i, j, value: Undefined):
                    target[i, j] = value

                @T.prim_func
                def main(A: T.Tensor((rows, columns), kind), B: T.Tensor([rows, WIDTH], kind)):
                    with T.Kernel(rows, threads=32) as i:
                        for j in range(columns):
                            put(B, i, j, A[i, j] * scale)

                return main

            return make(5)

        b = outer(3, "int32")(np.arange(12, dtype="int32").reshape(3, 4))
    """)
    np.testing.assert_array_equal(found["b"], 5 * np.arange(12).reshape(3, 4))


def test_symbolic_shapes(script: Script) -> None:
    """Extents of a call: of one axis, in an expression of an output's shape, and in the grid."""
    found = script("""
        import numpy as np
        import tilelang
        import tilelang.language as T

        @tilelang.jit(out_idx=[-1])
        def make(block=4):
            n, m = T.symbolic("n"), T.dynamic("m")

            @T.prim_func
            def main(A: T.Tensor((n, m), "int32"), B: T.Tensor((n // 2, m + 1), "int32")):
                with T.Kernel(T.ceildiv(m, block), n // 2, threads=32) as (bx, by):
                    for j in range(block):
                        if bx * block + j < m:
                            B[by, bx * block + j] = A[by, bx * block + j] + A[by + n // 2, bx * block + j]
                    if bx == 0:
                        B[by, m] = n

            return main

        kernel = make()
        a = np.arange(4 * 7, dtype="int32").reshape(4, 7)
        b = kernel(a)
        c = np.arange(2 * 3, dtype="int32").reshape(2, 3)
        d = kernel(c)
    """)
    a, c = found["a"], found["c"]
    np.testing.assert_array_equal(found["b"], np.hstack([a[:2] + a[2:], [[4], [4]]]))
    np.testing.assert_array_equal(found["d"], np.hstack([c[:1] + c[1:], [[2]]]))


@pytest.mark.parametrize(
    ("extent", "right"), [("n + 1", True), ("1 + n", True), ("n * 1 - 1", True), ("n // 2", False)]
)
def test_a_symbol_that_is_in_a_sum_only(script: Script, extent: str, right: bool) -> None:
    text = f"""
        import numpy as np
        import tilelang
        import tilelang.language as T

        @tilelang.jit(out_idx=[-1])
        def make():
            n = T.dynamic("n")

            @T.prim_func
            def main(A: T.Tensor(({extent},), "int32"), B: T.Tensor((n,), "int32")):
                with T.Kernel(n, threads=32) as bx:
                    B[bx] = bx

            return main

        b = make()(np.zeros(4, "int32"))
    """
    if right:
        np.testing.assert_array_equal(script(text)["b"], np.arange(5 if "-" in extent else 3))
    else:
        with pytest.raises(SimulatorError, match="depends on a symbol that no input has"):
            script(text)


def test_decorators_over_a_prim_func_and_names_bound_later(script: Script) -> None:
    """A macro that is defined after the factory, a decorator over the prim_func, ``functools.wraps`` under it."""
    found = script("""
        import functools
        import numpy as np
        import tilelang
        import tilelang.language as T

        seen = []

        def remember(func):
            seen.append(func)
            return func

        def logged(function):
            @functools.wraps(function)
            def inner(*args):
                return function(*args)
            return inner

        def make(n):
            @remember
            @T.prim_func
            @logged
            def main(A: T.Tensor((n,), "int32"), B: T.Tensor((n,), "int32")):
                with T.Kernel(1, threads=32) as _:
                    later(A, B, n)
            return main

        @T.macro
        def later(A, B, n):
            for i in range(n):
                B[i] = A[i] + 1

        kernel = tilelang.compile(make(5), out_idx=[1])
        b = kernel(np.arange(5, dtype="int32"))
        names = [f.__name__ for f in seen]
    """)
    assert found["names"] == ["main"]
    np.testing.assert_array_equal(found["b"], np.arange(5) + 1)
