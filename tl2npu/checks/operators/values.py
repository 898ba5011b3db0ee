"""TL786: numbers that operators give to tiles of types that cannot hold them, and positions of sorts.

Numbers in expressions are a matter of the parser (``kernel/parser/scalar_types.py``). A fill of integers passes the
number to C++, where the conversion of an infinity is undefined; a float beyond float16 becomes an infinity there.
Sorts count positions in the type of the values (``src/tl_templates/ascend/common.h``, ``Sort``): float16 tells whole
numbers apart up to 2,048.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import libcst as cst

from tl2npu.checks.operators.types import types_of
from tl2npu.checks.subject import Finding, Subject
from tl2npu.dialects.ascend.values import VALUES
from tl2npu.dialects.catalogue import Role
from tl2npu.kernel.element_types import is_float
from tl2npu.kernel.environment import Env
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Buffer, Copy, Op, Operand, Scalar
from tl2npu.kernel.parser.scalar_types import holds
from tl2npu.kernel.symbolic import Sym

_INFINITY = "tilelang.language.infinity"
_INFINITIES = ("math.inf", "numpy.inf", "torch.inf")
_WRITTEN, _COMPARED = ("dst", "buffer", "out"), ("src0",)
"""The tiles whose type the numbers of an operator have: a comparison writes a mask."""
_EXACT_HALVES = 2048
_SORTS = ("tile.sort", "tile.topk")


def check(subject: Subject) -> Iterator[Finding]:
    """Findings about fills, padding and scalar operands."""
    for placed in subject.statements:
        stmt = placed.stmt
        if isinstance(stmt, Op):
            yield from _positions(subject, stmt)
            tiles = _COMPARED if stmt.op.name == "tile.compare" else _WRITTEN
            target = next((o.buffer for name, o in stmt.operands if name in tiles), None)
            values = [arg.node for name, arg in stmt.args.items() if isinstance(arg, Scalar) and _is_number(stmt, name)]
        elif isinstance(stmt, Copy):
            target = stmt.dst.buffer
            values = [arg.node for name, arg in stmt.options.items() if name == "pad_value"]
        else:
            continue
        for value in values if target is not None else ():
            text = _fault(subject, target, value, stmt)
            if text:
                yield Finding("TL786", stmt.node, text)
                break


def _is_number(stmt: Op, name: str) -> bool:
    param = stmt.op.param(name)
    return (param is None or param.role is not Role.MODE) and (stmt.op.name, name) not in VALUES


def _fault(subject: Subject, buffer: Buffer | None, value: cst.BaseExpression, stmt: Op | Copy) -> str:
    number = _number(subject, value, stmt.env)
    types = types_of(subject, buffer) if buffer is not None else frozenset()
    if buffer is not None and isinstance(value, cst.SimpleString):
        return f"`{code(value)}` is not a value of `{buffer.name}`: it is a text"
    if number is None or buffer is None or not types:
        return ""
    if any(holds(name, number) or (isinstance(stmt, Op) and is_float(name)) for name in types):
        return ""
    return f"`{code(value)}` is not a value of `{buffer.name}`, which is {min(types)}"


def _number(subject: Subject, node: cst.BaseExpression, env: Env) -> float | None:
    """The value of a number that is written down, of an infinity too."""
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        number = _number(subject, node.expression, env)
        return None if number is None else -number
    if isinstance(node, (cst.Integer, cst.Float)):
        return float(node.evaluated_value)
    names = subject.file.names
    if isinstance(node, (cst.Name, cst.Attribute)):
        return math.inf if names.resolve(node) in _INFINITIES else None
    if isinstance(node, cst.Call) and node.args:
        given = node.args[0].value
        if names.resolve(node.func) == _INFINITY:
            return math.inf
        if isinstance(node.func, cst.Name) and node.func.value == "float" and isinstance(given, cst.SimpleString):
            return _parsed(given)
    return None


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
