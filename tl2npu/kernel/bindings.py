"""What plain assignments bind: names of the module, the factory and the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import libcst as cst

from tl2npu.kernel.environment import Closure, Env, Helper, Static, Value
from tl2npu.kernel.expressions import Evaluator
from tl2npu.kernel.model import Buffer
from tl2npu.kernel.symbolic import Sym
from tl2npu.source.tree import SubclassesOf, children, nodes_of, remembered

_IS_BLOCK = SubclassesOf(cst.BaseStatement, cst.BaseSuite)
_BINDS = SubclassesOf(
    cst.FunctionDef, cst.ClassDef, cst.Assign, cst.AnnAssign, cst.AugAssign, cst.For, cst.NamedExpr, cst.AsName
)

_BINDS_IN_LINES: tuple[type[cst.CSTNode], ...] = (cst.Assign, cst.AnnAssign, cst.AugAssign, cst.AsName)


def assigned_names(node: cst.CSTNode) -> AbstractSet[str]:
    """Names that a statement binds anywhere inside it (not inside nested functions)."""
    return _assigned_in_block(node) if _IS_BLOCK[type(node)] else _assigned(node)


@remembered
def _assigned_in_block(node: cst.CSTNode) -> frozenset[str]:
    if type(node) is cst.SimpleStatementLine and not nodes_of(node, cst.NamedExpr):
        return frozenset(name for part in nodes_of(node, *_BINDS_IN_LINES) for name in _bound_by(part))
    return frozenset(_assigned(node))


def _assigned(node: cst.CSTNode) -> set[str]:
    kind = type(node)
    found: set[str] = set()
    if _BINDS[kind]:
        if type(node) is cst.FunctionDef or type(node) is cst.ClassDef:
            return {node.name.value}
        found = _bound_by(node)
    for child in children(node):
        if type(child) is not cst.Call and type(child) is not cst.Name:
            found |= assigned_names(child)
    return found


def _bound_by(node: cst.CSTNode) -> set[str]:
    """Names that an assignment, a loop or an ``as`` binds itself."""
    if type(node) is cst.AsName:
        return target_names(node.name)
    if type(node) is cst.Assign:
        return {name for item in node.targets for name in target_names(item.target)}
    assert isinstance(node, (cst.AnnAssign, cst.AugAssign, cst.For, cst.NamedExpr))
    return target_names(node.target)


def target_names(target: cst.CSTNode) -> set[str]:
    if type(target) is cst.Name:
        return {target.value}
    if type(target) is cst.Tuple or type(target) is cst.List:
        return {name for item in target.elements for name in target_names(item.value)}
    if type(target) is cst.StarredElement:
        return target_names(target.value)
    return set()


def element_pairs(
    target: cst.BaseExpression, value: cst.BaseExpression
) -> list[tuple[cst.BaseExpression, cst.BaseExpression]] | None:
    """The single assignments of ``a, b = x, y``; None for anything else."""
    if not (type(target) is cst.Tuple or type(target) is cst.List):
        return None
    if not (type(value) is cst.Tuple or type(value) is cst.List):
        return None
    if len(target.elements) != len(value.elements):
        return None
    if any(type(item) is cst.StarredElement for item in (*target.elements, *value.elements)):
        return None
    return [(left.value, right.value) for left, right in zip(target.elements, value.elements, strict=True)]


def single_assignments(
    target: cst.BaseExpression, value: cst.BaseExpression
) -> list[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """``target = value`` taken apart as far as it can be; they all happen at once."""
    pairs = element_pairs(target, value)
    if pairs is None:
        return [(target, value)]
    return [single for left, right in pairs for single in single_assignments(left, right)]


def body_of(node: cst.FunctionDef | cst.With | cst.For | cst.If | cst.Else | cst.While) -> Sequence[cst.CSTNode]:
    """The statements of a compound statement, also of a one-line suite."""
    return node.body.body


def bind_static(statements: Sequence[cst.CSTNode], env: Env, evaluator: Evaluator) -> None:
    """Bind what module or factory code assigns, in order; names changed under conditions or loops become unknown."""
    for statement in statements:
        if type(statement) is cst.SimpleStatementLine:
            for small in statement.body:
                _bind_small(small, env, evaluator)
        elif type(statement) is cst.FunctionDef:
            env.values[statement.name.value] = Helper(statement, env)
        elif isinstance(statement, cst.BaseCompoundStatement):
            for name in assigned_names(statement):
                env.values[name] = env.unknown(name)


def _bind_small(small: cst.CSTNode, env: Env, evaluator: Evaluator) -> None:
    if type(small) is cst.AnnAssign and small.value is not None:
        _bind_target(small.target, small.value, env, evaluator)
    elif type(small) is cst.Assign:
        for target in small.targets:
            _bind_target(target.target, small.value, env, evaluator)
    else:
        for name in assigned_names(small):
            env.values[name] = env.unknown(name)


def _bind_target(target: cst.BaseExpression, value: cst.BaseExpression, env: Env, evaluator: Evaluator) -> None:
    pairs = single_assignments(target, value)
    bound = [value_of(left.value, right, env, evaluator) if type(left) is cst.Name else None for left, right in pairs]
    for (left, _), found in zip(pairs, bound, strict=True):  # every value is taken before any name is bound
        for name in target_names(left):
            env.values[name] = found if found is not None else env.unknown(name)


@remembered
def _function_of(node: cst.Lambda) -> cst.FunctionDef:
    """A lambda as a function without a name of its own."""
    body = cst.IndentedBlock([cst.SimpleStatementLine([cst.Return(node.body)])])
    return cst.FunctionDef(cst.Name("lambda_"), node.params, body)


def value_of(name: str, node: cst.BaseExpression, env: Env, evaluator: Evaluator) -> Value:
    """What ``name = node`` binds: a static Python value, integer arithmetic, or the name itself as an unknown."""
    if type(node) is cst.Name:
        known = env.lookup(node.value)
        if isinstance(known, (Buffer, Static, Helper)):
            return known
    static = evaluator.static(node, env)
    if static is not None:
        return Static(static)
    added = type(node) is cst.BinaryOperation and type(node.operator) is cst.Add
    if type(node) is cst.Tuple or type(node) is cst.List or (added and len(evaluator.sequence(node, env)) > 1):
        return Closure(node, env)
    if type(node) is cst.Lambda:
        return Helper(_function_of(node), env)
    sym = evaluator.sym(node, env)
    return sym if is_arithmetic(sym) else env.unknown(name)


def is_arithmetic(sym: Sym) -> bool:
    """True if nothing in it is opaque text (so that substituting it for a name loses nothing)."""
    return sym.plain or not any(getattr(atom, "head", "").startswith(("text ", "load ")) for atom in sym.atoms())


def has_return(node: cst.CSTNode) -> bool:
    """True if a statement returns from the function that it stands in."""
    if type(node) is cst.Return:
        return True
    return any(has_return(c) for c in children(node) if not isinstance(c, (cst.FunctionDef, cst.BaseExpression)))
