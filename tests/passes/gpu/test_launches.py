"""A prim_func with several launches becomes several, and the old name runs them in order."""

from __future__ import annotations

import re
import textwrap
from typing import Any

import numpy as np
import pytest

from tests.passes.gpu.support import IMPORTS, result_of
from tests.simulator.kernels import load
from tl2npu.options import Options
from tl2npu.passes.eager.factories import to_lazy
from tl2npu.passes.launches import tuner
from tl2npu.passes.launches.separate import split_launches
from tl2npu.results import FileResult, Verified
from tl2npu.source.index import Index
from tl2npu.verify.judge import verify
from tl2npu.verify.loading import Source
from tl2npu.verify.migration import migrate_verified
from tl2npu.verify.process import here
from tl2npu.verify.settings import Settings

RNG = np.random.default_rng(11)
X = RNG.standard_normal((64, 32), np.float32)


def launch(source: str, target: str, change: str, comment: str = "") -> str:
    """A launch that changes every element of a tensor on its way to another."""
    lines = f"""
    with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
        t = T.alloc_fragment((block, N), "float32")
        T.copy({source}[bx * block, 0], t)
        for i, j in T.Parallel(block, N):
            t[i, j] = t[i, j] {change}
        T.copy(t, {target}[bx * block, 0])
    """
    return (f"# {comment}\n" if comment else "") + textwrap.dedent(lines).strip("\n") + "\n"


TENSOR = 'T.Tensor((M, N), "float32")'
FIRST, SECOND = launch("A", "P", "+ 1.0"), launch("P", "C", "* 2.0")
USE = "def use(a):\n    run = f(64, 32, 16)\n    return run(a)"


def program(
    body: str,
    params: str = "A C",
    jit: str = "(out_idx=[1])",
    setup: str = "",
    host: str = USE,
    end: str = "return main",
) -> str:
    """A file with a prim_func of several launches."""
    signature = ", ".join(f"{name}: {TENSOR}" for name in params.split())
    inner = textwrap.indent(body, " " * 8)
    before = textwrap.indent(textwrap.dedent(setup).lstrip("\n"), " " * 4)
    text = f"@tilelang.jit{jit}\ndef f(M, N, block=16):\n{before}    @T.prim_func\n    def main({signature}):\n{inner}"
    return f"{IMPORTS}{text}\n    {end}\n\n\n{textwrap.dedent(host).strip()}\n"


SCRATCH = 'P = T.alloc_global((M, N), "float32")\n'


def agrees(text: str) -> str:
    """The migrated text, whose ``use`` gives what that of the old one does."""
    result = result_of(text)
    assert [(k.name, k.disposition) for k in result.kernels] == [("f.main", "migrated")], result.diagnostics
    new = result.new_text or ""
    assert result_of(new).new_text == new
    for old, found in zip(values(text), values(new), strict=True):
        np.testing.assert_allclose(found, old, 1e-6)
    return new


def values(text: str) -> list[np.ndarray]:
    """What ``use`` gives for a tensor."""
    found = load(text)["use"](X.copy())
    return [np.asarray(item) for item in (found if isinstance(found, (list, tuple)) else [found])]


def test_a_tensor_in_between() -> None:
    new = agrees(program(SCRATCH + FIRST + SECOND))
    np.testing.assert_allclose(values(new)[0], (X + 1) * 2, 1e-6)
    assert "alloc_global" not in new
    assert new.count("@tilelang.jit(out_idx=[1], pass_configs=pass_configs)") == 2
    assert (
        textwrap.dedent(
            """
        def f(M, N, block=16):
            part1 = f_part1(M, N, block)
            part2 = f_part2(M, N, block)

            def kernel(A):
                P = part1(A)
                return part2(P)

            return kernel


        def use(a):
            run = f(64, 32, 16)
            return run(a)
        """
        )
        in new
    )


def test_parts_are_called_by_the_comments_above_them() -> None:
    new = agrees(program(SCRATCH + launch("A", "P", "+ 1.0", "split") + launch("P", "C", "* 2.0", "combine")))
    assert re.search(r" {8}# split\n(?: {8}# TL138: .*\n)? {8}with T\.Kernel", new)
    assert "    split = f_split(M, N, block)\n    combine = f_combine(M, N, block)\n" in new


