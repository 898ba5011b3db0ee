"""Standards of accuracy by name: when a result counts as right, and where the figures come from.

They change (three times in 2026), so each has the date of the text that it follows. Integers are exact in all of them,
infinities and NaN stand in the same places.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tl2npu.verify.compare import agreement
from tl2npu.verify.metrics import EPSILON, cosine, is_float, ulp, wide


@dataclass(frozen=True)
class Judgement:
    """``matched`` says which elements agree by themselves; ``unmet`` is empty, or what the tensor as a whole lacks."""

    matched: np.ndarray
    unmet: str


@dataclass(frozen=True)
class Standard:
    """``date`` of the text that is followed, and its ``source``; ``judge`` takes the reference, the old and the new
    result (float64, the reference is the old result where there is no exact one) and the element type."""

    name: str
    date: str
    source: str
    judge: Callable[[np.ndarray, np.ndarray, np.ndarray, str], Judgement] | None


OWN = "tl2npu"

_THRESHOLDS = {"float16": 2**-10, "bfloat16": 2**-7, "float32": 2**-13, "float8_e4m3fn": 2**-3, "float8_e5m2": 2**-2}
"""Both standards of CANN: relative threshold by element type. float64 is held to that of float32."""
_FLOORS = {"float16": 1e-1, "bfloat16": 1.0, "float32": 1e-2}
"""cann-mixed: an absolute error up to this is no outlier, whatever the ULP."""
_MATCHED, _ULPS = 0.99, 32
_SMALL = {"float16": (2**-11, 2**-16), "bfloat16": (2**-8, 2**-16), "float32": (2**-14, 2**-30)}
"""cann-mere: below the first the absolute error is asked for, which is one from the second on."""
_CANCEL = {"float16": 2**-5, "bfloat16": 2**-3, "float32": 2**-8}
"""cann-mere: where both are below, terms may have cancelled."""


def _kept(dtype: str, table: dict[str, float]) -> float:
    return table.get(dtype, table["float32"])


def _mixed(golden: np.ndarray, _: np.ndarray, new: np.ndarray, dtype: str) -> Judgement:
    threshold = _kept(dtype, _THRESHOLDS)
    both = np.isfinite(golden) & np.isfinite(new)
    with np.errstate(all="ignore"):
        apart = np.abs(new - golden)
        matched = np.where(both, apart <= threshold + threshold * np.abs(golden), _same(golden, new))
    share = float(matched.mean()) if matched.size else 1.0
    if share < _MATCHED:
        return Judgement(matched, f"{share:.2%} of the elements match, less than 99%")
    limits = np.maximum(_kept(dtype, _FLOORS), _ULPS * ulp(np.where(both, golden, 0.0), dtype))
    beyond = np.argwhere(both & (apart > limits))
    if len(beyond):
        place = tuple(int(i) for i in beyond[0])
        return Judgement(matched, f"the error at {list(place)} is {apart[place]:.3g}, more than {limits[place]:.3g}")
    return Judgement(matched, "")


def _mere(golden: np.ndarray, old: np.ndarray, new: np.ndarray, dtype: str) -> Judgement:
    threshold = _kept(dtype, _THRESHOLDS)
    both = np.isfinite(golden) & np.isfinite(new)

    def errors(values: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            found: np.ndarray = np.abs(values - golden) / (np.abs(golden) + EPSILON)
        return found

    relative = np.where(both, errors(new), 0.0)
    matched = np.where(both, relative < 10 * threshold, _same(golden, new))
    if not matched[~both].all():
        return Judgement(matched, "infinities or NaN are not in the same elements")
    if _mean(relative[both]) < threshold and relative.max(initial=0.0) < 10 * threshold:
        return Judgement(matched, "")
    small, tiny = _SMALL.get(dtype, _SMALL["float32"])
    cancelled = _kept(dtype, _CANCEL)
    is_small = both & (np.abs(golden) < small)
    may_cancel = both & ~is_small & (np.abs(golden) < cancelled) & (np.abs(new) < cancelled)
    usual = both & ~is_small & ~may_cancel
    mere, mare = _mean(relative[usual]), float(relative[usual].max(initial=0.0))
    if mere >= threshold or mare >= 10 * threshold:
        return Judgement(
            matched, f"MERE {mere:.3g} (limit {threshold:.3g}), MARE {mare:.3g} (limit {10 * threshold:.3g})"
        )
    with np.errstate(all="ignore"):
        for kind, own, others in (
            ("small values", is_small & (np.abs(new - golden) > tiny), is_small & (np.abs(old - golden) > tiny)),
            (
                "values after cancellation",
                may_cancel & (relative >= 10 * threshold),
                may_cancel & (errors(old) >= 10 * threshold),
            ),
        ):
            if own.sum() > 2 * max(int(others.sum()), 1):
                return Judgement(
                    matched, f"{own.sum()} wrong {kind}, more than twice the {others.sum()} of the old kernel"
                )
    return Judgement(matched, "")


def _msprobe(golden: np.ndarray, _: np.ndarray, new: np.ndarray, __: str) -> Judgement:
    both = np.isfinite(golden) & np.isfinite(new)
    with np.errstate(all="ignore"):
        apart = np.where(both, np.abs(new - golden), 0.0)
        matched = np.where(both, apart <= 1e-3, _same(golden, new))
    alike, largest = cosine(golden[both], new[both]), float(apart.max(initial=0.0))
    if not matched[~both].all():
        return Judgement(matched, "infinities or NaN are not in the same elements")
    if alike < 0.9 or (alike < 0.99 and largest > 0.001) or largest > 1:
        return Judgement(
            matched, f"cosine {alike:.4f} (limits 0.99 and 0.9), MaxAbsErr {largest:.3g} (limits 0.001 and 1)"
        )
    return Judgement(matched, "")


STANDARDS = {
    item.name: item
    for item in (
        Standard(OWN, "2026-11-23", "docs/verify.md: relative tolerances by element type and kind of kernel", None),
        Standard("cann-mixed", "2026-09-23", "cann/opbase, ops_precision_standard/mixed_tolerance_standard.md", _mixed),
        Standard("cann-mere", "2026-09-01", "cann-bench, docs/design/precision_comparison_design.md", _mere),
        Standard("msprobe", "2026-11-23", "mindstudio-probe, `Accuracy Reached or Not` of `msprobe compare`", _msprobe),
    )
}


def by_standard(
    name: str, old: np.ndarray, new: np.ndarray, exact: np.ndarray | None, rtol: float, atol: float | None
) -> Judgement:
    """Judge a tensor (old and new of the same shape and type) by the standard ``name``.

    ``exact``: its result in float64, in place of the old one as what both are measured against; for ``tl2npu`` the
    error of the new result may then be twice that of the old one. ``rtol`` and ``atol`` are those of ``tl2npu``.
    """
    standard = STANDARDS[name]
    if not is_float(old):
        matched = old == new
        return Judgement(matched, "" if matched.all() else "integers differ")
    if standard.judge is not None:
        golden = wide(old) if exact is None else exact
        return standard.judge(golden, wide(old), wide(new), old.dtype.name)
    matched = agreement(old, new, rtol, atol)
    if exact is not None:
        return Judgement(matched, _double(exact, wide(old), wide(new), old.dtype.name))
    return Judgement(matched, "" if matched.all() else "beyond the tolerance")


def _double(exact: np.ndarray, old: np.ndarray, new: np.ndarray, dtype: str) -> str:
    """Why the new result is less accurate than the old one: an error of more than twice the old one's, or twice half a
    ULP where the old one has less."""
    both = np.isfinite(exact) & np.isfinite(old) & np.isfinite(new)
    if not _same(old, new)[~both].all():
        return "infinities or NaN are not in the same elements"
    half = ulp(exact[both], dtype) / 2
    before, after = np.abs(old[both] - exact[both]), np.abs(new[both] - exact[both])
    for kind, figure in (("largest", lambda x: float(x.max(initial=0.0))), ("root mean square", _rms)):
        allowed = 2 * max(figure(before), figure(half))
        if figure(after) > allowed:
            text = (
                f"its {kind} error against float64 is {figure(after):.3g}, that of the old kernel {figure(before):.3g}"
            )
            return f"{text} (limit {allowed:.3g})"
    return ""


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(_mean(np.square(values))))


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if values.size else 0.0


def _same(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Equal, or both NaN."""
    found: np.ndarray = (left == right) | (np.isnan(left) & np.isnan(right))
    return found
