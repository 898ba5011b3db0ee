"""Where the extents of an eager kernel come from: axes of its tensors, and what the host code says of those."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.bindings import assigned_names, element_pairs
from tl2npu.passes.eager.kernel import Plan
from tl2npu.source.index import Index
from tl2npu.source.tree import argument, children

_MAKERS = frozenset({"randn", "rand", "zeros", "ones", "empty"})
_SAME_SHAPE = frozenset(
    "cuda npu cpu half float bfloat16 double to contiguous clone detach requires_grad_ type normal_ uniform_ random_ "
    "zero_ fill_ abs relu int long bool".split()
)


@dataclass(frozen=True)
class Axis:
    """An axis of an input tensor that is an extent: always, or where the parameter ``when`` is true or false."""

    tensor: str
    axis: int
    when: str | None = None
    holds: bool = True


def axes_of(plan: Plan) -> dict[str, list[Axis]]:
    """Extent -> the axes of input tensors that are exactly it, in the order of the signature."""
    bound = _bound_once(plan)
    found: dict[str, list[Axis]] = {}
    for item in plan.inputs:
        for when, holds, sizes in _shapes(_shape(item.annotation), bound, plan):
            for axis, size in enumerate(sizes):
                name = size.value if isinstance(size, cst.Name) else ""
                other = bound.get(name)
                name = other.value if isinstance(other, cst.Name) else name  # `KH, KW = K, K`
                if name in plan.consts:
                    found.setdefault(name, []).append(Axis(item.name, axis, when, holds))
    return found


def choice(axes: Sequence[Axis]) -> tuple[Axis, Axis] | None:
    """Two axes of one tensor of which a parameter says which it is: where it holds, where not."""
    for first in axes:
        for second in axes:
            same = (first.tensor, first.when) == (second.tensor, second.when)
            if first.when is not None and same and first.holds and not second.holds:
                return first, second
    return None


def is_told(axes: Sequence[Axis] | None) -> bool:
    """True if the tensors tell an extent whatever the other arguments are."""
    return axes is not None and (any(axis.when is None for axis in axes) or choice(axes) is not None)


def _bound_once(plan: Plan) -> dict[str, cst.BaseExpression]:
    """What the factory's names stand for, where they are bound once: ``q_shape = [batch, seq_len, heads, dim]``."""
    found: dict[str, cst.BaseExpression] = {}
    bound = [name for line in plan.factory_lines for name in assigned_names(line)]
    for line in plan.factory_lines:
        small = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
        if not isinstance(small, cst.Assign) or len(small.targets) != 1:
            continue
        target = small.targets[0].target
        for name, value in element_pairs(target, small.value) or [(target, small.value)]:
            if isinstance(name, cst.Name) and bound.count(name.value) == 1:
                found[name.value] = value
    return found


def _shape(annotation: cst.BaseExpression) -> cst.BaseExpression | None:
    """The shape that a declaration gives."""
    if isinstance(annotation, cst.Call) and annotation.args:
        return argument(annotation, "shape") or annotation.args[0].value
    if isinstance(annotation, cst.Subscript) and isinstance(annotation.slice[0].slice, cst.Index):
        return annotation.slice[0].slice.value
    return None


def _shapes(
    shape: cst.BaseExpression | None, bound: Mapping[str, cst.BaseExpression], plan: Plan
) -> Iterator[tuple[str | None, bool, list[cst.BaseExpression]]]:
    """The extents of a shape, with the condition under which it has them: ``[N, K] if transposed else [K, N]``."""
    if isinstance(shape, cst.Name) and isinstance(
        known := bound.get(shape.value), (cst.List, cst.Tuple, cst.IfExp, cst.BinaryOperation)
    ):
        shape = known
    if isinstance(shape, cst.Name):
        yield None, True, [shape]
    elif isinstance(shape, (cst.List, cst.Tuple)):
        yield None, True, [element.value for element in shape.elements]
    elif isinstance(shape, cst.IfExp):
        test, holds = shape.test, True
        if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
            test, holds = test.expression, False
        configs = {param.name.value for param in plan.configs}
        if isinstance(test, cst.Name) and test.value in configs:
            for side, branch in ((holds, shape.body), (not holds, shape.orelse)):
                if isinstance(branch, (cst.List, cst.Tuple)):
                    yield test.value, side, [element.value for element in branch.elements]


