"""The styles of kernels: how programs are drawn and printed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.generated import gpu, halves, legacy, printing
from tests.generated import program as p


@dataclass(frozen=True)
class Style:
    """``draw`` makes the program of a seed, ``text`` the file."""

    draw: Callable[[int], p.Program]
    text: Callable[[p.Program], str]


STYLES = {
    "gpu": Style(gpu.draw, lambda program: printing.Gpu(program).text()),
    "legacy": Style(legacy.draw, lambda program: halves.Halves(program).text()),
}
