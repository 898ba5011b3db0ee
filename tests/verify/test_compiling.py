"""Calls of factories that return a prim_func: they are compiled as the file does it elsewhere."""

from __future__ import annotations

import sys

import pytest

from tests.verify.support import HEAD, SCALE, by_calls, codes, source
from tl2npu.simulator.standin.package import installed
from tl2npu.simulator.standin.session import Session
from tl2npu.verify.launching import build
from tl2npu.verify.loading import execute

PLAIN = SCALE.replace("@tilelang.jit(out_idx=[1], pass_configs=pass_configs)\n", "")
FULL = {
    "tl.ascend_auto_cv_combine": True,
    "tl.ascend_auto_cross_core_sync": True,
    "tl.ascend_auto_sync": True,
    "tl.ascend_memory_planning": True,
}
GIVEN = "pass_configs=pass_configs"
RUN = "def run(x):\n    "
WAYS = {
    "in a function": f"{RUN}return tilelang.compile(scale(64), out_idx=[1], {GIVEN})(x)",
    "by a name": f"{RUN}program = scale(64)\n    k = tilelang.compile(program, [1], {GIVEN})",
    "by a name of the module": f"P = scale(64)\n\n\n{RUN}return tilelang.compile(P, [1], {GIVEN})",
    "local configs": f"{RUN}c = dict(pass_configs)\n    k = tilelang.compile(scale(64), [1], pass_configs=c)",
    "configs as a default": "def run(x, c=pass_configs):\n    return tilelang.compile(scale(64), [1], pass_configs=c)",
    "all by name": f"{RUN}return tilelang.compile(out_idx=[1], {GIVEN}, func=scale(64))",
    "imported": f"from tilelang import compile\n\n\n{RUN}return compile(scale(64), [1], {GIVEN})",
    "cached": f"from tilelang.cache import cached\n\n\n{RUN}return cached(scale(8), [1], {GIVEN})",
    "by position": f"{RUN}p = 'pto'\n    tilelang.compile(scale(8), [1], None, 'c', p, None, p, False, pass_configs)",
    "a method": f"class Op:\n    def __init__(self):\n        self.k = tilelang.JITKernel(scale(8), [1], {GIVEN})",
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_pass_configs_and_outputs_of_the_file(way: str) -> None:
    session = Session()
    with installed(session):
        module = execute(source(f"{HEAD}{PLAIN}\n\n{way}\n"), "kernel_file", ())
        made = build(module, "scale", {"rows": 64}, session)
    del sys.modules["kernel_file"]
    assert made.kernel.configs == FULL
    assert (made.out_idx, made.factory, made.arguments) == ([1], "scale", {"rows": 64})


OTHERS = {
    "another factory": f"{RUN}return tilelang.compile(other(64), out_idx=[1], {GIVEN})",
    "another function": f"{RUN}return compile(scale(64), out_idx=[1], {GIVEN})",
    "unknown configs": "def run(x, c):\n    return tilelang.compile(scale(64), [1], pass_configs=c)",
}


@pytest.mark.parametrize("way", OTHERS)
def test_other_compilations_do_not_count(way: str, capsys: pytest.CaptureFixture[str]) -> None:
    session = Session()
    with installed(session):
        module = execute(source(f"{HEAD}{PLAIN}\n\n{OTHERS[way]}\n"), "kernel_file", ())
        made = build(module, "scale", {"rows": 64}, session)
    del sys.modules["kernel_file"]
    assert made.kernel.configs == {}
    assert made.out_idx == ([1] if "unknown" in way else [])
    assert ("`c` cannot be evaluated here" in capsys.readouterr().err) == ("unknown" in way)


def test_a_kernel_that_needs_its_pass_configs_has_no_hazards() -> None:
    end = "\n\ndef run(x):\n    return tilelang.compile(scale(64), out_idx=[1], {})(x)\n"
    old = HEAD + PLAIN.replace(
        "cid * 32 + vid * 16, 0], x)", "cid * 32 + vid * 16, 0], x)\n            T.barrier_all()"
    )
    old = old.replace("x, x, factor)", "x, x, factor)\n            T.barrier_all()")
    old += end.format("verbose=True")
    new = HEAD + PLAIN
    found = by_calls(old, new + end.format("pass_configs=pass_configs"))
    assert (codes(found), found.ok) == ([], True)
    found = by_calls(old, new + end.format("verbose=True"))
    assert codes(found) != []
