"""What is checked: one kernel with its surroundings, and the questions that every check asks of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import libcst as cst

from tl2npu.codes import CODES
from tl2npu.dialects.catalogue import Kind
from tl2npu.dialects.compiler import COMPILERS, DEFAULT_COMPILER, Compiler
from tl2npu.kernel.access import side_of
from tl2npu.kernel.factories.callers import Caller, Values, callers_of
from tl2npu.kernel.factories.configs import COMBINE, Configs, read_configs
from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.kernel.factories.located import Located
from tl2npu.kernel.factories.positions import compilations
from tl2npu.kernel.model import (
    Branch,
    Buffer,
    Copy,
    Kernel,
    Loop,
    Memory,
    Op,
    Range,
    ScopeBlock,
    Side,
    Stmt,
    children,
    walk,
    walk_with_parents,
)
from tl2npu.kernel.runtime import Late
from tl2npu.kernel.symbolic import Sym
from tl2npu.results import Severity

if TYPE_CHECKING:
    from tl2npu.options import Options

DEFAULT_TARGET = "ascendc"
PTO = "pto"
MOST_VALUES = 16
"""So many of the known ways to call a factory are looked at everywhere; the capacity check looks at all."""


def some(values: Sequence[Values]) -> tuple[Values, ...]:
    """Of more than :data:`MOST_VALUES` some, evenly."""
    return tuple(values[:: -(-len(values) // MOST_VALUES)])


@dataclass(frozen=True, eq=False)
class Finding:
    """One thing that is wrong; ``severity`` None means the severity of the code.

    ``as_it_stands``: the severity in a kernel that is judged as somebody wrote it, where it differs.
    ``repair``: expressions with the text that should stand in their place, an unsafe edit; None removes an element.
    ``help``: what to do, where that depends on the cause; else the rule's. ``by``: the check that says so.
    ``lacks``: what an edit can give a kernel whose rows cannot be split.
    """

    code: str
    node: cst.CSTNode
    message: str
    severity: Severity | None = None
    repair: tuple[tuple[cst.CSTNode, str | None], ...] = ()
    as_it_stands: Severity | None = None
    help: str = ""
    by: Check | None = None
    lacks: Literal["", "axes", "even rows"] = ""

    @property
    def weight(self) -> Severity:
        """Its severity, or that of its code."""
        return self.severity or CODES[self.code].severity

    def advice(self, remedy: str) -> str:
        """The help of a diagnostic: its own or the rule's, and whether ``migrate`` can do it."""
        return (self.help or remedy) + ("; `tl2npu migrate --unsafe` writes the tiles that fit" if self.repair else "")


@dataclass(frozen=True, eq=False)
class Placed:
    """A statement with the statements around it, outermost first, and its number in text order."""

    stmt: Stmt
    parents: tuple[Stmt, ...]
    order: int

    @property
    def loops(self) -> tuple[Loop, ...]:
        """The enclosing loops, outermost first."""
        return tuple(p for p in self.parents if isinstance(p, Loop))

    @property
    def ranges(self) -> tuple[Range, ...]:
        """The loop variables in scope, outermost first; those of the statement itself if it is a loop."""
        around = (*self.loops, self.stmt) if isinstance(self.stmt, Loop) else self.loops
        return tuple(item for loop in around for item in loop.ranges)

    @property
    def conditions(self) -> tuple[tuple[Branch, bool], ...]:
        """The enclosing branches, each with True where the statement stands in its ``then`` arm."""
        chain = (*self.parents, self.stmt)
        return tuple((p, any(s is inner for s in p.then)) for p, inner in pairwise(chain) if isinstance(p, Branch))

    def range_of(self, sym: Sym) -> Range | None:
        """The loop whose plain variable the expression is."""
        return next((item for item in reversed(self.ranges) if item.var == sym), None)


