"""TL611: rows that an index picks go to their L1 tile one by one, for ``threads=2``.

A tile of gathered rows is not halved by the compiler (``src/transform/ascend_vid_reduction.cc``), so two vector cores
cannot share it. A single row needs no halving: of ``for i: T.copy(KV[ix[i], :], row); T.copy(row, kv_l1[i, :])`` each
core takes its half of the turns, with its half of ``ix``, and stores to its half of the workspace (the generated text
was read, for both targets; ``examples/developer_mode/sparse_flash_attn_developer_vid_reduce.py`` is written so). UB
holds a row in place of the tile. Where a row is ``first + ix[i]``, ``first`` is added to all of ``ix`` before: the
compiler finds a gather by a plain element only (TL852).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import accesses_of
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Buffer, Copy, Kernel, Loop, Memory, Op, Stmt, children, walk
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import Names, parse
from tl2npu.source.edits import Edits
from tl2npu.source.tree import argument, nodes_of, replaced


@dataclass(frozen=True, eq=False)
class _Gather:
    """``fill`` of a tile, ``loop`` over its rows with the ``load`` of each by an element of ``index``, and ``store``
    of the tile in L1."""

    fill: Op | None
    loop: Loop
    load: Copy
    store: Copy
    index: Buffer

    @property
    def tile(self) -> Buffer:
        """The tile of gathered rows."""
        return self.load.dst.buffer

    @property
    def place(self) -> cst.BaseExpression:
        """Where the row is: what stands for the index with the element in it."""
        (node,) = [dim.node for dim in self.load.src.dims or () if dim.loads]
        assert not isinstance(node, cst.Slice)
        return node

    @property
    def first(self) -> cst.BaseExpression | None:
        """What is added to the element."""
        node = self.place
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
            sides = [side for side in (node.left, node.right) if not nodes_of(side, cst.Subscript)]
            return sides[0] if len(sides) == 1 else None
        return None


def one_by_one(job: Job) -> bool:
    """Store every gathered row by itself; False if there is none, or one that has another form."""
    kernel = job.kernel
    found = list(_gathers(kernel, kernel.body))
    if not found:
        return False
    edits, names = Edits(job.file.index), Names(job)
    own: dict[Buffer, str] = {}
    for index in dict.fromkeys(item.index for item in found):
        elsewhere = _is_used_elsewhere(kernel, index, [item.loop for item in found])
        firsts = {code(item.first) if item.first is not None else "" for item in found if item.index is index}
        if not elsewhere and firsts == {""}:
            continue
        loads = [stmt for stmt, access in accesses_of(kernel, index) if access.writes]
        if len(loads) != 1 or not isinstance(loads[0], Copy) or loads[0].src.buffer.memory is not Memory.GM:
            return False
        if len(firsts) != 1 or not all(_is_known(job, item, loads[0]) for item in found if item.index is index):
            return False
        own[index] = name = names.fresh(f"{index.name}_rows") if elsewhere else index.name
        again = [replaced(loads[0].node, {id(loads[0].dst.node): cst.Name(name)})] if elsewhere else []
        first = firsts.pop()
        sums = parse(job, f"T.tile.add({name}, {name}, {first})", loads[0].node) if first else []
        edits.replace_many(loads[0].node, [loads[0].node, *again, *sums])
        if not elsewhere:
            continue
        assert index.statement is not None
        assert isinstance(index.node, cst.Call)
        allocation = parse(job, f"{name} = {code(index.node)}", index.statement)
        edits.replace_many(index.statement, [index.statement, *allocation])
    for item in found:
        _write(job, edits, item, names.fresh(f"{item.load.src.buffer.name.lower()}_row"), own.get(item.index, ""))
    job.apply(edits)
    return True


def _write(job: Job, edits: Edits, item: _Gather, row: str, index: str) -> None:
    """``row``: the name of the new tile; ``index``: that of the index vector in the loop, if it has one of its own."""
    tile, loop = item.tile, item.loop
    assert isinstance(tile.node, cst.Call)
    assert tile.statement is not None
    shape = argument(tile.node, "shape", 0)
    assert shape is not None
    columns = code(tile.shape_nodes[1])
    text = f"[{columns}]" if isinstance(shape, cst.List) else f"({columns},)"
    call = code(replaced(tile.node, {id(shape): cst.parse_expression(text)}))
    edits.replace_many(tile.statement, parse(job, f"{row} = {call}", tile.statement))
    new: dict[int, cst.CSTNode] = {id(item.load.dst.node): cst.Name(row)}
    if index:
        element, place = f"{index}[{loop.ranges[0].name}]", code(item.place)
        kinds = cst.BinaryOperation if item.first is not None else cst.Subscript
        new |= {id(node): cst.parse_expression(element) for node in nodes_of(loop.node, kinds) if code(node) == place}
    changed = cst.ensure_type(replaced(loop.node, new), cst.For)
    made: Sequence[cst.CSTNode] = changed.body.body
    if item.fill is not None:
        (filled,) = [operand.node for _, operand in item.fill.operands if operand.buffer is tile]
        fill = parse(job, code(replaced(item.fill.node, {id(filled): cst.Name(row)})).strip(), loop.node)
        edits.remove(item.fill.node)
        guard, *others = made
        if isinstance(guard, cst.If) and guard.orelse is None and not others:  # a row is loaded or filled
            made = [guard.with_changes(orelse=cst.Else(cst.IndentedBlock(fill)))]
        else:
            made = [*fill, *made]
    after = parse(job, f"T.copy({row}, {item.store.dst.buffer.name}[{loop.ranges[0].name}, :])", loop.node)
    body = changed.body.with_changes(body=[*made, *after])
    edits.replace_many(loop.node, [changed.with_changes(body=body)])
    edits.remove(item.store.node)
    job.change("TL611", tile.node, f"`{row}` holds one row at a time, for both vector cores")


def _is_known(job: Job, item: _Gather, load: Copy) -> bool:
    """Whether what is added to the index has its value where the index is loaded, and the same at the gather."""
    first = item.first
    if first is None:
        return first is None
    before, there = (job.file.evaluator.sym(first, env) for env in (load.env, item.load.env))
    return before == there and not before.depends_on(str(item.loop.ranges[0].var))


def _gathers(kernel: Kernel, body: Sequence[Stmt]) -> Iterator[_Gather]:
    for position, stmt in enumerate(body):
        if isinstance(stmt, Loop) and position + 1 < len(body):
            made = _gather(kernel, body[position - 1] if position else None, stmt, body[position + 1])
            if made is not None:
                yield made
                continue
        for part in children(stmt):
            yield from _gathers(kernel, part)


def _gather(kernel: Kernel, before: Stmt | None, loop: Loop, after: Stmt) -> _Gather | None:
    """The three statements as a gather, if nothing else touches its tile."""
    if loop.kind != "serial" or len(loop.ranges) != 1 or not isinstance(after, Copy):
        return None
    tile, target = after.src, after.dst
    moves = [stmt for stmt in walk(loop.body) if isinstance(stmt, Copy)]
    if tile.buffer.memory is not Memory.UB or target.buffer.memory is not Memory.L1 or len(moves) != 1:
        return None
    (load,) = moves
    if not (tile.is_whole and target.is_whole) or len(tile.buffer.shape) != 2 or tile.buffer.statement is None:
        return None
    if tile.buffer.shape != target.buffer.shape:
        return None
    row, index = load.dst.dims, [one.buffer for dim in load.src.dims or () for one in dim.loads]
    if load.dst.buffer is not tile.buffer or row is None or row[0].lo != loop.ranges[0].var or len(set(index)) != 1:
        return None
    if loop.ranges[0].extent != tile.buffer.shape[0] or row[1].is_point or row[1].extent != tile.buffer.shape[1]:
        return None
    fill = before if isinstance(before, Op) and before.op.kind is Kind.FILL else None
    if fill is not None and not any(operand.buffer is tile.buffer for _, operand in fill.operands):
        fill = None
    if fill is None and load not in loop.body:
        return None
    if {id(stmt) for stmt, _ in accesses_of(kernel, tile.buffer)} - {id(after), id(load), id(fill)}:
        return None
    return _Gather(fill, loop, load, after, index[0])


def _is_used_elsewhere(kernel: Kernel, index: Buffer, loops: Sequence[Loop]) -> bool:
    """Whether more than its load and the gathers read an index vector."""
    inside = {id(stmt) for loop in loops for stmt in (loop, *walk(loop.body))}
    return any(access.reads and id(stmt) not in inside for stmt, access in accesses_of(kernel, index))
