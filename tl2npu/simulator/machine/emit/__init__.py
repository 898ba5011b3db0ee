"""Turns the statements of one core into the source of a Python generator.

Loops and scalars become plain Python; a ``T.Parallel`` becomes array expressions with one axis per loop variable;
operators become calls of their meanings. The generator yields where a core has to wait.

``state`` holds names and lines, ``ranges`` what values integers can have, ``expressions`` the scalars and lanes,
``windows`` how memory is reached, ``operators`` the calls, ``statements`` loops and branches.
"""

from __future__ import annotations

from tl2npu.simulator.machine.emit.statements import Emitter

__all__ = ["Emitter"]
