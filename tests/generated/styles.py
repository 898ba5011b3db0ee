"""The styles of kernels: how programs are drawn and printed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.generated import blocks, gpu, halves, legacy, printing, triton
from tests.generated import program as p
from tests.generated.judge import DEFAULTS, Verdict, judge
from tl2npu.options import Options


@dataclass(frozen=True)
class Style:
    """``draw`` makes the program of a seed, ``text`` the file. ``runs``: the simulator executes the old kernel too.
    ``options``: how it is migrated."""

    draw: Callable[[int], p.Program]
    text: Callable[[p.Program], str]
    runs: bool = True
    options: Options = DEFAULTS

    def judged(self, program: p.Program, seed: int) -> Verdict:
        """The verdict of a program of this style."""
        return judge(program, self.text(program), seed, self.runs, self.options)


STYLES = {
    "gpu": Style(gpu.draw, lambda program: printing.Gpu(program).text()),
    "npuir": Style(gpu.draw, lambda program: printing.Gpu(program).text(), options=Options(target="npuir")),
    "legacy": Style(legacy.draw, lambda program: halves.Halves(program).text()),
    "triton": Style(triton.draw, lambda program: blocks.Blocks(program).text(), runs=False),
}
