"""The catalogue of rules: one Markdown page per code, read on demand.

A page is TOML front matter between ``+++`` lines, then prose in fixed sections. Its fences are
tests: ``python before`` followed by ``python after`` is an edit, ``python refused`` a kernel with
``# expect: CODE`` on the lines that diagnostics must name, ``python accepted`` a kernel without a
diagnostic of the page's code. ``diff mended`` is the edit of the refused kernel above it that the help asks for: lines
with ``-`` and ``+``, a space before lines that stay, ``@@`` between places. ``python beside NAME`` is a file that lies
beside the example behind it.

``python -m tl2npu.rules`` prints the index that stands in ``docs/rules.md``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, get_args

from tl2npu.results import Safety, Severity

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ExampleKind = Literal["edit", "refused", "accepted", "mended"]
RuleDisposition = Literal["keep", "replace", "redesign", "drop"]

GROUPS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "gpu": ("TL1", "TL6"),
        "workspace-vid": ("TL2",),
        "expert": ("TL3",),
        "npuir": ("TL4",),
        "triton": ("TL5",),
        "a5": ("TL5",),
        "instructions": ("TL7",),
        "output": ("TL8",),
        "speed": ("TL95",),
        "tool": ("TL9",),
    }
)
SECTIONS = ("What it does", "Why", "Example", "Use instead", "Fix safety", "References")

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
_KEYS = frozenset({"code", "name", "group", "severity", "safety", "disposition", "since", "evidence"})
_HEADER = re.compile(r"\A\+\+\+\n(.*?)\n\+\+\+\n", re.DOTALL)
_EXPECT = re.compile(r"#\s*expect:\s*([A-Z0-9, ]+?)\s*$")
_SENTENCE = re.compile(r"(.+?[.!?])(?=\s|\Z)", re.DOTALL)


class RuleError(ValueError):
    """A page that does not follow the format; the message names the file and the line."""


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
class Rule:
    """One page.

    ``summary`` is the first sentence of "What it does", ``text`` the page without front matter,
    ``evidence`` names the measurements and sources that a limit rests on.
    """

    code: str
    name: str
    group: str
    severity: Severity
    safety: Safety
    disposition: RuleDisposition
    since: str
    evidence: tuple[str, ...]
    summary: str
    text: str
    sections: Mapping[str, str]
    examples: tuple[Example, ...]
    path: Path


@dataclass(frozen=True)
class _Fence:
    tag: str
    text: str
    line: int


def rules_directory() -> Path:
    """The folder with the pages: package data of an installation, ``rules/`` of a checkout.

    Raises :class:`RuleError` if neither exists.
    """
    package = Path(__file__).resolve().parent
    for candidate in (package / "_rules", package.parent / "rules"):
        if candidate.is_dir():
            return candidate
    raise RuleError(f"no rule pages beside {package}")


@cache
def load_rules() -> Mapping[str, Rule]:
    """Every rule by code, in the order of the codes; raises :class:`RuleError`."""
    found: dict[str, Rule] = {}
    for path in sorted(rules_directory().glob("*/*.md"), key=lambda item: item.name):
        page = read_page(path)
        if page.code in found:
            raise RuleError(f"{path}: {page.code} is also {found[page.code].path.name}")
        found[page.code] = page
    return MappingProxyType(found)


def rule(code: str) -> Rule:
    """The rule of a code; raises :class:`KeyError` if there is none."""
    return load_rules()[code]


def find_rule(text: str) -> Rule:
    """The rule of a code or a name. Raises RuleError with the one that may be meant."""
    rules = load_rules()
    found = rules.get(text.upper()) or next((page for page in rules.values() if page.name == text), None)
    if found is None:
        close = get_close_matches(text, [*rules, *(page.name for page in rules.values())], n=1)
        raise RuleError(f"no rule {text!r}" + (f", did you mean {close[0]!r}?" if close else ""))
    return found


def read_page(path: Path) -> Rule:
    """Read one page. Raises :class:`RuleError` if it is malformed."""
    return parse_page(path.read_text(encoding="utf-8"), path)


def parse_page(text: str, path: Path) -> Rule:
    """Parse the text of a page; ``path`` is only named in messages and kept in the result."""
    header = _HEADER.match(text)
    if header is None:
        raise RuleError(f"{path}: the page does not start with +++ front matter")
    try:
        meta = tomllib.loads(header.group(1))
    except tomllib.TOMLDecodeError as error:
        raise RuleError(f"{path}: front matter: {error}") from error
    body = text[header.end() :]
    offset = text[: header.end()].count("\n")
    fences = tuple(_fences(body, offset, path))
    sections = _sections(body)
    missing = [name for name in SECTIONS if not sections.get(name)]
    if missing:
        raise RuleError(f"{path}: section missing or empty: {', '.join(missing)}")
    if list(sections) != list(SECTIONS):
        raise RuleError(f"{path}: the sections must be {', '.join(SECTIONS)}, in this order")
    summary = _SENTENCE.match(" ".join(sections["What it does"].split()))
    if summary is None:
        raise RuleError(f"{path}: 'What it does' has no complete sentence")
    unknown = set(meta) - _KEYS
    if unknown:
        raise RuleError(f"{path}: unknown keys: {', '.join(sorted(unknown))}")
    evidence = meta.get("evidence", [])
    if not isinstance(evidence, list) or not all(isinstance(item, str) for item in evidence):
        raise RuleError(f"{path}: evidence is a list of strings")
    return Rule(
        code=_text(meta, "code", path),
        name=_text(meta, "name", path),
        group=_text(meta, "group", path, tuple(GROUPS)),
        severity=_choice(meta, "severity", get_args(Severity), path),
        safety=_choice(meta, "safety", get_args(Safety), path),
        disposition=_choice(meta, "disposition", get_args(RuleDisposition), path),
        since=_text(meta, "since", path),
        evidence=tuple(evidence),
        summary=summary.group(1),
        text=body.lstrip("\n"),
        sections=MappingProxyType(sections),
        examples=tuple(_examples(fences, path)),
        path=path,
    )


def _text(meta: Mapping[str, Any], key: str, path: Path, allowed: tuple[str, ...] = ()) -> str:
    value = meta.get(key)
    if not isinstance(value, str) or not value:
        raise RuleError(f"{path}: {key} must be a string")
    if allowed and value not in allowed:
        raise RuleError(f"{path}: {key} is {value!r}, not one of {', '.join(allowed)}")
    return value


def _choice(meta: Mapping[str, Any], key: str, allowed: tuple[str, ...], path: Path) -> Any:
    """The value of a key that is a Literal type, checked here so that it may be taken as such."""
    return _text(meta, key, path, allowed)


def _sections(body: str) -> dict[str, str]:
    """Heading to content, in page order; ``##`` inside a fence is no heading."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    fenced = False
    for line in body.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        if line.startswith("## ") and not fenced:
            current = found.setdefault(line[3:].strip(), [])
        else:
            current.append(line)
    return {name: "\n".join(lines).strip() for name, lines in found.items()}


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


def _examples(fences: tuple[_Fence, ...], path: Path) -> Iterator[Example]:
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
    lines = ["# Rules", "", "Generated by `python -m tl2npu.rules`; edit the pages in `rules/`."]
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
