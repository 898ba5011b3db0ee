"""What authors write, the compiler reads as they mean it, and ``check`` therefore must not call an error.

Each kind has its counterpart, which is one. Read in the code that the compiler (95acbd7f) generates for these kernels.
"""

from __future__ import annotations

import pytest

from tests.checks.support import KEYS, LOAD, PLAIN, SPLIT, STORE, TILES, source
from tl2npu.checking import check_text
from tl2npu.options import Options

END = "T.tile.exp(b, a)\n" + STORE
NO_PLAN = ("AUTO_CV_COMBINE", "AUTO_SYNC")


def said(text: str, code: str) -> str:
    """The severities of what is said of a kernel under a code, worst first, as one word; empty for nothing."""
    found = {finding.severity for finding in check_text(text, "k.py", Options()).diagnostics if finding.code == code}
    return "error" if "error" in found else "warning" if "warning" in found else ""


OLD_VALUE = "n = 1\nif mode == 1:\n    n = 2\nfor _ in T.serial(n):\n    T.tile.mul(a, a, 2.0)\n"


@pytest.mark.parametrize(
    ("body", "tail", "expected"),
    [
        (OLD_VALUE, "factory(0)", "warning"),  # no call comes to `n = 2`
        (OLD_VALUE, "for m in (0, 2):\n    factory(m)", "warning"),
        (OLD_VALUE, "factory(1)", "error"),
        (OLD_VALUE, "factory(0)\nfactory(1)", "error"),
        (OLD_VALUE, "", "error"),  # nobody says what `mode` is
        (OLD_VALUE.replace("mode == 1", "cid > 3"), "factory(0)", "error"),
        (OLD_VALUE.replace("mode == 1", "mode != 1"), "factory(1)", "warning"),
        ("n = 1\nif mode == 0:\n    pass\nelse:\n    n = 2\nT.tile.mul(a, a, n)\n", "factory(0)", "warning"),
        # an inner loop that uses the name of an outer one
        ("for i in T.serial(2):\n    for i in T.serial(3):\n        pass\n    T.tile.mul(a, a, i)\n", "", ""),
        ("i = 2\nfor i in T.serial(3):\n    T.tile.mul(a, a, 2.0)\nT.tile.mul(a, a, i)\n", "", "warning"),
        # the block's index, anew from itself in each turn
        ("for i in T.serial(2):\n    cid = i * 8 + cid\n    T.tile.mul(a, a, cid)\n", "", ""),  # tile i of the block
        ("for i in T.serial(2):\n    cid = cid + 8\n    T.tile.mul(a, a, cid)\n", "", "warning"),
        ("n = 0\nfor i in T.serial(2):\n    n = n + 1\n    T.tile.mul(a, a, n)\n", "", "error"),
        ("if cid > 3:\n    cid = cid - 3\nT.tile.mul(a, a, cid)\n", "", "error"),
    ],
)
def test_names_that_keep_their_value(body: str, tail: str, expected: str) -> None:
    body = f"{TILES}{LOAD}{body}T.tile.exp(b, a)\nT.copy(b, O[0, 0])\n"
    assert said(source(body, args="mode", tail=tail), "TL739") == expected


@pytest.mark.parametrize(
    ("domain", "expected"),
    [
        ("[4, 2]", ""),
        ("(T.ceildiv(256, 64), 2)", ""),
        ("[4.0, 2]", ""),
        ("'ab'", "error"),
        ("None", "error"),
    ],
)
def test_a_domain_is_a_list(domain: str, expected: str) -> None:
    body = f"for x, y in T.Persistent({domain}, 8, cid):\n    T.tile.mul(a, a, 2.0)\n"
    assert said(source(TILES + LOAD + body + END), "TL732") == expected


@pytest.mark.parametrize(
    ("factory", "shape", "index", "expected"),
    [
        ("lead = [8, 4]", "[*lead, 32, 64]", "cid, 0, 0, 0", ""),
        ("lead = (8, 4)\nmore = [*lead, 32]", "(*more, 64)", "cid, 0, 0, 0", ""),
        ("lead = [8, 4]", "[*lead, 32, 64]", "cid, 0, 0", "error"),
        ("", "[*args, 64]", "cid, 0, 0, 0, 0", ""),  # as many as the caller gives
        ("lead = [8]", "[*lead, 64]", "cid, 0, 0, 0", "error"),
        ("lead = []", "[*lead, 64]", "cid, 0", "error"),
    ],
)
def test_shapes_with_a_star(factory: str, shape: str, index: str, expected: str) -> None:
    params = f'A: T.Tensor((256, 64), "float32"), O: T.Tensor({shape}, "float32")'
    text = source(TILES + LOAD + f"T.copy(a, O[{index}])\n", params=params, args="args", factory=factory)
    assert said(text, "TL732") == expected


