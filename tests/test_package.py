"""What is published: bounds, and a README whose links hold on a package index."""

from __future__ import annotations

import importlib.util
import re
import sys
from importlib import metadata
from pathlib import Path
from types import ModuleType

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

import tl2npu

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def packaging() -> ModuleType:
    spec = importlib.util.spec_from_file_location("package_readme", ROOT / ".ci" / "package_readme.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_one_version() -> None:
    assert PROJECT["version"] == tl2npu.__version__
    assert f"## [{tl2npu.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_what_shapes_the_output_is_bounded(packaging: ModuleType) -> None:
    """A new black or LibCST must not change the text of migrations unseen."""
    assert [text.split("==")[0] for text in packaging.oldest(PROJECT)] == ["libcst", "black"]
    for name in ("libcst", "black"):
        wanted = next(text for text in PROJECT["dependencies"] if text.startswith(name))
        bounds = re.fullmatch(rf"{name}>=([\d.]+),<(\d+)", wanted)
        assert bounds is not None
        installed = [int(part) for part in metadata.version(name).split(".")[:2]]
        assert [int(part) for part in bounds[1].split(".")[:2]] <= installed < [int(bounds[2])]


def test_links_of_the_package_are_absolute(packaging: ModuleType) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    made = packaging.absolute(text, "https://example.org/tl2npu", "v0.1.0")
    targets = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"^```.*?^```$", "", made, flags=re.M | re.S))
    assert len(targets) > 30
    assert [target for target in targets if not target.startswith(("https://", "#"))] == []
    assert "](https://example.org/tl2npu/raw/v0.1.0/docs/terminal.svg)" in made
    assert "https://example.org/tl2npu/blob/v0.1.0/docs/glossary.md" in made
    fences = [re.findall(r"^```.*?^```$", one, flags=re.M | re.S) for one in (text, made)]
    assert fences[0] == fences[1]
