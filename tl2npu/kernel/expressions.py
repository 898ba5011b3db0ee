"""Expressions of the source as symbolic integers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import libcst as cst

from tl2npu.kernel.comparisons import compared, negated
from tl2npu.kernel.element_types import plain
from tl2npu.kernel.environment import Closure, Env, Static
from tl2npu.kernel.model import Buffer, Dim, Operand, Scalar
from tl2npu.kernel.sizes import ITEM_SIZE
from tl2npu.kernel.symbolic import Sym, ceildiv, const, opaque, var
from tl2npu.source.brackets import one_piece
from tl2npu.source.literals import number_of, text_of
from tl2npu.source.names import Names
from tl2npu.source.tree import SubclassesOf, children, names_in, remembered

_EMPTY = cst.Module(body=())
_IS_EXPRESSION_PART = SubclassesOf(
    cst.BaseExpression, cst.Arg, cst.ComparisonTarget, cst.Element, cst.SubscriptElement, cst.Index, cst.Slice
)


_WITHOUT_ELEMENTS = frozenset((Sym, Static, type(None)))
"""What a name may stand for that is no element of a buffer, and no expression in which one may be."""


def code(node: cst.CSTNode) -> str:
    """The text of a node."""
    return node.value if type(node) is cst.Name and not node.lpar else _code(node)


def one_line(node: cst.CSTNode) -> str:
    """The text of a node without its line breaks."""
    return " ".join(code(node).split())


@remembered
def _code(node: cst.CSTNode) -> str:
    plain = _plain_text(node)  # most texts that are asked for are `T.float16`, `64`, `"float"`
    return one_piece(node, _EMPTY.code_for_node(node)) if plain is None else plain


def _plain_text(node: cst.CSTNode) -> str | None:
    """The text of a name, a number or a string, with dots between; None for anything else."""
    if type(node) is cst.Attribute:
        closed = node.dot.whitespace_before.empty and node.dot.whitespace_after.empty and not node.attr.lpar
        value = _plain_text(node.value) if closed and not node.lpar else None
        return None if value is None else f"{value}.{node.attr.value}"
    if type(node) is cst.Name or type(node) is cst.Integer or type(node) is cst.SimpleString or type(node) is cst.Float:
        return None if node.lpar else node.value
    return None


def without_parentheses(node: cst.BaseExpression) -> cst.BaseExpression:
    """An expression without its own outer parentheses; ``()``, which is nothing without them, stays."""
    if not node.lpar or (isinstance(node, cst.Tuple) and not node.elements):
        return node
    return node.with_changes(lpar=(), rpar=())


@remembered
def unparenthesised(node: cst.BaseExpression) -> str:
    """The text of an expression without its own outer parentheses."""
    return code(without_parentheses(node))


def conjuncts_of(test: cst.BaseExpression, by: type[cst.BaseBooleanOp] = cst.And) -> list[cst.BaseExpression]:
    """The conditions that ``and`` joins (or ``by``), as they are written; of anything else that itself."""
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, by):
        return [*conjuncts_of(test.left, by), *conjuncts_of(test.right, by)]
    return [test]


def terms_of(node: cst.BaseExpression, sign: int = 1) -> Iterator[tuple[cst.BaseExpression, int]]:
    """The terms of a sum, with their signs."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.Add, cst.Subtract)):
        yield from terms_of(node.left, sign)
        yield from terms_of(node.right, sign if isinstance(node.operator, cst.Add) else -sign)
    else:
        yield node, sign


def where_installed(value: cst.BaseExpression) -> cst.BaseExpression:
    """The value, or that of ``value if condition else None``: None is never called, nor the type of an element."""
    if type(value) is cst.IfExp and type(value.orelse) is cst.Name and value.orelse.value == "None":
        return value.body
    return value


