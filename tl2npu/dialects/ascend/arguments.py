"""Which form of an argument each operator takes: a whole buffer, a window of it, one element, or lanes.

Forms as the front end gives them to ``ascend_tile.py``: a ``Buffer``; a ``BufferRegion``; a ``BufferLoad``; a
``BufferLoad`` whose index is a vector (*lanes*), which is what a slice with two bounds becomes in a positional argument
(TVM, python/tvm/script/parser/core/evaluator.py, ``_visit``). A slice keeps its form in ``T.copy``, in keywords, and
where a bound is left out. Every entry was tried with a kernel at 95acbd7f.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

Form = Literal["whole", "window", "element", "lanes"]

KEEPS_SLICES = frozenset({"copy", "reads", "writes", "match_buffer", "realize"})
"""Calls in whose arguments the parser gives slices no step."""

_TILE = frozenset[Form]({"whole", "window"})
_TILE_OR_ELEMENT = frozenset[Form]({"whole", "window", "element"})
_ANY = frozenset[Form]({"whole", "window", "element", "lanes"})
_WHOLE = frozenset[Form]({"whole"})

_BUFFERS_ONLY = """
sort sort32 topk gather_mask gatherb transpose brcb bilinear_interpolation wholereducemax wholereducemin wholereducesum
block_reduce_max block_reduce_min block_reduce_sum sub_experiment abs_experiment mins_experiment reduce_sum_experiment
reduce_sum_mask_experiment gathermask_experiment fill_experiment sum_experiment datacachecleanandinvalid_experiment
arith_progression createvecindex init_sort_buf
"""
_OPERATORS: Mapping[str, Mapping[str, frozenset[Form]]] = MappingProxyType(
    {
        **{f"tile.{name}": {"": _WHOLE} for name in _BUFFERS_ONLY.split()},
        "tile.select": {"selMask": _WHOLE, "src1": frozenset[Form]({"whole", "element"})},
        "tile.atomic_add": {"dst": _ANY},
        **{f"tile.row_expand_{name}_experiment": {"": _ANY} for name in ("mul", "sub", "div")},
    }
)
"""Operator -> parameter (empty: all of them) -> forms, where they are not those of :data:`_TILE`."""


def takes(operator: str, parameter: str, form: Form, scalar: bool = False) -> bool:
    """Whether an operator takes a buffer in a form; ``scalar``: a parameter that may be one element too."""
    known = _OPERATORS.get(operator, {})
    forms = known.get(parameter, known.get("", _TILE_OR_ELEMENT if scalar else _TILE))
    return form in forms


FIRST_INDEX_ONLY = frozenset(
    f"tile.{name}" for name in "add sub mul div max min bitwise_and bitwise_or compare select binary_op".split()
)
"""Operators that read an element by its first index, which is right for vectors and for columns (``binary_op``)."""

COUNTED: Mapping[str, tuple[str, ...]] = {
    "tile.select": ("dst", "src0"),
    "tile.sigmoid": ("dst", "src"),
    "tile.silu": ("dst", "src"),
}
"""Operators whose number of elements is that of the operands as they are written (``math.prod`` of the region,
tilelang/language/ascend_tile.py): of half of the rows it is right where the compiler halves tiles and not the count."""
