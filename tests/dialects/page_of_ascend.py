"""The catalogue as a page for readers: ``docs/dialect-ascend.md``.

``python -m tests.dialects.page_of_ascend`` prints the page; a test holds it up to date.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tl2npu.dialects.ascend import OPERATORS, SECTIONS
from tl2npu.dialects.catalogue import Operator, Param, Role
from tl2npu.dialects.compiler import COMPILERS, JUNE_2026, Compiler
from tl2npu.dialects.pass_configs import ASCEND_KEYS
from tl2npu.dialects.tables import Section

_HEAD = """\
# The Ascend dialect: operators

Every name in `tilelang.language` of tile-ai/tilelang-ascend (branch ascendc_pto, 95acbd7f), as the catalogue in
`tl2npu/dialects/ascend/` has it. This page is generated: `python -m tests.dialects.page_of_ascend`.

- **Arguments**: `name` is an expression, a size or a constant; `<name` is read, `>name` written, `>>name` both, the
  old value going into the new one; a `?` after a read operand means that a scalar may stand there too. Behind a bare
  `*` arguments take keywords.
- **Core**: the core that runs it without a `T.Scope` around it.
- **Mode**: E Expert, D Developer; empty for a name that must not remain in an Ascend kernel.
- **Rows**: `each` if row *i* of the result depends on rows *i* of the operands only, element by element; `row` if also
  on the whole of these rows; with a parameter in brackets, only if that names the last axis.
- **Halved**: compiler versions that adapt the size to half tiles under `threads=2`.
- **Note**: first what an element-wise operator stores, a formula of its arguments.
- "is seen as": the access that the compiler's passes see, where it differs from what the operator does.
"""

_SIGN = {Role.READ: "<", Role.WRITE: ">", Role.READ_WRITE: ">>", Role.ACCUMULATE: ">>"}
_COLUMNS = "| Operator | Arguments | Core | Mode | Rows | Halved | Note |"


def argument(param: Param) -> str:
    """One argument as the page writes it: ``<src1?``, ``>dst``, ``init=False``, ``*blocks``."""
    star = "*" if param.kind == "variadic" else ""
    default = "" if param.default is None else f"={param.default}"
    return f"{_SIGN.get(param.role, '')}{star}{param.name}{'?' if param.scalar else ''}{default}"


def signature(operator: Operator) -> str:
    """All arguments of an operator."""
    words: list[str] = []
    starred = False
    for param in operator.params:
        if param.kind == "keyword" and not starred:
            words.append("*")
        starred = starred or param.kind != "positional"
        words.append(argument(param))
    return ", ".join(words)


def _rows_cell(operator: Operator) -> str:
    if operator.elementwise:
        return "each"
    if operator.row_independent:
        return f"row ({operator.axis})" if operator.axis else "row"
    return ""


def _note(operator: Operator) -> str:
    seen = [f"`{p.name}` is seen as `{p.mask}`" for p in operator.params if p.seen]
    lacking = ["not for target `pto`"] if operator.name in JUNE_2026.lacking_for_pto else []
    stores = [f"`{operator.meaning}`"] if operator.meaning else []
    return "; ".join([*stores, *seen, *([operator.note] if operator.note else []), *lacking])


def _line(operator: Operator) -> str:
    arguments = signature(operator)
    cells = (
        f"`{operator.name}`",
        f"`{arguments}`" if arguments else "",
        operator.core.value,
        "".join(letter for letter, mode in (("E", "expert"), ("D", "developer")) if mode in operator.modes),
        _rows_cell(operator),
        ", ".join(sorted(operator.vid_aware)),
        _note(operator).replace("|", "\\|"),
    )
    return "| " + " | ".join(cells) + " |"


def _names(operators: Iterable[Operator]) -> str:
    return ", ".join(f"`{row.name}`" for row in operators) + "."


def _section(title: str, section: Section) -> list[str]:
    rows = [OPERATORS[row.name] for row in section.operators]
    lines = ["", f"## {title}", "", section.prose, ""]
    if title == "gpu":
        return [*lines, _names(rows)]
    types_only = [row for row in rows if title == "types" and row.defined.startswith("tvm:")]
    notes = Counter(row.note for row in rows if row.note and not row.modes and row not in types_only)
    unfit = [row for row in rows if not row.modes and notes[row.note] > 2 and row not in types_only]
    shown = [row for row in rows if row not in unfit and row not in types_only]
    lines += [_COLUMNS, "| --- " * 7 + "|", *map(_line, shown)]
    if types_only:
        lines += ["", f"Data types, each `T.name({signature(types_only[0])})`: {_names(types_only)}"]
    for note in dict.fromkeys(row.note for row in unfit):
        lines += ["", f"Not in Ascend kernels ({note}): {_names(row for row in unfit if row.note == note)}"]
    return lines


def _compiler(row: Compiler) -> list[str]:
    commit = f", commit {row.commit[:8]}" if row.commit else ""
    added = sorted(row.vid_aware_ops - COMPILERS["2026-06"].vid_aware_ops)
    lines = [f"- **{row.version}**{commit}: {len(row.vid_aware_ops)} tile operators are halved ({row.source})."]
    if added:
        lines.append(f"  Later than 2026-06: {', '.join(f'`{name}`' for name in added)}.")
    if row.note:
        lines.append(f"  {row.note[0].upper()}{row.note[1:]}.")
    return lines


def page() -> str:
    """The whole page."""
    lines = _HEAD.splitlines()
    for title, section in SECTIONS.items():
        lines += _section(title, section)
    lines += ["", "## pass_configs", "", "| `tilelang.PassConfigKey` | string |", "| --- | --- |"]
    lines += [f"| `{member}` | `{text}` |" for member, text in ASCEND_KEYS.items()]
    lines += ["", "## Compiler versions", ""]
    for row in COMPILERS.values():
        lines += _compiler(row)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")