def split(text: str) -> str:
    """The file with a prim_func for each launch, otherwise as it was."""
    index = Index.parse(text)
    made = to_lazy(index)
    split_launches(index, made)
    return made.module.code


def test_the_indentation_of_the_file() -> None:
    text = program(SCRATCH + FIRST + SECOND)
    assert split(text.replace("    ", "  ")) == split(text).replace("    ", "  ")


def test_a_tensor_that_the_caller_passes() -> None:
    host = "import numpy as np\n\n\ndef use(a):\n    p = np.zeros_like(a)\n    return f(64, 32)(a, p), p"
    new = agrees(program(FIRST + SECOND, "A P C", "(out_idx=[2])", host=host))
    assert "    def kernel(A, P):\n        part1(A, P)\n        return part2(P)\n" in new
    np.testing.assert_allclose(values(new)[1], X + 1, 1e-6)


def test_an_output_of_the_first_launch_that_the_second_changes() -> None:
    body = launch("A", "C", "+ 1.0") + launch("C", "C", "* 2.0") + launch("A", "D", "* 3.0")
    new = agrees(program(body, "A C D", "(out_idx=[-2, -1])"))
    assert "        C = part1(A)\n        part2(C)\n        D = part3(A)\n        return C, D\n" in new


def test_no_outputs() -> None:
    host = "def use(a):\n    p, c = a * 0, a * 0\n    f(64, 32)(a, p, c)\n    return p, c"
    new = agrees(program(FIRST + SECOND, "A P C", "", host=host))
    assert "part2(P, C)\n\n    return kernel\n" in new


def test_each_part_has_what_it_uses() -> None:
    setup = '''
    """Two steps."""
    assert M % block == 0
    once = 1.0  # first
    twice = once * 2
    '''
    new = agrees(program(SCRATCH + launch("A", "P", "+ once") + launch("P", "C", "* twice"), setup=setup))
    first, second = new.split("def f_part2")
    assert "twice =" not in first
    assert "assert M" in first
    assert "assert" not in second
    assert second.count("once = 1.0  # first") == 1
    assert 'def f(M, N, block=16):\n    """Two steps."""\n' in second


def test_an_eager_kernel() -> None:
    body = FIRST + SECOND
    text = f"""{IMPORTS}@tilelang.jit
def f(A, P, block=16):
    M, N = T.const("M, N")
    A: {TENSOR}
    P: {TENSOR}
    C = T.empty((M, N), "float32")
{textwrap.indent(body, "    ")}
    return C


def use(a):
    p = a * 0
    return f(a, p), p
"""
    result = result_of(text)
    assert [(k.name, k.line, k.disposition) for k in result.kernels] == [("f", 6, "migrated")]
    new = result.new_text or ""
    for old, found in zip(values(text), values(new), strict=True):
        np.testing.assert_allclose(found, old, 1e-6)
    assert "f(a.shape[0], a.shape[1])(a, p), p" in new


PROFILED = """
def make():
    kernel = f(64, 32)
    return kernel


def use(a):
    profiler = make().get_profiler(tensor_supply_type=tilelang.TensorSupplyType.Randn)
    assert len(profiler._get_inputs()) == INPUTS
    assert profiler.do_bench() > 0
    return profiler.func(TENSORS)
"""


def test_a_profiler_of_the_kernel() -> None:
    pytest.importorskip("torch")
    host = PROFILED.replace("INPUTS", "1").replace("TENSORS", "a")
    new = agrees(program(SCRATCH + FIRST + SECOND, host=host))
    expected = """
                P = part1(A)
                return part2(P)

            def get_profiler(tensor_supply_type=tilelang.TensorSupplyType.Auto):
                profiler = tilelang.profiler.Profiler(part1.params[:1], [], [], tensor_supply_type)
                return profiler.with_default_adapter(kernel)

            kernel.get_profiler = get_profiler
            return kernel
        """
    assert textwrap.indent(textwrap.dedent(expected).strip("\n"), "    ") in new


