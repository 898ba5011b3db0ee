"""TL443: vector operators become ``T.Parallel`` loops, one loop for neighbours over the same elements."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import libcst as cst

from tl2npu.dialects.catalogue import Operator, Role
from tl2npu.dialects.npuir import OPERATORS, SHORT
from tl2npu.kernel.access import accesses
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Loop, Memory, Op, Operand, Scalar, blocks
from tl2npu.kernel.symbolic import Sym
from tl2npu.passes.job import Job
from tl2npu.passes.npuir.to_gpu_like.regions import Axis, axes, element
from tl2npu.passes.writing.numbers import number_type
from tl2npu.passes.writing.statements import Names, factor, parse
from tl2npu.source.edits import Edits
from tl2npu.tile.expr import Call, Const, walk
from tl2npu.tile.meaning import formula, meaning


def is_scratch(job: Job, stmt: Op) -> bool:
    """True if the value that an operator leaves in its ``Tmp`` is read by nothing."""
    tile = stmt.args.get("Tmp")
    if not isinstance(tile, Operand):
        return False
    if tile.buffer is _buffer(stmt, "B"):
        return True  # the result overwrites it
    for other in job.kernel.walk():
        for access in accesses(other):
            if access.operand.buffer is not tile.buffer or not access.reads:
                continue
            if isinstance(other, Op) and access.operand is other.args.get("Tmp"):
                continue
            return False
    return True


def _buffer(stmt: Op, name: str) -> object:
    arg = stmt.args.get(name)
    return arg.buffer if isinstance(arg, Operand) else None


_VARIABLES = ("i", "j", "k", "l")
_OTHERS = ("row", "col", "lane", "item")
"""Where those are taken."""


@dataclass(eq=False)
class _Nest:
    """A loop in the making: the extents with their texts, the assignments, and the statements that they replace."""

    extents: tuple[Sym, ...]
    sizes: tuple[str, ...]
    lines: list[str] = field(default_factory=list)
    stmts: list[Op] = field(default_factory=list)
    written: list[Operand] = field(default_factory=list)
    read: list[Operand] = field(default_factory=list)


@dataclass(frozen=True)
class _Space:
    """The axes that an operator runs over: those of its destination; ``variables`` are empty for unit axes."""

    parts: tuple[Axis, ...]
    variables: tuple[str, ...]


def to_loops(job: Job) -> None:
    """Rewrite every vector operator."""
    _Work(job).run()


class _Work:
    def __init__(self, job: Job) -> None:
        self.job = job
        self.nests: list[_Nest] = []
        self.variables = _free_variables(job)

    def run(self) -> None:
        """Collect the loops, then write them."""
        for body in blocks(self.job.kernel.body):
            nest: _Nest | None = None
            for stmt in body:
                if not isinstance(stmt, Op) or SHORT.get(stmt.op.name) not in _OPERATORS:
                    nest = None
                    continue
                nest = self._statement(stmt, nest)
        edits = Edits(self.job.file.index)
        for nest in self.nests:
            self._write(nest, edits)
        self.job.apply(edits)

    def _statement(self, stmt: Op, nest: _Nest | None) -> _Nest:
        short = SHORT[stmt.op.name]
        written_to = next(param.name for param in stmt.op.params if param.role is Role.WRITE)
        target = stmt.args.get(written_to)
        if not isinstance(target, Operand) or target.buffer.memory is Memory.GM:
            raise Blocked("TL442", stmt.node, f"cannot tell which tile T.{stmt.op.name} writes")
        parts = axes(target)
        if parts is None:
            raise Blocked("TL442", stmt.node, f"cannot tell the size of `{code(target.node)}`")
        space = self._space(parts)
        lines = self._steps(stmt, short, target, space)
        if lines is None:
            lines = [f"{element(target, parts, space.variables)} = {self._value(stmt, short, target, space)}"]
        read = [arg for arg in stmt.args.values() if isinstance(arg, Operand) and arg is not target]
        extents = tuple(p.extent for p, v in zip(parts, space.variables, strict=True) if v)
        tile = stmt.args.get("Tmp")
        written = [target, tile] if isinstance(tile, Operand) else [target]
        if nest is None or not self._joins(nest, stmt, extents, written, read):
            sizes = tuple(p.size for p, v in zip(parts, space.variables, strict=True) if v)
            nest = _Nest(extents, sizes)
            self.nests.append(nest)
        nest.lines += lines
        nest.stmts.append(stmt)
        nest.written += written
        nest.read += read
        return nest

    def _space(self, parts: tuple[Axis, ...]) -> _Space:
        names = iter(self.variables)
        found = tuple("" if part.extent.constant == 1 else next(names) for part in parts)
        if not any(found):
            found = (self.variables[0], *found[1:])
        return _Space(parts, found)

    def _value(self, stmt: Op, short: str, target: Operand, space: _Space) -> str:
        args = stmt.args
        text = formula(stmt.op)
        if text:
            if _needs_floats(stmt.op) and number_type(self.job, target.buffer) == "int":
                raise Blocked("TL442", stmt.node, f"T.{stmt.op.name} of integers has no counterpart in Ascend C")
            if stmt.op.deviation:
                what = f"`T.{stmt.op.name}` is {stmt.op.deviation}; Ascend C computes the function itself"
                self.job.note("TL452", stmt.node, what, "warning")
            named = {name: self._operand(stmt, arg, target, space) for name, arg in args.items() if arg is not target}
            return text.format_map(named)
        if short == "vbrc":
            return self._operand(stmt, args["src"], target, space)
        if short == "vcast":
            return self._cast(stmt, target, space)
        assert short == "vcmp"
        left, right = (self._operand(stmt, args[name], target, space) for name in ("A", "B"))
        mode = self._static(stmt, "cmp_mod")
        if mode not in _COMPARISONS:
            raise Blocked("TL442", stmt.node, "cannot tell the mode of this comparison")
        return f"{left} {_COMPARISONS[mode]} {right}"

    def _cast(self, stmt: Op, target: Operand, space: _Space) -> str:
        source = stmt.args["src"]
        if not isinstance(source, Operand):
            raise Blocked("TL442", stmt.node, "cannot tell which tile T.vcast converts")
        value = self._operand(stmt, source, target, space)
        mode = self._static(stmt, "round_mode") or "rint"
        kinds = number_type(self.job, source.buffer), number_type(self.job, target.buffer)
        if "int" not in kinds and mode == "rint":
            return value
        if kinds == ("float", "int") and mode in _ROUNDING:
            return f"T.cast({_ROUNDING[mode].format(value)}, {_dtype(target)})"
        if kinds[0] == "int" and mode in _ROUNDING:
            return f"T.cast({value}, {_dtype(target)})"
        raise Blocked(
            "TL442",
            stmt.node,
            f"a cast from {source.buffer.dtype} with rounding mode {mode!r} has no counterpart in Ascend C",
        )

    def _static(self, stmt: Op, name: str) -> str:
        arg = stmt.args.get(name)
        if not isinstance(arg, Scalar):
            return ""
        return str(self.job.file.evaluator.static(arg.node, stmt.env) or "?")

    def _steps(self, stmt: Op, short: str, target: Operand, space: _Space) -> list[str] | None:
        """An operator whose temporary tile is read elsewhere, step by step as the language computes it."""
        tile = stmt.args.get("Tmp")
        if short not in _THREE_NAMES or not isinstance(tile, Operand) or is_scratch(self.job, stmt):
            return None
        source, middle, result = (self._operand(stmt, arg, target, space) for arg in (stmt.args["A"], tile, target))
        if short == "vexp2":
            return [f"{middle} = {source} * {math.log(2.0)}", f"{result} = T.exp({middle})"]
        return [f"{middle} = T.log({source})", f"{result} = {middle} * {1.0 / math.log(2.0)}"]

    def _operand(self, stmt: Op, arg: Operand | Scalar, target: Operand, space: _Space) -> str:
        """One operand at the loop's variables: an element, or a number."""
        if isinstance(arg, Scalar) or arg.is_indexed:
            return factor(" ".join(code(arg.node).split()))
        if arg.buffer.memory is Memory.GM:
            raise Blocked("TL442", stmt.node, f"T.{stmt.op.name} reads the global tensor `{arg.buffer.name}`")
        parts = axes(arg)
        aligned = None if parts is None else _aligned(parts, space)
        if parts is None or aligned is None:
            text = f"cannot match `{code(arg.node)}` with `{code(target.node)}` in T.{stmt.op.name}"
            raise Blocked("TL442", stmt.node, text)
        if arg.buffer is target.buffer and not _same(arg, target):
            text = f"T.{stmt.op.name} reads and writes different parts of `{arg.buffer.name}`"
            raise Blocked("TL442", stmt.node, text)
        return element(arg, parts, aligned)

    def _joins(
        self, nest: _Nest, stmt: Op, extents: tuple[Sym, ...], written: Sequence[Operand], read: Sequence[Operand]
    ) -> bool:
        """The operator can stand in the loop of the one before: equal extents, every tile at the same elements."""
        if extents != nest.extents or _has_lines_above(self.job, stmt):
            return False
        if any(o.buffer is w.buffer and not _same(o, w) for o in read for w in nest.written):
            return False
        earlier = (*nest.read, *nest.written)
        return not any(o.buffer is w.buffer and not _same(o, w) for o in earlier for w in written)

    def _write(self, nest: _Nest, edits: Edits) -> None:
        head = ", ".join(self.variables[: len(nest.extents)]) or self.variables[0]
        body = "".join(f"    {line}\n" for line in nest.lines)
        first, *others = nest.stmts
        loop = parse(self.job, f"for {head} in T.Parallel({', '.join(nest.sizes) or '1'}):\n{body}", first.node)
        edits.replace_many(first.node, loop)
        for stmt in others:
            edits.remove(stmt.node)
        for stmt in nest.stmts:
            self.job.change("TL443", stmt.node, f"wrote a T.Parallel loop for T.{stmt.op.name}")


