"""``tilelang.jit`` and ``tilelang.compile``: which tensors a call takes, makes and gives back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tl2npu.simulator.errors import SimulatorError

Script = Callable[..., dict[str, Any]]

KERNEL = """
import numpy as np
import tilelang
import tilelang.language as T

def body(n, factor=2):
    @T.prim_func
    def main(
        A: T.Tensor((n,), "int32"), S: T.Tensor((n,), "int32"), B: T.Tensor((n,), "int32"), W: T.Tensor((n,), "int32")
    ):
        with T.Kernel(1, threads=32) as _:
            for i in range(n):
                S[i] = A[i] + 1
                W[i] = 7
                B[i] = S[i] * factor + W[i]
    return main

a = np.arange(5, dtype="int32")
full = lambda: np.full(5, -1, "int32")
"""


@pytest.mark.parametrize(
    ("out_idx", "workspace_idx", "given", "made"),
    [
        ("[1, 2]", "[3]", "a", ["S", "B"]),
        ("[2]", "[3]", "a, s", ["B"]),
        ("2", "3", "a, s", ["B"]),
        ("-2", "-1", "a, s", ["B"]),
        ("[-2]", "[-1]", "a, s", ["B"]),
        ("(1, 2, 3)", "None", "a", ["S", "B", "W"]),
        ("[2, 1]", "[3]", "a", ["B", "S"]),
        ("None", "None", "a, s, b, w", []),
        ("[]", "[]", "a, s, b, w", []),
        ("None", "[1, 3]", "a, b", []),
    ],
)
def test_outputs_and_workspaces(script: Script, out_idx: str, workspace_idx: str, given: str, made: list[str]) -> None:
    """All forms of the two, negative numbers, orders; one output comes alone, several as a list, none as None."""
    found = script(
        KERNEL
        + f"""
s, b, w = full(), full(), full()
kernel = tilelang.jit(out_idx={out_idx}, workspace_idx={workspace_idx})(body)(5)
result = kernel({given})
compiled = tilelang.compile(body(5), out_idx={out_idx}, workspace_idx={workspace_idx})
again = compiled({given})
"""
    )
    expected = {"S": found["a"] + 1, "B": (found["a"] + 1) * 2 + 7, "W": np.full(5, 7)}
    for result in (found["result"], found["again"]):
        if not made:
            assert result is None
        elif len(made) == 1:
            np.testing.assert_array_equal(result, expected[made[0]])
        else:
            assert len(result) == len(made)
            for array, name in zip(result, made, strict=True):
                np.testing.assert_array_equal(array, expected[name])
    for name in {n.strip() for n in given.split(",")} - {"a"}:
        np.testing.assert_array_equal(found[name], expected[name.upper()])


@pytest.mark.parametrize(("out_idx", "said"), [("[4]", "index 4 of out_idx"), ("-5", "index -5 of out_idx")])
def test_an_index_that_no_parameter_has(script: Script, out_idx: str, said: str) -> None:
    """Refused when the kernel is built."""
    with pytest.raises(ValueError, match=said):
        script(KERNEL + f"tilelang.jit(out_idx={out_idx})(body)(5)")


def test_calls_of_factories(script: Script) -> None:
    """Defaults, keywords, both spellings of the decorator, one kernel for one set of arguments."""
    found = script(
        KERNEL
        + """
@tilelang.jit
def plain(n, factor=2):
    return body(n, factor)

@tilelang.jit(out_idx=[1, 2, 3], pass_configs={tilelang.PassConfigKey.TL_DISABLE_TMA_LOWER: True}, target="auto")
def configured(n=5, *, factor=3):
    '''A text.'''
    return body(n, factor)

