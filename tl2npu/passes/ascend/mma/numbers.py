"""Sizes in numbers, for every way in which the file calls the factory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tl2npu.devices import DEFAULT_DEVICE, DEVICES
from tl2npu.kernel.factories.callers import callers_of
from tl2npu.kernel.model import Buffer
from tl2npu.kernel.sizes import ITEM_SIZE
from tl2npu.kernel.symbolic import Sym, const
from tl2npu.passes.job import Job

_STEP = const(128)
"""``gemm_v0`` takes K in steps of 128, with two slots in L0A and L0B where there is more than one step."""


class Numbers:
    """What the callers of the factory give."""

    def __init__(self, job: Job) -> None:
        found = [(caller.values, caller.words) for caller in callers_of(job.file, job.located)]
        self._known: list[tuple[dict[str, int], Mapping[str, str]]] = found
        device = DEVICES.get(job.options.device, DEFAULT_DEVICE)
        self._limit = {"L0A": device.capacity.of("l0a"), "L0B": device.capacity.of("l0b")}

    def same(self, left: Sym, right: Sym) -> bool:
        """Proved equal, or equal for every known way to call the factory, of which there is one at least."""
        found = [(left - right).evaluate(values) for values, _ in self._known]
        return left == right or (bool(found) and all(value == 0 for value in found))

    def types(self, *tiles: Buffer) -> set[tuple[str | None, ...]]:
        """The element types of some tiles, together, in every known call; None for one that is not known."""
        found: set[tuple[str | None, ...]] = set()
        for _, words in self._known or [({}, {})]:
            names = [words.get(tile.dtype, tile.dtype) for tile in tiles]
            found.add(tuple(name if name in ITEM_SIZE else None for name in names))
        return found

    def fits(self, memory: str, width: Sym, depth: Sym, tile: Buffer, step: Sym = _STEP) -> bool | None:
        """Whether an operand of ``width`` x ``depth`` fits L0 inside of ``gemm_v0``; None where sizes are not known.

        Source: ``src/tl_templates/ascend/common.h``, ``gemm_v0``: a product of more than 128 in K (``step``) uses two
        slots of 128, and no size is checked.
        """
        limit = self._limit[memory]
        verdicts: list[bool | None] = []
        for values, words in self._known:
            rows, columns, at_once = width.evaluate(values), depth.evaluate(values), step.evaluate(values)
            size = ITEM_SIZE.get(words.get(tile.dtype, tile.dtype))
            if rows is None or columns is None or size is None or limit is None or not at_once:
                verdicts.append(None)
                continue
            need = rows * (columns if columns <= at_once else 2 * at_once) * size
            verdicts.append(need <= limit)
        return False if False in verdicts else None if None in verdicts or not verdicts else True

    def is_even(self, sym: Sym) -> bool:
        """Even for every value of its variables, or in every known call, of which there is one at least."""
        found = [sym.evaluate(values) for values, _ in self._known]
        return (sym % 2).is_zero or (bool(found) and all(value is not None and value % 2 == 0 for value in found))

    def wide_types(self, tile: Buffer, depth: Sym) -> bool:
        """True if elements that are not two bytes wide are, or may be, taken more than 128 deep."""
        for values, words in self._known:
            deep = depth.evaluate(values)
            if ITEM_SIZE.get(words.get(tile.dtype, tile.dtype), 2) != 2 and (deep is None or deep > 128):
                return True
        return False

    def shortage(self, memory: str, width: Sym, depth: Sym, tile: Buffer) -> str | None:
        """What the first known call that does not fit asks for, in words."""
        for values, words in self._known:
            rows, columns = width.evaluate(values), depth.evaluate(values)
            size, limit = ITEM_SIZE.get(words.get(tile.dtype, tile.dtype)), self._limit[memory]
            if rows is None or columns is None or size is None or limit is None:
                continue
            slices = f"{columns}" if columns <= 128 else "2 x 128"
            need = rows * (columns if columns <= 128 else 256) * size
            if need > limit:
                return f"`{tile.name}`: {rows} x {slices} of {size} bytes are {need}, {memory} holds {limit}"
        return None

    def at_least(self, sym: Sym, least: int) -> bool | None:
        """Whether a value is at least ``least`` in every known call; None where it is not known."""
        if sym.constant is not None:
            return sym.constant >= least
        found: Sequence[int | None] = [sym.evaluate(values) for values, _ in self._known]
        if any(value is not None and value < least for value in found):
            return False
        return None if not found or None in found else True
