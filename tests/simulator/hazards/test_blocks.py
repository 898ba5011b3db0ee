"""UB is made of blocks of 32 bytes. What is expected is worked out here from bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

MISALIGNED = {"misaligned-access"}


@pytest.fixture(scope="module")
def kernels(watch: Any) -> Any:
    return watch("blocks")


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8])
@pytest.mark.parametrize(("first", "second", "count"), [(0, 1, 31), (8, 16, 32), (0, 32, 32), (16, 0, 16), (4, 0, 8)])
def test_columns_between_tiles(kernels: Any, dtype: Any, first: int, second: int, count: int) -> None:
    size = np.dtype(dtype).itemsize
    right = all(number * size % 32 == 0 for number in (first, second, count))
    data = np.arange(1024).reshape(16, 64).astype(dtype)
    kernels.run("between", data, first=first, second=second, count=count, dtype=np.dtype(dtype).name)
    assert kernels.kinds() == (set() if right else MISALIGNED), list(kernels.report.lines())


@pytest.mark.parametrize("form", ["parallel", "serial", "tile", "copy", "itself"])
@pytest.mark.parametrize(("start", "count"), [(0, 32), (1, 32), (8, 32), (8, 30), (0, 7)])
def test_vectors(kernels: Any, form: str, start: int, count: int) -> None:
    """A copy takes whole blocks, an operator any number of elements from a block on, the scalar unit anything."""
    right = form in ("serial", "itself") or (start * 4 % 32 == 0 and (form != "copy" or count * 4 % 32 == 0))
    kernels.run("vector", np.arange(64).astype(np.float32), start=start, count=count, form=form)
    assert kernels.kinds() == (set() if right else MISALIGNED), list(kernels.report.lines())


@pytest.mark.parametrize("form", ["load", "max", "each", "minus", "none"])
@pytest.mark.parametrize(("count", "columns"), [(4, 16), (4, 20), (1, 20)])
def test_rows(kernels: Any, form: str, count: int, columns: int) -> None:
    right = form == "none" or count == 1 or columns * 4 % 32 == 0
    kernels.run("rows", np.ones((count, columns), np.float32), count=count, columns=columns, form=form)
    assert kernels.kinds() - {"RAW", "WAW"} == (set() if right else MISALIGNED), list(kernels.report.lines())


def test_what_is_said(kernels: Any) -> None:
    kernels.run("vector", np.arange(64).astype(np.float32), start=1, count=32, form="tile")
    (hazard,) = kernels.report.hazards
    line = kernels.line("T.tile.exp(y[0:count]")
    place = f"PIPE_V Access at {kernels.path}:{line} in block 0 (aiv0)"
    assert hazard.message == f"Misaligned access at UB: {place}: the first element of x is byte 4, not a multiple of 32"


@pytest.mark.parametrize("order", ["first", "last"])
@pytest.mark.parametrize("first", [24, 30, 33])
def test_a_load_fills_its_last_block(kernels: Any, first: int, order: str) -> None:
    """What was there before is gone; what is written afterwards stays."""
    right = order == "first" or first * 4 % 32 == 0
    kernels.run("pieces", np.ones(64, np.float32), first=first, order=order)
    assert kernels.kinds() == (set() if right else {"uninitialised-read"}), list(kernels.report.lines())
