"""TL615: a launch in phases that pass no value on in tiles becomes several launches, one after the other.

``T.sync_grid()`` lets no block go on before all have come: the end of a launch does the same. A kernel with more
cross-core transfers than there are flags is cut, too: each launch counts its own. A block may then run its second phase
later than on a GPU, and all first phases are over before, so that a program without races gives the same.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import reads, writes
from tl2npu.kernel.bindings import assigned_names
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.kernel.model import Alloc, Branch, Copy, Inlined, Kernel, Let, Loop, Memory, Op, Opaque, Stmt, Store, walk
from tl2npu.passes.eager.factories import Eager, Lazy
from tl2npu.passes.plain.reused_memory import overwrites
from tl2npu.results import Diagnostic, KernelResult
from tl2npu.source.edits import Edits
from tl2npu.source.index import Index
from tl2npu.source.names import Names, names_of
from tl2npu.source.tree import calls_in, mentioned, names_in

_GRID = "tilelang.language.sync_grid"
_IN_ORDER = frozenset({"serial", "pipelined", "unroll", "persistent"})


def crowded_kernels(
    kernels: Sequence[KernelResult], diagnostics: Sequence[Diagnostic], leave: Container[int]
) -> dict[int, list[Diagnostic]]:
    """Kernels with more cross-core transfers than there are flags: line -> what was found."""
    found: dict[int, list[Diagnostic]] = {}
    for kernel in kernels:
        if kernel.disposition == "refused" and kernel.source == "gpu" and kernel.line not in leave:
            notes = [note for note in diagnostics if note.kernel == kernel.name]
            if [note.code for note in notes if note.severity == "error"] == ["TL869"]:
                found[kernel.line] = notes
    return found


def take_apart(original: Index, lazy: Lazy, leave: Container[int], crowded: Collection[int]) -> None:
    """Cut launches in two where they may be.

    ``lazy`` is the file so far, and notes the lines of their kernels. ``leave``: lines of kernels that stay.
    ``crowded``: those with too many transfers.
    """
    if not crowded and not _stops_the_grid(original):
        return
    while True:
        index = original.after(lazy.module) if lazy.module is not original.module else original
        found = next(_cuts(original, index, lazy, leave, crowded), None)
        if found is None:
            return
        source, edits = found
        lazy.cut.add(source.line)
        lazy.module = edits.apply(index.module)


def _stops_the_grid(index: Index) -> bool:
    if _GRID.rpartition(".")[2] not in index.code:
        return False
    names = names_of(index)
    return any(names.resolve(call.func) == _GRID for call in calls_in(index.module))


def _cuts(
    original: Index, index: Index, lazy: Lazy, leave: Container[int], crowded: Container[int]
) -> Iterator[tuple[Eager, Edits]]:
    file = FileKernels(index)
    for located in file.located:
        if located.factory is None:
            continue
        eager = lazy.origin(located.factory.node)
        name = f"{located.factory.node.name.value}.{located.node.name.value}"
        source = eager or Eager(located.node, name, original.first_line(located.node.name) or 1, is_prim_func=True)
        if source.line in leave or source.line in lazy.cut:
            continue
        kernel = located.read()
        cut = _cut(kernel, file.names, source.line in crowded)
        if cut is None or kernel.launch is None:
            continue
        edits = Edits(index)
        launch = kernel.launch.node
        parts = [launch.with_changes(body=launch.body.with_changes(body=_lines(launch, part))) for part in cut]
        edits.replace_many(launch, [parts[0], parts[1].deep_clone().with_changes(leading_lines=())])
        text = "wrote a launch for each of two phases, which pass nothing on but in global memory"
        lazy.changes.append((source, "TL615", launch, text))
        yield source, edits


def _lines(launch: cst.With, kept: Sequence[Stmt]) -> list[cst.BaseStatement]:
    """The lines of a launch that hold some statements."""
    nodes = {id(stmt.node) for stmt in kept}
    return [
        line
        for line in launch.body.body
        if isinstance(line, cst.BaseStatement) and any(id(node) in nodes for node in _own(line))
    ]


def _own(line: cst.CSTNode) -> Sequence[cst.CSTNode]:
    return (line, *line.body) if isinstance(line, cst.SimpleStatementLine) else (line,)


def _cut(kernel: Kernel, names: Names, crowded: bool) -> tuple[list[Stmt], list[Stmt]] | None:
    """The statements of both phases; None if there is no place to cut, or if something passes it in a tile."""
    launch = kernel.launch
    if launch is None or any(isinstance(stmt, (Inlined, Opaque)) for stmt in kernel.walk()):
        return None
    lines = [line for line in launch.node.body.body if isinstance(line, cst.BaseStatement)]
    own = {id(node) for line in lines for node in _own(line)}
    body = [stmt for stmt in kernel.body if id(stmt.node) in own]
    if len(body) != len(kernel.body) or any(
        isinstance(line, cst.SimpleStatementLine) and len(line.body) != 1 for line in lines
    ):
        return None
    barrier = next((place for place, stmt in enumerate(body) if _is_barrier(stmt, names)), None)
    if barrier is not None:
        head, tail = body[:barrier], body[barrier + 1 :]
        return _halves(kernel, head, tail) if tail else None
    if not crowded:
        return None
    every = _products(body)
    found = [
        (abs(every - 2 * _products(body[:place])), place)
        for place in range(1, len(body))
        if 0 < _products(body[:place]) < every and isinstance(body[place], (Loop, Branch))
    ]
    halves = (_halves(kernel, body[:place], body[place:]) for _, place in sorted(found))
    return next((half for half in halves if half is not None), None)


def _is_barrier(stmt: Stmt, names: Names) -> bool:
    call = stmt.node.value if isinstance(stmt.node, cst.Expr) else None
    return isinstance(call, cst.Call) and names.resolve(call.func) == _GRID


def _products(body: Sequence[Stmt]) -> int:
    return sum(isinstance(stmt, Op) and stmt.op.kind is Kind.GEMM for stmt in walk(body))


def _halves(kernel: Kernel, head: list[Stmt], tail: list[Stmt]) -> tuple[list[Stmt], list[Stmt]] | None:
    """Both phases, the second one with what it needs of the first one's start."""
    again = _Again(kernel, tail)
    for stmt in reversed(head):
        if not again.takes(stmt):
            return None
    return _without_idle(kernel, head), [*reversed(again.taken), *tail]


