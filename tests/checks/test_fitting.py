"""Tiles that do not fit: who asks for them, and which ones would."""

from __future__ import annotations

import pytest

from tests.checks.support import KEYS, ONE, errors, findings, kernel, source
from tl2npu.checks.subject import Finding
from tl2npu.kernel.expressions import code

UNPLANNED = KEYS[:3]
CUBE = "T.Kernel(8, is_npu=True) as (cid, _)"
PARAMS = 'A: T.Tensor((M, K), dtype), B: T.Tensor((K, M), dtype), O: T.Tensor((M, M), "float32")'
BODY = """
l = T.alloc_shared((bm, bk), dtype)
r = T.alloc_shared((bk, bn), dtype)
c = T.alloc_fragment((bm, bn), "float32")
for k in T.serial(K // bk):
    T.copy(A[0, k * bk], l)
    T.copy(B[k * bk, 0], r)
    T.gemm_v0(l, r, c, init=(k == 0))
T.copy(c, O[0, 0])
"""
"""L0C: bm x bn float32; L0A and L0B: bm x bk and bk x bn, 64 KB each."""


def text(args: str, tail: str = "", head: str = "", body: str = BODY, params: str = PARAMS) -> str:
    made = source(body, params=params, launch=CUBE, args=args, tail=tail)
    if head:
        before, _, after = made.partition("@tilelang.jit")
        return before + "from tilelang.autotuner import autotune\n" + head + "\n@tilelang.jit" + after
    return made


def sizes(found: str) -> list[Finding]:
    return [finding for finding in findings(found) if finding.code == "TL801"]


def repaired(finding: Finding) -> list[tuple[str, str | None]]:
    return [(code(node).strip(" ,"), new) for node, new in finding.repair]


def test_a_call_whose_tiles_do_not_fit_is_a_warning_with_a_proposal() -> None:
    (found,) = sizes(text("M, K, bm, bn, bk, dtype='float16'", "factory(1024, 1024, 256, bn=256, bk=64)"))
    assert found.severity == "warning"
    assert code(found.node) == "factory(1024, 1024, 256, bn=256, bk=64)"
    assert found.message == (
        "L0C holds 131072 bytes, `c` needs 262144 with bm=256, bn=256, bk=64;"
        " bm=256, bn=128, bk=64 is the largest that fits"
    )
    assert repaired(found) == [("256", "128")]


@pytest.mark.parametrize("call", ["factory(1024, 1024, 128, 128, 64)", "factory(1024, 1024, bm, bn, bk)", ""])
def test_what_fits_or_is_not_known_is_no_finding(call: str) -> None:
    assert sizes(text("M, K, bm, bn, bk, dtype='float16'", call)) == []


def test_a_call_in_a_loop_is_made_with_each_of_the_values() -> None:
    """One of the two fits; nothing is unproved, as the loop over a list sets every size."""
    calls = "SIZES = [(256, 256), (64, 64)]\nfor bm, bn in SIZES:\n    kernel = factory(1024, 1024, bm, bn, 64)"
    (found,) = sizes(text("M, K, bm, bn, bk, dtype='float16'", calls))
    assert found.message.startswith("1 of 2 configurations do not fit: ")
    assert "bm=256, bn=256" in found.message
    assert not [one for one in findings(text("M, K, bm, bn, bk, dtype='float16'", calls)) if one.code == "TL720"]


def test_one_call_of_two() -> None:
    calls = "factory(1024, 1024, 128, 128, 64)\nbig = factory(1024, 1024, 512, 128, 64)"
    (found,) = sizes(text("M, K, bm, bn, bk, dtype='float16'", calls))
    assert code(found.node) == "factory(1024, 1024, 512, 128, 64)"
    assert "bm=256, bn=128, bk=64 is the largest" in found.message


