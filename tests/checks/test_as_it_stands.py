"""What ``tl2npu check`` says of kernels that somebody wrote by hand (TL775 to TL777, TL790, TL894), and its help."""

from __future__ import annotations

import textwrap

import pytest

from tests.checks.support import ONE, PLAIN, SPLIT, source
from tl2npu.checking import check_text
from tl2npu.migration import migrate_text
from tl2npu.options import Options
from tl2npu.results import Diagnostic

PARAMS = 'X: T.Tensor((256, 64), "float32"), Y: T.Tensor((256, 64), "float32")'
TILES = """
x = T.alloc_ub((16, 64), "float32")
y = T.alloc_ub((16, 64), "float32")
w = T.alloc_ub((16, 64), "float32")
s = T.alloc_ub((16,), "float32")
"""
ALL = "\nT.barrier_all()\n"
LOAD = "T.copy(X[cid * 32 + vid * 16, 0], x)" + ALL
STORE = ALL + "T.copy(y, Y[cid * 32 + vid * 16, 0])"


def told(body: str, scope: str = "V", **settings: object) -> list[Diagnostic]:
    """What is said of a kernel with this body in a scope, in text order."""
    inside = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    given = {"launch": PLAIN, "keys": (), "params": PARAMS, **settings}
    text = source(f"{TILES}\nwith T.Scope('{scope}'):\n{inside}\n", **given)  # type: ignore[arg-type]
    return list(check_text(text, "kernel.py", Options()).diagnostics)


def codes(body: str, **settings: object) -> list[str]:
    return [item.code for item in told(body, **settings) if item.severity != "info"]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (LOAD + "T.tile.add(y, x, 1.0)" + STORE, []),
        (LOAD + "T.tile.add(y, x, w)" + STORE, ["TL775"]),
        (LOAD + "T.tile.add(y, w, x)" + STORE, ["TL775"]),
        (LOAD + "for i, j in T.Parallel(16, 64):\n    y[i, j] = x[i, j] * w[i, j]" + STORE, ["TL775"]),
        (LOAD + "T.tile.mul(y, x, w[0, 0])" + STORE, ["TL775"]),
        (LOAD + "T.tile.add(w, w, x)\nT.tile.add(y, x, w)" + STORE, ["TL775"]),
        (LOAD + "for i, j in T.Parallel(16, 64):\n    y[i, j] += x[i, j]" + STORE, ["TL775"]),
        (LOAD + "T.tile.fill(y, 0.0)\nT.tile.add(y, y, x)" + STORE, []),
        (LOAD + "if cid > 0:\n    T.tile.add(y, y, x)\nT.tile.add(y, y, x)" + STORE, []),
        (LOAD + "if cid == 0:\n    T.tile.fill(y, 0.0)\nT.tile.add(y, y, x)" + STORE, []),
        ("T.copy(w, Y[cid * 32 + vid * 16, 0])", ["TL775"]),
        (LOAD + "T.tile.fill(w, 2.0)\nT.tile.add(y, x, w)" + STORE, []),
        (LOAD + "if cid > 0:\n    T.tile.fill(w, 2.0)\nT.tile.add(y, x, w)" + STORE, []),
        (LOAD + "T.annotate_address({x: 0, w: 0, y: 8192})\nT.tile.add(y, x, w)" + STORE, []),
    ],
)
def test_a_tile_that_nothing_writes(body: str, expected: list[str]) -> None:
    assert [code for code in codes(body) if code in ("TL775", "TL776")] == expected


