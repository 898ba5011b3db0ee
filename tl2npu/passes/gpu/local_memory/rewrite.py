"""TL174 to TL176: thread-private storage and reducers become variables and tiles."""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Alloc, Branch, Buffer, Let, Loop, Op, Stmt, Store, in_parallel, walk, walk_with_parents
from tl2npu.passes.gpu.local_memory.reducers import reducers
from tl2npu.passes.job import Job
from tl2npu.passes.plain.assigned_once import is_scalar
from tl2npu.passes.writing.numbers import BITS, element_type, number_type
from tl2npu.passes.writing.statements import Names, parse
from tl2npu.passes.writing.tiles import dtype_text
from tl2npu.source.edits import Edits
from tl2npu.source.tree import argument, calls_in, children, nodes_of, replaced

_BLOCK_BITS = 256
"""The smallest tile that a vector instruction takes."""
_NARROWEST = 16
_TRUTHS = {"True": "1", "False": "0"}


def to_buffers(job: Job) -> None:
    """Thread-private storage becomes variables or tiles."""
    reducers(job)
    _Scalars(job).rewrite()


class _Scalars:
    """The scalars of a kernel: those of floats become small tiles, since only the vector unit computes with floats."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.kernel = job.kernel
        self.placed = list(walk_with_parents(job.kernel.body))
        found = [stmt.buffer for stmt, _ in self.placed if isinstance(stmt, Alloc) and is_scalar(stmt.buffer)]
        repeated = {buffer.name for buffer in found if sum(other.name == buffer.name for other in found) > 1}
        self.scalars = {buffer.name: buffer for buffer in found if buffer.name not in repeated}
        self.edits = Edits(job.file.index)

    def rewrite(self) -> None:
        """Rewrite them; integers of ``T.alloc_local`` become ``T.alloc_var``."""
        tiles = {name: buffer for name, buffer in self.scalars.items() if self._is_tile(buffer)}
        tiles |= {name: buffer for name, buffer in self.scalars.items() if self._is_flag(buffer, tiles)}
        variables = {
            name: buffer
            for name, buffer in self.scalars.items()
            if name not in tiles and buffer.alloc == "alloc_local" and self._is_plain(name)
        }
        if not tiles and not variables:
            return
        lane = Names(self.job).fresh("lane")
        done: set[int] = set()
        for stmt, parents in self.placed:
            if id(stmt.node) in done:  # `x, y = s[0], s[0]` is two statements of one text
                continue
            done.add(id(stmt.node))
            parallel = in_parallel(parents)
            self._statement(stmt, parallel, tiles, variables, lane)
        self.job.apply(self.edits)

    def _is_tile(self, buffer: Buffer) -> bool:
        """A float that is given values outside of element-wise loops, by plain assignments and fills only."""
        kind = number_type(self.job, buffer)
        if kind == "int" or (kind == "unknown" and self._counts(buffer.name)):
            return False
        written = False
        for stmt, parents in self.placed:
            parallel = in_parallel(parents)
            if isinstance(stmt, Alloc):
                if stmt.buffer is buffer and parallel:
                    return False
                continue
            if _target(stmt) == buffer.name:
                if parallel:
                    return False
                written = True
            elif isinstance(stmt, Op) and buffer.name in _names(stmt.node):
                if parallel or stmt.op.name not in ("clear", "fill"):
                    return False
                written = True
        return written or _initial(buffer) is not None

    def _is_flag(self, buffer: Buffer, tiles: Mapping[str, Buffer]) -> bool:
        """An integer or truth that only branches read, beside products or stored in a branch on a tile.

        The compiler stores variables on the cube core, which cannot read the tile, and vector cores do not see them.
        """
        dtype = element_type(self.job, buffer)
        if buffer.name in tiles or dtype not in ("int32", "bool"):
            return False
        if buffer.alloc not in ("alloc_var", "alloc_local") or not self._is_plain(buffer.name):
            return False
        on_tile = read = False
        for stmt, parents in self.placed:
            around = [above for above in parents if isinstance(above, (Branch, Loop))]
            parallel = in_parallel(around)
            if isinstance(stmt, Alloc):
                if stmt.buffer is buffer and around:
                    return False
            elif _target(stmt) == buffer.name:
                value = stmt.node.value if isinstance(stmt.node, (cst.Assign, cst.AnnAssign)) else None
                truth = isinstance(value, cst.Name) and value.value in _TRUTHS
                if parallel or value is None or (dtype == "bool" and not truth):
                    return False
                if nodes_of(value, cst.Subscript) or calls_in(value) or _names(value) & self.scalars.keys():
                    return False
                conditions = [above.cond.node for above in around if isinstance(above, Branch)]
                on_tile = on_tile or any(_names(condition) & tiles.keys() for condition in conditions)
            elif isinstance(stmt, Branch):
                mine = buffer.name in _names(stmt.cond.node)
                if mine and (parallel or any(map(_is_product, walk([stmt])))):
                    return False
                read = read or mine
            elif buffer.name in _names(stmt.call if isinstance(stmt, Loop) and stmt.call is not None else stmt.node):
                return False
        return read and (on_tile or any(_is_product(stmt) for stmt, _ in self.placed))

    def _counts(self, name: str) -> bool:
        """True for a scalar that picks elements, bounds loops or decides: one of integers, whatever its type is."""
        for stmt, _ in self.placed:
            if isinstance(stmt, Branch) and name in _names(stmt.cond.node):
                return True
            if isinstance(stmt, Loop):
                if stmt.call is not None and name in _names(stmt.call):
                    return True
                continue
            if isinstance(stmt, (Branch, Alloc)):
                continue
            indices = nodes_of(stmt.node, cst.SubscriptElement)
            if any(name in _names(part) for part in indices):
                return True
        return False

    def _is_plain(self, name: str) -> bool:
        """An array of one element that is only used as ``name[0]``."""
        return not any(
            isinstance(stmt, Op) and any(o.buffer.name == name and o.dims is None for _, o in stmt.operands)
            for stmt, _ in self.placed
        )

    def _statement(
        self, stmt: Stmt, parallel: bool, tiles: Mapping[str, Buffer], variables: Mapping[str, Buffer], lane: str
    ) -> None:
        if isinstance(stmt, Alloc):
            self._allocation(stmt, tiles, variables)
            return
        target = _target(stmt)
        if target is not None and target in tiles and not parallel:
            self._assignment(stmt, tiles[target], tiles, variables, lane)
            return
        node: cst.CSTNode = stmt.node
        if isinstance(stmt, Branch):
            node = stmt.cond.node
        elif isinstance(stmt, Loop):
            if stmt.call is None:
                return
            node = stmt.call
        elif isinstance(stmt, Op) and stmt.op.name in ("clear", "fill"):
            return
        for old, new in _uses(node, tiles, variables, "0").items():
            if isinstance(old, cst.Name) and old.value in tiles and element_type(self.job, tiles[old.value]) == "bool":
                new = cst.parse_expression(f"{code(new)} != 0" if old is node else f"({code(new)} != 0)")
            self.edits.replace(old, new)

    def _allocation(self, stmt: Alloc, tiles: Mapping[str, Buffer], variables: Mapping[str, Buffer]) -> None:
        buffer = stmt.buffer
        is_truth = element_type(self.job, buffer) == "bool"
        dtype = '"int32"' if is_truth and buffer.name in tiles else dtype_text(buffer)
        if buffer.name in variables:
            lines = f"{buffer.name} = T.alloc_var({dtype})\n"
            self.job.change("TL174", stmt.node, f"wrote T.alloc_var for the scalar `{buffer.name}`")
        elif buffer.name in tiles:
            lanes = self._lanes(buffer)
            lines = f"{buffer.name} = T.alloc_shared([{lanes}], {dtype})\n"
            initial = _initial(buffer)
            if initial is None and (is_truth or number_type(self.job, buffer) == "int"):
                initial = cst.Integer("0")  # what TileLang gives a variable that has no value
            if initial is not None:
                lines += f"T.fill({buffer.name}, {code(initial)})\n"
            text = f"wrote a tile of equal values for `{buffer.name}`, for the vector unit"
            self.job.change("TL174", stmt.node, text)
        else:
            return
        self.edits.replace_many(stmt.node, parse(self.job, lines, stmt.node))

    def _lanes(self, buffer: Buffer) -> int:
        """Elements of a block; as many as half floats take where the type is not known. Truths are 32-bit integers."""
        if element_type(self.job, buffer) == "bool":
            return _BLOCK_BITS // 32
        return _BLOCK_BITS // BITS.get(element_type(self.job, buffer), _NARROWEST)

    def _assignment(
        self, stmt: Stmt, buffer: Buffer, tiles: Mapping[str, Buffer], variables: Mapping[str, Buffer], lane: str
    ) -> None:
        """``x = value`` for every lane."""
        node = stmt.node
        assert isinstance(node, (cst.Assign, cst.AnnAssign, cst.AugAssign))
        assert node.value is not None
        operator = code(node.operator).strip() if isinstance(node, cst.AugAssign) else "="
        value = replaced(node.value, {id(k): v for k, v in _uses(node.value, tiles, variables, lane).items()})
        plain = operator == "=" and not nodes_of(value, cst.Subscript)
        if isinstance(value, cst.Name) and value.value in _TRUTHS:
            text = f"T.fill({buffer.name}, {_TRUTHS[value.value]})\n"
        elif plain and not _calls(self.job, value):
            text = f"T.fill({buffer.name}, {code(value)})\n"
        else:
            lanes = self._lanes(buffer)
            text = f"for {lane} in T.Parallel({lanes}):\n    {buffer.name}[{lane}] {operator} {code(value)}\n"
        self.edits.replace_many(node, parse(self.job, text, node))


def _is_product(stmt: Stmt) -> bool:
    return isinstance(stmt, Op) and stmt.op.kind is Kind.GEMM


def _initial(buffer: Buffer) -> cst.BaseExpression | None:
    """``init`` of a ``T.alloc_var``."""
    if buffer.alloc != "alloc_var" or not isinstance(buffer.node, cst.Call):
        return None
    named = argument(buffer.node, "init")
    if named is not None:
        return named
    rest = [arg.value for arg in buffer.node.args if arg.keyword is None][1:]
    return next((item for item in rest if not isinstance(item, cst.SimpleString)), None)


def _target(stmt: Stmt) -> str | None:
    """The name that a statement gives a value to, ``x`` or ``x[0]``."""
    if isinstance(stmt, Let):
        return stmt.name
    return stmt.target.buffer.name if isinstance(stmt, Store) else None


def _uses(
    node: cst.CSTNode, tiles: Mapping[str, Buffer], variables: Mapping[str, Buffer], index: str
) -> dict[cst.CSTNode, cst.BaseExpression]:
    """Every use of a scalar below a node, and what takes its place."""
    found: dict[cst.CSTNode, cst.BaseExpression] = {}
    stack: list[cst.CSTNode] = [node]
    while stack:
        current = stack.pop()
        whole: cst.CSTNode = current
        if isinstance(current, cst.Subscript):
            whole = current.value
        if isinstance(whole, cst.Name) and whole.value in tiles:
            found[current] = cst.parse_expression(f"{whole.value}[{index}]")
        elif isinstance(whole, cst.Name) and whole.value in variables and current is not whole:
            found[current] = cst.Name(whole.value)
        else:
            stack += [part for part in children(current) if not _is_keyword(current, part)]
    return found


def _is_keyword(parent: cst.CSTNode, part: cst.CSTNode) -> bool:
    if isinstance(parent, cst.Arg):
        return part is parent.keyword
    return isinstance(parent, cst.Attribute) and part is parent.attr


def _names(node: cst.CSTNode) -> set[str]:
    return {part.value for part in nodes_of(node, cst.Name)}


def _calls(job: Job, node: cst.CSTNode) -> bool:
    """True for a value that takes arithmetic, not only a constant."""
    constants = ("tilelang.language.infinity", "tilelang.language.min_value", "tilelang.language.max_value")
    return any(job.file.names.resolve(call.func) not in constants for call in calls_in(node))
