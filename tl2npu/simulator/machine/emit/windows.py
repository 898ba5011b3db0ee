"""How lanes reach memory: rectangles as views where index expressions name one, index arrays elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tl2npu.simulator.ir.buffer import Buffer, Region
from tl2npu.simulator.ir.expr import Expr, Load, Var, binary
from tl2npu.simulator.ir.interval import interval
from tl2npu.simulator.ir.linear import linear
from tl2npu.simulator.machine.emit.expressions import Expressions
from tl2npu.simulator.machine.emit.state import tuple_code
from tl2npu.simulator.machine.layout import Layout


@dataclass(frozen=True)
class Window:
    """A rectangle of a buffer: code of starts and extents per axis, and how it lies in the lanes.

    ``inside``: it lies in the buffer, whatever the variables are; ``whole``: it is the buffer.
    """

    buffer: Buffer
    starts: tuple[str, ...]
    extents: tuple[str, ...]
    layout: Layout
    inside: bool
    whole: bool


class Windows(Expressions):
    """The code of accesses."""

    def element(self, e: Load) -> str:
        """One element for each lane."""
        window = self.window(e.buffer, e.indices)
        name, number = self.buffer(e.buffer), e.buffer.number
        if window is None:
            return f"X.gather({number}, {name}, {self.tuple(e.indices)}, {self.mask or 'None'}, {self.site})"
        if (self.mask or self.loose(window)) and not (self.direct and window.inside):
            return f"X.guarded({number}, {name}, {self.guard(window)}, {self.mask or 'True'}, {self.site})"
        return self.rectangle(window, "r")

    def put_lanes(self, buffer: Buffer, indices: tuple[Any, ...], value: str) -> None:
        """The statement that writes one element for each lane."""
        window = self.window(buffer, indices)
        name, number = self.buffer(buffer), buffer.number
        active = {axis for axis in self.lanes.values() if axis >= 0}
        if window is None or set(window.layout.kept) != active:
            index = self.tuple(indices)
            self.put(f"X.scatter({number}, {name}, {index}, {value}, {self.mask or 'None'}, {self.site})")
        elif self.mask or self.loose(window):
            where = f"{value}, {self.mask or 'True'}"
            self.put(f"X.put_guarded({number}, {name}, {self.guard(window)}, {where}, {self.site})")
        else:
            self.put(f"{self.rectangle(window, 'w')}[...] = {value}")

    def guard(self, window: Window) -> str:
        """A rectangle for an access under a mask, of which only the lanes that are on have to be inside."""
        layout = self.constant(window.layout)
        return f"{tuple_code(list(window.starts))}, {tuple_code(list(window.extents))}, {layout}"

    def loose(self, window: Window) -> bool:
        """True for a rectangle that may reach out of a tensor where the compiler guards every access: on a GPU."""
        return self.gpu and window.buffer.memory == "global" and not window.inside

    def rectangle(self, window: Window, kind: str) -> str:
        """A rectangle as a view with the axes of the lanes."""
        name, number = self.buffer(window.buffer), window.buffer.number
        arranged = window.layout.selection()
        dropped = [axis < 0 for axis in window.layout.axes]
        if self.direct and window.whole:
            return name + arranged
        if self.direct and window.inside:
            return f"{name}[{_slices(window.starts, window.extents, dropped)}]{arranged}"
        starts, extents = tuple_code(list(window.starts)), tuple_code(list(window.extents))
        code = f"X.view({number}, {name}, {starts}, {extents}, {kind!r}, {self.site})"
        if any(dropped):
            code += f"[{', '.join('0' if d else ':' for d in dropped)}]"
        return code + arranged

    def window(self, buffer: Buffer, indices: tuple[Any, ...]) -> Window | None:
        """The rectangle that index expressions name; None where they name none.

        Each axis moves with one loop variable by steps of 1, or not at all, and no two axes with the same one.
        """
        starts: list[str] = []
        extents: list[str] = []
        axes: list[int] = []
        inside = whole = buffer.number not in self.rebound
        for item, size in zip(indices, buffer.shape, strict=True):
            if not self.spans(item):
                starts.append(self.code(item))
                extents.append("1")
                axes.append(-1)
                whole = False
                inside = inside and self.inside(item, "1", size)
                continue
            terms, constant = linear(item)
            moving = [(f, a) for f, a in terms.values() if self.spans(a)]
            if len(moving) != 1 or moving[0][0] != 1 or not isinstance(moving[0][1], Var):
                return None
            var = moving[0][1]
            axis = self.lanes[var]
            if axis < 0 or axis in axes:
                return None
            start: Any = constant
            for factor, atom in terms.values():
                if atom is not var:
                    start = binary("+", start, binary("*", atom, factor))
            axes.append(axis)
            starts.append(self.code(start))
            extents.append(self.extents[var])
            whole = whole and starts[-1] == "0" and extents[-1] == str(size)
            inside = inside and self.inside(start, extents[-1], size)
        return Window(buffer, tuple(starts), tuple(extents), Layout(tuple(axes), self.rank), inside, whole)

    def inside(self, start: Any, extent: str, size: Any) -> bool:
        """True if ``extent`` elements from ``start`` on lie on an axis of ``size`` elements."""
        if not extent.isdecimal() or not isinstance(size, int):
            return False
        found = interval(start, self.ranges)
        return found is not None and found[0] >= 0 and found[1] + int(extent) <= size

    def view(self, value: Region | Load, kind: str) -> str:
        """A region as a view; a start index as everything from there on, flat."""
        buffer = value.buffer
        name = self.buffer(buffer)
        if isinstance(value, Load):
            return f"X.tail({buffer.number}, {name}, {self.tuple(value.indices)}, {kind!r}, {self.site})"
        dropped = [not k for k in value.kept] if any(value.kept) else [False] * len(value.kept)
        if is_whole(value):
            return name if self.direct else f"X.whole({buffer.number}, {name}, {kind!r}, {self.site})"
        starts, extents = [self.code(s) for s in value.starts], [self.code(e) for e in value.extents]
        if self.direct and self.contained(value):
            return f"{name}[{_slices(starts, extents, dropped)}]"
        code = f"X.view({buffer.number}, {name}, {tuple_code(starts)}, {tuple_code(extents)}, {kind!r}, {self.site})"
        if any(dropped):
            code += f"[{', '.join('0' if d else ':' for d in dropped)}]"
        return code

    def slices(self, region: Region) -> str:
        """The indices of a region that is inside of its buffer; axes of extent 1 are dropped."""
        starts, extents = [self.code(s) for s in region.starts], [self.code(e) for e in region.extents]
        return _slices(starts, extents, [extent == "1" for extent in extents])

    def contained(self, value: Region) -> bool:
        """True if a region lies in its buffer, whatever the variables are."""
        return value.buffer.number not in self.rebound and all(
            isinstance(extent, int) and extent >= 0 and self.inside(start, str(extent), size)
            for start, extent, size in zip(value.starts, value.extents, value.buffer.shape, strict=True)
        )


def is_whole(value: Region) -> bool:
    """True if a region is all of its buffer, as it is written."""
    return all(isinstance(s, int) and s == 0 for s in value.starts) and all(
        a is b or (not isinstance(a, Expr) and not isinstance(b, Expr) and a == b)
        for a, b in zip(value.extents, value.buffer.shape, strict=True)
    )


def _slices(starts: Sequence[str], extents: Sequence[str], dropped: Sequence[bool]) -> str:
    items = []
    for start, extent, single in zip(starts, extents, dropped, strict=True):
        if single:
            items.append(start)
        elif start.isdecimal() and extent.isdecimal():
            items.append(f"{start}:{int(start) + int(extent)}")
        else:
            items.append(f"{start}:{start} + {extent}")
    return ", ".join(items)
