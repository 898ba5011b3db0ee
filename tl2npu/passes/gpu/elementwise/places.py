"""Where values are put: the tile that a statement stores to, and temporary tiles."""

from __future__ import annotations

import re
from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel import element_types
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Let, Memory, walk
from tl2npu.kernel.symbolic import Sym
from tl2npu.passes.gpu.elementwise.nest import Nest
from tl2npu.passes.gpu.elementwise.tree import Expr, Span, parsed
from tl2npu.passes.job import Job
from tl2npu.passes.writing.fold import put_numbers
from tl2npu.passes.writing.render import Unrenderable, render
from tl2npu.passes.writing.statements import Names, shape_text
from tl2npu.source.tree import argument, mentioned, names_in


@dataclass(frozen=True, eq=False)
class Place:
    """A tile, or the part of one that a loop runs over. ``region``: that part as ``T.copy`` takes it."""

    name: str
    dtype: str
    load: Expr
    whole: bool
    region: str
    on_chip: bool = True


def place_of(load: Expr, nest: Nest) -> Place:
    """The place that a loop stores to."""
    assert load.load is not None
    buffer = load.load.buffer
    whole = is_whole(load, nest)
    on_chip = buffer.memory is not Memory.GM
    region = buffer.name if whole else region_of(load, nest)
    name = code(load.load.node.value) if isinstance(load.load.node, cst.Subscript) else buffer.name
    return Place(name, load.dtype, load, whole, region, on_chip)


def is_whole(load: Expr, nest: Nest) -> bool:
    """True if the loop runs over every element of the buffer, in the buffer's own order."""
    if load.span is not Span.TILE or load.load is None or load.load.buffer.memory is Memory.GM:
        return False
    dims = load.load.dims or ()
    starts = [dim.lo.substitute(dict.fromkeys(_vars(nest), 0)) for dim in dims]
    return load.load.buffer.shape == nest.shape and all(start.is_zero for start in starts)


def _vars(nest: Nest) -> list[str]:
    return [axis.var for axis in (nest.rows, nest.columns) if axis is not None]


def _rendered(value: Sym, node: cst.CSTNode) -> str:
    try:
        return render(value)
    except Unrenderable:
        raise Blocked("TL153", node, f"cannot move `{code(node)}` out of the loop") from None


def _uses(node: cst.CSTNode, names: set[str]) -> bool:
    return any(name.value in names for name in names_in(node))


def region_of(load: Expr, nest: Nest) -> str:
    """The elements that a loop goes over as a region with slices: ``x[0:16, :]``, ``x[h, :]``."""
    assert load.load is not None
    assert isinstance(load.load.node, cst.Subscript)
    buffer = load.load.buffer
    parts: list[str] = []
    inside = {stmt.name for stmt in walk(nest.body) if isinstance(stmt, Let)}
    for position, dim in enumerate(load.load.dims or ()):
        axis = next((a for a in (nest.rows, nest.columns) if a is not None and dim.lo.depends_on(a.var)), None)
        if axis is None:
            parts.append(_rendered(dim.lo, dim.node) if _uses(dim.node, inside) else code(dim.node))
            continue
        start = dim.lo.substitute({axis.var: 0})
        if start.is_zero and position < len(buffer.shape) and buffer.shape[position] == axis.extent:
            parts.append(":")
            continue
        assert isinstance(dim.node, cst.BaseExpression)
        lower = code(put_numbers(dim.node, {axis.name: 0}))
        if _uses(dim.node, inside):
            lower = _rendered(start, dim.node)  # what the name stands for; the loop that binds it will be gone
        if lower == "0":
            parts.append(f"0:{axis.text}")
        else:
            ends = (lower, axis.text)
            upper = str(sum(map(int, ends))) if all(end.isdigit() for end in ends) else f"{lower} + {axis.text}"
            parts.append(f"{lower}:{upper}")
    return f"{code(load.load.node.value)}[{', '.join(parts)}]"


_SUFFIX = re.compile(r"(_tmp(_\d+)?)+$")
_Key = tuple[tuple[str, ...], str]


