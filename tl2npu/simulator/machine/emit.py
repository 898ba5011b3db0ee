"""Turns the statements of one core into the source of a Python generator.

Loops and scalars become plain Python; a ``T.Parallel`` becomes array expressions with one axis per loop variable;
operators become calls of their meanings. The generator yields where a core has to wait.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tl2npu.simulator.errors import SimulatorError, TraceError, UnsupportedOperator
from tl2npu.simulator.ir import dtypes
from tl2npu.simulator.ir.buffer import Buffer, Region
from tl2npu.simulator.ir.expr import Binary, Call, Cast, Const, Expr, Load, Unary, Var, walk
from tl2npu.simulator.ir.linear import linear
from tl2npu.simulator.ir.stmt import (
    Alloc,
    Break,
    Continue,
    For,
    If,
    Let,
    Op,
    Parallel,
    Scope,
    Site,
    Stmt,
    Store,
    While,
)
from tl2npu.simulator.ir.stmt import walk as statements
from tl2npu.simulator.machine.operand import Operand
from tl2npu.simulator.operators.registry import REFUSED, Meaning, meaning

_FLOAT_OPS = {"+": "add", "-": "sub", "*": "mul", "/": "div"}
_FUNCTIONS = {"max": "maximum", "min": "minimum", "abs": "absolute"}
_COMPARE = {"<": "less", "<=": "less_equal", "==": "equal"}
_SYNC = {
    "set_cross_flag",
    "wait_cross_flag",
    "set_flag",
    "wait_flag",
    "pipe_barrier",
    "barrier_all",
    "sync_all",
    "sync_threads",
    "sync_grid",
    "sync_warp",
    "sync_global",
}


@dataclass(eq=False)
class Emitter:
    """One core's program. ``gpu`` chooses between operators of one name; ``arithmetic`` computes floats."""

    gpu: bool
    arithmetic: Any
    sites: list[Site]
    lines: list[str] = field(default_factory=list)
    space: dict[str, Any] = field(default_factory=dict)
    names: dict[Var, str] = field(default_factory=dict)
    depth: int = 1
    lanes: dict[Var, tuple[int, int | None]] = field(default_factory=dict)
    """Variables that are arrays: their axis (-1 for a named value that spans lanes) and extent."""
    rank: int = 0
    mask: str = ""
    site: int = 0
    used: set[str] = field(default_factory=set)
    buffers: dict[int, Buffer] = field(default_factory=dict)
    extents: dict[Var, Any] = field(default_factory=dict)

    def program(self, parameters: list[Var | Buffer], body: list[Stmt]) -> tuple[str, dict[str, Any]]:
        """The source of ``def program(X, S, <parameters>)`` and the names that it needs."""
        arguments = ["X", "S"]
        for parameter in parameters:
            arguments.append(self.buffer(parameter) if isinstance(parameter, Buffer) else self.define(parameter))
        self.space.update({"A": self.arithmetic, "np": np, "NAN": math.nan, "INF": math.inf, "_Operand": Operand})
        self.block(body)
        text = [f"def program({', '.join(arguments)}):", *self.lines, "    return", "    yield 0"]
        return "\n".join(text), self.space

    # names

    def define(self, var: Var) -> str:
        """A Python name for a variable."""
        base = "".join(c if c.isalnum() or c == "_" else "_" for c in var.name) or "v"
        name = f"v_{base}"
        while name in self.used:
            name += "_"
        self.used.add(name)
        self.names[var] = name
        return name

    def buffer(self, buffer: Buffer) -> str:
        """The Python name of a buffer's array."""
        self.buffers[buffer.number] = buffer
        return f"b{buffer.number}"

    def constant(self, value: Any) -> str:
        """A name for an object."""
        name = f"k{len(self.space)}"
        self.space[name] = value
        return name

    def put(self, text: str) -> None:
        """One line."""
        self.lines.append("    " * self.depth + text)

    # statements

    def block(self, body: list[Stmt]) -> None:
        """A statement list."""
        start = len(self.lines)
        for stmt in body:
            self.statement(stmt)
        if len(self.lines) == start:
            self.put("pass")

    def indented(self, body: list[Stmt]) -> None:
        """A statement list one step deeper."""
        self.depth += 1
        self.block(body)
        self.depth -= 1

    def statement(self, stmt: Stmt) -> None:
        """One statement."""
        self.site = self.site_of(stmt.site)
        rule = getattr(self, f"do_{type(stmt).__name__}")
        try:
            rule(stmt)
        except SimulatorError as error:
            if not error.site.line:
                raise type(error)(error.plain, stmt.site) from None
            raise

    def site_of(self, site: Site) -> int:
        """The number of a source line."""
        if site not in self.sites:
            self.sites.append(site)
        return self.sites.index(site)

    def do_Scope(self, stmt: Scope) -> None:
        self.block(stmt.body)

    def do_Alloc(self, stmt: Alloc) -> None:
        self.buffer(stmt.buffer)

    def do_For(self, stmt: For) -> None:
        name = self.define(stmt.var)
        extent = self.code(stmt.extent)
        if self.spans(stmt.extent) or self.spans(stmt.start):
            self._ragged(stmt, name, extent)
            return
        start = self.code(stmt.start)
        if start == "0" and stmt.step == 1:
            self.put(f"for {name} in range({extent}):")
        else:
            stop = f"{start} + ({extent}) * {stmt.step}"
            self.put(f"for {name} in range({start}, {stop}, {stmt.step}):")
        self.indented(stmt.body)

    def _ragged(self, stmt: For, name: str, extent: str) -> None:
        """A serial loop in a ``T.Parallel`` whose length differs between lanes."""
        count, limit = self.fresh("n"), self.fresh("e")
        self.put(f"{limit} = {extent}")
        self.put(f"for {count} in range(int(np.max({limit}))):")
        self.depth += 1
        self.put(f"{name} = {self.code(stmt.start)} + {count} * {stmt.step}")
        if self.spans(stmt.start):
            self.lanes[stmt.var] = (-1, None)
        self.masked(f"({count} < {limit})", stmt.body)
        self.depth -= 1

    def do_While(self, stmt: While) -> None:
        if self.spans(stmt.condition):
            raise UnsupportedOperator("a while loop whose condition differs between the iterations of a T.Parallel")
        self.put(f"while {self.code(stmt.condition)}:")
        self.indented(stmt.body)

    def do_Break(self, stmt: Break) -> None:
        if self.mask:
            raise UnsupportedOperator("a break under a condition that differs between the iterations of a T.Parallel")
        self.put("break")

    def do_Continue(self, stmt: Continue) -> None:
        if self.mask:
            raise UnsupportedOperator(
                "a continue under a condition that differs between the iterations of a T.Parallel"
            )
        self.put("continue")

    def do_If(self, stmt: If) -> None:
        if self.spans(stmt.condition):
            condition = self.fresh("c")
            self.put(f"{condition} = {self.code(stmt.condition)}")
            self.masked(condition, stmt.then)
            if stmt.orelse:
                self.masked(f"np.logical_not({condition})", stmt.orelse)
            return
        self.put(f"if {self.code(stmt.condition)}:")
        self.indented(stmt.then)
        if stmt.orelse:
            self.put("else:")
            self.indented(stmt.orelse)

    def masked(self, condition: str, body: list[Stmt]) -> None:
        """Statements for the lanes of a condition only."""
        before = self.mask
        name = self.fresh("m")
        self.put(f"{name} = {condition}" if not before else f"{name} = {before} & {condition}")
        self.mask = name
        self.block(body)
        self.mask = before

    def do_Let(self, stmt: Let) -> None:
        code = self.code(stmt.value)
        spans = self.spans(stmt.value)
        name = self.define(stmt.var)
        self.put(f"{name} = {code}")
        if spans:
            self.lanes[stmt.var] = (-1, None)

    def do_Parallel(self, stmt: Parallel) -> None:
        outermost = not self.lanes
        if outermost:
            self.rank = self._rank(stmt)
        taken = sum(1 for axis, _ in self.lanes.values() if axis >= 0)
        for offset, (var, extent) in enumerate(zip(stmt.vars, stmt.extents, strict=True)):
            if self.spans(extent):
                raise UnsupportedOperator("a T.Parallel whose extent differs between the iterations of another one")
            name = self.define(var)
            axis = taken + offset
            shape = ", ".join("-1" if n == axis else "1" for n in range(self.rank))
            self.put(f"{name} = np.arange({self.code(extent)}).reshape({shape})")
            self.lanes[var] = (axis, extent if isinstance(extent, int) else None)
        known = dict(self.lanes)
        self.extents.update(zip(stmt.vars, stmt.extents, strict=True))
        self.block(stmt.body)
        self.lanes = known
        for var in stmt.vars:
            del self.lanes[var]
        if outermost:
            self.lanes = {}
            self.rank = 0

    def _rank(self, stmt: Parallel) -> int:
        deeper = [self._rank(inner) for inner in stmt.body if isinstance(inner, Parallel)]
        for inner in stmt.body:
            if not isinstance(inner, Parallel):
                deeper += [self._rank(s) for s in statements([inner]) if isinstance(s, Parallel)]
        return len(stmt.vars) + max(deeper, default=0)

    def do_Store(self, stmt: Store) -> None:
        value = self.code(stmt.value)
        name, number = self.buffer(stmt.buffer), stmt.buffer.number
        if not self.lanes or not (any(self.spans(i) for i in stmt.indices) or self.spans(stmt.value) or self.mask):
            index = self.tuple(stmt.indices)
            self.put(f"X.store({number}, {name}, {index}, {value}, {self.site})")
            return
        window = self.window(stmt.buffer, stmt.indices, full=True)
        if window is None:
            index = self.tuple(stmt.indices)
            self.put(f"X.scatter({number}, {name}, {index}, {value}, {self.mask or 'None'}, {self.site})")
            return
        starts, extents, drop, order = window
        view = f"X.view({number}, {name}, {starts}, {extents}, 'w', {self.site}){drop}"
        if order != tuple(range(len(order))):
            inverse = tuple(int(n) for n in np.argsort(order))
            view += f".transpose({inverse})"
        self.put(f"{view}[...] = {value}")

    def window(
        self, buffer: Buffer, indices: tuple[Any, ...], full: bool
    ) -> tuple[str, str, str, tuple[int, ...]] | None:
        """Index expressions that name a rectangle: starts, extents, how to drop indexed axes, axis order of the lanes.

        None where they do not, or where lanes are masked (a rectangle might reach outside then). ``full``: all lanes
        of the nest have to occur (a store).
        """
        if self.mask:
            return None
        starts: list[str] = []
        extents: list[str] = []
        drop: list[str] = []
        order: list[int] = []
        for item in indices:
            if not self.spans(item):
                starts.append(self.code(item))
                extents.append("1")
                drop.append("0")
                continue
            terms, constant = linear(item)
            moving = [(f, a) for f, a in terms.values() if self.spans(a)]
            if len(moving) != 1 or moving[0][0] != 1 or not isinstance(moving[0][1], Var):
                return None
            var = moving[0][1]
            axis, _ = self.lanes[var]
            if axis < 0 or axis in order:
                return None
            order.append(axis)
            rest = [f"{f} * {self.code(a)}" for f, a in terms.values() if not self.spans(a)]
            starts.append(" + ".join([str(constant), *rest]))
            extents.append(self.code(self.extents[var]))
            drop.append(":")
        if full and len(order) != self.rank:
            return None
        dropped = f"[{', '.join(drop)}]" if "0" in drop else ""
        return _tuple(starts), _tuple(extents), dropped, tuple(order)

    # operators

    def do_Op(self, stmt: Op) -> None:
        if stmt.name in _SYNC:
            self.sync(stmt)
            return
        found = meaning(stmt.name, self.gpu)
        if found is None:
            reason = REFUSED.get(stmt.name, "it has no meaning in the simulator")
            raise UnsupportedOperator(f"T.{stmt.name}: {reason}", stmt.site)
        if self.lanes:
            self._element_op(stmt, found)
            return
        constants: dict[str, Any] = {}
        arguments: list[str] = []
        for name, value in stmt.args.items():
            code = self.argument(stmt, found, name, value)
            if code is None:
                constants[name] = value
            else:
                arguments.append(f"{name}={code}")
        self.call(found, constants, arguments)

    def call(self, found: Meaning, constants: Mapping[str, Any], arguments: list[str]) -> None:
        """The call of a meaning, its constants bound."""
        function = self.constant(_bound(found.function, self.arithmetic, constants))
        self.put(f"{function}({', '.join(arguments)})")

    def _element_op(self, stmt: Op, found: Meaning) -> None:
        """An operator on single elements inside ``T.Parallel``: atomics."""
        lanes = meaning(f"{stmt.name}@lanes", self.gpu)
        if lanes is None:
            raise UnsupportedOperator(f"T.{stmt.name} inside T.Parallel has no meaning in the simulator", stmt.site)
        parts, constants = [], {}
        for name, value in stmt.args.items():
            if isinstance(value, Load) and name in lanes.writes:
                index = self.tuple(value.indices)
                self.buffer(value.buffer)
                parts.append(f"{name}=(X, {value.buffer.number}, b{value.buffer.number}, {index}, {self.site})")
            elif isinstance(value, (Expr, int, float)) and not isinstance(value, bool):
                parts.append(f"{name}={self.code(value)}")
            elif isinstance(value, Region):
                raise UnsupportedOperator(f"T.{stmt.name} of a region inside T.Parallel", stmt.site)
            else:
                constants[name] = value
        parts.append(f"mask={self.mask or 'None'}")
        self.call(lanes, constants, parts)

    def argument(self, stmt: Op, found: Meaning, name: str, value: Any) -> str | None:
        """The code of one argument; None for a constant."""
        kind = ("r" if name in found.reads else "") + ("w" if name in found.writes else "")
        if isinstance(value, (Region, Load)) and kind and (found.raw or not (isinstance(value, Load) and kind == "r")):
            if found.raw:
                return self.operand(value)
            return self.view(value, kind)
        if isinstance(value, Region):
            if found.raw:
                return self.operand(value)
            raise UnsupportedOperator(f"T.{stmt.name}: a region for its parameter {name}", stmt.site)
        if isinstance(value, Expr):
            return self.code(value)
        if isinstance(value, tuple) and any(isinstance(v, (Expr, Region)) for v in value):
            return _tuple([self.view(v, kind or "r") if isinstance(v, Region) else self.code(v) for v in value])
        return None

    def operand(self, value: Region | Load) -> str:
        """A region or start index for a raw operator."""
        buffer = value.buffer
        name = self.buffer(buffer)
        starts = value.starts if isinstance(value, Region) else value.indices
        extents = self.tuple(value.extents) if isinstance(value, Region) else "None"
        parts = f"X, {buffer.number}, {name}, {self.tuple(starts)}, {extents}, {buffer.memory!r}, {buffer.dtype!r}"
        return f"_Operand({parts}, {self.site})"

    def view(self, value: Region | Load, kind: str) -> str:
        """A region as a view; a start index as everything from there on, flat."""
        buffer = value.buffer
        name = self.buffer(buffer)
        if isinstance(value, Load):
            index = self.tuple(value.indices)
            return f"X.tail({buffer.number}, {name}, {index}, {kind!r}, {self.site})"
        if all(isinstance(s, int) and s == 0 for s in value.starts) and all(
            a is b or (isinstance(a, int) and a == b) for a, b in zip(value.extents, buffer.shape, strict=True)
        ):
            return f"X.whole({buffer.number}, {name}, {kind!r}, {self.site})"
        code = f"X.view({buffer.number}, {name}, {self.tuple(value.starts)}, {self.tuple(value.extents)}, {kind!r}, {self.site})"
        if not all(value.kept) and any(value.kept):
            code += f"[{', '.join(':' if k else '0' for k in value.kept)}]"
        return code

    def sync(self, stmt: Op) -> None:
        """Flags and barriers: the machine's business; a wait is where the generator yields."""
        arguments = ", ".join(f"{k}={self.code(v) if isinstance(v, Expr) else repr(v)}" for k, v in stmt.args.items())
        if stmt.name in ("wait_cross_flag", "wait_flag", "sync_all", "sync_grid"):
            call = f"S.{stmt.name}(X, {self.site}{', ' + arguments if arguments else ''})"
            self.put(f"for _ in {call}: yield {self.site}")
        elif stmt.name in ("set_cross_flag", "set_flag", "pipe_barrier", "barrier_all"):
            self.put(f"S.{stmt.name}(X, {self.site}{', ' + arguments if arguments else ''})")

    # expressions

    def fresh(self, base: str) -> str:
        """An unused Python name."""
        name = f"{base}{len(self.used)}_"
        self.used.add(name)
        return name

    def spans(self, value: Any) -> bool:
        """True if a value differs between lanes."""
        return bool(self.lanes) and any(isinstance(e, Var) and e in self.lanes for e in walk(value))

    def tuple(self, values: Any) -> str:
        """A tuple of scalar codes."""
        return _tuple([self.code(v) for v in values])

    def code(self, value: Any) -> str:
        """The Python code of an expression."""
        if isinstance(value, bool):
            return repr(value)
        if isinstance(value, int):
            return repr(value) if value >= 0 else f"({value})"
        if isinstance(value, float):
            return (
                "NAN" if value != value else ("INF" if value > 0 else "(-INF)") if math.isinf(value) else f"({value!r})"
            )
        if not isinstance(value, Expr):
            raise TraceError(f"{type(value).__name__} where a scalar value is needed")
        return getattr(self, f"of_{type(value).__name__}")(value)  # type: ignore[no-any-return]

    def of_Var(self, e: Var) -> str:
        if e not in self.names:
            raise TraceError(f"the variable {e.name} is used outside of the loop or branch that defines it")
        return self.names[e]

    def of_Const(self, e: Const) -> str:
        if not dtypes.is_float(e.dtype):
            return self.code(e.value)
        return self.constant(self.arithmetic.number(e.value, e.dtype))

    def of_Binary(self, e: Binary) -> str:
        left, right = self.code(e.left), self.code(e.right)
        operand = e.left if isinstance(e.left, Expr) else e.right
        floating = isinstance(operand, Expr) and dtypes.is_float(operand.dtype)
        if floating and operand is not None:
            kind = operand.dtype  # type: ignore[union-attr]
            left, right = (
                self.constant(self.arithmetic.number(v, kind)) if isinstance(v, (int, float)) else c
                for v, c in ((e.left, left), (e.right, right))
            )
        if floating and e.op in _FLOAT_OPS:
            return f"A.{_FLOAT_OPS[e.op]}({left}, {right})"
        if floating and e.op in ("<", "<=", "=="):
            return f"A.{_COMPARE[e.op]}({left}, {right})"
        if floating and e.op in (">", ">="):
            return f"A.{_COMPARE['<' + e.op[1:]]}({right}, {left})"
        if floating and e.op == "!=":
            return f"np.logical_not(A.equal({left}, {right}))"
        if e.op in ("and", "or"):
            if self.spans(e):
                return f"np.logical_{e.op}({left}, {right})"
            return f"({left} {e.op} {right})"
        return f"({left} {e.op} {right})"

    def of_Unary(self, e: Unary) -> str:
        inner = self.code(e.value)
        if e.op == "not":
            return f"np.logical_not({inner})" if self.spans(e) else f"(not {inner})"
        if e.op == "-":
            return f"A.neg({inner})"
        return f"np.logical_not({inner})" if e.dtype == "bool" else f"(~{inner})"

    def of_Cast(self, e: Cast) -> str:
        inner = self.code(e.value)
        if not self.spans(e) and dtypes.is_integer(e.dtype):
            bits, signed = dtypes.bits(e.dtype), e.dtype.startswith("int")
            return f"_wrap({inner}, {bits}, {signed})" if self._narrows(e) else f"int({inner})"
        if not self.spans(e) and e.dtype == "bool":
            return f"bool({inner})"
        source = e.value.dtype if isinstance(e.value, Expr) else "int32"
        if not dtypes.is_float(source) and not dtypes.is_float(e.dtype):
            return f"np.asarray({inner}).astype({self.constant(dtypes.numpy_dtype(e.dtype))})"
        return f"A.cast({inner}, {e.dtype!r})"

    def _narrows(self, e: Cast) -> bool:
        source = e.value.dtype if isinstance(e.value, Expr) else "int32"
        if not dtypes.is_integer(source):
            return False
        self.space["_wrap"] = _wrap
        return dtypes.bits(e.dtype) < dtypes.bits(source) or source[0] != e.dtype[0]

    def of_Call(self, e: Call) -> str:
        if e.name == "if_then_else":
            return self._choice(e)
        if e.name in ("any_of", "all_of"):
            region = self.view(e.args[0], "r")  # type: ignore[arg-type]
            return f"bool(np.{e.name[:3]}({region} != 0))"
        args = [self.code(a) for a in e.args]
        floating = dtypes.is_float(e.args[0].dtype) if isinstance(e.args[0], Expr) else isinstance(e.args[0], float)
        if not floating and len(e.args) > 1 and isinstance(e.args[1], Expr):
            floating = dtypes.is_float(e.args[1].dtype)
        if e.name == "likely":
            return args[0]
        if e.name == "reinterpret":
            source = e.args[0].dtype if isinstance(e.args[0], Expr) else "int32"
            kinds = self.constant(dtypes.numpy_dtype(source)), self.constant(dtypes.numpy_dtype(e.dtype))
            item = "" if self.spans(e) else ".item()" if not dtypes.is_float(e.dtype) else "[()]"
            return f"np.asarray({args[0]}, {kinds[0]}).view({kinds[1]}){item}"
        if not floating:
            return self._integer_call(e, args)
        name = _FUNCTIONS.get(e.name, e.name)
        if not hasattr(self.arithmetic, name):
            raise UnsupportedOperator(f"T.{e.name} has no meaning in the simulator")
        if isinstance(e.args[-1], (int, float)) or isinstance(e.args[0], (int, float)):
            kind = (
                next(a.dtype for a in e.args if isinstance(a, Expr))
                if any(isinstance(a, Expr) for a in e.args)
                else "float32"
            )
            args = [
                self.constant(self.arithmetic.number(a, kind)) if isinstance(a, (int, float)) else c
                for a, c in zip(e.args, args, strict=True)
            ]
        return f"A.{name}({', '.join(args)})"

    def _integer_call(self, e: Call, args: list[str]) -> str:
        spans = self.spans(e)
        if e.name in ("max", "min"):
            return f"np.{e.name}imum({args[0]}, {args[1]})" if spans else f"{e.name}({', '.join(args)})"
        if e.name == "abs":
            return f"abs({args[0]})"
        if e.name == "ceildiv":
            return f"(-(-{args[0]} // {args[1]}))"
        if e.name == "pow":
            return f"({args[0]} ** {args[1]})"
        self.space.update({"_truncdiv": _truncdiv, "_popcount": _popcount, "_clz": _clz})
        if e.name == "truncdiv":
            return f"_truncdiv({args[0]}, {args[1]})"
        if e.name == "truncmod":
            return f"({args[0]} - {args[1]} * _truncdiv({args[0]}, {args[1]}))"
        if e.name == "popcount":
            return f"_popcount({args[0]}, {dtypes.bits(e.dtype)})"
        if e.name == "clz":
            return f"_clz({args[0]}, {dtypes.bits(e.dtype)})"
        if e.name in ("isnan", "isinf"):
            return "False"
        if e.name in ("floor", "ceil", "round", "trunc", "nearbyint"):
            return args[0]
        raise UnsupportedOperator(f"T.{e.name} of integers has no meaning in the simulator")

    def _choice(self, e: Call) -> str:
        condition = self.code(e.args[0])
        if not self.spans(e.args[0]):
            return f"({self.code(e.args[1])} if {condition} else {self.code(e.args[2])})"
        name = self.fresh("c")
        before = self.mask
        branches = []
        for branch, test in zip(e.args[1:], (name, f"np.logical_not({name})"), strict=True):
            self.mask = f"({before} & {test})" if before else f"({test})"
            if isinstance(branch, (int, float)) and not isinstance(branch, bool) and dtypes.is_float(e.dtype):
                branches.append(self.constant(self.arithmetic.number(branch, e.dtype)))
            else:
                branches.append(self.code(branch))
        self.mask = before
        where = "A" if dtypes.is_float(e.dtype) else "np"
        return f"{where}.where({name} := {condition}, {branches[0]}, {branches[1]})"

    def of_Load(self, e: Load) -> str:
        name, number = self.buffer(e.buffer), e.buffer.number
        if not self.spans(e):
            code = f"X.load({number}, {name}, {self.tuple(e.indices)}, {self.site})"
            if dtypes.is_integer(e.dtype):
                return f"int({code})"
            return f"bool({code})" if e.dtype == "bool" else code
        window = self.window(e.buffer, e.indices, full=False)
        if window is None:
            return f"X.gather({number}, {name}, {self.tuple(e.indices)}, {self.mask or 'None'}, {self.site})"
        starts, extents, drop, order = window
        code = f"X.view({number}, {name}, {starts}, {extents}, 'r', {self.site}){drop}"
        if list(order) != sorted(order):
            code += f".transpose({tuple(int(n) for n in np.argsort(order))})"
        if len(order) != self.rank:
            code += f"[{', '.join(':' if n in order else 'None' for n in range(self.rank))}]"
        return code


def _tuple(codes: list[str]) -> str:
    return f"({', '.join(codes)}{',' if len(codes) == 1 else ''})"


def _bound(function: Any, arithmetic: Any, constants: Mapping[str, Any]) -> Any:
    return functools.partial(function, arithmetic, **constants)


def _wrap(value: int, bits: int, signed: bool) -> int:
    value = int(value) & ((1 << bits) - 1)
    return value - (1 << bits) if signed and value >> (bits - 1) else value


def _truncdiv(x: Any, y: Any) -> Any:
    quotient = abs(x) // abs(y)
    return (
        quotient * (np.sign(x) * np.sign(y))
        if isinstance(x, np.ndarray) or isinstance(y, np.ndarray)
        else (quotient if (x < 0) == (y < 0) else -quotient)
    )


def _popcount(x: Any, bits: int) -> Any:
    x = np.asarray(x).astype(np.uint64) & np.uint64((1 << bits) - 1)
    return np.bitwise_count(x).astype(np.int64)[()]


def _clz(x: Any, bits: int) -> Any:
    x = np.asarray(x).astype(np.uint64) & np.uint64((1 << bits) - 1)
    return (bits - np.ceil(np.log2(x.astype(np.float64) + 1))).astype(np.int64)[()]
