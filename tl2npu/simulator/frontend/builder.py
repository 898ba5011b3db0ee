"""Collects the statements of the prim_func that is being traced."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, ClassVar

from tl2npu.simulator.errors import TraceError
from tl2npu.simulator.frontend.reducers import contribution_of
from tl2npu.simulator.ir import buffer as buffers
from tl2npu.simulator.ir.buffer import Buffer, Region, index
from tl2npu.simulator.ir.expr import Expr, Load, Var, cast, plain
from tl2npu.simulator.ir.parts import walk
from tl2npu.simulator.ir.stmt import Alloc, Kernel, Launch, Let, Op, Site, Stmt, Store


class OnlyNpuir(TraceError):
    """A name that only the npuir language has, in a kernel whose compilation does not state its target."""


STATED: ContextVar[str | None] = ContextVar("target", default=None)
"""The target of the compilation around the functions that are traced; None where it states none."""


@contextmanager
def stated(target: Any) -> Iterator[None]:
    """Functions traced inside are compiled for a target; None and ``"auto"`` state none."""
    token = STATED.set(None if target is None or str(target) == "auto" else str(target))
    try:
        yield
    finally:
        STATED.reset(token)


class StopTracing(Exception):
    """Ends the tracing of a function early (eager style: all declarations have been seen)."""


@dataclass(eq=False)
class OpCall:
    """A call of an operator that is not yet a statement: it becomes one where it stands as an expression statement."""

    name: str
    args: dict[str, Any]
    site: Site
    emitted: bool = False


@dataclass(eq=False)
class Builder:
    """One prim_func while it is traced."""

    kernel: Kernel
    files: set[str] = field(default_factory=set)
    bodies: list[list[Stmt]] = field(default_factory=lambda: [[]])
    launch: Launch | None = None
    open: list[str] = field(default_factory=list)
    """What is open in the function that is traced: ``loop`` and ``branch`` of the program, ``python`` for a loop that
    Python itself turns."""
    npuir: bool = False
    """The kernel is one of the npuir language."""
    npu: bool = True
    """Whose rules for names hold: the Ascend front end's, or the GPU's."""
    lanes: list[tuple[Var, Any]] = field(default_factory=list)
    """The loop variables of the open ``T.Parallel``s, each with its extent."""
    calls: list[OpCall] = field(default_factory=list)
    frames: list[str] = field(default_factory=list)
    """The pipes of the open ``T.rs`` frames (npuir)."""
    constants: dict[str, int] = field(default_factory=dict)
    """Values of ``T.const`` (eager style)."""
    unsolved: set[str] = field(default_factory=set)
    """Names of ``T.const`` extents that had no value when they were asked for."""
    names: dict[str, int] = field(default_factory=dict)
    outside: list[Alloc] = field(default_factory=list)
    """Tiles of the vector cores that were allocated in front of the launch."""
    on_launch: Callable[[], None] | None = None
    """Called when a launch begins."""
    lets: dict[Var, Expr] = field(default_factory=dict)
    """What a named value was; a name for an element may be meant as the start of a region, as in the compiler."""

    _open: ClassVar[list[Builder]] = []

    @classmethod
    def current(cls) -> Builder:
        """The prim_func that is being traced. Raises TraceError outside of one."""
        if not cls._open:
            raise TraceError("this is possible only inside a prim_func")
        return cls._open[-1]

    @classmethod
    def active(cls) -> bool:
        """True while a prim_func is traced."""
        return bool(cls._open)

    @contextmanager
    def tracing(self) -> Iterator[None]:
        """Makes this the current builder."""
        Builder._open.append(self)
        try:
            yield
        finally:
            Builder._open.pop()

    @property
    def body(self) -> list[Stmt]:
        """The statement list that grows."""
        return self.bodies[-1]

    @contextmanager
    def inside(self, body: list[Stmt]) -> Iterator[None]:
        """Statements go into ``body``."""
        self.bodies.append(body)
        try:
            yield
        finally:
            self.bodies.pop()

    def here(self) -> Site:
        """The line of the user's source that is being traced."""
        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename not in self.files:
            frame = frame.f_back  # type: ignore[assignment]
        return Site(frame.f_code.co_filename, frame.f_lineno) if frame is not None else Site("<kernel>", 0)

    def add(self, stmt: Stmt) -> None:
        """Append a statement at the current line."""
        if not stmt.site.line:
            stmt.site = self.here()
        if self.launch is None:
            if isinstance(stmt, Alloc) and stmt.buffer.memory in ("ub", *["shared"] * self.npu):
                self.outside.append(stmt)
                return
            raise TraceError("a statement of the kernel outside of `with T.Kernel(...)`", stmt.site)
        self.body.append(stmt)

    def store(self, buffer: Buffer, key: Any, value: Any) -> None:
        """``buffer[key] = value``; a slice on the left is a fill or a copy of a region."""
        target = index(buffer, key)
        if isinstance(target, Region):
            if isinstance(value, (Region, Buffer)):
                self.add(_statement("copy", {"src": value, "dst": target}))
            else:
                self.add(_statement("fill", {"buffer": target, "value": value}))
            return
        scalar = self.scalar(value, buffer.dtype)
        self.add(contribution_of(buffer, target.indices, scalar) or Store(buffer, target.indices, scalar))

    def scalar(self, value: Any, dtype: str | None = None) -> Any:
        """A number or expression, in ``dtype`` if that is given. Raises TraceError for anything else."""
        value = plain(value)
        if not isinstance(value, (Expr, int, float)):
            raise TraceError(f"{kind_of(value)} where a scalar value is needed", self.here())
        if dtype is None:
            return value
        return cast(dtype, value)

    def let(self, name: str, value: Expr) -> Expr:
        """Reads a value now and gives it a name. Before the launch nothing can be read: extents stay what they are."""
        value = plain(value)
        if self.launch is None:
            if any(isinstance(e, Load) for e in walk(value)):
                raise TraceError("an element of a tensor is read before T.Kernel", self.here())
            return value
        var = Var(self.unique(name), value.dtype)
        self.add(Let(var, value))
        self.lets[var] = value
        return var

    def unique(self, name: str) -> str:
        """A name not yet used for another variable of this kernel."""
        count = self.names.get(name, 0)
        self.names[name] = count + 1
        return name if not count else f"{name}_{count}"

    def finish(self) -> Kernel:
        """The kernel. Raises TraceError for operator calls that did not become statements."""
        for call in self.calls:
            if not call.emitted:
                raise TraceError(
                    f"T.{call.name} is called in a function that is neither a prim_func nor a T.macro, or its result "
                    "is not a statement: the compiler drops such a call",
                    call.site,
                )
        return self.kernel


def kind_of(value: Any) -> str:
    """What a value is, for a message."""
    if isinstance(value, Buffer):
        return f"the whole buffer {value.name}"
    if isinstance(value, Region):
        return f"a region of {value.buffer.name}"
    if isinstance(value, OpCall):
        return f"the result of T.{value.name}"
    return type(value).__name__


def _statement(name: str, args: dict[str, Any]) -> Stmt:
    return Op(name, args)


def _counts_from_the_end() -> bool:
    return not (Builder.active() and Builder.current().npu)


buffers.counts_from_the_end = _counts_from_the_end