def test_the_inputs_of_a_profiler_come_from_the_parts_that_read_them() -> None:
    pytest.importorskip("torch")
    body = launch("A", "P", "+ 1.0") + launch("P", "C", "* 2.0").replace("* 2.0", "* 2.0 + S[0, 0]")
    host = PROFILED.replace("INPUTS", "3").replace("TENSORS", "a * 1, a * 0 + 2, a * 0")
    new = agrees(program(body, "A S P C", "(out_idx=[3])", host=host))
    assert "part1 = f_part1(M, N, block)" in new
    given = "[*part1.params[:1], *part2.params[:1], *part1.params[1:2]]"
    assert f"Profiler({given}, [], []," in new
    assert "        part1(A, P)\n        return part2(S, P)\n" in new


CHOICE = """
    \"\"\"Two steps, or one.\"\"\"
    assert M % block == 0
    half = block // 2
    big = M > 3 * block
    shape = (M, N)

    @T.prim_func
    def main_steps(A: T.Tensor(shape, "float32"), C: T.Tensor(shape, "float32")):
        P = T.alloc_global(shape, "float32")
STEPS
    @T.prim_func
    def main_once(A: T.Tensor(shape, "float32"), C: T.Tensor(shape, "float32")):
ONCE
"""


def choice(end: str, host: str) -> str:
    """A factory that gives a prim_func with two launches, or one with one, which computes the same."""
    once = launch("A", "C", "* 2.0 + 2.0").replace("block", "half")
    setup = CHOICE.replace("STEPS", textwrap.indent(FIRST + SECOND, " " * 8))
    setup = setup.replace("ONCE\n", textwrap.indent(once, " " * 8)).replace('\\"', '"')
    return f"{IMPORTS}@tilelang.jit(out_idx=[1])\ndef f(M, N, block=16, *, unused=0):{setup}\n{end}\n\n\n{host}\n"


ENDS = {
    "if": "    if big:\n        return main_steps\n    else:\n        return main_once",
    "if and return": "    if not big:\n        return main_once\n    return main_steps",
    "conditional": "    return main_steps if big else main_once",
}
BOTH = "def use(a):\n    return f(64, 32)(a), f(64, 32, block=32)(a), f(64, 32, 16).get_profiler().do_bench() * a"


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS.keys())
def test_a_choice_between_prim_funcs(end: str) -> None:
    text = choice(end, BOTH)
    result = result_of(text)
    assert [(k.name, k.disposition) for k in result.kernels] == [
        ("f.main_steps", "migrated"),
        ("f.main_once", "migrated"),
    ]
    new = result.new_text or ""
    assert result_of(new).new_text == new
    for old, found in zip(values(text), values(new), strict=True):
        np.testing.assert_allclose(found, old, 1e-6)
    np.testing.assert_allclose(values(new)[0], (X + 1) * 2, 1e-6)
    np.testing.assert_allclose(values(new)[1], (X + 1) * 2, 1e-6)
    parts, chooser = new.split("def f(M, N, block=16, *, unused=0):\n")
    assert chooser.startswith(
        '    """Two steps, or one."""\n    assert M % block == 0\n    big = M > 3 * block\n\n    '
    )
    wanted = "f_steps(M, N, block) if big else" if "else main" in end else "return f_steps(M, N, block)\n"
    assert wanted in chooser
    assert "assert" not in parts
    assert "big" not in parts
    assert parts.count("half = block // 2") == 1
    assert "def f_once(M, N, block=16):" in parts
    assert ".get_profiler = get_profiler" in parts


def test_a_choice_with_a_prim_func_that_stays() -> None:
    text = choice(ENDS["if"], BOTH).replace(
        "* 2.0 + 2.0\n", '* 2.0 + 2.0\n            T.call_extern("handle", "g", t)\n'
    )
    result = result_of(text)
    assert result.new_text == text
    assert {k.disposition for k in result.kernels} == {"refused"}
    assert ("TL107", "f.main_steps") in {(d.code, d.kernel) for d in result.diagnostics}


