"""What an assertion of the host, or a condition under which it raises, says of the element types of tensors."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tl2npu.triton.host.torch_names import DTYPES


@dataclass(frozen=True)
class Alike:
    """Tensors of one element type, and the types that it may be; no ``kinds`` where the condition names none."""

    tensors: tuple[ast.expr, ...]
    kinds: tuple[str, ...]


def alike(test: ast.expr, holds: bool) -> Iterator[Alike]:
    """What is known of element types where a condition holds, or where it does not."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            yield from alike(inner, not holds)
        case ast.BoolOp(op=op, values=values) if isinstance(op, ast.And) == holds:
            for value in values:
                yield from alike(value, holds)
        case ast.Compare(left=left, ops=[ast.In() | ast.NotIn() as op], comparators=[row]):
            if isinstance(op, ast.In) == holds and isinstance(row, (ast.Tuple, ast.List, ast.Set)):
                yield from _of([left], row.elts)
        case ast.Compare(left=left, ops=ops, comparators=others):
            same = all(isinstance(op, (ast.Eq, ast.Is)) for op in ops)
            if same if holds else len(ops) == 1 and isinstance(ops[0], (ast.NotEq, ast.IsNot)):
                sides = [left, *others]
                yield from _of(sides, [side for side in sides if ast.unparse(side) in DTYPES])


def _of(sides: list[ast.expr], kinds: list[ast.expr]) -> Iterator[Alike]:
    tensors = tuple(side.value for side in sides if isinstance(side, ast.Attribute) and side.attr == "dtype")
    texts = [ast.unparse(kind) for kind in kinds]
    if tensors and all(text in DTYPES for text in texts):
        yield Alike(tensors, tuple(dict.fromkeys(texts)))
