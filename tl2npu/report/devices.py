"""The capacity table of ``tl2npu devices``."""

from __future__ import annotations

from tl2npu.devices import DEVICES

_MEMORIES = ("l1", "ub", "l0a", "l0b", "l0c")


def render() -> str:
    """One line per device: bytes of each memory that memory planning allows, cube and vector cores, chips, notes."""
    rows = [["device", *(name.upper() for name in _MEMORIES), "cube cores", "vector cores", "chips"]]
    for device in DEVICES.values():
        cores = device.cube_cores
        sizes = [str(device.capacity.of(name)) for name in _MEMORIES]
        counts = ["?", "?"] if cores is None else [str(cores), str(cores * device.vector_cores_per_cube)]
        rows.append([device.name, *sizes, *counts, ", ".join(device.chips)])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines += ["", *(f"{device.name}: {device.note}" for device in DEVICES.values() if device.note)]
    return "\n".join(lines) + "\n"
