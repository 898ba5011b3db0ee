"""How new kernels read: counts of what reviewers stumble over, from reports of a run over public examples.

``python benchmarks/texts.py DIR=report.json ...``: DIR is the folder that ``tl2npu migrate --check --no-cache
--format json`` was given, as it stood then. Counted are the kernels that a report changes in place, old against new.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

LONGEST_NAME, WIDEST_LINE = 24, 120
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? ")
_NAME = re.compile(r"[A-Za-z_]\w*")
_TILE = re.compile(r"^\s*(\w+) = \w+\.alloc_\w+\(", re.MULTILINE)
_COPY = re.compile(r"\b\w+\.copy\((\w+)(?:\[[^()]*\])?, (\w+)(?:\[[^()]*\])?\)")
_DUMMY = re.compile(r"^.*\btoken_l0c\b.*gemm.*|^.*gemm.*\btoken_l0c\b.*", re.MULTILINE)


def patched(old: str, diff: str) -> str:
    """The text that a unified diff makes of another."""
    lines, new, place = old.splitlines(), [], 0
    for line in diff.splitlines():
        if (hunk := _HUNK.match(line)) is not None:
            start = int(hunk[1]) - (hunk[2] != "0")
            new += lines[place:start]
            place = start
        elif line.startswith(("+++", "---", "diff ", "\\")):
            continue
        elif line.startswith("+"):
            new.append(line[1:])
        elif line[:1] in ("-", " "):
            new += [line[1:]] if line[0] == " " else []
            place += 1
    return "\n".join([*new, *lines[place:]]) + "\n"


def changed(folder: Path, report: Path) -> Iterator[tuple[int, str, str]]:
    """Of each file that is changed in place: kernels that were rewritten, old and new text."""
    for file in json.loads(report.read_text(encoding="utf-8"))["files"]:
        done = sum(kernel["disposition"] in ("migrated", "partial") for kernel in file["kernels"])
        if file["diff"] and done and not file["beside"]:
            path = folder / file["path"] if (folder / file["path"]).exists() else folder.parent / file["path"]
            old = path.read_text(encoding="utf-8")
            yield done, old, patched(old, file["diff"])


def count(old: str, new: str) -> Counter[str]:
    """What one file adds to the table."""
    known, lines = set(_NAME.findall(old)), set(old.splitlines())
    made = {name for name in _TILE.findall(new) if name not in known}
    wide = [line for line in new.splitlines() if len(line) > WIDEST_LINE and line not in lines]
    copies = _COPY.findall(new)
    sources = Counter(source for source, _ in copies)
    chains = {frozenset(pair) for pair in copies if pair[::-1] in copies}
    return Counter(
        {
            "old lines": old.count("\n"),
            "new lines": new.count("\n"),
            "old allocations": len(_TILE.findall(old)),
            "new allocations": len(_TILE.findall(new)),
            "old copies": len(re.findall(r"\.copy\(", old)),
            "new copies": len(re.findall(r"\.copy\(", new)),
            "generated tiles": len(made),
            "generated tiles with a number": sum(bool(re.search(r"_\d+$", name)) for name in made),
            "generated tiles called tmp": sum("_tmp" in name for name in made),
            "generated names that are too long": sum(len(name) > LONGEST_NAME for name in made),
            "tiles that nothing reads": sum(len(re.findall(rf"\b{name}\b", new)) < 3 for name in made if sources),
            "conversions to and fro": len(chains),
            "lines that are too wide": len(wide),
            "dummy products without a comment": sum(
                "#" not in "".join(new[: match.start()].splitlines()[-3:]) for match in _DUMMY.finditer(new)
            ),
        }
    )


def main(given: list[str]) -> None:
    """Print the table of all reports together."""
    total: Counter[str] = Counter()
    for pair in given:
        folder, _, report = pair.partition("=")
        for kernels, old, new in changed(Path(folder), Path(report)):
            total += count(old, new) + Counter({"files": 1, "kernels": kernels})
            total["longest line"] = max(total["longest line"], *map(len, set(new.splitlines()) - set(old.splitlines())))
    for name, number in total.items():
        print(f"{name}: {number:,}")
    for what in ("lines", "allocations", "copies"):
        print(f"new {what} over old: {total[f'new {what}'] / total[f'old {what}']:.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
