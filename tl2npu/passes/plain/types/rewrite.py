"""Expressions with dtype objects as expressions with strings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import cast

import libcst as cst

from tl2npu.dialects import ascend
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.passes.host.imports import add_import
from tl2npu.passes.plain.types.names import STRINGS, TF32, TypeNames
from tl2npu.source.edits import Edits
from tl2npu.source.names import LANGUAGE
from tl2npu.source.tree import nodes_of

_MAY_CHANGE: tuple[type[cst.BaseExpression], ...] = (cst.Name, cst.Attribute, cst.Call, cst.Subscript)
_MEMBERS = frozenset({"bits", "bytes", "itemsize", "as_torch"})


def rewrite(
    edits: Edits,
    dtypes: TypeNames,
    around: Iterable[cst.CSTNode],
    buffers: Mapping[str, cst.BaseExpression] = MappingProxyType({}),
    *,
    kernel: cst.CSTNode | None = None,
    refuse: bool = True,
) -> Iterator[tuple[cst.CSTNode, cst.CSTNode]]:
    """Edit every use of a dtype object among the nodes; (old, new) of each.

    ``buffers``: buffer -> how its dtype is written, for ``acc.dtype`` in the ``kernel``; host code may give the name
    to a tensor of its own. With ``refuse`` a type that the NPU does not
    have raises :class:`Blocked`; else its name becomes a string like any other.
    """
    rewriter = _Rewriter(dtypes, buffers, kernel, refuse)
    for node in around:
        if type(node) not in _MAY_CHANGE or rewriter.covered(node):
            continue
        try:
            new = rewriter.new(cast("cst.BaseExpression", node))
        except Blocked:
            if refuse:
                raise
            continue
        if new is None:
            continue
        rewriter.done.add(id(node))
        parent = dtypes.index.parent(node)
        if isinstance(parent, cst.Assign) and [code(t.target) for t in parent.targets] == [code(new)]:
            edits.remove(parent)  # `dtype = T.dtype(dtype)`
        else:
            edits.replace(node, new)
        yield node, new
    if rewriter.needs_import:
        add_import(dtypes.index, edits, "from tilelang import DataType")


class _Rewriter:
    def __init__(
        self, dtypes: TypeNames, buffers: Mapping[str, cst.BaseExpression], kernel: cst.CSTNode | None, refuse: bool
    ) -> None:
        self.dtypes, self.buffers, self.kernel, self.refuse = dtypes, buffers, kernel, refuse
        self.index = dtypes.index
        self.done: set[int] = set()
        self.needs_import = False

    def covered(self, node: cst.CSTNode) -> bool:
        return bool(self.done) and any(id(above) in self.done for above in self.index.ancestors(node))

    def new(self, node: cst.BaseExpression) -> cst.BaseExpression | None:
        """What takes the place of an expression, None if it stays."""
        parent = self.index.parent(node)
        if type(parent) is cst.Annotation and type(node) is not cst.Subscript:
            return cst.Name("str") if self.dtypes.is_type_class(node) else None
        if type(node) is cst.Call:
            return self._call(node)
        if type(node) is cst.Subscript:
            return self._tensor(node)
        if type(parent) is cst.Call and node is parent.func:
            return None
        if type(node) is cst.Attribute:
            found = self._member(node, parent)
            if found is not None:
                return found
        if type(parent) is cst.Attribute and (node is not parent.value or parent.attr.value not in _MEMBERS):
            return None
        name = self.dtypes.name_of(node)
        return self._string(name, node) if name is not None and not _binds(node, parent) else None

    def _string(self, name: str, node: cst.BaseExpression) -> cst.BaseExpression:
        compared = any(isinstance(above, cst.Comparison) for above in self.index.ancestors(node))
        if name == TF32 and compared:
            raise Blocked("TL191", node, f"A2 and A3 have no element type `{code(node)}`")
        if name in STRINGS:
            return cst.SimpleString(f'"{STRINGS[name]}"')
        if compared or not self.refuse:
            return cst.SimpleString(f'"{name}"')  # a question, not a use
        raise Blocked("TL191", node, f"A2 and A3 have no element type `{code(node)}`")

    def _text(self, node: cst.BaseExpression) -> str:
        new = self.new(node)
        return code(new if new is not None else node)

    def _call(self, node: cst.Call) -> cst.BaseExpression | None:
        func = node.func
        if self.dtypes.is_type_class(func) and len(node.args) == 1:
            given = node.args[0].value
            if isinstance(given, cst.Attribute) and given.attr.value == "dtype":
                return cst.parse_expression(f'str({code(given)}).removeprefix("torch.")')
            return cst.parse_expression(self._text(given))
        if isinstance(func, cst.Attribute) and func.attr.value == "as_torch" and not node.args:
            if self.dtypes.is_type(func.value):
                name = self.dtypes.name_of(func.value)
                if name is not None and name in STRINGS:
                    return cst.parse_expression(f"torch.{STRINGS[name]}")
                return cst.parse_expression(f"getattr(torch, {self._text(func.value)})")
            return None
        if len(node.args) != 1 or node.args[0].keyword is not None:
            return None
        name = self.dtypes.name_of(func)
        variable = self.dtypes.is_variable(func)
        if not variable and (name is None or ascend.lookup(LANGUAGE + name) is not None):
            return None
        type_text = code(func) if name is None else code(self._string(name, func))
        convert = self.dtypes.names.spell(LANGUAGE + "cast", at=node) or "T.cast"
        argument = node.args[0].value
        if any(self.new(found) is not None for found in nodes_of(argument, *_MAY_CHANGE)):
            return None  # first what stands inside
        known = STRINGS.get(self.dtypes.names.operator(func), "")
        if variable and isinstance(argument, cst.Integer) and "float" in known:
            return cst.Float(f"{argument.value}.0") if argument.value.isdecimal() else None
        return cst.parse_expression(f"{convert}({code(argument)}, {type_text})")

    def _member(self, node: cst.Attribute, parent: cst.CSTNode | None) -> cst.BaseExpression | None:
        member = node.attr.value
        if member == "dtype" and isinstance(node.value, cst.Name) and node.value.value in self.buffers:
            if self.kernel is not None and self.kernel not in self.index.ancestors(node):
                return None
            written = self.buffers[node.value.value]
            simple = isinstance(written, (cst.Name, cst.SimpleString)) or self.dtypes.is_type(written)
            return cst.parse_expression(self._text(written)) if simple else None
        if member not in _MEMBERS or not self.dtypes.is_type(node.value):
            return None
        if member == "as_torch":
            return None
        owner = self.dtypes.names.spell("tilelang.DataType", at=node)
        if owner is None:
            owner, self.needs_import = "DataType", True
        bits = f"{owner}({self._text(node.value)}).bits"
        if member == "bits":
            return cst.parse_expression(bits)
        alone = isinstance(parent, (cst.Arg, cst.Assign, cst.AnnAssign, cst.Index))
        return cst.parse_expression(f"{bits} // 8" if alone else f"({bits} // 8)")

    def _tensor(self, node: cst.Subscript) -> cst.BaseExpression | None:
        if self.dtypes.names.resolve(node.value) != LANGUAGE + "Tensor":
            return None
        if not all(isinstance(item.slice, cst.Index) for item in node.slice):
            return None
        items = [item.slice.value for item in node.slice if isinstance(item.slice, cst.Index)]
        return None if not items else self._tensor_call(node, items)

    def _tensor_call(self, node: cst.Subscript, items: list[cst.BaseExpression]) -> cst.BaseExpression:
        typed = len(items) == 2 and (
            isinstance(items[0], (cst.Tuple, cst.List))
            or self.dtypes.is_type(items[1])
            or isinstance(items[1], cst.SimpleString)
        )
        if not typed:
            inner = items[0] if len(items) == 1 and isinstance(items[0], (cst.Tuple, cst.List)) else None
            text = code(inner) if inner is not None else f"({', '.join(map(code, items))}{',' * (len(items) == 1)})"
            return cst.parse_expression(f"{code(node.value)}({text})")
        shape = items[0]
        text = code(shape)
        if not isinstance(shape, (cst.Tuple, cst.List, cst.Name)) or (isinstance(shape, cst.Name) and shape.lpar):
            text = f"({code(shape.with_changes(lpar=(), rpar=()))},)"
        return cst.parse_expression(f"{code(node.value)}({text}, {self._text(items[1])})")


def _binds(node: cst.BaseExpression, parent: cst.CSTNode | None) -> bool:
    """The node gives a name to something: an import, a parameter, a keyword, a target."""
    if isinstance(parent, (cst.ImportAlias, cst.AsName, cst.AssignTarget)):
        return True
    if isinstance(parent, (cst.ImportFrom, cst.FunctionDef)):
        return True
    return (isinstance(parent, cst.Param) and node is parent.name) or (
        isinstance(parent, cst.Arg) and node is parent.keyword
    )
