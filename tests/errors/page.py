"""``python -m tests.errors.page > docs/errors.md``: all rows as a page, for readers and for search engines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

from tl2npu.errors.aicore import BITS, BITS_A5
from tl2npu.errors.entry import Entry
from tl2npu.errors.table import BY_KEY, CODES, ENTRIES

_HEAD = """# Errors: what they mean

You have an error code, a message, or a log of an Ascend NPU. The program looks here for you:

```sh
tl2npu rule --error 507015                # a code, a message, or words of one
tl2npu explain-log plog-1234_2026.log     # every known line of a log, causes first; `-` reads standard input
```

[debugging.md](debugging.md) goes from a symptom to the command. Kinds: a **cause** says what is wrong, a **symptom**
what happened, **fallout** follows from an earlier fault, an **envelope** wraps another message. In messages `{name}` is
any word and `...` any text. A rule has its page: `tl2npu rule TL801`. Sources are files of tile-ai/tilelang-ascend
95acbd7f (those below tvm are of its TVM), of another repository, or threads.
"""


def page() -> str:
    """The whole page."""
    parts = [_HEAD]
    for layer in dict.fromkeys(entry.layer for entry in ENTRIES):
        rows = [entry for entry in ENTRIES if entry.layer == layer and entry.key not in CODES]
        parts.append(f"## {layer[0].upper()}{layer[1:]}\n\n" + _table("message", rows, _said))
    parts.append("## Codes\n\n" + _table("code", list(CODES.values()), _code))
    parts.append("## Error registers\n\n" + "\n".join(_registers()) + "\n")
    return "\n".join(parts)


def _table(first: str, rows: list[Entry], cell: Callable[[Entry], str]) -> str:
    lines = [f"| {first} | kind | means | do | rules | source |", "| --- | --- | --- | --- | --- | --- |"]
    for row in rows:
        cells = (cell(row), row.kind, row.means, row.do, " ".join(row.rules), row.source)
        lines.append("| " + " | ".join(text.replace("|", "\\|") for text in cells) + " |")
    return "\n".join(lines) + "\n"


def _said(entry: Entry) -> str:
    return "<br>".join(_literal(template.text) for template in entry.says)


def _code(entry: Entry) -> str:
    return "<br>".join((f"`{entry.key}`", *(f"`{template.text}`" for template in entry.says)))


def _literal(text: str) -> str:
    quote = "``" if "`" in text else "`"
    space = " " if "`" in text else ""
    return f"{quote}{space}{text.strip()}{space}{quote}"


def _registers() -> Iterator[str]:
    yield "`errcode:(w1, w2, w3)` of A2, A3 has bits 0 to 63, 64 to 127, and 128 on; that of A5 the numbers.\n"
    yield "| fault | bits of A2, A3 | bits of A5 | means |"
    yield "| --- | --- | --- | --- |"
    for key in dict.fromkeys((*BITS.values(), *BITS_A5.values())):
        bits = (", ".join(str(bit) for bit, of in sorted(table.items()) if of == key) for table in (BITS, BITS_A5))
        yield f"| {key} | {' | '.join(bits)} | {BY_KEY[key].means} |"


if __name__ == "__main__":
    sys.stdout.write(page())
