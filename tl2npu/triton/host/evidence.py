"""What the calls of a file show of the parameters of its functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tl2npu.triton.host.torch_names import DTYPES
from tl2npu.triton.host.values import HostValue

_MOST = 8
"""How many combinations of element types are followed from a function into those that it calls."""


@dataclass(frozen=True)
class Call:
    """A call of a function: the parameters that get something else than None, and the integers that it shows.

    ``params``: all parameters; ``maybe``: those that get a tensor or None. ``numbers``: ``n`` or ``x.shape[0]``, as the
    function itself says it, -> number. ``objects``: parameters that get an instance of a class of the file. ``types``:
    ``x.dtype``, or a parameter that is an element type itself, -> the element type. ``texts``: strings.
    """

    given: frozenset[str]
    numbers: Mapping[str, int]
    objects: frozenset[str]
    params: frozenset[str] = frozenset()
    maybe: frozenset[str] = frozenset()
    types: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)

    def agrees(self, assumed: Mapping[str, bool]) -> bool:
        """False for a call of which ``x.dtype == torch.float16``, or its like, is known and otherwise than assumed."""
        for test, holds in assumed.items():
            left, _, right = test.partition(" == ")
            found = self.types.get(left)
            if found is not None and right in DTYPES and (DTYPES[right] == found) != holds:
                return False
        return True

    def none(self, test: str) -> bool | None:
        """Whether ``x is None`` holds for a parameter in this call; None for other conditions."""
        name, _, rest = test.partition(" is ")
        return name not in self.given if rest == "None" and name in self.params - self.maybe else None


@dataclass
class Evidence:
    """What calls show of the parameters of a function, which is known by its line: ranks, element types, ``calls``.

    ``passed``: parameters that a call passes at all, ``floats``: those that get a float; ``saved``: class of an
    autograd function -> what its ``forward`` saves; ``returned``: what that returns; ``results``: what each ``return``
    of other functions gives, by its line, where these are several values; ``made``: the element types of the one
    tensor that they return, ``?`` for one that is not known, empty for what is no tensor.
    """

    calls: dict[int, dict[tuple[object, ...], Call]] = field(default_factory=dict)

    passed: set[tuple[int, str]] = field(default_factory=set)
    floats: set[tuple[int, str]] = field(default_factory=set)
    gradients: set[tuple[int, str]] = field(default_factory=set)
    dtypes: dict[tuple[int, str], set[str | None]] = field(default_factory=dict)
    tensors: dict[tuple[int, str], list[tuple[int | None, str | None]]] = field(default_factory=dict)
    saved: dict[str, tuple[HostValue, ...]] = field(default_factory=dict)
    returned: dict[str, tuple[HostValue, ...]] = field(default_factory=dict)
    results: dict[int, dict[int, tuple[HostValue, ...]]] = field(default_factory=dict)
    made: dict[int, set[str]] = field(default_factory=dict)

    def both_ways(self, function: int, param: str) -> bool:
        """True where some calls give a parameter and others leave it None, or one that may do either."""
        calls = self.calls.get(function, {}).values()
        return len({param in call.given for call in calls}) == 2 or any(param in call.maybe for call in calls)

    def agreeing(self, function: int, assumed: Mapping[str, bool]) -> list[Call]:
        """The calls of a function for which conditions on element types hold as assumed."""
        return [call for call in self.calls.get(function, {}).values() if call.agrees(assumed)]

    def types(self, function: int) -> list[Mapping[str, str]]:
        """The element types that calls pass together, where they are not always the same."""
        found: list[Mapping[str, str]] = []
        for call in self.calls.get(function, {}).values():
            if call.types and call.types not in found:
                found.append(call.types)
        return found[:_MOST] if len(found) > 1 else []

    def text(self, function: int, param: str) -> str | None:
        """The string that every call passes for a parameter."""
        found = {call.texts.get(param) for call in self.calls.get(function, {}).values()}
        return next(iter(found)) if len(found) == 1 else None

    def dtype(self, function: int, param: str) -> str | None:
        """The element type that every call passes for a parameter."""
        found = self.dtypes.get((function, param), set())
        return next(iter(found)) if len(found) == 1 else None

    def of(self, function: int, param: str) -> tuple[int | None, set[str]]:
        """The rank, if all agree, and the element types."""
        found = self.tensors.get((function, param), [])
        ranks = {rank for rank, _ in found if rank is not None}
        return next(iter(ranks)) if len(ranks) == 1 else None, {dtype for _, dtype in found if dtype}
