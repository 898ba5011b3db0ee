"""TL604, TL605: functions that callers give a factory."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

import numpy as np
import pytest

from tests.passes.gpu.support import IMPORTS, migrated, refused, result_of
from tests.passes.simulated import run
from tests.simulator.kernels import load

X = np.random.default_rng(7).standard_normal(1000).astype(np.float32)
FUNCTIONS = """
def relu(x):
    return T.max(x, 0.0)


def shifted(x):
    half = T.cast(0.5, "float32")
    return x * half + 1.0
"""
FACTORY = """
def make(N, op, threads=128):
    block = threads * 4

    @tilelang.jit(out_idx=[1])
    def kernel(threads):
        @T.prim_func
        def main(X: T.Tensor((N,), "float32"), Y: T.Tensor((N,), "float32")):
            with T.Kernel(T.ceildiv(N, block), threads=threads) as bx:
                for i, j in T.Parallel(threads, 4):
                    k = (bx * threads + i) * 4 + j
                    if k < N:
                        Y[k] = op(X[k])

        return main

    return kernel(threads)
"""
REFERENCES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "relu": lambda x: np.maximum(x, 0),
    "shifted": lambda x: x * np.float32(0.5) + 1,
    "exp": np.exp,
    "square": lambda x: x * x,
}
USES = {
    "one function": {"relu": "make(1000, relu)"},
    "by its name": {"relu": "make(1000, threads=64, op=relu)"},
    "twice the same": {"relu": "make(1000, relu)", "again relu": "make(1000, relu, 64)"},
    "several": {"relu": "make(1000, relu)", "shifted": "make(1000, shifted)", "exp": "make(1000, T.exp)"},
    "a lambda": {"square": "make(1000, lambda v: v * v)"},
    "lambdas and functions": {"square": "make(1000, lambda v: v * v)", "relu": "make(1000, relu)"},
    "a choice": {"relu": "make(1000, relu if len('a') else shifted)"},
    "through another function": {"relu": "through(relu)", "shifted": "through(op=shifted)"},
}


def file(uses: dict[str, str], factory: str = FACTORY) -> str:
    through = "\n\ndef through(op):\n    return make(1000, op)\n" if "through" in str(uses) else ""
    made = "".join(f"\n\ndef use_{n}():\n    return {use}\n" for n, use in enumerate(uses.values()))
    return IMPORTS + FUNCTIONS.lstrip() + "\n" + factory + through + made


@pytest.mark.parametrize("uses", USES.values(), ids=USES.keys())
def test_every_caller_gets_its_function(uses: dict[str, str]) -> None:
    new = migrated(file(uses))
    for n, name in enumerate(uses):
        found = run(new, {"X": X}, f"use_{n}")["Y"]
        np.testing.assert_allclose(found, REFERENCES[name.split()[-1]](X), 1e-6)
    assert "op(" not in new


def test_another_function_is_an_error() -> None:
    """What a caller elsewhere gives has no version."""
    names = load(migrated(file(USES["several"])))
    with pytest.raises(ValueError, match="no kernel for"):
        names["make"](1000, lambda x: x)
    names = load(migrated(file(USES["one function"])))
    with pytest.raises(ValueError, match="no kernel for"):
        names["make"](1000, names["shifted"])


def test_two_kernels_of_a_factory_and_two_parameters() -> None:
    factory = """
    def make(N, op, other, twice):
        @tilelang.jit(out_idx=[1])
        def first():
            @T.prim_func
            def main(X: T.Tensor((N,), "float32"), Y: T.Tensor((N,), "float32")):
                with T.Kernel(T.ceildiv(N, 256), threads=128) as bx:
                    x = T.alloc_fragment((256,), "float32")
                    T.copy(X[bx * 256], x)
                    for i in T.Parallel(256):
                        x[i] = other(op(x[i]))
                    T.copy(x, Y[bx * 256])

            return main

        @tilelang.jit(out_idx=[1])
        def second():
            @T.prim_func
            def main(X: T.Tensor((N,), "float32"), Y: T.Tensor((N,), "float32")):
                with T.Kernel(T.ceildiv(N, 256), threads=128) as bx:
                    x = T.alloc_fragment((256,), "float32")
                    T.copy(X[bx * 256], x)
                    for i in T.Parallel(256):
                        x[i] = op(x[i]) + op(1.0 - x[i])
                    T.copy(x, Y[bx * 256])

            return main

        return second() if twice else first()
    """
    uses = {n: f"make(1000, {op}, {other}, {twice})" for n, (op, other, twice) in enumerate(CASES)}
    text = file(uses, "\n" + textwrap.dedent(factory).strip("\n") + "\n")  # type: ignore[arg-type]
    result = result_of(text)
    assert [kernel.disposition for kernel in result.kernels] == ["migrated"] * 2
    new = result.new_text
    assert new is not None
    assert new.count("raise ValueError") == 2
    assert result_of(new).new_text == new
    for n, (op, other, twice) in enumerate(CASES):
        first, second = REFERENCES[op], REFERENCES[other]
        wanted = first(X) + first(1 - X) if twice else second(first(X))
        np.testing.assert_allclose(run(new, {"X": X}, f"use_{n}")["Y"], wanted, 1e-5)


CASES = [("relu", "shifted", False), ("shifted", "relu", False), ("relu", "relu", True), ("shifted", "relu", True)]


def test_a_macro_for_the_end_of_a_tile() -> None:
    text = file({"relu": "make(1000, clip)", "shifted": "make(1000, shift)"}, MACROS)
    new = migrated(text)
    np.testing.assert_array_equal(run(new, {"X": X}, "use_0")["Y"], np.maximum(X, 0))
    np.testing.assert_array_equal(run(new, {"X": X}, "use_1")["Y"], X + 1)


MACROS = """
@T.macro
def clip(t):
    for i in T.Parallel(256):
        t[i] = T.max(t[i], 0.0)


