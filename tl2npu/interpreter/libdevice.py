"""What the functions of CUDA's libdevice compute, by the names of their symbols; Triton's interpreter has none of them.

Facts: triton-lang/triton v3.8.0, ``triton/language/extra/cuda/libdevice.py`` (which symbols a name stands for) and
NVIDIA's libdevice user's guide (what a symbol computes).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tl2npu.simulator.arithmetic.erf import erf


class NotInLibdevice(NotImplementedError):
    """A function of libdevice that is not here."""


def _each(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of one element, for arrays; what it does not take gives NaN."""

    def safe(*values: Any) -> float:
        try:
            return float(function(*map(float, values)))
        except (ValueError, OverflowError):
            return math.nan

    return np.vectorize(safe, otypes=[np.float64])


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "exp2", "expm1")},
    **{name: getattr(np, name) for name in ("log", "log2", "log10", "log1p", "sqrt", "cbrt", "floor", "ceil", "trunc")},
    **{name: getattr(np, name) for name in ("rint", "fmod", "hypot", "ldexp", "nextafter", "copysign", "signbit")},
    **{name: getattr(np, name) for name in ("isnan", "isinf")},
    **{
        f"{name}": getattr(np, f"arc{name[1:]}")
        for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh", "atan2")
    },
    "erf": erf,
    "erfc": _each(math.erfc),
    "tgamma": _each(math.gamma),
    "lgamma": _each(math.lgamma),
    "exp10": lambda x: np.power(10.0, x),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "rcbrt": lambda x: 1 / np.cbrt(x),
    "pow": np.power,
    "powi": np.power,
    "abs": np.abs,
    "fabs": np.abs,
    "nearbyint": np.rint,
    "llrint": np.rint,
    "lrint": np.rint,
    "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    "llround": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    "remainder": lambda x, y: x - y * np.rint(x / y),
    "fdim": lambda x, y: np.where(np.isnan(x) | np.isnan(y), np.nan, np.maximum(x - y, 0)),
    "fma": lambda x, y, z: x * y + z,
    "fmax": np.fmax,
    "fmin": np.fmin,
    "max": np.maximum,
    "min": np.minimum,
    "finite": np.isfinite,
    "isfinited": np.isfinite,
    "isfinite": np.isfinite,
    "saturate": lambda x: np.clip(x, 0, 1),
    "sinpi": lambda x: np.sin(np.pi * x),
    "cospi": lambda x: np.cos(np.pi * x),
    "normcdf": lambda x: 0.5 * (1 + erf(x / math.sqrt(2))),
    "popc": np.bitwise_count,
    "popcll": np.bitwise_count,
}


def computed(symbol: str, arguments: list[np.ndarray]) -> np.ndarray:
    """What the function of a symbol (``__nv_tanhf``, ``__ocml_tanh_f32``) gives, in the type that NumPy gives it.

    Floats are computed in float64, from which the caller rounds. Raises NotInLibdevice.
    """
    name = symbol.removeprefix("__nv_").removeprefix("__ocml_").removeprefix("fast_")
    for suffix in ("_f16", "_f32", "_f64"):
        name = name.removesuffix(suffix)
    function = _FUNCTIONS.get(name) or _FUNCTIONS.get(name.removesuffix("f"))
    if function is None:
        raise NotInLibdevice(f"{symbol} has no meaning in tl2npu")
    wide = [a.astype(np.float64) if a.dtype.kind not in "iub" else a for a in arguments]
    with np.errstate(all="ignore"):
        return np.asarray(function(*wide))
