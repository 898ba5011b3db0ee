from __future__ import annotations

from tl2npu.devices import DEVICES
from tl2npu.report.devices import render


def test_one_row_per_device_with_its_sizes() -> None:
    head, *rows = render().split("\n\n")[0].split("\n")
    assert head.split()[:6] == ["device", "L1", "UB", "L0A", "L0B", "L0C"]
    assert [row.split()[0] for row in rows] == list(DEVICES)
    for row, device in zip(rows, DEVICES.values(), strict=True):
        capacity = device.capacity
        assert row.split()[1:6] == [
            str(n) for n in (capacity.l1, capacity.ub, capacity.l0a, capacity.l0b, capacity.l0c)
        ]
