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


ADVICE = re.compile(r"write `(T\.wait_flag\(.*?\))` before (this|the loop on line (\d+)): line \d+ sets that flag")


@pytest.mark.thorough
@pytest.mark.parametrize("name", KERNELS)
def test_the_wait_that_the_help_names_ends_the_finding(name: str) -> None:
    """Written where it says: with the event of the flag that is set, and as often."""
    lines = (FIXTURES / name / "before.py").read_text().split("\n")
    before = {code for code, _ in _errors("\n".join(lines))}
    for n in [n for n, line in enumerate(lines) if FLAG.fullmatch(line) and ".wait_flag(" in line]:
        short = [*lines[:n], *lines[n + 1 :]]
        found = check_text("\n".join(short), "kernel.py", Options()).diagnostics
        for item in found:
            advice = ADVICE.match(item.help) if item.code in ("TL780", "TL781") else None
            if advice is None:
                continue
            at = int(advice[3] or item.line) - 1
            indent = short[at][: len(short[at]) - len(short[at].lstrip())]
            call = lines[n].strip().partition(".")[0] + advice[1].removeprefix("T")
            mended = "\n".join([*short[:at], f"{indent}{call}", *short[at:]])
            left = {code for code, _ in _errors(mended)} - before  # a second slot is counted by another finding
            assert left <= {other.code for other in found} - {item.code}, f"line {n + 1}: {advice[0]}"
