"""``T.Pipelined`` over both cores: each core runs several turns of its part before the other core's next part.

A port of what ``src/transform/cross_core_pipeline.cc`` (95acbd7f) makes of such a loop of ``n`` turns in ``s`` stages:
``n // s`` rounds; in a round the statements of one core up to the next one of the other are a loop of ``s`` turns. What
one such part reads before it writes it, and another part uses too, has a version for each of the ``s`` turns, if
nothing outside of the loop uses it. Workspaces have versions always. The simulator stops where the pass runs statements
twice, loses them, or reads an element of another turn; in a loop of one core, which runs as it stands, where a load
that runs ahead overwrites the only version of its tile (``pipeline_planning.cc``, ``inject_pipeline.cc``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tl2npu.dialects.ascend import OPERATORS
from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.ir import dtypes
from tl2npu.simulator.ir.buffer import Buffer, Region, whole
from tl2npu.simulator.ir.expr import Expr, Load, Value, Var, binary, dtype_of
from tl2npu.simulator.ir.stmt import Alloc, For, If, Let, Op, Parallel, Stmt, Store
from tl2npu.simulator.ir.stmt import walk as statements
from tl2npu.simulator.lowering import parallel_forms
from tl2npu.simulator.lowering.copier import Copier
from tl2npu.simulator.lowering.cores import op_core
from tl2npu.simulator.lowering.memories import CUBE
from tl2npu.simulator.lowering.uses import buffers, loads, values

_BY_VERSION = ("tile.mul", "tile.add")
"""Operators whose scalar is read in the version of the turn (``ascend_muls``, ``ascend_adds`` in BufferAccessAdjuster);
all others read it in the first one. As a row loop the compiler makes of ``T.Parallel``, they double its index."""


def stage(body: list[Stmt], workspaces: Sequence[Buffer]) -> tuple[list[Stmt], list[Buffer]]:
    """The program with its pipelined loop over both cores in rounds, and its workspaces.

    Raises SimulatorError for a second such loop, and for code that the pass does not keep.
    """
    pipelined = [s for s in statements(body) if isinstance(s, For) and s.kind == "pipelined"]
    found = [loop for loop in pipelined if _is_staged(loop)]
    for loop in pipelined:
        if loop not in found:
            _reject_overwritten(loop, _count(body))
    if not found:
        return body, list(workspaces)
    if len(found) > 1:
        text = "a second pipelined loop over both cores: the compiler stops (only support one cross core pipeline body)"
        raise SimulatorError(text, found[1].site)
    rounds = _Rounds(found[0], _count(body))
    made = rounds.block(body)
    own = {w.number for w in workspaces}
    given = [b for n, b in rounds.made.items() if n not in own and b.memory == "global"]
    return made, [*(rounds.made.get(w.number, w) for w in workspaces), *given]


def _is_staged(loop: For) -> bool:
    if _stages(loop) < 1:
        return False
    inner = [s for s in statements(loop.body) if isinstance(s, Op)]
    return {"C", "V"} <= {op_core(s) for s in inner} and any(_hands_over(s) for s in inner)


def _stages(loop: For) -> int:
    stages = loop.notes.get("num_stages", 0)
    return stages if isinstance(stages, int) else 0


def _reject_overwritten(loop: For, uses: Mapping[int, int]) -> None:
    inside = _count(loop.body)
    for number, stmt in enumerate(loop.body if _stages(loop) > 1 and loop.extent not in (0, 1) else ()):
        read = {buffer for later in _steps(loop.body[number + 1 :]) for buffer, _ in _effects(later)[0]}
        for load in statements([stmt]):
            if not isinstance(load, Op) or load.name != "copy":
                continue
            source, tile = (load.args[end].buffer.root for end in ("src", "dst"))
            if source.memory == "global" and tile in read and inside[tile.number] < uses[tile.number]:
                text = f"{tile.name} is used outside of the pipelined loop too: the load of the next turn overwrites it"
                raise SimulatorError(text, load.site)


def _hands_over(stmt: Op) -> bool:
    place = stmt.args.get("dst")
    return stmt.name == "copy" and isinstance(place, (Region, Load)) and _is_workspace(place.buffer)


def _is_workspace(buffer: Buffer) -> bool:
    return buffer.memory == "global" and buffer.name.startswith("workspace")


def _on_chip(stmt: Stmt) -> list[Buffer]:
    """What a statement itself uses on the chip; of a view the buffer that it shows."""
    found = (b.root for b in buffers(stmt))
    return [b for b in found if b.memory == "ub" or b.memory in CUBE]


def _count(body: list[Stmt]) -> dict[int, int]:
    """How often each buffer is used, by number."""
    counts: dict[int, int] = {}
    for stmt in statements(body):
        for buffer in () if isinstance(stmt, Alloc) else _on_chip(stmt):
            counts[buffer.number] = counts.get(buffer.number, 0) + 1
    return counts


class _Rounds(Copier):
    """Replaces one loop. ``uses``: how often the program uses each buffer; ``made``: what has versions now."""

    def __init__(self, loop: For, uses: Mapping[int, int]) -> None:
        super().__init__()
        self.loop, self.uses = loop, uses
        self.made: dict[int, Buffer] = {}
        self.rounds = self._rounds(loop)

    def on_For(self, stmt: For) -> list[Stmt]:
        return [self.rounds] if stmt is self.loop else [self.copy(stmt)]

    def on_Alloc(self, stmt: Alloc) -> list[Stmt]:
        return [Alloc(self.made.get(stmt.buffer.number, stmt.buffer), site=stmt.site)]

    def _rounds(self, loop: For) -> Stmt:
        stages = int(loop.notes["num_stages"])
        if stages > 1 and not isinstance(loop.extent, int):
            text = "the number of turns is not constant: the compiler multiplies it by the stages"
            raise SimulatorError(text, loop.site)
        parts = _parts(loop.body)
        crossing, inside = _crossing(parts), _count(loop.body)
        local = [b for b in crossing if inside[b.number] == self.uses[b.number]]
        _reject_elements(parts, {b.number for b in crossing}, {b.number for b in local} if stages > 1 else set())
        handed = [b.root for part in parts for s in statements(part) for b in buffers(s) if _is_workspace(b.root)]
        for one in dict.fromkeys((*local, *handed)):
            self.made[one.number] = Buffer(one.name, (stages, *one.shape), one.dtype, one.memory, line=one.line)
        outer = Var(f"{loop.var.name}_outer")
        found = [s for s in statements(loop.body) if isinstance(s, Alloc)]
        made: list[Stmt] = [Alloc(self.made.get(s.buffer.number, s.buffer), site=s.site) for s in found]
        for part in parts:
            turn = Var(f"{loop.var.name}_stage")
            now = binary("+", loop.start, binary("+", binary("*", outer, stages), turn))
            made.append(For(turn, 0, stages, _Versions(self.made, turn, now, loop.var).block(part), site=loop.site))
        extent = loop.extent // stages if isinstance(loop.extent, int) else loop.extent
        return For(outer, 0, extent, made, site=loop.site)


class _Versions(Copier):
    """A part of a turn: the number of the turn, and the version of each buffer that belongs to it."""

    def __init__(self, made: Mapping[int, Buffer], turn: Var, now: Value, var: Var) -> None:
        super().__init__(values={var: now})
        self.made, self.turn = made, turn

    def on_Alloc(self, stmt: Alloc) -> list[Stmt]:
        return []

    def on_Store(self, stmt: Store) -> list[Stmt]:
        indices, value = tuple(self.value(i) for i in stmt.indices), self.value(stmt.value)
        place = self.load(Load(stmt.buffer, indices))
        return [replace(stmt, buffer=place.buffer, indices=place.indices, value=value)]

    def value(self, value: Any) -> Any:
        value = super().value(value)
        if not isinstance(value, Region) or value.buffer.root.number not in self.made:
            return value
        if value.buffer.alias is not None:
            return Region(*self._flat(value.buffer, value.starts), value.extents, value.kept)
        held = self.made[value.buffer.number]
        return Region(held, (self.turn, *value.starts), (1, *value.extents), (False, *value.kept))

    def load(self, load: Load) -> Any:
        if load.buffer.root.number not in self.made:
            return super().load(load)
        if load.buffer.alias is not None:
            return Load(*self._flat(load.buffer, load.indices))
        return Load(self.made[load.buffer.number], (self.turn, *load.indices))

    def _flat(self, view: Buffer, starts: tuple[Value, ...]) -> tuple[Buffer, tuple[Value, ...]]:
        """A view in one dimension, of all versions, and the place in it."""
        if view.ndim != 1:
            raise SimulatorError(f"a view of {view.name}, which has versions for the stages of a loop, is not modelled")
        size, held = view.shape[0], self.made[view.root.number]
        flat = Buffer(view.name, (binary("*", size, held.shape[0]),), view.dtype, view.memory, alias=held)
        return flat, (binary("+", starts[0], binary("*", self.turn, size)),)


def _parts(body: list[Stmt]) -> list[list[Stmt]]:
    """The statements of a turn, one core's after the other's; named whole numbers are written out, as Simplify does
    (``CanInlineLet``)."""
    parts: list[list[Stmt]] = []
    last, names = "", Copier(values={})
    known: dict[Var, Any] = {}
    for stmt in body:
        if isinstance(stmt, Alloc):
            continue
        if isinstance(stmt, Let):
            value = names.value(stmt.value)
            if any(True for _ in loads(value)) or not dtypes.is_integer(dtype_of(value)):
                text = f"`{stmt.var.hint or stmt.var.name}` is not defined in the parts of a pipelined loop"
                raise SimulatorError(f"{text} over both cores (the compiler stops: Find undefined Variable)", stmt.site)
            known[stmt.var] = value
            names = Copier(values=known)
            continue
        if isinstance(stmt, If):
            text = "in a pipelined loop over both cores the compiler runs the statements of an `if` also outside of it"
            raise SimulatorError(text, stmt.site)
        cores = {"V" if b.memory == "ub" else "C" for s in statements([stmt]) for b in _on_chip(s)}
        if len(cores) != 1:
            text = "works on both cores" if cores else "is lost: it uses no tile"
            raise SimulatorError(f"a statement of a pipelined loop over both cores {text}", stmt.site)
        if cores != {last}:
            parts.append([])
        last = cores.pop()
        parts[-1] += names.stmt(stmt)
    return parts


def _crossing(parts: list[list[Stmt]]) -> list[Buffer]:
    """Buffers that several parts use, and one of them reads before it has written what it reads."""
    users: dict[Buffer, int] = {}
    exposed: set[Buffer] = set()
    for part in parts:
        for buffer in {b for s in statements(part) for b in _on_chip(s)}:
            users[buffer] = users.get(buffer, 0) + 1
        killed: set[Buffer] = set()
        for stmt in _steps(part):
            reads, writes = _effects(stmt)
            exposed |= {b for b, known in reads if not known or b not in killed}
            killed |= writes
    return [b for b, count in users.items() if count > 1 and b in exposed]


def _steps(body: list[Stmt]) -> Iterator[Stmt]:
    """Statements in order, a ``T.Parallel`` as one."""
    inside = {id(s) for one in statements(body) if isinstance(one, Parallel) for s in statements(one.body)}
    return (s for s in statements(body) if id(s) not in inside)


def _effects(stmt: Stmt) -> tuple[list[tuple[Buffer, bool]], set[Buffer]]:
    """The buffers that a statement reads, and whether all of the place is known; those that it writes as a whole."""
    reads = [(load.buffer.root, False) for value in values(stmt) for load in loads(value)]
    writes: set[Buffer] = set()
    if isinstance(stmt, Parallel):
        stores = [s for s in statements(stmt.body) if isinstance(s, Store)]
        at_once = parallel_forms.form(stmt) == parallel_forms.VECTOR
        reads = [(load.buffer.root, at_once) for s in stores for load in loads(s.value)]
        writes = {s.buffer.root for s in stores if at_once and stmt.extents == s.buffer.shape}
    if isinstance(stmt, Op):
        known = OPERATORS.get(stmt.name)
        for name, value in stmt.args.items():
            param = known.param(name) if known is not None else None
            mask = "rw" if param is None else param.mask
            if isinstance(value, Region) and value.buffer.memory != "global":
                constant = not any(isinstance(x, Expr) for x in (*value.starts, *value.extents))
                if "r" in mask and not (name == "C" and stmt.args.get("init") is True):
                    reads.append((value.buffer.root, constant))
                if "w" in mask and value.extents == whole(value.buffer).extents:
                    writes.add(value.buffer.root)
    return reads, writes


def _reject_elements(parts: list[list[Stmt]], crossing: set[int], versions: set[int]) -> None:
    """``versions``: those of ``crossing`` with more than one version."""
    for stmt in (s for part in parts for s in _steps(part)):
        if isinstance(stmt, Parallel):
            if parallel_forms.form(stmt) == parallel_forms.ROWS:
                _reject(stmt, [b for s in stmt.body for b in _elements(s)], crossing)
            elif parallel_forms.form(stmt) == parallel_forms.SCALAR:
                _reject(stmt, [b for s in statements(stmt.body) for b in _on_chip(s)], versions)
        elif isinstance(stmt, Op) and stmt.name not in _BY_VERSION and stmt.name != "copy":
            _reject(stmt, _elements(stmt), versions)
        elif isinstance(stmt, Store):
            _reject(stmt, _on_chip(stmt), versions)


def _elements(stmt: Stmt) -> list[Buffer]:
    """Vectors of which a statement reads single elements."""
    return [load.buffer.root for value in values(stmt) for load in loads(value) if load.buffer.ndim == 1]


def _reject(stmt: Stmt, read: Sequence[Buffer], those: set[int]) -> None:
    for buffer in read:
        if buffer.number in those:
            text = f"elements of {buffer.name}, which several parts of a pipelined loop over both cores use: the "
            raise SimulatorError(text + "compiler reads them in the version of another turn", stmt.site)
