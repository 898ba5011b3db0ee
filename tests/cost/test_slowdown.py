"""TL332 with an estimate: the end of a pipeline by hand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tl2npu.migration import migrate_text
from tl2npu.options import Options

MMA = Path(__file__).resolve().parents[2] / "fixtures" / "mma"


def said(name: str, options: Options) -> list[tuple[str, str]]:
    """Severity and message of every TL332."""
    path = MMA / name / "before.py"
    result = migrate_text(path.read_text(), str(path), options)
    return [(found.severity, found.message) for found in result.diagnostics if found.code == "TL332"]


def test_the_first_product_says_how_much_slower_the_kernel_is() -> None:
    (severity, message), *others = said("transposed_right", Options())
    found = re.search(r"estimated to take (\d\.\d) times as long", message)
    assert severity == "warning"
    assert found is not None
    assert 1.3 < float(found[1]) < 2.5  # published for such pipelines: 0.95 / 0.51
    assert all(severity == "info" and "estimated" not in message for severity, message in others)


@pytest.mark.parametrize("options", [Options(device="A5")], ids=["a device without rates"])
def test_nothing_is_estimated_without_rates(options: Options) -> None:
    assert all(severity == "info" for severity, _ in said("transposed_right", options))
