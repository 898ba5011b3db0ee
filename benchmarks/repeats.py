"""How often the tool does the same thing again for one kernel: a count for each kind of work, no times.

``python benchmarks/repeats.py [--kernels] PATH...`` migrates the files below the paths in memory and prints the mean
for each kernel, with ``--kernels`` also the files with most builds. ``tests/test_repeats.py`` holds ceilings.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tl2npu.migration import migrate_text  # noqa: E402
from tl2npu.options import Options  # noqa: E402
from tl2npu.source.text import SourceError, read_source  # noqa: E402

KINDS = {
    "builds": ("tl2npu.strategy.attempt", "built"),
    "other ways": ("tl2npu.strategy.attempt", "rebuilt"),
    "checks": ("tl2npu.checks.run", "check_kernel"),
    "model reads": ("tl2npu.kernel.read", "read_kernel"),
    "name resolutions": ("tl2npu.source.names", "Names.__init__"),
    "snippets parsed": ("libcst", "parse_expression parse_statement parse_module"),
    "nodes printed": ("libcst", "Module.code_for_node"),
    "black calls": ("black", "format_str"),
}
"""What is counted: the functions that do it, by the module that defines them."""


@dataclass
class Work:
    """What was counted over ``kernels`` kernels."""

    kernels: int = 0
    counts: Counter[str] = field(default_factory=Counter)

    def each(self, kind: str) -> float:
        """How often for one kernel."""
        return self.counts[kind] / max(1, self.kernels)

    def add(self, other: Work) -> None:
        """Sum up."""
        self.kernels += other.kernels
        self.counts += other.counts


@contextmanager
def counting(counts: Counter[str]) -> Iterator[None]:
    """Count into ``counts`` what is done inside. Functions are found under every name that a module gives them."""
    undo: list[tuple[object, str, object]] = []
    for kind, (home, names) in KINDS.items():
        for name in names.split():
            owner: Any = import_module(home)
            *path, last = name.split(".")
            for part in path:
                owner = getattr(owner, part)
            function = getattr(owner, last)
            counted = _counted(function, kind, counts)
            loaded = [module for key, module in sys.modules.items() if key.startswith("tl2npu") and not path]
            for place in (owner, *loaded):
                for attribute in [key for key, value in vars(place).items() if value is function]:
                    undo.append((place, attribute, function))
                    setattr(place, attribute, counted)
    try:
        yield
    finally:
        for place, attribute, function in undo:
            setattr(place, attribute, function)


def _counted(function: Callable[..., Any], kind: str, counts: Counter[str]) -> Callable[..., Any]:
    def count(*args: Any, **kwargs: Any) -> Any:
        counts[kind] += 1
        return function(*args, **kwargs)

    return count


def work_of(text: str, path: Path, options: Options | None = None) -> Work:
    """What migrating one text in memory takes."""
    work = Work()
    with counting(work.counts):
        result = migrate_text(text, str(path), options or Options())
    work.kernels = len(result.kernels)
    return work


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--kernels", action="store_true", help="also the files with most builds")
    arguments = parser.parse_args(argv)
    total, files = Work(), []
    for top in arguments.paths:
        for path in [top] if top.is_file() else sorted(top.rglob("*.py")):
            try:
                work = work_of(read_source(path).text, path)
            except (SourceError, OSError):
                continue
            total.add(work)
            files.append((work, path))
    print(f"{total.kernels} kernels in {len(files)} files")
    for kind in KINDS:
        print(f"{kind:<18}{total.each(kind):8.1f} a kernel")
    if arguments.kernels:
        for work, path in sorted(files, key=lambda item: -item[0].counts["builds"])[:20]:
            print(f"{work.counts['builds']:5} builds {work.kernels:3} kernels  {path}")


if __name__ == "__main__":
    main()
