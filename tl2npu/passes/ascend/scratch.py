"""TL218: AUTO_CV_SYNC finds a hand-over by its name, so a tensor that is kept for one is called ``workspace_*``.

``src/transform/ascend_combinecv.cc`` pairs copies whose tensor name contains "workspace"; measured: without it no flag
is inserted (g6_man_my_ws). Outputs keep their names: a caller may pass them by keyword.
"""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.factories.positions import output_positions
from tl2npu.kernel.handover import iterate_places, traffic
from tl2npu.passes.ascend.hand_overs import side
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits
from tl2npu.source.tree import mentioned, names_in


def rename(job: Job) -> None:
    """Rename every tensor that carries data between the cores; raises :class:`Blocked` for an output."""
    outputs = output_positions(job.file, job.located)
    edits = Edits(job.file.index)
    taken = mentioned(job.located.node)
    for entry in traffic(job.kernel).values():
        sides = {side(place, entry.tensor) for place in iterate_places(entry)}
        name = entry.tensor.name
        if not entry.exchanged or len(sides) < 2 or "workspace" in name:
            continue
        if entry.tensor.index in outputs:
            raise Blocked("TL850", entry.tensor.node, f"the output `{name}` carries data between the cores")
        new = f"workspace_{name}"
        if new in taken:
            raise Blocked("TL851", entry.tensor.node, f"`{new}` is taken")
        for use in names_in(job.located.node):
            if use.value == name:
                edits.replace(use, cst.Name(new, lpar=use.lpar, rpar=use.rpar))
        job.change("TL218", entry.tensor.node, f"`{name}` -> `{new}`: AUTO_CV_SYNC recognises workspaces by name")
    job.apply(edits)
