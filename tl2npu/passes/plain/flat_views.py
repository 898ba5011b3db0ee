"""TL121, TL602: ``flat = T.Tensor((N * H * W, C), dtype, x.data)``, a second shape of a tensor.

Where nothing uses the tensor itself it stays, in front of the launch; the Ascend compiler knows it. Elements of the
tensor whose indices are taken from one of the view, ``x[s // W, s % W]``, are read as the view's. Elsewhere the view
gives way to the tensor, if each of its axes stands for some axes of the tensor, which lie in memory without a gap. An
element of the view is an element of the tensor; a copy of a part of it becomes a loop over its elements, as its rows
may lie anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.access import accesses
from tl2npu.kernel.bindings import assigned_names
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.environment import Env
from tl2npu.kernel.expressions import Evaluator, code
from tl2npu.kernel.model import Buffer, Kernel, Memory, Opaque, Operand
from tl2npu.kernel.symbolic import Sym, const
from tl2npu.kernel.tensors import second_shapes
from tl2npu.passes.job import Job
from tl2npu.passes.names.leftovers import remove_statements
from tl2npu.passes.plain.digits import number_along
from tl2npu.passes.rounds import until_settled
from tl2npu.passes.writing.statements import Names, expression, factor, parse
from tl2npu.source.edits import Edits
from tl2npu.source.tree import mentioned, names_in, nodes_of

_TENSOR, _COPY = "tilelang.language.Tensor", "tilelang.language.copy"
_ARGUMENTS = 3
_MOST = 3


@dataclass(frozen=True, eq=False)
class _View:
    """``name`` is ``base`` with some of its axes joined: each axis of the view is a run of ``merged`` axes."""

    name: str
    node: cst.Assign
    base: Buffer
    merged: tuple[int, ...]
    env: Env

    def index(self, parts: Sequence[str]) -> str:
        """The element of the tensor that is the view's element at these indices.

        The first index of a run is too large where that of the view is: both lie outside of the tensor.
        """
        sizes, found = [factor(code(node)) for node in self.base.shape_nodes], list[str]()
        for part, count in zip(parts, self.merged, strict=True):
            run, sizes = sizes[:count], sizes[count:]
            if count == 1:
                found.append(part)
                continue
            for number, size in enumerate(run):
                text, inner = factor(part), run[number + 1 :]
                if inner:
                    text += f" // ({' * '.join(inner)})" if len(inner) > 1 else f" // {inner[0]}"
                found.append(text if number == 0 else f"{text} % {size}")
        return f"{self.base.name}[{', '.join(found)}]"


def resolve(job: Job, *, keep: bool = True) -> None:
    """Put views in front of the launch; write the tensor for others where all uses can be rewritten.

    What is left is refused later. ``keep``: the target's compiler knows views.
    """
    done: set[str] = set()

    def step() -> bool:
        for node, env in _assignments(job.kernel, keep):
            view = _view(node, env, job.file.evaluator)
            if view is not None and view.name not in done:
                done.add(view.name)
                if (keep and _join(job, view)) or _rewrite(job, view):
                    return True
        return False

    until_settled(job, step)
    if keep:
        until_settled(job, lambda: _moved(job))


def _assignments(kernel: Kernel, keep: bool) -> Iterator[tuple[cst.CSTNode, Env]]:
    for stmt in kernel.walk():
        if isinstance(stmt, Opaque) and not stmt.via:
            yield stmt.node, stmt.env
    for buffer in [] if keep else second_shapes(kernel):
        env = next((s.env for s in kernel.walk() if s.env.lookup(buffer.name) is buffer), None)
        if env is not None and buffer.statement is not None:
            yield buffer.statement, env


def _moved(job: Job) -> bool:
    """Move a view from inside of the launch to its front: what copies through it may go there, too."""
    index, launch, function = job.file.index, job.kernel.launch, job.located.node
    for view in second_shapes(job.kernel):
        node = view.statement
        line = index.parent(node) if isinstance(node, cst.Assign) else None
        if launch is None or not isinstance(node, cst.Assign) or launch.node not in index.ancestors(node):
            continue
        bound = [name.value for name in names_in(function.body) if isinstance(index.parent(name), cst.AssignTarget)]
        own = {name for line in launch.node.body.body for name in assigned_names(line)} | set(launch.names)
        if bound.count(view.name) > 1 or own & mentioned(node.value):
            raise Blocked("TL902", node, f"the shape of `{view.name}` must not depend on what the kernel computes")
        if not isinstance(line, cst.SimpleStatementLine) or len(line.body) > 1:
            raise Blocked("TL902", node, f"write `{view.name} = ...` on a line of its own")
        job.change("TL602", node, f"made `{view.name}` in front of the launch")
        edits = Edits(index)
        edits.remove(line)
        job.apply(edits)
        edits = Edits(job.file.index)
        edits.replace_many(job.kernel.launched.node, [line.with_changes(leading_lines=()), job.kernel.launched.node])
        job.apply(edits)
        return True
    return False


def _view(node: cst.CSTNode, env: Env, evaluator: Evaluator) -> _View | None:
    if not isinstance(node, cst.Assign) or len(node.targets) != 1:
        return None
    target, value = node.targets[0].target, node.value
    if not isinstance(target, cst.Name) or not isinstance(value, cst.Call) or len(value.args) != _ARGUMENTS:
        return None
    if evaluator.names.resolve(value.func) != _TENSOR or any(arg.keyword or arg.star for arg in value.args):
        return None
    shape, dtype, data = (arg.value for arg in value.args)
    if not isinstance(data, cst.Attribute) or data.attr.value != "data" or not isinstance(shape, (cst.Tuple, cst.List)):
        return None
    base = evaluator.buffer(data.value, env)
    if base is None or base.memory is not Memory.GM or evaluator.dtype(dtype, env) != base.dtype:
        return None
    sizes = [evaluator.sym(item, item_env) for item, item_env in evaluator.sequence(shape, env)]
    merged = _runs(list(base.shape), sizes)
    return None if merged is None else _View(target.value, node, base, merged, env)


def _runs(axes: list[Sym], sizes: list[Sym]) -> tuple[int, ...] | None:
    """How many axes of a tensor each axis of another shape is, one after the other; None if it is no such shape."""
    found: list[int] = []
    for size in sizes:
        counts = range(1, len(axes) + 1)
        count = next((count for count in counts if math.prod(axes[:count], start=const(1)) == size), None)
        if count is None:
            return None
        axes = axes[count:]
        found.append(count)
    return tuple(found) if not axes else None


def _join(job: Job, view: _View) -> bool:
    """Write the view for every use of the tensor itself; False if one of them is no element that the view has, too."""
    edits, written = Edits(job.file.index), list[cst.CSTNode]()
    for stmt in job.kernel.walk():
        for access in accesses(stmt) if stmt.node is not view.node else ():
            operand = access.operand
            if operand.buffer is not view.base:
                continue
            parts = _joined(job, view, operand, stmt.env) if access.element and not stmt.via else None
            if parts is None:
                return False
            if all(operand.node is not node for node in written):
                edits.replace(operand.node, expression(job, f"{view.name}[{', '.join(parts)}]", operand.node))
                written.append(operand.node)
    names = [*names_in(view.node), *(name for node in written for name in names_in(node))]
    known = {id(name) for name in names if name.value == view.base.name}
    if not written or len(known) < sum(name.value == view.base.name for name in names):
        return False
    if any(name.value == view.base.name and id(name) not in known for name in names_in(job.located.node.body)):
        return False
    job.change("TL602", view.node, f"wrote `{view.name}` for `{view.base.name}`, so that all of it is in one shape")
    job.apply(edits)
    return True


def _joined(job: Job, view: _View, operand: Operand, env: Env) -> list[str] | None:
    """The indices in the view of an element of the tensor, if each run of its own ones is one number taken apart."""
    dims, sizes, found = list(operand.dims or ()), list(view.base.shape), list[str]()
    if len(dims) != len(sizes):
        return None
    for count in view.merged:
        text = code(dims[0].node) if count == 1 else number_along(job, env, dims[:count], sizes[:count])
        if text is None:
            return None
        dims, sizes = dims[count:], sizes[count:]
        found.append(text)
    return found


def _rewrite(job: Job, view: _View) -> bool:
    index, edits, names = job.file.index, Edits(job.file.index), Names(job)
    copies: dict[int, cst.Call] = {}
    for name in nodes_of(job.located.node.body, cst.Name):
        above = index.parent(name)
        if name.value != view.name or above is view.node.targets[0]:
            continue
        used = above if isinstance(above, cst.Subscript) and above.value is name else name
        arg = index.parent(used)
        call = index.parent(arg) if isinstance(arg, cst.Arg) else None
        if isinstance(call, cst.Call) and job.file.names.resolve(call.func) == _COPY:
            copies[id(call)] = call
            continue
        parts = _starts(used, view) if isinstance(used, cst.Subscript) else None
        if parts is None or any(size is not None for _, size in parts):
            return False
        edits.replace(used, expression(job, view.index([text for text, _ in parts]), view.node))
    for call in copies.values():
        text, statement = _loop(job, view, call, names), index.parent(call)
        if text is None or not isinstance(statement, cst.Expr):
            return False
        edits.replace_many(statement, parse(job, text, statement))
    remove_statements(job, edits, [view.node])
    job.change("TL121", view.node, f"wrote `{view.base.name}` for its flat view `{view.name}`")
    job.apply(edits)
    return True


def _starts(node: cst.BaseExpression, view: _View) -> list[tuple[str, str | None]] | None:
    """Where a part of a view starts along each of its axes, and the text of its size, None if it is one element."""
    rank = len(view.merged)
    if not isinstance(node, cst.Subscript):
        return [("0", "")] * rank
    found: list[tuple[str, str | None]] = []
    for part in (element.slice for element in node.slice):
        if isinstance(part, cst.Index):
            found.append((code(part.value), None))
        elif not isinstance(part, cst.Slice) or part.step is not None or (part.lower is None) != (part.upper is None):
            return None
        elif part.lower is not None and part.upper is not None:
            found.append((code(part.lower), f"({code(part.upper)}) - ({code(part.lower)})"))
        else:
            found.append(("0", ""))
    return found if len(found) == rank else None


def _loop(job: Job, view: _View, call: cst.Call, names: Names) -> str | None:
    """A copy between a whole tile and a part of the view, element by element."""
    if len(call.args) != 2 or any(arg.keyword or arg.star for arg in call.args):
        return None
    sides = [arg.value for arg in call.args]
    of_view = [_is_of(side, view) for side in sides]
    tile = sides[of_view.index(False)] if of_view.count(True) == 1 else None
    buffer = job.kernel.buffers.get(tile.value) if isinstance(tile, cst.Name) else None
    starts = _starts(sides[of_view.index(True)], view) if buffer is not None else None
    if buffer is None or buffer.memory is Memory.GM or starts is None:
        return None
    before, starts = starts[: -len(buffer.shape)], starts[-len(buffer.shape) :]
    if not 0 < len(starts) == len(buffer.shape) < _MOST or any(size is not None for _, size in before):
        return None
    evaluator = job.file.evaluator
    for (_, size), extent in zip(starts, buffer.shape, strict=True):
        if size and evaluator.sym(cst.parse_expression(size), view.env) != extent:
            return None
    variables = [names.fresh(*wanted) for wanted in (("r", "row"), ("c", "column"))[: len(starts)]]
    extents = ", ".join(code(node) for node in buffer.shape_nodes)
    parts = [var if text == "0" else f"{text} + {var}" for (text, _), var in zip(starts, variables, strict=True)]
    whole = view.index([*(text for text, _ in before), *parts])
    pair = (f"{buffer.name}[{', '.join(variables)}]", whole)
    target, value = pair if of_view[0] else pair[::-1]
    return f"for {', '.join(variables)} in T.Parallel({extents}):\n    {target} = {value}\n"


def _is_of(node: cst.BaseExpression, view: _View) -> bool:
    base = node.value if isinstance(node, cst.Subscript) else node
    return isinstance(base, cst.Name) and base.value == view.name
