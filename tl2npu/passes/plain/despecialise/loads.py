"""TL198: threads of a warp group that fill a tile together, each some elements: one parallel loop over the tile.

``KV[r * 16 + tx // 8, 64 * u + tx % 8 * 8 + v] = K[r * 16 + tx // 8, 64 * u + tx % 8 * 8 + v]``: the variables of the
loops, and the two parts of a thread's index, are the digits of the rows and of the columns. Each stands in one of
them, so that every element is stored once, whatever the order.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.environment import Env
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Let, Loop, Memory, Operand, Range, Stmt, Store
from tl2npu.kernel.symbolic import Div, Mod, Sym, const, product
from tl2npu.passes.job import Job
from tl2npu.passes.plain.despecialise.order import Run, arms, has_barriers, thread_names
from tl2npu.passes.plain.unsupported.names import operator_name
from tl2npu.passes.writing.render import Unrenderable, render
from tl2npu.passes.writing.statements import Names, parse
from tl2npu.passes.writing.substitute import Unclear as NotReplaceable
from tl2npu.passes.writing.substitute import substituted
from tl2npu.source.edits import Edits
from tl2npu.source.tree import mentioned, nodes_of

_IN_ORDER = frozenset({"serial", "unroll", "vectorized"})


class Unclear(Exception):
    """Code of single threads that fills no tile."""


def as_tiles(job: Job) -> None:
    """Write such loops in the code of all warp groups; raises :class:`Unclear` where threads do anything else."""
    _as_stores(job)
    lane = _over_lanes(job)
    edits = Edits(job.file.index)
    loops = [stmt for stmt in job.kernel.walk() if isinstance(stmt, Loop)]
    for loop in [loop for loop in loops if loop.ranges and loop.ranges[0].name == lane]:
        texts = [_filled(job, lane, store, ranges) for store, ranges in _stores([loop], ())]
        edits.replace_many(loop.node, parse(job, "\n".join(texts), loop.node))
        job.change("TL198", loop.node, "threads that fill a tile together: a loop over the tile")
    job.apply(edits)


def _as_stores(job: Job) -> None:
    """Asynchronous copies of some elements, ``T.ptx_cp_async``, as loops that store them."""
    edits, names = Edits(job.file.index), Names(job)
    for node in nodes_of(job.located.node.body, cst.SimpleStatementLine, cst.With):
        if isinstance(node, cst.With):
            given = [code(arg.value).strip("'\"") for arg in _args(job, node.items[0].item, "attr")]
            if "async_scope" in given and len(node.items) == 1:
                edits.unwrap(node)
            continue
        small = cst.ensure_type(node, cst.SimpleStatementLine).body[0]
        copy = _args(job, small.value, "ptx_cp_async") if isinstance(small, cst.Expr) else []
        places = [_args(job, arg.value, "access_ptr") for arg in copy[:2]]
        if len(copy) != 3 or [len(place) for place in places] != [3, 3]:
            continue
        count, element = code(copy[2].value), names.fresh("v", "element")
        if any(code(place[2].value) != count for place in places):
            raise Unclear
        into, source = (_further(place[0].value, element) for place in places)
        text = f"for {element} in T.vectorized({count}):\n    {into} = {source}"
        edits.replace_many(node, parse(job, text, node))
    job.apply(edits)


def _args(job: Job, node: cst.BaseExpression, operator: str) -> Sequence[cst.Arg]:
    return node.args if isinstance(node, cst.Call) and operator_name(job, node.func) == operator else ()


def _further(node: cst.BaseExpression, by: str) -> str:
    if not isinstance(node, cst.Subscript) or not isinstance(node.slice[-1].slice, cst.Index):
        raise Unclear
    *first, last = [code(item.slice) for item in node.slice]
    return f"{code(node.value)}[{', '.join([*first, f'{last} + {by}'])}]"


def _over_lanes(job: Job) -> str:
    """Write what single threads do as a loop over them, outermost; its variable."""
    run, names = Run.of(job, 1, 1), list(thread_names(job))
    lane, edits = Names(job).fresh("lane"), Edits(job.file.index)

    def of_group(line: cst.CSTNode, first: int, count: int) -> None:
        if name not in mentioned(line):
            return
        if isinstance(line, cst.For) and has_barriers(job, line):
            for inner in line.body.body:
                of_group(inner, first, count)
            return
        try:
            body = code(substituted(line, {name: cst.parse_expression(f"({lane} + {first})")}))
        except NotReplaceable:
            raise Unclear from None
        body = textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
        edits.replace_many(line, parse(job, f"for {lane} in T.serial({count}):\n{body}", line))

    if len(names) != 1:
        raise Unclear
    (name,) = names
    for branch in nodes_of(job.kernel.launched.node.body, cst.If):
        if isinstance(job.file.index.parent(branch), cst.If):
            continue  # an `elif`
        for threads, suite in arms(run, branch) or ():
            for line in suite.body:
                of_group(line, min(threads), len(threads))
    if not edits:
        raise Unclear
    job.apply(edits)
    return lane


def _stores(stmts: Iterable[Stmt], ranges: tuple[Range, ...]) -> Iterator[tuple[Store, tuple[Range, ...]]]:
    """The stores of a nest, each with the loops around it."""
    for stmt in stmts:
        if isinstance(stmt, Loop) and stmt.kind in _IN_ORDER and len(stmt.ranges) == 1 and stmt.ranges[0].step is None:
            yield from _stores(stmt.body, (*ranges, *stmt.ranges))
        elif isinstance(stmt, Store) and not stmt.augmented and stmt.target.buffer.is_tile:
            yield stmt, ranges
        elif not isinstance(stmt, Let) or stmt.bound is None:
            raise Unclear


@dataclass(frozen=True)
class _Digit:
    """A number below ``extent``: a variable, or a part of one that is counted in steps of ``unit``."""

    name: str
    unit: int
    extent: Sym


def _counts(value: Sym, lane: str, ranges: Sequence[Range]) -> bool:
    return any(item.name == lane and item.var.names & value.names for item in ranges)


def _digits(lane: str, ranges: Sequence[Range], indices: Iterable[Sym]) -> list[_Digit]:
    """The variables of loops; that of threads in two parts, if the indices take it apart."""
    parts = {
        atom.den.constant
        for index in indices
        for atom in index.atoms()
        if isinstance(atom, (Div, Mod)) and _counts(atom.num, lane, ranges)
    }
    found: list[_Digit] = []
    for item in ranges:
        (name,), count = item.var.names, item.extent.constant
        if not item.start.is_zero:
            raise Unclear
        if item.name != lane or not parts:
            found.append(_Digit(name, 1, item.extent))
            continue
        unit = parts.pop()
        if unit is None or count is None or parts or count % unit:
            raise Unclear
        found += [_Digit(name, unit, const(count // unit)), _Digit(name, 1, const(unit))]
    return found


def _at(index: Sym, digits: Sequence[_Digit], values: Sequence[int]) -> Sym:
    """An index where the digits have these values."""
    point: dict[str, int] = {}
    for digit, value in zip(digits, values, strict=True):
        point[digit.name] = point.get(digit.name, 0) + value * digit.unit
    return index.substitute(point)


def _weights(index: Sym, digits: Sequence[_Digit]) -> list[int]:
    """What one more of each digit adds to an index, of which it is a sum; raises :class:`Unclear` for any other."""
    start, found = _at(index, digits, [0] * len(digits)), list[int]()
    for place in range(len(digits)):
        step = _at(index, digits, [int(other == place) for other in range(len(digits))]) - start
        if step.constant is None:
            raise Unclear
        found.append(step.constant)
    tops = [(digit.extent.constant or 3) - 1 for digit in digits]
    halves = [top // 2 for top in tops]
    for values in (tops, halves, *([top * (n == m) for n, top in enumerate(tops)] for m in range(len(tops)))):
        added = sum(weight * value for weight, value in zip(found, values, strict=True))
        if _at(index, digits, values) - start != const(added):
            raise Unclear
    return found


def _filled(job: Job, lane: str, store: Store, ranges: Sequence[Range]) -> str:
    """A store in loops as a loop over the axes of its tile."""
    target, source = store.target, _source(store)
    dims, places = target.dims or (), source.dims or ()
    digits = _digits(lane, ranges, [dim.lo for dim in (*dims, *places)])
    weights = [_weights(dim.lo, digits) for dim in dims]
    axes = [axis for axis, own in enumerate(weights) if any(own)]
    if any(sum(bool(own[n]) for own in weights) != 1 for n in range(len(digits))):
        raise Unclear
    wishes = [(letter,) for letter in "ijklmn"[: len(axes)]]
    chosen = dict(zip(axes, Names(job).variables(*wishes, inside=[store.node]), strict=True))
    extents: list[str] = []
    for axis in axes:
        size, written = target.buffer.shape[axis], target.buffer.shape_nodes[axis]
        if not _at(dims[axis].lo, digits, [0] * len(digits)).is_zero:
            raise Unclear
        _assume_filled(job, store, written, _number(digits, weights[axis]), size)
        extents.append(code(written))
    into = [chosen[axis] if axis in axes else _text(job, store, dim.lo, ranges) for axis, dim in enumerate(dims)]
    out: list[str] = []
    for dim in places:
        own = _weights(dim.lo, digits)
        used = [axis for axis in axes if any(own[n] and weights[axis][n] for n in range(len(digits)))]
        if own != [sum(weights[axis][n] for axis in used) for n in range(len(digits))]:
            raise Unclear
        start = _at(dim.lo, digits, [0] * len(digits))
        terms = [] if start.is_zero and used else [_text(job, store, start, ranges)]
        out.append(" + ".join([*terms, *(chosen[axis] for axis in used)]))
    head = f"for {', '.join(chosen[axis] for axis in axes)} in T.Parallel({', '.join(extents)}):"
    return f"{head}\n    {target.buffer.name}[{', '.join(into)}] = {source.buffer.name}[{', '.join(out)}]"


def _source(store: Store) -> Operand:
    """The one element of a tensor that a store copies."""
    found = [load for load in store.value.loads if load.node is store.value.node]
    dims = [*(store.target.dims or ()), *(dim for load in found for dim in load.dims or ())]
    if not found or any(not dim.is_point or dim.loads for dim in dims) or found[0].buffer.memory is not Memory.GM:
        raise Unclear
    return found[0]


def _number(digits: Sequence[_Digit], weights: Sequence[int]) -> Sym:
    """How many values digits with these weights have, all from 0 on, each once."""
    own = sorted((weight, n) for n, weight in enumerate(weights) if weight)
    counted = const(1)
    for weight, n in own:
        if counted != const(weight):
            raise Unclear
        counted = product((counted, digits[n].extent))
    return counted


def _assume_filled(job: Job, store: Store, written: cst.BaseExpression, count: Sym, size: Sym) -> None:
    """The tile is as large as what is stored: else elements that are read have no value, or lie behind it."""
    if count == size:
        return
    if count.constant is not None and size.constant is not None:
        raise Unclear
    try:
        shown = render(count)
    except Unrenderable:
        raise Unclear from None
    text = f"assumed that the loads of single threads fill their tiles: `{code(written)}` is {shown}"
    if all(note.message != text for note in job.notes):
        job.note("TL198", store.node, text, "warning")


def _text(job: Job, store: Store, value: Sym, ranges: Sequence[Range]) -> str:
    """A value that no digit changes, as text for the place of a store."""
    env: Env = store.env
    try:
        text = render(value)
    except Unrenderable:
        raise Unclear from None
    if job.file.evaluator.sym(cst.parse_expression(text), env) != value or any(r.name in text.split() for r in ranges):
        raise Unclear
    return text
