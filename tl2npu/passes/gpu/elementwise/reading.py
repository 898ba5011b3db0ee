"""Reads the expressions of a ``T.Parallel`` body out of the syntax tree."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cached_property, reduce

import libcst as cst

from tl2npu.kernel import element_types
from tl2npu.kernel.environment import Env
from tl2npu.kernel.expressions import code
from tl2npu.kernel.float_scalars import FloatScalars
from tl2npu.kernel.memory import alignment
from tl2npu.kernel.model import Let, Loop, Memory, Operand
from tl2npu.kernel.ranges.bounds import Bounds
from tl2npu.kernel.ranges.iterations import may_meet
from tl2npu.kernel.ranges.reach import Reach, lies_inside, parents_of
from tl2npu.kernel.simplified import simplified
from tl2npu.kernel.symbolic import Sym, const, var
from tl2npu.passes.gpu.elementwise import functions, truths
from tl2npu.passes.gpu.elementwise.nest import Axis, Nest
from tl2npu.passes.gpu.elementwise.tree import Expr, Span, binary, call, joined, number, parsed, show, with_args
from tl2npu.passes.job import Job
from tl2npu.passes.writing.substitute import substituted
from tl2npu.source.signs import COMPARISONS, sign_of
from tl2npu.source.tree import mentioned, names_in, nodes_of

_ROW, _COLUMN = frozenset("r"), frozenset("c")
OWN = "own"
"""A number that is written in the type of the tiles beside it."""
_NONE: frozenset[str] = frozenset()
_TILE = 2**20
"""More bytes than any memory of a core has (facts 2), and so more elements than a tile has along an axis."""

_OF_INTEGERS = (
    *(cst.Add, cst.Subtract, cst.Multiply, cst.FloorDivide, cst.Modulo),
    *(cst.LeftShift, cst.RightShift, cst.BitAnd, cst.BitOr, cst.BitXor),
)


class Reading:
    """Expressions of one nest; ``local`` holds what names that are bound inside of it stand for.

    ``types``: the element types that the file gives to names; ``settled`` those that can only be float32;
    ``whole_tiles`` those that hold whole numbers only.
    """

    def __init__(
        self,
        job: Job,
        nest: Nest,
        types: Mapping[str, frozenset[str]] | None = None,
        settled: frozenset[str] = frozenset(),
        whole_tiles: frozenset[str] = frozenset(),
    ) -> None:
        self.evaluator = job.located.evaluator
        self.nest = nest
        self.local: dict[str, Expr] = {}
        self.types = types or {}
        self.settled = settled
        self.whole_tiles = whole_tiles
        self._late = job.late
        self._judge = job.judge
        self._kernel = job.kernel
        self._factory = job.located.factory
        self._given = self._given_integers()
        self._integers = set(self._given)
        lets = [stmt for stmt in job.kernel.walk() if isinstance(stmt, Let)]
        others: set[str] = set()
        uncertain: set[str] = set()
        self._certain = set(self._given)
        for stmt in lets:
            whole = self.is_integer_number(stmt.value.node, stmt.env)
            (self._integers if whole else others).add(stmt.name)
            operand = self.evaluator.operand(stmt.value.node, stmt.env)
            typed = operand is not None and element_types.is_integer(self.typed(operand.buffer.dtype))
            (self._certain if typed or self.is_integer(stmt.value.node) else uncertain).add(stmt.name)
        self._integers -= others
        self._certain -= uncertain
        self.floats = FloatScalars(job.kernel, self.evaluator, lambda dtype: element_types.is_float(self.typed(dtype)))
        self._floats: dict[str, str] = {}
        for stmt in lets:
            dtype = self.float_type(code(stmt.value.node)) if not self.is_whole(stmt.value.node) else ""
            self._floats[stmt.name] = dtype if self._floats.get(stmt.name, dtype) == dtype else ""

    def is_real(self, value: Expr) -> bool:
        """True for a number that is a float32 for TVM: no integer, and not in the type of halves."""
        if value.name:
            return False
        return not self.is_whole(parsed(value.text)) and not element_types.is_own(self.float_type(value.text))

    def is_whole(self, node: cst.BaseExpression) -> bool:
        """True for arithmetic of integers only, all of them given to the kernel."""
        return _is_whole(node, self._given)

    def is_integer(self, node: cst.BaseExpression) -> bool:
        """The same, and names of the kernel may stand for some of them."""
        return _is_whole(node, self._certain)

    def _given_integers(self) -> set[str]:
        """Block indices, loop variables, sizes of tensors, and parameters that are integers by type or default."""
        kernel = self._kernel
        found = set(kernel.launch.names) if kernel.launch is not None else set()
        found |= {item.name for stmt in kernel.walk() if isinstance(stmt, Loop) for item in stmt.ranges}
        found |= {name for buffer in kernel.buffers.values() for size in buffer.shape for name in size.variables()}
        given = nodes_of(self._factory.node.params, cst.Param) if self._factory is not None else ()
        found |= {param.name.value for param in given if isinstance(param.default, cst.Integer)}
        return found | {name for name, param in kernel.scalars.items() if self._is_declared_as_integer(param)}

    def _is_declared_as_integer(self, param: cst.Param) -> bool:
        given = param.annotation.annotation if param.annotation is not None else None
        dotted = self.evaluator.names.resolve(given) or "" if given is not None else ""
        return element_types.is_integer(dotted.rpartition(".")[2])

    def lies_inside(self, operand: Operand) -> bool:
        """True if an element of a tile lies inside of it, for every iteration of the nest."""
        return operand.buffer.memory is Memory.GM or lies_inside(self.bounds, operand)

    def meets_others(self, value: Expr, target: Expr) -> bool:
        """Whether a value may read an element of its destination that another iteration writes."""
        written = target.load
        assert written is not None
        reads = [part.load for part in value.loads if part.load is not None]
        reads += [inner for load in reads for inner in load.loads]
        variables = [axis.var for axis in (self.nest.rows, self.nest.columns) if axis is not None]
        return any(may_meet(self.bounds, variables, variables, load, written) for load in reads)

    @cached_property
    def bounds(self) -> Bounds:
        """What is known of the variables in the nest."""
        inner = self.nest.loops[-1]
        return Reach(self._kernel, self.evaluator).bounds(parents_of(self._kernel, inner), inner)

    def is_below(self, value: Sym, limit: int) -> bool:
        """True if an integer is between ``-limit`` and ``limit``, without these, in every turn."""
        tiles = (buffer.shape for buffer in self._kernel.buffers.values() if buffer.memory is not Memory.GM)
        small = tuple(const(_TILE - 1) - size for shape in tiles for size in shape)
        known = replace(self.bounds, facts=(*self.bounds.facts, *small))
        return all(known.is_not_negative(const(limit - 1) - side) for side in (value, -value))

    def only_here(self, name: str) -> bool:
        """Whether a name occurs in the nest only."""
        inside = sum(found.value == name for found in names_in(self.nest.node))
        return inside == sum(found.value == name for found in names_in(self._kernel.node))

    def value(self, node: cst.BaseExpression, env: Env) -> Expr:
        """The meaning of what is stored, without what the compiler drops: ``x[i] - 0`` is a copy for it."""
        loads = self.evaluator.loads(node, env)
        whole = bool(loads) and all(element_types.is_integer(self.typed(load.buffer.dtype)) for load in loads)
        found = simplified(node, lambda part: self.evaluator.number(part, env), of_integers=whole)
        return self.expression(found, env)

    def expression(self, node: cst.BaseExpression, env: Env) -> Expr:
        """The meaning of a source expression."""
        if isinstance(node, cst.Name) and node.value in self.local:
            return self.local[node.value]
        found = self._read(node, env)
        if found.node is None:
            return found
        # the source text stays where every part of it means what it says
        renamed = any(arg.node is None for arg in found.args) or (found.kind == "call" and not _says(node, found.name))
        if renamed or any(name.value in self.local for name in names_in(node)):
            return replace(found, node=None)
        return found

    def _read(self, node: cst.BaseExpression, env: Env) -> Expr:
        operand = self.evaluator.operand(node, env)
        if operand is not None:
            return self.load(operand, node)
        if isinstance(node, cst.Name):
            return self._leaf(node, env)
        if isinstance(node, cst.BinaryOperation):
            return self._binary(node, env)
        if isinstance(node, cst.UnaryOperation):
            return self._unary(node, env)
        if isinstance(node, cst.Comparison):
            return self._comparison(node, env)
        if isinstance(node, cst.BooleanOperation):
            sign = "and" if isinstance(node.operator, cst.And) else "or"
            return self._logic(node, sign, self.expression(node.left, env), self.expression(node.right, env))
        if isinstance(node, cst.IfExp):
            parts = tuple(self.expression(part, env) for part in (node.test, node.body, node.orelse))
            return self._select(node, *parts)
        if isinstance(node, cst.Call):
            return self._call(node, env)
        return self._leaf(node, env)

    def load(self, operand: Operand, node: cst.BaseExpression) -> Expr:
        """A buffer element; a scalar register and an element of global memory that stays are numbers."""
        buffer = operand.buffer
        dims = operand.dims or ()
        axes = frozenset().union(*(self.axes_of(dim.lo) for dim in dims)) if dims else _NONE
        if isinstance(node, cst.Subscript) and any(self._uses_local(item) for item in node.slice):
            return replace(self.load(operand, self._without_locals(node)), node=None)
        text = code(node.with_changes(lpar=(), rpar=()) if node.lpar else node)
        dtype = self.typed(buffer.dtype)
        if buffer.memory is Memory.VAR or (buffer.memory is Memory.GM and not axes):
            integer = "integer" if element_types.is_integer(dtype) else ""
            return Expr("number", integer, text=text, node=node, dynamic=True)
        if operand.dims is None:
            return Expr("unknown", text=text, node=node)
        span = Span.OTHER if buffer.memory is Memory.GM else self.span(operand)
        whole = buffer.name in self.whole_tiles
        return Expr("load", buffer.name, (), dtype, node, text, operand, span, axes, whole=whole)

    def _without_locals(self, node: cst.Subscript) -> cst.Subscript:
        """An element with what the names of the nest stand for in its indices."""
        names = {found.value for item in node.slice for found in names_in(item)} & self.local.keys()
        values = {name: cst.parse_expression(show(self.local[name])) for name in names}
        parts = [cst.ensure_type(substituted(item, values), cst.SubscriptElement) for item in node.slice]
        return node.with_changes(slice=parts)

    def typed(self, dtype: str) -> str:
        """One name for each element type; the vector core computes with bfloat16 as float32."""
        plain = element_types.plain(dtype)
        if plain in self.settled:
            return "float32"
        given = self.types.get(plain, frozenset())
        if len(given) == 1 and element_types.is_integer(only := min(given)) and not element_types.is_known(plain):
            return only  # conversions of integers have no form that is right for all types
        if element_types.is_known(plain) or "bfloat16" not in given:
            return plain
        return element_types.perhaps_bfloat16(plain)

    def choices(self, dtype: str) -> list[str]:
        """The types that the file gives to the name of a type, if there are integers among them; else the type."""
        given = self.types.get(element_types.text_of(dtype), frozenset()) if dtype else frozenset()
        several = not element_types.is_known(dtype) and any(map(element_types.is_integer, given))
        return sorted(filter(element_types.is_known, given)) if several else [dtype]

    def is_float(self, dtype: str) -> bool:
        """True for a type of floats, also for a parameter of the factory that the file gives no other types."""
        given = self.types.get(element_types.text_of(dtype), frozenset())
        return bool(dtype) and not any(element_types.is_integer(one) for one in (dtype, *given))

    def span(self, operand: Operand) -> Span:
        """Which elements a load takes in this nest."""
        lows = [dim.lo for dim in operand.dims or ()]
        moving = [(position, axes) for position, low in enumerate(lows) if (axes := self.axes_of(low))]
        if not moving:
            return Span.POINT
        if any(dim.loads for dim in operand.dims or ()) or any(len(axes) > 1 for _, axes in moving):
            return Span.OTHER
        rows, columns = self.nest.rows, self.nest.columns
        last = len(lows) - 1
        which = {next(iter(axes)): position for position, axes in moving}
        if len(which) != len(moving):
            return Span.OTHER
        if "c" in which:
            offset = _offset(lows[which["c"]], columns)
            if which["c"] != last or offset is None:
                return Span.OTHER
            if rows is None:
                return Span.TILE if self._in_blocks(operand, None) else Span.OTHER
            if "r" not in which:
                return Span.COLUMN if self._in_blocks(operand, None) else Span.OTHER
            if which["r"] != last - 1 or _offset(lows[which["r"]], rows) is None:
                return Span.OTHER
            if offset.is_zero and operand.buffer.shape[-1] == columns.extent:
                return Span.TILE
            return Span.PART if self._in_blocks(operand, rows.extent) else Span.OTHER
        assert rows is not None
        return Span.ROW if _offset(lows[which["r"]], rows) is not None else Span.OTHER

    def _in_blocks(self, operand: Operand, rows: Sym | None) -> bool:
        """False for elements of UB that no instruction takes as they lie (TL700)."""
        loops = [item for loop in self.nest.loops for item in loop.ranges]
        demands = alignment.of_part(operand, loops, self.nest.columns.extent, rows)
        return self._judge.certain(demands, self.nest.loops[0])

    def axes_of(self, value: Sym) -> frozenset[str]:
        rows = self.nest.rows
        row = _ROW if rows is not None and value.depends_on(rows.var) else _NONE
        return row | (_COLUMN if value.depends_on(self.nest.columns.var) else _NONE)

    def _leaf(self, node: cst.BaseExpression, env: Env) -> Expr:
        sym = self.evaluator.sym(node, env)
        axes = self.axes_of(sym)
        if axes:
            kind = "index" if isinstance(node, cst.Name) else "unknown"
            return Expr(kind, node=node, text=code(node), axes=axes, sym=sym)  # type: ignore[arg-type]
        dynamic = self.is_dynamic(node, sym, env)
        name = "integer" if dynamic and self.is_integer_number(node, env) else ""
        return Expr("number", name, text=code(node), node=node, sym=sym, dynamic=dynamic)

    def is_integer_number(self, node: cst.BaseExpression, env: Env) -> bool:
        """Whether a number that the kernel computes is made of integers, and of what is known before the launch."""
        operand = self.evaluator.operand(node, env)
        if operand is not None:
            return element_types.is_integer(self.typed(operand.buffer.dtype))
        if isinstance(node, cst.Name):
            return node.value in self._integers or not self._late.is_late(self.evaluator.sym(node, env))
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, _OF_INTEGERS):
            return self.is_integer_number(node.left, env) and self.is_integer_number(node.right, env)
        if isinstance(node, cst.UnaryOperation):
            return isinstance(node.operator, (cst.Minus, cst.Plus)) and self.is_integer_number(node.expression, env)
        return isinstance(node, cst.Integer)

    def float_type(self, text: str) -> str:
        """The float type of a number made of elements of tensors; empty where a function gives it or nothing tells."""
        node = parsed(text)
        if nodes_of(node, cst.Call):
            return ""
        named = mentioned(node)
        found = [self._floats[name] for name in named & self._floats.keys()]
        found += [self.typed(self._kernel.buffers[name].dtype) for name in named & self._kernel.buffers.keys()]
        floats = [dtype for dtype in found if dtype and element_types.is_float(dtype)]
        return reduce(element_types.promoted, floats) if floats else ""

    def is_dynamic(self, node: cst.BaseExpression, sym: Sym, env: Env) -> bool:
        return self._late.is_late(sym) or bool(self.evaluator.loads(node, env))

    def _binary(self, node: cst.BinaryOperation, env: Env) -> Expr:
        sign = sign_of(node.operator)
        left, right = self.expression(node.left, env), self.expression(node.right, env)
        if sign in ("&", "|") and {left.kind, right.kind} & {"compare", "logic"}:
            return self._logic(node, "and" if sign == "&" else "or", left, right)
        if left.is_number and right.is_number:
            return self._leaf(node, env) if not self._uses_local(node) else self._number(node, sign, left, right)
        if sign == "**":
            return replace(call("pow", left, right), node=node)
        dtype = element_types.promoted(left.dtype, right.dtype)
        return Expr("binary", sign, (left, right), dtype, node, axes=joined(left, right))

    def _number(self, node: cst.BinaryOperation, sign: str, left: Expr, right: Expr) -> Expr:
        if sign in ("+", "-", "*", "/", "//", "%"):
            return binary(sign, left, right)
        return Expr("unknown", text=code(node), node=node)

    def _uses_local(self, node: cst.CSTNode) -> bool:
        return any(name.value in self.local for name in names_in(node))

    def _unary(self, node: cst.UnaryOperation, env: Env) -> Expr:
        arg = self.expression(node.expression, env)
        if isinstance(node.operator, cst.Not):
            return self._logic(node, "not", arg)
        if arg.is_number and not self._uses_local(node):
            return self._leaf(node, env)
        if isinstance(node.operator, cst.Plus):
            return arg
        if isinstance(node.operator, cst.Minus):
            return Expr("negative", "-", (arg,), arg.dtype, node, code(node), axes=arg.axes)
        return Expr("unknown", "~", (arg,), arg.dtype, node, code(node), axes=arg.axes)

    def _comparison(self, node: cst.Comparison, env: Env) -> Expr:
        parts = [self.expression(node.left, env)]
        signs = []
        for item in node.comparisons:
            sign = sign_of(item.operator)
            if sign not in COMPARISONS:
                return self._leaf(node, env)
            signs.append(sign)
            parts.append(self.expression(item.comparator, env))
        found = [
            _compare(sign, parts[n], parts[n + 1], node if len(signs) == 1 else None) for n, sign in enumerate(signs)
        ]
        return found[0] if len(found) == 1 else self._logic(node, "and", *found)

    def _logic(self, node: cst.BaseExpression, sign: str, *parts: Expr) -> Expr:
        plain = node if isinstance(node, (cst.BooleanOperation, cst.Comparison, cst.UnaryOperation)) else None
        if any(part.node is None for part in parts):
            plain = None
        parts = tuple(truths.as_truth(part) for part in parts)
        dynamic = any(part.dynamic for part in parts)
        return Expr("logic", sign, parts, "bool", plain, axes=joined(*parts), dynamic=dynamic)

    def _select(self, node: cst.BaseExpression, condition: Expr, yes: Expr, no: Expr) -> Expr:
        condition = truths.as_truth(condition)
        truth = truths.choice(condition, yes, no)
        if truth is not None:
            return truth
        dtype = element_types.promoted(yes.dtype, no.dtype)
        return Expr("select", "", (condition, yes, no), dtype, node, axes=joined(condition, yes, no))

    def _call(self, node: cst.Call, env: Env) -> Expr:
        values = [arg.value for arg in node.args if arg.keyword is None]
        if isinstance(node.func, cst.Attribute) and node.func.attr.value == "astype" and len(values) == 1:
            return self._cast(node, node.func.value, values[0], env)
        resolved = self.evaluator.names.resolve(node.func) or ""
        short = resolved.rsplit(".", 1)[-1] if resolved.startswith("tilelang.language.") else ""
        if isinstance(node.func, cst.Name) and node.func.value in ("abs", "max", "min", "round", "pow") and not short:
            short = node.func.value
        short = functions.SYNONYMS.get(short, short)
        if short == "cast" and len(values) == 2:
            return self._cast(node, values[0], values[1], env)
        if short == "Cast" and len(values) == 2:
            return self._cast(node, values[1], values[0], env)
        if element_types.is_known(element_types.plain(short)) and len(values) == 1:
            return self._cast_to(node, values[0], element_types.plain(short), f'"{short}"', env)
        if short == "round":
            short, values = _rounding(node, values)
        args = [self.expression(value, env) for value in values]
        return self._function(node, short, args, env)

    def _function(self, node: cst.Call, short: str, args: list[Expr], env: Env) -> Expr:
        if short in functions.SELECTS and len(args) == 3:
            return self._select(node, args[0], args[1], args[2])
        if short in functions.COMPARISONS and len(args) == 2:
            return _compare(functions.COMPARISONS[short], args[0], args[1], None)
        if short in functions.CONNECTIVES and len(args) > 1:
            return self._logic(node, functions.CONNECTIVES[short], *args)
        if short == "Not" and len(args) == 1:
            return self._logic(node, "not", args[0])
        if short in functions.KINDS and len(args) == 1 and self.is_float(args[0].dtype):
            return _kind_of_number(short, args[0])
        everything_stays = all(arg.is_number for arg in args)
        is_tirs = short == "abs" and any(arg.dynamic for arg in args) and self.floats.holds(node)
        if everything_stays and not is_tirs and short not in functions.MATH - functions.OF_NUMBERS:
            return self._leaf(node, env)
        if short in functions.SIGNS and len(args) >= 2:
            found = binary(functions.SIGNS[short], args[0], args[1])
            return replace(found, dtype=element_types.promoted(args[0].dtype, args[1].dtype))
        if short in functions.FUSED and len(args) >= 3:
            return binary("+", binary("*", args[0], args[1]), args[2])
        if short in functions.RECIPROCALS:
            return binary("/", number("1.0"), args[0])
        if short in functions.MATH:
            dtype = ""
            for arg in args:
                dtype = element_types.promoted(dtype, arg.dtype)
            return Expr("call", short, tuple(args), dtype, node, axes=joined(*args))
        return Expr("unknown", short, tuple(args), node=node, text=code(node), axes=joined(*args))

    def _cast(self, node: cst.Call, value: cst.BaseExpression, dtype: cst.BaseExpression, env: Env) -> Expr:
        buffer = None
        if isinstance(dtype, cst.Attribute) and dtype.attr.value == "dtype":
            buffer = self.evaluator.buffer(dtype.value, env)
            if buffer is None and (own := self.expression(dtype.value, env).dtype):  # of a value: T.cast(1, v.dtype)
                known = element_types.is_known(element_types.plain(own))
                text = f'"{own}"' if known else element_types.text_of(own)
                return self._cast_to(node, value, self.typed(own), text, env)
        found = buffer.dtype if buffer is not None else self.evaluator.dtype(dtype, env)
        plain = self.typed(found)
        text = f'"{plain}"' if buffer is not None and element_types.is_known(plain) else code(dtype)
        return self._cast_to(node, value, plain, text, env)

    def _cast_to(self, node: cst.Call, value: cst.BaseExpression, dtype: str, text: str, env: Env) -> Expr:
        arg = self.expression(value, env)
        to_integers = element_types.is_integer(dtype) and not arg.dynamic
        if arg.is_number and to_integers and not self.is_whole(parsed(arg.text)):
            return replace(self._leaf(node, env), name="integer") if arg.value is None else number(str(int(arg.value)))
        if arg.is_number:  # takes the type of what it meets, if the kernel does not compute it
            found = self._leaf(node, env) if arg.dynamic else arg
            return replace(found, name=OWN) if element_types.is_own(dtype) else found
        if arg.kind in ("compare", "logic"):
            return Expr("select", "", (arg, number("1"), number("0")), dtype, axes=arg.axes)
        return Expr("cast", dtype, (arg,), dtype, node, text, axes=arg.axes)


def _is_whole(node: cst.BaseExpression, names: Collection[str]) -> bool:
    if isinstance(node, cst.Name):
        return node.value in names
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, _OF_INTEGERS):
        return _is_whole(node.left, names) and _is_whole(node.right, names)
    if isinstance(node, cst.UnaryOperation):
        return _is_whole(node.expression, names)
    return isinstance(node, cst.Integer)


def _rounding(node: cst.Call, values: list[cst.BaseExpression]) -> tuple[str, list[cst.BaseExpression]]:
    """``T.round``, whose second argument says where halves go; another one leaves nothing that is known."""
    named = [arg.value for arg in node.args if arg.keyword is not None and arg.keyword.value == "rounding_mode"]
    modes = [code(mode).strip("\"'") for mode in (*values[1:2], *named)]
    if not modes or modes[0] in ("ties-to-even", "None"):
        return "round", values[:1]
    return ("round_away", values[:1]) if modes[0] == functions.AWAY else (f"round to {modes[0]}", values[:1])


def _says(node: cst.BaseExpression, name: str) -> bool:
    """Whether a call is written with the name that the function has here."""
    func = node.func if isinstance(node, cst.Call) else None
    return func is not None and code(func).rsplit(".", 1)[-1] == name and len(node.args) <= 2  # type: ignore[attr-defined]


def _compare(sign: str, left: Expr, right: Expr, node: cst.BaseExpression | None) -> Expr:
    dynamic = left.dynamic or right.dynamic
    return Expr("compare", sign, (left, right), "bool", node, axes=joined(left, right), dynamic=dynamic)


def _kind_of_number(name: str, value: Expr) -> Expr:
    """``isnan`` and its like as comparisons: with NaN only ``!=`` holds."""
    if name == "isnan":
        return _compare("!=", value, value, None)
    infinity = number('T.infinity("float32")')  # the front end knows none of bfloat16
    return _compare("==" if name == "isinf" else "<", call("abs", value), infinity, None)


def _offset(low: Sym, axis: Axis) -> Sym | None:
    """What is added to the loop variable; None if the index is something else."""
    shift = low.substitute({axis.var: 0})
    moved = low - shift
    return shift if moved == var(axis.var) else None


def rebuilt(expr: Expr, *args: Expr) -> Expr:
    """:func:`with_args` with the type of the operands worked out again."""
    found = with_args(expr, *args)
    if found is expr or found.kind in ("cast", "compare", "logic"):
        return found
    dtype = ""
    for arg in found.args[1:] if found.kind == "select" else found.args:
        dtype = element_types.promoted(dtype, arg.dtype)
    return replace(found, dtype=dtype)
