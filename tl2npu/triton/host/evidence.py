"""What the calls of a file show of the parameters of its functions."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Evidence:
    """What calls of a function show of its parameters: rank and element type."""

    passed: set[tuple[str, str]] = field(default_factory=set)
    tensors: dict[tuple[str, str], list[tuple[int, str | None]]] = field(default_factory=dict)

    def of(self, function: str, param: str) -> tuple[int | None, set[str]]:
        """The rank, if all agree, and the element types."""
        found = self.tensors.get((function, param), [])
        ranks = {rank for rank, _ in found}
        return next(iter(ranks)) if len(ranks) == 1 else None, {dtype for _, dtype in found if dtype}
