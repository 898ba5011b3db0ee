"""A factory of several launches may stand in a function that gives it, as where that function is cached."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

from tests.passes.gpu.support import IMPORTS, result_of
from tests.passes.gpu.test_launches import ENDS, FIRST, SCRATCH, SECOND, X, choice, program, values

USES = {
    "two calls": "def use(a):\n    return make(64, 32)(16)(a)",
    "a name for the factory": "def use(a):\n    build = make(64, 32)\n    return build(block=32)(a)",
    "names for all": "def use(a):\n    build = make(64, 32)\n    run = build(16)\n    return run(a)",
    "a function between": "def given(M):\n    return make(M, 32)\n\n\ndef use(a):\n    return given(64)()(a)",
    "a method": "class Steps:\n    def __init__(self):\n        self.kernel = make(64, 32)\n\n"
    "    def __call__(self, a):\n        return self.kernel(16)(a)\n\n\ndef use(a):\n    return Steps()(a)",
}
CACHES = ["", "@functools.lru_cache(maxsize=32)\n", "@functools.cache\n", "@cached\n"]


def inside(text: str, host: str, cache: str = "", end: str = "return f") -> str:
    """The file with its factory ``f(M, N, block)`` in a function ``make(M, N)``."""
    head, factory = text.removeprefix(IMPORTS).rsplit("\n\n\n", 1)[0], f"    {end}\n"
    lines = textwrap.indent(head.replace("def f(M, N, ", "def f("), " " * 4)
    imports = "import functools\nfrom functools import cache as cached\n\n" + IMPORTS
    return f"{imports}{cache}def make(M, N):\n{lines}\n\n{factory}\n\n{host}\n"


def agrees(text: str, names: list[str]) -> str:
    result = result_of(text)
    assert [(k.name, k.disposition) for k in result.kernels] == [(name, "migrated") for name in names], (
        result.diagnostics
    )
    new = result.new_text or ""
    assert result_of(new).new_text == new
    for found in (values(text)[0], values(new)[0]):
        np.testing.assert_allclose(found, (X + 1) * 2, 1e-6)
    return new


@pytest.mark.parametrize("host", USES.values(), ids=USES.keys())
def test_what_calls_the_function_around_stays(host: str) -> None:
    new = agrees(inside(program(SCRATCH + FIRST + SECOND), host), ["f.main"])
    assert new.endswith(host + "\n")
    assert "    def f(block=16):\n        part1 = f_part1(block)\n        part2 = f_part2(block)\n" in new
    assert "        return main\n\n    @tilelang.jit" in new  # one blank line: it is inside of a function
    assert "    return f\n" in new


@pytest.mark.parametrize("cache", CACHES)
def test_a_cache_keeps_the_function_that_runs_the_launches(cache: str) -> None:
    new = agrees(inside(program(SCRATCH + FIRST + SECOND), USES["two calls"], cache), ["f.main"])
    assert f"{cache}def make(M, N):\n    @tilelang.jit" in new


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS.keys())
@pytest.mark.parametrize("block", [16, 32])
def test_a_choice_between_prim_funcs(end: str, block: int) -> None:
    host = f"def use(a):\n    return make(64, 32)({block})(a)"
    agrees(inside(choice(end, host), host), ["f.main_steps", "f.main_once"])


def test_two_functions_with_factories_of_one_name() -> None:
    text = inside(program(SCRATCH + FIRST + SECOND), "")
    other = "def make_other" + text.partition("def make")[2].replace("* 2.0", "* 4.0")
    new = agrees(f"{text}{other}\n\n{USES['two calls']}\n", ["f.main", "f.main"])
    assert new.count("    def f(block=16):\n") == 2


REFUSED = {
    "a method of the kernel": ("def use(a):\n    return make(64, 32)(16).get_host_source()", ""),
    "a method of a name": (
        "def use(a):\n    build = make(64, 32)\n    run = build(16)\n    return run.get_host_source()",
        "",
    ),
    "a method of the factory": ("def use(a):\n    build = make(64, 32)\n    return build.get_tir(16)", ""),
    "a function between": (
        "def given():\n    return make(64, 32)\n\n\ndef use(a):\n    return given()(16).latency",
        "",
    ),
    "another decorator": (USES["two calls"], "@register\n"),
}


@pytest.mark.parametrize(("host", "decorator"), REFUSED.values(), ids=REFUSED.keys())
def test_uses_that_need_one_compiled_kernel(host: str, decorator: str) -> None:
    refused(inside(program(SCRATCH + FIRST + SECOND), host, decorator))


@pytest.mark.parametrize("end", ["return main", ENDS["if"]], ids=["one", "choice"])
def test_a_factory_in_a_method(end: str) -> None:
    text = program(SCRATCH + FIRST + SECOND) if end == "return main" else choice(end, "")
    head, made = inside(text, "").split("def make(M, N):\n")
    method = textwrap.indent(f"def make(self, M, N):\n{made.rstrip()}\n", " " * 4)
    result = result_of(f"{head}class Steps:\n{method}")
    assert result.kernels[0].disposition == "refused"
    assert ("TL107", result.kernels[0].name) in {(d.code, d.kernel) for d in result.diagnostics}


def test_a_tuned_factory() -> None:
    tuned = program(SCRATCH + FIRST + SECOND).replace(
        "@tilelang.jit", "@tilelang.autotune(configs=[{}])\n@tilelang.jit"
    )
    refused(inside(tuned, USES["two calls"]))


def refused(text: str) -> None:
    result = result_of(text)
    assert result.new_text == text
    assert {k.disposition for k in result.kernels} == {"refused"}
    assert {d.code for d in result.diagnostics if d.severity == "error"} >= {"TL107"}
