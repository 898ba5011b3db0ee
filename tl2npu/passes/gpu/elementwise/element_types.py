"""Element types: what arithmetic gives, and which conversions the vector core has."""

from __future__ import annotations

from collections import deque

_FLOATS = {"bfloat16": 1, "float16": 2, "float32": 3, "float64": 4}
_SYNONYMS = {"float": "float32", "half": "float16", "int": "int32", "bf16": "bfloat16", "double": "float64"}
_DIRECT: dict[str, tuple[str, ...]] = {
    "float32": ("float16", "bfloat16", "int32", "int16", "int64"),
    "float16": ("float32", "int32", "int16", "int8", "uint8"),
    "bfloat16": ("float32", "int32"),
    "int32": ("float32", "int16", "int64"),  # to float16 it multiplies by what set_deq_scale was given
    "int16": ("float16", "float32"),
    "int8": ("float16",),
    "uint8": ("float16",),
    "int64": ("int32", "float32"),
}
"""Conversions that the vector instruction ``Cast`` has (AscendC, Atlas A2)."""


def plain(dtype: str) -> str:
    """One name for each type."""
    return _SYNONYMS.get(dtype, dtype)


def perhaps_bfloat16(name: str) -> str:
    """The type of a parameter of the factory that may be given as bfloat16."""
    return f"bfloat16:{name}"


def text_of(dtype: str) -> str:
    """How the source writes a type that is not known."""
    return dtype.removeprefix("bfloat16:")


def is_known(dtype: str) -> bool:
    """False for a type that is a parameter of the factory."""
    return dtype in _FLOATS or is_integer(dtype)


def is_float(dtype: str) -> bool:
    """True for floating point; an unknown type is taken for one, as only floats are parameters in practice."""
    return not is_integer(dtype)


def is_integer(dtype: str) -> bool:
    """True for integers and booleans."""
    return dtype.startswith(("int", "uint")) or dtype == "bool"


def is_own(dtype: str) -> bool:
    """True for a type in which the vector core computes and which may be narrower than float32.

    A half, or a parameter of the factory that the file never gives as bfloat16.
    """
    return dtype in ("float16", "half") or not (is_known(dtype) or not dtype or dtype.startswith("bfloat16"))


def promoted(left: str, right: str) -> str:
    """The type of arithmetic between two types (TVM's BinaryOpMatchTypes); empty: a number that adapts."""
    if not left or not right or left == right:
        return left or right
    if is_integer(left) != is_integer(right):
        return right if is_integer(left) else left
    if left in _FLOATS and right in _FLOATS:
        return left if _FLOATS[left] > _FLOATS[right] else right
    if is_integer(left):
        return max(left, right, key=_bits)
    return "float32"  # wide enough for both, whatever they are


def _bits(dtype: str) -> int:
    digits = "".join(letter for letter in dtype if letter.isdigit())
    return int(digits) if digits else 1


def computed(value: str, target: str) -> str:
    """The type in which a value of type ``value`` that is stored as ``target`` is computed.

    Floats that go on in float32 are computed there, and so is bfloat16, for which the vector core has no arithmetic.
    Halves that are stored in another type are multiplied as halves, as on the GPU; integers in the wider type.
    """
    if not value:
        return "float32" if target.startswith("bfloat16") else target
    if is_own(value) and is_float(target):
        return "float32" if target == "float32" else value
    found = promoted(value, target) if is_integer(value) == is_integer(target) or is_integer(value) else value
    return "float32" if found.startswith("bfloat16") else found


def conversions(source: str, target: str) -> list[str] | None:
    """The types through which a conversion goes, the target last; None if there is no way."""
    if not is_known(source) or not is_known(target):
        return [target]
    queue: deque[list[str]] = deque([[source]])
    seen = {source}
    while queue:
        path = queue.popleft()
        if path[-1] == target:
            return path[1:]
        for step in _DIRECT.get(path[-1], ()):
            lossy = is_integer(step) and step != target
            if step not in seen and not lossy:
                seen.add(step)
                queue.append([*path, step])
    return None
