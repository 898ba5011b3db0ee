"""Names that exist and mean nothing: of the real package, or of torch where that is not there."""

from __future__ import annotations

from typing import Any


class Inert:
    """A name that may be imported, called, entered, derived from and asked for more names, and gives no value."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, *args: Any, **_: Any) -> Any:
        if len(args) == 1 and callable(args[0]) and not isinstance(args[0], type):
            return args[0]  # a decorator
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(self)(f"{self.__name__}.{name}")

    def __mro_entries__(self, bases: Any) -> tuple[type, ...]:
        return (object,)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: Any) -> None:
        return None
