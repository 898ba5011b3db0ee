"""The catalogue as a page for readers: ``docs/dialect-npuir.md``.

``python -m tests.dialects.page_of_npuir`` prints the page; a test holds it up to date.
"""

from __future__ import annotations

from types import ModuleType

from tests.dialects.page_of_ascend import signature
from tl2npu.dialects.catalogue import Operator
from tl2npu.dialects.npuir import FILES, SHORT, inherited

_HEAD = """\
# The npuir dialect: operators

Every name in `tilelang.language` of tile-ai/tilelang-ascend, branch npuir (bd7c60c3), as the catalogue in
`tl2npu/dialects/npuir/` has it. This page is generated: `python -m tests.dialects.page_of_npuir`.

- **Arguments**: `name` is an expression, a size or a constant; `<name` is read, `>name` written, `>>name` both, the
  old value going into the new one; a `?` after a read operand means that a single value may stand there too. Behind a
  bare `*` arguments take keywords.
- **Mode**: E Expert, D Developer; empty for a name that is exported and not lowered.
- Operators with two names stand under the short one, which is the one that this program writes.
"""

_COLUMNS = "| Operator | Also | Arguments | Core | Mode | Note |"


def _line(row: Operator, others: list[str]) -> str:
    arguments = signature(row)
    cells = (
        f"`{row.name}`",
        ", ".join(f"`{name}`" for name in others),
        f"`{arguments}`" if arguments else "",
        row.core.value,
        "".join(letter for letter, mode in (("E", "expert"), ("D", "developer")) if mode in row.modes),
        "; ".join(part for part in (_formula(row), row.deviation, row.note) if part).replace("|", "\\|"),
    )
    return "| " + " | ".join(cells) + " |"


def _formula(row: Operator) -> str:
    """What an element-wise operator stores."""
    return f"`{row.meaning}`" if row.meaning else ""


def _names(rows: list[Operator]) -> str:
    return ", ".join(f"`{row.name}`" for row in rows) + "."


def _section(file: ModuleType) -> list[str]:
    rows: tuple[Operator, ...] = file.OPERATORS
    lines = ["", f"## {file.__name__.rsplit('.', 1)[-1]}", "", (file.__doc__ or "").strip(), ""]
    if file is inherited:
        listed = [row for row in rows if row.modes and not row.note]
        dead = [row for row in rows if not row.modes]
        rest = [row for row in rows if row.modes and row.note]
        lines += ["Lowered: " + _names(listed), "", "Exported, but not lowered: " + _names(dead), ""]
        return [*lines, _COLUMNS, "| --- " * 6 + "|", *(_line(row, []) for row in rest)]
    also = {row.name: [name for name, short in SHORT.items() if short == row.name and name != short] for row in rows}
    return [
        *lines,
        _COLUMNS,
        "| --- " * 6 + "|",
        *(_line(row, also[row.name]) for row in rows if SHORT[row.name] == row.name),
    ]


def page() -> str:
    """The whole page."""
    lines = _HEAD.splitlines()
    for file in FILES:
        lines += _section(file)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")
