"""``T.Scope("C")`` and ``T.Scope("V")``, and frames that mean nothing to a simulator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tl2npu.simulator.errors import TraceError
from tl2npu.simulator.frontend.builder import Builder
from tl2npu.simulator.ir.stmt import Scope

_CORES = {"c": "C", "cube": "C", "aic": "C", "v": "V", "vec": "V", "vector": "V", "aiv": "V"}


@contextmanager
def scope_frame(core: str) -> Iterator[None]:
    """What ``T.Scope`` gives."""
    builder = Builder.current()
    if str(core).lower() not in _CORES:
        raise TraceError(f"T.Scope({core!r}): the cores are 'C' and 'V'", builder.here())
    scope = Scope(_CORES[str(core).lower()], [])
    builder.add(scope)
    builder.bodies.append(scope.body)
    yield
    builder.bodies.pop()


@contextmanager
def transparent() -> Iterator[None]:
    """A frame whose body is executed as if it were not there (``T.attr``, ``T.block_attr``)."""
    yield
