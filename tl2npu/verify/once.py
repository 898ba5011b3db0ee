"""What is said of faulty runs (TL908): one finding for one cause, and a help that fits it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from tl2npu.results import Diagnostic

_ACCESS = re.compile(
    r"(?P<head>.*: )PIPE_\w+ (?P<what>\w+) at (?P<file>.+):(?P<line>\d+) in block \d+ \(\w+\): "
    r"(?P<why>.+? of )(?P<tile>\w+)(?P<rest> .+?)( \(\d+ times\))?"
)
"""A hazard of a single access: those of other lines, for the same reason, are the same to the reader."""
_RAISED = re.compile(r"\b[A-Z]\w*(?:Error|Exception): ")
_PYTHON = (
    "mend the Python that raises it; a new kernel of `migrate` is written by `tl2npu migrate - < old.py > new.py`, "
    "and an error in it alone is one of tl2npu"
)


def help_of(message: str, usual: str) -> str:
    """What to do about a fault: Python that fails is neither an access nor a synchronisation."""
    return _PYTHON if _RAISED.search(message) else usual


def at_once(found: Iterable[Diagnostic]) -> list[Diagnostic]:
    """One finding for all accesses of a kernel that are wrong for one reason, with the other lines and tiles."""
    first: dict[object, tuple[Diagnostic, str]] = {}
    more: dict[object, dict[str, None]] = {}
    for item in found:
        key: object = item
        tile = line = ""
        if (match := _ACCESS.fullmatch(item.message)) is not None:
            tile, line = match.group("tile", "line")
            key = replace(item, message="|".join(match.group("head", "what", "file", "why", "rest")))
        _, other = first.setdefault(key, (item, tile))
        more.setdefault(key, {})[line if tile == other else f"{line} ({tile})"] = None
    result: list[Diagnostic] = []
    for key, (item, _) in first.items():
        _, *lines = more[key]
        also = f"; the same at line{'s' if len(lines) > 1 else ''} {', '.join(lines)}" if lines else ""
        result.append(replace(item, message=item.message + also))
    return result
