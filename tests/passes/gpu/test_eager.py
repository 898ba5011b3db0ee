"""Eager kernels become factories: what they compute stays, what callers write follows, what cannot is left alone."""

from __future__ import annotations

import textwrap
from typing import Any

import libcst as cst
import numpy as np
import pytest

from tests.passes.gpu.support import IMPORTS, result_of
from tests.simulator.kernels import load
from tl2npu.migration import check_text
from tl2npu.options import Options
from tl2npu.passes.eager.factories import to_lazy
from tl2npu.results import FileResult, Verified
from tl2npu.source.index import Index
from tl2npu.verify.migration import migrate_verified
from tl2npu.verify.process import here

RNG = np.random.default_rng(7)
X = RNG.standard_normal((64, 32), np.float32)
Y = RNG.standard_normal((64, 32), np.float32)


def eager(params: str, declared: str, body: str, end: str = "", host: str = "", jit: str = "@tilelang.jit") -> str:
    """A file with an eager kernel ``f(params)``: ``declared`` before the launch, ``body`` inside it, ``end`` after."""
    lines = [jit, f"def f({params}):", textwrap.indent(textwrap.dedent(declared).strip("\n"), "    ")]
    lines += ["    with T.Kernel(T.ceildiv(M, block), threads=128) as bx:"]
    lines += [textwrap.indent(textwrap.dedent(body).strip("\n"), " " * 8)]
    lines += [textwrap.indent(textwrap.dedent(end).strip("\n"), "    ")] if end else []
    return IMPORTS + "\n".join(lines) + "\n" + (f"\n\n{textwrap.dedent(host).strip()}\n" if host else "")


ROWS = """
t = T.alloc_fragment((block, N), "float32")
T.copy(A[bx * block, 0], t)
for i, j in T.Parallel(block, N):
    t[i, j] = t[i, j] * 2.0
T.copy(t, C[bx * block, 0])
"""
TWICE = """
M, N = T.const("M, N")
A: T.Tensor((M, N), "float32")
C = T.empty((M, N), "float32")
"""
USE = """
def use(a):
    return f(a, 16)
"""


def lazy(text: str, leave: tuple[int, ...] = ()) -> str:
    """The file with factories, every kernel turned into one."""
    result = to_lazy(Index.parse(text), leave)
    assert [blocked.message for _, blocked in result.left if blocked is not None] == []
    return result.module.code


def results(text: str, *given: Any, name: str = "use") -> list[np.ndarray]:
    """What a function of a script gives, as a list, and what it leaves in its arguments."""
    copies = [np.array(item) if isinstance(item, np.ndarray) else item for item in given]
    found = load(text)[name](*copies)
    made = [] if found is None else list(found) if isinstance(found, (list, tuple)) else [found]
    return [np.asarray(item) for item in (*made, *copies)]


def same(text: str, *given: Any, migrates: bool = True, name: str = "use") -> str:
    """The lazy form, which gives the very numbers of the eager one; and so does, nearly, the migrated file."""
    new = lazy(text)
    assert new != text
    assert lazy(new) == new
    forms = [(new, 0.0)]
    if migrates:
        result = result_of(text)
        assert {k.disposition for k in result.kernels} == {"migrated"}, [
            (d.line, d.message) for d in result.diagnostics
        ]
        assert result_of(result.new_text or "").new_text == result.new_text
        forms.append((result.new_text or "", 1e-5))
    expected = results(text, *given, name=name)
    for form, tolerance in forms:
        for old, found in zip(expected, results(form, *given, name=name), strict=True):
            np.testing.assert_allclose(found, old, tolerance, tolerance)
    return new


def test_the_factory() -> None:
    text = eager("A, block", TWICE, ROWS, "return C", USE)
    new = same(text, X)
    np.testing.assert_array_equal(results(new, X)[0], X * 2)
    assert new == IMPORTS + textwrap.dedent(
        """
        @tilelang.jit(out_idx=[1])
        def f(M, N, block):
            @T.prim_func
            def main(
                A: T.Tensor((M, N), "float32"),
                C: T.Tensor((M, N), "float32"),
            ):
                with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
                    t = T.alloc_fragment((block, N), "float32")
                    T.copy(A[bx * block, 0], t)
                    for i, j in T.Parallel(block, N):
                        t[i, j] = t[i, j] * 2.0
                    T.copy(t, C[bx * block, 0])

            return main


        def use(a):
            return f(a.shape[0], a.shape[1], 16)(a)
        """
    ).lstrip("\n")


