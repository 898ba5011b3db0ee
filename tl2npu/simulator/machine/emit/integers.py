"""Integer functions that Python and NumPy lack or spell differently; for numbers and for arrays."""

from __future__ import annotations

from typing import Any

import numpy as np


def wrap(value: int, bits: int, signed: bool) -> int:
    """A Python integer as a register of ``bits`` holds it."""
    value = int(value) & ((1 << bits) - 1)
    return value - (1 << bits) if signed and value >> (bits - 1) else value


def truncdiv(x: Any, y: Any) -> Any:
    """The quotient rounded towards zero, as in C."""
    return (x - truncmod(x, y)) // y


def truncmod(x: Any, y: Any) -> Any:
    """The remainder with the sign of the dividend, as in C."""
    if isinstance(x, np.ndarray) or isinstance(y, np.ndarray):
        return np.fmod(x, y)
    rest = abs(x) % abs(y)
    return rest if x >= 0 else -rest


def popcount(x: Any, bits: int) -> Any:
    """The number of bits that are set."""
    x = _raw(x, bits)
    count = np.zeros(x.shape, np.int64)
    for shift in range(0, bits, 8):
        count += _BITS_OF_BYTE[(x >> np.uint64(shift)) & np.uint64(255)]
    return count[()]


def clz(x: Any, bits: int) -> Any:
    """The number of leading zero bits."""
    x = _raw(x, bits)
    length = np.zeros(x.shape, np.int64)
    for step in (32, 16, 8, 4, 2, 1):
        high = x >> np.uint64(step)
        wide = high != 0
        length += np.where(wide, step, 0)
        x = np.where(wide, high, x)
    return (bits - length - (x != 0))[()]


def _raw(x: Any, bits: int) -> Any:
    """The bits as an unsigned array."""
    return np.asarray(x).astype(np.int64).astype(np.uint64) & np.uint64((1 << bits) - 1)


_BITS_OF_BYTE = np.array([bin(n).count("1") for n in range(256)], np.int64)
