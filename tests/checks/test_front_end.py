"""TL732: what the parser of the compiler said of each of these kernels (95acbd7f, one kernel for each line)."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.checks.support import LOAD, STORE, TILES, findings, source
from tl2npu.checks.language import front_end, gpu_names, signatures
from tl2npu.checks.subject import Subject
from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.options import Options
from tl2npu.source.index import Index

ARGS = "w=None, flag=True, k=4"
OK = "T.tile.exp(b, a)\n"
SCALED = "    T.tile.mul(a, a, 2.0)\n" + OK

STOPS = [
    "st = T.max(0, cid - w) if w is not None else 0\n" + OK,
    "st = T.max(0, cid - w) if w else 0\n" + OK,
    "st = 0 if None is w or w == None else cid - w\n" + OK,
    "st = 1 if cid > 2 else 0\n" + OK,
    "if w:\n" + SCALED,
    "if w is not None and w > 3:\n" + SCALED,
    "if w is None or cid > w:\n" + SCALED,
    "if 0 <= cid < 3:\n" + SCALED,
    "if 0 < k < 3:\n" + SCALED,
    "if T.And(cid > 2, k > 2):\n" + SCALED,
    "if T.Not(flag):\n" + SCALED,
    "f = lambda v: v + 1\n" + OK,
    "z = [i * 2 for i in range(3)]\n" + OK,
    "T.tile.mul(a, a, sum(i * 1.0 for i in (1, 2)))\n" + OK,
    "assert k > 2\n" + OK,
    "z = None\n" + OK,
    "z = {'a': 2.0}\n" + OK,
    "for i in T.serial(4):\n    if i == 2:\n        break\n    " + OK,
    "for i in T.serial(4):\n    if i == 2:\n        continue\n    " + OK,
    "for v, u in enumerate((1, 2)):\n    " + OK,
    "z = min(cid, 3)\n" + OK,
    "try:\n    T.tile.exp(b, a)\nfinally:\n    pass\n",
    "z = 5\ndel z\n" + OK,
    "import math\n" + OK,
]
PASSES = [
    "st = T.max(0, cid - k) if flag else 0\n" + OK,
    "if w is not None:\n    T.tile.mul(a, a, w)\n" + OK,
    "if not w:\n" + SCALED,
    "if k:\n" + SCALED,
    "if flag and cid > 2:\n" + SCALED,
    "if T.And(cid > 2, T.Not(cid > 3)):\n" + SCALED,
    "if k in (2, 4):\n" + SCALED,
    "assert k > 2, 'k'\n" + OK,
    "z = w is not None\n" + OK,
    "z = min(k, 3)\nfor i in T.serial(z):\n    " + OK,
    "z = (1, 2)\nT.tile.mul(a, a, z[1])\n" + OK,
    "T.tile.mul(a, a, (lambda v: v + 1.0)(2.0))\n" + OK,
    "p, q = 1, 2\nT.tile.mul(a, a, q)\n" + OK,
    "p = q = 2\nT.tile.mul(a, a, q)\n" + OK,
]


def found(body: str) -> list[str]:
    body = body.replace("None is w", "w is None")
    return [f.message for f in findings(source(f"{TILES}{LOAD}{body}{STORE}", args=ARGS)) if f.code == "TL732"]


@pytest.mark.parametrize("body", STOPS)
def test_what_the_parser_stops_at_or_misreads(body: str) -> None:
    assert found(body)


@pytest.mark.parametrize("body", PASSES)
def test_what_the_parser_reads(body: str) -> None:
    assert found(body) == []


def test_the_chain_is_shown_as_it_is_read() -> None:
    assert found("if 0 <= cid < 3:\n" + SCALED) == ["the kernel parser reads `0 <= cid < 3` as `(0 <= cid) < 3`"]


HELP = [
    ("if 0 <= cid < 3:\n" + SCALED, "joined by `and`"),
    ("T.tile.mul(a, a, a[1])\n", "for each axis"),
    ("z = (1, 2)\nT.tile.mul(a, a, z[cid])\n", "as a tensor"),
    ("z = T.alloc_ub((64, cid), 'float32')\n" + OK, "that the factory knows"),
    ("if not cid % 2:\n" + SCALED, "compare it with a number"),
    ("for i in (1, 2):\n" + SCALED, "statements and operators"),
    ("z = w + 1 if w is not None else 0\n" + OK, "a number in the factory"),
    ("z = 1 if cid > 2 else 0\n" + OK, "T.if_then_else"),
    ("if 1.0 >= cid // 8:\n" + SCALED, "T.cast"),
    ("if T.And(cid > 2, True):\n" + SCALED, "`and`, `or` and `not`"),
]


@pytest.mark.parametrize(("body", "text"), HELP)
def test_the_help_is_about_the_cause(body: str, text: str) -> None:
    told = [f for f in findings(source(f"{TILES}{LOAD}{body}{STORE}", args=ARGS)) if f.code == "TL732"]
    assert told
    assert text in told[0].advice("")


def test_a_comparison_is_no_assignment() -> None:
    told = [f for f in findings(source(f"{TILES}{LOAD}z = 0\nz == cid\n{OK}{STORE}", args=ARGS)) if f.code == "TL739"]
    assert [(f.message, f.weight) for f in told] == [("`z == cid` compares and has no effect", "warning")]
    assert told[0].advice("") == "write `=` to give the name a value"


def test_macros_are_parsed_too() -> None:
    macro = "@T.macro\ndef scale(x, n):\n    if 0 < n < 3:\n        T.tile.mul(x, x, 2.0)\n"
    text = source(f"{TILES}{LOAD}scale(a, cid)\n{OK}{STORE}", args=ARGS, factory=macro)
    assert [f.code for f in findings(text) if f.code == "TL732"] == ["TL732"]


AROUND = """
import math
import tilelang
import tilelang.language as T