PART = "T.copy(X[cid * 32 + vid * 16, 0], x[0:8, :])" + ALL
ADD = "T.tile.add(y, x, 1.0)"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (PART + ADD + STORE, ["TL776"]),
        (PART + "T.copy(x, Y[cid * 32 + vid * 16, 0])", ["TL776"]),
        (PART + "T.reduce_sum(x, s, dim=0)" + ALL + "T.copy(s, Y[cid, 0])", ["TL776"]),
        (PART + "T.copy(x, w)\n" + ALL + "T.tile.exp(y, w)" + STORE, ["TL776"]),
        ("for i in T.serial(8):\n    T.copy(X[cid * 32 + i, 0], x[i, :])" + ALL + ADD + STORE, ["TL776"]),
        (LOAD + "w[0, 0] = 1.0\nT.tile.add(y, x, w)" + STORE, ["TL776"]),
        ("for i in T.serial(16):\n    T.copy(X[cid * 32 + i, 0], x[i, :])" + ALL + ADD + STORE, []),
        ("T.tile.fill(x, 0.0)" + ALL + PART + ADD + STORE, []),
        (PART + "T.copy(X[cid * 32 + vid * 16 + 8, 0], x[8:16, :])" + ALL + ADD + STORE, []),
        (PART + ADD + ALL + "T.copy(y[0:8, :], Y[cid * 32 + vid * 16, 0])", []),  # what is stored was loaded
        (PART + "T.reduce_sum(x, s, dim=1)" + ALL + "T.copy(s[0:8], Y[cid, 0])", []),
        ("T.copy(X[cid * 32 : cid * 32 + 8, :], x)" + ALL + ADD + STORE, []),  # fills the rest with zeros
        ("T.copy(X[cid * 32, 0], x[0 : n // 2, :])" + ALL + ADD + STORE, ["TL776"]),
        ("T.copy(X[cid * 32, 0], x[0 : n, :])" + ALL + ADD + STORE, []),
    ],
)
def test_a_tile_whose_end_nothing_writes(body: str, expected: list[str]) -> None:
    assert [code for code in codes(body, args="n=16") if code == "TL776"] == expected


def test_rows_of_a_split_tile_are_halves() -> None:
    """With ``threads=2`` the first half of a tile is all that a vector core has."""
    body = TILES + "\f" + PART + ADD + "\nT.copy(y, Y[cid * 32, 0])"
    for launch, expected in ((ONE, True), (SPLIT, False)):
        found = check_text(source(body, launch=launch, params=PARAMS), "kernel.py", Options()).diagnostics
        assert any(item.code == "TL776" for item in found) == expected


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("rows", "load", "store", "expected"),
    [
        (1, "B[0, 0]", "Y[cid * 32, 0]", True),
        (16, "B[0, 0]", "Y[cid * 32, 0]", True),
        (32, "B[0, 0]", "Y[cid * 32, 0]", False),
        (64, "B[cid * 32, 0]", "Y[cid * 32, 0]", False),  # in the first blocks there is enough of it
        (1, "B[0:1, :]", "Y[cid * 32, 0]", False),  # says how much it takes
        (1, "B[0, 0]", "Y[256, 0]", False),  # what is stored ends with its tensor as well
    ],
)
def test_a_row_for_all_rows(threads: int, rows: int, load: str, store: str, expected: bool) -> None:
    """The load of 32 rows ends with its tensor, and rows without a bias are stored."""
    body = f"""
    x = T.alloc_ub((32, 64), "float32")
    b = T.alloc_ub((32, 64), "float32")
    T.copy(Y[cid * 32, 0], x)
    T.copy({load}, b)
    T.tile.add(x, x, b)
    T.copy(x, {store})
    """
    params = f'B: T.Tensor(({rows}, 64), "float32"), Y: T.Tensor((257, 64), "float32")'
    launch = f"T.Kernel(8, threads={threads}, is_npu=True) as (cid)"
    text = source(body, launch=launch, params=params)
    found = [item for item in check_text(text, "kernel.py", Options()).diagnostics if item.code == "TL776"]
    assert [item.help.startswith("load one row") for item in found] == ([rows == 1] if expected else [])


