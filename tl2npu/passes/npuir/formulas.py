"""TL410: functions that AscendNPU IR lacks are written as the formulas of :mod:`tl2npu.dialects.functions`.

``T.tanh(x)`` becomes ``2.0 * T.sigmoid(2.0 * x) - 1.0``: ``T.vtanh`` is a quotient of exponentials in the compiler
(``codegen_npuir_dev.cc``), and no number where the exponential overflows; the sigmoid has a limit there. A formula of
several steps, or one that needs its argument twice, computes them in tiles (:mod:`tl2npu.passes.npuir.functions`).
"""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from tl2npu.dialects.functions import FUNCTIONS, NPUIR_TILES, NPUIR_VECTOR
from tl2npu.kernel.model import Store, walk_with_parents
from tl2npu.passes.job import Job
from tl2npu.passes.npuir.vectorised import called
from tl2npu.passes.writing.numbers import element_type
from tl2npu.passes.writing.statements import expression, factor, flat
from tl2npu.passes.writing.tiles import dtype_text
from tl2npu.source.edits import Edits
from tl2npu.source.tree import replaced
from tl2npu.tile.expr import Call, Const, Expr, Load, rebuilt, walk
from tl2npu.tile.meaning import Formula, parts_of
from tl2npu.tile.write.expressions import expression as text_of

_PARTS = NPUIR_VECTOR | {"add", "sub", "mul", "div", "max", "min"}


def _of_vectors() -> Mapping[str, Formula]:
    found = {name: parts_of(name) for name in FUNCTIONS.keys() - NPUIR_TILES.keys()}
    return {
        name: formula
        for name, formula in found.items()
        if formula is not None
        and all(
            part.op in _PARTS
            for value in (*dict(formula.steps).values(), formula.value)
            for part in walk(value)
            if isinstance(part, Call)
        )
    }


FORMULAS = _of_vectors()
"""Functions without an operation of their own, whose formulas are vector operations in ``T.Parallel``."""


def spell_out(job: Job) -> None:
    """Rewrite every such function in the stores of ``T.Parallel`` whose formula is one expression."""
    while True:
        edits = Edits(job.file.index)
        for stmt, parents in walk_with_parents(job.kernel.body):
            inside = any(getattr(above, "kind", "") == "parallel" for above in parents)
            if not inside or not isinstance(stmt, Store) or stmt.via:
                continue
            found = next((one for one in called(job, stmt.value.node) if _is_one_expression(one)), None)
            if found is None:
                continue
            call, name = found
            place, text = _written(job, stmt, call, FORMULAS[name].value)
            new = replaced(stmt.value.node, {id(place): expression(job, f"({text})", call)})
            assert isinstance(new, cst.BaseExpression)
            edits.replace(stmt.value.node, new.with_changes(lpar=(), rpar=()) if place is stmt.value.node else new)
            job.change("TL410", call, f"wrote `T.{name}` with functions that have vector operations")
        if not edits:
            return
        job.apply(edits)


def _is_one_expression(found: tuple[cst.Call, str]) -> bool:
    call, name = found
    return name in FORMULAS and FORMULAS[name].fits(is_leaf=False) and len(call.args) == 1


def _written(job: Job, stmt: Store, call: cst.Call, formula: Expr) -> tuple[cst.BaseExpression, str]:
    """What is replaced, and its text: the call, or its sum with a number that the formula takes away."""
    argument = call.args[0].value
    narrow = narrow_type(job, stmt, argument)
    place: cst.BaseExpression = call
    match formula:
        case Call("sub", (rest, Const(less))) if not narrow and (above := _with(job, stmt, call, less)) is not None:
            place, formula = above, rest
    text = formula_text(formula, {"x": as_float32(argument, narrow)})
    return place, f"T.cast({text}, {narrow})" if narrow else text


def formula_text(formula: Expr, names: Mapping[str, str]) -> str:
    """The text of a formula's expression, of the texts that its names stand for."""

    def part(item: Expr) -> Expr | None:
        return Load(factor(names[item.buffer]), (), "") if isinstance(item, Load) else None

    return text_of(rebuilt(formula, part), {})


def as_float32(argument: cst.BaseExpression, narrow: str) -> str:
    """The text of an argument as a formula takes it."""
    return f'T.cast({flat(argument)}, "float32")' if narrow else flat(argument)


def narrow_type(job: Job, stmt: Store, argument: cst.BaseExpression) -> str:
    """The text of the type of an argument that is, or may be, narrower than float32; else nothing."""
    loads = [load.buffer for load in job.file.evaluator.loads(argument, stmt.env)]
    kinds = {element_type(job, buffer): dtype_text(buffer) for buffer in loads}
    if "float32" in kinds:
        return ""
    return next((text for kind, text in kinds.items() if not kind.startswith(("int", "uint", "bool"))), "")


def _with(job: Job, stmt: Store, call: cst.Call, number: float | int) -> cst.BinaryOperation | None:
    """The sum of the call and that number: in GELU the ones cancel."""
    above = job.file.index.parent(call)
    if call is stmt.value.node or not isinstance(above, cst.BinaryOperation) or not isinstance(above.operator, cst.Add):
        return None
    other = above.left if above.right is call else above.right
    return above if isinstance(other, (cst.Integer, cst.Float)) and other.evaluated_value == number else None
