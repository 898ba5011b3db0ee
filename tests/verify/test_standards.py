"""Standards of accuracy: figures against NumPy, limits against the public texts that they follow."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from tests.verify.support import CALL, HEAD, SCALE, source
from tl2npu.report.csv import COLUMNS, table
from tl2npu.verified import VerifyResult
from tl2npu.verify.backends import verify
from tl2npu.verify.metrics import cosine, metrics, ulp
from tl2npu.verify.process import here
from tl2npu.verify.settings import Settings
from tl2npu.verify.standards import STANDARDS, by_standard

SEED = np.random.default_rng(1)
PLAIN = SEED.uniform(0.5, 2.0, (64, 64)).astype(np.float32)


def met(standard: str, old: np.ndarray, new: np.ndarray, exact: np.ndarray | None = None) -> bool:
    return not by_standard(standard, old, new, exact, 1e-4, None).unmet


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_ulp_is_the_spacing_of_numpy(kind: type) -> None:
    values = np.array([1.0, 1.5, -2.0, 1000.0, 1e-3, 65000.0, 3.1], kind)
    assert np.array_equal(ulp(values.astype(np.float64), np.dtype(kind).name), np.spacing(np.abs(values)).astype(float))


def test_ulp_of_bfloat16() -> None:
    assert ulp(np.array([1.0, 3.0, 0.0]), "bfloat16").tolist() == [2.0**-7, 2.0**-6, 2.0**-133]


def test_figures() -> None:
    old, new = np.array([[1.0, 2.0], [4.0, np.nan]], np.float32), np.array([[1.0, 2.5], [3.0, np.nan]], np.float32)
    found = metrics("Y", old, new, np.array([[True, False], [False, True]]))
    assert (found.max_abs, found.matched, found.worst) == (1.0, 0.5, (1, 0))
    assert (found.mare, found.mere) == (pytest.approx(0.25), pytest.approx((0.25 + 0.25) / 3))
    assert found.rmse == pytest.approx(np.sqrt((0.25 + 1.0) / 3))
    left, right = np.array([1.0, 2.0, 4.0]), np.array([1.0, 2.5, 3.0])
    assert found.cosine == pytest.approx(left @ right / np.linalg.norm(left) / np.linalg.norm(right))
    assert found.reference == pytest.approx((4.0, 1.0, 7 / 3, np.linalg.norm(left)))


def test_cosine_of_nothing() -> None:
    assert (cosine(np.zeros(3), np.zeros(3)), cosine(np.zeros(3), np.ones(3))) == (1.0, 0.0)


@pytest.mark.parametrize(("kind", "threshold"), [("float16", 2**-10), ("bfloat16", 2**-7), ("float32", 2**-13)])
@pytest.mark.parametrize("standard", ["cann-mixed", "cann-mere"])
def test_thresholds_of_cann(standard: str, kind: str, threshold: float) -> None:
    dtype = np.dtype(getattr(ml_dtypes, kind, None) or kind)
    old = PLAIN.astype(np.float64)
    inside, outside = old * (1 + 0.5 * threshold), old * (1 + 40 * threshold)
    golden = old.astype(dtype)
    assert met(standard, golden, inside.astype(dtype), None)
    assert not met(standard, golden, outside.astype(dtype), None)


def test_mixed_takes_one_percent_of_outliers_that_are_small() -> None:
    few, many, large = PLAIN.copy(), PLAIN.copy(), PLAIN.copy()
    few.ravel()[:40] += 0.009  # of 4096, below the floor of 1e-2
    many.ravel()[:42] += 0.009
    large.ravel()[0] += 0.011
    assert [met("cann-mixed", PLAIN, new) for new in (few, many, large)] == [True, False, False]


def test_mixed_takes_large_errors_of_large_values() -> None:
    old = np.full(1000, 2.0**20, np.float32)  # ULP 2**-3, so that 32 of them are 4
    assert met("cann-mixed", old, old + np.float32(3.875))
    odd = old.copy()
    odd[0] += np.float32(300)
    assert not met("cann-mixed", old, odd)


def test_mere_asks_for_absolute_errors_of_small_values() -> None:
    old = PLAIN.copy()
    old.ravel()[:100] = 1e-6  # below 2**-14
    right, wrong = old.copy(), old.copy()
    right.ravel()[:100] += np.float32(5e-10)  # below 2**-30
    wrong.ravel()[:100] += np.float32(1e-7)
    assert met("cann-mere", old, right)
    assert not met("cann-mere", old, wrong)
    assert met("cann-mere", wrong, wrong, old.astype(np.float64)), "the old kernel has the same errors"


def test_msprobe_reaches_accuracy_as_its_page_says() -> None:
    old = np.array([1.0, 0.0, 0.0, 0.0], np.float32)
    assert met("msprobe", old, np.array([1.0, 0.1, 0, 0], np.float32))  # cosine 0.995
    assert not met("msprobe", old, np.array([1.0, 0.2, 0, 0], np.float32))  # cosine 0.98, error above 0.001
    assert met("msprobe", old * np.float32(1e-4), np.array([1e-4, 2e-5, 0, 0], np.float32))  # cosine 0.98, error below
    assert not met("msprobe", old * 100, old * 100 + np.float32(1.5))  # error above 1


@pytest.mark.parametrize("standard", STANDARDS)
def test_infinities_nan_and_integers(standard: str) -> None:
    old = PLAIN.copy()
    old[0, :3] = np.inf, -np.inf, np.nan
    assert met(standard, old, old.copy())
    for index, value in ((0, -np.inf), (0, np.nan), (2, 1.0), (5, np.nan)):
        new = np.tile(old, (1, 1)).copy()
        new[:, index] = np.where(np.arange(64) < 64, value, new[:, index])
        assert not met(standard, old, new), (index, value)
    whole = np.arange(100, dtype=np.int32)
    assert met(standard, whole, whole.copy())
    off = whole.copy()
    off[3] += 1
    assert not met(standard, whole, off)


def test_double_standard() -> None:
    exact = SEED.standard_normal(4096)
    noise = SEED.standard_normal(4096) * 1e-3
    old = (exact + noise).astype(np.float32)
    assert met("tl2npu", old, (exact - 1.9 * noise).astype(np.float32), exact)
    assert not met("tl2npu", old, (exact - 2.1 * noise).astype(np.float32), exact)
    nearest = exact.astype(np.float32)
    other = np.nextafter(nearest, np.where(nearest > exact, -9, 9).astype(np.float32))
    assert met("tl2npu", nearest, other, exact), "the other neighbour of the exact value"
    assert not met("tl2npu", nearest, np.nextafter(np.nextafter(other, np.float32(9)), np.float32(9)), exact)


def result(settings: Settings, wrong: str = "factor") -> VerifyResult:
    old = HEAD + SCALE
    new = old.replace("T.tile.mul(x, x, factor)", f"T.tile.mul(x, x, {wrong})")
    return verify(source(old), source(new), replace(settings, calls=(CALL,), check=None), here)


@pytest.mark.parametrize("standard", STANDARDS)
def test_verify_judges_by_the_standard(standard: str) -> None:
    assert result(Settings(standard=standard), "factor * 1.0").ok
    found = result(Settings(standard=standard), "factor * 4.0 + 1.0")
    assert not found.ok
    assert found.standard == standard
    assert {d.code for d in found.diagnostics} == {"TL907"}
    assert standard == "tl2npu" or f"does not meet the standard {standard}" in found.diagnostics[0].message


def test_standards_differ() -> None:
    """A factor that is off by 2**-11 is beyond tl2npu's tolerance and cann-mere's, and no difference to msprobe."""
    settled = {name: result(Settings(standard=name, draws=1), f"factor * {1 + 2**-11}").ok for name in STANDARDS}
    assert settled == {"tl2npu": False, "cann-mixed": False, "cann-mere": False, "msprobe": True}


def test_golden() -> None:
    assert result(Settings(golden=True), "factor * 1.0").ok
    found = result(Settings(golden=True), f"factor * {1 + 2**-20}")
    assert not found.ok, "exact halves have no error that could be twice as large"
    assert "error against float64" in found.diagnostics[0].message


def test_csv_has_the_columns_of_msprobe() -> None:
    found = result(Settings(), "factor * 4.0")
    rows = list(csv.DictReader(io.StringIO(table(found))))
    assert tuple(rows[0])[: len(COLUMNS)] == COLUMNS
    first = rows[0]
    assert first["NPU Name"] == "scale.main.0.Y"
    assert first["NPU Tensor Shape"] == "[64, 64]"
    assert first["Accuracy Reached or Not"] == "No"
    assert float(first["MaxRelativeErr"]) == pytest.approx(3.0, rel=1e-3)
    assert float(first["Cosine"]) == pytest.approx(1.0)
    assert float(first["NPU max"]) == pytest.approx(4 * float(first["Bench max"]))
