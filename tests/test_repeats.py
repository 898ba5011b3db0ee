"""How often the same work is done again for one kernel: ceilings, which may only go down.

They went up for what readers want: a launch that asks for the parity of its rows (TL138) is one more edit (one part in
fifty), black breaks statements that nobody wants on one line in any file, a number of stages has a name of its own, and
a product that is taken whole in its own tile (TL133) is one more edit.
What is said of loops that replace a nest names the line of that nest: six more nodes in one fixture.
Kernels of the vector cores that keep their launch are tried with one core (TL234), a tenth more builds in that group.
A form that is written again from where its ways part is one of the other ways, no build. Where fixtures went, every
third one is another one: the code before counts the same on these.

``python benchmarks/repeats.py PATH`` counts the same for any folder.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.repeats import KINDS, Work, work_of

pytestmark = pytest.mark.thorough

FIXTURES = Path(__file__).parent.parent / "fixtures"
CEILINGS = {  # the mean over every third fixture of a group, for each kernel
    "gpu": (1, 0.1, 1.1, 11, 9.4, 39.9, 96.7, 0.7),
    "workspace vid expert mma cube": (1.4, 0, 1.2, 6.7, 5, 8.7, 29.2, 1.4),
    "npuir": (0.7, 0, 1, 6.6, 6.3, 29.4, 49, 1),
}
"""By group, in the order of :data:`KINDS`, of a process that has migrated nothing else: others parse fewer snippets."""


@pytest.mark.parametrize("groups", CEILINGS)
def test_a_kernel_is_not_worked_on_more_often(groups: str) -> None:
    total = Work()
    found = sorted(path for group in groups.split() for path in FIXTURES.glob(f"{group}/*/before.py"))
    for path in found[::3]:
        total.add(work_of(path.read_text(encoding="utf-8"), path))
    assert total.kernels >= 10
    counts = {kind: total.each(kind) for kind in KINDS}
    above = {kind: counts[kind] for kind, most in zip(KINDS, CEILINGS[groups], strict=True) if counts[kind] > most}
    assert not above, f"more than the ceilings {dict(zip(KINDS, CEILINGS[groups], strict=True))}"
    assert counts["model reads"] > 1, "nothing was counted"
