"""Turns the stores of a ``T.Parallel`` nest into statements that the Ascend vectoriser takes (facts 3).

A value is *legal* in a loop if it consists of sums, products and quotients of tiles with vectors and numbers on the
right, and of functions of single elements that have an instruction. Everything else is computed before, into the
destination where it is not read any more, else into a temporary tile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from tl2npu.kernel import element_types
from tl2npu.kernel.blocked import Blocked
from tl2npu.passes.gpu.elementwise import wholes
from tl2npu.passes.gpu.elementwise.body import Item, Put, When
from tl2npu.passes.gpu.elementwise.guarded import without_guarded_reads
from tl2npu.passes.gpu.elementwise.legality import Legality
from tl2npu.passes.gpu.elementwise.places import place_of
from tl2npu.passes.gpu.elementwise.steps import Under
from tl2npu.passes.gpu.elementwise.tree import Expr, Span, show, with_args
from tl2npu.passes.gpu.elementwise.work import place_of_tile

_NOTHING: frozenset[str] = frozenset()


class Lowering(Legality):
    """The work on one nest."""

    def lower(self, items: Iterable[Item]) -> None:
        """All items, in order."""
        for item in items:
            self.stmt = item.stmt
            if isinstance(item, When):
                self.when(item)
            else:
                self.put(item)
                self.temporaries.release()

    def when(self, item: When) -> None:
        """Stores under a condition without a loop variable."""
        before, parts = self.steps, []
        for branch in (item.then, item.orelse):
            self.steps = []
            self.lower(branch)
            parts.append(tuple(self.steps))
        self.steps = before
        self.codes.setdefault("TL147", item.stmt.node)
        self.steps.append(Under(show(item.condition), parts[0], parts[1], item.stmt))

    def put(self, item: Put) -> None:
        """One store."""
        self._bound = {}
        doubt = wholes.doubtful(item.value, self.approximate)
        if doubt is not None:
            self.doubts.append((self.stmt.node, show(doubt)))
        if item.target is None:
            self.local(item)
            return
        target = item.target
        self.stem = target.name
        if target.span in (Span.OTHER, Span.ROW, Span.COLUMN, Span.POINT):
            self.irregular(item, target)
            return
        place = place_of(target, self.nest)
        if self.reading.meets_others(item.value, target):
            whole = self.prepared(without_guarded_reads(self, item.value, None) or item.value, place.dtype)
            self.move(self.beside(whole, target), place, None)
            return
        value = without_guarded_reads(self, item.value, place)
        if value is not None:
            value = self.prepared(value, place.dtype)
            self.materialise(self.shared_casts(value), place, _NOTHING, item)

    def beside(self, value: Expr, target: Expr) -> Expr:
        """A value in a tile of its own, of the type of its destination."""
        tile = self.tile_place(self.take(target.dtype, target.name), target.dtype)
        self.materialise(self.shared_casts(value), tile, _NOTHING)
        return tile.load

    def shared_casts(self, value: Expr) -> Expr:
        """Elements that are converted to one type more than once are converted before."""
        times = Counter(_conversion(part) for part in value.walk())
        found: dict[tuple[str, str], Expr] = {}
        for part in value.walk():
            key, load = _conversion(part), _converted(part)
            if key is None or load is None or times[key] < 2 or key in found or not self.is_tile(load):
                continue
            tile = self.tile_place(self.take(part.dtype, load.name), part.dtype)
            self.materialise(part, tile, _NOTHING)
            found[key] = tile.load
        return _with_tiles(value, found) if found else value

    def local(self, item: Put) -> None:
        """A local name becomes a tile."""
        assert not self.nest.columns.extent.is_zero
        dtype = element_types.computed(item.value.dtype, item.value.dtype) or "float32"
        dtype = self.halves.local_type(item.value, dtype) if self.is_half(dtype) else dtype
        own = self.reading.only_here(item.local)
        name = self.temporaries.tile(self.nest.extents, dtype, item.local, keep=True, own=own)
        place = self.tile_place(name, dtype)
        self.note("TL147")
        value = without_guarded_reads(self, item.value, place)
        if value is not None:
            self.materialise(self.prepared(value, dtype), place, _NOTHING, None)
        self.reading.local[item.local] = replace(place.load, whole=wholes.is_whole(item.value))

    def irregular(self, item: Put, target: Expr) -> None:
        """A store to something else than ``x[i, j]``: computed in a tile, then stored element by element."""
        own = target.load is not None and any(load.buffer is target.load.buffer for load in target.load.loads)
        if own or not place_of_tile(target) or target.span is Span.POINT or target.axes != self.all_axes():
            why = f"this store to `{show(target)}` cannot be vectorised"
            if target.span is Span.POINT:
                why = f"every turn of the loop stores `{show(target)}`: write a reduction, such as `T.reduce_sum`"
            raise Blocked("TL151", self.stmt.node, why)
        value = self.prepared(without_guarded_reads(self, item.value, None) or item.value, target.dtype)
        plain = value.kind == "load" and value.dtype == target.dtype
        if not plain or self.reading.meets_others(value, target):
            value = self.beside(value, target)
        self.slow()
        self.one_by_one(f"{show(target)} = {show(value)}")


def _converted(value: Expr) -> Expr | None:
    """The element that is converted."""
    return value.args[0] if value.kind == "cast" and value.args[0].kind == "load" else None


def _conversion(value: Expr) -> tuple[str, str] | None:
    """The element that is converted, and to which type."""
    load = _converted(value)
    return None if load is None else (load.text, value.dtype)


def _with_tiles(value: Expr, tiles: dict[tuple[str, str], Expr]) -> Expr:
    key = _conversion(value)
    if key is not None and key in tiles:
        return tiles[key]
    return with_args(value, *(_with_tiles(arg, tiles) for arg in value.args)) if value.args else value