SAME = "T.copy(y, Y[cid * 32, 0])"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (LOAD + ADD + ALL + SAME, ["TL777"]),
        (LOAD + "T.copy(x, Y[cid * 32, 0])", ["TL777"]),
        (LOAD + ADD + ALL + "for i in T.serial(16):\n    T.copy(y[i, :], Y[cid * 32 + i, 0])", ["TL777"]),
        ("row = cid * 32 + vid * 16\nT.copy(X[row, 0], x)" + ALL + ADD + ALL + SAME, ["TL777"]),
        (LOAD + ADD + ALL + "if cid < 4:\n    " + SAME, ["TL777"]),
        (LOAD + ADD + STORE, []),
        ("row = cid * 32 + vid * 16\nT.copy(X[row, 0], x)" + ALL + ADD + ALL + "T.copy(y, Y[row, 0])", []),
        (LOAD + ADD + ALL + "if vid == 0:\n    " + SAME, []),
        (LOAD + ADD + ALL + "T.tile.atomic_add(Y[cid * 32, 0], y)", []),
        ("T.copy(X[cid * 32, 0], x)" + ALL + ADD + ALL + SAME, []),  # both store the same values
        (LOAD + ALL + "T.copy(X[cid * 32, 0], x)" + ALL + ADD + ALL + SAME, []),  # the tile is loaded again
        (LOAD + ADD + ALL + "for i in T.serial(vid * 16, vid * 16 + 1):\n    T.copy(y[0, :], Y[cid * 32 + i, 0])", []),
    ],
)
def test_stores_of_both_vector_cores(body: str, expected: list[str]) -> None:
    assert [code for code in codes(body) if code == "TL777"] == expected


@pytest.mark.parametrize(
    ("body", "scope", "expected"),
    [
        (LOAD + ADD + STORE, "C", ["TL894"]),
        ("T.tile.fill(x, 0.0)" + ALL + ADD + STORE, "C", ["TL894"]),
        (
            "c = T.alloc_L0C((16, 16), 'float32')\na = T.alloc_L1((16, 64), 'float16')\nT.gemm_v0(a, a, c, init=True)",
            "V",
            ["TL894", "TL894"],
        ),
        (LOAD + ADD + STORE, "V", []),
        ("for i in T.serial(2):\n    T.tile.fill(x, 0.0)", "C", ["TL894"]),
        ("x[0, 0] = X[cid, 0]\nT.dump_tensor(x, 1, 4)", "C", ["TL894"]),
        ("for i in T.serial(2):\n    if x[0, i] > 0.0:\n        T.barrier_all()", "C", ["TL894"]),
    ],
)
def test_statements_of_the_other_core(body: str, scope: str, expected: list[str]) -> None:
    """Of each scope the first one only."""
    found = [item for item in told(body, scope) if item.code == "TL894" and "belongs to" in item.message]
    assert [item.code for item in found] == expected[:1]
    assert all("T.Scope(" in item.help for item in found)


@pytest.mark.parametrize(
    ("number", "severity"),
    [("7", None), ("8", "info"), ("n", "info"), ("15", "info"), ("16", "error"), ("-1", "error")],
)
def test_numbers_of_events(number: str, severity: str | None) -> None:
    body = LOAD + f"T.set_flag('v', 'mte3', {number})\nT.wait_flag('v', 'mte3', {number})\n" + ADD + STORE
    found = [item.severity for item in told(body, args="n=9") if item.code == "TL790"]
    assert found == ([severity] if severity else [])


def test_cross_core_numbers() -> None:
    body = "T.set_cross_flag('MTE3', {})"
    assert [i.severity for n in (10, 11, 16) for i in told(body.format(n)) if i.code == "TL790"] == ["info", "error"]


LOOP = """
T.init_flag({{"V": {{"MTE2": [{0}]}}, "MTE3": {{"V": [0]}}}})
for i in T.serial(4):
    T.wait_flag("v", "mte2", 0)
    T.copy(X[cid * 32 + vid * 16, 0], x)
    T.set_flag("mte2", "v", 0)
    T.wait_flag("mte2", "v", 0)
    T.wait_flag("mte3", "v", 0)
    T.tile.add(y, x, 1.0)
    T.set_flag("v", "mte2", 0)
    T.set_flag("v", "mte3", 0)
    T.wait_flag("v", "mte3", 0)
    T.copy(y, Y[cid * 32 + vid * 16, 0])
    T.set_flag("mte3", "v", 0)
T.clear_flag({1})
"""


