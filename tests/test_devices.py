"""The device table."""

from __future__ import annotations

import dataclasses

import pytest

from tl2npu.devices import ALIGNMENT, DEFAULT_DEVICE, DEVICES, Capacity

# src/transform/ascend_memory_planning.cc:34-38 and src/target/codegen_ascend.cc:30-40 of tile-ai/tilelang-ascend.
PLANNING = Capacity(l1=524032, ub=196352, l0a=65536, l0b=65536, l0c=131072)


@pytest.mark.parametrize(
    ("name", "hardware_ub", "hardware_l0c"),
    [("A2", 192 * 1024, 128 * 1024), ("A3", 192 * 1024, 128 * 1024), ("A5", 256 * 1024, 256 * 1024)],
)
def test_sizes(name: str, hardware_ub: int, hardware_l0c: int) -> None:
    device = DEVICES[name]
    assert device.capacity == PLANNING
    assert device.hardware == Capacity(l1=512 * 1024, ub=hardware_ub, l0a=65536, l0b=65536, l0c=hardware_l0c)
    assert device.vector_cores_per_cube == 2


def test_planning_fits_the_hardware() -> None:
    for device in DEVICES.values():
        for field in dataclasses.fields(Capacity):
            allowed, there = device.capacity.of(field.name), device.hardware.of(field.name)
            assert allowed is not None
            assert there is not None
            assert 0 < allowed <= there


def test_alignment() -> None:
    assert Capacity(l1=32, ub=32, l0a=512, l0b=512, l0c=64) == ALIGNMENT
    assert all(device.alignment is ALIGNMENT for device in DEVICES.values())


def test_capacity_of() -> None:
    assert PLANNING.of("ub") == 196352
    assert PLANNING.of("l0c") == 131072
    assert PLANNING.of("shared") is None
    assert PLANNING.of("gm") is None


def test_table() -> None:
    assert list(DEVICES) == ["A2", "A3", "A5"]
    assert all(name == device.name for name, device in DEVICES.items())
    assert DEFAULT_DEVICE is DEVICES["A2"]
    assert [device.cube_cores for device in DEVICES.values()] == [24, 24, None]
    assert DEVICES["A3"].chips == ("910_93", "910C")
