"""Kernels of triton-ascend for A5: either the events order everything, or the kernel stays as it is."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from tl2npu.options import Options
from tl2npu.triton.migrate import to_tilelang
from tl2npu.triton.result import migrate_triton
from tl2npu.verify.backends import verify
from tl2npu.verify.loading import Source
from tl2npu.verify.process import here
from tl2npu.verify.settings import Settings

if find_spec("triton") is not None:
    os.environ.setdefault("TRITON_INTERPRET", "1")  # before anything imports it

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "a5"
NAMES = (
    "serial_attention",
    "tiled_attention",
    "product_relu",
    "product_gelu",
    "product_rows",
    "masked_attention",
    "prefill",
)
ATTENTION, TILED, PRODUCT, GELU, ROW_NUMBERS = (
    (FIXTURES / name / "before.py").read_text(encoding="utf-8") for name in NAMES[:5]
)

SET_0, WAIT_0 = 'al.sync_block_set("cube", "vector", 0', 'al.sync_block_wait("cube", "vector", 0'
SET_1, WAIT_1 = 'al.sync_block_set("vector", "cube", 1', 'al.sync_block_wait("vector", "cube", 1'
SET_2, WAIT_2 = 'al.sync_block_set("cube", "vector", 2', 'al.sync_block_wait("cube", "vector", 2'
COPY = "al.copy(bl.to_buffer(p_nz, al.ascend_address_space.UB), p_l1_sub)"
UPDATE = "acc = _flash_update(pv_ub, alpha, acc, HEAD_DIM, BLOCK_M)"
READ = "y = tl.maximum(bl.to_tensor(place), 0.0)"
ROWS = "sub_vec_id * ((BLOCK_M // 2) // 16)"
STORED = "(start_m * BLOCK_M + sub_vec_id * HALF).to(tl.int32)"
SCORES = "qk = bl.to_tensor(qk_ub) * sm_scale"
P_L1 = "bl.alloc(tl.float16, (BLOCK_N // 16, BLOCK_M // 16, 16, 16)"
AVERAGE = "l_i = l_i * alpha + tl.sum(p, 1)"


def put(text: str, old: str, new: str) -> str:
    """Another text in the place of each."""
    assert old in text, old
    return text.replace(old, new)


def without(text: str, *starts: str, only: int | None = None) -> str:
    """Without the lines that begin so, or without one of them."""
    return changed(text, starts, [], only)


def twice(text: str, start: str, only: int) -> str:
    """One of the lines that begin so, two times."""
    return changed(text, (start,), [0, 0], only)


def changed(text: str, starts: tuple[str, ...], copies: list[int], only: int | None) -> str:
    """Lines that begin so, as often as there are copies; ``only``: which of them."""
    lines = text.split("\n")
    found = [number for number, line in enumerate(lines) if line.strip().startswith(starts)]
    assert found, starts
    for number in reversed(found if only is None else [found[only]]):
        lines[number : number + 1] = [lines[number] for _ in copies]
    return "\n".join(lines)


def exchanged(text: str, one: str, other: str) -> str:
    """The first lines that begin so in each other's place."""
    lines = text.split("\n")
    first, second = (next(n for n, line in enumerate(lines) if line.strip().startswith(s)) for s in (one, other))
    lines[first], lines[second] = lines[second], lines[first]
    return "\n".join(lines)


