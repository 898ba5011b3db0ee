"""Calls and subscripts, as the parser of a prim_func reads them: what an operator takes, and what it gives."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import libcst as cst

from tl2npu.dialects.catalogue import Kind, Operator
from tl2npu.dialects.functions import OF_FLOATS
from tl2npu.kernel.expressions import code
from tl2npu.kernel.parser.scalar_types import Type, exact, family, mismatch, of_sum
from tl2npu.kernel.parser.scopes import Scopes, What
from tl2npu.kernel.parser.values import DONE, SOME_ITEMS, TILES, UNKNOWN, WIDE, Parsed, named, wider
from tl2npu.source.tree import argument, children, mentioned, nodes_of

_NUMBERS = frozenset("abs bool divmod float int max min pow round".split())
"""Functions of Python that ask a number for its value."""
_CONTAINERS = frozenset("dict enumerate filter list map reversed set sorted tuple zip".split())
_ANY = frozenset({"any", "all", "max", "min"})
_STATEMENTS = frozenset({Kind.COPY, Kind.GEMM, Kind.MMA, Kind.TILE, Kind.REDUCE, Kind.FILL, Kind.SYNC})
_CONDITIONS = frozenset("And Or Not EQ NE LT LE GT GE isnan isinf isfinite isnullptr likely any_of all_of bool".split())
_COMPARISONS = frozenset({"EQ", "NE", "LT", "LE", "GT", "GE"})
_CONNECTIVES = frozenset({"And", "Or", "Not"})
_OF_ARGUMENTS = frozenset("""
    min max abs fabs ceildiv floordiv floormod truncdiv truncmod pow clamp bitwise_and bitwise_or bitwise_xor
    bitwise_not shift_left shift_right Add Sub Mul Div Mod FloorDiv FloorMod Min Max
    """.split())
_OF_TYPE = {"cast": 1, "Cast": 0, "reinterpret": 0, "infinity": 0, "min_value": 0, "max_value": 0}
"""Functions that give the element type that they are given, and where."""
_SIZES = frozenset({"symbolic", "dynamic"})
_CHOICES = frozenset({"if_then_else", "Select"})
_CONSTANT = ("number", "text", "none")
_TEXTS = (cst.SimpleString, cst.ConcatenatedString, cst.FormattedString)


class Calls:
    """The part of :class:`tl2npu.kernel.parser.statements.FrontEnd` that reads calls and subscripts."""

    def __init__(self, front_end: Scopes) -> None:
        self.front_end = front_end

    def name_of(self, node: cst.Call) -> str:
        """The name of the operator that is called; empty for anything else."""
        op = self._operator(node)
        return op.name if op is not None else ""

    def _operator(self, node: cst.Call) -> Operator | None:
        around = self.front_end.around
        if type(node.func) is cst.Name and any(node.func.value in frame.values for frame in self.front_end.frames):
            return None
        if type(node.func) is cst.Name and node.func.value == "range":
            return around.operator("tilelang.language.serial")
        return around.operator(around.names.resolve(node.func) or "")

    def is_number(self, node: cst.BaseExpression) -> bool:
        """True for what is a number whatever its names stand for: ``N - M``, ``2 * M``, ``T.ceildiv(M, 8)``."""
        if type(node) is cst.BinaryOperation:
            parts = (node.left, node.right)
            if any(isinstance(part, (*_TEXTS, cst.Tuple, cst.List)) for part in parts):
                return False
            return type(node.operator) is not cst.Add or any(map(self.is_number, parts))
        if type(node) is cst.Call:
            builtin = type(node.func) is cst.Name and node.func.value in ("min", "max")
            return builtin or self.name_of(node) in _OF_ARGUMENTS
        return isinstance(node, (cst.Integer, cst.Float))

    def call(self, node: cst.Call) -> Parsed:
        """Any call."""
        values = [self.front_end.value(arg.value) for arg in node.args]
        op = self._operator(node)
        if op is not None:
            return self._of_operator(op, node, values)
        if type(node.func) is cst.Name:
            name = node.func.value
            if (
                self.front_end.name(node.func).kind in ("unknown", "odd")
                and name not in self.front_end.around.names.functions
            ):
                return self._of_python(name, node, values)
            return self._of_function(node, values)
        if type(node.func) is cst.Attribute:
            resolved = self.front_end.around.names.resolve(node.func) or ""
            if resolved.startswith("math."):
                whole = resolved in ("math.ceil", "math.floor", "math.gcd")
                return self._of_python("int" if whole else "float", node, values)
            if node.func.attr.value == "astype" and node.args and self.front_end.value(node.func.value).on_device:
                return Parsed("device", self._type(node.args[0].value))
            self.front_end.value(node.func)
        return UNKNOWN

    def _stop(self, node: cst.CSTNode, text: str, what: What = "stop") -> None:
        self.front_end.tell(what, node, text)

    def _of_python(self, name: str, node: cst.Call, values: Sequence[Parsed]) -> Parsed:
        if name in _NUMBERS or name in _ANY:
            given = list(values)
            if len(values) == 1 and name in _ANY and values[0].items is not None:
                given = list(values[0].items)
            if any(value.on_device for value in given):
                self._stop(node, f"`{code(node)}` calls a Python function on a run-time value")
            types: Mapping[str, Type] = {"int": "int", "round": "int", "float": "float", "bool": "bool"}
            return Parsed("number", types[name]) if name in types else UNKNOWN
        if name in _CONTAINERS:
            return SOME_ITEMS
        if name in ("isinstance", "callable", "hasattr", "any", "all"):
            return Parsed("number", "bool")
        return Parsed("number", "int") if name == "len" else UNKNOWN

    def _of_function(self, node: cst.Call, values: Sequence[Parsed]) -> Parsed:
        """A macro is read in place, another function runs in Python."""
        assert type(node.func) is cst.Name
        functions = self.front_end.around.names.functions.get(node.func.value, ())
        if len(functions) != 1:
            return UNKNOWN
        function = functions[0]
        if not any(self._is_macro(item.decorator) for item in function.decorators):
            loops = [loop.iter for loop in nodes_of(function.body, cst.For)]
            if any(type(loop) is cst.Call and self._makes_frame(loop) for loop in loops):
                text = f"`{node.func.value}` contains kernel loops: decorate it with `@T.macro`"
                self._stop(node, text)
            late = {
                param.name.value
                for param, value in zip(function.params.params, values, strict=False)
                if value.on_device
            }
            for choice in nodes_of(function.body, cst.If, cst.While, cst.IfExp):
                assert isinstance(choice, (cst.If, cst.While, cst.IfExp))
                if type(choice.test) is cst.Comparison and late & mentioned(choice.test):
                    self._stop(node, f"`{node.func.value}` tests `{code(choice.test)}`, known at run time only")
            return UNKNOWN
        params: dict[str, Parsed] = {}
        order = [*function.params.posonly_params, *function.params.params, *function.params.kwonly_params]
        for param in order:
            params[param.name.value] = UNKNOWN if param.default is None else self.front_end.value(param.default)
        for star in (function.params.star_arg, function.params.star_kwarg):
            if type(star) is cst.Param:
                params[star.name.value] = UNKNOWN
        if not any(arg.star for arg in node.args):
            for index, (arg, value) in enumerate(zip(node.args, values, strict=True)):
                if arg.keyword is not None:
                    params[arg.keyword.value] = value
                elif index < len(order):
                    params[order[index].name.value] = value
        self.front_end.macro(function, params)
        return UNKNOWN

    def _is_macro(self, decorator: cst.BaseExpression) -> bool:
        func = decorator.func if type(decorator) is cst.Call else decorator
        return self.front_end.around.names.resolve(func) == "tilelang.language.macro"

    def _makes_frame(self, node: cst.Call) -> bool:
        resolved = self.front_end.around.names.resolve(node.func) or ""
        op = self.front_end.around.operator(resolved)
        return op is not None and op.kind is Kind.LOOP

    # operators ---------------------------------------------------------------------------------------------------

    def _of_operator(self, op: Operator, node: cst.Call, values: Sequence[Parsed]) -> Parsed:
        if op.kind is Kind.ALLOC:
            return self._allocation(op, node, values)
        if op.kind in (Kind.LOOP, Kind.LAUNCH, Kind.SCOPE):
            if op.kind is not Kind.SCOPE:
                self._bounds(op, node, values)
            widths = {"" if value.kind == "unknown" else value.dtype for value in values if value.kind not in _CONSTANT}
            return Parsed("frame", widths.pop() or "int*" if len(widths) == 1 else "int*" if widths else "int32")
        if op.kind in _STATEMENTS:
            self._buffers(op, node, values)
            self._indices(op, node)
            return DONE
        self._indices(op, node)
        return self._scalar(op, node, values) if op.kind is Kind.SCALAR else UNKNOWN

    def _bounds(self, op: Operator, node: cst.Call, values: Sequence[Parsed]) -> None:
        for index, (arg, value) in enumerate(zip(node.args, values, strict=True)):
            if arg.star == "**" or (arg.keyword is not None and arg.keyword.value not in ("start", "stop")):
                continue
            if op.name == "Persistent" and index == 0 and value.kind == "items":
                continue  # its domain is a list of extents
            no_count = op.kind is Kind.LAUNCH and value == Parsed("number", "bool")
            if value.type == "float" and value.kind in ("number", "device", "cell"):
                self._stop(arg.value, f"`{code(arg.value)}` is a float, but T.{op.name} takes integers", "size")
            elif no_count or value.kind in ("text", "none", "odd", *TILES) or (value.kind == "items" and not arg.star):
                self._stop(arg.value, f"`{code(arg.value)}` is not an integer", "size")

    def _buffers(self, op: Operator, node: cst.Call, values: Sequence[Parsed]) -> None:
        try:
            bound = op.bind([(arg.keyword.value if arg.keyword else None, arg.value) for arg in node.args])
        except TypeError:
            return
        for arg, value in zip(node.args, values, strict=True):
            name = next((name for name, given in bound.items() if given is arg.value), "")
            if op.takes_buffer(name) and value.kind in ("number", "none", "text", "odd"):
                self._stop(arg.value, f"`{code(arg.value)}` is not a tile or a tensor")

    def _indices(self, op: Operator, node: cst.Call) -> None:
        """Tell what makes an index of a transfer an int64."""
        for arg in node.args if op.kind in (Kind.COPY, Kind.ATOMIC) else ():
            for item in arg.value.slice if type(arg.value) is cst.Subscript else ():
                index = item.slice
                for part in [index.lower, index.upper] if isinstance(index, cst.Slice) else children(index)[:1]:
                    if isinstance(part, cst.BaseExpression):
                        self._wide(part)

    def _wide(self, index: cst.BaseExpression) -> None:
        """Tell what makes an index an int64: the names and elements in it, or all of it."""
        if self.front_end.value(index).own == WIDE:
            inner = [part for part in _leaves(index) if self.front_end.value(part).own == WIDE]
            for part in inner or [index]:
                self.front_end.tell("wide", part, f"`{code(part)}` is an {WIDE}")

    def _allocation(self, op: Operator, node: cst.Call, values: Sequence[Parsed]) -> Parsed:
        given = {arg.keyword.value: index for index, arg in enumerate(node.args) if arg.keyword is not None}
        if any(arg.star for arg in node.args):
            return UNKNOWN
        if op.name == "alloc_var":
            first, start = given.get("dtype", 0), given.get("init", 1)
            found = self._type(node.args[first].value) if first < len(node.args) else ""
            if start < len(node.args):
                self.front_end.fits(node, found, values[start])
            return Parsed("cell", found)
        shape, dtype = given.get("shape", 0), given.get("dtype", 1)
        if shape >= len(node.args):
            return UNKNOWN
        value = values[shape]
        items = value.items if value.kind == "items" else (value,)
        for item in items or ():
            if item.on_device:
                text = f"the size `{code(node.args[shape].value)}` is known at run time only"
                self._stop(node.args[shape].value, text, "size")
            elif item == Parsed("number", "float"):
                text = f"the shape `{code(node.args[shape].value)}` contains a float"
                self._stop(node.args[shape].value, text, "size")
        kind = ""
        if dtype < len(node.args):
            python = code(node.args[dtype].value) in ("float", "int", "bool")
            if python or values[dtype].kind in ("none", "number", "device"):
                text = f"`{code(node.args[dtype].value)}` is not an element type"
                self._stop(node.args[dtype].value, text)
            kind = self._type(node.args[dtype].value)
        if value.kind == "unknown" or items is None:
            return Parsed("buffer", kind)
        return Parsed("buffer", kind, rank=len(items))

    def _type(self, node: cst.BaseExpression) -> str:
        return self.front_end.around.type_of(code(node).strip("\"'"))

    def _scalar(self, op: Operator, node: cst.Call, values: Sequence[Parsed]) -> Parsed:
        name = op.name
        if name in _SIZES:
            given = argument(node, "dtype", 1)
            return Parsed("device", "int32" if given is None else self._type(given))
        args = [arg.value for arg in node.args if arg.keyword is None and not arg.star]
        if len(args) != len(values):
            return UNKNOWN
        if name in _CHOICES and len(args) == 3:
            self.front_end.condition(args[0], "choice")
            yes, no = (value.own for value in values[1:])
            if name == "Select" and mismatch(yes, no):
                self.front_end.tell("types", node, f"`{code(node)}` selects a {yes} or a {no}: convert one of them")
            self.front_end.fits(node, of_sum(yes, no), *values[1:])
            return Parsed("device", of_sum(yes, no))
        whole = next((arg for arg, value in zip(args, values, strict=True) if value.kind == "buffer"), None)
        if whole is not None and name in ("min", "max"):
            self._stop(node, f"`{code(node)}` uses a whole tile: index an element")
        if name in _CONNECTIVES:
            for arg, value in zip(args, values, strict=True):
                if value.kind == "number":
                    self.front_end.tell("connective", node, f"T.{name} does not take the Python value `{code(arg)}`")
            if all(value.kind == "number" for value in values):
                return Parsed("number", "bool")
        if name in _COMPARISONS and len(values) == 2:
            left, right = (value.own for value in values)
            if mismatch(left, right):
                self.front_end.tell("types", node, f"`{code(node)}` compares {named(left)} with {named(right)}")
        if name in _CONDITIONS:
            return Parsed("device", "bool")
        if name in _OF_ARGUMENTS:
            if not any(value.on_device for value in values):
                return UNKNOWN
            self.front_end.fits(node, wider(*values), *values)
            return Parsed("device", wider(*values))
        if name in _OF_TYPE and args:
            return self._of_type(node, name, self._type(args[min(_OF_TYPE[name], len(args) - 1)]), values)
        if name in OF_FLOATS:
            return Parsed("device", values[0].dtype if values and values[0].type == "float" else "float*")
        return self._of_type(node, name, self._type(cst.Name(name)), values)

    def _of_type(self, node: cst.Call, name: str, dtype: str, values: Sequence[Parsed]) -> Parsed:
        """A function that gives an element type: a number in it must be one of its values."""
        number = next((value.number for value in values if value.number is not None), None)
        if name == "infinity":
            if family(dtype) == "int":
                self.front_end.tell("value", node, f"`{code(node)}`: {dtype.rstrip('*')} has no infinity")
            number = math.inf
        elif name != "reinterpret":
            self.front_end.fits(node, dtype, *values)
        return Parsed("device", dtype, number=number if name == "infinity" or exact(dtype) else None)

    # subscripts --------------------------------------------------------------------------------------------------

    def subscript(self, node: cst.Subscript) -> Parsed:
        """``tile[i, j]``, ``tensor[a:b, 0]``, ``sizes[1]``."""
        base = self.front_end.value(node.value)
        indices = [item.slice for item in node.slice]
        values = [self._index(index, base) for index in indices]
        if base.kind == "items":
            if values and values[0].on_device:
                self._stop(node, f"`{code(node)}` indexes a Python sequence with a run-time value", "sequence")
            literal = indices[0].value if type(indices[0]) is cst.Index else None
            if type(literal) is cst.Integer and base.items is not None and int(literal.value, 0) < len(base.items):
                return base.items[int(literal.value, 0)]
            return UNKNOWN if type(indices[0]) is cst.Index else SOME_ITEMS
        if base.kind != "buffer":
            if base.kind == "odd" and values and values[0].on_device:
                self._stop(node, f"`{code(node)}` indexes a Python object with a run-time value", "sequence")
            return UNKNOWN
        count = len(values)
        if count == 1 and values[0].kind == "items":
            count = len(values[0].items) if values[0].items is not None else base.rank or 0
        elif count == 1 and values[0].kind == "unknown":
            count = base.rank or 1
        if any(type(index) is cst.Index and index.star for index in indices):
            self._stop(node, f"`{code(node)}` unpacks an index with `*`, which is not supported", "index")
        elif base.rank is not None and count != base.rank:
            text = f"`{code(node)}` has {count} {'index' if count == 1 else 'indices'}, but `{code(node.value)}` has"
            self._stop(node, f"{text} {base.rank} {'axis' if base.rank == 1 else 'axes'}", "index")
        if any(type(index) is cst.Slice for index in indices):
            return Parsed("region", base.dtype)
        return Parsed("device", base.dtype)

    def _index(self, index: cst.BaseSlice, base: Parsed) -> Parsed:
        if type(index) is cst.Index:
            value = self.front_end.value(index.value)
            if base.kind == "buffer" and (value.type == "float" and value.kind in ("number", "device", "cell")):
                self._stop(index.value, f"the index `{code(index.value)}` is a float: divide with `//`", "index")
            elif base.kind == "buffer" and value.kind in ("none", "odd", "text"):
                self._stop(index.value, f"`{code(index.value)}` cannot index a tile", "index")
            return value
        assert type(index) is cst.Slice
        for part in (index.lower, index.upper, index.step):
            if part is not None and self.front_end.value(part).type == "float" and base.kind == "buffer":
                self._stop(part, f"the index `{code(part)}` is a float: divide with `//`", "index")
        if index.step is not None and base.kind == "buffer" and code(index.step) not in ("1", "None"):
            self._stop(index.step, f"a tile slice cannot have a step: `{code(index)}`", "index")
        return Parsed("number", "int")


def _leaves(node: cst.CSTNode) -> list[cst.BaseExpression]:
    """The names and elements of an expression, outermost first; nothing inside of an element's own index or a call."""
    if isinstance(node, (cst.Name, cst.Subscript)):
        return [node]
    return [] if isinstance(node, cst.Call) else [leaf for child in children(node) for leaf in _leaves(child)]