def test_the_report_names_the_eager_function() -> None:
    text = eager("A, block", TWICE, ROWS, "return C", USE)
    (kernel,) = result_of(text).kernels
    assert (kernel.name, kernel.line, kernel.disposition, kernel.source) == ("f", 6, "migrated", "gpu")
    changes = {(c.code, c.line, c.kernel) for c in result_of(text).changes}
    assert {("TL102", 6, "f"), ("TL105", 20, "f")} <= changes


@pytest.mark.parametrize(
    "extents",
    [
        'M = T.const("M")\nN = T.const("N")',
        'M = T.const("M"); N = T.const("N")',
        'M, N = T.const("M N")',
        'M, N = T.const("M"), T.const("N")',
        'M, N = T.const("rows, columns")',
        'shape = 1\n(M, N) = T.const("M,N")',
    ],
)
def test_spellings_of_the_extents(extents: str) -> None:
    declared = extents + '\nA: T.Tensor((M, N), "float32")\nC = T.empty((M, N), "float32")\n'
    new = same(eager("A, block", declared, ROWS, "return C", USE), X)
    assert "const" not in new
    assert "f(a.shape[0], a.shape[1], 16)(a)" in new


@pytest.mark.parametrize(
    "declared",
    [
        'M, N = T.const("M, N")\nA: T.Tensor[[M, N], "float32"]\nC = T.empty((M, N), "float32")',
        'M, N = T.const("M, N")\nshape = [M, N]\nA: T.Tensor(shape, "float32")\nC = T.empty(shape, dtype="float32")',
        'M, N = T.const("M, N")\nR, S = M, N\nA: T.Tensor((R, S), "float32")\nC = T.empty([M, N], "float32")',
        'M = T.dynamic("M")\nN = T.const("N")\nA: T.Tensor((M, N), "float32")\nC = T.empty((M, N), "float32")',
    ],
)
def test_spellings_of_the_tensors(declared: str) -> None:
    same(eager("A, block", declared, ROWS, "return C", USE), X)


def test_other_names_for_tilelang() -> None:
    text = eager("A, block", TWICE, ROWS, "return C", USE)
    text = text.replace("import tilelang\n", "import tilelang as tl\nfrom tilelang import jit\n")
    text = text.replace("tilelang.jit", "jit").replace("T.", "lang.").replace("language as T", "language as lang")
    new = same(text, X)
    assert "@jit(out_idx=[1])" in new
    assert "@lang.prim_func" in new


def test_annotations_of_the_signature() -> None:
    text = (
        IMPORTS
        + "M, N = 64, 32\n\n\n"
        + eager(
            'A: T.Tensor((M, N), "float32"), block: int = 16', 'C = T.empty((M, N), "float32")', ROWS, "return C", USE
        ).removeprefix(IMPORTS)
    )
    new = same(text, X)
    assert "def f(block: int = 16):" in new
    assert "f(16)(a)" in new


def test_the_annotation_of_the_result() -> None:
    text = eager("A, block", TWICE, ROWS, "return C", USE).replace("def f(A, block):", 'def f(A, block) -> "Tensor":')
    assert "def f(M, N, block):\n" in same(text, X)
    text = text.replace('"Tensor"', '"tilelang.JITKernel"').replace('"tilelang.JITKernel"', "tilelang.JITKernel")
    assert "def f(M, N, block) -> tilelang.JITKernel:\n" in lazy(text)


def test_outputs_come_in_the_order_of_the_return() -> None:
    declared = TWICE + 'D = T.empty((M, N), "float32")\n'
    body = ROWS + "for i, j in T.Parallel(block, N):\n    t[i, j] = t[i, j] + 1.0\nT.copy(t, D[bx * block, 0])\n"
    text = eager("A, block", declared, body, "return D, C", "def use(a):\n    d, c = f(a, block=16)\n    return d, c")
    new = same(text, X)
    assert "out_idx=[1, 2]" in new
    np.testing.assert_array_equal(results(new, X)[0], X * 2 + 1)
    np.testing.assert_array_equal(results(new, X)[1], X * 2)


