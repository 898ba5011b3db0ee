"""What host code computes with: tensors with symbolic shapes, integers, and what is not known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tl2npu.kernel.symbolic import Sym, product

Shape = tuple[Sym, ...]


@dataclass(frozen=True)
class Tensor:
    """A tensor. ``text`` names it; ``fresh``: the host code shows that it is contiguous; ``guessed``: its rank is not
    certain; ``test``: the condition that decides whether it is None; ``gradient``: it may have any layout; ``of``: the
    variable that holds the same tensor; ``described``: it is a ``TensorDescriptor`` of that, under a condition or not;
    ``turned``: the order of its axes is not that of its memory.
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