@dataclass(eq=False)
class _Again:
    """What the second phase does once more: allocations, and what gives the tiles their first values.

    ``named``: the names that it uses. ``valued``: those of which it needs the values.
    """

    kernel: Kernel
    tail: list[Stmt]

    def __post_init__(self) -> None:
        self.taken: list[Stmt] = []
        self.named = {name.value for stmt in self.tail for name in names_in(stmt.node)}
        self.valued = {name for name in self.named if not _begins_anew(self.tail, name, self.kernel)}
        self.written = {
            operand.buffer.name
            for stmt in self.kernel.walk()
            for operand in writes(stmt)
            if operand.buffer.memory is Memory.GM
        }

    def takes(self, stmt: Stmt) -> bool:
        """Go on with the statement before; False if it gives a value that cannot be made again."""
        if isinstance(stmt, Alloc):
            if stmt.buffer.name in self.named:
                self._take(stmt)
            return True
        changed = {operand.buffer.name for inner in walk([stmt]) for operand in writes(inner)}
        changed -= {buffer.name for buffer in self.kernel.params}
        changed |= {inner.name for inner in walk([stmt]) if isinstance(inner, Let)} | assigned_names(stmt.node)
        if isinstance(stmt, Let) and _aliases(stmt, self.kernel):
            return False
        if not changed & self.valued:
            return True
        if not self._is_plain(stmt):
            return False
        self._take(stmt)
        return True

    def _is_plain(self, stmt: Stmt) -> bool:
        """Whether a statement gives the same in the second phase, and costs little."""
        if isinstance(stmt, Op) and stmt.op.kind is not Kind.FILL:
            return False
        if not isinstance(stmt, (Op, Copy, Let, Store)) and not (isinstance(stmt, Loop) and stmt.kind == "parallel"):
            return False
        stored = {o.buffer.memory for inner in walk([stmt]) for o in writes(inner)}
        loaded = {o.buffer.name for inner in walk([stmt]) for o in reads(inner)}
        return Memory.GM not in stored and not loaded & self.written

    def _take(self, stmt: Stmt) -> None:
        self.taken.append(stmt)
        used = mentioned(stmt.node)
        self.named |= used
        self.valued |= used


