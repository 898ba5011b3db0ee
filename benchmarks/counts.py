"""How many public kernels migrate: counts them, and writes the numbers into README.md and docs/coverage.md.

``python benchmarks/counts.py tilelang=DIR tilelang-ascend=DIR`` migrates the examples of checkouts, in memory, and
writes ``counts.json`` and the pages. A name may also stand for a JSON report of that run (``tilelang=report.json``).
Without arguments only the pages are written anew, from ``counts.json``; tests hold that they are its.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FIGURES = ROOT / "benchmarks" / "counts.json"
PAGES = (ROOT / "README.md", ROOT / "docs" / "coverage.md")
COMMAND = ("migrate", "--check", "--no-cache", "--format", "json", "examples")
_TOP = 10
_HEADLINE = re.compile(r"\*\*\d+ of the \d+ example kernels\*\*[^.]*\.")
_LACKING = re.compile(r"TL1[89]\d")  # what an NPU does not have
_BAR = "\\|"
_WHY = {"TL801": "does not fit as called", "TL734": "its file cannot be imported", "TL735": "its factory cannot run"}
_CORES = {"2": "both vector cores (`threads=2`)", "1": "one vector core (`threads=1`)", "cube": "cube only"}


def count(report: dict[str, Any], triton: bool) -> dict[str, Any]:
    """What a JSON report says of the kernels in one language; every kernel counts in one of the outcomes."""
    kernels: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    for file in report["files"]:
        for kernel in file["kernels"]:
            if (kernel["source"] == "triton") == triton:
                own = [item for item in file["diagnostics"] if item["kernel"] == kernel["name"]]
                kernels.append((kernel, [item for item in own if item["severity"] == "error"]))
    outcomes = Counter(kernel["disposition"] for kernel, _ in kernels)
    done, kept = ([k for k, _ in kernels if k["disposition"] == name] for name in ("migrated", "unchanged"))
    stops = [{item["code"] for item in errors} for kernel, errors in kernels if kernel["disposition"] == "refused"]
    alone = (next(iter(codes)) for codes in stops if len(codes) == 1)
    return {
        "kernels": len(kernels),
        **{name: outcomes[name] for name in ("migrated", "partial", "unchanged", "refused")},
        "with_errors": dict(Counter(", ".join(kernel["errors"]) for kernel in done if kernel.get("errors"))),
        "threads": dict(Counter(_cores(kernel) for kernel in done)),
        "stages": sum("TL612" in kernel["codes"] for kernel in done),
        "developer": sum(kernel["source"] == "developer" for kernel in kept),
        "lacking": sum(any(_LACKING.fullmatch(code) for code in codes) for codes in stops),
        "stops": dict(Counter(code for codes in stops for code in sorted(codes)).most_common(_TOP)),
        "alone": dict(Counter(alone)),
    }


def _cores(kernel: dict[str, Any]) -> str:
    if kernel["reason"].startswith("cube only"):
        return "cube"
    return {"developer": "2", "developer-threads1": "1"}[kernel["target"]]


def measure(place: Path) -> dict[str, Any]:
    """The counts of a checkout, or of the report of one."""
    from tl2npu.source.git import commit

    if place.is_file():
        report = json.loads(place.read_text(encoding="utf-8"))
        sha = ""
    else:
        done = subprocess.run([sys.executable, "-m", "tl2npu", *COMMAND], cwd=place, capture_output=True, check=False)
        report = json.loads(done.stdout)
        sha = commit(place.resolve())[:8]
    found = {"tilelang": count(report, False), "triton": count(report, True)}
    return {"commit": sha, "files": len(report["files"]), **found}


def headline(figures: dict[str, Any]) -> str:
    """The number of the first screen: kernels of which nothing is left to do, and the others that were written."""
    found = figures["tilelang"]
    own, faulty = found["tilelang"], _faulty(found["tilelang"])
    text = f"**{own['migrated'] - faulty} of the {own['kernels']} example kernels** of tile-ai/tilelang migrate today"
    return f"{text}, {faulty} more with errors that are named ({found['commit']}, measured on {figures['date']})."


def summary(figures: dict[str, Any]) -> str:
    """The table of the README."""
    heads = ("public kernels, `examples`", "kernels", "migrated", "with errors", "partial", "unchanged", "refused")
    rows: list[list[object]] = []
    for name, found in _columns(figures):
        faulty, lacking = _faulty(found), found["lacking"]
        kept = f"{found['unchanged']} ({found['developer']} were in Developer mode)" if found["unchanged"] else ""
        refused = f"{found['refused']}" + (f", {lacking} of them for something that an NPU lacks" if lacking else "")
        rows.append([name, found["kernels"], found["migrated"] - faulty, faulty, found["partial"], kept, refused])
    return _table(heads, rows)


def details(figures: dict[str, Any]) -> str:
    """The tables of docs/coverage.md."""
    from tl2npu.codes import CODES

    columns = _columns(figures)

    def row(text: str, value: Callable[[dict[str, Any]], object]) -> list[object]:
        return [text, *(value(found) for _, found in columns)]

    rows = [row("kernels", lambda found: found["kernels"])]
    rows.append(row("migrated", lambda found: found["migrated"] - _faulty(found)))
    for codes in sorted({codes for _, found in columns for codes in found["with_errors"]}):
        why = " and ".join(_WHY.get(code, CODES[code].name) for code in codes.split(", "))
        rows.append(row(f"migrated with errors: {why} ({codes})", partial(_error, codes)))
    for key, text in _CORES.items():
        rows.append(row(f"- {text}", partial(_thread, key)))
    rows.append(row("- a loop over both cores keeps its stages", lambda found: found["stages"]))
    rows.append(row("partial (fallback)", lambda found: found["partial"]))
    rows.append(row("unchanged", lambda found: found["unchanged"]))
    rows.append(row("- in Developer mode already", lambda found: found["developer"]))
    rows.append(row("refused", lambda found: found["refused"]))
    rows.append(row("- for something that an NPU lacks (TL180 to TL199)", lambda found: found["lacking"]))
    dashes = "Lines with a dash are parts, those of vector cores of all migrated kernels."
    parts = [f"Measured on {figures['date']}, with the options' defaults. {dashes}\n"]
    parts.append(_table(("", *(name for name, _ in columns)), rows) + "\n")
    for name, found in columns:
        parts.append(f"What stops kernels of {name}: how many have a reason, and how many have it alone.\n")
        stops: list[list[object]] = [
            [code, number, found["alone"].get(code, ""), CODES[code].name.replace("-", " "), CODES[code].remedy]
            for code, number in found["stops"].items()
        ]
        parts.append(_table(("code", "kernels", "alone", "what", "what to do"), stops) + "\n")
    return "\n".join(parts).rstrip()


def _error(codes: str, found: dict[str, Any]) -> object:
    return found["with_errors"].get(codes, 0)


def _thread(key: str, found: dict[str, Any]) -> object:
    return found["threads"].get(key, 0)


def _faulty(found: dict[str, Any]) -> int:
    return sum(found["with_errors"].values())


def _table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(str(cell or '').replace('|', _BAR) for cell in line)} |" for line in lines)


def _columns(figures: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """(Repository, commit and language, counts)."""
    return [
        (f"tile-ai/{name}, {found['commit']}{', Triton' * (language == 'triton')}", found[language])
        for name, found in figures.items()
        if name != "date"
        for language in ("tilelang", "triton")
        if found[language]["kernels"]
    ]


def written(page: str, figures: dict[str, Any]) -> str:
    """The page with the tables between its markers, and the sentence of the first screen."""
    for name, render in (("summary", summary), ("details", details)):
        begin, end = f"<!-- coverage: {name} -->", f"<!-- /coverage: {name} -->"
        if begin in page:
            head, rest = page.split(begin)
            page = f"{head}{begin}\n{render(figures)}\n{end}{rest.split(end)[1]}"
    return _HEADLINE.sub(lambda found: headline(figures), page)


def main(arguments: list[str]) -> None:
    """Measure what is named, and write everything."""
    figures = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}
    for argument in arguments:
        name, _, place = argument.partition("=")
        found = measure(Path(place))
        found["commit"] = found["commit"] or figures.get(name, {}).get("commit", "")
        figures = {**figures, "date": f"{date.today()}", name: found}
    FIGURES.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    for page in PAGES:
        page.write_text(written(page.read_text(encoding="utf-8"), figures), encoding="utf-8")
        print(f"{page.name}: written")
    print(details(figures))


if __name__ == "__main__":
    main(sys.argv[1:])
