"""TL109: a sum over all threads that warps share: each warp adds its lanes, and the first warp adds the warps' sums.

``acc[n] = T.warp_reduce_sum(acc[n])``, ``if lane == 0: s[warp, n] = acc[n]``, and behind the barrier ``if warp == 0:``
with ``for w in T.unroll(warps): v += s[w, lane]``: one reduction along the threads, and a loop over what it gives. The
terms are added in another order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import libcst as cst

from tl2npu.kernel.bindings import assigned_names
from tl2npu.kernel.expressions import code, conjuncts_of
from tl2npu.passes.job import Job
from tl2npu.passes.names import constants
from tl2npu.passes.plain.threads.lanes import Lanes, Unclear, lanes_of
from tl2npu.passes.plain.threads.statements import bound_by, element_stored
from tl2npu.passes.plain.unsupported.names import operator_name
from tl2npu.passes.writing.statements import Names, parse
from tl2npu.passes.writing.substitute import substituted
from tl2npu.source.edits import Edits
from tl2npu.source.tree import mentioned, nodes_of, replaced

_SUM = "warp_reduce_sum"
_INDICES = {"get_lane_idx": "%", "get_warp_idx": "//"}
_INDEX = re.compile(r"(\w+) (%|//) (\w+)")
_LOOPS = frozenset({"serial", "unroll", "vectorized", "Serial", "Unroll", "Vectorized"})
_LANES = (32, 64)
_ZEROS = ("0", "0.0")


def add_once(job: Job) -> None:
    """Write such sums as reductions, all of a kernel or none."""
    if not any(operator_name(job, call.func) == _SUM for call in nodes_of(job.located.node.body, cst.Call)):
        return
    try:
        lanes = lanes_of(job, {f"T.{name}" for name in (_SUM, *_INDICES)})
        if lanes is not None and job.kernel.launch is not None:
            _Sums(job, lanes, list(job.kernel.launch.node.body.body)).write()
    except Unclear:
        return


@dataclass(frozen=True)
class _Leaf:
    """A statement with the loops around it, variable -> extent, and the conditions."""

    statement: cst.CSTNode
    loops: Mapping[str, str]
    tests: tuple[str, ...]


@dataclass(frozen=True)
class _Part:
    """Where the sums of a thread's own storage lie in a shared tile behind the number of the warp: by axis an index of
    the storage (``int``) or a text; the conditions of its store."""

    own: str
    place: tuple[int | str, ...]
    tests: tuple[str, ...]


@dataclass(eq=False)
class _Sums:
    job: Job
    lanes: Lanes
    lines: list[cst.CSTNode]
    names: Names = field(init=False)
    edits: Edits = field(init=False)
    parts: dict[str, list[_Part]] = field(default_factory=dict)
    """By shared tile."""
    results: dict[str, str] = field(default_factory=dict)
    """Storage -> the tile with its sums."""
    bounds: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.names, self.edits = Names(self.job), Edits(self.job.file.index)

    def write(self) -> None:
        """Edit the job; raises :class:`Unclear`."""
        lane, warp = self._index("%"), self._index("//")
        added = [place for place, line in enumerate(self.lines) if self._adds(line)]
        stored = self._only(f"{lane.name} == 0")
        last = self._only(f"{warp.name} == 0")
        if not added or not max(added) < stored < last:
            raise Unclear
        sizes = [size for size in _LANES if {lane.size, warp.size} <= {0, size}]
        tests = self._reduced([self.lines[place] for place in added])
        self._stored(self.lines[stored], warp.name, tests)
        if not all(self._is_of_warps(tile, sizes) for tile in self.parts):
            raise Unclear
        self._refuse_other_uses({*added, stored}, min(added), {stored, last}, lane, warp)
        for place in added:
            self.edits.remove(self.lines[place])
        self.edits.replace_many(self.lines[stored], parse(self.job, self._reductions(), self.lines[stored]))
        end = cst.ensure_type(self.lines[last], cst.If)
        tail = _Tail(self, lane.name, sizes[0])
        text = tail.text(end.body)
        inside = assigned_names(self.job.kernel.launched.node)
        if any(mentioned(cst.parse_expression(bound)) & inside for bound in self.bounds):
            raise Unclear
        self.edits.replace_many(end, parse(self.job, text, end))
        for index in (lane, warp):
            self.edits.remove(index.binding)
        self.job.apply(self.edits)
        constants.define(self.job, [f"assert {bound}" for bound in dict.fromkeys(self.bounds)])

    # -- what the kernel says ---------------------------------------------------------------------------------------

    def _index(self, sign: str) -> _Index:
        """The number of a lane in its warp, or that of the warp: the one name for it."""
        found = []
        for line in self.lines:
            node = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
            if not isinstance(node, cst.Assign) or not isinstance(node.targets[0].target, cst.Name):
                continue
            said = _INDEX.fullmatch(code(node.value))
            if isinstance(node.value, cst.Call) and _INDICES.get(operator_name(self.job, node.value.func)) == sign:
                found.append(_Index(node.targets[0].target.value, node, 0))
            elif said is not None and said[1] in self.lanes.extents and said[2] == sign and said[3].isdigit():
                found.append(_Index(node.targets[0].target.value, node, int(said[3])))
        if len(found) != 1 or len(self.lanes.extents) != 1 or not self.lanes.all_named:
            raise Unclear
        return found[0]

    def _adds(self, line: cst.CSTNode) -> bool:
        return any(operator_name(self.job, call.func) == _SUM for call in nodes_of(line, cst.Call))

    def _only(self, test: str) -> int:
        """The place of the one statement under a condition."""
        found = [n for n, line in enumerate(self.lines) if isinstance(line, cst.If) and code(line.test) == test]
        if len(found) != 1 or cst.ensure_type(self.lines[found[0]], cst.If).orelse is not None:
            raise Unclear
        return found[0]

    def _reduced(self, lines: Sequence[cst.CSTNode]) -> dict[str, tuple[str, ...]]:
        """Storage of which all elements are replaced by the sums of a warp -> under which conditions."""
        found: dict[str, tuple[str, ...]] = {}
        for leaf in (leaf for line in lines for leaf in self.leaves([line], {}, ())):
            target = element_stored(leaf.statement)
            value = leaf.statement.value if isinstance(leaf.statement, cst.Assign) else None
            if target is None or not isinstance(value, cst.Call) or not self._adds(value) or len(value.args) != 1:
                raise Unclear
            own = code(target.value)
            if code(value.args[0].value) != code(target) or own in found:
                raise Unclear
            self._covers(own, target, leaf)
            found[own] = leaf.tests
        return found

    def _covers(self, own: str, element: cst.Subscript, leaf: _Leaf) -> list[str]:
        """The indices of an element that runs through all of a thread's storage."""
        where = [code(item.slice) for item in element.slice]
        storage = self.lanes.own.get(own)
        if storage is None or storage.scalar:
            raise Unclear
        whole = [leaf.loops.get(index) for index in where] == list(storage.shape) and len(set(where)) == len(where)
        if not storage.shape:
            where, whole = [], where == ["0"]
        varies = any(mentioned(cst.parse_expression(test)) & leaf.loops.keys() for test in leaf.tests)
        if not whole or set(where) != leaf.loops.keys() or varies:
            raise Unclear
        return where

    def _stored(self, line: cst.CSTNode, warp: str, tests: Mapping[str, tuple[str, ...]]) -> None:
        """What the first lane of each warp stores."""
        for leaf in self.leaves(cst.ensure_type(line, cst.If).body.body, {}, ()):
            target = element_stored(leaf.statement)
            value = leaf.statement.value if isinstance(leaf.statement, cst.Assign) else None
            if target is None or not isinstance(value, cst.Subscript):
                raise Unclear
            own, tile = code(value.value), code(target.value)
            where = self._covers(own, value, leaf)
            first, *rest = (code(item.slice) for item in target.slice)
            if tests.get(own) != leaf.tests or first != warp or own in self.results:
                raise Unclear
            if any(mentioned(cst.parse_expression(text)) & {*where} for text in rest if text not in where):
                raise Unclear
            place = tuple(where.index(text) if text in where else text for text in rest)
            if sorted(item for item in place if isinstance(item, int)) != list(range(len(where))):
                raise Unclear
            self.parts.setdefault(tile, []).append(_Part(own, place, leaf.tests))
            self.results[own] = self.names.fresh(f"{own}_sum")
        if self.results.keys() != tests.keys():
            raise Unclear

    def _is_of_warps(self, tile: str, sizes: Sequence[int]) -> bool:
        """Whether a tile has a row for each warp of the block."""
        buffer, threads = self.job.kernel.buffers.get(tile), self.job.kernel.launched.threads
        if buffer is None or threads is None or not buffer.is_tile or tile in self.lanes.own:
            return False
        return any(buffer.shape[0] == threads.sym // size for size in sizes)

    def _refuse_other_uses(self, owns: set[int], first: int, shared: set[int], lane: _Index, warp: _Index) -> None:
        """Nothing else sees what a warp has in common."""
        for place, line in enumerate(self.lines):
            used = mentioned(line)
            small = line.body[0] if isinstance(line, cst.SimpleStatementLine) else line
            binds = bound_by(small)
            if place > first and place not in owns and used & self.results.keys():
                raise Unclear
            if place not in shared and (used if place > min(shared) else used - binds) & self.parts.keys():
                raise Unclear
            if place not in shared and small not in (lane.binding, warp.binding) and used & {lane.name, warp.name}:
                raise Unclear

    # -- what is written --------------------------------------------------------------------------------------------

    def _reductions(self) -> str:
        lines = []
        for part in (part for parts in self.parts.values() for part in parts):
            storage, result = self.lanes.own[part.own], self.results[part.own]
            shape = ", ".join(storage.shape) or "1"
            lines.append(f"{result} = T.alloc_fragment([{shape}], {storage.dtype})")
            lines += under(part.tests, [f"T.reduce_sum({part.own}, {result}, dim={len(storage.shape)})"])
        return "\n".join(lines)

    def leaves(self, block: Sequence[cst.CSTNode], loops: Mapping[str, str], tests: tuple[str, ...]) -> Iterator[_Leaf]:
        """The statements of a block; raises :class:`Unclear` for what is no plain loop or condition."""
        for line in block:
            if isinstance(line, cst.For):
                yield from self.leaves(line.body.body, {**loops, **self.ranged(line)}, tests)
            elif isinstance(line, cst.If) and line.orelse is None:
                yield from self.leaves(line.body.body, loops, (*tests, code(line.test)))
            elif isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1:
                yield _Leaf(line.body[0], loops, tests)
            else:
                raise Unclear

    def ranged(self, loop: cst.For) -> dict[str, str]:
        """The variable of a loop from 0 on, with its extent."""
        call = loop.iter
        if not isinstance(call, cst.Call) or not isinstance(loop.target, cst.Name) or loop.orelse is not None:
            raise Unclear
        if not (operator_name(self.job, call.func) in _LOOPS or code(call.func) == "range") or len(call.args) != 1:
            raise Unclear
        return {loop.target.value: code(call.args[0].value)}


@dataclass(frozen=True, eq=False)
class _Index:
    """``size``: how many lanes a warp has, 0 if the kernel asks the device."""

    name: str
    binding: cst.Assign
    size: int


@dataclass(eq=False)
class _Tail:
    """What the first warp does with the sums, as loops over its lanes."""

    sums: _Sums
    lane: str
    size: int
    ranges: dict[str, str] = field(default_factory=dict)
    """The loops around, and the lanes that a condition leaves."""
    cleared: dict[str, set[str]] = field(default_factory=dict)
    """Storage that is 0 until each element collects one sum -> the loops around the statement that clears it."""
    gone: set[str] = field(default_factory=set)
    """Names for which sums stand."""

    def text(self, block: cst.BaseSuite) -> str:
        """The new statements; raises :class:`Unclear`."""
        text = "\n".join(self.lines(block, {}))
        if self.cleared or self.gone & mentioned(cst.parse_module(text)):
            raise Unclear
        return text

    def lines(self, block: cst.BaseSuite, values: Mapping[str, cst.BaseExpression]) -> list[str]:
        """The new text of a block; ``values``: what stands for elements and names that collect a sum."""
        found: list[str] = []
        values, zeros = dict(values), set[str]()
        for line in block.body:
            small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else line
            if isinstance(line, cst.For):
                added = self._added(line)
                if added is None:
                    ((name, extent),) = self.sums.ranged(line).items()
                    found += self._around(f"for {name} in {code(line.iter)}:", {name: extent}, line.body, values)
                else:
                    target = code(added.target)
                    if target not in zeros and not self._is_fresh(added.target):
                        raise Unclear
                    zeros.discard(target)
                    self.gone |= mentioned(added.target) - mentioned(line.target) - self.ranges.keys()
                    values[target] = self._element(added.value, code(line.target), values)
            elif isinstance(line, cst.If) and line.orelse is None:
                found += self._branch(line, values)
            elif (zero := self._zero(small)) is not None:
                zeros.add(zero)
                values.pop(zero, None)
            elif isinstance(small, cst.Expr) and (name := self._whole(small)):
                self.cleared[name] = {*self.ranges}
                self.gone.add(name)
            elif isinstance(small, cst.Assign) and self._allocates(small):
                self.gone |= mentioned(small.targets[0].target)
            elif isinstance(small, (cst.Assign, cst.AugAssign)):
                found.append(code(_with(small, values)))
            else:
                raise Unclear
        if zeros:
            raise Unclear
        return found

    def _around(
        self, head: str, ranges: Mapping[str, str], block: cst.BaseSuite, values: Mapping[str, cst.BaseExpression]
    ) -> list[str]:
        before, self.ranges = self.ranges, {**self.ranges, **ranges}
        inner = self.lines(block, values)
        self.ranges = before
        return [head, *(f"    {text}" for part in inner for text in part.split("\n"))]

    def _branch(self, line: cst.If, values: Mapping[str, cst.BaseExpression]) -> list[str]:
        parts = conjuncts_of(line.test)
        mine = [part for part in parts if self.lane in mentioned(part)]
        rest = [code(_with(part, values)) for part in parts if part not in mine]
        if not mine:
            return self._around(f"if {' and '.join(rest)}:", {}, line.body, values)
        said = code(mine[0])
        if len(mine) == 1 and said == f"{self.lane} == 0":
            return under(rest, self.lines(line.body, {**values, self.lane: cst.Integer("0")}))
        extent = said.removeprefix(f"{self.lane} < ")
        if len(mine) > 1 or extent == said or self.lane in self.ranges or self.lane in extent:
            raise Unclear
        if not (extent.isdigit() and int(extent) <= self.size):
            self.sums.bounds.append(f"{extent} <= {self.size}")
        return under(
            rest, self._around(f"for {self.lane} in T.Parallel({extent}):", {self.lane: extent}, line.body, values)
        )

    def _zero(self, node: cst.CSTNode) -> str | None:
        """What a statement sets to 0, if it is a variable or an element of storage."""
        if not isinstance(node, cst.Assign) or len(node.targets) != 1:
            return None
        target, value = node.targets[0].target, node.value
        if isinstance(value, cst.Call) and operator_name(self.sums.job, value.func) == "alloc_var":
            given = [
                arg for arg in value.args if arg.keyword is not None and arg.keyword.value == "init"
            ] or value.args[1:]
            value = given[0].value if given else value
        return code(target) if code(value) in _ZEROS else None

    def _allocates(self, node: cst.Assign) -> bool:
        call = node.value
        return isinstance(call, cst.Call) and operator_name(self.sums.job, call.func) in ("alloc_var", "alloc_local")

    def _whole(self, node: cst.Expr) -> str:
        """The storage of a thread that a statement clears, which nothing but sums of warps uses; or empty."""
        call = node.value
        if not isinstance(call, cst.Call) or operator_name(self.sums.job, call.func) != "clear" or len(call.args) != 1:
            return ""
        name = code(call.args[0].value)
        return name if name in self.sums.lanes.types else ""

    def _is_fresh(self, target: cst.BaseExpression) -> bool:
        """Whether an element of cleared storage gets its only sum: every loop since then has an index of it."""
        if not isinstance(target, cst.Subscript):
            return False
        since = self.cleared.pop(code(target.value), None)
        where = {code(item.slice) for item in target.slice}
        return since is not None and where == self.ranges.keys() - since - {self.lane}

    def _added(self, loop: cst.For) -> cst.AugAssign | None:
        """``for w in T.unroll(warps): v += s[w, ...]``."""
        line = loop.body.body[0] if len(loop.body.body) == 1 else None
        node = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
        if not isinstance(node, cst.AugAssign) or not isinstance(node.value, cst.Subscript):
            return None
        tile = code(node.value.value)
        if tile not in self.sums.parts:
            return None
        rows = code(self.sums.job.kernel.buffers[tile].shape_nodes[0])
        if not isinstance(node.operator, cst.AddAssign) or list(self.sums.ranged(loop).values()) != [rows]:
            raise Unclear
        return node

    def _element(
        self, node: cst.BaseExpression, warp: str, values: Mapping[str, cst.BaseExpression]
    ) -> cst.BaseExpression:
        """The element of the sums that stands for one that all warps add to."""
        read = cst.ensure_type(node, cst.Subscript)
        tile = code(read.value)
        first, *rest = (code(item.slice) for item in read.slice)
        sizes = [code(extent) for extent in self.sums.job.kernel.buffers[tile].shape_nodes[1:]]
        for part in self.sums.parts[tile] if first == warp and len(rest) == len(sizes) else ():
            shape = self.sums.lanes.own[part.own].shape
            where = [""] * len(shape)
            for text, size, place in zip(rest, sizes, part.place, strict=True):
                if isinstance(place, str):
                    if text != place:
                        break
                elif shape[place] in (size, self.ranges.get(text)):
                    where[place] = text
                else:
                    break
            else:
                made = _with(cst.parse_expression(f"{self.sums.results[part.own]}[{', '.join(where) or '0'}]"), values)
                assert isinstance(made, cst.BaseExpression)
                return made
        raise Unclear


def under(tests: Sequence[str], lines: list[str]) -> list[str]:
    """Lines under all of some conditions."""
    return [f"if {' and '.join(tests)}:", *(f"    {line}" for line in lines)] if tests else lines


def _with(node: cst.CSTNode, values: Mapping[str, cst.BaseExpression]) -> cst.CSTNode:
    """The node with what stands for elements and names."""
    elements = {id(sub): values[code(sub)] for sub in nodes_of(node, cst.Subscript) if code(sub) in values}
    named = {name: value for name, value in values.items() if name.isidentifier()}
    if isinstance(node, (cst.Assign, cst.AugAssign)):
        target = node.target if isinstance(node, cst.AugAssign) else node.targets[0].target
        if code(target) in values:
            raise Unclear
    return substituted(replaced(node, elements), named)
