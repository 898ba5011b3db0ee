"""The examples of rule pages, and the index of all pages.

``python before`` followed by ``python after`` is an edit, ``python refused`` a kernel with ``# expect: CODE`` on the
lines that diagnostics must name, ``python accepted`` a kernel without a diagnostic of the page's code. ``diff mended``
is the edit of the refused kernel above it that the help asks for: lines with ``-`` and ``+``, a space before lines that
stay, ``@@`` between places. ``python beside NAME`` is a file that lies beside the example behind it.

``python -m tests.rules.examples`` prints the index that stands in ``docs/rules.md``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from tl2npu.rules import GROUPS, Rule, RuleError, load_rules

ExampleKind = Literal["edit", "refused", "accepted", "mended"]

_TITLES = {
    "gpu": "GPU kernels",
    "workspace-vid": "Workspaces and vid",
    "expert": "Expert mode",
    "npuir": "AscendNPU IR",
    "triton": "Triton kernels",
    "a5": "Triton kernels for the cores of A5",
    "instructions": "Instructions: element types, alignment, arguments",
    "output": "Limits of the compiler, checks of the output",
    "speed": "Speed",
    "tool": "The tool itself",
}
_EXPECT = re.compile(r"#\s*expect:\s*([A-Z0-9, ]+?)\s*$")


@dataclass(frozen=True)
class Example:
    """One example of a page.

    ``after`` is the expected result of an edit, None for the other kinds. The ``text`` of a mended example is the
    refused kernel with the edit that the help asks for. ``expected`` holds (1-based line of ``text``, code) for each
    ``# expect:`` comment, ``line`` is the line of the fence in the page. ``beside``: names and texts of the files
    beside it.
    """

    kind: ExampleKind
    text: str
    line: int
    after: str | None = None
    expected: tuple[tuple[int, str], ...] = ()
    beside: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class _Fence:
    tag: str
    text: str
    line: int


@cache
def _of(path: Path) -> tuple[Example, ...]:
    return examples_in(path.read_text(encoding="utf-8"), path)


def examples(page: Rule) -> tuple[Example, ...]:
    """The examples of a page."""
    return _of(page.path)


def examples_in(text: str, path: Path) -> tuple[Example, ...]:
    """Those of the text of a page; ``path`` is only named in messages. Raises :class:`RuleError`."""
    header = text.index("\n+++\n") + len("\n+++\n")
    return tuple(_examples(tuple(_fences(text[header:], text[:header].count("\n"), path)), path))


def _fences(body: str, offset: int, path: Path) -> Iterator[_Fence]:
    tag: str | None = None
    start = 0
    lines: list[str] = []
    for number, line in enumerate(body.splitlines(), offset + 1):
        if not line.startswith("```"):
            lines.append(line)
        elif tag is None:
            tag, start, lines = line[3:].strip(), number, []
        else:
            yield _Fence(tag, "\n".join(lines) + "\n", start)
            tag = None
    if tag is not None:
        raise RuleError(f"{path}:{start}: the fence is not closed")


def _examples(fences: Iterable[_Fence], path: Path) -> Iterator[Example]:
    before: _Fence | None = None
    refused: Example | None = None
    beside: list[tuple[str, str]] = []
    for fence in fences:
        language, _, word = fence.tag.partition(" ")
        if before is not None and fence.tag != "python after":
            raise RuleError(f"{path}:{before.line}: `before` without `after`")
        if fence.tag == "diff mended":
            if refused is None:
                raise RuleError(f"{path}:{fence.line}: `mended` without `refused`")
            yield Example("mended", _patched(refused, fence, path), fence.line, None, (), refused.beside)
        if language != "python" or not word:
            continue
        if word.startswith("beside "):
            beside.append((word.removeprefix("beside "), fence.text))
        elif word == "before":
            before = fence
        elif word == "after":
            if before is None:
                raise RuleError(f"{path}:{fence.line}: `after` without `before`")
            yield Example("edit", before.text, before.line, fence.text, (), tuple(beside))
            before, beside = None, []
        elif word == "refused":
            expected = tuple(_expected(fence.text))
            if not expected:
                raise RuleError(f"{path}:{fence.line}: a refused example needs `# expect: CODE`")
            refused = Example("refused", fence.text, fence.line, None, expected, tuple(beside))
            yield refused
            beside = []
        elif word == "accepted":
            yield Example("accepted", fence.text, fence.line, None, (), tuple(beside))
            beside = []
        else:
            raise RuleError(f"{path}:{fence.line}: unknown fence {fence.tag!r}")
    if before is not None:
        raise RuleError(f"{path}:{before.line}: `before` without `after`")


def _patched(refused: Example, fence: _Fence, path: Path) -> str:
    """The refused kernel, without its ``expect`` comments, after the edit; every place must be there once."""
    text = "\n" + "".join(f"{_EXPECT.sub('', line).rstrip()}\n" for line in refused.text.splitlines())
    for place in re.split(r"^@@\n", fence.text, flags=re.MULTILINE):
        lines = place.splitlines()
        if not any(line.startswith(("-", "+")) for line in lines) or any(line[:1] not in "-+ " for line in lines):
            raise RuleError(f"{path}:{fence.line}: `mended` needs lines with `-`, `+` or a space, and a change")
        old = "".join(f"\n{line[1:]}" for line in lines if not line.startswith("+"))
        new = "".join(f"\n{line[1:]}" for line in lines if not line.startswith("-"))
        if text.count(f"{old}\n") != 1:
            raise RuleError(f"{path}:{fence.line}: not once in the kernel above: {old.strip()!r}")
        text = text.replace(f"{old}\n", f"{new}\n")
    return text[1:]


def _expected(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        found = _EXPECT.search(line)
        if found is not None:
            for code in re.split(r"[ ,]+", found.group(1).strip()):
                yield number, code


def index_page(rules: Mapping[str, Rule]) -> str:
    """The Markdown index of all rules, one table per group; links are relative to ``docs/``."""
    lines = ["# Rules", "", "Generated by `python -m tests.rules.examples`; edit the pages in `rules/`."]
    for group in GROUPS:
        lines += ["", f"## {_TITLES[group]}", ""]
        lines.append("| code | name | severity | fix | what it does |")
        lines.append("| --- | --- | --- | --- | --- |")
        for item in rules.values():
            if item.group == group:
                link = f"[{item.code}](../rules/{group}/{item.path.name})"
                fix = "none" if item.safety == "display-only" else item.safety
                summary = item.summary.replace("|", "\\|")
                lines.append(f"| {link} | {item.name} | {item.severity} | {fix} | {summary} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(index_page(load_rules()))
