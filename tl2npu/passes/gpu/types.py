"""TL110, TL111 (and TL191, TL193): dtype objects become strings.

On the NPU ``T.float32`` is a function that converts a value, several of its like do not exist, and a dtype is a string.
A call ``T.float32(x)`` is a conversion in both languages and stays where the function exists.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import libcst as cst

from tl2npu.dialects import ascend
from tl2npu.kernel.bindings import assigned_names
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Kernel
from tl2npu.passes.gpu.host_imports import add_import
from tl2npu.passes.gpu.types_reach import nodes
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits
from tl2npu.source.index import Index
from tl2npu.source.names import Names
from tl2npu.source.tree import walk

_LANGUAGE = "tilelang.language."
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
    }
)
"""Name of a dtype object, relative to ``tilelang.language``, -> the string for it."""

ELSEWHERE_ONLY = ("float8_", "float4_", "float6_", "tfloat32", "int4")
"""How the names of types start that the vector and cube cores of A2 and A3 do not have."""

_FOREIGN = re.compile(r"\.(float8_\w+|float4_\w+|float6_\w+|tfloat32|int4)\b|tilelang\.language\.fp8\b")
_ROUNDS = 8
"""How deep types may stand inside each other."""

_MEMBERS = frozenset({"bits", "bytes", "itemsize", "as_torch"})


def to_strings(job: Job) -> None:
    """``T.float16`` and its like, wherever the factory uses them as a value."""
    _refuse_pointers(job)
    _refuse_open_types(job)
    for _ in range(_ROUNDS):
        if not _rewrite_once(job):
            return


def _rewrite_once(job: Job) -> bool:
    found = list(nodes(job))
    dtypes = TypeNames(job.file.names, job.file.index, found)
    written = _written_types(job.kernel)
    dtypes.learn(node.value for node in written.values() if isinstance(node, cst.Name))
    edits = Edits(job.file.index)
    for node, new in rewrite(edits, dtypes, found, written):
        tensor = isinstance(node, cst.Subscript)
        job.change("TL111" if tensor else "TL110", node, f"`{_short(node)}` -> `{_short(new)}`")
    job.apply(edits)
    return bool(edits)


def _short(node: cst.CSTNode) -> str:
    return " ".join(code(node).split())


def _refuse_pointers(job: Job) -> None:
    """Raw pointers and strided tensors have no counterpart: a copy takes its tensor to be contiguous."""
    for node in nodes(job):
        if isinstance(node, (cst.Attribute, cst.Name)):
            name = (job.file.names.resolve(node) or "").removeprefix(_LANGUAGE)
            if name in ("StridedTensor", "ptr", "make_tensor", "Tensor.from_ptr", "StridedTensor.from_ptr"):
                raise Blocked("TL193", node, f"`{code(node)}`: copies on the NPU take a tensor to be contiguous")


def _refuse_open_types(job: Job) -> None:
    """A type that only callers choose, in a file that speaks of types which the cores do not have."""
    foreign = _FOREIGN.search(job.original.module.code)
    factory = job.located.factory
    if foreign is None or factory is None:
        return
    params = (*factory.node.params.params, *factory.node.params.kwonly_params)
    open_ends = {param.name.value: param for param in params if param.default is None}
    for node in _written_types(job.kernel).values():
        if isinstance(node, cst.Name) and node.value in open_ends:
            text = f"callers choose `{node.value}`, and the file has types such as `{foreign.group().lstrip('.')}`"
            raise Blocked("TL191", open_ends[node.value], text)


def _written_types(kernel: Kernel) -> dict[str, cst.BaseExpression]:
    """Buffer -> the expression of its dtype; a name that several buffers have is left out."""
    found: dict[str, cst.BaseExpression] = {}
    for name, buffer in kernel.buffers.items():
        node = _written_type(buffer.node)
        if "#" in name:
            found.pop(name.partition("#")[0], None)
        elif node is not None:
            found[name] = node
    return found


def _written_type(node: cst.CSTNode) -> cst.BaseExpression | None:
    """The dtype in ``T.alloc_*(shape, dtype)`` or ``A: T.Tensor(shape, dtype)``."""
    if isinstance(node, cst.Param) and node.annotation is not None:
        node = node.annotation.annotation
    if isinstance(node, cst.Call):
        named = [arg.value for arg in node.args if arg.keyword is not None and arg.keyword.value == "dtype"]
        return next(iter(named or [arg.value for arg in node.args if arg.keyword is None][1:2]), None)
    if isinstance(node, cst.Subscript):
        return next(iter([i.slice.value for i in node.slice if isinstance(i.slice, cst.Index)][1:2]), None)
    return None


@dataclass(eq=False)
class TypeNames:
    """What of a file is a dtype object."""

    names: Names
    index: Index
    around: Iterable[cst.CSTNode]
    variables: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.imported = {
            (alias.asname.name.value if alias.asname else alias.name.value)  # type: ignore[union-attr]
            for item in self.index.statements
            if isinstance(item, cst.ImportFrom) and not isinstance(item.names, cst.ImportStar)
            for alias in item.names
        }
        self.assigned = {name for item in self.index.statements for name in assigned_names(item)}
        for node in self.around:
            if isinstance(node, cst.Param):
                annotated = node.annotation is not None and self.is_type_class(node.annotation.annotation)
                if annotated or (node.default is not None and self.is_type(node.default)):
                    self.variables.add(node.name.value)
            elif isinstance(node, cst.Assign) and self.is_type(node.value):
                self.learn(t.target.value for t in node.targets if isinstance(t.target, cst.Name))

    def learn(self, names: Iterable[str]) -> None:
        """These variables hold dtypes."""
        self.variables |= set(names)

    def name_of(self, node: cst.BaseExpression) -> str | None:
        """``float16`` for ``T.float16`` and for ``float16`` that was imported, not for a variable that holds it."""
        if isinstance(node, cst.Name) and not self._imported(node.value):
            return None
        if not isinstance(node, (cst.Name, cst.Attribute)):
            return None
        name = (self.names.resolve(node) or "").removeprefix(_LANGUAGE)
        return name if name in STRINGS or name.startswith(ELSEWHERE_ONLY) else None

    def _imported(self, name: str) -> bool:
        if name in self.imported:
            return True
        return self.names.star[-1:] == ("tilelang.language",) and name not in self.assigned

    def is_type(self, node: cst.BaseExpression) -> bool:
        """The expression is certainly a dtype object."""
        if isinstance(node, cst.IfExp):
            return self.is_type(node.body) and self.is_type(node.orelse)
        if isinstance(node, cst.Call):
            return self.is_type_class(node.func)
        if isinstance(node, cst.Name) and node.value in self.variables:
            return True
        return self.name_of(node) is not None

    def is_type_class(self, node: cst.BaseExpression) -> bool:
        """The expression is ``T.dtype`` itself."""
        return self.names.resolve(node) == _LANGUAGE + "dtype"


def rewrite(
    edits: Edits,
    dtypes: TypeNames,
    around: Iterable[cst.CSTNode],
    buffers: Mapping[str, cst.BaseExpression] = MappingProxyType({}),
    *,
    refuse: bool = True,
) -> Iterator[tuple[cst.CSTNode, cst.CSTNode]]:
    """Edit every use of a dtype object among the nodes; (old, new) of each.

    ``buffers``: buffer -> how its dtype is written, for ``acc.dtype``. With ``refuse`` a type that the NPU does not
    have raises :class:`Blocked`; else its name becomes a string like any other.
    """
    rewriter = _Rewriter(dtypes, buffers, refuse)
    for node in around:
        if not isinstance(node, cst.BaseExpression) or rewriter.covered(node):
            continue
        try:
            new = rewriter.new(node)
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
    def __init__(self, dtypes: TypeNames, buffers: Mapping[str, cst.BaseExpression], refuse: bool) -> None:
        self.dtypes, self.buffers, self.refuse = dtypes, buffers, refuse
        self.index = dtypes.index
        self.done: set[int] = set()
        self.needs_import = False

    def covered(self, node: cst.CSTNode) -> bool:
        return any(id(above) in self.done for above in self.index.ancestors(node))

    def new(self, node: cst.BaseExpression) -> cst.BaseExpression | None:
        """What takes the place of an expression, None if it stays."""
        parent = self.index.parent(node)
        if isinstance(parent, cst.Annotation) and not isinstance(node, cst.Subscript):
            return cst.Name("str") if self.dtypes.is_type_class(node) else None
        if isinstance(node, cst.Call):
            return self._call(node)
        if isinstance(node, cst.Subscript):
            return self._tensor(node)
        if isinstance(parent, cst.Call) and node is parent.func:
            return None
        if isinstance(node, cst.Attribute):
            found = self._member(node, parent)
            if found is not None:
                return found
        if isinstance(parent, cst.Attribute) and (node is not parent.value or parent.attr.value not in _MEMBERS):
            return None
        name = self.dtypes.name_of(node)
        return self._string(name, node) if name is not None and not _binds(node, parent) else None

    def _string(self, name: str, node: cst.BaseExpression) -> cst.BaseExpression:
        if name in STRINGS:
            return cst.SimpleString(f'"{STRINGS[name]}"')
        compared = any(isinstance(above, cst.Comparison) for above in self.index.ancestors(node))
        if compared or not self.refuse:
            return cst.SimpleString(f'"{name}"')  # a question, not a use
        raise Blocked("TL191", node, f"`{code(node)}`: the cores of A2 and A3 have no such type")

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
        variable = isinstance(func, cst.Name) and func.value in self.dtypes.variables
        if not variable and (name is None or ascend.lookup(_LANGUAGE + name) is not None):
            return None
        type_text = code(func) if name is None else code(self._string(name, func))
        cast = self.dtypes.names.spell(_LANGUAGE + "cast", at=node) or "T.cast"
        argument = node.args[0].value
        if any(self.new(found) is not None for found in _below(argument)):
            return None  # first what stands inside
        return cst.parse_expression(f"{cast}({code(argument)}, {type_text})")

    def _member(self, node: cst.Attribute, parent: cst.CSTNode | None) -> cst.BaseExpression | None:
        member = node.attr.value
        if member == "dtype" and isinstance(node.value, cst.Name) and node.value.value in self.buffers:
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
        if self.dtypes.names.resolve(node.value) != _LANGUAGE + "Tensor":
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


def _below(node: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    return (found for found in walk(node) if isinstance(found, cst.BaseExpression))


def _binds(node: cst.BaseExpression, parent: cst.CSTNode | None) -> bool:
    """The node gives a name to something: an import, a parameter, a keyword, a target."""
    if isinstance(parent, (cst.ImportAlias, cst.AsName, cst.AssignTarget)):
        return True
    if isinstance(parent, (cst.ImportFrom, cst.FunctionDef)):
        return True
    return (isinstance(parent, cst.Param) and node is parent.name) or (
        isinstance(parent, cst.Arg) and node is parent.keyword
    )
