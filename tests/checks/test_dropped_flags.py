"""Each flag that is taken out of a working kernel is missed by ``check``, without running it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tl2npu.migration import check_text
from tl2npu.options import Options

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
FLAG = re.compile(r"\s*\w+\.(set_flag|wait_flag|set_cross_flag|wait_cross_flag)\(.*\)")
KERNELS = [
    "expert/macro_signals",
    "expert/output_handover",
    "expert/vec_row_peak_flags",
    "mma/first_turn_counter",
    "mma/named_slots",
    "mma/resident_tiles",
    "mma/three_slabs",
    "mma/transposed_right",
]
_MOST = 6


def _errors(text: str) -> set[tuple[str, str]]:
    found = check_text(text, "kernel.py", Options()).diagnostics
    return {(item.code, item.message) for item in found if item.severity != "info"}


@pytest.mark.thorough
@pytest.mark.parametrize("group", ["cube", "expert", "mma", "refused", "vid", "workspace"])
def test_kernels_of_the_fixtures_are_in_order(group: str) -> None:
    """Every one of these runs on the simulator without a hazard."""
    for path in sorted((FIXTURES / group).glob("*/before.py")):
        found = [code for code, _ in _errors(path.read_text()) if "TL780" <= code <= "TL789"]
        assert found == [], path.parent.name


@pytest.mark.thorough
@pytest.mark.parametrize("name", KERNELS)
def test_dropped_flags(name: str) -> None:
    text = (FIXTURES / name / "before.py").read_text()
    lines, before = text.split("\n"), _errors(text)
    flags = [n for n, line in enumerate(lines) if FLAG.fullmatch(line)]
    assert flags
    for n in flags[:: -(-len(flags) // _MOST)]:
        indent = lines[n][: len(lines[n]) - len(lines[n].lstrip())]
        changed = "\n".join([*lines[:n], f"{indent}pass", *lines[n + 1 :]])
        assert _errors(changed) - before, f"line {n + 1}: {lines[n].strip()}"
