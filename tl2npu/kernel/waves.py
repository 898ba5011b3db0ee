"""``T.Persistent(domain, wave_size, index)``: the tiles of a domain, one for each block in every wave."""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.expressions import Evaluator
from tl2npu.kernel.model import Loop
from tl2npu.kernel.symbolic import product
from tl2npu.source.tree import argument as given

_PLACES = {"wave_size": 1, "index": 2}


def argument(loop: Loop, name: str) -> cst.BaseExpression | None:
    """An argument behind the domain, given by place or by name."""
    return given(loop.call, name, _PLACES[name]) if loop.call is not None else None


def fills_every_wave(loop: Loop, evaluator: Evaluator) -> bool | None:
    """Whether no block is without a tile in the last wave; None if that cannot be told.

    Otherwise the frame leaves its last wave by ``loop_break()`` (``src/ir.cc``, ``PersistentFor``).
    """
    wave = argument(loop, "wave_size")
    if wave is None:
        return None
    return (product(item.extent for item in loop.ranges) % evaluator.sym(wave, loop.env)).is_zero
