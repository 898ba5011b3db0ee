"""What the integers that a kernel is given stand for: places in tensors, or places of which some may be -1 for none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tl2npu.simulator.ir import dtypes
from tl2npu.simulator.ir.buffer import Buffer, Region
from tl2npu.simulator.ir.expr import Binary, Const, Load, Var
from tl2npu.simulator.ir.parts import walk
from tl2npu.simulator.ir.stmt import For, Kernel, Let, Op, Stmt, Store
from tl2npu.simulator.ir.stmt import walk as statements
from tl2npu.simulator.lowering.uses import values

_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
_BY_INDEX = ("gather", "scatter", "index", "sort")


class Meanings:
    """The integer parameters of a kernel by name.

    ``places``: elements are indices or bounds of loops. ``absent``: elements are compared with 0 or -1.
    """

    def __init__(self, kernel: Kernel) -> None:
        self._origins: dict[Any, set[str]] = {
            param.number: {param.name}
            for param in kernel.params
            if isinstance(param, Buffer) and not dtypes.is_float(param.dtype)
        }
        everything = [stmt for launch in kernel.launches for stmt in statements(launch.body)]
        for _ in range(2):  # once more for what a loop carries to its next turn
            for stmt in everything:
                self._hand_on(stmt)
        self.places = frozenset(name for stmt in everything for name in self._of(_places(stmt)))
        self.absent = frozenset(name for stmt in everything for name in self._of(_compared(stmt)))

    def _hand_on(self, stmt: Stmt) -> None:
        """The target of a statement gets what its sources may hold."""
        if isinstance(stmt, Let):
            self._origins.setdefault(stmt.var, set()).update(self._of([stmt.value]))
        elif isinstance(stmt, Store) and not dtypes.is_float(stmt.buffer.dtype):
            self._origins.setdefault(stmt.buffer.number, set()).update(self._of([stmt.value]))
        elif isinstance(stmt, Op) and isinstance(target := stmt.args.get("dst"), Region):
            self._origins.setdefault(target.buffer.number, set()).update(self._of(stmt.args.values()))

    def _of(self, parts: Iterable[Any]) -> set[str]:
        """The parameters whose elements are in expressions or regions."""
        found: set[str] = set()
        for part in parts:
            if isinstance(part, Region):
                found |= self._origins.get(part.buffer.number, set())
                continue
            for inner in walk(part):
                key = inner.buffer.number if isinstance(inner, Load) else inner if isinstance(inner, Var) else None
                found |= self._origins.get(key, set())
        return found


def _places(stmt: Stmt) -> Iterator[Any]:
    """What decides where a statement reads or writes, and how often a loop turns."""
    if isinstance(stmt, Store):
        yield from stmt.indices
    elif isinstance(stmt, For):
        yield from (stmt.start, stmt.extent)
    elif isinstance(stmt, Op):
        for value in stmt.args.values():
            for item in value if isinstance(value, tuple) else (value,):
                if isinstance(item, Region):
                    yield from (*item.starts, *item.extents)
                    if any(word in stmt.name for word in _BY_INDEX):
                        yield item
    for value in values(stmt):
        for part in walk(value):
            if isinstance(part, Load):
                yield from part.indices


def _compared(stmt: Stmt) -> Iterator[Any]:
    """What a statement compares with 0 or -1."""
    if isinstance(stmt, Op) and "compare" in stmt.name and any(map(_is_none, stmt.args.values())):
        yield from stmt.args.values()
    for value in values(stmt):
        for part in walk(value):
            if isinstance(part, Binary) and part.op in _COMPARISONS and (_is_none(part.left) or _is_none(part.right)):
                yield from (part.left, part.right)


def _is_none(value: Any) -> bool:
    value = value.value if isinstance(value, Const) else value
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value in (0, -1)
