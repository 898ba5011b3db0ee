"""Reads ``fixtures/<group>/<kernel>/``: a whole kernel before and after, and what the tool must say about it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent / "fixtures"

DISPOSITIONS = frozenset({"migrated", "unchanged", "partial", "refused"})
TARGETS = frozenset({"developer", "developer-threads1", "fallback", "npuir", "none"})
STYLES = frozenset({"black", "hand"})

_KEYS = frozenset({"title", "pattern", "style", "factory", "args", "tolerance", "options", "kernels"})
_MAY_HAVE = frozenset({"inputs", "builder"})


@dataclass(frozen=True)
class ExpectedKernel:
    """The verdict on one prim_func; ``codes`` must appear among its diagnostics and changes, others may."""

    name: str
    disposition: str
    target: str
    codes: tuple[str, ...]


@dataclass(frozen=True)
class Case:
    """One fixture. ``after`` equals ``before`` where the folder has no ``after.py``: the text must not change.

    ``factory`` and ``args`` say how to build the kernel, ``builder`` names a host function with the same arguments
    that compiles what the factory gives (``tilelang.compile``), ``inputs`` how to make tensors that must not be
    arbitrary, ``tolerance`` holds ``rtol`` and ``atol`` for its results.
    ``style`` is ``black`` for files that black (default settings) leaves alone, ``hand`` for the others.
    """

    name: str
    title: str
    pattern: str
    before: str
    after: str
    has_after: bool
    kernels: tuple[ExpectedKernel, ...]
    options: dict[str, Any]
    style: str
    factory: str
    args: dict[str, Any]
    tolerance: dict[str, float]
    inputs: dict[str, str]
    builder: str | None = None

    @property
    def scripts(self) -> dict[str, str]:
        """The texts that the folder holds, by file name."""
        return {"before.py": self.before} | ({"after.py": self.after} if self.has_after else {})

    @property
    def of_gpu(self) -> bool:
        """``before`` is GPU TileLang: its host code, launches and element types change too."""
        return self.name.startswith("gpu/") or (self.for_npuir and "is_npu" not in self.before)

    @property
    def from_npuir(self) -> bool:
        """``before`` is written for AscendNPU IR and ``after`` for Ascend C."""
        return self.name.startswith("npuir/") and not self.for_npuir and 'target="npuir"' in self.before

    @property
    def for_npuir(self) -> bool:
        """``after`` is written for AscendNPU IR."""
        return self.options.get("target") == "npuir"

    def in_developer_mode(self) -> tuple[ExpectedKernel, ...]:
        """The kernels that are in Developer mode afterwards; ``unchanged`` with no code was so before."""
        return tuple(
            k
            for k in self.kernels
            if k.target in ("developer", "developer-threads1") or (k.disposition == "unchanged" and not k.codes)
        )


def load(folder: Path) -> Case:
    """Read one fixture folder; raises :class:`ValueError` naming it if a key is missing or unknown."""
    name = folder.relative_to(ROOT).as_posix()
    data = tomllib.loads((folder / "case.toml").read_text(encoding="utf-8"))
    wrong = _KEYS ^ (data.keys() - _MAY_HAVE)
    if wrong:
        raise ValueError(f"{name}/case.toml: missing or unknown keys {sorted(wrong)}")
    before = _text(folder / "before.py")
    after = folder / "after.py"
    return Case(
        name=name,
        title=data["title"],
        pattern=data["pattern"],
        before=before,
        after=_text(after) if after.exists() else before,
        has_after=after.exists(),
        kernels=tuple(
            ExpectedKernel(k["name"], k["disposition"], k["target"], tuple(k["codes"])) for k in data["kernels"]
        ),
        options=dict(data["options"]),
        style=data["style"],
        factory=data["factory"],
        args=dict(data["args"]),
        tolerance=dict(data["tolerance"]),
        inputs=dict(data.get("inputs", {})),
        builder=data.get("builder"),
    )


@cache
def load_all() -> tuple[Case, ...]:
    """Every fixture of every group, sorted by name."""
    return tuple(load(file.parent) for file in sorted(ROOT.glob("*/*/case.toml")))


def _text(path: Path) -> str:
    # Not read_text: it would turn \r\n into \n, and the tool must keep line ends.
    return path.read_bytes().decode("utf-8")