s, b, w = full(), full(), full()
plain(5)(a, s, b, w)
named = [full() for _ in range(3)]
plain(n=5)(a, B=named[1], W=named[2], S=named[0])
default = configured()(a)[1]
keyword = configured(factor=5)(a)[1]
same = configured(5) is configured(n=5, factor=3) and configured(5) is not configured(5, factor=4)
text = (configured.__name__, configured.__doc__)
"""
    )
    a = found["a"]
    np.testing.assert_array_equal(found["b"], (a + 1) * 2 + 7)
    np.testing.assert_array_equal(found["named"][1], (a + 1) * 2 + 7)
    np.testing.assert_array_equal(found["default"], (a + 1) * 3 + 7)
    np.testing.assert_array_equal(found["keyword"], (a + 1) * 5 + 7)
    assert found["same"]
    assert found["text"] == ("configured", "A text.")


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        ("(a)", ValueError, "Expected 3 inputs"),
        ("(a, a, a, a)", ValueError, "Expected 3 inputs"),
        ("(a, a, [1])", TypeError, "W of main has to be a tensor, not list"),
        ("(a, a, a.astype('float32'))", TypeError, "W of main has element type int32, but the tensor has float32"),
        ("(a, a, np.zeros((4,), 'int32'))", Exception, "W is declared with shape"),
        ("(a, a, np.zeros((5, 1), 'int32'))", Exception, "W has 1 axes"),
    ],
)
def test_a_wrong_call(script: Script, call: str, error: type[Exception], said: str) -> None:
    """A GPU kernel looks at the number of its tensors, their types and their shapes."""
    with pytest.raises(error, match=said):
        script(KERNEL + f"tilelang.compile(body(5), out_idx=[2]){call}")


def test_a_factory_that_gives_no_prim_func(script: Script) -> None:
    """Named, with what it gives."""
    with pytest.raises(TypeError, match=r"make is under tilelang.jit, but returns int"):
        script(KERNEL + "@tilelang.jit\ndef make():\n    return 3\nmake()")


def test_what_a_kernel_has_besides_its_call(script: Script) -> None:
    """Sources are not available, and say so; the profiler measures nothing, the bench runs its function once."""
    found = script(
        KERNEL
        + """
from tilelang.profiler import do_bench
kernel = tilelang.compile(body(5), out_idx=[1, 2, 3])
sources = [kernel.get_kernel_source(), kernel.kernel_source, kernel.get_host_source()]
calls = []
best = round(kernel.latency * 1e-3, 2)
times = [kernel.get_profiler().do_bench(), do_bench(lambda: calls.append(1)), do_bench(lambda: 1, warmup=3, rep=9)]
names = [p.name for p in kernel.params] + [p.name for p in kernel.prim_func.params]
tilelang.cache.clear_cache()
tilelang.disable_cache()
"""
    )
    assert all("not available" in text for text in found["sources"])
    assert {f"{time} ms, {8e9 / time:.2f} TFLOPS" for time in found["times"]} == {
        "(not measured) ms, (not measured) TFLOPS"
    }
    assert f"{found['best']}" == "(not measured)"
    assert all(time > 0 for time in found["times"])
    assert found["calls"] == [1]
    assert found["names"] == ["A", "S", "B", "W"] * 2


def test_scalars(script: Script) -> None:
    """Scalar parameters between tensors, by position and by name."""
    found = script("""
        import numpy as np
        import tilelang
        import tilelang.language as T

        @tilelang.jit(out_idx=[-1])
        def make(n):
            @T.prim_func
            def main(A: T.Tensor((n,), "float32"), by: T.float32, first: T.int32, B: T.Tensor((n,), "float32")):
                with T.Kernel(1, threads=32) as _:
                    for i in range(n):
                        if i >= first:
                            B[i] = A[i] * by
                        else:
                            B[i] = A[i]
            return main

        a = np.arange(6, dtype="float32")
        b = make(6)(a, 2.5, 2)
        c = make(6)(a, first=np.int64(4), by=0.5)
    """)
    a = found["a"]
    np.testing.assert_array_equal(found["b"], np.where(np.arange(6) >= 2, a * 2.5, a))
    np.testing.assert_array_equal(found["c"], np.where(np.arange(6) >= 4, a * 0.5, a))


def test_memory_that_a_call_makes_is_not_zero(script: Script) -> None:
    """What a kernel does not write of its output is not a number that could be right."""
    found = script("""
        import numpy as np
        import tilelang
        import tilelang.language as T

        @tilelang.jit(out_idx=[1])
        def make(n):
            @T.prim_func
            def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
                with T.Kernel(1, threads=32) as _:
                    for i in range(n - 1):
                        B[i] = A[i]
            return main

        b = make(4)(np.ones(4, "float32"))
    """)
    assert found["b"][:3].tolist() == [1, 1, 1]
    assert np.isnan(found["b"][3])


NPU = """
import numpy as np
import tilelang
import tilelang.language as T

@tilelang.jit(out_idx=[-1])
def make(n):
    m = T.symbolic("m")
    @T.prim_func
    def main(A: T.Tensor((m, n), "float32"), S: T.Tensor((n,), "float32"), B: T.Tensor((m, n), "float32")):
        with T.Kernel(m, is_npu=True) as (cid, vid):
            a = T.alloc_ub((1, n), "float32")
            s = T.alloc_ub((1, n), "float32")
            T.copy(A[cid, 0], a)
            T.copy(S[0], s)
            T.tile.add(a, a, s)
            T.copy(a, B[cid, 0])
    return main

a = np.arange(24, dtype="float32").reshape(3, 8)
s = np.arange(8, dtype="float32") * 100
"""


def test_an_npu_kernel_takes_tensors_as_memory(script: Script, capsys: pytest.CaptureFixture[str]) -> None:
    """Another shape with as many elements, more elements than needed, arguments too many: taken, and said."""
    found = script(
        NPU
        + """
