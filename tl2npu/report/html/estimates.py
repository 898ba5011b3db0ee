"""What the cost model says of the new kernels: a bar for each pipe of a core."""

from __future__ import annotations

from collections.abc import Mapping

from tl2npu.report.html.markup import e, long_code
from tl2npu.report.model import Report, place

_NOTE = """<p>Cycles that one block spends on each pipe at the first call in its file, by a model, not measured.
Pipes work at the same time, so that the block takes less than their sum: <code>tl2npu cost</code> says how long.</p>
"""


def estimates(report: Report, places: Mapping[str, str]) -> str:
    """A chart for each kernel, slowest first; empty where no call of a new kernel tells its sizes."""
    found = [(entry, kernel) for entry, kernel in report.kernels() if kernel.pipes]
    found.sort(key=lambda item: -sum(cycles for _, cycles in item[1].pipes))
    rows = []
    for entry, kernel in found:
        anchor = places.get(entry.path)
        where = long_code(place(entry.path, kernel))
        where = where if anchor is None else f'<a href="#{anchor}">{where}</a>'
        bound, most = max(kernel.pipes, key=lambda item: item[1])
        bars = "".join(
            f'<tr><th scope="row">{e(pipe)}</th><td>{cycles:,.0f}</td>'
            f'<td><meter max="{most:.0f}" value="{cycles:.0f}">{cycles / most:.0%}</meter></td></tr>'
            for pipe, cycles in kernel.pipes
        )
        total = sum(cycles for _, cycles in kernel.pipes)
        head = f"{long_code(kernel.name)}: {total:,.0f} cycles, the sum of its pipes, most on {e(bound)}"
        rows.append(f"<details><summary>{head}</summary><table><caption>{where}</caption>{bars}</table></details>")
    return _NOTE + "\n".join(rows) if rows else ""
