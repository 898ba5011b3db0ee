"""Are two results equal? Tolerances by element type and by what the kernel computes; infinities and NaN in place.

The relative tolerances are those of the Ascend operator tests: float16 1e-3, float32 1e-5, bfloat16 1e-2, integers 0;
for attention and large products float16 5e-3, for these and for normalisations float32 1e-4. A result has no more
digits than what it is computed from: where a kernel rounds a wider float to a narrower one on the chip (the scores of
attention before the second product), the tolerance of the narrower one holds for its wider results, too. All of this
is read from the old kernel: a migration must not round where the author did not. The absolute
tolerance is the relative one times the root mean square of the old result around the element, see :func:`scale`: what
is small compared with its neighbours is not held to more digits than they have.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from tl2npu.simulator.ir import dtypes
from tl2npu.simulator.ir.buffer import GLOBAL, Buffer, Region
from tl2npu.simulator.ir.expr import Call
from tl2npu.simulator.ir.parts import walk
from tl2npu.simulator.ir.stmt import Op, Store
from tl2npu.simulator.ir.stmt import walk as statements
from tl2npu.simulator.lowering.uses import loads, values
from tl2npu.verify.metrics import wide

RELATIVE = {
    "float64": 1e-9,
    "float32": 1e-5,
    "float16": 1e-3,
    "bfloat16": 1e-2,
    "float8_e4m3fn": 0.125,
    "float8_e4m3fnuz": 0.125,
    "float8_e5m2": 0.25,
    "float8_e5m2fnuz": 0.25,
}
ATTENTION = {"float16": 5e-3, "float32": 1e-4}
"""For several products, a product with exponentials, and large products."""
REDUCTION = {"float32": 1e-4}
"""For softmax, normalisation and other kernels that reduce."""
LONG = 2048
"""From this extent on a product counts as large."""

_PRODUCTS = ("gemm_v0", "gemm_v1", "gemm", "mma", "wgmma_gemm", "tcgen05_gemm")


@dataclass(frozen=True)
class Difference:
    """The first element that differs, in row-major order, and how many do."""

    index: tuple[int, ...]
    old: Any
    new: Any
    count: int
    size: int
    largest: float


def tolerances(kernel: Any, rounding: bool = True) -> dict[str, float]:
    """The relative tolerances for results of a kernel by element type; 0 for what is missing.

    Those of the old kernel count: what only the new one rounds is a difference. Where it is not there, the new one
    tells what kind of kernel it is, and without ``rounding`` not what it rounds to.
    """
    wider = {"attention": ATTENTION, "reduction": REDUCTION, "": {}}[operator_class(kernel)]
    own = {name: wider.get(name, usual) for name, usual in RELATIVE.items()}
    least = max((own[name] for name in rounded(kernel) if name in own), default=0.0) if rounding else 0.0
    return {name: max(usual, least) for name, usual in own.items()}


def rounded(kernel: Any) -> set[str]:
    """The element types to which the kernel rounds wider floats that it has computed, to go on with them."""
    found: set[str] = set()
    for launch in kernel.launches:
        for stmt in statements(launch.body):
            if isinstance(stmt, Store):
                target: Buffer = stmt.buffer
                sources = [load.buffer for load in loads(stmt.value)]
            elif isinstance(stmt, Op) and isinstance(stmt.args.get("dst"), Region):
                target = stmt.args["dst"].buffer
                sources = [r.buffer for r in stmt.args.values() if isinstance(r, Region)]
            else:
                continue
            if target.memory == GLOBAL or not dtypes.is_float(target.dtype):
                continue
            for source in sources:
                computed = source.memory != GLOBAL and dtypes.is_float(source.dtype)
                if computed and dtypes.bits(source.dtype) > dtypes.bits(target.dtype):
                    found.add(target.dtype)
    return found


def operator_class(kernel: Any) -> str:
    """``attention``, ``reduction``, or empty for everything that computes each element from few others."""
    names = list(_operators(kernel))
    products = sum(name in _PRODUCTS for name in names)
    reduced = any("reduce" in name or "cumsum" in name for name in names)
    extents = [d for p in kernel.params if isinstance(p, Buffer) for d in p.shape if isinstance(d, int)]
    intricate = has_exponentials(kernel) or has_half_sums(kernel) or max(extents, default=0) >= LONG
    if products > 1 or (products and intricate):
        return "attention"
    return "reduction" if reduced else ""


def has_products(kernel: Any) -> bool:
    """Whether the kernel multiplies matrices."""
    return any(name in _PRODUCTS for name in _operators(kernel))


def has_half_sums(kernel: Any) -> bool:
    """Whether a product of matrices is summed in half precision, as a GPU can."""
    parts = [stmt for launch in kernel.launches for stmt in statements(launch.body) if isinstance(stmt, Op)]
    sums = [stmt.args.get("C") for stmt in parts if stmt.name in _PRODUCTS]
    return any(isinstance(tile, Region) and tile.buffer.dtype == "float16" for tile in sums)


def has_exponentials(kernel: Any) -> bool:
    """Whether the kernel computes exponentials."""
    return any("exp" in name for name in _operators(kernel))


def _operators(kernel: Any) -> Iterator[str]:
    """The names of the operators and functions of a kernel, as often as they stand in it."""
    for launch in kernel.launches:
        for stmt in statements(launch.body):
            if isinstance(stmt, Op):
                yield stmt.name
            yield from (part.name for value in values(stmt) for part in walk(value) if isinstance(part, Call))


def largest(old: np.ndarray, new: np.ndarray) -> float:
    """The largest absolute difference of two arrays where both are finite; 0 without such an element."""
    left, right = _wide(old), _wide(new)
    both = np.isfinite(left) & np.isfinite(right)
    return float(np.abs(left[both] - right[both]).max(initial=0.0))


def difference(
    old: np.ndarray, new: np.ndarray, rtol: float, atol: float | np.ndarray | None, errors: float = 0.0
) -> Difference | None:
    """How ``new`` differs from ``old`` (same shape and type) beyond the tolerance, or None.

    ``atol`` None: ``rtol`` times the :func:`scale` of the old values, at least the old kernel's own ``errors``. With
    both 0 only equal bits agree.
    NaN agrees with NaN, an infinity with the same infinity, and with nothing else.
    """
    agrees = agreement(old, new, rtol, atol, errors)
    if agrees.all():
        return None
    wrong = np.argwhere(~agrees)
    first = tuple(int(i) for i in wrong[0])
    return Difference(first, old[first], new[first], len(wrong), old.size, largest(old, new))


def agreement(
    old: np.ndarray, new: np.ndarray, rtol: float, atol: float | np.ndarray | None, errors: float = 0.0
) -> np.ndarray:
    """Which elements agree within the tolerance; see :func:`difference`."""
    left, right = _wide(old), _wide(new)
    alike: np.ndarray = np.asarray((left == right) | (np.isnan(left) & np.isnan(right)))
    if alike.all():
        return alike
    finite = np.isfinite(left)
    with np.errstate(all="ignore"):
        least = max(errors, _least(old, rtol))
        absolute = np.maximum(rtol * scale(left), least) if atol is None else atol
        if isinstance(atol, np.ndarray):
            absolute = np.maximum(atol, least)
        close = np.abs(left - right) <= absolute + rtol * np.abs(left)
    agrees: np.ndarray = np.where(finite & np.isfinite(right), close, alike)
    return agrees


_TERMS = 4.0
"""An element may be wrong by that many times the tolerance of its terms: a chain of roundings adds up."""


def has_one_scale(values: np.ndarray) -> bool:
    """Whether no neighbours tell the scale of an element: of a vector, or a handful of numbers."""
    return not _with_neighbours(values) and values.size > 1 and values.dtype.kind not in "iub"


def _with_neighbours(values: np.ndarray) -> list[int]:
    """The axes whose slices have enough elements to tell a scale."""
    return [a for a, extent in enumerate(values.shape) if extent > 1 and values.size // extent >= ENOUGH]


def of_terms(sizes: np.ndarray, rtol: float) -> np.ndarray:
    """The absolute tolerance of elements whose terms have these sizes; infinite where they are not known."""
    return np.where(np.isfinite(sizes), _TERMS * rtol * sizes, np.inf)


def _least(array: np.ndarray, rtol: float) -> float:
    """The tolerance around 0: numbers that are smaller than the normal ones of the type have fewer digits."""
    if array.dtype.kind in "iub" or not rtol:
        return 0.0
    limits = ml_dtypes.finfo(array.dtype)  # type: ignore[no-untyped-call]
    return max(float(limits.smallest_subnormal), rtol * float(limits.smallest_normal))


ENOUGH = 16
"""A root mean square of fewer elements may be small by chance, where all of them are results of cancellation."""


_ROUNDS = 5
"""As often factors are fitted: a row that was measured by one large element has another one then."""


def scale(values: np.ndarray) -> np.ndarray:
    """How large the terms of each element may be, as an array that broadcasts with ``values``.

    What cancels in a sum leaves the rounding of its terms, and of these an element does not tell. Its neighbours do: in
    a product of matrices a term of row ``i`` and column ``j`` is a row's factor times a column's. So the scale is a
    product of factors, one for each slice along each axis, such that all slices have a root mean square of 1 when they
    are divided by it. A row of means beside a row of sums of squares has its own scale; an element that is small
    beside its whole row does not. Of a vector see :func:`has_one_scale`.
    """
    finite = np.isfinite(values)
    sizes = np.where(finite, np.abs(values), 0.0).astype(np.float64)
    most = float(sizes.max(initial=0.0)) or 1.0
    squares = np.square(sizes / most)
    axes = _with_neighbours(values)
    slices = [tuple(a for a in range(values.ndim) if a != axis) for axis in axes] or [tuple(range(values.ndim))]
    counts = [np.maximum(finite.sum(axis=others, keepdims=True), 1) for others in slices]
    found = np.ones((1,) * values.ndim)
    for _ in range(_ROUNDS if len(axes) > 1 else 1):
        for others, count in zip(slices, counts, strict=True):
            own = squares.sum(axis=others, keepdims=True) / count
            own[own == 0] = 1.0
            squares = squares / own
            found = found * own
    return np.asarray(most * np.sqrt(found))


def _wide(array: np.ndarray) -> np.ndarray:
    """In a type that holds every value of the array exactly; 64-bit integers stay integers."""
    if array.dtype.kind in "iub":
        if array.dtype.kind == "u" and array.dtype.itemsize == 8:
            return array.view(np.int64)  # as bits: equal values have equal ones
        return array.astype(np.int64)
    return wide(array)
