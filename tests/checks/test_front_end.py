"""TL732: what the parser of the compiler said of each of these kernels (95acbd7f, one kernel for each line)."""

from __future__ import annotations

import pytest

from tests.checks.support import LOAD, STORE, TILES, findings, source

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
    assert found("if 0 <= cid < 3:\n" + SCALED) == [
        "the parser takes `0 <= cid < 3` for `(0 <= cid) < 3`: write two comparisons with `and`"
    ]


def test_macros_are_parsed_too() -> None:
    macro = "@T.macro\ndef scale(x, n):\n    if 0 < n < 3:\n        T.tile.mul(x, x, 2.0)\n"
    text = source(f"{TILES}{LOAD}scale(a, cid)\n{OK}{STORE}", args=ARGS, factory=macro)
    assert [f.code for f in findings(text) if f.code == "TL732"] == ["TL732"]