def _needs_floats(op: Operator) -> bool:
    """Whether the formula means something else in integers: it divides, or has a number that is no integer."""
    return any(
        part.op == "div" if isinstance(part, Call) else isinstance(part, Const) and isinstance(part.value, float)
        for part in walk(meaning(op) or Const(0, ""))
    )


_OPERATORS = frozenset({SHORT[op.name] for op in OPERATORS.values() if op.meaning} | {"vbrc", "vcast", "vcmp"})
_COMPARISONS: Mapping[str, str] = MappingProxyType(
    {"eq": "==", "ne": "!=", "lt": "<", "gt": ">", "ge": ">=", "le": "<="}
)
_ROUNDING: Mapping[str, str] = MappingProxyType(
    {"rint": "T.round({0})", "floor": "T.floor({0})", "ceil": "T.ceil({0})", "trunc": "{0}"}
)
"""What a float becomes before it is cast to an integer, which cuts off."""
_THREE_NAMES = frozenset({"vexp2", "vlog2"})


def _aligned(parts: tuple[Axis, ...], space: _Space) -> tuple[str, ...] | None:
    """The variable of each axis of an operand; empty where it is spread. None where the shapes do not go together.

    Axes of extent 1 in front may be missing on either side.
    """
    surplus = len(parts) - len(space.parts)
    missing = max(-surplus, 0)
    if any(part.extent.constant != 1 for part in (*parts[: max(surplus, 0)], *space.parts[:missing])):
        return None
    found = [""] * max(surplus, 0)
    rest = zip(parts[max(surplus, 0) :], space.parts[missing:], space.variables[missing:], strict=True)
    for part, own, variable in rest:
        if part.extent == own.extent:
            found.append(variable)
        elif part.extent.constant == 1:
            found.append("")
        else:
            return None
    return tuple(found)


def _same(left: Operand, right: Operand) -> bool:
    """The same part of one buffer."""
    first, second = axes(left), axes(right)
    return (
        first is not None
        and second is not None
        and [(a.lo, a.extent) for a in first] == [(b.lo, b.extent) for b in second]
    )


def _dtype(operand: Operand) -> str:
    dtype = operand.buffer.dtype
    return dtype if dtype.isidentifier() and not dtype.startswith(("float", "int", "uint", "bfloat")) else f'"{dtype}"'


def _has_lines_above(job: Job, stmt: Op) -> bool:
    line = job.file.index.parent(stmt.node)
    return isinstance(line, cst.SimpleStatementLine) and bool(line.leading_lines)


def _free_variables(job: Job) -> tuple[str, ...]:
    """Names for the loops: ``i`` and ``j`` where they mean nothing else than the variable of such a loop."""
    wishes = zip(_VARIABLES, _OTHERS, strict=True)
    loops = [loop.node for loop in job.kernel.walk() if isinstance(loop, Loop) and loop.kind != "parallel"]
    inside = [loop.body for loop in loops if isinstance(loop, cst.For)]
    return tuple(Names(job).variables(*wishes, inside=inside))
