"""The loop over slices of K around an ``mma``: it must take the whole depth of the tiles in L1, in order, once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.comparisons import is_all_but_last
from tl2npu.kernel.expressions import Evaluator
from tl2npu.kernel.flow import Flow
from tl2npu.kernel.model import Dim, Let, Loop, Range, Scalar, Stmt
from tl2npu.kernel.ranges.reach import conjuncts
from tl2npu.kernel.symbolic import Sym, ceildiv, var
from tl2npu.passes.ascend.mma.numbers import Numbers
from tl2npu.passes.ascend.mma.staging import Product, Staged

Init = cst.BaseExpression | None


@dataclass(frozen=True, eq=False)
class Slices:
    """``loop`` takes the tiles in slices of ``width``; it is None where the mma takes them whole.

    ``init``: the argument of the whole product, None for none; ``rest``: the last slice has tiles of its own.
    """

    product: Product
    loop: Loop | None
    width: Sym | None
    init: Init
    rest: tuple[Staged, Staged] | None = None


def of(flow: Flow, product: Product, evaluator: Evaluator, numbers: Numbers) -> Slices:
    """How a product is cut into slices; raises :class:`Blocked` where it does not take its tiles in order and once."""
    found = [_depth(staged) for staged in (product.left, product.right)]
    init = product.mma.args.get("init")
    text = init.node if isinstance(init, Scalar) else None
    for staged in product.loads:
        _check_width(staged, numbers)
    if all(dim is None for dim in found):
        if product.other is not None:
            raise Blocked("TL323", product.mma.node, "the tiles of this mma depend on a condition")
        return Slices(product, None, None, text)
    left, right = found
    if left is None or right is None or left.lo != right.lo:
        raise Blocked("TL324", product.mma.node, "the two operands of this mma are different slices of K")
    loop, item = _loop(flow, product, left.lo)
    width = product.left.load.dst.buffer.shape[-1 if product.left.load.dst.buffer.memory.value == "L0A" else -2]
    if left.lo != item.var * width:
        raise Blocked("TL324", product.left.load.node, "the slices of K are not consecutive")
    _check_alone(loop, product)
    if product.other is None:
        for staged in product.loads:
            _check_complete(item.extent, width, staged, numbers)
        return Slices(product, loop, width, _without(text, item, product, evaluator, _counters(flow, product)))
    rest = _last(product, item, width, numbers)
    return Slices(product, loop, width, _without(text, item, product, evaluator, _counters(flow, product)), rest)


def _depth(staged: Staged) -> Dim | None:
    """The slice of K that a load takes, None for the whole depth."""
    source = staged.source
    if source.dims is None:
        return None
    dim, size = source.dims[staged.depth_axis], source.buffer.shape[staged.depth_axis]
    return None if dim.lo.is_zero and (dim.extent == size or (dim.extent is None and _extent(staged) == size)) else dim


def _extent(staged: Staged) -> Sym:
    """How much of K the tile in L0 holds."""
    inner = staged.load.dst.buffer
    return inner.shape[-1 if inner.memory.value == "L0A" else -2]


def _check_width(staged: Staged, numbers: Numbers) -> None:
    """The other axis of the tile must be taken whole."""
    source, inner = staged.source, staged.load.dst.buffer
    axis = -3 - staged.depth_axis
    size = source.buffer.shape[axis]
    other = inner.shape[-2 if inner.memory.value == "L0A" else -1]
    if not numbers.same(other, size):
        text = f"`{source.buffer.name}` has {size} outside of K, but `{inner.name}` has {other}"
        raise Blocked("TL327", staged.load.node, text)
    if source.dims is None:
        return
    dim = source.dims[axis]
    if not dim.lo.is_zero or (dim.extent is not None and dim.extent != size):
        raise Blocked("TL324", staged.load.node, f"this load reads only a part of the width of `{source.buffer.name}`")


def _loop(flow: Flow, product: Product, lo: Sym) -> tuple[Loop, Range]:
    loops = flow.loops(product.mma)
    loop = loops[-1] if loops else None
    item = loop.ranges[0] if loop is not None and len(loop.ranges) == 1 else None
    if loop is None or item is None or not all(lo.depends_on(v) for v in item.var.variables()):
        raise Blocked("TL324", product.mma.node, "this mma uses one slice of its tiles, and no loop covers the others")
    if not item.start.is_zero or loop.kind not in ("serial", "unroll", "pipelined"):
        raise Blocked("TL324", loop.node, "a loop over slices must start at 0 with step 1")
    if loop.via or loop not in flow.parents[product.mma]:
        raise Blocked("TL324", loop.node, "the loop over slices is in a macro")
    return loop, item


def _check_alone(loop: Loop, product: Product) -> None:
    """Nothing but this product may happen in the loop: what else it did would run once instead of once a slice."""
    known: list[Stmt] = [product.mma, *(s.load for s in product.loads), *(s.branch for s in product.loads if s.branch)]
    for stmt in loop.body:
        if stmt in known or isinstance(stmt, Let):
            continue
        raise Blocked(
            "TL326",
            stmt.node,
            "this statement runs for every slice of K; with gemm_v0 the product is complete only after the loop",
        )


def _check_complete(count: Sym, width: Sym, staged: Staged, numbers: Numbers) -> None:
    size = staged.source.buffer.shape[staged.depth_axis]
    if count not in (ceildiv(size, width), size // width) and not numbers.same(count * width, size):
        text = f"cannot prove that the slices of K cover all of `{staged.source.buffer.name}`"
        raise Blocked("TL324", staged.load.node, text)


def _last(product: Product, item: Range, width: Sym, numbers: Numbers) -> tuple[Staged, Staged]:
    """The arm of the last slice: ``if kk < extent - 1`` takes slices of one pair of tiles, the last has its own."""
    branch = product.left.branch
    assert branch is not None
    assert product.other is not None
    if not is_all_but_last(branch.cond.sym, item.var, item.extent):
        raise Blocked("TL323", branch.node, "loads may only have the condition `all slices but the last`")
    for staged in (product.left, product.right):
        _check_complete(item.extent - 1, width, staged, numbers)
    for staged in product.other:
        size = staged.source.buffer.shape[staged.depth_axis]
        if _depth(staged) is not None or not numbers.same(size, width):
            text = f"the last slice of `{staged.source.buffer.name}` must be {width} deep like the others"
            raise Blocked("TL324", staged.load.node, text)
    return product.other


def _counters(flow: Flow, product: Product) -> frozenset[str]:
    """The variables of the loops around a product that are never negative."""
    around = (item for loop in flow.loops(product.mma) for item in loop.ranges)
    upwards = (item for item in around if item.start.is_zero and (item.step is None or (item.step.constant or 0) > 0))
    return frozenset(name for item in upwards for name in item.var.variables())


def _without(init: Init, item: Range, product: Product, evaluator: Evaluator, counters: frozenset[str]) -> Init:
    """The condition without its part ``this is the first slice``; None for True where nothing else was asked."""
    env = product.mma.env
    if init is None:
        return None
    value = evaluator.sym(init, env)
    if value.constant == 0:
        return init
    if value.constant == 1:
        raise Blocked("TL325", product.mma.node, "every slice clears the accumulator: only the last one would count")
    kept = _Condition(evaluator, item, product, counters).kept(init)
    if kept is None:
        raise Blocked("TL325", product.mma.node, "`init` is not true in the first slice only")
    return kept


@dataclass(frozen=True)
class _Condition:
    evaluator: Evaluator
    item: Range
    product: Product
    counters: frozenset[str]

    def kept(self, node: cst.BaseExpression) -> cst.BaseExpression | None:
        """What is left of a condition when ``first slice`` is taken as true; None if it does not imply that."""
        parts = list(conjuncts(self.evaluator, node))
        if len(parts) == 1:
            return self._single(node)
        rest: list[cst.BaseExpression] = []
        implied = False
        for part in parts:
            left = self._single(part)
            if left is None:
                rest.append(part)
            else:
                implied = True
                if self._constant(left) != 1:
                    rest.append(left)
        if not implied or any(self._moves(part) for part in rest):
            return None
        if not rest:
            return cst.Name("True")
        return rest[0] if len(rest) == 1 else self._joined(node, parts, rest)

    def _joined(
        self, node: cst.BaseExpression, parts: Sequence[cst.BaseExpression], rest: Sequence[cst.BaseExpression]
    ) -> cst.BaseExpression | None:
        if isinstance(node, cst.Call) and len(rest) == len(parts) == 2:
            return node.with_changes(
                args=[arg.with_changes(value=value) for arg, value in zip(node.args, rest, strict=True)]
            )
        return None

    def _single(self, node: cst.BaseExpression) -> cst.BaseExpression | None:
        """``kk == 0`` -> True; ``k * slices + kk == 0``, ``k + kk == 0`` -> ``k == 0``; None for anything else."""
        if not isinstance(node, cst.Comparison) or len(node.comparisons) != 1:
            return None
        target = node.comparisons[0]
        env = self.product.mma.env
        if not isinstance(target.operator, cst.Equal):
            return None
        gap = self.evaluator.sym(node.left, env) - self.evaluator.sym(target.comparator, env)
        if gap in (self.item.var, -self.item.var):
            return cst.Name("True")
        for outer in (gap - self.item.var, -gap - self.item.var):
            name = next((name for name in sorted(outer.variables()) if self._is_zero_with(outer, name)), None)
            if name is not None:
                return cst.parse_expression(f"{name.split('@')[0]} == 0")
        return None

    def _is_zero_with(self, outer: Sym, name: str) -> bool:
        """``outer``, of which nothing but ``-kk`` could make the sum with ``kk`` zero, is zero where the name is."""
        if outer == var(name) * self.item.extent:
            return True
        factor = (outer // var(name)).constant
        return name in self.counters and factor is not None and factor > 0 and outer == var(name) * factor

    def _constant(self, node: cst.BaseExpression) -> int | None:
        env = self.product.mma.env
        return self.evaluator.sym(node, env).constant

    def _moves(self, node: cst.BaseExpression) -> bool:
        env = self.product.mma.env
        value = self.evaluator.sym(node, env)
        return any(value.depends_on(v) for v in self.item.var.variables())
