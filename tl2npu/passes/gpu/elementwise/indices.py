"""Loop variables as data: vectors and tiles of indices, made once at the start of the kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tl2npu.kernel import element_types
from tl2npu.passes.gpu.elementwise.places import Temporaries
from tl2npu.passes.gpu.elementwise.tree import Expr, Span

if TYPE_CHECKING:
    from tl2npu.passes.gpu.elementwise.work import Work


def vector(temporaries: Temporaries, extent: str, dtype: str, wish: str = "index") -> str:
    """The name of a tile ``0, 1, 2, ...`` of an element type."""
    key = ("index", extent, dtype)
    if key in temporaries.shared:
        return temporaries.shared[key]
    if dtype == "int32":
        name = temporaries.tile((extent,), dtype, f"{wish}_int", keep=True)
        temporaries.prelude.append(f"T.tile.createvecindex({name}, 0)")
    else:
        path = element_types.conversions("int32", dtype) or [element_types.Step(dtype)]
        before = vector(temporaries, extent, "int32" if len(path) < 2 else path[-2].dtype, wish)
        name = temporaries.tile((extent,), dtype, wish, keep=True)
        temporaries.prelude.append(path[-1].text.format(dst=name, src=before, n=extent))
    temporaries.shared[key] = name
    return name


def index_vector(lowering: Work, value: Expr, dtype: str) -> Expr:
    """The element of an index vector that a loop variable stands for."""
    nest = lowering.nest
    axis = nest.columns if "c" in value.axes or nest.rows is None else nest.rows
    lowering.note("TL147")
    wish = "index" if len({*nest.extents}) == 1 else "column_index" if axis is nest.columns else "row_index"
    name = vector(lowering.temporaries, axis.text, dtype, wish)
    span = Span.TILE if nest.rows is None else Span.COLUMN if axis is nest.columns else Span.ROW
    return Expr("load", name, (), dtype, text=f"{name}[{axis.name}]", span=span, axes=value.axes)


def tile(temporaries: Temporaries, extents: tuple[str, str], sign: str) -> str:
    """The name of a tile of column - row (``sign`` ``-``), column + row (``+``), column (``c``) or row (``r``)."""
    rows, columns = extents
    key = ("tile", rows, columns, sign)
    if key in temporaries.shared:
        return temporaries.shared[key]
    row_wish, column_wish = ("index", "index") if rows == columns else ("row_index", "column_index")
    row = vector(temporaries, rows, "float32", row_wish) if sign != "c" else ""
    column = vector(temporaries, columns, "float32", column_wish) if sign != "r" else ""
    wish = {"-": "column_minus_row", "+": "column_plus_row", "c": "column_indices", "r": "row_indices"}[sign]
    name = temporaries.tile(extents, "float32", wish, keep=True)
    header = f"for i, j in T.Parallel({rows}, {columns}):"
    first = f"{row}[i]" if sign == "r" else f"{column}[j]"
    if sign == "r" and rows == "1":  # one row is not spread (facts 11), and its number is 0
        temporaries.prelude.append(f"T.tile.fill({name}, 0.0)")
    else:
        temporaries.prelude.append(f"{header}\n    {name}[i, j] = {first}")
    if sign in ("+", "-"):
        temporaries.prelude.append(f"{header}\n    {name}[i, j] = {name}[i, j] {sign} {row}[i]")
    temporaries.shared[key] = name
    return name