def test_one_call_in_a_function_that_gives_a_tile_size_only_once() -> None:
    """The first way to run it leaves the size to the factory, which has none; the second one does not fit."""
    calls = "def run(bn):\n    factory(1024, 1024, 256, bn, 64)\n\nrun(make())\nrun(256)"
    (found,) = sizes(text("M, K, bm, bn, bk, dtype='float16'", calls))
    assert "bn=128, bk=64 is the largest" in found.message
    assert repaired(found) == []  # `bn` stands for two sizes


def test_every_call_is_named() -> None:
    calls = "first = factory(1024, 1024, 256, 256, 64)\nsecond = factory(1024, 1024, bm=256, bn=256, bk=64)"
    found = sizes(text("M, K, bm, bn, bk, dtype='float16'", calls))
    assert [repaired(finding) for finding in found] == [[("256", "128")]] * 2


def test_defaults_count_where_nobody_calls() -> None:
    (found,) = sizes(text("M=1024, K=1024, bm=256, bn=256, bk=64, dtype='float16'"))
    assert repaired(found) == [("256", "128")]
    assert found.severity == "warning"


def test_the_element_type_counts() -> None:
    """128 x 256 elements of A take 64 KB in float16 and twice that in float32."""
    args = "M, K, bm, bn, bk, dtype"
    assert sizes(text(args, "factory(1024, 1024, 128, 128, 256, 'float16')")) == []
    (found,) = sizes(text(args, "factory(1024, 1024, 128, 128, 256, dtype=T.float32)"))
    assert "L0A holds 65536 bytes" in found.message
    assert "bm=128, bn=128, bk=128 is the largest that fits" in found.message


def test_sizes_of_tensors_are_not_changed() -> None:
    """The tile is as wide as the tensor: only its rows may shrink."""
    body = 't = T.alloc_shared((rows, N), "float32")\nT.copy(A[0, 0], t)\nT.tile.exp(t, t)\nT.copy(t, O[0, 0])'
    params = 'A: T.Tensor((512, N), "float32"), O: T.Tensor((512, N), "float32")'
    made = source(body, params=params, launch=ONE, args="N, rows=64", tail="factory(N=1024)")
    (found,) = sizes(made)
    assert found.message.endswith("with rows=64; rows=32 is the largest that fits")
    assert repaired(found) == [("64", "32")]  # the default


def test_fixed_sizes_are_an_error() -> None:
    body = 't = T.alloc_ub((512, 128), "float32")\nT.copy(A[0, 0], t)\nT.copy(t, O[0, 0])'
    assert errors(body, launch=ONE, args="bm", tail="factory(32)") == ["TL801"]


def test_no_tile_is_small_enough() -> None:
    body = 't = T.alloc_shared((rows, N), "float32")\nT.copy(A[0, 0], t)\nT.tile.exp(t, t)\nT.copy(t, O[0, 0])'
    params = 'A: T.Tensor((512, N), "float32"), O: T.Tensor((512, N), "float32")'
    assert errors(body, params=params, launch=ONE, args="N, rows", tail="factory(65536, 64)") == ["TL801"]
    both = "factory(65536, 64)\nfactory(1024, 32)"
    assert errors(body, params=params, launch=ONE, args="N, rows", tail=both) == []  # right for one of the two


def test_derived_sizes_follow_their_parameter() -> None:
    body = kernel('t = T.alloc_ub((rows, 512), "float32")', "T.copy(A[0, 0], t)\nT.copy(t, O[0, 0])")
    made = source(body, launch=ONE, args="block", factory="rows = block * 2 if block > 8 else 1", tail="factory(64)")
    (found,) = sizes(made)
    assert "with block=64; block=32 is the largest that fits" in found.message


CONFIGS = {
    "written out": '[{"bm": 128, "bn": 128, "bk": 64}, dict(bm=256, bn=256, bk=64)]',
    "lists": "configs()",
    "function itself": "configs",
    "a name": "made",
}
HEAD = """
import itertools

made = [{"bm": 128, "bn": 128, "bk": 64}, {"bm": 256, "bn": 256, "bk": 64}]

def configs():
    iter_params = dict(bm=[128, 256], bn=[128, 256], bk=[64], num_stages=[1, 2])
    return [dict(zip(iter_params, values)) for values in itertools.product(*iter_params.values())]

"""