@pytest.mark.parametrize(
    ("events", "cleared", "expected"),
    [
        ("0", '{"V": {"MTE2": [0]}, "MTE3": {"V": [0]}}', []),
        ("0", "{'V': {'MTE2': (0,)}, 'MTE3': {'V': (0,)}}", []),
        ("0", '{"MTE3": {"V": [0]}}', ["TL330"]),
        ("0, 1", '{"V": {"MTE2": [0]}, "MTE3": {"V": [0]}}', ["TL330"]),
        ("", '{"V": {"MTE2": [0]}, "MTE3": {"V": [0]}}', ["TL330"]),
        ("0", '{"V": {"MTE2": [0]}, "mte3": {"V": [0]}}', ["TL790"]),
        ("0", '{"VEC": {"MTE2": [0]}, "MTE3": {"V": [0]}}', ["TL330", "TL790", "TL330"]),
        ("0", "maps[0]", []),  # not written out: nothing is known
    ],
)
def test_lists_of_flags(events: str, cleared: str, expected: list[str]) -> None:
    found = [code for code in codes(LOOP.format(events, cleared)) if code in ("TL330", "TL790")]
    assert sorted(found) == sorted(expected)


def test_the_help_of_an_access_without_order_can_be_written_down() -> None:
    """The line of the other access, and a number that no flag has."""
    body = (
        LOAD + "T.set_flag('mte2', 'v', 0)\nT.wait_flag('mte2', 'v', 0)\nT.tile.add(y, x, 1.0)\n" + STORE.lstrip("\n")
    )
    (item,) = told(body.replace("T.barrier_all()\nT.copy(y", "T.copy(y"))
    line = item.line - 1
    assert item.code == "TL780"
    assert f"T.tile.add on line {line} has written it" in item.message
    assert item.help.startswith(
        f'write `T.set_flag("v", "mte3", 1)` behind line {line} and `T.wait_flag("v", "mte3", 1)`'
    )


def test_an_overwrite_in_the_next_iteration_needs_flags_around_the_loop() -> None:
    steps = LOAD.replace(ALL, "\nT.set_flag('mte2', 'v', 0)\nT.wait_flag('mte2', 'v', 0)\n") + ADD + STORE
    item, *_ = told("for i in T.serial(4):\n" + textwrap.indent(steps, "    "))
    assert (item.code, "set it once more before the loop" in item.help) == ("TL781", True)
    assert "`T.barrier_all()` behind line" in item.help


@pytest.mark.parametrize("wait", ['T.wait_flag("v", "mte3", 0)', 'T.wait_flag("v", "mte2", 0)'])
def test_a_flag_that_is_set_needs_its_wait(wait: str) -> None:
    """No other number: the flag is there, and only the wait for it is missing."""
    body = LOOP.format("0", '{"V": {"MTE2": [0]}, "MTE3": {"V": [0]}}').replace(f"    {wait}\n", "", 1)
    helps = [item.help for item in told(body) if item.code in ("TL780", "TL781")]
    assert [found.startswith(f"write `{wait}` before this: line ") for found in helps] == [True]


CROSS = """
a = T.alloc_L1((32, 64), "float16")
b = T.alloc_L1((64, 64), "float16")
c = T.alloc_L0C((32, 64), "float32")
u = T.alloc_ub((16, 64), "float32")
with T.Scope("C"):
    T.copy(A[cid * 32, 0], a)
    T.copy(B, b)
    T.barrier_all()
    T.gemm_v0(a, b, c, init=True)
    T.barrier_all()
    T.copy(c, W[cid * 32, 0])
    T.set_cross_flag("{}", 0)
with T.Scope("V"):
    T.wait_cross_flag(0)
    T.copy(W[cid * 32 + vid * 16, 0], u)
    T.barrier_all()
    T.copy(u, C[cid * 32 + vid * 16, 0])
"""
TENSORS = (
    'A: T.Tensor((256, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((256, 64), "float32"), '
    'W: T.Tensor((256, 64), "float32")'
)


