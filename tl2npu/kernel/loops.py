"""What a ``for`` runs over: range, T.serial, T.Parallel, T.Pipelined and their bounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import libcst as cst

from tl2npu.dialects.catalogue import Operator
from tl2npu.kernel.comparisons import compared
from tl2npu.kernel.environment import Env
from tl2npu.kernel.expressions import Evaluator, code
from tl2npu.kernel.model import Loop
from tl2npu.kernel.ranges.bounds import EITHER
from tl2npu.kernel.symbolic import Sym, const, opaque, product
from tl2npu.source.tree import argument as given

_LOOPS = {
    "serial": "serial",
    "Parallel": "parallel",
    "Pipelined": "pipelined",
    "Persistent": "persistent",
    "unroll": "unroll",
    "vectorized": "vectorized",
    "grid": "serial",
    "Unroll": "unroll",
    "Serial": "serial",
    "Vectorized": "vectorized",
}

_IN_ORDER = ("serial", "unroll", "pipelined")
"""Loops that run in order, the plainest first."""

Bounds = list[tuple[cst.BaseExpression | None, cst.BaseExpression, cst.BaseExpression | None]]
"""(start, stop, step) of every variable."""


def loop_bounds(
    call: cst.Call | None, op: Operator | None, env: Env, evaluator: Evaluator
) -> tuple[str | None, Bounds, Sym | None]:
    """Kind, bounds and ``num_stages`` of the call that a loop runs over; ``op`` is its catalogue entry.

    The kind is None if the call is no loop of the dialect.
    """
    if call is None or any(arg.star for arg in call.args):
        return None, [], None
    positional = [arg.value for arg in call.args if arg.keyword is None]
    keywords = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
    of_python = isinstance(call.func, cst.Name) and call.func.value == "range" and env.lookup("range") is None
    kind = "serial" if of_python else _LOOPS.get(op.name) if op else None
    if kind is None or not (positional or keywords):
        return None, [], None
    stages = _stages(keywords["num_stages"], env, evaluator) if "num_stages" in keywords else None
    if kind == "parallel" or (len(positional) > 1 and code(call.func).endswith("grid")):
        return kind, [(None, item, None) for item in positional], stages
    if kind == "persistent":
        domain = evaluator.sequence(positional[0], env) if positional else ()
        return kind, [(None, item, None) for item, _ in domain], stages
    start, stop = _ends(positional, keywords)
    step = positional[2] if len(positional) > 2 and kind != "pipelined" else keywords.get("step")
    if kind == "pipelined" and stages is None and len(positional) > 2:
        stages = _stages(positional[2], env, evaluator)
    return (kind, [(start, stop, step)], stages) if stop is not None else (None, [], None)


def _stages(node: cst.BaseExpression, env: Env, evaluator: Evaluator) -> Sym:
    """``num_stages``, where the sizes may decide: ``2 if n % 2 == 0 else 0``."""
    if not isinstance(node, cst.IfExp):
        return evaluator.sym(node, env)
    arms = (_stages(arm, env, evaluator) for arm in (node.body, node.orelse))
    return opaque(EITHER, *arms, _condition(node.test, env, evaluator))


def _condition(node: cst.BaseExpression, env: Env, evaluator: Evaluator) -> Sym:
    """A condition as a number, which is not 0 where it holds."""
    if isinstance(node, cst.BooleanOperation):
        left, right = (_condition(side, env, evaluator) for side in (node.left, node.right))
        return left * right if isinstance(node.operator, cst.And) else opaque("max", left, right)
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
        return compared("Equal", _condition(node.expression, env, evaluator), const(0))
    return evaluator.sym(node, env)


def _ends(
    positional: Sequence[cst.BaseExpression], keywords: Mapping[str, cst.BaseExpression]
) -> tuple[cst.BaseExpression | None, cst.BaseExpression | None]:
    """Start and stop of a loop over one range."""
    if len(positional) > 1:
        return positional[0], positional[1]
    if not positional:
        return keywords.get("start"), keywords.get("stop")
    return (positional[0], keywords["stop"]) if "stop" in keywords else (None, positional[0])


def either_loop(
    node: cst.IfExp, operator: Callable[[cst.BaseExpression, Env], Operator | None], env: Env, evaluator: Evaluator
) -> cst.Call | None:
    """``T.Pipelined(n, num_stages=2) if deep else T.serial(n)``: the plainer of two over the same, in order."""
    found: list[tuple[int, cst.Call]] = []
    extents: list[list[list[Sym | None]]] = []
    for arm in (node.body, node.orelse):
        if not isinstance(arm, cst.Call):
            return None
        kind, bounds, _ = loop_bounds(arm, operator(arm.func, env), env, evaluator)
        if kind not in _IN_ORDER:
            return None
        found.append((_IN_ORDER.index(kind), arm))
        extents.append([[None if part is None else evaluator.sym(part, env) for part in item] for item in bounds])
    return min(found, key=lambda item: item[0])[1] if extents[0] == extents[1] else None


_PLACES = {"wave_size": 1, "index": 2}


def wave_argument(loop: Loop, name: str) -> cst.BaseExpression | None:
    """An argument of ``T.Persistent(domain, wave_size, index)`` behind the domain, given by place or by name."""
    return given(loop.call, name, _PLACES[name]) if loop.call is not None else None


def fills_every_wave(loop: Loop, evaluator: Evaluator) -> bool | None:
    """Whether no block is without a tile of the domain in the last wave; None if that cannot be told.

    Otherwise the frame leaves its last wave by ``loop_break()`` (``src/ir.cc``, ``PersistentFor``).
    """
    wave = wave_argument(loop, "wave_size")
    if wave is None:
        return None
    return (product(item.extent for item in loop.ranges) % evaluator.sym(wave, loop.env)).is_zero