@pytest.mark.parametrize("configs", CONFIGS.values(), ids=CONFIGS)
def test_configurations_of_the_autotuner(configs: str) -> None:
    head = HEAD + f"@autotune(configs={configs}, warmup=3)"
    made = text("M, K, bm=None, bn=None, bk=None, num_stages=1, dtype='float16'", "factory(1024, 1024)", head)
    (found,) = sizes(made)
    assert found.severity == "warning"
    assert "bm=256, bn=256, bk=64" in found.message
    if "configs" in configs:
        assert found.message.startswith("2 of 8 configurations do not fit: ")
        assert repaired(found) == [("256", None)]
    else:
        assert repaired(found)[0] == ("256", "128")


SPELLINGS = {
    "dicts": '[{"bm": 128, "bn": 128, "bk": 64}, {"bm": 256, "bn": 256, "bk": 64}]',
    "calls of dict": "[dict(bm=128, bn=128, bk=64), dict(bm=256, bn=256, bk=64)]",
    "comprehension": '[{"bm": b, "bn": b, "bk": 64} for b in (128, 256)]',
    "loops": "by_loops()",
    "unpacked": "by_product(128, 256)",
    "in the module": "grown",
    "called by the tuner": "by_loops",
}
MAKERS = """
import itertools
from elsewhere import far

def by_loops():
    made = []
    for block in (64, 128, 256):
        if block < 128:
            continue
        config = {"bm": block}
        config["bn"] = block
        config.update({"bk": 64})
        made.append(config)
    return made

def by_product(low, high):
    every = itertools.product((low, high), (low, high), [64])
    return [{"bm": c[0], "bn": c[1], "bk": c[2]} for c in every if c[0] == c[1]]

grown = []
for block in [128, 256]:
    grown.append(dict(bm=block, bn=block, bk=64))

def by_device():
    return [dict(bm=256, bn=256, bk=64)] if far.is_new() else [dict(bm=64, bn=64, bk=64)]

"""


def tuned(configs: str) -> list[Finding]:
    head = MAKERS + f"@autotune(configs={configs}, warmup=3)"
    made = text("M, K, bm=None, bn=None, bk=None, num_stages=1, dtype='float16'", "factory(1024, 1024)", head)
    return [finding for finding in findings(made) if finding.code in ("TL801", "TL740")]


@pytest.mark.parametrize("configs", SPELLINGS.values(), ids=SPELLINGS)
def test_one_verdict_however_configurations_are_written(configs: str) -> None:
    """Two configurations, of which 256 x 256 float32 are 256 KB of 128 in L0C: the tuner passes over that one."""
    (found,) = tuned(configs)
    assert (found.code, found.weight, found.as_it_stands) == ("TL801", "warning", None)
    assert "L0C holds 131072 bytes, `c` needs 262144 with bm=256, bn=256, bk=64" in found.message


@pytest.mark.parametrize("configs", ["[dict(bm=256, bn=256, bk=64)]", '[{"bm": b, "bn": b, "bk": 64} for b in [256]]'])
def test_no_configuration_fits(configs: str) -> None:
    (found,) = tuned(configs)
    assert (found.code, found.as_it_stands) == ("TL801", "error")


@pytest.mark.parametrize("configs", ["far.configs()", "by_device()", "[dict(bm=64, bn=far.width(), bk=64)]"])
def test_what_cannot_be_read_is_said(configs: str) -> None:
    assert "TL740" in [found.code for found in tuned(configs)]


def test_a_call_that_chooses_itself_is_not_tuned() -> None:
    head = HEAD + "@autotune(configs=configs(), warmup=3)"
    made = text("M, K, bm=None, bn=None, bk=None, dtype='float16'", "factory(1024, 1024, bm=64, bn=64, bk=64)", head)
    assert sizes(made) == []


def test_numbers_that_are_not_written_out_are_not_edited() -> None:
    (found,) = sizes(text("M, K, bm, bn, bk, dtype='float16'", "b = 256\nfactory(1024, 1024, b, b, 64)"))
    assert "is the largest that fits" in found.message
    assert found.repair == ()


