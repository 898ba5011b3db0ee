"""The right-hand sides of ``T.Parallel`` bodies as small trees, with macro parameters looked through."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal

import libcst as cst

from tl2npu.kernel.element_types import is_integer, plain
from tl2npu.kernel.environment import Closure, Env
from tl2npu.kernel.expressions import Evaluator
from tl2npu.kernel.model import Operand, Range, Store
from tl2npu.kernel.simplified import assigned, simplified
from tl2npu.kernel.symbolic import Sym
from tl2npu.source.signs import sign_of
from tl2npu.source.tree import last_name

Kind = Literal["load", "number", "unary", "binary", "call", "other"]

_UNARY: dict[type[cst.BaseUnaryOp], str] = {cst.Minus: "-", cst.BitInvert: "~", cst.Not: "not"}


@dataclass(frozen=True, eq=False)
class Expr:
    """One node. ``name`` is the sign of an operator or the short name of a called function (``exp``, ``max``).

    ``number``: anything without a buffer element in it; ``sym`` is its symbolic value. ``load``: a buffer element.
    """

    kind: Kind
    node: cst.BaseExpression
    name: str = ""
    args: tuple[Expr, ...] = ()
    operand: Operand | None = None
    sym: Sym | None = None

    def walk(self) -> Iterator[Expr]:
        """This node and everything below it."""
        yield self
        for arg in self.args:
            yield from arg.walk()

    @property
    def loads(self) -> tuple[Operand, ...]:
        """The buffer elements in the expression."""
        return tuple(e.operand for e in self.walk() if e.operand is not None)

    def depends_on(self, item: Range) -> bool:
        """True if a buffer element or a value in it depends on a loop variable."""
        name = str(item.var)
        for part in self.walk():
            if part.operand is not None and any(dim.lo.depends_on(name) for dim in part.operand.dims or ()):
                return True
            if part.sym is not None and part.sym.depends_on(name):
                return True
        return False


def expression(node: cst.BaseExpression, env: Env, evaluator: Evaluator) -> Expr:
    """Read an expression in an environment."""
    if isinstance(node, cst.Name):
        value = env.lookup(node.value)
        if isinstance(value, Closure):
            return expression(value.node, value.env, evaluator)
    operand = evaluator.operand(node, env)
    if operand is not None:
        return Expr("load", node, operand=operand)
    if isinstance(node, cst.BinaryOperation):
        pair = (expression(node.left, env, evaluator), expression(node.right, env, evaluator))
        made = Expr("binary", node, sign_of(node.operator), pair)
    elif isinstance(node, cst.UnaryOperation):
        inner = expression(node.expression, env, evaluator)
        if isinstance(node.operator, cst.Plus):
            return inner
        made = Expr("unary", node, _UNARY[type(node.operator)], (inner,))
    elif isinstance(node, cst.Call):
        resolved = evaluator.names.resolve(node.func) or ""
        short = resolved.rsplit(".", 1)[-1] if resolved else last_name(node.func)
        args = tuple(expression(arg.value, env, evaluator) for arg in node.args)
        if not resolved and isinstance(node.func, cst.Attribute):
            args = (expression(node.func.value, env, evaluator), *args)
        made = Expr("call", node, short, args)
    else:
        loads = evaluator.loads(node, env)
        if loads:
            return Expr("other", node, args=tuple(Expr("load", node, operand=load) for load in loads))
        return Expr("number", node, sym=evaluator.sym(node, env))
    if made.loads:
        return made
    return Expr("number", node, made.name, sym=evaluator.sym(node, env))


def value_of(store: Store, evaluator: Evaluator) -> Expr:
    """What a store assigns, as the compiler sees it; ``x += y`` as ``x + y``."""
    types = {plain(load.buffer.dtype) for load in store.value.loads}
    whole = bool(types) and all(map(is_integer, types))
    indices = bool(types) and types <= {"int32", "int64"}
    written = assigned(store.node)
    if written is not None:
        known = partial(evaluator.number, env=store.env)
        found = simplified(written, known, of_integers=whole, of_indices=indices)
        if found is not written or not store.augmented:
            return expression(found, store.env, evaluator)
    right = expression(store.value.node, store.env, evaluator)
    if not store.augmented or not isinstance(store.node, cst.AugAssign):
        return right
    left = Expr("load", store.node.target, operand=store.target)
    return Expr("binary", store.value.node, sign_of(store.node.operator), (left, right))
