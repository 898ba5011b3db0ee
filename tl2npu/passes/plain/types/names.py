"""What of a file is a dtype object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

import libcst as cst

from tl2npu.kernel.bindings import assigned_names
from tl2npu.source.index import Index
from tl2npu.source.names import LANGUAGE, Names
from tl2npu.source.tree import nodes_of

_PLAIN = (
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
    *("bool", "float16", "float32", "float64", "bfloat16"),
)
STRINGS: Mapping[str, str] = MappingProxyType(
    {
        **{name: name for name in _PLAIN},
        "half": "float16",
        "float": "float32",
        "double": "float64",
        "long": "int64",
        "short": "int16",
        "int": "int32",
        "uint": "uint32",
        "tfloat32": "float32",
    }
)
"""Name of a dtype object, relative to ``tilelang.language``, -> the string for it."""

TF32 = "tfloat32"
"""Numbers of 32 bits of which the tensor cores of a GPU use 19: a float32 in memory, and here everywhere."""

ELSEWHERE_ONLY = ("float8_", "float4_", "float6_", "int4")
"""How the names of types start that the vector and cube cores of A2 and A3 do not have."""


@dataclass(eq=False)
class TypeNames:
    """What of a file is a dtype object."""

    names: Names
    index: Index
    around: Iterable[cst.CSTNode]
    variables: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        for node in self.around:
            if type(node) is cst.Param:
                annotated = node.annotation is not None and self.is_type_class(node.annotation.annotation)
                if annotated or (node.default is not None and self.is_type(node.default)):
                    self.variables.add(node.name.value)
            elif type(node) is cst.Assign and self.is_type(node.value):
                self.learn(t.target.value for t in node.targets if isinstance(t.target, cst.Name))
            elif type(node) is cst.For and isinstance(node.target, cst.Name) and self._lists_types(node.iter):
                self.learn([node.target.value])

    def _lists_types(self, node: cst.BaseExpression) -> bool:
        listed = node.elements if isinstance(node, (cst.List, cst.Tuple)) else ()
        return bool(listed) and all(self.is_type(item.value) for item in listed)

    @cached_property
    def imported(self) -> frozenset[str]:
        """Names that the file imports from modules."""
        return frozenset(
            alias.evaluated_alias or alias.evaluated_name
            for item in nodes_of(self.index.module, cst.ImportFrom)
            if not isinstance(item.names, cst.ImportStar)
            for alias in item.names
        )

    @cached_property
    def assigned(self) -> frozenset[str]:
        """Names that the file assigns anywhere."""
        inner = nodes_of(self.index.module, cst.FunctionDef, cst.ClassDef)
        return frozenset(assigned_names(self.index.module)).union(*(assigned_names(node.body) for node in inner))

    def learn(self, names: Iterable[str]) -> None:
        """These variables hold dtypes."""
        self.variables |= set(names)

    def name_of(self, node: cst.BaseExpression) -> str | None:
        """``float16`` for ``T.float16`` and for ``float16`` that was imported, not for a variable that holds it."""
        if type(node) is cst.Name:
            if not self._imported(node.value):
                return None
        elif type(node) is not cst.Attribute:
            return None
        name = self.names.operator(node)
        return name if name in STRINGS or name.startswith(ELSEWHERE_ONLY) else None

    def _imported(self, name: str) -> bool:
        if name in self.imported:
            return True
        return self.names.star[-1:] == ("tilelang.language",) and name not in self.assigned

    def is_type(self, node: cst.BaseExpression) -> bool:
        """The expression is certainly a dtype object."""
        if type(node) is cst.IfExp:
            return self.is_type(node.body) and self.is_type(node.orelse)
        if type(node) is cst.Call:
            return self.is_type_class(node.func)
        if self.is_variable(node):
            return True
        return self.name_of(node) is not None

    def is_variable(self, node: cst.BaseExpression) -> bool:
        """The name of a variable that holds a dtype, and not that of a function or import of the module."""
        if type(node) is not cst.Name or node.value not in self.variables:
            return False
        if node.value not in self._of_module:
            return True
        for above in self.index.ancestors(node):
            if isinstance(above, cst.FunctionDef):
                params = nodes_of(above.params, cst.Param)
                if any(param.name.value == node.value for param in params) or node.value in assigned_names(above.body):
                    return True
        return False

    @cached_property
    def _of_module(self) -> frozenset[str]:
        """The functions of the module, and what it imports."""
        return self.imported | {
            item.name.value for item in self.index.module.body if isinstance(item, (cst.FunctionDef, cst.ClassDef))
        }

    def is_type_class(self, node: cst.BaseExpression) -> bool:
        """The expression is ``T.dtype`` itself."""
        return self.names.resolve(node) == LANGUAGE + "dtype"
