"""What an emitter knows while it goes through a program: names, lines, lanes, the mask."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tl2npu.simulator.ir import dtypes
from tl2npu.simulator.ir.buffer import Buffer
from tl2npu.simulator.ir.expr import Binary, Call, Expr, Var
from tl2npu.simulator.ir.parts import walk
from tl2npu.simulator.ir.stmt import Site, Stmt


@dataclass(eq=False)
class State:
    """One core's program. ``gpu`` chooses between operators of one name; ``arithmetic`` computes floats.

    ``direct``: nobody watches, so accesses that are provably inside of their buffer become plain indexing; all others
    stay checked. ``ranges``: the least and the largest value of integer variables, where they are known.
    """

    gpu: bool
    arithmetic: Any
    sites: list[Site]
    direct: bool = False
    truncates: bool = False
    """``//`` and ``%`` of integers are those of C, which round towards zero."""
    ranges: dict[Var, tuple[int, int]] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    space: dict[str, Any] = field(default_factory=dict)
    names: dict[Var, str] = field(default_factory=dict)
    depth: int = 1
    lanes: dict[Var, int] = field(default_factory=dict)
    """Variables that are arrays: the axis of a loop variable, -1 for a named value that spans lanes."""
    extents: dict[Var, str] = field(default_factory=dict)
    """The code of the extent of a loop variable of a ``T.Parallel``."""
    rank: int = 0
    mask: str = ""
    """The code of the condition under which lanes are on; empty where all are."""
    loops: list[str | None] = field(default_factory=list)
    """For each open loop: the mask at its start; None for a ``T.Parallel``."""
    site: int = 0
    used: set[str] = field(default_factory=set)
    buffers: dict[int, Buffer] = field(default_factory=dict)
    borrowed: frozenset[int] = frozenset()
    """Tiles that stand for the part of a tensor that is copied to them."""
    written: frozenset[int] = frozenset()
    """Buffers that some core of the launch writes."""
    copied: Counter[int] = field(default_factory=Counter)
    """For each tile how many copies could lend it a part of a tensor instead."""
    moved: Counter[int] = field(default_factory=Counter)
    """For each tensor how many elements such copies move, as far as loops have constant lengths."""
    trips: int = 1
    watched: list[tuple[Stmt, bool, int]] | None = None
    """Where statements get their numbers if an observer is to be told of each; whether in a ``T.Parallel``; line."""
    in_blocks: bool = False
    """Whether an observer is told of accesses to UB that are no whole blocks of 32 bytes."""
    rebound: set[int] = field(default_factory=set)
    """Buffers whose array an operator replaces: nothing about their shape is known beforehand."""

    def define(self, var: Var) -> str:
        """A Python name for a variable."""
        base = "".join(c if c.isascii() and c.isalnum() else "_" for c in var.name) or "v"
        name = f"v_{base}"
        while name in self.used:
            name += "_"
        self.used.add(name)
        self.names[var] = name
        return name

    def fresh(self, base: str) -> str:
        """An unused Python name."""
        name = f"{base}{len(self.used)}_"
        self.used.add(name)
        return name

    def buffer(self, buffer: Buffer) -> str:
        """The Python name of a buffer's array."""
        self.buffers[buffer.number] = buffer
        return f"b{buffer.number}"

    def constant(self, value: Any) -> str:
        """A name for an object."""
        name = f"k{len(self.space)}"
        self.space[name] = value
        return name

    def put(self, text: str) -> None:
        """One line."""
        self.lines.append("    " * self.depth + text)

    def site_of(self, site: Site) -> int:
        """The number of a source line."""
        if site not in self.sites:
            self.sites.append(site)
        return self.sites.index(site)

    def spans(self, value: Any) -> bool:
        """True if a value differs between lanes."""
        return bool(self.lanes) and any(
            (isinstance(e, Var) and e in self.lanes) or (isinstance(e, Call) and e.name == "atomic")
            for e in walk(value)
        )

    def code(self, value: Any) -> str:
        """The Python code of an expression."""
        raise NotImplementedError

    def tuple(self, values: Any) -> str:
        """A tuple of scalar codes."""
        return tuple_code([self.code(v) for v in values])

    def snapshot(self, value: Any) -> str:
        """The code of a value that keeps what memory held now: an expression may be a view of a buffer."""
        code = self.code(value)
        fresh = isinstance(value, (Binary, Var)) or (isinstance(value, Call) and value.name == "if_then_else")
        return code if fresh or not self.spans(value) else f"np.array({code})"

    def truth(self, value: Any) -> str:
        """The code of a condition, Boolean for each lane."""
        if isinstance(value, Expr) and value.dtype != "bool" and self.spans(value):
            return self.nonzero(value.dtype, self.code(value))
        return self.snapshot(value)

    def nonzero(self, dtype: str, code: str) -> str:
        """The code that says which elements are not zero."""
        if dtypes.is_float(dtype):
            return f"np.logical_not(A.equal({code}, {self.constant(self.arithmetic.number(0, dtype))}))"
        return f"({code} != 0)"

    def both(self, condition: str) -> str:
        """A condition under the present mask."""
        return f"({self.mask} & {condition})" if self.mask else f"({condition})"


def tuple_code(codes: list[str]) -> str:
    """The code of a tuple."""
    return f"({', '.join(codes)}{',' if len(codes) == 1 else ''})"