@dataclass(frozen=True)
class Mark:
    """A state of :class:`Temporaries`."""

    free: dict[_Key, list[str]]
    taken: list[tuple[_Key, str]]
    allocations: list[str]
    prelude: list[str]
    shared: dict[tuple[str, ...], str]


class Temporaries:
    """Temporary tiles of one kernel: allocated once for each shape and type that is needed at a time, used again."""

    def __init__(self, job: Job) -> None:
        self._names = Names(job)
        self._job = job
        self.tight = job.ways.tight
        self.only_integer_indices = job.options.device == "A5"
        self._free: dict[tuple[tuple[str, ...], str], list[str]] = {}
        self._taken: list[tuple[tuple[tuple[str, ...], str], str]] = []
        self._own: set[str] = set()
        self.allocations: list[str] = []
        self.prelude: list[str] = []
        self.shared: dict[tuple[str, ...], str] = {}

    def fresh(self, *wishes: str) -> str:
        """A new name."""
        return self._names.fresh(*wishes)

    def knows(self, text: str) -> bool:
        """Whether the prelude may use a text: no statement of the kernel binds one of its names."""
        bound = {stmt.name for stmt in self._job.kernel.walk() if isinstance(stmt, Let)}
        return bound.isdisjoint(mentioned(parsed(text)))

    def variables(self) -> list[str]:
        """The variables of a loop over rows and columns in the prelude."""
        return self._names.variables(("i", "row"), ("j", "column"), inside=[self._job.kernel.launched.node.body])

    def tile(
        self,
        extents: tuple[str, ...],
        dtype: str,
        wish: str,
        *,
        keep: bool = False,
        own: bool = False,
        bare: bool = False,
    ) -> str:
        """The name of a tile that is free until :meth:`release`; with ``keep``: for good.

        ``own``: it may have the name that is wished for though the source has it; ``bare``: it is called just so, or
        ``<wish>_bits``.
        """
        key = (extents, dtype)
        free = self._free.get(key, [])
        if free and not keep:
            name = free.pop(0)
        else:
            if own and wish not in self._own:
                name = wish
                self._own.add(wish)
            else:
                wishes = (wish, f"{wish}_bits") if bare else (wish if keep else f"{_SUFFIX.sub('', wish)}_tmp",)
                name = self._names.fresh(*wishes)
            shape = shape_text(self._job.kernel, extents)
            self.allocations.append(f"{name} = T.alloc_shared({shape}, {self.dtype_text(dtype)})")
        if not keep:
            self._taken.append((key, name))
        return name

    def mark(self) -> Mark:
        """The state as it is now, for :meth:`back_to`."""
        free = {key: list(names) for key, names in self._free.items()}
        return Mark(free, list(self._taken), list(self.allocations), list(self.prelude), dict(self.shared))

    def back_to(self, mark: Mark) -> None:
        """Forget what was handed out since."""
        self._free, self._taken = mark.free, mark.taken
        self.allocations, self.prelude, self.shared = mark.allocations, mark.prelude, mark.shared

    def give_back(self, name: str) -> None:
        """A tile may be handed out again already."""
        for entry in self._taken:
            if entry[1] == name:
                self._taken.remove(entry)
                self._free.setdefault(entry[0], []).append(name)
                return

    def lends(self, name: str) -> bool:
        """Whether a tile is handed out until :meth:`release`."""
        return any(taken == name for _, taken in self._taken)

    def release(self) -> None:
        """All tiles that were handed out may be handed out again."""
        for key, name in self._taken:
            self._free.setdefault(key, []).append(name)
        self._taken.clear()

    def dtype_text(self, dtype: str) -> str:
        """How the kernel writes an element type."""
        if not element_types.is_known(dtype):
            return element_types.text_of(dtype)
        for buffer in self._job.kernel.buffers.values():
            if element_types.plain(buffer.dtype) == dtype:
                written = argument(buffer.node, "dtype", 1) if isinstance(buffer.node, cst.Call) else None
                if written is not None and not code(written).startswith(("T.", "tl.")):
                    return code(written)
        return f'"{dtype}"'