@pytest.mark.parametrize("pipe", ["FIX", "MTE3", "M", "mte2"])
def test_a_cross_core_flag_of_the_wrong_pipe_is_named(pipe: str) -> None:
    jit = "out_idx=[2], workspace_idx=[3]"
    text = source(CROSS.format(pipe), launch=PLAIN, keys=(), params=TENSORS, jit=jit)
    found = [item for item in check_text(text, "kernel.py", Options()).diagnostics if item.code == "TL780"]
    if pipe == "FIX":
        assert found == []
        return
    (item,) = found
    at = text[: text.index("T.set_cross_flag")].count("\n") + 1
    assert f"on line {at - 1} has written it" in item.message
    want = f'`T.set_cross_flag("{pipe}", 0)` on line {at} waits for pipe {pipe.upper()} only: set it on pipe FIX'
    assert item.help == want


def test_a_cross_core_flag_that_is_set_needs_its_wait() -> None:
    text = source(CROSS.format("FIX").replace("    T.wait_cross_flag(0)\n", ""), launch=PLAIN, keys=(), params=TENSORS)
    (item,) = [one for one in check_text(text, "kernel.py", Options()).diagnostics if one.code == "TL780"]
    at = text[: text.index("T.set_cross_flag")].count("\n") + 1
    assert item.help == f"write `T.wait_cross_flag(0)` before this: line {at} sets that flag, and a wait is missing"


def test_an_address_is_named_where_it_stands() -> None:
    body = "T.annotate_address({\n    x: 0,\n    y: 4096,\n    w: 8200,\n})\n" + LOAD + "T.tile.add(y, x, 1.0)" + STORE
    wrong = [
        body,
        body.replace("8200", "8192").replace("4096", "4100"),
        body.replace("8200", "8192").replace("0,", "8,"),
    ]
    lines = [one.line for text in wrong for one in told(text) if one.code == "TL793"]
    assert lines == [lines[2] + 2, lines[2] + 1, lines[2]]


HELPS = [
    ("T.gemm_v0(p, q, r, init=True)", "pass `transpose_B=True`"),
    ("T.gemm_v0(p, q, r, transpose_A=True, transpose_B=True, init=True)", "leave out `transpose_A`"),
    (
        "T.gemm_v0(p, p, r, init=True)",
        "load tiles of A and B with the same K; a part of a tile is not an operand of gemm_v0",
    ),
    (
        "T.gemm_v0(p, q, v, transpose_B=True, init=True)",
        "allocate the result as (32, 48), or load tiles of its size; gemm_v0 takes no part of a tile",
    ),
    ("T.reduce_max(u, m, dim=1)", "pass `dim=0`, whose result has this shape, or allocate `out` for axis `1`"),
    (
        "T.reduce_sum(u, o, dim=-1)",
        "allocate `out` with this shape; `real_shape` is at most that of the tile, and `dim` one of its axes",
    ),
]


@pytest.mark.parametrize(("call", "help"), HELPS, ids=[call for call, _ in HELPS])
def test_the_help_of_shapes_is_about_the_operator(call: str, help: str) -> None:
    tiles = """
    p = T.alloc_shared((32, 64), "float16")
    q = T.alloc_shared((48, 64), "float16")
    r = T.alloc_fragment((32, 48), "float32")
    v = T.alloc_fragment((16, 48), "float32")
    u = T.alloc_shared((16, 24), "float32")
    m = T.alloc_shared((24,), "float32")
    o = T.alloc_shared((40,), "float32")
    """
    result = check_text(source(tiles + "\f" + call, launch=ONE, params=PARAMS), "kernel.py", Options())
    assert next(item.help for item in result.diagnostics if item.code == "TL741") == help
    assert sum(item.code == "TL741" for item in result.diagnostics) == 1 + (call.count("p, p") == 1)


SWIZZLED = """
for i in T.serial(4):
    {name} = T.use_swizzle({value}, 256, 64, 64, 16, 64)
    if {name} < 16:
        T.copy(X[{name} // 1 % 16 * 16, 0], x)
        T.copy(x, Y[{name} % 16 * 16, 0])
"""


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("cid", "i * 8 + cid", []),
        ("tile", "i * 8 + cid", []),
        ("cid", "cid + 8", ["TL739"]),  # the same tile in every iteration
        ("cid", "8 * i + cid", []),
    ],
)
def test_the_number_of_a_swizzled_tile(name: str, value: str, expected: list[str]) -> None:
    body = SWIZZLED.format(name=name, value=value)
    found = [code for code in codes(body, keys=("AUTO_SYNC",)) if code in ("TL739", "TL761")]
    assert list(dict.fromkeys(found)) == expected


