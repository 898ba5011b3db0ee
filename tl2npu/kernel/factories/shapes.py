"""Tensors of host code, as far as sizes go: what ``torch.randn(M, N)`` makes, and what ``x.shape`` says of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

_OF_SIZES = frozenset("empty zeros ones rand randn".split())
_LIKE = frozenset(f"{name}_like" for name in ("empty", "zeros", "ones", "rand", "randn", "full", "randint"))
_SAME = frozenset(
    "contiguous cuda npu cpu to half float bfloat16 double int long clone detach requires_grad_ type "
    "normal_ uniform_ fill_ zero_ random_ abs exp sigmoid tanh neg".split()
)
"""Methods that give a tensor of the same shape."""


@dataclass(frozen=True)
class Shaped:
    """A tensor; a size that is not known is no integer."""

    shape: tuple[object, ...]

    def asked(self, method: str, args: Sequence[object]) -> object | None:
        """What a method gives; None for one that is not followed."""
        if method in _SAME:
            return self
        if method == "size" and not args:
            return self.shape
        if method == "size" and isinstance(args[0], int) and -len(self.shape) <= args[0] < len(self.shape):
            found = self.shape[args[0]]
            return found if isinstance(found, int) else None
        if method in ("dim", "ndimension"):
            return len(self.shape)
        if method in ("numel", "nelement"):
            count = 1
            for size in self.shape:
                if not isinstance(size, int):
                    return None
                count *= size
            return count
        return None


FOLLOWED = "torch --"
"""Among what is known: sizes of tensors are. Most of what asks for sizes asks what the author wrote as one; the tensors
of a test are examples."""

Maker = Callable[[Sequence[object], Mapping[str, object]], "Shaped | None"]


def maker(name: str) -> Maker | None:
    """What makes a tensor of a call of ``torch.randn`` or its like; None for another function."""
    module, _, function = name.rpartition(".")
    if module != "torch":
        return None
    if function in _OF_SIZES:
        return _of_sizes
    if function in _LIKE:
        return _like
    return {"full": _full, "randint": _randint}.get(function)


def _of_sizes(args: Sequence[object], words: Mapping[str, object]) -> Shaped | None:
    sizes = words.get("size", args[0] if len(args) == 1 and isinstance(args[0], tuple) else tuple(args))
    return Shaped(sizes) if isinstance(sizes, tuple) else None


def _like(args: Sequence[object], words: Mapping[str, object]) -> Shaped | None:
    other = args[0] if args else words.get("input")
    return other if isinstance(other, Shaped) else None


def _full(args: Sequence[object], words: Mapping[str, object]) -> Shaped | None:
    sizes = words.get("size", args[0] if args else None)
    return Shaped(sizes) if isinstance(sizes, tuple) else None


def _randint(args: Sequence[object], words: Mapping[str, object]) -> Shaped | None:
    sizes = words.get("size", next((arg for arg in args if isinstance(arg, tuple)), None))
    return Shaped(sizes) if isinstance(sizes, tuple) else None
