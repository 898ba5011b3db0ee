"""Names of a kernel: where an assignment is seen, as the compilers have it.

The Ascend front end keeps a table of names with one frame for each loop, branch and function: what a name was before
comes back when the frame ends, and a name that was born in it is gone (tvm.script.parser, ``VarTable.with_frame``).
The GPU front end keeps Python's own variables, but a value that was computed in a loop or branch of the program may
not be used outside of it (tilelang/language/eager/builder.py, ``rval``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tl2npu.simulator.errors import TraceError
from tl2npu.simulator.ir.buffer import Buffer, Region, index
from tl2npu.simulator.ir.expr import Const, Expr, Load
from tl2npu.simulator.ir.stmt import NOWHERE

Reader = Callable[[], Any]
"""Gives the present value of a name; raises NameError if it has none."""

NOTHING = object()


class Gone:
    """What a name is after the loop or branch that gave it a value: any use is an error at the line of the use."""

    def __init__(self, name: str, place: str) -> None:
        object.__setattr__(self, "_said", f"{name} is used outside of the {place} in which it is assigned")

    def __getattribute__(self, name: str) -> Any:
        from tl2npu.simulator.frontend.builder import Builder

        said = object.__getattribute__(self, "_said")
        raise TraceError(
            f"{said}: the compiler does not carry the value out of it; use T.alloc_var, or assign it before",
            Builder.current().here() if Builder.active() else NOWHERE,
        )

    def _use(self, *_: Any) -> Any:
        return self.__class__

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __rfloordiv__ = _use
    __truediv__ = __rtruediv__ = __mod__ = __rmod__ = __and__ = __rand__ = __or__ = __ror__ = __neg__ = _use
    __lt__ = __le__ = __gt__ = __ge__ = __getitem__ = __setitem__ = __call__ = __bool__ = __iter__ = _use
    __len__ = __index__ = __int__ = __float__ = __enter__ = __str__ = __repr__ = __hash__ = _use

    def __eq__(self, other: object) -> Any:
        return self.__class__

    def __ne__(self, other: object) -> Any:
        return self.__class__


@dataclass(frozen=True, eq=False)
class Variable(Load):
    """A name made by ``T.alloc_var``: reading it reads the variable, assigning to it stores."""

    def __getitem__(self, key: Any) -> Load | Region:
        return index(self.buffer, self.within(key))

    def within(self, key: Any) -> tuple[Any, ...]:
        """The index into the buffer that ``variable[key]`` means: that of this iteration of a ``T.Parallel``."""
        return (*self.indices[:-1], *(key if isinstance(key, (tuple, list)) else (key,)))


def variable(buffer: Buffer, lanes: tuple[Any, ...] = ()) -> Variable:
    """The variable that a buffer in ``var`` memory is: one element, or one for each of the iterations ``lanes``."""
    return Variable(buffer, (*lanes, 0))


def previous(reader: Reader) -> Any:
    """What a name is, or ``NOTHING``."""
    try:
        found = reader()
    except NameError:
        return NOTHING
    return NOTHING if type(found) is Gone else found


@dataclass
class Frame:
    """The names that a loop or branch assigns, and what they were before it. ``traced``: it is part of the program."""

    names: tuple[str, ...]
    before: tuple[Any, ...]
    traced: bool = False

    def after(self, readers: tuple[Reader, ...], npu: bool, place: str) -> tuple[Any, ...]:
        """What the names are behind the end of an arm or loop.

        A loop that Python itself turns (over a list) is no loop of the language; its assignments stay.
        """
        if place == "loop" and not self.traced:
            return tuple(
                reader() if previous(reader) is not NOTHING else Gone(name, place)
                for name, reader in zip(self.names, readers, strict=True)
            )
        return tuple(
            self._one(name, old, previous(reader), npu, place)
            for name, old, reader in zip(self.names, self.before, readers, strict=True)
        )

    def _one(self, name: str, old: Any, new: Any, npu: bool, place: str) -> Any:
        if new is old and new is not NOTHING:
            return old
        if npu:
            return Gone(name, place) if old is NOTHING else old
        if new is NOTHING or (self.traced and isinstance(new, Expr) and not isinstance(new, (Const, Variable))):
            return Gone(name, place)
        return new


def frame(names: tuple[str, ...], readers: tuple[Reader, ...]) -> Frame:
    """Remember what names are."""
    return Frame(names, tuple(previous(reader) for reader in readers))