def _aliases(stmt: Let, kernel: Kernel) -> bool:
    """Whether a name stands for a tile, or a part of one."""
    plain = {id(load.node) for load in stmt.value.loads}
    tiles = {name for name, buffer in kernel.buffers.items() if buffer.is_tile}
    return not plain and bool(mentioned(stmt.value.node) & tiles)


def _begins_anew(block: Sequence[Stmt], name: str, kernel: Kernel) -> bool:
    """Whether statements give a name or a tile a value before they use it, on every way through them."""
    for stmt in block:
        if name not in mentioned(stmt.node):
            continue
        if isinstance(stmt, Branch):
            arms = [arm for arm in (stmt.then, stmt.orelse) if arm]
            if name in mentioned(stmt.cond.node) or not all(_begins_anew(arm, name, kernel) for arm in arms):
                return False
        elif isinstance(stmt, Loop) and stmt.kind in _IN_ORDER:
            assert isinstance(stmt.node, cst.For)
            if name in mentioned(stmt.node.iter):
                return False
            if name not in mentioned(stmt.node.target) and not _begins_anew(stmt.body, name, kernel):
                return False
        else:
            return _gives(stmt, name, kernel)
    return True


def _gives(stmt: Stmt, name: str, kernel: Kernel) -> bool:
    """Whether a statement gives a name a value, or stores to a whole tile, without reading it."""
    if isinstance(stmt, Let) and stmt.name == name:
        return name not in mentioned(stmt.value.node)
    if isinstance(stmt, Loop) and isinstance(stmt.node, cst.For) and name in mentioned(stmt.node.target):
        return True
    buffer = kernel.buffers.get(name)
    if buffer is None or buffer.memory is Memory.GM:
        return False
    if isinstance(stmt, Op):
        whole = any(operand.buffer is buffer and operand.is_whole for operand in writes(stmt))
        fresh = stmt.op.kind is Kind.GEMM and _clears(stmt.call)
        others = sum(operand.buffer is buffer for _, operand in stmt.operands) == 1
        if whole and others and (fresh or all(operand.buffer is not buffer for operand in reads(stmt))):
            return True
    return overwrites(stmt, buffer)


def _clears(call: cst.Call) -> bool:
    return any(arg.keyword and arg.keyword.value == "clear_accum" and code(arg.value) == "True" for arg in call.args)


def _without_idle(kernel: Kernel, head: list[Stmt]) -> list[Stmt]:
    """The first phase without tiles that it only clears, and names that it does not use."""
    while True:
        idle = next((name for name in _bound(head) if all(_only_sets(stmt, name) for stmt in head)), None)
        if idle is None:
            return head
        head = [stmt for stmt in head if idle not in mentioned(stmt.node)]


def _bound(head: Sequence[Stmt]) -> list[str]:
    allocated = [stmt.buffer.name for stmt in head if isinstance(stmt, Alloc)]
    return [*allocated, *(stmt.name for stmt in head if isinstance(stmt, Let))]


def _only_sets(stmt: Stmt, name: str) -> bool:
    """Whether a statement, if it mentions a name, does nothing but give it a value."""
    if name not in mentioned(stmt.node):
        return True
    if isinstance(stmt, Alloc):
        return stmt.buffer.name == name
    if isinstance(stmt, Let):
        return stmt.name == name and name not in mentioned(stmt.value.node)
    return isinstance(stmt, Op) and stmt.op.kind is Kind.FILL and all(o.buffer.name == name for o in writes(stmt))