WRONG = {
    "TL561": {
        "no event 0": without(ATTENTION, SET_0, WAIT_0),
        "no event 1": without(ATTENTION, SET_1, WAIT_1),
        "no event 2": without(ATTENTION, SET_2, WAIT_2),
        "used before it is there": exchanged(ATTENTION, WAIT_2, UPDATE),
        "set before the copy": exchanged(ATTENTION, SET_1, COPY),
        "read when the next one may come": put(
            ATTENTION, UPDATE, "acc = _flash_update(pv_ub, alpha, acc + tl.max(bl.to_tensor(qk_ub), 1)[:, None], 1, 1)"
        ),
        "nothing frees the place": without(PRODUCT, SET_1, WAIT_1),
        "freed before it is read": put(
            put(PRODUCT, f"            {READ}\n", ""), "c = tl.make", f"{READ}\n            c = tl.make"
        ),
        "the place is free twice": twice(twice(PRODUCT, SET_1, 0), WAIT_1, 1),
        "one core stores what the other loads": put(PRODUCT, "make_block_ptr(C, (M, N)", "make_block_ptr(B, (K, N)"),
        "the output is an input": put(PRODUCT, "](a, b, c, M", "](a, c, c, M"),
        "no free in a loop around the scopes": without(TILED, SET_1, WAIT_1),
    },
    "TL562": {
        **{f"{start[18:21]} {start[-1]} is missing": without(ATTENTION, start) for start in (SET_0, SET_1, SET_2)},
        **{f"{start[18:22]} {start[-1]} is missing": without(ATTENTION, start) for start in (WAIT_0, WAIT_1, WAIT_2)},
        "the vector cores wait for 2 first": exchanged(ATTENTION, WAIT_0, WAIT_2),
        "the cube core sets 2 first": exchanged(ATTENTION, SET_0, SET_2),
        "another number": put(PRODUCT, WAIT_0, WAIT_0.replace("0", "3")),
        "the place is never free": without(PRODUCT, SET_1, only=0),
        "an event is left over": without(PRODUCT, WAIT_1, only=1),
        "set by the wrong core": put(PRODUCT, SET_0, SET_1),
    },
    "TL563": {
        "the event of the turn": put(put(PRODUCT, SET_0, SET_0[:-1] + "tile % 2"), WAIT_0, WAIT_0[:-1] + "tile % 2"),
        "an event in a branch": put(PRODUCT, SET_0, f"if tile > 0:\n                {SET_0}"),
        "the buffer of the turn": put(ATTENTION, SCORES, f"if _start_n % 2 == 0:\n                {SCORES}"),
    },
    "TL564": {"one turn less": ATTENTION[::-1].replace("range(0, N"[::-1], "range(1, N"[::-1], 1)[::-1]},
    "TL565": {
        "columns": put(ATTENTION, "ROW_SPLIT", "COLUMN_SPLIT"),
        "another layout": put(PRODUCT, "NZ2ND", "NZ2DN"),
        "another type": put(PRODUCT, "bl.alloc(tl.float32", "bl.alloc(tl.float16"),
        "P of another type": put(ATTENTION, "p.to(tl.float16)", "p.to(tl.bfloat16)"),
    },
    "TL566": {
        "a block of an odd number": put(PRODUCT, "BLOCK_M=32", "BLOCK_M=33"),
        "half of P": put(ATTENTION, P_L1, P_L1.replace("BLOCK_M // 16", "BLOCK_M // 32")),
        "whole tiles to halves": put(ATTENTION, "ROW_SPLIT", "NO_DUAL"),
        "UB on the cube core": put(
            ATTENTION, "bl.to_tensor(p_l1, target_shape=[BLOCK_M, BLOCK_N])", "bl.to_tensor(pv_ub)"
        ),
    },
    "TL537": {"not NZ": put(ATTENTION, ".permute(1, 0, 2)", ".permute(0, 1, 2)")},
    "TL567": {
        "halves that overlap": put(ATTENTION, ROWS, "sub_vec_id"),
        "both halves in one place": put(ATTENTION, ROWS, "0"),
        "both cores store one half": put(ATTENTION, STORED, "start_m * BLOCK_M"),
        "each core stores the other half": put(ATTENTION, "sub_vec_id * HALF", "(1 - sub_vec_id) * HALF"),
        "a maximum over the rows": put(ATTENTION, AVERAGE, f"{AVERAGE} + tl.max(tl.max(p, 0), 0)"),
        "the number of the core": put(ATTENTION, SCORES, f"{SCORES} + sub_vec_id"),
        "the row number of a half": put(ATTENTION, SCORES, f"{SCORES} + tl.arange(0, HALF)[:, None]"),
        "the mask of a half": put(
            ROW_NUMBERS, "mask=inside[:, None], other=-1.0", "mask=(tl.arange(0, BM // 2) < 9)[:, None], other=-1.0"
        ),
        "scales of the first half": put(ROW_NUMBERS, "scale_ptr + half_row", "scale_ptr + half_row - first"),
        "one core only": put(PRODUCT, "tl.store(c, y)", "if half == 0:\n                tl.store(c, y)"),
        "added by both cores": put(GELU, "tl.store(out + column, tl.sum", "tl.atomic_add(out + column, tl.sum"),
        "added in place by both cores": put(
            GELU, "tl.store(out + column, tl.sum(acc, axis=0)", "tl.store(out + column, tl.load(out + column)"
        ),
        "whole tiles, halves of work": put(GELU, "value = tl.load", "value = al.sub_vec_id() * 0.0 + tl.load"),
    },
    "TL568": {"a tile of the cube core": put(ATTENTION, "acc = acc / l_i[:, None]", "acc = acc / q")},
    "TL569": {"a barrier of all blocks": put(PRODUCT, SET_0, f'al.sync_block_all("all", 5)\n            {SET_0}')},
}


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("code", "text"),
    [pytest.param(code, text, id=name) for code, cases in WRONG.items() for name, text in cases.items()],
)
def test_a_kernel_whose_cores_cannot_be_one_program_stays(code: str, text: str) -> None:
    found = to_tilelang(text)
    assert [kernel.refused.code for kernel in found.kernels if kernel.refused is not None] == [code]


