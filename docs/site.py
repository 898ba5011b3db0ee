"""The pages of the documentation as a site is built from: ``python docs/site.py`` and then ``mkdocs build``.

Puts the pages, the picture and one page for each rule into `docs_dir` of `mkdocs.yml`; any builder that reads it does.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from tl2npu.rules import Rule, load_rules  # noqa: E402

TARGET = ROOT / ".site"
ABOVE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "benchmarks/README.md": "benchmarks.md",
}
"""Pages outside of ``docs``, and their names on the site."""

_LINK = re.compile(r"\[([^\]\n]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
_FENCE = re.compile(r"^(`{3,}|~{3,})([\w-]*)[^\n]*\n.*?^\1$", re.MULTILINE | re.DOTALL)


def build(target: Path) -> None:
    """Write the pages into a directory, which is made anew."""
    shutil.rmtree(target, ignore_errors=True)
    for source in sorted((ROOT / "docs").glob("*.md")):
        _write(target / source.name, _linked(source, source.read_text(encoding="utf-8"), source.name))
    for name, page in ABOVE.items():
        _write(target / page, _linked(ROOT / name, (ROOT / name).read_text(encoding="utf-8"), page))
    for picture in (ROOT / "docs").glob("*.svg"):
        shutil.copy(picture, target / picture.name)
    listed = _linked(ROOT / "docs" / "llms.txt", (ROOT / "docs" / "llms.txt").read_text(encoding="utf-8"), "llms.txt")
    _write(target / "llms.txt", re.sub(r"\((?:index|([\w/-]+))\.md\)", r"(\1/)", listed).replace("(/)", "(.)"))
    for rule in load_rules().values():
        place = _place(rule.path)
        assert place is not None
        _write(target / place, _linked(rule.path, _rule_page(rule), place))


def _rule_page(rule: Rule) -> str:
    facts = f"{rule.group} · {rule.severity} · {rule.safety} · since {rule.since}"
    return f"# {rule.code} {rule.name}\n\n{facts}\n\n{rule.text.strip()}\n"


def _place(path: Path) -> str | None:
    """The name on the site of a file of the checkout; None for one that is not on it."""
    if not path.is_file() or not path.is_relative_to(ROOT):
        return None
    name = path.relative_to(ROOT).as_posix()
    if name.startswith("docs/") and path.suffix in (".md", ".svg", ".txt"):
        return name.removeprefix("docs/")
    return name if name.startswith("rules/") else ABOVE.get(name)


def _linked(source: Path, text: str, page: str) -> str:
    """A text with its links as they are on the site; what is not there is named without one.

    Source stays as it is, but for the second word of a fence (`python before`), which is for our tests only.
    """

    def link(match: re.Match[str]) -> str:
        label, target, anchor = match.group(1), match.group(2), match.group(3) or ""
        if ":" in target:
            return match.group()
        place = _place((source.parent / target).resolve())
        if place is None:
            return label
        up = "../" * page.count("/")
        return f"[{label}]({up}{place}{anchor})"

    done, at = "", 0
    for fence in _FENCE.finditer(text):
        head = fence.group(1) + fence.group(2)
        inside = fence.group().partition("\n")[2]
        done += f"{_LINK.sub(link, text[at : fence.start()])}{head}\n{inside}"
        at = fence.end()
    return done + _LINK.sub(link, text[at:])


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    build(TARGET)
