"""What the name space inherits: expressions and types of TVM, and names of the GPU language that are exported but have
no lowering.

``T.Parallel`` makes vector operations of the arithmetic nodes, comparisons, ``min``, ``max``, casts, ``if_then_else``
and exp, log, sqrt, rsqrt, sigmoid and abs; a single value may go through exp, exp2, log and log2.
"""

from __future__ import annotations

from dataclasses import replace

from tl2npu.dialects import ascend
from tl2npu.dialects.ascend.inherited import SECTIONS
from tl2npu.dialects.catalogue import Kind
from tl2npu.dialects.functions import NPUIR_TILES, NPUIR_VECTOR
from tl2npu.dialects.npuir.build import both_modes
from tl2npu.dialects.tables import BOTH_MODES, table

_SCALAR_ONLY = frozenset(NPUIR_TILES)
_NOT_LOWERED = "exported, but not lowered"
_GPU = f"of the GPU language: {_NOT_LOWERED}"
_MATH = frozenset(
    name
    for name, row in ascend.OPERATORS.items()
    if row.defined.startswith("tilelang/language/tir/op.py:") and row.kind is Kind.SCALAR and not row.modes
)
"""Functions that the Ascend compiler does not resolve; of them this one knows a few."""


def _functions() -> dict[str, str]:
    found = dict.fromkeys(_MATH - NPUIR_VECTOR - _SCALAR_ONLY, _NOT_LOWERED)
    found |= dict.fromkeys(NPUIR_VECTOR, "a vector operation in T.Parallel")
    return found | dict.fromkeys(_SCALAR_ONLY, "of a single value; T.Parallel becomes a scalar loop: vexp2, vlog2")


_NOTES = _functions()

OPERATORS = (
    *(
        replace(
            row,
            note=_NOTES.get(row.name, _GPU if not row.modes else ""),
            modes=BOTH_MODES if row.name in NPUIR_VECTOR | _SCALAR_ONLY else row.modes,
        )
        for section in SECTIONS.values()
        for row in both_modes(section.operators)
    ),
    *both_modes(
        replace(ascend.OPERATORS[name], note="TVM script")
        for name in ("block_attr", "func_attr", "func_name", "func_ret", "attr", "reads", "writes")
    ),
    *table(f"""
[scalar] tilelang/language/__init__.py
dynamic: name/scalar dtype='int32' # several names at once give a tuple
[scalar] tilelang/language/customize.py
clamp: dst min_val max_val
[annotation nowhere] tilelang/language/__init__.py # {_GPU}
use_swizzle: panel_size order='row' enable=True
annotate_layout: layout_map
annotate_padding: padding_map
import_source: source=None
[system nowhere] tilelang/language/customize.py # {_GPU}
dp4a: <A <B +C
view: <src shape=None dtype=None
[system nowhere] tilelang/language/kernel.py # {_GPU}
get_block_binding: dim=0
[copy nowhere] tilelang/language/copy.py # {_GPU}
c2d_im2col: <img >col nhw_step c_step kernel stride dilation pad
"""),
)