@pytest.mark.sampled
@pytest.mark.parametrize("name", NAMES)
def test_the_migration_of_a_complete_script(name: str) -> None:
    folder = FIXTURES / name
    result = migrate_triton((folder / "before.py").read_text(encoding="utf-8"), "before.py", Options())
    assert result.new_text == (folder / "after.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_the_interpreter_and_the_simulator_agree(name: str) -> None:
    """The old script runs under two schedules of its cores."""
    pytest.importorskip("triton")
    pytest.importorskip("torch")
    files = [FIXTURES / name / file for file in ("before.py", "after.py")]
    result = verify(
        *(Source(file.read_text(encoding="utf-8"), str(file), file.name) for file in files), Settings(), here
    )
    assert result.ok, result
    assert {kernel.status for kernel in result.kernels} == {"verified"}


def test_one_number_may_serve_two_events() -> None:
    """The k-th wait belongs to the k-th set, whatever it is for."""
    found = to_tilelang(put(put(ATTENTION, SET_2, SET_0), WAIT_2, WAIT_0))
    assert found.kernels[0].refused is None
    assert found.text == to_tilelang(ATTENTION).text


HALVES = """import torch
import triton
import triton.language as tl
import triton.language.extra.cann.extension as al


@triton.jit
def product(a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, MODE: tl.constexpr):
    row, column, depth = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + row[:, None] * K + depth[None, :])
    b = tl.load(b_ptr + depth[:, None] * N + column[None, :])
    acc = tl.dot(a, b)
    HALF: tl.constexpr = M // 2
    for s in al.parallel(0, 2, bind_sub_block=True):
        part = al.extract_slice(acc, (s * HALF, 0), (HALF, N), (1, 1))
        if MODE == "negative":
            part = -part
        rows = s * HALF + tl.arange(0, HALF)
        tl.store(c_ptr + rows[:, None] * N + column[None, :], part)


def multiplied(a, b, mode=""):
    c = torch.empty(64, 32, dtype=torch.float32, device="npu")
    product[(1,)](a, b, c, M=64, N=32, K=16, MODE=mode)
    return c


a = torch.randn(64, 16, dtype=torch.float16, device="npu")
b = torch.randn(16, 32, dtype=torch.float16, device="npu")
multiplied(a, b, "negative")
"""


def test_turns_that_the_vector_cores_share_are_one_whole_tile(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    pytest.importorskip("torch")
    result = migrate_triton(HALVES, "old.py", Options())
    new = result.new_text or ""
    assert "T.serial" not in new
    assert "assert mode == 'negative'" in new  # what the only call passes is what the kernel is
    for file, text in (("old.py", HALVES), ("new.py", new)):
        (tmp_path / file).write_text(text)
    sources = [Source(text, str(tmp_path / name), name) for name, text in (("old.py", HALVES), ("new.py", new))]
    assert [kernel.status for kernel in verify(*sources, Settings(), here).kernels] == ["verified"]


@pytest.mark.parametrize(
    ("old", "new", "codes"),
    [
        (
            "c_ptr + rows[:, None] * N + column[None, :], part",
            "c_ptr + rows[:, None] * N + column, part + s",
            ["TL567"],
        ),
    ],
)
def test_turns_and_modes_that_differ(old: str, new: str, codes: list[str]) -> None:
    found = to_tilelang(put(HALVES, old, new))
    assert [kernel.refused.code for kernel in found.kernels if kernel.refused is not None] == codes


@pytest.mark.parametrize(
    "change",
    [
        ("bind_sub_block=True", "bind_sub_block=False"),
        ("al.parallel(0, 2", "al.parallel(0, 4"),
        ("        if MODE", "        acc = acc + 0.0\n        if MODE"),
    ],
    ids=["not shared", "four turns", "turn after turn"],
)
def test_turns_that_are_a_plain_loop(change: tuple[str, str]) -> None:
    assert "in T.serial(" in to_tilelang(put(HALVES.replace("M // 2", "M // 4"), *change)).text
