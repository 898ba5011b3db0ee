"""How a launch may see tensors whose accesses fit no shape that the host shows."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from tl2npu.kernel.symbolic import product
from tl2npu.triton.host.binding import Binding

_MOST = 4
"""Axes that a tensor is likely to have."""


@dataclass
class Guesses:
    """``flat``: parameters that are taken as they lie in memory; ``ranks``: by names of the host, ranks in the place of
    those that the axes show that it asks for; 0 for none."""

    flat: frozenset[str] = frozenset()
    ranks: dict[str, int] = field(default_factory=dict)
    _left: dict[str, list[tuple[str, int, bool]]] = field(default_factory=dict)
    last: str = ""

    def doubtful(self, binding: Binding) -> str:
        """A tensor of a guessed rank, of which the kernel has a view whose last axis is not that of the shape, nor the
        last ones together."""
        views, tensors = binding.spec.views, binding.spec.tensors
        for param, view in views.items():
            shape = tensors[param].shape if self._left.get(param, True) and _guessed(binding, param)[0] else None
            if shape and view[-1] not in [product(shape[-n:]) for n in range(1, max(len(shape), 2))]:
                return param
        return ""

    def another(self, binding: Binding | None, param: str, doubted: bool = False) -> bool:
        """See a tensor otherwise; False where no way is left. ``last``: which was seen otherwise last; ``doubted``: it
        is no more than doubtful.

        Behind the last axis whose stride the host passes there may be one whose step is 1.
        """
        if binding is None or not param or (param in self.flat and param not in self._left):
            return False
        if param not in self._left:
            name, rank = _guessed(binding, param)
            last = f"{binding.tensors[param].text}.stride({rank - 1})" if rank else ""
            more = rank < _MOST and last in ast.unparse(binding.site.stmt)
            ways = [(name, rank + 1, False)] * more + [(name, 0, False)] * doubted
            ways += [(name, 0, True), (name, rank, True)]
            self._left[param] = ways if rank else [(name, 0, True)]
        if not self._left[param]:
            return False
        name, rank, flat = self._left[param].pop(0)
        self.last = param
        self.ranks |= {name: rank} if name else {}
        self.flat |= {param} if flat else set()
        return True


def _guessed(binding: Binding, param: str) -> tuple[str, int]:
    """The name of the host by whose uses the rank of a tensor is guessed, and the rank; none for others."""
    tensor, host = binding.tensors.get(param), binding.site.scope
    if tensor is None or not tensor.guessed or tensor.shape is None or binding.site.function is None:
        return "", 0
    stars = (ast.unparse(node.value) for node in ast.walk(binding.site.stmt) if isinstance(node, ast.Starred))
    known = (host.ranks.guessed.keys() | host.given.guessed.keys()) - {text.partition(".")[0] for text in stars}
    name = next((name for name in (tensor.text, tensor.kin) if name in known), "")
    return (name, len(tensor.shape)) if name else ("", 0)