class Evaluator:
    """Turns expressions into :class:`Sym`, operands and scalars. One per file."""

    def __init__(self, names: Names) -> None:
        self.names = names

    def static(self, node: cst.BaseExpression, env: Env) -> object | None:
        """A string, float or bool that the expression certainly has; None if unknown."""
        if type(node) is cst.Name:
            if node.value in ("True", "False"):
                return node.value == "True"
            value = env.lookup(node.value)
            if isinstance(value, Static):
                return value.value
            if isinstance(value, Closure):
                return self.static(value.node, value.env)
            return None
        if type(node) is cst.SimpleString:
            return text_of(node)
        if type(node) is cst.Float:
            return number_of(node)
        return None

    def number(self, node: cst.BaseExpression, env: Env) -> float | None:
        """The value of an integer or a float that is a constant of the file."""
        found = self.static(node, env)
        return found if isinstance(found, float) else self.sym(node, env).constant

    def sequence(self, node: cst.BaseExpression, env: Env) -> tuple[tuple[cst.BaseExpression, Env], ...]:
        """The items of a tuple or list, of two in a row, or of a choice, also behind a name or a star; else the node.

        A star before what is no tuple or list that is written out stays, with an unknown number of items.
        """
        if type(node) is cst.Name:
            value = env.lookup(node.value)
            if isinstance(value, Closure):
                return self.sequence(value.node, value.env)
        elif type(node) is cst.Tuple or type(node) is cst.List:
            return tuple(found for item in node.elements for found in self._items(item, env))
        elif type(node) is cst.BinaryOperation and type(node.operator) is cst.Add:
            sides = [(side, self.sequence(side, env)) for side in (node.left, node.right)]
            if all([item for item, _ in found] != [side] for side, found in sides):
                return (*sides[0][1], *sides[1][1])
        elif type(node) is cst.IfExp:
            arms = [self.sequence(arm, env) for arm in (node.body, node.orelse)]
            pairs = list(zip(*arms, strict=False)) if len(arms[0]) == len(arms[1]) > 1 else []
            if pairs and all(item_env is env for pair in pairs for _, item_env in pair):
                return tuple((_chosen(node, left, right), env) for (left, _), (right, _) in pairs)
        return ((node, env),)

    def _items(self, item: cst.BaseElement, env: Env) -> tuple[tuple[cst.BaseExpression, Env], ...]:
        if not isinstance(item, cst.StarredElement):
            return ((item.value, env),)
        found = self.sequence(item.value, env)
        return ((item, env),) if [node for node, _ in found] == [item.value] else found

    def dtype(self, node: cst.BaseExpression, env: Env) -> str:
        """An element type by its one name (``float32`` for ``"float"``) if it is known, else the source."""
        node = where_installed(node)
        value = self.static(node, env)
        if isinstance(value, str):
            return plain(value)
        exported = self.names.operator(node)
        return plain(exported.rsplit(".", 1)[-1]) if exported else code(node)

    def sym(self, node: cst.BaseExpression, env: Env) -> Sym:
        """The expression as a symbolic integer; what is no integer arithmetic becomes opaque."""
        kind = type(node)
        if kind is cst.Name:
            return self._name(cast("cst.Name", node), env)
        if kind is cst.Integer:
            return const(int(cast("cst.Integer", node).value.replace("_", ""), 0))
        if kind is cst.BinaryOperation:
            return self._binary(cast("cst.BinaryOperation", node), env)
        if kind is cst.Call:
            return self._call(cast("cst.Call", node), env)
        if type(node) is cst.UnaryOperation:
            inner = self.sym(node.expression, env)
            if isinstance(node.operator, cst.Minus):
                return -inner
            if isinstance(node.operator, cst.Plus):
                return inner
            return negated(inner) if isinstance(node.operator, cst.Not) else opaque(type(node.operator).__name__, inner)
        if type(node) is cst.Attribute:
            bits = self._bits(node.value, env) if node.attr.value == "bits" else None
            return var(code(node).replace(" ", "")) if bits is None else const(bits)
        if type(node) is cst.Subscript:
            operand = self.operand(node, env)
            if operand is not None and operand.dims is not None:
                return opaque(f"load {operand.buffer.name}", *(dim.lo for dim in operand.dims))
        if type(node) is cst.Comparison and len(node.comparisons) == 1:
            target = node.comparisons[0]
            return compared(type(target.operator).__name__, self.sym(node.left, env), self.sym(target.comparator, env))
        return self._opaque(node, env)

    def _bits(self, node: cst.BaseExpression, env: Env) -> int | None:
        """The bits of an element, of ``DataType(dtype)`` or a name for it, where the type is known."""
        value = env.lookup(node.value) if type(node) is cst.Name else None
        if isinstance(value, Closure):
            return self._bits(value.node, value.env)
        if type(node) is not cst.Call or len(node.args) != 1:
            return None
        module, _, name = (self.names.resolve(node.func) or "").rpartition(".")
        if name not in ("DataType", "dtype") or module.partition(".")[0] not in ("tilelang", "tvm"):
            return None
        size = ITEM_SIZE.get(self.dtype(node.args[0].value, env))
        return None if size is None else 8 * size

    def _name(self, node: cst.Name, env: Env) -> Sym:
        value = env.lookup(node.value)
        if type(value) is Sym:
            return value
        if isinstance(value, Closure):
            return self.sym(value.node, value.env)
        if isinstance(value, Static) and isinstance(value.value, bool):
            return const(int(value.value))
        if node.value in ("True", "False"):
            return const(int(node.value == "True"))
        return var(node.value)

    def _binary(self, node: cst.BinaryOperation, env: Env) -> Sym:
        left, right = self.sym(node.left, env), self.sym(node.right, env)
        operator = node.operator
        kind = type(operator)
        if kind is cst.Add:
            return left + right
        if kind is cst.Subtract:
            return left - right
        if kind is cst.Multiply:
            return left * right
        amount = right.constant
        if amount is not None and amount >= 0:
            if kind is cst.LeftShift and amount < 64:
                return left * (1 << amount)
            if kind is cst.RightShift and amount < 64:
                return left // (1 << amount)
        if kind is cst.BitAnd and amount is not None and amount > 0 and amount & (amount + 1) == 0:
            return left % (amount + 1)
        if (kind is cst.FloorDivide or kind is cst.Modulo) and not right.is_zero:
            return left // right if kind is cst.FloorDivide else left % right
        return opaque(type(operator).__name__, left, right)

    def _call(self, node: cst.Call, env: Env) -> Sym:
        args = [arg.value for arg in node.args if arg.keyword is None and not arg.star]
        name = self.names.resolve(node.func) or ""
        bare = node.func.value if type(node.func) is cst.Name else ""
        short = name.rsplit(".", 1)[-1] if name.startswith("tilelang.") else ""
        if bare and not short and env.lookup(bare) is None:
            short = {"min": "min", "max": "max", "int": "int", "abs": "abs"}.get(bare, "")
        syms = [self.sym(arg, env) for arg in args]
        if len(args) == len(node.args) == 2 and not syms[1].is_zero:
            if short in ("ceildiv", "cdiv"):
                return ceildiv(*syms)
            if short == "floordiv":
                return syms[0] // syms[1]
            if short == "floormod":
                return syms[0] % syms[1]
        if len(args) == len(node.args) and short in ("min", "max") and args:
            unique = sorted(set(syms), key=str)
            values = [value.constant for value in unique]
            if len(unique) == 1:
                return unique[0]
            if all(value is not None for value in values):
                pick = min if short == "min" else max
                return const(pick(value for value in values if value is not None))
            return opaque(short, *unique)
        if len(args) == 1 and short in ("int", "int32", "int64"):
            inner = args[0]
            if isinstance(inner, cst.BinaryOperation) and isinstance(inner.operator, cst.Divide):
                right = self.sym(inner.right, env)
                if not right.is_zero:
                    # int(a / b) truncates; extents are never negative, so it is the floor
                    return self.sym(inner.left, env) // right
            return syms[0]
        return self._opaque(node, env)

    def _opaque(self, node: cst.BaseExpression, env: Env) -> Sym:
        """Only equal to itself, but known to depend on every name in it."""
        return opaque("text " + unparenthesised(node), *(self._name(name, env) for name in _distinct_names(node)))

    def buffer(self, node: cst.BaseExpression, env: Env) -> Buffer | None:
        """The buffer that a name stands for, through macro parameters and aliases."""
        if type(node) is not cst.Name:
            return None
        value = env.lookup(node.value)
        if type(value) is Buffer:
            return value
        if type(value) is Closure:
            return self.buffer(value.node, value.env)
        return None

    def operand(self, node: cst.BaseExpression, env: Env) -> Operand | None:
        """A whole buffer or an indexed one; None if the expression is no buffer."""
        if type(node) is cst.Name:
            value = env.lookup(node.value)
            if type(value) is Closure:
                return self.operand(value.node, value.env)
            return Operand(value, None, node) if type(value) is Buffer else None
        if type(node) is cst.Subscript:
            base = self.buffer(node.value, env)
            if base is None:
                return None
            indices: list[cst.BaseSlice] = []
            for element in node.slice:
                index = element.slice
                if type(index) is cst.Index and type(index.value) is cst.Tuple:
                    indices += [cst.Index(item.value) for item in index.value.elements]
                else:
                    indices.append(index)
            dims = tuple(self._dim(base, i, index, env) for i, index in enumerate(indices))
            return Operand(base, dims, node)
        return None

    def _dim(self, base: Buffer, axis: int, index: cst.BaseSlice, env: Env) -> Dim:
        if type(index) is cst.Index:
            return Dim(self.sym(index.value, env), None, index.value, self.loads(index.value, env))
        assert isinstance(index, cst.Slice)
        size = base.shape[axis] if axis < len(base.shape) else var(f"{base.name}.shape[{axis}]")
        lo = self.sym(index.lower, env) if index.lower else const(0)
        hi = self.sym(index.upper, env) if index.upper else size
        parts = [part for part in (index.lower, index.upper, index.step) if part is not None]
        loads = tuple(load for part in parts for load in self.loads(part, env))
        extent = hi - lo
        if index.step is not None and self.sym(index.step, env) != const(1):
            extent = opaque("strided", extent, self.sym(index.step, env))
        return Dim(lo, extent, index, loads)

    def loads(self, node: cst.CSTNode, env: Env) -> tuple[Operand, ...]:
        """Every buffer element that the expression reads, also inside indices."""
        kind = type(node)
        if kind is cst.Integer:
            return ()
        if type(node) is cst.Name or type(node) is cst.Subscript:
            operand = self.operand(node, env)
            if operand is not None:
                return (operand, *operand.loads)
            if type(node) is cst.Name:
                value = env.lookup(node.value)
                return self.loads(value.node, value.env) if type(value) is Closure else ()
        if type(node) is cst.Attribute:
            return self.loads(node.value, env)
        if all(type(env.lookup(name.value)) in _WITHOUT_ELEMENTS for name in _distinct_names(node)):
            return ()
        found: list[Operand] = []
        for child in children(node):
            if _IS_EXPRESSION_PART[type(child)]:
                found += self.loads(child, env)
        return tuple(found)

    def buffers_in(self, node: cst.CSTNode, env: Env) -> tuple[Buffer, ...]:
        """Every buffer that a piece of code names."""
        found: dict[int, Buffer] = {}
        stack: list[cst.CSTNode] = [node]
        while stack:
            current = stack.pop()
            if type(current) is cst.Name:
                buffer = self.buffer(current, env)
                if buffer is not None:
                    found[id(buffer)] = buffer
            stack += children(current)
        return tuple(found.values())

    def scalar(self, node: cst.BaseExpression, env: Env) -> Scalar:
        """An expression operand."""
        return Scalar(node, self.sym(node, env), self.loads(node, env))


def _chosen(node: cst.IfExp, body: cst.BaseExpression, orelse: cst.BaseExpression) -> cst.BaseExpression:
    """One item of a choice of two tuples."""
    if code(body) == code(orelse):
        return body
    return cst.IfExp(test=node.test, body=body, orelse=orelse, lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


@remembered
def _distinct_names(node: cst.CSTNode) -> list[cst.Name]:
    """A node for each name in an expression, in the order of the alphabet."""
    return sorted({name.value: name for name in names_in(node)}.values(), key=lambda name: name.value)