def test_tensors_that_the_caller_passes_to_be_written() -> None:
    declared = 'M, N = T.const("M, N")\nA: T.Tensor((M, N), "float32")\nC: T.Tensor((M, N), "float32")\n'
    host = "def use(a, c):\n    f(a, c, 16)"
    for params in ("A, C, block", "A, block, C"):
        call = "f(a, c, 16)" if params == "A, C, block" else "f(a, 16, C=c)"
        text = eager(params, declared, ROWS, host=host.replace("f(a, c, 16)", call))
        new = same(text, X, np.zeros_like(X))
        assert "@tilelang.jit\n" in new
        assert "f(a.shape[0], a.shape[1], 16)(a, c)" in new
        np.testing.assert_array_equal(results(new, X, np.zeros_like(X))[1], X * 2)


def test_arguments_of_the_decorator_stay() -> None:
    text = eager("A, block", TWICE, ROWS, "return C", USE, jit='@tilelang.jit(\n    pass_configs={"a.b": True},\n)')
    assert '@tilelang.jit(\n    out_idx=[1],\n    pass_configs={"a.b": True},\n)' in same(text, X)


def test_scalars_of_the_launch() -> None:
    declared = TWICE + "s: T.float32\n"
    text = eager("A, s, block", declared, ROWS.replace("2.0", "s"), "return C", "def use(a):\n    return f(a, 3.0, 16)")
    new = same(text, X, migrates=False)
    assert "f(a.shape[0], a.shape[1], 16)(a, 3.0)" in new
    np.testing.assert_array_equal(results(new, X)[0], X * 3)


def test_scalars_that_callers_leave_out() -> None:
    """A number with a default stays one for callers that the wrapper serves."""
    declared = TWICE + "s: T.float32\nblock = 16\n"
    host = "KERNELS = [f]\n\n\ndef use(a):\n    return KERNELS[0](a)"
    new = same(eager("A, s=3.0", declared, ROWS.replace("2.0", "s"), "return C", host), X, migrates=False)
    assert "def f(A, s=3.0):\n" in new
    np.testing.assert_array_equal(results(new, X)[0], X * 3)


def test_compile_time_code_is_the_factorys() -> None:
    declared = '''
    """Multiplies."""
    # how much
    if factor is None:
        factor = 2.0
    M, N = T.const("M, N")  # rows, columns
    tiles = T.ceildiv(M, block)
    assert tiles > 1, "small"
    A: T.Tensor((M, N), "float32")  # in
    # out
    C = T.empty((M, N), "float32")
    half = factor / 2
    '''
    text = eager("A, block, factor=None", declared, ROWS.replace("2.0", "half * 2.0"), "return C", USE)
    new = same(text, X)
    head, inner = new.split("@T.prim_func")
    for line in ('"""Multiplies."""', "# how much", "factor = 2.0", "# rows, columns", "assert tiles", "half = factor"):
        assert line in head
    assert '        A: T.Tensor((M, N), "float32"),  # in\n        # out\n        C: ' in inner


def test_code_on_tensors_is_the_prim_funcs() -> None:
    declared = TWICE + 'flat = T.Tensor((M * N,), "float32", A.data)\n'
    body = ROWS.replace("T.copy(A[bx * block, 0], t)\n", "").replace(
        "t[i, j] * 2.0", "flat[(bx * block + i) * N + j] * 2.0"
    )
    new = same(eager("A, block", declared, body, "return C", USE), X, migrates=False)
    assert "    ):\n        flat = T.Tensor(" in new


def test_methods() -> None:
    host = """
    def use(a):
        kernel = f.compile(M=64, N=32, block=16)
        f.get_kernel_source(a, 16)
        f.get_tir(M=64, N=32, block=16)
        return kernel(a)
    """
    new = same(eager("A, block", TWICE, ROWS, "return C", host), X)
    assert "kernel = f(M=64, N=32, block=16)\n" in new
    assert "f(a.shape[0], a.shape[1], 16).get_kernel_source()\n" in new
    assert "f(M=64, N=32, block=16).prim_func\n" in new


