"""Scopes, events and barriers of the cores of a block, as ``al`` and ``tle.dsa.ascend`` spell them."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

import numpy as np
import triton.language as tl

from tl2npu.interpreter import places
from tl2npu.interpreter.cores import CUBE, EVENTS, VECTOR, VECTORS, Core, current
from tl2npu.interpreter.shim.values import fault, number, plain, tensor_of

MEANS = "tl2npu_means"
"""The attribute of what decides how a kernel has to be run; see ``concurrent``."""
SCOPE, HALF, TOGETHER = "scope", "half", "together"
_BARRIERS = ("all_cube", "all_vector", "all", "all_sub_vector")


def means(what: str) -> Callable[[Any], Any]:
    """Marks a name of the language."""

    def mark(target: Any) -> Any:
        setattr(target, MEANS, what)
        return target

    return mark


@means(SCOPE)
class scope:  # its name in the language
    """``with al.scope(core_mode="cube"):`` what cores of one kind do.

    Without ``core_mode`` (``vector_mode="simd"``, ``outline=True``) it is a vector function of its own, on whatever
    core is there. Raises KernelFault for another mode, and in a scope of the other kind.
    """

    def __init__(self, core_mode: Any = None, **_: Any) -> None:
        self.mode = plain(core_mode)
        if self.mode not in (None, CUBE, VECTOR):
            raise fault(f"al.scope: core_mode is {self.mode!r}, not 'cube' or 'vector'")

    @property
    def entered(self) -> bool:
        """Whether the running core runs the body."""
        cores = current()
        if self.mode is None:
            return True
        if cores is None or not cores.scoped:
            raise fault("al.scope is reached in a way that cannot be followed: call the function that has it by name")
        if cores.core.scope not in (None, self.mode):
            raise fault(f"a {self.mode} scope inside of a {cores.core.scope} scope")
        return bool(cores.core.kind == self.mode)

    def __enter__(self) -> None:
        cores = current()
        if self.mode is not None and cores is not None:
            self.before, cores.core.scope = cores.core.scope, self.mode

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        cores = current()
        if self.mode is not None and cores is not None:
            cores.core.scope = self.before


def _event(
    name: str, sender: Any, receiver: Any, event: Any, pipes: tuple[Any, Any]
) -> tuple[Any, Any, int, Core | None]:
    sender, receiver, event = plain(sender), plain(receiver), number(event)
    if {sender, receiver} != {CUBE, VECTOR}:
        raise fault(f"{name}({sender!r}, {receiver!r}, ...): an event goes from 'cube' to 'vector' or back")
    if not 0 <= event < EVENTS:
        raise fault(f"{name}: there is no event {event}, only 0 to {EVENTS - 1}")
    if (pipes[0] is None) != (pipes[1] is None):
        raise fault(f"{name}: the pipes of both sides are given, or none")
    cores = current()
    return sender, receiver, event, cores.core if cores is not None and cores.scoped else None


def sync_block_set(
    sender: Any, receiver: Any, event_id: Any, sender_pipe: Any = None, receiver_pipe: Any = None, **_: Any
) -> None:
    """Set an event for the cores of the other kind.

    Raises KernelFault in the scope of the receiver. Outside of scopes it is the sender's.
    """
    name = "sync_block_set"
    sender, receiver, event, core = _event(name, sender, receiver, event_id, (sender_pipe, receiver_pipe))
    if core is not None and core.scope not in (None, sender):
        raise fault(f"{name}: the {sender} side sets event {event}, and this is a {core.scope} scope")
    if core is not None and core.kind == sender:
        _cores().set(receiver, event, places.shown())


def sync_block_wait(
    sender: Any, receiver: Any, event_id: Any, sender_pipe: Any = None, receiver_pipe: Any = None, **_: Any
) -> None:
    """Wait for an event of the cores of the other kind, and take it. Raises KernelFault in the scope of the sender."""
    name = "sync_block_wait"
    sender, receiver, event, core = _event(name, sender, receiver, event_id, (sender_pipe, receiver_pipe))
    if core is not None and core.scope not in (None, receiver):
        raise fault(f"{name}: the {receiver} side waits for event {event}, and this is a {core.scope} scope")
    if core is not None and core.kind == receiver:
        _cores().wait(sender, event, places.shown())


@means(TOGETHER)
def sync_block_all(mode: Any, event_id: Any = 0, **_: Any) -> None:
    """A barrier of all cores of all blocks, or of the vector cores of one block."""
    mode, event = plain(mode), number(event_id)
    if mode not in _BARRIERS:
        raise fault(f"sync_block_all: the mode is {mode!r}, not one of {', '.join(_BARRIERS)}")
    if not 0 <= event < EVENTS:
        raise fault(f"sync_block_all: there is no event {event}, only 0 to {EVENTS - 1}")
    _cores().meet(mode, event, places.shown())


@means(HALF)
def sub_vec_id(**_: Any) -> Any:
    """The number of the vector core: 0 or 1, as an int64 scalar. On the cube core it is 0 and of no use."""
    cores = current()
    mine = cores.core.number if cores is not None and cores.core.kind == VECTOR else 0
    return tensor_of(np.asarray(mine, np.int64), tl.int64)


def sub_vec_num(**_: Any) -> int:
    """How many vector cores there are beside a cube core."""
    return VECTORS


def parallel(arg1: Any, arg2: Any = None, step: Any = 1, *, bind_sub_block: Any = False, **_: Any) -> range:
    """A range whose turns are independent. With ``bind_sub_block`` the vector cores share them."""
    start, stop = (0, arg1) if arg2 is None else (arg1, arg2)
    turns = range(number(start), number(stop), number(1 if step is None else step))
    cores = current()
    if plain(bind_sub_block) and cores is not None and cores.core.kind == VECTOR:
        return turns[cores.core.number :: VECTORS]
    return turns


def nothing(*_: Any, **__: Any) -> None:
    """A hint to the compiler, or a barrier inside of one core: no value changes."""


def _cores() -> Any:
    cores = current()
    if cores is None:
        raise fault("a barrier is reached in a way that cannot be followed: call the function that has it by name")
    return cores