WORKSPACE = (
    'A: T.Tensor((256, 64), "float16"), O: T.Tensor((256, 64), "float32"), workspace_1: T.Tensor(({}), "float32")'
)
PRODUCT = """
p = T.alloc_shared((32, 64), "float16")
q = T.alloc_shared((64, 64), "float16")
acc = T.alloc_fragment((32, 64), "float32")
out = T.alloc_shared((16, 64), "float32")
T.copy(A[0, 0], p)
T.copy(A[0, 0], q)
T.gemm_v0(p, q, acc, init=True)
T.copy(acc, workspace_1[{place}])
T.copy(workspace_1[{read}], out)
T.tile.exp(out, out)
T.copy(out, O[cid * 32 + vid * 16, 0])
"""


@pytest.mark.parametrize(
    ("shape", "place", "read", "expected"),
    [
        ("8, 32, 64", "cid, 0, 0", "cid, vid * 16, 0", ""),
        ("32, 64", "0, 0", "vid * 16, 0", "error"),
        # a part for each block, of which nothing proves it: sizes that one factory knows
        ("r, 32, 64", "cid * 3 % r, 0, 0", "cid * 3 % r, vid * 16, 0", "warning"),
        ("8, 32, 64", "cid // 2, 0, 0", "cid // 2, vid * 16, 0", "warning"),
    ],
)
def test_parts_of_a_workspace(shape: str, place: str, read: str, expected: str) -> None:
    body = PRODUCT.format(place=place, read=read)
    text = source(body, launch=PLAIN, params=WORKSPACE.format(shape), jit="out_idx=[1], workspace_idx=[2]", args="r=8")
    assert said(text, "TL842") == expected


KEPT = 'A: T.Tensor((256, 64), "float32"), O: T.Tensor((256, 64), "float32"), ws: T.Tensor((512, 64), "float32")'


@pytest.mark.parametrize(
    ("launch", "stored", "loaded", "keys", "expected"),
    [
        (SPLIT, "cid * 32 : cid * 32 + 32, :", "cid * 32 : cid * 32 + 32, :", None, ""),
        (SPLIT, "cid * 32, 0", "cid * 32, 0", None, ""),
        (PLAIN, "cid * 64 + vid * 32, 0", "cid * 64 + vid * 32, 0", None, ""),
        (PLAIN, "cid * 64 + vid * 32, 0", "cid * 64 + (1 - vid) * 32, 0", None, "error"),
        (SPLIT, "cid * 32, 0", "cid * 32 + 16, 0", None, "error"),
        (SPLIT, "cid * 32, 0", "cid * 32, 0", NO_PLAN[:1], "error"),  # no pass orders the two
    ],
)
def test_what_a_core_loads_of_its_own(
    launch: str, stored: str, loaded: str, keys: tuple[str, ...] | None, expected: str
) -> None:
    body = TILES + LOAD + f"T.tile.exp(a, a)\nT.copy(a, ws[{stored}])\nT.copy(ws[{loaded}], b)\n" + STORE
    text = source(body, launch=launch, params=KEPT, jit="out_idx=[1], workspace_idx=[2]", keys=keys or KEYS)
    assert said(text, "TL849") == expected


@pytest.mark.parametrize(
    ("target", "name", "dtype", "expected"),
    [
        ("pto", "bitwise_and", "uint8", ""),
        ("pto", "bitwise_or", "uint8", ""),
        ("pto", "bitwise_and", "uint16", ""),
        ("ascendc", "bitwise_and", "uint16", ""),
        ("ascendc", "bitwise_and", "uint8", "error"),
        ("pto", "bitwise_xor", "uint8", "error"),
        ("pto", "add", "uint8", "error"),
    ],
)
def test_bytes_of_target_pto(target: str, name: str, dtype: str, expected: str) -> None:
    body = f"""
    m = T.alloc_ub((64,), "{dtype}")
    T.copy(M[0:64], m)
    T.tile.{name}(m, m, m)
    T.copy(m, N[0:64])
    """
    params = f'M: T.Tensor((64,), "{dtype}"), N: T.Tensor((64,), "{dtype}")'
    assert said(source(body, launch=PLAIN, params=params, jit=f'out_idx=[1], target="{target}"'), "TL710") == expected


