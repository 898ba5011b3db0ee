"""The last line of ``verify`` says nothing that the lines above it contradict."""

from __future__ import annotations

import click
import pytest

from tests.in_process import copied
from tests.verify.support import SCRIPT, by_calls, by_script
from tl2npu.migration import migrate_text
from tl2npu.options import Options
from tl2npu.report import verify
from tl2npu.report.verify import text
from tl2npu.verified import VerifyResult

MIGRATED = migrate_text(SCRIPT, "kernel.py", Options()).new_text or ""


def last_line(result: VerifyResult) -> str:
    return text(result).split("\n")[-2]


def test_every_element_differs() -> None:
    """By 1.91, as the finding says too."""
    wrong = MIGRATED.replace("T.copy(x, Y", "T.tile.add(x, x, 1.91)\n            T.copy(x, Y")
    result = by_calls(SCRIPT, wrong)
    assert "4096 of 4096 elements differ, by up to 1.91" in text(result)
    assert last_line(result) == (
        "failed: new.py against old.py on the simulator; 0 of 1 kernel agrees, 1 launch compared, "
        "largest difference 1.91"
    )


def test_a_difference_that_is_no_number() -> None:
    """Where the new kernel gives NaN there is no largest difference, least of all 0."""
    result = by_calls(SCRIPT, MIGRATED.replace("T.tile.mul(x, x, factor)", "T.tile.mul(x, x, float('nan'))"))
    assert last_line(result).endswith("; 0 of 1 kernel agrees, 1 launch compared")
    assert "by up to" not in text(result)


OWN_CHECK = SCRIPT.replace("x * 0.5)", "x * 0.25)")
DIES = "\nimport os\nos._exit(0)\n"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (SCRIPT, MIGRATED.replace("x * 0.5)", "x * 0.25)"), "the new script failed"),
        (OWN_CHECK, MIGRATED, "the old script failed"),
        (SCRIPT, MIGRATED + DIES, "the new script did not finish"),
    ],
    ids=["the new script's own check", "the old script's own check", "the new script dies"],
)
def test_every_kernel_agrees_and_the_file_is_not_verified(old: str, new: str, said: str) -> None:
    """Then the last line says why, and calls nothing proved."""
    result = by_script(old, new, copied)
    assert [kernel.status for kernel in result.kernels] == ["verified"]
    assert last_line(result).endswith(f"1 of 1 kernel agrees, 1 launch compared, largest difference 0; {said}")
    assert last_line(result).startswith("failed: " if "new script failed" in said else "not verified: ")


def test_what_could_not_be_compared_is_not_counted() -> None:
    """The new kernel asks for a tensor that no launch has."""
    other = MIGRATED.replace("        Y: T", '        Z: T.Tensor((3,), "int8"),\n        Y: T')
    result = by_calls(SCRIPT, other.replace("out_idx=[1]", "out_idx=[2]"))
    assert not result.ok
    assert all(launch.max_error is None for launch in result.comparisons)
    assert last_line(result).endswith("0 of 1 kernel agrees, 0 launches compared")


def test_words_stay_whole_in_a_terminal() -> None:
    """Rows of 40 columns, colours not counted; without a width a line is a line."""
    line = f"  k.py:3 f: {click.style('verified', fg='green')} on the simulator: 1 launch, largest difference 6.1e-05"
    rows = verify._rows(line, 40)
    assert [click.unstyle(row) for row in rows] == [
        "  k.py:3 f: verified on the simulator: 1",
        "    launch, largest difference 6.1e-05",
    ]
    assert verify._rows(line, None) == [line]
    assert verify._rows("x" * 50 + " y", 40) == ["x" * 50, "  y"]
    assert verify._rows("    " + "x" * 50, 40) == ["    " + "x" * 50]
    assert verify._rows("", 40) == [""]