@pytest.mark.parametrize(("call", "expected"), [("n=4", []), ("n=5", []), ("n=3", ["info"]), ("", ["info"])])
def test_a_flag_in_one_iteration_is_judged_by_the_sizes_of_the_calls(call: str, expected: list[str]) -> None:
    body = """
    T.set_flag("v", "mte2", 0)
    for i in T.serial(8):
        T.wait_flag("v", "mte2", 0)
        for k in T.serial(n):
            if k == 3:
                T.set_flag("v", "mte2", 0)
    T.wait_flag("v", "mte2", 0)
    """
    tail = f"factory({call})" if call else ""
    found = [item.severity for item in told(body, args="n", tail=tail) if item.code == "TL330"]
    assert list(dict.fromkeys(found)) == expected


def test_unsafe_is_named_only_where_migrate_writes_the_tiles() -> None:
    """Whether a kernel in Expert mode migrates at all is not known to ``check``."""
    tile = "big = T.alloc_ub((block, 1024), 'float32')\nT.copy(X[cid * block, 0], big)\nT.copy(big, Y[cid * block, 0])"
    params = 'X: T.Tensor((256, 1024), "float32"), Y: T.Tensor((256, 1024), "float32")'
    for launch in (PLAIN, ONE):
        text = source(tile, launch=launch, params=params, args="block", tail="factory(128)", keys=("AUTO_SYNC",))
        (item,) = (one for one in check_text(text, "k.py", Options()).diagnostics if one.code == "TL801")
        assert ("--unsafe" in item.help) == (launch is ONE)


@pytest.mark.parametrize(
    ("blocks", "store", "said"),
    [
        (8, "T.copy(y, Y[cid * 32 + vid * 16, 0])", []),
        (7, "T.copy(y, Y[cid * 32 + vid * 16, 0])", ["no store reaches elements 224 to 255 of 256 on axis 0 of `Y`"]),
        (
            8,
            "T.copy(y[:, 0:32], Y[cid * 32 + vid * 16, 0])",
            ["no store reaches elements 32 to 63 of 64 on axis 1 of `Y`"],
        ),
        (7, "for n in range(2):\n    T.copy(y, Y[(cid + n) * 32 + vid * 16, 0])", []),
        (7, "T.copy(y, Y[cid * 32 + vid * 16, 0])\nT.copy(y, Y[224 + vid * 16, 0])", []),
    ],
)
def test_the_end_of_what_a_call_returns(blocks: int, store: str, said: list[str]) -> None:
    launch = PLAIN.replace("8", str(blocks))
    found = told(LOAD + ADD + ALL + store, launch=launch)
    assert [item.message for item in found if item.code == "TL799"] == said
    none = told(LOAD + ADD + ALL + store.replace("vid * 16", "vid * 16 + 16 // n"), launch=launch, args="n=0")
    assert not [item for item in none if item.code == "TL799" and "axis 0" in item.message]  # nothing is built of that
    given = told(LOAD + ADD + ALL + store, launch=launch, jit="")
    assert not [item for item in given if item.code == "TL799"]  # what the caller gives may hold something


def test_a_call_that_the_compiler_drops_is_told_alike() -> None:
    """`keep Expert mode` would be no advice: the call is dropped there too."""
    body = f'{LOAD}T.call_extern("handle", "scale", x.access_ptr("rw"))\n{STORE}'
    text = source(f"{TILES}\n{body}\n", launch=PLAIN, keys=(), params=PARAMS)
    checked = check_text(text, "kernel.py", Options()).diagnostics
    migrated = migrate_text(text, "kernel.py", Options()).diagnostics
    said = [{(one.code, one.message) for one in found if "call_extern" in one.message} for found in (checked, migrated)]
    assert said == [{("TL897", "the Ascend compiler ignores or rejects T.call_extern")}] * 2