def test_a_choice_after_a_changed_parameter() -> None:
    text = choice(ENDS["if"], BOTH).replace("    big = M", "    N = N * 1\n    big = M + N * 0")
    assert [d.code for d in result_of(text).diagnostics if d.severity == "error"] == ["TL107", "TL735"]


def test_a_program_that_is_printed() -> None:
    new = agrees(program(SCRATCH + FIRST + SECOND, end="print(main)\n    return main"))
    assert new.count("    print(main)\n    return main\n") == 2


REFUSED = {
    "a method of the kernel": {"host": "def use(a):\n    kernel = f(64, 32)\n    return kernel.get_host_source()"},
    "a method at once": {"host": "def use(a):\n    return f(64, 32).get_host_source()"},
    "a method of what a function returns": {
        "host": "def make():\n    kernel = f(64, 32)\n    return kernel\n\n\ndef use(a):\n    return make().latency"
    },
    "a choice": {"end": "return main if M > 3 else main"},
    "other code": {"end": "show(main)\n    return main"},
    "outputs from elsewhere": {"jit": "(out_idx=OUT)"},
    "a tuner below": {"jit": "\n@tilelang.autotune(configs=[{'block': 16}])"},
}


def refused(text: str) -> FileResult:
    result = result_of(text)
    assert result.new_text == text
    assert [(k.name, k.disposition) for k in result.kernels] == [("f.main", "refused")]
    return result


@pytest.mark.parametrize("form", REFUSED.values(), ids=REFUSED.keys())
def test_programs_that_cannot_be_split(form: dict[str, str]) -> None:
    result = refused(program(SCRATCH + FIRST + SECOND, **form))
    assert [d.code for d in result.diagnostics if d.severity == "error"] == ["TL107"]


def test_code_on_tensors_around_the_launches() -> None:
    result = refused(program(SCRATCH + FIRST + "Q = P\n" + SECOND))
    assert [d.code for d in result.diagnostics if d.severity == "error"] == ["TL107"]


def test_a_launch_that_is_refused_takes_the_others_back() -> None:
    second = SECOND.replace("    T.copy(t,", '    T.call_extern("handle", "g", t)\n    T.copy(t,')
    result = refused(program(SCRATCH + FIRST + second))
    errors = [d for d in result.diagnostics if d.severity == "error"]
    assert {d.kernel for d in errors} == {"f.main"}
    assert all(d.line > 8 for d in errors)


MAIN = """
if __name__ == "__main__":
    x = np.arange(64 * 32, dtype=np.float32).reshape(64, 32)
    np.testing.assert_allclose(use(x), (x + 1) * 2)
"""


def script(text: str) -> str:
    return text.replace("import tilelang\n", "import numpy as np\nimport tilelang\n", 1) + MAIN


def test_several_launches_are_verified_against_the_one_kernel() -> None:
    result = migrate_verified(script(program(SCRATCH + FIRST + SECOND)), "kernel.py", Options(), runner=here)
    assert [(k.name, k.verified) for k in result.kernels] == [("f.main", Verified("sim", 1, 0.0))]


def test_parts_in_the_wrong_order_are_not_verified() -> None:
    text = script(program(FIRST + SECOND, "A P C", "(out_idx=[2])", host="def use(a):\n    return f(64, 32)(a, a * 0)"))
    new = result_of(text).new_text or ""
    sources = Source(text, "old.py", "old.py"), Source(new, "new.py", "new.py")
    assert [v.status for v in verify(*sources, Settings(), here).kernels] == ["verified"]
    wrong = new.replace(
        "        part1(A, P)\n        return part2(P)", "        C = part2(P)\n        part1(A, P)\n        return C"
    )
    assert wrong != new
    changed = Source(wrong, "new.py", "new.py")
    outcome = verify(sources[0], changed, Settings(), here)
    assert [v.status for v in outcome.kernels] == ["failed"]
    assert {d.code for d in outcome.diagnostics} >= {"TL907"}