class cfg:
    scale = 2.0

def scale(v):
    return v * 2.0

@tilelang.jit(out_idx=[2])
def f(M=512, N=64, flag=True, n=3, opt=None, s=2.5, mode='a'):
    sizes = (1, 2, 3)
    bounds = (0, 4)
    table = {'a': 2}
    shape_s = T.Tensor((8,), 'float32')

    @T.prim_func
    def main(X: T.Tensor((M, N), 'float32'), I: T.Tensor((8,), 'int32'), Y: T.Tensor((M, N), 'float32')):
        with T.Kernel(8, threads=1, is_npu=True) as (cid):
            x = T.alloc_shared((64, 64), 'float32')
            T.copy(X[cid * 64, 0], x)
"""


def constructs() -> list[tuple[str, str, str]]:
    """What the real compiler said of each body: verdict, name, body."""
    text = (Path(__file__).parent / "data" / "constructs.tsv").read_text(encoding="utf-8")
    rows = (line.split("\t") for line in text.splitlines() if not line.startswith("#"))
    return [(verdict, name, body.replace("\\n", "\n").replace("\\\\", "\\")) for verdict, name, body in rows]


@pytest.mark.parametrize(
    ("verdict", "body"), [pytest.param(verdict, body, id=name) for verdict, name, body in constructs()]
)
def test_the_verdict_of_the_compiler_is_ours(verdict: str, body: str) -> None:
    text = AROUND + textwrap.indent(body, " " * 12) + "\n            T.copy(x, Y[cid * 64, 0])\n\n    return main\n"
    file = FileKernels(Index.parse(text))
    (located,) = file.located
    subject = Subject(located.read(), file, located, Options())
    found = [one for check in (front_end.check, signatures.check, gpu_names.check) for one in check(subject)]
    assert any(one.weight == "error" for one in found) == (verdict != "accepted"), [one.message for one in found]


def test_a_name_is_forgotten_behind_a_macro_but_not_in_it() -> None:
    macro = "@T.macro\ndef scale(x, n):\n    m = 1\n    if n > 3:\n        m = 2\n    T.tile.mul(x, x, m)\n"
    text = source(f"{TILES}{LOAD}scale(a, cid)\n{OK}{STORE}", args=ARGS, factory=macro)
    assert [f.code for f in findings(text) if f.code in ("TL739", "TL889")] == ["TL739"]