def test_extents_by_their_names_for_callers() -> None:
    declared = TWICE.replace('"M, N"', '"rows, columns"')
    host = "def use(a):\n    return f.compile(rows=64, columns=32, block=16)(a)"
    assert "f(M=64, N=32, block=16)(a)" in same(eager("A, block", declared, ROWS, "return C", host), X)


@pytest.mark.parametrize(
    ("host", "call"),
    [
        ("a = torch.randn(m, 32)\n    return f(a, 16)", "f(m, 32, 16)(a)"),
        ("a = torch.randn((m, n), device='cuda').half()\n    return f(a, 16)", "f(m, n, 16)(a)"),
        ("return f(b.view(-1, n), 16)", None),
        ("return f(b.to(x), block=16)", "f(b.shape[0], b.shape[1], block=16)(b.to(x))"),
        ("return f(b.c[0], **x)", "f(b.c[0].shape[0], b.c[0].shape[1], **x)(b.c[0])"),
        ("a = torch.randn(m, n)\n    m = 2 * m\n    return f(a, 16)", "f(a.shape[0], n, 16)(a)"),
        ("a = torch.randn(m, n)\n    a = a + 1\n    return f(a, 16)", "f(a.shape[0], a.shape[1], 16)(a)"),
        ("a = torch.randn(m + 1, n)\n    return f(A=a, block=16)", "f(a.shape[0], n, block=16)(a)"),
        ("for m in x:\n        a = torch.randn(m, n)\n        f(a, 16)", "f(a.shape[0], a.shape[1], 16)(a)"),
        ("a = torch.zeros(m, n)\n    return bench(lambda: f(a, 16))", "bench(lambda: f(m, n, 16)(a))"),
    ],
)
def test_extents_from_host_code(host: str, call: str | None) -> None:
    text = eager("A, block", TWICE, ROWS, "return C", f"def use(b, m, n, x):\n    {host}")
    new = lazy(text)
    if call is None:
        assert "def f(A, *args, **kwargs):" in new
    else:
        assert call in new


def test_shapes_that_a_parameter_chooses() -> None:
    declared = TWICE.replace("(M, N)", "(N, M) if turned else (M, N)", 1)
    body = ROWS.replace("t[i, j] * 2.0", "A[j, bx * block + i] * 2.0").replace("T.copy(A[bx * block, 0], t)\n", "")
    host = "def use(a, flag):\n    return f(a, 16, True), f(a, 16, turned=flag)"
    new = same(eager("A, block, turned=False", declared, body, "return C", host), X, True, migrates=False)
    assert "f(a.shape[1], a.shape[0], 16, True)(a)" in new
    assert "f(a.shape[1] if flag else a.shape[0], a.shape[0] if flag else a.shape[1], 16, turned=flag)(a)" in new


@pytest.mark.parametrize(
    "host",
    [
        'KERNELS = {"f": f}\n\n\ndef use(a):\n    return KERNELS["f"](a, 16)',
        "def use(a):\n    return (lambda g: g(a, block=16))(f)",
        "def use(a):\n    return f(np.add(a, 0), 16)",
        "def use(a):\n    return f(f(a, 16), 16)",
        "def use(a):\n    given = (a, 16)\n    return f(*given)",
    ],
)
def test_the_name_is_kept_where_calls_cannot_follow(host: str) -> None:
    text = eager("A, block", TWICE, ROWS, "return C", host).replace(
        "import tilelang\n", "import numpy as np\nimport tilelang\n"
    )
    new = same(text, X)
    assert "def f_kernel(M, N, block):" in new
    assert "def f(A, *args, **kwargs):\n    return f_kernel(A.shape[0], A.shape[1], *args, **kwargs)(A)\n" in new


def test_lists_become_tuples_in_calls() -> None:
    """A factory is looked up by its arguments, and a list has no hash."""
    declared = TWICE + "total = sum(sizes) + len(sizes)\n"
    host = "def use(a, n):\n    return f(a, n, [16, 1], 16)"
    text = eager("A, n, sizes, block", declared, ROWS.replace("2.0", "total"), "return C", host)
    assert "f(a.shape[0], a.shape[1], n, tuple([16, 1]), 16)(a)" in same(text, X, 3)


