"""The parts of an eager kernel: what of its body is the factory's, what the prim_func's, what becomes a parameter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.bindings import assigned_names
from tl2npu.kernel.blocked import Blocked
from tl2npu.source.blocks import LineSlot, comment_line
from tl2npu.source.index import Index
from tl2npu.source.names import LANGUAGE, Names
from tl2npu.source.tree import children, mentioned, names_in, nodes_of

_TENSORS = frozenset({"Tensor", "StridedTensor", "Buffer", "ptr"})
_LAUNCHES = frozenset({"Kernel", "ClusterKernel", "CUDASourceCodeKernel"})
_HOST = frozenset(
    "const dynamic symbolic dyn ceildiv floordiv floormod truncdiv min max abs cast infinity min_value max_value dtype "
    "if_then_else Tensor float16 float32 float64 bfloat16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 log2 "
    "macro GemmWarpPolicy".split()
)
"""What factory code may call of ``tilelang.language``; anything else makes statements of the kernel."""


Line = cst.SimpleStatementLine | cst.BaseCompoundStatement


@dataclass(frozen=True, eq=False)
class Declared:
    """A parameter of the prim_func: its annotation, and the comments that stood at its declaration."""

    name: str
    annotation: cst.BaseExpression
    line: cst.SimpleStatementLine | None


class Plan:
    """An eager kernel taken apart. Raises :class:`Blocked` for a form that cannot be."""

    def __init__(self, index: Index, names: Names, node: cst.FunctionDef, jit: cst.Decorator) -> None:
        self.index, self.names, self.node, self.jit = index, names, node, jit
        self.name = node.name.value
        params = node.params
        if params.star_kwarg is not None or isinstance(params.star_arg, cst.Param) or params.posonly_params:
            raise self.blocked(node, "it takes `*args` or `**kwargs`")
        self.params = (*params.params, *params.kwonly_params)
        self.consts: dict[str, str] = {}  # name in the body -> name that callers use
        self.declared: dict[str, Declared] = {}
        self.outputs: dict[str, Declared] = {}
        self.returned: list[str] = []
        self.launches: list[cst.With] = []
        self.slots: list[LineSlot] = []  # of the factory, in order; the launch stands for the prim_func
        self.inner: list[Line] = []
        self._inner_names: set[str] = set()
        self._symbolic: set[str] = set()
        self._later: list[tuple[cst.CSTNode, Set[str]]] = []  # factory statements with the names that they bind
        self._declare_in_signature()
        self._read()
        self._check()

    def blocked(self, node: cst.CSTNode, why: str) -> Blocked:
        """The refusal of this kernel."""
        return Blocked("TL103", node, f"cannot write a factory for the eager kernel `{self.name}`: {why}")

    @property
    def inputs(self) -> list[Declared]:
        """The tensors and run-time scalars that a caller passes, in the order of the signature."""
        return [self.declared[p.name.value] for p in self.params if p.name.value in self.declared]

    @property
    def configs(self) -> list[cst.Param]:
        """The parameters that are known when the kernel is compiled."""
        return [p for p in self.params if p.name.value not in self.declared]

    @property
    def sequences(self) -> set[str]:
        """Parameters that are only counted, summed, indexed or gone through: lists would do, but have no hash."""
        found = {param.name.value for param in self.configs}
        good: set[str] = set()
        for line in self.factory_lines:
            for use in names_in(line):
                if use.value in found:
                    (good.add if self._is_gone_through(use) else found.discard)(use.value)
        inside = {name.value for line in (*self.inner, *self.launches) for name in names_in(line)}
        declared = {name.value for item in (*self.inputs, *self.results) for name in names_in(item.annotation)}
        return (found & good) - inside - declared

    def _is_gone_through(self, use: cst.Name) -> bool:
        above = self.index.parent(use)
        if isinstance(above, cst.Arg):
            call = self.index.parent(above)
            called = call.func.value if isinstance(call, cst.Call) and isinstance(call.func, cst.Name) else None
            return called in ("len", "sum", "max", "min", "enumerate", "sorted")
        return (isinstance(above, (cst.CompFor, cst.For)) and above.iter is use) or (
            isinstance(above, cst.Subscript) and above.value is use
        )

    @property
    def results(self) -> list[Declared]:
        """The outputs, in the order in which they are returned."""
        return [self.outputs[name] for name in self.returned]

    @property
    def factory_lines(self) -> list[Line]:
        """The statements that stay in the factory."""
        return [line for slot in self.slots for line in slot.new if isinstance(line, Line)]

    def operator(self, node: cst.CSTNode) -> str | None:
        """The name of a TileLang operator relative to ``tilelang.language``; None for anything else."""
        return (self.names.operator(node) or None) if isinstance(node, (cst.Name, cst.Attribute)) else None

    # -- reading ----------------------------------------------------------------------------------------------------

    def _declare_in_signature(self) -> None:
        for param in self.params:
            if param.annotation is not None and self._is_run_time(param.annotation.annotation):
                self.declared[param.name.value] = Declared(param.name.value, param.annotation.annotation, None)

    def _is_run_time(self, annotation: cst.BaseExpression) -> bool:
        """A tensor, or ``T.int32`` and the like: a scalar that the kernel is called with."""
        return self._is_tensor(annotation) or self._is_element_type(annotation)

    def _is_tensor(self, annotation: cst.BaseExpression) -> bool:
        if isinstance(annotation, cst.Call):
            return self.operator(annotation.func) in _TENSORS
        return isinstance(annotation, cst.Subscript) and self.operator(annotation.value) in _TENSORS

    def _is_element_type(self, annotation: cst.BaseExpression) -> bool:
        name = self.operator(annotation) or ""
        return name.rstrip("0123456789") in ("int", "uint", "float", "bfloat", "bool") and name != "dtype"

    def _read(self) -> None:
        body = self.node.body
        if not isinstance(body, cst.IndentedBlock):
            raise self.blocked(self.node, "its body is on the same line as its `def`")
        for line in body.body:
            again = isinstance(line, cst.With) and self._launches(line)
            if self.launches and not again and not is_return(line):
                raise self.blocked(line, "statements other than `return` follow the launch")
            if isinstance(line, cst.SimpleStatementLine):
                for single in _singles(line):
                    self._line(single)
            elif isinstance(line, cst.With) and self._launches(line):
                self.launches.append(line)
            elif isinstance(line, cst.BaseCompoundStatement):
                self._other(line)
        if not self.launches:
            raise self.blocked(self.node, "the launch is under a condition")

    def _launches(self, node: cst.With) -> bool:
        calls = [item.item for item in node.items if isinstance(item.item, cst.Call)]
        return any(self.operator(call.func) in _LAUNCHES for call in calls)

    def _line(self, line: cst.SimpleStatementLine) -> None:
        small = line.body[0]
        if isinstance(small, cst.Return):
            self._return(small)
        elif isinstance(small, cst.Assign) and self._calls(small.value, "const"):
            self._const(small)
            self._drop(line)
        elif isinstance(small, cst.AnnAssign) and isinstance(small.target, cst.Name) and small.value is None:
            self._annotation(line, small.target.value, small.annotation.annotation)
        elif isinstance(small, (cst.Assign, cst.AnnAssign)) and self._calls(small.value, "empty"):
            self._empty(line, small)
        else:
            self._other(line)

    def _calls(self, node: cst.BaseExpression | None, operator: str) -> bool:
        """True for ``T.operator(...)``, also in a tuple of such calls."""
        if isinstance(node, cst.Tuple):
            return bool(node.elements) and all(self._calls(item.value, operator) for item in node.elements)
        return isinstance(node, cst.Call) and self.operator(node.func) == operator

    def _drop(self, line: cst.SimpleStatementLine) -> None:
        """A line that goes; its comments stay."""
        above = (*line.leading_lines, *comment_line(line.trailing_whitespace))
        self.slots.append(LineSlot(line.with_changes(leading_lines=above), ()))

    def _const(self, assign: cst.Assign) -> None:
        target = assign.targets[0].target
        targets = [e.value for e in target.elements] if isinstance(target, cst.Tuple) else [target]
        values = [e.value for e in assign.value.elements] if isinstance(assign.value, cst.Tuple) else [assign.value]
        wanted: list[str] = []
        for call in values:
            assert isinstance(call, cst.Call)
            text = call.args[0].value if call.args and call.args[0].keyword is None else None
            if not isinstance(text, cst.SimpleString) or not isinstance(text.evaluated_value, str):
                raise self.blocked(assign, "the argument of `T.const` is not a string literal")
            wanted += text.evaluated_value.replace(",", " ").split()
        if len(assign.targets) != 1 or len(wanted) != len(targets) or not all(isinstance(t, cst.Name) for t in targets):
            raise self.blocked(assign, "`T.const` declares more or fewer names than it is assigned to")
        for name, known in zip(targets, wanted, strict=True):
            assert isinstance(name, cst.Name)
            self.consts[name.value] = known

    def _annotation(self, line: cst.SimpleStatementLine, name: str, annotation: cst.BaseExpression) -> None:
        if all(param.name.value != name for param in self.params) or not self._is_run_time(annotation):
            if self._is_tensor(annotation):
                raise self.blocked(line, f"`{name}` is declared as a tensor, but is not a parameter")
            self._other(line)
        elif name in self.declared and self.declared[name].line is not None:
            raise self.blocked(line, f"`{name}` is declared twice")
        else:
            self._declare(self.declared, name, annotation, line)

    def _empty(self, line: cst.SimpleStatementLine, small: cst.Assign | cst.AnnAssign) -> None:
        targets = [item.target for item in small.targets] if isinstance(small, cst.Assign) else [small.target]
        if len(targets) != 1 or not isinstance(targets[0], cst.Name) or not isinstance(small.value, cst.Call):
            raise self.blocked(line, "the result of `T.empty` is not assigned to one name")
        name, call = targets[0].value, small.value
        spelled = self.names.spell(LANGUAGE + "Tensor", self.node)
        if spelled is None:
            raise self.blocked(line, "this file does not import `T.Tensor` under any name")
        if len(call.args) > 2 or (call.args and call.args[0].star):
            raise self.blocked(line, "the shape of `T.empty` is not a single argument")
        self._declare(self.outputs, name, call.with_changes(func=cst.parse_expression(spelled)), line)

    def _declare(
        self, into: dict[str, Declared], name: str, annotation: cst.BaseExpression, line: cst.SimpleStatementLine
    ) -> None:
        if name in self.outputs:
            raise self.blocked(line, f"`{name}` is declared twice")
        into[name] = Declared(name, annotation, line)
        used = mentioned(annotation)
        if used & (self._inner_names | self._scalars() | self.outputs.keys()):
            raise self.blocked(line, f"the shape of `{name}` is known at run time only")
        if read := used & self.declared.keys():
            raise self.blocked(line, f"the shape of `{name}` is written with `{min(read)}`: write it with the extents")
        self.slots.append(LineSlot(line.with_changes(leading_lines=()), ()))
        self._later.append((line, used))

    def _scalars(self) -> set[str]:
        return {n for n, d in self.declared.items() if not self._is_tensor(d.annotation)}

    def _return(self, node: cst.Return) -> None:
        value = node.value
        items = [e.value for e in value.elements] if isinstance(value, (cst.Tuple, cst.List)) else [value]
        for item in items if value is not None else ():
            if not isinstance(item, cst.Name) or item.value not in self.outputs or item.value in self.returned:
                raise self.blocked(node, "it returns something other than tensors of `T.empty`")
            self.returned.append(item.value)

    def _other(self, line: Line) -> None:
        """Compile-time code is the factory's, what handles tensors is the prim_func's."""
        for part in nodes_of(line, cst.Return, cst.Call, cst.AnnAssign):
            if isinstance(part, cst.Return) and self.index.enclosing(part, cst.FunctionDef) is self.node:
                raise self.blocked(line, "the `return` is under a condition")
            if isinstance(part, cst.Call) and self.operator(part.func) in (*_LAUNCHES, "const", "empty"):
                what = "launches" if self.operator(part.func) in _LAUNCHES else "declares extents or outputs"
                raise self.blocked(line, f"it {what} inside another statement: write a statement for each")
            if isinstance(part, cst.AnnAssign) and part.value is None and self._is_tensor(part.annotation.annotation):
                raise self.blocked(line, "it declares a tensor inside another statement")
        bound = assigned_names(line)
        if self._is_inner(line):
            self.inner.append(line)
            self._inner_names |= bound
            self.slots.append(LineSlot(line.with_changes(leading_lines=()), ()))
            return
        if self._is_symbolic(line):
            self._symbolic |= bound
        self.slots.append(LineSlot(line, (line,)))
        self._later.append((line, bound))

    def _is_inner(self, line: Line) -> bool:
        used = mentioned(line)
        if used & (self.declared.keys() | self.outputs.keys() | self._inner_names):
            return True
        if any(self.operator(call.func) not in (None, *_HOST) for call in _calls_outside_functions(line)):
            return True
        asserts = isinstance(line, cst.SimpleStatementLine) and isinstance(line.body[0], cst.Assert)
        return asserts and bool(used & self._symbolic)

    def _is_symbolic(self, line: Line) -> bool:
        made = {self.operator(call.func) for call in _calls_outside_functions(line)} & {"dynamic", "symbolic", "dyn"}
        used = mentioned(line)
        if isinstance(line, cst.If) and mentioned(line.test) & self._symbolic:
            raise self.blocked(line, "a condition outside of the launch depends on a symbolic extent")
        return bool(made or used & self._symbolic)

    # -- checking ---------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        compilation = self.jit.decorator
        if isinstance(compilation, cst.Call) and any(
            a.keyword and a.keyword.value == "out_idx" for a in compilation.args
        ):
            raise self.blocked(compilation, "`out_idx` is for factories of prim_funcs")
        missing = [name for name in self.outputs if name not in self.returned]
        if missing:
            raise self.blocked(self.node, f"the tensor `{missing[0]}` of `T.empty` is not returned")
        factory = set().union(*(assigned_names(line) for line in self.factory_lines)) | set(self.consts)
        for name in (*self.declared, *self.outputs):
            if name in factory | self._inner_names:
                raise self.blocked(self.node, f"`{name}` is both a tensor and another variable; rename one")
        clash = self.consts.keys() & {param.name.value for param in self.configs}
        if clash:
            raise self.blocked(self.node, f"`{min(clash)}` is both an extent and a parameter")
        for position, (line, used) in enumerate(self._later):
            if not isinstance(line, cst.SimpleStatementLine) or all(d.line is not line for d in self._all()):
                continue
            for later, bound in self._later[position + 1 :]:
                if used & bound and all(d.line is not later for d in self._all()):
                    raise self.blocked(later, f"`{min(used & bound)}` changes after a declaration used it")
        around = factory | {param.name.value for param in self.configs}
        for name in _read_before_bound((*self.inner, *self.launches), around):
            raise self.blocked(self.launches[0], f"the launch changes `{name}`, which is bound outside of it")

    def _all(self) -> list[Declared]:
        return [*self.declared.values(), *self.outputs.values()]


def is_return(line: cst.BaseStatement) -> bool:
    """True for a line that only returns."""
    return isinstance(line, cst.SimpleStatementLine) and all(isinstance(small, cst.Return) for small in line.body)


def _singles(line: cst.SimpleStatementLine) -> list[cst.SimpleStatementLine]:
    """A line per small statement; the very line where it has only one."""
    if len(line.body) == 1:
        return [line]
    plain = [cst.SimpleStatementLine([small.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)]) for small in line.body]
    plain[0] = plain[0].with_changes(leading_lines=line.leading_lines)
    plain[-1] = plain[-1].with_changes(trailing_whitespace=line.trailing_whitespace)
    return plain


def _calls_outside_functions(node: cst.CSTNode) -> Iterator[cst.Call]:
    if isinstance(node, cst.Call):
        yield node
    for child in children(node):
        if not isinstance(child, (cst.FunctionDef, cst.Lambda)) and not isinstance(node, (cst.FunctionDef, cst.Lambda)):
            yield from _calls_outside_functions(child)


def _read_before_bound(statements: Sequence[cst.CSTNode], names: set[str]) -> list[str]:
    """Names of the factory that the prim_func binds too, but reads first: in a function of its own it could not."""
    bound = set().union(*(assigned_names(statement) for statement in statements)) & names
    seen: set[str] = set()
    wrong: list[str] = []

    def visit(node: cst.CSTNode) -> None:
        if isinstance(node, (cst.Assign, cst.AnnAssign, cst.AugAssign)):
            if isinstance(node, cst.AugAssign) and isinstance(node.target, cst.Name):
                read(node.target.value)
            if node.value is not None:
                visit(node.value)
            seen.update(assigned_names(node))
        elif isinstance(node, cst.For):
            visit(node.iter)
            seen.update(assigned_names(cst.For(node.target, node.iter, cst.IndentedBlock([]))))
            visit(node.body)
        elif isinstance(node, cst.Name):
            read(node.value)
        elif isinstance(node, (cst.Attribute, cst.Arg)):
            visit(node.value)
        elif isinstance(node, cst.With):
            for item in node.items:
                visit(item.item)
                if item.asname is not None:
                    seen.update(assigned_names(item.asname))
            visit(node.body)
        else:
            for child in children(node):
                visit(child)

    def read(name: str) -> None:
        if name in bound and name not in seen:
            wrong.append(name)

    for statement in statements:
        visit(statement)
    return wrong
