"""``T.tile.cast`` and the register that scales an int32 that becomes a float16.

The modes round as AscendC's ``Cast`` does: also where a float becomes a narrower float, and a float32 that stays one
becomes a whole number. Where ``CAST_NONE`` would lose something it rounds to nearest even. Integers saturate.
"""

from __future__ import annotations

from typing import Any

from tl2npu.dialects import element_types
from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.operators.registry import semantics
from tl2npu.simulator.operators.tiles import span

_MODES = {f"CAST_{mode.upper()}": mode for mode in "none rint floor ceil round trunc odd".split()}
DEQ_SCALE = "deq_scale"
"""The name of the register among a core's registers."""


def converted(A: Any, values: Any, source: str, target: str, name: str, registers: dict[str, Any]) -> Any:
    """Values as another element type, rounded as ``CAST_RINT`` and the like say.

    Raises SimulatorError for what the instruction has no form for.
    """
    modes = element_types.CASTS.get((source, target))
    if modes is None:
        raise SimulatorError(f"no instruction converts {source} to {target}")
    if name not in modes:
        has = " or ".join(sorted(modes))
        raise SimulatorError(f"a conversion of {source} to {target} with {name}: the instruction has {has}")
    mode = _MODES[name]
    if source == "int32" and target == "float16":
        if DEQ_SCALE not in registers:
            raise SimulatorError("a cast of int32 to float16 multiplies by what T.set_deq_scale set; nothing was set")
        wide = A.convert(values, "float32", "none")
        return A.convert(A.mul(wide, A.like(registers[DEQ_SCALE], wide)), target, mode)
    return A.convert(values, target, mode)


@semantics("tile.cast", reads="src", writes="dst", raw=True)
def cast(A: Any, dst: Any, src: Any, mode: str, count: Any) -> None:
    """The first ``count`` elements converted."""
    if mode not in _MODES:
        raise SimulatorError(f"T.tile.cast: no rounding mode {mode!r}; there are {', '.join(_MODES)}")
    values, target = span("cast", src, count, "r"), span("cast", dst, count, "w")
    target[...] = converted(A, values, src.dtype, dst.dtype, mode, dst.access.registers)


@semantics("set_deq_scale", registers=True)
def set_deq_scale(A: Any, scale: Any, registers: dict[str, Any]) -> None:
    """The factor of the casts from int32 to float16 that follow on this core."""
    registers[DEQ_SCALE] = scale
