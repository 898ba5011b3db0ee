"""Makes the README of a copy of the checkout that of the package: on an index its links and pictures must be absolute.

``package_readme.py CHECKOUT [--draft]`` rewrites ``README.md`` there. ``package_readme.py --oldest CHECKOUT`` prints
the oldest black and LibCST that `pyproject.toml` allows, for pip.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_LINK = re.compile(r"(!?)(\[[^\]\n]*\])\(([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
NOWHERE = "https://repository.invalid/tl2npu"


def absolute(text: str, repository: str, revision: str) -> str:
    """The README with its relative links made absolute: pages are shown, pictures are served as they are."""

    def link(match: re.Match[str]) -> str:
        mark, label, target = match.groups()
        if target.startswith(("http:", "https:", "#")):
            return match.group()
        kind = "raw" if mark else "blob"
        return f"{mark}{label}({repository}/{kind}/{revision}/{target})"

    done, at = "", 0
    for fence in _FENCE.finditer(text):
        done += _LINK.sub(link, text[at : fence.start()]) + fence.group()
        at = fence.end()
    return done + _LINK.sub(link, text[at:])


def oldest(project: dict[str, Any]) -> list[str]:
    """``black==24.1.0``: the lower ends of what shapes the text of migrations."""
    found = [re.match(r"(black|libcst)>=([\d.]+)", text) for text in project["dependencies"]]
    return [f"{match[1]}=={match[2]}" for match in found if match]


def main(words: list[str]) -> None:
    """The command line."""
    checkout = Path(next(word for word in words if not word.startswith("--")))
    project = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    if "--oldest" in words:
        print(*oldest(project))
        return
    repository = project.get("urls", {}).get("Repository", NOWHERE if "--draft" in words else "")
    if not repository:
        sys.exit("pyproject.toml has no address: set Repository, Documentation and Issues in [project.urls]")
    page = checkout / "README.md"
    text = absolute(page.read_text(encoding="utf-8"), repository.rstrip("/"), f"v{project['version']}")
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