@pytest.mark.parametrize("indent", ["  ", "\t"])
def test_the_indentation_of_the_file(indent: str) -> None:
    text = eager("A, block", TWICE, ROWS, "return C", "KERNELS = [f]\n\n\ndef use(a):\n    return KERNELS[0](a, 16)")
    narrow = text.replace("    ", indent)
    assert lazy(narrow) == lazy(text).replace("    ", indent)


def test_a_kernel_for_other_files() -> None:
    text = eager("A, *, block=16", TWICE, ROWS, "return C")
    new = lazy(text)
    assert "def f_kernel(M, N, *, block=16):" in new
    assert "def f(A, *, block=16):\n    return f_kernel(A.shape[0], A.shape[1], block=block)(A)\n" in new
    assert [k.name for k in result_of(text).kernels] == ["f"]


def test_a_kernel_inside_a_function() -> None:
    inner = textwrap.indent(eager("A, block", TWICE, ROWS, "return C").removeprefix(IMPORTS), "    ")
    text = IMPORTS + f"def make(block):\n{inner}\n    return f\n\n\ndef use(a):\n    return make(16)(a, 16)\n"
    new = same(text, X)
    assert "    def f(A, *args, **kwargs):\n        return f_kernel(" in new


REFUSED = {
    "a branch": ("A, block", TWICE + "if block:\n    B = T.empty((M, N), 'float32')\n", ROWS, "return C"),
    "not returned": ("A, block", TWICE, ROWS, ""),
    "an input returned": ("A, block", TWICE, ROWS, "return A"),
    "code after the launch": ("A, block", TWICE, ROWS, "x = 1\nreturn C"),
    "a name for two": ("A, block", TWICE + "A = 3\n", ROWS, "return C"),
    "changed after use": ("A, block, R", TWICE.replace("(M, N)", "(R, N)", 1) + "R = 3\n", ROWS, "return C"),
    "changed inside": ("A, block", TWICE + "k = 1\n", "k = k + 1\n" + ROWS, "return C"),
    "extents not literal": ("A, block", TWICE.replace('"M, N"', "str(block)"), ROWS, "return C"),
    "a shape of a tensor": ("A, block", TWICE.replace("empty((M", "empty((A.shape[0]"), ROWS, "return C"),
    "any arguments": ("A, block, *rest", TWICE, ROWS, "return C"),
    "a shape known at run time": (
        "A, block, n",
        TWICE.replace('"float32")\nC', '"float32")\nn: T.int32\nC', 1).replace("empty((M", "empty((n"),
        ROWS,
        "return C",
    ),
}


@pytest.mark.parametrize("form", REFUSED.values(), ids=REFUSED.keys())
def test_irregular_kernels_are_refused(form: tuple[str, str, str, str]) -> None:
    text = eager(*form, host=USE)
    result = result_of(text)
    assert result.new_text == text
    assert [(k.name, k.line, k.disposition, k.codes) for k in result.kernels] == [("f", 6, "refused", ("TL103",))]
    assert [d.code for d in result.diagnostics] == ["TL103"]


@pytest.mark.parametrize(
    "host",
    [
        "def use(a):\n    return f.tune(a)",
        "def use(a):\n    return f.compile(block=16)",
        "def use(a):\n    return f.compile(M=64, N=32, block=16, pass_configs={})(a)",
        "def use(a, cfg):\n    return f.compile(**cfg, pass_configs={})(a)",
    ],
)
def test_unclear_uses_are_refused(host: str) -> None:
    text = eager("A, block", TWICE, ROWS, "return C", host)
    result = result_of(text)
    assert result.new_text == text
    assert [(d.code, d.kernel) for d in result.diagnostics] == [("TL104", "f")]


def test_a_launch_without_jit_is_not_silent() -> None:
    text = eager("A, block", TWICE, ROWS, "return C", USE, jit="@staticmethod")
    assert [(k.name, k.disposition) for k in result_of(text).kernels] == [("f", "refused")]


SERIAL = """

@tilelang.jit
def g(A, block):
    M, N = T.const("M, N")
    A: T.Tensor((M, N), "float32")
    C = T.empty((M, N), "float32")

    # the launch
    with T.Kernel(1, threads=128) as bx:
        T.call_extern("handle", "f", A, C)
    return C


def other(a):
    return g(a, 16)
"""


