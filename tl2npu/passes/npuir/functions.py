"""TL410, TL418: functions that ``T.Parallel`` does not make vector operations of are called on whole tiles.

``x[i, j] = T.exp2(e)`` becomes ``x[i, j] = e`` in the loop and ``T.vexp2(x, x, x_tmp)`` behind it. Iterations of
``T.Parallel`` have no order, so that a loop of several statements may be several loops.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tl2npu.dialects.functions import NPUIR_TILES
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Let, Loop, Operand, Range, Stmt, Store, walk, walk_with_parents
from tl2npu.passes.job import Job
from tl2npu.passes.npuir.formulas import FORMULAS, as_float32, formula_text, narrow_type
from tl2npu.passes.npuir.vectorised import VECTOR_ONLY, called, covers, is_vector, without_lowering
from tl2npu.passes.writing.numbers import element_type
from tl2npu.passes.writing.plan import Line, Plan
from tl2npu.passes.writing.statements import Names, expression, factor, flat, parse, shape_text
from tl2npu.passes.writing.tiles import dtype_text, last_allocation
from tl2npu.passes.writing.tiles import shape_text as shape_of
from tl2npu.source.tree import mentioned, replaced

_SERIES = {"sin": "vsin", "cos": "vcos"}
_ON_STATISTICS = {"rsqrt": "vrsqrt"}


def split(job: Job) -> None:
    """Take such functions out of the loops; raises :class:`Blocked` where one can neither stay nor go."""
    plan = Plan(job)
    tiles = _Tiles(job, plan)
    for stmt, parents in walk_with_parents(job.kernel.body):
        if any(_is_parallel(above) for above in parents):
            continue
        if isinstance(stmt, Loop) and _is_parallel(stmt):
            _carry_out(job, stmt, plan, tiles)
        elif isinstance(stmt, (Store, Let)):
            _refuse(job, stmt, vector=False)
    plan.apply()


def _is_parallel(stmt: Stmt) -> bool:
    return isinstance(stmt, Loop) and stmt.kind == "parallel"


def _carry_out(job: Job, loop: Loop, plan: Plan, tiles: _Tiles) -> None:
    """Rewrite one nest, if anything in it must leave it."""
    inner = loop
    ranges = list(loop.ranges)
    while len(inner.body) == 1 and isinstance(inner.body[0], Loop) and _is_parallel(inner.body[0]):
        inner = inner.body[0]
        ranges += inner.ranges
    alone = len(inner.body) == 1
    simple = inner is loop and isinstance(loop.node, cst.For) and not loop.via
    simple = simple and not any(isinstance(stmt, Let) for stmt in inner.body)
    tiles.before = loop
    work = _Loop(job, loop, tuple(ranges), tiles)
    for stmt in inner.body:
        if not isinstance(stmt, Store):
            for deep in walk([stmt]):
                _refuse(job, deep, vector=False)
            work.keep(stmt)
            continue
        vector = is_vector(stmt, ranges)
        names = {name for _, name in called(job, stmt.value.node)}
        if vector and alone and _is_constant(stmt, ranges) and not covers(stmt.target, ranges):
            text = f"the loop fills a part of `{stmt.target.buffer.name}`, but the compiler would fill all of it"
            raise Blocked("TL417", stmt.node, text)
        leaving = _leaving(stmt, names, vector=vector)
        if simple and (leaving or (vector and not alone and names & VECTOR_ONLY)):
            work.take(stmt, leaving)
        else:
            _refuse(job, stmt, vector=vector and alone)
            work.keep(stmt)
    if work.changed:
        plan.replace(loop.node, work.lines())


def _is_constant(stmt: Store, ranges: Sequence[Range]) -> bool:
    """The value is the same for all elements, so that the compiler makes a fill of the store."""
    return not stmt.augmented and not mentioned(stmt.value.node) & {r.name for r in ranges}


def _leaving(stmt: Store, names: set[str], *, vector: bool) -> dict[str, str]:
    """The functions in a store that become operations on tiles, or formulas: those have no operation."""
    found = {name: op for name, op in NPUIR_TILES.items() if name in names}
    if vector:
        found |= dict.fromkeys(names & FORMULAS.keys(), "")
    sizes = stmt.target.buffer.shape
    if len(sizes) > 1 and sizes[-1].constant == 1 and sizes[0].constant != 1:
        found |= {name: op for name, op in _ON_STATISTICS.items() if name in names}
    return found


def _refuse(job: Job, stmt: Stmt, *, vector: bool) -> None:
    """Raise :class:`Blocked` for a function that is not lowered where it stands."""
    if not isinstance(stmt, (Store, Let)):
        return
    for call, name in called(job, stmt.value.node):
        if without_lowering(name) or (not vector and name in VECTOR_ONLY):
            where = "" if without_lowering(name) else " on single elements"
            why = "AscendNPU IR cannot compile it here"
            if name in _SERIES:
                why = f"`T.{_SERIES[name]}` is a series of four terms, wrong for |x| > 1"
            raise Blocked("TL418", call, f"`T.{name}`{where}: {why}")


class _Loop:
    """What becomes of one loop: parts of its body in loops of their own, and operations on tiles between them."""

    def __init__(self, job: Job, loop: Loop, ranges: tuple[Range, ...], tiles: _Tiles) -> None:
        self._job, self._loop, self._ranges, self._tiles = job, loop, ranges, tiles
        self._parts: list[list[cst.BaseStatement] | str] = [[]]
        self.changed = False

    def keep(self, stmt: Stmt) -> None:
        """A statement that stays in a loop with its neighbours."""
        self._group().append(_line(self._job, stmt.node))

    def take(self, stmt: Store, leaving: dict[str, str]) -> None:
        """A statement that gets a loop of its own, and operations before or behind it."""
        self.changed = True
        value, target = stmt.value.node, stmt.target
        behind: list[str] = []
        kept: set[int] = set()
        while (found := self._next(value, leaving, kept)) is not None:
            call, name, op = found
            argument = call.args[0].value
            if not op:
                self._job.change("TL410", call, f"wrote `T.{name}` with functions that have vector operations")
                value = self._with(value, call, self._by_formula(stmt, argument, name))
                continue
            self._job.change("TL410", call, f"wrote `T.{op}` on the whole tile for `T.{name}`")
            if (
                call is value
                and not stmt.augmented
                and covers(target, self._ranges)
                and self._same_type(stmt, argument)
            ):
                value = argument
                tile = target.buffer
                behind.append(self._operation(op, tile.name, shape_of(tile), dtype_text(tile)))
                break
            if name in _ON_STATISTICS:
                kept.add(id(call))
                continue
            element = code(target.node)
            own = code(argument) == element and covers(target, self._ranges) and not stmt.augmented
            if own and sum(code(load.node) == element for load in stmt.value.loads) == 1:
                name_of, dtype, shape = target.buffer.name, dtype_text(target.buffer), shape_of(target.buffer)
            else:
                dtype, shape = self._type_of(stmt, argument), self._shape()
                name_of = self._tiles.new(f"{target.buffer.name}_{name}", shape, dtype, target)
                element = self._in_tile(stmt, name_of, flat(argument))
            self._parts.append(self._operation(op, name_of, shape, dtype))
            value = self._with(value, call, element)
        line = _line(self._job, stmt.node)
        if value is not stmt.value.node:
            line = replaced(line, {id(stmt.value.node): value})  # type: ignore[assignment]
        self._parts += [[line], *behind, []]

    def _by_formula(self, stmt: Store, argument: cst.BaseExpression, function: str) -> str:
        """The text of the value of a formula, after loops that compute its argument and its steps in tiles."""
        narrow, formula = narrow_type(self._job, stmt, argument), FORMULAS[function]
        steps: list[tuple[str, str]] = []
        known: dict[str, str] = {}
        if narrow or not isinstance(argument, (cst.Name, cst.Subscript)):
            steps.append(("x", as_float32(argument, narrow)))
        else:
            known["x"] = flat(argument)
        for name, text in (*steps, *formula.steps):
            if name not in known:
                wish = f"{stmt.target.buffer.name}_{function}" + ("" if name == "x" else f"_{name}")
                tile = self._tiles.new(wish, self._shape(), '"float32"', stmt.target)
            else:
                tile = known[name].partition("[")[0]
            known[name] = self._in_tile(stmt, tile, text if isinstance(text, str) else formula_text(text, known))
        value = formula_text(formula.value, known)
        return f"T.cast({value}, {narrow})" if narrow else value

    def _in_tile(self, stmt: Store, tile: str, text: str) -> str:
        """The element of a tile that a loop of its own puts a value into."""
        element = f"{tile}[{', '.join(item.name for item in self._ranges)}]"
        self._parts.append([*parse(self._job, f"{element} = {text}\n", stmt.node)])
        return element

    def _shape(self) -> str:
        """The shape of a tile with an element for each iteration."""
        return shape_text(self._job.kernel, [_extent(item) for item in self._ranges])

    def _with(self, value: cst.BaseExpression, call: cst.Call, text: str) -> cst.BaseExpression:
        """The value with something else in place of a call."""
        new = replaced(value, {id(call): expression(self._job, factor(text) if call is not value else text, call)})
        assert isinstance(new, cst.BaseExpression)
        return new

    def _next(
        self, value: cst.BaseExpression, leaving: dict[str, str], kept: set[int]
    ) -> tuple[cst.Call, str, str] | None:
        """The next call that leaves an expression, inner ones first, with its function and its operation."""
        for call, name in called(self._job, value):
            if name in leaving and len(call.args) == 1 and id(call) not in kept:
                return call, name, leaving[name]
        return None

    def lines(self) -> list[Line]:
        """The new statements."""
        found: list[Line] = []
        node = cst.ensure_type(self._loop.node, cst.For)
        for part in self._parts:
            if isinstance(part, str):
                found += parse(self._job, part + "\n", node)
            elif part:
                body = node.body.with_changes(body=part)
                above = [] if found else node.leading_lines
                found.append(node.with_changes(body=body, leading_lines=above))
        return found

    def _group(self) -> list[cst.BaseStatement]:
        last = self._parts[-1]
        if isinstance(last, str):
            last = []
            self._parts.append(last)
        return last

    def _operation(self, op: str, name: str, shape: str, dtype: str) -> str:
        if op not in NPUIR_TILES.values():
            return f"T.{op}({name}, {name})"
        return f"T.{op}({name}, {name}, {self._tiles.tmp(name, shape, dtype)})"

    def _same_type(self, stmt: Store, argument: cst.BaseExpression) -> bool:
        return self._type_of(stmt, argument) == dtype_text(stmt.target.buffer)

    def _type_of(self, stmt: Store, argument: cst.BaseExpression) -> str:
        """The element type of an argument: that of the widest float in it; without one a GPU computes in float32."""
        loads = [load.buffer for load in self._job.file.evaluator.loads(argument, stmt.env)]
        floats = [b for b in loads if not element_type(self._job, b).startswith(("int", "uint", "bool"))]
        target = dtype_text(stmt.target.buffer)
        texts = {dtype_text(buffer) for buffer in floats}
        wide = [b for b in floats if element_type(self._job, b) == "float32"]
        if not texts:
            narrow = element_type(self._job, stmt.target.buffer) in ("float16", "bfloat16")
            return '"float32"' if narrow else target
        if texts == {target}:
            return target
        return dtype_text((wide or floats)[0])


class _Tiles:
    """New tiles, each allocated behind the one that it belongs to, or else above the loop ``before``."""

    def __init__(self, job: Job, plan: Plan) -> None:
        self._job, self._plan, self._names = job, plan, Names(job)
        self.before: Stmt | None = None
        self._tmp: dict[str, str] = {}
        self._near: dict[str, cst.CSTNode] = {
            buffer.name: buffer.statement for buffer in job.kernel.buffers.values() if buffer.statement is not None
        }

    def new(self, wish: str, shape: str, dtype: str, beside: Operand) -> str:
        """A tile beside another."""
        name = self._names.fresh(wish)
        self._near[name] = self._allocate(name, shape, dtype, beside.buffer.name)
        return name

    def tmp(self, of: str, shape: str, dtype: str) -> str:
        """The tile for what an operation on ``of`` computes on its way."""
        if of not in self._tmp:
            self._tmp[of] = self._names.fresh(f"{of}_tmp")
            self._allocate(self._tmp[of], shape, dtype, of)
        return self._tmp[of]

    def _allocate(self, name: str, shape: str, dtype: str, beside: str) -> cst.CSTNode:
        last = last_allocation(self._job, self.before) if self.before is not None else None
        place = self._near.get(beside) or (last.node if last is not None else None)
        if place is None:
            raise Blocked("TL418", self._job.located.node, "cannot tell where to allocate a temporary tile")
        self._plan.after(place, parse(self._job, f"{name} = T.alloc_shared({shape}, {dtype})\n", place))
        return place


def _extent(item: Range) -> str:
    return code(item.stop_node) if item.stop_node is not None else str(item.extent)


def _line(job: Job, node: cst.CSTNode) -> cst.BaseStatement:
    """The line of a statement."""
    parent = job.file.index.parent(node)
    if isinstance(parent, cst.SimpleStatementLine) and len(parent.body) == 1:
        return parent
    if isinstance(node, cst.BaseSmallStatement):
        return cst.SimpleStatementLine([node.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)])
    assert isinstance(node, cst.BaseStatement)
    return node
