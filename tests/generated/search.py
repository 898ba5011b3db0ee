"""Looks for programs that tl2npu gets wrong, and makes them small."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.generated import program as p
from tests.generated.judge import Verdict
from tests.generated.shrinking import shrunk
from tests.generated.styles import STYLES


@dataclass(frozen=True)
class Finding:
    """A program that is wrong; ``text``: reduced, with what is wrong in comments on top."""

    style: str
    seed: int
    verdict: Verdict
    text: str

    @property
    def fault(self) -> str:
        """What is wrong, without names and numbers: equal for findings that may have one cause."""
        return fault(self.verdict)


def fault(verdict: Verdict) -> str:
    """The kind of a verdict, and its last line without names and numbers."""
    last = verdict.detail.strip().split("\n")[-1]
    return verdict.kind + ": " + re.sub(r"<kernel \d+>:\d+|\b[a-zA-Z]\d+\w*|\d+(\.\d+)?(e-?\d+)?", "#", last)[:70]


def verdict_of(style: str, seed: int) -> Verdict:
    """The verdict of the program of a seed."""
    program = STYLES[style].draw(seed)
    return STYLES[style].judged(program, seed)


def reduced(style: str, seed: int, verdict: Verdict, tries: int = 600) -> Finding:
    """The program of a seed, made small, as long as its verdict is of one kind."""
    text = STYLES[style].text

    def same(program: p.Program) -> bool:
        try:
            text(program)
        except (AssertionError, IndexError, StopIteration):  # it is no program of this style any more
            return False
        got = STYLES[style].judged(program, seed)
        return got.kind == verdict.kind and (not exact or fault(got) == fault(verdict))

    exact = verdict.kind not in ("SILENT difference",)
    program = shrunk(STYLES[style].draw(seed), same, tries)
    final = STYLES[style].judged(program, seed)
    head = [f"{style} {seed}: {final.kind}", *final.detail.strip().split("\n")]
    return Finding(style, seed, final, "".join(f"# {line}\n" for line in head) + text(program))


def search(style: str, seeds: range) -> Iterator[tuple[int, Verdict]]:
    """The verdicts of the programs of seeds."""
    for seed in seeds:
        yield seed, verdict_of(style, seed)
