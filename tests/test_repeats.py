"""How often the same work is done again for one kernel: ceilings, which may only go down.

``python benchmarks/repeats.py PATH`` counts the same for any folder.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.repeats import KINDS, Work, work_of

FIXTURES = Path(__file__).parent.parent / "fixtures"
CEILINGS = {  # the mean over the fixtures of a group, for each kernel
    "gpu": (1.1, 0.1, 1.1, 11.5, 16.1, 37, 101, 0.5),
    "workspace vid expert mma cube": (1.4, 0, 1.2, 6.9, 11.7, 8.4, 31.4, 1.3),
    "npuir": (1, 0, 1.1, 7.6, 13.5, 22.3, 51, 1.1),
}
"""By group, in the order of :data:`KINDS`. They rose once: kernels that stay are checked, numbers have types."""


@pytest.mark.parametrize("groups", CEILINGS)
def test_a_kernel_is_not_worked_on_more_often(groups: str) -> None:
    total = Work()
    for path in sorted(path for group in groups.split() for path in FIXTURES.glob(f"{group}/*/before.py")):
        total.add(work_of(path.read_text(encoding="utf-8"), path))
    assert total.kernels > 20
    found = {kind: total.each(kind) for kind in KINDS}
    above = {kind: found[kind] for kind, most in zip(KINDS, CEILINGS[groups], strict=True) if found[kind] > most}
    assert not above, f"more than the ceilings {dict(zip(KINDS, CEILINGS[groups], strict=True))}"
    assert found["model reads"] > 1, "nothing was counted"