@dataclass(eq=False)
class Subject:
    """One kernel under check. Everything else is derived on first use and kept.

    ``kept``: what checks worked out that others ask for too. ``arm``: the number of threads, if the launch takes one
    or two by its sizes (:attr:`arms`).
    """

    kernel: Kernel
    file: FileKernels
    located: Located
    options: Options
    kept: dict[object, object] = field(default_factory=dict)
    arm: int = 2

    @cached_property
    def statements(self) -> tuple[Placed, ...]:
        """Every statement in text order, outer before inner."""
        found = walk_with_parents(self.kernel.body)
        return tuple(Placed(stmt, parents, order) for order, (stmt, parents) in enumerate(found))

    def below(self, stmt: Stmt) -> tuple[Placed, ...]:
        """Every statement below one, in text order."""
        first = self._places[id(stmt)] + 1
        return self.statements[first : first + sum(1 for inner in children(stmt) for _ in walk(inner))]

    @cached_property
    def _places(self) -> dict[int, int]:
        return {id(placed.stmt): place for place, placed in enumerate(self.statements)}

    @cached_property
    def compiler(self) -> Compiler:
        """The compiler version that the kernel is for."""
        return COMPILERS.get(str(self.options.ascend_version), DEFAULT_COMPILER)

    @cached_property
    def configs(self) -> tuple[Configs, ...]:
        """The pass_configs of every compilation of the kernel in this file."""
        return tuple(read_configs(self.file, found) for found in compilations(self.located))

    def is_on(self, key: str) -> bool | None:
        """Whether a pass is on in every compilation; None where that cannot be read or nothing compiles the kernel."""
        found: list[bool | None] = []
        for config in self.configs:
            if key in config.values:
                found.append(config.values[key])
            else:
                found.append(None if config.unknown else key in self.compiler.default_pass_configs)
        if not found or any(value is None for value in found):
            return None if not any(value is False for value in found) else False
        return all(found)

    @cached_property
    def targets(self) -> tuple[str, ...]:
        """``ascendc`` or ``pto``: asked for, or what the kernel names; else both, the default first."""
        if self.options.backend.target in (DEFAULT_TARGET, PTO):
            return (str(self.options.backend.target),)
        named: set[str] = set()
        for found in compilations(self.located):
            node = found.kwargs.get("target")
            env = self.located.factory.env if self.located.factory else self.located.env
            value = self.located.evaluator.static(node, env) if node is not None else None
            if isinstance(value, str) and "pto" in value:
                return (PTO,)
            named.add(value if isinstance(value, str) else "")
        return (DEFAULT_TARGET,) if DEFAULT_TARGET in named else (DEFAULT_TARGET, PTO)

    @property
    def target(self) -> str:
        """``ascendc`` or ``pto``; the compiler's default where the kernel names none."""
        return self.targets[0]

    @cached_property
    def threads(self) -> int | None:
        """The number given as ``threads=``; None if none was given or it is no plain number."""
        return self.arm if self.even else self.kernel.launch.threads_value if self.kernel.launch else None

    @property
    def even(self) -> tuple[Sym, ...]:
        """The sizes that are even where the launch takes two threads and not one."""
        return self.kernel.launch.even if self.kernel.launch else ()

    @property
    def arms(self) -> tuple[Subject, ...]:
        """The kernel as it is judged: twice if its launch takes one thread or two, unless no call takes one.

        A kernel does not hold itself, or all that is known of it would stay until the next collection of garbage.
        """
        return (self,) if self._other_arm is None else (self, self._other_arm)

    @cached_property
    def _other_arm(self) -> Subject | None:
        if not self.even:
            return None
        other = replace(self, kept={}, arm=1)
        return other if any(map(other._takes_arm, other.every_caller)) else None

    def _takes_arm(self, caller: Caller) -> bool:
        """Whether a call may come to this number of threads."""
        return self.takes(caller.values)

    def takes(self, values: Values) -> bool:
        """Whether a launch with these sizes may take this number of threads."""
        odd = [size.evaluate(values) for size in self.even]
        if not odd:
            return True
        return not any(n is not None and n % 2 for n in odd) if self.arm == 2 else any(n is None or n % 2 for n in odd)

    @property
    def is_split(self) -> bool:
        """True if the compiler splits the tiles between the two vector cores."""
        return self.threads == 2

    @cached_property
    def sides(self) -> frozenset[Side]:
        """The cores that have work in the kernel."""
        found: set[Side] = set()
        for placed in self.statements:
            stmt = placed.stmt
            if children(stmt):
                continue
            side = side_of(stmt)
            if isinstance(stmt, Copy) and side is Side.BOTH:
                found |= {Side.CUBE, Side.VECTOR}
            elif side in (Side.CUBE, Side.VECTOR):
                found.add(side)
        return frozenset(found)

    @property
    def is_mixed(self) -> bool:
        """Both the cube core and the vector cores work."""
        return {Side.CUBE, Side.VECTOR} <= self.sides

    @cached_property
    def is_expert(self) -> bool:
        """Scopes or manual synchronisation, without the passes and the launch of Developer mode."""
        manual = any(
            isinstance(p.stmt, ScopeBlock) or (isinstance(p.stmt, Op) and p.stmt.op.kind is Kind.MMA)
            for p in self.statements
        )
        launch = self.kernel.launch
        return manual and (launch is None or launch.threads is None) and not self.is_on(COMBINE)

    # sizes -------------------------------------------------------------------------------------------------------

    @cached_property
    def values(self) -> tuple[Values, ...]:
        """What is known of the factory's integers: one mapping for each known way to call it, at least one.

        Of more than :data:`MOST_VALUES` some, evenly: TL740 says so.
        """
        return some(self.every_value)

    @cached_property
    def every_value(self) -> list[Values]:
        """The integers of each known way to call the factory that differs from the others."""
        found: list[Values] = []
        for caller in self.callers:
            if caller.values not in found:
                found.append(caller.values)
        return found

    @cached_property
    def shown_callers(self) -> tuple[Caller, ...]:
        """The callers, also with the sizes of tensors that the file makes; at least one."""
        every = callers_of(self.file, self.located, shapes=True)
        return tuple(caller for caller in every if not self.even or self._takes_arm(caller)) or (every[0].unknown,)

    @cached_property
    def shown(self) -> list[Values]:
        """The integers of each of these that differs from the others."""
        found = [caller.values for caller in self.shown_callers]
        return [values for number, values in enumerate(found) if values not in found[:number]]

    @cached_property
    def callers(self) -> tuple[Caller, ...]:
        """Every known way to call the factory that comes to these threads, those of an autotuner among them; at least
        one."""
        every = self.every_caller
        return tuple(caller for caller in every if not self.even or self._takes_arm(caller)) or (every[0].unknown,)

    @cached_property
    def every_caller(self) -> tuple[Caller, ...]:
        """Every known way to call the factory; at least one."""
        return callers_of(self.file, self.located, given=self.options.calls)

    @cached_property
    def late(self) -> Late:
        """What only has a value at run time: ``T.symbolic`` sizes and scalar parameters of the prim_func."""
        return Late.of(self.file, self.located, self.kernel)

    def numbers(self, sym: Sym) -> tuple[int | None, ...]:
        """The value of an expression for each known way to call the factory; None where it is not known."""
        if sym.constant is not None:
            return (sym.constant,)
        return tuple(sym.evaluate(known) for known in self.values)

    def together(self, *syms: Sym) -> tuple[tuple[int | None, ...], ...]:
        """The values of several expressions, for each known way to call the factory."""
        return tuple(tuple(sym.evaluate(known) for sym in syms) for known in self.values)

    def is_runtime(self, sym: Sym) -> bool:
        """True if the value changes from block to block or from call to call: no constant for the compiler."""
        return self.late.is_late(sym)

    def same(self, left: Sym, right: Sym) -> bool:
        """Proved equal, or equal for every known way to call the factory."""
        found = self.numbers(left - right)
        return left == right or all(value == 0 for value in found)

    def known_different(self, left: Sym, right: Sym) -> bool:
        """True if the two sizes certainly differ, at least for one known way to call the factory."""
        gap = left - right
        if gap.constant is not None:
            return gap.constant != 0
        found = self.numbers(gap)
        if any(value is not None for value in found):
            return any(value not in (None, 0) for value in found)
        return _never_zero(gap)

    def allocated(self, memory: Memory) -> Iterator[Buffer]:
        """The on-chip buffers of a memory."""
        return (b for b in self.kernel.buffers.values() if b.memory is memory and b.index < 0)


Check = Callable[[Subject], Iterator[Finding]]
"""A family of findings."""

_SAMPLES = (2, 16, 48, 64, 128, 320, 1024)


def _never_zero(gap: Sym) -> bool:
    """True if a difference of sizes in one single variable is nonzero for all sizes that occur in practice.

    Sizes in different variables may well be equal by the caller's choice; ``N // 2`` and ``N`` may not.
    """
    names = gap.variables()
    if len(names) != 1:
        return False
    (name,) = names
    return all(gap.evaluate({name: value}) not in (None, 0) for value in _SAMPLES)
