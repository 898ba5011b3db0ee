"""The styles of kernels: how programs are drawn and printed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.generated import blocks, gpu, halves, legacy, printing, triton
from tests.generated import program as p


@dataclass(frozen=True)
class Style:
    """``draw`` makes the program of a seed, ``text`` the file. ``runs``: the simulator executes the old kernel too."""

    draw: Callable[[int], p.Program]
    text: Callable[[p.Program], str]
    runs: bool = True


STYLES = {
    "gpu": Style(gpu.draw, lambda program: printing.Gpu(program).text()),
    "legacy": Style(legacy.draw, lambda program: halves.Halves(program).text()),
    "triton": Style(triton.draw, lambda program: blocks.Blocks(program).text(), runs=False),
}