def refused_one(text: str) -> FileResult:
    result = result_of(text)
    assert [(k.name, k.disposition) for k in result.kernels] == [("f", "migrated"), ("g", "refused")]
    return result


def test_a_kernel_that_is_refused_later_keeps_its_text_and_calls() -> None:
    text = eager("A, block", TWICE, ROWS, "return C", USE) + SERIAL
    result = refused_one(text)
    assert (result.new_text or "").endswith(SERIAL)
    assert "return f(a.shape[0], a.shape[1], 16)(a)" in (result.new_text or "")
    errors = [d for d in result.diagnostics if d.severity == "error"]
    assert {(d.kernel, d.line) for d in errors} == {("g", 31)}
    assert result_of(result.new_text or "").new_text == result.new_text


def test_check_reports_eager_kernels() -> None:
    result = check_text(eager("A, block", TWICE, ROWS, "return C", USE), "k.py", Options())
    assert [(d.code, d.line, d.severity) for d in result.diagnostics] == [("TL102", 6, "error")]
    assert [k.name for k in result.kernels] == ["f"]


def test_lines_are_those_of_the_input() -> None:
    text = eager("A, block", TWICE, ROWS, "return C", USE)
    index = Index.parse(text)
    made = to_lazy(index)
    inner = next(node for node in _walk(made.module) if isinstance(node, cst.With))
    assert index.first_line(inner) == 10


def _walk(node: cst.CSTNode) -> list[cst.CSTNode]:
    return [node, *(below for child in node.children for below in _walk(child))]


MAIN = """
if __name__ == "__main__":
    import numpy as np

    x = np.arange(64 * 32, dtype=np.float32).reshape(64, 32)
    np.testing.assert_allclose(use(x), x * 2)
"""


@pytest.mark.parametrize("use", [USE, "KERNELS = [f]\n\n\ndef use(a):\n    return KERNELS[0](a, 16)\n"])
def test_a_migration_of_an_eager_script_is_verified(use: str) -> None:
    text = eager("A, block", TWICE, ROWS, "return C", use.strip() + "\n\n" + MAIN)
    result = migrate_verified(text, "kernel.py", Options(), runner=here)
    assert [(k.name, k.verified) for k in result.kernels] == [("f", Verified("sim", 1, 0.0))]


def test_a_wrong_migration_of_an_eager_script_is_taken_back() -> None:
    """The author silences a check of the row split; what fails when it runs keeps its old text, calls included."""
    text = eager("A, block", TWICE, ROWS, "return C", USE.strip() + "\n\n" + MAIN)
    left = to_lazy(Index.parse(text), {6})
    assert left.module.code == text
    assert [(item.name, blocked) for item, blocked in left.left] == [("f", None)]


def test_configurations_that_are_compiled_at_once_are_refused() -> None:
    host = "kernels = f.par_compile([{'M': 64, 'N': 32, 'block': 16}])"
    text = eager("A, block", TWICE, ROWS, "return C", host)
    assert [d.code for d in result_of(text).diagnostics if d.severity == "error"] == ["TL104"]


@pytest.mark.parametrize("call", ["f(a, 16, double)", "f(a, 16, fn=abs)"])
def test_a_function_that_callers_give_is_refused(call: str) -> None:
    body = ROWS.replace("t[i, j] * 2.0", "fn(t[i, j])")
    host = f"@T.macro\ndef double(x):\n    return x * 2.0\n\n\ndef use(a):\n    return {call}"
    assert "TL605" in {d.code for d in result_of(eager("A, block, fn", TWICE, body, "return C", host)).diagnostics}


STRIDED = """
M, N, dM, dN = T.dynamic("M, N, dM, dN")
A: T.StridedTensor((M, N), (dM, dN), "float32")
C = T.empty((M, N), "float32")
"""


@pytest.mark.parametrize(
    "declared", [STRIDED, STRIDED.replace("((M, N), (dM, dN), ", "[[M, N], [dM, dN], ").replace('32")\nC', '32"]\nC')]
)
def test_tensors_of_any_strides_are_refused(declared: str) -> None:
    text = eager("A, block", declared, ROWS, "return C", "def use(a):\n    return f(a.T, 16)")
    assert "TL193" in {d.code for d in result_of(text).diagnostics if d.severity == "error"}
