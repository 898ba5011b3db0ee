"""One test for a property of many things: every one is looked at, and all that lack the property are named."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
from typing import TypeVar

Thing = TypeVar("Thing")


def each(
    things: Iterable[Thing], name: Callable[[Thing], object]
) -> Callable[[Callable[[Thing], None]], Callable[[], None]]:
    """Makes a test of all ``things`` out of a test of one."""
    listed = list(things)

    def decorate(test: Callable[[Thing], None]) -> Callable[[], None]:
        def all_of_them() -> None:
            assert listed, "there is nothing to test"
            failures = [text for thing in listed if (text := failure(test, thing, name(thing)))]
            assert not failures, f"{len(failures)} of {len(listed)}\n\n" + "\n\n".join(failures)

        all_of_them.__name__, all_of_them.__doc__ = test.__name__, test.__doc__
        return all_of_them

    return decorate


def failure(test: Callable[[Thing], None], thing: Thing, name: object) -> str:
    """What a test says against one thing, with the line of the test; nothing if it passes."""
    try:
        test(thing)
    except Exception as error:
        lines = [
            frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == test.__code__.co_filename
        ]
        return f"{name}, line {lines[-1].lineno}: {type(error).__name__}: {error}"
    return ""
