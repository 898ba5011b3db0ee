"""The site: every page is on it, no link leads nowhere, and the picture of the README is what a terminal shows."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from tl2npu.rules import load_rules

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"\]\(([^)\s]+)\)")


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site") / "pages"
    script("site").build(place)
    return place


def pages(entries: Any) -> Iterator[str]:
    for entry in entries:
        for value in entry.values():
            yield from [value] if isinstance(value, str) else pages(value)


def test_every_rule_has_a_page(site: Path) -> None:
    for rule in load_rules().values():
        text = (site / "rules" / rule.group / rule.path.name).read_text(encoding="utf-8")
        assert text.startswith(f"# {rule.code} {rule.name}\n")
        assert "+++" not in text
        assert all(section in text for section in rule.sections.values() if not re.search(r"```|\]\(", section))


def test_every_page_is_in_the_menu(site: Path) -> None:
    menu = list(pages(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]))
    assert len(menu) == len(set(menu))
    assert set(menu) == {path.name for path in site.glob("*.md")}


def test_agents_find_the_pages(site: Path) -> None:
    """The links of ``llms.txt`` are those of the built site, where a page is a directory."""
    targets = LINK.findall((site / "llms.txt").read_text(encoding="utf-8"))
    assert len(targets) > 10
    assert [t for t in targets if not (site / f"{t.rstrip('/').replace('.', 'index')}.md").is_file()] == []


def test_links_lead_to_pages(site: Path) -> None:
    found = 0
    for path in site.rglob("*.md"):
        for target in LINK.findall(re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)):
            if not target.startswith(("http", "#")):
                found += 1
                assert (path.parent / target.split("#")[0]).is_file(), f"{path.name}: {target}"
    assert found > 300  # the index of the rules alone has as many


def test_source_stays_source(site: Path, tmp_path: Path) -> None:
    """Fences have the language only, as builders know no second word, and nothing in them is taken for a link."""
    fences = 0
    for path in site.rglob("*.md"):
        text = path.read_text(encoding="utf-8")
        for line in re.findall(r"^```(.+)$", text, flags=re.M):
            fences += 1
            assert re.fullmatch(r"[\w-]+", line), f"{path.name}: ```{line}"
    assert fences > 300
    page = ROOT / "docs" / "triton.md"
    text = "```python before\nkernel[grid](x)\n```\n[one](no.md) [two](triton.md)\n````\n```\n[a](b)\n````\n[b](c)\n"
    assert script("site")._linked(page, text, "triton.md") == (
        "```python\nkernel[grid](x)\n```\none [two](triton.md)\n````\n```\n[a](b)\n````\nb\n"
    )


def test_anchors_are_those_of_github_and_of_the_site(site: Path) -> None:
    """Both make a heading small and join its words, but only the site joins what signs leave."""

    def slugs(path: Path) -> set[str]:
        text = re.sub(r"^(`{3,}).*?^\1$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
        found = set()
        for title in re.findall(r"^#+ (.+)$", text, flags=re.M):
            words = re.sub(r"[^\w\s-]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)).strip().lower()
            ours, theirs = words.replace(" ", "-"), re.sub(r"[\s-]+", "-", words)
            found |= {ours} if ours == theirs else set()
        return found

    known = {path: slugs(path) for path in site.rglob("*.md")}
    found = 0
    for path in known:
        for target, anchor in re.findall(r"\]\(([^)\s#:]*)#([^)\s]+)\)", path.read_text(encoding="utf-8")):
            found += 1
            assert anchor in known[(path.parent / target).resolve() if target else path], f"{path.name}: {anchor}"
    assert found > 40


def test_it_can_be_built(site: Path, tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    settings |= {"docs_dir": str(site), "site_dir": str(tmp_path / "html")}
    (tmp_path / "mkdocs.yml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(tmp_path / "mkdocs.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # --quiet would count no warnings
    assert done.returncode == 0, done.stderr
    assert "does not contain an anchor" not in done.stderr
    assert (tmp_path / "html" / "rules" / "tool" / "TL904-unused-suppression" / "index.html").is_file()


@pytest.mark.thorough
def test_the_picture_is_not_stale() -> None:
    """Run ``python docs/picture.py`` if this fails."""
    pytest.importorskip("pty")
    drawn = script("picture")
    assert _without_rounding(drawn.PICTURE.read_text(encoding="utf-8")) == _without_rounding(drawn.picture())


def _without_rounding(svg: str) -> str:
    """A picture without its numbers behind "difference": products of matrices round differently on other processors."""
    return re.sub(r"difference [\d.e-]+", "difference", re.sub(r' (x|textLength)="[\d.]+"', "", svg))
