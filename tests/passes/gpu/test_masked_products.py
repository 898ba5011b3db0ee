"""Masks of zeros and minus infinities that a product is added to, and masks where memory is short."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

from tests.passes.gpu.support import agree, gpu_file, migrated, refused
from tests.passes.simulated import run
from tl2npu.migration import migrate_text
from tl2npu.options import Options

_PARAMS = 'Q: T.Tensor((S, 32), "float16"), K: T.Tensor((S, 32), "float16"), R: T.Tensor((S,), "float32")'


def _text(mask: str, args: str = "S, causal", block: str = "32", end: str = "", behind: str = "") -> str:
    body = f"""
    q = T.alloc_shared(({block}, 32), "float16")
    k = T.alloc_shared(({block}, 32), "float16")
    p = T.alloc_shared(({block}, 32), "float16")
    s = T.alloc_fragment(({block}, {block}), "float32")
    p16 = T.alloc_fragment(({block}, {block}), "float16")
    o = T.alloc_fragment(({block}, 32), "float32")
    top = T.alloc_fragment(({block},), "float32")
    total = T.alloc_fragment(({block},), "float32")
    T.copy(Q[bx * {block} : bx * {block} + {block}, :], q)
    T.clear(o)
    for n in range(S // {block}):
        T.copy(K[n * {block} : n * {block} + {block}, :], k)
{mask}
        T.gemm(q, k, s, transpose_B=True)
{behind}
        T.reduce_max(s, top, dim=1)
        for i, j in T.Parallel({block}, {block}):
            s[i, j] = T.exp(T.max(s[i, j] - T.max(top[i], -1e4), -60.0))
        T.copy(s, p16)
        T.gemm(p16, k, o)
    T.reduce_sum(o, total, dim=1)
    T.copy(total, R[bx * {block} : bx * {block} + {block}])
    """
    return gpu_file(_PARAMS, body, args=args, launch=f"T.Kernel(S // {block}, threads=128) as bx") + end


def _mask(value: str, indent: str = "        ") -> str:
    return f"{indent}for i, j in T.Parallel(32, 32):\n{indent}    s[i, j] = {value}"


def _inputs(size: int = 64) -> dict[str, np.ndarray]:
    random = np.random.default_rng(3)
    return {name: random.standard_normal((size, 32)).astype(np.float16) for name in ("Q", "K")}


CAUSAL = "T.if_then_else(bx * 32 + i >= n * 32 + j, 0, -T.infinity(s.dtype))"
AHEAD = "T.if_then_else(n * 32 + j > bx * 32 + i, -T.infinity('float32'), 0.0)"
PLAIN = "0 if bx * 32 + i >= n * 32 + j else -T.infinity('float32')"
BRANCH = """\
        for i, j in T.Parallel(32, 32):
            if bx * 32 + i >= n * 32 + j:
                s[i, j] = 0
            else:
                s[i, j] = -T.infinity('float32')"""
BAND = "T.if_then_else(bx * 32 + i >= n * 32 + j and bx * 32 + i < n * 32 + j + 40, 0, -T.infinity('float32'))"


@pytest.mark.parametrize(
    "mask",
    [_mask(CAUSAL), _mask(AHEAD), _mask(PLAIN), _mask(BAND), BRANCH],
    ids=["causal", "ahead", "plain", "band", "branch"],
)
def test_the_mask_is_applied_to_the_product(mask: str) -> None:
    new = agree(_text(mask), _inputs(), args=(64, True), rtol=2e-2, atol=2e-2)
    assert "T.copy(s_l0c, s)" in new
    assert "s_part" not in new
    lines = [line.strip() for line in new.splitlines()]
    assert lines.index("T.copy(s_l0c, s)") < next(n for n, line in enumerate(lines) if line.startswith("T.tile.select"))


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("other", ["T.clear(s)", "mask"])
def test_the_factory_chooses_the_mask(causal: bool, other: str) -> None:
    inner = _mask(CAUSAL, " " * 12)
    tail = "T.if_then_else(n * 32 + j >= S - 5, -T.infinity(s.dtype), 0)"
    orelse = _mask(tail, " " * 12) if other == "mask" else f"            {other}"
    text = _text(f"        if causal:\n{inner}\n        else:\n{orelse}")
    new = agree(text, _inputs(), args=(64, causal), rtol=2e-2, atol=2e-2)
    assert "T.copy(s_l0c, s)" in new
    assert ("else:" in new) == (other == "mask")


@pytest.mark.parametrize("causal", [True, False])
def test_names_of_an_arm_go_with_the_mask(causal: bool) -> None:
    inner = _mask(CAUSAL.replace("n * 32 + j", "first + j"), " " * 12)
    mask = f"        if causal:\n            first = n * 32\n{inner}\n        else:\n            T.clear(s)"
    new = agree(_text(mask), _inputs(), args=(64, causal), rtol=2e-2, atol=2e-2)
    assert "T.copy(s_l0c, s)" in new


@pytest.mark.parametrize("causal", [True, False])
def test_a_choice_and_names_inside_of_the_loop(causal: bool) -> None:
    mask = """\
        for i, j in T.Parallel(32, 32):
            row = bx * 32 + i
            column = n * 32 + j
            if causal:
                s[i, j] = T.if_then_else(row >= column and row < column + 40, 0, -T.infinity(s.dtype))
            else:
                s[i, j] = T.if_then_else(column > row + 20, -T.infinity(s.dtype), 0)
    """
    new = agree(_text(mask.rstrip()), _inputs(), args=(64, causal), rtol=2e-2, atol=2e-2)
    assert "T.copy(s_l0c, s)" in new
    assert "s_part" not in new


@pytest.mark.parametrize(
    "mask",
    [
        _mask(CAUSAL.replace("-T.infinity(s.dtype)", "-1e9")),
        _mask(CAUSAL.replace("0,", "0.5,")),
        f"        if n >= bx:\n{_mask(CAUSAL, ' ' * 12)}\n        else:\n            T.clear(s)",
        f"        T.clear(s)\n{BRANCH.partition('            else:')[0].replace('= 0', '= -1e9')}",
    ],
    ids=["finite", "offset", "at run time", "one arm"],
)
def test_other_masks_are_added_to(mask: str) -> None:
    new = agree(_text(mask), _inputs(), args=(64, True), rtol=2e-2, atol=2e-2)
    assert "s[i, j] += s_part[i, j]" in new


def test_a_name_of_the_mask_that_changes_before_the_product() -> None:
    """The mask means what the name was: behind the product it would be another one."""
    limited = _mask(CAUSAL.replace("n * 32 + j", "first + j"))
    mask = f"        first = n * 32\n{limited}\n        first = first + 5"
    new = agree(_text(mask), _inputs(), args=(64, True), rtol=2e-2, atol=2e-2)
    assert "s[i, j] += s_part[i, j]" in new


def test_a_product_that_begins_anew_has_no_mask() -> None:
    """What was stored before it is gone; the compiler would put the product where the mask is made."""
    text = _text(_mask(CAUSAL)).replace("transpose_B=True)", "transpose_B=True, clear_accum=True)")
    assert [code for code, _ in refused(text)] == ["TL845"]


@pytest.mark.parametrize("before", [True, False], ids=["before the product", "behind it"])
def test_a_size_of_the_launch_chooses_the_mask(before: bool) -> None:
    """The compiler has both arms, and puts the product where the first of them reads it: it is read before."""
    value = "T.if_then_else({}, {}, -T.infinity('float32'))"
    kept = "0.0" if before else "s[i, j]"
    arms = [_mask(value.format(test, kept), " " * 12) for test in ("bx * 32 + i >= n * 32 + j", "n * 32 + j < 40")]
    choice = f"        if M > 64:\n{arms[0]}\n        else:\n{arms[1]}"
    text = _text(choice) if before else _text("        T.clear(s)", behind=choice)
    text = text.replace("K: T.Tensor((S, 32)", "K: T.Tensor((M, 32)")
    text = text.replace("    @T.prim_func", '    M = T.dynamic("m")\n\n    @T.prim_func')
    new = migrated(text)
    assert ("T.copy(s_l0c, s)" in new) == (not before)
    assert ("s[i, j] += s_part[i, j]" if before else "T.tile.mul(s, s, 1.0)") in new


_IN_PLACE = "for i, j in T.Parallel(32, 32):\n    out[i, j] = out[i, j] * r[i]"
_WHOLE = "for i, j in T.Parallel(32, 32):\n    out[i, j] = out[i, j] * 2.0"
_SERIAL = "for i in range(32):\n    for j in T.Parallel(32):\n        out[i, j] = out[i, j] * r[i]"


@pytest.mark.parametrize(
    ("reader", "taken"),
    [(_IN_PLACE, True), (_SERIAL, True), (_WHOLE, False), ("if bx > 0:\n    T.copy(out, other)", True)],
    ids=["row vector", "serial", "whole", "condition"],
)
def test_the_authors_copy_of_a_product_is_read_whole_first(reader: str, taken: bool) -> None:
    params = (
        'A: T.Tensor((64, 32), "float16"), B: T.Tensor((32, 32), "float16"), V: T.Tensor((64,), "float32"), '
        'C: T.Tensor((64, 32), "float32")'
    )
    body = f"""
a = T.alloc_shared((32, 32), "float16")
b = T.alloc_shared((32, 32), "float16")
r = T.alloc_fragment((32,), "float32")
acc = T.alloc_fragment((32, 32), "float32")
out = T.alloc_shared((32, 32), "float32")
other = T.alloc_shared((32, 32), "float32")
T.copy(V[bx * 32 : bx * 32 + 32], r)
T.copy(A[bx * 32, 0], a)
T.copy(B, b)
T.gemm(a, b, acc, clear_accum=True)
T.clear(other)
T.copy(acc, out)
{reader}
for i, j in T.Parallel(32, 32):
    out[i, j] = out[i, j] + other[i, j]
T.copy(out, C[bx * 32, 0])
"""
    random = np.random.default_rng(4)
    inputs = {
        "A": random.standard_normal((64, 32)).astype(np.float16),
        "B": random.standard_normal((32, 32)).astype(np.float16),
        "V": random.standard_normal(64).astype(np.float32),
    }
    new = agree(gpu_file(params, body), inputs, rtol=2e-2, atol=2e-2)
    assert "T.copy(acc, out)" in new
    assert ("T.tile.mul(out, out, 1.0)" in new) == taken


CALL = "\n\ndef build():\n    return factory(512, True)\n"


def test_index_tiles_are_kept_where_there_is_room_only() -> None:
    """Beside scores of 64 KB and the compiler's scratch tile of a reduction no second tile of 64 KB fits: lowered with
    `column_minus_row`, the kernel of 128 rows was rejected (Memory allocation failed for: tmp_ub). Two vector cores
    have 32 KB of each."""
    assert "column_minus_row" in migrated(_text(_mask(CAUSAL), end=CALL))
    text = _text(_mask(CAUSAL.replace("32", "128")).replace("32, 32", "128, 128"), block="128", end=CALL)
    assert "column_minus_row" in migrated(text)
    new = agree(text, _inputs(256), args=(256, True), rtol=2e-2, atol=2e-2, threads="1")
    assert "column_minus_row" not in new
    assert "index_tile = " in new


def test_where_no_form_fits_the_one_with_fewer_instructions_stays() -> None:
    """128 x 128 scores, their 16-bit copy and a tile of 128 x 128 beside them do not fit in any form: the call has to
    ask for less, and one size halved is enough with the index tile, too."""
    tail = "T.if_then_else(bx * bm + i >= n * bn + j, 0, -T.infinity(s.dtype))"
    body = f"""
    q = T.alloc_shared((bm, 128), "float16")
    k = T.alloc_shared((bn, 128), "float16")
    s = T.alloc_fragment((bm, bn), "float32")
    p16 = T.alloc_fragment((bm, bn), "float16")
    o = T.alloc_fragment((bm, 128), "float32")
    w = T.alloc_fragment((bm, 128), "float32")
    top = T.alloc_fragment((bm,), "float32")
    T.copy(Q[bx * bm, 0], q)
    T.copy(W[bx * bm, 0], w)
    T.clear(o)
    for n in range(S // bn):
        T.copy(K[n * bn, 0], k)
        for i, j in T.Parallel(bm, bn):
            s[i, j] = {tail}
        T.gemm(q, k, s, transpose_B=True)
        T.reduce_max(s, top, dim=1)
        for i, j in T.Parallel(bm, bn):
            s[i, j] = T.exp(s[i, j] - T.max(top[i], -1e4))
        T.copy(s, p16)
        T.gemm(p16, k, o)
    for i, j in T.Parallel(bm, 128):
        w[i, j] = w[i, j] + top[i]
    T.copy(w, W[bx * bm, 0])
    T.copy(o, R[bx * bm, 0])
    """
    params = 'Q: T.Tensor((S, 128), "float16"), K: T.Tensor((S, 128), "float16"), R: T.Tensor((S, 128), "float32")'
    params += ', W: T.Tensor((S, 128), "float32")'
    launch = "T.Kernel(S // bm, threads=128) as bx"

    def written(bm: int, bn: int) -> str:
        call = f"\n\ndef build():\n    return factory(512, {bm}, {bn})\n"
        text = gpu_file(params, body, args="S, bm, bn", launch=launch) + call
        return migrate_text(text, "k.py", Options()).new_text or ""

    assert "column_minus_row" in written(64, 128)
    assert "column_minus_row" in written(128, 128)


VECTOR = "T.if_then_else(seen[j], 0, -T.infinity(s.dtype))"
SEEN = "seen = T.alloc_fragment((32,), 'bool')\nfor j in T.Parallel(32):\n    seen[j] = n * 32 + j <= bx * 32 + 7\n"


def _expected(given: dict[str, np.ndarray], times: int) -> np.ndarray:
    """What `_text` computes for a mask of columns and a product that is added ``times`` over."""
    q, k = (given[name].astype(np.float64) for name in ("Q", "K"))
    rows = []
    for block in range(len(q) // 32):
        total = np.zeros(32)
        for n in range(len(q) // 32):
            part = k[n * 32 : n * 32 + 32]
            score = times * (q[block * 32 : block * 32 + 32] @ part.T)
            score[:, n * 32 + np.arange(32) > block * 32 + 7] = -np.inf
            top = np.maximum(score.max(1), -1e4)
            weight = np.exp(np.maximum(score - top[:, None], -60.0))
            total += (weight @ part).sum(1)
        rows.append(total)
    return np.concatenate(rows)


@pytest.mark.parametrize("times", [1, 2])
def test_a_mask_of_a_vector_and_several_products(times: int) -> None:
    mask = textwrap.indent(SEEN, "        ") + _mask(VECTOR)
    text = _text(mask, behind="        T.gemm(q, k, s, transpose_B=True)" * (times - 1))
    given = _inputs()
    new = agree(text, given, args=(64, True), rtol=2e-2, atol=2e-2)
    found = run(new, given, args=(64, True))["R"]
    np.testing.assert_allclose(found, _expected(given, times), 2e-2, 5e-2)
    lines = [line.strip() for line in new.splitlines()]
    landed = lines.index("T.copy(s_l0c, s)")
    assert sum(line.startswith("T.gemm_v0(q, k, s_l0c") for line in lines[:landed]) == times
    assert any(line.startswith("T.tile.select(s") for line in lines[landed:])


def test_a_vector_that_changes_before_the_product_stays_in_front() -> None:
    mask = (
        textwrap.indent(SEEN, "        ")
        + _mask(VECTOR)
        + "\n"
        + textwrap.indent(SEEN.replace("7", "3").partition("\n")[2], "        ")
    )
    lines = [line.strip() for line in agree(_text(mask), _inputs(), args=(64, True), rtol=2e-2, atol=2e-2).splitlines()]
    select = next(n for n, line in enumerate(lines) if line.startswith("T.tile.select"))
    assert select < next(n for n, line in enumerate(lines) if line.startswith("T.gemm_v0(q, k, s_l0c"))