@T.macro
def shift(t):
    for i in T.Parallel(256):
        t[i] = t[i] + 1.0


@tilelang.jit(out_idx=[1])
def make(N, end):
    @T.prim_func
    def main(X: T.Tensor((N,), "float32"), Y: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, 256), threads=128) as bx:
            x = T.alloc_shared((256,), "float32")
            T.copy(X[bx * 256], x)
            end(x)
            T.copy(x, Y[bx * 256])

    return main
"""


@pytest.mark.parametrize(
    "line",
    ["op = lambda v: v * 0.5 + 1.0", "op = shifted", "def op(v):\n        return shifted(v)"],
    ids=["lambda", "alias", "def"],
)
def test_functions_of_the_factory_itself(line: str) -> None:
    text = file({"shifted": "make(1000)"}, FACTORY.replace("op, ", "").replace("block =", f"{line}\n    block ="))
    new = migrated(text)
    np.testing.assert_allclose(run(new, {"X": X}, "use_0")["Y"], REFERENCES["shifted"](X), 1e-6)
    assert "op(" not in new


UNKNOWN = {
    "no caller": ({"": "1"}, "nothing in this file calls `make`"),
    "a method": ({"": "make(1000, np.op)"}, "gives `np.op`"),
    "an element": ({"": "make(1000, [relu, shifted][0])"}, "gives `[relu, shifted][0]`"),
    "a star": ({"": "make(*(1000, relu))"}, "gives arguments by a star"),
    "not called": ({"a": "make(1000, relu)", "b": "make"}, "uses `make` without calling it"),
    "a name of the caller": ({"": "[make(1000, f) for f in (relu, shifted)][0]"}, "gives `f`"),
    "a closure": ({"": "(lambda s: make(1000, lambda v: v * s))(2.0)"}, "gives `lambda v: v * s`"),
    "an import of the caller": ({"": "(lambda: 1)() and local()"}, "gives `lambda v: v * pi`"),
    "nothing": ({"": "make(1000)"}, "does not give it"),
}


@pytest.mark.parametrize(("uses", "why"), UNKNOWN.values(), ids=UNKNOWN.keys())
def test_what_is_not_known(uses: dict[str, str], why: str) -> None:
    text = file(uses)
    if "local" in str(uses):
        text += "\n\ndef local():\n    from math import pi\n\n    return make(1000, lambda v: v * pi)\n"
    (code, _), *_ = refused(text)
    assert code == "TL605"
    assert why in next(d.message for d in result_of(text).diagnostics if d.code == "TL605")


def test_a_kernel_with_another_thing_of_that_name() -> None:
    text = file({"": "make(1000, relu)"}, FACTORY.replace("bx", "relu"))
    assert ("TL605", text[: text.index("op(X")].count("\n") + 1) in refused(text)


def test_a_function_that_the_caller_hides() -> None:
    text = file({"": "make(1000, relu)"}).replace("def use_0():\n", "def use_0():\n    relu = shifted\n")
    assert refused(text)[0][0] == "TL605"


def test_a_function_that_is_bound_again() -> None:
    assert refused(file({"": "make(1000, relu)"}) + "\n\nrelu = T.exp\n")[0][0] == "TL605"


def test_a_parameter_whose_default_has_its_name() -> None:
    factory = FACTORY.replace("op(X", "relu(X").replace("(N, op,", "(N, relu=relu,")
    assert refused(file({"": "make(1000)"}, factory))[0][0] == "TL605"