def test_sizes_that_nobody_gives() -> None:
    """``rows`` x 512 float32: 128 rows are 256 KB; 196,352 bytes of UB hold 95 rows, 80 in steps of 16."""
    body = 't = T.alloc_shared((rows, 512), "float32")\nT.copy(A[0, 0], t)\nT.tile.exp(t, t)\nT.copy(t, O[0, 0])'
    params = 'A: T.Tensor((512, 512), "float32"), O: T.Tensor((512, 512), "float32")'
    found = findings(source(body, params=params, launch=ONE, args="rows"))
    assert [(finding.code, finding.message) for finding in found] == [
        ("TL720", "no call in this file sets `rows`; with 128 each the tiles do not fit in UB; up to 80 fits")
    ]
    for args, tail in (("rows=64", ""), ("rows", "factory(64)")):
        assert findings(source(body, params=params, launch=ONE, args=args, tail=tail)) == []
    narrow = body.replace("512), ", "128), ")
    assert findings(source(narrow, params=params, launch=ONE, args="rows")) == []


@pytest.mark.parametrize(
    ("extent", "said"),
    [
        ("T.min(cap, n)", "`n`; with 16384 each the tiles do not fit in UB; up to 12272 fits"),
        ("T.min(n, cap // 2)", None),
        ("T.max(cap, n)", "`n`; with 16 each the tiles do not fit in UB"),
        ("n", None),
    ],
)
def test_sizes_with_a_largest_are_tried_up_to_it(extent: str, said: str | None) -> None:
    """Four tiles of float32 of 12,272 elements take all 196,352 bytes of UB; ``n`` has no end."""
    tiles = "".join(f't{i} = T.alloc_shared(({extent},), "float32")\nT.copy(A[0], t{i})\n' for i in range(4))
    body = f"{tiles}T.tile.add(t0, t0, t1)\nT.tile.add(t0, t0, t2)\nT.tile.add(t0, t0, t3)\nT.copy(t0, O[0])"
    params = 'A: T.Tensor((m,), "float32"), O: T.Tensor((m,), "float32")'
    found = findings(source(body, params=params, launch=ONE, args="m, n, cap=16384"))
    told = [finding.message for finding in found if finding.code in ("TL720", "TL801")]
    assert told == ([] if said is None else [f"no call in this file sets {said}"])


@pytest.mark.parametrize(
    ("args", "call", "said"),
    [
        ("N", "factory(x.shape[1])", "`N`; with `N` = 2048 the tiles do not fit in UB"),
        ("N, dtype", "factory(256, name_of(x.dtype))", None),
        ("N, dtype", "factory(512, name_of(x.dtype))", "`dtype`; with `float32` the tiles do not fit in UB"),
        ("N, dtype='float16'", "factory(512, dtype=str(x.dtype))", "`dtype`; with `float32` the tiles do not fit in"),
        ("N, dtype='float16'", "factory(512)", None),
        ("N, dtype", "factory(1024, 'float16' if x.dtype == half else 'bfloat16')", "`dtype`; with `float16` the"),
        ("N, dtype='float16'", "factory(*x.shape)", "`N`; with `N` = 2048 the tiles do not fit in UB"),
        ("N, dtype='float16'", "factory(256)\nfactory(**sizes)", "`N`; with `N` = 2048 the tiles do not fit in UB"),
        ("N, dtype", "factory(256, 'float16')\npartial(factory, 512)", "`dtype`; with `float32` the tiles do not fit"),
    ],
)
def test_what_a_call_leaves_open(args: str, call: str, said: str | None) -> None:
    """Two tiles of 64 x N are 262144 bytes for 1024 float16 and 512 float32, and 131072 for 512 float16."""
    word = "dtype" if "dtype" in args else '"float16"'
    body = f"t = T.alloc_shared((64, N), {word})\nu = T.alloc_shared((64, N), {word})\nT.copy(A[0, 0], t)\n"
    body += "T.tile.exp(u, t)\nT.tile.add(t, t, u)\nT.copy(t, O[0, 0])"
    params = f"A: T.Tensor((512, N), {word}), O: T.Tensor((512, N), {word})"
    tail = f"from functools import partial\n{call}"
    all_found = findings(source(body, params=params, launch=ONE, args=args, tail=tail))
    found = [finding for finding in all_found if finding.code in ("TL720", "TL801")]
    assert [finding.code for finding in found] == ([] if said is None else ["TL720"])
    assert said is None or f"no call in this file sets {said}" in found[0].message


