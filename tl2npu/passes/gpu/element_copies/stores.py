"""Stores and additions of an element-wise loop to global memory."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tl2npu.kernel.access import accesses, writes
from tl2npu.kernel.atomics import refuse_atomic
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Let, Memory, Op, Operand, Range, Scalar, Store
from tl2npu.kernel.ranges.reach import lies_inside
from tl2npu.kernel.regions import Axis, Region, extent_text, summand
from tl2npu.kernel.symbolic import const
from tl2npu.passes.gpu.element_copies.gathers import rows_of, tests_of_rows
from tl2npu.passes.gpu.element_copies.guards import Guard, all_of, end_of, written
from tl2npu.passes.gpu.element_copies.scattered import ScatteredElements
from tl2npu.passes.gpu.element_copies.strided import Place, column_of, store_column
from tl2npu.passes.gpu.element_copies.values import load_of
from tl2npu.passes.gpu.element_copies.writing import Item
from tl2npu.passes.writing.numbers import number_type
from tl2npu.passes.writing.statements import expression
from tl2npu.source.tree import nodes_of, replaced
from tl2npu.source.tree import walk as nodes

# TL603: sums and extrema of scattered elements, ``if inside: v[i] = T.max(v[i], X[...])``.
#
# An element that the condition leaves out is read as the value that changes nothing, 0 or an infinity. So the condition
# is asked where the scalar unit reads the elements, and the vector core takes all of them.

_SIGNS = {"max": "-", "min": ""}
_CASTS = ("cast", "Cast")


class CollectedElements(ScatteredElements):
    """Statements that take scattered elements together."""

    def _collect(self, items: Sequence[Item]) -> None:
        """Rewrite such statements, behind the loop."""
        for number, item in enumerate(items):
            stmt = item.stmt
            if not isinstance(stmt, Store) or not item.branches or not all(then for _, then in item.branches):
                continue
            others = [other.stmt for other in (*items[:number], *items[number + 1 :])]
            around = [branch for other in items for branch, _ in other.branches]
            if not any(a.operand.buffer is stmt.target.buffer for o in (*others, *around) for a in accesses(o)):
                self._collected(item, stmt)

    def _collected(self, item: Item, stmt: Store) -> None:
        parts = self._parts(stmt)
        conditions = [branch.cond.node for branch, _ in item.branches]
        if parts is None or not self._whole(stmt.target, self.ranges):
            return
        if any(self.evaluator.loads(self.lets.expand(node), stmt.env) for node in conditions):
            return
        name, value = parts
        known = dict(self.lets.items())
        while isinstance(value, cst.Name) and value.value in known:
            value = known[value.value]
        operand = self._element_in(value, stmt)
        if operand is None or self._region(operand, stmt.env) is not None:
            return
        if name in _SIGNS and number_type(self.job, operand.buffer) != "float":
            return  # integers have no infinity
        tile = self._scattered(operand, item, conditions, neutral=_SIGNS.get(name))
        target, text = code(stmt.target.node), code(replaced(value, {id(operand.node): cst.parse_expression(tile)}))
        new = f"{target} += {text}" if name == "+" else f"{target} = T.{name}({target}, {text})"
        names = ", ".join(part.name for part in self.ranges)
        extents = ", ".join(extent_text(part).strip("()") for part in self.ranges)
        self._after(f"for {names} in T.Parallel({extents}):\n    {new}")
        self.gone.add(id(stmt))

    def _parts(self, stmt: Store) -> tuple[str, cst.BaseExpression] | None:
        """How a statement joins a value with what its target holds, and the value."""
        target, value = code(stmt.target.node), stmt.value.node
        if isinstance(stmt.node, cst.AugAssign):
            return ("+", value) if isinstance(stmt.node.operator, cst.AddAssign) else None
        if isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.Add):
            name, pair = "+", [value.left, value.right]
        elif isinstance(value, cst.Call):
            name = self.evaluator.names.operator(value.func)
            pair = [arg.value for arg in value.args]
        else:
            return None
        if name not in ("+", *_SIGNS) or len(pair) != 2 or target not in map(code, pair):
            return None
        return name, pair[1] if code(pair[0]) == target else pair[0]

    def _element_in(self, value: cst.BaseExpression, stmt: Store) -> Operand | None:
        """The element of global memory that a value is, but for casts."""
        while isinstance(value, cst.Call):
            name = self.evaluator.names.operator(value.func)
            inner = [arg.value for arg in value.args if isinstance(arg.value, (cst.Subscript, cst.Call))]
            if name not in _CASTS or len(inner) != 1:
                return None
            value = inner[0]
        operand = self.evaluator.operand(value, stmt.env) if isinstance(value, cst.Subscript) else None
        return operand if operand is not None and operand.buffer.memory is Memory.GM else None


class LoopStores(CollectedElements):
    """What a loop writes to global memory goes there from tiles, behind the loop."""

    def _add(self, item: Item, stmt: Op, later: Sequence[Item]) -> None:
        """``T.atomic_add(C[start + i, ...], value)``."""
        target, value = stmt.args["dst"], stmt.args["value"]
        refuse_atomic(stmt)
        assert isinstance(target, Operand)
        scalar = value if isinstance(value, Scalar) else Scalar(value.node, const(0), (value,))
        store = Store(stmt.node, target, scalar, False)
        store.env = stmt.env
        self._store_to_global(Item(store, item.branches), store, later, add=True)
        if id(store) in self.gone:
            self.gone.add(id(stmt))
        else:
            index = self.new.pop(id(target.node))
            assert isinstance(index, cst.BaseAssignTargetExpression)
            new_value = self._new(scalar.node)
            assert isinstance(new_value, cst.BaseExpression)
            self.new[id(stmt.node)] = cst.Assign([cst.AssignTarget(index)], new_value)
        self.say("TL172", stmt.node, f"wrote atomic additions from a tile to `{target.buffer.name}`")

    def _store_to_global(self, item: Item, stmt: Store, later: Sequence[Item], *, add: bool = False) -> None:
        env = stmt.env
        rule = "TL173" if add else "TL170"
        found = self._region(stmt.target, env)
        if found is None and self._scattered_rows(item, stmt, later, add):
            return
        if found is None or not found.ranges:
            raise Blocked(rule, stmt.node, f"`{code(stmt.target.node)}` stores scattered elements")
        if not found.in_rows and (add or len(found.ranges) != 1 or stmt.augmented):
            text = f"`{code(stmt.target.node)}` stores columns of `{found.buffer.name}`"
            raise Blocked(rule, stmt.node, text)
        if {item.name for item in found.ranges} != {item.name for item in self.ranges}:
            raise Blocked(rule, stmt.node, f"`{code(stmt.target.node)}` is written by several iterations")
        guards = self._guards(item)
        if guards is None:
            raise Blocked(rule, stmt.node, f"`{found.buffer.name}` is stored under an `else`")
        if self._tests(found, False):
            text = f"`{found.buffer.name}` may be accessed before its start, where a copy is not clamped"
            raise Blocked("TL170", stmt.node, text)
        tails = all(condition.is_tail(found) for condition in guards)
        source = self._stored_tile(stmt, found, later, add)
        if source is None or (add and not tails and self._is_product(self.kernel.buffers[source])):
            source = self._computed(item, stmt, found)
        else:
            self.gone.add(id(stmt))
            if not add:
                self.say("TL166", stmt.node, f"wrote a copy from `{source}` to `{found.buffer.name}`")
        if tails and not found.in_rows:
            self._store_column(stmt, found, source, ())
            return
        if tails:
            text = self._text(found)
            self._after(f"T.tile.atomic_add({text}, {source})" if add else f"T.copy({source}, {text})")
            if guards:
                self.say(
                    "TL168", stmt.node, f"removed the guard: the copy is clamped at the end of `{found.buffer.name}`"
                )
            return
        self._guarded_rows(stmt, found, source, guards, add)

    def _scattered_rows(self, item: Item, stmt: Store, later: Sequence[Item], add: bool) -> bool:
        """``A[index(i), ..., start + j] = tile[i, j]``: row by row, each under the conditions on it."""
        conditions = [branch.cond.node for branch, _ in item.branches]
        if len(self.ranges) != 2 or stmt.augmented or not all(then for _, then in item.branches):
            return False
        row, column = self.ranges
        rows = rows_of(self, stmt.target, row, column, stmt)
        read = {name for guard in self._guards(item) or () for name in guard.names(self.lets)}
        if rows is None or not rows.picks or column.name in read:
            return False
        tests = tests_of_rows(self, stmt, rows, conditions)
        tile = Region(rows.buffer, tuple(Axis(part.var, "0", part) for part in self.ranges))
        source = self._stored_tile(stmt, tile, later, True)
        if source is None or self._is_product(self.kernel.buffers[source]):
            source = self._computed(item, stmt, tile)
        else:
            self.gone.add(id(stmt))
        part = f"{source}[{row.name}, :]"
        store = f"T.tile.atomic_add({rows.start()}, {part})" if add else f"T.copy({part}, {rows.part()})"
        self._row_loop(row, tests, store, self.own_words([*tests, rows.start()]))
        how = "added" if add else "stored"
        self.say("TL169", stmt.node, f"the rows of `{rows.buffer.name}` are {how} one by one")
        return True

    def _row_loop(self, row: Range, tests: Sequence[str], line: str, names: Sequence[str] = ()) -> None:
        lines = [f"    {name}" for name in names]
        lines += [f"    if {all_of(tests)}:", f"        {line}"] if tests else [f"    {line}"]
        self._after("\n".join([f"for {row.name} in T.serial({extent_text(row)}):", *lines]))

    def _store_column(
        self, stmt: Store, found: Region, source: str, tests: Sequence[str], *, ended: bool = False
    ) -> None:
        column, name = column_of(found), found.ranges[0].name
        tile = Place(source, found.buffer.dtype)
        move = store_column(self.job, column, tile, name, self.names, tests, ended=ended)
        self.allocations += move.tiles
        self._after("\n".join(move.lines))
        self.say("TL169", stmt.node, move.told)

    def _computed(self, item: Item, stmt: Store, found: Region) -> str:
        """Let the loop write a new tile, which may be transposed; its name."""
        turned = len(found.ranges) == 2 and found.ranges == self.ranges[::-1]
        if found.ranges != self.ranges and (not turned or stmt.augmented):
            raise Blocked("TL170", stmt.node, f"`{found.buffer.name}` is stored transposed")
        if stmt.augmented:
            self._loads(stmt.target.node, item, written=True)
            source = code(self._new(stmt.target.node)).split("[")[0]
        else:
            source = self.tile(found)
            index = ", ".join(item.name for item in found.ranges)
            self.new[id(stmt.target.node)] = cst.parse_expression(f"{source}[{index}]")
        self._loads(stmt.value.node, item)
        self._keep_inside(item, stmt)
        self.say("TL167", stmt.node, f"computed `{source}` first, then copied it to `{found.buffer.name}`")
        return source

    def _keep_inside(self, item: Item, stmt: Store) -> None:
        """Elements that nothing but a condition keeps inside of their tile: the condition goes with the loop's `if`."""
        tests = [written(self.lets.expand(branch.cond.node)) for branch, _ in item.branches]
        own = {id(node) for node in nodes(stmt.value.node)}
        for load in stmt.value.loads if tests else ():
            if not load.buffer.is_tile or lies_inside(self._bounds, load):
                continue
            if id(load.node) not in own:
                text = f"`{code(load.node)}` is read under a condition that keeps it inside of `{load.buffer.name}`"
                raise Blocked("TL170", stmt.node, text)
            text = f"T.if_then_else({all_of(tests)}, {code(load.node)}, 0)"
            self.new[id(load.node)] = expression(self.job, text, stmt.node)

    def _guarded_rows(self, stmt: Store, found: Region, source: str, guards: Sequence[Guard], add: bool) -> None:
        """Rows under a condition of their own."""
        guards = [one for item in guards for one in item.beyond_tail(found)]
        row, names = found.ranges[0], {name for item in guards for name in item.names(self.lets)}
        conditions = [written(self.lets.expand(item.node)) for item in guards]
        number = next(number for number, axis in enumerate(found.axes) if axis.range is row)
        read = {stmt.name for stmt in self.job.kernel.walk() if isinstance(stmt, Let)}
        ended = any(item.says_end(found, number, read) for item in guards)
        if not add and self._first_rows(stmt, found, source, guards):
            return
        if len(found.ranges) == 1 and not add:
            self._store_column(stmt, found, source, conditions, ended=ended)
            return
        if len(found.ranges) != 2 or found.ranges[1].name in names:
            text = f"`{found.buffer.name}` is stored under a condition that a copy cannot express"
            if add:
                text = f"the atomic addition to `{found.buffer.name}` has a condition of its own"
            raise Blocked("TL173" if add else "TL170", stmt.node, text)
        one = found.at(number)
        if number < len(found.axes) - 2 and not ended:
            conditions.insert(0, f"{one.axes[number].start} < {code(found.buffer.shape_nodes[number])}")
        part = f"{source}[{row.name}, :]"
        text = f"T.copy({part}, {one.text(slices=True)})"
        self._row_loop(row, conditions, f"T.tile.atomic_add({one.text(slices=False)}, {part})" if add else text)
        how = "added" if add else "stored"
        self.say("TL169", stmt.node, f"the rows of `{found.buffer.name}` are {how} one by one, under their condition")

    def _first_rows(self, stmt: Store, found: Region, source: str, guards: Sequence[Guard]) -> bool:
        """``if i < n: C[start + i, j] = acc[i, j]``: the first ``n`` rows of a product, by one copy.

        The copy out of L0C takes the rows of its region, and all of the tile for none (``copy_l0c_to_gm``,
        src/tl_templates/ascend/common.h:157; ``copy_l0c_to_gm_dynamic``, src/tl_templates/pto/common.h:266).
        """
        tile = self.kernel.buffers.get(source)
        if tile is None or not self._is_product(tile) or [a.range for a in found.axes[-2:]] != [*found.ranges]:
            return False
        if len(found.ranges) != 2:
            return False
        row, column = found.ranges
        terms = [term for item in guards for term in item.terms if not Guard(term.node, (term,)).is_tail(found)]
        if len(terms) != 1 or terms[0].index != row.var or terms[0].bound is None:
            return False
        (term,) = terms
        bound = end_of(term.node)
        if bound is None or not {row.name, column.name}.isdisjoint(name.value for name in nodes_of(bound, cst.Name)):
            return False
        assert term.bound is not None
        rows = code(bound)
        if not self._bounds.is_not_negative(row.extent - term.bound):
            rows = f"T.min({rows}, {extent_text(row)})"
        lines: list[str] = []
        if not rows.isidentifier():
            count = self.names.fresh("rows", f"{found.buffer.name.lower()}_rows")
            lines.append(f"{count} = {rows}")
            rows = count
        part = f"{source}[0:{rows}, 0:{extent_text(column)}]"
        *outer, along, across = found.axes
        first = f"0:{rows}" if along.lo.is_zero else f"{along.start} : {summand(along.start)} + {rows}"
        place = Region(found.buffer, (*outer, Axis(along.index, first, None), across))
        lines += [f"if {rows} > 0:", f"    T.copy({part}, {place.text(slices=True)})"]
        self._after("\n".join(lines))
        self.say("TL168", stmt.node, f"the copy takes the first `{rows}` rows of `{source}`")
        return True

    def _stored_tile(self, stmt: Store, found: Region, later: Sequence[Item], add: bool) -> str | None:
        """The tile that is stored as it is, None if the value has to be computed."""
        load = load_of(stmt.value.node, stmt, self.evaluator)
        if stmt.augmented or load is None or not load.buffer.is_tile:
            return None
        if not self._whole(load, found.ranges) or not self._copy_types(load.buffer, found.buffer, any_gemm=not add):
            return None
        changed = any(operand.buffer is load.buffer for other in later for operand in writes(other.stmt))
        return None if changed else load.buffer.name
