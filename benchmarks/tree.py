"""A tree of kernel files to measure a repository on: the fixtures, each several times, beside plain Python files."""

from __future__ import annotations

from itertools import cycle, islice
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def kernel_texts() -> list[str]:
    """The TileLang kernels of the fixtures before the migration."""
    texts = (path.read_text(encoding="utf-8") for path in sorted((ROOT / "fixtures").glob("*/*/before.py")))
    return [text for text in texts if "tilelang" in text]


def plain_texts() -> list[str]:
    """Modules without kernels, of the size that modules have: those of this package that never name the language."""
    texts = (path.read_text(encoding="utf-8") for path in sorted((ROOT / "tl2npu").rglob("*.py")))
    return [text for text in texts if "tilelang" not in text and text.count("\n") > 20]


def write(directory: Path, kernels: int, plain: int) -> list[Path]:
    """So many files of each kind in folders of 25; the paths of those with kernels. No two files are equal."""
    made: list[Path] = []
    chosen = spread(kernel_texts(), kernels)
    for kind, texts in (("kernels", chosen), ("plain", list(islice(cycle(plain_texts()), plain)))):
        for number, text in enumerate(texts):
            path = directory / f"{kind}_{number // 25:03}" / f"{kind}_{number:04}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{text}\n# file {number}\n", encoding="utf-8")
            if kind == "kernels":
                made.append(path)
    return made


def spread(texts: list[str], count: int) -> list[str]:
    """So many of the texts: evenly chosen ones where they are fewer, else all of them again and again."""
    if count >= len(texts):
        return list(islice(cycle(texts), count))
    return [texts[number * len(texts) // count] for number in range(count)]