def test_sizes_of_the_command_line_are_a_warning() -> None:
    """No tile parameter would help, but another option does: nobody refuses the kernel for the script's default."""
    body = 't = T.alloc_shared((64, N), "float32")\nT.copy(A[0, 0], t)\nT.tile.exp(t, t)\nT.copy(t, O[0, 0])'
    params = 'A: T.Tensor((512, N), "float32"), O: T.Tensor((512, N), "float32")'
    tail = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--n', type=int, default=1024)\nfactory({})"
    (found,) = sizes(source(body, params=params, launch=ONE, args="N", tail=tail.format("p.parse_args().n")))
    assert (found.severity, found.as_it_stands, found.message) == (
        "warning",
        "error",
        "UB holds 196352 bytes, `t` needs 262144",
    )
    (found,) = sizes(source(body, params=params, launch=ONE, args="N", tail="factory(1024)"))
    assert (found.severity, found.as_it_stands) == (None, None)


FOUR = "".join(f't{i} = T.alloc_shared((SHAPE), "float32")\nT.copy(A[cid, 0], t{i})\n' for i in range(4))
FOUR += "T.tile.add(t0, t0, t1)\nT.tile.add(t0, t0, t2)\nT.tile.add(t0, t0, t3)\nT.copy(t0, O[cid, 0])"
ROWS = 'A: T.Tensor((M, D), "float32"), O: T.Tensor((M, D), "float32")'


@pytest.mark.parametrize(
    ("shape", "args", "tail", "said"),
    [
        ("1, D", "M, D", "", "`D` = 12,272"),  # of 196352 bytes, 16 for each column
        ("D,", "M, D", "", "`D` = 12,272"),
        ("2, D", "M, D", "", "`D` = 6,128"),
        ("1, D", "M, D", "factory(*x.shape)", "`D` = 12,272"),
        ("1, D", "M, D", "factory(64, 4096)", None),
        ("1, D", "M, D", "import torch\ndef run(x):\n    return factory(*x.shape)\nrun(torch.ones(64, 4096))", None),
        ("1, D // 2", "M, D", "", None),  # 16,384 columns fit
        ("1, P", "M, D, P", "", None),  # a tile of its own size
        ("1, P", "M, D, P", "factory(*x.shape, P=tilelang.next_power_of_2(x.shape[1]))", "`P` = 8,192"),
    ],
)
def test_rows_whose_length_nobody_gives(shape: str, args: str, tail: str, said: str | None) -> None:
    """Four tiles of a row each."""
    found = findings(source(FOUR.replace("SHAPE", shape), params=ROWS, launch=ONE, args=args, tail=tail))
    told = [finding.message for finding in found if finding.code in ("TL720", "TL801")]
    assert told == ([] if said is None else [f"nothing limits `{said[1]}`; the tiles do not fit in UB above {said}"])


def test_rows_that_two_vector_cores_share() -> None:
    """32,768 bytes of each tile for 16,384 columns: the launch never takes all of them at once where they are even."""
    launch = "T.Kernel(8, threads=1 if D % 2 else 2, is_npu=True) as (cid)"
    for launched, said in ((launch, []), (ONE, ["`D` = 12,272"])):
        found = findings(source(FOUR.replace("SHAPE", "D,"), params=ROWS, launch=launched, args="M, D"))
        told = [finding.message.partition(" above ")[2] for finding in found if finding.code == "TL720"]
        assert told == said
