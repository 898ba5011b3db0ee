"""What host code computes with: tensors with symbolic shapes, integers, and what is not known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tl2npu.kernel.symbolic import Sym, product, var

Shape = tuple[Sym, ...]


@dataclass(frozen=True)
class Tensor:
    """A tensor. ``text`` names it; ``fresh``: the host code shows that it is contiguous; ``guessed``: its rank is not
    certain; ``test``: the condition that decides whether it is None; ``gradient``: it may have any layout; ``of``: the
    variable that holds the same tensor; ``described``: it is a ``TensorDescriptor`` of that, under a condition or not;
    ``turned``: the order of its axes is not that of its memory; ``kin``: the name of the one whose element type it has.
    """

    text: str
    shape: Shape | None
    dtype: str | None
    fresh: bool = False
    guessed: bool = False
    test: str = ""
    gradient: bool = False
    of: str = ""
    described: Literal["", "sometimes", "always"] = ""
    turned: bool = False
    kin: str = ""

    @property
    def elements(self) -> Sym | None:
        """How many elements it has; None where its rank is not certain."""
        return product(self.shape) if self.shape is not None and not self.guessed else None


@dataclass(frozen=True)
class Int:
    """An integer."""

    value: Sym


@dataclass(frozen=True)
class Unknown:
    """A value of which only the text is known; ``number`` where it is a float for certain; ``test``: the condition
    that decides between two values."""

    text: str
    number: bool = False
    test: str = ""


@dataclass(frozen=True)
class Instance:
    """An object of a class of the file; ``of``: the class."""

    text: str
    of: str


@dataclass(frozen=True)
class Meta:
    """The dictionary of constexpr arguments that Triton passes to a grid function."""


@dataclass(frozen=True)
class Lambda:
    """A function of the host code: its parameters and its body."""

    params: tuple[str, ...]
    node: object


@dataclass(frozen=True)
class Dict:
    """A dictionary with known keys."""

    items: tuple[tuple[str, HostValue], ...]


HostValue = (
    Tensor | Int | Unknown | Instance | Meta | Lambda | Dict | float | bool | str | None | tuple["HostValue", ...]
)


def optional(one: HostValue, other: HostValue, text: str, test: str) -> Tensor | None:
    """A value that is a tensor or None, as a condition decides; None for other values."""
    tensors = [value for value in (one, other) if isinstance(value, Tensor)]
    if len(tensors) != 1 or (one is not None and other is not None):
        return None
    return Tensor(text, tensors[0].shape, tensors[0].dtype, tensors[0].fresh, test=test)


def one_of(values: Sequence[HostValue]) -> HostValue:
    """What is known of a value that is one of several, as a function returns one or another."""
    first = values[0]
    if all(value == first for value in values):
        return first
    if all(isinstance(value, Int) for value in values):
        return Int(var("?"))
    tensors = [value for value in values if isinstance(value, Tensor)]
    types = {value.dtype for value in tensors}
    if len(tensors) < len(values) or any(value.test for value in tensors):
        return Unknown("")
    return Tensor("", None, types.pop() if len(types) == 1 else None)
