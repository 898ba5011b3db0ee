"""IKET, a profiler for CUDA whose events stand in kernels: they are recorded and change no result.

Source: tile-ai/tilelang a35008a4, ``docs/tools/iket.md``, ``tilelang/tools/cuda/iket/frontend.py``.
"""

from __future__ import annotations

MODULE = "tilelang.tools.cuda.iket"

EVENTS = frozenset(f"{MODULE}.{name}" for name in ("mark", "range_push", "range_pop", "range_start", "range_end"))
"""Calls that are statements: an event at this point."""

PAYLOAD = f"{MODULE}.payload"
"""The value that is recorded with an event; nothing else can be done with what it gives."""

RANGE = f"{MODULE}.range"
"""An item of a ``with``: events where its block begins and ends."""
