"""The catalogue of rules: one Markdown page per code, read on demand.

A page is TOML front matter between ``+++`` lines, then prose in fixed sections. Its fences are tests:
``tests/rules/examples.py`` reads them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
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

_KEYS = frozenset({"code", "name", "group", "severity", "safety", "disposition", "since", "evidence"})
_HEADER = re.compile(r"\A\+\+\+\n(.*?)\n\+\+\+\n", re.DOTALL)
_SENTENCE = re.compile(r"(.+?[.!?])(?=\s|\Z)", re.DOTALL)


class RuleError(ValueError):
    """A page that does not follow the format; the message names the file and the line."""


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
    path: Path


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
