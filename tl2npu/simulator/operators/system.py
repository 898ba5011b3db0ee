"""Registers, views of other types, output from inside a kernel."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.machine.operand import Operand
from tl2npu.simulator.operators.registry import semantics

_C_TYPES = {
    "half": "float16",
    "float": "float32",
    "int": "int32",
    "bfloat16_t": "bfloat16",
    **{f"{sign}int{bits}_t": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


@semantics("reinterpretcast", reads="src", writes="dst", raw=True, rebinds="dst")
def reinterpretcast(A: Any, dst: Operand, src: Operand, casttype: str) -> Any:
    """``dst`` becomes a view of the bytes of ``src``: later writes to one change the other.

    The new array of ``dst`` is returned. Raises SimulatorError for a type that is not the one ``dst`` is declared with,
    and where ``dst`` needs more bytes than ``src`` has.
    """
    kind = _C_TYPES.get(casttype, casttype)
    if kind != dst.dtype:
        raise SimulatorError(f"T.reinterpretcast to {casttype}, but {dst.name} is declared as {dst.dtype}")
    flat = A.same_bits(src.array, dst.dtype)
    if flat.size < dst.array.size:
        raise SimulatorError(
            f"T.reinterpretcast: {dst.name}{list(dst.array.shape)} {dst.dtype} needs more bytes than "
            f"{src.name}{list(src.array.shape)} {src.dtype} has"
        )
    return flat[: dst.array.size].reshape(dst.array.shape)


_CONVERSION = re.compile(r"%([-+ #0]*)(\d*)((?:\.\d+)?)(?:hh|h|ll|l|z|j|t|L)?([a-zA-Z%])")


def formatted(text: str, values: list[Any]) -> str:
    """C's ``printf``. Raises SimulatorError where the conversions and the values do not agree."""
    rest = list(values)

    def one(match: re.Match[str]) -> str:
        flags, width, precision, letter = match.groups()
        if letter == "%":
            return "%"
        if not rest:
            raise SimulatorError(f"T.printf: {text!r} has more conversions than values")
        value = rest.pop(0)
        letter = {"i": "d", "u": "d", "p": "x", "F": "f"}.get(letter, letter)
        if letter in "dxXo":
            value = int(value)
        elif letter in "feEgG":
            value = float(value)
        elif letter not in "cs":
            raise SimulatorError(f"T.printf: no conversion %{letter}")
        found: str = f"%{flags}{width}{precision}{letter}" % value
        return found

    result = _CONVERSION.sub(one, text)
    if rest:
        raise SimulatorError(f"T.printf: {text!r} has {len(rest)} conversions too few")
    return result


@semantics("printf", raw=True)
def printf(A: Any, format_str: str, **args: Any) -> None:
    """Prints on every core that comes by; a buffer stands for its address, here its number."""
    given = [v for value in args.values() for v in (value if isinstance(value, tuple) else (value,))]
    values = [v.number if isinstance(v, Operand) else v for v in given]
    print(formatted(format_str, values), end="" if format_str.endswith("\n") else "\n")


@semantics("dump_tensor", reads="tensor", raw=True)
def dump_tensor(A: Any, tensor: Operand, desc: Any, dump_size: Any, shape_info: Any = ()) -> None:
    """Prints one line: the descriptor, the buffer, and the beginning of what is dumped."""
    count = min(int(dump_size), tensor.array.size)
    flat = tensor.access.flat(tensor.number, tensor.array, tensor.starts, count, "r", tensor.site)
    shown = np.array2string(flat[:8], separator=", ", max_line_width=10_000)
    more = f", {count - 8} more" if count > 8 else ""
    shape = list(shape_info) or list(tensor.array.shape)
    print(f"dump_tensor {int(desc)}: {tensor.name}{shape} {tensor.dtype} {shown}{more}")