@pytest.mark.parametrize(
    ("target", "launch", "expected"),
    [("pto", PLAIN, ""), ("pto", SPLIT, "error"), ("ascendc", PLAIN, "error")],
)
def test_columns_loaded_for_target_pto(target: str, launch: str, expected: str) -> None:
    body = 'w = T.alloc_ub((32, 128), "float32")\nT.copy(A[cid * 32 : cid * 32 + 32, :], w[:, 64:128])\n'
    body += TILES + "T.copy(w[:, 0:64], b)\n" + STORE
    text = source(body, launch=launch, jit=f'out_idx=[1], target="{target}"')
    assert said(text, "TL892") == expected


@pytest.mark.parametrize(
    ("rows", "keys", "expected"),
    [
        (256, NO_PLAN, ""),  # 3 x 65,536 bytes are all of UB
        (256, (*NO_PLAN, "MEMORY_PLANNING"), "error"),  # planning leaves 256 bytes free
        (264, NO_PLAN, "error"),
        (255, (*NO_PLAN, "MEMORY_PLANNING"), ""),
    ],
)
def test_the_end_of_a_memory(rows: int, keys: tuple[str, ...], expected: str) -> None:
    tiles = "".join(f'{name} = T.alloc_ub(({rows}, 64), "float32")\n' for name in "xyz")
    body = f"{tiles}T.copy(A[0, 0], x)\nT.copy(A[0, 0], y)\nT.tile.add(z, x, y)\nT.copy(z, O[0, 0])\n"
    assert said(source(body, launch=PLAIN, keys=keys), "TL801") == expected


STAGED = """
p = T.alloc_L1((64, 64), "float16")
q = T.alloc_L1((64, 64), "float16")
acc = T.alloc_L0C((2, 64, 64), "float32")
load = T.alloc_ub((32, 512), "float32")
out = T.alloc_ub((32, 512), "float32")
for k in T.Pipelined(8, num_stages=4):
    T.copy(A[0, 0], p)
    T.copy(A[k * 64, 0], q)
    T.gemm_v0(p, q, acc[0, :, :], init=True)
    T.copy(acc[0, :, :], {name}[cid, 0, 0])
    T.copy({name}[cid, 0, 0:512], load)
    T.tile.exp(out, load)
    T.copy(out, O[0, 0])
"""


@pytest.mark.parametrize(("name", "expected"), [("workspace_1", ""), ("scratch", "error")])
def test_tiles_of_one_part_of_a_pipeline(name: str, expected: str) -> None:
    """The compiler makes versions of what two parts of a loop over both cores share, not of what one part loads."""
    params = 'A: T.Tensor((512, 64), "float16"), O: T.Tensor((256, 512), "float32"), '
    params += f'{name}: T.Tensor((8, 64, 512), "float32")'
    text = source(STAGED.format(name=name), launch=PLAIN, params=params, jit="out_idx=[1], workspace_idx=[2]")
    assert said(text, "TL801") == expected


@pytest.mark.parametrize(
    ("copy", "expected"),
    [
        ("T.copy(X[cid * 32 : cid * 32 + 32], x[0, :, 0])", ""),  # copy_gm_to_ub<float, 1, 32>(.., 1, 32): one burst
        ("T.copy(W[cid, 0:32], x[1, :, 0])", ""),
        ("T.copy(x[0, :, 0], X[cid * 32 : cid * 32 + 32])", ""),
        ("T.copy(Z[cid * 32 : cid * 32 + 32, :], x[0, :, :])", "error"),  # (.., 32, 1): 32 bursts of 4 bytes
        ("T.copy(x[1, :, :], Z[cid * 32 : cid * 32 + 32, :])", "error"),
    ],
)
def test_a_column_that_is_one_burst(copy: str, expected: str) -> None:
    params = 'X: T.Tensor((256,), "float32"), Z: T.Tensor((256, 1), "float32"), W: T.Tensor((8, 32), "float32")'
    body = f'x = T.alloc_ub((2, 32, 1), "float32")\n{copy}\nT.tile.exp(x, x)\n'
    assert said(source(body, launch=PLAIN, params=params, jit="out_idx=[2]"), "TL700") == expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("T.tile.reduce_sum_experiment(s, a, 2048)", ""),  # ReduceSum: one element
        ("T.tile.reduce_sum_experiment(s, a, 2056)", "error"),
        ("T.tile.abs_experiment(s, a, 2048)", "error"),
        ("T.tile.cast(s, a, 'CAST_RINT', 2048)", "error"),
    ],
)
def test_a_sum_of_many_is_one(call: str, expected: str) -> None:
    text = source(TILES + 's = T.alloc_ub((8,), "float32")\n' + LOAD + f"{call}\n" + END, launch=PLAIN)
    assert said(text, "TL789") == expected
