"""TL113 (and TL195): ``T.dynamic`` becomes ``T.symbolic``, one name at a time.

The compiler takes sizes from whole extents (TL889): with ``starts: T.Tensor([batch + 1], ...)`` and no ``[batch]`` that
extent gets a name, and ``batch`` is what is one less.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Loop, Memory
from tl2npu.kernel.symbolic import Sym, var
from tl2npu.passes.job import Job
from tl2npu.passes.names.leftovers import drop_leftovers
from tl2npu.passes.plain.types.reach import nodes
from tl2npu.passes.writing.statements import Names
from tl2npu.source.edits import Edits
from tl2npu.source.tree import names_in

_DYNAMIC = frozenset({"tilelang.language.dynamic", "tilelang.language.symbolic"})
_BETWEEN = re.compile(r"[\s,]+")


def rename(job: Job) -> None:
    """One ``T.symbolic`` for each name; raises :class:`Blocked` where a tile would have such a size."""
    _name_whole_extents(job)
    edits = Edits(job.file.index)
    declared: set[str] = set()
    calls: list[cst.Call] = []
    done: set[int] = set()
    for node in nodes(job):
        if type(node) is not cst.Call or job.file.names.resolve(node.func) not in _DYNAMIC or id(node) in done:
            continue
        done.add(id(node))
        calls.append(node)
        declared |= _rewrite(job, edits, node)
    _refuse_dynamic_tiles(job, declared)
    job.apply(edits)
    drop_leftovers(job, [call.func for call in calls], "TL113")


def _name_whole_extents(job: Job) -> None:
    """Name the first extent that is a size and a number, for each size that is no extent by itself."""
    names, sizes = Names(job), [size for param in job.kernel.params for size in param.shape]
    edits = Edits(job.file.index)
    for name in sorted(job.late.names - set(job.kernel.scalars)):
        more = next((rest.constant for size in sizes if (rest := size - var(name)).constant is not None), None)
        made = _declaration_of(job, name)
        if more is None or made is None or any(size == var(name) for size in sizes):
            continue
        whole = names.fresh(f"{name}_{'plus' if more > 0 else 'minus'}_{abs(more)}")
        own = f"{whole} {'-' if more > 0 else '+'} {abs(more)}"
        line, text = made
        others = [use for use in names_in(job.module) if use.value == name and use not in names_in(job.located.node)]
        kept = [line] if len(others) > 1 else []
        edits.replace_many(line, [*kept, cst.parse_statement(f'{whole} = {text}("{whole}")')])
        every = zip(sizes, (node for param in job.kernel.params for node in param.shape_nodes), strict=True)
        extents = [node for size, node in every if (size - var(name)).constant == more]
        inside = {id(use) for node in extents for use in names_in(node)}
        for node in extents:
            edits.replace(node, cst.Name(whole))
        for use in names_in(job.located.node):
            if use.value == name and id(use) not in inside:
                alone = isinstance(job.file.index.parent(use), cst.Arg)
                edits.replace(use, cst.parse_expression(own if alone else f"({own})"))
        job.change("TL113", line, f"`{name}` is `{own}`: the compiler takes sizes from whole extents of tensors")
    job.apply(edits)


def _declaration_of(job: Job, name: str) -> tuple[cst.SimpleStatementLine, str] | None:
    """The line of the factory that declares a size alone, ``n = T.dynamic("n")``, and what it calls."""
    for call in nodes(job):
        if type(call) is cst.Call and job.file.names.resolve(call.func) in _DYNAMIC and _names(call) == [name]:
            parent = job.file.index.parent(call)
            targets = parent.targets if isinstance(parent, cst.Assign) else ()
            line = job.file.index.parent(parent) if [code(item.target) for item in targets] == [name] else None  # type: ignore[arg-type]
            if isinstance(line, cst.SimpleStatementLine):
                return line, code(call.func)
    return None


def _rewrite(job: Job, edits: Edits, call: cst.Call) -> set[str]:
    """Edit one declaration; the variables that it is assigned to."""
    names = _names(call)
    parent = job.file.index.parent(call)
    spelling = job.file.names.spell("tilelang.language.symbolic", at=call) or code(call.func)
    targets: list[cst.BaseExpression] = []
    if isinstance(parent, cst.Assign) and len(parent.targets) == 1:
        target = parent.targets[0].target
        targets = [e.value for e in target.elements] if isinstance(target, (cst.Tuple, cst.List)) else [target]
    if len(names) == 1:
        if code(call.func) != spelling:
            edits.replace(call.func, cst.parse_expression(spelling))
            job.change("TL113", call, f"`{code(call)}`: `T.symbolic` is its name")
    else:
        calls = [_declaration(spelling, name, call) for name in names]
        if isinstance(parent, cst.Assign) and len(targets) == len(names):
            lines = [f"{code(target)} = {text}" for target, text in zip(targets, calls, strict=True)]
            edits.replace_many(parent, [_small(line) for line in lines])
        else:
            edits.replace(call, cst.parse_expression(f"({', '.join(calls)})"))
        job.change("TL113", call, f"{len(names)} sizes, one declaration each")
    return {target.value for target in targets if isinstance(target, cst.Name)}


def _names(call: cst.Call) -> list[str]:
    first = call.args[0].value if call.args else None
    if not isinstance(first, cst.SimpleString) or not isinstance(first.evaluated_value, str):
        raise Blocked("TL902", call, "cannot read the name of a dynamic size")
    return [name for name in _BETWEEN.split(first.evaluated_value) if name]


def _declaration(spelling: str, name: str, call: cst.Call) -> str:
    first = cst.ensure_type(call.args[0].value, cst.SimpleString)
    rest = "".join(f", {code(arg.with_changes(comma=cst.MaybeSentinel.DEFAULT))}" for arg in call.args[1:])
    return f"{spelling}({first.quote}{name}{first.quote}{rest})"


def _small(text: str) -> cst.BaseSmallStatement:
    line = cst.ensure_type(cst.parse_statement(text), cst.SimpleStatementLine)
    return line.body[0]


def _refuse_dynamic_tiles(job: Job, declared: set[str]) -> None:
    values = [job.located.env.lookup(name) for name in declared]
    unknown = {name for value in values if isinstance(value, Sym) for name in value.variables()}
    for what, size, node in _tile_sizes(job):
        if size.variables() & unknown:
            raise Blocked("TL195", node, f"{what} has the size `{size}`, which is known at run time only")


def _tile_sizes(job: Job) -> Iterator[tuple[str, Sym, cst.CSTNode]]:
    for buffer in job.kernel.buffers.values():
        if buffer.memory is not Memory.GM:
            for size in buffer.shape:
                yield f"the tile `{buffer.name}`", size, buffer.node
    for stmt in job.kernel.walk():
        if isinstance(stmt, Loop) and stmt.kind == "parallel":
            for extent in stmt.ranges:
                yield "a parallel loop", extent.extent, stmt.node