@pytest.mark.parametrize(
    ("decorators", "said"),
    [
        ("", "has no `@tilelang.jit`"),
        ("@staticmethod\n", "has no `@tilelang.jit`"),
        ("@tilelang.autotune(configs=[])\n@tilelang.jit(out_idx=[1])\n", "also has the decorator `tilelang.autotune`"),
        (
            "@tilelang.autotune(configs=sizes)\n@tilelang.jit(out_idx=[1])\n",  # a list, or a function of the call
            "also has the decorator `tilelang.autotune`",
        ),
        (
            "@tilelang.autotune(configs=[{'block': 16}], ref_prog=use)\n@tilelang.jit(out_idx=[1])\n",
            "also has the decorator `tilelang.autotune`",
        ),
        ("@tilelang.jit(out_idx=[1])\n@cache\n", "also has the decorator `cache`"),
        ("@tilelang.jit(out_idx=[1])\n@tilelang.jit(out_idx=[1])\n", "has `tilelang.jit` twice"),
    ],
)
@pytest.mark.parametrize("end", ["return main", ENDS["if"]], ids=["one", "choice"])
def test_what_is_said_of_other_decorators(decorators: str, said: str, end: str) -> None:
    text = program(SCRATCH + FIRST + SECOND) if end == "return main" else choice(end, BOTH)
    text = text.replace("@tilelang.jit(out_idx=[1])\n", decorators)
    found = [d.message for d in result_of(text).diagnostics if d.code == "TL107"]
    assert found
    assert all(f"`f` {said}" in message for message in found)


TUNED = """
def use(a):
    best = f(64, 32)
    assert f(64, 32) is best and best.config["block"] in (16, 32) and best.latency > 0
    return best(a), f(64, 32, 16)(a), f(64, 32, block=32)(a)
"""
SIZES = "[{'block': block} for block in (16, 32)]"


@pytest.mark.sampled
@pytest.mark.parametrize("given", [f"configs={SIZES}", "warmup=3, configs=[{'block': 16}, dict(block=32)], timeout=9"])
@pytest.mark.parametrize("end", ["", *ENDS.values()], ids=["one", *ENDS])
@pytest.mark.parametrize("indent", ["    ", "  "])
def test_a_tuner_times_what_runs_all_parts(given: str, end: str, indent: str) -> None:
    text = choice(end, TUNED) if end else program(SCRATCH + FIRST + SECOND, host=TUNED)
    text = text.replace("@tilelang.jit", f"@tilelang.autotune({given})\n@tilelang.jit", 1).replace("block=16", "block")
    text = text.replace("    ", indent)
    result = result_of(text)
    assert {k.disposition for k in result.kernels} == {"migrated"}
    new = result.new_text or ""
    assert result_of(new).new_text == new
    assert "timeout" not in new
    assert new.count("def fastest(") == new.count("@fastest(") == 1
    for found in values(new):
        np.testing.assert_allclose(found, (X + 1) * 2, 1e-6)


def test_two_tuned_factories_share_a_decorator() -> None:
    one = program(SCRATCH + FIRST + SECOND, host="").replace(
        "@tilelang.jit", f"@tilelang.autotune(configs={SIZES})\n@tilelang.jit"
    )
    other = one.partition("\n\n\n")[2]
    new = result_of(one + "\n\n" + other.replace("def f(", "def g(")).new_text or ""
    assert (new.count("def fastest("), new.count("@fastest(")) == (1, 2)


def test_the_new_tuner_takes_the_fastest_configuration_that_can_be_built() -> None:
    names: dict[str, Any] = {}
    exec(tuner.TEXT, names)
    timed: list[tuple[int, int, int]] = []

    class Kernel:
        def __init__(self, m: int, block: int) -> None:
            self.m, self.block = m, block

        def get_profiler(self) -> Kernel:
            return self

        def do_bench(self, warmup: int, rep: int) -> float:
            timed.append((self.block, warmup, rep))
            return {16: 2.0, 32: 1.0, 64: 3.0}[self.block]

    def factory(m: int, block: int = 8) -> Kernel:
        assert m % block == 0, "does not fit"
        return Kernel(m, block)

    build = names["fastest"](({"block": n} for n in (128, 16, 32, 64)), rep=7)(factory)
    best = build(192)
    assert (best.block, best.config, best.latency) == (32, {"block": 32}, 1.0)
    assert timed == [(16, 25, 7), (32, 25, 7), (64, 25, 7)]  # 128 does not fit
    assert build(192) is best
    assert [build(192, 64).block, build(m=192, block=48).block] == [64, 48]
    assert len(timed) == 3
    with pytest.raises(RuntimeError, match="none of the configurations"):
        build(7)


