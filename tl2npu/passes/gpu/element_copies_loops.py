"""One element-wise loop with operands in global memory."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import accesses, reads, writes
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import Env, code
from tl2npu.kernel.model import (
    Branch,
    Buffer,
    Copy,
    Let,
    Loop,
    Memory,
    Op,
    Opaque,
    Operand,
    Range,
    Scalar,
    Stmt,
    Store,
    walk,
)
from tl2npu.kernel.symbolic import Sym, const
from tl2npu.passes.gpu.atomics_forms import refuse_atomic
from tl2npu.passes.gpu.element_copies_gathers import row_loop
from tl2npu.passes.gpu.element_copies_guards import Guard, guard, written
from tl2npu.passes.gpu.element_copies_regions import Lets, Region, axis_of, extent_text, region
from tl2npu.passes.gpu.element_copies_strided import column_of, lanes_of, load_column, store_column
from tl2npu.passes.gpu.element_copies_tiles import dtype_text
from tl2npu.passes.gpu.element_copies_values import Choice, choice, load_of
from tl2npu.passes.gpu.element_copies_writing import Item, LoopWriter, env_of
from tl2npu.passes.gpu.fills_values import element_type, literal
from tl2npu.passes.gpu.statements import Names
from tl2npu.passes.job import Job
from tl2npu.source.tree import children
from tl2npu.source.tree import walk as nodes


class LoopWork(LoopWriter):
    """Takes the operands in global memory out of one loop."""

    def __init__(self, job: Job, loop: Loop, parents: tuple[Stmt, ...]) -> None:
        super().__init__(job, loop, parents)
        self.evaluator = job.file.evaluator
        self.names = Names(job)
        self.ranges = loop.ranges
        self.lets = Lets({stmt.name: stmt.value.node for stmt in walk(loop.body) if isinstance(stmt, Let)})
        self.tiles: dict[tuple[object, ...], str] = {}
        self.slices = any(_has_slices(stmt) for stmt in self.kernel.walk() if isinstance(stmt, Copy))

    def carry_out(self) -> bool:
        """Rewrite the loop; False if nothing could be done."""
        self._refuse()
        items = list(self._items(self.loop.body, ()))
        for number, item in enumerate(items):
            if isinstance(item.stmt, Store):
                self._store(item, items[:number], items[number + 1 :])
            elif isinstance(item.stmt, Op) and item.stmt.op.kind is Kind.ATOMIC:
                self._add(item, item.stmt, items[number + 1 :])
            elif not isinstance(item.stmt, Let):
                self._loads(item.stmt.node, item)
        for item in items:
            if isinstance(item.stmt, Let) and self._still_read(item.stmt.name, items):
                self._loads(item.stmt.value.node, item)
        for item in items:
            for branch, _ in item.branches:
                self._loads(branch.cond.node, item)
        self._write(items)
        return bool(self.plan)

    # -- reading ----------------------------------------------------------------------------------------------------

    def _refuse(self) -> None:
        seen: set[str] = set()
        for stmt in walk(self.loop.body):
            nested = isinstance(stmt, (Loop, Opaque)) or (isinstance(stmt, Op) and stmt.op.kind is not Kind.ATOMIC)
            operands = (*reads(stmt, deep=True), *writes(stmt, deep=True)) if nested else ()
            if any(operand.buffer.memory is Memory.GM for operand in operands):
                raise Blocked("TL170", stmt.node, "global memory inside of a nested statement of `T.Parallel`")
            if isinstance(stmt, Let):
                if stmt.name in seen or not isinstance(stmt.node, (cst.Assign, cst.AnnAssign)):
                    raise Blocked("TL170", stmt.node, f"`{stmt.name}` changes inside of the loop")
                seen.add(stmt.name)

    def _items(self, body: Sequence[Stmt], branches: tuple[tuple[Branch, bool], ...]) -> list[Item]:
        found: list[Item] = []
        for stmt in body:
            if isinstance(stmt, Branch):
                found += self._items(stmt.then, (*branches, (stmt, True)))
                found += self._items(stmt.orelse, (*branches, (stmt, False)))
            else:
                found.append(Item(stmt, branches))
        return found

    def _region(self, operand: Operand, env: Env) -> Region | None:
        return region(operand, self.ranges, self.lets, self.evaluator, env)

    def _guard(self, node: cst.BaseExpression, env: Env) -> Guard:
        return guard(node, self.lets, self.evaluator, env)

    def _guards(self, item: Item) -> list[Guard] | None:
        """The conditions of a statement; None if it stands in an ``else``."""
        if not all(then for _, then in item.branches):
            return None
        env = env_of(item.stmt)
        return [self._guard(branch.cond.node, env) for branch, _ in item.branches]

    # -- statements -------------------------------------------------------------------------------------------------

    def _store(self, item: Item, earlier: Sequence[Item], later: Sequence[Item]) -> None:
        stmt = item.stmt
        assert isinstance(stmt, Store)
        if stmt.target.buffer.memory is Memory.GM:
            self._store_to_global(item, stmt, later)
        elif not (self._pure_load(item, stmt, earlier, later) or self._row_loads(item, stmt, earlier)):
            self._loads(stmt.value.node, item)
            self._loads(stmt.target.node, item)

    def _pure_load(self, item: Item, stmt: Store, earlier: Sequence[Item], later: Sequence[Item]) -> bool:
        """``tile[i, j] = A[start + i, ...]``, perhaps guarded, becomes a copy."""
        chosen = choice(stmt, self.evaluator)
        found = self._load_region(chosen, stmt)
        if stmt.augmented or found is None or not self._whole(stmt.target, found.ranges):
            return False
        if any(_touches(other.stmt, stmt.target.buffer) for other in earlier):
            return False
        if not found.in_rows:
            return self._pure_column(item, stmt, chosen, found)
        pad = "0"
        others = self._alternative(item, chosen, later, found)
        if others is None:
            return False
        value, twins = others
        if value is not None:
            pad = literal(self.job, stmt.target.buffer, value)
        tile = stmt.target.buffer
        if self._copy_types(found.buffer, tile):
            self._before(f"T.copy({self._text(found)}, {tile.name}{_padding(pad)})")
        else:
            if pad.strip("-0.") != "":
                return False
            name = self._tile_for(found)
            self._before(f"T.copy({name}, {tile.name})")
        self.gone |= {id(stmt), *(id(twin.stmt) for twin in twins)}
        self.say("TL166", stmt.node, f"`{tile.name}` is loaded from `{found.buffer.name}` by a copy")
        if item.branches or chosen.cond is not None:
            self.say("TL168", stmt.node, f"the copy stops at the end of `{found.buffer.name}` itself")
        return True

    def _pure_column(self, item: Item, stmt: Store, chosen: Choice, found: Region) -> bool:
        if item.branches or chosen.cond is not None or len(found.ranges) != 1:
            return False
        self._before(
            "\n".join(load_column(column_of(found), stmt.target.buffer.name, found.ranges[0].name, self.names))
        )
        self.gone.add(id(stmt))
        text = f"a column of `{found.buffer.name}` is read element by element, which is slow"
        self.say("TL169", stmt.node, text)
        return True

    def _load_region(self, chosen: Choice, stmt: Store) -> Region | None:
        load = load_of(chosen.value, stmt, self.evaluator)
        if load is None or load.buffer.memory is not Memory.GM:
            return None
        found = self._region(load, env_of(stmt))
        if found is None or not found.ranges:
            return None
        self._check_start(stmt, found)
        return found

    def _alternative(
        self, item: Item, chosen: Choice, later: Sequence[Item], found: Region
    ) -> tuple[cst.BaseExpression | None, list[Item]] | None:
        """What the tile holds where the tensor ends, and the statements that say so; None if a copy cannot do it."""
        stmt = item.stmt
        assert isinstance(stmt, Store)
        guards = self._guards(item)
        if guards is None:
            return None
        if chosen.cond is not None:
            if item.branches or chosen.other is None or not self._constant(chosen.other, stmt):
                return None
            tail = self._guard(chosen.cond, env_of(stmt)).is_tail(found)
            return (chosen.other, []) if tail and (_is_zero(chosen.other) or len(found.ranges) == 1) else None
        if not guards:
            return None, []
        if len(guards) != 1 or not guards[0].is_tail(found):
            return None
        branch = item.branches[0][0]
        twins = [
            other
            for other in later
            if other.branches == ((branch, False),)
            and isinstance(other.stmt, Store)
            and other.stmt.target.buffer is stmt.target.buffer
        ]
        if len(twins) == 1 and isinstance(twins[0].stmt, Store):
            value = twins[0].stmt.value.node
            same = code(twins[0].stmt.target.node) == code(stmt.target.node) and not twins[0].stmt.augmented
            if same and self._constant(value, twins[0].stmt) and (_is_zero(value) or len(found.ranges) == 1):
                return value, twins
            return None
        return (None, []) if not twins and self._only_writer(stmt) else None

    def _constant(self, node: cst.BaseExpression, stmt: Stmt) -> bool:
        env = env_of(stmt)
        if self.evaluator.loads(node, env) or any(
            isinstance(name, cst.Name) and name.value in {item.name for item in self.ranges} for name in nodes(node)
        ):
            return False
        return isinstance(self.lets.expand(node), (cst.Integer, cst.Float, cst.UnaryOperation, cst.Call, cst.Name))

    def _only_writer(self, stmt: Store) -> bool:
        """Nothing else writes the tile: behind the end of the tensor it held nothing that was ever put there."""
        return not any(
            operand.buffer is stmt.target.buffer
            for other in self.kernel.walk()
            if other is not stmt
            for operand in writes(other)
        )

    def _row_loads(self, item: Item, stmt: Store, earlier: Sequence[Item]) -> bool:
        """Rows that an index picks, and columns of a tensor, one after another."""
        if stmt.augmented or not all(then for _, then in item.branches):
            return False
        if any(_touches(other.stmt, stmt.target.buffer) for other in earlier):
            return False
        lines = row_loop(self, item.branches, stmt)
        if lines is None:
            return False
        self._before("\n".join(lines))
        self.gone.add(id(stmt))
        return True

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
        self.say("TL172", stmt.node, f"the whole tile is added to `{target.buffer.name}` at once")

    def _store_to_global(self, item: Item, stmt: Store, later: Sequence[Item], *, add: bool = False) -> None:
        env = env_of(stmt)
        rule = "TL173" if add else "TL170"
        found = self._region(stmt.target, env)
        if found is None or not found.ranges:
            raise Blocked(rule, stmt.node, f"`{code(stmt.target.node)}` is stored at scattered places")
        if not found.in_rows and (add or len(found.ranges) != 1 or stmt.augmented):
            text = f"`{code(stmt.target.node)}` stores columns of `{found.buffer.name}`"
            raise Blocked(rule, stmt.node, text)
        if {item.name for item in found.ranges} != {item.name for item in self.ranges}:
            raise Blocked(rule, stmt.node, f"`{code(stmt.target.node)}` is written by several iterations")
        self._check_start(stmt, found)
        guards = self._guards(item)
        if guards is None:
            raise Blocked(rule, stmt.node, f"`{found.buffer.name}` is stored under an `else`")
        tails = all(condition.is_tail(found) for condition in guards)
        if add and not tails:
            raise Blocked(rule, stmt.node, f"`{found.buffer.name}` is added to under a condition of its own")
        source = self._stored_tile(stmt, found, later, add)
        if source is None:
            source = self._computed(item, stmt, found)
        else:
            self.gone.add(id(stmt))
            if not add:
                self.say("TL166", stmt.node, f"`{source}` is stored to `{found.buffer.name}` by a copy")
        if tails and not found.in_rows:
            self._store_column(stmt, found, source, ())
            return
        if tails:
            text = self._text(found)
            self._after(f"T.tile.atomic_add({text}, {source})" if add else f"T.copy({source}, {text})")
            if guards:
                self.say("TL168", stmt.node, f"the copy stops at the end of `{found.buffer.name}` itself")
            return
        self._guarded_rows(stmt, found, source, guards)

    def _store_column(self, stmt: Store, found: Region, source: str, tests: Sequence[str]) -> None:
        lanes = lanes_of(self.job, found.buffer)
        rows = self.names.fresh(f"{found.buffer.name.lower()}_rows")
        shape = f"[{extent_text(found.ranges[0]).strip('()')}, {lanes}]"
        self.allocations.append(f"{rows} = T.alloc_shared({shape}, {dtype_text(found.buffer)})")
        lines = store_column(column_of(found), source, rows, found.ranges[0].name, self.names, lanes, tests)
        self._after("\n".join(lines))
        self.say("TL169", stmt.node, f"elements of `{found.buffer.name}` are stored one by one, which is slow")

    def _computed(self, item: Item, stmt: Store, found: Region) -> str:
        """Let the loop write a new tile; its name."""
        if found.ranges != self.ranges:
            raise Blocked("TL170", stmt.node, f"`{found.buffer.name}` is stored transposed")
        if stmt.augmented:
            self._loads(stmt.target.node, item, written=True)
            source = code(self._new(stmt.target.node)).split("[")[0]
        else:
            source = self.tile(found)
            index = ", ".join(item.name for item in found.ranges)
            self.new[id(stmt.target.node)] = cst.parse_expression(f"{source}[{index}]")
        self._loads(stmt.value.node, item)
        self.say("TL167", stmt.node, f"`{source}` is computed first and then goes to `{found.buffer.name}`")
        return source

    def _guarded_rows(self, stmt: Store, found: Region, source: str, guards: Sequence[Guard]) -> None:
        """Rows under a condition of their own."""
        row, names = found.ranges[0], {name for item in guards for name in item.names(self.lets)}
        if len(found.ranges) == 1:
            self._store_column(stmt, found, source, [written(self.lets.expand(item.node)) for item in guards])
            return
        if len(found.ranges) != 2 or found.ranges[1].name in names:
            text = f"`{found.buffer.name}` is stored under a condition that no copy has"
            raise Blocked("TL170", stmt.node, text)
        conditions = " and ".join(written(self.lets.expand(item.node)) for item in guards)
        one = Region(
            found.buffer,
            tuple(
                axis
                if axis.range is not row
                else type(axis)(axis.index, f"{axis.start} + {row.name}" if not axis.lo.is_zero else row.name, None)
                for axis in found.axes
            ),
        )
        lines = [
            f"for {row.name} in T.serial({extent_text(row)}):",
            f"    if {conditions}:",
            f"        T.copy({source}[{row.name}, :], {one.text(slices=True)})",
        ]
        self._after("\n".join(lines))
        self.say("TL169", stmt.node, f"the rows of `{found.buffer.name}` are stored one by one, under their condition")

    def _stored_tile(self, stmt: Store, found: Region, later: Sequence[Item], add: bool) -> str | None:
        """The tile that is stored as it is, None if the value has to be computed."""
        load = load_of(stmt.value.node, stmt, self.evaluator)
        if stmt.augmented or load is None or load.buffer.memory in (Memory.GM, Memory.VAR):
            return None
        if not self._whole(load, found.ranges) or not self._copy_types(load.buffer, found.buffer, any_gemm=not add):
            return None
        changed = any(operand.buffer is load.buffer for other in later for operand in writes(other.stmt))
        return None if changed else load.buffer.name

    # -- operands in expressions ------------------------------------------------------------------------------------

    def _loads(self, node: cst.CSTNode, item: Item, *, written: bool = False) -> None:
        """Put a tile, or a name, in the place of every element of a tensor that an expression reads."""
        env = env_of(item.stmt)
        stack: list[cst.CSTNode] = [node]
        while stack:
            current = stack.pop()
            if id(current) in self.new:
                continue
            operand = self.evaluator.operand(current, env) if isinstance(current, cst.Subscript) else None
            if operand is None or operand.buffer.memory is not Memory.GM:
                stack += children(current)
                continue
            found = self._region(operand, env)
            if found is None:
                text = f"`{code(current)}` reads scattered elements of `{operand.buffer.name}`"
                raise Blocked("TL170", item.stmt.node, text)
            self._check_start(item.stmt, found)
            if not found.ranges:
                self.new[id(current)] = cst.Name(self._scalar(found))
                continue
            name = self._tile_for(found, fresh=written)
            index = ", ".join(part.name for part in found.ranges)
            self.new[id(current)] = cst.parse_expression(f"{name}[{index}]")

    def _check_start(self, stmt: Stmt, found: Region) -> None:
        """A GPU reads zeros before the beginning of a tensor; a copy must not start there."""
        if found.ranges and any(self._may_be_negative(axis.lo) for axis in found.axes):
            text = f"`{found.buffer.name}` may be accessed before its beginning, where no copy may start"
            raise Blocked("TL170", stmt.node, text)

    def _may_be_negative(self, value: Sym) -> bool:
        """False if an index is a sum of sizes and block numbers at the least that its loops make it."""
        largest = {str(item.var): item.start + item.extent - 1 for item in _enclosing(self.parents)}
        launch = self.kernel.launch
        for name, size in zip(launch.names, launch.grid, strict=False) if launch is not None else ():
            largest |= {var: size - 1 for var in value.variables() if var.partition("@")[0] == name}
        for var, most in largest.items():
            parts = [factor for monomial, factor in value.terms if any(str(atom) == var for atom in monomial)]
            if parts and all(factor < 0 for factor in parts):
                value = value.substitute({var: most})
        return any(factor < 0 for _, factor in value.terms)

    def _scalar(self, found: Region) -> str:
        key = ("scalar", *found.key())
        if key not in self.tiles:
            name = self.names.fresh(f"{found.buffer.name.lower()}_value")
            self.tiles[key] = name
            self._hoisted(found, f"{name} = {found.text(slices=False)}")
            self.say("TL167", self.loop.node, f"an element of `{found.buffer.name}` is read once, before the loop")
        return self.tiles[key]

    def _tile_for(self, found: Region, *, fresh: bool = False) -> str:
        """The tile that holds a region, loaded before the loop."""
        key = found.key()
        if key in self.tiles and not fresh:
            return self.tiles[key]
        if len(found.ranges) > 2:
            raise Blocked("TL170", self.loop.node, f"a part of `{found.buffer.name}` with more than two axes")
        name = self.tile(found)
        self.tiles[key] = name
        if found.in_rows:
            self._hoisted(found, f"T.copy({self._text(found)}, {name})")
            self.say("TL167", self.loop.node, f"`{found.buffer.name}` is loaded into `{name}` first")
            return name
        self._hoisted(found, "\n".join(load_column(column_of(found), name, found.ranges[0].name, self.names)))
        self.say(
            "TL169", self.loop.node, f"a column of `{found.buffer.name}` is read element by element, which is slow"
        )
        return name

    def tile(self, found: Region) -> str:
        shared = any(buffer.name.endswith("_shared") for buffer in self.kernel.buffers.values())
        base = found.buffer.name
        name = self.names.fresh(*([f"{base}_shared"] if shared else []), f"{base.lower()}_tile")
        shape = ", ".join(extent_text(part).strip("()") if part.stop_node else "" for part in found.ranges)
        self.allocations.append(f"{name} = T.alloc_shared([{shape}], {dtype_text(found.buffer)})")
        return name

    def from_tiles(self, node: cst.BaseExpression, stmt: Stmt) -> cst.BaseExpression:
        """The expression without names that the loop body binds, elements of tensors read from tiles."""
        full = self.lets.expand(node)
        self._loads(full, Item(stmt, ()))
        found = self._new(full)
        assert isinstance(found, cst.BaseExpression)
        return found

    def whole(self, operand: Operand) -> bool:
        """True if the loop runs over every element of a tile in the order of its axes."""
        return self._whole(operand, self.ranges)

    # -- helpers ----------------------------------------------------------------------------------------------------

    def _whole(self, operand: Operand, order: Sequence[object]) -> bool:
        """True if the loop runs over every element of a tile, its axes in the order of the tensor's."""
        if operand.dims is None or len(operand.dims) != len(order) or len(order) != len(self.ranges):
            return False
        for dim, part, size in zip(operand.dims, order, operand.buffer.shape, strict=True):
            if not isinstance(dim.node, cst.BaseExpression) or part not in self.ranges:
                return False
            axis = axis_of(dim.node, self.ranges, self.lets, self.evaluator, env_of(self.loop.body[0]))
            if axis is None or axis.range is not part or not axis.lo.is_zero or axis.range.extent != size:
                return False
        return len(operand.dims) == len(operand.buffer.shape)

    def _copy_types(self, source: Buffer, target: Buffer, *, any_gemm: bool = False) -> bool:
        """True if a copy between the two moves the elements as they are (or a product, which converts on the way)."""
        if any_gemm and self._is_product(source):
            return True
        return element_type(self.job, source) == element_type(self.job, target)

    def _is_product(self, buffer: Buffer) -> bool:
        used = [
            stmt
            for stmt in self.kernel.walk()
            if not isinstance(stmt, Store) and any(a.operand.buffer is buffer for a in accesses(stmt))
        ]
        kinds = {stmt.op.kind for stmt in used if isinstance(stmt, Op)}
        return Kind.GEMM in kinds and kinds <= {Kind.GEMM, Kind.FILL}

    def _text(self, found: Region) -> str:
        return found.text(slices=self.slices)

    def _hoisted(self, found: Region, text: str) -> None:
        """Write a load of what the kernel does not change before the outermost loop that it does not depend on."""
        anchor: Stmt = self.loop
        read_only = not any(operand.buffer is found.buffer for stmt in self.kernel.walk() for operand in writes(stmt))
        for parent in reversed(self.parents):
            if not read_only or not isinstance(parent, Loop) or parent.kind in ("while", "parallel"):
                break
            if not self._same_outside(found, parent):
                break
            anchor = parent
        self.loads.append((anchor, text))

    def _same_outside(self, found: Region, parent: Loop) -> bool:
        env = env_of(parent)
        for axis in found.axes:
            node = cst.parse_expression(axis.start)
            if self.evaluator.sym(node, env) != axis.lo or self.evaluator.loads(node, env):
                return False
        return all(
            part.stop_node is None or self.evaluator.sym(part.stop_node, env) == part.extent for part in found.ranges
        )


def _touches(stmt: Stmt, buffer: Buffer) -> bool:
    return any(a.operand.buffer is buffer for a in accesses(stmt))


def _is_zero(node: cst.BaseExpression) -> bool:
    return code(node).strip("()") in ("0", "0.0", "0.")


def _padding(value: str) -> str:
    return "" if value in ("0", "0.0") else f", pad_value={value}"


def _has_slices(copy: Copy) -> bool:
    """True if a copy names its part of a tensor by slices."""
    parts = (operand for operand in (copy.src, copy.dst) if operand.buffer.memory is Memory.GM)
    return any(operand.dims and not all(dim.is_point for dim in operand.dims) for operand in parts)


def _enclosing(parents: Sequence[Stmt]) -> list[Range]:
    return [item for parent in parents if isinstance(parent, Loop) and parent.kind != "while" for item in parent.ranges]
