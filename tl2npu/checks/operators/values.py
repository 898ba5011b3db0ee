"""TL786: numbers that the element type of a tile cannot hold: infinities and large numbers in integers, positions.

A fill of integers passes the number to C++, where the conversion of an infinity is undefined; ``T.infinity`` knows
float types only ("Cannot decide infinity for type int32", ``op/op.cc:334``). Sorts count positions in the type of the
values (``src/tl_templates/ascend/common.h``, ``Sort``): float16 tells whole numbers apart up to 2,048.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import libcst as cst

from tl2npu.checks.operators.types import types_of
from tl2npu.checks.subject import Finding, Subject
from tl2npu.kernel.environment import Env
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Buffer, Copy, Op, Operand, Scalar, Store
from tl2npu.kernel.symbolic import Sym

_INFINITY = "tilelang.language.infinity"
_INFINITIES = ("math.inf", "numpy.inf", "torch.inf")
_EXACT_HALVES = 2048
_SORTS = ("tile.sort", "tile.topk")


def check(subject: Subject) -> Iterator[Finding]:
    """Findings about fills, padding, stores and scalar operands."""
    for placed in subject.statements:
        stmt = placed.stmt
        if isinstance(stmt, Op):
            yield from _positions(subject, stmt)
            named = ("src0",) if stmt.op.name == "tile.compare" else ("dst", "buffer", "out")
            target = next((o.buffer for name, o in stmt.operands if name in named), None)
            values = [arg.node for arg in stmt.args.values() if isinstance(arg, Scalar)]
        elif isinstance(stmt, Copy):
            target = stmt.dst.buffer
            values = [arg.node for name, arg in stmt.options.items() if name == "pad_value"]
        elif isinstance(stmt, Store):
            target, values = stmt.target.buffer, [stmt.value.node]
        else:
            continue
        for value in values if target is not None else ():
            text = _fault(subject, target, value, stmt.env)
            if text:
                yield Finding("TL786", stmt.node, text)
                break


def _fault(subject: Subject, buffer: Buffer | None, value: cst.BaseExpression, env: Env) -> str:
    number, of = _number(subject, value, env)
    if of.lstrip("u").startswith("int"):
        return f"`{code(value)}`: {of} has no infinity"
    types = types_of(subject, buffer) if buffer is not None else frozenset()
    if number is None or buffer is None or not types:
        return ""
    bounds = [_bounds(name) for name in types]
    if any(bound is None or bound[0] <= number <= bound[1] for bound in bounds):
        return ""
    return f"`{code(value)}` is no value of `{buffer.name}`, which is {min(types)}"


def _bounds(dtype: str) -> tuple[int, int] | None:
    """The smallest and the largest number of an integer type."""
    if not dtype.lstrip("u").startswith("int"):
        return None
    bits = int(dtype.lstrip("uint"))
    return (0, 2**bits - 1) if dtype.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _number(subject: Subject, node: cst.BaseExpression, env: Env) -> tuple[float | None, str]:
    """The value of a number that is written down, and the type that ``T.infinity`` is asked for."""
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        number, of = _number(subject, node.expression, env)
        return (-number if number is not None else None), of
    if isinstance(node, (cst.Integer, cst.Float)):
        return float(node.evaluated_value), ""
    names = subject.file.names
    if isinstance(node, (cst.Name, cst.Attribute)):
        return (math.inf, "") if names.resolve(node) in _INFINITIES else (None, "")
    if isinstance(node, cst.Call) and node.args:
        given = node.args[0].value
        if names.resolve(node.func) == _INFINITY:
            said = subject.located.evaluator.static(given, env)
            return math.inf, said if isinstance(said, str) else ""
        if isinstance(node.func, cst.Name) and node.func.value == "float" and isinstance(given, cst.SimpleString):
            return _parsed(given), ""
    return None, ""


def _parsed(node: cst.SimpleString) -> float | None:
    try:
        return float(str(node.evaluated_value))
    except ValueError:
        return None


def _positions(subject: Subject, stmt: Op) -> Iterator[Finding]:
    source = stmt.args.get("src")
    if stmt.op.name not in _SORTS or not isinstance(source, Operand) or types_of(subject, source.buffer) != {"float16"}:
        return
    count = stmt.args.get("actual_num")
    sizes: list[Sym] = [count.sym] if isinstance(count, Scalar) else []
    for number in (one for size in sizes for one in subject.numbers(size)):
        if number is not None and number > _EXACT_HALVES:
            text = (
                f"T.{stmt.op.name} holds positions as float16: of {number}, those above {_EXACT_HALVES:,} are rounded"
            )
            yield Finding("TL786", stmt.node, text, "warning")
            return