SUM = '''{sizes}
    @T.prim_func
    def main(X: T.Tensor({x}, "float32"), Z: T.Tensor((32,), "float32"),{more} W: T.Tensor(({rows}, 32), "float32"),
             Y: T.Tensor(({rows}, 32), "float32")):
        with T.Kernel(T.ceildiv({rows}, 16), threads=64) as b:
            t = T.alloc_fragment((16, 32), "float32")
            T.copy(X[b * 16, 0], t)
            T.copy(t, W[b * 16, 0])
        with T.Kernel(T.ceildiv({rows}, 16), threads=64) as b:
            v = T.alloc_shared((32,), "float32")
            u = T.alloc_fragment((16, 32), "float32")
            T.copy(Z[0], v)
            for i, j in T.Parallel(16, 32):
                u[i, j] = 1.0 + v[j]
            T.copy(u, Y[b * 16, 0])

    return main


def use(x):
    return f({given})(x, x[0]{also})
'''


def of_symbolic_rows(
    sizes: str = '    M = T.dynamic("M")',
    rows: str = "M",
    x: str = "(M, 32)",
    given: str = "",
    params: str = "",
    more: str = "",
    also: str = "",
    above: str = "",
) -> str:
    """A file whose second launch has no tensor of ``M`` rows but its output."""
    outs = "[3, 4]" if more else "[2, 3]"
    body = SUM.format(sizes=sizes, rows=rows, x=x, given=given, more=more, also=also)
    return f"{IMPORTS}{above}@tilelang.jit(out_idx={outs})\ndef f({params}):\n{body}"


PASSED = {
    "T.dynamic": {},
    "several at once": {"sizes": '    M, K = T.dynamic("M, K")', "x": "(M, K)"},
    "of the module": {"sizes": "", "above": 'M = T.symbolic("M")\n\n\n'},
    "another name": {"sizes": '    N = T.symbolic("N")\n    M = N'},
    "a sum of it": {"sizes": '    M = T.dynamic("M")\n    rows = M + 16', "rows": "rows"},
    "a name of the shape": {"sizes": '    M = T.dynamic("M")\n    shape = (M, 32)', "x": "shape"},
    "what a call gives": {"sizes": "", "params": "M", "given": 'T.symbolic("M")'},
}


@pytest.mark.parametrize("form", PASSED.values(), ids=PASSED.keys())
def test_a_launch_is_given_an_input_that_has_its_size(form: dict[str, str]) -> None:
    text = of_symbolic_rows(**form)
    new = result_of(text).new_text or ""
    assert "part2(X, Z)" in new
    copied, added = values(new)
    rows = 80 if "rows" in form else 64
    np.testing.assert_array_equal(copied[:64], X)
    np.testing.assert_array_equal(added, np.broadcast_to(1 + X[0], (rows, 32)))


def test_no_tensor_has_the_size_of_an_output() -> None:
    form = {"x": "(2 * M, 32)", "rows": "M"}
    result = result_of(of_symbolic_rows(**form))
    assert [(d.code, d.line) for d in result.diagnostics if d.severity == "error"] == [("TL107", 9)]
    assert "has an axis of `M` elements" in result.diagnostics[0].message


def test_a_tensor_with_the_size_is_passed_once() -> None:
    new = result_of(of_symbolic_rows(more=' S: T.Tensor((M,), "float32"),', also=", x[:, 0]")).new_text or ""
    assert "part2(X, Z)" in new
    new = result_of(of_symbolic_rows().replace("T.copy(Z[0], v)", "T.copy(W[0, 0:32], v)")).new_text or ""
    assert "part2(W)" in new
