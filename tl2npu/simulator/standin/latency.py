"""The time of a kernel that nobody measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Latency(float):
    """Milliseconds, or what was computed from them. It counts as a number, so that scripts go on; ``str``, ``format``
    and f-strings say that nothing was measured (``%`` and NumPy see the number)."""

    def __repr__(self) -> str:
        return "(not measured)"

    __str__ = __repr__

    def __format__(self, _: str) -> str:
        return repr(self)


def _computed(compute: Callable[..., Any]) -> Callable[..., Any]:
    def result(*operands: Any) -> Any:
        found = compute(*operands)
        return Latency(found) if isinstance(found, (int, float)) else found

    return result


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    for _method in (f"__{_name}__", f"__r{_name}__"):
        setattr(Latency, _method, _computed(getattr(float, _method)))
for _method in ("__neg__", "__pos__", "__abs__", "__round__"):
    setattr(Latency, _method, _computed(getattr(float, _method)))

UNMEASURED = Latency(1.0)
"""What benchmarks on the simulator give."""
