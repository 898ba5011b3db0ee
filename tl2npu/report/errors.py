"""What is known of an error: ``tl2npu rule --error`` and ``tl2npu explain-log``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tl2npu.codes import CODES
from tl2npu.errors.entry import Entry
from tl2npu.errors.log import Explained, Found, explain_query
from tl2npu.errors.search import search

_CLIPPED = 200


def answer(query: str, style: str = "text") -> str:
    """What is known of a code, a message or words of one, as ``text`` or ``json``; empty if nothing is."""
    explained = explain_query(query)
    similar = () if explained.found else search(query)
    if not explained.found and not similar:
        return ""
    if style == "json":
        return as_json(explained, similar)
    return text(explained, log="\n" in query.strip()) if explained.found else _listed(similar)


def text(explained: Explained, *, log: bool) -> str:
    """What says most in full, the rest in a line each. ``log``: lines have numbers."""
    kinds = [found.entry.kind for found in explained.found]
    full = "cause" if "cause" in kinds else "symptom"
    first = [found for found in explained.found if found.entry.kind == full]
    later = [found for found in explained.found if found not in first]
    parts = ["\n".join(_lines(found, log)) for found in (first or later)]
    if first and later:
        parts.append("\n".join(f"{_head(found, log)}: {found.entry.means}" for found in later))
    if full == "symptom":
        where = "in another log, or above" if log else "beside it in the log: `tl2npu explain-log FILE`"
        parts.append(f"Nothing here says why it happened. The cause stands {where}.")
    if explained.skipped:
        parts.append(f"{explained.skipped} lines in the middle of the log were not read.")
    return "\n\n".join(parts) + "\n"


def _listed(entries: tuple[Entry, ...]) -> str:
    """Entries that have the words of a query, which is no message as it stands."""
    parts = ["\n".join(_lines(Found(entry, 1, entry.example), False)) for entry in entries]
    which = "Messages with these words" if len(entries) > 1 else "The message with these words"
    return "\n\n".join([f"{which}, the closest first:" if len(entries) > 1 else f"{which}:", *parts]) + "\n"


def as_json(explained: Explained, similar: tuple[Entry, ...] = ()) -> str:
    """The same as an object; docs/json.md has the keys."""
    return _printed(_object(explained, similar))


def logs_as_json(logs: Mapping[str, Explained]) -> str:
    """Such an object for each log of a directory."""
    return _printed({"logs": {name: _object(explained, ()) for name, explained in logs.items()}})


def _object(explained: Explained, similar: tuple[Entry, ...]) -> dict[str, object]:
    found = [
        {**_told(one.entry), "line": one.line, "count": one.count, "text": one.text[:_CLIPPED]}
        | {"names": {name: value for name, value in one.names if value}, "bits": list(one.bits)}
        for one in explained.found
    ]
    told = [_told(entry) for entry in similar]
    return {"version": 1, "found": found, "similar": told, "skipped": explained.skipped}


def _printed(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _lines(found: Found, log: bool) -> Iterator[str]:
    entry = found.entry
    yield _head(found, log)
    yield f"    {found.text[:_CLIPPED]}"
    if found.bits:
        yield f"  bits:   {', '.join(map(str, found.bits))} of the error registers"
    yield f"  means:  {entry.means}"
    yield f"  do:     {entry.do}"
    if entry.rules:
        yield f"  rules:  {', '.join(f'{code} {CODES[code].name}' for code in entry.rules)}"
    yield f"  source: {entry.source}"


def _head(found: Found, log: bool) -> str:
    times = f", {found.count} lines" if found.count > 1 else ""
    place = f"line {found.line}{times}: " if log else ""
    return f"{place}{found.entry.kind}: {found.entry.key} ({found.entry.layer})"


def _told(entry: Entry) -> dict[str, Any]:
    rules = [{"code": code, "name": CODES[code].name} for code in entry.rules]
    return {"key": entry.key, "kind": entry.kind, "layer": entry.layer, "means": entry.means, "do": entry.do} | {
        "rules": rules,
        "source": entry.source,
    }