kernel = make(8)
plain = kernel(a, s)
column = kernel(a, s.reshape(8, 1))
longer = kernel(a, np.concatenate([s, s]))
more = kernel(a, s, np.zeros((3, 8), "float32"))
"""
    )
    for name in ("plain", "column", "longer", "more"):
        np.testing.assert_array_equal(found[name], found["a"] + found["s"])
    said = capsys.readouterr().err
    assert "S of main is declared with shape [8], the tensor has shape [8, 1]" in said
    assert "main is called with 3 tensors, 2 are looked at" in said


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("make(8)(a, np.zeros(16, 'float32')[::2])", "must be contiguous"),
        ("make(8)(a)", "Expected 2 inputs"),
    ],
)
def test_what_an_npu_kernel_refuses(script: Script, call: str, said: str) -> None:
    """A tensor that is not dense, too few tensors."""
    with pytest.raises(Exception, match=said):
        script(NPU + call)


def test_a_tensor_that_is_shorter_than_declared(script: Script) -> None:
    """What lies behind its end is unwritten memory, which the result shows; writing there is an error."""
    found = script(NPU + "short = make(8)(a, s[:6])")
    np.testing.assert_array_equal(found["short"][:, :6], (found["a"] + found["s"])[:, :6])
    assert np.isnan(found["short"][:, 6:]).all()
    with pytest.raises(SimulatorError, match=r"B of main .* the kernel writes behind its end"):
        script(NPU.replace("out_idx=[-1]", "out_idx=[]") + "b = np.zeros(20, 'float32')\nmake(8)(a, s, b)")
    found = script(NPU.replace("out_idx=[-1]", "out_idx=[]") + "b = np.zeros((4, 8), 'float32')\nmake(8)(a, s, b)")
    np.testing.assert_array_equal(found["b"][:3], found["a"] + found["s"])
    assert not found["b"][3:].any()


@pytest.mark.parametrize(
    "made",
    [
        "tilelang.compile(body(5), [1, 2], 'cython')",
        "tilelang.JITKernel(body(5), [1, 2], 'cython')",
        "tilelang.cached(body(5), [1, 2], verbose=True)",
        "tilelang.cache.cached(body, [1, 2], 5)",
    ],
)
def test_other_ways_to_compile(script: Script, made: str) -> None:
    """``workspace_idx`` has a place of its own for an NPU only; see the next test."""
    found = script(
        KERNEL + f"kernel = {made}\nis_kernel = isinstance(kernel, tilelang.JITKernel)\ns, b = kernel(a, full())"
    )
    assert found["is_kernel"]
    np.testing.assert_array_equal(found["b"], 2 * (np.arange(5) + 1) + 7)


@pytest.mark.parametrize("name", ["compile", "JITKernel", "cached"])
def test_repeatsspaces_by_position(script: Script, name: str) -> None:
    text = KERNEL.replace("threads=32", "is_npu=True").replace("as _", "as (cid, vid)")
    found = script(text + f"kernel = tilelang.{name}(body(5), [2], [1, 3])")
    assert (found["kernel"].out_idx, found["kernel"].workspace_idx) == ([2], [1, 3])


def test_an_eager_kernel_is_compiled_for_tensors(script: Script) -> None:
    text = """
import numpy as np
import tilelang
import tilelang.language as T

@tilelang.jit
def double(A, block=8):
    N = T.const("N")
    A: T.Tensor((N,), "float32")
    B = T.empty((N,), "float32")
    with T.Kernel(T.ceildiv(N, block), threads=32) as bx:
        for i in T.Parallel(block):
            B[bx * block + i] = A[bx * block + i] * 2
    return B

a = np.arange(16, dtype="float32")
kernel = double.compile(a, block=4)
b = kernel(a)
"""
    found = script(text)
    np.testing.assert_array_equal(found["b"], found["a"] * 2)


def test_the_parameters_of_an_eager_kernel_include_what_it_makes(script: Script) -> None:
    """As helpers rely on that draw inputs for all parameters but the last."""
    found = script(
        """
import tilelang
import tilelang.language as T


@tilelang.jit
def double(A, block: int):
    N = T.const("N")
    A: T.Tensor((N,), T.float32)
    B = T.empty((N,), T.float32)
    with T.Kernel(N // block, threads=128) as bx:
        for i in T.Parallel(block):
            B[bx * block + i] = A[bx * block + i] * 2.0
    return B


kernel = double.compile(N=64, block=32)
params = [(p.name, list(p.shape), p.dtype) for p in kernel.params]
kernel.print_source_code()
"""
    )
    assert found["params"] == [("A", [64], "float32"), ("B", [64], "float32")]
