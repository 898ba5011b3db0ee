"""What the compiler says when it rejects a kernel, and which rule is about that: the table of ``tl2npu.errors``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tl2npu.errors.log import explain


@dataclass(frozen=True)
class Meaning:
    """Rules that a message is about, the likeliest first, and the buffer or the call that it names."""

    codes: tuple[str, ...]
    buffer: str = ""
    call: str = ""


_DEATHS: dict[str, tuple[str, ...]] = {"AscendMemoryPlanning": ("TL801",)}
"""Pass -> what it dies of: ``findReusableBlock`` reads ``free_blocks[-1]`` where a buffer does not fit."""


def meaning(message: str, where: str = "") -> Meaning:
    """The rules that a message, or the pass ``where`` in which the compiler died, is about; none where no row fits."""
    for found in explain(message).found:
        if found.entry.kind == "cause" and found.entry.rules:
            names = dict(found.names)
            return Meaning(found.entry.rules, names.get("buffer") or "", names.get("call") or "")
    return Meaning(_DEATHS.get(where, ()))


def line_of(found: Meaning, text: str, first: int, last: int) -> int | None:
    """The line from ``first`` to ``last`` that makes the buffer, or has the call; None if there is none."""
    name = re.escape(found.buffer or found.call)
    wanted = (found.buffer and rf"\b{name}\s*=[^=]") or (found.call and rf"\b{name}\s*\(")
    if wanted:
        for number, line in enumerate(text.split("\n")[first - 1 : last], first):
            if re.search(wanted, line):
                return number
    return None