class Hosts:
    """What host code says of the shapes of its tensors."""

    def __init__(self, index: Index) -> None:
        self.index = index

    def shape(self, tensor: cst.BaseExpression, axis: int) -> cst.BaseExpression | None:
        """``a.shape[0]`` for a tensor that may be named twice; None where that would compute something twice."""
        while isinstance(tensor, cst.Call) and isinstance(tensor.func, cst.Attribute):
            if tensor.func.attr.value not in _SAME_SHAPE:
                return None
            tensor = tensor.func.value
        plain = tensor
        while isinstance(plain, (cst.Attribute, cst.Subscript)):
            plain = plain.value
        if not isinstance(plain, cst.Name):
            return None
        return cst.Subscript(
            cst.Attribute(tensor.deep_clone().with_changes(lpar=(), rpar=()), cst.Name("shape")),
            [cst.SubscriptElement(cst.Index(cst.Integer(str(axis))))],
        )

    def extent(self, tensor: cst.BaseExpression, axis: int, at: cst.CSTNode) -> cst.BaseExpression | None:
        """The name or number that an axis certainly is: ``M`` where ``a = torch.randn(M, K)``."""
        scope = self.index.enclosing(at, cst.FunctionDef) or self.index.module
        dims = self._dims(tensor, scope, at)
        if dims is None or not axis < len(dims):
            return None
        size = dims[axis]
        if isinstance(size, cst.Integer):
            return size.with_changes(lpar=(), rpar=())
        if isinstance(size, cst.Name) and self._is_fixed(size.value, scope):
            return cst.Name(size.value)
        return None

    def _dims(
        self, tensor: cst.BaseExpression, scope: cst.FunctionDef | cst.Module, at: cst.CSTNode
    ) -> list[cst.BaseExpression] | None:
        """The extents of a tensor expression, as written where it is made."""
        while isinstance(tensor, cst.Call) and isinstance(tensor.func, cst.Attribute):
            method = tensor.func.attr.value
            owner = tensor.func.value
            if isinstance(owner, cst.Name) and owner.value == "torch" and method in _MAKERS:
                return _extents_of(tensor.args)
            if method in ("view", "reshape"):
                return _extents_of(tensor.args)
            if method not in _SAME_SHAPE:
                return None
            tensor = owner
        if not isinstance(tensor, cst.Name):
            return None
        values = list(_values(scope, tensor.value))
        if len(values) != 1 or values[0] is None or _bindings(scope, tensor.value) != 1:
            return None
        made = values[0]
        if isinstance(made, cst.Name):  # one name for another: looked up no further
            return None
        return self._dims(made, scope, at)

    def _is_fixed(self, name: str, scope: cst.FunctionDef | cst.Module) -> bool:
        """Bound once where it is seen, so that it still has the value that the tensor was made with."""
        here = _bindings(scope, name)
        if here or isinstance(scope, cst.Module):
            return here == 1
        outer: cst.FunctionDef | cst.Module = self.index.enclosing(scope, cst.FunctionDef) or self.index.module
        return self._is_fixed(name, outer)


def _extents_of(args: Sequence[cst.Arg]) -> list[cst.BaseExpression] | None:
    plain = [arg for arg in args if arg.keyword is None]
    if any(arg.star for arg in plain):
        return None
    if len(plain) == 1 and isinstance(plain[0].value, (cst.Tuple, cst.List)):
        return [element.value for element in plain[0].value.elements]
    return [arg.value for arg in plain]


def _bindings(scope: cst.FunctionDef | cst.Module, name: str) -> int:
    """How often a scope binds a name; a binding in a loop counts twice."""
    params = scope.params if isinstance(scope, cst.FunctionDef) else cst.Parameters()
    given = [*params.posonly_params, *params.params, *params.kwonly_params, params.star_arg, params.star_kwarg]
    count = sum(isinstance(param, cst.Param) and param.name.value == name for param in given)
    body = scope.body.body if isinstance(scope, cst.FunctionDef) else scope.body
    return count + sum(_bound(statement, name) for statement in body)


def _bound(node: cst.CSTNode, name: str) -> int:
    if isinstance(node, (cst.FunctionDef, cst.ClassDef)):
        return int(node.name.value == name)
    if isinstance(node, (cst.For, cst.While)):
        return 2 * int(name in assigned_names(node))
    if isinstance(node, (cst.If, cst.Else, cst.With, cst.Try, cst.IndentedBlock, cst.Finally, cst.ExceptHandler)):
        heads = [c for c in children(node) if not isinstance(c, (cst.BaseSuite, cst.Else, cst.If))]
        tails = [c for c in children(node) if isinstance(c, (cst.BaseSuite, cst.Else, cst.If))]
        if isinstance(node, cst.IndentedBlock):
            return sum(_bound(child, name) for child in node.body)
        return sum(int(name in assigned_names(head)) for head in heads) + sum(_bound(tail, name) for tail in tails)
    if isinstance(node, cst.SimpleStatementLine):
        return sum(int(name in assigned_names(small)) for small in node.body)
    return int(name in assigned_names(node))


def _values(node: cst.CSTNode, name: str) -> Iterator[cst.BaseExpression | None]:
    """What a scope assigns to a name; None for an assignment that is not plain."""
    for child in children(node):
        if isinstance(child, cst.Assign):
            for target in child.targets:
                if isinstance(target.target, cst.Name) and target.target.value == name:
                    yield child.value
                elif name in assigned_names(cst.Assign([target], child.value)):
                    yield None
        elif not isinstance(child, (cst.FunctionDef, cst.ClassDef, cst.Lambda, cst.BaseExpression)):
            yield from _values(child, name)
