"""Loop variables as data: vectors and tiles of indices, made once at the start of the kernel."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tl2npu.kernel import element_types
from tl2npu.passes.gpu.elementwise.places import Temporaries
from tl2npu.passes.gpu.elementwise.tree import Expr, Span, binary, negative, number, show

if TYPE_CHECKING:
    from tl2npu.passes.gpu.elementwise.work import Work


def vector(temporaries: Temporaries, extents: tuple[str, ...], dtype: str, wish: str = "index") -> str:
    """The name of a tile ``0, 1, 2, ...`` of an element type: a vector, or the only row of a tile.

    ``createvecindex`` is tested upstream on NPUs for int32 and float (``ascendc``); on ``pto`` it is ``TCI``, which
    takes every type of four bytes on A2 and A3, and only integers on A5 (docs/isa/TCI.md of PTO-ISA).
    """
    key = ("index", *extents, dtype)
    if key in temporaries.shared:
        return temporaries.shared[key]
    if dtype == "int32" or (dtype == "float32" and not temporaries.only_integer_indices):
        name = temporaries.tile(extents, dtype, f"{wish}_int" if dtype == "int32" else wish, keep=True)
        temporaries.prelude.append(f"T.tile.createvecindex({name}, 0)")
    else:
        path = element_types.conversions("int32", dtype) or [element_types.Step(dtype)]
        before = vector(temporaries, extents, "int32" if len(path) < 2 else path[-2].dtype, wish)
        name = temporaries.tile(extents, dtype, wish, keep=True)
        temporaries.prelude.append(path[-1].text.format(dst=name, src=before, n=extents[-1]))
    temporaries.shared[key] = name
    return name


def index_vector(lowering: Work, value: Expr, dtype: str) -> Expr:
    """The element of an index vector that a loop variable stands for."""
    nest = lowering.nest
    axis = nest.columns if "c" in value.axes or nest.rows is None else nest.rows
    lowering.note("TL147")
    wish = "index" if len({*nest.extents}) == 1 else "column_index" if axis is nest.columns else "row_index"
    name = vector(lowering.temporaries, (axis.text,), dtype, wish)
    span = Span.TILE if nest.rows is None else Span.COLUMN if axis is nest.columns else Span.ROW
    return Expr("load", name, (), dtype, text=f"{name}[{axis.name}]", span=span, axes=value.axes)


def tile(temporaries: Temporaries, extents: tuple[str, str], sign: str) -> str:
    """The name of a tile of column - row (``sign`` ``-``), column + row (``+``), column (``c``) or row (``r``)."""
    rows, columns = extents
    key = ("tile", rows, columns, sign)
    if key in temporaries.shared:
        return temporaries.shared[key]
    row_wish, column_wish = ("index", "index") if rows == columns else ("row_index", "column_index")
    if rows == "1" and sign != "r":  # the number of its row is 0
        return vector(temporaries, extents, "float32", column_wish)
    axis, index_wish = (rows, row_wish) if sign == "r" else (columns, column_wish)
    index = vector(temporaries, (axis,), "float32", index_wish)
    wish = {"-": "column_minus_row", "+": "column_plus_row", "c": "column_indices", "r": "row_indices"}[sign]
    name = temporaries.tile(extents, "float32", wish, keep=True)
    row, column = temporaries.variables()
    if sign in ("+", "-"):
        temporaries.prelude.append(moved_rows(name, row, rows, index, sign))
    elif sign == "r" and rows == "1":  # one row is not spread (facts 11), and its number is 0
        temporaries.prelude.append(f"T.tile.fill({name}, 0.0)")
    else:
        element = f"{index}[{row if sign == 'r' else column}]"
        head = f"for {row}, {column} in T.Parallel({rows}, {columns}):"
        temporaries.prelude.append(f"{head}\n    {name}[{row}, {column}] = {element}")
    temporaries.shared[key] = name
    return name


def moved_rows(name: str, variable: str, rows: str, index: str, sign: str) -> str:
    """A tile of column + row or column - row."""
    return rows_of(name, variable, rows, index, f"T.float32({variable})", "add" if sign == "+" else "sub")


def rows_of(
    name: str, variable: str, rows: str, vector: str, number: str, operator: str = "sub", before: str = ""
) -> str:
    """A tile whose rows are a vector and a number of each, or the number alone: one instruction a row, which reads no
    element of a tile.

    Without the fill, memory planning would take the tile for dead between the loop and its readers (TL721).
    """
    row = f"{name}[{variable}, :]"
    line = f"T.tile.{operator}({row}, {vector}, {number})" if vector else f"T.tile.fill({row}, {number})"
    line = f"{before}\n    {line}" if before else line
    return f"T.tile.fill({name}, 0.0)\nfor {variable} in T.serial({rows}):\n    {line}"


def values(lowering: Work, value: Expr) -> str:
    """The name of a vector of whole numbers, one for each column, which the scalar unit computes: once for the kernel
    where they are the same in all of it.
    """
    axis, temporaries, text = lowering.nest.columns, lowering.temporaries, show(value)
    key = ("values", axis.text, text)
    if key in temporaries.shared:
        return temporaries.shared[key]
    name = temporaries.tile((axis.text,), "float32", "column_values", keep=True)
    store = f"for {axis.name} in T.serial({axis.text}):\n    {name}[{axis.name}] = T.float32({text})"
    lines = f"T.tile.fill({name}, 0.0)\n{store}"
    if any(part.dynamic for part in value.walk()) or not temporaries.knows(text):
        lowering.line(lines)
    else:
        temporaries.prelude.append(lines)
        temporaries.shared[key] = name
    return name


def terms(expr: Expr, side: int = 1) -> list[tuple[int, Expr]]:
    """The terms of a sum with their signs."""
    if expr.kind == "binary" and expr.name in ("+", "-"):
        left, right = expr.args
        return [*terms(left, side), *terms(right, side if expr.name == "+" else -side)]
    if expr.kind == "negative" or (expr.kind == "binary" and expr.name == "*" and expr.args[1].value == -1.0):
        return terms(expr.args[0], -side)
    return [(side, expr)]


def both(work: Work, value: Expr) -> Expr | None:
    """A sum of one index of each axis and numbers, with the tile of both that is made once; None for anything else."""
    nest = work.nest
    if nest.rows is None or work.temporaries.tight:
        return None
    parts = terms(value)
    columns, rows = ([side for side, term in parts if term.kind == "index" and term.axes == {axis}] for axis in "cr")
    fixed = [(side, term) for side, term in parts if term.is_number]
    if len(columns) != 1 or len(rows) != 1 or len(fixed) + 2 != len(parts):
        return None
    name = tile(work.temporaries, (nest.rows.text, nest.columns.text), "+" if columns == rows else "-")
    work.note("TL147")
    found = work.tile_place(name, "float32").load
    if columns == [-1]:
        found = binary("*", found, number("-1.0"))
    if not fixed:
        return found
    added = number(show(total(fixed)))
    whole = all(term.name == "integer" or term.text.isdecimal() for _, term in fixed)
    dynamic = any(term.dynamic for _, term in fixed)
    return binary("+", found, replace(added, name="integer" if whole else "", dynamic=dynamic))


def bound(fixed: list[tuple[int, Expr]]) -> str:
    """The text of minus the sum of numbers; empty if there are none."""
    return show(total([(-side, term) for side, term in fixed])) if fixed else ""


def total(parts: list[tuple[int, Expr]]) -> Expr:
    """The sum of terms, the positive ones first."""
    (side, first), *others = sorted(parts, key=lambda part: -part[0])
    found = first if side > 0 else number(f"-{show(first, 30)}") if first.is_number else negative(first)
    for side, term in others:
        found = binary("+" if side > 0 else "-", found, term)
    return found
