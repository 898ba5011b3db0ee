"""``T.Scope("C")`` and ``T.Scope("V")``, and frames that mean nothing to a simulator."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

from tl2npu.simulator.errors import TraceError
from tl2npu.simulator.frontend.builder import Builder
from tl2npu.simulator.ir.stmt import Scope

_CORES = {"c": "C", "cube": "C", "aic": "C", "v": "V", "vec": "V", "vector": "V", "aiv": "V"}


class ScopeFrame(AbstractContextManager[None]):
    """The context manager that ``T.Scope`` gives."""

    def __init__(self, core: str) -> None:
        if str(core).lower() not in _CORES:
            raise TraceError(f"T.Scope({core!r}): the cores are 'C' and 'V'", Builder.current().here())
        self.core = _CORES[str(core).lower()]

    def __enter__(self) -> None:
        builder = Builder.current()
        scope = Scope(self.core, [])
        builder.add(scope)
        builder.bodies.append(scope.body)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            Builder.current().bodies.pop()


class Transparent(AbstractContextManager[Any]):
    """A frame whose body is executed as if it were not there (``T.attr``, ``T.block_attr``)."""

    def __exit__(self, *_: Any) -> None:
        return None
