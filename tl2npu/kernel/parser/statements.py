"""Reads a prim_func as the parser of the compiler does, with kinds of values in place of values.

The parser gives every ``if``, ``for``, ``while`` and ``with`` a frame of names, forgotten behind it; evaluates every
part of an expression before the whole; and makes a variable of the device of every number that a name is given.
Source: ``tilelang/language/parser/parser.py``, ``tilelang/language/overrides/parser.py`` and ``parser.py``,
``evaluator.py`` of TVM's script parser; 600 kernels, one for each construct, were given to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.bindings import assigned_names, body_of
from tl2npu.kernel.expressions import code
from tl2npu.kernel.parser.calls import Calls
from tl2npu.kernel.parser.scopes import Frame, Scopes, Surroundings, short, variable
from tl2npu.kernel.parser.values import (
    BITS,
    ODD,
    SOME_ITEMS,
    TEXT,
    UNKNOWN,
    Parsed,
    Stop,
    assigned,
    binary,
    compared,
    joined,
    of_python,
    types_differ,
    unary,
)
from tl2npu.source.literals import number_of
from tl2npu.source.tree import nodes_of

_DEEPEST = 50
_NOT_READ: Mapping[type[cst.CSTNode], str] = {
    cst.Break: "break",
    cst.Continue: "continue",
    cst.Try: "try",
    cst.TryStar: "try",
    cst.Del: "del",
    cst.Import: "import",
    cst.ImportFrom: "import",
    cst.Global: "global",
    cst.Raise: "raise",
    cst.Match: "match",
    cst.ClassDef: "class",
    cst.Return: "return",
}
_OWN_NAMES = (cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp, cst.NamedExpr)


class FrontEnd(Scopes):
    """Reads one kernel; what it finds is in ``found``, in the order of reading."""

    def __init__(self, around: Surroundings) -> None:
        super().__init__(around)
        self.parallel = 0
        self.merged: list[cst.CSTNode] = []
        self.reading: list[cst.FunctionDef] = []
        self.known: set[tuple[object, ...]] = set()
        self.calls = Calls(self)

    # functions ---------------------------------------------------------------------------------------------------

    def kernel(self, node: cst.FunctionDef, params: Mapping[str, Parsed]) -> None:
        """Read a prim_func whose parameters are given."""
        if node.params.posonly_params:
            self.tell("stop", node.params.posonly_params[0], "a prim_func cannot have positional-only parameters (`/`)")
        for param in node.params.params:
            annotation = param.annotation.annotation if param.annotation is not None else None
            plain = type(annotation) is cst.Name and annotation.value in ("int", "float", "bool", "str")
            named = self.around.names.resolve(annotation) if annotation is not None else ""
            if annotation is None or plain or isinstance(annotation, (cst.SimpleString, cst.BinaryOperation)):
                self.tell("stop", param, f"annotate `{param.name.value}` with a TileLang type, such as `T.int32`")
            elif named in ("tilelang.language.bool", "tilelang.language.handle"):
                self.tell("stop", param, f"a kernel cannot take `{param.name.value}`, a `{code(annotation)}`")
        if node.returns is not None and code(node.returns.annotation) != "None":
            self.tell("stop", node.returns, "a prim_func cannot have a return annotation")
        self._body(node, params)

    def macro(self, node: cst.FunctionDef, params: Mapping[str, Parsed]) -> None:
        """Read a macro where it is called: it knows its parameters and what is around it, not the caller's names."""
        key = (id(node), *sorted((name, repr(value)) for name, value in params.items()))
        if node in self.reading or len(self.reading) > _DEEPEST or key in self.known:
            return
        self.known.add(key)
        before = self.frames, self.own, self.outer_stale, self.forgotten
        self.frames, self.outer_stale, self.forgotten = [], {}, {}
        self._body(node, params)
        self.frames, self.own, self.outer_stale, self.forgotten = before

    def _body(self, node: cst.FunctionDef, params: Mapping[str, Parsed]) -> None:
        self.own = frozenset(assigned_names(node.body))
        self.reading.append(node)
        self.frames.append(Frame(dict(params)))
        self.block(body_of(node))
        self.frames.pop()
        self.reading.pop()

    # statements --------------------------------------------------------------------------------------------------

    def block(self, statements: Sequence[cst.CSTNode]) -> None:
        """Read statements in order."""
        for statement in statements:
            for part in statement.body if type(statement) is cst.SimpleStatementLine else [statement]:
                self.statement(part)

    def statement(self, node: cst.CSTNode) -> None:
        """Read one statement."""
        word = _NOT_READ.get(type(node))
        if word is not None:
            self.tell("stop", node, f"`{word}` is not supported in a kernel")
            for name in assigned_names(node):
                self.bind(cst.Name(name), UNKNOWN, node)
        elif type(node) is cst.Assign:
            self._assign(node)
        elif type(node) is cst.AnnAssign:
            self._annotated(node)
        elif type(node) is cst.AugAssign:
            self._augmented(node)
        elif type(node) is cst.Expr:
            value = self.value(node.value)
            if type(node.value) is cst.Comparison:
                self.tell("unused", node, f"`{short(node.value)}` compares and has no effect")
            elif value.kind in ("items", "odd", "buffer") or value == Parsed("number", "float"):
                self.tell("stop", node, f"`{short(node.value)}` is not a statement in a kernel")
        elif type(node) is cst.If:
            self._if(node)
        elif isinstance(node, (cst.For, cst.While)):
            self._loop(node)
        elif type(node) is cst.With:
            with self.frame():
                for item in node.items:
                    opened = self.value(item.item)
                    if opened.kind not in ("frame", "unknown"):
                        self.tell("stop", node, f"`with {short(item.item)}` opens no block of a kernel")
                    index = opened.dtype or "int*"
                    if item.asname is not None:
                        self.bind_all(item.asname.name, Parsed("device", index), node)
                self.block(body_of(node))
        elif type(node) is cst.Assert:
            self._assert(node)
        elif type(node) is cst.FunctionDef:
            self._function(node)

    def _function(self, node: cst.FunctionDef) -> None:
        if not node.decorators:
            text = f"a prim_func cannot contain a function: define `{node.name.value}` before it"
            self.tell("stop", node, text)
        else:
            self.tell("stop", node, f"define `{node.name.value}` before the prim_func, not in it")
        self.bind(node.name, UNKNOWN, node)

    def _assert(self, node: cst.Assert) -> None:
        if self.value(node.test).on_device:
            self.condition(node.test, "assert")
        if node.msg is None:
            self.tell("stop", node, f"`{short(node)}` needs a message in a kernel")

    def _given(self, node: cst.CSTNode, value: cst.BaseExpression) -> Parsed:
        """What a name gets of an expression."""
        given = self.value(value)
        try:
            if given.kind in ("none", "odd", "done", "number", "text", "region"):
                return assigned(given)
        except Stop:
            text = f"`{short(value)}` returns no value"
            if given.kind != "done":
                text = f"a kernel cannot assign `{short(value)}` to a name"
            self.tell("stop", node, text)
            return UNKNOWN
        return Parsed("device") if given == UNKNOWN and self.calls.is_number(value) else given

    def _assign(self, node: cst.Assign) -> None:
        value = self._given(node, node.value)
        for item in node.targets:
            self._assign_to(item.target, value, node)
            if type(item.target) is cst.Subscript and self.value(node.value).kind in ("text", "items"):
                self.tell("stop", node, f"`{short(node.value)}` cannot be stored in an element")

    def _assign_to(self, target: cst.BaseExpression, value: Parsed, node: cst.CSTNode) -> None:
        if type(target) is cst.Subscript:
            self.fits(node, self.value(target).own, value)
            self._store(target)
        elif type(target) is cst.Name and self.is_cell(target.value):
            return
        else:
            fresh = value.kind == "cell" and not self._allocates(node)
            self.bind(target, Parsed("device", value.type) if fresh else value, node)

    def _allocates(self, node: cst.CSTNode) -> bool:
        return isinstance(node, (cst.Assign, cst.AnnAssign)) and type(node.value) is cst.Call

    def _store(self, target: cst.Subscript) -> None:
        self.value(target)
        if any(type(item.slice) is cst.Slice for item in target.slice):
            self.tell("index", target, f"`{short(target)}` is not a single element: it cannot be assigned")

    def _annotated(self, node: cst.AnnAssign) -> None:
        if node.value is None:
            self.tell("annotation", node, f"`{short(node)}` assigns no value")
            return
        value = self._given(node, node.value)
        annotation = node.annotation.annotation
        resolved = self.around.names.resolve(annotation) or ""
        op = self.around.operator(resolved)
        typed = op is not None and op.kind is Kind.SCALAR
        if not typed and (not isinstance(annotation, (cst.Name, cst.SimpleString)) or not resolved.startswith("til")):
            text = f"annotate with a TileLang type, such as `T.int32`, not with `{code(annotation)}`"
            self.tell("annotation", node, text)
        if type(node.target) is cst.Name:
            self._assign_to(node.target, value, node)
        else:
            self.tell("stop", node, f"`{short(node.target)}` cannot have an annotation")

    def _augmented(self, node: cst.AugAssign) -> None:
        old, value = self.value(node.target), self.value(node.value)
        operator = getattr(cst, type(node.operator).__name__.removesuffix("Assign"))  # Add of AddAssign
        result = self._sum(node, operator(), old, value)
        if type(node.target) is cst.Subscript:
            self._store(node.target)
        elif type(node.target) is cst.Name:
            if not self.is_cell(node.target.value):
                self.bind(node.target, variable(result), node)
        else:
            self.tell("stop", node, f"a kernel cannot assign to `{short(node.target)}`, only to names and elements")

    def _if(self, node: cst.If) -> None:
        arms: list[Frame] = []
        inner = body_of(node)
        merged = node.orelse is None and len(inner) == 1 and _is_plain(inner[0])
        alone = self.parallel or node.orelse is not None or merged or node in self.merged
        self.merged += inner if merged else []
        value = self.condition(node.test, "if" if alone else "")
        if value.kind in ("text", "none", "items", "odd", "buffer"):
            self.tell("stop", node.test, f"`{short(node.test)}` is not a condition: write a comparison")
        bodies = [inner]
        if type(node.orelse) is cst.Else:
            bodies.append(body_of(node.orelse))
        elif node.orelse is not None:
            bodies.append([node.orelse])
        for body in bodies:
            made = Frame()
            self.frames.append(made)
            self.block(body)
            arms.append(self.frames.pop())
        for arm in arms:
            self.forget(arm)

    def _loop(self, node: cst.For | cst.While) -> None:
        if node.orelse is not None:
            self.tell("stop", node.orelse, "the parser ignores the `else` of a loop")
        parallel, value = False, UNKNOWN
        if type(node) is cst.For:
            value = self.value(node.iter)
            if value.kind not in ("frame", "unknown") or type(node.iter) is cst.GeneratorExp:
                self.tell("stop", node, f"a kernel cannot loop over `{short(node.iter)}`")
            parallel = type(node.iter) is cst.Call and self.calls.name_of(node.iter) == "Parallel"
        for name in assigned_names(node.body):
            last = [part for part in nodes_of(node.body, *_BINDING) if name in assigned_names(part)]
            if last and not self.is_cell(name):
                self.mark(name, last[-1])
        with self.frame():
            if isinstance(node, cst.For):
                self.bind_all(node.target, Parsed("device", value.dtype or "int*"), node)
            elif self.condition(node.test, "").kind == "number":
                self.tell("stop", node, f"`{short(node.test)}` never changes in the kernel")
            self.parallel += parallel
            self.block(body_of(node))
            self.parallel -= parallel

    # expressions -------------------------------------------------------------------------------------------------

    def condition(self, node: cst.BaseExpression, where: str) -> Parsed:
        """An expression that is used as a condition; ``where`` is empty if a number is good there."""
        value = self.value(node)
        if where and value.is_number:
            text = f"`{short(node)}` is a number, not a condition: write `{short(node)} != 0`"
            self.tell("number", node, text)
        return value

    def _try(self, node: cst.CSTNode, function: Callable[[], Parsed]) -> Parsed:
        try:
            return function()
        except Stop as stop:
            self.tell("stop", node, f"`{short(node)}` {stop}")
            return UNKNOWN

    def value(self, node: cst.BaseExpression) -> Parsed:
        """What the parser makes of an expression."""
        if type(node) is cst.Name:
            return self.name(node)
        if isinstance(node, (cst.Integer, cst.Float)):
            return of_python(number_of(node))
        if type(node) is cst.Imaginary:
            return ODD
        if isinstance(node, (cst.SimpleString, cst.ConcatenatedString, cst.FormattedString)):
            for part in nodes_of(node, cst.FormattedStringExpression):
                self.value(part.expression)
            is_bytes = type(node) is cst.SimpleString and "b" in node.prefix
            return ODD if is_bytes else TEXT
        if isinstance(node, _OWN_NAMES):
            text = f"`{short(node)}` is not supported in a kernel: it defines a name inside an expression"
            self.tell("stop", node, text)
            if type(node) is cst.NamedExpr:
                self.bind(node.target, self.value(node.value), node)
            return UNKNOWN
        if isinstance(node, (cst.Ellipsis, cst.Lambda, cst.Dict, cst.Set)):
            return ODD
        if isinstance(node, (cst.Tuple, cst.List)):
            starred = any(type(element) is cst.StarredElement for element in node.elements)
            items = tuple(self.value(element.value) for element in node.elements)
            return SOME_ITEMS if starred else Parsed("items", items=items)
        if type(node) is cst.BinaryOperation:
            left, right = self.value(node.left), self.value(node.right)
            return self._sum(node, node.operator, left, right)
        if type(node) is cst.UnaryOperation:
            return self._unary(node)
        if type(node) is cst.BooleanOperation:
            return self._both(node)
        if type(node) is cst.Comparison:
            return self._comparison(node)
        if type(node) is cst.IfExp:
            test = self.value(node.test)
            if test.on_device:
                self.tell("choice", node, f"`{short(node.test)}` is known at run time only")
            return joined(self.value(node.body), self.value(node.orelse))
        if type(node) is cst.Call:
            return self.calls.call(node)
        if type(node) is cst.Subscript:
            return self.calls.subscript(node)
        return self._attribute(node) if type(node) is cst.Attribute else UNKNOWN

    def _sum(self, node: cst.CSTNode, operator: cst.BaseBinaryOp, left: Parsed, right: Parsed) -> Parsed:
        made = self._try(node, lambda: binary(operator, left, right))
        if made.on_device:
            self.fits(node, made.dtype, left, right)
        if made.on_device and isinstance(operator, BITS):  # ``bitwise_and(x, int)`` of TVM takes an int32 in any case
            self.fits(node, "int32", *(side for side in (left, right) if side.kind == "number"))
        self._needs_half(node, left, right)
        return made

    def _needs_half(self, node: cst.CSTNode, *parts: Parsed) -> None:
        if not self.parallel and all(part.on_device and part.own == "float16" for part in parts):
            self.tell("half", node, f"`{short(node)}` is arithmetic of float16 scalars, which the NPU does not have")

    def _unary(self, node: cst.UnaryOperation) -> Parsed:
        if type(node.operator) is not cst.Not:
            part = self.value(node.expression)
            if type(node.operator) is cst.Minus:
                self._needs_half(node, part)
            return self._try(node, lambda: unary(node.operator, part))
        value = self.value(node.expression)
        if value.on_device:
            self.condition(node.expression, "not")
            return Parsed("device", "bool")
        return Parsed("unknown" if value.kind == "unknown" else "number", "bool")

    def _both(self, node: cst.BooleanOperation) -> Parsed:
        parts = [node.left, node.right]
        values = [self.value(part) for part in parts]
        if any(value.kind == "done" for value in values):
            self.tell("stop", node, f"`{short(node)}` uses a statement as a condition: write `if`")
            return UNKNOWN
        if any(value.on_device for value in values):
            for part, value in zip(parts, values, strict=True):
                self.condition(part, "and")
                if value.kind in ("none", "text", "items", "odd", "buffer", "done"):
                    self.tell("stop", part, f"`{short(part)}` is not a condition")
            return Parsed("device", "bool")
        if "unknown" in (values[0].kind, values[1].kind):
            return Parsed("unknown", "bool") if {value.type for value in values} == {"bool"} else UNKNOWN
        return joined(*values) if values[0].kind == "number" else UNKNOWN

    def _comparison(self, node: cst.Comparison) -> Parsed:
        values = [self.value(node.left), *(self.value(part.comparator) for part in node.comparisons)]
        if len(node.comparisons) > 1:  # told by the chains of tl2npu.kernel.parser.front_end
            on_device = any(value.on_device for value in values)
            return Parsed("device" if on_device else "unknown", "bool")
        told = types_differ(*values) if isinstance(node.comparisons[0].operator, _ORDER) else ""
        if told:
            self.tell("types", node, f"`{short(node)}` {told}: convert one of them", tuple(values))
        else:
            for number, other in (values, values[::-1]):
                if number.kind == "number" and other.on_device:
                    self.fits(node, other.dtype, number)
        return self._try(node, lambda: compared(node.comparisons[0].operator, values[0], values[1]))

    def _attribute(self, node: cst.Attribute) -> Parsed:
        op = self.around.operator(self.around.names.resolve(node) or "")
        if op is not None and op.kind is not Kind.DECORATOR:
            return ODD
        if type(node.value) is cst.Name and any(node.value.value in frame.values for frame in self.frames):
            base = self.name(node.value)
            if base.kind == "buffer" and node.attr.value == "shape":
                return Parsed("items", items=(Parsed("number", "int"),) * base.rank) if base.rank else SOME_ITEMS
            if base.kind == "buffer" and node.attr.value == "dtype":
                return TEXT
        elif type(node.value) is cst.Name:
            self.name(node.value)
        return UNKNOWN


_ORDER = (cst.Equal, cst.NotEqual, cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual)
_BINDING = (cst.Assign, cst.AnnAssign, cst.AugAssign, cst.For, cst.With)


def _is_plain(node: cst.CSTNode) -> bool:
    """An ``if`` that is the whole body of another one: the compiler joins their conditions with ``&&``."""
    return type(node) is cst.If and node.orelse is None and not nodes_of(node.body, cst.For)
