"""Factories that are defined inside of another function: the call of that function makes them again."""

from __future__ import annotations

import dis
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any


@dataclass(frozen=True)
class Outer:
    """A call of a function of the module: its name, and its arguments by parameter name."""

    name: str
    arguments: dict[str, Any]


def outer_of(function: Callable[..., Any]) -> Outer | None:
    """The call that is defining ``function`` now, to be asked by its decorator.

    None for a function that is not defined directly in a function of the module, or in one that takes ``*args`` or
    binds a parameter again: what it was called with is not known by then.
    """
    code = getattr(function, "__code__", None)
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and code not in frame.f_code.co_consts:
        frame = frame.f_back
    if frame is None or function.__qualname__ != f"{frame.f_code.co_name}.<locals>.{function.__name__}":
        return None
    around = frame.f_code
    names = around.co_varnames[: around.co_argcount + around.co_kwonlyargcount]
    if around.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS) or _bound_again(around, names):
        return None
    return Outer(around.co_name, {name: frame.f_locals[name] for name in names})


def _bound_again(code: CodeType, names: tuple[str, ...]) -> bool:
    changes = ("STORE_FAST", "STORE_DEREF", "DELETE_FAST", "DELETE_DEREF")
    if any(i.opname.startswith(changes) and _names(i.argval, names) for i in dis.get_instructions(code)):
        return True
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return any(_bound_again(each, tuple(n for n in names if n in each.co_freevars)) for each in inner)


def _names(value: Any, names: tuple[str, ...]) -> bool:
    """``value``: what an instruction stores to; two names in one where Python 3.13 joins instructions."""
    return any(each in names for each in (value if isinstance(value, tuple) else (value,)))
