"""The operands of an element-wise loop that lie in global memory: tiles and names in their place."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import accesses_of
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.environment import Env
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Buffer, Copy, Let, Loop, Memory, Op, Operand, Range, Stmt, walk
from tl2npu.kernel.numbers import is_zero
from tl2npu.kernel.ranges.reach import Reach, choice_of, is_choice, is_chosen
from tl2npu.kernel.regions import Lets, Region, axis_of, extent_text, region
from tl2npu.kernel.symbolic import Sym
from tl2npu.passes.gpu.element_copies.guards import Guard, guard
from tl2npu.passes.gpu.element_copies.inside import Tests, inside_text, tests_of
from tl2npu.passes.gpu.element_copies.strided import Place, column_of, load_column
from tl2npu.passes.gpu.element_copies.writing import Item, LoopWriter
from tl2npu.passes.job import Job
from tl2npu.passes.writing.numbers import element_type
from tl2npu.passes.writing.statements import Names, shape_text
from tl2npu.passes.writing.tiles import dtype_text
from tl2npu.source.tree import children, nodes_of
from tl2npu.source.tree import walk as walk_nodes


class LoopOperands(LoopWriter):
    """Regions, conditions and loads of one loop."""

    def __init__(self, job: Job, loop: Loop, parents: tuple[Stmt, ...]) -> None:
        super().__init__(job, loop, parents)
        self.evaluator = job.file.evaluator
        self.names = Names(job)
        self.ranges = loop.ranges
        self.lets = Lets({stmt.name: stmt.value.node for stmt in walk(loop.body) if isinstance(stmt, Let)})
        self.tiles: dict[tuple[object, ...], str] = {}
        self._bounds = Reach(self.kernel, self.evaluator).bounds(parents, loop)
        self.slices = any(_has_slices(stmt) for stmt in self.kernel.walk() if isinstance(stmt, Copy))

    def _region(self, operand: Operand, env: Env) -> Region | None:
        return region(operand, self.ranges, self.lets, self.evaluator, env)

    def _guard(self, node: cst.BaseExpression, env: Env) -> Guard:
        return guard(node, self.lets, self.evaluator, env)

    def _guards(self, item: Item) -> list[Guard] | None:
        """The conditions of a statement; None if it stands in an ``else``."""
        if not all(then for _, then in item.branches):
            return None
        env = item.stmt.env
        return [self._guard(branch.cond.node, env) for branch, _ in item.branches]

    # -- operands in expressions ------------------------------------------------------------------------------------

    def _loads(self, node: cst.CSTNode, item: Item, *, written: bool = False) -> None:
        """Put a tile, or a name, in the place of every element of a tensor that an expression reads."""
        env = item.stmt.env
        under = bool(item.branches) or (isinstance(item.stmt, Let) and self._is_conditional)
        stack: list[tuple[cst.CSTNode, bool]] = [(node, under)]
        while stack:
            current, guarded = stack.pop()
            if id(current) in self.new:
                continue
            outside = self._zero_outside(current, env)
            if outside is not None:
                self.new[id(current)] = self._element(outside, written, True)
                continue
            chosen = self._scattered_choice(current, item)
            if chosen is not None:
                self.new[id(current)] = cst.parse_expression(chosen)
                continue
            operand = self.evaluator.operand(current, env) if isinstance(current, cst.Subscript) else None
            if operand is None or operand.buffer.memory is not Memory.GM:
                # tiles are made in the order of reading
                stack += [
                    (child, guarded or is_chosen(self.evaluator, current, child))
                    for child in reversed(list(children(current)))
                ]
                continue
            found = self._region(operand, env)
            if found is None:
                self.new[id(current)] = cst.parse_expression(self._scattered(operand, item))
                continue
            if not found.ranges:
                self.new[id(current)] = cst.Name(self._scalar(found, guarded))
                continue
            self.new[id(current)] = self._element(found, written, guarded)

    def _scattered(self, operand: Operand, item: Item) -> str:
        """What stands for an element that is in no region; see :mod:`.scattered`."""
        raise NotImplementedError

    def _scattered_choice(self, node: cst.CSTNode, item: Item) -> str | None:
        """What stands for a choice between such an element and 0, if the expression is one."""
        raise NotImplementedError

    def _element(self, found: Region, written: bool, guarded: bool) -> cst.BaseExpression:
        name = self._tile_for(found, fresh=written, guarded=guarded)
        return cst.parse_expression(f"{name}[{', '.join(part.name for part in found.ranges)}]")

    def _zero_outside(self, node: cst.CSTNode, env: Env) -> Region | None:
        """The region of ``T.if_then_else(inside, tensor[...], 0)``, if its load has to ask for that itself."""
        parts = choice_of(node, self.evaluator)
        if parts is None or not is_zero(parts[2]) or not isinstance(parts[1], cst.Subscript):
            return None
        operand = self.evaluator.operand(parts[1], env)
        found = self._region(operand, env) if operand is not None and operand.buffer.memory is Memory.GM else None
        if found is None or not found.ranges or not self._tests(found, True):
            return None
        return found if self._guard(parts[0], env).is_inside(found) else None

    @cached_property
    def _is_conditional(self) -> bool:
        """True if the loop may not need what a name of its body stands for."""
        conditional = (cst.If, cst.IfExp, cst.BooleanOperation)
        return any(
            isinstance(node, conditional) or is_choice(self.evaluator, node) for node in walk_nodes(self.loop.node)
        )

    def _tests(self, found: Region, guarded: bool) -> Tests:
        """What must be asked before a region is loaded. ``guarded``: without a condition that stands around it."""
        return tests_of(self._bounds, found, guarded, lambda axis: self._may_be_negative(axis.lo))

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

    def _scalar(self, found: Region, guarded: bool) -> str:
        key = ("scalar", *found.key())
        if key not in self.tiles:
            name = self.names.fresh(f"{found.buffer.name.lower()}_value")
            self.tiles[key] = name
            text = inside_text(self._bounds, found) if guarded else found.text(slices=False)
            self._hoisted(found, f"{name} = {text}", bool(text != found.text(slices=False)))
            self.say("TL167", self.loop.node, f"an element of `{found.buffer.name}` is read once, before the loop")
        return self.tiles[key]

    def _tile_for(self, found: Region, *, fresh: bool = False, guarded: bool = False) -> str:
        """The tile that holds a region, loaded before the loop."""
        key = found.key()
        if key in self.tiles and not fresh:
            return self.tiles[key]
        if len(found.ranges) > 2:
            raise Blocked("TL170", self.loop.node, f"a part of `{found.buffer.name}` with more than two axes")
        name = self.tile(found)
        self.tiles[key] = name
        tests = self._tests(found, guarded)
        if tests:
            self._load_inside(found, name, tests)
            return name
        if found.in_rows:
            self._hoisted(found, f"T.copy({self._text(found)}, {name})")
            self.say("TL167", self.loop.node, f"loaded `{found.buffer.name}` into `{name}` first")
            return name
        tile = Place(name, found.buffer.dtype)
        move = load_column(self.job, column_of(found), tile, found.ranges[0].name, self.names)
        self.allocations += move.tiles
        self._hoisted(found, "\n".join(move.lines))
        self.say("TL169", self.loop.node, move.told)
        return name

    def _load_inside(self, found: Region, name: str, tests: Tests, *, here: bool = False) -> None:
        """Load those elements of a region that lie inside of the tensor; the others are 0."""
        text = "\n".join(tests.load(found, name, self.names))
        if here:
            self._before(text)
        else:
            self._hoisted(found, text, True)
        text = f"`{found.buffer.name}` is read outside of its bounds: only elements inside are loaded"
        self.say("TL178", self.loop.node, text)

    def tile(self, found: Region) -> str:
        shared = any(buffer.name.endswith("_shared") for buffer in self.kernel.buffers.values())
        base = found.buffer.name
        name = self.names.fresh(*([f"{base}_shared"] if shared else []), f"{base.lower()}_tile")
        extents = [extent_text(part).strip("()") if part.stop_node else "" for part in found.ranges]
        shape = shape_text(self.kernel, extents)
        self.allocations.append(f"{name} = T.alloc_shared({shape}, {dtype_text(found.buffer)})")
        return name

    def from_tiles(self, node: cst.BaseExpression, stmt: Stmt) -> cst.BaseExpression:
        """The expression without names that the loop body binds, elements of tensors read from tiles."""
        full = self.lets.expand(node)
        self._loads(full, Item(stmt, ()))
        found = self._new(full)
        assert isinstance(found, cst.BaseExpression)
        return found

    def in_own_words(self, node: cst.BaseExpression, stmt: Stmt) -> cst.BaseExpression:
        """The same with those names that stand for arithmetic on indices; see :meth:`own_words`."""
        if self.evaluator.loads(self.lets.expand(node), stmt.env):
            return self.from_tiles(node, stmt)
        numbers = (cst.BinaryOperation, cst.UnaryOperation, cst.Name, cst.Integer)
        known = {
            name
            for name, value in self.lets.items()
            if isinstance(value, numbers) and not any(nodes_of(value, cst.Comparison))
        }
        return self.lets.without(known).expand(node)

    def own_words(self, texts: Sequence[str]) -> list[str]:
        """The assignments to the names of the loop body that some expressions read."""
        read = {name.value for text in texts for name in nodes_of(cst.parse_expression(text), cst.Name)}
        lines = list[str]()
        for name, value in reversed(list(self.lets.items())):
            if name in read:
                read |= {inner.value for inner in nodes_of(value, cst.Name)}
                lines.insert(0, f"{name} = {code(value)}")
        return lines

    def whole(self, operand: Operand) -> bool:
        """True if the loop runs over every element of a tile in the order of its axes."""
        return self._whole(operand, self.ranges)

    def is_inside(self, node: cst.BaseExpression, distance: Sym, stmt: Stmt) -> bool:
        """True if the distance of an index from an end of its axis is not negative; unknown if the index is loaded."""
        return not self.evaluator.loads(self.lets.expand(node), stmt.env) and self._bounds.is_not_negative(distance)

    # -- helpers ----------------------------------------------------------------------------------------------------

    def _whole(self, operand: Operand, order: Sequence[object]) -> bool:
        """True if the loop runs over every element of a tile, its axes in the order of the tensor's."""
        if operand.dims is None or len(operand.dims) != len(order) or len(order) != len(self.ranges):
            return False
        for dim, part, size in zip(operand.dims, order, operand.buffer.shape, strict=True):
            if not isinstance(dim.node, cst.BaseExpression) or part not in self.ranges:
                return False
            axis = axis_of(dim.node, self.ranges, self.lets, self.evaluator, self.loop.body[0].env)
            if axis is None or axis.range is not part or not axis.lo.is_zero or axis.range.extent != size:
                return False
        return len(operand.dims) == len(operand.buffer.shape)

    def _copy_types(self, source: Buffer, target: Buffer, *, any_gemm: bool = False) -> bool:
        """True if a copy between the two moves the elements as they are (or a product, which converts on the way)."""
        if any_gemm and self._is_product(source):
            return True
        return element_type(self.job, source) == element_type(self.job, target)

    def _is_product(self, buffer: Buffer) -> bool:
        kinds = {stmt.op.kind for stmt, _ in accesses_of(self.kernel, buffer) if isinstance(stmt, Op)}
        return Kind.GEMM in kinds and kinds <= {Kind.GEMM, Kind.FILL}

    def _text(self, found: Region) -> str:
        return found.text(slices=self.slices)

    def _hoisted(self, found: Region, text: str, asks: bool = False) -> None:
        """Write a load of what the kernel does not change before the outermost loop that it does not depend on.

        ``asks``: the text itself keeps the load inside of the tensor, whether the loop runs or not.
        """
        anchor: Stmt = self.loop
        read_only = not any(access.writes for _, access in accesses_of(self.kernel, found.buffer))
        for parent in reversed(self.parents):
            if not read_only or not isinstance(parent, Loop) or parent.kind in ("while", "parallel"):
                break
            if not self._same_outside(found, parent) or not (asks or self._may_leave(found, parent)):
                break
            anchor = parent
        self.loads.append((anchor, text))

    def _may_leave(self, found: Region, parent: Loop) -> bool:
        """A loop that may not run keeps what lies outside of its tensor then."""
        runs = all(self._bounds.is_not_negative(item.extent - 1) for item in parent.ranges)
        return runs or not self._tests(found, True)

    def _same_outside(self, found: Region, parent: Loop) -> bool:
        env = parent.env
        for axis in found.axes:
            node = cst.parse_expression(axis.start)
            if self.evaluator.sym(node, env) != axis.lo or self.evaluator.loads(node, env):
                return False
        return all(
            part.stop_node is None or self.evaluator.sym(part.stop_node, env) == part.extent for part in found.ranges
        )


def _has_slices(copy: Copy) -> bool:
    """True if a copy names its part of a tensor by slices."""
    parts = (operand for operand in (copy.src, copy.dst) if operand.buffer.memory is Memory.GM)
    return any(operand.dims and not all(dim.is_point for dim in operand.dims) for operand in parts)


def _enclosing(parents: Sequence[Stmt]) -> list[Range]:
    return [item for parent in parents if isinstance(parent, Loop) and parent.kind != "while" for item in parent.ranges]
