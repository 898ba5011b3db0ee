"""Flags and barriers of npuir's Expert mode: ``T.rs("PIPE_MTE2")`` frames and what stands in them.

A frame names the pipe whose side of a flag is meant: ``set_flag(other)`` is set by the frame's pipe for ``other``,
``wait_flag(other)`` makes the frame's pipe wait for ``other`` (tilelang/language/customize_npuir.py,
``ResourceSpecializeFrame``). ``sync_block_set`` and ``sync_block_wait`` are between the cube core and the vector cores
of a block.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tl2npu.dialects import pipes
from tl2npu.simulator.errors import TraceError
from tl2npu.simulator.frontend.builder import Builder, OpCall
from tl2npu.simulator.ir.expr import plain


@contextmanager
def pipe_frame(pipe: str) -> Iterator[None]:
    """What ``T.rs`` gives."""
    frames = Builder.current().frames
    frames.append(str(pipe).upper().removeprefix("PIPE_"))
    yield
    frames.pop()


def call(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[OpCall]:
    """A flag or barrier as the machine knows it; a barrier is a flag that is set and waited for."""
    builder = Builder.current()
    try:
        bound = _FORMS[name](*args, **kwargs)
    except TypeError as error:
        raise TraceError(f"T.{name}(): {error}", builder.here()) from None
    found = [OpCall(operator, arguments, builder.here()) for operator, arguments in bound]
    builder.calls += found
    return found


def _frame() -> str:
    builder = Builder.current()
    if not builder.frames:
        raise TraceError("this belongs into a `with T.rs(...)`", builder.here())
    return builder.frames[-1].lower()


def _pipe(other: Any) -> str:
    name = str(other).lower().removeprefix("pipe_")
    if not name.startswith("virtual_pipe_") and (text := pipes.unknown_npuir(str(other))):
        raise TraceError(text, Builder.current().here())
    return name


Ops = list[tuple[str, dict[str, Any]]]


def _set(other: Any, event_id: Any = 0) -> Ops:
    return [("set_flag", {"src": _frame(), "dst": _pipe(other), "eventId": plain(event_id)})]


def _wait(other: Any, event_id: Any = 0) -> Ops:
    return [("wait_flag", {"src": _pipe(other), "dst": _frame(), "eventId": plain(event_id)})]


def _barrier(pipe: Any) -> Ops:
    return [("pipe_barrier", {"pipe": _pipe(pipe)})]


def _block_set(id: Any, mode: int = 2) -> Ops:
    return [("set_cross_flag", {"pipe": _frame(), "flag": plain(id), "mode": mode})]


def _block_wait(id: Any) -> Ops:
    return [("wait_cross_flag", {"flag": plain(id), "pipe": _frame()})]


def _block_barrier(id: Any) -> Ops:
    """All cores of one kind (mode 0)."""
    return _block_set(id, 0) + _block_wait(id)


def _subblock_barrier(id: Any) -> Ops:
    """The vector cores of a block (mode 1)."""
    return _block_set(id, 1) + _block_wait(id)


_FORMS: dict[str, Any] = {
    "set_flag": _set,
    "wait_flag": _wait,
    "pipe_barrier": _barrier,
    "block_barrier": _block_barrier,
    "subblock_barrier": _subblock_barrier,
    "sync_block_set": _block_set,
    "sync_block_wait": _block_wait,
}
