"""Element types: what arithmetic gives, and which conversions the vector core has."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tl2npu.dialects.element_types import NONE, SYNONYMS, TRUNC, copies

_EXACT = frozenset({"int8", "uint8", "int16", "uint16", "bool"})
_WORDS = {"float16": "half", "bfloat16": "bf16", "float32": "f32", "bool": "bool"}
_INTEGER = re.compile(r"(u?)int(\d+)")
_FLOATS = {"bfloat16": 1, "float16": 2, "float32": 3, "float64": 4}


def plain(dtype: str) -> str:
    """One name for each type."""
    return SYNONYMS.get(dtype, dtype)


def perhaps_bfloat16(name: str) -> str:
    """The type of a parameter of the factory that may be given as bfloat16."""
    return f"bfloat16:{name}"


def text_of(dtype: str) -> str:
    """How the source writes a type that is not known."""
    return dtype.removeprefix("bfloat16:")


def is_known(dtype: str) -> bool:
    """False for a type that is a parameter of the factory."""
    return dtype in _FLOATS or is_integer(dtype)


def word(dtype: str) -> str:
    """An element type as the end of a name: ``half``, ``f32``, ``i8``; ``cast`` for one that only a caller knows."""
    name = plain(dtype)
    found = _INTEGER.fullmatch(name)
    return f"{'u' if found[1] else 'i'}{found[2]}" if found else _WORDS.get(name, "cast")


def is_float(dtype: str) -> bool:
    """True for floating point; an unknown type is taken for one, as only floats are parameters in practice."""
    return not is_integer(dtype)


def is_integer(dtype: str) -> bool:
    """True for integers and booleans."""
    return dtype.startswith(("int", "uint")) or dtype == "bool"


def is_exact(dtype: str) -> bool:
    """True for integers whose every value is a float32: those of at most 24 bits."""
    return plain(dtype) in _EXACT


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


@dataclass(frozen=True)
class Step:
    """Statements of a conversion into a tile of ``dtype``; ``text`` has ``{dst}``, ``{src}`` and the count ``{n}``."""

    dtype: str
    text: str = "T.copy({src}, {dst})"


def _cast(dtype: str, mode: str) -> Step:
    return Step(dtype, f'T.tile.cast({{dst}}, {{src}}, "{mode}", {{n}})')


_WRAPPED = {
    "int8": "T.tile.bitwise_lshift({dst}, {src}, 24)\nT.tile.bitwise_rshift({dst}, {dst}, 24)",
    "int16": "T.tile.bitwise_lshift({dst}, {src}, 16)\nT.tile.bitwise_rshift({dst}, {dst}, 16)",
    "uint8": "T.tile.bitwise_rshift({dst}, {src}, 8)\nT.tile.bitwise_lshift({dst}, {dst}, 8)\n"
    "T.tile.sub({dst}, {src}, {dst})",
}
"""What is left of an int32 in fewer bits, as an int32: a cast would saturate, a GPU drops the upper bits."""
_TO_INT32: dict[str, tuple[str, ...]] = {
    "int8": ("float16", "int32"),
    "uint8": ("float16", "int32"),
    "int16": ("float32", "int32"),
    "int32": (),
    "int64": ("int32",),
}
_TO_FLOAT32: dict[str, tuple[str, ...]] = {
    "int8": ("float16", "float32"),
    "uint8": ("float16", "float32"),
    "float16": ("float32",),
    "bfloat16": ("float32",),
    "int16": ("float32",),
    "int32": ("float32",),
    "int64": ("float32",),
    "float32": (),
}
_FROM_FLOAT32: dict[str, tuple[str, ...]] = {
    "int8": ("float16", "int8"),
    "uint8": ("float16", "uint8"),
    **{name: (name,) for name in ("float16", "bfloat16", "int16", "int32", "int64")},
    "float32": (),
}
_WHOLE_HALVES = ("int8", "uint8", "int16", "int32")


def conversions(source: str, target: str, whole: bool = False) -> list[Step] | None:
    """The statements that convert as a GPU does, the one into the target last; None if there is no way.

    Floats are cut off, before anything that rounds; integers lose their upper bits. ``whole``: the floats are whole
    numbers already. The types and modes are those that the instruction has (``dialects/element_types.py``).
    """
    if not is_known(source) or not is_known(target):
        return [Step(target)]
    if source not in _TO_FLOAT32 or target not in _FROM_FLOAT32:
        return None
    if source == target:
        return []
    if is_integer(source) and is_integer(target):
        return _between_integers(source, target)
    if source == "float16" and target in _WHOLE_HALVES:
        return [_moved(source, target) if whole else _cast(target, TRUNC)]
    if (source, target) in (("int8", "float16"), ("uint8", "float16"), ("int16", "float16")):
        return [_moved(source, target)]
    steps = _chain(source, _TO_FLOAT32[source])
    if not is_integer(target) or whole:
        return steps + _chain("float32", _FROM_FLOAT32[target])
    if len(_FROM_FLOAT32[target]) == 1:
        return [*steps, _cast(target, TRUNC)]
    return [*steps, _cast("float32", TRUNC), *_chain("float32", _FROM_FLOAT32[target])]


def _between_integers(source: str, target: str) -> list[Step]:
    steps = _chain(source, _TO_INT32[source])
    if target == "int32":
        return steps
    if target == "int64":
        return [*steps, _moved("int32", target)]
    own, fits = _range(source), _range(target)
    if own[0] < fits[0] or own[1] > fits[1]:
        steps.append(Step("int32", _WRAPPED[target]))
    rest = ("int16",) if target == "int16" else ("float32", "float16", target)
    return steps + _chain("int32", rest)


def _range(dtype: str) -> tuple[int, int]:
    signed = not dtype.startswith("u")
    size = 1 << (_bits(dtype) - signed)
    return (-size if signed else 0), size - 1


def _chain(source: str, path: Iterable[str]) -> list[Step]:
    steps = []
    for target in path:
        steps.append(_moved(source, target))
        source = target
    return steps


def _moved(source: str, target: str) -> Step:
    """A conversion that loses at most low bits of floats: a copy where ``T.copy`` asks for a mode that exists."""
    return Step(target) if copies(source, target) else _cast(target, NONE)
