"""Rows that are parts of the last axis of a tensor, ``x[i * pitch + j]``: one copy for each, in both directions."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import agree, gpu_file, result_of

RNG = np.random.default_rng(8)
TILE = 't = T.alloc_shared((ROWS, 64), "float32")\n'


def file(body: str, rows: int = 4, total: int = 1024) -> str:
    params = (
        f'X: T.Tensor((3, {total}), "float32"), W: T.Tensor(({rows},), "float32"), Y: T.Tensor((3, {total}), "float32")'
    )
    text = TILE.replace("ROWS", str(rows)) + body.replace("ROWS", str(rows))
    return gpu_file(params, text, launch="T.Kernel(3, 2, threads=128) as (bx, by)")


LOAD = "for i, j in T.Parallel(ROWS, 64):\n    t[i, j] = X[bx, AT]\n"
STORE = "for i, j in T.Parallel(ROWS, 64):\n    Y[bx, AT] = t[i, j]\n"
PLACES = {
    "blocks of a row": "i * 128 + by * 64 + j",
    "the other way round": "j + by * 64 + 128 * i",
    "rows in pairs": "(i // 2) * 256 + (i % 2) * 128 + by * 64 + j",
    "the last row first": "(3 - i) * 128 + by * 64 + j",
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_both_directions(place: str) -> None:
    text = file(LOAD.replace("AT", place) + STORE.replace("AT", place), total=512)
    new = agree(text, {"X": RNG.standard_normal((3, 512)).astype(np.float32)})
    assert new.count("T.copy(") == 2
    assert "_value" not in new


@pytest.mark.parametrize("place", ["i * 128 + by * 64 + j", "j + 0 * i"])
def test_additions(place: str) -> None:
    body = LOAD.replace("AT", "i * 128 + by * 64 + j") + STORE.replace(
        "Y[bx, AT] = t[i, j]", f"T.atomic_add(Y[bx, {place}], t[i, j])"
    )
    x = RNG.integers(-9, 9, (3, 512)).astype(np.float32)
    agree(file(body, total=512), {"X": x, "Y": np.ones((3, 512), np.float32)})


@pytest.mark.parametrize("value", ["t[i, j] * 2.0", "t[i, j] + W[i]", "X[bx, i * 128 + by * 64 + j] * W[i]"])
def test_what_is_computed(value: str) -> None:
    body = LOAD.replace("AT", "i * 128 + by * 64 + j")
    body += f"for i, j in T.Parallel(ROWS, 64):\n    Y[bx, i * 128 + by * 64 + j] = {value}\n"
    agree(
        file(body, total=512),
        {"X": RNG.standard_normal((3, 512)).astype(np.float32), "W": np.arange(1, 5, dtype=np.float32)},
    )


@pytest.mark.parametrize("total", [500, 448, 400])
def test_rows_that_end_with_the_tensor(total: int) -> None:
    """Its last row is shorter, or is not there: a GPU reads zeros and stores nothing."""
    place = "i * 128 + by * 64 + j"
    body = "T.fill(t, 7.0)\n" + LOAD.replace("AT", place) + STORE.replace("AT", place)
    agree(file(body, total=total), {"X": RNG.standard_normal((3, total)).astype(np.float32)})


def test_rows_that_begin_in_front_of_the_tensor_are_read_by_elements() -> None:
    """A copy is not clamped there."""
    load, store = LOAD.replace("AT", "i * 128 + by * 64 + j - 32"), STORE.replace("AT", "i * 128 + by * 64 + j")
    agree(file(load + store, total=512), {"X": RNG.standard_normal((3, 512)).astype(np.float32)})
    turned = file(store.replace("j]", "j - 32]", 1), total=512)
    assert result_of(turned).kernels[0].disposition == "refused"


@pytest.mark.parametrize("place", ["i * 128 + by * 64 + j * 2", "i * j + by", "j * 128 + i"])
def test_other_places_are_no_rows(place: str) -> None:
    text = file(STORE.replace("AT", place), total=1024)
    (kernel,) = result_of(text).kernels
    assert kernel.disposition == "refused"
