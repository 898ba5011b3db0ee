"""TL793: addresses of ``T.annotate_address`` that tiles cannot have together, or at all.

Nothing but memory planning looks at them, and that only at tiles that overlap (``ascend_memory_planning.cc:648``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import libcst as cst

from tl2npu.checks.operators.types import types_of
from tl2npu.checks.subject import Finding, Subject
from tl2npu.devices import DEFAULT_DEVICE, DEVICES
from tl2npu.kernel.access import accesses
from tl2npu.kernel.model import Buffer, Op, Scalar
from tl2npu.kernel.sizes import ITEM_SIZE
from tl2npu.kernel.symbolic import Sym, product


def check(subject: Subject) -> Iterator[Finding]:
    """One finding for each map, at the entry, for the first known way to call the factory that shows it."""
    for placed in subject.statements:
        stmt = placed.stmt
        if isinstance(stmt, Op) and stmt.op.name == "annotate_address":
            given = stmt.args.get("address_map")
            found = _addresses(subject, stmt, given) if isinstance(given, Scalar) else {}
            places = {buffer: address for buffer, (_, address) in found.items()}
            fault = next(filter(None, (_fault(subject, places, known) for known in subject.values)), None)
            if fault is not None:
                yield Finding("TL793", found[fault[0]][0], fault[1])


def _addresses(subject: Subject, stmt: Op, given: Scalar) -> dict[Buffer, tuple[cst.CSTNode, Sym]]:
    items = given.node.elements if isinstance(given.node, cst.Dict) else ()
    found: dict[Buffer, tuple[cst.CSTNode, Sym]] = {}
    for item in items:
        if isinstance(item, cst.DictElement) and isinstance(item.key, cst.Name):
            buffer = subject.kernel.buffers.get(item.key.value)
            if buffer is not None and buffer.is_tile:
                found[buffer] = item.key, subject.file.evaluator.sym(item.value, stmt.env)
    return found


def _fault(subject: Subject, addresses: Mapping[Buffer, Sym], known: Mapping[str, int]) -> tuple[Buffer, str] | None:
    device = DEVICES.get(subject.options.device, DEFAULT_DEVICE)
    places: dict[Buffer, tuple[int, int]] = {}
    for buffer, address in addresses.items():
        start, elements = address.evaluate(known), product(buffer.shape).evaluate(known)
        width = {ITEM_SIZE.get(name) for name in types_of(subject, buffer)}
        if start is None or elements is None or len(width) != 1 or None in width:
            continue
        end = start + elements * next(size for size in width if size is not None)
        step, limit = (sizes.of(buffer.memory.value.lower()) for sizes in (device.alignment, device.hardware))
        if step is not None and start % step:
            return buffer, f"`{buffer.name}` is at byte {start}, not at a multiple of {step}"
        if limit is not None and end > limit:
            return buffer, f"`{buffer.name}` ends at byte {end}, but {buffer.memory.value} has {limit}"
        places[buffer] = start, end
    return _together(subject, places)


def _together(subject: Subject, places: Mapping[Buffer, tuple[int, int]]) -> tuple[Buffer, str] | None:
    """Two tiles that one statement reads, in one memory, with bytes in common."""
    for placed in subject.statements if len(places) > 1 else ():
        read = [access.operand.buffer for access in accesses(placed.stmt) if access.reads]
        for number, one in enumerate(read):
            for other in read[:number]:
                if one is other or one.memory is not other.memory or one not in places or other not in places:
                    continue
                (start, end), (begin, stop) = places[one], places[other]
                if start < stop and begin < end:
                    text = f"`{other.name}` and `{one.name}` share addresses, but one statement reads both"
                    return max(one, other, key=list(places).index), text
    return None
