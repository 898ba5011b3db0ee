"""Functions that make macros: what their variables are where the file calls them, as texts of the file."""

from __future__ import annotations

import ast

import libcst as cst

from tl2npu.across.functions import Surroundings, Ungraftable, operand, value_text
from tl2npu.across.imports import Made
from tl2npu.across.symbols import Symbols
from tl2npu.kernel.bindings import assigned_names
from tl2npu.kernel.expressions import code
from tl2npu.source.index import Index
from tl2npu.source.tree import mentioned, walk

_LONGEST = 160
_PURE = (
    *(cst.Name, cst.Attribute, cst.BaseNumber, cst.SimpleString, cst.Tuple),
    *(cst.BinaryOperation, cst.UnaryOperation, cst.BooleanOperation, cst.Comparison, cst.IfExp),
)


def arguments(index: Index, made: Made, symbols: Symbols, there: Surroundings) -> dict[str, str]:
    """The variables of a maker when it returns. Raises :class:`Ungraftable` where an argument may change later."""
    params = made.maker.node.args
    if params.vararg is not None or params.kwarg is not None:
        raise Ungraftable("it takes any number of arguments")
    positional = [arg.arg for arg in (*params.posonlyargs, *params.args)]
    given: dict[str, str] = {}
    for number, arg in enumerate(made.call.args):
        if arg.star or (arg.keyword is None and number >= len(positional)):
            raise Ungraftable("its arguments cannot be told apart")
        _refuse_late(index, made, arg.value)
        given[arg.keyword.value if arg.keyword is not None else positional[number]] = operand(_one_line(arg.value))
    defaults = dict(zip(reversed(positional), reversed(params.defaults), strict=False))
    defaults |= {arg.arg: value for arg, value in zip(params.kwonlyargs, params.kw_defaults, strict=True) if value}
    for name in [*positional, *(arg.arg for arg in params.kwonlyargs)]:
        if name not in given:
            if name not in defaults:
                raise Ungraftable(f"`{name}` is not given")
            given[name] = value_text(made.maker, defaults[name], symbols, there, {})
    for statement in made.maker.node.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            given[statement.targets[0].id] = value_text(made.maker, statement.value, symbols, there, given)
    if any(len(text) > _LONGEST for text in given.values()):
        raise Ungraftable("its values are long expressions")
    return given


def _one_line(value: cst.BaseExpression) -> str:
    text = code(value)
    if "\n" in text or "\r" in text:
        raise Ungraftable("an argument is broken over several lines")
    return text


def _refuse_late(index: Index, made: Made, value: cst.BaseExpression) -> None:
    """An argument is worked out once, at the call: its names must keep their values from there on."""
    if any(isinstance(part, cst.BaseExpression) and not isinstance(part, _PURE) for part in walk(value)):
        raise Ungraftable(f"`{code(value)}` may do something")
    around = index.enclosing(made.statement, cst.FunctionDef)
    if index.enclosing(made.statement, cst.For, cst.While) is not None:
        raise Ungraftable("it is called in a loop")
    names = mentioned(value)
    later = False
    for statement in index.statements:
        if later and names & assigned_names(statement) and index.enclosing(statement, cst.FunctionDef) is around:
            raise Ungraftable(f"`{code(value)}` changes later")
        later = later or statement is made.statement
