"""What the simulator raises about a kernel."""

from __future__ import annotations

from tl2npu.simulator.ir.stmt import NOWHERE, Site


class SimulatorError(Exception):
    """A kernel cannot be run, or has done something that it must not do. ``site``: the line it is about."""

    def __init__(self, message: str, site: Site = NOWHERE) -> None:
        super().__init__(f"{site}: {message}" if site.line else message)
        self.plain = message
        self.site = site


class UnsupportedOperator(SimulatorError):
    """An operator that the simulator knows by name and has no meaning for."""


class TraceError(SimulatorError):
    """The Python of a kernel is not what a prim_func may be."""
