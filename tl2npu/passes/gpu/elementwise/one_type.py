"""Values in one element type, in the form that vector instructions have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tl2npu.kernel import element_types
from tl2npu.passes.gpu.elementwise.reading import rebuilt
from tl2npu.passes.gpu.elementwise.tree import Expr, cast, show, with_args
from tl2npu.passes.gpu.elementwise.work import Work
from tl2npu.tile.meaning import parts_of

_SIGNS = frozenset("+-*/")


def _beyond_float(expr: Expr, dtype: str) -> bool:
    """True for arithmetic of integers of 32 bits, which a float of type ``dtype`` would round before it is done."""
    if expr.name == "/" or not element_types.is_integer(expr.dtype) or not element_types.is_float(dtype):
        return False
    numbers = [part for part in expr.walk() if part.kind == "number"]
    whole = all(part.name == "integer" or part.text.isdecimal() for part in numbers)  # others make it a float
    return whole and any(
        element_types.is_integer(load.dtype) and not element_types.is_exact(load.dtype) for load in expr.loads
    )


class OneType(Work):
    """Puts conversions where operands have another type."""

    def prepared(self, value: Expr, target: str) -> Expr:
        """The value with every operand of one type, in the form that instructions have."""
        if value.kind == "cast" and value.dtype != target and target != "float32":
            floats = element_types.is_float(value.dtype) and element_types.is_float(target)
            value = value.args[0] if floats else value  # rounded once, to the type that is stored
        dtype = element_types.computed(value.dtype, target)
        if value.kind == "load" and element_types.plain(value.dtype) == element_types.plain(target):
            dtype = value.dtype  # nothing is computed
        if target == dtype == "float32":
            self.unrounded += [
                (self.stmt.node, show(part), element_types.text_of(part.dtype)) for part in self.rounded(value)
            ]
        if self.is_half(dtype) and not self.halves.is_once(value):
            dtype = "float32"
        if element_types.is_integer(dtype) and self.halves.leaves_integers(value):
            if value.is_number:
                return self.halves.whole(value, self.temporaries.dtype_text(target))
            dtype = "float32"
        self.algebra.seen.clear()
        found = self.algebra.simplify(self.unified(value, dtype))
        for name in sorted(self.algebra.seen):
            self.note(name)
        if found.kind == "cast" and not found.args[0].dtype and self.halves.leaves_integers(found.args[0]):
            found = with_args(found, replace(found.args[0], dtype="float32"))  # of indices and numbers only
        if target != dtype and not found.dtype and found.args:
            found = replace(found, dtype=dtype)  # of indices and numbers only
        if target != dtype and found.kind not in ("load", "number") and element_types.plain(target) != dtype:
            found = cast(target, self.temporaries.dtype_text(target), found)
        return found

    def unified(self, expr: Expr, dtype: str) -> Expr:
        """The expression computed in one element type."""
        if expr.kind == "load":
            if expr.dtype in ("", dtype):
                return expr
            return cast(dtype, self.temporaries.dtype_text(dtype), expr)
        if expr.kind == "cast":
            return self.unified_cast(expr, dtype)
        if expr.kind == "select":
            condition, yes, no = expr.args
            return rebuilt(expr, self.condition(condition), self.unified(yes, dtype), self.unified(no, dtype))
        if expr.kind in ("compare", "logic"):
            return self.condition(expr)
        if not expr.args:
            return expr
        if expr.kind == "binary" and (expr.name not in _SIGNS or _beyond_float(expr, dtype)):  # integers stay so
            own = expr.dtype or "int32"
            found = rebuilt(expr, *(self.unified(arg, own) for arg in expr.args))
            return found if dtype in ("", own) else cast(dtype, self.temporaries.dtype_text(dtype), found)
        if dtype != "float32" and self.by_others(expr):
            found = rebuilt(expr, *(self.unified(arg, "float32") for arg in expr.args))
            return cast(dtype, self.temporaries.dtype_text(dtype), found)
        if (
            element_types.is_own(expr.dtype)
            and dtype not in ("", "float32", expr.dtype)
            and element_types.is_float(dtype)
        ):
            found = rebuilt(expr, *(self.unified(arg, expr.dtype) for arg in expr.args))
            return cast(dtype, self.temporaries.dtype_text(dtype), found)  # rounded to a half, as it is on the GPU
        return rebuilt(expr, *(self.unified(arg, dtype) for arg in expr.args))

    def unified_cast(self, expr: Expr, dtype: str) -> Expr:
        """A conversion that the source writes; a widening one is the type of the computation itself."""
        (arg,) = expr.args
        if self.is_half(expr.dtype) and not self.halves.is_once(arg):
            found = with_args(expr, self.unified(arg, "float32"))
            return found if dtype == expr.dtype else cast(dtype, self.temporaries.dtype_text(dtype), found)
        inner = element_types.promoted(arg.dtype, "")
        whole = element_types.is_integer(expr.dtype) and (not inner or element_types.is_integer(inner))
        if whole and self.halves.leaves_integers(arg):
            found = with_args(expr, replace(self.unified(arg, "float32"), dtype="float32"))
            return found if dtype == expr.dtype else cast(dtype, self.temporaries.dtype_text(dtype), found)
        if inner == expr.dtype:
            return self.unified(arg, dtype)
        wider = element_types.promoted(inner, expr.dtype) == expr.dtype and element_types.is_float(expr.dtype)
        if wider and expr.dtype == dtype:
            return self.unified(arg, dtype)
        own = element_types.computed(inner, inner)
        if self.is_half(own) and not self.halves.is_once(arg):
            own = "float32"
        found = with_args(expr, self.unified(arg, own))
        if expr.dtype != dtype:
            found = cast(dtype, self.temporaries.dtype_text(dtype), found)
        return found

    def condition(self, expr: Expr) -> Expr:
        """The operands of a comparison in one type."""
        if expr.kind == "compare":
            dtype = element_types.promoted(expr.args[0].dtype, expr.args[1].dtype)
            dtype = element_types.computed(dtype, dtype) if dtype else ""
            if self.is_half(dtype) and not all(map(self.halves.is_compared, expr.args)):
                dtype = "float32"
            if element_types.is_integer(dtype) and any(map(self.halves.leaves_integers, expr.args)):
                dtype = "float32"
            return with_args(expr, *(self.unified(arg, dtype) if dtype else arg for arg in expr.args))
        if expr.kind == "logic":
            return with_args(expr, *(self.condition(arg) for arg in expr.args))
        return expr

    def by_others(self, expr: Expr) -> bool:
        """True for a function of halves, or of what may be halves, that is written with other functions.

        The steps would each be rounded to a half, the function itself is once.
        """
        return expr.kind == "call" and parts_of(expr.name) is not None and self.is_half(expr.dtype)

    def is_half(self, dtype: str) -> bool:
        """True for a type that the vector core computes in and that is, or may be, narrower than float32."""
        known = self.reading.types.get(element_types.plain(dtype))
        return element_types.is_own(dtype) and known != frozenset({"float32"})

    def rounded(self, value: Expr) -> Iterator[Expr]:
        """What a GPU rounds to a narrower type on the way to a value, and is not rounded here."""
        computed = value.name != "abs" if value.kind == "call" else value.kind == "binary" and value.name in _SIGNS
        narrow = value.dtype.startswith("bfloat16") or self.is_half(value.dtype)
        if computed and narrow and not self.halves.widened(value):
            yield value
            return
        for arg in value.args:
            yield from self.rounded(arg)
