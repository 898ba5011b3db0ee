"""The page ``docs/compiler-messages.md``: ``python -m tests.compiler_messages.page`` writes it."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from tests.compiler_messages.rows import Row, rows
from tl2npu.checks.subject import PTO

PAGE = Path(__file__).parents[2] / "docs" / "compiler-messages.md"
HEAD = Path(__file__).with_name("page.md")


def page() -> str:
    """The text: what stands in ``page.md``, and the table of the rows by part."""
    found = list(rows())
    covered = sum(row.rule != "-" for row in found)
    text = HEAD.read_text("utf-8").replace("{rows}", str(len(found))).replace("{covered}", str(covered))
    parts = (_part(list(group)) for _, group in groupby(found, key=lambda row: row.part))
    return text.rstrip() + "\n" + "".join(parts)


def _part(group: list[Row]) -> str:
    lines = [f"\n## {group[0].part}\n", f"`{group[0].sources.replace(', ', '`, `')}`\n"]
    lines += ["| line | message | what triggers it | rule |", "| --- | --- | --- | --- |"]
    for row in group:
        place = f"{row.place} (pto)" if row.target == PTO else row.place
        rule = "not covered" if row.rule == "-" else row.rule
        lines.append(f"| {place} | `{row.message}` | {row.trigger} | {rule} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
