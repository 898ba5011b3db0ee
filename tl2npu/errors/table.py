"""All rows, in the order in which a kernel meets them: front end, passes, BiSheng, launch, device, sanitizer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from tl2npu.errors import aicore, bisheng, frontend, launch, passes, runtime, sanitizer, triton
from tl2npu.errors.entry import Entry, Template

_LAYERS = (
    ("front end", frontend.ROWS),
    ("passes", passes.ROWS),
    ("BiSheng", bisheng.ROWS),
    ("triton-ascend", triton.ROWS),
    ("launch", launch.ROWS),
    ("AI core", aicore.ROWS),
    ("runtime", runtime.ROWS),
    ("msSanitizer", sanitizer.ROWS),
)


def _codes() -> Iterator[Entry]:
    for code, name, kind, rules, means, do, source in runtime.CODES:
        says = (Template(name),) if name.startswith("ACL") else ()
        example = f"error code is {code}" if code.isdigit() else f"{code}: Inner Error!"
        yield Entry(code, kind, "runtime", tuple(rules.split()), says, example, means, do, source or runtime.HEADER)


ENTRIES: tuple[Entry, ...] = (*(Entry.of(layer, row) for layer, rows in _LAYERS for row in rows), *_codes())
BY_KEY: Mapping[str, Entry] = MappingProxyType({entry.key: entry for entry in ENTRIES})
CODES: Mapping[str, Entry] = MappingProxyType({row[0]: BY_KEY[row[0]] for row in runtime.CODES})
"""The codes, by which a number or a code such as EZ9999 is looked up."""
